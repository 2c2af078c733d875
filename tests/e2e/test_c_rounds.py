# SPDX-License-Identifier: Apache-2.0
"""Scenario C in many rounds: captures and refunds by three producers at once, two processors, and a PSP that times out,
refuses, takes back and calls twice. In the end the amounts and the PSP's ledger are the same to the unit.

PAY_TEST_ROUNDS (200) says how many rounds, PAY_TEST_SEED repeats what was drawn.
"""

import collections
import concurrent.futures
import os
import random
import time

import pytest

from payfact_stack import CALLER, MERCHANT, wait_for
from records import Signer
from rounds import ENDED, KINDS, TILLS, Books, Round, Till

ROUNDS = int(os.environ.get("PAY_TEST_ROUNDS", "200"))
SEED = int(os.environ.get("PAY_TEST_SEED", random.randrange(1_000_000)))
AT_ONCE = 24
# Where the table asks for a person although the books agree in the end: what the console did did not fit beside what we
# had promised, and a callback that tells of the authorization after it was voided.
MAY_BE_CASED = {"console_beside": "OVER_REFUND", "console_captures": "AMOUNT_MISMATCH", "void_beside_capture": "LATE_AUTHORIZATION"}


def three_tills(document):
    merchant = document["merchants"][0]
    merchant["manual_capture"] = True
    merchant["refund_threshold_minor"] = {"EUR": {"per_payment": 1_000_000, "per_day": 1_000_000_000}}
    (shop,) = [p for p in document["principals"] if p["id"] == CALLER]
    for name in TILLS[1:]:
        document["principals"].append({**shop, "id": name, "keys": [{"id": f"{name}-key", "file": f"{name}-key.pub.pem"}]})


def keys_of_the_tills(stack):
    for name in TILLS[1:]:
        stack.signers[name] = Signer(stack.dir / "secrets", f"{name}-key")


# So many lost answers would open the accounts' breakers, and what is then not sent waits for its window's end.
PATIENT = {"psp": {"BREAKER_FAILURES": "1000"}}
pytestmark = [pytest.mark.stack(edit=three_tills, prepare=keys_of_the_tills, settings=PATIENT), pytest.mark.redis_irrelevant]


