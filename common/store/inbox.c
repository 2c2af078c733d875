/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/inbox.h"

#include <stddef.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/store/statement.h"

#include "common/base/banned.h"

#define ROW(member_) offsetof(struct pay_store_inbox_row, member_)
#define CHANGE(member_) offsetof(struct pay_store_event_change, member_)
#define COUNT(array_) (sizeof(array_) / sizeof((array_)[0]))

/* The month is the database's clock: no gateway's clock can name a month without partition. */
#define MONTH "date_trunc('month', now() AT TIME ZONE 'UTC')::date"

static const struct pay_pg_stmt insert_keys = {
    .name = "inbox_keys",
    .sql = "INSERT INTO payfact.inbox_key (key, received_month, channel_event_id)"
           " SELECT u.key, " MONTH ", nextval('payfact.channel_event_id_seq')"
           " FROM unnest($1::bytea[]) AS u(key) ORDER BY u.key ON CONFLICT DO NOTHING"
           " RETURNING key, channel_event_id, received_month, now()",
};

static const struct pay_column key_columns[] = {
    {PAY_COLUMN_BYTES, ROW(key), NULL},
};

/* Counts a repeat up and locks its row, so that two transactions never decide it at once. */
static const struct pay_pg_stmt count_seen = {
    .name = "inbox_seen",
    .sql = "UPDATE payfact.channel_event AS e SET delivery_count = e.delivery_count + k.copies,"
           " last_seen_at = now() FROM (SELECT u.n, u.copies, k.received_month, k.channel_event_id"
           " FROM unnest($1::bytea[], $2::int4[]) WITH ORDINALITY AS u(key, copies, n)"
           " CROSS JOIN LATERAL (SELECT * FROM payfact.inbox_key WHERE key = u.key LIMIT 1) AS k"
           ") AS k WHERE e.received_month = k.received_month AND e.id = k.channel_event_id"
           " RETURNING k.n - 1, e.id, e.received_month, e.status::text, e.first_seen_at,"
           " e.input_id",
};

static const struct pay_column seen_columns[] = {
    {PAY_COLUMN_BYTES, ROW(key), NULL},
    {PAY_COLUMN_INT4, ROW(copies), NULL},
};

static const struct pay_pg_stmt insert_events = {
    .name = "inbox_events",
    .sql = "INSERT INTO payfact.channel_event (id, received_month, psp, psp_account,"
           " transport_key, input_id, kind, source, payment_id, business_key, body, key_id, sha256,"
           " normalized, verification, status, delivery_count, occurred_at, received_at,"
           " first_seen_at, last_seen_at, trace_id)"
           " SELECT id, month, psp, psp_account, transport_key, input_id, kind, source, payment_id,"
           " business_key, body, key_id, sha256, normalized, verification, status, copies,"
           " occurred_at, received_at, now(), now(), trace_id"
           " FROM unnest($1::int8[], $2::date[], $3::text[], $4::text[], $5::text[], $6::text[],"
           " $7::text[], $8::text[], $9::text[], $10::text[], $11::bytea[], $12::text[],"
           " $13::bytea[], $14::bytea[], $15::text[], $16::text[], $17::timestamptz[],"
           " $18::timestamptz[], $19::text[], $20::int4[]) AS u(id, month, psp, psp_account,"
           " transport_key, input_id, kind, source, payment_id, business_key, body, key_id, sha256,"
           " normalized, verification, status, occurred_at, received_at, trace_id, copies)",
};

