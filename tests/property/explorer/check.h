/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file check.h
 * @brief What must be true in every world and of every step. Written from the design and from what
 * the PSPs hold, never from the core's tables.
 */
#ifndef PAY_TESTS_EXPLORER_CHECK_H
#define PAY_TESTS_EXPLORER_CHECK_H

#include "tests/property/explorer/bench.h"

enum xp_invariant {
    XP_ONE_LIVE,             /**< Never two live attempts. */
    XP_NO_SECOND_SEND,       /**< No charge is started while another may succeed, or has. */
    XP_CHARGED_ONCE,         /**< The PSPs never hold more than the order's amount. */
    XP_CLOSED_SENDS_NOTHING, /**< No send of what was withdrawn, canceled or is final. */
    XP_CREATED_WHEN_ALLOWED, /**< An attempt begins only if nothing forbids it. */
    XP_NONE_AFTER_MONEY,     /**< No attempt begins, no send leaves, once we were told of money. */
    XP_END_IS_DEAD,      /**< FAILED and CANCELED are said only of what cannot succeed any more. */
    XP_SUCCESS_IS_TRUE,  /**< SUCCEEDED is said only of money that the PSP holds, all of it. */
    XP_SUCCESS_STAYS,    /**< A success is left by nothing. */
    XP_FINAL_STAYS,      /**< A final order never moves. */
    XP_ENDS_ALONE,       /**< An order ends unpaid only beside no open attempt. */
    XP_AMOUNTS,          /**< The money invariants. */
    XP_FACTS,            /**< Facts match the rows: one PaymentSucceeded, one end. */
    XP_SEQUENCE,         /**< Gapless. */
    XP_IDS,              /**< Event and job ids are unique. */
    XP_REPEATS,          /**< Deciding again gives the same bytes. */
    XP_REJECT_IS_STILL,  /**< REJECT changes nothing but cases. */
    XP_HOSTILE_IS_STILL, /**< What nobody may say, or says too weakly, changes nothing. */
    XP_SOMETHING_WAITS,  /**< What is not final has a deadline. */
    XP_CONFIRMS,         /**< No more CONFIRMs leave than the customer approved. */
    XP_ENDS,             /**< Every fair continuation ends, or a case says why it does not. */
    XP_FACT_IS_TRUE,     /**< At its end the fact equals what the PSPs hold, or a case is open. */
    XP_INVARIANT_COUNT
};

struct xp_violation {
    bool is_set;
    enum xp_invariant invariant;
    char text[160];
};

struct xp_transition {
    const struct xp_config *config;
    const struct xp_world *before;
    const struct xp_world *after;
    const struct xp_decided *decided;
    bool by_command;
    bool is_not_found; /**< The input was a not-found. */
};

extern uint64_t xp_checks[XP_INVARIANT_COUNT];
const char *xp_invariant_name(enum xp_invariant invariant);

/** Counts the check; a broken one is kept, the first wins. @return holds */
bool xp_check(struct xp_violation *violation, enum xp_invariant invariant, bool holds,
              const char *text);

/** Before a first send, a retry or a replay passes the gate. */
bool xp_check_send(const struct xp_config *config, const struct xp_world *world, int attempt,
                   struct xp_violation *violation);
/** After one decision. */
bool xp_check_decision(const struct xp_transition *t, struct xp_violation *violation);
/** After something happened at a PSP. */
bool xp_check_truth(const struct xp_config *config, const struct xp_world *world,
                    struct xp_violation *violation);
/** Inputs that must change nothing in this world. */
bool xp_check_hostile(const struct xp_config *config, const struct xp_world *world,
                      struct xp_violation *violation);
/** A world in which nothing is left to happen. cases: open on the way to it. */
bool xp_check_end(const struct xp_world *world, uint32_t cases, struct xp_violation *violation);

#endif /* PAY_TESTS_EXPLORER_CHECK_H */
