# SPDX-License-Identifier: Apache-2.0
"""What the rules make of a line, and what they leave alone."""

import pytest

import mutate
from mutants import DELETED, mutants_of

ROWS = (
    ("    if (a == b) {", {"if (a != b) {"}),
    ("    if (a == b && c) {", {"if (a != b && c) {", "if (a == b || c) {", "if (!(a == b && c)) {"}),
    ("    return a >= 0 && !is_done(b);", {"return a > 0 && !is_done(b);", "return a >= 0 || !is_done(b);",
                                            "return a >= 0 && is_done(b);"}),
    ("    sum -= amount - 1;", {"sum += amount - 1;", "sum -= amount + 1;", "sum -= amount - 2;", DELETED}),
    ("    pay_row_touch(&order->change);", {DELETED}),
    ('    refuse(turn, "A == B");', {DELETED}),  # not in a string
    ("    x->y = 0; /* a == b */", {"x->y = 1; /* a == b */", DELETED}),
    ("    return at_us > 0 ? at_us : now_us;", {"return at_us >= 0 ? at_us : now_us;", "return at_us > 0 ? now_us : at_us;"}),
    ("        [PAY_ME_FAILED] = TO(REVERSED),", {"[PAY_ME_FAILED] = IGN,"}),
    ("    PAY_ASSERT(a == b);", set()),
    ("#define IS(a) ((a) == 0)", set()),
    (" * a == b", set()),
)  # fmt: skip


@pytest.mark.parametrize("line, expected", ROWS, ids=[row[0].strip() for row in ROWS])
def test_a_line_has_these_mutants(line, expected):
    assert {after for _, _, after, _ in mutants_of(f"int f(void)\n{{\n{line}\n}}")} == expected


def test_each_mutant_is_one_change_of_one_line():
    text = "int f(int a)\n{\n    return a + 1;\n}\n"
    for number, before, after, whole in mutants_of(text):
        assert (number, before) == (3, "return a + 1;")
        assert whole == text.replace(before, after)


@pytest.mark.parametrize("text", ["x.c\n- a\n+ b\n", "x.c\n- a\n+ b\n\ny.c\n- a\n+ b\n= why\n"])
def test_an_explanation_without_a_reason_is_refused(text, tmp_path, monkeypatch):
    monkeypatch.setattr(mutate, "EXPLAINED", tmp_path / "survivors.txt")
    mutate.EXPLAINED.write_text(text)
    with pytest.raises(SystemExit):
        mutate.explanations()


def test_explanations_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(mutate, "EXPLAINED", tmp_path / "survivors.txt")
    mutate.EXPLAINED.write_text("# about\n\nx.c\n- a\n+ b\n- a\n+ c\n= the same\n= number\n\n- d\n+ e\n= killed by sanitized\n\n- a\n+ b\n= as well\n")
    assert mutate.explanations() == {("x.c", "a", "b"): ["the same number", "as well"], ("x.c", "a", "c"): ["the same number"],
                                     ("x.c", "d", "e"): ["killed by sanitized"]}  # fmt: skip


class Ladder:
    """Kills nothing."""

    names = ("unit",)

    def __init__(self, folder):
        self.folder = folder

    def killer(self, source, text):
        return ""


def test_of_survivors_that_are_alike_each_is_explained(tmp_path, monkeypatch):
    monkeypatch.setattr(mutate, "EXPLAINED", tmp_path / "survivors.txt")
    mutate.EXPLAINED.write_text("x.c\n- a\n+ b\n= why\n")
    run = mutate.Run(tmp_path, Ladder(tmp_path))
    for number in (1, 2):
        run.judge(mutate.CORE / "x.c", (number, "a", "b", "text"))
    assert [row[1] for row in run.survivors] == [2]


def test_every_explanation_is_of_a_mutant_that_there_is():
    made = {(s.name, before, after) for s in mutate.CORE.glob("*.c") for _, before, after, _ in mutants_of(s.read_text())}
    assert mutate.stale(mutate.explanations(), made) == []
