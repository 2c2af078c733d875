# SPDX-License-Identifier: Apache-2.0
"""What was measured: values by round, their median and spread, and whether the goal is met."""

import json
import math
import pathlib
import statistics

import machine


class Figure:
    """One line of the table. The median is compared with `limit` where there is a goal: "at least" or "at most". `baseline`:
    what ran in the same round, or the figure that it is a share of."""

    def __init__(self, number, what, unit, goal="", limit=None, at_least=True, baseline="", digits=None):
        self.number, self.what, self.unit, self.goal, self.limit = number, what, unit, goal, limit
        self.at_least, self.baseline, self.digits, self.values = at_least, baseline, digits, []

    def add(self, value):
        self.values.append(float(value))
        return value

    @property
    def median(self):
        return statistics.median(self.values)

    def verdict(self):
        if self.limit is None:
            return ""
        return "met" if (self.median >= self.limit if self.at_least else self.median <= self.limit) else "**missed**"

    def text(self, value):
        if self.digits is not None:
            return f"{value:,.{self.digits}f}"
        size = abs(value)
        return f"{value:,.0f}" if size >= 100 else f"{value:,.1f}" if size >= 10 else f"{value:.2f}"

    def middle(self):
        return f"{self.text(self.median)}{' ' + self.unit if self.unit else ''}"

    def spread(self):
        if len(self.values) < 2:
            return ""
        return f"{self.text(min(self.values))} – {self.text(max(self.values))}"

    def row(self):
        cells = (self.number, self.what, self.goal, self.baseline, self.middle(), self.spread(), self.verdict())
        return "| " + " | ".join(cells) + " |"


class Report:
    """The figures of one section, and the machine they were taken on."""

    HEAD = ("| id | what | goal | baseline, in the same round | median | spread | |\n"
            "| --- | --- | --- | --- | --- | --- | --- |")  # fmt: skip

    def __init__(self, section, rounds, scale):
        self.section, self.rounds, self.scale, self.figures, self.loads = section, rounds, scale, [], []
        self.others = []

    def figure(self, *arguments, **options):
        made = Figure(*arguments, **options)
        self.figures.append(made)
        return made

    def note_load(self, seconds=1.0):
        """Between two rounds, while nothing of ours runs."""
        self.others.append(machine.others_busy(seconds))
        self.loads.append(machine.load()[0])

    def load_line(self):
        busy = max(self.others, default=0)
        word = "a quiet machine" if busy < 0.1 else "a LOADED machine: repeat it when it is quiet"
        middle = statistics.median(self.others) if self.others else math.nan
        return (f"{self.rounds} rounds, scale {self.scale:g}; between the rounds other programs took {middle:.0%} of the "
                f"machine (at most {busy:.0%}), load average at most {max(self.loads, default=0):.1f}: {word}")  # fmt: skip

    def lines(self):
        return [self.HEAD, *(figure.row() for figure in self.figures if figure.values)]

    def save(self, directory, versions):
        directory = pathlib.Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        scale = "" if self.scale == 1 else f" --scale {self.scale:g}"
        command = f"scripts/bench {self.section} --rounds {self.rounds}{scale}"
        document = {"section": self.section, "command": command, "versions": versions, "load": self.load_line(), "lines": self.lines(),
                    "figures": {f.what: f.values for f in self.figures}}  # fmt: skip
        (directory / f"{self.section}.json").write_text(json.dumps(document, indent=1) + "\n")


def write_document(path, directory, sections):
    """Puts the saved tables between the marks of docs/PERFORMANCE.md."""
    text = pathlib.Path(path).read_text()
    for section in sections:
        begin, end = f"<!-- {section}: written by scripts/bench -->", f"<!-- end of {section} -->"
        saved = json.loads((pathlib.Path(directory) / f"{section}.json").read_text())
        versions = ", ".join(f"{name} {value}" for name, value in saved["versions"].items())
        table = "\n".join(saved["lines"])
        filled = f"{begin}\n`{saved['command']}`: {saved['load']}.\n\n{table}\n\n{versions}.\n{end}"
        before, rest = text.split(begin)
        text = before + filled + rest.split(end)[1]
    pathlib.Path(path).write_text(text)
