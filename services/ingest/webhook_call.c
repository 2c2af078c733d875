/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ingest/webhook.h"

#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/contracts/headers.h"
#include "common/crypto/sha256.h"

#include "common/base/banned.h"

#define PATH_PREFIX "/callbacks/"
#define ARENA_BYTES_MAX ((size_t)8 * 1024 * 1024)
#define SECOND_US INT64_C(1000000)

static const char *const outcome_names[PAY_PSP_OUTCOME_COUNT] = {
    [PAY_PSP_DURABLE] = "durable",         [PAY_PSP_DUPLICATE] = "duplicate",
    [PAY_PSP_REFUSED] = "refused",         [PAY_PSP_MISMATCH] = "mismatch",
    [PAY_PSP_UNAVAILABLE] = "unavailable", [PAY_PSP_BODY_TOO_LARGE] = "too_large",
    [PAY_PSP_TOO_FAST] = "too_fast",       [PAY_PSP_UNKNOWN_ACCOUNT] = "unknown_account",
};

static void count(struct pay_webhook *webhook, const char *account, enum pay_psp_outcome outcome)
{
    pay_metric_add(webhook->ingest->metrics[PAY_IM_CALLBACKS],
                   (const char *const[]){account, outcome_names[outcome]}, 1);
}

/* ---- before the body ---- */

/* The id between the prefix and the end of the path; absent: no callback path. */
static struct pay_str account_of(struct pay_str path)
{
    if (!pay_str_starts(path, PATH_PREFIX)) {
        return (struct pay_str){NULL, 0};
    }
    return (struct pay_str){path.ptr + strlen(PATH_PREFIX), path.len - strlen(PATH_PREFIX)};
}

