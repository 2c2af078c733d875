# SPDX-License-Identifier: Apache-2.0
"""What was given up, from where it lies to where an operator's word brings it: payfactctl dlq and evidence, with the
rights of payfact_operator and nothing more."""

import json
import os
import stat
import subprocess

import psycopg2.extensions
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from payfact_stack import ACCOUNT_A, MERCHANT, build_dir, clean_environment, new_payment_id, wait_for
from story import answers, attempt, published

pytestmark = pytest.mark.redis_irrelevant
CARD = "4242424242424242"


def operators_login(stack):
    stack.servers.admin(
        "DO $$ BEGIN CREATE ROLE payfact_operator_login LOGIN IN ROLE payfact_operator; "
        "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
    )


def ctl(stack, *arguments, code=0):
    """payfactctl as an operator; its standard output, or its standard error where it is to fail."""
    base = psycopg2.extensions.parse_dsn(stack.ctl_environment()["PAYFACT_PG_CONNINFO"])
    conninfo = psycopg2.extensions.make_dsn(**{**base, "user": "payfact_operator_login"})
    env = {**clean_environment(), **stack.ctl_environment(), "PAYFACT_PG_CONNINFO": conninfo}
    run = subprocess.run([build_dir() / "bin" / "payfactctl", *map(str, arguments)], env=env, capture_output=True, text=True,
                         start_new_session=True)  # fmt: skip
    assert run.returncode == code, f"{arguments}: {run.returncode}, {run.stdout}{run.stderr}"
    return run.stdout if code == 0 else run.stderr


def dead(stack):
    return json.loads(ctl(stack, "dlq", "list", "--json"))


def shown(stack, name):
    return json.loads(ctl(stack, "dlq", "show", name, "--json"))


def act(stack, verb, name, *more, code=0, caller="operator-1"):
    signer = stack.signers[caller]
    return ctl(stack, "dlq", verb, name, "--caller", caller, "--key", signer.key_id, "--key-file", signer.private,
               "--merchant", MERCHANT, "--wait-answer", 30, *more, code=code)  # fmt: skip


def evidence(stack, name, *more):
    """The bytes behind a name, as payfactctl opens them."""
    file = stack.dir / f"evidence-{os.urandom(4).hex()}"
    ctl(stack, "evidence", name, "--who", "operator-1", "--reason", "a test", "--keyring", stack.dir / "secrets" / "keyring",
        "--out", file, *more)  # fmt: skip
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    return file.read_bytes()


def put(stack, topic, key, value, headers=()):
    reports = []
    producer = Producer({"bootstrap.servers": stack.brokers, "linger.ms": 0})
    producer.produce(stack.topic_name(topic), key=key, value=value, headers=list(headers),
                     on_delivery=lambda error, msg: reports.append((error, msg.partition(), msg.offset())))  # fmt: skip
    producer.flush(30)
    assert len(reports) == 1 and reports[0][0] is None
    return reports[0][1:]


