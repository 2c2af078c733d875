/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/ask.h"

#include <string.h>

#include "common/store/statement.h"

#include "common/base/banned.h"

#define OF_ATTEMPT                                                                      \
    "SELECT a.attempt_id, a.payment_id, o.merchant_id, a.psp, a.psp_account, a.method," \
    " a.status, o.capture_mode, a.amount_minor, a.currency, "
#define LATEST_JOB(id_)                                                              \
    " (SELECT g.job_id FROM payfact.psp_request g WHERE g.payment_id = a.payment_id" \
    "  AND g.action_id = " id_ " AND g.sending_at IS NOT NULL"                       \
    "  ORDER BY g.last_send_at DESC LIMIT 1),"
#define REFERENCES                                                             \
    " (SELECT array_agg(r.kind::text ORDER BY r.created_at, r.kind) FROM"      \
    "  payfact.attempt_reference r WHERE r.attempt_id = a.attempt_id),"        \
    " (SELECT array_agg(r.reference::text ORDER BY r.created_at, r.kind) FROM" \
    "  payfact.attempt_reference r WHERE r.attempt_id = a.attempt_id)"

static const struct pay_pg_stmt load_stmt = {
    .name = "ask_load",
    .sql = OF_ATTEMPT "a.unknown_since, a.submitted_at, a.created_at," LATEST_JOB("a.attempt_id")
        REFERENCES ", a.attempt_id, 0::int8"
                   " FROM payfact.payment_attempt a JOIN payfact.payment_order o USING (payment_id)"
                   " WHERE a.attempt_id = ANY ($1::text[])",
    .read_only = true,
};

static const struct pay_pg_stmt load_actions_stmt = {
    .name = "ask_load_actions",
    .sql =
        OF_ATTEMPT "x.unknown_since, NULL::timestamptz, x.created_at," LATEST_JOB("x.id") REFERENCES
    ", x.id, x.amount_minor FROM (SELECT capture_id AS id, attempt_id, amount_minor,"
    " unknown_since, created_at FROM payfact.capture_order WHERE capture_id = ANY ($1::text[])"
    " UNION ALL SELECT refund_id, attempt_id, amount_minor, unknown_since, created_at"
    " FROM payfact.refund_order WHERE refund_id = ANY ($1::text[])) AS x"
    " JOIN payfact.payment_attempt a ON a.attempt_id = x.attempt_id"
    " JOIN payfact.payment_order o ON o.payment_id = a.payment_id",
    .read_only = true,
};

enum ask_column {
    ASK_ATTEMPT,
    ASK_PAYMENT,
    ASK_MERCHANT,
    ASK_PSP,
    ASK_ACCOUNT,
    ASK_METHOD,
    ASK_STATUS,
    ASK_CAPTURE,
    ASK_AMOUNT,
    ASK_CURRENCY,
    ASK_UNKNOWN_SINCE,
    ASK_SUBMITTED,
    ASK_CREATED,
    ASK_JOB,
    ASK_REF_KINDS,
    ASK_REFS,
    ASK_SUBJECT,
    ASK_SUBJECT_AMOUNT
};

static const struct pay_pg_stmt unknown_stmt = {
    .name = "ask_unknown",
    .sql = "SELECT a.psp, a.psp_account, count(*),"
           " (extract(epoch FROM max(now() - a.unknown_since)) * 1000000)::int8"
           " FROM payfact.payment_deadline d"
           " JOIN payfact.payment_attempt a ON a.attempt_id = d.aggregate_id"
           " WHERE d.kind = 'QUERY' AND a.unknown_since IS NOT NULL"
           " GROUP BY a.psp, a.psp_account ORDER BY count(*) DESC LIMIT $1::int8",
    .read_only = true,
};

