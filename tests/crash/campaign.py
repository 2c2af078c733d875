# SPDX-License-Identifier: Apache-2.0
"""The crash campaign: seeds over real PostgreSQL, Kafka and Redis, the PSP simulator and the four binaries.

usage: campaign.py [--seeds N] [--first N] [--seed N [--repeat N]] [--workers N] [--keep DIR] [--list]
  --seeds N    seeds FIRST to FIRST+N-1 (20)       --first N   where to begin (1)
  --seed N     this one alone, its logs are kept   --repeat N  so often: the schedule repeats, the race does not
  --workers N  at the same time, each with servers of its own (2)
  --keep DIR   where logs are kept (build/test-logs/crash)
  --list       only print the schedules

One line a seed: verdict, time, world, faults, what became of the payments. A failed one says what differs, where its
logs are, and how to run it again. Ends with 1 when one failed.
"""

import argparse
import contextlib
import json
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time

from schedule import schedule_of

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PORTS = (10000, 32000)
LINES_MAX, LINE_MAX = 12, 400  # of a failure, when it is told a second time
REACH = ("point", "pg_crash_in_commit", "pg_commit_lost")  # faults that need the run to come to a place


class Worker:
    """A worker process and the thread that feeds it."""

    def __init__(self, number, of, options, queues, say):
        """queues: seeds are taken from the first that has one."""
        span = (PORTS[1] - PORTS[0]) // of
        low = PORTS[0] + number * span
        env = {**os.environ, "PAY_TEST_PORTS": f"{low}-{low + span - 100}"}
        self.queues, self.say, self.results, self.lives = queues, say, [], True
        argv = [sys.executable, HERE / "worker.py", options.keep, *(["always"] if options.seed else [])]
        self.process = subprocess.Popen(argv, env=env, text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.thread = threading.Thread(target=self._feed, daemon=True)
        self.thread.start()

    def _feed(self):
        for seeds in self.queues:
            with contextlib.suppress(queue.Empty):
                while self.lives:
                    result = self._ask(seeds.get_nowait())
                    self.results.append(result)
                    self.say(result)
        with contextlib.suppress(BrokenPipeError):  # it has ended already
            self.process.stdin.close()
        self.process.wait()

    def _ask(self, turn):
        """turn: a seed and the name of its folder of logs."""
        seed, name = turn
        try:
            print(seed, name, file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
            return json.loads(line) | {"name": name}
        except (OSError, ValueError) as error:
            self.lives = False  # the others take the rest
            problems = [f"the worker has ended: {error}"]
            return {"seed": seed, "name": name, "problems": problems, "hits": [], "ends": {}, "phases": {}}


def seconds(result):
    return sum(result["phases"].values())


def line_of(result):
    schedule = schedule_of(result["seed"])
    verdict = "FAILED" if result["problems"] else "ok"
    hits = set(result["hits"])
    faults = [f"{f}{'' if f.kind not in REACH else ' (hit)' if str(f) in hits else ' (not reached)'}" for f in schedule.faults]
    ends = ", ".join(f"{n} {status}" for status, n in result["ends"].items())
    return (f"seed {schedule.seed:4d}  {verdict:6s} {seconds(result):5.1f} s  {schedule.world()}; "
            f"{len(faults)} faults: {'; '.join(faults)}; ends: {ends}")  # fmt: skip


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=int(os.environ.get("PAY_CRASH_SEEDS") or 20))
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("PAY_CRASH_SEED") or 0))
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", default=str(ROOT / "build" / "test-logs" / "crash"))
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def turns_of(options):
    """Each seed with the name of its folder of logs; a seed that repeats has one for each time."""
    if options.seed:
        return [(options.seed, f"seed-{options.seed}" + (f".{n}" if n > 1 else "")) for n in range(1, options.repeat + 1)]
    return [(seed, f"seed-{seed}") for seed in range(options.first, options.first + options.seeds)]


def details(result, options):
    again = f"logs: {options.keep}/{result['name']}; alone: ./scripts/test --label=crash --seed {result['seed']}"
    return [f"           {text}" for text in (*result["problems"], again)] if result["problems"] else []


def main():
    options = parse()
    turns = turns_of(options)
    if options.list:
        for seed, _ in turns:
            print(schedule_of(seed).text())
        return 0
    on_one_broker, on_three = queue.SimpleQueue(), queue.SimpleQueue()
    for turn in turns:
        (on_three if schedule_of(turn[0]).cluster else on_one_broker).put(turn)
    lines = open(os.environ["PAY_CRASH_LINES"], "a") if os.environ.get("PAY_CRASH_LINES") else None  # noqa: SIM115
    lock = threading.Lock()

    def tell(*texts):
        with lock:
            for text in texts:
                print(text, flush=True)
                if lines:
                    print(text, file=lines, flush=True)

    def say(result):
        tell(line_of(result), *details(result, options))

    began = time.monotonic()
    count = min(options.workers, len(turns))
    # The first worker alone runs those with three brokers, before the others: six brokers beside each other are too many.
    workers = [Worker(i, count, options, [on_three, on_one_broker] if i == 0 else [on_one_broker], say) for i in range(count)]
    for worker in workers:
        worker.thread.join()
    results = [r for w in workers for r in w.results]
    failed = [r["seed"] for r in results if r["problems"]]
    took = time.monotonic() - began
    phases = {}
    for result in results:
        for phase, lasted in result["phases"].items():
            phases[phase] = phases.get(phase, 0) + lasted / len(results)
    tell(f"{len(results) - len(failed)} of {len(turns)} seeds passed in {took:.0f} s; {sum(phases.values()):.1f} s a seed: "
         + ", ".join(f"{phase} {lasted:.1f}" for phase, lasted in phases.items()))  # fmt: skip
    if failed or len(results) != len(turns):
        tell(f"failed: {failed}")
        for result in results:  # once more: the end of a long log is what people see
            if result["problems"]:
                tell(f"seed {result['seed']:4d}  FAILED", *(text[:LINE_MAX] for text in details(result, options)[:LINES_MAX]))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
