# SPDX-License-Identifier: Apache-2.0
"""A whole payfact for one test: its own database, topics, accounts, keys, Redis, PSP simulator and processes.

    with Servers() as servers, Stack(servers) as stack:
        payment = stack.pay(2599, "EUR")
        stack.wait_event(payment, "PaymentSucceeded")
        assert stack.audit() == []

Everything ends in reverse order, by pid, also on Ctrl-C and SIGTERM; the temporary folder goes too (it stays, and is
named, when PAY_TEST_KEEP is set). The tables below are the only place that knows the binaries' names and settings.
"""

import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import psycopg2
import psycopg2.extras

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests" / "psp-simulator"))

from client import Simulator  # noqa: E402
from procs import Process, free_port, wait_for  # noqa: E402
from records import RECORD_OF, Group, Signer, Topic, Upstream, keyring_file, new_payment_id  # noqa: E402
from servers import MockBroker, Redis, Servers, signals_held, work_dir  # noqa: E402

__all__ = ["Servers", "Stack", "new_payment_id", "wait_for"]

MERCHANT, ACCOUNT_A, ACCOUNT_B = "acme", "stripe-a", "stripe-b"
# Services and databases of every test live in zones that are not UTC: no decision may look at the local clock (U11).
ODD_ZONE, ODD_DATABASE_ZONE = "Pacific/Kiritimati", "America/St_Johns"
CALLER, OPERATORS = "shop", ("operator-1", "operator-2", "operator-3")

# Service -> (program, arguments, database role or None, settings of its own). ${...} is filled from Stack._values().
SERVICES = {
    "webhook": ("payfact-ingest", ["--role", "webhook"], None, {"HTTP_BIND": "127.0.0.1", "HTTP_PORT": "${http_port}"}),
    "relay": ("payfact-ingest", ["--role", "relay"], None, {}),
    "psp": ("payfact-ingest", ["--role", "psp"], "payfact_psp", {}),
    "processor": ("payfact-processor", [], "payfact_processor", {}),
    "publisher": ("payfact-publisher", [], "payfact_publisher", {}),
    "recovery": ("payfact-recovery", [], "payfact_recovery", {}),
}

# Settings that several services have. A service gets those that its --print-config-docs names: it refuses others.
COMMON = {
    "KAFKA_BROKERS": "${brokers}",
    "TOPIC_PREFIX": "${prefix}",
    "PG_CONNINFO": "${conninfo}",
    "REDIS_URL": "${redis_url}",
    "ACCOUNTS_FILE": "${dir}/accounts.json",
    "SECRETS_DIR": "${dir}/secrets",
    "KEYRING_FILE": "${dir}/secrets/keyring",
    "ADMIN_BIND": "127.0.0.1",
    "ADMIN_PORT": "${admin_port}",
    "INSTANCE_ID": "${service}",
    "SCHEMA_WRITE": "current",
    "LOG_LEVEL": "info",
}

# Who has to have read what before nothing is on its way: topic, consumer group, service.
READERS = (("commands", "ingest-relay", "relay"), ("inputs", "processor", "processor"), ("psp-jobs", "ingest-psp", "psp"))

# What payfactctl is asked. {words} are filled by the caller.
CTL = {
    "migrate": ["migrate"],
    "topics": ["topics", "--partitions", "{partitions}", "--replication", "{replication}"],
    "explain": ["explain", "{payment_id}", "--json"],
    "explain_text": ["explain", "{payment_id}"],
    "send": ["send", "{kind}", "--caller", "{caller}", "--key", "{key_id}", "--key-file", "{key_file}",
             "--merchant", "{merchant}", "--payment", "{payment_id}", "--json"],
    "order": ["{command}", "--caller", "{caller}", "--key", "{key_id}", "--key-file", "{key_file}", "--merchant", "{merchant}",
              "--wait-answer", "60", "--json"],
    "cases": ["cases", "--json"],
    "cases_text": ["cases"],
    "approvals": ["approvals", "--json"],
}
CTL_SETTINGS = ("KAFKA_BROKERS", "TOPIC_PREFIX", "PG_CONNINFO")

