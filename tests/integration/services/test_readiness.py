# SPDX-License-Identifier: Apache-2.0
"""/readyz says what is usable now, of an idle process too: nothing was produced, consumed or decided that could have shown it."""

import json

import psycopg2
import pytest

from payfact_stack import Stack
from procs import wait_for

EVERY = ("webhook", "relay", "psp", "processor", "publisher", "recovery")
WITH_DATABASE = ("psp", "processor", "publisher", "recovery")


@pytest.fixture()
def stack(servers):
    with Stack(servers, redis=False, broker="mock") as made:
        yield made


def says(service, status, part=None):
    """/readyz answers so; with a part: it is the one that is not usable."""

    def check():
        answered, text = service.get("/readyz")
        bad = [check["name"] for check in json.loads(text)["checks"] if not check["ready"]] if answered else []
        return answered == status and (part is None or part in bad)

    return check


@pytest.mark.parametrize("name", EVERY)
def test_an_idle_process_notices_that_the_broker_went_and_came(stack, name):
    service = stack.service(name).start()
    stack.broker.process.freeze()
    try:
        wait_for("not ready", says(service, 503, "kafka"))
        wait_for("it says so", lambda: service.log_lines("kafka_away"))
        assert service.get("/healthz")[0] == 200, "an outage restarts nobody"
    finally:
        stack.broker.process.thaw()
    wait_for("ready", says(service, 200))
    wait_for("it says so", lambda: service.log_lines("kafka_answers"))


@pytest.mark.parametrize("name", ("relay", "psp", "processor"))
def test_a_drain_beside_a_broker_that_is_gone_ends_in_order(servers, name):
    """The group is not left in time; the client's threads are left to the process, which ends without exit handlers."""
    with Stack(servers, redis=False, broker="mock", settings={name: {"DRAIN_MS_MAX": 6000}}) as stack:
        service = stack.service(name).start()
        stack.broker.process.freeze()
        try:
            assert service.stop() == 0
        finally:
            stack.broker.process.thaw()
        (last,) = service.log_lines("service_stopped")
        assert last["in_order"] and last["threads_left"]
        assert not service.log_lines("drain_too_long")


def shut(stack, is_shut):
    with psycopg2.connect(stack.servers.pg_conninfo) as admin:
        admin.autocommit = True
        with admin.cursor() as cursor:
            cursor.execute(f"ALTER DATABASE {stack.database} WITH ALLOW_CONNECTIONS {not is_shut}")
            if is_shut:
                cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (stack.database,))


@pytest.mark.parametrize("name", WITH_DATABASE)
def test_an_idle_process_notices_that_the_database_went_and_came(stack, name):
    service = stack.service(name).start()
    shut(stack, True)
    try:
        wait_for("not ready", says(service, 503, "database"))
        wait_for("it says so", lambda: service.log_lines("database_away"))
        assert service.get("/healthz")[0] == 200
    finally:
        shut(stack, False)
    wait_for("ready", says(service, 200))
