/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/schema.h"

#include "common/base/banned.h"

/* A statement that names a missing table would fail with a text that tells nobody what to do. */
static const struct pay_pg_stmt find_table = {
    .name = "schema_find",
    .sql = "SELECT to_regclass('payfact.schema_migration') IS NOT NULL",
    .read_only = true,
};

static const struct pay_pg_stmt read_version = {
    .name = "schema_version",
    .sql = "SELECT coalesce((SELECT max(version) FROM payfact.schema_migration), 0)::int8,"
           " to_regclass('payfact.channel_event_' || next.name) IS NOT NULL"
           " AND to_regclass('payfact.payment_state_history_' || next.name) IS NOT NULL"
           " FROM (SELECT to_char(date_trunc('month', now() AT TIME ZONE 'UTC')"
           " + interval '1 month', 'YYYYMM') AS name) AS next",
    .read_only = true,
};

static enum pay_status not_ready(struct pay_err *err, const char *why)
{
    return pay_err_set(err, PAY_RETRY, PAY_STORE_SCHEMA, "schema", "%s", why);
}

enum pay_status pay_store_schema_check(struct pay_pg *pg, enum pay_store_schema_part wanted,
                                       struct pay_err *err)
{
    struct pay_pg_result *row = NULL;
    enum pay_status status = pay_pg_exec(pg, &find_table, NULL, &row, err);
    if (status != PAY_OK) {
        return status;
    }
    const bool is_there = pay_pg_bool(row, 0, 0);
    pay_pg_result_free(row);
    row = NULL;
    if (!is_there) {
        return not_ready(err, "there is no payfact schema: run payfactctl migrate");
    }
    status = pay_pg_exec(pg, &read_version, NULL, &row, err);
    if (status != PAY_OK) {
        return status;
    }
    if (pay_pg_int(row, 0, 0) < PAY_STORE_SCHEMA_VERSION) {
        status = not_ready(err, "the schema is older than this binary: run payfactctl migrate");
    } else if (wanted == PAY_STORE_SCHEMA_PARTITIONS && !pay_pg_bool(row, 0, 1)) {
        status = not_ready(err, "next month's partitions are missing: does payfact-recovery run?");
    }
    pay_pg_result_free(row);
    return status;
}
