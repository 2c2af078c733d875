# SPDX-License-Identifier: Apache-2.0
"""Stripe's official library judges both ends: it drives the simulator's API and verifies the simulator's callbacks, and
what it signs is what ingest takes. So neither agrees only with the other."""

import json
import time
import urllib.error
import urllib.request

import pytest
from conftest import stripe  # The official one: the simulator has a module of this name.
from payfact_stack import ACCOUNT_A, ACCOUNT_B, Servers, Stack, new_payment_id, wait_for
from story import account_of, attempt, earlier_event, hold_callbacks, published


@pytest.fixture(scope="module")
def world():
    with Servers() as servers, Stack(servers) as stack:
        stack.start()
        yield stack


@pytest.fixture
def psp(world):
    return client_of(world, ACCOUNT_A)


def client_of(stack, account, key=None):
    return stripe.StripeClient(key or account_of(stack, account)["secret_key"], base_addresses={"api": stack.psp.url},
                               max_network_retries=0)  # fmt: skip


def charge(psp, order, amount=2599, **more):
    params = {"amount": amount, "currency": "eur", "confirm": True, "payment_method": "pm_card_visa",
              "metadata": {"order_id": order}, **more}  # fmt: skip
    return psp.v1.payment_intents.create(params, {"idempotency_key": order})


# ---- the library drives the simulator


def test_a_charge_its_answer_again_and_a_refund(world, psp):
    order = f"LIB-{new_payment_id()}"
    intent = charge(psp, order)
    assert (intent.object, intent.status, intent.amount_received, intent.currency) == ("payment_intent", "succeeded", 2599, "eur")
    again = charge(psp, order)
    assert again.id == intent.id and again.last_response.headers["Idempotent-Replayed"] == "true"
    assert psp.v1.payment_intents.retrieve(intent.id).latest_charge == intent.latest_charge
    found = psp.v1.payment_intents.search({"query": f"metadata['order_id']:'{order}'"})
    assert [i.id for i in found.data] == [intent.id]
    refund = psp.v1.refunds.create({"payment_intent": intent.id, "amount": 1000}, {"idempotency_key": f"{order}-R1"})
    assert (refund.object, refund.status, refund.amount) == ("refund", "succeeded", 1000)
    assert psp.v1.refunds.retrieve(refund.id).id == refund.id
    assert [r.id for r in psp.v1.refunds.list({"payment_intent": intent.id}).data] == [refund.id]
    (total,) = world.psp.totals(order=order)
    assert (total["charges"], total["charged_minor"], total["refunded_minor"]) == (1, 2599, 1000)


def held(psp, **more):
    order = f"LIB-{new_payment_id()}"
    intent = charge(psp, order, capture_method="manual", **more)
    assert (intent.status, intent.amount_capturable, intent.amount_received) == ("requires_capture", 2599, 0)
    return order, intent


def total_of(world, order):
    (total,) = world.psp.totals(order=order)
    return {name.removesuffix("_minor"): total[name] for name in total if name.endswith("_minor") and total[name]}


def test_captures(world, psp):
    order, intent = held(psp)
    number = f"{order}-C1"
    params = {"amount_to_capture": 2000, "metadata": {"capture_ref": number}}
    captured = psp.v1.payment_intents.capture(intent.id, params, {"idempotency_key": number})
    assert (captured.status, captured.amount_received, captured.amount_capturable) == ("succeeded", 2000, 0)
    assert captured.metadata["order_id"] == order and captured.metadata["capture_ref"] == number
    again = psp.v1.payment_intents.capture(intent.id, params, {"idempotency_key": number})
    assert again.last_response.headers["Idempotent-Replayed"] == "true"
    with pytest.raises(stripe.InvalidRequestError) as twice:
        psp.v1.payment_intents.capture(intent.id, {"amount_to_capture": 1}, {"idempotency_key": f"{order}-C2"})
    assert twice.value.code == "payment_intent_unexpected_state"
    assert twice.value.error.payment_intent.metadata["capture_ref"] == number
    found = psp.v1.payment_intents.retrieve(intent.id, {"expand": ["latest_charge"]}).latest_charge
    assert (found.captured, found.amount_captured, found.amount_refunded) == (True, 2000, 599)
    whole, full = held(psp)
    assert psp.v1.payment_intents.capture(full.id).amount_received == 2599
    assert total_of(world, order) == {"authorized": 2599, "charged": 2000, "released": 599}
    assert total_of(world, whole) == {"authorized": 2599, "charged": 2599}


def test_cancel_is_a_void_and_a_paid_one_refuses_it(world, psp):
    order, intent = held(psp)
    assert psp.v1.payment_intents.cancel(intent.id, {"cancellation_reason": "abandoned"}).status == "canceled"
    assert total_of(world, order) == {"authorized": 2599, "released": 2599}
    paid = charge(psp, f"LIB-{new_payment_id()}")
    with pytest.raises(stripe.InvalidRequestError) as refused:
        psp.v1.payment_intents.cancel(paid.id)
    assert refused.value.code == "payment_intent_unexpected_state"


