/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: each command's effect, each refusal with its reason and its number, and that a refusal
 * touches nothing else.
 */
#include "tests/unit/core/world.h"

static struct world world;

static void offer(struct world *w, int route)
{
    w->input.routes = &w->offered[route];
    w->input.route_count = 1;
}

static void run_command(struct world *w, enum pay_command_type type, int route)
{
    world_command(w, type);
    if (route >= 0) {
        offer(w, route);
    }
    world_decide_command(w);
}

static void assert_refused(struct world *w, const char *reason, int64_t sequence)
{
    const struct pay_fact *fact = world_fact(w, PAY_FACT_COMMAND_REJECTED);
    assert_verdict(w, REJECT, reason);
    assert_non_null(fact);
    assert_string_equal(fact->reason_code, reason);
    assert_int_equal(fact->sequence, sequence);
    assert_string_equal(fact->aggregate_id, w->cause);
    assert_int_equal(w->out.effect_count, 1); /* The answer and nothing else. */
    assert_int_equal(w->out.history_count, 1);
    assert_int_equal(w->out.history[0].aggregate, PAY_AGGREGATE_COMMAND);
}

/* --------------------------------------------------------------------------------- CREATE_PAYMENT
 */

static void create_without_start_waits_without_an_attempt(void **state)
{
    (void)state;
    struct world *w = &world;

    world_init(w);
    world_command(w, PAY_CMD_CREATE_PAYMENT)->create_payment.start = false;
    world_decide_command(w);
    assert_order(w, CREATED);
    assert_int_equal(w->snap.attempt_count, 0);
    assert_int_equal(w->snap.order.change, PAY_ROW_INSERTED);
    assert_string_equal(world_fact(w, PAY_FACT_COMMAND_ACCEPTED)->result_id, WORLD_PAYMENT);
    assert_int_equal(w->snap.order.failover_until_us, w->now_us + WORLD_FAILOVER);
    assert_int_equal(w->snap.order.expires_at_us, w->now_us + WORLD_ORDER_LIFETIME);
    assert_int_equal(w->snap.route_count, 3);
    assert_string_equal(w->snap.order.created_by, "shop");

    run_command(w, PAY_CMD_START_ATTEMPT, -1);
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_order(w, PROCESSING);
    assert_int_equal(world_attempt(w, 1)->route_no, 0);
}

static void create_with_every_route_paused_is_an_order_without_an_attempt(void **state)
{
    (void)state;
    struct world *w = &world;

    world_init(w);
    for (int i = 0; i < 3; i++) {
        w->offered[i].paused = true;
    }
    run_command(w, PAY_CMD_CREATE_PAYMENT, -1);
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_order(w, CREATED);
    assert_string_equal(w->snap.order.reason_code, "ROUTE_PAUSED");
}

typedef void spoil_fn(struct world *w);

static void spoil_id(struct world *w)
{
    w->command.payment_id = PAY_STR("8ZZZZZZZZZZZZZZZZZZZZZZZZZ");
}
static void spoil_id_of_another(struct world *w)
{
    w->command.payment_id = PAY_STR(WORLD_OTHER_PAYMENT);
}
static void spoil_order_no(struct world *w)
{
    w->command.create_payment.merchant_order_no = PAY_STR("");
}
static void spoil_merchant(struct world *w)
{
    w->command.merchant_id = PAY_STR("");
}
static void spoil_order_no_length(struct world *w)
{
    static char text[PAY_ORDER_NO_SIZE];
    memset(text, 'x', sizeof text);
    w->command.create_payment.merchant_order_no = (struct pay_str){text, sizeof text};
}
static void spoil_taken(struct world *w)
{
    w->snap.order_no_taken = true;
}
static void spoil_mode(struct world *w)
{
    w->command.create_payment.capture_mode = PAY_CAPTURE_UNRECOGNIZED;
}
static void spoil_manual(struct world *w)
{
    w->command.create_payment.capture_mode = PAY_CAPTURE_MANUAL;
    w->input.policy.manual_capture = false;
}
static void spoil_expiry(struct world *w)
{
    w->command.create_payment.expires_at_us = w->now_us;
}
static void spoil_routes(struct world *w)
{
    w->input.route_count = 0;
}
static void spoil_route_limit(struct world *w)
{
    w->input.route_count = PAY_ROUTES_MAX + 1;
}
static void spoil_currency(struct world *w)
{
    memcpy(w->command.create_payment.amount.currency, "XXX", 4);
}
static void spoil_zero(struct world *w)
{
    w->command.create_payment.amount.amount_minor = 0;
}
static void spoil_negative(struct world *w)
{
    w->command.create_payment.amount.amount_minor = -1;
}
static void spoil_no_limit_given(struct world *w)
{
    w->input.policy.amount_max_minor = 0;
}
static void spoil_limit(struct world *w)
{
    w->input.policy.amount_max_minor = WORLD_AMOUNT - 1;
}

