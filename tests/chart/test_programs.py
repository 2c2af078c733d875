# SPDX-License-Identifier: Apache-2.0
"""The rendered pods against the built programs: each is started with exactly the environment, the arguments and the files
that its pod would have, as --check-config. A setting that its table does not know, or a file that is not where a setting
says, fails here and not in a cluster.
"""

import os
import pathlib
import re
import subprocess

import pytest

from chart import ROOT, container, env, pod, render, workloads

BIN = pathlib.Path(os.environ.get("PAY_BUILD_DIR", ROOT / "build" / "dev")).resolve() / "bin"
ACCOUNTS = (ROOT / "deploy/examples/accounts.json").read_text()
SERVICES = ("webhook", "relay", "psp", "processor", "recovery", "publisher")


def files_of(accounts):
    """Every file that accounts.json names."""
    return sorted(set(re.findall(r'"file": "([^"]+)"', accounts)))


def key_of(path):
    return path.replace("/", ".")


# The example's accounts, with every server and every file that the chart can mount.
VALUES = {
    "accounts": {"json": ACCOUNTS, "items": [{"key": key_of(path), "path": path} for path in files_of(ACCOUNTS)]},
    "postgres": {"users": {"webhook": {"name": "payfact_webhook_login"}}},  # one of them has strict answers
}


def known(program):
    """A program's own table of settings."""
    out = subprocess.run([BIN / program, "--print-config-docs"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^\| `(PAYFACT_\w+)`", out, re.MULTILINE))


def program(workload):
    return pathlib.Path(container(workload)["command"][0]).name


@pytest.mark.parametrize("case", ("minimal", "full", "none"))
def test_a_pod_sets_only_what_its_program_knows(case):
    seen = 0
    for name, workload in workloads(render(case)).items():
        ours = {n for n in env(workload) if n.startswith("PAYFACT_")}
        assert ours and ours <= known(program(workload)), f"{name}: {sorted(ours - known(program(workload)))}"
        seen += 1
    assert seen >= 3


@pytest.mark.parametrize("case", ("minimal", "full"))
def test_a_pod_sets_all_that_is_required(case):
    for name, workload in workloads(render(case)).items():
        out = subprocess.run([BIN / program(workload), "--print-config-docs"], capture_output=True, text=True, check=True).stdout
        required = {m[1] for m in re.finditer(r"^\| `(PAYFACT_\w+)` \|[^|]*\| required \|", out, re.MULTILINE)}
        assert required <= env(workload).keys(), name


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """(kind, name) -> {key: bytes}: the secrets and maps that somebody made before the installation."""
    folder = tmp_path_factory.mktemp("keys")
    subprocess.run([BIN / "payfactctl", "keygen", "evidence", "--out", folder / "keyring"], check=True, capture_output=True)
    secrets = {}
    for path in files_of(ACCOUNTS):
        if path.endswith(".pub.pem"):
            key_id = pathlib.Path(path).name.removesuffix(".pub.pem")
            subprocess.run([BIN / "payfactctl", "keygen", "command", "--out", folder, "--id", key_id], check=True, capture_output=True)
            secrets[key_of(path)] = (folder / f"{key_id}.pub.pem").read_bytes()
        else:
            secrets[key_of(path)] = b"sk_test_x" if "secret-key" in path else b"whsec_x"
    passwords = {name: b"x\n" for name in ("migrate", *SERVICES)}
    kafka = {"client.properties": b"security.protocol=PLAINTEXT\n", "kafka.properties": b"security.protocol=PLAINTEXT\n"}
    keyring = (folder / "keyring").read_bytes()
    ca = pathlib.Path("/etc/ssl/certs/ca-certificates.crt").read_bytes()
    return {
        ("secret", "payfact-accounts"): secrets,
        ("secret", "payfact-postgres"): passwords,
        ("secret", "payfact-keyring"): {"keyring": keyring, "evidence": keyring},
        ("secret", "payfact-redis"): {"redis-password": b"x"},
        **{("secret", f"payfact-kafka{more}"): kafka for more in ("", "-processor", "-admin")},
        ("configMap", "psp-ca"): {"ca.pem": ca},
        ("configMap", "payfact-postgres-ca"): {"ca.pem": ca},
    }


def mount(folder, content):
    """As the kubelet lays a volume out: files in a dated folder, ..data points to it, names point into ..data."""
    dated = folder / "..2026_01_02"
    for path, data in content.items():
        target = dated / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(0o440)
    (folder / "..data").symlink_to(dated.name)
    for first in {pathlib.PurePath(path).parts[0] for path in content}:
        (folder / first).symlink_to(pathlib.PurePath("..data") / first)


def content_of(volume, store, objects):
    """path -> bytes of a volume"""
    if "secret" in volume:
        source, key = volume["secret"], ("secret", volume["secret"]["secretName"])
    else:
        source, key = volume["configMap"], ("configMap", volume["configMap"]["name"])
    made = {("configMap", o["metadata"]["name"]): {k: v.encode() for k, v in o.get("data", {}).items()} for o in objects if o["kind"] == "ConfigMap"}
    everything = {**store, **made}[key]
    items = source.get("items") or [{"key": k, "path": k} for k in everything]
    return {item["path"]: everything[item["key"]] for item in items}


def start(workload, objects, store, root, more=None, arguments=("--check-config",)):
    """Runs the pod's program with its environment and its files, /etc/payfact being below root."""
    volumes = {v["name"]: v for v in pod(workload).get("volumes", [])}
    for point in container(workload).get("volumeMounts", []):
        if point["mountPath"].startswith("/etc/payfact/"):
            mount(root / point["mountPath"].removeprefix("/etc/payfact/"), content_of(volumes[point["name"]], store, objects))
    variables = {name: value.replace("/etc/payfact", str(root)).replace("$(POD_NAME)", "pod-1") for name, value in env(workload).items()}
    words = [str(BIN / program(workload)), *container(workload).get("args", []), *arguments]
    return subprocess.run(words, env={**variables, **(more or {})}, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("case", ("minimal", "full"))
@pytest.mark.parametrize("name", SERVICES)
def test_a_service_starts_with_what_its_pod_has(case, name, store, tmp_path):
    objects = render(case, VALUES)
    done = start(workloads(objects)[name], objects, store, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_check_would_see_an_unknown_setting_and_a_missing_file(store, tmp_path):
    objects = render("minimal", VALUES)
    publisher = workloads(objects)["publisher"]
    assert start(publisher, objects, store, tmp_path / "a", {"PAYFACT_KEYRING_FILE": "x"}).returncode == 2
    fewer = {**store, ("secret", "payfact-accounts"): {k: v for k, v in store["secret", "payfact-accounts"].items() if "pem" in k}}
    short = {**VALUES, "accounts": {**VALUES["accounts"], "items": [i for i in VALUES["accounts"]["items"] if "pem" in i["key"]]}}
    objects = render("minimal", short)
    assert start(workloads(objects)["relay"], objects, fewer, tmp_path / "b").returncode != 0


@pytest.mark.parametrize("name, says", (("migrate", "PAYFACT_PG_CONNINFO is not set"), ("topics", "PAYFACT_KAFKA_BROKERS is not set")))
def test_a_job_knows_its_command_and_says_what_it_lacks(name, says):
    """Without its settings the command gets as far as the server that it would call: its arguments are understood."""
    workload = workloads(render("minimal", VALUES))[name]
    words = [str(BIN / "payfactctl"), *container(workload)["args"]]
    done = subprocess.run(words, env={}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and says in done.stderr
