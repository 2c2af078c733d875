/* SPDX-License-Identifier: Apache-2.0 */
/* Memory has an end: what does not fit beside others comes after them, what does not fit alone is
 * dead with that as its reason, and what the heap has not now is tried again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/integration/processor/world.h"

#define P payment_id(0)
#define KIB ((size_t)1024)

/* pay_buf grows by this alone. */
static int realloc_failures;
static int realloc_skips;
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_realloc(void *memory, size_t bytes)
{
    if (realloc_failures > 0 && realloc_skips-- <= 0) {
        realloc_failures--;
        return NULL;
    }
    return __real_realloc(memory, bytes);
}

static void add_large(struct world *world, const char *payment, size_t bytes)
{
    uint8_t *body = calloc(1, bytes);
    struct pay_payment_input input = callback(payment, PAY_EV_ATTEMPT_PROCESSING, payment);
    input.evidence.ciphertext = (struct pay_bytes){body, bytes};
    add_input(world, &input, payment);
    free(body);
}

static int64_t count(struct world *world, const char *from)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM payfact.%s", from);
    return number(world, sql);
}

static enum pay_dead_reason reason_of(struct world *world, size_t letter)
{
    struct pay_dead_letter record;
    world_must(world, pay_dead_letter_decode(world->codec, world->letters[letter], world->arena,
                                             &record, &world->err));
    return record.reason;
}

static void turn_within(struct world *world, size_t batch_bytes, size_t try_bytes)
{
    world->batch_bytes_max = batch_bytes;
    world->try_bytes_max = try_bytes;
    struct pay_worker *worker = world_worker(world);
    world_must(world, turn_with(world, worker));
    (void)pay_worker_close(worker); /* always NULL */
}

static void a_batch_larger_than_the_arena_is_decided_in_parts(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 40; i++) {
        add_create(world, payment_id(i));
    }
    for (int i = 0; i < 40; i++) {
        add_large(world, payment_id(i), 60 * KIB);
    }
    turn_within(world, 500 * KIB, 0);
    assert_int_equal(world->letter_count, 0);
    assert_int_equal(count(world, "command WHERE status = 'ACCEPTED'"), 40);
    assert_int_equal(count(world, "channel_event WHERE status = 'DECIDED'"), 40);
    assert_int_equal(count(world, "payment_attempt WHERE status = 'PROCESSING'"), 40);
    assert_int_equal(count(world, "manual_case"), 0);
    assert_int_equal(world->waits, 0);
}

static void a_record_too_large_for_the_arena_is_dead_and_the_rest_goes_on(void **state)
{
    struct world *world = *state;
    add_create(world, P);
    add_large(world, P, 300 * KIB);
    add_create(world, payment_id(1));
    turn_within(world, 200 * KIB, 0);
    assert_int_equal(world->letter_count, 1);
    assert_int_equal(reason_of(world, 0), PAY_DEAD_TOO_LARGE);
    assert_int_equal(count(world, "channel_event WHERE kind = 'POISON' AND verification ="
                                  " 'TOO_LARGE' AND body IS NOT NULL"),
                     1);
    assert_int_equal(count(world, "payment_order"), 2);
    assert_int_equal(world->waits, 0);
}

/* Two payments of which each fits, and both do not. */
static void a_batch_too_large_for_one_try_is_halved(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 16; i++) {
        add_create(world, payment_id(i));
    }
    turn_within(world, 0, 200 * KIB);
    assert_int_equal(world->letter_count, 0);
    assert_int_equal(count(world, "payment_order"), 16);
    assert_true(number(world, "SELECT count(DISTINCT decided_at) FROM"
                              " payfact.payment_state_history") > 1);
}

static void a_decision_too_large_for_one_try_is_dead(void **state)
{
    struct world *world = *state;
    add_create(world, P);
    turn_within(world, 0, 8 * KIB);
    assert_int_equal(world->letter_count, 1);
    assert_int_equal(reason_of(world, 0), PAY_DEAD_TOO_LARGE);
    assert_int_equal(count(world, "payment_order"), 0);
    assert_int_equal(world->waits, 0);
}

