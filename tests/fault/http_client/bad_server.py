#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An HTTP server that fails in one chosen way, and a ledger of what really reached it.

Protocol on stdin/stdout, one line each:
  START behaviour -> PORT n     a fresh listener with a fresh ledger
  STOP            -> LEDGER n   ends it; n complete requests were taken, whatever became of them
Usage: bad_server.py DIRECTORY    (for certificates; removed at the end of input)
"""
import os
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

WAIT_S = 20  # No behaviour lasts longer than a test may.
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nRequest-Id: req_1\r\nX-Empty:\r\n\r\nok"


class Server:
    """One listener, its ledger and its connections."""

    def __init__(self, behaviour, context):
        self.behaviour = behaviour
        self.context = context
        self.taken = 0
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.connections = set()
        if behaviour is refuse:
            self.close_listener()
        else:
            threading.Thread(target=self.accept, daemon=True).start()

    def close_listener(self):
        """Wake a blocked accept(), then close: later connects are refused."""
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()

    def accept(self):
        while not self.stopped.is_set():
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    def enlist(self, conn):
        with self.lock:
            self.connections.add(conn)

    def retire(self, conn):
        """Only the connection's own thread closes it: a number closed elsewhere is reused under it."""
        with self.lock:
            self.connections.discard(conn)
            conn.close()

    def serve(self, conn):
        self.enlist(conn)
        try:
            if self.context is not None:
                raw = conn
                conn = self.context.wrap_socket(raw, server_side=True)
                self.enlist(conn)
                self.retire(raw)
            self.behaviour(self, conn)
        except (OSError, ssl.SSLError):
            pass
        finally:
            self.retire(conn)

    def stop(self):
        self.stopped.set()
        self.close_listener()
        with self.lock:
            for conn in self.connections:
                try:
                    socket.socket.shutdown(conn, socket.SHUT_RDWR)  # Wakes its thread.
                except OSError:
                    pass
            return self.taken

    def take(self, conn):
        """Read one complete request and enter it into the ledger. None: the other side left."""
        data = b""
        while b"\r\n\r\n" not in data:
            part = conn.recv(65536)
            if not part:
                return None
            data += part
        head, body = data.split(b"\r\n\r\n", 1)
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, value = line.split(b":", 1)
            if name.lower() == b"content-length":
                length = int(value)
        while len(body) < length:
            part = conn.recv(65536)
            if not part:
                return None
            body += part
        with self.lock:
            self.taken += 1
            return self.taken


def reset(conn):
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


def until_closed(server, conn, data, pause_s):
    """Send data again and again until the other side or the test has enough."""
    end = time.monotonic() + WAIT_S
    while not server.stopped.is_set() and time.monotonic() < end:
        conn.sendall(data)
        time.sleep(pause_s)


def hold(server, conn):
    """Keep the connection open and silent until the other side leaves."""
    conn.settimeout(WAIT_S)
    while conn.recv(65536):
        pass


# --- behaviours: each is given the server and one connection -----------------------------------

def ok(server, conn):
    while server.take(conn) is not None:
        conn.sendall(OK)


def tell_resumed(server, conn):
    """Answer 201 when the TLS session was resumed."""
    server.take(conn)
    conn.sendall(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % (201 if conn.session_reused else 200))
    hold(server, conn)


def die_on_second(server, conn):
    """The first request is answered and the connection kept; the second is taken and dies."""
    while True:
        number = server.take(conn)
        if number is None:
            return
        if number == 2:
            return
        conn.sendall(OK)


def die_and_refuse(server, conn):
    """As above, and nobody listens any more when the second one dies."""
    while True:
        number = server.take(conn)
        if number is None:
            return
        if number == 2:
            server.close_listener()
            return
        conn.sendall(OK)


def refuse(server, conn):
    """Never called: the listener is closed."""


def reset_on_accept(server, conn):
    reset(conn)


def reset_after_read(server, conn):
    server.take(conn)
    reset(conn)


def close_after_read(server, conn):
    server.take(conn)


def half(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + b"x" * 50)


