/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/withdraw.h"

#include "common/core/attempt.h"
#include "common/core/gate.h"
#include "common/core/money_action.h"

#include "common/base/banned.h"

#define CANCELS_BEFORE_CASE 8
#define RETRY_MIN_US \
    INT64_C(1000000) /* A repeat without a pause would be a busy loop at the PSP. */

/* The merchant's word, and money elsewhere, say more about the order than a deadline or a decline;
 * otherwise the first cause stays. */
static void set_cause(struct pay_attempt *attempt, enum pay_cancel_cause cause)
{
    const bool is_stronger = cause == PAY_CANCEL_CAUSE_MERCHANT ||
                             cause == PAY_CANCEL_CAUSE_CHANGE_METHOD ||
                             cause == PAY_CANCEL_CAUSE_OTHER_SUCCEEDED;
    if (attempt->cancel_cause == PAY_CANCEL_CAUSE_NONE || is_stronger) {
        attempt->cancel_cause = cause;
        pay_row_touch(&attempt->change);
    }
}

static void close_gates(struct pay_turn *turn, int attempt_index)
{
    if (PAY_GUARD(WITHDRAWAL_CLOSES_GATES, true)) {
        pay_gate_close_all(turn, attempt_index);
        pay_money_withdraw_captures(turn, attempt_index);
    }
}

/* States in which nothing has been heard from the PSP: there an unsent gate says everything. */
static bool is_unheard(enum pay_attempt_status status)
{
    return status == PAY_ATTEMPT_CREATED || status == PAY_ATTEMPT_SUBMITTED ||
           status == PAY_ATTEMPT_UNKNOWN;
}

/* @return true when the gate rows proved the end. */
static bool end_by_proof(struct pay_turn *turn, int attempt_index)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);

    if (is_unheard(attempt->status) && pay_gate_never_sent(turn, attempt_index)) {
        if (attempt->failure_class == PAY_FAILURE_NONE) {
            attempt->failure_class = PAY_FAILURE_NOT_SENT;
        }
        pay_attempt_move(turn, attempt_index, PAY_ATTEMPT_FAILED, PAY_EVIDENCE_LOCAL, "NOT_SENT");
        return true;
    }
    /* Where only our CONFIRM moves money, never making it is CAN (note 7). */
    if (pay_turn_traits(turn, attempt_index)->confirm_moves_money &&
        attempt->status != PAY_ATTEMPT_AUTHORIZED && !pay_gate_confirm_sent(turn, attempt_index)) {
        pay_attempt_move(turn, attempt_index, PAY_ATTEMPT_CANCELED, PAY_EVIDENCE_LOCAL,
                         "NEVER_CONFIRMED");
        return true;
    }
    return false;
}

int64_t pay_withdraw_expiry(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const struct pay_psp_traits *traits = pay_turn_traits(turn, attempt_index);

    if (traits->can_cancel || attempt->psp_expires_at_us == 0) {
        return 0;
    }
    return pay_time_after(attempt->psp_expires_at_us, traits->visibility_grace_us);
}

static void repeat_at(struct pay_turn *turn, int attempt_index, int64_t due_at_us)
{
    const int64_t soonest_us = pay_time_after(turn->in->now_us, RETRY_MIN_US);
    pay_deadline_set(turn, PAY_DEADLINE_ACTION, pay_turn_attempt(turn, attempt_index)->attempt_id,
                     pay_time_later(due_at_us, soonest_us));
}

/* The PSP cannot cancel: wait for the expiry that we gave it, then ask. Without one it stays
 * blocking and becomes a case (note 3). */
static void wait_for_expiry(struct pay_turn *turn, int attempt_index)
{
    const struct pay_psp_traits *traits = pay_turn_traits(turn, attempt_index);
    const int64_t now_us = turn->in->now_us;
    const int64_t expiry_us = pay_withdraw_expiry(turn, attempt_index);

    pay_attempt_query(turn, attempt_index);
    if (expiry_us == 0 || now_us > pay_time_after(expiry_us, traits->person_after_us)) {
        (void)pay_case_open(turn, PAY_CASE_CANNOT_CLOSE, attempt_index, 0);
        repeat_at(turn, attempt_index, pay_time_after(now_us, traits->person_after_us));
        return;
    }
    repeat_at(turn, attempt_index,
              pay_time_later(pay_time_after(expiry_us, 1),
                             pay_time_after(now_us, traits->cancel_retry_us)));
}

void pay_withdraw_cancel(struct pay_turn *turn, int attempt_index)
{
    const struct pay_psp_traits *traits = pay_turn_traits(turn, attempt_index);

    const struct pay_money_ref capture = pay_money_open_capture(turn, attempt_index);

    if (capture.index >= 0) { /* It is voided if the capture comes to nothing. */
        pay_money_query(turn, capture);
        repeat_at(turn, attempt_index, pay_time_after(turn->in->now_us, traits->cancel_retry_us));
    } else if (PAY_GUARD(CANCEL_KNOWN, !pay_attempt_is_known(turn, attempt_index))) {
        /* A cancel of what the PSP does not have yet answers "canceled" and cancels nothing. The
         * state's own rows ask again. */
        pay_attempt_query(turn, attempt_index);
    } else if (traits->can_cancel) {
        pay_job_cancel(turn, attempt_index);
        repeat_at(turn, attempt_index, pay_time_after(turn->in->now_us, traits->cancel_retry_us));
    } else {
        wait_for_expiry(turn, attempt_index);
    }
}

void pay_withdraw_repeat(struct pay_turn *turn, int attempt_index)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const struct pay_psp_traits *traits = pay_turn_traits(turn, attempt_index);

    repeat_at(turn, attempt_index, pay_time_after(turn->in->now_us, traits->cancel_retry_us));
    pay_withdraw_cancel(turn, attempt_index);
    if (attempt->cancel_no > CANCELS_BEFORE_CASE) {
        (void)pay_case_open(turn, PAY_CASE_CANNOT_CLOSE, attempt_index, 0);
        repeat_at(turn, attempt_index, pay_time_after(turn->in->now_us, traits->person_after_us));
    }
}

void pay_withdraw(struct pay_turn *turn, int attempt_index, enum pay_cancel_cause cause)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const bool is_first = attempt->cancel_cause == PAY_CANCEL_CAUSE_NONE;

    if (pay_attempt_is_final(attempt->status)) {
        return;
    }
    set_cause(attempt, cause);
    close_gates(turn, attempt_index);
    if (end_by_proof(turn, attempt_index)) {
        return;
    }
    if (is_first) { /* Otherwise it is on its way already, and its row repeats it. */
        pay_withdraw_cancel(turn, attempt_index);
    }
}
