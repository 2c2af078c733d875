/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: for each payment method (immediate, redirect and 3DS, authorize and capture, QR code) the
 * order in which its realistic inputs arrive decides nothing: our own word, the answer, callbacks
 * with duplicates, the query, the time-out; and so for its refund, its capture, its dispute. Every
 * permutation ends in the same money and the same published ends. The queries that the core asks
 * for on the way are answered at the end with the truth.
 */
#include "tests/property/permute.h"
#include "tests/unit/core/world.h"

#include <stdio.h>

#define ENDS_MAX 8
#define REFUNDED INT64_C(7000)
#define CAPTURED INT64_C(6000)

/* What is done before the inputs arrive. */
enum setup {
    SUBMITTED_AUTOMATIC, /* The create has left. */
    SUBMITTED_MANUAL,
    REFUND_LEFT,  /* Paid, and a refund has left. */
    CAPTURE_LEFT, /* Authorized, and a capture of a part has left. */
    PAID,
};

struct arrival {
    enum pay_event_type type;
    enum pay_evidence evidence;
    const char *action;    /* "R01": it names this one. */
    const char *reference; /* What the PSP calls it. */
    int64_t amount_minor;  /* 0: the attempt's; -1: none. */
    bool answers, hands_out;
};

struct scenario {
    const char *name;
    enum setup setup;
    struct pay_amounts amounts;
    enum pay_order_status order;
    int ends;           /* Published ends; 0: only the money is compared. */
    bool is_other_name; /* The same fact under two business keys: ids are not compared. */
    size_t count;
    struct arrival arrivals[PERMUTE_MAX];
    struct arrival truth; /* What a query says of the action. */
};

struct outcome {
    enum pay_fact_type types[ENDS_MAX];
    char ids[ENDS_MAX][PAY_EVENT_ID_SIZE];
    size_t count;
};

