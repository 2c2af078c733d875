/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/decide_parts.h"

#include "common/core/admit.h"
#include "common/core/amounts.h"
#include "common/core/attempt.h"
#include "common/core/id.h"
#include "common/core/money_rule.h"
#include "common/core/not_found.h"
#include "common/core/pause.h"
#include "common/core/refund_sum.h"
#include "common/core/rule.h"

#include "common/base/banned.h"

/* ------------------------------------------------------------------------------ without an action
 */

static void ignore(struct pay_turn *turn, int attempt_index, const char *reason_code)
{
    pay_turn_verdict(turn, PAY_VERDICT_IGNORE, reason_code);
    pay_decide_record_attempt(turn, attempt_index);
}

static void reject(struct pay_turn *turn, int attempt_index, const char *reason_code)
{
    pay_turn_verdict(turn, PAY_VERDICT_REJECT, reason_code);
    turn->out->security = true;
    pay_decide_record_attempt(turn, attempt_index);
}

static void reconcile(struct pay_turn *turn, int attempt_index, enum pay_case_kind kind,
                      const char *reason_code)
{
    const bool was_open = pay_case_is_open(turn, kind);

    pay_turn_verdict(turn, PAY_VERDICT_NEEDS_RECONCILIATION, reason_code);
    pay_decide_record_attempt(turn, attempt_index);
    (void)pay_case_open(turn, kind, attempt_index, 0);
    if (turn->evidence < PAY_EVIDENCE_QUERY && !was_open) {
        pay_attempt_query(turn, attempt_index);
    }
}

static void query_open(struct pay_turn *turn, int attempt_index, enum pay_money_kind kind)
{
    struct pay_money_ref ref = {kind, 0};
    for (; (size_t)ref.index < pay_money_count(turn, kind); ref.index++) {
        const struct pay_money_action *action = pay_money_at(turn, ref);
        if (action->attempt_index == attempt_index && pay_money_is_open(action->status)) {
            pay_money_query(turn, ref);
        }
    }
}

/* ------------------------------------------------------------------------------- after it has
 * moved */

/* The first success of a capture is the attempt's. What is left is released when no other capture
 * can come. */
static void after_capture(struct pay_turn *turn, struct pay_money_ref ref, const char *reason_code)
{
    const struct pay_money_action *action = pay_money_at(turn, ref);
    const int attempt_index = action->attempt_index;
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const bool is_last = action->is_final || !pay_turn_traits(turn, attempt_index)->captures_again;

    if (action->status == PAY_MONEY_REVERSED) {
        if (attempt->amounts.withdrawn > 0) { /* After its success: money is gone. */
            (void)pay_case_open(turn, PAY_CASE_CAPTURE_REVERSED, attempt_index, 0);
        }
        return;
    }
    if (action->status != PAY_MONEY_SUCCEEDED) {
        return;
    }
    if (is_last && pay_amounts_release_rest(&attempt->amounts)) {
        attempt->amounts_changed = true;
        pay_row_touch(&attempt->change);
    }
    if (attempt->status != PAY_ATTEMPT_SUCCEEDED) {
        attempt->failure_class = PAY_FAILURE_NONE;
        attempt->failure_code[0] = 0;
        pay_attempt_move(turn, attempt_index, PAY_ATTEMPT_SUCCEEDED, turn->evidence, reason_code);
    }
}

void pay_decide_money_moved(struct pay_turn *turn, struct pay_money_ref ref,
                            const char *reason_code)
{
    if (ref.kind == PAY_MONEY_CAPTURE) {
        after_capture(turn, ref, reason_code);
    } else if (!pay_money_is_open(pay_money_at(turn, ref)->status)) {
        pay_refund_sum_explain(turn, pay_money_at(turn, ref)->attempt_index);
    }
}

/* ---------------------------------------------------------------------------- what a ruling does
 */

