# SPDX-License-Identifier: Apache-2.0
"""What the tests of single services share: a server that goes away and comes back, Kafka's partitioner, sealed bytes
and a PSP's callbacks, each made here and not by payfact's code."""

import ctypes
import ctypes.util
import hashlib
import hmac
import json
import os
import socket
import threading
import time
import uuid

import psycopg2.extensions


def partition_of(key, partitions):
    """The partition of a key as Java's default partitioner (murmur2) and payfact choose it."""
    data, length = key.encode(), len(key.encode())
    h = (0x9747B28C ^ length) & 0xFFFFFFFF
    for i in range(0, length - length % 4, 4):
        k = int.from_bytes(data[i : i + 4], "little") * 0x5BD1E995 & 0xFFFFFFFF
        h = (h * 0x5BD1E995 & 0xFFFFFFFF) ^ ((k ^ (k >> 24)) * 0x5BD1E995 & 0xFFFFFFFF)
    rest = data[length - length % 4 :]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * 0x5BD1E995 & 0xFFFFFFFF
    h = (h ^ (h >> 13)) * 0x5BD1E995 & 0xFFFFFFFF
    return ((h ^ (h >> 15)) & 0x7FFFFFFF) % partitions


class Proxy:
    """TCP between a service and a server: refuse() and back(), cut() what is open, stall() and go_on()."""

    def __init__(self, host, port):
        self._target = (host, int(port))
        self._lock = threading.Lock()
        self._flows = threading.Event()
        self._flows.set()
        self._open, self._listener = [], None
        self.port = None
        self.connections = 0
        self.back()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._flows.set()
        self.refuse()

    def back(self):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port or 0))
        listener.listen(64)
        self.port, self._listener = listener.getsockname()[1], listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def refuse(self):
        """No new connection, and the old ones are cut."""
        listener, self._listener = self._listener, None
        if listener:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.cut()

    def cut(self):
        with self._lock:
            pairs, self._open = self._open, []
        for pair in pairs:
            for end in pair:
                end.close_now()

    def stall(self):
        """Connections are taken and stay open; not a byte passes."""
        self._flows.clear()

    def go_on(self):
        self._flows.set()

    def _accept(self, listener):
        while True:
            try:
                client = listener.accept()[0]
            except OSError:
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            pair = _End(client), _End(server)
            with self._lock:
                self.connections += 1
                self._open.append(pair)
            for source, sink in (pair, pair[::-1]):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _copy(self, source, sink):
        try:
            while data := source.socket.recv(65536):
                self._flows.wait()
                sink.socket.sendall(data)
        except OSError:
            pass
        source.close_now()
        sink.close_now()


