# SPDX-License-Identifier: Apache-2.0
"""A right on a topic is taken from a service for a while (an operator's mistake) and given back. A broker's "you may not"
says nothing of the record: nothing is given up, nothing is dead, all of it arrives."""

import contextlib
import http.client

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from parts import partition_of, stripe_event, stripe_signature
from payfact_stack import ACCOUNT_A, MERCHANT, Servers, Stack, new_payment_id
from procs import wait_for
from psp_world import World
from test_publisher import Outbox

AUTHORIZER = """
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
"""
NOBODY = "User:ANONYMOUS"  # who everybody is on a listener without authentication
# WRITE: the broker refuses what is produced. ALL: not even the topic's partitions are told.
BOTH = pytest.mark.parametrize("right", [AclOperation.WRITE, AclOperation.ALL], ids=["write", "all"])


@pytest.fixture(scope="module")
def guarded():
    with Servers(kafka_settings=AUTHORIZER) as servers:
        yield servers


@pytest.fixture(scope="module")
def stack(guarded):
    settings = {"psp": {"RETRY_FIRST_MS": 20, "RETRY_MAX_MS": 40}, "recovery": {"POLL_MS": 50, "LEASE_MS": 1000}}
    with Stack(guarded, redis=False, settings=settings) as made:
        yield made


@pytest.fixture
def service(stack):
    """Starts a process that ends with its test, in order."""
    started = []

    def start(name):
        started.append(stack.service(name).start())
        return started[-1]

    yield start
    assert [process.stop() for process in started] == [0] * len(started)


@contextlib.contextmanager
def without(stack, right, *topics):
    """While it lasts nobody has the right on the topics. The broker has it in force when it is entered and left."""
    admin = AdminClient({"bootstrap.servers": stack.brokers})

    def acl(topic, operation, permission):
        return AclBinding(ResourceType.TOPIC, stack.topic_name(topic), ResourcePatternType.LITERAL, NOBODY, "*", operation, permission)

    anything = AclBindingFilter(ResourceType.TOPIC, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY)

    def in_force():
        return len(admin.describe_acls(anything).result(30))

    rules = [acl(topic, right, AclPermissionType.DENY) for topic in topics]
    rules += [acl(topic, AclOperation.ALL, AclPermissionType.ALLOW) for topic in topics]
    for topic in topics:  # the test's own reader would be refused as well; the next one reads from the beginning
        if reader := stack._topics.pop(topic, None):
            reader.close()
    for future in admin.create_acls(rules).values():
        future.result(30)
    wait_for("it is in force", lambda: in_force() == len(rules))
    try:
        yield
    finally:
        for future in admin.delete_acls([anything]).values():
            future.result(30)
        wait_for("it is given back", lambda: in_force() == 0)


def of(stack, topic, key):
    return [message for message in stack.records(topic) if message["key"] == key]


def dead_of(stack, key):
    return [message["record"] for message in stack.records("dlq") if message["record"]["key"] == key.encode()]


def left(stack, topic):
    """Records that the service that reads the topic has not committed."""
    return stack.lag()[stack.topic_name(topic)][0]


def says(process, event, times=3):
    before = len(process.log_lines(event))
    wait_for(f"{times} times {event}", lambda: len(process.log_lines(event)) >= before + times)


@BOTH
@pytest.mark.parametrize("topics", [("inputs",), ("inputs", "dlq")], ids=["inputs", "both"])
def test_the_relay_keeps_commands_and_refuses_none(stack, service, right, topics):
    relay = service("relay")
    first, last = new_payment_id(), [new_payment_id() for _ in range(20)]
    stack.command("CANCEL_PAYMENT", first, {"reason_code": "X"})
    wait_for("it relays", lambda: of(stack, "inputs", first))
    bad = new_payment_id()
    told = len(relay.log_lines("dead_letter"))
    wait_for("it is committed", lambda: left(stack, "commands") == 0)
    with without(stack, right, *topics):
        record = stack.upstream.command("CANCEL_PAYMENT", MERCHANT, bad, {"reason_code": "X"})
        stack.upstream.send(record, key_id="nobody's")  # a right dead letter among them
        for payment in last:
            stack.command("CANCEL_PAYMENT", payment, {"reason_code": "X"})
        says(relay, "batch_not_durable", 5)
        assert relay.metric("payfact_ingest_errors_total", part="kafka") >= 5
        assert relay.get("/readyz")[0] == 503
        assert relay.get("/healthz")[0] == 200
    for payment in last:
        wait_for("it arrives", lambda p=payment: of(stack, "inputs", p))
    wait_for("all are committed", lambda: left(stack, "commands") == 0)
    for payment in (first, *last):
        assert dead_of(stack, payment) == []
    letters = dead_of(stack, bad)
    assert {letter["reason_code"] for letter in letters} == {"KEY_UNKNOWN"}
    assert len(letters) <= 3, "the same letter goes out with every try"
    assert {line["reason"] for line in relay.log_lines("dead_letter")[told:]} == {"KEY_UNKNOWN"}
    wait_for("ready again", lambda: relay.get("/readyz")[0] == 200)


