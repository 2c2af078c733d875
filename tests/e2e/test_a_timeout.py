# SPDX-License-Identifier: Apache-2.0
"""Scenario A: the PSP charges and does not answer. UNKNOWN, then recovery's query, then a late "processing"."""

from payfact_stack import ACCOUNT_A, new_payment_id
from story import (
    answers,
    attempt,
    charges,
    created,
    earlier_event,
    history,
    hold_callbacks,
    published,
    verdicts,
    wait_verdict,
)


def unanswered(stack, payment, outcome="succeed"):
    """Pay; the PSP executes it and stays silent, in its answer and in its callbacks."""
    order = attempt(payment)
    hold_callbacks(stack, order)
    stack.psp.script({"order": order, "operation": "create", "do": [outcome, "charge_then_timeout"], "times": 1})
    stack.pay(2599, "EUR", payment_id=payment)
    stack.wait_attempt(order, "UNKNOWN")
    return order


def send_late_processing(stack, payment, order):
    event = earlier_event(stack, ACCOUNT_A, order, "payment_intent.processing", "processing")
    assert answers(stack.psp.callback(account=ACCOUNT_A, event=event)) == [200]
    (row,) = wait_verdict(stack, payment, "PRC", "IGNORE", source="WEBHOOK")
    assert row["from_status"] == row["to_status"] == "SUCCEEDED"


def test_a_o5_o9_a_time_out_converges_by_replay(stack):
    payment = new_payment_id()
    order = unanswered(stack, payment)
    stack.wait_attempt(order, "SUCCEEDED")
    first, *more = created(stack, order)
    assert first["executed"] and not first["replayed"]
    assert more and all(r["replayed"] and not r["executed"] for r in more), "asked by repeating the identical request"
    assert {r["idempotency_key"] for r in (first, *more)} == {order} and len({r["body_sha256"] for r in (first, *more)}) == 1
    assert len(charges(stack, order)) == 1
    (row,) = history(stack, payment, event_type="SUC", verdict="APPLY", aggregate="ATTEMPT")
    assert row["from_status"] == "UNKNOWN"
    send_late_processing(stack, payment, order)
    stack.psp.release(order=order)  # what the PSP had kept comes at last: all known
    stack.idle()
    assert published(stack, payment).count("PaymentSucceeded") == 1
    assert stack.order_status(payment) == "SUCCEEDED" and stack.attempt_status(order) == "SUCCEEDED"
    assert verdicts(stack, payment, "SUC").count("APPLY") == 1


def test_a_page_that_a_time_out_hid_is_canceled(stack):
    """The answer with the page was lost, so were its callbacks. A query is no source of a page (contracts.md): it may be
    old, and what it saw may be another object. The attempt is canceled at the PSP, and only then has the payment failed."""
    payment = new_payment_id()
    order = attempt(payment)
    hold_callbacks(stack, order)
    stack.psp.script({"order": order, "operation": "create", "do": "charge_then_timeout", "times": 1})
    stack.pay(2599, "EUR", payment_id=payment, instruments=["pm_card_authenticationRequired"])
    stack.wait_event(payment, "PaymentFailed")
    (row,) = history(stack, payment, event_type="ACT", verdict="APPLY", aggregate="ATTEMPT")
    assert (row["from_status"], row["source"]) == ("UNKNOWN", "QUERY")
    assert stack.attempt_status(order) == "CANCELED" and stack.psp.requests(order=order, operation="cancel")
    stack.psp.release(order=order)
    stack.idle()
    (attempt_row,) = stack.sql("SELECT action_no, failure_code FROM payment_attempt WHERE attempt_id = %s", order)
    assert (attempt_row["action_no"], attempt_row["failure_code"]) == (0, "NO_ACTION")
    assert charges(stack, order) == []


def test_a_u5_a_time_out_converges_by_reference(stack):
    """The stored first answer said "processing"; it taught the reference, and the query by it brings the success."""
    payment = new_payment_id()
    order = unanswered(stack, payment, outcome="processing")
    stack.psp.advance(account=ACCOUNT_A, order=order, to="succeeded")  # its callbacks are withheld
    stack.wait_attempt(order, "SUCCEEDED")
    assert [r["replayed"] for r in created(stack, order)][1:2] == [True]
    assert stack.psp.requests(order=order, operation="query"), "asked by the reference that the replay taught"
    (row,) = history(stack, payment, event_type="SUC", verdict="APPLY", aggregate="ATTEMPT")
    assert (row["source"], row["evidence_level"]) == ("QUERY", 4)
    assert len(charges(stack, order)) == 1
    send_late_processing(stack, payment, order)
    stack.psp.release(order=order)
    stack.idle()
    assert published(stack, payment).count("PaymentSucceeded") == 1
