# SPDX-License-Identifier: Apache-2.0
"""What every simulated PSP shares: accounts, the script of faults, the ledger and the log of requests.

Nothing here knows a PSP. A PSP is one class in one file (stripe.py is the example) that derives from Psp.

The ledger is the arbiter of every double-charge test: an entry is made at the moment money moves at the PSP,
whatever was answered, lost or forged afterwards, and nothing ever changes or removes one.
"""

import fnmatch
import hashlib
import json
import threading
import time
from dataclasses import dataclass, field, fields

# ISO 4217 currencies that do not have two decimals.
EXPONENTS = {
    **dict.fromkeys("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF".split(), 0),
    **dict.fromkeys("BHD IQD JOD KWD LYD OMR TND".split(), 3),
}


class Refused(Exception):
    """A control request that makes no sense; the text goes back to the caller."""


def take(cls, document, what):
    """Build a dataclass from JSON; an unknown name is an error, so that a typo cannot switch a fault off."""
    known = {f.name for f in fields(cls) if f.init}
    unknown = set(document) - known
    if unknown:
        raise Refused(f"{what}: unknown {sorted(unknown)}, known are {sorted(known)}")
    try:
        return cls(**document)
    except TypeError as error:
        raise Refused(f"{what}: {error}") from error


@dataclass
class Account:
    """One merchant account at a PSP. `secret_key` is what API calls bear, `webhook_secret` signs callbacks."""

    id: str
    psp: str
    secret_key: str
    webhook_secret: str
    callback_url: str = ""
    livemode: bool = False
    settings: dict = field(default_factory=dict)


@dataclass
class Request:
    """One API call as it came in. A PSP's identify() fills what is below the line."""

    method: str
    path: str
    query: str
    headers: dict  # lower-case names
    body: bytes
    connection: int
    # ---
    account: Account = None
    operation: str = "unknown"
    key: str = None  # idempotency key
    refs: list = field(default_factory=list)  # our numbers that the call names; rules match them
    params: dict = field(default_factory=dict)
    target: str = None  # the PSP's id in the path


@dataclass
class Answer:
    status: int
    body: dict
    headers: dict = field(default_factory=dict)

    def encoded(self):
        return json.dumps(self.body, indent=2, ensure_ascii=False).encode()


REQUEST_FAULTS = (
    "charge_then_timeout",  # executed; never answered, until the client gives up
    "answer_5xx_after_charge",  # executed; `status` 500 (stored under the key) or 502, 503, 504 (not stored)
    "take_and_die",  # read; executed unless charge=false; connection closed (how=close) or reset (how=reset)
    "refuse",  # not executed: `status` 400, 401, 403, 404, 409, 424, 429
    "refuse_and_charge",  # the same answer, and executed all the same: a PSP that contradicts itself
    "late",  # the connection ends at once (how=close|reset|hang); executed after_ms later
    "half_answer",  # executed; half of the body, then the connection ends
    "garbage",  # executed; status 200 with a body that is no JSON
    "delay",  # executed after delay_ms and answered answer_delay_ms later
)
OUTCOMES = ("succeed", "decline", "requires_action", "processing", "pending", "fail", "wrong_amount")
CALLBACK_FAULTS = (
    "withhold",  # kept until POST /_control/release
    "duplicate",  # `copies` at the same time
    "reorder",  # kept until `count` are there, then sent newest first, one after the other
    "delay",  # sent delay_ms later
    "forge",  # `how`: see Psp.sign and delivery.py; never retried
    "wrong_amount",  # correctly signed, with `amount`
)
REFUSALS = (400, 401, 403, 404, 409, 424, 429)


@dataclass
class Rule:
    """One line of the script: what it matches, how often it applies, and what happens then."""

    do: list = field(default_factory=list)
    on: str = "request"  # or "callback"
    id: str = ""
    # what it matches; each may be a shell pattern, empty = any
    account: str = ""
    order: str = ""
    operation: str = ""
    type: str = ""
    # how often
    nth: int = 0  # only the nth match (from 1); 0 = each
    times: int = 0  # at most so many times; 0 = always
    # how
    status: int = 500
    error_code: str = ""  # refuse: instead of the usual one of the status
    retry_after_s: int = 0  # refuse: said in the answer
    charge: bool = True
    how: str = ""
    after_ms: int = 0
    delay_ms: int = 0
    answer_delay_ms: int = 0
    hold_ms: int = 120000
    code: str = "card_declined"
    decline_code: str = "generic_decline"
    amount: int = 0  # wrong_amount: what the PSP takes or reports instead
    where: str = "charge"  # wrong_amount of a request: charge (really) or answer (it only says so)
    copies: int = 2
    count: int = 2
    body: str = "<html><body>upstream error</body></html>"
    to_account: str = ""
    matched: int = field(default=0, init=False)
    applied: int = field(default=0, init=False)

    def __post_init__(self):
        if isinstance(self.do, str):
            self.do = [self.do]
        known = CALLBACK_FAULTS if self.on == "callback" else REQUEST_FAULTS + OUTCOMES
        wrong = [name for name in self.do if name not in known]
        if self.on not in ("request", "callback") or wrong or not self.do:
            raise Refused(f"rule: on={self.on!r} do={self.do!r}; do is one or more of {known}")
        if {"refuse", "refuse_and_charge"} & set(self.do) and self.status not in REFUSALS:
            raise Refused(f"rule: refuse takes status {REFUSALS}")
        if "answer_5xx_after_charge" in self.do and not 500 <= self.status <= 599:
            raise Refused("rule: answer_5xx_after_charge takes status 500 to 599")
        if "wrong_amount" in self.do and self.amount <= 0:
            raise Refused("rule: wrong_amount takes amount > 0, in the PSP's own unit")

    def has(self, fault):
        return fault in self.do

    def matches(self, account, names, refs):
        def like(pattern, values):
            return not pattern or any(fnmatch.fnmatchcase(v, pattern) for v in values if v)

        kind = self.type if self.on == "callback" else self.operation
        return like(self.account, [account]) and like(kind, names) and like(self.order, refs)


