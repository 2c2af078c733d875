/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/order.h"

#include <string.h>

#include "common/core/attempt.h"
#include "common/core/orchestrate.h"
#include "common/core/order_table.h"
#include "common/core/withdraw.h"

#include "common/base/banned.h"

int pay_order_live_attempt(const struct pay_turn *turn)
{
    for (size_t i = 0; i < turn->snap->attempt_count; i++) {
        const struct pay_attempt *attempt = &turn->snap->attempts[i];
        if (attempt->live && attempt->status != PAY_ATTEMPT_SUCCEEDED) {
            return (int)i;
        }
    }
    return -1;
}

void pay_order_clear_change_method(struct pay_turn *turn)
{
    struct pay_order *order = &turn->snap->order;
    if (order->intent == PAY_INTENT_CHANGE_METHOD) {
        order->intent = PAY_INTENT_NONE;
        order->intent_command_id[0] = 0;
        order->intent_route_no = -1;
        pay_row_touch(&order->change);
    }
}

static void set_reason(struct pay_order *order, const char *reason_code)
{
    char copy[PAY_CODE_SIZE] = {0}; /* The reason may stand in the order itself. */
    if (!pay_str_copy(copy, sizeof copy, pay_str_of(reason_code))) {
        copy[0] = 0;
    }
    memcpy(order->reason_code, copy, sizeof copy);
}

void pay_order_set(struct pay_turn *turn, enum pay_order_status next, int attempt_index,
                   const char *reason_code)
{
    struct pay_order *order = &turn->snap->order;
    const enum pay_order_status before = order->status;

    if (strcmp(order->reason_code, reason_code) != 0) {
        set_reason(order, reason_code);
        pay_row_touch(&order->change);
    }
    if (before == next) {
        return;
    }
    order->status = next;
    pay_row_touch(&order->change);
    const int fact =
        pay_turn_record(turn, &(struct pay_record){.aggregate = PAY_AGGREGATE_ORDER,
                                                   .aggregate_id = order->payment_id,
                                                   .attempt_index = attempt_index,
                                                   .case_index = -1,
                                                   .from_status = pay_order_status_name(before),
                                                   .to_status = pay_order_status_name(next),
                                                   .verdict = PAY_VERDICT_APPLY,
                                                   .reason_code = order->reason_code,
                                                   .publishes = true,
                                                   .fact = pay_order_fact(next),
                                                   .recurs = pay_order_status_recurs(next)});
    if (next == PAY_ORDER_REQUIRES_ACTION && attempt_index >= 0) {
        const struct pay_event *event = turn->in->event;
        turn->out->effects[fact].as.fact.has_action =
            event != NULL && event->action.is_set &&
            pay_turn_attempt(turn, attempt_index)->cancel_cause == PAY_CANCEL_CAUSE_NONE;
    }
    if (pay_order_is_final(next)) {
        order->expiry_asked = false;
        pay_deadline_clear(turn, PAY_DEADLINE_ORDER_EXPIRY, order->payment_id);
    }
}

/* ------------------------------------------------------------------------------------- success */

/* Money on an order that is closed already, or paid by another attempt: the order stays, the money
 * is kept in the attempt's amounts, and a person decides on the refund of that attempt. */
static void late_money(struct pay_turn *turn, int attempt_index)
{
    const struct pay_order *order = &turn->snap->order;
    const enum pay_case_kind kind =
        order->status == PAY_ORDER_SUCCEEDED ? PAY_CASE_DUPLICATE_CHARGE : PAY_CASE_LATE_SUCCESS;
    const char *status = pay_order_status_name(order->status);

    pay_turn_verdict(turn, PAY_VERDICT_APPLY, pay_case_kind_name(kind));
    (void)pay_turn_record(turn, &(struct pay_record){.aggregate = PAY_AGGREGATE_ORDER,
                                                     .aggregate_id = order->payment_id,
                                                     .attempt_index = attempt_index,
                                                     .case_index = -1,
                                                     .from_status = status,
                                                     .to_status = status,
                                                     .verdict = PAY_VERDICT_NEEDS_RECONCILIATION,
                                                     .reason_code = pay_case_kind_name(kind)});
    (void)pay_case_open(turn, kind, attempt_index,
                        pay_turn_attempt(turn, attempt_index)->amounts.captured);
}

