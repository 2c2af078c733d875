# SPDX-License-Identifier: Apache-2.0
"""Stripe: PaymentIntents, refunds, idempotency and webhooks as documented, one account per secret key.

Form-encoded requests in, JSON out. Amounts are in Stripe's unit (ISK and UGX times 100); the ledger also has ISO
minor units. What is not simulated: Connect, customers, setup intents, several captures, thin events.
"""

import base64
import copy
import hashlib
import hmac
import re
import secrets
import time
import urllib.parse

from core import Answer, IdempotencyKeys, Psp, Refused
from stripe_back import Dispute, Refund, new_id
from stripe_objects import TIMES_100, Intent

API_VERSION = "2024-06-20"
AMOUNT_MAX = 99999999
KEY_LENGTH_MAX = 255
LAST_DIGIT_0 = ("bhd", "jod", "kwd", "omr", "tnd")
CURRENCIES = set(
    "aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bhd bif bmd bnd bob brl bsd bwp byn bzd cad cdf chf "
    "clp cny cop crc cve czk djf dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gnf gtq gyd hkd hnl htg huf idr ils inr "
    "isk jmd jod jpy kes kgs khr kmf krw kwd kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mur mvr mwk mxn "
    "myr mzn nad ngn nio nok npr nzd omr pab pen pgk php pkr pln pyg qar ron rsd rub rwf sar sbd scr sek sgd shp sle "
    "sos srd std szl thb tjs tnd top try ttd twd tzs uah ugx usd uyu uzs vnd vuv wst xaf xcd xof xpf yer zar zmw".split()
)
CREATE_PARAMETERS = set(
    "amount currency metadata payment_method confirm capture_method return_url description customer expand "
    "payment_method_types automatic_payment_methods confirmation_method error_on_requires_action off_session "
    "setup_future_usage statement_descriptor statement_descriptor_suffix receipt_email payment_method_options "
    "shipping mandate mandate_data payment_method_data radar_options use_stripe_sdk transfer_data transfer_group "
    "on_behalf_of application_fee_amount payment_method_configuration".split()
)
CONFIRM_PARAMETERS = set(
    "payment_method return_url off_session expand capture_method mandate mandate_data payment_method_data "
    "payment_method_options payment_method_types receipt_email setup_future_usage shipping use_stripe_sdk "
    "error_on_requires_action radar_options".split()
)
CAPTURE_PARAMETERS = set(
    "amount_to_capture application_fee_amount final_capture metadata statement_descriptor expand "
    "statement_descriptor_suffix transfer_data".split()
)
CANCEL_PARAMETERS = {"cancellation_reason", "expand"}
CANCEL_REASONS = ("duplicate", "fraudulent", "requested_by_customer", "abandoned")
REFUND_PARAMETERS = set("payment_intent charge amount reason metadata expand currency instructions_email".split())
CANCELABLE = ("requires_payment_method", "requires_capture", "requires_confirmation", "requires_action")
CONFIRMABLE = ("requires_payment_method", "requires_confirmation", "requires_action")
SEARCH = re.compile(r"""\s*metadata\[(['"])order_id\1\]\s*:\s*(['"])((?:(?!\2).)*)\2\s*""")

# Stripe's own test payment methods: what an attempt with them comes to without a script.
TEST_METHODS = {
    "pm_card_chargeDeclined": ("decline", "card_declined", "generic_decline"),
    "pm_card_visa_chargeDeclined": ("decline", "card_declined", "generic_decline"),
    "pm_card_chargeDeclinedInsufficientFunds": ("decline", "card_declined", "insufficient_funds"),
    "pm_card_chargeDeclinedExpiredCard": ("decline", "expired_card", None),
    "pm_card_authenticationRequired": ("requires_action", None, None),
    "pm_sepaDebit": ("processing", None, None),
}
REFUND_OUTCOMES = {"pending": "pending", "processing": "pending", "fail": "failed"}
REFUSALS = {
    400: ("invalid_request_error", "parameter_invalid_integer", "Invalid integer"),
    401: ("invalid_request_error", None, "Invalid API Key provided"),
    403: ("invalid_request_error", "account_invalid", "The provided key does not have access to this account"),
    404: ("invalid_request_error", "resource_missing", "No such resource"),
    409: ("invalid_request_error", "lock_timeout", "This object cannot be accessed right now"),
    424: ("api_error", None, "An external dependency failed"),
    429: ("invalid_request_error", "rate_limit", "Request rate limit exceeded"),
}


