# SPDX-License-Identifier: Apache-2.0
"""The public topics as a contract with others: a real registry, stock clients, and schemas that evolve."""

import copy
import json
import os
import re
import subprocess
import sys
import threading
import urllib.error

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from conftest import AVRO, PUBLIC, Gateway, RegistryStack, load_example
from payfact_stack import ACCOUNT_A, CALLER, MERCHANT, ROOT, new_payment_id, wait_for
from story import attempt

import records

RAW = "RawNotification"
producer = load_example("producer")


def schema_of(record):
    return json.loads((AVRO / f"{record}.avsc").read_text())


def history_of(record):
    paths = sorted((AVRO / "history" / record).glob("*.avsc"), key=lambda path: int(path.stem))
    return [json.loads(path.read_text()) for path in paths]


def newer(schema, symbols=True):
    """What a later release may do: one more field, with a default, before all others; one more symbol of every enum."""
    made = copy.deepcopy(schema)
    made["fields"].insert(0, {"name": "added_later", "type": ["null", "string"], "default": None, "doc": "Not known yet."})

    def grow(node):
        if isinstance(node, dict):
            if node.get("type") == "enum" and symbols:
                node["symbols"].append("ADDED_LATER")
            for value in node.values():
                grow(value)
        elif isinstance(node, list):
            for value in node:
                grow(value)

    grow(made)
    return made


def run_example(name, *arguments, stdin=None):
    run = subprocess.run([sys.executable, ROOT / "docs" / "examples" / f"{name}.py", *map(str, arguments)],
                         capture_output=True, input=stdin, env=environment(), timeout=120)  # fmt: skip
    assert run.returncode == 0, run.stderr.decode()
    return run.stdout.decode().strip()


