/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/decide_parts.h"

#include <string.h>

#include "common/core/amounts.h"
#include "common/core/approval.h"
#include "common/core/id.h"

#include "common/base/banned.h"

static int find_attempt(const struct pay_turn *turn, struct pay_str id)
{
    for (size_t i = 0; i < turn->snap->attempt_count; i++) {
        if (pay_str_eq_c(id, turn->snap->attempts[i].attempt_id)) {
            return (int)i;
        }
    }
    return -1;
}

static bool is_named(struct pay_str text)
{
    return text.ptr != NULL && text.len > 0;
}

/* The merchant's own number, else caller/command_id. */
static struct pay_str key_of(const struct pay_turn *turn)
{
    const struct pay_str own = turn->in->command->money.idempotency_key;
    return is_named(own) ? own : turn->in->cause;
}

static struct pay_money_ref find_by_key(const struct pay_turn *turn, enum pay_money_kind kind)
{
    struct pay_money_ref ref = {kind, 0};
    char key[PAY_IDEMPOTENCY_KEY_SIZE];

    pay_id_shorten(key, sizeof key, key_of(turn));
    for (; (size_t)ref.index < pay_money_count(turn, kind); ref.index++) {
        const struct pay_money_action *action = pay_money_at(turn, ref);
        if (action->origin != PAY_ORIGIN_PSP && strcmp(action->idempotency_key, key) == 0) {
            return ref;
        }
    }
    return (struct pay_money_ref){kind, -1};
}

/* The same number again: the same answer for the same, a refusal for anything else.
 * @return true when the command is answered. */
static bool answer_repeated(struct pay_turn *turn, enum pay_money_kind kind)
{
    const struct pay_cmd_money *wish = &turn->in->command->money;
    const struct pay_money_ref ref = find_by_key(turn, kind);

    if (ref.index < 0) {
        if (turn->in->key_taken) {
            pay_command_refuse(turn, "IDEMPOTENCY_KEY_TAKEN");
        }
        return turn->in->key_taken;
    }
    const struct pay_money_action *action = pay_money_at(turn, ref);
    const char *attempt_id = pay_turn_attempt(turn, action->attempt_index)->attempt_id;
    const bool is_same =
        pay_money_same(action->amount, wish->amount) &&
        (!is_named(wish->attempt_id) || pay_str_eq_c(wish->attempt_id, attempt_id));
    if (is_same) {
        pay_command_answer(turn, PAY_VERDICT_APPLY, "ALREADY_ACCEPTED", action->action_id);
    } else {
        pay_command_refuse(turn, "IDEMPOTENCY_CONFLICT");
    }
    return true;
}

/* What any wish for money must be. NULL: it is. */
static const char *check_wish(const struct pay_turn *turn)
{
    const struct pay_cmd_money *wish = &turn->in->command->money;

    if (strcmp(wish->amount.currency, turn->snap->order.amount.currency) != 0) {
        return "CURRENCY_MISMATCH";
    }
    if (wish->amount.amount_minor <= 0) {
        return "INVALID_AMOUNT";
    }
    return wish->idempotency_key.len >= PAY_IDEMPOTENCY_KEY_SIZE ? "INVALID_IDEMPOTENCY_KEY" : NULL;
}

static void changed(struct pay_attempt *attempt)
{
    attempt->amounts_changed = true;
    pay_row_touch(&attempt->change);
}

/* ---------------------------------------------------------------------------------------- CAPTURE
 */

/* None named: the one that holds an authorization. */
static int capture_attempt(const struct pay_turn *turn)
{
    const struct pay_str named = turn->in->command->money.attempt_id;
    if (is_named(named)) {
        return find_attempt(turn, named);
    }
    for (size_t i = 0; i < turn->snap->attempt_count; i++) {
        const struct pay_attempt *attempt = &turn->snap->attempts[i];
        if (attempt->status == PAY_ATTEMPT_AUTHORIZED) {
            return (int)i;
        }
    }
    return turn->snap->order.paid_attempt_no - 1;
}

