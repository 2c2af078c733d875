# SPDX-License-Identifier: Apache-2.0
"""Servers go away under load, disks fill, the month changes: memory stays, drains end, nothing is lost.

These tests stop PostgreSQL and Kafka, so both are their own.
"""

import concurrent.futures
import contextlib
import datetime
import os
import subprocess
import time
import urllib.error
import urllib.request

import pytest
from confluent_kafka import KafkaException

from clocks import Clock
from payfact_stack import ACCOUNT_A, SERVICES, Servers, Stack, wait_for
from servers import ApacheKafka, Postgres
from story import answers, attempt, earlier_event

MEGABYTE = 1 << 20
GROWTH_MAX = 16 * MEGABYTE  # of a service's resident memory while a server is away
DRAIN_S = 20  # PAYFACT_DRAIN_MS_MAX's default


class OwnServers(Servers):
    def __init__(self):
        super().__init__()
        self._pg = self._kafka = None  # scripts/test's servers are everybody's

    def __enter__(self):
        self.pg = self._start(Postgres, "pg")
        self.kafka = self._start(ApacheKafka, "kafka")
        self._pg, self._kafka = self.pg.conninfo, self.kafka.brokers
        return self


@pytest.fixture(scope="module")
def own():
    with OwnServers() as started:
        yield started


@pytest.fixture
def running(own):
    with Stack(own) as stack:
        stack.start()
        yield stack


def warm(stack, count=20):
    """Every path was gone once: what is allocated at first use is there."""
    payments = [stack.pay(1000 + number, "EUR") for number in range(count)]
    for payment in payments:
        stack.wait_event(payment, "PaymentSucceeded", 60)
    stack.idle()
    return payments


def resident(stack):
    return {name: stack.service(name).metric("process_resident_memory_bytes") for name in SERVICES}


def assert_no_growth(before, after):
    grown = {name: round((after[name] - before[name]) / MEGABYTE, 1) for name in before}
    print("resident memory grew by (MB):", grown)
    assert all(after[name] > 0 and after[name] - before[name] <= GROWTH_MAX for name in before), grown


def orders(stack, count):
    """Orders without an attempt: everything but the PSP's part."""
    return [stack.pay(1000 + number, "EUR", start=False) for number in range(count)]


def topics_are_back(stack):
    def readable():
        try:
            return [stack.records(topic) for topic in ("inputs", "events", "dlq")]
        except KafkaException:
            return None

    wait_for("the topics are back", readable, 60)


def assert_all_created(stack, payments):
    topics_are_back(stack)

    def created():
        return {e["payment_id"] for e in stack.consume_events(kind="PaymentCreated")} >= set(payments)

    wait_for("every order is created", created, 120)
    stack.idle()
    assert stack.audit() == []


def test_memory_stays_while_postgresql_is_away(own, running):
    warm(running)
    before = resident(running)
    own.pg.halt()
    try:
        relayed = len(running.records("inputs"))
        payments = orders(running, 3000)
        wait_for("the relay goes on without a database", lambda: len(running.records("inputs")) >= relayed + 3000, 120)
        wait_for("the processor says so", lambda: running.service("processor").get("/readyz")[0] == 503)
        tries = len(running.service("processor").log_lines())
        after = resident(running)
        assert all(running.service(name).get("/healthz")[0] == 200 for name in SERVICES)
        assert tries < 500, "a server that is away is asked again with backoff"
    finally:
        own.pg.start()
    assert_no_growth(before, after)
    assert_all_created(running, payments)


def flood(stack, bodies, body_bytes):
    """Unsigned callbacks with large bodies, many at once; their statuses."""
    url = f"http://127.0.0.1:{stack.http_port}/callbacks/{ACCOUNT_A}"

    def one(number):
        request = urllib.request.Request(url, data=b"x" * body_bytes, headers={"Stripe-Signature": "t=1,v1=00"})
        try:
            return urllib.request.urlopen(request, timeout=30).status
        except urllib.error.HTTPError as error:
            return error.code

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        return list(pool.map(one, range(bodies)))


def test_memory_stays_while_kafka_is_away(own, running):
    paid = warm(running)
    payments = orders(running, 200)
    late = [earlier_event(running, ACCOUNT_A, attempt(payment), "payment_intent.processing", "processing") for payment in paid]
    before = resident(running)
    own.kafka.halt()
    try:
        statuses = flood(running, 2000, 60000)
        assert set(statuses) <= {400, 401, 429, 503}, set(statuses)
        for event in late:
            assert answers(running.psp.callback(account=ACCOUNT_A, event=event)) == [503], "it is to be sent again"
        after = resident(running)
        assert all(running.service(name).get("/healthz")[0] == 200 for name in SERVICES)
    finally:
        own.kafka.start()
    assert_no_growth(before, after)
    assert_all_created(running, payments)


