# SPDX-License-Identifier: Apache-2.0
"""The judge's part about captures and refunds: each one's row, its calls at the PSP, the PSP's own object, its facts
downstream and the answer to its command say the same."""

MONEY_CALLS = ("create", "capture", "refund")
FINAL = ("SUCCEEDED", "FAILED", "CANCELED", "REVERSED")
ACTIONS = (
    "SELECT capture_id AS id, attempt_id, payment_id, amount_minor, status, origin, provider_reference, 'Capture' AS what "
    "FROM capture_order UNION ALL "
    "SELECT refund_id, attempt_id, payment_id, amount_minor, status, origin, provider_reference, 'Refund' FROM refund_order ORDER BY id"
)


def calls_and_gates(stack, load):
    """The PSP got no more money calls than passed the gate, each with the same key and bytes, and the key is our number."""
    sends = {r["action_id"]: r["sends"] for r in stack.sql(
        "SELECT action_id, sum(sends) AS sends FROM psp_request WHERE job_id ~ '[.](SUBMIT|CAPTURE|REFUND)([.]|$)' GROUP BY 1"
    )}  # fmt: skip
    seen = {}
    for operation in MONEY_CALLS:
        for call in stack.psp.requests(operation=operation):
            seen.setdefault((operation, call["idempotency_key"]), []).append(call)
            number = {"create": "order_id", "capture": "capture_ref", "refund": "refund_ref"}[operation]
            if call["params"].get("metadata", {}).get(number) != call["idempotency_key"]:
                yield f"{call['order']}: a {operation} call under the key {call['idempotency_key']}"
    for (operation, number), calls in seen.items():
        allowed = sends.get(number, 0)
        if len(calls) > allowed:
            yield f"{number}: {len(calls)} {operation} calls at the PSP, the gate was passed {allowed} times"
        if len({c["body_sha256"] for c in calls}) > 1:
            yield f"{number}: the {operation} calls differ from each other"


def actions_and_ledger(stack, load):
    """Every refund that the PSP made is one row, and every row that says so is one refund of that amount; a capture likewise."""
    refunds = {o["object"]: o for o in stack.psp.objects() if o["refunds"]}
    captured = {o["order"]: o for o in stack.psp.objects() if o["charges"]}
    by_attempt, told = {}, {}
    for row in stack.sql(ACTIONS):
        if row["status"] not in FINAL:
            yield f"{row['id']}: still {row['status']}"
        elif row["what"] == "Capture":
            by_attempt.setdefault(row["attempt_id"], []).append(row)
        elif row["status"] in ("SUCCEEDED", "REVERSED"):
            if row["provider_reference"] in told:
                yield f"{row['id']}: the PSP's {row['provider_reference']} is {told[row['provider_reference']]} too"
            told[row["provider_reference"]] = row["id"]
            there = refunds.pop(row["provider_reference"], None)
            held = there and there["refunded_minor"]
            if held != (row["amount_minor"] if row["status"] == "SUCCEEDED" else 0):
                yield f"{row['id']}: {row['status']} {row['amount_minor']}, at the PSP {row['provider_reference']} refunded {held}"
    for reference, there in refunds.items():
        yield f"{there['order']}: the PSP's refund {reference} of {there['refunded_minor']} is none of ours"
    for attempt, rows in by_attempt.items():
        ours = sum(r["amount_minor"] for r in rows if r["status"] == "SUCCEEDED")
        theirs = captured.get(attempt, {"charged_minor": 0})["charged_minor"]
        if ours != theirs:
            yield f"{attempt}: captures of {ours} succeeded, the PSP captured {theirs}"


FACTS_OF = {  # status of a row -> how often its facts Succeeded, Failed, Reversed may have been published
    "SUCCEEDED": ((1,), (0, 1), (0,)),  # it may have failed by a not-found and be taken back by what the PSP says
    "FAILED": ((0,), (1,), (0,)),
    "CANCELED": ((0,), (1,), (0,)),
    "REVERSED": ((0, 1), (0, 1), (1,)),
}


