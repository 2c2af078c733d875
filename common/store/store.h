/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file store.h
 * @brief One database connection with everything that the store's files need to speak SQL.
 *
 * Every SQL statement of the system is a static text in this folder, one file per aggregate.
 *
 * Ownership: the store belongs to the caller until pay_store_free(); what loaders return belongs to
 * the arena they were given. Threads: one at a time per store. Failure: as pg.h, plus PAY_RETRY
 * with code PAY_STORE_COUNT when a statement touched another number of rows than it must: then the
 * transaction must be rolled back (a lost race, a bug or a stray writer).
 *
 *     pay_store_new -> pay_store_connect -> { statements } -> pay_store_free
 */
#ifndef PAY_STORE_STORE_H
#define PAY_STORE_STORE_H

#include "common/base/arena.h"
#include "common/io/pg/pg.h"

#define PAY_STORE_COUNT (-7001)                /**< err.code: rows touched != rows meant. */
#define PAY_STORE_PARAMS_BYTES_MAX (64u << 20) /**< Of one statement. */

struct pay_store;

/** @brief Make a store that is not connected yet. @return as pay_pg_new(). */
PAY_MUST_CHECK enum pay_status pay_store_new(const struct pay_pg_options *options,
                                             struct pay_store **ret_store, struct pay_err *err);
/** @return always NULL; copes with NULL. */
struct pay_store *pay_store_free(struct pay_store *store);
/** @brief Connect, or connect again. May block for connect_timeout_ms. */
PAY_MUST_CHECK enum pay_status pay_store_connect(struct pay_store *store, struct pay_err *err);
bool pay_store_usable(const struct pay_store *store);
/**
 * @brief Plan by index only: every statement of a batch names its rows by key, and a plan that was
 * made while a table was small must not scan it when it has grown (a hash join reads all of it).
 */
PAY_MUST_CHECK enum pay_status pay_store_prefer_indexes(struct pay_store *store,
                                                        struct pay_err *err);
/** @brief The connection itself: rollback, failure details, tests. */
struct pay_pg *pay_store_pg(struct pay_store *store);

PAY_MUST_CHECK enum pay_status pay_store_begin(struct pay_store *store, struct pay_err *err);
/** @return as pay_pg_commit(): PAY_UNKNOWN is resolved by reading back. */
PAY_MUST_CHECK enum pay_status pay_store_commit(struct pay_store *store, struct pay_err *err);
void pay_store_rollback(struct pay_store *store);
/** @brief Run what the writing calls have queued, check every count. */
PAY_MUST_CHECK enum pay_status pay_store_flush(struct pay_store *store, struct pay_err *err);

/** @brief The same, and keep the results for the _read and _found calls, until the next run. */
PAY_MUST_CHECK enum pay_status pay_store_run(struct pay_store *store, struct pay_err *err);

#endif /* PAY_STORE_STORE_H */
