# SPDX-License-Identifier: Apache-2.0
"""Topics as another language sees them: Avro single-object encoding by the schema files, Ed25519 by the openssl tool."""

import hashlib
import io
import json
import os
import pathlib
import secrets
import subprocess
import tempfile
import time
import uuid

import fastavro
from confluent_kafka import Consumer, Producer, TopicPartition

ROOT = pathlib.Path(__file__).resolve().parents[3]
RECORD_OF = {
    "notifications": "RawNotification",
    "commands": "Command",
    "inputs": "PaymentInput",
    "psp-jobs": "PspJob",
    "events": "PaymentEvent",
    "dlq": "DeadLetter",
}
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
SIGNED_PREFIX = b"payfact-command\0"


def new_payment_id():
    """A ULID: 48 bits of time, 80 random ones."""
    value = (int(time.time() * 1000) << 80) | secrets.randbits(80)
    return "".join(CROCKFORD[(value >> shift) & 31] for shift in range(125, -1, -5))


def fingerprint(schema):
    canonical = fastavro.schema.to_parsing_canonical_form(schema)
    return bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))


def load_schemas():
    """{record name: (parsed, fingerprint)} and {fingerprint: parsed}, older versions included."""
    current, by_fingerprint = {}, {}
    folder = ROOT / "schemas" / "avro"
    for path in sorted(folder.glob("**/*.avsc")):
        document = json.loads(path.read_text())
        parsed = fastavro.parse_schema(document, named_schemas={})
        mark = fingerprint(document)
        by_fingerprint[mark] = parsed
        if path.parent == folder:
            current[document["name"]] = (parsed, mark)
    return current, by_fingerprint


CURRENT, BY_FINGERPRINT = load_schemas()
BY_REGISTRY_ID = {}  # id -> parsed schema: filled by a test that has a schema registry


def encode(record_name, record):
    parsed, mark = CURRENT[record_name]
    out = io.BytesIO()
    out.write(b"\xc3\x01" + mark)
    fastavro.schemaless_writer(out, parsed, record, strict=False)
    return out.getvalue()


def decode(value):
    """A record as a dict; ValueError when the frame or its schema is not known."""
    if value is None:
        raise ValueError("no value")
    if value[:1] == b"\0" and int.from_bytes(value[1:5], "big") in BY_REGISTRY_ID:
        return fastavro.schemaless_reader(io.BytesIO(value[5:]), BY_REGISTRY_ID[int.from_bytes(value[1:5], "big")])
    if value[:2] != b"\xc3\x01" or value[2:10] not in BY_FINGERPRINT:
        raise ValueError(f"not a single-object frame of a known schema: {value[:10].hex()}")
    try:
        return fastavro.schemaless_reader(io.BytesIO(value[10:]), BY_FINGERPRINT[value[2:10]])
    except (IndexError, EOFError) as error:
        raise ValueError(f"cut short: {value[:40].hex()}") from error


class Topic:
    """Everything a topic holds, from its beginning, in the order of each partition. A downstream consumer."""

    def __init__(self, brokers, name):
        self.name, self.messages = name, []
        self._consumer = Consumer({
            "bootstrap.servers": brokers, "group.id": f"test-{uuid.uuid4()}", "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "fetch.wait.max.ms": 20,
        })  # fmt: skip
        partitions = self._consumer.list_topics(name, timeout=15).topics[name].partitions
        if not partitions:
            raise RuntimeError(f"no topic {name}")
        self._partitions = [TopicPartition(name, p, 0) for p in sorted(partitions)]
        self._consumer.assign(self._partitions)
        self._next = {p.partition: 0 for p in self._partitions}

    def read(self):
        """Read up to where the partitions end now; returns all messages so far."""
        ends = {}
        for p in self._partitions:
            low, high = self._consumer.get_watermark_offsets(p, timeout=15)
            self._next[p.partition] = max(self._next[p.partition], low)
            ends[p.partition] = high
        deadline = time.monotonic() + 30
        while any(self._next[p] < ends[p] for p in ends):
            msg = self._consumer.poll(0.2)
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.name}: read to {self._next}, ends are {ends}")
            if msg is None:
                continue
            if msg.error():
                raise RuntimeError(f"{self.name}: {msg.error()}")
            self._next[msg.partition()] = msg.offset() + 1
            self.messages.append(self._as_dict(msg))
        return self.messages

    @staticmethod
    def _as_dict(msg):
        try:
            record = decode(msg.value())
        except ValueError:
            record = None
        return {
            "key": (msg.key() or b"").decode("utf-8", "replace"),
            "partition": msg.partition(),
            "offset": msg.offset(),
            "headers": dict(msg.headers() or []),
            "value": msg.value(),
            "record": record,
        }

    def close(self):
        self._consumer.close()


