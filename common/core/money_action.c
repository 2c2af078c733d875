/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/money_action.h"

#include <string.h>

#include "common/core/amounts.h"
#include "common/core/id.h"

#include "common/base/banned.h"

#define ACTION_LIFE_US (INT64_C(86400) * 1000000) /* Unless the PSP's traits say. */
#define RESERVATION_US (INT64_C(3) * INT64_C(86400) * 1000000)
#define RESERVED_LEAST_US INT64_C(1000000) /* A row may not come at the moment it is set. */

static const struct {
    char letter;
    enum pay_aggregate aggregate;
    enum pay_job_kind job, query;
    enum pay_fact_type succeeded, failed, reversed;
} words[PAY_MONEY_KIND_COUNT] = {
    [PAY_MONEY_CAPTURE] = {'C', PAY_AGGREGATE_CAPTURE, PAY_JOB_CAPTURE, PAY_JOB_QUERY_CAPTURE,
                           PAY_FACT_CAPTURE_SUCCEEDED, PAY_FACT_CAPTURE_FAILED,
                           PAY_FACT_CAPTURE_REVERSED},
    [PAY_MONEY_REFUND] = {'R', PAY_AGGREGATE_REFUND, PAY_JOB_REFUND, PAY_JOB_QUERY_REFUND,
                          PAY_FACT_REFUND_SUCCEEDED, PAY_FACT_REFUND_FAILED,
                          PAY_FACT_REFUND_REVERSED},
};

/* ------------------------------------------------------------------------------------- the rows */

struct pay_money_action *pay_money_at(const struct pay_turn *turn, struct pay_money_ref ref)
{
    PAY_ASSERT(ref.index >= 0 && (size_t)ref.index < pay_money_count(turn, ref.kind));
    return ref.kind == PAY_MONEY_CAPTURE ? &turn->snap->captures[ref.index]
                                         : &turn->snap->refunds[ref.index];
}

size_t pay_money_count(const struct pay_turn *turn, enum pay_money_kind kind)
{
    return kind == PAY_MONEY_CAPTURE ? turn->snap->capture_count : turn->snap->refund_count;
}

static int find_in(const struct pay_money_action *actions, size_t count, struct pay_str action_id)
{
    for (size_t i = 0; i < count; i++) {
        if (pay_str_eq_c(action_id, actions[i].action_id)) {
            return (int)i;
        }
    }
    return -1;
}

struct pay_money_ref pay_money_find(const struct pay_turn *turn, struct pay_str action_id)
{
    const struct pay_snapshot *snap = turn->snap;
    const int capture = find_in(snap->captures, snap->capture_count, action_id);

    if (capture >= 0) {
        return (struct pay_money_ref){PAY_MONEY_CAPTURE, capture};
    }
    return (struct pay_money_ref){PAY_MONEY_REFUND,
                                  find_in(snap->refunds, snap->refund_count, action_id)};
}

bool pay_money_has_room(const struct pay_turn *turn, enum pay_money_kind kind)
{
    const struct pay_order *order = &turn->snap->order;
    return kind == PAY_MONEY_CAPTURE ? order->capture_count < PAY_CAPTURES_MAX
                                     : order->refund_count < PAY_REFUNDS_MAX;
}

static struct pay_money_ref append(struct pay_turn *turn, enum pay_money_kind kind)
{
    struct pay_snapshot *snap = turn->snap;
    if (kind == PAY_MONEY_CAPTURE) {
        PAY_ASSERT(snap->capture_count < snap->capture_cap);
        snap->order.capture_count++;
        return (struct pay_money_ref){kind, (int)snap->capture_count++};
    }
    PAY_ASSERT(snap->refund_count < snap->refund_cap);
    snap->order.refund_count++;
    return (struct pay_money_ref){kind, (int)snap->refund_count++};
}

static void copy_or_cut(char *dst, size_t size, struct pay_str text)
{
    if (!pay_str_copy(dst, size, text)) {
        dst[0] = 0; /* Lengths of what we answer for were checked; a PSP's word may be too long. */
    }
}

