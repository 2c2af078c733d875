# SPDX-License-Identifier: Apache-2.0
"""The relay on real topics: only what a known key signed, for its own merchant, becomes a command; notifications are
verified as of their receipt; what is refused is kept, and nothing is lost or changed by a crash."""

import hashlib
import json
import secrets
import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from parts import SECRETS, open_sealed, partition_of, stripe_event, stripe_signature
from payfact_stack import ACCOUNT_A, CALLER, MERCHANT, Stack, new_payment_id
from procs import wait_for
from records import CURRENT, Group, Signer, Upstream, encode, fingerprint

ROUTE = {"psp": "stripe", "psp_account": ACCOUNT_A, "method": "card", "failover_on_not_found": False}
CREATE = {
    "merchant_order_no": "ORDER-1",
    "amount_minor": 2599,
    "currency": "EUR",
    "capture_mode": "AUTOMATIC",
    "expires_at": None,
    "retry_until_expiry": None,
    "description": None,
    "routes": [ROUTE],
    "start": True,
}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
INSTRUMENT, REDIRECT = "pm_card_of_the_customer", b"code=secret-of-the-browser"


class World:
    def __init__(self, stack):
        self.stack = stack
        self.dlq_seen = 0

    def notify(self, value, key="gateway"):
        producer = Producer({"bootstrap.servers": self.stack.brokers, "linger.ms": 0})
        reports = []
        producer.produce(self.stack.topic_name("notifications"), key=key, value=value,
                         on_delivery=lambda error, msg: reports.append(error))  # fmt: skip
        producer.flush(30)
        assert reports == [None]

    def inputs(self, key):
        return [m for m in self.stack.records("inputs") if m["key"] == key]

    def wait_inputs(self, key, count=1):
        return wait_for(f"{count} for {key}", lambda: len(i := self.inputs(key)) >= count and i)

    def wait_dead(self, **wanted):
        """The dead letters with these fields."""

        def found():
            rows = [m["record"] for m in self.stack.records("dlq")]
            return [r for r in rows if all(r[name] == value for name, value in wanted.items())]

        return wait_for(f"a dead letter {wanted}", found)

    def settled(self):
        """All that was produced so far is relayed."""
        wait_for("the relay has read all", lambda: all(left == 0 for left, _ in self.lag()))

    def lag(self):
        rows = []
        for topic in ("commands", "notifications"):
            group = Group(self.stack.brokers, self.stack.topic_name(topic), self.stack.prefix + "ingest-relay")
            rows.append(group.lag())
            group.close()
        return rows


@pytest.fixture(scope="module")
def stack(servers):
    with Stack(servers, redis=False) as made:
        made.service("relay").start()
        yield made
        assert made.service("relay").stop() == 0
        log = made.service("relay").log.read_text()
        for secret in (*SECRETS, INSTRUMENT, REDIRECT.decode()):
            assert secret not in log
            for topic in ("inputs", "dlq"):
                assert all(secret.encode() not in m["value"] for m in made.records(topic)), (secret, topic)


@pytest.fixture
def world(stack):
    return World(stack)


def params(instrument=INSTRUMENT):
    return {"instrument": instrument, "payer_id": "cus_1", "payer_ip": None, "return_url": "https://shop.example/r", "extra": {}}


def seal(routes=1, redirect=None):
    return encode("CommandSecrets", {"salt": secrets.token_bytes(16), "params": [params() for _ in range(routes)],
                                     "redirect_data": redirect})  # fmt: skip


