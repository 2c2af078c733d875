# SPDX-License-Identifier: Apache-2.0
"""A whole payfact per test, on real Apache Kafka, PostgreSQL and Redis; each test once more with Redis dead.

After every test: nothing is on its way, the PSP's ledger, the database and the published events tell the same story,
and every process ends by itself, with status 0, when it is asked to.
"""

import os
import pathlib
import re
import sys

import pytest

from payfact_stack import Servers, Stack


@pytest.fixture(scope="session")
def servers():
    with Servers() as started:
        yield started


def pytest_configure(config):
    config.addinivalue_line("markers", "stack(**options): how this test's Stack is made; prepare(stack) runs before start()")
    config.addinivalue_line("markers", "unaudited: the test leaves something that the audit would rightly report")
    config.addinivalue_line("markers", "redis_irrelevant: nothing in this test can depend on Redis")


def pytest_generate_tests(metafunc):
    """Every test of a scenario runs with Redis and with a Redis that is configured and does not answer."""
    if "stack" in metafunc.fixturenames:
        single = metafunc.definition.get_closest_marker("redis_irrelevant")
        metafunc.parametrize("redis_up", [True] if single else [True, False], ids=lambda up: "redis" if up else "no-redis")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        item.failed = outcome.get_result().failed


@pytest.fixture
def stack(servers, redis_up, request):
    marker = request.node.get_closest_marker("stack")
    options = dict(marker.kwargs) if marker else {}
    prepare = options.pop("prepare", lambda made: None)
    with Stack(servers, **options) as made:
        prepare(made)
        made.start()
        if not redis_up:
            made.redis.stop()
        yield made
        if getattr(request.node, "failed", True):
            kept = pathlib.Path(os.environ["PAY_BUILD_DIR"]) / "failed" / re.sub(r"\W+", "-", request.node.name)
            made.keep(kept)
            tails = (f"---- {service.name}:\n{service.tail(10)}" for service in made.services.values())
            print(f"what was going on: {kept}", *tails, sep="\n", file=sys.stderr)
            raise_for_fallen(made)
            return
        if not request.node.get_closest_marker("unaudited"):
            made.idle()
            assert made.audit() == []
        raise_for_fallen(made)
        running = {name: service for name, service in made.services.items() if service.alive()}
        for service in running.values():
            service.ask_to_stop()  # all at once, as a deployment goes down
        codes = {name: service.stop() for name, service in running.items()}
        assert set(codes.values()) <= {0}, codes


def raise_for_fallen(made):
    """A process that ended by itself is a failure of its own, whatever the test saw of it."""
    fallen = {name: (service.fell(), service.tail(5)) for name, service in made.services.items() if service.fell() is not None}
    assert not fallen, f"ended by themselves: {fallen}"
