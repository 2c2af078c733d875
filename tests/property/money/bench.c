/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/property/money/bench.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/core/id.h"

static_assert(_Alignof(struct mx_world) == 1, "a world is bytes");

#define SEQUENCE 7
#define GATES_MAX ((MX_CAPTURES + MX_REFUNDS + 2) * (MX_JOBS + 2) + 4)
#define CASES_MAX 14
#define REPEAT_EVERY 8

static const struct pay_psp_traits patient = {
    .can_cancel = true,
    .not_founds_needed = 2,
    .send_window_us = 10 * MX_SECOND,
    .answer_us = 5 * MX_SECOND,
    .call_budget_us = MX_SECOND,
    .longest_processing_us = MX_SECOND,
    .visibility_grace_us = MX_SECOND,
    .query_first_us = 5 * MX_SECOND,
    .person_after_us = 50 * MX_SECOND,
    .action_lifetime_us = 50 * MX_SECOND,
    .cancel_retry_us = 5 * MX_SECOND,
    .captures_part = true,
    .captures_again = true,
    .action_life_us = 1000 * MX_SECOND,
    .action_retry_us = 5 * MX_SECOND,
    .reservation_us = 500 * MX_SECOND,
};

struct rows {
    struct pay_snapshot snap;
    struct pay_route routes[1];
    struct pay_attempt attempts[MX_ATTEMPTS + 1];
    struct pay_gate gates[GATES_MAX];
    struct pay_bound_reference references[24];
    struct pay_case cases[CASES_MAX];
    struct pay_money_action captures[MX_CAPTURES + 1], refunds[MX_REFUNDS + 1];
    struct pay_dispute disputes[2];
    struct pay_approval_request requests[2];
    struct pay_approval approvals[4];
};

static struct {
    const struct mx_config *config;
    struct pay_psp_traits traits;
    struct rows rows, before, first;
    struct pay_decision decision;
    uint64_t calls;
    char ids[4][8][PAY_ACTION_ID_SIZE];
    char names[MX_ATTEMPTS][3][MX_OBJECTS][16];
} bench;

static const char letters[] = "ACRD";

const char *mx_id(char letter, int number)
{
    const char *at = strchr(letters, letter);
    PAY_ASSERT(at != NULL && number >= 1 && number < 8);
    return bench.ids[at - letters][number];
}

const char *mx_reference(int attempt, int kind, int object)
{
    return bench.names[attempt][kind][object];
}

const uint8_t *mx_digest(void)
{
    static const uint8_t digest[32] = {3, 1, 4};
    return digest;
}

void mx_bench_open(const struct mx_config *config)
{
    static const char *const prefixes[] = {"cp", "rf", "dp"};

    memset(&bench, 0, sizeof bench);
    bench.config = config;
    bench.traits = patient;
    bench.traits.queries_captures = bench.traits.queries_refunds = config->queries != 0;
    bench.traits.finds_captures_by_no = bench.traits.finds_refunds_by_no = config->by_number != 0;
    for (size_t l = 0; l < sizeof letters - 1; l++) {
        for (int n = 1; n < 8; n++) {
            pay_id_action(bench.ids[l][n], MX_PAYMENT, letters[l], n);
        }
    }
    for (int a = 0; a < MX_ATTEMPTS; a++) {
        for (int k = 0; k < 3; k++) {
            for (int o = 0; o < MX_OBJECTS; o++) {
                (void)snprintf(bench.names[a][k][o], sizeof bench.names[a][k][o], "%s_%d%d",
                               prefixes[k], a, o);
            }
        }
    }
}

static void copy(char *dst, size_t size, const char *text)
{
    const size_t len = strlen(text);
    PAY_ASSERT(len < size);
    memcpy(dst, text, len + 1);
}

/* ------------------------------------------------------------------------------ world → snapshot
 */

