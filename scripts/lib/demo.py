# SPDX-License-Identifier: Apache-2.0
"""Tells payfact's story on real processes; scripts/demo installs and builds what it needs and starts it.

Each part ends with a comparison: what the PSP really took, what the database says, what a downstream consumer got.
Any difference ends the demo with status 1.
"""

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is there yet: end at once, an import could swallow the exception

import argparse  # noqa: E402
import contextlib  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import pathlib  # noqa: E402
import shlex  # noqa: E402
import shutil  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402

import money_parts  # noqa: E402
import servers  # noqa: E402
from payfact_stack import ACCOUNT_A, ACCOUNT_B, CALLER, MERCHANT, Servers, Stack, build_dir, new_payment_id, wait_for  # noqa: E402
from story import answers, attempt, created, earlier_event, history, hold_callbacks  # noqa: E402
from telling import Stopped, Teller, Wrong, compare, must  # noqa: E402

# Kafka waits for a member that died until its session ends: six seconds are the least that a broker takes.
# A PSP that never answers is one of the parts: its account is to be called by the next one all the same.
SETTINGS = {"processor": {"SESSION_TIMEOUT_MS": 6000}, "psp": {"BREAKER_FAILURES": 1000}}
SLOW_S = 86400  # PSP B's account is never asked by itself: in --keep its payment waits for your callback


def answer_signals():
    def stop(number, frame):
        Stopped.by = number
        for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(other, signal.SIG_IGN)  # the way out is short and must be gone to its end
        raise Stopped(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)


# ---- one payment, and what goes wrong with it


def pay(stack, payment, **options):
    stack.pay(2599, "EUR", payment_id=payment, **options)


def part_success(teller, stack):
    teller.title("A payment succeeds")
    payment = new_payment_id()
    teller.step(f"the shop signs CREATE_PAYMENT for 25.99 EUR and puts it on Kafka: payment {payment}")
    pay(stack, payment)
    event = stack.wait_event(payment, "PaymentSucceeded")
    teller.step("payfact called the PSP once; its answer and three signed callbacks tell of the same success")
    teller.step(f"downstream reads one fact: {event['event_id']}")
    must(len(created(stack, attempt(payment))) == 1, "the PSP was asked more than once")
    compare(teller, stack, payment)


def part_timeout(teller, stack):
    teller.title("The PSP takes the money and does not answer")
    payment = new_payment_id()
    order = attempt(payment)
    hold_callbacks(stack, order)
    stack.psp.script({"order": order, "operation": "create", "do": ["succeed", "charge_then_timeout"], "times": 1})
    pay(stack, payment)
    stack.wait_attempt(order, "UNKNOWN")
    teller.step("the call timed out: the attempt is UNKNOWN, which is not FAILED; nobody charges again")
    stack.wait_attempt(order, "SUCCEEDED")
    first, *more = created(stack, order)
    must(first["executed"] and more and all(r["replayed"] for r in more), "the PSP executed a second request")
    teller.step("recovery repeated the identical request under the same key; the PSP replayed its first answer: SUCCEEDED")
    late = earlier_event(stack, ACCOUNT_A, order, "payment_intent.processing", "processing")
    must(answers(stack.psp.callback(account=ACCOUNT_A, event=late)) == [200], "the late callback was not accepted")
    rows = wait_for(
        "the late callback is decided", lambda: history(stack, payment, event_type="PRC", aggregate="ATTEMPT", source="WEBHOOK")
    )
    must(rows[0]["verdict"] == "IGNORE", "the late callback moved the payment")
    teller.step('a late "processing" callback arrives, rightly signed: recorded, ignored as stale')
    stack.psp.release(order=order)
    compare(teller, stack, payment)


def part_copies(teller, stack):
    teller.title("The success callback comes five times, at once and out of order")
    payment = new_payment_id()
    order = attempt(payment)
    stack.psp.script({"order": order, "operation": "create", "do": "processing", "times": 1})
    pay(stack, payment)
    stack.wait_attempt(order, "PROCESSING")
    teller.step('the PSP answered "processing"')
    hold_callbacks(stack, order)
    stack.psp.advance(account=ACCOUNT_A, order=order, to="succeeded")
    sent = stack.psp.callback(account=ACCOUNT_A, order=order, type="payment_intent.succeeded", copies=5)
    must(answers(sent) == [200] * 5, f"the five copies were answered {answers(sent)}")
    stack.wait_event(payment, "PaymentSucceeded")
    stack.psp.release(order=order, newest_first=True)
    stack.idle()
    teller.step("five copies in the same moment, then the earlier callbacks, newest first: each was answered 200")
    applied = history(stack, payment, event_type="SUC", verdict="APPLY", aggregate="ATTEMPT")
    published = stack.consume_events(payment, "PaymentSucceeded")
    must(len(applied) == 1 and len(published) == 1, f"{len(applied)} facts, {len(published)} events")
    teller.step("one fact in the database, one event published")
    compare(teller, stack, payment)


