# SPDX-License-Identifier: Apache-2.0
"""Calls to a PSP through the gate of money actions, judged by the PSP simulator's own ledger: at most one charge per
job whatever happens, an outcome for every job, and one sick account is nobody else's trouble."""

import hashlib
import statistics
import time

import pytest

from parts import database_proxy, open_sealed, partition_of
from payfact_stack import ACCOUNT_A, ACCOUNT_B, Stack, new_payment_id
from procs import SCALE, wait_for
from psp_world import FAST, HOUR_S, TRACE, World, psp_alone
from records import encode


@pytest.fixture(scope="module")
def stack(servers):
    with psp_alone(servers, FAST) as made:
        yield made


@pytest.fixture
def world(stack):
    stack.psp.clear_script()
    return World(stack)


@pytest.fixture
def own(servers, request):
    """A stack of the test's own; its psp processes end in order."""
    marker = request.node.get_closest_marker("own")
    options = dict(marker.kwargs) if marker else {}
    settings = {"psp": {**FAST, **options.pop("settings", {})}}
    with Stack(servers, redis=False, settings=settings, **options) as made:
        yield World(made)
        assert {s.stop() for s in made.services.values() if s.alive()} <= {0}


def test_a_job_passes_its_gate_once_and_its_answer_arrives(world):
    job = world.gate(world.job())
    world.put(job)
    messages = world.wait_type(job, "ATTEMPT_SUCCEEDED")
    assert world.types(job) == ["ATTEMPT_SUBMITTED", "ATTEMPT_SUCCEEDED"]
    assert len(world.creates(job)) == 1 and len(world.charges(job)) == 1
    (call,) = world.creates(job)
    assert call["idempotency_key"] == job["attempt_id"]
    submitted, succeeded = (m["record"] for m in messages)
    assert submitted["transport_key"] == f"{job['job_id']}:1:ATTEMPT_SUBMITTED"
    assert (submitted["source"], submitted["evidence"]) == ("LOCAL", None)
    assert succeeded["transport_key"] == f"{job['job_id']}:1"
    assert (succeeded["source"], succeeded["evidence_level"]) == ("SYNC", "SYNC_RESPONSE")
    assert succeeded["traceparent"] == TRACE and messages[1]["headers"]["traceparent"] == TRACE.encode()
    event = succeeded["event"]
    assert (event["amount_minor"], event["currency"], event["merchant_request_no"]) == (2599, "EUR", job["attempt_id"])
    assert (event["call"]["job_id"], event["call"]["send_no"], event["call"]["query_by"]) == (job["job_id"], 1, "NONE")
    assert event["call"]["http_status"] == 200 and event["call"]["psp_request_id"]
    evidence = succeeded["evidence"]
    assert evidence["verified_by"] == "tls"
    body = open_sealed(world.stack, evidence["key_id"], f"stripe/{ACCOUNT_A}/{succeeded['transport_key']}", evidence["ciphertext"])
    assert hashlib.sha256(body).digest() == evidence["sha256"] and job["attempt_id"].encode() in body
    row = world.row(job)
    assert (row["sends"], row["closed_at"]) == (1, None) and row["finished_at"] and row["sending_at"] == row["last_send_at"]
    assert row["sent_by"].startswith("psp/")
    assert row["endpoint"] == world.stack.psp.url and row["replay_until"] > row["now"]
    request = open_sealed(world.stack, row["request_key_id"], f"request/{job['job_id']}", bytes(row["request"]))
    assert job["attempt_id"].encode() in request and b"sk_test" not in request  # without credentials


def test_delivered_again_after_its_end_it_says_the_same_again(world):
    job = world.gate(world.job())
    world.put(job)
    world.wait_type(job, "ATTEMPT_SUCCEEDED")
    first = [m["value"] for m in world.inputs(job)]
    for count in (3, 4):
        world.put(job)
        wait_for("said again", lambda n=count: len(world.inputs(job)) == n)
    world.done()
    again = [m["value"] for m in world.inputs(job)][2:]
    assert again == [first[1]] * 2  # the stored outcome, byte for byte
    assert len(world.creates(job)) == 1 and world.row(job)["sends"] == 1


