# SPDX-License-Identifier: Apache-2.0
"""The publisher on a real outbox: every row goes out, in the order of its key, and is deleted when Kafka has it."""

import itertools
import threading
import time

import psycopg2
import psycopg2.extensions
import psycopg2.extras
import pytest

from parts import database_proxy, metric_is, partition_of
from payfact_stack import Stack
from procs import wait_for

PARTITIONS = 4
LOCK = 1885436262  # the processor's: common/store/outbox.c
SHARED = dict(redis=False, partitions=PARTITIONS)
INSERT = "INSERT INTO payment_outbox (shard, topic, key, payload, headers, created_at) VALUES %s"


class Outbox:
    """Rows as the processor adds them. A row's payload says its key and number: what a consumer must see in order."""

    def __init__(self, stack):
        self.stack, self.expected, self._lock = stack, {}, threading.Lock()

    def connect(self):
        parts = psycopg2.extensions.parse_dsn(self.stack.servers.pg_conninfo)
        parts.update(dbname=self.stack.database, options="-c search_path=payfact")
        return psycopg2.connect(**parts)

    def row(self, key, topic="events", size=0):
        with self._lock:
            number = self.expected[topic, key] = self.expected.get((topic, key), 0) + 1
        text = f"{key}:{number}:".encode()
        headers = ["ce_id", f"{key}/{number}", "ce_type", "Test"]
        return [partition_of(key, PARTITIONS), topic, key, text + b"x" * max(0, size - len(text)), headers]

    def add(self, rows, connection=None):
        """One transaction, ids drawn under the shards' locks."""
        own = connection or self.connect()
        with own, own.cursor() as cursor:
            for shard in sorted({row[0] for row in rows}):
                cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", (LOCK, shard))
            psycopg2.extras.execute_values(cursor, INSERT, sorted(rows, key=lambda r: r[0]), "(%s,%s,%s,%s,%s,now())")
        if not connection:
            own.close()

    def left(self, where="true"):
        return self.stack.sql(f"SELECT count(*) AS n FROM payment_outbox WHERE {where}")[0]["n"]

    def wait_empty(self, limit_s=30):
        wait_for("the outbox is empty", lambda: self.left() == 0, limit_s)

    def seen(self):
        """{(topic, key): numbers in the order of the topic}; what came twice came with the same id."""
        seen = {}
        for topic in ("events", "psp-jobs"):
            for message in self.stack.records(topic):
                key, number = message["value"].decode().split(":")[:2]
                assert key == message["key"]
                assert message["headers"]["ce_id"].decode() == f"{key}/{number}"
                seen.setdefault((topic, key), []).append(int(number))
        return seen

    def check(self, prefix=""):
        """Nothing lost, first occurrences in order. Returns how many (of keys with this prefix) were repeats."""
        seen, repeats = self.seen(), 0
        for at, last in self.expected.items():
            if not at[1].startswith(prefix):
                continue
            numbers = seen.get(at, [])
            firsts = list(dict.fromkeys(numbers))
            assert firsts == list(range(1, last + 1)), f"{at}: {numbers}"
            repeats += len(numbers) - len(firsts)
        return repeats


class Load:
    """Rows for ever, until stopped: some writers at once, each with transactions of some rows."""

    def __init__(self, outbox, prefix, keys=40, writers=2, per_s=100):
        self._outbox, self._stop, self._pause = outbox, threading.Event(), writers / per_s
        names = [f"{prefix}{i}" for i in range(keys)]
        parts = [names[i::writers] for i in range(writers)]  # a payment is written by one worker at a time
        self._threads = [threading.Thread(target=self._run, args=(part,)) for part in parts]
        self.transactions = 0

    def _run(self, keys):
        connection, turn = self._outbox.connect(), itertools.count()
        while not self._stop.is_set():
            some = [keys[next(turn) % len(keys)] for _ in range(6)]
            self._outbox.add([self._outbox.row(key, ("events", "psp-jobs")[len(key) % 2]) for key in some], connection)
            self.transactions += 1
            self._stop.wait(self._pause)
        connection.close()

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_more(self, count=30):
        wanted = self.transactions + count
        wait_for("more rows are written", lambda: self.transactions >= wanted)


