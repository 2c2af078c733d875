#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that nothing uses: a .c that no target compiles, a header that nothing includes.
usage: dead.py COMPILE_COMMANDS_JSON [ROOT]. Ends with 1 and one line per finding.
"""

import json
import pathlib
import re
import sys

FOLDERS = ("common", "services", "tools", "tests")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.M)


def check_tree(root, compiled):
    """compiled: paths from the root. @return the number of files, and every finding."""
    found = []
    included = set()
    files = sorted(p for top in FOLDERS for p in (root / top).rglob("*.[ch]") if p.is_file())
    for path in files:
        for name in INCLUDE.findall(path.read_text(encoding="utf-8", errors="replace")):
            beside = path.parent / name  # Tests may also include what lies beside them.
            included.add(beside.relative_to(root).as_posix() if beside.is_file() else name)
    for path in files:
        name = path.relative_to(root).as_posix()
        if path.suffix == ".c" and name not in compiled and name not in included:
            found.append(f"{name}: no target compiles it")
        if path.suffix == ".h" and name not in included:
            found.append(f"{name}: nothing includes it")
    if not files or not compiled:
        found.append("no file found: nothing to check is not a success")
    return len(files), found


def main():
    commands = pathlib.Path(sys.argv[1])
    root = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else pathlib.Path(__file__).resolve().parents[2]
    if not commands.exists():
        sys.exit(f"dead: no {commands}: configure with a preset, or -DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    compiled = set()
    for entry in json.loads(commands.read_text(encoding="utf-8")):
        path = pathlib.Path(entry["directory"], entry["file"])
        if path.is_relative_to(root):
            compiled.add(path.relative_to(root).as_posix())
    count, found = check_tree(root, compiled)
    print(*found, sep="\n", end="\n" if found else "")
    print(f"dead: {count} files, {len(found)} findings")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
