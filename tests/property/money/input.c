/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/property/money/input.h"

#include <stdio.h>
#include <string.h>

#include "common/core/id.h"

static struct {
    struct pay_decide_input in;
    struct pay_event event;
    struct pay_command command;
    char cause[PAY_CAUSE_SIZE], job[PAY_JOB_ID_SIZE], reference[32];
    uint8_t digest[32];
} made;

static void begin(enum pay_input_kind kind, enum pay_evidence evidence, struct mx_step step)
{
    memset(&made, 0, sizeof made);
    made.in.kind = kind;
    made.in.evidence = evidence;
    made.in.now_us = MX_NOW;
    (void)snprintf(made.cause, sizeof made.cause, "%d|%d|%d|%d", step.kind, step.money, step.index,
                   step.arg);
    made.in.cause = pay_str_of(made.cause);
}

/* ---------------------------------------------------------------------------------------------
 * events */

static void begin_event(struct mx_step step, enum pay_evidence evidence, int attempt)
{
    begin(PAY_INPUT_EVENT, evidence, step);
    (void)snprintf(made.reference, sizeof made.reference, "pi_%d", attempt);
    made.event = (struct pay_event){.psp = PAY_STR("psp"),
                                    .psp_account = PAY_STR("account"),
                                    .merchant_request_no = pay_str_of(mx_id('A', attempt + 1)),
                                    .provider_payment_id = pay_str_of(made.reference)};
    made.in.event = &made.event;
}

static enum pay_event_type type_of(int money, enum pay_money_event event)
{
    const int first =
        money == PAY_MONEY_CAPTURE ? PAY_EV_CAPTURE_SUBMITTED : PAY_EV_REFUND_SUBMITTED;
    return (enum pay_event_type)(first + (int)event);
}

static enum pay_money_event event_of(uint8_t state)
{
    static const enum pay_money_event events[MX_OBJECT_COUNT] = {
        [MX_NONE] = PAY_ME_NOT_FOUND, [MX_PENDING] = PAY_ME_PROCESSING,
        [MX_DONE] = PAY_ME_SUCCEEDED, [MX_REFUSED] = PAY_ME_FAILED,
        [MX_FAILED] = PAY_ME_FAILED,
    };
    return events[state];
}

/* Our number where it is one of ours, and what the PSP calls it. */
static void name(int money, int attempt, int object, uint8_t state, uint8_t amount)
{
    if (object != MX_CONSOLE) {
        made.event.action_id =
            pay_str_of(mx_id(money == PAY_MONEY_CAPTURE ? 'C' : 'R', object + 1));
    }
    if (state != MX_NONE && state != MX_REFUSED) {
        made.event.provider_action_id = pay_str_of(mx_reference(attempt, money, object));
        made.event.has_amount = true;
        made.event.amount = (struct pay_money){amount, "EUR"};
    }
}

static void answers(struct mx_step step, enum pay_job_kind kind, enum pay_query_by by,
                    int64_t asked_at_us)
{
    const char *id = mx_id(step.money == PAY_MONEY_CAPTURE ? 'C' : 'R', step.index + 1);
    if (by == PAY_QUERY_BY_NONE) {
        pay_id_job(made.job, id, kind, 1);
    } else {
        pay_id_query_by_version(made.job, id, MX_VERSION);
    }
    made.event.call = (struct pay_call){.is_set = true,
                                        .job_id = pay_str_of(made.job),
                                        .send_no = 1,
                                        .query_by = by,
                                        .asked_at_us = asked_at_us};
}

static enum pay_job_kind job_kind(struct mx_step step)
{
    return step.money == PAY_MONEY_CAPTURE ? PAY_JOB_CAPTURE : PAY_JOB_REFUND;
}

static const struct mx_action *action_of(const struct mx_world *world, struct mx_step step)
{
    return step.money == PAY_MONEY_CAPTURE ? &world->captures[step.index]
                                           : &world->refunds[step.index];
}

static void say_own(const struct mx_world *world, struct mx_step step)
{
    const struct mx_action *action = action_of(world, step);

    begin_event(step, PAY_EVIDENCE_LOCAL, action->attempt);
    made.event.type = type_of(step.money, (enum pay_money_event)step.arg);
    name(step.money, action->attempt, mx_own_object(action, step.index), MX_NONE, 0);
    answers(step, job_kind(step), PAY_QUERY_BY_NONE, 0);
}

static void say_answer(const struct mx_world *world, struct mx_step step)
{
    const struct mx_action *action = action_of(world, step);

    begin_event(step, PAY_EVIDENCE_SYNC_RESPONSE, action->attempt);
    made.event.type =
        step.arg == 0 ? PAY_EV_REFUND_RETRY_SAME_NUMBER : type_of(step.money, event_of(step.arg));
    name(step.money, action->attempt, mx_own_object(action, step.index), step.arg, action->amount);
    answers(step, job_kind(step), PAY_QUERY_BY_NONE, 0);
    if (step.arg == 0) {
        const uint8_t job = world->attempts[action->attempt].refunds[step.index].not_now;
        pay_id_job(made.job, mx_id('R', step.index + 1), PAY_JOB_REFUND, job + 1);
        made.event.call.job_id = pay_str_of(made.job);
    }
}

