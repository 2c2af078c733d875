# SPDX-License-Identifier: Apache-2.0
"""Recovery on a real database: what is due becomes the right record, once, and again later; nothing is forgotten."""

import datetime

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from parts import database_proxy
from payfact_stack import ACCOUNT_A, MERCHANT, Stack, new_payment_id
from procs import wait_for

QUERIES = ("ANSWER", "QUERY")
DEADLINES = ("SEND", "MANUAL", "ACTION", "AUTHORIZATION", "ORDER_EXPIRY", "RESERVATION", "APPROVAL", "DISPUTE")
REFERENCE = "pi_3TestRecovery"


class World:
    def __init__(self, stack):
        self.stack = stack

    def payment(self, status="SUBMITTED", age_s=30, reference=None, sent=True):
        """An order with one attempt, as the processor would have written them."""
        payment = new_payment_id()
        attempt = payment + "A01"
        at = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=age_s)
        self.stack.sql(
            "INSERT INTO payment_order (payment_id, merchant_id, merchant_order_no, amount_minor, currency, capture_mode,"
            " status, failover_until, expires_at, attempt_count, created_by, created_at, updated_at)"
            " VALUES (%s, %s, %s, 2599, 'EUR', 'AUTOMATIC', 'PROCESSING', now() + interval '15 min',"
            " now() + interval '1 day', 1, 'shop', %s, %s)",
            payment, MERCHANT, f"ORDER-{payment}", at, at,
        )  # fmt: skip
        self.stack.sql(
            "INSERT INTO payment_attempt (attempt_id, payment_id, attempt_no, route_no, psp, psp_account, method,"
            " merchant_request_no, amount_minor, currency, status, result_certainty, unknown_since, submitted_at,"
            " created_at, updated_at) VALUES (%s, %s, 1, 0, 'stripe', %s, 'card', %s, 2599, 'EUR', %s, 1, %s, %s, %s, %s)",
            attempt, payment, ACCOUNT_A, attempt, status, at if status == "UNKNOWN" else None, at, at, at,
        )  # fmt: skip
        if reference:
            self.stack.sql("INSERT INTO attempt_reference VALUES ('stripe', %s, 'INTENT', %s, %s, %s)",
                           ACCOUNT_A, reference, attempt, at)  # fmt: skip
        if sent:
            self.stack.sql(
                "INSERT INTO psp_request (job_id, payment_id, action_id, kind, digest, not_after, sending_at, sent_by,"
                " sends, last_send_at) VALUES (%s, %s, %s, 'SUBMIT', sha256('x'), now(), %s, 'me', 1, %s)",
                attempt + ".SUBMIT", payment, attempt, at, at,
            )  # fmt: skip
        return payment

    def deadline(self, kind, aggregate, payment=None, due="now() - interval '1 second'"):
        rows = self.stack.sql(
            f"INSERT INTO payment_deadline (due_at, kind, aggregate_id, payment_id) VALUES ({due}, %s, %s, %s) RETURNING due_at",
            kind, aggregate, payment,
        )  # fmt: skip
        return rows[0]["due_at"]

    def row(self, aggregate, kind):
        rows = self.stack.sql("SELECT *, now() AS now FROM payment_deadline WHERE aggregate_id = %s AND kind = %s", aggregate, kind)
        return rows[0] if rows else None

    def sent(self, topic, payment):
        return [m for m in self.stack.records(topic) if m["key"] == payment]

    def wait_sent(self, topic, payment, count=1):
        return wait_for(f"{count} on {topic}", lambda: len(s := self.sent(topic, payment)) >= count and s)

    def forget(self, *aggregates):
        for aggregate in aggregates:
            self.stack.sql("DELETE FROM payment_deadline WHERE aggregate_id = %s", aggregate)


def micros(moment):
    return round(moment.timestamp() * 1e6)


def as_micros(value):
    return micros(value) if isinstance(value, datetime.datetime) else value


@pytest.fixture(scope="module")
def shared(servers):
    with Stack(servers, redis=False) as stack:
        yield World(stack)


@pytest.fixture
def world(shared):
    before = set(shared.stack.services)
    yield shared
    codes = {n: s.stop() for n, s in shared.stack.services.items() if n not in before and s.alive()}
    assert set(codes.values()) <= {0}, codes
    shared.stack.sql("DELETE FROM payment_deadline")


