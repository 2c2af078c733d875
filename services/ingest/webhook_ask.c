/* SPDX-License-Identifier: Apache-2.0 */
/* From a verified callback to Kafka. What Redis knows to be durable needs no second copy: all
 * callbacks that wait are asked for in one round trip, and no HTTP thread waits for it.
 */
#include "services/ingest/webhook.h"

#include "common/base/assert.h"
#include "common/base/fault.h"
#include "common/base/log.h"

#include "common/base/banned.h"

static void count_known(struct pay_webhook *webhook, enum pay_redis_known known)
{
    static const char *const names[PAY_REDIS_KNOWN_COUNT] = {"not_known", "absent", "present"};
    pay_metric_add(webhook->ingest->metrics[PAY_IM_DEDUPE], (const char *const[]){names[known]}, 1);
}

static enum pay_status produce_item(struct pay_webhook *webhook, struct pay_webhook_call *call,
                                    struct pay_webhook_item *item, struct pay_err *err)
{
    struct pay_kafka_headers headers;
    const struct pay_outlet_record record = {
        .topic = webhook->ingest->topics[PAY_TOPIC_INPUTS],
        .key = item->partition_key,
        .value = item->value,
        .headers = pay_ingest_headers(&headers, call->traceparent),
        .value_stays = true, /* The call lives until its last report. */
    };
    atomic_fetch_add(&call->waiting, 1);
    const enum pay_status status =
        pay_outlet_put(webhook->ingest->outlet, &record, &call->ticket, err);
    if (status != PAY_OK) {
        atomic_fetch_sub(&call->waiting, 1); /* The caller holds one: this is not the last. */
    }
    return status;
}

static void produce(struct pay_webhook *webhook, struct pay_webhook_call *call)
{
    struct pay_err err = {.status = PAY_OK};
    for (size_t i = 0; i < call->item_count; i++) {
        if (call->items[i].known == PAY_REDIS_PRESENT) {
            continue;
        }
        call->produced = true; /* Before the put: the report may come at once. */
        if (produce_item(webhook, call, &call->items[i], &err) != PAY_OK) {
            pay_log(PAY_LOG_WARN, "callback_not_produced", PAY_F_STR("psp_account", call->account),
                    PAY_F_ERR(&err));
            atomic_store(&call->failed, true);
            break;
        }
    }
    PAY_FAULT("after_produce_before_answer");
    pay_webhook_one_less(call);
}

/* ---- Redis ---- */

struct asks {
    struct pay_webhook_item *items[PAY_REDIS_KEYS_MAX];
    size_t count;
};

/* Whatever it says beside PRESENT, or not, is a miss. */
static void ask(struct pay_webhook *webhook, struct asks *asks)
{
    struct pay_str keys[PAY_REDIS_KEYS_MAX];
    enum pay_redis_known known[PAY_REDIS_KEYS_MAX];
    for (size_t i = 0; i < asks->count; i++) {
        keys[i] = pay_str_of(asks->items[i]->redis_key);
    }
    pay_redis_exists_many(webhook->asker_redis, keys, asks->count, known);
    for (size_t i = 0; i < asks->count; i++) {
        asks->items[i]->known = known[i];
        count_known(webhook, known[i]);
    }
    asks->count = 0;
}

static void add_call(struct pay_webhook *webhook, struct asks *asks,
                     const struct pay_webhook_call *call)
{
    for (size_t i = 0; i < call->item_count; i++) {
        asks->items[asks->count++] = &call->items[i];
        if (asks->count == PAY_REDIS_KEYS_MAX) {
            ask(webhook, asks);
        }
    }
}

static void ask_all(struct pay_webhook *webhook, struct pay_webhook_call *const *calls,
                    size_t count)
{
    struct asks asks = {.count = 0};
    for (size_t i = 0; i < count; i++) {
        add_call(webhook, &asks, calls[i]);
    }
    if (asks.count > 0) {
        ask(webhook, &asks);
    }
}

static void *run(void *arg)
{
    struct pay_webhook *webhook = arg;
    struct pay_webhook_call *calls[PAY_WEBHOOK_BATCH_MAX];
    size_t count = 0;
    while ((count = pay_call_queue_take(&webhook->asking, 0, calls)) > 0) { /* 0: stopping. */
        ask_all(webhook, calls, count);
        for (size_t i = 0; i < count; i++) {
            produce(webhook, calls[i]);
        }
    }
    return NULL;
}

void pay_webhook_ask(struct pay_webhook *webhook, struct pay_webhook_call *call)
{
    if (webhook->asker_redis == NULL) {
        for (size_t i = 0; i < call->item_count; i++) {
            count_known(webhook, PAY_REDIS_NOT_KNOWN);
        }
        produce(webhook, call);
        return;
    }
    const bool is_taken = pay_call_queue_put(&webhook->asking, call, SIZE_MAX, false);
    PAY_ASSERT(is_taken); /* There are no more calls than connections. */
}

enum pay_status pay_webhook_asker_start(struct pay_webhook *webhook, struct pay_err *err)
{
    const enum pay_status status = pay_webhook_redis(webhook, &webhook->asker_redis, err);
    if (status != PAY_OK || webhook->asker_redis == NULL) {
        return status;
    }
    if (pthread_create(&webhook->asker, NULL, run, webhook) != 0) {
        return pay_err_set(err, PAY_FATAL, 0, "asker", "no thread");
    }
    webhook->asker_started = true;
    return PAY_OK;
}

void pay_webhook_asker_stop(struct pay_webhook *webhook)
{
    if (webhook->asker_started) {
        pay_call_queue_stop(&webhook->asking);
        (void)pthread_join(webhook->asker, NULL);
    }
    webhook->asker_redis = pay_redis_free(webhook->asker_redis);
}