static void say_hook(const struct mx_world *world, struct mx_step step)
{
    const struct mx_attempt *a = &world->attempts[step.index];
    const int object = step.arg / 16;
    const uint8_t amount =
        step.money == PAY_MONEY_CAPTURE ? a->captures[object].amount : a->refunds[object].amount;

    begin_event(step, PAY_EVIDENCE_WEBHOOK, step.index);
    made.event.type = type_of(step.money, event_of(step.arg % 16));
    name(step.money, step.index, object, step.arg % 16, amount);
}

static void say_told(const struct mx_world *world, struct mx_step step)
{
    const struct mx_slot *slot = &world->slot;

    if (slot->kind == 2) {
        begin_event(step, PAY_EVIDENCE_QUERY, slot->index);
        made.event.type = PAY_EV_REFUND_SUM;
        made.event.has_amount = true;
        made.event.amount = (struct pay_money){slot->state, "EUR"};
        pay_id_query_by_version(made.job, mx_id('A', slot->index + 1), MX_VERSION);
        made.event.call =
            (struct pay_call){.is_set = true,
                              .job_id = pay_str_of(made.job),
                              .send_no = 1,
                              .query_by = PAY_QUERY_BY_PSP_REFERENCE,
                              .asked_at_us = slot->is_late != 0 ? MX_ASKED_LATE : MX_ASKED_EARLY};
        return;
    }
    const struct mx_action *action = action_of(world, step);
    begin_event(step, PAY_EVIDENCE_QUERY, action->attempt);
    made.event.type = type_of(step.money, event_of(slot->state));
    const int object = slot->object;
    name(step.money, action->attempt, object, slot->state, action->amount);
    if (object == MX_CONSOLE && action->origin != PAY_ORIGIN_PSP) { /* Asked by its name. */
        made.event.action_id = (struct pay_str){NULL, 0};
    }
    answers(step, job_kind(step), PAY_QUERY_BY_REQUEST_NUMBER,
            slot->is_late != 0 ? MX_ASKED_LATE : MX_ASKED_EARLY);
}

static void say_sum(struct mx_step step)
{
    begin_event(step, PAY_EVIDENCE_WEBHOOK, step.index);
    made.event.type = PAY_EV_REFUND_SUM;
    made.event.has_amount = true;
    made.event.amount = (struct pay_money){step.arg, "EUR"};
}

static void say_void(const struct mx_world *world, struct mx_step step)
{
    begin_event(step, PAY_EVIDENCE_SYNC_RESPONSE, step.index);
    made.event.type = world->attempts[step.index].void_told == 1 ? PAY_EV_ATTEMPT_CANCELED
                                                                 : PAY_EV_CANCEL_REFUSED;
    pay_id_job(made.job, mx_id('A', step.index + 1), PAY_JOB_CANCEL, 1);
    made.event.call =
        (struct pay_call){.is_set = true, .job_id = pay_str_of(made.job), .send_no = 1};
}

static void say_dispute(struct mx_step step)
{
    static const enum pay_event_type types[] = {
        PAY_EV_DISPUTE_OPENED,           PAY_EV_DISPUTE_OPENED, PAY_EV_DISPUTE_FUNDS_WITHDRAWN,
        PAY_EV_DISPUTE_FUNDS_REINSTATED, PAY_EV_DISPUTE_WON,    PAY_EV_DISPUTE_LOST,
    };
    begin_event(step, PAY_EVIDENCE_WEBHOOK, 0);
    made.event.type = types[step.arg];
    made.event.provider_action_id = pay_str_of(mx_reference(0, 2, 0));
    made.event.has_amount = true;
    made.event.amount = (struct pay_money){1, "EUR"};
}

/* -------------------------------------------------------------------------------------------
 * commands */

static void begin_command(struct mx_step step, enum pay_command_type type, const char *caller,
                          enum pay_source source)
{
    begin(PAY_INPUT_COMMAND, PAY_EVIDENCE_LOCAL, step);
    made.in.source = source;
    made.command = (struct pay_command){.command_id = PAY_STR("c"),
                                        .type = type,
                                        .caller = pay_str_of(caller),
                                        .merchant_id = PAY_STR("merchant"),
                                        .payment_id = PAY_STR(MX_PAYMENT)};
    made.in.command = &made.command;
    made.in.command_sha256 = (struct pay_bytes){mx_digest(), 32};
}

static void command_money(const struct mx_config *config, const struct mx_world *world,
                          struct mx_step step)
{
    const bool is_refund = step.kind == MX_REFUND;
    const char *caller = config->needs_approval != 0 ? "ann" : "shop";