@pytest.mark.parametrize("kind", QUERIES)
@pytest.mark.parametrize("table, letter", [("capture", "C"), ("refund", "R")])
def test_a_capture_or_refund_that_waits_is_asked_about_by_its_own_number(world, kind, table, letter):
    payment = world.payment("SUCCEEDED", reference=REFERENCE + kind + letter, sent=True)
    action = f"{payment}{letter}01"
    unknown = "now()" if kind == "QUERY" else "NULL"
    world.stack.sql(
        f"INSERT INTO {table}_order ({table}_id, attempt_id, payment_id, merchant_id, idempotency_key, amount_minor, currency,"
        f" status, result_certainty, origin, unknown_since, give_up_at, created_at, updated_at) VALUES (%s, %s, %s, %s, %s, 700,"
        f" 'EUR', %s, 1, 'MERCHANT', {unknown}, now(), now(), now())",
        action, payment + "A01", payment, MERCHANT, action, "UNKNOWN" if kind == "QUERY" else "PROCESSING",
    )  # fmt: skip
    world.stack.sql(
        "INSERT INTO psp_request (job_id, payment_id, action_id, kind, digest, not_after, sending_at, sent_by, sends,"
        " last_send_at) VALUES (%s, %s, %s, %s, sha256('x'), now(), now(), 'me', 1, now())",
        f"{action}.{table.upper()}", payment, action, table.upper(),
    )  # fmt: skip
    due_at = world.deadline(kind, action, payment)
    world.stack.service("recovery", f"query-{kind}-{table}".lower(), LEASE_MS=20000).start()
    (message,) = world.wait_sent("psp-jobs", payment)
    job = message["record"]
    assert job["job_id"] == f"{action}.QUERY.{micros(due_at) // 1000}"
    assert (job["kind"], job["attempt_id"], job["action_id"]) == (f"QUERY_{table.upper()}", payment + "A01", action)
    assert (job["request_no"], job["amount_minor"], job["attempt_amount_minor"]) == (action, 700, 2599)
    assert (job["about_job_id"], job["provider_reference"]) == (f"{action}.{table.upper()}", REFERENCE + kind + letter)
    assert world.row(action, kind)["due_at"] > due_at


@pytest.mark.parametrize("kind", QUERIES)
def test_what_waits_for_the_psp_becomes_a_query(world, kind):
    reference = REFERENCE + kind
    payment = world.payment("SUBMITTED" if kind == "ANSWER" else "UNKNOWN", reference=reference)
    attempt = payment + "A01"
    due_at = world.deadline(kind, attempt, payment)
    world.stack.service("recovery", f"query-{kind}", LEASE_MS=20000).start()
    (message,) = world.wait_sent("psp-jobs", payment)
    job = message["record"]
    assert job["job_id"] == f"{attempt}.QUERY.{micros(due_at) // 1000}"
    assert (job["kind"], job["payment_id"], job["merchant_id"], job["attempt_id"]) == ("QUERY", payment, MERCHANT, attempt)
    assert (job["request_no"], job["psp"], job["psp_account"], job["method"]) == (attempt, "stripe", ACCOUNT_A, "card")
    assert (job["attempt_amount_minor"], job["currency"], job["capture_mode"]) == (2599, "EUR", "AUTOMATIC")
    assert job["provider_reference"] == reference
    assert job["references"] == [{"kind": "INTENT", "reference": reference}]
    assert job["about_job_id"] == attempt + ".SUBMIT"
    assert job["amount_minor"] == 0 and job["params"] is None
    wait_for("the row has moved on", lambda: world.row(attempt, kind)["due_at"] > due_at)
    row = world.row(attempt, kind)
    assert row["lease_until"] is None and row["tries"] >= 1
    assert 0 < as_micros(job["not_after"]) - micros(row["now"]) < 20_000_000  # no longer than the lease
    assert world.sent("inputs", payment) == []


@pytest.mark.parametrize("kind", DEADLINES)
def test_what_is_to_be_decided_becomes_an_input_and_its_row_stays(world, kind):
    payment = world.payment()
    aggregate = payment if kind == "ORDER_EXPIRY" else payment + "A01"
    due_at = world.deadline(kind, aggregate, payment)
    recovery = world.stack.service("recovery", f"deadline-{kind}", LEASE_MS=1000).start()
    message = world.wait_sent("inputs", payment)[0]
    record = message["record"]
    assert (record["kind"], record["source"], record["evidence_level"]) == ("DEADLINE", "LOCAL", "LOCAL")
    assert record["payment_id"] == payment
    assert record["transport_key"] == f"{kind}:{aggregate}:{micros(due_at)}"
    assert record["deadline"]["kind"] == kind and record["deadline"]["aggregate_id"] == aggregate
    assert as_micros(record["deadline"]["due_at"]) == micros(due_at)
    # Nobody decides: the lease ends, the same input is made again, under the same key.
    again = world.wait_sent("inputs", payment, 2)[1]["record"]
    assert again["transport_key"] == record["transport_key"]
    assert world.row(aggregate, kind)["due_at"] == due_at
    assert world.sent("psp-jobs", payment) == []
    assert recovery.metric("payfact_recovery_sent_total", what="deadline", kind=kind) >= 2