/* A case that a person closed while the row stays dead is not opened again for that row. */
static const struct pay_pg_stmt dead_stmt = {
    .name = "ask_dead",
    .sql = "SELECT o.key, max(o.dead_at) FROM payfact.payment_outbox AS o"
           " JOIN payfact.payment_order AS p ON p.payment_id = o.key WHERE o.dead_at IS NOT NULL"
           " GROUP BY o.key HAVING NOT EXISTS (SELECT FROM payfact.manual_case AS c"
           " WHERE c.payment_id = o.key AND c.kind = 'DEAD_EVENT'"
           " AND (c.status = 'OPEN' OR c.opened_at >= max(o.dead_at)))"
           " UNION ALL SELECT c.payment_id, now() FROM payfact.manual_case AS c"
           " WHERE c.status = 'OPEN' AND c.kind = 'DEAD_EVENT' AND c.payment_id IS NOT NULL"
           " AND NOT EXISTS (SELECT FROM payfact.payment_outbox AS o"
           " WHERE o.key = c.payment_id AND o.dead_at IS NOT NULL) LIMIT $1::int8",
    .read_only = true,
};

static void read_references(const struct pay_pg_result *rows, size_t at, struct pay_arena *arena,
                            struct pay_store_ask *ask)
{
    struct pay_pg_array kinds = pay_pg_array_of(rows, at, ASK_REF_KINDS);
    struct pay_pg_array texts = pay_pg_array_of(rows, at, ASK_REFS);
    while (kinds.count > 0 && texts.count > 0) {
        enum pay_reference_kind kind = PAY_REF_OTHER;
        (void)pay_reference_kind_parse(pay_pg_array_text(&kinds), &kind); /* A newer kind: OTHER. */
        const struct pay_str text = pay_arena_str(arena, pay_pg_array_text(&texts));
        if (ask->reference_count < PAY_STORE_ASK_REFERENCES_MAX && text.ptr != NULL) {
            ask->references[ask->reference_count++] = (struct pay_reference){kind, text};
        }
        if (ask->provider_reference.ptr == NULL &&
            (kind == PAY_REF_INTENT || kind == PAY_REF_ORDER)) {
            ask->provider_reference = text;
        }
    }
}

static void read_row(const struct pay_pg_result *rows, size_t at, struct pay_arena *arena,
                     struct pay_store_ask *ask)
{
    pay_store_read_chars(ask->attempt_id, sizeof ask->attempt_id, rows, at, ASK_ATTEMPT);
    pay_store_read_chars(ask->payment_id, sizeof ask->payment_id, rows, at, ASK_PAYMENT);
    pay_store_read_chars(ask->merchant_id, sizeof ask->merchant_id, rows, at, ASK_MERCHANT);
    pay_store_read_chars(ask->psp, sizeof ask->psp, rows, at, ASK_PSP);
    pay_store_read_chars(ask->psp_account, sizeof ask->psp_account, rows, at, ASK_ACCOUNT);
    pay_store_read_chars(ask->method, sizeof ask->method, rows, at, ASK_METHOD);
    (void)pay_attempt_status_parse(pay_pg_text(rows, at, ASK_STATUS), &ask->status); /* A domain. */
    (void)pay_capture_mode_parse(pay_pg_text(rows, at, ASK_CAPTURE), &ask->capture_mode);
    ask->amount.amount_minor = pay_pg_int(rows, at, ASK_AMOUNT);
    pay_store_read_chars(ask->amount.currency, sizeof ask->amount.currency, rows, at, ASK_CURRENCY);
    ask->unknown_since_us = pay_pg_timestamptz_or(rows, at, ASK_UNKNOWN_SINCE, 0);
    ask->submitted_at_us = pay_pg_timestamptz_or(rows, at, ASK_SUBMITTED, 0);
    ask->created_at_us = pay_pg_timestamptz(rows, at, ASK_CREATED);
    pay_store_read_chars(ask->about_job_id, sizeof ask->about_job_id, rows, at, ASK_JOB);
    pay_store_read_chars(ask->action_id, sizeof ask->action_id, rows, at, ASK_SUBJECT);
    ask->action_amount_minor = pay_pg_int(rows, at, ASK_SUBJECT_AMOUNT);
    if (strcmp(ask->action_id, ask->attempt_id) == 0) {
        ask->action_id[0] = '\0';
    }
    read_references(rows, at, arena, ask);
}

