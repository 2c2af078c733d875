/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/decide_parts.h"

#include "common/core/attempt.h"
#include "common/core/attempt_table.h"
#include "common/core/confirm.h"
#include "common/core/control.h"
#include "common/core/gate.h"
#include "common/core/order.h"
#include "common/core/withdraw.h"

#include "common/base/banned.h"

/* Every decided deadline moves or clears its row: a row that stayed as it is would make the same
 * input again, which the inbox knows already, for ever. */

static void record_deadline(struct pay_turn *turn, int attempt_index, enum pay_verdict verdict,
                            const char *reason_code)
{
    const bool is_order = attempt_index < 0;
    const struct pay_order *order = &turn->snap->order;
    const char *status =
        is_order ? pay_order_status_name(order->status)
                 : pay_attempt_status_name(pay_turn_attempt(turn, attempt_index)->status);

    pay_turn_verdict(turn, verdict, reason_code);
    (void)pay_turn_record(
        turn, &(struct pay_record){
                  .aggregate = is_order ? PAY_AGGREGATE_ORDER : PAY_AGGREGATE_ATTEMPT,
                  .aggregate_id = is_order ? order->payment_id
                                           : pay_turn_attempt(turn, attempt_index)->attempt_id,
                  .attempt_index = attempt_index,
                  .case_index = -1,
                  .from_status = status,
                  .to_status = status,
                  .verdict = verdict,
                  .reason_code = reason_code});
}

static const char *attempt_id(const struct pay_turn *turn, int attempt_index)
{
    return pay_turn_attempt(turn, attempt_index)->attempt_id;
}

static bool is_unheard(enum pay_attempt_status status)
{
    return status == PAY_ATTEMPT_CREATED || status == PAY_ATTEMPT_SUBMITTED ||
           status == PAY_ATTEMPT_UNKNOWN;
}

/* ------------------------------------------------------------------------------------------ SEND
 */

/* The window for sending is over: close the gate. Unsent: certainly not sent. Passed: in CREATED
 * nothing was heard of the send, so its result is unknown. */
static void decide_send(struct pay_turn *turn, int attempt_index)
{
    const enum pay_attempt_status status = pay_turn_attempt(turn, attempt_index)->status;
    struct pay_gate *gate = pay_gate_submit(turn, attempt_index);
    const bool is_unsent = gate != NULL && gate->sending_at_us == 0;

    pay_deadline_clear(turn, PAY_DEADLINE_SEND, attempt_id(turn, attempt_index));
    if (is_unheard(status) && is_unsent && turn->in->now_us < gate->not_after_us) {
        record_deadline(turn, attempt_index, PAY_VERDICT_IGNORE, "SEND_WINDOW_OPEN");
        pay_deadline_set(turn, PAY_DEADLINE_SEND, attempt_id(turn, attempt_index),
                         pay_time_after(gate->not_after_us, 1));
    } else if (is_unheard(status) && is_unsent) {
        pay_turn_verdict(turn, PAY_VERDICT_APPLY, "NOT_SENT");
        turn->event_name = "NSN";
        pay_decide_not_sent(turn, attempt_index);
    } else if (status == PAY_ATTEMPT_CREATED) {
        pay_turn_verdict(turn, PAY_VERDICT_APPLY, "SENT_AND_NOT_HEARD_OF");
        turn->event_name = "UNK";
        pay_attempt_move(turn, attempt_index, PAY_ATTEMPT_UNKNOWN, PAY_EVIDENCE_LOCAL,
                         "SENT_AND_NOT_HEARD_OF");
        pay_deadline_clear(turn, PAY_DEADLINE_SEND, attempt_id(turn, attempt_index));
    } else {
        record_deadline(turn, attempt_index, PAY_VERDICT_IGNORE, "SENT");
        if (!pay_attempt_is_final(status)) {
            pay_confirm_send_again(turn, attempt_index);
        }
    }
}

/* ---------------------------------------------------------------- ANSWER, MANUAL, QUERY: escalate
 */

