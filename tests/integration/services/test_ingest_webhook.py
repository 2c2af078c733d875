# SPDX-License-Identifier: Apache-2.0
"""The callback port on real parts: each row of the table of callback answers and of the HTTP edge in contracts.md."""

import concurrent.futures
import hashlib
import http.client
import json
import socket
import time

import pytest

from parts import SECRETS, Proxy, database_proxy, open_sealed, partition_of, stripe_event, stripe_signature
from payfact_stack import ACCOUNT_A, ACCOUNT_B, Stack, new_payment_id
from procs import SCALE, wait_for

RECEIVED = b'{"received":true}'
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Port:
    """A webhook process and a client for it."""

    def __init__(self, stack, instance=None, **settings):
        self.stack = stack
        self.service = stack.service("webhook", instance, **settings)
        self.port = int(self.service.env["PAYFACT_HTTP_PORT"])

    def start(self):
        self.service.start()
        return self

    def secret(self, account):
        return next(a["webhook_secret"] for a in self.stack.psp_accounts if a["id"] == account)

    def raw(self, method, path, body=b"", headers=()):
        """(status, headers, body)"""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def callback(self, body, account=ACCOUNT_A, signature=None, **headers):
        signature = signature or stripe_signature(self.secret(account), body)
        headers = {"Stripe-Signature": signature, "Content-Type": "application/json", **headers}
        return self.raw("POST", f"/callbacks/{account}", body, headers)

    def inputs(self, payment):
        return [m for m in self.stack.records("inputs") if m["key"] == payment]


def accounts(document):
    """A third account whose answers are strict, and a fourth that takes few callbacks."""
    first = document["psp_accounts"][0]
    document["psp_accounts"].append({**first, "id": "stripe-strict", "answers": "strict"})
    document["psp_accounts"].append({**first, "id": "stripe-slow", "limits": {**first["limits"], "callbacks_per_s": 3}})


def secret_of_the_first(port):
    return port.secret(ACCOUNT_A)


@pytest.fixture(scope="module")
def stack(servers):
    with Stack(servers, edit=accounts) as made:
        proxy, conninfo = database_proxy(made, "payfact_webhook")
        made._settings["webhook"] = {"PG_CONNINFO": conninfo}
        made.database_proxy = proxy
        made.servers.admin("DO $$ BEGIN CREATE ROLE payfact_webhook_login LOGIN IN ROLE payfact_webhook; "
                           "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$")  # fmt: skip
        yield made


@pytest.fixture(scope="module")
def port(stack):
    made = Port(stack).start()
    yield made
    assert made.service.stop() == 0
    log = made.service.log.read_text()
    for secret in (*SECRETS, *(a["webhook_secret"] for a in stack.psp_accounts)):
        assert secret not in log
        assert all(secret.encode() not in m["value"] for topic in ("inputs", "dlq") for m in stack.records(topic))


def test_a_durable_callback_is_answered_as_stripe_wants_and_its_evidence_opens(port):
    payment = new_payment_id()
    body = stripe_event(payment)
    before = time.time()
    status, headers, answer = port.callback(body, traceparent=TRACE)
    assert (status, answer, headers["content-type"]) == (200, RECEIVED, "application/json")
    (message,) = port.inputs(payment)  # durable when it was answered
    assert message["partition"] == partition_of(payment, port.stack.partitions)
    assert message["headers"] == {"traceparent": TRACE.encode()}
    record = message["record"]
    assert (record["kind"], record["source"], record["evidence_level"]) == ("PSP_EVENT", "WEBHOOK", "WEBHOOK")
    assert record["payment_id"] == payment and record["traceparent"] == TRACE
    assert record["transport_key"] == json.loads(body)["id"]
    event = record["event"]
    assert (event["type"], event["psp"], event["psp_account"]) == ("ATTEMPT_SUCCEEDED", "stripe", ACCOUNT_A)
    assert (event["merchant_request_no"], event["amount_minor"], event["currency"]) == (payment + "A01", 2599, "EUR")
    assert event["call"] is None
    assert before - 1 < record["received_at"].timestamp() < time.time() + 1
    evidence = record["evidence"]
    assert evidence["sha256"] == hashlib.sha256(body).digest()
    assert evidence["verified_by"] == "whsec-a"
    bound_to = f"stripe/{ACCOUNT_A}/{record['transport_key']}"
    assert open_sealed(port.stack, evidence["key_id"], bound_to, evidence["ciphertext"]) == body
    with pytest.raises(AssertionError):
        open_sealed(port.stack, evidence["key_id"], bound_to + "x", evidence["ciphertext"])


