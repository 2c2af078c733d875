/* SPDX-License-Identifier: Apache-2.0 */
/* Captures, refunds, disputes and approvals in a real database: what is written is what is read,
 * and what no service's role may do by SQL, whatever its code tries. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/store/approval.h"
#include "common/store/attempt.h"
#include "common/store/money.h"
#include "common/store/order.h"
#include "common/store/snapshot.h"
#include "tests/support/teststore.h"

#define P "01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define Q "01BX5ZZKBKACTAV9WEVGEMMVRZ"
#define A P "A01"
#define DEADLINE_US (INT64_C(30) * 1000000)

struct world {
    struct pay_testdb db;
    struct pay_store *store;
    struct pay_arena *arena;
    struct pay_err err;
};

static void must(struct world *world, enum pay_status status)
{
    if (status != PAY_OK) {
        fail_msg("%s: %s: %s", pay_status_name(status), world->err.op, world->err.text);
    }
}

static const char payments[] =
    "INSERT INTO payfact.payment_order (payment_id, merchant_id, merchant_order_no, amount_minor,"
    " currency, capture_mode, status, failover_until, expires_at, created_by, created_at,"
    " updated_at, attempt_count) SELECT u.p, 'acme', u.p, 100, 'EUR', 'MANUAL', 'SUCCEEDED',"
    " now(), now(), 'shop', now(), now(), 1 FROM unnest(ARRAY['" P "', '" Q "']) AS u(p);"
    "INSERT INTO payfact.payment_attempt (attempt_id, payment_id, attempt_no, route_no, psp,"
    " psp_account, method, merchant_request_no, amount_minor, currency, status,"
    " result_certainty, created_at, updated_at) SELECT u.p || 'A01', u.p, 1, 0, 'stripe',"
    " 'stripe-acme', 'card', u.p || 'A01', 100, 'EUR', 'SUCCEEDED', 3, now(), now()"
    " FROM unnest(ARRAY['" P "', '" Q "']) AS u(p);"
    "INSERT INTO payfact.payment_amount (attempt_id, payment_id, currency, authorized_minor,"
    " captured_minor, updated_at) SELECT u.p || 'A01', u.p, 'EUR', 100, 100, now()"
    " FROM unnest(ARRAY['" P "', '" Q "']) AS u(p)";

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    *state = world;
    pay_testdb_open(&world->db);
    pay_testdb_run(&world->db, payments);
    world->arena = pay_arena_new((size_t)16 << 20);
    world->store = pay_teststore_open(&world->db, NULL);
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    world->store = pay_store_free(world->store);
    world->arena = pay_arena_free(world->arena);
    pay_testdb_close(&world->db);
    free(world);
    return 0;
}

static void commit(struct world *world)
{
    must(world, pay_store_flush(world->store, &world->err));
    must(world, pay_store_commit(world->store, &world->err));
}

/* As decisions do: the order tells that there is something to load. */
static void count_actions(struct world *world, const char *payment_id)
{
    char sql[256];
    (void)snprintf(sql, sizeof(sql),
                   "UPDATE payfact.payment_order SET capture_count = 1, refund_count = 1,"
                   " dispute_count = 1 WHERE payment_id = '%s'",
                   payment_id);
    pay_testdb_run(&world->db, sql);
}

/* ---- what is written is what is read ---- */

static struct pay_store_action_row action_of(const char *action_id, int64_t amount)
{
    struct pay_store_action_row row = {
        .action = {.number = 1,
                   .amount = {.amount_minor = amount, .currency = "EUR"},
                   .is_final = true,
                   .status = PAY_MONEY_UNKNOWN,
                   .result_certainty = PAY_EVIDENCE_SYNC_RESPONSE,
                   .provider_reference = "re_1",
                   .origin = PAY_ORIGIN_MERCHANT,
                   .reason_code = "REQUESTED_BY_CUSTOMER",
                   .last_accepted_event_id = "key",
                   .query_count = 3,
                   .not_found_count = 2,
                   .not_found_from_us = INT64_C(1700000000000001),
                   .unknown_since_us = INT64_C(1700000000000002),
                   .retry_at_us = INT64_C(1700000000000003),
                   .give_up_at_us = INT64_C(1700000000000004),
                   .failure_class = PAY_FAILURE_OTHER,
                   .failure_code = "code"},
        .attempt_id = A,
        .merchant_id = "acme",
    };
    (void)pay_str_copy(row.action.action_id, sizeof(row.action.action_id), pay_str_of(action_id));
    (void)pay_str_copy(row.action.idempotency_key, sizeof(row.action.idempotency_key),
                       pay_str_of(action_id));
    return row;
}

