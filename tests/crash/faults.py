# SPDX-License-Identifier: Apache-2.0
"""Carries a schedule's faults out. Processes of payfact are handled by the caller's thread alone (a process dies with the
thread that started it); what waits for a server has a thread of its own, so that faults overlap as the schedule says.
"""

import signal
import threading
import time

from procs import wait_for

REVIVE_MS = 300  # what died at a kill point comes back after this, as a supervisor would bring it


class Actor:
    """tick() often, until settled(); heal() ends everything that still lasts."""

    def __init__(self, stack, servers, schedule):
        self.stack, self.servers, self.schedule = stack, servers, schedule
        self.problems, self.hits = [], []
        self._due = []  # (monotonic time, what to call)
        self._threads = []
        self._armed = {}  # instance -> point it is to die at

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
        wait_for("the faults are over", lambda: (self.tick(), self.settled())[1], 60)
        for service in self.stack.services.values():
            service.thaw()
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
        """Before the first start: the points that this instance is to die at from the beginning."""
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
            else:
                self.problems.append(f"{name} ended by itself with {code}:\n{service.tail(5)}")
                self._after(REVIVE_MS, lambda n=name: self._revive(n))

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