/* Too long without a result: a person looks, and slow queries go on. */
static void escalate(struct pay_turn *turn, int attempt_index, enum pay_deadline_kind slow)
{
    const int64_t pause_us = pay_turn_traits(turn, attempt_index)->person_after_us;

    record_deadline(turn, attempt_index, PAY_VERDICT_APPLY, "UNKNOWN_TOO_LONG");
    (void)pay_case_open(turn, PAY_CASE_UNKNOWN_TOO_LONG, attempt_index, 0);
    pay_deadline_set(turn, slow, attempt_id(turn, attempt_index),
                     pay_time_after(turn->in->now_us, pause_us > 0 ? pause_us : 1));
}

static void decide_answer(struct pay_turn *turn, int attempt_index)
{
    const enum pay_attempt_status status = pay_turn_attempt(turn, attempt_index)->status;

    if (status == PAY_ATTEMPT_SUBMITTED || status == PAY_ATTEMPT_PROCESSING) {
        escalate(turn, attempt_index, PAY_DEADLINE_ANSWER);
        /* Recovery's row brings this input, and asks no more. */
        pay_attempt_query(turn, attempt_index);
    } else {
        pay_deadline_clear(turn, PAY_DEADLINE_ANSWER, attempt_id(turn, attempt_index));
        record_deadline(turn, attempt_index, PAY_VERDICT_IGNORE, "STALE");
    }
}

static bool waits_for_answer(const struct pay_turn *turn, int attempt_index)
{
    const enum pay_attempt_status status = pay_turn_attempt(turn, attempt_index)->status;
    return status == PAY_ATTEMPT_UNKNOWN || pay_attempt_keeps_question(status);
}

static void decide_manual(struct pay_turn *turn, int attempt_index)
{
    pay_deadline_clear(turn, PAY_DEADLINE_MANUAL, attempt_id(turn, attempt_index));
    if (waits_for_answer(turn, attempt_index)) {
        escalate(turn, attempt_index, PAY_DEADLINE_QUERY);
    } else {
        record_deadline(turn, attempt_index, PAY_VERDICT_IGNORE, "STALE");
    }
}

/* Recovery asks from this row by itself; an input of the kind is answered all the same. */
static void decide_query(struct pay_turn *turn, int attempt_index)
{
    const bool waits = waits_for_answer(turn, attempt_index);
    const int64_t pause_us = pay_turn_traits(turn, attempt_index)->query_first_us;

    record_deadline(turn, attempt_index, PAY_VERDICT_IGNORE, waits ? "QUERY_DUE" : "STALE");
    pay_deadline_clear(turn, PAY_DEADLINE_QUERY, attempt_id(turn, attempt_index));
    if (waits) {
        pay_attempt_query(turn, attempt_index);
        pay_deadline_set(turn, PAY_DEADLINE_QUERY, attempt_id(turn, attempt_index),
                         pay_time_after(turn->in->now_us, pause_us > 0 ? pause_us : 1));
    }
}

/* ----------------------------------------------------------------------------------------- ACTION
 */

/* 3: the deadline closes nothing by itself, its effect is a CANCEL and a new deadline. */
static void decide_action(struct pay_turn *turn, int attempt_index)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const struct pay_attempt_cell *cell = pay_attempt_table_cell(attempt->status, PAY_AE_AEX);
    const bool is_canceling =
        attempt->cancel_cause != PAY_CANCEL_CAUSE_NONE && !pay_attempt_is_final(attempt->status);

    turn->event_name = "AEX";
    pay_deadline_clear(turn, PAY_DEADLINE_ACTION, attempt->attempt_id);
    if (is_canceling) {
        record_deadline(turn, attempt_index, PAY_VERDICT_IGNORE, "CANCEL_REPEATED");
        pay_withdraw_repeat(turn, attempt_index);
    } else if (cell->kind == PAY_CELL_NOTE) {
        record_deadline(turn, attempt_index, PAY_VERDICT_APPLY, "ACTION_EXPIRED");
        pay_withdraw(turn, attempt_index, PAY_CANCEL_CAUSE_DEADLINE);
    } else {
        record_deadline(turn, attempt_index, PAY_VERDICT_IGNORE, "STALE");
    }
}

