# SPDX-License-Identifier: Apache-2.0
"""The demo's parts about money that moves back and forth, and about what no single person can do."""

import json
import threading

from payfact_stack import ACCOUNT_A, ACCOUNT_B, CALLER, MERCHANT, OPERATORS, new_payment_id, wait_for
from records import Upstream
from story import answer_to, attempt, history, hold_callbacks
from telling import compare, euros, must

ASKS, SECOND, THIRD = OPERATORS
# The shop's own people may pay back so much without asking: what lies above waits for two approvals.
THRESHOLD = {"EUR": {"per_payment": 20000, "per_day": 100000}}


def merchant_of_the_demo(merchant):
    merchant["manual_capture"] = True
    merchant["refund_threshold_minor"] = THRESHOLD


def kinds(stack, order):
    return [e["kind"] for e in stack.ledger(order=order)]


def paid(teller, stack, amount=10000):
    payment = new_payment_id()
    stack.pay(amount, "EUR", payment_id=payment)
    stack.wait_event(payment, "PaymentSucceeded")
    stack.idle()
    teller.step(f"a payment of {euros(amount)} has succeeded: {payment}")
    return payment


def money(payment, amount):
    return ("--payment", payment, "--amount", amount, "--currency", "EUR")


def wait_refund(stack, refund_id, status, limit_s=60):
    def reached():
        rows = stack.sql("SELECT status FROM refund_order WHERE refund_id = %s", refund_id)
        return rows and rows[0]["status"] == status

    wait_for(f"{refund_id} is {status}", reached, limit_s)


def part_capture(teller, stack):
    teller.title("Authorize 100.00 EUR, capture 60.00 of it")
    payment = new_payment_id()
    order = attempt(payment)
    stack.pay(10000, "EUR", payment_id=payment, capture_mode="MANUAL")
    stack.wait_attempt(order, "AUTHORIZED")
    must(kinds(stack, order) == ["authorize"], "more than an authorization")
    teller.step("AUTHORIZED: the PSP holds the money for us and has taken none of it")
    said = stack.order("capture", *money(payment, 6000))
    must(said == ("ACCEPTED", "ACCEPTED"), f"the capture was answered {said}")
    event = stack.wait_event(payment, "PaymentSucceeded")
    must(event["totals"]["captured_minor"] == 6000, "the event names another amount")
    stack.idle()
    must(kinds(stack, order) == ["authorize", "capture", "release"], f"the ledger has {kinds(stack, order)}")
    teller.step("payfactctl capture 60.00 EUR: taken, and PaymentSucceeded says 60.00; the PSP has released the other 40.00")
    said = stack.order("capture", *money(payment, 4000))
    must(said == ("REJECTED", "CAPTURE_WAS_FINAL"), f"the second capture was answered {said}")
    teller.step(f"a second capture is refused before anybody is called: {said[1]}")
    compare(teller, stack, payment)


def ask_at_once(stack, payment, amount, people):
    """Each with a producer of its own, all released in the same moment; the answers."""
    body = {"attempt_id": None, "amount_minor": amount, "currency": "EUR", "reason_code": "requested_by_customer",
            "idempotency_key": None}  # fmt: skip
    gate, records = threading.Barrier(people), []

    def ask():
        upstream = Upstream(stack.brokers, stack.topic_name("commands"), stack.signers[CALLER], CALLER)
        record = upstream.command("REQUEST_REFUND", MERCHANT, payment, body)
        records.append(record)
        gate.wait(30)
        upstream.send(record)

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(people)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answer_to(stack, payment, record) for record in records]


def part_two_refunds(teller, stack):
    teller.title("Two refunds of 70.00 on 100.00 EUR at once")
    payment = paid(teller, stack)
    said = sorted((e["type"], e["reason_code"]) for e in ask_at_once(stack, payment, 7000, 2))
    must(said == [("CommandAccepted", "ACCEPTED"), ("CommandRejected", "EXCEEDS_REFUNDABLE")], f"they were answered {said}")
    teller.step("two clerks send REQUEST_REFUND of 70.00 in the same moment: one accepted, one refused, EXCEEDS_REFUNDABLE")
    wait_refund(stack, payment + "R01", "SUCCEEDED")
    stack.idle()
    (total,) = stack.psp.totals(order=attempt(payment))
    must((total["refunds"], total["refunded_minor"]) == (1, 7000), f"the PSP paid back {total}")
    teller.step("the PSP was asked once and has paid back 70.00")
    compare(teller, stack, payment)


def part_refund_timeout(teller, stack):
    teller.title("A refund that times out")
    payment = paid(teller, stack)
    refund = payment + "R01"
    hold_callbacks(stack, attempt(payment))
    stack.psp.script({"order": refund, "operation": "refund", "do": "charge_then_timeout", "times": 1})
    stack.order("refund", *money(payment, 4000))
    wait_for("it is unknown", lambda: history(stack, payment, aggregate="REFUND", to_status="UNKNOWN"), 60)
    teller.step("payfactctl refund 40.00: the PSP pays it back and does not answer. UNKNOWN, and its 40.00 stay reserved")
    said = stack.order("refund", *money(payment, 7000))
    must(said == ("REJECTED", "EXCEEDS_REFUNDABLE"), f"the second refund was answered {said}")
    teller.step("70.00 more are refused meanwhile: what may have been paid back is not promised to anybody else")
    wait_refund(stack, refund, "SUCCEEDED")
    executed = [r for r in stack.psp.requests(order=refund, operation="refund") if r["executed"]]
    must(len(executed) == 1, f"{len(executed)} refunds were executed")
    teller.step("recovery asks the PSP for the refund with our number and finds it: SUCCEEDED, paid once")
    stack.psp.release(order=attempt(payment))
    compare(teller, stack, payment)


