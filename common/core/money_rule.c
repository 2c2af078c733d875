/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/money_rule.h"

#include <string.h>

#include "common/core/admit.h"
#include "common/core/amounts.h"
#include "common/core/id.h"
#include "common/core/not_found.h"

#include "common/base/banned.h"

#define ACTION_ID_LEN (PAY_ACTION_ID_SIZE - 1)

/* ----------------------------------------------------------------------------------- which column
 */

#define COLUMN(kind, event) (1 + (int)PAY_MONEY_##kind * PAY_ME_COUNT + (int)PAY_ME_##event)

static const signed char columns[PAY_EV_COUNT] = {
    [PAY_EV_CAPTURE_SUBMITTED] = COLUMN(CAPTURE, SUBMITTED),
    [PAY_EV_CAPTURE_NOT_SENT] = COLUMN(CAPTURE, NOT_SENT),
    [PAY_EV_CAPTURE_PROCESSING] = COLUMN(CAPTURE, PROCESSING),
    [PAY_EV_CAPTURE_SUCCEEDED] = COLUMN(CAPTURE, SUCCEEDED),
    [PAY_EV_CAPTURE_FAILED] = COLUMN(CAPTURE, FAILED),
    [PAY_EV_CAPTURE_UNKNOWN] = COLUMN(CAPTURE, UNKNOWN),
    [PAY_EV_CAPTURE_NOT_FOUND] = COLUMN(CAPTURE, NOT_FOUND),
    [PAY_EV_CAPTURE_REVERSED] = COLUMN(CAPTURE, REVERSED),
    [PAY_EV_REFUND_SUBMITTED] = COLUMN(REFUND, SUBMITTED),
    [PAY_EV_REFUND_NOT_SENT] = COLUMN(REFUND, NOT_SENT),
    [PAY_EV_REFUND_PROCESSING] = COLUMN(REFUND, PROCESSING),
    [PAY_EV_REFUND_SUCCEEDED] = COLUMN(REFUND, SUCCEEDED),
    [PAY_EV_REFUND_FAILED] = COLUMN(REFUND, FAILED),
    [PAY_EV_REFUND_UNKNOWN] = COLUMN(REFUND, UNKNOWN),
    [PAY_EV_REFUND_NOT_FOUND] = COLUMN(REFUND, NOT_FOUND),
    [PAY_EV_REFUND_REVERSED] = COLUMN(REFUND, REVERSED),
};

bool pay_money_column(enum pay_event_type type, enum pay_money_kind *ret_kind,
                      enum pay_money_event *ret_event)
{
    if ((size_t)type >= PAY_EV_COUNT || columns[type] == 0) {
        return false;
    }
    *ret_kind = (enum pay_money_kind)((columns[type] - 1) / PAY_ME_COUNT);
    *ret_event = (enum pay_money_event)((columns[type] - 1) % PAY_ME_COUNT);
    return true;
}

/* ----------------------------------------------------------------------------------- which action
 */

static bool is_present(struct pay_str text)
{
    return text.ptr != NULL && text.len > 0;
}

bool pay_money_is_nameless(const struct pay_event *event)
{
    return !pay_id_is_action(event->action_id) && !is_present(event->provider_action_id) &&
           !event->call.is_set;
}

static struct pay_money_ref none(enum pay_money_kind kind)
{
    return (struct pay_money_ref){kind, -1};
}

static struct pay_money_ref by_reference(const struct pay_turn *turn, int attempt_index,
                                         enum pay_money_kind kind)
{
    const struct pay_str reference = turn->in->event->provider_action_id;
    struct pay_money_ref ref = {kind, 0};

    for (; is_present(reference) && (size_t)ref.index < pay_money_count(turn, kind); ref.index++) {
        const struct pay_money_action *action = pay_money_at(turn, ref);
        if (action->attempt_index == attempt_index &&
            pay_str_eq_c(reference, action->provider_reference)) {
            return ref;
        }
    }
    return none(kind);
}