static enum pay_status add(struct world *world, enum pay_money_kind kind, const char *action_id,
                           int64_t amount)
{
    const struct pay_store_action_row row = action_of(action_id, amount);
    const struct pay_store_action_row *rows[] = {&row};
    return pay_store_action_add(world->store, kind, rows, 1, &world->err);
}

static struct pay_snapshot *load_wanted(struct world *world, struct pay_store_load *wanted)
{
    struct pay_snapshot *snapshot = pay_arena_alloc(world->arena, sizeof(*snapshot));
    (void)pay_str_copy(snapshot->order.payment_id, sizeof(snapshot->order.payment_id), PAY_STR(P));
    struct pay_snapshot *const snapshots[] = {snapshot};
    wanted->snapshots = snapshots;
    wanted->count = 1;
    if (wanted->day_count > 0) {
        wanted->days = snapshots;
    }
    must(world, pay_store_snapshot_load(world->store, world->arena, wanted, &world->err));
    wanted->snapshots = NULL;
    wanted->days = NULL;
    return snapshot;
}

static struct pay_snapshot *load(struct world *world)
{
    struct pay_store_load wanted = {.count = 0};
    return load_wanted(world, &wanted);
}

static void expect_same(const struct pay_money_action *read, const struct pay_money_action *written)
{
    struct pay_money_action same = *read;
    assert_true(same.created_at_us > 0 && same.changed_at_us >= same.created_at_us);
    assert_int_equal(same.version, 1);
    same.created_at_us = same.changed_at_us = 0;
    same.version = 0;
    assert_memory_equal(&same, written, sizeof(same));
}

static void captures_and_refunds_come_back_as_they_were_written(void **state)
{
    struct world *world = *state;
    count_actions(world, P);
    must(world, pay_store_begin(world->store, &world->err));
    must(world, add(world, PAY_MONEY_CAPTURE, P "C01", 60));
    must(world, add(world, PAY_MONEY_REFUND, P "R01", 30));
    must(world, add(world, PAY_MONEY_REFUND, P "R02", 20));
    commit(world);
    const struct pay_snapshot *snapshot = load(world);
    assert_true(snapshot->keeps_actions);
    assert_int_equal(snapshot->capture_count, 1);
    assert_int_equal(snapshot->refund_count, 2);
    const struct pay_store_action_row capture = action_of(P "C01", 60);
    struct pay_store_action_row refund = action_of(P "R02", 20);
    refund.action.number = 2;
    expect_same(&snapshot->captures[0], &capture.action);
    expect_same(&snapshot->refunds[1], &refund.action);
    /* Room for what a decision may append. */
    assert_true(snapshot->capture_cap > 1 && snapshot->refund_cap > 2 && snapshot->dispute_cap > 0);
    assert_true(snapshot->request_cap > 0 && snapshot->approval_cap > 0);
}

/* Of two payments in one load, the second has one; the first has room for its own. */
static void a_payment_without_actions_is_loaded_beside_one_that_has_some(void **state)
{
    struct world *world = *state;
    struct pay_snapshot one = {.order = {.payment_id = P}};
    struct pay_snapshot two = {.order = {.payment_id = Q}};
    struct pay_snapshot *const snapshots[] = {&one, &two};
    struct pay_store_load wanted = {.snapshots = snapshots, .count = 2, .request_count = 7};
    struct pay_store_action_row row = action_of(Q "R01", 40);
    row.attempt_id = Q "A01";
    const struct pay_store_action_row *rows[] = {&row};
    must(world, pay_store_begin(world->store, &world->err));
    must(world, pay_store_action_add(world->store, PAY_MONEY_REFUND, rows, 1, &world->err));
    commit(world);
    count_actions(world, Q);
    must(world, pay_store_snapshot_load(world->store, world->arena, &wanted, &world->err));
    assert_true(one.order.exists && two.order.exists);
    assert_int_equal(one.refund_count, 0);
    assert_int_equal(two.refund_count, 1);
    assert_int_equal(two.refunds[0].amount.amount_minor, 40);
    assert_int_equal(wanted.request_count, 0);
    assert_true(wanted.now_us > 0);
    const struct pay_snapshot *each[] = {&one, &two};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(each[i]->attempt_count, 1);
        assert_true(each[i]->capture_cap >= 1 && each[i]->dispute_cap >= 1);
        assert_true(each[i]->refund_cap >= each[i]->refund_count + 1);
        assert_true(each[i]->request_cap >= 1 && each[i]->approval_cap >= 1);
    }
}

static void *load_beside(void *arg)
{
    return load(arg);
}

