/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/decide_parts.h"

#include <string.h>

#include "common/core/admit.h"
#include "common/core/attempt.h"
#include "common/core/confirm.h"
#include "common/core/gate.h"
#include "common/core/id.h"
#include "common/core/money_rule.h"
#include "common/core/not_found.h"
#include "common/core/orchestrate.h"
#include "common/core/refund_sum.h"
#include "common/core/rule.h"
#include "common/core/withdraw.h"

#include "common/base/banned.h"

void pay_decide_record_attempt(struct pay_turn *turn, int attempt_index)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const char *status = pay_attempt_status_name(attempt->status);

    (void)pay_turn_record(turn, &(struct pay_record){.aggregate = PAY_AGGREGATE_ATTEMPT,
                                                     .aggregate_id = attempt->attempt_id,
                                                     .attempt_index = attempt_index,
                                                     .case_index = -1,
                                                     .from_status = status,
                                                     .to_status = status,
                                                     .verdict = turn->out->verdict,
                                                     .reason_code = turn->out->reason_code});
}

static void record_order(struct pay_turn *turn)
{
    const struct pay_order *order = &turn->snap->order;
    const char *status = order->exists ? pay_order_status_name(order->status) : NULL;

    (void)pay_turn_record(turn, &(struct pay_record){.aggregate = PAY_AGGREGATE_ORDER,
                                                     .aggregate_id = order->payment_id,
                                                     PAY_RECORD_NONE,
                                                     .from_status = status,
                                                     .to_status = status,
                                                     .verdict = turn->out->verdict,
                                                     .reason_code = turn->out->reason_code});
}

/* ------------------------------------------------------------------- what an event writes first */

static void book_failure(struct pay_attempt *attempt, enum pay_failure_class failure_class,
                         struct pay_str failure_code)
{
    attempt->failure_class = failure_class;
    if (!pay_str_copy(attempt->failure_code, sizeof attempt->failure_code, failure_code)) {
        attempt->failure_code[0] = 0; /* Absent or too long for a code: none. */
    }
    pay_row_touch(&attempt->change);
}

static void book_said_failure(struct pay_turn *turn, int attempt_index)
{
    const struct pay_event *event = turn->in->event;
    const enum pay_failure_class said = event->failure_class;
    book_failure(pay_turn_attempt(turn, attempt_index),
                 said == PAY_FAILURE_NONE ? PAY_FAILURE_OTHER : said, event->failure_code);
}

static void book_not_sent(struct pay_turn *turn, int attempt_index)
{
    struct pay_gate *gate = pay_gate_submit(turn, attempt_index);
    if (gate != NULL) {
        pay_gate_close(turn, gate);
    }
    book_failure(pay_turn_attempt(turn, attempt_index), PAY_FAILURE_NOT_SENT,
                 turn->in->event == NULL ? (struct pay_str){NULL, 0}
                                         : turn->in->event->failure_code);
}

static void book_not_found(struct pay_turn *turn, int attempt_index)
{
    pay_gate_close_all(turn, attempt_index);
    book_failure(pay_turn_attempt(turn, attempt_index), PAY_FAILURE_PSP_NOT_FOUND,
                 turn->in->event->failure_code);
}

/* Every action has an end: the PSP's, else the method's, never after the order's. */
static void book_action(struct pay_turn *turn, int attempt_index)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const struct pay_customer_action *action = &turn->in->event->action;
    const bool is_canceling = attempt->cancel_cause != PAY_CANCEL_CAUSE_NONE;
    const bool hands_out = action->is_set && !PAY_GUARD(ACTION_NOT_WHILE_CANCELED, is_canceling);
    const int64_t lifetime_us = pay_turn_traits(turn, attempt_index)->action_lifetime_us;
    int64_t end_us = pay_time_after(turn->in->now_us, lifetime_us);

    if (!hands_out && attempt->action_expires_at_us != 0) {
        return;
    }
    if (hands_out) {
        attempt->action_no++;
        end_us = action->expires_at_us != 0 ? action->expires_at_us : end_us;
    }
    attempt->action_expires_at_us = pay_time_earlier(end_us, turn->snap->order.expires_at_us);
    pay_row_touch(&attempt->change);
}

