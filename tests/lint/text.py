#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What no text of the tree may hold: open ends, tabs in C, paths of one machine, sources without a licence line, merge
marks. usage: text.py [ROOT]. Ends with 1 and one line per finding.
"""

import pathlib
import re
import subprocess
import sys

SPDX = "SPDX-License-" + "Identifier: Apache-2.0"
SOURCE_SUFFIXES = (".c", ".h", ".py", ".sh", ".sql")
# Recorded by others, byte for byte: what stands in them is not ours to change.
RECORDED = ("tests/vectors/", "tests/samples/", "tests/fuzz/corpus/", "LICENSE")
# The words are put together here, so that this file does not find itself.
RULES = (
    # The three letters are also a currency of ISO 4217: an open end begins a comment or stands before a colon.
    (re.compile(r"\b(TO" r"DO|FIX" r"ME)\b|(/\*|//|#)\s*X" r"XX\b|\bX" r"XX:"), "an open end: do it, or file it"),
    (re.compile(r"(?<![\w.$}~/-])/(wo" r"rk|ro" r"ot|ho" r"me)/"), "a path of one machine"),
    (re.compile(r"^(<{7} |>{7} |={7}$)"), "a mark of a merge"),
)


def tree_files(root):
    """Files that are tracked or could be: what git ignores is nobody's text."""
    command = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = listed.stdout.splitlines()
    else:  # a source archive
        names = [p.relative_to(root).as_posix() for p in root.rglob("*")]
        names = [n for n in names if n.split("/")[0] not in ("build", ".git") and "__pycache__" not in n]
    return sorted(n for n in set(names) if (root / n).is_file() and not (root / n).is_symlink())


def check_file(name, data):
    """Every finding of one file, as lines."""
    if b"\0" in data or name.startswith(RECORDED):
        return []
    found = []
    lines = data.decode("utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        found += [f"{name}:{number}: {says}" for rule, says in RULES if rule.search(line)]
        if "\t" in line and name.endswith((".c", ".h")):
            found.append(f"{name}:{number}: a tab")
    is_script = bool(lines) and lines[0].startswith("#!")
    if (name.endswith(SOURCE_SUFFIXES) or is_script) and not any(SPDX in line for line in lines[:3]):
        found.append(f"{name}:1: no line '{SPDX}' among the first three")
    if data and not data.endswith(b"\n"):
        found.append(f"{name}:{len(lines)}: no newline at the end")
    return found


def check_tree(root):
    names = tree_files(root)
    found = [line for name in names for line in check_file(name, (root / name).read_bytes())]
    if not names:
        found.append("no file found: nothing to check is not a success")
    return len(names), found


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    count, found = check_tree(root)
    print(*found, sep="\n", end="\n" if found else "")
    print(f"text: {count} files, {len(found)} findings")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
