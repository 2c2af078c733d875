/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file psp_limits.h
 * @brief Circuit breaker and token bucket of one lane. Pure: time is an argument (monotonic us).
 */
#ifndef PAY_INGEST_PSP_LIMITS_H
#define PAY_INGEST_PSP_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

enum pay_breaker_state { PAY_BREAKER_CLOSED, PAY_BREAKER_HALF_OPEN, PAY_BREAKER_OPEN };

struct pay_breaker {
    int failures_max; /**< In a row; then it opens. */
    int64_t open_us;  /**< Then one probe at a time may pass. */
    int failures;
    bool is_open;
    bool probing; /**< The probe is on its way. */
    int64_t opened_at_us;
};

enum pay_breaker_state pay_breaker_state(const struct pay_breaker *breaker, int64_t now_us);
/** @return true: a call may go; half open it is then the probe. */
bool pay_breaker_allow(struct pay_breaker *breaker, int64_t now_us);
/** @brief A call that pay_breaker_allow() let pass ended. @param answered by the PSP, whatever it
 * said. */
void pay_breaker_note(struct pay_breaker *breaker, bool answered, int64_t now_us);

struct pay_bucket {
    int64_t per_period; /**< Tokens per period, and the most that it holds. */
    int64_t period_us;
    int64_t tokens_us; /**< Tokens times period_us, so that nothing is lost to rounding. */
    int64_t filled_at_us;
};

struct pay_bucket pay_bucket_make(int64_t per_period, int64_t period_us, int64_t now_us);
/** @return true: a token was there and is gone. */
bool pay_bucket_take(struct pay_bucket *bucket, int64_t now_us);
/** @return when the next token is there; now or earlier: it is there already. INT64_MAX: never. */
int64_t pay_bucket_next_us(struct pay_bucket *bucket, int64_t now_us);

#endif /* PAY_INGEST_PSP_LIMITS_H */
