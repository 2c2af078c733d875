# SPDX-License-Identifier: Apache-2.0
"""O2 and M1: the publisher drains the outbox; beside it, what logical decoding of the same rows alone can do."""

import subprocess
import time

import machine
from ground import PARTITIONS, POSTGRES_BIN, Ground, tool
from payfact_stack import wait_for

ROWS, A_TRANSACTION, KEYS = 300000, 500, 20000


class Bench:
    def __init__(self, ground, rows):
        self.ground, self.rows, self.number = ground, rows, 0
        ground.autocommit((ground.here / "outbox.sql").read_text(),
                          "CREATE PUBLICATION bench FOR TABLE payfact.payment_outbox WITH (publish = 'insert')")  # fmt: skip

    def warm_up(self):
        """The broker compiles what it runs: a fresh one takes twice the CPU for the first records."""
        rows, self.rows = self.rows, max(self.rows // 3, 5000)
        self.fill()
        self.decoded()
        self.drained()
        self.rows = rows

    def fill(self):
        self.ground.autocommit(
            "TRUNCATE payfact.payment_outbox",
            "SELECT pg_create_logical_replication_slot('bench', 'pgoutput')",
            f"CALL payfact.bench_fill({self.rows}, {A_TRANSACTION}, {KEYS})",
            "CHECKPOINT",
        )

    def decoded(self):
        """Rows a second of pg_recvlogical into /dev/null."""
        end = self.ground.sql("SELECT pg_current_wal_lsn()::text AS at")[0]["at"]
        argv = [POSTGRES_BIN / "pg_recvlogical", "-d", self.ground.conninfo(), "--slot", "bench", "--start", "-o", "proto_version=1",
                "-o", "publication_names=bench", "-F", "0", "--endpos", end, "-f", "/dev/null"]  # fmt: skip
        began = time.monotonic()
        subprocess.run([str(a) for a in argv], check=True, timeout=600)
        took = time.monotonic() - began
        self.ground.sql("SELECT pg_drop_replication_slot('bench')")
        return self.rows / took

    def drained(self):
        self.number += 1
        prefix = f"drain{self.number}."
        self.ground.make_topics(prefix)
        service = self.ground.service("publisher", TOPIC_PREFIX=prefix)
        broker = machine.cpu_s(self.ground.kafka.pid)
        service.start()
        wait_for("all is delivered", lambda: service.metric("payfact_publisher_delivered_total") >= self.rows, 600, pause_s=0.05)
        wait_for("all is deleted", lambda: not self.ground.sql("SELECT FROM payment_outbox LIMIT 1"), 60)
        emptied = time.time()
        run = Drain()
        run.cpu_s, run.memory_mb = machine.cpu_s(service.pid), machine.memory_mb(service.pid)
        run.server_cpu_s = self.ground.backends_cpu_s("payfact-publisher")
        run.broker_cpu_s = machine.cpu_s(self.ground.kafka.pid) - broker
        if service.stop() != 0:
            raise RuntimeError(f"the publisher fell: {service.tail()}")
        seen = tool("bench-drained", self.ground.brokers, prefix + "events", self.rows, KEYS)
        run.doubled = seen["records"] - seen["distinct"]
        # From the first record in the broker to the last row deleted.
        run.rate = self.rows / (emptied - seen["first_ms"] / 1000)
        run.produced_rate = self.rows / ((seen["last_ms"] - seen["first_ms"]) / 1000)
        return run


class Drain:
    pass


def measure(report, rounds, scale):
    rows = max(int(ROWS * scale), 5000)
    with Ground(conf="wal_level = logical") as ground:
        bench = Bench(ground, rows)
        o2 = report.figure("O2", f"publisher drains {rows:,} rows, acknowledged and deleted; times the baseline", "×", "≥ 2.5", 2.5,
                           baseline="`pg_recvlogical` to /dev/null")  # fmt: skip
        rate = report.figure("", f"publisher ({PARTITIONS} shards, order of every key checked)", "rows/s")
        produced = report.figure("", "of which into Kafka alone", "rows/s")
        decoded = report.figure("", "`pg_recvlogical` of the same rows to /dev/null", "rows/s")
        doubled = report.figure("", "records that came twice", "", "0", 0, at_least=False)
        cpu = report.figure("", "CPU of the publisher, one row", "µs")
        server_cpu = report.figure("", "CPU of its PostgreSQL backend, one row", "µs")
        broker_cpu = report.figure("", "CPU of the broker, one row", "µs")
        memory = report.figure("M1", "publisher, most memory", "MB", "≤ 40", 40, at_least=False)
        bench.warm_up()
        for _ in range(rounds):
            report.note_load()
            bench.fill()
            run_decoded = decoded.add(bench.decoded())
            run = bench.drained()
            rate.add(run.rate)
            produced.add(run.produced_rate)
            o2.add(run.rate / run_decoded)
            doubled.add(run.doubled)
            cpu.add(run.cpu_s / rows * 1e6)
            server_cpu.add(run.server_cpu_s / rows * 1e6)
            broker_cpu.add(run.broker_cpu_s / rows * 1e6)
            memory.add(run.memory_mb)
