/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/deadlines.h"

#include <stddef.h>

#include "common/base/assert.h"
#include "common/store/statement.h"

#include "common/base/banned.h"

#define ROW(member_) offsetof(struct pay_store_deadline, member_)
#define DUE(member_) offsetof(struct pay_store_due, member_)

/* A decision starts the waiting anew: the lease and the tries of the former time end. set_at is the
 * database's clock, as what it is compared with: recovery's moves leave it alone. */
static const struct pay_pg_stmt set_deadline = {
    .name = "deadline_set",
    .sql = "INSERT INTO payfact.payment_deadline AS d (aggregate_id, kind, payment_id, due_at)"
           " SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[])"
           " ON CONFLICT (aggregate_id, kind) DO UPDATE SET due_at = excluded.due_at,"
           " payment_id = excluded.payment_id, lease_until = NULL, set_at = now(),"
           " tries = CASE WHEN d.due_at = excluded.due_at THEN d.tries ELSE 0 END",
};

static const struct pay_column set_columns[] = {
    {PAY_COLUMN_STR, ROW(aggregate_id), NULL},
    {PAY_COLUMN_NAME, ROW(kind), pay_column_deadline_kind},
    {PAY_COLUMN_STR, ROW(payment_id), NULL},
    {PAY_COLUMN_TIME, ROW(due_at_us), NULL},
};

static const struct pay_pg_stmt clear_deadline = {
    .name = "deadline_clear",
    .sql = "DELETE FROM payfact.payment_deadline AS d"
           " USING unnest($1::text[], $2::text[], $3::timestamptz[]) AS u(id, kind, before)"
           " WHERE d.aggregate_id = u.id AND d.kind = u.kind"
           " AND (u.before IS NULL OR d.set_at < u.before)",
};

static const struct pay_column clear_columns[] = {
    {PAY_COLUMN_STR, ROW(aggregate_id), NULL},
    {PAY_COLUMN_NAME, ROW(kind), pay_column_deadline_kind},
    {PAY_COLUMN_TIME, ROW(set_before_us), NULL},
};

/* A row that no decision can move is due again later and later: from 30 seconds to six hours. */
static const struct pay_pg_stmt postpone_deadline = {
    .name = "deadline_postpone",
    .sql = "UPDATE payfact.payment_deadline AS d SET lease_until = NULL, due_at = now() +"
           " least(interval '30 seconds' * power(2, least(greatest(d.tries - 1, 0), 20)),"
           " interval '6 hours')"
           " FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS u(id, kind, due)"
           " WHERE d.aggregate_id = u.id AND d.kind = u.kind AND d.due_at = u.due",
};

static const struct pay_column postpone_columns[] = {
    {PAY_COLUMN_STR, ROW(aggregate_id), NULL},
    {PAY_COLUMN_NAME, ROW(kind), pay_column_deadline_kind},
    {PAY_COLUMN_TIME, ROW(due_at_us), NULL},
};

/* A lease in microseconds that doubles with each try. */
#define GROWN(tries_, lease_, max_) \
    "least(" lease_ "::int8 * power(2, least(" tries_ ", 20)), " max_ "::int8)"

/* The oldest due rows that nobody holds; SKIP LOCKED lets any number of replicas share the work. */
static const struct pay_pg_stmt lease_due = {
    .name = "deadline_lease",
    .sql =
        "WITH due AS (SELECT aggregate_id, kind FROM payfact.payment_deadline"
        " WHERE due_at <= now() AND (lease_until IS NULL OR lease_until <= now())"
        " ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED)"
        " UPDATE payfact.payment_deadline AS d"
        " SET tries = d.tries + 1, lease_until = now() + interval '1 microsecond'"
        " * CASE WHEN d.kind = ANY ($4::text[]) THEN " GROWN(
            "d.tries", "$2",
            "$3") " ELSE $2::int8 END"
                  " FROM due WHERE d.aggregate_id = due.aggregate_id AND d.kind = due.kind"
                  " RETURNING d.kind::text, d.aggregate_id, d.payment_id, d.due_at, d.lease_until,"
                  " d.tries, now()",
};

static const struct pay_pg_stmt move_leased = {
    .name = "deadline_reschedule",
    .sql = "UPDATE payfact.payment_deadline AS d SET due_at = u.next, lease_until = NULL"
           " FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[])"
           " AS u(id, kind, due, next)"
           " WHERE d.aggregate_id = u.id AND d.kind = u.kind AND d.due_at = u.due",
};

