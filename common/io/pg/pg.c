/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/pg/pg.h"

#include "common/base/assert.h"
#include "common/base/hash.h"
#include "common/io/pg/pg_internal.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "common/base/banned.h"

#define FORMAT_BINARY 1

const struct pay_pg_stmt pay_pg_stmt_begin = {"pay_begin", "BEGIN", true};
const struct pay_pg_stmt pay_pg_stmt_commit = {"pay_commit", "COMMIT", false};
const struct pay_pg_stmt pay_pg_stmt_rollback = {"pay_rollback", "ROLLBACK", true};
static const struct pay_pg_stmt stmt_now = {"pay_now", "SELECT now()", true};

/* ---- failures ---- */

static void copy_field(const PGresult *result, int field, char *dst, size_t dst_size)
{
    const char *text = PQresultErrorField(result, field);

    (void)snprintf(dst, dst_size, "%s", text != NULL ? text : ""); /* Cut is fine. */
}

enum pay_status pay_pg_fail_result(struct pay_pg *pg, const PGresult *result, const char *stmt,
                                   size_t index, struct pay_err *err)
{
    struct pay_pg_failure *failure = &pg->failure;

    *failure = (struct pay_pg_failure){.stmt = stmt, .index = index, .message = pg->message};
    copy_field(result, PG_DIAG_SQLSTATE, failure->sqlstate, sizeof failure->sqlstate);
    copy_field(result, PG_DIAG_CONSTRAINT_NAME, failure->constraint, sizeof failure->constraint);
    copy_field(result, PG_DIAG_TABLE_NAME, failure->table, sizeof failure->table);
    copy_field(result, PG_DIAG_MESSAGE_PRIMARY, pg->message, sizeof pg->message);
    failure->what = pay_pg_classify(failure->sqlstate, failure->constraint);
    return pay_err_set(err, failure->what.status, pay_pg_sqlstate_code(failure->sqlstate), stmt,
                       "server answered %s (%s)%s%s%s%s", failure->sqlstate,
                       pay_pg_kind_name(failure->what.kind),
                       failure->constraint[0] != 0 ? " on constraint " : "", failure->constraint,
                       failure->table[0] != 0 ? " of table " : "", failure->table);
}

enum pay_status pay_pg_fail_lost(struct pay_pg *pg, const char *stmt, size_t index, bool risky,
                                 const char *why, struct pay_err *err)
{
    enum pay_status status = risky ? PAY_UNKNOWN : PAY_RETRY;
    char text[sizeof err->text];

    (void)snprintf(text, sizeof text, "%s",
                   why); /* Before the disconnect: it may be the connection's. */
    pg->failure = (struct pay_pg_failure){
        .what = {status, PAY_PG_KIND_CONNECTION, false},
        .stmt = stmt,
        .index = index,
        .message = pg->message,
    };
    (void)snprintf(pg->message, sizeof pg->message, "%s", text);
    pay_pg_disconnect(pg);
    return pay_err_set(err, status, 0, stmt, "%s", text);
}

const struct pay_pg_failure *pay_pg_failure(const struct pay_pg *pg)
{
    return &pg->failure;
}

/* ---- queue ---- */

static struct pay_pg_slot *find_slot(struct pay_pg *pg, const struct pay_pg_stmt *stmt)
{
    struct pay_bytes name = {(const uint8_t *)stmt->name, strlen(stmt->name)};
    size_t at = pay_hash_fnv1a(PAY_FNV_START, name) % PAY_PG_STMTS_MAX;

    for (size_t i = 0; i < PAY_PG_STMTS_MAX; i++) {
        struct pay_pg_slot *slot = &pg->slots[(at + i) % PAY_PG_STMTS_MAX];
        if (slot->stmt == NULL) {
            slot->stmt = stmt;
            return slot;
        }
        if (slot->stmt == stmt || strcmp(slot->stmt->name, stmt->name) == 0) {
            /* Two texts under one name would run the wrong one. */
            PAY_ASSERT(strcmp(slot->stmt->sql, stmt->sql) == 0);
            return slot;
        }
    }
    return NULL;
}

/* @param tried the statement may have left: a COMMIT that did may have worked. */
static enum pay_status queue_failed(struct pay_pg *pg, const struct pay_pg_stmt *stmt, bool tried,
                                    struct pay_err *err)
{
    char why[sizeof err->text];

