/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/gate.h"

#include <stddef.h>

#include "common/store/statement.h"

#include "common/base/banned.h"

#define ROW(member_) offsetof(struct pay_store_gate_row, member_)
#define GATE(member_) offsetof(struct pay_gate, member_)

static const struct pay_pg_stmt insert_gate = {
    .name = "gate_insert",
    .sql = "INSERT INTO payfact.psp_request (job_id, payment_id, action_id, kind, digest,"
           " not_after, closed_at)"
           " SELECT u.job_id, left(u.action_id, 26), u.action_id, u.kind, u.digest, u.not_after,"
           " u.closed_at FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[],"
           " $5::timestamptz[], $6::timestamptz[])"
           " AS u(job_id, action_id, kind, digest, not_after, closed_at)",
};

static const struct pay_column insert_columns[] = {
    {PAY_COLUMN_CHARS, ROW(gate.job_id), NULL},
    {PAY_COLUMN_CHARS, ROW(gate.action_id), NULL},
    {PAY_COLUMN_NAME, ROW(gate.kind), pay_column_job_kind},
    {PAY_COLUMN_BYTES, ROW(digest), NULL},
    {PAY_COLUMN_TIME, ROW(gate.not_after_us), NULL},
    {PAY_COLUMN_TIME, ROW(gate.closed_at_us), NULL},
};

static const struct pay_pg_stmt close_gate = {
    .name = "gate_close",
    .sql = "UPDATE payfact.psp_request AS g SET closed_at = now()"
           " FROM unnest($1::text[], $2::timestamptz[], $3::int4[]) AS u(job_id, sending_at, sends)"
           " WHERE g.job_id = u.job_id AND g.closed_at IS NULL AND g.sends = u.sends"
           " AND g.sending_at IS NOT DISTINCT FROM u.sending_at",
};

static const struct pay_column close_columns[] = {
    {PAY_COLUMN_CHARS, GATE(job_id), NULL},
    {PAY_COLUMN_TIME, GATE(sending_at_us), NULL},
    {PAY_COLUMN_INT4, GATE(sends), NULL},
};

/* The statement of data-model.md, "The gate of money actions". The request is kept by the same one:
 * who dies behind the gate leaves what a replay needs, or has not passed. */
static const struct pay_pg_stmt pass_gate = {
    .name = "gate_pass",
    .sql = "UPDATE payfact.psp_request SET sending_at = now(), last_send_at = now(), sent_by = $3,"
           " sends = sends + 1, endpoint = $4, request = $5, request_key_id = $6, replay_until ="
           " CASE WHEN $5::bytea IS NOT NULL THEN"
           " least(now() + $7 * interval '1 microsecond', $8::timestamptz) END"
           " WHERE job_id = $1 AND digest = $2 AND sending_at IS NULL"
           " AND closed_at IS NULL AND now() < not_after RETURNING sends, now()",
};

static const struct pay_pg_stmt read_gate = {
    .name = "gate_read",
    .sql =
        "SELECT coalesce(digest::bytea = $2, false), sending_at IS NOT NULL, closed_at IS NOT NULL,"
        " now() >= not_after, finished_at IS NOT NULL,"
        " coalesce(closed_at IS NULL AND sending_at IS NOT NULL AND request IS NOT NULL"
        " AND now() < replay_until, false),"
        " sent_by, sends, not_after, last_send_at, replay_until, endpoint, request,"
        " request_key_id, outcome, outcome_key_id, now()"
        " FROM payfact.psp_request WHERE job_id = $1",
    .read_only = true,
};

/* last_send_at and sends stay: a freed send was still one that could have been, and counts. */
static const struct pay_pg_stmt release_gate = {
    .name = "gate_release",
    .sql = "UPDATE payfact.psp_request SET sending_at = NULL, sent_by = NULL WHERE job_id = $1"
           " AND sent_by = $2 AND sends = $3 AND finished_at IS NULL",
};

/* Not beside a call that may still be on its way: that one could then not free the gate, and a send
 * that certainly did not leave would stay unproved for as long as the PSP is away. */