def test_a_good_command_goes_on_as_it_was_signed_with_its_secrets_sealed(world):
    upstream, payment = world.stack.upstream, new_payment_id()
    body = {**CREATE, "routes": [ROUTE, {**ROUTE, "psp_account": "stripe-b"}]}
    secret = seal(2)
    record = upstream.command("CREATE_PAYMENT", MERCHANT, payment, body, secret, traceparent=TRACE)
    value = upstream.send(record, secret)
    (message,) = world.wait_inputs(payment)
    assert message["partition"] == partition_of(payment, world.stack.partitions)
    assert message["headers"] == {"traceparent": TRACE.encode()}
    got = message["record"]
    assert (got["kind"], got["source"], got["payment_id"]) == ("COMMAND", "MERCHANT", payment)
    assert got["transport_key"] is None and got["event"] is None and got["traceparent"] == TRACE
    command = got["command"]
    assert command["value"] == value and command["key_id"] == upstream.signer.key_id
    assert command["signature"] == upstream.signer.sign(value) and command["refusal"] is None  # Ed25519: always the same
    assert command["writer_fingerprint"] == CURRENT["Command"][1]
    assert [p["bound_to"] for p in command["params"]] == [f"params/{payment}/{CALLER}/{record['command_id']}/{i}" for i in (0, 1)]
    for sealed in command["params"]:
        plain = open_sealed(world.stack, sealed["key_id"], sealed["bound_to"], sealed["ciphertext"])
        assert INSTRUMENT.encode() in plain and b"https://shop.example/r" in plain
    assert command["redirect_data"] is None


def test_redirect_data_is_sealed_by_itself(world):
    upstream, payment = world.stack.upstream, new_payment_id()
    secret = seal(0, REDIRECT)
    record = upstream.command("CONTINUE_ATTEMPT", MERCHANT, payment, {"attempt_id": payment + "A01"}, secret)
    upstream.send(record, secret)
    command = world.wait_inputs(payment)[0]["record"]["command"]
    sealed = command["redirect_data"]
    assert sealed["bound_to"] == f"redirect/{payment}/{CALLER}/{record['command_id']}"
    assert REDIRECT in open_sealed(world.stack, sealed["key_id"], sealed["bound_to"], sealed["ciphertext"])
    assert command["params"] == []


def test_an_operators_command_says_so(world):
    operator = Upstream(world.stack.brokers, world.stack.topic_name("commands"), world.stack.signers["operator-1"], "operator-1")
    payment = new_payment_id()
    operator.send(operator.command("CANCEL_PAYMENT", MERCHANT, payment, {"reason_code": "CUSTOMER"}))
    assert world.wait_inputs(payment)[0]["record"]["source"] == "OPERATOR"


def test_unsigned_junk_is_a_metric_and_nothing_else(world):
    relay, payment = world.stack.service("relay"), new_payment_id()
    value = encode("Command", world.stack.upstream.command("CREATE_PAYMENT", MERCHANT, payment, CREATE))
    had = relay.metric("payfact_commands_total", outcome="junk", reason="UNSIGNED")
    dead = len(world.stack.records("dlq"))
    world.stack.upstream.produce(payment, value)
    world.stack.upstream.produce(payment, value, [("payfact-key-id", b"shop-key")])
    world.stack.upstream.produce(payment, b"junk", [("payfact-signature", b"x" * 64)])
    wait_for("counted", lambda: relay.metric("payfact_commands_total", outcome="junk", reason="UNSIGNED") == had + 3)
    world.settled()
    assert world.inputs(payment) == [] and len(world.stack.records("dlq")) == dead


def wrong_key_id(world, upstream, record):
    upstream.send(record, key_id="nobody-key")


def wrong_signature(world, upstream, record):
    upstream.send(record, signature=b"\0" * 64)


def other_bytes_signed(world, upstream, record):
    upstream.send(record, signature=upstream.signer.sign(encode("Command", {**record, "merchant_id": "other"})))


def another_principals_signature(world, upstream, record):
    upstream.send(record, signature=world.stack.signers["operator-1"].sign(encode("Command", record)))


def wrong_key(world, upstream, record):
    upstream.send(record, key=new_payment_id())


def sign_raw(world, upstream, record, value):
    headers = [("payfact-key-id", upstream.signer.key_id.encode()), ("payfact-signature", upstream.signer.sign(value))]
    upstream.produce(record["payment_id"], value, headers)


def no_record(world, upstream, record):
    sign_raw(world, upstream, record, b"\xc3\x01" + CURRENT["Command"][1] + b"\xff" * 40)


