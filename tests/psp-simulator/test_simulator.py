# SPDX-License-Identifier: Apache-2.0
"""The simulator itself: it must be right about Stripe and about its own ledger, or every test above it is worthless."""

import base64
import hashlib
import hmac
import http.client
import http.server
import json
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

import pytest

import stripe
from client import Simulator

HERE = pathlib.Path(__file__).parent
CODES = {json.loads(p.read_text())["code"] for p in (HERE.parent / "vectors" / "stripe").glob("*.json")}
VECTORS = sorted((HERE.parent / "vectors" / "stripe").glob("*.json"))
SAMPLES = HERE.parent / "samples" / "stripe"
SECRET_A, SECRET_B = "whsec_a1b2c3d4e5f6", "whsec_b6c5d4e3f2a1"
ORDER = "01J0000000000000000000000AA01"


# ---- an independent reading of Stripe's scheme, itself checked by every vector


def read_signature(header, raw, keys, now, tolerance):
    if not header:
        return "header_missing"
    if isinstance(header, list):
        return "header_repeated"
    at, macs = None, []
    for part in header.split(","):
        name, equals, value = part.partition("=")
        if not equals:
            return "malformed_header"
        if name.strip() == "t":
            if at is not None or not re.fullmatch(r"-?(0|[1-9][0-9]{0,17})", value):
                return "malformed_header"
            at = value
        elif name.strip() == "v1":
            macs.append(value)
    if at is None:
        return "malformed_header"
    if not macs:
        return "no_v1_signature"
    wanted = [hmac.new(k.encode(), at.encode() + b"." + raw, hashlib.sha256).hexdigest() for k in keys]
    if not set(wanted) & set(macs):
        return "signature_mismatch"
    if now - int(at) > tolerance:
        return "timestamp_too_old"
    return "timestamp_in_future" if int(at) - now > tolerance else "ok"


def vectors(kind, *codes):
    chosen = [path for path in VECTORS if (v := json.loads(path.read_text()))["kind"] == kind and v["code"] in codes]
    assert chosen
    return pytest.mark.parametrize("path", chosen, ids=lambda p: p.stem)


def load_vector(path):
    v = json.loads(path.read_text())
    raw = base64.b64decode(v["payload_b64"]) if "payload_b64" in v else v["payload"].encode()
    header = next((h for n, h in v["headers"].items() if n.lower() == "stripe-signature"), None)
    return v, raw, header


@vectors("webhook", *CODES)
def test_reader_agrees_with_vector(path):
    v, raw, header = load_vector(path)
    assert read_signature(header, raw, v.get("secrets", [v["secret"]]), v["now"], v["tolerance"]) == v["code"]


@vectors("primitive", "ok")
def test_mac_satisfies_vector(path):
    v, raw, _ = load_vector(path)
    assert stripe.mac_hex(v["secret"], raw) == v["expected"]


@vectors("webhook", "ok", "timestamp_too_old", "timestamp_in_future")
def test_signature_satisfies_vector(path):
    v, raw, header = load_vector(path)
    at = re.search(r"(?:^|,)t=([0-9]+)", header)[1]
    macs = re.findall(r"v1=([0-9a-f]{64})", header)
    assert any(stripe.signature(secret, at, raw) in macs for secret in v.get("secrets", [v["secret"]]))


def test_vectors_are_there():
    assert len(VECTORS) >= 40


# ---- a client, a receiver of callbacks


class Receiver:
    """Takes callbacks; answers with the next of `statuses`, the last one for ever."""

    def __init__(self):
        self.got, self.statuses, self.lock = [], [200], threading.Lock()
        self.together = None  # a Barrier: nobody is answered before so many are there
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.together:
                    receiver.together.wait(5)
                with receiver.lock:
                    status = receiver.statuses.pop(0) if len(receiver.statuses) > 1 else receiver.statuses[0]
                    receiver.got.append({"path": self.path, "raw": raw, "headers": self.headers, "status": status,
                                         "at": time.monotonic()})  # fmt: skip
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def events(self, kind=None):
        with self.lock:
            events = [json.loads(g["raw"]) for g in self.got]
        return [e for e in events if kind in (None, e["type"])]

    def verdicts(self, secret):
        now = time.time()
        with self.lock:
            return [read_signature(g["headers"].get("Stripe-Signature"), g["raw"], [secret], now, 300) for g in self.got]


class Api:
    def __init__(self, psp, key="sk_test_a"):
        self.psp, self.key = psp, key

    def call(self, method, path, params=None, idem=None, timeout_s=5, connection=None, **headers):
        headers = {"Authorization": f"Bearer {self.key}", **headers}
        body = None
        if method == "POST":
            body = urllib.parse.urlencode(params or {})
            headers["Content-Type"] = headers.pop("content_type", "application/x-www-form-urlencoded")
        elif params:
            path += "?" + urllib.parse.urlencode(params)
        if idem:
            headers["Idempotency-Key"] = idem
        used = connection or http.client.HTTPConnection(urllib.parse.urlsplit(self.psp.url).netloc, timeout=timeout_s)
        try:
            used.request(method, path, body=body, headers=headers)
            response = used.getresponse()
            text = response.read()
        finally:
            if not connection:
                used.close()
        return response.status, json.loads(text), response.headers

    def pay(self, idem=ORDER, order=None, **extra):
        params = {"amount": "2599", "currency": "eur", "confirm": "true", "payment_method": "pm_card_visa",
                  "metadata[order_id]": order or idem, **extra}  # fmt: skip
        params = {name: value for name, value in params.items() if value is not None}
        return self.call("POST", "/v1/payment_intents", params, idem=idem)


@pytest.fixture(scope="module")
def process():
    with Simulator([], settings={"speed": 1200, "callback_delay_ms": 0, "search_lag_ms": 300}) as psp:
        yield psp


@pytest.fixture
def hook():
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()


@pytest.fixture
def psp(process, hook, request):
    """The shared process with two accounts of this test's own; keys are per account, so tests do not meet."""
    n = hashlib.sha256(request.node.name.encode()).hexdigest()[:12]
    process.clear_script()
    for name, secret in (("a", SECRET_A), ("b", SECRET_B)):
        process.put_account({"id": f"{name}-{n}", "psp": "stripe", "secret_key": f"sk_test_{name}_{n}",
                             "webhook_secret": secret, "callback_url": f"{hook.url}/callbacks/{name}"})  # fmt: skip
    process.a, process.b = f"a-{n}", f"b-{n}"
    process.api_a, process.api_b = Api(process, f"sk_test_a_{n}"), Api(process, f"sk_test_b_{n}")
    yield process
    process.clear_script()
    process.api("up")