static void book_failure(struct pay_turn *turn, struct pay_money_ref ref,
                         enum pay_money_event column)
{
    const struct pay_event *event = turn->in->event;
    struct pay_money_action *action = pay_money_at(turn, ref);
    const bool is_not_found = column == PAY_ME_NOT_FOUND;
    const enum pay_failure_class said =
        event->failure_class == PAY_FAILURE_NONE ? PAY_FAILURE_OTHER : event->failure_class;

    if (column != PAY_ME_FAILED && column != PAY_ME_REVERSED && !is_not_found) {
        return;
    }
    action->failure_class = is_not_found ? PAY_FAILURE_PSP_NOT_FOUND : said;
    if (!pay_str_copy(action->failure_code, sizeof action->failure_code, event->failure_code)) {
        action->failure_code[0] = 0; /* Absent or too long for a code: none. */
    }
}

static bool says_the_same(enum pay_money_status status, enum pay_money_event column)
{
    return (status == PAY_MONEY_PROCESSING && column == PAY_ME_PROCESSING) ||
           (status == PAY_MONEY_SUCCEEDED && column == PAY_ME_SUCCEEDED) ||
           (status == PAY_MONEY_FAILED && column == PAY_ME_FAILED) ||
           (status == PAY_MONEY_REVERSED && column == PAY_ME_REVERSED);
}

static void note_answer(struct pay_turn *turn, struct pay_money_ref ref,
                        enum pay_money_event column)
{
    const struct pay_money_action *action = pay_money_at(turn, ref);
    const bool is_word = column == PAY_ME_SUCCEEDED || column == PAY_ME_FAILED ||
                         column == PAY_ME_REVERSED || column == PAY_ME_NOT_FOUND;

    if (is_word && turn->evidence >= PAY_EVIDENCE_QUERY && !pay_money_is_open(action->status)) {
        pay_job_answered(turn, action->action_id);
    }
}

static void decide_ignore(struct pay_turn *turn, struct pay_money_ref ref,
                          enum pay_money_event column, const struct pay_money_ruling *ruling)
{
    struct pay_money_action *action = pay_money_at(turn, ref);
    const bool is_again = pay_str_eq_c(turn->in->cause, action->last_accepted_event_id);

    pay_turn_verdict(turn, PAY_VERDICT_IGNORE, is_again ? "DUPLICATE" : ruling->reason_code);
    pay_money_record(turn, ref);
    if (says_the_same(action->status, column) && turn->evidence > action->result_certainty) {
        action->result_certainty = turn->evidence;
        pay_row_touch(&action->change);
    }
    if (column == PAY_ME_NOT_FOUND) {
        action->query_count++;
        pay_row_count(&action->change);
    }
    if (ruling->counts) {
        const struct pay_not_found_row row = pay_not_found_next(
            (struct pay_not_found_row){action->not_found_count, action->not_found_from_us},
            ruling->restarts, turn->in->event->call.asked_at_us);
        action->not_found_count = row.count;
        action->not_found_from_us = row.first_asked_us;
    }
    note_answer(turn, ref, column);
    if (ruling->asks) {
        pay_money_query(turn, ref);
    }
}

static void decide_move(struct pay_turn *turn, struct pay_money_ref ref,
                        enum pay_money_event column, const struct pay_money_ruling *ruling)
{
    pay_turn_verdict(turn, PAY_VERDICT_APPLY, ruling->reason_code);
    book_failure(turn, ref, column);
    if (column == PAY_ME_NOT_FOUND) {
        pay_money_at(turn, ref)->query_count++;
    }
    pay_money_move(turn, ref, ruling->next, turn->evidence, ruling->reason_code);
    if (ruling->asks) {
        pay_money_query(turn, ref);
    }
    pay_decide_money_moved(turn, ref, ruling->reason_code);
}