/* By the lease too: what a decision has made prompt again stays prompt. */
static const struct pay_pg_stmt hold_leased = {
    .name = "deadline_hold",
    .sql = "UPDATE payfact.payment_deadline AS d"
           " SET lease_until = now() + interval '1 microsecond' * " GROWN(
               "d.tries - 1", "$5",
               "$6") " FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[])"
                     " AS u(id, kind, due, lease)"
                     " WHERE d.aggregate_id = u.id AND d.kind = u.kind AND d.due_at = u.due"
                     " AND d.lease_until = u.lease",
};

static const struct pay_column hold_columns[] = {
    {PAY_COLUMN_CHARS, DUE(aggregate_id), NULL},
    {PAY_COLUMN_NAME, DUE(kind), pay_column_deadline_kind},
    {PAY_COLUMN_TIME, DUE(due_at_us), NULL},
    {PAY_COLUMN_TIME, DUE(lease_until_us), NULL},
};

static const struct pay_pg_stmt release_leased = {
    .name = "deadline_release",
    .sql = "UPDATE payfact.payment_deadline AS d"
           " SET lease_until = CASE WHEN u.keeps THEN d.lease_until END,"
           " tries = greatest(d.tries - 1, 0)"
           " FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::bool[])"
           " AS u(id, kind, due, keeps)"
           " WHERE d.aggregate_id = u.id AND d.kind = u.kind AND d.due_at = u.due",
};

static const struct pay_column release_columns[] = {
    {PAY_COLUMN_CHARS, DUE(aggregate_id), NULL},
    {PAY_COLUMN_NAME, DUE(kind), pay_column_deadline_kind},
    {PAY_COLUMN_TIME, DUE(due_at_us), NULL},
    {PAY_COLUMN_BOOL, DUE(keeps_lease), NULL},
};

static const struct pay_column due_columns[] = {
    {PAY_COLUMN_CHARS, DUE(aggregate_id), NULL},
    {PAY_COLUMN_NAME, DUE(kind), pay_column_deadline_kind},
    {PAY_COLUMN_TIME, DUE(due_at_us), NULL},
};

static const struct pay_pg_stmt deadline_stats = {
    .name = "deadline_stats",
    .sql = "SELECT kind::text, count(*), min(due_at) FROM (SELECT kind, due_at"
           " FROM payfact.payment_deadline WHERE due_at <= now() ORDER BY due_at LIMIT 10000) AS d"
           " GROUP BY kind",
    .read_only = true,
};

static const struct pay_pg_stmt make_partitions = {
    .name = "make_partitions",
    .sql = "SELECT payfact.make_partitions(3)",
};

enum pay_status pay_store_deadline_set(struct pay_store *store,
                                       const struct pay_store_deadline *const *rows, size_t count,
                                       struct pay_err *err)
{
    return pay_store_queue_rows(store, &set_deadline, COLUMNS(set_columns),
                                (const void *const *)rows, count, err);
}

enum pay_status pay_store_deadline_clear(struct pay_store *store,
                                         const struct pay_store_deadline *const *rows, size_t count,
                                         struct pay_err *err)
{
    if (count == 0) {
        return PAY_OK;
    }
    pay_store_add_columns(store, COLUMNS(clear_columns), (const void *const *)rows, count);
    return pay_store_queue(store, &clear_deadline, PAY_STORE_ANY_COUNT, err);
}

enum pay_status pay_store_deadline_postpone(struct pay_store *store,
                                            const struct pay_store_deadline *const *rows,
                                            size_t count, struct pay_err *err)
{
    if (count == 0) {
        return PAY_OK;
    }
    pay_store_add_columns(store, COLUMNS(postpone_columns), (const void *const *)rows, count);
    return pay_store_queue(store, &postpone_deadline, PAY_STORE_ANY_COUNT, err);
}

static void read_due(const struct pay_pg_result *result, size_t row, struct pay_store_due *due)
{
    *due = (struct pay_store_due){.keeps_lease = false};
    bool known = pay_deadline_kind_parse(pay_pg_text(result, row, 0), &due->kind);
    PAY_ASSERT(known); /* the table's CHECK has the same list */
    pay_store_read_chars(due->aggregate_id, sizeof(due->aggregate_id), result, row, 1);
    pay_store_read_chars(due->payment_id, sizeof(due->payment_id), result, row, 2);
    due->due_at_us = pay_pg_timestamptz(result, row, 3);
    due->lease_until_us = pay_pg_timestamptz(result, row, 4);
    due->tries = (int)pay_pg_int(result, row, 5);
}