# How fast an account gives up, asks and asks again: seconds in production are a test's patience here.
UNKNOWN = {
    "longest_processing_s": 1,
    "visibility_grace_s": 1,
    "not_founds_needed": 2,
    "query_first_s": 1,
    "query_max_s": 2,
    "person_after_s": 60,
}


class Service(Process):
    """One payfact process; start() returns when it is ready."""

    def __init__(self, name, argv, log_dir, env, admin_port):
        super().__init__(name, argv, log_dir, env)
        self.admin_port = admin_port

    def get(self, path):
        """(status, text) of the admin port, (None, why) when there is no answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}{path}", timeout=5) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return None, str(error)

    def _ready(self):
        if not self.alive():
            raise AssertionError(f"{self.name} ended at start:\n{self.tail()}")
        return self.get("/readyz")[0] == 200

    def wait_ready(self, limit_s=30):
        try:
            wait_for(f"{self.name} is ready", self._ready, limit_s)
        except AssertionError as error:
            raise AssertionError(f"{error}; /readyz: {self.get('/readyz')}\n{self.tail()}") from None
        return self

    def start(self, ready=True):
        super().start()
        return self.wait_ready() if ready else self

    def restart(self):
        self.stop()
        return self.start()

    def metric(self, name, **labels):
        """Sum of a metric's series that have these labels; 0 when there is none."""
        total = 0.0
        for line in self.get("/metrics")[1].splitlines():
            match = re.fullmatch(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?", line)
            if match and match[1] == name:
                have = dict(re.findall(r'(\w+)="([^"]*)"', match[2] or ""))
                if all(have.get(k) == v for k, v in labels.items()):
                    total += float(match[3])
        return total

    def log_lines(self, event=None):
        rows = []
        for line in self.log.read_text(errors="replace").splitlines() if self.log.exists() else []:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if event is None or row.get("event") == event:
                rows.append(row)
        return rows


def build_dir():
    return pathlib.Path(os.environ.get("PAY_BUILD_DIR") or ROOT / "build" / "dev")


def known_settings(binary):
    """Names a program takes, from its generated documentation."""
    run = subprocess.run([binary, "--print-config-docs"], capture_output=True, text=True, env=clean_environment(),
                         start_new_session=True)  # fmt: skip
    names = set(re.findall(r"\bPAYFACT_([A-Z0-9_]+)\b", run.stdout))
    if run.returncode != 0 or not names:
        raise RuntimeError(f"{binary} --print-config-docs ended with {run.returncode}: {run.stderr[-500:]}")
    return names


def clean_environment():
    return {k: v for k, v in os.environ.items() if not k.startswith("PAYFACT_")}


def _raise_on_sigterm(number, frame):
    raise SystemExit(128 + number)


class Stack:
    """broker: "apache" (shared) or "mock" (own). redis=False: none is configured at all. settings: {service: {NAME:
    value}}. psp: settings of the simulator. edit: called with the accounts document before it is written."""

    _numbers = itertools.count(1)

    def __init__(self, servers, broker="apache", redis=True, partitions=4, settings=None, psp=None, edit=None):
        self.servers, self.broker_kind, self.partitions = servers, broker, partitions
        self._with_redis, self._settings, self._psp_settings, self._edit = redis, settings or {}, psp or {}, edit
        number = f"{os.getpid()}_{next(self._numbers)}"
        self.database, self.prefix = f"t_{number}", f"t{number}."
        self.services, self._undo, self._topics, self._groups, self._known = {}, [], {}, {}, {}
        self.redis = self.psp = self.upstream = self.broker = None

    # ---- life

    def __enter__(self):
        try:
            if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
                signal.signal(signal.SIGTERM, _raise_on_sigterm)
        except ValueError:
            pass  # not the main thread: whoever runs us answers signals
        try:
            self._enter()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def _enter(self):
        with signals_held():
            self.dir = work_dir()
            self._undo.append(self._remove_dir)
        (self.dir / "secrets").mkdir(mode=0o700)
        (self.dir / "log").mkdir()
        self._start_database()
        if self.broker_kind == "mock":
            broker = MockBroker(build_dir() / "bin" / "payfact-mock-broker", self.dir / "log", self.prefix, self.partitions)
            self._undo.append(broker.stop)
            self.broker = broker
            self.brokers = broker.start().brokers
        else:
            self.brokers = self.servers.kafka_brokers
        if self._with_redis:
            self.redis = Redis(self.dir)
            self._undo.append(self.redis.stop)
            self.redis.start()
        self.http_port = free_port()
        self._start_psp()
        self._write_accounts()
        self._start_roles()
        if self.broker_kind != "mock":
            self._make_topics()
        self.upstream = Upstream(self.brokers, self.topic_name("commands"), self.signers[CALLER], CALLER)

    def __exit__(self, kind, error, trace):
        if kind and issubclass(kind, Exception):  # not when somebody pressed Ctrl-C
            for service in self.services.values():
                print(f"---- {service.name}:\n{service.tail(15)}", file=sys.stderr)
        for service in self.services.values():
            service.ask_to_stop()
        problems = []
        for reader in (*self._topics.values(), *self._groups.values()):
            reader.close()
        while self._undo:
            undo = self._undo.pop()
            try:
                undo()
            except Exception as problem:  # the next ones must end as well
                problems.append(problem)
        if problems and not kind:
            raise problems[0]

    def keep(self, folder):
        """For whoever looks into a failure: every log, every payment's story, what each process that runs says of itself,
        where its threads stand (if there is a gdb), and what lies unread on the topics."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.dir / "log", folder)
        for name, service in self.services.items():
            if service.alive():
                said = [f"{path}: {service.get(path)}" for path in ("/healthz", "/readyz")] + [str(service.get("/metrics")[1])]
                if shutil.which("gdb"):
                    threads = ["gdb", "-p", str(service.pid), "-batch", "-ex", "thread apply all bt 25"]
                    said.append(subprocess.run(threads, capture_output=True, text=True, timeout=60).stdout)
                (folder / f"{name}.state.txt").write_text("\n".join(said))
        for row in self.sql("SELECT payment_id FROM payment_order LIMIT 500"):
            told = self.ctl("explain_text", check=False, payment_id=row["payment_id"])
            (folder / f"{row['payment_id']}.txt").write_text(told)
        (folder / "lag.txt").write_text(f"{self.lag()}\n")

    def at_exit(self, undo):
        """Called when the stack ends, before everything that was started earlier."""
        self._undo.append(undo)

    def _remove_dir(self):
        if os.environ.get("PAY_TEST_KEEP"):
            print(f"kept: {self.dir}", file=sys.stderr)
        else:
            shutil.rmtree(self.dir)

    def _start_database(self):
        self.servers.admin(f"CREATE DATABASE {self.database}")
        self.servers.admin(f"ALTER DATABASE {self.database} SET timezone TO '{ODD_DATABASE_ZONE}'")
        self._undo.append(lambda: self.servers.admin(f"DROP DATABASE {self.database} WITH (FORCE)"))
        self.brokers = "127.0.0.1:1"  # payfactctl migrate needs no broker, but its table may ask for one
        self._make_schema()

    def _make_schema(self):
        self.ctl("migrate")

    def _make_topics(self):
        self.ctl("topics", partitions=self.partitions, replication=self.servers.kafka_replication)

    def _start_roles(self):
        """A login per service with that service's rights and no others."""
        for _, _, role, _ in SERVICES.values():
            if role:
                self.servers.admin(
                    f"DO $$ BEGIN CREATE ROLE {role}_login LOGIN IN ROLE {role}; "
                    "EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
                )

    def _start_psp(self):
        self.psp_accounts = [
            {"id": name, "psp": "stripe", "secret_key": f"sk_test_{name}_{os.urandom(8).hex()}",
             "webhook_secret": f"whsec_{os.urandom(16).hex()}",
             "callback_url": f"http://127.0.0.1:{self.http_port}/callbacks/{name}"}
            for name in (ACCOUNT_A, ACCOUNT_B)
        ]  # fmt: skip
        log = (self.dir / "log" / "psp.log").open("wb")
        self._undo.append(log.close)
        self.psp = Simulator(self.psp_accounts, settings={"speed": 600, **self._psp_settings}, log=log)
        self._undo.append(lambda: self.psp.process and self.psp.__exit__())  # before: it may be interrupted half way
        self.psp.__enter__()

    def _write_accounts(self):
        secrets_dir = self.dir / "secrets"
        keyring_file(secrets_dir / "keyring")
        self.signers = {name: Signer(secrets_dir, f"{name}-key") for name in (CALLER, *OPERATORS)}
        for account in self.psp_accounts:
            for name in ("secret_key", "webhook_secret"):
                path = secrets_dir / f"{account['id']}.{name}"
                path.write_text(account[name])
                path.chmod(0o600)
        document = self._accounts_document()
        if self._edit:
            self._edit(document)
        (self.dir / "accounts.json").write_text(json.dumps(document, indent=2))

    def _accounts_document(self):
        def route(account):
            return {"method": "card", "currency": "EUR", "min_minor": 1, "max_minor": 100000000,
                    "psp_account": account, "failover_on_not_found": False}  # fmt: skip

        def principal(name, kind, commands):
            return {"id": name, "kind": kind, "keys": [{"id": f"{name}-key", "file": f"{name}-key.pub.pem"}],
                    "may": [{"merchant": MERCHANT, "commands": commands}]}  # fmt: skip

        service = ["CREATE_PAYMENT", "START_ATTEMPT", "CHANGE_METHOD", "CONTINUE_ATTEMPT", "CAPTURE", "CANCEL_PAYMENT",
                   "REQUEST_REFUND"]  # fmt: skip
        operator = ["REQUEST_REFUND", "FORCE_CLOSE_UNKNOWN", "CORRECT_STATE", "RELEASE_RESERVATION", "OVERRIDE_BLOCK",
                    "RESOLVE_CASE", "REPLAY_INPUT", "REPLAY_EVENT", "DISCARD_EVENT", "PAUSE_ROUTE", "RESUME_ROUTE", "APPROVE", "DECLINE"]  # fmt: skip
        merchant = {
            "id": MERCHANT,
            "limits": {"commands_per_s": 1000, "amount_max_minor": {"EUR": 100000000, "JPY": 100000000}},
            "order_expires_after_s": 86400,
            "failover_window_s": 900,
            "retry_until_expiry": False,
            "authorization_end": "void",
            "refund_threshold_minor": {"EUR": {"per_payment": 0, "per_day": 0}},
            "default_routes": [route(ACCOUNT_A), route(ACCOUNT_B)],
        }
        accounts = [
            {"id": account["id"], "psp": "stripe", "merchant": MERCHANT, "live": False, "endpoint": self.psp.url,
             "settings": {"api_version": "2024-06-20"},
             "credentials": {"secret_key": {"id": "sk-a", "file": f"{account['id']}.secret_key"}},
             "callback_keys": [{"id": "whsec-a", "file": f"{account['id']}.webhook_secret"}],
             "answers": "custody", "foreign_callbacks": "ignore",
             "limits": {"callbacks_per_s": 1000, "calls_per_s": 100, "in_flight": 32, "queued": 256},
             "timeouts_ms": {"connect": 1000, "total": 2000}, "unknown": dict(UNKNOWN)}
            for account in self.psp_accounts
        ]  # fmt: skip
        principals = [principal(CALLER, "service", service)] + [principal(o, "operator", operator) for o in OPERATORS]
        return {"version": 1, "merchants": [merchant], "psp_accounts": accounts, "principals": principals}

    # ---- the processes of payfact

    def _values(self, service, role, admin_port):
        base = psycopg2.extensions.parse_dsn(self.servers.pg_conninfo)
        base.update(dbname=self.database, **({"user": f"{role}_login"} if role else {}))
        return {
            "brokers": self.brokers,
            "prefix": self.prefix,
            "conninfo": psycopg2.extensions.make_dsn(**base),
            "redis_url": self.redis.url if self.redis else "",
            "dir": str(self.dir),
            "admin_port": str(admin_port),
            "http_port": str(getattr(self, "http_port", 0)),
            "service": service,
        }

    def _environment(self, settings, values):
        env = {**clean_environment(), "TZ": ODD_ZONE}
        for name, text in settings.items():
            filled = re.sub(r"\$\{(\w+)\}", lambda m: values[m[1]], str(text))
            if filled:
                env[f"PAYFACT_{name}"] = filled
        return env

    def service(self, name, instance=None, **settings):
        """The process of this name, made at first use; a second instance of a service gets a name of its own, and
        may have settings of its own."""
        called = instance or name
        if called not in self.services:
            program, arguments, role, own = SERVICES[name]
            binary = build_dir() / "bin" / program
            if program not in self._known:
                self._known[program] = known_settings(binary)
            common = {k: v for k, v in COMMON.items() if k in self._known[program]}
            if not role:
                common.pop("PG_CONNINFO", None)
            admin_port = free_port()
            merged = {**common, **own, **self._settings.get(name, {}), **settings}
            if instance and "HTTP_PORT" in merged:
                merged["HTTP_PORT"] = str(free_port())
            env = self._environment(merged, self._values(called, role, admin_port))
            made = Service(called, [binary, *arguments], self.dir / "log", env, admin_port)
            self.services[called] = made
            self._undo.append(lambda: made.alive() and made.stop())
        return self.services[called]

    def start(self, *names):
        """Start these services, or all; all first, then wait for each, so that they become ready together."""
        started = [self.service(name).start(ready=False) for name in names or SERVICES]
        for service in started:
            service.wait_ready()
        return self

    def stop(self, *names):
        for name in names or list(self.services):
            if self.services[name].alive():
                self.services[name].stop()

    def ctl_environment(self):
        """The variables that payfactctl needs here."""
        settings = {name: COMMON[name] for name in CTL_SETTINGS}
        env = self._environment(settings, self._values("payfactctl", None, 0))
        return {name: value for name, value in env.items() if name.startswith("PAYFACT_")}

    def ctl(self, what, *more, check=True, **words):
        """Run payfactctl by the table above; returns its standard output."""
        arguments = [a.format(**words) for a in CTL[what]] + [str(m) for m in more]
        env = {**clean_environment(), **self.ctl_environment()}
        run = subprocess.run([build_dir() / "bin" / "payfactctl", *arguments], env=env, capture_output=True, text=True,
                             start_new_session=True)  # fmt: skip
        if check and run.returncode != 0:
            raise RuntimeError(f"payfactctl {' '.join(arguments)} ended with {run.returncode}: {run.stderr[-2000:]}")
        return run.stdout

    # ---- asking

    def sql(self, statement, *parameters):
        """Rows as dicts, as the superuser; a change is committed."""
        base = psycopg2.extensions.parse_dsn(self.servers.pg_conninfo)
        base.update(dbname=self.database, options="-c search_path=payfact")
        connection = psycopg2.connect(psycopg2.extensions.make_dsn(**base))
        try:
            with connection, connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor:
                cursor.execute(statement, parameters)
                return [dict(row) for row in cursor.fetchall()] if cursor.description else []
        finally:
            connection.close()

    def order_status(self, payment_id):
        rows = self.sql("SELECT status FROM payment_order WHERE payment_id = %s", payment_id)
        return rows[0]["status"] if rows else None

    def attempt_status(self, attempt_id):
        rows = self.sql("SELECT status FROM payment_attempt WHERE attempt_id = %s", attempt_id)
        return rows[0]["status"] if rows else None

    def wait_attempt(self, attempt_id, status, limit_s=30):
        def reached():
            now = self.attempt_status(attempt_id)
            return now == status and now

        return wait_for(f"attempt {attempt_id} is {status}", reached, limit_s)

    def topic_name(self, topic):
        return self.prefix + topic

    def records(self, topic):
        """Every message of a topic so far, decoded (record is None where it is no known frame)."""
        assert topic in RECORD_OF, topic
        if topic not in self._topics:
            self._topics[topic] = Topic(self.brokers, self.topic_name(topic))
        return self._topics[topic].read()

    def consume_events(self, payment_id=None, kind=None):
        """Published facts in the order of their topic."""
        events = [m["record"] for m in self.records("events")]
        return [e for e in events if payment_id in (None, e["payment_id"]) and kind in (None, e["type"])]

    def wait_event(self, payment_id, kind, limit_s=30):
        found = wait_for(f"{kind} of {payment_id}", lambda: self.consume_events(payment_id, kind), limit_s)
        return found[-1]

    def ledger(self, account=None, order=None):
        return self.psp.ledger(account, order)

    def explain(self, payment_id):
        return json.loads(self.ctl("explain", payment_id=payment_id))

    def lag(self):
        """{topic: (records not read yet, its end)} of what the running services have to read."""
        result = {}
        for topic, group, service in READERS:
            if service in self.services and self.services[service].alive():
                prefix = self.services[service].env["PAYFACT_TOPIC_PREFIX"]
                key = prefix + topic
                if key not in self._groups:
                    self._groups[key] = Group(self.brokers, key, prefix + group)
                result[key] = self._groups[key].lag()
        return result

    def idle(self, limit_s=60, each=lambda: None):
        """Wait until nothing is on its way: callbacks given, topics read, outbox empty, twice the same. each() is called
        before every look."""
        seen = []

        def quiet():
            each()
            given = self.psp.drain(timeout_ms=1000)
            lag = self.lag()
            waits = self.sql("SELECT count(*) AS n FROM payment_outbox")[0]["n"]
            seen.append((given, lag, waits))
            done = given and not waits and not any(left for left, _ in lag.values())
            return done and len(seen) > 1 and seen[-1] == seen[-2]

        try:
            wait_for("nothing is on its way", quiet, limit_s, pause_s=0.05)
        except AssertionError as error:
            raise AssertionError(f"{error}; callbacks given, (records left, end) by topic, outbox rows: {seen[-1]}") from None

    # ---- doing

    def pay(self, amount_minor=2599, currency="EUR", accounts=(ACCOUNT_A,), instruments=None, payment_id=None, **body):
        """Upstream asks for a payment over these accounts, in order; returns the payment id."""
        payment_id = payment_id or new_payment_id()
        routes = [{"psp": "stripe", "psp_account": a, "method": "card", "failover_on_not_found": False} for a in accounts]
        self.upstream.create_payment(payment_id, MERCHANT, amount_minor, currency, routes, instruments, **body)
        return payment_id

    def command(self, kind, payment_id, body=None, **changes):
        """A signed command by the merchant's service; returns its record."""
        record = self.upstream.command(kind, MERCHANT, payment_id, body, **changes)
        self.upstream.send(record)
        return record

    def send_command(self, kind, payment_id, *options, caller=CALLER):
        """The same through `payfactctl send`, with that kind's options; returns its payment_id and command_id."""
        signer = self.signers[caller]
        said = self.ctl("send", *options, kind=kind, caller=caller, key_id=signer.key_id, key_file=signer.private,
                        merchant=MERCHANT, payment_id=payment_id)  # fmt: skip
        return json.loads(said)

    def order(self, command, *options, caller=CALLER):
        """A signed command of its own name (refund, approve ...); its (status, reason) as decided, refused or not."""
        signer = self.signers[caller]
        said = self.ctl("order", *options, check=False, command=command, caller=caller, key_id=signer.key_id,
                        key_file=signer.private, merchant=MERCHANT)  # fmt: skip
        answer = json.loads(said)
        return answer["answer"], answer["reason_code"]

    # ---- the audit: PSP, database and downstream must tell the same story

    def audit(self):
        """Differences between the simulator's ledger, the database and the published events; [] is right."""
        return [*self._audit_money(), *self._audit_reservations(), *self._audit_events(), *self._audit_ids()]

    def _audit_money(self):
        rows = self.sql("SELECT attempt_id, captured_minor, refunded_minor, withdrawn_minor FROM payment_amount")
        booked = {r["attempt_id"]: r for r in rows}
        held = {t["order"]: t for t in self.psp.totals()}
        for order in sorted(set(booked) | set(held), key=str):
            ours, theirs = booked.get(order), held.get(order)
            if ours is None:
                if theirs["charges"]:
                    yield f"{order}: the PSP took {theirs['charged_minor']}, the database has no such attempt"
                continue
            theirs = theirs or {"charges": 0, "charged_minor": 0, "refunded_minor": 0, "withdrawn_minor": 0}
            if theirs["charges"] > 1:
                yield f"{order}: charged {theirs['charges']} times"
            for name, column in (("charged_minor", "captured_minor"), ("refunded_minor", "refunded_minor"),
                                 ("withdrawn_minor", "withdrawn_minor")):  # fmt: skip
                mine = ours[column]
                if theirs[name] != mine:
                    yield f"{order}: {name} is {theirs[name]} at the PSP and {mine} in the database"
        yield from self._audit_double_charges(held)

    def _audit_double_charges(self, held):
        """One charge a payment; a second one must have become a case, and all but one must have been paid back."""
        rows = self.sql("SELECT DISTINCT payment_id FROM manual_case WHERE kind = 'DUPLICATE_CHARGE'")
        cased = {r["payment_id"] for r in rows}
        charged = {}
        for order, total in held.items():
            if order and total["charges"]:
                charged.setdefault(order[:26], {})[order] = total["charged_minor"] - total["refunded_minor"]
        for payment, kept in charged.items():
            if len(kept) > 1 and (payment not in cased or sum(left > 0 for left in kept.values()) > 1):
                yield f"{payment}: charged by more than one attempt: {sorted(kept)}"

    def _audit_reservations(self):
        """Nothing stays reserved, and each amount is the sum of the actions that moved it."""
        rows = self.sql(
            "SELECT a.*, (SELECT coalesce(sum(amount_minor), 0) FROM refund_order r WHERE r.attempt_id = a.attempt_id"
            " AND r.status = 'SUCCEEDED') AS by_refunds, (SELECT coalesce(sum(withdrawn_minor), 0) FROM dispute d"
            " WHERE d.attempt_id = a.attempt_id) AS by_disputes FROM payment_amount a"
        )
        for row in rows:
            for name in ("capture_reserved_minor", "refund_reserved_minor"):
                if row[name]:
                    yield f"{row['attempt_id']}: {name} is still {row[name]}"
            if row["refunded_minor"] != row["by_refunds"]:
                yield f"{row['attempt_id']}: refunded {row['refunded_minor']}, its refunds say {row['by_refunds']}"
            if row["withdrawn_minor"] < row["by_disputes"]:
                yield f"{row['attempt_id']}: withdrawn {row['withdrawn_minor']}, its disputes say {row['by_disputes']}"

    def _audit_events(self):
        by_payment = {}
        for event in self.consume_events():
            if event["sequence"]:
                by_payment.setdefault(event["payment_id"], {}).setdefault(event["event_id"], event)
        for row in self.sql("SELECT payment_id, status, event_sequence FROM payment_order"):
            events = sorted(by_payment.pop(row["payment_id"], {}).values(), key=lambda e: e["sequence"])
            numbers = [e["sequence"] for e in events]
            if numbers != list(range(1, row["event_sequence"] + 1)):
                yield f"{row['payment_id']}: published {numbers}, the order is at {row['event_sequence']}"
            successes = [e for e in events if e["type"] == "PaymentSucceeded"]
            if len(successes) != (1 if row["status"] == "SUCCEEDED" else 0):
                yield f"{row['payment_id']}: {row['status']} with {len(successes)} PaymentSucceeded"
        for payment in by_payment:
            yield f"{payment}: events were published, the database has no such order"

    def _audit_ids(self):
        """A fact has one id, whenever and however often it is published, and it is the one that the history names."""
        seen = {}
        for event in self.consume_events():
            place = event["payment_id"], event["sequence"]
            if event["sequence"] and seen.setdefault(place, event["event_id"]) != event["event_id"]:
                yield f"{place}: published as {seen[place]} and as {event['event_id']}"
        kept = self.sql(
            "SELECT payment_id, published_sequence AS number, published_event_id AS id FROM payment_state_history "
            "WHERE published_sequence > 0"
        )
        for row in kept:
            published = seen.get((row["payment_id"], row["number"]))
            if published != row["id"]:
                yield f"{row['payment_id']} #{row['number']}: the history says {row['id']}, published was {published}"
        if len({(row["payment_id"], row["number"]) for row in kept}) != len(kept):
            yield "two rows of the history claim the same number"