static void carry_out(struct pay_turn *turn, struct pay_money_ref ref, enum pay_money_event column,
                      const struct pay_money_ruling *ruling)
{
    const int attempt_index = pay_money_at(turn, ref)->attempt_index;
    const bool was_open = pay_case_is_open(turn, ruling->case_kind);

    switch (ruling->kind) {
    case PAY_CELL_MOVE:
        decide_move(turn, ref, column, ruling);
        break;
    case PAY_CELL_REJECT:
        pay_turn_verdict(turn, PAY_VERDICT_REJECT, ruling->reason_code);
        turn->out->security = true;
        pay_money_record(turn, ref);
        if (ruling->has_case) {
            (void)pay_case_open(turn, ruling->case_kind, attempt_index, 0);
        }
        break;
    case PAY_CELL_RECONCILE:
        pay_turn_verdict(turn, PAY_VERDICT_NEEDS_RECONCILIATION, ruling->reason_code);
        pay_money_record(turn, ref);
        (void)pay_case_open(turn, ruling->case_kind, attempt_index, 0);
        note_answer(turn, ref, column);
        if (turn->evidence < PAY_EVIDENCE_QUERY && !was_open) {
            pay_money_query(turn, ref);
        }
        break;
    default:
        decide_ignore(turn, ref, column, ruling);
        break;
    }
}

/* ------------------------------------------------------------------------------------ a capture's
 */

/* Money under an attempt that has not succeeded yet: its own table says whether that is believed.
 * @return false when it is not; the verdict is then given. */
static bool attempt_takes_success(struct pay_turn *turn, int attempt_index)
{
    if (PAY_GUARD(UNEXPECTED_REFERENCE, pay_admit_is_unexpected(turn, attempt_index))) {
        reconcile(turn, attempt_index, PAY_CASE_UNEXPECTED_REFERENCE, "UNEXPECTED_REFERENCE");
        return false;
    }
    if (pay_turn_attempt(turn, attempt_index)->status == PAY_ATTEMPT_SUCCEEDED) {
        return true;
    }
    const struct pay_ruling ruling = pay_rule(turn, attempt_index, PAY_AE_SUC, false);
    if (ruling.kind == PAY_CELL_RECONCILE) {
        reconcile(turn, attempt_index, ruling.case_kind, ruling.reason_code);
    }
    return ruling.kind == PAY_CELL_MOVE;
}

static void bind(struct pay_turn *turn, struct pay_money_ref ref, enum pay_money_event column)
{
    struct pay_money_action *action = pay_money_at(turn, ref);
    const struct pay_str reference = turn->in->event->provider_action_id;

    if (turn->evidence < PAY_EVIDENCE_SYNC_RESPONSE || column == PAY_ME_NOT_FOUND) {
        return;
    }
    (void)pay_admit_bind(turn, action->attempt_index);
    if (action->provider_reference[0] == 0 && reference.ptr != NULL && reference.len > 0 &&
        pay_str_copy(action->provider_reference, sizeof action->provider_reference, reference)) {
        pay_row_touch(&action->change);
    }
}

static void decide_action(struct pay_turn *turn, struct pay_money_ref ref,
                          enum pay_money_event column)
{
    const int attempt_index = pay_money_at(turn, ref)->attempt_index;
    struct pay_money_ruling ruling;

    if (!pay_money_admit(turn, ref, column, &ruling)) {
        if (ruling.kind == PAY_CELL_IGNORE) { /* Of another object: no effect of the column's. */
            pay_turn_verdict(turn, PAY_VERDICT_IGNORE, ruling.reason_code);
            pay_money_record(turn, ref);
        } else {
            carry_out(turn, ref, column, &ruling);
        }
        return;
    }
    const bool is_capture_success = ref.kind == PAY_MONEY_CAPTURE && column == PAY_ME_SUCCEEDED;
    if (is_capture_success && pay_money_at(turn, ref)->status != PAY_MONEY_SUCCEEDED &&
        !attempt_takes_success(turn, attempt_index)) {
        return;
    }
    bind(turn, ref, column);
    ruling = pay_money_rule(turn, ref, column);
    carry_out(turn, ref, column, &ruling);
}

/* ----------------------------------------------------------------------------- made at the PSP */

