# SPDX-License-Identifier: Apache-2.0
"""Each template with nothing on, with the least and with everything; the whole against helm's and Kubernetes' rules."""

import re
import subprocess

import pytest
import yaml

from chart import (CASES, CHART, NEW, OFF, OLD, RELEASE, SCHEMAS, case_file, component, container, env, helm, manifest, of_kind,
                   pod, render, template, tool, workloads)

COMPONENTS = {"webhook", "relay", "psp", "processor", "recovery", "publisher"}


def only(template_name, case, more=None):
    """The objects that come from one template: helm writes a comment above each."""
    parts = re.split(r"^# Source: payfact/templates/(\S+)\n", manifest(case, more), flags=re.MULTILINE)
    texts = [text for name, text in zip(parts[1::2], parts[2::2]) if name == f"{template_name}.yaml"]
    return [doc for text in texts for doc in yaml.safe_load_all(text) if doc]


# template -> (component or name of what it renders by default, and with everything)
FULL_PDB = {"webhook", "relay", "psp", "processor"}
TEMPLATES = {
    "accounts": ({"rel-payfact-accounts"}, {"pay-accounts"}),
    "deployments": ({f"rel-payfact-{c}" for c in COMPONENTS}, {f"pay-{c}" for c in COMPONENTS}),
    "extraobjects": (set(), {"pay-extra", "rel-text"}),
    "jobs": ({"rel-payfact-migrate", "rel-payfact-topics"}, {"pay-migrate-1", "pay-topics-1"}),
    "networkpolicies": (set(), {f"pay-{c}" for c in COMPONENTS | {"migrate", "topics"}}),
    "poddisruptionbudgets": ({f"rel-payfact-{c}" for c in COMPONENTS}, {f"pay-{c}" for c in FULL_PDB}),
    "service": ({"rel-payfact-webhook"}, {"pay-webhook"}),
    "serviceaccount": ({"rel-payfact"}, {"payments"}),
}


def test_every_template_is_in_the_table():
    assert {p.stem for p in (CHART / "templates").glob("*.yaml")} == set(TEMPLATES)


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_a_template_off_by_default_and_with_everything(name):
    by_default, full = TEMPLATES[name]
    names = lambda objects: {o["metadata"]["name"] for o in objects}  # noqa: E731
    assert names(only(name, None, OFF)) == set()
    assert names(only(name, "minimal")) == by_default
    assert names(only(name, "full")) == full


def test_everything_off_is_nothing():
    assert render(None, OFF) == []


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kube", (OLD, NEW))
def test_helm_lints_strictly(case, kube):
    done = helm("lint", "--strict", "--kube-version", kube, "-f", str(case_file(case)), str(CHART))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 chart(s) failed" in done.stdout


def kubeconform(text, kube):
    where = SCHEMAS / f"v{kube}" / "{{.ResourceKind}}{{.KindSuffix}}.json"
    command = [tool("kubeconform"), "-strict", "-summary", "-schema-location", str(where), "-kubernetes-version", kube]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kube", (OLD, NEW))
def test_every_object_is_valid_for_kubernetes(case, kube):
    count = len(render(case, kube=kube))
    done = kubeconform(manifest(case, kube=kube), kube)
    assert done.returncode == 0, done.stdout
    assert f"Valid: {count}, Invalid: 0, Errors: 0, Skipped: 0" in done.stdout and count >= 3


@pytest.mark.parametrize("right, wrong", (("replicas:", "replcas:"), ("maxUnavailable: 0", "maxUnavailable: [0]"),
                                          ("automountServiceAccountToken: false", "automountServiceAccountToken: maybe")))
def test_the_schemas_refuse_a_wrong_object(right, wrong):
    text = manifest("minimal")
    assert right in text
    assert kubeconform(text.replace(right, wrong), NEW).returncode != 0


def test_an_old_kubernetes_is_refused():
    assert "incompatible" in template("minimal", kube="1.26.0").stderr