def test_delivered_again_while_it_is_being_sent_it_is_unknown_and_not_sent(world):
    job = world.gate(world.job(), sending_at="now()", sent_by="'somebody'", sends="1", last_send_at="now()")
    world.put(job)
    messages = world.wait_type(job, "ATTEMPT_UNKNOWN")
    assert [m["record"]["transport_key"] for m in messages] == [
        f"{job['job_id']}:1:ATTEMPT_SUBMITTED",
        f"{job['job_id']}:1:ATTEMPT_UNKNOWN",
    ]
    assert world.creates(job) == [] and world.row(job)["sent_by"] == "somebody"


def test_two_copies_at_once_are_one_call(world):
    world.stack.psp.script({"operation": "create", "do": "delay", "delay_ms": 300})
    job = world.gate(world.job())
    world.put(job, job, job)
    world.wait_type(job, "ATTEMPT_SUCCEEDED")
    world.done()
    assert len(world.creates(job)) == 1 and len(world.charges(job)) == 1


@pytest.mark.parametrize("case", ["closed", "late"])
def test_behind_a_closed_or_late_gate_nothing_is_sent(world, case):
    job = world.job(not_after_s=HOUR_S if case == "closed" else -5)
    world.gate(job, **({"closed_at": "now()"} if case == "closed" else {}))
    world.put(job)
    (message,) = world.wait_type(job, "ATTEMPT_NOT_SENT")
    assert message["record"]["event"]["failure_class"] == "NOT_SENT"
    assert message["record"]["transport_key"] == f"{job['job_id']}:0:ATTEMPT_NOT_SENT"
    assert world.creates(job) == [] and world.row(job)["sends"] == 0


def letters(world, job_or_key):
    key = job_or_key if isinstance(job_or_key, bytes) else job_or_key["payment_id"].encode()
    return [m["record"] for m in world.stack.records("dlq") if m["record"]["key"] == key]


def put_other_digest(world):
    job = world.gate(world.job())
    sent = {**job, "amount_minor": 999999}
    world.put(sent)
    return sent


def put_without_gate(world):
    job = world.job()
    world.put(job)
    return job


def put_for_nobody(world):
    job = world.gate(world.job(account="stripe-nobody"))
    world.put(job)
    return job


@pytest.mark.parametrize(
    "put, reason", [(put_other_digest, "GATE_MISSING"), (put_without_gate, "GATE_MISSING"), (put_for_nobody, "UNKNOWN_ACCOUNT")]
)
def test_a_job_that_may_not_be_sent_is_a_dead_letter_with_its_bytes(world, put, reason):
    job = put(world)
    (letter,) = wait_for("it", lambda: letters(world, job))
    assert letter["reason_code"] == reason and letter["value"] is None
    assert letter["topic"] == world.stack.topic_name("psp-jobs") and letter["headers"] == [
        {"name": "traceparent", "value": TRACE.encode()}
    ]
    sealed = letter["sealed_value"]
    assert sealed["bound_to"] == "dead/" + letter["dead_letter_id"]
    assert open_sealed(world.stack, sealed["key_id"], sealed["bound_to"], sealed["ciphertext"]) == encode("PspJob", job)
    world.done()
    assert world.creates(job) == [] and world.inputs(job) == [] and world.charges(job) == []


def test_bytes_that_are_no_job_are_a_dead_letter_and_hold_up_nobody(world):
    world.put_bytes("junk", b"no job")
    job = world.gate(world.job())
    world.put(job)
    world.wait_type(job, "ATTEMPT_SUCCEEDED")
    (letter,) = wait_for("it", lambda: letters(world, b"junk"))
    assert letter["reason_code"] in ("SCHEMA_UNKNOWN", "MALFORMED")
    world.done()