def unknown_schema(world, upstream, record):
    value = encode("Command", record)
    sign_raw(world, upstream, record, value[:2] + fingerprint("string") + value[10:])


@pytest.mark.parametrize(
    "send, reason",
    [
        (wrong_key_id, "KEY_UNKNOWN"),
        (wrong_signature, "SIGNATURE"),
        (other_bytes_signed, "SIGNATURE"),
        (another_principals_signature, "SIGNATURE"),
        (wrong_key, "KEY_MISMATCH"),
        (no_record, "MALFORMED"),
        (unknown_schema, "SCHEMA_UNKNOWN"),
    ],
)
def test_what_cannot_be_trusted_or_read_is_a_dead_letter_with_its_bytes(world, send, reason):
    upstream, payment = world.stack.upstream, new_payment_id()
    had = {r["dead_letter_id"] for r in (m["record"] for m in world.stack.records("dlq"))}
    record = upstream.command("CREATE_PAYMENT", MERCHANT, payment, CREATE)
    send(world, upstream, record)
    (letter,) = wait_for("it", lambda: [r for r in world.wait_dead(reason_code=reason) if r["dead_letter_id"] not in had])
    original = next(m for m in world.stack.records("commands")
                    if (m["partition"], m["offset"]) == (letter["partition"], letter["offset"]))  # fmt: skip
    assert letter["dead_letter_id"] == f"{letter['topic']}/{letter['partition']}/{letter['offset']}"
    assert letter["topic"] == world.stack.topic_name("commands") and letter["service"] == "payfact-ingest"
    assert letter["key"] == original["key"].encode() and letter["value"] is None
    sealed = letter["sealed_value"]
    assert sealed["bound_to"] == "dead/" + letter["dead_letter_id"]
    assert open_sealed(world.stack, sealed["key_id"], sealed["bound_to"], sealed["ciphertext"]) == original["value"]
    assert {h["name"]: h["value"] for h in letter["headers"]} == original["headers"]
    world.settled()
    assert world.inputs(payment) == []


def test_a_dead_letter_holds_no_secrets_header(world):
    upstream, payment = world.stack.upstream, new_payment_id()
    secret = seal()
    record = upstream.command("CREATE_PAYMENT", MERCHANT, payment, CREATE, secret)
    upstream.send(record, secret, signature=b"\1" * 64)
    letter = wait_for("it", lambda: [r for r in world.wait_dead(reason_code="SIGNATURE") if r["key"] == payment.encode()])[0]
    assert {h["name"] for h in letter["headers"]} == {"payfact-key-id", "payfact-signature"}


@pytest.mark.parametrize("case", ["caller", "merchant", "command", "digest", "missing", "extra", "count", "bytes"])
def test_what_a_known_key_may_not_goes_on_as_rejected(world, case):
    upstream, payment = world.stack.upstream, new_payment_id()
    secret, sent = seal(), None
    record = upstream.command("CREATE_PAYMENT", MERCHANT, payment, CREATE, secret)
    if case == "caller":
        record["caller"], refusal = "operator-1", "WRONG_CALLER"
    elif case == "merchant":
        record["merchant_id"], refusal = "other", "NOT_ALLOWED"
    elif case == "command":
        record = upstream.command("PAUSE_ROUTE", MERCHANT, payment, {"psp": "stripe", "psp_account": ACCOUNT_A, "method": "card",
                                                                    "reason_code": "TEST"}, secret)  # fmt: skip
        refusal = "NOT_ALLOWED"
    elif case == "digest":
        sent, refusal = seal(), "SECRETS_MISMATCH"
    elif case == "missing":
        sent, refusal = b"", "SECRETS_MISMATCH"
    elif case == "extra":
        record["secrets_sha256"], refusal = None, "SECRETS_MISMATCH"
    elif case == "count":
        sent = seal(2)
        record["secrets_sha256"], refusal = hashlib.sha256(sent).digest(), "SECRETS_MISMATCH"
    else:
        sent = b"\xc3\x01no secrets"
        record["secrets_sha256"], refusal = hashlib.sha256(sent).digest(), "SECRETS_MALFORMED"
    upstream.send(record, secret if sent is None else sent)
    (message,) = world.wait_inputs(payment)
    got = message["record"]
    assert (got["kind"], got["command"]["refusal"]) == ("REJECTED_COMMAND", refusal)
    assert got["command"]["value"] == encode("Command", record)
    assert got["command"]["params"] == [] and got["command"]["redirect_data"] is None


