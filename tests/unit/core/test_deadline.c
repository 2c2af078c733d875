/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: what each due row does, and that it always moves or goes (world_due checks that), so that
 * recovery never makes an input that the inbox knows already.
 */
#include "common/core/attempt.h"
#include "tests/unit/core/world.h"

static struct world world;

static void U9_an_old_deadline_decides_nothing(void **state)
{
    (void)state;
    struct world *w = &world;
    const int64_t row_due[] = {0, 1};

    for (size_t i = 0; i < 2; i++) {
        world_start(w);
        world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
        w->now_us = world_row_due(w, PAY_DEADLINE_ACTION, 1);
        world_event(w, PAY_EV_OTHER, 1);
        w->input.kind = PAY_INPUT_DEADLINE;
        w->input.event = NULL;
        w->input.deadline = (struct pay_deadline_due){.kind = PAY_DEADLINE_ACTION,
                                                      .aggregate_id = PAY_STR(WORLD_PAYMENT "A01"),
                                                      .due_at_us = w->now_us,
                                                      .row_due_at_us = row_due[i]};
        world_decide(w, PAY_EVIDENCE_LOCAL);
        assert_verdict(w, IGNORE, "OLD_DEADLINE");
        assert_int_equal(w->out.effect_count, 0);
        assert_int_equal(w->out.history_count, 1);
        assert_int_equal(world_attempt(w, 1)->cancel_cause, PAY_CANCEL_CAUSE_NONE);
    }
}

static void send_closes_an_unsent_gate_and_goes_on(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    assert_true(world_row_due(w, PAY_DEADLINE_SEND, 1) > world_gate(w, ".SUBMIT", 1)->not_after_us);
    world_wait_for(w, PAY_DEADLINE_SEND, 1);
    assert_verdict(w, APPLY, "NOT_SENT");
    assert_status(w, 1, FAILED);
    assert_int_equal(world_attempt(w, 1)->failure_class, PAY_FAILURE_NOT_SENT);
    assert_true(world_gate(w, ".SUBMIT", 1)->closed_at_us != 0);
    assert_int_equal(w->snap.attempt_count, 2);
}

/* The sender passes the gate before that time, never at it. */
static void the_send_window_is_open_before_its_end_only(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int late = 0; late < 2; late++) {
        world_start(w);
        const int64_t end_us = world_gate(w, ".SUBMIT", 1)->not_after_us;
        w->now_us = end_us - 1 + late;
        world_due(w, PAY_DEADLINE_SEND, 1);
        assert_string_equal(w->out.reason_code, late ? "NOT_SENT" : "SEND_WINDOW_OPEN");
    }
}

static void send_with_a_passed_gate_is_unknown_and_asked(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_pass_gate(w, ".SUBMIT", 1);
    world_wait_for(w, PAY_DEADLINE_SEND, 1);
    assert_verdict(w, APPLY, "SENT_AND_NOT_HEARD_OF");
    assert_status(w, 1, UNKNOWN);
    assert_int_equal(world_gate(w, ".SUBMIT", 1)->closed_at_us, 0);
    assert_true(world_row_due(w, PAY_DEADLINE_QUERY, 1) > 0);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_SEND, 1), -1);
}

static void send_of_a_freed_gate_ends_submitted_and_unknown_too(void **state)
{
    (void)state;
    struct world *w = &world;
    const enum pay_attempt_status states[] = {PAY_ATTEMPT_SUBMITTED, PAY_ATTEMPT_UNKNOWN};

    for (size_t i = 0; i < 2; i++) {
        world_start(w);
        world_put(w, 1, states[i]);
        world_gate(w, ".SUBMIT", 1)->sending_at_us = 0; /* Certainly did not leave. */
        world_wait_for(w, PAY_DEADLINE_SEND, 1);
        assert_status(w, 1, FAILED);
    }
}

static void send_of_what_was_sent_only_goes(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    world_wait_for(w, PAY_DEADLINE_SEND, 1);
    assert_verdict(w, IGNORE, "SENT");
    assert_status(w, 1, SUBMITTED);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_SEND, 1), -1);
    assert_true(world_row_due(w, PAY_DEADLINE_ANSWER, 1) > 0);
}

