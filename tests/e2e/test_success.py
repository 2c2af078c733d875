# SPDX-License-Identifier: Apache-2.0
"""The ordinary day: a payment succeeds, and is told in many ways that it did."""

from story import answers, attempt, charges, created, history, published, verdicts
from payfact_stack import ACCOUNT_A, wait_for


def test_a_payment_succeeds(stack):
    payment = stack.pay(2599, "EUR")
    event = stack.wait_event(payment, "PaymentSucceeded")
    stack.idle()
    assert (event["amount_minor"], event["currency"], event["attempt_id"]) == (2599, "EUR", attempt(payment))
    assert event["totals"]["captured_minor"] == 2599
    assert published(stack, payment).count("PaymentSucceeded") == 1
    (charge,) = charges(stack, attempt(payment))
    assert (charge["amount_minor"], charge["currency"], charge["account"]) == (2599, "EUR", ACCOUNT_A)
    assert len(created(stack, attempt(payment))) == 1  # one call, no retry
    (order,) = stack.sql("SELECT status, event_sequence FROM payment_order WHERE payment_id = %s", payment)
    assert order["status"] == "SUCCEEDED" and order["event_sequence"] == len(published(stack, payment))
    # Every callback got Stripe's success at its first try.
    for callback in stack.psp.callbacks(order=attempt(payment)):
        assert [t["status"] for t in callback["tries"]] == [200], callback


def test_a_currency_without_decimals(stack):
    payment = stack.pay(3000, "JPY")
    event = stack.wait_event(payment, "PaymentSucceeded")
    assert (event["amount_minor"], event["currency"]) == (3000, "JPY")
    (charge,) = charges(stack, attempt(payment))
    assert (charge["amount_minor"], charge["amount"], charge["currency"]) == (3000, 3000, "JPY")


def test_answer_callback_and_charge_callback_are_one_success(stack):
    """Our own answer, payment_intent.succeeded and charge.succeeded (twice each, at once) tell the same fact."""
    payment = stack.pay(1500, "EUR")
    order = attempt(payment)
    stack.psp.script({"on": "callback", "order": order, "do": "duplicate", "copies": 2})
    stack.wait_event(payment, "PaymentSucceeded")
    stack.idle()
    # Another event id for the same change: another transport key, the same fact.
    again = stack.psp.callback(account=ACCOUNT_A, order=order, type="charge.succeeded")
    assert answers(again) == [200]
    wait_for("the second charge.succeeded is decided", lambda: len(verdicts(stack, payment, "SUC")) == 4)
    assert sorted(verdicts(stack, payment, "SUC")) == ["APPLY", "IGNORE", "IGNORE", "IGNORE"]
    stack.idle()
    assert published(stack, payment).count("PaymentSucceeded") == 1
    counted = stack.sql(
        "SELECT sum(delivery_count) AS n FROM channel_event WHERE payment_id = %s AND source = 'WEBHOOK'", payment
    )
    known = stack.service("webhook").metric("payfact_callbacks_total", outcome="duplicate")
    total = len(stack.psp.callbacks(order=order))
    assert counted[0]["n"] + known == total, "every copy is counted, in the inbox or at the door"


def test_five_payments_at_once(stack):
    payments = [stack.pay(1000 + n, "EUR") for n in range(5)]
    for payment in payments:
        stack.wait_event(payment, "PaymentSucceeded")
    stack.idle()
    assert len({row["aggregate_id"] for p in payments for row in history(stack, p, event_type="SUC", verdict="APPLY")
                if row["aggregate"] == "ATTEMPT"}) == 5  # fmt: skip
