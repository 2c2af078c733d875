#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One Kafka broker (KRaft, combined roles) from Maven jars.
# usage: kafka-single.sh start|stop|kill|wipe DIR [PORT]
#   start  in the background, returns when ready     stop  SIGTERM, waits     kill  SIGKILL     wipe  stop and remove DIR
# PORT: 19092 (controller on PORT+1).
# env: HOST (127.0.0.1), HEAP (512m), LIBS (STACK_CACHE/kafka/libs), CONF (a file appended to server.properties), FAST (1: up
#   sooner, see jvm_options in lib.sh; the first time it starts, stops and starts, to make the archive of its classes)
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
verb=${1:-}
case $verb:${2:+dir} in
  start:dir | stop:dir | kill:dir | wipe:dir) ;;
  *)
    sed -n '3,8s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
D=$(absdir "$2")
PORT=${3:-19092} HOST=${HOST:-127.0.0.1} LIBS=${LIBS:-$STACK_CACHE/kafka/libs}

case $verb in
  stop)
    stop_pid "$D/pid" "$D/server.properties"
    exit
    ;;
  kill)
    stop_pid "$D/pid" "$D/server.properties" 10 KILL
    wait_closed "$PORT" $((PORT + 1))
    exit
    ;;
  wipe)
    [ -f "$D/server.properties" ] || {
      rmdir "$D" 2>/dev/null && exit
      die "$D is not a broker's folder"
    }
    stop_pid "$D/pid" "$D/server.properties"
    rm -rf "$D"
    exit
    ;;
esac
ls "$LIBS"/kafka_2.13-*.jar >/dev/null 2>&1 || die "no broker jars in $LIBS: run kafka-fetch.sh"
! is_ours "$D/pid" "$D/server.properties" || die "already running, pid $(cat "$D/pid")"
free_port "$PORT" $((PORT + 1))
JAVA=$(find_java 17)
java=("$JAVA" -XX:-UsePerfData -cp "$LIBS/*" "-Dlog4j2.configurationFile=$STACK_HERE/log4j2.properties")

cat >"$D/server.properties" <<C
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=$HOST:$((PORT + 1))
listeners=PLAINTEXT://$HOST:$PORT,CONTROLLER://$HOST:$((PORT + 1))
advertised.listeners=PLAINTEXT://$HOST:$PORT,CONTROLLER://$HOST:$((PORT + 1))
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs=$D/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=3
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=3
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
num.partitions=1
C
[ -z "${CONF:-}" ] || cat "$CONF" >>"$D/server.properties"
if [ ! -f "$D/data/meta.properties" ]; then
  id=$(head -c16 /dev/urandom | base64 | tr '+/' '-_' | cut -c1-22)
  case $id in -*) id=A${id:1} ;; esac
  "${java[@]}" -Xmx128m kafka.tools.StorageTool format --standalone -t "$id" -c "$D/server.properties" \
    >"$D/format.log" 2>&1 || die "format failed, see $D/format.log"
fi

launch() { # JVM OPTIONS...
  : >"$D/log" # before the fork: the last run's "started" must not be read as this one's
  setsid "${java[@]}" "-Xmx${HEAP:-512m}" "$@" kafka.Kafka "$D/server.properties" >"$D/log" 2>&1 </dev/null &
  echo $! >"$D/pid"
  wait_until 180 "broker $HOST:$PORT" $! grep -q 'Kafka Server started' "$D/log" || {
    tail -5 "$D/log" >&2
    exit 1
  }
}
archive=$(archive_of "$LIBS" "$JAVA")
if [ "${FAST:-0}" = 1 ] && [ ! -s "$archive" ]; then
  read -ra jvm <<<"$(jvm_options "$archive")"
  launch "${jvm[@]}" "-XX:ArchiveClassesAtExit=$archive.$$"
  stop_pid "$D/pid" "$D/server.properties" 120
  mv "$archive.$$" "$archive"
fi
read -ra jvm <<<"$(jvm_options "$archive" | tr '\n' ' ')"
launch "${jvm[@]}"
