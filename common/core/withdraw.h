/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file withdraw.h
 * @brief Taking an attempt back: gates first, then a cancel at the PSP, then waiting for evidence.
 *
 * Internal to common/core. Withdrawing ends an attempt at once only where a gate row proves that no
 * money can move; otherwise it ends by evidence.
 */
#ifndef PAY_CORE_WITHDRAW_H
#define PAY_CORE_WITHDRAW_H

#include "common/core/turn.h"

/** @brief Withdraw the attempt. Nothing happens to one that is final. */
void pay_withdraw(struct pay_turn *turn, int attempt_index, enum pay_cancel_cause cause);
/** @brief Cancel at the PSP as far as it can be done now: CANCEL, or a query, or a case; and the
 *  row that repeats it. */
void pay_withdraw_cancel(struct pay_turn *turn, int attempt_index);
/** @brief The repeat by deadline: as pay_withdraw_cancel, and a case once it has gone on too long.
 */
void pay_withdraw_repeat(struct pay_turn *turn, int attempt_index);

/** @return when a query's "unpaid" or "not found" closes an attempt of a PSP that cannot cancel:
 * the expiry that we gave it, plus grace; 0: never. */
int64_t pay_withdraw_expiry(const struct pay_turn *turn, int attempt_index);

#endif /* PAY_CORE_WITHDRAW_H */
