#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Consumes payfact.events and prints each fact once.

    pip install confluent-kafka fastavro
    docs/examples/consumer.py BOOTSTRAP [TOPIC]
"""
import io
import json
import pathlib
import sys

import confluent_kafka
import fastavro

SCHEMA = fastavro.parse_schema(
    json.loads((pathlib.Path(__file__).parents[2] / "schemas/avro/PaymentEvent.avsc").read_text())
)
seen = {}  # payment_id -> last sequence; a real consumer keeps it with its own data


def decode(value):
    """Single-object encoding; a consumer of several schema versions looks the fingerprint up."""
    if value[:2] != b"\xc3\x01":
        raise ValueError("not in single-object encoding")
    return fastavro.schemaless_reader(io.BytesIO(value[10:]), SCHEMA)


def handle(event):
    payment, sequence = event["payment_id"], event["sequence"]
    if sequence and sequence <= seen.get(payment, 0):
        return  # relayed again: known already
    seen[payment] = sequence
    print(payment, sequence, event["type"], event["order_status"], event["amount_minor"], event["reason_code"], flush=True)


def main(bootstrap, topic="payfact.events"):
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "payfact-example", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    try:
        while True:
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                handle(decode(message.value()))
    except KeyboardInterrupt:
        consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