static int64_t or_default(int64_t said_us, int64_t default_us)
{
    return said_us > 0 ? said_us : default_us;
}

static void fill(struct pay_turn *turn, struct pay_money_action *action,
                 const struct pay_money_new *from)
{
    const struct pay_order *order = &turn->snap->order;
    const struct pay_psp_traits *traits = pay_turn_traits(turn, from->attempt_index);
    const bool is_capture = from->kind == PAY_MONEY_CAPTURE;

    memset(action, 0, sizeof *action); /* Padding too: deciding again gives the same bytes. */
    action->change = PAY_ROW_INSERTED;
    action->number = is_capture ? order->capture_count : order->refund_count;
    action->attempt_index = from->attempt_index;
    action->amount = from->amount;
    action->is_final = from->is_final;
    action->status = PAY_MONEY_CREATED;
    action->result_certainty = PAY_EVIDENCE_LOCAL;
    action->origin = from->origin;
    action->created_at_us = turn->in->now_us;
    action->changed_at_us = turn->in->now_us;
    action->give_up_at_us =
        pay_time_after(turn->in->now_us, or_default(traits->action_life_us, ACTION_LIFE_US));
    pay_id_action(action->action_id, order->payment_id, words[from->kind].letter, action->number);
    pay_id_shorten(action->idempotency_key, sizeof action->idempotency_key, from->key);
    copy_or_cut(action->reason_code, sizeof action->reason_code, from->reason_code);
    copy_or_cut(action->provider_reference, sizeof action->provider_reference,
                from->provider_reference);
}

/* ------------------------------------------------------------------------------------- history */

static int record(struct pay_turn *turn, struct pay_money_ref ref, enum pay_verdict verdict,
                  const char *from, const char *reason_code, const enum pay_fact_type *fact)
{
    const struct pay_money_action *action = pay_money_at(turn, ref);

    return pay_turn_record(
        turn, &(struct pay_record){.aggregate = words[ref.kind].aggregate,
                                   .aggregate_id = action->action_id,
                                   .attempt_index = action->attempt_index,
                                   .case_index = -1,
                                   .from_status = from,
                                   .to_status = pay_money_status_name(action->status),
                                   .verdict = verdict,
                                   .reason_code = reason_code,
                                   .amount = &action->amount,
                                   .reference = pay_str_of(action->provider_reference),
                                   .publishes = fact != NULL,
                                   .fact = fact == NULL ? PAY_FACT_UNRECOGNIZED : *fact});
}

void pay_money_record(struct pay_turn *turn, struct pay_money_ref ref)
{
    (void)record(turn, ref, turn->out->verdict,
                 pay_money_status_name(pay_money_at(turn, ref)->status), turn->out->reason_code,
                 NULL);
}

struct pay_money_ref pay_money_begin(struct pay_turn *turn, const struct pay_money_new *from)
{
    const struct pay_psp_traits *traits = pay_turn_traits(turn, from->attempt_index);
    const struct pay_money_ref ref = append(turn, from->kind);
    struct pay_money_action *action = pay_money_at(turn, ref);

    pay_row_touch(&turn->snap->order.change);
    fill(turn, action, from);
    (void)record(turn, ref, PAY_VERDICT_APPLY, NULL, "RESERVED", NULL);
    pay_deadline_set(
        turn, PAY_DEADLINE_RESERVATION, action->action_id,
        pay_time_after(turn->in->now_us, or_default(traits->reservation_us, RESERVATION_US)));
    return ref;
}

/* --------------------------------------------------------------------------------------- gates */

static bool is_gate_of(const struct pay_gate *gate, const struct pay_money_action *action)
{
    return strcmp(gate->action_id, action->action_id) == 0;
}

struct pay_gate *pay_money_gate(const struct pay_turn *turn, struct pay_money_ref ref)
{
    const struct pay_money_action *action = pay_money_at(turn, ref);
    struct pay_gate *latest = NULL;

