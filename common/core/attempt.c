/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/attempt.h"

#include <string.h>

#include "common/core/gate.h"
#include "common/core/id.h"
#include "common/core/order.h"

#include "common/base/banned.h"

#define ATTEMPT_DEADLINES 6 /* SEND to AUTHORIZATION: the kinds that wait for an attempt. */

/* Which rows wait in which state. ACTION also stays in every open state of an attempt that is being
 * withdrawn: there it repeats the CANCEL. */
static const bool waits[PAY_ATTEMPT_STATUS_COUNT][ATTEMPT_DEADLINES] = {
    [PAY_ATTEMPT_CREATED] = {[PAY_DEADLINE_SEND] = true},
    [PAY_ATTEMPT_SUBMITTED] = {[PAY_DEADLINE_SEND] = true, [PAY_DEADLINE_ANSWER] = true},
    [PAY_ATTEMPT_PROCESSING] = {[PAY_DEADLINE_ANSWER] = true},
    [PAY_ATTEMPT_REQUIRES_ACTION] = {[PAY_DEADLINE_ACTION] = true},
    [PAY_ATTEMPT_AUTHORIZED] = {[PAY_DEADLINE_AUTHORIZATION] = true},
    [PAY_ATTEMPT_UNKNOWN] =
        {[PAY_DEADLINE_SEND] = true, [PAY_DEADLINE_QUERY] = true, [PAY_DEADLINE_MANUAL] = true},
};

bool pay_attempt_waits(enum pay_attempt_status status, enum pay_deadline_kind kind)
{
    return (size_t)status < PAY_ATTEMPT_STATUS_COUNT && (size_t)kind < ATTEMPT_DEADLINES &&
           waits[status][kind];
}

bool pay_attempt_has_reference(const struct pay_turn *turn, int attempt_index)
{
    for (size_t i = 0; i < turn->snap->reference_count; i++) {
        if (turn->snap->references[i].attempt_index == attempt_index) {
            return true;
        }
    }
    return false;
}

bool pay_attempt_is_known(const struct pay_turn *turn, int attempt_index)
{
    return pay_turn_attempt(turn, attempt_index)->known_at_us != 0;
}

void pay_attempt_prove(struct pay_turn *turn, int attempt_index)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    if (attempt->known_at_us == 0) {
        attempt->known_at_us = turn->in->now_us;
        pay_row_touch(&attempt->change);
    }
}

bool pay_attempt_page_open(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    return attempt->action_no > 0 && turn->in->now_us < attempt->action_expires_at_us;
}

/* An open CONFIRM gate keeps the SEND row: a CONFIRM that was not sent is sent again by it. */
static bool has_open_confirm(const struct pay_turn *turn, const struct pay_attempt *attempt)
{
    for (size_t i = 0; i < turn->snap->gate_count; i++) {
        const struct pay_gate *gate = &turn->snap->gates[i];
        if (gate->kind == PAY_JOB_CONFIRM && gate->closed_at_us == 0 && gate->sending_at_us == 0 &&
            strcmp(gate->action_id, attempt->attempt_id) == 0) {
            return true;
        }
    }
    return false;
}

/* At its end; with captures first a send's time before it, so that the merchant's policy can still
 * capture. */
static int64_t authorization_due(const struct pay_turn *turn, const struct pay_attempt *attempt,
                                 const struct pay_psp_traits *traits)
{
    const int64_t now_us = turn->in->now_us;
    const int64_t end_us = attempt->authorization_expires_at_us;
    const int64_t lead_us = turn->snap->keeps_actions
                                ? pay_time_after(traits->send_window_us, traits->call_budget_us)
                                : 0;

    if (end_us <= now_us) {
        return pay_time_after(now_us, traits->person_after_us);
    }
    return end_us - lead_us > now_us ? end_us - lead_us : end_us;
}