static void book_authorized(struct pay_turn *turn, int attempt_index)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    attempt->amounts.authorized = attempt->amount.amount_minor;
    attempt->authorization_expires_at_us = turn->in->event->authorization_expires_at_us;
    attempt->amounts_changed = true;
}

static void book_success(struct pay_turn *turn, int attempt_index)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    attempt->amounts.authorized = attempt->amount.amount_minor;
    attempt->amounts.captured = attempt->amount.amount_minor;
    attempt->amounts.capture_reserved = 0;
    attempt->amounts_changed = true;
    attempt->failure_class = PAY_FAILURE_NONE;
    attempt->failure_code[0] = 0;
}

static void book_release(struct pay_turn *turn, int attempt_index)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const struct pay_amounts *amounts = &attempt->amounts;
    const int64_t kept = amounts->captured + amounts->capture_reserved;
    if (amounts->authorized != kept) {
        attempt->amounts.authorized = kept;
        attempt->amounts_changed = true;
        pay_row_touch(&attempt->change);
    }
}

typedef void step_fn(struct pay_turn *turn, int attempt_index);

static step_fn *const books[PAY_AE_COUNT] = {
    [PAY_AE_NSN] = book_not_sent,     [PAY_AE_ACT] = book_action,
    [PAY_AE_AUT] = book_authorized,   [PAY_AE_SUC] = book_success,
    [PAY_AE_DEC] = book_said_failure, [PAY_AE_FAI] = book_said_failure,
    [PAY_AE_CAN] = book_release,      [PAY_AE_XPA] = book_release,
    [PAY_AE_NFD] = book_not_found,
};

/* ------------------------------------------------------------------- what an event causes after */

static bool is_payable(const struct pay_attempt *attempt)
{
    return attempt->status == PAY_ATTEMPT_PROCESSING ||
           attempt->status == PAY_ATTEMPT_REQUIRES_ACTION;
}

/* The PSP says the buyer has not paid, and neither it nor we have anything to hand to the buyer. */
static void after_action(struct pay_turn *turn, int attempt_index)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    if (attempt->status == PAY_ATTEMPT_REQUIRES_ACTION && attempt->action_no == 0 &&
        attempt->cancel_cause == PAY_CANCEL_CAUSE_NONE && turn->evidence == PAY_EVIDENCE_QUERY) {
        book_failure(pay_turn_attempt(turn, attempt_index), PAY_FAILURE_OTHER,
                     PAY_STR("NO_ACTION"));
        pay_withdraw(turn, attempt_index, PAY_CANCEL_CAUSE_DECLINED);
    }
}

static void after_approval(struct pay_turn *turn, int attempt_index)
{
    if (is_payable(pay_turn_attempt(turn, attempt_index))) {
        pay_confirm_approved(turn, attempt_index);
    }
}

/* 8: with a page open the customer may try again, unless the route would go on. */
static void after_decline(struct pay_turn *turn, int attempt_index)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const bool waits = pay_attempt_page_open(turn, attempt_index) &&
                       !pay_orchestrate_would_go_on(turn->snap, attempt_index, turn->in->now_us);

    if (!is_payable(attempt) || attempt->cancel_cause != PAY_CANCEL_CAUSE_NONE) {
        return;
    }
    book_said_failure(turn, attempt_index);
    if (!waits) {
        pay_withdraw(turn, attempt_index, PAY_CANCEL_CAUSE_DECLINED);
    }
}

static step_fn *const afters[PAY_AE_COUNT] = {
    [PAY_AE_ACT] = after_action,
    [PAY_AE_APR] = after_approval,
    [PAY_AE_DEC] = after_decline,
};