    for (size_t i = 0; i < turn->snap->gate_count; i++) {
        struct pay_gate *gate = &turn->snap->gates[i];
        const bool is_later = latest == NULL || strlen(gate->job_id) > strlen(latest->job_id) ||
                              (strlen(gate->job_id) == strlen(latest->job_id) &&
                               strcmp(gate->job_id, latest->job_id) > 0);
        if (is_gate_of(gate, action) && is_later) { /* .REFUND, .REFUND.2 ... .REFUND.10 */
            latest = gate;
        }
    }
    return latest;
}

struct pay_gate_sum pay_money_gates(const struct pay_turn *turn, struct pay_money_ref ref)
{
    return pay_gate_sum(turn, pay_money_at(turn, ref)->action_id, words[ref.kind].job);
}

bool pay_money_was_sent(const struct pay_turn *turn, struct pay_money_ref ref)
{
    return pay_money_gates(turn, ref).sent > 0;
}

void pay_money_close_gates(struct pay_turn *turn, struct pay_money_ref ref)
{
    const struct pay_money_action *action = pay_money_at(turn, ref);
    for (size_t i = 0; i < turn->snap->gate_count; i++) {
        if (is_gate_of(&turn->snap->gates[i], action)) {
            pay_gate_close(turn, &turn->snap->gates[i]);
        }
    }
}

/* ---------------------------------------------------------------------------------------- jobs */

void pay_money_send(struct pay_turn *turn, struct pay_money_ref ref)
{
    struct pay_money_action *action = pay_money_at(turn, ref);
    const struct pay_gate_sum gates = pay_money_gates(turn, ref);
    struct pay_job_effect *job =
        pay_job_gated(turn, &(struct pay_gated_job){.attempt_index = action->attempt_index,
                                                    .action_id = action->action_id,
                                                    .kind = words[ref.kind].job,
                                                    .number = gates.made + 1,
                                                    .end_us = action->give_up_at_us});
    job->action_index = ref.index;
    job->try_no = gates.open + gates.sent + 1; /* What was closed unsent was no try. */
    job->reason_code = action->reason_code[0] == 0 ? NULL : action->reason_code;
    if (action->retry_at_us != 0) {
        action->retry_at_us = 0;
        pay_row_touch(&action->change);
    }
}

bool pay_money_is_asked(const struct pay_turn *turn, struct pay_money_ref ref)
{
    const struct pay_psp_traits *traits =
        pay_turn_traits(turn, pay_money_at(turn, ref)->attempt_index);
    return ref.kind == PAY_MONEY_CAPTURE ? traits->queries_captures : traits->queries_refunds;
}

void pay_money_query(struct pay_turn *turn, struct pay_money_ref ref)
{
    const struct pay_money_action *action = pay_money_at(turn, ref);
    const struct pay_gate *gate = pay_money_gate(turn, ref);

    if (!pay_money_is_asked(turn, ref)) {
        return; /* Callbacks and reports bring it; a person looks when the reservation is overdue.
                 */
    }
    struct pay_job_effect *job =
        pay_job_ask(turn, action->attempt_index, words[ref.kind].query, action->action_id,
                    gate != NULL && gate->closed_at_us == 0 ? gate->job_id : NULL);
    if (job != NULL) {
        job->action_index = ref.index;
    }
    if (!pay_money_is_open(action->status)) {
        pay_job_until_answered(turn, action->attempt_index, action->action_id);
    }
}

/* ----------------------------------------------------------------------------------- deadlines */

static const enum pay_deadline_kind deadlines[] = {PAY_DEADLINE_SEND, PAY_DEADLINE_ANSWER,
                                                   PAY_DEADLINE_QUERY, PAY_DEADLINE_MANUAL};

bool pay_money_waits(enum pay_money_status status, enum pay_deadline_kind kind)
{
    switch (kind) {
    case PAY_DEADLINE_SEND:
        return status == PAY_MONEY_CREATED;
    case PAY_DEADLINE_ANSWER:
        return status == PAY_MONEY_PROCESSING;
    case PAY_DEADLINE_QUERY:
    case PAY_DEADLINE_MANUAL:
        return status == PAY_MONEY_UNKNOWN;
    case PAY_DEADLINE_RESERVATION:
        return pay_money_is_open(status);
    default:
        return false;
    }
}

