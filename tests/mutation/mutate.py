#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutants of decide(), orchestrate() and all of common/core: each must make a test fail, or be explained in survivors.txt.

    tests/mutation/mutate.py BUILD_DIR [FILE ...] [--sample N] [--last] [--list] [--steps unit,sanitized,properties]

FILE      names below common/core without ".c"; none: all
--sample  N mutants of these, the same ones for the same sources, for the unit tests alone
--last    only those that survived the last run (after tests were added)
--list    print what survived so far as survivors.txt wants it
--steps   who is asked; all of them by default

Every mutant is compiled alone; the core is a shared library here, so that the tests are linked once. For the unit tests tcc
compiles it, where there is one (apt-get install tcc) and what it makes of the file passes them: ten times as fast. The unit tests of the
core are asked first, whichever killed most before the others. Who survives them meets them again under ASan and UBSan,
then the properties: random walks, permutations, the explorers. Nothing in the source tree is written. Ends with 1 when a
survivor has no explanation, or an explanation no survivor. "killed by <step>" is the explanation of what outlives the unit
tests only: it must die in that step.
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import random
import resource
import shlex
import shutil
import subprocess
import sys
import time

from mutants import mutants_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORE = ROOT / "common" / "core"
EXPLAINED = pathlib.Path(__file__).with_name("survivors.txt")

# A step of the ladder: flags of the core, the library it stands for, what is run, how long it may compute.
UNIT = "test_unit_core_"
STEPS = {
    "unit": {"flags": ["-O0"], "core": "pay_core", "limit_s": 10},
    "sanitized": {"flags": ["-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"], "core": "pay_core", "limit_s": 20},
    "properties": {"flags": ["-O2"], "core": "pay_core_switchable", "limit_s": 60},
}
PROPERTIES = {  # target -> arguments
    "test_unit_core_guard": [],
    "test_property_core_walk": [],
    "test_property_permutations": [],
    "test_property_permutations_methods": [],
    "explorer": ["--walks=500", "--depth=150", "--seed=1"],
    "explorer-money": ["--bound=small"],
}
LATER = "killed by "
DOC = "payfact-state-machine-doc"  # prints every table; its page is in the repository
BAD = (b"VIOLATED", b"INCOMPLETE")


class Commands:
    """compile_commands.json: how a file is compiled for a target."""

    def __init__(self, build):
        self.build, self.by_target = build, collections.defaultdict(dict)
        for entry in json.loads((build / "compile_commands.json").read_text()):
            words = shlex.split(entry["command"])
            output = words[words.index("-o") + 1]
            target = next(part[:-4] for part in pathlib.Path(output).parts if part.endswith(".dir"))
            self.by_target[target][entry["file"]] = words

    def ccache(self):
        return [found] if (found := shutil.which("ccache")) else []

    def compile(self, target, source, output, flags, text_of=None):
        words = [w for w in self.by_target[target][str(source)] if not w.endswith("ccache") and w not in ("-Werror", "-g")]
        words = [w for w in words if not w.startswith(("-O", "-fsanitize", "-fno-omit", "-W", "-fPIE", "--coverage", "-fprofile"))]
        words[words.index("-o") + 1] = str(output)
        words[words.index("-c") + 1] = str(text_of or source)
        for flag in ("-MF", "-MT"):
            if flag in words:
                words[words.index(flag) + 1] = str(output) + flag
        return [*words, "-w", "-fPIC", "-ftrivial-auto-var-init=zero", *flags, f"-I{source.parent}"]


