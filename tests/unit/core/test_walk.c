/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: pay_decide() is total, and its promises hold on whatever comes in whatever order. Long
 * random walks (the seed is printed): events of every type and evidence with true and wrong
 * amounts, references, jobs and times, commands, due rows, gates passed and freed. Checked after
 * every step: the invariants of the requirement, written without the table; world.c adds that every
 * open state has a row that wakes it and that every fact stands in history.
 */
#include "tests/unit/core/world.h"

#define WALKS 3000
#define STEPS 80

static struct world world;

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13; /* xorshift64 */
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static int pick(uint64_t *seed, int count)
{
    return (int)(next_random(seed) % (uint64_t)count);
}

static void random_references(struct world *w, uint64_t *seed)
{
    static const char *const names[] = {"pi_1", "pi_2", "ch_1", "ch_2"};

    w->event.provider_payment_id = pay_str_of(pick(seed, 2) == 0 ? names[pick(seed, 2)] : NULL);
    w->event.same_object = pick(seed, 4) == 0;
    w->event.reference_count = (size_t)pick(seed, 3);
    for (size_t i = 0; i < w->event.reference_count; i++) {
        w->event.references[i] =
            (struct pay_reference){(enum pay_reference_kind)pick(seed, PAY_REFERENCE_KIND_COUNT),
                                   pay_str_of(names[pick(seed, 4)])};
    }
}

static void random_event(struct world *w, uint64_t *seed)
{
    static const char *const jobs[] = {".SUBMIT",   ".CONFIRM.1", ".CANCEL",
                                       ".QUERY.v3", ".QUERY.12",  ".nonsense"};
    const int attempt_no = 1 + pick(seed, (int)w->snap.attempt_count);

    world_event(w, (enum pay_event_type)pick(seed, PAY_EV_COUNT), attempt_no);
    if (pick(seed, 4) == 0) {
        random_references(w, seed);
    }
    if (pick(seed, 2) == 0) {
        world_answers(w, jobs[pick(seed, 6)], (enum pay_query_by)pick(seed, PAY_QUERY_BY_COUNT),
                      w->now_us - 200 * SECOND + pick(seed, 400) * SECOND);
        w->event.call.send_no = pick(seed, 3);
    }
    w->event.action.is_set = pick(seed, 2) == 0;
    w->event.success_when_automatic = pick(seed, 3) == 0;
    w->event.failure_class = (enum pay_failure_class)pick(seed, PAY_FAILURE_CLASS_COUNT);
    if (pick(seed, 10) == 0) {
        w->event.amount.amount_minor = pick(seed, 3) == 0 ? INT64_MAX : pick(seed, 20000) - 5000;
    }
    w->input.foreign_reference = pick(seed, 30) == 0;
    world_decide(w, (enum pay_evidence)(1 + pick(seed, PAY_EVIDENCE_STATEMENT)));
}

static void random_command(struct world *w, uint64_t *seed)
{
    static const char *const ids[] = {WORLD_PAYMENT "A01", WORLD_PAYMENT "A02", "x"};

    world_command(w, (enum pay_command_type)pick(seed, PAY_CMD_COUNT));
    if (pick(seed, 4) != 0 && w->command.type == PAY_CMD_CANCEL_PAYMENT) {
        w->command.type = PAY_CMD_CHANGE_METHOD; /* CANCEL ends most walks. */
    }
    w->command.attempt_id = pay_str_of(ids[pick(seed, 3)]);
    w->input.routes = &w->offered[pick(seed, 6)];
    w->input.route_count = (size_t)pick(seed, 2);
    world_decide_command(w);
}

static void random_due(struct world *w, uint64_t *seed)
{
    if (w->row_count == 0) {
        return;
    }
    const struct world_row row = w->rows[pick(seed, (int)w->row_count)];
    w->now_us = row.due_at_us > w->now_us ? row.due_at_us : w->now_us;
    if (row.kind == PAY_DEADLINE_ORDER_EXPIRY) {
        world_order_due(w);
        return;
    }
    world_due(w, row.kind, (row.aggregate_id[27] - '0') * 10 + row.aggregate_id[28] - '0');
}

