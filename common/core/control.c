/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/control.h"

#include <string.h>

#include "common/core/admit.h"
#include "common/core/amounts.h"
#include "common/core/attempt.h"
#include "common/core/decide_parts.h"
#include "common/core/gate.h"
#include "common/core/money_rule.h"
#include "common/core/order.h"

#include "common/base/banned.h"

/* What a request is about. */
enum target_kind { NOTHING, ORDER, ATTEMPT, MONEY, DISPUTE };

struct target {
    enum target_kind kind;
    int index;                /**< ATTEMPT, DISPUTE. */
    struct pay_money_ref ref; /**< MONEY. */
    int64_t version;
    const char *status;
};

static struct target find(const struct pay_turn *turn, const char *id)
{
    const struct pay_snapshot *snap = turn->snap;
    const struct pay_money_ref ref = pay_money_find(turn, pay_str_of(id));

    if (strcmp(id, snap->order.payment_id) == 0) {
        return (struct target){ORDER, -1, ref, -1, pay_order_status_name(snap->order.status)};
    }
    if (ref.index >= 0) {
        const struct pay_money_action *action = pay_money_at(turn, ref);
        return (struct target){MONEY, action->attempt_index, ref, action->version,
                               pay_money_status_name(action->status)};
    }
    for (int i = 0; (size_t)i < snap->attempt_count; i++) {
        const struct pay_attempt *attempt = &snap->attempts[i];
        if (strcmp(id, attempt->attempt_id) == 0) {
            return (struct target){ATTEMPT, i, ref, attempt->version,
                                   pay_attempt_status_name(attempt->status)};
        }
    }
    for (int i = 0; (size_t)i < snap->dispute_count; i++) {
        const struct pay_dispute *dispute = &snap->disputes[i];
        if (strcmp(id, dispute->dispute_id) == 0) {
            return (struct target){DISPUTE, i, ref, dispute->version,
                                   pay_dispute_status_name(dispute->status)};
        }
    }
    return (struct target){NOTHING, -1, ref, -1, "?"};
}

/* ----------------------------------------------------------------------------------- may it be
 * done */

static bool has_other_currency(const struct pay_turn *turn,
                               const struct pay_approval_request *request)
{
    return request->has_amount &&
           (request->amount.amount_minor <= 0 ||
            strcmp(request->amount.currency, turn->snap->order.amount.currency) != 0);
}

static const char *check_order(const struct pay_turn *turn, const char *to_status)
{
    enum pay_order_status next = PAY_ORDER_CREATED;
    bool is_paid = false;

    if (!pay_order_status_parse(pay_str_of(to_status), &next) || !pay_order_is_final(next) ||
        next == turn->snap->order.status) {
        return "INVALID_STATUS";
    }
    for (size_t i = 0; i < turn->snap->attempt_count; i++) {
        is_paid |= turn->snap->attempts[i].status == PAY_ATTEMPT_SUCCEEDED;
    }
    if (next == PAY_ORDER_SUCCEEDED) {
        return is_paid ? NULL : "NO_MONEY";
    }
    return pay_order_live_attempt(turn) >= 0 ? "ATTEMPT_LIVE" : NULL;
}

/* What the attempt's captures would be worth: what was received, all of it, or nothing. */
static int64_t received(const struct pay_attempt *attempt,
                        const struct pay_approval_request *request)
{
    if (strcmp(request->to_status, "SUCCEEDED") != 0) {
        return 0;
    }
    return request->has_amount ? request->amount.amount_minor : attempt->amount.amount_minor;
}

static const char *check_attempt(const struct pay_turn *turn, int index,
                                 const struct pay_approval_request *request)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, index);
    const int64_t amount = received(attempt, request);
    enum pay_attempt_status next = PAY_ATTEMPT_CREATED;

    if (!pay_attempt_status_parse(pay_str_of(request->to_status), &next) ||
        !pay_attempt_is_final(next)) {
        return "INVALID_STATUS";
    }
    if (next == attempt->status &&
        (next != PAY_ATTEMPT_SUCCEEDED || amount == attempt->amounts.captured)) {
        return "INVALID_STATUS";
    }
    if (attempt->amounts.capture_reserved > 0) {
        return "CAPTURE_IN_FLIGHT";
    }
    return attempt->amounts.refunded + attempt->amounts.refund_reserved > amount ? "MONEY_MOVED"
                                                                                 : NULL;
}

