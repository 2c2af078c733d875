/* SPDX-License-Identifier: Apache-2.0 */
/* The store against a real server: rights, the gate, races of two connections, order. */
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
#include "common/base/hash.h"
#include "common/store/attempt.h"
#include "common/store/deadlines.h"
#include "common/store/gate.h"
#include "common/store/inbox.h"
#include "common/store/order.h"
#include "common/store/outbox.h"
#include "common/store/snapshot.h"
#include "tests/support/teststore.h"

#define P1 "01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define P2 "01BX5ZZKBKACTAV9WEVGEMMVRZ"
#define A1 P1 "A01"
#define JOB A1 ".SUBMIT"
#define DEADLINE_US INT64_C(20000000)

struct world {
    struct pay_testdb db;
    struct pay_store *a, *b;
    struct pay_arena *arena;
    struct pay_err err;
};

static void must(struct world *world, enum pay_status status)
{
    if (status != PAY_OK) {
        fail_msg("%s: %s: %s", pay_status_name(status), world->err.op, world->err.text);
    }
}

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    *state = world;
    pay_testdb_open(&world->db);
    world->arena = pay_arena_new((size_t)16 << 20);
    world->a = pay_teststore_open(&world->db, NULL);
    world->b = pay_teststore_open(&world->db, NULL);
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    world->a = pay_store_free(world->a);
    world->b = pay_store_free(world->b);
    world->arena = pay_arena_free(world->arena);
    pay_testdb_close(&world->db);
    free(world);
    return 0;
}

/* ---- what a payment needs, so that there is something to race for ---- */

static struct pay_order order_of(const char *payment_id)
{
    struct pay_order order = {
        .change = PAY_ROW_INSERTED,
        .exists = true,
        .merchant_id = "acme",
        .amount = {.amount_minor = 100, .currency = "EUR"},
        .status = PAY_ORDER_PROCESSING,
        .intent_route_no = -1,
        .failover_until_us = INT64_C(1900000000000000),
        .expires_at_us = INT64_C(1900000000000000),
        .event_sequence = 1,
        .attempt_count = 1,
        .created_by = "shop",
    };
    (void)pay_str_copy(order.payment_id, sizeof(order.payment_id), pay_str_of(payment_id));
    (void)pay_str_copy(order.merchant_order_no, sizeof(order.merchant_order_no),
                       pay_str_of(payment_id));
    return order;
}

static struct pay_attempt attempt_of(const char *attempt_id)
{
    struct pay_attempt attempt = {
        .attempt_no = 1,
        .psp = "stripe",
        .psp_account = "stripe-acme",
        .method = "card",
        .amount = {.amount_minor = 100, .currency = "EUR"},
        .status = PAY_ATTEMPT_CREATED,
        .live = true,
        .result_certainty = PAY_EVIDENCE_LOCAL,
    };
    (void)pay_str_copy(attempt.attempt_id, sizeof(attempt.attempt_id), pay_str_of(attempt_id));
    return attempt;
}

static struct pay_gate gate_of(const char *job_id)
{
    struct pay_gate gate = {.kind = PAY_JOB_SUBMIT, .not_after_us = INT64_C(1900000000000000)};
    (void)pay_str_copy(gate.job_id, sizeof(gate.job_id), pay_str_of(job_id));
    (void)pay_str_copy(gate.action_id, sizeof(gate.action_id),
                       (struct pay_str){job_id, PAY_ACTION_ID_SIZE - 1});
    return gate;
}

static const uint8_t digest[32] = {1, 2, 3};
static const struct pay_bytes DIGEST = {digest, 32};

static enum pay_status cas(struct pay_store *store, const struct pay_order *order, bool is_new,
                           bool *ret_won, struct pay_err *err)
{
    struct pay_store_new_order fresh = {.order = *order};
    const struct pay_store_new_order *created[] = {&fresh};
    const struct pay_order *updated[] = {order};
    struct pay_store_cas step = {.created = created,
                                 .created_count = is_new ? 1 : 0,
                                 .updated = updated,
                                 .updated_count = is_new ? 0 : 1};
    return pay_store_order_cas(store, &step, ret_won, ret_won, err);
}

static void make_payment(struct world *world)
{
    bool won = false;
    struct pay_order order = order_of(P1);
    struct pay_attempt attempt = attempt_of(A1);
    struct pay_store_gate_row gate = {.gate = gate_of(JOB), .digest = DIGEST};
    const struct pay_attempt *attempts[] = {&attempt};
    const struct pay_store_gate_row *gates[] = {&gate};
    must(world, pay_store_begin(world->a, &world->err));
    must(world, cas(world->a, &order, true, &won, &world->err));
    assert_true(won);
    must(world, pay_store_attempt_add(world->a, attempts, 1, &world->err));
    must(world, pay_store_gate_add(world->a, gates, 1, &world->err));
    must(world, pay_store_flush(world->a, &world->err));
    must(world, pay_store_commit(world->a, &world->err));
}

