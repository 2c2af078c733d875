# SPDX-License-Identifier: Apache-2.0
"""A PSP that is silent for ever: two people end it, and what it says after all is kept, cased and put right."""

import json

import pytest

from payfact_stack import new_payment_id, wait_for
from people import EVIDENCE, FIRST, SECOND, THIRD, ask, two_approve, waiting, word
from story import attempt, history, hold_callbacks, published, verdicts

# The breaker would rightly keep a silent PSP's account shut for a while: here it is to be called again at once.
PATIENT = {"psp": {"BREAKER_FAILURES": "1000"}}
# Deduplication at the door is no part of it.
pytestmark = [pytest.mark.redis_irrelevant, pytest.mark.stack(settings=PATIENT)]


def silent_from(stack, order):
    """Every call about it, queries too, ends without a word; callbacks stay away."""
    hold_callbacks(stack, order)
    stack.psp.script({"id": "silent", "order": order, "do": "take_and_die"})


def speaks_again(stack, order):
    stack.psp.control("DELETE", "script", id="silent")
    stack.psp.release(order=order)


def asked_in_vain(stack, table, name):
    """Two more queries came back with nothing: that is counted, and is no news to whoever decides about the row."""

    def row():
        return stack.sql(f"SELECT query_count, version FROM {table[0]} WHERE {table[1]} = %s", name)[0]

    before = row()
    wait_for("two more queries", lambda: row()["query_count"] >= before["query_count"] + 2, 60)
    assert row()["version"] == before["version"]


ATTEMPT, REFUND = ("payment_attempt", "attempt_id"), ("refund_order", "refund_id")


def closed_by_two(stack, payment, name, version, outcome, table):
    row = ask(stack, "force-close", payment, "--id", name, "--version", version, "--outcome", outcome, *EVIDENCE)
    asked_in_vain(stack, table, name)
    assert word(stack, "approve", row, FIRST) == ("REJECTED", "OWN_REQUEST")
    assert word(stack, "approve", row, SECOND) == ("ACCEPTED", "APPROVAL_COUNTED")
    assert word(stack, "approve", row, SECOND) == ("REJECTED", "ALREADY_COUNTED")
    asked_in_vain(stack, table, name)
    assert stack.sql(f"SELECT status FROM {table[0]} WHERE {table[1]} = %s", name)[0]["status"] == "UNKNOWN"
    assert word(stack, "approve", row, THIRD) == ("ACCEPTED", "APPROVED")


def unknown(stack):
    payment = new_payment_id()
    silent_from(stack, attempt(payment))
    stack.pay(2599, "EUR", payment_id=payment)
    stack.wait_attempt(attempt(payment), "UNKNOWN")
    return payment, stack.explain(payment)["attempts"][0]["version"]


def the_case(stack, payment):
    (case,) = [c for c in json.loads(stack.ctl("cases")) if c["payment_id"] == payment]
    return case


def resolve(stack, payment, code):
    case = the_case(stack, payment)
    two_approve(stack, ask(stack, "resolve-case", payment, "--id", case["case_id"], "--version", case["version"],
                           "--reason", code, *EVIDENCE[2:]))  # fmt: skip
    assert json.loads(stack.ctl("cases")) == [] and waiting(stack) == {}


def totals(stack, payment):
    (total,) = stack.psp.totals(order=attempt(payment))
    return total["charged_minor"], total["refunded_minor"]


@pytest.mark.parametrize("end", ["refunded", "corrected"])
def test_o15_closed_as_failed_and_its_money_comes_late(stack, end):
    payment, version = unknown(stack)
    closed_by_two(stack, payment, attempt(payment), version, "FAILED", ATTEMPT)
    stack.wait_event(payment, "PaymentFailed")
    assert (stack.order_status(payment), stack.attempt_status(attempt(payment))) == ("FAILED", "FAILED")
    moved = history(stack, payment, aggregate="ATTEMPT", from_status="UNKNOWN", to_status="FAILED")
    assert {row["evidence_level"] for row in moved} == {6} and {row["operator"] for row in moved} == {THIRD}
    assert totals(stack, payment) == (2599, 0), "the PSP has had it all the time"
    speaks_again(stack, attempt(payment))
    stack.wait_event(payment, "ManualReviewRequired")
    stack.idle()
    case = the_case(stack, payment)
    assert (case["kind"], case["aggregate_id"], case["proposed_refund_minor"]) == ("LATE_SUCCESS", attempt(payment), 2599)
    assert (stack.order_status(payment), stack.attempt_status(attempt(payment))) == ("FAILED", "SUCCEEDED")
    assert "PaymentSucceeded" not in published(stack, payment)
    if end == "refunded":
        refund = ("--attempt", attempt(payment), "--amount", 2599, "--currency", "EUR")
        two_approve(stack, ask(stack, "refund", payment, *refund))
        wait_for("the PSP paid it back", lambda: totals(stack, payment) == (2599, 2599), 60)
        stack.wait_event(payment, "RefundSucceeded")
        resolve(stack, payment, "REFUNDED")
        assert stack.order_status(payment) == "FAILED"
    else:
        two_approve(stack, ask(stack, "correct", payment, "--id", payment, "--from", "FAILED", "--to", "SUCCEEDED", *EVIDENCE))
        stack.wait_event(payment, "PaymentSucceeded")
        stack.wait_event(payment, "CorrectionApplied")
        resolve(stack, payment, "CORRECTED")
        assert stack.order_status(payment) == "SUCCEEDED" and totals(stack, payment) == (2599, 0)
    stack.idle()
    assert [row["who"] for row in stack.explain(payment)["next"]] == ["nobody"]


def test_closed_as_succeeded_and_the_psp_agrees_later(stack):
    payment, version = unknown(stack)
    closed_by_two(stack, payment, attempt(payment), version, "SUCCEEDED", ATTEMPT)
    event = stack.wait_event(payment, "PaymentSucceeded")
    assert event["totals"]["captured_minor"] == 2599
    speaks_again(stack, attempt(payment))
    wait_for("the late callback is decided", lambda: len(verdicts(stack, payment, "SUC")) >= 2)
    stack.idle()
    assert published(stack, payment).count("PaymentSucceeded") == 1 and json.loads(stack.ctl("cases")) == []


def test_a_refund_closed_as_failed_that_was_paid_after_all(stack):
    payment = stack.pay(10000, "EUR")
    stack.wait_event(payment, "PaymentSucceeded")
    stack.idle()
    silent_from(stack, attempt(payment))
    two_approve(stack, ask(stack, "refund", payment, "--amount", 6000, "--currency", "EUR"))
    wait_for("it is unknown", lambda: "UNKNOWN" in [r["status"] for r in stack.explain(payment)["refunds"]], 60, pause_s=0.2)
    version = stack.explain(payment)["refunds"][0]["version"]
    closed_by_two(stack, payment, payment + "R01", version, "FAILED", REFUND)
    stack.wait_event(payment, "RefundFailed")
    row = stack.explain(payment)["attempts"][0]
    assert (row["refund_reserved_minor"], row["refunded_minor"]) == (0, 0) and totals(stack, payment) == (10000, 6000)
    speaks_again(stack, attempt(payment))
    stack.wait_event(payment, "RefundSucceeded")  # it fits: booked as late, without a person
    stack.idle()
    assert stack.explain(payment)["attempts"][0]["refunded_minor"] == 6000
    assert published(stack, payment).count("RefundSucceeded") == 1
