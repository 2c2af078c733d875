# SPDX-License-Identifier: Apache-2.0
"""Stripe's objects as Stripe shows them: a PaymentIntent with its charge, and how they move."""

import copy
import secrets
import time

from core import EXPONENTS, Refused
from stripe_back import Refund, new_id

TIMES_100 = ("isk", "ugx")


def to_minor(amount, currency):
    """Stripe's unit to ISO 4217 minor units."""
    if currency in TIMES_100 and EXPONENTS.get(currency.upper()) == 0:
        return amount // 100
    return amount


class Intent:
    """One PaymentIntent with its charge. Every change emits the events Stripe emits and books what moved."""

    def __init__(self, psp, account, params, amount, currency, capture_method):
        self.psp, self.account = psp, account
        self.charge = None
        self.refunds, self.disputes = [], []
        self.history = []  # (time, body): the search index lags behind
        metadata = params.get("metadata")
        intent_id = new_id("pi_3")
        self.body = {
            "id": intent_id,
            "object": "payment_intent",
            "amount": amount,
            "amount_capturable": 0,
            "amount_details": {"tip": {}},
            "amount_received": 0,
            "application": None,
            "application_fee_amount": None,
            "automatic_payment_methods": {"allow_redirects": "always", "enabled": True},
            "canceled_at": None,
            "cancellation_reason": None,
            "capture_method": capture_method,
            "client_secret": f"{intent_id}_secret_{secrets.token_hex(12)}",
            "confirmation_method": params.get("confirmation_method", "automatic"),
            "created": int(time.time()),
            "currency": currency,
            "customer": params.get("customer"),
            "description": params.get("description"),
            "last_payment_error": None,
            "latest_charge": None,
            "livemode": account.livemode,
            "metadata": dict(metadata) if isinstance(metadata, dict) else {},
            "next_action": None,
            "on_behalf_of": None,
            "payment_method": params.get("payment_method"),
            "payment_method_options": {
                "card": {"installments": None, "network": None, "request_three_d_secure": "automatic"}
            },
            "payment_method_types": ["card"],
            "processing": None,
            "receipt_email": None,
            "review": None,
            "setup_future_usage": None,
            "shipping": None,
            "source": None,
            "statement_descriptor": None,
            "statement_descriptor_suffix": None,
            "status": "requires_confirmation" if params.get("payment_method") else "requires_payment_method",
            "transfer_data": None,
            "transfer_group": None,
        }

    def refs(self):
        return [self.body["metadata"]["order_id"]] if self.body["metadata"].get("order_id") else []

    def snapshot(self):
        return copy.deepcopy(self.body)

    def shown(self, params):
        body = self.snapshot()
        expand = params.get("expand")
        if isinstance(expand, dict) and "latest_charge" in expand.values() and self.charge:
            body["latest_charge"] = copy.deepcopy(self.charge)
        return body

    def as_of(self, at):
        known = [body for changed, body in self.history if changed <= at]
        return copy.deepcopy(known[-1]) if known else None

    def emit(self, kind, shown, req, previous=None):
        event = self.psp._envelope(self.account, kind, shown, previous, req)
        self.psp.world.emit(self.account, event, self.refs() + [r for r in [shown["metadata"].get("refund_ref")] if r])

    def changed(self, kind, req):
        self.history.append((time.time(), self.snapshot()))
        self.emit(kind, self.body, req)

    def book(self, kind, amount, object_id):
        currency = self.body["currency"]
        self.psp.world.ledger.add(
            account=self.account.id,
            payment=self.body["id"],
            order=self.body["metadata"].get("order_id"),
            kind=kind,
            amount=amount,
            amount_minor=to_minor(amount, currency),
            currency=currency.upper(),
            object=object_id,
        )

    # ---- where it can go

    def settle(self, req):
        """The customer's payment went through: money is taken, or reserved when the capture is manual."""
        status = self.body["status"]
        if status == "requires_capture":
            self.captured(self.body["amount_capturable"], req)
        if status in ("succeeded", "requires_capture"):
            return
        if status == "canceled":
            raise Refused("a canceled PaymentIntent cannot succeed")
        manual = self.body["capture_method"] == "manual"
        amount = self.body["amount"]
        self._new_charge("succeeded", captured=not manual)
        self.body.update(status="requires_capture" if manual else "succeeded", next_action=None, processing=None,
                         last_payment_error=None, amount_capturable=amount if manual else 0,
                         amount_received=0 if manual else amount)  # fmt: skip
        self.book("authorize" if manual else "charge", amount, self.charge["id"])
        self.emit("charge.succeeded", self.charge, req)
        self.changed("payment_intent.amount_capturable_updated" if manual else "payment_intent.succeeded", req)

    def captured(self, amount, req, metadata=None):
        """The authorization is captured, once; what is not captured is released."""
        rest = self.charge["amount"] - amount
        self.body["metadata"].update(metadata or {})
        self.charge.update(captured=True, amount_captured=amount, balance_transaction=new_id("txn_3"))
        self.body.update(status="succeeded", amount_received=amount, amount_capturable=0)
        self.book("capture", amount, self.charge["id"])
        self.emit("charge.captured", self.charge, req)
        if rest > 0:
            self._release(rest, req)
            self.book("release", rest, self.charge["id"])
        self.changed("payment_intent.succeeded", req)

    def expired(self, req):
        """Seven days without a capture: the bank's hold lapses."""
        if self.body["status"] != "requires_capture":
            raise Refused("only an authorization expires")
        self.emit("charge.expired", self.charge, req)
        self.to_canceled("automatic", req)

    def _release(self, amount, req):
        """Stripe writes a refund for held money that it lets go: without a movement of the balance."""
        refund = Refund(self, amount, {}, release=True)
        refund.body["status"] = "succeeded"
        before = self.charge["amount_refunded"]
        self.charge["amount_refunded"] = before + amount
        self.charge["refunded"] = self.charge["amount_refunded"] >= self.charge["amount"]
        self.emit("refund.created", refund.body, req)
        self.emit("charge.refunded", self.charge, req, {"amount_refunded": before})

    def to_processing(self, req):
        self._must_be_open("processing")
        self.body.update(status="processing", next_action=None, processing={"type": "card"})
        self.changed("payment_intent.processing", req)

    def to_action(self, return_url, req):
        self._must_be_open("requires_action")
        url = f"https://hooks.stripe.com/redirect/authenticate/{new_id('src_')}"
        action = {"redirect_to_url": {"return_url": return_url, "url": url}, "type": "redirect_to_url"}
        if not return_url:
            action = {"type": "use_stripe_sdk", "use_stripe_sdk": {"type": "three_d_secure_redirect", "stripe_js": url}}
        self.body.update(status="requires_action", next_action=action, processing=None)
        self.changed("payment_intent.requires_action", req)

    def to_declined(self, code, decline_code, req):
        self._must_be_open("requires_payment_method")
        self._new_charge("failed", captured=False)
        self.charge["failure_code"] = code
        self.charge["outcome"]["reason"] = decline_code  # of an issuer's no: its decline code
        error = {
            "charge": self.charge["id"],
            "code": code,
            "doc_url": f"https://stripe.com/docs/error-codes/{(code or '').replace('_', '-')}",
            "message": "Your card was declined.",
            "type": "card_error",
        }
        if decline_code:
            error["decline_code"] = decline_code
        self.body.update(status="requires_payment_method", last_payment_error=error, payment_method=None,
                         next_action=None, processing=None)  # fmt: skip
        self.emit("charge.failed", self.charge, req)
        self.changed("payment_intent.payment_failed", req)

    def to_canceled(self, reason, req):
        self._must_be_open("canceled")
        reserved = self.body["amount_capturable"]
        self.body.update(status="canceled", canceled_at=int(time.time()), cancellation_reason=reason,
                         amount_capturable=0, next_action=None, processing=None)  # fmt: skip
        self.book("cancel", reserved, self.body["id"])
        if reserved:
            self._release(reserved, req)
        self.changed("payment_intent.canceled", req)

    def refunded(self):
        """What went back, or is on its way: refunds of released money are none."""
        own = (r.body for r in self.refunds if not r.release)
        return sum(body["amount"] for body in own if body["status"] in ("succeeded", "pending"))

    def refundable(self):
        return self.body["amount_received"] - self.refunded()

    def disputed(self):
        """A chargeback, unless it was won: such a charge cannot be refunded."""
        return any(not d.inquiry and d.body["status"] != "won" for d in self.disputes)

    def _must_be_open(self, to):
        if self.body["status"] in ("succeeded", "canceled"):
            raise Refused(f"a PaymentIntent that is {self.body['status']} cannot become {to}")

    def _new_charge(self, status, captured):
        amount, ok = self.body["amount"], status == "succeeded"
        self.charge = {
            "id": new_id("ch_3"),
            "object": "charge",
            "amount": amount,
            "amount_captured": amount if captured else 0,
            "amount_refunded": 0,
            "application": None,
            "application_fee": None,
            "application_fee_amount": None,
            "balance_transaction": new_id("txn_3") if captured else None,
            "billing_details": {
                "address": dict.fromkeys(("city", "country", "line1", "line2", "postal_code", "state")),
                "email": None,
                "name": None,
                "phone": None,
                "tax_id": None,
            },
            "calculated_statement_descriptor": "TEST",
            "captured": captured,
            "created": int(time.time()),
            "currency": self.body["currency"],
            "customer": self.body["customer"],
            "description": self.body["description"],
            "disputed": False,
            "failure_balance_transaction": None,
            "failure_code": None,
            "failure_message": None if ok else "Your card was declined.",
            "fraud_details": {},
            "livemode": self.account.livemode,
            "metadata": dict(self.body["metadata"]),
            "on_behalf_of": None,
            "outcome": {
                "network_status": "approved_by_network" if ok else "declined_by_network",
                "reason": None,
                "risk_level": "normal",
                "seller_message": "Payment complete." if ok else "The bank declined the payment.",
                "type": "authorized" if ok else "issuer_declined",
            },
            "paid": ok,
            "payment_intent": self.body["id"],
            "payment_method": self.body["payment_method"],
            "payment_method_details": {
                "card": {
                    "brand": "visa",
                    "country": "US",
                    "exp_month": 12,
                    "exp_year": 2030,
                    "funding": "credit",
                    "last4": "4242",
                    "network": "visa",
                    "three_d_secure": None,
                    "wallet": None,
                },
                "type": "card",
            },
            "receipt_email": None,
            "receipt_number": None,
            "refunded": False,
            "review": None,
            "shipping": None,
            "source_transfer": None,
            "statement_descriptor": None,
            "statement_descriptor_suffix": None,
            "status": status,
            "transfer_data": None,
            "transfer_group": None,
        }
        self.body["latest_charge"] = self.charge["id"]
