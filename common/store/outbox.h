/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file outbox.h
 * @brief What is to be published: inserted with the decision, deleted when delivered.
 *
 * Inside a shard ids become visible in order, because the insert takes the shard's advisory lock
 * until its commit. The processor's calls are queued; the publisher's are one statement each and
 * carry the lease's fence: with a lost lease they change nothing.
 */
#ifndef PAY_STORE_OUTBOX_H
#define PAY_STORE_OUTBOX_H

#include "common/store/store.h"

#define PAY_STORE_OUTBOX_HEADERS_MAX 16 /**< Name and value pairs of one row. */
#define PAY_STORE_OUTBOX_READ_MAX 5000  /**< Rows of one read. */
#define PAY_STORE_SHARDS_MAX 1024
#define PAY_STORE_OWNER_SIZE 256

struct pay_store_header {
    struct pay_str name;
    struct pay_str value;
};

struct pay_store_outbox_row {
    int shard;
    int64_t id;           /**< Set by the database. */
    struct pay_str topic; /**< "events" or "psp-jobs": without the prefix. */
    struct pay_str key;
    struct pay_bytes payload;
    struct pay_store_header headers[PAY_STORE_OUTBOX_HEADERS_MAX];
    size_t header_count;
    int64_t created_at_us;
    int attempts;
    int64_t available_at_us; /**< 0: never refused. */
    bool dead;               /**< Given up: holds the later rows of its key. */
};

/* ---- processor ---- */

/**
 * @brief Queue the shards' locks, ascending, and the insert in the order given.
 * @param rows ordered by shard ascending, and within a shard as they are to be published.
 */
PAY_MUST_CHECK enum pay_status pay_store_outbox_add(struct pay_store *store,
                                                    const struct pay_store_outbox_row *const *rows,
                                                    size_t count, struct pay_err *err);

/* ---- publisher: leases ---- */

struct pay_store_lease {
    int shard;
    int64_t fence;
    int64_t expires_at_us;
    char owner[PAY_STORE_OWNER_SIZE];
};

/** @brief Every lease row, expired ones too. @param ret_leases array of PAY_STORE_SHARDS_MAX. */
PAY_MUST_CHECK enum pay_status pay_store_lease_list(struct pay_store *store,
                                                    struct pay_store_lease ret_leases[],
                                                    size_t *ret_count, int64_t *ret_now_us,
                                                    struct pay_err *err);
/**
 * @brief Take the shards of @p shards that nobody holds (each with a new fence).
 * @param ret_leases array of @p count; those that were taken.
 */
PAY_MUST_CHECK enum pay_status pay_store_lease_take(struct pay_store *store, struct pay_str owner,
                                                    const int *shards, size_t count, int64_t ttl_us,
                                                    struct pay_store_lease ret_leases[],
                                                    size_t *ret_count, struct pay_err *err);
/** @brief Prolong own leases. @param ret_kept one per lease: false = lost. */
PAY_MUST_CHECK enum pay_status pay_store_lease_renew(struct pay_store *store,
                                                     const struct pay_store_lease *leases,
                                                     size_t count, int64_t ttl_us, bool ret_kept[],
                                                     struct pay_err *err);
/** @brief Let go of own leases, so that another takes them at once. */
PAY_MUST_CHECK enum pay_status pay_store_lease_release(struct pay_store *store,
                                                       const struct pay_store_lease *leases,
                                                       size_t count, struct pay_err *err);

/* ---- publisher: rows ---- */

/**
 * @brief Rows of one shard with after_id < id <= upto_id in id order, dead ones too.
 * @param upto_id INT64_MAX: to the end; else for the sweep from the start.
 * @param ret_rows array of @p max; texts and payloads belong to @p arena.
 */
PAY_MUST_CHECK enum pay_status pay_store_outbox_read(struct pay_store *store, int shard,
                                                     int64_t after_id, int64_t upto_id, size_t max,
                                                     struct pay_arena *arena,
                                                     struct pay_store_outbox_row **ret_rows,
                                                     size_t *ret_count, struct pay_err *err);
/** @brief Delete delivered rows. @param ret_deleted less than @p count: the lease was lost. */
PAY_MUST_CHECK enum pay_status pay_store_outbox_delete(struct pay_store *store,
                                                       const struct pay_store_lease *lease,
                                                       const int64_t *ids, size_t count,
                                                       size_t *ret_deleted, struct pay_err *err);
/** @brief Refused: one more attempt, not before now + @p delay_us. @param ret_done false: lost. */
PAY_MUST_CHECK enum pay_status pay_store_outbox_postpone(struct pay_store *store,
                                                         const struct pay_store_lease *lease,
                                                         int64_t id, int64_t delay_us,
                                                         bool *ret_done, struct pay_err *err);
/** @brief Given up: the row stays, marked. @param reason a code, no payload. */
PAY_MUST_CHECK enum pay_status pay_store_outbox_kill(struct pay_store *store,
                                                     const struct pay_store_lease *lease,
                                                     int64_t id, struct pay_str reason,
                                                     bool *ret_done, struct pay_err *err);
/** @brief Highest id drawn so far: unchanged means nothing new. */
PAY_MUST_CHECK enum pay_status pay_store_outbox_last_id(struct pay_store *store, int64_t *ret_id,
                                                        struct pay_err *err);

struct pay_store_outbox_stat {
    int64_t rows;         /**< As estimated by the planner: cheap, not exact. */
    int64_t oldest_at_us; /**< 0: empty. */
    int64_t dead;
    int64_t now_us;
};
PAY_MUST_CHECK enum pay_status pay_store_outbox_stats(struct pay_store *store,
                                                      struct pay_store_outbox_stat *ret_stat,
                                                      struct pay_err *err);
/** @return true: no row at all, so the shard count may change. */
PAY_MUST_CHECK enum pay_status pay_store_outbox_empty(struct pay_store *store, bool *ret_empty,
                                                      struct pay_err *err);

#endif /* PAY_STORE_OUTBOX_H */
