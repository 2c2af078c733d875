/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: no step of the amounts' arithmetic breaks a money invariant, loses a unit or changes
 * anything when it refuses. Method: every small amounts row that holds, every step, every small
 * amount, against the sentences of the requirement; then the largest numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>
#include <string.h>

#include "common/core/amounts.h"

#define MOST 3

typedef bool step_fn(struct pay_amounts *a, int64_t amount);

static bool hold_capture(struct pay_amounts *a, int64_t amount)
{
    return pay_amounts_hold_capture(a, amount, MOST);
}
static bool take_capture(struct pay_amounts *a, int64_t amount)
{
    return pay_amounts_take_capture(a, amount, MOST);
}

/* What each step does to authorized, capture_reserved, captured, refund_reserved, refunded,
 * withdrawn for each unit; RAISES: authorized follows what is used. */
#define RAISES 9
static const struct {
    step_fn *step;
    int per_unit[6];
    bool only_refundable;
} steps[] = {
    {pay_amounts_reserve_capture, {0, 1, 0, 0, 0, 0}, false},
    {hold_capture, {RAISES, 1, 0, 0, 0, 0}, false},
    {pay_amounts_settle_capture, {0, -1, 1, 0, 0, 0}, false},
    {pay_amounts_release_capture, {0, -1, 0, 0, 0, 0}, false},
    {take_capture, {RAISES, 0, 1, 0, 0, 0}, false},
    {pay_amounts_reserve_refund, {0, 0, 0, 1, 0, 0}, true},
    {pay_amounts_hold_refund, {0, 0, 0, 1, 0, 0}, false},
    {pay_amounts_settle_refund, {0, 0, 0, -1, 1, 0}, false},
    {pay_amounts_release_refund, {0, 0, 0, -1, 0, 0}, false},
    {pay_amounts_take_refund, {0, 0, 0, 0, 1, 0}, false},
    {pay_amounts_return_refund, {0, 0, 0, 0, -1, 0}, false},
    {pay_amounts_withdraw, {0, 0, 0, 0, 0, 1}, false},
    {pay_amounts_reinstate, {0, 0, 0, 0, 0, -1}, false},
};

/* The requirement's own words. */
static bool holds(const int64_t a[6])
{
    for (int i = 0; i < 6; i++) {
        if (a[i] < 0) {
            return false;
        }
    }
    return a[2] + a[1] <= a[0] && a[4] + a[3] <= a[2];
}

static struct pay_amounts row(const int64_t a[6])
{
    return (struct pay_amounts){a[0], a[1], a[2], a[3], a[4], a[5]};
}

static void expect(size_t s, const int64_t before[6], int64_t amount)
{
    struct pay_amounts a = row(before);
    int64_t after[6];
    const int64_t refundable = before[2] - before[4] - before[3] - before[5];
    bool may = amount > 0 && (!steps[s].only_refundable || amount <= refundable);

    for (int i = 0; i < 6; i++) {
        after[i] = before[i] + (steps[s].per_unit[i] == RAISES ? 0 : steps[s].per_unit[i]) * amount;
    }
    if (steps[s].per_unit[0] == RAISES) {
        may = may && after[1] + after[2] <= MOST;
        after[0] = after[0] > after[1] + after[2] ? after[0] : after[1] + after[2];
    }
    may = may && holds(after);
    assert_int_equal(steps[s].step(&a, amount), may);
    const struct pay_amounts expected = row(may ? after : before);
    assert_memory_equal(&a, &expected, sizeof a);
}

static void check_row(const int64_t before[6])
{
    const struct pay_amounts a = row(before);
    struct pay_amounts released = a;

    assert_int_equal(pay_amounts_hold(&a), holds(before));
    if (!holds(before)) {
        return;
    }
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
        for (int64_t amount = -1; amount <= MOST + 1; amount++) {
            expect(s, before, amount);
        }
    }
    const int64_t refundable = before[2] - before[4] - before[3] - before[5];
    assert_int_equal(pay_amounts_refundable(&a), refundable > 0 ? refundable : 0);
    assert_int_equal(pay_amounts_capturable(&a), before[0] - before[1] - before[2]);
    assert_int_equal(pay_amounts_release_rest(&released), before[0] != before[1] + before[2]);
    assert_int_equal(released.authorized, before[1] + before[2]);
}

static void every_small_row_and_every_step(void **state)
{
    (void)state;
    for (int n = 0; n < 4 * 4 * 4 * 4 * 4 * 4; n++) {
        int64_t before[6];
        for (int i = 0, rest = n; i < 6; i++, rest /= 4) {
            before[i] = rest % 4;
        }
        check_row(before);
    }
}

static void no_number_overflows(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
        const struct pay_amounts full = {INT64_MAX, 0, INT64_MAX, 0, INT64_MAX, INT64_MAX};
        struct pay_amounts a = full;
        const bool gives_back = steps[s].per_unit[4] < 0 || steps[s].per_unit[5] < 0;
        assert_int_equal(steps[s].step(&a, INT64_MAX), gives_back);
        a = full;
        assert_false(steps[s].step(&a, INT64_MIN));
        assert_memory_equal(&a, &full, sizeof a);
    }
    const struct pay_amounts negative = {1, 0, 0, 0, 0, -1};
    assert_false(pay_amounts_hold(&negative));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_small_row_and_every_step),
        cmocka_unit_test(no_number_overflows),
    };
    return cmocka_run_group_tests_name("amounts", tests, NULL, NULL);
}