def test_names_are_unique_and_labels_standard():
    for case in CASES:
        objects = render(case)
        ids = [(o["kind"], o["metadata"]["name"]) for o in objects]
        assert len(ids) == len(set(ids))
        for thing in objects:
            if thing["metadata"]["name"] in ("pay-extra", "rel-text"):
                continue  # the user's own
            labels = thing["metadata"]["labels"]
            assert labels["app.kubernetes.io/instance"] == RELEASE
            assert labels["app.kubernetes.io/name"] == "payfact"
            assert labels["app.kubernetes.io/managed-by"] == "Helm"
            assert labels["app.kubernetes.io/part-of"] == "payfact"
            assert labels["helm.sh/chart"].startswith("payfact-") and labels["app.kubernetes.io/version"]


def test_names_stay_within_63_characters():
    long = "a" * 63
    for thing in render("full", {"fullnameOverride": long, "serviceAccount": {"name": ""}}):
        assert len(thing["metadata"]["name"]) <= 63, thing["metadata"]["name"]


def test_selectors_find_their_pods_and_never_change():
    changed = {"image": {"tag": "9"}, "defaults": {"podLabels": {"app.kubernetes.io/name": "other", "a": "b"}}, "nameOverride": ""}
    for case in CASES:
        before, after = of_kind(render(case), "Deployment"), of_kind(render(case, changed), "Deployment")
        assert before.keys() == after.keys()
        for name, deployment in after.items():
            selector = deployment["spec"]["selector"]["matchLabels"]
            assert selector == before[name]["spec"]["selector"]["matchLabels"]
            assert set(selector) == {f"app.kubernetes.io/{x}" for x in ("name", "instance", "component")}
            assert selector.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()


def test_budgets_services_and_policies_select_what_exists():
    for case in CASES:
        objects = render(case)
        pods = [w["spec"]["template"]["metadata"]["labels"] for w in workloads(objects).values()]
        for kind, where in (("PodDisruptionBudget", lambda s: s["selector"]["matchLabels"]), ("Service", lambda s: s["selector"]),
                            ("NetworkPolicy", lambda s: s["podSelector"]["matchLabels"])):
            for thing in of_kind(objects, kind).values():
                found = [labels for labels in pods if where(thing["spec"]).items() <= labels.items()]
                assert len(found) == 1, thing["metadata"]["name"]
                assert found[0]["app.kubernetes.io/component"] == component(thing)


def test_a_new_chart_version_alone_restarts_nothing():
    for workload in workloads(render("minimal")).values():
        labels = workload["spec"]["template"]["metadata"]["labels"]
        assert not {"helm.sh/chart", "app.kubernetes.io/version"} & labels.keys()


# ---- the hooks run before anything of the chart is there ----

def test_hooks_need_existing_secrets_only():
    objects = render("minimal", {"networkPolicy": {"enabled": True}, "kafka": {"existingSecret": "k"}})
    jobs = of_kind(objects, "Job")
    made = {o["metadata"]["name"] for o in objects if o["kind"] in ("ConfigMap", "ServiceAccount", "Secret")}
    assert made and len(jobs) == 2
    for job in jobs.values():
        assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
        assert "serviceAccountName" not in pod(job)
        assert all(set(v) == {"name", "secret"} for v in pod(job).get("volumes", []))
        assert not any(name in yaml.safe_dump(pod(job)) for name in made if name != "rel-payfact")
    weights = {component(o): int(o["metadata"]["annotations"]["helm.sh/hook-weight"]) for o in jobs.values()}
    assert weights["migrate"] < weights["topics"]


def test_a_policy_of_a_hook_comes_before_it_and_goes_with_it():
    objects = render("minimal", {"networkPolicy": {"enabled": True}})
    policies, jobs = of_kind(objects, "NetworkPolicy"), of_kind(objects, "Job")
    for name, job in jobs.items():
        own, its = policies[name]["metadata"]["annotations"], job["metadata"]["annotations"]
        assert own["helm.sh/hook"] == its["helm.sh/hook"]
        assert own["helm.sh/hook-delete-policy"] == its["helm.sh/hook-delete-policy"]
        assert int(own["helm.sh/hook-weight"]) < int(its["helm.sh/hook-weight"])
    assert "annotations" not in policies["rel-payfact-processor"]["metadata"]


