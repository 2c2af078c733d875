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

static struct world_row *find_row(struct world *w, enum pay_deadline_kind kind,
                                  const char *aggregate_id)
{
    for (size_t i = 0; i < w->row_count; i++) {
        if (w->rows[i].kind == kind && strcmp(w->rows[i].aggregate_id, aggregate_id) == 0) {
            return &w->rows[i];
        }
    }
    return NULL;
}

static void keep_deadline(struct world *w, const struct pay_effect *effect)
{
    struct world_row *row = find_row(w, effect->as.deadline.kind, effect->as.deadline.aggregate_id);

    if (effect->kind == PAY_EFFECT_DEADLINE_CLEAR) {
        if (row != NULL) {
            *row = w->rows[--w->row_count];
        }
        return;
    }
    if (row == NULL) {
        assert_true(w->row_count < sizeof w->rows / sizeof w->rows[0]);
        row = &w->rows[w->row_count++];
        row->kind = effect->as.deadline.kind;
        memcpy(row->aggregate_id, effect->as.deadline.aggregate_id, sizeof row->aggregate_id);
    }
    row->due_at_us = effect->as.deadline.due_at_us;
}

static void commit(struct world *w)
{
    w->snap.order.version += w->out.history_count > 0 ? 1 : 0;
    w->snap.order.change = PAY_ROW_SAME;
    for (size_t i = 0; i < w->snap.attempt_count; i++) {
        w->attempts[i].version += w->attempts[i].change != PAY_ROW_SAME ? 1 : 0;
        w->attempts[i].change = PAY_ROW_SAME;
        w->attempts[i].amounts_changed = false;
    }
    for (size_t i = 0; i < w->snap.gate_count; i++) {
        w->gates[i].change = PAY_ROW_SAME;
    }
    for (size_t i = 0; i < w->snap.reference_count; i++) {
        w->references[i].change = PAY_ROW_SAME;
    }
    for (size_t i = 0; i < w->snap.case_count; i++) {
        w->cases[i].version += w->cases[i].change != PAY_ROW_SAME ? 1 : 0;
        w->cases[i].change = PAY_ROW_SAME;
    }
    for (size_t i = 0; i < w->snap.capture_count; i++) {
        w->captures[i].version += w->captures[i].change != PAY_ROW_SAME ? 1 : 0;
        w->captures[i].change = PAY_ROW_SAME;
    }
    for (size_t i = 0; i < w->snap.refund_count; i++) {
        w->refunds[i].version += w->refunds[i].change != PAY_ROW_SAME ? 1 : 0;
        w->refunds[i].change = PAY_ROW_SAME;
    }
    for (size_t i = 0; i < w->snap.dispute_count; i++) {
        w->disputes[i].version += w->disputes[i].change != PAY_ROW_SAME ? 1 : 0;
        w->disputes[i].change = PAY_ROW_SAME;
    }
    for (size_t i = 0; i < w->snap.request_count; i++) {
        w->requests[i].change = PAY_ROW_SAME;
    }
    for (size_t i = 0; i < w->snap.approval_count; i++) {
        w->approvals[i].change = PAY_ROW_SAME;
    }
    w->snap.refund_day.amount_minor += w->snap.refund_day.added_minor;
    w->snap.refund_day.added_minor = 0;
    w->snap.refund_day.change = PAY_ROW_SAME;
}

static bool has_row(const struct world *w, const char *id)
{
    for (size_t r = 0; r < w->row_count; r++) {
        if (strcmp(w->rows[r].aggregate_id, id) == 0) {
            return true;
        }
    }
    return false;
}

/* So has every open capture, refund and request; what is over has none. */
static void check_action_rows(const struct world *w)
{
    for (size_t i = 0; i < w->snap.capture_count; i++) {
        assert_int_equal(has_row(w, w->captures[i].action_id),
                         pay_money_is_open(w->captures[i].status));
    }
    for (size_t i = 0; i < w->snap.refund_count; i++) {
        assert_int_equal(has_row(w, w->refunds[i].action_id),
                         pay_money_is_open(w->refunds[i].status));
    }
    for (size_t i = 0; i < w->snap.request_count; i++) {
        assert_int_equal(has_row(w, w->requests[i].request_id),
                         w->requests[i].status == PAY_REQUEST_PENDING);
    }
}

/* Every open attempt has a row that will wake it, and an open order has its expiry. */
static void check_rows(struct world *w)
{
    if (!w->snap.order.exists) {
        return;
    }
    const bool expires = find_row(w, PAY_DEADLINE_ORDER_EXPIRY, WORLD_PAYMENT) != NULL;
    assert_true(expires || w->snap.order.expiry_asked || pay_order_is_final(w->snap.order.status));
    for (size_t i = 0; i < w->snap.attempt_count; i++) {
        bool waits = pay_attempt_is_final(w->attempts[i].status);
        for (size_t r = 0; r < w->row_count; r++) {
            waits |= strcmp(w->rows[r].aggregate_id, w->attempts[i].attempt_id) == 0;
        }
        assert_true(waits);
    }
}

