/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the order in which the inputs of one payment arrive decides nothing. For each of the
 * scenarios of the requirement every permutation of its realistic inputs (our own word, the answer,
 * callbacks, duplicates, the query, the time-out, a command) ends in the same money and the same
 * published ends, event ids included.
 */
#include "tests/property/permute.h"
#include "tests/unit/core/world.h"

#include <stdio.h>

#define INPUTS_MAX PERMUTE_MAX
#define ENDS_MAX 8

/* One arriving input. job NULL: a callback. */
struct arrival {
    enum pay_event_type type;
    enum pay_evidence evidence;
    const char *job;
    enum pay_query_by query_by;
    bool is_command; /* START_ATTEMPT on the second route. */
    bool hands_out;
};

struct scenario {
    const char *name;
    enum pay_attempt_status ends_as;
    enum pay_order_status order;
    size_t attempt_count;
    size_t count;
    struct arrival arrivals[INPUTS_MAX];
};

/* What downstream may act on. */
struct published {
    enum pay_fact_type type;
    char event_id[PAY_EVENT_ID_SIZE];
};

struct outcome {
    struct published ends[ENDS_MAX];
    size_t end_count;
    struct pay_amounts amounts;
};

#define BY_US(event) \
    {.type = PAY_EV_ATTEMPT_##event, .evidence = PAY_EVIDENCE_LOCAL, .job = ".SUBMIT"}
#define ANSWER(event) \
    {.type = PAY_EV_ATTEMPT_##event, .evidence = PAY_EVIDENCE_SYNC_RESPONSE, .job = ".SUBMIT"}
#define ANSWER_WITH_ACTION                   \
    {.type = PAY_EV_ATTEMPT_ACTION_REQUIRED, \
     .evidence = PAY_EVIDENCE_SYNC_RESPONSE, \
     .job = ".SUBMIT",                       \
     .hands_out = true}
#define CALLBACK(event) {.type = PAY_EV_ATTEMPT_##event, .evidence = PAY_EVIDENCE_WEBHOOK}
#define QUERY(event)                 \
    {.type = PAY_EV_ATTEMPT_##event, \
     .evidence = PAY_EVIDENCE_QUERY, \
     .job = ".QUERY.v7",             \
     .query_by = PAY_QUERY_BY_REQUEST_NUMBER}
#define PSP_B_IS_WANTED {.is_command = true}

static const struct scenario scenarios[] = {
    {"A: time-out, query says succeeded, late processing callback",
     PAY_ATTEMPT_SUCCEEDED,
     PAY_ORDER_SUCCEEDED,
     1,
     6,
     {BY_US(SUBMITTED), BY_US(UNKNOWN), QUERY(SUCCEEDED), CALLBACK(PROCESSING),
      CALLBACK(PROCESSING), CALLBACK(SUCCEEDED)}},
    {"B: processing, succeeded, succeeded again",
     PAY_ATTEMPT_SUCCEEDED,
     PAY_ORDER_SUCCEEDED,
     1,
     6,
     {BY_US(SUBMITTED), ANSWER(PROCESSING), CALLBACK(PROCESSING), CALLBACK(SUCCEEDED),
      CALLBACK(SUCCEEDED), QUERY(SUCCEEDED)}},
    {"E: UNKNOWN, upstream wants another PSP",
     PAY_ATTEMPT_SUCCEEDED,
     PAY_ORDER_SUCCEEDED,
     1,
     6,
     {BY_US(SUBMITTED), BY_US(UNKNOWN), PSP_B_IS_WANTED, PSP_B_IS_WANTED, QUERY(SUCCEEDED),
      CALLBACK(SUCCEEDED)}},
    {"F: the callback overtakes our answer and our ATTEMPT_SUBMITTED",
     PAY_ATTEMPT_SUCCEEDED,
     PAY_ORDER_SUCCEEDED,
     1,
     6,
     {BY_US(SUBMITTED), ANSWER_WITH_ACTION, CALLBACK(ACTION_REQUIRED), CALLBACK(PROCESSING),
      CALLBACK(SUCCEEDED), QUERY(SUCCEEDED)}},
    {"F: the same, our answer says succeeded, and a time-out is reported too",
     PAY_ATTEMPT_SUCCEEDED,
     PAY_ORDER_SUCCEEDED,
     1,
     6,
     {BY_US(SUBMITTED), ANSWER(SUCCEEDED), CALLBACK(SUCCEEDED), CALLBACK(SUCCEEDED), BY_US(UNKNOWN),
      BY_US(NOT_SENT)}},
    {"O1: declined first, paid on the same object",
     PAY_ATTEMPT_SUCCEEDED,
     PAY_ORDER_SUCCEEDED,
     1,
     6,
     {BY_US(SUBMITTED), ANSWER_WITH_ACTION, CALLBACK(DECLINED), CALLBACK(DECLINED),
      CALLBACK(SUCCEEDED), CALLBACK(PROCESSING)}},
    {"failed for good: the next attempt begins once",
     PAY_ATTEMPT_FAILED,
     PAY_ORDER_PROCESSING,
     2,
     6,
     {BY_US(SUBMITTED), BY_US(UNKNOWN), CALLBACK(FAILED), CALLBACK(FAILED), CALLBACK(PROCESSING),
      QUERY(FAILED)}},
    {"canceled at the PSP: the next attempt begins once",
     PAY_ATTEMPT_CANCELED,
     PAY_ORDER_PROCESSING,
     2,
     5,
     {BY_US(SUBMITTED), CALLBACK(ACTION_REQUIRED), CALLBACK(CANCELED), CALLBACK(CANCELED),
      BY_US(UNKNOWN)}},
};

static struct world world;

/* ------------------------------------------------------------------------------------ one order */

/* The same fact has the same business key, whichever way it comes. */
static void arrive(struct world *w, const struct arrival *arrival)
{
    char cause[PAY_CAUSE_SIZE];

    w->now_us += SECOND;
    if (arrival->is_command) {
        world_command(w, PAY_CMD_START_ATTEMPT);
        w->input.routes = &w->offered[1];
        w->input.route_count = 1;
        world_decide_command(w);
        assert_int_equal(w->out.verdict, PAY_VERDICT_REJECT);
        return;
    }
    struct pay_event *event = world_event(w, arrival->type, 1);
    if (arrival->evidence > PAY_EVIDENCE_LOCAL) {
        event->provider_payment_id = PAY_STR("pi_1");
    }
    event->action.is_set = arrival->hands_out;
    if (arrival->job != NULL) {
        world_answers(w, arrival->job, arrival->query_by, w->now_us);
    }
    (void)snprintf(cause, sizeof cause, "pi_1|%s", pay_event_type_name(arrival->type));
    w->input.cause = pay_str_of(cause);
    world_decide(w, arrival->evidence);
}

static bool is_end(enum pay_fact_type type)
{
    return type == PAY_FACT_PAYMENT_SUCCEEDED || type == PAY_FACT_PAYMENT_FAILED ||
           type == PAY_FACT_PAYMENT_CANCELED || type == PAY_FACT_PAYMENT_EXPIRED ||
           type == PAY_FACT_ATTEMPT_FAILED;
}

static void collect(const struct world *w, struct outcome *outcome, int64_t *sequence)
{
    for (size_t i = 0; i < w->out.effect_count; i++) {
        const struct pay_effect *effect = &w->out.effects[i];
        if (effect->kind != PAY_EFFECT_FACT) {
            continue;
        }
        assert_int_equal(effect->as.fact.sequence, *sequence + 1);
        *sequence = effect->as.fact.sequence;
        if (is_end(effect->as.fact.type)) {
            assert_in_range(outcome->end_count, 0, ENDS_MAX - 1);
            struct published *end = &outcome->ends[outcome->end_count++];
            end->type = effect->as.fact.type;
            memcpy(end->event_id, effect->as.fact.event_id, sizeof end->event_id);
        }
    }
}

static void play(const struct scenario *scenario, const size_t order[INPUTS_MAX],
                 struct outcome *outcome)
{
    struct world *w = &world;

    *outcome = (struct outcome){.end_count = 0};
    world_start(w);
    world_pass_gate(w, ".SUBMIT", 1);
    int64_t sequence = w->snap.order.event_sequence;
    for (size_t i = 0; i < scenario->count; i++) {
        arrive(w, &scenario->arrivals[order[i]]);
        collect(w, outcome, &sequence);
    }
    outcome->amounts = world_attempt(w, 1)->amounts;
    assert_int_equal(world_attempt(w, 1)->status, scenario->ends_as);
    assert_int_equal(w->snap.order.status, scenario->order);
    assert_int_equal(w->snap.attempt_count, scenario->attempt_count);
    assert_int_equal(w->snap.case_count, 0);
}

/* ---------------------------------------------------------------------------------- every order */

static void compare(const struct outcome *a, const struct outcome *b)
{
    assert_memory_equal(&a->amounts, &b->amounts, sizeof a->amounts);
    assert_int_equal(a->end_count, b->end_count);
    for (size_t i = 0; i < a->end_count; i++) {
        assert_int_equal(a->ends[i].type, b->ends[i].type);
        assert_string_equal(a->ends[i].event_id, b->ends[i].event_id);
    }
}

static void every_order_ends_the_same(const struct scenario *scenario)
{
    size_t order[INPUTS_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct outcome first;
    struct outcome other;
    unsigned count = 1;

    play(scenario, order, &first);
    assert_int_equal(first.end_count, 1);
    while (permute(order, scenario->count)) {
        play(scenario, order, &other);
        compare(&first, &other);
        count++;
    }
    print_message("%s: %u orders\n", scenario->name, count);
}

static void permutations_end_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        every_order_ends_the_same(&scenarios[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(permutations_end_the_same)};
    return cmocka_run_group_tests_name("permutations", tests, NULL, NULL);
}
