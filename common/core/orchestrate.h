/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file orchestrate.h
 * @brief Which attempt comes next, or why none may. Pure; the state machine decides whether a fact
 * moves, this decides what to do then.
 */
#ifndef PAY_CORE_ORCHESTRATE_H
#define PAY_CORE_ORCHESTRATE_H

#include "common/core/snapshot.h"

enum pay_next_kind {
    PAY_NEXT_START,           /**< Create the attempt on route_no. */
    PAY_NEXT_BLOCKED,         /**< None may be created now: reason_code says which rule. */
    PAY_NEXT_AWAITING_METHOD, /**< No legal route is left, the order may wait for another
                                 (retry_until_expiry). */
    PAY_NEXT_EXHAUSTED,       /**< No legal route is left and the order does not wait. */
    PAY_NEXT_KIND_COUNT
};

struct pay_next {
    enum pay_next_kind kind;
    int route_no; /**< START */
    const char
        *reason_code; /**< Static: ORDER_FINAL, ATTEMPT_LIVE, ATTEMPT_SUCCEEDED,
                         INTENT_CANCEL, FAILOVER_WINDOW_OVER, ORDER_EXPIRED, MONEY_CASE_OPEN,
                         ROUTE_PAUSED, LIMIT ...; ATTEMPT_UNKNOWN: the live one is UNKNOWN. */
};

/** @brief May an attempt be created on this route at all? The rules of state-machine "Order". */
struct pay_next pay_orchestrate_may_start(const struct pay_snapshot *snapshot, int route_no,
                                          int64_t now_us);
/** @brief The same question, as if the attempt had ended: what CHANGE_METHOD asks. */
struct pay_next pay_orchestrate_may_start_after(const struct pay_snapshot *snapshot, int route_no,
                                                int attempt_index, int64_t now_us);
/** @brief After an attempt ended: the next by itself. */
struct pay_next pay_orchestrate_next(const struct pay_snapshot *snapshot, int64_t now_us);
/** @return whether pay_orchestrate_next() would start an attempt if this one had ended now. */
bool pay_orchestrate_would_go_on(const struct pay_snapshot *snapshot, int attempt_index,
                                 int64_t now_us);

#endif /* PAY_CORE_ORCHESTRATE_H */
