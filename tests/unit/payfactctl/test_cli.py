# SPDX-License-Identifier: Apache-2.0
"""payfactctl as a person types it, as far as that needs no server: help, exit statuses, keys, clear refusals."""

import os
import pathlib
import stat
import subprocess

import pytest

CTL = pathlib.Path(os.environ["PAY_BUILD_DIR"]) / "bin" / "payfactctl"
KINDS = ["CREATE_PAYMENT", "START_ATTEMPT", "CHANGE_METHOD", "CONTINUE_ATTEMPT", "CANCEL_PAYMENT"]
COMMANDS = ["migrate", "topics", "explain", "keygen command", "keygen evidence", *(f"send {k}" for k in KINDS)]
PAYMENT = "01JD0000000000000000000001"
ENDS = {"done": 0, "failed": 1, "usage": 2, "not found": 3, "refused": 4, "unknown": 5}


def ctl(*words, **settings):
    env = {k: v for k, v in os.environ.items() if not k.startswith("PAYFACT_")}
    env.update({f"PAYFACT_{k}": v for k, v in settings.items()})
    return subprocess.run([CTL, *words], env=env, capture_output=True, text=True)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_help(command):
    run = ctl(*command.split(), "--help")
    assert run.returncode == ENDS["done"], run.stderr
    assert run.stdout.startswith(f"payfactctl {command}: ") and "Exit: 0 done" in run.stdout
    assert command in ctl("--help").stdout


def test_groups_version_and_no_command_at_all():
    assert ctl("--version").stdout.startswith("payfactctl ")
    group = ctl("send", "--help")
    assert group.returncode == ENDS["done"] and all(f"send {k}" in group.stdout for k in KINDS)
    for words in ([], ["send"], ["keygen"]):
        run = ctl(*words)
        assert (run.returncode, run.stdout) == (ENDS["usage"], "") and "payfactctl" in run.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["explode"], 'unknown command, see --help'),
        (["send", "REFUND"], 'unknown command, see --help'),
        (["migrate", "--force"], '"--force" is not known here, see --help'),
        (["topics", "--partitions", "many"], '--partitions "many" is not a whole number in 0..1024'),
        (["explain"], "give a payment id, or --merchant-order MERCHANT NO, or --psp-ref REF"),
        (["explain", PAYMENT, "--psp-ref", "x"], "give a payment id"),
        (["explain", "--merchant-order", "acme"], "give a payment id"),
        (["explain", PAYMENT], "PAYFACT_PG_CONNINFO is not set"),
        (["migrate"], "PAYFACT_PG_CONNINFO is not set"),
        (["topics"], "PAYFACT_KAFKA_BROKERS is not set"),
        (["keygen", "command", "--out", "."], "--id is missing, see --help"),
        (["keygen", "command", "--out", ".", "--id", "../x"], '--id "../x" is not 1 to 64 of'),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_named(words, says):
    run = ctl(*words)
    assert (run.returncode, run.stdout) == (ENDS["usage"], "")
    assert run.stderr.startswith("payfactctl: ") and says in run.stderr


def test_a_server_that_is_away_is_told_from_a_wrong_setting():
    run = ctl("explain", PAYMENT, PG_CONNINFO="host=127.0.0.1 port=1 user=x dbname=x")
    assert run.returncode == ENDS["failed"], run.stderr
    run = ctl("explain", PAYMENT, PG_CONNINFO="nonsense=1")
    assert run.returncode == ENDS["usage"], run.stderr
    run = ctl("migrate", "--dir", "/nonexistent", PG_CONNINFO="host=127.0.0.1 port=1 user=x dbname=x")
    assert run.returncode == ENDS["usage"] and "/nonexistent" in run.stderr


