# SPDX-License-Identifier: Apache-2.0
"""E1 and M1: from a PSP's callback to the event that downstream reads, on this one machine; with Debezium as the relay too.

Signed callbacks come by the clock, RATE a second, whether answers come or not; each pays one payment. A consumer waits for
its first event. Both paths are the same processes but for the relay.
"""

import contextlib
import itertools
import subprocess

import machine
from ground import Ground, servers
from ingest import Bench as Callbacks
from payfact_stack import wait_for
from procs import Process, free_port

RATE, SECONDS, WARM_UP_S = 2000, 8, 5  # bench-http does not count the warm-up


class Debezium:
    """Kafka Connect with one connector. Its replication slot goes with it: a database with a slot cannot be dropped."""

    def __init__(self, ground, prefix):
        self.ground, self.here = ground, ground.here / "debezium"
        libs = subprocess.run([self.here / "fetch.sh"], capture_output=True, text=True, check=True).stdout.split()[-1]
        java = subprocess.run(["bash", "-c", f'. "{servers.STACK}/lib.sh"; find_java 17'], capture_output=True, text=True,
                              check=True, cwd=servers.STACK).stdout.strip()  # fmt: skip
        words = {"PG_PORT": ground.postgres.port, "DATABASE": ground.database, "PREFIX": prefix, "BROKERS": ground.brokers,
                 "REST_PORT": free_port(), "DIR": ground.dir}  # fmt: skip
        files = [self._fill(name, words) for name in ("worker", "connector")]
        argv = [java, "-Xmx512m", "-XX:+UseParallelGC", "-XX:-UsePerfData", "-cp", f"{libs}/*",
                f"-Dlog4j2.configurationFile={servers.STACK}/log4j2.properties",
                "org.apache.kafka.connect.cli.ConnectStandalone", *files]  # fmt: skip
        self.process = Process(f"debezium-{prefix}", argv, ground.dir)

    def _fill(self, name, words):
        text = (self.here / f"{name}.properties.in").read_text()
        for word, value in words.items():
            text = text.replace(f"@{word}@", str(value))
        path = self.ground.dir / f"{name}.properties"
        path.write_text(text)
        return path

    def start(self):
        (self.ground.dir / "debezium.offsets").unlink(missing_ok=True)
        self.process.start()
        wait_for("Debezium streams", lambda: "Starting streaming" in self.process.tail(200) or not self.process.alive(), 120)
        if not self.process.alive():
            raise RuntimeError(f"Debezium ended: {self.process.tail()}")

    def cpu_s(self):
        (row,) = self.ground.sql("SELECT active_pid AS pid FROM pg_replication_slots WHERE slot_name = 'bench'")
        return machine.cpu_s(self.process.pid) + machine.cpu_s(row["pid"])

    def memory_mb(self):
        return machine.memory_mb(self.process.pid)

    def stop(self):
        self.process.stop()
        free = "SELECT FROM pg_replication_slots WHERE slot_name = 'bench' AND active"
        wait_for("its slot is free", lambda: not self.ground.sql(free), 60)
        self.ground.sql("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'bench'")


class Publisher:
    def __init__(self, ground, prefix):
        self.ground = ground
        self.service = ground.service("publisher", TOPIC_PREFIX=prefix)

    def start(self):
        self.service.start()

    def cpu_s(self):
        return machine.cpu_s(self.service.pid) + self.ground.backends_cpu_s("payfact-publisher")

    def memory_mb(self):
        return machine.memory_mb(self.service.pid)

    def stop(self):
        self.service.stop()


class Path:
    """What one run has shown."""