def actions_and_facts(stack, load):
    """What downstream was told of each capture and refund, once each, and the totals that it was told last."""
    facts, totals = {}, {}
    for event in stack.consume_events():
        if event["sequence"]:
            facts.setdefault(event["aggregate_id"], set()).add((event["type"], event["event_id"]))
            last = totals.get(event["payment_id"])
            if event["totals"] and (last is None or last["sequence"] < event["sequence"]):
                totals[event["payment_id"]] = event
    for row in stack.sql(ACTIONS):
        told = [kind for kind, _ in facts.get(row["id"], ())]
        counts = [told.count(row["what"] + how) for how in ("Succeeded", "Failed", "Reversed")]
        if not all(n in allowed for n, allowed in zip(counts, FACTS_OF.get(row["status"], ()))):
            yield f"{row['id']}: {row['status']}, published {sorted(told)}"
    for row in stack.sql("SELECT * FROM payment_total"):
        told = totals.get(row["payment_id"])
        for name in ("captured_minor", "refunded_minor", "refund_reserved_minor", "capture_reserved_minor"):
            if told and told["totals"][name] != row[name]:
                yield f"{row['payment_id']}: told {name} {told['totals'][name]}, it is {row[name]}"


REFUSED = {  # what a money command of the load may be refused for
    "REQUEST_REFUND": {"EXCEEDS_REFUNDABLE", "IDEMPOTENCY_CONFLICT"},
    "CAPTURE": {"INTENT", "ATTEMPT_WITHDRAWN", "NOT_AUTHORIZED", "ORDER_FINAL", "CAPTURE_WAS_FINAL"},
    "APPROVE": {"ALREADY_COUNTED", "REQUEST_CLOSED"},
}


def actions_and_answers(stack, load):
    """Each row that is ours was made by one command that was accepted; who was refused was refused for a reason that holds."""
    made, refused = {}, []
    for event in {e["event_id"]: e for e in stack.consume_events() if e["command"]}.values():
        kind = event["command"]["command_type"]
        if kind not in REFUSED:
            continue
        if event["type"] == "CommandRejected":
            refused.append(event)
            if event["reason_code"] not in REFUSED[kind]:
                yield f"{event['payment_id']}: {kind} refused with {event['reason_code']}"
        elif kind != "APPROVE" and event["reason_code"] != "ALREADY_ACCEPTED":
            made.setdefault(event["payment_id"], []).append((kind, event["reason_code"]))
    rows = {}
    for row in stack.sql(ACTIONS):
        if row["origin"] != "PSP":
            rows.setdefault(row["payment_id"], []).append(row)
    for payment in set(made) | set(rows):
        accepted, ours = made.get(payment, []), rows.get(payment, [])
        if len(accepted) != len(ours):
            yield f"{payment}: {len(accepted)} commands were accepted ({accepted}), {len(ours)} actions are ours"
    yield from _refusals_for_nothing(stack, load, refused)


def _refusals_for_nothing(stack, load, refused):
    """Nothing was refused that fitted: what was given back, or was in the way at that time, and the wish are more than there is."""
    asked = {r["command_id"]: r for r in load.records}
    there = {r["payment_id"]: r for r in stack.sql(
        "SELECT payment_id, sum(captured_minor)::bigint AS captured, (SELECT coalesce(sum(amount_minor), 0)::bigint FROM refund_order r "
        "WHERE r.payment_id = a.payment_id) AS wished FROM payment_amount a GROUP BY 1"
    )}  # fmt: skip
    for event in refused:
        if event["reason_code"] == "EXCEEDS_REFUNDABLE":
            wish = asked[event["command"]["command_id"]]["request_refund"]["amount_minor"]
            row = there[event["payment_id"]]
            if row["wished"] + wish <= row["captured"]:
                yield f"{event['payment_id']}: a refund of {wish} was refused beside {row['wished']} of {row['captured']}"


def no_deadline_of_what_is_over(stack, load):
    for row in stack.sql(
        f"SELECT d.aggregate_id, d.kind FROM payment_deadline d JOIN ({ACTIONS}) x ON x.id = d.aggregate_id "
        "WHERE x.status IN ('SUCCEEDED', 'FAILED', 'CANCELED', 'REVERSED')"
    ):
        yield f"{row['aggregate_id']}: it is over and still has the deadline {row['kind']}"
    for row in stack.sql("SELECT request_id FROM approval_request WHERE status = 'PENDING'"):
        yield f"{row['request_id']}: still waits for approval"


CHECKS = (calls_and_gates, actions_and_ledger, actions_and_facts, actions_and_answers, no_deadline_of_what_is_over)
