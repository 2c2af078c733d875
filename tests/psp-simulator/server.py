# SPDX-License-Identifier: Apache-2.0
"""HTTP of the simulator: the API with its faults, and the control endpoint.

Two listeners on loopback. The control listener answers only /_control/...; the API listener answers both, and can
be taken away (POST /_control/api) so that a PSP that is down, hangs or drops connections can be shown.
"""

import itertools
import json
import select
import socket
import ssl
import struct
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from core import Answer, Refused, Request
from delivery import Delivery

BODY_BYTES_MAX = 1 << 20
NO_LINGER = struct.pack("ii", 1, 0)  # close() sends a reset
API_MODES = ("up", "down", "accept_close", "accept_reset", "accept_hang")


class Gone(Exception):
    """The connection ends here without a further byte."""


class Handler(BaseHTTPRequestHandler):
    """Reads one request after the other from one connection."""

    protocol_version = "HTTP/1.1"
    server_version = "psp-simulator"
    sys_version = ""
    timeout = 300  # an idle kept connection
    disable_nagle_algorithm = True
    wbufsize = -1  # status line, headers and body leave together

    def setup(self):
        if self.server.tls:
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
        super().setup()
        self.number = next(self.server.connections)
        self.abort = False
        self.server.guests.add(self.connection)

    def handle(self):
        try:
            super().handle()
        except (OSError, Gone):
            self.close_connection = True

    def finish(self):
        self.server.guests.discard(self.connection)
        try:
            super().finish()
            if self.abort:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            else:
                self.connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other side is gone
        self.connection.close()

    def log_message(self, format, *args):
        pass  # /_control/requests is the log

    def do_GET(self):
        self.serve()

    def do_POST(self):
        self.serve()

    def do_DELETE(self):
        self.serve()

    def serve(self):
        length = int(self.headers.get("Content-Length") or 0)
        if length > BODY_BYTES_MAX:
            self.reply(Answer(413, {"error": "too large"}))
            self.close_connection = True
            return
        body = self.rfile.read(length)
        path, _, query = self.path.partition("?")
        if path.startswith("/_control/"):
            self.reply(self.server.control.answer(self.command, path, query, body))
            return
        psp = None if self.server.control_only else self.server.world.psp_of_path(path)
        if not psp:
            self.reply(Answer(404, {"error": f"nothing at {path}"}))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        req = Request(self.command, path, query, headers, body, self.number)
        Call(self, psp, req).run()

    # ---- what goes back

    def reply(self, answer, cut=None):
        body = answer.encoded()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if "Content-Type" not in answer.headers:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if cut is None else body[:cut])
        self.wfile.flush()

    def end(self, how):
        """End the connection: close = FIN after what was written, reset = RST, hang = wait for the client."""
        self.close_connection = True
        if how == "hang":
            self.wait_for_client(self.timeout)
        self.abort = how == "reset"
        raise Gone

    def wait_for_client(self, limit_s):
        """True when the client gave up, False when limit_s passed or the simulator stops."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline and not self.server.world.stopping.is_set():
            if select.select([self.connection], [], [], 0.1)[0]:
                return True  # nothing may come but the end: the client sends no second request before an answer
        return False


class Call:
    """One API request from identification to the answer, with the faults of its rule."""

    def __init__(self, handler, psp, req):
        self.handler, self.psp, self.req = handler, psp, req
        self.world = psp.world
        self.rule = None
        self.row = None

    def run(self):
        with self.world.lock:
            refusal = self.psp.identify(self.req)
        self.row = self.world.log.open(self.req)
        if refusal:
            self.answer(refusal)
            return
        account = self.req.account.id
        self.rule = self.world.script.find("request", account, [self.req.operation], self.req.refs)
        self.row["rule"] = self.rule.id if self.rule else None
        if self.has("refuse"):
            self.world.stopping.wait((self.rule.delay_ms + self.rule.answer_delay_ms) / 1000)
            self.answer(self.refusal())
        elif self.has("refuse_and_charge"):
            self.perform()
            self.answer(self.refusal())
        elif self.has("late"):
            self.late()
        elif self.has("take_and_die") and not self.rule.charge:
            self.gone(self.rule.how or "close")
        else:
            self.finish(self.perform())

    def has(self, fault):
        return self.rule is not None and self.rule.has(fault)

    def refusal(self):
        return self.psp.refuse(self.req, self.rule.status, self.rule.error_code, self.rule.retry_after_s)

    def perform(self):
        """Idempotency, delay, execution: what the PSP does behind its front."""
        with self.world.lock:
            answer, replayed = self.psp.begin(self.req)
        if answer:
            self.row["replayed"] = replayed
            return answer
        if self.rule and self.rule.delay_ms:
            self.world.stopping.wait(self.rule.delay_ms / 1000)
        with self.world.lock:
            answer = self.psp.execute(self.req, self.rule)
            self.row["executed"] = True
            if self.has("answer_5xx_after_charge"):
                # A 500 comes out of the PSP's own code, so it is the key's outcome; a 502 to 504 is made in front.
                real, answer = answer, self.psp.server_error(self.rule.status)
                self.psp.remember(self.req, answer if self.rule.status == 500 else real)
        return answer

    def late(self):
        """The client sees the connection end now; the PSP executes the request after_ms later."""
        timer = threading.Timer(self.rule.after_ms / 1000, self.perform)
        timer.daemon = True
        timer.start()
        self.gone(self.rule.how or "close")

    def finish(self, answer):
        if self.rule and self.rule.answer_delay_ms:
            self.world.stopping.wait(self.rule.answer_delay_ms / 1000)
        if self.has("charge_then_timeout"):
            self.hold()
        elif self.has("take_and_die"):
            self.gone(self.rule.how or "close")
        elif self.has("half_answer"):
            self.row["answered"] = "half"
            self.handler.reply(answer, cut=len(answer.encoded()) // 2)
            self.handler.end(self.rule.how or "close")
        elif self.has("garbage"):
            self.garbage()
        else:
            if self.has("wrong_amount") and self.rule.where == "answer":
                answer = Answer(answer.status, self.psp.with_amount(answer.body, self.rule.amount), answer.headers)
            self.answer(answer)

    def answer(self, answer):
        self.row["status"] = answer.status
        try:
            self.handler.reply(answer)
        except OSError:
            self.row["answered"] = "client_gone"
            raise
        self.row["answered"] = "answer"

    def hold(self):
        self.row["answered"] = "held"
        gone = self.handler.wait_for_client(self.rule.hold_ms / 1000)
        self.row["answered"] = "client_gone" if gone else "held_to_the_end"
        self.handler.end("close")

    def gone(self, how):
        self.row["answered"] = how
        self.handler.end(how)

    def garbage(self):
        self.row["answered"], self.row["status"] = "garbage", 200
        body = self.rule.body.encode()
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", "text/html")
        self.handler.send_header("Content-Length", str(len(body)))
        self.handler.end_headers()
        self.handler.wfile.write(body)
        self.handler.wfile.flush()


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, world, control, port, tls=None, control_only=False):
        self.world, self.control, self.tls, self.control_only = world, control, tls, control_only
        self.connections = itertools.count(1)
        self.guests = set()
        self.mode = "up"
        super().__init__(("127.0.0.1", port), Handler)
        self.port = self.server_address[1]
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    def process_request_thread(self, request, client_address):
        while self.mode == "accept_hang" and not self.world.stopping.wait(0.1):
            pass
        if self.mode == "up":
            super().process_request_thread(request, client_address)
        elif self.mode == "accept_reset":
            request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            request.close()
        else:
            self.close_politely(request)

    @staticmethod
    def close_politely(request):
        """FIN, not a reset: what the client still sends is read and thrown away."""
        request.shutdown(socket.SHUT_WR)
        request.settimeout(2)
        try:
            while request.recv(65536):
                pass
        except OSError:
            pass
        request.close()

    def handle_error(self, request, client_address):
        """A client that ends a connection in the middle, or a TLS handshake that fails, is an ordinary guest."""

    def stop(self):
        self.shutdown()
        self.server_close()
        self.thread.join()
        for connection in list(self.guests):  # kept connections go down with it
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Api:
    """The API listener; it can be taken away and comes back on the same port."""

    def __init__(self, world, control, port, tls):
        self.make = lambda at: Listener(world, control, at, tls)
        self.listener = self.make(port)
        self.port = self.listener.port
        self._lock = threading.Lock()

    def set_mode(self, mode):
        if mode not in API_MODES:
            raise Refused(f"api: mode is one of {API_MODES}")
        with self._lock:
            if mode == "down" and self.listener:
                self.listener.stop()
                self.listener = None
            elif mode != "down":
                self.listener = self.listener or self.make(self.port)
                self.listener.mode = mode

    def stop(self):
        self.set_mode("down")


class Control:
    """/_control/...: told what to do, asked what happened. One row per path."""

    def __init__(self, world):
        self.world = world
        self.api = None
        self.routes = {
            ("GET", "health"): lambda query, body: {"ok": True, "accounts": sorted(world.accounts)},
            ("POST", "accounts"): self.accounts,
            ("POST", "script"): self.script,
            ("GET", "script"): lambda query, body: {"rules": world.script.listing()},
            ("DELETE", "script"): self.script_clear,
            ("POST", "advance"): self.advance,
            ("POST", "console"): self.console,
            ("POST", "dispute"): self.dispute,
            ("POST", "callback"): self.callback,
            ("POST", "release"): self.release,
            ("POST", "drain"): self.drain,
            ("POST", "api"): self.api_mode,
            ("GET", "ledger"): self.ledger,
            ("GET", "requests"): self.requests,
            ("GET", "callbacks"): self.callbacks,
        }

    def answer(self, method, path, query, body):
        route = self.routes.get((method, path.removeprefix("/_control/")))
        if not route:
            known = sorted(f"{m} /_control/{p}" for m, p in self.routes)
            return Answer(404, {"error": f"no {method} {path}", "known": known})
        try:
            document = json.loads(body) if body else {}
            return Answer(200, route(dict(urllib.parse.parse_qsl(query)), document))
        except (Refused, ValueError, KeyError, TypeError) as error:
            return Answer(400, {"error": f"{type(error).__name__}: {error}"})

    def accounts(self, query, document):
        """One account or a list; an id that is known is replaced (a new callback URL, a rolled secret)."""
        rows = document if isinstance(document, list) else [document]
        return {"accounts": [self.world.put_account(row).id for row in rows]}

    def script(self, query, document):
        """One rule or a list of rules; returns their ids."""
        rows = document if isinstance(document, list) else [document]
        return {"rules": [self.world.script.add(row).id for row in rows]}

    def script_clear(self, query, document):
        self.world.script.clear(query.get("id"))
        return {}

    def _account(self, document):
        account_id = document.pop("account", None)
        if not account_id and len(self.world.accounts) == 1:
            account_id = next(iter(self.world.accounts))
        return self.world.account(account_id)

    def advance(self, query, document):
        """{account, payment_intent | order | refund, to, ...}: see the PSP's advance()."""
        account = self._account(document)
        with self.world.lock:
            return self.world.psps[account.psp].advance(account, document)

    def console(self, query, document):
        """{account, payment_intent | order, do: capture | refund | cancel, amount}: see the PSP's console()."""
        account = self._account(document)
        with self.world.lock:
            return self.world.psps[account.psp].console(account, document)

    def dispute(self, query, document):
        """{account, payment_intent | order, amount, reason, inquiry}: see the PSP's dispute()."""
        account = self._account(document)
        with self.world.lock:
            return self.world.psps[account.psp].dispute(account, document)

    def callback(self, query, document):
        """{account, object selector and type | event | raw, copies, forge, amount, to_account, url, path, headers}:
        sends now and returns what each copy was answered."""
        account = self._account(document)
        copies, forge = int(document.pop("copies", 1)), document.pop("forge", "")
        amount, to_account = int(document.pop("amount", 0)), document.pop("to_account", "")
        url, path = document.pop("url", account.callback_url), document.pop("path", None)
        headers, raw, event = document.pop("headers", None), document.pop("raw", None), document.pop("event", None)
        wait_ms = int(document.pop("wait_ms", 15000))
        refs = []
        if event is None and raw is None:
            with self.world.lock:
                event, refs = self.world.psps[account.psp].event(account, document)
        elif document:
            raise Refused(f"callback: unknown {sorted(document)}")
        if path is not None:
            url = urllib.parse.urlunsplit(urllib.parse.urlsplit(url)[:2] + (path, "", ""))
        if not url:
            raise Refused(f"account {account.id} has no callback URL")
        first = Delivery(account, event, refs, url)
        first.headers, first.retry = headers, False
        first.raw = raw.encode() if raw is not None else None
        if forge:
            self.world.deliveries.forge(first, forge, amount, to_account)
        elif amount:
            first.event = self.world.psps[account.psp].with_amount(event, amount)
        rows = self.world.deliveries.send_now(self.world.deliveries.copies(first, copies), wait_ms / 1000)
        return {"event": first.event, "deliveries": rows}

    def release(self, query, document):
        count = self.world.deliveries.release(
            document.get("order"), document.get("type"), bool(document.get("newest_first"))
        )
        return {"released": count}

    def drain(self, query, document):
        timeout_s = int(document.get("timeout_ms", 30000)) / 1000
        left = self.world.deliveries.drain(timeout_s, document.get("account"), document.get("order"))
        return {"drained": left == 0, "open": left}

    def api_mode(self, query, document):
        self.api.set_mode(document["mode"])
        return {"mode": document["mode"]}

    def ledger(self, query, document):
        account, order = query.get("account"), query.get("order")
        return {
            "entries": self.world.ledger.entries(account, order),
            "totals": self.world.ledger.totals(account, order),
            "objects": self.world.ledger.objects(account, order),
        }

    def requests(self, query, document):
        rows = self.world.log.rows(query.get("account"), query.get("order"), query.get("operation"))
        return {"requests": rows}

    def callbacks(self, query, document):
        rows = self.world.deliveries.listing(query.get("account"), query.get("order"), query.get("type"))
        return {"callbacks": rows}


def tls_context(certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context
