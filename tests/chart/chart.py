# SPDX-License-Identifier: Apache-2.0
"""Renders the chart. helm knows nothing of this machine: no cluster, no configuration, no plug-ins.

    objects = render("full")                        # ci/full-values.yaml
    render("minimal", {"redis": {"url": "..."}})    # with more values over it
"""

import functools
import json
import os
import pathlib
import subprocess
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "payfact"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "payfact"
SCHEMAS = CACHE / "k8s-schemas"
OLD, NEW = "1.27.16", "1.34.4"  # the oldest version that Chart.yaml allows, and a current one
CASES = ("minimal", "none", "full")  # ci/*-values.yaml
RELEASE, NAMESPACE = "rel", "payments"

# Nothing that can be left out: what each template does when it has nothing to do.
OFF = {
    "components": {name: {"enabled": False} for name in ("webhook", "relay", "psp", "processor", "recovery", "publisher")},
    "migrations": {"mode": "none"},
    "topics": {"mode": "none"},
    "serviceAccount": {"create": False},
}


def tool(name):
    path = CACHE / "bin" / name
    assert path.exists(), f"needs {path}: run tests/support/stack/helm-fetch.sh"
    return str(path)


@functools.lru_cache
def helm_env():
    home = tempfile.TemporaryDirectory(prefix="payfact-helm.")
    return home, {"PATH": os.environ["PATH"], "HOME": home.name, "KUBECONFIG": "/dev/null",
                  **{f"HELM_{part}_HOME": f"{home.name}/{part.lower()}" for part in ("CACHE", "CONFIG", "DATA")}}


def helm(*args, stdin=None):
    return subprocess.run([tool("helm"), *args], input=stdin, capture_output=True, text=True, env=helm_env()[1], timeout=120)


def case_file(case):
    return CHART / "ci" / f"{case}-values.yaml"


@functools.lru_cache
def _template(case, more, kube, extra):
    files = [] if case is None else ["-f", str(case_file(case))]
    return helm("template", RELEASE, str(CHART), "-n", NAMESPACE, "--kube-version", kube, *files, "-f", "-", *extra, stdin=more)


def template(case, more=None, kube=NEW, extra=()):
    """What `helm template` does: CompletedProcess. case None: the chart's own values alone."""
    return _template(case, json.dumps(more or {}), kube, tuple(extra))


def manifest(case, more=None, kube=NEW, extra=()):
    done = template(case, more, kube, extra)
    assert done.returncode == 0, done.stderr
    return done.stdout


class UniqueKeys(yaml.SafeLoader):
    """A YAML in which a key stands twice means something else to each reader."""


def _mapping(loader, node):
    keys = [key.value for key, _ in node.value]
    assert len(keys) == len(set(keys)), f"a key stands twice: {sorted(keys)}"
    return loader.construct_mapping(node, deep=True)


UniqueKeys.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def render(case, more=None, kube=NEW, extra=()):
    """Every object of a rendering."""
    return [doc for doc in yaml.load_all(manifest(case, more, kube, extra), UniqueKeys) if doc is not None]


def refusal(case, more=None):
    """What helm says to values that it must refuse."""
    done = template(case, more)
    assert done.returncode != 0, "was not refused"
    return done.stderr


def of_kind(objects, kind):
    """name -> object"""
    return {o["metadata"]["name"]: o for o in objects if o["kind"] == kind}


def component(thing):
    return thing["metadata"]["labels"].get("app.kubernetes.io/component")


def workloads(objects):
    """component -> Deployment or Job"""
    return {component(o): o for o in objects if o["kind"] in ("Deployment", "Job")}


def pod(workload):
    return workload["spec"]["template"]["spec"]


def container(workload):
    (only,) = pod(workload)["containers"]
    return only


def env(workload):
    """name -> value of what has a plain value"""
    return {e["name"]: e["value"] for e in container(workload).get("env", []) if "value" in e}