class Invalid(Exception):
    """The request is refused before anything is executed, so nothing is stored under its key."""

    def __init__(self, message, status=400, param=None, code=None, intent=None):
        super().__init__(message)
        error = {"type": "invalid_request_error", "message": message}
        if code:
            error["code"] = code
        if param:
            error["param"] = param
        if intent:
            error["payment_intent"] = intent
        self.answer = Answer(status, {"error": error})


def mac_hex(secret, data):
    """The whole secret is the key, `whsec_` included."""
    return hmac.new(secret.encode(), data, hashlib.sha256).hexdigest()


def signature(secret, at, body):
    return mac_hex(secret, str(at).encode() + b"." + body)


def parse_form(text):
    """a[b]=c and a[]=c as nested dicts and lists; a name given twice is refused, as a reader could pick either."""
    result = {}
    for name, value in urllib.parse.parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text)):
        match = re.fullmatch(r"([^\[\]]+)((?:\[[^\[\]]*\])*)", name)
        if not match:
            raise Invalid(f"Invalid parameter name {name!r}", param=name)
        keys = [match[1]] + re.findall(r"\[([^\[\]]*)\]", match[2])
        place = result
        for key in keys[:-1]:
            place = place.setdefault(key, {}) if isinstance(place, dict) else None
            if not isinstance(place, dict):
                raise Invalid(f"Invalid hash: {name}", param=name)
        key = keys[-1] or str(len(place))
        if key in place:
            raise Invalid(f"Parameter given twice: {name}", param=name)
        place[key] = value
    return result


def take_int(params, name, default=None):
    if name not in params:
        if default is None:
            raise Invalid(f"Missing required param: {name}.", param=name, code="parameter_missing")
        return default
    if not isinstance(params[name], str) or not re.fullmatch(r"-?[0-9]{1,15}", params[name]):
        raise Invalid(f"Invalid integer: {params[name]}", param=name, code="parameter_invalid_integer")
    return int(params[name])


def check_amount(amount, currency):
    if amount < 1:
        raise Invalid("This value must be greater than or equal to 1.", param="amount", code="parameter_invalid_integer")
    if amount > AMOUNT_MAX:
        raise Invalid("Amount must be no more than 999,999.99", param="amount", code="amount_too_large")
    if currency in TIMES_100 and amount % 100 != 0:
        raise Invalid(f"Invalid amount for {currency}: must be divisible by 100", param="amount")
    if currency in LAST_DIGIT_0 and amount % 10 != 0:
        raise Invalid(f"Invalid amount for {currency}: the last digit must be 0", param="amount")


