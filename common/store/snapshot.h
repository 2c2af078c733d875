/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file snapshot.h
 * @brief Everything that a batch of decisions rests on, in one round trip; in two where there are
 * money actions or approval requests.
 *
 * The order rows are read first: what is read behind them may be newer than the version they carry,
 * and then the compare-and-set of that version fails. Route traits are not stored: the caller fills
 * them from the accounts. Ownership: rows belong to the arena given. Threads: store.h.
 */
#ifndef PAY_STORE_SNAPSHOT_H
#define PAY_STORE_SNAPSHOT_H

#include "common/core/snapshot.h"
#include "common/store/store.h"

#define PAY_STORE_ROWS_PER_PAYMENT_MAX                         \
    1024 /**< Of one kind; more is refused (PAY_REJECT). Spent \
              gates do not count: they are left out. */

/** A deadline input: what does the row say now? For DEAD_EVENT: the payment's dead row of the
 * outbox that died last. */
struct pay_store_due_ask {
    struct pay_str aggregate_id;
    enum pay_deadline_kind kind;
    int64_t row_due_at_us; /**< Answer; 0: no row. */
};

/** CREATE_PAYMENT: has the merchant's number another payment? */
struct pay_store_order_no_ask {
    struct pay_str merchant_id;
    struct pay_str merchant_order_no;
    struct pay_str payment_id;
    bool taken; /**< Answer. */
};

/** A route of a command: is it paused? */
struct pay_store_pause_ask {
    struct pay_str psp, psp_account, method;
    bool paused; /**< Answer. */
};

/** CAPTURE, REQUEST_REFUND: has the merchant's number an action of another payment? */
struct pay_store_key_ask {
    enum pay_money_kind kind;
    struct pay_str merchant_id;
    struct pay_str key; /**< As a row has it: pay_id_shorten(). */
    struct pay_str payment_id;
    bool taken; /**< Answer. */
};

/** A request that was loaded, and what was signed: the caller decodes it and fills the request. */
struct pay_store_signed_request {
    struct pay_snapshot *snapshot;
    size_t index; /**< Into its requests. */
    struct pay_bytes command;
    struct pay_bytes writer_fingerprint;
};

struct pay_store_load {
    struct pay_snapshot *const *snapshots; /**< order.payment_id set, sorted by it, none twice. */
    size_t count;
    struct pay_store_due_ask *const *dues;
    size_t due_count;
    struct pay_store_order_no_ask *const *order_nos;
    size_t order_no_count;
    struct pay_store_pause_ask *const *pauses;
    size_t pause_count;
    struct pay_store_key_ask *const *keys;
    size_t key_count;
    const struct pay_str *request_ids; /**< Loaded whatever their status: what an APPROVE names. */
    size_t request_id_count;
    struct pay_snapshot *const *days; /**< Of snapshots: those that need their refund_day. */
    size_t day_count;
    struct pay_store_signed_request *requests; /**< Answer, in the arena. */
    size_t request_count;
    int64_t now_us; /**< Answer: the transaction's time by the database's clock. */
};

/** @brief Run; each snapshot is overwritten, and of one state: a payment that is written meanwhile
 * is read again. One that has no row has order.exists false. */
PAY_MUST_CHECK enum pay_status pay_store_snapshot_load(struct pay_store *store,
                                                       struct pay_arena *arena,
                                                       struct pay_store_load *load,
                                                       struct pay_err *err);
/** @brief Queue the question for the transaction's time; pay_store_now_read() after the run. */
PAY_MUST_CHECK enum pay_status pay_store_now_find(struct pay_store *store, size_t *ret_index,
                                                  struct pay_err *err);
int64_t pay_store_now_read(struct pay_store *store, size_t index);

/**
 * @brief Make room for what one more decision may append.
 * @return false when the arena is at its maximum.
 */
PAY_MUST_CHECK bool pay_store_snapshot_reserve(struct pay_arena *arena,
                                               struct pay_snapshot *snapshot);

/** Sealed parameters of one route, for a SUBMIT job. */
struct pay_store_params_ask {
    struct pay_str payment_id;
    int route_no;
    bool found; /**< Answers; in the arena given. */
    struct pay_bytes params;
    struct pay_str key_id, bound_to;
};
/** What the order has beside the snapshot, for a job. */
struct pay_store_order_detail {
    struct pay_str payment_id;
    struct pay_str description;
    struct pay_str traceparent;
};
/** The browser's data of an attempt, for a CONFIRM job. */
struct pay_store_redirect_ask {
    struct pay_str attempt_id;
    bool found;
    struct pay_bytes data;
    struct pay_str key_id, bound_to;
};
struct pay_store_job_load {
    struct pay_store_params_ask *const *params;
    size_t params_count;
    struct pay_store_order_detail *const *details;
    size_t detail_count;
    struct pay_store_redirect_ask *const *redirects;
    size_t redirect_count;
};
/** @brief Run: what jobs need of rows that never change. */
PAY_MUST_CHECK enum pay_status pay_store_job_load(struct pay_store *store, struct pay_arena *arena,
                                                  const struct pay_store_job_load *load,
                                                  struct pay_err *err);

#endif /* PAY_STORE_SNAPSHOT_H */