static void create_is_refused_for_each_reason_and_makes_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *reason;
        spoil_fn *spoil;
    } rows[] = {
        {"INVALID_PAYMENT_ID", spoil_id},
        {"INVALID_PAYMENT_ID", spoil_id_of_another},
        {"INVALID_ORDER_NO", spoil_order_no},
        {"INVALID_ORDER_NO", spoil_order_no_length},
        {"INVALID_MERCHANT", spoil_merchant},
        {"DUPLICATE_ORDER_NO", spoil_taken},
        {"INVALID_CAPTURE_MODE", spoil_mode},
        {"NOT_SUPPORTED", spoil_manual},
        {"ALREADY_EXPIRED", spoil_expiry},
        {"NO_ROUTE", spoil_routes},
        {"LIMIT", spoil_route_limit},
        {"INVALID_CURRENCY", spoil_currency},
        {"INVALID_AMOUNT", spoil_zero},
        {"INVALID_AMOUNT", spoil_negative},
        {"CURRENCY_NOT_ALLOWED", spoil_no_limit_given},
        {"AMOUNT_LIMIT", spoil_limit},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world *w = &world;
        world_init(w);
        world_command(w, PAY_CMD_CREATE_PAYMENT);
        rows[i].spoil(w);
        world_decide_command(w);
        assert_refused(w, rows[i].reason, 0);
        assert_false(w->snap.order.exists);
        assert_int_equal(w->snap.order.change, PAY_ROW_SAME);
        assert_int_equal(w->snap.route_count, 0);
    }
}

/* At the edge of every place: sixteen routes, the longest number, a caller too long to be kept. */
static void create_fills_what_there_is_room_for(void **state)
{
    (void)state;
    static char text[PAY_ORDER_NO_SIZE + 200];
    static struct pay_route routes[PAY_ROUTES_MAX + 1];
    struct world *w = &world;

    memset(text, 'x', sizeof text);
    world_init(w);
    w->snap.routes = routes;
    struct pay_command *command = world_command(w, PAY_CMD_CREATE_PAYMENT);
    command->create_payment.merchant_order_no = (struct pay_str){text, PAY_ORDER_NO_SIZE - 1};
    command->caller = (struct pay_str){text, sizeof text};
    w->input.route_count = PAY_ROUTES_MAX;
    world_decide_command(w);
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_int_equal(strlen(w->snap.order.merchant_order_no), PAY_ORDER_NO_SIZE - 1);
    assert_string_equal(w->snap.order.created_by, "");
    assert_int_equal(w->snap.route_count, PAY_ROUTES_MAX);
    assert_string_equal(routes[PAY_ROUTES_MAX - 1].psp, "psp15");
    assert_string_equal(routes[PAY_ROUTES_MAX].psp, ""); /* Not the payment's. */
}

static void create_again_is_refused_under_the_payments_number(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    const int64_t sequence = w->snap.order.event_sequence;
    run_command(w, PAY_CMD_CREATE_PAYMENT, -1);
    assert_refused(w, "PAYMENT_EXISTS", sequence + 1);
    assert_int_equal(w->snap.order.change, PAY_ROW_UPDATED); /* Its sequence. */
}

/* ---------------------------------------------------------------------------- foreign and unknown
 */

