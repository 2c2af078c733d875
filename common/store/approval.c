/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/approval.h"

#include <stddef.h>

#include "common/store/statement.h"

#include "common/base/banned.h"

#define REQ(member_) offsetof(struct pay_store_request_row, request.member_)
#define REQ_ROW(member_) offsetof(struct pay_store_request_row, member_)
#define APP(member_) offsetof(struct pay_store_approval_row, approval.member_)
#define APP_ROW(member_) offsetof(struct pay_store_approval_row, member_)

static const struct pay_pg_stmt insert_request = {
    .name = "request_insert",
    .sql = "INSERT INTO payfact.approval_request (request_id, payment_id, command_type, command,"
           " writer_fingerprint, sha256, aggregate_id, expected_version, reason_code, attachments,"
           " requested_by, status, expires_at, decided_at, created_at)"
           " SELECT u.id, u.payment, u.type, u.command, u.fingerprint, u.sha256, u.aggregate,"
           " CASE WHEN u.has_version THEN u.version END, u.reason, (SELECT"
           " coalesce(jsonb_agg(jsonb_build_object('reference', t.reference, 'sha256',"
           " encode(t.sha256, 'hex')) ORDER BY t.n), '[]') FROM unnest($15::text[], $16::text[],"
           " $17::bytea[]) WITH ORDINALITY AS t(id, reference, sha256, n) WHERE t.id = u.id),"
           " u.by, u.status, u.expires_at, u.decided_at, now()"
           " FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::bytea[],"
           " $6::bytea[], $7::text[], $8::int8[], $9::bool[], $10::text[], $11::text[],"
           " $12::text[], $13::timestamptz[], $14::timestamptz[])"
           " AS u(id, payment, type, command, fingerprint, sha256, aggregate, version,"
           " has_version, reason, by, status, expires_at, decided_at)",
};

static const struct pay_column request_columns[] = {
    {PAY_COLUMN_CHARS, REQ(request_id), NULL},
    {PAY_COLUMN_CSTR, REQ_ROW(payment_id), NULL},
    {PAY_COLUMN_NAME, REQ(type), pay_column_command_type},
    {PAY_COLUMN_BYTES, REQ_ROW(command), NULL},
    {PAY_COLUMN_BYTES, REQ_ROW(writer_fingerprint), NULL},
    {PAY_COLUMN_BYTES, REQ_ROW(sha256), NULL},
    {PAY_COLUMN_CHARS, REQ(aggregate_id), NULL},
    {PAY_COLUMN_INT8, REQ_ROW(expected_version), NULL},
    {PAY_COLUMN_BOOL, REQ_ROW(has_version), NULL},
    {PAY_COLUMN_CHARS, REQ(reason_code), NULL},
    {PAY_COLUMN_CHARS, REQ(requested_by), NULL},
    {PAY_COLUMN_NAME, REQ(status), pay_column_request_status},
    {PAY_COLUMN_TIME, REQ(expires_at_us), NULL},
    {PAY_COLUMN_TIME, REQ(decided_at_us), NULL},
};

static const struct pay_pg_stmt update_request = {
    .name = "request_update",
    .sql = "UPDATE payfact.approval_request AS r SET status = u.status, decided_at = now()"
           " FROM unnest($1::text[], $2::text[]) AS u(id, status)"
           " WHERE r.request_id = u.id AND r.status = 'PENDING'",
};

static const struct pay_column request_update_columns[] = {
    {PAY_COLUMN_CHARS, REQ(request_id), NULL},
    {PAY_COLUMN_NAME, REQ(status), pay_column_request_status},
};

static const struct pay_pg_stmt insert_approval = {
    .name = "approval_insert",
    .sql = "INSERT INTO payfact.approval (request_id, principal, approves, requested_by, sha256,"
           " command_id, key_id, decided_at)"
           " SELECT u.*, now() FROM unnest($1::text[], $2::text[], $3::bool[], $4::text[],"
           " $5::bytea[], $6::text[], $7::text[]) AS u",
};

static const struct pay_column approval_columns[] = {
    {PAY_COLUMN_CSTR, APP_ROW(request_id), NULL}, {PAY_COLUMN_CHARS, APP(principal), NULL},
    {PAY_COLUMN_BOOL, APP(approves), NULL},       {PAY_COLUMN_CSTR, APP_ROW(requested_by), NULL},
    {PAY_COLUMN_BYTES, APP_ROW(sha256), NULL},    {PAY_COLUMN_CHARS, APP(command_id), NULL},
    {PAY_COLUMN_STR, APP_ROW(key_id), NULL},
};

enum { WHICH_REQUEST, WHAT, DIGEST, PART_COUNT };

static void add_part(struct pay_pg_params *params, const struct pay_store_request_row *row,
                     int part)
{
    for (size_t i = 0; i < row->attachment_count; i++) {
        if (part == WHICH_REQUEST) {
            pay_pg_add_text_c(params, row->request.request_id);
        } else if (part == WHAT) {
            pay_pg_add_text(params, row->attachments[i].reference);
        } else {
            pay_pg_add_bytea(params, row->attachments[i].sha256);
        }
    }
}

/* One array each over all requests: which request, what, and its digest. */
static void add_attachments(struct pay_pg_params *params,
                            const struct pay_store_request_row *const *rows, size_t count)
{
    for (int part = 0; part < PART_COUNT; part++) {
        pay_pg_array_begin(params, part == DIGEST ? PAY_PG_BYTEA : PAY_PG_TEXT);
        for (size_t r = 0; r < count; r++) {
            add_part(params, rows[r], part);
        }
        pay_pg_array_end(params);
    }
}

enum pay_status pay_store_request_add(struct pay_store *store,
                                      const struct pay_store_request_row *const *rows, size_t count,
                                      struct pay_err *err)
{
    if (count == 0) {
        return PAY_OK;
    }
    pay_store_add_columns(store, COLUMNS(request_columns), (const void *const *)rows, count);
    add_attachments(pay_store_more_params(store), rows, count);
    return pay_store_queue(store, &insert_request, (int64_t)count, err);
}

enum pay_status pay_store_request_update(struct pay_store *store,
                                         const struct pay_store_request_row *const *rows,
                                         size_t count, struct pay_err *err)
{
    return pay_store_queue_rows(store, &update_request, COLUMNS(request_update_columns),
                                (const void *const *)rows, count, err);
}

enum pay_status pay_store_approval_add(struct pay_store *store,
                                       const struct pay_store_approval_row *const *rows,
                                       size_t count, struct pay_err *err)
{
    return pay_store_queue_rows(store, &insert_approval, COLUMNS(approval_columns),
                                (const void *const *)rows, count, err);
}
