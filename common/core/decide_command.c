/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/decide_parts.h"

#include <string.h>

#include "common/core/attempt.h"
#include "common/core/confirm.h"
#include "common/core/id.h"
#include "common/core/orchestrate.h"
#include "common/core/order.h"
#include "common/core/withdraw.h"

#include "common/base/banned.h"

#define NO_ROUTE (-1)

/* Whether a command came before, with the same or another content, was settled by the caller. */

/* -------------------------------------------------------------------------------------- answers */

static bool is_own_payment(const struct pay_turn *turn)
{
    return turn->snap->order.exists &&
           pay_str_eq_c(turn->in->command->merchant_id, turn->snap->order.merchant_id);
}

static bool is_of_other_merchant(const struct pay_turn *turn)
{
    return turn->snap->order.exists && !is_own_payment(turn);
}

/* Nothing was proven of a caller who is not allowed the command: whatever merchant it names. */
static bool is_outsider(const struct pay_turn *turn)
{
    return turn->in->kind == PAY_INPUT_REJECTED_COMMAND || is_of_other_merchant(turn);
}

/* Under the payment's own numbers only for its own merchant; else outside them, touching nothing.
 */
static void answer(struct pay_turn *turn, enum pay_verdict verdict, const char *reason_code,
                   const char *result_id)
{
    const bool is_accepted = verdict == PAY_VERDICT_APPLY;
    char aggregate_id[PAY_CAUSE_SIZE];

    pay_id_cause(aggregate_id, turn->in->cause);
    pay_turn_verdict(turn, verdict, reason_code);
    const int fact = pay_turn_record(
        turn, &(struct pay_record){.aggregate = PAY_AGGREGATE_COMMAND,
                                   .aggregate_id = aggregate_id,
                                   PAY_RECORD_NONE,
                                   .verdict = verdict,
                                   .reason_code = reason_code,
                                   .publishes = true,
                                   .fact = is_accepted ? PAY_FACT_COMMAND_ACCEPTED
                                                       : PAY_FACT_COMMAND_REJECTED,
                                   .unnumbered = is_outsider(turn) || !is_own_payment(turn),
                                   .outside = is_outsider(turn)});
    const bool fits = pay_str_copy(turn->out->effects[fact].as.fact.result_id, PAY_CAUSE_SIZE,
                                   pay_str_of(result_id));
    PAY_ASSERT(fits);
}

static void refuse(struct pay_turn *turn, const char *reason_code)
{
    answer(turn, PAY_VERDICT_REJECT, reason_code, "");
}

void pay_command_answer(struct pay_turn *turn, enum pay_verdict verdict, const char *reason_code,
                        const char *result_id)
{
    answer(turn, verdict, reason_code, result_id);
}

void pay_command_refuse(struct pay_turn *turn, const char *reason_code)
{
    refuse(turn, reason_code);
}

/* --------------------------------------------------------------------------------------- routes */

static bool same_route(const struct pay_route *a, const struct pay_route *b)
{
    return strcmp(a->psp, b->psp) == 0 && strcmp(a->psp_account, b->psp_account) == 0 &&
           strcmp(a->method, b->method) == 0;
}

/* The route that the command names: one of the payment's, or appended to them.
 * NO_ROUTE: the payment has the most routes that it may have. */
static int take_route(struct pay_turn *turn, const struct pay_route *route)
{
    struct pay_snapshot *snap = turn->snap;

    for (int i = 0; (size_t)i < snap->route_count; i++) {
        if (same_route(&snap->routes[i], route)) {
            return i;
        }
    }
    if (snap->route_count >= PAY_ROUTES_MAX) {
        return NO_ROUTE;
    }
    PAY_ASSERT(snap->route_count < snap->route_cap);
    snap->routes[snap->route_count] = *route;
    return (int)snap->route_count++;
}

/* A command that is refused leaves no route behind. */
static void drop_routes(struct pay_turn *turn, size_t route_count)
{
    turn->snap->route_count = route_count;
}

/* ------------------------------------------------------------------------------- CREATE_PAYMENT */

