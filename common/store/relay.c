/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/relay.h"

#include "common/base/assert.h"

#include "common/base/banned.h"

#define PARAMS_BYTES_MAX ((size_t)8 * 1024 * 1024)

/* The outbox is as large now and as empty then as no statistics can know. A plan that takes all
 * rows of a range and sorts them for the first thousand makes a drain quadratic (measured: 6 k
 * rows/s of 200 k), so the read may only walk the primary key. */
static const struct pay_pg_stmt plan_stmt = {
    "relay_plan",
    "SELECT set_config('enable_bitmapscan', 'off', false), set_config('enable_sort', 'off', false),"
    " set_config('enable_seqscan', 'off', false), set_config('enable_mergejoin', 'off', false),"
    " set_config('plan_cache_mode', 'force_generic_plan', false), set_config('jit', 'off', false)",
    false};

static const struct pay_pg_stmt join_stmt = {
    "relay_join",
    "WITH me AS (INSERT INTO publisher_member (owner, seen_at) VALUES ($1, clock_timestamp())"
    " ON CONFLICT (owner) DO UPDATE SET seen_at = excluded.seen_at RETURNING owner),"
    " gone AS (DELETE FROM publisher_member"
    "  WHERE seen_at < clock_timestamp() - interval '1 day' AND owner <> $1)"
    " SELECT (1 + count(*))::int8 FROM publisher_member"
    " WHERE owner <> $1 AND seen_at > clock_timestamp() - make_interval(secs => $2::int8 / 1000.0)",
    false};

static const struct pay_pg_stmt leave_stmt = {
    "relay_leave", "DELETE FROM publisher_member WHERE owner = $1", false};

static const struct pay_pg_stmt renew_stmt = {
    "relay_renew",
    "UPDATE publisher_lease l"
    " SET expires_at = clock_timestamp() + make_interval(secs => $2::int8 / 1000.0)"
    " FROM unnest($3::int8[], $4::int8[]) AS mine(shard, fence)"
    " WHERE l.shard = mine.shard AND l.fence = mine.fence AND l.owner = $1"
    " RETURNING l.shard::int8, l.fence",
    false};

/* Two replicas may take at once: the row's own lock and the WHERE of the upsert decide. */
static const struct pay_pg_stmt take_stmt = {
    "relay_take",
    "INSERT INTO publisher_lease AS l (shard, owner, fence, expires_at)"
    " SELECT s.shard::int2, $1, 1, clock_timestamp() + make_interval(secs => $2::int8 / 1000.0)"
    " FROM generate_series(0, $3::int8 - 1) AS s(shard)"
    " LEFT JOIN publisher_lease held ON held.shard = s.shard"
    " WHERE held.shard IS NULL OR held.expires_at < clock_timestamp()"
    "  OR ($5::bool AND held.owner = $1)"
    " ORDER BY s.shard LIMIT $4::int8"
    " ON CONFLICT (shard) DO UPDATE"
    " SET owner = excluded.owner, fence = l.fence + 1, expires_at = excluded.expires_at"
    " WHERE l.expires_at < clock_timestamp() OR ($5::bool AND l.owner = $1)"
    " RETURNING l.shard::int8, l.fence",
    false};

static const struct pay_pg_stmt release_stmt = {
    "relay_release",
    "UPDATE publisher_lease SET expires_at = '-infinity'"
    " WHERE shard = $2::int8 AND fence = $3 AND owner = $1",
    false};

/* A key with a dead row, or with a refused row that has to wait, is left out whole: what stands
 * behind it must not overtake it. Held is what was held when the pass over the outbox began: a row
 * whose time comes in the middle of a pass was passed already, and only the next pass may take it,
 * with all that stands behind it. Mostly no row was ever refused: that is asked once. */