    return pay_pg_fail_lost(pg, stmt->name, pg->queued, tried && stmt == &pay_pg_stmt_commit,
                            pay_pg_conn_text(pg->conn, why, sizeof why), err);
}

static void add_entry(struct pay_pg *pg, struct pay_pg_slot *slot, bool is_prepare)
{
    pg->entries[pg->entry_count++] = (struct pay_pg_entry){slot, is_prepare, pg->queued};
}

static bool send_prepare(struct pay_pg *pg, struct pay_pg_slot *slot,
                         const struct pay_pg_params *params)
{
    Oid types[PAY_PG_PARAMS_MAX];
    size_t count = params != NULL ? params->count : 0;

    for (size_t i = 0; i < count; i++) {
        types[i] = params->items[i].oid;
    }
    if (PQsendPrepare(pg->conn, slot->stmt->name, slot->stmt->sql, (int)count, types) != 1) {
        return false;
    }
    slot->prepared = PAY_PG_PREPARED_SENT;
    add_entry(pg, slot, true);
    return true;
}

static bool send_execute(struct pay_pg *pg, struct pay_pg_slot *slot,
                         const struct pay_pg_params *params)
{
    const char *values[PAY_PG_PARAMS_MAX];
    int lengths[PAY_PG_PARAMS_MAX];
    int formats[PAY_PG_PARAMS_MAX];
    size_t count = params != NULL ? params->count : 0;

    for (size_t i = 0; i < count; i++) {
        const struct pay_pg_param *item = &params->items[i];
        /* The first value of an empty text may come before the buffer has any memory. */
        const char *base = params->values.data != NULL ? (const char *)params->values.data : "";
        values[i] = item->is_null ? NULL : base + item->offset;
        lengths[i] = (int)item->len;
        formats[i] = FORMAT_BINARY;
    }
    if (PQsendQueryPrepared(pg->conn, slot->stmt->name, (int)count, values, lengths, formats,
                            FORMAT_BINARY) != 1) {
        return false;
    }
    add_entry(pg, slot, false);
    return true;
}

static enum pay_status check_queue(struct pay_pg *pg, const struct pay_pg_stmt *stmt,
                                   const struct pay_pg_params *params, struct pay_err *err)
{
    PAY_ASSERT(!pg->sent);                          /* First collect what was sent. */
    PAY_ASSERT(pg->queued == 0 || !pg->has_commit); /* COMMIT is the last of its run. */
    PAY_ASSERT(params == NULL || !params->in_array);
    if (!pay_pg_usable(pg)) {
        return queue_failed(pg, stmt, false, err);
    }
    if (params != NULL && params->values.starved) {
        return pay_err_set(err, PAY_RETRY, 0, stmt->name, "out of memory");
    }
    if (params != NULL && params->values.failed) {
        return pay_err_set(err, PAY_REJECT, 0, stmt->name, "parameters over %zu bytes",
                           params->values.max);
    }
    if (pg->queued == PAY_PG_QUEUE_MAX) {
        return pay_err_set(err, PAY_FATAL, 0, stmt->name, "more than %d statements in one run",
                           PAY_PG_QUEUE_MAX);
    }
    return PAY_OK;
}

static void note_queued(struct pay_pg *pg, const struct pay_pg_stmt *stmt)
{
    if (pg->queued++ == 0) {
        pg->has_begin = pg->has_commit = pg->has_write = false;
        pg->warned = pg->no_transaction = false;
    }
    pg->has_begin = pg->has_begin || stmt == &pay_pg_stmt_begin;
    pg->has_commit = pg->has_commit || stmt == &pay_pg_stmt_commit;
    pg->has_write = pg->has_write || !stmt->read_only;
}

enum pay_status pay_pg_queue(struct pay_pg *pg, const struct pay_pg_stmt *stmt,
                             const struct pay_pg_params *params, struct pay_err *err)
{
    enum pay_status status = check_queue(pg, stmt, params, err);

    if (status != PAY_OK) {
        return status;
    }
    struct pay_pg_slot *slot = find_slot(pg, stmt);
    if (slot == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, stmt->name, "more than %d statements prepared",
                           PAY_PG_STMTS_MAX);
    }
    if (slot->prepared == PAY_PG_PREPARED_NO && !send_prepare(pg, slot, params)) {
        return queue_failed(pg, stmt, false, err);
    }
    if (!send_execute(pg, slot, params)) {
        return queue_failed(pg, stmt, true, err);
    }
    note_queued(pg, stmt);
    return PAY_OK;
}

