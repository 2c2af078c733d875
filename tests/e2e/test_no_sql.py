# SPDX-License-Identifier: Apache-2.0
"""No SQL as a service's role changes a final state or an amount: every column that holds one, every role, on a payment that
was paid, given back in part by two people's word, and disputed; also what the words were, the history and the audit."""

import itertools

import psycopg2
import pytest

from payfact_stack import ACCOUNT_A, OPERATORS, wait_for
from story import attempt
from test_c_refunds import amounts, capture, paid, refund, wait_refund
from test_two_people import ask_for_refund, word

ROLES = ("payfact_webhook", "payfact_psp", "payfact_processor", "payfact_shadow", "payfact_recovery", "payfact_publisher",
         "payfact_operator")  # fmt: skip

# Table -> columns that say who, how much, how it ended; None: all of them, and no row may come either.
PROTECTED = {
    "payment_order": ("payment_id", "merchant_id", "merchant_order_no", "amount_minor", "currency", "capture_mode", "status"),
    "payment_attempt": ("attempt_id", "payment_id", "psp", "psp_account", "merchant_request_no", "amount_minor", "currency", "status"),
    "payment_amount": ("attempt_id", "payment_id", "currency", "authorized_minor", "capture_reserved_minor", "captured_minor",
                       "refund_reserved_minor", "refunded_minor", "withdrawn_minor"),
    "capture_order": ("capture_id", "attempt_id", "payment_id", "merchant_id", "idempotency_key", "amount_minor", "currency", "status", "origin"),
    "refund_order": ("refund_id", "attempt_id", "payment_id", "merchant_id", "idempotency_key", "amount_minor", "currency", "status", "origin"),
    "dispute": ("dispute_id", "attempt_id", "payment_id", "amount_minor", "withdrawn_minor", "status"),
    "payment_state_history": None,
    "approval_request": None,
    "approval": None,
    "audit_log": None,
    "attempt_reference": None,
}  # fmt: skip

# Other values that the column would take.
STATUS = {
    "payment_order": ("FAILED", "SUCCEEDED", "CANCELED", "EXPIRED", "PROCESSING"),
    "payment_attempt": ("FAILED", "SUCCEEDED", "CANCELED", "PROCESSING"),
    "capture_order": ("FAILED", "SUCCEEDED", "REVERSED", "PROCESSING"),
    "refund_order": ("FAILED", "SUCCEEDED", "REVERSED", "CREATED"),
    "dispute": ("WON", "LOST", "OPENED"),
    "approval_request": ("PENDING", "APPROVED", "DECLINED"),
}


def values_of(table, column, kind):
    if column == "status":
        return [f"'{status}'" for status in STATUS[table]]
    if kind in ("bigint", "integer", "smallint"):
        return [f"{column} + 1", f"{column} - 1", "0", "1"]
    if kind == "boolean":
        return [f"NOT {column}"]
    if kind == "bytea":
        return [f"sha256({column} || 'x')"]
    if kind.startswith("timestamp"):
        return [f"{column} + interval '1 day'"]
    return [f"{column} || 'X'", "'USD'", "'PSP'"] if kind == "text" else []


def statements(stack):
    """Everything that would change a protected column, a row at a time and all at once, and ways around the guards."""
    for table, columns in PROTECTED.items():
        kinds = stack.sql("SELECT a.attname AS name, format_type(coalesce(nullif(t.typbasetype, 0), a.atttypid), NULL) AS kind "
                          "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE attrelid = %s::regclass AND attnum > 0 "
                          "AND NOT attisdropped", table)  # fmt: skip
        for row in kinds:
            if columns is None or row["name"] in columns:
                for value in values_of(table, row["name"], row["kind"]):
                    yield f"UPDATE {table} SET {row['name']} = {value} WHERE {row['name']} IS DISTINCT FROM {value}"
        yield f"DELETE FROM {table}"
        yield f"TRUNCATE {table} CASCADE"
        yield f"ALTER TABLE {table} DISABLE TRIGGER ALL"
        yield f"DROP TABLE {table} CASCADE"
    # Several columns at once, so that no CHECK is in the way.
    yield "UPDATE payment_amount SET authorized_minor = 20000, captured_minor = 20000"
    yield "UPDATE payment_amount SET refunded_minor = 0, refund_reserved_minor = 0, withdrawn_minor = 0"
    yield "UPDATE payment_amount SET authorized_minor = 0, captured_minor = 0, refunded_minor = 0, withdrawn_minor = 0"
    yield "UPDATE payment_order SET status = 'FAILED', version = version + 1, updated_at = now()"
    yield "UPDATE payment_attempt SET status = 'FAILED', live = false, version = version + 1"
    yield "UPDATE payment_attempt SET status = 'UNKNOWN', unknown_since = now(), version = version + 1"
    yield "UPDATE refund_order SET status = 'UNKNOWN', unknown_since = now()"
    yield "SET session_replication_role = replica; UPDATE payment_order SET status = 'FAILED'"
    yield "SET CONSTRAINTS ALL IMMEDIATE; UPDATE payment_order SET status = 'FAILED'"
    yield "RESET ROLE; SET ROLE payfact_processor; UPDATE payment_order SET status = 'FAILED'"
    yield "CREATE OR REPLACE FUNCTION refuse_undecided() RETURNS trigger LANGUAGE sql AS 'SELECT NULL'"
    yield "DROP TRIGGER payment_order_final ON payment_order"


