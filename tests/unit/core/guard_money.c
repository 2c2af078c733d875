/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/core/guard_money.h"

#include <stdio.h>

static int64_t refunded(struct world *w)
{
    return world_attempt(w, 1)->amounts.refunded;
}

bool guard_refundable(struct world *w)
{
    world_paid(w);
    world_attempt(w, 1)->amounts.withdrawn = 5000; /* A dispute has taken half. */
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 6000);
    return w->out.verdict == PAY_VERDICT_REJECT;
}

bool guard_money_once(struct world *w)
{
    world_paid(w);
    for (int i = 0; i < 2; i++) {
        struct pay_event *event = world_event(w, PAY_EV_REFUND_SUCCEEDED, 1);
        event->provider_action_id = PAY_STR("re_console");
        event->has_amount = true;
        event->amount.amount_minor = 3000;
        world_decide(w, PAY_EVIDENCE_WEBHOOK);
    }
    return refunded(w) == 3000;
}

bool guard_money_not_sent(struct world *w)
{
    world_paid(w);
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 3000);
    world_action_pass(w, "R01.REFUND");
    world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("R01"));
    return world_count_jobs(w, PAY_JOB_REFUND) == 0;
}

bool guard_money_not_found(struct world *w)
{
    world_paid(w);
    w->routes[0].traits.not_founds_needed = 1;
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 3000);
    world_action_pass(w, "R01.REFUND");
    world_action_say(w, PAY_EV_REFUND_UNKNOWN, "R01", PAY_EVIDENCE_LOCAL);
    for (int i = 0; i < 2; i++) { /* Asked before every send can have ended. */
        world_action_event(w, PAY_EV_REFUND_NOT_FOUND, "R01")->has_amount = false;
        world_action_answers(w, "R01.QUERY.v9", PAY_QUERY_BY_REQUEST_NUMBER, w->now_us);
        world_decide(w, PAY_EVIDENCE_QUERY);
    }
    return world_attempt(w, 1)->amounts.refund_reserved == 3000;
}

bool guard_money_reversal(struct world *w)
{
    world_paid(w);
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 3000);
    world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_QUERY);
    world_action_say(w, PAY_EV_REFUND_FAILED, "R01", PAY_EVIDENCE_WEBHOOK);
    return refunded(w) == 3000 && world_count_jobs(w, PAY_JOB_QUERY_REFUND) == 1;
}

bool guard_refund_sum(struct world *w)
{
    world_paid(w);
    w->routes[0].traits.queries_refunds = false; /* Only sums can tell. */
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 3000);
    world_action_pass(w, "R01.REFUND");
    world_action_say(w, PAY_EV_REFUND_SUBMITTED, "R01", PAY_EVIDENCE_LOCAL);
    struct pay_event *event = world_event(w, PAY_EV_REFUND_SUM, 1);
    event->has_amount = true;
    event->amount.amount_minor = 3000;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    return w->snap.refund_count == 1;
}

bool guard_refund_sum_new(struct world *w)
{
    world_paid(w);
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 3000);
    world_action_pass(w, "R01.REFUND");
    world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_WEBHOOK);
    struct pay_event *event = world_event(w, PAY_EV_REFUND_SUM, 1); /* The console's alone. */
    world_answers(w, ".QUERY.v1", PAY_QUERY_BY_PSP_REFERENCE, w->now_us - 1);
    event->has_amount = true;
    event->amount.amount_minor = 5000;
    world_decide(w, PAY_EVIDENCE_QUERY);
    return w->snap.refund_count == 1 && world_row_due(w, PAY_DEADLINE_QUERY, 1) > w->now_us;
}

bool guard_dispute_funds_once(struct world *w)
{
    world_paid(w);
    for (int i = 0; i < 2; i++) {
        struct pay_event *event = world_event(w, PAY_EV_DISPUTE_FUNDS_WITHDRAWN, 1);
        event->provider_action_id = PAY_STR("dp_1");
        event->has_amount = true;
        event->amount.amount_minor = 4000;
        world_decide(w, PAY_EVIDENCE_WEBHOOK);
    }
    return world_attempt(w, 1)->amounts.withdrawn == 4000;
}

/* An UNKNOWN attempt that somebody wants to close; the request's id. */
static const char *ask_to_close(struct world *w)
{
    static char request_id[PAY_CAUSE_SIZE];

    world_start(w);
    world_keep_actions(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
    struct pay_command *command = world_operator_command(w, PAY_CMD_FORCE_CLOSE_UNKNOWN, "ann");
    w->attempts[0].version++; /* As the store raises it before the operator looks. */
    w->attempts[0].change = PAY_ROW_SAME;
    command->controlled.aggregate_id = PAY_STR(WORLD_PAYMENT "A01");
    command->controlled.expected_version = w->attempts[0].version;
    command->controlled.to_status = PAY_STR("FAILED");
    world_decide_command(w);
    (void)snprintf(request_id, sizeof request_id, "%s", w->cause);
    return request_id;
}

static bool is_unknown(struct world *w)
{
    return world_attempt(w, 1)->status == PAY_ATTEMPT_UNKNOWN;
}

bool guard_approval_own(struct world *w)
{
    const char *request_id = ask_to_close(w);
    world_word(w, PAY_CMD_APPROVE, "ann", request_id);
    world_word(w, PAY_CMD_APPROVE, "bob", request_id);
    return is_unknown(w);
}

bool guard_approval_twice(struct world *w)
{
    const char *request_id = ask_to_close(w);
    world_word(w, PAY_CMD_APPROVE, "bob", request_id);
    world_word(w, PAY_CMD_APPROVE, "bob", request_id);
    return is_unknown(w);
}

bool guard_approval_digest(struct world *w)
{
    static const uint8_t other[32] = {1};
    const char *request_id = ask_to_close(w);

    world_word(w, PAY_CMD_APPROVE, "bob", request_id);
    struct pay_command *command = world_operator_command(w, PAY_CMD_APPROVE, "cat");
    command->approval = (struct pay_cmd_approval){.request_id = pay_str_of(request_id),
                                                  .request_sha256 = {other, sizeof other}};
    world_decide_command(w);
    return is_unknown(w);
}

bool guard_approval_version(struct world *w)
{
    const char *request_id = ask_to_close(w);
    world_word(w, PAY_CMD_APPROVE, "bob", request_id);
    w->attempts[0].version++; /* Something else has changed the row. */
    world_word(w, PAY_CMD_APPROVE, "cat", request_id);
    return is_unknown(w);
}

bool guard_refund_threshold(struct world *w)
{
    world_paid(w);
    w->policy.refund_threshold_minor = 2999;
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 3000);
    return world_count_jobs(w, PAY_JOB_REFUND) == 0;
}