def test_a_dead_letter_that_may_not_be_written_is_written_when_it_may(stack, service):
    psp = service("psp")
    producer, key = Producer({"bootstrap.servers": stack.brokers}), new_payment_id()
    with without(stack, AclOperation.WRITE, "dlq"):
        producer.produce(stack.topic_name("psp-jobs"), key=key, value=b"no job at all")
        assert producer.flush(30) == 0
        says(psp, "dead_letter_not_kept")
        assert left(stack, "psp-jobs") == 1, "its offset is committed, and it is nowhere"
        assert psp.metric("payfact_ingest_errors_total", part="dead_letter") >= 3
    wait_for("it is kept", lambda: dead_of(stack, key))
    wait_for("and committed", lambda: left(stack, "psp-jobs") == 0)


@BOTH
def test_what_the_psp_said_is_kept_until_it_may_be_written(stack, service, right):
    psp, world = service("psp"), World(stack)
    job = world.gate(world.job())
    with without(stack, right, "inputs"):
        world.put(job)
        says(psp, "outcome_not_acknowledged")
        assert psp.metric("payfact_ingest_errors_total", part="kafka") >= 3
    world.wait_type(job, "ATTEMPT_SUCCEEDED")
    world.done()
    assert len(world.charges(job)) == 1
    assert dead_of(stack, job["payment_id"]) == []
    assert psp.log_lines("job_refused") == []


@BOTH
def test_a_callback_is_answered_when_it_may_be_written(stack, service, right):
    webhook, payment = service("webhook"), new_payment_id()
    secret = next(account["webhook_secret"] for account in stack.psp_accounts if account["id"] == ACCOUNT_A)
    body = stripe_event(payment)

    def callback():
        connection = http.client.HTTPConnection("127.0.0.1", int(webhook.env["PAYFACT_HTTP_PORT"]), timeout=20)
        headers = {"Stripe-Signature": stripe_signature(secret, body), "Content-Type": "application/json"}
        try:
            connection.request("POST", f"/callbacks/{ACCOUNT_A}", body, headers)
            return connection.getresponse().status
        finally:
            connection.close()

    with without(stack, right, "inputs"):
        assert [callback() for _ in range(3)] == [503] * 3  # the PSP sends it again
    wait_for("it is taken", lambda: callback() == 200)
    assert of(stack, "inputs", payment + "A01") or of(stack, "inputs", payment)


@BOTH
def test_the_publisher_kills_no_row_and_holds_no_other_topic(guarded, right):
    settings = {"REFUSE_FIRST_MS": 20, "REFUSE_MAX_MS": 40, "REFUSALS_MAX": 2}
    with Stack(guarded, redis=False, settings={"publisher": settings}) as stack:
        publisher, outbox = stack.service("publisher").start(), Outbox(stack)

        def errors():
            return publisher.metric("payfact_publisher_errors_total", part="kafka")

        outbox.add([outbox.row(f"E{i}") for i in range(8)])
        outbox.wait_empty()
        with without(stack, right, "events"):
            outbox.add([outbox.row(f"E{i % 8}") for i in range(400)])
            says(publisher, "topic_held", 1)
            outbox.add([outbox.row(f"J{i % 8}", "psp-jobs") for i in range(40)])
            wait_for("jobs go on", lambda: outbox.left("topic = 'psp-jobs'") == 0)
            wait_for("one tries now and then", lambda before=errors(): errors() >= before + 3)
            assert publisher.get("/readyz")[0] == 503
            assert publisher.get("/healthz")[0] == 200
            assert outbox.left("dead_at IS NOT NULL OR attempts > 0") == 0
            assert outbox.left() == 400
            assert len(publisher.log_lines("topic_held")) < 10, "it talks too much about it"
        outbox.wait_empty()
        assert outbox.check() == 0
        assert publisher.metric("payfact_publisher_refused_total") == 0
        assert publisher.metric("payfact_publisher_dead_total") == 0
        wait_for("ready again", lambda: publisher.get("/readyz")[0] == 200)
        assert publisher.log_lines("topic_free")
        assert publisher.stop() == 0


@BOTH
def test_a_deadline_is_told_when_it_may_be(stack, service, right):
    recovery, payment = service("recovery"), new_payment_id()
    with without(stack, right, "inputs"):
        stack.sql("INSERT INTO payment_deadline (due_at, kind, aggregate_id, payment_id) VALUES (now(), 'ORDER_EXPIRY', %s, %s)",
                  payment, payment)  # fmt: skip
        wait_for("it tries", lambda: recovery.metric("payfact_recovery_errors_total", part="kafka") >= 3)
        says(recovery, "deadlines_not_taken")
        assert recovery.metric("payfact_recovery_errors_total", part="deadline") == 0
    wait_for("it is told", lambda: of(stack, "inputs", payment))
    stack.sql("DELETE FROM payment_deadline")
