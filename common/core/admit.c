/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/admit.h"

#include <string.h>

#include "common/core/attempt.h"
#include "common/core/id.h"
#include "common/core/money_action.h"
#include "common/core/withdraw.h"

#include "common/base/banned.h"

#define ATTEMPT_ID_LEN (PAY_ACTION_ID_SIZE - 1)
#define PAYMENT_ID_LEN (PAY_PAYMENT_ID_SIZE - 1)

enum pay_evidence pay_admit_evidence(const struct pay_decide_input *in)
{
    const bool is_replay = in->event != NULL && in->event->call.is_set &&
                           in->event->call.query_by == PAY_QUERY_BY_IDEMPOTENT_REPLAY;
    if (in->evidence < PAY_EVIDENCE_LOCAL) {
        return PAY_EVIDENCE_LOCAL;
    }
    return is_replay && in->evidence > PAY_EVIDENCE_SYNC_RESPONSE ? PAY_EVIDENCE_SYNC_RESPONSE
                                                                  : in->evidence;
}

/* ------------------------------------------------------------------------------- which attempt */

static bool is_attempt_id(struct pay_str text)
{
    return pay_id_is_action(text) && text.ptr[PAYMENT_ID_LEN] == 'A';
}

static bool is_present(struct pay_str text)
{
    return text.ptr != NULL && text.len > 0;
}

bool pay_admit_is_foreign(const struct pay_turn *turn)
{
    const struct pay_str number = turn->in->event->merchant_request_no;
    const bool is_ours =
        turn->snap->keeps_actions ? pay_id_is_action(number) : is_attempt_id(number);
    return is_present(number) && !is_ours;
}

bool pay_admit_is_of_other(const struct pay_turn *turn)
{
    const struct pay_str number = turn->in->event->merchant_request_no;
    const bool other_number =
        is_present(number) &&
        !pay_str_eq_c((struct pay_str){number.ptr, PAYMENT_ID_LEN}, turn->snap->order.payment_id);
    return other_number || (turn->in->foreign_reference && !is_present(number));
}

static int find_by_id(const struct pay_turn *turn, struct pay_str id)
{
    for (size_t i = 0; i < turn->snap->attempt_count; i++) {
        if (pay_str_eq_c(id, turn->snap->attempts[i].attempt_id)) {
            return (int)i;
        }
    }
    return -1;
}

static int find_by_job(const struct pay_turn *turn, const struct pay_call *call)
{
    if (!call->is_set || call->job_id.ptr == NULL || call->job_id.len < ATTEMPT_ID_LEN) {
        return -1;
    }
    return find_by_id(turn, (struct pay_str){call->job_id.ptr, ATTEMPT_ID_LEN});
}

static int find_by_reference(const struct pay_turn *turn, struct pay_str reference)
{
    for (size_t i = 0; is_present(reference) && i < turn->snap->reference_count; i++) {
        if (pay_str_eq_c(reference, turn->snap->references[i].reference)) {
            return turn->snap->references[i].attempt_index;
        }
    }
    return -1;
}

static int attempt_of(const struct pay_turn *turn, struct pay_money_ref ref)
{
    return ref.index < 0 ? -1 : pay_money_at(turn, ref)->attempt_index;
}

/* By the capture or refund that the event names: our number of it, or a job of it. */
static int find_by_action(const struct pay_turn *turn)
{
    const struct pay_event *event = turn->in->event;
    const struct pay_str numbers[] = {
        event->merchant_request_no, event->action_id, {event->call.job_id.ptr, ATTEMPT_ID_LEN}};
    int found = -1;

    for (size_t i = 0; turn->snap->keeps_actions && i < sizeof numbers / sizeof numbers[0]; i++) {
        const bool is_whole = i < 2 || (event->call.is_set && event->call.job_id.ptr != NULL &&
                                        event->call.job_id.len > ATTEMPT_ID_LEN);
        if (found < 0 && is_whole && is_present(numbers[i])) {
            found = attempt_of(turn, pay_money_find(turn, numbers[i]));
        }
    }
    return found;
}

static int find_named(const struct pay_turn *turn, enum pay_money_kind kind,
                      struct pay_str reference)
{
    struct pay_money_ref ref = {kind, 0};
    for (; (size_t)ref.index < pay_money_count(turn, kind); ref.index++) {
        const struct pay_money_action *action = pay_money_at(turn, ref);
        if (pay_str_eq_c(reference, action->provider_reference)) {
            return action->attempt_index;
        }
    }
    return -1;
}

