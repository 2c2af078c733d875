/* SPDX-License-Identifier: Apache-2.0 */
/* The adapter against a real server: PAYFACT_TEST_PG is a conninfo whose user may create schemas.
 */
#include "common/io/pg/pg.h"

#include "common/base/clock.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define DEADLINE_US INT64_C(20000000)

static const char *server(void)
{
    /* Nobody sets it while we run. NOLINTNEXTLINE(concurrency-mt-unsafe) */
    return getenv("PAYFACT_TEST_PG");
}

struct world {
    struct pay_pg *pg;    /* What is tested. */
    struct pay_pg *other; /* Looks on, and ends sessions. */
    struct pay_pg_params *params;
    struct pay_err err;
    char schema[64];
};

static struct pay_pg_options options_of(const struct world *world)
{
    return (struct pay_pg_options){
        .conninfo = server(),
        .application_name = "payfact-test",
        .search_path = world->schema,
    };
}

static void must(struct world *world, enum pay_status status)
{
    if (status != PAY_OK) {
        fail_msg("%s: %s: %s", pay_status_name(status), world->err.op, world->err.text);
    }
}

static int setup(void **state)
{
    char sql[512];
    struct world *world = calloc(1, sizeof *world);

    *state = world;
    if (server() == NULL) {
        (void)fprintf(stderr, "PAYFACT_TEST_PG is not set: give the conninfo of a test server\n");
        return 1;
    }
    (void)snprintf(world->schema, sizeof world->schema, "pay_io_pg_%d", (int)getpid());
    struct pay_pg_options options = options_of(world);
    world->params = pay_pg_params_new(1 << 20);
    if (pay_pg_open(&options, &world->pg, &world->err) != PAY_OK ||
        pay_pg_open(&options, &world->other, &world->err) != PAY_OK) {
        (void)fprintf(stderr, "%s: %s\n", world->err.op, world->err.text);
        return 1;
    }
    (void)snprintf(sql, sizeof sql,
                   "DROP SCHEMA IF EXISTS %s CASCADE; CREATE SCHEMA %s;"
                   "CREATE TABLE t (id int8 PRIMARY KEY, note text, small int4 CHECK (small > 0));"
                   "CREATE TABLE parted (id int8) PARTITION BY RANGE (id);",
                   world->schema, world->schema);
    if (pay_pg_script(world->other, sql, &world->err) != PAY_OK) {
        (void)fprintf(stderr, "%s: %s\n", world->err.text, pay_pg_failure(world->other)->message);
        return 1;
    }
    return 0;
}

static int teardown(void **state)
{
    char sql[128];
    struct world *world = *state;

    (void)snprintf(sql, sizeof sql, "DROP SCHEMA IF EXISTS %s CASCADE", world->schema);
    pay_pg_free(world->pg);
    if (world->other != NULL && pay_pg_reconnect(world->other, NULL) == PAY_OK) {
        if (pay_pg_script(world->other, sql, &world->err) != PAY_OK) {
            (void)fprintf(stderr, "%s: %s\n", world->err.op, world->err.text);
        }
    }
    pay_pg_free(world->other);
    pay_pg_params_free(world->params);
    free(world);
    return 0;
}

static const struct pay_pg_stmt insert_t = {"insert_t", "INSERT INTO t VALUES ($1, $2, $3)", false};
static const struct pay_pg_stmt count_t = {"count_t", "SELECT count(*) FROM t", true};
static const struct pay_pg_stmt clear_t = {"clear_t", "DELETE FROM t", false};

static void set_t(struct world *world, int64_t id, const char *note, int32_t small)
{
    pay_pg_params_reset(world->params);
    pay_pg_add_int8(world->params, id);
    pay_pg_add_text_c(world->params, note);
    pay_pg_add_int4(world->params, small);
}

static int64_t count_rows(struct world *world)
{
    struct pay_pg_result *result = NULL;

    must(world, pay_pg_exec(world->other, &count_t, NULL, &result, &world->err));
    int64_t count = pay_pg_int(result, 0, 0);
    pay_pg_result_free(result);
    return count;
}