def environment():
    """As a merchant's own: none of the tests' modules on its path."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}


def upstream(stack):
    return ["--bootstrap", stack.brokers, "--registry", stack.registry.url, "--prefix", stack.prefix]


def pay(stack, instrument="pm_card_visa"):
    signer = stack.signers[CALLER]
    return run_example("producer", "pay", *upstream(stack), "--merchant", MERCHANT, "--caller", CALLER, "--key-id", signer.key_id,
                       "--key-file", signer.private, "--route", f"stripe/{ACCOUNT_A}/card", "--amount", 2599, "--currency",
                       "EUR", "--instrument", instrument)  # fmt: skip


def raw_messages(stack, topic):
    stack.records(topic)
    return stack._topics[topic].messages


class Consumer:
    """The example consumer as the process that its readers would start."""

    def __init__(self, stack):
        argv = [sys.executable, ROOT / "docs" / "examples" / "consumer_registry.py", stack.brokers, stack.registry.url,
                stack.topic_name("events")]  # fmt: skip
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, env=environment(), text=True)
        self.facts = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.facts.append(json.loads(line))

    def of(self, payment):
        return [fact for fact in self.facts if fact["payment_id"] == payment]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()


def to_gateway(stack, gateway):
    account = next(a for a in stack.psp_accounts if a["id"] == ACCOUNT_A)
    stack.psp.put_account({**account, "callback_url": gateway.url if gateway else account["callback_url"]})


# ---- registering


def test_schemas_are_registered_once_and_checked(small):
    for topic in PUBLIC:
        subject = small.subject(topic)
        assert small.registry.call("GET", f"/config/{subject}") == {"compatibilityLevel": "FULL_TRANSITIVE"}
        number, document = small.registry.latest(subject)
        assert document == schema_of(PUBLIC[topic])
    assert small.run_ctl("schemas", "register") == (0, "nothing to do\n")
    assert small.run_ctl("schemas", "check") == (0, "")
    assert small.run_ctl("topics", "--check") == (0, "")
    small.registry.call("PUT", f"/config/{small.subject('events')}", {"compatibility": "NONE"})
    small.registry.register(small.subject("events"), {"type": "record", "name": "Other", "namespace": "x", "fields": []})
    code, said = small.run_ctl("topics", "--check")
    assert code == 4 and said == f"{small.subject('events')}: compatibility is not FULL_TRANSITIVE\n"
    assert small.run_ctl("schemas", "register", "--topic", "events")[0] == 0
    assert small.run_ctl("schemas", "check") == (0, "")


def test_a_subject_that_somebody_else_has_spoilt_is_refused(small):
    small.registry.call("DELETE", f"/subjects/{small.subject('commands')}")
    small.registry.register(small.subject("commands"), {"type": "record", "name": "Command", "namespace": "payfact",
                                                        "fields": [{"name": "command_id", "type": "long"}]})  # fmt: skip
    small.registry.call("PUT", f"/config/{small.subject('commands')}", {"compatibility": "FULL_TRANSITIVE"})
    code, said = small.run_ctl("schemas", "check")
    assert code == 4 and "is not compatible with what is registered" in said
    code, said = small.run_ctl("schemas", "register")
    assert code == 4 and "is not compatible with what is registered" in said


# ---- stock clients


def test_a_stock_producer_pays_and_a_stock_consumer_reads_every_fact_once(world):
    with Consumer(world) as consumer:
        payment = pay(world)
        wait_for("the success is consumed", lambda: [f for f in consumer.of(payment) if f["type"] == "PaymentSucceeded"], 60)
        world.idle()
        (order,) = world.sql("SELECT event_sequence FROM payment_order WHERE payment_id = %s", payment)
        wait_for("all are consumed", lambda: len(consumer.of(payment)) == order["event_sequence"], 60)
        facts = consumer.of(payment)
    assert [f["sequence"] for f in facts] == list(range(1, len(facts) + 1))
    success = next(f for f in facts if f["type"] == "PaymentSucceeded")
    assert (success["amount_minor"], success["currency"], success["order_status"]) == (2599, "EUR", "SUCCEEDED")
    assert world.audit() == []


def test_a_stock_producer_relays_a_notification(world):
    """The callback goes to the gateway alone: the success can only come by its notification."""
    with Gateway() as gateway:
        to_gateway(world, gateway)
        try:
            payment = pay(world, "pm_sepaDebit")
            order = attempt(payment)
            world.wait_attempt(order, "PROCESSING")
            world.psp.advance(account=ACCOUNT_A, order=order, to="succeeded")
            kind = "payment_intent.succeeded"
            path, headers, body = wait_for("the gateway has it", lambda: gateway.of(order, kind))[0]
            lines = [word for name, value in headers for word in ("--header", f"{name}: {value}")]
            arguments = ["notify", *upstream(world), "--psp", "stripe", "--account", ACCOUNT_A, "--path", path, *lines]
            for _ in range(2):  # a gateway repeats as well
                run_example("producer", *arguments, stdin=body)
            world.wait_event(payment, "PaymentSucceeded")
            world.idle()
        finally:
            to_gateway(world, None)
    events = [e["type"] for e in {e["event_id"]: e for e in world.consume_events(payment)}.values()]
    assert events.count("PaymentSucceeded") == 1
    assert world.service("relay").metric("payfact_notifications_total", outcome="relayed") >= 2
    assert world.audit() == []


def test_every_public_value_is_framed_and_every_internal_one_is_not(world):
    payment = world.pay(1200, "EUR")  # in single-object encoding: both are taken
    world.wait_event(payment, "PaymentSucceeded")
    world.idle()
    number, _ = world.registry.latest(world.subject("events"))
    values = [m["value"] for m in raw_messages(world, "events")]
    assert values and {v[:5] for v in values} == {b"\0" + number.to_bytes(4, "big")}
    for topic in ("inputs", "psp-jobs"):
        assert {m["value"][:2] for m in raw_messages(world, topic)} == {b"\xc3\x01"}, topic


def test_every_event_has_its_cloudevents_headers(world):
    payment = world.pay(1300, "EUR")
    world.wait_event(payment, "PaymentSucceeded")
    world.idle()
    messages = raw_messages(world, "events")
    assert any(m["key"] == payment for m in messages)
    for message in messages:
        event, headers = message["record"], {k: v.decode() for k, v in message["headers"].items()}
        assert headers["ce_specversion"] == "1.0"
        assert headers["ce_id"] == event["event_id"]
        assert headers["ce_type"] == f"payfact.{event['type']}"
        assert headers["ce_source"] == "/payfact"
        assert headers["ce_subject"] == event["payment_id"] == message["key"]
        assert headers["content-type"] == "application/avro"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", headers["ce_time"]), headers["ce_time"]
        assert headers.get("traceparent") == event["traceparent"]
    assert len({m["headers"]["ce_id"] for m in messages}) == len({m["record"]["event_id"] for m in messages})


# ---- schemas evolve


@pytest.mark.parametrize("record", sorted(PUBLIC.values()))
def test_every_version_is_compatible_with_every_other(registry, record):
    """FULL_TRANSITIVE by the registry's own judgement, kept versions first, then what a later release may do."""
    subject = f"evolution-{record}-{os.getpid()}-value"
    registry.call("PUT", f"/config/{subject}", {"compatibility": "FULL_TRANSITIVE"})
    current = schema_of(record)
    versions = [*history_of(record), current, newer(current)]
    assert records.fingerprint(versions[-2]) == records.fingerprint(versions[-3]), "the last of history is the current one"
    for schema in versions:
        registry.register(subject, schema)
    bad = {"a type": copy.deepcopy(current), "no default": copy.deepcopy(current), "gone": copy.deepcopy(current)}
    bad["a type"]["fields"][0]["type"] = "long"
    bad["no default"]["fields"].append({"name": "needed", "type": "string"})
    del bad["gone"]["fields"][0]
    for what, schema in bad.items():
        with pytest.raises(urllib.error.HTTPError) as refusal:
            registry.register(subject, schema)
        assert refusal.value.code == 409, what