static const struct pay_pg_stmt replay_gate = {
    .name = "gate_replay",
    .sql = "UPDATE payfact.psp_request SET sends = sends + 1, last_send_at = now()"
           " WHERE job_id = $1 AND sending_at IS NOT NULL AND request IS NOT NULL"
           " AND closed_at IS NULL AND now() < replay_until AND (finished_at IS NOT NULL"
           " OR now() >= last_send_at + $2 * interval '1 microsecond') RETURNING sends, now()",
};

/* One statement, so that a replay comes before it (then the sends differ) or not at all. */
static const struct pay_pg_stmt end_replay = {
    .name = "gate_end_replay",
    .sql = "UPDATE payfact.psp_request SET replay_until = now()"
           " WHERE job_id = $1 AND sent_by = $2 AND sends = $3",
};

static const struct pay_pg_stmt finish_gate = {
    .name = "gate_finish",
    .sql = "UPDATE payfact.psp_request SET finished_at = now(), outcome = $2, outcome_key_id = $3"
           " WHERE job_id = $1 AND sending_at IS NOT NULL AND finished_at IS NULL",
};

enum pay_status pay_store_gate_add(struct pay_store *store,
                                   const struct pay_store_gate_row *const *rows, size_t count,
                                   struct pay_err *err)
{
    return pay_store_queue_rows(store, &insert_gate, COLUMNS(insert_columns),
                                (const void *const *)rows, count, err);
}

enum pay_status pay_store_gate_close(struct pay_store *store, const struct pay_gate *const *gates,
                                     size_t count, struct pay_err *err)
{
    return pay_store_queue_rows(store, &close_gate, COLUMNS(close_columns),
                                (const void *const *)gates, count, err);
}

/* A statement that answers with the send, or with no row. */
static enum pay_status exec_send(struct pay_store *store, const struct pay_pg_stmt *stmt,
                                 struct pay_store_gate_send *ret_send, struct pay_err *err)
{
    enum pay_status status = pay_store_exec(store, stmt, err);
    if (status == PAY_OK) {
        const struct pay_pg_result *result = pay_store_result(store, 0);
        *ret_send = (struct pay_store_gate_send){.send_no = 0};
        if (pay_pg_rows(result) > 0) {
            ret_send->send_no = (int)pay_pg_int(result, 0, 0);
            ret_send->now_us = pay_pg_timestamptz(result, 0, 1);
        }
    }
    pay_store_results_free(store);
    return status;
}

/* A statement that changes one row, or none. */
static enum pay_status exec_one(struct pay_store *store, const struct pay_pg_stmt *stmt,
                                bool *ret_done, struct pay_err *err)
{
    enum pay_status status = pay_store_exec(store, stmt, err);
    if (status == PAY_OK) {
        *ret_done = pay_pg_affected(pay_store_result(store, 0)) == 1;
    }
    pay_store_results_free(store);
    return status;
}

static void add_request(struct pay_pg_params *params, const struct pay_store_gate_request *request)
{
    pay_pg_add_text(params, request->endpoint);
    if (request->sealed.ptr == NULL) {
        pay_pg_add_null(params, PAY_PG_BYTEA);
        pay_pg_add_null(params, PAY_PG_TEXT);
    } else {
        pay_pg_add_bytea(params, request->sealed);
        pay_pg_add_text(params, request->key_id);
    }
    pay_pg_add_int8(params, request->replay_lifetime_us);
    if (request->expires_at_us == 0) {
        pay_pg_add_null(params, PAY_PG_TIMESTAMPTZ);
    } else {
        pay_pg_add_timestamptz(params, request->expires_at_us);
    }
}

enum pay_status pay_store_gate_pass(struct pay_store *store, struct pay_str job_id,
                                    struct pay_bytes digest,
                                    const struct pay_store_gate_request *request,
                                    struct pay_store_gate_send *ret_send, struct pay_err *err)
{
    struct pay_pg_params *params = pay_store_params(store);
    pay_pg_add_text(params, job_id);
    pay_pg_add_bytea(params, digest);
    pay_pg_add_text(params, request->me);
    add_request(params, request);
    return exec_send(store, &pass_gate, ret_send, err);
}