/* Asked about ours, the PSP tells of what it has: by a name of its own, without our number, and of
 * another amount, that is another one. The answer to our own call, or to its replay, is about ours
 * whatever it says. */
static bool tells_of_another(const struct pay_turn *turn, struct pay_money_ref ref)
{
    const struct pay_event *event = turn->in->event;
    const bool is_query = event->call.query_by != PAY_QUERY_BY_NONE &&
                          event->call.query_by != PAY_QUERY_BY_IDEMPOTENT_REPLAY;
    return is_query && event->type == PAY_EV_CAPTURE_SUCCEEDED && event->has_amount &&
           is_present(event->provider_action_id) &&
           !pay_money_same(event->amount, pay_money_at(turn, ref)->amount);
}

/* Our number first: what the PSP calls it may be new to us. */
struct pay_money_ref pay_money_named(const struct pay_turn *turn, int attempt_index,
                                     enum pay_money_kind kind)
{
    const struct pay_event *event = turn->in->event;
    const struct pay_call *call = &event->call;
    struct pay_money_ref found = none(kind);

    if (pay_id_is_action(event->action_id)) {
        found = pay_money_find(turn, event->action_id);
    } else if (pay_id_is_action(event->merchant_request_no)) {
        found = pay_money_find(turn, event->merchant_request_no);
    }
    if (found.index < 0 && call->is_set && call->job_id.ptr != NULL &&
        call->job_id.len > ACTION_ID_LEN) {
        found = pay_money_find(turn, (struct pay_str){call->job_id.ptr, ACTION_ID_LEN});
        if (found.index >= 0 && found.kind == kind && tells_of_another(turn, found)) {
            found = none(kind);
        }
    }
    if (found.index >= 0) {
        const bool is_other =
            found.kind != kind || pay_money_at(turn, found)->attempt_index != attempt_index;
        return is_other ? none(kind) : found;
    }
    return by_reference(turn, attempt_index, kind);
}

static bool has_same_amount(const struct pay_turn *turn, const struct pay_money_action *action,
                            int attempt_index)
{
    return action->attempt_index == attempt_index && turn->in->event->has_amount &&
           pay_money_same(action->amount, turn->in->event->amount);
}

bool pay_money_is_explained(const struct pay_turn *turn, int attempt_index)
{
    struct pay_money_ref ref = {PAY_MONEY_CAPTURE, 0};
    for (; (size_t)ref.index < turn->snap->capture_count; ref.index++) {
        const struct pay_money_action *action = pay_money_at(turn, ref);
        if (has_same_amount(turn, action, attempt_index) &&
            (action->status == PAY_MONEY_SUCCEEDED || action->status == PAY_MONEY_REVERSED)) {
            return true;
        }
    }
    return false;
}

struct pay_money_ref pay_money_unnamed(const struct pay_turn *turn, int attempt_index)
{
    struct pay_money_ref ref = {PAY_MONEY_CAPTURE, 0};
    for (; (size_t)ref.index < turn->snap->capture_count; ref.index++) {
        const struct pay_money_action *action = pay_money_at(turn, ref);
        if (has_same_amount(turn, action, attempt_index) && action->status == PAY_MONEY_SUCCEEDED &&
            action->provider_reference[0] == 0) {
            return ref;
        }
    }
    return none(PAY_MONEY_CAPTURE);
}

struct pay_money_ref pay_money_by_amount(const struct pay_turn *turn, int attempt_index)
{
    struct pay_money_ref ref = {PAY_MONEY_CAPTURE, 0};
    struct pay_money_ref found = none(PAY_MONEY_CAPTURE);
    int count = 0;

    for (; (size_t)ref.index < turn->snap->capture_count; ref.index++) {
        const struct pay_money_action *action = pay_money_at(turn, ref);
        if (has_same_amount(turn, action, attempt_index) && pay_money_is_open(action->status)) {
            found = ref;
            count++;
        }
    }
    return count == 1 ? found : none(PAY_MONEY_CAPTURE);
}

/* --------------------------------------------------------------------------------------- believed
 */