def test_a_drain_ends_within_its_bound_when_the_servers_are_gone(own, running):
    orders(running, 50)
    own.kafka.halt()
    own.pg.halt()
    try:
        for name in SERVICES:
            running.service(name).ask_to_stop()
        asked = time.monotonic()
        codes = {name: running.service(name).stop() for name in SERVICES}
        took = time.monotonic() - asked
        print("drained in", round(took, 1), "s:", codes)
        assert took < DRAIN_S + 5
        assert all(code in (0, 1) for code in codes.values()), codes
        assert all(running.service(name).log_lines("service_stopped") for name in SERVICES)
    finally:
        own.pg.start()
        own.kafka.start()
    for name in SERVICES:  # who could not say good-bye is waited for by the group, up to its session time-out
        running.service(name).start(ready=False)
    for name in SERVICES:
        running.service(name).wait_ready(120)
    topics_are_back(running)
    warm(running, 5)
    assert running.audit() == []


@contextlib.contextmanager
def small_disk(own, megabytes):
    """A tablespace on a disk of its own, which only root can have; grow(megabytes) makes it larger."""
    folder = own.pg.directory / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    subprocess.run(mount, check=True)
    try:
        subprocess.run(["chown", "postgres:", str(folder)], check=True)
        folder.chmod(0o700)
        own.admin(f"CREATE TABLESPACE small LOCATION '{folder}'")
        yield lambda more: subprocess.run(["mount", "-o", f"remount,size={more}m", str(folder)], check=True)
        own.admin("DROP TABLESPACE small")
    finally:
        subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


def fill(stack, grow):
    """The outbox has no room from now on; returns what makes room again. Where nobody is root (no `grow`), its writes are
    refused with the code of a full disk."""
    if grow:
        stack.sql("ALTER TABLE payment_outbox SET TABLESPACE small")
        return lambda: grow(64)
    stack.sql("CREATE FUNCTION payfact.full_disk() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
              " RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END$$")  # fmt: skip
    stack.sql("CREATE TRIGGER full_disk BEFORE INSERT ON payment_outbox EXECUTE FUNCTION payfact.full_disk()")
    return lambda: stack.sql("DROP TRIGGER full_disk ON payment_outbox")


def test_a_full_disk_stops_and_loses_nothing(own):
    disk = small_disk(own, 1) if os.geteuid() == 0 else contextlib.nullcontext()
    with disk as grow, Stack(own) as stack:
        stack.start()
        warm(stack)
        before = resident(stack)
        stack.service("publisher").stop()  # nothing makes room
        make_room = fill(stack, grow)
        payments = orders(stack, 1500)
        wait_for("the disk is full", lambda: any("53100" in str(row) or "No space" in str(row)
                                                 for row in stack.service("processor").log_lines()), 60)  # fmt: skip
        refused = stack.sql("SELECT count(*) AS n FROM payment_order")[0]["n"]
        assert refused < len(payments), "the rest waits"
        after = {**resident(stack), "publisher": before["publisher"]}
        assert stack.service("processor").alive() and stack.records("dlq") == [], "a full disk is nobody's poison"
        make_room()
        stack.service("publisher").start()
        assert_no_growth(before, after)
        assert_all_created(stack, payments)


def test_the_month_changes_under_load(own):
    """The month is the database's clock: it is set to the last seconds of a month."""
    now = datetime.datetime.now(datetime.UTC)
    first = (now.replace(day=1) + datetime.timedelta(days=32)).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    clock = Clock(own.pg.directory.parent, "database")
    own.pg.halt()
    try:
        own.pg.start(**clock.env())
        clock.set(int((first - datetime.datetime.now(datetime.UTC)).total_seconds() * 1000) - 25000)
        with Stack(own) as stack:
            stack.start()
            later = (first + datetime.timedelta(days=7)).timestamp()
            payments = []

            def month():
                return stack.sql("SELECT date_trunc('month', now() AT TIME ZONE 'UTC')::date AS month")[0]["month"]

            assert month() < first.date(), "started too late for the change"
            after = 0
            while after < 5:  # some before the change, and some begin after it
                after += month() == first.date()
                payments.append(stack.pay(1000, "EUR", expires_at=int(later * 1e6)))
                stack.wait_event(payments[-1], "PaymentSucceeded", 60)
            assert len(payments) > after
            stack.idle()
            assert stack.audit() == []
            months = stack.sql("SELECT DISTINCT date_trunc('month', decided_at AT TIME ZONE 'UTC')::date AS month"
                               " FROM payment_state_history")  # fmt: skip
            assert len(months) == 2, months
            assert all(stack.service(name).get("/readyz")[0] == 200 for name in SERVICES)
    finally:
        if (own.pg.directory / "data" / "postmaster.pid").exists():
            own.pg.halt()
        own.pg.start()