static int64_t due_at(const struct pay_turn *turn, int attempt_index, enum pay_deadline_kind kind)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const struct pay_psp_traits *traits = pay_turn_traits(turn, attempt_index);
    const int64_t now_us = turn->in->now_us;

    switch (kind) {
    case PAY_DEADLINE_ANSWER:
        return pay_time_after(now_us, traits->answer_us);
    case PAY_DEADLINE_QUERY:
        return pay_time_after(now_us, traits->query_first_us);
    case PAY_DEADLINE_MANUAL:
        return pay_time_after(now_us, traits->person_after_us);
    case PAY_DEADLINE_ACTION:
        if (attempt->cancel_cause != PAY_CANCEL_CAUSE_NONE) {
            return pay_time_after(now_us, traits->cancel_retry_us);
        }
        /* Always a new due_at, at once if the action's end has passed (note 3). */
        return pay_time_later(attempt->action_expires_at_us, now_us);
    case PAY_DEADLINE_AUTHORIZATION:
        return authorization_due(turn, attempt, traits);
    default:
        return now_us;
    }
}

/* What the new state waits for is set anew; SEND is set with its job and only ever cleared here. */
static void reschedule(struct pay_turn *turn, int attempt_index, enum pay_attempt_status before)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const bool is_final = pay_attempt_is_final(attempt->status);
    const bool is_canceling = attempt->cancel_cause != PAY_CANCEL_CAUSE_NONE && !is_final;

    for (int kind = 0; kind < ATTEMPT_DEADLINES; kind++) {
        const bool wanted = waits[attempt->status][kind];
        const bool kept =
            (kind == PAY_DEADLINE_ACTION && is_canceling) ||
            (kind == PAY_DEADLINE_SEND && !is_final && has_open_confirm(turn, attempt));
        if (wanted && kind != PAY_DEADLINE_SEND) {
            pay_deadline_set(turn, (enum pay_deadline_kind)kind, attempt->attempt_id,
                             due_at(turn, attempt_index, (enum pay_deadline_kind)kind));
        } else if (!wanted && !kept &&
                   (is_final || waits[before][kind] || kind == PAY_DEADLINE_SEND)) {
            pay_deadline_clear(turn, (enum pay_deadline_kind)kind, attempt->attempt_id);
        }
    }
}

/* The money job whose stored request a query may repeat: only an open gate lets a replay pass. */
static const struct pay_gate *replayable(const struct pay_turn *turn, const char *attempt_id)
{
    for (size_t i = 0; i < turn->snap->gate_count; i++) {
        const struct pay_gate *gate = &turn->snap->gates[i];
        if (gate->kind == PAY_JOB_SUBMIT && gate->closed_at_us == 0 &&
            strcmp(gate->action_id, attempt_id) == 0) {
            return gate;
        }
    }
    return NULL;
}

bool pay_attempt_keeps_question(enum pay_attempt_status status)
{
    return status == PAY_ATTEMPT_AUTHORIZED || pay_attempt_is_final(status);
}

void pay_attempt_query(struct pay_turn *turn, int attempt_index)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const struct pay_gate *gate = replayable(turn, attempt->attempt_id);

    (void)pay_job_ask(turn, attempt_index, PAY_JOB_QUERY, attempt->attempt_id,
                      gate != NULL ? gate->job_id : NULL);
    if (pay_attempt_keeps_question(attempt->status)) {
        pay_job_until_answered(turn, attempt_index, attempt->attempt_id);
    }
}

static bool other_is_live(const struct pay_turn *turn, int attempt_index)
{
    for (size_t i = 0; i < turn->snap->attempt_count; i++) {
        if ((int)i != attempt_index && turn->snap->attempts[i].live) {
            return true;
        }
    }
    return false;
}

/* live: true from creation to FAILED or CANCELED; a success keeps it, and late money takes it again
 * unless another attempt has it. */
static bool live_after(const struct pay_turn *turn, int attempt_index, enum pay_attempt_status next)
{
    if (next == PAY_ATTEMPT_FAILED || next == PAY_ATTEMPT_CANCELED) {
        return false;
    }
    if (next == PAY_ATTEMPT_SUCCEEDED) {
        return !other_is_live(turn, attempt_index);
    }
    return pay_turn_attempt(turn, attempt_index)->live;
}

static void set_status(struct pay_turn *turn, int attempt_index, enum pay_attempt_status next,
                       enum pay_evidence certainty)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const int64_t now_us = turn->in->now_us;

    attempt->live = live_after(turn, attempt_index, next);
    attempt->status = next;
    attempt->result_certainty = certainty;
    attempt->unknown_since_us = next == PAY_ATTEMPT_UNKNOWN ? now_us : 0;
    if (next == PAY_ATTEMPT_SUBMITTED) {
        attempt->submitted_at_us = now_us;
    }
    attempt->not_found_count = 0;
    attempt->not_found_from_us = 0;
    if (turn->in->kind == PAY_INPUT_EVENT) {
        pay_id_cause(attempt->last_accepted_event_id, turn->in->cause);
    }
    pay_row_touch(&attempt->change);
}