static struct pay_snapshot *load(struct world *world, struct pay_store *store,
                                 const char *payment_id)
{
    struct pay_snapshot *snapshot = pay_arena_alloc(world->arena, sizeof(*snapshot));
    (void)pay_str_copy(snapshot->order.payment_id, sizeof(snapshot->order.payment_id),
                       pay_str_of(payment_id));
    struct pay_snapshot *const snapshots[] = {snapshot};
    struct pay_store_load wanted = {.snapshots = snapshots, .count = 1};
    must(world, pay_store_snapshot_load(store, world->arena, &wanted, &world->err));
    assert_true(wanted.now_us > INT64_C(1600000000000000));
    return snapshot;
}

/* ---- tests ---- */

/* A statement, and the only roles that may run it (with a false condition: nothing changes). */
static const struct right {
    const char *sql;
    const char *roles; /* Separated by blanks. */
} rights[] = {
    {"UPDATE payfact.payment_state_history SET reason_code = 'x' WHERE false", ""},
    {"DELETE FROM payfact.payment_state_history WHERE false", ""},
    {"TRUNCATE payfact.payment_state_history", ""},
    {"UPDATE payfact.audit_log SET who = 'x' WHERE false", ""},
    {"DELETE FROM payfact.audit_log WHERE false", ""},
    {"DELETE FROM payfact.inbox_key WHERE false", ""},
    {"UPDATE payfact.inbox_key SET channel_event_id = 1 WHERE false", ""},
    {"DELETE FROM payfact.channel_event WHERE false", ""},
    {"UPDATE payfact.channel_event SET body = NULL WHERE false", ""},
    {"UPDATE payfact.channel_event SET normalized = NULL WHERE false", ""},
    {"SELECT body FROM payfact.channel_event WHERE false", "payfact_processor payfact_shadow"},
    {"UPDATE payfact.channel_event SET status = 'DEAD' WHERE false", "payfact_processor"},
    {"UPDATE payfact.attempt_reference SET attempt_id = attempt_id WHERE false", ""},
    {"DELETE FROM payfact.attempt_reference WHERE false", ""},
    {"UPDATE payfact.payment_route SET method = 'x' WHERE false", ""},
    {"SELECT params FROM payfact.payment_route WHERE false", "payfact_processor payfact_shadow"},
    {"UPDATE payfact.command SET sha256 = sha256 WHERE false", ""},
    {"DELETE FROM payfact.command WHERE false", ""},
    {"DELETE FROM payfact.payment_order WHERE false", ""},
    {"UPDATE payfact.payment_order SET status = 'FAILED' WHERE false", "payfact_processor"},
    {"UPDATE payfact.payment_attempt SET status = 'FAILED' WHERE false", "payfact_processor"},
    {"UPDATE payfact.payment_amount SET captured_minor = 0 WHERE false", "payfact_processor"},
    {"UPDATE payfact.payment_order SET amount_minor = 1 WHERE false", ""},
    {"UPDATE payfact.payment_order SET merchant_id = 'x' WHERE false", ""},
    {"UPDATE payfact.payment_attempt SET amount_minor = 1 WHERE false", ""},
    {"UPDATE payfact.payment_amount SET currency = 'USD' WHERE false", ""},
    {"UPDATE payfact.refund_order SET amount_minor = 1 WHERE false", ""},
    {"UPDATE payfact.capture_order SET amount_minor = 1 WHERE false", ""},
    {"UPDATE payfact.approval_request SET requested_by = 'x' WHERE false", ""},
    {"INSERT INTO payfact.psp_request SELECT * FROM payfact.psp_request WHERE false",
     "payfact_processor"},
    {"DELETE FROM payfact.psp_request WHERE false", ""},
    {"UPDATE payfact.psp_request SET closed_at = now() WHERE false", "payfact_processor"},
    {"UPDATE payfact.psp_request SET sending_at = now() WHERE false", "payfact_psp"},
    {"UPDATE payfact.psp_request SET last_send_at = now() WHERE false", "payfact_psp"},
    {"UPDATE payfact.psp_request SET digest = digest WHERE false", ""},
    {"UPDATE payfact.psp_request SET not_after = now() WHERE false", ""},
    {"INSERT INTO payfact.payment_outbox SELECT * FROM payfact.payment_outbox WHERE false",
     "payfact_processor"},
    {"DELETE FROM payfact.payment_outbox WHERE false", "payfact_publisher"},
    {"UPDATE payfact.payment_outbox SET key = 'x' WHERE false", ""},
    {"UPDATE payfact.payment_outbox SET payload = '' WHERE false", "payfact_processor"},
    {"UPDATE payfact.payment_deadline SET due_at = now() WHERE false",
     "payfact_processor payfact_recovery"},
    {"DELETE FROM payfact.payment_deadline WHERE false", "payfact_processor"},
    {"SELECT payfact.make_partitions(0)", "payfact_recovery"},
    {"UPDATE payfact.approval SET approves = true WHERE false", ""},
    {"SELECT payload FROM payfact.payment_outbox WHERE false",
     "payfact_processor payfact_publisher"},
    {"SELECT request FROM payfact.psp_request WHERE false",
     "payfact_processor payfact_psp payfact_shadow"},
};

static const char *const roles[] = {
    "payfact_webhook",  "payfact_psp",       "payfact_processor", "payfact_shadow",
    "payfact_recovery", "payfact_publisher", "payfact_operator",
};

/* @return whether it was refused; ends the test when the role may what it must not, or the reverse.
 */
