/* SPDX-License-Identifier: Apache-2.0 */
/* What an outage leaves behind, gate after gate of one action, in a real database: the payment is
 * read and decided on as if each of them were there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/core/decide.h"
#include "common/store/snapshot.h"
#include "tests/support/teststore.h"

#define P "01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define SECOND INT64_C(1000000)
#define GATES 1100
#define DAY "interval '1 day'"

struct world {
    struct pay_testdb db;
    struct pay_store *store;
    struct pay_arena *arena;
    struct pay_err err;
    struct pay_decision decision;
    int64_t now_us;
};

/* Paid with 100; the first of two refunds was never sent, the second one refused for now. */
static const char payment_sql[] =
    "INSERT INTO payfact.payment_order (payment_id, merchant_id, merchant_order_no, amount_minor,"
    " currency, capture_mode, status, failover_until, expires_at, created_by, created_at,"
    " updated_at, attempt_count, refund_count, paid_attempt_no) VALUES ('" P "', 'acme', '1', 100,"
    " 'EUR', 'AUTOMATIC', 'SUCCEEDED', now(), now(), 'shop', now(), now(), 1, 2, 1);"
    "INSERT INTO payfact.payment_route VALUES ('" P "', 0, 'stripe', 'stripe-acme', 'card', false);"
    "INSERT INTO payfact.payment_attempt (attempt_id, payment_id, attempt_no, route_no, psp,"
    " psp_account, method, merchant_request_no, amount_minor, currency, status, result_certainty,"
    " created_at, updated_at) VALUES ('" P "A01', '" P "', 1, 0, 'stripe', 'stripe-acme', 'card',"
    " '" P "A01', 100, 'EUR', 'SUCCEEDED', 3, now(), now());"
    "INSERT INTO payfact.payment_amount (attempt_id, payment_id, currency, authorized_minor,"
    " captured_minor, refund_reserved_minor, updated_at) VALUES ('" P "A01', '" P "', 'EUR', 100,"
    " 100, 40, now());"
    "INSERT INTO payfact.refund_order (refund_id, attempt_id, payment_id, merchant_id,"
    " idempotency_key, amount_minor, currency, status, result_certainty, origin, give_up_at,"
    " retry_at, created_at, updated_at) VALUES ('" P "R01', '" P "A01', '" P "', 'acme', 'one', 30,"
    " 'EUR', 'CREATED', 1, 'MERCHANT', now() + " DAY ", NULL, now(), now()),"
    " ('" P "R02', '" P "A01', '" P "', 'acme', 'two', 10, 'EUR', 'PROCESSING', 2, 'MERCHANT',"
    " now() + " DAY ", now() - interval '1 second', now(), now())";

static void must(struct world *world, enum pay_status status)
{
    if (status != PAY_OK) {
        fail_msg("%s: %s: %s", pay_status_name(status), world->err.op, world->err.text);
    }
}

/* The jobs 1 to count of an action, with not_after, sending_at, sent_by, sends, last_send_at and
 * closed_at of the n-th as expressions. */
static void add_gates(struct world *world, const char *action_id, const char *kind, int count,
                      const char *values)
{
    char sql[1024];
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO payfact.psp_request (job_id, payment_id, action_id, kind, digest,"
                   " not_after, sending_at, sent_by, sends, last_send_at, closed_at)"
                   " SELECT '%s.%s' || CASE WHEN n > 1 THEN '.' || n ELSE '' END, '" P "', '%s',"
                   " '%s', sha256('job'), %s FROM generate_series(1, %d) AS n",
                   action_id, kind, action_id, kind, values, count);
    pay_testdb_run(&world->db, sql);
}

/* All but the last are closed; each was tried and given back once. */
static void add_unsent(struct world *world)
{
    add_gates(world, P "R01", "REFUND", GATES,
              "now() - " DAY " + n * interval '1 second', NULL, NULL, 1, now() - " DAY ","
              " CASE WHEN n < 1100 THEN now() END");
}

