/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: instants are written as RFC 3339 in UTC, whatever they are; the forward clock never goes
 * back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/clock.h"

#include <stdio.h>
#include <time.h>

#define S INT64_C(1000000)

static const struct {
    int64_t us;
    const char *text;
} rows[] = {
    {0, "1970-01-01T00:00:00.000000Z"},
    {-1, "1969-12-31T23:59:59.999999Z"},
    {1, "1970-01-01T00:00:00.000001Z"},
    {INT64_C(951782400) * S, "2000-02-29T00:00:00.000000Z"},
    {INT64_C(951868799) * S + 999999, "2000-02-29T23:59:59.999999Z"},
    {INT64_C(951868800) * S, "2000-03-01T00:00:00.000000Z"},
    {INT64_C(4107542400) * S, "2100-03-01T00:00:00.000000Z"}, /* 2100 is no leap year. */
    {INT64_C(4107456000) * S, "2100-02-28T00:00:00.000000Z"},
    {INT64_C(1796040000) * S + 123456, "2026-11-30T12:00:00.123456Z"},
    {INT64_C(253402300799) * S + 999999, "9999-12-31T23:59:59.999999Z"},
    {INT64_MAX, "9999-12-31T23:59:59.999999Z"},
    {INT64_C(-62167219200) * S, "0000-01-01T00:00:00.000000Z"},
    {INT64_MIN, "0000-01-01T00:00:00.000000Z"},
};

static void every_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char got[28];
        pay_clock_format(rows[i].us, got);
        assert_string_equal(got, rows[i].text);
    }
}

/* A day of each week over 800 years, against libc. */
static void agrees_with_the_c_library(void **state)
{
    (void)state;
    for (int64_t day = -146097; day < INT64_C(146097) * 2; day += 7) {
        char got[28];
        char wanted[64];
        struct tm tm;
        const time_t seconds = (time_t)(day * 86400 + (day * 7919) % 86400);

        assert_non_null(gmtime_r(&seconds, &tm));
        (void)snprintf(wanted, sizeof wanted, "%04d-%02d-%02dT%02d:%02d:%02d.000000Z",
                       tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
                       tm.tm_sec);
        pay_clock_format((int64_t)seconds * S, got);
        assert_string_equal(got, wanted);
    }
}

static void clocks_run(void **state)
{
    (void)state;
    const int64_t mono = pay_clock_mono_us();
    const int64_t wall = pay_clock_wall_us();

    assert_true(wall > INT64_C(1700000000) * S); /* Microseconds, not milliseconds or seconds. */
    assert_true(wall < INT64_C(253402300799) * S);
    for (int i = 0; i < 1000; i++) {
        assert_true(pay_clock_mono_us() >= mono);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row),
        cmocka_unit_test(agrees_with_the_c_library),
        cmocka_unit_test(clocks_run),
    };
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
