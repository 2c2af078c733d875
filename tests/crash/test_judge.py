# SPDX-License-Identifier: Apache-2.0
"""The judge finds what it is there for: on a real, sound run it is silent, and each sabotage of that run is one that it
names. Run by scripts/test --label=crash, on servers of its own."""

import copy

import pytest

import judge
import money
import schedule as schedules
from load import Load
from payfact_stack import ACCOUNT_A, ACCOUNT_B, Servers, Stack, wait_for
from run import accounts_of
from schedule import Payment, Schedule

KINDS = ("plain", "copies", "page_open", "declined", "capture_refunded", "refund_fails_later", "refunds_at_once", "refund_of_two_people")
LARGE = 4000  # its whole refund is beyond the threshold
STATUSES = ("SUCCEEDED", "SUCCEEDED", "REQUIRES_ACTION", "FAILED", *["SUCCEEDED"] * 4)


def small_threshold(document, schedule):
    accounts_of(schedule)(document)
    document["merchants"][0]["refund_threshold_minor"]["EUR"]["per_payment"] = LARGE // 2


@pytest.fixture(scope="module")
def run():
    schedule = Schedule(seed=0, cluster=False, replicas=1, redis="none", static=False, clocks=False, early="", span_ms=1000, send_window_s=30,
                        publisher_lease_ms=2000, search_lag_ms=0, faults=(),
                        payments=tuple(Payment(i * 10, kind, LARGE if kind == "refund_of_two_people" else 1000 + i, False, "approved") for i, kind in enumerate(KINDS)))  # fmt: skip
    with Servers() as servers, Stack(servers, redis=False, edit=lambda document: small_threshold(document, schedule)) as stack:
        stack.start()
        load = Load(stack, schedule)
        load.prepare()
        load.start()
        for payment, status in zip(load.payments, STATUSES):
            wait_for(f"{payment.kind} is {status}", lambda p=payment, s=status: stack.order_status(p.payment_id) == s)
        wait_for("what is captured and given back has its end", lambda: load.merchant.unfinished() == [], 60)
        load.stop()
        stack.idle()
        stack.stop("processor", "publisher", "recovery", "psp")
        yield stack, load


def test_a_sound_run_has_no_difference(run):
    assert judge.differences(*run) == []


def test_every_kind_of_the_schedule_has_a_plan():
    assert set(schedules.MONEY) == set(money.PLANS)


SABOTAGE = (  # by what, with {plain}, {page_open} ... as attempt ids; what the judge must say
    ("UPDATE payment_amount SET authorized_minor = 1, captured_minor = 1 WHERE attempt_id = '{plain}'", "charged_minor is"),
    ("DELETE FROM payment_deadline WHERE aggregate_id = '{page_open}'", "REQUIRES_ACTION and no deadline"),
    ("INSERT INTO payment_outbox (shard, topic, key, payload, created_at) VALUES (0, 'events', 'X', '', now())", "outbox rows left"),
    ("UPDATE psp_request SET sends = 0, sending_at = NULL, sent_by = NULL, last_send_at = NULL, finished_at = NULL, outcome = NULL, "
     "outcome_key_id = NULL WHERE action_id = '{plain}'", "the gate was passed 0 times"),
    ("UPDATE payment_order SET status = 'FAILED' WHERE payment_id = left('{plain}', 26)", "which is no proof"),
    ("UPDATE payment_order SET event_sequence = event_sequence + 1 WHERE payment_id = left('{plain}', 26)", "the order is at"),
    ("UPDATE channel_event SET status = 'ORPHAN' WHERE payment_id = left('{plain}', 26)", "orphans or dead inputs left"),
    ("INSERT INTO manual_case (case_id, payment_id, kind, aggregate_id, case_no, status, evidence, opened_by, opened_at) VALUES "
     "('c', left('{plain}', 26), 'DUPLICATE_CHARGE', '{plain}', 1, 'OPEN', '[]', 'x', now())", "a case DUPLICATE_CHARGE"),
    ("UPDATE payment_amount SET refund_reserved_minor = 1 WHERE attempt_id = '{refunds_at_once}'", "reserved_minor is still 1"),
    ("UPDATE refund_order SET amount_minor = amount_minor - 1 WHERE attempt_id = '{refunds_at_once}'", "SUCCEEDED 703, at the PSP"),
    ("UPDATE refund_order SET status = 'FAILED' WHERE attempt_id = '{refunds_at_once}'", "is none of ours"),
    ("UPDATE refund_order SET status = 'SUCCEEDED' WHERE refund_id = left('{refund_fails_later}', 26) || 'R01'", "refunded 0"),
    ("UPDATE refund_order SET status = 'PROCESSING' WHERE attempt_id = '{refunds_at_once}'", "still PROCESSING"),
    ("UPDATE capture_order SET amount_minor = 1 WHERE attempt_id = '{capture_refunded}'", "captures of 1 succeeded, the PSP captured 602"),
    ("UPDATE refund_order SET amount_minor = 1 WHERE attempt_id = '{refunds_at_once}'", "was refused beside 1 of 1006"),
    ("UPDATE psp_request SET sends = 0, sending_at = NULL, sent_by = NULL, last_send_at = NULL, finished_at = NULL, outcome = NULL, "
     "outcome_key_id = NULL WHERE action_id = left('{refunds_at_once}', 26) || 'R01'", "1 refund calls at the PSP, the gate was passed 0 times"),
    ("INSERT INTO payment_deadline (aggregate_id, kind, payment_id, due_at) VALUES "
     "(left('{refunds_at_once}', 26) || 'R01', 'QUERY', left('{refunds_at_once}', 26), now() + interval '1 day')", "is over and still has"),
)  # fmt: skip


