# SPDX-License-Identifier: Apache-2.0
"""Captures, refunds, voids and the questions about them, through ingest/psp alone: a job on the topic and its gate row,
a PSP that fails in every way, and the PSP's own ledger as the judge."""

import pytest

from payfact_stack import Stack, wait_for
from psp_world import FAST, World, psp_alone

SENDING = {"CAPTURE": "capture", "REFUND": "refund"}
# Each test brings its own trouble: it must not open the breaker for the next one.
SETTINGS = {**FAST, "BREAKER_FAILURES": 1000}


@pytest.fixture(scope="module")
def stack(servers):
    with psp_alone(servers, SETTINGS) as made:
        yield made


@pytest.fixture
def world(stack):
    stack.psp.clear_script()
    yield World(stack)
    stack.psp.api("up")


@pytest.fixture
def own(servers):
    with Stack(servers, redis=False, settings={"psp": SETTINGS}) as made:
        yield World(made)
        assert {s.stop() for s in made.services.values() if s.alive()} <= {0}


def begin(world, kind, amount=1500, currency="EUR", total=2599):
    """(what was paid, a job that captures or refunds a part of it, behind its gate)"""
    paid = world.paid("MANUAL" if kind == "CAPTURE" else "AUTOMATIC", total, currency)
    return paid, world.gate(world.action(kind, paid, amount))


def ask(world, job, paid):
    """A question about the job, as recovery puts it; the event that answers."""
    number = len([m for m in world.inputs(job) if m["record"]["source"] == "QUERY"]) + 1
    query = world.action(f"QUERY_{job['kind']}", paid, job["amount_minor"], no=int(job["action_id"][-2:]), number=number,
                         about_job_id=job["job_id"])  # fmt: skip
    world.put(query)
    wait_for("it is answered", lambda: world.events(query))
    return [e["type"] for e in world.events(query)], world.events(query)


# ---- a good day


@pytest.mark.parametrize("kind", SENDING)
def test_it_passes_its_gate_once_and_names_its_action(world, kind):
    paid, job = begin(world, kind)
    world.put(job)
    event = world.wait_event(job, f"{kind}_SUCCEEDED")
    assert [e["type"] for e in world.events(job)] == [f"{kind}_SUBMITTED", f"{kind}_SUCCEEDED"]
    assert (event["action_id"], event["merchant_request_no"]) == (job["action_id"], paid["attempt_id"])
    assert (event["amount_minor"], event["currency"], event["provider_payment_id"]) == (1500, "EUR", paid["provider_reference"])
    assert event["provider_action_id"].startswith("ch_" if kind == "CAPTURE" else "re_")
    assert world.moved(paid, SENDING[kind]) == [1500]
    (call,) = world.calls(job)
    ref = "capture_ref" if kind == "CAPTURE" else "refund_ref"
    assert call["params"]["metadata"][ref] == job["action_id"] and call["idempotency_key"] == job["action_id"]
    row = world.row(job)
    assert (row["sends"], row["action_id"]) == (1, job["action_id"]) and row["finished_at"]
    said = [m["value"] for m in world.inputs(job)]
    world.put(job)  # delivered again: the stored outcome, byte for byte, and no call
    wait_for("said again", lambda: len(world.inputs(job)) == len(said) + 1)
    assert [m["value"] for m in world.inputs(job)] == [*said, said[-1]]
    assert len(world.calls(job)) == 1 and world.row(job)["sends"] == 1


@pytest.mark.parametrize("kind", SENDING)
@pytest.mark.parametrize("currency, total, amount", [("JPY", 1000, 1), ("KWD", 5120, 1230), ("ISK", 1200, 7)])
def test_a7_exponents_arrive_to_the_unit(world, kind, currency, total, amount):
    paid, job = begin(world, kind, amount, currency, total)
    world.put(job)
    event = world.wait_event(job, f"{kind}_SUCCEEDED")
    assert (event["amount_minor"], event["currency"]) == (amount, currency)
    assert world.moved(paid, SENDING[kind]) == [amount]


