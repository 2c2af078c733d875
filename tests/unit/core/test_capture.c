/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: captures, sentence by sentence of the requirement: reserve, settle, release; whole, in
 * part, more than once; what the PSP did without us; the authorization's end. A test's name is the
 * sentence.
 */
#include "tests/unit/core/world.h"

static struct world world;

static void capture(struct world *w, int64_t amount_minor, bool is_final)
{
    struct pay_command *command = world_command(w, PAY_CMD_CAPTURE);
    command->money = (struct pay_cmd_money){.amount = {amount_minor, "EUR"}, .is_final = is_final};
    world_decide_command(w);
}

static void succeed(struct world *w, const char *tail)
{
    world_action_say(w, PAY_EV_CAPTURE_SUCCEEDED, tail, PAY_EVIDENCE_WEBHOOK);
}

static void console_capture(struct world *w, const char *reference, int64_t amount_minor)
{
    struct pay_event *event = world_event(w, PAY_EV_CAPTURE_SUCCEEDED, 1);
    event->provider_action_id = pay_str_of(reference);
    event->amount.amount_minor = amount_minor;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
}

/* The PSP's word about the payment itself: it names no capture. */
static void nameless(struct world *w, int64_t amount_minor)
{
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1)->amount.amount_minor = amount_minor;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
}

static void the_first_success_makes_the_payment_succeeded(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    assert_amounts(w, 1, 10000, 0, 0, 0, 0, 0);
    capture(w, 6000, false);
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_amounts(w, 1, 10000, 6000, 0, 0, 0, 0);
    assert_string_equal(world_job(w, PAY_JOB_CAPTURE)->job_id, world_id("C01.CAPTURE"));
    assert_int_equal(world_job(w, PAY_JOB_CAPTURE)->action_index, 0);
    assert_order(w, AUTHORIZED);
    succeed(w, "C01");
    assert_status(w, 1, SUCCEEDED);
    assert_order(w, SUCCEEDED);
    assert_int_equal(w->snap.order.paid_attempt_no, 1);
    assert_amounts(w, 1, 10000, 0, 6000, 0, 0, 0);
    assert_int_equal(world_count_facts(w, PAY_FACT_CAPTURE_SUCCEEDED), 1);
    assert_int_equal(world_count_facts(w, PAY_FACT_PAYMENT_SUCCEEDED), 1);
    assert_true(world_attempt(w, 1)->live);
    capture(w, 4000, false); /* And more than once. */
    succeed(w, "C02");
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
    assert_int_equal(world_count_facts(w, PAY_FACT_PAYMENT_SUCCEEDED), 0);
    capture(w, 1, false);
    assert_verdict(w, REJECT, "EXCEEDS_AUTHORIZATION");
}

static void the_last_one_releases_the_rest(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    capture(w, 6000, true);
    capture(w, 1000, false);
    assert_verdict(w, REJECT, "CAPTURE_WAS_FINAL");
    succeed(w, "C01");
    assert_amounts(w, 1, 6000, 0, 6000, 0, 0, 0);

    world_authorized(w);
    w->routes[0].traits.captures_again = false; /* The PSP allows one: it is the last. */
    capture(w, 6000, true);
    capture(w, 1000, true);
    assert_verdict(w, REJECT, "CAPTURE_WAS_FINAL");
    succeed(w, "C01");
    assert_amounts(w, 1, 6000, 0, 6000, 0, 0, 0);

    world_authorized(w);
    capture(w, 3000, false);
    succeed(w, "C01");
    capture(w, 2000, true);
    succeed(w, "C02");
    assert_amounts(w, 1, 5000, 0, 5000, 0, 0, 0);
    assert_int_equal(world_attempt(w, 1)->change, PAY_ROW_UPDATED); /* Less may be captured. */
}

static void where_one_capture_is_all_nothing_more_is_promised(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    w->routes[0].traits.captures_again = false;
    capture(w, 6000, false); /* The PSP would release what is to be captured later. */
    assert_verdict(w, REJECT, "MULTIPLE_NOT_SUPPORTED");
    assert_int_equal(w->snap.capture_count, 0);
    capture(w, 10000, false); /* All of it: there is nothing to release. */
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_true(world_action(w, "C01")->is_final);
}

