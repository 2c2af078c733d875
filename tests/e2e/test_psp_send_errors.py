# SPDX-License-Identifier: Apache-2.0
"""Every way in which a money call can fail, through ingest/psp and a PSP that fails in that way. The PSP's own ledger
judges: never more than one charge of an attempt, and the payment converges to what really happened.
"""

import subprocess
import tempfile

import pytest

from payfact_stack import ACCOUNT_A, new_payment_id, wait_for
from story import attempt, charges, created, history
from wire import Wire

pytestmark = pytest.mark.redis_irrelevant

# How the first create fails at the PSP -> what the attempt comes to. None: whatever happened, it converges.
FAULTS = {
    "takes it and closes": ({"do": "take_and_die", "how": "close"}, "SUCCEEDED"),
    "takes it and resets": ({"do": "take_and_die", "how": "reset"}, "SUCCEEDED"),
    "reads it, does nothing, closes": ({"do": "take_and_die", "how": "close", "charge": False}, "SUCCEEDED"),
    "reads it, does nothing, resets": ({"do": "take_and_die", "how": "reset", "charge": False}, "SUCCEEDED"),
    "charges and never answers": ({"do": "charge_then_timeout"}, "SUCCEEDED"),
    "charges and answers too late": ({"do": "delay", "answer_delay_ms": 3000}, "SUCCEEDED"),
    "charges late, answers too late": ({"do": "delay", "delay_ms": 2500}, "SUCCEEDED"),
    "closes, charges later": ({"do": "late", "after_ms": 2500, "how": "close"}, "SUCCEEDED"),
    "resets, charges later": ({"do": "late", "after_ms": 2500, "how": "reset"}, "SUCCEEDED"),
    "hangs, charges later": ({"do": "late", "after_ms": 2500, "how": "hang"}, "SUCCEEDED"),
    "half an answer": ({"do": "half_answer"}, "SUCCEEDED"),
    "half an answer and a reset": ({"do": "half_answer", "how": "reset"}, "SUCCEEDED"),
    "an answer that is none": ({"do": "garbage"}, "SUCCEEDED"),
    "502 after charging": ({"do": "answer_5xx_after_charge", "status": 502}, "SUCCEEDED"),
    "503 after charging": ({"do": "answer_5xx_after_charge", "status": 503}, "SUCCEEDED"),
    "504 after charging": ({"do": "answer_5xx_after_charge", "status": 504}, "SUCCEEDED"),
    "409 in flight": ({"do": "refuse", "status": 409}, "SUCCEEDED"),
    "424": ({"do": "refuse", "status": 424}, "SUCCEEDED"),
    "429, not executed": ({"do": "refuse", "status": 429}, "FAILED"),
    "400": ({"do": "refuse", "status": 400}, "FAILED"),
    "declined and nobody hears": ({"do": ["decline", "charge_then_timeout"]}, "CANCELED"),
}


def quick(document):
    for account in document["psp_accounts"]:
        account["timeouts_ms"] = {"connect": 500, "total": 1500}
        account["unknown"].update(send_window_s=5, answer_s=2, cancel_retry_s=1)


def one_charge_at_most(stack, order, expected):
    """The ledger decides."""
    taken = charges(stack, order)
    assert len(taken) == (1 if expected == "SUCCEEDED" else 0), (order, taken, created(stack, order))


@pytest.mark.stack(edit=quick, settings={"psp": {"BREAKER_FAILURES": 1000}})
def test_one_payment_per_fault(stack):
    """All at once: each payment with its own fault, its callbacks kept back, so that only calls can tell."""
    orders = {}
    for name, (rule, expected) in FAULTS.items():
        payment = new_payment_id()
        orders[name] = attempt(payment), expected
        stack.psp.script({"on": "callback", "order": attempt(payment), "do": "withhold"},
                         {"order": attempt(payment), "operation": "create", "times": 1, **rule})  # fmt: skip
        stack.pay(2599, "EUR", payment_id=payment)
    left = dict(orders)

    def converged():
        for name, (order, expected) in list(left.items()):
            if stack.attempt_status(order) == expected:
                del left[name]
        return not left

    try:
        wait_for("every payment has converged", converged, 60, pause_s=0.2)
    except AssertionError:
        told = {name: (stack.attempt_status(order), expected) for name, (order, expected) in left.items()}
        raise AssertionError(f"is, should be: {told}") from None
    for order, expected in orders.values():
        one_charge_at_most(stack, order, expected)
    stack.psp.release()
    stack.idle()
    for order, expected in orders.values():
        one_charge_at_most(stack, order, expected)


def pay_while(stack, mode):
    stack.psp.api(mode)
    payment = new_payment_id()
    stack.pay(2599, "EUR", payment_id=payment)
    return payment, attempt(payment)


@pytest.mark.parametrize("mode", ["accept_close", "accept_reset", "accept_hang"])
@pytest.mark.stack(edit=quick, settings={"psp": {"BREAKER_OPEN_MS": 500}})
def test_a_server_that_takes_connections_only(stack, mode):
    payment, order = pay_while(stack, mode)
    stack.wait_attempt(order, "UNKNOWN")
    assert charges(stack, order) == []
    stack.psp.api("up")
    stack.wait_attempt(order, "SUCCEEDED")
    stack.idle()
    one_charge_at_most(stack, order, "SUCCEEDED")