/* By what the PSP calls a capture, refund or dispute that we know. */
static int find_by_action_reference(const struct pay_turn *turn, struct pay_str reference)
{
    const struct pay_snapshot *snap = turn->snap;
    int found = -1;

    if (!snap->keeps_actions || !is_present(reference)) {
        return -1;
    }
    found = find_named(turn, PAY_MONEY_CAPTURE, reference);
    if (found < 0) {
        found = find_named(turn, PAY_MONEY_REFUND, reference);
    }
    for (size_t i = 0; found < 0 && i < snap->dispute_count; i++) {
        const struct pay_dispute *dispute = &snap->disputes[i];
        found = pay_str_eq_c(reference, dispute->provider_reference) ? dispute->attempt_index : -1;
    }
    return found;
}

int pay_admit_find_attempt(const struct pay_turn *turn)
{
    const struct pay_event *event = turn->in->event;
    int found = find_by_action(turn);

    if (found >= 0) {
        return found;
    }
    if (is_present(event->merchant_request_no)) {
        return find_by_id(turn, event->merchant_request_no);
    }
    found = find_by_job(turn, &event->call);
    if (found < 0) {
        found = find_by_action_reference(turn, event->provider_action_id);
    }
    if (found < 0) {
        found = find_by_reference(turn, event->provider_payment_id);
    }
    for (size_t i = 0; found < 0 && i < event->reference_count; i++) {
        found = find_by_reference(turn, event->references[i].reference);
    }
    return found;
}

/* -------------------------------------------------------------------------------- which column */

static const signed char columns[PAY_EV_COUNT] = {
    [PAY_EV_ATTEMPT_SUBMITTED] = PAY_AE_SUB + 1,
    [PAY_EV_ATTEMPT_NOT_SENT] = PAY_AE_NSN + 1,
    [PAY_EV_ATTEMPT_PROCESSING] = PAY_AE_PRC + 1,
    [PAY_EV_ATTEMPT_ACTION_REQUIRED] = PAY_AE_ACT + 1,
    [PAY_EV_ATTEMPT_APPROVED] = PAY_AE_APR + 1,
    [PAY_EV_ATTEMPT_AUTHORIZED] = PAY_AE_AUT + 1,
    [PAY_EV_ATTEMPT_SUCCEEDED] = PAY_AE_SUC + 1,
    [PAY_EV_ATTEMPT_DECLINED] = PAY_AE_DEC + 1,
    [PAY_EV_ATTEMPT_FAILED] = PAY_AE_FAI + 1,
    [PAY_EV_ATTEMPT_CANCELED] = PAY_AE_CAN + 1,
    [PAY_EV_ATTEMPT_UNKNOWN] = PAY_AE_UNK + 1,
    [PAY_EV_ATTEMPT_NOT_FOUND] = PAY_AE_NFD + 1,
    [PAY_EV_ATTEMPT_AUTHORIZATION_EXPIRED] = PAY_AE_XPA + 1,
    [PAY_EV_ATTEMPT_REVERSED] = PAY_AE_REV + 1,
};

static bool has_exact_amount(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_event *event = turn->in->event;
    return event->has_amount &&
           pay_money_same(event->amount, pay_turn_attempt(turn, attempt_index)->amount);
}

/* AUT exists only for manual capture: with automatic capture it is progress, or, as the PSP's last
 * word, the success. */
static enum pay_attempt_event authorized_column(const struct pay_turn *turn)
{
    if (turn->snap->order.capture_mode == PAY_CAPTURE_MANUAL) {
        return PAY_AE_AUT;
    }
    return turn->in->event->success_when_automatic ? PAY_AE_SUC : PAY_AE_PRC;
}

bool pay_admit_column(const struct pay_turn *turn, int attempt_index,
                      enum pay_attempt_event *ret_column)
{
    const struct pay_event *event = turn->in->event;
    const bool is_manual = turn->snap->order.capture_mode == PAY_CAPTURE_MANUAL;

    if (event->type == PAY_EV_ATTEMPT_AUTHORIZED) {
        *ret_column = authorized_column(turn);
        return true;
    }
    /* Without a lifecycle of its own a capture of the whole is the success. An automatic capture is
     * the attempt itself. */
    if (event->type == PAY_EV_CAPTURE_SUCCEEDED &&
        (is_manual ? has_exact_amount(turn, attempt_index) : turn->snap->keeps_actions)) {
        *ret_column = PAY_AE_SUC;
        return true;
    }
    if (event->type == PAY_EV_CAPTURE_REVERSED && !is_manual && turn->snap->keeps_actions) {
        *ret_column = PAY_AE_REV;
        return true;
    }
    if ((size_t)event->type >= PAY_EV_COUNT || columns[event->type] == 0) {
        return false;
    }
    *ret_column = (enum pay_attempt_event)(columns[event->type] - 1);
    return true;
}