static void failure_releases_and_the_authorization_stays(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    capture(w, 10000, true);
    world_action_pass(w, "C01.CAPTURE");
    world_action_say(w, PAY_EV_CAPTURE_FAILED, "C01", PAY_EVIDENCE_QUERY);
    assert_action(w, "C01", FAILED);
    assert_amounts(w, 1, 10000, 0, 0, 0, 0, 0);
    assert_int_equal(world_count_facts(w, PAY_FACT_CAPTURE_FAILED), 1);
    assert_order(w, AUTHORIZED);
    capture(w, 10000, true);
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_string_equal(world_job(w, PAY_JOB_CAPTURE)->job_id, world_id("C02.CAPTURE"));
}

static void what_cannot_be_captured_is_refused(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    capture(w, 1, false);
    assert_verdict(w, REJECT, "CAPTURE_IS_AUTOMATIC");
    world_start_manual(w);
    world_keep_actions(w);
    capture(w, 1, false);
    assert_verdict(w, REJECT, "NOT_AUTHORIZED");
    world_authorized(w);
    capture(w, 0, false);
    assert_verdict(w, REJECT, "INVALID_AMOUNT");
    capture(w, 10001, false);
    assert_verdict(w, REJECT, "EXCEEDS_AUTHORIZATION");
    w->routes[0].traits.captures_part = false;
    capture(w, 9999, false);
    assert_verdict(w, REJECT, "PARTIAL_NOT_SUPPORTED");
    world_open_case(w, PAY_CASE_UNEXPECTED_REFERENCE);
    capture(w, 10000, true);
    assert_verdict(w, REJECT, "MONEY_CASE_OPEN");
    world_authorized(w);
    world_command(w, PAY_CMD_CANCEL_PAYMENT);
    world_decide_command(w);
    capture(w, 10000, true);
    assert_verdict(w, REJECT, "ATTEMPT_WITHDRAWN");
    assert_int_equal(w->snap.capture_count, 0);
}

static void the_hundredth_is_over_the_limit(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    w->snap.order.capture_count = PAY_CAPTURES_MAX;
    capture(w, 1, false);
    assert_verdict(w, REJECT, "LIMIT");
    assert_int_equal(w->snap.capture_count, 0);
}

static void a_payment_is_not_canceled_under_a_capture(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    capture(w, 6000, true);
    world_command(w, PAY_CMD_CANCEL_PAYMENT);
    world_decide_command(w);
    assert_verdict(w, REJECT, "CAPTURE_IN_FLIGHT");
    world_say(w, PAY_EV_ATTEMPT_CANCELED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, NEEDS_RECONCILIATION, "CANCELED_UNDER_CAPTURE");
}

/* --------------------------------------------------------------------------- the PSP is ahead of
 * us */

/* D3: our own answer, a callback, a query: one capture, whichever comes first. */
static void a_success_without_a_name_settles_the_only_open_one_of_that_amount(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    capture(w, 6000, false);
    nameless(w, 6000);
    assert_action(w, "C01", SUCCEEDED);
    nameless(w, 6000);
    assert_verdict(w, IGNORE, "EXPLAINED");
    succeed(w, "C01");
    assert_verdict(w, IGNORE, "STALE");
    assert_amounts(w, 1, 10000, 0, 6000, 0, 0, 0);
    capture(w, 4000, false);
    nameless(w, 10000); /* The sum of both: it asks, it settles nothing. */
    assert_verdict(w, IGNORE, "EXPLAINED");
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY_CAPTURE), 1);
    assert_amounts(w, 1, 10000, 4000, 6000, 0, 0, 0);

    world_authorized(w);
    capture(w, 1, false);
    nameless(w, 5000); /* Of the open one, or of another: a query says. */
    assert_verdict(w, IGNORE, "EXPLAINED");
    assert_int_equal(w->snap.capture_count, 1);
}

static void one_that_a_settled_capture_explains_settles_no_other(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    capture(w, 5000, false);
    succeed(w, "C01");
    capture(w, 5000, false);
    nameless(w, 5000); /* The first's, again. */
    assert_verdict(w, IGNORE, "EXPLAINED");
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY_CAPTURE), 1);
    assert_action(w, "C02", CREATED);

    world_authorized(w);
    capture(w, 2000, false);
    succeed(w, "C01");
    capture(w, 3000, false);
    succeed(w, "C02");
    capture(w, 3000, false);
    nameless(w, 3000); /* Not the sum either: the second's. */
    assert_verdict(w, IGNORE, "EXPLAINED");
    assert_action(w, "C03", CREATED);
    assert_amounts(w, 1, 10000, 3000, 5000, 0, 0, 0);
}

