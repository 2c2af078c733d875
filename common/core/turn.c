/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/turn.h"

#include <string.h>

#include "common/core/id.h"

#include "common/base/banned.h"

#define ASKED_LEAST_US INT64_C(1000000)

void pay_turn_verdict(struct pay_turn *turn, enum pay_verdict verdict, const char *reason_code)
{
    turn->out->verdict = verdict;
    turn->out->reason_code = reason_code;
}

void pay_row_touch(enum pay_row_change *change)
{
    if (*change == PAY_ROW_SAME || *change == PAY_ROW_COUNTED) {
        *change = PAY_ROW_UPDATED;
    }
}

void pay_row_count(enum pay_row_change *change)
{
    if (*change == PAY_ROW_SAME) {
        *change = PAY_ROW_COUNTED;
    }
}

int64_t pay_time_after(int64_t from_us, int64_t span_us)
{
    return span_us > 0 && from_us > INT64_MAX - span_us ? INT64_MAX : from_us + span_us;
}

int64_t pay_time_earlier(int64_t a_us, int64_t b_us)
{
    return a_us < b_us ? a_us : b_us;
}

int64_t pay_time_later(int64_t a_us, int64_t b_us)
{
    return a_us > b_us ? a_us : b_us;
}

struct pay_attempt *pay_turn_attempt(const struct pay_turn *turn, int attempt_index)
{
    PAY_ASSERT(attempt_index >= 0 && (size_t)attempt_index < turn->snap->attempt_count);
    return &turn->snap->attempts[attempt_index];
}

const struct pay_psp_traits *pay_turn_traits(const struct pay_turn *turn, int attempt_index)
{
    const int route_no = pay_turn_attempt(turn, attempt_index)->route_no;
    PAY_ASSERT(route_no >= 0 && (size_t)route_no < turn->snap->route_count);
    return &turn->snap->routes[route_no].traits;
}

static void copy_id(char *dst, size_t size, const char *id)
{
    const bool fits = pay_str_copy(dst, size, pay_str_of(id));
    PAY_ASSERT(fits);
}

static struct pay_effect *add_effect(struct pay_turn *turn, enum pay_effect_kind kind)
{
    PAY_ASSERT(turn->out->effect_count < PAY_EFFECTS_MAX);
    struct pay_effect *effect = &turn->out->effects[turn->out->effect_count++];
    /* Only the slot used is cleared: a decision is large and mostly empty. */
    memset(effect, 0, sizeof *effect);
    effect->kind = kind;
    return effect;
}

/* ------------------------------------------------------------------------------ facts, history */

static bool sum_of_attempts(const struct pay_snapshot *snap, struct pay_amounts *ret_sum)
{
    struct pay_amounts sum = {0};

    for (size_t i = 0; i < snap->attempt_count; i++) {
        const struct pay_amounts *a = &snap->attempts[i].amounts;
        if (!pay_money_add(sum.authorized, a->authorized, &sum.authorized) ||
            !pay_money_add(sum.capture_reserved, a->capture_reserved, &sum.capture_reserved) ||
            !pay_money_add(sum.captured, a->captured, &sum.captured) ||
            !pay_money_add(sum.refund_reserved, a->refund_reserved, &sum.refund_reserved) ||
            !pay_money_add(sum.refunded, a->refunded, &sum.refunded) ||
            !pay_money_add(sum.withdrawn, a->withdrawn, &sum.withdrawn)) {
            return false;
        }
    }
    *ret_sum = sum;
    return true;
}

static struct pay_str provider_reference(const struct pay_turn *turn)
{
    return turn->in->event == NULL ? (struct pay_str){NULL, 0}
                                   : turn->in->event->provider_payment_id;
}

/* Business key; with the row's version where the same type can come again for the aggregate. */
static void fact_cause(const struct pay_turn *turn, const struct pay_record *record,
                       char dst[PAY_CAUSE_SIZE + 24])
{
    char cause[PAY_CAUSE_SIZE];
    pay_id_cause(cause, turn->in->cause);
    if (!record->recurs) {
        memcpy(dst, cause, strlen(cause) + 1);
        return;
    }
    const int64_t version = record->attempt_index < 0
                                ? turn->snap->order.version
                                : pay_turn_attempt(turn, record->attempt_index)->version;
    pay_id_cause_at(dst, cause, version);
}

