# SPDX-License-Identifier: Apache-2.0
"""The psp role on a machine whose wall clock is an hour wrong: what is in time is sent, queries are asked, and when they
were asked is said by the database's clock, which alone decides what a not-found may prove."""

import datetime

import pytest

from clocks import Clock
from payfact_stack import Servers, Stack
from procs import wait_for
from psp_world import FAST, World
from servers import Postgres, signals_held, work_dir


@pytest.fixture(params=[3600, -3600], ids=["ahead", "behind"])
def world(servers, request):
    with Stack(servers, redis=False, settings={"psp": FAST}) as stack:
        clock = Clock(stack.dir, "psp")
        clock.set(request.param * 1000)
        psp = stack.service("psp")
        psp.env.update(clock.env())
        psp.start()
        yield World(stack)
        assert psp.stop() == 0


class SteppedDatabase(Servers):
    """A PostgreSQL of its own, whose clock a test steps; the broker is everybody's."""

    def __init__(self, shared):
        super().__init__()
        with signals_held():
            self._work = work_dir()
        self.clock = Clock(self._work, "database")
        self._kafka = shared.kafka_brokers

    def __enter__(self):
        server = Postgres(self._work / "pg")
        self._started.append(server)
        self._pg = server.start(**self.clock.env()).conninfo
        return self


def database_s(world):
    return world.stack.sql("SELECT now() AS now")[0]["now"].timestamp()


def seconds_off(world, message):
    """How far from the database's time the call was asked, as the input says it."""
    asked = message["record"]["event"]["call"]["asked_at"]
    return abs((asked if isinstance(asked, datetime.datetime) else datetime.datetime.fromtimestamp(asked / 1e6, datetime.UTC))
               .timestamp() - database_s(world))  # fmt: skip


def test_a_wrong_clock_refuses_nothing_that_is_in_time(world):
    job = world.gate(world.job(not_after_s=60))
    world.put(job)
    answer = world.wait_type(job, "ATTEMPT_SUCCEEDED")[-1]
    assert len(world.charges(job)) == 1
    assert seconds_off(world, answer) < 30


def test_a_wrong_clock_asks_and_says_when_by_the_databases(world):
    job = world.gate(world.job(not_after_s=60))
    world.stack.psp.script({"order": job["attempt_id"], "operation": "create", "do": "charge_then_timeout", "times": 1})
    world.put(job)
    world.wait_type(job, "ATTEMPT_UNKNOWN")
    world.put(world.job("QUERY", job["payment_id"], number=1, about_job_id=job["job_id"], not_after_s=60))
    answer = world.wait_type(job, "ATTEMPT_SUCCEEDED")[-1]
    assert seconds_off(world, answer) < 30 and len(world.charges(job)) == 1


def test_the_first_thing_it_does_may_be_a_query(world):
    """Nothing has told it the time yet: it asks rather than drop what seems late."""
    job = world.gate(world.job(), sending_at="now()", sent_by="'somebody'", sends="1", last_send_at="now()")
    world.put(world.job("QUERY", job["payment_id"], number=1, about_job_id=job["job_id"], not_after_s=60))
    answer = world.wait_type(job, "ATTEMPT_NOT_FOUND")[-1]
    assert seconds_off(world, answer) < 30


@pytest.mark.parametrize("about", [True, False], ids=["about-a-job", "about-none"])
def test_it_asks_though_the_databases_clock_went_back(servers, about):
    """As when a standby with another clock takes over, and no money call tells the time anew: a query in time by the
    database's clock looks late by what it said before. One about a job of ours is told the time by that job's gate;
    the other is told by nobody."""
    with SteppedDatabase(servers) as own, Stack(own, redis=False, settings={"psp": FAST}) as stack:
        own.clock.set(60000)
        stack.service("psp").start()
        world = World(stack)
        job = world.gate(world.job())
        world.stack.psp.script({"order": job["attempt_id"], "operation": "create", "do": "charge_then_timeout", "times": 1})
        world.put(job)
        world.wait_type(job, "ATTEMPT_UNKNOWN")
        own.clock.set(0)
        asked = iter(range(1, 1000))

        def answered():  # asked again and again, as recovery does
            job_id = job["job_id"] if about else None
            world.put(world.job("QUERY", job["payment_id"], number=next(asked), about_job_id=job_id, not_after_s=30))
            return "ATTEMPT_SUCCEEDED" in world.types(job)

        wait_for("a query has its answer", answered, 20, pause_s=0.2)
        assert len(world.charges(job)) == 1
        assert stack.service("psp").stop() == 0
