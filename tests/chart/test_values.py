# SPDX-License-Identifier: Apache-2.0
"""Values that must be refused, each with words that say why."""

import pytest

from chart import OFF, refusal, render, template

REQUIRED = ("kafka.brokers", "postgres.conninfo", "postgres.existingSecret", "keyring.existingSecret",
            "accounts.json or accounts.existingConfigMap", "accounts.existingSecret")


def test_all_that_is_missing_is_named_in_one_message():
    told = refusal(None)
    for name in REQUIRED:
        assert name in told
    assert told.count("these values are required") == 1


def test_only_what_is_used_is_required():
    values = {**OFF, "components": {**OFF["components"], "publisher": {"enabled": True}}}
    told = refusal(None, values)
    assert "kafka.brokers" in told and "postgres.conninfo" in told
    assert "keyring" not in told and "accounts" not in told
    assert "kafka.brokers" not in refusal(None, {**OFF, "migrations": {"mode": "job"}})


def nested(path, value):
    first, *rest = path.split(".")
    return {first: nested(".".join(rest), value) if rest else value}


# path, value, what the message must hold: the schema
SCHEMA = (
    ("no_such", 1, "no_such"),
    ("kafka.broker", "x:1", "broker"),
    ("kafka.brokers", "kafka", "brokers"),
    ("kafka.brokers", "a:1, b:2", "brokers"),
    ("kafka.partitions", 0, "partitions"),
    ("kafka.partitions", "12", "partitions"),
    ("kafka.topicPrefix", "a b", "topicPrefix"),
    ("kafka.existingSecret", "Not_A_Name", "existingSecret"),
    ("postgres.conninfo", "postgresql://u@h/d", "conninfo"),
    ("postgres.conninfo", "host=h password=x", "conninfo"),
    ("postgres.conninfo", "host=h user = x", "conninfo"),
    ("postgres.users.psp.name", "", "psp"),
    ("postgres.users.psp.name", "a b", "psp"),
    ("postgres.users.other", {"name": "a", "passwordKey": "b"}, "other"),
    ("redis.url", "redis:6379", "url"),
    ("redis.url", "redis://:secret@host:1", "url"),
    ("accounts.items", [{"key": "a", "path": "/etc/x"}], "path"),
    ("accounts.items", [{"key": "a", "path": "x/../../y"}], "path"),
    ("accounts.items", [{"key": "a"}], "path"),
    ("image.digest", "sha256:123", "digest"),
    ("image.pullPolicy", "Sometimes", "pullPolicy"),
    ("image.tag", "a b", "tag"),
    ("imagePullSecrets", ["registry"], "imagePullSecrets"),
    ("migrations.mode", "maybe", "mode"),
    ("topics.mode", True, "mode"),
    ("defaults.enabled", False, "defaults"),
    ("defaults.logLevel", "trace", "logLevel"),
    ("defaults.settings", {"lower": 1}, "lower"),
    ("defaults.settings", {"PAYFACT_TURN_MS_MAX": 1}, "PAYFACT_TURN_MS_MAX"),
    ("defaults.settings", {"TURN_MS_MAX": [1]}, "TURN_MS_MAX"),
    ("components.relay.replicas", -1, "replicas"),
    ("components.relay.replicas", 1.5, "replicas"),
    ("components.relay.drainMsMax", 99, "drainMsMax"),
    ("components.relay.resource", {}, "resource"),
    ("components.relay.resources.request", {}, "request"),
    ("components.other", {"enabled": True}, "other"),
    ("components.relay.podAnnotations", {"a": 1}, "podAnnotations"),
    ("components.relay.extraEnv", [{"value": "x"}], "extraEnv"),
    ("webhookService.type", "ExternalName", "type"),
    ("webhookService.port", 70000, "port"),
    ("networkPolicy.kafka.ports", [], "ports"),
    ("networkPolicy.kafka.port", [9092], "port"),
    ("networkPolicy.extraEgress", ["x"], "extraEgress"),
    ("jobs.backoffLimit", -1, "backoffLimit"),
    ("serviceAccount.token", True, "token"),
    ("fullnameOverride", "Upper", "fullnameOverride"),
    ("extraObjects", {}, "extraObjects"),
)


@pytest.mark.parametrize("path, value, says", SCHEMA, ids=[f"{i}-{row[0]}" for i, row in enumerate(SCHEMA)])
def test_the_schema_refuses(path, value, says):
    told = refusal("minimal", nested(path, value))
    assert "don't meet the specifications of the schema" in told
    assert says in told


# the same for what a schema cannot say
RULES = (
    ("defaults.terminationGracePeriodSeconds", 20, "components.webhook: terminationGracePeriodSeconds (20 s) must be longer than drainMsMax and preStopSeconds together (25000 ms)"),
    ("components.webhook.preStopSeconds", 20, "components.webhook: terminationGracePeriodSeconds (40 s)"),
    ("components.relay.settings", {"NO_SUCH": 1}, "components.relay.settings.NO_SUCH: payfact-ingest does not know it"),
    ("components.publisher.settings", {"KEYRING_FILE": "x"}, "components.publisher.settings.KEYRING_FILE: payfact-publisher does not know it"),
    ("components.relay.settings", {"LOG_LEVEL": "debug"}, "components.relay: the chart sets PAYFACT_LOG_LEVEL itself"),
    ("defaults.settings", {"KAFKA_BROKERS": "x"}, "components.psp: the chart sets PAYFACT_KAFKA_BROKERS itself"),
    ("defaults.settings", {"NO_SUCH": 1}, "defaults.settings.NO_SUCH: no service knows it"),
    ("components.relay.extraEnv", [{"name": "PAYFACT_LOG_LEVEL", "value": "x"}], "components.relay: extraEnv sets PAYFACT_LOG_LEVEL"),
    ("components.relay.extraEnv", [{"name": "A", "value": "x"}, {"name": "A", "value": "y"}], "components.relay: extraEnv sets A"),
    ("components.relay.extraEnv", [{"name": "POD_NAME", "value": "x"}], "components.relay: extraEnv sets POD_NAME"),
    ("accounts.json", "{", "accounts.json: "),
    ("accounts.json", '{"psp_accounts": [{"id": "s", "answers": "strict"}]}', "account s has strict answers, for which the webhook needs postgres.users.webhook.name"),
)


@pytest.mark.parametrize("path, value, says", RULES, ids=[f"{i}-{row[0]}" for i, row in enumerate(RULES)])
def test_a_rule_refuses(path, value, says):
    assert says in refusal("minimal", nested(path, value))


def test_what_is_wrong_is_told_together():
    told = refusal(None, {"defaults": {"settings": {"NO_SUCH": 1}}, "components": {"relay": {"drainMsMax": 50000}}})
    assert "these values are required" in told and "NO_SUCH" in told and "components.relay: terminationGracePeriodSeconds" in told


def test_what_is_off_is_not_judged():
    assert template("minimal", {"components": {"relay": {"enabled": False, "drainMsMax": 50000}}}).returncode == 0
    strict = '{"psp_accounts": [{"id": "s", "answers": "strict"}]}'
    assert template("minimal", {"components": {"webhook": {"enabled": False}}, "accounts": {"json": strict}}).returncode == 0


def test_a_parent_chart_may_say_global_and_enabled():
    assert len(render("minimal", {"global": {"x": 1}, "enabled": True})) == len(render("minimal"))