/* A capture that says it is the last, or that is the only one its PSP allows. */
static bool has_last_capture(const struct pay_turn *turn, int attempt_index)
{
    const bool captures_again = pay_turn_traits(turn, attempt_index)->captures_again;
    struct pay_money_ref ref = {PAY_MONEY_CAPTURE, 0};

    for (; (size_t)ref.index < turn->snap->capture_count; ref.index++) {
        const struct pay_money_action *action = pay_money_at(turn, ref);
        const bool counts =
            pay_money_is_open(action->status) || action->status == PAY_MONEY_SUCCEEDED;
        if (action->attempt_index == attempt_index && counts &&
            (action->is_final || !captures_again)) {
            return true;
        }
    }
    return false;
}

static const char *check_authorization(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const bool is_paid = attempt->status == PAY_ATTEMPT_SUCCEEDED;

    if (attempt->status != PAY_ATTEMPT_AUTHORIZED && !is_paid) {
        return "NOT_AUTHORIZED";
    }
    if (!is_paid && pay_order_is_final(turn->snap->order.status)) {
        return "ORDER_FINAL";
    }
    if (attempt->cancel_cause != PAY_CANCEL_CAUSE_NONE) {
        return "ATTEMPT_WITHDRAWN";
    }
    if (!is_paid && turn->snap->order.intent != PAY_INTENT_NONE) {
        return "INTENT";
    }
    if (pay_case_money_open(turn)) {
        return "MONEY_CASE_OPEN";
    }
    return has_last_capture(turn, attempt_index) ? "CAPTURE_WAS_FINAL" : NULL;
}

/* What its PSP cannot do. A PSP that captures once releases what the caller wants to keep. */
static const char *check_part(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_cmd_money *wish = &turn->in->command->money;
    const struct pay_psp_traits *traits = pay_turn_traits(turn, attempt_index);
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const bool has_rest = wish->amount.amount_minor < pay_amounts_capturable(&attempt->amounts);

    if (!traits->captures_part && wish->amount.amount_minor != attempt->amount.amount_minor) {
        return "PARTIAL_NOT_SUPPORTED";
    }
    return has_rest && !wish->is_final && !traits->captures_again ? "MULTIPLE_NOT_SUPPORTED" : NULL;
}

static const char *check_capture(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_cmd_money *wish = &turn->in->command->money;

    if (turn->snap->order.capture_mode != PAY_CAPTURE_MANUAL) {
        return "CAPTURE_IS_AUTOMATIC";
    }
    if (attempt_index < 0) {
        return is_named(wish->attempt_id) ? "UNKNOWN_ATTEMPT" : "NOT_AUTHORIZED";
    }
    const char *reason = check_wish(turn);
    reason = reason != NULL ? reason : check_authorization(turn, attempt_index);
    if (reason != NULL) {
        return reason;
    }
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    if (wish->amount.amount_minor > pay_amounts_capturable(&attempt->amounts)) {
        return "EXCEEDS_AUTHORIZATION";
    }
    reason = check_part(turn, attempt_index);
    if (reason != NULL) {
        return reason;
    }
    return pay_money_has_room(turn, PAY_MONEY_CAPTURE) ? NULL : "LIMIT";
}

static struct pay_money_ref start_capture(struct pay_turn *turn, const struct pay_money_new *from)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, from->attempt_index);
    const bool fits = pay_amounts_reserve_capture(&attempt->amounts, from->amount.amount_minor);

    PAY_INVARIANT(fits); /* Checked before. */
    changed(attempt);
    const struct pay_money_ref ref = pay_money_begin(turn, from);
    pay_money_send(turn, ref);
    return ref;
}