def play(stack, books, tills):
    """All rounds, AT_ONCE beside each other; returns them and what went wrong in each."""
    names = [name for _, name in zip(range(ROUNDS), list(KINDS) * (ROUNDS // len(KINDS) + 1))]
    random.Random(SEED).shuffle(names)
    rounds = [Round(stack, books, tills, name, f"{SEED}/{n}") for n, name in enumerate(names)]
    problems = []
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        running = {pool.submit(one.run): one for one in rounds}
        for done in concurrent.futures.as_completed(running):
            if done.exception():
                problems.append(f"{running[done].kind} {running[done].payment}: {done.exception()!r}")
    return rounds, problems


def actions(stack):
    """Captures and refunds by number."""
    rows = stack.sql("SELECT capture_id AS id, amount_minor, status, origin, provider_reference FROM capture_order UNION ALL "
                     "SELECT refund_id, amount_minor, status, origin, provider_reference FROM refund_order")  # fmt: skip
    return {row["id"]: row for row in rows}


def wait_all_ended(stack):
    def ended():
        stack.psp.release()
        return all(row["status"] in ENDED for row in actions(stack).values())

    try:
        wait_for("every capture and refund has ended", ended, 90, pause_s=0.3)
    except AssertionError as error:
        left = [(name, row["status"]) for name, row in actions(stack).items() if row["status"] not in ENDED]
        raise AssertionError(f"{error}: {left}") from None


def wrong_amounts(stack, rounds):
    """Each round's own expectation; the audit has compared database and ledger already."""
    rows = {r["attempt_id"]: r for r in stack.sql("SELECT * FROM payment_amount")}
    for one in rounds:
        row = rows[one.order]
        if row["captured_minor"] != one.captured or one.refunded not in (None, row["refunded_minor"]):
            yield (f"{one.kind} {one.payment}: captured {row['captured_minor']}, refunded {row['refunded_minor']}; must be "
                   f"{one.captured}, {one.refunded}")  # fmt: skip


def wrong_objects(stack):
    """Refund by refund: what the PSP paid back under its name is what the refund of that name says. What only a sum has
    shown has no name: those together are what the PSP calls by names that we do not have."""
    rows = [row for name, row in actions(stack).items() if name[26] == "R"]
    ours = {row["provider_reference"]: row for row in rows if row["provider_reference"]}
    unnamed = collections.Counter()
    for row in rows:
        if not row["provider_reference"] and row["status"] == "SUCCEEDED":
            unnamed[row["id"][:26]] += row["amount_minor"]
    for total in stack.psp.objects():
        if total["refunds"]:
            row = ours.pop(total["object"], None)
            mine = row["amount_minor"] if row and row["status"] == "SUCCEEDED" else 0
            if row is None:
                unnamed[total["order"][:26]] -= total["refunded_minor"]
            elif total["refunded_minor"] != mine:
                yield f"{total['object']} of {total['order']}: {total['refunded_minor']} at the PSP, {mine} in the database"
    for reference, row in ours.items():
        if row["status"] == "SUCCEEDED":
            yield f"{row['id']}: {reference} is not at the PSP"
    for payment, difference in unnamed.items():
        if difference:
            yield f"{payment}: refunds without a name are {difference} more than those that only the PSP names"


def executed_twice(stack):
    """Each capture and each refund was executed once at most, under whatever name the call came."""
    for operation in ("refund", "capture"):
        calls = [r for r in stack.psp.requests(operation=operation) if r["executed"] and r["status"] == 200]
        seen = collections.Counter(r["idempotency_key"] for r in calls)
        for key, count in seen.items():
            if count > 1:
                yield f"{operation} {key} was executed {count} times"


def wrong_answers(books, rounds):
    for one in rounds:
        for record in one.sent:
            found = books.answers.get(record["command_id"], {})
            if len(found) != 1:
                yield f"{one.kind} {one.payment}: {record['type']} has {len(found)} answers"


def wrong_cases(stack, rounds):
    kinds = {one.payment: one.kind for one in rounds}
    for row in stack.sql("SELECT payment_id, kind, evidence::text FROM manual_case"):
        kind = kinds[row["payment_id"]]
        if MAY_BE_CASED.get(kind) != row["kind"]:
            yield f"{kind} {row['payment_id']}: a case {row['kind']} {row['evidence']}"


def wrong_day(stack):
    """The merchant's sum of the day, which both processors raise: every refund of ours that was accepted, once."""
    (day,) = stack.sql("SELECT sum(amount_minor)::int8 AS sum FROM refund_day WHERE merchant_id = %s", MERCHANT)
    mine = sum(row["amount_minor"] for name, row in actions(stack).items() if name[26] == "R" and row["origin"] != "PSP")
    if day["sum"] != mine:
        yield f"refund_day has {day['sum']}, accepted were {mine}"


def left_behind(stack):
    for what, query in {
        "inputs that are not decided": "SELECT transport_key || ' ' || status AS what FROM channel_event WHERE status <> 'DECIDED'",
        "reservations": "SELECT attempt_id AS what FROM payment_amount WHERE capture_reserved_minor + refund_reserved_minor > 0",
    }.items():
        rows = stack.sql(query)
        if rows:
            yield f"{len(rows)} {what}: {rows[:5]}"
    dead = stack.records("dlq")
    if dead:
        yield f"{len(dead)} dead letters: {[(m['record'] or {}).get('reason_code') for m in dead[:5]]}"


def test_c_many_rounds(stack):
    print(f"{ROUNDS} rounds, seed {SEED}")
    second = stack.service("processor", instance="processor-2").start()
    began, books = time.monotonic(), Books(stack)
    tills = [Till(stack, name, stack.signers[name]) for name in TILLS]
    try:
        rounds, problems = play(stack, books, tills)
        played_s = time.monotonic() - began
        for till in tills:
            till.close()
            problems += till.lost
        if not problems:
            stack.psp.clear_script()
            wait_all_ended(stack)
            stack.idle()
            checks = (stack.audit(), wrong_amounts(stack, rounds), wrong_objects(stack), executed_twice(stack),
                      wrong_answers(books, rounds), wrong_cases(stack, rounds), wrong_day(stack), left_behind(stack))  # fmt: skip
            problems += [line for check in checks for line in check]
    finally:
        books.close()
    said = collections.Counter(reason for one in rounds for reason in one.said)
    print(f"played in {played_s:.0f} s, judged after {time.monotonic() - began:.0f} s; answers: {dict(said)}")
    assert not problems, f"seed {SEED}:\n" + "\n".join(problems[:40])
    for processor in (stack.service("processor"), second):
        assert processor.metric("payfact_inputs_total") > 0, f"{processor.name} has decided nothing"