class _End:
    def __init__(self, connected):
        self.socket = connected
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close_now(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()


def database_proxy(stack, role):
    """(proxy, conninfo through it) for one service's role."""
    conninfo = psycopg2.extensions.parse_dsn(stack._values("proxy", role, 0)["conninfo"])
    proxy = Proxy(conninfo["host"], conninfo["port"])
    stack.at_exit(lambda: proxy.__exit__())
    return proxy, psycopg2.extensions.make_dsn(**{**conninfo, "host": "127.0.0.1", "port": proxy.port})


def metric_is(service, wanted, name, **labels):
    return lambda: service.metric(name, **labels) == wanted


# ---- sealed bytes, opened without payfact's code

_crypto = ctypes.CDLL(ctypes.util.find_library("crypto"))
for _name in ("EVP_CIPHER_CTX_new", "EVP_aes_256_gcm"):
    getattr(_crypto, _name).restype = ctypes.c_void_p
GCM_GET_TAG, GCM_SET_TAG = 0x10, 0x11


def open_sealed(stack, key_id, bound_to, sealed):
    """AES-256-GCM under the stack's keyring: nonce, ciphertext, tag. AssertionError when it is not sealed so."""
    lines = (stack.dir / "secrets" / "keyring").read_text().split("\n")
    keys = {words[1]: bytes.fromhex(words[2]) for words in map(str.split, lines) if len(words) == 3}
    nonce, text, tag = sealed[:12], sealed[12:-16], sealed[-16:]
    context = ctypes.c_void_p(_crypto.EVP_CIPHER_CTX_new())
    out, length, aad = ctypes.create_string_buffer(len(text) + 16), ctypes.c_int(), bound_to.encode()
    steps = [
        _crypto.EVP_DecryptInit_ex(context, ctypes.c_void_p(_crypto.EVP_aes_256_gcm()), None, keys[key_id], nonce),
        _crypto.EVP_DecryptUpdate(context, None, ctypes.byref(length), aad, len(aad)),
        _crypto.EVP_DecryptUpdate(context, out, ctypes.byref(length), text, len(text)),
        _crypto.EVP_CIPHER_CTX_ctrl(context, GCM_SET_TAG, 16, tag),
        _crypto.EVP_DecryptFinal_ex(context, ctypes.create_string_buffer(16), ctypes.byref(length)),
    ]
    _crypto.EVP_CIPHER_CTX_free(context)
    assert steps == [1] * 5, f"not sealed for {bound_to}: {steps}"
    return out.raw[: len(text)]


def seal(stack, bound_to, plain):
    """(key id, sealed bytes) as ingest would have made them."""
    lines = (stack.dir / "secrets" / "keyring").read_text().split("\n")
    _, key_id, key = next(words for words in map(str.split, lines) if len(words) == 3 and words[0] == "current")
    context = ctypes.c_void_p(_crypto.EVP_CIPHER_CTX_new())
    nonce, tag, aad = os.urandom(12), ctypes.create_string_buffer(16), bound_to.encode()
    out, length = ctypes.create_string_buffer(len(plain) + 16), ctypes.c_int()
    steps = [
        _crypto.EVP_EncryptInit_ex(context, ctypes.c_void_p(_crypto.EVP_aes_256_gcm()), None, bytes.fromhex(key), nonce),
        _crypto.EVP_EncryptUpdate(context, None, ctypes.byref(length), aad, len(aad)),
        _crypto.EVP_EncryptUpdate(context, out, ctypes.byref(length), plain, len(plain)),
        _crypto.EVP_EncryptFinal_ex(context, ctypes.create_string_buffer(16), ctypes.byref(length)),
        _crypto.EVP_CIPHER_CTX_ctrl(context, GCM_GET_TAG, 16, tag),
    ]
    _crypto.EVP_CIPHER_CTX_free(context)
    assert steps == [1] * 5, steps
    return key_id, nonce + out.raw[: len(plain)] + tag.raw


# ---- Stripe's callbacks, made and signed here

SECRETS = ("4242424242424242", "pi_secret_of_the_customer", "buyer@example.com")  # must be found nowhere but sealed


def stripe_event(payment_id, kind="payment_intent.succeeded", amount=2599, event_id=None, **changes):
    """The bytes of an event about the first attempt of a payment, with things that may not leave it."""
    intent = {
        "id": "pi_3T" + payment_id[-20:],
        "object": "payment_intent",
        "amount": amount,
        "amount_received": amount,
        "currency": "eur",
        "capture_method": "automatic",
        "client_secret": SECRETS[1],
        "livemode": False,
        "metadata": {"order_id": payment_id + "A01"},
        "receipt_email": SECRETS[2],
        "description": "card " + SECRETS[0],
        "status": "succeeded",
        **changes,
    }
    event = {
        "id": event_id or "evt_3T" + uuid.uuid4().hex,
        "object": "event",
        "api_version": "2024-06-20",
        "created": int(time.time()),
        "data": {"object": intent},
        "livemode": False,
        "pending_webhooks": 1,
        "request": {"id": None, "idempotency_key": None},
        "type": kind,
    }
    return json.dumps(event, indent=2).encode()


def stripe_signature(secret, body, at=None):
    at = int(time.time()) if at is None else at
    mac = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at},v1={mac}"