static const char *check_amount(const struct pay_turn *turn)
{
    const struct pay_money *amount = &turn->in->command->create_payment.amount;
    const int64_t max_minor = turn->in->policy.amount_max_minor;

    if (pay_money_exponent(pay_str_of(amount->currency)) < 0) {
        return "INVALID_CURRENCY";
    }
    if (amount->amount_minor <= 0) {
        return "INVALID_AMOUNT";
    }
    if (max_minor <= 0) {
        return "CURRENCY_NOT_ALLOWED";
    }
    return amount->amount_minor > max_minor ? "AMOUNT_LIMIT" : NULL;
}

static int64_t expiry_of(const struct pay_turn *turn)
{
    const int64_t asked_us = turn->in->command->create_payment.expires_at_us;
    return asked_us != 0
               ? asked_us
               : pay_time_after(turn->in->now_us, turn->in->policy.order_expires_after_us);
}

static bool fits(struct pay_str text, size_t size)
{
    return text.ptr != NULL && text.len > 0 && text.len < size;
}

static const char *check_create(const struct pay_turn *turn)
{
    const struct pay_command *command = turn->in->command;
    const struct pay_cmd_create_payment *create = &command->create_payment;

    if (!pay_id_is_payment(command->payment_id) ||
        !pay_str_eq_c(command->payment_id, turn->snap->order.payment_id)) {
        return "INVALID_PAYMENT_ID";
    }
    if (!fits(command->merchant_id, PAY_MERCHANT_SIZE)) {
        return "INVALID_MERCHANT";
    }
    if (!fits(create->merchant_order_no, PAY_ORDER_NO_SIZE)) {
        return "INVALID_ORDER_NO";
    }
    if (turn->snap->order_no_taken) {
        return "DUPLICATE_ORDER_NO";
    }
    if (create->capture_mode != PAY_CAPTURE_AUTOMATIC &&
        create->capture_mode != PAY_CAPTURE_MANUAL) {
        return "INVALID_CAPTURE_MODE";
    }
    if (create->capture_mode == PAY_CAPTURE_MANUAL && !turn->in->policy.manual_capture) {
        return "NOT_SUPPORTED";
    }
    if (expiry_of(turn) <= turn->in->now_us) {
        return "ALREADY_EXPIRED";
    }
    if (turn->in->route_count == 0) {
        return "NO_ROUTE";
    }
    return turn->in->route_count > PAY_ROUTES_MAX ? "LIMIT" : check_amount(turn);
}

static void copy_text(char *dst, size_t size, struct pay_str text)
{
    if (!pay_str_copy(dst, size, text)) {
        dst[0] = 0; /* Only names for people can be cut; keys were checked to fit. */
    }
}

static void fill_order(struct pay_turn *turn)
{
    struct pay_order *order = &turn->snap->order;
    const struct pay_command *command = turn->in->command;
    const struct pay_cmd_create_payment *create = &command->create_payment;
    const struct pay_policy *policy = &turn->in->policy;

    order->change = PAY_ROW_INSERTED;
    order->exists = true;
    copy_text(order->merchant_id, sizeof order->merchant_id, command->merchant_id);
    copy_text(order->merchant_order_no, sizeof order->merchant_order_no, create->merchant_order_no);
    copy_text(order->created_by, sizeof order->created_by, command->caller);
    order->amount = create->amount;
    order->capture_mode = create->capture_mode;
    order->status = PAY_ORDER_CREATED;
    order->intent = PAY_INTENT_NONE;
    order->intent_route_no = NO_ROUTE;
    order->failover_until_us = pay_time_after(turn->in->now_us, policy->failover_window_us);
    order->expires_at_us = expiry_of(turn);
    order->retry_until_expiry = create->retry_until_expiry < 0 ? policy->retry_until_expiry
                                                               : create->retry_until_expiry != 0;
    order->created_at_us = turn->in->now_us;
}

static void copy_routes(struct pay_turn *turn)
{
    PAY_ASSERT(turn->in->route_count <= turn->snap->route_cap);
    for (size_t i = 0; i < turn->in->route_count; i++) {
        turn->snap->routes[i] = turn->in->routes[i];
    }
    turn->snap->route_count = turn->in->route_count;
}

