/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file webhook.h
 * @brief Inside role webhook: one callback from its request to its answer.
 *
 *   HTTP thread:     head() -> handle(): verify, parse, seal
 *   asker thread:    ask Redis for all that wait in one round trip, produce (without Redis there is
 *                    none: the HTTP thread produces)
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

#define PAY_WEBHOOK_KEY_BYTES_MAX 128
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

/** One event of a callback, as it goes to Kafka. */
struct pay_webhook_item {
    char redis_key[PAY_WEBHOOK_KEY_BYTES_MAX];
    enum pay_redis_known known; /**< PRESENT: durable already, not produced. */
    struct pay_bytes value;
    struct pay_str partition_key;
};

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
    struct pay_webhook_call *next; /**< In a queue. */
    bool produced;                 /**< At least one item; else all were durable already. */
    struct pay_str traceparent;    /**< Absent: none. */
    size_t item_count;
    struct pay_webhook_item *items; /**< Behind the struct, and what they point to. */
};

/** Calls on their way to one thread that takes them in batches. */
struct pay_call_queue {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct pay_webhook_call *first, **last;
    size_t count;
    bool waits;   /**< The thread sleeps and is to be woken. */
    bool gathers; /**< ... but not yet for every call. */
    bool at_once; /**< One of the calls does not wait. */
    bool stopping;
};

/** Signed callbacks per second of one account. */
struct pay_webhook_rate {
    char account[PAY_NAME_SIZE];
    struct pay_bucket bucket;
};

/** What one HTTP thread has for itself. */
struct pay_webhook_thread {
    struct pay_desk desk;
    struct pay_webhook_thread *next;
};

struct pay_webhook {
    struct pay_ingest *ingest;
    struct pay_http_server *server;
    pthread_key_t thread_key;
    pthread_mutex_t lock; /**< threads, rates. */
    struct pay_webhook_thread *threads;
    struct pay_webhook_rate *rates; /**< rate_count of PAY_ACCOUNTS_ACCOUNTS_MAX. */
    size_t rate_count;
    struct pay_call_queue asking, settling;
    bool asker_started, settler_started;
    pthread_t asker, settler;
    struct pay_redis *asker_redis; /**< The asker's own; NULL: none is configured. */
    struct pay_redis *redis;       /**< The settler's own. */
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

/** @brief A report came, or whoever produced is done: the last one answers. */
void pay_webhook_one_less(struct pay_webhook_call *call);

/* webhook_queue.c */
void pay_call_queue_init(struct pay_call_queue *queue);
void pay_call_queue_free(struct pay_call_queue *queue);
/** @param at_once do not gather. @return false: @p max are waiting already. */
PAY_MUST_CHECK bool pay_call_queue_put(struct pay_call_queue *queue, struct pay_webhook_call *call,
                                       size_t max, bool at_once);
/**
 * @brief Wait for the first call, then @p gather_us for more, unless there are enough.
 * @return how many; 0: it is stopped and empty.
 */
size_t pay_call_queue_take(struct pay_call_queue *queue, int64_t gather_us,
                           struct pay_webhook_call *ret_calls[PAY_WEBHOOK_BATCH_MAX]);
/** @brief From here on take() does not wait. */
void pay_call_queue_stop(struct pay_call_queue *queue);

/* webhook_ask.c */
PAY_MUST_CHECK enum pay_status pay_webhook_asker_start(struct pay_webhook *webhook,
                                                       struct pay_err *err);
/** @brief What waits is produced first. */
void pay_webhook_asker_stop(struct pay_webhook *webhook);
/** @brief Ask Redis, and produce what it does not know. Takes the call. */
void pay_webhook_ask(struct pay_webhook *webhook, struct pay_webhook_call *call);

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