static bool try_right(struct world *world, const char *role, const struct right *right)
{
    struct pay_pg *pg = world->db.owner;
    bool may = strstr(right->roles, role) != NULL;
    enum pay_status status = pay_pg_script(pg, right->sql, &world->err);
    bool is_refused = status != PAY_OK && strcmp(pay_pg_failure(pg)->sqlstate, "42501") == 0;
    if (may ? status != PAY_OK : !is_refused) {
        fail_msg("%s %s: %s", role, may ? "may not" : "may", right->sql);
    }
    return is_refused;
}

static void each_role_may_only_what_it_needs(void **state)
{
    struct world *world = *state;
    size_t refused = 0;
    for (size_t r = 0; r < sizeof(roles) / sizeof(roles[0]); r++) {
        char sql[128];
        (void)snprintf(sql, sizeof(sql), "SET ROLE %s", roles[r]);
        pay_testdb_run(&world->db, sql);
        for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
            refused += try_right(world, roles[r], &rights[i]) ? 1 : 0;
        }
        pay_testdb_run(&world->db, "RESET ROLE");
    }
    assert_true(refused > 200);
}

/* The owner has every right, and still cannot: triggers say it again. */
static void history_stays_even_for_its_owner(void **state)
{
    struct world *world = *state;
    struct pay_pg *pg = world->db.owner;
    static const char *const attempts[] = {
        "UPDATE payfact.payment_state_history SET reason_code = 'x'",
        "DELETE FROM payfact.payment_state_history",
        "TRUNCATE payfact.payment_state_history",
        "UPDATE payfact.audit_log SET who = 'x'",
        "DELETE FROM payfact.audit_log",
    };
    pay_testdb_run(&world->db,
                   "INSERT INTO payfact.payment_state_history (decided_at, payment_id, aggregate,"
                   " aggregate_id, verdict, event_type, event_id, source, evidence_level,"
                   " reason_code, version_before) VALUES (now(), '', 'ORDER', '', 'IGNORE', 'x',"
                   " 'x', 'LOCAL', 1, 'x', 0)");
    pay_testdb_run(&world->db, "INSERT INTO payfact.audit_log (who, what, from_where) VALUES"
                               " ('x', 'x', 'x')");
    for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
        assert_int_not_equal(pay_pg_script(pg, attempts[i], &world->err), PAY_OK);
        assert_string_equal(pay_pg_failure(pg)->sqlstate, "42501");
    }
}

static int pass_with(struct world *world, struct pay_bytes of,
                     const struct pay_store_gate_request *request)
{
    struct pay_store_gate_send send = {.send_no = -1};
    must(world, pay_store_gate_pass(world->b, PAY_STR(JOB), of, request, &send, &world->err));
    assert_true(send.send_no == 0 || llabs(send.now_us - pay_clock_wall_us()) < 60000000);
    return send.send_no;
}

static int pass(struct world *world, struct pay_bytes of)
{
    const struct pay_store_gate_request none = {.me = PAY_STR("me"),
                                                .endpoint = PAY_STR("https://psp")};
    return pass_with(world, of, &none);
}

static struct pay_store_gate_state read_gate(struct world *world)
{
    struct pay_store_gate_state gate;
    must(world,
         pay_store_gate_read(world->b, PAY_STR(JOB), DIGEST, world->arena, &gate, &world->err));
    return gate;
}

/* A query asks about the gate of another job, whose bytes it does not have. */
static void a_gate_is_read_without_its_digest(void **state)
{
    struct world *world = *state;
    struct pay_store_gate_state gate;
    make_payment(world);
    must(world, pay_store_gate_read(world->b, PAY_STR(JOB), (struct pay_bytes){NULL, 0},
                                    world->arena, &gate, &world->err));
    assert_true(gate.found && !gate.same_digest && !gate.sending);
}

static void a_gate_is_passed_once(void **state)
{
    struct world *world = *state;
    static const uint8_t other[32] = {9};
    bool freed = false;
    make_payment(world);
    assert_int_equal(pass(world, (struct pay_bytes){other, 32}), 0); /* another job */
    assert_int_equal(pass(world, DIGEST), 1);
    assert_int_equal(pass(world, DIGEST), 0); /* sending */
    struct pay_store_gate_state gate = read_gate(world);
    assert_true(gate.found && gate.same_digest && gate.sending && !gate.closed && !gate.late);
    assert_true(pay_str_eq_c(gate.sent_by, "me"));

    /* Freed: it can be sent again, and the former send still counts. */
    must(world,
         pay_store_gate_release(world->b, PAY_STR(JOB), PAY_STR("other"), 1, &freed, &world->err));
    assert_false(freed);
    must(world,
         pay_store_gate_release(world->b, PAY_STR(JOB), PAY_STR("me"), 1, &freed, &world->err));
    assert_true(freed);
    gate = read_gate(world);
    assert_true(!gate.sending && gate.sends == 1 && gate.last_send_at_us != 0);
    assert_int_equal(pass(world, DIGEST), 2);
    must(world,
         pay_store_gate_release(world->b, PAY_STR(JOB), PAY_STR("me"), 1, &freed, &world->err));
    assert_false(freed); /* the former send's number */
}