/* First seen in what the PSP says: it becomes one of ours, of origin PSP, through a reservation. */
static bool hold(struct pay_turn *turn, int attempt_index, enum pay_money_kind kind)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const int64_t amount = turn->in->event->amount.amount_minor;
    const bool has_ended =
        attempt->status == PAY_ATTEMPT_FAILED || attempt->status == PAY_ATTEMPT_CANCELED;

    if (kind == PAY_MONEY_REFUND) {
        return pay_amounts_hold_refund(&attempt->amounts, amount);
    }
    if (!pay_amounts_hold_capture(&attempt->amounts, amount, attempt->amount.amount_minor)) {
        return false;
    }
    if (attempt->status != PAY_ATTEMPT_AUTHORIZED && attempt->status != PAY_ATTEMPT_SUCCEEDED &&
        !has_ended) { /* The PSP is ahead of us: what it captures it has authorized. */
        attempt->amounts.authorized = attempt->amount.amount_minor;
    }
    return true;
}

static void make_of_psp(struct pay_turn *turn, int attempt_index, enum pay_money_kind kind,
                        enum pay_money_event column)
{
    const struct pay_event *event = turn->in->event;
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    char key[2 * PAY_NAME_SIZE + PAY_REFERENCE_SIZE + 2];

    if (!pay_money_has_room(turn, kind)) {
        reconcile(turn, attempt_index, PAY_CASE_CONTRADICTION, "LIMIT");
        return;
    }
    if (!hold(turn, attempt_index, kind)) {
        const bool is_refund = kind == PAY_MONEY_REFUND;
        reconcile(turn, attempt_index, is_refund ? PAY_CASE_OVER_REFUND : PAY_CASE_AMOUNT_MISMATCH,
                  is_refund ? "OVER_REFUND" : "OVER_CAPTURE");
        return;
    }
    pay_turn_attempt(turn, attempt_index)->amounts_changed = true;
    pay_row_touch(&pay_turn_attempt(turn, attempt_index)->change);
    pay_turn_verdict(turn, PAY_VERDICT_APPLY, "MADE_AT_PSP");
    const struct pay_money_ref ref = pay_money_begin(
        turn,
        &(struct pay_money_new){.kind = kind,
                                .attempt_index = attempt_index,
                                .amount = event->amount,
                                .origin = PAY_ORIGIN_PSP,
                                .is_final = !pay_turn_traits(turn, attempt_index)->captures_again,
                                .key = pay_refund_psp_key(key, sizeof key, attempt, event),
                                .provider_reference = event->provider_action_id});
    bind(turn, ref, column);
    pay_money_move(turn, ref,
                   column == PAY_ME_SUCCEEDED ? PAY_MONEY_SUCCEEDED : PAY_MONEY_PROCESSING,
                   turn->evidence, "MADE_AT_PSP");
    pay_decide_money_moved(turn, ref, "MADE_AT_PSP");
}

/* @return why it cannot become one of ours; NULL: it can. */
static const char *not_admissible(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_event *event = turn->in->event;
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);

    if (PAY_GUARD(ACCOUNT, !pay_str_eq_c(event->psp, attempt->psp) ||
                               !pay_str_eq_c(event->psp_account, attempt->psp_account))) {
        return "WRONG_ACCOUNT";
    }
    if (PAY_GUARD(EVIDENCE, turn->evidence < PAY_EVIDENCE_SYNC_RESPONSE)) {
        return "EVIDENCE_NOT_ADMISSIBLE";
    }
    if (!event->has_amount) {
        return "AMOUNT_MISSING";
    }
    const struct pay_money expected = {event->amount.amount_minor, ""};
    struct pay_money same_currency = attempt->amount;
    same_currency.amount_minor = expected.amount_minor;
    return expected.amount_minor <= 0 || !pay_money_same(same_currency, event->amount)
               ? "AMOUNT_MISMATCH"
               : NULL;
}

