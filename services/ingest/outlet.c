/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ingest/outlet.h"

#include "common/base/assert.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/contracts/codec.h"

#include "common/base/banned.h"

struct pay_outlet {
    pthread_rwlock_t
        lock; /* Held for reading while the producer is used, for writing to rebuild. */
    struct pay_kafka_producer *producer;
    const struct pay_common_config *common;
    int timeout_ms;
    struct pay_broker *broker;
};

static void on_report(void *ctx, const struct pay_kafka_report *report)
{
    struct pay_outlet *outlet = ctx;
    struct pay_ticket *ticket = report->tag;
    if (report->status == PAY_OK || report->status == PAY_REJECT) {
        pay_broker_shown(outlet->broker);
    } else {
        pay_broker_failed(outlet->broker);
    }
    ticket->on_report(ticket, report);
}

/* A record is refused for its size here as by the codec: whoever gives it up knows one code. */
static int code_of(enum pay_status status, int kafka_code)
{
    if (status != PAY_REJECT) {
        return kafka_code;
    }
    return pay_kafka_is_too_large(kafka_code) ? PAY_CODEC_TOO_LARGE : PAY_CODEC_NONE;
}

static enum pay_status make_producer(struct pay_outlet *outlet, struct pay_err *err)
{
    const struct pay_kafka_producer_options options = {
        .conf = {.bootstrap = outlet->common->kafka_brokers,
                 .client_id = "payfact-ingest",
                 .properties_file = outlet->common->kafka_properties_file},
        .message_timeout_ms = outlet->timeout_ms,
        .message_bytes_max = 1500000,
        .linger_ms = -1,
        .own_thread = true,
        .on_report = on_report,
        .ctx = outlet,
    };
    return pay_kafka_producer_new(&options, &outlet->producer, err);
}

enum pay_status pay_outlet_open(const struct pay_common_config *common, int timeout_ms,
                                struct pay_broker *broker, struct pay_outlet **ret_outlet,
                                struct pay_err *err)
{
    struct pay_outlet *outlet = pay_mem_new(1, sizeof *outlet);
    if (outlet == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, "outlet", "out of memory");
    }
    (void)pthread_rwlock_init(&outlet->lock, NULL); /* Cannot fail with default attributes here. */
    outlet->common = common;
    outlet->timeout_ms = timeout_ms;
    outlet->broker = broker;
    const enum pay_status status = make_producer(outlet, err);
    if (status != PAY_OK) {
        (void)pay_outlet_close(outlet, 0);
        return status;
    }
    *ret_outlet = outlet;
    return PAY_OK;
}

struct pay_outlet *pay_outlet_close(struct pay_outlet *outlet, int flush_ms)
{
    if (outlet == NULL) {
        return NULL;
    }
    const size_t lost =
        outlet->producer == NULL ? 0 : pay_kafka_producer_close(outlet->producer, flush_ms);
    if (lost > 0) {
        pay_log(PAY_LOG_WARN, "undelivered_at_close", PAY_F_INT("records", lost));
    }
    outlet->producer = pay_kafka_producer_free(outlet->producer);
    (void)pthread_rwlock_destroy(&outlet->lock);
    return pay_mem_free(outlet);
}

/* By the first thread that meets the fatal error; the others find the new one. */
static void rebuild(struct pay_outlet *outlet)
{
    struct pay_err err = {.status = PAY_OK};
    (void)pthread_rwlock_wrlock(&outlet->lock);
    if (outlet->producer == NULL || pay_kafka_producer_fatal(outlet->producer, &err)) {
        outlet->producer = pay_kafka_producer_free(outlet->producer);
        const enum pay_status status = make_producer(outlet, &err);
        pay_log(status == PAY_OK ? PAY_LOG_WARN : PAY_LOG_ERROR, "producer_rebuilt",
                PAY_F_ERR(&err));
    }
    (void)pthread_rwlock_unlock(&outlet->lock);
}