static void a_finished_send_is_never_freed_or_finished_again(void **state)
{
    struct world *world = *state;
    bool done = false;
    const struct pay_bytes first = {(const uint8_t *)"first", 5};
    const struct pay_bytes second = {(const uint8_t *)"second", 6};
    make_payment(world);
    assert_int_equal(pass(world, DIGEST), 1);
    must(world,
         pay_store_gate_finish(world->b, PAY_STR(JOB), first, PAY_STR("k"), &done, &world->err));
    assert_true(done);
    must(world,
         pay_store_gate_finish(world->b, PAY_STR(JOB), second, PAY_STR("k"), &done, &world->err));
    assert_false(done);
    must(world,
         pay_store_gate_release(world->b, PAY_STR(JOB), PAY_STR("me"), 1, &done, &world->err));
    assert_false(done);
    struct pay_store_gate_state gate = read_gate(world);
    assert_true(gate.finished && pay_bytes_eq(gate.outcome, first));
}

static int replay_after(struct world *world, int64_t call_budget_us)
{
    struct pay_store_gate_send send = {.send_no = -1};
    must(world, pay_store_gate_replay(world->b, PAY_STR(JOB), call_budget_us, &send, &world->err));
    assert_true(send.send_no == 0 || llabs(send.now_us - pay_clock_wall_us()) < 60000000);
    return send.send_no;
}

static int replay(struct world *world)
{
    return replay_after(world, 0); /* no call lasts */
}

/* Passed anew with a request, as after a send that certainly did not leave. */
static void pass_again(struct world *world, int64_t lifetime_us, int64_t expires_at_us)
{
    const struct pay_store_gate_request request = {
        .me = PAY_STR("me"),
        .endpoint = PAY_STR("https://psp"),
        .sealed = {(const uint8_t *)"request", 7},
        .key_id = PAY_STR("k"),
        .replay_lifetime_us = lifetime_us,
        .expires_at_us = expires_at_us,
    };
    pay_testdb_run(&world->db, "UPDATE payfact.psp_request SET sending_at = NULL, sent_by = NULL");
    assert_true(pass_with(world, DIGEST, &request) > 0);
}

static void a_replay_needs_a_sent_open_request_in_time(void **state)
{
    struct world *world = *state;
    const int64_t minute_us = 60000000;
    make_payment(world);
    assert_int_equal(replay(world), 0); /* not passed */
    assert_int_equal(pass(world, DIGEST), 1);
    assert_int_equal(replay(world), 0); /* nothing stored */
    assert_false(read_gate(world).may_replay);
    pass_again(world, -1, 0);
    assert_int_equal(replay(world), 0); /* too late */
    pass_again(world, minute_us, pay_clock_wall_us() - minute_us);
    assert_int_equal(replay(world), 0); /* what was to be paid has expired */
    pass_again(world, minute_us, 0);
    struct pay_store_gate_state gate = read_gate(world);
    assert_true(gate.may_replay && gate.request.len == 7);
    assert_int_equal(replay(world), gate.sends + 1);
    pass_again(world, minute_us, pay_clock_wall_us() + minute_us);
    assert_true(replay(world) > 0);
    pay_testdb_run(&world->db, "UPDATE payfact.psp_request SET closed_at = now()");
    assert_int_equal(replay(world), 0);
    assert_false(read_gate(world).may_replay);
}

/* Else that send, when it certainly did not leave, could not free the gate. */
static void no_replay_beside_a_send_that_has_not_ended(void **state)
{
    struct world *world = *state;
    const int64_t minute_us = 60000000;
    bool saved = false;
    make_payment(world);
    pass_again(world, minute_us, 0);
    assert_int_equal(replay_after(world, minute_us), 0);
    assert_true(read_gate(world).may_replay); /* only not now */
    must(world, pay_store_gate_finish(world->b, PAY_STR(JOB),
                                      (struct pay_bytes){(const uint8_t *)"end", 3}, PAY_STR("k"),
                                      &saved, &world->err));
    assert_true(saved && replay_after(world, minute_us) > 0);
    pay_testdb_run(&world->db,
                   "UPDATE payfact.psp_request SET finished_at = NULL, outcome = NULL,"
                   " outcome_key_id = NULL, last_send_at = now() - interval '61 seconds'");
    assert_true(replay_after(world, minute_us) > 0); /* who sent it died, or was lost */
    assert_int_equal(replay_after(world, minute_us), 0);
}

static bool end_replay(struct world *world, const char *me, int send_no)
{
    bool is_only = true;
    must(world, pay_store_gate_end_replay(world->b, PAY_STR(JOB), pay_str_of(me), send_no, &is_only,
                                          &world->err));
    return is_only;
}

/* Whichever of the two statements comes first, the other finds it (docs/adr/0010). */
static void a_definite_no_ends_the_replay(void **state)
{
    struct world *world = *state;
    const int64_t minute_us = 60000000;
    make_payment(world);
    assert_int_equal(pass(world, DIGEST), 1);
    pass_again(world, minute_us, 0);
    assert_false(end_replay(world, "me", 1)); /* a send before this one */
    assert_false(end_replay(world, "another", 2));
    assert_true(read_gate(world).may_replay);
    assert_true(end_replay(world, "me", 2));
    assert_false(read_gate(world).may_replay);
    assert_int_equal(replay(world), 0);
    assert_true(end_replay(world, "me", 2)); /* asked again: still so */

    pass_again(world, minute_us, 0);
    assert_int_equal(replay(world), 4);
    assert_false(end_replay(world, "me", 3)); /* a replay came first */
    assert_true(read_gate(world).may_replay); /* and nothing was proved: it may be asked for */
}

