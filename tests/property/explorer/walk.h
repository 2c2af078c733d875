/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file walk.h
 * @brief Seeded random walks beyond the bound of the search: three attempts, every command, two
 * answers in flight, and counters that count, so that no two facts of a walk may share an id.
 */
#ifndef PAY_TESTS_EXPLORER_WALK_H
#define PAY_TESTS_EXPLORER_WALK_H

#include "tests/property/explorer/step.h"

#define XP_WALK_STEPS_MAX 4000

struct xp_walk {
    struct xp_config config; /**< As walked; set when an invariant broke. */
    struct xp_step steps[XP_WALK_STEPS_MAX];
    size_t count;
    struct xp_violation violation;
};

/** @return false when an invariant broke: the walk says where. The same seed walks the same way. */
bool xp_walk(const struct xp_config *config, uint64_t seed, unsigned depth, struct xp_walk *walk);

#endif /* PAY_TESTS_EXPLORER_WALK_H */