/* Half of one state and half of the next would be decided on before any lock is asked for. */
static void a_payment_that_moves_while_it_is_read_is_read_again(void **state)
{
    struct world *world = *state;
    const int64_t until_us = pay_clock_mono_us() + DEADLINE_US;
    pthread_t thread;
    void *read = NULL;
    count_actions(world, P);
    must(world, pay_store_begin(world->store, &world->err));
    must(world, add(world, PAY_MONEY_CAPTURE, P "C01", 60));
    commit(world);
    pay_testdb_run(&world->db, "BEGIN; LOCK TABLE payfact.capture_order IN ACCESS EXCLUSIVE MODE");
    assert_int_equal(pthread_create(&thread, NULL, load_beside, world), 0);
    while (pay_testdb_number(&world->db, "SELECT count(*) FROM pg_locks WHERE NOT granted") == 0) {
        assert_true(pay_clock_mono_us() < until_us); /* It has read the order, and waits here. */
        (void)poll(NULL, 0, 5);
    }
    pay_testdb_run(&world->db, "UPDATE payfact.capture_order SET query_count = 9;"
                               " UPDATE payfact.payment_order SET version = version + 1; COMMIT");
    assert_int_equal(pthread_join(thread, &read), 0);
    const struct pay_snapshot *snapshot = read;
    assert_int_equal(snapshot->captures[0].query_count, 9);
    assert_int_equal(snapshot->order.version, 2);
}

static void a_changed_action_compares_its_own_version(void **state)
{
    struct world *world = *state;
    count_actions(world, P);
    must(world, pay_store_begin(world->store, &world->err));
    must(world, add(world, PAY_MONEY_REFUND, P "R01", 30));
    commit(world);
    struct pay_store_action_row row = action_of(P "R01", 30);
    const struct pay_store_action_row *rows[] = {&row};
    row.action.version = 1;
    row.action.status = PAY_MONEY_SUCCEEDED;
    row.action.unknown_since_us = 0;
    must(world, pay_store_begin(world->store, &world->err));
    must(world, pay_store_action_update(world->store, PAY_MONEY_REFUND, rows, 1, &world->err));
    commit(world);
    assert_int_equal(load(world)->refunds[0].version, 2);
    assert_int_equal(load(world)->refunds[0].status, PAY_MONEY_SUCCEEDED);
    /* On the version that it has not any more: a stray writer. */
    must(world, pay_store_begin(world->store, &world->err));
    must(world, pay_store_action_update(world->store, PAY_MONEY_REFUND, rows, 1, &world->err));
    assert_int_equal(pay_store_flush(world->store, &world->err), PAY_RETRY);
    assert_int_equal(world->err.code, PAY_STORE_COUNT);
    pay_store_rollback(world->store);
    /* Counted only: the version stays. */
    row.action.version = 2;
    row.action.query_count = 5;
    row.action.change = PAY_ROW_COUNTED;
    must(world, pay_store_begin(world->store, &world->err));
    must(world, pay_store_action_update(world->store, PAY_MONEY_REFUND, rows, 1, &world->err));
    commit(world);
    assert_int_equal(load(world)->refunds[0].query_count, 5);
    assert_int_equal(load(world)->refunds[0].version, 2);
}

static void a_dispute_comes_back_as_it_was_written(void **state)
{
    struct world *world = *state;
    count_actions(world, P);
    struct pay_store_dispute_row row = {
        .dispute = {.dispute_id = P "D01",
                    .number = 1,
                    .provider_reference = "du_1",
                    .amount = {.amount_minor = 100, .currency = "EUR"},
                    .status = PAY_DISPUTE_EVIDENCE_DUE,
                    .funds = PAY_FUNDS_WITHDRAWN,
                    .withdrawn_minor = 100,
                    .reason_code = "fraudulent",
                    .evidence_due_at_us = INT64_C(1700000000000005),
                    .result_certainty = PAY_EVIDENCE_WEBHOOK,
                    .last_accepted_event_id = "key"},
        .attempt_id = A,
        .psp = "stripe",
        .psp_account = "stripe-acme",
    };
    const struct pay_store_dispute_row *rows[] = {&row};
    must(world, pay_store_begin(world->store, &world->err));
    must(world, pay_store_dispute_add(world->store, rows, 1, &world->err));
    commit(world);
    struct pay_dispute read = load(world)->disputes[0];
    assert_int_equal(read.version, 1);
    read.version = read.created_at_us = 0;
    assert_memory_equal(&read, &row.dispute, sizeof(read));
    row.dispute.version = 1;
    row.dispute.status = PAY_DISPUTE_WON;
    row.dispute.funds = PAY_FUNDS_REINSTATED;
    row.dispute.withdrawn_minor = 0;
    must(world, pay_store_begin(world->store, &world->err));
    must(world, pay_store_dispute_update(world->store, rows, 1, &world->err));
    commit(world);
    read = load(world)->disputes[0];
    assert_int_equal(read.version, 2);
    assert_int_equal(read.status, PAY_DISPUTE_WON);
    assert_int_equal(read.funds, PAY_FUNDS_REINSTATED);
    assert_int_equal(read.withdrawn_minor, 0);
}