@pytest.fixture(scope="module")
def shared(servers):
    with Stack(servers, **SHARED) as stack:
        yield stack, Outbox(stack)


@pytest.fixture
def world(shared):
    """The stack and its outbox, which each test leaves empty; every publisher that it started ends in order."""
    stack, outbox = shared
    before = set(stack.services)
    yield stack, outbox
    codes = {n: s.stop() for n, s in stack.services.items() if n not in before and s.alive()}
    assert set(codes.values()) <= {0}, codes
    assert outbox.left() == 0
    outbox.check()


def test_all_rows_go_out_in_the_order_of_their_keys_and_are_deleted(world):
    stack, outbox = world
    publisher = stack.service("publisher", "all").start()

    def write(part):
        connection = outbox.connect()
        for _ in range(40):
            keys = [f"ALL{part}K{i % 50}" for i in range(50)]
            outbox.add([outbox.row(k, t) for k in keys for t in (["events", "psp-jobs"] if k.endswith("7") else ["events"])],
                       connection)  # fmt: skip
        connection.close()

    writers = [threading.Thread(target=write, args=(p,)) for p in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    outbox.wait_empty()
    assert outbox.check("ALL") == 0  # nobody died: no repeats
    delivered = sum(len(n) for (_, key), n in outbox.seen().items() if key.startswith("ALL"))
    assert publisher.metric("payfact_publisher_delivered_total") == delivered == 3 * 40 * 55
    assert {m["partition"] for m in stack.records("events")} == set(range(PARTITIONS))  # every shard had its part
    for message in stack.records("events"):
        assert message["partition"] == partition_of(message["key"], PARTITIONS)


def test_two_replicas_share_the_shards_under_load(world):
    stack, outbox = world
    first = stack.service("publisher", "share-1", LEASE_MS=1500).start()
    with Load(outbox, "SHARE") as load:
        wait_for("one has all", metric_is(first, PARTITIONS, "payfact_publisher_shards"))
        second = stack.service("publisher", "share-2", LEASE_MS=1500).start()
        for each in (first, second):
            wait_for("each has half", metric_is(each, PARTITIONS / 2, "payfact_publisher_shards"))
        load.wait_more()
        assert first.stop() == 0
        wait_for("the other has all again", metric_is(second, PARTITIONS, "payfact_publisher_shards"))
        load.wait_more()
        second.kill9()
        load.wait_more()
        third = stack.service("publisher", "share-3", LEASE_MS=1500).start()
        wait_for("a third takes over", metric_is(third, PARTITIONS, "payfact_publisher_shards"))
        load.wait_more()
    outbox.wait_empty()


def test_shards_that_change_hands_in_order_send_nothing_twice(world):
    """The first shard is busy all the time, so that deletes are gathered; the last ones, which go, have a row now and then."""
    stack, outbox = world
    stays = stack.service("publisher", "hands-0", LEASE_MS=1500, IN_FLIGHT_MAX=40).start()
    busy = [key for key in (f"HANDS-B{i}" for i in range(16000)) if partition_of(key, PARTITIONS) == 0]
    with Load(outbox, "HANDS-", keys=200, writers=4, per_s=400):
        for turn in range(5):
            outbox.add([outbox.row(key) for key in busy])
            comes = stack.service("publisher", f"hands-{turn + 1}", LEASE_MS=1500).start()
            wait_for("it has its half", metric_is(comes, PARTITIONS / 2, "payfact_publisher_shards"))
            assert comes.stop() == 0
            wait_for("they come back", metric_is(stays, PARTITIONS, "payfact_publisher_shards"))
    outbox.wait_empty()
    assert outbox.check("HANDS") == 0


def test_frozen_past_its_lease_it_deletes_nothing_and_reorders_nothing(world):
    stack, outbox = world
    old = stack.service("publisher", "frozen", LEASE_MS=1000).start()
    with Load(outbox, "FROZEN") as load:
        load.wait_more()
        old.freeze()
        new = stack.service("publisher", "taker", LEASE_MS=1000).start()
        wait_for("it takes all", metric_is(new, PARTITIONS, "payfact_publisher_shards"))
        load.wait_more()
        old.thaw()
        wait_for("the old one learns it", lambda: old.metric("payfact_publisher_fenced_total") >= PARTITIONS)
        for each in (old, new):
            wait_for("they share", metric_is(each, PARTITIONS / 2, "payfact_publisher_shards"))
        load.wait_more()
    outbox.wait_empty()


def test_killed_between_delivery_and_delete_it_relays_again(world):
    stack, outbox = world
    rows = [outbox.row(f"KILL{i % 5}") for i in range(50)]
    dying = stack.service("publisher", "dying", FAULT="after_delivery_before_delete").start(ready=False)
    outbox.add(rows)
    wait_for("it died", lambda: not dying.alive())
    assert outbox.left() == 50
    began = time.monotonic()
    dying.env.pop("PAYFACT_FAULT")
    dying.start()  # under its own name: what it left is its own at once, not when the lease ends
    outbox.wait_empty()
    assert time.monotonic() - began < 8, "it waited for its own lease"
    assert outbox.check("KILL") >= 1


def test_k3_a_refused_row_holds_its_key_and_no_other(world):
    stack, outbox = world
    stack.service("publisher", "refusing", MESSAGE_BYTES_MAX=4000, REFUSE_FIRST_MS=20, REFUSE_MAX_MS=40, REFUSALS_MAX=3).start()
    outbox.add([outbox.row("HELD"), outbox.row("HELD", size=5000), outbox.row("HELD"), outbox.row("FREE", size=3000)])
    wait_for("given up", lambda: outbox.left("dead_at IS NOT NULL") == 1)
    (dead,) = stack.sql("SELECT * FROM payment_outbox WHERE dead_at IS NOT NULL")
    assert (dead["key"], dead["attempts"], dead["dead_reason"]) == ("HELD", 3, "MSG_SIZE_TOO_LARGE")
    outbox.add([outbox.row("HELD"), outbox.row("FREE")])
    wait_for("others go on", lambda: outbox.left("key = 'FREE'") == 0)
    wait_for("a pass of the sweep", lambda p=stack.service("publisher", "refusing"): p.metric("payfact_outbox_dead_rows") == 1)
    assert outbox.left("key = 'HELD'") == 3
    assert outbox.seen()["events", "HELD"] == [1]
    release(stack, dead)
    outbox.wait_empty()
    assert outbox.seen()["events", "HELD"] == [1, 2, 3, 4]


def release(stack, row):
    """As an operator's DISCARD_EVENT (common/store/outbox.c): another payload under the same number, held for a while."""
    stack.sql(
        "UPDATE payment_outbox SET payload = %s, dead_at = NULL, dead_reason = NULL, "
        "attempts = 1, available_at = clock_timestamp() + interval '5 seconds' WHERE shard = %s AND id = %s",
        bytes(row["payload"])[:100], row["shard"], row["id"],
    )  # fmt: skip


def test_rows_that_come_while_a_refused_one_is_set_free_stay_behind_it(world):
    """The head of a key becomes available in the middle of a pass; what is new of this key comes all the time."""
    stack, outbox = world
    stack.service("publisher", "order", MESSAGE_BYTES_MAX=4000, REFUSE_FIRST_MS=300, REFUSE_MAX_MS=300, REFUSALS_MAX=1000,
                  READ_ROWS_MAX=20).start()  # fmt: skip
    keys = [f"ORDER{i}" for i in range(8)]
    connection = outbox.connect()
    outbox.add([outbox.row(key, size=5000) for key in keys], connection)
    wait_for("all are refused", lambda: outbox.left("attempts > 0") == len(keys))
    for turn in range(60):  # more rows behind than one read takes
        outbox.add([outbox.row(key) for key in keys], connection)
        if turn == 30:
            stack.sql("UPDATE payment_outbox SET payload = substr(payload, 1, 100) WHERE attempts > 0")
        if turn > 30:
            wait_for("a bit of time", lambda until=time.monotonic() + 0.02: time.monotonic() > until, pause_s=0.005)
    connection.close()
    outbox.wait_empty()


def test_a_backlog_is_drained_without_a_refusal(world):
    """A broker holds a topic's limit against the whole batch, not against each record."""
    stack, outbox = world
    for part in range(4):
        outbox.add([outbox.row(f"BACKLOG{part}.{i}", size=1000) for i in range(1000)])
    publisher = stack.service("publisher", "backlog").start()
    outbox.wait_empty()
    assert publisher.metric("payfact_publisher_refused_total") == 0
    assert outbox.check("BACKLOG") == 0


@pytest.mark.parametrize("number", ["smaller", "last"])
def test_a_row_that_was_committed_late_is_found(world, number):
    """Without the shard's lock: its number was drawn, others were read (or nothing came), then it was committed."""
    stack, outbox = world
    stack.service("publisher", f"late-{number}").start()
    connection = outbox.connect()
    with connection.cursor() as cursor:
        psycopg2.extras.execute_values(cursor, INSERT, [outbox.row(f"LATE-{number}")], "(%s,%s,%s,%s,%s,now())")
    if number == "smaller":
        outbox.add([outbox.row(f"EARLY{i}") for i in range(20)])
        wait_for("the later ones are gone", lambda: outbox.left() == 0)
    patience = time.monotonic() + 3  # longer than a number that was drawn is waited for
    wait_for("the number is old", lambda: time.monotonic() > patience, pause_s=0.1)
    connection.commit()
    connection.close()
    outbox.wait_empty(limit_s=5)


def test_k5_sigterm_under_load_leaves_in_order_and_keeps_what_is_not_delivered(world):
    stack, outbox = world
    leaving = stack.service("publisher", "leaving").start()
    with Load(outbox, "LEAVE") as load:
        load.wait_more()
        assert leaving.stop() == 0
        assert stack.sql("SELECT count(*) AS n FROM publisher_lease WHERE expires_at > now()")[0]["n"] == 0
        assert stack.sql("SELECT count(*) AS n FROM publisher_member WHERE owner = 'leaving'")[0]["n"] == 0
        load.wait_more()
        assert outbox.left() > 0
        stack.service("publisher", "staying").start()
        load.wait_more()
    outbox.wait_empty()
    assert outbox.check("LEAVE") == 0  # in order: what was on its way was waited for


def test_the_database_goes_away_and_comes_back(world):
    stack, outbox = world
    proxy, conninfo = database_proxy(stack, "payfact_publisher")
    publisher = stack.service("publisher", "no-database", PG_CONNINFO=conninfo, LEASE_MS=1000).start()
    outbox.add([outbox.row(f"DB{i % 7}") for i in range(100)])
    outbox.wait_empty()
    proxy.refuse()
    wait_for("not ready", lambda: publisher.get("/readyz")[0] == 503)
    assert publisher.get("/healthz")[0] == 200
    outbox.add([outbox.row(f"DB{i % 7}") for i in range(100)])
    proxy.back()
    outbox.wait_empty()
    wait_for("ready", lambda: publisher.get("/readyz")[0] == 200)
    with Load(outbox, "DB"):
        for _ in range(5):  # also in the middle of statements: a lost answer of a delete is no lost lease
            wait_for("it is connected", lambda n=proxy.connections: proxy.cut() or proxy.connections > n)
    outbox.wait_empty()
    assert len(publisher.log_lines()) < 100, "it talks too much about it"


def test_the_broker_goes_away_and_comes_back(servers):
    with Stack(servers, broker="mock", **SHARED) as stack:
        outbox = Outbox(stack)
        broker = stack.broker.process
        broker.freeze()
        publisher = stack.service("publisher", TURN_MS_MAX=7000).start(ready=False)
        outbox.add([outbox.row(f"B{i % 9}") for i in range(200)])
        wait_for("it waits for Kafka", lambda: len(publisher.log_lines("waiting_for_kafka")) >= 2)
        assert publisher.get("/healthz")[0] == 200 and publisher.get("/readyz")[0] == 503
        broker.thaw()
        publisher.wait_ready()
        outbox.wait_empty()
        broker.freeze()
        outbox.add([outbox.row(f"B{i % 9}") for i in range(200)])
        wait_for("it has tried", lambda: publisher.metric("payfact_outbox_rows") == 200)
        assert outbox.left() == 200  # not one is deleted before its report
        broker.thaw()
        outbox.wait_empty()
        outbox.check()
        broker.freeze()
        outbox.add([outbox.row("LAST")])
        code = publisher.stop()  # bounded: the rows stay
        broker.thaw()
        assert (code, outbox.left()) == (0, 1)
        publisher.start()
        outbox.wait_empty()
        outbox.check()
        assert publisher.stop() == 0