/* Each was sent, the seventh replayed too: that was the last send of all. */
static void add_refused(struct world *world)
{
    add_gates(world, P "R02", "REFUND", GATES,
              "now() - " DAY ", now() - " DAY ", 'me', CASE WHEN n = 7 THEN 2 ELSE 1 END,"
              " CASE WHEN n = 7 THEN timestamptz '2100-01-01 00:00Z' ELSE now() - " DAY " END,"
              " CASE WHEN n < 1100 THEN now() END");
}

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    *state = world;
    pay_testdb_open(&world->db);
    pay_testdb_run(&world->db, payment_sql);
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

static struct pay_snapshot *load(struct world *world)
{
    struct pay_snapshot *snapshot = pay_arena_alloc(world->arena, sizeof(*snapshot));
    (void)pay_str_copy(snapshot->order.payment_id, sizeof(snapshot->order.payment_id), PAY_STR(P));
    struct pay_snapshot *const snapshots[] = {snapshot};
    struct pay_store_load wanted = {.snapshots = snapshots, .count = 1};
    must(world, pay_store_snapshot_load(world->store, world->arena, &wanted, &world->err));
    assert_true(pay_store_snapshot_reserve(world->arena, snapshot));
    world->now_us = wanted.now_us;
    assert_int_equal(snapshot->route_count, 1);
    snapshot->routes[0].traits = (struct pay_psp_traits){.send_window_us = 120 * SECOND,
                                                         .call_budget_us = 20 * SECOND,
                                                         .query_first_us = 5 * SECOND,
                                                         .longest_processing_us = SECOND,
                                                         .visibility_grace_us = SECOND,
                                                         .not_founds_needed = 1,
                                                         .queries_refunds = true,
                                                         .finds_refunds_by_no = true};
    return snapshot;
}

static const struct pay_gate *latest(const struct pay_snapshot *snapshot, const char *action_id)
{
    const struct pay_gate *found = NULL;
    for (size_t i = 0; i < snapshot->gate_count; i++) {
        if (strcmp(snapshot->gates[i].action_id, action_id) == 0) {
            assert_null(found); /* The others are left out. */
            found = &snapshot->gates[i];
        }
    }
    assert_non_null(found);
    return found;
}

/* The SEND deadline of the action, due now. */
static const struct pay_job_effect *send(struct world *world, struct pay_snapshot *snapshot,
                                         const char *action_id)
{
    const struct pay_decide_input input = {
        .kind = PAY_INPUT_DEADLINE,
        .cause = PAY_STR("SEND"),
        .now_us = world->now_us,
        .deadline = {.kind = PAY_DEADLINE_SEND,
                     .aggregate_id = pay_str_of(action_id),
                     .due_at_us = 1,
                     .row_due_at_us = 1},
    };
    const struct pay_job_effect *job = NULL;
    pay_decide(snapshot, &input, &world->decision);
    for (size_t i = 0; i < world->decision.effect_count; i++) {
        if (world->decision.effects[i].kind == PAY_EFFECT_JOB) {
            assert_null(job);
            job = &world->decision.effects[i].as.job;
        }
    }
    assert_non_null(job);
    return job;
}

static void after_an_outage_of_days_a_refund_is_sent_under_its_next_number(void **state)
{
    struct world *world = *state;
    add_unsent(world);
    struct pay_snapshot *snapshot = load(world);
    const struct pay_gate *gate = latest(snapshot, P "R01");
    assert_string_equal(gate->job_id, P "R01.REFUND.1100");
    assert_int_equal(gate->closed_at_us, 0);
    assert_int_equal(gate->past.made, GATES - 1);
    assert_int_equal(gate->past.sent, 0);
    assert_int_equal(gate->past.sends, 0);
    assert_int_equal(gate->not_after_us - gate->past.last_us, SECOND);

    const struct pay_job_effect *job = send(world, snapshot, P "R01");
    assert_string_equal(world->decision.reason_code, "SENT_AGAIN");
    assert_string_equal(job->job_id, P "R01.REFUND.1101");
    assert_int_equal(job->number, GATES + 1);
    assert_int_equal(job->try_no, 1); /* Nothing of it has ever left. */
    assert_true(latest(load(world), P "R01")->past.made == GATES - 1); /* Nothing was written. */
}

