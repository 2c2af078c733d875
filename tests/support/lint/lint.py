#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks of the tree: lint.py format|tidy|shell --build DIR. Ends with 1 and one line per finding.

tidy runs clang-tidy over compile_commands.json and remembers each clean file by the SHA-256 of its preprocessed text,
the configuration and the tool's version, so that a second run costs what changed.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
C_FOLDERS = ("common", "services", "tools", "tests")
# Said on the command line: clang-tidy 20 forgets .clang-tidy's own filter in some working directories, and
# finds fault with what glibc's headers add under -O2.
TIDY_HEADERS = ("--header-filter=/(common|services|tools|tests)/", "--extra-arg=-O0")
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "payfact" / "tidy"


def tool(name):
    """Beside this Python first: the pinned versions are in its virtual environment."""
    beside = pathlib.Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        sys.exit(f"lint: needs '{name}': run scripts/test once, it installs tests/requirements.txt")
    return found


def tree_files(*suffixes):
    """Files of the tree: tracked ones, and new ones that nothing ignores."""
    command = ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True)
    if listed.returncode == 0:
        names = listed.stdout.splitlines()
    else:  # a source archive
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.relative_to(ROOT).parts[0] != "build"]
    return sorted(ROOT / n for n in names if n.endswith(suffixes) and (ROOT / n).is_file())


def check_format(_):
    files = [f for f in tree_files(".c", ".h") if f.relative_to(ROOT).parts[0] in C_FOLDERS]
    run = subprocess.run([tool("clang-format"), "--dry-run", "--Werror", *map(str, files)], cwd=ROOT)
    return len(files), run.returncode


def is_shell(path):
    with path.open("rb") as file:
        first = file.readline(80)
    return first.startswith((b"#!/bin/bash", b"#!/usr/bin/env bash", b"#!/bin/sh", b"# shellcheck shell="))


def check_shell(_):
    files = [f for f in tree_files("") if f.suffix in ("", ".sh") and is_shell(f)]
    run = subprocess.run([tool("shellcheck"), "-x", *(str(f.relative_to(ROOT)) for f in files)], cwd=ROOT)
    return len(files), run.returncode


def preprocessed(entry):
    """What the compiler sees, comments included (a NOLINT is one)."""
    words = shlex.split(entry["command"])
    while words and os.path.basename(words[0]) in ("ccache", "sccache"):
        words.pop(0)
    kept, skip = [], False
    for word in words:
        if skip or word in ("-c", "-MD", "-MMD"):
            skip = False
        elif word in ("-o", "-MF", "-MT", "-MQ"):
            skip = True
        else:
            kept.append(word)
    run = subprocess.run([*kept, "-E", "-C", "-o", "-"], cwd=entry["directory"], capture_output=True)
    return run.stdout if run.returncode == 0 else None


def tidy_one(entry, binary, salt, build):
    text = preprocessed(entry)
    mark = CACHE / hashlib.sha256(salt + text).hexdigest() if text is not None else None
    if mark and mark.exists():
        return "remembered", ""
    command = [binary, "--quiet", *TIDY_HEADERS, "-p", str(build), entry["file"]]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if run.returncode != 0:
        return "found", run.stdout + run.stderr
    if mark:
        mark.touch()
    return "clean", ""


def check_tidy(options):
    build = pathlib.Path(options.build)
    commands = build / "compile_commands.json"
    if not commands.exists():
        sys.exit(f"lint: no {commands}: configure with a preset, or -DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    entries = {}
    for entry in json.loads(commands.read_text()):
        path = pathlib.Path(entry["file"])
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in C_FOLDERS:
            entries[entry["file"]] = entry
    binary = tool("clang-tidy")
    version = subprocess.run([binary, "--version"], capture_output=True, check=True).stdout
    configurations = (f for f in (ROOT / ".clang-tidy", ROOT / "tests" / ".clang-tidy") if f.exists())
    salt = version + repr(TIDY_HEADERS).encode() + b"".join(f.read_bytes() for f in configurations)
    CACHE.mkdir(parents=True, exist_ok=True)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {pool.submit(tidy_one, e, binary, salt, build): e for e in entries.values()}
        for run in concurrent.futures.as_completed(runs):
            state, text = run.result()
            if state == "found":
                failed += 1
                print(runs[run]["file"], text, sep="\n", flush=True)
    return len(entries), 1 if failed else 0


def main():
    checks = {"format": check_format, "shell": check_shell, "tidy": check_tidy}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("check", choices=sorted(checks))
    parser.add_argument("--build", required=True)
    options = parser.parse_args()
    files, code = checks[options.check](options)
    print(f"{options.check}: {files} files, {'clean' if code == 0 else 'findings above'}")
    if files == 0:
        sys.exit("lint: nothing to check is not a success")
    sys.exit(1 if code else 0)


if __name__ == "__main__":
    main()