class Script:
    """The rules in force. Each match counts in every rule; the first rule that applies wins."""

    def __init__(self):
        self._lock = threading.Lock()
        self._rules = []
        self._made = 0

    def add(self, document):
        rule = take(Rule, document, "rule")
        with self._lock:
            self._made += 1
            rule.id = rule.id or f"rule-{self._made}"
            self._rules.append(rule)
        return rule

    def clear(self, rule_id=None):
        with self._lock:
            self._rules = [r for r in self._rules if rule_id and r.id != rule_id]

    def find(self, on, account, names, refs):
        found = None
        with self._lock:
            for rule in self._rules:
                if rule.on != on or not rule.matches(account, names, refs):
                    continue
                rule.matched += 1
                spent = rule.times and rule.applied >= rule.times
                if found or spent or (rule.nth and rule.matched != rule.nth):
                    continue
                rule.applied += 1
                found = rule
        return found

    def listing(self):
        with self._lock:
            return [dict(vars(rule)) for rule in self._rules]


class Ledger:
    """What really happened to money. Append only. Amounts in the PSP's unit and in ISO 4217 minor units."""

    # kind of an entry -> what it adds to, and with which sign
    SUMS = {
        "authorize": ("authorized_minor", 1),
        "charge": ("charged_minor", 1),
        "capture": ("charged_minor", 1),
        "release": ("released_minor", 1),
        "cancel": ("released_minor", 1),
        "refund": ("refunded_minor", 1),
        "refund_reversed": ("refunded_minor", -1),
        "dispute_withdrawn": ("withdrawn_minor", 1),
        "dispute_reinstated": ("withdrawn_minor", -1),
    }
    COUNTS = {"charge": "charges", "capture": "charges", "refund": "refunds", "dispute_withdrawn": "withdrawals"}

    def __init__(self):
        self._lock = threading.Lock()
        self._entries = []

    def add(self, **entry):
        with self._lock:
            entry["n"] = len(self._entries) + 1
            entry["at"] = time.time()
            self._entries.append(entry)

    def entries(self, account=None, order=None):
        with self._lock:
            return [
                dict(e)
                for e in self._entries
                if account in (None, "", e["account"]) and order in (None, "", e["order"])
            ]

    def totals(self, account=None, order=None):
        """One row per order: how often and how much money was taken, paid back and withdrawn."""
        return self._sum(("account", "order"), account, order)

    def objects(self, account=None, order=None):
        """The same per object of the PSP: a charge, a refund, a dispute."""
        return self._sum(("account", "order", "object"), account, order)

    def _sum(self, names, account, order):
        rows = {}
        for e in self.entries(account, order):
            row = rows.setdefault(
                tuple(e[name] for name in names),
                {**{name: e[name] for name in names}, "currency": e["currency"],
                 **dict.fromkeys([*self.COUNTS.values(), *(name for name, _ in self.SUMS.values())], 0)},
            )  # fmt: skip
            name, sign = self.SUMS[e["kind"]]
            row[name] += sign * e["amount_minor"]
            if e["kind"] in self.COUNTS:
                row[self.COUNTS[e["kind"]]] += 1
        return list(rows.values())


class RequestLog:
    """Every API call: what it asked and how it was answered."""

    def __init__(self):
        self._lock = threading.Lock()
        self._rows = []

    def open(self, req):
        row = {
            "at": time.time(),
            "connection": req.connection,
            "method": req.method,
            "path": req.path,
            "query": req.query,
            "account": req.account.id if req.account else None,
            "operation": req.operation,
            "order": req.refs[0] if req.refs else None,
            "refs": list(req.refs),
            "idempotency_key": req.key,
            "params": req.params,
            "body_sha256": hashlib.sha256(req.body).hexdigest(),
            "rule": None,
            "executed": False,
            "replayed": False,
            "status": None,
            "answered": "open",
        }
        with self._lock:
            row["n"] = len(self._rows) + 1
            self._rows.append(row)
        return row

    def rows(self, account=None, order=None, operation=None):
        with self._lock:
            return [
                dict(r)
                for r in self._rows
                if account in (None, "", r["account"])
                and (order in (None, "") or order in r["refs"])
                and operation in (None, "", r["operation"])
            ]