/* D3: the payment's own word first, then the capture's by the PSP's name only. */
static void a_name_that_comes_after_a_nameless_success_is_that_ones(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    capture(w, 6000, false);
    nameless(w, 6000);
    for (int i = 0; i < 2; i++) {
        console_capture(w, "ch_1", 6000);
        assert_int_equal(w->snap.capture_count, 1);
        assert_string_equal(world_action(w, "C01")->provider_reference, "ch_1");
    }
    assert_null(world_case(w, PAY_CASE_AMOUNT_MISMATCH));
    capture(w, 2000, false);
    nameless(w, 2000);
    capture(w, 2000, false);
    console_capture(w, "ch_2", 2000); /* Of either of the two: a query says. */
    assert_verdict(w, IGNORE, "EXPLAINED");
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY_CAPTURE), 2);
    assert_action(w, "C03", CREATED);
    assert_amounts(w, 1, 10000, 2000, 8000, 0, 0, 0);

    world_authorized(w);
    capture(w, 2000, false);
    capture(w, 2000, false);
    succeed(w, "C02"); /* By our number, and the PSP's name was not said. */
    console_capture(w, "ch_2", 2000);
    assert_verdict(w, IGNORE, "EXPLAINED");
    assert_string_equal(world_action(w, "C02")->provider_reference, "");
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY_CAPTURE), 2);
}

static void a_success_with_another_objects_name_settles_nothing(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    capture(w, 6000, true);
    world_action_event(w, PAY_EV_CAPTURE_SUCCEEDED, "C01")->provider_action_id = PAY_STR("ch_1");
    w->input.foreign_reference = true; /* Bound to another payment. */
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, NEEDS_RECONCILIATION, "UNEXPECTED_REFERENCE");
    assert_action(w, "C01", CREATED);
    assert_amounts(w, 1, 10000, 6000, 0, 0, 0, 0);
}

/* O7, O11: whatever state our own call is in. */
static void a_console_capture_becomes_one_of_origin_psp(void **state)
{
    (void)state;
    struct world *w = &world;
    static const enum pay_attempt_status before[] = {
        PAY_ATTEMPT_SUBMITTED,
        PAY_ATTEMPT_PROCESSING,
        PAY_ATTEMPT_UNKNOWN,
        PAY_ATTEMPT_AUTHORIZED,
    };

    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        world_start_manual(w);
        world_keep_actions(w);
        world_put(w, 1, before[i]);
        for (int n = 0; n < 2; n++) {
            console_capture(w, "ch_1", 6000);
        }
        assert_status(w, 1, SUCCEEDED);
        assert_int_equal(w->snap.capture_count, 1);
        assert_int_equal(world_action(w, "C01")->origin, PAY_ORIGIN_PSP);
        assert_amounts(w, 1, 10000, 0, 6000, 0, 0, 0);
    }
    console_capture(w, "ch_2", 4001);
    assert_verdict(w, NEEDS_RECONCILIATION, "OVER_CAPTURE");
    assert_non_null(world_case(w, PAY_CASE_AMOUNT_MISMATCH));
    assert_amounts(w, 1, 10000, 0, 6000, 0, 0, 0);
}

/* The console was first: Stripe refuses ours, and asked about it tells of the other one. */
static void asked_about_ours_the_psp_tells_of_the_consoles(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    capture(w, 8000, true);
    world_action_pass(w, "C01.CAPTURE");
    world_action_say(w, PAY_EV_CAPTURE_UNKNOWN, "C01", PAY_EVIDENCE_LOCAL);
    world_action_event(w, PAY_EV_CAPTURE_FAILED, "C01");
    world_action_answers(w, "C01.QUERY.v1", PAY_QUERY_BY_PSP_REFERENCE, w->now_us + 1);
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_action(w, "C01", FAILED);
    for (int i = 0; i < 2; i++) { /* The other half of the same answer, and of the next one. */
        struct pay_event *event = world_event(w, PAY_EV_CAPTURE_SUCCEEDED, 1);
        event->provider_action_id = PAY_STR("ch_1");
        event->amount.amount_minor = 5000;
        world_action_answers(w, "C01.QUERY.v1", PAY_QUERY_BY_PSP_REFERENCE, w->now_us + 1);
        world_decide(w, PAY_EVIDENCE_QUERY);
        assert_int_equal(w->snap.capture_count, 2);
        assert_int_equal(w->snap.case_count, 0);
    }
    assert_int_equal(world_action(w, "C02")->origin, PAY_ORIGIN_PSP);
    assert_status(w, 1, SUCCEEDED);
    assert_amounts(w, 1, 10000, 0, 5000, 0, 0, 0);
}

