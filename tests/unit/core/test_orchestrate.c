/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: each rule of "it may create one only if", alone: one thing is wrong, and its reason is
 * given; and which route comes next.
 */
#include "tests/unit/core/world.h"

#include "common/core/orchestrate.h"

static struct world world;

/* Nothing in the way: the first attempt has failed, three routes, one tried. */
static void free_world(struct world *w)
{
    world_start(w);
    w->snap.order.failover_until_us = w->now_us;
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    w->snap.order.failover_until_us = w->now_us + 100 * SECOND;
    assert_int_equal(pay_orchestrate_may_start(&w->snap, 1, w->now_us).kind, PAY_NEXT_START);
    assert_int_equal(pay_orchestrate_next(&w->snap, w->now_us).route_no, 1);
}

static void assert_blocked(struct world *w, const char *reason)
{
    const struct pay_next may = pay_orchestrate_may_start(&w->snap, 1, w->now_us);
    assert_int_equal(may.kind, PAY_NEXT_BLOCKED);
    assert_string_equal(may.reason_code, reason);
    assert_int_not_equal(pay_orchestrate_next(&w->snap, w->now_us).kind, PAY_NEXT_START);
}

static void not_on_a_final_order(void **state)
{
    (void)state;
    const enum pay_order_status finals[] = {PAY_ORDER_SUCCEEDED, PAY_ORDER_FAILED,
                                            PAY_ORDER_CANCELED, PAY_ORDER_EXPIRED};
    for (size_t i = 0; i < 4; i++) {
        free_world(&world);
        world.snap.order.status = finals[i];
        assert_blocked(&world, "ORDER_FINAL");
    }
}

static void not_beside_a_live_attempt(void **state)
{
    (void)state;
    for (int s = 0; s < PAY_ATTEMPT_STATUS_COUNT; s++) {
        const enum pay_attempt_status status = (enum pay_attempt_status)s;
        if (pay_attempt_is_final(status)) {
            continue;
        }
        free_world(&world);
        world_attempt(&world, 1)->live = true;
        world_attempt(&world, 1)->status = status;
        assert_blocked(&world, status == PAY_ATTEMPT_UNKNOWN ? "ATTEMPT_UNKNOWN" : "ATTEMPT_LIVE");
    }
}

static void an_overridden_attempt_blocks_no_more(void **state)
{
    (void)state;
    free_world(&world);
    world_attempt(&world, 1)->status = PAY_ATTEMPT_UNKNOWN;
    world_attempt(&world, 1)->live = false;
    assert_int_equal(pay_orchestrate_may_start(&world.snap, 1, world.now_us).kind, PAY_NEXT_START);
}

static void not_after_a_success_live_or_not(void **state)
{
    (void)state;
    for (int live = 0; live < 2; live++) {
        free_world(&world);
        world_attempt(&world, 1)->status = PAY_ATTEMPT_SUCCEEDED;
        world_attempt(&world, 1)->live = live == 1;
        assert_blocked(&world, "ATTEMPT_SUCCEEDED");
    }
}

static void not_under_intent_cancel(void **state)
{
    (void)state;
    free_world(&world);
    world.snap.order.intent = PAY_INTENT_CANCEL;
    assert_blocked(&world, "INTENT_CANCEL");
}

static void not_from_failover_until_on(void **state)
{
    (void)state;
    free_world(&world);
    world.now_us = world.snap.order.failover_until_us - 1;
    assert_int_equal(pay_orchestrate_next(&world.snap, world.now_us).kind, PAY_NEXT_START);
    world.now_us++;
    assert_blocked(&world, "FAILOVER_WINDOW_OVER");
}

static void U11_not_from_expires_at_on(void **state)
{
    (void)state;
    free_world(&world);
    world.snap.order.failover_until_us = INT64_MAX;
    world.now_us = world.snap.order.expires_at_us - 1;
    assert_int_equal(pay_orchestrate_next(&world.snap, world.now_us).kind, PAY_NEXT_START);
    world.now_us++;
    assert_blocked(&world, "ORDER_EXPIRED");
}

