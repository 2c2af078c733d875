# SPDX-License-Identifier: Apache-2.0
"""Carries a schedule's faults out. Processes of payfact are handled by the caller's thread alone (a process dies with the
thread that started it); what waits for a server has a thread of its own, so that faults overlap as the schedule says.
"""

import signal
import threading
import time

from clocks import Clock
from procs import wait_for
from schedule import BACK_MS_MAX, DATABASE

REVIVE_MS = 300  # what died at a kill point comes back after this, as a supervisor would bring it


class Actor:
    """tick() often, until settled(); heal() ends everything that still lasts."""

    def __init__(self, stack, servers, schedule):
        self.stack, self.servers, self.schedule = stack, servers, schedule
        self.problems, self.hits = [], []
        self._due = []  # (monotonic time, what to call)
        self._threads = []
        self._armed = {}  # instance -> point it is to die at
        self._pg_lock, self._kafka_lock = threading.Lock(), threading.Lock()
        self._clocks = {DATABASE: servers.pg_clock}

    def start(self):
        self.began = time.monotonic()
        for fault in self.schedule.faults:
            if not (fault.kind == "point" and fault.at_ms == 0):  # armed() has started those
                self._after(fault.at_ms, lambda f=fault: getattr(self, f"_{f.kind}")(f))

    def tick(self):
        self._watch()
        now = time.monotonic()
        due = sorted((row for row in self._due if row[0] <= now), key=lambda row: row[0])
        self._due = [row for row in self._due if row[0] > now]
        for _, act in due:
            act()

    def settled(self):
        return not self._due and not any(t.is_alive() for t in self._threads)

    def heal(self):
        """Everything is there again and says that it is ready."""
        wait_for("the faults are over", lambda: (self.tick(), self.settled())[1], 90)
        for service in self.stack.services.values():
            service.thaw()
        self._set_clocks_right()
        for service in self.stack.services.values():
            wait_for(f"{service.name} is ready", lambda s=service: (self.tick(), s.alive() and s.get("/readyz")[0] == 200)[1], 60)

    def _after(self, after_ms, act):
        self._due.append((time.monotonic() + after_ms / 1000, act))

    def _in_thread(self, what, *arguments):
        def guarded():
            try:
                what(*arguments)
            except Exception as error:  # the seed fails with it
                self.problems.append(f"fault {what.__name__}: {type(error).__name__}: {error}")

        thread = threading.Thread(target=guarded, daemon=True)
        self._threads.append(thread)
        thread.start()

    # ---- processes

    def arm(self, instance):
        """Before the first start: the points that this instance is to die at from the beginning, and its clock."""
        if self.schedule.clocks:
            self._clocks[instance] = Clock(self.stack.dir, instance)
            self.stack.services[instance].env.update(self._clocks[instance].env())
        for fault in self.schedule.faults:
            if fault.kind == "point" and fault.at_ms == 0 and fault.who == instance:
                self._set_point(fault)

    def _set_point(self, fault):
        self.stack.services[fault.who].env["PAYFACT_FAULT"] = fault.detail
        self._armed[fault.who] = fault

    def _disarm(self, instance):
        self.stack.services[instance].env.pop("PAYFACT_FAULT", None)
        return self._armed.pop(instance, None)

    def _revive(self, instance):
        service = self.stack.services[instance]
        if not service.alive():
            service.start(ready=False)

    def _watch(self):
        """Who ended by itself: at its kill point it is brought back, else it is a failure of its own."""
        for name, service in self.stack.services.items():
            code = service.ended_by_itself()
            if code is None:
                continue
            service.was_seen()
            fault = self._disarm(name)
            if code == -signal.SIGKILL and fault:
                self.hits.append(fault)
                self._after(fault.for_ms or REVIVE_MS, lambda n=name: self._revive(n))
            elif self._was_fenced(service):
                self._after(REVIVE_MS, lambda n=name: self._revive(n))
            else:
                self.problems.append(f"{name} ended by itself with {code}:\n{service.tail(5)}")
                self._after(REVIVE_MS, lambda n=name: self._revive(n))

    def _was_fenced(self, service):
        """A static member whose broker was killed may find its name given to what it was before: it ends by design (no two
        processes may have one name), and its supervisor starts it again."""
        brokers_die = any(f.kind in ("kafka_crash", "broker_crash") for f in self.schedule.faults)
        return self.schedule.static and brokers_die and "FENCED_INSTANCE_ID" in service.tail(3)

    def _kill9(self, fault):
        service = self.stack.services[fault.who]
        self._disarm(fault.who)
        service.kill9()
        self._after(fault.for_ms, lambda: self._revive(fault.who))

    def _point(self, fault):
        service = self.stack.services[fault.who]
        service.kill9()
        self._set_point(fault)
        self._after(50, lambda: self._revive(fault.who))

    def _restart(self, fault):
        """SIGTERM: it leaves its group, and the others get its partitions in the middle of their work."""
        service = self.stack.services[fault.who]
        if not service.alive():
            return  # another fault has it, and brings it back
        if not service.takes_sigterm():
            self._after(10, lambda: self._restart(fault))  # another fault has only just started it
            return
        service.ask_to_stop()

        def again():
            if service.alive():
                self._after(50, again)
            else:
                if service.exit_status() not in (0, -signal.SIGKILL):
                    self.problems.append(f"{fault.who} ended with {service.exit_status()} after SIGTERM:\n{service.tail(5)}")
                self._revive(fault.who)

        self._after(50, again)

    def _freeze(self, fault):
        service = self.stack.services[fault.who]
        service.freeze()
        self._after(fault.for_ms, service.thaw)

    # ---- servers

    def _pg_crash(self, fault):
        self._in_thread(self._crash_pg, fault.for_ms)

    def _crash_pg(self, down_ms):
        with self._pg_lock:
            self.servers.pg.crash()
            time.sleep(down_ms / 1000)
            self.servers.start_pg()

    def _pg_crash_in_commit(self, fault):
        """COMMITs are durable and not answered when it goes: they wait for a standby that there is not."""
        self._in_thread(self._crash_in_commit, fault)

    def _crash_in_commit(self, fault):
        with self._pg_lock:
            if self._hold_commits():
                self.hits.append(fault)
            self.servers.admin("ALTER SYSTEM RESET synchronous_standby_names")  # in force after the start
            self.servers.pg.crash()
            time.sleep(fault.for_ms / 1000)
            self.servers.start_pg()

    def _pg_commit_lost(self, fault):
        """The same without the crash: only the connections end, between a durable COMMIT and its answer."""
        self._in_thread(self._lose_commits, fault)

    def _lose_commits(self, fault):
        with self._pg_lock:
            if self._hold_commits():
                self.hits.append(fault)
            self.servers.admin("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
            self.servers.admin("ALTER SYSTEM RESET synchronous_standby_names")
            self.servers.admin("SELECT pg_reload_conf()")

    def _hold_commits(self):
        """True when a COMMIT of this database waits for its answer."""
        self.servers.admin("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        self.servers.admin("SELECT pg_reload_conf()")
        waiting = f"SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = '{self.stack.database}'"
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            if self.servers.admin(waiting):
                return True
            time.sleep(0.01)
        return False

    def _pg_backends(self, fault):
        self._in_thread(self._end_backends)

    def _end_backends(self):
        with self._pg_lock:
            self.servers.admin("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'payfact%_login' "
                               f"AND datname = '{self.stack.database}'")  # fmt: skip

    def _kafka_crash(self, fault):
        self._in_thread(self._crash_kafka, fault)

    def _crash_kafka(self, fault):
        with self._kafka_lock:
            self.servers.kafka.crash()
            time.sleep(fault.for_ms / 1000)
            self.servers.kafka.start()

    def _broker_crash(self, fault):
        self._in_thread(self._crash_broker, fault)

    def _crash_broker(self, fault):
        with self._kafka_lock:
            self.servers.kafka.crash(fault.detail)
            time.sleep(fault.for_ms / 1000)
            self.servers.kafka.restart(fault.detail)

    def _redis_stop(self, fault):
        self.stack.redis.process.kill9()
        self._after(fault.for_ms, self.stack.redis.start)

    def _redis_flush(self, fault):
        self.stack.redis.command("FLUSHALL")

    def _redis_slow(self, fault):
        """Every command is answered only after this time."""
        self.stack.redis.command("CLIENT", "PAUSE", str(fault.for_ms), "ALL")

    def _psp_away(self, fault):
        self._in_thread(self._psp_goes, fault)

    def _psp_goes(self, fault):
        self.stack.psp.api(fault.detail)
        time.sleep(fault.for_ms / 1000)
        self.stack.psp.api("up")

    # ---- clocks

    def _clock(self, fault):
        clock = self._clocks[fault.who]
        clock.set(clock.offset_ms + round(float(fault.detail.rstrip("s")) * 1000))

    def _set_clocks_right(self):
        """A step back by more than a few seconds would make waits for the wall clock as long: such a process starts anew."""
        for who, clock in self._clocks.items():
            far = clock.offset_ms > BACK_MS_MAX and who != DATABASE
            if far:
                self.stack.services[who].kill9()
            clock.set(0)
            if far:
                self._revive(who)