static void load_order(struct pay_order *order, const struct mx_world *world)
{
    order->exists = true;
    copy(order->payment_id, sizeof order->payment_id, MX_PAYMENT);
    copy(order->merchant_id, sizeof order->merchant_id, "merchant");
    copy(order->merchant_order_no, sizeof order->merchant_order_no, "order-1");
    order->amount = (struct pay_money){bench.config->held, "EUR"};
    order->capture_mode = bench.config->is_manual != 0 ? PAY_CAPTURE_MANUAL : PAY_CAPTURE_AUTOMATIC;
    order->status = (enum pay_order_status)world->order;
    order->intent_route_no = -1;
    order->expires_at_us = INT64_MAX;
    order->failover_until_us = MX_NOW - 1;
    order->version = MX_VERSION;
    order->event_sequence = SEQUENCE;
    order->attempt_count = bench.config->attempts;
    order->paid_attempt_no = order->status == PAY_ORDER_SUCCEEDED ? 1 : 0;
}

static void load_attempt(struct pay_snapshot *snap, const struct mx_world *world, int index)
{
    const struct mx_attempt *from = &world->attempts[index];
    struct pay_attempt *to = &snap->attempts[snap->attempt_count++];
    struct pay_bound_reference *bound = &snap->references[snap->reference_count++];

    copy(to->attempt_id, sizeof to->attempt_id, mx_id('A', index + 1));
    to->attempt_no = index + 1;
    copy(to->psp, sizeof to->psp, "psp");
    copy(to->psp_account, sizeof to->psp_account, "account");
    copy(to->method, sizeof to->method, "card");
    to->amount = snap->order.amount;
    to->status = (enum pay_attempt_status)from->status;
    to->live = from->live != 0;
    to->result_certainty = PAY_EVIDENCE_WEBHOOK;
    to->version = MX_VERSION;
    to->known_at_us = 1;
    to->cancel_no = from->cancels != 0 ? 1 : 0;
    to->cancel_cause = from->cancels != 0 ? PAY_CANCEL_CAUSE_MERCHANT : PAY_CANCEL_CAUSE_NONE;
    to->amounts =
        (struct pay_amounts){from->authorized,      from->capture_reserved, from->captured,
                             from->refund_reserved, from->refunded,         from->withdrawn};
    to->refund_sum_minor = from->sum;
    bound->attempt_index = index;
    bound->kind = PAY_REF_INTENT;
    bound->bound_at_us = 1;
    (void)snprintf(bound->reference, sizeof bound->reference, "pi_%d", index);
}

static void load_gates(struct pay_snapshot *snap, const struct mx_action *from, const char *id,
                       enum pay_job_kind kind)
{
    for (int n = 0; n < MX_JOBS; n++) {
        if ((from->jobs[n] & MX_GATE_EXISTS) == 0) {
            continue;
        }
        struct pay_gate *gate = &snap->gates[snap->gate_count++];
        const int64_t at_us = MX_NOW + (from->is_old != 0 ? -50 : 5) * MX_SECOND;
        const bool was_sent = (from->jobs[n] & (MX_GATE_SENDING | MX_GATE_AGAIN)) != 0;
        pay_id_job(gate->job_id, id, kind, n + 1);
        copy(gate->action_id, sizeof gate->action_id, id);
        gate->kind = kind;
        gate->not_after_us = at_us;
        gate->sending_at_us = (from->jobs[n] & MX_GATE_SENDING) != 0 ? 1 : 0;
        gate->sends = was_sent ? 1 : 0;
        gate->last_send_at_us = was_sent ? at_us : 0;
        gate->closed_at_us = (from->jobs[n] & MX_GATE_CLOSED) != 0 ? 1 : 0;
    }
}

static void load_action(struct pay_snapshot *snap, const struct mx_action *from, int index,
                        enum pay_money_kind kind)
{
    const bool is_capture = kind == PAY_MONEY_CAPTURE;
    struct pay_money_action *to =
        is_capture ? &snap->captures[snap->capture_count++] : &snap->refunds[snap->refund_count++];

