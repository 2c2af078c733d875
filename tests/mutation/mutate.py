#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutants of the money core: each must make its test fail, or be explained below.

    tests/mutation/mutate.py BUILD_DIR [--target NAME]

Every comparison, connective, sign and constant of a target, and every cell of its tables, is changed alone; the
target's file is compiled, linked with the objects that BUILD_DIR has already built, and its test is run. Nothing in the
source tree is written. Prints the survivors and exits 1 when one is not explained.
"""

import argparse
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

TARGETS = {
    "amounts": ("common/core/amounts.c", "test_unit_core_amounts"),
    "money_table": ("common/core/money_table.c", "test_unit_core_money_table"),
    "dispute_table": ("common/core/dispute_table.c", "test_unit_core_dispute"),
}

# Mutants that are the same program, by target: the line, and what is in it after the change.
EQUIVALENT = {
    "amounts": [
        # Equal: either branch gives the same number.
        ("a->authorized = a->authorized > used ? a->authorized : used;", ">= used"),
        ("return held > a->withdrawn ? held - a->withdrawn : 0;", ">= a->withdrawn"),
    ],
    "money_table": [],
    "dispute_table": [
        # One past the table: the test asks there, but what stands behind it happens to say the same. The asan build
        # stops at the read.
        ('return (size_t)event < PAY_DE_COUNT ? event_names[event] : "?";', "<= PAY_DE_COUNT"),
        ("if ((size_t)type >= PAY_EV_COUNT || columns[type] == 0) {", "> PAY_EV_COUNT"),
    ],
}

SWAPS = [
    (r"(?<![<>=!-])>=(?!=)", ">"),
    (r"(?<![<>=!-])>(?![>=])", ">="),
    (r"(?<![<>=!])<=(?!=)", "<"),
    (r"(?<![<>=!])<(?![<=])", "<="),
    (r"==", "!="),
    (r"!=", "=="),
    (r"&&", "||"),
    (r"\|\|", "&&"),
    (r"(?<=\w) \+ (?=\w)", " - "),
    (r"(?<=\w) - (?=\w)", " + "),
    (r"pay_money_add\(", "pay_money_sub("),
    (r"pay_money_sub\(", "pay_money_add("),
    (r"\bTO\((\w+)\)", "IGN"),
    (r"\bIGN\b(?!_IF)(?=[,}\s])", "REJ"),
    (r"\bREJ\b(?=[,}\s])", "IGN"),
    (r"\bREC\b(?=[,}\s])", "IGN"),
    (r"\bFUNDS\b(?=[,}\s])", "IGN"),
    (r"\bTO_IF\((\w+), (\w+)\)", r"TO(\1)"),
    (r"\bIGN_IF\((\w+)\)", "IGN"),
    (r"\bNOTE\((\w+)\)", "IGN"),
    (r"PAY_EVIDENCE_SYNC_RESPONSE", "PAY_EVIDENCE_LOCAL"),
    (r"PAY_EVIDENCE_WEBHOOK", "PAY_EVIDENCE_SYNC_RESPONSE"),
    (r"PAY_EVIDENCE_QUERY", "PAY_EVIDENCE_WEBHOOK"),
    (r"PAY_EVIDENCE_CONTROLLED", "PAY_EVIDENCE_QUERY"),
    (r"\bTO\(SUCCEEDED\)", "TO(PROCESSING)"),
    (r"\bTO\(WON\)", "TO(LOST)"),
    (r"\bTO\(LOST\)", "TO(CLOSED)"),
]


def mutants(text):
    """(line number, before, after, whole text) of each change."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        code = line.split("/*")[0]
        if line.lstrip().startswith(("#", "*", "/*", "//")) or "PAY_ASSERT" in line:
            continue
        for pattern, replacement in SWAPS:
            for match in re.finditer(pattern, code):
                changed = line[: match.start()] + match.expand(replacement) + line[match.end() :]
                whole = lines[:number] + [changed] + lines[number + 1 :]
                yield number + 1, line.strip(), changed.strip(), "\n".join(whole)


def command_of(build, path):
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["file"] == str(ROOT / path) and "pay_core.dir" in entry["command"]:
            return shlex.split(entry["command"]), entry["directory"]
    sys.exit(f"'{path}' is not in compile_commands.json of '{build}'")


def compile_mutant(command, directory, source, target):
    words = [word for word in command if not word.endswith("ccache")]
    words[words.index("-o") + 1] = str(target)
    words[words.index("-c") + 1] = str(source)
    for flag in ("-MF", "-MT"):
        if flag in words:
            words[words.index(flag) + 1] = str(target) + flag
    words = [word for word in words if word != "-Werror"]
    return subprocess.run(words, cwd=directory, capture_output=True, check=False).returncode == 0


def link(build, name, mutant, output):
    """The test with the mutant before the library that has the original."""
    words = subprocess.run(
        ["ninja", "-C", str(build), "-t", "commands", "-s", f"tests/{name}"], capture_output=True, text=True, check=True
    ).stdout.strip().splitlines()[-1]
    words = shlex.split(words.split(" && ")[1] if " && " in words else words)
    words[words.index("-o") + 1] = str(output)
    words.insert(words.index("-o"), str(mutant))
    return subprocess.run(words, cwd=build, capture_output=True, check=False).returncode == 0


def survives(build, name, target, text, folder):
    path, test = TARGETS[name]
    source, binary = folder / pathlib.Path(path).name, folder / "test"
    source.write_text(text)
    command, directory = command_of(build, path)
    if not compile_mutant(command, directory, source, target):
        return None
    if not link(build, test, target, binary):
        sys.exit(f"'{test}' does not link with a mutant of '{path}'")
    try:
        return subprocess.run([str(binary)], capture_output=True, timeout=60, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def run(build, name):
    path, _ = TARGETS[name]
    text = (ROOT / path).read_text()
    killed = explained = unbuilt = 0
    survivors = []
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        if survives(build, name, folder / "m.o", text, folder) is not True:
            sys.exit(f"the test of '{name}' fails without a mutant")
        for number, before, after, changed in mutants(text):
            result = survives(build, name, folder / "m.o", changed, folder)
            if result is None:
                unbuilt += 1
            elif not result:
                killed += 1
            elif any(line == before and part in after for line, part in EQUIVALENT[name]):
                explained += 1
            else:
                survivors.append(f"{path}:{number}: {before}  =>  {after}")
    print(f"{name}: {killed} killed, {explained} equivalent, {len(survivors)} survived, {unbuilt} do not compile")
    for survivor in survivors:
        print("  survived", survivor)
    return not survivors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--target", choices=sorted(TARGETS))
    args = parser.parse_args()
    names = [args.target] if args.target else sorted(TARGETS)
    return 0 if all([run(args.build.resolve(), name) for name in names]) else 1


if __name__ == "__main__":
    sys.exit(main())
