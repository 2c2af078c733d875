# SPDX-License-Identifier: Apache-2.0
"""A schedule is a pure function of its seed, and the seeds of a campaign together do everything that it is for."""

import pathlib
import re
import subprocess
import sys

import schedule
from schedule import POINTS, SCENARIOS, SERVICES, base_of, schedule_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANY = [schedule_of(seed) for seed in range(1, 401)]


def test_the_same_seed_is_the_same_schedule_in_every_process():
    code = "import schedule; print(*(schedule.schedule_of(s).text() for s in (1, 9, 18, 77)), sep='\\n')"
    runs = [subprocess.run([sys.executable, "-c", code], cwd=ROOT / "tests" / "crash", capture_output=True, text=True, check=True,
                           env={"PYTHONHASHSEED": str(n), "PYTHONDONTWRITEBYTECODE": "1"}).stdout for n in (1, 2)]  # fmt: skip
    assert runs[0] == runs[1] == "".join(schedule_of(s).text() + "\n" for s in (1, 9, 18, 77))
    assert len({s.text().split("\n", 2)[2] for s in MANY}) == len(MANY), "no two seeds do the same"


def test_every_seed_has_the_scenarios_and_a_crash_of_who_writes_or_publishes():
    for one in MANY:
        assert set(SCENARIOS) <= {p.kind for p in one.payments}
        assert any(base_of(f.who) in ("processor", "publisher") and f.kind in ("kill9", "point") for f in one.faults), one.seed
        assert all(0 <= f.at_ms <= one.span_ms for f in one.faults) and all(p.at_ms < one.span_ms for p in one.payments)
        assert all(f.who in ("", schedule.DATABASE, *one.instances()) for f in one.faults)


def test_every_seed_has_captures_and_refunds_and_a_crash_of_who_sends_them():
    for one in MANY:
        money = [p for p in one.payments if p.kind in schedule.MONEY]
        assert "refunds_at_once" in {p.kind for p in money} and len(money) * 8 >= len(one.payments), one.seed
        assert any(f.kind == "point" and "/" in f.detail and base_of(f.who) == "psp" for f in one.faults), one.seed
    deaths = {f.detail.split(":")[0] for s in MANY for f in s.faults if f.kind == "point" and "/" in f.detail}
    calls = [name for name in POINTS["psp"] if name != "after_produce_before_offset"]
    assert deaths == {f"{name}/{call}" for name in calls for call in ("CAPTURE", "REFUND")}


def test_redis_is_off_in_half_of_the_seeds():
    assert sum(s.redis != "on" for s in MANY) == len(MANY) // 2
    assert {s.redis for s in MANY} == {"on", "dead", "none"}


def test_the_seeds_together_do_everything():
    kinds = {f.kind for s in MANY for f in s.faults}
    assert kinds == set(schedule.KINDS), kinds ^ set(schedule.KINDS)
    assert {base_of(f.who) for s in MANY for f in s.faults if f.kind == "kill9"} == set(SERVICES)
    assert {s.replicas for s in MANY} == {1, 2} and {s.static for s in MANY} == {True, False} == {s.clocks for s in MANY}
    assert {f.who for s in MANY for f in s.faults if f.kind == "clock"} >= {schedule.DATABASE, *SERVICES}
    assert all(any(f.kind == "broker_crash" for f in s.faults) for s in MANY if s.cluster)
    assert {s.early for s in MANY} == {"", *schedule.EARLY}
    assert {p.kind for s in MANY for p in s.payments} == set(schedule.LOAD) | {"blocked"} | set(schedule.MONEY)
    assert max(len(s.payments) for s in MANY) >= 250
    assert 15 <= sum(s.cluster for s in MANY) <= 40


def test_the_named_kill_points_are_those_of_the_services():
    """A new point in the code that no seed would reach is a hole in the campaign."""
    found = {}
    for path in sorted((ROOT / "services").rglob("*.c")):
        for name in re.findall(r'PAY_FAULT(?:_OF)?\("(\w+)"', path.read_text()):
            found.setdefault(path.parent.name, set()).add(name)
    ours = {}
    for service, names in POINTS.items():
        ours.setdefault("ingest" if service in ("webhook", "relay", "psp") else service, set()).update(names)
    assert ours == found
    died = {re.split("[/:]", f.detail)[0] for s in MANY for f in s.faults if f.kind == "point"}
    assert died == set().union(*(names for names in POINTS.values()))