    copy(to->action_id, sizeof to->action_id, mx_id(is_capture ? 'C' : 'R', index + 1));
    to->number = index + 1;
    to->attempt_index = from->attempt;
    to->amount = (struct pay_money){from->amount, "EUR"};
    to->is_final = from->is_final != 0;
    to->status = (enum pay_money_status)from->status;
    to->origin = (enum pay_origin)from->origin;
    to->result_certainty = PAY_EVIDENCE_WEBHOOK;
    to->version = MX_VERSION;
    to->not_found_count = from->not_founds;
    to->not_found_from_us = from->not_founds > 0 ? MX_ASKED_LATE : 0;
    to->unknown_since_us = to->status == PAY_MONEY_UNKNOWN ? 1 : 0;
    to->retry_at_us = from->retry != 0 ? MX_NOW - 1 : 0;
    to->give_up_at_us = MX_NOW + 2000 * MX_SECOND;
    to->created_at_us = MX_NOW - MX_SECOND;
    to->changed_at_us = (MX_ASKED_EARLY + MX_ASKED_LATE) / 2;
    if (from->is_named != 0) {
        copy(to->provider_reference, sizeof to->provider_reference,
             mx_reference(from->attempt, (int)kind, from->object));
    }
    load_gates(snap, from, to->action_id, is_capture ? PAY_JOB_CAPTURE : PAY_JOB_REFUND);
}

static const struct {
    enum pay_case_kind kind;
    uint8_t bit;
} case_bits[] = {
    {PAY_CASE_OVER_REFUND, MX_CASE_OVER_REFUND | MX_CASE_OVER_REFUND_2},
    {PAY_CASE_CONTRADICTION, MX_CASE_CONTRADICTION},
    {PAY_CASE_AMOUNT_MISMATCH, MX_CASE_AMOUNT},
    {PAY_CASE_CAPTURE_REVERSED, MX_CASE_REVERSED},
    {PAY_CASE_UNEXPECTED_REFERENCE, MX_CASE_REFERENCE},
    {PAY_CASE_DUPLICATE_CHARGE, MX_CASE_DUPLICATE},
    {PAY_CASE_UNKNOWN_TOO_LONG, MX_CASE_OTHER},
    {PAY_CASE_RESERVATION_OVERDUE, MX_CASE_OTHER},
    {PAY_CASE_CANNOT_CLOSE, MX_CASE_OTHER},
};

/* Only of an over-refund the world remembers whose it is. */
static const char *case_of(enum pay_case_kind kind, uint8_t cases)
{
    const uint8_t both = MX_CASE_OVER_REFUND | MX_CASE_OVER_REFUND_2;
    if (kind != PAY_CASE_OVER_REFUND || (cases & MX_CASE_OVER_REFUND_2) == 0) {
        return mx_id('A', 1);
    }
    return (cases & both) == both ? MX_PAYMENT : mx_id('A', 2);
}

static uint8_t case_bit(const struct pay_case *from, uint8_t bits)
{
    if (from->kind != PAY_CASE_OVER_REFUND || strcmp(from->aggregate_id, MX_PAYMENT) == 0) {
        return bits;
    }
    return strcmp(from->aggregate_id, mx_id('A', 1)) == 0 ? MX_CASE_OVER_REFUND
                                                          : MX_CASE_OVER_REFUND_2;
}

static void load_cases(struct pay_snapshot *snap, uint8_t cases)
{
    for (size_t i = 0; i < sizeof case_bits / sizeof case_bits[0]; i++) {
        if ((cases & case_bits[i].bit) != 0) {
            struct pay_case *open = &snap->cases[snap->case_count++];
            open->kind = case_bits[i].kind;
            open->open = true;
            open->number = 1;
            open->version = MX_VERSION;
            copy(open->case_id, sizeof open->case_id, pay_case_kind_name(open->kind));
            copy(open->aggregate_id, sizeof open->aggregate_id, case_of(open->kind, cases));
        }
    }
}

static void load_dispute(struct pay_snapshot *snap, const struct mx_dispute *from)
{
    if (from->exists == 0) {
        return;
    }
    struct pay_dispute *to = &snap->disputes[snap->dispute_count++];
    copy(to->dispute_id, sizeof to->dispute_id, mx_id('D', 1));
    to->number = 1;
    copy(to->provider_reference, sizeof to->provider_reference, mx_reference(0, 2, 0));
    to->amount = (struct pay_money){1, "EUR"};
    to->status = (enum pay_dispute_status)from->status;
    to->funds = (enum pay_dispute_funds)from->funds;
    to->withdrawn_minor = from->withdrawn;
    to->result_certainty = PAY_EVIDENCE_WEBHOOK;
    to->version = MX_VERSION;
}