enum pay_status pay_pg_queue_begin(struct pay_pg *pg, struct pay_err *err)
{
    return pay_pg_queue(pg, &pay_pg_stmt_begin, NULL, err);
}

enum pay_status pay_pg_queue_commit(struct pay_pg *pg, struct pay_err *err)
{
    return pay_pg_queue(pg, &pay_pg_stmt_commit, NULL, err);
}

size_t pay_pg_queued(const struct pay_pg *pg)
{
    return pg->queued;
}

void pay_pg_drop_queue(struct pay_pg *pg)
{
    /* Without a Sync the server has committed nothing of it, and a lost connection rolls back. */
    if (pg->entry_count > 0) {
        pay_pg_disconnect(pg);
    }
}

/* ---- run ---- */

/* Push the output buffer out; answers are read meanwhile, or both sides could wait for each other.
 */
static bool flush(struct pay_pg *pg, int64_t deadline_us)
{
    for (;;) {
        int left = PQflush(pg->conn);
        if (left <= 0) {
            return left == 0;
        }
        if (!pay_pg_wait(pg->conn, POLLIN | POLLOUT, deadline_us) ||
            PQconsumeInput(pg->conn) != 1) {
            return false;
        }
    }
}

/* What is sent may be committed: by its COMMIT, or because a run outside a transaction commits
 * itself. */
static bool is_risky(const struct pay_pg *pg)
{
    return pg->has_commit || (pg->has_write && !pg->has_begin && !pg->in_transaction);
}

enum pay_status pay_pg_send(struct pay_pg *pg, struct pay_err *err)
{
    const char *stmt = pg->entry_count > 0 ? pg->entries[0].slot->stmt->name : "pg send";
    char why[sizeof err->text];

    if (!pay_pg_usable(pg)) {
        return pay_pg_fail_lost(pg, stmt, 0, false, pay_pg_conn_text(pg->conn, why, sizeof why),
                                err);
    }
    PAY_ASSERT(!pg->sent && pg->queued > 0);
    pg->sent = true;
    if (PQpipelineSync(pg->conn) != 1 ||
        !flush(pg, pay_pg_deadline(pg->options.answer_timeout_ms))) {
        return pay_pg_fail_lost(pg, stmt, 0, is_risky(pg),
                                pay_pg_conn_text(pg->conn, why, sizeof why), err);
    }
    return PAY_OK;
}

/* One result of the current entry, NULL at its end or when the connection or the time is over. */
static PGresult *next_result(struct pay_pg *pg, int64_t deadline_us, bool *ret_lost)
{
    while (PQisBusy(pg->conn) == 1) {
        if (!pay_pg_wait(pg->conn, POLLIN, deadline_us) || PQconsumeInput(pg->conn) != 1) {
            *ret_lost = true;
            return NULL;
        }
    }
    PGresult *result = PQgetResult(pg->conn);
    *ret_lost = result == NULL && PQstatus(pg->conn) != CONNECTION_OK;
    return result;
}

static bool is_success(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);

    return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

/* An error after which no more answers come: the server ended the session, or libpq lost it. */
static bool ends_session(const PGresult *result)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

    return severity == NULL || strcmp(severity, "ERROR") != 0;
}

/* What one run knows while its answers come in. */
struct collect {
    struct pay_pg_result **results; /* NULL: not wanted. */
    int64_t deadline_us;
    enum pay_status status; /* The first failure. */
    struct pay_err *err;
    bool lost;
};

static void note_prepared(struct pay_pg_entry *entry, const PGresult *result)
{
    if (entry->is_prepare) {
        entry->slot->prepared = is_success(result) ? PAY_PG_PREPARED_YES : PAY_PG_PREPARED_NO;
    }
}

