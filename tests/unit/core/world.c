/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/core/world.h"

#include <stdio.h>

static const struct pay_psp_traits traits = {
    .can_cancel = true,
    .finds_by_request_no = true,
    .not_founds_needed = 2,
    .send_window_us = WORLD_SEND_WINDOW,
    .answer_us = WORLD_ANSWER,
    .call_budget_us = WORLD_CALL_BUDGET,
    .longest_processing_us = WORLD_LONGEST,
    .visibility_grace_us = WORLD_GRACE,
    .query_first_us = WORLD_QUERY_FIRST,
    .person_after_us = WORLD_PERSON_AFTER,
    .action_lifetime_us = WORLD_ACTION_LIFETIME,
    .cancel_retry_us = WORLD_CANCEL_RETRY,
};

void world_init(struct world *w)
{
    memset(w, 0, sizeof *w);
    w->snap = (struct pay_snapshot){.routes = w->routes,
                                    .route_cap = PAY_ROUTES_MAX,
                                    .attempts = w->attempts,
                                    .attempt_cap = PAY_ATTEMPTS_MAX,
                                    .gates = w->gates,
                                    .gate_cap = 300,
                                    .references = w->references,
                                    .reference_cap = 400,
                                    .cases = w->cases,
                                    .case_cap = 100,
                                    .captures = w->captures,
                                    .capture_cap = PAY_CAPTURES_MAX,
                                    .refunds = w->refunds,
                                    .refund_cap = PAY_REFUNDS_MAX,
                                    .disputes = w->disputes,
                                    .dispute_cap = PAY_DISPUTES_MAX,
                                    .requests = w->requests,
                                    .request_cap = sizeof w->requests / sizeof w->requests[0],
                                    .approvals = w->approvals,
                                    .approval_cap = sizeof w->approvals / sizeof w->approvals[0]};
    w->policy = (struct pay_policy){.order_expires_after_us = WORLD_ORDER_LIFETIME,
                                    .failover_window_us = WORLD_FAILOVER,
                                    .retry_until_expiry = true,
                                    .amount_max_minor = INT64_MAX,
                                    .manual_capture = true,
                                    .refund_threshold_minor = INT64_MAX,
                                    .refund_threshold_day_minor = INT64_MAX};
    memcpy(w->snap.order.payment_id, WORLD_PAYMENT, PAY_PAYMENT_ID_SIZE);
    w->now_us = WORLD_START;
    for (int i = 0; i <= PAY_ROUTES_MAX; i++) {
        struct pay_route *route = &w->offered[i];
        (void)snprintf(route->psp, sizeof route->psp, "psp%d", i);
        (void)snprintf(route->psp_account, sizeof route->psp_account, "account-%d", i);
        (void)snprintf(route->method, sizeof route->method, "card");
        route->failover_on_not_found = true;
        route->traits = traits;
    }
}

/* ------------------------------------------------------------------------ the store's small part
 */

/* ---------------------------------------------------------------------------------------- inputs
 */

static struct pay_decide_input *begin_input(struct world *w, enum pay_input_kind kind)
{
    w->input = (struct pay_decide_input){
        .kind = kind, .now_us = w->now_us, .routes = w->offered, .policy = w->policy};
    return &w->input;
}

struct pay_attempt *world_attempt(struct world *w, int attempt_no)
{
    assert_in_range(attempt_no, 1, w->snap.attempt_count);
    return &w->attempts[attempt_no - 1];
}

struct pay_event *world_event(struct world *w, enum pay_event_type type, int attempt_no)
{
    const struct pay_attempt *attempt = world_attempt(w, attempt_no);
    const bool is_money = type == PAY_EV_ATTEMPT_SUCCEEDED || type == PAY_EV_ATTEMPT_AUTHORIZED ||
                          type == PAY_EV_ATTEMPT_REVERSED || type == PAY_EV_CAPTURE_SUCCEEDED;