#define US(event) \
    {.type = PAY_EV_##event, .evidence = PAY_EVIDENCE_LOCAL, .amount_minor = -1, .answers = true}
#define SYNC(event, ...) \
    {.type = PAY_EV_##event, .evidence = PAY_EVIDENCE_SYNC_RESPONSE, .answers = true, __VA_ARGS__}
#define HOOK(event, ...) {.type = PAY_EV_##event, .evidence = PAY_EVIDENCE_WEBHOOK, __VA_ARGS__}
#define ASKED(event, ...) {.type = PAY_EV_##event, .evidence = PAY_EVIDENCE_QUERY, __VA_ARGS__}
#define PLAIN .action = NULL
#define R01 .action = "R01", .amount_minor = REFUNDED
#define RE .reference = "re_1"
#define C01 .action = "C01", .amount_minor = CAPTURED
#define CP .reference = "cp_1"
#define DP .reference = "dp_1", .amount_minor = 4000

/* clang-format off */
static const struct scenario scenarios[] = {
    {"immediate", SUBMITTED_AUTOMATIC, {10000, 0, 10000, 0, 0, 0}, PAY_ORDER_SUCCEEDED, 1, false, 7,
     {US(ATTEMPT_SUBMITTED), US(ATTEMPT_UNKNOWN), SYNC(ATTEMPT_SUCCEEDED, PLAIN), HOOK(ATTEMPT_SUCCEEDED, PLAIN),
      HOOK(ATTEMPT_SUCCEEDED, PLAIN), HOOK(ATTEMPT_PROCESSING, PLAIN), ASKED(ATTEMPT_SUCCEEDED, PLAIN)}, {.amount_minor = -1}},
    {"redirect and 3DS", SUBMITTED_AUTOMATIC, {10000, 0, 10000, 0, 0, 0}, PAY_ORDER_SUCCEEDED, 1, false, 7,
     {US(ATTEMPT_SUBMITTED), SYNC(ATTEMPT_ACTION_REQUIRED, .hands_out = true), HOOK(ATTEMPT_ACTION_REQUIRED, PLAIN),
      HOOK(ATTEMPT_DECLINED, PLAIN), HOOK(ATTEMPT_PROCESSING, PLAIN), HOOK(ATTEMPT_SUCCEEDED, PLAIN), HOOK(ATTEMPT_SUCCEEDED, PLAIN)},
     {.amount_minor = -1}},
    {"QR code", SUBMITTED_AUTOMATIC, {10000, 0, 10000, 0, 0, 0}, PAY_ORDER_SUCCEEDED, 1, false, 7,
     {US(ATTEMPT_SUBMITTED), US(ATTEMPT_UNKNOWN), SYNC(ATTEMPT_ACTION_REQUIRED, .hands_out = true),
      HOOK(ATTEMPT_ACTION_REQUIRED, PLAIN), HOOK(ATTEMPT_SUCCEEDED, PLAIN), HOOK(ATTEMPT_SUCCEEDED, PLAIN), ASKED(ATTEMPT_SUCCEEDED, PLAIN)},
     {.amount_minor = -1}},
    {"authorize", SUBMITTED_MANUAL, {10000, 0, 0, 0, 0, 0}, PAY_ORDER_AUTHORIZED, 0, false, 6,
     {US(ATTEMPT_SUBMITTED), US(ATTEMPT_UNKNOWN), SYNC(ATTEMPT_AUTHORIZED, PLAIN), HOOK(ATTEMPT_AUTHORIZED, PLAIN),
      HOOK(ATTEMPT_AUTHORIZED, PLAIN), HOOK(ATTEMPT_PROCESSING, PLAIN)}, {.amount_minor = -1}},
    {"authorize, and captured in the console before we heard of it", SUBMITTED_MANUAL, {10000, 0, 6000, 0, 0, 0},
     PAY_ORDER_SUCCEEDED, 2, false, 6,
     {US(ATTEMPT_SUBMITTED), US(ATTEMPT_UNKNOWN), SYNC(ATTEMPT_AUTHORIZED, PLAIN), HOOK(ATTEMPT_AUTHORIZED, PLAIN),
      HOOK(CAPTURE_SUCCEEDED, CP, .amount_minor = CAPTURED), HOOK(CAPTURE_SUCCEEDED, CP, .amount_minor = CAPTURED)},
     {.amount_minor = -1}},
    {"capture of a part", CAPTURE_LEFT, {10000, 0, 6000, 0, 0, 0}, PAY_ORDER_SUCCEEDED, 2, false, 7,
     {US(CAPTURE_SUBMITTED), US(CAPTURE_UNKNOWN), SYNC(CAPTURE_PROCESSING, C01, CP), HOOK(CAPTURE_PROCESSING, C01, CP),
      HOOK(CAPTURE_SUCCEEDED, C01, CP), HOOK(CAPTURE_SUCCEEDED, C01, CP), ASKED(CAPTURE_SUCCEEDED, C01, CP)},
     ASKED(CAPTURE_SUCCEEDED, C01, CP)},
    {"capture of a part, told under three names (D3)", CAPTURE_LEFT, {10000, 0, 6000, 0, 0, 0}, PAY_ORDER_SUCCEEDED, 2,
     true, 6,
     {US(CAPTURE_SUBMITTED), HOOK(CAPTURE_SUCCEEDED, C01, CP), HOOK(CAPTURE_SUCCEEDED, CP, .amount_minor = CAPTURED),
      HOOK(ATTEMPT_SUCCEEDED, .amount_minor = CAPTURED), HOOK(ATTEMPT_SUCCEEDED, .amount_minor = CAPTURED),
      US(CAPTURE_UNKNOWN)}, ASKED(CAPTURE_SUCCEEDED, C01, CP)},
    {"refund", REFUND_LEFT, {10000, 0, 10000, 0, 7000, 0}, PAY_ORDER_SUCCEEDED, 1, false, 7,
     {US(REFUND_SUBMITTED), US(REFUND_UNKNOWN), SYNC(REFUND_PROCESSING, R01, RE), HOOK(REFUND_PROCESSING, R01, RE),
      HOOK(REFUND_SUCCEEDED, R01, RE), HOOK(REFUND_SUCCEEDED, R01, RE), HOOK(REFUND_SUM, .amount_minor = REFUNDED)},
     ASKED(REFUND_SUCCEEDED, R01, RE)},
    {"refund that fails after it succeeded", REFUND_LEFT, {10000, 0, 10000, 0, 0, 0}, PAY_ORDER_SUCCEEDED, 0, false, 6,
     {US(REFUND_SUBMITTED), SYNC(REFUND_PROCESSING, R01, RE), HOOK(REFUND_SUCCEEDED, R01, RE),
      HOOK(REFUND_SUCCEEDED, R01, RE), HOOK(REFUND_FAILED, R01, RE), HOOK(REFUND_FAILED, R01, RE)},
     ASKED(REFUND_FAILED, R01, RE)},
    {"refund made in the console, and its sum (D7)", PAID, {10000, 0, 10000, 0, 7000, 0}, PAY_ORDER_SUCCEEDED, 1, true, 5,
     {HOOK(REFUND_PROCESSING, RE, .amount_minor = REFUNDED), HOOK(REFUND_SUCCEEDED, RE, .amount_minor = REFUNDED),
      HOOK(REFUND_SUCCEEDED, RE, .amount_minor = REFUNDED), HOOK(REFUND_SUM, .amount_minor = REFUNDED),
      ASKED(REFUND_SUM, .amount_minor = REFUNDED)}, ASKED(REFUND_SUCCEEDED, RE, .amount_minor = REFUNDED)},
    {"dispute", PAID, {10000, 0, 10000, 0, 0, 0}, PAY_ORDER_SUCCEEDED, 1, false, 6,
     {HOOK(DISPUTE_OPENED, DP), HOOK(DISPUTE_UNDER_REVIEW, DP), HOOK(DISPUTE_FUNDS_WITHDRAWN, DP),
      HOOK(DISPUTE_FUNDS_WITHDRAWN, DP), HOOK(DISPUTE_FUNDS_REINSTATED, DP), HOOK(DISPUTE_WON, DP)},
     {.amount_minor = -1}},
};
/* clang-format on */

static struct world world;

/* ------------------------------------------------------------------------------------- one order
 */

static void set_up(struct world *w, enum setup setup)
{
    switch (setup) {
    case REFUND_LEFT:
        world_paid(w);
        world_money_command(w, PAY_CMD_REQUEST_REFUND, REFUNDED);
        world_action_pass(w, "R01.REFUND");
        break;
    case CAPTURE_LEFT:
        world_authorized(w);
        world_money_command(w, PAY_CMD_CAPTURE, CAPTURED);
        world_action_pass(w, "C01.CAPTURE");
        break;
    case PAID:
        world_paid(w);
        break;
    default:
        if (setup == SUBMITTED_MANUAL) {
            world_start_manual(w);
        } else {
            world_start(w);
        }
        world_keep_actions(w);
        world_pass_gate(w, ".SUBMIT", 1);
        break;
    }
}

static const char *job_of(enum setup setup)
{
    static const char *const jobs[] = {
        [SUBMITTED_AUTOMATIC] = "A01.SUBMIT",
        [SUBMITTED_MANUAL] = "A01.SUBMIT",
        [REFUND_LEFT] = "R01.REFUND",
        [CAPTURE_LEFT] = "C01.CAPTURE",
        [PAID] = "A01.SUBMIT",
    };
    return jobs[setup];
}

/* The same fact has the same business key, whichever way it comes. */
static void arrive(struct world *w, const struct scenario *s, const struct arrival *arrival)
{
    char cause[PAY_CAUSE_SIZE];
    const char *name = arrival->reference != NULL ? arrival->reference : "";

    w->now_us += SECOND;
    struct pay_event *event = world_event(w, arrival->type, 1);
    if (arrival->evidence > PAY_EVIDENCE_LOCAL) {
        event->provider_payment_id = PAY_STR("pi_1");
    }
    event->provider_action_id =
        arrival->reference != NULL ? pay_str_of(arrival->reference) : (struct pay_str){NULL, 0};
    event->action_id =
        arrival->action != NULL ? pay_str_of(world_id(arrival->action)) : (struct pay_str){NULL, 0};
    event->has_amount = arrival->amount_minor >= 0;
    if (arrival->amount_minor > 0) {
        event->amount.amount_minor = arrival->amount_minor;
    }
    event->action.is_set = arrival->hands_out;
    if (arrival->answers) {
        world_action_answers(w, job_of(s->setup), PAY_QUERY_BY_NONE, 0);
    }
    (void)snprintf(cause, sizeof cause, "pi_1|%s|%s", name, pay_event_type_name(arrival->type));
    w->input.cause = pay_str_of(cause);
    world_decide(w, arrival->evidence);
}

static bool is_end(enum pay_fact_type type)
{
    static const enum pay_fact_type ends[] = {
        PAY_FACT_PAYMENT_SUCCEEDED, PAY_FACT_PAYMENT_FAILED,   PAY_FACT_PAYMENT_CANCELED,
        PAY_FACT_PAYMENT_EXPIRED,   PAY_FACT_ATTEMPT_FAILED,   PAY_FACT_CAPTURE_SUCCEEDED,
        PAY_FACT_CAPTURE_FAILED,    PAY_FACT_CAPTURE_REVERSED, PAY_FACT_REFUND_SUCCEEDED,
        PAY_FACT_REFUND_FAILED,     PAY_FACT_REFUND_REVERSED,  PAY_FACT_DISPUTE_CLOSED,
    };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (type == ends[i]) {
            return true;
        }
    }
    return false;
}

/* @return whether the decision asked about the action. */
static bool collect(const struct world *w, struct outcome *outcome, int64_t *sequence)
{
    for (size_t i = 0; i < w->out.effect_count; i++) {
        const struct pay_effect *effect = &w->out.effects[i];
        if (effect->kind != PAY_EFFECT_FACT) {
            continue;
        }
        assert_int_equal(effect->as.fact.sequence, *sequence + 1);
        *sequence = effect->as.fact.sequence;
        if (is_end(effect->as.fact.type)) {
            assert_true(outcome->count < ENDS_MAX);
            outcome->types[outcome->count] = effect->as.fact.type;
            memcpy(outcome->ids[outcome->count++], effect->as.fact.event_id, PAY_EVENT_ID_SIZE);
        }
    }
    return world_count_jobs(w, PAY_JOB_QUERY_REFUND) + world_count_jobs(w, PAY_JOB_QUERY_CAPTURE) >
           0;
}

static void play(const struct scenario *s, const size_t order[PERMUTE_MAX], struct outcome *outcome)
{
    struct world *w = &world;
    bool asks = false;

    *outcome = (struct outcome){.count = 0};
    set_up(w, s->setup);
    int64_t sequence = w->snap.order.event_sequence;
    for (size_t i = 0; i < s->count; i++) {
        arrive(w, s, &s->arrivals[order[i]]);
        asks |= collect(w, outcome, &sequence);
    }
    if (asks && s->truth.amount_minor >= 0) {
        arrive(w, s, &s->truth);
        (void)collect(w, outcome, &sequence);
    }
    const struct pay_amounts *a = &world_attempt(w, 1)->amounts;
    assert_memory_equal(a, &s->amounts, sizeof *a);
    assert_int_equal(w->snap.order.status, s->order);
    assert_int_equal(w->snap.attempt_count, 1);
    assert_int_equal(w->snap.case_count, 0);
    assert_true(w->snap.refund_count <= 1 && w->snap.capture_count <= 1);
}

/* ----------------------------------------------------------------------------------- every order
 */

static void compare(const struct scenario *s, const struct outcome *a, const struct outcome *b)
{
    if (s->ends == 0) {
        return;
    }
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_int_equal(a->types[i], b->types[i]);
        if (!s->is_other_name) {
            assert_string_equal(a->ids[i], b->ids[i]);
        }
    }
}

static void permutations_end_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        const struct scenario *s = &scenarios[i];
        size_t order[PERMUTE_MAX] = {0, 1, 2, 3, 4, 5, 6, 7};
        struct outcome first;
        struct outcome other;
        unsigned count = 1;

        print_message("%s: ", s->name);
        play(s, order, &first);
        assert_int_equal(first.count == (size_t)s->ends || s->ends == 0, 1);
        while (permute(order, s->count)) {
            play(s, order, &other);
            compare(s, &first, &other);
            count++;
        }
        print_message("%u orders\n", count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(permutations_end_the_same)};
    return cmocka_run_group_tests_name("method_permutations", tests, NULL, NULL);
}
