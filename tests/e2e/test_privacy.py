# SPDX-License-Identifier: Apache-2.0
"""Card numbers, check values, keys, client secrets, addresses and names go in through every input, and are found in no
log, metric, segment of an internal topic, column or key, in no spelling; what is kept of them is sealed, and payfactctl
opens it to the bytes that were sent. By contract payfact.commands and payfact.notifications are the upstream's own."""

import base64
import glob
import hashlib
import hmac
import json
import pathlib
import secrets
import subprocess
import time
import urllib.error
import urllib.request
import uuid

import psycopg2.extensions
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from payfact_stack import ACCOUNT_A, MERCHANT, new_payment_id, wait_for
from records import encode
from story import account_of, attempt, intent_of
from test_dead_letters import ctl, evidence, operators_login, put
from wire import Wire

INTERNAL = ("inputs", "psp-jobs", "events", "dlq")
PLAIN = ("commands", "notifications")


class Planted:
    """Things that must not be found, each made for one place, so that a finding says where it came from."""

    def __init__(self):
        self.by_place = {}

    def at(self, place):
        number = len(self.by_place) + 1
        word = secrets.token_hex(5)
        things = {
            "number": card_number(number),
            "cvc": f"cvc{word}",
            "email": f"{place}.{word}@example.com",
            "name": f"Jane {place.title()}{word}",
            "key": f"sk_live_{place}{word}",
            "whsec": f"whsec_{place}{word}",
            "client_secret": f"pi_3T{word}_secret_{word}",
        }
        self.by_place[place] = things
        return things

    def text(self, place):
        return " ".join(self.at(place).values())


def card_number(number):
    """A number that is one by its check digit."""
    digits = f"400000{number:09d}"
    total = sum(d if i % 2 else (2 * d if d < 5 else 2 * d - 9) for i, d in enumerate(map(int, digits)))
    return digits + str(-total % 10)