def test_a_duplicate_of_what_is_durable_is_not_enqueued_again(port):
    payment = new_payment_id()
    body = stripe_event(payment)
    sent = send_until_known(port, body)
    key = dedupe_key(body)
    assert 0 < int(port.stack.redis.command("PTTL", key)) <= 900_000

    def known():
        nonlocal sent
        sent += 1
        assert port.callback(body)[::2] == (200, RECEIVED)
        return port.service.metric("payfact_callbacks_total", psp_account=ACCOUNT_A, outcome="duplicate")

    duplicates = wait_for("it is known as a duplicate", known)
    enqueued = len(port.inputs(payment))
    assert enqueued + duplicates == sent
    # the same event id for another account is another event
    assert port.raw("POST", "/callbacks/stripe-strict", body,
                    {"Stripe-Signature": stripe_signature(secret_of_the_first(port), body)})[0] == 400  # fmt: skip
    assert len(port.inputs(payment)) == enqueued + 1


def dedupe_key(body, account=ACCOUNT_A, epoch=0):
    name = f"stripe/{account}/{json.loads(body)['id']}"
    return f"payfact:cb:{epoch}:{hashlib.sha256(name.encode()).hexdigest()}"


def has_key(port, body, epoch=0):
    return port.stack.redis.command("EXISTS", dedupe_key(body, epoch=epoch)) == "1"


def send_until_known(port, body, epoch=0):
    """A Redis that does not answer within its few milliseconds is done without: again. Returns how often it was sent."""
    times = 0

    def known():
        nonlocal times
        if not has_key(port, body, epoch):
            times += 1
            assert port.callback(body)[0] == 200
        return has_key(port, body, epoch)

    wait_for("its key is set", known, pause_s=0.1)
    return times


@pytest.mark.parametrize(
    "reason, change",
    [
        ("signature_mismatch", lambda s, b: stripe_signature("whsec_other", b)),
        ("signature_mismatch", lambda s, b: stripe_signature(s, b + b" ")),
        ("timestamp_too_old", lambda s, b: stripe_signature(s, b, int(time.time()) - 400)),
        ("timestamp_in_future", lambda s, b: stripe_signature(s, b, int(time.time()) + 400)),
        ("malformed_header", lambda s, b: "nonsense"),
        ("no_v1_signature", lambda s, b: stripe_signature(s, b).replace("v1=", "v0=")),
        ("header_missing", None),
    ],
)
def test_what_is_not_verified_is_refused_and_counted_by_reason(port, reason, change):
    payment = new_payment_id()
    body = stripe_event(payment)
    had = port.service.metric("payfact_callback_refusals_total", psp_account=ACCOUNT_A, reason=reason)
    headers = {"Stripe-Signature": change(port.secret(ACCOUNT_A), body)} if change else {}
    status, _, answer = port.raw("POST", f"/callbacks/{ACCOUNT_A}", body, headers)
    assert (status, answer) == (400, b'{"error":"refused"}')
    assert port.service.metric("payfact_callback_refusals_total", psp_account=ACCOUNT_A, reason=reason) == had + 1
    assert port.inputs(payment) == []


@pytest.mark.parametrize("body", [b"not json", b"", b'{"id": "evt_1", "id": "evt_2"}', b'{"id": "evt_1"}', b"[]", b"\xff\xfe"])
def test_signed_bytes_that_are_no_event_are_refused(port, body):
    ends = len(port.stack.records("inputs"))
    assert port.callback(body)[0] == 400
    assert len(port.stack.records("inputs")) == ends


def test_a_type_that_nobody_knows_is_kept(port):
    payment = new_payment_id()
    assert port.callback(stripe_event(payment, kind="payment_intent.invented"))[0] == 200
    (message,) = port.inputs(payment)
    assert message["record"]["event"]["type"] == "OTHER"
    assert message["record"]["event"]["psp_event_type"] == "payment_intent.invented"