def kinds(psp):
    return [e["kind"] for e in psp.ledger(account=psp.a)]


def wait_for(condition, limit_s=10):
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, "condition not reached"
        time.sleep(0.01)


# ---- the API


def test_a_payment_succeeds_and_is_booked_once(psp):
    status, body, headers = psp.api_a.pay()
    assert (status, body["status"], body["amount_received"]) == (200, "succeeded", 2599)
    assert headers["Request-Id"].startswith("req_") and "Idempotent-Replayed" not in headers
    (entry,) = psp.ledger(account=psp.a)
    assert (entry["kind"], entry["order"], entry["amount"], entry["currency"]) == ("charge", ORDER, 2599, "EUR")
    assert entry["payment"] == body["id"] and entry["object"] == body["latest_charge"]
    (total,) = psp.totals(account=psp.a)
    assert (total["charges"], total["charged_minor"]) == (1, 2599)


@pytest.mark.parametrize("sample,kind", [
    ("payment_succeeded", "payment_intent.succeeded"), ("charge_succeeded", "charge.succeeded"),
    ("charge_refunded", "charge.refunded"), ("refund_created_pending", "refund.created"),
])  # fmt: skip
def test_events_have_the_samples_fields(psp, hook, sample, kind):
    _, body, _ = psp.api_a.pay()
    psp.api_a.call("POST", "/v1/refunds", {"payment_intent": body["id"], "amount": "500"}, idem="R1")
    assert psp.drain(psp.a)
    expected = json.loads((SAMPLES / f"{sample}.json").read_text())["body"]
    (event,) = hook.events(kind)
    assert set(event) == set(expected)
    assert set(event["data"]["object"]) == set(expected["data"]["object"])
    assert event["request"]["idempotency_key"] and event["livemode"] is False


def test_same_key_replays_and_other_parameters_are_refused(psp):
    _, first, _ = psp.api_a.pay()
    status, again, headers = psp.api_a.pay()
    assert (status, again, headers["Idempotent-Replayed"]) == (200, first, "true")
    status, body, _ = psp.api_a.pay(amount="2600")
    assert (status, body["error"]["type"]) == (400, "idempotency_error")
    assert kinds(psp) == ["charge"]
    assert [r["replayed"] for r in psp.requests(account=psp.a)] == [False, True, False]


def test_another_key_charges_again_even_for_the_same_order(psp):
    psp.api_a.pay()
    psp.api_a.pay(idem="other", order=ORDER)
    assert psp.totals(account=psp.a)[0]["charges"] == 2


def test_keys_of_accounts_are_apart(psp):
    psp.api_a.pay()
    status, _, headers = psp.api_b.pay()
    assert status == 200 and "Idempotent-Replayed" not in headers


def test_a_key_in_flight_is_409(psp):
    psp.script({"account": psp.a, "do": "delay", "delay_ms": 600})
    slow = threading.Thread(target=psp.api_a.pay)
    slow.start()
    wait_for(lambda: psp.requests(account=psp.a))
    status, body, _ = psp.api_a.pay()
    slow.join()
    assert (status, body["error"]["code"]) == (409, "idempotency_key_in_use")
    assert kinds(psp) == ["charge"]


def test_failed_validation_stores_nothing(psp):
    status, body, _ = psp.api_a.pay(amount="12.5")
    assert (status, body["error"]["param"]) == (400, "amount")
    assert psp.api_a.pay()[0] == 200  # the same key, other parameters


def test_a_decline_is_402_and_is_replayed(psp, hook):
    psp.script({"account": psp.a, "do": "decline", "decline_code": "insufficient_funds", "times": 1})
    status, body, _ = psp.api_a.pay()
    intent = body["error"]["payment_intent"]
    assert (status, body["error"]["code"], body["error"]["decline_code"]) == (402, "card_declined", "insufficient_funds")
    assert (intent["status"], intent["payment_method"]) == ("requires_payment_method", None)
    assert psp.api_a.pay()[:2] == (402, body)
    assert kinds(psp) == []
    assert psp.drain(psp.a) and hook.events("payment_intent.payment_failed")
    psp.advance(account=psp.a, order=ORDER, to="succeeded")  # later, on the same object
    assert kinds(psp) == ["charge"]
    assert psp.api_a.pay()[0] == 402  # the stored outcome stays
    assert psp.api_a.call("GET", f"/v1/payment_intents/{intent['id']}")[1]["status"] == "succeeded"


def test_bad_credentials_and_foreign_objects(psp):
    assert Api(psp, "sk_test_wrong").pay()[0] == 401
    _, body, _ = psp.api_a.pay()
    status, answer, _ = psp.api_b.call("GET", f"/v1/payment_intents/{body['id']}")
    assert (status, answer["error"]["code"]) == (404, "resource_missing")
    basic = base64.b64encode(f"{psp.api_a.key}:".encode()).decode()
    path = f"/v1/payment_intents/{body['id']}"
    assert psp.api_a.call("GET", path, Authorization=f"Basic {basic}")[0] == 200
    assert psp.api_a.call("GET", "/v1/nothing")[0] == 404


@pytest.mark.parametrize("currency,amount,status,minor", [
    ("isk", "120000", 200, 1200), ("isk", "120001", 400, None), ("ugx", "500", 200, 5), ("jpy", "500", 200, 500),
    ("kwd", "12340", 200, 12340), ("kwd", "12345", 400, None), ("eur", "0", 400, None), ("xyz", "100", 400, None),
])  # fmt: skip
def test_amount_units(psp, currency, amount, status, minor):
    assert psp.api_a.pay(currency=currency, amount=amount)[0] == status
    assert [e["amount_minor"] for e in psp.ledger(account=psp.a)] == ([minor] if minor else [])