class Bench:
    numbers = itertools.count(1)

    def __init__(self, ground, rate, seconds):
        self.ground, self.rate, self.count = ground, rate, rate * (seconds + WARM_UP_S)
        self.callbacks = Callbacks(ground, 1)

    def run(self, make_relay):
        number = next(self.numbers)
        ground, prefix = self.ground, f"path{number}."
        ground.fresh_database()
        ground.sql("CREATE PUBLICATION bench FOR TABLE payment_outbox WITH (publish = 'insert')")
        ground.make_topics(prefix)
        with contextlib.ExitStack() as stack:
            relay = make_relay(ground, prefix)
            stack.callback(relay.stop)
            relay.start()
            services = {name: ground.service(name, TOPIC_PREFIX=prefix) for name in ("processor", "recovery")}
            # The database is a former one: what Redis knows of the last run's callbacks is not in it.
            services["webhook"] = ground.service("webhook", TOPIC_PREFIX=prefix, DEDUPE_EPOCH=number)
            for service in services.values():
                service.start()
                stack.callback(service.stop)
            return self._load(relay, services, prefix)

    def _cpu(self, relay, services):
        used = {name: machine.cpu_s(service.pid) for name, service in services.items()}
        return {**used, "relay": relay.cpu_s(), "backends": self.ground.backends_cpu_s("payfact-processor"),
                "broker": machine.cpu_s(self.ground.kafka.pid)}  # fmt: skip

    def _load(self, relay, services, prefix):
        before = self._cpu(relay, services)
        self.callbacks.next = 0  # the payments of the mould, from the first
        said = self.callbacks.post(services["webhook"].env["PAYFACT_HTTP_PORT"], self.count, self.rate, self.ground.brokers,
                                   prefix + "events")  # fmt: skip
        if said["arrived"] != self.count:
            raise RuntimeError(f"{said['arrived']:.0f} of {self.count} events have come")
        after = self._cpu(relay, services)
        path = Path()
        path.cpu = {name: (after[name] - before[name]) / self.count * 1e6 for name in after}
        path.p50, path.p99, path.answer_p99 = said["event_ms_p50"], said["event_ms_p99"], said["answer_ms_p99"]
        path.memory = {name: machine.memory_mb(service.pid) for name, service in services.items()}
        path.memory["relay"] = relay.memory_mb()
        return path


def measure(report, rounds, scale):
    rate, seconds = RATE, max(round(SECONDS * scale), 2)
    with Ground(conf="wal_level = logical", payments=rate * (seconds + WARM_UP_S), http=True) as ground:
        bench = Bench(ground, rate, seconds)
        p50 = report.figure("E1", f"callback → event downstream at {rate:,}/s, p50", "ms", "≤ 12", 12, at_least=False)
        p99 = report.figure("E1", "the same, p99", "ms", "≤ 40", 40, at_least=False)
        answer = report.figure("", "callback → its answer, p99", "ms")
        ratio = report.figure("E1", "p99, times the baseline's", "×", "≤ 1", 1, at_least=False,
                              baseline="Debezium (poll.interval.ms=10) as the relay")  # fmt: skip
        cpu_ratio = report.figure("E1", "CPU of the whole path, share of the baseline's", "", "≤ 0.5", 0.5, at_least=False,
                                  baseline="the same path with Debezium")  # fmt: skip
        their_p50 = report.figure("", "with Debezium, p50", "ms")
        their_p99 = report.figure("", "with Debezium, p99", "ms")
        cpu = report.figure("", "CPU of the whole path, one callback", "µs")
        parts = {name: report.figure("", f"… of which {name}", "µs") for name in
                 ("webhook", "processor", "backends", "relay", "recovery", "broker")}  # fmt: skip
        their_cpu = report.figure("", "CPU of the whole path with Debezium, one callback", "µs")
        their_relay = report.figure("", "… of which Debezium and its walsender", "µs")
        limits = (("webhook", "ingest", 32), ("processor", "processor", 64), ("relay", "publisher", 40), ("recovery", "recovery", 16))
        memory = {name: report.figure("M1", f"{what}, most memory", "MB", f"≤ {limit}", limit, at_least=False)
                  for name, what, limit in limits}  # fmt: skip
        their_memory = report.figure("", "Debezium, most memory (-Xmx512m)", "MB")
        for _ in range(rounds):
            report.note_load()
            ours = bench.run(Publisher)
            theirs = bench.run(Debezium)
            p50.add(ours.p50)
            ratio.add(p99.add(ours.p99) / their_p99.add(theirs.p99))
            their_p50.add(theirs.p50)
            answer.add(ours.answer_p99)
            cpu_ratio.add(cpu.add(sum(ours.cpu.values())) / their_cpu.add(sum(theirs.cpu.values())))
            their_relay.add(theirs.cpu["relay"])
            for name, figure in parts.items():
                figure.add(ours.cpu[name])
            for name, figure in memory.items():
                figure.add(ours.memory[name])
            their_memory.add(theirs.memory["relay"])
