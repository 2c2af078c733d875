# SPDX-License-Identifier: Apache-2.0
"""P1, P2, P3, P4, P6, M1 and M2: the processor against what libpq and PostgreSQL can do.

Two callbacks of every payment wait in the topic: PROCESSING of all, then SUCCEEDED of all. Each is decided and changes its
payment; half of them are published. The limit is a tape of what one run said to PostgreSQL, said again by a bare loop.
"""

import re
import subprocess

import machine
from ground import FAST_DISK, POSTGRES_BIN, SLOW_DISK, Ground, tool
from payfact_stack import wait_for

PAYMENTS = 20000
EVIDENCE_BYTES = 628  # of each event: tests/bench/inputs.c
POISON_EVERY = 10000
MALFORMED = 1000000
CLIENTS = (4, 8, 16, 32)
# From the first statement to the last commit, as the database itself has noted them.
SPAN = """
SELECT extract(epoch FROM max(pg_xact_commit_timestamp(xmin)) - min(first_seen_at))::float8 AS seconds, count(*) AS n
FROM channel_event WHERE transport_key LIKE 'evt\\_%%'
"""
HOT = """
SELECT sum(n_tup_hot_upd)::float8 / sum(n_tup_upd) AS share FROM pg_stat_user_tables
WHERE relname IN ('payment_order', 'payment_attempt', 'payment_amount')
"""


class Bench:
    def __init__(self, ground, payments):
        self.ground, self.payments, self.events = ground, payments, 2 * payments
        self.tape = ground.dir / "tape"
        self.version = ground.sql("SELECT max(version) AS v FROM payment_order")[0]["v"]
        self.pairs = 0
        self.ground.make_topics("run.")
        self.fill("run.")

    def fill(self, prefix, poison_every=0):
        for kind in ("processing", "succeeded"):
            self.ground.fill(prefix, kind, 0, self.payments, "r", poison_every)

    def prepare(self, prefix):
        self.ground.fresh_database()
        self.ground.rewind(prefix)

    def rate(self, events=None):
        """Events a second of what is in the database now."""
        (row,) = self.ground.sql(SPAN)
        wanted = self.events if events is None else events
        if row["n"] != wanted:
            raise RuntimeError(f"{row['n']} of {wanted} events are there")
        return wanted / row["seconds"]

    def run(self, prefix="run.", poisons=0, **settings):
        self.prepare(prefix)
        run = self.ground.processor(prefix, **settings)
        wal = self.ground.wal()
        run.start()
        wait_for("all is decided", lambda: run.decided() >= self.events, 900, pause_s=0.1)
        run.stop()
        run.wal = self.wal_bytes(wal, self.ground.wal())
        run.hot = self.ground.sql(HOT)[0]["share"]
        run.rate = self.rate(self.events - poisons)
        return run

    def pair(self):
        """Events a second of two replicas, which share the topic before anything is in it."""
        self.pairs += 1
        prefix = f"pair{self.pairs}."
        self.ground.fresh_database()
        self.ground.make_topics(prefix)
        runs = [self.ground.processor(prefix) for _ in range(2)]
        for run in runs:
            run.start()
        wait_for("both have their partitions", lambda: self.ground.members(prefix + "processor") == len(runs), 60, pause_s=0.1)
        self.fill(prefix)
        wait_for("all is decided", lambda: sum(run.decided() for run in runs) >= self.events, 900, pause_s=0.1)
        for run in runs:
            run.stop()
        return self.rate()

    def record(self):
        with self.ground.recorder(self.tape) as port:
            conninfo = self.ground.conninfo("payfact_processor_login").replace(str(self.ground.postgres.port), str(port))
            self.run(PG_CONNINFO=conninfo)

    def limit(self):
        self.prepare("run.")
        tool("bench-tape", "replay", self.ground.conninfo(), self.tape)
        return self.rate()

    def one_by_one(self, clients, events):
        """pgbench: one event per transaction."""
        self.ground.fresh_database()
        each = events // clients
        variables = {"i": -1, "clients": clients, "payments": self.payments, "version": self.version}
        argv = [POSTGRES_BIN / "pgbench", "-n", "-M", "prepared", "-c", clients, "-j", 2, "-t", each,
                "-f", self.ground.here / "minimum.sql"]  # fmt: skip
        for name, value in variables.items():
            argv += ["-D", f"{name}={value}"]
        run = subprocess.run([str(a) for a in (*argv, self.ground.conninfo())], capture_output=True, text=True, check=False)
        if run.returncode != 0 or re.search(r"failed transactions: [1-9]", run.stdout):
            raise RuntimeError(f"pgbench: {run.stdout[-500:]} {run.stderr[-500:]}")
        return self.rate(each * clients)

    def wal_bytes(self, first, last):
        """Of one event, without its evidence: what is written always, and whole pages after a checkpoint beside it."""
        (row,) = self.ground.sql(
            "SELECT sum(record_size)::float8 AS records, sum(fpi_size)::float8 AS pages"
            " FROM public.pg_get_wal_stats('0/0'::pg_lsn + %s::numeric, '0/0'::pg_lsn + %s::numeric, false)", first, last)  # fmt: skip
        records, pages = row["records"], row["pages"]
        return records / self.events - EVIDENCE_BYTES, pages / self.events


