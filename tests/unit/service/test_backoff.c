/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: waits grow by two, stop at the maximum, and are spread over their upper half. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/service/backoff.h"

struct row {
    int64_t first_ms, max_ms;
    unsigned tries;
    int64_t least_ms, most_ms;
};

static const struct row rows[] = {
    {100, 1000, 0, 50, 100},
    {100, 1000, 1, 100, 200},
    {100, 1000, 3, 400, 800},
    {100, 1000, 4, 500, 1000},
    {100, 1000, 4000000000u, 500, 1000},
    {1, 1, 9, 0, 1},
    {3, INT64_MAX, 400, INT64_MAX / 2, INT64_MAX},
};

static void every_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct pay_backoff backoff = {rows[i].first_ms, rows[i].max_ms};
        const uint64_t span = (uint64_t)(rows[i].most_ms - rows[i].least_ms);
        assert_int_equal(pay_backoff_ms(&backoff, rows[i].tries, 0), rows[i].least_ms);
        assert_int_equal(pay_backoff_ms(&backoff, rows[i].tries, span), rows[i].most_ms);
        for (uint64_t random = 0; random < 4000; random++) {
            const int64_t got =
                pay_backoff_ms(&backoff, rows[i].tries, random * 0x9e3779b97f4a7c15u);
            assert_true(got >= rows[i].least_ms && got <= rows[i].most_ms);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row)};
    return cmocka_run_group_tests_name("backoff", tests, NULL, NULL);
}
