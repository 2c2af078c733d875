/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file amounts.h
 * @brief The only arithmetic on an attempt's amounts: reserve, settle, release, take back.
 *
 * Internal to common/core. Each function keeps the money invariants (state-machine, "Money"): it
 * changes the amounts and returns true, or changes nothing and returns false. amount > 0.
 */
#ifndef PAY_CORE_AMOUNTS_H
#define PAY_CORE_AMOUNTS_H

#include "common/core/snapshot.h"

/** @return what a capture may still reserve. */
int64_t pay_amounts_capturable(const struct pay_amounts *a);
/** @return captured − refunded − refund_reserved − withdrawn, 0 when reality exceeds it. */
int64_t pay_amounts_refundable(const struct pay_amounts *a);

bool pay_amounts_reserve_capture(struct pay_amounts *a, int64_t amount);
/** @brief It exists at the PSP: up to @p most in all, whatever was known of the authorization. */
bool pay_amounts_hold_capture(struct pay_amounts *a, int64_t amount, int64_t most);
bool pay_amounts_settle_capture(struct pay_amounts *a, int64_t amount);
bool pay_amounts_release_capture(struct pay_amounts *a, int64_t amount);
/** @brief A capture that was not reserved did happen: up to @p most in all, whatever was known of
 *  the authorization. */
bool pay_amounts_take_capture(struct pay_amounts *a, int64_t amount, int64_t most);
/** What is neither captured nor reserved is not authorized any more. @return whether it changed. */
bool pay_amounts_release_rest(struct pay_amounts *a);

/** @brief We want it: only what is refundable. */
bool pay_amounts_reserve_refund(struct pay_amounts *a, int64_t amount);
/** @brief It exists at the PSP: whatever was withdrawn, it is kept. */
bool pay_amounts_hold_refund(struct pay_amounts *a, int64_t amount);
bool pay_amounts_settle_refund(struct pay_amounts *a, int64_t amount);
bool pay_amounts_release_refund(struct pay_amounts *a, int64_t amount);
/** @brief A refund that was not reserved did happen. */
bool pay_amounts_take_refund(struct pay_amounts *a, int64_t amount);
/** @brief A refund that had succeeded came back. */
bool pay_amounts_return_refund(struct pay_amounts *a, int64_t amount);

/** @brief A dispute, or a capture's reversal, took money. */
bool pay_amounts_withdraw(struct pay_amounts *a, int64_t amount);
bool pay_amounts_reinstate(struct pay_amounts *a, int64_t amount);

/** @return whether the CHECKs of the state machine hold. */
bool pay_amounts_hold(const struct pay_amounts *a);

#endif /* PAY_CORE_AMOUNTS_H */