static void another_merchants_payment_is_not_touched_or_shown(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int type = 0; type < PAY_CMD_COUNT; type++) {
        world_start(w);
        world_command(w, (enum pay_command_type)type)->merchant_id = PAY_STR("merchant-2");
        world_decide_command(w);
        assert_refused(w, "FOREIGN_MERCHANT", 0);
        assert_true(w->out.security);
        assert_false(world_fact(w, PAY_FACT_COMMAND_REJECTED)->has_order_status);
        assert_false(world_fact(w, PAY_FACT_COMMAND_REJECTED)->has_totals);
        assert_int_equal(w->snap.order.change, PAY_ROW_SAME);
        assert_true(w->out.history[0].outside);
    }
}

static void a_command_for_an_unknown_payment_is_refused_at_once(void **state)
{
    (void)state;
    static const enum pay_command_type types[] = {PAY_CMD_START_ATTEMPT, PAY_CMD_CHANGE_METHOD,
                                                  PAY_CMD_CANCEL_PAYMENT, PAY_CMD_CONTINUE_ATTEMPT};
    for (size_t i = 0; i < 4; i++) {
        world_init(&world);
        run_command(&world, types[i], 0);
        assert_refused(&world, "UNKNOWN_PAYMENT", 0);
        assert_false(world.out.history[0].outside); /* Whose else could it be? */
        assert_false(world.out.orphan);
    }
}

static void every_other_command_is_not_supported(void **state)
{
    (void)state;
    for (int type = 0; type <= PAY_CMD_COUNT; type++) {
        const bool is_supported = type == PAY_CMD_CREATE_PAYMENT || type == PAY_CMD_START_ATTEMPT ||
                                  type == PAY_CMD_CHANGE_METHOD || type == PAY_CMD_CANCEL_PAYMENT ||
                                  type == PAY_CMD_CONTINUE_ATTEMPT;
        world_start(&world);
        run_command(&world, (enum pay_command_type)type, 0);
        assert_int_equal(strcmp(world.out.reason_code, "NOT_SUPPORTED") == 0, !is_supported);
    }
}

static void a_refusal_found_before_is_the_answer(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_command(w, PAY_CMD_CANCEL_PAYMENT);
    w->input.refusal = PAY_STR("UNKNOWN_ROUTE");
    world_decide_command(w);
    assert_refused(w, "UNKNOWN_ROUTE", w->snap.order.event_sequence);
    assert_false(w->out.history[0].outside);
    assert_true(w->out.security);
    assert_int_equal(w->snap.order.intent, PAY_INTENT_NONE);
}

static void a_rejected_command_is_answered_and_touches_no_payment(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int type = 0; type < PAY_CMD_COUNT; type++) {
        for (int own = 0; own <= 1; own++) { /* The merchant that it names may be the payment's. */
            world_start(w);
            const int64_t sequence = w->snap.order.event_sequence;
            world_command(w, (enum pay_command_type)type);
            if (own == 0) {
                w->command.merchant_id = PAY_STR("merchant-2");
            }
            w->input.kind = PAY_INPUT_REJECTED_COMMAND;
            w->input.refusal = own == 0 ? PAY_STR("KEY_REVOKED") : (struct pay_str){NULL, 0};
            world_decide_command(w);
            assert_refused(w, own == 0 ? "KEY_REVOKED" : "NOT_ALLOWED", 0);
            assert_true(w->out.security);
            assert_true(w->out.history[0].outside);
            assert_false(world_fact(w, PAY_FACT_COMMAND_REJECTED)->has_order_status);
            assert_false(world_fact(w, PAY_FACT_COMMAND_REJECTED)->has_totals);
            assert_int_equal(w->snap.order.change, PAY_ROW_SAME);
            assert_int_equal(w->snap.order.event_sequence, sequence);
        }
    }
}

/* ---------------------------------------------------------------------------------- START_ATTEMPT
 */

