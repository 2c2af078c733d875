# SPDX-License-Identifier: Apache-2.0
"""What needs two people, as they would do it: payfactctl, from the request to the PSP's ledger."""

import json

import pytest

from payfact_stack import ACCOUNT_A, CALLER, wait_for
from people import EVIDENCE, FIRST, SECOND, waiting, word
from story import attempt, published

pytestmark = pytest.mark.redis_irrelevant  # deduplication at the door is no part of it


def paid(stack, amount=10000):
    payment = stack.pay(amount, "EUR")
    stack.wait_event(payment, "PaymentSucceeded")
    return payment


def ask_for_refund(stack, payment, amount):
    before = set(waiting(stack))
    asked = stack.order("refund", "--payment", payment, "--amount", amount, "--currency", "EUR")
    assert asked == ("AWAITING_APPROVAL", "AWAITING_APPROVAL")
    (row,) = [row for request, row in waiting(stack).items() if request not in before]
    assert (row["payment_id"], row["command_type"], row["requested_by"], row["approvals"]) == (payment, "REQUEST_REFUND", CALLER, 0)
    return row


def refunded(stack, payment):
    (total,) = stack.psp.totals(order=attempt(payment))
    return total["refunded_minor"]


def test_a_refund_beyond_the_threshold_is_paid_by_two(stack):
    payment = paid(stack)
    row = ask_for_refund(stack, payment, 7000)
    explained = stack.explain(payment)
    assert explained["next"][0]["who"] == "approver" and row["request_id"] in explained["next"][0]["what"]
    assert explained["attempts"][0]["refund_reserved_minor"] == 7000 and explained["refunds"][0]["status"] == "CREATED"
    assert word(stack, "approve", {**row, "sha256": "00" * 32}, FIRST) == ("REJECTED", "DIGEST_MISMATCH")
    assert word(stack, "approve", row, FIRST)[0] == "ACCEPTED"
    assert word(stack, "approve", row, FIRST) == ("REJECTED", "ALREADY_COUNTED")
    stack.idle()
    assert refunded(stack, payment) == 0, "one person moves nothing"
    assert waiting(stack)[row["request_id"]]["approved_by"] == FIRST
    assert word(stack, "approve", row, SECOND) == ("ACCEPTED", "APPROVED")
    wait_for("the PSP paid it back", lambda: refunded(stack, payment) == 7000)
    stack.idle()
    assert waiting(stack) == {} and published(stack, payment).count("RefundSucceeded") == 1
    assert [r["status"] for r in stack.explain(payment)["refunds"]] == ["SUCCEEDED"]
    assert "R01 of A01 SUCCEEDED, version" in stack.ctl("explain_text", payment_id=payment)
    who = {r["who"] for r in stack.sql("SELECT who FROM audit_log WHERE what = 'APPROVE'")}
    assert who == {FIRST, SECOND}


def test_a_declined_refund_was_never_sent(stack):
    payment = paid(stack)
    row = ask_for_refund(stack, payment, 7000)
    assert word(stack, "decline", row, FIRST, "--reason", "NOT_SHOWN") == ("ACCEPTED", "DECLINED")
    stack.idle()
    assert refunded(stack, payment) == 0 and stack.psp.requests(order=attempt(payment), operation="refund") == []
    assert [r["status"] for r in stack.explain(payment)["refunds"]] == ["CANCELED"]


def test_an_operator_asks_for_a_correction_and_two_others_decide(stack):
    payment = paid(stack)
    row = stack.explain(payment)["attempts"][0]
    wrong = ("--payment", payment, "--id", attempt(payment), "--from", "SUCCEEDED", "--to", "FAILED", *EVIDENCE)
    assert stack.order("correct", *wrong, "--version", row["version"] + 1, caller=FIRST) == ("REJECTED", "STALE_REQUEST")
    assert stack.order("correct", *wrong, "--version", row["version"], caller=FIRST)[0] == "AWAITING_APPROVAL"
    (request,) = waiting(stack).values()
    assert json.loads(request["attachments"]) == [{"reference": "mail-1", "sha256": "ab" * 32}]
    assert word(stack, "approve", request, FIRST) == ("REJECTED", "OWN_REQUEST")
    assert word(stack, "approve", request, SECOND)[0] == "ACCEPTED"
    assert word(stack, "decline", request, SECOND, "--reason", "NOT_SHOWN") == ("REJECTED", "ALREADY_COUNTED")
    stack.idle()
    assert stack.attempt_status(attempt(payment)) == "SUCCEEDED", "one approval corrects nothing"
    assert stack.order("force-close", "--payment", payment, "--id", attempt(payment), "--version", row["version"],
                       "--outcome", "FAILED", *EVIDENCE, caller=FIRST) == ("REJECTED", "NOT_UNKNOWN")  # fmt: skip


def test_a_route_is_paused_and_resumed(stack):
    route = ("--psp", "stripe", "--account", ACCOUNT_A, "--method", "card", "--reason", "PSP_DOWN")
    assert stack.order("pause-route", *route, caller=FIRST)[0] == "ACCEPTED"
    (row,) = stack.sql("SELECT * FROM route_pause")
    assert (row["psp_account"], row["method"], row["paused_by"], row["reason_code"]) == (ACCOUNT_A, "card", FIRST, "PSP_DOWN")
    assert stack.order("resume-route", *route, caller=FIRST)[0] == "ACCEPTED"
    assert stack.sql("SELECT * FROM route_pause") == []


def test_a_case_is_listed_and_closed(stack):
    payment = paid(stack)
    stack.sql(
        "INSERT INTO manual_case (case_id, payment_id, kind, aggregate_id, case_no, status, evidence, opened_by, opened_at)"
        " VALUES (%s, %s, 'UNKNOWN_TOO_LONG', %s, 1, 'OPEN', '[]', 'test', now())",
        payment + ".UNKNOWN_TOO_LONG.1", payment, attempt(payment),
    )  # fmt: skip
    (row,) = json.loads(stack.ctl("cases"))
    assert (row["payment_id"], row["kind"], row["version"]) == (payment, "UNKNOWN_TOO_LONG", 1)
    close = ("--payment", payment, "--id", row["case_id"], "--version", row["version"], "--reason")
    assert stack.order("resolve-case", *close, "BECAUSE", caller=FIRST) == ("REJECTED", "INVALID_REASON")
    assert stack.order("resolve-case", *close, "NOTHING_TO_DO", caller=FIRST)[0] == "ACCEPTED"
    assert json.loads(stack.ctl("cases")) == []
    stack.wait_event(payment, "ManualReviewResolved")
