#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the distribution's packages that are missing. usage: apt-packages.sh [--servers] [--kafka] [--image] [--bench]
# Without options: what building, linting and the tests without servers need. --servers: PostgreSQL and Redis too.
# --kafka: Java and Maven too, where there is no Java 17 or no Maven yet. --image: what builds a container image.
# --bench: what scripts/bench measures against.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
want=(librdkafka-dev libhiredis-dev libpq-dev libavro-dev libcurl4-openssl-dev libssl-dev libcmocka-dev
  libmicrohttpd-dev libjansson-dev gcc libc6-dev make cmake ninja-build pkg-config curl openssl ca-certificates
  git python3 python3-venv shellcheck util-linux)
kafka=0
for option in "$@"; do
  case $option in
    --servers) want+=(postgresql redis-server) ;;
    --kafka) kafka=1 ;;
    --image) want+=(buildah) ;;
    --bench) want+=(nginx-light) ;;
    *)
      sed -n '3,6s/^# \{0,1\}//p' "$0"
      exit 2
      ;;
  esac
done
if [ "$kafka" = 1 ]; then
  (find_java 17) >/dev/null 2>&1 || want+=(openjdk-17-jre-headless)
  command -v mvn >/dev/null || want+=(maven)
fi
missing=()
for p in "${want[@]}"; do
  dpkg-query -W -f='${db:Status-Abbrev}' "$p" 2>/dev/null | grep -q '^ii' || missing+=("$p")
done
[ ${#missing[@]} -gt 0 ] || exit 0
root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || die "missing packages, and neither root nor sudo: ${missing[*]}"
  root=(sudo)
fi
say "installing ${missing[*]}"
"${root[@]}" apt-get update -qq
# A distribution server that a package brings along must not start: the tests run their own on other ports.
policy=/usr/sbin/policy-rc.d
made=''
if [ ! -e $policy ]; then
  printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee $policy >/dev/null
  "${root[@]}" chmod 755 $policy
  made=1
fi
trap '[ -z "$made" ] || "${root[@]}" rm -f $policy' EXIT
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
