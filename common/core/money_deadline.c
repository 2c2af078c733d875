/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/decide_parts.h"

#include "common/core/approval.h"
#include "common/core/gate.h"
#include "common/core/pause.h"

#include "common/base/banned.h"

#define PAUSE_LEAST_US INT64_C(1000000)

/* As decide_deadline.c: every decided deadline moves or clears its row. */

static const char *id_of(const struct pay_turn *turn, struct pay_money_ref ref)
{
    return pay_money_at(turn, ref)->action_id;
}

static const struct pay_psp_traits *traits_of(const struct pay_turn *turn, struct pay_money_ref ref)
{
    return pay_turn_traits(turn, pay_money_at(turn, ref)->attempt_index);
}

static void say(struct pay_turn *turn, struct pay_money_ref ref, enum pay_verdict verdict,
                const char *reason_code)
{
    pay_turn_verdict(turn, verdict, reason_code);
    pay_money_record(turn, ref);
}

/* ------------------------------------------------------------------------------------------ SEND
 */

static void not_due(struct pay_turn *turn, struct pay_money_ref ref, int64_t due_at_us)
{
    say(turn, ref, PAY_VERDICT_IGNORE, "NOT_DUE");
    pay_deadline_set(turn, PAY_DEADLINE_SEND, id_of(turn, ref), due_at_us);
}

/* The action's end, or its capture's attempt has been withdrawn since: money is elsewhere, or the
 * authorization ends, and what is sent now may be charged beside it. */
static bool is_over(const struct pay_turn *turn, struct pay_money_ref ref)
{
    const struct pay_money_action *action = pay_money_at(turn, ref);
    const bool is_withdrawn =
        ref.kind == PAY_MONEY_CAPTURE &&
        pay_turn_attempt(turn, action->attempt_index)->cancel_cause != PAY_CANCEL_CAUSE_NONE;

    return turn->in->now_us >= action->give_up_at_us ||
           PAY_GUARD(WITHDRAWAL_CLOSES_GATES, is_withdrawn);
}

/* The gate proves that it was not sent: again under its next job id, with a pause that grows, until
 * the action's end, then withdrawn. */
static void send_again(struct pay_turn *turn, struct pay_money_ref ref)
{
    const struct pay_gate_sum gates = pay_money_gates(turn, ref);
    const int64_t due_us =
        pay_pause_unsent_until(traits_of(turn, ref), pay_money_gate(turn, ref), &gates);
    const bool ends = is_over(turn, ref);

    if (!ends && turn->in->now_us < due_us) {
        not_due(turn, ref, pay_time_earlier(due_us, pay_money_at(turn, ref)->give_up_at_us));
        return;
    }
    pay_money_close_gates(turn, ref);
    if (!ends) {
        say(turn, ref, PAY_VERDICT_APPLY, "SENT_AGAIN");
        pay_money_send(turn, ref);
    } else {
        pay_turn_verdict(turn, PAY_VERDICT_APPLY, "NOT_SENT");
        pay_money_at(turn, ref)->failure_class = PAY_FAILURE_NOT_SENT;
        pay_money_withdraw(turn, ref, "NOT_SENT");
        pay_decide_money_moved(turn, ref, "NOT_SENT");
    }
}

/* RETRY_SAME_NUMBER: what the PSP refused for now is repeated under its own number. Looked at only
 * after the action's end it is asked about, like what is silent. */
static void repeat(struct pay_turn *turn, struct pay_money_ref ref)
{
    struct pay_money_action *action = pay_money_at(turn, ref);

    if (turn->in->now_us < action->retry_at_us) {
        not_due(turn, ref, action->retry_at_us);
        return;
    }
    if (turn->in->now_us >= action->give_up_at_us) {
        say(turn, ref, PAY_VERDICT_APPLY, "NOT_REPEATED");
        pay_money_close_gates(turn, ref);
        action->retry_at_us = 0;
        pay_row_touch(&action->change);
        return;
    }
    say(turn, ref, PAY_VERDICT_APPLY, "REPEATED");
    pay_money_close_gates(turn, ref);
    pay_money_send(turn, ref);
}

static void decide_send(struct pay_turn *turn, struct pay_money_ref ref)
{
    const struct pay_money_action *action = pay_money_at(turn, ref);
    const struct pay_gate *gate = pay_money_gate(turn, ref);

    pay_deadline_clear(turn, PAY_DEADLINE_SEND, action->action_id);
    if (action->status == PAY_MONEY_PROCESSING && action->retry_at_us != 0) {
        repeat(turn, ref);
    } else if (action->status != PAY_MONEY_CREATED || gate == NULL) {
        say(turn, ref, PAY_VERDICT_IGNORE, "STALE");
    } else if (PAY_GUARD(MONEY_NOT_SENT, pay_money_was_sent(turn, ref))) {
        pay_turn_verdict(turn, PAY_VERDICT_APPLY, "SENT_AND_NOT_HEARD_OF");
        pay_money_move(turn, ref, PAY_MONEY_UNKNOWN, PAY_EVIDENCE_LOCAL, "SENT_AND_NOT_HEARD_OF");
    } else if (gate->closed_at_us == 0 && turn->in->now_us < gate->not_after_us) {
        say(turn, ref, PAY_VERDICT_IGNORE, "SEND_WINDOW_OPEN");
        pay_deadline_set(turn, PAY_DEADLINE_SEND, action->action_id,
                         pay_time_after(gate->not_after_us, 1));
    } else {
        send_again(turn, ref);
    }
}

