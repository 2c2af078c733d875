# SPDX-License-Identifier: Apache-2.0
"""How much CPU one event costs: of the processor, of the publisher and of their PostgreSQL backends.

Not how long it takes: that says more about the machine's other users. A bound is about three times what was measured when it
was recorded, on a machine where a fixed piece of work took REFERENCE_S; on a slower one it grows with that. It is for the
mistake that makes everything several times dearer (a scan, a round trip for each event, a copy of the whole batch); what the
services can do is measured by scripts/bench.
"""

import os
import pathlib
import re
import subprocess
import time

import psycopg2
import pytest

from payfact_stack import CALLER, ROOT, Stack, build_dir
from procs import wait_for

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAYMENTS, ROWS, A_TRANSACTION, KEYS = 1500, 30000, 500, 2000
REFERENCE_S = 0.072
# µs of one event, by kind of build: the process, its backend.
BOUNDS = {
    "Debug": {"processor": (200, 360), "publisher": (60, 25)},
    "RelWithDebInfo": {"processor": (130, 360), "publisher": (60, 25)},
}


def build_kind():
    cache = (build_dir() / "CMakeCache.txt").read_text()
    if re.search(r"^PAY_SANITIZE:\w+=\S", cache, re.M):
        pytest.skip("a sanitizer's CPU time is its own")
    return re.search(r"^CMAKE_BUILD_TYPE:\w+=(\w*)", cache, re.M)[1]


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def slowness():
    """How much longer this machine takes than the one of the bounds; at least 1. The best of a few: a neighbour only slows."""
    best = min(_reference_s() for _ in range(5))
    return max(best / REFERENCE_S, 1.0)


def _reference_s():
    began, at = time.process_time(), 1
    for i in range(1000000):
        at = at * 31 + i & 0xFFFFFF
    assert at >= 0
    return time.process_time() - began


class Spent:
    """with Spent(stack, service) as spent: ...; then spent.of(events)."""

    def __init__(self, stack, service):
        self.stack, self.service = stack, service

    def _now(self):
        rows = self.stack.sql("SELECT pid FROM pg_stat_activity WHERE datname = %s AND usename LIKE %s",
                              self.stack.database, "payfact%")  # fmt: skip
        return cpu_s(self.service.pid), sum(cpu_s(row["pid"]) for row in rows)

    def __enter__(self):
        self.before = self._now()
        return self

    def __exit__(self, *exc):
        self.after = self._now()

    def of(self, events):
        return [(after - before) / events * 1e6 for before, after in zip(self.before, self.after, strict=True)]


def check(kind, name, costs):
    factor = slowness()
    bounds = BOUNDS[kind][name]
    said = ", ".join(f"{what} {cost:.0f} µs (at most {bound * factor:.0f})"
                     for what, cost, bound in zip(("process", "backend"), costs, bounds, strict=True))  # fmt: skip
    print(f"{name}, {kind}: {said}")
    assert all(cost <= bound * factor for cost, bound in zip(costs, bounds, strict=True)), f"one event costs: {said}"


@pytest.fixture(scope="module")
def stack(servers):
    with Stack(servers, redis=False, partitions=4) as made:
        yield made


def fill(stack, kind, *arguments):
    tool = build_dir() / "bench" / "bench-inputs"
    subprocess.run([str(a) for a in (tool, stack.brokers, stack.topic_name("inputs"), kind, 0, PAYMENTS, *arguments)],
                   check=True, timeout=60, stdout=subprocess.DEVNULL)  # fmt: skip


def test_cpu_of_one_event_in_the_processor(stack):
    kind = build_kind()
    processor = stack.service("processor").start()

    def decided(wanted):
        wait_for(f"{wanted} inputs are decided", lambda: processor.metric("payfact_inputs_total") >= wanted, 60)

    fill(stack, "create", stack.signers[CALLER].private)
    decided(PAYMENTS)
    with Spent(stack, processor) as spent:
        fill(stack, "processing", "r")
        fill(stack, "succeeded", "r")
        decided(3 * PAYMENTS)
    check(kind, "processor", spent.of(2 * PAYMENTS))
    processor.stop()


def test_cpu_of_one_event_in_the_publisher(stack):
    kind = build_kind()
    stack.sql("TRUNCATE payment_outbox")
    connection = psycopg2.connect(stack.servers.pg_conninfo.replace("dbname=postgres", f"dbname={stack.database}"))
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute((ROOT / "tests" / "bench" / "outbox.sql").read_text().replace("% keys % 12", "% keys % 4"))
    connection.close()
    publisher = stack.service("publisher").start()
    with Spent(stack, publisher) as spent:
        connection = psycopg2.connect(stack.servers.pg_conninfo.replace("dbname=postgres", f"dbname={stack.database}"))
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("CALL payfact.bench_fill(%s, %s, %s)", (ROWS, A_TRANSACTION, KEYS))
        connection.close()
        wait_for("all is delivered", lambda: publisher.metric("payfact_publisher_delivered_total") >= ROWS, 60)
        wait_for("all is deleted", lambda: not stack.sql("SELECT FROM payment_outbox LIMIT 1"), 60)
    check(kind, "publisher", spent.of(ROWS))
    publisher.stop()