def notification(body, account=ACCOUNT_A, psp="stripe", signature=None, received_at=None, **changes):
    return encode("RawNotification", {
        "notification_id": "n-1", "psp": psp, "psp_account": account, "method": "POST", "path": f"/callbacks/{account}",
        "query": "", "headers": [{"name": "stripe-signature", "value": signature.encode()}], "body": body,
        "received_at": int((received_at or time.time()) * 1e6), "traceparent": TRACE, **changes,
    })  # fmt: skip


def account(world):
    return next(a for a in world.stack.psp_accounts if a["id"] == ACCOUNT_A)


def test_a_notification_is_verified_as_of_its_receipt(world):
    payment, then = new_payment_id(), int(time.time()) - 86400
    body = stripe_event(payment)
    world.notify(notification(body, signature=stripe_signature(account(world)["webhook_secret"], body, then), received_at=then + 1))
    (message,) = world.wait_inputs(payment)
    record = message["record"]
    assert (record["kind"], record["source"], record["evidence_level"]) == ("PSP_EVENT", "WEBHOOK", "WEBHOOK")
    assert record["transport_key"] == json.loads(body)["id"] and record["traceparent"] == TRACE
    assert record["received_at"].timestamp() == then + 1
    evidence = record["evidence"]
    opened = open_sealed(world.stack, evidence["key_id"], f"stripe/{ACCOUNT_A}/{record['transport_key']}", evidence["ciphertext"])
    assert opened == body


@pytest.mark.parametrize(
    "reason, change",
    [
        ("SIGNATURE", lambda s, b: {"signature": stripe_signature("whsec_other", b)}),
        ("TIME_WINDOW", lambda s, b: {"signature": stripe_signature(s, b, int(time.time()) - 400)}),
        ("FORMAT", lambda s, b: {"body": b"{}", "signature": stripe_signature(s, b"{}")}),
        ("UNKNOWN_ACCOUNT", lambda s, b: {"account": "nobody", "signature": stripe_signature(s, b)}),
        ("UNKNOWN_ACCOUNT", lambda s, b: {"psp": "adyen", "signature": stripe_signature(s, b)}),
    ],
)
def test_a_notification_that_is_refused_is_kept_and_moves_nothing(world, reason, change):
    payment = new_payment_id()
    asked = {"body": stripe_event(payment)}
    asked.update(change(account(world)["webhook_secret"], asked["body"]))
    key = asked.get("account", ACCOUNT_A)
    had = len(world.inputs(key))
    world.notify(notification(**asked))
    record = world.wait_inputs(key, had + 1)[-1]["record"]
    assert record["kind"] == "REFUSED_NOTIFICATION" and record["event"] is None
    refused = {"psp": asked.get("psp", "stripe"), "psp_account": key, "reason_code": reason}
    assert record["refused"] == refused
    assert record["transport_key"].startswith(world.stack.topic_name("notifications") + ":")
    evidence = record["evidence"]
    assert evidence["verified_by"] == "none" and evidence["sha256"] == hashlib.sha256(asked["body"]).digest()
    bound_to = f"{refused['psp']}/{key}/{record['transport_key']}"
    assert open_sealed(world.stack, evidence["key_id"], bound_to, evidence["ciphertext"]) == asked["body"]
    assert world.inputs(payment) == []


