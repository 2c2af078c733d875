#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Consumes payfact.events through a schema registry, with nothing but a stock client, and prints each fact once.

    pip install 'confluent-kafka[avro,schemaregistry]'
    docs/examples/consumer_registry.py BOOTSTRAP REGISTRY_URL [TOPIC]

Whichever version an event was written with, the registry has its schema. Give AvroDeserializer a schema of your own to
read every version as that one.
"""

import json
import sys

from confluent_kafka import Consumer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

seen = {}  # payment_id -> last sequence; a real consumer keeps it in the same transaction as its own effect


def handle(event, headers):
    payment, sequence = event["payment_id"], event["sequence"]
    if sequence and sequence <= seen.get(payment, 0):
        return  # relayed again: known already
    seen[payment] = sequence
    fact = {name: event[name] for name in ("payment_id", "sequence", "type", "order_status", "amount_minor", "currency")}
    print(json.dumps({**fact, "ce_type": headers["ce_type"].decode()}), flush=True)


def main(bootstrap, registry_url, topic="payfact.events"):
    deserialize = AvroDeserializer(SchemaRegistryClient({"url": registry_url, "timeout": 10}))
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "payfact-example", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        while True:
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                event = deserialize(message.value(), SerializationContext(message.topic(), MessageField.VALUE))
                handle(event, dict(message.headers()))
    except KeyboardInterrupt:
        consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
