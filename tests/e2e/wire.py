# SPDX-License-Identifier: Apache-2.0
"""A server between ingest/psp and the PSP that fails in the ways a network does, after the PSP got the request or not."""

import socket
import ssl
import struct
import threading
import urllib.parse

NO_LINGER = struct.pack("ii", 1, 0)


class Wire:
    """Listens on loopback and passes requests on to `target`. `fault(request_bytes, number)` says what becomes of the
    n-th request of a connection: None (answer it), or one of the names of FAULTS. `change(request_bytes, answer_bytes)`
    may put another answer in the place of the PSP's."""

    FAULTS = ("reset_after_request", "close_after_request", "reset_before_request_is_read", "half_header")

    def __init__(self, target, fault=lambda request, number: None, certificate=None, change=lambda request, answer: answer):
        parts = urllib.parse.urlsplit(target)
        self._target, self.fault, self._change = (parts.hostname, parts.port), fault, change
        self.requests = []  # (connection, number on it, first line, idempotency key)
        self._tls = None
        if certificate:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(*certificate)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{self.port}"
        self.connections = self.handshakes_failed = 0
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self):
        """The thread in accept() ends first: close() alone does not wake it, and it would go on with whatever socket gets
        the same descriptor, the next test's Wire for one."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()

    def _accept(self):
        while True:
            try:
                connection = self._listener.accept()[0]
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection, self.connections), daemon=True).start()

    def _serve(self, connection, which):
        try:
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
        except OSError:
            self.handshakes_failed += 1
            connection.close()
            return
        try:
            number = 0
            while self._one(connection, which, number := number + 1):
                pass
        except OSError:
            pass
        finally:
            connection.close()

    def _one(self, connection, which, number):
        """One request; True when the connection stays open for the next."""
        request = read_message(connection)
        if not request:
            return False
        head = request.split(b"\r\n\r\n")[0].decode()
        key = next((line.split(":", 1)[1].strip() for line in head.splitlines() if line.lower().startswith("idempotency-key:")), None)
        self.requests.append((which, number, head.splitlines()[0], key))
        fault = self.fault(request, number)
        if fault == "reset_before_request_is_read":
            return self._reset(connection)
        with socket.create_connection(self._target) as psp:
            psp.sendall(request)
            answer = self._change(request, read_message(psp))
        if fault == "reset_after_request":
            return self._reset(connection)
        if fault == "close_after_request":
            return False
        if fault == "half_header":
            connection.sendall(answer[:20])
            return False
        connection.sendall(answer)
        return True

    @staticmethod
    def _reset(connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        return False


def read_message(connection):
    """One HTTP message with its Content-Length; b"" when the other side is done."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.splitlines() if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        more = connection.recv(65536)
        if not more:
            return b""
        body += more
    return head + b"\r\n\r\n" + body