def test_parameters_that_were_sealed_for_another_payment_are_never_sent(world):
    other = world.job()
    job = world.gate(world.job(params=other["params"]))
    world.put(job)
    (message,) = world.wait_type(job, "ATTEMPT_NOT_SENT")
    assert message["record"]["event"]["failure_class"] == "INVALID_REQUEST"
    assert world.creates(job) == [] and world.row(job)["sending_at"] is None


@pytest.mark.own(settings={"RETRY_BUDGET_PER_MIN": 3, "BREAKER_FAILURES": 100})
def test_what_certainly_did_not_leave_frees_the_gate_and_is_given_up_after_its_budget(own):
    own.stack.psp.api("down")
    own.stack.service("psp").start()
    job = own.gate(own.job())
    own.put(job)
    own.wait_type(job, "ATTEMPT_NOT_SENT")
    row = own.row(job)
    assert (row["sending_at"], row["sent_by"], row["finished_at"]) == (None, None, None)
    assert row["sends"] == 4 and row["last_send_at"]  # the first and three more; what was tried stays counted
    own.done()
    assert own.types(job)[-1] == "ATTEMPT_NOT_SENT" and own.types(job).count("ATTEMPT_NOT_SENT") == 1
    own.stack.psp.api("up")
    assert own.charges(job) == []


@pytest.mark.own(settings={"RETRY_FIRST_MS": 200, "RETRY_MAX_MS": 400, "BREAKER_FAILURES": 1000, "RETRY_BUDGET_PER_MIN": 1000})
def test_a_psp_that_comes_back_within_the_budget_charges_once(own):
    own.stack.psp.api("down")
    own.stack.service("psp").start()
    job = own.gate(own.job())
    own.put(job)
    wait_for("it has tried", lambda: own.row(job)["sends"] >= 2)
    own.stack.psp.api("up")
    own.wait_type(job, "ATTEMPT_SUCCEEDED")
    assert len(own.charges(job)) == 1 and own.row(job)["finished_at"]


@pytest.mark.own(settings={"RETRY_FIRST_MS": 400, "RETRY_MAX_MS": 1000, "BREAKER_FAILURES": 1000, "RETRY_BUDGET_PER_MIN": 1000})
def test_a_drain_gives_nothing_up_that_the_next_process_can_send(own):
    own.stack.psp.api("down")
    psp = own.stack.service("psp").start()
    job = own.gate(own.job())
    own.put(job)
    wait_for("it has tried", lambda: own.row(job)["sends"] >= 2)
    assert psp.stop() == 0
    assert "ATTEMPT_NOT_SENT" not in own.types(job) and own.row(job)["sending_at"] is None
    own.stack.psp.api("up")
    psp.start()
    own.wait_type(job, "ATTEMPT_SUCCEEDED")
    assert len(own.charges(job)) == 1


@pytest.mark.own(settings={"BREAKER_FAILURES": 3, "BREAKER_OPEN_MS": 3000, "PSP_WORKERS": 4})
def test_an_open_breaker_fails_submits_fast_and_lets_a_probe_pass_later(own):
    psp = own.stack.service("psp").start()
    own.stack.psp.api("accept_close")
    jobs = [own.gate(own.job()) for _ in range(3)]
    own.put(*jobs)
    for job in jobs:
        own.wait_type(job, "ATTEMPT_UNKNOWN")
    wait_for("open", lambda: psp.metric("payfact_breaker_state", psp_account=ACCOUNT_A) == 2)
    shed = own.gate(own.job())
    began = time.monotonic()
    own.put(shed)
    own.wait_type(shed, "ATTEMPT_NOT_SENT")
    assert time.monotonic() - began < 2 * SCALE
    assert own.row(shed)["sends"] == 0  # never tried
    own.stack.psp.api("up")
    assert own.creates(shed) == []
    # What was sent or ended before says so, whatever the breaker says.
    own.put(jobs[0])
    wait_for("the stored outcome", lambda: own.types(jobs[0]).count("ATTEMPT_UNKNOWN") == 2)
    probe = own.gate(own.job())
    wait_for("half open", lambda: psp.metric("payfact_breaker_state", psp_account=ACCOUNT_A) == 1)
    own.put(probe)
    own.wait_type(probe, "ATTEMPT_SUCCEEDED")
    wait_for("closed", lambda: psp.metric("payfact_breaker_state", psp_account=ACCOUNT_A) == 0)


