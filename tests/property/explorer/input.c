/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/property/explorer/input.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/core/id.h"
#include "tests/property/explorer/bench.h"

static struct {
    struct pay_decide_input input;
    struct pay_event event;
    struct pay_command command;
    char job_id[PAY_JOB_ID_SIZE];
    char cause[PAY_CAUSE_SIZE];
} built;

enum pay_event_type xp_event_of(uint8_t object)
{
    static const enum pay_event_type types[XP_OBJECT_COUNT] = {
        [XP_NONE] = PAY_EV_ATTEMPT_NOT_FOUND,        [XP_REFUSED] = PAY_EV_ATTEMPT_FAILED,
        [XP_PROCESSING] = PAY_EV_ATTEMPT_PROCESSING, [XP_ACTION] = PAY_EV_ATTEMPT_ACTION_REQUIRED,
        [XP_DECLINED] = PAY_EV_ATTEMPT_DECLINED,     [XP_APPROVED] = PAY_EV_ATTEMPT_APPROVED,
        [XP_CHARGED] = PAY_EV_ATTEMPT_SUCCEEDED,     [XP_CANCELED] = PAY_EV_ATTEMPT_CANCELED,
        [XP_FAILED] = PAY_EV_ATTEMPT_FAILED,
    };
    return types[object];
}

static bool is_local(enum pay_event_type type)
{
    return type == PAY_EV_ATTEMPT_SUBMITTED || type == PAY_EV_ATTEMPT_NOT_SENT ||
           type == PAY_EV_ATTEMPT_UNKNOWN;
}

static bool is_about_an_object(enum pay_event_type type)
{
    return !is_local(type) && type != PAY_EV_ATTEMPT_NOT_FOUND && type != PAY_EV_CANCEL_REFUSED &&
           type != PAY_EV_QUERY_FAILED;
}

static const struct {
    enum pay_source source;
    enum pay_evidence evidence;
    enum pay_job_kind job;
} channels[] = {
    [XP_BY_ANSWER] = {PAY_SOURCE_SYNC, PAY_EVIDENCE_SYNC_RESPONSE, PAY_JOB_SUBMIT},
    [XP_BY_REPLAY] = {PAY_SOURCE_SYNC, PAY_EVIDENCE_SYNC_RESPONSE, PAY_JOB_SUBMIT},
    [XP_BY_CONFIRM_ANSWER] = {PAY_SOURCE_SYNC, PAY_EVIDENCE_SYNC_RESPONSE, PAY_JOB_CONFIRM},
    [XP_BY_CANCEL_ANSWER] = {PAY_SOURCE_SYNC, PAY_EVIDENCE_SYNC_RESPONSE, PAY_JOB_CANCEL},
    [XP_BY_QUERY] = {PAY_SOURCE_QUERY, PAY_EVIDENCE_QUERY, PAY_JOB_QUERY},
    [XP_BY_CALLBACK] = {PAY_SOURCE_WEBHOOK, PAY_EVIDENCE_WEBHOOK, PAY_JOB_UNRECOGNIZED},
    [XP_BY_US] = {PAY_SOURCE_LOCAL, PAY_EVIDENCE_LOCAL, PAY_JOB_SUBMIT},
};

static void fill_call(const struct xp_saying *saying)
{
    const char *attempt_id = xp_bench_attempt_id(saying->attempt);
    const enum pay_job_kind job = saying->channel == XP_BY_US && saying->number > 0
                                      ? PAY_JOB_CONFIRM
                                      : channels[saying->channel].job;

    if (saying->channel == XP_BY_CALLBACK) {
        return;
    }
    if (job == PAY_JOB_QUERY) {
        pay_id_query_by_version(built.job_id, attempt_id, XP_VERSION_START);
    } else {
        pay_id_job(built.job_id, attempt_id, job, saying->number > 0 ? saying->number : 1);
    }
    built.event.call = (struct pay_call){
        .is_set = true,
        .job_id = pay_str_of(built.job_id),
        .send_no = saying->send_no,
        .query_by =
            saying->channel == XP_BY_REPLAY ? PAY_QUERY_BY_IDEMPOTENT_REPLAY : saying->query_by,
        .asked_at_us = xp_bench_time_us(saying->asked_at),
        .http_status = 200,
    };
}

static void fill_object(const struct xp_saying *saying)
{
    const char *reference = xp_bench_reference(saying->attempt, saying->reference);
    struct pay_event *event = &built.event;

    if (saying->type == PAY_EV_ATTEMPT_REVERSED) {
        event->provider_action_id = pay_str_of(reference);
    } else if (!saying->is_nameless) {
        event->provider_payment_id = pay_str_of(reference);
        event->references[0] = (struct pay_reference){PAY_REF_INTENT, pay_str_of(reference)};
        event->reference_count = 1;
    }
    event->has_amount = true;
    event->amount = (struct pay_money){saying->is_short ? XP_AMOUNT - 1 : XP_AMOUNT, "EUR"};
    if (saying->hands_out) {
        event->action = (struct pay_customer_action){
            .is_set = true, .type = PAY_ACTION_REDIRECT, .url = PAY_STR("https://psp.example/pay")};
    }
}

static void start(enum pay_input_kind kind)
{
    memset(&built, 0, sizeof built);
    built.input.kind = kind;
    built.input.now_us = xp_bench_time_us(xp_time_in(0));
    built.input.input_id = PAY_STR("input");
    built.input.evidence = PAY_EVIDENCE_LOCAL;
    built.input.source = PAY_SOURCE_LOCAL;
}