    begin_command(step, is_refund ? PAY_CMD_REQUEST_REFUND : PAY_CMD_CAPTURE, caller,
                  PAY_SOURCE_MERCHANT);
    made.command.money =
        (struct pay_cmd_money){.amount = {step.arg % 16, "EUR"}, .is_final = step.arg >= 16};
    if (is_refund) {
        made.command.money.attempt_id = pay_str_of(mx_id('A', step.index + 1));
        made.in.policy.refund_threshold_minor = config->needs_approval != 0 ? 0 : INT64_MAX;
        made.in.policy.refund_threshold_day_minor = INT64_MAX;
    }
    int before = 0;
    for (int i = 0; i < MX_REFUNDS; i++) {
        before += world->refunds[i].exists + world->captures[i].exists;
    }
    (void)snprintf(made.cause, sizeof made.cause, "%s/%d.%d", caller, step.kind, before);
    if (config->needs_approval != 0 && is_refund) {
        (void)snprintf(made.cause, sizeof made.cause, "ann/request");
    }
    made.in.cause = pay_str_of(made.cause);
}

static void command_request(struct mx_step step)
{
    static const char *const outcomes[] = {"FAILED", "SUCCEEDED", "REVERSED"};
    static const uint8_t sha256[32] = {9};

    begin_command(step, (enum pay_command_type)step.money, "ann", PAY_SOURCE_OPERATOR);
    (void)snprintf(made.cause, sizeof made.cause, "ann/request");
    made.in.cause = pay_str_of(made.cause);
    made.command.controlled =
        (struct pay_cmd_controlled){.aggregate_id = pay_str_of(mx_id('R', step.index + 1)),
                                    .expected_version = MX_VERSION,
                                    .to_status = pay_str_of(outcomes[step.arg]),
                                    .reason_code = PAY_STR("PSP_CONFIRMED"),
                                    .attachments = {{PAY_STR("ticket"), {sha256, sizeof sha256}}},
                                    .attachment_count = 1};
}

static void command_word(struct mx_step step)
{
    static const char *const callers[] = {"ann", "bob", "cat"};

    begin_command(step, (step.arg & 8) != 0 ? PAY_CMD_DECLINE : PAY_CMD_APPROVE,
                  callers[step.arg & 3], PAY_SOURCE_OPERATOR);
    memcpy(made.digest, mx_digest(), sizeof made.digest);
    made.digest[0] ^= (step.arg & 4) != 0 ? 1 : 0;
    made.command.approval = (struct pay_cmd_approval){
        .request_id = PAY_STR("ann/request"), .request_sha256 = {made.digest, sizeof made.digest}};
}

/* ------------------------------------------------------------------------------------------
 * deadlines */

static void due(struct mx_step step, enum pay_deadline_kind kind, const char *id, int64_t now_us)
{
    begin(PAY_INPUT_DEADLINE, PAY_EVIDENCE_LOCAL, step);
    made.in.now_us = now_us;
    made.in.deadline = (struct pay_deadline_due){
        .kind = kind, .aggregate_id = pay_str_of(id), .due_at_us = 1, .row_due_at_us = 1};
}

static void due_action(struct mx_step step)
{
    const int bit = step.arg % 16;
    due(step, bit == MX_DUES - 1 ? PAY_DEADLINE_RESERVATION : (enum pay_deadline_kind)bit,
        mx_id(step.money == PAY_MONEY_CAPTURE ? 'C' : 'R', step.index + 1),
        step.arg >= 16 ? MX_END : MX_NOW);
}

const struct pay_decide_input *mx_input_of(const struct mx_config *config,
                                           const struct mx_world *world, struct mx_step step)
{
    static const char request_id[] = "ann/request";

    switch (step.kind) {
    case MX_REFUND:
    case MX_CAPTURE:
        command_money(config, world, step);
        break;
    case MX_CANCEL:
        begin_command(step, PAY_CMD_CANCEL_PAYMENT, "shop", PAY_SOURCE_MERCHANT);
        break;
    case MX_SAY:
        say_own(world, step);
        break;
    case MX_ANSWER:
        say_answer(world, step);
        break;
    case MX_HOOK:
        say_hook(world, step);
        break;
    case MX_SUM_HOOK:
        say_sum(step);
        break;
    case MX_TOLD:
        say_told(world, step);
        break;
    case MX_VOID_ANSWER:
        say_void(world, step);
        break;
    case MX_DISPUTE_HOOK:
        say_dispute(step);
        break;
    case MX_DUE:
        due_action(step);
        break;
    case MX_CANCEL_DUE:
        due(step, PAY_DEADLINE_ACTION, mx_id('A', step.index + 1), MX_NOW);
        break;
    case MX_REQUEST:
        command_request(step);
        if (step.money == PAY_CMD_CORRECT_STATE) {
            made.command.controlled.from_status = pay_str_of(
                pay_money_status_name((enum pay_money_status)world->refunds[step.index].status));
        }
        break;
    case MX_WORD:
        command_word(step);
        break;
    default:
        due(step, PAY_DEADLINE_APPROVAL, request_id, MX_END);
        break;
    }
    return &made.in;
}
