# SPDX-License-Identifier: Apache-2.0
"""Bad input on every topic that is read, and at the callback port as a client sees it: each piece ends in one refusal
that is counted, with its bytes kept where they are somebody's; the next good one is served by the same process.
docs/BAD_INPUT.md says what is tested where."""

import json
import random
import socket
import time

import pytest
from confluent_kafka import Producer

from parts import open_sealed, stripe_event, stripe_signature
from payfact_stack import ACCOUNT_A, MERCHANT, Stack, new_payment_id
from procs import SCALE, wait_for
from records import Upstream, encode
from test_ingest_psp import World as Jobs
from test_ingest_relay import CREATE, notification

CARD = b"4242424242424242"


@pytest.fixture(scope="module")
def stack(servers):
    with Stack(servers, redis=False) as made:
        made.start("webhook", "relay", "psp", "processor")
        yield made
        pids = {name: service.fell() for name, service in made.services.items()}
        assert set(pids.values()) == {None}, f"ended by themselves: {pids}"
        made.stop()
        for service in made.services.values():
            assert CARD.decode() not in service.log.read_text()


# ---- values


def zigzag(number):
    """An Avro long."""
    value, out = (number << 1) ^ (number >> 63), bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def texts(*values):
    return b"".join(zigzag(len(v)) + v.encode() for v in values)


# What stands before the first enum (its index comes next), or the first list, of each record.
BEFORE_ENUM = {"commands": texts("x"), "inputs": texts("x"), "psp-jobs": texts("x")}
BEFORE_LIST = {"notifications": texts("n", "stripe", "stripe-a", "POST", "/", "")}


# More than a value of the record may have, and within what the topic takes.
LARGE = {"notifications": 330 * 1024, "commands": 65 * 1024, "psp-jobs": 65 * 1024, "inputs": 900 * 1024}


def good(stack, topic):
    """A value that the reader of this topic takes."""
    payment = new_payment_id()
    if topic == "notifications":
        body = stripe_event(payment)
        secret = next(a["webhook_secret"] for a in stack.psp_accounts if a["id"] == ACCOUNT_A)
        return notification(body, signature=stripe_signature(secret, body))
    if topic == "commands":
        return encode("Command", stack.upstream.command("CREATE_PAYMENT", MERCHANT, payment, CREATE))
    if topic == "psp-jobs":
        return encode("PspJob", Jobs(stack).job(payment=payment))
    return encode("PaymentInput", {
        "input_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "kind": "REPLAY", "source": "LOCAL", "evidence_level": "LOCAL",
        "payment_id": None, "event": None, "command": None, "deadline": None, "refused": None,
        "replay": {"psp": "stripe", "psp_account": ACCOUNT_A, "transport_key": "evt_1"}, "transport_key": None,
        "business_key": None, "occurred_at": None, "received_at": 1, "evidence": None, "traceparent": None,
    })  # fmt: skip


