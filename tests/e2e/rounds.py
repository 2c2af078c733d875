# SPDX-License-Identifier: Apache-2.0
"""Rounds of scenario C: what several producers do at the same time to one payment, and what its PSP does meanwhile.

A round is one payment. Its kind is a function of KINDS: it sends commands through several tills (producers of their own,
each with a principal and a key of its own), meets the PSP's faults, checks each answer against the others, and says at
its end what must have been captured and refunded, to the unit. Many rounds run beside each other.
"""

import random
import threading
import time

import psycopg2
import psycopg2.extensions
import psycopg2.extras
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from payfact_stack import ACCOUNT_A, ACCOUNT_B, MERCHANT, new_payment_id, wait_for
from procs import SCALE
from records import SIGNED_PREFIX, Topic, Upstream, encode
from story import attempt

TILLS = ("shop", "till-2", "till-3")
REASON = "requested_by_customer"
ENDED = ("SUCCEEDED", "FAILED", "CANCELED", "REVERSED")
LIMIT_S = 90  # of one wait; nearly all of it is the PSP's time-outs and other rounds' work
ACCEPTED, ALREADY, CONFLICT = "ACCEPTED", "ALREADY_ACCEPTED", "IDEMPOTENCY_CONFLICT"
TOO_MUCH, NOTHING = "EXCEEDS_REFUNDABLE", "NOT_PAID"
STORED_500 = {"do": "answer_5xx_after_charge", "status": 500}  # replayed for ever: only another question helps
ONE_CAPTURE = {"CAPTURE_WAS_FINAL", "EXCEEDS_AUTHORIZATION"}


class Till(Upstream):
    """A producer of commands with a principal and a key of its own. Any thread; it signs without a program and waits for
    no report, so that two tills really meet."""

    def __init__(self, stack, principal, signer):
        super().__init__(stack.brokers, stack.topic_name("commands"), signer, principal)
        self._key = load_pem_private_key(signer.private.read_bytes(), None)
        self.lost = []

    def send(self, record, secret=None):
        value = encode("Command", record)
        headers = [("payfact-key-id", self.signer.key_id.encode()),
                   ("payfact-signature", self._key.sign(SIGNED_PREFIX + value))]  # fmt: skip
        headers += [("payfact-secrets", secret)] if secret else []
        self._producer.produce(self.topic, key=record["payment_id"].encode(), value=value, headers=headers,
                               on_delivery=self._delivered)  # fmt: skip
        self._producer.poll(0)

    def _delivered(self, error, message):
        if error:
            self.lost.append(str(error))

    def close(self):
        if self._producer.flush(60):
            self.lost.append("commands are still unsent")


class Books:
    """What downstream has read and what the database says, read again and again by one thread for all rounds."""

    ROWS = ("SELECT attempt_id AS id, status FROM payment_attempt UNION ALL SELECT capture_id, status FROM capture_order "
            "UNION ALL SELECT refund_id, status FROM refund_order")  # fmt: skip

    def __init__(self, stack):
        base = psycopg2.extensions.parse_dsn(stack.servers.pg_conninfo)
        base.update(dbname=stack.database, options="-c search_path=payfact")
        self._connection = psycopg2.connect(psycopg2.extensions.make_dsn(**base))
        self._connection.autocommit = True
        self._topic = Topic(stack.brokers, stack.topic_name("events"))
        self._news, self._stop, self._read = threading.Condition(), threading.Event(), 0
        self.status, self.answers, self.failure = {}, {}, None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        try:
            while not self._stop.wait(0.02):
                self._look()
        except Exception as error:
            self.failure = error
            with self._news:
                self._news.notify_all()

    def _look(self):
        messages = self._topic.read()
        with self._connection.cursor() as cursor:
            cursor.execute(self.ROWS)
            status = dict(cursor.fetchall())
        with self._news:
            for message in messages[self._read :]:
                event = message["record"]
                if event["command"]:
                    answers = self.answers.setdefault(event["command"]["command_id"], {})
                    answers[event["event_id"]] = event["reason_code"]
            self._read, self.status = len(messages), status
            self._news.notify_all()

    def wait(self, what, condition):
        deadline = time.monotonic() + LIMIT_S * SCALE
        with self._news:
            while not (value := condition()):
                left = deadline - time.monotonic()
                if self.failure or left <= 0:
                    raise AssertionError(f"not reached: {what}; {self.failure or ''}")
                self._news.wait(left)
        return value

    def answer(self, record):
        """The one reason that the command was answered with."""
        found = self.wait(f"the answer to {record['type']}", lambda: self.answers.get(record["command_id"]))
        return next(iter(found.values()))

    def close(self):
        self._stop.set()
        self._thread.join()
        self._topic.close()
        self._connection.close()