class Step:
    """The core as a shared library and the tests linked to it, kept in a folder of the build tree."""

    def __init__(self, name, commands, folder, many=True):
        """many: it is worth while to try what is quick."""
        self.name, self.commands, self.folder, self.many = name, commands, folder / name, many
        self.flags, self.core, self.limit_s = (STEPS[name][key] for key in ("flags", "core", "limit_s"))
        self.link_flags = [f for f in self.flags if f.startswith("-fsanitize")]
        self.kills, self.quick = collections.Counter(), {}
        self.folder.mkdir(parents=True, exist_ok=True)
        self.tests = PROPERTIES if name == "properties" else {
            **{t: [] for t in commands.by_target if t.startswith(UNIT) and t != UNIT + "guard"},
            DOC: ["--check", str(ROOT / "docs" / "STATE_MACHINE.md")],
        }  # fmt: skip
        self.objects = {}
        for source in commands.by_target[self.core]:
            self.objects[source] = self._object(self.core, source)
        self.base = [self._object("pay_base", source) for source in commands.by_target["pay_base"]]
        self.library = self.folder / "libcore.so"
        self.link_core(self.objects)
        for test in self.tests:
            self._link_test(test)

    def _object(self, target, source):
        source = pathlib.Path(source)
        output = self.folder / f"{target}-{source.stem}.o"
        newest = max(p.stat().st_mtime for p in (source, *HEADERS))
        if not output.exists() or output.stat().st_mtime < newest:
            subprocess.run([*self.commands.ccache(), *self.commands.compile(target, source, output, self.flags)],
                           cwd=self.commands.build, check=True)  # fmt: skip
        return output

    def _link_test(self, test):
        objects = [self._object(test, source) for source in self.commands.by_target[test] if "/common/base/" not in source]
        binary = self.folder / test
        if not binary.exists() or binary.stat().st_mtime < max(o.stat().st_mtime for o in objects):
            subprocess.run(["cc", *self.link_flags, *map(str, objects), "-o", str(binary), f"-L{self.folder}", "-lcore", "-lcmocka",
                            f"-Wl,-rpath,{self.folder}"], check=True)  # fmt: skip

    def link_core(self, objects):
        subprocess.run(["cc", "-shared", *self.link_flags, *map(str, objects.values()), *map(str, self.base), "-o", str(self.library)],
                       check=True)  # fmt: skip

    def _quick(self, source, text):
        """A library with the mutant alone, to stand before the core's; None when tcc cannot compile it."""
        words = self.commands.by_target[self.core][str(source)]
        mutant, output = self.folder / f"quick-{source.name}", self.folder / "quick.so"
        mutant.write_text(text)
        run = subprocess.run(["tcc", "-shared", "-w", "-include", str(self._shim()), *(w for w in words if w.startswith(("-D", "-I"))),
                              f"-I{source.parent}", str(mutant), "-o", str(output)], capture_output=True, check=False)  # fmt: skip
        return output if run.returncode == 0 else None

    def _shim(self):
        """What tcc does not know."""
        shim = self.folder / "shim.h"
        if not shim.exists():
            shim.write_text("#define _Static_assert(...)\n")
        return shim

    def _may_be_quick(self, source):
        """tcc is there, and the file as it is passes every test when it has compiled it."""
        if source not in self.quick:
            made = self._quick(source, source.read_text()) if self.name == "unit" and self.many and shutil.which("tcc") else None
            self.quick[source] = made is not None and all(self.passes(test, made) for test in self.tests)
        return self.quick[source]

    def killer(self, source, text):
        """The test that fails with this text of that file; "" when none does, None when it does not compile."""
        if self._may_be_quick(source):
            made = self._quick(source, text)
            return None if made is None else self._killer(source, made)
        mutant, output = self.folder / f"mutant-{source.name}", self.folder / "mutant.o"
        mutant.write_text(text)
        words = self.commands.compile(self.core, source, output, self.flags, mutant)
        if subprocess.run(words, cwd=self.commands.build, capture_output=True, check=False).returncode != 0:
            return None
        self.link_core({**self.objects, str(source): output})
        found = self._killer(source)
        self.link_core(self.objects)
        return found

    def _killer(self, source, preload=None):
        for test in sorted(self.tests, key=lambda t: (-self.kills[source.name, t], -self.kills[t], list(self.tests).index(t))):
            if not self.passes(test, preload):
                self.kills[source.name, test] += 1
                self.kills[test] += 1
                return test
        return ""

    def passes(self, test, preload=None):
        env = {**os.environ, "LD_PRELOAD": str(preload)} if preload else None
        try:
            run = subprocess.run([self.folder / test, *self.tests[test]], capture_output=True, timeout=WAIT_LIMITS * self.limit_s,
                                 check=False, cwd=self.commands.build, env=env, preexec_fn=lambda: small(self.limit_s))  # fmt: skip
        except subprocess.TimeoutExpired:
            return False
        return run.returncode == 0 and not any(word in run.stdout for word in BAD)


WAIT_LIMITS = 60  # A machine that is busy with other things is no test that hangs: what is limited is the test's own time.


def small(limit_s):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 1))


HEADERS = [p for folder in ("common/core", "common/base", "tests/unit/core", "tests/property") for p in (ROOT / folder).rglob("*.h")]


class Ladder:
    """The steps, each made when the first mutant comes to it."""

    def __init__(self, build, names=tuple(STEPS), many=True):
        self.commands, self.names, self.steps, self.many = Commands(build), names, {}, many
        self.folder = build / os.environ.get("PAY_MUTATION_PLACE", "mutation")

    def step(self, name):
        if name not in self.steps:
            step = self.steps[name] = Step(name, self.commands, self.folder, self.many)
            failing = [test for test in step.tests if not step.passes(test)]
            if failing:
                sys.exit(f"without a mutant already, these fail in the step '{name}': {failing}")
        return self.steps[name]

    def killer(self, source, text):
        for name in self.names:
            found = self.step(name).killer(source, text)
            if found != "":
                return found and f"{name}: {found}"
        return ""