def variants(stack, topic):
    """{name: (value, reasons)}: what becomes of it."""
    value = good(stack, topic)
    frame, body = value[:10], value[10:]
    noise = random.Random(7).randbytes(50000)
    large = LARGE[topic]
    rows = {
        "empty": (b"", {"MALFORMED"}),
        "short": (b"4242424242424242", {"MALFORMED"}),
        "long noise": (noise, {"MALFORMED", "TOO_LARGE"}),
        "noise in a frame": (frame + noise[:5000], {"MALFORMED", "TOO_LARGE"}),
        "half a frame": (value[:5], {"MALFORMED"}),
        "a frame only": (frame, {"MALFORMED"}),
        "a byte too many": (value + b"\0", {"MALFORMED"}),
        "a string of 2^62 bytes": (frame + zigzag(2**62), {"MALFORMED", "TOO_LARGE"}),
        "a string of -5 bytes": (frame + zigzag(-5), {"MALFORMED"}),
        "a string longer than the rest": (frame + zigzag(60) + body[1:20], {"MALFORMED"}),
        "a number that does not end": (frame + b"\xff" * 20, {"MALFORMED"}),
        "text that is no UTF-8": (frame + zigzag(4) + b"\xff\xfe\xfd\xfc" + body[1 + body[0] // 2 :], {"MALFORMED"}),
        "text with a NUL": (frame + zigzag(4) + b"ab\0c" + body[1 + body[0] // 2 :], {"MALFORMED"}),
        "a schema that nobody knows": (value[:2] + b"\1" * 8 + body, {"SCHEMA_UNKNOWN"}),
        "another record": (encode("CommandSecrets", {"salt": b"s" * 16, "params": [], "redirect_data": None}), {"SCHEMA_UNKNOWN"}),
        "an id of no registry": (b"\0\0\0\0\7" + body, {"SCHEMA_UNKNOWN", "MALFORMED"}),
        "too large": (frame + zigzag(large) + b"x" * large, {"MALFORMED", "TOO_LARGE"}),
    }
    for part in range(1, 8):
        rows[f"{part}/8 of it"] = (frame + body[: len(body) * part // 8], {"MALFORMED"})
    if topic in BEFORE_ENUM:
        for index in (19, 1000, 2**40, -1):
            rows[f"symbol {index}"] = (frame + BEFORE_ENUM[topic] + zigzag(index) + body, {"MALFORMED"})
    if topic in BEFORE_LIST:
        for count in (2**40, -(2**40)):
            rows[f"a list of {count}"] = (frame + BEFORE_LIST[topic] + zigzag(count) + zigzag(8), {"MALFORMED", "TOO_LARGE"})
    return rows


class Sender:
    def __init__(self, stack, topic):
        self.stack, self.topic = stack, topic
        self._producer = Producer({"bootstrap.servers": stack.brokers, "linger.ms": 0, "message.max.bytes": 2000000})

    def put(self, value, headers=(), key=b"hostile"):
        """(partition, offset) of the record."""
        reports = []
        self._producer.produce(self.stack.topic_name(self.topic), key=key, value=value, headers=list(headers),
                               on_delivery=lambda error, msg: reports.append((error, msg.partition(), msg.offset())))  # fmt: skip
        self._producer.flush(30)
        assert len(reports) == 1 and reports[0][0] is None, reports
        return reports[0][1:]

    def signed(self, value, key_id="shop-key"):
        signer = self.stack.signers["shop"]
        return [("payfact-key-id", key_id.encode()), ("payfact-signature", signer.sign(value))] if self.topic == "commands" else []


def letters(stack):
    return {r["dead_letter_id"]: r for r in (m["record"] for m in stack.records("dlq"))}


READER = {"notifications": "relay", "commands": "relay", "psp-jobs": "psp", "inputs": "processor"}


def dead_counted(stack, topic):
    service = stack.service(READER[topic])
    where = {} if topic == "inputs" else {"topic": stack.topic_name(topic)}
    return service.metric("payfact_dead_letters_total", **where)


@pytest.mark.parametrize("topic", READER)
def test_each_malformed_record_is_one_dead_letter_with_its_bytes_and_the_rest_goes_on(stack, topic):
    sender, sent = Sender(stack, topic), {}
    had = dead_counted(stack, topic)
    rows = variants(stack, topic)
    for name, (value, _) in rows.items():
        sent[name] = "{}/{}/{}".format(stack.topic_name(topic), *sender.put(value, sender.signed(value)))
    found = wait_for("all of them are letters", lambda: set(sent.values()) <= set(ids := letters(stack)) and ids)
    for name, (value, reasons) in rows.items():
        letter = found[sent[name]]
        assert letter["reason_code"] in reasons, (name, letter["reason_code"], letter["text"])
        assert letter["key"] == b"hostile" and letter["value"] is None
        sealed = letter["sealed_value"]
        assert open_sealed(stack, sealed["key_id"], sealed["bound_to"], sealed["ciphertext"]) == value, name
    assert dead_counted(stack, topic) == had + len(rows), "each is counted once"
    check_good(stack, sender)


def check_good(stack, sender):
    """The next good record is served."""
    value = good(stack, sender.topic)
    key = value
    if sender.topic == "inputs":
        duplicates = stack.service("processor").metric("payfact_duplicates_total", kind="REPLAY")
        sender.put(value)
        wait_for("the replay is taken", lambda: stack.service("processor").metric("payfact_duplicates_total", kind="REPLAY") > duplicates)
        return
    if sender.topic == "psp-jobs":
        jobs = Jobs(stack)
        job = jobs.gate(jobs.job())
        jobs.put(job)
        jobs.wait_type(job, "ATTEMPT_SUCCEEDED")
        return
    if sender.topic == "commands":
        record = stack.upstream.command("CREATE_PAYMENT", MERCHANT, new_payment_id(), {**CREATE, "start": False, "merchant_order_no": str(time.time())})
        stack.upstream.send(record)
        key = record["payment_id"]
    else:
        payment = new_payment_id()
        body = stripe_event(payment)
        secret = next(a["webhook_secret"] for a in stack.psp_accounts if a["id"] == ACCOUNT_A)
        sender.put(notification(body, signature=stripe_signature(secret, body)))
        key = payment
    wait_for("it is an input", lambda: [m for m in stack.records("inputs") if m["key"] == key])


def test_every_poison_has_its_row_and_its_case(stack):
    """What the test above sent to inputs: kept for ever, sealed, in status DEAD, and a person is asked."""
    rows = stack.sql("SELECT e.status, e.body IS NOT NULL AS sealed, c.status AS case, c.kind FROM channel_event e"
                     " LEFT JOIN manual_case c ON c.case_id = '//' || e.transport_key WHERE e.kind = 'POISON'")  # fmt: skip
    assert len(rows) >= 20
    assert {(r["status"], r["sealed"], r["case"], r["kind"]) for r in rows} == {("DEAD", True, "OPEN", "DEAD_INPUT")}


def test_null_values_and_odd_keys_and_headers_stop_nobody(stack):
    for topic in READER:
        sender = Sender(stack, topic)
        junk = [(f"h{i}", b"v") for i in range(100)]
        before = sender.put(None, key=None)
        sender.put(b"x", key=b"\xff\xfe\0" * 100)
        sender.put(b"x", headers=junk)
        sender.put(b"x", headers=[("\u00e4\u00f6", b"\0\xff"), ("none", None), ("payfact-signature", b"x" * 5000)])
        if topic == "commands":  # unsigned: a metric; signed behind the headers that are read: the same
            value = good(stack, topic)
            sender.put(value, headers=junk + sender.signed(value))
            sender.put(value, headers=sender.signed(value, key_id="k" * 5000))
        check_good(stack, sender)
        assert before is not None


def test_unsigned_commands_are_counted_and_not_kept(stack):
    sender, relay = Sender(stack, "commands"), stack.service("relay")
    had, dead = relay.metric("payfact_commands_total", outcome="junk"), len(stack.records("dlq"))
    for value, _ in variants(stack, "commands").values():
        sender.put(value)
    count = len(variants(stack, "commands"))
    wait_for("counted", lambda: relay.metric("payfact_commands_total", outcome="junk") == had + count)
    assert len(stack.records("dlq")) == dead


def test_a_command_by_a_key_whose_principal_left_is_refused(stack):
    """Signed rightly once: the file decides now."""
    path = stack.dir / "accounts.json"
    text = path.read_text()
    document = json.loads(text)
    document["principals"] = [p for p in document["principals"] if p["id"] != "operator-3"]
    operator = Upstream(stack.brokers, stack.topic_name("commands"), stack.signers["operator-3"], "operator-3")
    path.with_suffix(".new").write_text(json.dumps(document))
    path.with_suffix(".new").rename(path)
    pause = {"psp": "stripe", "psp_account": ACCOUNT_A, "method": "", "reason_code": "TEST"}

    def refused():
        operator.send(operator.command("PAUSE_ROUTE", MERCHANT, "", pause), key="stripe/stripe-a")
        return [r for r in letters(stack).values() if r["reason_code"] == "KEY_UNKNOWN" and r["key"] == b"stripe/stripe-a"]

    try:
        wait_for("its key is unknown", refused, pause_s=0.5)
    finally:
        path.with_suffix(".new").write_text(text)
        path.with_suffix(".new").rename(path)


# ---- the callback port


class Port:
    def __init__(self, stack):
        self.stack, self.service = stack, stack.service("webhook")
        self.port = int(self.service.env["PAYFACT_HTTP_PORT"])
        self.secret = next(a["webhook_secret"] for a in stack.psp_accounts if a["id"] == ACCOUNT_A)

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def head(self, body, more="", length=None, path=f"/callbacks/{ACCOUNT_A}"):
        length = len(body) if length is None else length
        return (f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n"
                f"Stripe-Signature: {stripe_signature(self.secret, body)}\r\n{more}\r\n").encode()  # fmt: skip

    def send(self, raw, ends=False):
        """Everything that comes back until the server closes. ends: the client says that no more will come."""
        with self.connect() as client:
            client.sendall(raw)
            if ends:
                client.shutdown(socket.SHUT_WR)
            got = b""
            while more := client.recv(65536):
                got += more
        return got

    def status(self, body):
        got = self.send(self.head(body, "Connection: close\r\n") + body)
        return int(got.split(b" ")[1])

    def refusals(self):
        return self.service.metric("payfact_callback_refusals_total")

    def works(self):
        payment = new_payment_id()
        assert self.status(stripe_event(payment)) == 200
        return [m for m in self.stack.records("inputs") if m["key"] == payment]


@pytest.fixture
def port(stack):
    return Port(stack)


def nested(depth):
    event = json.loads(stripe_event(new_payment_id()))
    text = json.dumps(event)
    return (text[:-1] + ', "deep": ' + "[" * depth + "]" * depth + "}").encode()


SIGNED_NONSENSE = {
    "deeply nested": lambda body: nested(5000),
    "nested in objects": lambda body: b'{"a":' * 20000 + b"1" + b"}" * 20000,
    "cut in the middle": lambda body: body[: len(body) // 2],
    "cut at the last byte": lambda body: body[:-1],
    "two documents": lambda body: body + body,
    "no UTF-8 in a text": lambda body: body.replace(b"payment_intent.succeeded", b"payment_intent.\xff\xfe"),
    "half a surrogate": lambda body: body.replace(b"succeeded", b"\\ud800"),
    "a NUL in a text": lambda body: body.replace(b"payment_intent.succeeded", b"payment_intent\\u0000"),
    "UTF-16": lambda body: body.decode().encode("utf-16"),
    "the same member twice": lambda body: body.replace(b'"object": "event"', b'"object": "event", "object": "event"'),
    "an amount that is no integer": lambda body: body.replace(b'"amount_received": 2599', b'"amount_received": 25.99'),
    "an amount beyond 64 bits": lambda body: body.replace(b'"amount_received": 2599', b'"amount_received": 99999999999999999999'),
    "an amount below nothing": lambda body: body.replace(b'"amount_received": 2599', b'"amount_received": -2599'),
    "a currency that is none": lambda body: body.replace(b'"eur"', b'"euro"'),
    "no object": lambda body: body.replace(b'"data"', b'"dada"'),
}


@pytest.mark.parametrize("name", SIGNED_NONSENSE)
def test_rightly_signed_bytes_that_say_nothing_true_are_refused(port, name):
    body = stripe_event(new_payment_id())
    changed = SIGNED_NONSENSE[name](body)
    assert changed != body
    enqueued, refused = len(port.stack.records("inputs")), port.refusals()
    assert port.status(changed) == 400
    assert port.refusals() == refused + 1
    assert len(port.stack.records("inputs")) == enqueued
    assert port.works()


def test_a_body_that_stops_is_nothing(port):
    """The client says more than it sends, then is gone: no input, no answer to anybody, nothing held."""
    payment = new_payment_id()
    body = stripe_event(payment)
    for part in (0, 1, len(body) // 2, len(body) - 1):
        assert b" 200 " not in port.send(port.head(body) + body[:part], ends=True)
    assert port.works() and [m for m in port.stack.records("inputs") if m["key"] == payment] == []


def test_a_request_hidden_in_a_body_is_no_request(port):
    hidden_payment = new_payment_id()
    hidden_body = stripe_event(hidden_payment)
    hidden = port.head(hidden_body) + hidden_body
    outer = stripe_event(new_payment_id())
    for framing in ("Transfer-Encoding: chunked\r\n", "Content-Length: 0\r\n", "Transfer-Encoding : chunked\r\n",
                    "X: a\r\n b\r\n", "Transfer-Encoding: identity, chunked\r\n", "Transfer-encoding:\tchunked\r\n"):  # fmt: skip
        got = port.send(port.head(outer, framing, length=len(outer)) + b"0\r\n\r\n" + hidden)
        assert got.count(b"HTTP/1.1 ") == 1 and b" 400 " in got.split(b"\r\n")[0], framing
    assert port.works() and [m for m in port.stack.records("inputs") if m["key"] == hidden_payment] == []


def test_slow_drippers_are_cut_off_and_hold_up_nobody(port):
    """Clients that send a byte now and then, in the first line, the headers or the body: real callbacks are answered meanwhile."""
    body = stripe_event(new_payment_id())
    head = port.head(body)
    # The beginning of a request, and when it must have ended: 2 s a request, 30 s without a request line.
    starts = [(head[:20], 32), (head[:80], 4), (head + body[:5], 4)]
    clients = [port.connect() for _ in range(99)]
    try:
        for number, client in enumerate(clients):
            client.sendall(starts[number % 3][0])
        began, ended = time.monotonic(), [None] * len(clients)
        while None in ended and time.monotonic() - began < 40 * SCALE:
            for number, client in enumerate(clients):
                if ended[number] is None and drip(client):
                    ended[number] = time.monotonic() - began
            asked = time.monotonic()
            assert port.works()
            assert time.monotonic() - asked < 2 * SCALE
        assert None not in ended, f"{ended.count(None)} are still open"
        for number, (_, limit_s) in enumerate(starts):
            assert max(ended[number::3]) < limit_s * SCALE, number
    finally:
        for client in clients:
            client.close()


def drip(client):
    """One byte more; True when the server has closed."""
    client.setblocking(False)
    try:
        client.send(b"x")
        return client.recv(4096) in (b"",) or True
    except BlockingIOError:
        return False
    except OSError:
        return True
