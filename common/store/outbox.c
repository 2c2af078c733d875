/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/outbox.h"

#include <stddef.h>

#include "common/base/assert.h"
#include "common/base/buf.h"
#include "common/store/statement.h"

#include "common/base/banned.h"

#define ROW(member_) offsetof(struct pay_store_outbox_row, member_)
#define HEADERS_BYTES_MAX 8192 /**< Of one row, joined. */

/* Until COMMIT nobody else draws an id of these shards: they become visible in order. */
static const struct pay_pg_stmt lock_shards = {
    .name = "outbox_lock",
    .sql = "SELECT pg_advisory_xact_lock(1885436262, shard) FROM unnest($1::int4[]) AS shard",
};

/* Headers travel as one text, because an array of arrays must be rectangular. */
static const struct pay_pg_stmt insert_outbox = {
    .name = "outbox_insert",
    .sql = "INSERT INTO payfact.payment_outbox (shard, topic, key, payload, headers, created_at)"
           " SELECT u.shard, u.topic, u.key, u.payload, string_to_array(u.headers, chr(31)), now()"
           " FROM unnest($1::int2[], $2::text[], $3::text[], $4::bytea[], $5::text[])"
           " WITH ORDINALITY AS u(shard, topic, key, payload, headers, n) ORDER BY u.n",
};

static const struct pay_column insert_columns[] = {
    {PAY_COLUMN_INT2, ROW(shard), NULL},
    {PAY_COLUMN_STR, ROW(topic), NULL},
    {PAY_COLUMN_STR, ROW(key), NULL},
    {PAY_COLUMN_BYTES, ROW(payload), NULL},
};

static const struct pay_pg_stmt find_dead = {
    .name = "outbox_dead_find",
    .sql = "SELECT u.n - 1, o.shard, o.id, o.payload, o.topic = 'psp-jobs'"
           " FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u(key, event_id, n)"
           " JOIN payfact.payment_outbox AS o ON o.dead_at IS NOT NULL AND o.key = u.key"
           " AND CASE o.topic WHEN 'events' THEN u.event_id = ANY (o.headers)"
           " ELSE u.event_id = concat_ws('/', o.topic, o.shard, o.id) END FOR UPDATE OF o",
};

static const struct pay_column dead_columns[] = {
    {PAY_COLUMN_STR, offsetof(struct pay_store_dead_event, key), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_dead_event, event_id), NULL},
};

/* The key stays held until a read that begins after this transaction: the row lies behind the
 * publisher's cursor, and free at once it would be overtaken by the later ones. */
static const struct pay_pg_stmt replace_dead = {
    .name = "outbox_dead_replace",
    .sql = "UPDATE payfact.payment_outbox SET payload = $3,"
           " headers = string_to_array(($4::text[])[1], chr(31)), dead_at = NULL,"
           " dead_reason = NULL, attempts = 1,"
           " available_at = clock_timestamp() + interval '5 seconds'"
           " WHERE shard = $1 AND id = $2 AND dead_at IS NOT NULL",
};

static const struct pay_pg_stmt revive_dead = {
    .name = "outbox_dead_revive",
    .sql = "UPDATE payfact.payment_outbox SET dead_at = NULL, dead_reason = NULL, attempts = 1,"
           " available_at = clock_timestamp() + interval '5 seconds'"
           " WHERE shard = $1 AND id = $2 AND dead_at IS NOT NULL",
};

static enum pay_status queue_locks(struct pay_store *store,
                                   const struct pay_store_outbox_row *const *rows, size_t count,
                                   struct pay_err *err)
{
    struct pay_pg_params *params = pay_store_params(store);
    pay_pg_array_begin(params, PAY_PG_INT4);
    int last = -1;
    for (size_t i = 0; i < count; i++) {
        PAY_ASSERT(rows[i]->shard >= last);
        if (rows[i]->shard != last) {
            last = rows[i]->shard;
            pay_pg_add_int4(params, last);
        }
    }
    pay_pg_array_end(params);
    return pay_store_queue(store, &lock_shards, PAY_STORE_ANY_COUNT, err);
}