static void a_late_or_closed_gate_is_not_passed(void **state)
{
    struct world *world = *state;
    make_payment(world);
    pay_testdb_run(&world->db, "UPDATE payfact.psp_request SET not_after = now()");
    assert_int_equal(pass(world, DIGEST), 0);
    pay_testdb_run(&world->db, "UPDATE payfact.psp_request SET closed_at = now(),"
                               " not_after = now() + interval '1 day'");
    assert_int_equal(pass(world, DIGEST), 0);
    assert_true(read_gate(world).closed);
}

static enum pay_status close_gate(struct world *world, const struct pay_gate *gate)
{
    const struct pay_gate *gates[] = {gate};
    must(world, pay_store_begin(world->a, &world->err));
    must(world, pay_store_gate_close(world->a, gates, 1, &world->err));
    return pay_store_flush(world->a, &world->err);
}

static void a_close_loses_against_a_send_that_was_not_seen(void **state)
{
    struct world *world = *state;
    make_payment(world);
    struct pay_snapshot *before = load(world, world->a, P1);
    assert_int_equal(before->gate_count, 1);
    assert_int_equal(pass(world, DIGEST), 1);
    assert_int_equal(close_gate(world, &before->gates[0]), PAY_RETRY);
    assert_int_equal(world->err.code, PAY_STORE_COUNT);
    pay_store_rollback(world->a);
    assert_false(read_gate(world).closed);

    struct pay_snapshot *after = load(world, world->a, P1); /* read again: closed while sending */
    must(world, close_gate(world, &after->gates[0]));
    must(world, pay_store_commit(world->a, &world->err));
    assert_true(read_gate(world).closed);
}

static void one_of_two_compare_and_sets_wins(void **state)
{
    struct world *world = *state;
    bool won = false;
    make_payment(world);
    struct pay_snapshot *mine = load(world, world->a, P1);
    struct pay_snapshot *theirs = load(world, world->b, P1);
    mine->order.event_sequence = 7;
    theirs->order.event_sequence = 8;
    must(world, cas(world->a, &mine->order, false, &won, &world->err));
    assert_true(won);
    must(world, cas(world->b, &theirs->order, false, &won, &world->err));
    assert_false(won);
    struct pay_snapshot *now = load(world, world->a, P1);
    assert_int_equal(now->order.version, mine->order.version + 1);
    assert_int_equal(now->order.event_sequence, 7);

    struct pay_order again = order_of(P1); /* created twice: the second is lost, not an error */
    must(world, cas(world->b, &again, true, &won, &world->err));
    assert_false(won);
    struct pay_order other = order_of(P2); /* the merchant's number belongs to the first */
    (void)pay_str_copy(other.merchant_order_no, sizeof(other.merchant_order_no), PAY_STR(P1));
    must(world, cas(world->b, &other, true, &won, &world->err));
    assert_false(won);
}

static void a_second_live_attempt_is_refused_by_the_database(void **state)
{
    struct world *world = *state;
    struct pay_attempt second = attempt_of(P1 "A02");
    second.attempt_no = 2;
    const struct pay_attempt *rows[] = {&second};
    make_payment(world);
    must(world, pay_store_begin(world->a, &world->err));
    must(world, pay_store_attempt_add(world->a, rows, 1, &world->err));
    assert_int_equal(pay_store_flush(world->a, &world->err), PAY_RETRY);
    assert_int_equal(pay_pg_failure(pay_store_pg(world->a))->what.kind, PAY_PG_KIND_UNIQUE);
    assert_string_equal(pay_pg_failure(pay_store_pg(world->a))->constraint,
                        "payment_attempt_one_live");
    pay_store_rollback(world->a);
}

static void an_attempts_own_version_is_compared_too(void **state)
{
    struct world *world = *state;
    make_payment(world);
    struct pay_snapshot *snapshot = load(world, world->a, P1);
    struct pay_attempt *attempt = &snapshot->attempts[0];
    const struct pay_attempt *rows[] = {attempt};
    attempt->status = PAY_ATTEMPT_SUBMITTED;
    must(world, pay_store_attempt_update(world->a, rows, 1, &world->err));
    must(world, pay_store_flush(world->a, &world->err));
    must(world, pay_store_attempt_update(world->a, rows, 1, &world->err));
    assert_int_equal(pay_store_flush(world->a, &world->err), PAY_RETRY);
    assert_int_equal(world->err.code, PAY_STORE_COUNT);
    snapshot = load(world, world->a, P1);
    assert_int_equal(snapshot->attempts[0].status, PAY_ATTEMPT_SUBMITTED);
    assert_int_equal(snapshot->attempts[0].version, 2);
    /* A query that brought nothing is counted, and is no other version to an operator. */
    attempt = &snapshot->attempts[0];
    rows[0] = attempt;
    attempt->change = PAY_ROW_COUNTED;
    attempt->query_count = 3;
    must(world, pay_store_attempt_update(world->a, rows, 1, &world->err));
    must(world, pay_store_flush(world->a, &world->err));
    snapshot = load(world, world->a, P1);
    assert_int_equal(snapshot->attempts[0].query_count, 3);
    assert_int_equal(snapshot->attempts[0].version, 2);
}

