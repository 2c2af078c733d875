/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/attempt.h"

#include <stddef.h>

#include "common/store/statement.h"

#include "common/base/banned.h"

#define AT(member_) offsetof(struct pay_attempt, member_)

static const struct pay_pg_stmt insert_attempt = {
    .name = "attempt_insert",
    .sql = "INSERT INTO payfact.payment_attempt (attempt_id, payment_id, attempt_no, route_no, psp,"
           " psp_account, method, merchant_request_no, amount_minor, currency, status, live,"
           " result_certainty, last_accepted_event_id, query_count, not_found_count, unknown_since,"
           " submitted_at, action_no, confirm_no, cancel_no, action_expires_at, psp_expires_at,"
           " authorization_expires_at, cancel_cause, failure_class, failure_code, not_found_from,"
           " known_at, created_at, updated_at)"
           " SELECT u.id, left(u.id, 26), u.no, u.route, u.psp, u.acc, u.method, u.id, u.amount,"
           " u.currency, u.status, u.live, u.certainty, u.last_event, u.queries, u.not_founds,"
           " u.unknown_since, u.submitted_at, u.action_no, u.confirm_no, u.cancel_no,"
           " u.action_expires_at, u.psp_expires_at, u.auth_expires_at, u.cancel_cause, u.fclass,"
           " u.fcode, u.not_found_from, u.known_at, now(), now()"
           " FROM unnest($1::text[], $2::int2[], $3::int2[], $4::text[], $5::text[], $6::text[],"
           " $7::int8[], $8::text[], $9::text[], $10::bool[], $11::int2[], $12::text[],"
           " $13::int4[], $14::int4[], $15::timestamptz[], $16::timestamptz[], $17::int2[],"
           " $18::int2[], $19::int2[], $20::timestamptz[], $21::timestamptz[], $22::timestamptz[],"
           " $23::text[], $24::text[], $25::text[], $26::timestamptz[], $27::timestamptz[])"
           " AS u(id, no, route, psp, acc, method, amount,"
           " currency, status, live, certainty, last_event, queries, not_founds, unknown_since,"
           " submitted_at, action_no, confirm_no, cancel_no, action_expires_at, psp_expires_at,"
           " auth_expires_at, cancel_cause, fclass, fcode, not_found_from, known_at)",
};

static const struct pay_column insert_columns[] = {
    {PAY_COLUMN_CHARS, AT(attempt_id), NULL},
    {PAY_COLUMN_INT2, AT(attempt_no), NULL},
    {PAY_COLUMN_INT2, AT(route_no), NULL},
    {PAY_COLUMN_CHARS, AT(psp), NULL},
    {PAY_COLUMN_CHARS, AT(psp_account), NULL},
    {PAY_COLUMN_CHARS, AT(method), NULL},
    {PAY_COLUMN_INT8, AT(amount.amount_minor), NULL},
    {PAY_COLUMN_CHARS, AT(amount.currency), NULL},
    {PAY_COLUMN_NAME, AT(status), pay_column_attempt_status},
    {PAY_COLUMN_BOOL, AT(live), NULL},
    {PAY_COLUMN_LEVEL, AT(result_certainty), NULL},
    {PAY_COLUMN_CHARS_NULL, AT(last_accepted_event_id), NULL},
    {PAY_COLUMN_INT4, AT(query_count), NULL},
    {PAY_COLUMN_INT4, AT(not_found_count), NULL},
    {PAY_COLUMN_TIME, AT(unknown_since_us), NULL},
    {PAY_COLUMN_TIME, AT(submitted_at_us), NULL},
    {PAY_COLUMN_INT2, AT(action_no), NULL},
    {PAY_COLUMN_INT2, AT(confirm_no), NULL},
    {PAY_COLUMN_INT2, AT(cancel_no), NULL},
    {PAY_COLUMN_TIME, AT(action_expires_at_us), NULL},
    {PAY_COLUMN_TIME, AT(psp_expires_at_us), NULL},
    {PAY_COLUMN_TIME, AT(authorization_expires_at_us), NULL},
    {PAY_COLUMN_NAME, AT(cancel_cause), pay_column_cancel_cause},
    {PAY_COLUMN_NAME, AT(failure_class), pay_column_failure_class},
    {PAY_COLUMN_CHARS_NULL, AT(failure_code), NULL},
    {PAY_COLUMN_TIME, AT(not_found_from_us), NULL},
    {PAY_COLUMN_TIME, AT(known_at_us), NULL},
};

