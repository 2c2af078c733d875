/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/decide_parts.h"

#include <string.h>

#include "common/core/admit.h"
#include "common/core/amounts.h"
#include "common/core/id.h"

#include "common/base/banned.h"

static bool is_present(struct pay_str text)
{
    return text.ptr != NULL && text.len > 0;
}

static int find(const struct pay_turn *turn, int attempt_index, struct pay_str reference)
{
    for (size_t i = 0; i < turn->snap->dispute_count; i++) {
        const struct pay_dispute *dispute = &turn->snap->disputes[i];
        if (dispute->attempt_index == attempt_index &&
            pay_str_eq_c(reference, dispute->provider_reference)) {
            return (int)i;
        }
    }
    return -1;
}

/* ------------------------------------------------------------------------------------- verdicts */

static void without_dispute(struct pay_turn *turn, int attempt_index, enum pay_verdict verdict,
                            const char *reason_code)
{
    pay_turn_verdict(turn, verdict, reason_code);
    turn->out->security = verdict == PAY_VERDICT_REJECT;
    pay_decide_record_attempt(turn, attempt_index);
}

static int record(struct pay_turn *turn, int index, const char *from,
                  const enum pay_fact_type *fact)
{
    const struct pay_dispute *dispute = &turn->snap->disputes[index];
    const int effect = pay_turn_record(
        turn, &(struct pay_record){.aggregate = PAY_AGGREGATE_DISPUTE,
                                   .aggregate_id = dispute->dispute_id,
                                   .attempt_index = dispute->attempt_index,
                                   .case_index = -1,
                                   .from_status = from,
                                   .to_status = pay_dispute_status_name(dispute->status),
                                   .verdict = turn->out->verdict,
                                   .reason_code = turn->out->reason_code,
                                   .amount = &dispute->amount,
                                   .reference = pay_str_of(dispute->provider_reference),
                                   .publishes = fact != NULL,
                                   .fact = fact == NULL ? PAY_FACT_UNRECOGNIZED : *fact});
    if (effect >= 0) {
        turn->out->effects[effect].as.fact.dispute_index = index;
    }
    return effect;
}

/* ---------------------------------------------------------------------------------------- funds */

/* What the event says was moved: its type, or its detail. */
static enum pay_dispute_funds funds_of(const struct pay_event *event, enum pay_dispute_event column)
{
    if (column == PAY_DE_FUNDS_WITHDRAWN) {
        return PAY_FUNDS_WITHDRAWN;
    }
    if (column == PAY_DE_FUNDS_REINSTATED) {
        return PAY_FUNDS_REINSTATED;
    }
    const bool is_known = event->dispute.is_set && (event->dispute.funds == PAY_FUNDS_WITHDRAWN ||
                                                    event->dispute.funds == PAY_FUNDS_REINSTATED);
    return is_known ? (enum pay_dispute_funds)event->dispute.funds : PAY_FUNDS_UNCHANGED;
}

static int64_t moved_amount(const struct pay_event *event, enum pay_dispute_event column,
                            int64_t otherwise)
{
    const bool says = (column == PAY_DE_FUNDS_WITHDRAWN || column == PAY_DE_FUNDS_REINSTATED) &&
                      event->has_amount;
    return says ? event->amount.amount_minor : otherwise;
}

/* UNCHANGED → WITHDRAWN → REINSTATED, each once, whichever report comes first.
 * @return what moved; ret_holds false: the amounts do not allow it. */
static enum pay_dispute_funds move_funds(struct pay_turn *turn, int index,
                                         enum pay_dispute_event column, bool *ret_holds)
{
    struct pay_dispute *dispute = &turn->snap->disputes[index];
    struct pay_attempt *attempt = pay_turn_attempt(turn, dispute->attempt_index);
    const struct pay_event *event = turn->in->event;
    const enum pay_dispute_funds said = funds_of(event, column);
    const bool is_known = said <= dispute->funds;
    int64_t amount = 0;

    *ret_holds = true;
    if (said == PAY_FUNDS_UNCHANGED || PAY_GUARD(DISPUTE_FUNDS_ONCE, is_known)) {
        return PAY_FUNDS_UNCHANGED;
    }
    if (said == PAY_FUNDS_WITHDRAWN) {
        amount = moved_amount(event, column, dispute->amount.amount_minor);
        *ret_holds = pay_amounts_withdraw(&attempt->amounts, amount);
        dispute->withdrawn_minor += *ret_holds ? amount : 0;
    } else if (dispute->withdrawn_minor > 0) {
        amount = moved_amount(event, column, dispute->withdrawn_minor);
        *ret_holds =
            amount <= dispute->withdrawn_minor && pay_amounts_reinstate(&attempt->amounts, amount);
        dispute->withdrawn_minor -= *ret_holds ? amount : 0;
    }
    if (!*ret_holds) {
        return PAY_FUNDS_UNCHANGED;
    }
    dispute->funds = said;
    dispute->is_inquiry = false; /* Money moved. */
    pay_row_touch(&dispute->change);
    if (amount > 0) {
        attempt->amounts_changed = true;
        pay_row_touch(&attempt->change);
    }
    return said;
}