static void scalars_round_trip(void **state)
{
    static const struct pay_pg_stmt stmt = {
        "scalars",
        "SELECT $1::text, $2::int2, $3::int4, $4::int8, $5::bool, $6::bytea, $7::timestamptz, "
        "$8::date,"
        " $9::text, $10::timestamptz, $11::timestamptz, $12::text,"
        " $7::timestamptz = '2026-11-30 12:00:00.123456+00', $8::date = '2026-11-30'",
        true};
    static const uint8_t bytes[] = {0, 1, 255, 0};
    const int64_t at_us = INT64_C(1796040000123456);
    struct world *world = *state;
    struct pay_pg_result *r = NULL;

    pay_pg_params_reset(world->params);
    pay_pg_add_text(world->params, PAY_STR("h\xc3\xa4"));
    pay_pg_add_int2(world->params, INT16_MIN);
    pay_pg_add_int4(world->params, INT32_MIN);
    pay_pg_add_int8(world->params, INT64_MIN);
    pay_pg_add_bool(world->params, true);
    pay_pg_add_bytea(world->params, (struct pay_bytes){bytes, sizeof bytes});
    pay_pg_add_timestamptz(world->params, at_us);
    pay_pg_add_date(world->params, 20787);
    pay_pg_add_null(world->params, PAY_PG_TEXT);
    pay_pg_add_timestamptz(world->params, INT64_MAX);
    pay_pg_add_timestamptz(world->params, -1);
    pay_pg_add_text(world->params, PAY_STR(""));
    must(world, pay_pg_exec(world->pg, &stmt, world->params, &r, &world->err));
    assert_int_equal(pay_pg_rows(r), 1);
    assert_int_equal(pay_pg_columns(r), 14);
    assert_string_equal(pay_pg_text(r, 0, 0).ptr, "h\xc3\xa4");
    assert_true(pay_pg_int(r, 0, 1) == INT16_MIN);
    assert_true(pay_pg_int(r, 0, 2) == INT32_MIN);
    assert_true(pay_pg_int(r, 0, 3) == INT64_MIN);
    assert_true(pay_pg_bool(r, 0, 4));
    assert_int_equal(pay_pg_bytea(r, 0, 5).len, sizeof bytes);
    assert_memory_equal(pay_pg_bytea(r, 0, 5).ptr, bytes, sizeof bytes);
    assert_true(pay_pg_timestamptz(r, 0, 6) == at_us);
    assert_int_equal(pay_pg_date(r, 0, 7), 20787);
    assert_true(pay_pg_is_null(r, 0, 8));
    assert_null(pay_pg_text(r, 0, 8).ptr);
    assert_true(pay_pg_timestamptz(r, 0, 9) == INT64_MAX);
    assert_true(pay_pg_timestamptz_or(r, 0, 10, 7) == -1);
    assert_non_null(pay_pg_text(r, 0, 11).ptr);
    assert_int_equal(pay_pg_text(r, 0, 11).len, 0);
    assert_true(pay_pg_bool(r, 0, 12)); /* The server reads the same moment. */
    assert_true(pay_pg_bool(r, 0, 13));
    pay_pg_result_free(r);
}