class Round:
    """One payment, and the words that the kinds are written in."""

    def __init__(self, stack, books, tills, kind, seed):
        self.stack, self.books, self.tills, self.kind = stack, books, tills, kind
        self.random = random.Random(seed)
        self.payment = new_payment_id()
        self.order = attempt(self.payment)
        self.account = self.random.choice((ACCOUNT_A, ACCOUNT_B))
        self.amount = self.random.randrange(1000, 20000)
        self.sent, self.said = [], []
        self.captured = self.refunded = 0  # what must be there at the end

    def run(self):
        self._fault_of_callbacks()
        KINDS[self.kind](self)
        if self.random.random() < 0.5:
            self._tell_again()
        self.release()

    # ---- the PSP

    def _fault_of_callbacks(self):
        """The whole round's callbacks come twice, or newest first, or as they should."""
        fault = self.random.choice((None, {"do": "duplicate", "copies": 2}, {"do": "duplicate", "copies": 3},
                                    {"do": "reorder", "count": 2}, {"do": "reorder", "count": 4}))  # fmt: skip
        self.reorders = bool(fault) and fault["do"] == "reorder"
        if fault:
            self.stack.psp.script({"id": f"calls-{self.payment}", "on": "callback", "order": self.order, **fault})

    def hold_callbacks(self):
        """Until release(): only answers and queries can tell."""
        self.reorders = False
        self.stack.psp.control("DELETE", "script", id=f"calls-{self.payment}")
        self.stack.psp.script({"id": f"calls-{self.payment}", "on": "callback", "order": self.order, "do": "withhold"})

    def release(self):
        self.stack.psp.release(order=self.order, newest_first=self.random.random() < 0.5)

    def rule(self, number, operation, **rule):
        """The PSP's next call of this capture or refund."""
        self.stack.psp.script({"order": self.payment + number, "operation": operation, "times": 1, **rule})

    def no_answer(self, *more):
        """A call that is executed and whose answer is lost, in one of the ways there are."""
        return dict(self.random.choice(({"do": "charge_then_timeout"}, {"do": "half_answer"}, {"do": "garbage"},
                                        {"do": "take_and_die", "how": "reset"},
                                        {"do": "answer_5xx_after_charge", "status": 502}, *more)))  # fmt: skip

    def advance(self, number, to):
        """The refund goes on at the PSP, which has it a little later than we have said that it is submitted."""
        refund = self.payment + number
        wait_for(f"the PSP has {refund}", lambda: any(
            r["executed"] for r in self.stack.psp.requests(order=refund, operation="refund")), LIMIT_S, pause_s=0.1)  # fmt: skip
        self.stack.psp.advance(account=self.account, refund=self.payment + number, to=to)
        if self.reorders:
            self.release()

    def console(self, do, amount):
        """The merchant's own people. @return whether the PSP did it."""
        try:
            self.stack.psp.console(account=self.account, order=self.order, do=do, amount=amount)
        except RuntimeError:
            return False
        if self.reorders:
            self.release()
        return True

    def _tell_again(self):
        """What has been told comes again, as other events about the same objects, as they are now."""
        self.stack.psp.callback(account=self.account, order=self.order, type="payment_intent.succeeded" if self.captured
                                else "payment_intent.canceled", copies=2)  # fmt: skip
        for total in self.stack.psp.objects(order=self.order):
            if total["refunds"]:
                self.stack.psp.callback(account=self.account, refund=total["object"], type="charge.refund.updated", copies=2)

    # ---- commands

    def pay(self, manual=False, **rule):
        if rule:
            self.stack.psp.script({"order": self.order, "operation": "create", "times": 1, **rule})
        route = {"psp": "stripe", "psp_account": self.account, "method": "card", "failover_on_not_found": False}
        self.random.choice(self.tills).create_payment(self.payment, MERCHANT, self.amount, "EUR", [route],
                                                      capture_mode="MANUAL" if manual else "AUTOMATIC")  # fmt: skip
        if self.reorders:
            self.release()
        self.wait("A01", "AUTHORIZED" if manual else "SUCCEEDED")
        self.captured = 0 if manual else self.amount

    def refund(self, amount, key=None):
        body = {"attempt_id": None, "amount_minor": amount, "currency": "EUR", "reason_code": REASON, "idempotency_key": key}
        return "REQUEST_REFUND", body

    def capture(self, amount, final=True, key=None):
        body = {"attempt_id": None, "amount_minor": amount, "currency": "EUR", "is_final": final, "idempotency_key": key}
        return "CAPTURE", body

    def cancel(self):
        return "CANCEL_PAYMENT", {"reason_code": "abandoned"}

    def at_once(self, *wishes):
        """Each through the next till, from a thread of its own, in the same moment; now and then one is sent twice. Their
        reasons, in the order of the wishes."""
        first = self.random.randrange(len(self.tills))
        tills = [self.tills[(first + n) % len(self.tills)] for n in range(len(wishes))]
        records = [till.command(kind, MERCHANT, self.payment, body) for till, (kind, body) in zip(tills, wishes)]
        sends = list(zip(tills, records))
        if self.random.random() < 0.3:
            sends.append(self.random.choice(sends))  # the same command, byte by byte
        gate = threading.Barrier(len(sends))

        def send(till, record):
            gate.wait(30)
            till.send(record)

        threads = [threading.Thread(target=send, args=pair, daemon=True) for pair in sends]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.sent += records
        reasons = [self.books.answer(record) for record in records]
        self.said += reasons
        return reasons

    def one(self, wish):
        return self.at_once(wish)[0]

    # ---- looking

    def wait(self, number, *statuses):
        name = self.payment + number
        return self.books.wait(f"{name} is {statuses}", lambda: self.books.status.get(name) in statuses
                               and self.books.status[name])  # fmt: skip

    def part(self, least, most):
        """So much of the amount, in percent."""
        return max(1, self.amount * self.random.randrange(least, most + 1) // 100)

    def must(self, holds, what):
        assert holds, f"{what}; answers so far: {self.said}"


# ---- refunds of what was captured at once


def two_of_70(r):
    r.pay()
    r.refunded = r.part(55, 90)
    said = r.at_once(r.refund(r.refunded), r.refund(r.refunded))
    r.must(sorted(said) == [ACCEPTED, TOO_MUCH], "not one of the two")


def many_small(r):
    r.pay()
    wishes = [r.part(10, 50) for _ in range(6)]
    said = r.at_once(*map(r.refund, wishes))
    r.must(set(said) <= {ACCEPTED, TOO_MUCH}, "another answer")
    r.refunded = sum(amount for amount, reason in zip(wishes, said) if reason == ACCEPTED)
    r.must(r.refunded <= r.amount, "more than there is was accepted")
    refused = [amount for amount, reason in zip(wishes, said) if reason == TOO_MUCH]
    r.must(all(amount > r.amount - r.refunded for amount in refused), "what still fits was refused")


def same_number(r):
    r.pay()
    small, other = r.part(20, 40), r.part(41, 60)
    said = r.at_once(r.refund(small, r.payment), r.refund(small, r.payment), r.refund(other, r.payment))
    ways = {(ACCEPTED, ALREADY, CONFLICT): small, (ALREADY, ACCEPTED, CONFLICT): small, (CONFLICT, CONFLICT, ACCEPTED): other}
    r.must(tuple(said) in ways, "not one refund")
    r.refunded = ways[tuple(said)]


def refund_times_out(r):
    r.pay()
    r.hold_callbacks()
    r.rule("R01", "refund", **r.no_answer(STORED_500))
    amount = r.part(55, 80)
    r.must(r.one(r.refund(amount)) == ACCEPTED, "it fits")
    said = r.at_once(r.refund(amount), r.refund(r.amount - amount))
    r.must(said == [TOO_MUCH, ACCEPTED], "the reservation does not hold")
    r.wait("R01", "SUCCEEDED")
    r.wait("R02", "SUCCEEDED")
    r.refunded = r.amount


def refund_refused(r):
    r.pay()
    r.rule("R01", "refund", **r.random.choice(({"do": "fail"}, {"do": "refuse", "status": 400})))
    r.must(r.one(r.refund(r.part(55, 90))) == ACCEPTED, "it fits")
    r.wait("R01", "FAILED")
    r.must(sorted(r.at_once(r.refund(r.amount), r.refund(r.amount))) == [ACCEPTED, TOO_MUCH], "it was not released")
    r.refunded = r.amount


def refund_refused_for_now(r):
    r.pay()
    r.rule("R01", "refund", do="refuse", status=400, error_code="balance_insufficient", retry_after_s=1)
    r.refunded = r.part(55, 90)
    r.must(sorted(r.at_once(r.refund(r.refunded), r.refund(r.refunded))) == [ACCEPTED, TOO_MUCH], "not one of the two")
    r.wait("R01", "SUCCEEDED")


def refund_pending(r):
    r.pay()
    r.rule("R01", "refund", do="pending")
    amount = r.part(55, 90)
    r.must(r.one(r.refund(amount)) == ACCEPTED, "it fits")
    r.wait("R01", "PROCESSING")
    r.must(r.at_once(r.refund(amount), r.refund(amount)) == [TOO_MUCH, TOO_MUCH], "a pending refund is no room")
    to = r.random.choice(("succeeded", "failed"))
    r.advance("R01", to)
    r.wait("R01", to.upper())
    rest = r.amount - amount if to == "succeeded" else r.amount
    r.must(sorted(r.at_once(r.refund(rest), r.refund(rest))) == [ACCEPTED, TOO_MUCH], "the rest is there, once")
    r.refunded = r.amount


def refund_reversed(r):
    r.pay()
    r.must(r.one(r.refund(r.part(55, 90))) == ACCEPTED, "it fits")
    r.wait("R01", "SUCCEEDED")
    r.advance("R01", "failed")
    r.wait("R01", "REVERSED")
    r.must(sorted(r.at_once(r.refund(r.amount), r.refund(r.amount))) == [ACCEPTED, TOO_MUCH], "it did not come back")
    r.refunded = r.amount


def console_beside(r):
    """Ours and theirs together are more than there is: the PSP decides, the books follow."""
    r.pay()
    ours, theirs = r.part(35, 45), r.part(35, 45)
    done = []
    thread = threading.Thread(target=lambda: done.append(r.console("refund", theirs)), daemon=True)
    thread.start()
    r.at_once(r.refund(ours), r.refund(ours))
    thread.join()
    r.refunded = None  # whatever the PSP says


def console_before(r):
    r.pay()
    r.refunded = r.part(20, 40)
    r.must(r.console("refund", r.refunded), "the PSP refused")
    r.wait("R01", "SUCCEEDED")
    rest = r.amount - r.refunded
    r.must(sorted(r.at_once(r.refund(rest), r.refund(rest))) == [ACCEPTED, TOO_MUCH], "the console's was not counted")
    r.refunded = r.amount


def paid_late(r):
    """The charge itself times out, and is refunded as soon as it is known."""
    r.hold_callbacks()
    r.pay(**r.no_answer())
    r.refunded = r.part(55, 90)
    r.must(sorted(r.at_once(r.refund(r.refunded), r.refund(r.refunded))) == [ACCEPTED, TOO_MUCH], "not one of the two")


# ---- captures


def refund_too_much(r):
    """Of what was captured, which is less than what was authorized."""
    amount = max(1, r.captured * 70 // 100)
    said = r.at_once(r.refund(amount), r.refund(amount), r.refund(r.captured + 1))
    want = [ACCEPTED, TOO_MUCH] if 2 * amount > r.captured else [ACCEPTED, ACCEPTED]
    r.must(sorted(said[:2]) == want and said[2] == TOO_MUCH, "the sum is not what was captured")
    r.refunded = amount * said.count(ACCEPTED)


def two_captures(r):
    """In full and in part at once: Stripe takes one, and so do we."""
    r.pay(manual=True)
    wishes = [r.amount, r.part(30, 90)]
    said = r.at_once(*map(r.capture, wishes))
    r.must(ACCEPTED in said and len(set(said) & ONE_CAPTURE) == 1, "not one of the two")
    r.captured = wishes[said.index(ACCEPTED)]
    r.wait("C01", "SUCCEEDED")
    refund_too_much(r)


def captures_in_parts(r):
    """A capture that promises more is refused: this PSP captures once. The whole, with nothing to promise, is not."""
    r.pay(manual=True)
    small = r.part(20, 60)
    said = r.at_once(r.capture(small, final=False), r.capture(small, final=False))
    r.must(said == ["MULTIPLE_NOT_SUPPORTED"] * 2, "the PSP would release the rest")
    wishes = [(small, True), (r.amount, False)]
    said = r.at_once(*(r.capture(amount, final) for amount, final in wishes))
    r.must(ACCEPTED in said and len(set(said) & {*ONE_CAPTURE, "MULTIPLE_NOT_SUPPORTED"}) == 1, "not one of the two")
    r.captured = wishes[said.index(ACCEPTED)][0]
    r.wait("C01", "SUCCEEDED")
    r.must(r.one(r.capture(1)) in ONE_CAPTURE, "a capture of what was released")
    refund_too_much(r)


def refund_meets_capture(r):
    r.pay(manual=True)
    r.captured = r.part(30, 100)
    r.rule("C01", "capture", do="delay", delay_ms=400, answer_delay_ms=300)
    amount = max(1, r.captured * 70 // 100)
    said = r.at_once(r.capture(r.captured), r.refund(amount), r.refund(amount))
    r.must(said[0] == ACCEPTED and set(said[1:]) <= {NOTHING, ACCEPTED, TOO_MUCH}, "another answer")
    r.wait("C01", "SUCCEEDED")
    refunds = said[1:] + r.at_once(r.refund(amount), r.refund(amount))
    r.must(refunds.count(ACCEPTED) == (1 if 2 * amount > r.captured else 2), "not what was captured")
    r.refunded = amount * refunds.count(ACCEPTED)


def capture_times_out(r):
    r.pay(manual=True)
    r.hold_callbacks()
    r.captured = r.part(30, 100)
    r.rule("C01", "capture", **r.no_answer(STORED_500))
    said = r.at_once(r.capture(r.captured), r.refund(1), r.capture(r.captured))
    r.must([said[0], said[2]].count(ACCEPTED) == 1 and said[1] in (NOTHING, ACCEPTED), "another answer")
    r.wait("C01", "SUCCEEDED")
    extra = 1 if said[1] == ACCEPTED else 0
    r.must(r.one(r.refund(r.captured - extra)) == ACCEPTED, "what was captured can be refunded")
    r.refunded = r.captured


def capture_refused(r):
    r.pay(manual=True)
    r.rule("C01", "capture", do="refuse", status=400)
    r.must(r.one(r.capture(r.amount)) == ACCEPTED, "it fits")
    r.wait("C01", "FAILED")
    r.captured = r.part(30, 100)
    said = r.at_once(r.capture(r.captured), r.capture(r.captured))
    r.must(said.count(ACCEPTED) == 1 and len(set(said) & ONE_CAPTURE) == 1, "it was not released, or twice")
    r.wait("C02", "SUCCEEDED")
    refund_too_much(r)


def console_captures(r):
    """At the same moment as we do, another amount: the PSP takes one of them."""
    r.pay(manual=True)
    ours, theirs = r.part(60, 90), r.part(20, 50)
    done = []
    thread = threading.Thread(target=lambda: done.append(r.console("capture", theirs)), daemon=True)
    thread.start()
    said = r.one(r.capture(ours))
    thread.join()
    r.must(said in {ACCEPTED, *ONE_CAPTURE, "NOT_AUTHORIZED"}, "another answer")
    r.captured = theirs if done[0] else ours
    r.wait("A01", "SUCCEEDED")
    r.must(r.one(r.refund(r.captured)) == ACCEPTED, "what was captured can be refunded")
    r.refunded = r.captured


def void_beside_capture(r):
    r.pay(manual=True)
    amount = r.part(30, 100)
    said = r.at_once(r.capture(amount), r.cancel())
    r.must(said.count(ACCEPTED) == 1, "not one of the two")
    if said[0] == ACCEPTED:
        r.captured = amount
        r.wait("C01", "SUCCEEDED")
        refund_too_much(r)
    else:
        r.wait("A01", "CANCELED")


def same_capture_number(r):
    r.pay(manual=True)
    r.captured = r.part(30, 100)
    said = r.at_once(*[r.capture(r.captured, key=r.payment)] * 3)
    r.must(sorted(said) == [ACCEPTED, ALREADY, ALREADY], "not one capture")
    r.wait("C01", "SUCCEEDED")
    refund_too_much(r)


KINDS = {kind.__name__: kind for kind in (
    two_of_70, many_small, same_number, refund_times_out, refund_refused, refund_refused_for_now, refund_pending,
    refund_reversed, console_beside, console_before, paid_late, two_captures, captures_in_parts, refund_meets_capture,
    capture_times_out, capture_refused, console_captures, void_beside_capture, same_capture_number,
)}  # fmt: skip
