# SPDX-License-Identifier: Apache-2.0
"""Runs the benches that scripts/bench was asked for, prints their figures and keeps them in build/bench."""

import argparse
import importlib
import os
import pathlib
import time

import figures
import machine
from ground import POSTGRES_BIN
from payfact_stack import build_dir

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECTIONS = ("processor", "publisher", "ingest", "e2e")
KEPT = ROOT / "build" / "bench"


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/bench")
    parser.add_argument("section", choices=(*SECTIONS, "all"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


def run(section, asked, versions):
    report = figures.Report(section, asked.rounds, asked.scale)
    started = time.monotonic()
    importlib.import_module(section).measure(report, asked.rounds, asked.scale)
    report.save(KEPT, versions)
    print(f"\n## {section} ({time.monotonic() - started:.0f} s)\n\n{report.load_line()}\n", *report.lines(), sep="\n", flush=True)


def main():
    asked = arguments()
    versions = machine.versions(ROOT, POSTGRES_BIN, build_dir())
    for name, value in versions.items():
        print(f"{name}: {value}")
    sections = SECTIONS if asked.section == "all" else (asked.section,)
    for section in sections:
        run(section, asked, versions)
    if asked.write:
        figures.write_document(ROOT / "docs" / "PERFORMANCE.md", KEPT, sections)


if __name__ == "__main__":
    os.umask(0o022)
    main()