const struct pay_decide_input *xp_input_say(const struct xp_world *world,
                                            const struct xp_saying *saying)
{
    const struct pay_route *route =
        &xp_bench_routes()[world->attempts[saying->attempt].route % XP_ROUTES];
    const bool is_refused =
        saying->type == PAY_EV_ATTEMPT_FAILED && saying->channel == XP_BY_ANSWER;
    const bool has_object = is_about_an_object(saying->type) && !is_refused;

    start(PAY_INPUT_EVENT);
    built.input.source = channels[saying->channel].source;
    built.input.evidence = channels[saying->channel].evidence;
    built.input.event = &built.event;
    built.event.type = saying->type;
    built.event.psp = pay_str_of(route->psp);
    built.event.psp_account = pay_str_of(route->psp_account);
    built.event.merchant_request_no = pay_str_of(xp_bench_attempt_id(saying->attempt));
    built.event.failure_class =
        saying->type == PAY_EV_ATTEMPT_DECLINED || saying->type == PAY_EV_ATTEMPT_FAILED
            ? PAY_FAILURE_DECLINED
            : PAY_FAILURE_NONE;
    if (has_object) {
        fill_object(saying);
    }
    fill_call(saying);
    (void)snprintf(built.cause, sizeof built.cause, "%s|%s",
                   has_object ? xp_bench_reference(saying->attempt, saying->reference)
                              : xp_bench_attempt_id(saying->attempt),
                   pay_event_type_name(saying->type));
    built.input.cause = pay_str_of(built.cause);
    return &built.input;
}

struct pay_decide_input *xp_input_last(void)
{
    return &built.input;
}

struct pay_event *xp_input_last_event(void)
{
    return &built.event;
}

static void fill_create(const struct xp_config *config)
{
    struct pay_cmd_create_payment *create = &built.command.create_payment;

    built.command.type = PAY_CMD_CREATE_PAYMENT;
    create->merchant_order_no = PAY_STR("order-1");
    create->amount = (struct pay_money){XP_AMOUNT, "EUR"};
    create->capture_mode = PAY_CAPTURE_AUTOMATIC;
    create->retry_until_expiry = config->waits_for_method ? 1 : 0;
    create->start = true;
    built.input.routes = xp_bench_routes();
    built.input.route_count = XP_ROUTES;
}

static void fill_merchant_command(uint8_t command, int attempt)
{
    static const struct {
        enum pay_command_type type;
        int route; /* -1: none named */
    } types[] = {
        [XP_CANCEL] = {PAY_CMD_CANCEL_PAYMENT, -1},
        [XP_CHANGE] = {PAY_CMD_CHANGE_METHOD, 1},
        [XP_START_NEXT] = {PAY_CMD_START_ATTEMPT, -1},
        [XP_START_FIRST] = {PAY_CMD_START_ATTEMPT, 0},
        [XP_CONTINUE] = {PAY_CMD_CONTINUE_ATTEMPT, -1},
        [XP_CHANGE_SAME] = {PAY_CMD_CHANGE_METHOD, 0},
    };

    built.command.type = types[command].type;
    if (command == XP_CONTINUE) {
        built.command.attempt_id = pay_str_of(xp_bench_attempt_id(attempt));
    }
    if (types[command].route >= 0) {
        built.input.routes = &xp_bench_routes()[types[command].route];
        built.input.route_count = 1;
    }
}

const struct pay_decide_input *xp_input_command(const struct xp_config *config, uint8_t command,
                                                int attempt)
{
    start(PAY_INPUT_COMMAND);
    built.input.source = PAY_SOURCE_MERCHANT;
    built.input.command = &built.command;
    built.input.policy = (struct pay_policy){
        .order_expires_after_us = config->times.expires * XP_TICK_US,
        .failover_window_us = config->times.failover * XP_TICK_US,
        .retry_until_expiry = config->waits_for_method,
        .amount_max_minor = INT64_MAX,
    };
    built.command.command_id = PAY_STR("command");
    built.command.caller = PAY_STR("caller");
    built.command.merchant_id = PAY_STR("merchant");
    built.command.payment_id = PAY_STR(XP_PAYMENT);
    if (command == 0) {
        fill_create(config);
    } else {
        fill_merchant_command(command, attempt);
    }
    (void)snprintf(built.cause, sizeof built.cause, "caller/command-%" PRId64 "-%d-%d",
                   xp_counters.version, command, attempt);
    built.input.cause = pay_str_of(built.cause);
    return &built.input;
}

const struct pay_decide_input *xp_input_deadline(enum pay_deadline_kind kind, int attempt,
                                                 uint8_t due, uint8_t row_due)
{
    const char *aggregate_id = attempt < 0 ? XP_PAYMENT : xp_bench_attempt_id(attempt);

    start(PAY_INPUT_DEADLINE);
    built.input.deadline = (struct pay_deadline_due){
        .kind = kind,
        .aggregate_id = pay_str_of(aggregate_id),
        .due_at_us = xp_bench_time_us(due),
        .row_due_at_us = xp_bench_time_us(row_due),
    };
    (void)snprintf(built.cause, sizeof built.cause, "%s:%s:%" PRId64 "-%d",
                   pay_deadline_kind_name(kind), aggregate_id, xp_counters.version, due);
    built.input.cause = pay_str_of(built.cause);
    return &built.input;
}