static enum pay_status add_to_day(struct world *world, int64_t added, int64_t limit)
{
    const struct pay_store_day_row row = {"acme", "EUR", added, limit};
    const struct pay_store_day_row *rows[] = {&row};
    must(world, pay_store_begin(world->store, &world->err));
    must(world, pay_store_day_add(world->store, rows, 1, &world->err));
    const enum pay_status status = pay_store_flush(world->store, &world->err);
    if (status == PAY_OK) {
        must(world, pay_store_commit(world->store, &world->err));
    } else {
        assert_int_equal(world->err.code, PAY_STORE_COUNT);
        pay_store_rollback(world->store);
    }
    return status;
}

static void a_merchants_day_is_never_raised_beyond_its_limit(void **state)
{
    struct world *world = *state;
    struct pay_store_load wanted = {.day_count = 1};
    assert_int_equal(load_wanted(world, &wanted)->refund_day.amount_minor, 0);
    assert_int_equal(add_to_day(world, 60, 100), PAY_OK);
    assert_int_equal(add_to_day(world, 41, 100), PAY_RETRY);
    assert_int_equal(load_wanted(world, &wanted)->refund_day.amount_minor, 60);
    assert_int_equal(add_to_day(world, 40, 100), PAY_OK);
    assert_int_equal(add_to_day(world, INT64_MAX, INT64_MAX), PAY_RETRY);
    assert_int_equal(load_wanted(world, &wanted)->refund_day.amount_minor, 100);
    assert_int_equal(load(world)->refund_day.amount_minor, 0); /* not asked for */
}

static void a_merchants_number_of_an_action_is_found_over_its_payments(void **state)
{
    struct world *world = *state;
    must(world, pay_store_begin(world->store, &world->err));
    must(world, add(world, PAY_MONEY_REFUND, P "R01", 30));
    commit(world);
    struct pay_store_key_ask asks[] = {
        {PAY_MONEY_REFUND, PAY_STR("acme"), PAY_STR(P "R01"), PAY_STR(Q), false},
        {PAY_MONEY_REFUND, PAY_STR("acme"), PAY_STR(P "R01"), PAY_STR(P), false},
        {PAY_MONEY_CAPTURE, PAY_STR("acme"), PAY_STR(P "R01"), PAY_STR(Q), false},
        {PAY_MONEY_REFUND, PAY_STR("globex"), PAY_STR(P "R01"), PAY_STR(Q), false},
    };
    struct pay_store_key_ask *const keys[] = {&asks[0], &asks[1], &asks[2], &asks[3]};
    struct pay_store_load wanted = {.keys = keys, .key_count = 4};
    (void)load_wanted(world, &wanted);
    assert_true(asks[0].taken);
    assert_false(asks[1].taken); /* its own payment's: a repeat, which the decision answers */
    assert_false(asks[2].taken);
    assert_false(asks[3].taken);
}

/* ---- requests and approvals ---- */

static const char request_sql[] =
    "INSERT INTO payfact.approval_request (request_id, payment_id, command_type, command,"
    " writer_fingerprint, sha256, aggregate_id, expected_version, reason_code, attachments,"
    " requested_by, status, expires_at, created_at) VALUES ('operator-1/c-1', '" P "',"
    " 'CORRECT_STATE', 'command', '\\x0102030405060708', sha256('command'), '" A "', 1,"
    " 'PSP_CONFIRMED', '[{\"reference\": \"mail-1\", \"sha256\": \"00\"}]', 'operator-1',"
    " 'PENDING', now() + interval '1 day', now())";

