/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: every guard is wired: in a situation that it is there for, the core does the right thing
 * with it and the wrong thing without it. (That the wrong thing costs money is the explorer's to
 * show.) Built with pay_core_switchable.
 */
#include "tests/unit/core/guard_money.h"

#include "common/core/guard.h"
#include "common/core/orchestrate.h"

static struct world world;

static bool starts(struct world *w)
{
    return pay_orchestrate_may_start(&w->snap, 1, w->now_us).kind == PAY_NEXT_START;
}

/* Nothing in the way of a second attempt: its route came after the first had failed. */
static void ended(struct world *w)
{
    world_start(w);
    w->snap.route_count = 1;
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    w->snap.route_count = 2;
}

/* Each returns true when the right thing happened. */
typedef bool situation_fn(struct world *w);

static bool live_rule(struct world *w)
{
    world_start(w);
    return !starts(w);
}
static bool success_blocks(struct world *w)
{
    ended(w);
    world_attempt(w, 1)->status = PAY_ATTEMPT_SUCCEEDED;
    return !starts(w);
}
static bool final_order(struct world *w)
{
    ended(w);
    w->snap.order.status = PAY_ORDER_EXPIRED;
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    return w->snap.order.status == PAY_ORDER_EXPIRED;
}
static bool intent_cancel(struct world *w)
{
    ended(w);
    w->snap.order.intent = PAY_INTENT_CANCEL;
    return !starts(w);
}
static bool order_expired(struct world *w)
{
    ended(w);
    w->now_us = w->snap.order.expires_at_us;
    w->snap.order.failover_until_us = INT64_MAX;
    return !starts(w);
}
static bool failover_until(struct world *w)
{
    ended(w);
    w->now_us = w->snap.order.failover_until_us;
    return !starts(w);
}
static bool late_money_blocks(struct world *w)
{
    ended(w);
    world_open_case(w, PAY_CASE_CONTRADICTION);
    return !starts(w);
}
static bool route_paused(struct world *w)
{
    ended(w);
    w->routes[1].paused = true;
    return !starts(w);
}
static bool failover_on_not_found(struct world *w)
{
    ended(w);
    w->routes[0].failover_on_not_found = false;
    world_attempt(w, 1)->failure_class = PAY_FAILURE_PSP_NOT_FOUND;
    return pay_orchestrate_next(&w->snap, w->now_us).kind != PAY_NEXT_START;
}
static bool evidence(struct world *w)
{
    world_start(w);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_LOCAL);
    return w->out.verdict == PAY_VERDICT_REJECT;
}
static bool amount(struct world *w)
{
    world_start(w);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1)->amount.amount_minor = 1;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    return w->out.verdict == PAY_VERDICT_REJECT;
}
static bool account(struct world *w)
{
    world_start(w);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1)->psp_account = PAY_STR("another");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    return w->out.verdict == PAY_VERDICT_REJECT;
}
static bool unexpected_reference(struct world *w)
{
    world_start(w);
    world_event(w, PAY_EV_ATTEMPT_PROCESSING, 1)->provider_payment_id = PAY_STR("pi_1");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1)->provider_payment_id = PAY_STR("pi_2");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    return w->out.verdict == PAY_VERDICT_NEEDS_RECONCILIATION;
}
static bool stale_success(struct world *w)
{
    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUCCEEDED);
    world_say(w, PAY_EV_ATTEMPT_FAILED, 1, PAY_EVIDENCE_WEBHOOK);
    return world_attempt(w, 1)->status == PAY_ATTEMPT_SUCCEEDED;
}
static bool not_sent_gate(struct world *w)
{
    world_start(w);
    world_pass_gate(w, ".SUBMIT", 1);
    world_say(w, PAY_EV_ATTEMPT_NOT_SENT, 1, PAY_EVIDENCE_LOCAL);
    return world_attempt(w, 1)->status == PAY_ATTEMPT_CREATED;
}
static void not_founds(struct world *w, int64_t asked_at_us, enum pay_query_by by)
{
    w->routes[0].traits.not_founds_needed = 1;
    world_event(w, PAY_EV_ATTEMPT_NOT_FOUND, 1);
    world_answers(w, ".QUERY.v1", by, asked_at_us);
    world_decide(w, PAY_EVIDENCE_QUERY);
}
static bool not_found_reference(struct world *w)
{
    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    world_event(w, PAY_EV_ATTEMPT_PROCESSING, 1)->provider_payment_id = PAY_STR("pi_1");
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    not_founds(w, INT64_MAX, PAY_QUERY_BY_REQUEST_NUMBER);
    return world_attempt(w, 1)->status == PAY_ATTEMPT_PROCESSING;
}
static bool not_found_action(struct world *w)
{
    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    world_say(w, PAY_EV_ATTEMPT_PROCESSING, 1, PAY_EVIDENCE_SYNC_RESPONSE);
    not_founds(w, INT64_MAX, PAY_QUERY_BY_REQUEST_NUMBER);
    return world_attempt(w, 1)->status == PAY_ATTEMPT_PROCESSING;
}
static bool not_found_by_number(struct world *w)
{
    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
    not_founds(w, INT64_MAX, PAY_QUERY_BY_SEARCH);
    return world_attempt(w, 1)->status == PAY_ATTEMPT_UNKNOWN;
}
static bool not_found_asked_late(struct world *w)
{
    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
    not_founds(w, w->now_us, PAY_QUERY_BY_REQUEST_NUMBER);
    return world_attempt(w, 1)->status == PAY_ATTEMPT_UNKNOWN;
}
static bool canceled_asked_late(struct world *w)
{
    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
    world_event(w, PAY_EV_ATTEMPT_CANCELED, 1);
    world_answers(w, ".QUERY.v1", PAY_QUERY_BY_REQUEST_NUMBER, w->now_us);
    world_decide(w, PAY_EVIDENCE_QUERY);
    return world_attempt(w, 1)->status == PAY_ATTEMPT_UNKNOWN;
}
static bool only_send(struct world *w)
{
    world_start(w);
    world_pass_gate(w, ".SUBMIT", 1);
    world_gate(w, ".SUBMIT", 1)->sends++; /* A replay. */
    world_event(w, PAY_EV_ATTEMPT_FAILED, 1);
    world_answers(w, ".SUBMIT", PAY_QUERY_BY_NONE, w->now_us);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    return world_attempt(w, 1)->status != PAY_ATTEMPT_FAILED;
}
static bool unknown_weak_news(struct world *w)
{
    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
    world_say(w, PAY_EV_ATTEMPT_PROCESSING, 1, PAY_EVIDENCE_SYNC_RESPONSE);
    return world_attempt(w, 1)->status == PAY_ATTEMPT_UNKNOWN;
}
static bool unknown_over_webhook(struct world *w)
{
    world_start(w);
    world_say(w, PAY_EV_ATTEMPT_PROCESSING, 1, PAY_EVIDENCE_WEBHOOK);
    world_say(w, PAY_EV_ATTEMPT_UNKNOWN, 1, PAY_EVIDENCE_LOCAL);
    return world_attempt(w, 1)->status == PAY_ATTEMPT_PROCESSING;
}
static bool late_success_evidence(struct world *w)
{
    ended(w);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_SYNC_RESPONSE);
    return world_attempt(w, 1)->status == PAY_ATTEMPT_FAILED;
}
static bool authorized_cancel(struct world *w)
{
    world_start_manual(w);
    world_put(w, 1, PAY_ATTEMPT_AUTHORIZED);
    world_say(w, PAY_EV_ATTEMPT_CANCELED, 1, PAY_EVIDENCE_SYNC_RESPONSE);
    return world_attempt(w, 1)->status == PAY_ATTEMPT_AUTHORIZED;
}
static bool withdrawal_closes_gates(struct world *w)
{
    world_start(w);
    world_pass_gate(w, ".SUBMIT", 1);
    world_command(w, PAY_CMD_CANCEL_PAYMENT);
    world_decide_command(w);
    return world_gate(w, ".SUBMIT", 1)->closed_at_us != 0;
}
static bool cancel_known(struct world *w)
{
    world_start(w);
    world_pass_gate(w, ".SUBMIT", 1);
    world_command(w, PAY_CMD_CANCEL_PAYMENT);
    world_decide_command(w);
    return world_count_jobs(w, PAY_JOB_CANCEL) == 0;
}
static bool others_withdrawn(struct world *w)
{
    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    return world_attempt(w, 2)->cancel_cause == PAY_CANCEL_CAUSE_OTHER_SUCCEEDED;
}
static bool confirm_blocked(struct world *w)
{
    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    world_open_case(w, PAY_CASE_CONTRADICTION);
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_WEBHOOK);
    return world_count_jobs(w, PAY_JOB_CONFIRM) == 0;
}
static bool confirm_once(struct world *w)
{
    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_WEBHOOK);
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_QUERY);
    return world_count_jobs(w, PAY_JOB_CONFIRM) == 0;
}
static bool action_not_while_canceled(struct world *w)
{
    world_start(w);
    world_pass_gate(w, ".SUBMIT", 1);
    world_command(w, PAY_CMD_CANCEL_PAYMENT);
    world_decide_command(w);
    world_event(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, 1)->action.is_set = true;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    return world_attempt(w, 1)->action_no == 0;
}
static bool old_deadline(struct world *w)
{
    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    world_event(w, PAY_EV_OTHER, 1);
    w->input.kind = PAY_INPUT_DEADLINE;
    w->input.event = NULL;
    w->input.deadline = (struct pay_deadline_due){.kind = PAY_DEADLINE_ACTION,
                                                  .aggregate_id = PAY_STR(WORLD_PAYMENT "A01"),
                                                  .due_at_us = 5,
                                                  .row_due_at_us = 6};
    world_decide(w, PAY_EVIDENCE_LOCAL);
    return world_attempt(w, 1)->cancel_cause == PAY_CANCEL_CAUSE_NONE;
}
static bool expiry_waits(struct world *w)
{
    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
    w->now_us = w->snap.order.expires_at_us;
    world_order_due(w);
    return w->snap.order.status == PAY_ORDER_PROCESSING;
}
static bool reversal_replay(struct world *w)
{
    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUCCEEDED);
    for (int i = 0; i < 2; i++) {
        world_event(w, PAY_EV_ATTEMPT_REVERSED, 1)->provider_action_id = PAY_STR("rev_1");
        w->event.amount.amount_minor = 10;
        world_decide(w, PAY_EVIDENCE_WEBHOOK);
    }
    return world_attempt(w, 1)->amounts.withdrawn == 10;
}

