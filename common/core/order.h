/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file order.h
 * @brief How the order follows its attempts, and how it ends without one.
 *
 * Internal to common/core: applies order_table.h.
 */
#ifndef PAY_CORE_ORDER_H
#define PAY_CORE_ORDER_H

#include "common/core/turn.h"

/** @brief The attempt has changed its state: let the order follow.
 *  @param was_live whether it held the payment before: only that attempt's end moves the order. */
void pay_order_follow(struct pay_turn *turn, int attempt_index, bool was_live);

/** @brief Set the order's status; publishes its fact. Same status: only the reason changes.
 *  @param attempt_index why; -1: no attempt's doing. @param reason_code copied. */
void pay_order_set(struct pay_turn *turn, enum pay_order_status next, int attempt_index,
                   const char *reason_code);

/** @return index of a live attempt that is not SUCCEEDED; -1 when there is none. */
int pay_order_live_attempt(const struct pay_turn *turn);
/** Forget a CHANGE_METHOD that was carried out or has become impossible. CANCEL stays for ever. */
void pay_order_clear_change_method(struct pay_turn *turn);

#endif /* PAY_CORE_ORDER_H */