class Group:
    """How far a consumer group has come on a topic, asked without joining it."""

    def __init__(self, brokers, topic, group):
        self._consumer = Consumer({"bootstrap.servers": brokers, "group.id": group, "enable.auto.commit": False})
        partitions = self._consumer.list_topics(topic, timeout=15).topics[topic].partitions
        self._partitions = [TopicPartition(topic, p) for p in sorted(partitions)]

    def lag(self):
        """(records that are not committed yet, sum of the partitions' ends)"""
        left = end = 0
        for at in self._consumer.committed(self._partitions, timeout=15):
            low, high = self._consumer.get_watermark_offsets(TopicPartition(at.topic, at.partition), timeout=15)
            left += high - max(low, at.offset)
            end += high
        return left, end

    def close(self):
        self._consumer.close()


class Signer:
    """One principal's Ed25519 key pair as PEM files."""

    def __init__(self, directory, key_id):
        self.key_id = key_id
        self.private, self.public = directory / f"{key_id}.pem", directory / f"{key_id}.pub.pem"
        openssl("genpkey", "-algorithm", "ed25519", "-out", self.private)
        openssl("pkey", "-in", self.private, "-pubout", "-out", self.public)
        self.private.chmod(0o600)

    def sign(self, value):
        with tempfile.NamedTemporaryFile() as file:  # Ed25519 needs the whole text at once: no pipe
            file.write(SIGNED_PREFIX + value)
            file.flush()
            return openssl("pkeyutl", "-sign", "-inkey", self.private, "-rawin", "-in", file.name)


def openssl(*arguments):
    """In a session of its own: Ctrl-C is this process's to answer, not a failure of a tool."""
    run = subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True, start_new_session=True)
    return run.stdout


class Upstream:
    """A merchant's service: makes signed commands by itself, with nothing of payfact."""

    def __init__(self, brokers, topic, signer, caller):
        self.topic, self.signer, self.caller = topic, signer, caller
        self._producer = Producer({"bootstrap.servers": brokers, "partitioner": "murmur2_random", "linger.ms": 0,
                                   "log_level": 2})  # fmt: skip  # that its broker goes away at the end is no news

    def command(self, kind, merchant_id, payment_id, body=None, secret=None, **changes):
        """The Avro record of a command; `body` goes into the optional record that `kind` names."""
        record = {
            "command_id": changes.pop("command_id", str(uuid.uuid4())),
            "type": kind,
            "caller": self.caller,
            "merchant_id": merchant_id,
            "payment_id": payment_id,
            "issued_at": int(time.time() * 1e6),
            "secrets_sha256": hashlib.sha256(secret).digest() if secret else None,
        }
        if body is not None:
            record[kind.lower()] = body
        record.update(changes)
        return record

    def send(self, record, secret=None, key=None, signature=None, key_id=None):
        """Produce a command; returns the value's bytes. `signature` and `key_id` replace the right ones."""
        value = encode("Command", record)
        headers = [
            ("payfact-key-id", (key_id or self.signer.key_id).encode()),
            ("payfact-signature", signature or self.signer.sign(value)),
        ]
        if secret:
            headers.append(("payfact-secrets", secret))
        self.produce(key if key is not None else record["payment_id"], value, headers)
        return value

    def create_payment(self, payment_id, merchant_id, amount_minor, currency, routes, instruments=None, **body):
        """CREATE_PAYMENT with one instrument per route; returns (record, secret) as sent."""
        document = {
            "merchant_order_no": f"ORDER-{payment_id}",
            "amount_minor": amount_minor,
            "currency": currency,
            "capture_mode": "AUTOMATIC",
            "expires_at": None,
            "retry_until_expiry": None,
            "description": None,
            "routes": routes,
            "start": True,
            **body,
        }
        params = [
            {"instrument": i, "payer_id": None, "payer_ip": None, "return_url": "https://shop.example/return", "extra": {}}
            for i in (instruments or ["pm_card_visa"] * len(routes))
        ]
        sealed = {"salt": secrets.token_bytes(16), "params": params, "redirect_data": None}
        secret = encode("CommandSecrets", sealed)
        record = self.command("CREATE_PAYMENT", merchant_id, payment_id, document, secret)
        self.send(record, secret)
        return record, secret

    def produce(self, key, value, headers=()):
        """Anything at all onto the topic; waits for the broker."""
        reports = []
        self._producer.produce(self.topic, key=key.encode(), value=value, headers=list(headers),
                               on_delivery=lambda error, msg: reports.append(error))  # fmt: skip
        self._producer.flush(30)
        if reports != [None]:
            raise RuntimeError(f"not delivered: {reports}")


def keyring_file(path):
    path.write_text(f"payfact-keyring-1\ncurrent test-1 {secrets.token_hex(32)}\n")
    os.chmod(path, 0o600)
    return path