static situation_fn *const situations[PAY_GUARD_COUNT] = {
    [PAY_GUARD_LIVE_RULE] = live_rule,
    [PAY_GUARD_SUCCESS_BLOCKS] = success_blocks,
    [PAY_GUARD_FINAL_ORDER] = final_order,
    [PAY_GUARD_INTENT_CANCEL] = intent_cancel,
    [PAY_GUARD_ORDER_EXPIRED] = order_expired,
    [PAY_GUARD_FAILOVER_UNTIL] = failover_until,
    [PAY_GUARD_LATE_MONEY_BLOCKS] = late_money_blocks,
    [PAY_GUARD_ROUTE_PAUSED] = route_paused,
    [PAY_GUARD_FAILOVER_ON_NOT_FOUND] = failover_on_not_found,
    [PAY_GUARD_EVIDENCE] = evidence,
    [PAY_GUARD_AMOUNT] = amount,
    [PAY_GUARD_ACCOUNT] = account,
    [PAY_GUARD_UNEXPECTED_REFERENCE] = unexpected_reference,
    [PAY_GUARD_STALE_SUCCESS] = stale_success,
    [PAY_GUARD_NOT_SENT_GATE] = not_sent_gate,
    [PAY_GUARD_NOT_FOUND_REFERENCE] = not_found_reference,
    [PAY_GUARD_NOT_FOUND_ACTION] = not_found_action,
    [PAY_GUARD_NOT_FOUND_BY_NUMBER] = not_found_by_number,
    [PAY_GUARD_NOT_FOUND_ASKED_LATE] = not_found_asked_late,
    [PAY_GUARD_CANCELED_ASKED_LATE] = canceled_asked_late,
    [PAY_GUARD_ONLY_SEND] = only_send,
    [PAY_GUARD_UNKNOWN_WEAK_NEWS] = unknown_weak_news,
    [PAY_GUARD_UNKNOWN_OVER_WEBHOOK] = unknown_over_webhook,
    [PAY_GUARD_LATE_SUCCESS_EVIDENCE] = late_success_evidence,
    [PAY_GUARD_AUTHORIZED_CANCEL] = authorized_cancel,
    [PAY_GUARD_WITHDRAWAL_CLOSES_GATES] = withdrawal_closes_gates,
    [PAY_GUARD_CANCEL_KNOWN] = cancel_known,
    [PAY_GUARD_OTHERS_WITHDRAWN] = others_withdrawn,
    [PAY_GUARD_CONFIRM_BLOCKED] = confirm_blocked,
    [PAY_GUARD_CONFIRM_ONCE] = confirm_once,
    [PAY_GUARD_ACTION_NOT_WHILE_CANCELED] = action_not_while_canceled,
    [PAY_GUARD_OLD_DEADLINE] = old_deadline,
    [PAY_GUARD_EXPIRY_WAITS] = expiry_waits,
    [PAY_GUARD_REVERSAL_REPLAY] = reversal_replay,
    [PAY_GUARD_REFUNDABLE] = guard_refundable,
    [PAY_GUARD_MONEY_ONCE] = guard_money_once,
    [PAY_GUARD_MONEY_NOT_SENT] = guard_money_not_sent,
    [PAY_GUARD_MONEY_NOT_FOUND] = guard_money_not_found,
    [PAY_GUARD_MONEY_REVERSAL] = guard_money_reversal,
    [PAY_GUARD_REFUND_SUM] = guard_refund_sum,
    [PAY_GUARD_REFUND_SUM_NEW] = guard_refund_sum_new,
    [PAY_GUARD_DISPUTE_FUNDS_ONCE] = guard_dispute_funds_once,
    [PAY_GUARD_APPROVAL_OWN] = guard_approval_own,
    [PAY_GUARD_APPROVAL_TWICE] = guard_approval_twice,
    [PAY_GUARD_APPROVAL_DIGEST] = guard_approval_digest,
    [PAY_GUARD_APPROVAL_VERSION] = guard_approval_version,
    [PAY_GUARD_REFUND_THRESHOLD] = guard_refund_threshold,
};