@pytest.mark.stack(edit=quick, settings={"psp": {"BREAKER_FAILURES": 1000}})
def test_refused_connections_are_not_sent_and_tried_again(stack):
    payment, order = pay_while(stack, "down")
    wait_for("tries that did not leave", lambda: len(stack.service("psp").log_lines("call_not_sent")) >= 3)
    assert stack.attempt_status(order) in ("CREATED", "SUBMITTED")
    stack.psp.api("up")
    stack.wait_attempt(order, "SUCCEEDED")
    stack.idle()
    one_charge_at_most(stack, order, "SUCCEEDED")
    assert len(created(stack, order)) == 1, "what was not sent was sent once"
    (gate,) = stack.sql("SELECT sends FROM psp_request WHERE action_id = %s", order)
    assert gate["sends"] >= 4, "each try passed the gate"


@pytest.mark.stack(edit=quick, settings={"psp": {"BREAKER_OPEN_MS": 500}})
def test_a_psp_that_stays_away_is_a_definite_no(stack):
    payment, order = pay_while(stack, "down")
    stack.wait_attempt(order, "FAILED", 40)
    stack.wait_event(payment, "PaymentFailed")
    (row,) = history(stack, payment, event_type="NSN", verdict="APPLY", aggregate="ATTEMPT")
    assert row["to_status"] == "FAILED"
    stack.psp.api("up")
    stack.idle()
    assert created(stack, order) == [] and charges(stack, order) == []


# ---- the network between


def behind_wire(fault):
    """Account A is reached through a Wire; it stands before the accounts file is written."""

    def edit(document):
        quick(document)
        account = next(a for a in document["psp_accounts"] if a["id"] == ACCOUNT_A)
        wires[fault] = Wire(account["endpoint"], FIRST_POST[fault]())
        account["endpoint"] = wires[fault].url

    return edit


def first_post_of_each_key(name):
    def make():
        seen = set()

        def fault(request, number):
            if not request.startswith(b"POST /v1/payment_intents HTTP"):
                return None
            key = next(line for line in request.split(b"\r\n") if line.lower().startswith(b"idempotency-key:"))
            if key in seen:
                return None
            seen.add(key)
            return name

        return fault

    return make


FIRST_POST = {name: first_post_of_each_key(name) for name in Wire.FAULTS}
wires = {}


def through_wire(stack, name):
    wire = wires.pop(name)
    stack.at_exit(wire.close)
    payment = new_payment_id()
    order = attempt(payment)
    stack.psp.script({"on": "callback", "order": "*", "do": "withhold"})
    # A payment before it: its queries and its answer leave connections behind that libcurl could use again.
    first = stack.pay(1000, "EUR")
    stack.wait_attempt(attempt(first), "SUCCEEDED")
    stack.pay(2599, "EUR", payment_id=payment)
    stack.wait_attempt(order, "SUCCEEDED")
    stack.idle()
    for number in (attempt(first), order):
        one_charge_at_most(stack, number, "SUCCEEDED")
        (gate,) = stack.sql("SELECT sends FROM psp_request WHERE action_id = %s", number)
        posts = [r for r in wire.requests if r[2].startswith("POST /v1/payment_intents ") and r[3] == number]
        assert len(posts) == gate["sends"] == 2, (
            f"every POST on the wire passed the gate: libcurl repeated none by itself; {wire.connections} connections: {wire.requests}")
        assert all(on_it == 1 for _, on_it, _, _ in posts), "a money call never uses a connection again"
    stack.psp.release()


@pytest.mark.stack(edit=behind_wire("reset_after_request"))
def test_reset_after_the_request_was_taken(stack):
    through_wire(stack, "reset_after_request")


@pytest.mark.stack(edit=behind_wire("close_after_request"))
def test_silent_resend_of_a_closed_connection(stack):
    """libcurl 7.88 repeats a POST by itself when a used connection ends before the answer: the PSP would charge twice."""
    through_wire(stack, "close_after_request")


@pytest.mark.stack(edit=behind_wire("reset_before_request_is_read"))
def test_reset_before_the_psp_saw_the_request(stack):
    through_wire(stack, "reset_before_request_is_read")


@pytest.mark.stack(edit=behind_wire("half_header"))
def test_the_answer_ends_in_its_first_line(stack):
    through_wire(stack, "half_header")


# ---- TLS


def untrusted_tls(document):
    quick(document)
    account = next(a for a in document["psp_accounts"] if a["id"] == ACCOUNT_A)
    wires["tls"] = Wire(account["endpoint"], certificate=self_signed())
    account["endpoint"] = wires["tls"].url


def no_tls_at_all(document):
    quick(document)
    account = next(a for a in document["psp_accounts"] if a["id"] == ACCOUNT_A)
    account["endpoint"] = account["endpoint"].replace("http://", "https://")


certificates = tempfile.TemporaryDirectory(prefix="payfact-test.")  # goes with this process


def self_signed():
    folder = certificates.name
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{folder}/key", "-out", f"{folder}/cert"],
                   check=True, capture_output=True)  # fmt: skip
    return f"{folder}/cert", f"{folder}/key"


@pytest.mark.stack(edit=untrusted_tls)
def test_a_certificate_that_is_not_trusted_sends_nothing(stack):
    wire = wires.pop("tls")
    stack.at_exit(wire.close)
    payment = stack.pay(2599, "EUR")
    stack.wait_attempt(attempt(payment), "FAILED", 40)
    assert wire.connections > 0 and wire.requests == [], "no byte of the request left"
    assert charges(stack, attempt(payment)) == []


@pytest.mark.stack(edit=no_tls_at_all)
def test_a_server_without_tls_gets_nothing(stack):
    payment = stack.pay(2599, "EUR")
    stack.wait_attempt(attempt(payment), "FAILED", 40)
    assert created(stack, attempt(payment)) == [] and charges(stack, attempt(payment)) == []
