/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file migration.h
 * @brief What `payfactctl migrate` and `payfactctl topics` ask of the database. Needs the owner's
 * rights; no service uses it.
 *
 * One migrator at a time: the session's advisory lock is held until the store is disconnected.
 * Failure: as pg.h; the server's own text is for the person who migrates.
 */
#ifndef PAY_STORE_MIGRATION_H
#define PAY_STORE_MIGRATION_H

#include "common/base/buf.h"
#include "common/store/store.h"

#define PAY_STORE_MIGRATIONS_MAX 999
#define PAY_STORE_MIGRATION_NAME_SIZE 96
#define PAY_STORE_CHECKSUM_BYTES 32

struct pay_store_migration {
    int version;
    char name[PAY_STORE_MIGRATION_NAME_SIZE];
    uint8_t checksum[PAY_STORE_CHECKSUM_BYTES]; /**< SHA-256 of the file. */
    int64_t applied_at_us;
};

/** @brief Take the migrators' lock if it is free. */
PAY_MUST_CHECK enum pay_status pay_store_migration_try_lock(struct pay_store *store,
                                                            bool *ret_locked, struct pay_err *err);
/** @brief Wait for the migrators' lock, for as long as it takes. */
PAY_MUST_CHECK enum pay_status pay_store_migration_lock(struct pay_store *store,
                                                        struct pay_err *err);
/**
 * @brief What is applied, by version. An empty database has none.
 * @param ret_rows array of PAY_STORE_MIGRATIONS_MAX.
 */
PAY_MUST_CHECK enum pay_status pay_store_migration_applied(struct pay_store *store,
                                                           struct pay_store_migration ret_rows[],
                                                           size_t *ret_count, struct pay_err *err);
/**
 * @brief Run @p sql and record it, in one transaction.
 * @param sql NUL-terminated; must not end the transaction itself.
 * @param server_text the server's text of a failure is appended.
 * @return PAY_UNKNOWN: the COMMIT's answer was lost; ask again what is applied.
 */
PAY_MUST_CHECK enum pay_status
pay_store_migration_apply(struct pay_store *store, const struct pay_store_migration *migration,
                          const char *sql, struct pay_buf *server_text, struct pay_err *err);
/**
 * @brief Open a transaction in which nothing can be added to the outbox, and say if it is empty.
 * Ends with pay_store_rollback().
 */
PAY_MUST_CHECK enum pay_status pay_store_outbox_hold(struct pay_store *store, bool *ret_empty,
                                                     struct pay_err *err);

#endif /* PAY_STORE_MIGRATION_H */