def test_jobs_in_each_mode():
    hook, job = of_kind(render("minimal"), "Job"), of_kind(render("minimal", {"migrations": {"mode": "job"}}), "Job")
    assert set(hook) == {"rel-payfact-migrate", "rel-payfact-topics"}
    assert set(job) == {"rel-payfact-migrate-1", "rel-payfact-topics"}  # a Job cannot change: one per revision
    assert "annotations" not in job["rel-payfact-migrate-1"]["metadata"]
    assert not of_kind(render("none"), "Job")


# ---- the network, by architecture.md's table ----

REACHES = {
    "webhook": {53, 9092, 5432, 6379}, "relay": {53, 9092}, "psp": {53, 9092, 5432, 443}, "processor": {53, 9092, 5432},
    "recovery": {53, 9092, 5432}, "publisher": {53, 9092, 5432}, "migrate": {53, 5432}, "topics": {53, 9092},
}


def policies(more=None):
    values = {"networkPolicy": {"enabled": True, **(more or {})}, "redis": {"url": "redis://r:6379"},
              "postgres": {"users": {"webhook": {"name": "w"}}}}
    return {component(p): p["spec"] for p in of_kind(render("minimal", values), "NetworkPolicy").values()}


def ports(policy):
    return {p["port"] for rule in policy["egress"] for p in rule["ports"]}


def test_a_policy_lets_through_what_its_component_needs_and_no_more():
    found = policies()
    assert {name: ports(policy) for name, policy in found.items()} == REACHES
    assert all(policy["policyTypes"] == ["Ingress", "Egress"] for policy in found.values())
    assert {name for name, policy in found.items() if "ingress" in policy} == {"webhook"}
    assert found["webhook"]["ingress"] == [{"ports": [{"port": "http", "protocol": "TCP"}]}]


def test_a_policy_without_redis_or_webhook_login():
    (webhook,) = [p["spec"] for p in of_kind(render("minimal", {"networkPolicy": {"enabled": True}}), "NetworkPolicy").values()
                  if component(p) == "webhook"]
    assert ports(webhook) == {53, 9092}


def test_a_policy_takes_ports_and_peers_from_the_values():
    peer = {"ipBlock": {"cidr": "192.0.2.0/24"}}
    found = policies({"postgres": {"ports": [6432], "to": [peer]}, "metricsFrom": [peer], "extraEgress": [{"ports": [{"port": 1}]}]})
    (rule,) = [r for r in found["processor"]["egress"] if r["ports"] == [{"port": 6432, "protocol": "TCP"}]]
    assert rule["to"] == [peer]
    assert found["processor"]["ingress"] == [{"ports": [{"port": "admin", "protocol": "TCP"}], "from": [peer]}]
    assert all(1 in ports(policy) for policy in found.values())
    assert "ingress" not in found["migrate"]


# ---- what a component is made of ----

def test_each_component_runs_its_program():
    commands = {name: (container(w)["command"], container(w).get("args")) for name, w in workloads(render("minimal")).items()}
    assert commands == {
        "webhook": (["/usr/bin/payfact-ingest"], ["--role", "webhook"]),
        "relay": (["/usr/bin/payfact-ingest"], ["--role", "relay"]),
        "psp": (["/usr/bin/payfact-ingest"], ["--role", "psp"]),
        "processor": (["/usr/bin/payfact-processor"], None),
        "recovery": (["/usr/bin/payfact-recovery"], None),
        "publisher": (["/usr/bin/payfact-publisher"], None),
        "migrate": (["/usr/bin/payfactctl"], ["migrate"]),
        "topics": (["/usr/bin/payfactctl"], ["topics", "--partitions=12", "--replication=3"]),
    }


