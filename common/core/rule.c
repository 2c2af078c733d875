/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/rule.h"

#include "common/core/attempt.h"
#include "common/core/gate.h"
#include "common/core/id.h"
#include "common/core/not_found.h"

#include "common/base/banned.h"

/* What a note looks at. */
struct view {
    const struct pay_turn *turn;
    int attempt_index;
    const struct pay_attempt *attempt;
    const struct pay_event *event;
    enum pay_attempt_event column;
    bool taught_reference;
};

static void ignore(struct pay_ruling *ruling, const char *reason_code)
{
    ruling->kind = PAY_CELL_IGNORE;
    ruling->reason_code = reason_code;
}

static void reconcile(struct pay_ruling *ruling, enum pay_case_kind kind, const char *reason_code)
{
    ruling->kind = PAY_CELL_RECONCILE;
    ruling->case_kind = kind;
    ruling->reason_code = reason_code;
}

static bool answers_job(const struct pay_event *event, enum pay_job_kind kind)
{
    enum pay_job_kind answered = PAY_JOB_UNRECOGNIZED;
    return event->call.is_set && pay_id_job_kind(event->call.job_id, &answered) && answered == kind;
}

/* 1: only a gate that is closed unsent proves that nothing left; the decision closes it. */
static void note_not_sent(const struct view *v, struct pay_ruling *ruling)
{
    const struct pay_gate *gate = pay_gate_submit(v->turn, v->attempt_index);
    if (PAY_GUARD(NOT_SENT_GATE, gate == NULL || gate->sending_at_us != 0)) {
        ignore(ruling, "GATE_PASSED");
    }
}

/* "No, and nothing was made" says so of one send. With another send of the job, a replay too, it is
 * no proof: a PSP need not keep a refusal, and may execute the other. */
static bool is_no_of_one_send(const struct view *v)
{
    const struct pay_call *call = &v->event->call;
    const bool names_object =
        v->event->provider_payment_id.ptr != NULL || v->event->reference_count > 0;

    if (v->column != PAY_AE_FAI || v->turn->evidence > PAY_EVIDENCE_SYNC_RESPONSE ||
        !call->is_set || names_object) {
        return false;
    }
    const struct pay_gate *gate = pay_gate_of_job(v->turn, call->job_id);
    return gate != NULL && gate->sends > call->send_no;
}

/* From when on a not-found can mean something: every send that can have left has been executed. */
static int64_t not_found_from(const struct view *v)
{
    const struct pay_psp_traits *traits = pay_turn_traits(v->turn, v->attempt_index);

    if (pay_gate_submit(v->turn, v->attempt_index) == NULL) {
        return INT64_MAX; /* Without the gate row nothing is known about sends. */
    }
    return pay_not_found_from(traits, pay_gate_last_send(v->turn, v->attempt_index));
}

static int64_t first_bound_at(const struct view *v)
{
    int64_t first_us = INT64_MAX;
    for (size_t i = 0; i < v->turn->snap->reference_count; i++) {
        const struct pay_bound_reference *bound = &v->turn->snap->references[i];
        if (bound->attempt_index == v->attempt_index) {
            first_us = pay_time_earlier(first_us, bound->bound_at_us);
        }
    }
    return first_us;
}

/* A reference was bound, so the PSP has it: a contradiction, unless it was asked before that (or
 * before the PSP can show what it has just made). */
static void not_found_but_bound(const struct view *v, struct pay_ruling *ruling)
{
    const int64_t grace_us = pay_turn_traits(v->turn, v->attempt_index)->visibility_grace_us;

    if (v->event->call.is_set &&
        v->event->call.asked_at_us > pay_time_after(first_bound_at(v), grace_us)) {
        reconcile(ruling, PAY_CASE_CONTRADICTION, "NOT_FOUND_BUT_BOUND");
    } else {
        ignore(ruling, "ASKED_BEFORE_BOUND");
    }
}

static void count_not_found(const struct view *v, struct pay_ruling *ruling)
{
    const struct pay_psp_traits *traits = pay_turn_traits(v->turn, v->attempt_index);
    const struct pay_not_found_row row = {v->attempt->not_found_count,
                                          v->attempt->not_found_from_us};
    const int64_t from_us = not_found_from(v);
    const bool is_late_enough =
        !PAY_GUARD(NOT_FOUND_ASKED_LATE, v->event->call.asked_at_us <= from_us);
    const struct pay_not_found_ruling found =
        pay_not_found_rule(traits, row, from_us, is_late_enough);

    ruling->counts = found.counts;
    ruling->restarts = found.restarts;
    if (!found.is_enough) {
        ignore(ruling, found.counts ? "NOT_FOUND_COUNTED" : "ASKED_TOO_EARLY");
        return;
    }
    ruling->kind = PAY_CELL_MOVE;
    ruling->next = PAY_ATTEMPT_FAILED;
    ruling->reason_code = "PSP_NOT_FOUND";
}

