#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches Kafka Connect with Debezium's PostgreSQL connector with Maven into STACK_CACHE/debezium/libs, and prints that folder.
# Does nothing when they are there and the pom is the one that fetched them. usage: fetch.sh
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../../support/stack/lib.sh
. "$here/../../support/stack/lib.sh"
out=$STACK_CACHE/debezium/libs
mkdir -p "$STACK_CACHE/debezium"
exec 9>"$STACK_CACHE/debezium/.lock" # two runs at once: the second one waits and finds the first one's jars
flock 9
if ! cmp -s "$here/pom.xml" "$out/.complete"; then
  need mvn flock
  say "fetching Debezium's jars (once, about 41 MB)"
  rm -rf "$out"
  MAVEN_OPTS="${MAVEN_OPTS:-} -XX:-UsePerfData" mvn -B -q -f "$here/pom.xml" dependency:copy-dependencies -DincludeScope=runtime "-DoutputDirectory=$out" >&2
  cp "$here/pom.xml" "$out/.complete"
fi
echo "$out"