static const struct pay_column event_columns[] = {
    {PAY_COLUMN_INT8, ROW(id), NULL},
    {PAY_COLUMN_DATE, ROW(month_days), NULL},
    {PAY_COLUMN_STR, ROW(psp), NULL},
    {PAY_COLUMN_STR, ROW(psp_account), NULL},
    {PAY_COLUMN_STR, ROW(transport_key), NULL},
    {PAY_COLUMN_STR, ROW(input_id), NULL},
    {PAY_COLUMN_CSTR, ROW(kind), NULL},
    {PAY_COLUMN_NAME, ROW(source), pay_column_source},
    {PAY_COLUMN_STR, ROW(payment_id), NULL},
    {PAY_COLUMN_STR, ROW(business_key), NULL},
    {PAY_COLUMN_BYTES, ROW(body), NULL},
    {PAY_COLUMN_STR, ROW(key_id), NULL},
    {PAY_COLUMN_BYTES, ROW(sha256), NULL},
    {PAY_COLUMN_BYTES, ROW(normalized), NULL},
    {PAY_COLUMN_STR, ROW(verification), NULL},
    {PAY_COLUMN_CSTR, ROW(status), NULL},
    {PAY_COLUMN_TIME, ROW(occurred_at_us), NULL},
    {PAY_COLUMN_TIME, ROW(received_at_us), NULL},
    {PAY_COLUMN_STR, ROW(trace_id), NULL},
    {PAY_COLUMN_INT4, ROW(copies), NULL},
};

static const struct pay_pg_stmt find_stored = {
    .name = "stored_find",
    .sql = "SELECT u.n - 1, e.id, e.received_month, e.kind::text, e.source::text, e.status::text,"
           " e.payment_id, e.normalized, e.verification, e.first_seen_at,"
           " CASE WHEN e.kind = 'POISON' THEN e.body END, e.key_id"
           " FROM unnest($1::bytea[]) WITH ORDINALITY AS u(key, n)"
           " JOIN payfact.inbox_key AS k ON k.key = u.key"
           " JOIN payfact.channel_event AS e ON e.received_month = k.received_month"
           " AND e.id = k.channel_event_id FOR UPDATE OF e",
};

static const struct pay_column stored_columns[] = {
    {PAY_COLUMN_BYTES, offsetof(struct pay_store_stored_event, key), NULL},
};

static const struct pay_pg_stmt update_event = {
    .name = "event_update",
    .sql = "UPDATE payfact.channel_event AS e SET status = u.status,"
           " payment_id = coalesce(u.payment_id, e.payment_id)"
           " FROM unnest($1::int8[], $2::date[], $3::text[], $4::text[])"
           " AS u(id, month, status, payment_id)"
           " WHERE e.received_month = u.month AND e.id = u.id",
};

static const struct pay_column update_columns[] = {
    {PAY_COLUMN_INT8, CHANGE(id), NULL},
    {PAY_COLUMN_DATE, CHANGE(month_days), NULL},
    {PAY_COLUMN_CSTR, CHANGE(status), NULL},
    {PAY_COLUMN_STR, CHANGE(payment_id), NULL},
};

static const char *const status_names[PAY_STORE_EVENT_STATUS_COUNT] = {"DECIDED", "ORPHAN", "DEAD"};
static const char *const kind_names[] = {"PSP_EVENT", "DEADLINE", "REFUSED_NOTIFICATION", "POISON"};

static enum pay_store_event_status parse_status(struct pay_str text)
{
    for (size_t i = 0; i < COUNT(status_names); i++) {
        if (pay_str_eq_c(text, status_names[i])) {
            return (enum pay_store_event_status)i;
        }
    }
    pay_assert_failed("status as the table's CHECK has it", __FILE__, __LINE__);
}

enum pay_status pay_store_inbox_add(struct pay_store *store,
                                    struct pay_store_inbox_row *const *rows, size_t count,
                                    size_t *ret_index, struct pay_err *err)
{
    *ret_index = pay_store_queued(store);
    if (count == 0) {
        return PAY_OK;
    }
    pay_store_add_columns(store, COLUMNS(key_columns), (const void *const *)rows, count);
    return pay_store_queue(store, &insert_keys, PAY_STORE_ANY_COUNT, err);
}