/* What our own call is answered is about ours: another amount is a mismatch. */
static void another_amount_in_our_own_answer_is_a_mismatch(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    capture(w, 8000, true);
    world_action_pass(w, "C01.CAPTURE");
    struct pay_event *event = world_event(w, PAY_EV_CAPTURE_SUCCEEDED, 1);
    event->provider_action_id = PAY_STR("ch_1");
    event->amount.amount_minor = 5000;
    world_action_answers(w, "C01.CAPTURE", PAY_QUERY_BY_NONE, w->now_us + 1);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_verdict(w, REJECT, "AMOUNT_MISMATCH");
    assert_non_null(world_case(w, PAY_CASE_AMOUNT_MISMATCH));
    assert_int_equal(w->snap.capture_count, 1);
}

static void late_money_of_a_capture_is_late_money(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    world_say(w, PAY_EV_ATTEMPT_CANCELED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 1, CANCELED);
    assert_amounts(w, 1, 0, 0, 0, 0, 0, 0);
    assert_int_equal(w->snap.attempt_count, 2);
    world_say(w, PAY_EV_ATTEMPT_FAILED, 2, PAY_EVIDENCE_WEBHOOK);
    w->snap.order.status = PAY_ORDER_EXPIRED;
    console_capture(w, "ch_1", 6000);
    assert_status(w, 1, SUCCEEDED);
    assert_order(w, EXPIRED);
    assert_non_null(world_case(w, PAY_CASE_LATE_SUCCESS));
    assert_int_equal(world_case(w, PAY_CASE_LATE_SUCCESS)->proposed_refund_minor, 6000);
    assert_amounts(w, 1, 6000, 0, 6000, 0, 0, 0);
}

static void a_reversed_capture_raises_withdrawn_and_stays_refundable_on_paper(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    capture(w, 6000, true);
    succeed(w, "C01");
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 2000);
    world_action_say(w, PAY_EV_CAPTURE_REVERSED, "C01", PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, IGNORE, "REVERSAL_TO_BE_CONFIRMED");
    world_action_say(w, PAY_EV_CAPTURE_REVERSED, "C01", PAY_EVIDENCE_QUERY);
    assert_action(w, "C01", REVERSED);
    assert_amounts(w, 1, 6000, 0, 6000, 2000, 0, 6000);
    assert_non_null(world_case(w, PAY_CASE_CAPTURE_REVERSED));
    assert_int_equal(world_count_facts(w, PAY_FACT_CAPTURE_REVERSED), 1);
    world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_QUERY);
    assert_amounts(w, 1, 6000, 0, 6000, 0, 2000, 6000);
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 1);
    assert_verdict(w, REJECT, "EXCEEDS_REFUNDABLE");
    assert_order(w, SUCCEEDED);

    world_authorized(w);
    capture(w, 1, true); /* However little it is. */
    succeed(w, "C01");
    world_action_say(w, PAY_EV_CAPTURE_REVERSED, "C01", PAY_EVIDENCE_QUERY);
    assert_amounts(w, 1, 1, 0, 1, 0, 0, 1);
    assert_non_null(world_case(w, PAY_CASE_CAPTURE_REVERSED));
}

static void reversed_before_its_success_releases_the_reservation(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    capture(w, 6000, true);
    world_action_pass(w, "C01.CAPTURE");
    world_action_say(w, PAY_EV_CAPTURE_SUBMITTED, "C01", PAY_EVIDENCE_LOCAL);
    world_action_say(w, PAY_EV_CAPTURE_REVERSED, "C01", PAY_EVIDENCE_QUERY);
    assert_action(w, "C01", REVERSED);
    assert_amounts(w, 1, 10000, 0, 0, 0, 0, 0);
    assert_null(world_case(w, PAY_CASE_CAPTURE_REVERSED));
}

/* ------------------------------------------------------------------------- withdrawn, and its end
 */

