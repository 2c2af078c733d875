/* SPDX-License-Identifier: Apache-2.0 */
/* A deadline that can never be decided: one case and one dead letter for each due time, however
 * often its input comes, and a row that comes back later each time until the payment is mended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/contracts/keys.h"
#include "tests/integration/processor/world.h"

#define P payment_id(0)
#define DUE "SELECT (extract(epoch FROM due_at) * 1000000)::int8 FROM payfact.payment_deadline"
#define SECOND INT64_C(1000000)

static void expect_rows(struct world *world, const char *from, int64_t count)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM payfact.%s", from);
    assert_int_equal(number(world, sql), count);
}

/* Paid; no decision wrote its reservations; its expiry has been due once. */
static void break_payment(struct world *world)
{
    add_create(world, P);
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_paid");
    turn(world);
    pay_testdb_run(&world->db, "ALTER TABLE payfact.payment_amount DISABLE TRIGGER USER;"
                               " UPDATE payfact.payment_amount SET refund_reserved_minor = 5;"
                               " DELETE FROM payfact.payment_deadline;"
                               " INSERT INTO payfact.payment_deadline (due_at, kind, aggregate_id,"
                               " payment_id, lease_until, tries) SELECT now() - interval '1 min',"
                               " 'ORDER_EXPIRY', payment_id, payment_id, now() + interval '1 min',"
                               " 1 FROM payfact.payment_order");
}

static void mend_payment(struct world *world)
{
    pay_testdb_run(&world->db, "UPDATE payfact.payment_amount SET refund_reserved_minor = 0");
}

