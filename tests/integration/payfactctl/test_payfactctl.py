# SPDX-License-Identifier: Apache-2.0
"""payfactctl on a real PostgreSQL and a real Kafka: the schema once and only ours, topics as they must be, a command as
another language reads it, and a payment explained with no more rights than an operator has."""

import hashlib
import itertools
import json
import os
import pathlib
import subprocess
import time

import psycopg2
import psycopg2.extensions
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource
from procs import wait_for
from records import BY_FINGERPRINT, SIGNED_PREFIX, Topic, decode
from servers import TOPICS, Servers

ROOT = pathlib.Path(__file__).resolve().parents[3]
CTL = pathlib.Path(os.environ["PAY_BUILD_DIR"]) / "bin" / "payfactctl"
SQL = ROOT / "schemas" / "sql"
PAYMENT = "01JD0000000000000000000001"
DONE, FAILED, USAGE, NOT_FOUND, REFUSED, UNKNOWN = range(6)
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def servers():
    with Servers() as started:
        yield started


def start(*words, **settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PAYFACT_")}
    env.update({f"PAYFACT_{k}": str(v) for k, v in settings.items()})
    return subprocess.Popen([CTL, *map(str, words)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ctl(*words, **settings):
    process = start(*words, **settings)
    process.out, process.err = process.communicate(timeout=60)
    return process


class Database:
    """One of its own, empty."""

    def __init__(self, servers):
        self.servers, self.name = servers, f"ctl_{os.getpid()}_{next(NUMBERS)}"
        servers.admin(f"CREATE DATABASE {self.name}")

    def conninfo(self, **changes):
        parts = {**psycopg2.extensions.parse_dsn(self.servers.pg_conninfo), "dbname": self.name, **changes}
        return psycopg2.extensions.make_dsn(**parts)

    def connect(self):
        return psycopg2.connect(self.conninfo())

    def sql(self, statement, *parameters):
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            return cursor.fetchall() if cursor.description else []

    def migrate(self, *words):
        return ctl("migrate", *words, PG_CONNINFO=self.conninfo())

    def applied(self):
        return self.sql("SELECT version, name, encode(checksum, 'hex') FROM payfact.schema_migration ORDER BY version")

    def drop(self):
        self.servers.admin(f"DROP DATABASE {self.name} WITH (FORCE)")


@pytest.fixture
def database(servers):
    made = Database(servers)
    yield made
    made.drop()


def files():
    return [(int(p.name[:4]), p.stem, hashlib.sha256(p.read_bytes()).hexdigest()) for p in sorted(SQL.glob("*.sql"))]


# ---- migrate


def test_from_empty_and_again(database):
    dry = database.migrate("--dry-run")
    assert dry.returncode == DONE and dry.out.count("would be applied") == len(files())
    assert database.sql("SELECT to_regclass('payfact.schema_migration')::text") == [(None,)]
    status = database.migrate("--status")
    assert status.returncode == DONE and status.out.count("to be applied") == len(files())
    first = database.migrate()
    assert first.returncode == DONE, first.err
    assert first.out.splitlines() == [f"{name} applied" for _, name, _ in files()]
    assert database.applied() == files()
    again = database.migrate()
    assert again.returncode == DONE and again.out.startswith("nothing to do")
    assert database.applied() == files()


def test_two_at_once_apply_each_file_once(database):
    """The first one is held inside its work, so that the second one surely comes meanwhile."""
    with database.connect() as holder, holder.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtext('payfact.migrate')::int8)")
        both = [start("migrate", PG_CONNINFO=database.conninfo()) for _ in range(2)]
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        wait_for("both wait for the lock", lambda: database.sql(waiting) == [(2,)], 20)
        assert database.sql("SELECT to_regclass('payfact.schema_migration')::text") == [(None,)]
    holder.close()
    said = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [DONE, DONE], said
    assert sorted(out.startswith("nothing to do") for out, _ in said) == [False, True]
    assert all("another migration runs" in err for _, err in said)
    assert database.applied() == files()


def test_a_changed_file_is_refused(database):
    assert database.migrate().returncode == DONE
    database.sql("UPDATE payfact.schema_migration SET checksum = decode(repeat('00', 32), 'hex') WHERE version = 2")
    for words in ([], ["--dry-run"], ["--status"]):
        run = database.migrate(*words)
        assert run.returncode == REFUSED and '"0002_roles" is not the file that was applied' in run.err


def test_a_newer_database_is_refused(database):
    assert database.migrate().returncode == DONE
    newer = files()[-1][0] + 1
    database.sql("INSERT INTO payfact.schema_migration (version, name, checksum) VALUES (%s, '9999_later', %s)", newer, b"\0" * 32)
    run = database.migrate()
    assert run.returncode == REFUSED and '"9999_later"' in run.err and "use a newer one" in run.err


def test_a_broken_file_leaves_what_was_before_it(database, tmp_path):
    for path in SQL.glob("*.sql"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    number = files()[-1][0] + 1
    broken = tmp_path / f"{number:04}_broken.sql"
    broken.write_text("CREATE TABLE payfact.half (x int); SELECT 1 / 0;")
    run = database.migrate("--dir", tmp_path)
    assert run.returncode != DONE and "division by zero" in run.err and broken.stem in run.err
    assert database.applied() == files()
    assert database.sql("SELECT to_regclass('payfact.half')::text") == [(None,)]
    broken.write_text("CREATE TABLE payfact.half (x int); COMMIT;")
    run = database.migrate("--dir", tmp_path)
    assert run.returncode == USAGE and "ends its own transaction" in run.err
    assert database.applied() == files()
    broken.write_text("CREATE TABLE IF NOT EXISTS payfact.half (x int);")
    assert database.migrate("--dir", tmp_path).returncode == DONE
    assert [row[1] for row in database.applied()][-1] == broken.stem
    assert database.migrate().returncode == REFUSED  # the built-in list is older now


def test_a_migration_does_not_queue_for_a_lock(database, tmp_path):
    """Behind a waiting ALTER TABLE every service would wait."""
    for path in SQL.glob("*.sql"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert database.migrate().returncode == DONE
    (tmp_path / f"{files()[-1][0] + 1:04}_alter.sql").write_text("ALTER TABLE payfact.route_pause ADD COLUMN x int;")
    with database.connect() as holder, holder.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM payfact.route_pause")
        began = time.monotonic()
        run = database.migrate("--dir", tmp_path)
        assert run.returncode == FAILED and "lock timeout" in run.err and time.monotonic() - began < 20
    holder.close()
    assert database.migrate("--dir", tmp_path).returncode == DONE


# ---- topics


class Broker:
    def __init__(self, servers):
        self.brokers, self.prefix = servers.kafka_brokers, f"ctl{os.getpid()}x{next(NUMBERS)}."
        self.admin = AdminClient({"bootstrap.servers": self.brokers})

    def topics(self, *words, **settings):
        return ctl("topics", *words, KAFKA_BROKERS=self.brokers, TOPIC_PREFIX=self.prefix, **settings)

    def counts(self):
        known = self.admin.list_topics(timeout=15).topics
        return {name: len(known[self.prefix + name].partitions) for name in TOPICS if self.prefix + name in known}

    def config(self, topic):
        resource = ConfigResource("topic", self.prefix + topic)
        return {k: v.value for k, v in self.admin.describe_configs([resource])[resource].result(15).items()}

    def drop(self):
        names = [self.prefix + name for name in self.counts()]
        for future in self.admin.delete_topics(names).values() if names else []:
            future.result(15)


@pytest.fixture
def broker(servers):
    made = Broker(servers)
    yield made
    made.drop()


def test_topics_are_made_checked_and_left_alone(broker):
    missing = broker.topics("--check")
    assert missing.returncode == REFUSED and missing.out.count("is missing") == len(TOPICS) and broker.counts() == {}
    made = broker.topics("--partitions", 4, "--replication", 1)
    assert made.returncode == DONE, made.err
    assert broker.counts() == dict.fromkeys(TOPICS, 4)
    events, inputs = broker.config("events"), broker.config("inputs")
    assert (events["retention.ms"], inputs["retention.ms"]) == (str(30 * 86400000), str(7 * 86400000))
    assert int(inputs["max.message.bytes"]) > 1024 * 1024
    for words in ([], ["--partitions", 4], ["--check"]):
        again = broker.topics(*words)
        assert again.returncode == DONE, (words, again.out, again.err)


def test_the_default_is_twelve_partitions(broker):
    assert broker.topics("--replication", 1).returncode == DONE
    assert broker.counts() == dict.fromkeys(TOPICS, 12)


def test_a_partition_count_changes_only_with_an_empty_outbox(broker, database):
    assert broker.topics("--partitions", 2, "--replication", 1).returncode == DONE
    run = broker.topics("--partitions", 3)
    assert run.returncode == REFUSED and "--grow" in run.err
    run = broker.topics("--partitions", 3, "--grow")
    assert run.returncode == USAGE and "PAYFACT_PG_CONNINFO is not set" in run.err
    assert database.migrate().returncode == DONE
    database.sql("INSERT INTO payfact.payment_outbox (shard, topic, key, payload, created_at) VALUES (0, 'events', 'k', 'x', now())")
    run = broker.topics("--partitions", 3, "--grow", PG_CONNINFO=database.conninfo())
    assert run.returncode == REFUSED and "the outbox is not empty" in run.err
    assert broker.counts() == dict.fromkeys(TOPICS, 2)
    database.sql("DELETE FROM payfact.payment_outbox")
    run = broker.topics("--partitions", 1, "--grow", PG_CONNINFO=database.conninfo())
    assert run.returncode == REFUSED and "Kafka cannot take any away" in run.err
    run = broker.topics("--partitions", 3, "--grow", PG_CONNINFO=database.conninfo())
    assert run.returncode == DONE, run.err
    wait_for("all topics have 3 partitions", lambda: broker.counts() == dict.fromkeys(TOPICS, 3), 15)


def test_a_topic_that_differs_is_named(broker):
    assert broker.topics("--partitions", 2, "--replication", 1).returncode == DONE
    resource = ConfigResource("topic", broker.prefix + "events", set_config={"retention.ms": "1000", "max.message.bytes": "196608"})
    broker.admin.alter_configs([resource])[resource].result(15)
    wait_for("the setting is seen", lambda: broker.config("events")["retention.ms"] == "1000", 15)
    run = broker.topics("--check")
    assert run.returncode == REFUSED and f"{broker.prefix}events: retention.ms is 1000, wanted 2592000000" in run.out


# ---- send


def test_a_command_is_read_and_verified_by_another_language(broker, tmp_path):
    assert broker.topics("--partitions", 4, "--replication", 1).returncode == DONE
    assert ctl("keygen", "command", "--out", tmp_path, "--id", "shop-a").returncode == DONE
    run = ctl("send", "CREATE_PAYMENT", "--caller", "shop", "--key", "shop-a", "--key-file", tmp_path / "shop-a.pem",
              "--merchant", "acme", "--payment", "new", "--order-no", "O-1", "--amount", 2599, "--currency", "EUR",
              "--route", "stripe/stripe-a/card:failover", "--instrument", "pm_secret", "--json",
              KAFKA_BROKERS=broker.brokers, TOPIC_PREFIX=broker.prefix)  # fmt: skip
    assert run.returncode == DONE, run.err
    said = json.loads(run.out)
    topic = Topic(broker.brokers, broker.prefix + "commands")
    messages = topic.read()
    topic.close()
    assert len(messages) == 1
    message = messages[0]
    record, value = message["record"], message["value"]
    assert (message["key"], record["payment_id"]) == (said["payment_id"], said["payment_id"])
    assert (message["partition"], message["offset"]) == (said["partition"], said["offset"])
    assert record["type"] == "CREATE_PAYMENT" and record["command_id"] == said["command_id"]
    assert record["create_payment"]["amount_minor"] == 2599 and record["create_payment"]["start"] is True
    assert record["create_payment"]["routes"][0]["failover_on_not_found"] is True
    assert message["headers"]["payfact-key-id"] == b"shop-a"
    (tmp_path / "signed").write_bytes(SIGNED_PREFIX + value)
    (tmp_path / "signature").write_bytes(message["headers"]["payfact-signature"])
    subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", tmp_path / "shop-a.pub.pem", "-rawin", "-in",
                    tmp_path / "signed", "-sigfile", tmp_path / "signature"], check=True, capture_output=True)  # fmt: skip
    secret = message["headers"]["payfact-secrets"]
    assert record["secrets_sha256"] == hashlib.sha256(secret).digest() and b"pm_secret" not in value
    assert decode(secret)["params"][0]["instrument"] == "pm_secret" and secret[2:10] in BY_FINGERPRINT


def test_a_broker_that_is_away_is_certainly_not_sent(tmp_path):
    assert ctl("keygen", "command", "--out", tmp_path, "--id", "k").returncode == DONE
    run = ctl("send", "CANCEL_PAYMENT", "--caller", "shop", "--key", "k", "--key-file", tmp_path / "k.pem", "--merchant",
              "acme", "--payment", PAYMENT, KAFKA_BROKERS="127.0.0.1:1")  # fmt: skip
    assert run.returncode == FAILED and "it is certainly not there" in run.err and run.out == ""


# ---- explain


@pytest.fixture(scope="module")
def operator(servers):
    """A database with the payment of payment.sql, and who may only do what an operator's tool may."""
    made = Database(servers)
    assert made.migrate().returncode == DONE
    made.sql((pathlib.Path(__file__).parent / "payment.sql").read_text().replace("%", "%%"))
    made.sql("DO $$ BEGIN CREATE ROLE payfact_operator_login LOGIN IN ROLE payfact_operator;"
             " EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$")  # fmt: skip
    made.operator = made.conninfo(user="payfact_operator_login")
    yield made
    made.drop()


def explain(operator, *words):
    return ctl("explain", *words, PG_CONNINFO=operator.operator)


def test_a_payment_is_told_whole(operator):
    run = explain(operator, PAYMENT)
    assert run.returncode == DONE, run.err
    for line in (
        f"Payment {PAYMENT} of acme, order ORDER-1",
        "  amount   25.99 EUR, capture AUTOMATIC",
        f"Next: an operator must resolve case {PAYMENT}.AMOUNT_MISMATCH.1 (AMOUNT_MISMATCH)",
        "  A01 SUCCEEDED, blocks others, stripe/stripe-a/card, 25.99 EUR, certainty QUERY",
        "by SUC from QUERY (SUC)",
        "      authorized 25.99 EUR, captured 25.99 EUR",
        "      references CHARGE ch_123, INTENT pi_123",
        "A01.SUBMIT sent 1 time(s), first 2026-11-30 12:00:01.000",
        "History: 3 APPLY, 1 IGNORE, 1 REJECT, 0 NEEDS_RECONCILIATION",
        "IGNORE PRC from WEBHOOK (WEBHOOK): STALE, pi_123, delivered 5 times",
        "published #2 PaymentSucceeded",
        "Inputs: 2, repeated 4 time(s)",
        "refused 1 time(s), not before 2026-11-30 12:01:00.000",
        "QUERY of A01",
        "ORPHAN of stripe/stripe-a/evt_2",
        "  1 stripe/stripe-b/card, paused by an operator",
    ):
        assert line in run.out, f"{line!r} is not in:\n{run.out}"


def test_json_has_the_same_and_only_this_payment(operator):
    run = explain(operator, PAYMENT, "--json")
    assert run.returncode == DONE, run.err
    told = json.loads(run.out)
    assert told["order"]["status"] == "SUCCEEDED" and told["order"]["amount_minor"] == 2599
    assert told["attempts"][0]["captured_minor"] == 2599 and told["attempts"][0]["result_certainty"] == "QUERY"
    assert [h["published_sequence"] for h in told["history"]] == [1, 0, 2, 0, 3]
    assert [i["delivery_count"] for i in told["inputs"]] == [5, 1]
    assert [d["kind"] for d in told["deadlines"]] == ["QUERY", "ORDER_EXPIRY", "ORPHAN"]
    assert len(told["outbox"]) == 1 and len(told["commands"]) == 1 and len(told["cases"]) == 1
    assert told["next"][0]["who"] == "operator" and told["older_rows_left_out"] == []


def test_no_secret_is_told(operator):
    for words in ([PAYMENT], [PAYMENT, "--json"]):
        run = explain(operator, *words)
        assert run.returncode == DONE and PAYMENT in run.out
        assert "SEALED-SECRET" not in run.out + run.err and b"SEALED-SECRET".hex() not in run.out


def test_every_name_finds_it(operator):
    for words in ([PAYMENT + "A01"], ["--merchant-order", "acme", "ORDER-1"], ["--psp-ref", "pi_123"], ["--psp-ref", PAYMENT + "A01"]):
        run = explain(operator, *words, "--json")
        assert run.returncode == DONE, (words, run.err)
        assert json.loads(run.out)["payment_id"] == PAYMENT


def test_what_is_not_there_is_told_from_what_was_refused(operator):
    for words in (["01JD0000000000000000000009"], ["--psp-ref", "pi_none"], ["--merchant-order", "acme", "none"], ["--merchant-order", "other", "ORDER-1"]):
        run = explain(operator, *words)
        assert (run.returncode, run.out) == (NOT_FOUND, ""), words
    refused = explain(operator, "01JD0000000000000000000002")
    assert refused.returncode == DONE and "answered REJECTED (DUPLICATE_ORDER_NO)" in refused.out
    assert explain(operator, "short").returncode == USAGE


def test_it_answers_within_a_second(operator):
    began = time.monotonic()
    assert explain(operator, PAYMENT).returncode == DONE
    assert time.monotonic() - began < 1.0 * float(os.environ.get("PAY_TEST_TIME_SCALE", "1"))


def test_send_waits_for_the_answer(operator, broker, tmp_path):
    assert broker.topics("--partitions", 1, "--replication", 1).returncode == DONE
    assert ctl("keygen", "command", "--out", tmp_path, "--id", "k").returncode == DONE

    def send(command_id):
        return ctl("send", "CANCEL_PAYMENT", "--caller", "shop", "--key", "k", "--key-file", tmp_path / "k.pem", "--merchant",
                   "acme", "--payment", PAYMENT, "--command-id", command_id, "--wait-answer", 1, "--json",
                   KAFKA_BROKERS=broker.brokers, TOPIC_PREFIX=broker.prefix, PG_CONNINFO=operator.operator)  # fmt: skip

    accepted, refused, silent = send("cmd-1"), send("cmd-2"), send("cmd-3")
    assert accepted.returncode == DONE and json.loads(accepted.out)["answer"] == "ACCEPTED"
    assert refused.returncode == REFUSED and json.loads(refused.out)["reason_code"] == "DUPLICATE_ORDER_NO"
    assert silent.returncode == UNKNOWN and json.loads(silent.out)["answer"] is None