static enum pay_status fail_commit(struct pay_pg *pg, struct collect *run, enum pay_status status,
                                   const char *why)
{
    pg->failure = (struct pay_pg_failure){
        .what = {status, PAY_PG_KIND_UNLISTED, status != PAY_RETRY},
        .stmt = pay_pg_stmt_commit.name,
        .index = pg->queued - 1,
        .message = pg->message,
    };
    (void)snprintf(pg->message, sizeof pg->message, "%s", why);
    return pay_err_set(run->err, status, 0, pay_pg_stmt_commit.name, "%s", why);
}

/* COMMIT can be answered without an error and yet not be what was asked for. */
static enum pay_status check_commit(struct pay_pg *pg, struct collect *run, PGresult *result)
{
    if (strcmp(PQcmdStatus(result), "COMMIT") != 0) {
        return fail_commit(pg, run, PAY_RETRY, "the server rolled back instead");
    }
    if (pg->no_transaction) {
        return fail_commit(pg, run, PAY_FATAL, "no transaction was open");
    }
    if (pg->warned) {
        return fail_commit(pg, run, PAY_UNKNOWN, "committed here, but maybe not on a standby");
    }
    return PAY_OK;
}

static void take_error(struct pay_pg *pg, struct collect *run, const struct pay_pg_entry *entry,
                       const PGresult *result)
{
    const char *stmt = entry->slot->stmt->name;
    size_t index = entry->index;
    char why[sizeof run->err->text];

    if (run->status != PAY_OK || PQresultStatus(result) != PGRES_FATAL_ERROR) {
        return; /* Skipped because of an earlier one. */
    }
    run->lost = ends_session(result);
    run->status = pay_pg_fail_result(pg, result, stmt, index, run->err);
    if (!run->lost) {
        return;
    }
    if (pg->failure.sqlstate[0] != 0) {
        (void)snprintf(why, sizeof why, "server ended the session with %s", pg->failure.sqlstate);
    } else {
        (void)pay_pg_conn_text(pg->conn, why, sizeof why);
    }
    run->status = pay_pg_fail_lost(pg, stmt, index, is_risky(pg), why, run->err);
    copy_field(result, PG_DIAG_SQLSTATE, pg->failure.sqlstate, sizeof pg->failure.sqlstate);
}

/* Takes or frees the result. */
static void take_result(struct pay_pg *pg, struct collect *run, struct pay_pg_entry *entry,
                        PGresult *result)
{
    note_prepared(entry, result);
    if (!is_success(result)) {
        take_error(pg, run, entry, result);
        PQclear(result);
        return;
    }
    if (entry->slot->stmt == &pay_pg_stmt_commit && !entry->is_prepare && run->status == PAY_OK) {
        run->status = check_commit(pg, run, result);
    }
    if (run->results == NULL || entry->is_prepare || run->results[entry->index] != NULL) {
        PQclear(result);
        return;
    }
    run->results[entry->index] = pay_pg_wrap(result);
}

/* No answer, by time or because the connection is gone; an earlier answered failure stays the
 * first. */
static void take_loss(struct pay_pg *pg, struct collect *run, const char *stmt, size_t index)
{
    char why[sizeof run->err->text];
    bool late = PQstatus(pg->conn) == CONNECTION_OK;

    if (run->status == PAY_OK) {
        run->status = pay_pg_fail_lost(
            pg, stmt, index, is_risky(pg),
            late ? "no answer in time" : pay_pg_conn_text(pg->conn, why, sizeof why), run->err);
    }
}

static void collect_entry(struct pay_pg *pg, struct collect *run, struct pay_pg_entry *entry)
{
    const char *stmt = entry->slot->stmt->name; /* Slots are emptied with the connection. */
    size_t index = entry->index;

    while (!run->lost) {
        PGresult *result = next_result(pg, run->deadline_us, &run->lost);
        if (run->lost) {
            take_loss(pg, run, stmt, index);
            return;
        }
        if (result == NULL) {
            return;
        }
        take_result(pg, run, entry, result);
    }
}

/* The answer of Sync: the server is ready again, and a run outside a transaction has committed. */
static void collect_sync(struct pay_pg *pg, struct collect *run)
{
    PGresult *result = next_result(pg, run->deadline_us, &run->lost);

    if (run->lost || result == NULL || PQresultStatus(result) != PGRES_PIPELINE_SYNC) {
        /* Also an error that only this implicit commit met. */
        if (result != NULL && run->status == PAY_OK) {
            run->status = pay_pg_fail_result(pg, result, "pg sync", pg->queued - 1, run->err);
        }
        run->lost = true;
        take_loss(pg, run, "pg sync", pg->queued - 1);
    }
    PQclear(result);
}