static void start_takes_the_named_route_and_opens_the_window_again(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    w->snap.order.failover_until_us = w->now_us;
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    w->now_us += 100 * SECOND;
    run_command(w, PAY_CMD_START_ATTEMPT, 5);
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_int_equal(w->snap.route_count, 4);
    assert_int_equal(world_attempt(w, 2)->route_no, 3);
    assert_string_equal(world_attempt(w, 2)->psp, "psp5");
    assert_int_equal(w->snap.order.failover_until_us, w->now_us + WORLD_FAILOVER);
    assert_string_equal(world_fact(w, PAY_FACT_COMMAND_ACCEPTED)->result_id, WORLD_PAYMENT "A02");
}

/* The next of the payment's routes, in a window that the command opens itself. */
static void start_of_no_named_route_takes_the_next(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    w->snap.order.failover_until_us = w->now_us;
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    w->now_us += 100 * SECOND;
    run_command(w, PAY_CMD_START_ATTEMPT, -1);
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_int_equal(world_attempt(w, 2)->route_no, 1);
}

static void a_refused_start_leaves_no_route_and_no_window(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    const int64_t until_us = w->snap.order.failover_until_us;
    w->now_us += 100 * SECOND;
    run_command(w, PAY_CMD_START_ATTEMPT, 5);
    assert_verdict(w, REJECT, "ATTEMPT_LIVE");
    assert_int_equal(w->snap.route_count, 3);
    assert_int_equal(w->snap.order.failover_until_us, until_us);
}

static void the_seventeenth_route_is_refused(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    w->snap.order.failover_until_us = w->now_us;
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    for (int i = 3; i < PAY_ROUTES_MAX; i++) {
        w->routes[i] = w->offered[i];
    }
    w->snap.route_count = PAY_ROUTES_MAX;
    run_command(w, PAY_CMD_START_ATTEMPT, PAY_ROUTES_MAX);
    assert_verdict(w, REJECT, "LIMIT");
    run_command(w, PAY_CMD_START_ATTEMPT, 4); /* One of them again is not a new one. */
    assert_verdict(w, APPLY, "ACCEPTED");
}

static void the_hundredth_attempt_is_refused(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    w->snap.order.failover_until_us = w->now_us;
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    w->snap.order.attempt_count = PAY_ATTEMPTS_MAX;
    run_command(w, PAY_CMD_START_ATTEMPT, 1);
    assert_verdict(w, REJECT, "LIMIT");
}

/* ---------------------------------------------------------------------------------- CANCEL_PAYMENT
 */

static void cancel_without_a_live_attempt_cancels_at_once(void **state)
{
    (void)state;
    struct world *w = &world;

    world_init(w);
    world_command(w, PAY_CMD_CREATE_PAYMENT)->create_payment.start = false;
    world_decide_command(w);
    run_command(w, PAY_CMD_CANCEL_PAYMENT, -1);
    assert_order(w, CANCELED);
    assert_int_equal(world_count_facts(w, PAY_FACT_PAYMENT_CANCELED), 1);
    run_command(w, PAY_CMD_CANCEL_PAYMENT, -1);
    assert_verdict(w, REJECT, "ORDER_FINAL");
}

static void cancel_of_an_unsent_attempt_ends_it_by_its_gate(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    run_command(w, PAY_CMD_CANCEL_PAYMENT, -1);
    assert_status(w, 1, FAILED);
    assert_order(w, CANCELED);
    assert_int_equal(world_gate(w, ".SUBMIT", 1)->change, PAY_ROW_UPDATED);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL) + world_count_jobs(w, PAY_JOB_QUERY), 0);
}

static void cancel_of_a_sent_attempt_that_is_not_known_asks_first(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_pass_gate(w, ".SUBMIT", 1);
    run_command(w, PAY_CMD_CANCEL_PAYMENT, -1);
    assert_status(w, 1, CREATED); /* A send in flight counts as sent. */
    assert_true(world_gate(w, ".SUBMIT", 1)->closed_at_us != 0);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 0);
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
    assert_order(w, PROCESSING);

    world_event(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, 1)->action.is_set = true;
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE); /* Known now: canceled now. */
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
    assert_int_equal(world_attempt(w, 1)->action_no, 0); /* No page to pay on any more. */
    assert_false(world_fact(w, PAY_FACT_PAYMENT_ACTION_REQUIRED)->has_action);
}

