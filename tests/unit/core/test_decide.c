/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the short stories that everything else is built around. Each drives pay_decide() as the
 * processor does, and looks at state, facts, jobs and rows.
 */
#include "tests/unit/core/world.h"

#include <stdio.h>

static struct world world;

static void a_payment_is_created_submitted_and_paid(void **state)
{
    (void)state;
    struct world *w = &world;

    world_init(w);
    world_command(w, PAY_CMD_CREATE_PAYMENT);
    world_decide_command(w);
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_order(w, PROCESSING);
    assert_status(w, 1, CREATED);
    assert_int_equal(world_fact(w, PAY_FACT_PAYMENT_CREATED)->sequence, 1);
    assert_int_equal(world_fact(w, PAY_FACT_ATTEMPT_STARTED)->sequence, 2);
    assert_int_equal(world_fact(w, PAY_FACT_PAYMENT_PROCESSING)->sequence, 3);
    assert_int_equal(world_fact(w, PAY_FACT_COMMAND_ACCEPTED)->sequence, 4);
    assert_string_equal(world_fact(w, PAY_FACT_COMMAND_ACCEPTED)->result_id, WORLD_PAYMENT "A01");
    assert_string_equal(world_job(w, PAY_JOB_SUBMIT)->job_id, WORLD_PAYMENT "A01.SUBMIT");
    assert_non_null(world_gate(w, ".SUBMIT", 1));

    world_pass_gate(w, ".SUBMIT", 1);
    world_say(w, PAY_EV_ATTEMPT_SUBMITTED, 1, PAY_EVIDENCE_LOCAL);
    assert_status(w, 1, SUBMITTED);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_ANSWER, 1), w->now_us + WORLD_ANSWER);

    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_status(w, 1, SUCCEEDED);
    assert_order(w, SUCCEEDED);
    assert_int_equal(world_count_facts(w, PAY_FACT_PAYMENT_SUCCEEDED), 1);
    assert_int_equal(world_fact(w, PAY_FACT_PAYMENT_SUCCEEDED)->totals.captured, WORLD_AMOUNT);
    assert_int_equal(world_attempt(w, 1)->amounts.captured, WORLD_AMOUNT);
    assert_true(world_attempt(w, 1)->live);
    assert_int_equal(w->row_count, 0); /* Nothing waits for a payment that is paid. */
}

static void U1_a_time_out_is_unknown_until_a_query_says_paid(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
    assert_order(w, PROCESSING);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_QUERY, 1), w->now_us + WORLD_QUERY_FIRST);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_MANUAL, 1), w->now_us + WORLD_PERSON_AFTER);

    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1);
    world_answers(w, ".QUERY.17", PAY_QUERY_BY_REQUEST_NUMBER, w->now_us);
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_status(w, 1, SUCCEEDED);
    assert_order(w, SUCCEEDED);
    assert_int_equal(world_attempt(w, 1)->unknown_since_us, 0);

    world_say(w, PAY_EV_ATTEMPT_PROCESSING, 1, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, IGNORE, "STALE");
    assert_order(w, SUCCEEDED);
    assert_int_equal(w->out.effect_count, 0);
}

static void U1_an_unknown_attempt_blocks_the_next_psp(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
    world_command(w, PAY_CMD_START_ATTEMPT);
    w->input.routes = &w->offered[1];
    w->input.route_count = 1;
    world_decide_command(w);
    assert_verdict(w, REJECT, "ATTEMPT_UNKNOWN");
    assert_int_equal(w->snap.attempt_count, 1);
    assert_int_equal(world_count_jobs(w, PAY_JOB_SUBMIT), 0);
    assert_int_equal(world_count_facts(w, PAY_FACT_COMMAND_REJECTED), 1);
}

static void D1_D5_five_success_callbacks_are_one_published_fact(void **state)
{
    (void)state;
    struct world *w = &world;
    int published = 0;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    for (int i = 0; i < 5; i++) {
        world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1);
        w->input.cause = PAY_STR("pi_1:ATTEMPT_SUCCEEDED");
        world_decide(w, PAY_EVIDENCE_WEBHOOK);
        published += world_count_facts(w, PAY_FACT_PAYMENT_SUCCEEDED);
    }
    assert_verdict(w, IGNORE, "DUPLICATE");
    assert_int_equal(published, 1);
    assert_int_equal(world_attempt(w, 1)->amounts.captured, WORLD_AMOUNT);
}

static void O11_the_callback_overtakes_our_own_answer_and_our_own_submitted(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_pass_gate(w, ".SUBMIT", 1);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_order(w, SUCCEEDED);
    world_say(w, PAY_EV_ATTEMPT_SUBMITTED, 1, PAY_EVIDENCE_LOCAL);
    assert_verdict(w, IGNORE, "STALE");
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1);
    world_answers(w, ".SUBMIT", PAY_QUERY_BY_NONE, w->now_us);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_int_equal(w->out.verdict, PAY_VERDICT_IGNORE);
    assert_int_equal(world_count_facts(w, PAY_FACT_PAYMENT_SUCCEEDED), 0);
}

