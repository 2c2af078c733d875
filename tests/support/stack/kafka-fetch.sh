#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches the jars of an Apache Kafka broker with Maven into STACK_CACHE/kafka/libs. usage: kafka-fetch.sh
# Does nothing when they are there and the pom is the one that fetched them.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
out=$STACK_CACHE/kafka/libs
! cmp -s "$STACK_HERE/kafka-pom.xml" "$out/.complete" || exit 0
need mvn flock
mkdir -p "$STACK_CACHE/kafka"
exec 9>"$STACK_CACHE/kafka/.lock" # two runs at once: the second one waits and finds the first one's jars
flock 9
! cmp -s "$STACK_HERE/kafka-pom.xml" "$out/.complete" || exit 0
say "fetching the broker's jars (once, about 55 MB)"
rm -rf "$out"
mkdir -p "$out"
MAVEN_OPTS="${MAVEN_OPTS:-} -XX:-UsePerfData" mvn -B -q -f "$STACK_HERE/kafka-pom.xml" dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$out"
cp "$STACK_HERE/kafka-pom.xml" "$out/.complete"
say "$(find "$out" -name '*.jar' | wc -l) jars in $out"