@pytest.mark.parametrize("make", [lambda s: s, lambda s: newer(s)], ids=["kept", "newer"])
def test_a_stock_consumer_reads_with_its_own_version(world, make):
    """Older and newer readers than the writer: the registry gives the writer's schema, the consumer has its own."""
    payment = world.pay(1400, "EUR")
    world.wait_event(payment, "PaymentSucceeded")
    client = registry_client(world)
    topic = world.topic_name("events")
    for schema in history_of("PaymentEvent"):
        read = AvroDeserializer(client, json.dumps(make(schema)))
        events = [read(m["value"], SerializationContext(topic, MessageField.VALUE)) for m in raw_messages(world, "events")]
        (success,) = [e for e in events if e["payment_id"] == payment and e["type"] == "PaymentSucceeded"]
        assert (success["amount_minor"], success["currency"]) == (1400, "EUR")
        assert ("added_later" in success) == (make(schema) != schema)


def registry_client(stack):
    """A request that the registry loses under load is made again, not waited for without end (the client's default)."""
    return SchemaRegistryClient({"url": stack.registry.url, "timeout": 20, "max.retries": 3})


def serializer(stack, number):
    options = {"auto.register.schemas": False, "use.schema.id": number}
    return AvroSerializer(registry_client(stack), conf=options)


def notify(stack, number, **more):
    """A notification that nobody signed, by the schema of that id: it must come to the processor as evidence."""
    topic = stack.topic_name("notifications")
    made = producer.notification("stripe", ACCOUNT_A, "/callbacks/x", [("Stripe-Signature", "t=1,v1=00")], b"{}")
    stack.upstream._producer.produce(topic, key=b"x", value=serializer(stack, number)(
        {**made, **more}, SerializationContext(topic, MessageField.VALUE)))  # fmt: skip
    assert stack.upstream._producer.flush(30) == 0


def command_value(stack, number, payment):
    topic = stack.topic_name("commands")
    record, secret = producer.create_payment(CALLER, MERCHANT, [f"stripe/{ACCOUNT_A}/card"], ["pm_card_visa"], 900, "EUR")
    record["payment_id"] = payment
    value = serializer(stack, number)(record, SerializationContext(topic, MessageField.VALUE))
    return b"\0" + number.to_bytes(4, "big") + value[5:], secret  # The serializer prefers the subject's own id.


def send_command(stack, value, secret, payment, signed=True):
    signer = stack.signers[CALLER]
    headers = [("payfact-key-id", signer.key_id.encode()), ("payfact-secrets", secret)]
    if signed:
        headers.append(("payfact-signature", signer.sign(value)))
    stack.upstream.produce(payment, value, headers)


def in_other_words(stack):
    """Another id for the very same schema: its documentation differs, and (for this registry) its subject."""
    words = {**schema_of("Command"), "doc": f"In other words, for {stack.prefix}"}
    number = stack.registry.register(f"{stack.topic_name('words')}-value", words)
    assert number != stack.registry.latest(stack.subject("commands"))[0]
    return number


def refused(stack):
    return [m["record"] for m in stack.records("inputs") if m["record"]["kind"] == "REFUSED_NOTIFICATION"]


def test_notifications_of_newer_and_older_schemas_are_read(small):
    """Evidence is signed by the PSP, not by the schema: whatever is compatible may be read."""
    small.start("relay")
    subject, current = small.subject("notifications"), schema_of(RAW)
    older = {**current, "fields": [f for f in current["fields"] if f["name"] not in ("query", "traceparent")]}
    for turn, (schema, more) in enumerate([(newer(current), {"added_later": "x"}), (older, {}), (current, {"query": "q"})], 1):
        notify(small, small.registry.register(subject, schema), **more)
        wait_for("it is an input", lambda: len(refused(small)) == turn)
    assert {r["refused"]["psp_account"] for r in refused(small)} == {ACCOUNT_A}
    assert small.records("dlq") == []