static void a_freed_gate_that_was_closed_is_not_sent(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_pass_gate(w, ".SUBMIT", 1);
    run_command(w, PAY_CMD_CANCEL_PAYMENT, -1);
    world_gate(w, ".SUBMIT", 1)->sending_at_us = 0; /* The send certainly did not leave. */
    world_say(w, PAY_EV_ATTEMPT_NOT_SENT, 1, PAY_EVIDENCE_LOCAL);
    assert_status(w, 1, FAILED);
    assert_order(w, CANCELED);
}

static void cancel_is_never_replaced(void **state)
{
    (void)state;
    struct world *w = &world;
    char by[PAY_CAUSE_SIZE];

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
    run_command(w, PAY_CMD_CANCEL_PAYMENT, -1);
    memcpy(by, w->snap.order.intent_command_id, sizeof by);
    assert_string_equal(by, w->cause);
    run_command(w, PAY_CMD_CHANGE_METHOD, 1);
    assert_verdict(w, REJECT, "INTENT_CANCEL");
    run_command(w, PAY_CMD_START_ATTEMPT, 1);
    assert_int_equal(w->out.verdict, PAY_VERDICT_REJECT);
    run_command(w, PAY_CMD_CANCEL_PAYMENT, -1);
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_string_equal(w->snap.order.intent_command_id, by);
    assert_int_equal(w->snap.order.intent, PAY_INTENT_CANCEL);
    world_say(w, PAY_EV_ATTEMPT_CANCELED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_order(w, CANCELED);
    run_command(w, PAY_CMD_START_ATTEMPT, 1);
    assert_verdict(w, REJECT, "ORDER_FINAL");
}

/* Why an attempt is being canceled: the merchant's word, or money elsewhere, over a deadline's. */
static void the_merchants_word_is_the_stronger_cause(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    world_wait_for(w, PAY_DEADLINE_ACTION, 1);
    assert_int_equal(world_attempt(w, 1)->cancel_cause, PAY_CANCEL_CAUSE_DEADLINE);
    run_command(w, PAY_CMD_CHANGE_METHOD, 1);
    assert_int_equal(world_attempt(w, 1)->cancel_cause, PAY_CANCEL_CAUSE_CHANGE_METHOD);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 0); /* It is on its way. */
    run_command(w, PAY_CMD_CANCEL_PAYMENT, -1);
    assert_int_equal(world_attempt(w, 1)->cancel_cause, PAY_CANCEL_CAUSE_MERCHANT);
    assert_int_equal(world_attempt(w, 1)->change, PAY_ROW_UPDATED);
    world_say(w, PAY_EV_ATTEMPT_DECLINED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_attempt(w, 1)->cancel_cause, PAY_CANCEL_CAUSE_MERCHANT);
}

static void cancel_loses_to_money(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
    run_command(w, PAY_CMD_CANCEL_PAYMENT, -1);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_order(w, SUCCEEDED);
}

static void no_cancel_or_change_under_a_capture(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start_manual(w);
    world_put(w, 1, PAY_ATTEMPT_AUTHORIZED);
    world_attempt(w, 1)->amounts.capture_reserved = 1;
    run_command(w, PAY_CMD_CANCEL_PAYMENT, -1);
    assert_verdict(w, REJECT, "CAPTURE_IN_FLIGHT");
    run_command(w, PAY_CMD_CHANGE_METHOD, 1);
    assert_verdict(w, REJECT, "CAPTURE_IN_FLIGHT");
    assert_int_equal(w->snap.order.intent, PAY_INTENT_NONE);
}

/* ----------------------------------------------------------------------------------- CHANGE_METHOD
 */

static void change_of_an_unsent_attempt_starts_the_next_at_once(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    run_command(w, PAY_CMD_CHANGE_METHOD, 2);
    assert_status(w, 1, FAILED);
    assert_status(w, 2, CREATED);
    assert_int_equal(world_attempt(w, 2)->route_no, 2);
    assert_int_equal(w->snap.order.intent, PAY_INTENT_NONE); /* Carried out. */
    assert_string_equal(w->snap.order.intent_command_id, "");
    assert_string_equal(world_fact(w, PAY_FACT_COMMAND_ACCEPTED)->result_id, WORLD_PAYMENT "A02");
}