def part_blocked(teller, stack):
    teller.title("PSP A is UNKNOWN, and upstream asks for PSP B")
    payment = new_payment_id()
    order = attempt(payment)
    hold_callbacks(stack, order)
    silent = stack.psp.script({"order": order, "do": "charge_then_timeout"})[0]
    pay(stack, payment, accounts=(ACCOUNT_A, ACCOUNT_B))
    stack.wait_attempt(order, "UNKNOWN")
    teller.step("A has charged and stays silent, to queries too: UNKNOWN")
    stack.send_command("START_ATTEMPT", payment, "--route", f"stripe/{ACCOUNT_B}/card", "--instrument", "pm_card_visa")
    event = stack.wait_event(payment, "CommandRejected")
    must(event["reason_code"] == "ATTEMPT_UNKNOWN", f"refused with {event['reason_code']}")
    teller.step(f"upstream sends START_ATTEMPT on B: CommandRejected, {event['reason_code']}")
    must(stack.psp.requests(account=ACCOUNT_B) == [], "B was called")
    teller.step("B was not called: no second charge is possible while the first may have happened")
    stack.psp.control("DELETE", "script", id=silent)
    stack.wait_attempt(order, "SUCCEEDED")
    stack.psp.release(order=order)
    teller.step("A answers again: the attempt converges to what really happened, SUCCEEDED")
    compare(teller, stack, payment)
    must(stack.ledger(account=ACCOUNT_B) == [], "B took money")


def die_at(stack, name, point):
    """Start a service anew so that it kills itself (SIGKILL) when it comes to this point of its work."""
    service = stack.service(name)
    service.stop()
    service.env["PAYFACT_FAULT"] = point
    service.start()
    return service


def part_crash(teller, stack):
    teller.title("The processor dies after COMMIT, the publisher after delivery")
    payment = new_payment_id()
    order = attempt(payment)
    stack.psp.script({"order": order, "operation": "create", "do": "processing", "times": 1})
    pay(stack, payment)
    stack.wait_attempt(order, "PROCESSING")
    hold_callbacks(stack, order)
    stack.idle()
    before = len(stack.consume_events(payment))
    dying = [die_at(stack, "processor", "after_commit_before_offset"), die_at(stack, "publisher", "after_delivery_before_delete")]
    teller.step("both are to be killed (SIGKILL) at the worst moment: the fact is committed, Kafka is not told that it was read;")
    teller.step("the event is delivered, the outbox does not know it yet")
    stack.psp.advance(account=ACCOUNT_A, order=order, to="succeeded")
    sent = stack.psp.callback(account=ACCOUNT_A, order=order, type="payment_intent.succeeded")
    must(answers(sent) == [200], f"the callback was answered {answers(sent)}")
    for service in dying:
        wait_for(f"the {service.name} died", lambda s=service: not s.alive())
        must(service.was_killed_at_its_point(), f"the {service.name} ended in another way")
    (row,) = stack.sql("SELECT status FROM payment_attempt WHERE attempt_id = %s", order)
    left = stack.sql("SELECT count(*) AS n FROM payment_outbox")[0]["n"]
    teller.step(f"both are dead; in the database the attempt is {row['status']}, {left} delivered event(s) wait in the outbox")
    for service in dying:
        service.env.pop("PAYFACT_FAULT")
        service.start()
    stack.psp.release(order=order)
    stack.idle()
    events = stack.consume_events(payment)[before:]
    copies = [e for e in events if e["type"] == "PaymentSucceeded"]
    applied = history(stack, payment, event_type="SUC", verdict="APPLY", aggregate="ATTEMPT")
    must(len(applied) == 1, f"{len(applied)} facts")
    must(len(copies) >= 2 and len({(e["event_id"], e["sequence"]) for e in copies}) == 1, "the copies differ, or there is one only")
    teller.step("started again: the processor reads the callback again and finds it decided; the publisher delivers the event again")
    teller.step(f"on the topic: {len(copies)} copies of PaymentSucceeded, one event id, one number; a consumer counts one fact")
    compare(teller, stack, payment)


PARTS = (part_success, part_timeout, part_copies, part_blocked, part_crash, *money_parts.PARTS)


# ---- --keep


def waiting_payment(stack):
    """A payment at B that the PSP has charged and not told of: its callback is yours to send."""
    payment = new_payment_id()
    order = attempt(payment)
    hold_callbacks(stack, order)
    stack.psp.script({"order": order, "operation": "create", "do": "processing", "times": 1})
    pay(stack, payment, accounts=(ACCOUNT_B,))
    stack.wait_attempt(order, "PROCESSING")
    stack.psp.advance(account=ACCOUNT_B, order=order, to="succeeded")
    event = earlier_event(stack, ACCOUNT_B, order, "payment_intent.succeeded", "succeeded")
    path = stack.dir / "callback.json"
    path.write_text(json.dumps(event, indent=2))
    return payment, path