def test_a_command_of_a_newer_schema_is_a_dead_letter_and_others_go_on(small):
    """A schema is not covered by the signature, and the processor reads the same bytes again: a decision, see docs/adr."""
    small.start("relay")
    subject, current = small.subject("commands"), schema_of("Command")
    first, _ = small.registry.latest(subject)
    later = small.registry.register(subject, newer(current))
    reworded = in_other_words(small)
    payments = [new_payment_id() for _ in range(3)]
    for payment, number in zip(payments, (later, reworded, first)):
        value, secret = command_value(small, number, payment)
        send_command(small, value, secret, payment)
    inputs = wait_for("the others are relayed", lambda: len(small.records("inputs")) == 2 and small.records("inputs"))
    assert {m["key"] for m in inputs} == set(payments[1:])
    mark = records.CURRENT["Command"][1]
    assert {m["record"]["command"]["writer_fingerprint"] for m in inputs} == {mark}
    (letter,) = wait_for("the first is kept", lambda: small.records("dlq"))
    assert (letter["record"]["reason_code"], letter["key"]) == ("SCHEMA_UNKNOWN", payments[0])


def test_ids_that_the_registry_does_not_have(small):
    small.start("relay")
    number, _ = small.registry.latest(small.subject("commands"))
    good, bad = new_payment_id(), new_payment_id()
    value, secret = command_value(small, number, bad)
    unknown = b"\0" + (0x7FFFFFF0).to_bytes(4, "big") + value[5:]
    send_command(small, unknown, secret, bad, signed=False)  # a stranger's: nothing is asked, nothing is kept
    send_command(small, unknown, secret, bad)
    value, secret = command_value(small, number, good)
    send_command(small, value, secret, good)
    wait_for("the good one is relayed", lambda: [m for m in small.records("inputs") if m["key"] == good])
    (letter,) = wait_for("the other is kept", lambda: small.records("dlq"))
    assert letter["record"]["reason_code"] == "SCHEMA_UNKNOWN"
    assert small.service("relay").metric("payfact_commands_total", outcome="junk") == 1


# ---- the registry goes away


@pytest.fixture
def frozen(registry):
    yield registry.freeze
    registry.thaw()


def test_while_the_registry_is_away_commands_wait_and_none_is_dead(small, frozen):
    relay = small.start("relay").service("relay")
    first, _ = small.registry.latest(small.subject("commands"))
    number = in_other_words(small)
    known, waiting = new_payment_id(), new_payment_id()
    value, secret = command_value(small, number, waiting)
    other, other_secret = command_value(small, first, known)
    send_command(small, other, other_secret, known)
    wait_for("the first id is known", lambda: len(small.records("inputs")) == 1)
    frozen()
    send_command(small, value, secret, waiting)
    wait_for("it is missed", lambda: relay.log_lines("registry_away"), 60)
    wait_for("not ready", lambda: relay.get("/readyz")[0] == 503)
    assert relay.get("/healthz")[0] == 200
    assert len(small.records("inputs")) == 1 and small.records("dlq") == []
    small.registry.thaw()
    wait_for("it is relayed", lambda: [m for m in small.records("inputs") if m["key"] == waiting], 60)
    wait_for("ready", lambda: relay.get("/readyz")[0] == 200, 60)
    assert small.records("dlq") == [] and len(small.records("inputs")) == 2  # no repeats of what went before


def test_a_publisher_that_finds_no_registry_waits_with_its_events(small, frozen):
    small.start("relay", "processor")
    payment = small.pay(1500, "EUR")
    wait_for("it is decided", lambda: small.order_status(payment))
    frozen()
    publisher = small.service("publisher").start(ready=False)
    wait_for("it is missed", lambda: publisher.log_lines("registry_away"), 60)
    assert publisher.get("/readyz")[0] == 503 and publisher.get("/healthz")[0] == 200
    waiting = small.sql("SELECT count(*) AS n FROM payment_outbox")[0]["n"]
    assert waiting >= 2 and raw_messages(small, "events") == []
    small.registry.thaw()
    publisher.wait_ready(60)
    wait_for("all go out", lambda: small.sql("SELECT count(*) AS n FROM payment_outbox")[0]["n"] == 0, 60)
    events = small.consume_events(payment)
    assert [e["sequence"] for e in events] == list(range(1, len(events) + 1)) and events[0]["type"] == "PaymentCreated"


def test_events_wait_until_their_schema_is_registered(servers, registry):
    with RegistryStack(servers, registry) as stack:
        stack.start("relay", "processor")
        payment = stack.pay(1600, "EUR")
        wait_for("it is decided", lambda: stack.order_status(payment))
        publisher = stack.service("publisher").start(ready=False)
        wait_for("it says what is missing", lambda: publisher.log_lines("registry_away"), 60)
        assert "payfactctl schemas register" in publisher.log_lines("registry_away")[0]["err"]
        assert raw_messages(stack, "events") == []
        assert stack.sql("SELECT count(*) AS n FROM payment_outbox WHERE dead_at IS NOT NULL OR attempts > 0")[0]["n"] == 0
        stack.register()
        publisher.wait_ready(60)
        stack.wait_event(payment, "PaymentCreated")