@pytest.mark.parametrize("kind", SENDING)
def test_copies_at_once_are_one_call(world, kind):
    paid, job = begin(world, kind)
    world.stack.psp.script({"operation": SENDING[kind], "do": "delay", "delay_ms": 300})
    world.put(job, job, job)
    world.wait_event(job, f"{kind}_SUCCEEDED")
    world.done()
    assert len(world.calls(job)) == 1 and world.moved(paid, SENDING[kind]) == [1500]


def test_several_refunds_of_one_charge(world):
    paid = world.paid()
    jobs = [world.gate(world.action("REFUND", paid, amount, no=n)) for n, amount in enumerate((1000, 599, 1000), 1)]
    world.put(*jobs)
    for job in jobs:
        assert world.wait_event(job, "REFUND_SUCCEEDED")["action_id"] == job["action_id"]
    assert sorted(world.moved(paid, "refund")) == [599, 1000, 1000]
    assert len({e["provider_action_id"] for job in jobs for e in world.events(job, "REFUND_SUCCEEDED")}) == 3


# ---- a bad day: what the first send comes to, what a question says then, what the PSP really did

UNKNOWN, DONE, NOTHING = "UNKNOWN", "SUCCEEDED", "NOT_FOUND"
FAULTS = {
    "takes it and closes": ({"do": "take_and_die", "how": "close"}, UNKNOWN, DONE),
    "takes it and resets": ({"do": "take_and_die", "how": "reset"}, UNKNOWN, DONE),
    "reads it, does nothing, closes": ({"do": "take_and_die", "how": "close", "charge": False}, UNKNOWN, NOTHING),
    "does it and never answers": ({"do": "charge_then_timeout"}, UNKNOWN, DONE),
    "does it and answers too late": ({"do": "delay", "answer_delay_ms": 3000}, UNKNOWN, DONE),
    "half an answer": ({"do": "half_answer"}, UNKNOWN, DONE),
    "an answer that is none": ({"do": "garbage"}, UNKNOWN, DONE),
    "500 after doing it": ({"do": "answer_5xx_after_charge", "status": 500}, UNKNOWN, DONE),
    "502 after doing it": ({"do": "answer_5xx_after_charge", "status": 502}, UNKNOWN, DONE),
    "503 after doing it": ({"do": "answer_5xx_after_charge", "status": 503}, UNKNOWN, DONE),
    "424": ({"do": "refuse", "status": 424}, UNKNOWN, NOTHING),
    "key in use": ({"do": "refuse", "status": 409, "error_code": "idempotency_key_in_use"}, UNKNOWN, NOTHING),
    "already done, it says": ({"do": "refuse", "status": 400, "error_code": "charge_already_{}"}, UNKNOWN, NOTHING),
    "400": ({"do": "refuse", "status": 400}, "FAILED", NOTHING),
    "404": ({"do": "refuse", "status": 404}, "FAILED", NOTHING),
}


@pytest.mark.parametrize("kind", SENDING)
@pytest.mark.parametrize("name", FAULTS)
def test_a_send_that_fails(world, kind, name):
    rule, first, then = FAULTS[name]
    rule = {k: v.format("captured" if kind == "CAPTURE" else "refunded") if k == "error_code" else v for k, v in rule.items()}
    paid, job = begin(world, kind)
    world.stack.psp.script({"order": job["action_id"], "operation": SENDING[kind], "times": 1, **rule})
    world.put(job)
    event = world.wait_event(job, f"{kind}_{UNKNOWN}", f"{kind}_FAILED", f"{kind}_SUCCEEDED")
    assert event["type"] == f"{kind}_{first}" and event["action_id"] == job["action_id"]
    types, _ = ask(world, job, paid)
    assert types == [f"{kind}_{then}"]
    assert world.moved(paid, SENDING[kind]) == ([1500] if then == DONE else [])
    assert world.row(job)["sends"] == len(world.calls(job)) == 1, "a question is no send"