/* A withdrawn attempt that has just become known can be canceled now. */
static void continue_withdrawal(struct pay_turn *turn, int attempt_index, bool was_known)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    if (!was_known && attempt->cancel_cause != PAY_CANCEL_CAUSE_NONE && attempt->cancel_no == 0 &&
        !pay_attempt_is_final(attempt->status) && pay_attempt_is_known(turn, attempt_index)) {
        pay_withdraw_cancel(turn, attempt_index);
    }
}

/* ------------------------------------------------------------------------------------- verdicts */

/* Which state an event says the attempt is in: saying it again makes it more certain. */
static bool says_the_same(enum pay_attempt_status status, enum pay_attempt_event column)
{
    static const signed char says[PAY_AE_COUNT] = {
        [PAY_AE_PRC] = PAY_ATTEMPT_PROCESSING, [PAY_AE_ACT] = PAY_ATTEMPT_REQUIRES_ACTION,
        [PAY_AE_APR] = PAY_ATTEMPT_PROCESSING, [PAY_AE_AUT] = PAY_ATTEMPT_AUTHORIZED,
        [PAY_AE_SUC] = PAY_ATTEMPT_SUCCEEDED,  [PAY_AE_DEC] = PAY_ATTEMPT_PROCESSING,
        [PAY_AE_FAI] = PAY_ATTEMPT_FAILED,     [PAY_AE_CAN] = PAY_ATTEMPT_CANCELED,
    };
    return says[column] != PAY_ATTEMPT_CREATED && says[column] == (signed char)status;
}

static void raise_certainty(struct pay_turn *turn, int attempt_index, enum pay_attempt_event column)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    if (says_the_same(attempt->status, column) && turn->evidence > attempt->result_certainty) {
        attempt->result_certainty = turn->evidence;
        pay_row_touch(&attempt->change);
    }
}

static void count_not_found(struct pay_turn *turn, int attempt_index,
                            const struct pay_ruling *ruling)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);

    attempt->query_count++;
    pay_row_count(&attempt->change);
    if (ruling->counts) {
        const struct pay_not_found_row row = pay_not_found_next(
            (struct pay_not_found_row){attempt->not_found_count, attempt->not_found_from_us},
            ruling->restarts, turn->in->event->call.asked_at_us);
        attempt->not_found_count = row.count;
        attempt->not_found_from_us = row.first_asked_us;
    }
}

static void decide_ignore(struct pay_turn *turn, int attempt_index, enum pay_attempt_event column,
                          const struct pay_ruling *ruling)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const bool is_again = pay_str_eq_c(turn->in->cause, attempt->last_accepted_event_id);
    const char *reason_code = is_again ? "DUPLICATE" : ruling->reason_code;

    pay_turn_verdict(turn, PAY_VERDICT_IGNORE, reason_code);
    pay_decide_record_attempt(turn, attempt_index);
    raise_certainty(turn, attempt_index, column);
    if (column == PAY_AE_NFD) {
        count_not_found(turn, attempt_index, ruling);
    }
    if (column == PAY_AE_XPA || column == PAY_AE_CAN) {
        if (attempt->status == PAY_ATTEMPT_SUCCEEDED) {
            book_release(turn, attempt_index); /* 11 */
        }
    }
    if (ruling->asks) {
        pay_attempt_query(turn, attempt_index);
    }
    if (afters[column] != NULL && !(is_again && column == PAY_AE_DEC)) {
        afters[column](turn, attempt_index);
    }
}

static void decide_reject(struct pay_turn *turn, int attempt_index, const struct pay_ruling *ruling)
{
    pay_turn_verdict(turn, PAY_VERDICT_REJECT, ruling->reason_code);
    turn->out->security = true;
    pay_decide_record_attempt(turn, attempt_index);
    if (ruling->has_case) {
        (void)pay_case_open(turn, ruling->case_kind, attempt_index, 0);
    }
}

/* 6: a late authorization is voided, once it is more than a word in an answer. */
static void void_late_authorization(struct pay_turn *turn, int attempt_index)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    if (attempt->cancel_cause == PAY_CANCEL_CAUSE_NONE) {
        attempt->cancel_cause = PAY_CANCEL_CAUSE_DEADLINE;
    }
    pay_job_cancel(turn, attempt_index);
}

