/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/payfactctl/send.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/contracts/topics.h"
#include "common/io/kafka/kafka_producer.h"
#include "common/store/explain.h"
#include "tools/payfactctl/ctl.h"

#include "common/base/banned.h"

#define MESSAGE_TIMEOUT_MS 15000
#define REPORT_MARGIN_MS 5000
#define POLL_NS 100000000L
#define SECONDS_MAX (INT64_C(366) * 86400)

static const char op[] = "send";

#define AT PAY_SEND_AT

/* clang-format off */
#define EVERY(payment_doc_) \
    PAY_SEND_SIGNER, \
    {"--payment", PAY_ARG_TEXT, AT(payment_id), 0, 0, "ID", true, (payment_doc_)}

#define PARAMS(routes_doc_) \
    {"--route", PAY_ARG_LIST, AT(routes), 0, 0, "R", false, (routes_doc_)}, \
    {"--instrument", PAY_ARG_LIST, AT(instruments), 0, 0, "REF", false, \
     "the PSP's own reference of the means of payment; one for each route, or one for all"}, \
    {"--return-url", PAY_ARG_TEXT, AT(return_url), 0, 0, "URL", false, "where the PSP sends the customer"}, \
    {"--payer", PAY_ARG_TEXT, AT(payer_id), 0, 0, "REF", false, "the PSP's own reference of the payer"}, \
    {"--payer-ip", PAY_ARG_TEXT, AT(payer_ip), 0, 0, "IP", false, "where a PSP asks for it"}, \
    {"--extra", PAY_ARG_LIST, AT(extra), 0, 0, "N=V", false, "what only this PSP's adapter takes"}

static const struct pay_arg create_args[] = {
    EVERY("payment id, or \"new\""),
    {"--order-no", PAY_ARG_TEXT, AT(order_no), 0, 0, "NO", true, "the merchant's own order number"},
    {"--amount", PAY_ARG_INT, AT(amount_minor), 1, INT64_MAX, "MINOR", true, "in minor units: 2599 is 25.99 EUR"},
    {"--currency", PAY_ARG_TEXT, AT(currency), 0, 0, "CCY", true, "ISO 4217"},
    {"--capture", PAY_ARG_TEXT, AT(capture), 0, 0, "MODE", false, "AUTOMATIC (default) or MANUAL"},
    {"--description", PAY_ARG_TEXT, AT(description), 0, 0, "TEXT", false, "shown to the customer; no personal data"},
    {"--expires-in", PAY_ARG_INT, AT(expires_in_s), 0, SECONDS_MAX, "S", false, "end of the order; by default the merchant's setting"},
    {"--retry-until-expiry", PAY_ARG_FLAG, AT(retry_until_expiry), 0, 0, NULL, false, "wait for another attempt after a failed one"},
    {"--no-start", PAY_ARG_FLAG, AT(no_start), 0, 0, NULL, false, "wait for START_ATTEMPT"},
    PARAMS("psp/account/method[:failover], in order of preference; by default the merchant's"),
};
static const struct pay_arg route_args[] = {
    EVERY("payment id"),
    PARAMS("psp/account/method[:failover]; exactly one"),
};
static const struct pay_arg continue_args[] = {
    EVERY("payment id"),
    {"--attempt", PAY_ARG_TEXT, AT(attempt_id), 0, 0, "ID", true, "attempt whose action the customer has done"},
    {"--redirect-data", PAY_ARG_TEXT, AT(redirect_data), 0, 0, "TEXT", false, "what the PSP handed to the customer's browser"},
};
static const struct pay_arg cancel_args[] = {
    EVERY("payment id"),
    {"--reason", PAY_ARG_TEXT, AT(reason), 0, 0, "CODE", false, "by default REQUESTED_BY_CALLER"},
};
/* clang-format on */

/* ---- produce ---- */

struct delivery {
    bool is_reported;
    struct pay_kafka_report report;
};

static void on_report(void *ctx, const struct pay_kafka_report *report)
{
    struct delivery *delivery = ctx;
    delivery->is_reported = true;
    delivery->report = *report; /* reason is a static name */
}

