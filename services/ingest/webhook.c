/* SPDX-License-Identifier: Apache-2.0 */
/* Role webhook: the callback port. */
#include "services/ingest/webhook.h"

#include "common/base/log.h"
#include "common/base/mem.h"

#include "common/base/banned.h"

#define REFRESH_MS 1000

enum pay_status pay_webhook_redis(const struct pay_webhook *webhook, struct pay_redis **ret_redis,
                                  struct pay_err *err)
{
    const struct pay_common_config *common = &webhook->ingest->cfg->common;
    if (common->redis_url[0] == '\0') {
        *ret_redis = NULL;
        return PAY_OK;
    }
    const struct pay_redis_options options = {
        .url = common->redis_url,
        .password_file = common->redis_password_file,
    };
    return pay_redis_new(&options, ret_redis, err);
}

static bool any_strict(struct pay_ingest *ingest)
{
    bool strict = false;
    const struct pay_accounts *accounts = pay_accounts_acquire(ingest->accounts);
    for (size_t i = 0; i < pay_accounts_account_count(accounts); i++) {
        strict = strict || pay_accounts_account_at(accounts, i)->answers == PAY_ANSWERS_STRICT;
    }
    pay_accounts_release(accounts);
    return strict;
}

/* The database is opened at all only for accounts with `strict` answers. */
static enum pay_status make_store(struct pay_webhook *webhook, struct pay_err *err)
{
    const struct pay_common_config *common = &webhook->ingest->cfg->common;
    if (!any_strict(webhook->ingest)) {
        return PAY_OK;
    }
    if (common->pg_conninfo[0] == '\0') {
        return pay_err_set(err, PAY_FATAL, 0, "config",
                           "PAYFACT_PG_CONNINFO is required: an account has strict answers");
    }
    const int read_ms = (int)webhook->ingest->cfg->strict_read_ms;
    const struct pay_pg_options options = {
        .conninfo = common->pg_conninfo,
        .password_file = common->pg_password_file,
        .application_name = "payfact-ingest-webhook",
        .connect_timeout_ms = read_ms,
        .statement_timeout_ms = read_ms,
        .answer_timeout_ms = read_ms,
        .read_only = true,
    };
    return pay_store_new(&options, &webhook->store, err);
}

static enum pay_status start_server(struct pay_webhook *webhook, struct pay_err *err)
{
    const struct pay_ingest_settings *cfg = webhook->ingest->cfg;
    const struct pay_http_server_options options = {
        .bind = cfg->http_bind,
        .port = (uint16_t)cfg->http_port,
        .threads = (unsigned)cfg->http_threads,
        .connections_max = (unsigned)cfg->http_connections_max,
        .body_bytes_max = (size_t)cfg->http_body_bytes_max,
        .request_timeout_ms = PAY_WEBHOOK_ANSWER_MS,
        .head = pay_webhook_head,
        .handler = pay_webhook_handle,
        .ctx = webhook,
    };
    const enum pay_status status = pay_http_server_start(&options, &webhook->server, err);
    if (status == PAY_OK) {
        atomic_store(&webhook->ingest->role_started, true);
        pay_log(PAY_LOG_INFO, "listening", PAY_F_STR("bind", cfg->http_bind),
                PAY_F_INT("port", pay_http_server_port(webhook->server)));
    }
    return status;
}

static enum pay_status start(struct pay_webhook *webhook, struct pay_err *err)
{
    (void)pthread_mutex_init(&webhook->lock, NULL);
    pay_call_queue_init(&webhook->asking);
    pay_call_queue_init(&webhook->settling);
    if (pthread_key_create(&webhook->thread_key, NULL) != 0) {
        return pay_err_set(err, PAY_FATAL, 0, "start", "no thread key");
    }
    webhook->rates = pay_mem_new(PAY_ACCOUNTS_ACCOUNTS_MAX, sizeof *webhook->rates);
    if (webhook->rates == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, "start", "out of memory");
    }
    enum pay_status status = pay_webhook_redis(webhook, &webhook->redis, err);
    if (status == PAY_OK) {
        status = make_store(webhook, err);
    }
    if (status == PAY_OK) {
        status = pay_webhook_settler_start(webhook, err);
    }
    if (status == PAY_OK) {
        status = pay_webhook_asker_start(webhook, err);
    }
    return status == PAY_OK ? start_server(webhook, err) : status;
}

static void free_threads(struct pay_webhook *webhook)
{
    while (webhook->threads != NULL) {
        struct pay_webhook_thread *thread = webhook->threads;
        webhook->threads = thread->next;
        pay_webhook_thread_free(thread);
    }
}

/* SIGTERM: no new callbacks; those in hand are made durable and answered. */
static void finish(struct pay_webhook *webhook)
{
    if (webhook->server != NULL) {
        pay_http_server_quiesce(webhook->server);
        const int64_t left_ms = pay_service_drain_left_ms(webhook->ingest->svc) / 2;
        (void)pay_http_server_wait_idle(webhook->server, (unsigned)left_ms);
    }
    webhook->server = pay_http_server_stop(webhook->server);
    pay_webhook_asker_stop(webhook); /* Nobody hands it a call any more. */
    /* The producer's reports refer to calls: none may come after this. */
    webhook->ingest->outlet = pay_outlet_close(webhook->ingest->outlet, PAY_WEBHOOK_ANSWER_MS);
    pay_webhook_settler_stop(webhook);
    free_threads(webhook);
    webhook->redis = pay_redis_free(webhook->redis);
    webhook->store = pay_store_free(webhook->store);
    webhook->rates = pay_mem_free(webhook->rates);
    (void)pthread_key_delete(webhook->thread_key);
    pay_call_queue_free(&webhook->asking);
    pay_call_queue_free(&webhook->settling);
    (void)pthread_mutex_destroy(&webhook->lock);
}

/* What the server refused by itself, before it was anybody's callback. */
static void show_server(struct pay_webhook *webhook)
{
    const struct pay_http_server_stats stats = pay_http_server_stats(webhook->server);
    const struct {
        const char *why;
        uint64_t count;
    } rows[] = {{"malformed", stats.malformed},
                {"too_large", stats.too_large},
                {"deadline", stats.deadlines},
                {"overload", stats.overload}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pay_metric_set(webhook->ingest->metrics[PAY_IM_HTTP], (const char *const[]){rows[i].why},
                       (int64_t)rows[i].count);
    }
}

enum pay_status pay_ingest_webhook(struct pay_ingest *ingest, struct pay_err *err)
{
    struct pay_webhook webhook = {.ingest = ingest};
    struct pay_health_loop *loop = pay_service_loop(ingest->svc, "webhook");
    enum pay_status status = start(&webhook, err);
    while (status == PAY_OK && !pay_service_wait(ingest->svc, REFRESH_MS)) {
        pay_ingest_refresh(ingest);
        show_server(&webhook);
        pay_health_beat(loop);
    }
    finish(&webhook);
    return status;
}
