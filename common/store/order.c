/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/order.h"

#include <stddef.h>
#include <string.h>

#include "common/store/statement.h"

#include "common/base/banned.h"

#define NEW(member_) offsetof(struct pay_store_new_order, order.member_)
#define OLD(member_) offsetof(struct pay_order, member_)

static const struct pay_pg_stmt insert_order = {
    .name = "order_insert",
    .sql = "INSERT INTO payfact.payment_order (payment_id, merchant_id, merchant_order_no,"
           " amount_minor, currency, capture_mode, status, reason_code, intent, intent_command_id,"
           " intent_route_no, failover_until, expires_at, retry_until_expiry, expiry_asked,"
           " event_sequence, attempt_count, created_by, traceparent, description, paid_attempt_no,"
           " capture_count, refund_count, dispute_count, created_at, updated_at)"
           " SELECT u.*, now(), now() FROM unnest($1::text[], $2::text[], $3::text[], $4::int8[],"
           " $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::int2[],"
           " $12::timestamptz[], $13::timestamptz[], $14::bool[], $15::bool[], $16::int8[],"
           " $17::int2[], $18::text[], $19::text[], $20::text[], $21::int2[],"
           " $22::int2[], $23::int2[], $24::int2[]) AS u"
           " ON CONFLICT DO NOTHING RETURNING payment_id::text",
};

static const struct pay_column insert_columns[] = {
    {PAY_COLUMN_CHARS, NEW(payment_id), NULL},
    {PAY_COLUMN_CHARS, NEW(merchant_id), NULL},
    {PAY_COLUMN_CHARS, NEW(merchant_order_no), NULL},
    {PAY_COLUMN_INT8, NEW(amount.amount_minor), NULL},
    {PAY_COLUMN_CHARS, NEW(amount.currency), NULL},
    {PAY_COLUMN_NAME, NEW(capture_mode), pay_column_capture_mode},
    {PAY_COLUMN_NAME, NEW(status), pay_column_order_status},
    {PAY_COLUMN_CHARS_NULL, NEW(reason_code), NULL},
    {PAY_COLUMN_NAME, NEW(intent), pay_column_intent},
    {PAY_COLUMN_CHARS_NULL, NEW(intent_command_id), NULL},
    {PAY_COLUMN_INT2, NEW(intent_route_no), NULL},
    {PAY_COLUMN_TIME, NEW(failover_until_us), NULL},
    {PAY_COLUMN_TIME, NEW(expires_at_us), NULL},
    {PAY_COLUMN_BOOL, NEW(retry_until_expiry), NULL},
    {PAY_COLUMN_BOOL, NEW(expiry_asked), NULL},
    {PAY_COLUMN_INT8, NEW(event_sequence), NULL},
    {PAY_COLUMN_INT2, NEW(attempt_count), NULL},
    {PAY_COLUMN_CHARS, NEW(created_by), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_new_order, traceparent), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_new_order, description), NULL},
    {PAY_COLUMN_INT2, NEW(paid_attempt_no), NULL},
    {PAY_COLUMN_INT2, NEW(capture_count), NULL},
    {PAY_COLUMN_INT2, NEW(refund_count), NULL},
    {PAY_COLUMN_INT2, NEW(dispute_count), NULL},
};

/* The only statement that changes a payment's row. */
static const struct pay_pg_stmt cas_order = {
    .name = "order_cas",
    .sql =
        "UPDATE payfact.payment_order AS o SET version = o.version + 1, status = u.status,"
        " reason_code = u.reason_code, intent = u.intent,"
        " intent_command_id = u.intent_command_id, intent_route_no = u.intent_route_no,"
        " failover_until = u.failover_until, expires_at = u.expires_at,"
        " retry_until_expiry = u.retry_until_expiry, expiry_asked = u.expiry_asked,"
        " event_sequence = u.event_sequence, attempt_count = u.attempt_count,"
        " capture_count = u.capture_count, refund_count = u.refund_count,"
        " dispute_count = u.dispute_count, paid_attempt_no = u.paid_attempt_no, updated_at = now()"
        " FROM unnest($1::text[], $2::int8[], $3::text[], $4::text[], $5::text[], $6::text[],"
        " $7::int2[], $8::timestamptz[], $9::timestamptz[], $10::bool[], $11::bool[],"
        " $12::int8[], $13::int2[], $14::int2[], $15::int2[], $16::int2[], $17::int2[])"
        " AS u(payment_id, version, status, reason_code, intent,"
        " intent_command_id, intent_route_no, failover_until, expires_at, retry_until_expiry,"
        " expiry_asked, event_sequence, attempt_count, capture_count, refund_count, dispute_count,"
        " paid_attempt_no)"
        " WHERE o.payment_id = u.payment_id AND o.version = u.version"
        " RETURNING o.payment_id::text",
};

static const struct pay_column cas_columns[] = {
    {PAY_COLUMN_CHARS, OLD(payment_id), NULL},
    {PAY_COLUMN_INT8, OLD(version), NULL},
    {PAY_COLUMN_NAME, OLD(status), pay_column_order_status},
    {PAY_COLUMN_CHARS_NULL, OLD(reason_code), NULL},
    {PAY_COLUMN_NAME, OLD(intent), pay_column_intent},
    {PAY_COLUMN_CHARS_NULL, OLD(intent_command_id), NULL},
    {PAY_COLUMN_INT2, OLD(intent_route_no), NULL},
    {PAY_COLUMN_TIME, OLD(failover_until_us), NULL},
    {PAY_COLUMN_TIME, OLD(expires_at_us), NULL},
    {PAY_COLUMN_BOOL, OLD(retry_until_expiry), NULL},
    {PAY_COLUMN_BOOL, OLD(expiry_asked), NULL},
    {PAY_COLUMN_INT8, OLD(event_sequence), NULL},
    {PAY_COLUMN_INT2, OLD(attempt_count), NULL},
    {PAY_COLUMN_INT2, OLD(capture_count), NULL},
    {PAY_COLUMN_INT2, OLD(refund_count), NULL},
    {PAY_COLUMN_INT2, OLD(dispute_count), NULL},
    {PAY_COLUMN_INT2, OLD(paid_attempt_no), NULL},
};

