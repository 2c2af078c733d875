# SPDX-License-Identifier: Apache-2.0
"""Processes, ports and deadlines. Nothing is ended that was not started here, and nothing outlives this process."""

import ctypes
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import time

SCALE = float(os.environ.get("PAY_TEST_TIME_SCALE", "1"))  # a slow machine multiplies every deadline
STOP_S = 30
PR_SET_PDEATHSIG = 1
# Two runs beside each other ask for their ports in different ranges: PAY_TEST_PORTS="LOW-HIGH".
PORT_LOW, PORT_HIGH = map(int, os.environ.get("PAY_TEST_PORTS", "10000-32000").split("-"))
_libc = ctypes.CDLL(None, use_errno=True)
_given = set()


def _is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(count=1):
    """A port of loopback (the first of `count` in a row) that is free now and was not given to anybody in this
    process. Below the ports that the kernel gives to outgoing connections: one of those may take any other first."""
    while True:
        ports = range(first := random.randrange(PORT_LOW, PORT_HIGH), first + count)
        if not _given.intersection(ports) and all(_is_free(port) for port in ports):
            _given.update(ports)
            return first


def wait_for(what, condition, limit_s=30, pause_s=0.02):
    """The condition's first true value; AssertionError with what it last was when limit_s has passed."""
    deadline = time.monotonic() + limit_s * SCALE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not reached in {limit_s * SCALE:g} s: {what} (last: {value!r})")
        time.sleep(pause_s)


def _end_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _state(task):
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"  # it has ended


def stand_still(pid):
    """SIGSTOP; returns when none of its threads runs any more: the signal alone is only a wish."""
    os.kill(pid, signal.SIGSTOP)
    tasks = pathlib.Path(f"/proc/{pid}/task")
    wait_for(f"process {pid} stands", lambda: all(_state(task) in "TtZX" for task in tasks.glob("*")))


class Process:
    """One program with its log file. start() after stop() or kill9() starts it again, same arguments."""

    def __init__(self, name, argv, log_dir, env=None):
        self.name, self.argv, self.env = name, [str(a) for a in argv], env
        self.log = pathlib.Path(log_dir) / f"{name}.log"
        self._popen = None
        self._was_killed = self._was_asked = False

    def start(self, stdout=None):
        assert not self.alive(), f"{self.name} is running already"
        self._was_killed = self._was_asked = False
        with self.log.open("ab") as log:
            self._popen = subprocess.Popen(
                self.argv, env=self.env, stdin=subprocess.DEVNULL, stdout=stdout or log, stderr=log,
                start_new_session=True, preexec_fn=_end_with_parent,
            )  # fmt: skip
        return self

    @property
    def stdout(self):
        return self._popen.stdout

    @property
    def pid(self):
        return self._popen.pid if self._popen else None

    def alive(self):
        return self._popen is not None and self._popen.poll() is None

    def fell(self):
        """The status with which it ended though nobody stopped it; None: nothing of the kind."""
        code = self._popen.poll() if self._popen else None
        return None if self._was_killed or code == 0 else code

    def exit_status(self):
        return self._popen.poll() if self._popen else None

    def ended_by_itself(self):
        """The status, 0 too, with which it ended though nobody asked or killed it; None: nothing of the kind, or seen."""
        code = self.exit_status()
        return None if code is None or self._was_killed or self._was_asked else code

    def was_killed_at_its_point(self):
        """By PAYFACT_FAULT; from here on its end is known."""
        at_its_point = self.ended_by_itself() == -signal.SIGKILL
        self.was_seen()
        return at_its_point

    def was_seen(self):
        """Its end is known: ended_by_itself() and fell() say no more of it."""
        self._was_killed = True

    def signal(self, number):
        if self.alive():
            self._popen.send_signal(number)

    def takes_sigterm(self):
        """False until it has come to main(): by then SIGTERM ends a program that knows nothing of it yet."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        masks = re.findall(r"^Sig(?:Blk|Cgt):\s*([0-9a-f]+)$", status, re.MULTILINE)
        return any(int(mask, 16) >> (signal.SIGTERM - 1) & 1 for mask in masks)

    def ask_to_stop(self):
        """SIGTERM, once: a second one would end it at once. stop() waits for it."""
        if not self._was_asked:
            self._was_asked = True
            self.signal(signal.SIGTERM)
            self.signal(signal.SIGCONT)  # a test may have frozen it

    def stop(self, limit_s=STOP_S):
        """SIGTERM; returns the exit status. AssertionError when it had to be killed."""
        if self._popen is None:
            return None
        self.ask_to_stop()
        try:
            return self._popen.wait(limit_s * SCALE)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise AssertionError(f"{self.name} did not end in {limit_s * SCALE:g} s after SIGTERM") from None

    def kill9(self):
        self._was_killed = True
        if self.alive():
            self._popen.kill()
        return self._popen.wait() if self._popen else None

    def freeze(self):
        if self.alive():
            stand_still(self.pid)

    def thaw(self):
        self.signal(signal.SIGCONT)

    def tail(self, lines=30):
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])
