/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file bench.h
 * @brief Where the real core is run: a world becomes a snapshot, pay_decide() decides, and the
 * snapshot becomes a world again. One bench for the whole program; not for threads.
 */
#ifndef PAY_TESTS_MONEY_BENCH_H
#define PAY_TESTS_MONEY_BENCH_H

#include "tests/property/money/world.h"

#define MX_PAYMENT "01J9ZQ4V7M3N8P5R2T6W0X1YAB"
#define MX_SECOND INT64_C(1000000)
#define MX_NOW INT64_C(1700000000000000)
#define MX_END (MX_NOW + 5000 * MX_SECOND) /**< After every action's own end. */
#define MX_ASKED_LATE (MX_NOW - MX_SECOND) /**< After every send of an old action has ended. */
#define MX_ASKED_EARLY (MX_NOW - 100 * MX_SECOND)

struct mx_decided {
    const struct pay_decision *decision;
    const struct pay_snapshot *snap; /**< After. */
    bool is_beyond;                  /**< One action or job more than a world can hold. */
    bool is_repeatable;              /**< Decided twice from the same: the same bytes. */
};

void mx_bench_open(const struct mx_config *config);
/** @param world in: before; out: after, deadline rows included. */
struct mx_decided mx_bench_decide(struct mx_world *world, const struct pay_decide_input *input);
/** "A01", "C02" ... as an id of the payment; static. */
const char *mx_id(char letter, int number);
/** The PSP's name of an object; static. kind: enum pay_money_kind; 2: the dispute. */
const char *mx_reference(int attempt, int kind, int object);
const uint8_t *mx_digest(void);
/** What a request's row expects; a stale one expects the version before. */
#define MX_VERSION 100

#endif /* PAY_TESTS_MONEY_BENCH_H */