/* -------------------------------------------------------------------------------------- details */

static void take_details(struct pay_turn *turn, int index)
{
    struct pay_dispute *dispute = &turn->snap->disputes[index];
    const struct pay_event *event = turn->in->event;
    const struct pay_dispute_detail *detail = &event->dispute;

    if (turn->evidence > dispute->result_certainty) {
        dispute->result_certainty = turn->evidence;
        pay_row_touch(&dispute->change);
    }
    if (!detail->is_set) {
        return;
    }
    if (dispute->is_inquiry && !detail->is_inquiry) { /* An inquiry became a chargeback. */
        dispute->is_inquiry = false;
        pay_row_touch(&dispute->change);
    }
    if (detail->evidence_due_at_us != 0 &&
        detail->evidence_due_at_us != dispute->evidence_due_at_us) {
        dispute->evidence_due_at_us = detail->evidence_due_at_us;
        pay_row_touch(&dispute->change);
    }
}

/* A person has until then to answer. */
static void reschedule(struct pay_turn *turn, const struct pay_dispute *dispute)
{
    const bool waits =
        dispute->status == PAY_DISPUTE_OPENED || dispute->status == PAY_DISPUTE_EVIDENCE_DUE;
    if (waits && dispute->evidence_due_at_us > turn->in->now_us) {
        pay_deadline_set(turn, PAY_DEADLINE_DISPUTE, dispute->dispute_id,
                         dispute->evidence_due_at_us);
    } else {
        pay_deadline_clear(turn, PAY_DEADLINE_DISPUTE, dispute->dispute_id);
    }
}

static int open_dispute(struct pay_turn *turn, int attempt_index, struct pay_str reference)
{
    static const enum pay_fact_type opened = PAY_FACT_DISPUTE_OPENED;
    struct pay_snapshot *snap = turn->snap;
    const struct pay_event *event = turn->in->event;

    PAY_ASSERT(snap->dispute_count < snap->dispute_cap);
    const int index = (int)snap->dispute_count++;
    struct pay_dispute *dispute = &snap->disputes[index];
    memset(dispute, 0, sizeof *dispute);
    dispute->change = PAY_ROW_INSERTED;
    dispute->number = ++snap->order.dispute_count;
    pay_row_touch(&snap->order.change);
    pay_id_action(dispute->dispute_id, snap->order.payment_id, 'D', dispute->number);
    dispute->attempt_index = attempt_index;
    (void)pay_str_copy(dispute->provider_reference, sizeof dispute->provider_reference, reference);
    dispute->amount = pay_turn_attempt(turn, attempt_index)->amount;
    dispute->amount.amount_minor = event->has_amount ? event->amount.amount_minor : 0;
    dispute->is_inquiry = event->dispute.is_set && event->dispute.is_inquiry;
    if (!event->dispute.is_set || !pay_str_copy(dispute->reason_code, sizeof dispute->reason_code,
                                                event->dispute.reason_code)) {
        dispute->reason_code[0] = 0;
    }
    dispute->result_certainty = turn->evidence;
    dispute->created_at_us = turn->in->now_us;
    pay_turn_verdict(turn, PAY_VERDICT_APPLY, "OPENED");
    (void)record(turn, index, NULL, &opened);
    return index;
}

/* ---------------------------------------------------------------------------------- from the table
 */

static void contradict(struct pay_turn *turn, int index, const char *reason_code)
{
    const struct pay_dispute *dispute = &turn->snap->disputes[index];

    pay_turn_verdict(turn, PAY_VERDICT_NEEDS_RECONCILIATION, reason_code);
    (void)record(turn, index, pay_dispute_status_name(dispute->status), NULL);
    (void)pay_case_open(turn, PAY_CASE_CONTRADICTION, dispute->attempt_index, 0);
}

/* One fact says both: the new state, and what was moved. */
static void publish_change(struct pay_turn *turn, int index, const char *from,
                           enum pay_dispute_funds funds)
{
    static const enum pay_fact_type updated = PAY_FACT_DISPUTE_UPDATED;
    static const enum pay_fact_type closed = PAY_FACT_DISPUTE_CLOSED;
    struct pay_dispute *dispute = &turn->snap->disputes[index];
    const bool ends = pay_dispute_is_final(dispute->status) &&
                      strcmp(from, pay_dispute_status_name(dispute->status)) != 0;