@pytest.mark.parametrize("extra,param", [
    ({"amonut": "1"}, "amonut"), ({"payment_method": None}, "payment_method"), ({"currency": None}, "currency"),
    ({"capture_method": "later"}, "capture_method"),
])  # fmt: skip
def test_bad_parameters(psp, extra, param):
    status, body, _ = psp.api_a.pay(**extra)
    assert (status, body["error"]["param"]) == (400, param)
    assert kinds(psp) == []


def test_json_body_and_repeated_parameter_are_refused(psp):
    assert psp.api_a.call("POST", "/v1/payment_intents", {"amount": "1"}, content_type="application/json")[0] == 400
    twice = urllib.parse.urlencode([("amount", "1"), ("amount", "2")])
    with pytest.raises(stripe.Invalid):
        stripe.parse_form(twice)


def test_manual_capture_partly_then_cancel_is_refused(psp, hook):
    _, body, _ = psp.api_a.pay(capture_method="manual")
    assert (body["status"], body["amount_capturable"], body["amount_received"]) == ("requires_capture", 2599, 0)
    path = f"/v1/payment_intents/{body['id']}"
    assert psp.api_a.call("POST", path + "/capture", {"amount_to_capture": "2600"}, idem="C0")[0] == 400
    _, body, _ = psp.api_a.call("POST", path + "/capture", {"amount_to_capture": "2000"}, idem="C1")
    assert (body["status"], body["amount_received"]) == ("succeeded", 2000)
    status, body, _ = psp.api_a.call("POST", path + "/cancel", idem="X1")
    assert (status, body["error"]["code"]) == (400, "payment_intent_unexpected_state")
    assert kinds(psp) == ["authorize", "capture", "release"]
    total = psp.totals(account=psp.a)[0]
    assert (total["authorized_minor"], total["charged_minor"], total["released_minor"]) == (2599, 2000, 599)
    assert psp.drain(psp.a) and hook.events("payment_intent.amount_capturable_updated")


def test_cancel_then_nothing_can_succeed(psp, hook):
    psp.script({"account": psp.a, "do": "requires_action"})
    _, body, _ = psp.api_a.pay(return_url="https://shop.example/return")
    assert body["next_action"]["redirect_to_url"]["return_url"] == "https://shop.example/return"
    path = f"/v1/payment_intents/{body['id']}"
    _, body, _ = psp.api_a.call("POST", path + "/cancel", {"cancellation_reason": "abandoned"}, idem="X1")
    assert (body["status"], body["cancellation_reason"]) == ("canceled", "abandoned")
    assert psp.api_a.call("POST", path + "/confirm", {"payment_method": "pm_card_visa"}, idem="CF")[0] == 400
    with pytest.raises(RuntimeError):
        psp.advance(account=psp.a, order=ORDER, to="succeeded")
    assert kinds(psp) == ["cancel"]
    assert psp.drain(psp.a) and hook.events("payment_intent.canceled")


def test_confirm_pays_an_unconfirmed_intent(psp):
    _, body, _ = psp.api_a.pay(confirm=None)
    assert (body["status"], kinds(psp)) == ("requires_confirmation", [])
    _, body, _ = psp.api_a.call("POST", f"/v1/payment_intents/{body['id']}/confirm", idem="CF")
    assert (body["status"], kinds(psp)) == ("succeeded", ["charge"])


@pytest.mark.parametrize("method,status,state", [
    ("pm_card_chargeDeclined", 402, None), ("pm_card_authenticationRequired", 200, "requires_action"),
    ("pm_sepaDebit", 200, "processing"),
])  # fmt: skip
def test_stripes_test_methods(psp, method, status, state):
    got, body, _ = psp.api_a.pay(payment_method=method)
    assert (got, body.get("status")) == (status, state)


def test_search_lags_behind_by_id_does_not(psp):
    _, body, _ = psp.api_a.pay()
    query = {"query": f"metadata['order_id']:'{ORDER}'"}
    assert psp.api_a.call("GET", "/v1/payment_intents/search", query)[1]["data"] == []
    shown = psp.api_a.call("GET", f"/v1/payment_intents/{body['id']}", {"expand[]": "latest_charge"})[1]
    assert shown["latest_charge"]["payment_intent"] == body["id"]
    wait_for(lambda: psp.api_a.call("GET", "/v1/payment_intents/search", query)[1]["data"])
    (found,) = psp.api_a.call("GET", "/v1/payment_intents/search", query)[1]["data"]
    assert (found["id"], found["status"]) == (body["id"], "succeeded")
    assert psp.api_b.call("GET", "/v1/payment_intents/search", query)[1]["data"] == []


def test_refunds_never_exceed_and_can_fail_later(psp, hook):
    _, body, _ = psp.api_a.pay()
    refund = {"payment_intent": body["id"], "amount": "2000", "metadata[refund_ref]": "R01"}
    status, first, _ = psp.api_a.call("POST", "/v1/refunds", refund, idem="R01")
    assert (status, first["status"]) == (200, "succeeded")
    assert psp.api_a.call("POST", "/v1/refunds", refund, idem="R02")[0] == 400
    rest = {"payment_intent": body["id"]}
    assert psp.api_a.call("POST", "/v1/refunds", rest, idem="R03")[1]["amount"] == 599
    assert psp.api_a.call("POST", "/v1/refunds", rest, idem="R04")[1]["error"]["code"] == "charge_already_refunded"
    assert psp.api_a.call("GET", f"/v1/refunds/{first['id']}")[1] == first
    assert len(psp.api_a.call("GET", "/v1/refunds", {"payment_intent": body["id"]})[1]["data"]) == 2
    psp.advance(account=psp.a, refund="R01", to="failed")
    assert kinds(psp) == ["charge", "refund", "refund", "refund_reversed"]
    assert psp.totals(account=psp.a)[0]["refunded_minor"] == 599
    assert psp.drain(psp.a)
    assert len(hook.events("refund.created")) == 2 and len(hook.events("charge.refunded")) == 2
    assert hook.events("refund.failed")[0]["data"]["object"]["failure_reason"]


def test_a_pending_refund_books_only_when_it_succeeds(psp):
    _, body, _ = psp.api_a.pay()
    psp.script({"account": psp.a, "operation": "refund", "do": "pending"})
    _, refund, _ = psp.api_a.call("POST", "/v1/refunds", {"payment_intent": body["id"]}, idem="R01")
    assert (refund["status"], kinds(psp)) == ("pending", ["charge"])
    psp.advance(account=psp.a, refund=refund["id"], to="succeeded")
    assert kinds(psp) == ["charge", "refund"]