def test_a_dead_row_of_the_outbox_becomes_an_input_until_its_case_tells_of_it(world):
    payment, quiet = world.payment(), world.payment()
    for key in (payment, quiet):
        world.stack.sql("INSERT INTO payment_outbox (shard, topic, key, payload, created_at, attempts, dead_at, dead_reason)"
                        " VALUES (0, 'events', %s, 'x', now(), 3, now(), 'MSG_SIZE_TOO_LARGE')", key)  # fmt: skip
    case = ("INSERT INTO manual_case (case_id, payment_id, kind, aggregate_id, case_no, status, evidence, opened_by, opened_at)"
            " VALUES (%s, %s, 'DEAD_EVENT', %s, 1, 'OPEN', '{}', 'input', now())")  # fmt: skip
    world.stack.sql(case, quiet + ".DEAD_EVENT.1", quiet, quiet)
    recovery = world.stack.service("recovery", "dead").start()
    record = world.wait_sent("inputs", payment)[0]["record"]
    dead_at = micros(world.stack.sql("SELECT dead_at FROM payment_outbox WHERE key = %s", payment)[0]["dead_at"])
    assert (record["kind"], record["evidence_level"]) == ("DEADLINE", "LOCAL")
    assert record["transport_key"] == f"DEAD_EVENT:{payment}:{dead_at}"
    assert (record["deadline"]["kind"], record["deadline"]["aggregate_id"]) == ("DEAD_EVENT", payment)
    assert recovery.metric("payfact_recovery_sent_total", what="deadline", kind="DEAD_EVENT") >= 1
    assert world.sent("inputs", quiet) == [], "its case is open already"
    world.stack.sql("DELETE FROM payment_outbox WHERE key = ANY (%s)", [payment, quiet])
    told = world.wait_sent("inputs", quiet)[0]["record"]
    assert told["transport_key"].startswith(f"DEAD_EVENT:{quiet}:"), "the case is open and nothing is dead: the processor is told"
    world.stack.sql("UPDATE manual_case SET status = 'RESOLVED', resolved_by = 'x', resolved_at = now() WHERE payment_id = %s", quiet)


def test_an_orphan_is_replayed_with_growing_pauses(world):
    payment = new_payment_id()
    key = "evt_with/slashes:and:colons"
    due_at = world.deadline("ORPHAN", f"stripe/{ACCOUNT_A}/{key}", payment)
    world.stack.service("recovery", "orphan", ORPHAN_FIRST_MS=200, ORPHAN_MAX_MS=100000).start()
    messages = world.wait_sent("inputs", payment, 3)
    for message in messages:
        record = message["record"]
        assert record["kind"] == "REPLAY" and record["transport_key"] is None
        assert record["replay"] == {"psp": "stripe", "psp_account": ACCOUNT_A, "transport_key": key}
    row = wait_for("it is scheduled", lambda: (r := world.row(f"stripe/{ACCOUNT_A}/{key}", "ORPHAN"))["lease_until"] is None and r)
    assert row["due_at"] > due_at and row["tries"] >= 3


def test_an_orphan_without_a_payment_keeps_its_name_as_key(world):
    aggregate = f"stripe/{ACCOUNT_A}/evt_nobody"
    world.deadline("ORPHAN", aggregate)
    world.stack.service("recovery", "nobody").start()
    (message,) = world.wait_sent("inputs", aggregate)
    assert message["record"]["payment_id"] is None


def test_queries_back_off_with_jitter_up_to_the_accounts_limit(world):
    payments = [world.payment("UNKNOWN") for _ in range(12)]
    for payment in payments:  # query_first_s = 1, query_max_s = 2: after many tries the longest pause
        world.deadline("QUERY", payment + "A01", payment)
        world.stack.sql("UPDATE payment_deadline SET tries = 9 WHERE aggregate_id = %s", payment + "A01")
    fresh = world.payment("UNKNOWN")
    world.deadline("QUERY", fresh + "A01", fresh)
    world.stack.service("recovery", "backoff", POLL_MS=60000).start()  # one batch only
    pauses = {}
    for payment in [*payments, fresh]:
        world.wait_sent("psp-jobs", payment)
        row = wait_for("moved", lambda p=payment: (r := world.row(p + "A01", "QUERY"))["lease_until"] is None and r)
        sent_at = world.sent("psp-jobs", payment)[0]["record"]["not_after"]
        pauses[payment] = micros(row["due_at"]) - (as_micros(sent_at) - 30_000_000)
    long = [pauses[p] for p in payments]
    assert all(1_000_000 <= p <= 2_000_000 for p in long), long
    assert len(set(long)) > 6  # jitter
    assert 500_000 <= pauses[fresh] <= 2_000_000


