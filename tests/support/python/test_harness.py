# SPDX-License-Identifier: Apache-2.0
"""The harness's own parts: processes end when they must, topics are read whole, commands are signed as the contract says."""

import base64
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import time

import psycopg2
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

import records
from procs import Process, free_port, wait_for
from servers import MockBroker, Redis, Servers

BUILD = pathlib.Path(os.environ["PAY_BUILD_DIR"])


@pytest.fixture
def log_dir():
    with tempfile.TemporaryDirectory() as path:
        yield pathlib.Path(path)


@pytest.fixture(scope="module")
def servers():
    with Servers() as started:
        yield started


@pytest.fixture(params=["mock", "apache"])
def broker(request, log_dir):
    """(brokers, topic): an empty topic "commands" with three partitions on each kind of broker."""
    prefix = f"h{os.getpid()}-{request.param}."
    if request.param == "mock":
        mock = MockBroker(BUILD / "bin" / "payfact-mock-broker", log_dir, prefix, 3)
        try:
            yield mock.start().brokers, prefix + "commands"
        finally:
            mock.stop()
        return
    brokers = request.getfixturevalue("servers").kafka_brokers
    admin = AdminClient({"bootstrap.servers": brokers})
    name = f"{prefix}{os.urandom(3).hex()}.commands"
    admin.create_topics([NewTopic(name, 3, 1)])[name].result(30)
    yield brokers, name
    admin.delete_topics([name])[name].result(30)


def test_ports_are_never_given_twice():
    ports = [free_port() for _ in range(50)]
    assert len(set(ports)) == 50


def test_wait_for_says_what_was_not_reached():
    started = time.monotonic()
    with pytest.raises(AssertionError, match="the moon"):
        wait_for("the moon", lambda: 0, 0.2)
    assert time.monotonic() - started < 5


def test_process_stops_by_term_and_by_kill(log_dir):
    process = Process("sleeper", ["sleep", "1000"], log_dir)
    process.start()
    assert process.alive() and process.stop() == -signal.SIGTERM and not process.alive()
    process.start()
    assert process.kill9() == -signal.SIGKILL
    process.start()
    process.freeze()
    assert process.stop() == -signal.SIGTERM  # a frozen one is thawed first


def test_who_takes_sigterm_is_seen_from_outside(log_dir):
    """Caught or blocked, as the services do; at the start neither."""
    heedless = Process("heedless", [sys.executable, "-c", "import time\ntime.sleep(60)"], log_dir).start()
    for how in ("signal.signal(signal.SIGTERM, print)", "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})"):
        heeding = Process("heeding", [sys.executable, "-c", f"import signal, time\n{how}\ntime.sleep(60)"], log_dir).start()
        wait_for("it has come to its handler", heeding.takes_sigterm)
        heeding.kill9()
    assert not heedless.takes_sigterm()
    heedless.kill9()


def test_a_process_that_ignores_term_is_an_error(log_dir):
    stubborn = Process("stubborn", [sys.executable, "-c", textwrap.dedent("""
        import signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("ready", flush=True)
        time.sleep(1000)
    """)], log_dir)  # fmt: skip
    stubborn.start()
    wait_for("it is ready", lambda: "ready" in stubborn.tail(), 10)
    with pytest.raises(AssertionError, match="did not end"):
        stubborn.stop(0.3)
    assert not stubborn.alive()


def test_children_end_with_a_killed_parent(log_dir):
    code = textwrap.dedent("""
        import sys, time
        from procs import Process
        print(Process("child", ["sleep", "1000"], sys.argv[1]).start().pid, flush=True)
        time.sleep(1000)
    """)
    parent = subprocess.Popen([sys.executable, "-c", code, str(log_dir)], stdout=subprocess.PIPE)
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()

    def gone():
        try:
            return pathlib.Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True

    wait_for("the child has ended", gone, 10)


def test_redis_starts_and_stops_and_forgets(log_dir):
    redis = Redis(log_dir).start()
    redis.command("SET", "a", "1")
    redis.stop()
    redis.start()
    assert redis.command("EXISTS", "a") == "0"
    redis.stop()


def test_a_database_of_ones_own(servers):
    name = f"h_{os.getpid()}"
    servers.admin(f"CREATE DATABASE {name}")
    base = psycopg2.extensions.parse_dsn(servers.pg_conninfo)
    connection = psycopg2.connect(psycopg2.extensions.make_dsn(**{**base, "dbname": name}))
    connection.close()
    servers.admin(f"DROP DATABASE {name} WITH (FORCE)")


def test_payment_ids_are_ulids():
    first, second = records.new_payment_id(), records.new_payment_id()
    assert len(first) == 26 and set(first) <= set(records.CROCKFORD) and first[0] <= "7" and first != second


def test_fingerprint_has_the_byte_order_of_the_frame():
    assert records.fingerprint("int").hex() == "8f5c393f1ad57572"  # 0x7275d51a3f395c8f, little endian


def verified(signer, value, signature):
    with tempfile.NamedTemporaryFile() as text, tempfile.NamedTemporaryFile() as mark:
        text.write(records.SIGNED_PREFIX + value)
        mark.write(signature)
        text.flush(), mark.flush()
        run = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", signer.public, "-rawin", "-in",
                              text.name, "-sigfile", mark.name], capture_output=True)  # fmt: skip
    return run.returncode == 0


def test_a_command_arrives_signed_and_whole(broker, log_dir):
    brokers, name = broker
    signer = records.Signer(log_dir, "shop-a")
    upstream = records.Upstream(brokers, name, signer, "shop")
    payment = records.new_payment_id()
    route = {"psp": "stripe", "psp_account": "stripe-a", "method": "card", "failover_on_not_found": False}
    sent, secret = upstream.create_payment(payment, "acme", 2599, "EUR", [route], ["pm_card_visa"])
    topic = records.Topic(brokers, name)
    (message,) = topic.read()
    assert message["key"] == payment and message["record"]["command_id"] == sent["command_id"]
    assert message["record"]["create_payment"]["routes"] == [route]
    assert message["headers"]["payfact-key-id"] == b"shop-a"
    assert message["headers"]["payfact-secrets"] == secret
    assert message["record"]["secrets_sha256"] == sent["secrets_sha256"]
    assert records.decode(secret)["params"][0]["instrument"] == "pm_card_visa"
    signature = message["headers"]["payfact-signature"]
    assert verified(signer, message["value"], signature)
    assert not verified(signer, message["value"] + b"\0", signature)
    topic.close()


def test_a_topic_is_read_whole_and_again(broker, log_dir):
    brokers, name = broker
    upstream = records.Upstream(brokers, name, records.Signer(log_dir, "k"), "shop")
    for n in range(20):
        upstream.produce(f"key-{n % 5}", f"junk {n}".encode())
    topic = records.Topic(brokers, name)
    assert sorted(m["value"] for m in topic.read()) == sorted(f"junk {n}".encode() for n in range(20))
    assert {m["record"] for m in topic.read()} == {None}
    upstream.produce("key-1", base64.b64decode("AAAA"))
    assert len(topic.read()) == 21
    by_key = {}
    for message in topic.messages:
        assert by_key.setdefault(message["key"], message["partition"]) == message["partition"]
    topic.close()
