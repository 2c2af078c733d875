/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a PSP that is away, or that refuses for now, for as long as an action can live makes a few
 * hundred gate rows at most, and the first tries are as soon as ever. Method: the pauses as a
 * table, then the longest life that a configuration allows, played through.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/core/pause.h"

#define SECOND INT64_C(1000000)
#define HOUR (3600 * SECOND)
#define LONGEST_LIFE (INT64_C(30) * 24 * HOUR) /* money_action_life_s at most. */
#define TRIES_MOST 256 /* A quarter of the rows of one kind that a payment may have. */
#define START (INT64_C(1000000) * SECOND)
#define END (START + LONGEST_LIFE)

/* As Stripe's. */
static const struct pay_psp_traits traits = {.send_window_us = 120 * SECOND,
                                             .call_budget_us = 20 * SECOND,
                                             .query_first_us = 5 * SECOND,
                                             .action_retry_us = 300 * SECOND};

static void a_pause_doubles_up_to_four_hours(void **state)
{
    (void)state;
    static const struct {
        int64_t first_us;
        int tries;
        int64_t pause_us;
    } rows[] = {
        {5 * SECOND, -1, 0},
        {5 * SECOND, 0, 0},
        {5 * SECOND, 1, 5 * SECOND},
        {5 * SECOND, 2, 10 * SECOND},
        {5 * SECOND, 5, 80 * SECOND},
        {5 * SECOND, 12, 10240 * SECOND},
        {5 * SECOND, 13, 4 * HOUR},
        {5 * SECOND, 1000000, 4 * HOUR},
        {0, 1, SECOND}, /* Never a busy loop at the PSP. */
        {0, 3, 4 * SECOND},
        {4 * HOUR, 2, 4 * HOUR},
        {24 * HOUR, 1, 24 * HOUR}, /* What an account asks for is not shortened. */
        {24 * HOUR, 9, 24 * HOUR},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(pay_pause_us(rows[i].first_us, rows[i].tries), rows[i].pause_us);
    }
}

static void what_was_not_sent_waits_from_the_end_of_its_window(void **state)
{
    (void)state;
    const struct pay_gate latest = {.not_after_us = START};
    static const struct {
        int made, sent;
        int64_t pause_us;
    } rows[] = {
        {1, 0, 0}, /* The first time at once. */
        {2, 0, 5 * SECOND},
        {3, 0, 10 * SECOND},
        {30, 27, 10 * SECOND}, /* What was sent has answered: it is no outage's. */
        {30, 0, 4 * HOUR},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct pay_gate_sum gates = {.made = rows[i].made, .sent = rows[i].sent};
        assert_int_equal(pay_pause_unsent_until(&traits, &latest, &gates),
                         START + rows[i].pause_us);
    }
}

static void what_is_refused_for_now_waits_as_said_but_ever_longer(void **state)
{
    (void)state;
    static const struct {
        int said_s, sent;
        int64_t pause_us;
    } rows[] = {
        {0, 1, 300 * SECOND},       {0, 2, 600 * SECOND},
        {0, 40, 4 * HOUR},          {1, 1, 5 * SECOND}, /* The floor. */
        {1, 2, 10 * SECOND},        {1, 40, 4 * HOUR},
        {77, 1, 77 * SECOND},       {77, 5, 80 * SECOND},
        {6 * 3600, 1, 6 * HOUR},    {6 * 3600, 40, 6 * HOUR},
        {30 * 86400, 1, 24 * HOUR}, {INT32_MAX, 1, 24 * HOUR},
        {0, 0, 300 * SECOND}, /* Of a job whose gate is not known. */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct pay_gate_sum gates = {.made = 50, .sent = rows[i].sent};
        assert_int_equal(pay_pause_refused_us(&traits, rows[i].said_s, &gates), rows[i].pause_us);
    }
    const struct pay_gate_sum one = {.made = 1, .sent = 1};
    const struct pay_psp_traits unsaid = {.query_first_us = 5 * SECOND};
    assert_int_equal(pay_pause_refused_us(&unsaid, 0, &one), 5 * SECOND);
    const struct pay_psp_traits hasty = {.query_first_us = 5 * SECOND, .action_retry_us = 1};
    assert_int_equal(pay_pause_refused_us(&hasty, 0, &one), SECOND);
}

/* @return how many gates are made until the action's end. */
static int unsent_tries(void)
{
    int made = 0;
    for (int64_t now_us = START; now_us < END; made++) {
        const struct pay_gate latest = {.not_after_us = now_us + traits.send_window_us};
        const struct pay_gate_sum gates = {.made = made + 1};
        const int64_t until_us = pay_pause_unsent_until(&traits, &latest, &gates);
        const int64_t looked_us = latest.not_after_us + traits.call_budget_us + 1;
        now_us = until_us > looked_us ? until_us : looked_us;
    }
    return made;
}

static int refused_tries(int said_s)
{
    int sent = 0;
    for (int64_t now_us = START; now_us < END;) {
        sent++;
        const struct pay_gate_sum gates = {.made = sent, .sent = sent};
        now_us += pay_pause_refused_us(&traits, said_s, &gates);
    }
    return sent;
}

static void thirty_days_of_outage_make_few_gates(void **state)
{
    (void)state;
    assert_in_range(unsent_tries(), 100, TRIES_MOST);
    assert_in_range(refused_tries(0), 100, TRIES_MOST);
    assert_in_range(refused_tries(1), 100, TRIES_MOST); /* A 429 with Retry-After: 1. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_doubles_up_to_four_hours),
        cmocka_unit_test(what_was_not_sent_waits_from_the_end_of_its_window),
        cmocka_unit_test(what_is_refused_for_now_waits_as_said_but_ever_longer),
        cmocka_unit_test(thirty_days_of_outage_make_few_gates),
    };
    return cmocka_run_group_tests_name("pause", tests, NULL, NULL);
}