def patient(document):
    for account in document["psp_accounts"]:
        account["timeouts_ms"]["total"] = 8000


@pytest.mark.own(edit=patient)
def test_one_sick_account_leaves_the_others_latency_alone(own):
    own.stack.service("psp").start()

    def latency():
        job = own.gate(own.job(account=ACCOUNT_B))
        began = time.monotonic()
        own.put(job)
        own.wait_type(job, "ATTEMPT_SUCCEEDED")
        return time.monotonic() - began

    own.stack.psp.script({"account": ACCOUNT_A, "operation": "create", "do": "charge_then_timeout"})
    latency()
    well = statistics.median(latency() for _ in range(8))
    sick = [own.gate(own.job(account=ACCOUNT_A)) for _ in range(60)]
    own.put(*sick)
    wait_for("it hangs", lambda: len(own.stack.psp.requests(account=ACCOUNT_A, operation="create")) >= 8)
    times = [latency() for _ in range(8)]
    beside = statistics.median(times)
    print(f"latency of the other account: median {well * 1000:.0f} ms alone, beside the sick one {beside * 1000:.0f} ms,"
          f" longest {max(times) * 1000:.0f} ms")  # fmt: skip
    assert max(times) < max(5 * well, 3 * SCALE)  # the sick one's calls take 8 s each, in as many workers as it may have
    for job in sick:
        own.wait_type(job, "ATTEMPT_UNKNOWN", "ATTEMPT_NOT_SENT", limit_s=90)
        assert len(own.charges(job)) <= 1
    own.done()


ENDS = {  # kill point: charges, what the job says after the restart
    "after_gate_before_send": (0, "ATTEMPT_UNKNOWN"),
    "after_send_before_answer": (1, "ATTEMPT_UNKNOWN"),
    "after_answer_before_finish": (1, "ATTEMPT_UNKNOWN"),
    "after_finish_before_produce": (1, "ATTEMPT_SUCCEEDED"),
}


@pytest.mark.own()
@pytest.mark.parametrize("point", ENDS)
def test_u3_killed_anywhere_it_never_charges_twice_and_the_outcome_arrives(own, point):
    charges, said = ENDS[point]
    psp = own.stack.service("psp", "dying", FAULT=point, GROUP_INSTANCE_ID="psp-1").start()
    job = own.gate(own.job())
    own.put(job)
    wait_for("it died", lambda: not psp.alive())
    assert len(own.charges(job)) == charges
    assert "ATTEMPT_SUCCEEDED" not in own.types(job)
    psp.env.pop("PAYFACT_FAULT")
    psp.start()
    own.wait_type(job, said)
    own.put(job)  # and once more
    wait_for("once more", lambda: own.types(job).count(said) == 2)
    assert len(own.creates(job)) == charges and len(own.charges(job)) == charges
    assert own.row(job)["sends"] == 1
    if said == "ATTEMPT_UNKNOWN":
        assert own.types(job)[-2:] == ["ATTEMPT_SUBMITTED", "ATTEMPT_UNKNOWN"]
        own.call_is_over(job)
        own.put(own.job("QUERY", job["payment_id"], number=1, about_job_id=job["job_id"]))
        own.wait_type(job, "ATTEMPT_SUCCEEDED")  # by a replay: the pass of the gate has kept the request
        assert len(own.charges(job)) == 1


