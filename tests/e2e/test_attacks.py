# SPDX-License-Identifier: Apache-2.0
"""Callbacks that are not what they say: answered with Stripe's failure form, counted, and without any effect."""

import pytest

from payfact_stack import ACCOUNT_A, ACCOUNT_B, new_payment_id, wait_for
from story import answers, attempt, charges, earlier_event, history, hold_callbacks, published, wait_verdict

FORGED = ("unsigned", "signature", "secret", "stale", "future", "amount", "account")


def waiting(stack):
    """A payment that waits for the PSP's word: a believed forgery would make it paid."""
    payment = new_payment_id()
    order = attempt(payment)
    hold_callbacks(stack, order)
    stack.psp.script({"order": order, "operation": "create", "do": "processing", "times": 1})
    stack.pay(2599, "EUR", payment_id=payment)
    stack.wait_attempt(order, "PROCESSING")
    return payment, order


def patient(document):
    for account in document["psp_accounts"]:
        account["unknown"].update(answer_s=3600)  # recovery does not ask: only callbacks speak here


def refusals(stack):
    return stack.service("webhook").metric("payfact_callback_refusals_total")


@pytest.mark.stack(edit=patient)
def test_s9_forged_callbacks_do_nothing(stack):
    payment, order = waiting(stack)
    stack.idle()
    inputs_before, rows_before = len(stack.records("inputs")), len(history(stack, payment))
    for number, how in enumerate(FORGED, 1):
        sent = stack.psp.callback(account=ACCOUNT_A, order=order, type="payment_intent.succeeded", forge=how,
                                  to_account=ACCOUNT_B)  # fmt: skip
        assert answers(sent) == [400], how
        assert refusals(stack) == number, how
    stack.idle()
    assert len(stack.records("inputs")) == inputs_before, "nothing was enqueued"
    assert len(history(stack, payment)) == rows_before and stack.attempt_status(order) == "PROCESSING"
    body = sent["event"]["data"]["object"]
    for line in stack.service("webhook").log.read_text().splitlines():
        assert body["client_secret"] not in line and body["id"] not in line, "bodies are never logged"
    stack.psp.advance(account=ACCOUNT_A, order=order, to="succeeded")
    stack.psp.release(order=order)
    stack.wait_event(payment, "PaymentSucceeded")


@pytest.mark.stack(edit=patient)
def test_rightly_signed_nonsense_is_refused(stack):
    for raw in ("", "null", "[]", "{", '{"id": 5}', '{"id": "evt_1", "object": "event"', "\x00"):
        assert answers(stack.psp.callback(account=ACCOUNT_A, raw=raw))[0] in (400, 413), raw
    known = stack.psp.callback(account=ACCOUNT_A, raw="{}", path="/callbacks/nobody")
    assert answers(known) == [404]
    assert answers(stack.psp.callback(account=ACCOUNT_A, raw="x" * 300000)) == [413]
    stack.idle()
    assert stack.records("inputs") == []


@pytest.mark.unaudited  # the PSP says another sum than it took: the case is the point
@pytest.mark.stack(edit=patient)
def test_a13_another_amount_moves_nothing_and_becomes_a_case(stack):
    payment, order = waiting(stack)
    stack.psp.advance(account=ACCOUNT_A, order=order, to="succeeded")
    sent = stack.psp.callback(account=ACCOUNT_A, order=order, type="payment_intent.succeeded", amount=2600)
    assert answers(sent) == [200], "custody: it is durable, and a retry cannot change it"
    wait_for("it is decided", lambda: history(stack, payment, event_type="SUC", verdict="REJECT"))
    assert stack.attempt_status(order) == "PROCESSING"
    stack.wait_event(payment, "ManualReviewRequired")
    assert [r["kind"] for r in stack.sql("SELECT kind FROM manual_case")] == ["AMOUNT_MISMATCH"]
    stack.psp.release(order=order)  # the true one
    stack.wait_event(payment, "PaymentSucceeded")
    stack.idle()
    assert stack.audit() == [] and len(charges(stack, order)) == 1
    assert published(stack, payment).count("PaymentSucceeded") == 1


@pytest.mark.unaudited  # as above
@pytest.mark.stack(edit=patient)
def test_another_currency_moves_nothing_and_becomes_a_case(stack):
    payment, order = waiting(stack)
    stack.psp.advance(account=ACCOUNT_A, order=order, to="succeeded")
    event = earlier_event(stack, ACCOUNT_A, order, "payment_intent.succeeded", "succeeded")
    event["data"]["object"]["currency"] = "usd"
    assert answers(stack.psp.callback(account=ACCOUNT_A, event=event)) == [200]
    (row,) = wait_verdict(stack, payment, "SUC", "REJECT")
    assert row["reason_code"] == "AMOUNT_MISMATCH" and stack.attempt_status(order) == "PROCESSING"
    stack.wait_event(payment, "ManualReviewRequired")
    stack.psp.release(order=order)
    stack.wait_event(payment, "PaymentSucceeded")
    stack.idle()
    assert stack.audit() == [] and len(charges(stack, order)) == 1


@pytest.mark.stack(edit=patient)
def test_a_callback_cannot_lend_one_payment_the_reference_of_another(stack):
    """Signed by the PSP, and mixed up: our number of one payment beside the object of another moves neither."""
    (paid, paid_order), (payment, order) = waiting(stack), waiting(stack)
    event = earlier_event(stack, ACCOUNT_A, paid_order, "payment_intent.succeeded", "succeeded")
    event["data"]["object"]["metadata"]["order_id"] = order
    event["data"]["object"]["amount_received"] = 2599
    assert answers(stack.psp.callback(account=ACCOUNT_A, event=event)) == [200]
    wait_verdict(stack, payment, "SUC", "NEEDS_RECONCILIATION", reason_code="UNEXPECTED_REFERENCE")
    stack.idle()
    assert {stack.attempt_status(o) for o in (order, paid_order)} == {"PROCESSING"}
    assert stack.sql("SELECT payment_id, kind FROM manual_case") == [{"payment_id": payment, "kind": "UNEXPECTED_REFERENCE"}]
    assert stack.consume_events(kind="PaymentSucceeded") == []
    for each in (paid_order, order):
        stack.psp.advance(account=ACCOUNT_A, order=each, to="succeeded")
        stack.psp.release(order=each)
    for each in (paid, payment):
        stack.wait_event(each, "PaymentSucceeded")


@pytest.mark.stack(edit=patient)
def test_a_callback_of_somebody_elses_payment_is_foreign(stack):
    """A shared PSP account: an event without our number is kept, ignored, and makes no case."""
    event = {"id": "evt_foreign", "object": "event", "api_version": "2024-06-20", "created": 1700000000, "livemode": False,
             "pending_webhooks": 1, "request": {"id": None, "idempotency_key": None}, "type": "payment_intent.succeeded",
             "data": {"object": {"id": "pi_foreign", "object": "payment_intent", "amount": 100, "amount_received": 100,
                                 "currency": "eur", "status": "succeeded", "livemode": False,
                                 "metadata": {"order_id": "SHOP-77"}}}}  # fmt: skip
    assert answers(stack.psp.callback(account=ACCOUNT_A, event=event)) == [200]
    wait_for("it is decided", lambda: stack.sql("SELECT 1 FROM channel_event WHERE transport_key LIKE '%%evt_foreign%%'"))
    stack.idle()
    assert stack.sql("SELECT 1 FROM manual_case") == [] and stack.sql("SELECT 1 FROM payment_order") == []
