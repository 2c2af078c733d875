#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each row of docs/FIELD_FAULTS.md that says "held" has a test that carries its id in its name, and each test that
docs/BAD_INPUT.md names, as `file::test`, is there.
usage: faults.py [ROOT]. Ends with 1 and one line per finding.
"""

import pathlib
import re
import sys

ROW = re.compile(r"^\| ([A-Z]\d+) \|.*\| (held|open: [^|]+?) \|$", re.M)
C_TEST = re.compile(r"^static void (\w+)\(void \*\*\w+\)", re.M)
C_ROW_TEST = re.compile(r"\b(?:cmocka_unit_test\w*|T|TEST)\((\w+)")
PYTHON_TEST = re.compile(r"^ *def (test_\w+)\(", re.M)


NAMED = re.compile(r"`(tests/[\w./-]+)::(\w+)`")


def names_in(path):
    if path.suffix == ".c":
        text = path.read_text(encoding="utf-8")
        return {*C_TEST.findall(text), *C_ROW_TEST.findall(text)}
    if path.suffix == ".py" and path.name.startswith("test_"):
        return set(PYTHON_TEST.findall(path.read_text(encoding="utf-8")))
    return set()


def test_names(root):
    return set().union(*(names_in(path) for path in (root / "tests").rglob("*")))


def check_named(root):
    """@return the number of tests named, and those that are not there."""
    named = NAMED.findall((root / "docs" / "BAD_INPUT.md").read_text(encoding="utf-8"))
    found = [
        f"docs/BAD_INPUT.md: {file}::{test}: no such test"
        for file, test in named
        if not (root / file).is_file() or test not in names_in(root / file)
    ]
    if not named:
        found.append("docs/BAD_INPUT.md: no test named: nothing to check is not a success")
    return len(named), found


def check_tree(root):
    """@return the number of rows, and every finding."""
    rows = ROW.findall((root / "docs" / "FIELD_FAULTS.md").read_text(encoding="utf-8"))
    words = {word.upper() for name in test_names(root) for word in name.split("_")}
    found = []
    for fault, state in rows:
        if state == "held" and fault not in words:
            found.append(f"docs/FIELD_FAULTS.md: {fault}: no test has it in its name")
        if state != "held" and fault in words:
            found.append(f"docs/FIELD_FAULTS.md: {fault}: a test has it in its name, but the row says '{state}'")
    if not rows:
        found.append("docs/FIELD_FAULTS.md: no row found: nothing to check is not a success")
    return len(rows), found


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    rows, found = check_tree(root)
    named, missing = check_named(root)
    found += missing
    print(*found, f"faults: {rows} rows, {named} named tests, {'findings above' if found else 'clean'}", sep="\n")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
