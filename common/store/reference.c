/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/reference.h"

#include <stddef.h>

#include "common/store/statement.h"

#include "common/base/banned.h"

#define ROW(member_) offsetof(struct pay_store_reference_row, member_)
#define ASK(member_) offsetof(struct pay_store_reference_ask, member_)

static const struct pay_pg_stmt insert_reference = {
    .name = "reference_insert",
    .sql = "INSERT INTO payfact.attempt_reference (psp, psp_account, kind, reference, attempt_id,"
           " created_at) SELECT u.*, now() FROM unnest($1::text[], $2::text[], $3::text[],"
           " $4::text[], $5::text[]) AS u ON CONFLICT DO NOTHING",
};

static const struct pay_column insert_columns[] = {
    {PAY_COLUMN_STR, ROW(psp), NULL},
    {PAY_COLUMN_STR, ROW(psp_account), NULL},
    {PAY_COLUMN_NAME, ROW(kind), pay_column_reference_kind},
    {PAY_COLUMN_STR, ROW(reference), NULL},
    {PAY_COLUMN_STR, ROW(attempt_id), NULL},
};

static const struct pay_pg_stmt find_reference = {
    .name = "reference_find",
    .sql = "SELECT u.n - 1, r.attempt_id::text FROM unnest($1::text[], $2::text[], $3::text[])"
           " WITH ORDINALITY AS u(psp, psp_account, reference, n)"
           " JOIN payfact.attempt_reference AS r ON r.reference = u.reference"
           " AND r.psp_account = u.psp_account AND r.psp = u.psp",
    .read_only = true,
};

static const struct pay_column find_columns[] = {
    {PAY_COLUMN_STR, ASK(psp), NULL},
    {PAY_COLUMN_STR, ASK(psp_account), NULL},
    {PAY_COLUMN_STR, ASK(reference), NULL},
};

enum pay_status pay_store_reference_add(struct pay_store *store,
                                        const struct pay_store_reference_row *const *rows,
                                        size_t count, struct pay_err *err)
{
    return pay_store_queue_rows(store, &insert_reference, COLUMNS(insert_columns),
                                (const void *const *)rows, count, err);
}

enum pay_status pay_store_reference_find(struct pay_store *store,
                                         struct pay_store_reference_ask *const *asks, size_t count,
                                         size_t *ret_index, struct pay_err *err)
{
    *ret_index = pay_store_queued(store);
    if (count == 0) {
        return PAY_OK;
    }
    pay_store_add_columns(store, COLUMNS(find_columns), (const void *const *)asks, count);
    return pay_store_queue(store, &find_reference, PAY_STORE_ANY_COUNT, err);
}

void pay_store_reference_found(struct pay_store *store, size_t index,
                               struct pay_store_reference_ask *const *asks, size_t count)
{
    if (count == 0) {
        return;
    }
    const struct pay_pg_result *result = pay_store_result(store, index);
    for (size_t row = 0; row < pay_pg_rows(result); row++) {
        struct pay_store_reference_ask *ask = asks[pay_pg_int(result, row, 0)];
        if (ask->attempt_id[0] != '\0' &&
            !pay_str_eq_c(pay_pg_text(result, row, 1), ask->attempt_id)) {
            ask->ambiguous = true;
        }
        pay_store_read_chars(ask->attempt_id, sizeof(ask->attempt_id), result, row, 1);
    }
}