static void change_waits_for_the_live_attempts_end(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    run_command(w, PAY_CMD_CHANGE_METHOD, 2);
    assert_int_equal(w->snap.attempt_count, 1);
    assert_int_equal(w->snap.order.intent, PAY_INTENT_CHANGE_METHOD);
    assert_int_equal(w->snap.order.intent_route_no, 2);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
    assert_string_equal(world_fact(w, PAY_FACT_COMMAND_ACCEPTED)->result_id, "");
    world_say(w, PAY_EV_ATTEMPT_CANCELED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_attempt(w, 2)->route_no, 2);
    assert_int_equal(w->snap.order.intent, PAY_INTENT_NONE);
    assert_order(w, PROCESSING);
}

static void change_that_has_become_impossible_goes_on_as_failed(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    run_command(w, PAY_CMD_CHANGE_METHOD, 2);
    w->routes[2].paused = true;
    world_say(w, PAY_EV_ATTEMPT_CANCELED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(w->snap.order.intent, PAY_INTENT_NONE);
    assert_int_equal(world_attempt(w, 2)->route_no, 1);
}

/* The method that was waited for is not taken after the one that was started instead. */
static void a_start_instead_ends_a_change_that_waits(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    run_command(w, PAY_CMD_CHANGE_METHOD, 2);
    assert_int_equal(w->snap.order.intent, PAY_INTENT_CHANGE_METHOD);
    world_attempt(w, 1)->live = false; /* An operator has overridden its block. */
    run_command(w, PAY_CMD_START_ATTEMPT, 1);
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_int_equal(w->snap.order.intent, PAY_INTENT_NONE);
    assert_int_equal(w->snap.order.intent_route_no, -1);
}

/* The case that a withdrawal opens is an effect of a command that was accepted. */
static void change_of_what_cannot_be_closed_is_a_case(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    w->routes[0].traits.can_cancel = false;
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    world_attempt(w, 1)->psp_expires_at_us = 0;
    run_command(w, PAY_CMD_CHANGE_METHOD, 2);
    assert_non_null(world_case(w, PAY_CASE_CANNOT_CLOSE));
    assert_int_equal(w->out.history[0].aggregate, PAY_AGGREGATE_CASE);
    assert_int_equal(w->out.history[0].verdict, PAY_VERDICT_APPLY);
}

static void change_to_the_first_route_is_a_change_too(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    world_put(w, 2, PAY_ATTEMPT_REQUIRES_ACTION);
    run_command(w, PAY_CMD_CHANGE_METHOD, 0);
    world_say(w, PAY_EV_ATTEMPT_CANCELED, 2, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_attempt(w, 3)->route_no, 0);
    assert_int_equal(w->snap.order.intent_route_no, -1);
}

static void change_without_a_live_attempt_starts_it(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    w->snap.order.failover_until_us = w->now_us;
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    run_command(w, PAY_CMD_CHANGE_METHOD, 0); /* The same method again is the merchant's choice. */
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_int_equal(world_attempt(w, 2)->route_no, 0);
}

/* -------------------------------------------------------------------------------- CONTINUE_ATTEMPT
 */

static void continue_with(struct world *w, struct pay_str attempt_id)
{
    world_command(w, PAY_CMD_CONTINUE_ATTEMPT)->attempt_id = attempt_id;
    world_decide_command(w);
}

static void D3_continue_and_approval_make_one_confirm_whichever_comes_first(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    w->routes[0].traits.confirm_moves_money = true;
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    continue_with(w, PAY_STR(WORLD_PAYMENT "A01"));
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_int_equal(world_count_jobs(w, PAY_JOB_CONFIRM), 1);
    assert_status(w, 1, REQUIRES_ACTION);
    continue_with(w, PAY_STR(WORLD_PAYMENT "A01"));
    assert_verdict(w, REJECT, "ALREADY_CONFIRMED");
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_WEBHOOK); /* D3: whichever comes first. */
    assert_int_equal(world_count_jobs(w, PAY_JOB_CONFIRM), 0);
}