def sent_and_unknown(world, **changes):
    """A job that the PSP has executed and not answered; its request is stored for a replay."""
    job = world.gate(world.job(**changes))
    world.stack.psp.script({"order": job["attempt_id"], "operation": "create", "do": "charge_then_timeout", "times": 1})
    world.put(job)
    world.wait_type(job, "ATTEMPT_UNKNOWN")
    wait_for("kept", lambda: world.row(job)["finished_at"])
    return job


def query(world, job, number=1):
    asked = world.job("QUERY", job["payment_id"], number=number, about_job_id=job["job_id"])
    world.put(asked)
    return asked


def test_d13_an_idempotent_replay_passes_the_gate_again_and_charges_nothing(world):
    job = sent_and_unknown(world)
    asked = query(world, job)
    messages = world.wait_type(job, "ATTEMPT_SUCCEEDED")
    record = messages[-1]["record"]
    assert (record["source"], record["evidence_level"]) == ("SYNC", "SYNC_RESPONSE")  # the first answer, not a query's
    assert record["event"]["call"]["query_by"] == "IDEMPOTENT_REPLAY"
    row = world.row(job)
    assert row["sends"] == 2 and row["last_send_at"] > row["sending_at"]
    assert record["event"]["call"]["send_no"] == 2
    first, again = world.creates(job)
    assert again["replayed"] and first["body_sha256"] == again["body_sha256"]
    assert first["idempotency_key"] == again["idempotency_key"]
    assert len(world.charges(job)) == 1
    assert asked["job_id"] != job["job_id"]


@pytest.mark.parametrize("case", ["closed_at = now()", "replay_until = now()", "endpoint = 'https://elsewhere.example'"])
def test_u7_where_no_replay_is_allowed_it_is_asked_in_another_way(world, case):
    job = sent_and_unknown(world)
    world.stack.sql(f"UPDATE psp_request SET {case} WHERE job_id = %s", job["job_id"])
    query(world, job)
    messages = world.wait_type(job, "ATTEMPT_SUCCEEDED")
    assert messages[-1]["record"]["event"]["call"]["query_by"] == "SEARCH"
    assert messages[-1]["record"]["source"] == "QUERY"
    assert len(world.creates(job)) == 1 and world.row(job)["sends"] == 1


def test_u7_a_known_reference_is_asked_directly(world):
    job = world.gate(world.job())
    world.put(job)
    intent = world.wait_type(job, "ATTEMPT_SUCCEEDED")[-1]["record"]["event"]["provider_payment_id"]
    asked = world.job("QUERY", job["payment_id"], number=1, about_job_id=job["job_id"], provider_reference=intent,
                      references=[{"kind": "INTENT", "reference": intent}])  # fmt: skip
    world.put(asked)
    wait_for("it is asked", lambda: len([m for m in world.inputs(job) if m["record"]["source"] == "QUERY"]) == 1)
    record = world.inputs(job)[-1]["record"]
    assert record["transport_key"] == f"{asked['job_id']}:1"
    assert record["event"]["call"]["query_by"] == "PSP_REFERENCE" and record["event"]["call"]["asked_at"]
    assert len(world.creates(job)) == 1


def test_a_refusal_of_the_only_send_is_definite(world):
    job = world.gate(world.job())
    world.stack.psp.script({"order": job["attempt_id"], "operation": "create", "do": "refuse", "status": 400})
    world.put(job)
    world.wait_type(job, "ATTEMPT_FAILED")
    # From then on nothing may repeat it: the PSP would execute for the first time what we call failed.
    world.stack.psp.clear_script()
    query(world, job)
    world.wait_type(job, "QUERY_FAILED", "ATTEMPT_NOT_FOUND")
    world.done()
    assert len(world.creates(job)) == 1 and world.charges(job) == [] and world.row(job)["sends"] == 1