def test_another_accounts_signature_is_none_of_this_one(port):
    body = stripe_event(new_payment_id())
    assert port.callback(body, ACCOUNT_B, signature=stripe_signature(port.secret(ACCOUNT_A), body))[0] == 400
    assert port.callback(body, ACCOUNT_B)[0] == 200


@pytest.mark.parametrize(
    "method, path, status",
    [
        ("POST", "/callbacks/nobody", 404),
        ("POST", "/callbacks/", 404),
        ("POST", "/callbacks", 404),
        ("POST", "/", 404),
        ("POST", f"/callbacks/{ACCOUNT_A}/more", 404),
        ("POST", "/callbacks/UPPER", 404),
        ("POST", "/callbacks/" + "a" * 33, 404),
        ("POST", "/callbacks/stripe%2Da", 400),
        ("POST", "/callbacks/stripe-a%00", 400),
        ("POST", "/callbacks/..%2Fcallbacks%2Fstripe-a", 400),
        ("GET", f"/callbacks/{ACCOUNT_A}", 405),
        ("PUT", f"/callbacks/{ACCOUNT_A}", 405),
        ("DELETE", f"/callbacks/{ACCOUNT_A}", 405),
        ("GET", "/healthz", 404),
    ],
)
def test_the_path_names_an_account_or_nothing(port, method, path, status):
    body = stripe_event(new_payment_id()) if method == "POST" else b""
    got, headers, _ = port.raw(method, path, body, {"Stripe-Signature": stripe_signature(port.secret(ACCOUNT_A), body)})
    assert got == status
    assert headers.get("allow") == ("POST" if status == 405 else None)


def test_a_body_that_is_too_large_is_refused_before_it_is_read(port):
    with socket.create_connection(("127.0.0.1", port.port), timeout=10) as client:
        client.sendall(f"POST /callbacks/{ACCOUNT_A} HTTP/1.1\r\nHost: x\r\nContent-Length: 300000\r\n\r\n".encode())
        assert b" 413 " in client.recv(4096).split(b"\r\n")[0]  # not a byte of it was sent
    with socket.create_connection(("127.0.0.1", port.port), timeout=10) as client:
        head = f"POST /callbacks/{ACCOUNT_A} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        client.sendall(head + b"493e0\r\n" + b"x" * 300000)
        assert b" 413 " in client.recv(4096).split(b"\r\n")[0]
    wait_for("it is counted", lambda: port.service.metric("payfact_http_refused_requests", why="too_large") == 2)


@pytest.mark.parametrize(
    "head",
    [
        "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 2\r\nContent-Length: 2\r\n",
        "Content-Length: 2\r\nX-Folded: a\r\n b\r\n",
    ],
)
def test_ambiguous_framing_is_refused(port, head):
    with socket.create_connection(("127.0.0.1", port.port), timeout=10) as client:
        client.sendall(f"POST /callbacks/{ACCOUNT_A} HTTP/1.1\r\nHost: x\r\n{head}\r\n{{}}".encode())
        assert b" 400 " in client.recv(4096).split(b"\r\n")[0]


