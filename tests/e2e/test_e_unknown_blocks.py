# SPDX-License-Identifier: Apache-2.0
"""Scenario E: PSP-A is UNKNOWN and upstream asks for PSP-B: refused, nothing is charged at B, and A converges later."""

from payfact_stack import ACCOUNT_A, ACCOUNT_B, new_payment_id, wait_for
from story import attempt, charges, created, hold_callbacks, published

ROUTE_B = {"psp": "stripe", "psp_account": ACCOUNT_B, "method": "card", "failover_on_not_found": False}


def test_e_an_unknown_attempt_is_never_stepped_over(stack):
    payment, order = new_payment_id(), None
    order = attempt(payment)
    hold_callbacks(stack, order)
    stack.psp.script({"id": "silent", "order": order, "do": "charge_then_timeout"})  # every call, queries too
    stack.pay(2599, "EUR", accounts=(ACCOUNT_A, ACCOUNT_B), payment_id=payment)
    stack.wait_attempt(order, "UNKNOWN")
    command = stack.command("START_ATTEMPT", payment, {"route": ROUTE_B})
    event = stack.wait_event(payment, "CommandRejected")
    assert event["command"]["command_id"] == command["command_id"]
    assert event["reason_code"] == "ATTEMPT_UNKNOWN"
    # Asked again in the other way, and after more queries that got no answer: the same.
    asked = len(created(stack, order))
    change = stack.command("CHANGE_METHOD", payment, {"route": ROUTE_B})
    wait_for("the change is answered", lambda: answer_of(stack, payment, change))
    wait_for("another query went out", lambda: len(stack.psp.requests(order=order)) > asked + 1)
    assert stack.attempt_status(order) == "UNKNOWN"
    assert stack.sql("SELECT 1 FROM payment_attempt WHERE payment_id = %s AND attempt_no > 1", payment) == []
    assert stack.psp.requests(account=ACCOUNT_B) == [], "nothing was asked of B"
    stack.psp.clear_script()  # A answers again
    stack.wait_attempt(order, "SUCCEEDED")
    stack.wait_event(payment, "PaymentSucceeded")
    stack.psp.release(order=order)
    stack.idle()
    assert len(charges(stack, order)) == 1 and stack.ledger(account=ACCOUNT_B) == []
    assert stack.psp.requests(account=ACCOUNT_B) == []
    assert published(stack, payment).count("PaymentSucceeded") == 1


def answer_of(stack, payment, command):
    for event in stack.consume_events(payment):
        if event["command"] and event["command"]["command_id"] == command["command_id"]:
            return event
    return None