@pytest.mark.parametrize("value, reason", [(b"not a record", "SCHEMA_UNKNOWN"), (b"", "SCHEMA_UNKNOWN"), (None, "SCHEMA_UNKNOWN")])
def test_a_notification_that_is_no_record_is_a_dead_letter(world, value, reason):
    topic = world.stack.topic_name("notifications")
    had = len([m for m in world.stack.records("dlq") if m["record"]["topic"] == topic])
    world.notify(value, key="junk")
    letters = wait_for("it", lambda: len(r := [m["record"] for m in world.stack.records("dlq") if m["record"]["topic"] == topic])
                       > had and r)  # fmt: skip
    assert letters[-1]["reason_code"] in (reason, "MALFORMED") and letters[-1]["key"] == b"junk"


def test_killed_before_its_commit_it_relays_the_same_again(servers):
    with Stack(servers, redis=False) as stack:
        world, upstream = World(stack), stack.upstream
        relay = stack.service("relay", "dying", FAULT="after_produce_before_commit", SESSION_TIMEOUT_MS=6000).start()
        payments = [new_payment_id() for _ in range(4)]
        for payment in payments:
            upstream.create_payment(payment, MERCHANT, 2599, "EUR", [ROUTE])
        wait_for("it died", lambda: not relay.alive())
        relay.env.pop("PAYFACT_FAULT")
        relay.start()
        for payment in payments:
            copies = [m["record"] for m in world.wait_inputs(payment)]
            assert len({plain(stack, c) for c in copies}) == 1
        world.settled()
        assert max(len(world.inputs(p)) for p in payments) == 2  # the batch that was lost came again
        assert relay.stop() == 0


def plain(stack, record):
    """What two copies of one command must have in common, sealed parts opened."""
    command = record["command"]
    sealed = [(p["bound_to"], open_sealed(stack, p["key_id"], p["bound_to"], p["ciphertext"])) for p in command["params"]]
    return json.dumps([record["kind"], command["value"].hex(), command["signature"].hex(), repr(sealed)])


@pytest.mark.parametrize("small", [("inputs",), ("inputs", "dlq")], ids=["inputs", "both"])
def test_what_kafka_refuses_for_good_is_put_aside_and_the_rest_goes_on(servers, small):
    """An input that the broker never takes: not a reason to stand still for ever. Nor to be nowhere, where its dead letter
    is too large as well."""
    with Stack(servers, redis=False, partitions=1) as stack:
        world = World(stack)
        admin = AdminClient({"bootstrap.servers": stack.brokers})
        for topic in small:
            entry = ConfigEntry("max.message.bytes", "4000", incremental_operation=AlterConfigOpType.SET)
            resource = ConfigResource(ConfigResource.Type.TOPIC, stack.topic_name(topic), incremental_configs=[entry])
            list(admin.incremental_alter_configs([resource]).values())[0].result(15)
        before, large, after = (new_payment_id() for _ in range(3))
        secret = account(world)["webhook_secret"]
        for payment, padding in ((before, ""), (large, "x" * 6000), (after, "")):  # in one batch
            body = stripe_event(payment, padding=padding)
            world.notify(notification(body, signature=stripe_signature(secret, body)), key=payment)
        relay = stack.service("relay").start()
        for payment in (before, after):
            world.wait_inputs(payment)
        (letter,) = world.wait_dead(reason_code="TOO_LARGE")
        assert letter["topic"] == stack.topic_name("notifications")
        is_whole = (letter["key"], letter["sealed_value"] is None) == (large.encode(), False)
        assert is_whole == ("dlq" not in small), "else its place in the topic says where the bytes are"
        world.settled()
        assert world.inputs(large) == []
        assert relay.stop() == 0


def test_a_stranger_who_knows_a_key_id_is_still_a_stranger(world, tmp_path):
    """His own key under another's id: the signature is not of that key."""
    stranger = Signer(tmp_path, "shop-key")
    forged = Upstream(world.stack.brokers, world.stack.topic_name("commands"), stranger, CALLER)
    payment = new_payment_id()
    forged.send(forged.command("CREATE_PAYMENT", MERCHANT, payment, CREATE))
    wait_for("it is dead", lambda: [r for r in world.wait_dead(reason_code="SIGNATURE") if r["key"] == payment.encode()])
    assert world.inputs(payment) == []