/* What may be said about the payment: nothing to a caller it does not belong to. */
static void fill_payment_part(const struct pay_turn *turn, struct pay_fact *fact)
{
    const struct pay_order *order = &turn->snap->order;

    fact->has_order_status = true;
    fact->order_status = order->status;
    fact->has_totals = sum_of_attempts(turn->snap, &fact->totals);
    fact->has_amount = order->amount.currency[0] != 0;
    fact->amount = order->amount;
}

static void fill_attempt_part(const struct pay_turn *turn, struct pay_fact *fact)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, fact->attempt_index);

    fact->amount = attempt->amount;
    if (attempt->failure_class != PAY_FAILURE_NONE) {
        fact->failure_class = attempt->failure_class;
        fact->failure_code = pay_str_of(attempt->failure_code);
    }
}

static struct pay_str reference_of(const struct pay_turn *turn, const struct pay_record *record)
{
    const bool is_said = record->reference.ptr != NULL && record->reference.len > 0;
    return is_said ? record->reference : provider_reference(turn);
}

static int publish(struct pay_turn *turn, const struct pay_record *record)
{
    struct pay_order *order = &turn->snap->order;
    char cause[PAY_CAUSE_SIZE + 24];
    const int index = (int)turn->out->effect_count;
    struct pay_fact *fact = &add_effect(turn, PAY_EFFECT_FACT)->as.fact;

    fact->type = record->fact;
    fact->attempt_index = record->attempt_index;
    fact->case_index = record->case_index;
    fact->dispute_index = -1;
    fact->previous_status = record->from_status;
    fact->status = record->to_status;
    fact->reason_code = record->reason_code;
    fact->evidence = turn->evidence;
    fact->provider_reference = reference_of(turn, record);
    copy_id(fact->aggregate_id, sizeof fact->aggregate_id, record->aggregate_id);
    fact_cause(turn, record, cause);
    pay_id_fact(fact->event_id, record->fact, record->aggregate_id, cause);
    if (!record->unnumbered) {
        fact->sequence = ++order->event_sequence;
        pay_row_touch(&order->change);
        fill_payment_part(turn, fact);
    }
    if (record->attempt_index >= 0) {
        fill_attempt_part(turn, fact);
    }
    if (record->amount != NULL) { /* Of the capture, refund or dispute, not of its attempt. */
        fact->has_amount = true;
        fact->amount = *record->amount;
        fact->failure_class = PAY_FAILURE_NONE;
        fact->failure_code = (struct pay_str){NULL, 0};
    }
    return index;
}

int pay_turn_record(struct pay_turn *turn, const struct pay_record *record)
{
    PAY_ASSERT(turn->out->history_count < PAY_HISTORY_MAX);
    struct pay_history_row *row = &turn->out->history[turn->out->history_count++];
    const struct pay_event *event = turn->in->event;

    memset(row, 0, sizeof *row);
    row->aggregate = record->aggregate;
    copy_id(row->aggregate_id, sizeof row->aggregate_id, record->aggregate_id);
    row->from_status = record->from_status;
    row->to_status = record->to_status;
    row->verdict = record->verdict;
    row->event_name = turn->event_name;
    row->reason_code = record->reason_code;
    row->outside = record->outside;
    row->is_controlled = turn->evidence == PAY_EVIDENCE_CONTROLLED;
    row->provider_reference = reference_of(turn, record);
    row->has_amount = record->amount != NULL || (event != NULL && event->has_amount);
    row->amount = record->amount != NULL ? *record->amount
                  : row->has_amount      ? event->amount
                                         : (struct pay_money){0};
    row->fact_effect = record->publishes ? publish(turn, record) : -1;
    return row->fact_effect;
}

/* ----------------------------------------------------------------------------------- deadlines */