def test_u5_processing_beyond_the_methods_final_date_escalates(world):
    payment = world.payment("PROCESSING", age_s=120)  # person_after_s = 60
    world.deadline("ANSWER", payment + "A01", payment)
    world.stack.service("recovery", "final").start()
    (message,) = world.wait_sent("inputs", payment)
    assert message["record"]["deadline"]["kind"] == "ANSWER"
    assert world.sent("psp-jobs", payment) == []


def test_u9_two_replicas_share_the_work_without_a_duplicate(world):
    payments = [world.payment("UNKNOWN", sent=False) for _ in range(60)]
    replicas = [
        world.stack.service("recovery", f"replica-{i}", BATCH_ROWS_MAX=2, POLL_MS=10).start(ready=False) for i in range(2)
    ]
    for replica in replicas:
        replica.wait_ready()
    world.stack.sql(
        "INSERT INTO payment_deadline (due_at, kind, aggregate_id, payment_id)"
        " SELECT now() - interval '1 second', 'QUERY', p || 'A01', p FROM unnest(%s) AS p", payments,
    )  # fmt: skip
    for payment in payments:
        world.wait_sent("psp-jobs", payment)
    shares = [r.metric("payfact_recovery_sent_total", what="query") for r in replicas]
    assert min(shares) > 0, shares
    ids = [m["record"]["job_id"] for m in world.stack.records("psp-jobs") if m["key"] in set(payments)]
    assert len(ids) == len(set(ids))


def test_a_row_without_a_subject_is_said_once_a_lease_and_holds_up_nobody(world):
    nobody = new_payment_id()
    world.deadline("QUERY", nobody + "A01", nobody)
    world.deadline("ORPHAN", "no-slash")
    payment = world.payment()
    recovery = world.stack.service("recovery", "nothing", POLL_MS=10, LEASE_MS=60000).start()
    world.deadline("SEND", payment + "A01", payment)
    world.wait_sent("inputs", payment)
    later = world.payment()
    world.deadline("SEND", later + "A01", later)
    world.wait_sent("inputs", later)
    assert len(recovery.log_lines("deadline_not_sent")) == 2
    assert recovery.get("/readyz")[0] == 200


def test_what_waits_for_a_decision_is_said_again_later_and_later(world):
    """While the processor is away the input is in the topic: more of the same only delay what PSPs say."""
    payment, final, asked = world.payment(), world.payment("PROCESSING", age_s=120), world.payment("UNKNOWN")
    world.deadline("ORDER_EXPIRY", payment, payment)
    world.deadline("ANSWER", final + "A01", final)  # past its final date: a deadline input, leased as a query
    world.deadline("QUERY", new_payment_id() + "A01")  # without a subject: it keeps its lease
    world.stack.sql("UPDATE payment_deadline SET tries = 3")
    world.stack.service("recovery", "later", LEASE_MS=60000).start()
    world.wait_sent("inputs", payment)
    world.wait_sent("inputs", final)
    minutes = "SELECT kind, extract(epoch FROM lease_until - now())::float / 60 AS left FROM payment_deadline"
    held = "SELECT 1 FROM payment_deadline WHERE kind = 'ANSWER' AND lease_until > now() + interval '2 minutes'"
    wait_for("the answer is held", lambda: world.stack.sql(held))
    left = {row["kind"]: row["left"] for row in world.stack.sql(minutes)}
    assert 4 < left["ORDER_EXPIRY"] <= 8 and 4 < left["ANSWER"] <= 8 and left["QUERY"] <= 1, left
    assert len(world.sent("inputs", payment)) == 1
    world.stack.sql("UPDATE payment_deadline SET due_at = now(), lease_until = NULL, tries = 0 WHERE kind = 'ORDER_EXPIRY'")
    world.wait_sent("inputs", payment, 2)  # a decision makes it prompt
    world.deadline("QUERY", asked + "A01", asked)
    world.wait_sent("psp-jobs", asked)