# ---- captures, releases, refunds, disputes: to the unit


def hold(psp, **extra):
    """An authorization of 25.99; (its id, the path of its calls)."""
    _, body, _ = psp.api_a.pay(capture_method="manual", **extra)
    assert body["status"] == "requires_capture"
    return body["id"], f"/v1/payment_intents/{body['id']}"


def sums(psp, *names):
    (row,) = psp.totals(account=psp.a)
    return tuple(row[f"{name}_minor"] for name in names)


def shown(psp, intent):
    return psp.api_a.call("GET", f"/v1/payment_intents/{intent}", {"expand[]": "latest_charge"})[1]


def test_a_capture_is_made_once_and_bears_its_number(psp, hook):
    intent, path = hold(psp)
    first = {"amount_to_capture": "2000", "metadata[capture_ref]": "C01"}
    assert psp.api_a.call("POST", path + "/capture", {**first, "final_capture": "false"}, idem="C00")[0] == 400
    _, body, _ = psp.api_a.call("POST", path + "/capture", first, idem="C01")
    assert body["metadata"] == {"order_id": ORDER, "capture_ref": "C01"}
    again, replayed, headers = psp.api_a.call("POST", path + "/capture", first, idem="C01")
    assert (again, replayed, headers["Idempotent-Replayed"]) == (200, body, "true")
    second = {"amount_to_capture": "500", "metadata[capture_ref]": "C02"}
    status, refused, _ = psp.api_a.call("POST", path + "/capture", second, idem="C02")
    assert (status, refused["error"]["code"]) == (400, "payment_intent_unexpected_state")
    assert refused["error"]["payment_intent"]["metadata"]["capture_ref"] == "C01"
    assert sums(psp, "authorized", "charged", "released") == (2599, 2000, 599)
    assert psp.drain(psp.a)
    assert hook.events("payment_intent.succeeded")[0]["data"]["object"]["metadata"]["capture_ref"] == "C01"
    assert "capture_ref" not in hook.events("charge.captured")[0]["data"]["object"]["metadata"]


def test_a_released_rest_looks_like_a_refund_and_is_none(psp, hook):
    intent, path = hold(psp)
    psp.api_a.call("POST", path + "/capture", {"amount_to_capture": "2000"}, idem="C01")
    charge = shown(psp, intent)["latest_charge"]
    assert (charge["amount_captured"], charge["amount_refunded"], charge["refunded"]) == (2000, 599, False)
    (release,) = psp.api_a.call("GET", "/v1/refunds", {"payment_intent": intent})[1]["data"]
    assert (release["amount"], release["status"], release["balance_transaction"]) == (599, "succeeded", None)
    _, refund, _ = psp.api_a.call("POST", "/v1/refunds", {"payment_intent": intent}, idem="R01")
    assert refund["amount"] == 2000 and refund["balance_transaction"]
    assert sums(psp, "charged", "refunded", "released") == (2000, 2000, 599)
    with pytest.raises(RuntimeError):
        psp.advance(account=psp.a, refund=release["id"], to="failed")
    assert psp.drain(psp.a) and len(hook.events("charge.refunded")) == 2


@pytest.mark.parametrize("how,reason", [("api", "abandoned"), ("console", "requested_by_customer"), ("expiry", "automatic")])
def test_a_void_takes_nothing_and_says_refunded(psp, hook, how, reason):
    intent, path = hold(psp)
    if how == "api":
        psp.api_a.call("POST", path + "/cancel", {"cancellation_reason": reason}, idem="X1")
    elif how == "console":
        psp.console(account=psp.a, order=ORDER, do="cancel")
    else:
        psp.advance(account=psp.a, order=ORDER, to="expired")
    body = shown(psp, intent)
    assert (body["status"], body["cancellation_reason"], body["amount_received"]) == ("canceled", reason, 0)
    assert (body["latest_charge"]["captured"], body["latest_charge"]["amount_refunded"]) == (False, 2599)
    assert psp.api_a.call("POST", path + "/capture", idem="C01")[0] == 400
    assert psp.api_a.call("POST", "/v1/refunds", {"payment_intent": intent}, idem="R01")[0] == 400
    assert sums(psp, "authorized", "charged", "refunded", "released") == (2599, 0, 0, 2599)
    assert psp.drain(psp.a) and hook.events("payment_intent.canceled")
    assert bool(hook.events("charge.expired")) == (how == "expiry")
    assert not hook.events("charge.refunded")[0]["data"]["object"]["captured"]


def test_only_an_authorization_expires(psp):
    psp.api_a.pay()
    with pytest.raises(RuntimeError):
        psp.advance(account=psp.a, order=ORDER, to="expired")


def test_a_capture_of_another_amount_than_was_asked_for(psp):
    intent, path = hold(psp)
    psp.script({"account": psp.a, "operation": "capture", "do": "wrong_amount", "amount": 100})
    assert psp.api_a.call("POST", path + "/capture", {"amount_to_capture": "2000"}, idem="C01")[1]["amount_received"] == 100
    assert sums(psp, "charged", "released") == (100, 2499)


@pytest.mark.parametrize("operation", ["capture", "refund"])
@pytest.mark.parametrize("fault,executed", [
    ({"do": "charge_then_timeout", "hold_ms": 300}, True), ({"do": "answer_5xx_after_charge", "status": 500}, True),
    ({"do": "answer_5xx_after_charge", "status": 503}, True), ({"do": "take_and_die", "how": "reset"}, True),
    ({"do": "take_and_die", "how": "close", "charge": False}, False), ({"do": "refuse", "status": 429}, False),
    ({"do": "half_answer"}, True), ({"do": "garbage"}, True),
])  # fmt: skip
def test_faults_of_captures_and_refunds(psp, operation, fault, executed):
    """What the client sees proves nothing; the ledger does, and the same key moves nothing again."""
    if operation == "capture":
        intent, path = hold(psp)
        call = (path + "/capture", {"amount_to_capture": "2599"})
    else:
        intent = psp.api_a.pay()[1]["id"]
        call = ("/v1/refunds", {"payment_intent": intent, "amount": "1000"})
    psp.script({"account": psp.a, "operation": operation, "times": 1, **fault})
    try:
        status = psp.api_a.call("POST", *call, idem="K01")[0]
    except (OSError, http.client.HTTPException, ValueError):
        status = None
    assert status != 200
    moved = [e["amount"] for e in psp.ledger(account=psp.a) if e["kind"] == operation]
    assert moved == ([int(call[1].get("amount", 2599))] if executed else [])
    psp.api_a.call("POST", *call, idem="K01")
    assert len([e for e in psp.ledger(account=psp.a) if e["kind"] == operation]) == 1


