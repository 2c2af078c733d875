# SPDX-License-Identifier: Apache-2.0
"""What else can become of a payment: declined, refused, canceled, expired, acted upon by its buyer, answered with a 5xx."""

import time

import pytest

from payfact_stack import ACCOUNT_A, ACCOUNT_B, new_payment_id, wait_for
from story import attempt, charges, created, history, hold_callbacks, intent_of, published, verdicts

DECLINED = "pm_card_chargeDeclinedInsufficientFunds"
BOTH = (ACCOUNT_A, ACCOUNT_B)


def answer_to(stack, payment, command):
    def found():
        return [e for e in stack.consume_events(payment) if e["command"] and e["command"]["command_id"] == command["command_id"]]

    return wait_for(f"the answer to {command['type']}", found)[-1]


def test_a_decline_is_closed_at_the_psp_before_the_payment_fails(stack):
    payment = stack.pay(2599, "EUR", instruments=[DECLINED])
    event = stack.wait_event(payment, "PaymentFailed")
    assert event["reason_code"] == "INSUFFICIENT_FUNDS", "whichever of the intent's and the charge's events came first"
    assert stack.attempt_status(attempt(payment)) == "CANCELED"
    assert stack.psp.requests(order=attempt(payment), operation="cancel"), "the object could still have been paid"
    stack.idle()
    assert charges(stack, attempt(payment)) == []


def test_a_decline_goes_on_to_the_next_route(stack):
    payment = stack.pay(2599, "EUR", accounts=BOTH, instruments=[DECLINED, "pm_card_visa"])
    stack.wait_event(payment, "PaymentSucceeded")
    stack.idle()
    assert stack.attempt_status(attempt(payment)) == "CANCELED" and stack.attempt_status(attempt(payment, 2)) == "SUCCEEDED"
    assert charges(stack, attempt(payment)) == [] and len(charges(stack, attempt(payment, 2))) == 1
    canceled_at = stack.psp.requests(order=attempt(payment), operation="cancel")[0]["at"]
    assert created(stack, attempt(payment, 2))[0]["at"] > canceled_at, "B was asked when A could not be paid any more"


def test_a_refusal_goes_on_to_the_next_route(stack):
    payment = new_payment_id()
    stack.psp.script({"order": attempt(payment), "operation": "create", "do": "refuse", "status": 400})
    stack.pay(2599, "EUR", accounts=BOTH, payment_id=payment)
    stack.wait_event(payment, "PaymentSucceeded")
    stack.idle()
    assert stack.attempt_status(attempt(payment)) == "FAILED" and stack.attempt_status(attempt(payment, 2)) == "SUCCEEDED"
    assert "AttemptFailed" in published(stack, payment)
    assert charges(stack, attempt(payment)) == [] and len(charges(stack, attempt(payment, 2))) == 1


def test_a_refusal_after_an_unclear_send_is_not_believed(stack):
    """The first send was taken and not answered; what the replay is told (400) says nothing about it."""
    payment = new_payment_id()
    order = attempt(payment)
    hold_callbacks(stack, order)
    stack.psp.script(
        {"order": order, "operation": "create", "do": "charge_then_timeout", "nth": 1},
        {"order": order, "operation": "create", "do": "refuse", "status": 400, "nth": 2},
    )
    stack.pay(2599, "EUR", accounts=BOTH, payment_id=payment)
    stack.wait_attempt(order, "SUCCEEDED")
    stack.psp.release()
    stack.idle()
    assert len(created(stack, order)) >= 3 and len(charges(stack, order)) == 1
    assert stack.psp.requests(account=ACCOUNT_B) == []


def test_a_stored_500_converges_by_callback(stack):
    """The PSP charged, failed afterwards, and replays its 500 for ever: only the callback can tell."""
    payment = new_payment_id()
    order = attempt(payment)
    hold_callbacks(stack, order)
    stack.psp.script({"order": order, "operation": "create", "do": "answer_5xx_after_charge", "status": 500, "times": 1})
    stack.pay(2599, "EUR", payment_id=payment)
    stack.wait_attempt(order, "UNKNOWN")
    wait_for("it was asked twice", lambda: len(stack.psp.requests(order=order)) >= 3)
    assert stack.attempt_status(order) == "UNKNOWN"
    stack.psp.release(order=order)
    stack.wait_event(payment, "PaymentSucceeded")
    stack.idle()
    assert len(charges(stack, order)) == 1 and verdicts(stack, payment, "SUC").count("APPLY") == 1


def with_a_page(stack, payment=None, **body):
    payment = payment or new_payment_id()
    stack.pay(2599, "EUR", instruments=["pm_card_authenticationRequired"], payment_id=payment, **body)
    event = stack.wait_event(payment, "PaymentActionRequired")
    assert event["action"]["type"] == "REDIRECT" and event["action"]["url"].startswith("https://hooks.stripe.com/")
    assert stack.attempt_status(attempt(payment)) == "REQUIRES_ACTION"
    return payment


def test_the_buyer_acts_and_pays(stack):
    payment = with_a_page(stack)
    stack.psp.advance(account=ACCOUNT_A, order=attempt(payment), to="succeeded")
    stack.wait_event(payment, "PaymentSucceeded")
    stack.idle()
    assert published(stack, payment).count("PaymentActionRequired") == 1
    assert len(charges(stack, attempt(payment))) == 1