/* A capture that was settled by a word without a name, and now a name: it is that one's, unless an
 * open one of the same amount may have it. A query says. */
static void explain_by(struct pay_turn *turn, struct pay_money_ref ref, bool is_only,
                       enum pay_money_event column)
{
    const int attempt_index = pay_money_at(turn, ref)->attempt_index;

    ignore(turn, attempt_index, "EXPLAINED");
    if (is_only) {
        bind(turn, ref, column);
    }
    pay_money_query(turn, ref);
    query_open(turn, attempt_index, PAY_MONEY_CAPTURE);
}

static void decide_unknown_capture(struct pay_turn *turn, int attempt_index,
                                   enum pay_money_event column)
{
    const struct pay_amounts *amounts = &pay_turn_attempt(turn, attempt_index)->amounts;
    const int64_t amount = turn->in->event->amount.amount_minor;
    const bool is_nameless = pay_money_is_nameless(turn->in->event);
    const struct pay_money_ref same = pay_money_by_amount(turn, attempt_index);
    /* The payment's own word may be the sum of its captures. */
    const bool is_sum =
        amount == amounts->captured || (same.index < 0 && amounts->capture_reserved > 0 &&
                                        amount == amounts->captured + amounts->capture_reserved);
    const bool is_explained =
        is_nameless && (is_sum || pay_money_is_explained(turn, attempt_index));
    const struct pay_money_ref unnamed = pay_money_unnamed(turn, attempt_index);

    if (unnamed.index >= 0 && !is_nameless) {
        explain_by(turn, unnamed, same.index < 0, column);
    } else if (same.index >= 0 && !is_explained &&
               pay_money_at(turn, same)->provider_reference[0] == 0) {
        decide_action(turn, same, column);
    } else if (is_explained || (is_nameless && amounts->capture_reserved > 0)) {
        ignore(turn, attempt_index, "EXPLAINED"); /* Which one it was, a query says. */
        query_open(turn, attempt_index, PAY_MONEY_CAPTURE);
    } else if (attempt_takes_success(turn, attempt_index)) {
        make_of_psp(turn, attempt_index, PAY_MONEY_CAPTURE, column);
    }
}

static void decide_unknown_refund(struct pay_turn *turn, int attempt_index,
                                  enum pay_money_event column)
{
    if (pay_money_is_nameless(turn->in->event) || turn->evidence < PAY_EVIDENCE_WEBHOOK) {
        /* Nothing by which its next report would be known again: it is only a hint. */
        ignore(turn, attempt_index, "NAMELESS");
        query_open(turn, attempt_index, PAY_MONEY_REFUND);
        pay_attempt_query(turn, attempt_index);
    } else if (PAY_GUARD(MONEY_ONCE, pay_refund_sum_explains(turn, attempt_index))) {
        ignore(turn, attempt_index, "EXPLAINED_BY_SUM");
    } else {
        make_of_psp(turn, attempt_index, PAY_MONEY_REFUND, column);
    }
}

static void decide_unknown(struct pay_turn *turn, int attempt_index, enum pay_money_kind kind,
                           enum pay_money_event column)
{
    const bool exists = column == PAY_ME_SUCCEEDED || column == PAY_ME_PROCESSING;
    const char *why_not = exists ? not_admissible(turn, attempt_index) : NULL;

    if (why_not != NULL) {
        reject(turn, attempt_index, why_not);
        if (turn->in->event->has_amount && pay_str_eq_c(PAY_STR("AMOUNT_MISMATCH"), why_not)) {
            (void)pay_case_open(turn, PAY_CASE_AMOUNT_MISMATCH, attempt_index, 0);
        }
    } else if (exists && kind == PAY_MONEY_CAPTURE) {
        decide_unknown_capture(turn, attempt_index, column);
    } else if (exists) {
        decide_unknown_refund(turn, attempt_index, column);
    } else if (column == PAY_ME_REVERSED && kind == PAY_MONEY_CAPTURE) {
        pay_decide_attempt_column(turn, attempt_index, PAY_AE_REV);
    } else if (column == PAY_ME_REVERSED) {
        reconcile(turn, attempt_index, PAY_CASE_CONTRADICTION, "UNKNOWN_REFUND_REVERSED");
    } else if (column == PAY_ME_FAILED) {
        ignore(turn, attempt_index, "UNKNOWN_ACTION"); /* Nothing was moved, nothing is held. */
    } else { /* Our own word, or an answer about our number: a row that is not there (yet). */
        pay_turn_verdict(turn, PAY_VERDICT_IGNORE, "ORPHAN");
        turn->out->orphan = true;
    }
}

