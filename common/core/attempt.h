/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file attempt.h
 * @brief How an attempt begins and changes its state, and what then waits for it.
 *
 * Internal to common/core. These are the only functions that write status, live and the columns
 * that belong to a state. The order follows by itself (order.h).
 */
#ifndef PAY_CORE_ATTEMPT_H
#define PAY_CORE_ATTEMPT_H

#include "common/core/turn.h"

/** @brief Create the attempt on the route: row, SUBMIT job with its gate, deadlines, facts.
 *  The caller has asked pay_orchestrate first. @return its index. */
int pay_attempt_start(struct pay_turn *turn, int route_no);

/**
 * @brief Move the attempt to another state.
 *
 * Sets what belongs to the new state, reschedules its deadlines, writes history, publishes
 * AttemptFailed for an end without money, and lets the order follow.
 */
void pay_attempt_move(struct pay_turn *turn, int attempt_index, enum pay_attempt_status next,
                      enum pay_evidence certainty, const char *reason_code);

/** @return true once a fact or a reference has proven that the PSP has the attempt. */
bool pay_attempt_is_known(const struct pay_turn *turn, int attempt_index);
/** The first such proof: remembers when. */
void pay_attempt_prove(struct pay_turn *turn, int attempt_index);
bool pay_attempt_has_reference(const struct pay_turn *turn, int attempt_index);

/** @return true while the customer has a page on which the attempt can be paid. */
bool pay_attempt_page_open(const struct pay_turn *turn, int attempt_index);

/** @return whether none of the state's own rows asks soon: a question has a QUERY row of its own.
 */
bool pay_attempt_keeps_question(enum pay_attempt_status status);
/** Ask the PSP about the attempt now. */
void pay_attempt_query(struct pay_turn *turn, int attempt_index);

/** @return whether a deadline row of the kind waits in the state; false for kinds of others. */
bool pay_attempt_waits(enum pay_attempt_status status, enum pay_deadline_kind kind);

#endif /* PAY_CORE_ATTEMPT_H */