static void decide_reconcile(struct pay_turn *turn, int attempt_index,
                             const struct pay_ruling *ruling)
{
    const bool was_open = pay_case_is_open(turn, ruling->case_kind);
    const bool is_late_authorization = ruling->case_kind == PAY_CASE_LATE_AUTHORIZATION;

    pay_turn_verdict(turn, PAY_VERDICT_NEEDS_RECONCILIATION, ruling->reason_code);
    pay_decide_record_attempt(turn, attempt_index);
    (void)pay_case_open(turn, ruling->case_kind, attempt_index, 0);
    if (turn->evidence < PAY_EVIDENCE_QUERY && !was_open) {
        pay_attempt_query(turn, attempt_index);
    }
    if (is_late_authorization && !was_open && turn->evidence >= PAY_EVIDENCE_WEBHOOK &&
        pay_turn_traits(turn, attempt_index)->can_cancel) {
        void_late_authorization(turn, attempt_index);
    }
}

static void decide_move(struct pay_turn *turn, int attempt_index, enum pay_attempt_event column,
                        const struct pay_ruling *ruling)
{
    pay_turn_verdict(turn, PAY_VERDICT_APPLY, ruling->reason_code);
    if (books[column] != NULL) {
        books[column](turn, attempt_index);
    }
    if (column == PAY_AE_NFD) {
        pay_turn_attempt(turn, attempt_index)->query_count++;
    }
    pay_attempt_move(turn, attempt_index, ruling->next, turn->evidence, ruling->reason_code);
    if (afters[column] != NULL) {
        afters[column](turn, attempt_index);
    }
}

/* 12 */
static void stay_reversed(struct pay_turn *turn, int attempt_index)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const struct pay_event *event = turn->in->event;
    const char *status = pay_attempt_status_name(attempt->status);

    (void)pay_money_add(attempt->amounts.withdrawn, event->amount.amount_minor,
                        &attempt->amounts.withdrawn); /* Checked by the rule. */
    attempt->amounts_changed = true;
    pay_row_touch(&attempt->change);
    pay_id_cause(attempt->last_accepted_event_id, turn->in->cause);
    (void)pay_admit_bind_one(turn, attempt_index, PAY_REF_MODIFICATION, event->provider_action_id);
    const int fact = pay_turn_record(turn, &(struct pay_record){.aggregate = PAY_AGGREGATE_ATTEMPT,
                                                                .aggregate_id = attempt->attempt_id,
                                                                .attempt_index = attempt_index,
                                                                .case_index = -1,
                                                                .from_status = status,
                                                                .to_status = status,
                                                                .verdict = PAY_VERDICT_APPLY,
                                                                .reason_code = "CAPTURE_REVERSED",
                                                                .publishes = true,
                                                                .fact = PAY_FACT_CAPTURE_REVERSED});
    turn->out->effects[fact].as.fact.amount = event->amount;
    (void)pay_case_open(turn, PAY_CASE_CAPTURE_REVERSED, attempt_index, 0);
}

/* The action is handed out in the state that had announced it. */
static void stay_action(struct pay_turn *turn, int attempt_index)
{
    const struct pay_order *order = &turn->snap->order;
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const char *status = pay_order_status_name(order->status);

    book_action(turn, attempt_index);
    pay_deadline_set(turn, PAY_DEADLINE_ACTION, attempt->attempt_id,
                     pay_time_later(attempt->action_expires_at_us, turn->in->now_us));
    pay_decide_record_attempt(turn, attempt_index);
    if (order->status != PAY_ORDER_REQUIRES_ACTION) {
        return;
    }
    const int fact =
        pay_turn_record(turn, &(struct pay_record){.aggregate = PAY_AGGREGATE_ORDER,
                                                   .aggregate_id = order->payment_id,
                                                   .attempt_index = attempt_index,
                                                   .case_index = -1,
                                                   .from_status = status,
                                                   .to_status = status,
                                                   .verdict = PAY_VERDICT_APPLY,
                                                   .reason_code = "ACTION_HANDED_OUT",
                                                   .publishes = true,
                                                   .fact = PAY_FACT_PAYMENT_ACTION_REQUIRED,
                                                   .recurs = true});
    turn->out->effects[fact].as.fact.has_action = true;
}