def test_what_kafka_refuses_rests_and_holds_up_nobody(servers):
    with Stack(servers, redis=False, partitions=1) as stack:
        world = World(stack)
        limit_inputs(stack, 1)
        refused = [new_payment_id() for _ in range(12)]
        for payment in refused:  # the oldest, and six full batches of them
            world.deadline("ORDER_EXPIRY", payment, payment, due="now() - interval '1 hour'")
        asked = world.payment("UNKNOWN")
        world.deadline("QUERY", asked + "A01", asked)
        recovery = stack.service("recovery", BATCH_ROWS_MAX=2, POLL_MS=10, LEASE_MS=600000).start()
        world.wait_sent("psp-jobs", asked)
        assert recovery.metric("payfact_recovery_errors_total", part="kafka") == len(refused), "each was tried once"
        rows = stack.sql("SELECT lease_until, tries FROM payment_deadline WHERE kind = 'ORDER_EXPIRY'")
        assert {row["tries"] for row in rows} == {0}
        leased = sorted(row["lease_until"] for row in rows)
        # Nothing of a batch arrived: at least 50, 100, 200, 400 and 800 ms before the next.
        assert (leased[-1] - leased[0]).total_seconds() >= 1.55
        limit_inputs(stack, None)
        stack.sql("UPDATE payment_deadline SET lease_until = now()")
        for payment in refused:
            world.wait_sent("inputs", payment)
        assert recovery.stop() == 0


def limit_inputs(stack, size):
    """What Kafka takes on the topic inputs, in bytes; None: as before. It holds when this returns."""
    kind = AlterConfigOpType.SET if size else AlterConfigOpType.DELETE
    entry = ConfigEntry("max.message.bytes", str(size) if size else None, incremental_operation=kind)
    resource = ConfigResource(ConfigResource.Type.TOPIC, stack.topic_name("inputs"), incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": stack.brokers})
    list(admin.incremental_alter_configs([resource]).values())[0].result(15)
    producer = Producer({"bootstrap.servers": stack.brokers, "linger.ms": 0})
    errors = []

    def is_so():
        errors.clear()
        producer.produce(stack.topic_name("inputs"), key="probe", value=b"", on_delivery=lambda error, _: errors.append(error))
        producer.flush(15)
        return len(errors) == 1 and (errors[0] is not None) == (size is not None)

    wait_for("the limit holds", is_so)


def test_without_kafka_the_rows_are_free_again_and_no_try_is_counted(servers):
    with Stack(servers, broker="mock", redis=False) as stack:
        world = World(stack)
        recovery = stack.service("recovery", PRODUCE_TIMEOUT_MS=500, LEASE_MS=600000).start()
        stack.broker.process.freeze()
        payment = world.payment("UNKNOWN")
        due_at = world.deadline("QUERY", payment + "A01", payment)
        wait_for("it has failed", lambda: recovery.metric("payfact_recovery_errors_total", part="kafka") >= 2)
        wait_for("it says so", lambda: recovery.get("/readyz")[0] == 503)
        assert recovery.get("/healthz")[0] == 200
        row = wait_for("it is free", lambda: (r := world.row(payment + "A01", "QUERY"))["lease_until"] is None and r)
        assert (row["due_at"], row["tries"]) == (due_at, 0)
        stack.broker.process.thaw()
        world.wait_sent("psp-jobs", payment)
        wait_for("ready", lambda: recovery.get("/readyz")[0] == 200)
        assert recovery.stop() == 0


def test_the_database_goes_away_and_comes_back(world):
    proxy, conninfo = database_proxy(world.stack, "payfact_recovery")
    recovery = world.stack.service("recovery", "no-database", PG_CONNINFO=conninfo).start()
    proxy.refuse()
    wait_for("not ready", lambda: recovery.get("/readyz")[0] == 503)
    assert recovery.get("/healthz")[0] == 200
    payment = world.payment()
    world.deadline("SEND", payment + "A01", payment)
    proxy.back()
    world.wait_sent("inputs", payment)


def test_missing_partitions_are_made(world):
    month = "to_char((date_trunc('month', now() AT TIME ZONE 'UTC') + interval '3 months'), 'YYYYMM')"
    (found,) = world.stack.sql(f"SELECT {month} AS month")
    tables = [f"{parent}_{found['month']}" for parent in ("channel_event", "payment_state_history")]
    for table in tables:
        world.stack.sql(f"DROP TABLE {table}")
    world.stack.service("recovery", "partitions").start()
    for table in tables:
        wait_for(f"{table} is there", lambda t=table: world.stack.sql("SELECT to_regclass(%s)::text AS t", t)[0]["t"])
