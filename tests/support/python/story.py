# SPDX-License-Identifier: Apache-2.0
"""What the scenarios share: reading a payment's history, and callbacks as the PSP would have signed them earlier."""

import json
import secrets
import time
import urllib.parse
import urllib.request

from payfact_stack import wait_for


def attempt(payment_id, number=1):
    return f"{payment_id}A{number:02d}"


def history(stack, payment_id, **wanted):
    """Rows of the payment's history in the order of their decisions, filtered by columns."""
    rows = stack.sql("SELECT * FROM payment_state_history WHERE payment_id = %s ORDER BY decided_at, id", payment_id)
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def verdicts(stack, payment_id, event_type):
    """The verdicts on one type of event (SUC, PRC, ...) about attempts."""
    return [row["verdict"] for row in history(stack, payment_id, event_type=event_type, aggregate="ATTEMPT")]


def wait_verdict(stack, payment_id, event_type, verdict, count=1, limit_s=30, **wanted):
    """Rows of the history with this verdict on this type of event, once there are `count`."""

    def found():
        rows = history(stack, payment_id, event_type=event_type, verdict=verdict, aggregate="ATTEMPT", **wanted)
        return rows if len(rows) >= count else None

    return wait_for(f"{count} x {verdict} on {event_type} of {payment_id}", found, limit_s)


def published(stack, payment_id):
    """Types of the payment's facts in the order of their numbers, each number once."""
    events = {e["sequence"]: e["type"] for e in stack.consume_events(payment_id) if e["sequence"]}
    return [events[number] for number in sorted(events)]


def created(stack, order):
    """The PSP's requests that asked for this order's charge, replays included."""
    return stack.psp.requests(order=order, operation="create")


def charges(stack, order):
    return [e for e in stack.ledger(order=order) if e["kind"] in ("charge", "capture")]


def account_of(stack, name):
    return next(a for a in stack.psp_accounts if a["id"] == name)


def intent_of(stack, account, order):
    """The PSP's own object, by its API, as a merchant's tool would fetch it."""
    rows = stack.psp.requests(account=account, order=order, operation="create")
    assert rows, f"no charge was asked for {order}"
    query = urllib.parse.urlencode({"query": f"metadata['order_id']:'{order}'"})
    request = urllib.request.Request(f"{stack.psp.url}/v1/payment_intents/search?{query}")
    request.add_header("Authorization", "Bearer " + account_of(stack, account)["secret_key"])
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)["data"][0]


def earlier_event(stack, account, order, kind, status):
    """The callback that was true when the object had this status, and comes only now."""
    shown = {**intent_of(stack, account, order), "status": status}
    if status != "succeeded":
        shown["amount_received"] = 0
    return {
        "id": "evt_3" + secrets.token_hex(12),
        "object": "event",
        "api_version": "2024-06-20",
        "created": int(time.time()) - 5,
        "data": {"object": shown},
        "livemode": False,
        "pending_webhooks": 1,
        "request": {"id": None, "idempotency_key": order},
        "type": kind,
    }


def answers(sent):
    """HTTP status of each copy that Simulator.callback() sent; None: no answer."""
    return [d["tries"][0]["status"] if d["tries"] else None for d in sent["deliveries"]]


def answer_to(stack, payment_id, record):
    """The event that answers a command, once it is published."""

    def given():
        events = stack.consume_events(payment_id)
        return [e for e in events if (e["command"] or {}).get("command_id") == record["command_id"]]

    return wait_for(f"the answer to {record['type']} {record['command_id']}", given)[0]


def hold_callbacks(stack, order):
    """The PSP keeps every callback of this order until stack.psp.release()."""
    stack.psp.script({"on": "callback", "order": order, "do": "withhold"})
