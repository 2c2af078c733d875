/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ingest/psp_limits.h"

#include "common/base/banned.h"

enum pay_breaker_state pay_breaker_state(const struct pay_breaker *breaker, int64_t now_us)
{
    if (!breaker->is_open) {
        return PAY_BREAKER_CLOSED;
    }
    return now_us - breaker->opened_at_us >= breaker->open_us ? PAY_BREAKER_HALF_OPEN
                                                              : PAY_BREAKER_OPEN;
}

bool pay_breaker_allow(struct pay_breaker *breaker, int64_t now_us)
{
    switch (pay_breaker_state(breaker, now_us)) {
    case PAY_BREAKER_CLOSED:
        return true;
    case PAY_BREAKER_HALF_OPEN:
        if (breaker->probing) {
            return false;
        }
        breaker->probing = true;
        return true;
    default:
        return false;
    }
}

void pay_breaker_note(struct pay_breaker *breaker, bool answered, int64_t now_us)
{
    breaker->probing = false;
    if (answered) {
        breaker->failures = 0;
        breaker->is_open = false;
        return;
    }
    breaker->failures++;
    if (breaker->is_open || breaker->failures >= breaker->failures_max) {
        breaker->is_open = true;
        breaker->opened_at_us = now_us;
    }
}

struct pay_bucket pay_bucket_make(int64_t per_period, int64_t period_us, int64_t now_us)
{
    return (struct pay_bucket){per_period, period_us, per_period * period_us, now_us};
}

static void fill(struct pay_bucket *bucket, int64_t now_us)
{
    const int64_t full = bucket->per_period * bucket->period_us;
    int64_t passed = now_us - bucket->filled_at_us;
    if (passed <= 0) {
        return;
    }
    passed = passed > bucket->period_us ? bucket->period_us : passed; /* A period fills it. */
    bucket->tokens_us += passed * bucket->per_period;
    bucket->tokens_us = bucket->tokens_us > full ? full : bucket->tokens_us;
    bucket->filled_at_us = now_us;
}

bool pay_bucket_take(struct pay_bucket *bucket, int64_t now_us)
{
    fill(bucket, now_us);
    if (bucket->tokens_us < bucket->period_us) {
        return false;
    }
    bucket->tokens_us -= bucket->period_us;
    return true;
}

int64_t pay_bucket_next_us(struct pay_bucket *bucket, int64_t now_us)
{
    fill(bucket, now_us);
    const int64_t missing = bucket->period_us - bucket->tokens_us;
    if (missing <= 0) {
        return now_us;
    }
    if (bucket->per_period == 0) {
        return INT64_MAX;
    }
    return now_us + (missing + bucket->per_period - 1) / bucket->per_period;
}
