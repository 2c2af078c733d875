/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/property/explorer/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/hash.h"
#include "common/core/id.h"

#define HALF_US (XP_TICK_US / 2)
#define NAMES_MAX 250
#define NAME_SLOTS 1024
#define CANCELS_TIRED 8
#define REPEAT_EVERY 8 /* One decision in so many is made twice and compared byte by byte. */

struct xp_counters xp_counters;

/* Business keys as small numbers: a world remembers which one an attempt accepted last. */
struct names {
    char text[NAMES_MAX + 1][PAY_CAUSE_SIZE];
    uint8_t slots[NAME_SLOTS];
    uint8_t count;
};

static struct {
    const struct xp_config *config;
    struct pay_route routes[XP_ROUTES];
    struct xp_rows rows, before, first;
    struct pay_decision decision;
    struct names names;
    uint64_t calls, once;
    bool counts;
    char attempt_ids[XP_ATTEMPTS_MAX + 1][PAY_ACTION_ID_SIZE];
    char references[XP_ATTEMPTS_MAX + 1][XP_REFERENCE_COUNT][24];
} bench;

/* ------------------------------------------------------------------------------------- plain
 * values */

int64_t xp_bench_time_us(uint8_t time)
{
    if (time == 0) {
        return 0;
    }
    return time == XP_NEVER ? INT64_MAX : XP_START_US + (time - 1) * HALF_US;
}

/* A half tick stands for any moment between two ticks: the core adds a microsecond here and there.
 */
static uint8_t time_of_us(int64_t time_us)
{
    if (time_us == 0) {
        return 0;
    }
    const int64_t ticks = (time_us - XP_START_US) / XP_TICK_US;
    const int64_t rest = (time_us - XP_START_US) % XP_TICK_US;
    if (time_us < XP_START_US) {
        return 1;
    }
    return ticks >= 120 ? XP_NEVER : (uint8_t)(1 + 2 * ticks + (rest != 0 ? 1 : 0));
}

static uint8_t name_of(const char *text)
{
    const struct pay_bytes bytes = {(const uint8_t *)text, strlen(text)};
    size_t at = pay_hash_fnv1a(PAY_FNV_START, bytes) % NAME_SLOTS;

    if (text[0] == 0) {
        return 0;
    }
    while (bench.names.slots[at] != 0) {
        if (strcmp(bench.names.text[bench.names.slots[at]], text) == 0) {
            return bench.names.slots[at];
        }
        at = (at + 1) % NAME_SLOTS;
    }
    PAY_ASSERT(bench.names.count < NAMES_MAX && bytes.len < PAY_CAUSE_SIZE);
    bench.names.slots[at] = ++bench.names.count;
    memcpy(bench.names.text[bench.names.count], text, bytes.len + 1);
    return bench.names.count;
}

static void copy(char *dst, size_t size, const char *text)
{
    const size_t len = strlen(text);
    PAY_ASSERT(len < size);
    memcpy(dst, text, len + 1);
}

const struct pay_route *xp_bench_routes(void)
{
    return bench.routes;
}

const struct pay_decision *xp_bench_last_decision(void)
{
    return &bench.decision;
}

const char *xp_bench_attempt_id(int attempt)
{
    return bench.attempt_ids[attempt];
}

const char *xp_bench_reference(int attempt, int which)
{
    return bench.references[attempt][which];
}

void xp_bench_reset_counters(bool counts)
{
    bench.counts = counts;
    xp_counters = (struct xp_counters){.version = XP_VERSION_START, .sequence = XP_VERSION_START};
    for (int i = 0; i <= XP_ATTEMPTS_MAX; i++) {
        xp_counters.attempt_versions[i] = XP_VERSION_START;
    }
}