def half_head(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Le")


def whole_but_undelimited(server, conn):
    """Half a body and a whole one look the same."""
    server.take(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\n\r\n{\"half\":")


def empty_204(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
    hold(server, conn)


def chunks(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
    hold(server, conn)


def stall_before_answer(server, conn):
    server.take(conn)
    hold(server, conn)


def stall_after_head(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
    hold(server, conn)


def drip(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    until_closed(server, conn, b"x", 0.05)


def cut_chunk(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nabc")


def cut_between_chunks(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")


def bad_chunk(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n")


def garbage(server, conn):
    server.take(conn)
    conn.sendall(bytes(range(256)) * 4)


def bad_status(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 abc OK\r\n\r\n")


def bad_length(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nok")


def continue_then_close(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


def continue_then_ok(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\n" + OK)


def large(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + b"x" * 2000000)


def endless(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    until_closed(server, conn, b"1000\r\n" + b"x" * 4096 + b"\r\n", 0)


def endless_head(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 200 OK\r\n")
    until_closed(server, conn, b"X-Filler: " + b"x" * 1000 + b"\r\n", 0)


def redirect(server, conn):
    while server.take(conn) is not None:
        conn.sendall(
            b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:%d/again\r\n"
            b"Content-Length: 0\r\n\r\n" % server.port)


def status_408(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")


def status_417(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n")
    hold(server, conn)


def status_421(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 421 Misdirected Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")


def status_503(server, conn):
    server.take(conn)
    conn.sendall(b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 3\r\n\r\nbad")
    hold(server, conn)


def unauthorized(server, conn):
    while server.take(conn) is not None:
        conn.sendall(b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\n"
                     b"Content-Length: 0\r\n\r\n")


def goaway(server, conn):
    """An HTTP/2 GOAWAY frame, where HTTP/1.1 is spoken."""
    server.take(conn)
    conn.sendall(b"\x00\x00\x08\x07\x00\x00\x00\x00\x00" + b"\x00" * 8)


def upload_stall(server, conn):
    """Never reads: the request stays in the kernel's buffers."""
    server.stopped.wait(WAIT_S)


def slow_handshake(server, conn):
    """TCP at once, TLS only after 400 ms, then as ok."""
    time.sleep(0.4)
    tls = CONTEXTS["good"].wrap_socket(conn, server_side=True)
    server.enlist(tls)
    try:
        ok(server, tls)
    finally:
        server.retire(tls)


def no_handshake(server, conn):
    """TCP at once, TLS never."""
    hold(server, conn)


def handshake_garbage(server, conn):
    conn.recv(65536)
    conn.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    hold(server, conn)


def handshake_reset(server, conn):
    conn.recv(65536)
    reset(conn)


# --- certificates --------------------------------------------------------------------------------

def openssl(*args):
    subprocess.run(["openssl", *args], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def make_context(directory, name, subject, san, days, issuer):
    key, request, cert = (os.path.join(directory, name + end) for end in (".key", ".req", ".pem"))
    ext = os.path.join(directory, name + ".ext")
    with open(ext, "w", encoding="ascii") as out:
        out.write("subjectAltName=%s\n" % san)
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-new", *curve, "-keyout", key, "-out", request, "-subj", "/CN=" + subject)
    sign = ["-CA", os.path.join(directory, issuer + ".pem"), "-CAcreateserial",
            "-CAkey", os.path.join(directory, issuer + ".key")] if issuer else ["-key", key]
    openssl("x509", "-req", "-in", request, *sign, "-days", days, "-extfile", ext, "-out", cert)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


CONTEXTS = {}


def make_contexts(directory):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", os.path.join(directory, "ca.key"), "-out", os.path.join(directory, "ca.pem"),
            "-days", "2", "-subj", "/CN=test authority")
    local = "DNS:localhost,IP:127.0.0.1"
    CONTEXTS["good"] = make_context(directory, "good", "localhost", local, "2", "ca")
    CONTEXTS["expired"] = make_context(directory, "expired", "localhost", local, "-1", "ca")
    CONTEXTS["other"] = make_context(directory, "other", "psp.example", "DNS:psp.example", "2", "ca")
    CONTEXTS["self"] = make_context(directory, "self", "localhost", local, "2", None)


def main():
    make_contexts(sys.argv[1])
    server = None
    for line in sys.stdin:
        words = line.split()
        if words[0] == "START":  # START behaviour [certificate]
            context = CONTEXTS[words[2]] if len(words) > 2 else None
            server = Server(globals()[words[1]], context)
            print("PORT %d" % server.port, flush=True)
        elif words[0] == "STOP":
            print("LEDGER %d" % server.stop(), flush=True)
    shutil.rmtree(sys.argv[1])


if __name__ == "__main__":
    main()
