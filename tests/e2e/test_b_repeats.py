# SPDX-License-Identifier: Apache-2.0
"""Scenario B: processing, succeeded, succeeded again; and the same success five times at once, out of order."""

from payfact_stack import ACCOUNT_A, new_payment_id, wait_for
from story import answers, attempt, charges, history, hold_callbacks, published, verdicts


def pay_and_process(stack, payment):
    order = attempt(payment)
    stack.psp.script({"order": order, "operation": "create", "do": "processing", "times": 1})
    stack.pay(2599, "EUR", payment_id=payment)
    stack.wait_attempt(order, "PROCESSING")
    return order


def test_b_processing_succeeded_succeeded(stack):
    payment = new_payment_id()
    order = pay_and_process(stack, payment)
    stack.psp.advance(account=ACCOUNT_A, order=order, to="succeeded")
    stack.wait_event(payment, "PaymentSucceeded")
    stack.idle()
    assert answers(stack.psp.callback(account=ACCOUNT_A, order=order, type="payment_intent.succeeded")) == [200]
    wait_for("the repeated success is decided", lambda: verdicts(stack, payment, "SUC").count("IGNORE") == 2)
    stack.idle()
    assert verdicts(stack, payment, "SUC").count("APPLY") == 1
    moves = [(r["from_status"], r["to_status"]) for r in history(stack, payment, verdict="APPLY", aggregate="ATTEMPT")
             if r["from_status"] != r["to_status"]]  # fmt: skip
    assert [to for _, to in moves][-2:] == ["PROCESSING", "SUCCEEDED"]
    assert published(stack, payment).count("PaymentSucceeded") == 1
    assert len(charges(stack, order)) == 1


def test_b_five_copies_at_once_and_out_of_order(stack):
    payment = new_payment_id()
    order = pay_and_process(stack, payment)
    hold_callbacks(stack, order)
    stack.psp.advance(account=ACCOUNT_A, order=order, to="succeeded")
    # Five copies of one event at the same moment, before anything else of this success.
    sent = stack.psp.callback(account=ACCOUNT_A, order=order, type="payment_intent.succeeded", copies=5)
    assert answers(sent) == [200] * 5
    stack.wait_event(payment, "PaymentSucceeded")
    # What came before it at the PSP arrives after it, newest first.
    assert stack.psp.release(order=order, newest_first=True) >= 2
    stack.idle()
    assert verdicts(stack, payment, "SUC").count("APPLY") == 1
    assert published(stack, payment).count("PaymentSucceeded") == 1
    successes = stack.consume_events(payment, "PaymentSucceeded")
    assert len({e["event_id"] for e in successes}) == 1 and len(successes) == 1
    rows = stack.sql("SELECT delivery_count FROM channel_event WHERE transport_key LIKE %s", f"%{sent['event']['id']}%")
    known = stack.service("webhook").metric("payfact_callbacks_total", outcome="duplicate")
    assert len(rows) == 1 and 1 <= rows[0]["delivery_count"] <= 5 and rows[0]["delivery_count"] + known >= 5
    assert len(charges(stack, order)) == 1
