# SPDX-License-Identifier: Apache-2.0
"""One seed from its schedule to its verdict: start the world, load and faults at once, heal, wait until every payment has
come to its end, judge, stop everything in order."""

import time

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

import judge
from faults import Actor
from load import Load
from payfact_stack import ACCOUNT_B, Stack
from procs import wait_for
from schedule import MEMBERS, THRESHOLD_MINOR, base_of
from servers import TOPICS

START_S, FAULTS_S, SETTLE_S = 60, 90, 90
ASKED_AFTER_THE_END = (
    "SELECT FROM payment_deadline d JOIN (SELECT capture_id AS id, status FROM capture_order UNION ALL SELECT refund_id, status "
    "FROM refund_order) x ON x.id = d.aggregate_id WHERE d.kind = 'QUERY' AND x.status IN ('SUCCEEDED', 'FAILED', 'CANCELED', 'REVERSED')"
)

# Patience of seconds where production has minutes, so that a seed ends soon.
SETTINGS = {
    "webhook": {},
    "relay": {"SESSION_TIMEOUT_MS": 6000},
    "psp": {"SESSION_TIMEOUT_MS": 6000, "BREAKER_OPEN_MS": 500, "RETRY_FIRST_MS": 100, "RETRY_MAX_MS": 500},
    "processor": {"SESSION_TIMEOUT_MS": 6000, "RETRY_MAX_MS": 500, "ORPHAN_FIRST_MS": 200},
    "publisher": {"SWEEP_MS": 300},
    "recovery": {"LEASE_MS": 1500, "POLL_MS": 100, "ORPHAN_FIRST_MS": 200, "ORPHAN_MAX_MS": 1000, "PRODUCE_TIMEOUT_MS": 1500},
}


class CrashStack(Stack):
    """A stack whose schema and topics may come later than its services."""

    late = False

    def _make_schema(self):
        if not self.late:
            super()._make_schema()

    def _make_topics(self):
        if not self.late:
            super()._make_topics()

    def make_the_rest(self):
        self.late = False
        self._make_schema()
        self._make_topics()


class Result:
    def __init__(self, schedule):
        self.seed, self.schedule = schedule.seed, schedule
        self.problems, self.hits, self.ends, self.phases = [], [], {}, {}


def accounts_of(schedule):
    def edit(document):
        for account in document["psp_accounts"]:
            account["timeouts_ms"] = {"connect": 500, "total": 1000}
            account["unknown"].update(send_window_s=schedule.send_window_s, answer_s=2, query_max_s=2, person_after_s=3600)
        merchant = document["merchants"][0]
        merchant["manual_capture"] = True
        merchant["refund_threshold_minor"] = {"EUR": {"per_payment": THRESHOLD_MINOR, "per_day": 1000 * THRESHOLD_MINOR}}

    return edit


