# SPDX-License-Identifier: Apache-2.0
"""Malformed records and callbacks by the thousand leave the memory of the services where it was. How many: PAY_TEST_RECORDS
(the million of them, without servers, is tests/property/malformed.c)."""

import http.client
import os
import random

import pytest
from confluent_kafka import Producer

from parts import stripe_signature
from payfact_stack import ACCOUNT_A, Stack, build_dir
from procs import wait_for
from test_hostile import READER, dead_counted, good

RECORDS = int(os.environ.get("PAY_TEST_RECORDS", "3000"))
PART = 500
WARM_UP = 1500  # buffers, caches and pools find their size
VALUE_BYTES = 20000  # keeping a twentieth of them would be seen
GROWTH_MAX_BYTES = 12 << 20


@pytest.fixture(scope="module")
def stack(servers):
    program = (build_dir() / "bin" / "payfact-ingest").read_bytes()
    if b"__asan_init" in program or b"__tsan_init" in program:
        pytest.skip("a sanitizer keeps what was freed: it looks for leaks by itself")
    with Stack(servers, redis=False) as made:
        made.start("webhook", "relay", "psp", "processor")
        yield made
        assert {service.fell() for service in made.services.values()} == {None}


def resident(service):
    with open(f"/proc/{service.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def values(stack, topic, rng):
    """Damaged values of a size that counts, no two alike: noise behind a frame, or behind the beginning of a good one."""
    whole = good(stack, topic)
    while True:
        yield whole[: rng.choice((10, 11, len(whole) // 2, len(whole) - 1))] + rng.randbytes(VALUE_BYTES)


def pool_of_signed(stack, rng):
    """Signing is slow here: a few commands, again and again."""
    source = values(stack, "commands", rng)
    return [(value, [("payfact-key-id", b"shop-key"), ("payfact-signature", stack.signers["shop"].sign(value))])
            for value in (next(source) for _ in range(20))]  # fmt: skip


def send(stack, topic, count, rng):
    had = dead_counted(stack, topic)
    producer = Producer({"bootstrap.servers": stack.brokers, "queue.buffering.max.kbytes": 65536, "batch.size": 30000})
    errors = []
    source = values(stack, topic, rng)
    signed = pool_of_signed(stack, rng) if topic == "commands" else None
    for number in range(count):
        value, headers = rng.choice(signed) if signed else (next(source), [])
        while True:
            try:
                producer.produce(stack.topic_name(topic), key=b"k%d" % number, value=value, headers=headers,
                                 on_delivery=lambda error, msg: error and errors.append(error))  # fmt: skip
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(60) == 0 and errors == []
    wait_for(f"{count} dead letters of {topic}", lambda: dead_counted(stack, topic) == had + count, 300, pause_s=0.2)


def send_in_parts(stack, topic, count, rng):
    """As many as lie in a service's queues at most, at the first of them and at the last: what grows then is kept."""
    for _ in range(count // PART):
        send(stack, topic, PART, rng)


@pytest.mark.parametrize("topic", READER)
def test_malformed_records_leave_no_memory(stack, topic):
    service, rng = stack.service(READER[topic]), random.Random(7)
    send_in_parts(stack, topic, WARM_UP, rng)
    before = resident(service)
    send_in_parts(stack, topic, RECORDS, rng)
    after = resident(service)
    print(f"{service.name}: {before >> 10} KiB after {WARM_UP}, {after >> 10} KiB after {RECORDS} more")
    assert after - before < GROWTH_MAX_BYTES


def test_refused_callbacks_leave_no_memory(stack):
    service, rng = stack.service("webhook"), random.Random(7)
    secret = next(a["webhook_secret"] for a in stack.psp_accounts if a["id"] == ACCOUNT_A)

    def call(count):
        client = http.client.HTTPConnection("127.0.0.1", int(service.env["PAYFACT_HTTP_PORT"]), timeout=20)
        for number in range(count):
            body = b'{"id": "' + rng.randbytes(VALUE_BYTES)
            right = stripe_signature(secret, body) if number % 2 else "t=1,v1=00"
            client.request("POST", f"/callbacks/{ACCOUNT_A}", body, {"Stripe-Signature": right})
            answer = client.getresponse()
            answer.read()
            assert answer.status == 400
        client.close()

    call(WARM_UP)
    before = resident(service)
    call(RECORDS)
    after = resident(service)
    print(f"webhook: {before >> 10} KiB after {WARM_UP}, {after >> 10} KiB after {RECORDS} more")
    assert after - before < GROWTH_MAX_BYTES
