/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/cases.h"

#include <stddef.h>

#include "common/store/statement.h"

#include "common/base/banned.h"

#define ROW(member_) offsetof(struct pay_store_case_row, member_)

#define EVIDENCE                                                                            \
    "jsonb_build_array(jsonb_build_object('input_id', u.input, 'event', u.event, 'reason'," \
    " u.reason))"
#define INSERT_CASE                                                                                \
    "INSERT INTO payfact.manual_case (case_id, payment_id, kind, aggregate_id, case_no,"           \
    " proposed_refund_minor, status, evidence, opened_by, opened_at)"                              \
    " SELECT u.id, u.payment, u.kind, u.aggregate, u.no, u.refund, 'OPEN', " EVIDENCE ", u.input," \
    " now() FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::int4[], $6::int8[],"   \
    " $7::text[], $8::text[], $9::text[])"                                                         \
    " AS u(id, payment, kind, aggregate, no, refund, input, event, reason)"

static const struct pay_pg_stmt insert_case = {.name = "case_insert", .sql = INSERT_CASE};
static const struct pay_pg_stmt insert_loose = {
    .name = "case_insert_loose",
    .sql = INSERT_CASE " ON CONFLICT DO NOTHING",
};

static const struct pay_column insert_columns[] = {
    {PAY_COLUMN_STR, ROW(case_id), NULL},
    {PAY_COLUMN_STR, ROW(payment_id), NULL},
    {PAY_COLUMN_NAME, ROW(kind), pay_column_case_kind},
    {PAY_COLUMN_STR, ROW(aggregate_id), NULL},
    {PAY_COLUMN_INT4, ROW(number), NULL},
    {PAY_COLUMN_INT8_NULL, ROW(proposed_refund_minor), NULL},
    {PAY_COLUMN_STR, ROW(input_id), NULL},
    {PAY_COLUMN_CSTR, ROW(event_name), NULL},
    {PAY_COLUMN_CSTR, ROW(reason_code), NULL},
    {PAY_COLUMN_BOOL, ROW(open), NULL},
    {PAY_COLUMN_STR, ROW(resolved_by), NULL},
    {PAY_COLUMN_STR, ROW(resolution_code), NULL},
};

static const struct pay_pg_stmt update_case = {
    .name = "case_update",
    .sql = "UPDATE payfact.manual_case AS c SET version = c.version + 1,"
           " aggregate_id = u.aggregate, evidence = CASE WHEN jsonb_array_length(c.evidence) < 100 "
           "THEN c.evidence || " EVIDENCE " ELSE c.evidence END,"
           " proposed_refund_minor = coalesce(u.refund, c.proposed_refund_minor),"
           " status = CASE WHEN u.open THEN 'OPEN' ELSE 'RESOLVED' END,"
           " resolved_by = CASE WHEN u.open THEN NULL ELSE u.by END,"
           " resolved_at = CASE WHEN u.open THEN NULL ELSE now() END,"
           " resolution_code = CASE WHEN u.open THEN NULL ELSE u.code END"
           " FROM unnest($1::text[], $2::int8[], $3::text[], $4::text[], $5::text[], $6::bool[],"
           " $7::text[], $8::text[], $9::text[])"
           " AS u(id, refund, input, event, reason, open, by, code, aggregate)"
           " WHERE c.case_id = u.id AND c.status = 'OPEN'",
};

static const struct pay_column update_columns[] = {
    {PAY_COLUMN_STR, ROW(case_id), NULL},
    {PAY_COLUMN_INT8_NULL, ROW(proposed_refund_minor), NULL},
    {PAY_COLUMN_STR, ROW(input_id), NULL},
    {PAY_COLUMN_CSTR, ROW(event_name), NULL},
    {PAY_COLUMN_CSTR, ROW(reason_code), NULL},
    {PAY_COLUMN_BOOL, ROW(open), NULL},
    {PAY_COLUMN_STR, ROW(resolved_by), NULL},
    {PAY_COLUMN_STR, ROW(resolution_code), NULL},
    {PAY_COLUMN_STR, ROW(aggregate_id), NULL},
};