static void load_request(struct pay_snapshot *snap, const struct mx_request *from)
{
    static const char *const outcomes[] = {"FAILED", "SUCCEEDED", "REVERSED"};
    static const char *const principals[] = {"bob", "cat"};

    if (from->exists == 0) {
        return;
    }
    struct pay_approval_request *to = &snap->requests[snap->request_count++];
    copy(to->request_id, sizeof to->request_id, "ann/request");
    memcpy(to->sha256, mx_digest(), sizeof to->sha256);
    copy(to->requested_by, sizeof to->requested_by, "ann");
    to->status = (enum pay_request_status)from->status;
    to->expires_at_us = MX_NOW + 100 * MX_SECOND;
    to->type = (enum pay_command_type)from->type;
    copy(to->aggregate_id, sizeof to->aggregate_id, mx_id('R', from->target + 1));
    to->expected_version =
        to->type == PAY_CMD_REQUEST_REFUND ? -1 : MX_VERSION - (from->is_stale != 0 ? 1 : 0);
    copy(to->from_status, sizeof to->from_status,
         pay_money_status_name(snap->refunds[from->target].status));
    copy(to->to_status, sizeof to->to_status, outcomes[from->outcome]);
    copy(to->reason_code, sizeof to->reason_code, "PSP_CONFIRMED");
    for (int i = 0; i < 2; i++) {
        if ((from->approvals >> i & 1) != 0) {
            struct pay_approval *approval = &snap->approvals[snap->approval_count++];
            approval->approves = true;
            copy(approval->principal, sizeof approval->principal, principals[i]);
        }
    }
}

static void load(struct rows *rows, const struct mx_world *world)
{
    struct pay_snapshot *snap = &rows->snap;

    memset(rows, 0, sizeof *rows);
    *snap = (struct pay_snapshot){.routes = rows->routes,
                                  .route_count = 1,
                                  .route_cap = 1,
                                  .attempts = rows->attempts,
                                  .attempt_cap = MX_ATTEMPTS + 1,
                                  .gates = rows->gates,
                                  .gate_cap = GATES_MAX,
                                  .references = rows->references,
                                  .reference_cap = 24,
                                  .cases = rows->cases,
                                  .case_cap = CASES_MAX,
                                  .keeps_actions = true,
                                  .captures = rows->captures,
                                  .capture_cap = MX_CAPTURES + 1,
                                  .refunds = rows->refunds,
                                  .refund_cap = MX_REFUNDS + 1,
                                  .disputes = rows->disputes,
                                  .dispute_cap = 2,
                                  .requests = rows->requests,
                                  .request_cap = 2,
                                  .approvals = rows->approvals,
                                  .approval_cap = 4};
    copy(rows->routes[0].psp, PAY_NAME_SIZE, "psp");
    copy(rows->routes[0].psp_account, PAY_NAME_SIZE, "account");
    copy(rows->routes[0].method, PAY_NAME_SIZE, "card");
    rows->routes[0].traits = bench.traits;
    load_order(&snap->order, world);
    for (int i = 0; i < bench.config->attempts; i++) {
        load_attempt(snap, world, i);
    }
    for (int i = 0; i < MX_CAPTURES && world->captures[i].exists != 0; i++) {
        load_action(snap, &world->captures[i], i, PAY_MONEY_CAPTURE);
    }
    for (int i = 0; i < MX_REFUNDS && world->refunds[i].exists != 0; i++) {
        load_action(snap, &world->refunds[i], i, PAY_MONEY_REFUND);
    }
    snap->order.capture_count = (int)snap->capture_count;
    snap->order.refund_count = (int)snap->refund_count;
    load_cases(snap, world->cases);
    load_dispute(snap, &world->dispute);
    snap->order.dispute_count = (int)snap->dispute_count;
    load_request(snap, &world->request);
}

/* ------------------------------------------------------------------------------ snapshot → world
 */

static uint8_t small(int64_t value)
{
    PAY_ASSERT(value >= 0);
    return (uint8_t)(value > 99 ? 99 : value);
}