def test_a_refusal_is_not_definite_when_a_replay_was_sent_meanwhile(world):
    """The first send hangs; recovery's query repeats the request. Which of both was refused? Nobody can say."""
    job = world.gate(world.job())
    world.stack.psp.script({"order": job["attempt_id"], "operation": "create", "nth": 1, "do": ["refuse", "delay"], "status": 400,
                            "delay_ms": 1500})  # fmt: skip
    world.put(job)
    wait_for("it is on its way", lambda: world.row(job)["request"] is not None and "ATTEMPT_SUBMITTED" in world.types(job))
    world.call_is_over(job)
    query(world, job)
    wait_for("replayed", lambda: world.row(job)["sends"] == 2)
    world.wait_type(job, "ATTEMPT_UNKNOWN")
    assert "ATTEMPT_FAILED" not in world.types(job)
    world.done()
    assert len(world.charges(job)) <= 1


def test_no_replay_beside_a_call_that_has_not_ended(world):
    """That call could then not free its gate: a send that certainly did not leave would never be proved."""
    job = world.gate(world.job())
    world.stack.psp.script({"order": job["attempt_id"], "operation": "create", "nth": 1, "do": "delay", "delay_ms": 1500})
    world.put(job)
    wait_for("it is on its way", lambda: world.row(job)["request"] is not None and "ATTEMPT_SUBMITTED" in world.types(job))
    query(world, job)
    world.wait_type(job, "ATTEMPT_SUCCEEDED")
    world.done()
    assert world.row(job)["sends"] == 1 and len(world.creates(job)) == 1


def test_a_query_after_its_time_is_dropped(world):
    job = sent_and_unknown(world)
    late = world.job("QUERY", job["payment_id"], number=7, about_job_id=job["job_id"], not_after_s=-1)
    had = len(world.inputs(job))
    world.put(late)
    world.done()
    assert len(world.inputs(job)) == had and world.row(job)["sends"] == 1


def test_a_cancel_needs_no_gate_and_is_refused_by_a_paid_transaction(world):
    job = world.gate(world.job())
    world.put(job)
    intent = world.wait_type(job, "ATTEMPT_SUCCEEDED")[-1]["record"]["event"]["provider_payment_id"]
    known = {"provider_reference": intent, "references": [{"kind": "INTENT", "reference": intent}]}
    world.put(world.job("CANCEL", job["payment_id"], **known))
    world.wait_type(job, "CANCEL_REFUSED")
    open_job = world.gate(world.job(instrument="pm_card_authenticationRequired"))
    world.put(open_job)
    intent = world.wait_type(open_job, "ATTEMPT_ACTION_REQUIRED")[-1]["record"]["event"]["provider_payment_id"]
    known = {"provider_reference": intent, "references": [{"kind": "INTENT", "reference": intent}]}
    world.put(world.job("CANCEL", open_job["payment_id"], **known))
    world.wait_type(open_job, "ATTEMPT_CANCELED")


@pytest.mark.own()
def test_without_the_database_nothing_is_sent_and_everything_later(own):
    proxy, conninfo = database_proxy(own.stack, "payfact_psp")
    psp = own.stack.service("psp", PG_CONNINFO=conninfo).start()
    first = own.gate(own.job())
    own.put(first)
    own.wait_type(first, "ATTEMPT_SUCCEEDED")
    proxy.refuse()
    jobs = [own.gate(own.job()) for _ in range(5)]
    own.put(*jobs)
    wait_for("it knows", lambda: psp.log_lines("database_away"))
    assert all(own.creates(j) == [] for j in jobs)
    proxy.back()
    for job in jobs:
        own.wait_type(job, "ATTEMPT_SUCCEEDED")
        assert len(own.charges(job)) == 1


@pytest.mark.own()
def test_a_refusal_that_cannot_be_proved_is_not_definite(own):
    """With the database away nobody can say whether another send of the job exists: what cannot be asked is no proof."""
    proxy, conninfo = database_proxy(own.stack, "payfact_psp")
    psp = own.stack.service("psp", PG_CONNINFO=conninfo).start()
    job = own.gate(own.job())
    own.stack.psp.script({"order": job["attempt_id"], "operation": "create", "do": ["refuse", "delay"], "status": 400, "delay_ms": 1500})
    own.put(job)
    wait_for("it is on its way", lambda: "ATTEMPT_SUBMITTED" in own.types(job))
    proxy.refuse()
    wait_for("it cannot ask", lambda: psp.log_lines("refusal_not_definite"))
    proxy.back()
    own.wait_type(job, "ATTEMPT_UNKNOWN")
    own.done()
    assert "ATTEMPT_FAILED" not in own.types(job) and own.charges(job) == []


