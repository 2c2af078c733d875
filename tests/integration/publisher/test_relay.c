/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The publisher's statements on a real server: a fence that has been passed on changes nothing, and
 * what was held when a pass began is held to its end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/relay.h"
#include "tests/support/testdb.h"

#define SHARDS 4
#define LONG_MS 60000

struct world {
    struct pay_testdb db;
    struct pay_pg *pg;
    struct pay_relay a, b;
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
    struct world *world = calloc(1, sizeof *world);
    *state = world;
    pay_testdb_open(&world->db);
    const struct pay_pg_options options = {.conninfo = world->db.conninfo};
    must(world, pay_pg_open(&options, &world->pg, &world->err));
    must(world, pay_relay_init(&world->a, world->pg, "a", LONG_MS, &world->err));
    must(world, pay_relay_init(&world->b, world->pg, "b", LONG_MS, &world->err));
    must(world, pay_relay_connected(&world->a, &world->err));
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    pay_relay_free(&world->a);
    pay_relay_free(&world->b);
    world->pg = pay_pg_free(world->pg);
    pay_testdb_close(&world->db);
    free(world);
    return 0;
}

static size_t take(struct world *world, struct pay_relay *relay, size_t want, bool own_again,
                   struct pay_relay_lease leases[SHARDS])
{
    const struct pay_relay_wish wish = {SHARDS, want, own_again};
    size_t count = 0;
    must(world, pay_relay_take(relay, &wish, leases, &count, &world->err));
    return count;
}

static void expire(struct world *world)
{
    pay_testdb_run(&world->db, "UPDATE payfact.publisher_lease SET expires_at = '-infinity'");
}

static void add_rows(struct world *world, const char *values)
{
    char sql[1024] = "INSERT INTO payfact.payment_outbox"
                     " (shard, id, topic, key, payload, created_at, attempts, available_at,"
                     " dead_at, dead_reason) VALUES ";
    assert_true(strlen(sql) + strlen(values) < sizeof sql);
    strcat(sql, values); /* NOLINT: checked above */
    pay_testdb_run(&world->db, sql);
}

static int64_t rows_left(struct world *world)
{
    return pay_testdb_number(&world->db, "SELECT count(*) FROM payfact.payment_outbox");
}

static void shards_are_shared_and_pass_on_with_a_higher_fence(void **state)
{
    struct world *world = *state;
    struct pay_relay_lease mine[SHARDS];
    struct pay_relay_lease theirs[SHARDS];
    assert_int_equal(take(world, &world->a, 3, false, mine), 3);
    assert_int_equal(take(world, &world->b, SHARDS, false, theirs), 1);
    assert_int_equal(theirs[0].shard, 3);
    assert_int_equal(take(world, &world->b, SHARDS, false, theirs), 0);
    expire(world);
    assert_int_equal(take(world, &world->b, 1, false, theirs), 1);
    assert_int_equal(theirs[0].shard, mine[0].shard);
    assert_int_equal(theirs[0].fence, mine[0].fence + 1);

    size_t count = 3;
    must(world, pay_relay_renew(&world->a, mine, &count, &world->err));
    assert_int_equal(count, 2); /* Expired, but nobody took them. */
}

static void a_new_life_takes_what_stands_under_its_name(void **state)
{
    struct world *world = *state;
    struct pay_relay_lease mine[SHARDS];
    struct pay_relay_lease again[SHARDS];
    assert_int_equal(take(world, &world->a, 2, true, mine), 2);
    assert_int_equal(take(world, &world->b, 2, true, again), 2);
    assert_int_equal(take(world, &world->a, SHARDS, false, again), 0);
    assert_int_equal(take(world, &world->a, SHARDS, true, again), 2);
    assert_int_equal(again[0].shard, mine[0].shard);
    assert_true(again[0].fence > mine[0].fence);
}

/* 0, where nothing ever stands, of a row that is not there. */
static uint64_t tid_of(struct world *world, int64_t shard, int64_t id)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT coalesce(max((ctid::text::point)[0]::int8 * 65536 +"
                   " (ctid::text::point)[1]::int8), 0) FROM payfact.payment_outbox"
                   " WHERE shard = %d AND id = %d",
                   (int)shard, (int)id);
    return (uint64_t)pay_testdb_number(&world->db, sql);
}

