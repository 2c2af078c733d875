# SPDX-License-Identifier: Apache-2.0
"""SIGTERM under load: each service ends with 0 inside its bound, and after a start the payments go on."""

import time

import pytest

from payfact_stack import SERVICES, wait_for
from story import attempt, charges, created

DRAIN_S = 20  # PAYFACT_DRAIN_MS_MAX's default


@pytest.mark.stack(psp={"callback_delay_ms": 200})
def test_every_service_drains_and_goes_on(stack):
    stack.psp.script({"operation": "create", "do": "delay", "answer_delay_ms": 700})  # calls are in flight when it is asked to end
    payments = []
    for name in SERVICES:
        payments += [stack.pay(1000 + len(payments), "EUR") for _ in range(4)]
        wait_for("calls are under way", lambda: len(stack.psp.requests(operation="create")) > len(payments) - 4)
        service, asked = stack.service(name), time.monotonic()
        assert service.stop() == 0, service.tail()
        took = time.monotonic() - asked
        assert took < DRAIN_S, f"{name} took {took:.1f} s"
        payments.append(stack.pay(5000, "EUR"))  # while it is away
        service.start()
    for payment in payments:
        stack.wait_event(payment, "PaymentSucceeded", 60)
    stack.psp.clear_script()
    stack.idle()
    for payment in payments:
        assert len(charges(stack, attempt(payment))) == 1
        assert sum(r["executed"] for r in created(stack, attempt(payment))) == 1


def test_all_at_once(stack):
    """A whole deployment goes down and comes back; what was on Kafka is not lost."""
    stack.stop()
    payments = [stack.pay(2599, "EUR") for _ in range(3)]
    stack.start()
    for payment in payments:
        stack.wait_event(payment, "PaymentSucceeded", 60)