def test_declined_once_then_paid_on_the_same_object(stack):
    payment = with_a_page(stack)
    order = attempt(payment)
    stack.psp.advance(account=ACCOUNT_A, order=order, to="failed")
    wait_for("the decline is decided", lambda: verdicts(stack, payment, "DEC"))
    stack.idle()
    assert stack.attempt_status(order) == "REQUIRES_ACTION", "the page is open: the buyer may try again"
    stack.psp.advance(account=ACCOUNT_A, order=order, to="succeeded")
    stack.wait_event(payment, "PaymentSucceeded")
    stack.idle()
    assert len(charges(stack, order)) == 1 and "PaymentFailed" not in published(stack, payment)
    # The declined first try is reported late, on the object that is paid by now: stale, and no case.
    stack.psp.callback(account=ACCOUNT_A, order=order, type="payment_intent.payment_failed")
    wait_for("the late decline is decided", lambda: len(verdicts(stack, payment, "DEC")) >= 2)
    assert set(verdicts(stack, payment, "DEC")) == {"IGNORE"}
    assert stack.sql("SELECT 1 FROM manual_case") == []


def test_the_merchant_cancels_while_the_buyer_thinks(stack):
    payment = with_a_page(stack)
    command = stack.command("CANCEL_PAYMENT", payment, {"reason_code": "CUSTOMER_LEFT"})
    assert answer_to(stack, payment, command)["type"] == "CommandAccepted"
    stack.wait_event(payment, "PaymentCanceled")
    stack.idle()
    assert stack.psp.requests(order=attempt(payment), operation="cancel")
    assert (stack.order_status(payment), stack.attempt_status(attempt(payment))) == ("CANCELED", "CANCELED")
    assert charges(stack, attempt(payment)) == []
    again = stack.command("START_ATTEMPT", payment, {"route": {"psp": "stripe", "psp_account": ACCOUNT_B, "method": "card",
                                                               "failover_on_not_found": False}})  # fmt: skip
    assert answer_to(stack, payment, again)["reason_code"] == "ORDER_FINAL"


def test_a_paid_payment_is_not_canceled(stack):
    payment = stack.pay(2599, "EUR")
    stack.wait_event(payment, "PaymentSucceeded")
    command = stack.command("CANCEL_PAYMENT", payment, {"reason_code": "CUSTOMER_LEFT"})
    assert answer_to(stack, payment, command)["reason_code"] == "ORDER_FINAL"
    stack.idle()
    assert stack.order_status(payment) == "SUCCEEDED"
    assert stack.psp.requests(order=attempt(payment), operation="cancel") == []


def in_s(seconds):
    return int((time.time() + seconds) * 1e6)


def test_u11_an_order_without_an_attempt_expires(stack):
    payment = stack.pay(2599, "EUR", start=False, expires_at=in_s(3))
    stack.wait_event(payment, "PaymentCreated")
    assert stack.order_status(payment) == "CREATED"
    stack.wait_event(payment, "PaymentExpired")
    stack.idle()
    assert stack.psp.requests() == [] and stack.order_status(payment) == "EXPIRED"


def test_an_order_expires_beside_an_open_page(stack):
    """The end of the order closes nothing by itself: the PSP is asked to cancel first."""
    payment = with_a_page(stack, expires_at=in_s(5))
    stack.wait_event(payment, "PaymentExpired", 40)
    stack.idle()
    assert stack.psp.requests(order=attempt(payment), operation="cancel")
    assert (stack.order_status(payment), stack.attempt_status(attempt(payment))) == ("EXPIRED", "CANCELED")
    (row,) = history(stack, payment, event_type="CAN", verdict="APPLY", aggregate="ATTEMPT")
    assert row["evidence_level"] >= 2


@pytest.mark.unaudited  # the PSP holds money that the order does not want: that is what the case says
def test_o15_money_after_the_end_is_kept_and_becomes_a_case(stack):
    payment = with_a_page(stack, expires_at=in_s(4))
    order = attempt(payment)
    stack.psp.script({"order": order, "operation": "cancel", "do": "answer_5xx_after_charge", "status": 502, "times": 1})
    stack.wait_event(payment, "PaymentExpired", 40)
    event = {"id": "evt_late", "object": "event", "api_version": "2024-06-20", "created": int(time.time()),
             "livemode": False, "pending_webhooks": 1, "request": {"id": None, "idempotency_key": None},
             "type": "payment_intent.succeeded", "data": {"object": paid_object(stack, order)}}  # fmt: skip
    stack.psp.callback(account=ACCOUNT_A, event=event)
    stack.wait_event(payment, "ManualReviewRequired")
    stack.idle()
    assert stack.order_status(payment) == "EXPIRED" and stack.attempt_status(order) == "SUCCEEDED"
    (case,) = stack.sql("SELECT kind, proposed_refund_minor FROM manual_case WHERE payment_id = %s", payment)
    assert (case["kind"], case["proposed_refund_minor"]) == ("LATE_SUCCESS", 2599)
    assert "PaymentSucceeded" not in published(stack, payment)


def paid_object(stack, order):
    return {**intent_of(stack, ACCOUNT_A, order), "status": "succeeded", "amount_received": 2599, "canceled_at": None}
