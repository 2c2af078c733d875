#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Three Kafka nodes (KRaft, combined roles) on loopback from Maven jars, replication factor 3, min.insync.replicas 2.
# usage: kafka-cluster3.sh start|stop|wipe DIR [BASE]           all nodes
#        kafka-cluster3.sh start-node|kill-node DIR BASE N      one node (kill-node: SIGKILL)
# Node N listens on BASE+N and, for the controllers, on BASE+3+N; BASE: 29090.
# env: HEAP (384m), LIBS (STACK_CACHE/kafka/libs), CONF (a file appended to each server.properties), FAST (1: up sooner, see
#   jvm_options in lib.sh)
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
verb=${1:-}
case $verb:${2:+dir}:${4:+node} in
  start:dir: | stop:dir: | wipe:dir:) nodes='1 2 3' ;;
  start-node:dir:node | kill-node:dir:node) nodes=$4 ;;
  *)
    sed -n '3,8s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
D=$(absdir "$2")
BASE=${3:-29090} LIBS=${LIBS:-$STACK_CACHE/kafka/libs} HOST=127.0.0.1
ctl=$((BASE + 3))
# Any base64url ids do; fixed ones keep a restart simple.
cluster_id=4L6g3nShT-eMCtK--X86sw
dir_ids=(- JEXY6aqzQY-32P5TStzaFg MvDxzVmcRsaTz33bUuRU6A 07R5amHmR32VDA6jHkGbTA)
initial="1@$HOST:$((ctl + 1)):${dir_ids[1]},2@$HOST:$((ctl + 2)):${dir_ids[2]},3@$HOST:$((ctl + 3)):${dir_ids[3]}"

config() { # N
  local i=$1
  cat <<C
process.roles=broker,controller
node.id=$i
controller.quorum.bootstrap.servers=$HOST:$((ctl + 1)),$HOST:$((ctl + 2)),$HOST:$((ctl + 3))
listeners=PLAINTEXT://$HOST:$((BASE + i)),CONTROLLER://$HOST:$((ctl + i))
advertised.listeners=PLAINTEXT://$HOST:$((BASE + i)),CONTROLLER://$HOST:$((ctl + i))
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs=$D/n$i
offsets.topic.replication.factor=3
offsets.topic.num.partitions=6
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
transaction.state.log.num.partitions=6
default.replication.factor=3
min.insync.replicas=2
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
C
  [ -z "${CONF:-}" ] || cat "$CONF"
}

launch() { # N: formats on the first start, then starts in the background
  local i=$1
  ! is_ours "$D/n$i.pid" "$D/n$i.properties" || die "node $i already runs"
  free_port $((BASE + i)) $((ctl + i))
  config "$i" >"$D/n$i.properties"
  if [ ! -f "$D/n$i/meta.properties" ]; then
    "${java[@]}" -Xmx128m kafka.tools.StorageTool format -t $cluster_id --initial-controllers "$initial" \
      -c "$D/n$i.properties" >"$D/format$i.log" 2>&1 || die "format failed, see $D/format$i.log"
  fi
  : >"$D/n$i.log" # before the fork: the last run's "started" must not be read as this one's
  setsid "${java[@]}" "-Xmx${HEAP:-384m}" "${jvm[@]}" kafka.Kafka "$D/n$i.properties" >"$D/n$i.log" 2>&1 </dev/null &
  echo $! >"$D/n$i.pid"
}

started() {
  local i
  for i in $nodes; do grep -q 'Kafka Server started' "$D/n$i.log" || return 1; done
}

case $verb in
  start | start-node)
    ls "$LIBS"/kafka_2.13-*.jar >/dev/null 2>&1 || die "no broker jars in $LIBS: run kafka-fetch.sh"
    JAVA=$(find_java 17)
    java=("$JAVA" -XX:-UsePerfData -cp "$LIBS/*" "-Dlog4j2.configurationFile=$STACK_HERE/log4j2.properties")
    read -ra jvm <<<"$(jvm_options "$(archive_of "$LIBS" "$JAVA")" | tr '\n' ' ')"
    for i in $nodes; do launch "$i"; done
    wait_until 180 "node(s) $nodes" "$(cat "$D/n${nodes%% *}.pid")" started || {
      tail -3 "$D"/n?.log >&2
      exit 1
    }
    ;;
  kill-node)
    stop_pid "$D/n$nodes.pid" "$D/n$nodes.properties" 10 KILL
    wait_closed $((BASE + nodes)) $((ctl + nodes))
    ;;
  stop | wipe)
    [ -f "$D/n1.properties" ] || {
      rmdir "$D" 2>/dev/null && exit
      die "$D is not a cluster's folder"
    }
    # All at once: a lone survivor has no quorum to hand over to and would sit out its shutdown time-out.
    for i in $nodes; do
      if is_ours "$D/n$i.pid" "$D/n$i.properties"; then kill "$(cat "$D/n$i.pid")"; fi
    done
    for i in $nodes; do stop_pid "$D/n$i.pid" "$D/n$i.properties" 20; done
    [ "$verb" != wipe ] || rm -rf "$D"
    ;;
esac
