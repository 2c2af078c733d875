/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file psp_clock.h
 * @brief The database's clock as this process knows it.
 *
 * A gate opens, closes and counts by the database's clock, and whoever compares a moment with one
 * of the gate's must do so by the same: a machine whose own clock is wrong must neither refuse what
 * is in time nor let a not-found count that was asked too early. Each statement on a gate brings
 * the database's time; between them the monotonic clock goes on from there.
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
    atomic_bool is_known; /**< Something was learned. */
};

void pay_psp_clock_init(struct pay_psp_clock *clock);
/** @param database_us what a statement said. @param began_mono_us when it was started. */
void pay_psp_clock_learn(struct pay_psp_clock *clock, int64_t database_us, int64_t began_mono_us);
/** @return true: it is the database's clock; false: still this machine's. */
bool pay_psp_clock_known(struct pay_psp_clock *clock);
/** @return a time that the database's clock has certainly reached: for "asked after". */
int64_t pay_psp_clock_earliest_us(struct pay_psp_clock *clock);
/** @return a time that it has certainly not passed: for "not after". */
int64_t pay_psp_clock_latest_us(struct pay_psp_clock *clock);

#endif /* PAY_INGEST_PSP_CLOCK_H */
