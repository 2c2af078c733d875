/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file deadlines.h
 * @brief One row per thing that waits: set and cleared by decisions, leased by recovery.
 *
 * The processor's calls are queued (the caller's flush runs them); recovery's are one statement
 * each. due_at never moves while a lease runs: it is part of the transport key of the input made.
 */
#ifndef PAY_STORE_DEADLINES_H
#define PAY_STORE_DEADLINES_H

#include "common/core/types.h"
#include "common/store/store.h"

#define PAY_STORE_AGGREGATE_SIZE                                                              \
    300                           /**< psp/psp_account/transport_key of an orphan is longest. \
                                   */
#define PAY_STORE_LEASES_MAX 1000 /**< Rows of one lease call. */

struct pay_store_deadline {
    enum pay_deadline_kind kind;
    struct pay_str aggregate_id;
    struct pay_str payment_id; /**< Absent: none (an orphan without one). */
    int64_t due_at_us;         /**< For a clear: ignored. */
    int64_t set_before_us;     /**< For a clear: only a row that was set before; 0: any. */
};

/* ---- processor ---- */

/** @brief Queue the upsert of deadlines; (aggregate_id, kind) must differ within one call. */
PAY_MUST_CHECK enum pay_status pay_store_deadline_set(struct pay_store *store,
                                                      const struct pay_store_deadline *const *rows,
                                                      size_t count, struct pay_err *err);
/** @brief Queue the removal of deadlines that are there. */
PAY_MUST_CHECK enum pay_status
pay_store_deadline_clear(struct pay_store *store, const struct pay_store_deadline *const *rows,
                         size_t count, struct pay_err *err);

/**
 * @brief Queue the move of rows whose input no decision can be made of: due again after a pause
 * that doubles with each try, from 30 seconds to six hours. A row that is not due at due_at_us (any
 * more), or is not there, is left alone.
 */
PAY_MUST_CHECK enum pay_status
pay_store_deadline_postpone(struct pay_store *store, const struct pay_store_deadline *const *rows,
                            size_t count, struct pay_err *err);

/* ---- recovery ---- */

struct pay_store_due {
    enum pay_deadline_kind kind;
    char aggregate_id[PAY_STORE_AGGREGATE_SIZE];
    char payment_id[PAY_PAYMENT_ID_SIZE]; /**< "": none. */
    int64_t due_at_us;
    int64_t lease_until_us;
    int tries;        /**< This lease included. */
    bool keeps_lease; /**< For a release: not free before the lease ends. */
};

struct pay_store_lease_wish {
    size_t max;                          /**< Rows; at most PAY_STORE_LEASES_MAX. */
    int64_t lease_us;                    /**< Nobody else gets them for so long. */
    int64_t lease_max_us;                /**< Where the doubling ends; at least lease_us. */
    bool grows[PAY_DEADLINE_KIND_COUNT]; /**< Kinds whose lease doubles with each try. */
};
/**
 * @brief Lease rows that are due and free, oldest first, each to one caller only.
 * @param ret_rows array of wish->max. @param ret_now_us the database's clock; 0 without rows.
 */
PAY_MUST_CHECK enum pay_status pay_store_deadline_lease(struct pay_store *store,
                                                        const struct pay_store_lease_wish *wish,
                                                        struct pay_store_due ret_rows[],
                                                        size_t *ret_count, int64_t *ret_now_us,
                                                        struct pay_err *err);
/**
 * @brief Move leased rows to their next time and end the lease; rows that a decision moved or
 * removed meanwhile are left alone.
 * @param next_due_us one per row. @param ret_moved rows moved.
 */
PAY_MUST_CHECK enum pay_status pay_store_deadline_reschedule(struct pay_store *store,
                                                             const struct pay_store_due *rows,
                                                             const int64_t *next_due_us,
                                                             size_t count, size_t *ret_moved,
                                                             struct pay_err *err);
/**
 * @brief Let leases end as those of growing kinds do, counted from now; rows that a decision has
 * touched meanwhile are left alone.
 */
PAY_MUST_CHECK enum pay_status pay_store_deadline_hold(struct pay_store *store,
                                                       const struct pay_store_lease_wish *wish,
                                                       const struct pay_store_due *rows,
                                                       size_t count, struct pay_err *err);
/** @brief It was no try. End the leases without moving the rows: they are due again at once, or
 * when the lease that they keep ends. */
PAY_MUST_CHECK enum pay_status pay_store_deadline_release(struct pay_store *store,
                                                          const struct pay_store_due *rows,
                                                          size_t count, struct pay_err *err);

/** How much is overdue, for metrics. */
struct pay_store_deadline_stat {
    enum pay_deadline_kind kind;
    int64_t overdue; /**< Rows due, at most PAY_STORE_OVERDUE_COUNTED are counted. */
    int64_t oldest_due_at_us;
};
#define PAY_STORE_OVERDUE_COUNTED 10000
/** @param ret_stats array of PAY_DEADLINE_KIND_COUNT. */
PAY_MUST_CHECK enum pay_status pay_store_deadline_stats(struct pay_store *store,
                                                        struct pay_store_deadline_stat ret_stats[],
                                                        size_t *ret_count, struct pay_err *err);

/** @brief make_partitions(): what recovery runs each hour. @param ret_made partitions made. */
PAY_MUST_CHECK enum pay_status pay_store_make_partitions(struct pay_store *store, int *ret_made,
                                                         struct pay_err *err);

#endif /* PAY_STORE_DEADLINES_H */
