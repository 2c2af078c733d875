# SPDX-License-Identifier: Apache-2.0
"""Start a simulator as a process of its own and speak to its control endpoint. Used by every test that needs a PSP."""

import json
import pathlib
import select
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

PROGRAM = pathlib.Path(__file__).with_name("simulator.py")
START_S, STOP_S = 15, 10


class Simulator:
    """A context manager: with Simulator(accounts=[...]) as psp: psp.script({...}); psp.ledger(order=...)"""

    def __init__(self, accounts, settings=None, log=None, extra=()):
        self._config = {"accounts": accounts, "settings": settings or {}}
        self._log, self._extra = log, list(extra)
        self.process = None

    def __enter__(self):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(self._config, file)
            file.flush()
            self.process = subprocess.Popen(
                [sys.executable, str(PROGRAM), "--config", file.name, "--with-parent", *self._extra],
                stdout=subprocess.PIPE,
                stderr=self._log,
                start_new_session=True,
            )
            line = b""
            if select.select([self.process.stdout], [], [], START_S)[0]:
                line = self.process.stdout.readline()
        if not line:
            self.__exit__()
            raise RuntimeError("the PSP simulator did not start")
        ready = json.loads(line)
        self.url, self.control_url = ready["url"], ready["control_url"]
        return self

    def __exit__(self, *exc):
        self.process.terminate()
        try:
            code = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.process.stdout.close()
        return code

    def control(self, method, name, document=None, timeout_s=60, **query):
        query = {k: v for k, v in query.items() if v is not None}
        url = f"{self.control_url}/_control/{name}" + ("?" + urllib.parse.urlencode(query) if query else "")
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(url, data=body, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {name}: {error.read().decode()}") from error

    def script(self, *rules):
        return self.control("POST", "script", list(rules))["rules"]

    def clear_script(self):
        self.control("DELETE", "script")

    def put_account(self, account):
        self.control("POST", "accounts", account)

    def ledger(self, account=None, order=None):
        return self.control("GET", "ledger", account=account, order=order)["entries"]

    def totals(self, account=None, order=None):
        return self.control("GET", "ledger", account=account, order=order)["totals"]

    def objects(self, account=None, order=None):
        return self.control("GET", "ledger", account=account, order=order)["objects"]

    def requests(self, account=None, order=None, operation=None):
        return self.control("GET", "requests", account=account, order=order, operation=operation)["requests"]

    def callbacks(self, account=None, order=None, type=None):
        return self.control("GET", "callbacks", account=account, order=order, type=type)["callbacks"]

    def advance(self, **document):
        return self.control("POST", "advance", document)

    def console(self, **document):
        return self.control("POST", "console", document)

    def dispute(self, **document):
        return self.control("POST", "dispute", document)

    def callback(self, **document):
        return self.control("POST", "callback", document)

    def release(self, **document):
        return self.control("POST", "release", document)["released"]

    def drain(self, account=None, order=None, timeout_ms=30000):
        """True when every callback (of this account or order) was delivered or given up."""
        document = {"timeout_ms": timeout_ms, "account": account, "order": order}
        return self.control("POST", "drain", document, timeout_s=timeout_ms / 1000 + 30)["drained"]

    def api(self, mode):
        self.control("POST", "api", {"mode": mode})
