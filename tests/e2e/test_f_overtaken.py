# SPDX-License-Identifier: Apache-2.0
"""Scenario F: the callback overtakes our own API answer, and our own ATTEMPT_SUBMITTED."""

import threading

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from payfact_stack import new_payment_id, wait_for
from records import Topic
from story import attempt, charges, history, published, verdicts

SLOW_NET = "slow."  # the processor reads this prefix's inputs: a copy of the real topic that the test reorders


def test_f_callback_before_our_own_answer(stack):
    payment = new_payment_id()
    order = attempt(payment)
    stack.psp.script({"order": order, "operation": "create", "do": "delay", "answer_delay_ms": 1500, "times": 1})
    stack.pay(2599, "EUR", payment_id=payment)
    stack.wait_attempt(order, "SUCCEEDED")
    (call,) = stack.psp.requests(order=order, operation="create")
    assert call["answered"] == "open", "the PSP has not answered yet"
    wait_for("our own answer is decided too", lambda: history(stack, payment, source="SYNC"))
    stack.idle()
    (first,) = history(stack, payment, event_type="SUC", verdict="APPLY", aggregate="ATTEMPT")
    assert first["source"] == "WEBHOOK"
    assert {r["verdict"] for r in history(stack, payment, source="SYNC", aggregate="ATTEMPT")} == {"IGNORE"}
    assert published(stack, payment).count("PaymentSucceeded") == 1
    assert len(charges(stack, order)) == 1


class HeldInputs:
    """Passes the inputs on to the processor's own copy of the topic, byte by byte and partition by partition, and
    keeps back those that hold() names until release()."""

    def __init__(self, stack):
        self.stack, self.target = stack, stack.prefix + SLOW_NET + "inputs"
        admin = AdminClient({"bootstrap.servers": stack.brokers})
        topics = [NewTopic(stack.prefix + SLOW_NET + name, stack.partitions, 1) for name in ("inputs", "dlq")]
        for made in admin.create_topics(topics).values():
            made.result(15)
        self._source = Topic(stack.brokers, stack.topic_name("inputs"))
        self._producer = Producer({"bootstrap.servers": stack.brokers, "linger.ms": 0, "log_level": 2})
        self._passed, self.kept, self._hold = 0, [], lambda record: False
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def hold(self, wanted):
        self._hold = wanted

    def release(self):
        with self._lock:
            self._hold = lambda record: False
            for message in self.kept:
                self._pass(message)
            self.kept = []

    def _pass(self, message):
        headers = [(name, value) for name, value in message["headers"].items()]
        self._producer.produce(self.target, key=message["key"].encode(), value=message["value"],
                               partition=message["partition"], headers=headers)  # fmt: skip
        self._producer.flush(15)

    def _run(self):
        while not self._stop.wait(0.02):
            messages = self._source.read()
            with self._lock:
                for message in messages[self._passed :]:
                    self.kept.append(message) if self._hold(message["record"]) else self._pass(message)
                self._passed = len(messages)

    def close(self):
        self._stop.set()
        self._thread.join()
        self._source.close()


def reads_held_inputs(stack):
    stack.held = HeldInputs(stack)
    stack.at_exit(stack.held.close)


@pytest.mark.stack(settings={"processor": {"TOPIC_PREFIX": "${prefix}" + SLOW_NET}}, prepare=reads_held_inputs)
def test_f_o11_callback_before_our_own_submitted(stack):
    """The processor sees the callbacks first: what the psp role says of its own call is kept back behind them."""
    payment = new_payment_id()
    order = attempt(payment)
    stack.held.hold(lambda record: record["source"] in ("LOCAL", "SYNC"))
    stack.pay(2599, "EUR", payment_id=payment)
    stack.wait_attempt(order, "SUCCEEDED")
    wait_for("SUBMITTED and the answer are kept back", lambda: len(stack.held.kept) == 2)
    (first,) = history(stack, payment, event_type="SUC", verdict="APPLY", aggregate="ATTEMPT")
    assert first["source"] == "WEBHOOK" and first["from_status"] == "CREATED"
    stack.held.release()
    wait_for("both are decided", lambda: history(stack, payment, source="SYNC", event_type="SUC"))
    stack.idle()
    assert verdicts(stack, payment, "SUB") == ["IGNORE"]
    late = [r for r in history(stack, payment, aggregate="ATTEMPT", event_type="SUC") if r["source"] == "SYNC"]
    assert [r["verdict"] for r in late] == ["IGNORE"]
    assert stack.attempt_status(order) == "SUCCEEDED"
    assert published(stack, payment).count("PaymentSucceeded") == 1
    assert len(charges(stack, order)) == 1
