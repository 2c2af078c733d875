# SPDX-License-Identifier: Apache-2.0
"""Where a bench happens: PostgreSQL that really syncs, one Apache Kafka, payfact's accounts, payments to work on.

The database is made once and copied for every run, so that each finds the same rows in the same places; the topic is
filled once and read again from its beginning.
"""

import contextlib
import os
import pathlib
import subprocess
import time

import psycopg2
from confluent_kafka import Consumer, ConsumerGroupState, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

import machine
import servers
from payfact_stack import ACCOUNT_A, CALLER, Stack, build_dir, wait_for
from procs import Process, free_port

PARTITIONS = 12
PG_CONF = """
shared_buffers = 512MB
max_wal_size = 8GB
checkpoint_timeout = 30min
track_commit_timestamp = on
"""
# The emulated disk of the design: each commit takes one millisecond longer.
SLOW_DISK, FAST_DISK = {"commit_delay": "900", "commit_siblings": "0"}, {"commit_delay": "0", "commit_siblings": "5"}
POSTGRES_BIN = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))[-1]


class Postgres(servers.Postgres):
    def __init__(self, directory, conf):
        super().__init__(directory)
        self.conf = conf

    def start(self):
        servers.script("pg.sh", "start", self.directory, self.port, PG_CONF=PG_CONF + self.conf)
        self.conninfo = f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"
        return self


class Kafka(servers.ApacheKafka):
    def start(self):
        os.environ["HEAP"] = "1g"
        return super().start()

    @property
    def pid(self):
        return int((self.directory / "pid").read_text())


def tool(name, *arguments, timeout_s=600):
    """Run one of the bench programs; its name=value pairs as numbers."""
    argv = [str(a) for a in (build_dir() / "bench" / name, *arguments)]
    run = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)[:300]} ended with {run.returncode}: {run.stderr[-800:]}")
    return pairs(run.stdout)


def pairs(text):
    return {name: float(value) for name, value in (word.split("=") for word in text.split() if "=" in word)}


