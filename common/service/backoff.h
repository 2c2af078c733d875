/* SPDX-License-Identifier: Apache-2.0 */
/** @file backoff.h @brief Bounded exponential waiting with jitter. Pure: randomness is an argument.
 */
#ifndef PAY_SERVICE_BACKOFF_H
#define PAY_SERVICE_BACKOFF_H

#include <stdint.h>

struct pay_backoff {
    int64_t first_ms; /**< > 0: the longest wait before the second try. */
    int64_t max_ms;   /**< >= first_ms: no wait is longer. */
};

/**
 * @brief The wait before the next try: between half of min(first * 2^tries, max) and all of it.
 * @param tries failed tries before this one's predecessor: 0 after the first failure.
 * @param random any 64 random bits.
 */
int64_t pay_backoff_ms(const struct pay_backoff *backoff, unsigned tries, uint64_t random);

#endif /* PAY_SERVICE_BACKOFF_H */
