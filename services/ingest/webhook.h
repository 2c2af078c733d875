/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file webhook.h
 * @brief Inside role webhook: one callback from its request to its answer.
 *
 *   HTTP thread:     head() -> handle(): verify, parse, ask Redis, seal, produce
 *   producer thread: the last report: answer (or hand a `strict` one to the settler)
 *   settler thread:  `strict` reads and answers; Redis keys of what is durable, in batches
 *
 * Ownership: struct pay_webhook_call is made by handle() and freed by whoever answers and is done.
 */
#ifndef PAY_INGEST_WEBHOOK_H
#define PAY_INGEST_WEBHOOK_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/io/http_server/http_server.h"
#include "common/io/redis/redis.h"
#include "common/store/strict.h"
#include "services/ingest/callback.h"
#include "services/ingest/psp_limits.h"

#define PAY_WEBHOOK_KEY_BYTES_MAX 512
#define PAY_WEBHOOK_SETTLE_MAX \
    8192 /**< Calls that wait for the settler; beyond it keys are not set. */
#define PAY_WEBHOOK_BATCH_MAX 64

/** What is compared for a `strict` answer; has_amount false: only the order's existence. */
struct pay_webhook_expect {
    char request_no[PAY_ACTION_ID_SIZE];
    bool has_amount;
    struct pay_money amount;
};

struct pay_webhook;

/** Between handle() and the answer. */
struct pay_webhook_call {
    struct pay_ticket ticket; /**< First: a report finds the call behind it. */
    struct pay_webhook *webhook;
    struct pay_http_request *req;
    const struct pay_psp_adapter *adapter;
    char account[PAY_NAME_SIZE];
    int64_t received_at_us;
    bool strict;
    struct pay_webhook_expect expect;
    atomic_int waiting; /**< Reports to come, and one for handle() itself. */
    atomic_bool failed;
    struct pay_webhook_call *next; /**< In the settler's queue. */
    size_t key_count;
    char (*keys)[PAY_WEBHOOK_KEY_BYTES_MAX]; /**< Redis keys of the items produced; behind the
                                                struct. */
};

/** Signed callbacks per second of one account. */
struct pay_webhook_rate {
    char account[PAY_NAME_SIZE];
    struct pay_bucket bucket;
};

/** What one HTTP thread has for itself. */
struct pay_webhook_thread {
    struct pay_desk desk;
    struct pay_redis *redis; /**< NULL: no Redis configured. */
    struct pay_webhook_thread *next;
};

struct pay_webhook {
    struct pay_ingest *ingest;
    struct pay_http_server *server;
    pthread_key_t thread_key;
    pthread_mutex_t lock; /**< threads, rates, the settler's queue. */
    pthread_cond_t wake;
    struct pay_webhook_thread *threads;
    struct pay_webhook_rate *rates; /**< rate_count of PAY_ACCOUNTS_ACCOUNTS_MAX. */
    size_t rate_count;
    struct pay_webhook_call *first, **last;
    size_t queued;
    bool stopping;
    bool settler_started;
    pthread_t settler;
    struct pay_redis *redis; /**< The settler's own. */
    struct pay_store *store; /**< The settler's own; NULL: no account with `strict` answers. */
    int64_t store_due_us;    /**< Monotonic; not asked before: it has just failed. */
};

#define PAY_WEBHOOK_ANSWER_MS 2000 /**< The shortest answer deadline of a PSP. */

/* webhook_call.c */
bool pay_webhook_head(void *ctx, const struct pay_http_view *view,
                      struct pay_http_answer *ret_answer);
void pay_webhook_thread_free(struct pay_webhook_thread *thread);
void pay_webhook_handle(void *ctx, struct pay_http_request *req, const struct pay_http_view *view);
/** @brief Answer in the PSP's own way and count it. */
void pay_webhook_answer(struct pay_webhook *webhook, struct pay_webhook_call *call,
                        enum pay_psp_outcome outcome);

/* webhook_settle.c */
PAY_MUST_CHECK enum pay_status pay_webhook_settler_start(struct pay_webhook *webhook,
                                                         struct pay_err *err);
void pay_webhook_settler_stop(struct pay_webhook *webhook);
/** @brief Every item is durable: the settler answers a `strict` one, sets the keys, frees the call.
 */
void pay_webhook_settle(struct pay_webhook *webhook, struct pay_webhook_call *call);

/** @return NULL where none is configured. */
PAY_MUST_CHECK enum pay_status pay_webhook_redis(const struct pay_webhook *webhook,
                                                 struct pay_redis **ret_redis, struct pay_err *err);

#endif /* PAY_INGEST_WEBHOOK_H */