static int64_t due_after(const struct pay_psp_traits *traits, enum pay_deadline_kind kind)
{
    int64_t after_us = traits->query_first_us; /* SEND: a pause before it is sent again. */
    if (kind == PAY_DEADLINE_ANSWER) {
        after_us = traits->answer_us;
    } else if (kind == PAY_DEADLINE_MANUAL) {
        after_us = traits->person_after_us;
    }
    return pay_time_later(after_us, RESERVED_LEAST_US);
}

static void reschedule(struct pay_turn *turn, const struct pay_money_action *action)
{
    const struct pay_psp_traits *traits = pay_turn_traits(turn, action->attempt_index);

    for (size_t i = 0; i < sizeof deadlines / sizeof deadlines[0]; i++) {
        if (pay_money_waits(action->status, deadlines[i])) {
            pay_deadline_set(turn, deadlines[i], action->action_id,
                             pay_time_after(turn->in->now_us, due_after(traits, deadlines[i])));
        } else {
            pay_deadline_clear(turn, deadlines[i], action->action_id);
        }
    }
    if (!pay_money_is_open(action->status)) {
        pay_deadline_clear(turn, PAY_DEADLINE_RESERVATION, action->action_id);
    }
}

void pay_money_repeat_at(struct pay_turn *turn, struct pay_money_ref ref, int64_t at_us)
{
    struct pay_money_action *action = pay_money_at(turn, ref);

    if (at_us >= action->give_up_at_us) {
        return; /* Not any more: silence is asked about, and the reservation becomes a case. */
    }
    action->retry_at_us = at_us;
    pay_row_touch(&action->change);
    pay_deadline_set(turn, PAY_DEADLINE_SEND, action->action_id, at_us);
}

/* ------------------------------------------------------------------------------------- amounts */

static bool move_capture(struct pay_amounts *a, const struct pay_money_action *action,
                         enum pay_money_status next, int64_t most)
{
    const int64_t amount = action->amount.amount_minor;
    const bool was_open = pay_money_is_open(action->status);

    if (was_open && !pay_money_is_open(next)) {
        return next == PAY_MONEY_SUCCEEDED ? pay_amounts_settle_capture(a, amount)
                                           : pay_amounts_release_capture(a, amount);
    }
    if (next == PAY_MONEY_SUCCEEDED) {
        return action->status == PAY_MONEY_REVERSED ? pay_amounts_reinstate(a, amount)
                                                    : pay_amounts_take_capture(a, amount, most);
    }
    /* Captured stays, so that what was refunded of it stays recordable. */
    return action->status != PAY_MONEY_SUCCEEDED || pay_amounts_withdraw(a, amount);
}

static bool move_refund(struct pay_amounts *a, const struct pay_money_action *action,
                        enum pay_money_status next)
{
    const int64_t amount = action->amount.amount_minor;
    const bool was_open = pay_money_is_open(action->status);

    if (was_open && !pay_money_is_open(next)) {
        return next == PAY_MONEY_SUCCEEDED ? pay_amounts_settle_refund(a, amount)
                                           : pay_amounts_release_refund(a, amount);
    }
    if (next == PAY_MONEY_SUCCEEDED) {
        return pay_amounts_take_refund(a, amount);
    }
    return action->status != PAY_MONEY_SUCCEEDED || pay_amounts_return_refund(a, amount);
}

static void move_amounts(struct pay_turn *turn, struct pay_money_ref ref,
                         enum pay_money_status next)
{
    const struct pay_money_action *action = pay_money_at(turn, ref);
    struct pay_attempt *attempt = pay_turn_attempt(turn, action->attempt_index);
    const struct pay_amounts before = attempt->amounts;
    const bool holds = ref.kind == PAY_MONEY_CAPTURE ? move_capture(&attempt->amounts, action, next,
                                                                    attempt->amount.amount_minor)
                                                     : move_refund(&attempt->amounts, action, next);

