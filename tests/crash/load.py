# SPDX-License-Identifier: Apache-2.0
"""The payments of one seed: what the PSP is told to do to each, the commands that upstream sends, and what happens to
them later: the buyer acts, upstream cancels or asks for another PSP.

Two threads, so that a server that is away holds up nothing but what needs it: one sends at the scheduled moments, one
plays the buyers and the impatient merchant.
"""

import hashlib
import secrets
import threading
import time

import money
import psycopg2
from confluent_kafka import Producer
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from payfact_stack import ACCOUNT_A, ACCOUNT_B, CALLER, MERCHANT, OPERATORS, new_payment_id
from records import SIGNED_PREFIX, encode

ACTION = "pm_card_authenticationRequired"
DECLINED = "pm_card_chargeDeclined"
VISA = "pm_card_visa"

# Kind -> what the PSP does to the create call. {how} is the payment's variant.
RULES = {
    "timeout": {"do": "charge_then_timeout", "times": 1},
    "copies": {"do": "processing", "times": 1},
    "blocked": {"do": "charge_then_timeout", "operation": ""},  # every call, queries too, until the faults are over
    "overtaken": {"do": "delay", "answer_delay_ms": 700, "times": 1},
    "taken_and_dead": {"do": "take_and_die", "how": "{how}", "times": 1},
    "untaken_and_dead": {"do": "take_and_die", "charge": False, "how": "{how}", "times": 1},
    "late": {"do": "late", "after_ms": 600, "how": "{how}", "times": 1},
    "bad_gateway": {"do": "answer_5xx_after_charge", "status": "{how}", "times": 1},
    "stored_500": {"do": "answer_5xx_after_charge", "status": 500, "times": 1},
    "garbage": {"do": "{how}", "times": 1},
}
ROUTES = {"failover": (ACCOUNT_A, ACCOUNT_B), "blocked": (ACCOUNT_A, ACCOUNT_B)}
INSTRUMENTS = {
    "declined": (DECLINED,),
    "failover": (DECLINED, VISA),
    "blocked": (VISA, VISA),
    **dict.fromkeys(("page_paid", "page_open", "page_canceled", "page_race"), (ACTION,)),
}

# What the order may end as, whatever failed on our side. NOT_CHARGED is allowed beside SUCCEEDED where it was never
# sent or the PSP says that it never came; the judge wants that proof.
ENDS = {
    "declined": {"FAILED"},
    "page_open": {"REQUIRES_ACTION", "FAILED"},
    "page_canceled": {"CANCELED", "FAILED"},
    "page_race": {"CANCELED", "FAILED", "SUCCEEDED"},
    **money.ENDS,
}


def route(account):
    return {"psp": "stripe", "psp_account": account, "method": "card", "failover_on_not_found": False}


class Paid:
    """One payment of the load."""

    def __init__(self, planned):
        self.kind, self.amount_minor, self.at_ms = planned.kind, planned.amount_minor, planned.at_ms
        self.withheld, self.how = planned.withheld, planned.how
        self.payment_id = new_payment_id()
        self.order = f"{self.payment_id}A01"
        self.done = False  # the buyer has acted, or upstream has

    def rules(self):
        made = []
        if self.withheld or self.kind == "blocked":
            made.append({"on": "callback", "order": self.order, "do": "withhold"})
        if self.kind == "copies":
            made.append({"on": "callback", "order": self.order, "type": "payment_intent.succeeded", "do": "duplicate", "copies": 5})
        if self.kind in RULES:
            rule = {"order": self.order, "operation": "create", **RULES[self.kind]}
            rule = {k: v.format(how=self.how) if isinstance(v, str) else v for k, v in rule.items()}
            if "status" in rule:
                rule["status"] = int(rule["status"])
            made.append(rule)
        return made + money.rules_of(self.kind, self.how, self.order)