static enum pay_status judge(const struct delivery *delivery, struct pay_err *err)
{
    if (!delivery->is_reported) {
        return pay_err_set(err, PAY_UNKNOWN, 0, op,
                           "no delivery report came: ask \"explain\""
                           " before sending again");
    }
    if (delivery->report.status == PAY_OK) {
        return PAY_OK;
    }
    const bool may_be_there = delivery->report.persisted != PAY_KAFKA_NOT_PERSISTED;
    return pay_err_set(err, may_be_there ? PAY_UNKNOWN : delivery->report.status,
                       delivery->report.code, op, "not delivered (%s): %s", delivery->report.reason,
                       may_be_there ? "it may be there all the same, ask \"explain\" before sending"
                                      " again"
                                    : "it is certainly not there");
}

static enum pay_status produce(struct pay_ctl *ctl, const struct pay_send_order *order,
                               const char *key_id, struct delivery *delivery, struct pay_err *err)
{
    char topic[PAY_TOPIC_NAME_SIZE];
    struct pay_kafka_headers headers;
    struct pay_kafka_producer *producer = NULL;
    struct pay_kafka_producer_options options = {.message_timeout_ms = MESSAGE_TIMEOUT_MS,
                                                 .linger_ms = -1,
                                                 .on_report = on_report,
                                                 .ctx = delivery};
    if (!pay_topic_name(topic, PAY_TOPIC_COMMANDS, ctl->settings.topic_prefix) ||
        !pay_send_headers(order, key_id, &headers)) {
        return pay_err_set(err, PAY_FATAL, 0, op, "PAYFACT_TOPIC_PREFIX is not part of a name");
    }
    const struct pay_kafka_record record = {.topic = topic,
                                            .key = pay_str_of(order->key),
                                            .value = pay_buf_bytes(&order->value),
                                            .headers = &headers};
    enum pay_status status = pay_ctl_kafka_conf(ctl, &options.conf, err);
    if (status == PAY_OK) {
        status = pay_kafka_producer_new(&options, &producer, err);
    }
    if (status == PAY_OK) {
        status = pay_kafka_produce(producer, &record, err);
    }
    if (status == PAY_OK) {
        (void)pay_kafka_producer_close(producer, MESSAGE_TIMEOUT_MS + REPORT_MARGIN_MS);
        status = judge(delivery, err);
    }
    producer = pay_kafka_producer_free(producer);
    return status;
}

/* ---- the answer ---- */

/* From PostgreSQL, not from the events: those of a month need not be read for one of them. */
static enum pay_status poll_answer(struct pay_store *store, const struct pay_command *command,
                                   int64_t wait_s, struct pay_explain_answer *ret_answer,
                                   struct pay_err *err)
{
    const struct timespec pause = {.tv_nsec = POLL_NS};
    const int64_t end_us = pay_clock_mono_us() + wait_s * INT64_C(1000000);
    do {
        const enum pay_status status = pay_store_explain_answer(
            store, command->caller.ptr, command->command_id.ptr, ret_answer, err);
        if (status != PAY_OK || ret_answer->is_there) {
            return status;
        }
        (void)nanosleep(&pause, NULL);
    } while (pay_clock_mono_us() < end_us);
    return PAY_OK;
}

static enum pay_status wait_answer(struct pay_store *store, const struct pay_send_order *order,
                                   int64_t wait_s, struct pay_explain_answer *ret_answer,
                                   struct pay_err *err)
{
    const enum pay_status status = poll_answer(store, &order->command, wait_s, ret_answer, err);
    if (status == PAY_OK && ret_answer->is_there && strcmp(ret_answer->status, "REJECTED") == 0) {
        return pay_err_set(err, PAY_REJECT, 0, op, "the command was refused: %s",
                           ret_answer->reason_code);
    }
    if (status != PAY_OK || !ret_answer->is_there) {
        return pay_err_set(err, PAY_UNKNOWN, 0, op,
                           "the command is sent, its answer is not there: ask \"explain\"");
    }
    return PAY_OK;
}

