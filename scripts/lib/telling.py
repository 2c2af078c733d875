# SPDX-License-Identifier: Apache-2.0
"""How the demo is told: numbered parts, plain lines, and after each part the three books side by side."""

import sys
import time


class Stopped(BaseException):
    """Ctrl-C or SIGTERM. Not an Exception, so that nothing on the way takes it for a failure."""

    by = None  # the signal, once there was one
    told = False

    @classmethod
    def again(cls):
        """Python drops what is raised in a destructor or a callback, and the signal may have come just there."""
        if cls.by and not cls.told:
            raise cls(cls.by)


class Teller:
    """Numbered parts, plain lines; colours only for a terminal."""

    def __init__(self):
        self.colour = sys.stdout.isatty()
        self.started = time.monotonic()
        self.part = 0

    def _paint(self, code, text):
        return f"\033[{code}m{text}\033[0m" if self.colour else text

    def line(self, text="", code=None):
        Stopped.again()
        print(self._paint(code, text) if code else text, flush=True)

    def title(self, text):
        self.part += 1
        self.line()
        self.line(f"({self.part}) {text}", "1;36")

    def step(self, text):
        self.line(f"  [{time.monotonic() - self.started:5.1f}s] {text}")

    def quote(self, text):
        for row in text.rstrip().splitlines():
            self.line(f"      | {row}", "2")

    def good(self, text):
        self.line(f"  ok: {text}", "32")

    def bad(self, text):
        self.line(f"  DIFFERENCE: {text}", "1;31")


class Wrong(Exception):
    """The story did not go as it must."""


def must(holds, what):
    if not holds:
        raise Wrong(what)


def euros(minor):
    return f"{minor // 100}.{minor % 100:02d} EUR"


def compare(teller, stack, payment):
    """After each part: `payfactctl explain`, then PSP, database and downstream beside each other."""
    stack.idle()
    teller.step(f"payfactctl explain {payment}")
    teller.quote(stack.ctl("explain_text", payment_id=payment))
    (order,) = stack.sql("SELECT status, event_sequence FROM payment_order WHERE payment_id = %s", payment)
    (booked,) = stack.sql("SELECT coalesce(sum(captured_minor), 0) AS taken, coalesce(sum(refunded_minor), 0) AS back "
                          "FROM payment_amount WHERE payment_id = %s", payment)  # fmt: skip
    moved = [e for e in stack.ledger() if (e["order"] or "").startswith(payment)]
    taken = [e["amount_minor"] for e in moved if e["kind"] in ("charge", "capture")]
    back = sum(e["amount_minor"] for e in moved if e["kind"] == "refund")
    events = stack.consume_events(payment)
    successes = {e["event_id"] for e in events if e["type"] == "PaymentSucceeded"}
    teller.step("the three books, side by side:")
    teller.quote(
        f"PSPs' own ledgers    {len(taken)} charge(s), {euros(sum(taken))} taken, {euros(back)} paid back\n"
        f"payfact's database   order {order['status']}, {euros(int(booked['taken']))} captured, {euros(int(booked['back']))} refunded\n"
        f"a consumer of events {len({e['sequence'] for e in events if e['sequence']})} of {order['event_sequence']} facts, "
        f"{len(successes)} x PaymentSucceeded"
    )
    differences = stack.audit()
    for difference in differences:
        teller.bad(difference)
    must(not differences, f"{len(differences)} difference(s) between the PSP, the database and downstream")
    teller.good("no difference: same money, every fact once, no number missing")