static bool is_account_id(struct pay_str id)
{
    if (id.len == 0 || id.len >= PAY_NAME_SIZE) {
        return false;
    }
    for (size_t i = 0; i < id.len; i++) {
        const char c = id.ptr[i];
        if ((c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-') {
            return false;
        }
    }
    return true;
}

static struct pay_bucket *fresh_bucket(struct pay_webhook_rate *rate,
                                       const struct pay_account *account)
{
    rate->bucket = pay_bucket_make(account->callbacks_per_s, SECOND_US, pay_clock_mono_us());
    return &rate->bucket;
}

/* Under the lock. Junk takes no token: it cannot starve what is signed. */
static struct pay_bucket *bucket_of(struct pay_webhook *webhook, const struct pay_account *account)
{
    for (size_t i = 0; i < webhook->rate_count; i++) {
        struct pay_webhook_rate *known = &webhook->rates[i];
        if (strcmp(known->account, account->psp.id) == 0) {
            return known->bucket.per_period == account->callbacks_per_s
                       ? &known->bucket
                       : fresh_bucket(known, account); /* The accounts file has changed. */
        }
    }
    if (webhook->rate_count == PAY_ACCOUNTS_ACCOUNTS_MAX) {
        return NULL; /* Accounts came and went: those beyond are not limited. */
    }
    struct pay_webhook_rate *rate = &webhook->rates[webhook->rate_count++];
    (void)pay_str_copy(rate->account, sizeof rate->account, pay_str_of(account->psp.id));
    return fresh_bucket(rate, account);
}

static bool has_room(struct pay_webhook *webhook, const struct pay_account *account, bool take)
{
    const int64_t now_us = pay_clock_mono_us();
    (void)pthread_mutex_lock(&webhook->lock);
    struct pay_bucket *bucket = bucket_of(webhook, account);
    bool room = true;
    if (bucket != NULL) {
        room =
            take ? pay_bucket_take(bucket, now_us) : pay_bucket_next_us(bucket, now_us) <= now_us;
    }
    (void)pthread_mutex_unlock(&webhook->lock);
    return room;
}

static void plain_answer(struct pay_http_answer *answer, unsigned status, const char *body)
{
    *answer = (struct pay_http_answer){
        .status = status,
        .content_type = "text/plain",
        .body = {(const uint8_t *)body, strlen(body)},
        .close = status != 404,
    };
}

static const struct pay_http_header retry_after = {{"Retry-After", 11}, {"1", 1}};
static const struct pay_http_header allow = {{"Allow", 5}, {"POST", 4}};

bool pay_webhook_head(void *ctx, const struct pay_http_view *view,
                      struct pay_http_answer *ret_answer)
{
    struct pay_webhook *webhook = ctx;
    const struct pay_str id = account_of(view->path);
    if (id.ptr == NULL || !pay_str_eq_c(view->method, "POST")) {
        count(webhook, "", PAY_PSP_UNKNOWN_ACCOUNT);
        plain_answer(ret_answer, id.ptr == NULL ? 404 : 405, "no such callback\n");
        ret_answer->headers = &allow;
        ret_answer->header_count = id.ptr == NULL ? 0 : 1;
        return false;
    }
    if (!is_account_id(id)) {
        count(webhook, "", PAY_PSP_UNKNOWN_ACCOUNT);
        const bool encoded = memchr(id.ptr, '%', id.len) != NULL;
        plain_answer(ret_answer, encoded ? 400 : 404, "no such account\n");
        return false;
    }
    const struct pay_accounts *accounts = pay_accounts_acquire(webhook->ingest->accounts);
    const struct pay_account *account = pay_accounts_account(accounts, id);
    bool take = account != NULL;
    if (account == NULL) {
        count(webhook, "", PAY_PSP_UNKNOWN_ACCOUNT);
        plain_answer(ret_answer, 404, "no such account\n");
    } else if (!has_room(webhook, account, false)) {
        count(webhook, account->psp.id, PAY_PSP_TOO_FAST);
        plain_answer(ret_answer, 429, "too many callbacks\n");
        ret_answer->headers = &retry_after;
        ret_answer->header_count = 1;
        take = false;
    }
    pay_accounts_release(accounts);
    return take;
}

/* ---- a thread's own things ---- */

static enum pay_status make_thread(struct pay_webhook *webhook, struct pay_webhook_thread *mine,
                                   struct pay_err *err)
{
    return pay_desk_make(&mine->desk, webhook->ingest, ARENA_BYTES_MAX, err);
}

void pay_webhook_thread_free(struct pay_webhook_thread *thread)
{
    pay_desk_free(&thread->desk);
    pay_mem_free(thread);
}

static struct pay_webhook_thread *my_thread(struct pay_webhook *webhook)
{
    struct pay_webhook_thread *mine = pthread_getspecific(webhook->thread_key);
    if (mine != NULL) {
        pay_arena_reset(mine->desk.arena);
        return mine;
    }
    struct pay_err err = {.status = PAY_OK};
    mine = pay_mem_new(1, sizeof *mine);
    if (mine == NULL) {
        return NULL;
    }
    if (make_thread(webhook, mine, &err) != PAY_OK ||
        pthread_setspecific(webhook->thread_key, mine) != 0) {
        pay_log(PAY_LOG_ERROR, "thread_not_ready", PAY_F_ERR(&err));
        pay_webhook_thread_free(mine);
        return NULL;
    }
    (void)pthread_mutex_lock(&webhook->lock);
    mine->next = webhook->threads;
    webhook->threads = mine;
    (void)pthread_mutex_unlock(&webhook->lock);
    return mine;
}

/* ---- answering ---- */

static void give(struct pay_http_request *req, const struct pay_psp_answer *answer)
{
    char seconds[16];
    const int len = snprintf(seconds, sizeof seconds, "%u", answer->retry_after_s);
    const struct pay_http_header later = {PAY_STR("Retry-After"), {seconds, (size_t)len}};
    const struct pay_http_answer http = {
        .status = answer->status,
        .content_type = answer->content_type,
        .body = answer->body,
        .headers = answer->retry_after_s > 0 ? &later : NULL,
        .header_count = answer->retry_after_s > 0 ? 1 : 0,
    };
    (void)pay_http_request_answer(req, &http); /* false: the deadline's 503 went out before. */
}

void pay_webhook_answer(struct pay_webhook *webhook, struct pay_webhook_call *call,
                        enum pay_psp_outcome outcome)
{
    const struct pay_psp_answer answer = call->adapter->answer(outcome);
    count(webhook, call->account, outcome);
    pay_metric_observe(webhook->ingest->metrics[PAY_IM_CALLBACK_SECONDS], NULL,
                       pay_clock_wall_us() - call->received_at_us);
    give(call->req, &answer);
    call->req = NULL;
}

void pay_webhook_one_less(struct pay_webhook_call *call)
{
    if (atomic_fetch_sub(&call->waiting, 1) != 1) {
        return;
    }
    struct pay_webhook *webhook = call->webhook;
    if (atomic_load(&call->failed)) {
        pay_webhook_answer(webhook, call, PAY_PSP_UNAVAILABLE);
        pay_mem_free(call);
        return;
    }
    if (!call->strict) {
        pay_webhook_answer(webhook, call, call->produced ? PAY_PSP_DURABLE : PAY_PSP_DUPLICATE);
    }
    pay_webhook_settle(webhook, call);
}

static void on_report(struct pay_ticket *ticket, const struct pay_kafka_report *report)
{
    struct pay_webhook_call *call = (struct pay_webhook_call *)ticket;
    pay_metric_add(call->webhook->ingest->metrics[PAY_IM_PRODUCED],
                   (const char *const[]){pay_status_name(report->status)}, 1);
    if (report->status != PAY_OK) {
        pay_log(PAY_LOG_WARN, "callback_not_durable", PAY_F_STR("psp_account", call->account),
                PAY_F_STR("reason", report->reason));
        atomic_store(&call->failed, true);
    }
    pay_webhook_one_less(call);
}

/* ---- a callback ---- */

static void make_key(const struct pay_webhook *webhook, const struct pay_psp_item *item,
                     char key[PAY_WEBHOOK_KEY_BYTES_MAX])
{
    char digest[PAY_SHA256_HEX];
    char text[PAY_WEBHOOK_KEY_BYTES_MAX];
    struct pay_buf buf = pay_buf_make(sizeof text - 1);
    pay_buf_printf(&buf, "%s/%s/%s", item->event.psp.ptr, item->event.psp_account.ptr,
                   item->transport_key.ptr);
    pay_sha256_hex(pay_buf_bytes(&buf), digest);
    pay_buf_reset(&buf);
    pay_buf_printf(&buf, "payfact:cb:%lld:%s", (long long)webhook->ingest->cfg->dedupe_epoch,
                   digest);
    (void)pay_str_copy(key, PAY_WEBHOOK_KEY_BYTES_MAX, pay_buf_str(&buf)); /* 100 bytes or so. */
    pay_buf_free(&buf);
}

/* Encoded in the arena of the thread. */
static enum pay_status encode(struct pay_webhook_thread *mine, const struct pay_callback *callback,
                              struct pay_bytes values[PAY_PSP_ITEMS_MAX], struct pay_err *err)
{
    enum pay_status status = PAY_OK;
    for (size_t i = 0; i < callback->items.count && status == PAY_OK; i++) {
        status = pay_callback_input(&mine->desk, callback, i, err);
        if (status == PAY_OK) {
            values[i] = pay_arena_bytes(mine->desk.arena, pay_buf_bytes(&mine->desk.value));
            status = values[i].ptr != NULL ? PAY_OK
                                           : pay_err_set(err, PAY_RETRY, 0, "encode", "arena full");
        }
    }
    return status;
}

static size_t bytes_of(const struct pay_callback *callback, const struct pay_bytes *values)
{
    size_t bytes = sizeof(struct pay_webhook_call) + callback->traceparent.len +
                   callback->items.count * sizeof(struct pay_webhook_item);
    for (size_t i = 0; i < callback->items.count; i++) {
        bytes += values[i].len + callback->items.items[i].partition_key.len;
    }
    return bytes;
}

static const char *put(char **at, const void *bytes, size_t len)
{
    const char *begin = *at;
    if (len > 0) {
        memcpy(*at, bytes, len);
    }
    *at += len;
    return begin;
}

/* Behind the call itself: its items, then what they point to. */
static void fill_items(const struct pay_webhook *webhook, const struct pay_callback *callback,
                       const struct pay_bytes *values, struct pay_webhook_call *call)
{
    call->items = (struct pay_webhook_item *)(call + 1);
    call->item_count = callback->items.count;
    char *at = (char *)(call->items + call->item_count);
    for (size_t i = 0; i < call->item_count; i++) {
        const struct pay_psp_item *from = &callback->items.items[i];
        struct pay_webhook_item *item = &call->items[i];
        make_key(webhook, from, item->redis_key);
        item->value = (struct pay_bytes){(const uint8_t *)put(&at, values[i].ptr, values[i].len),
                                         values[i].len};
        item->partition_key = (struct pay_str){
            put(&at, from->partition_key.ptr, from->partition_key.len), from->partition_key.len};
    }
    if (callback->traceparent.ptr != NULL) {
        call->traceparent =
            (struct pay_str){put(&at, callback->traceparent.ptr, callback->traceparent.len),
                             callback->traceparent.len};
    }
}

static struct pay_webhook_call *make_call(struct pay_webhook *webhook, struct pay_http_request *req,
                                          const struct pay_callback *callback,
                                          const struct pay_bytes *values)
{
    struct pay_webhook_call *call = pay_mem_new(1, bytes_of(callback, values));
    if (call == NULL) {
        return NULL;
    }
    call->ticket.on_report = on_report;
    call->webhook = webhook;
    call->req = req;
    call->adapter = callback->account->adapter;
    (void)pay_str_copy(call->account, sizeof call->account, pay_str_of(callback->account->psp.id));
    call->received_at_us = callback->received_at_us;
    call->strict = callback->account->answers == PAY_ANSWERS_STRICT && webhook->store != NULL;
    const struct pay_event *event = &callback->items.items[0].event;
    (void)pay_str_copy(call->expect.request_no, sizeof call->expect.request_no,
                       event->merchant_request_no); /* Absent or foreign: "", which fits nothing. */
    call->expect.has_amount = event->type == PAY_EV_ATTEMPT_SUCCEEDED && event->has_amount;
    call->expect.amount = event->amount;
    atomic_store(&call->waiting, 1);
    fill_items(webhook, callback, values, call);
    return call;
}

static void refuse(struct pay_webhook *webhook, struct pay_http_request *req,
                   const struct pay_account *account, enum pay_psp_outcome outcome)
{
    const struct pay_psp_answer answer = account->adapter->answer(outcome);
    count(webhook, account->psp.id, outcome);
    give(req, &answer);
}

static bool fill_raw(const struct pay_http_view *view, struct pay_arena *arena,
                     struct pay_callback *callback)
{
    struct pay_psp_header *headers =
        pay_arena_array(arena, view->header_count + 1, sizeof *headers);
    if (headers == NULL) {
        return false;
    }
    for (size_t i = 0; i < view->header_count; i++) {
        headers[i] = (struct pay_psp_header){view->headers[i].name, view->headers[i].value};
    }
    callback->raw = (struct pay_psp_notification){view->method, view->path,         view->query,
                                                  headers,      view->header_count, view->body};
    const struct pay_http_header *trace =
        pay_http_header_find(view->headers, view->header_count, PAY_HEADER_TRACEPARENT);
    if (trace != NULL && pay_traceparent_valid(trace->value)) {
        callback->traceparent = trace->value;
    }
    return true;
}

/* Verified and understood: from here on the answer says whether it is durable. */
static void keep(struct pay_webhook *webhook, struct pay_webhook_thread *mine,
                 struct pay_http_request *req, const struct pay_callback *callback)
{
    struct pay_bytes values[PAY_PSP_ITEMS_MAX];
    struct pay_err err = {.status = PAY_OK};
    struct pay_webhook_call *call = NULL;
    if (encode(mine, callback, values, &err) != PAY_OK) {
        pay_log(PAY_LOG_WARN, "callback_not_produced",
                PAY_F_STR("psp_account", callback->account->psp.id), PAY_F_ERR(&err));
    } else {
        call = make_call(webhook, req, callback, values);
    }
    if (call != NULL) {
        pay_webhook_ask(webhook, call);
    } else {
        refuse(webhook, req, callback->account, PAY_PSP_UNAVAILABLE);
    }
}

static void handle_for(struct pay_webhook *webhook, struct pay_http_request *req,
                       const struct pay_http_view *view, const struct pay_account *account)
{
    struct pay_err err = {.status = PAY_OK};
    struct pay_webhook_thread *mine = my_thread(webhook);
    struct pay_callback callback = {.account = account, .received_at_us = view->received_at_us};
    if (mine == NULL || !fill_raw(view, mine->desk.arena, &callback)) {
        refuse(webhook, req, account, PAY_PSP_UNAVAILABLE);
        return;
    }
    const enum pay_status status = pay_callback_read(&callback, mine->desk.arena, &err);
    if (status == PAY_REJECT) {
        const char *reason = pay_psp_reason_name(callback.reason);
        pay_metric_add(webhook->ingest->metrics[PAY_IM_SIGNATURE],
                       (const char *const[]){account->psp.id, reason}, 1);
        pay_log(PAY_LOG_WARN, "callback_refused", PAY_F_STR("psp_account", account->psp.id),
                PAY_F_STR("reason", reason));
        refuse(webhook, req, account, PAY_PSP_REFUSED);
        return;
    }
    if (status != PAY_OK) {
        refuse(webhook, req, account, PAY_PSP_UNAVAILABLE);
        return;
    }
    if (!has_room(webhook, account, true)) {
        refuse(webhook, req, account, PAY_PSP_TOO_FAST);
        return;
    }
    keep(webhook, mine, req, &callback);
}

void pay_webhook_handle(void *ctx, struct pay_http_request *req, const struct pay_http_view *view)
{
    struct pay_webhook *webhook = ctx;
    const struct pay_accounts *accounts = pay_accounts_acquire(webhook->ingest->accounts);
    const struct pay_account *account = pay_accounts_account(accounts, account_of(view->path));
    if (account != NULL) {
        handle_for(webhook, req, view, account);
    } else { /* Removed between head and body. */
        struct pay_http_answer answer;
        plain_answer(&answer, 404, "no such account\n");
        (void)pay_http_request_answer(req, &answer);
    }
    pay_accounts_release(accounts);
}