static void deciding_again_makes_the_same_decision(void **state)
{
    (void)state;
    static struct world first;
    static struct world again;

    world_init(&first);
    world_init(&again);
    world_command(&first, PAY_CMD_CREATE_PAYMENT);
    world_command(&again, PAY_CMD_CREATE_PAYMENT);
    world_decide_command(&first);
    world_decide_command(&again);
    assert_int_equal(first.out.effect_count, again.out.effect_count);
    for (size_t i = 0; i < first.out.effect_count; i++) {
        const struct pay_effect *a = &first.out.effects[i];
        const struct pay_effect *b = &again.out.effects[i];
        assert_int_equal(a->kind, b->kind);
        if (a->kind == PAY_EFFECT_FACT) {
            assert_string_equal(a->as.fact.event_id, b->as.fact.event_id);
        } else if (a->kind == PAY_EFFECT_JOB) {
            assert_string_equal(a->as.job.job_id, b->as.job.job_id);
        }
    }
}

static void the_longest_cause_fits_every_fact(void **state)
{
    (void)state;
    static char cause[2 * PAY_CAUSE_SIZE];
    struct world *w = &world;

    memset(cause, 'x', sizeof cause - 1);
    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    world_event(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, 1)->action.is_set = true;
    w->input.cause = pay_str_of(cause);
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_count_facts(w, PAY_FACT_PAYMENT_ACTION_REQUIRED), 1);
    assert_int_equal(strlen(world_attempt(w, 1)->last_accepted_event_id), PAY_CAUSE_SIZE - 1);
    world_event(w, PAY_EV_ATTEMPT_FAILED, 1);
    w->input.cause = pay_str_of(cause);
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_count_facts(w, PAY_FACT_ATTEMPT_FAILED), 1);
}

static void totals_that_are_no_number_are_not_told(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    assert_int_equal(w->snap.attempt_count, 2);
    for (int sum = 0; sum < 2; sum++) {
        w->attempts[0].amounts.authorized = INT64_MAX;
        w->attempts[1].amounts.authorized = sum;
        world_command(w, PAY_CMD_CREATE_PAYMENT);
        world_decide_command(w);
        assert_verdict(w, REJECT, "PAYMENT_EXISTS");
        assert_int_equal(world_fact(w, PAY_FACT_COMMAND_REJECTED)->has_totals, sum == 0);
    }
}

/* Of every attempt, and of captures and refunds each: else a hand was in the database. */
static void reservations_add_up_to_what_is_open(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start_manual(w);
    world_keep_actions(w);
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    world_put(w, 2, PAY_ATTEMPT_AUTHORIZED);
    world_money_command(w, PAY_CMD_CAPTURE, 3000);
    world_money_command(w, PAY_CMD_CAPTURE, 2000);
    assert_int_equal(w->attempts[1].amounts.capture_reserved, 5000);
    assert_true(pay_snapshot_adds_up(&w->snap));
    int64_t *const reserved[] = {
        &w->attempts[0].amounts.capture_reserved, &w->attempts[0].amounts.refund_reserved,
        &w->attempts[1].amounts.capture_reserved, &w->attempts[1].amounts.refund_reserved};
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        *reserved[i] += 1;
        assert_false(pay_snapshot_adds_up(&w->snap));
        *reserved[i] -= 1;
    }
}

static void a_case_is_named_by_its_number_of_that_kind(void **state)
{
    (void)state;
    static const int numbers[] = {1, 9, 10, 11, 99, 100};
    struct world *w = &world;

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char case_id[PAY_CAUSE_SIZE];
        world_start(w);
        world_put(w, 1, PAY_ATTEMPT_SUCCEEDED);
        for (int n = 1; n < numbers[i]; n++) { /* Resolved ones. */
            w->cases[w->snap.case_count++] =
                (struct pay_case){.kind = PAY_CASE_CONTRADICTION, .number = n};
        }
        world_say(w, PAY_EV_ATTEMPT_FAILED, 1, PAY_EVIDENCE_QUERY);
        (void)snprintf(case_id, sizeof case_id, WORLD_PAYMENT ".CONTRADICTION.%d", numbers[i]);
        assert_string_equal(world_case(w, PAY_CASE_CONTRADICTION)->case_id, case_id);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_payment_is_created_submitted_and_paid),
        cmocka_unit_test(U1_a_time_out_is_unknown_until_a_query_says_paid),
        cmocka_unit_test(U1_an_unknown_attempt_blocks_the_next_psp),
        cmocka_unit_test(D1_D5_five_success_callbacks_are_one_published_fact),
        cmocka_unit_test(O11_the_callback_overtakes_our_own_answer_and_our_own_submitted),
        cmocka_unit_test(deciding_again_makes_the_same_decision),
        cmocka_unit_test(the_longest_cause_fits_every_fact),
        cmocka_unit_test(totals_that_are_no_number_are_not_told),
        cmocka_unit_test(reservations_add_up_to_what_is_open),
        cmocka_unit_test(a_case_is_named_by_its_number_of_that_kind),
    };
    return cmocka_run_group_tests_name("decide", tests, NULL, NULL);
}