def test_expect_continue_and_pipelining_work(port):
    payment = new_payment_id()
    body = stripe_event(payment)
    head = (
        f"POST /callbacks/{ACCOUNT_A} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        f"Stripe-Signature: {stripe_signature(port.secret(ACCOUNT_A), body)}\r\n"
    )
    with socket.create_connection(("127.0.0.1", port.port), timeout=10) as client:
        client.sendall((head + "Expect: 100-continue\r\n\r\n").encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 100")
        client.sendall(body)
        assert client.recv(4096).startswith(b"HTTP/1.1 200")
        client.sendall((head + "\r\n").encode() + body + (head + "\r\n").encode() + body)
        got = b""
        while got.count(b"HTTP/1.1 200") < 2:
            got += client.recv(4096)


def test_too_fast_is_429_with_retry_after_and_junk_takes_nothing(port):
    secret = secret_of_the_first(port)

    def send(signed):
        body = stripe_event(new_payment_id())
        signature = stripe_signature(secret if signed else "whsec_junk", body)
        return port.raw("POST", "/callbacks/stripe-slow", body, {"Stripe-Signature": signature})

    assert [send(False)[0] for _ in range(20)] == [400] * 20
    answers = [send(True) for _ in range(12)]
    assert [a[0] for a in answers[:3]] == [200] * 3
    refused = [a for a in answers if a[0] == 429]
    assert len(refused) >= 5 and {a[0] for a in answers} == {200, 429}
    assert all(int(a[1]["retry-after"]) >= 1 for a in refused)
    assert port.callback(stripe_event(new_payment_id()))[0] == 200  # another account's limit is its own
    wait_for("tokens come back", lambda: send(True)[0] == 200)


def test_new_limits_and_keys_of_the_accounts_file_count_without_a_restart(port):
    file = port.stack.dir / "accounts.json"
    text = file.read_text()
    document = json.loads(text)
    next(a for a in document["psp_accounts"] if a["id"] == "stripe-slow")["limits"]["callbacks_per_s"] = 1000
    replace(file, json.dumps(document))
    secret = secret_of_the_first(port)

    def all_taken():
        bodies = [stripe_event(new_payment_id()) for _ in range(20)]
        answers = [port.raw("POST", "/callbacks/stripe-slow", b, {"Stripe-Signature": stripe_signature(secret, b)}) for b in bodies]
        return {a[0] for a in answers} == {200}

    wait_for("the new limit counts", all_taken)
    replace(file, "{ broken")
    wait_for("a bad file is said", lambda: port.service.metric("payfact_ingest_errors_total", part="accounts") > 0)
    assert all_taken()
    replace(file, text)


def replace(file, text):
    new = file.with_suffix(".new")
    new.write_text(text)
    new.rename(file)


def attempt(stack, payment, account, amount=2599):
    stack.sql(
        "INSERT INTO payment_order (payment_id, merchant_id, merchant_order_no, amount_minor, currency, capture_mode, status,"
        " failover_until, expires_at, created_by, created_at, updated_at)"
        " VALUES (%s, 'acme', %s, %s, 'EUR', 'AUTOMATIC', 'PROCESSING', now(), now(), 'shop', now(), now())",
        payment, payment, amount,
    )  # fmt: skip
    stack.sql(
        "INSERT INTO payment_attempt (attempt_id, payment_id, attempt_no, route_no, psp, psp_account, method,"
        " merchant_request_no, amount_minor, currency, status, result_certainty, created_at, updated_at)"
        " VALUES (%s, %s, 1, 0, 'stripe', %s, 'card', %s, %s, 'EUR', 'SUBMITTED', 1, now(), now())",
        payment + "A01", payment, account, payment + "A01", amount,
    )  # fmt: skip


def strict(port, body):
    secret = secret_of_the_first(port)
    return port.raw("POST", "/callbacks/stripe-strict", body, {"Stripe-Signature": stripe_signature(secret, body)})


def test_strict_answers_say_what_does_not_fit_and_keep_it_all_the_same(port):
    fits, amount, elsewhere, unknown = (new_payment_id() for _ in range(4))
    for payment, account in ((fits, "stripe-strict"), (amount, "stripe-strict"), (elsewhere, ACCOUNT_A)):
        attempt(port.stack, payment, account)
    assert strict(port, stripe_event(fits))[::2] == (200, RECEIVED)
    for body in (stripe_event(amount, amount=2600), stripe_event(elsewhere), stripe_event(unknown)):
        assert strict(port, body)[::2] == (400, b'{"error":"mismatch"}')
    for payment in (fits, amount, elsewhere, unknown):
        assert len(port.inputs(payment)) == 1  # the answer was chosen, the message was kept
    # a processing event says nothing about an amount that was taken
    assert strict(port, stripe_event(fits, kind="payment_intent.processing", status="processing", amount_received=0))[0] == 200


@pytest.mark.parametrize("fault", ["refuse", "stall"])
def test_q5_strict_falls_back_to_custody_when_the_database_does_not_answer(port, fault):
    proxy = port.stack.database_proxy
    payments = [new_payment_id() for _ in range(30)]
    getattr(proxy, fault)()
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(15) as pool:
        answers = list(pool.map(lambda p: strict(port, stripe_event(p)), payments))
    assert {a[0] for a in answers} == {200}
    assert time.monotonic() - began < 2 * SCALE  # it costs one of them its time, not all of them
    assert all(len(port.inputs(p)) == 1 for p in payments)
    proxy.back() if fault == "refuse" else (proxy.go_on(), proxy.cut())
    wait_for("strict again", lambda: strict(port, stripe_event(new_payment_id()))[0] == 400)


def test_many_at_once_are_all_durable(port):
    payments = [new_payment_id() for _ in range(300)]
    with concurrent.futures.ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(lambda p: port.callback(stripe_event(p)), payments))
    assert {a[0] for a in answers} == {200}
    keys = [m["key"] for m in port.stack.records("inputs")]
    assert set(payments) <= set(keys)