/* As recovery makes it of the row, which it has leased: a new record of one due time each time. */
static void add_expiry(struct world *world, int64_t due_at_us)
{
    const struct pay_payment_input input = {
        .input_id = PAY_STR("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        .kind = PAY_WIRE_DEADLINE,
        .source = PAY_SOURCE_LOCAL,
        .evidence_level = PAY_EVIDENCE_LOCAL,
        .payment_id = pay_str_of(P),
        .transport_key = PAY_STR("x"),
        .deadline = {PAY_STR("ORDER_EXPIRY"), pay_str_of(P), due_at_us},
        .received_at_us = 1,
    };
    add_input(world, &input, P);
}

static void expect_event(struct world *world, int64_t due_at_us, const char *status, int deliveries)
{
    char from[256];
    (void)snprintf(from, sizeof from,
                   "channel_event WHERE kind = 'POISON' AND transport_key = 'ORDER_EXPIRY:%s:%lld'"
                   " AND status = '%s' AND delivery_count = %d",
                   P, (long long)due_at_us, status, deliveries);
    expect_rows(world, from, 1);
}

/* Between the row's new due time and the condemning transaction's clock, which the event has. */
static int64_t rest_us(struct world *world)
{
    return number(world, "SELECT (extract(epoch FROM d.due_at - (SELECT max(first_seen_at) FROM"
                         " payfact.channel_event WHERE kind = 'POISON')) * 1000000)::int8 FROM"
                         " payfact.payment_deadline AS d WHERE d.lease_until IS NULL");
}

static void a_due_that_cannot_be_decided_is_one_case_and_rests_longer_each_time(void **state)
{
    struct world *world = *state;
    break_payment(world);
    const int64_t first_us = number(world, DUE);
    add_expiry(world, first_us);
    add_expiry(world, first_us); /* a second lease's copy, in one batch with it */
    add_create(world, payment_id(1));
    turn(world);
    expect_rows(world, "payment_order", 2); /* the rest goes on */
    expect_event(world, first_us, "DEAD", 2);
    expect_rows(world, "manual_case WHERE kind = 'DEAD_INPUT' AND status = 'OPEN'", 1);
    assert_int_equal(world->letter_count, 1);
    assert_int_equal(number(world, "SELECT tries FROM payfact.payment_deadline WHERE kind ="
                                   " 'ORDER_EXPIRY' AND lease_until IS NULL AND due_at > now()"
                                   " AND payment_id = (SELECT min(payment_id) FROM"
                                   " payfact.payment_order)"),
                     1);
}

static void each_due_rests_longer_and_has_a_case_of_its_own(void **state)
{
    struct world *world = *state;
    static const struct {
        int tries, rest_s;
    } table[] = {{1, 30}, {2, 60}, {3, 120}, {50, 21600}};
    int64_t due_us = 0;
    break_payment(world);
    for (size_t i = 0; i < 4; i++) {
        char sql[160];
        (void)snprintf(sql, sizeof sql, "UPDATE payfact.payment_deadline SET tries = %d",
                       table[i].tries);
        pay_testdb_run(&world->db, sql); /* leased again */
        due_us = number(world, DUE);
        add_expiry(world, due_us);
        turn(world);
        assert_int_equal(rest_us(world), table[i].rest_s * SECOND);
        add_expiry(world, due_us); /* late: the row is another's by now */
        turn(world);
        assert_int_equal(rest_us(world), table[i].rest_s * SECOND);
        expect_event(world, due_us, "DEAD", 2);
        expect_rows(world, "manual_case WHERE kind = 'DEAD_INPUT'", (int64_t)i + 1);
        assert_int_equal(world->letter_count, i + 1);
    }
    mend_payment(world);
    const int64_t last_us = number(world, DUE);
    add_expiry(world, due_us); /* of a due that is past: decided as any old one */
    add_expiry(world, last_us);
    turn(world);
    expect_rows(world, "payment_deadline", 0);
    expect_event(world, due_us, "DECIDED", 3);
    expect_rows(world, "channel_event WHERE kind = 'DEADLINE' AND status = 'DECIDED'", 1);
    expect_rows(world,
                "manual_case WHERE status = 'RESOLVED' AND resolution_code = 'DECIDED' AND"
                " resolved_by = 'payfact-processor'",
                1);
    expect_rows(world, "manual_case WHERE status = 'OPEN'", 3); /* a person has seen these */
    assert_int_equal(world->letter_count, 4);
}

/* Its process died between the commit and the letter's acknowledgement. */
static void the_same_record_again_brings_the_letter_that_may_be_missing(void **state)
{
    struct world *world = *state;
    break_payment(world);
    const int64_t due_us = number(world, DUE);
    const int64_t offset = world->offset;
    add_expiry(world, due_us);
    turn(world);
    world->offset = offset;
    add_expiry(world, due_us);
    turn(world);
    assert_int_equal(world->letter_count, 2);
    assert_memory_equal(world->letters[0].ptr, world->letters[1].ptr, 16); /* one id */
    expect_event(world, due_us, "DEAD", 2);
    expect_rows(world, "manual_case", 1);
    assert_int_equal(rest_us(world), 30 * SECOND);
}

/* Not even the row's move is taken: what remains is poison as any other, and the process goes on.
 */
static void a_due_whose_row_cannot_be_moved_is_kept_by_its_place(void **state)
{
    struct world *world = *state;
    break_payment(world);
    const int64_t offset = world->offset;
    pay_testdb_run(&world->db, "ALTER TABLE payfact.payment_deadline ADD CHECK (due_at <"
                               " '2000-01-01') NOT VALID");
    add_expiry(world, number(world, DUE));
    turn(world);
    char from[160];
    (void)snprintf(from, sizeof from,
                   "channel_event WHERE kind = 'POISON' AND transport_key ="
                   " 'payfact.inputs:0:%lld' AND status = 'DEAD'",
                   (long long)offset);
    expect_rows(world, from, 1);
    expect_rows(world, "manual_case WHERE kind = 'DEAD_INPUT'", 1);
    assert_int_equal(world->letter_count, 1);
    expect_rows(world, "payment_deadline WHERE due_at < now() AND lease_until IS NOT NULL", 1);
}

#define TEST(test_) cmocka_unit_test_setup_teardown(test_, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_due_that_cannot_be_decided_is_one_case_and_rests_longer_each_time),
        TEST(each_due_rests_longer_and_has_a_case_of_its_own),
        TEST(the_same_record_again_brings_the_letter_that_may_be_missing),
        TEST(a_due_whose_row_cannot_be_moved_is_kept_by_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
