/* SPDX-License-Identifier: Apache-2.0 */
/* How long a row that is due rests before it is due for somebody again, with the rights of recovery
 * and of the processor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/store/deadlines.h"
#include "tests/support/teststore.h"

struct world {
    struct pay_testdb db;
    struct pay_store *recovery, *processor;
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
    world->recovery = pay_teststore_open(&world->db, "recovery");
    world->processor = pay_teststore_open(&world->db, "processor");
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;
    world->recovery = pay_store_free(world->recovery);
    world->processor = pay_store_free(world->processor);
    pay_testdb_close(&world->db);
    free(world);
    return 0;
}

#define MINUTE INT64_C(60000000)

static const struct pay_store_lease_wish growing = {
    .max = 10,
    .lease_us = MINUTE,
    .lease_max_us = 15 * MINUTE,
    .grows = {[PAY_DEADLINE_ORDER_EXPIRY] = true},
};

static void add_due(struct world *world, const char *kind, int tries)
{
    char sql[256];
    (void)snprintf(sql, sizeof(sql),
                   "INSERT INTO payfact.payment_deadline (due_at, kind, aggregate_id, tries)"
                   " VALUES (to_timestamp(1700000000), '%s', '%s%d', %d)",
                   kind, kind, tries, tries);
    pay_testdb_run(&world->db, sql);
}

static size_t lease(struct world *world, struct pay_store_due rows[10], int64_t *ret_now_us)
{
    size_t count = 0;
    must(world, pay_store_deadline_lease(world->recovery, &growing, rows, &count, ret_now_us,
                                         &world->err));
    return count;
}

static void the_lease_of_what_waits_for_a_decision_doubles_with_each_try(void **state)
{
    struct world *world = *state;
    static const int64_t minutes[] = {1, 2, 4, 8, 15, 15};
    struct pay_store_due rows[10];
    int64_t now_us = 0;
    add_due(world, "ORDER_EXPIRY", 0);
    for (size_t i = 0; i < sizeof(minutes) / sizeof(minutes[0]); i++) {
        assert_int_equal(lease(world, rows, &now_us), 1);
        assert_int_equal(rows[0].tries, i + 1);
        assert_int_equal(rows[0].lease_until_us - now_us, minutes[i] * MINUTE);
        assert_int_equal(rows[0].due_at_us, INT64_C(1700000000000000)); /* of the input's key */
        assert_int_equal(lease(world, rows, &now_us), 0);
        pay_testdb_run(&world->db, "UPDATE payfact.payment_deadline SET lease_until = now()");
    }
    const struct pay_store_deadline decided = {.kind = PAY_DEADLINE_ORDER_EXPIRY,
                                               .aggregate_id = PAY_STR("ORDER_EXPIRY0"),
                                               .due_at_us = INT64_C(1700000000000001)};
    const struct pay_store_deadline *const pointer = &decided;
    must(world, pay_store_deadline_set(world->processor, &pointer, 1, &world->err));
    must(world, pay_store_flush(world->processor, &world->err));
    assert_int_equal(lease(world, rows, &now_us), 1); /* prompt again */
    assert_int_equal(rows[0].lease_until_us - now_us, MINUTE);
    pay_testdb_run(&world->db, "DELETE FROM payfact.payment_deadline");
    add_due(world, "ORDER_EXPIRY", 2000000000); /* no power of two holds it */
    assert_int_equal(lease(world, rows, &now_us), 1);
    assert_int_equal(rows[0].lease_until_us - now_us, 15 * MINUTE);
}

