# SPDX-License-Identifier: Apache-2.0
"""Scenario C: what was captured goes back, in part, at once, late, and not at all; the PSP's ledger is the judge."""

import pytest

from payfact_stack import ACCOUNT_A, new_payment_id, wait_for
from story import answer_to, attempt, hold_callbacks, published

REASON = "requested_by_customer"


def small_refunds_need_nobody(document):
    merchant = document["merchants"][0]
    merchant["refund_threshold_minor"] = {"EUR": {"per_payment": 1_000_000, "per_day": 10_000_000}}
    merchant["manual_capture"] = True


pytestmark = pytest.mark.stack(edit=small_refunds_need_nobody)


def paid(stack, amount=10000):
    payment = stack.pay(amount, "EUR")
    stack.wait_event(payment, "PaymentSucceeded")
    return payment


def refund(stack, payment, amount, **changes):
    body = {"attempt_id": None, "amount_minor": amount, "currency": "EUR", "reason_code": REASON, "idempotency_key": None}
    return stack.command("REQUEST_REFUND", payment, {**body, **changes})


def capture(stack, payment, amount, final=True):
    body = {"attempt_id": None, "amount_minor": amount, "currency": "EUR", "is_final": final, "idempotency_key": None}
    return stack.command("CAPTURE", payment, body)


def answer(stack, payment, record):
    """(accepted, reason) of a command, once it was answered."""
    event = answer_to(stack, payment, record)
    return event["type"], event["reason_code"]


def refunds(stack, payment):
    rows = stack.sql("SELECT refund_id, status FROM refund_order WHERE payment_id = %s ORDER BY refund_id", payment)
    return [(row["refund_id"][-3:], row["status"]) for row in rows]


def wait_refund(stack, refund_id, status, limit_s=60):
    def reached():
        rows = stack.sql("SELECT status FROM refund_order WHERE refund_id = %s", refund_id)
        return rows and rows[0]["status"] == status

    wait_for(f"{refund_id} is {status}", reached, limit_s)


def amounts(stack, payment):
    (row,) = stack.sql("SELECT * FROM payment_amount WHERE payment_id = %s", payment)
    return {name.removesuffix("_minor"): value for name, value in row.items() if name.endswith("_minor") and value}


def at_the_psp(stack, payment):
    (total,) = stack.psp.totals(order=attempt(payment))
    return {name.removesuffix("_minor"): total[name] for name in ("charged_minor", "refunded_minor", "withdrawn_minor")}


def test_c_refunded_in_part_and_then_the_rest(stack):
    payment = paid(stack)
    assert answer(stack, payment, refund(stack, payment, 3000)) == ("CommandAccepted", "ACCEPTED")
    wait_refund(stack, payment + "R01", "SUCCEEDED")
    assert answer(stack, payment, refund(stack, payment, 7001)) == ("CommandRejected", "EXCEEDS_REFUNDABLE")
    refund(stack, payment, 7000)
    wait_refund(stack, payment + "R02", "SUCCEEDED")
    stack.idle()
    assert at_the_psp(stack, payment) == {"charged": 10000, "refunded": 10000, "withdrawn": 0}
    assert amounts(stack, payment) == {"authorized": 10000, "captured": 10000, "refunded": 10000}
    assert published(stack, payment).count("RefundSucceeded") == 2
    assert stack.order_status(payment) == "SUCCEEDED"  # a refund's success is not a payment's failure


def test_c_two_refunds_of_70_on_100_at_once(stack):
    payment = paid(stack)
    answers = [answer(stack, payment, record) for record in [refund(stack, payment, 7000), refund(stack, payment, 7000)]]
    assert sorted(answers) == [("CommandAccepted", "ACCEPTED"), ("CommandRejected", "EXCEEDS_REFUNDABLE")]
    wait_refund(stack, payment + "R01", "SUCCEEDED")
    stack.idle()
    assert refunds(stack, payment) == [("R01", "SUCCEEDED")]
    assert at_the_psp(stack, payment)["refunded"] == 7000


@pytest.mark.parametrize("fault", [
    {"do": "charge_then_timeout"}, {"do": "answer_5xx_after_charge", "status": 500}, {"do": "half_answer"},
], ids=lambda fault: fault["do"])  # fmt: skip
def test_c_a_refund_whose_answer_is_lost_converges(stack, fault):
    """Reserved all the while: what may have been paid back is not given a second time."""
    payment = paid(stack)
    stack.idle()
    hold_callbacks(stack, attempt(payment))
    stack.psp.script({"order": payment + "R01", "operation": "refund", "times": 1, **fault})
    refund(stack, payment, 7000)
    wait_for("the PSP paid it back", lambda: at_the_psp(stack, payment)["refunded"] == 7000)
    assert answer(stack, payment, refund(stack, payment, 7000)) == ("CommandRejected", "EXCEEDS_REFUNDABLE")
    wait_refund(stack, payment + "R01", "SUCCEEDED", 90)
    stack.psp.release(order=attempt(payment))
    stack.idle()
    assert at_the_psp(stack, payment)["refunded"] == 7000 == amounts(stack, payment)["refunded"]
    assert published(stack, payment).count("RefundSucceeded") == 1