static void store_attempt(struct mx_attempt *to, const struct pay_attempt *from)
{
    to->status = (uint8_t)from->status;
    to->live = from->live;
    to->cancels |= from->cancel_cause != PAY_CANCEL_CAUSE_NONE ? 1 : 0;
    to->authorized = small(from->amounts.authorized);
    to->capture_reserved = small(from->amounts.capture_reserved);
    to->captured = small(from->amounts.captured);
    to->refund_reserved = small(from->amounts.refund_reserved);
    to->refunded = small(from->amounts.refunded);
    to->withdrawn = small(from->amounts.withdrawn);
    to->sum = small(from->refund_sum_minor);
}

static void store_action(struct mx_action *to, const struct pay_money_action *from, int index)
{
    const bool is_new = to->exists == 0;

    to->exists = 1;
    to->attempt = (uint8_t)from->attempt_index;
    to->amount = small(from->amount.amount_minor);
    to->is_final = from->is_final;
    to->status = (uint8_t)from->status;
    to->origin = (uint8_t)from->origin;
    to->is_named = from->provider_reference[0] != 0;
    to->not_founds = small(from->not_found_count);
    to->retry = from->retry_at_us != 0;
    if (is_new) {
        to->object = (uint8_t)(from->origin == PAY_ORIGIN_PSP ? MX_CONSOLE : index);
    }
    if (to->is_named != 0) { /* The last digit of the PSP's name. */
        const size_t len = strlen(from->provider_reference);
        to->object = (uint8_t)(from->provider_reference[len - 1] - '0');
    }
}

/* @return false when it is one job more than a world can hold. */
static bool store_gate(struct mx_world *world, const struct pay_gate *from)
{
    const bool is_capture = from->kind == PAY_JOB_CAPTURE;
    const int index = atoi(from->action_id + PAY_PAYMENT_ID_SIZE) - 1;
    const char *number = strchr(from->job_id + PAY_ACTION_ID_SIZE, '.');
    const int job = number == NULL ? 0 : atoi(number + 1) - 1;

    if (job >= MX_JOBS) {
        return false;
    }
    struct mx_action *action = is_capture ? &world->captures[index] : &world->refunds[index];
    uint8_t *flags = &action->jobs[job];
    if ((*flags & MX_GATE_EXISTS) == 0) { /* Just made: it is young again. */
        action->is_old = 0;
        if (world->slot.kind == (is_capture ? PAY_MONEY_CAPTURE : PAY_MONEY_REFUND) &&
            world->slot.index == index) {
            world->slot.is_late = 0;
        }
    }
    *flags = (uint8_t)((*flags & MX_GATE_AGAIN) | MX_GATE_EXISTS |
                       (from->sending_at_us != 0 ? MX_GATE_SENDING : 0) |
                       (from->closed_at_us != 0 ? MX_GATE_CLOSED : 0));
    return true;
}

static void store_deadline(struct mx_world *world, const struct pay_effect *effect)
{
    const struct pay_deadline_effect *deadline = &effect->as.deadline;
    const char letter = deadline->aggregate_id[PAY_PAYMENT_ID_SIZE - 1];
    const int bit = deadline->kind == PAY_DEADLINE_RESERVATION ? MX_DUES - 1 : (int)deadline->kind;

    if ((letter != 'C' && letter != 'R') || bit >= MX_DUES) {
        return;
    }
    const int index = atoi(deadline->aggregate_id + PAY_PAYMENT_ID_SIZE) - 1;
    struct mx_action *action = letter == 'C' ? &world->captures[index] : &world->refunds[index];
    action->due = (uint8_t)(action->due & ~(1U << bit));
    if (effect->kind == PAY_EFFECT_DEADLINE_SET) {
        action->due |= (uint8_t)(1U << bit);
    }
}

static void store_effects(struct mx_world *world)
{
    for (size_t i = 0; i < bench.decision.effect_count; i++) {
        const struct pay_effect *effect = &bench.decision.effects[i];
        if (effect->kind == PAY_EFFECT_JOB && effect->as.job.kind == PAY_JOB_CANCEL) {
            world->attempts[effect->as.job.attempt_index].cancels |= 2;
        } else if (effect->kind == PAY_EFFECT_DEADLINE_SET ||
                   effect->kind == PAY_EFFECT_DEADLINE_CLEAR) {
            store_deadline(world, effect);
        }
    }
}

