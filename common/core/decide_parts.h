/* SPDX-License-Identifier: Apache-2.0 */
/** @file decide_parts.h @brief The kinds of input, each in its own file. Internal. */
#ifndef PAY_CORE_DECIDE_PARTS_H
#define PAY_CORE_DECIDE_PARTS_H

#include "common/core/dispute_table.h"
#include "common/core/money_action.h"
#include "common/core/turn.h"

void pay_decide_event(struct pay_turn *turn);
void pay_decide_command(struct pay_turn *turn);
void pay_decide_rejected_command(struct pay_turn *turn);
void pay_decide_deadline(struct pay_turn *turn);

/** The gate row proves that the SUBMIT never left: FAILED (NOT_SENT). Shared by event and deadline.
 */
void pay_decide_not_sent(struct pay_turn *turn, int attempt_index);
/** The event as if it stood in that column of the attempt table. */
void pay_decide_attempt_column(struct pay_turn *turn, int attempt_index,
                               enum pay_attempt_event column);
/** One history row about the attempt: nothing moved. */
void pay_decide_record_attempt(struct pay_turn *turn, int attempt_index);

/* ---- captures and refunds (decide_money.c) ---- */

void pay_decide_money(struct pay_turn *turn, int attempt_index, enum pay_money_kind kind,
                      enum pay_money_event column);
/** RETRY_SAME_NUMBER: it stays PROCESSING with its reservation and comes again. */
void pay_decide_refund_retry(struct pay_turn *turn, int attempt_index);
void pay_decide_money_query_failed(struct pay_turn *turn, struct pay_money_ref ref);
/** What an action's new state does to its attempt and to sums. */
void pay_decide_money_moved(struct pay_turn *turn, struct pay_money_ref ref,
                            const char *reason_code);
/** @return true when the deadline was one of an action, a dispute or an approval request. */
bool pay_decide_money_deadline(struct pay_turn *turn);
/** The merchant's policy captures what an authorization still holds, shortly before its end.
 *  @return true when it made the capture. */
bool pay_decide_capture_by_policy(struct pay_turn *turn, int attempt_index);

/* ---- disputes (decide_dispute.c) ---- */

void pay_decide_dispute(struct pay_turn *turn, int attempt_index, enum pay_dispute_event column);
void pay_decide_dispute_due(struct pay_turn *turn, int index);

/* ---- commands: one function each ---- */

/** Under the payment's own numbers only for its own merchant; else outside them. */
void pay_command_answer(struct pay_turn *turn, enum pay_verdict verdict, const char *reason_code,
                        const char *result_id);
void pay_command_refuse(struct pay_turn *turn, const char *reason_code);
void pay_command_capture(struct pay_turn *turn);
void pay_command_refund(struct pay_turn *turn);
/** FORCE_CLOSE_UNKNOWN, CORRECT_STATE, RELEASE_RESERVATION, OVERRIDE_BLOCK, RESOLVE_CASE. */
void pay_command_control(struct pay_turn *turn);
void pay_command_approve(struct pay_turn *turn);
void pay_command_decline(struct pay_turn *turn);

#endif /* PAY_CORE_DECIDE_PARTS_H */