static void decide_stay(struct pay_turn *turn, int attempt_index, enum pay_attempt_event column,
                        const struct pay_ruling *ruling)
{
    pay_turn_verdict(turn, PAY_VERDICT_APPLY, ruling->reason_code);
    if (column == PAY_AE_REV) {
        stay_reversed(turn, attempt_index);
    } else {
        stay_action(turn, attempt_index);
    }
}

/* ------------------------------------------------------------------------------- from the table */

static void carry_out(struct pay_turn *turn, int attempt_index, enum pay_attempt_event column,
                      const struct pay_ruling *ruling)
{
    switch (ruling->kind) {
    case PAY_CELL_MOVE:
        decide_move(turn, attempt_index, column, ruling);
        break;
    case PAY_CELL_STAY:
        decide_stay(turn, attempt_index, column, ruling);
        break;
    case PAY_CELL_RECONCILE:
        decide_reconcile(turn, attempt_index, ruling);
        break;
    case PAY_CELL_REJECT:
        decide_reject(turn, attempt_index, ruling);
        break;
    default:
        decide_ignore(turn, attempt_index, column, ruling);
        break;
    }
}

/* What the PSP says of the attempt proves that it has it; a refusal or a not-found does not. */
static bool proves_existence(const struct pay_turn *turn, enum pay_attempt_event column)
{
    return turn->evidence >= PAY_EVIDENCE_SYNC_RESPONSE && column != PAY_AE_FAI &&
           column != PAY_AE_NFD;
}

static enum pay_attempt_event true_column(const struct pay_turn *turn, int attempt_index,
                                          enum pay_attempt_event column)
{
    if (column == PAY_AE_CAN &&
        PAY_GUARD(CANCELED_ASKED_LATE, pay_admit_is_early_cancel(turn, attempt_index))) {
        return PAY_AE_NFD;
    }
    if (pay_admit_is_expired_unpaid(turn, attempt_index, column)) {
        return PAY_AE_CAN;
    }
    return column;
}

void pay_decide_attempt_column(struct pay_turn *turn, int attempt_index,
                               enum pay_attempt_event column)
{
    const bool was_known = pay_attempt_is_known(turn, attempt_index);
    struct pay_ruling ruling;

    turn->event_name = pay_attempt_event_name(column);
    if (!pay_admit(turn, attempt_index, column, &ruling)) {
        if (ruling.kind == PAY_CELL_IGNORE) { /* Of another object: no effect of the column's. */
            pay_turn_verdict(turn, PAY_VERDICT_IGNORE, ruling.reason_code);
            pay_decide_record_attempt(turn, attempt_index);
        } else {
            carry_out(turn, attempt_index, column, &ruling);
        }
        return;
    }
    /* A not-found may repeat the reference that was asked for: it proves nothing. */
    const bool may_teach = column != PAY_AE_NFD;
    column = true_column(turn, attempt_index, column);
    const bool taught_reference = may_teach && pay_admit_bind(turn, attempt_index);
    if (proves_existence(turn, column)) {
        pay_attempt_prove(turn, attempt_index);
    }
    ruling = pay_rule(turn, attempt_index, column, taught_reference);
    carry_out(turn, attempt_index, column, &ruling);
    continue_withdrawal(turn, attempt_index, was_known);
}

/* --------------------------------------------------------------------------- without a column */

static void decide_query_failed(struct pay_turn *turn, int attempt_index)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);

    pay_turn_verdict(turn, PAY_VERDICT_IGNORE, "QUERY_FAILED");
    attempt->query_count++;
    pay_row_count(&attempt->change);
    pay_decide_record_attempt(turn, attempt_index); /* The state's own row asks next. */
}

