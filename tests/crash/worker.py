# SPDX-License-Identifier: Apache-2.0
"""One worker: a PostgreSQL and a broker of its own, which live over many seeds; seeds come on standard input, one result
a seed goes out as one line of JSON. Started by campaign.py."""

import json
import os
import pathlib
import shutil
import signal
import sys

import psycopg2

import servers
from run import Run
from schedule import schedule_of


class CrashServers:
    """What a seed may stop: nobody else uses it. Looks like payfact_stack.Servers."""

    def __init__(self):
        with servers.signals_held():
            self.work = servers.work_dir()
        self.pg, self.kafka = servers.Postgres(self.work / "pg"), None

    def __enter__(self):
        try:
            self.pg.start()
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

    def use_kafka(self, cluster):
        """Three brokers and one are not there at the same time: memory and the cores are few."""
        wanted = servers.KafkaCluster if cluster else servers.ApacheKafka
        if not isinstance(self.kafka, wanted):
            if self.kafka:
                self.kafka.stop()
            self.kafka = wanted(self.work / wanted.__name__)
            self.kafka.start()

    @property
    def pg_conninfo(self):
        return self.pg.conninfo

    @property
    def kafka_brokers(self):
        return self.kafka.brokers

    @property
    def kafka_replication(self):
        return self.kafka.replication

    def admin(self, statement):
        connection = psycopg2.connect(self.pg_conninfo)
        connection.autocommit = True
        try:
            connection.cursor().execute(statement)
        finally:
            connection.close()


def _end(number, frame):
    raise SystemExit(128 + number)  # by way of everything that was started


def main():
    signal.signal(signal.SIGTERM, _end)
    keep, always = pathlib.Path(sys.argv[1]), sys.argv[2:] == ["always"]
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # nothing else writes among the results
    with CrashServers() as running:
        for line in sys.stdin:
            schedule = schedule_of(int(line))
            running.use_kafka(schedule.cluster)
            result = Run(schedule, running, keep, always)()
            print(json.dumps({"seed": result.seed, "problems": result.problems, "hits": [str(h) for h in result.hits],
                              "ends": result.ends, "phases": result.phases}), file=out)  # fmt: skip


if __name__ == "__main__":
    main()
