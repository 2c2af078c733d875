# SPDX-License-Identifier: Apache-2.0
"""What one seed does: a pure function of its number. Nothing here looks at a clock, a file or the machine.

A schedule names the world (replicas, Redis, how services and servers start), the payments with what their PSP does to
them, and the faults with their moments. How far the processes have come at such a moment differs from run to run: the
schedule is what repeats, not the race.
"""

import dataclasses
import random

SERVICES = ("webhook", "relay", "psp", "processor", "publisher", "recovery")
MEMBERS = ("relay", "psp", "processor")  # of consumer groups
CLUSTER_EVERY = 20  # each so many seeds run on three brokers and lose one
LARGE_EVERY = 10
DATABASE = "database"  # as the owner of a clock
EARLY = {"pg": "its database", "kafka": "its broker", "schema": "its schema and topics"}
BACK_MS_MAX = 3000  # a wait for a moment of a wall clock that goes back lasts as much longer (librdkafka waits so)

# Named kill points (grep PAY_FAULT): who passes them, and the highest pass at which a seed may let it die.
POINTS = {
    "webhook": {"after_produce_before_answer": 40},
    "relay": {"after_produce_before_commit": 6},
    "psp": {
        "after_gate_before_send": 12,
        "after_send_before_answer": 12,
        "after_answer_before_finish": 12,
        "after_finish_before_produce": 12,
        "after_produce_before_offset": 15,
    },
    "processor": {"before_commit": 25, "after_commit": 25, "after_commit_before_offset": 25},
    "publisher": {"after_delivery_before_delete": 25},
    "recovery": {"after_lease_before_produce": 6, "after_produce_before_settle": 6},
}

# Everything that a seed may do; faults.Actor has a method for each.
KINDS = (
    "kill9", "point", "freeze", "restart", "pg_crash", "pg_crash_in_commit", "pg_commit_lost", "pg_backends", "kafka_crash",
    "broker_crash", "redis_stop", "redis_flush", "redis_slow", "psp_away", "clock",
)  # fmt: skip

# What the PSP does to a payment, and how often it is chosen for the mixed load. A to F: the scenarios of every seed.
SCENARIOS = ("timeout", "copies", "blocked", "overtaken")
LOAD = {
    "plain": 12,
    "timeout": 3,
    "copies": 2,
    "overtaken": 2,
    "declined": 2,
    "failover": 2,
    "taken_and_dead": 1,
    "untaken_and_dead": 1,
    "late": 1,
    "bad_gateway": 1,
    "stored_500": 1,
    "garbage": 1,
    "page_paid": 2,
    "page_open": 1,
    "page_canceled": 1,
    "page_race": 1,
    "resent": 1,
}

# What is captured, given back or voided (money.py), and how often it is chosen; every seed has scenario C besides. Drawn by a
# generator of its own, so that the other payments and faults of a seed are what they were without it.
MONEY = {
    "capture_whole": 1,
    "capture_part": 2,
    "capture_lost": 2,
    "capture_refunded": 2,
    "capture_in_console": 1,
    "void": 2,
    "capture_or_void": 1,
    "refund_whole": 1,
    "refund_parts": 2,
    "refunds_at_once": 1,
    "refund_lost": 3,
    "refund_refused": 1,
    "refund_busy": 1,
    "refund_resent": 1,
    "refund_fails_later": 2,
    "refund_in_console": 2,
    "refund_of_two_people": 2,
}
THRESHOLD_MINOR = 200000  # a refund beyond it needs two people; only that kind's payments are as large
MONEY_CALLS = ("CAPTURE", "REFUND", "REFUND")  # a point of one of these: the gate, the call or the answer of such a job


@dataclasses.dataclass(frozen=True)
class Fault:
    at_ms: int
    kind: str
    who: str = ""
    for_ms: int = 0  # how long it lasts: down, frozen, slow
    detail: str = ""

    def __str__(self):
        words = [self.kind, self.who, self.detail]
        text = " ".join(w for w in words if w)
        return f"{text} @{self.at_ms / 1000:.1f}s" + (f"+{self.for_ms / 1000:.1f}s" if self.for_ms else "")


@dataclasses.dataclass(frozen=True)
class Payment:
    at_ms: int
    kind: str
    amount_minor: int
    withheld: bool  # the PSP keeps its callbacks until the faults are over
    how: str = ""  # a variant of the kind