/* The first attempt. None may be made now (every route is paused): an order without an attempt. */
static int start_first(struct pay_turn *turn)
{
    const struct pay_next next = pay_orchestrate_next(turn->snap, turn->in->now_us);
    if (next.kind != PAY_NEXT_START) {
        copy_text(turn->snap->order.reason_code, PAY_CODE_SIZE, pay_str_of(next.reason_code));
        return NO_ROUTE;
    }
    return pay_attempt_start(turn, next.route_no);
}

static void decide_create(struct pay_turn *turn)
{
    struct pay_order *order = &turn->snap->order;
    const char *reason = check_create(turn);
    int attempt_index = -1;

    if (reason != NULL) {
        refuse(turn, reason);
        return;
    }
    fill_order(turn);
    copy_routes(turn);
    pay_turn_verdict(turn, PAY_VERDICT_APPLY, "ACCEPTED");
    (void)pay_turn_record(turn,
                          &(struct pay_record){.aggregate = PAY_AGGREGATE_ORDER,
                                               .aggregate_id = order->payment_id,
                                               PAY_RECORD_NONE,
                                               .to_status = pay_order_status_name(order->status),
                                               .verdict = PAY_VERDICT_APPLY,
                                               .reason_code = "ACCEPTED",
                                               .publishes = true,
                                               .fact = PAY_FACT_PAYMENT_CREATED});
    pay_deadline_set(turn, PAY_DEADLINE_ORDER_EXPIRY, order->payment_id, order->expires_at_us);
    if (turn->in->command->create_payment.start) {
        attempt_index = start_first(turn);
    }
    answer(turn, PAY_VERDICT_APPLY, "ACCEPTED",
           attempt_index < 0 ? order->payment_id
                             : pay_turn_attempt(turn, attempt_index)->attempt_id);
}

/* --------------------------------------------------------------------- START_ATTEMPT and others */

/* Each merchant's command opens the window in which the next attempt may come by itself. */
static void raise_failover(struct pay_turn *turn)
{
    struct pay_order *order = &turn->snap->order;
    order->failover_until_us =
        pay_time_later(order->failover_until_us,
                       pay_time_after(turn->in->now_us, turn->in->policy.failover_window_us));
    pay_row_touch(&order->change);
}

/* Would it be allowed, with the window that the command itself opens? NULL: yes.
 * ended: an attempt that ends first; -1: none. */
static const char *may_start(struct pay_turn *turn, int route_no, int ended)
{
    struct pay_order *order = &turn->snap->order;
    const int64_t before_us = order->failover_until_us;

    order->failover_until_us = pay_time_later(
        before_us, pay_time_after(turn->in->now_us, turn->in->policy.failover_window_us));
    const struct pay_next next =
        pay_orchestrate_may_start_after(turn->snap, route_no, ended, turn->in->now_us);
    order->failover_until_us = before_us;
    return next.kind == PAY_NEXT_START ? NULL : next.reason_code;
}

/* Accepted: the attempt's id is the result. */
static void start_now(struct pay_turn *turn, int route_no)
{
    pay_turn_verdict(turn, PAY_VERDICT_APPLY, "ACCEPTED");
    raise_failover(turn);
    const int index = pay_attempt_start(turn, route_no);
    answer(turn, PAY_VERDICT_APPLY, "ACCEPTED", pay_turn_attempt(turn, index)->attempt_id);
}

static int chosen_route(struct pay_turn *turn, const char **ret_reason)
{
    if (turn->in->route_count == 0) { /* None named: the next of the payment's routes. */
        struct pay_snapshot view = *turn->snap;
        view.order.failover_until_us = INT64_MAX; /* The command opens the window itself. */
        const struct pay_next next = pay_orchestrate_next(&view, turn->in->now_us);
        *ret_reason = next.reason_code;
        return next.kind == PAY_NEXT_START ? next.route_no : NO_ROUTE;
    }
    *ret_reason = "LIMIT";
    return take_route(turn, &turn->in->routes[0]);
}

static void decide_start(struct pay_turn *turn)
{
    const size_t routes_before = turn->snap->route_count;
    const char *reason = NULL;
    const int route_no = chosen_route(turn, &reason);

    if (route_no != NO_ROUTE) {
        reason = may_start(turn, route_no, -1);
    }
    if (reason != NULL) {
        drop_routes(turn, routes_before);
        refuse(turn, reason);
        return;
    }
    pay_order_clear_change_method(turn);
    start_now(turn, route_no);
}