static void a_request_comes_back_with_its_bytes_and_its_words(void **state)
{
    struct world *world = *state;
    uint8_t digest[32];
    static const uint8_t print[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    pay_testdb_run(&world->db, request_sql);
    struct pay_store_load wanted = {.count = 0};
    struct pay_snapshot *snapshot = load_wanted(world, &wanted);
    assert_int_equal(wanted.request_count, 1);
    assert_ptr_equal(wanted.requests[0].snapshot, snapshot);
    assert_true(pay_bytes_eq(wanted.requests[0].command,
                             (struct pay_bytes){(const uint8_t *)"command", 7}));
    assert_true(pay_bytes_eq(wanted.requests[0].writer_fingerprint, (struct pay_bytes){print, 8}));
    const struct pay_approval_request *request = &snapshot->requests[0];
    assert_string_equal(request->request_id, "operator-1/c-1");
    assert_string_equal(request->requested_by, "operator-1");
    assert_string_equal(request->aggregate_id, A);
    assert_int_equal(request->status, PAY_REQUEST_PENDING);
    memcpy(digest, request->sha256, sizeof(digest));

    const struct pay_store_approval_row word = {
        .approval = {.principal = "operator-2", .approves = true, .command_id = "c-2"},
        .request_id = "operator-1/c-1",
        .requested_by = "operator-1",
        .sha256 = {digest, sizeof(digest)},
        .key_id = PAY_STR("operator-2-a"),
    };
    const struct pay_store_approval_row *words[] = {&word};
    struct pay_store_request_row end = {.request = *request};
    const struct pay_store_request_row *ends[] = {&end};
    end.request.status = PAY_REQUEST_APPROVED;
    must(world, pay_store_begin(world->store, &world->err));
    must(world, pay_store_approval_add(world->store, words, 1, &world->err));
    must(world, pay_store_request_update(world->store, ends, 1, &world->err));
    commit(world);
    /* It waits no more: read only where somebody names it. */
    assert_int_equal(load(world)->request_count, 0);
    const struct pay_str ids[] = {PAY_STR("operator-1/c-1")};
    wanted = (struct pay_store_load){.request_ids = ids, .request_id_count = 1};
    snapshot = load_wanted(world, &wanted);
    assert_int_equal(snapshot->request_count, 1);
    assert_int_equal(snapshot->requests[0].status, PAY_REQUEST_APPROVED);
    assert_int_equal(snapshot->approval_count, 1);
    assert_int_equal(snapshot->approvals[0].request_index, 0);
    assert_string_equal(snapshot->approvals[0].principal, "operator-2");
    assert_true(snapshot->approvals[0].approves);
    /* What has ended does not end again. */
    must(world, pay_store_begin(world->store, &world->err));
    must(world, pay_store_request_update(world->store, ends, 1, &world->err));
    assert_int_equal(pay_store_flush(world->store, &world->err), PAY_RETRY);
    pay_store_rollback(world->store);
}

/* ---- A3: what no role may do, even by SQL ---- */

#define REFUND(id_, key_, amount_, rest_)                                                        \
    "INSERT INTO payfact.refund_order (refund_id, attempt_id, payment_id, merchant_id,"          \
    " idempotency_key, amount_minor, currency, status, result_certainty, origin, give_up_at,"    \
    " created_at, updated_at) VALUES ('" id_ "', '" A "', '" P "', 'acme', '" key_ "', " amount_ \
    ", 'EUR', " rest_ ", now(), now(), now())"
#define CAPTURE(id_, key_, amount_, rest_)                                                       \
    "INSERT INTO payfact.capture_order (capture_id, attempt_id, payment_id, merchant_id,"        \
    " idempotency_key, amount_minor, currency, status, result_certainty, origin, give_up_at,"    \
    " created_at, updated_at) VALUES ('" id_ "', '" A "', '" P "', 'acme', '" key_ "', " amount_ \
    ", 'EUR', " rest_ ", now(), now(), now())"
#define DISPUTE(reference_, id_, rest_)                                                           \
    "INSERT INTO payfact.dispute (psp, psp_account, provider_reference, dispute_id, attempt_id,"  \
    " payment_id, amount_minor, currency, status, is_inquiry, withdrawn_minor, result_certainty," \
    " created_at, updated_at) VALUES ('stripe', 'stripe-acme', '" reference_ "', '" id_ "', '" A  \
    "', '" P "', " rest_ ", 3, now(), now())"
#define APPROVAL(principal_, by_, sha256_)                                                     \
    "INSERT INTO payfact.approval (request_id, principal, approves, requested_by, sha256,"     \
    " command_id, key_id, decided_at) VALUES ('operator-1/c-1', '" principal_ "', true, '" by_ \
    "', " sha256_ ", 'c', 'k', now())"
#define AMOUNTS(set_) "UPDATE payfact.payment_amount SET " set_ " WHERE attempt_id = '" A "'"

#define CHECK_STATE "23514"
#define UNIQUE_STATE "23505"
#define FOREIGN_STATE "23503"
#define RIGHT_STATE "42501"

/* The database's own word to the one role that has the right; who has none hears 42501. */
static const struct forbidden {
    const char *sql;
    const char *sqlstate;
} forbidden[] = {
    /* Amounts: no refund beyond what was captured, no capture beyond what was authorized. */
    {AMOUNTS("refunded_minor = 101"), CHECK_STATE},
    {AMOUNTS("refunded_minor = 60, refund_reserved_minor = 41"), CHECK_STATE},
    {AMOUNTS("refund_reserved_minor = -1"), CHECK_STATE},
    {AMOUNTS("captured_minor = 101"), CHECK_STATE},
    {AMOUNTS("capture_reserved_minor = 1"), CHECK_STATE},
    {AMOUNTS("captured_minor = -1, refunded_minor = -2"), CHECK_STATE},
    {AMOUNTS("withdrawn_minor = -1"), CHECK_STATE},
    {AMOUNTS("refund_sum_minor = -1"), CHECK_STATE},
    {"DELETE FROM payfact.payment_amount", RIGHT_STATE},
    /* Actions: of their payment and attempt, once per number of the merchant, in a known state. */
    {REFUND(P "R01", "used", "10", "'CREATED', 1, 'MERCHANT'"), UNIQUE_STATE},
    {REFUND(P "R02", "used", "10", "'CREATED', 1, 'MERCHANT'"), UNIQUE_STATE},
    {REFUND(P "R02", "k", "0", "'CREATED', 1, 'MERCHANT'"), CHECK_STATE},
    {REFUND(P "R02", "k", "-5", "'CREATED', 1, 'MERCHANT'"), CHECK_STATE},
    {REFUND(P "R02", "k", "10", "'DONE', 1, 'MERCHANT'"), CHECK_STATE},
    {REFUND(P "R02", "k", "10", "'UNKNOWN', 1, 'MERCHANT'"), CHECK_STATE}, /* since when? */
    {REFUND(P "R02", "k", "10", "'CREATED', 7, 'MERCHANT'"), CHECK_STATE},
    {REFUND(P "R02", "k", "10", "'CREATED', 1, 'POLICY'"), CHECK_STATE},
    {REFUND(P "C02", "k", "10", "'CREATED', 1, 'MERCHANT'"), CHECK_STATE},
    {REFUND(Q "R01", "k", "10", "'CREATED', 1, 'MERCHANT'"), CHECK_STATE}, /* another payment's */
    {REFUND("R-2", "k", "10", "'CREATED', 1, 'MERCHANT'"), CHECK_STATE},
    {CAPTURE(P "C01", "used", "10", "'CREATED', 1, 'MERCHANT'"), UNIQUE_STATE},
    {CAPTURE(P "C02", "used", "10", "'CREATED', 1, 'MERCHANT'"), UNIQUE_STATE},
    {CAPTURE(P "C02", "k", "0", "'CREATED', 1, 'MERCHANT'"), CHECK_STATE},
    {CAPTURE(P "C02", "k", "10", "'CREATED', 1, 'OPERATOR'"), CHECK_STATE},
    {CAPTURE(P "R02", "k", "10", "'CREATED', 1, 'MERCHANT'"), CHECK_STATE},
    {CAPTURE(Q "C01", "k", "10", "'CREATED', 1, 'MERCHANT'"), CHECK_STATE},
    {"UPDATE payfact.refund_order SET version = 0", CHECK_STATE},
    {"UPDATE payfact.refund_order SET attempt_id = '" Q "A01'", RIGHT_STATE},
    {"DELETE FROM payfact.refund_order", RIGHT_STATE},
    {"DELETE FROM payfact.capture_order", RIGHT_STATE},
    {"UPDATE payfact.refund_day SET amount_minor = -1", CHECK_STATE},
    {"DELETE FROM payfact.refund_day", RIGHT_STATE},
    /* Disputes. */
    {DISPUTE("du_1", P "D02", "100, 'EUR', 'OPENED', false, 0"), UNIQUE_STATE},
    {DISPUTE("du_2", P "D01", "100, 'EUR', 'OPENED', false, 0"), UNIQUE_STATE},
    {DISPUTE("du_2", P "D02", "100, 'EUR', 'OPENED', true, 1"), CHECK_STATE}, /* an inquiry */
    {DISPUTE("du_2", P "D02", "100, 'EUR', 'OPENED', false, -1"), CHECK_STATE},
    {DISPUTE("du_2", P "D02", "100, 'EUR', 'ENDED', false, 0"), CHECK_STATE},
    {DISPUTE("du_2", Q "D01", "100, 'EUR', 'OPENED', false, 0"), CHECK_STATE},
    {"UPDATE payfact.dispute SET funds = 'GONE'", CHECK_STATE},
    {"DELETE FROM payfact.dispute", RIGHT_STATE},
    /* Two people. */
    {APPROVAL("operator-1", "operator-1", "sha256('command')"), CHECK_STATE}, /* his own */
    {APPROVAL("operator-1", "operator-9", "sha256('command')"), FOREIGN_STATE},
    {APPROVAL("operator-2", "operator-1", "sha256('command')"), UNIQUE_STATE}, /* twice */
    {APPROVAL("operator-3", "operator-1", "sha256('another command')"), FOREIGN_STATE},
    {"UPDATE payfact.approval SET approves = false", RIGHT_STATE},
    {"DELETE FROM payfact.approval", RIGHT_STATE},
    {"DELETE FROM payfact.approval_request", RIGHT_STATE},
    {"UPDATE payfact.approval_request SET command = 'other', sha256 = sha256('other')",
     RIGHT_STATE},
    {"UPDATE payfact.approval_request SET aggregate_id = '" Q "A01'", RIGHT_STATE},
    {"UPDATE payfact.approval_request SET requested_by = 'operator-9'", RIGHT_STATE},
    {"UPDATE payfact.approval_request SET expires_at = now() + interval '1 year'", RIGHT_STATE},
    {"UPDATE payfact.approval_request SET status = 'APPROVED'", CHECK_STATE}, /* decided when? */
    {"UPDATE payfact.approval_request SET status = 'DONE'", CHECK_STATE},
    {"INSERT INTO payfact.approval_request (request_id, payment_id, command_type, command,"
     " writer_fingerprint, sha256, aggregate_id, expected_version, reason_code, attachments,"
     " requested_by, status, expires_at, created_at) VALUES ('x/1', '" P "', 'CORRECT_STATE',"
     " 'command', '\\x0102030405060708', sha256('command'), '" A "', 1, 'x', '[]', 'x', 'PENDING',"
     " now(), now())",
     CHECK_STATE}, /* without evidence */
    {"INSERT INTO payfact.approval_request (request_id, payment_id, command_type, command,"
     " writer_fingerprint, sha256, aggregate_id, expected_version, reason_code, attachments,"
     " requested_by, status, expires_at, created_at) VALUES ('x/1', '" P "', 'CORRECT_STATE',"
     " 'command', '\\x0102030405060708', sha256('command'), '" A "', NULL, 'x', '[{}]', 'x',"
     " 'PENDING', now(), now())",
     CHECK_STATE}, /* of which version? */
    {"INSERT INTO payfact.approval_request (request_id, payment_id, command_type, command,"
     " writer_fingerprint, sha256, aggregate_id, expected_version, reason_code, attachments,"
     " requested_by, status, expires_at, created_at) VALUES ('x/1', '" P "', 'CORRECT_STATE',"
     " 'command', '\\x0102030405060708', sha256('another'), '" A "', 1, 'x', '[{}]', 'x',"
     " 'PENDING', now(), now())",
     CHECK_STATE}, /* the digest of other bytes */
    /* Cases: one open one of a kind; orders. */
    {"INSERT INTO payfact.manual_case (case_id, payment_id, kind, aggregate_id, case_no, status,"
     " evidence, opened_by, opened_at) VALUES ('" P ".OVER_REFUND.2', '" P "', 'OVER_REFUND', '" A
     "', 2, 'OPEN', '[]', 'x', now())",
     UNIQUE_STATE},
    {"UPDATE payfact.manual_case SET status = 'RESOLVED'", CHECK_STATE}, /* by whom? */
    {"DELETE FROM payfact.manual_case", RIGHT_STATE},
    {"UPDATE payfact.payment_order SET paid_attempt_no = 100", CHECK_STATE},
    {"UPDATE payfact.payment_order SET refund_count = 100", CHECK_STATE},
    {"UPDATE payfact.payment_order SET amount_minor = 1", RIGHT_STATE},
    {"INSERT INTO payfact.psp_request (job_id, payment_id, action_id, kind, digest, not_after)"
     " VALUES ('" P "A01.REFUND', '" P "', '" P "A01', 'REFUND', sha256('x'), now())",
     CHECK_STATE}, /* a refund's gate is of a refund */
    {"DELETE FROM payfact.psp_request", RIGHT_STATE},
    /* History and audit. */
    {"UPDATE payfact.payment_state_history SET to_status = 'SUCCEEDED'", RIGHT_STATE},
    {"DELETE FROM payfact.payment_state_history", RIGHT_STATE},
    {"TRUNCATE payfact.payment_state_history", RIGHT_STATE},
    {"UPDATE payfact.audit_log SET who = 'x'", RIGHT_STATE},
    {"DELETE FROM payfact.audit_log", RIGHT_STATE},
    {"TRUNCATE payfact.audit_log", RIGHT_STATE},
    {"DROP TRIGGER approval_append_only ON payfact.approval", RIGHT_STATE},
    {"ALTER TABLE payfact.payment_amount DROP CONSTRAINT payment_amount_refund_fits", RIGHT_STATE},
};

static const char rows_sql[] =
    "INSERT INTO payfact.audit_log (who, what, from_where) VALUES ('x', 'x', 'x');"
    "INSERT INTO payfact.payment_state_history (decided_at, payment_id, aggregate, aggregate_id,"
    " verdict, event_type, event_id, source, evidence_level, reason_code, version_before) VALUES"
    " (now(), '" P "', 'ORDER', '" P "', 'APPLY', 'x', 'x', 'LOCAL', 1, 'x', 0);"
    "INSERT INTO payfact.refund_day VALUES ('acme', '2026-01-01', 'EUR', 10);"
    "INSERT INTO payfact.manual_case (case_id, payment_id, kind, aggregate_id, case_no, status,"
    " evidence, opened_by, opened_at) VALUES ('" P ".OVER_REFUND.1', '" P "', 'OVER_REFUND', '" A
    "', 1, 'OPEN', '[]', 'x', now());" REFUND(P "R01", "used", "10", "'CREATED', 1, 'MERCHANT'") ";" CAPTURE(
        P "C01", "used", "10",
        "'CREATED', 1, 'MERCHANT'") ";" DISPUTE("du_1", P "D01",
                                                "100, 'EUR', 'OPENED', false, 0") ";" APPROVAL("ope"
                                                                                               "rat"
                                                                                               "or-"
                                                                                               "2",
                                                                                               "ope"
                                                                                               "rat"
                                                                                               "or-"
                                                                                               "1",
                                                                                               "sha"
                                                                                               "256"
                                                                                               "('"
                                                                                               "com"
                                                                                               "man"
                                                                                               "d'"
                                                                                               ")");

static const char *const roles[] = {
    "payfact_webhook",  "payfact_psp",       "payfact_processor", "payfact_shadow",
    "payfact_recovery", "payfact_publisher", "payfact_operator",
};

/* @return whether the role was stopped by a constraint, not by its lack of rights. */
static bool try_forbidden(struct world *world, const char *role, const struct forbidden *row)
{
    struct pay_pg *pg = world->db.owner;
    if (pay_pg_script(pg, row->sql, &world->err) == PAY_OK) {
        fail_msg("%s could: %s", role, row->sql);
    }
    const char *sqlstate = pay_pg_failure(pg)->sqlstate;
    const bool is_right = strcmp(sqlstate, RIGHT_STATE) == 0;
    if (!is_right && strcmp(sqlstate, row->sqlstate) != 0) {
        fail_msg("%s: %s instead of %s: %s", role, sqlstate, row->sqlstate, row->sql);
    }
    return !is_right;
}

static void A3_no_role_breaks_an_amount_an_approval_or_the_history_by_sql(void **state)
{
    struct world *world = *state;
    size_t by_constraint = 0, meant = 0;
    pay_testdb_run(&world->db, request_sql);
    pay_testdb_run(&world->db, rows_sql);
    for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
        meant += strcmp(forbidden[i].sqlstate, RIGHT_STATE) != 0 ? 1 : 0;
    }
    for (size_t r = 0; r < sizeof(roles) / sizeof(roles[0]); r++) {
        char sql[128];
        size_t stopped = 0;
        (void)snprintf(sql, sizeof(sql), "SET ROLE %s", roles[r]);
        pay_testdb_run(&world->db, sql);
        for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
            stopped += try_forbidden(world, roles[r], &forbidden[i]) ? 1 : 0;
        }
        pay_testdb_run(&world->db, "RESET ROLE");
        by_constraint += stopped;
        if (strcmp(roles[r], "payfact_processor") == 0) {
            assert_int_equal(stopped, meant); /* each of them by the database's own word */
        }
    }
    assert_int_equal(by_constraint, meant); /* and only one role comes that far */
}