void pay_attempt_move(struct pay_turn *turn, int attempt_index, enum pay_attempt_status next,
                      enum pay_evidence certainty, const char *reason_code)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const enum pay_attempt_status before = attempt->status;
    const bool was_live = attempt->live;
    const bool ends_unpaid = next == PAY_ATTEMPT_FAILED || next == PAY_ATTEMPT_CANCELED;

    set_status(turn, attempt_index, next, certainty);
    if (pay_attempt_is_final(next)) { /* Nothing of what is over may still be sent or repeated. */
        pay_gate_close_all(turn, attempt_index);
    }
    reschedule(turn, attempt_index, before);
    (void)pay_turn_record(turn, &(struct pay_record){.aggregate = PAY_AGGREGATE_ATTEMPT,
                                                     .aggregate_id = attempt->attempt_id,
                                                     .attempt_index = attempt_index,
                                                     .case_index = -1,
                                                     .from_status = pay_attempt_status_name(before),
                                                     .to_status = pay_attempt_status_name(next),
                                                     .verdict = PAY_VERDICT_APPLY,
                                                     .reason_code = reason_code,
                                                     .publishes = ends_unpaid,
                                                     .fact = PAY_FACT_ATTEMPT_FAILED});
    pay_order_follow(turn, attempt_index, was_live);
}

static void copy_name(char dst[PAY_NAME_SIZE], const char *src)
{
    memcpy(dst, src, PAY_NAME_SIZE);
}

static void fill_new(struct pay_turn *turn, struct pay_attempt *attempt, int route_no)
{
    const struct pay_order *order = &turn->snap->order;
    const struct pay_route *route = &turn->snap->routes[route_no];
    const int64_t now_us = turn->in->now_us;

    memset(attempt, 0, sizeof *attempt); /* Padding too: deciding again gives the same bytes. */
    attempt->change = PAY_ROW_INSERTED;
    attempt->amounts_changed = true;
    attempt->attempt_no = order->attempt_count;
    attempt->route_no = route_no;
    attempt->amount = order->amount;
    attempt->status = PAY_ATTEMPT_CREATED;
    attempt->live = true;
    attempt->result_certainty = PAY_EVIDENCE_LOCAL;
    attempt->created_at_us = now_us;
    pay_id_action(attempt->attempt_id, order->payment_id, 'A', order->attempt_count);
    copy_name(attempt->psp, route->psp);
    copy_name(attempt->psp_account, route->psp_account);
    copy_name(attempt->method, route->method);
    /* Every create carries the PSP's own absolute expiry, never later than the attempt's. */
    attempt->psp_expires_at_us = order->expires_at_us;
    if (route->traits.action_lifetime_us > 0) {
        attempt->psp_expires_at_us = pay_time_earlier(
            order->expires_at_us, pay_time_after(now_us, route->traits.action_lifetime_us));
    }
}

int pay_attempt_start(struct pay_turn *turn, int route_no)
{
    struct pay_snapshot *snap = turn->snap;

    PAY_ASSERT(snap->attempt_count < snap->attempt_cap);
    PAY_ASSERT(route_no >= 0 && (size_t)route_no < snap->route_count);
    const int index = (int)snap->attempt_count++;
    struct pay_attempt *attempt = &snap->attempts[index];

    snap->order.attempt_count++;
    pay_row_touch(&snap->order.change);
    fill_new(turn, attempt, route_no);
    (void)pay_turn_record(
        turn, &(struct pay_record){.aggregate = PAY_AGGREGATE_ATTEMPT,
                                   .aggregate_id = attempt->attempt_id,
                                   .attempt_index = index,
                                   .case_index = -1,
                                   .to_status = pay_attempt_status_name(attempt->status),
                                   .verdict = PAY_VERDICT_APPLY,
                                   .reason_code = "ATTEMPT_STARTED",
                                   .publishes = true,
                                   .fact = PAY_FACT_ATTEMPT_STARTED});
    pay_job_money(turn, index, PAY_JOB_SUBMIT, 1);
    pay_order_follow(turn, index, true);
    return index;
}