static void fill_arrays(struct pay_pg_params *p, const struct pay_str texts[3])
{
    static const uint8_t bytes[] = {7, 0};
    const int64_t ints[] = {1, 0, INT64_MAX};
    const bool nulls[] = {false, true, false};

    pay_pg_params_reset(p);
    pay_pg_add_text_array(p, texts, 3);
    pay_pg_add_int8_array(p, ints, nulls, 3);
    pay_pg_array_begin(p, PAY_PG_INT2);
    pay_pg_add_int2(p, -5);
    pay_pg_array_end(p);
    pay_pg_array_begin(p, PAY_PG_BOOL);
    pay_pg_add_bool(p, false);
    pay_pg_add_null(p, PAY_PG_BOOL);
    pay_pg_add_bool(p, true);
    pay_pg_array_end(p);
    pay_pg_array_begin(p, PAY_PG_BYTEA);
    pay_pg_add_bytea(p, (struct pay_bytes){bytes, sizeof bytes});
    pay_pg_add_bytea(p, (struct pay_bytes){0});
    pay_pg_array_end(p);
    pay_pg_array_begin(p, PAY_PG_TIMESTAMPTZ);
    pay_pg_add_timestamptz(p, 1);
    pay_pg_array_end(p);
    pay_pg_array_begin(p, PAY_PG_INT8);
    pay_pg_array_end(p);
    pay_pg_array_begin(p, PAY_PG_DATE);
    pay_pg_add_date(p, -1);
    pay_pg_array_end(p);
}

#define NULL_ELEMENT INT64_MIN

static void check_ints(const struct pay_pg_result *r, size_t column, const int64_t *want,
                       size_t count)
{
    struct pay_pg_array array = pay_pg_array_of(r, 0, column);

    assert_false(array.is_null);
    assert_int_equal(array.count, count);
    for (size_t i = 0; i < count; i++) {
        int64_t value = NULL_ELEMENT;
        assert_int_equal(pay_pg_array_int(&array, &value), want[i] != NULL_ELEMENT);
        assert_true(value == want[i]);
    }
    assert_int_equal(array.count, 0);
}

static void arrays_round_trip(void **state)
{
    static const struct pay_pg_stmt stmt = {
        "arrays",
        "SELECT $1::text[], $2::int8[], $3::int2[], $4::bool[], $5::bytea[], $6::timestamptz[], "
        "$7::int8[],"
        " NULL::int4[], cardinality($1::text[]), ($1::text[])[2] IS NULL, $8::date[]",
        true};
    const struct pay_str texts[] = {PAY_STR("a,\"{}"), {0}, PAY_STR("")};
    struct world *world = *state;
    struct pay_pg_result *r = NULL;

    fill_arrays(world->params, texts);
    must(world, pay_pg_exec(world->pg, &stmt, world->params, &r, &world->err));
    struct pay_pg_array a = pay_pg_array_of(r, 0, 0);
    assert_int_equal(a.count, 3);
    assert_true(pay_str_eq(pay_pg_array_text(&a), texts[0]));
    assert_null(pay_pg_array_text(&a).ptr);
    struct pay_str empty = pay_pg_array_text(&a);
    assert_true(empty.ptr != NULL && empty.len == 0);
    check_ints(r, 1, (const int64_t[]){1, NULL_ELEMENT, INT64_MAX}, 3);
    check_ints(r, 2, (const int64_t[]){-5}, 1);
    check_ints(r, 3, (const int64_t[]){0, NULL_ELEMENT, 1}, 3);
    a = pay_pg_array_of(r, 0, 4);
    struct pay_bytes got = pay_pg_array_bytea(&a);
    assert_true(got.len == 2 && got.ptr[0] == 7 && got.ptr[1] == 0);
    assert_null(pay_pg_array_bytea(&a).ptr);
    check_ints(r, 5, (const int64_t[]){1}, 1);
    check_ints(r, 6, NULL, 0);
    a = pay_pg_array_of(r, 0, 7);
    assert_true(a.count == 0 && a.is_null);
    assert_int_equal(pay_pg_int(r, 0, 8), 3);
    assert_true(pay_pg_bool(r, 0, 9));
    check_ints(r, 10, (const int64_t[]){-1}, 1);
    pay_pg_result_free(r);
}

