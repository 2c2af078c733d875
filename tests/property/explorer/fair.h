/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file fair.h
 * @brief From every world, one fair continuation: what is due happens, what is asked is answered,
 * no customer pays any more. It must end in a fact that equals what the PSPs hold.
 *
 * A continuation is a function of the world, so that one that was followed to its end once need not
 * be followed again: xp_fair_check() remembers.
 */
#ifndef PAY_TESTS_EXPLORER_FAIR_H
#define PAY_TESTS_EXPLORER_FAIR_H

#include "tests/property/explorer/step.h"

/** What a continuation did, for the trace. */
#define XP_FAIR_STEPS_MAX 600
struct xp_fair_trace {
    struct xp_step steps[XP_FAIR_STEPS_MAX];
    size_t count;
};

/** @return false when it does not end, or ends in an untrue fact. */
bool xp_fair_check(const struct xp_config *config, const struct xp_world *world,
                   struct xp_fair_trace *trace, struct xp_violation *violation);
/** Forgets what was followed; frees its memory. */
void xp_fair_reset(void);

#endif /* PAY_TESTS_EXPLORER_FAIR_H */