/* ---- races that wait for each other: the second one runs in a thread ---- */

struct second {
    struct world *world;
    pthread_t thread;
    enum pay_status status;
    struct pay_store_inbox_row *row;
    struct pay_err err;
};

/* Until the server says that b waits for a lock. */
static void wait_blocked(struct world *world)
{
    int64_t until_us = pay_clock_mono_us() + DEADLINE_US;
    while (pay_testdb_number(&world->db, "SELECT count(*) FROM pg_stat_activity WHERE datname ="
                                         " current_database() AND wait_event_type = 'Lock'") == 0) {
        assert_true(pay_clock_mono_us() < until_us);
        (void)poll(NULL, 0, 5);
    }
}

static struct pay_store_inbox_row inbox_row(const uint8_t key[16])
{
    return (struct pay_store_inbox_row){
        .key = {key, 16},
        .psp = PAY_STR("stripe"),
        .psp_account = PAY_STR("stripe-acme"),
        .transport_key = PAY_STR("evt_1"),
        .input_id = PAY_STR("input"),
        .kind = "PSP_EVENT",
        .source = PAY_SOURCE_WEBHOOK,
        .normalized = {(const uint8_t *)"x", 1},
        .verification = PAY_STR("key"),
        .status = "DECIDED",
        .received_at_us = 1,
        .copies = 1,
    };
}

static enum pay_status insert_inbox(struct pay_store *store, struct pay_store_inbox_row *row,
                                    size_t *ret_missing, struct pay_err *err)
{
    size_t index = 0;
    struct pay_store_inbox_row *const rows[] = {row};
    enum pay_status status = pay_store_begin(store, err);
    status = status != PAY_OK ? status : pay_store_inbox_add(store, rows, 1, &index, err);
    status = status != PAY_OK ? status : pay_store_run(store, err);
    if (status == PAY_OK) {
        *ret_missing = pay_store_inbox_read(store, index, rows, 1);
    }
    return status;
}

static void *insert_second(void *arg)
{
    struct second *second = arg;
    struct pay_store_inbox_row *const rows[] = {second->row};
    size_t missing = 0;
    second->status = insert_inbox(second->world->b, second->row, &missing, &second->err);
    if (second->status == PAY_OK && missing == 1) {
        second->status = pay_store_inbox_seen(second->world->b, rows, 1, &second->err);
    }
    if (second->status == PAY_OK) {
        second->status = pay_store_commit(second->world->b, &second->err);
    }
    return NULL;
}

static void two_deliveries_at_once_are_one_event(void **state)
{
    struct world *world = *state;
    static const uint8_t key[16] = {7};
    struct pay_store_inbox_row first = inbox_row(key);
    struct pay_store_inbox_row other = inbox_row(key);
    struct second second = {.world = world, .row = &other};
    size_t missing = 0;
    const struct pay_store_inbox_row *const rows[] = {&first};
    must(world, insert_inbox(world->a, &first, &missing, &world->err));
    assert_true(missing == 0 && first.is_new);
    must(world, pay_store_event_add(world->a, rows, 1, &world->err));
    must(world, pay_store_flush(world->a, &world->err));
    assert_int_equal(pthread_create(&second.thread, NULL, insert_second, &second), 0);
    wait_blocked(world);
    must(world, pay_store_commit(world->a, &world->err));
    assert_int_equal(pthread_join(second.thread, NULL), 0);
    assert_int_equal(second.status, PAY_OK);
    assert_true(other.is_known && !other.is_new);
    assert_int_equal(other.id, first.id);
    assert_int_equal(
        pay_testdb_number(&world->db, "SELECT delivery_count FROM payfact.channel_event"), 2);
    assert_int_equal(pay_testdb_number(&world->db, "SELECT count(*) FROM payfact.inbox_key"), 1);
}

#define BATCH 200

/* Deliveries of events first .. first + BATCH - 1; half of a batch was there before. */
static void deliver(struct world *world, int first)
{
    static uint8_t keys[BATCH][16];
    struct pay_store_inbox_row rows[BATCH];
    struct pay_store_inbox_row *pointers[BATCH];
    struct pay_store_inbox_row *fresh[BATCH], *seen[BATCH];
    size_t index = 0, fresh_count = 0, seen_count = 0;
    for (int i = 0; i < BATCH; i++) {
        keys[i][14] = (uint8_t)((first + i) >> 8);
        keys[i][15] = (uint8_t)(first + i);
        rows[i] = inbox_row(keys[i]);
        pointers[i] = &rows[i];
    }
    must(world, pay_store_begin(world->a, &world->err));
    must(world, pay_store_inbox_add(world->a, pointers, BATCH, &index, &world->err));
    must(world, pay_store_run(world->a, &world->err));
    (void)pay_store_inbox_read(world->a, index, pointers, BATCH);
    for (int i = 0; i < BATCH; i++) {
        if (rows[i].is_new) {
            fresh[fresh_count++] = &rows[i];
        } else {
            seen[seen_count++] = &rows[i];
        }
    }
    if (seen_count > 0) {
        must(world, pay_store_inbox_seen(world->a, seen, seen_count, &world->err));
    }
    must(world, pay_store_event_add(world->a, (const struct pay_store_inbox_row *const *)fresh,
                                    fresh_count, &world->err));
    must(world, pay_store_flush(world->a, &world->err));
    must(world, pay_store_commit(world->a, &world->err));
    assert_true(first == 0 || seen_count == BATCH / 2);
}