static void read_state(const struct pay_pg_result *result, struct pay_arena *arena,
                       struct pay_store_gate_state *state)
{
    *state = (struct pay_store_gate_state){
        .found = true,
        .same_digest = pay_pg_bool(result, 0, 0),
        .sending = pay_pg_bool(result, 0, 1),
        .closed = pay_pg_bool(result, 0, 2),
        .late = pay_pg_bool(result, 0, 3),
        .finished = pay_pg_bool(result, 0, 4),
        .may_replay = pay_pg_bool(result, 0, 5),
        .sent_by = pay_store_read_str(arena, result, 0, 6),
        .sends = (int)pay_pg_int(result, 0, 7),
        .not_after_us = pay_pg_timestamptz(result, 0, 8),
        .last_send_at_us = pay_pg_timestamptz_or(result, 0, 9, 0),
        .replay_until_us = pay_pg_timestamptz_or(result, 0, 10, 0),
        .endpoint = pay_store_read_str(arena, result, 0, 11),
        .request = pay_store_read_bytes(arena, result, 0, 12),
        .request_key_id = pay_store_read_str(arena, result, 0, 13),
        .outcome = pay_store_read_bytes(arena, result, 0, 14),
        .outcome_key_id = pay_store_read_str(arena, result, 0, 15),
        .now_us = pay_pg_timestamptz(result, 0, 16),
    };
}

enum pay_status pay_store_gate_read(struct pay_store *store, struct pay_str job_id,
                                    struct pay_bytes digest, struct pay_arena *arena,
                                    struct pay_store_gate_state *ret_state, struct pay_err *err)
{
    struct pay_pg_params *params = pay_store_params(store);
    pay_pg_add_text(params, job_id);
    pay_pg_add_bytea(params, digest);
    enum pay_status status = pay_store_exec(store, &read_gate, err);
    if (status == PAY_OK) {
        *ret_state = (struct pay_store_gate_state){.found = false};
        if (pay_pg_rows(pay_store_result(store, 0)) == 1) {
            read_state(pay_store_result(store, 0), arena, ret_state);
        }
    }
    pay_store_results_free(store);
    return status;
}

enum pay_status pay_store_gate_release(struct pay_store *store, struct pay_str job_id,
                                       struct pay_str me, int send_no, bool *ret_freed,
                                       struct pay_err *err)
{
    struct pay_pg_params *params = pay_store_params(store);
    pay_pg_add_text(params, job_id);
    pay_pg_add_text(params, me);
    pay_pg_add_int4(params, send_no);
    return exec_one(store, &release_gate, ret_freed, err);
}

enum pay_status pay_store_gate_replay(struct pay_store *store, struct pay_str job_id,
                                      int64_t call_budget_us, struct pay_store_gate_send *ret_send,
                                      struct pay_err *err)
{
    struct pay_pg_params *params = pay_store_params(store);
    pay_pg_add_text(params, job_id);
    pay_pg_add_int8(params, call_budget_us);
    return exec_send(store, &replay_gate, ret_send, err);
}

enum pay_status pay_store_gate_end_replay(struct pay_store *store, struct pay_str job_id,
                                          struct pay_str me, int send_no, bool *ret_only_send,
                                          struct pay_err *err)
{
    struct pay_pg_params *params = pay_store_params(store);
    pay_pg_add_text(params, job_id);
    pay_pg_add_text(params, me);
    pay_pg_add_int4(params, send_no);
    return exec_one(store, &end_replay, ret_only_send, err);
}

enum pay_status pay_store_gate_finish(struct pay_store *store, struct pay_str job_id,
                                      struct pay_bytes sealed, struct pay_str key_id,
                                      bool *ret_saved, struct pay_err *err)
{
    struct pay_pg_params *params = pay_store_params(store);
    pay_pg_add_text(params, job_id);
    pay_pg_add_bytea(params, sealed);
    pay_pg_add_text(params, key_id);
    return exec_one(store, &finish_gate, ret_saved, err);
}