static bool right_with(uint64_t off, int guard)
{
    pay_guards_off = off;
    const bool is_right = situations[guard](&world);
    pay_guards_off = 0;
    return is_right;
}

static void check_guard(int guard)
{
    const bool with = right_with(0, guard);
    const bool without = right_with(UINT64_C(1) << guard, guard);

    if (!with || without) {
        fail_msg("%s: right with it %d, right without it %d", pay_guard_name((enum pay_guard)guard),
                 (int)with, (int)without);
    }
}

static void every_guard_makes_the_difference_in_its_situation(void **state)
{
    (void)state;
    for (int g = 0; g < PAY_GUARD_COUNT; g++) {
        assert_non_null(situations[g]);
        check_guard(g);
    }
}

static void guards_have_names_of_their_own(void **state)
{
    (void)state;
    for (int g = 0; g < PAY_GUARD_COUNT; g++) {
        for (int h = 0; h < g; h++) {
            assert_string_not_equal(pay_guard_name((enum pay_guard)g),
                                    pay_guard_name((enum pay_guard)h));
        }
        assert_true(strlen(pay_guard_text((enum pay_guard)g)) > 10);
    }
    assert_string_equal(pay_guard_name(PAY_GUARD_COUNT), "?");
    assert_string_equal(pay_guard_text(PAY_GUARD_COUNT), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_guard_makes_the_difference_in_its_situation),
        cmocka_unit_test(guards_have_names_of_their_own),
    };
    return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
