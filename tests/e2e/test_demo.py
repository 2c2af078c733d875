# SPDX-License-Identifier: Apache-2.0
"""The demo on its embedded broker: it tells its story to the end, its pasted commands work, and Ctrl-C at any moment leaves
no process and no directory behind."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from payfact_stack import ROOT, build_dir, wait_for

DEMO = ROOT / "scripts" / "lib" / "demo.py"
END_S = 60
PARTS = 10
TOLD = (  # what each part shows beside its three books
    "CommandRejected, ATTEMPT_UNKNOWN", "both are dead", "copies of PaymentSucceeded, one event id, one number",
    "PaymentSucceeded says 60.00", "CAPTURE_WAS_FINAL", "1 charge(s), 60.00 EUR taken, 0.00 EUR paid back",
    "one accepted, one refused, EXCEEDS_REFUNDABLE", "1 charge(s), 100.00 EUR taken, 70.00 EUR paid back",
    "SUCCEEDED, paid once", "1 charge(s), 100.00 EUR taken, 40.00 EUR paid back", "DUPLICATE_CHARGE",
    "25.99 go back at A", "2 charge(s), 51.98 EUR taken, 25.99 EUR paid back", "operator-2 and operator-3 approve RESOLVE_CASE",
    "OWN_REQUEST", "ALREADY_COUNTED", "FAILED, by CONTROLLED evidence", "0 charge(s), 0.00 EUR taken, 0.00 EUR paid back",
)  # fmt: skip


class Demo:
    """demo.py in a session and with a temporary folder of its own, so that everything it left behind is found."""

    def __init__(self, *options):
        self.tmp = pathlib.Path(tempfile.mkdtemp(prefix="payfact-test.", dir="/tmp"))
        self.tmp.chmod(0o711)
        self.output = self.tmp.with_suffix(".log")
        env = {k: v for k, v in os.environ.items() if not k.startswith("PAYFACT_")}
        env.update(TMPDIR=str(self.tmp), PAY_BUILD_DIR=str(build_dir()), PAYFACT_DEMO_MARK=self.tmp.name)
        with self.output.open("wb") as out:
            self.process = subprocess.Popen([sys.executable, DEMO, *options], env=env, stdout=out, stderr=out,
                                            start_new_session=True)  # fmt: skip

    def text(self):
        return self.output.read_text(errors="replace")

    def says(self, words, limit_s=90):
        wait_for(f"the demo says {words!r}", lambda: words in self.text() or self.process.poll() is not None, limit_s)
        assert words in self.text(), self.text()[-3000:]

    def interrupt(self, number=signal.SIGINT):
        """As a terminal does it: to the whole foreground group."""
        os.killpg(self.process.pid, number)
        return self.process.wait(END_S)

    def left_behind(self):
        """Processes that carry the demo's mark in their environment, and what lies in its temporary folder."""
        found = [str(path) for path in self.tmp.iterdir()]
        mark = f"PAYFACT_DEMO_MARK={self.tmp.name}".encode()
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                marked = mark in (folder / "environ").read_bytes().split(b"\0")
                named = str(self.tmp).encode() in (folder / "cmdline").read_bytes()
            except OSError:
                continue  # it has ended, or is not ours
            if (marked or named) and int(folder.name) != os.getpid():
                found.append(f"process {folder.name}: {(folder / 'cmdline').read_bytes()[:200]}")
        return found

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(END_S)
        left = self.left_behind()
        subprocess.run(["rm", "-rf", self.tmp, self.output], check=True)
        assert left == []


@pytest.fixture
def demo():
    started = []

    def start(*options):
        started.append(Demo(*options))
        return started[-1]

    yield start
    for one in started:
        one.close()


def test_the_whole_story(demo):
    one = demo()
    assert one.process.wait(240) == 0, one.text()[-3000:]
    text = one.text()
    assert re.findall(r"^\(\d+\)", text, re.MULTILINE) == [f"({n})" for n in range(1, PARTS + 1)]
    assert text.count("ok: no difference") == PARTS and "DIFFERENCE" not in text
    assert text.count("payfactctl explain") == PARTS
    for told in TOLD:
        assert told in text, told
    assert "\033[" not in text, "colours are for terminals"
    assert one.left_behind() == []