static void money_elsewhere_withdraws_the_authorization_and_its_captures(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start_manual(w);
    world_keep_actions(w);
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    world_put(w, 2, PAY_ATTEMPT_AUTHORIZED);
    capture(w, 6000, true);
    assert_verdict(w, APPLY, "ACCEPTED");
    console_capture(w, "ch_late", WORLD_AMOUNT); /* Late money of the first attempt. */
    assert_order(w, SUCCEEDED);
    assert_action(w, "C01", CANCELED); /* Certainly never sent. */
    assert_true(world_action_gate(w, "C01.CAPTURE")->closed_at_us != 0);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
    assert_amounts(w, 2, 10000, 0, 0, 0, 0, 0);
}

/* An operator has overridden the block of the first attempt, whose capture is on its way. */
static void a_withdrawal_leaves_other_attempts_captures_alone(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    capture(w, 6000, true);
    world_attempt(w, 1)->live = false;
    world_command(w, PAY_CMD_START_ATTEMPT);
    world_decide_command(w);
    assert_verdict(w, APPLY, "ACCEPTED");
    world_command(w, PAY_CMD_CANCEL_PAYMENT);
    world_decide_command(w);
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_status(w, 2, FAILED);
    assert_action(w, "C01", CREATED);
    assert_int_equal(world_action_gate(w, "C01.CAPTURE")->closed_at_us, 0);
}

static void a_capture_in_flight_is_asked_about_before_the_void(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start_manual(w);
    world_keep_actions(w);
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    world_put(w, 2, PAY_ATTEMPT_AUTHORIZED);
    capture(w, 6000, true);
    world_action_pass(w, "C01.CAPTURE");
    console_capture(w, "ch_late", WORLD_AMOUNT);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 0);
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY_CAPTURE), 1);
    world_action_say(w, PAY_EV_CAPTURE_FAILED, "C01", PAY_EVIDENCE_QUERY);
    world_wait_for(w, PAY_DEADLINE_ACTION, 2);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
}

/* Under way when the attempt is withdrawn, and then given back unsent: another attempt has paid, so
 * it is not sent again, whatever the action's own end says. */
static void a_capture_of_a_withdrawn_attempt_is_not_sent_again(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int is_heard_of = 0; is_heard_of < 2; is_heard_of++) {
        world_start_manual(w);
        world_keep_actions(w);
        world_put(w, 1, PAY_ATTEMPT_FAILED);
        world_put(w, 2, PAY_ATTEMPT_AUTHORIZED);
        capture(w, 6000, true);
        world_action_pass(w, "C01.CAPTURE");
        if (is_heard_of == 1) {
            world_action_say(w, PAY_EV_CAPTURE_SUBMITTED, "C01", PAY_EVIDENCE_LOCAL);
        }
        console_capture(w, "ch_late", WORLD_AMOUNT);
        assert_true(world_action_gate(w, "C01.CAPTURE")->closed_at_us != 0);
        world_action_gate(w, "C01.CAPTURE")->sending_at_us = 0;
        world_action_event(w, PAY_EV_CAPTURE_NOT_SENT, "C01")->has_amount = false;
        world_decide(w, PAY_EVIDENCE_LOCAL);
        assert_action(w, "C01", CREATED);
        world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("C01"));
        assert_int_equal(world_count_jobs(w, PAY_JOB_CAPTURE), 0);
        assert_action(w, "C01", CANCELED);
        assert_amounts(w, 2, 10000, 0, 0, 0, 0, 0);
        world_wait_for(w, PAY_DEADLINE_ACTION, 2);
        assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
    }
}

static void authorize_until(struct world *w, int64_t end_us)
{
    world_start_manual(w);
    world_keep_actions(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    world_event(w, PAY_EV_ATTEMPT_AUTHORIZED, 1)->authorization_expires_at_us = end_us;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
}

static void at_its_end_an_authorization_is_voided_or_captured_by_policy(void **state)
{
    (void)state;
    struct world *w = &world;
    const int64_t end_us = WORLD_START + 3000 * SECOND;

    authorize_until(w, end_us);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_AUTHORIZATION, 1),
                     end_us - WORLD_SEND_WINDOW - WORLD_CALL_BUDGET);
    world_wait_for(w, PAY_DEADLINE_AUTHORIZATION, 1);
    assert_verdict(w, IGNORE, "AUTHORIZATION_ENDS_SOON");
    assert_int_equal(world_row_due(w, PAY_DEADLINE_AUTHORIZATION, 1), end_us);
    world_wait_for(w, PAY_DEADLINE_AUTHORIZATION, 1);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
    assert_status(w, 1, AUTHORIZED); /* Our own clock closes nothing. */

    authorize_until(w, end_us);
    w->policy.captures_at_end = true;
    world_wait_for(w, PAY_DEADLINE_AUTHORIZATION, 1);
    assert_verdict(w, APPLY, "CAPTURED_BY_POLICY");
    assert_int_equal(world_action(w, "C01")->origin, PAY_ORIGIN_POLICY);
    assert_amounts(w, 1, 10000, 10000, 0, 0, 0, 0);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CAPTURE), 1);
    succeed(w, "C01");
    assert_order(w, SUCCEEDED);
}