@pytest.mark.parametrize("kind", SENDING)
def test_what_certainly_did_not_leave_is_sent_again_under_its_number(world, kind):
    paid, job = begin(world, kind)
    world.stack.psp.api("down")
    world.put(job)
    wait_for("it has tried", lambda: world.row(job)["sends"] >= 2 or world.events(job, f"{kind}_NOT_SENT"))
    world.stack.psp.api("up")
    event = world.wait_event(job, f"{kind}_SUCCEEDED", f"{kind}_NOT_SENT")
    if event["type"] == f"{kind}_NOT_SENT":  # The budget was spent first: closed, and sent again as a job of its own.
        assert world.moved(paid, SENDING[kind]) == [] and world.row(job)["sending_at"] is None
        job = world.gate({**world.action(kind, paid, 1500, number=2), "try": 2})
        world.put(job)
        world.wait_event(job, f"{kind}_SUCCEEDED")
    assert world.moved(paid, SENDING[kind]) == [1500]


def test_a_refund_refused_for_now_is_repeated_under_its_own_number(world):
    paid, job = begin(world, "REFUND")
    for number, (status, code, wait_s) in enumerate(((429, "", 7), (400, "balance_insufficient", 0), (409, "lock_timeout", 0)), 1):
        world.stack.psp.script({"order": job["action_id"], "operation": "refund", "times": 1, "do": "refuse", "status": status,
                                "error_code": code, "retry_after_s": wait_s})  # fmt: skip
        if number > 1:
            job = world.gate({**world.action("REFUND", paid, 1500, number=number), "try": number})
        world.put(job)
        event = world.wait_event(job, "REFUND_RETRY_SAME_NUMBER", "REFUND_UNKNOWN", "REFUND_FAILED")
        assert event["type"] == "REFUND_RETRY_SAME_NUMBER", code
        assert event["call"]["retry_after_s"] == (wait_s or None)
    last = world.gate({**world.action("REFUND", paid, 1500, number=4), "try": 4})
    world.put(last)
    world.wait_event(last, "REFUND_SUCCEEDED")
    calls = world.calls(last)
    assert len(calls) == 4 and len({c["body_sha256"] for c in calls}) == 1, "the same request, to the byte"
    assert world.moved(paid, "refund") == [1500]


def test_a_no_to_a_repeat_is_not_definite(world):
    """The former send under this number may still be executed: nobody may say that it was not."""
    paid = world.paid()
    job = world.gate({**world.action("REFUND", paid, 1500, number=2), "try": 2})
    world.stack.psp.script({"order": job["action_id"], "operation": "refund", "times": 1, "do": "refuse", "status": 400})
    world.put(job)
    assert world.wait_event(job, "REFUND_UNKNOWN", "REFUND_FAILED")["type"] == "REFUND_UNKNOWN"


@pytest.mark.parametrize("end", ["succeeded", "failed"])
def test_a_refund_that_is_pending_and_then_ends(world, end):
    paid, job = begin(world, "REFUND")
    world.stack.psp.script({"order": job["action_id"], "operation": "refund", "do": "pending"})
    world.put(job)
    reference = world.wait_event(job, "REFUND_PROCESSING")["provider_action_id"]
    assert ask(world, job, paid)[0] == ["REFUND_PROCESSING"]
    world.stack.psp.advance(account=paid["psp_account"], refund=reference, to=end)
    types, events = ask(world, job, paid)
    assert types == [f"REFUND_{end.upper()}"] and events[0]["provider_action_id"] == reference
    assert world.moved(paid, "refund") == ([1500] if end == "succeeded" else [])