/* Every fact stands in exactly one history row: the outbox row is deleted when it is delivered. */
static void check_facts(const struct world *w)
{
    for (size_t i = 0; i < w->out.effect_count; i++) {
        int rows = 0;
        for (size_t h = 0; h < w->out.history_count; h++) {
            rows += w->out.history[h].fact_effect == (int)i ? 1 : 0;
        }
        assert_int_equal(rows, w->out.effects[i].kind == PAY_EFFECT_FACT ? 1 : 0);
    }
}

static void run(struct world *w)
{
    commit(w); /* Of the turn before: a test can look at what a decision has marked. */
    pay_decide(&w->snap, &w->input, &w->out);
    for (size_t i = 0; i < w->out.effect_count; i++) {
        const struct pay_effect *effect = &w->out.effects[i];
        if (effect->kind == PAY_EFFECT_DEADLINE_SET || effect->kind == PAY_EFFECT_DEADLINE_CLEAR) {
            keep_deadline(w, effect);
        }
    }
    check_facts(w);
    check_rows(w);
    check_action_rows(w);
}

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
    run(w);
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
    run(w);
}

static void decide_due(struct world *w, enum pay_deadline_kind kind, const char *id)
{
    static char aggregate_id[PAY_CAUSE_SIZE];
    (void)snprintf(aggregate_id, sizeof aggregate_id, "%s",
                   id); /* Rows move while it is decided. */
    const struct world_row *row = find_row(w, kind, aggregate_id);

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
    run(w);
    row = find_row(w, kind, aggregate_id);
    assert_true(row == NULL || row->due_at_us != due_at_us); /* Or recovery would loop. */
}

void world_due(struct world *w, enum pay_deadline_kind kind, int attempt_no)
{
    char aggregate_id[PAY_ACTION_ID_SIZE];
    memcpy(aggregate_id, world_attempt(w, attempt_no)->attempt_id, sizeof aggregate_id);
    decide_due(w, kind, aggregate_id);
}

