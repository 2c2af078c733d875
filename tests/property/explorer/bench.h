/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file bench.h
 * @brief Where the real core is run: a world becomes a snapshot, pay_decide() decides, and the
 * snapshot becomes a world again.
 *
 * One bench for the whole program; not for threads.
 */
#ifndef PAY_TESTS_EXPLORER_BENCH_H
#define PAY_TESTS_EXPLORER_BENCH_H

#include "tests/property/explorer/world.h"

#define XP_PAYMENT "01J9ZQ4V7M3N8P5R2T6W0X1YAB"
#define XP_OTHER_PAYMENT "01J9ZQ4V7M3N8P5R2T6W0X1YAC"
#define XP_VERSION_START 100

/** Counters that are not part of a state; a walk carries its own through. */
struct xp_counters {
    int64_t version, sequence;
    int64_t attempt_versions[XP_ATTEMPTS_MAX + 1];
};

struct xp_rows {
    struct pay_snapshot snap;
    struct pay_route routes[XP_ROUTES + 1];
    struct pay_attempt attempts[XP_ATTEMPTS_MAX + 1];
    struct pay_gate gates[(XP_ATTEMPTS_MAX + 1) * (XP_CONFIRMS_MAX + 2)];
    struct pay_bound_reference references[12];
    struct pay_case cases[PAY_CASE_KIND_COUNT + 2];
};

struct xp_decided {
    const struct pay_decision *decision;
    const struct xp_rows *rows; /**< After. */
    int64_t sequence_before;
    bool is_beyond;     /**< One attempt or CONFIRM more than the bound. */
    bool is_repeatable; /**< Decided twice from the same: the same bytes. */
};

extern struct xp_counters xp_counters;

void xp_bench_open(const struct xp_config *config);
/** Restores the counters that a breadth-first search uses. counts: they count from now on. */
void xp_bench_reset_counters(bool counts);

/**
 * @brief Decide the input on the world.
 *
 * @param tired the attempt's ninth CANCEL comes next (a world does not count them).
 * @param world in: before; out: after, deadline rows and jobs included.
 */
struct xp_decided xp_bench_decide(struct xp_world *world, const struct pay_decide_input *input,
                                  bool tired);

/** Of the last decision; static. */
const struct pay_decision *xp_bench_last_decision(void);

const struct pay_route *xp_bench_routes(void);
int64_t xp_bench_time_us(uint8_t time);
/** "…A01" of an index from 0; static. */
const char *xp_bench_attempt_id(int attempt);
/** A reference of an attempt, of enum xp_reference; static. */
const char *xp_bench_reference(int attempt, int which);

#endif /* PAY_TESTS_EXPLORER_BENCH_H */