class Stripe(Psp):
    name = "stripe"
    prefix = "/v1/"
    # "Up to three days with growing pauses" in live mode.
    retry_pauses_s = (60, 300, 600, 1800, 3600, 7200, 14400, 28800, 43200, 43200, 43200, 43200)

    def __init__(self, world):
        super().__init__(world)
        self.intents = {}  # id -> Intent
        self.refunds = {}  # id -> Refund
        self.disputes = {}
        self.keys = IdempotencyKeys(world.settings.idempotency_ttl_s)
        self.operations = (
            ("POST", re.compile(r"/v1/payment_intents"), "create", self._create),
            ("GET", re.compile(r"/v1/payment_intents/search"), "search", self._search),
            ("GET", re.compile(r"/v1/payment_intents/(pi_\w+)"), "query", self._query),
            ("POST", re.compile(r"/v1/payment_intents/(pi_\w+)/confirm"), "confirm", self._confirm),
            ("POST", re.compile(r"/v1/payment_intents/(pi_\w+)/capture"), "capture", self._capture),
            ("POST", re.compile(r"/v1/payment_intents/(pi_\w+)/cancel"), "cancel", self._cancel),
            ("POST", re.compile(r"/v1/refunds"), "refund", self._refund),
            ("GET", re.compile(r"/v1/refunds"), "list_refunds", self._list_refunds),
            ("GET", re.compile(r"/v1/refunds/(re_\w+)"), "query_refund", self._query_refund),
            ("GET", re.compile(r"/v1/disputes"), "list_disputes", self._list_disputes),
            ("GET", re.compile(r"/v1/disputes/(du_\w+)"), "query_dispute", self._query_dispute),
        )

    # ---- the interface of Psp

    def identify(self, req):
        req.request_id = "req_" + secrets.token_hex(7)
        req.key = req.headers.get("idempotency-key")
        req.run = None
        for method, pattern, operation, run in self.operations:
            match = pattern.fullmatch(req.path)
            if match and method == req.method:
                req.operation, req.run = operation, run
                req.target = match[1] if pattern.groups else None
        req.account = self._account_of(req.headers.get("authorization", ""))
        if not req.account:
            return self._finish(req, self.refuse(req, 401))
        if not req.run:
            text = f"Unrecognized request URL ({req.method}: {req.path})."
            return self._finish(req, Invalid(text, status=404).answer)
        try:
            self._read(req)
        except (Invalid, ValueError) as error:
            refusal = error if isinstance(error, Invalid) else Invalid(f"Invalid request body: {error}")
            return self._finish(req, refusal.answer)
        req.refs = self._refs(req)
        return None

    def begin(self, req):
        if req.method != "POST" or not req.key:
            return None, False
        if len(req.key) > KEY_LENGTH_MAX:
            return self._finish(req, Invalid("Idempotency-Key is too long").answer), False
        digest = hashlib.sha256(repr((req.path, sorted(urllib.parse.parse_qsl(req.body.decode())))).encode()).digest()
        state, answer = self.keys.begin((req.account.id, req.key), digest)
        if state == IdempotencyKeys.REPLAY:
            return Answer(answer.status, answer.body, {**answer.headers, "Idempotent-Replayed": "true"}), True
        if state == IdempotencyKeys.OTHER_PARAMETERS:
            text = (
                "Keys for idempotent requests can only be used with the same parameters they were first used with. "
                f"Try using a key other than '{req.key}' if you meant to execute a different request."
            )
            return self._finish(req, Answer(400, {"error": {"type": "idempotency_error", "message": text}})), False
        if state == IdempotencyKeys.IN_FLIGHT:
            text = f"There is currently another in-progress request using this Idempotent Key: {req.key}"
            error = {"type": "idempotency_error", "code": "idempotency_key_in_use", "message": text}
            return self._finish(req, Answer(409, {"error": error})), False
        return None, False

    def execute(self, req, rule):
        try:
            answer = self._finish(req, req.run(req, rule))
        except Invalid as invalid:
            if req.method == "POST" and req.key:
                self.keys.forget((req.account.id, req.key))
            return self._finish(req, invalid.answer)
        self.remember(req, answer)
        return answer

    def remember(self, req, answer):
        if req.method == "POST" and req.key:
            self.keys.store((req.account.id, req.key), answer)

    def refuse(self, req, status, code=None, retry_after_s=0):
        kind, usual, message = REFUSALS[status]
        error = {"type": kind, "message": message}
        if code or usual:
            error["code"] = code or usual
        headers = {"Retry-After": str(retry_after_s)} if retry_after_s else {}
        return self._finish(req, Answer(status, {"error": error}, headers))

    def server_error(self, status):
        text = "An unknown error occurred" if status == 500 else "Bad gateway"
        headers = {"Request-Id": "req_" + secrets.token_hex(7)}
        return Answer(status, {"error": {"type": "api_error", "message": text}}, headers)

    def with_amount(self, body, amount):
        changed = copy.deepcopy(body)
        shown = changed.get("data", {}).get("object", changed) if isinstance(changed.get("data"), dict) else changed
        for name in ("amount", "amount_received", "amount_capturable", "amount_captured"):
            if shown.get(name):
                shown[name] = amount
        return changed

    def sign(self, account, body, at, how):
        if how == "unsigned":
            return {}
        # While a secret is rolled, both sign: settings.rolled_secrets holds the other ones in force.
        keys = [account.webhook_secret, *account.settings.get("rolled_secrets", [])]
        if how == "secret":
            keys = ["whsec_" + "0" * 32]
        macs = [signature(key, at, body) for key in keys]
        if how == "signature":
            macs = [secrets.token_hex(32)]
        header = ",".join([f"t={at}", *(f"v1={mac}" for mac in macs)])
        return {"Stripe-Signature": header, "User-Agent": "Stripe/1.0 (+https://stripe.com/docs/webhooks)"}

    def event(self, account, document):
        kind = document.pop("type", None)
        event_id = document.pop("event_id", None)
        if "refund" in document or "dispute" in document:
            found = self._find_refund(account, document) if "refund" in document else self._find_dispute(account, document)
            shown, intent = found.body, found.intent
        else:
            intent = self._find(account, document)
            shown = intent.charge if kind and kind.startswith("charge.") else intent.body
        if document:
            raise Refused(f"event: unknown {sorted(document)}")
        if shown is None:
            raise Refused("event: this payment has no charge yet")
        event = self._envelope(account, kind or "payment_intent." + intent.body["status"], shown, None, None)
        if event_id:
            event["id"] = event_id
        return event, intent.refs()

    def advance(self, account, document):
        to = document.pop("to", None)
        if "refund" in document:
            refund = self._find_refund(account, document)
            refund.to(to, None)
            return refund.body
        if "dispute" in document:
            dispute = self._find_dispute(account, document)
            dispute.to(to)
            return dispute.body
        steps = {
            "succeeded": lambda i: i.settle(None),
            "processing": lambda i: i.to_processing(None),
            "requires_action": lambda i: i.to_action(None, None),
            "canceled": lambda i: i.to_canceled(document.pop("reason", "abandoned"), None),
            "expired": lambda i: i.expired(None),
            "failed": lambda i: i.to_declined(
                document.pop("code", "card_declined"), document.pop("decline_code", "generic_decline"), None
            ),
        }
        if to not in steps:
            raise Refused(f"advance: to is one of {sorted(steps)}")
        intent = self._find(account, document)
        steps[to](intent)
        if document:
            raise Refused(f"advance: unknown {sorted(document)}")
        return intent.body

    def console(self, account, document):
        """POST /_control/console: what the merchant's own people do in the dashboard, without our numbers."""
        what, amount = document.pop("do", None), document.pop("amount", None)
        intent = self._find(account, document)
        if document:
            raise Refused(f"console: unknown {sorted(document)}")
        if what == "capture":
            amount = self._amount_left(amount, intent.body["amount_capturable"], "capturable")
            intent.captured(amount, None)
            return intent.body
        if what == "refund":
            refund = Refund(intent, self._amount_left(amount, intent.refundable(), "refundable"), {})
            refund.create("succeeded", None)
            return refund.body
        if what == "cancel":
            intent.to_canceled("requested_by_customer", None)
            return intent.body
        raise Refused("console: do is capture, refund or cancel")

    @staticmethod
    def _amount_left(amount, left, name):
        amount = left if amount is None else amount
        if not 0 < amount <= left:
            raise Refused(f"console: {amount} of {left} {name}")
        return amount

    def dispute(self, account, document):
        """POST /_control/dispute: the customer's bank objects."""
        amount, reason = document.pop("amount", None), document.pop("reason", "fraudulent")
        inquiry = bool(document.pop("inquiry", False))
        intent = self._find(account, document)
        if document:
            raise Refused(f"dispute: unknown {sorted(document)}")
        received = intent.body["amount_received"]
        amount = received if amount is None else amount
        if not 0 < amount <= received:
            raise Refused(f"dispute: {amount} of {received} received")
        return Dispute(intent, amount, reason, inquiry).body

    # ---- requests

    def _account_of(self, authorization):
        kind, _, value = authorization.partition(" ")
        if kind.lower() == "basic":
            try:
                value = base64.b64decode(value, validate=True).decode().partition(":")[0]
            except ValueError:
                return None
        elif kind.lower() != "bearer":
            return None
        return next((a for a in self.world.accounts.values() if a.psp == self.name and a.secret_key == value), None)

    @staticmethod
    def _read(req):
        if req.method == "GET":
            req.params = parse_form(req.query)
            return
        kind = req.headers.get("content-type", "").partition(";")[0].strip().lower()
        if req.body and kind != "application/x-www-form-urlencoded":
            raise Invalid(f"Invalid content type: {kind!r}. Use application/x-www-form-urlencoded")
        req.params = parse_form(req.body.decode("utf-8"))

    def _refs(self, req):
        """Our numbers in this call: of the object it creates, names or looks for; the key last."""
        found = []
        metadata = req.params.get("metadata")
        if isinstance(metadata, dict):
            found += [metadata.get("order_id"), metadata.get("refund_ref"), metadata.get("capture_ref")]
        query = SEARCH.fullmatch(str(req.params.get("query", "")))
        if query:
            found.append(query[3])
        for name in (req.target, req.params.get("payment_intent")):
            if name in self.intents:
                found += self.intents[name].refs()
            elif name in self.refunds:
                found += self.refunds[name].intent.refs()
        found.append(req.key)
        return [ref for ref in dict.fromkeys(found) if isinstance(ref, str) and ref]

    @staticmethod
    def _finish(req, answer):
        answer.headers.setdefault("Request-Id", req.request_id)
        answer.headers.setdefault("Stripe-Version", req.headers.get("stripe-version", API_VERSION))
        if req.key:
            answer.headers.setdefault("Idempotency-Key", req.key)
        return answer

    @staticmethod
    def _only(params, known):
        for name in params:
            if name not in known:
                raise Invalid(f"Received unknown parameter: {name}", param=name, code="parameter_unknown")

    def _intent(self, req):
        intent = self.intents.get(req.target)
        if not intent or intent.account is not req.account:
            text = f"No such payment_intent: '{req.target}'"
            raise Invalid(text, status=404, param="intent", code="resource_missing")
        return intent

    def _create(self, req, rule):
        params = req.params
        self._only(params, CREATE_PARAMETERS)
        amount = take_int(params, "amount")
        currency = params.get("currency", "").lower()
        if currency not in CURRENCIES:
            raise Invalid(f"Invalid currency: {currency}", param="currency", code="parameter_invalid_string")
        check_amount(amount, currency)
        capture_method = params.get("capture_method", "automatic_async")
        if capture_method not in ("automatic", "automatic_async", "manual"):
            raise Invalid(f"Invalid capture_method: {capture_method}", param="capture_method")
        if params.get("confirm") == "true" and not params.get("payment_method"):
            raise Invalid("Missing required param: payment_method.", param="payment_method", code="parameter_missing")
        if rule and rule.has("wrong_amount") and rule.where == "charge":
            amount = rule.amount
        intent = Intent(self, req.account, params, amount, currency, capture_method)
        self.intents[intent.body["id"]] = intent
        intent.changed("payment_intent.created", req)
        if params.get("confirm") == "true":
            return self._attempt(intent, req, rule)
        return Answer(200, intent.shown(params))

    def _confirm(self, req, rule):
        self._only(req.params, CONFIRM_PARAMETERS)
        intent = self._intent(req)
        if intent.body["status"] not in CONFIRMABLE:
            text = f"You cannot confirm this PaymentIntent because it has a status of {intent.body['status']}."
            raise Invalid(text, code="payment_intent_unexpected_state", intent=intent.snapshot())
        method = req.params.get("payment_method") or intent.body["payment_method"]
        if not method:
            text = "You cannot confirm this PaymentIntent because it's missing a payment method."
            raise Invalid(text, code="payment_intent_unexpected_state", intent=intent.snapshot())
        intent.body["payment_method"] = method
        return self._attempt(intent, req, rule)

    @staticmethod
    def _attempt(intent, req, rule):
        """One try to pay: the script decides, else Stripe's test payment method, else it succeeds."""
        outcome, code, decline = TEST_METHODS.get(intent.body["payment_method"], ("succeed", None, None))
        for name in ("succeed", "decline", "requires_action", "processing"):
            if rule and rule.has(name):
                outcome, code, decline = name, rule.code, rule.decline_code
        if outcome == "decline":
            intent.to_declined(code, decline, req)
            return Answer(402, {"error": {**intent.body["last_payment_error"], "payment_intent": intent.snapshot()}})
        if outcome == "requires_action":
            intent.to_action(req.params.get("return_url"), req)
        elif outcome == "processing":
            intent.to_processing(req)
        else:
            intent.settle(req)
        return Answer(200, intent.shown(req.params))

    def _query(self, req, rule):
        return Answer(200, self._intent(req).shown(req.params))

    def _search(self, req, rule):
        match = SEARCH.fullmatch(req.params.get("query", ""))
        if not match:
            raise Invalid("Invalid search query: this simulator knows metadata['order_id']:'...'", param="query")
        indexed = time.time() - self.world.settings.search_lag_ms / 1000
        found = [
            intent.as_of(indexed)
            for intent in self.intents.values()
            if intent.account is req.account and intent.body["metadata"].get("order_id") == match[3]
        ]
        data = [body for body in reversed(found) if body]
        body = {"object": "search_result", "url": "/v1/payment_intents/search", "has_more": False, "data": data}
        return Answer(200, {**body, "next_page": None})

    def _capture(self, req, rule):
        self._only(req.params, CAPTURE_PARAMETERS)
        intent = self._intent(req)
        if intent.body["status"] != "requires_capture":
            text = f"This PaymentIntent could not be captured because it has a status of {intent.body['status']}."
            raise Invalid(text, code="payment_intent_unexpected_state", intent=intent.snapshot())
        capturable = intent.body["amount_capturable"]
        amount = take_int(req.params, "amount_to_capture", capturable)
        check_amount(amount, intent.body["currency"])
        if amount > capturable:
            text = f"The requested capture amount is greater than the authorized amount of {capturable}."
            raise Invalid(text, param="amount_to_capture", code="amount_too_large")
        if req.params.get("final_capture") == "false":
            text = "This PaymentIntent cannot be captured more than once: multicapture is not available."
            raise Invalid(text, param="final_capture")
        if rule and rule.has("wrong_amount") and rule.where == "charge":
            amount = rule.amount
        metadata = req.params.get("metadata")
        intent.captured(amount, req, metadata if isinstance(metadata, dict) else None)
        return Answer(200, intent.shown(req.params))

    def _cancel(self, req, rule):
        self._only(req.params, CANCEL_PARAMETERS)
        intent = self._intent(req)
        reason = req.params.get("cancellation_reason")
        if reason is not None and reason not in CANCEL_REASONS:
            raise Invalid(f"Invalid cancellation_reason: {reason}", param="cancellation_reason")
        if intent.body["status"] not in CANCELABLE:
            text = f"You cannot cancel this PaymentIntent because it has a status of {intent.body['status']}."
            raise Invalid(text, code="payment_intent_unexpected_state", intent=intent.snapshot())
        intent.to_canceled(reason, req)
        return Answer(200, intent.shown(req.params))

    # ---- refunds

    def _refund(self, req, rule):
        params = req.params
        self._only(params, REFUND_PARAMETERS)
        intent = self._refundable(req.account, params.get("payment_intent"), params.get("charge"))
        if not intent:
            raise Invalid("No such payment_intent", status=404, param="payment_intent", code="resource_missing")
        if not intent.body["amount_received"]:
            raise Invalid("This PaymentIntent does not have a successful charge to refund.", param="payment_intent")
        if intent.disputed():
            text = f"Charge {intent.charge['id']} has been charged back; cannot issue a refund."
            raise Invalid(text, code="charge_disputed")
        left = intent.refundable()
        if left <= 0:
            raise Invalid(f"Charge {intent.charge['id']} has already been refunded.", code="charge_already_refunded")
        amount = take_int(params, "amount", left)
        check_amount(amount, intent.body["currency"])
        if amount > left:
            raise Invalid(f"Refund amount ({amount}) is greater than unrefunded amount on charge ({left})", param="amount")
        if rule and rule.has("wrong_amount") and rule.where == "charge":
            amount = rule.amount
        outcome = next((s for do, s in REFUND_OUTCOMES.items() if rule and rule.has(do)), "succeeded")
        refund = Refund(intent, amount, params)
        refund.create(outcome, req)
        return Answer(200, copy.deepcopy(refund.body))

    def _refundable(self, account, intent_id, charge_id):
        for intent in self.intents.values():
            own_charge = intent.charge["id"] if intent.charge else None
            if intent.account is account and (intent.body["id"] == intent_id or (charge_id and own_charge == charge_id)):
                return intent
        return None

    def _query_refund(self, req, rule):
        refund = self.refunds.get(req.target)
        if not refund or refund.intent.account is not req.account:
            raise Invalid(f"No such refund: '{req.target}'", status=404, param="id", code="resource_missing")
        return Answer(200, copy.deepcopy(refund.body))

    def _list_refunds(self, req, rule):
        return self._list(req, "/v1/refunds", self.refunds)

    def _query_dispute(self, req, rule):
        dispute = self.disputes.get(req.target)
        if not dispute or dispute.intent.account is not req.account:
            raise Invalid(f"No such dispute: '{req.target}'", status=404, param="dispute", code="resource_missing")
        return Answer(200, copy.deepcopy(dispute.body))

    def _list_disputes(self, req, rule):
        return self._list(req, "/v1/disputes", self.disputes)

    @staticmethod
    def _list(req, url, objects):
        """Newest first; of one payment_intent or charge where the call names it."""
        wanted = {name: req.params[name] for name in ("payment_intent", "charge") if name in req.params}
        data = [
            copy.deepcopy(o.body)
            for o in reversed(objects.values())
            if o.intent.account is req.account and all(o.body[name] == value for name, value in wanted.items())
        ]
        limit = take_int(req.params, "limit", 10)
        return Answer(200, {"object": "list", "url": url, "has_more": len(data) > limit, "data": data[:limit]})

    # ---- for the control endpoint

    def _find(self, account, document):
        intent_id, order = document.pop("payment_intent", None), document.pop("order", None)
        found = [
            i
            for i in self.intents.values()
            if i.account is account
            and (i.body["id"] == intent_id if intent_id else order and i.body["metadata"].get("order_id") == order)
        ]
        if not found:
            raise Refused(f"no payment_intent {intent_id or order!r} of account {account.id}")
        return found[-1]

    def _find_refund(self, account, document):
        wanted = document.pop("refund")
        for refund in self.refunds.values():
            if refund.intent.account is account and wanted in (refund.body["id"], refund.body["metadata"].get("refund_ref")):
                return refund
        raise Refused(f"no refund {wanted!r} of account {account.id}")

    def _find_dispute(self, account, document):
        dispute = self.disputes.get(document.pop("dispute"))
        if not dispute or dispute.intent.account is not account:
            raise Refused(f"no such dispute of account {account.id}")
        return dispute

    @staticmethod
    def _envelope(account, kind, shown, previous, req):
        data = {"object": copy.deepcopy(shown)}
        if previous is not None:
            data["previous_attributes"] = previous
        return {
            "id": new_id("evt_3"),
            "object": "event",
            "api_version": API_VERSION,
            "created": int(time.time()),
            "data": data,
            "livemode": account.livemode,
            "pending_webhooks": 1,
            "request": {"id": req.request_id if req else None, "idempotency_key": req.key if req else None},
            "type": kind,
        }
