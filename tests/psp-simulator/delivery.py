# SPDX-License-Identifier: Apache-2.0
"""Callbacks: one thread that knows what is due, a short-lived thread per try, and the faults of the script.

A callback is repeated with the PSP's growing pauses (divided by Settings.speed) until a 2xx answers it or the
pauses are used up. Forged ones are sent once: an attacker does not wait.
"""

import heapq
import http.client
import itertools
import json
import ssl
import threading
import time
import urllib.parse

from core import Refused

SKEW_S = 3600  # how far a stale or future time stamp is off
OPEN_STATES = ("waiting", "sending")


class Delivery:
    """One copy of one callback and its tries."""

    _numbers = itertools.count(1)

    def __init__(self, account, event, refs, url):
        self.id = next(self._numbers)
        self.account = account
        self.event = event
        self.refs = refs
        self.url = url
        self.forged = ""  # how, see Psp.sign; "amount" and "account" are made here
        self.tamper = 0  # amount put in after signing
        self.rule = None
        self.state = "waiting"
        self.tries = []
        self.barrier = None  # copies that leave together
        self.after = None  # the delivery that must be answered first
        self.headers = None  # sent as they are, for a callback written by hand
        self.raw = None
        self.retry = True
        self.listed = False

    def listing(self):
        return {
            "id": self.id,
            "account": self.account.id,
            "event_id": self.event.get("id") if isinstance(self.event, dict) else None,
            "type": self.event.get("type") if isinstance(self.event, dict) else None,
            "order": self.refs[0] if self.refs else None,
            "refs": self.refs,
            "url": self.url,
            "forged": self.forged,
            "rule": self.rule,
            "state": self.state,
            "tries": list(self.tries),
        }