def test_k5_sigterm_answers_what_is_in_hand_and_ends(stack):
    port = Port(stack, "drained").start()
    payments = [new_payment_id() for _ in range(60)]
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        calls = [pool.submit(port.callback, stripe_event(p)) for p in payments]
        wait_for("some are answered", lambda: sum(c.done() for c in calls) >= 5)
        assert port.service.stop() == 0
        concurrent.futures.wait(calls)
    answered = [p for p, c in zip(payments, calls) if not c.exception() and c.result()[0] == 200]
    kept = {m["key"] for m in stack.records("inputs")}
    assert answered and set(answered) <= kept


def test_k7_without_redis_a_duplicate_is_enqueued_with_the_same_keys(servers):
    with Stack(servers, redis=False) as stack:
        port = Port(stack).start()
        check_enqueued_twice(port)
        assert port.service.stop() == 0


def check_enqueued_twice(port):
    payment = new_payment_id()
    body = stripe_event(payment)
    assert [port.callback(body)[0] for _ in range(2)] == [200, 200]
    first, second = (m["record"] for m in port.inputs(payment))
    for field in ("transport_key", "business_key", "event", "payment_id"):
        assert first[field] == second[field]


@pytest.mark.parametrize("fault", ["refuse", "stall"])
def test_k7_a_redis_that_is_away_or_slow_costs_its_budget_and_no_more(servers, fault):
    with Stack(servers) as stack:
        proxy = Proxy("127.0.0.1", stack.redis.port)
        stack.at_exit(lambda: proxy.__exit__())
        port = Port(stack, "redis", REDIS_URL=f"redis://127.0.0.1:{proxy.port}").start()
        for _ in range(5):
            assert port.callback(stripe_event(new_payment_id()))[0] == 200
        getattr(proxy, fault)()
        check_enqueued_twice(port)
        times = []
        for _ in range(100):
            began = time.monotonic()
            assert port.callback(stripe_event(new_payment_id()))[0] == 200
            times.append(time.monotonic() - began)
        assert sorted(times)[50] < 0.1 * SCALE and max(times) < 1.0 * SCALE  # 5 ms budget, then the breaker
        assert port.service.get("/readyz")[0] == 200  # nothing rests on it
        assert port.service.stop() == 0


def test_q1_q3_without_kafka_it_is_503_and_no_key_is_set(servers):
    with Stack(servers, broker="mock", settings={"webhook": {"PRODUCE_TIMEOUT_MS": 500}}) as stack:
        port = Port(stack).start()
        send_until_known(port, stripe_event(new_payment_id()))
        stack.broker.process.freeze()
        payment = new_payment_id()
        body = stripe_event(payment)
        began = time.monotonic()
        status, headers, answer = port.callback(body)
        assert (status, answer) == (503, b'{"error":"unavailable"}')
        assert int(headers["retry-after"]) > 0
        assert time.monotonic() - began < 2 * SCALE  # before Stripe gives up
        assert not has_key(port, body)
        wait_for("not ready", lambda: port.service.get("/readyz")[0] == 503)
        assert port.service.get("/healthz")[0] == 200
        assert not has_key(port, body)
        stack.broker.process.thaw()
        wait_for("it is taken again", lambda: port.callback(body)[0] == 200)
        wait_for("ready again", lambda: port.service.get("/readyz")[0] == 200)
        send_until_known(port, body)
        assert {m["record"]["transport_key"] for m in port.inputs(payment)} == {json.loads(body)["id"]}
        assert port.service.stop() == 0


def test_a_new_epoch_knows_no_old_key(servers):
    with Stack(servers) as stack:
        body = stripe_event(new_payment_id())
        for epoch in (0, 1):
            port = Port(stack, f"epoch-{epoch}", DEDUPE_EPOCH=epoch).start()
            assert not has_key(port, body, epoch)
            had = len(stack.records("inputs"))
            send_until_known(port, body, epoch)
            assert len(stack.records("inputs")) > had
            assert port.service.stop() == 0