static bool is_other_account(const struct pay_turn *turn, const struct pay_attempt *attempt)
{
    return !pay_str_eq_c(turn->in->event->psp, attempt->psp) ||
           !pay_str_eq_c(turn->in->event->psp_account, attempt->psp_account);
}

/* A success must say how much it was; what else says it must say the same. */
static bool has_wrong_amount(const struct pay_turn *turn, const struct pay_money_action *action,
                             enum pay_money_event column)
{
    const struct pay_event *event = turn->in->event;
    if (!event->has_amount) {
        return column == PAY_ME_SUCCEEDED;
    }
    return column != PAY_ME_SUBMITTED && column != PAY_ME_NOT_SENT && column != PAY_ME_UNKNOWN &&
           column != PAY_ME_NOT_FOUND && !pay_money_same(event->amount, action->amount);
}

static bool is_other_object(const struct pay_turn *turn, const struct pay_money_action *action)
{
    const struct pay_event *event = turn->in->event;
    return action->provider_reference[0] != 0 && is_present(event->provider_action_id) &&
           !event->same_object && turn->evidence >= PAY_EVIDENCE_SYNC_RESPONSE &&
           !pay_str_eq_c(event->provider_action_id, action->provider_reference);
}

static struct pay_money_ruling reject(const char *reason_code)
{
    return (struct pay_money_ruling){.kind = PAY_CELL_REJECT, .reason_code = reason_code};
}

bool pay_money_admit(const struct pay_turn *turn, struct pay_money_ref ref,
                     enum pay_money_event column, struct pay_money_ruling *ret_ruling)
{
    const struct pay_money_action *action = pay_money_at(turn, ref);
    const struct pay_attempt *attempt = pay_turn_attempt(turn, action->attempt_index);
    const bool is_weak = turn->evidence < pay_money_least_evidence(column) ||
                         turn->evidence > pay_money_most_evidence(column);