class Run:
    def __init__(self, schedule, servers, keep, always=False):
        """keep: the folder that gets the logs of a failed seed; of every one if `always`."""
        self.schedule, self.servers, self.keep, self.always = schedule, servers, keep, always
        self.result = Result(schedule)

    def __call__(self):
        self._began = time.monotonic()
        schedule = self.schedule
        redis = schedule.redis != "none"
        psp = {"speed": 1200, "callback_timeout_ms": 2000, "search_lag_ms": schedule.search_lag_ms}
        try:
            stack = CrashStack(self.servers, redis=redis, settings=SETTINGS, psp=psp, edit=accounts_of(schedule))
            stack.late = schedule.early == "schema"
            with stack:
                self.actor = Actor(stack, self.servers, schedule)
                try:
                    self._live(stack)
                except AssertionError as error:  # a wait that did not end
                    self.result.problems.append(str(error))
                self.result.hits = self.actor.hits
                self.result.problems += self.actor.problems
                if self.result.problems or self.always:
                    self._keep(stack)
                self._forget(stack)
        except Exception as error:  # the next seeds go on
            self.result.problems.append(f"{type(error).__name__}: {error}")
        self._lap("stop")
        return self.result

    def _lap(self, phase):
        now = time.monotonic()
        self.result.phases[phase], self._began = now - self._began, now

    # ---- the run

    def _live(self, stack):
        self._make_services(stack)
        self._start(stack)
        load = Load(stack, self.schedule)
        load.prepare()
        self._lap("start")
        load.start()
        self.actor.start()
        span_s = self.schedule.span_ms / 1000
        wait_for("the faults are over", lambda: self._faults_over(span_s), span_s + FAULTS_S, pause_s=0.01)
        self._lap("faults")
        try:
            self.actor.heal()
            self._lap("heal")
            self._settle(stack, load)
            self._lap("settle")
        finally:
            load.stop()
            self.result.problems += load.problems + load.merchant.problems
        self.result.problems += judge.differences(stack, load)
        self.result.ends = _ends(stack)
        self._lap("judge")
        self._stop(stack)

    def _make_services(self, stack):
        for instance in self.schedule.instances():
            base = base_of(instance)
            more = {"GROUP_INSTANCE_ID": instance} if self.schedule.static and base in MEMBERS else {}
            more |= {"LEASE_MS": self.schedule.publisher_lease_ms} if base == "publisher" else {}
            stack.service(base, instance=None if instance == base else instance, **more)
            self.actor.arm(instance)
        if self.schedule.replicas == 2:  # each account's callbacks come to a webhook of their own
            second = next(a for a in stack.psp_accounts if a["id"] == ACCOUNT_B)
            port = stack.services["webhook-2"].env["PAYFACT_HTTP_PORT"]
            stack.psp.put_account({**second, "callback_url": f"http://127.0.0.1:{port}/callbacks/{ACCOUNT_B}"})

    def _faults_over(self, span_s):
        self.actor.tick()
        return time.monotonic() - self.actor.began >= span_s and self.actor.settled()

    def _start(self, stack):
        if self.schedule.redis == "dead":
            stack.redis.stop()
        make_it_late = self._take_away(stack)
        for service in stack.services.values():
            service.start(ready=False)
        if make_it_late:
            self._wait_until_they_wait(stack)
            make_it_late()
        for name, service in stack.services.items():
            wait_for(f"{name} is ready", lambda s=service: (self.actor.tick(), s.alive() and s.get("/readyz")[0] == 200)[1], START_S)

    def _take_away(self, stack):
        """What is not there yet when the services start; returns what brings it, or None."""
        if self.schedule.early == "schema":
            return stack.make_the_rest
        if self.schedule.early == "pg":
            self.servers.pg.halt()
            return self.servers.start_pg
        if self.schedule.early == "kafka":
            self.servers.kafka.crash()
            return self.servers.kafka.start
        return None

    def _wait_until_they_wait(self, stack):
        """Each is up and says that it is not ready, and not by its own death."""
        without = {"pg": (), "kafka": ("publisher",), "schema": ("processor",)}[self.schedule.early]
        for name, service in stack.services.items():
            wait_for(f"{name} is up", lambda s=service: (self.actor.tick(), s.get("/healthz")[0] == 200)[1], START_S)
            if base_of(name) in without:
                assert service.get("/readyz")[0] == 503, f"{name} is ready without {self.schedule.early}"

    def _settle(self, stack, load):
        """Every payment has come to its end, and nothing is on its way any more."""
        stack.psp.clear_script()
        left = ["not asked yet"]

        def done():
            self.actor.tick()
            left[:] = _unfinished(stack, load) + load.merchant.unfinished()
            return not left

        try:
            wait_for("every payment has an end", done, SETTLE_S, pause_s=0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}; {len(left)} have none: {left[:5]}") from None
        load.stop()
        stack.psp.release()  # what the PSP had kept comes at last: all of it is known
        stack.idle(each=self.actor.tick)
        if not self.actor.settled():  # one died at its kill point on the way here
            self.actor.heal()
            stack.idle(each=self.actor.tick)
        wait_for("what is over has its answers", lambda: not stack.sql(ASKED_AFTER_THE_END), SETTLE_S, pause_s=0.1)

    def _stop(self, stack):
        """Asked to end, each ends by itself, with 0 (or at the kill point that it had not come to before)."""
        for service in stack.services.values():
            service.ask_to_stop()
        for name, service in stack.services.items():
            code = service.stop()
            if code != 0 and not (code == -9 and "PAYFACT_FAULT" in service.env):
                self.result.problems.append(f"{name} ended with {code} when it was asked to:\n{service.tail(5)}")

    def _forget(self, stack):
        """The broker lives on: what this seed put on it goes."""
        admin = AdminClient({"bootstrap.servers": stack.brokers, "log_level": 2})
        for deleted in admin.delete_topics([stack.topic_name(name) for name in TOPICS]).values():
            try:
                deleted.result(20)
            except KafkaException as error:  # a seed that ended early may not have all
                if self.result.problems == []:
                    self.result.problems.append(f"a topic was not deleted: {error}")

    def _keep(self, stack):
        """What was going on, with the schedule and what differs."""
        stack.keep(self.keep)
        (self.keep / "schedule.txt").write_text(self.schedule.text() + "\n")
        (self.keep / "problems.txt").write_text("\n".join(self.result.problems) + "\n")


def _unfinished(stack, load):
    rows = {r["payment_id"]: r for r in stack.sql(
        "SELECT o.payment_id, o.status, (SELECT string_agg(a.attempt_id || ' ' || a.status, ', ') FROM payment_attempt a "
        "WHERE a.payment_id = o.payment_id) AS attempts FROM payment_order o"
    )}  # fmt: skip
    final = {"SUCCEEDED", "FAILED", "CANCELED", "EXPIRED"}
    left = []
    for payment in load.payments:
        row = rows.get(payment.payment_id)
        ends = final | ({"REQUIRES_ACTION"} if payment.kind == "page_open" else set())
        if row is None or row["status"] not in ends:
            left.append(f"{payment.payment_id} ({payment.kind}): {row and (row['status'], row['attempts'])}")
    return left


def _ends(stack):
    return {r["what"]: r["n"] for r in stack.sql(
        "SELECT status AS what, count(*) AS n FROM payment_order GROUP BY status "
        "UNION ALL SELECT 'captures ' || status, count(*) FROM capture_order GROUP BY status "
        "UNION ALL SELECT 'refunds ' || status, count(*) FROM refund_order GROUP BY status ORDER BY 1"
    )}  # fmt: skip