static const char *check_money(const struct pay_turn *turn, struct pay_money_ref ref,
                               const struct pay_approval_request *request)
{
    const struct pay_money_action *action = pay_money_at(turn, ref);
    const bool is_open = pay_money_is_open(action->status);
    enum pay_money_status next = PAY_MONEY_CREATED;

    if (!pay_money_status_parse(pay_str_of(request->to_status), &next)) {
        return "INVALID_STATUS";
    }
    if (request->has_amount && !pay_money_same(request->amount, action->amount)) {
        return "AMOUNT_MISMATCH";
    }
    switch (next) {
    case PAY_MONEY_SUCCEEDED:
        if (is_open) {
            return NULL;
        }
        if (action->status == PAY_MONEY_SUCCEEDED) {
            return "INVALID_STATUS";
        }
        return action->status == PAY_MONEY_REVERSED && ref.kind == PAY_MONEY_CAPTURE
                   ? NULL
                   : (pay_money_fits(turn, ref) ? NULL : "DOES_NOT_FIT");
    case PAY_MONEY_FAILED:
        return is_open ? NULL : "INVALID_STATUS";
    case PAY_MONEY_REVERSED:
        return action->status == PAY_MONEY_SUCCEEDED ? NULL : "INVALID_STATUS";
    default:
        return "INVALID_STATUS";
    }
}

static const char *check_dispute(const struct pay_turn *turn, int index, const char *to_status)
{
    enum pay_dispute_status next = PAY_DISPUTE_OPENED;
    const bool is_known = pay_dispute_status_parse(pay_str_of(to_status), &next);
    return !is_known || next == turn->snap->disputes[index].status ? "INVALID_STATUS" : NULL;
}

static const char *check_correction(const struct pay_turn *turn, const struct target *target,
                                    const struct pay_approval_request *request)
{
    switch (target->kind) {
    case ORDER:
        return check_order(turn, request->to_status);
    case ATTEMPT:
        return check_attempt(turn, target->index, request);
    case MONEY:
        return check_money(turn, target->ref, request);
    default:
        return check_dispute(turn, target->index, request->to_status);
    }
}

static const char *check_force(const struct pay_turn *turn, const struct target *target,
                               const struct pay_approval_request *request)
{
    const bool is_failed = strcmp(request->to_status, "FAILED") == 0;

    if ((target->kind != ATTEMPT && target->kind != MONEY) ||
        strcmp(target->status, "UNKNOWN") != 0) {
        return "NOT_UNKNOWN";
    }
    if (!is_failed && strcmp(request->to_status, "SUCCEEDED") != 0) {
        return "INVALID_STATUS";
    }
    /* Authorized or captured, and how much: only a correction can say. */
    return target->kind == ATTEMPT && !is_failed &&
                   turn->snap->order.capture_mode == PAY_CAPTURE_MANUAL
               ? "AMOUNT_NEEDED"
               : NULL;
}

static const char *check_override(const struct pay_turn *turn, const struct target *target)
{
    if (target->kind != ATTEMPT) {
        return "UNKNOWN_ATTEMPT";
    }
    const struct pay_attempt *attempt = pay_turn_attempt(turn, target->index);
    if (!attempt->live || pay_attempt_is_final(attempt->status)) {
        return "NOT_BLOCKING";
    }
    return attempt->amounts.capture_reserved > 0 ? "CAPTURE_IN_FLIGHT" : NULL;
}

static const char *check_case(const struct pay_turn *turn,
                              const struct pay_approval_request *request)
{
    const int index = pay_control_find_case(turn, request->aggregate_id);

    if (index < 0) {
        return "UNKNOWN_CASE";
    }
    const struct pay_case *found = &turn->snap->cases[index];
    if (!found->open) {
        return "CASE_CLOSED";
    }
    return request->expected_version != found->version ? "STALE_REQUEST" : NULL;
}

/* The version of the aggregate's own row; for an order, the status seen. */
static bool is_stale(const struct target *target, const struct pay_approval_request *request)
{
    const bool other_status =
        request->type == PAY_CMD_CORRECT_STATE && strcmp(request->from_status, target->status) != 0;
    return other_status || (target->kind != ORDER && request->expected_version != target->version);
}