void pay_command_capture(struct pay_turn *turn)
{
    const struct pay_cmd_money *wish = &turn->in->command->money;
    const int attempt_index = capture_attempt(turn);

    if (answer_repeated(turn, PAY_MONEY_CAPTURE)) {
        return;
    }
    const char *reason = check_capture(turn, attempt_index);
    if (reason != NULL) {
        pay_command_refuse(turn, reason);
        return;
    }
    const bool is_only = !pay_turn_traits(turn, attempt_index)->captures_again;
    pay_turn_verdict(turn, PAY_VERDICT_APPLY, "ACCEPTED");
    const struct pay_money_ref ref =
        start_capture(turn, &(struct pay_money_new){.kind = PAY_MONEY_CAPTURE,
                                                    .attempt_index = attempt_index,
                                                    .amount = wish->amount,
                                                    .origin = PAY_ORIGIN_MERCHANT,
                                                    .is_final = wish->is_final || is_only,
                                                    .key = key_of(turn)});
    pay_command_answer(turn, PAY_VERDICT_APPLY, "ACCEPTED", pay_money_at(turn, ref)->action_id);
}

bool pay_decide_capture_by_policy(struct pay_turn *turn, int attempt_index)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const int64_t rest = pay_amounts_capturable(&attempt->amounts);
    const bool is_whole = rest == attempt->amount.amount_minor;

    if (!turn->in->policy.captures_at_end || rest <= 0 || attempt->amounts.capture_reserved > 0 ||
        check_authorization(turn, attempt_index) != NULL ||
        (!is_whole && !pay_turn_traits(turn, attempt_index)->captures_part) ||
        !pay_money_has_room(turn, PAY_MONEY_CAPTURE)) {
        return false;
    }
    struct pay_money amount = attempt->amount;
    amount.amount_minor = rest;
    pay_turn_verdict(turn, PAY_VERDICT_APPLY, "CAPTURED_BY_POLICY");
    (void)start_capture(turn, &(struct pay_money_new){.kind = PAY_MONEY_CAPTURE,
                                                      .attempt_index = attempt_index,
                                                      .amount = amount,
                                                      .origin = PAY_ORIGIN_POLICY,
                                                      .is_final = true,
                                                      .key = turn->in->cause});
    return true;
}

/* --------------------------------------------------------------------------------- REQUEST_REFUND
 */

/* None named: the attempt that made the order SUCCEEDED. Rows from before that was written down:
 * the success that is still live, or the only one. */
static int refund_attempt(const struct pay_turn *turn)
{
    const struct pay_str named = turn->in->command->money.attempt_id;
    const struct pay_order *order = &turn->snap->order;
    int only = -1;

    if (is_named(named)) {
        return find_attempt(turn, named);
    }
    if (order->paid_attempt_no > 0 && (size_t)order->paid_attempt_no <= turn->snap->attempt_count) {
        return order->paid_attempt_no - 1;
    }
    for (size_t i = 0; order->status == PAY_ORDER_SUCCEEDED && i < turn->snap->attempt_count; i++) {
        const struct pay_attempt *attempt = &turn->snap->attempts[i];
        if (attempt->status != PAY_ATTEMPT_SUCCEEDED) {
            continue;
        }
        if (attempt->live) {
            return (int)i;
        }
        only = only == -1 ? (int)i : -2;
    }
    return only < 0 ? -1 : only;
}

static const char *check_refund(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_cmd_money *wish = &turn->in->command->money;

    if (attempt_index < 0) {
        return is_named(wish->attempt_id) ? "UNKNOWN_ATTEMPT" : "NOT_PAID";
    }
    const char *reason = check_wish(turn);
    if (reason != NULL) {
        return reason;
    }
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    if (attempt->amounts.captured == 0) {
        return "NOTHING_CAPTURED";
    }
    if (pay_case_blocks_refunds(turn, attempt_index)) {
        return "OVER_REFUND";
    }
    if (PAY_GUARD(REFUNDABLE,
                  wish->amount.amount_minor > pay_amounts_refundable(&attempt->amounts))) {
        return "EXCEEDS_REFUNDABLE";
    }
    if (wish->reason_code.len >= PAY_CODE_SIZE) {
        return "INVALID_REASON";
    }
    return pay_money_has_room(turn, PAY_MONEY_REFUND) ? NULL : "LIMIT";
}

