/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: calls come out in their order and in batches; whoever gathers is woken by a call that does
 * not wait, by enough calls and by the end, not by each call.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include <pthread.h>

#include "services/ingest/webhook.h"

#define LONG_US INT64_C(3600000000) /* Whoever waits it out is stopped by the test's time-out. */
#define CALLS (2 * PAY_WEBHOOK_BATCH_MAX)

static struct pay_call_queue queue;
static struct pay_webhook_call calls[CALLS];

static int setup(void **state)
{
    (void)state;
    pay_call_queue_init(&queue);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pay_call_queue_free(&queue);
    return 0;
}

static void put(size_t from, size_t count, bool at_once)
{
    for (size_t i = from; i < from + count; i++) {
        assert_true(pay_call_queue_put(&queue, &calls[i], SIZE_MAX, at_once));
    }
}

static void expect(int64_t gather_us, size_t from, size_t count)
{
    struct pay_webhook_call *taken[PAY_WEBHOOK_BATCH_MAX];
    assert_int_equal(pay_call_queue_take(&queue, gather_us, taken), count);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(taken[i], &calls[from + i]);
    }
}

static void batches_are_in_order_and_bounded(void **state)
{
    (void)state;
    put(0, PAY_WEBHOOK_BATCH_MAX + 3, false);
    expect(0, 0, PAY_WEBHOOK_BATCH_MAX);
    expect(0, PAY_WEBHOOK_BATCH_MAX, 3);
    put(5, 1, false);
    expect(0, 5, 1);
}

static void a_full_queue_refuses(void **state)
{
    (void)state;
    put(0, 2, false);
    assert_false(pay_call_queue_put(&queue, &calls[2], 2, false));
    assert_true(pay_call_queue_put(&queue, &calls[2], 3, false));
    expect(0, 0, 3);
}

static void enough_or_one_that_does_not_wait_ends_gathering(void **state)
{
    (void)state;
    put(0, PAY_WEBHOOK_BATCH_MAX, false);
    expect(LONG_US, 0, PAY_WEBHOOK_BATCH_MAX);
    put(0, 1, false);
    put(1, 1, true);
    expect(LONG_US, 0, 2);
    put(0, 1, false);
    expect(1000, 0, 1); /* The time is over. */
}

static void what_is_left_comes_before_the_end(void **state)
{
    (void)state;
    put(0, 2, false);
    pay_call_queue_stop(&queue);
    expect(LONG_US, 0, 2);
    expect(LONG_US, 0, 0);
}

struct taker {
    pthread_t thread;
    size_t count;
};

static void *take(void *arg)
{
    struct taker *taker = arg;
    struct pay_webhook_call *taken[PAY_WEBHOOK_BATCH_MAX];
    size_t count = 0;
    while ((count = pay_call_queue_take(&queue, LONG_US, taken)) > 0) {
        taker->count += count;
    }
    return NULL;
}

/* However the two meet: it sleeps on an empty queue, gathers, or is awake. */
static void a_thread_that_gathers_misses_nothing(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct taker taker = {.count = 0};
        assert_int_equal(pthread_create(&taker.thread, NULL, take, &taker), 0);
        put(0, 3, false);
        put(3, 1, true);
        put(4, PAY_WEBHOOK_BATCH_MAX, false);
        pay_call_queue_stop(&queue);
        assert_int_equal(pthread_join(taker.thread, NULL), 0);
        assert_int_equal(taker.count, PAY_WEBHOOK_BATCH_MAX + 4);
        pay_call_queue_free(&queue);
        pay_call_queue_init(&queue);
    }
}

int main(void)
{
#define TEST(name_) cmocka_unit_test_setup_teardown(name_, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(batches_are_in_order_and_bounded),
        TEST(a_full_queue_refuses),
        TEST(enough_or_one_that_does_not_wait_ends_gathering),
        TEST(what_is_left_comes_before_the_end),
        TEST(a_thread_that_gathers_misses_nothing),
    };
    return cmocka_run_group_tests_name("ingest.call_queue", tests, NULL, NULL);
}