static const struct pay_pg_stmt find_loose = {
    .name = "case_find_loose",
    .sql = "SELECT u.n - 1, c.version, c.status = 'OPEN' FROM unnest($1::text[])"
           " WITH ORDINALITY AS u(id, n) JOIN payfact.manual_case AS c"
           " ON c.case_id = u.id AND c.payment_id IS NULL FOR UPDATE OF c",
};

static const struct pay_column find_columns[] = {
    {PAY_COLUMN_STR, offsetof(struct pay_store_case_ask, case_id), NULL},
};

static const struct pay_pg_stmt close_loose = {
    .name = "case_close_loose",
    .sql = "UPDATE payfact.manual_case AS c SET version = c.version + 1, status = 'RESOLVED',"
           " resolved_by = u.by, resolved_at = now(), resolution_code = u.code"
           " FROM unnest($1::text[], $2::text[], $3::text[]) AS u(id, by, code)"
           " WHERE c.case_id = u.id AND c.payment_id IS NULL AND c.status = 'OPEN'",
};

static const struct pay_column close_columns[] = {
    {PAY_COLUMN_STR, ROW(case_id), NULL},
    {PAY_COLUMN_STR, ROW(resolved_by), NULL},
    {PAY_COLUMN_STR, ROW(resolution_code), NULL},
};

enum pay_status pay_store_case_add(struct pay_store *store,
                                   const struct pay_store_case_row *const *rows, size_t count,
                                   struct pay_err *err)
{
    return pay_store_queue_rows(store, &insert_case, COLUMNS(insert_columns),
                                (const void *const *)rows, count, err);
}

enum pay_status pay_store_case_add_loose(struct pay_store *store,
                                         const struct pay_store_case_row *const *rows, size_t count,
                                         struct pay_err *err)
{
    if (count == 0) {
        return PAY_OK;
    }
    pay_store_add_columns(store, COLUMNS(insert_columns), (const void *const *)rows, count);
    return pay_store_queue(store, &insert_loose, PAY_STORE_ANY_COUNT, err);
}

enum pay_status pay_store_case_update(struct pay_store *store,
                                      const struct pay_store_case_row *const *rows, size_t count,
                                      struct pay_err *err)
{
    return pay_store_queue_rows(store, &update_case, COLUMNS(update_columns),
                                (const void *const *)rows, count, err);
}

enum pay_status pay_store_case_find_loose(struct pay_store *store,
                                          struct pay_store_case_ask *const *asks, size_t count,
                                          size_t *ret_index, struct pay_err *err)
{
    *ret_index = pay_store_queued(store);
    if (count == 0) {
        return PAY_OK;
    }
    pay_store_add_columns(store, COLUMNS(find_columns), (const void *const *)asks, count);
    return pay_store_queue(store, &find_loose, PAY_STORE_ANY_COUNT, err);
}

void pay_store_case_found_loose(struct pay_store *store, size_t index,
                                struct pay_store_case_ask *const *asks, size_t count)
{
    if (count == 0) {
        return;
    }
    const struct pay_pg_result *result = pay_store_result(store, index);
    for (size_t row = 0; row < pay_pg_rows(result); row++) {
        struct pay_store_case_ask *ask = asks[pay_pg_int(result, row, 0)];
        ask->found = true;
        ask->version = pay_pg_int(result, row, 1);
        ask->is_open = pay_pg_bool(result, row, 2);
    }
}

enum pay_status pay_store_case_close_loose(struct pay_store *store,
                                           const struct pay_store_case_row *const *rows,
                                           size_t count, struct pay_err *err)
{
    if (count == 0) {
        return PAY_OK;
    }
    pay_store_add_columns(store, COLUMNS(close_columns), (const void *const *)rows, count);
    return pay_store_queue(store, &close_loose, PAY_STORE_ANY_COUNT, err);
}