def spellings(text):
    """The bytes by which a text could be found: as it is, in hex, in base64 at each offset."""
    data = text.encode()
    rows = [data, data.hex().encode()]
    for shift in range(3):
        coded = base64.b64encode(b"\0" * shift + data)
        rows.append(coded[4 if shift else 0 : len(coded) // 4 * 4 - 4])
    return rows


# ---- places


planting = {}


def behind_a_planting_wire(document):
    """What the PSP answers carries more than payfact asks for, as real ones do."""
    planted = Planted()
    things = planted.at("answer")

    def change(request, answer):
        head, _, body = answer.partition(b"\r\n\r\n")
        if not body:
            return answer
        said = json.loads(body)
        said.update(receipt_email=things["email"], description=f"card {things['number']} {things['cvc']}",
                    shipping={"name": things["name"]}, secret_of_the_answer=things["client_secret"],
                    api_key_of_the_answer=things["key"], webhook_secret_of_the_answer=things["whsec"])  # fmt: skip
        if isinstance(said.get("error"), dict):
            said["error"]["message"] = f"Your card {things['number']} of {things['email']} was declined"
        body = json.dumps(said).encode()
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length:")]
        return b"\r\n".join([*lines, b"Content-Length: %d" % len(body)]) + b"\r\n\r\n" + body

    wire = Wire(document["psp_accounts"][0]["endpoint"], change=change)
    document["psp_accounts"][0]["endpoint"] = wire.url
    planting.update(planted=planted, wire=wire)


def post(stack, body, path=f"/callbacks/{ACCOUNT_A}", headers=()):
    request = urllib.request.Request(f"http://127.0.0.1:{stack.http_port}{path}", body, dict(headers), method="POST")
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def event_of(order, things, kind="payment_intent.processing"):
    """A callback as Stripe sends it, with everything that it may hold beside what payfact takes."""
    intent = {
        "id": "pi_3T" + secrets.token_hex(10), "object": "payment_intent", "amount": 2599, "amount_received": 0, "currency": "eur",
        "status": "processing", "livemode": False, "client_secret": things["client_secret"], "receipt_email": things["email"],
        "description": f"card {things['number']} {things['cvc']}", "metadata": {"order_id": order, "key": things["key"]},
        "shipping": {"name": things["name"], "phone": things["number"]}, "webhook": things["whsec"],
        "latest_charge": {"id": "ch_3T" + secrets.token_hex(10), "object": "charge",
                          "billing_details": {"email": things["email"], "name": things["name"]},
                          "payment_method_details": {"card": {"number": things["number"], "cvc": things["cvc"]}}},
    }  # fmt: skip
    return json.dumps({
        "id": "evt_3T" + uuid.uuid4().hex, "object": "event", "api_version": "2024-06-20", "created": int(time.time()),
        "data": {"object": intent}, "livemode": False, "pending_webhooks": 1,
        "request": {"id": None, "idempotency_key": None}, "type": kind,
    }).encode()  # fmt: skip


def signed(stack, body):
    at = int(time.time())
    key = account_of(stack, ACCOUNT_A)["webhook_secret"].encode()
    return f"t={at},v1={hmac.new(key, f'{at}.'.encode() + body, hashlib.sha256).hexdigest()}"


def callbacks(stack, planted, order):
    """{evidence id: bytes} of what must be kept."""
    kept = {}
    for place, number, kind, status in (
        ("accepted", order, "payment_intent.processing", 200),
        ("orphan", attempt(new_payment_id()), "payment_intent.processing", 200),
        ("foreign", "SHOP-77", "payment_intent.processing", 200),
        ("foreigner", None, "payment_intent.processing", 200),
        ("unknowntype", order, "payment_intent.invented", 200),
    ):
        things = planted.at(place)
        body = event_of(number or things["email"], things, kind)
        extra = {"Stripe-Signature": signed(stack, body), "X-Customer": things["email"], "User-Agent": things["name"]}
        assert post(stack, body, f"/callbacks/{ACCOUNT_A}?card={things['number']}", extra) == status, place
        kept[f"stripe/{ACCOUNT_A}/{json.loads(body)['id']}"] = body
    things = planted.at("unsigned")
    assert post(stack, event_of(order, things), headers={"Stripe-Signature": "t=1,v1=" + things["number"]}) == 400
    body = b'{"card": "' + planted.text("malformed").encode()
    assert post(stack, body, headers={"Stripe-Signature": signed(stack, body)}) == 400
    assert post(stack, b"x", f"/callbacks/{planted.at('path')['number']}") == 404
    return kept


def notification(stack, things, body, signature):
    return encode("RawNotification", {
        "notification_id": "n-1", "psp": "stripe", "psp_account": ACCOUNT_A, "method": "POST",
        "path": f"/callbacks/{ACCOUNT_A}", "query": f"email={things['email']}",
        "headers": [{"name": "stripe-signature", "value": signature.encode()},
                    {"name": "authorization", "value": things["key"].encode()},
                    {"name": "cookie", "value": things["cvc"].encode()}],
        "body": body, "received_at": int(time.time() * 1e6), "traceparent": None,
    })  # fmt: skip


def notifications(stack, planted, order):
    """({evidence id: bytes}, {letter id: bytes})"""
    kept, letters = {}, {}
    things = planted.at("notified")
    body = event_of(order, things)
    put(stack, "notifications", "gateway", notification(stack, things, body, signed(stack, body)))
    kept[f"stripe/{ACCOUNT_A}/{json.loads(body)['id']}"] = body
    things = planted.at("notifiedbadly")
    body = event_of(order, things)
    place = put(stack, "notifications", "gateway", notification(stack, things, body, "t=1,v1=00"))
    kept[f"stripe/{ACCOUNT_A}/{stack.topic_name('notifications')}:{place[0]}:{place[1]}"] = body
    junk = planted.text("brokennotification").encode()
    letters["{}/{}/{}".format(stack.topic_name("notifications"), *put(stack, "notifications", "gateway", junk))] = junk
    return kept, letters


def junk(stack, planted):
    """Bytes that are no record, where only services write."""
    poison = planted.text("poison").encode()
    place = put(stack, "inputs", "k", poison)
    job = planted.text("job").encode()
    job_place = put(stack, "psp-jobs", "k", job)
    names = [f"//{stack.topic_name('inputs')}:{place[0]}:{place[1]}", "{}/{}/{}".format(stack.topic_name("psp-jobs"), *job_place)]
    return {names[0]: poison}, {names[1]: job}


def params(things, instrument):
    return {"instrument": instrument, "payer_id": None, "payer_ip": "203.0.113.77", "extra": {},
            "return_url": f"https://shop.example/return?token={things['cvc']}&card={things['number']}"
                          f"&key={things['key']}&secret={things['client_secret']}"}  # fmt: skip


def create(stack, things, instrument="pm_card_visa", routes=1, **how):
    payment = new_payment_id()
    route = {"psp": "stripe", "psp_account": ACCOUNT_A, "method": "card", "failover_on_not_found": False}
    document = {"merchant_order_no": f"ORDER-{payment}", "amount_minor": 2599, "currency": "EUR", "capture_mode": "AUTOMATIC",
                "expires_at": None, "retry_until_expiry": None, "description": None, "routes": [route], "start": True}  # fmt: skip
    secret = encode("CommandSecrets", {"salt": secrets.token_bytes(16), "params": [params(things, instrument)] * routes,
                                       "redirect_data": None})  # fmt: skip
    record = stack.upstream.command("CREATE_PAYMENT", MERCHANT, payment, document, secret)
    return payment, stack.upstream.send(record, secret, **how)


def commands(stack, planted):
    """(payments, letters): paid, declined, waiting for the customer, and what never became a payment."""
    paid, _ = create(stack, planted.at("secrets"))
    declined, _ = create(stack, planted.at("declined"), "pm_card_visa_chargeDeclined")
    waiting, _ = create(stack, planted.at("waiting"), "pm_card_authenticationRequired")
    stack.wait_event(waiting, "PaymentActionRequired")
    came_back = planted.text("redirect").encode()
    secret = encode("CommandSecrets", {"salt": secrets.token_bytes(16), "params": [], "redirect_data": came_back})
    record = stack.upstream.command("CONTINUE_ATTEMPT", MERCHANT, waiting, {"attempt_id": attempt(waiting)}, secret)
    stack.upstream.send(record, secret)
    create(stack, planted.at("mismatched"), routes=2)  # secrets that do not fit: refused
    forged, value = create(stack, planted.at("forged"), signature=b"\0" * 64)
    stack.upstream.produce(forged, planted.text("unsignedcommand").encode())
    broken = planted.text("brokencommand").encode()
    headers = [("payfact-key-id", b"shop-key"), ("payfact-signature", stack.upstream.signer.sign(broken)),
               ("payfact-secrets", planted.text("brokensecrets").encode())]  # fmt: skip
    stack.upstream.produce(forged, broken, headers)

    def letters():
        found = {f"{r['topic']}/{r['partition']}/{r['offset']}": r["reason_code"] for r in dead_commands(stack)}
        return found if len(found) == 2 else None

    reasons = {reason: name for name, reason in wait_for("their letters", letters).items()}
    return {"paid": paid, "declined": declined, "waiting": waiting}, {reasons["SIGNATURE"]: value, reasons["MALFORMED"]: broken}


def dead_commands(stack):
    return [m["record"] for m in stack.records("dlq") if m["record"]["topic"] == stack.topic_name("commands")]


# ---- where they are looked for


def segments(stack, topic):
    """The bytes of the topic's segment files, as they are on the broker's disk."""
    admin = AdminClient({"bootstrap.servers": stack.brokers})
    broker = next(iter(admin.list_topics(timeout=15).brokers))
    (future,) = admin.describe_configs([ConfigResource(ConfigResource.Type.BROKER, str(broker))]).values()
    folders = future.result(15)["log.dirs"].value.split(",")
    files = [f for folder in folders for f in glob.glob(f"{folder}/{stack.topic_name(topic)}-*/*.log")]
    assert files, f"no segment of {topic} below {folders}"
    return b"".join(pathlib.Path(file).read_bytes() for file in sorted(files))


def dump(stack):
    base = psycopg2.extensions.parse_dsn(stack.servers.pg_conninfo)
    base.update(dbname=stack.database)
    program = sorted(glob.glob("/usr/lib/postgresql/*/bin/pg_dump"))[-1]
    run = subprocess.run([program, "--data-only", "--schema=payfact", psycopg2.extensions.make_dsn(**base)], capture_output=True,
                         check=True, start_new_session=True)  # fmt: skip
    return run.stdout


def told(stack, payments):
    """What payfactctl says of it all."""
    said = [stack.ctl(how, payment_id=payment) for payment in payments.values() for how in ("explain", "explain_text")]
    said += [ctl(stack, "dlq", "list"), ctl(stack, "dlq", "list", "--json"), ctl(stack, "dlq", "list", "--topic", "--json")]
    return "\n".join(said).encode()


def cache(stack):
    keys = stack.redis.command("KEYS", "*").split()
    return "\n".join(f"{key} {stack.redis.command('GET', key)}" for key in keys).encode()


def places(stack, payments):
    rows = {f"segments of {topic}": segments(stack, topic) for topic in INTERNAL}
    for name, service in stack.services.items():
        rows[f"log of {name}"] = service.log.read_bytes()
        rows[f"metrics of {name}"] = service.get("/metrics")[1].encode()
    return {**rows, "database": dump(stack), "Redis": cache(stack), "payfactctl": told(stack, payments)}


# Where the test itself wrote a thing: bytes that are no record, into topics that only services write.
OWN = (("poison", "segments of inputs"), ("job", "segments of psp-jobs"))


def findings(forbidden, haystacks):
    found = []
    for what, text in forbidden.items():
        for place, data in haystacks.items():
            is_own = any(what.endswith(f" of {planted}") and place == where for planted, where in OWN)
            found += [f"{what} in the {place}" for spelling in spellings(text) if spelling in data and not is_own]
    return found


def own_secrets(stack, payments):
    """payfact's own keys, and the client secrets of the PSP's objects. That of an object whose customer has to act may stand
    in the action, which is for the customer; here it is a plain address without it."""
    rows = {}
    for account in stack.psp_accounts:
        rows[f"{account['id']}: secret key"] = account["secret_key"]
        rows[f"{account['id']}: webhook secret"] = account["webhook_secret"]
    keyring = (stack.dir / "secrets" / "keyring").read_text().split()
    rows["evidence key"] = keyring[-1]
    for name, signer in stack.signers.items():
        rows[f"{name}: private key"] = signer.private.read_text().splitlines()[1]
    for name, payment in payments.items():
        rows[f"client secret of what is {name}"] = intent_of(stack, ACCOUNT_A, attempt(payment))["client_secret"]
    return rows


def prepare(stack):
    operators_login(stack)
    stack.at_exit(planting["wire"].close)


LOUD = {name: {"LOG_LEVEL": "debug"} for name in ("webhook", "relay", "psp", "processor", "publisher", "recovery")}


@pytest.mark.redis_irrelevant
@pytest.mark.unaudited  # callbacks that the PSP never sent
@pytest.mark.stack(prepare=prepare, edit=behind_a_planting_wire, settings=LOUD)
def test_nothing_personal_or_secret_lies_open_and_what_is_sealed_opens_to_what_was_sent(stack):
    planted = planting["planted"]
    payments, letters = commands(stack, planted)
    stack.wait_event(payments["paid"], "PaymentSucceeded")
    stack.wait_event(payments["declined"], "AttemptFailed")
    kept = callbacks(stack, planted, attempt(payments["waiting"]))
    for more_kept, more_letters in (notifications(stack, planted, attempt(payments["waiting"])), junk(stack, planted)):
        kept.update(more_kept)
        letters.update(more_letters)
    stack.command("CANCEL_PAYMENT", payments["waiting"], {"reason_code": "CUSTOMER_LEFT"})
    stack.wait_event(payments["waiting"], "PaymentCanceled")
    wait_for("all letters", lambda: len(stack.records("dlq")) == len(letters) + 1)
    stack.idle()

    haystacks = places(stack, payments)
    everything = {f"{kind} of {place}": text for place, things in planted.by_place.items() for kind, text in things.items()}
    # The search itself: it finds what lies open by contract, and what may be read everywhere.
    upstream = segments(stack, "commands") + segments(stack, "notifications")
    for place in ("secrets", "notified", "brokencommand"):
        assert planted.by_place[place]["number"].encode() in upstream, place
    for place in ("segments of inputs", "segments of psp-jobs", "segments of events", "log of processor", "database"):
        assert payments["paid"].encode() in haystacks[place], place
    assert payments["paid"].encode().hex().encode() in haystacks["database"]
    assert findings({**everything, **own_secrets(stack, payments), "payer": "203.0.113.77"}, haystacks) == []

    for name, sent in kept.items():
        assert evidence(stack, name) == sent, name
    for name, sent in letters.items():
        assert evidence(stack, name, "--letter") == sent, name
    audits = stack.sql("SELECT count(*) AS n FROM audit_log WHERE what = 'evidence.read'")
    assert audits[0]["n"] == len(kept) + len(letters)