/* A known reference is not made again by its next report. */
void pay_decide_money(struct pay_turn *turn, int attempt_index, enum pay_money_kind kind,
                      enum pay_money_event column)
{
    const struct pay_money_ref ref = pay_money_named(turn, attempt_index, kind);

    const bool is_known = ref.index >= 0;
    const bool is_ours = is_known && pay_money_at(turn, ref)->origin != PAY_ORIGIN_PSP;

    if (is_ours || PAY_GUARD(MONEY_ONCE, is_known)) {
        decide_action(turn, ref, column);
    } else {
        decide_unknown(turn, attempt_index, kind, column);
    }
}

/* ------------------------------------------------------------------------ without a column */

/* It speaks of a job that has been repeated since: the next one is on its way already. Or of the
 * last, which the action's end has closed. */
static bool is_of_spent_job(const struct pay_turn *turn, struct pay_money_ref ref)
{
    const struct pay_call *call = &turn->in->event->call;
    const struct pay_gate *gate = pay_money_gate(turn, ref);
    const bool is_earlier =
        call->is_set && gate != NULL && !pay_str_eq_c(call->job_id, gate->job_id);
    return is_earlier || (gate != NULL && gate->closed_at_us != 0);
}

void pay_decide_refund_retry(struct pay_turn *turn, int attempt_index)
{
    const struct pay_event *event = turn->in->event;
    const struct pay_money_ref ref = pay_money_named(turn, attempt_index, PAY_MONEY_REFUND);
    const struct pay_psp_traits *traits = pay_turn_traits(turn, attempt_index);
    struct pay_money_ruling ruling;

    if (ref.index < 0) {
        ignore(turn, attempt_index, "UNKNOWN_ACTION");
        return;
    }
    if (!pay_money_admit(turn, ref, PAY_ME_PROCESSING, &ruling)) {
        carry_out(turn, ref, PAY_ME_PROCESSING, &ruling);
        return;
    }
    const struct pay_money_action *action = pay_money_at(turn, ref);
    if (!pay_money_is_open(action->status) || action->retry_at_us != 0 ||
        is_of_spent_job(turn, ref)) {
        pay_turn_verdict(turn, PAY_VERDICT_IGNORE, "STALE");
        pay_money_record(turn, ref);
        return;
    }
    const struct pay_gate_sum gates = pay_money_gates(turn, ref);
    const int64_t pause_us = pay_pause_refused_us(traits, event->call.retry_after_s, &gates);
    pay_turn_verdict(turn, PAY_VERDICT_APPLY, "RETRY_SAME_NUMBER");
    if (action->status == PAY_MONEY_PROCESSING) {
        pay_money_record(turn, ref);
    } else {
        pay_money_move(turn, ref, PAY_MONEY_PROCESSING, turn->evidence, "RETRY_SAME_NUMBER");
    }
    pay_money_repeat_at(turn, ref, pay_time_after(turn->in->now_us, pause_us));
}

void pay_decide_money_query_failed(struct pay_turn *turn, struct pay_money_ref ref)
{
    struct pay_money_action *action = pay_money_at(turn, ref);

    pay_turn_verdict(turn, PAY_VERDICT_IGNORE, "QUERY_FAILED");
    action->query_count++;
    pay_row_count(&action->change);
    pay_money_record(turn, ref); /* The state's own row asks next. */
}