class IdempotencyKeys:
    """First outcome per key. The PSP words the refusals; this says which of four cases it is."""

    NEW, REPLAY, OTHER_PARAMETERS, IN_FLIGHT = "new", "replay", "other_parameters", "in_flight"

    def __init__(self, ttl_s):
        self._lock = threading.Lock()
        self._slots = {}
        self._ttl_s = ttl_s

    def begin(self, scope, digest):
        now = time.time()
        with self._lock:
            slot = self._slots.get(scope)
            if slot is None or now - slot["at"] > self._ttl_s:
                self._slots[scope] = {"digest": digest, "answer": None, "at": now}
                return self.NEW, None
            if slot["digest"] != digest:
                return self.OTHER_PARAMETERS, None
            if slot["answer"] is None:
                return self.IN_FLIGHT, None
            return self.REPLAY, slot["answer"]

    def store(self, scope, answer):
        with self._lock:
            self._slots[scope]["answer"] = answer

    def forget(self, scope):
        """Nothing was executed: the key is as if never seen."""
        with self._lock:
            self._slots.pop(scope, None)


class Psp:
    """What one PSP must bring. All but sign() and with_amount(), which use only their arguments, run under
    World.lock, so they need no lock of their own."""

    name = ""
    prefix = "/"  # of its API paths
    retry_pauses_s = (60,)  # between tries of one callback, before World.speed divides them

    def __init__(self, world):
        self.world = world

    def identify(self, req):
        """Fill the second half of req. Return an Answer to refuse the caller, else None."""
        raise NotImplementedError

    def begin(self, req):
        """Idempotency. Return (Answer, replayed) to end here, else (None, False)."""
        raise NotImplementedError

    def execute(self, req, rule):
        """Do it: ledger, callbacks. Return the Answer, and let later calls with the same key see it."""
        raise NotImplementedError

    def remember(self, req, answer):
        """The stored outcome of this key is to be `answer` (a 500 that was sent is replayed as well)."""
        raise NotImplementedError

    def refuse(self, req, status, code=None, retry_after_s=0):
        raise NotImplementedError

    def server_error(self, status):
        raise NotImplementedError

    def with_amount(self, body, amount):
        """A copy of an answer or event that names another amount."""
        raise NotImplementedError

    def advance(self, account, document):
        """POST /_control/advance: the payment goes on at the PSP, without a request."""
        raise NotImplementedError

    def console(self, account, document):
        """POST /_control/console: the merchant's people act at the PSP, past us."""
        raise NotImplementedError

    def dispute(self, account, document):
        """POST /_control/dispute: the customer's bank objects to a charge."""
        raise NotImplementedError

    def event(self, account, document):
        """POST /_control/callback: an event about an object as it is now, as (event, refs)."""
        raise NotImplementedError

    def sign(self, account, body, at, how):
        """Headers of one callback try. `how`: "" = right; else one of the forgeries every PSP should know:
        unsigned, signature (random), secret (another one), stale and future (at is already shifted)."""
        raise NotImplementedError


@dataclass
class Settings:
    speed: float = 600.0  # how much faster than the real PSP callbacks are retried
    callback_delay_ms: int = 20
    callback_timeout_ms: int = 10000
    search_lag_ms: int = 0
    idempotency_ttl_s: float = 86400.0
    ca_file: str = ""  # trusted for https callback URLs


class World:
    """Everything the process knows. `lock` guards the PSPs' objects; the parts below guard themselves."""

    def __init__(self, settings, psps, deliveries):
        self.settings = settings
        self.lock = threading.RLock()
        self.stopping = threading.Event()
        self.accounts = {}
        self.script = Script()
        self.ledger = Ledger()
        self.log = RequestLog()
        self.deliveries = deliveries(self)
        self.psps = {cls.name: cls(self) for cls in psps}

    def put_account(self, document):
        account = take(Account, document, "account")
        if account.psp not in self.psps:
            raise Refused(f"account {account.id}: no PSP {account.psp!r}")
        with self.lock:  # in place: payments hold on to their account
            vars(self.accounts.setdefault(account.id, account)).update(vars(account))
        return account

    def account(self, account_id):
        with self.lock:
            if account_id not in self.accounts:
                raise Refused(f"no account {account_id!r}")
            return self.accounts[account_id]

    def psp_of_path(self, path):
        return next((p for p in self.psps.values() if path.startswith(p.prefix)), None)

    def emit(self, account, event, refs):
        """A PSP says that something happened; the script decides what becomes of the callback."""
        self.deliveries.schedule(account, event, refs)