const char *pay_control_check(const struct pay_turn *turn,
                              const struct pay_approval_request *request)
{
    const struct target target = find(turn, request->aggregate_id);

    if (request->type == PAY_CMD_RESOLVE_CASE) {
        return check_case(turn, request);
    }
    if (target.kind == NOTHING ||
        (target.kind == ORDER && request->type != PAY_CMD_CORRECT_STATE)) {
        return "UNKNOWN_AGGREGATE";
    }
    if (PAY_GUARD(APPROVAL_VERSION, is_stale(&target, request))) {
        return "STALE_REQUEST";
    }
    if (has_other_currency(turn, request)) {
        return "INVALID_AMOUNT";
    }
    switch (request->type) {
    case PAY_CMD_FORCE_CLOSE_UNKNOWN:
        return check_force(turn, &target, request);
    case PAY_CMD_CORRECT_STATE:
        return check_correction(turn, &target, request);
    case PAY_CMD_RELEASE_RESERVATION:
        return target.kind == MONEY && pay_money_is_open(pay_money_at(turn, target.ref)->status)
                   ? NULL
                   : "NO_RESERVATION";
    default:
        return check_override(turn, &target);
    }
}

/* ------------------------------------------------------------------------------------------ doing
 * it */

/* Beside the event that the corrected fact implies. */
static void publish_correction(struct pay_turn *turn, const struct target *before,
                               const struct pay_approval_request *request)
{
    static const enum pay_aggregate aggregates[] = {
        [ORDER] = PAY_AGGREGATE_ORDER,
        [ATTEMPT] = PAY_AGGREGATE_ATTEMPT,
        [MONEY] = PAY_AGGREGATE_CAPTURE,
        [DISPUTE] = PAY_AGGREGATE_DISPUTE,
    };
    const struct target after = find(turn, request->aggregate_id);
    const bool is_refund = before->kind == MONEY && before->ref.kind == PAY_MONEY_REFUND;
    const int attempt_index =
        before->kind == DISPUTE ? turn->snap->disputes[before->index].attempt_index : before->index;

    (void)pay_turn_record(
        turn, &(struct pay_record){.aggregate =
                                       is_refund ? PAY_AGGREGATE_REFUND : aggregates[before->kind],
                                   .aggregate_id = request->aggregate_id,
                                   .attempt_index = attempt_index,
                                   .case_index = -1,
                                   .from_status = before->status,
                                   .to_status = after.status,
                                   .verdict = PAY_VERDICT_APPLY,
                                   .reason_code = request->reason_code,
                                   .amount = request->has_amount ? &request->amount : NULL,
                                   .reference = pay_str_of(request->provider_reference),
                                   .publishes = true,
                                   .fact = PAY_FACT_CORRECTION_APPLIED});
}

static void apply_attempt(struct pay_turn *turn, int index,
                          const struct pay_approval_request *request)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, index);
    enum pay_attempt_status next = PAY_ATTEMPT_FAILED;

    (void)pay_attempt_status_parse(pay_str_of(request->to_status), &next); /* Checked. */
    attempt->amounts.captured = received(attempt, request);
    attempt->amounts.authorized = attempt->amounts.captured;
    attempt->amounts_changed = true;
    pay_row_touch(&attempt->change);
    (void)pay_admit_bind_one(turn, index, PAY_REF_OTHER, pay_str_of(request->provider_reference));
    attempt->failure_class = next == PAY_ATTEMPT_FAILED ? PAY_FAILURE_OTHER : PAY_FAILURE_NONE;
    (void)pay_str_copy(attempt->failure_code, sizeof attempt->failure_code,
                       next == PAY_ATTEMPT_FAILED ? pay_str_of(request->reason_code) : PAY_STR(""));
    if (next != attempt->status) {
        pay_attempt_move(turn, index, next, PAY_EVIDENCE_CONTROLLED, "CONTROLLED");
    }
}

static void apply_money(struct pay_turn *turn, struct pay_money_ref ref,
                        const struct pay_approval_request *request, enum pay_money_status next)
{
    struct pay_money_action *action = pay_money_at(turn, ref);

    if (action->provider_reference[0] == 0) {
        memcpy(action->provider_reference, request->provider_reference,
               sizeof action->provider_reference);
    }
    if (next == PAY_MONEY_FAILED) {
        action->failure_class = PAY_FAILURE_OTHER;
        memcpy(action->failure_code, request->reason_code, sizeof action->failure_code);
    }
    pay_money_move(turn, ref, next, PAY_EVIDENCE_CONTROLLED, "CONTROLLED");
    pay_decide_money_moved(turn, ref, "CONTROLLED");
}

static void apply_order(struct pay_turn *turn, const struct pay_approval_request *request)
{
    enum pay_order_status next = PAY_ORDER_CANCELED;
    (void)pay_order_status_parse(pay_str_of(request->to_status), &next); /* Checked. */
    pay_order_set(turn, next, -1, "CONTROLLED");
}

