/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file plan.h
 * @brief What recovery does with a deadline that is due: one table. Pure, nothing is sent here.
 *
 * Recovery decides no state: it asks the PSP (QUERY job), tells the processor that something is due
 * (DEADLINE input), or has a stored event decided again (REPLAY input).
 */
#ifndef PAY_RECOVERY_PLAN_H
#define PAY_RECOVERY_PLAN_H

#include "common/store/ask.h"
#include "common/store/deadlines.h"

enum pay_plan {
    PAY_PLAN_QUERY,    /**< A QUERY job; the row moves to the next query's time. */
    PAY_PLAN_DEADLINE, /**< A DEADLINE input; the row stays until the processor moves it. */
    PAY_PLAN_REPLAY,   /**< A REPLAY input; the row moves. */
    PAY_PLAN_COUNT
};

/** How long between two queries; from the account. */
struct pay_plan_schedule {
    int64_t first_us;
    int64_t max_us;
    int64_t person_after_us; /**< PROCESSING for so long escalates as UNKNOWN does. */
};

const char *pay_plan_name(enum pay_plan plan);

/** @brief By the row's kind alone; ANSWER: see pay_plan_answer(). */
enum pay_plan pay_plan_of(enum pay_deadline_kind kind);
/** @brief An ANSWER that is due: ask, or, when the method's final date has passed, escalate. */
enum pay_plan pay_plan_answer(const struct pay_store_ask *ask,
                              const struct pay_plan_schedule *schedule, int64_t now_us);
/** @brief Exponential with jitter. @param tries of the row, from 1. @param random any 64 bits. */
int64_t pay_plan_next_due(int64_t now_us, int tries, int64_t first_us, int64_t max_us,
                          uint64_t random);

#endif /* PAY_RECOVERY_PLAN_H */
