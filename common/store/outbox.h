/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file outbox.h
 * @brief What is to be published: inserted with the decision, deleted when delivered.
 *
 * Inside a shard ids become visible in order, because the insert takes the shard's advisory lock
 * until its commit. What the publisher does with the rows is relay.h.
 */
#ifndef PAY_STORE_OUTBOX_H
#define PAY_STORE_OUTBOX_H

#include "common/store/store.h"

#define PAY_STORE_OUTBOX_HEADERS_MAX 16 /**< Name and value pairs of one row. */

struct pay_store_header {
    struct pay_str name;
    struct pay_str value;
};

struct pay_store_outbox_row {
    int shard;
    struct pay_str topic; /**< "events" or "psp-jobs": without the prefix. */
    struct pay_str key;
    struct pay_bytes payload;
    struct pay_store_header headers[PAY_STORE_OUTBOX_HEADERS_MAX];
    size_t header_count;
};

/**
 * @brief Queue the shards' locks, ascending, and the insert in the order given.
 * @param rows ordered by shard ascending, and within a shard as they are to be published.
 */
PAY_MUST_CHECK enum pay_status pay_store_outbox_add(struct pay_store *store,
                                                    const struct pay_store_outbox_row *const *rows,
                                                    size_t count, struct pay_err *err);

/** An event or a job that the publisher gave up (DISCARD_EVENT, REPLAY_EVENT). */
struct pay_store_dead_event {
    struct pay_str key;
    struct pay_str event_id; /**< Of a job: psp-jobs/<shard>/<id>. */
    bool found;              /**< Answers. */
    int shard;
    int64_t id;
    struct pay_bytes payload; /**< In the arena given. */
    bool is_job;
};
/** @brief Queue the question; locks the rows found. pay_store_dead_found() after the run. */
PAY_MUST_CHECK enum pay_status pay_store_dead_find(struct pay_store *store,
                                                   struct pay_store_dead_event *const *asks,
                                                   size_t count, size_t *ret_index,
                                                   struct pay_err *err);
void pay_store_dead_found(struct pay_store *store, size_t index, struct pay_arena *arena,
                          struct pay_store_dead_event *const *asks, size_t count);
/**
 * @brief Queue: the dead row carries @p row's payload and headers instead, and is published in its
 * place, under its id.
 */
PAY_MUST_CHECK enum pay_status pay_store_dead_replace(struct pay_store *store,
                                                      const struct pay_store_dead_event *dead,
                                                      const struct pay_store_outbox_row *row,
                                                      struct pay_err *err);
/** @brief Queue: the dead row is published in its place after all, as it is. */
PAY_MUST_CHECK enum pay_status pay_store_dead_revive(struct pay_store *store,
                                                     const struct pay_store_dead_event *dead,
                                                     struct pay_err *err);

#endif /* PAY_STORE_OUTBOX_H */