static void fill_route(struct pay_route *route, const struct xp_config *config, int number)
{
    const struct xp_kind *kind = config->kinds[number];
    const struct xp_times *t = &config->times;

    memset(route, 0, sizeof *route);
    (void)snprintf(route->psp, sizeof route->psp, "psp%d", number);
    (void)snprintf(route->psp_account, sizeof route->psp_account, "account%d", number);
    copy(route->method, sizeof route->method, "method");
    route->failover_on_not_found = (config->failover_on_not_found >> number & 1) != 0;
    route->paused = (config->paused >> number & 1) != 0;
    route->traits = (struct pay_psp_traits){
        .can_cancel = kind->can_cancel,
        .confirm_moves_money = kind->confirm_moves_money,
        .finds_by_request_no = kind->by_number,
        .not_founds_needed = config->not_founds_needed,
        .send_window_us = t->send_window * XP_TICK_US,
        .answer_us = t->answer * XP_TICK_US,
        .call_budget_us = t->call_budget * XP_TICK_US,
        .longest_processing_us = t->longest * XP_TICK_US,
        .visibility_grace_us = t->grace * XP_TICK_US,
        .query_first_us = t->query_first * XP_TICK_US,
        .person_after_us = t->person_after * XP_TICK_US,
        .action_lifetime_us = t->action_lifetime * XP_TICK_US,
        .cancel_retry_us = t->cancel_retry * XP_TICK_US,
    };
}

void xp_bench_open(const struct xp_config *config)
{
    static const char *const prefixes[XP_REFERENCE_COUNT] = {"pi", "pj", "re"};

    memset(&bench, 0, sizeof bench);
    bench.config = config;
    for (int i = 0; i < XP_ROUTES; i++) {
        fill_route(&bench.routes[i], config, i);
    }
    for (int i = 0; i <= XP_ATTEMPTS_MAX; i++) {
        pay_id_action(bench.attempt_ids[i], XP_PAYMENT, 'A', i + 1);
        for (int which = 0; which < XP_REFERENCE_COUNT; which++) {
            (void)snprintf(bench.references[i][which], sizeof bench.references[i][which],
                           "%s_A%02d", prefixes[which], i + 1);
        }
    }
    xp_bench_reset_counters(false);
}

/* -------------------------------------------------------------------------------- world → snapshot
 */

static void load_gate(struct pay_snapshot *snap, const struct xp_gate *from, int attempt,
                      enum pay_job_kind kind, int number)
{
    if ((from->flags & XP_GATE_EXISTS) == 0) {
        return;
    }
    struct pay_gate *gate = &snap->gates[snap->gate_count++];
    pay_id_job(gate->job_id, bench.attempt_ids[attempt], kind, number);
    copy(gate->action_id, sizeof gate->action_id, bench.attempt_ids[attempt]);
    gate->kind = kind;
    gate->not_after_us = xp_bench_time_us(from->not_after);
    gate->last_send_at_us = xp_bench_time_us(from->last_send);
    gate->sending_at_us = (from->flags & XP_GATE_SENDING) != 0 ? XP_START_US : 0;
    gate->closed_at_us = (from->flags & XP_GATE_CLOSED) != 0 ? XP_START_US : 0;
    gate->sends = from->sends + ((from->flags & XP_GATE_REPLAYED) != 0 ? 1 : 0);
}

static void load_reference(struct pay_snapshot *snap, const struct xp_attempt *from, int attempt,
                           int which)
{
    if ((from->references >> which & 1) == 0) {
        return;
    }
    struct pay_bound_reference *bound = &snap->references[snap->reference_count++];
    bound->attempt_index = attempt;
    bound->kind = which == XP_REFERENCE_REVERSAL ? PAY_REF_MODIFICATION : PAY_REF_INTENT;
    bound->bound_at_us = xp_bench_time_us(from->bound_at);
    copy(bound->reference, sizeof bound->reference, bench.references[attempt][which]);
}

static int cancels_of(uint8_t cancels, bool tired)
{
    return cancels > 0 && tired ? CANCELS_TIRED : cancels;
}