static void an_authorizations_row_comes_a_sends_time_before_its_end(void **state)
{
    (void)state;
    struct world *w = &world;
    static const int64_t lead_us = WORLD_SEND_WINDOW + WORLD_CALL_BUDGET;
    static const struct {
        int64_t end_us, due_us; /* Both from now. */
    } rows[] = {
        {lead_us + 1, 1},
        {lead_us, lead_us}, /* At once is too late for it. */
        {1, 1},
        {0, WORLD_PERSON_AFTER}, /* It is over: asked about. */
        {-1, WORLD_PERSON_AFTER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        authorize_until(w, WORLD_START + SECOND + rows[i].end_us);
        assert_int_equal(world_row_due(w, PAY_DEADLINE_AUTHORIZATION, 1),
                         w->now_us + rows[i].due_us);
    }
}

static void the_rest_is_released_when_the_psp_says_so(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    capture(w, 6000, false);
    succeed(w, "C01");
    world_say(w, PAY_EV_ATTEMPT_AUTHORIZATION_EXPIRED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_amounts(w, 1, 6000, 0, 6000, 0, 0, 0);
    capture(w, 1, false);
    assert_verdict(w, REJECT, "EXCEEDS_AUTHORIZATION");
}

/* The attempt's own table, in manual mode, with captures kept: nothing of it has changed. */
static void automatic_captures_are_the_attempt_itself(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_keep_actions(w);
    world_put(w, 1, PAY_ATTEMPT_PROCESSING);
    world_say(w, PAY_EV_CAPTURE_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 1, SUCCEEDED);
    assert_int_equal(w->snap.capture_count, 0);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
    world_event(w, PAY_EV_CAPTURE_REVERSED, 1)->has_amount = true;
    w->event.amount.amount_minor = 10;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_success_makes_the_payment_succeeded),
        cmocka_unit_test(the_last_one_releases_the_rest),
        cmocka_unit_test(where_one_capture_is_all_nothing_more_is_promised),
        cmocka_unit_test(failure_releases_and_the_authorization_stays),
        cmocka_unit_test(what_cannot_be_captured_is_refused),
        cmocka_unit_test(the_hundredth_is_over_the_limit),
        cmocka_unit_test(a_payment_is_not_canceled_under_a_capture),
        cmocka_unit_test(a_success_without_a_name_settles_the_only_open_one_of_that_amount),
        cmocka_unit_test(one_that_a_settled_capture_explains_settles_no_other),
        cmocka_unit_test(a_name_that_comes_after_a_nameless_success_is_that_ones),
        cmocka_unit_test(a_success_with_another_objects_name_settles_nothing),
        cmocka_unit_test(a_console_capture_becomes_one_of_origin_psp),
        cmocka_unit_test(asked_about_ours_the_psp_tells_of_the_consoles),
        cmocka_unit_test(another_amount_in_our_own_answer_is_a_mismatch),
        cmocka_unit_test(late_money_of_a_capture_is_late_money),
        cmocka_unit_test(a_reversed_capture_raises_withdrawn_and_stays_refundable_on_paper),
        cmocka_unit_test(reversed_before_its_success_releases_the_reservation),
        cmocka_unit_test(money_elsewhere_withdraws_the_authorization_and_its_captures),
        cmocka_unit_test(a_withdrawal_leaves_other_attempts_captures_alone),
        cmocka_unit_test(a_capture_of_a_withdrawn_attempt_is_not_sent_again),
        cmocka_unit_test(a_capture_in_flight_is_asked_about_before_the_void),
        cmocka_unit_test(at_its_end_an_authorization_is_voided_or_captured_by_policy),
        cmocka_unit_test(an_authorizations_row_comes_a_sends_time_before_its_end),
        cmocka_unit_test(the_rest_is_released_when_the_psp_says_so),
        cmocka_unit_test(automatic_captures_are_the_attempt_itself),
    };
    return cmocka_run_group_tests_name("capture", tests, NULL, NULL);
}