static const struct pay_pg_stmt insert_amounts = {
    .name = "amounts_insert",
    .sql = "INSERT INTO payfact.payment_amount (attempt_id, payment_id, currency,"
           " authorized_minor, capture_reserved_minor, captured_minor, refund_reserved_minor,"
           " refunded_minor, withdrawn_minor, refund_sum_minor, updated_at)"
           " SELECT u.id, left(u.id, 26), u.currency, u.a, u.cr, u.c, u.rr, u.r, u.w, u.sum, now()"
           " FROM unnest($1::text[], $2::text[], $3::int8[], $4::int8[], $5::int8[], $6::int8[],"
           " $7::int8[], $8::int8[], $9::int8[]) AS u(id, currency, a, cr, c, rr, r, w, sum)",
};

static const struct pay_pg_stmt update_amounts = {
    .name = "amounts_update",
    .sql = "UPDATE payfact.payment_amount AS p SET authorized_minor = u.a,"
           " capture_reserved_minor = u.cr, captured_minor = u.c, refund_reserved_minor = u.rr,"
           " refunded_minor = u.r, withdrawn_minor = u.w, refund_sum_minor = u.sum,"
           " updated_at = now()"
           " FROM unnest($1::text[], $2::text[], $3::int8[], $4::int8[], $5::int8[], $6::int8[],"
           " $7::int8[], $8::int8[], $9::int8[]) AS u(id, currency, a, cr, c, rr, r, w, sum)"
           " WHERE p.attempt_id = u.id AND p.currency = u.currency",
};

static const struct pay_column amounts_columns[] = {
    {PAY_COLUMN_CHARS, AT(attempt_id), NULL},
    {PAY_COLUMN_CHARS, AT(amount.currency), NULL},
    {PAY_COLUMN_INT8, AT(amounts.authorized), NULL},
    {PAY_COLUMN_INT8, AT(amounts.capture_reserved), NULL},
    {PAY_COLUMN_INT8, AT(amounts.captured), NULL},
    {PAY_COLUMN_INT8, AT(amounts.refund_reserved), NULL},
    {PAY_COLUMN_INT8, AT(amounts.refunded), NULL},
    {PAY_COLUMN_INT8, AT(amounts.withdrawn), NULL},
    {PAY_COLUMN_INT8, AT(refund_sum_minor), NULL},
};

static const struct pay_pg_stmt update_attempt = {
    .name = "attempt_update",
    .sql = "UPDATE payfact.payment_attempt AS a SET version = a.version +"
           " CASE u.change WHEN 'COUNTED' THEN 0 ELSE 1 END, status = u.status,"
           " live = u.live, result_certainty = u.certainty, last_accepted_event_id = u.last_event,"
           " query_count = u.queries, not_found_count = u.not_founds,"
           " unknown_since = u.unknown_since, submitted_at = u.submitted_at,"
           " action_no = u.action_no, confirm_no = u.confirm_no, cancel_no = u.cancel_no,"
           " action_expires_at = u.action_expires_at, psp_expires_at = u.psp_expires_at,"
           " authorization_expires_at = u.auth_expires_at, cancel_cause = u.cancel_cause,"
           " failure_class = u.fclass, failure_code = u.fcode, not_found_from = u.not_found_from,"
           " known_at = u.known_at, updated_at = now()"
           " FROM unnest($1::text[], $2::int8[], $3::text[], $4::bool[], $5::int2[], $6::text[],"
           " $7::int4[], $8::int4[], $9::timestamptz[], $10::timestamptz[], $11::int2[],"
           " $12::int2[], $13::int2[], $14::timestamptz[], $15::timestamptz[], $16::timestamptz[],"
           " $17::text[], $18::text[], $19::text[], $20::timestamptz[], $21::timestamptz[],"
           " $22::text[])"
           " AS u(id, version, status, live, certainty,"
           " last_event, queries, not_founds, unknown_since, submitted_at, action_no, confirm_no,"
           " cancel_no, action_expires_at, psp_expires_at, auth_expires_at, cancel_cause, fclass,"
           " fcode, not_found_from, known_at, change) WHERE a.attempt_id = u.id AND a.version = "
           "u.version",
};