static void manual_gives_unknown_to_a_person_once_and_slow_queries_go_on(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
    world_wait_for(w, PAY_DEADLINE_MANUAL, 1);
    assert_verdict(w, APPLY, "UNKNOWN_TOO_LONG");
    assert_status(w, 1, UNKNOWN);
    assert_true(world_attempt(w, 1)->live);
    assert_non_null(world_case(w, PAY_CASE_UNKNOWN_TOO_LONG));
    assert_int_equal(world_count_facts(w, PAY_FACT_MANUAL_REVIEW_REQUIRED), 1);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_MANUAL, 1), -1);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_QUERY, 1), w->now_us + WORLD_PERSON_AFTER);
}

static void answer_at_the_methods_final_date_escalates(void **state)
{
    (void)state;
    struct world *w = &world;
    const enum pay_attempt_status states[] = {PAY_ATTEMPT_SUBMITTED, PAY_ATTEMPT_PROCESSING};

    for (size_t i = 0; i < 2; i++) {
        world_start(w);
        world_put(w, 1, states[i]);
        world_wait_for(w, PAY_DEADLINE_ANSWER, 1);
        assert_int_equal(world_attempt(w, 1)->status, states[i]);
        assert_non_null(world_case(w, PAY_CASE_UNKNOWN_TOO_LONG));
        assert_int_equal(world_row_due(w, PAY_DEADLINE_ANSWER, 1), w->now_us + WORLD_PERSON_AFTER);
        assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1); /* Slow queries go on. */
    }
}

static void query_asks_and_waits_again(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
    world_wait_for(w, PAY_DEADLINE_QUERY, 1);
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
    assert_string_equal(world_job(w, PAY_JOB_QUERY)->about_job_id, WORLD_PAYMENT "A01.SUBMIT");
}

static void authorization_without_a_known_end_is_asked_about(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start_manual(w);
    world_put(w, 1, PAY_ATTEMPT_AUTHORIZED);
    world_wait_for(w, PAY_DEADLINE_AUTHORIZATION, 1);
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 0);
    assert_status(w, 1, AUTHORIZED);
}

/* Also where the method knows no pause. */
static void a_row_comes_back_later(void **state)
{
    (void)state;
    static const struct {
        enum pay_attempt_status status;
        enum pay_deadline_kind due, again;
    } rows[] = {
        {PAY_ATTEMPT_PROCESSING, PAY_DEADLINE_ANSWER, PAY_DEADLINE_ANSWER},
        {PAY_ATTEMPT_UNKNOWN, PAY_DEADLINE_MANUAL, PAY_DEADLINE_QUERY},
        {PAY_ATTEMPT_UNKNOWN, PAY_DEADLINE_QUERY, PAY_DEADLINE_QUERY},
        {PAY_ATTEMPT_AUTHORIZED, PAY_DEADLINE_AUTHORIZATION, PAY_DEADLINE_AUTHORIZATION},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world *w = &world;
        world_start_manual(w);
        world_put(w, 1, rows[i].status);
        w->routes[0].traits.person_after_us = 0;
        w->routes[0].traits.query_first_us = 0;
        w->now_us = world_row_due(w, rows[i].due, 1) + SECOND;
        world_due(w, rows[i].due, 1);
        assert_int_equal(world_row_due(w, rows[i].again, 1), w->now_us + 1);
    }
}

/* One that comes early can be set to the very time that it had (world_due looks). */
static void a_row_that_comes_early_moves_on_too(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_PROCESSING);
    world_wait_for(w, PAY_DEADLINE_ANSWER, 1);
    const int64_t due_us = world_row_due(w, PAY_DEADLINE_ANSWER, 1);
    w->cases[0].open = false; /* A new case is told before the row is set. */
    world_due(w, PAY_DEADLINE_ANSWER, 1);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_ANSWER, 1), due_us + 1);
}

static void expiry_without_a_live_attempt_expires(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    w->snap.order.failover_until_us = w->now_us;
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    world_order_due(w); /* Before its time: the row is set right again, nothing else. */
    assert_verdict(w, IGNORE, "NOT_EXPIRED");
    w->now_us = w->snap.order.expires_at_us;
    world_order_due(w);
    assert_verdict(w, APPLY, "EXPIRED");
    assert_order(w, EXPIRED);
    assert_int_equal(w->row_count, 0);
}

