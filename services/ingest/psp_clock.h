/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file psp_clock.h
 * @brief The database's clock as this process knows it.
 *
 * A gate opens, closes and counts by the database's clock, and whoever compares a moment with one
 * of the gate's must do so by the same: a machine whose own clock is wrong must neither refuse what
 * is in time nor let a not-found count that was asked too early. Each statement on a gate brings
 * the database's time; between them the monotonic clock goes on from there. That is an estimate:
 * the database's clock may be set, or another machine's take its place, while nothing is said to
 * it. By an old one no query is dropped, or a clock that went back would have every query dropped
 * until the next money call, however long that takes.
 *
 * Threads: any. Failure: none; until something was learned it is this machine's clock.
 */
#ifndef PAY_INGEST_PSP_CLOCK_H
#define PAY_INGEST_PSP_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct pay_psp_clock {
    /** To be added to the monotonic clock. Two, because a statement's time lies somewhere between
     * its start and its answer. */
    atomic_int_fast64_t earliest_us, latest_us;
    atomic_int_fast64_t learned_mono_us; /**< When; 0: never. */
};

void pay_psp_clock_init(struct pay_psp_clock *clock);
/** @param database_us what a statement said. @param began_mono_us when it was started. */
void pay_psp_clock_learn(struct pay_psp_clock *clock, int64_t database_us, int64_t began_mono_us);
/** @return true: the database said it a second ago at most; false: an older word, or none. */
bool pay_psp_clock_known(struct pay_psp_clock *clock);
/** @return a time that the database's clock has certainly reached: for "asked after". */
int64_t pay_psp_clock_earliest_us(struct pay_psp_clock *clock);
/** @return a time that it has certainly not passed: for "not after". */
int64_t pay_psp_clock_latest_us(struct pay_psp_clock *clock);

#endif /* PAY_INGEST_PSP_CLOCK_H */
