# SPDX-License-Identifier: Apache-2.0
"""Commands: repeated, reused, about nothing, of another merchant, unsigned."""

import copy
import json

import pytest

from payfact_stack import ACCOUNT_A, MERCHANT, new_payment_id, wait_for
from records import Signer, Upstream
from story import attempt, charges, history


def answers_to(stack, command_id):
    return [e for e in stack.consume_events() if e["command"] and e["command"]["command_id"] == command_id]


def wait_answers(stack, command_id, count=1):
    def found():
        events = answers_to(stack, command_id)
        return events if len(events) >= count else None

    return wait_for(f"{count} answer(s) to command {command_id}", found)


def create(stack, payment, amount=2599, **changes):
    """(record, secret) of a CREATE_PAYMENT as it was sent."""
    route = {"psp": "stripe", "psp_account": ACCOUNT_A, "method": "card", "failover_on_not_found": False}
    return stack.upstream.create_payment(payment, MERCHANT, amount, "EUR", [route], **changes)


def test_a_repeated_command_gets_the_same_answer(stack):
    payment = new_payment_id()
    record, secret = create(stack, payment)
    stack.wait_event(payment, "PaymentSucceeded")
    (first,) = wait_answers(stack, record["command_id"])
    for _ in range(2):
        stack.upstream.send(record, secret)
    repeated = wait_answers(stack, record["command_id"], 3)
    assert {(e["event_id"], e["sequence"], e["type"]) for e in repeated} == {(first["event_id"], first["sequence"], "CommandAccepted")}
    stack.idle()
    assert len(charges(stack, attempt(payment))) == 1
    assert stack.sql("SELECT count(*) AS n FROM payment_attempt")[0]["n"] == 1


def test_other_content_under_a_known_id_is_refused(stack):
    payment = new_payment_id()
    record, secret = create(stack, payment)
    stack.wait_event(payment, "PaymentSucceeded")
    other = copy.deepcopy(record)
    other["create_payment"]["amount_minor"] = 1
    stack.upstream.send(other, secret)
    refused = wait_answers(stack, record["command_id"], 2)[-1]
    assert (refused["type"], refused["reason_code"], refused["sequence"]) == ("CommandRejected", "COMMAND_ID_REUSED", 0)
    stack.idle()
    (order,) = stack.sql("SELECT amount_minor, status FROM payment_order")
    assert (order["amount_minor"], order["status"]) == (2599, "SUCCEEDED")
    assert [c["amount_minor"] for c in charges(stack, attempt(payment))] == [2599]


def test_a_second_payment_under_one_order_number_is_refused(stack):
    payment, other = new_payment_id(), new_payment_id()
    record, _ = create(stack, payment, merchant_order_no="ORDER-1")
    stack.wait_event(payment, "PaymentSucceeded")
    record, _ = create(stack, other, merchant_order_no="ORDER-1")
    (refused,) = wait_answers(stack, record["command_id"])
    assert (refused["type"], refused["reason_code"]) == ("CommandRejected", "DUPLICATE_ORDER_NO")
    stack.idle()
    assert charges(stack, attempt(other)) == []


def test_a_command_for_a_payment_that_is_not_there(stack):
    payment = new_payment_id()
    record = stack.command("CANCEL_PAYMENT", payment, {"reason_code": "CUSTOMER_LEFT"})
    (refused,) = wait_answers(stack, record["command_id"])
    assert (refused["type"], refused["reason_code"], refused["sequence"]) == ("CommandRejected", "UNKNOWN_PAYMENT", 0)
    assert [row["reason"] for row in stack.sql("SELECT reason FROM audit_log")] == ["UNKNOWN_PAYMENT"]
    stack.idle()
    assert stack.sql("SELECT 1 FROM payment_order") == []


def with_a_rival(stack):
    """A second merchant with a service of its own."""
    path = stack.dir / "accounts.json"
    document = json.loads(path.read_text())
    signer = Signer(stack.dir / "secrets", "rival-key")
    rival = {**document["merchants"][0], "id": "rival", "default_routes": []}
    document["merchants"].append(rival)
    document["principals"].append({"id": "rival-shop", "kind": "service", "keys": [{"id": "rival-key", "file": "rival-key.pub.pem"}],
                                   "may": [{"merchant": "rival", "commands": ["CREATE_PAYMENT", "CANCEL_PAYMENT"]}]})  # fmt: skip
    path.write_text(json.dumps(document))
    stack.rival = Upstream(stack.brokers, stack.topic_name("commands"), signer, "rival-shop")


def touched(stack, payment):
    """Everything that a command could have changed of a payment."""
    (order,) = stack.sql("SELECT xmin::text AS written_by, o.* FROM payment_order AS o WHERE payment_id = %s", payment)
    return order, len(history(stack, payment))