    begin_input(w, PAY_INPUT_EVENT);
    w->event = (struct pay_event){.type = type,
                                  .psp = pay_str_of(attempt->psp),
                                  .psp_account = pay_str_of(attempt->psp_account),
                                  .merchant_request_no = pay_str_of(attempt->attempt_id),
                                  .has_amount = is_money,
                                  .amount = {WORLD_AMOUNT, "EUR"}};
    w->input.event = &w->event;
    (void)snprintf(w->cause, sizeof w->cause, "cause-%d", ++w->causes);
    w->input.cause = pay_str_of(w->cause);
    return &w->event;
}

void world_answers(struct world *w, const char *job_suffix, enum pay_query_by by,
                   int64_t asked_at_us)
{
    static char job_id[PAY_JOB_ID_SIZE];
    (void)snprintf(job_id, sizeof job_id, "%.29s%s", w->event.merchant_request_no.ptr, job_suffix);
    w->event.call = (struct pay_call){.is_set = true,
                                      .job_id = pay_str_of(job_id),
                                      .send_no = 1,
                                      .query_by = by,
                                      .asked_at_us = asked_at_us};
}

void world_decide(struct world *w, enum pay_evidence evidence)
{
    w->input.evidence = evidence;
    w->input.now_us = w->now_us;
    world_turn(w);
}

void world_say(struct world *w, enum pay_event_type type, int attempt_no,
               enum pay_evidence evidence)
{
    world_event(w, type, attempt_no);
    world_decide(w, evidence);
}

void world_not_found(struct world *w, int attempt_no, int64_t asked_at_us)
{
    world_event(w, PAY_EV_ATTEMPT_NOT_FOUND, attempt_no);
    world_answers(w, ".QUERY.v1", PAY_QUERY_BY_REQUEST_NUMBER, asked_at_us);
    world_decide(w, PAY_EVIDENCE_QUERY);
}

struct pay_command *world_command(struct world *w, enum pay_command_type type)
{
    begin_input(w, PAY_INPUT_COMMAND);
    w->input.evidence = PAY_EVIDENCE_LOCAL;
    w->command = (struct pay_command){
        .command_id = PAY_STR("c1"),
        .type = type,
        .caller = PAY_STR("shop"),
        .merchant_id = PAY_STR("merchant-1"),
        .payment_id = PAY_STR(WORLD_PAYMENT),
        .create_payment = {.merchant_order_no = PAY_STR("order-1"),
                           .amount = {WORLD_AMOUNT, "EUR"},
                           .capture_mode = PAY_CAPTURE_AUTOMATIC,
                           .retry_until_expiry = -1,
                           .start = true},
    };
    w->input.command = &w->command;
    w->input.source = PAY_SOURCE_MERCHANT;
    memset(w->digest, w->causes + 1, sizeof w->digest);
    w->input.command_sha256 = (struct pay_bytes){w->digest, sizeof w->digest};
    w->input.route_count = type == PAY_CMD_CREATE_PAYMENT ? 3 : 0;
    (void)snprintf(w->cause, sizeof w->cause, "shop/c%d", ++w->causes);
    w->input.cause = pay_str_of(w->cause);
    return &w->command;
}

void world_decide_command(struct world *w)
{
    w->input.now_us = w->now_us;
    world_turn(w);
}

void world_due_id(struct world *w, enum pay_deadline_kind kind, const char *id)
{
    static char aggregate_id[PAY_CAUSE_SIZE];
    (void)snprintf(aggregate_id, sizeof aggregate_id, "%s",
                   id); /* Rows move while it is decided. */
    const struct world_row *row = world_find_row(w, kind, aggregate_id);

    assert_non_null(row);
    begin_input(w, PAY_INPUT_DEADLINE);
    w->input.evidence = PAY_EVIDENCE_LOCAL;
    w->input.deadline = (struct pay_deadline_due){.kind = kind,
                                                  .aggregate_id = pay_str_of(aggregate_id),
                                                  .due_at_us = row->due_at_us,
                                                  .row_due_at_us = row->due_at_us};
    (void)snprintf(w->cause, sizeof w->cause, "%s:%.120s:%lld", pay_deadline_kind_name(kind),
                   aggregate_id, (long long)row->due_at_us);
    w->input.cause = pay_str_of(w->cause);
    const int64_t due_at_us = row->due_at_us;
    world_turn(w);
    row = world_find_row(w, kind, aggregate_id);
    assert_true(row == NULL || row->due_at_us != due_at_us); /* Or recovery would loop. */
}