@pytest.mark.own()
def test_a_lost_answer_of_the_gate_is_read_back(own):
    """The connection is cut again and again, also between the pass and its answer: no job is sent twice or forgotten."""
    proxy, conninfo = database_proxy(own.stack, "payfact_psp")
    own.stack.service("psp", PG_CONNINFO=conninfo).start()
    jobs = [own.gate(own.job()) for _ in range(80)]
    own.put(*jobs[:5])
    own.wait_type(jobs[0], "ATTEMPT_SUCCEEDED")
    for i in range(5, 80, 5):
        own.put(*jobs[i : i + 5])
        proxy.cut()
    for job in jobs:
        own.wait_type(job, "ATTEMPT_SUCCEEDED", "ATTEMPT_UNKNOWN", limit_s=60)
    own.done()
    for job in jobs:
        assert len(own.creates(job)) == 1 and len(own.charges(job)) == 1, job["job_id"]


@pytest.mark.own(broker="mock", settings={"PRODUCE_TIMEOUT_MS": 300})
def test_an_outcome_waits_for_kafka(own):
    own.stack.service("psp").start()
    own.stack.psp.script({"operation": "create", "do": "delay", "delay_ms": 700})
    job = own.gate(own.job())
    own.put(job)
    wait_for("it is on its way", lambda: own.row(job)["sending_at"])
    own.stack.broker.process.freeze()
    wait_for("it has its answer", lambda: own.row(job)["finished_at"])
    wait_for("it says so", lambda: own.stack.service("psp").log_lines("outcome_not_acknowledged"))
    own.stack.broker.process.thaw()
    own.wait_type(job, "ATTEMPT_SUCCEEDED")
    own.done()
    assert len(own.charges(job)) == 1


@pytest.mark.own(settings={"PSP_JOBS_MAX": 2, "PSP_WORKERS": 1})
def test_a_full_queue_keeps_no_other_member_waiting(own):
    """The consumer is polled while there is no room: the group would wait for it otherwise, and put it out at last."""
    payments = [p for p in (new_payment_id() for _ in range(4000)) if partition_of(p, own.stack.partitions) == 0][:20]
    jobs = [own.gate(own.job("SUBMIT", payment)) for payment in payments]
    own.put(*jobs)  # one partition: a poll takes them all at once
    own.stack.psp.script({"operation": "create", "do": "delay", "delay_ms": 1200})
    first = own.stack.service("psp").start()
    wait_for("the second is on its way", lambda: sum(bool(own.creates(job)) for job in jobs) == 2)
    own.stack.service("psp", instance="psp-2").start()  # ready: the group has given it its part
    called = sum(bool(own.creates(job)) for job in jobs)
    assert called < 16, "the other one came in only when all of the batch was in the queue"
    own.stack.psp.clear_script()
    for job in jobs:
        own.wait_type(job, "ATTEMPT_SUCCEEDED", limit_s=60)
    own.done()
    assert all(len(own.creates(job)) == 1 and len(own.charges(job)) == 1 for job in jobs)
    assert first.log_lines("turn_failed") == []


@pytest.mark.own()
def test_sigterm_waits_for_the_call_in_hand(own):
    psp = own.stack.service("psp").start()
    own.stack.psp.script({"operation": "create", "do": "delay", "delay_ms": 1000})
    job = own.gate(own.job())
    own.put(job)
    wait_for("it is on its way", lambda: own.creates(job))
    assert psp.stop() == 0
    assert own.types(job) == ["ATTEMPT_SUBMITTED", "ATTEMPT_SUCCEEDED"]
    own.done()  # its offset is committed