/* The owner has every right, and the triggers say it again. */
static void approvals_stay_even_for_their_owner(void **state)
{
    struct world *world = *state;
    static const char *const tries[] = {
        "UPDATE payfact.approval SET approves = false",
        "DELETE FROM payfact.approval",
        "DELETE FROM payfact.approval_request",
        "UPDATE payfact.approval_request SET command = 'other', sha256 = sha256('other')",
    };
    pay_testdb_run(&world->db, request_sql);
    pay_testdb_run(&world->db, APPROVAL("operator-2", "operator-1", "sha256('command')"));
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        assert_int_not_equal(pay_pg_script(world->db.owner, tries[i], &world->err), PAY_OK);
        assert_string_equal(pay_pg_failure(world->db.owner)->sqlstate, RIGHT_STATE);
    }
    /* It ends once, and then not again. */
    pay_testdb_run(&world->db, "UPDATE payfact.approval_request SET status = 'DECLINED',"
                               " decided_at = now()");
    assert_int_not_equal(pay_pg_script(world->db.owner,
                                       "UPDATE payfact.approval_request SET status = 'APPROVED'",
                                       &world->err),
                         PAY_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f_) cmocka_unit_test_setup_teardown(f_, setup, teardown)
        TEST(captures_and_refunds_come_back_as_they_were_written),
        TEST(a_payment_without_actions_is_loaded_beside_one_that_has_some),
        TEST(a_payment_that_moves_while_it_is_read_is_read_again),
        TEST(a_changed_action_compares_its_own_version),
        TEST(a_dispute_comes_back_as_it_was_written),
        TEST(a_merchants_day_is_never_raised_beyond_its_limit),
        TEST(a_merchants_number_of_an_action_is_found_over_its_payments),
        TEST(a_request_comes_back_with_its_bytes_and_its_words),
        TEST(A3_no_role_breaks_an_amount_an_approval_or_the_history_by_sql),
        TEST(approvals_stay_even_for_their_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
