/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: what each due row of a refund does (a capture's are the same), at its edges, and in a state
 * that does not wait for it.
 */
#include "tests/unit/core/world.h"

static struct world world;

#define JOB "R01.REFUND"

static void asked_for(struct world *w)
{
    world_paid(w);
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 4000);
}

static void sent(struct world *w)
{
    asked_for(w);
    world_action_pass(w, JOB);
    world_action_say(w, PAY_EV_REFUND_SUBMITTED, "R01", PAY_EVIDENCE_LOCAL);
}

/* Begins the input of a row that the world need not have. */
static void row_of(struct world *w, enum pay_deadline_kind kind, int64_t due_at_us)
{
    world_event(w, PAY_EV_OTHER, 1);
    w->input.kind = PAY_INPUT_DEADLINE;
    w->input.event = NULL;
    w->input.deadline = (struct pay_deadline_due){.kind = kind,
                                                  .aggregate_id = pay_str_of(world_id("R01")),
                                                  .due_at_us = due_at_us,
                                                  .row_due_at_us = due_at_us};
    world_decide(w, PAY_EVIDENCE_LOCAL);
}

/* Where the PSP's traits do not say. */
static void a_refund_has_a_day_and_its_reservation_three(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    w->routes[0].traits.action_life_us = 0;
    w->routes[0].traits.reservation_us = 0;
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 4000);
    assert_int_equal(world_action(w, "R01")->give_up_at_us, w->now_us + 86400 * SECOND);
    assert_int_equal(world_row_of(w, PAY_DEADLINE_RESERVATION, world_id("R01")),
                     w->now_us + 3 * (86400 * SECOND));
    assert_int_equal(world_action(w, "R01")->changed_at_us, w->now_us);
}

/* The sender passes the gate before that time, never at it. */
static void the_send_window_is_open_before_its_end_only(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int late = 0; late < 2; late++) {
        asked_for(w);
        const int64_t end_us = world_action_gate(w, JOB)->not_after_us;
        w->now_us = end_us - 1 + late;
        row_of(w, PAY_DEADLINE_SEND, w->now_us);
        assert_string_equal(w->out.reason_code, late ? "SENT_AGAIN" : "SEND_WINDOW_OPEN");
        assert_true(world_row_of(w, PAY_DEADLINE_SEND, world_id("R01")) > end_us);
    }
}

static void a_repeat_that_comes_too_early_waits(void **state)
{
    (void)state;
    struct world *w = &world;

    sent(w);
    world_action_say(w, PAY_EV_REFUND_RETRY_SAME_NUMBER, "R01", PAY_EVIDENCE_SYNC_RESPONSE);
    const int64_t due_us = world_row_of(w, PAY_DEADLINE_SEND, world_id("R01"));
    assert_int_equal(due_us, world_action(w, "R01")->retry_at_us);
    w->now_us = due_us - 1;
    world_due_id(w, PAY_DEADLINE_SEND, world_id("R01"));
    assert_verdict(w, IGNORE, "NOT_DUE");
    assert_int_equal(w->out.history_count, 1);
    assert_int_equal(world_row_of(w, PAY_DEADLINE_SEND, world_id("R01")), due_us + 1);
    world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("R01"));
    assert_verdict(w, APPLY, "REPEATED");
}

/* Its end is at that time, not after it. */
static void at_its_end_nothing_is_repeated(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int late = 0; late < 2; late++) {
        sent(w);
        w->now_us = world_action(w, "R01")->give_up_at_us - 20 * SECOND - 1 + late;
        world_action_say(w, PAY_EV_REFUND_RETRY_SAME_NUMBER, "R01", PAY_EVIDENCE_SYNC_RESPONSE);
        assert_int_equal(world_action(w, "R01")->retry_at_us != 0, late == 0);
    }
}

static void a_row_that_the_state_does_not_wait_for_goes(void **state)
{
    (void)state;
    static const struct {
        enum pay_deadline_kind kind;
        bool is_over;
    } rows[] = {
        {PAY_DEADLINE_SEND, true},   {PAY_DEADLINE_ANSWER, true},  {PAY_DEADLINE_RESERVATION, true},
        {PAY_DEADLINE_QUERY, false}, {PAY_DEADLINE_MANUAL, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world *w = &world;
        sent(w);
        if (rows[i].is_over) {
            world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_WEBHOOK);
        }
        row_of(w, rows[i].kind, 5);
        assert_verdict(w, IGNORE, "STALE");
        assert_int_equal(w->out.history_count, 1);
        assert_int_equal(w->out.effect_count, 1);
        assert_int_equal(w->out.effects[0].kind, PAY_EFFECT_DEADLINE_CLEAR);
        assert_int_equal(w->out.effects[0].as.deadline.kind, rows[i].kind);
    }
}

static void where_refunds_are_not_kept_its_row_is_nobodys(void **state)
{
    (void)state;
    struct world *w = &world;

    asked_for(w);
    w->snap.keeps_actions = false;
    row_of(w, PAY_DEADLINE_SEND, 5);
    assert_verdict(w, IGNORE, "NO_SUCH_ATTEMPT");
    w->snap.keeps_actions = true;
    row_of(w, PAY_DEADLINE_KIND_COUNT, 5);
    assert_verdict(w, IGNORE, "NOT_SUPPORTED_YET");
}

/* .REFUND.10 comes after .REFUND.9, though it is loaded before .REFUND.2. */
static void the_latest_job_is_the_one_of_the_highest_number(void **state)
{
    (void)state;
    struct world *w = &world;

    sent(w);
    for (int n = 2; n <= 10; n++) {
        world_action_say(w, PAY_EV_REFUND_RETRY_SAME_NUMBER, "R01", PAY_EVIDENCE_SYNC_RESPONSE);
        world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("R01"));
        assert_verdict(w, APPLY, "REPEATED");
    }
    world_action_event(w, PAY_EV_REFUND_RETRY_SAME_NUMBER, "R01");
    world_action_answers(w, "R01.REFUND.9", PAY_QUERY_BY_NONE, 0);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_verdict(w, IGNORE, "STALE");
    world_action_event(w, PAY_EV_REFUND_RETRY_SAME_NUMBER, "R01");
    world_action_answers(w, "R01.REFUND.10", PAY_QUERY_BY_NONE, 0);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_verdict(w, APPLY, "RETRY_SAME_NUMBER");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refund_has_a_day_and_its_reservation_three),
        cmocka_unit_test(the_send_window_is_open_before_its_end_only),
        cmocka_unit_test(a_repeat_that_comes_too_early_waits),
        cmocka_unit_test(at_its_end_nothing_is_repeated),
        cmocka_unit_test(a_row_that_the_state_does_not_wait_for_goes),
        cmocka_unit_test(where_refunds_are_not_kept_its_row_is_nobodys),
        cmocka_unit_test(the_latest_job_is_the_one_of_the_highest_number),
    };
    return cmocka_run_group_tests_name("action_deadline", tests, NULL, NULL);
}