def test_a_difference_is_an_error(demo, tmp_path):
    """With an audit that finds something, the demo says so and ends with 1."""
    liar = tmp_path / "liar.py"
    liar.write_text(
        "import sys, runpy, payfact_stack\n"
        "payfact_stack.Stack.audit = lambda self: ['X: charged 2 times']\n"
        f"sys.argv = ['demo.py']\nsys.path.insert(0, {str(DEMO.parent)!r})\nrunpy.run_path({str(DEMO)!r}, run_name='__main__')\n"
    )
    run = subprocess.run([sys.executable, liar], capture_output=True, text=True, timeout=120,
                         env={**os.environ, "PAY_BUILD_DIR": str(build_dir())})  # fmt: skip
    assert run.returncode == 1 and "DIFFERENCE: X: charged 2 times" in run.stdout, run.stdout[-2000:] + run.stderr[-2000:]


def shell_lines(text):
    """The commands of --keep, in order."""
    tail = text[text.index("Everything keeps running") :]
    return [line for line in tail.splitlines() if line.startswith(("t=$(date", "PAYFACT_"))]


def test_keep_prints_commands_that_work(demo):
    one = demo("--keep")
    one.says("Ctrl-C here ends")
    callback, explain, create = shell_lines(one.text())
    answered = subprocess.run(["bash", "-c", callback], capture_output=True, text=True, timeout=30)
    assert "200 OK" in answered.stdout, answered
    payment = re.search(r"Payment (\w{26}) is PROCESSING", one.text())[1]

    def paid():
        told = subprocess.run(["bash", "-c", explain], capture_output=True, text=True, timeout=30).stdout
        return payment in told and "SUCCEEDED, reason PAID" in told

    wait_for("the pasted callback made the payment succeed", paid)
    made = subprocess.run(["bash", "-c", create], capture_output=True, text=True, timeout=60)
    assert made.returncode == 0 and "ACCEPTED" in made.stdout, made
    again = subprocess.run(["bash", "-c", callback], capture_output=True, text=True, timeout=30)
    assert "200 OK" in again.stdout, again
    assert one.interrupt() == 0
    assert one.left_behind() == []


MOMENTS = (
    ("", 0.1), ("", 0.6), ("", 1.5), ("Starting PostgreSQL", 0), ("Starting PostgreSQL", 2.5), ("Starting PostgreSQL", 4),
    ("all are ready", 0), ("(2)", 1), ("(4)", 0.5), ("(5)", 3), ("(7)", 0.5), ("(9)", 1), ("(10)", 2),
)  # fmt: skip


@pytest.mark.parametrize("words, more_s", MOMENTS)
def test_ctrl_c_leaves_nothing(demo, words, more_s):
    one = demo()
    one.says(words)
    time.sleep(more_s)  # not for synchronisation: the moments are meant to fall anywhere
    code = one.interrupt()
    assert code in (128 + signal.SIGINT, -signal.SIGINT), one.text()[-3000:]
    assert one.left_behind() == []


def test_a_signal_that_python_drops_is_answered_all_the_same(tmp_path):
    """What a handler raises while an object is destroyed goes nowhere: the demo went on to its end."""
    dropping = tmp_path / "dropping.py"
    dropping.write_text(
        "import os, signal, sys, runpy, payfact_stack\n"
        "class Dropping:\n"
        "    def __del__(self): os.kill(os.getpid(), signal.SIGINT)\n"
        "idle = payfact_stack.Stack.idle\n"
        "def slow(self, **how): Dropping(); idle(self, **how)\n"
        "payfact_stack.Stack.idle = slow\n"
        f"sys.argv = ['demo.py']\nsys.path.insert(0, {str(DEMO.parent)!r})\nrunpy.run_path({str(DEMO)!r}, run_name='__main__')\n"
    )
    run = subprocess.run([sys.executable, dropping], capture_output=True, text=True, timeout=120,
                         env={**os.environ, "PAY_BUILD_DIR": str(build_dir()), "TMPDIR": str(tmp_path)})  # fmt: skip
    assert run.returncode == 128 + signal.SIGINT, run.stdout[-2000:] + run.stderr[-2000:]
    assert "Exception ignored in" in run.stderr and "(2)" not in run.stdout
    assert [path.name for path in tmp_path.iterdir()] == [dropping.name]


def test_sigterm_leaves_nothing(demo):
    one = demo()
    one.says("(1)")
    assert one.interrupt(signal.SIGTERM) == 128 + signal.SIGTERM, one.text()[-3000:]
    assert one.left_behind() == []