static bool captures(const struct pay_turn *turn, int attempt_index)
{
    return attempt_index >= 0 &&
           pay_turn_attempt(turn, attempt_index)->amounts.capture_reserved > 0;
}

static void set_intent(struct pay_turn *turn, enum pay_intent intent, int route_no)
{
    struct pay_order *order = &turn->snap->order;
    order->intent = intent;
    order->intent_route_no = route_no;
    pay_id_cause(order->intent_command_id, turn->in->cause);
    pay_row_touch(&order->change);
}

/* The live attempt is withdrawn; the next comes when it has ended, maybe at once. */
static void change_live_method(struct pay_turn *turn, int attempt_index, int route_no)
{
    const size_t attempts_before = turn->snap->attempt_count;

    pay_turn_verdict(turn, PAY_VERDICT_APPLY, "ACCEPTED");
    raise_failover(turn);
    set_intent(turn, PAY_INTENT_CHANGE_METHOD, route_no);
    pay_withdraw(turn, attempt_index, PAY_CANCEL_CAUSE_CHANGE_METHOD);
    const bool is_started = turn->snap->attempt_count > attempts_before;
    answer(turn, PAY_VERDICT_APPLY, "ACCEPTED",
           is_started ? turn->snap->attempts[attempts_before].attempt_id : "");
}

static void decide_change_method(struct pay_turn *turn)
{
    const size_t routes_before = turn->snap->route_count;
    const int live = pay_order_live_attempt(turn);
    const char *reason = turn->in->route_count == 0 ? "NO_ROUTE" : NULL;
    int route_no = NO_ROUTE;

    if (reason == NULL) {
        route_no = take_route(turn, &turn->in->routes[0]);
        reason = route_no == NO_ROUTE ? "LIMIT" : may_start(turn, route_no, live);
    }
    if (reason == NULL && captures(turn, live)) {
        reason = "CAPTURE_IN_FLIGHT";
    }
    if (reason != NULL) {
        drop_routes(turn, routes_before);
        refuse(turn, reason);
    } else if (live < 0) {
        start_now(turn, route_no);
    } else {
        change_live_method(turn, live, route_no);
    }
}

static void decide_cancel(struct pay_turn *turn)
{
    struct pay_order *order = &turn->snap->order;
    const int live = pay_order_live_attempt(turn);

    if (pay_order_is_final(order->status)) {
        refuse(turn, "ORDER_FINAL");
        return;
    }
    if (captures(turn, live)) {
        refuse(turn, "CAPTURE_IN_FLIGHT");
        return;
    }
    pay_turn_verdict(turn, PAY_VERDICT_APPLY, "ACCEPTED");
    raise_failover(turn);
    if (order->intent != PAY_INTENT_CANCEL) { /* CANCEL is never replaced, by CANCEL neither. */
        set_intent(turn, PAY_INTENT_CANCEL, NO_ROUTE);
    }
    if (live >= 0) {
        pay_withdraw(turn, live, PAY_CANCEL_CAUSE_MERCHANT);
    } else {
        pay_order_set(turn, PAY_ORDER_CANCELED, -1, "CANCELED_BY_MERCHANT");
    }
    answer(turn, PAY_VERDICT_APPLY, "ACCEPTED", order->payment_id);
}

static int find_attempt(const struct pay_turn *turn, struct pay_str id)
{
    for (size_t i = 0; i < turn->snap->attempt_count; i++) {
        if (pay_str_eq_c(id, turn->snap->attempts[i].attempt_id)) {
            return (int)i;
        }
    }
    return -1;
}

static const char *check_continue(const struct pay_turn *turn, int attempt_index)
{
    if (attempt_index < 0) {
        return "UNKNOWN_ATTEMPT";
    }
    if (PAY_GUARD(CONFIRM_BLOCKED, pay_confirm_blocked(turn, attempt_index) != NULL)) {
        return pay_confirm_blocked(turn, attempt_index);
    }
    if (pay_turn_attempt(turn, attempt_index)->status != PAY_ATTEMPT_REQUIRES_ACTION) {
        return "NO_ACTION_OPEN";
    }
    const bool confirms = pay_turn_traits(turn, attempt_index)->confirm_moves_money;
    if (confirms && PAY_GUARD(CONFIRM_ONCE, pay_confirm_made(turn, attempt_index))) {
        return "ALREADY_CONFIRMED";
    }
    return NULL;
}

