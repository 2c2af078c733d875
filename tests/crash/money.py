# SPDX-License-Identifier: Apache-2.0
"""What becomes of the payments of the load that are captured, given back or voided: each kind is a plan, told step by step;
between two steps stands what the database must say before the next one.

Also what must hold at every moment, whatever died just before: the reservations are the actions that are open, and each of
those waits for something.
"""

import psycopg2

from payfact_stack import ACCOUNT_A, OPERATORS

ENDED = ("SUCCEEDED", "FAILED", "CANCELED", "EXPIRED")
OPEN = ("CREATED", "PROCESSING", "UNKNOWN")
CAPTURES_MAX = 9  # an authorization's capture that comes to nothing is asked for again, but not for ever

FACTS = (
    "SELECT payment_id, 'ORDER' AS what, payment_id AS id, status, 0 AS amount, '' AS origin, ''::bytea AS sha256 FROM payment_order "
    "UNION ALL SELECT payment_id, 'CAPTURE', capture_id, status, amount_minor, origin, '' FROM capture_order "
    "UNION ALL SELECT payment_id, 'REFUND', refund_id, status, amount_minor, origin, '' FROM refund_order "
    "UNION ALL SELECT payment_id, 'REQUEST', request_id, status, 0, '', sha256 FROM approval_request "
    "UNION ALL SELECT payment_id, 'COMMAND', command_id, status, 0, '', '' FROM command"
)

# One statement sees one moment.
AT_EVERY_MOMENT = (
    "SELECT attempt_id || ': reserved ' || capture_reserved_minor || ' and ' || refund_reserved_minor AS what FROM payment_amount a "
    "WHERE capture_reserved_minor <> (SELECT coalesce(sum(amount_minor), 0) FROM capture_order c "
    "WHERE c.attempt_id = a.attempt_id AND c.status IN {open}) "
    "OR refund_reserved_minor <> (SELECT coalesce(sum(amount_minor), 0) FROM refund_order r "
    "WHERE r.attempt_id = a.attempt_id AND r.status IN {open}) "
    "UNION ALL SELECT id || ': ' || status || ' without the deadline ' || kind FROM "
    "(SELECT capture_id AS id, status, payment_id FROM capture_order UNION ALL SELECT refund_id, status, payment_id FROM refund_order) x "
    "JOIN (VALUES ('CREATED', 'SEND'), ('CREATED', 'RESERVATION'), ('PROCESSING', 'ANSWER'), ('PROCESSING', 'RESERVATION'), "
    "('UNKNOWN', 'QUERY'), ('UNKNOWN', 'RESERVATION')) AS needs(state, kind) ON needs.state = x.status "
    "WHERE NOT EXISTS (SELECT FROM payment_deadline d WHERE d.aggregate_id = x.id AND d.kind = needs.kind) "
    "AND NOT EXISTS (SELECT FROM approval_request q WHERE q.aggregate_id = x.id AND q.status = 'PENDING') "
    "UNION ALL SELECT request_id || ': pending without a deadline' FROM approval_request q WHERE status = 'PENDING' "
    "AND NOT EXISTS (SELECT FROM payment_deadline d WHERE d.aggregate_id = q.request_id)"
).format(open=OPEN)


def lose(how):
    """Rule of the simulator: executed or not, its answer does not come."""
    if how in ("close", "reset"):
        return {"do": "take_and_die", "how": how}
    if how == "untaken":
        return {"do": "take_and_die", "charge": False, "how": "close"}
    if how.isdigit():
        return {"do": "answer_5xx_after_charge", "status": int(how)}
    return {"do": how}


def rules_of(kind, how, order):
    """What the PSP does to the captures and refunds of this payment."""
    number = order[:26] + ("C01" if kind.startswith("capture") else "R01")
    rule = {
        "capture_lost": ("capture", lose(how)),
        "refund_lost": ("refund", lose(how)),
        "refund_refused": ("refund", {"do": "fail"}),
        "refund_busy": ("refund", {"do": "refuse", "status": 429, "retry_after_s": 1}),
    }.get(kind)
    return [{"order": number, "operation": rule[0], "times": 1, **rule[1]}] if rule else []