def test_a_refund_that_fails_after_it_succeeded(world):
    paid, job = begin(world, "REFUND")
    world.put(job)
    reference = world.wait_event(job, "REFUND_SUCCEEDED")["provider_action_id"]
    world.stack.psp.advance(account=paid["psp_account"], refund=reference, to="failed")
    types, events = ask(world, job, paid)
    assert types == ["REFUND_FAILED"] and events[0]["failure_code"] == "lost_or_stolen_card"


@pytest.mark.parametrize("kind", SENDING)
def test_the_amount_that_the_psp_really_moved_is_told(world, kind):
    paid, job = begin(world, kind)
    world.stack.psp.script({"order": job["action_id"], "operation": SENDING[kind], "do": "wrong_amount", "amount": 1400})
    world.put(job)
    event = world.wait_event(job, f"{kind}_SUCCEEDED")
    assert (event["amount_minor"], event["action_id"]) == (1400, job["action_id"])
    assert world.moved(paid, SENDING[kind]) == [1400]


# ---- what can never be sent


NEVER = [({"is_final": False}, "CAPTURE"), *((changes, kind) for kind in SENDING for changes in (
    {"provider_reference": None, "references": []}, {"amount_minor": 0}, {"currency": "IQD"}))]  # fmt: skip


@pytest.mark.parametrize("changes, kind", NEVER, ids=str)
def test_what_stripe_cannot_do_is_never_sent(world, kind, changes):
    """A capture that leaves the rest open is one: Stripe captures once."""
    paid = world.paid("MANUAL" if kind == "CAPTURE" else "AUTOMATIC")
    job = world.gate({**world.action(kind, paid, 1500), **changes})
    world.put(job)
    event = world.wait_event(job, f"{kind}_NOT_SENT")
    assert event["failure_class"] == "INVALID_REQUEST" and event["action_id"] == job["action_id"]
    assert world.calls(job) == [] and world.row(job)["sends"] == 0 and world.moved(paid, SENDING[kind]) == []


@pytest.mark.parametrize("kind", SENDING)
def test_behind_a_closed_gate_nothing_is_sent(world, kind):
    paid = world.paid("MANUAL" if kind == "CAPTURE" else "AUTOMATIC")
    job = world.gate(world.action(kind, paid, 1500), closed_at="now()")
    world.put(job)
    assert world.wait_event(job, f"{kind}_NOT_SENT")["failure_class"] == "NOT_SENT"
    assert world.calls(job) == [] and world.moved(paid, SENDING[kind]) == []


# ---- one authorization: captured once, by whomever, or voided


def test_d3_a_second_capture_is_told_from_the_first_even_with_its_sum(world):
    paid, first = begin(world, "CAPTURE", 1000)
    world.put(first)
    world.wait_event(first, "CAPTURE_SUCCEEDED")
    second = world.gate(world.action("CAPTURE", paid, 1000, no=2))
    world.put(second)
    assert world.wait_event(second, "CAPTURE_UNKNOWN", "CAPTURE_FAILED", "CAPTURE_SUCCEEDED")["type"] == "CAPTURE_UNKNOWN"
    types, events = ask(world, second, paid)
    assert types == ["CAPTURE_FAILED", "CAPTURE_SUCCEEDED"]
    assert [e["action_id"] for e in events] == [second["action_id"], first["action_id"]]
    assert world.moved(paid, "capture", "release") == [1000, 1599]


@pytest.mark.parametrize("amount, types", [(1500, ["CAPTURE_SUCCEEDED"]), (900, ["CAPTURE_FAILED", "CAPTURE_SUCCEEDED"])])
def test_a_capture_in_the_console_comes_first(world, amount, types):
    paid, job = begin(world, "CAPTURE")
    world.stack.psp.console(account=paid["psp_account"], order=paid["attempt_id"], do="capture", amount=amount)
    world.put(job)
    world.wait_event(job, "CAPTURE_UNKNOWN")
    told, events = ask(world, job, paid)
    assert told == types and (events[-1]["action_id"], events[-1]["amount_minor"]) == (None, amount)
    assert world.moved(paid, "capture") == [amount]