static const struct pay_pg_stmt read_stmt = {
    "relay_read",
    "SELECT o.shard, o.id, o.topic, o.key, o.payload, o.headers, o.attempts, o.created_at, o.tid"
    " FROM unnest($1::int8[], $2::int8[], $3::int8[]) AS r(shard, after_id, upto_id)"
    " CROSS JOIN LATERAL (SELECT p.*, p.ctid AS tid FROM payment_outbox p"
    "  WHERE p.shard = r.shard::int2 AND p.id > r.after_id AND p.id <= r.upto_id"
    "  AND p.dead_at IS NULL AND p.id NOT IN (SELECT unnest($4::int8[]))"
    "  AND ((SELECT NOT EXISTS (SELECT FROM payment_outbox WHERE attempts > 0))"
    "   OR NOT EXISTS (SELECT FROM payment_outbox h WHERE h.shard = p.shard AND h.key = p.key"
    "    AND h.id <= p.id AND (h.dead_at IS NOT NULL OR h.available_at > $6::timestamptz)"
    "    AND h.attempts > 0))"
    "  ORDER BY p.id LIMIT $5::int8) AS o",
    true};

static const struct pay_pg_stmt last_id_stmt = {
    "relay_last_id", "SELECT last_value, clock_timestamp() FROM payment_outbox_id_seq", true};

#define DELETE_LEASES                                                            \
    "WITH lease AS MATERIALIZED (SELECT l.shard, l.fence FROM publisher_lease l" \
    "  JOIN unnest($2::int8[], $3::int8[]) AS mine(shard, fence)"                \
    "   ON l.shard = mine.shard::int2 AND l.fence = mine.fence"                  \
    "  WHERE l.owner = $1 FOR SHARE OF l),"

/* Straight to where the rows stood, which costs half as much as finding each by its key. What
 * stands there now is deleted only if it is one of them; ids are of the whole table. IS TRUE keeps
 * it a hashed test. */
static const struct pay_pg_stmt delete_stmt = {
    "relay_delete",
    DELETE_LEASES " gone AS (DELETE FROM payment_outbox p WHERE p.ctid = ANY ($5::tid[])"
                  "  AND (p.id IN (SELECT unnest($4::int8[]))) IS TRUE"
                  "  AND (p.shard IN (SELECT shard FROM lease)) IS TRUE RETURNING 1)"
                  " SELECT shard::int8, fence, (SELECT count(*) FROM gone) FROM lease",
    false};

/* What has moved meanwhile (a table that was rewritten), or is gone already. */
static const struct pay_pg_stmt delete_moved_stmt = {
    "relay_delete_moved",
    DELETE_LEASES
    " gone AS (DELETE FROM payment_outbox p USING unnest($4::int8[], $5::int8[]) AS d(shard, id)"
    "  WHERE p.shard = d.shard::int2 AND p.id = d.id"
    "   AND d.shard::int2 IN (SELECT shard FROM lease))"
    " SELECT shard::int8, fence FROM lease",
    false};

static const struct pay_pg_stmt refuse_stmt = {
    "relay_refuse",
    "WITH lease AS (SELECT 1 FROM publisher_lease"
    "  WHERE shard = $2::int8 AND fence = $3 AND owner = $1 FOR SHARE),"
    " kept AS (UPDATE payment_outbox SET attempts = attempts + 1,"
    "  available_at = clock_timestamp() + make_interval(secs => $6::int8 / 1000.0),"
    "  dead_at = CASE WHEN attempts + 1 >= $7::int8 THEN clock_timestamp() END,"
    "  dead_reason = CASE WHEN attempts + 1 >= $7::int8 THEN $5 END"
    "  WHERE shard = $2::int2 AND id = $4 AND EXISTS (SELECT FROM lease)"
    "  RETURNING dead_at IS NOT NULL AS is_dead)"
    " SELECT EXISTS (SELECT FROM lease), EXISTS (SELECT FROM kept WHERE is_dead)",
    false};