static struct pay_effect *find_deadline(const struct pay_turn *turn, enum pay_deadline_kind kind,
                                        const char *aggregate_id)
{
    for (size_t i = 0; i < turn->out->effect_count; i++) {
        struct pay_effect *effect = &turn->out->effects[i];
        const bool is_deadline =
            effect->kind == PAY_EFFECT_DEADLINE_SET || effect->kind == PAY_EFFECT_DEADLINE_CLEAR;
        if (is_deadline && effect->as.deadline.kind == kind &&
            strcmp(effect->as.deadline.aggregate_id, aggregate_id) == 0) {
            return effect;
        }
    }
    return NULL;
}

static struct pay_effect *deadline_effect(struct pay_turn *turn, enum pay_deadline_kind kind,
                                          const char *aggregate_id)
{
    struct pay_effect *effect = find_deadline(turn, kind, aggregate_id);

    if (effect == NULL) {
        effect = add_effect(turn, PAY_EFFECT_DEADLINE_CLEAR);
        effect->as.deadline.kind = kind;
        copy_id(effect->as.deadline.aggregate_id, sizeof effect->as.deadline.aggregate_id,
                aggregate_id);
    }
    return effect;
}

void pay_deadline_set(struct pay_turn *turn, enum pay_deadline_kind kind, const char *aggregate_id,
                      int64_t due_at_us)
{
    struct pay_effect *effect = deadline_effect(turn, kind, aggregate_id);
    effect->kind = PAY_EFFECT_DEADLINE_SET;
    effect->as.deadline.due_at_us = due_at_us;
    effect->as.deadline.set_before_us = 0;
}

void pay_deadline_clear(struct pay_turn *turn, enum pay_deadline_kind kind,
                        const char *aggregate_id)
{
    struct pay_effect *effect = deadline_effect(turn, kind, aggregate_id);
    effect->kind = PAY_EFFECT_DEADLINE_CLEAR;
    effect->as.deadline.due_at_us = 0;
    effect->as.deadline.set_before_us = 0;
}

/* ---------------------------------------------------------------------------------------- jobs */

static bool has_job(const struct pay_turn *turn, const char *job_id)
{
    for (size_t i = 0; i < turn->out->effect_count; i++) {
        const struct pay_effect *effect = &turn->out->effects[i];
        if (effect->kind == PAY_EFFECT_JOB && strcmp(effect->as.job.job_id, job_id) == 0) {
            return true;
        }
    }
    return false;
}

static struct pay_job_effect *add_job(struct pay_turn *turn, int attempt_index,
                                      enum pay_job_kind kind, const char *job_id)
{
    struct pay_job_effect *job = &add_effect(turn, PAY_EFFECT_JOB)->as.job;
    const int64_t window_us = pay_turn_traits(turn, attempt_index)->send_window_us;

    copy_id(job->job_id, sizeof job->job_id, job_id);
    job->kind = kind;
    job->attempt_index = attempt_index;
    job->action_index = -1;
    job->number = 1;
    job->try_no = 1;
    job->not_after_us = pay_time_after(turn->in->now_us, window_us);
    return job;
}

struct pay_job_effect *pay_job_ask(struct pay_turn *turn, int attempt_index, enum pay_job_kind kind,
                                   const char *action_id, const char *about_job_id)
{
    char job_id[PAY_JOB_ID_SIZE];

    pay_id_query_by_version(job_id, action_id, turn->snap->order.version);
    if (has_job(turn, job_id)) {
        return NULL;
    }
    struct pay_job_effect *job = add_job(turn, attempt_index, kind, job_id);
    if (about_job_id != NULL) {
        copy_id(job->about_job_id, sizeof job->about_job_id, about_job_id);
    }
    return job;
}