def malformed(ground, report, scale):
    """M2: how much larger the processor is after the records than after their first tenth."""
    count = max(int(MALFORMED * scale), 1000)
    ground.fresh_database()
    ground.make_topics("bad.")
    ground.fill("bad.", "malformed", 0, count)
    run = ground.processor("bad.")
    run.start()
    wait_for("a tenth is dead", lambda: run.decided() >= count / 10, 1800, pause_s=0.2)
    first = machine.memory_mb(run.service.pid, "VmHWM")
    wait_for("all is dead", lambda: run.decided() >= count, 3600, pause_s=0.2)
    run.stop()
    report.figure("M2", f"processor: growth of its memory over {count:,} malformed records", "MB", "0 (at most 1 %)",
                  max(first / 100, 1.0), at_least=False).add(run.memory_mb - first)  # fmt: skip


def measure(report, rounds, scale):
    payments = max(int(PAYMENTS * scale), 600)
    with Ground(payments=payments) as ground:
        bench = Bench(ground, payments)
        bench.record()
        clients = max(CLIENTS, key=lambda n: bench.one_by_one(n, max(bench.events // 8, 64)))
        ground.make_topics("poison.")
        bench.fill("poison.", POISON_EVERY)
        poisons = 2 * len(range(POISON_EVERY // 2, payments, POISON_EVERY))
        p1 = report.figure("P1", "processor, share of the limit", "", "≥ 0.80", 0.80, baseline="bare libpq loop, same SQL and batches")
        rate = report.figure("", "processor", "events/s")
        limit = report.figure("", "limit: a bare libpq loop, same SQL, batch and connections, data from memory", "events/s")
        p2 = report.figure("P2", "processor, times one event per transaction", "×", "≥ 5", 5, baseline=f"pgbench, {clients} clients")
        p2_pair = report.figure("P2", "two replicas of it, the same", "×", "≥ 5", 5, baseline=f"pgbench, {clients} clients")
        single = report.figure("", f"`pgbench -M prepared`, {clients} clients, the same minimum SQL", "events/s")
        p2_slow = report.figure("", "P2 with commits 1 ms slower", "×", baseline=f"pgbench, {clients} clients, as slow")
        p3 = report.figure("P3", "what a disk slower by 1 ms costs the processor", "%", "≤ 10", 10, at_least=False,
                           baseline="itself on the fast disk")  # fmt: skip
        p4 = report.figure("P4", "WAL of one event, evidence apart", "B", "≤ 2,500", 2500, at_least=False)
        pages = report.figure("", "and whole pages, first touched after a checkpoint", "B")
        hot = report.figure("P4", "HOT updates of the payment's rows", "%", "≥ 90", 90)
        p6 = report.figure("P6", "what one poison in 10,000 costs", "%", "≤ 5", 5, at_least=False, baseline="itself without")
        cpu = report.figure("", "CPU of the processor, one event", "µs")
        server_cpu = report.figure("", "CPU of its PostgreSQL backends, one event", "µs")
        memory = report.figure("M1", "processor, most memory", "MB", "≤ 64", 64, at_least=False)
        for _ in range(rounds):
            report.note_load()
            run = bench.run()
            rate.add(run.rate)
            p1.add(run.rate / limit.add(bench.limit()))
            p2.add(run.rate / single.add(bench.one_by_one(clients, bench.payments)))
            p2_pair.add(bench.pair() / single.values[-1])
            for figure, value in zip((p4, pages), run.wal, strict=True):
                figure.add(value)
            cpu.add(run.cpu_s / bench.events * 1e6)
            server_cpu.add(run.server_cpu_s / bench.events * 1e6)
            memory.add(run.memory_mb)
            hot.add(100 * run.hot)
            ground.set_disk(SLOW_DISK)
            slow = bench.run()
            p2_slow.add(slow.rate / bench.one_by_one(clients, bench.payments // 2))
            ground.set_disk(FAST_DISK)
            p3.add(100 * (1 - slow.rate / run.rate))
            p6.add(100 * (1 - bench.run("poison.", poisons).rate / run.rate))
        malformed(ground, report, scale)