/* The customer came back: CONFIRM where the PSP waits for it, else the PSP is asked at once. */
static void decide_continue(struct pay_turn *turn)
{
    const int attempt_index = find_attempt(turn, turn->in->command->attempt_id);
    const char *reason = check_continue(turn, attempt_index);

    if (reason != NULL) {
        refuse(turn, reason);
        return;
    }
    raise_failover(turn);
    if (pay_turn_traits(turn, attempt_index)->confirm_moves_money) {
        pay_confirm_make(turn, attempt_index);
    } else {
        pay_attempt_query(turn, attempt_index);
    }
    answer(turn, PAY_VERDICT_APPLY, "ACCEPTED", pay_turn_attempt(turn, attempt_index)->attempt_id);
}

/* ------------------------------------------------------------------------------------- dispatch */

typedef void command_fn(struct pay_turn *turn);

static command_fn *const handlers[PAY_CMD_COUNT] = {
    [PAY_CMD_CREATE_PAYMENT] = decide_create,       [PAY_CMD_START_ATTEMPT] = decide_start,
    [PAY_CMD_CHANGE_METHOD] = decide_change_method, [PAY_CMD_CANCEL_PAYMENT] = decide_cancel,
    [PAY_CMD_CONTINUE_ATTEMPT] = decide_continue,
};

/* What needs rows of captures, refunds and requests. */
static command_fn *const action_handlers[PAY_CMD_COUNT] = {
    [PAY_CMD_CAPTURE] = pay_command_capture,
    [PAY_CMD_REQUEST_REFUND] = pay_command_refund,
    [PAY_CMD_FORCE_CLOSE_UNKNOWN] = pay_command_control,
    [PAY_CMD_CORRECT_STATE] = pay_command_control,
    [PAY_CMD_RELEASE_RESERVATION] = pay_command_control,
    [PAY_CMD_OVERRIDE_BLOCK] = pay_command_control,
    [PAY_CMD_RESOLVE_CASE] = pay_command_control,
    [PAY_CMD_APPROVE] = pay_command_approve,
    [PAY_CMD_DECLINE] = pay_command_decline,
};

/* Every other command is refused NOT_SUPPORTED. */
static command_fn *handler_of(const struct pay_turn *turn)
{
    const enum pay_command_type type = turn->in->command->type;
    if ((size_t)type >= PAY_CMD_COUNT) {
        return NULL;
    }
    return turn->snap->keeps_actions && action_handlers[type] != NULL ? action_handlers[type]
                                                                      : handlers[type];
}

void pay_decide_command(struct pay_turn *turn)
{
    const struct pay_command *command = turn->in->command;
    const bool creates = command->type == PAY_CMD_CREATE_PAYMENT;

    turn->event_name = pay_command_type_name(command->type);
    if (is_of_other_merchant(turn)) {
        turn->out->security = true;
        refuse(turn, "FOREIGN_MERCHANT");
    } else if (turn->in->refusal.ptr != NULL) {
        turn->out->security = true; /* A route of another merchant looks like none. */
        refuse(turn, turn->in->refusal.ptr);
    } else if (handler_of(turn) == NULL) {
        refuse(turn, "NOT_SUPPORTED");
    } else if (creates && turn->snap->order.exists) {
        refuse(turn, "PAYMENT_EXISTS");
    } else if (!creates && !turn->snap->order.exists) {
        refuse(turn, "UNKNOWN_PAYMENT");
    } else {
        handler_of(turn)(turn);
    }
}

/* A known key that is not allowed this command: audited and answered, touches no payment. What it
 * named is not looked at, so the answer says nothing about whether that is there. */
void pay_decide_rejected_command(struct pay_turn *turn)
{
    turn->event_name = pay_command_type_name(turn->in->command->type);
    turn->out->security = true;
    refuse(turn, turn->in->refusal.ptr == NULL ? "NOT_ALLOWED" : turn->in->refusal.ptr);
}
