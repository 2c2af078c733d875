# SPDX-License-Identifier: Apache-2.0
"""A real schema registry (Apicurio by Confluent's API), and a payfact that is told of it."""

import http.server
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request

import pytest

# The simulator has a module of this name: the official library is taken before the simulator's folder is on the path.
_path = list(sys.path)
sys.path[:] = [p for p in sys.path if not p.rstrip("/").endswith("psp-simulator")]
import stripe  # noqa: E402

sys.path[:] = _path
assert hasattr(stripe, "Webhook"), stripe.__file__

import records  # noqa: E402
from payfact_stack import ACCOUNT_A, ROOT, Servers, Stack, build_dir, clean_environment  # noqa: E402
from procs import free_port, stand_still  # noqa: E402
from servers import script, signals_held, work_dir  # noqa: E402

PUBLIC = {"events": "PaymentEvent", "commands": "Command", "notifications": "RawNotification"}
AVRO = ROOT / "schemas" / "avro"


def load_example(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Gateway:
    """An edge gateway: takes the PSP's callbacks and keeps them as they came."""

    def __init__(self):
        self.taken = taken = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                taken.append((self.path, list(self.headers.items()), body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", free_port()), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/callbacks/{ACCOUNT_A}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._server.shutdown()
        self._server.server_close()

    def of(self, order, kind):
        return [t for t in self.taken if json.loads(t[2])["type"] == kind and order.encode() in t[2]]


class Registry:
    """Started once; freeze() and thaw() make it go away and come back with what it knows."""

    def __init__(self, directory):
        self.directory, self.port = directory, free_port(2)
        self.url = f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    def start(self):
        script("apicurio-fetch.sh")
        script("apicurio.sh", "start", self.directory, self.port)
        return self

    def stop(self):
        script("apicurio.sh", "wipe", self.directory)

    def _pid(self):
        return int((self.directory / "pid").read_text())

    def freeze(self):
        stand_still(self._pid())

    def thaw(self):
        os.kill(self._pid(), signal.SIGCONT)

    def call(self, method, path, document=None):
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(self.url + path, data=body, method=method)
        request.add_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    def register(self, subject, schema):
        """The id of a schema (a document) that is registered now."""
        return self.call("POST", f"/subjects/{subject}/versions", {"schema": json.dumps(schema)})["id"]

    def latest(self, subject):
        found = self.call("GET", f"/subjects/{subject}/versions/latest")
        return found["id"], json.loads(found["schema"])


class RegistryStack(Stack):
    """Relay, publisher and payfactctl know the registry; what it told the tests can read too."""

    def __init__(self, servers, registry, **options):
        settings = {name: {"REGISTRY_URL": registry.url} for name in ("relay", "publisher")}
        super().__init__(servers, settings=settings, **options)
        self.registry = registry

    def subject(self, topic):
        return f"{self.topic_name(topic)}-value"

    def run_ctl(self, *words):
        """(exit status, standard output) of payfactctl, which is told of the registry."""
        env = {**clean_environment(), **self.ctl_environment(), "PAYFACT_REGISTRY_URL": self.registry.url}
        run = subprocess.run([build_dir() / "bin" / "payfactctl", *words], env=env, capture_output=True, text=True)
        return run.returncode, run.stdout

    def register(self):
        code, said = self.run_ctl("schemas", "register")
        assert code == 0, said
        for topic in PUBLIC:
            number, document = self.registry.latest(self.subject(topic))
            records.BY_REGISTRY_ID[number] = records.fastavro.parse_schema(document, named_schemas={})
        return said


@pytest.fixture
def receiver():
    with Gateway() as gateway:
        yield gateway


@pytest.fixture(scope="session")
def servers():
    with Servers() as started:
        yield started


@pytest.fixture(scope="session")
def registry():
    with signals_held():
        directory = work_dir()
    (directory / "registry").mkdir()
    made = Registry(directory / "registry")
    try:
        yield made.start()
    finally:
        made.thaw()
        made.stop()
        shutil.rmtree(directory)


@pytest.fixture(scope="module")
def world(servers, registry):
    """All services; tests of a module share it, each with payments of its own."""
    with RegistryStack(servers, registry) as stack:
        stack.register()
        stack.start()
        yield stack
        fallen = {name: service.fell() for name, service in stack.services.items() if service.fell() is not None}
        assert not fallen, fallen


@pytest.fixture
def small(servers, registry):
    """Topics and subjects of its own, for a test that changes a contract; it starts what it needs."""
    with RegistryStack(servers, registry) as stack:
        stack.register()
        yield stack