    pay_turn_verdict(turn, PAY_VERDICT_APPLY, "APPLIED");
    const int fact = record(turn, index, from, ends ? &closed : &updated);
    turn->out->effects[fact].as.fact.funds = funds;
    pay_id_cause(dispute->last_accepted_event_id, turn->in->cause);
    pay_row_touch(&dispute->change);
}

static void apply(struct pay_turn *turn, int index, const struct pay_dispute_cell *cell,
                  enum pay_dispute_event column, bool is_new)
{
    struct pay_dispute *dispute = &turn->snap->disputes[index];
    const char *from = pay_dispute_status_name(dispute->status);
    bool holds = false;

    take_details(turn, index);
    const enum pay_dispute_funds funds = move_funds(turn, index, column, &holds);
    if (!holds) {
        contradict(turn, index, "FUNDS_MISMATCH");
        return;
    }
    const bool moves = cell->kind == PAY_CELL_MOVE && cell->next != dispute->status;
    if (moves) {
        dispute->status = cell->next;
        pay_row_touch(&dispute->change);
    }
    if (moves || funds != PAY_FUNDS_UNCHANGED) {
        publish_change(turn, index, from, funds);
    } else if (!is_new) {
        pay_turn_verdict(
            turn, PAY_VERDICT_IGNORE,
            pay_str_eq_c(turn->in->cause, dispute->last_accepted_event_id) ? "DUPLICATE" : "STALE");
        (void)record(turn, index, from, NULL);
    }
    reschedule(turn, dispute);
}

/* @return why it is not believed; NULL: it is. */
static const char *not_admissible(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_event *event = turn->in->event;
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    struct pay_money same = attempt->amount;

    if (PAY_GUARD(ACCOUNT, !pay_str_eq_c(event->psp, attempt->psp) ||
                               !pay_str_eq_c(event->psp_account, attempt->psp_account))) {
        return "WRONG_ACCOUNT";
    }
    if (PAY_GUARD(EVIDENCE, turn->evidence < PAY_EVIDENCE_WEBHOOK)) {
        return "EVIDENCE_NOT_ADMISSIBLE";
    }
    if (!is_present(event->provider_action_id) ||
        event->provider_action_id.len >= PAY_REFERENCE_SIZE) {
        return "DISPUTE_NAMELESS";
    }
    same.amount_minor = event->amount.amount_minor;
    return event->has_amount &&
                   (event->amount.amount_minor < 0 || !pay_money_same(same, event->amount))
               ? "AMOUNT_MISMATCH"
               : NULL;
}

void pay_decide_dispute(struct pay_turn *turn, int attempt_index, enum pay_dispute_event column)
{
    const char *why_not = not_admissible(turn, attempt_index);

    if (why_not != NULL) {
        without_dispute(turn, attempt_index, PAY_VERDICT_REJECT, why_not);
        if (strcmp(why_not, "AMOUNT_MISMATCH") == 0) {
            (void)pay_case_open(turn, PAY_CASE_AMOUNT_MISMATCH, attempt_index, 0);
        }
        return;
    }
    const struct pay_str reference = turn->in->event->provider_action_id;
    int index = find(turn, attempt_index, reference);
    const bool is_new = index < 0;
    if (is_new && turn->snap->order.dispute_count >= PAY_DISPUTES_MAX) {
        without_dispute(turn, attempt_index, PAY_VERDICT_NEEDS_RECONCILIATION, "LIMIT");
        (void)pay_case_open(turn, PAY_CASE_CONTRADICTION, attempt_index, 0);
        return;
    }
    const int row = is_new ? (int)PAY_DISPUTE_NONE : (int)turn->snap->disputes[index].status;
    const struct pay_dispute_cell *cell = pay_dispute_table_cell(row, column);
    (void)pay_admit_bind(turn, attempt_index);
    if (is_new) {
        index = open_dispute(turn, attempt_index, reference);
    }
    if (cell->kind == PAY_CELL_RECONCILE) {
        contradict(turn, index, "CLOSED_OTHERWISE");
    } else {
        apply(turn, index, cell, column, is_new);
    }
}

void pay_decide_dispute_due(struct pay_turn *turn, int index)
{
    const struct pay_dispute *dispute = &turn->snap->disputes[index];

    pay_deadline_clear(turn, PAY_DEADLINE_DISPUTE, dispute->dispute_id);
    if (dispute->evidence_due_at_us > turn->in->now_us) {
        pay_turn_verdict(turn, PAY_VERDICT_IGNORE, "NOT_DUE");
        reschedule(turn, dispute);
    } else { /* Only the PSP's word changes it. */
        pay_turn_verdict(turn, PAY_VERDICT_IGNORE, "EVIDENCE_TIME_OVER");
    }
    (void)record(turn, index, pay_dispute_status_name(dispute->status), NULL);
}