def explanations():
    """{(file, before, after): [reason, ...]} of survivors.txt: a line with the file's name, pairs of - and + lines, a reason. A pair
    that stands there twice is of two lines that are alike, in the order of the file."""
    found, file, before, pairs, reason = collections.defaultdict(list), None, None, [], []

    def close():
        for pair in pairs:
            found[(file, *pair)].append(" ".join(reason))
        if pairs and not reason:
            sys.exit(f"{EXPLAINED.name}: no reason for {file}: {pairs[0]}")

    for line in (EXPLAINED.read_text() if EXPLAINED.exists() else "").splitlines():
        if line.startswith("#"):
            continue
        if not line.strip():
            close()
            pairs, reason = [], []
        elif line.startswith("- "):
            before = line[2:]
        elif line.startswith("+ "):
            pairs.append((before, line[2:]))
        elif line.startswith("= "):
            reason.append(line[2:])
        else:
            file = line
    close()
    return dict(found)


class Run:
    def __init__(self, build, ladder):
        self.ladder, self.explained = ladder, explanations()
        self.survivors, self.by = [], collections.Counter()
        self.met = collections.Counter()  # how many explanations of a key have a survivor
        self.record = ladder.folder / "survived.json"

    def judge(self, source, mutant):
        number, before, after, text = mutant
        killer = self.ladder.killer(source, text)
        key = (source.name, before, after)
        step = killer and killer.split(":")[0]
        reason = "".join(self.explained.get(key, [])[self.met[key] :][:1])  # of the next one alike
        later = reason[len(LATER) :].split(":")[0] if reason.startswith(LATER) else ""
        if killer is None:
            self.by["does not compile"] += 1
        elif killer and (step == self.ladder.names[0] or step == later):
            self.by[step] += 1
            self.met[key] += 1 if step == later else 0
        elif killer or not reason or (later and later in self.ladder.names):
            self.by["survived the unit tests" if killer else "survived"] += 1
            self.survivors.append([source.name, number, before, after, killer])
            print(f"survived{f' until {killer}' if killer else ''}: {source.relative_to(ROOT)}:{number}: {before}  =>  {after}", flush=True)
            self.record.write_text(json.dumps(self.survivors))
        else:
            self.met[key] += 1
            self.by["explained"] += 1

    def said(self):
        return ", ".join(f"{count} {'killed by ' + name if name in STEPS else name}" for name, count in sorted(self.by.items()))


def stale(explained, everything):
    """Explanations of what is not even a mutant any more."""
    return [key for key in explained if key not in everything]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--last", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--steps", default=",".join(STEPS), type=lambda text: text.split(","))
    options = parser.parse_args()
    build = options.build.resolve()
    os.environ["ASAN_OPTIONS"] = "detect_leaks=0"
    record = build / "mutation" / "survived.json"
    last = json.loads(record.read_text()) if record.exists() else []
    if options.list:
        print("\n".join(f"{f}\n- {before}\n+ {after}\n= {LATER + killer if killer else ''}\n" for f, _, before, after, killer in last))
        return 0
    sources = sorted(CORE.glob("*.c"))
    unknown = set(options.files) - {s.stem for s in sources}
    if unknown:
        parser.error(f"no such file in common/core: {sorted(unknown)}")
    everything = [(s, m) for s in sources for m in mutants_of(s.read_text())]
    keys = {(s.name, m[1], m[2]) for s, m in everything}
    chosen = [(s, m) for s, m in everything if not options.files or s.stem in options.files]
    if options.last:
        wanted = {(row[0], row[2], row[3]) for row in last}
        chosen = [(s, m) for s, m in chosen if (s.name, m[1], m[2]) in wanted]
    if options.sample:
        options.steps = ["unit"]
        seed = hashlib.sha256(b"".join(s.read_bytes() for s in sources)).hexdigest()
        chosen = random.Random(seed).sample(chosen, min(options.sample, len(chosen)))
    run = Run(build, Ladder(build, options.steps, not options.sample))
    began = time.monotonic()
    for count, (source, mutant) in enumerate(chosen, 1):
        run.judge(source, mutant)
        if count % 100 == 0:
            print(f"{count} of {len(chosen)} in {time.monotonic() - began:.0f} s, now in {source.name}: {run.said()}", flush=True)
    print(f"{len(chosen)} of {len(everything)} mutants in {time.monotonic() - began:.0f} s: {run.said()}")
    old = stale(run.explained, keys)
    if not options.sample:
        judged = {(s.name, m[1], m[2]) for s, m in chosen}
        old += [key for key, reasons in run.explained.items() if key in judged for _ in reasons[run.met[key] :]]
    for key in old:
        print(f"an explanation without a survivor: {key}")
    return 1 if run.survivors or old else 0


if __name__ == "__main__":
    sys.exit(main())