/* Row by row of the leases in turn. @return leases that were ours. */
static size_t delete_rows(struct world *world, struct pay_relay *relay,
                          const struct pay_relay_lease *leases, size_t lease_count,
                          const int64_t *ids, size_t count)
{
    int64_t shards[8];
    uint64_t tids[8];
    struct pay_relay_lease ours[SHARDS];
    size_t ours_count = 0;
    assert_true(count <= sizeof shards / sizeof shards[0]);
    for (size_t i = 0; i < count; i++) {
        shards[i] = leases[i % lease_count].shard;
        tids[i] = tid_of(world, shards[i], ids[i]);
    }
    const struct pay_relay_delivered delivered = {leases, lease_count, shards, ids, tids, count};
    must(world, pay_relay_delete(relay, &delivered, ours, &ours_count, &world->err));
    for (size_t i = 0; i < ours_count; i++) {
        assert_in_range(ours[i].shard, 0, SHARDS - 1);
    }
    return ours_count;
}

static void one_delete_of_several_shards_leaves_those_that_were_passed_on(void **state)
{
    struct world *world = *state;
    struct pay_relay_lease mine[SHARDS];
    struct pay_relay_lease theirs[SHARDS];
    const int64_t ids[] = {1, 2, 3, 4};
    add_rows(world, "(0, 1, 'events', 'A', 'x', now(), 0, NULL, NULL, NULL),"
                    "(1, 2, 'events', 'B', 'x', now(), 0, NULL, NULL, NULL),"
                    "(0, 3, 'events', 'A', 'x', now(), 0, NULL, NULL, NULL),"
                    "(1, 4, 'events', 'B', 'x', now(), 0, NULL, NULL, NULL),"
                    "(1, 1, 'events', 'B', 'x', now(), 0, NULL, NULL, NULL)");
    assert_int_equal(take(world, &world->a, 2, false, mine), 2);
    pay_testdb_run(&world->db, "UPDATE payfact.publisher_lease SET expires_at = '-infinity'"
                               " WHERE shard = 0");
    assert_int_equal(take(world, &world->b, 1, false, theirs), 1);
    assert_int_equal(theirs[0].shard, 0);

    assert_int_equal(delete_rows(world, &world->a, mine, 2, ids, 4), 1);
    /* Shard 0 is another's; (1, 1) has the number of a row of shard 0 and was not asked for. */
    assert_int_equal(rows_left(world), 3);
    assert_int_equal(pay_testdb_number(&world->db, "SELECT count(*) FROM payfact.payment_outbox"
                                                   " WHERE shard = 0"),
                     2);
    assert_int_equal(delete_rows(world, &world->b, theirs, 1, ids, 4), 1);
    assert_int_equal(rows_left(world), 1);
}

/* A table that was rewritten: other rows stand where the delivered ones stood. */
static void a_row_that_moved_is_deleted_and_what_stands_there_now_is_not(void **state)
{
    struct world *world = *state;
    struct pay_relay_lease mine[SHARDS];
    struct pay_relay_lease ours[SHARDS];
    size_t ours_count = 0;
    add_rows(world, "(0, 1, 'events', 'A', 'x', now(), 0, NULL, NULL, NULL),"
                    "(0, 2, 'events', 'B', 'x', now(), 0, NULL, NULL, NULL),"
                    "(0, 3, 'events', 'C', 'x', now(), 0, NULL, NULL, NULL)");
    assert_int_equal(take(world, &world->a, 1, false, mine), 1);
    const int64_t shards[] = {0, 0};
    const int64_t ids[] = {1, 2};
    const uint64_t tids[] = {tid_of(world, 0, 3), tid_of(world, 0, 2)}; /* 1 is elsewhere. */
    const struct pay_relay_delivered delivered = {mine, 1, shards, ids, tids, 2};
    must(world, pay_relay_delete(&world->a, &delivered, ours, &ours_count, &world->err));
    assert_int_equal(ours_count, 1);
    assert_int_equal(rows_left(world), 1);
    assert_int_equal(pay_testdb_number(&world->db, "SELECT id FROM payfact.payment_outbox"), 3);
}

static void a_fence_that_was_passed_on_writes_nothing(void **state)
{
    struct world *world = *state;
    struct pay_relay_lease mine[SHARDS];
    struct pay_relay_lease theirs[SHARDS];
    const int64_t ids[] = {1, 2};
    bool ours = true;
    bool dead = true;
    add_rows(world, "(0, 1, 'events', 'K', 'x', now(), 0, NULL, NULL, NULL),"
                    "(0, 2, 'events', 'K', 'x', now(), 0, NULL, NULL, NULL)");
    assert_int_equal(take(world, &world->a, 1, false, mine), 1);
    expire(world);
    assert_int_equal(take(world, &world->b, 1, false, theirs), 1);

    assert_int_equal(delete_rows(world, &world->a, mine, 1, ids, 2), 0);
    assert_int_equal(rows_left(world), 2);
    const struct pay_relay_refusal refusal = {mine[0], 1, "TEST", 1000, 1};
    must(world, pay_relay_refuse(&world->a, &refusal, &ours, &dead, &world->err));
    assert_false(ours);
    assert_false(dead);
    must(world, pay_relay_release(&world->a, mine[0], &world->err));

    assert_int_equal(delete_rows(world, &world->b, theirs, 1, ids, 1), 1);
    assert_int_equal(rows_left(world), 1);
    /* The rows were gone already: no sign of a lost lease. */
    assert_int_equal(delete_rows(world, &world->b, theirs, 1, ids, 2), 1);
    assert_int_equal(rows_left(world), 0);
}