static void while_an_attempt_is_withdrawn_its_cancel_is_repeated_in_every_state(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    world_command(w, PAY_CMD_CANCEL_PAYMENT);
    world_decide_command(w);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_ACTION, 1), w->now_us + WORLD_CANCEL_RETRY);
    world_say(w, PAY_EV_ATTEMPT_PROCESSING, 1, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_true(world_row_due(w, PAY_DEADLINE_ACTION, 1) > 0);
    world_say(w, PAY_EV_ATTEMPT_UNKNOWN, 1, PAY_EVIDENCE_LOCAL);
    assert_status(w, 1, UNKNOWN);
    world_wait_for(w, PAY_DEADLINE_ACTION, 1);
    assert_verdict(w, IGNORE, "CANCEL_REPEATED");
    assert_string_equal(world_job(w, PAY_JOB_CANCEL)->job_id, WORLD_PAYMENT "A01.CANCEL.2");
    world_say(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_ACTION, 1), w->now_us + WORLD_CANCEL_RETRY);
    world_say(w, PAY_EV_ATTEMPT_CANCELED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(w->row_count, 0);
}

static void a_confirm_on_its_way_keeps_its_row_through_a_change_of_state(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int sent = 0; sent < 2; sent++) {
        world_start(w);
        w->routes[0].traits.confirm_moves_money = true;
        world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
        world_command(w, PAY_CMD_CONTINUE_ATTEMPT)->attempt_id = PAY_STR(WORLD_PAYMENT "A01");
        world_decide_command(w);
        assert_true(world_row_due(w, PAY_DEADLINE_SEND, 1) > 0);
        if (sent == 1) {
            world_pass_gate(w, ".CONFIRM.1", 1);
        }
        world_say(w, PAY_EV_ATTEMPT_PROCESSING, 1, PAY_EVIDENCE_WEBHOOK);
        assert_int_equal(world_row_due(w, PAY_DEADLINE_SEND, 1) > 0, sent == 0);
    }
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(w->row_count, 0);
}

static void a_row_of_nobody_goes(void **state)
{
    (void)state;
    struct world *w = &world;
    const enum pay_deadline_kind kinds[] = {PAY_DEADLINE_SEND, PAY_DEADLINE_DISPUTE,
                                            PAY_DEADLINE_KIND_COUNT};

    for (size_t i = 0; i < 3; i++) {
        world_start(w);
        world_event(w, PAY_EV_OTHER, 1);
        w->input.kind = PAY_INPUT_DEADLINE;
        w->input.event = NULL;
        w->input.deadline = (struct pay_deadline_due){.kind = kinds[i],
                                                      .aggregate_id = PAY_STR(WORLD_PAYMENT "A07"),
                                                      .due_at_us = 5,
                                                      .row_due_at_us = 5};
        world_decide(w, PAY_EVIDENCE_LOCAL);
        assert_int_equal(w->out.verdict, PAY_VERDICT_IGNORE);
        assert_int_equal(w->out.effect_count, 1);
        assert_int_equal(w->out.effects[0].kind, PAY_EFFECT_DEADLINE_CLEAR);
    }
    w->snap.order.exists = false; /* Nor the payment. */
    w->input.deadline.kind = PAY_DEADLINE_SEND;
    world_decide(w, PAY_EVIDENCE_LOCAL);
    assert_verdict(w, IGNORE, "ORPHAN");
    assert_true(w->out.orphan);
}

static void what_is_no_state_waits_for_nothing(void **state)
{
    (void)state;
    for (int kind = 0; kind < PAY_DEADLINE_KIND_COUNT; kind++) {
        assert_false(pay_attempt_waits(PAY_ATTEMPT_STATUS_COUNT, (enum pay_deadline_kind)kind));
    }
    assert_false(pay_attempt_waits(PAY_ATTEMPT_CREATED, PAY_DEADLINE_KIND_COUNT));
}

static void say_dead(struct world *w, int64_t dead_since_us)
{
    world_event(w, PAY_EV_OTHER, 1);
    w->input.kind = PAY_INPUT_DEADLINE;
    w->input.event = NULL;
    w->input.deadline = (struct pay_deadline_due){.kind = PAY_DEADLINE_DEAD_EVENT,
                                                  .aggregate_id = PAY_STR(WORLD_PAYMENT),
                                                  .due_at_us = 5,
                                                  .row_due_at_us = dead_since_us};
    world_decide(w, PAY_EVIDENCE_LOCAL);
}