void world_order_due(struct world *w)
{
    decide_due(w, PAY_DEADLINE_ORDER_EXPIRY, WORLD_PAYMENT);
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

void world_keep_actions(struct world *w)
{
    w->snap.keeps_actions = true;
    for (size_t i = 0; i < w->snap.route_count + PAY_ROUTES_MAX; i++) {
        const bool is_own = i < w->snap.route_count;
        struct pay_psp_traits *t =
            is_own ? &w->routes[i].traits : &w->offered[i - w->snap.route_count].traits;
        t->captures_part = true;
        t->captures_again = true;
        t->queries_captures = true;
        t->queries_refunds = true;
        t->finds_captures_by_no = true;
        t->finds_refunds_by_no = true;
        t->action_life_us = 600 * SECOND;
        t->action_retry_us = 20 * SECOND;
        t->reservation_us = 3000 * SECOND;
    }
}

void world_paid(struct world *w)
{
    world_start(w);
    world_keep_actions(w);
    world_put(w, 1, PAY_ATTEMPT_SUCCEEDED);
}

void world_authorized(struct world *w)
{
    world_start_manual(w);
    world_keep_actions(w);
    world_put(w, 1, PAY_ATTEMPT_AUTHORIZED);
}

const char *world_id(const char *tail)
{
    static char ids[4][PAY_JOB_ID_SIZE];
    static int next;
    char *id = ids[next++ % 4];
    (void)snprintf(id, sizeof ids[0], "%s%s", WORLD_PAYMENT, tail);
    return id;
}

struct pay_money_action *world_action(struct world *w, const char *tail)
{
    const char *id = world_id(tail);
    for (size_t i = 0; i < w->snap.capture_count; i++) {
        if (strcmp(w->captures[i].action_id, id) == 0) {
            return &w->captures[i];
        }
    }
    for (size_t i = 0; i < w->snap.refund_count; i++) {
        if (strcmp(w->refunds[i].action_id, id) == 0) {
            return &w->refunds[i];
        }
    }
    fail_msg("no action %s", tail);
    return NULL;
}

struct pay_event *world_action_event(struct world *w, enum pay_event_type type, const char *tail)
{
    struct pay_money_action *action = world_action(w, tail);
    struct pay_event *event = world_event(w, type, action->attempt_index + 1);

    event->action_id = pay_str_of(action->action_id);
    event->has_amount = true;
    event->amount = action->amount;
    return event;
}

void world_action_say(struct world *w, enum pay_event_type type, const char *tail,
                      enum pay_evidence evidence)
{
    world_action_event(w, type, tail);
    world_decide(w, evidence);
}

void world_action_answers(struct world *w, const char *job, enum pay_query_by by,
                          int64_t asked_at_us)
{
    static char job_id[PAY_JOB_ID_SIZE];
    (void)snprintf(job_id, sizeof job_id, "%s%s", WORLD_PAYMENT, job);
    w->event.call = (struct pay_call){.is_set = true,
                                      .job_id = pay_str_of(job_id),
                                      .send_no = 1,
                                      .query_by = by,
                                      .asked_at_us = asked_at_us};
}

struct pay_gate *world_action_gate(struct world *w, const char *job)
{
    const char *job_id = world_id(job);
    for (size_t i = 0; i < w->snap.gate_count; i++) {
        if (strcmp(w->gates[i].job_id, job_id) == 0) {
            return &w->gates[i];
        }
    }
    return NULL;
}

void world_action_pass(struct world *w, const char *job)
{
    struct pay_gate *gate = world_action_gate(w, job);
    assert_non_null(gate);
    assert_true(gate->closed_at_us == 0);
    gate->sending_at_us = w->now_us;
    gate->last_send_at_us = w->now_us;
    gate->sends++;
}

void world_money_command(struct world *w, enum pay_command_type type, int64_t amount_minor)
{
    struct pay_command *command = world_command(w, type);
    command->money =
        (struct pay_cmd_money){.amount = {amount_minor, "EUR"}, .reason_code = PAY_STR("RETURNED")};
    world_decide_command(w);
}

struct pay_command *world_operator_command(struct world *w, enum pay_command_type type,
                                           const char *caller)
{
    static const uint8_t sha256[32] = {7};
    struct pay_command *command = world_command(w, type);

    w->input.source = PAY_SOURCE_OPERATOR;
    command->caller = pay_str_of(caller);
    (void)snprintf(w->cause, sizeof w->cause, "%s/c%d", caller, w->causes);
    w->input.cause = pay_str_of(w->cause);
    command->controlled = (struct pay_cmd_controlled){
        .expected_version = -1,
        .reason_code =
            type == PAY_CMD_RESOLVE_CASE ? PAY_STR("CONFIRMED_BY_PSP") : PAY_STR("PSP_CONFIRMED"),
        .attachments = {{PAY_STR("ticket-1"), {sha256, sizeof sha256}}},
        .attachment_count = 1};
    return command;
}

void world_word(struct world *w, enum pay_command_type type, const char *caller,
                const char *request_id)
{
    struct pay_command *command = world_operator_command(w, type, caller);
    const uint8_t *sha256 = NULL;

    for (size_t i = 0; i < w->snap.request_count; i++) {
        if (strcmp(w->requests[i].request_id, request_id) == 0) {
            sha256 = w->requests[i].sha256;
        }
    }
    command->approval = (struct pay_cmd_approval){.request_id = pay_str_of(request_id),
                                                  .request_sha256 = {sha256, sha256 ? 32 : 0},
                                                  .reason_code = PAY_STR("CHECKED")};
    world_decide_command(w);
}

int64_t world_row_of(const struct world *w, enum pay_deadline_kind kind, const char *id)
{
    for (size_t i = 0; i < w->row_count; i++) {
        if (w->rows[i].kind == kind && strcmp(w->rows[i].aggregate_id, id) == 0) {
            return w->rows[i].due_at_us;
        }
    }
    return -1;
}

void world_wait_for_id(struct world *w, enum pay_deadline_kind kind, const char *id)
{
    const int64_t due_at_us = world_row_of(w, kind, id);
    assert_true(due_at_us >= 0);
    w->now_us = due_at_us > w->now_us ? due_at_us : w->now_us;
    decide_due(w, kind, id);
}

void world_amounts(struct world *w, int attempt_no, const int64_t expected[6])
{
    const struct pay_amounts *a = &world_attempt(w, attempt_no)->amounts;
    const int64_t actual[6] = {a->authorized,      a->capture_reserved, a->captured,
                               a->refund_reserved, a->refunded,         a->withdrawn};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(actual[i], expected[i]);
    }
}

/* ------------------------------------------------------------------------------------- look, count
 */

int64_t world_row_due(const struct world *w, enum pay_deadline_kind kind, int attempt_no)
{
    for (size_t i = 0; i < w->row_count; i++) {
        if (w->rows[i].kind == kind &&
            strcmp(w->rows[i].aggregate_id, w->attempts[attempt_no - 1].attempt_id) == 0) {
            return w->rows[i].due_at_us;
        }
    }
    return -1;
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