/* @return ids read, as a decimal number: 123 are the rows 1, 2 and 3. */
static int64_t read_ids(struct world *world, int64_t after_id, int64_t skip_id, int64_t began_us)
{
    const struct pay_relay_range range = {0, after_id, INT64_MAX};
    const struct pay_relay_request request = {&range, 1, &skip_id, 1, 100, began_us};
    struct pay_pg_result *rows = NULL;
    int64_t ids = 0;
    must(world, pay_relay_read(&world->a, &request, &rows, &world->err));
    for (int64_t id = 1; id < 10; id++) { /* In any order. */
        for (size_t i = 0; i < pay_pg_rows(rows); i++) {
            ids = pay_pg_int(rows, i, PAY_RELAY_ID) == id ? ids * 10 + id : ids;
        }
    }
    pay_pg_result_free(rows);
    return ids;
}

static void what_was_held_when_the_pass_began_is_held_to_its_end(void **state)
{
    struct world *world = *state;
    int64_t last_id = 0;
    int64_t now_us = 0;
    must(world, pay_relay_last_id(&world->a, &last_id, &now_us, &world->err));
    add_rows(world, "(0, 1, 'events', 'FREE', 'x', now(), 0, NULL, NULL, NULL),"
                    "(0, 2, 'events', 'DEAD', 'x', now(), 3, now(), now(), 'TEST'),"
                    "(0, 3, 'events', 'DEAD', 'x', now(), 0, NULL, NULL, NULL),"
                    "(0, 4, 'events', 'HELD', 'x', now(), 1, now(), NULL, NULL),"
                    "(0, 5, 'events', 'HELD', 'x', now(), 0, NULL, NULL, NULL),"
                    "(0, 6, 'events', 'FREE', 'x', now(), 0, NULL, NULL, NULL),"
                    "(1, 7, 'events', 'FREE', 'x', now(), 0, NULL, NULL, NULL)");
    /* Row 4 became available after this pass began: row 5 may not overtake it. */
    assert_int_equal(read_ids(world, 0, 0, now_us), 16);
    assert_int_equal(read_ids(world, 4, 0, now_us), 6);
    must(world, pay_relay_last_id(&world->a, &last_id, &now_us, &world->err));
    assert_int_equal(read_ids(world, 0, 0, now_us), 1456);
    assert_int_equal(read_ids(world, 0, 4, now_us), 156);
}

static void the_backlog_says_how_many_how_old_and_how_many_dead(void **state)
{
    struct world *world = *state;
    struct pay_relay_backlog backlog = {0};
    must(world, pay_relay_backlog(&world->a, SHARDS, &backlog, &world->err));
    assert_int_equal(backlog.rows, 0);
    assert_int_equal(backlog.oldest_age_us, 0);
    add_rows(world, "(0, 5, 'events', 'A', 'x', now(), 0, NULL, NULL, NULL),"
                    "(3, 4, 'events', 'B', 'x', now() - interval '1 hour', 1, now(), now(), 'T')");
    must(world, pay_relay_backlog(&world->a, SHARDS, &backlog, &world->err));
    assert_int_equal(backlog.rows, 2);
    assert_int_equal(backlog.dead, 1);
    assert_in_range(backlog.oldest_age_us, INT64_C(3600000000), INT64_C(3900000000));
}

int main(void)
{
#define TEST(name_) cmocka_unit_test_setup_teardown(name_, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(shards_are_shared_and_pass_on_with_a_higher_fence),
        TEST(a_new_life_takes_what_stands_under_its_name),
        TEST(one_delete_of_several_shards_leaves_those_that_were_passed_on),
        TEST(a_row_that_moved_is_deleted_and_what_stands_there_now_is_not),
        TEST(a_fence_that_was_passed_on_writes_nothing),
        TEST(what_was_held_when_the_pass_began_is_held_to_its_end),
        TEST(the_backlog_says_how_many_how_old_and_how_many_dead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