static void what_was_refused_for_days_is_repeated_under_its_next_number(void **state)
{
    struct world *world = *state;
    add_refused(world);
    struct pay_snapshot *snapshot = load(world);
    const struct pay_gate *gate = latest(snapshot, P "R02");
    assert_int_equal(gate->past.made, GATES - 1);
    assert_int_equal(gate->past.sent, GATES - 1);
    assert_int_equal(gate->past.sends, GATES); /* The seventh was replayed. */
    assert_int_equal(gate->past.last_us, INT64_C(4102444800000000));

    const struct pay_job_effect *job = send(world, snapshot, P "R02");
    assert_string_equal(world->decision.reason_code, "REPEATED");
    assert_string_equal(job->job_id, P "R02.REFUND.1101");
    assert_int_equal(job->try_no, GATES + 1);
}

/* A not-found counts only after every send that was made, the one left out too. */
static void a_send_that_was_left_out_still_delays_a_not_found(void **state)
{
    struct world *world = *state;
    add_refused(world);
    pay_testdb_run(&world->db, "UPDATE payfact.refund_order SET retry_at = NULL");
    struct pay_snapshot *snapshot = load(world);
    const struct pay_event event = {
        .type = PAY_EV_REFUND_NOT_FOUND,
        .psp = PAY_STR("stripe"),
        .psp_account = PAY_STR("stripe-acme"),
        .merchant_request_no = PAY_STR(P "R02"),
        .action_id = PAY_STR(P "R02"),
        .call = {.is_set = true,
                 .job_id = PAY_STR(P "R02.QUERY.v1"),
                 .query_by = PAY_QUERY_BY_REQUEST_NUMBER,
                 .asked_at_us = world->now_us},
    };
    const struct pay_decide_input input = {.kind = PAY_INPUT_EVENT,
                                           .cause = PAY_STR("not found"),
                                           .evidence = PAY_EVIDENCE_QUERY,
                                           .event = &event,
                                           .now_us = world->now_us};
    pay_decide(snapshot, &input, &world->decision);
    assert_string_equal(world->decision.reason_code, "ASKED_TOO_EARLY");
}

static const struct pay_gate *find(const struct pay_snapshot *snapshot, const char *job_id)
{
    for (size_t i = 0; i < snapshot->gate_count; i++) {
        if (strcmp(snapshot->gates[i].job_id, job_id) == 0) {
            return &snapshot->gates[i];
        }
    }
    return NULL;
}

/* What is open may still be sent, what is the latest says what comes next, and a CONFIRM that was
 * sent is answered. */
static void only_what_is_spent_is_left_out(void **state)
{
    struct world *world = *state;
    static const struct {
        const char *job_id;
        int past;
    } kept[] = {{P "A01.SUBMIT", 0},   {P "A01.CONFIRM.3", 0}, {P "A01.CONFIRM.12", 10},
                {P "R01.REFUND.2", 0}, {P "R01.REFUND.10", 8}, {P "R02.REFUND", 0}};
    add_gates(world, P "A01", "SUBMIT", 1, "now(), now(), 'me', 1, now(), now()");
    add_gates(world, P "A01", "CONFIRM", 12,
              "now(), CASE WHEN n = 3 THEN now() END, CASE WHEN n = 3 THEN 'me' END,"
              " CASE WHEN n = 3 THEN 1 ELSE 0 END, CASE WHEN n = 3 THEN now() END, now()");
    add_gates(world, P "R01", "REFUND", 10,
              "now(), NULL, NULL, 0, NULL, CASE WHEN n <> 2 THEN now() END");
    add_gates(world, P "R02", "REFUND", 1, "now(), NULL, NULL, 0, NULL, NULL");
    const struct pay_snapshot *snapshot = load(world);
    assert_int_equal(snapshot->gate_count, sizeof(kept) / sizeof(kept[0]));
    for (size_t i = 0; i < snapshot->gate_count; i++) {
        const struct pay_gate *gate = find(snapshot, kept[i].job_id);
        assert_non_null(gate);
        assert_int_equal(gate->past.made, kept[i].past);
        assert_int_equal(gate->past.sent, 0);
        assert_int_equal(gate->past.last_us != 0, kept[i].past > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f_) cmocka_unit_test_setup_teardown(f_, setup, teardown)
        TEST(after_an_outage_of_days_a_refund_is_sent_under_its_next_number),
        TEST(what_was_refused_for_days_is_repeated_under_its_next_number),
        TEST(a_send_that_was_left_out_still_delays_a_not_found),
        TEST(only_what_is_spent_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
