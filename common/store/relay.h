/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file relay.h
 * @brief The publisher's statements: shard leases with a fence, reading the outbox, its
 * bookkeeping.
 *
 * Every write carries the fence of its shard: a publisher that lost its lease changes nothing.
 * Ownership: results are the caller's (pay_pg_result_free). Threads: as the connection. Failure: as
 * pg.h. May block as long as one statement.
 */
#ifndef PAY_STORE_RELAY_H
#define PAY_STORE_RELAY_H

#include "common/io/pg/pg.h"

#define PAY_RELAY_SHARDS_MAX 1024

/** One shard's lease as this process holds it. */
struct pay_relay_lease {
    int shard;
    int64_t fence;
};

/** What the connection works with: one parameter buffer is enough. */
struct pay_relay {
    struct pay_pg *pg;            /**< Borrowed. */
    struct pay_pg_params *params; /**< Owned. */
    const char *owner;            /**< This process; borrowed, unique. */
    int ttl_ms;                   /**< Of a lease. */
};

PAY_MUST_CHECK enum pay_status pay_relay_init(struct pay_relay *relay, struct pay_pg *pg,
                                              const char *owner, int ttl_ms, struct pay_err *err);
/** @brief To be called on each new connection, before anything else. */
PAY_MUST_CHECK enum pay_status pay_relay_connected(struct pay_relay *relay, struct pay_err *err);
void pay_relay_free(struct pay_relay *relay);

/** @brief Say that the owner is there. @param ret_members owners seen within ttl_ms, this one
 * included. */
PAY_MUST_CHECK enum pay_status pay_relay_join(struct pay_relay *relay, int *ret_members,
                                              struct pay_err *err);
/** @brief Leave: other members share at once. */
PAY_MUST_CHECK enum pay_status pay_relay_leave(struct pay_relay *relay, struct pay_err *err);
/**
 * @brief Prolong what is still ours.
 * @param leases in: held; out: those that are held still, packed. @param count in and out.
 */
PAY_MUST_CHECK enum pay_status pay_relay_renew(struct pay_relay *relay,
                                               struct pay_relay_lease *leases, size_t *count,
                                               struct pay_err *err);
/** Which shards to take. */
struct pay_relay_wish {
    int shards;     /**< Out of 0..shards-1. */
    size_t want;    /**< At most so many. */
    bool own_again; /**< Also those that stand under our name: a process that has just started holds
                       none, so they are of a former life. Their fence rises like any other's. */
};
/**
 * @brief Take shards that nobody holds.
 * @param ret_leases room for wish->want entries.
 */
PAY_MUST_CHECK enum pay_status pay_relay_take(struct pay_relay *relay,
                                              const struct pay_relay_wish *wish,
                                              struct pay_relay_lease *ret_leases, size_t *ret_count,
                                              struct pay_err *err);
/** @brief Give a shard back at once. */
PAY_MUST_CHECK enum pay_status pay_relay_release(struct pay_relay *relay,
                                                 struct pay_relay_lease lease, struct pay_err *err);

/** Columns of a read. */
enum pay_relay_column {
    PAY_RELAY_SHARD,
    PAY_RELAY_ID,
    PAY_RELAY_TOPIC,
    PAY_RELAY_KEY,
    PAY_RELAY_PAYLOAD,
    PAY_RELAY_HEADERS,
    PAY_RELAY_ATTEMPTS,
    PAY_RELAY_CREATED_AT,
    PAY_RELAY_TID,
    PAY_RELAY_COLUMN_COUNT
};

/** What to read of one shard. */
struct pay_relay_range {
    int shard;
    int64_t after_id; /**< Rows with a larger id. */
    int64_t upto_id;  /**< And not above this; INT64_MAX: no bound (a sweep has one). */
};

/** One read of several shards. */
struct pay_relay_request {
    const struct pay_relay_range *ranges;
    size_t range_count;
    const int64_t *skip_ids; /**< Rows that are in hand already. */
    size_t skip_count;
    int limit;             /**< Rows per shard. */
    int64_t pass_began_us; /**< The database's clock at the start of the pass over the outbox: keys
                              that were held then stay held for all of it. */
};

/**
 * @brief Undelivered rows, in no certain order: each shard's first ones after its range's start.
 * Rows of keys that wait behind a dead row, or behind a refused row that was not available when the
 * pass began, are left out. Whoever sets a held row free keeps attempts > 0 and sets available_at a
 * little ahead of now, so that a pass under way still holds its key.
 */
PAY_MUST_CHECK enum pay_status pay_relay_read(struct pay_relay *relay,
                                              const struct pay_relay_request *request,
                                              struct pay_pg_result **ret_rows, struct pay_err *err);
/** @brief last_value of the outbox sequence: cheap proof that nothing was added. @param ret_now_us
 * the database's clock. */
PAY_MUST_CHECK enum pay_status pay_relay_last_id(struct pay_relay *relay, int64_t *ret_id,
                                                 int64_t *ret_now_us, struct pay_err *err);
/** Rows that were acknowledged, of one shard or several. */
struct pay_relay_delivered {
    const struct pay_relay_lease *leases; /**< Of every shard that a row is of. */
    size_t lease_count;
    const int64_t *shards, *ids; /**< Row by row. */
    const uint64_t *tids;        /**< Where each row stood when it was read. */
    size_t count;
};
/**
 * @brief Delete them, in one transaction.
 * @param ret_leases room for all leases: those that are ours. Of the others nothing was deleted.
 */
PAY_MUST_CHECK enum pay_status pay_relay_delete(struct pay_relay *relay,
                                                const struct pay_relay_delivered *delivered,
                                                struct pay_relay_lease *ret_leases,
                                                size_t *ret_count, struct pay_err *err);

/** A row that the broker refused for good. */
struct pay_relay_refusal {
    struct pay_relay_lease lease;
    int64_t id;
    const char *reason;
    int delay_ms;     /**< Not tried again before. */
    int attempts_max; /**< Reached: marked dead. */
};
PAY_MUST_CHECK enum pay_status pay_relay_refuse(struct pay_relay *relay,
                                                const struct pay_relay_refusal *refusal,
                                                bool *ret_ours, bool *ret_dead,
                                                struct pay_err *err);

/** Figures for the metrics. */
struct pay_relay_backlog {
    int64_t rows; /**< Undelivered, counted up to 10000. */
    int64_t dead;
    int64_t oldest_age_us; /**< 0: none. */
};
PAY_MUST_CHECK enum pay_status pay_relay_backlog(struct pay_relay *relay, int shards,
                                                 struct pay_relay_backlog *ret_backlog,
                                                 struct pay_err *err);

#endif /* PAY_STORE_RELAY_H */
