/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/confirm.h"

#include <string.h>

#include "common/core/attempt.h"
#include "common/core/gate.h"
#include "common/core/pause.h"
#include "common/core/withdraw.h"

#include "common/base/banned.h"

static bool other_succeeded(const struct pay_turn *turn, int attempt_index)
{
    for (size_t i = 0; i < turn->snap->attempt_count; i++) {
        if ((int)i != attempt_index && turn->snap->attempts[i].status == PAY_ATTEMPT_SUCCEEDED) {
            return true;
        }
    }
    return false;
}

static bool is_over(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const bool page_over = attempt->action_no > 0 && !pay_attempt_page_open(turn, attempt_index);
    return page_over || turn->in->now_us >= turn->snap->order.expires_at_us;
}

const char *pay_confirm_blocked(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_order *order = &turn->snap->order;
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);

    if (pay_order_is_final(order->status)) {
        return "ORDER_FINAL";
    }
    if (other_succeeded(turn, attempt_index)) {
        return "ATTEMPT_SUCCEEDED";
    }
    if (order->intent != PAY_INTENT_NONE) {
        return "INTENT";
    }
    if (pay_case_money_open(turn)) {
        return "MONEY_CASE_OPEN";
    }
    if (attempt->cancel_cause != PAY_CANCEL_CAUSE_NONE) {
        return "ATTEMPT_WITHDRAWN";
    }
    return is_over(turn, attempt_index) ? "ACTION_EXPIRED" : NULL;
}

bool pay_confirm_made(const struct pay_turn *turn, int attempt_index)
{
    const int actions = pay_turn_attempt(turn, attempt_index)->action_no;
    /* An approval may overtake the answer that hands the action out: it has its one CONFIRM too. */
    return pay_gate_confirms(turn, attempt_index) >= (actions > 0 ? actions : 1);
}

void pay_confirm_make(struct pay_turn *turn, int attempt_index)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    attempt->confirm_no++;
    pay_row_touch(&attempt->change);
    pay_job_money(turn, attempt_index, PAY_JOB_CONFIRM, attempt->confirm_no);
}

static enum pay_cancel_cause cause_of(const struct pay_turn *turn, int attempt_index)
{
    switch (turn->snap->order.intent) {
    case PAY_INTENT_CANCEL:
        return PAY_CANCEL_CAUSE_MERCHANT;
    case PAY_INTENT_CHANGE_METHOD:
        return PAY_CANCEL_CAUSE_CHANGE_METHOD;
    default:
        break;
    }
    const bool is_paid = other_succeeded(turn, attempt_index) || pay_case_money_open(turn) ||
                         pay_order_is_final(turn->snap->order.status);
    return is_paid ? PAY_CANCEL_CAUSE_OTHER_SUCCEEDED : PAY_CANCEL_CAUSE_DEADLINE;
}

void pay_confirm_approved(struct pay_turn *turn, int attempt_index)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);

    if (PAY_GUARD(CONFIRM_BLOCKED, pay_confirm_blocked(turn, attempt_index) != NULL)) {
        if (attempt->cancel_cause == PAY_CANCEL_CAUSE_NONE) {
            pay_withdraw(turn, attempt_index, cause_of(turn, attempt_index));
        } else {
            pay_withdraw_cancel(turn, attempt_index);
        }
        return;
    }
    if (!PAY_GUARD(CONFIRM_ONCE, pay_confirm_made(turn, attempt_index))) {
        pay_confirm_make(turn, attempt_index);
    }
}

static struct pay_gate *overdue_confirm(const struct pay_turn *turn, const char *attempt_id)
{
    for (size_t i = 0; i < turn->snap->gate_count; i++) {
        struct pay_gate *gate = &turn->snap->gates[i];
        if (gate->kind == PAY_JOB_CONFIRM && strcmp(gate->action_id, attempt_id) == 0 &&
            gate->sending_at_us == 0 && gate->closed_at_us == 0 &&
            turn->in->now_us >= gate->not_after_us) {
            return gate;
        }
    }
    return NULL;
}

/* After a pause that grows; at the attempt's end it is withdrawn, whatever the pause. */
static int64_t next_at(const struct pay_turn *turn, int attempt_index, const struct pay_gate *gate)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const struct pay_gate_sum gates = pay_gate_sum(turn, attempt->attempt_id, PAY_JOB_CONFIRM);
    const int64_t until_us =
        pay_pause_unsent_until(pay_turn_traits(turn, attempt_index), gate, &gates);
    const int64_t order_end_us = turn->snap->order.expires_at_us;
    const int64_t end_us = attempt->action_no > 0
                               ? pay_time_earlier(attempt->action_expires_at_us, order_end_us)
                               : order_end_us;

    return pay_time_earlier(until_us, end_us);
}

void pay_confirm_send_again(struct pay_turn *turn, int attempt_index)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    struct pay_gate *gate = overdue_confirm(turn, attempt->attempt_id);

    if (gate == NULL) {
        return;
    }
    const bool is_blocked = pay_confirm_blocked(turn, attempt_index) != NULL;
    const int64_t due_us = next_at(turn, attempt_index, gate);
    if (!is_blocked && turn->in->now_us < due_us) {
        pay_deadline_set(turn, PAY_DEADLINE_SEND, attempt->attempt_id, due_us);
        return;
    }
    pay_gate_close(turn, gate);
    if (is_blocked) {
        pay_withdraw(turn, attempt_index, cause_of(turn, attempt_index));
    } else {
        pay_confirm_make(turn, attempt_index);
    }
}