/* The inbox is kept for ever: a plan may not read it whole, whatever it looked like when the plan
 * was made. The first month is empty and never analysed; so is each next one. */
static void the_inbox_costs_the_same_however_much_it_holds(void **state)
{
    struct world *world = *state;
    must(world, pay_store_prefer_indexes(world->a, &world->err));
    for (int turn = 0; turn < 8; turn++) { /* from the sixth on the plans are the server's own */
        deliver(world, turn * BATCH / 2);
    }
    pay_testdb_run(&world->db,
                   "SET search_path = payfact; SET session_replication_role = replica;"
                   "INSERT INTO inbox_key SELECT substr(sha256(int8send(s)), 1, 16),"
                   " date_trunc('month', now() AT TIME ZONE 'UTC')::date, 100000 + s"
                   " FROM generate_series(1, 20000) AS s;"
                   "INSERT INTO channel_event SELECT (jsonb_populate_record(NULL::channel_event,"
                   " to_jsonb(e) || jsonb_build_object('id', 100000 + s))).*"
                   " FROM generate_series(1, 20000) AS s,"
                   " (SELECT * FROM channel_event LIMIT 1) AS e;"
                   "RESET session_replication_role; SELECT pg_stat_force_next_flush()");
    static const char *const sessions = "SELECT count(*) FROM pg_stat_activity"
                                        " WHERE datname = current_database()";
    deliver(world, 4 * BATCH);
    /* A session tells its counts when it likes, and at the latest before it is gone. */
    const int64_t open = pay_testdb_number(&world->db, sessions);
    world->a = pay_store_free(world->a);
    int64_t until_us = pay_clock_mono_us() + DEADLINE_US;
    while (pay_testdb_number(&world->db, sessions) >= open) {
        assert_true(pay_clock_mono_us() < until_us);
        (void)poll(NULL, 0, 5);
    }
    /* Of all nine turns: less than the large one alone would read without the index. */
    const int64_t read = pay_testdb_number(
        &world->db, "SELECT sum(idx_tup_read + idx_tup_fetch)::int8 FROM pg_stat_user_indexes"
                    " WHERE relname LIKE 'inbox_key%' OR relname LIKE 'channel_event%'");
    assert_in_range(read, 1, 9 * 5 * BATCH);
}

static enum pay_status add_outbox(struct pay_store *store, const char *key, struct pay_err *err)
{
    const struct pay_store_outbox_row row = {
        .shard = 3,
        .topic = PAY_STR("events"),
        .key = pay_str_of(key),
        .payload = {(const uint8_t *)"p", 1},
        .headers = {{PAY_STR("ce_id"), PAY_STR("1")}, {PAY_STR("ce_time"), PAY_STR("")}},
        .header_count = 2,
    };
    const struct pay_store_outbox_row *rows[] = {&row};
    enum pay_status status = pay_store_begin(store, err);
    status = status != PAY_OK ? status : pay_store_outbox_add(store, rows, 1, err);
    return status != PAY_OK ? status : pay_store_flush(store, err);
}

static void *outbox_second(void *arg)
{
    struct second *second = arg;
    second->status = add_outbox(second->world->b, "second", &second->err);
    if (second->status == PAY_OK) {
        second->status = pay_store_commit(second->world->b, &second->err);
    }
    return NULL;
}

static void ids_of_a_shard_become_visible_in_order(void **state)
{
    struct world *world = *state;
    struct second second = {.world = world};
    must(world, add_outbox(world->a, "first", &world->err));
    assert_int_equal(pthread_create(&second.thread, NULL, outbox_second, &second), 0);
    wait_blocked(world); /* it draws no id before the first one's commit */
    assert_int_equal(pay_testdb_number(&world->db, "SELECT count(*) FROM payfact.payment_outbox"),
                     0);
    must(world, pay_store_commit(world->a, &world->err));
    assert_int_equal(pthread_join(second.thread, NULL), 0);
    assert_int_equal(second.status, PAY_OK);
    assert_string_equal(pay_testdb_text(&world->db,
                                        "SELECT string_agg(key, ' ' ORDER BY id) || ' ' ||"
                                        " max(headers::text) FROM payfact.payment_outbox"),
                        "first second {ce_id,1,ce_time,\"\"}");
}

static void set_deadlines(struct world *world, int64_t due_us)
{
    struct pay_store_deadline rows[3];
    const struct pay_store_deadline *pointers[3];
    static const char *const ids[] = {"one", "two", "three"};
    for (size_t i = 0; i < 3; i++) {
        rows[i] = (struct pay_store_deadline){
            .kind = PAY_DEADLINE_QUERY, .aggregate_id = pay_str_of(ids[i]), .due_at_us = due_us};
        pointers[i] = &rows[i];
    }
    must(world, pay_store_deadline_set(world->a, pointers, 3, &world->err));
    must(world, pay_store_flush(world->a, &world->err));
}

