/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: every row of the order table, and that a final order never moves. The rows' text is read
 * from attempt_table.txt; what they say is driven through pay_decide().
 */
#include "tests/unit/core/table_text.h"
#include "tests/unit/core/world.h"

#include "common/core/order_table.h"

static struct world world;
static struct table_text expected;

/* The requirement writes several attempt states in one row, and "the same" for two of them. */
static int rows_of(enum pay_attempt_status status)
{
    const char *name = pay_attempt_status_name(status);
    int rows = 0;

    for (size_t r = 1; r < expected.row_count; r++) {
        if (strstr(expected.cells[r][0], name) == NULL) {
            continue;
        }
        const bool same = strcmp(expected.cells[r][1], "the same") == 0;
        assert_string_equal(pay_order_table_rule(status)->text, same ? name : expected.cells[r][1]);
        rows++;
    }
    return rows;
}

static void every_row_stands_in_the_table(void **state)
{
    (void)state;
    table_text_read(&expected, "attempt becomes");
    for (int s = 0; s < PAY_ATTEMPT_STATUS_COUNT; s++) {
        assert_int_equal(rows_of((enum pay_attempt_status)s), 1);
    }
}

static void an_open_attempt_leads_the_order(void **state)
{
    (void)state;
    static const struct {
        enum pay_attempt_status attempt;
        enum pay_order_status order;
        enum pay_fact_type fact;
    } rows[] = {
        {PAY_ATTEMPT_SUBMITTED, PAY_ORDER_PROCESSING, PAY_FACT_COUNT},
        {PAY_ATTEMPT_PROCESSING, PAY_ORDER_PROCESSING, PAY_FACT_COUNT},
        {PAY_ATTEMPT_UNKNOWN, PAY_ORDER_PROCESSING, PAY_FACT_COUNT},
        {PAY_ATTEMPT_REQUIRES_ACTION, PAY_ORDER_REQUIRES_ACTION, PAY_FACT_PAYMENT_ACTION_REQUIRED},
        {PAY_ATTEMPT_AUTHORIZED, PAY_ORDER_AUTHORIZED, PAY_FACT_PAYMENT_AUTHORIZED},
        {PAY_ATTEMPT_SUCCEEDED, PAY_ORDER_SUCCEEDED, PAY_FACT_PAYMENT_SUCCEEDED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        world_start_manual(&world);
        world_put(&world, 1, rows[i].attempt);
        assert_int_equal(world.snap.order.status, rows[i].order);
        assert_int_equal(world_count_facts(&world, PAY_FACT_ATTEMPT_FAILED), 0);
        assert_true(rows[i].fact == PAY_FACT_COUNT || world_fact(&world, rows[i].fact) != NULL);
    }
}

static void the_action_goes_out_with_its_fact_and_back_to_processing(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    assert_true(world_fact(w, PAY_FACT_PAYMENT_ACTION_REQUIRED)->has_action);
    const char *first = world_fact(w, PAY_FACT_PAYMENT_ACTION_REQUIRED)->event_id;
    char first_id[PAY_EVENT_ID_SIZE];
    memcpy(first_id, first, sizeof first_id);

    world_event(w, PAY_EV_ATTEMPT_PROCESSING, 1)->action.is_set = true;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_order(w, PROCESSING);
    assert_int_equal(world_count_facts(w, PAY_FACT_PAYMENT_PROCESSING), 1);
    assert_false(world_fact(w, PAY_FACT_PAYMENT_PROCESSING)->has_action);

    world_event(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, 1);
    w->input.cause = PAY_STR("cause-2"); /* The same cause again, at another version of the row. */
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_false(world_fact(w, PAY_FACT_PAYMENT_ACTION_REQUIRED)->has_action);
    assert_string_not_equal(world_fact(w, PAY_FACT_PAYMENT_ACTION_REQUIRED)->event_id, first_id);
}

static void an_action_announced_by_a_callback_goes_out_when_our_answer_brings_it(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    world_say(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_false(world_fact(w, PAY_FACT_PAYMENT_ACTION_REQUIRED)->has_action);
    for (int i = 0; i < 2; i++) {
        world_event(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, 1)->action.is_set = true;
        world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
        assert_int_equal(world_attempt(w, 1)->action_no, 1);
        assert_int_equal(world_count_facts(w, PAY_FACT_PAYMENT_ACTION_REQUIRED), i == 0 ? 1 : 0);
        assert_true(i > 0 || world_fact(w, PAY_FACT_PAYMENT_ACTION_REQUIRED)->has_action);
        assert_true(i > 0 ||
                    world_row_due(w, PAY_DEADLINE_ACTION, 1) == w->now_us + WORLD_ACTION_LIFETIME);
    }
}

static void failed_goes_on_to_the_next_route_until_none_is_left(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    for (int no = 1; no <= 3; no++) {
        assert_int_equal(w->snap.attempt_count, no);
        assert_int_equal(world_attempt(w, no)->route_no, no - 1);
        world_put(w, no, PAY_ATTEMPT_FAILED);
        assert_int_equal(world_count_facts(w, PAY_FACT_ATTEMPT_FAILED), 1);
        assert_order(w, PROCESSING); /* A failed attempt is not a failed payment. */
    }
    assert_string_equal(w->snap.order.reason_code, "AWAITING_METHOD");
    assert_int_equal(world_count_facts(w, PAY_FACT_PAYMENT_FAILED), 0);
}

static void failed_without_retry_fails_the_order_with_the_attempts_reason(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    w->snap.order.retry_until_expiry = false;
    w->snap.route_count = 1;
    world_pass_gate(w, ".SUBMIT", 1);
    world_event(w, PAY_EV_ATTEMPT_FAILED, 1)->failure_class = PAY_FAILURE_FRAUD_SUSPECTED;
    w->event.failure_code = PAY_STR("do_not_honor");
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_order(w, FAILED);
    assert_string_equal(w->snap.order.reason_code, "FRAUD_SUSPECTED");
    const struct pay_fact *fact = world_fact(w, PAY_FACT_PAYMENT_FAILED);
    assert_int_equal(fact->failure_class, PAY_FAILURE_FRAUD_SUSPECTED);
    assert_true(pay_str_eq_c(fact->failure_code, "do_not_honor"));
    assert_int_equal(w->row_count, 0);
}

static void failed_after_expiry_expires(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    w->now_us = w->snap.order.expires_at_us;
    world_say(w, PAY_EV_ATTEMPT_FAILED, 1, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_order(w, EXPIRED);
    assert_int_equal(w->snap.attempt_count, 1);
    assert_int_equal(world_count_facts(w, PAY_FACT_PAYMENT_EXPIRED), 1);
}

static void expiry_beside_a_live_attempt_waits_and_is_asked_again_when_it_ends(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
    w->now_us = w->snap.order.expires_at_us;
    world_order_due(w);
    assert_verdict(w, APPLY, "EXPIRY_WAITS_FOR_ATTEMPT");
    assert_order(w, PROCESSING);
    assert_true(w->snap.order.expiry_asked);
    assert_int_equal(w->snap.order.change,
                     PAY_ROW_UPDATED); /* Kept, though nothing is published. */
    world_say(w, PAY_EV_ATTEMPT_CANCELED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_order(w, EXPIRED);
    assert_false(w->snap.order.expiry_asked);
}

static void a_success_after_expiry_was_asked_still_succeeds(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
    w->now_us = w->snap.order.expires_at_us;
    world_order_due(w);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_order(w, SUCCEEDED);
    assert_int_equal(w->snap.case_count, 0);
}

static void canceled_by_intent_cancels(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    world_command(w, PAY_CMD_CANCEL_PAYMENT);
    world_decide_command(w);
    assert_order(w, REQUIRES_ACTION);
    world_say(w, PAY_EV_ATTEMPT_CANCELED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_order(w, CANCELED);
    assert_int_equal(w->snap.attempt_count, 1);
    assert_int_equal(world_count_facts(w, PAY_FACT_PAYMENT_CANCELED), 1);
}

static void canceled_by_customer_or_psp_is_as_failed(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_CANCELED);
    assert_int_equal(w->snap.attempt_count, 2);
    assert_string_equal(world_fact(w, PAY_FACT_ATTEMPT_FAILED)->status, "CANCELED");
    assert_true(world_attempt(w, 2)->amounts_changed); /* Its amounts row is inserted with it. */
    assert_order(w, PROCESSING);
}

static void canceled_by_our_deadline_expires_only_when_it_is_time(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int late = 0; late < 2; late++) {
        world_start(w);
        world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
        world_wait_for(w, PAY_DEADLINE_ACTION, 1);
        w->now_us = late ? w->snap.order.expires_at_us : w->now_us;
        world_say(w, PAY_EV_ATTEMPT_CANCELED, 1, PAY_EVIDENCE_WEBHOOK);
        if (late) {
            assert_order(w, EXPIRED);
        } else {
            assert_order(w, PROCESSING);
        }
    }
}

/* Every event of every level on an attempt of a final order: the order stays what it is. */
static void check_final(enum pay_order_status final, enum pay_event_type type)
{
    for (int level = PAY_EVIDENCE_LOCAL; level < PAY_EVIDENCE_CONTROLLED; level++) {
        struct world *w = &world;
        world_start(w);
        world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
        w->snap.order.status = final;
        world_say(w, type, 1, (enum pay_evidence)level);
        assert_int_equal(w->snap.order.status, final);
        assert_int_equal(w->snap.attempt_count, 1);
        assert_int_equal(world_count_facts(w, PAY_FACT_PAYMENT_SUCCEEDED), 0);
    }
}

static void O5_a_final_order_never_moves(void **state)
{
    (void)state;
    static const enum pay_order_status finals[] = {PAY_ORDER_SUCCEEDED, PAY_ORDER_FAILED,
                                                   PAY_ORDER_CANCELED, PAY_ORDER_EXPIRED};
    for (size_t f = 0; f < 4; f++) {
        for (int type = 0; type < PAY_EV_COUNT; type++) {
            check_final(finals[f], (enum pay_event_type)type);
        }
    }
}

static void O9_an_older_state_never_comes_back_after_the_end(void **state)
{
    (void)state;
    const enum pay_event_type older[] = {PAY_EV_ATTEMPT_SUBMITTED, PAY_EV_ATTEMPT_PROCESSING,
                                         PAY_EV_ATTEMPT_ACTION_REQUIRED, PAY_EV_ATTEMPT_APPROVED};
    for (size_t i = 0; i < 4; i++) {
        world_start(&world);
        world_put(&world, 1, PAY_ATTEMPT_SUCCEEDED);
        world_say(&world, older[i], 1, i == 0 ? PAY_EVIDENCE_LOCAL : PAY_EVIDENCE_QUERY);
        assert_verdict(&world, IGNORE, "STALE");
        assert_order(&world, SUCCEEDED);
        assert_int_equal(world.out.effect_count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_stands_in_the_table),
        cmocka_unit_test(an_open_attempt_leads_the_order),
        cmocka_unit_test(the_action_goes_out_with_its_fact_and_back_to_processing),
        cmocka_unit_test(an_action_announced_by_a_callback_goes_out_when_our_answer_brings_it),
        cmocka_unit_test(failed_goes_on_to_the_next_route_until_none_is_left),
        cmocka_unit_test(failed_without_retry_fails_the_order_with_the_attempts_reason),
        cmocka_unit_test(failed_after_expiry_expires),
        cmocka_unit_test(expiry_beside_a_live_attempt_waits_and_is_asked_again_when_it_ends),
        cmocka_unit_test(a_success_after_expiry_was_asked_still_succeeds),
        cmocka_unit_test(canceled_by_intent_cancels),
        cmocka_unit_test(canceled_by_customer_or_psp_is_as_failed),
        cmocka_unit_test(canceled_by_our_deadline_expires_only_when_it_is_time),
        cmocka_unit_test(O5_a_final_order_never_moves),
        cmocka_unit_test(O9_an_older_state_never_comes_back_after_the_end),
    };
    return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