static void random_gate(struct world *w, uint64_t *seed)
{
    struct pay_gate *gate = &w->gates[pick(seed, (int)w->snap.gate_count)];
    const bool may_pass = gate->closed_at_us == 0 && w->now_us < gate->not_after_us;

    if (gate->sending_at_us == 0 && may_pass) {
        gate->sending_at_us = w->now_us;
        gate->last_send_at_us = w->now_us;
        gate->sends++;
    } else if (gate->sends == 1 && !gate->finished && pick(seed, 8) == 0) {
        gate->sending_at_us = 0; /* A first send that certainly did not leave. */
    }
}

static void step(struct world *w, uint64_t *seed)
{
    const int what = pick(seed, 20);

    w->now_us += pick(seed, 30) * SECOND;
    w->out.effect_count = 0;
    if (what < 13) {
        random_event(w, seed);
    } else if (what < 15) {
        random_command(w, seed);
    } else if (what < 18) {
        random_due(w, seed);
    } else {
        random_gate(w, seed);
    }
}

/* ------------------------------------------------------------------------------------- invariants
 */

struct memory {
    int succeeded_facts;
    int64_t sequence;
    enum pay_order_status order;
    bool was_paid[PAY_ATTEMPTS_MAX];
};

static void check_amounts(const struct pay_amounts *a)
{
    assert_true(a->authorized >= 0 && a->captured >= 0 && a->refunded >= 0 && a->withdrawn >= 0);
    assert_true(a->captured + a->capture_reserved <= a->authorized);
    assert_true(a->refunded + a->refund_reserved <= a->captured);
}

static int check_attempts(const struct world *w, struct memory *memory)
{
    int live = 0;
    for (size_t i = 0; i < w->snap.attempt_count; i++) {
        const struct pay_attempt *attempt = &w->attempts[i];
        const bool is_paid = attempt->status == PAY_ATTEMPT_SUCCEEDED;
        check_amounts(&attempt->amounts);
        assert_true(!memory->was_paid[i] || is_paid); /* A success is never left. */
        memory->was_paid[i] = is_paid;
        assert_true(!is_paid || attempt->amounts.captured == WORLD_AMOUNT);
        live += attempt->live ? 1 : 0;
    }
    return live;
}

static void check_effects(const struct world *w, struct memory *memory)
{
    for (size_t i = 0; i < w->out.effect_count; i++) {
        const struct pay_effect *effect = &w->out.effects[i];
        if (effect->kind == PAY_EFFECT_FACT && effect->as.fact.sequence != 0) {
            assert_int_equal(effect->as.fact.sequence, ++memory->sequence);
        }
        assert_true(effect->kind != PAY_EFFECT_DEADLINE_SET || effect->as.deadline.due_at_us > 0);
    }
    memory->succeeded_facts += world_count_facts(w, PAY_FACT_PAYMENT_SUCCEEDED);
    assert_true(memory->succeeded_facts <= 1);
    assert_true(world_count_jobs(w, PAY_JOB_SUBMIT) <= 1);
}

static void check_step(const struct world *w, struct memory *memory)
{
    check_effects(w, memory);
    assert_true(check_attempts(w, memory) <= 1);
    assert_true(!pay_order_is_final(memory->order) || memory->order == w->snap.order.status);
    memory->order = w->snap.order.status;
    assert_int_equal(w->snap.order.event_sequence, memory->sequence);
    assert_true(memory->order != PAY_ORDER_SUCCEEDED || memory->succeeded_facts == 1);
}

static void walk(uint64_t seed)
{
    struct memory memory = {0};

    if (seed % 4 == 0) {
        world_start_manual(&world);
    } else {
        world_start(&world);
    }
    for (int i = 0; i < 6; i++) {
        world.offered[i].traits.can_cancel = pick(&seed, 3) != 0;
        world.offered[i].traits.confirm_moves_money = pick(&seed, 3) == 0;
        world.offered[i].failover_on_not_found = pick(&seed, 2) == 0;
    }
    for (int i = 0; i < 3; i++) {
        world.routes[i].traits = world.offered[i].traits;
    }
    world.snap.order.retry_until_expiry = pick(&seed, 2) == 0;
    memory.sequence = world.snap.order.event_sequence;
    memory.order = world.snap.order.status;
    for (int i = 0; i < STEPS; i++) {
        step(&world, &seed);
        check_step(&world, &memory);
    }
}

static void whatever_comes_the_promises_hold(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= WALKS; seed++) {
        uint64_t start = seed * UINT64_C(0x9E3779B97F4A7C15);
        if (seed % 500 == 1) {
            print_message("seeds from %llu\n", (unsigned long long)seed);
        }
        walk(start);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_comes_the_promises_hold),
    };
    return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