enum pay_status pay_store_deadline_lease(struct pay_store *store,
                                         const struct pay_store_lease_wish *wish,
                                         struct pay_store_due ret_rows[], size_t *ret_count,
                                         int64_t *ret_now_us, struct pay_err *err)
{
    PAY_ASSERT(wish->max <= PAY_STORE_LEASES_MAX);
    struct pay_pg_params *params = pay_store_params(store);
    pay_pg_add_int8(params, (int64_t)wish->max);
    pay_pg_add_int8(params, wish->lease_us);
    pay_pg_add_int8(params, wish->lease_max_us);
    pay_pg_array_begin(params, PAY_PG_TEXT);
    for (int kind = 0; kind < PAY_DEADLINE_KIND_COUNT; kind++) {
        if (wish->grows[kind]) {
            pay_pg_add_text_c(params, pay_deadline_kind_name((enum pay_deadline_kind)kind));
        }
    }
    pay_pg_array_end(params);
    enum pay_status status = pay_store_exec(store, &lease_due, err);
    if (status == PAY_OK) {
        const struct pay_pg_result *result = pay_store_result(store, 0);
        *ret_count = pay_pg_rows(result);
        *ret_now_us = *ret_count == 0 ? 0 : pay_pg_timestamptz(result, 0, 6);
        for (size_t i = 0; i < *ret_count; i++) {
            read_due(result, i, &ret_rows[i]);
        }
    }
    pay_store_results_free(store);
    return status;
}

/* Columns of leased rows, which stand in one array and not behind pointers. */
static void add_due(struct pay_store *store, struct pay_columns columns,
                    const struct pay_store_due *rows, size_t count)
{
    const void *pointers[PAY_STORE_LEASES_MAX];
    PAY_ASSERT(count <= PAY_STORE_LEASES_MAX);
    for (size_t i = 0; i < count; i++) {
        pointers[i] = &rows[i];
    }
    pay_store_add_columns(store, columns, pointers, count);
}

enum pay_status pay_store_deadline_reschedule(struct pay_store *store,
                                              const struct pay_store_due *rows,
                                              const int64_t *next_due_us, size_t count,
                                              size_t *ret_moved, struct pay_err *err)
{
    add_due(store, COLUMNS(due_columns), rows, count);
    struct pay_pg_params *params = pay_store_more_params(store);
    pay_pg_array_begin(params, PAY_PG_TIMESTAMPTZ);
    for (size_t i = 0; i < count; i++) {
        pay_pg_add_timestamptz(params, next_due_us[i]);
    }
    pay_pg_array_end(params);
    enum pay_status status = pay_store_exec(store, &move_leased, err);
    if (status == PAY_OK) {
        *ret_moved = (size_t)pay_pg_affected(pay_store_result(store, 0));
    }
    pay_store_results_free(store);
    return status;
}

enum pay_status pay_store_deadline_hold(struct pay_store *store,
                                        const struct pay_store_lease_wish *wish,
                                        const struct pay_store_due *rows, size_t count,
                                        struct pay_err *err)
{
    add_due(store, COLUMNS(hold_columns), rows, count);
    struct pay_pg_params *params = pay_store_more_params(store);
    pay_pg_add_int8(params, wish->lease_us);
    pay_pg_add_int8(params, wish->lease_max_us);
    enum pay_status status = pay_store_exec(store, &hold_leased, err);
    pay_store_results_free(store);
    return status;
}

enum pay_status pay_store_deadline_release(struct pay_store *store,
                                           const struct pay_store_due *rows, size_t count,
                                           struct pay_err *err)
{
    add_due(store, COLUMNS(release_columns), rows, count);
    enum pay_status status = pay_store_exec(store, &release_leased, err);
    pay_store_results_free(store);
    return status;
}

enum pay_status pay_store_deadline_stats(struct pay_store *store,
                                         struct pay_store_deadline_stat ret_stats[],
                                         size_t *ret_count, struct pay_err *err)
{
    (void)pay_store_params(store); /* no parameters */
    enum pay_status status = pay_store_exec(store, &deadline_stats, err);
    if (status == PAY_OK) {
        const struct pay_pg_result *result = pay_store_result(store, 0);
        *ret_count = pay_pg_rows(result);
        for (size_t i = 0; i < *ret_count; i++) {
            bool known = pay_deadline_kind_parse(pay_pg_text(result, i, 0), &ret_stats[i].kind);
            PAY_ASSERT(known);
            ret_stats[i].overdue = pay_pg_int(result, i, 1);
            ret_stats[i].oldest_due_at_us = pay_pg_timestamptz(result, i, 2);
        }
    }
    pay_store_results_free(store);
    return status;
}

enum pay_status pay_store_make_partitions(struct pay_store *store, int *ret_made,
                                          struct pay_err *err)
{
    (void)pay_store_params(store); /* no parameters */
    enum pay_status status = pay_store_exec(store, &make_partitions, err);
    if (status == PAY_OK) {
        *ret_made = (int)pay_pg_int(pay_store_result(store, 0), 0, 0);
    }
    pay_store_results_free(store);
    return status;
}
