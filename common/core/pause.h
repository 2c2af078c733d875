/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file pause.h
 * @brief How long is waited before a money job is made again: longer each time, so that a PSP that
 * is away for weeks is asked a few hundred times, not thousands.
 *
 * Internal to common/core. Derived from what the gate rows say, never drawn: deciding again makes
 * the same pause.
 */
#ifndef PAY_CORE_PAUSE_H
#define PAY_CORE_PAUSE_H

#include "common/core/gate.h"

#define PAY_PAUSE_MOST_US (INT64_C(14400) * 1000000)      /**< Ours grow up to four hours. */
#define PAY_PAUSE_SAID_MOST_US (INT64_C(86400) * 1000000) /**< The PSP's is followed to a day. */

/** @return first_us (at least a second), doubled with each try after the first; 0 before it. A
 *          first one above PAY_PAUSE_MOST_US does not grow. */
int64_t pay_pause_us(int64_t first_us, int tries);
/** @return from when on the latest gate, whose window is over and that was not passed, is followed
 *          by the next: at once the first time. */
int64_t pay_pause_unsent_until(const struct pay_psp_traits *traits, const struct pay_gate *latest,
                               const struct pay_gate_sum *gates);
/** @param said_s Retry-After of what the PSP refused for now; 0: not said.
 *  @return how long until it is repeated. */
int64_t pay_pause_refused_us(const struct pay_psp_traits *traits, int said_s,
                             const struct pay_gate_sum *gates);

#endif /* PAY_CORE_PAUSE_H */