    PAY_INVARIANT(holds);
    attempt->amounts_changed |= memcmp(&before, &attempt->amounts, sizeof before) != 0;
}

/* -------------------------------------------------------------------------------------- moving */

/* @return the fact that a new status publishes; NULL: none. */
static const enum pay_fact_type *fact_of(enum pay_money_kind kind, enum pay_money_status next)
{
    switch (next) {
    case PAY_MONEY_SUCCEEDED:
        return &words[kind].succeeded;
    case PAY_MONEY_FAILED:
    case PAY_MONEY_CANCELED:
        return &words[kind].failed;
    case PAY_MONEY_REVERSED:
        return &words[kind].reversed;
    default:
        return NULL;
    }
}

void pay_money_move(struct pay_turn *turn, struct pay_money_ref ref, enum pay_money_status next,
                    enum pay_evidence certainty, const char *reason_code)
{
    struct pay_money_action *action = pay_money_at(turn, ref);
    const enum pay_money_status before = action->status;

    move_amounts(turn, ref, next);
    action->status = next;
    action->changed_at_us = turn->in->now_us;
    action->result_certainty = certainty;
    action->unknown_since_us = next == PAY_MONEY_UNKNOWN ? turn->in->now_us : 0;
    action->not_found_count = 0;
    action->not_found_from_us = 0;
    action->retry_at_us = 0;
    if (turn->in->kind == PAY_INPUT_EVENT) {
        pay_id_cause(action->last_accepted_event_id, turn->in->cause);
    }
    if (next == PAY_MONEY_SUCCEEDED) {
        action->failure_class = PAY_FAILURE_NONE;
        action->failure_code[0] = 0;
    }
    pay_row_touch(&action->change);
    if (!pay_money_is_open(next)) { /* Nothing of what is over may still be sent or repeated. */
        pay_money_close_gates(turn, ref);
    }
    reschedule(turn, action);
    const int fact = record(turn, ref, PAY_VERDICT_APPLY, pay_money_status_name(before),
                            reason_code, fact_of(ref.kind, next));
    if (fact >= 0 && action->failure_class != PAY_FAILURE_NONE) {
        turn->out->effects[fact].as.fact.failure_class = action->failure_class;
        turn->out->effects[fact].as.fact.failure_code = pay_str_of(action->failure_code);
    }
}

void pay_money_withdraw(struct pay_turn *turn, struct pay_money_ref ref, const char *reason_code)
{
    pay_money_move(turn, ref, PAY_MONEY_CANCELED, PAY_EVIDENCE_LOCAL, reason_code);
}

struct pay_money_ref pay_money_open_capture(const struct pay_turn *turn, int attempt_index)
{
    struct pay_money_ref ref = {PAY_MONEY_CAPTURE, 0};
    for (; (size_t)ref.index < turn->snap->capture_count; ref.index++) {
        const struct pay_money_action *action = pay_money_at(turn, ref);
        if (action->attempt_index == attempt_index && pay_money_is_open(action->status)) {
            return ref;
        }
    }
    return (struct pay_money_ref){PAY_MONEY_CAPTURE, -1};
}

void pay_money_withdraw_captures(struct pay_turn *turn, int attempt_index)
{
    struct pay_money_ref ref = {PAY_MONEY_CAPTURE, 0};
    for (; (size_t)ref.index < turn->snap->capture_count; ref.index++) {
        const struct pay_money_action *action = pay_money_at(turn, ref);
        if (action->attempt_index != attempt_index || !pay_money_is_open(action->status)) {
            continue;
        }
        pay_money_close_gates(turn, ref);
        if (action->status == PAY_MONEY_CREATED && !pay_money_was_sent(turn, ref)) {
            pay_money_withdraw(turn, ref, "ATTEMPT_WITHDRAWN");
        }
    }
}
