# SPDX-License-Identifier: Apache-2.0
"""No service works on a schema that is older than its binary, or on none: it says what to do, and goes on when that was done."""

import pytest

from payfact_stack import Stack
from procs import wait_for


@pytest.fixture()
def stack(servers):
    with Stack(servers, redis=False) as made:
        yield made


def says(service, text):
    return lambda: [line for line in service.log_lines("database_away") if text in line.get("err", "")]


@pytest.mark.parametrize("name", ["publisher", "recovery", "processor", "psp"])
def test_an_older_schema_is_waited_for(stack, name):
    (latest,) = stack.sql("DELETE FROM schema_migration WHERE version = (SELECT max(version) FROM schema_migration) RETURNING *")
    service = stack.service(name).start(ready=False)
    wait_for("it says why", says(service, "the schema is older than this binary: run payfactctl migrate"))
    status, text = service.get("/readyz")
    assert status == 503 and "database" in text
    stack.sql("INSERT INTO schema_migration (version, name, checksum) VALUES (%s, %s, %s)",
              latest["version"], latest["name"], bytes(latest["checksum"]))  # fmt: skip
    service.wait_ready()


@pytest.mark.parametrize("name", ["publisher", "recovery", "processor", "psp"])
def test_no_schema_is_waited_for(stack, name):
    stack.sql("ALTER SCHEMA payfact RENAME TO elsewhere")
    service = stack.service(name).start(ready=False)
    wait_for("it says why", says(service, "there is no payfact schema: run payfactctl migrate"))
    assert service.get("/readyz")[0] == 503
    stack.sql("ALTER SCHEMA elsewhere RENAME TO payfact")
    service.wait_ready()


def test_recovery_makes_the_partitions_that_it_would_wait_for(stack):
    for table in stack.sql("SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid ="
                           " i.inhparent WHERE p.relname IN ('channel_event', 'payment_state_history') AND c.relname > p.relname ||"
                           " to_char(now() AT TIME ZONE 'UTC', '_YYYYMM')"):  # fmt: skip
        stack.sql(f"DROP TABLE {table['relname']}")
    processor = stack.service("processor").start(ready=False)
    wait_for("it says why", says(processor, "next month's partitions are missing"))
    stack.service("recovery").start()
    processor.wait_ready()