/* 20,000 rows through one statement: larger than any socket buffer, both ways. */
static void large_batch_passes(void **state)
{
    static const struct pay_pg_stmt stmt = {
        "large", "SELECT x, n FROM unnest($1::text[], $2::int8[]) AS u (x, n) ORDER BY n", true};
    enum { ROWS = 20000 };
    struct world *world = *state;
    struct pay_pg_result *r[2] = {NULL, NULL};
    struct pay_pg_params *p = pay_pg_params_new(16 << 20);
    char text[201];

    memset(text, 'x', sizeof text - 1);
    text[200] = 0;
    pay_pg_array_begin(p, PAY_PG_TEXT);
    for (int i = 0; i < ROWS; i++) {
        pay_pg_add_text_c(p, text);
    }
    pay_pg_array_end(p);
    pay_pg_array_begin(p, PAY_PG_INT8);
    for (int i = 0; i < ROWS; i++) {
        pay_pg_add_int8(p, i);
    }
    pay_pg_array_end(p);
    must(world, pay_pg_queue(world->pg, &stmt, p, &world->err));
    must(world, pay_pg_queue(world->pg, &stmt, p, &world->err));
    pay_pg_params_free(p); /* Copied when queued. */
    must(world, pay_pg_run(world->pg, r, 2, &world->err));
    assert_int_equal(pay_pg_rows(r[1]), ROWS);
    assert_true(pay_pg_int(r[1], ROWS - 1, 1) == ROWS - 1);
    assert_string_equal(pay_pg_text(r[0], ROWS - 1, 0).ptr, text);
    pay_pg_results_free(r, 2);
    assert_null(r[0]);
}

static void pipeline_gives_results_in_order(void **state)
{
    struct world *world = *state;
    struct pay_pg_result *r[5] = {NULL};

    for (int round = 0; round < 2; round++) { /* The second finds everything prepared. */
        must(world, pay_pg_queue_begin(world->pg, &world->err));
        must(world, pay_pg_queue(world->pg, &clear_t, NULL, &world->err));
        set_t(world, 1, "one", 1);
        must(world, pay_pg_queue(world->pg, &insert_t, world->params, &world->err));
        set_t(world, 2, "two", 2);
        must(world, pay_pg_queue(world->pg, &insert_t, world->params, &world->err));
        must(world, pay_pg_queue(world->pg, &count_t, NULL, &world->err));
        assert_int_equal(pay_pg_queued(world->pg), 5);
        must(world, pay_pg_send(world->pg, &world->err));
        must(world, pay_pg_run(world->pg, r, 5, &world->err));
        assert_true(pay_pg_in_transaction(world->pg));
        assert_int_equal(pay_pg_affected(r[1]), round == 0 ? 0 : 2);
        assert_int_equal(pay_pg_affected(r[3]), 1);
        assert_int_equal(pay_pg_int(r[4], 0, 0), 2);
        pay_pg_results_free(r, 5);
        must(world, pay_pg_commit(world->pg, &world->err));
        assert_false(pay_pg_in_transaction(world->pg));
        assert_int_equal(count_rows(world), 2);
    }
}

static void failure_skips_the_rest_and_rolls_back(void **state)
{
    struct world *world = *state;
    struct pay_pg_result *r[4] = {NULL};

    must(world, pay_pg_exec(world->pg, &clear_t, NULL, NULL, &world->err));
    must(world, pay_pg_queue_begin(world->pg, &world->err));
    set_t(world, 1, "sesame", 1);
    must(world, pay_pg_queue(world->pg, &insert_t, world->params, &world->err));
    must(world, pay_pg_queue(world->pg, &insert_t, world->params, &world->err));
    must(world, pay_pg_queue_commit(world->pg, &world->err));
    assert_int_equal(pay_pg_run(world->pg, r, 4, &world->err), PAY_RETRY);
    for (size_t i = 0; i < 4; i++) {
        assert_null(r[i]);
    }
    const struct pay_pg_failure *failure = pay_pg_failure(world->pg);
    assert_int_equal(failure->what.kind, PAY_PG_KIND_UNIQUE);
    assert_string_equal(failure->sqlstate, "23505");
    assert_string_equal(failure->constraint, "t_pkey");
    assert_string_equal(failure->stmt, "insert_t");
    assert_int_equal(failure->index, 2);
    assert_int_equal(world->err.code, pay_pg_sqlstate_code("23505"));
    assert_non_null(strstr(world->err.text, "t_pkey"));
    assert_true(pay_pg_in_transaction(world->pg));
    pay_pg_rollback(world->pg);
    assert_int_equal(pay_pg_failure(world->pg)->what.kind, PAY_PG_KIND_UNIQUE);
    assert_false(pay_pg_in_transaction(world->pg));
    assert_true(pay_pg_usable(world->pg));
    assert_int_equal(count_rows(world), 0);
    /* The same session goes on, with the statement that was prepared in the failed run. */
    must(world, pay_pg_exec(world->pg, &insert_t, world->params, NULL, &world->err));
    assert_int_equal(count_rows(world), 1);
}

