/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file refund_sum.h
 * @brief A cumulative sum of refunds is never a refund: what it shows, and what it explains.
 *
 * Internal to common/core (state-machine, "Capture, refund").
 */
#ifndef PAY_CORE_REFUND_SUM_H
#define PAY_CORE_REFUND_SUM_H

#include "common/core/money_action.h"

/** @brief REFUND_SUM: ask about each refund of ours that is not final; the difference becomes one
 *  refund of origin PSP when all are. */
void pay_refund_sum_decide(struct pay_turn *turn, int attempt_index);
/** @brief A refund of the attempt is final: is the sum that was reported explained now? */
void pay_refund_sum_explain(struct pay_turn *turn, int attempt_index);
/** @brief A refund that the PSP names and we do not know: is it in a refund that only a sum had
 *  shown? Gives that one the PSP's name, if it is all of it. */
bool pay_refund_sum_explains(struct pay_turn *turn, int attempt_index);
/** @return psp/account/reference, the idempotency key of what was made at the PSP. */
struct pay_str pay_refund_psp_key(char *dst, size_t size, const struct pay_attempt *attempt,
                                  const struct pay_event *event);

#endif /* PAY_CORE_REFUND_SUM_H */