static const struct pay_pg_stmt backlog_stmt = {
    "relay_backlog",
    "SELECT (SELECT count(*) FROM (SELECT FROM payment_outbox LIMIT 10000) AS counted),"
    " (SELECT count(*) FROM payment_outbox WHERE dead_at IS NOT NULL),"
    " coalesce((extract(epoch FROM clock_timestamp() - (SELECT min(first.created_at)"
    "  FROM generate_series(0, $1::int8 - 1) AS s(shard) CROSS JOIN LATERAL"
    "  (SELECT created_at FROM payment_outbox p WHERE p.shard = s.shard::int2"
    "   ORDER BY p.id LIMIT 1) AS first)) * 1000000)::int8, 0)",
    true};

enum pay_status pay_relay_init(struct pay_relay *relay, struct pay_pg *pg, const char *owner,
                               int ttl_ms, struct pay_err *err)
{
    relay->pg = pg;
    relay->owner = owner;
    relay->ttl_ms = ttl_ms;
    relay->params = pay_pg_params_new(PARAMS_BYTES_MAX);
    return relay->params == NULL ? pay_err_set(err, PAY_RETRY, 0, "relay", "out of memory")
                                 : PAY_OK;
}

enum pay_status pay_relay_connected(struct pay_relay *relay, struct pay_err *err)
{
    return pay_pg_exec(relay->pg, &plan_stmt, NULL, NULL, err);
}

void pay_relay_free(struct pay_relay *relay)
{
    relay->params = pay_pg_params_free(relay->params);
}

static struct pay_pg_params *fresh(struct pay_relay *relay)
{
    pay_pg_params_reset(relay->params);
    return relay->params;
}

static void add_lease(const struct pay_relay *relay, struct pay_relay_lease lease)
{
    struct pay_pg_params *params = relay->params;
    pay_pg_add_text_c(params, relay->owner);
    pay_pg_add_int8(params, lease.shard);
    pay_pg_add_int8(params, lease.fence);
}

static void add_leases(struct pay_pg_params *params, const struct pay_relay_lease *leases,
                       size_t count)
{
    pay_pg_array_begin(params, PAY_PG_INT8);
    for (size_t i = 0; i < count; i++) {
        pay_pg_add_int8(params, leases[i].shard);
    }
    pay_pg_array_end(params);
    pay_pg_array_begin(params, PAY_PG_INT8);
    for (size_t i = 0; i < count; i++) {
        pay_pg_add_int8(params, leases[i].fence);
    }
    pay_pg_array_end(params);
}

static size_t read_leases(const struct pay_pg_result *rows, struct pay_relay_lease *leases)
{
    const size_t count = pay_pg_rows(rows);
    for (size_t i = 0; i < count; i++) {
        leases[i].shard = (int)pay_pg_int(rows, i, 0);
        leases[i].fence = pay_pg_int(rows, i, 1);
    }
    return count;
}

enum pay_status pay_relay_join(struct pay_relay *relay, int *ret_members, struct pay_err *err)
{
    struct pay_pg_params *params = fresh(relay);
    pay_pg_add_text_c(params, relay->owner);
    pay_pg_add_int8(params, relay->ttl_ms);
    struct pay_pg_result *row = NULL;
    const enum pay_status status = pay_pg_exec(relay->pg, &join_stmt, params, &row, err);
    if (status == PAY_OK) {
        *ret_members = (int)pay_pg_int(row, 0, 0);
    }
    pay_pg_result_free(row);
    return status;
}

enum pay_status pay_relay_leave(struct pay_relay *relay, struct pay_err *err)
{
    struct pay_pg_params *params = fresh(relay);
    pay_pg_add_text_c(params, relay->owner);
    return pay_pg_exec(relay->pg, &leave_stmt, params, NULL, err);
}