def refund_of(psp, intent, number, amount):
    params = {"payment_intent": intent.id, "amount": amount, "metadata": {"refund_ref": number}}
    return psp.v1.refunds.create(params, {"idempotency_key": number})


def test_refunds_of_a_capture_in_every_way_they_go(world, psp):
    order, intent = held(psp)
    psp.v1.payment_intents.capture(intent.id, {"amount_to_capture": 2000})
    (release,) = psp.v1.refunds.list({"payment_intent": intent.id}).data
    assert (release.amount, release.status, release.balance_transaction) == (599, "succeeded", None)
    first = refund_of(psp, intent, f"{order}-R1", 700)
    assert first.status == "succeeded" and first.balance_transaction
    assert refund_of(psp, intent, f"{order}-R1", 700).id == first.id
    world.psp.script({"order": f"{order}-R2", "operation": "refund", "do": "pending", "times": 1},
                     {"order": f"{order}-R3", "operation": "refund", "do": "fail", "times": 1},
                     {"order": f"{order}-R4", "operation": "refund", "do": "answer_5xx_after_charge", "status": 503, "times": 1},
                     {"order": f"{order}-R5", "operation": "refund", "do": "refuse", "status": 429, "times": 1})  # fmt: skip
    pending = refund_of(psp, intent, f"{order}-R2", 300)
    assert pending.status == "pending" and total_of(world, order)["refunded"] == 700
    world.psp.advance(account=ACCOUNT_A, refund=f"{order}-R2", to="succeeded")
    assert psp.v1.refunds.retrieve(pending.id).status == "succeeded"
    assert refund_of(psp, intent, f"{order}-R3", 100).failure_reason
    with pytest.raises(stripe.APIError):
        refund_of(psp, intent, f"{order}-R4", 200)
    assert refund_of(psp, intent, f"{order}-R4", 200).last_response.headers["Idempotent-Replayed"] == "true"
    with pytest.raises(stripe.RateLimitError):
        refund_of(psp, intent, f"{order}-R5", 800)
    assert total_of(world, order)["refunded"] == 1200
    assert refund_of(psp, intent, f"{order}-R5", 800).status == "succeeded"
    with pytest.raises(stripe.InvalidRequestError) as nothing_left:
        refund_of(psp, intent, f"{order}-R6", 1)
    assert nothing_left.value.code == "charge_already_refunded"
    world.psp.advance(account=ACCOUNT_A, refund=f"{order}-R1", to="failed")
    assert psp.v1.refunds.retrieve(first.id).status == "failed"
    assert total_of(world, order) == {"authorized": 2599, "charged": 2000, "released": 599, "refunded": 1300}
    listed = psp.v1.refunds.list({"payment_intent": intent.id, "limit": 3})
    assert (len(listed.data), listed.has_more) == (3, True)
    assert len(list(psp.v1.refunds.list({"payment_intent": intent.id, "limit": 100}).data)) == 6


def test_disputes(world, psp):
    order = f"LIB-{new_payment_id()}"
    intent = charge(psp, order)
    opened = world.psp.dispute(account=ACCOUNT_A, order=order, amount=1000)
    found = psp.v1.disputes.retrieve(opened["id"])
    assert (found.object, found.status, found.amount, found.payment_intent) == ("dispute", "needs_response", 1000, intent.id)
    with pytest.raises(stripe.InvalidRequestError) as disputed:
        refund_of(psp, intent, f"{order}-R1", 100)
    assert disputed.value.code == "charge_disputed"
    world.psp.advance(account=ACCOUNT_A, dispute=opened["id"], to="won")
    assert [d.status for d in psp.v1.disputes.list({"payment_intent": intent.id}).data] == ["won"]
    assert total_of(world, order) == {"charged": 2599}


def test_errors_are_the_ones_that_the_library_knows(world, psp):
    order = f"LIB-{new_payment_id()}"
    with pytest.raises(stripe.CardError) as declined:
        charge(psp, order, payment_method="pm_card_chargeDeclinedInsufficientFunds")
    assert (declined.value.code, declined.value.http_status) == ("card_declined", 402)
    assert declined.value.error.decline_code == "insufficient_funds"
    assert declined.value.error.payment_intent.status == "requires_payment_method"
    with pytest.raises(stripe.IdempotencyError):
        charge(psp, order, amount=1)
    with pytest.raises(stripe.InvalidRequestError) as missing:
        psp.v1.payment_intents.retrieve("pi_nothing")
    assert missing.value.code == "resource_missing" and missing.value.http_status == 404
    with pytest.raises(stripe.InvalidRequestError):
        charge(psp, f"LIB-{new_payment_id()}", amount=0)
    with pytest.raises(stripe.AuthenticationError):
        charge(client_of(world, ACCOUNT_A, "sk_test_wrong"), f"LIB-{new_payment_id()}")
    with pytest.raises(stripe.InvalidRequestError):  # another account's object
        client_of(world, ACCOUNT_B).v1.payment_intents.retrieve(charge(psp, f"LIB-{new_payment_id()}").id)
    limited = f"LIB-{new_payment_id()}"
    world.psp.script({"order": limited, "operation": "create", "do": "refuse", "status": 429, "times": 1})
    with pytest.raises(stripe.RateLimitError):
        charge(psp, limited)
    broken = f"LIB-{new_payment_id()}"
    world.psp.script({"order": broken, "operation": "create", "do": "answer_5xx_after_charge", "status": 500, "times": 1})
    with pytest.raises(stripe.APIError):
        charge(psp, broken)