class Load:
    """start() at the moment 0 of the schedule; stop() when the faults are over and everything was sent."""

    def __init__(self, stack, schedule):
        self.stack, self.payments = stack, [Paid(p) for p in schedule.payments]
        self.merchant = money.Merchant(self)
        self.commands = {}  # command_id -> (payment_id, type)
        self.records, self.problems = [], []
        self._lock = threading.Lock()
        self._keys = {name: load_pem_private_key(stack.signers[name].private.read_bytes(), None) for name in (CALLER, *OPERATORS)}
        # Patience for a broker that is away: upstream does not lose a command either.
        self._producer = Producer({"bootstrap.servers": stack.brokers, "partitioner": "murmur2_random", "linger.ms": 0,
                                   "enable.idempotence": True, "max.in.flight": 1, "message.timeout.ms": 120000, "log_level": 2,
                                   "reconnect.backoff.max.ms": 1000})  # fmt: skip
        self._finish = threading.Event()
        self._threads = [threading.Thread(target=self._guarded, args=(what,), daemon=True) for what in (self._send, self._act)]

    def prepare(self):
        rules = [rule for payment in self.payments for rule in payment.rules()]
        if rules:
            self.stack.psp.script(*rules)
        self._ready = [(payment, *self._create(payment)) for payment in self.payments]

    def start(self):
        self.began = time.monotonic()
        for thread in self._threads:
            thread.start()

    def stop(self):
        """Everything is sent and acknowledged; nobody acts any more."""
        self._finish.set()
        for thread in self._threads:
            thread.join()
        left = self._producer.flush(60)
        if left:
            self.problems.append(f"{left} commands could not be sent")

    def _guarded(self, what):
        try:
            what()
        except Exception as error:  # the run must end with it, not without it
            self.problems.append(f"load: {type(error).__name__}: {error}")

    # ---- commands

    def command(self, kind, payment_id, body, secret=None, **changes):
        record = self.stack.upstream.command(kind, MERCHANT, payment_id, body, secret, **changes)
        with self._lock:
            self.commands[record["command_id"]] = (payment_id, kind)
            self.records.append(record)
        return record

    def produce(self, record, secret=None):
        value, caller = encode("Command", record), record["caller"]
        headers = [("payfact-key-id", self.stack.signers[caller].key_id.encode()),
                   ("payfact-signature", self._keys[caller].sign(SIGNED_PREFIX + value))]  # fmt: skip
        headers += [("payfact-secrets", secret)] if secret else []
        self._producer.produce(self.stack.topic_name("commands"), key=record["payment_id"].encode(), value=value,
                               headers=headers, on_delivery=self._delivered)  # fmt: skip
        self._producer.poll(0)

    def _delivered(self, error, message):
        if error:
            self.problems.append(f"a command was not sent: {error}")

    def _create(self, payment):
        accounts = ROUTES.get(payment.kind, (ACCOUNT_A,))
        instruments = INSTRUMENTS.get(payment.kind, (VISA,))
        params = [{"instrument": i, "payer_id": None, "payer_ip": None, "return_url": "https://shop.example/return", "extra": {}}
                  for i in instruments]  # fmt: skip
        secret = encode("CommandSecrets", {"salt": secrets.token_bytes(16), "params": params, "redirect_data": None})
        body = {"merchant_order_no": f"ORDER-{payment.payment_id}", "amount_minor": payment.amount_minor, "currency": "EUR",
                "capture_mode": "MANUAL" if payment.kind in money.MANUAL else "AUTOMATIC", "expires_at": None, "retry_until_expiry": None, "description": None,
                "routes": [route(a) for a in accounts], "start": True}  # fmt: skip
        record = self.command("CREATE_PAYMENT", payment.payment_id, body, secret)
        assert record["secrets_sha256"] == hashlib.sha256(secret).digest()
        return record, secret

    def _send(self):
        for payment, record, secret in self._ready:
            while (left := self.began + payment.at_ms / 1000 - time.monotonic()) > 0:
                self._producer.poll(min(left, 0.05))
            self.produce(record, secret)
            if payment.kind == "resent":
                self.produce(record, secret)

    # ---- the buyers, and a merchant without patience

    def _act(self):
        acts = {"copies": self._advance, "page_paid": self._pay_page, "page_race": self._race, "page_canceled": self._cancel,
                "blocked": self._ask_for_b}  # fmt: skip
        while not self._finish.wait(0.2):
            self.merchant.look()
            waiting = [p for p in self.payments if p.kind in acts and not p.done]
            if not waiting:
                continue
            asked = {r["order"] for r in self.stack.psp.requests(operation="create") if r["executed"]}
            for payment in waiting:
                if payment.order in asked:
                    acts[payment.kind](payment)

    def _advance(self, payment):
        self.stack.psp.advance(account=ACCOUNT_A, order=payment.order, to="succeeded")
        payment.done = True

    def _pay_page(self, payment):
        """The page may have been lost with the answer that held it: then it is canceled, and the judge wants to see why."""
        try:
            self._advance(payment)
        except RuntimeError as error:
            if "a canceled PaymentIntent cannot succeed" not in str(error):
                raise
            payment.done = True

    def _cancel(self, payment):
        self.produce(self.command("CANCEL_PAYMENT", payment.payment_id, {"reason_code": "CUSTOMER_LEFT"}))
        payment.done = True

    def _race(self, payment):
        self._cancel(payment)
        try:
            self._advance(payment)
        except RuntimeError:
            pass  # the PSP has canceled it: the race is decided

    def _ask_for_b(self, payment):
        try:
            status = self.stack.attempt_status(payment.order)
        except psycopg2.Error:
            return  # the database is away: the next time
        if status == "UNKNOWN":
            self.produce(self.command("START_ATTEMPT", payment.payment_id, {"route": route(ACCOUNT_B)}))
            payment.done = True

    def act_to_the_end(self):
        """After the faults: whoever has not acted yet does so now, so that every payment has an end."""
        return all(p.done for p in self.payments if p.kind in ("copies", "page_paid", "page_race", "page_canceled"))