/* Shortly before an authorization's end, while a capture still has its time: by the merchant's
 * policy it is captured, else it ends. */
static void decide_before_end(struct pay_turn *turn, int attempt_index)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);

    if (!pay_decide_capture_by_policy(turn, attempt_index)) {
        record_deadline(turn, attempt_index, PAY_VERDICT_IGNORE, "AUTHORIZATION_ENDS_SOON");
    }
    pay_deadline_set(turn, PAY_DEADLINE_AUTHORIZATION, attempt->attempt_id,
                     attempt->authorization_expires_at_us);
}

/* 9: our own clock alone closes nothing: at the authorization's end a void job and a query. */
static void decide_authorization(struct pay_turn *turn, int attempt_index)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const int64_t pause_us = pay_turn_traits(turn, attempt_index)->person_after_us;
    const bool is_over = attempt->authorization_expires_at_us != 0 &&
                         turn->in->now_us >= attempt->authorization_expires_at_us;

    pay_deadline_clear(turn, PAY_DEADLINE_AUTHORIZATION, attempt->attempt_id);
    if (attempt->status != PAY_ATTEMPT_AUTHORIZED) {
        record_deadline(turn, attempt_index, PAY_VERDICT_IGNORE, "STALE");
        return;
    }
    if (!is_over && turn->snap->keeps_actions && attempt->authorization_expires_at_us != 0) {
        decide_before_end(turn, attempt_index);
        return;
    }
    record_deadline(turn, attempt_index, PAY_VERDICT_APPLY,
                    is_over ? "AUTHORIZATION_ENDS" : "AUTHORIZATION_ASKED");
    pay_attempt_query(turn, attempt_index);
    if (is_over) {
        pay_withdraw(turn, attempt_index, PAY_CANCEL_CAUSE_DEADLINE);
    }
    pay_deadline_set(turn, PAY_DEADLINE_AUTHORIZATION, attempt->attempt_id,
                     pay_time_after(turn->in->now_us, pause_us > 0 ? pause_us : 1));
}

/* ------------------------------------------------------------------------------------------ order
 */

static void decide_order_expiry(struct pay_turn *turn)
{
    struct pay_order *order = &turn->snap->order;

    pay_deadline_clear(turn, PAY_DEADLINE_ORDER_EXPIRY, order->payment_id);
    if (pay_order_is_final(order->status)) {
        record_deadline(turn, -1, PAY_VERDICT_IGNORE, "ORDER_FINAL");
    } else if (turn->in->now_us < order->expires_at_us) {
        record_deadline(turn, -1, PAY_VERDICT_IGNORE, "NOT_EXPIRED");
        pay_deadline_set(turn, PAY_DEADLINE_ORDER_EXPIRY, order->payment_id, order->expires_at_us);
    } else if (PAY_GUARD(EXPIRY_WAITS, pay_order_live_attempt(turn) >= 0)) {
        order->expiry_asked = true; /* Asked again when that attempt ends. */
        pay_row_touch(&order->change);
        record_deadline(turn, -1, PAY_VERDICT_APPLY, "EXPIRY_WAITS_FOR_ATTEMPT");
    } else {
        pay_turn_verdict(turn, PAY_VERDICT_APPLY, "EXPIRED");
        pay_order_set(turn, PAY_ORDER_EXPIRED, -1, "EXPIRED");
    }
}

/* What Kafka refuses for good holds all that the payment has to tell: a person looks. By what is
 * true now, not by what was when recovery looked: the case is open while a row is dead. */
static void decide_dead_event(struct pay_turn *turn)
{
    const int open = pay_case_find_open(turn, PAY_CASE_DEAD_EVENT);

    if (turn->in->deadline.row_due_at_us != 0) {
        record_deadline(turn, -1, PAY_VERDICT_APPLY, "EVENT_IS_DEAD");
        (void)pay_case_open(turn, PAY_CASE_DEAD_EVENT, -1, 0);
    } else if (open >= 0) {
        record_deadline(turn, -1, PAY_VERDICT_APPLY, "NO_EVENT_IS_DEAD");
        pay_control_resolve(turn, open, "payfact-processor", "NO_EVENT_IS_DEAD");
    } else {
        record_deadline(turn, -1, PAY_VERDICT_IGNORE, "STALE");
    }
}