static void decide_cancel_refused(struct pay_turn *turn, int attempt_index)
{
    pay_turn_verdict(turn, PAY_VERDICT_IGNORE, "CANCEL_REFUSED");
    pay_decide_record_attempt(turn, attempt_index);
    if (pay_turn_attempt(turn, attempt_index)->status != PAY_ATTEMPT_SUCCEEDED) {
        pay_attempt_query(turn, attempt_index);
    }
}

/* A CONFIRM that has not left is sent again by its SEND deadline, which also paces it. */
static void decide_confirm_not_sent(struct pay_turn *turn, int attempt_index)
{
    turn->event_name = "NSN";
    pay_turn_verdict(turn, PAY_VERDICT_IGNORE, "SENT_AGAIN_BY_DEADLINE");
    pay_decide_record_attempt(turn, attempt_index);
}

static void decide_kept(struct pay_turn *turn, int attempt_index)
{
    const bool is_other = turn->in->event->type == PAY_EV_OTHER;
    pay_turn_verdict(turn, PAY_VERDICT_IGNORE, is_other ? "OTHER" : "NOT_SUPPORTED_YET");
    pay_decide_record_attempt(turn, attempt_index);
}

static bool is_confirm_not_sent(const struct pay_event *event)
{
    enum pay_job_kind kind = PAY_JOB_UNRECOGNIZED;
    return event->type == PAY_EV_ATTEMPT_NOT_SENT && event->call.is_set &&
           pay_id_job_kind(event->call.job_id, &kind) && kind == PAY_JOB_CONFIRM;
}

/* In manual mode a success is a capture's: the attempt's own word is one without a name. */
static bool is_capture(const struct pay_turn *turn, enum pay_money_kind *ret_kind,
                       enum pay_money_event *ret_event)
{
    const bool is_manual = turn->snap->order.capture_mode == PAY_CAPTURE_MANUAL;
    const enum pay_event_type type = turn->in->event->type;

    if (type == PAY_EV_ATTEMPT_SUCCEEDED && is_manual) {
        *ret_kind = PAY_MONEY_CAPTURE;
        *ret_event = PAY_ME_SUCCEEDED;
        return true;
    }
    return pay_money_column(type, ret_kind, ret_event) &&
           (*ret_kind == PAY_MONEY_REFUND || is_manual);
}

static struct pay_money_ref job_of_action(const struct pay_turn *turn)
{
    const struct pay_call *call = &turn->in->event->call;
    const size_t len = PAY_ACTION_ID_SIZE - 1;
    const bool names = call->is_set && call->job_id.ptr != NULL && call->job_id.len > len;
    return pay_money_find(turn, names ? (struct pay_str){call->job_id.ptr, len} : PAY_STR(""));
}

/* Captures, refunds, disputes. @return true when the event was one of theirs. */
static bool decide_action_event(struct pay_turn *turn, int attempt_index)
{
    const enum pay_event_type type = turn->in->event->type;
    enum pay_money_kind kind = PAY_MONEY_CAPTURE;
    enum pay_money_event column = PAY_ME_COUNT;
    enum pay_dispute_event dispute = PAY_DE_COUNT;

    if (!turn->snap->keeps_actions) {
        return false;
    }
    const struct pay_money_ref asked = job_of_action(turn);
    if (is_capture(turn, &kind, &column)) {
        pay_decide_money(turn, attempt_index, kind, column);
    } else if (pay_dispute_column(type, &dispute)) {
        pay_decide_dispute(turn, attempt_index, dispute);
    } else if (type == PAY_EV_REFUND_SUM) {
        pay_refund_sum_decide(turn, attempt_index);
    } else if (type == PAY_EV_REFUND_RETRY_SAME_NUMBER) {
        pay_decide_refund_retry(turn, attempt_index);
    } else if (type == PAY_EV_QUERY_FAILED && asked.index >= 0) {
        pay_decide_money_query_failed(turn, asked);
    } else {
        return false;
    }
    return true;
}

