# SPDX-License-Identifier: Apache-2.0
"""Every pod, of services and of jobs: the restricted Pod Security Standard, what is mounted, how it starts and stops."""

import itertools

import pytest

from chart import CASES, NEW, OLD, component, container, env, of_kind, pod, render, workloads

# Kinds of volume that the restricted standard allows.
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}


def pods():
    """(case and component, workload)"""
    for case in CASES:
        for name, workload in workloads(render(case)).items():
            yield pytest.param(workload, id=f"{case}-{name}")


PODS = list(pods())


def restricted(spec):
    """What the restricted Pod Security Standard finds wrong with a pod, by its own list of controls."""
    found = [f"{field} is set" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    found += [f"volume {v['name']} is of kind {kind}" for v in spec.get("volumes", []) for kind in set(v) - {"name"} - VOLUMES]
    pod_context = spec.get("securityContext", {})
    if pod_context.get("sysctls"):
        found.append("sysctls")
    for part in itertools.chain(spec["containers"], spec.get("initContainers", []), spec.get("ephemeralContainers", [])):
        own = part.get("securityContext", {})
        both = {**pod_context, **own}
        wrong = {
            "privileged": own.get("privileged", False) is not False,
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is not False,
            "runAsNonRoot": both.get("runAsNonRoot") is not True,
            "runAsUser": both.get("runAsUser") == 0,
            "capabilities.drop": own.get("capabilities", {}).get("drop") != ["ALL"],
            "capabilities.add": bool(set(own.get("capabilities", {}).get("add", [])) - {"NET_BIND_SERVICE"}),
            "seccompProfile": both.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"),
            "hostPort": any("hostPort" in p for p in part.get("ports", [])),
            "procMount": own.get("procMount", "Default") != "Default",
        }
        found += [f"{part['name']}: {name}" for name, is_wrong in wrong.items() if is_wrong]
    return found


def test_the_check_itself_finds_what_is_wrong():
    bad = {"hostNetwork": True, "volumes": [{"name": "h", "hostPath": {}}], "containers": [{"name": "c", "ports": [{"hostPort": 1}]}]}
    found = " ".join(restricted(bad))
    for word in ("hostNetwork", "hostPath", "allowPrivilegeEscalation", "runAsNonRoot", "drop", "seccompProfile", "hostPort"):
        assert word in found


def test_every_workload_is_looked_at():
    assert len(PODS) == (6 + 2) + 3 + (6 + 2)


@pytest.mark.parametrize("workload", PODS)
def test_restricted(workload):
    assert restricted(pod(workload)) == []


@pytest.mark.parametrize("workload", PODS)
def test_stricter_than_restricted(workload):
    spec = pod(workload)
    context = container(workload)["securityContext"]
    assert (spec["securityContext"]["runAsUser"], spec["securityContext"]["runAsGroup"]) == (10001, 10001)
    assert context["readOnlyRootFilesystem"] is True
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False  # the services' PAYFACT_ variables would stop every start
    assert container(workload)["resources"]["limits"]["memory"] and container(workload)["resources"]["requests"]["cpu"]


@pytest.mark.parametrize("workload", PODS)
def test_only_tmp_can_be_written_and_it_is_bounded(workload):
    volumes = {v["name"]: v for v in pod(workload).get("volumes", [])}
    mounts = {m["name"]: m for m in container(workload).get("volumeMounts", [])}
    assert volumes.keys() == mounts.keys()
    for name, volume in volumes.items():
        if "emptyDir" in volume:
            assert name in ("tmp", "more") and volume["emptyDir"]["sizeLimit"]
        else:
            assert mounts[name]["readOnly"] is True and set(volume) - {"name"} <= {"secret", "configMap"}
            assert volume.get("secret", {"defaultMode": 0o440})["defaultMode"] == 0o440
    paths = [m["mountPath"] for m in mounts.values()]
    assert len(paths) == len(set(paths)) and not any("subPath" in m for m in mounts.values())  # a subPath is never re-read


@pytest.mark.parametrize("workload", PODS)
def test_the_environment_is_text_once_and_without_secrets(workload):
    entries = container(workload)["env"]
    names = [e["name"] for e in entries]
    assert len(names) == len(set(names))
    for entry in entries:
        assert set(entry) in ({"name", "value"}, {"name", "valueFrom"})
        assert "secretKeyRef" not in entry.get("valueFrom", {})
        assert isinstance(entry.get("value", ""), str)
    if component(workload) not in ("migrate", "topics"):
        assert names.index("POD_NAME") < names.index("PAYFACT_INSTANCE_ID")
        assert env(workload)["PAYFACT_INSTANCE_ID"] == "$(POD_NAME)"


@pytest.mark.parametrize("workload", PODS)
def test_every_file_that_a_setting_names_is_below_a_mount(workload):
    mounts = [m["mountPath"] for m in container(workload).get("volumeMounts", [])]
    for name, value in env(workload).items():
        if value.startswith("/"):
            assert any(value == mount or value.startswith(mount + "/") for mount in mounts), f"{name}={value}"


DEPLOYMENTS = [p for p in PODS if p.values[0]["kind"] == "Deployment"]


@pytest.mark.parametrize("workload", DEPLOYMENTS)
def test_probes(workload):
    it = container(workload)
    ports = {p["name"]: p["containerPort"] for p in it["ports"]}
    assert str(ports["admin"]) == env(workload)["PAYFACT_ADMIN_PORT"]
    assert env(workload)["PAYFACT_ADMIN_BIND"] == "0.0.0.0"
    assert it["livenessProbe"]["httpGet"] == it["startupProbe"]["httpGet"] == {"path": "/healthz", "port": "admin"}
    assert it["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "admin"}
    if component(workload) == "webhook":
        assert str(ports["http"]) == env(workload)["PAYFACT_HTTP_PORT"]
    else:
        assert "http" not in ports


@pytest.mark.parametrize("workload", DEPLOYMENTS)
def test_stop_and_rollout(workload):
    spec = workload["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    wait = container(workload).get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    assert pod(workload)["terminationGracePeriodSeconds"] > wait + int(env(workload)["PAYFACT_DRAIN_MS_MAX"]) / 1000
    (spread,) = pod(workload)["topologySpreadConstraints"]
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
    assert spread["labelSelector"]["matchLabels"] == spec["selector"]["matchLabels"]


def test_the_webhook_goes_on_until_its_endpoint_is_gone():
    sleeps = lambda kube: {name: container(w).get("lifecycle") for name, w in workloads(render("minimal", kube=kube)).items()}  # noqa: E731
    assert sleeps(NEW).pop("webhook") == {"preStop": {"sleep": {"seconds": 5}}}
    assert all(found is None for name, found in sleeps(NEW).items() if name != "webhook")
    assert all(found is None for found in sleeps(OLD).values())  # 1.27 has no such hook


def test_a_disruption_takes_one_pod_at_a_time():
    for budget in of_kind(render("minimal"), "PodDisruptionBudget").values():
        assert budget["spec"]["maxUnavailable"] == 1


def test_the_account_of_the_services_has_no_token():
    (account,) = of_kind(render("minimal"), "ServiceAccount").values()
    assert account["automountServiceAccountToken"] is False
    assert {pod(w)["serviceAccountName"] for n, w in workloads(render("minimal")).items() if n not in ("migrate", "topics")} == {
        account["metadata"]["name"]}
    assert {pod(w)["serviceAccountName"] for w in workloads(render("none")).values()} == {"default"}
