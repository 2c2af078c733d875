/* SPDX-License-Identifier: Apache-2.0 */
/** @file decide_parts.h @brief The three kinds of input, each in its own file. Internal. */
#ifndef PAY_CORE_DECIDE_PARTS_H
#define PAY_CORE_DECIDE_PARTS_H

#include "common/core/turn.h"

void pay_decide_event(struct pay_turn *turn);
void pay_decide_command(struct pay_turn *turn);
void pay_decide_rejected_command(struct pay_turn *turn);
void pay_decide_deadline(struct pay_turn *turn);

/** The gate row proves that the SUBMIT never left: FAILED (NOT_SENT). Shared by event and deadline.
 */
void pay_decide_not_sent(struct pay_turn *turn, int attempt_index);

#endif /* PAY_CORE_DECIDE_PARTS_H */