def limit_events(stack, size):
    """What Kafka takes on the topic events, in bytes; None: as before."""
    kind = AlterConfigOpType.SET if size else AlterConfigOpType.DELETE
    entry = ConfigEntry("max.message.bytes", str(size) if size else None, incremental_operation=kind)
    resource = ConfigResource(ConfigResource.Type.TOPIC, stack.topic_name("events"), incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": stack.brokers})
    list(admin.incremental_alter_configs([resource]).values())[0].result(15)


@pytest.mark.stack(prepare=operators_login)
def test_an_undecodable_input_is_kept_shown_opened_and_closed(stack):
    payment = new_payment_id()
    junk = f"{CARD} is no input".encode()
    partition, offset = put(stack, "inputs", "k", junk)
    stack.pay(2599, "EUR", payment_id=payment)  # the rest goes on
    stack.wait_event(payment, "PaymentSucceeded")
    name = f"//{stack.topic_name('inputs')}:{partition}:{offset}"
    (thing,) = wait_for("it waits for a person", lambda: dead(stack))
    assert (thing["id"], thing["what"], thing["kind"], thing["status"]) == (name, "INPUT", "POISON", "DEAD")
    assert (thing["reason"], thing["case_status"], thing["tries"]) == ("MALFORMED", "OPEN", 1)
    assert name in ctl(stack, "dlq", "list") and "dlq discard" in ctl(stack, "dlq", "show", name)
    assert evidence(stack, name) == junk
    (audit,) = stack.sql("SELECT who, what, subject, reason FROM audit_log WHERE what = 'evidence.read'")
    assert (audit["who"], audit["subject"], audit["reason"]) == ("operator-1", name, "a test")
    letters = json.loads(ctl(stack, "dlq", "list", "--topic", "--json"))
    assert [(letter["id"], letter["reason"]) for letter in letters] == [
        (f"{stack.topic_name('inputs')}/{partition}/{offset}", "MALFORMED")
    ]
    assert evidence(stack, letters[0]["id"], "--letter") == junk
    assert "MALFORMED" in act(stack, "replay", name, code=4), "still no input: refused by the processor"
    assert "operator-2" not in act(stack, "discard", name, "--reason", "TEST_TRAFFIC", caller="operator-2")
    assert dead(stack) == []
    again = shown(stack, name)
    assert (again["status"], again["case_status"]) == ("DEAD", "RESOLVED"), "evidence stays"
    assert stack.sql("SELECT resolved_by, resolution_code FROM manual_case") == [
        {"resolved_by": "operator-2", "resolution_code": "TEST_TRAFFIC"}
    ]
    assert "no open case" in act(stack, "discard", name, "--reason", "AGAIN", code=4)
    assert CARD not in ctl(stack, "dlq", "list") + ctl(stack, "dlq", "list", "--topic") + ctl(stack, "dlq", "show", name)


@pytest.mark.stack(prepare=operators_login)
def test_a_command_that_nobody_signed_rightly_is_in_the_topic_only(stack):
    record = stack.upstream.command("CANCEL_PAYMENT", MERCHANT, new_payment_id(), {"reason_code": "CUSTOMER_LEFT"})
    value = stack.upstream.send(record, signature=b"\0" * 64)
    letters = wait_for("its letter", lambda: json.loads(ctl(stack, "dlq", "list", "--topic", "--json")))
    assert [letter["reason"] for letter in letters] == ["SIGNATURE"] and dead(stack) == []
    assert evidence(stack, letters[0]["id"], "--letter") == value
    assert json.loads(ctl(stack, "dlq", "list", "--topic", "--since", 3600, "--json")) == letters
    audits = stack.sql("SELECT subject FROM audit_log WHERE what = 'evidence.read'")
    assert [a["subject"] for a in audits] == ["//" + letters[0]["id"].replace("/", ":")]


IMPATIENT = {
    "processor": {"ORPHAN_BUDGET_S": 1, "ORPHAN_FIRST_MS": 100},
    "recovery": {"ORPHAN_FIRST_MS": 100, "ORPHAN_MAX_MS": 500},
    "publisher": {"REFUSALS_MAX": 1},
}


@pytest.mark.stack(prepare=operators_login, settings=IMPATIENT)
def test_an_orphan_that_was_given_up_is_decided_by_a_replay(stack):
    payment = new_payment_id()
    order = attempt(payment)
    event = {"id": "evt_orphan", "object": "event", "api_version": "2024-06-20", "created": 1700000000, "livemode": False,
             "pending_webhooks": 1, "request": {"id": None, "idempotency_key": None}, "type": "payment_intent.processing",
             "data": {"object": {"id": "pi_orphan", "object": "payment_intent", "amount": 2599, "amount_received": 0,
                                 "currency": "eur", "status": "processing", "livemode": False,
                                 "metadata": {"order_id": order}}}}  # fmt: skip
    assert answers(stack.psp.callback(account=ACCOUNT_A, event=event)) == [200]
    name = f"stripe/{ACCOUNT_A}/evt_orphan"
    (thing,) = wait_for("its budget is spent", lambda: dead(stack))
    assert (thing["id"], thing["status"], thing["reason"]) == (name, "DEAD", "ORPHAN_BUDGET")
    stack.pay(2599, "EUR", payment_id=payment)
    stack.wait_event(payment, "PaymentSucceeded")
    assert "NOT_ALLOWED" in act(stack, "replay", name, code=4, caller="shop")
    assert shown(stack, name)["status"] == "DEAD"
    act(stack, "replay", name)
    wait_for("it is decided", lambda: shown(stack, name)["status"] == "DECIDED")
    assert dead(stack) == [] and shown(stack, name)["case_status"] == "RESOLVED"
    assert "it is decided" in act(stack, "replay", name, code=4)
    assert json.loads(evidence(stack, name)) == event


def row_of(stack, payment, what="EVENT"):
    found = [thing for thing in dead(stack) if thing["payment_id"] == payment and thing["what"] == what]
    return found[0] if found else None


def case_of(stack, payment):
    """(status, who resolved it) of the payment's only case of a dead event; None: it has none."""
    rows = stack.sql("SELECT status, resolved_by FROM manual_case WHERE payment_id = %s AND kind = 'DEAD_EVENT'", payment)
    assert len(rows) <= 1, rows
    return (rows[0]["status"], rows[0]["resolved_by"]) if rows else None


@pytest.mark.stack(prepare=operators_login, settings=IMPATIENT)
def test_an_event_that_kafka_refused_holds_its_payment_until_it_is_replayed(stack):
    payment, other = new_payment_id(), new_payment_id()
    limit_events(stack, 100)
    stack.pay(2599, "EUR", payment_id=payment)
    thing = wait_for("its first event is dead", lambda: row_of(stack, payment))
    assert thing["id"].startswith("PaymentCreated/") and thing["reason"] == "MSG_SIZE_TOO_LARGE"
    wait_for("all of it waits behind it, its job too", lambda: row_of(stack, payment)["held"] >= 4)
    wait_for("a person is to look", lambda: case_of(stack, payment) == ("OPEN", None))
    assert payment in ctl(stack, "cases")
    assert stack.attempt_status(attempt(payment)) == "CREATED"
    limit_events(stack, None)
    stack.pay(2599, "EUR", payment_id=other)
    stack.wait_event(other, "PaymentSucceeded")
    assert published(stack, payment) == [], "mended is not replayed: its payment is held"
    said = ctl(stack, "dlq", "show", thing["id"])
    assert "dlq replay" in said and payment in said
    act(stack, "replay", thing["id"])
    stack.wait_event(payment, "PaymentSucceeded")
    assert published(stack, payment)[0] == "PaymentCreated" and row_of(stack, payment) is None
    wait_for("nobody need look any more", lambda: case_of(stack, payment) == ("RESOLVED", "payfact-processor"))
    stack.wait_event(payment, "ManualReviewResolved")
    assert "names nothing" in act(stack, "replay", thing["id"], code=3)


@pytest.mark.unaudited  # one number is an EventWithheld: that is the point
@pytest.mark.stack(prepare=operators_login, settings=IMPATIENT)
def test_a_discarded_event_lets_its_payment_go_on_under_a_gapless_sequence(stack):
    payment = new_payment_id()
    limit_events(stack, 100)
    stack.pay(2599, "EUR", payment_id=payment)
    thing = wait_for("its first event is dead", lambda: row_of(stack, payment))
    limit_events(stack, None)
    act(stack, "discard", thing["id"], "--reason", "DOWNSTREAM_AGREED")
    stack.wait_event(payment, "PaymentSucceeded")
    assert published(stack, payment)[:2] == ["EventWithheld", "AttemptStarted"]
    (withheld,) = stack.consume_events(payment, "EventWithheld")
    assert (withheld["sequence"], withheld["reason_code"]) == (1, "DOWNSTREAM_AGREED")
    assert withheld["withheld"]["event_id"] == thing["id"]
    wait_for("its case is closed", lambda: case_of(stack, payment) in (None, ("RESOLVED", "payfact-processor")))
    events = {e["sequence"] for e in stack.consume_events(payment) if e["sequence"]}
    assert events == set(range(1, max(events) + 1))
    (audit,) = stack.sql("SELECT who, subject, reason FROM audit_log WHERE what = 'DISCARD_EVENT'")
    assert (audit["who"], audit["subject"], audit["reason"]) == ("operator-1", thing["id"], "ACCEPTED DOWNSTREAM_AGREED")
