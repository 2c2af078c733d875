# SPDX-License-Identifier: Apache-2.0
"""What goes back at Stripe: refunds and disputes. Each books what really moved at the moment it moves."""

import secrets
import string
import time

from core import Refused

REFUND_STEPS = {"pending": ("succeeded", "failed"), "succeeded": ("failed",)}


def new_id(prefix):
    return prefix + "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(24))


class Refund:
    """`release`: no refund at all, but held money that is let go; Stripe shows it as one."""

    def __init__(self, intent, amount, params, release=False):
        metadata = params.get("metadata")
        self.intent, self.release = intent, release
        self.body = {
            "id": new_id("re_3"),
            "object": "refund",
            "amount": amount,
            "balance_transaction": None if release else new_id("txn_3"),
            "charge": intent.charge["id"],
            "created": int(time.time()),
            "currency": intent.body["currency"],
            "destination_details": {
                "card": {"reference_status": "pending", "reference_type": "acquirer_reference_number", "type": "refund"},
                "type": "card",
            },
            "metadata": dict(metadata) if isinstance(metadata, dict) else {},
            "payment_intent": intent.body["id"],
            "reason": params.get("reason"),
            "receipt_number": None,
            "source_transfer_reversal": None,
            "status": "pending",
            "transfer_reversal": None,
        }
        intent.refunds.append(self)
        intent.psp.refunds[self.body["id"]] = self

    def create(self, status, req):
        """It exists from now on, as `status`: pending, succeeded or failed."""
        self.body["status"] = status
        if status == "failed":
            self._note_failure()
        self.intent.emit("refund.created", self.body, req)
        if status == "succeeded":
            self._pay(req)
        if status == "failed":
            self.intent.emit("refund.failed", self.body, req)

    def to(self, status, req):
        before = self.body["status"]
        if before == status:
            return
        if status not in REFUND_STEPS.get(before, ()) or self.release:
            raise Refused(f"a refund that is {before} cannot become {status}")
        self.body["status"] = status
        if status == "succeeded":
            self._pay(req)
        if status == "failed":
            self._note_failure()
            if before == "succeeded":
                self._take_back()
        self.intent.emit("refund.updated", self.body, req, {"status": before})
        self.intent.emit("charge.refund.updated", self.body, req, {"status": before})
        if status == "failed":
            self.intent.emit("refund.failed", self.body, req)

    def _note_failure(self):
        self.body["failure_reason"] = "lost_or_stolen_card"
        self.body["failure_balance_transaction"] = new_id("txn_3")

    def _pay(self, req):
        charge = self.intent.charge
        before = charge["amount_refunded"]
        self.intent.book("refund", self.body["amount"], self.body["id"])
        charge["amount_refunded"] = before + self.body["amount"]
        charge["refunded"] = charge["amount_refunded"] >= charge["amount"]
        self.intent.emit("charge.refunded", charge, req, {"amount_refunded": before})

    def _take_back(self):
        """Ordinary at Stripe: weeks later the customer's bank sends it back."""
        self.intent.charge["amount_refunded"] -= self.body["amount"]
        self.intent.charge["refunded"] = False
        self.intent.book("refund_reversed", self.body["amount"], self.body["id"])


class Dispute:
    """The customer's bank takes the money back, or (an inquiry) only asks."""

    def __init__(self, intent, amount, reason, inquiry):
        self.intent, self.inquiry = intent, inquiry
        self.withdrawn = False
        self.body = {
            "id": new_id("du_1"),
            "object": "dispute",
            "amount": amount,
            "balance_transactions": [],
            "charge": intent.charge["id"],
            "created": int(time.time()),
            "currency": intent.body["currency"],
            "evidence": {},
            "evidence_details": {
                "due_by": int(time.time()) + 14 * 86400,
                "has_evidence": False,
                "past_due": False,
                "submission_count": 0,
            },
            "is_charge_refundable": inquiry,
            "livemode": intent.account.livemode,
            "metadata": {},
            "payment_intent": intent.body["id"],
            "payment_method_details": {
                "card": {"brand": "visa", "case_type": "inquiry" if inquiry else "chargeback", "network_reason_code": "10"},
                "type": "card",
            },
            "reason": reason,
            "status": "warning_needs_response" if inquiry else "needs_response",
        }
        intent.disputes.append(self)
        intent.psp.disputes[self.body["id"]] = self
        intent.charge["disputed"] = True
        self._emit("created")
        if not inquiry:
            self._withdraw()

    def to(self, to):
        status = self.body["status"]
        if status in ("won", "lost", "warning_closed"):
            raise Refused(f"a dispute that is {status} is closed")
        if self.inquiry:
            self._ask_further(to)
            return
        if to not in ("under_review", "won", "lost"):
            raise Refused("a dispute goes to under_review, won or lost")
        self.body["status"] = to
        if to == "won":
            self._reinstate()
        self._emit("updated" if to == "under_review" else "closed")

    def _ask_further(self, to):
        """An inquiry is closed, or becomes a dispute: then money moves."""
        if to == "closed":
            self.body["status"] = "warning_closed"
            self._emit("closed")
        elif to == "under_review":
            self.body["status"] = "warning_under_review"
            self._emit("updated")
        elif to == "escalated":
            self.inquiry = False
            self.body.update(status="needs_response", is_charge_refundable=False)
            self._emit("updated")
            self._withdraw()
        else:
            raise Refused("an inquiry goes to under_review, closed or escalated")

    def _move(self, kind, sign):
        self.withdrawn = sign < 0
        self.intent.book(kind, self.body["amount"], self.body["id"])
        self.body["balance_transactions"].append(
            {"id": new_id("txn_1"), "object": "balance_transaction", "amount": sign * self.body["amount"],
             "currency": self.body["currency"], "type": "adjustment"}
        )  # fmt: skip

    def _withdraw(self):
        self._move("dispute_withdrawn", -1)
        self._emit("funds_withdrawn")

    def _reinstate(self):
        self._move("dispute_reinstated", 1)
        self._emit("funds_reinstated")

    def _emit(self, name):
        self.intent.emit(f"charge.dispute.{name}", self.body, None)