def test_c_a_refused_refund_releases_what_it_reserved(stack):
    payment = paid(stack)
    stack.psp.script({"order": payment + "R01", "operation": "refund", "do": "fail", "times": 1})
    refund(stack, payment, 7000)
    wait_refund(stack, payment + "R01", "FAILED")
    assert answer(stack, payment, refund(stack, payment, 10000)) == ("CommandAccepted", "ACCEPTED")
    wait_refund(stack, payment + "R02", "SUCCEEDED")
    stack.idle()
    assert at_the_psp(stack, payment)["refunded"] == 10000


def test_c_a_refund_that_fails_after_it_succeeded(stack):
    payment = paid(stack)
    refund(stack, payment, 7000)
    wait_refund(stack, payment + "R01", "SUCCEEDED")
    stack.idle()
    stack.psp.advance(account=ACCOUNT_A, refund=payment + "R01", to="failed")
    wait_refund(stack, payment + "R01", "REVERSED")
    stack.idle()
    assert at_the_psp(stack, payment)["refunded"] == 0 and "refunded" not in amounts(stack, payment)
    assert published(stack, payment).count("RefundReversed") == 1


def test_c_a_refund_in_the_psps_console(stack):
    payment = paid(stack)
    stack.psp.console(account=ACCOUNT_A, order=attempt(payment), do="refund", amount=2500)
    wait_refund(stack, payment + "R01", "SUCCEEDED")
    stack.idle()
    assert amounts(stack, payment)["refunded"] == 2500
    (row,) = stack.sql("SELECT origin FROM refund_order WHERE payment_id = %s", payment)
    assert row["origin"] == "PSP"


def authorized(stack, amount=10000):
    payment = new_payment_id()
    stack.pay(amount, "EUR", payment_id=payment, capture_mode="MANUAL")
    stack.wait_attempt(attempt(payment), "AUTHORIZED")
    return payment


def test_c_authorized_captured_in_part_and_refunded(stack):
    payment = authorized(stack)
    assert at_the_psp(stack, payment)["charged"] == 0
    assert answer(stack, payment, capture(stack, payment, 6000)) == ("CommandAccepted", "ACCEPTED")
    event = stack.wait_event(payment, "PaymentSucceeded")
    assert event["totals"]["captured_minor"] == 6000
    assert answer(stack, payment, refund(stack, payment, 6001)) == ("CommandRejected", "EXCEEDS_REFUNDABLE")
    refund(stack, payment, 1000)
    wait_refund(stack, payment + "R01", "SUCCEEDED")
    stack.idle()
    assert at_the_psp(stack, payment) == {"charged": 6000, "refunded": 1000, "withdrawn": 0}
    assert amounts(stack, payment) == {"authorized": 6000, "captured": 6000, "refunded": 1000}


def test_c_an_authorization_is_voided(stack):
    payment = authorized(stack)
    stack.command("CANCEL_PAYMENT", payment, {"reason_code": "abandoned"})
    stack.wait_event(payment, "PaymentCanceled")
    stack.idle()
    assert at_the_psp(stack, payment) == {"charged": 0, "refunded": 0, "withdrawn": 0}
    assert amounts(stack, payment) == {}


@pytest.mark.parametrize("end, left", [("won", 0), ("lost", 4000)])
def test_c_a_dispute_withdraws_and_reinstates(stack, end, left):
    payment = paid(stack)
    dispute = stack.psp.dispute(account=ACCOUNT_A, order=attempt(payment), amount=4000, reason="product_not_received")
    wait_for("it is withdrawn", lambda: amounts(stack, payment).get("withdrawn") == 4000)
    assert answer(stack, payment, refund(stack, payment, 6001)) == ("CommandRejected", "EXCEEDS_REFUNDABLE")
    stack.psp.advance(account=ACCOUNT_A, dispute=dispute["id"], to="under_review")
    stack.psp.advance(account=ACCOUNT_A, dispute=dispute["id"], to=end)
    stack.wait_event(payment, "DisputeClosed")
    stack.idle()
    (row,) = stack.sql("SELECT status, withdrawn_minor FROM dispute WHERE payment_id = %s", payment)
    assert (row["status"], row["withdrawn_minor"]) == (end.upper(), left)
    assert at_the_psp(stack, payment)["withdrawn"] == left == amounts(stack, payment).get("withdrawn", 0)
    assert stack.order_status(payment) == "SUCCEEDED"