static bool same_key(struct pay_bytes a, struct pay_bytes b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

size_t pay_store_inbox_read(struct pay_store *store, size_t index,
                            struct pay_store_inbox_row *const *rows, size_t count)
{
    if (count == 0) {
        return 0;
    }
    const struct pay_pg_result *result = pay_store_result(store, index);
    size_t at = 0;
    for (size_t i = 0; i < pay_pg_rows(result); i++) { /* Both in the order of their keys. */
        while (at < count && !same_key(rows[at]->key, pay_pg_bytea(result, i, 0))) {
            at++;
        }
        PAY_ASSERT(at < count);
        struct pay_store_inbox_row *row = rows[at++];
        row->is_known = row->is_new = true;
        row->id = pay_pg_int(result, i, 1);
        row->month_days = pay_pg_date(result, i, 2);
        row->first_seen_at_us = pay_pg_timestamptz(result, i, 3);
    }
    return count - pay_pg_rows(result);
}

enum pay_status pay_store_inbox_seen(struct pay_store *store,
                                     struct pay_store_inbox_row *const *rows, size_t count,
                                     struct pay_err *err)
{
    pay_store_add_columns(store, COLUMNS(seen_columns), (const void *const *)rows, count);
    enum pay_status status = pay_store_exec(store, &count_seen, err);
    const struct pay_pg_result *result = status == PAY_OK ? pay_store_result(store, 0) : NULL;
    for (size_t i = 0; status == PAY_OK && i < pay_pg_rows(result); i++) {
        struct pay_store_inbox_row *row = rows[pay_pg_int(result, i, 0)];
        row->is_known = true;
        row->id = pay_pg_int(result, i, 1);
        row->month_days = pay_pg_date(result, i, 2);
        row->stored = parse_status(pay_pg_text(result, i, 3));
        row->first_seen_at_us = pay_pg_timestamptz(result, i, 4);
        row->is_same_input = pay_str_eq(pay_pg_text(result, i, 5), row->input_id);
    }
    pay_store_results_free(store);
    return status;
}

enum pay_status pay_store_event_add(struct pay_store *store,
                                    const struct pay_store_inbox_row *const *rows, size_t count,
                                    struct pay_err *err)
{
    return pay_store_queue_rows(store, &insert_events, COLUMNS(event_columns),
                                (const void *const *)rows, count, err);
}

enum pay_status pay_store_stored_find(struct pay_store *store,
                                      struct pay_store_stored_event *const *asks, size_t count,
                                      size_t *ret_index, struct pay_err *err)
{
    *ret_index = pay_store_queued(store);
    if (count == 0) {
        return PAY_OK;
    }
    pay_store_add_columns(store, COLUMNS(stored_columns), (const void *const *)asks, count);
    return pay_store_queue(store, &find_stored, PAY_STORE_ANY_COUNT, err);
}

static const char *static_kind(struct pay_str text)
{
    for (size_t i = 0; i < COUNT(kind_names); i++) {
        if (pay_str_eq_c(text, kind_names[i])) {
            return kind_names[i];
        }
    }
    return "";
}

void pay_store_stored_found(struct pay_store *store, size_t index, struct pay_arena *arena,
                            struct pay_store_stored_event *const *asks, size_t count)
{
    if (count == 0) {
        return;
    }
    const struct pay_pg_result *result = pay_store_result(store, index);
    for (size_t i = 0; i < pay_pg_rows(result); i++) {
        struct pay_store_stored_event *ask = asks[pay_pg_int(result, i, 0)];
        ask->found = true;
        ask->id = pay_pg_int(result, i, 1);
        ask->month_days = pay_pg_date(result, i, 2);
        ask->kind = static_kind(pay_pg_text(result, i, 3));
        if (!pay_source_parse(pay_pg_text(result, i, 4), &ask->source)) {
            ask->source = PAY_SOURCE_UNRECOGNIZED;
        }
        ask->status = parse_status(pay_pg_text(result, i, 5));
        ask->payment_id = pay_store_read_str(arena, result, i, 6);
        ask->normalized = pay_store_read_bytes(arena, result, i, 7);
        ask->verification = pay_store_read_str(arena, result, i, 8);
        ask->first_seen_at_us = pay_pg_timestamptz(result, i, 9);
        ask->body = pay_store_read_bytes(arena, result, i, 10);
        ask->key_id = pay_store_read_str(arena, result, i, 11);
    }
}

enum pay_status pay_store_event_update(struct pay_store *store,
                                       const struct pay_store_event_change *const *rows,
                                       size_t count, struct pay_err *err)
{
    return pay_store_queue_rows(store, &update_event, COLUMNS(update_columns),
                                (const void *const *)rows, count, err);
}
