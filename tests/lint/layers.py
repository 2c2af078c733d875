#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every #include of the tree against the tables of ARCHITECTURE.md. usage: layers.py [ROOT]

Ends with 1 and one line per breach. The rules are in ARCHITECTURE.md, section Layers.
"""

import fnmatch
import pathlib
import re
import sys
from dataclasses import dataclass, field

PRODUCT = ("common", "services", "tools")
WITH_BANNED = ("common", "services")
BANNED = "common/base/banned.h"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)
ANY_INCLUDE = re.compile(r"^[ \t]*#[ \t]*(include(?:_next)?)\b(.*)$", re.M)
WORDS = re.compile(r"`([^`]+)`")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


@dataclass
class Row:
    folder: str
    used_by: list
    may_not: str
    libraries: list
    uses: set = field(default_factory=set)


class Tables:
    """The two tables, and whether they make sense by themselves."""

    def __init__(self, text):
        self.wrong = []
        self.rows = {}
        for cells in table(text, "layers"):
            if len(cells) != 5 or len(WORDS.findall(cells[0])) != 1:
                self.wrong.append(f"ARCHITECTURE.md: not a row of five cells: {cells}")
                continue
            folder = WORDS.findall(cells[0])[0]
            if folder in self.rows:
                self.wrong.append(f"ARCHITECTURE.md: '{folder}' has two rows")
            used_by = ["*"] if cells[2] == "everything" else WORDS.findall(cells[2])
            if not used_by and cells[2] != "nothing":
                self.wrong.append(f"ARCHITECTURE.md: '{folder}' may be used by '{cells[2]}'?")
            self.rows[folder] = Row(folder, used_by, cells[3], WORDS.findall(cells[4]))
        self.pure = {}
        for cells in table(text, "pure"):
            self.pure[WORDS.findall(cells[0])[0]] = (set(WORDS.findall(cells[1])), set(WORDS.findall(cells[2])))
        if not self.rows or not self.pure:
            self.wrong.append("ARCHITECTURE.md: a table is missing, and no table allows everything")
        self.compare_columns()
        self.find_cycle()
        self.one_folder_per_library()

    def matching(self, pattern):
        found = {f for f in self.rows if fnmatch.fnmatchcase(f, pattern)}
        if not found:
            self.wrong.append(f"ARCHITECTURE.md: '{pattern}' names no folder of the table")
        return found

    def compare_columns(self):
        """Column three gives who uses whom, column four the same from the other side."""
        for row in self.rows.values():
            for pattern in row.used_by:
                for user in self.matching(pattern) - {row.folder}:
                    self.rows[user].uses.add(row.folder)
        for row in self.rows.values():
            named = set().union(set(), *(self.matching(p) for p in WORDS.findall(row.may_not)))
            if row.may_not == "everything":
                allowed = set()
            elif row.may_not.startswith("all but "):
                allowed = named
            else:
                # What a row does not forbid it may use, if the other column says so as well.
                allowed = row.uses
                named -= {row.folder}
                for wrong in sorted(named & row.uses):
                    self.wrong.append(f"ARCHITECTURE.md: '{row.folder}' may not use '{wrong}', which lists it")
                others = set(self.rows) - named - row.uses - {row.folder}
                for wrong in sorted(others):
                    self.wrong.append(f"ARCHITECTURE.md: neither '{row.folder}' nor '{wrong}' says if it may use it")
            for wrong in sorted(allowed ^ row.uses):
                self.wrong.append(f"ARCHITECTURE.md: the columns differ on '{row.folder}' using '{wrong}'")

    def find_cycle(self):
        done = set()
        while True:
            ready = {f for f, row in self.rows.items() if f not in done and row.uses <= done}
            if not ready:
                break
            done |= ready
        if done != set(self.rows):
            self.wrong.append(f"ARCHITECTURE.md: a cycle among {sorted(set(self.rows) - done)}")

    def one_folder_per_library(self):
        seen = {}
        for row in self.rows.values():
            for library in row.libraries if row.folder.startswith("common/") else []:
                if library in seen:
                    self.wrong.append(f"ARCHITECTURE.md: '{library}' belongs to '{seen[library]}' and '{row.folder}'")
                seen[library] = row.folder

    def folder_of(self, path):
        """The row that a file belongs to: the nearest folder above it that has one."""
        for parent in pathlib.PurePosixPath(path).parents:
            if str(parent) in self.rows:
                return str(parent)
        return None


def table(text, name):
    match = re.search(rf"<!-- {name}:.*?-->\n(.*?)<!-- end of {name} -->", text, re.S)
    lines = match.group(1).strip().splitlines() if match else []
    return [[c.strip() for c in line.strip().strip("|").split("|")] for line in lines[2:]]


def is_library(header, libraries):
    return any(fnmatch.fnmatchcase(header, p) for p in libraries)


class File:
    def __init__(self, root, path):
        self.root = root
        self.path = path
        self.text = COMMENT.sub("", (root / path).read_text(encoding="utf-8", errors="replace"))
        self.includes = INCLUDE.findall(self.text)
        self.wrong = []

    def say(self, text):
        self.wrong.append(f"{self.path}: {text}")

    def local(self):
        return [name for mark, name in self.includes if mark == '"']

    def system(self):
        return [name for mark, name in self.includes if mark == "<"]

    def check(self, tables):
        folder = tables.folder_of(self.path)
        if folder is None:
            self.say("its folder has no row in ARCHITECTURE.md")
            return
        if len(ANY_INCLUDE.findall(self.text)) != len(self.includes):
            self.say("has an include that cannot be read (a macro, or include_next)")
        self.check_folders(tables, folder)
        self.check_libraries(tables, folder)
        self.check_pure(tables, folder)
        if self.path.endswith(".c") and self.path.split("/")[0] in WITH_BANNED:
            self.check_order()

    def check_folders(self, tables, folder):
        for name in self.local():
            if not (self.root / name).is_file():
                self.say(f'includes "{name}", which is not a path from the root')
                continue
            used = tables.folder_of(name)
            base = name.rsplit("/", 1)[-1]
            if used is None:
                self.say(f'includes "{name}", whose folder has no row in ARCHITECTURE.md')
            elif used != folder and used not in tables.rows[folder].uses:
                self.say(f"'{folder}' may not use '{used}' (\"{name}\")")
            elif used != folder and (base == "internal.h" or base.endswith("_internal.h")):
                self.say(f'includes "{name}", which is internal to \'{used}\'')

    def check_libraries(self, tables, folder):
        foreign = [p for row in tables.rows.values() for p in row.libraries]
        for name in self.system():
            if is_library(name, foreign) and not is_library(name, tables.rows[folder].libraries):
                self.say(f"'{folder}' may not include <{name}>")
            if (self.root / name).is_file():
                self.say(f"includes <{name}> of this repository in angle brackets")

    def check_pure(self, tables, folder):
        if folder not in tables.pure:
            return
        c_headers, base_headers = tables.pure[folder]
        for name in self.system():
            if name not in c_headers:
                self.say(f"'{folder}' is pure and may not include <{name}>")
        for name in self.local():
            if name.startswith("common/base/") and name[len("common/base/"):] not in base_headers:
                self.say(f"'{folder}' is pure and may not include \"{name}\"")

    def check_order(self):
        if not self.includes:
            self.say(f'does not include "{BANNED}"')
            return
        own = self.path[:-2] + ".h"
        first = self.includes[0]
        if (self.root / own).is_file():
            if first != ('"', own):
                self.say(f'does not include its own header "{own}" first')
        elif first[0] != '"' or first[1].rsplit("/", 1)[0] != self.path.rsplit("/", 1)[0]:
            self.say("does not include a header of its folder first")
        if self.includes[-1] != ('"', BANNED):
            self.say(f'does not include "{BANNED}" last')


def check_tree(root):
    """@return the number of files read, and every breach."""
    description = root / "ARCHITECTURE.md"
    if not description.is_file():
        return 0, ["there is no ARCHITECTURE.md"]
    tables = Tables(description.read_text(encoding="utf-8"))
    wrong = list(tables.wrong)
    files = sorted(p for top in PRODUCT for p in (root / top).rglob("*.[ch]") if p.is_file())
    for path in files:
        file = File(root, path.relative_to(root).as_posix())
        file.check(tables)
        wrong += file.wrong
    if not files:
        wrong.append("no source file found: nothing to check is not a success")
    return len(files), wrong


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    count, wrong = check_tree(root)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"layers: {count} files, {len(wrong)} breaches")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