class Ground(contextlib.ExitStack):
    """with Ground() as ground: ..."""

    here = pathlib.Path(__file__).resolve().parent

    def __init__(self, conf="", payments=0, http=False, edit=None):
        super().__init__()
        self._conf, self._payments, self._edit, self._http = conf, payments, edit, http
        self._services = 0

    def __enter__(self):
        super().__enter__()
        try:
            with servers.signals_held():
                self.dir = servers.work_dir()
                self.callback(lambda: subprocess.run(["rm", "-rf", str(self.dir)], check=True))
            self.postgres = Postgres(self.dir / "pg", self._conf)
            self.callback(self.postgres.stop)
            self.postgres.start()
            self.kafka = Kafka(self.dir / "kafka")
            self.callback(self.kafka.stop)
            self.kafka.start()
            os.environ["PAYFACT_TEST_PG"] = self.postgres.conninfo
            os.environ["PAYFACT_TEST_KAFKA"] = self.kafka.brokers
            self.stack = self.enter_context(
                Stack(servers.Servers(), redis=self._http, partitions=PARTITIONS, edit=self._accounts))  # fmt: skip
            self.brokers, self.database = self.stack.brokers, self.stack.database
            self._make_payments()
            return self
        except BaseException:
            self.close()
            raise

    def _accounts(self, document):
        for account in document["psp_accounts"]:
            account["limits"].update(callbacks_per_s=100000)
        if self._edit:
            self._edit(document)

    # ---- the database

    def sql(self, statement, *parameters):
        return self.stack.sql(statement, *parameters)

    def admin(self, *statements):
        self.autocommit(*statements, database="postgres")

    def autocommit(self, *statements, database=None):
        """Statements that will not stand in a transaction."""
        connection = psycopg2.connect(self.postgres.conninfo.replace("dbname=postgres", f"dbname={database or self.database}"))
        connection.autocommit = True
        try:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
        finally:
            connection.close()

    def conninfo(self, user="postgres"):
        return f"host=127.0.0.1 port={self.postgres.port} user={user} dbname={self.database}"

    def set_disk(self, disk):
        for name, value in disk.items():
            self.admin(f"ALTER SYSTEM SET {name} = {value}")
        self.admin("SELECT pg_reload_conf()")

    def _make_payments(self):
        """Payments as they are while the customer's money is awaited; then the database becomes the mould of all runs."""
        if self._payments:
            self.make_topics("made.")
            self.fill("made.", "create", 0, self._payments, self.stack.signers[CALLER].private)
            run = self.processor("made.")
            run.start()
            wait_for("the payments are made", lambda: run.decided() >= self._payments, 600, pause_s=0.2)
            run.stop()
            self.sql("TRUNCATE payment_outbox")
            # Or recovery asks about all of them in a later round.
            self.sql("UPDATE payment_deadline SET due_at = due_at + interval '1 day'")
        self.admin(f"CREATE DATABASE mould TEMPLATE {self.database}")
        self.callback(self.admin, "DROP DATABASE mould")
        self.autocommit("CREATE EXTENSION pg_walinspect SCHEMA public", "VACUUM (ANALYZE)", "CHECKPOINT", database="mould")

    def fresh_database(self):
        self.admin(
            f"DROP DATABASE {self.database} WITH (FORCE)",
            f"CREATE DATABASE {self.database} TEMPLATE mould STRATEGY file_copy",
            "CHECKPOINT",
        )

    def wal(self):
        """What is on disk: pg_walinspect refuses a position that is only written (it is flushed in a moment, or by a commit)."""
        return int(self.sql("SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::int8 AS n")[0]["n"])

    def backends_cpu_s(self, name):
        rows = self.sql("SELECT pid FROM pg_stat_activity WHERE application_name = %s", name)
        return sum(machine.cpu_s(row["pid"]) for row in rows)

    # ---- topics

    def make_topics(self, prefix):
        admin = AdminClient({"bootstrap.servers": self.brokers})
        wanted = [NewTopic(prefix + name, num_partitions=PARTITIONS, replication_factor=1,
                           config={"message.timestamp.type": "LogAppendTime"} if name == "events" else {})
                  for name in servers.TOPICS]  # fmt: skip
        for made in admin.create_topics(wanted).values():
            made.result(30)

    def fill(self, prefix, kind, *arguments):
        return tool("bench-inputs", self.brokers, prefix + "inputs", kind, *arguments)

    def members(self, group):
        """How many members of the group have partitions, once all is shared."""
        admin = AdminClient({"bootstrap.servers": self.brokers})
        described = admin.describe_consumer_groups([group])[group].result(30)
        if described.state != ConsumerGroupState.STABLE:
            return 0
        return sum(1 for member in described.members if member.assignment.topic_partitions)

    def rewind(self, prefix):
        """The processor's group begins at the beginning again."""
        topic = prefix + "inputs"
        consumer = Consumer({"bootstrap.servers": self.brokers, "group.id": prefix + "processor"})
        offsets = [TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)]
        deadline = time.monotonic() + 60
        while True:
            try:
                consumer.commit(offsets=offsets, asynchronous=False)
                break
            except Exception:  # the last member's session may have to end first
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
        consumer.close()

    # ---- services

    def service(self, name, **settings):
        self._services += 1
        return self.stack.service(name, instance=f"{name}-{self._services}", **settings)

    def processor(self, prefix, **settings):
        return ProcessorRun(self, prefix, settings)

    @contextlib.contextmanager
    def recorder(self, directory):
        """A proxy before PostgreSQL; yields its port."""
        directory.mkdir()
        port = free_port()
        proxy = Process("recorder", [build_dir() / "bench" / "bench-tape", "record", port, self.postgres.port, directory],
                        self.dir)  # fmt: skip
        proxy.start()
        try:
            yield port
        finally:
            proxy.kill9()


class ProcessorRun:
    """One processor from its start to the last commit."""

    def __init__(self, ground, prefix, settings):
        self.ground = ground
        self.service = ground.service("processor", TOPIC_PREFIX=prefix, **settings)

    def start(self):
        self.service.start()

    def decided(self):
        return sum(self.service.metric(name) for name in
                   ("payfact_inputs_total", "payfact_duplicates_total", "payfact_dead_letters_total"))  # fmt: skip

    def stop(self):
        self.cpu_s = machine.cpu_s(self.service.pid)
        self.server_cpu_s = self.ground.backends_cpu_s("payfact-processor")
        self.memory_mb = machine.memory_mb(self.service.pid)
        code = self.service.stop()
        if code != 0:
            raise RuntimeError(f"the processor ended with {code}: {self.service.tail()}")


ACCOUNT = ACCOUNT_A
