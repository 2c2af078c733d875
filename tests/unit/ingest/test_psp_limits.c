/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: the breaker opens, lets one probe pass, closes on an answer; the bucket gives what it has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "services/ingest/psp_limits.h"

#define SECOND INT64_C(1000000)

static void failures_in_a_row_open_it(void **state)
{
    (void)state;
    struct pay_breaker breaker = {.failures_max = 3, .open_us = 10 * SECOND};
    pay_breaker_note(&breaker, false, 0);
    pay_breaker_note(&breaker, false, 0);
    pay_breaker_note(&breaker, true, 0); /* An answer starts the count again. */
    pay_breaker_note(&breaker, false, 0);
    pay_breaker_note(&breaker, false, 0);
    assert_int_equal(pay_breaker_state(&breaker, 0), PAY_BREAKER_CLOSED);
    assert_true(pay_breaker_allow(&breaker, 0));
    pay_breaker_note(&breaker, false, 5);
    assert_int_equal(pay_breaker_state(&breaker, 5), PAY_BREAKER_OPEN);
    assert_false(pay_breaker_allow(&breaker, 5 + 10 * SECOND - 1));
}

static struct pay_breaker half_open(void)
{
    struct pay_breaker breaker = {.failures_max = 1, .open_us = 10 * SECOND};
    pay_breaker_note(&breaker, false, 0);
    return breaker;
}

static void half_open_lets_one_probe_pass(void **state)
{
    (void)state;
    struct pay_breaker breaker = half_open();
    assert_int_equal(pay_breaker_state(&breaker, 10 * SECOND), PAY_BREAKER_HALF_OPEN);
    assert_true(pay_breaker_allow(&breaker, 10 * SECOND));
    assert_false(pay_breaker_allow(&breaker, 10 * SECOND));
}

static void a_probe_decides(void **state)
{
    (void)state;
    struct pay_breaker good = half_open();
    assert_true(pay_breaker_allow(&good, 10 * SECOND));
    pay_breaker_note(&good, true, 11 * SECOND);
    assert_int_equal(pay_breaker_state(&good, 11 * SECOND), PAY_BREAKER_CLOSED);
    struct pay_breaker bad = half_open();
    assert_true(pay_breaker_allow(&bad, 10 * SECOND));
    pay_breaker_note(&bad, false, 11 * SECOND);
    assert_int_equal(pay_breaker_state(&bad, 21 * SECOND - 1), PAY_BREAKER_OPEN);
    assert_int_equal(pay_breaker_state(&bad, 21 * SECOND), PAY_BREAKER_HALF_OPEN);
}

static void a_bucket_starts_full_and_refills_evenly(void **state)
{
    (void)state;
    struct pay_bucket bucket = pay_bucket_make(4, SECOND, 0);
    for (int i = 0; i < 4; i++) {
        assert_true(pay_bucket_take(&bucket, 0));
    }
    assert_false(pay_bucket_take(&bucket, 0));
    assert_int_equal(pay_bucket_next_us(&bucket, 0), SECOND / 4);
    assert_false(pay_bucket_take(&bucket, SECOND / 4 - 1));
    assert_true(pay_bucket_take(&bucket, SECOND / 4));
    assert_false(pay_bucket_take(&bucket, SECOND / 4));
}

static void a_bucket_never_holds_more_than_a_period(void **state)
{
    (void)state;
    struct pay_bucket bucket = pay_bucket_make(2, SECOND, 0);
    const int64_t later = INT64_C(1) << 60; /* Also no overflow after years of silence. */
    assert_true(pay_bucket_take(&bucket, later));
    assert_true(pay_bucket_take(&bucket, later));
    assert_false(pay_bucket_take(&bucket, later));
    assert_false(pay_bucket_take(&bucket, later - 5)); /* Time that steps back gives nothing. */
}

static void an_empty_budget_gives_nothing(void **state)
{
    (void)state;
    struct pay_bucket bucket = pay_bucket_make(0, SECOND, 0);
    assert_false(pay_bucket_take(&bucket, 100 * SECOND));
    assert_int_equal(pay_bucket_next_us(&bucket, 100 * SECOND), INT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_in_a_row_open_it),
        cmocka_unit_test(half_open_lets_one_probe_pass),
        cmocka_unit_test(a_probe_decides),
        cmocka_unit_test(a_bucket_starts_full_and_refills_evenly),
        cmocka_unit_test(a_bucket_never_holds_more_than_a_period),
        cmocka_unit_test(an_empty_budget_gives_nothing),
    };
    return cmocka_run_group_tests_name("ingest.psp_limits", tests, NULL, NULL);
}