void world_due(struct world *w, enum pay_deadline_kind kind, int attempt_no)
{
    char aggregate_id[PAY_ACTION_ID_SIZE];
    memcpy(aggregate_id, world_attempt(w, attempt_no)->attempt_id, sizeof aggregate_id);
    world_due_id(w, kind, aggregate_id);
}

void world_order_due(struct world *w)
{
    world_due_id(w, PAY_DEADLINE_ORDER_EXPIRY, WORLD_PAYMENT);
}

void world_wait_for(struct world *w, enum pay_deadline_kind kind, int attempt_no)
{
    const int64_t due_at_us = world_row_due(w, kind, attempt_no);
    assert_true(due_at_us >= 0);
    w->now_us = due_at_us > w->now_us ? due_at_us : w->now_us;
    world_due(w, kind, attempt_no);
}

/* ----------------------------------------------------------------------------------- begin, put */

static void start(struct world *w, enum pay_capture_mode mode)
{
    world_init(w);
    world_command(w, PAY_CMD_CREATE_PAYMENT)->create_payment.capture_mode = mode;
    world_decide_command(w);
    assert_int_equal(w->snap.attempt_count, 1);
    w->now_us += SECOND;
}

void world_start(struct world *w)
{
    start(w, PAY_CAPTURE_AUTOMATIC);
}

void world_start_manual(struct world *w)
{
    start(w, PAY_CAPTURE_MANUAL);
}

struct pay_gate *world_gate(struct world *w, const char *job_suffix, int attempt_no)
{
    char job_id[PAY_JOB_ID_SIZE];
    (void)snprintf(job_id, sizeof job_id, "%s%s", world_attempt(w, attempt_no)->attempt_id,
                   job_suffix);
    for (size_t i = 0; i < w->snap.gate_count; i++) {
        if (strcmp(w->gates[i].job_id, job_id) == 0) {
            return &w->gates[i];
        }
    }
    return NULL;
}

void world_pass_gate(struct world *w, const char *job_suffix, int attempt_no)
{
    struct pay_gate *gate = world_gate(w, job_suffix, attempt_no);
    assert_non_null(gate);
    assert_true(gate->closed_at_us == 0);
    gate->sending_at_us = gate->sending_at_us == 0 ? w->now_us : gate->sending_at_us;
    gate->last_send_at_us = w->now_us;
    gate->sends++;
}