static void load_attempt(struct pay_snapshot *snap, const struct xp_world *world, int index,
                         bool tired)
{
    const struct xp_attempt *from = &world->attempts[index];
    struct pay_attempt *to = &snap->attempts[index];
    const struct pay_route *route = &bench.routes[from->route % XP_ROUTES];

    copy(to->attempt_id, sizeof to->attempt_id, bench.attempt_ids[index]);
    to->attempt_no = index + 1;
    to->route_no = from->route;
    memcpy(to->psp, route->psp, sizeof to->psp);
    memcpy(to->psp_account, route->psp_account, sizeof to->psp_account);
    memcpy(to->method, route->method, sizeof to->method);
    to->amount = snap->order.amount;
    to->status = (enum pay_attempt_status)from->status;
    to->live = from->live != 0;
    to->result_certainty = (enum pay_evidence)from->certainty;
    copy(to->last_accepted_event_id, sizeof to->last_accepted_event_id,
         bench.names.text[from->last_event]);
    to->version = xp_counters.attempt_versions[index];
    to->not_found_count = from->not_founds;
    to->not_found_from_us = xp_bench_time_us(from->not_found_from);
    to->known_at_us = xp_bench_time_us(from->known_at);
    to->unknown_since_us = from->unknown != 0 ? XP_START_US : 0;
    to->action_no = from->actions;
    to->confirm_no = from->confirms;
    to->cancel_no = cancels_of(from->cancels, tired);
    to->action_expires_at_us = xp_bench_time_us(from->action_until);
    to->psp_expires_at_us = xp_bench_time_us(from->psp_until);
    to->cancel_cause = (enum pay_cancel_cause)from->cancel_cause;
    to->failure_class = (enum pay_failure_class)from->failure_class;
    to->created_at_us = XP_START_US;
    to->amounts.authorized = from->authorized;
    to->amounts.captured = from->captured;
    to->amounts.withdrawn = from->withdrawn;
    load_gate(snap, &from->submit, index, PAY_JOB_SUBMIT, 1);
    for (int n = 0; n < XP_CONFIRMS_MAX; n++) {
        load_gate(snap, &from->confirm[n], index, PAY_JOB_CONFIRM, n + 1);
    }
    for (int which = 0; which < XP_REFERENCE_COUNT; which++) {
        load_reference(snap, from, index, which);
    }
}

static void load_cases(struct pay_snapshot *snap, uint32_t cases)
{
    for (int kind = 0; kind < PAY_CASE_KIND_COUNT; kind++) {
        if ((cases >> kind & 1) != 0) {
            struct pay_case *open = &snap->cases[snap->case_count++];
            open->kind = (enum pay_case_kind)kind;
            open->open = true;
            open->number = 1;
            copy(open->case_id, sizeof open->case_id, pay_case_kind_name(open->kind));
            copy(open->aggregate_id, sizeof open->aggregate_id, bench.attempt_ids[0]);
        }
    }
}

static void load_order(struct pay_order *order, const struct xp_world *world)
{
    copy(order->payment_id, sizeof order->payment_id, XP_PAYMENT);
    order->version = xp_counters.version;
    order->event_sequence = xp_counters.sequence;
    order->intent_route_no = -1;
    if (world->exists == 0) {
        order->event_sequence = 0;
        return;
    }
    order->exists = true;
    copy(order->merchant_id, sizeof order->merchant_id, "merchant");
    copy(order->merchant_order_no, sizeof order->merchant_order_no, "order-1");
    copy(order->created_by, sizeof order->created_by, "caller");
    order->amount = (struct pay_money){XP_AMOUNT, "EUR"};
    order->capture_mode = PAY_CAPTURE_AUTOMATIC;
    order->status = (enum pay_order_status)world->order;
    order->intent = (enum pay_intent)world->intent;
    order->intent_route_no = world->intent_route == 0 ? -1 : world->intent_route - 1;
    if (order->intent != PAY_INTENT_NONE) {
        copy(order->intent_command_id, sizeof order->intent_command_id, "caller/intent");
    }
    order->failover_until_us = xp_bench_time_us(world->failover_until);
    order->expires_at_us = xp_bench_time_us(world->expires_at);
    order->retry_until_expiry = bench.config->waits_for_method;
    order->expiry_asked = world->expiry_asked != 0;
    order->attempt_count = world->attempt_count;
    order->created_at_us = XP_START_US;
}