static void a_query_keeps_its_lease_unless_it_is_held(void **state)
{
    struct world *world = *state;
    struct pay_store_due rows[10];
    int64_t now_us = 0;
    add_due(world, "ANSWER", 2);
    add_due(world, "QUERY", 9);
    assert_int_equal(lease(world, rows, &now_us), 2);
    assert_int_equal(rows[0].lease_until_us - now_us, MINUTE);
    assert_int_equal(rows[1].lease_until_us - now_us, MINUTE);
    const size_t answer = rows[0].kind == PAY_DEADLINE_ANSWER ? 0 : 1;
    must(world, pay_store_deadline_hold(world->recovery, &growing, &rows[answer], 1, &world->err));
    assert_int_equal(pay_testdb_number(&world->db,
                                       "SELECT count(*) FROM payfact.payment_deadline WHERE"
                                       " tries = 3 AND lease_until - now() BETWEEN '3 min' AND"
                                       " '4 min'"),
                     1);
    /* Whoever has made it prompt meanwhile is right. */
    pay_testdb_run(&world->db, "UPDATE payfact.payment_deadline SET lease_until = NULL");
    must(world, pay_store_deadline_hold(world->recovery, &growing, rows, 2, &world->err));
    assert_int_equal(pay_testdb_number(&world->db,
                                       "SELECT count(*) FROM payfact.payment_deadline WHERE"
                                       " lease_until IS NULL"),
                     2);
}

static void a_release_is_no_try_and_may_keep_the_lease(void **state)
{
    struct world *world = *state;
    struct pay_store_due rows[10];
    int64_t now_us = 0;
    add_due(world, "ORDER_EXPIRY", 2);
    add_due(world, "ORDER_EXPIRY", 3);
    assert_int_equal(lease(world, rows, &now_us), 2);
    rows[0].keeps_lease = true;
    must(world, pay_store_deadline_release(world->recovery, rows, 2, &world->err));
    assert_int_equal(pay_testdb_number(&world->db, "SELECT count(*) FROM payfact.payment_deadline"
                                                   " WHERE aggregate_id = 'ORDER_EXPIRY' || tries"),
                     2);
    const struct pay_store_due refused = rows[0];
    assert_int_equal(lease(world, rows, &now_us), 1);
    assert_string_not_equal(rows[0].aggregate_id, refused.aggregate_id);
}

static void a_postponed_row_rests_longer_with_each_try(void **state)
{
    struct world *world = *state;
    static const char now_sql[] = "SELECT (extract(epoch FROM now()) * 1000000)::int8";
    static const char due_sql[] = "SELECT (extract(epoch FROM due_at) * 1000000)::int8 FROM"
                                  " payfact.payment_deadline";
    static const struct {
        int tries, rest_s;
    } table[] = {
        {0, 30}, {1, 30}, {2, 60}, {5, 480}, {10, 15360}, {11, 21600}, {2000000000, 21600}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        char id[64];
        (void)snprintf(id, sizeof(id), "ORDER_EXPIRY%d", table[i].tries);
        add_due(world, "ORDER_EXPIRY", table[i].tries);
        pay_testdb_run(&world->db, "UPDATE payfact.payment_deadline SET lease_until = now()");
        struct pay_store_deadline row = {.kind = PAY_DEADLINE_ORDER_EXPIRY,
                                         .aggregate_id = pay_str_of(id),
                                         .due_at_us = INT64_C(1700000000000001)};
        const struct pay_store_deadline *const pointer = &row;
        must(world, pay_store_deadline_postpone(world->processor, &pointer, 1, &world->err));
        must(world, pay_store_flush(world->processor, &world->err));
        assert_int_equal(pay_testdb_number(&world->db, due_sql), row.due_at_us - 1); /* another's */
        row.due_at_us--;
        const int64_t before_us = pay_testdb_number(&world->db, now_sql);
        must(world, pay_store_deadline_postpone(world->processor, &pointer, 1, &world->err));
        must(world, pay_store_flush(world->processor, &world->err));
        const int64_t at_us =
            pay_testdb_number(&world->db, due_sql) - (int64_t)table[i].rest_s * 1000000;
        assert_true(before_us <= at_us && at_us <= pay_testdb_number(&world->db, now_sql));
        assert_int_equal(pay_testdb_number(&world->db, "SELECT count(*) FROM"
                                                       " payfact.payment_deadline WHERE"
                                                       " lease_until IS NULL"),
                         1);
        pay_testdb_run(&world->db, "DELETE FROM payfact.payment_deadline");
    }
}

#define TEST(test_) cmocka_unit_test_setup_teardown(test_, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_lease_of_what_waits_for_a_decision_doubles_with_each_try),
        TEST(a_query_keeps_its_lease_unless_it_is_held),
        TEST(a_release_is_no_try_and_may_keep_the_lease),
        TEST(a_postponed_row_rests_longer_with_each_try),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