class Facts:
    """One payment as the database shows it at one moment."""

    def __init__(self):
        self.order, self.captures, self.refunds, self.requests, self.answered = None, {}, {}, {}, set()

    def take(self, row):
        if row["what"] == "ORDER":
            self.order = row["status"]
        elif row["what"] == "COMMAND":
            self.answered.add(row["id"])
        else:
            {"CAPTURE": self.captures, "REFUND": self.refunds, "REQUEST": self.requests}[row["what"]][row["id"]] = row

    def has_open(self):
        return any(r["status"] in OPEN for rows in (self.captures, self.refunds) for r in rows.values())

    def has_ended(self):
        return self.order in ENDED

    def may_be_captured(self):
        return not self.has_open() and (self.order == "AUTHORIZED" or self.has_ended())


class Merchant:
    """look() often, from one thread."""

    def __init__(self, load):
        self.load, self.stack = load, load.stack
        self.asked = {}  # payment_id -> ids of its commands
        self.problems, self._plans = [], {}
        for payment in load.payments:
            if payment.kind in PLANS:
                plan = PLANS[payment.kind](self, payment)
                self._plans[payment] = [plan, next(plan)]

    def look(self):
        """Each plan goes on as far as what the database says lets it."""
        try:
            facts = self._facts()
            broken = self.stack.sql(AT_EVERY_MOMENT)
        except psycopg2.Error:
            return  # it is away: the next time
        self.problems += [what for row in broken if (what := f"at one moment {row['what']}") not in self.problems]
        for payment, entry in list(self._plans.items()):
            now = facts.setdefault(payment.payment_id, Facts())
            while payment in self._plans and entry[1](now):
                try:
                    entry[1] = entry[0].send(now)
                except StopIteration:
                    del self._plans[payment]

    def unfinished(self):
        """Plans that are not at their end, commands without an answer, actions that are open."""
        facts = self._facts()
        left = [f"{payment.payment_id} ({payment.kind}): its plan" for payment in list(self._plans)]
        for payment, asked in list(self.asked.items()):
            now, commands = facts.get(payment, Facts()), set(asked)
            if now.has_open() or not commands <= now.answered:
                rows = {**now.captures, **now.refunds}
                left.append(f"{payment}: {[(r['id'], r['status']) for r in rows.values()]}, unanswered {commands - now.answered}")
        return left

    def _facts(self):
        found = {}
        for row in self.stack.sql(FACTS):
            found.setdefault(row["payment_id"], Facts()).take(row)
        return found

    # ---- commands

    def _send(self, payment, kind, body, times=1, **changes):
        record = self.load.command(kind, payment.payment_id, body, **changes)
        self.asked.setdefault(payment.payment_id, set()).add(record["command_id"])
        for _ in range(times):
            self.load.produce(record)

    def _capture(self, payment, amount):
        self._send(payment, "CAPTURE", {"attempt_id": None, "amount_minor": amount, "currency": "EUR", "is_final": True,
                                        "idempotency_key": None})  # fmt: skip

    def _refund(self, payment, amount, key=None, times=1):
        self._send(payment, "REQUEST_REFUND", {"attempt_id": None, "amount_minor": amount, "currency": "EUR",
                                               "reason_code": "requested_by_customer", "idempotency_key": key}, times)  # fmt: skip

    def _cancel(self, payment):
        self._send(payment, "CANCEL_PAYMENT", {"reason_code": "CUSTOMER_LEFT"})

    def _say(self, payment, kind, request, who, **more):
        body = {"request_id": request["id"], "request_sha256": bytes(request["sha256"]), **more}
        self._send(payment, kind, body, caller=who)

    # ---- plans

    def _captured(self, payment, amount):
        """Captured, or the payment has ended otherwise: an authorization whose capture came to nothing is as it was."""
        for _ in range(CAPTURES_MAX):
            facts = yield Facts.may_be_captured
            if facts.has_ended():
                return
            self._capture(payment, amount)
            yield lambda f, n=len(facts.captures): len(f.captures) > n or f.has_ended()

    def _paid(self):
        return (yield Facts.has_ended).order == "SUCCEEDED"

    def capture_whole(self, payment):
        yield from self._captured(payment, payment.amount_minor)

    def capture_part(self, payment):
        yield from self._captured(payment, part(payment, 60))

    def capture_refunded(self, payment):
        yield from self._captured(payment, part(payment, 60))
        if (yield from self._paid()):
            self._refund(payment, part(payment, 20))
            self._refund(payment, part(payment, 60))  # more than is left: refused

    def capture_in_console(self, payment):
        facts = yield Facts.may_be_captured
        if not facts.has_ended():
            self.stack.psp.console(account=ACCOUNT_A, order=payment.order, do="capture", amount=part(payment, 50))
            yield Facts.has_ended

    def void(self, payment):
        facts = yield Facts.may_be_captured
        if not facts.has_ended():
            self._cancel(payment)
            yield Facts.has_ended

    def capture_or_void(self, payment):
        facts = yield Facts.may_be_captured
        if facts.has_ended():
            return
        both = [lambda: self._capture(payment, payment.amount_minor), lambda: self._cancel(payment)]
        for act in both if payment.how == "capture_first" else reversed(both):
            act()
        yield lambda f: self.asked[payment.payment_id] <= f.answered
        yield from self._captured(payment, payment.amount_minor)

    def refund_whole(self, payment):
        if (yield from self._paid()):
            self._refund(payment, payment.amount_minor)

    def refund_parts(self, payment):
        if (yield from self._paid()):
            self._refund(payment, part(payment, 30))
            yield lambda f: f.refunds and not f.has_open()
            self._refund(payment, payment.amount_minor - part(payment, 30))

    def refunds_at_once(self, payment):
        """Scenario C: one is reserved, the other refused."""
        if (yield from self._paid()):
            self._refund(payment, part(payment, 70))
            self._refund(payment, part(payment, 70))

    def refund_resent(self, payment):
        """The same command twice, and its number again: with the same wish, and with another."""
        if (yield from self._paid()):
            key = f"refund-of-{payment.payment_id}"
            self._refund(payment, part(payment, 40), key, times=2)
            self._refund(payment, part(payment, 40), key)
            self._refund(payment, part(payment, 50), key)

    def refund_fails_later(self, payment):
        """The customer's bank sends back what had succeeded; then it is given again."""
        if not (yield from self._paid()):
            return
        self._refund(payment, part(payment, 60))
        facts = yield lambda f: f.refunds and not f.has_open()
        (first,) = facts.refunds
        if facts.refunds[first]["status"] != "SUCCEEDED":
            return
        self.stack.psp.advance(account=ACCOUNT_A, refund=first, to="failed")
        yield lambda f: f.refunds[first]["status"] == "REVERSED"
        self._refund(payment, payment.amount_minor)

    def refund_in_console(self, payment):
        """By the merchant's people at the PSP and by its service, at the same moment."""
        if (yield from self._paid()):
            self.stack.psp.console(account=ACCOUNT_A, order=payment.order, do="refund", amount=part(payment, 40))
            self._refund(payment, part(payment, 50))
            yield lambda f: any(r["origin"] == "PSP" for r in f.refunds.values())

    def refund_of_two_people(self, payment):
        """Beyond the threshold: nothing before the second approval, and nothing at all when one declines."""
        if not (yield from self._paid()):
            return
        self._refund(payment, payment.amount_minor)
        facts = yield lambda f: f.requests
        (request,) = facts.requests.values()
        if payment.how == "declined":
            self._say(payment, "DECLINE", request, OPERATORS[0], reason_code="NOT_SHOWN")
        else:
            self._say(payment, "APPROVE", request, OPERATORS[0])
            self._say(payment, "APPROVE", request, OPERATORS[0])  # counts once
            self._say(payment, "APPROVE", request, OPERATORS[1])
        yield lambda f: f.requests[request["id"]]["status"] != "PENDING"


PLANS = {
    "capture_whole": Merchant.capture_whole,
    "capture_part": Merchant.capture_part,
    "capture_lost": Merchant.capture_part,
    "capture_refunded": Merchant.capture_refunded,
    "capture_in_console": Merchant.capture_in_console,
    "void": Merchant.void,
    "capture_or_void": Merchant.capture_or_void,
    "refund_whole": Merchant.refund_whole,
    "refund_parts": Merchant.refund_parts,
    "refunds_at_once": Merchant.refunds_at_once,
    "refund_lost": Merchant.refund_parts,
    "refund_refused": Merchant.refund_parts,
    "refund_busy": Merchant.refund_whole,
    "refund_resent": Merchant.refund_resent,
    "refund_fails_later": Merchant.refund_fails_later,
    "refund_in_console": Merchant.refund_in_console,
    "refund_of_two_people": Merchant.refund_of_two_people,
}
MANUAL = {"void", *(kind for kind in PLANS if kind.startswith("capture"))}
ENDS = {"void": {"CANCELED"}, "capture_or_void": {"CANCELED", "SUCCEEDED"}}


def part(payment, percent):
    return payment.amount_minor * percent // 100