def curl_call(stack, path):
    """Signs when it is pasted: Stripe's signature is good for five minutes only."""
    secret, body = shlex.quote(str(stack.dir / "secrets" / f"{ACCOUNT_B}.webhook_secret")), shlex.quote(str(path))
    url = f"http://127.0.0.1:{stack.http_port}/callbacks/{ACCOUNT_B}"
    return (
        f't=$(date +%s); v1=$({{ printf "%s." $t; cat {body}; }} | openssl dgst -sha256 -hmac "$(cat {secret})" -r | '
        f'cut -c1-64); curl -i {url} -H "Content-Type: application/json" -H "Stripe-Signature: t=$t,v1=$v1" '
        f"--data-binary @{body}"
    )


def ctl_call(stack, *arguments):
    settings = stack.ctl_environment()
    words = [*(f"{name}={shlex.quote(value)}" for name, value in settings.items()), str(build_dir() / "bin" / "payfactctl")]
    return " ".join([*words, *(shlex.quote(str(a)) for a in arguments)])


def keep(teller, stack):
    payment, path = waiting_payment(stack)
    signer = stack.signers[CALLER]
    teller.line()
    teller.line("Everything keeps running. In another terminal:", "1;36")
    teller.line(f"\n  Payment {payment} is PROCESSING; the PSP has charged it, its callback is yours to send (signed now):\n")
    teller.line(curl_call(stack, path))
    teller.line("\n  What payfact made of it:\n")
    teller.line(ctl_call(stack, "explain", payment))
    teller.line("\n  A new payment, as a signed command on Kafka:\n")
    teller.line(
        ctl_call(stack, "send", "CREATE_PAYMENT", "--caller", CALLER, "--key", signer.key_id, "--key-file", signer.private,
                 "--merchant", MERCHANT, "--payment", "new", "--order-no", "MY-ORDER-1", "--amount", 2599, "--currency", "EUR",
                 "--route", f"stripe/{ACCOUNT_A}/card", "--instrument", "pm_card_visa", "--wait-answer", 10)
    )  # fmt: skip
    teller.line(f"\n  Logs, accounts.json and secrets: {stack.dir}")
    teller.line("\nCtrl-C here ends every process and removes the folder.", "1")
    threading.Event().wait()


# ---- all of it


def demo_accounts(document):
    """Quick tempers, so that the story takes seconds where production takes minutes."""
    money_parts.merchant_of_the_demo(document["merchants"][0])
    for account in document["psp_accounts"]:
        account["timeouts_ms"] = {"connect": 500, "total": 1000}
        if account["id"] == ACCOUNT_B:
            account["unknown"].update(answer_s=SLOW_S, query_first_s=1, query_max_s=SLOW_S, person_after_s=SLOW_S)


def tell(options, teller):
    with contextlib.ExitStack() as stop:
        teller.line()
        teller.line("Starting PostgreSQL, Redis, the broker, the PSP simulator and payfact's four programs ...", "1;36")
        running = stop.enter_context(Servers())
        broker = "mock" if options.kafka == "mock" else "apache"
        stack = stop.enter_context(Stack(running, broker=broker, edit=demo_accounts, settings=SETTINGS))
        stack.start()
        teller.step(f"all are ready; logs in {pathlib.Path(stack.dir, 'log')}")
        for part in PARTS:
            part(teller, stack)
        teller.line()
        teller.line(f"All {len(PARTS)} parts ended as they must, in {time.monotonic() - teller.started:.0f} s.", "1;32")
        if options.keep:
            keep(teller, stack)


@contextlib.contextmanager
def own_folder():
    """Everything temporary, down to the shortest-lived file, lies in one folder, which goes away with the demo."""
    with servers.signals_held():
        folder = tempfile.mkdtemp(prefix="payfact-demo.")
        answer_signals()
    try:
        os.chmod(folder, 0o711)  # the user postgres passes through it
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        shutil.rmtree(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kafka", choices=("mock", "apache"), default="mock")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    servers.WORK_PREFIX = "payfact-demo."
    teller = Teller()
    try:
        with own_folder():
            tell(options, teller)
    except BaseException as error:  # a library in C may turn Stopped into an error of its own
        if not Stopped.by:
            if not isinstance(error, (Wrong, AssertionError)):
                raise
            teller.bad(str(error))
            return 1
        Stopped.told = True
        teller.line()
        teller.line("Stopped: every process has ended, the folder is gone.")
        return 0 if options.keep and teller.part == len(PARTS) else 128 + Stopped.by
    return 0


if __name__ == "__main__":
    sys.exit(main())