static void store_request(struct mx_world *world, const struct pay_snapshot *snap)
{
    struct mx_request *to = &world->request;

    if (snap->request_count == 0) {
        return;
    }
    const struct pay_approval_request *from = &snap->requests[snap->request_count - 1];
    const struct mx_request before = *to;
    *to = (struct mx_request){.exists = 1,
                              .status = (uint8_t)from->status,
                              .type = (uint8_t)from->type,
                              .target = (uint8_t)(from->aggregate_id[PAY_ACTION_ID_SIZE - 2] - '1'),
                              .is_stale = before.is_stale,
                              .words = before.words};
    to->outcome = from->to_status[0] == 'S' ? 1 : from->to_status[0] == 'R' ? 2 : 0;
    for (size_t i = 0; i < snap->approval_count; i++) {
        to->approvals |= strcmp(snap->approvals[i].principal, "cat") == 0 ? 2 : 1;
    }
    /* Its row has changed: what was asked for is stale. */
    if (from->status == PAY_REQUEST_PENDING && before.exists != 0 &&
        snap->refunds[to->target].change != PAY_ROW_SAME) {
        to->is_stale = 1;
    }
}

/* @return false when the result is beyond what a world can hold. */
static bool store(struct mx_world *world)
{
    const struct pay_snapshot *snap = &bench.rows.snap;
    bool fits = true;

    if (snap->capture_count > MX_CAPTURES || snap->refund_count > MX_REFUNDS ||
        snap->request_count > 1 || snap->attempt_count > bench.config->attempts) {
        return false;
    }
    world->order = (uint8_t)snap->order.status;
    for (size_t i = 0; i < snap->attempt_count; i++) {
        store_attempt(&world->attempts[i], &snap->attempts[i]);
    }
    for (size_t i = 0; i < snap->capture_count; i++) {
        store_action(&world->captures[i], &snap->captures[i], (int)i);
    }
    for (size_t i = 0; i < snap->refund_count; i++) {
        store_action(&world->refunds[i], &snap->refunds[i], (int)i);
    }
    for (size_t i = 0; i < snap->gate_count; i++) {
        fits &= store_gate(world, &snap->gates[i]);
    }
    for (size_t i = 0; i < snap->case_count; i++) {
        for (size_t b = 0; b < sizeof case_bits / sizeof case_bits[0]; b++) {
            world->cases |= snap->cases[i].kind == case_bits[b].kind
                                ? case_bit(&snap->cases[i], case_bits[b].bit)
                                : 0;
        }
    }
    if (snap->dispute_count > 0) {
        world->dispute.exists = 1;
        world->dispute.status = (uint8_t)snap->disputes[0].status;
        world->dispute.funds = (uint8_t)snap->disputes[0].funds;
        world->dispute.withdrawn = small(snap->disputes[0].withdrawn_minor);
    }
    store_request(world, snap);
    store_effects(world);
    return fits;
}

/* Padding included: that is what is promised. */
static bool same_bytes(const void *a, const void *b, size_t len)
{
    return memcmp(a, b, len) == 0;
}

struct mx_decided mx_bench_decide(struct mx_world *world, const struct pay_decide_input *input)
{
    struct mx_decided decided = {.decision = &bench.decision, .snap = &bench.rows.snap};
    const bool twice = bench.calls++ % REPEAT_EVERY == 0;

    load(&bench.rows, world);
    decided.is_repeatable = true;
    if (twice) {
        memcpy(&bench.before, &bench.rows, sizeof bench.rows);
        pay_decide(&bench.rows.snap, input, &bench.decision);
        memcpy(&bench.first, &bench.rows, sizeof bench.rows);
        memcpy(&bench.rows, &bench.before, sizeof bench.rows);
    }
    pay_decide(&bench.rows.snap, input, &bench.decision);
    if (twice) {
        decided.is_repeatable = same_bytes(&bench.rows, &bench.first, sizeof bench.rows);
    }
    decided.is_beyond = !store(world);
    return decided;
}
