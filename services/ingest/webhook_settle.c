/* SPDX-License-Identifier: Apache-2.0 */
/* After durability: answers that need the database, and the dedupe keys. Nothing waits for Redis.
 */
#include "services/ingest/webhook.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/store/schema.h"

#include "common/base/banned.h"

#define STORE_PAUSE_US INT64_C(1000000) /* After a failure of the database. */
#define GATHER_US INT64_C(5000)         /* Keys that come meanwhile are set in one round trip. */

static bool connected(struct pay_webhook *webhook, struct pay_err *err)
{
    if (pay_store_usable(webhook->store)) {
        return true;
    }
    const bool is_ready = pay_store_connect(webhook->store, err) == PAY_OK &&
                          pay_store_schema_check(pay_store_pg(webhook->store),
                                                 PAY_STORE_SCHEMA_TABLES, err) == PAY_OK;
    if (!is_ready) {
        pay_pg_disconnect(pay_store_pg(webhook->store));
    }
    return is_ready;
}

static bool fits(const struct pay_webhook_call *call, const struct pay_store_strict *attempt)
{
    return attempt->found && strcmp(attempt->psp_account, call->account) == 0 &&
           strcmp(attempt->psp, call->adapter->name) == 0 &&
           (!call->expect.has_amount || pay_money_same(attempt->amount, call->expect.amount));
}

/* One that hangs may cost one callback its time, not those behind it, nor one that waited long. */
static bool may_ask(const struct pay_webhook *webhook, const struct pay_webhook_call *call)
{
    return pay_clock_mono_us() >= webhook->store_due_us &&
           pay_clock_wall_us() - call->received_at_us < PAY_WEBHOOK_ANSWER_MS * INT64_C(500);
}

static bool read_attempt(struct pay_webhook *webhook, const struct pay_webhook_call *call,
                         struct pay_store_strict *attempt)
{
    struct pay_err err = {.status = PAY_OK};
    if (connected(webhook, &err) &&
        pay_store_strict_read(webhook->store, pay_str_of(call->expect.request_no), attempt, &err) ==
            PAY_OK) {
        return true;
    }
    webhook->store_due_us = pay_clock_mono_us() + STORE_PAUSE_US;
    pay_log(PAY_LOG_WARN, "strict_falls_back", PAY_F_STR("psp_account", call->account),
            PAY_F_ERR(&err));
    return false;
}

/* If the database does not answer in time the answer falls back to custody. */
static enum pay_psp_outcome strict_outcome(struct pay_webhook *webhook,
                                           const struct pay_webhook_call *call)
{
    struct pay_store_strict attempt = {.found = false};
    if (!may_ask(webhook, call) || !read_attempt(webhook, call, &attempt)) {
        pay_metric_add(webhook->ingest->metrics[PAY_IM_ERRORS], (const char *const[]){"strict"}, 1);
        return PAY_PSP_DURABLE;
    }
    return fits(call, &attempt) ? PAY_PSP_DURABLE : PAY_PSP_MISMATCH;
}

struct key_batch {
    struct pay_str keys[PAY_REDIS_KEYS_MAX];
    size_t count;
};

/* Not set: the inbox decides, as without Redis. */
static void flush(struct pay_webhook *webhook, struct key_batch *batch)
{
    if (batch->count > 0) {
        (void)pay_redis_set_many(webhook->redis, batch->keys, batch->count, PAY_STR("1"),
                                 webhook->ingest->cfg->dedupe_ttl_ms);
        batch->count = 0;
    }
}

static void add_keys(struct pay_webhook *webhook, const struct pay_webhook_call *call,
                     struct key_batch *batch)
{
    for (size_t i = 0; i < call->item_count; i++) {
        if (call->items[i].known == PAY_REDIS_PRESENT) {
            continue;
        }
        if (batch->count == PAY_REDIS_KEYS_MAX) {
            flush(webhook, batch);
        }
        batch->keys[batch->count++] = pay_str_of(call->items[i].redis_key);
    }
}

static void set_keys(struct pay_webhook *webhook, struct pay_webhook_call *const *calls,
                     size_t call_count)
{
    struct key_batch batch = {.count = 0};
    if (webhook->redis == NULL) {
        return;
    }
    for (size_t i = 0; i < call_count; i++) {
        add_keys(webhook, calls[i], &batch);
    }
    flush(webhook, &batch);
}

static void answer_strict(struct pay_webhook *webhook, struct pay_webhook_call *const *calls,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (calls[i]->req != NULL) {
            pay_webhook_answer(webhook, calls[i], strict_outcome(webhook, calls[i]));
        }
    }
}

static void *run(void *arg)
{
    struct pay_webhook *webhook = arg;
    struct pay_webhook_call *calls[PAY_WEBHOOK_BATCH_MAX];
    size_t count = 0;
    /* 0: stopping, and nothing is left. */
    while ((count = pay_call_queue_take(&webhook->settling, GATHER_US, calls)) > 0) {
        answer_strict(webhook, calls, count);
        set_keys(webhook, calls, count);
        for (size_t i = 0; i < count; i++) {
            pay_mem_free(calls[i]);
        }
    }
    return NULL;
}

void pay_webhook_settle(struct pay_webhook *webhook, struct pay_webhook_call *call)
{
    const bool is_answered = call->req == NULL;
    if (is_answered && webhook->redis == NULL) {
        pay_mem_free(call); /* Nothing is left to do. */
        return;
    }
    if (!pay_call_queue_put(&webhook->settling, call,
                            is_answered ? PAY_WEBHOOK_SETTLE_MAX : SIZE_MAX, !is_answered)) {
        pay_mem_free(call); /* Only its keys are not set. */
    }
}

enum pay_status pay_webhook_settler_start(struct pay_webhook *webhook, struct pay_err *err)
{
    if (pthread_create(&webhook->settler, NULL, run, webhook) != 0) {
        return pay_err_set(err, PAY_FATAL, 0, "settler", "no thread");
    }
    webhook->settler_started = true;
    return PAY_OK;
}

void pay_webhook_settler_stop(struct pay_webhook *webhook)
{
    if (webhook->settler_started) {
        pay_call_queue_stop(&webhook->settling);
        (void)pthread_join(webhook->settler, NULL);
    }
}
