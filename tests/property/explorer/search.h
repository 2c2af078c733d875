/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file search.h
 * @brief Every reachable world, breadth first, so that a trace to a broken invariant is a shortest
 * one.
 */
#ifndef PAY_TESTS_EXPLORER_SEARCH_H
#define PAY_TESTS_EXPLORER_SEARCH_H

#include "tests/property/explorer/step.h"

struct xp_search_limits {
    size_t memory_max;      /**< Bytes for worlds and their index. */
    unsigned fair_every;    /**< Fair continuations from one in this many worlds; 0: none. */
    unsigned hostile_every; /**< Hostile probes in one of this many worlds; 0: none. */
};

struct xp_totals {
    uint64_t states, transitions, beyond;
    uint32_t depth;
    bool is_incomplete; /**< Stopped by memory_max. */
};

/** @return false when an invariant broke: its trace was printed. */
bool xp_search(const struct xp_config *config, const struct xp_search_limits *limits,
               struct xp_totals *totals);

#endif /* PAY_TESTS_EXPLORER_SEARCH_H */