# ---- the library verifies the simulator's callbacks


def test_the_simulators_callbacks_are_verified_by_the_library(world, psp, receiver):
    account = account_of(world, ACCOUNT_A)
    world.psp.put_account({**account, "callback_url": receiver.url})
    try:
        order, intent = held(psp)
        psp.v1.payment_intents.capture(intent.id, {"amount_to_capture": 2000})
        refund_of(psp, intent, f"{order}-R1", 500)
        world.psp.advance(account=ACCOUNT_A, refund=f"{order}-R1", to="failed")
        opened = world.psp.dispute(account=ACCOUNT_A, order=order)
        world.psp.advance(account=ACCOUNT_A, dispute=opened["id"], to="won")
        world.psp.drain(order=order)
        taken = [t for t in receiver.taken if intent.id.encode() in t[2]]
        for _, headers, body in taken:
            signature = dict(headers)["Stripe-Signature"]
            event = stripe.Webhook.construct_event(body, signature, account["webhook_secret"])
            assert event.object == "event" and event.data.object.object in ("payment_intent", "charge", "refund", "dispute")
            for wrong_body, wrong_secret in ((body + b" ", account["webhook_secret"]), (body, "whsec_other")):
                with pytest.raises(stripe.SignatureVerificationError):
                    stripe.Webhook.construct_event(wrong_body, signature, wrong_secret)
        kinds = {json.loads(t[2])["type"] for t in taken}
        assert {"payment_intent.amount_capturable_updated", "payment_intent.succeeded", "charge.captured", "charge.refunded",
                "refund.created", "refund.failed", "charge.dispute.created", "charge.dispute.funds_withdrawn",
                "charge.dispute.funds_reinstated", "charge.dispute.closed"} <= kinds  # fmt: skip
        before = len(receiver.taken)
        for how in ("unsigned", "signature", "secret", "stale"):
            world.psp.callback(account=ACCOUNT_A, order=order, type="payment_intent.succeeded", forge=how)
        forged = receiver.taken[before:]
        assert len(forged) == 4
        for _, headers, body in forged:
            with pytest.raises((stripe.SignatureVerificationError, ValueError)):
                stripe.Webhook.construct_event(body, dict(headers).get("Stripe-Signature", ""), account["webhook_secret"])
    finally:
        world.psp.put_account(account)


# ---- ingest accepts what the library signs


def sign(secret, body, at=None):
    at = at or int(time.time())
    mac = stripe.WebhookSignature._compute_signature(f"{at}.{body.decode()}", secret)
    header = f"t={at},v1={mac}"
    assert stripe.WebhookSignature.verify_header(body.decode(), header, secret)
    return header


def post(stack, body, header):
    request = urllib.request.Request(account_of(stack, ACCOUNT_A)["callback_url"], data=body, method="POST")
    request.add_header("Content-Type", "application/json")
    request.add_header("Stripe-Signature", header)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def test_ingest_accepts_what_the_library_signs_and_nothing_else(world):
    payment = new_payment_id()
    order = attempt(payment)
    hold_callbacks(world, order)  # the PSP's own stay away: the success can only be the library's
    world.pay(2599, "EUR", payment_id=payment, instruments=["pm_sepaDebit"])
    world.wait_attempt(order, "PROCESSING")
    world.psp.advance(account=ACCOUNT_A, order=order, to="succeeded")
    event = earlier_event(world, ACCOUNT_A, order, "payment_intent.succeeded", "succeeded")
    body, secret = json.dumps(event).encode(), account_of(world, ACCOUNT_A)["webhook_secret"]
    good = sign(secret, body)
    assert post(world, body + b" ", good) == 400
    assert post(world, body, sign("whsec_other", body)) == 400
    assert post(world, body, f"t={int(time.time()) - 3600},v1=00") == 400
    assert world.attempt_status(order) == "PROCESSING"
    assert post(world, body, good) == 200
    world.wait_event(payment, "PaymentSucceeded")
    world.psp.release(order=order)
    world.idle()
    assert published(world, payment).count("PaymentSucceeded") == 1
