/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "services/ingest/psp_clock.h"

#define SECOND INT64_C(1000000)
#define DATABASE INT64_C(1700000000000000) /* Far from this machine's clock. */

static void until_it_is_told_it_is_this_machines(void **state)
{
    (void)state;
    struct pay_psp_clock clock;
    pay_psp_clock_init(&clock);
    assert_false(pay_psp_clock_known(&clock));
    const int64_t wall_us = pay_clock_wall_us();
    assert_in_range(pay_psp_clock_earliest_us(&clock), wall_us - SECOND, wall_us + SECOND);
    assert_in_range(pay_psp_clock_latest_us(&clock), wall_us - SECOND, wall_us + SECOND);
}

/* The statement said its time somewhere between its start and its answer, two seconds apart. */
static void it_goes_on_from_what_the_database_said(void **state)
{
    (void)state;
    struct pay_psp_clock clock;
    pay_psp_clock_init(&clock);
    pay_psp_clock_learn(&clock, DATABASE, pay_clock_mono_us() - 2 * SECOND);
    assert_in_range(pay_psp_clock_earliest_us(&clock), DATABASE, DATABASE + SECOND);
    assert_in_range(pay_psp_clock_latest_us(&clock), DATABASE + 2 * SECOND, DATABASE + 3 * SECOND);
}

static void the_last_word_counts(void **state)
{
    (void)state;
    struct pay_psp_clock clock;
    pay_psp_clock_init(&clock);
    pay_psp_clock_learn(&clock, DATABASE + 3600 * SECOND, pay_clock_mono_us());
    pay_psp_clock_learn(&clock, DATABASE, pay_clock_mono_us());
    assert_in_range(pay_psp_clock_earliest_us(&clock), DATABASE, DATABASE + SECOND);
    assert_in_range(pay_psp_clock_latest_us(&clock), DATABASE, DATABASE + SECOND);
}

/* Nothing was said for two seconds: the database's clock may have been set meanwhile. */
static void an_old_word_is_no_knowledge(void **state)
{
    (void)state;
    struct pay_psp_clock clock;
    pay_psp_clock_init(&clock);
    pay_psp_clock_learn(&clock, DATABASE, pay_clock_mono_us() - 2 * SECOND);
    assert_false(pay_psp_clock_known(&clock));
    assert_in_range(pay_psp_clock_earliest_us(&clock), DATABASE, DATABASE + SECOND);
    pay_psp_clock_learn(&clock, DATABASE, pay_clock_mono_us());
    assert_true(pay_psp_clock_known(&clock));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(until_it_is_told_it_is_this_machines),
        cmocka_unit_test(it_goes_on_from_what_the_database_said),
        cmocka_unit_test(the_last_word_counts),
        cmocka_unit_test(an_old_word_is_no_knowledge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