def test_settings_of_services_are_left_alone_and_its_own_are_checked():
    run = ctl("--print-config", HTTP_PORT="1", TOPIC_PREFIX="x.", PG_CONNINFO="host=h")
    assert run.returncode == ENDS["done"] and "TOPIC_PREFIX=x.\n" in run.stdout and "HTTP_PORT" not in run.stdout
    assert ctl("migrate", LOG_LEVEL="loud").returncode == ENDS["usage"]
    docs = ctl("--print-config-docs").stdout
    assert all(f"`PAYFACT_{n}`" in docs for n in ("PG_CONNINFO", "PG_PASSWORD_FILE", "KAFKA_BROKERS", "TOPIC_PREFIX"))


def test_command_keys_are_made_once_and_private(tmp_path):
    run = ctl("keygen", "command", "--out", str(tmp_path), "--id", "shop-a")
    assert run.returncode == ENDS["done"] and '{"id": "shop-a", "file": "shop-a.pub.pem"}' in run.stdout
    private, public = tmp_path / "shop-a.pem", tmp_path / "shop-a.pub.pem"
    assert stat.S_IMODE(private.stat().st_mode) == 0o600 and "PRIVATE" not in run.stdout
    derived = subprocess.run(["openssl", "pkey", "-in", private, "-pubout"], capture_output=True, text=True, check=True)
    assert derived.stdout == public.read_text()
    before = private.read_text()
    again = ctl("keygen", "command", "--out", str(tmp_path), "--id", "shop-a")
    assert again.returncode == ENDS["usage"] and private.read_text() == before


def keys_of(ring):
    lines = [line.split() for line in ring.read_text().splitlines()]
    assert lines[0] == ["payfact-keyring-1"]
    return {line[1]: (line[0], line[2]) for line in lines[1:] if line and line[0] in ("current", "key")}


def test_the_keyring_is_rotated_and_keeps_what_it_had(tmp_path):
    ring = tmp_path / "ring"
    assert ctl("keygen", "evidence", "--out", str(ring), "--rotate").returncode == ENDS["usage"]  # nothing to rotate
    assert ctl("keygen", "evidence", "--out", str(ring), "--id", "one").returncode == ENDS["done"]
    assert stat.S_IMODE(ring.stat().st_mode) == 0o600
    first = keys_of(ring)["one"]
    assert first[0] == "current"
    assert ctl("keygen", "evidence", "--out", str(ring)).returncode == ENDS["usage"]  # never over an existing one
    run = ctl("keygen", "evidence", "--out", str(ring), "--rotate")
    assert run.returncode == ENDS["done"], run.stderr
    keys = keys_of(ring)
    assert len(keys) == 2 and keys["one"] == ("key", first[1]) and first[1] not in run.stdout
    assert ctl("keygen", "evidence", "--out", str(ring), "--rotate", "--id", "one").returncode != ENDS["done"]
    assert keys_of(ring) == keys


def test_send_refuses_before_anything_leaves(tmp_path):
    ctl("keygen", "command", "--out", str(tmp_path), "--id", "k")
    start = ["send", "CREATE_PAYMENT", "--caller", "shop", "--key", "k", "--key-file", str(tmp_path / "k.pem"),
             "--merchant", "acme", "--order-no", "O", "--payment"]  # fmt: skip
    away = {"KAFKA_BROKERS": "127.0.0.1:1"}
    for more, says in (
        (["new", "--amount", "0", "--currency", "EUR"], "--amount"),
        (["new", "--amount", "5", "--currency", "EUX"], "is not of ISO 4217"),
        (["short", "--amount", "5", "--currency", "EUR"], '"short" is not a payment id'),
        (["new", "--amount", "5", "--currency", "EUR", "--instrument", "pm_1"], "give --route"),
        (["new", "--amount", "5", "--currency", "EUR", "--wait-answer", "1"], "PAYFACT_PG_CONNINFO is not set"),
    ):
        run = ctl(*start, *more, **away)
        assert (run.returncode, run.stdout) == (ENDS["usage"], "") and says in run.stderr, run.stderr