static enum pay_status put(struct pay_outlet *outlet, const struct pay_outlet_record *record,
                           struct pay_ticket *ticket, struct pay_err *err)
{
    const struct pay_kafka_record kafka = {.topic = record->topic,
                                           .key = record->key,
                                           .value = record->value,
                                           .headers = record->headers,
                                           .tag = ticket,
                                           .value_stays = record->value_stays};
    (void)pthread_rwlock_rdlock(&outlet->lock);
    const enum pay_status status = outlet->producer == NULL
                                       ? pay_err_set(err, PAY_FATAL, 0, "produce", "no producer")
                                       : pay_kafka_produce(outlet->producer, &kafka, err);
    (void)pthread_rwlock_unlock(&outlet->lock);
    return status;
}

enum pay_status pay_outlet_put(struct pay_outlet *outlet, const struct pay_outlet_record *record,
                               struct pay_ticket *ticket, struct pay_err *err)
{
    enum pay_status status = put(outlet, record, ticket, err);
    if (status == PAY_FATAL) {
        rebuild(outlet);
        status = put(outlet, record, ticket, err);
    }
    if (status != PAY_OK && status != PAY_REJECT) {
        pay_broker_failed(outlet->broker);
        return PAY_RETRY;
    }
    if (status == PAY_REJECT) {
        err->code = code_of(status, err->code);
    }
    return status;
}

static enum pay_status ask(void *ctx, int timeout_ms, struct pay_err *err)
{
    struct pay_outlet *outlet = ctx;
    (void)pthread_rwlock_rdlock(&outlet->lock);
    const enum pay_status status = outlet->producer == NULL
                                       ? pay_err_set(err, PAY_FATAL, 0, "ask", "no producer")
                                       : pay_kafka_producer_ping(outlet->producer, timeout_ms, err);
    (void)pthread_rwlock_unlock(&outlet->lock);
    return status;
}

void pay_outlet_look(struct pay_outlet *outlet)
{
    pay_broker_look(outlet->broker, ask, outlet);
}

static void on_wait_report(struct pay_ticket *ticket, const struct pay_kafka_report *report)
{
    struct pay_outlet_wait *wait = (struct pay_outlet_wait *)ticket;
    (void)pthread_mutex_lock(&wait->lock);
    PAY_ASSERT(wait->pending > 0);
    wait->pending--;
    if (report->status != PAY_OK && wait->worst != PAY_REJECT) {
        wait->worst = report->status;
        wait->code = report->code;
        wait->reason = report->reason;
    }
    (void)pthread_cond_signal(&wait->changed);
    (void)pthread_mutex_unlock(&wait->lock);
}

void pay_outlet_wait_init(struct pay_outlet_wait *wait)
{
    *wait = (struct pay_outlet_wait){.ticket = {on_wait_report}, .worst = PAY_OK};
    (void)pthread_mutex_init(&wait->lock, NULL);
    (void)pthread_cond_init(&wait->changed, NULL);
}

void pay_outlet_wait_free(struct pay_outlet_wait *wait)
{
    PAY_ASSERT(wait->pending == 0);
    (void)pthread_cond_destroy(&wait->changed);
    (void)pthread_mutex_destroy(&wait->lock);
}

enum pay_status pay_outlet_wait_put(struct pay_outlet_wait *wait, struct pay_outlet *outlet,
                                    const struct pay_outlet_record *record, struct pay_err *err)
{
    (void)pthread_mutex_lock(&wait->lock);
    wait->pending++; /* Before the put: the report may come at once. */
    (void)pthread_mutex_unlock(&wait->lock);
    const enum pay_status status = pay_outlet_put(outlet, record, &wait->ticket, err);
    if (status != PAY_OK) {
        (void)pthread_mutex_lock(&wait->lock);
        wait->pending--;
        (void)pthread_mutex_unlock(&wait->lock);
    }
    return status;
}

enum pay_status pay_outlet_wait_done(struct pay_outlet_wait *wait, struct pay_err *err)
{
    (void)pthread_mutex_lock(&wait->lock);
    while (wait->pending > 0) {
        (void)pthread_cond_wait(&wait->changed, &wait->lock);
    }
    const enum pay_status worst = wait->worst;
    const int code = wait->code;
    const char *reason = wait->reason;
    wait->worst = PAY_OK;
    wait->code = 0;
    (void)pthread_mutex_unlock(&wait->lock);
    return worst == PAY_OK ? PAY_OK
                           : pay_err_set(err, worst, code_of(worst, code), "produce",
                                         "not acknowledged: %s", reason);
}