@dataclasses.dataclass(frozen=True)
class Schedule:
    seed: int
    cluster: bool
    replicas: int
    redis: str  # on, dead (configured, never there), none
    static: bool  # static membership in the consumer groups
    clocks: bool  # wall clocks are stepped
    early: str  # "", or a key of EARLY: what was not there yet when the services started
    span_ms: int
    send_window_s: int
    publisher_lease_ms: int
    search_lag_ms: int
    payments: tuple
    faults: tuple

    def instances(self):
        return instances_of(self.replicas)

    def world(self):
        words = [f"{len(self.payments)} payments", f"redis {self.redis}"]
        words += ["2 replicas"] if self.replicas == 2 else []
        words += ["3 brokers"] if self.cluster else []
        words += ["static members"] if self.static else []
        words += ["clocks step"] if self.clocks else []
        words += [f"started before {EARLY[self.early]}"] if self.early else []
        return ", ".join(words)

    def text(self):
        """The whole schedule, for the log of a failed seed."""
        lines = [f"seed {self.seed}: {self.world()}"]
        lines += [f"  {f.name} = {getattr(self, f.name)}" for f in dataclasses.fields(self) if f.name not in ("payments", "faults")]
        lines += [f"  fault {fault}" for fault in self.faults]
        lines += [f"  payment @{p.at_ms / 1000:.2f}s {p.kind} {p.how} {p.amount_minor}{' withheld' if p.withheld else ''}"
                  for p in self.payments]  # fmt: skip
        return "\n".join(lines)


def instances_of(replicas):
    """Names of the processes: a second one of each where there are two replicas."""
    return [*SERVICES, *(f"{name}-2" for name in SERVICES if replicas == 2)]


def base_of(instance):
    return instance.removesuffix("-2")