def protected(stack):
    rows = {}
    for table, columns in PROTECTED.items():
        rows[table] = stack.sql(f"SELECT {', '.join(columns) if columns else '*'} FROM {table} ORDER BY {'1, 2' if columns else '1, 2, 3'}")
    return rows


def threshold(document):
    merchant = document["merchants"][0]
    merchant["refund_threshold_minor"] = {"EUR": {"per_payment": 2000, "per_day": 1000000}}
    merchant["manual_capture"] = True


def try_all(stack, roles, tries):
    """(role, statement) of what went through; each is a transaction of its own, committed."""
    base = psycopg2.extensions.parse_dsn(stack.servers.pg_conninfo)
    base.update(dbname=stack.database, options="-c search_path=payfact")
    through = []
    for role in roles:
        login = f"no_sql_{role}"
        stack.servers.admin(f"DO $$ BEGIN CREATE ROLE {login} LOGIN IN ROLE {role}; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        connection = psycopg2.connect(psycopg2.extensions.make_dsn(**{**base, "user": login}))
        try:
            for statement in tries:
                try:
                    with connection, connection.cursor() as cursor:
                        cursor.execute(statement)
                        count = cursor.rowcount
                    if count != 0:
                        through.append((role, statement))
                except psycopg2.Error:
                    continue
        finally:
            connection.close()
    return through


@pytest.mark.redis_irrelevant
@pytest.mark.stack(edit=threshold)
def test_no_sql_as_a_service_role_changes_a_final_state_or_an_amount(stack):
    payment = paid(stack)
    refund(stack, payment, 1500)
    wait_refund(stack, payment + "R01", "SUCCEEDED")
    asked = ask_for_refund(stack, payment, 3000)
    for who in OPERATORS[:2]:
        assert word(stack, "approve", asked, who)[0] == "ACCEPTED"
    wait_refund(stack, payment + "R02", "SUCCEEDED")
    dispute = stack.psp.dispute(account=ACCOUNT_A, order=attempt(payment), amount=2000, reason="fraudulent")
    wait_for("it is withdrawn", lambda: amounts(stack, payment).get("withdrawn") == 2000)
    stack.psp.advance(account=ACCOUNT_A, dispute=dispute["id"], to="lost")
    stack.wait_event(payment, "DisputeClosed")
    held = stack.pay(5000, "EUR", capture_mode="MANUAL")
    stack.wait_attempt(attempt(held), "AUTHORIZED")
    capture(stack, held, 2000)
    stack.wait_event(held, "PaymentSucceeded")
    failed = stack.pay(700, "EUR", instruments=["pm_card_chargeDeclined"])
    stack.wait_event(failed, "PaymentFailed")
    stack.idle()
    stack.stop("processor", "publisher", "recovery", "psp")
    tries, before = list(statements(stack)), protected(stack)
    assert all(before.values()), "each table has something to lose"
    assert len(tries) > 150
    through = try_all(stack, ROLES, tries)
    after = protected(stack)
    for table in PROTECTED:
        assert after[table] == before[table], (table, [t for t in through if table in t[1]])
    assert not through, through
    # Each was one that changes something: the owner's hand goes through, but for what nobody may.
    assert by_the_owner(stack, tries) > 60
    stack.start("processor", "publisher", "recovery", "psp")


def by_the_owner(stack, tries):
    """How many of the changes the installer could make; each is taken back."""
    base = psycopg2.extensions.parse_dsn(stack.servers.pg_conninfo)
    base.update(dbname=stack.database, options="-c search_path=payfact")
    connection = psycopg2.connect(psycopg2.extensions.make_dsn(**base))
    changed = 0
    try:
        for statement in itertools.filterfalse(lambda s: s.startswith(("DROP", "TRUNCATE")), tries):
            try:
                with connection.cursor() as cursor:
                    cursor.execute(statement)
                    changed += cursor.rowcount > 0
            except psycopg2.Error:
                pass
            connection.rollback()
    finally:
        connection.close()
    return changed