void pay_job_until_answered(struct pay_turn *turn, int attempt_index, const char *action_id)
{
    const struct pay_psp_traits *traits = pay_turn_traits(turn, attempt_index);
    const int64_t asks_us = pay_time_later(traits->query_first_us, ASKED_LEAST_US);
    const int64_t person_us = pay_time_later(traits->person_after_us, ASKED_LEAST_US);

    pay_deadline_set(turn, PAY_DEADLINE_QUERY, action_id,
                     pay_time_after(turn->in->now_us, asks_us));
    pay_deadline_set(turn, PAY_DEADLINE_MANUAL, action_id,
                     pay_time_after(turn->in->now_us, person_us));
}

void pay_job_answered(struct pay_turn *turn, const char *action_id)
{
    static const enum pay_deadline_kind rows[] = {PAY_DEADLINE_QUERY, PAY_DEADLINE_MANUAL};
    const struct pay_call *call = &turn->in->event->call;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (find_deadline(turn, rows[i], action_id) == NULL) {
            deadline_effect(turn, rows[i], action_id)->as.deadline.set_before_us =
                call->is_set ? call->asked_at_us : 0;
        }
    }
}

struct pay_job_effect *pay_job_gated(struct pay_turn *turn, const struct pay_gated_job *from)
{
    struct pay_snapshot *snap = turn->snap;
    char job_id[PAY_JOB_ID_SIZE];

    pay_id_job(job_id, from->action_id, from->kind, from->number);
    struct pay_job_effect *job = add_job(turn, from->attempt_index, from->kind, job_id);
    job->number = from->number;
    job->try_no = from->number;
    job->not_after_us = pay_time_earlier(job->not_after_us, from->end_us);

    PAY_ASSERT(snap->gate_count < snap->gate_cap);
    struct pay_gate *gate = &snap->gates[snap->gate_count++];
    memset(gate, 0, sizeof *gate);
    gate->change = PAY_ROW_INSERTED;
    gate->kind = from->kind;
    gate->not_after_us = job->not_after_us;
    copy_id(gate->job_id, sizeof gate->job_id, job_id);
    copy_id(gate->action_id, sizeof gate->action_id, from->action_id);

    /* Looked at when every send that passed the gate in time has ended. */
    const int64_t call_us = pay_turn_traits(turn, from->attempt_index)->call_budget_us;
    pay_deadline_set(turn, PAY_DEADLINE_SEND, from->action_id,
                     pay_time_after(job->not_after_us, pay_time_after(call_us, 1)));
    return job;
}

void pay_job_money(struct pay_turn *turn, int attempt_index, enum pay_job_kind kind, int number)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    struct pay_job_effect *job =
        pay_job_gated(turn, &(struct pay_gated_job){.attempt_index = attempt_index,
                                                    .action_id = attempt->attempt_id,
                                                    .kind = kind,
                                                    .number = number,
                                                    .end_us = turn->snap->order.expires_at_us});
    job->expires_at_us = kind == PAY_JOB_SUBMIT ? attempt->psp_expires_at_us : 0;
}

void pay_job_cancel(struct pay_turn *turn, int attempt_index)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    char job_id[PAY_JOB_ID_SIZE];

    attempt->cancel_no++;
    pay_row_touch(&attempt->change);
    pay_id_job(job_id, attempt->attempt_id, PAY_JOB_CANCEL, attempt->cancel_no);
    struct pay_job_effect *job = add_job(turn, attempt_index, PAY_JOB_CANCEL, job_id);
    job->number = attempt->cancel_no;
    job->try_no = attempt->cancel_no;
    job->reason_code = pay_cancel_cause_name(attempt->cancel_cause);
}

/* --------------------------------------------------------------------------------------- cases */

int pay_case_find_open(const struct pay_turn *turn, enum pay_case_kind kind)
{
    for (size_t i = 0; i < turn->snap->case_count; i++) {
        const struct pay_case *found = &turn->snap->cases[i];
        if (found->open && found->kind == kind) {
            return (int)i;
        }
    }
    return -1;
}

bool pay_case_is_open(const struct pay_turn *turn, enum pay_case_kind kind)
{
    return pay_case_find_open(turn, kind) >= 0;
}