/** Where the rows of one load go. */
struct target {
    const struct pay_str *ids;
    struct pay_store_ask *rows;
    size_t count;
    struct pay_arena *arena;
};

/* The same attempt may have two deadlines in one lease. */
static void give_row(const struct pay_pg_result *rows, size_t at, const struct target *target)
{
    const struct pay_str id = pay_pg_text(rows, at, ASK_SUBJECT);
    for (size_t i = 0; i < target->count; i++) {
        if (pay_str_eq(target->ids[i], id)) {
            read_row(rows, at, target->arena, &target->rows[i]);
        }
    }
}

static enum pay_status load(struct pay_store *store, const struct pay_pg_stmt *stmt,
                            const struct target *target, struct pay_err *err)
{
    pay_pg_add_text_array(pay_store_params(store), target->ids, target->count);
    const enum pay_status status = pay_store_exec(store, stmt, err);
    if (status != PAY_OK) {
        return status;
    }
    const struct pay_pg_result *rows = pay_store_result(store, 0);
    for (size_t i = 0; i < pay_pg_rows(rows); i++) {
        give_row(rows, i, target);
    }
    pay_store_results_free(store);
    return PAY_OK;
}

enum pay_status pay_store_ask_load(struct pay_store *store, const struct pay_str *ids, size_t count,
                                   struct pay_arena *arena, struct pay_store_ask *ret_rows,
                                   struct pay_err *err)
{
    const struct target target = {ids, ret_rows, count, arena};
    bool is_all_found = true;
    memset(ret_rows, 0, count * sizeof *ret_rows);
    const enum pay_status status = load(store, &load_stmt, &target, err);
    for (size_t i = 0; i < count; i++) {
        is_all_found = is_all_found && ret_rows[i].attempt_id[0] != '\0';
    }
    /* Most are attempts: the other tables are asked only for what is left. */
    return status != PAY_OK || is_all_found ? status
                                            : load(store, &load_actions_stmt, &target, err);
}

enum pay_status pay_store_ask_unknown(struct pay_store *store, size_t max,
                                      struct pay_store_unknown *ret_rows, size_t *ret_count,
                                      struct pay_err *err)
{
    pay_pg_add_int8(pay_store_params(store), (int64_t)max);
    const enum pay_status status = pay_store_exec(store, &unknown_stmt, err);
    if (status != PAY_OK) {
        return status;
    }
    const struct pay_pg_result *rows = pay_store_result(store, 0);
    *ret_count = pay_pg_rows(rows) < max ? pay_pg_rows(rows) : max;
    for (size_t i = 0; i < *ret_count; i++) {
        pay_store_read_chars(ret_rows[i].psp, PAY_NAME_SIZE, rows, i, 0);
        pay_store_read_chars(ret_rows[i].psp_account, PAY_NAME_SIZE, rows, i, 1);
        ret_rows[i].count = pay_pg_int(rows, i, 2);
        ret_rows[i].oldest_us = pay_pg_int(rows, i, 3);
    }
    pay_store_results_free(store);
    return PAY_OK;
}

enum pay_status pay_store_ask_dead(struct pay_store *store, size_t max,
                                   struct pay_store_dead_subject *ret_rows, size_t *ret_count,
                                   struct pay_err *err)
{
    pay_pg_add_int8(pay_store_params(store), (int64_t)max);
    const enum pay_status status = pay_store_exec(store, &dead_stmt, err);
    if (status != PAY_OK) {
        return status;
    }
    const struct pay_pg_result *rows = pay_store_result(store, 0);
    *ret_count = pay_pg_rows(rows) < max ? pay_pg_rows(rows) : max;
    for (size_t i = 0; i < *ret_count; i++) {
        pay_store_read_chars(ret_rows[i].payment_id, PAY_PAYMENT_ID_SIZE, rows, i, 0);
        ret_rows[i].since_us = pay_pg_timestamptz(rows, i, 1);
    }
    pay_store_results_free(store);
    return PAY_OK;
}
