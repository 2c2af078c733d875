/* SPDX-License-Identifier: Apache-2.0 */
#include "services/recovery/plan.h"

#include "common/service/backoff.h"

#include "common/base/banned.h"

static const enum pay_plan plans[PAY_DEADLINE_KIND_COUNT] = {
    [PAY_DEADLINE_SEND] = PAY_PLAN_DEADLINE,
    [PAY_DEADLINE_ANSWER] = PAY_PLAN_QUERY,
    [PAY_DEADLINE_QUERY] = PAY_PLAN_QUERY,
    [PAY_DEADLINE_MANUAL] = PAY_PLAN_DEADLINE,
    [PAY_DEADLINE_ACTION] = PAY_PLAN_DEADLINE,
    [PAY_DEADLINE_AUTHORIZATION] = PAY_PLAN_DEADLINE,
    [PAY_DEADLINE_ORDER_EXPIRY] = PAY_PLAN_DEADLINE,
    [PAY_DEADLINE_RESERVATION] = PAY_PLAN_DEADLINE,
    [PAY_DEADLINE_ORPHAN] = PAY_PLAN_REPLAY,
    [PAY_DEADLINE_APPROVAL] = PAY_PLAN_DEADLINE,
    [PAY_DEADLINE_DISPUTE] = PAY_PLAN_DEADLINE,
    [PAY_DEADLINE_DEAD_EVENT] = PAY_PLAN_DEADLINE,
};

const char *pay_plan_name(enum pay_plan plan)
{
    static const char *const names[] = {"query", "deadline", "replay"};
    return (unsigned)plan < PAY_PLAN_COUNT ? names[plan] : "?";
}

enum pay_plan pay_plan_of(enum pay_deadline_kind kind)
{
    return plans[kind];
}

enum pay_plan pay_plan_answer(const struct pay_store_ask *ask,
                              const struct pay_plan_schedule *schedule, int64_t now_us)
{
    const int64_t since_us = ask->submitted_at_us != 0 ? ask->submitted_at_us : ask->created_at_us;
    return now_us - since_us >= schedule->person_after_us ? PAY_PLAN_DEADLINE : PAY_PLAN_QUERY;
}

int64_t pay_plan_next_due(int64_t now_us, int tries, int64_t first_us, int64_t max_us,
                          uint64_t random)
{
    const int64_t first_ms = first_us / 1000 > 1 ? first_us / 1000 : 2; /* Half of it is not 0. */
    const int64_t max_ms = max_us / 1000 > first_ms ? max_us / 1000 : first_ms;
    const struct pay_backoff backoff = {first_ms, max_ms};
    const unsigned done = tries > 0 ? (unsigned)tries : 0U;
    return now_us + pay_backoff_ms(&backoff, done, random) * 1000;
}