@pytest.mark.stack(prepare=with_a_rival)
def test_another_merchants_payment_is_out_of_reach(stack):
    payment = new_payment_id()
    stack.pay(2599, "EUR", payment_id=payment, instruments=["pm_card_authenticationRequired"])
    stack.wait_event(payment, "PaymentActionRequired")
    stack.idle()
    before = touched(stack, payment)
    for merchant, caller, reason in (
        ("rival", "rival-shop", "FOREIGN_MERCHANT"),
        (MERCHANT, "rival-shop", "NOT_ALLOWED"),
        (MERCHANT, stack.upstream.caller, "WRONG_CALLER"),
    ):
        record = stack.rival.command("CANCEL_PAYMENT", merchant, payment, {"reason_code": "CUSTOMER_LEFT"})
        record["caller"] = caller
        stack.rival.send(record)
        (refused,) = wait_answers(stack, record["command_id"])
        assert (refused["type"], refused["reason_code"], refused["sequence"]) == ("CommandRejected", reason, 0)
        assert (refused["payment_id"], refused["merchant_id"], refused["merchant_order_no"]) == (payment, merchant, None)
        assert (refused["order_status"], refused["totals"]) == (None, None), "nothing of the payment is told"
        assert refused["command"]["caller"] == "rival-shop", "who signed it is answered, whatever it calls itself"
        (entry,) = stack.sql("SELECT * FROM audit_log WHERE subject = %s", f"rival-shop/{record['command_id']}")
        assert (entry["who"], entry["what"], entry["reason"]) == ("rival-shop", "CANCEL_PAYMENT", reason)
    assert touched(stack, payment) == before
    # Our account in its own payment looks the same as one that does not exist.
    route = {"psp": "stripe", "psp_account": ACCOUNT_A, "method": "card", "failover_on_not_found": False}
    record, _ = stack.rival.create_payment(new_payment_id(), "rival", 100, "EUR", [route])
    (refused,) = wait_answers(stack, record["command_id"])
    assert (refused["type"], refused["reason_code"]) == ("CommandRejected", "UNKNOWN_ROUTE")
    stack.idle()
    assert stack.attempt_status(attempt(payment)) == "REQUIRES_ACTION"
    assert stack.psp.requests(operation="cancel") == []
    rejected = sum(stack.service(name).metric("payfact_security_rejects_total") for name in ("processor",))
    assert rejected == 4


def with_a_rival_that_has_an_account(stack):
    with_a_rival(stack)
    path = stack.dir / "accounts.json"
    document = json.loads(path.read_text())
    document["psp_accounts"].append({**document["psp_accounts"][0], "id": "stripe-rival", "merchant": "rival"})
    path.write_text(json.dumps(document))


@pytest.mark.redis_irrelevant
@pytest.mark.stack(prepare=with_a_rival_that_has_an_account)
def test_a_race_for_one_order_number_has_one_winner_a_merchant(stack):
    """Two merchants may use one number; within a merchant one payment has it, however many ask at once on two processors."""
    stack.service("processor", "processor-2").start()
    asked = {"acme": [], "rival": []}
    for number in range(12):
        merchant, upstream, account = (MERCHANT, stack.upstream, ACCOUNT_A) if number % 2 else ("rival", stack.rival, "stripe-rival")
        route = {"psp": "stripe", "psp_account": account, "method": "card", "failover_on_not_found": False}
        record, _ = upstream.create_payment(new_payment_id(), merchant, 2599, "EUR", [route], start=False, merchant_order_no="RACE-1")
        asked[merchant].append(record)
    for merchant, records in asked.items():
        told = [wait_answers(stack, record["command_id"])[0] for record in records]
        reasons = sorted(e["reason_code"] for e in told)
        assert reasons == ["ACCEPTED"] + ["DUPLICATE_ORDER_NO"] * (len(records) - 1), merchant
    orders = stack.sql("SELECT merchant_id FROM payment_order WHERE merchant_order_no = 'RACE-1'")
    assert sorted(o["merchant_id"] for o in orders) == ["acme", "rival"]


def test_what_is_not_rightly_signed_is_kept_apart(stack):
    payment = new_payment_id()
    stack.pay(2599, "EUR", payment_id=payment, instruments=["pm_card_authenticationRequired"])
    stack.wait_event(payment, "PaymentActionRequired")
    record = stack.upstream.command("CANCEL_PAYMENT", MERCHANT, payment, {"reason_code": "CUSTOMER_LEFT"})
    stack.upstream.send(record, signature=b"\0" * 64)
    stack.upstream.send(record, key_id="nobody")
    stack.upstream.send(record, key=new_payment_id())
    dead = wait_for("three dead letters", lambda: len(stack.records("dlq")) == 3 and stack.records("dlq"))
    assert all(letter["record"]["topic"] == stack.topic_name("commands") for letter in dead)
    assert len({letter["record"]["reason_code"] for letter in dead}) == 3
    stack.idle()
    assert answers_to(stack, record["command_id"]) == []
    assert stack.sql("SELECT 1 FROM audit_log") == [], "nobody said it: there is no one to name"
    assert stack.attempt_status(attempt(payment)) == "REQUIRES_ACTION"


def test_the_command_line_sends_the_same(stack):
    said = stack.send_command("CREATE_PAYMENT", "new", "--order-no", "CTL-1", "--amount", 2599, "--currency", "EUR",
                              "--route", f"stripe/{ACCOUNT_A}/card", "--instrument", "pm_card_visa")  # fmt: skip
    stack.wait_event(said["payment_id"], "PaymentSucceeded")
    (accepted,) = wait_answers(stack, said["command_id"])
    assert accepted["type"] == "CommandAccepted"
    stack.idle()
    told = stack.explain(said["payment_id"])
    assert told["order"]["status"] == "SUCCEEDED" and told["attempts"][0]["status"] == "SUCCEEDED"