/* A plan or a name that the session holds does not fit the database any more: a new session helps.
 */
static bool is_stale(const char *sqlstate)
{
    return strcmp(sqlstate, "0A000") == 0 || strcmp(sqlstate, "26000") == 0;
}

static void end_run(struct pay_pg *pg, const struct collect *run)
{
    bool stale = run->status != PAY_OK && is_stale(pg->failure.sqlstate);

    pg->entry_count = 0;
    pg->queued = 0;
    pg->sent = false;
    if (run->lost || stale) {
        pay_pg_disconnect(pg);
        return;
    }
    PGTransactionStatusType now = PQtransactionStatus(pg->conn);
    pg->in_transaction = now == PQTRANS_INTRANS || now == PQTRANS_INERROR;
}

enum pay_status pay_pg_run(struct pay_pg *pg, struct pay_pg_result *ret_results[], size_t count,
                           struct pay_err *err)
{
    struct pay_pg_result *results[PAY_PG_QUEUE_MAX] = {NULL};
    struct pay_err unwanted;

    PAY_ASSERT(ret_results == NULL || count == pg->queued || !pay_pg_usable(pg));
    if (!pg->sent) {
        enum pay_status status = pay_pg_send(pg, err);
        if (status != PAY_OK) {
            return status;
        }
    }
    struct collect run = {
        .results = ret_results != NULL ? results : NULL,
        .deadline_us = pay_pg_deadline(pg->options.answer_timeout_ms),
        .err = err != NULL ? err : &unwanted,
    };
    for (size_t i = 0, all = pg->entry_count; i < all && !run.lost; i++) {
        collect_entry(pg, &run, &pg->entries[i]);
    }
    if (!run.lost) {
        collect_sync(pg, &run);
    }
    end_run(pg, &run);
    if (run.status != PAY_OK) {
        pay_pg_results_free(results, PAY_PG_QUEUE_MAX);
        return run.status;
    }
    for (size_t i = 0; ret_results != NULL && i < count; i++) {
        ret_results[i] = results[i];
    }
    return PAY_OK;
}

enum pay_status pay_pg_exec(struct pay_pg *pg, const struct pay_pg_stmt *stmt,
                            const struct pay_pg_params *params, struct pay_pg_result **ret_result,
                            struct pay_err *err)
{
    PAY_ASSERT(pg->queued == 0);
    enum pay_status status = pay_pg_queue(pg, stmt, params, err);

    if (status != PAY_OK) {
        return status;
    }
    return pay_pg_run(pg, ret_result, 1, err);
}

/* ---- transactions ---- */

enum pay_status pay_pg_begin(struct pay_pg *pg, struct pay_err *err)
{
    return pay_pg_exec(pg, &pay_pg_stmt_begin, NULL, NULL, err);
}

enum pay_status pay_pg_commit(struct pay_pg *pg, struct pay_err *err)
{
    return pay_pg_exec(pg, &pay_pg_stmt_commit, NULL, NULL, err);
}

void pay_pg_rollback(struct pay_pg *pg)
{
    struct pay_pg_failure failure = pg->failure; /* What led here stays readable. */

    pay_pg_drop_queue(pg);
    if (!pay_pg_usable(pg) || !pg->in_transaction) {
        return;
    }
    if (pay_pg_exec(pg, &pay_pg_stmt_rollback, NULL, NULL, NULL) != PAY_OK) {
        pay_pg_disconnect(pg);
    }
    pg->failure = failure;
}

bool pay_pg_in_transaction(const struct pay_pg *pg)
{
    return pg->in_transaction;
}

enum pay_status pay_pg_server_now(struct pay_pg *pg, int64_t *ret_us, struct pay_err *err)
{
    struct pay_pg_result *result = NULL;
    enum pay_status status = pay_pg_exec(pg, &stmt_now, NULL, &result, err);

    if (status == PAY_OK) {
        *ret_us = pay_pg_timestamptz(result, 0, 0);
        pay_pg_result_free(result);
    }
    return status;
}