/* --------------------------------------------------------------------------------------- dispatch
 */

typedef void attempt_deadline_fn(struct pay_turn *turn, int attempt_index);

static attempt_deadline_fn *const handlers[PAY_DEADLINE_KIND_COUNT] = {
    [PAY_DEADLINE_SEND] = decide_send,     [PAY_DEADLINE_ANSWER] = decide_answer,
    [PAY_DEADLINE_QUERY] = decide_query,   [PAY_DEADLINE_MANUAL] = decide_manual,
    [PAY_DEADLINE_ACTION] = decide_action, [PAY_DEADLINE_AUTHORIZATION] = decide_authorization,
};

static int find_attempt(const struct pay_turn *turn, struct pay_str id)
{
    for (size_t i = 0; i < turn->snap->attempt_count; i++) {
        if (pay_str_eq_c(id, turn->snap->attempts[i].attempt_id)) {
            return (int)i;
        }
    }
    return -1;
}

/* A kind that is not decided here, or an aggregate that is not there: the row goes. */
static void decide_nothing(struct pay_turn *turn, const char *reason_code)
{
    const struct pay_deadline_due *due = &turn->in->deadline;
    char aggregate_id[PAY_CAUSE_SIZE];

    record_deadline(turn, -1, PAY_VERDICT_IGNORE, reason_code);
    if (pay_str_copy(aggregate_id, sizeof aggregate_id, due->aggregate_id)) {
        pay_deadline_clear(turn, due->kind, aggregate_id);
    }
}

/* Set to the very time that it had, the row would make the same input again. */
static void move_on(struct pay_turn *turn)
{
    const struct pay_deadline_due *due = &turn->in->deadline;

    for (size_t i = 0; i < turn->out->effect_count; i++) {
        struct pay_effect *effect = &turn->out->effects[i];
        if (effect->kind == PAY_EFFECT_DEADLINE_SET && effect->as.deadline.kind == due->kind &&
            effect->as.deadline.due_at_us == due->due_at_us &&
            pay_str_eq_c(due->aggregate_id, effect->as.deadline.aggregate_id)) {
            effect->as.deadline.due_at_us++;
        }
    }
}

void pay_decide_deadline(struct pay_turn *turn)
{
    const struct pay_deadline_due *due = &turn->in->deadline;
    const int attempt_index = find_attempt(turn, due->aggregate_id);
    const bool is_known = (size_t)due->kind < PAY_DEADLINE_KIND_COUNT;

    turn->event_name = pay_deadline_kind_name(due->kind);
    if (!turn->snap->order.exists) {
        pay_turn_verdict(turn, PAY_VERDICT_IGNORE, "ORPHAN");
        turn->out->orphan = true;
    } else if (is_known && due->kind == PAY_DEADLINE_DEAD_EVENT) {
        decide_dead_event(turn);
    } else if (PAY_GUARD(OLD_DEADLINE, due->due_at_us != due->row_due_at_us)) {
        record_deadline(turn, attempt_index, PAY_VERDICT_IGNORE, "OLD_DEADLINE");
    } else if (is_known && due->kind == PAY_DEADLINE_ORDER_EXPIRY) {
        decide_order_expiry(turn);
    } else if (pay_decide_money_deadline(turn)) {
        /* Of a capture, a refund, a dispute or an approval. */
    } else if (!is_known || handlers[due->kind] == NULL) {
        decide_nothing(turn, "NOT_SUPPORTED_YET");
    } else if (attempt_index < 0) {
        decide_nothing(turn, "NO_SUCH_ATTEMPT");
    } else {
        handlers[due->kind](turn, attempt_index);
    }
    move_on(turn);
}