bool pay_case_blocks_refunds(const struct pay_turn *turn, int attempt_index)
{
    const int index = pay_case_find_open(turn, PAY_CASE_OVER_REFUND);
    if (index < 0) {
        return false;
    }
    const char *about = turn->snap->cases[index].aggregate_id;
    return strcmp(about, pay_turn_attempt(turn, attempt_index)->attempt_id) == 0 ||
           strcmp(about, turn->snap->order.payment_id) == 0;
}

/* A payment has one open case of a kind: what blocks two attempts is the whole payment's. */
static void add_evidence(const struct pay_turn *turn, struct pay_case *open,
                         const char *aggregate_id)
{
    if (open->kind == PAY_CASE_OVER_REFUND && strcmp(open->aggregate_id, aggregate_id) != 0) {
        copy_id(open->aggregate_id, sizeof open->aggregate_id, turn->snap->order.payment_id);
    }
    pay_row_touch(&open->change);
}

bool pay_case_money_open(const struct pay_turn *turn)
{
    for (size_t i = 0; i < turn->snap->case_count; i++) {
        if (turn->snap->cases[i].open && pay_case_is_money(turn->snap->cases[i].kind)) {
            return true;
        }
    }
    return false;
}

static void join(char dst[PAY_CAUSE_SIZE], const char *const parts[], size_t count)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t len = strlen(parts[i]);
        PAY_ASSERT(at + len < PAY_CAUSE_SIZE);
        memcpy(dst + at, parts[i], len);
        at += len;
    }
    dst[at] = 0;
}

/* payment_id.KIND.n, n counting the cases of that kind: at most one of them is open. */
static void name_case(const struct pay_turn *turn, struct pay_case *opened)
{
    char number[4] = {0};
    size_t at = 0;

    if (opened->number >= 100) {
        number[at++] = (char)('0' + opened->number / 100 % 10);
    }
    if (opened->number >= 10) {
        number[at++] = (char)('0' + opened->number / 10 % 10);
    }
    number[at] = (char)('0' + opened->number % 10);
    const char *const parts[] = {turn->snap->order.payment_id, ".",
                                 pay_case_kind_name(opened->kind), ".", number};
    join(opened->case_id, parts, sizeof parts / sizeof parts[0]);
}

static int count_cases(const struct pay_turn *turn, enum pay_case_kind kind)
{
    int count = 0;
    for (size_t i = 0; i < turn->snap->case_count; i++) {
        count += turn->snap->cases[i].kind == kind ? 1 : 0;
    }
    return count;
}

bool pay_case_open(struct pay_turn *turn, enum pay_case_kind kind, int attempt_index,
                   int64_t proposed_refund_minor)
{
    struct pay_snapshot *snap = turn->snap;
    const int open_index = pay_case_find_open(turn, kind);
    const char *aggregate_id = attempt_index < 0
                                   ? snap->order.payment_id
                                   : pay_turn_attempt(turn, attempt_index)->attempt_id;

    if (open_index >= 0) {
        add_evidence(turn, &snap->cases[open_index], aggregate_id);
        return false;
    }
    PAY_ASSERT(snap->case_count < snap->case_cap);
    const int index = (int)snap->case_count;
    struct pay_case *open = &snap->cases[index];
    memset(open, 0, sizeof *open);
    open->change = PAY_ROW_INSERTED;
    open->kind = kind;
    open->open = true;
    open->number = count_cases(turn, kind) + 1;
    open->proposed_refund_minor = proposed_refund_minor;
    copy_id(open->aggregate_id, sizeof open->aggregate_id, aggregate_id);
    name_case(turn, open);
    snap->case_count++;
    (void)pay_turn_record(turn, &(struct pay_record){.aggregate = PAY_AGGREGATE_CASE,
                                                     .aggregate_id = open->case_id,
                                                     .attempt_index = attempt_index,
                                                     .case_index = index,
                                                     .to_status = "OPEN",
                                                     .verdict = turn->out->verdict,
                                                     .reason_code = pay_case_kind_name(kind),
                                                     .publishes = true,
                                                     .fact = PAY_FACT_MANUAL_REVIEW_REQUIRED});
    return true;
}