/* The case follows what is true when it is decided, whatever recovery saw. */
static void the_case_of_a_dead_event_is_open_while_one_is_dead(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    const enum pay_order_status before = w->snap.order.status;
    say_dead(w, 0);
    assert_verdict(w, IGNORE, "STALE");
    assert_int_equal(w->snap.case_count, 0);
    say_dead(w, 7);
    assert_verdict(w, APPLY, "EVENT_IS_DEAD");
    assert_int_equal(w->snap.case_count, 1);
    assert_string_equal(w->snap.cases[0].case_id, WORLD_PAYMENT ".DEAD_EVENT.1");
    assert_string_equal(w->snap.cases[0].aggregate_id, WORLD_PAYMENT);
    say_dead(w, 9); /* another one: the same case */
    assert_int_equal(w->snap.case_count, 1);
    assert_true(w->snap.cases[0].open);
    say_dead(w, 0);
    assert_verdict(w, APPLY, "NO_EVENT_IS_DEAD");
    assert_false(w->snap.cases[0].open);
    say_dead(w, 11);
    assert_int_equal(w->snap.case_count, 2);
    assert_string_equal(w->snap.cases[1].case_id, WORLD_PAYMENT ".DEAD_EVENT.2");
    assert_int_equal(w->snap.order.status, before);
}

/* A row that is due in a state that does not wait for it (a lost race of recovery). */
static void a_stale_row_goes(void **state)
{
    (void)state;
    static const enum pay_deadline_kind kinds[] = {PAY_DEADLINE_SEND, PAY_DEADLINE_ANSWER,
                                                   PAY_DEADLINE_ACTION, PAY_DEADLINE_AUTHORIZATION};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct world *w = &world;
        world_start(w);
        world_put(w, 1, PAY_ATTEMPT_SUCCEEDED);
        world_event(w, PAY_EV_OTHER, 1);
        w->input.kind = PAY_INPUT_DEADLINE;
        w->input.event = NULL;
        w->input.deadline = (struct pay_deadline_due){.kind = kinds[i],
                                                      .aggregate_id = PAY_STR(WORLD_PAYMENT "A01"),
                                                      .due_at_us = 5,
                                                      .row_due_at_us = 5};
        world_decide(w, PAY_EVIDENCE_LOCAL);
        assert_int_equal(w->out.verdict, PAY_VERDICT_IGNORE);
        assert_int_equal(w->out.effect_count, 1);
        assert_int_equal(w->out.effects[0].kind, PAY_EFFECT_DEADLINE_CLEAR);
        assert_int_equal(w->out.effects[0].as.deadline.kind, kinds[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(U9_an_old_deadline_decides_nothing),
        cmocka_unit_test(send_closes_an_unsent_gate_and_goes_on),
        cmocka_unit_test(the_send_window_is_open_before_its_end_only),
        cmocka_unit_test(send_with_a_passed_gate_is_unknown_and_asked),
        cmocka_unit_test(send_of_a_freed_gate_ends_submitted_and_unknown_too),
        cmocka_unit_test(send_of_what_was_sent_only_goes),
        cmocka_unit_test(manual_gives_unknown_to_a_person_once_and_slow_queries_go_on),
        cmocka_unit_test(answer_at_the_methods_final_date_escalates),
        cmocka_unit_test(query_asks_and_waits_again),
        cmocka_unit_test(authorization_without_a_known_end_is_asked_about),
        cmocka_unit_test(a_row_comes_back_later),
        cmocka_unit_test(a_row_that_comes_early_moves_on_too),
        cmocka_unit_test(expiry_without_a_live_attempt_expires),
        cmocka_unit_test(while_an_attempt_is_withdrawn_its_cancel_is_repeated_in_every_state),
        cmocka_unit_test(a_confirm_on_its_way_keeps_its_row_through_a_change_of_state),
        cmocka_unit_test(a_row_of_nobody_goes),
        cmocka_unit_test(what_is_no_state_waits_for_nothing),
        cmocka_unit_test(the_case_of_a_dead_event_is_open_while_one_is_dead),
        cmocka_unit_test(a_stale_row_goes),
    };
    return cmocka_run_group_tests_name("deadline", tests, NULL, NULL);
}