static const struct pay_column update_columns[] = {
    {PAY_COLUMN_CHARS, AT(attempt_id), NULL},
    {PAY_COLUMN_INT8, AT(version), NULL},
    {PAY_COLUMN_NAME, AT(status), pay_column_attempt_status},
    {PAY_COLUMN_BOOL, AT(live), NULL},
    {PAY_COLUMN_LEVEL, AT(result_certainty), NULL},
    {PAY_COLUMN_CHARS_NULL, AT(last_accepted_event_id), NULL},
    {PAY_COLUMN_INT4, AT(query_count), NULL},
    {PAY_COLUMN_INT4, AT(not_found_count), NULL},
    {PAY_COLUMN_TIME, AT(unknown_since_us), NULL},
    {PAY_COLUMN_TIME, AT(submitted_at_us), NULL},
    {PAY_COLUMN_INT2, AT(action_no), NULL},
    {PAY_COLUMN_INT2, AT(confirm_no), NULL},
    {PAY_COLUMN_INT2, AT(cancel_no), NULL},
    {PAY_COLUMN_TIME, AT(action_expires_at_us), NULL},
    {PAY_COLUMN_TIME, AT(psp_expires_at_us), NULL},
    {PAY_COLUMN_TIME, AT(authorization_expires_at_us), NULL},
    {PAY_COLUMN_NAME, AT(cancel_cause), pay_column_cancel_cause},
    {PAY_COLUMN_NAME, AT(failure_class), pay_column_failure_class},
    {PAY_COLUMN_CHARS_NULL, AT(failure_code), NULL},
    {PAY_COLUMN_TIME, AT(not_found_from_us), NULL},
    {PAY_COLUMN_TIME, AT(known_at_us), NULL},
    {PAY_COLUMN_NAME, AT(change), pay_column_row_change},
};

static const struct pay_pg_stmt insert_redirect = {
    .name = "redirect_insert",
    .sql = "INSERT INTO payfact.attempt_redirect (attempt_id, action_no, data, key_id, bound_to,"
           " created_at) SELECT u.*, now() FROM unnest($1::text[], $2::int2[], $3::bytea[],"
           " $4::text[], $5::text[]) AS u",
};

static const struct pay_column redirect_columns[] = {
    {PAY_COLUMN_STR, offsetof(struct pay_store_redirect_row, attempt_id), NULL},
    {PAY_COLUMN_INT2, offsetof(struct pay_store_redirect_row, action_no), NULL},
    {PAY_COLUMN_BYTES, offsetof(struct pay_store_redirect_row, data), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_redirect_row, key_id), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_redirect_row, bound_to), NULL},
};

enum pay_status pay_store_attempt_add(struct pay_store *store,
                                      const struct pay_attempt *const *rows, size_t count,
                                      struct pay_err *err)
{
    const void *const *items = (const void *const *)rows;
    enum pay_status status =
        pay_store_queue_rows(store, &insert_attempt, COLUMNS(insert_columns), items, count, err);
    return status != PAY_OK ? status
                            : pay_store_queue_rows(store, &insert_amounts, COLUMNS(amounts_columns),
                                                   items, count, err);
}

enum pay_status pay_store_attempt_update(struct pay_store *store,
                                         const struct pay_attempt *const *rows, size_t count,
                                         struct pay_err *err)
{
    return pay_store_queue_rows(store, &update_attempt, COLUMNS(update_columns),
                                (const void *const *)rows, count, err);
}

enum pay_status pay_store_amounts_update(struct pay_store *store,
                                         const struct pay_attempt *const *rows, size_t count,
                                         struct pay_err *err)
{
    return pay_store_queue_rows(store, &update_amounts, COLUMNS(amounts_columns),
                                (const void *const *)rows, count, err);
}

enum pay_status pay_store_redirect_add(struct pay_store *store,
                                       const struct pay_store_redirect_row *const *rows,
                                       size_t count, struct pay_err *err)
{
    return pay_store_queue_rows(store, &insert_redirect, COLUMNS(redirect_columns),
                                (const void *const *)rows, count, err);
}