static void due_rows_are_leased_to_one_and_moved_unless_decided(void **state)
{
    struct world *world = *state;
    struct pay_store_due mine[3], theirs[3];
    size_t count = 0, others = 0, moved = 0;
    int64_t now_us = 0;
    const int64_t next[] = {INT64_C(1900000000000000), INT64_C(1900000000000000)};
    set_deadlines(world, INT64_C(1700000000000000));
    must(world, pay_store_deadline_lease(
                    world->a, &(struct pay_store_lease_wish){.max = 2, .lease_us = 60000000}, mine,
                    &count, &now_us, &world->err));
    assert_int_equal(count, 2);
    must(world, pay_store_deadline_lease(
                    world->b, &(struct pay_store_lease_wish){.max = 3, .lease_us = 60000000},
                    theirs, &others, &now_us, &world->err));
    assert_int_equal(others, 1);
    for (size_t i = 0; i < count; i++) {
        assert_string_not_equal(mine[i].aggregate_id, theirs[0].aggregate_id);
    }
    set_deadlines(world, INT64_C(1800000000000000)); /* decided meanwhile */
    must(world, pay_store_deadline_reschedule(world->a, mine, next, 2, &moved, &world->err));
    assert_int_equal(moved, 0);
    assert_int_equal(pay_testdb_number(&world->db,
                                       "SELECT count(*) FROM payfact.payment_deadline WHERE"
                                       " due_at = to_timestamp(1800000000) AND tries = 0"),
                     3);
}

/* An answer that was on its way when the question was asked does not end it. */
static void a_row_that_was_set_after_the_asking_stays(void **state)
{
    struct world *world = *state;
    struct pay_store_deadline row = {.kind = PAY_DEADLINE_QUERY, .aggregate_id = PAY_STR("one")};
    const struct pay_store_deadline *rows[] = {&row};
    static const char count[] = "SELECT count(*) FROM payfact.payment_deadline";
    static const char set_at[] =
        "SELECT (extract(epoch FROM set_at) * 1000000)::int8 FROM payfact.payment_deadline"
        " WHERE aggregate_id = 'one'";

    set_deadlines(world, INT64_C(1700000000000000));
    const int64_t set_at_us = pay_testdb_number(&world->db, set_at);
    row.set_before_us = set_at_us;
    must(world, pay_store_deadline_clear(world->a, rows, 1, &world->err));
    must(world, pay_store_flush(world->a, &world->err));
    assert_int_equal(pay_testdb_number(&world->db, count), 3);
    struct pay_store_due due[3];
    size_t leased = 0, moved = 0;
    int64_t now_us = 0;
    const int64_t next[] = {INT64_C(1900000000000000), INT64_C(1900000000000000),
                            INT64_C(1900000000000000)};
    must(world, pay_store_deadline_lease(
                    world->a, &(struct pay_store_lease_wish){.max = 3, .lease_us = 60000000}, due,
                    &leased, &now_us, &world->err));
    must(world, pay_store_deadline_reschedule(world->a, due, next, 3, &moved, &world->err));
    assert_int_equal(moved, 3); /* Recovery asks: the question is as old as it was. */
    assert_int_equal(pay_testdb_number(&world->db, set_at), set_at_us);
    row.set_before_us = set_at_us + 1;
    must(world, pay_store_deadline_clear(world->a, rows, 1, &world->err));
    must(world, pay_store_flush(world->a, &world->err));
    assert_int_equal(pay_testdb_number(&world->db, count), 2);
    set_deadlines(world, INT64_C(1700000000000000)); /* Asked anew. */
    assert_true(pay_testdb_number(&world->db, set_at) > set_at_us);
    row.set_before_us = 0;
    must(world, pay_store_deadline_clear(world->a, rows, 1, &world->err));
    must(world, pay_store_flush(world->a, &world->err));
    assert_int_equal(pay_testdb_number(&world->db, count), 2);
}

#define TEST(test_) cmocka_unit_test_setup_teardown(test_, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_role_may_only_what_it_needs),
        TEST(history_stays_even_for_its_owner),
        TEST(a_gate_is_read_without_its_digest),
        TEST(a_gate_is_passed_once),
        TEST(a_finished_send_is_never_freed_or_finished_again),
        TEST(a_replay_needs_a_sent_open_request_in_time),
        TEST(no_replay_beside_a_send_that_has_not_ended),
        TEST(a_definite_no_ends_the_replay),
        TEST(a_late_or_closed_gate_is_not_passed),
        TEST(a_close_loses_against_a_send_that_was_not_seen),
        TEST(one_of_two_compare_and_sets_wins),
        TEST(a_second_live_attempt_is_refused_by_the_database),
        TEST(an_attempts_own_version_is_compared_too),
        TEST(two_deliveries_at_once_are_one_event),
        TEST(the_inbox_costs_the_same_however_much_it_holds),
        TEST(ids_of_a_shard_become_visible_in_order),
        TEST(due_rows_are_leased_to_one_and_moved_unless_decided),
        TEST(a_row_that_was_set_after_the_asking_stays),
    };
    return cmocka_run_group_tests_name("integration.store", tests, NULL, NULL);
}