enum pay_status pay_relay_renew(struct pay_relay *relay, struct pay_relay_lease *leases,
                                size_t *count, struct pay_err *err)
{
    struct pay_pg_params *params = fresh(relay);
    pay_pg_add_text_c(params, relay->owner);
    pay_pg_add_int8(params, relay->ttl_ms);
    add_leases(params, leases, *count);
    struct pay_pg_result *rows = NULL;
    const enum pay_status status = pay_pg_exec(relay->pg, &renew_stmt, params, &rows, err);
    if (status == PAY_OK) {
        PAY_ASSERT(pay_pg_rows(rows) <= *count);
        *count = read_leases(rows, leases);
    }
    pay_pg_result_free(rows);
    return status;
}

enum pay_status pay_relay_take(struct pay_relay *relay, const struct pay_relay_wish *wish,
                               struct pay_relay_lease *ret_leases, size_t *ret_count,
                               struct pay_err *err)
{
    struct pay_pg_params *params = fresh(relay);
    pay_pg_add_text_c(params, relay->owner);
    pay_pg_add_int8(params, relay->ttl_ms);
    pay_pg_add_int8(params, wish->shards);
    pay_pg_add_int8(params, (int64_t)wish->want);
    pay_pg_add_bool(params, wish->own_again);
    struct pay_pg_result *rows = NULL;
    const enum pay_status status = pay_pg_exec(relay->pg, &take_stmt, params, &rows, err);
    if (status == PAY_OK) {
        PAY_ASSERT(pay_pg_rows(rows) <= wish->want);
        *ret_count = read_leases(rows, ret_leases);
    }
    pay_pg_result_free(rows);
    return status;
}

enum pay_status pay_relay_release(struct pay_relay *relay, struct pay_relay_lease lease,
                                  struct pay_err *err)
{
    struct pay_pg_params *params = fresh(relay);
    add_lease(relay, lease);
    return pay_pg_exec(relay->pg, &release_stmt, params, NULL, err);
}

static void add_ranges(struct pay_pg_params *params, const struct pay_relay_request *request)
{
    pay_pg_array_begin(params, PAY_PG_INT8);
    for (size_t i = 0; i < request->range_count; i++) {
        pay_pg_add_int8(params, request->ranges[i].shard);
    }
    pay_pg_array_end(params);
    pay_pg_array_begin(params, PAY_PG_INT8);
    for (size_t i = 0; i < request->range_count; i++) {
        pay_pg_add_int8(params, request->ranges[i].after_id);
    }
    pay_pg_array_end(params);
    pay_pg_array_begin(params, PAY_PG_INT8);
    for (size_t i = 0; i < request->range_count; i++) {
        pay_pg_add_int8(params, request->ranges[i].upto_id);
    }
    pay_pg_array_end(params);
}

enum pay_status pay_relay_read(struct pay_relay *relay, const struct pay_relay_request *request,
                               struct pay_pg_result **ret_rows, struct pay_err *err)
{
    struct pay_pg_params *params = fresh(relay);
    add_ranges(params, request);
    pay_pg_add_int8_array(params, request->skip_ids, NULL, request->skip_count);
    pay_pg_add_int8(params, request->limit);
    pay_pg_add_timestamptz(params, request->pass_began_us);
    return pay_pg_exec(relay->pg, &read_stmt, params, ret_rows, err);
}

enum pay_status pay_relay_last_id(struct pay_relay *relay, int64_t *ret_id, int64_t *ret_now_us,
                                  struct pay_err *err)
{
    struct pay_pg_result *row = NULL;
    const enum pay_status status = pay_pg_exec(relay->pg, &last_id_stmt, NULL, &row, err);
    if (status == PAY_OK) {
        *ret_id = pay_pg_int(row, 0, 0);
        *ret_now_us = pay_pg_timestamptz(row, 0, 1);
    }
    pay_pg_result_free(row);
    return status;
}

static struct pay_pg_params *delete_params(struct pay_relay *relay,
                                           const struct pay_relay_delivered *delivered)
{
    struct pay_pg_params *params = fresh(relay);
    pay_pg_add_text_c(params, relay->owner);
    add_leases(params, delivered->leases, delivered->lease_count);
    return params;
}