/* By real events, so that rows, gates and facts are what they would be. */
void world_put(struct world *w, int attempt_no, enum pay_attempt_status status)
{
    switch (status) {
    case PAY_ATTEMPT_CREATED:
        return;
    case PAY_ATTEMPT_SUBMITTED:
        world_pass_gate(w, ".SUBMIT", attempt_no);
        world_say(w, PAY_EV_ATTEMPT_SUBMITTED, attempt_no, PAY_EVIDENCE_LOCAL);
        break;
    case PAY_ATTEMPT_PROCESSING:
        world_put(w, attempt_no, PAY_ATTEMPT_SUBMITTED);
        world_say(w, PAY_EV_ATTEMPT_PROCESSING, attempt_no, PAY_EVIDENCE_SYNC_RESPONSE);
        break;
    case PAY_ATTEMPT_REQUIRES_ACTION:
        world_put(w, attempt_no, PAY_ATTEMPT_SUBMITTED);
        world_event(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, attempt_no)->action.is_set = true;
        world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
        break;
    case PAY_ATTEMPT_AUTHORIZED:
        assert_int_equal(w->snap.order.capture_mode, PAY_CAPTURE_MANUAL);
        world_put(w, attempt_no, PAY_ATTEMPT_SUBMITTED);
        world_say(w, PAY_EV_ATTEMPT_AUTHORIZED, attempt_no, PAY_EVIDENCE_WEBHOOK);
        break;
    case PAY_ATTEMPT_UNKNOWN:
        world_put(w, attempt_no, PAY_ATTEMPT_SUBMITTED);
        world_say(w, PAY_EV_ATTEMPT_UNKNOWN, attempt_no, PAY_EVIDENCE_LOCAL);
        break;
    case PAY_ATTEMPT_SUCCEEDED:
        world_put(w, attempt_no, PAY_ATTEMPT_SUBMITTED);
        world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, attempt_no, PAY_EVIDENCE_WEBHOOK);
        break;
    case PAY_ATTEMPT_FAILED:
        world_put(w, attempt_no, PAY_ATTEMPT_SUBMITTED);
        world_say(w, PAY_EV_ATTEMPT_FAILED, attempt_no, PAY_EVIDENCE_SYNC_RESPONSE);
        break;
    default:
        assert_int_equal(status, PAY_ATTEMPT_CANCELED);
        world_put(w, attempt_no, PAY_ATTEMPT_SUBMITTED);
        world_say(w, PAY_EV_ATTEMPT_CANCELED, attempt_no, PAY_EVIDENCE_WEBHOOK);
        break;
    }
    assert_int_equal(world_attempt(w, attempt_no)->status, status);
}

/* ---------------------------------------------------------------- captures, refunds and the rest
 */

/* ------------------------------------------------------------------------------------- look, count
 */

int64_t world_row_of(const struct world *w, enum pay_deadline_kind kind, const char *id)
{
    for (size_t i = 0; i < w->row_count; i++) {
        if (w->rows[i].kind == kind && strcmp(w->rows[i].aggregate_id, id) == 0) {
            return w->rows[i].due_at_us;
        }
    }
    return -1;
}

int64_t world_row_due(const struct world *w, enum pay_deadline_kind kind, int attempt_no)
{
    return world_row_of(w, kind, w->attempts[attempt_no - 1].attempt_id);
}

const struct pay_fact *world_fact(const struct world *w, enum pay_fact_type type)
{
    for (size_t i = 0; i < w->out.effect_count; i++) {
        if (w->out.effects[i].kind == PAY_EFFECT_FACT && w->out.effects[i].as.fact.type == type) {
            return &w->out.effects[i].as.fact;
        }
    }
    return NULL;
}

int world_count_facts(const struct world *w, enum pay_fact_type type)
{
    int count = 0;
    for (size_t i = 0; i < w->out.effect_count; i++) {
        count += w->out.effects[i].kind == PAY_EFFECT_FACT && w->out.effects[i].as.fact.type == type
                     ? 1
                     : 0;
    }
    return count;
}

const struct pay_job_effect *world_job(const struct world *w, enum pay_job_kind kind)
{
    for (size_t i = 0; i < w->out.effect_count; i++) {
        if (w->out.effects[i].kind == PAY_EFFECT_JOB && w->out.effects[i].as.job.kind == kind) {
            return &w->out.effects[i].as.job;
        }
    }
    return NULL;
}

int world_count_jobs(const struct world *w, enum pay_job_kind kind)
{
    int count = 0;
    for (size_t i = 0; i < w->out.effect_count; i++) {
        count += w->out.effects[i].kind == PAY_EFFECT_JOB && w->out.effects[i].as.job.kind == kind
                     ? 1
                     : 0;
    }
    return count;
}

const struct pay_case *world_case(const struct world *w, enum pay_case_kind kind)
{
    for (size_t i = 0; i < w->snap.case_count; i++) {
        if (w->cases[i].open && w->cases[i].kind == kind) {
            return &w->cases[i];
        }
    }
    return NULL;
}

void world_open_case(struct world *w, enum pay_case_kind kind)
{
    w->cases[w->snap.case_count++] = (struct pay_case){.kind = kind, .open = true, .number = 1};
}