static void not_while_a_money_case_is_open(void **state)
{
    (void)state;
    for (int kind = 0; kind < PAY_CASE_KIND_COUNT; kind++) {
        free_world(&world);
        world_open_case(&world, (enum pay_case_kind)kind);
        if (kind <= PAY_CASE_CAPTURE_REVERSED) {
            assert_true(pay_case_is_money((enum pay_case_kind)kind));
            assert_blocked(&world, "MONEY_CASE_OPEN");
        } else {
            assert_int_equal(pay_orchestrate_next(&world.snap, world.now_us).kind, PAY_NEXT_START);
        }
        world.cases[0].open = false;
        assert_int_equal(pay_orchestrate_next(&world.snap, world.now_us).kind, PAY_NEXT_START);
    }
}

static void not_on_a_paused_route(void **state)
{
    (void)state;
    free_world(&world);
    world.routes[1].paused = true;
    assert_string_equal(pay_orchestrate_may_start(&world.snap, 1, world.now_us).reason_code,
                        "ROUTE_PAUSED");
    assert_int_equal(pay_orchestrate_next(&world.snap, world.now_us).route_no, 2);
    world.routes[2].paused = true;
    assert_string_equal(pay_orchestrate_next(&world.snap, world.now_us).reason_code,
                        "ROUTE_PAUSED");
}

static void not_a_hundredth_time(void **state)
{
    (void)state;
    free_world(&world);
    world.snap.order.attempt_count = PAY_ATTEMPTS_MAX;
    assert_blocked(&world, "LIMIT");
}

static void after_a_not_found_by_itself_only_where_the_route_says_so(void **state)
{
    (void)state;
    free_world(&world);
    world_attempt(&world, 1)->failure_class = PAY_FAILURE_PSP_NOT_FOUND;
    world.routes[0].failover_on_not_found = false;
    assert_string_equal(pay_orchestrate_next(&world.snap, world.now_us).reason_code,
                        "FAILOVER_NOT_ALLOWED");
    assert_int_equal(pay_orchestrate_may_start(&world.snap, 1, world.now_us).kind, PAY_NEXT_START);
}

static void the_order_waits_for_a_method_or_is_exhausted(void **state)
{
    (void)state;
    free_world(&world);
    world.snap.route_count = 1;
    assert_int_equal(pay_orchestrate_next(&world.snap, world.now_us).kind,
                     PAY_NEXT_AWAITING_METHOD);
    world.snap.order.retry_until_expiry = false;
    assert_int_equal(pay_orchestrate_next(&world.snap, world.now_us).kind, PAY_NEXT_EXHAUSTED);
}

static void would_go_on_asks_as_if_the_attempt_had_ended(void **state)
{
    (void)state;
    world_start(&world);
    assert_true(pay_orchestrate_would_go_on(&world.snap, 0, world.now_us));
    assert_int_equal(pay_orchestrate_may_start_after(&world.snap, 1, 0, world.now_us).kind,
                     PAY_NEXT_START);
    assert_int_equal(pay_orchestrate_may_start_after(&world.snap, 1, -1, world.now_us).kind,
                     PAY_NEXT_BLOCKED);
    world.snap.route_count = 1;
    assert_false(pay_orchestrate_would_go_on(&world.snap, 0, world.now_us));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_on_a_final_order),
        cmocka_unit_test(not_beside_a_live_attempt),
        cmocka_unit_test(an_overridden_attempt_blocks_no_more),
        cmocka_unit_test(not_after_a_success_live_or_not),
        cmocka_unit_test(not_under_intent_cancel),
        cmocka_unit_test(not_from_failover_until_on),
        cmocka_unit_test(U11_not_from_expires_at_on),
        cmocka_unit_test(not_while_a_money_case_is_open),
        cmocka_unit_test(not_on_a_paused_route),
        cmocka_unit_test(not_a_hundredth_time),
        cmocka_unit_test(after_a_not_found_by_itself_only_where_the_route_says_so),
        cmocka_unit_test(the_order_waits_for_a_method_or_is_exhausted),
        cmocka_unit_test(would_go_on_asks_as_if_the_attempt_had_ended),
    };
    return cmocka_run_group_tests_name("orchestrate", tests, NULL, NULL);
}
