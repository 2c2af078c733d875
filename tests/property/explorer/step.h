/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file step.h
 * @brief Everything that can happen next in a world: at the PSPs, at the senders, on the way, in
 * the core.
 *
 * What is on its way stays on its way: an answer or a callback that exists can be delivered now,
 * later, again or never, so loss, duplication and reordering need no steps of their own. A request
 * that passed its gate can be executed at any moment until the PSP's longest processing is over,
 * which is also how a frozen sender looks from outside.
 */
#ifndef PAY_TESTS_EXPLORER_STEP_H
#define PAY_TESTS_EXPLORER_STEP_H

#include "tests/property/explorer/check.h"

#define XP_STEPS_MAX 192

enum xp_step_kind {
    XP_STEP_CREATE,
    XP_STEP_COMMAND,
    XP_STEP_TICK,
    XP_STEP_GATE,    /**< A sender passes the SUBMIT gate. */
    XP_STEP_FREE,    /**< It certainly did not leave: the gate is given back. */
    XP_STEP_EXECUTE, /**< The PSP executes the request: becomes arg. */
    XP_STEP_SECOND,  /**< The PSP makes a second object of a replay. */
    XP_STEP_MOVE,    /**< At the PSP, by itself or by the customer: becomes arg. */
    XP_STEP_EXPIRE,
    XP_STEP_REVERSE, /**< The PSP takes the charge back. */
    XP_STEP_CONFIRM_GATE,
    XP_STEP_CONFIRM_FREE,
    XP_STEP_CONFIRM_EXECUTE, /**< arg: 16 * number + what it becomes. */
    XP_STEP_REPLAY,
    XP_STEP_ASK,        /**< arg 1: the PSP does not see it yet. */
    XP_STEP_CANCEL_ASK, /**< The PSP executes the cancel. */
    XP_STEP_SUBMITTED,  /**< Deliveries, to the core. arg: of which CONFIRM, 0 the SUBMIT. */
    XP_STEP_NOT_SENT,
    XP_STEP_UNKNOWN,
    XP_STEP_ANSWER,
    XP_STEP_REFUSED_ANSWER,
    XP_STEP_REPLAY_ANSWER,
    XP_STEP_CONFIRM_ANSWER,
    XP_STEP_CANCEL_ANSWER,
    XP_STEP_CALLBACK, /**< arg: the object's state that it tells. */
    XP_STEP_SECOND_CALLBACK,
    XP_STEP_REVERSE_CALLBACK,
    XP_STEP_QUERY_ANSWER, /**< arg: the slot. */
    XP_STEP_DEADLINE,     /**< arg: kind; + 16: the ninth cancel. */
    XP_STEP_ORDER_EXPIRY,
    XP_STEP_KIND_COUNT
};

struct xp_step {
    uint8_t kind, attempt, arg;
};

struct xp_result {
    bool is_beyond;                    /**< The world is beyond the bound: not to be followed. */
    const char *verdict, *reason_code; /**< Of the decision; NULL: none was made. */
    uint32_t cases; /**< Open after it: a world remembers the money cases only. */
};

/** @return how many steps are possible. */
size_t xp_step_list(const struct xp_config *config, const struct xp_world *world,
                    struct xp_step steps[XP_STEPS_MAX]);
/** @return false when an invariant broke. */
bool xp_step_apply(const struct xp_config *config, struct xp_world *world, struct xp_step step,
                   struct xp_result *ret_result, struct xp_violation *violation);

#endif /* PAY_TESTS_EXPLORER_STEP_H */
