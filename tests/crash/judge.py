# SPDX-License-Identifier: Apache-2.0
"""The judge of one run: the PSP's ledger, the database and what downstream got must tell the same story.

Stack.audit() compares money, facts and ids. What stands here is about crashes: order and bytes of
what was published, commands and their answers, nothing left behind, nothing that waits without a deadline, and an end
for every payment that its story allows. Each difference is one line; none is right.
"""

import judge_money
from load import ENDS, ROUTES
from payfact_stack import ACCOUNT_B

# A cancel and a payment at the same moment may need a person, and an authorization that is told again after its void does.
CASES_OF = {"page_race": None, "void": {"LATE_AUTHORIZATION"}, "capture_or_void": {"LATE_AUTHORIZATION"}}  # None: any
UNFINISHED = ("CREATED", "SUBMITTED", "PROCESSING", "UNKNOWN")

# What proves of a FAILED payment that nothing was charged. Of a page that nobody was handed: it was canceled at the PSP.
PROOFS = {"page_paid": {"NSN", "NFD", "NO_ACTION"}}


def differences(stack, load):
    return [line for check in CHECKS for line in check(stack, load)]


def money_facts_ids(stack, load):
    yield from stack.audit()


def order_and_bytes(stack, load):
    """First seen in the order of their numbers; repeated only byte by byte."""
    last, values = {}, {}
    for message in stack.records("events"):
        record = message["record"]
        if record is None:
            yield f"events {message['partition']}:{message['offset']}: no PaymentEvent"
            continue
        if not record["sequence"]:
            continue
        payment, place = record["payment_id"], (record["payment_id"], record["sequence"])
        if place in values:
            if values[place] != message["value"]:
                yield f"{place}: published again with other bytes"
            continue
        values[place] = message["value"]
        if record["sequence"] < last.get(payment, 0):
            yield f"{place}: overtaken by {last[payment]}"
        last[payment] = max(last.get(payment, 0), record["sequence"])


def commands_answered(stack, load):
    """Each command has one answer, however often it was sent or published."""
    answers = {}
    for event in stack.consume_events():
        if event["command"]:
            answers.setdefault(event["command"]["command_id"], set()).add((event["event_id"], event["type"]))
    for command, (payment, kind) in load.commands.items():
        found = answers.pop(command, set())
        if len(found) != 1:
            yield f"{payment}: {kind} {command} has {len(found)} answers: {sorted(found)}"
    for command in answers:
        yield f"an answer to {command}, which nobody sent"


def nothing_left(stack, load):
    left = {
        "outbox rows": "SELECT id AS what FROM payment_outbox",
        "orphans or dead inputs": "SELECT transport_key || ' ' || status AS what FROM channel_event WHERE status <> 'DECIDED'",
        "orphans' deadlines": "SELECT aggregate_id AS what FROM payment_deadline WHERE kind = 'ORPHAN'",
        "reservations": "SELECT attempt_id AS what FROM payment_amount WHERE capture_reserved_minor + refund_reserved_minor > 0",
    }
    for name, query in left.items():
        rows = stack.sql(query)
        if rows:
            yield f"{len(rows)} {name} left: {[str(r['what']) for r in rows[:5]]}"
    dead = stack.records("dlq")
    if dead:
        yield f"{len(dead)} dead letters: {[(m['record'] or {}).get('reason_code') for m in dead[:5]]}"
    given_up = [c["event_id"] for c in stack.psp.callbacks() if c["state"] not in ("delivered", "no_url")]
    if given_up:
        yield f"{len(given_up)} callbacks were never taken: {given_up[:5]}"


def everything_waits_for_something(stack, load):
    """No live attempt and no order that is not final without a deadline."""
    for row in stack.sql(
        "SELECT attempt_id, status FROM payment_attempt a WHERE live AND status NOT IN ('SUCCEEDED') AND NOT EXISTS "
        "(SELECT FROM payment_deadline d WHERE d.aggregate_id = a.attempt_id)"
    ):
        yield f"{row['attempt_id']}: {row['status']} and no deadline"
    for row in stack.sql(
        "SELECT payment_id, status FROM payment_order o WHERE status NOT IN ('SUCCEEDED', 'FAILED', 'CANCELED', 'EXPIRED') "
        "AND NOT EXISTS (SELECT FROM payment_deadline d WHERE d.payment_id = o.payment_id)"
    ):
        yield f"{row['payment_id']}: {row['status']} and no deadline"


def ends(stack, load):
    """Each payment ended as its story allows; one that was not charged has the proof that it never was."""
    orders = {r["payment_id"]: r["status"] for r in stack.sql("SELECT payment_id, status FROM payment_order")}
    proofs = {}
    for row in stack.sql(
        "SELECT payment_id, event_type FROM payment_state_history WHERE aggregate = 'ATTEMPT' AND verdict = 'APPLY' "
        "AND to_status = 'FAILED'"
    ):
        proofs.setdefault(row["payment_id"], set()).add(row["event_type"])
    for row in stack.sql("SELECT payment_id FROM payment_attempt WHERE status = 'CANCELED' AND failure_code = 'NO_ACTION'"):
        proofs.setdefault(row["payment_id"], set()).add("NO_ACTION")
    for payment in load.payments:
        status = orders.pop(payment.payment_id, None)
        if status is None:
            yield f"{payment.payment_id} ({payment.kind}): never became an order"
        elif status in ENDS.get(payment.kind, {"SUCCEEDED"}):
            continue
        elif status != "FAILED":
            yield f"{payment.payment_id} ({payment.kind}): ended as {status}"
        elif not proofs.get(payment.payment_id, set()) & PROOFS.get(payment.kind, {"NSN", "NFD"}):
            yield f"{payment.payment_id} ({payment.kind}): FAILED by {proofs.get(payment.payment_id)}, which is no proof"
    for payment in orders:
        yield f"{payment}: an order that nobody asked for"


def unknown_blocks(stack, load):
    """Scenario E: nothing was asked of B while A was unclear, nor later when A has charged."""
    charged = {t["order"] for t in stack.psp.totals() if t["charges"]}
    asked = {r["order"] for r in stack.psp.requests(account=ACCOUNT_B, operation="create")}
    for payment in load.payments:
        if payment.kind == "blocked" and payment.order in charged:
            for order in asked:
                if order and order.startswith(payment.payment_id):
                    yield f"{order}: B was asked although A has charged"
        elif payment.kind not in ROUTES and any(o and o.startswith(payment.payment_id) for o in asked):
            yield f"{payment.payment_id}: B was asked, which is not on its route"


def cases(stack, load):
    kinds = {p.payment_id: p.kind for p in load.payments}
    for row in stack.sql("SELECT payment_id, kind FROM manual_case"):
        allowed = CASES_OF.get(kinds.get(row["payment_id"]), ())
        if allowed is not None and row["kind"] not in allowed:
            yield f"{row['payment_id']} ({kinds.get(row['payment_id'])}): a case {row['kind']}"


CHECKS = (money_facts_ids, *judge_money.CHECKS, order_and_bytes, commands_answered, nothing_left, everything_waits_for_something,
          ends, unknown_blocks, cases)  # fmt: skip