/* What was asked for so far on this payment and did not come to nothing: splitting a refund does
 * not get it below the threshold. */
static int64_t asked_so_far(const struct pay_turn *turn)
{
    struct pay_money_ref ref = {PAY_MONEY_REFUND, 0};
    int64_t sum = 0;

    for (; (size_t)ref.index < turn->snap->refund_count; ref.index++) {
        const struct pay_money_action *action = pay_money_at(turn, ref);
        const bool is_ours = action->origin != PAY_ORIGIN_PSP;
        const bool came_to_nothing =
            action->status == PAY_MONEY_FAILED || action->status == PAY_MONEY_CANCELED;
        if (is_ours && !came_to_nothing && !pay_money_add(sum, action->amount.amount_minor, &sum)) {
            return INT64_MAX;
        }
    }
    return sum;
}

static bool needs_approval(const struct pay_turn *turn)
{
    const struct pay_policy *policy = &turn->in->policy;
    const struct pay_refund_day *day = &turn->snap->refund_day;
    const int64_t amount = turn->in->command->money.amount.amount_minor;
    int64_t of_payment = 0;
    int64_t of_day = 0;

    const bool is_number = pay_money_add(asked_so_far(turn), amount, &of_payment) &&
                           pay_money_add(day->amount_minor, day->added_minor, &of_day) &&
                           pay_money_add(of_day, amount, &of_day);
    return PAY_GUARD(REFUND_THRESHOLD, !is_number || of_payment > policy->refund_threshold_minor ||
                                           of_day > policy->refund_threshold_day_minor);
}

static void count_in_day(struct pay_turn *turn)
{
    struct pay_refund_day *day = &turn->snap->refund_day;
    day->added_minor += turn->in->command->money.amount.amount_minor;
    day->limit_minor = turn->in->policy.refund_threshold_day_minor;
    pay_row_touch(&day->change);
}

static void start_refund(struct pay_turn *turn, int attempt_index, bool waits)
{
    const struct pay_cmd_money *wish = &turn->in->command->money;
    const bool by_operator = turn->in->source == PAY_SOURCE_OPERATOR;
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const char *reason = waits ? "AWAITING_APPROVAL" : "ACCEPTED";

    const bool fits = pay_amounts_reserve_refund(&attempt->amounts, wish->amount.amount_minor);
    PAY_INVARIANT(fits);
    changed(attempt);
    pay_turn_verdict(turn, PAY_VERDICT_APPLY, reason);
    const struct pay_money_ref ref =
        pay_money_begin(turn, &(struct pay_money_new){.kind = PAY_MONEY_REFUND,
                                                      .attempt_index = attempt_index,
                                                      .amount = wish->amount,
                                                      .origin = by_operator ? PAY_ORIGIN_OPERATOR
                                                                            : PAY_ORIGIN_MERCHANT,
                                                      .key = key_of(turn),
                                                      .reason_code = wish->reason_code});
    if (waits) { /* Job and gate row exist only after the second approval. */
        (void)pay_approval_begin(turn, pay_money_at(turn, ref)->action_id);
    } else {
        count_in_day(turn);
        pay_money_send(turn, ref);
    }
    pay_command_answer(turn, PAY_VERDICT_APPLY, reason, pay_money_at(turn, ref)->action_id);
}

void pay_command_refund(struct pay_turn *turn)
{
    const int attempt_index = refund_attempt(turn);

    if (answer_repeated(turn, PAY_MONEY_REFUND)) {
        return;
    }
    const char *reason = check_refund(turn, attempt_index);
    const bool waits = reason == NULL && needs_approval(turn);
    if (waits) {
        reason = pay_approval_blocked(turn);
    }
    if (reason != NULL) {
        pay_command_refuse(turn, reason);
    } else {
        start_refund(turn, attempt_index, waits);
    }
}