bool pay_admit_is_early_cancel(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const struct pay_call *call = &turn->in->event->call;
    enum pay_job_kind kind = PAY_JOB_UNRECOGNIZED;

    if (!call->is_set || !pay_id_job_kind(call->job_id, &kind)) {
        return false; /* A webhook, or the answer to our create: it speaks of what exists. */
    }
    if (kind == PAY_JOB_CANCEL) {
        return attempt->known_at_us == 0; /* Such a job is made only once it is known. */
    }
    return kind == PAY_JOB_QUERY &&
           (attempt->known_at_us == 0 || call->asked_at_us <= attempt->known_at_us);
}

bool pay_admit_is_expired_unpaid(const struct pay_turn *turn, int attempt_index,
                                 enum pay_attempt_event column)
{
    const enum pay_attempt_status status = pay_turn_attempt(turn, attempt_index)->status;
    const struct pay_call *call = &turn->in->event->call;
    const int64_t expiry_us = pay_withdraw_expiry(turn, attempt_index);
    const bool waits_for_customer =
        status == PAY_ATTEMPT_REQUIRES_ACTION || status == PAY_ATTEMPT_UNKNOWN;
    const bool is_unpaid =
        column == PAY_AE_ACT &&
        (waits_for_customer || status == PAY_ATTEMPT_SUBMITTED || status == PAY_ATTEMPT_PROCESSING);
    const bool is_missing = column == PAY_AE_NFD && waits_for_customer;

    return (is_unpaid || is_missing) && turn->evidence == PAY_EVIDENCE_QUERY && expiry_us != 0 &&
           call->is_set && call->asked_at_us > expiry_us;
}

/* ---------------------------------------------------------------------------------- references */

bool pay_admit_is_bound(const struct pay_turn *turn, int attempt_index,
                        enum pay_reference_kind kind, struct pay_str reference)
{
    for (size_t i = 0; i < turn->snap->reference_count; i++) {
        const struct pay_bound_reference *bound = &turn->snap->references[i];
        if (bound->attempt_index == attempt_index && bound->kind == kind &&
            pay_str_eq_c(reference, bound->reference)) {
            return true;
        }
    }
    return false;
}

bool pay_admit_bind_one(struct pay_turn *turn, int attempt_index, enum pay_reference_kind kind,
                        struct pay_str reference)
{
    struct pay_snapshot *snap = turn->snap;

    if (!is_present(reference) || reference.len >= PAY_REFERENCE_SIZE ||
        pay_admit_is_bound(turn, attempt_index, kind, reference)) {
        return false;
    }
    PAY_ASSERT(snap->reference_count < snap->reference_cap);
    struct pay_bound_reference *bound = &snap->references[snap->reference_count++];
    memset(bound, 0, sizeof *bound);
    bound->change = PAY_ROW_INSERTED;
    bound->attempt_index = attempt_index;
    bound->kind = kind;
    bound->bound_at_us = turn->in->now_us;
    (void)pay_str_copy(bound->reference, sizeof bound->reference, reference);
    pay_attempt_prove(turn, attempt_index);
    return true;
}

static bool is_bound_anyhow(const struct pay_turn *turn, int attempt_index,
                            struct pay_str reference)
{
    for (size_t i = 0; i < turn->snap->reference_count; i++) {
        const struct pay_bound_reference *bound = &turn->snap->references[i];
        if (bound->attempt_index == attempt_index && pay_str_eq_c(reference, bound->reference)) {
            return true;
        }
    }
    return false;
}

static bool names(const struct pay_event *event, struct pay_str reference)
{
    for (size_t i = 0; i < event->reference_count; i++) {
        if (pay_str_eq(event->references[i].reference, reference)) {
            return true;
        }
    }
    return false;
}

bool pay_admit_bind(struct pay_turn *turn, int attempt_index)
{
    const struct pay_event *event = turn->in->event;
    bool is_new = false;

    if (turn->evidence < PAY_EVIDENCE_SYNC_RESPONSE) {
        return false;
    }
    for (size_t i = 0; i < event->reference_count && i < PAY_REFERENCES_PER_EVENT_MAX; i++) {
        is_new |= pay_admit_bind_one(turn, attempt_index, event->references[i].kind,
                                     event->references[i].reference);
    }
    if (!names(event, event->provider_payment_id) &&
        !is_bound_anyhow(turn, attempt_index, event->provider_payment_id)) {
        is_new |=
            pay_admit_bind_one(turn, attempt_index, PAY_REF_OTHER, event->provider_payment_id);
    }
    return is_new;
}

static bool has_bound_kind(const struct pay_turn *turn, int attempt_index,
                           enum pay_reference_kind kind)
{
    for (size_t i = 0; i < turn->snap->reference_count; i++) {
        if (turn->snap->references[i].attempt_index == attempt_index &&
            turn->snap->references[i].kind == kind) {
            return true;
        }
    }
    return false;
}