def test_a_refund_fails_at_once_later_or_never_more(psp, hook):
    intent = psp.api_a.pay()[1]["id"]

    def refund(number, *do):
        if do:
            psp.script({"account": psp.a, "order": number, "operation": "refund", "do": list(do), "times": 1})
        params = {"payment_intent": intent, "amount": "100", "metadata[refund_ref]": number}
        return psp.api_a.call("POST", "/v1/refunds", params, idem=number)[1]

    assert refund("R01", "fail")["status"] == "failed"
    assert refund("R02", "pending")["status"] == "pending"
    assert sums(psp, "refunded") == (0,)
    psp.advance(account=psp.a, refund="R02", to="succeeded")
    assert refund("R03")["status"] == "succeeded"
    assert sums(psp, "refunded") == (200,)
    psp.advance(account=psp.a, refund="R02", to="failed")
    assert sums(psp, "refunded") == (100,)
    assert refund("R04", "pending")["status"] == "pending"
    psp.advance(account=psp.a, refund="R04", to="failed")
    for number in ("R01", "R02", "R04"):
        with pytest.raises(RuntimeError):
            psp.advance(account=psp.a, refund=number, to="succeeded")
    assert sums(psp, "charged", "refunded") == (2599, 100)
    assert shown(psp, intent)["latest_charge"]["amount_refunded"] == 100
    assert psp.drain(psp.a)
    failed = [e["data"]["object"]["metadata"]["refund_ref"] for e in hook.events("refund.failed")]
    assert sorted(failed) == ["R01", "R02", "R04"]
    objects = {row["object"]: row["refunded_minor"] for row in psp.objects(account=psp.a)}
    assert sorted(objects.values()) == [0, 0, 100], "the charge, R02 and R03; what failed unpaid was never booked"


def test_refused_for_now(psp):
    intent = psp.api_a.pay()[1]["id"]
    psp.script({"account": psp.a, "operation": "refund", "do": "refuse", "status": 400, "error_code": "balance_insufficient",
                "retry_after_s": 7, "times": 1})  # fmt: skip
    status, body, headers = psp.api_a.call("POST", "/v1/refunds", {"payment_intent": intent}, idem="R01")
    assert (status, body["error"]["code"], headers["Retry-After"]) == (400, "balance_insufficient", "7")
    assert psp.api_a.call("POST", "/v1/refunds", {"payment_intent": intent}, idem="R01")[1]["status"] == "succeeded"
    assert sums(psp, "refunded") == (2599,)


def test_in_the_console(psp, hook):
    intent, _ = hold(psp)
    assert psp.console(account=psp.a, order=ORDER, do="capture", amount=2000)["amount_received"] == 2000
    refund = psp.console(account=psp.a, order=ORDER, do="refund", amount=300)
    assert refund["metadata"] == {} and psp.requests(account=psp.a, operation="refund") == []
    for wrong in ({"do": "capture"}, {"do": "refund", "amount": 1701}, {"do": "refund", "amount": 0}, {"do": "dance"},
                  {"do": "cancel"}, {"do": "refund", "amount": 1, "x": 1}):  # fmt: skip
        with pytest.raises(RuntimeError):
            psp.console(account=psp.a, order=ORDER, **wrong)
    assert psp.console(account=psp.a, order=ORDER, do="refund")["amount"] == 1700
    assert sums(psp, "charged", "refunded", "released") == (2000, 2000, 599)
    assert psp.drain(psp.a)
    made = [e["data"]["object"] for e in hook.events("refund.created")]
    assert sorted(r["amount"] for r in made if r["balance_transaction"]) == [300, 1700]
    assert hook.events("charge.captured")[0]["request"] == {"id": None, "idempotency_key": None}


@pytest.mark.parametrize("end,withdrawn,names", [
    ("won", 0, ["created", "funds_withdrawn", "updated", "funds_reinstated", "closed"]),
    ("lost", 1000, ["created", "funds_withdrawn", "updated", "closed"]),
])  # fmt: skip
def test_a_dispute_is_withdrawn_and_comes_back_when_won(psp, hook, end, withdrawn, names):
    intent = psp.api_a.pay()[1]["id"]
    dispute = psp.dispute(account=psp.a, order=ORDER, amount=1000, reason="product_not_received")
    assert (dispute["status"], dispute["metadata"], dispute["amount"]) == ("needs_response", {}, 1000)
    assert sums(psp, "charged", "withdrawn") == (2599, 1000)
    refused = psp.api_a.call("POST", "/v1/refunds", {"payment_intent": intent, "amount": "100"}, idem="R01")
    assert (refused[0], refused[1]["error"]["code"]) == (400, "charge_disputed")
    psp.advance(account=psp.a, dispute=dispute["id"], to="under_review")
    closed = psp.advance(account=psp.a, dispute=dispute["id"], to=end)
    assert psp.api_a.call("GET", f"/v1/disputes/{dispute['id']}")[1] == closed
    assert psp.api_a.call("GET", "/v1/disputes", {"payment_intent": intent})[1]["data"] == [closed]
    assert sum(t["amount"] for t in closed["balance_transactions"]) == -withdrawn
    assert sums(psp, "charged", "withdrawn", "refunded") == (2599, withdrawn, 0)
    (row,) = [r for r in psp.objects(account=psp.a) if r["object"] == dispute["id"]]
    assert (row["withdrawn_minor"], row["withdrawals"]) == (withdrawn, 1)
    with pytest.raises(RuntimeError):
        psp.advance(account=psp.a, dispute=dispute["id"], to="won")
    assert psp.drain(psp.a)
    told = [e["type"].removeprefix("charge.dispute.") for e in hook.events() if e["type"].startswith("charge.dispute.")]
    assert sorted(told) == sorted(names)
    assert psp.api_a.call("POST", "/v1/refunds", {"payment_intent": intent, "amount": "100"}, idem="R02")[0] == (
        200 if end == "won" else 400)  # fmt: skip


