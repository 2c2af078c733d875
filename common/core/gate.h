/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gate.h
 * @brief What the gate rows of an attempt's money jobs prove, and closing them.
 *
 * Internal to common/core. A gate closed while its sending_at is not set proves NOT_SENT: the close
 * belongs to the payment's CAS step, so a gate that was passed meanwhile makes the whole decision a
 * lost race, decided again.
 */
#ifndef PAY_CORE_GATE_H
#define PAY_CORE_GATE_H

#include "common/core/turn.h"

/** What the gates of an action came to, those included that the store left out. */
struct pay_gate_sum {
    int made;
    int open;        /**< Not passed, not closed: may yet be sent. */
    int sent;        /**< Passed: may have left. */
    int sends;       /**< Of those, replays too. */
    int64_t last_us; /**< The later of not_after and the last send, over all; 0: there is none. */
};

/** @return over the action's gates of that kind. made - open - sent were closed unsent. */
struct pay_gate_sum pay_gate_sum(const struct pay_turn *turn, const char *action_id,
                                 enum pay_job_kind kind);

/** @return the gate row of the job, NULL when the snapshot has none. A closed one that is not its
 * action's latest may be left out; a CONFIRM's only if it was never sent, so that nobody answers
 * about it. */
struct pay_gate *pay_gate_of_job(const struct pay_turn *turn, struct pay_str job_id);
/** @return the attempt's SUBMIT gate, NULL when the snapshot has none. */
struct pay_gate *pay_gate_submit(const struct pay_turn *turn, int attempt_index);

/** Nothing is sent through it from now on: no first send, retry or replay. Closed already: kept. */
void pay_gate_close(const struct pay_turn *turn, struct pay_gate *gate);
/** Close SUBMIT and CONFIRM gates of the attempt, sending or not. */
void pay_gate_close_all(const struct pay_turn *turn, int attempt_index);

/** @return true when the attempt's SUBMIT was closed unsent: the PSP has never been asked. */
bool pay_gate_never_sent(const struct pay_turn *turn, int attempt_index);
/** @return true when a CONFIRM of the attempt may have left. */
bool pay_gate_confirm_sent(const struct pay_turn *turn, int attempt_index);
/** @return how many CONFIRM jobs count: made, and not closed unsent. */
int pay_gate_confirms(const struct pay_turn *turn, int attempt_index);
/** @return the later of not_after and the last send, over the attempt's SUBMIT and CONFIRM gates.
 */
int64_t pay_gate_last_send(const struct pay_turn *turn, int attempt_index);

#endif /* PAY_CORE_GATE_H */