/* The PSP's word on the attempt itself, as it was asked for; "processing" is none yet. */
static bool answers_question(const struct pay_turn *turn, const struct pay_attempt *attempt)
{
    const struct pay_event *event = turn->in->event;
    const struct pay_str job_id = event->call.job_id;
    const size_t len = strlen(attempt->attempt_id);
    enum pay_job_kind kind = PAY_JOB_UNRECOGNIZED;

    return turn->evidence >= PAY_EVIDENCE_QUERY && event->type != PAY_EV_QUERY_FAILED &&
           event->type != PAY_EV_ATTEMPT_PROCESSING && event->call.is_set &&
           pay_id_job_kind(job_id, &kind) && kind == PAY_JOB_QUERY &&
           memcmp(job_id.ptr, attempt->attempt_id, len) == 0;
}

/* What is over or authorized has been asked about, and here is the answer. */
static void note_answer(struct pay_turn *turn, int attempt_index)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);

    if (turn->out->verdict != PAY_VERDICT_REJECT && answers_question(turn, attempt) &&
        pay_attempt_keeps_question(attempt->status) &&
        !pay_admit_is_unexpected(turn, attempt_index)) {
        pay_job_answered(turn, attempt->attempt_id);
    }
}

static void decide_attempt_event(struct pay_turn *turn, int attempt_index)
{
    enum pay_attempt_event column = PAY_AE_COUNT;

    if (decide_action_event(turn, attempt_index)) {
        return;
    }
    if (is_confirm_not_sent(turn->in->event)) {
        decide_confirm_not_sent(turn, attempt_index);
    } else if (pay_admit_column(turn, attempt_index, &column)) {
        pay_decide_attempt_column(turn, attempt_index, column);
    } else if (turn->in->event->type == PAY_EV_QUERY_FAILED) {
        decide_query_failed(turn, attempt_index);
    } else if (turn->in->event->type == PAY_EV_CANCEL_REFUSED) {
        decide_cancel_refused(turn, attempt_index);
    } else {
        decide_kept(turn, attempt_index);
    }
}

/* --------------------------------------------------------------------------------- the event */

static void decide_without_attempt(struct pay_turn *turn, enum pay_verdict verdict,
                                   const char *reason_code)
{
    pay_turn_verdict(turn, verdict, reason_code);
    turn->out->security = verdict == PAY_VERDICT_REJECT;
    record_order(turn);
}

static void decide_orphan(struct pay_turn *turn)
{
    pay_turn_verdict(turn, PAY_VERDICT_IGNORE, "ORPHAN");
    turn->out->orphan = true;
}

void pay_decide_event(struct pay_turn *turn)
{
    const struct pay_event *event = turn->in->event;
    int attempt_index = -1;

    turn->event_name = pay_event_type_name(event->type);
    if (pay_admit_is_foreign(turn)) {
        turn->out->foreign = true;
        decide_without_attempt(turn, PAY_VERDICT_IGNORE, "FOREIGN");
    } else if ((size_t)event->type >= PAY_EV_COUNT || event->type == PAY_EV_UNRECOGNIZED) {
        decide_without_attempt(turn, PAY_VERDICT_REJECT, "UNRECOGNIZED_EVENT");
    } else if (!turn->snap->order.exists) {
        decide_orphan(turn);
    } else if (pay_admit_is_of_other(turn)) {
        decide_without_attempt(turn, PAY_VERDICT_REJECT, "OF_ANOTHER_PAYMENT");
    } else {
        attempt_index = pay_admit_find_attempt(turn);
        if (attempt_index < 0) {
            decide_orphan(turn);
        } else {
            decide_attempt_event(turn, attempt_index);
            note_answer(turn, attempt_index);
        }
    }
}

void pay_decide_not_sent(struct pay_turn *turn, int attempt_index)
{
    book_not_sent(turn, attempt_index);
    pay_attempt_move(turn, attempt_index, PAY_ATTEMPT_FAILED, PAY_EVIDENCE_LOCAL, "NOT_SENT");
}
