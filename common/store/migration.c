/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/migration.h"

#include <string.h>

#include "common/store/statement.h"

#include "common/base/banned.h"

static const char op[] = "migrate";

/* hashtext() so that the number need not be remembered anywhere. */
static const struct pay_pg_stmt try_lock = {
    .name = "migration_try_lock",
    .sql = "SELECT pg_try_advisory_lock(hashtext('payfact.migrate')::int8)",
};
static const struct pay_pg_stmt lock = {
    .name = "migration_lock",
    .sql = "SELECT pg_advisory_lock(hashtext('payfact.migrate')::int8)",
};
static const struct pay_pg_stmt has_table = {
    .name = "migration_has_table",
    .sql = "SELECT to_regclass('payfact.schema_migration') IS NOT NULL",
    .read_only = true,
};
static const struct pay_pg_stmt applied = {
    .name = "migration_applied",
    .sql = "SELECT version, name, checksum::bytea, applied_at FROM payfact.schema_migration"
           " ORDER BY version",
    .read_only = true,
};
static const struct pay_pg_stmt record = {
    .name = "migration_record",
    .sql = "INSERT INTO payfact.schema_migration (version, name, checksum) VALUES ($1, $2, $3)",
};
static const struct pay_pg_stmt outbox_empty = {
    .name = "outbox_empty",
    .sql = "SELECT NOT EXISTS (SELECT 1 FROM payfact.payment_outbox)",
    .read_only = true,
};

/* A migration must not stand in the queue for a lock: behind it every service would wait. */
static const char patience[] = "SET LOCAL lock_timeout = '10s'";

enum pay_status pay_store_migration_try_lock(struct pay_store *store, bool *ret_locked,
                                             struct pay_err *err)
{
    (void)pay_store_params(store); /* no parameters */
    const enum pay_status status = pay_store_exec(store, &try_lock, err);
    if (status == PAY_OK) {
        *ret_locked = pay_pg_bool(pay_store_result(store, 0), 0, 0);
        pay_store_results_free(store);
    }
    return status;
}

enum pay_status pay_store_migration_lock(struct pay_store *store, struct pay_err *err)
{
    (void)pay_store_params(store); /* no parameters */
    const enum pay_status status = pay_store_exec(store, &lock, err);
    pay_store_results_free(store);
    return status;
}

static enum pay_status read_applied(const struct pay_pg_result *result,
                                    struct pay_store_migration ret_rows[], size_t *ret_count,
                                    struct pay_err *err)
{
    const size_t count = pay_pg_rows(result);
    if (count > PAY_STORE_MIGRATIONS_MAX) {
        return pay_err_set(err, PAY_FATAL, 0, op, "the database has more than %d migrations",
                           PAY_STORE_MIGRATIONS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        const struct pay_bytes checksum = pay_pg_bytea(result, i, 2);
        struct pay_store_migration *row = &ret_rows[i];
        *row = (struct pay_store_migration){.version = (int)pay_pg_int(result, i, 0),
                                            .applied_at_us = pay_pg_timestamptz(result, i, 3)};
        pay_store_read_chars(row->name, sizeof row->name, result, i, 1);
        memcpy(row->checksum, checksum.ptr, PAY_STORE_CHECKSUM_BYTES); /* sha256_t: 32 bytes */
    }
    *ret_count = count;
    return PAY_OK;
}

enum pay_status pay_store_migration_applied(struct pay_store *store,
                                            struct pay_store_migration ret_rows[],
                                            size_t *ret_count, struct pay_err *err)
{
    (void)pay_store_params(store); /* no parameters */
    enum pay_status status = pay_store_exec(store, &has_table, err);
    if (status != PAY_OK) {
        return status;
    }
    const bool has = pay_pg_bool(pay_store_result(store, 0), 0, 0);
    pay_store_results_free(store);
    if (!has) {
        *ret_count = 0;
        return PAY_OK;
    }
    (void)pay_store_params(store); /* no parameters */
    status = pay_store_exec(store, &applied, err);
    if (status == PAY_OK) {
        status = read_applied(pay_store_result(store, 0), ret_rows, ret_count, err);
        pay_store_results_free(store);
    }
    return status;
}

static enum pay_status run_script(struct pay_store *store,
                                  const struct pay_store_migration *migration, const char *sql,
                                  struct pay_err *err)
{
    struct pay_pg *pg = pay_store_pg(store);
    enum pay_status status = pay_pg_begin(pg, err);
    if (status == PAY_OK) {
        status = pay_pg_script(pg, patience, err);
    }
    if (status == PAY_OK) {
        status = pay_pg_script(pg, sql, err);
    }
    if (status == PAY_OK && !pay_pg_in_transaction(pg)) {
        return pay_err_set(err, PAY_FATAL, 0, op, "\"%s\" ends its own transaction",
                           migration->name);
    }
    return status;
}

static enum pay_status add_record(struct pay_store *store,
                                  const struct pay_store_migration *migration, struct pay_err *err)
{
    struct pay_pg_params *params = pay_store_params(store);
    pay_pg_add_int4(params, migration->version);
    pay_pg_add_text_c(params, migration->name);
    pay_pg_add_bytea(params, (struct pay_bytes){migration->checksum, PAY_STORE_CHECKSUM_BYTES});
    const enum pay_status status = pay_store_exec(store, &record, err);
    pay_store_results_free(store);
    return status;
}

enum pay_status pay_store_migration_apply(struct pay_store *store,
                                          const struct pay_store_migration *migration,
                                          const char *sql, struct pay_buf *server_text,
                                          struct pay_err *err)
{
    struct pay_pg *pg = pay_store_pg(store);
    enum pay_status status = run_script(store, migration, sql, err);
    if (status == PAY_OK) {
        status = add_record(store, migration, err);
    }
    if (status == PAY_OK) {
        return pay_pg_commit(pg, err);
    }
    const struct pay_pg_failure *failure = pay_pg_failure(pg);
    if (failure != NULL && failure->message != NULL) {
        pay_buf_add_c(server_text, failure->message);
    }
    pay_store_rollback(store);
    return status;
}

enum pay_status pay_store_outbox_hold(struct pay_store *store, bool *ret_empty, struct pay_err *err)
{
    static const char hold[] = "LOCK TABLE payfact.payment_outbox IN SHARE ROW EXCLUSIVE MODE";
    struct pay_pg *pg = pay_store_pg(store);
    enum pay_status status = pay_pg_begin(pg, err);
    if (status == PAY_OK) {
        status = pay_pg_script(pg, patience, err);
    }
    if (status == PAY_OK) {
        status = pay_pg_script(pg, hold, err);
    }
    (void)pay_store_params(store); /* no parameters */
    if (status == PAY_OK) {
        status = pay_store_exec(store, &outbox_empty, err);
    }
    if (status == PAY_OK) {
        *ret_empty = pay_pg_bool(pay_store_result(store, 0), 0, 0);
        pay_store_results_free(store);
    } else {
        pay_store_rollback(store);
    }
    return status;
}