def test_a_void_and_what_comes_too_late_for_it(world):
    paid = world.paid("MANUAL")
    world.put(world.action("CANCEL", paid, number=1))
    world.wait_type(paid, "ATTEMPT_CANCELED")
    assert world.moved(paid, "cancel") == [2599] and world.moved(paid, "charge", "capture", "refund") == []
    assert world.stack.sql("SELECT count(*) AS n FROM psp_request WHERE kind = 'CANCEL'") == [{"n": 0}], "it needs no gate"
    world.put(world.action("CANCEL", paid, number=2))
    world.wait_type(paid, "CANCEL_REFUSED")
    job = world.gate(world.action("CAPTURE", paid, 1500))
    world.put(job)
    world.wait_event(job, "CAPTURE_UNKNOWN")
    assert ask(world, job, paid)[0] == ["CAPTURE_FAILED", "ATTEMPT_CANCELED"]
    assert world.moved(paid, "capture") == []


def test_a_captured_authorization_refuses_the_void(world):
    paid, job = begin(world, "CAPTURE")
    world.put(job)
    world.wait_event(job, "CAPTURE_SUCCEEDED")
    world.put(world.action("CANCEL", paid, number=1))
    world.wait_type(paid, "CANCEL_REFUSED")
    assert world.moved(paid, "capture", "cancel") == [1500]


def test_an_authorization_that_expired(world):
    paid, job = begin(world, "CAPTURE")
    world.stack.psp.advance(account=paid["psp_account"], order=paid["attempt_id"], to="expired")
    world.put(job)
    world.wait_event(job, "CAPTURE_UNKNOWN")
    assert ask(world, job, paid)[0] == ["CAPTURE_FAILED", "ATTEMPT_CANCELED"]


def test_the_released_rest_is_not_told_as_a_refund(world):
    paid, job = begin(world, "CAPTURE")
    world.put(job)
    world.wait_event(job, "CAPTURE_SUCCEEDED")
    world.put(world.action("QUERY", paid, number=1))
    wait_for("it is answered", lambda: [m for m in world.inputs(paid) if m["record"]["source"] == "QUERY"])
    assert "REFUND_SUM" not in world.types(paid)
    world.stack.psp.console(account=paid["psp_account"], order=paid["attempt_id"], do="refund", amount=200)
    world.put(world.action("QUERY", paid, number=2))
    world.wait_type(paid, "REFUND_SUM")
    (event,) = [m["record"]["event"] for m in world.inputs(paid) if m["record"]["event"]["type"] == "REFUND_SUM"]
    assert event["amount_minor"] == 200


# ---- killed anywhere

ENDS = {
    "after_gate_before_send": (0, UNKNOWN, NOTHING),
    "after_send_before_answer": (1, UNKNOWN, DONE),
    "after_answer_before_finish": (1, UNKNOWN, DONE),
    "after_finish_before_produce": (1, DONE, DONE),
}


@pytest.mark.parametrize("kind", SENDING)
@pytest.mark.parametrize("point", ENDS)
def test_u3_killed_anywhere_it_moves_once_and_converges(own, kind, point):
    moved, said, then = ENDS[point]
    psp = own.stack.service("psp", "dying", GROUP_INSTANCE_ID="psp-1").start()
    paid, job = begin(own, kind)
    own.done()
    assert psp.stop() == 0
    psp.env["PAYFACT_FAULT"] = point
    psp.start()
    own.put(job)
    wait_for("it died", lambda: not psp.alive())
    assert len(own.moved(paid, SENDING[kind])) == moved and not own.events(job, f"{kind}_SUCCEEDED")
    psp.env.pop("PAYFACT_FAULT")
    psp.start()
    own.wait_event(job, f"{kind}_{said}")
    assert ask(own, job, paid)[0] == [f"{kind}_{then}"]
    assert len(own.moved(paid, SENDING[kind])) == moved and own.row(job)["sends"] == 1