static void classes_come_from_the_server(void **state)
{
    static const struct pay_pg_stmt parted = {"parted", "INSERT INTO parted VALUES ($1)", false};
    static const struct pay_pg_stmt absent = {"absent", "SELECT 1 FROM no_such_table", true};
    static const struct pay_pg_stmt raise = {"raise", "SELECT 1 / $1::int8", true};
    struct world *world = *state;
    struct pay_pg *pg = world->pg;

    pay_pg_params_reset(world->params);
    pay_pg_add_int8(world->params, 1);
    assert_int_equal(pay_pg_exec(pg, &parted, world->params, NULL, &world->err), PAY_RETRY);
    assert_int_equal(pay_pg_failure(pg)->what.kind, PAY_PG_KIND_PARTITION);
    assert_true(pay_pg_failure(pg)->what.alert);
    set_t(world, 77, "sesame", -1);
    assert_int_equal(pay_pg_exec(pg, &insert_t, world->params, NULL, &world->err), PAY_REJECT);
    assert_string_equal(pay_pg_failure(pg)->constraint, "t_small_check");
    /* No value of the row in the text that is logged; the server's own text may have it. */
    assert_null(strstr(world->err.text, "sesame"));
    assert_null(strstr(world->err.text, "77"));
    for (int i = 0; i < 2; i++) { /* A Parse that failed is tried again. */
        assert_int_equal(pay_pg_exec(pg, &absent, NULL, NULL, &world->err), PAY_RETRY);
        assert_int_equal(pay_pg_failure(pg)->what.kind, PAY_PG_KIND_UNLISTED);
        assert_string_equal(pay_pg_failure(pg)->sqlstate, "42P01");
    }
    pay_pg_params_reset(world->params);
    pay_pg_add_int8(world->params, 0);
    assert_int_equal(pay_pg_exec(pg, &raise, world->params, NULL, &world->err), PAY_REJECT);
    set_t(world, 78, "\xff", 1);
    assert_int_equal(pay_pg_exec(pg, &insert_t, world->params, NULL, &world->err), PAY_REJECT);
    assert_string_equal(pay_pg_failure(pg)->sqlstate, "22021");
    assert_true(pay_pg_usable(pg));
}

static void parameters_over_the_maximum_are_refused(void **state)
{
    static const char big[2048];
    struct world *world = *state;
    struct pay_pg_params *small = pay_pg_params_new(1024);

    pay_pg_add_int8(small, 1);
    pay_pg_add_text(small, (struct pay_str){big, sizeof big});
    pay_pg_add_int4(small, 1);
    assert_int_equal(pay_pg_queue(world->pg, &insert_t, small, &world->err), PAY_REJECT);
    pay_pg_params_reset(small);
    pay_pg_add_text(small, (struct pay_str){NULL, 3}); /* An arena that was full made this. */
    assert_int_equal(pay_pg_queue(world->pg, &insert_t, small, &world->err), PAY_REJECT);
    pay_pg_params_free(small);
    assert_int_equal(pay_pg_queued(world->pg), 0);
    must(world, pay_pg_exec(world->pg, &count_t, NULL, NULL, &world->err));
}