def test_an_inquiry_moves_no_money_until_it_escalates(psp, hook):
    psp.api_a.pay()
    asked = psp.dispute(account=psp.a, order=ORDER, inquiry=True)
    assert (asked["status"], asked["balance_transactions"], sums(psp, "withdrawn")) == ("warning_needs_response", [], (0,))
    assert psp.advance(account=psp.a, dispute=asked["id"], to="under_review")["status"] == "warning_under_review"
    assert psp.advance(account=psp.a, dispute=asked["id"], to="closed")["status"] == "warning_closed"
    again = psp.dispute(account=psp.a, order=ORDER, inquiry=True)
    with pytest.raises(RuntimeError):
        psp.advance(account=psp.a, dispute=again["id"], to="won")
    assert psp.advance(account=psp.a, dispute=again["id"], to="escalated")["status"] == "needs_response"
    assert sums(psp, "withdrawn") == (2599,)
    with pytest.raises(RuntimeError):
        psp.dispute(account=psp.a, order=ORDER, amount=2600)
    assert psp.drain(psp.a) and len(hook.events("charge.dispute.funds_withdrawn")) == 1


@pytest.mark.parametrize("sample,kind", [
    ("payment_partially_captured", "payment_intent.succeeded"), ("refund_failed", "refund.failed"),
    ("charge_refund_updated", "charge.refund.updated"), ("dispute_opened", "charge.dispute.created"),
    ("dispute_funds_withdrawn", "charge.dispute.funds_withdrawn"), ("dispute_won", "charge.dispute.closed"),
])  # fmt: skip
def test_events_of_money_that_goes_back_have_the_samples_fields(psp, hook, sample, kind):
    hold(psp)
    psp.console(account=psp.a, order=ORDER, do="capture", amount=2000)
    refund = psp.console(account=psp.a, order=ORDER, do="refund", amount=500)
    psp.advance(account=psp.a, refund=refund["id"], to="failed")
    dispute = psp.dispute(account=psp.a, order=ORDER)
    psp.advance(account=psp.a, dispute=dispute["id"], to="won")
    assert psp.drain(psp.a)
    wanted = json.loads((SAMPLES / f"{sample}.json").read_text())["body"]["data"]["object"]
    got = hook.events(kind)[0]["data"]["object"]
    assert got["object"] == wanted["object"] and set(wanted) - set(got) == set()


def test_currencies_of_captures_and_refunds(psp):
    for currency, amount, minor in (("jpy", 1000, 1000), ("kwd", 5120, 5120), ("isk", 120000, 1200)):
        order = f"{ORDER}-{currency}"
        _, body, _ = psp.api_a.pay(idem=order, amount=str(amount), currency=currency, capture_method="manual")
        path = f"/v1/payment_intents/{body['id']}/capture"
        if currency != "jpy":
            assert psp.api_a.call("POST", path, {"amount_to_capture": str(amount - 1)}, idem=order + "X")[0] == 400
        psp.api_a.call("POST", path, {"amount_to_capture": str(amount)}, idem=order + "C")
        psp.api_a.call("POST", "/v1/refunds", {"payment_intent": body["id"]}, idem=order + "R")
        (total,) = psp.totals(account=psp.a, order=order)
        assert (total["charged_minor"], total["refunded_minor"]) == (minor, minor)


# ---- faults of requests: what the client sees and what the ledger says


def test_charge_then_timeout(psp):
    psp.script({"account": psp.a, "do": "charge_then_timeout", "times": 1})
    with pytest.raises(TimeoutError):
        psp.api_a.call("POST", "/v1/payment_intents", {"amount": "1", "currency": "eur", "confirm": "true",
                       "payment_method": "pm_card_visa", "metadata[order_id]": ORDER}, idem=ORDER, timeout_s=0.3)  # fmt: skip
    assert kinds(psp) == ["charge"]
    wait_for(lambda: psp.requests(account=psp.a)[0]["answered"] == "client_gone")
    status, _, headers = psp.api_a.pay(amount="1")
    assert (status, headers["Idempotent-Replayed"]) == (200, "true")
    assert kinds(psp) == ["charge"]


@pytest.mark.parametrize("status,replayed", [(500, 500), (502, 200), (503, 200), (504, 200)])
def test_5xx_after_charge(psp, status, replayed):
    psp.script({"account": psp.a, "do": "answer_5xx_after_charge", "status": status, "times": 1})
    assert psp.api_a.pay()[0] == status
    assert kinds(psp) == ["charge"]
    again = psp.api_a.pay()
    assert (again[0], again[2]["Idempotent-Replayed"]) == (replayed, "true")
    assert kinds(psp) == ["charge"]


@pytest.mark.parametrize("how,error", [("close", http.client.RemoteDisconnected), ("reset", ConnectionResetError)])
@pytest.mark.parametrize("charge", [True, False])
def test_take_and_die(psp, how, error, charge):
    psp.script({"account": psp.a, "do": "take_and_die", "charge": charge, "how": how, "times": 1})
    with pytest.raises(error) as seen:
        psp.api_a.pay()
    assert seen.type is error
    assert kinds(psp) == (["charge"] if charge else [])
    assert psp.api_a.pay()[0] == 200
    assert kinds(psp) == ["charge"]