static void join_headers(struct pay_buf *buf, const struct pay_store_outbox_row *row)
{
    pay_buf_reset(buf);
    for (size_t i = 0; i < row->header_count; i++) {
        if (i > 0) {
            pay_buf_add_char(buf, '\x1f');
        }
        pay_buf_add_str(buf, row->headers[i].name);
        pay_buf_add_char(buf, '\x1f');
        pay_buf_add_str(buf, row->headers[i].value);
    }
}

static enum pay_status add_headers(struct pay_store *store,
                                   const struct pay_store_outbox_row *const *rows, size_t count,
                                   struct pay_err *err)
{
    struct pay_pg_params *params = pay_store_more_params(store);
    struct pay_buf buf = pay_buf_make(HEADERS_BYTES_MAX);
    enum pay_status status = PAY_OK;
    pay_pg_array_begin(params, PAY_PG_TEXT);
    for (size_t i = 0; i < count && status == PAY_OK; i++) {
        join_headers(&buf, rows[i]);
        if (buf.failed) {
            status = buf.starved
                         ? pay_err_set(err, PAY_RETRY, 0, "store.outbox", "out of memory")
                         : pay_err_set(err, PAY_REJECT, 0, "store.outbox", "headers are too long");
        }
        struct pay_str joined = pay_buf_str(&buf);
        pay_pg_add_text(params, joined.ptr == NULL ? PAY_STR("") : joined);
    }
    pay_pg_array_end(params);
    pay_buf_free(&buf);
    return status;
}

enum pay_status pay_store_outbox_add(struct pay_store *store,
                                     const struct pay_store_outbox_row *const *rows, size_t count,
                                     struct pay_err *err)
{
    if (count == 0) {
        return PAY_OK;
    }
    enum pay_status status = queue_locks(store, rows, count, err);
    if (status != PAY_OK) {
        return status;
    }
    pay_store_add_columns(store, COLUMNS(insert_columns), (const void *const *)rows, count);
    status = add_headers(store, rows, count, err);
    return status != PAY_OK ? status : pay_store_queue(store, &insert_outbox, (int64_t)count, err);
}

enum pay_status pay_store_dead_find(struct pay_store *store,
                                    struct pay_store_dead_event *const *asks, size_t count,
                                    size_t *ret_index, struct pay_err *err)
{
    *ret_index = pay_store_queued(store);
    if (count == 0) {
        return PAY_OK;
    }
    pay_store_add_columns(store, COLUMNS(dead_columns), (const void *const *)asks, count);
    return pay_store_queue(store, &find_dead, PAY_STORE_ANY_COUNT, err);
}

void pay_store_dead_found(struct pay_store *store, size_t index, struct pay_arena *arena,
                          struct pay_store_dead_event *const *asks, size_t count)
{
    if (count == 0) {
        return;
    }
    const struct pay_pg_result *result = pay_store_result(store, index);
    for (size_t row = 0; row < pay_pg_rows(result); row++) {
        struct pay_store_dead_event *ask = asks[pay_pg_int(result, row, 0)];
        ask->found = true;
        ask->shard = (int)pay_pg_int(result, row, 1);
        ask->id = pay_pg_int(result, row, 2);
        ask->payload = pay_store_read_bytes(arena, result, row, 3);
        ask->is_job = pay_pg_bool(result, row, 4);
    }
}

enum pay_status pay_store_dead_replace(struct pay_store *store,
                                       const struct pay_store_dead_event *dead,
                                       const struct pay_store_outbox_row *row, struct pay_err *err)
{
    struct pay_pg_params *params = pay_store_params(store);
    pay_pg_add_int2(params, (int16_t)dead->shard);
    pay_pg_add_int8(params, dead->id);
    pay_pg_add_bytea(params, row->payload);
    enum pay_status status = add_headers(store, &row, 1, err);
    return status != PAY_OK ? status : pay_store_queue(store, &replace_dead, 1, err);
}

enum pay_status pay_store_dead_revive(struct pay_store *store,
                                      const struct pay_store_dead_event *dead, struct pay_err *err)
{
    struct pay_pg_params *params = pay_store_params(store);
    pay_pg_add_int2(params, (int16_t)dead->shard);
    pay_pg_add_int8(params, dead->id);
    return pay_store_queue(store, &revive_dead, 1, err);
}