static void commit_of_a_failed_transaction_is_retry(void **state)
{
    static const struct pay_pg_stmt bad = {"bad", "SELECT 1 / 0", true};
    struct world *world = *state;

    must(world, pay_pg_begin(world->pg, &world->err));
    assert_int_equal(pay_pg_exec(world->pg, &bad, NULL, NULL, &world->err), PAY_REJECT);
    assert_int_equal(pay_pg_commit(world->pg, &world->err), PAY_RETRY);
    assert_false(pay_pg_in_transaction(world->pg));
    /* COMMIT without BEGIN. */
    assert_int_equal(pay_pg_commit(world->pg, &world->err), PAY_FATAL);
}

/* Wait until the session runs a statement that starts with @p what and sleeps, then end it. */
static void end_session_in(struct world *world, int pid, const char *what)
{
    static const struct pay_pg_stmt kill = {
        "kill",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1"
        " AND wait_event = 'PgSleep' AND query LIKE $2 || '%'",
        false};
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;
    size_t ended = 0;

    while (ended == 0 && pay_clock_mono_us() < end_us) {
        struct pay_pg_result *r = NULL;
        pay_pg_params_reset(world->params);
        pay_pg_add_int4(world->params, pid);
        pay_pg_add_text_c(world->params, what);
        must(world, pay_pg_exec(world->other, &kill, world->params, &r, &world->err));
        ended = pay_pg_rows(r);
        pay_pg_result_free(r);
        (void)poll(NULL, 0, 5);
    }
    assert_int_equal(ended, 1);
}

static void make_slow_commit(struct world *world, const char *body)
{
    char sql[512];

    (void)snprintf(sql, sizeof sql,
                   "DELETE FROM t; DROP TRIGGER IF EXISTS slow ON t;"
                   "CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
                   " $$ BEGIN %s; RETURN NULL; END $$;"
                   "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED"
                   " FOR EACH ROW EXECUTE FUNCTION slow()",
                   body);
    must(world, pay_pg_script(world->other, sql, &world->err));
}

static void drop_slow_commit(struct world *world)
{
    must(world, pay_pg_script(world->other, "DROP TRIGGER slow ON t; DELETE FROM t", &world->err));
    must(world, pay_pg_reconnect(world->pg, &world->err));
}

static void queue_insert_and_commit(struct world *world)
{
    must(world, pay_pg_queue_begin(world->pg, &world->err));
    set_t(world, 1, "x", 1);
    must(world, pay_pg_queue(world->pg, &insert_t, world->params, &world->err));
    must(world, pay_pg_queue_commit(world->pg, &world->err));
}

static void session_ended_in_commit_is_unknown(void **state)
{
    struct world *world = *state;

    make_slow_commit(world, "PERFORM pg_sleep(60)");
    queue_insert_and_commit(world);
    must(world, pay_pg_send(world->pg, &world->err));
    end_session_in(world, pay_pg_backend_pid(world->pg), "COMMIT");
    assert_int_equal(pay_pg_run(world->pg, NULL, 3, &world->err), PAY_UNKNOWN);
    assert_string_equal(pay_pg_failure(world->pg)->sqlstate, "57P01");
    assert_int_equal(pay_pg_failure(world->pg)->index, 2);
    assert_false(pay_pg_usable(world->pg));
    assert_false(pay_pg_in_transaction(world->pg));
    /* Everything answers "not usable" until the reconnect, and nothing crashes. */
    assert_int_equal(pay_pg_exec(world->pg, &count_t, NULL, NULL, &world->err), PAY_RETRY);
    pay_pg_rollback(world->pg);
    drop_slow_commit(world);
    must(world, pay_pg_exec(world->pg, &count_t, NULL, NULL, &world->err));
}