static void continue_asks_where_the_psp_needs_no_confirm(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    w->now_us += 100 * SECOND;
    continue_with(w, PAY_STR(WORLD_PAYMENT "A01"));
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_int_equal(world_count_jobs(w, PAY_JOB_CONFIRM), 0);
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
    assert_int_equal(w->snap.order.failover_until_us, w->now_us + WORLD_FAILOVER);
}

static void continue_is_refused_for_each_reason(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    continue_with(w, PAY_STR(WORLD_PAYMENT "A02"));
    assert_verdict(w, REJECT, "UNKNOWN_ATTEMPT");
    continue_with(w, PAY_STR(WORLD_PAYMENT "A01"));
    assert_verdict(w, REJECT, "NO_ACTION_OPEN");
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    w->now_us = world_attempt(w, 1)->action_expires_at_us;
    continue_with(w, PAY_STR(WORLD_PAYMENT "A01"));
    assert_verdict(w, REJECT, "ACTION_EXPIRED");
    run_command(w, PAY_CMD_CANCEL_PAYMENT, -1);
    continue_with(w, PAY_STR(WORLD_PAYMENT "A01"));
    assert_verdict(w, REJECT, "INTENT");
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    continue_with(w, PAY_STR(WORLD_PAYMENT "A01"));
    assert_verdict(w, REJECT, "ORDER_FINAL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create_without_start_waits_without_an_attempt),
        cmocka_unit_test(create_with_every_route_paused_is_an_order_without_an_attempt),
        cmocka_unit_test(create_is_refused_for_each_reason_and_makes_nothing),
        cmocka_unit_test(create_fills_what_there_is_room_for),
        cmocka_unit_test(create_again_is_refused_under_the_payments_number),
        cmocka_unit_test(another_merchants_payment_is_not_touched_or_shown),
        cmocka_unit_test(a_command_for_an_unknown_payment_is_refused_at_once),
        cmocka_unit_test(every_other_command_is_not_supported),
        cmocka_unit_test(a_refusal_found_before_is_the_answer),
        cmocka_unit_test(a_rejected_command_is_answered_and_touches_no_payment),
        cmocka_unit_test(start_takes_the_named_route_and_opens_the_window_again),
        cmocka_unit_test(start_of_no_named_route_takes_the_next),
        cmocka_unit_test(a_refused_start_leaves_no_route_and_no_window),
        cmocka_unit_test(the_seventeenth_route_is_refused),
        cmocka_unit_test(the_hundredth_attempt_is_refused),
        cmocka_unit_test(cancel_without_a_live_attempt_cancels_at_once),
        cmocka_unit_test(cancel_of_an_unsent_attempt_ends_it_by_its_gate),
        cmocka_unit_test(cancel_of_a_sent_attempt_that_is_not_known_asks_first),
        cmocka_unit_test(a_freed_gate_that_was_closed_is_not_sent),
        cmocka_unit_test(cancel_is_never_replaced),
        cmocka_unit_test(the_merchants_word_is_the_stronger_cause),
        cmocka_unit_test(cancel_loses_to_money),
        cmocka_unit_test(no_cancel_or_change_under_a_capture),
        cmocka_unit_test(change_of_an_unsent_attempt_starts_the_next_at_once),
        cmocka_unit_test(change_waits_for_the_live_attempts_end),
        cmocka_unit_test(change_that_has_become_impossible_goes_on_as_failed),
        cmocka_unit_test(a_start_instead_ends_a_change_that_waits),
        cmocka_unit_test(change_of_what_cannot_be_closed_is_a_case),
        cmocka_unit_test(change_to_the_first_route_is_a_change_too),
        cmocka_unit_test(change_without_a_live_attempt_starts_it),
        cmocka_unit_test(D3_continue_and_approval_make_one_confirm_whichever_comes_first),
        cmocka_unit_test(continue_asks_where_the_psp_needs_no_confirm),
        cmocka_unit_test(continue_is_refused_for_each_reason),
    };
    return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