class Deliveries:
    def __init__(self, world):
        self.world = world
        self._cond = threading.Condition()
        self._all = []
        self._heap = []
        self._order = itertools.count()
        self._held = {}  # rule id -> deliveries that wait for their number (reorder)
        self._thread = threading.Thread(target=self._run, name="callbacks", daemon=True)
        self._thread.start()

    # ---- what the PSPs and the control endpoint call

    def schedule(self, account, event, refs):
        rule = self.world.script.find("callback", account.id, [event.get("type", "")], refs)
        delay_s = self.world.settings.callback_delay_ms / 1000
        first = Delivery(account, event, refs, account.callback_url)
        if not rule:
            self._start([first], delay_s)
            return
        copies = [first]
        if rule.has("wrong_amount"):
            first.event = self.world.psps[account.psp].with_amount(event, rule.amount)
        if rule.has("forge"):
            self.forge(first, rule.how or "signature", rule.amount, rule.to_account)
        if rule.has("duplicate"):
            copies += [self._copy(first) for _ in range(rule.copies - 1)]
            self._together(copies)
        for delivery in copies:
            delivery.rule = rule.id
        if rule.has("withhold"):
            self._keep(copies, "withheld")
        elif rule.has("reorder"):
            self._reorder(rule, copies)
        else:
            self._start(copies, delay_s + (rule.delay_ms / 1000 if rule.has("delay") else 0))

    def send_now(self, deliveries, wait_s):
        """For callbacks made by hand: start at once, wait for the answers of the first try."""
        self._start(deliveries, 0)
        deadline = time.monotonic() + wait_s
        with self._cond:
            self._cond.wait_for(
                lambda: all(d.tries or d.state not in OPEN_STATES for d in deliveries),
                max(0, deadline - time.monotonic()),
            )
            return [d.listing() for d in deliveries]

    def release(self, order=None, event_type=None, newest_first=False):
        """Let go what was withheld or waits for its number; returns how many."""
        with self._cond:
            held = [
                d
                for d in self._all
                if d.state in ("withheld", "collected")
                and order in (None, "", *d.refs)
                and (not event_type or d.event.get("type") == event_type)
            ]
            for waiting in self._held.values():
                waiting[:] = [d for d in waiting if d not in held]
            if newest_first:
                held.reverse()
            for delivery in held:
                delivery.state = "waiting"
        self._chain(held)
        self._start(held, 0)
        return len(held)

    def drain(self, timeout_s, account=None, order=None):
        """Wait until nothing is due any more; what is withheld does not count. Returns how many are still open."""

        def still_open():
            return sum(
                d.state in OPEN_STATES and account in (None, "", d.account.id) and order in (None, "", *d.refs)
                for d in self._all
            )

        with self._cond:
            self._cond.wait_for(lambda: still_open() == 0 or self.world.stopping.is_set(), timeout_s)
            return still_open()

    def listing(self, account=None, order=None, event_type=None):
        with self._cond:
            return [
                d.listing()
                for d in self._all
                if account in (None, "", d.account.id)
                and (order in (None, "") or order in d.refs)
                and (not event_type or (isinstance(d.event, dict) and d.event.get("type") == event_type))
            ]

    def stop(self):
        with self._cond:
            self._cond.notify_all()
        self._thread.join(timeout=5)

    def forge(self, delivery, how, amount, to_account):
        """Turn a delivery into an attack."""
        known = ("unsigned", "signature", "secret", "stale", "future", "amount", "account")
        if how not in known:
            raise Refused(f"forge: how is one of {known}")
        delivery.forged, delivery.retry = how, False
        if how == "amount":
            delivery.tamper = amount or 1
        if how == "account":
            delivery.url = self.world.account(to_account).callback_url

    def _copy(self, delivery):
        copy = Delivery(delivery.account, delivery.event, delivery.refs, delivery.url)
        copy.forged, copy.tamper, copy.retry = delivery.forged, delivery.tamper, delivery.retry
        copy.headers, copy.raw = delivery.headers, delivery.raw
        return copy

    def copies(self, delivery, number):
        """`number` deliveries of the same bytes that leave at the same moment."""
        made = [delivery] + [self._copy(delivery) for _ in range(number - 1)]
        self._together(made)
        return made

    # ---- scheduling

    @staticmethod
    def _together(deliveries):
        barrier = threading.Barrier(len(deliveries))
        for delivery in deliveries:
            delivery.barrier = barrier

    @staticmethod
    def _chain(deliveries):
        for earlier, later in zip(deliveries, deliveries[1:]):
            later.after = earlier

    def _reorder(self, rule, copies):
        self._keep(copies, "collected")
        with self._cond:
            waiting = self._held.setdefault(rule.id, [])
            waiting += copies
            if len(waiting) < rule.count:
                return
            ready, self._held[rule.id] = waiting[::-1], []
            for delivery in ready:
                delivery.state = "waiting"
        self._chain(ready)
        self._start(ready, 0)

    def _keep(self, deliveries, state):
        with self._cond:
            for delivery in deliveries:
                delivery.state = state
                self._list(delivery)

    def _start(self, deliveries, delay_s):
        with self._cond:
            for delivery in deliveries:
                self._list(delivery)
                if not delivery.url:
                    delivery.state = "no_url"
                    continue
                self._push(delivery, delay_s)
            self._cond.notify_all()

    def _list(self, delivery):
        if not delivery.listed:
            delivery.listed = True
            self._all.append(delivery)

    def _push(self, delivery, delay_s):
        delivery.state = "waiting"
        heapq.heappush(self._heap, (time.monotonic() + delay_s, next(self._order), delivery))

    def _run(self):
        while not self.world.stopping.is_set():
            with self._cond:
                now = time.monotonic()
                if not self._heap or self._heap[0][0] > now:
                    self._cond.wait(min(1.0, self._heap[0][0] - now) if self._heap else 1.0)
                    continue
                delivery = heapq.heappop(self._heap)[2]
                if delivery.after and delivery.after.state in OPEN_STATES and not delivery.after.tries:
                    heapq.heappush(self._heap, (now + 0.01, next(self._order), delivery))
                    continue
                delivery.state = "sending"
            threading.Thread(target=self._try, args=(delivery,), daemon=True).start()

    # ---- one try

    def _try(self, delivery):
        outcome = {"at": time.time(), "status": None, "error": None, "body": None}
        try:
            self._send(delivery, outcome)
        except (OSError, http.client.HTTPException) as error:
            outcome["error"] = f"{type(error).__name__}: {error}"
        outcome["ms"] = round((time.time() - outcome["at"]) * 1000)
        with self._cond:
            delivery.tries.append(outcome)
            self._settle(delivery, outcome)
            self._cond.notify_all()

    def _settle(self, delivery, outcome):
        pauses = self.world.psps[delivery.account.psp].retry_pauses_s
        if outcome["status"] and 200 <= outcome["status"] <= 299:
            delivery.state = "delivered"
        elif not delivery.retry or len(delivery.tries) > len(pauses):
            delivery.state = "gave_up"
        else:
            self._push(delivery, pauses[len(delivery.tries) - 1] / self.world.settings.speed)

    def _prepare(self, delivery):
        """Body and headers of this try: each try is signed anew."""
        if delivery.raw is not None:
            body = delivery.raw
        else:
            body = json.dumps(delivery.event, indent=2, ensure_ascii=False).encode()
        psp = self.world.psps[delivery.account.psp]
        shift = {"stale": -SKEW_S, "future": SKEW_S}.get(delivery.forged, 0)
        headers = psp.sign(delivery.account, body, int(time.time()) + shift, delivery.forged)
        if delivery.tamper:
            body = json.dumps(psp.with_amount(delivery.event, delivery.tamper), indent=2).encode()
        return body, {"Content-Type": "application/json; charset=utf-8", **headers, **(delivery.headers or {})}

    def _send(self, delivery, outcome):
        url = urllib.parse.urlsplit(delivery.url)
        timeout_s = self.world.settings.callback_timeout_ms / 1000
        if url.scheme == "https":
            context = ssl.create_default_context(cafile=self.world.settings.ca_file or None)
            connection = http.client.HTTPSConnection(url.netloc, timeout=timeout_s, context=context)
        else:
            connection = http.client.HTTPConnection(url.netloc, timeout=timeout_s)
        try:
            self._connect(connection, delivery)
            body, headers = self._prepare(delivery)
            path = url.path + ("?" + url.query if url.query else "")
            connection.request("POST", path or "/", body=body, headers=headers)
            response = connection.getresponse()
            outcome["body"] = response.read(4096).decode("utf-8", "replace")
            outcome["status"] = response.status
        finally:
            connection.close()

    @staticmethod
    def _connect(connection, delivery):
        barrier, delivery.barrier = delivery.barrier, None  # only the first try is simultaneous
        try:
            connection.connect()
        except OSError:
            if barrier:
                barrier.abort()
            raise
        if barrier:
            try:
                barrier.wait(timeout=5)
            except threading.BrokenBarrierError:
                pass  # another copy could not connect; this one goes alone