static enum pay_status delete_moved(struct pay_relay *relay,
                                    const struct pay_relay_delivered *delivered,
                                    struct pay_relay_lease *ret_leases, size_t *ret_count,
                                    struct pay_err *err)
{
    struct pay_pg_params *params = delete_params(relay, delivered);
    pay_pg_add_int8_array(params, delivered->shards, NULL, delivered->count);
    pay_pg_add_int8_array(params, delivered->ids, NULL, delivered->count);
    struct pay_pg_result *rows = NULL;
    const enum pay_status status = pay_pg_exec(relay->pg, &delete_moved_stmt, params, &rows, err);
    if (status == PAY_OK) {
        *ret_count = read_leases(rows, ret_leases);
    }
    pay_pg_result_free(rows);
    return status;
}

enum pay_status pay_relay_delete(struct pay_relay *relay,
                                 const struct pay_relay_delivered *delivered,
                                 struct pay_relay_lease *ret_leases, size_t *ret_count,
                                 struct pay_err *err)
{
    struct pay_pg_params *params = delete_params(relay, delivered);
    pay_pg_add_int8_array(params, delivered->ids, NULL, delivered->count);
    pay_pg_array_begin(params, PAY_PG_TID);
    for (size_t i = 0; i < delivered->count; i++) {
        pay_pg_add_tid(params, delivered->tids[i]);
    }
    pay_pg_array_end(params);
    struct pay_pg_result *rows = NULL;
    enum pay_status status = pay_pg_exec(relay->pg, &delete_stmt, params, &rows, err);
    size_t gone = delivered->count;
    if (status == PAY_OK) {
        PAY_ASSERT(pay_pg_rows(rows) <= delivered->lease_count);
        *ret_count = read_leases(rows, ret_leases);
        gone = *ret_count > 0 ? (size_t)pay_pg_int(rows, 0, 2) : gone; /* Of no lease: nothing. */
    }
    pay_pg_result_free(rows);
    return status == PAY_OK && gone < delivered->count
               ? delete_moved(relay, delivered, ret_leases, ret_count, err)
               : status;
}

enum pay_status pay_relay_refuse(struct pay_relay *relay, const struct pay_relay_refusal *refusal,
                                 bool *ret_ours, bool *ret_dead, struct pay_err *err)
{
    struct pay_pg_params *params = fresh(relay);
    add_lease(relay, refusal->lease);
    pay_pg_add_int8(params, refusal->id);
    pay_pg_add_text_c(params, refusal->reason);
    pay_pg_add_int8(params, refusal->delay_ms);
    pay_pg_add_int8(params, refusal->attempts_max);
    struct pay_pg_result *row = NULL;
    const enum pay_status status = pay_pg_exec(relay->pg, &refuse_stmt, params, &row, err);
    if (status == PAY_OK) {
        *ret_ours = pay_pg_bool(row, 0, 0);
        *ret_dead = pay_pg_bool(row, 0, 1);
    }
    pay_pg_result_free(row);
    return status;
}

enum pay_status pay_relay_backlog(struct pay_relay *relay, int shards,
                                  struct pay_relay_backlog *ret_backlog, struct pay_err *err)
{
    struct pay_pg_params *params = fresh(relay);
    pay_pg_add_int8(params, shards);
    struct pay_pg_result *row = NULL;
    const enum pay_status status = pay_pg_exec(relay->pg, &backlog_stmt, params, &row, err);
    if (status == PAY_OK) {
        ret_backlog->rows = pay_pg_int(row, 0, 0);
        ret_backlog->dead = pay_pg_int(row, 0, 1);
        ret_backlog->oldest_age_us = pay_pg_int(row, 0, 2);
    }
    pay_pg_result_free(row);
    return status;
}
