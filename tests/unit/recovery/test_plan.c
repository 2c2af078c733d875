/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: each kind of deadline becomes what operations says; pauses grow, stay bounded and differ.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "services/recovery/plan.h"

#define SECOND INT64_C(1000000)

static void every_kind_has_its_plan(void **state)
{
    (void)state;
    static const struct {
        enum pay_deadline_kind kind;
        enum pay_plan plan;
    } rows[] = {
        {PAY_DEADLINE_SEND, PAY_PLAN_DEADLINE},
        {PAY_DEADLINE_ANSWER, PAY_PLAN_QUERY},
        {PAY_DEADLINE_QUERY, PAY_PLAN_QUERY},
        {PAY_DEADLINE_MANUAL, PAY_PLAN_DEADLINE},
        {PAY_DEADLINE_ACTION, PAY_PLAN_DEADLINE},
        {PAY_DEADLINE_AUTHORIZATION, PAY_PLAN_DEADLINE},
        {PAY_DEADLINE_ORDER_EXPIRY, PAY_PLAN_DEADLINE},
        {PAY_DEADLINE_RESERVATION, PAY_PLAN_DEADLINE},
        {PAY_DEADLINE_ORPHAN, PAY_PLAN_REPLAY},
        {PAY_DEADLINE_APPROVAL, PAY_PLAN_DEADLINE},
        {PAY_DEADLINE_DISPUTE, PAY_PLAN_DEADLINE},
        {PAY_DEADLINE_DEAD_EVENT, PAY_PLAN_DEADLINE},
    };
    assert_int_equal(sizeof rows / sizeof rows[0], PAY_DEADLINE_KIND_COUNT);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(rows[i].kind, i);
        assert_int_equal(pay_plan_of(rows[i].kind), rows[i].plan);
    }
}

static void processing_escalates_at_its_final_date(void **state)
{
    (void)state;
    const struct pay_plan_schedule schedule = {.person_after_us = 3600 * SECOND};
    struct pay_store_ask ask = {.created_at_us = 1000 * SECOND};
    const int64_t end_us = 4600 * SECOND;
    assert_int_equal(pay_plan_answer(&ask, &schedule, end_us - 1), PAY_PLAN_QUERY);
    assert_int_equal(pay_plan_answer(&ask, &schedule, end_us), PAY_PLAN_DEADLINE);
    ask.submitted_at_us = 2000 * SECOND; /* Counts from the submission where there was one. */
    assert_int_equal(pay_plan_answer(&ask, &schedule, end_us), PAY_PLAN_QUERY);
}

static void pauses_double_up_to_the_longest(void **state)
{
    (void)state;
    const int64_t first = 5 * SECOND;
    const int64_t max = 900 * SECOND;
    int64_t longest = 2 * first; /* The first query has been made when a row moves. */
    for (int tries = 1; tries < 40; tries++) {
        for (uint64_t random = 0; random < 5; random++) {
            const int64_t pause =
                pay_plan_next_due(0, tries, first, max, random * UINT64_C(0x3333333333333333));
            assert_true(pause >= longest / 2 - 1000);
            assert_true(pause <= longest);
        }
        longest = longest * 2 > max ? max : longest * 2;
    }
}

static void jitter_spreads_equal_rows(void **state)
{
    (void)state;
    const int64_t a = pay_plan_next_due(0, 3, 5 * SECOND, 900 * SECOND, 1);
    const int64_t b = pay_plan_next_due(0, 3, 5 * SECOND, 900 * SECOND, UINT64_MAX / 3);
    assert_int_not_equal(a, b);
}

static void odd_settings_still_move_forward(void **state)
{
    (void)state;
    assert_true(pay_plan_next_due(7, 0, 0, 0, 0) > 7);
    assert_true(pay_plan_next_due(7, INT32_MAX, 5 * SECOND, 10 * SECOND, 9) > 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_its_plan),
        cmocka_unit_test(processing_escalates_at_its_final_date),
        cmocka_unit_test(pauses_double_up_to_the_longest),
        cmocka_unit_test(jitter_spreads_equal_rows),
        cmocka_unit_test(odd_settings_still_move_forward),
    };
    return cmocka_run_group_tests_name("recovery.plan", tests, NULL, NULL);
}