/* One turn in which the heap has nothing at its nth growth. @return true: it came so far. */
static bool starve(struct world *world, int nth)
{
    struct pay_worker *worker = world_worker(world); /* Its buffers have yet to grow. */
    realloc_skips = nth;
    realloc_failures = 1;
    const enum pay_status status = turn_with(world, worker);
    const bool is_starved = realloc_failures == 0;
    realloc_failures = 0;
    world_must(world, status);
    (void)pay_worker_close(worker); /* always NULL */
    return is_starved;
}

/* Wherever the heap has nothing for a moment: the same facts, and no letter. */
static void what_the_heap_has_not_now_is_tried_again(void **state)
{
    struct world *world = *state;
    int nth = 0;
    bool is_starved = true;
    for (; is_starved; nth++) {
        assert_true(nth < 100);
        add_create(world, payment_id(nth)); /* Alone: there is nothing to be halved. */
        is_starved = starve(world, nth);
        add_callback(world, payment_id(nth), PAY_EV_ATTEMPT_SUCCEEDED, payment_id(nth));
        (void)starve(world, nth);
    }
    assert_true(nth > 5);
    assert_true(world->waits > 0);
    assert_int_equal(world->letter_count, 0);
    assert_int_equal(count(world, "manual_case"), 0);
    assert_int_equal(count(world, "command WHERE status = 'ACCEPTED'"), nth);
    assert_int_equal(count(world, "payment_order WHERE status = 'SUCCEEDED'"), nth);
}

static void a_dead_letter_waits_for_the_heap_too(void **state)
{
    struct world *world = *state;
    for (int nth = 0; nth < 20; nth++) {
        add_bytes(world, "k", "junk", 4);
        (void)starve(world, nth);
    }
    assert_true(world->waits > 0);
    assert_int_equal(world->letter_count, 20);
    assert_int_equal(count(world, "channel_event WHERE kind = 'POISON' AND body IS NOT NULL"), 20);
}

/* Its bytes cannot be sealed anywhere: the row and the letter name its place. */
static void a_record_larger_than_any_may_be_does_not_stop_the_others(void **state)
{
    struct world *world = *state;
    const size_t len = PAY_DEAD_LETTER_BYTES_MAX + 1;
    uint8_t *bytes = calloc(1, len);
    add_create(world, P);
    add_bytes(world, "k", bytes, len);
    add_create(world, payment_id(1));
    free(bytes);
    turn(world);
    assert_int_equal(world->letter_count, 1);
    assert_int_equal(reason_of(world, 0), PAY_DEAD_TOO_LARGE);
    assert_int_equal(count(world, "channel_event WHERE kind = 'POISON' AND body IS NULL AND sha256"
                                  " IS NOT NULL"),
                     1);
    assert_int_equal(count(world, "manual_case WHERE kind = 'DEAD_INPUT'"), 1);
    assert_int_equal(count(world, "payment_order"), 2);
}

static void a_hostile_timestamp_is_no_time(void **state)
{
    static const int64_t times_ms[] = {INT64_MAX,       INT64_MIN, -1, 0, INT64_MAX / 1000 + 1,
                                       INT64_MAX / 1000};
    struct world *world = *state;
    for (size_t i = 0; i < sizeof times_ms / sizeof times_ms[0]; i++) {
        add_bytes(world, "k", "junk", 4);
        world->msgs[i].timestamp_ms = times_ms[i];
    }
    turn(world);
    assert_int_equal(world->letter_count, 6);
    assert_int_equal(count(world, "channel_event WHERE kind = 'POISON' AND received_at ="
                                  " '1970-01-01 00:00:00.000001Z'"),
                     5);
    assert_int_equal(count(world, "channel_event WHERE kind = 'POISON' AND received_at >"
                                  " '294000-01-01Z'"),
                     1);
}

#define TEST(test_) cmocka_unit_test_setup_teardown(test_, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_batch_larger_than_the_arena_is_decided_in_parts),
        TEST(a_record_too_large_for_the_arena_is_dead_and_the_rest_goes_on),
        TEST(a_batch_too_large_for_one_try_is_halved),
        TEST(a_decision_too_large_for_one_try_is_dead),
        TEST(what_the_heap_has_not_now_is_tried_again),
        TEST(a_dead_letter_waits_for_the_heap_too),
        TEST(a_record_larger_than_any_may_be_does_not_stop_the_others),
        TEST(a_hostile_timestamp_is_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