def _payment(rng, kind, span_ms):
    hows = {
        "taken_and_dead": ("close", "reset"),
        "untaken_and_dead": ("close", "reset"),
        "late": ("close", "reset", "hang"),
        "bad_gateway": ("502", "503", "504"),
        "garbage": ("garbage", "half_answer"),
    }
    withheld = kind in ("timeout", "late", "taken_and_dead", "garbage") and rng.random() < 0.5
    return Payment(rng.randrange(span_ms * 8 // 10), kind, rng.randrange(100, 100000), withheld, rng.choice(hows.get(kind, ("",))))


def _payments(rng, seed, span_ms):
    count = rng.randrange(150, 301) if seed % LARGE_EVERY == LARGE_EVERY - 1 else rng.randrange(24, 61)
    kinds = list(SCENARIOS) + rng.choices(list(LOAD), weights=LOAD.values(), k=count - len(SCENARIOS))
    return tuple(sorted((_payment(rng, kind, span_ms) for kind in kinds), key=lambda p: p.at_ms))


def _money_payment(rng, kind, span_ms):
    lost = ("charge_then_timeout", "close", "reset", "untaken", "500", "502", "half_answer", "garbage")
    hows = {
        "capture_lost": lost,
        "refund_lost": lost,
        "capture_or_void": ("capture_first", "void_first"),
        "refund_of_two_people": ("approved", "approved", "declined"),
    }
    by_callback_alone = kind.endswith("in_console") or kind == "refund_fails_later"
    withheld = rng.random() < 0.3 and not by_callback_alone
    amount = rng.randrange(100, 100000) + (THRESHOLD_MINOR if kind == "refund_of_two_people" else 0)
    return Payment(rng.randrange(span_ms * 6 // 10), kind, amount, withheld, rng.choice(hows.get(kind, ("",))))


def _money_payments(rng, seed, span_ms):
    count = rng.randrange(50, 81) if seed % LARGE_EVERY == LARGE_EVERY - 1 else rng.randrange(16, 29)
    kinds = ["refunds_at_once", *rng.choices(list(MONEY), weights=MONEY.values(), k=count - 1)]
    return tuple(_money_payment(rng, kind, span_ms) for kind in kinds)


class _Faults:
    """Collects the faults of one seed: each method is one kind."""

    def __init__(self, rng, world):
        self.rng, self.world, self.rows = rng, world, []

    def at(self):
        return self.rng.randrange(200, self.world["span_ms"])

    def any(self, services=SERVICES):
        name = self.rng.choice(services)
        return f"{name}-2" if self.world["replicas"] == 2 and self.rng.random() < 0.5 else name

    def add(self, kind, who="", for_ms=0, detail="", at_ms=None):
        self.rows.append(Fault(self.at() if at_ms is None else at_ms, kind, who, for_ms, detail))

    def crash_of_scenario_d(self):
        """Who writes the fact dies between COMMIT and offsets, or who publishes it between delivery and delete."""
        who = self.any(("processor", "publisher"))
        names = [n for n in POINTS[base_of(who)] if n.startswith("after_")]
        name = self.rng.choice(names)
        self.add("point", who, self.rng.randrange(0, 1000), f"{name}:{self.rng.randrange(1, 20)}", 0)

    def kill9(self):
        self.add("kill9", self.any(), self.rng.randrange(0, 1500))

    def restart(self):
        self.add("restart", self.any(MEMBERS), 0)

    def point(self):
        who = self.any(tuple(POINTS))
        name = self.rng.choice(list(POINTS[base_of(who)]))
        nth = self.rng.randrange(1, POINTS[base_of(who)][name] + 1)
        at_ms = 0 if self.rng.random() < 0.7 else None
        self.add("point", who, self.rng.randrange(0, 1000), f"{name}:{nth}", at_ms)

    def point_of_money(self):
        """Whoever sends a capture or a refund dies at its gate, before its answer, or before that is kept or told."""
        armed = {f.who for f in self.rows if f.kind == "point" and f.at_ms == 0}
        who = self.any(("psp",))
        name = self.rng.choice([n for n in POINTS["psp"] if n != "after_produce_before_offset"])
        at_ms = 0 if who not in armed and self.rng.random() < 0.7 else None
        detail = f"{name}/{self.rng.choice(MONEY_CALLS)}:{self.rng.randrange(1, 4)}"
        self.add("point", who, self.rng.randrange(0, 1000), detail, at_ms)

    def freeze(self):
        self.add("freeze", self.any(), self.rng.randrange(300, 1500))

    def freeze_publisher(self):
        lease_ms = self.world["publisher_lease_ms"]
        self.add("freeze", self.any(("publisher",)), lease_ms + self.rng.randrange(200, 1500), "past its lease")


    def pg(self):
        """Stopped without a checkpoint, also while COMMITs wait for their answer; or only connections are lost."""
        kind = self.rng.choice(("pg_crash", "pg_crash_in_commit", "pg_commit_lost", "pg_backends"))
        self.add(kind, for_ms=self.rng.randrange(0, 1500) if "crash" in kind else 0)

    def kafka(self):
        if self.world["cluster"]:
            self.add("broker_crash", for_ms=self.rng.randrange(0, 3000), detail=str(self.rng.choice((1, 2, 3))))
        else:
            self.add("kafka_crash", for_ms=self.rng.randrange(0, 1000))

    def redis(self):
        kind = self.rng.choice(("redis_stop", "redis_flush", "redis_slow"))
        self.add(kind, for_ms=0 if kind == "redis_flush" else self.rng.randrange(300, 2000))

    def psp_away(self):
        how = self.rng.choice(("down", "accept_close", "accept_reset", "accept_hang"))
        self.add("psp_away", for_ms=self.rng.randrange(300, 1500), detail=how)

    def clock(self):
        """The database's goes a few seconds wrong; a service's also by an hour, but then forward."""
        who = self.rng.choice((DATABASE, *self.world["instances"]))
        ahead = self.rng.choice((1000, 8000) if who == DATABASE else (2000, 60000, 3600000))
        step_ms = ahead if self.rng.random() < 0.6 else -self.rng.randrange(500, BACK_MS_MAX)
        self.add("clock", who, detail=f"{step_ms / 1000:+g}s")


def _add_server_faults(faults, rng):
    if rng.random() < 0.45:
        faults.pg()
    if faults.world["cluster"] or rng.random() < 0.12:
        faults.kafka()
    if faults.world["redis"] == "on" and rng.random() < 0.7:
        faults.redis()
    if rng.random() < 0.15:
        faults.psp_away()
    for _ in range(rng.randrange(1, 4) if faults.world["clocks"] else 0):
        faults.clock()


def _add_service_faults(faults, rng):
    for _ in range(rng.randrange(1, 4)):
        faults.kill9()
    faults.crash_of_scenario_d()
    for _ in range(rng.randrange(0, 3)):
        faults.point()
    if rng.random() < 0.3:
        faults.freeze()
    if rng.random() < 0.3:
        faults.freeze_publisher()
    if rng.random() < 0.3:
        faults.restart()


def schedule_of(seed):
    rng = random.Random(seed)
    cluster = seed % CLUSTER_EVERY == CLUSTER_EVERY - 2
    world = {
        "replicas": 2 if rng.random() < 0.4 else 1,
        "redis": "on" if seed % 2 else rng.choice(("dead", "none")),
        "static": rng.random() < 0.5,
        "clocks": rng.random() < 0.2,
        "early": rng.choice(("pg", "schema", "schema", "kafka")) if rng.random() < 0.2 and not cluster else "",
        "span_ms": rng.randrange(3500, 6001),
        "send_window_s": rng.choice((3, 20, 30, 30)),
        "publisher_lease_ms": rng.choice((1000, 1500, 2500)),
        "search_lag_ms": rng.choice((0, 300, 800)),
    }
    faults = _Faults(rng, {**world, "cluster": cluster, "instances": instances_of(world["replicas"])})
    _add_service_faults(faults, rng)
    _add_server_faults(faults, rng)
    payments = _payments(rng, seed, world["span_ms"])
    faults.rng = rng = random.Random(f"money of {seed}")
    faults.point_of_money()
    payments = tuple(sorted((*payments, *_money_payments(rng, seed, world["span_ms"])), key=lambda p: p.at_ms))
    rows = tuple(sorted(faults.rows, key=lambda f: f.at_ms))
    return Schedule(seed=seed, cluster=cluster, payments=payments, faults=rows, **world)