def test_a_kept_connection_dies_before_the_answer(psp):
    """What libcurl 7.88 repeats by itself: the ledger and the log must show both requests."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(psp.url).netloc, timeout=5)
    psp.api_a.call("GET", "/v1/refunds", connection=connection)
    psp.script({"account": psp.a, "operation": "create", "do": "take_and_die", "nth": 1})
    with pytest.raises(http.client.RemoteDisconnected):
        psp.api_a.call("POST", "/v1/payment_intents", {"amount": "1", "currency": "eur", "confirm": "true",
                       "payment_method": "pm_card_visa"}, connection=connection)  # fmt: skip
    first, second = psp.requests(account=psp.a)
    assert first["connection"] == second["connection"]
    assert kinds(psp) == ["charge"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 424, 429])
def test_refuse(psp, status):
    psp.script({"account": psp.a, "order": ORDER, "do": "refuse", "status": status, "times": 1})
    code, body, _ = psp.api_a.pay()
    assert code == status and body["error"]["type"]
    assert kinds(psp) == []
    assert psp.api_a.pay()[0] == 200 and kinds(psp) == ["charge"]


def test_a_refusal_that_charged_all_the_same(psp, hook):
    psp.script({"account": psp.a, "order": ORDER, "do": "refuse_and_charge", "status": 400, "times": 1})
    code, body, _ = psp.api_a.pay()
    assert (code, body["error"]["type"]) == (400, "invalid_request_error")
    assert kinds(psp) == ["charge"] and psp.requests(account=psp.a)[0]["executed"]
    assert psp.drain(psp.a) and hook.events("payment_intent.succeeded")
    assert psp.api_a.pay()[2]["Idempotent-Replayed"] == "true" and kinds(psp) == ["charge"]


def test_late_execution(psp):
    psp.script({"account": psp.a, "do": "late", "after_ms": 400, "how": "reset", "times": 1})
    with pytest.raises(ConnectionResetError):
        psp.api_a.pay()
    assert kinds(psp) == []
    wait_for(lambda: kinds(psp) == ["charge"])
    assert psp.api_a.pay()[2]["Idempotent-Replayed"] == "true"
    assert kinds(psp) == ["charge"]


def test_late_execution_after_a_replay_charges_once(psp):
    psp.script({"account": psp.a, "do": "late", "after_ms": 300, "times": 1})
    with pytest.raises(http.client.RemoteDisconnected):
        psp.api_a.pay()
    assert psp.api_a.pay()[0] == 200
    wait_for(lambda: psp.requests(account=psp.a)[0]["replayed"])  # the late one finds the stored outcome
    assert kinds(psp) == ["charge"]


def test_half_and_garbage_answers(psp):
    psp.script({"account": psp.a, "do": "half_answer", "nth": 1}, {"account": psp.a, "do": "garbage", "nth": 2})
    with pytest.raises(http.client.IncompleteRead):
        psp.api_a.pay()
    with pytest.raises(json.JSONDecodeError):
        psp.api_a.pay()
    assert kinds(psp) == ["charge"]
    assert [r["answered"] for r in psp.requests(account=psp.a)] == ["half", "garbage"]


def test_wrong_amount_really_and_only_said(psp, hook):
    psp.script({"account": psp.a, "order": "O1", "do": "wrong_amount", "amount": 100},
               {"account": psp.a, "order": "O2", "do": "wrong_amount", "amount": 100, "where": "answer"})  # fmt: skip
    assert psp.api_a.pay(idem="O1")[1]["amount_received"] == 100
    assert psp.api_a.pay(idem="O2")[1]["amount_received"] == 100
    assert [(e["order"], e["amount"]) for e in psp.ledger(account=psp.a)] == [("O1", 100), ("O2", 2599)]
    assert psp.drain(psp.a)
    seen = {e["data"]["object"]["metadata"]["order_id"]: e["data"]["object"]["amount_received"]
            for e in hook.events("payment_intent.succeeded")}  # fmt: skip
    assert seen == {"O1": 100, "O2": 2599}


def test_outcome_and_fault_together_and_advance(psp, hook):
    psp.script({"account": psp.a, "do": ["processing", "take_and_die"], "times": 1})
    with pytest.raises(http.client.RemoteDisconnected):
        psp.api_a.pay()
    assert kinds(psp) == []
    assert psp.advance(account=psp.a, order=ORDER, to="succeeded")["status"] == "succeeded"
    psp.advance(account=psp.a, order=ORDER, to="succeeded")
    assert kinds(psp) == ["charge"]
    assert psp.drain(psp.a)
    assert {"payment_intent.processing", "payment_intent.succeeded"} <= {e["type"] for e in hook.events()}


def test_rules_match_by_order_operation_and_number(psp):
    psp.script({"account": psp.a, "order": "01J*A02", "operation": "create", "nth": 2, "do": "refuse", "status": 429})
    assert [psp.api_a.pay(idem=f"01JX{n}A02")[0] for n in range(3)] == [200, 429, 200]
    assert psp.api_a.pay(idem="01JXA01")[0] == 200


@pytest.mark.parametrize("rule", [{"do": "explode"}, {"do": "delay", "dealy_ms": 1}, {"do": "refuse", "status": 500},
                                  {"do": "refuse_and_charge", "status": 200}, {"on": "callback", "do": "refuse"}, {}])  # fmt: skip
def test_a_wrong_rule_is_refused(psp, rule):
    with pytest.raises(RuntimeError):
        psp.script(rule)


@pytest.mark.parametrize("mode,error", [("down", ConnectionRefusedError), ("accept_close", http.client.RemoteDisconnected),
                                        ("accept_reset", ConnectionResetError), ("accept_hang", TimeoutError)])  # fmt: skip
def test_the_api_goes_away_and_comes_back(psp, mode, error):
    psp.api(mode)
    with pytest.raises(error):
        psp.api_a.call("GET", "/v1/refunds", timeout_s=0.3)
    psp.api("up")
    assert psp.api_a.pay()[0] == 200


# ---- callbacks


def test_callbacks_are_signed_and_repeated_until_2xx(psp, hook):
    hook.statuses = [500, 302, 200]
    psp.script({"on": "callback", "account": psp.a, "type": "*created", "do": "withhold"},
               {"on": "callback", "account": psp.a, "type": "charge.*", "do": "withhold"})  # fmt: skip
    psp.api_a.pay()
    assert psp.drain(psp.a)
    assert hook.verdicts(SECRET_A) == ["ok"] * 3
    assert {e["id"] for e in hook.events()} == {hook.events()[0]["id"]}
    assert {g["path"] for g in hook.got} == {"/callbacks/a"}
    gaps = [later["at"] - earlier["at"] for earlier, later in zip(hook.got, hook.got[1:])]
    assert gaps[0] < gaps[1]
    (row,) = [c for c in psp.callbacks(account=psp.a) if c["state"] == "delivered"]
    assert [t["status"] for t in row["tries"]] == [500, 302, 200]


def test_withheld_callbacks_are_released(psp, hook):
    psp.script({"on": "callback", "account": psp.a, "do": "withhold"})
    psp.api_a.pay()
    assert psp.drain(psp.a) and hook.got == []
    assert psp.release(order=ORDER, type="payment_intent.succeeded") == 1
    assert psp.drain(psp.a) and [e["type"] for e in hook.events()] == ["payment_intent.succeeded"]


def test_duplicates_come_together(psp, hook):
    psp.script({"on": "callback", "account": psp.a, "type": "payment_intent.succeeded", "do": "duplicate", "copies": 5},
               {"on": "callback", "account": psp.a, "do": "withhold"})  # fmt: skip
    hook.together = threading.Barrier(5)
    psp.api_a.pay()
    assert psp.drain(psp.a)
    assert len(hook.events()) == 5 and len({e["id"] for e in hook.events()}) == 1
    rows = psp.callbacks(account=psp.a, type="payment_intent.succeeded")
    assert [len(row["tries"]) for row in rows] == [1] * 5


def test_reorder_sends_newest_first(psp, hook):
    psp.script({"on": "callback", "account": psp.a, "do": "reorder", "count": 3})
    psp.api_a.pay()
    assert psp.drain(psp.a)
    assert [e["type"] for e in hook.events()] == [
        "payment_intent.succeeded", "charge.succeeded", "payment_intent.created"]  # fmt: skip


def test_delayed_callback_comes_after_the_rest(psp, hook):
    psp.script({"on": "callback", "account": psp.a, "type": "payment_intent.created", "do": "delay", "delay_ms": 300})
    psp.api_a.pay()
    assert psp.drain(psp.a)
    assert hook.events()[-1]["type"] == "payment_intent.created"


@pytest.mark.parametrize("how,verdict", [("signature", "signature_mismatch"), ("secret", "signature_mismatch"),
    ("stale", "timestamp_too_old"), ("future", "timestamp_in_future"), ("amount", "signature_mismatch"),
    ("unsigned", "header_missing")])  # fmt: skip
def test_forged_callbacks_fail_verification_and_are_not_repeated(psp, hook, how, verdict):
    hook.statuses = [400]
    psp.script({"on": "callback", "account": psp.a, "type": "payment_intent.succeeded", "do": "forge", "how": how},
               {"on": "callback", "account": psp.a, "do": "withhold"})  # fmt: skip
    psp.api_a.pay()
    assert psp.drain(psp.a)
    assert hook.verdicts(SECRET_A) == [verdict]
    (row,) = psp.callbacks(account=psp.a, type="payment_intent.succeeded")
    assert (row["state"], row["forged"]) == ("gave_up", how)


def test_forged_for_another_account(psp, hook):
    psp.script({"on": "callback", "account": psp.a, "type": "payment_intent.succeeded", "do": "forge", "how": "account",
                "to_account": psp.b}, {"on": "callback", "account": psp.a, "do": "withhold"})  # fmt: skip
    psp.api_a.pay()
    assert psp.drain(psp.a)
    assert [g["path"] for g in hook.got] == ["/callbacks/b"]
    assert (hook.verdicts(SECRET_A), hook.verdicts(SECRET_B)) == (["ok"], ["signature_mismatch"])


def test_a_rightly_signed_lie_about_the_amount(psp, hook):
    psp.script({"on": "callback", "account": psp.a, "type": "payment_intent.succeeded", "do": "wrong_amount", "amount": 1})
    psp.api_a.pay()
    assert psp.drain(psp.a) and set(hook.verdicts(SECRET_A)) == {"ok"}
    assert hook.events("payment_intent.succeeded")[0]["data"]["object"]["amount_received"] == 1
    assert psp.ledger(account=psp.a)[0]["amount"] == 2599


def test_rolled_secret_signs_with_both(psp, hook):
    psp.put_account({"id": psp.a, "psp": "stripe", "secret_key": psp.api_a.key, "webhook_secret": SECRET_A,
                     "callback_url": hook.url, "settings": {"rolled_secrets": [SECRET_B]}})  # fmt: skip
    psp.api_a.pay()
    assert psp.drain(psp.a) and set(hook.verdicts(SECRET_A)) == set(hook.verdicts(SECRET_B)) == {"ok"}


def test_callbacks_by_hand(psp, hook):
    psp.script({"on": "callback", "account": psp.a, "do": "withhold"})
    psp.api_a.pay()
    sent = psp.callback(account=psp.a, order=ORDER, type="payment_intent.processing", copies=3, event_id="evt_x")
    assert [d["tries"][0]["status"] for d in sent["deliveries"]] == [200] * 3
    assert {e["id"] for e in hook.events()} == {"evt_x"}
    sent = psp.callback(account=psp.a, event={"id": "evt_y", "object": "event", "type": "t"}, path="/elsewhere")
    assert hook.got[-1]["path"] == "/elsewhere" and sent["deliveries"][0]["state"] == "delivered"
    psp.callback(account=psp.a, raw="not json", forge="secret", headers={"X-Test": "1"})
    assert (hook.got[-1]["raw"], hook.got[-1]["headers"]["X-Test"]) == (b"not json", "1")
    assert hook.verdicts(SECRET_A) == ["ok"] * 4 + ["signature_mismatch"]


# ---- the process


def test_sigterm_ends_it_cleanly_while_a_call_is_held():
    simulator = Simulator([{"id": "a", "psp": "stripe", "secret_key": "sk_test_a", "webhook_secret": SECRET_A}])
    with simulator as psp:
        psp.script({"do": "charge_then_timeout"})
        held = threading.Thread(target=lambda: pytest.raises(OSError, Api(psp).pay), daemon=True)
        held.start()
        wait_for(lambda: psp.ledger())
        started = time.monotonic()
        assert simulator.__exit__() == 0
        assert time.monotonic() - started < 3


def test_it_ends_with_a_killed_parent():
    code = "import sys, time; from client import Simulator; print(Simulator([]).__enter__().control_url, flush=True); time.sleep(99)"
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=HERE)
    where = urllib.parse.urlsplit(parent.stdout.readline().decode().strip())
    parent.kill()
    parent.wait()
    parent.stdout.close()

    def gone():
        with socket.socket() as probe:
            return probe.connect_ex((where.hostname, where.port)) != 0

    wait_for(gone)


def test_a_wrong_configuration_does_not_start():
    with pytest.raises(RuntimeError), Simulator([{"id": "a", "psp": "nobody", "secret_key": "x", "webhook_secret": "y"}]):
        pass