static const struct pay_pg_stmt insert_route = {
    .name = "route_insert",
    .sql = "INSERT INTO payfact.payment_route (payment_id, route_no, psp, psp_account, method,"
           " failover_on_not_found, params, params_key_id, params_bound_to)"
           " SELECT * FROM unnest($1::text[], $2::int2[], $3::text[], $4::text[], $5::text[],"
           " $6::bool[], $7::bytea[], $8::text[], $9::text[])",
};

static const struct pay_column route_columns[] = {
    {PAY_COLUMN_CHARS, offsetof(struct pay_store_route_row, payment_id), NULL},
    {PAY_COLUMN_INT2, offsetof(struct pay_store_route_row, route_no), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_route_row, psp), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_route_row, psp_account), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_route_row, method), NULL},
    {PAY_COLUMN_BOOL, offsetof(struct pay_store_route_row, failover_on_not_found), NULL},
    {PAY_COLUMN_BYTES, offsetof(struct pay_store_route_row, params), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_route_row, params_key_id), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_route_row, params_bound_to), NULL},
};

static const struct pay_pg_stmt insert_params = {
    .name = "params_insert",
    .sql = "INSERT INTO payfact.payment_route_params (payment_id, route_no, params, params_key_id,"
           " params_bound_to, created_at) SELECT u.*, now() FROM unnest($1::text[], $2::int2[],"
           " $3::bytea[], $4::text[], $5::text[]) AS u",
};

static const struct pay_column params_columns[] = {
    {PAY_COLUMN_CHARS, offsetof(struct pay_store_route_row, payment_id), NULL},
    {PAY_COLUMN_INT2, offsetof(struct pay_store_route_row, route_no), NULL},
    {PAY_COLUMN_BYTES, offsetof(struct pay_store_route_row, params), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_route_row, params_key_id), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_route_row, params_bound_to), NULL},
};

/* Both lists are short; a batch that lost nothing finds each at once. */
static bool is_returned(const struct pay_pg_result *result, size_t hint, const char *payment_id)
{
    size_t rows = pay_pg_rows(result);
    for (size_t i = 0; i < rows; i++) {
        size_t row = (hint + i) % rows;
        if (pay_str_eq_c(pay_pg_text(result, row, 0), payment_id)) {
            return true;
        }
    }
    return false;
}

static enum pay_status queue_cas(struct pay_store *store, const struct pay_store_cas *cas,
                                 struct pay_err *err)
{
    enum pay_status status = PAY_OK;
    if (cas->created_count > 0) {
        pay_store_add_columns(store, COLUMNS(insert_columns), (const void *const *)cas->created,
                              cas->created_count);
        status = pay_store_queue(store, &insert_order, PAY_STORE_ANY_COUNT, err);
    }
    if (status == PAY_OK && cas->updated_count > 0) {
        pay_store_add_columns(store, COLUMNS(cas_columns), (const void *const *)cas->updated,
                              cas->updated_count);
        status = pay_store_queue(store, &cas_order, PAY_STORE_ANY_COUNT, err);
    }
    return status;
}

enum pay_status pay_store_order_cas(struct pay_store *store, const struct pay_store_cas *cas,
                                    bool ret_created[], bool ret_updated[], struct pay_err *err)
{
    size_t at = pay_store_queued(store);
    enum pay_status status = queue_cas(store, cas, err);
    if (status == PAY_OK) {
        status = pay_store_run(store, err);
    }
    if (status != PAY_OK) {
        return status;
    }
    if (cas->created_count > 0) {
        const struct pay_pg_result *result = pay_store_result(store, at++);
        for (size_t i = 0; i < cas->created_count; i++) {
            ret_created[i] = is_returned(result, i, cas->created[i]->order.payment_id);
        }
    }
    if (cas->updated_count > 0) {
        const struct pay_pg_result *result = pay_store_result(store, at++);
        for (size_t i = 0; i < cas->updated_count; i++) {
            ret_updated[i] = is_returned(result, i, cas->updated[i]->payment_id);
        }
    }
    pay_store_results_free(store);
    return PAY_OK;
}

enum pay_status pay_store_route_add(struct pay_store *store,
                                    struct pay_store_route_row *const *rows, size_t count,
                                    struct pay_err *err)
{
    for (size_t i = 0; i < count; i++) {
        rows[i]->psp = pay_str_of(rows[i]->route->psp);
        rows[i]->psp_account = pay_str_of(rows[i]->route->psp_account);
        rows[i]->method = pay_str_of(rows[i]->route->method);
        rows[i]->failover_on_not_found = rows[i]->route->failover_on_not_found;
    }
    return pay_store_queue_rows(store, &insert_route, COLUMNS(route_columns),
                                (const void *const *)rows, count, err);
}

enum pay_status pay_store_params_add(struct pay_store *store,
                                     const struct pay_store_route_row *const *rows, size_t count,
                                     struct pay_err *err)
{
    return pay_store_queue_rows(store, &insert_params, COLUMNS(params_columns),
                                (const void *const *)rows, count, err);
}
