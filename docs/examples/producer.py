#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Produces a signed command or a notification through a schema registry, with nothing but stock clients.

    pip install 'confluent-kafka[avro,schemaregistry]' cryptography
    docs/examples/producer.py pay    --merchant acme --caller shop --key-id shop-1 --key-file shop.pem \\
                                     --route stripe/stripe-main/card --amount 2599 --currency EUR --instrument pm_1N...
    docs/examples/producer.py notify --psp stripe --account stripe-main --path /callbacks/stripe-main \\
                                     --header 'Stripe-Signature: t=...' < body
    both take --bootstrap, --registry and --prefix (of the topics).
"""

import argparse
import hashlib
import io
import json
import pathlib
import secrets
import sys
import time
import uuid

import fastavro
from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from cryptography.hazmat.primitives.serialization import load_pem_private_key

SCHEMAS = pathlib.Path(__file__).parents[2] / "schemas" / "avro"
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def now_us():
    return int(time.time() * 1e6)


def new_payment_id():
    """A ULID: 48 bits of time, 80 random ones. It names the payment for ever, and is the record's key."""
    value = (int(time.time() * 1000) << 80) | secrets.randbits(80)
    return "".join(CROCKFORD[(value >> shift) & 31] for shift in range(125, -1, -5))


class Payfact:
    """The topics that others may write. Schemas are payfact's own: they are looked up, never registered from here."""

    def __init__(self, bootstrap, registry_url, prefix="payfact."):
        self.prefix = prefix
        # The partitioner of a Java client: what concerns one payment stays in order. With more than one request under way, librdkafka
        # may take for delivered what the broker refused (confluent-kafka-go's issue 921); such a report has no offset.
        self.producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random", "enable.idempotence": True,
                                  "max.in.flight": 1})  # fmt: skip
        options = {"auto.register.schemas": False, "use.latest.version": True}
        self.serialize = AvroSerializer(SchemaRegistryClient({"url": registry_url, "timeout": 10}), conf=options)

    def produce(self, name, key, record, sign=None, headers=()):
        topic, failures = self.prefix + name, []

        def on_delivery(error, message):
            failures.append(error or (None if message.offset() is not None and message.offset() >= 0 else "no offset"))

        value = self.serialize(record, SerializationContext(topic, MessageField.VALUE))
        headers = [*headers, *(sign(value) if sign else ())]
        self.producer.produce(topic, key=key, value=value, headers=headers, on_delivery=on_delivery)
        self.producer.flush(30)
        if failures != [None]:
            raise RuntimeError(f"not delivered, send the same again: {failures}")


def signer(key_id, key_file):
    """Ed25519 over a fixed prefix and exactly the bytes of the value, framing included."""
    key = load_pem_private_key(pathlib.Path(key_file).read_bytes(), password=None)

    def sign(value):
        return [("payfact-key-id", key_id.encode()), ("payfact-signature", key.sign(b"payfact-command\0" + value))]

    return sign


def single_object(record_name, record):
    """C3 01, the schema's CRC-64-AVRO, the body: for what travels in a header and has no subject in a registry."""
    schema = json.loads((SCHEMAS / f"{record_name}.avsc").read_text())
    canonical = fastavro.schema.to_parsing_canonical_form(schema)
    out = io.BytesIO()
    out.write(b"\xc3\x01" + bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO")))
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), record)
    return out.getvalue()


def create_payment(caller, merchant, routes, instruments, amount_minor, currency, return_url=None):
    """(record, secrets). What the PSP needs and nobody else may read travels beside the value; the value has its digest."""
    payment_id = new_payment_id()
    params = [{"instrument": i, "payer_id": None, "payer_ip": None, "return_url": return_url, "extra": {}} for i in instruments]
    secret = single_object("CommandSecrets", {"salt": secrets.token_bytes(16), "params": params, "redirect_data": None})
    record = {
        "command_id": str(uuid.uuid4()),  # your idempotency key: keep it, and send the same again when in doubt
        "type": "CREATE_PAYMENT",
        "caller": caller,
        "merchant_id": merchant,
        "payment_id": payment_id,
        "issued_at": now_us(),
        "secrets_sha256": hashlib.sha256(secret).digest(),
        "create_payment": {
            "merchant_order_no": f"ORDER-{payment_id}",
            "amount_minor": amount_minor,
            "currency": currency,
            "capture_mode": "AUTOMATIC",
            "routes": [dict(zip(("psp", "psp_account", "method"), route.split("/"))) for route in routes],
        },
    }
    return record, secret


def notification(psp, account, path, headers, body, method="POST"):
    """A callback that another gateway has received: nothing of it may be changed, the PSP's signature covers it."""
    return {
        "notification_id": str(uuid.uuid4()),
        "psp": psp,
        "psp_account": account,
        "method": method,
        "path": path,
        "headers": [{"name": name, "value": value.encode()} for name, value in headers],
        "body": body,
        "received_at": now_us(),
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(dest="kind", required=True)
    pay, notify = kinds.add_parser("pay"), kinds.add_parser("notify")
    for kind in (pay, notify):
        kind.add_argument("--bootstrap", default="localhost:9092")
        kind.add_argument("--registry", default="http://localhost:8081")
        kind.add_argument("--prefix", default="payfact.")
    for name in ("--merchant", "--caller", "--key-id", "--key-file", "--currency"):
        pay.add_argument(name, required=True)
    pay.add_argument("--amount", type=int, required=True, help="in minor units")
    for name in ("--route", "--instrument"):
        pay.add_argument(name, action="append", required=True)
    pay.add_argument("--return-url")
    for name in ("--psp", "--account", "--path"):
        notify.add_argument(name, required=True)
    notify.add_argument("--header", action="append", default=[], help="Name: value")
    given = parser.parse_args(arguments)
    payfact = Payfact(given.bootstrap, given.registry, given.prefix)
    if given.kind == "pay":
        record, secret = create_payment(given.caller, given.merchant, given.route, given.instrument, given.amount,
                                        given.currency, given.return_url)  # fmt: skip
        payfact.produce("commands", record["payment_id"], record, signer(given.key_id, given.key_file),
                        [("payfact-secrets", secret)])  # fmt: skip
        print(record["payment_id"])
    else:
        headers = [tuple(part.strip() for part in header.split(":", 1)) for header in given.header]
        record = notification(given.psp, given.account, given.path, headers, sys.stdin.buffer.read())
        payfact.produce("notifications", given.account, record)
        print(record["notification_id"])


if __name__ == "__main__":
    main()
