/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file confirm.h
 * @brief Our confirmation of what the customer approved: one for each action handed out.
 *
 * Internal to common/core (note 7).
 */
#ifndef PAY_CORE_CONFIRM_H
#define PAY_CORE_CONFIRM_H

#include "common/core/turn.h"

/** @return why no CONFIRM may be made now (static text), NULL when it may. */
const char *pay_confirm_blocked(const struct pay_turn *turn, int attempt_index);
/** @return true when the action handed out last has its CONFIRM already. */
bool pay_confirm_made(const struct pay_turn *turn, int attempt_index);
/** Make the next CONFIRM job. */
void pay_confirm_make(struct pay_turn *turn, int attempt_index);
/** @brief The customer approved: CONFIRM, or CANCEL instead where none may be made. */
void pay_confirm_approved(struct pay_turn *turn, int attempt_index);
/** @brief The SEND deadline of a CONFIRM that has not left: again with its next number, or, at the
 *  attempt's end, withdrawn. Nothing when none waits. */
void pay_confirm_send_again(struct pay_turn *turn, int attempt_index);

#endif /* PAY_CORE_CONFIRM_H */
