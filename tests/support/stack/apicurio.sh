#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Apicurio Registry, with Confluent's REST API at http://127.0.0.1:PORT/apis/ccompat/v7. Schemas are kept in memory.
# usage: apicurio.sh start|stop|wipe DIR [PORT]
#   start  in the background, returns when ready     stop  SIGTERM, waits     wipe  stop and remove DIR
# PORT: 28081 (management on PORT+1). env: HEAP (384m), JAVA (a Java 21 or newer; else searched for)
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
verb=${1:-}
case $verb:${2:+dir} in
  start:dir | stop:dir | wipe:dir) ;;
  *)
    sed -n '3,7s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
D=$(absdir "$2")
PORT=${3:-28081}
mark=-Dpayfact.dir=$D # names the process, so that stop finds only ours
case $verb in
  stop)
    stop_pid "$D/pid" "$mark"
    exit
    ;;
  wipe)
    stop_pid "$D/pid" "$mark"
    rm -f "$D/log"
    rmdir "$D" || die "$D holds something that is not a registry's"
    exit
    ;;
esac
app=$STACK_CACHE/apicurio
[ -f "$app/quarkus-run.jar" ] || die "no registry in $app: run apicurio-fetch.sh"
need curl
! is_ours "$D/pid" "$mark" || die "already running, pid $(cat "$D/pid")"
free_port "$PORT" $((PORT + 1))
JAVA=$(find_java 21)
export QUARKUS_HTTP_HOST=127.0.0.1 QUARKUS_HTTP_PORT=$PORT
# The management port is 0.0.0.0:9000 unless told otherwise.
export QUARKUS_MANAGEMENT_HOST=127.0.0.1 QUARKUS_MANAGEMENT_PORT=$((PORT + 1))
cd "$app"
setsid "$JAVA" -XX:-UsePerfData "-Xmx${HEAP:-384m}" "$mark" -jar quarkus-run.jar >"$D/log" 2>&1 </dev/null &
echo $! >"$D/pid"
url=http://127.0.0.1:$PORT/apis/ccompat/v7
wait_until 300 "registry $url" $! curl -sf "$url/subjects" || {
  tail -5 "$D/log" >&2
  exit 1
}