def two_approve(teller, stack, payment):
    """The open request of this payment: two people, neither of them who asked, name it by its digest."""
    (row,) = [r for r in json.loads(stack.ctl("approvals")) if r["payment_id"] == payment]
    word = ("--payment", payment, "--request", row["request_id"], "--sha256", row["sha256"])
    said = [stack.order("approve", *word, caller=who) for who in (SECOND, THIRD)]
    must(said[-1] == ("ACCEPTED", "APPROVED"), f"the approvals were answered {said}")
    teller.step(f"{SECOND} and {THIRD} approve {row['command_type']}, which {row['requested_by']} asked for")


def part_double_charge(teller, stack):
    teller.title("A PSP refuses, takes the money all the same, and a second PSP takes it too")
    payment = new_payment_id()
    first, second = attempt(payment), attempt(payment, 2)
    hold_callbacks(stack, first)
    stack.psp.script({"order": first, "operation": "create", "do": "refuse_and_charge", "status": 400, "times": 1})
    stack.pay(2599, "EUR", payment_id=payment, accounts=(ACCOUNT_A, ACCOUNT_B))
    stack.wait_event(payment, "PaymentSucceeded")
    must(stack.attempt_status(first) == "FAILED" and stack.attempt_status(second) == "SUCCEEDED", "B did not follow A")
    teller.step("A answers 400, a definite no (and is wrong); payfact goes on to B, which takes 25.99: SUCCEEDED")
    stack.psp.release(order=first)
    stack.wait_event(payment, "ManualReviewRequired")
    stack.idle()
    (case,) = [c for c in json.loads(stack.ctl("cases")) if c["payment_id"] == payment]
    must((case["kind"], case["aggregate_id"], case["proposed_refund_minor"]) == ("DUPLICATE_CHARGE", first, 2599),
         f"the case is {case}")  # fmt: skip
    must(stack.attempt_status(first) == "SUCCEEDED" and stack.order_status(payment) == "SUCCEEDED", "A's money was not booked")
    teller.step("A's signed callback says paid: booked on A's attempt; the order stays as it was; a person gets a case:")
    teller.quote(next(row for row in stack.ctl("cases_text").splitlines() if payment in row))
    said = stack.order("refund", *money(payment, 2599), "--attempt", first, caller=ASKS)
    must(said == ("ACCEPTED", "ACCEPTED"), f"the refund was answered {said}")
    wait_refund(stack, payment + "R01", "SUCCEEDED")
    back = {t["account"]: t["refunded_minor"] for t in stack.psp.totals() if (t["order"] or "").startswith(payment)}
    must(back == {ACCOUNT_A: 2599, ACCOUNT_B: 0}, f"paid back: {back}")
    teller.step(f"{ASKS} refunds A's attempt: 25.99 go back at A, where they are held, and nothing at B")
    (case,) = [c for c in json.loads(stack.ctl("cases")) if c["payment_id"] == payment]
    said = stack.order("resolve-case", "--payment", payment, "--id", case["case_id"], "--version", case["version"],
                       "--reason", "REFUNDED", "--attachment", "refund-1=" + "5a" * 32, caller=ASKS)  # fmt: skip
    must(said[0] == "AWAITING_APPROVAL", f"resolve-case was answered {said}")
    two_approve(teller, stack, payment)
    compare(teller, stack, payment)


def part_forced_close(teller, stack):
    teller.title("A PSP that never answers again: a forced close needs two people")
    payment = new_payment_id()
    order = attempt(payment)
    silent = stack.psp.script({"order": order, "do": "take_and_die", "charge": False})[0]
    stack.pay(2599, "EUR", payment_id=payment)
    stack.wait_attempt(order, "UNKNOWN")
    teller.step("A dies on every call about this payment, queries too: UNKNOWN, for as long as nobody knows")
    version = stack.explain(payment)["attempts"][0]["version"]
    close = ("--payment", payment, "--id", order, "--version", version, "--outcome", "FAILED", "--reason", "PSP_CONFIRMED",
             "--attachment", "mail-of-the-psp=" + "5a" * 32)  # fmt: skip
    said = stack.order("force-close", *close, caller=ASKS)
    must(said[0] == "AWAITING_APPROVAL", f"force-close was answered {said}")
    (row,) = [r for r in json.loads(stack.ctl("approvals")) if r["payment_id"] == payment]
    word = ("--payment", payment, "--request", row["request_id"], "--sha256", row["sha256"])
    teller.step(f"{ASKS}, with the PSP's mail as evidence, asks to close it as FAILED: {said[0]}")
    alone = [stack.order("approve", *word, caller=who) for who in (ASKS, SECOND, SECOND)]
    must([reason for _, reason in alone] == ["OWN_REQUEST", "APPROVAL_COUNTED", "ALREADY_COUNTED"], f"they were answered {alone}")
    must(stack.attempt_status(order) == "UNKNOWN", "one approval closed it")
    teller.step(f"{ASKS} approves the own request: OWN_REQUEST. {SECOND} approves, and again: ALREADY_COUNTED. Still UNKNOWN")
    said = stack.order("approve", *word, caller=THIRD)
    must(said == ("ACCEPTED", "APPROVED"), f"the second approval was answered {said}")
    stack.wait_event(payment, "PaymentFailed")
    must(stack.attempt_status(order) == "FAILED", "two approvals did not close it")
    teller.step(f"{THIRD} approves: FAILED, by CONTROLLED evidence, with everybody's name in the history")
    stack.psp.control("DELETE", "script", id=silent)
    compare(teller, stack, payment)


PARTS = (part_capture, part_two_refunds, part_refund_timeout, part_double_charge, part_forced_close)
