# SPDX-License-Identifier: Apache-2.0
"""One worker: a PostgreSQL and a broker of its own, which live over many seeds; a seed and the name of its folder of logs come
as a line of standard input, one result a seed goes out as one line of JSON. Started by campaign.py."""

import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys

import psycopg2

import servers
from clocks import Clock
from payfact_stack import build_dir, clean_environment
from run import Run
from schedule import schedule_of


# A killed broker's name is free again, and another leads its partitions, after this instead of 9 s.
BROKER = "broker.session.timeout.ms=2000\nbroker.heartbeat.interval.ms=300\n"


class CrashServers(servers.Servers):
    """What a seed may stop: nobody else uses it."""

    def __init__(self):
        super().__init__()
        with servers.signals_held():
            self.work = servers.work_dir()
        self.pg, self.kafka = servers.Postgres(self.work / "pg"), None
        self.pg_clock = Clock(self.work, "database")
        conf = self.work / "broker.properties"
        conf.write_text(BROKER)
        os.environ.update(CONF=str(conf), FAST="1")  # read by the scripts that start brokers

    def __enter__(self):
        try:
            self.start_pg()
            self._make_roles()
            self.use_kafka(cluster=False)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        for server in (self.kafka, self.pg):
            if server:
                server.stop()
        shutil.rmtree(self.work, ignore_errors=True)

    def _make_roles(self):
        """The roles are the cluster's: a first database brings them, so that a seed may start without its schema."""
        self.admin("CREATE DATABASE roles")
        run = subprocess.run([build_dir() / "bin" / "payfactctl", "migrate"], capture_output=True, text=True,
                             env={**clean_environment(), "PAYFACT_PG_CONNINFO": f"{self.pg_conninfo} dbname=roles"})  # fmt: skip
        if run.returncode != 0:
            raise RuntimeError(f"payfactctl migrate: {run.stderr}")

    def start_pg(self):
        self.pg.start(**self.pg_clock.env())

    def use_kafka(self, cluster):
        """Three brokers and one are not there at the same time: memory and the cores are few."""
        wanted = servers.KafkaCluster if cluster else servers.ApacheKafka
        if not isinstance(self.kafka, wanted):
            if self.kafka:
                self.kafka.stop()
            self.kafka = wanted(self.work / wanted.__name__)
            self.kafka.start()

    def mend(self):
        """A seed that failed in the middle may have left a server away."""
        try:
            self.admin("SELECT 1")
        except psycopg2.OperationalError:
            self.start_pg()
        self.pg_clock.set(0)
        for address in self.kafka_brokers.split(","):
            host, port = address.split(":")
            try:
                socket.create_connection((host, int(port)), 5).close()
            except OSError:
                self.kafka.stop()
                self.kafka.start()
                return

    @property
    def pg_conninfo(self):
        return self.pg.conninfo

    @property
    def kafka_brokers(self):
        return self.kafka.brokers

    @property
    def kafka_replication(self):
        return self.kafka.replication


def _end(number, frame):
    raise SystemExit(128 + number)  # by way of everything that was started


def main():
    signal.signal(signal.SIGTERM, _end)
    keep, always = pathlib.Path(sys.argv[1]), sys.argv[2:] == ["always"]
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # nothing else writes among the results
    with CrashServers() as running:
        for line in sys.stdin:
            seed, name = line.split()
            schedule = schedule_of(int(seed))
            running.use_kafka(schedule.cluster)
            result = Run(schedule, running, keep / name, always)()
            if result.problems:
                running.mend()
            print(json.dumps({"seed": result.seed, "problems": result.problems, "hits": [str(h) for h in result.hits],
                              "ends": result.ends, "phases": result.phases}), file=out)  # fmt: skip


if __name__ == "__main__":
    main()
