/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/clock.h"

#include "common/base/assert.h"

#include <stdio.h>
#include <time.h>

#include "common/base/banned.h"

#define US_PER_S INT64_C(1000000)
#define S_PER_DAY INT64_C(86400)
/* 0000-01-01T00:00:00.000000Z and 9999-12-31T23:59:59.999999Z: what fits into the format. */
#define FORMAT_MIN_US (INT64_C(-62167219200) * US_PER_S)
#define FORMAT_MAX_US (INT64_C(253402300800) * US_PER_S - 1)

static int64_t read_us(clockid_t id)
{
    struct timespec now;
    const int rc = clock_gettime(id, &now);
    PAY_ASSERT(rc == 0);
    return (int64_t)now.tv_sec * US_PER_S + now.tv_nsec / 1000;
}

int64_t pay_clock_wall_us(void)
{
    return read_us(CLOCK_REALTIME);
}

int64_t pay_clock_mono_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}

/* Proleptic Gregorian date of a day since 1970 (Hinnant's civil_from_days). */
static void date_of(int64_t day, int *year, int *month, int *day_of_month)
{
    const int64_t shifted = day + 719468; /* Days since 0000-03-01: a leap day is then the last. */
    const int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    const int64_t doe = shifted - era * 146097;
    const int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    const int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    const int64_t mp = (5 * doy + 2) / 153;

    *day_of_month = (int)(doy - (153 * mp + 2) / 5 + 1);
    *month = (int)(mp < 10 ? mp + 3 : mp - 9);
    *year = (int)(yoe + era * 400 + (*month <= 2 ? 1 : 0));
}

static char *digits(char *at, int64_t value, int count)
{
    for (int i = count - 1; i >= 0; i--) {
        at[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return at + count;
}

void pay_clock_format(int64_t wall_us, char dst[28])
{
    int year = 0;
    int month = 0;
    int day = 0;

    /* Outside four-digit years there is no such text: the nearest one, never a broken line. */
    wall_us = wall_us < FORMAT_MIN_US ? FORMAT_MIN_US : wall_us;
    wall_us = wall_us > FORMAT_MAX_US ? FORMAT_MAX_US : wall_us;

    int64_t days = wall_us / (S_PER_DAY * US_PER_S);
    int64_t rest = wall_us % (S_PER_DAY * US_PER_S);
    if (rest < 0) { /* Before 1970: division in C rounds to zero. */
        rest += S_PER_DAY * US_PER_S;
        days--;
    }
    date_of(days, &year, &month, &day);

    const int64_t second = rest / US_PER_S;
    const struct {
        int64_t value;
        int count;
        char after;
    } parts[] = {
        {year, 4, '-'},
        {month, 2, '-'},
        {day, 2, 'T'},
        {second / 3600, 2, ':'},
        {second / 60 % 60, 2, ':'},
        {second % 60, 2, '.'},
        {rest % US_PER_S, 6, 'Z'},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        dst = digits(dst, parts[i].value, parts[i].count);
        *dst++ = parts[i].after;
    }
    *dst = 0;
}