static void apply_dispute(struct pay_turn *turn, int index,
                          const struct pay_approval_request *request)
{
    struct pay_dispute *dispute = &turn->snap->disputes[index];
    (void)pay_dispute_status_parse(pay_str_of(request->to_status), &dispute->status);
    dispute->result_certainty = PAY_EVIDENCE_CONTROLLED;
    pay_row_touch(&dispute->change);
    if (pay_dispute_is_final(dispute->status)) {
        pay_deadline_clear(turn, PAY_DEADLINE_DISPUTE, dispute->dispute_id);
    }
}

static void apply_status(struct pay_turn *turn, const struct target *target,
                         const struct pay_approval_request *request)
{
    enum pay_money_status next = PAY_MONEY_FAILED;

    switch (target->kind) {
    case ORDER:
        apply_order(turn, request);
        break;
    case ATTEMPT:
        apply_attempt(turn, target->index, request);
        break;
    case MONEY:
        (void)pay_money_status_parse(pay_str_of(request->to_status), &next); /* Checked. */
        apply_money(turn, target->ref, request, next);
        break;
    default:
        apply_dispute(turn, target->index, request);
        break;
    }
}

/* It blocks no more: nothing of it is sent from now on, and what was asked for beside it is done.
 */
static void apply_override(struct pay_turn *turn, int index)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, index);
    struct pay_order *order = &turn->snap->order;

    attempt->live = false;
    pay_row_touch(&attempt->change);
    pay_gate_close_all(turn, index);
    pay_money_withdraw_captures(turn, index);
    if (pay_order_is_final(order->status)) {
        return;
    }
    if (order->intent == PAY_INTENT_CANCEL) {
        pay_order_set(turn, PAY_ORDER_CANCELED, index, "CANCELED_BY_MERCHANT");
    } else if (order->expiry_asked || turn->in->now_us >= order->expires_at_us) {
        pay_order_set(turn, PAY_ORDER_EXPIRED, index, "EXPIRED");
    }
}

int pay_control_find_case(const struct pay_turn *turn, const char *case_id)
{
    for (size_t i = 0; i < turn->snap->case_count; i++) {
        if (strcmp(turn->snap->cases[i].case_id, case_id) == 0) {
            return (int)i;
        }
    }
    return -1;
}

void pay_control_resolve(struct pay_turn *turn, int case_index, const char *principal,
                         const char *resolution_code)
{
    struct pay_case *found = &turn->snap->cases[case_index];

    found->open = false;
    (void)pay_str_copy(found->resolved_by, sizeof found->resolved_by, pay_str_of(principal));
    (void)pay_str_copy(found->resolution_code, sizeof found->resolution_code,
                       pay_str_of(resolution_code));
    pay_row_touch(&found->change);
    (void)pay_turn_record(turn, &(struct pay_record){.aggregate = PAY_AGGREGATE_CASE,
                                                     .aggregate_id = found->case_id,
                                                     .attempt_index = -1,
                                                     .case_index = case_index,
                                                     .from_status = "OPEN",
                                                     .to_status = "RESOLVED",
                                                     .verdict = PAY_VERDICT_APPLY,
                                                     .reason_code = found->resolution_code,
                                                     .publishes = true,
                                                     .fact = PAY_FACT_MANUAL_REVIEW_RESOLVED});
}

/* After a person's decision no attempt begins by itself. */
static void end_failover(struct pay_turn *turn)
{
    struct pay_order *order = &turn->snap->order;
    order->failover_until_us = pay_time_earlier(order->failover_until_us, turn->in->now_us);
    pay_row_touch(&order->change);
}

void pay_control_apply(struct pay_turn *turn, const struct pay_approval_request *request)
{
    const enum pay_evidence before = turn->evidence;
    const struct target target = find(turn, request->aggregate_id);

    turn->evidence = PAY_EVIDENCE_CONTROLLED;
    end_failover(turn);
    switch (request->type) {
    case PAY_CMD_RESOLVE_CASE:
        pay_control_resolve(turn, pay_control_find_case(turn, request->aggregate_id),
                            request->requested_by, request->reason_code);
        break;
    case PAY_CMD_RELEASE_RESERVATION:
        apply_money(turn, target.ref, request, PAY_MONEY_FAILED);
        publish_correction(turn, &target, request);
        break;
    case PAY_CMD_OVERRIDE_BLOCK:
        apply_override(turn, target.index);
        publish_correction(turn, &target, request);
        break;
    default:
        apply_status(turn, &target, request);
        publish_correction(turn, &target, request);
        break;
    }
    turn->evidence = before;
}