static void commit_without_answer_is_unknown(void **state)
{
    struct world *world = *state;
    struct pay_pg_options options = options_of(world);

    make_slow_commit(world, "PERFORM pg_sleep(2)");
    options.answer_timeout_ms = 200;
    pay_pg_free(world->pg);
    world->pg = NULL;
    must(world, pay_pg_open(&options, &world->pg, &world->err));
    queue_insert_and_commit(world);
    assert_int_equal(pay_pg_run(world->pg, NULL, 3, &world->err), PAY_UNKNOWN);
    assert_string_equal(world->err.text, "no answer in time");
    /* And this time the truth is: committed. */
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;
    while (count_rows(world) == 0 && pay_clock_mono_us() < end_us) {
        (void)poll(NULL, 0, 10);
    }
    assert_int_equal(count_rows(world), 1);
    pay_pg_free(world->pg);
    world->pg = NULL;
    options.answer_timeout_ms = 0;
    must(world, pay_pg_open(&options, &world->pg, &world->err));
    drop_slow_commit(world);
}

static void commit_with_a_warning_is_unknown(void **state)
{
    struct world *world = *state;

    make_slow_commit(world, "RAISE WARNING 'as when a wait for a standby is cancelled'");
    queue_insert_and_commit(world);
    assert_int_equal(pay_pg_run(world->pg, NULL, 3, &world->err), PAY_UNKNOWN);
    assert_true(pay_pg_usable(world->pg));
    assert_int_equal(count_rows(world), 1);
    drop_slow_commit(world);
}

static void error_at_commit_is_its_own_class(void **state)
{
    struct world *world = *state;

    make_slow_commit(world, "RAISE EXCEPTION 'no' USING ERRCODE = '40001'");
    queue_insert_and_commit(world);
    assert_int_equal(pay_pg_run(world->pg, NULL, 3, &world->err), PAY_RETRY);
    assert_int_equal(pay_pg_failure(world->pg)->what.kind, PAY_PG_KIND_SERIALIZATION);
    assert_int_equal(count_rows(world), 0);
    drop_slow_commit(world);
}

static void lost_session_elsewhere(void **state)
{
    static const struct pay_pg_stmt read = {"nap_read", "SELECT 1 FROM pg_sleep(60)", true};
    static const struct pay_pg_stmt write = {
        "nap_write", "INSERT INTO t SELECT 5, NULL, 1 FROM pg_sleep(60)", false};
    struct world *world = *state;
    const struct {
        const struct pay_pg_stmt *stmt;
        const char *starts;
        bool in_transaction;
        enum pay_status want;
    } cases[] = {
        {&read, "SELECT 1 FROM", false, PAY_RETRY},
        {&write, "INSERT INTO t", false, PAY_UNKNOWN},
        {&write, "INSERT INTO t", true, PAY_RETRY},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (cases[i].in_transaction) {
            must(world, pay_pg_begin(world->pg, &world->err));
        }
        must(world, pay_pg_queue(world->pg, cases[i].stmt, NULL, &world->err));
        must(world, pay_pg_send(world->pg, &world->err));
        end_session_in(world, pay_pg_backend_pid(world->pg), cases[i].starts);
        assert_int_equal(pay_pg_run(world->pg, NULL, 1, &world->err), cases[i].want);
        assert_false(pay_pg_usable(world->pg));
        must(world, pay_pg_reconnect(world->pg, &world->err));
    }
}

static void session_that_died_while_idle_is_retry(void **state)
{
    static const struct pay_pg_stmt kill = {"kill_now", "SELECT pg_terminate_backend($1, 10000)",
                                            false};
    struct world *world = *state;

    pay_pg_params_reset(world->params);
    pay_pg_add_int4(world->params, pay_pg_backend_pid(world->pg));
    must(world, pay_pg_exec(world->other, &kill, world->params, NULL, &world->err));
    assert_int_equal(pay_pg_exec(world->pg, &count_t, NULL, NULL, &world->err), PAY_RETRY);
    must(world, pay_pg_reconnect(world->pg, &world->err));
    must(world, pay_pg_exec(world->pg, &count_t, NULL, NULL, &world->err));
}

