/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/core/world.h"

#include <stdio.h>

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

void world_wait_for_id(struct world *w, enum pay_deadline_kind kind, const char *id)
{
    const int64_t due_at_us = world_row_of(w, kind, id);
    assert_true(due_at_us >= 0);
    w->now_us = due_at_us > w->now_us ? due_at_us : w->now_us;
    world_due_id(w, kind, id);
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