static void withdraw_others(struct pay_turn *turn, int attempt_index)
{
    for (int i = 0; (size_t)i < turn->snap->attempt_count; i++) {
        const struct pay_attempt *other = &turn->snap->attempts[i];
        const bool is_open =
            i != attempt_index && other->live && !pay_attempt_is_final(other->status);
        if (PAY_GUARD(OTHERS_WITHDRAWN, is_open)) {
            pay_withdraw(turn, i, PAY_CANCEL_CAUSE_OTHER_SUCCEEDED);
        }
    }
}

static void follow_success(struct pay_turn *turn, int attempt_index)
{
    if (PAY_GUARD(FINAL_ORDER, pay_order_is_final(turn->snap->order.status))) {
        late_money(turn, attempt_index);
    } else {
        turn->snap->order.paid_attempt_no = pay_turn_attempt(turn, attempt_index)->attempt_no;
        pay_order_set(turn, PAY_ORDER_SUCCEEDED, attempt_index, "PAID");
    }
    withdraw_others(turn, attempt_index);
}

/* ------------------------------------------------------------------------- the end without money
 */

static bool start_chosen_method(struct pay_turn *turn)
{
    const struct pay_order *order = &turn->snap->order;
    const int route_no = order->intent_route_no;

    if (order->intent != PAY_INTENT_CHANGE_METHOD) {
        return false;
    }
    const bool may =
        route_no >= 0 && (size_t)route_no < turn->snap->route_count &&
        pay_orchestrate_may_start(turn->snap, route_no, turn->in->now_us).kind == PAY_NEXT_START;
    pay_order_clear_change_method(turn);
    if (may) {
        (void)pay_attempt_start(turn, route_no);
    }
    return may;
}

static const char *why_it_ended(const struct pay_attempt *attempt)
{
    if (attempt->failure_class != PAY_FAILURE_NONE) {
        return pay_failure_class_name(attempt->failure_class);
    }
    return pay_attempt_status_name(attempt->status);
}

static void go_on(struct pay_turn *turn, int attempt_index)
{
    const struct pay_next next = pay_orchestrate_next(turn->snap, turn->in->now_us);

    if (next.kind == PAY_NEXT_START) {
        (void)pay_attempt_start(turn, next.route_no);
    } else if (next.kind == PAY_NEXT_AWAITING_METHOD) {
        pay_order_set(turn, PAY_ORDER_PROCESSING, attempt_index, "AWAITING_METHOD");
    } else if (next.kind == PAY_NEXT_EXHAUSTED) {
        pay_order_set(turn, PAY_ORDER_FAILED, attempt_index,
                      why_it_ended(pay_turn_attempt(turn, attempt_index)));
    }
    /* BLOCKED: another attempt holds the payment, or the order is final: not this one's to move. */
}

/* Intent, then expiry (asked for while the attempt was live: asked again now), then the next. */
static void follow_end(struct pay_turn *turn, int attempt_index)
{
    struct pay_order *order = &turn->snap->order;

    if (PAY_GUARD(INTENT_CANCEL, order->intent == PAY_INTENT_CANCEL)) {
        pay_order_set(turn, PAY_ORDER_CANCELED, attempt_index, "CANCELED_BY_MERCHANT");
    } else if (start_chosen_method(turn)) {
        return;
    } else if (order->expiry_asked || turn->in->now_us >= order->expires_at_us) {
        pay_order_set(turn, PAY_ORDER_EXPIRED, attempt_index, "EXPIRED");
    } else {
        go_on(turn, attempt_index);
    }
}

void pay_order_follow(struct pay_turn *turn, int attempt_index, bool was_live)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const struct pay_order_rule *rule = pay_order_table_rule(attempt->status);

    if (attempt->status == PAY_ATTEMPT_SUCCEEDED) {
        follow_success(turn, attempt_index);
        return;
    }
    if (!was_live || PAY_GUARD(FINAL_ORDER, pay_order_is_final(turn->snap->order.status))) {
        return;
    }
    if (rule->kind == PAY_ORDER_RULE_ENDED) {
        follow_end(turn, attempt_index);
    } else {
        pay_order_set(turn, rule->next, attempt_index, "FOLLOWS_ATTEMPT");
    }
}