static void session_settings_are_ours(void **state)
{
    static const struct pay_pg_stmt show = {
        "show",
        "SELECT current_setting('search_path'), current_setting('statement_timeout'),"
        " current_setting('TimeZone'), current_setting('application_name'),"
        " current_setting('transaction_isolation'), current_setting('transaction_read_only'),"
        " current_setting('work_mem')",
        true};
    char conninfo[512];
    struct world *world = *state;
    struct pay_pg_options options = options_of(world);
    struct pay_pg *pg = NULL;
    struct pay_pg_result *r = NULL;
    int64_t now_us = 0;

    (void)snprintf(conninfo, sizeof conninfo,
                   "%s options='-c work_mem=3MB -c search_path=public' application_name=theirs",
                   server());
    options.conninfo = conninfo;
    options.read_only = true;
    options.statement_timeout_ms = 1234;
    must(world, pay_pg_open(&options, &pg, &world->err));
    must(world, pay_pg_exec(pg, &show, NULL, &r, &world->err));
    assert_string_equal(pay_pg_text(r, 0, 0).ptr, world->schema);
    assert_string_equal(pay_pg_text(r, 0, 1).ptr, "1234ms");
    assert_string_equal(pay_pg_text(r, 0, 2).ptr, "UTC");
    assert_string_equal(pay_pg_text(r, 0, 3).ptr, "payfact-test");
    assert_string_equal(pay_pg_text(r, 0, 4).ptr, "read committed");
    assert_string_equal(pay_pg_text(r, 0, 5).ptr, "on");
    assert_string_equal(pay_pg_text(r, 0, 6).ptr, "3MB");
    pay_pg_result_free(r);
    must(world, pay_pg_server_now(pg, &now_us, &world->err));
    int64_t off_us = now_us - pay_clock_wall_us();
    assert_true(off_us > -INT64_C(60000000) && off_us < INT64_C(60000000));
    pay_pg_free(pg);
}

static void bad_settings_and_absent_servers(void **state)
{
    struct world *world = *state;
    struct pay_pg *pg = NULL;
    struct pay_pg_options options = options_of(world);

    options.conninfo = "host=127.0.0.1 port=1 nonsense";
    assert_int_equal(pay_pg_open(&options, &pg, &world->err), PAY_FATAL);
    options.conninfo = "host=127.0.0.1 port=1";
    assert_int_equal(pay_pg_open(&options, &pg, &world->err), PAY_RETRY);
    options.search_path = "a -c x=y";
    assert_int_equal(pay_pg_open(&options, &pg, &world->err), PAY_FATAL);
    options.search_path = "";
    options.password_file = "/nonexistent/password";
    assert_int_equal(pay_pg_open(&options, &pg, &world->err), PAY_FATAL);
    assert_null(pg);
    assert_null(pay_pg_free(NULL));
}

static void backoff_grows_to_its_bound(void **state)
{
    struct pay_pg_backoff backoff = {.min_ms = 100, .max_ms = 1000};
    static const int whole[] = {100, 200, 400, 800, 1000, 1000, 1000};

    (void)state;
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        int pause = pay_pg_backoff_next_ms(&backoff);
        assert_true(pause >= whole[i] / 2 && pause <= whole[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_round_trip),
        cmocka_unit_test(arrays_round_trip),
        cmocka_unit_test(large_batch_passes),
        cmocka_unit_test(pipeline_gives_results_in_order),
        cmocka_unit_test(failure_skips_the_rest_and_rolls_back),
        cmocka_unit_test(classes_come_from_the_server),
        cmocka_unit_test(parameters_over_the_maximum_are_refused),
        cmocka_unit_test(commit_of_a_failed_transaction_is_retry),
        cmocka_unit_test(session_ended_in_commit_is_unknown),
        cmocka_unit_test(commit_without_answer_is_unknown),
        cmocka_unit_test(commit_with_a_warning_is_unknown),
        cmocka_unit_test(error_at_commit_is_its_own_class),
        cmocka_unit_test(lost_session_elsewhere),
        cmocka_unit_test(session_that_died_while_idle_is_retry),
        cmocka_unit_test(session_settings_are_ours),
        cmocka_unit_test(bad_settings_and_absent_servers),
        cmocka_unit_test(backoff_grows_to_its_bound),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
