# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL, Redis and a broker: started here, or those that scripts/test names in PAYFACT_TEST_PG and _KAFKA."""

import contextlib
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile

import psycopg2

from procs import Process, free_port, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[3]
STACK = ROOT / "tests" / "support" / "stack"
TOPICS = ("notifications", "commands", "inputs", "psp-jobs", "events", "dlq")


WORK_PREFIX = "payfact-test."  # of temporary folders


@contextlib.contextmanager
def signals_held():
    """A signal is answered at the end: between making a thing and noting that it must go away again there is no gap."""
    asked = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, asked)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def work_dir():
    """A temporary folder that the user postgres can enter when this runs as root. Call it with signals_held()."""
    for base in (None, "/tmp", "/var/tmp"):
        path = pathlib.Path(tempfile.mkdtemp(prefix=WORK_PREFIX, dir=base))
        try:
            path.chmod(0o711)
            script("pg.sh", "check", path / "pg")
            return path
        except RuntimeError as error:
            why = error
            shutil.rmtree(path)
        except BaseException:
            shutil.rmtree(path)
            raise
    raise why


def script(name, *arguments, **env):
    """Run a script of stack/ to its end. Ctrl-C does not reach it, and is answered when it has ended: what it starts is
    then either not there or can be stopped."""
    run = subprocess.Popen([STACK / name, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, env={**os.environ, **env}, start_new_session=True)  # fmt: skip
    try:
        output = run.communicate()[0]
    except BaseException:
        run.communicate()
        raise
    if run.returncode != 0:
        raise RuntimeError(f"{name} {' '.join(map(str, arguments))}: {output[-2000:]}")


class Postgres:
    def __init__(self, directory):
        self.directory, self.port = directory, free_port()

    def start(self, **env):
        """Also after crash() and halt(). env: of the server's processes."""
        script("pg.sh", "start", self.directory, self.port, PG_CONF="fsync = off", **env)
        self.conninfo = f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"
        return self

    def crash(self):
        """No checkpoint, nobody is asked: what was not committed is gone."""
        script("pg.sh", "crash", self.directory)

    def halt(self):
        script("pg.sh", "stop", self.directory)

    def stop(self):
        script("pg.sh", "wipe", self.directory)


class ApacheKafka:
    kind = "apache"
    replication = 1

    def __init__(self, directory, settings=""):
        """settings: more lines for its server.properties."""
        self.directory, self.port = directory, free_port(2)  # the controller listens on the next one
        self._settings = settings

    def start(self):
        script("kafka-fetch.sh")
        env = {}
        if self._settings:
            env["CONF"] = str(self.directory) + ".conf"
            pathlib.Path(env["CONF"]).write_text(self._settings)
        script("kafka-single.sh", "start", self.directory, self.port, **env)
        self.brokers = f"127.0.0.1:{self.port}"
        return self

    def crash(self):
        script("kafka-single.sh", "kill", self.directory, self.port)

    def halt(self):
        script("kafka-single.sh", "stop", self.directory)

    def stop(self):
        script("kafka-single.sh", "wipe", self.directory)


class KafkaCluster:
    """Three nodes, each record on all of them, acknowledged by two."""

    kind = "apache"
    replication = 3

    def __init__(self, directory):
        self.directory, self.base = directory, free_port(6) - 1

    def start(self):
        script("kafka-fetch.sh")
        script("kafka-cluster3.sh", "start", self.directory, self.base)
        self.brokers = ",".join(f"127.0.0.1:{self.base + node}" for node in (1, 2, 3))
        return self

    def crash(self, node):
        script("kafka-cluster3.sh", "kill-node", self.directory, self.base, node)

    def restart(self, node):
        script("kafka-cluster3.sh", "start-node", self.directory, self.base, node)

    def stop(self):
        script("kafka-cluster3.sh", "wipe", self.directory, self.base)


class MockBroker:
    """The embedded broker; it knows its topics from the command line."""

    kind = "mock"

    def __init__(self, binary, log_dir, prefix, partitions):
        topics = [f"{prefix}{name}:{partitions}" for name in TOPICS]
        self.process = Process("mock-broker", [binary, *topics], log_dir)

    def start(self):
        self.process.start(stdout=subprocess.PIPE)
        ready = select.select([self.process.stdout], [], [], 15)[0]
        self.brokers = self.process.stdout.readline().decode().strip() if ready else ""
        if not self.brokers:
            raise RuntimeError(f"the mock broker did not start: {self.process.tail()}")
        return self

    def stop(self):
        self.process.stop()
        self.process.stdout.close()


class Redis:
    def __init__(self, directory):
        self.port = free_port()
        argv = ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--dir", directory]
        self.process = Process("redis", argv, directory)
        self.url = f"redis://127.0.0.1:{self.port}"

    def start(self):
        self.process.start()
        wait_for("redis answers", self._answers, 10)
        return self

    def _answers(self):
        return self._cli("ping").stdout.strip() == "PONG"

    def _cli(self, *words, check=False):
        return subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True, text=True, check=check,
                              start_new_session=True)  # fmt: skip

    def command(self, *words):
        return self._cli(*words, check=True).stdout.strip()

    def stop(self):
        self.process.stop()


class Servers:
    """What many tests share: one PostgreSQL cluster and one Apache Kafka, each started at first need. kafka_settings:
    lines for the server.properties of a broker that is started here in any case."""

    kafka_replication = 1  # of the topics on it

    def __init__(self, kafka_settings=""):
        self._work = None
        self._started = []
        self._pg = os.environ.get("PAYFACT_TEST_PG")
        self._kafka_settings = kafka_settings
        self._kafka = None if kafka_settings else os.environ.get("PAYFACT_TEST_KAFKA")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        while self._started:
            self._started.pop().stop()
        if self._work:
            shutil.rmtree(self._work, ignore_errors=True)

    def _start(self, make, name):
        with signals_held():
            self._work = self._work or work_dir()
        server = make(self._work / name)
        self._started.append(server)  # before start(): a half-started one is stopped too
        return server.start()

    @property
    def pg_conninfo(self):
        if not self._pg:
            self._pg = self._start(Postgres, "pg").conninfo
        return self._pg

    @property
    def kafka_brokers(self):
        if not self._kafka:
            self._kafka = self._start(lambda directory: ApacheKafka(directory, self._kafka_settings), "kafka").brokers
        return self._kafka

    def admin(self, statement):
        """Rows of a statement that runs by itself, as the superuser."""
        connection = psycopg2.connect(self.pg_conninfo)
        connection.autocommit = True
        try:
            cursor = connection.cursor()
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()