/* -------------------------------------------------------------------------- ANSWER, QUERY, MANUAL
 */

static void ask_again(struct pay_turn *turn, struct pay_money_ref ref, enum pay_deadline_kind kind,
                      int64_t pause_us)
{
    pay_money_query(turn, ref);
    pay_deadline_set(turn, kind, id_of(turn, ref),
                     pay_time_after(turn->in->now_us, pay_time_later(pause_us, PAUSE_LEAST_US)));
}

static void escalate(struct pay_turn *turn, struct pay_money_ref ref, enum pay_deadline_kind slow)
{
    say(turn, ref, PAY_VERDICT_APPLY, "UNKNOWN_TOO_LONG");
    (void)pay_case_open(turn, PAY_CASE_UNKNOWN_TOO_LONG, pay_money_at(turn, ref)->attempt_index, 0);
    ask_again(turn, ref, slow, traits_of(turn, ref)->person_after_us);
}

static void decide_answer(struct pay_turn *turn, struct pay_money_ref ref)
{
    pay_deadline_clear(turn, PAY_DEADLINE_ANSWER, id_of(turn, ref));
    if (pay_money_at(turn, ref)->status == PAY_MONEY_PROCESSING) {
        escalate(turn, ref, PAY_DEADLINE_ANSWER);
    } else {
        say(turn, ref, PAY_VERDICT_IGNORE, "STALE");
    }
}

static bool waits_for_answer(const struct pay_turn *turn, struct pay_money_ref ref)
{
    const enum pay_money_status status = pay_money_at(turn, ref)->status;
    return status == PAY_MONEY_UNKNOWN || !pay_money_is_open(status);
}

static void decide_query(struct pay_turn *turn, struct pay_money_ref ref)
{
    const bool waits = waits_for_answer(turn, ref);

    pay_deadline_clear(turn, PAY_DEADLINE_QUERY, id_of(turn, ref));
    say(turn, ref, PAY_VERDICT_IGNORE, waits ? "QUERY_DUE" : "STALE");
    if (waits) {
        ask_again(turn, ref, PAY_DEADLINE_QUERY, traits_of(turn, ref)->query_first_us);
    }
}

static void decide_manual(struct pay_turn *turn, struct pay_money_ref ref)
{
    pay_deadline_clear(turn, PAY_DEADLINE_MANUAL, id_of(turn, ref));
    if (waits_for_answer(turn, ref)) {
        escalate(turn, ref, PAY_DEADLINE_QUERY);
    } else {
        say(turn, ref, PAY_VERDICT_IGNORE, "STALE");
    }
}

/* ------------------------------------------------------------------------------------ RESERVATION
 */

/* A reservation that outlives its deadline is a case, and stays one until it is settled. */
static void decide_reservation(struct pay_turn *turn, struct pay_money_ref ref)
{
    const struct pay_money_action *action = pay_money_at(turn, ref);

    pay_deadline_clear(turn, PAY_DEADLINE_RESERVATION, action->action_id);
    if (!pay_money_is_open(action->status)) {
        say(turn, ref, PAY_VERDICT_IGNORE, "STALE");
        return;
    }
    say(turn, ref, PAY_VERDICT_APPLY, "RESERVATION_OVERDUE");
    (void)pay_case_open(turn, PAY_CASE_RESERVATION_OVERDUE, action->attempt_index, 0);
    if (action->status != PAY_MONEY_CREATED) {
        pay_money_query(turn, ref);
    }
    pay_deadline_set(
        turn, PAY_DEADLINE_RESERVATION, action->action_id,
        pay_time_after(turn->in->now_us,
                       pay_time_later(traits_of(turn, ref)->person_after_us, PAUSE_LEAST_US)));
}

/* --------------------------------------------------------------------------------------- dispatch
 */

typedef void action_deadline_fn(struct pay_turn *turn, struct pay_money_ref ref);

static action_deadline_fn *const handlers[PAY_DEADLINE_KIND_COUNT] = {
    [PAY_DEADLINE_SEND] = decide_send,
    [PAY_DEADLINE_ANSWER] = decide_answer,
    [PAY_DEADLINE_QUERY] = decide_query,
    [PAY_DEADLINE_MANUAL] = decide_manual,
    [PAY_DEADLINE_RESERVATION] = decide_reservation,
};

static int find_dispute(const struct pay_turn *turn, struct pay_str id)
{
    for (size_t i = 0; i < turn->snap->dispute_count; i++) {
        if (pay_str_eq_c(id, turn->snap->disputes[i].dispute_id)) {
            return (int)i;
        }
    }
    return -1;
}

bool pay_decide_money_deadline(struct pay_turn *turn)
{
    const struct pay_deadline_due *due = &turn->in->deadline;
    const struct pay_money_ref ref = pay_money_find(turn, due->aggregate_id);
    const int request = pay_approval_find(turn, due->aggregate_id);
    const int dispute = find_dispute(turn, due->aggregate_id);

    if (!turn->snap->keeps_actions || (size_t)due->kind >= PAY_DEADLINE_KIND_COUNT) {
        return false;
    }
    if (due->kind == PAY_DEADLINE_APPROVAL && request >= 0) {
        pay_approval_due(turn, request);
    } else if (due->kind == PAY_DEADLINE_DISPUTE && dispute >= 0) {
        pay_decide_dispute_due(turn, dispute);
    } else if (ref.index >= 0 && handlers[due->kind] != NULL) {
        handlers[due->kind](turn, ref);
    } else {
        return false;
    }
    return true;
}