static void load(struct xp_rows *rows, const struct xp_world *world, bool tired)
{
    memset(rows, 0, sizeof *rows);
    rows->snap.routes = rows->routes;
    rows->snap.route_cap = XP_ROUTES + 1;
    rows->snap.attempts = rows->attempts;
    rows->snap.attempt_cap = XP_ATTEMPTS_MAX + 1;
    rows->snap.gates = rows->gates;
    rows->snap.gate_cap = sizeof rows->gates / sizeof rows->gates[0];
    rows->snap.references = rows->references;
    rows->snap.reference_cap = sizeof rows->references / sizeof rows->references[0];
    rows->snap.cases = rows->cases;
    rows->snap.case_cap = sizeof rows->cases / sizeof rows->cases[0];
    load_order(&rows->snap.order, world);
    if (world->exists == 0) {
        return;
    }
    memcpy(rows->routes, bench.routes, sizeof bench.routes);
    rows->snap.route_count = XP_ROUTES;
    rows->snap.attempt_count = world->attempt_count;
    for (int i = 0; i < world->attempt_count; i++) {
        load_attempt(&rows->snap, world, i, tired);
    }
    load_cases(&rows->snap, xp_cases(world));
}

/* -------------------------------------------------------------------------------- snapshot → world
 */

static int attempt_of_id(const char *id)
{
    for (int i = 0; i <= XP_ATTEMPTS_MAX; i++) {
        if (strncmp(id, bench.attempt_ids[i], PAY_ACTION_ID_SIZE - 1) == 0) {
            return i;
        }
    }
    return -1;
}

static uint8_t clamp(int64_t value, int most)
{
    PAY_ASSERT(value >= 0);
    return (uint8_t)(value > most ? most : value);
}

static void store_attempt(struct xp_attempt *to, const struct pay_attempt *from)
{
    to->route = (uint8_t)from->route_no;
    to->status = (uint8_t)from->status;
    to->live = from->live;
    to->certainty = (uint8_t)from->result_certainty;
    /* Whether it comes again is asked of a decline only. */
    to->last_event = strstr(from->last_accepted_event_id, "|ATTEMPT_DECLINED") != NULL
                         ? name_of(from->last_accepted_event_id)
                         : 0;
    to->not_founds = clamp(from->not_found_count, 9);
    to->not_found_from = time_of_us(from->not_found_from_us);
    to->known_at = time_of_us(from->known_at_us);
    to->unknown = from->unknown_since_us != 0;
    to->actions = clamp(from->action_no, XP_CONFIRMS_MAX);
    to->confirms = clamp(from->confirm_no, XP_CONFIRMS_MAX + 1);
    to->cancels = from->cancel_no > 0;
    to->action_until = time_of_us(from->action_expires_at_us);
    to->psp_until = time_of_us(from->psp_expires_at_us);
    to->cancel_cause = (uint8_t)from->cancel_cause;
    to->failure_class = (uint8_t)from->failure_class;
    to->authorized = clamp(from->amounts.authorized, 9);
    to->captured = clamp(from->amounts.captured, 9);
    to->withdrawn = clamp(from->amounts.withdrawn, 9);
}

