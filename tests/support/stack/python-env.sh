#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the virtual environment of tests/requirements.txt in the cache, once, and prints its python. usage: python-env.sh
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# Named by the digest of the requirements: another checkout with others never takes a running one's away.
wanted=$STACK_HERE/../../requirements.txt
venv=$STACK_CACHE/venv-$(sha256sum "$wanted" | cut -c1-12)
python=$venv/bin/python3
exec 9>"$STACK_CACHE/.lock"
flock 9 # two runs at once: the second one waits and finds the first one's
if [ ! -f "$venv/.complete" ] || [ ! -x "$python" ]; then
  say "installing the Python packages of tests/requirements.txt (once)"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q --disable-pip-version-check -r "$wanted" >&2
  touch "$venv/.complete"
fi
echo "$python"