/* ---- say ---- */

static void print(struct pay_ctl *ctl, const struct pay_send_options *options,
                  const struct pay_send_order *order, const struct delivery *delivery,
                  const struct pay_explain_answer *answer)
{
    struct pay_buf *out = &ctl->out;
    if (!options->as_json) {
        pay_buf_printf(out, "payment_id %s\ncommand_id %s\n", order->payment_id,
                       order->command.command_id.ptr);
        if (answer->is_there) {
            pay_buf_printf(out, "answer %s %s\n", answer->status, answer->reason_code);
        }
        return;
    }
    pay_buf_printf(out, "{\"payment_id\":\"%s\",\"command_id\":", order->payment_id);
    pay_buf_add_json_str(out, order->command.command_id);
    pay_buf_printf(out,
                   ",\"partition\":%d,\"offset\":%lld,\"answer\":", (int)delivery->report.partition,
                   (long long)delivery->report.offset);
    pay_buf_add_json_str(out, pay_str_of(answer->is_there ? answer->status : NULL));
    pay_buf_add_c(out, ",\"reason_code\":");
    pay_buf_add_json_str(out,
                         pay_str_of(answer->reason_code[0] == '\0' ? NULL : answer->reason_code));
    pay_buf_add_c(out, "}\n");
}

static enum pay_status send_built(struct pay_ctl *ctl, const struct pay_send_options *options,
                                  const struct pay_send_order *order, struct pay_err *err)
{
    struct delivery delivery = {.is_reported = false};
    struct pay_explain_answer answer = {.is_there = false};
    struct pay_store *store = NULL;
    /* Before anything is sent: a database that is away must not leave a command unanswered. */
    enum pay_status status =
        options->wait_s > 0 ? pay_ctl_store(ctl, "payfactctl send", true, &store, err) : PAY_OK;
    if (status == PAY_OK) {
        status = produce(ctl, order, options->key_id, &delivery, err);
    }
    if (status == PAY_OK) {
        if (options->wait_s > 0) {
            status = wait_answer(store, order, options->wait_s, &answer, err);
        }
        print(ctl, options, order, &delivery, &answer); /* it is sent, whatever was answered */
    }
    store = pay_store_free(store);
    return status;
}

enum pay_ctl_exit pay_send(struct pay_ctl *ctl, enum pay_command_type type,
                           const struct pay_send_options *options, struct pay_err *err)
{
    struct pay_send_order order;
    enum pay_ctl_exit code = PAY_CTL_USAGE;
    const enum pay_status status = pay_send_build(type, options, pay_clock_wall_us(), &order, err);
    if (status == PAY_OK) {
        code = pay_ctl_exit_of(send_built(ctl, options, &order, err));
    } else if (status != PAY_REJECT) {
        code = pay_ctl_exit_of(status);
    }
    pay_send_free(&order);
    return code;
}

#define KIND(name_, type_, args_, what_)                                         \
    static enum pay_ctl_exit run_##name_(struct pay_ctl *ctl, const void *given, \
                                         struct pay_err *err)                    \
    {                                                                            \
        return pay_send(ctl, PAY_CMD_##type_, given, err);                       \
    }                                                                            \
    const struct pay_ctl_command pay_ctl_send_##name_ = {                        \
        .name = "send " #type_,                                                  \
        .what = (what_),                                                         \
        .args = {(args_), sizeof(args_) / sizeof((args_)[0])},                   \
        .options_size = sizeof(struct pay_send_options),                         \
        .run = run_##name_,                                                      \
    }

KIND(create_payment, CREATE_PAYMENT, create_args, "ask for a payment");
KIND(start_attempt, START_ATTEMPT, route_args, "start an attempt now");
KIND(change_method, CHANGE_METHOD, route_args, "cancel the open attempt, then start this one");
KIND(continue_attempt, CONTINUE_ATTEMPT, continue_args, "the customer came back from the PSP");
KIND(cancel_payment, CANCEL_PAYMENT, cancel_args, "cancel a payment that is not paid");