/* @return false when the CONFIRM is one more than a world can hold. */
static bool store_gate(struct xp_world *world, const struct pay_gate *from)
{
    const int attempt = attempt_of_id(from->action_id);
    int number = 0;
    struct xp_gate *to = &world->attempts[attempt].submit;

    if (from->kind == PAY_JOB_CONFIRM) {
        number = (int)strtol(from->job_id + strlen(from->action_id) + sizeof ".CONFIRM", NULL, 10);
        if (number > XP_CONFIRMS_MAX) {
            return false;
        }
        to = &world->attempts[attempt].confirm[number - 1];
    }
    to->flags = (uint8_t)((to->flags & XP_GATE_REPLAYED) | XP_GATE_EXISTS |
                          (from->sending_at_us != 0 ? XP_GATE_SENDING : 0) |
                          (from->closed_at_us != 0 ? XP_GATE_CLOSED : 0));
    to->sends = from->sends > 0;
    to->not_after = time_of_us(from->not_after_us);
    to->last_send = time_of_us(from->last_send_at_us);
    return true;
}

static void store_reference(struct xp_world *world, const struct pay_bound_reference *from)
{
    struct xp_attempt *to = &world->attempts[from->attempt_index];
    const uint8_t at = time_of_us(from->bound_at_us);

    for (int which = 0; which < XP_REFERENCE_COUNT; which++) {
        if (strcmp(from->reference, bench.references[from->attempt_index][which]) == 0) {
            to->references |= (uint8_t)(1 << which);
        }
    }
    if (to->bound_at == 0 || at < to->bound_at) {
        to->bound_at = at;
    }
}

static void store_deadline(struct xp_world *world, const struct pay_effect *effect)
{
    const struct pay_deadline_effect *deadline = &effect->as.deadline;
    const bool clears = effect->kind == PAY_EFFECT_DEADLINE_CLEAR;
    const uint8_t due = clears ? 0 : time_of_us(deadline->due_at_us);
    const int attempt = attempt_of_id(deadline->aggregate_id);

    if (deadline->kind == PAY_DEADLINE_ORDER_EXPIRY) {
        world->order_due = due;
    } else if (attempt >= 0 && (int)deadline->kind < XP_DUE_KINDS) {
        world->attempts[attempt].due[deadline->kind] = due;
    }
}

static void store_job(struct xp_world *world, const struct pay_job_effect *job)
{
    if (job->kind == PAY_JOB_CANCEL) {
        world->attempts[job->attempt_index].cancel_jobs = 1;
    }
}

static void store_effects(struct xp_world *world)
{
    for (size_t i = 0; i < bench.decision.effect_count; i++) {
        const struct pay_effect *effect = &bench.decision.effects[i];
        switch (effect->kind) {
        case PAY_EFFECT_DEADLINE_SET:
        case PAY_EFFECT_DEADLINE_CLEAR:
            store_deadline(world, effect);
            break;
        case PAY_EFFECT_JOB:
            store_job(world, &effect->as.job);
            break;
        default:
            break;
        }
    }
}

static void store_order(struct xp_world *world, const struct pay_order *order)
{
    world->exists = order->exists;
    world->order = (uint8_t)order->status;
    world->intent = (uint8_t)order->intent;
    world->intent_route = (uint8_t)(order->intent_route_no + 1);
    world->failover_until = time_of_us(order->failover_until_us);
    world->expires_at = time_of_us(order->expires_at_us);
    world->expiry_asked = order->expiry_asked;
    world->attempt_count = (uint8_t)order->attempt_count;
}

/* @return false when the result is beyond the bound; the world is then only good for checks. */
static bool store(struct xp_world *world)
{
    const struct pay_snapshot *snap = &bench.rows.snap;
    uint32_t cases = 0;
    bool fits = true;

    PAY_ASSERT(snap->route_count <= XP_ROUTES);
    store_order(world, &snap->order);
    fits = snap->attempt_count <= bench.config->attempts_max;
    if (snap->attempt_count > XP_ATTEMPTS_MAX) {
        return false;
    }
    for (size_t i = 0; i < snap->attempt_count; i++) {
        store_attempt(&world->attempts[i], &snap->attempts[i]);
    }
    for (size_t i = 0; i < snap->gate_count; i++) {
        fits &= store_gate(world, &snap->gates[i]);
    }
    for (size_t i = 0; i < snap->reference_count; i++) {
        store_reference(world, &snap->references[i]);
    }
    for (size_t i = 0; i < snap->case_count; i++) {
        cases |= snap->cases[i].open ? UINT32_C(1) << snap->cases[i].kind : 0;
    }
    world->cases_low = (uint8_t)cases;
    world->cases_high = (uint8_t)(cases >> 8);
    store_effects(world);
    return fits;
}

