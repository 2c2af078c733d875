/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file bench.h
 * @brief What the programs of scripts/bench share: payments by number, time, a failure that ends
 * the program. Each prints its result as one line of name=value pairs.
 */
#ifndef PAY_TESTS_BENCH_BENCH_H
#define PAY_TESTS_BENCH_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/** The payment of number n: 26 characters, in the order of the numbers, as ULIDs made in turn. */
#define BENCH_PAYMENT "01%024lld"
#define BENCH_PAYMENT_LEN 26

static inline int64_t bench_now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

_Noreturn static inline void bench_fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "bench: %s: %s\n", what, why);
    exit(1); /* NOLINT(concurrency-mt-unsafe): whoever comes first ends it. */
}

/** A number from 0; anything else ends the program. */
static inline int64_t bench_number(const char *text)
{
    char *end = NULL;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || value < 0) {
        bench_fail(text, "is no number");
    }
    return value;
}

#endif /* PAY_TESTS_BENCH_BENCH_H */
