# SPDX-License-Identifier: Apache-2.0
"""I1, I2 and M1: the callback port against servers that do nothing but answer.

Every server gets the same signed callbacks over the same kept-open connections from bench-http. ingest verifies, parses,
asks Redis, seals and produces each before it answers; the others read it and answer.
"""

import contextlib
import json
import subprocess

import machine
from ground import ACCOUNT, Ground, tool
from payfact_stack import ROOT, build_dir, wait_for
from procs import Process, free_port

REQUESTS, WARM_UP, CONNECTIONS, THREADS = 30000, 2000, 64, 2
NUMBER = "@" * 24  # bench-http puts a payment's number there
NGINX = """
daemon off;
worker_processes {threads};
pid {dir}/nginx.pid;
error_log {dir}/nginx.error;
{user}
events {{ worker_connections 1024; }}
http {{
    access_log off;
    keepalive_requests 1000000;
    client_body_temp_path {dir}/nginx.body; proxy_temp_path {dir}/nginx.proxy; fastcgi_temp_path {dir}/nginx.fastcgi;
    uwsgi_temp_path {dir}/nginx.uwsgi; scgi_temp_path {dir}/nginx.scgi;
    server {{ listen 127.0.0.1:{port}; location / {{ return 202; }} }}
}}
"""


def callback_body(path):
    """Stripe's payment_intent.succeeded as Stripe prints it, with marks for what differs."""
    body = json.loads((ROOT / "tests" / "samples" / "stripe" / "payment_succeeded.json").read_text())["body"]
    intent = body["data"]["object"]
    body["id"] = f"evt_3P{NUMBER}"
    intent.update(id=f"pi_3P01{NUMBER}", latest_charge=f"ch_3P01{NUMBER}", amount=2599, amount_received=2599)
    intent["metadata"] = {"order_id": f"01{NUMBER}A01"}
    path.write_text(json.dumps(body, indent=2))
    return path


class Bench:
    def __init__(self, ground, scale):
        self.ground, self.next = ground, 0
        self.requests = max(int(REQUESTS * scale), 10000)
        self.body = callback_body(ground.dir / "callback.json")
        account = next(a for a in ground.stack.psp_accounts if a["id"] == ACCOUNT)
        self.secret = account["webhook_secret"]

    def post(self, port, count, *more):
        """`more`: rate, brokers, topic."""
        first, self.next = self.next, self.next + count
        said = tool("bench-http", port, f"/callbacks/{ACCOUNT}", self.body, self.secret, first, count, CONNECTIONS, *more)
        if said["refused"]:
            raise RuntimeError(f"{said['refused']:.0f} of {count} callbacks were refused")
        return said

    def load(self, port, pids):
        """CPU of one request in µs, requests a second."""
        self.post(port, WARM_UP)
        before = sum(machine.cpu_s(pid) for pid in pids)
        said = self.post(port, self.requests)
        return (sum(machine.cpu_s(pid) for pid in pids) - before) / self.requests * 1e6, said["rate"]

    @contextlib.contextmanager
    def started(self, name, argv):
        process = Process(name, argv, self.ground.dir)
        process.start()
        try:
            yield process
        finally:
            process.stop()

    def bare(self, *mode):
        port = free_port()
        with self.started("bare", [build_dir() / "bench" / "bench-bare-http", port, THREADS, *mode]) as process:
            wait_for("it listens", lambda: "listening" in process.tail(1), 10)
            return self.load(port, [process.pid])

    def nginx(self):
        port = free_port()
        conf = self.ground.dir / "nginx.conf"
        user = "user root;" if subprocess.getoutput("id -u") == "0" else ""
        conf.write_text(NGINX.format(dir=self.ground.dir, port=port, threads=THREADS, user=user))
        process = Process("nginx", ["nginx", "-c", conf, "-e", self.ground.dir / "nginx.error"], self.ground.dir)
        process.start()
        try:
            workers = wait_for("its workers", lambda: self._children(process.pid, THREADS), 10)
            wait_for("it listens", lambda: (self.ground.dir / "nginx.pid").exists(), 10)
            return self.load(port, workers)
        finally:
            process.stop()

    @staticmethod
    def _children(pid, wanted):
        found = subprocess.getoutput(f"ps -o pid= --ppid {pid}").split()
        return [int(child) for child in found] if len(found) == wanted else None

    def ingest(self, program=None, **settings):
        service = self.ground.service("webhook", HTTP_THREADS=THREADS, **settings)
        if program:
            service.argv[0] = str(build_dir() / "bench" / program)
        service.start()
        try:
            return (*self.load(service.env["PAYFACT_HTTP_PORT"], [service.pid]), machine.memory_mb(service.pid))
        finally:
            service.stop()


def measure(report, rounds, scale):
    with Ground(http=True) as ground:
        bench = Bench(ground, scale)
        i1 = report.figure("I1", "ingest, CPU per callback; times the baseline's", "×", "≤ 2.0", 2.0, at_least=False,
                           baseline="bare libmicrohttpd")  # fmt: skip
        i1_nginx = report.figure("I1", "the same", "×", "≤ 2.2", 2.2, at_least=False, baseline="nginx `return 202`")
        cpu = report.figure("", "ingest: Redis, Apache Kafka with acks=all", "µs")
        bare_cpu = report.figure("", "bare libmicrohttpd", "µs")
        nginx_cpu = report.figure("", "nginx `return 202`", "µs")
        i2 = report.figure("I2", "ingest, requests/s with the broker stubbed at 1 ms; share of the baseline's", "", "≥ 0.75", 0.75,
                           baseline="bare suspend/resume")  # fmt: skip
        stubbed = report.figure("", "ingest with the stub", "requests/s")
        suspended = report.figure("", "bare libmicrohttpd, suspended for 1 ms", "requests/s")
        stubbed_cpu = report.figure("", "CPU per callback of ingest with the stub", "µs")
        suspended_cpu = report.figure("", "CPU per request of bare suspend/resume", "µs")
        whole = report.figure("", "ingest with Apache Kafka", "requests/s")
        memory = report.figure("M1", "ingest, most memory", "MB", "≤ 32", 32, at_least=False)
        for _ in range(rounds):
            report.note_load()
            ours, rate, megabytes = bench.ingest()
            whole.add(rate)
            memory.add(megabytes)
            i1.add(cpu.add(ours) / bare_cpu.add(bench.bare("answer")[0]))
            i1_nginx.add(ours / nginx_cpu.add(bench.nginx()[0]))
            ours, rate, _ = bench.ingest("bench-ingest-stub")
            theirs, limit = bench.bare("suspend", 1)
            stubbed_cpu.add(ours)
            suspended_cpu.add(theirs)
            i2.add(stubbed.add(rate) / suspended.add(limit))