/* ------------------------------------------------------------------------------------------
 * deciding */

static uint64_t hash_more(uint64_t hash, const void *bytes, size_t len)
{
    return pay_hash_fnv1a(hash, (struct pay_bytes){bytes, len});
}

static uint64_t hash_decision(const struct pay_decision *d)
{
    uint64_t hash = hash_more(PAY_FNV_START, &d->verdict, sizeof d->verdict);

    hash = hash_more(hash, d->reason_code, strlen(d->reason_code));
    hash = hash_more(hash, &d->history_count, sizeof d->history_count);
    for (size_t i = 0; i < d->effect_count; i++) {
        const struct pay_effect *effect = &d->effects[i];
        hash = hash_more(hash, &effect->kind, sizeof effect->kind);
        if (effect->kind == PAY_EFFECT_FACT) {
            hash = hash_more(hash, effect->as.fact.event_id, strlen(effect->as.fact.event_id));
            hash = hash_more(hash, &effect->as.fact.sequence, sizeof(int64_t));
        } else if (effect->kind == PAY_EFFECT_JOB) {
            hash = hash_more(hash, effect->as.job.job_id, strlen(effect->as.job.job_id));
            hash = hash_more(hash, &effect->as.job.not_after_us, sizeof(int64_t));
        } else {
            hash = hash_more(hash, &effect->as.deadline.due_at_us, sizeof(int64_t));
        }
    }
    return hash;
}

/* As the store does: versions of the rows that changed. */
static void count(void)
{
    const struct pay_snapshot *snap = &bench.rows.snap;

    xp_counters.version += bench.decision.history_count > 0 ? 1 : 0;
    xp_counters.sequence = snap->order.event_sequence;
    for (size_t i = 0; i < snap->attempt_count; i++) {
        xp_counters.attempt_versions[i] += snap->attempts[i].change >= PAY_ROW_UPDATED ? 1 : 0;
    }
}

/* The first of two: what it gave is kept, and the rows are as before. */
static void decide_first(const struct pay_decide_input *input)
{
    memcpy(&bench.before, &bench.rows, sizeof bench.rows);
    pay_decide(&bench.rows.snap, input, &bench.decision);
    bench.once = hash_decision(&bench.decision);
    memcpy(&bench.first, &bench.rows, sizeof bench.rows);
    memcpy(&bench.rows, &bench.before, sizeof bench.rows);
}

/* Padding included: that is what is promised. */
static bool same_bytes(const void *a, const void *b, size_t len)
{
    return memcmp(a, b, len) == 0;
}

struct xp_decided xp_bench_decide(struct xp_world *world, const struct pay_decide_input *input,
                                  bool tired)
{
    struct xp_decided decided = {
        .decision = &bench.decision, .rows = &bench.rows, .sequence_before = xp_counters.sequence};
    const bool twice = bench.calls++ % REPEAT_EVERY == 0;

    load(&bench.rows, world, tired);
    decided.is_repeatable = true;
    if (twice) {
        decide_first(input);
    }
    pay_decide(&bench.rows.snap, input, &bench.decision);
    if (twice) {
        decided.is_repeatable = bench.once == hash_decision(&bench.decision) &&
                                same_bytes(&bench.rows, &bench.first, sizeof bench.rows);
    }
    decided.is_beyond = !store(world);
    if (bench.counts) {
        count();
    }
    return decided;
}