    if (PAY_GUARD(ACCOUNT, is_other_account(turn, attempt))) {
        *ret_ruling = reject("WRONG_ACCOUNT");
    } else if (PAY_GUARD(EVIDENCE, is_weak)) {
        *ret_ruling = reject("EVIDENCE_NOT_ADMISSIBLE");
    } else if (PAY_GUARD(AMOUNT, has_wrong_amount(turn, action, column))) {
        *ret_ruling = reject(turn->in->event->has_amount ? "AMOUNT_MISMATCH" : "AMOUNT_MISSING");
        ret_ruling->has_case = true;
        ret_ruling->case_kind = PAY_CASE_AMOUNT_MISMATCH;
    } else if (PAY_GUARD(UNEXPECTED_REFERENCE, is_other_object(turn, action))) {
        *ret_ruling = (struct pay_money_ruling){
            .kind = column == PAY_ME_SUCCEEDED ? PAY_CELL_RECONCILE : PAY_CELL_IGNORE,
            .reason_code = "UNEXPECTED_REFERENCE",
            .case_kind = PAY_CASE_UNEXPECTED_REFERENCE};
    } else {
        return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------------------ notes
 */

static void ignore(struct pay_money_ruling *ruling, const char *reason_code)
{
    ruling->kind = PAY_CELL_IGNORE;
    ruling->reason_code = reason_code;
}

static void reconcile(struct pay_money_ruling *ruling, enum pay_case_kind kind,
                      const char *reason_code)
{
    ruling->kind = PAY_CELL_RECONCILE;
    ruling->case_kind = kind;
    ruling->reason_code = reason_code;
}

/* ᵃ: only if no job of the action may have left; an earlier one may yet be executed. */
static void note_sent_again(const struct pay_turn *turn, struct pay_money_ref ref,
                            struct pay_money_ruling *ruling)
{
    if (PAY_GUARD(MONEY_NOT_SENT,
                  pay_money_was_sent(turn, ref) || pay_money_gate(turn, ref) == NULL)) {
        ignore(ruling, "GATE_PASSED");
    } else if (ruling->kind == PAY_CELL_IGNORE) {
        ruling->reason_code = "SENT_AGAIN_BY_DEADLINE";
    }
}

static bool is_found_by_number(const struct pay_turn *turn, struct pay_money_ref ref)
{
    const struct pay_psp_traits *traits =
        pay_turn_traits(turn, pay_money_at(turn, ref)->attempt_index);
    const bool can_count =
        ref.kind == PAY_MONEY_CAPTURE ? traits->finds_captures_by_no : traits->finds_refunds_by_no;
    const struct pay_call *call = &turn->in->event->call;
    return can_count && call->is_set && call->query_by == PAY_QUERY_BY_REQUEST_NUMBER &&
           pay_money_gate(turn, ref) != NULL;
}

static void count_not_found(const struct pay_turn *turn, struct pay_money_ref ref,
                            struct pay_money_ruling *ruling)
{
    const struct pay_money_action *action = pay_money_at(turn, ref);
    const struct pay_psp_traits *traits = pay_turn_traits(turn, action->attempt_index);
    const struct pay_not_found_row row = {action->not_found_count, action->not_found_from_us};
    const int64_t from_us = pay_not_found_from(traits, pay_money_gates(turn, ref).last_us);
    const bool is_late_enough =
        !PAY_GUARD(MONEY_NOT_FOUND, turn->in->event->call.asked_at_us <= from_us);
    const struct pay_not_found_ruling found =
        pay_not_found_rule(traits, row, from_us, is_late_enough);

    ruling->counts = found.counts;
    ruling->restarts = found.restarts;
    if (!found.is_enough) {
        ignore(ruling, found.counts ? "NOT_FOUND_COUNTED" : "ASKED_TOO_EARLY");
        return;
    }
    ruling->kind = PAY_CELL_MOVE;
    ruling->next = PAY_MONEY_FAILED;
    ruling->reason_code = "PSP_NOT_FOUND";
}

/* As ²: never once the PSP has named it, and only from queries by our number. */
static void note_not_found(const struct pay_turn *turn, struct pay_money_ref ref,
                           struct pay_money_ruling *ruling)
{
    if (!is_found_by_number(turn, ref)) {
        ignore(ruling, "NOT_ASKED_BY_NUMBER");
    } else if (pay_money_at(turn, ref)->retry_at_us != 0) {
        ignore(ruling, "TO_BE_REPEATED"); /* Refused for now it is not there, and is yet to come. */
    } else if (PAY_GUARD(MONEY_NOT_FOUND, pay_money_at(turn, ref)->provider_reference[0] != 0)) {
        ignore(ruling, "NOT_FOUND_BUT_BOUND");
    } else {
        count_not_found(turn, ref, ruling);
    }
}

bool pay_money_fits(const struct pay_turn *turn, struct pay_money_ref ref)
{
    const struct pay_money_action *action = pay_money_at(turn, ref);
    const struct pay_attempt *attempt = pay_turn_attempt(turn, action->attempt_index);
    struct pay_amounts tried = attempt->amounts;

    return ref.kind == PAY_MONEY_CAPTURE
               ? pay_amounts_take_capture(&tried, action->amount.amount_minor,
                                          attempt->amount.amount_minor)
               : pay_amounts_take_refund(&tried, action->amount.amount_minor);
}

/* Late money: booked if it fits, and asked about: the news may be older than the failure. */
static void note_fits(const struct pay_turn *turn, struct pay_money_ref ref,
                      struct pay_money_ruling *ruling)
{
    if (turn->evidence == PAY_EVIDENCE_STATEMENT) {
        reconcile(ruling, PAY_CASE_CONTRADICTION, "STATEMENT_AGAINST_FINAL");
    } else if (!pay_money_fits(turn, ref)) {
        reconcile(ruling,
                  ref.kind == PAY_MONEY_REFUND ? PAY_CASE_OVER_REFUND : PAY_CASE_CONTRADICTION,
                  ref.kind == PAY_MONEY_REFUND ? "OVER_REFUND" : "OVER_CAPTURE");
    } else {
        ruling->reason_code = "LATE_SUCCESS";
        ruling->asks = turn->evidence < PAY_EVIDENCE_QUERY;
    }
}

static void note_stale(const struct pay_turn *turn, struct pay_money_ruling *ruling)
{
    if (turn->evidence >= PAY_EVIDENCE_QUERY) {
        reconcile(ruling, PAY_CASE_CONTRADICTION, "SUCCEEDED_AFTER_REVERSAL");
    }
}

/* REVERSED needs a callback, confirmed by a query where the PSP has one: a success is not taken
 * back by what may be older than it. */
static void check_reversal(const struct pay_turn *turn, struct pay_money_ref ref,
                           struct pay_money_ruling *ruling)
{
    const bool is_asked = pay_money_is_asked(turn, ref);
    const bool is_final = pay_money_at(turn, ref)->status == PAY_MONEY_SUCCEEDED;
    const bool is_weak =
        turn->evidence < PAY_EVIDENCE_WEBHOOK || (turn->evidence < PAY_EVIDENCE_QUERY && is_asked);

    if (PAY_GUARD(MONEY_REVERSAL, is_weak)) {
        ignore(ruling, "REVERSAL_TO_BE_CONFIRMED");
        ruling->asks = true;
    } else if (is_final && turn->evidence == PAY_EVIDENCE_STATEMENT) {
        reconcile(ruling, PAY_CASE_CONTRADICTION, "STATEMENT_AGAINST_FINAL");
    }
}

/* "No, and nothing was made" says so of one send: with another one it is no proof. */
static bool is_no_of_one_send(const struct pay_turn *turn, struct pay_money_ref ref,
                              enum pay_money_event column)
{
    const struct pay_event *event = turn->in->event;
    if (column != PAY_ME_FAILED || turn->evidence > PAY_EVIDENCE_SYNC_RESPONSE ||
        !event->call.is_set || is_present(event->provider_action_id)) {
        return false;
    }
    return pay_money_gates(turn, ref).sends > event->call.send_no;
}

static const char *first_reason(enum pay_cell_kind kind)
{
    switch (kind) {
    case PAY_CELL_MOVE:
        return "APPLIED";
    case PAY_CELL_REJECT:
        return "IMPOSSIBLE";
    default:
        return "STALE";
    }
}

static void apply_note(const struct pay_turn *turn, struct pay_money_ref ref,
                       enum pay_money_note note, struct pay_money_ruling *ruling)
{
    switch (note) {
    case PAY_MONEY_NOTE_SENT_AGAIN:
        note_sent_again(turn, ref, ruling);
        break;
    case PAY_MONEY_NOTE_NOT_FOUND:
        note_not_found(turn, ref, ruling);
        break;
    case PAY_MONEY_NOTE_FITS:
        note_fits(turn, ref, ruling);
        break;
    case PAY_MONEY_NOTE_STALE:
        note_stale(turn, ruling);
        break;
    default:
        break;
    }
}

struct pay_money_ruling pay_money_rule(const struct pay_turn *turn, struct pay_money_ref ref,
                                       enum pay_money_event column)
{
    const struct pay_money_action *action = pay_money_at(turn, ref);
    const struct pay_money_cell *cell = pay_money_table_cell(action->status, column);
    struct pay_money_ruling ruling = {.kind = cell->kind,
                                      .next = cell->next,
                                      .reason_code = first_reason(cell->kind),
                                      .case_kind = PAY_CASE_CONTRADICTION};

    if (PAY_GUARD(ONLY_SEND,
                  ruling.kind == PAY_CELL_MOVE && is_no_of_one_send(turn, ref, column))) {
        ignore(&ruling, "OTHER_SEND_EXISTS");
        ruling.asks = true;
        return ruling;
    }
    apply_note(turn, ref, cell->note, &ruling);
    if (ruling.kind == PAY_CELL_MOVE && ruling.next == PAY_MONEY_REVERSED) {
        check_reversal(turn, ref, &ruling);
    }
    return ruling;
}