def test_what_a_component_says_wins_also_when_it_says_nothing():
    """mergeOverwrite alone would keep a default where a component says 0 or an empty list."""
    found = of_kind(render("full"), "Deployment")
    assert found["pay-recovery"]["spec"]["replicas"] == 0
    publisher = pod(found["pay-publisher"])
    assert "tolerations" not in publisher and "priorityClassName" not in publisher
    assert pod(found["pay-relay"])["tolerations"] and pod(found["pay-relay"])["priorityClassName"] == "payments"
    webhook = container(found["pay-webhook"])["resources"]
    assert webhook == {"requests": {"cpu": "1", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}  # maps are merged
    assert env(found["pay-processor"])["PAYFACT_LOG_LEVEL"] == "debug"
    assert env(found["pay-relay"])["PAYFACT_LOG_LEVEL"] == "info"


def test_settings_go_to_those_who_know_them_and_numbers_stay_whole():
    found = workloads(render("full"))
    assert env(found["webhook"])["PAYFACT_HTTP_BODY_BYTES_MAX"] == "1048576"  # not 1.048576e+06
    assert env(found["processor"])["PAYFACT_PRODUCE_TIMEOUT_MS"] == "5000"
    assert env(found["relay"])["PAYFACT_PRODUCE_TIMEOUT_MS"] == "2000"
    assert "PAYFACT_PRODUCE_TIMEOUT_MS" not in env(found["publisher"])  # it has no such setting
    assert all(env(found[name])["PAYFACT_TURN_MS_MAX"] == "30000" for name in COMPONENTS)


def test_one_login_and_one_password_each():
    for name, workload in workloads(render("full")).items():
        logins = {"topics": None, "relay": None, "migrate": "payfact_owner"}
        login = logins.get(name, f"payfact_{name}_login")
        conninfo = env(workload).get("PAYFACT_PG_CONNINFO", "")
        mounted = [v["secret"]["items"] for v in pod(workload)["volumes"] if v["name"] == "postgres"]
        if login is None:
            assert conninfo == "" and mounted == []
        else:
            assert conninfo.endswith(f" user={login}") and conninfo.startswith("host=postgres dbname=payfact sslmode=verify-full")
            assert mounted == [[{"key": name, "path": "password"}]]


def test_a_kafka_secret_of_ones_own():
    secrets = {name: [v["secret"]["secretName"] for v in pod(w)["volumes"] if v["name"] == "kafka"]
               for name, w in workloads(render("full")).items()}
    assert secrets["processor"] == ["payfact-kafka-processor"]
    assert secrets["topics"] == ["payfact-kafka-admin"]
    assert secrets["relay"] == ["payfact-kafka"] and secrets["migrate"] == []


def test_the_image_by_tag_and_by_digest():
    images = lambda objects: {container(w)["image"] for w in workloads(objects).values()}  # noqa: E731
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    assert images(render("minimal")) == {f"payfact:{version}"}
    assert images(render("minimal", {"image": {"tag": "x"}})) == {"payfact:x"}
    assert images(render("full")) == {"registry.example:5000/payments/payfact@sha256:" + "0123456789abcdef" * 4}


def test_accounts_json_arrives_byte_for_byte():
    for text in ('{"version": 1}', '{"a": "{{ .Values }}: \\n \\u00e9 é # x",\n\n  "b": 1}\n\n'):
        (made,) = of_kind(render("minimal", {"accounts": {"json": text}}), "ConfigMap").values()
        assert made["data"] == {"accounts.json": text}


# helm prints the notes only where it reaches a cluster: here an object of the test's own holds them.
NOTES = """{apiVersion: v1, kind: ConfigMap, metadata: {name: notes}, data: {text: {{ include "payfact/templates/NOTES.txt" . | quote }}}}"""


def notes(case, more=None):
    return of_kind(render(case, {"extraObjects": [NOTES], **(more or {})}), "ConfigMap")["notes"]["data"]["text"]


@pytest.mark.parametrize("case, says", (
    ("minimal", ["/callbacks/<account id>", "port-forward deploy/rel-payfact-processor", "No Redis", "networkPolicy.enabled is false"]),
    ("full", ["publisher has 1 replica", "migrations.mode=job", "installed as pay."]),
    ("none", ["The chart makes no topics", "migrations.mode=none", "processor has 1 replica"]),
))
def test_the_notes(case, says):
    text = notes(case)
    for words in says:
        assert words in text
    assert ("/callbacks/" in text) == (case != "none")


def test_the_notes_count_partitions():
    words = "relay has more replicas than there are partitions (1)"
    assert words in notes("minimal", {"kafka": {"partitions": 1}}) and words not in notes("minimal")
