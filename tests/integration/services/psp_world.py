# SPDX-License-Identifier: Apache-2.0
"""ingest's role psp without the rest of payfact: jobs as publisher and recovery produce them, gates as the processor
inserts them, and what came of it at the PSP, at the gate and on the inputs topic."""

import contextlib
import hashlib
import secrets
import time

from confluent_kafka import Producer

from parts import seal
from payfact_stack import ACCOUNT_A, CALLER, MERCHANT, Stack, new_payment_id
from procs import wait_for
from records import encode

INSTRUMENT = "pm_card_visa"
HOUR_S = 3600
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
FAST = {"RETRY_FIRST_MS": 20, "RETRY_MAX_MS": 40, "SESSION_TIMEOUT_MS": 6000}


@contextlib.contextmanager
def psp_alone(servers, settings):
    """A stack of which only the psp role runs; it ends in order and has told no secret."""
    with Stack(servers, redis=False, settings={"psp": settings}) as made:
        made.service("psp").start()
        yield made
        assert made.service("psp").stop() == 0
        no_secret(made, made.service("psp").log.read_text())


class World:
    """Jobs as publisher and recovery produce them, gates as the processor inserts them."""

    def __init__(self, stack):
        self.stack = stack
        self._producer = Producer({"bootstrap.servers": stack.brokers, "partitioner": "murmur2_random", "linger.ms": 0})

    def job(self, kind="SUBMIT", payment=None, account=ACCOUNT_A, number=None, not_after_s=HOUR_S, instrument=INSTRUMENT, **changes):
        payment = payment or new_payment_id()
        attempt = payment + "A01"
        job_id = f"{changes.get('action_id') or attempt}.{kind}" + (f".{number}" if number else "")
        sealed = None
        if kind == "SUBMIT":
            bound_to = f"params/{payment}/{CALLER}/command-1/0"
            one = {"instrument": instrument, "payer_id": None, "payer_ip": None, "return_url": "https://shop.example/r", "extra": {}}
            plain = encode("CommandSecrets", {"salt": secrets.token_bytes(16), "params": [one], "redirect_data": None})
            key_id, ciphertext = seal(self.stack, bound_to, plain)
            sealed = {"key_id": key_id, "ciphertext": ciphertext, "bound_to": bound_to}
        return {
            "job_id": job_id, "kind": kind, "payment_id": payment, "merchant_id": MERCHANT, "attempt_id": attempt,
            "action_id": None, "request_no": attempt, "psp": "stripe", "psp_account": account, "method": "card",
            "provider_reference": None, "references": [], "amount_minor": 2599 if kind == "SUBMIT" else 0,
            "attempt_amount_minor": 2599, "currency": "EUR", "capture_mode": "AUTOMATIC", "is_final": True, "params": sealed,
            "notify_url": None, "description": None, "reason_code": None, "expires_at": None,
            "not_after": int((time.time() + not_after_s) * 1e6), "about_job_id": None, "try": 1, "traceparent": TRACE,
            **changes,
        }  # fmt: skip

    def paid(self, capture_mode="AUTOMATIC", amount=2599, currency="EUR"):
        """A charge, or with MANUAL an authorization, that the PSP holds: what a capture or refund acts on."""
        job = self.gate(self.job(amount_minor=amount, attempt_amount_minor=amount, currency=currency, capture_mode=capture_mode))
        self.put(job)
        wanted = "ATTEMPT_AUTHORIZED" if capture_mode == "MANUAL" else "ATTEMPT_SUCCEEDED"
        event = self.wait_type(job, wanted)[-1]["record"]["event"]
        return {**job, "provider_reference": event["provider_payment_id"], "references": event["references"]}

    def action(self, kind, paid, amount=0, no=None, **changes):
        """CAPTURE, REFUND and their queries, or CANCEL, of what was paid."""
        letter = {"CAPTURE": "C", "QUERY_CAPTURE": "C", "REFUND": "R", "QUERY_REFUND": "R"}.get(kind)
        action_id = f"{paid['payment_id']}{letter}{no or 1:02}" if letter else None
        known = {name: paid[name] for name in ("provider_reference", "references", "attempt_amount_minor", "currency", "capture_mode")}
        return self.job(kind, paid["payment_id"], action_id=action_id, request_no=action_id or paid["attempt_id"],
                        amount_minor=amount, **{**known, **changes})  # fmt: skip

    def moved(self, paid, *kinds):
        """What the PSP really did: the amounts of these kinds, in order."""
        return [e["amount_minor"] for e in self.stack.ledger(order=paid["attempt_id"]) if e["kind"] in kinds]

    def calls(self, job):
        """The PSP's own record of the calls under this job's number."""
        rows = self.stack.psp.requests(operation=job["kind"].lower())
        return [r for r in rows if r["idempotency_key"] == job["request_no"]]

    def events(self, job, *types):
        """The events that answer this job, of these types."""
        found = [m["record"]["event"] for m in self.inputs(job)]
        return [e for e in found if (e["call"] or {}).get("job_id") == job["job_id"] and (not types or e["type"] in types)]

    def wait_event(self, job, *types, limit_s=30):
        return wait_for(f"{types} of {job['job_id']}", lambda: self.events(job, *types), limit_s)[-1]

    def gate(self, job, **columns):
        """The gate row of a job; columns: SQL text by name."""
        value = encode("PspJob", job)
        names = ["job_id", "payment_id", "action_id", "kind", "digest", "not_after", *columns]
        texts = ["%s", "%s", "%s", "%s", "%s", "to_timestamp(%s)", *columns.values()]
        self.stack.sql(f"INSERT INTO psp_request ({', '.join(names)}) VALUES ({', '.join(texts)})", job["job_id"],
                       job["payment_id"], job["action_id"] or job["attempt_id"], job["kind"], hashlib.sha256(value).digest(),
                       job["not_after"] / 1e6)  # fmt: skip
        return job

    def put(self, *jobs):
        for job in jobs:
            self.put_bytes(job["payment_id"], encode("PspJob", job), [("traceparent", TRACE.encode())])

    def put_bytes(self, key, value, headers=()):
        reports = []
        self._producer.produce(self.stack.topic_name("psp-jobs"), key=key, value=value, headers=list(headers),
                               on_delivery=lambda error, msg: reports.append(error))  # fmt: skip
        self._producer.flush(30)
        assert reports == [None]

    def row(self, job):
        return self.stack.sql("SELECT *, now() AS now FROM psp_request WHERE job_id = %s", job["job_id"])[0]

    def call_is_over(self, job):
        """As after the longest time that a call may last: whoever sent this job is thought dead."""
        self.stack.sql("UPDATE psp_request SET last_send_at = last_send_at - interval '1 hour' WHERE job_id = %s", job["job_id"])

    def inputs(self, job):
        return [m for m in self.stack.records("inputs") if m["key"] == job["payment_id"]]

    def types(self, job):
        return [m["record"]["event"]["type"] for m in self.inputs(job)]

    def wait_type(self, job, *wanted, limit_s=30):
        """The inputs of this job once there is one of these types."""
        return wait_for(f"{wanted} of {job['job_id']}",
                        lambda: any(t in wanted for t in self.types(job)) and self.inputs(job), limit_s)  # fmt: skip

    def creates(self, job):
        return self.stack.psp.requests(order=job["attempt_id"], operation="create")

    def charges(self, job):
        return [e for e in self.stack.ledger(order=job["attempt_id"]) if e["kind"] == "charge"]

    def done(self):
        """Every job that was produced has come to its end."""
        wait_for("all jobs are done", lambda: all(left == 0 for left, _ in self.stack.lag().values()))


def no_secret(stack, log):
    for account in stack.psp_accounts:
        assert account["secret_key"] not in log
    assert INSTRUMENT not in log
    for topic in ("inputs", "dlq"):
        for message in stack.records(topic):
            assert b"_secret_" not in message["value"] or b"client_secret" not in message["value"]
