#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A PostgreSQL cluster of one's own, beside whatever the machine runs. Loopback and a unix socket in DIR, trust
# authentication: for tests only.
# usage: pg.sh start|stop|crash|wipe|check DIR [PORT]     start makes the cluster first; crash stops it without a
#   checkpoint and without asking anybody; wipe stops it and removes DIR
# DIR must be reachable for the user postgres when the caller is root ("check" says so); PORT: 25432.
# env: PG_CONF (lines for postgresql.conf), PG_BIN (the newest of /usr/lib/postgresql/*/bin)
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
usage() {
  sed -n '3,9s/^# \{0,1\}//p' "$0"
  exit 2
}
[ $# -ge 2 ] || usage
verb=$1 D=$2 PORT=${3:-25432}
BIN=${PG_BIN:-$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -1)}
[ -x "$BIN/initdb" ] || die "no PostgreSQL in $BIN: run apt-packages.sh --servers"

as_pg() {
  if [ "$(id -u)" = 0 ]; then
    (cd / && setpriv --reuid=postgres --regid=postgres --init-groups "$@")
  else
    "$@"
  fi
}
prepare_dir() {
  mkdir -p "$D"
  [ "$(id -u)" != 0 ] || chown postgres: "$D"
  as_pg test -w "$D" || die "the user postgres cannot reach $D: choose a folder whose parents it may enter"
}
case $verb in
  check) prepare_dir ;;
  start)
    prepare_dir
    if [ ! -f "$D/data/PG_VERSION" ]; then
      as_pg "$BIN/initdb" -D "$D/data" -U postgres -A trust -E UTF8 --locale=C --no-sync >"$D/initdb.log"
      cat >>"$D/data/postgresql.conf" <<C
listen_addresses = '127.0.0.1'
unix_socket_directories = '$D'
max_connections = 300
C
      [ -z "${PG_CONF:-}" ] || printf '%s\n' "$PG_CONF" >>"$D/data/postgresql.conf"
    fi
    as_pg "$BIN/pg_ctl" -D "$D/data" -l "$D/log" -o "-p $PORT" -w -s start
    ;;
  stop) as_pg "$BIN/pg_ctl" -D "$D/data" -m fast -w -s stop ;;
  crash) as_pg "$BIN/pg_ctl" -D "$D/data" -m immediate -w -s stop ;;
  wipe)
    [ -d "$D" ] || exit 0
    [ -d "$D/data" ] || {
      rmdir "$D" 2>/dev/null && exit
      die "$D is not a folder of pg.sh"
    }
    ! as_pg "$BIN/pg_ctl" -D "$D/data" status >/dev/null 2>&1 ||
      as_pg "$BIN/pg_ctl" -D "$D/data" -m immediate -w -s stop
    rm -rf "$D"
    ;;
  *) usage ;;
esac
