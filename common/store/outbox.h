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

#endif /* PAY_STORE_OUTBOX_H */