/* The main reference stays the same over the attempt: another one of its kind is another object,
 * whatever else the event names. */
static bool has_other_main(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_event *event = turn->in->event;

    if (!is_present(event->provider_payment_id) ||
        is_bound_anyhow(turn, attempt_index, event->provider_payment_id)) {
        return false;
    }
    for (size_t i = 0; i < event->reference_count; i++) {
        if (pay_str_eq(event->references[i].reference, event->provider_payment_id)) {
            return has_bound_kind(turn, attempt_index, event->references[i].kind);
        }
    }
    return has_bound_kind(turn, attempt_index, PAY_REF_OTHER);
}

static bool is_bound_to_sibling(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_event *event = turn->in->event;
    int owner = find_by_reference(turn, event->provider_payment_id);

    for (size_t i = 0; owner < 0 && i < event->reference_count; i++) {
        owner = find_by_reference(turn, event->references[i].reference);
    }
    return owner >= 0 && owner != attempt_index;
}

/* An object under our number that is not the one we know: a second charge looks like this. */
bool pay_admit_is_unexpected(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_event *event = turn->in->event;
    bool names_any = is_present(event->provider_payment_id);

    if (turn->in->foreign_reference || is_bound_to_sibling(turn, attempt_index)) {
        return true;
    }
    if (event->same_object || turn->evidence < PAY_EVIDENCE_SYNC_RESPONSE ||
        !pay_attempt_has_reference(turn, attempt_index)) {
        return false;
    }
    if (has_other_main(turn, attempt_index)) {
        return true;
    }
    if (is_bound_anyhow(turn, attempt_index, event->provider_payment_id)) {
        return false;
    }
    for (size_t i = 0; i < event->reference_count; i++) {
        names_any = true;
        if (is_bound_anyhow(turn, attempt_index, event->references[i].reference)) {
            return false;
        }
    }
    return names_any;
}

/* ------------------------------------------------------------------------------------ believed */

static struct pay_ruling reject(const char *reason_code)
{
    return (struct pay_ruling){.kind = PAY_CELL_REJECT, .reason_code = reason_code};
}

static bool is_other_account(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    return !pay_str_eq_c(turn->in->event->psp, attempt->psp) ||
           !pay_str_eq_c(turn->in->event->psp_account, attempt->psp_account);
}

static bool needs_amount(enum pay_attempt_event column)
{
    return column == PAY_AE_SUC || column == PAY_AE_AUT;
}

static bool is_wrong_reversal(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_event *event = turn->in->event;
    return !event->has_amount || event->amount.amount_minor <= 0 ||
           strcmp(event->amount.currency, pay_turn_attempt(turn, attempt_index)->amount.currency) !=
               0;
}

static bool has_wrong_amount(const struct pay_turn *turn, int attempt_index,
                             enum pay_attempt_event column)
{
    if (column == PAY_AE_REV) {
        return is_wrong_reversal(turn, attempt_index);
    }
    return needs_amount(column) && !has_exact_amount(turn, attempt_index);
}

/* A new reference with our number and account: money under it is a case; anything else that it says
 * is about another object than ours and moves nothing. */
static struct pay_ruling unexpected(enum pay_attempt_event column)
{
    const bool is_money = column == PAY_AE_SUC || column == PAY_AE_AUT;
    return (struct pay_ruling){.kind = is_money ? PAY_CELL_RECONCILE : PAY_CELL_IGNORE,
                               .reason_code = "UNEXPECTED_REFERENCE",
                               .case_kind = PAY_CASE_UNEXPECTED_REFERENCE};
}

bool pay_admit(const struct pay_turn *turn, int attempt_index, enum pay_attempt_event column,
               struct pay_ruling *ret_ruling)
{
    const bool is_weak = turn->evidence < pay_attempt_least_evidence(column) ||
                         turn->evidence > pay_attempt_most_evidence(column);

    if (PAY_GUARD(ACCOUNT, is_other_account(turn, attempt_index))) {
        *ret_ruling = reject("WRONG_ACCOUNT");
    } else if (PAY_GUARD(EVIDENCE, is_weak)) {
        *ret_ruling = reject("EVIDENCE_NOT_ADMISSIBLE");
    } else if (PAY_GUARD(AMOUNT, has_wrong_amount(turn, attempt_index, column))) {
        *ret_ruling = reject(turn->in->event->has_amount ? "AMOUNT_MISMATCH" : "AMOUNT_MISSING");
        ret_ruling->has_case = true;
        ret_ruling->case_kind = PAY_CASE_AMOUNT_MISMATCH;
    } else if (PAY_GUARD(UNEXPECTED_REFERENCE, pay_admit_is_unexpected(turn, attempt_index))) {
        *ret_ruling = unexpected(column);
    } else {
        return true;
    }
    return false;
}