@pytest.mark.parametrize("statement, said", SABOTAGE)
def test_a_changed_database_is_seen(run, statement, said):
    stack, load = run
    orders = {p.kind: p.order for p in load.payments}
    table = statement.split()[1 if statement.startswith("UPDATE") else 2]
    stack.sql(f"CREATE TABLE kept AS SELECT * FROM {table}")
    try:
        stack.sql(statement.format(**orders))
        assert any(said in line for line in judge.differences(stack, load)), judge.differences(stack, load)
    finally:
        stack.sql(f"TRUNCATE {table} CASCADE" if table in ("payment_deadline", "payment_outbox", "manual_case") else "SELECT 1")
        if table in ("payment_deadline", "payment_outbox", "manual_case"):
            stack.sql(f"INSERT INTO {table} SELECT * FROM kept")
        else:
            _restore(stack, table)
        stack.sql("DROP TABLE kept")
    assert judge.differences(stack, load) == []


def _restore(stack, table):
    """Every column back as it was."""
    key = {"payment_amount": "attempt_id", "psp_request": "job_id", "payment_order": "payment_id", "channel_event": "id",
           "refund_order": "refund_id", "capture_order": "capture_id"}[table]
    columns = [r["name"] for r in stack.sql(
        "SELECT attname AS name FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped", table
    )]  # fmt: skip
    sets = ", ".join(f"{c} = kept.{c}" for c in columns if c != key and c != "received_month")
    stack.sql(f"UPDATE {table} SET {sets} FROM kept WHERE {table}.{key} = kept.{key}")


def test_a_second_charge_is_seen(run):
    stack, load = run
    told = stack.psp.totals()
    forged = [{**t, "charges": 2} if t["order"] == load.payments[0].order else t for t in told]
    stack.psp.totals = lambda *a, **k: forged
    try:
        assert any("charged 2 times" in line for line in judge.differences(stack, load))
    finally:
        del stack.psp.totals


def test_a_refund_that_is_paid_twice_is_seen(run):
    stack, load = run
    told = stack.psp.objects()
    again = {**next(o for o in told if o["refunds"] and o["refunded_minor"]), "object": "re_again"}
    stack.psp.objects = lambda *a, **k: [*told, again]
    try:
        assert any("re_again" in line and "none of ours" in line for line in judge.differences(stack, load))
    finally:
        del stack.psp.objects


def test_what_must_hold_at_every_moment_is_seen(run):
    stack, load = run
    number = next(p for p in load.payments if p.kind == "refunds_at_once").payment_id + "R01"
    for sabotage, said in (("UPDATE refund_order SET status = 'UNKNOWN', unknown_since = now()", "without the deadline QUERY"),
                           ("UPDATE refund_order SET status = 'PROCESSING'", "reserved 0 and 0")):  # fmt: skip
        load.merchant.problems.clear()
        stack.sql(f"{sabotage} WHERE refund_id = %s", number)
        load.merchant.look()
        stack.sql("UPDATE refund_order SET status = 'SUCCEEDED', unknown_since = NULL WHERE refund_id = %s", number)
        assert any(said in problem for problem in load.merchant.problems), load.merchant.problems
    load.merchant.problems.clear()
    load.merchant.look()
    assert load.merchant.problems == []


def test_a_charge_at_b_is_seen(run):
    stack, load = run
    calls = stack.psp.requests()
    stray = {**next(c for c in calls if c["operation"] == "create"), "order": load.payments[0].payment_id + "A02"}
    asked = stack.psp.requests
    stack.psp.requests = lambda account=None, **k: [stray] if account == ACCOUNT_B else asked(account=account, **k)
    try:
        assert any("B was asked" in line for line in judge.differences(stack, load))
    finally:
        del stack.psp.requests
    assert asked(account=ACCOUNT_A)


def _with_messages(run, change):
    """The judge's lines when downstream had got other messages than it did."""
    stack, load = run
    real = stack.records
    messages = copy.deepcopy(real("events"))
    change(messages)
    stack.records = lambda topic: messages if topic == "events" else real(topic)
    try:
        return judge.differences(stack, load)
    finally:
        del stack.records


def _numbered(messages):
    payment = next(m["record"]["payment_id"] for m in messages if m["record"]["sequence"] == 3)
    return [i for i, m in enumerate(messages) if m["record"]["payment_id"] == payment]


def test_lost_repeated_and_reordered_events_are_seen(run):
    def lose(messages):
        del messages[_numbered(messages)[1]]

    def swap(messages):
        first, second = _numbered(messages)[:2]
        messages[first], messages[second] = messages[second], messages[first]

    def repeat_the_same(messages):
        messages.append(messages[_numbered(messages)[0]])

    def repeat_with_other_bytes(messages):
        again = copy.deepcopy(messages[_numbered(messages)[0]])
        again["value"] += b"x"
        messages.append(again)

    def repeat_under_another_id(messages):
        again = copy.deepcopy(messages[_numbered(messages)[0]])
        again["record"]["event_id"] += "x"
        messages.append(again)

    assert any("published [" in line for line in _with_messages(run, lose))
    assert any("overtaken by" in line for line in _with_messages(run, swap))
    assert _with_messages(run, repeat_the_same) == []
    assert any("other bytes" in line for line in _with_messages(run, repeat_with_other_bytes))
    assert any("published as" in line for line in _with_messages(run, repeat_under_another_id))


def test_an_unanswered_command_is_seen(run):
    stack, load = run
    load.commands["never-answered"] = (load.payments[0].payment_id, "CANCEL_PAYMENT")
    try:
        assert any("has 0 answers" in line for line in judge.differences(stack, load))
    finally:
        del load.commands["never-answered"]