/* 2: FAILED by not-found only if nothing else can be true. */
static void note_not_found(const struct view *v, struct pay_ruling *ruling)
{
    const struct pay_psp_traits *traits = pay_turn_traits(v->turn, v->attempt_index);
    const bool by_number = v->turn->evidence == PAY_EVIDENCE_QUERY && v->column == PAY_AE_NFD &&
                           v->event->call.is_set &&
                           v->event->call.query_by == PAY_QUERY_BY_REQUEST_NUMBER &&
                           traits->finds_by_request_no;

    if (PAY_GUARD(NOT_FOUND_BY_NUMBER, !by_number)) {
        ignore(ruling, "NOT_ASKED_BY_NUMBER");
    } else if (PAY_GUARD(NOT_FOUND_REFERENCE,
                         pay_attempt_has_reference(v->turn, v->attempt_index))) {
        not_found_but_bound(v, ruling);
    } else if (PAY_GUARD(NOT_FOUND_ACTION, v->attempt->action_no > 0)) {
        ignore(ruling, "ACTION_WAS_HANDED_OUT");
    } else {
        count_not_found(v, ruling);
    }
}

/* 4: UNKNOWN is left by news, not by the stored first answer that a replay brings. That answer
 * teaches the reference, which is then asked for. */
static void note_left_by_news(const struct view *v, struct pay_ruling *ruling)
{
    const struct pay_call *call = &v->event->call;
    const bool is_own_answer =
        v->turn->evidence == PAY_EVIDENCE_SYNC_RESPONSE && call->is_set && call->send_no == 1 &&
        call->query_by == PAY_QUERY_BY_NONE &&
        (answers_job(v->event, PAY_JOB_SUBMIT) || answers_job(v->event, PAY_JOB_CONFIRM));
    const bool is_news = v->turn->evidence >= PAY_EVIDENCE_WEBHOOK || is_own_answer;

    if (PAY_GUARD(UNKNOWN_WEAK_NEWS, !is_news)) {
        ignore(ruling, "WEAK_AFTER_UNKNOWN");
        ruling->asks = v->taught_reference;
    }
}

/* 5 */
static void note_time_out_knows_less(const struct view *v, struct pay_ruling *ruling)
{
    if (PAY_GUARD(UNKNOWN_OVER_WEBHOOK, v->attempt->result_certainty >= PAY_EVIDENCE_WEBHOOK)) {
        ignore(ruling, "KNOWN_BY_WEBHOOK");
    }
}

/* 6: late money. A statement never moves a final state by itself. */
static void note_late_money(const struct view *v, struct pay_ruling *ruling)
{
    if (v->column == PAY_AE_AUT) {
        reconcile(ruling, PAY_CASE_LATE_AUTHORIZATION, "LATE_AUTHORIZATION");
        return;
    }
    const bool is_weak = v->turn->evidence < PAY_EVIDENCE_WEBHOOK;
    if (PAY_GUARD(LATE_SUCCESS_EVIDENCE, is_weak)) {
        reconcile(ruling, PAY_CASE_CONTRADICTION, "LATE_SUCCESS_UNVERIFIED");
    } else if (v->turn->evidence == PAY_EVIDENCE_STATEMENT) {
        reconcile(ruling, PAY_CASE_CONTRADICTION, "STATEMENT_AGAINST_FINAL");
    } else {
        ruling->reason_code = "LATE_SUCCESS";
    }
}

/* 9: a reservation is not voided under a capture, nor by a word weaker than our own cancel's. */
static void note_void(const struct view *v, struct pay_ruling *ruling)
{
    const bool is_weak =
        v->turn->evidence < PAY_EVIDENCE_WEBHOOK && !answers_job(v->event, PAY_JOB_CANCEL);
    if (v->attempt->amounts.capture_reserved > 0) {
        reconcile(ruling, PAY_CASE_CONTRADICTION, "CANCELED_UNDER_CAPTURE");
    } else if (PAY_GUARD(AUTHORIZED_CANCEL, is_weak)) {
        ignore(ruling, "WEAK_CANCEL");
        ruling->asks = true;
    }
}

/* 10: a failed first try is reported late on the same object. One query, no case; once a query has
 * confirmed the success not even that. */
static void note_stale_failure(const struct view *v, struct pay_ruling *ruling)
{
    if (v->turn->evidence < PAY_EVIDENCE_QUERY) {
        ignore(ruling, "STALE");
        ruling->asks = v->attempt->result_certainty < PAY_EVIDENCE_QUERY;
    }
}

/* 11 */
static void note_release_rest(const struct view *v, struct pay_ruling *ruling)
{
    const struct pay_amounts *amounts = &v->attempt->amounts;
    if (amounts->captured + amounts->capture_reserved < amounts->authorized) {
        ignore(ruling, "REST_RELEASED");
        ruling->asks = false;
    }
}

/* 12 */
static void note_reversal(const struct view *v, struct pay_ruling *ruling)
{
    int64_t sum = 0;
    const bool is_known = pay_admit_is_bound(v->turn, v->attempt_index, PAY_REF_MODIFICATION,
                                             v->event->provider_action_id) ||
                          pay_str_eq_c(v->turn->in->cause, v->attempt->last_accepted_event_id);

    if (PAY_GUARD(REVERSAL_REPLAY, is_known)) {
        ignore(ruling, "DUPLICATE");
    } else if (!pay_money_add(v->attempt->amounts.withdrawn, v->event->amount.amount_minor, &sum)) {
        ruling->kind = PAY_CELL_REJECT;
        ruling->reason_code = "AMOUNT_OVERFLOW";
    }
}

typedef void note_fn(const struct view *v, struct pay_ruling *ruling);

/* 3 comes by deadline (decide_deadline.c), 7 and 8 are effects (decide_event.c). */
static note_fn *const notes[PAY_NOTE_COUNT] = {
    [1] = note_not_sent,       [2] = note_not_found,
    [4] = note_left_by_news,   [5] = note_time_out_knows_less,
    [6] = note_late_money,     [9] = note_void,
    [10] = note_stale_failure, [11] = note_release_rest,
    [12] = note_reversal,
};

static const char *first_reason(enum pay_cell_kind kind)
{
    switch (kind) {
    case PAY_CELL_MOVE:
    case PAY_CELL_STAY:
        return "APPLIED";
    case PAY_CELL_RECONCILE:
        return "CONTRADICTION";
    case PAY_CELL_REJECT:
        return "IMPOSSIBLE";
    default:
        return "STALE";
    }
}

/* With the guard off a success is left like a state that is not final: what it protects from. */
static enum pay_attempt_status row_of(const struct pay_attempt *attempt)
{
    const bool is_paid = attempt->status == PAY_ATTEMPT_SUCCEEDED;
    const bool absorbs = PAY_GUARD(STALE_SUCCESS, is_paid);
    return is_paid == absorbs ? attempt->status : PAY_ATTEMPT_PROCESSING;
}

/* The action that our own answer brings after a callback had only announced it: the customer needs
 * it, though the state is known already. */
static bool brings_first_action(const struct view *v)
{
    return v->column == PAY_AE_ACT && v->attempt->status == PAY_ATTEMPT_REQUIRES_ACTION &&
           v->event->action.is_set && v->attempt->action_no == 0 &&
           v->attempt->cancel_cause == PAY_CANCEL_CAUSE_NONE;
}

struct pay_ruling pay_rule(const struct pay_turn *turn, int attempt_index,
                           enum pay_attempt_event column, bool is_news)
{
    const struct view v = {
        turn,   attempt_index, pay_turn_attempt(turn, attempt_index), turn->in->event,
        column, is_news};
    const struct pay_attempt_cell *cell = pay_attempt_table_cell(row_of(v.attempt), column);
    struct pay_ruling ruling = {.kind = cell->kind,
                                .next = cell->next,
                                .reason_code = first_reason(cell->kind),
                                .case_kind = PAY_CASE_CONTRADICTION};

    if (brings_first_action(&v)) {
        ruling.kind = PAY_CELL_STAY;
        ruling.reason_code = "ACTION_HANDED_OUT";
    }
    if (PAY_GUARD(ONLY_SEND, ruling.kind == PAY_CELL_MOVE && is_no_of_one_send(&v))) {
        ignore(&ruling, "OTHER_SEND_EXISTS");
        ruling.asks = true;
    }
    for (size_t i = 0; i < PAY_CELL_NOTES_MAX; i++) {
        if (notes[cell->notes[i]] != NULL) {
            notes[cell->notes[i]](&v, &ruling);
        }
    }
    return ruling;
}
