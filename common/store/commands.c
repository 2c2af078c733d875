/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/commands.h"

#include <stddef.h>

#include "common/store/statement.h"

#include "common/base/banned.h"

#define ROW(member_) offsetof(struct pay_store_command_row, member_)
#define ASK(member_) offsetof(struct pay_store_command_ask, member_)

static const struct pay_pg_stmt insert_command = {
    .name = "command_insert",
    .sql = "INSERT INTO payfact.command (caller, command_id, sha256, type, payment_id, merchant_id,"
           " key_id, status, reason_code, answer, received_at, decided_at)"
           " SELECT u.*, now() FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[],"
           " $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bytea[],"
           " $11::timestamptz[]) AS u ON CONFLICT DO NOTHING",
};

static const struct pay_column insert_columns[] = {
    {PAY_COLUMN_STR, ROW(caller), NULL},          {PAY_COLUMN_STR, ROW(command_id), NULL},
    {PAY_COLUMN_BYTES, ROW(sha256), NULL},        {PAY_COLUMN_CSTR, ROW(type), NULL},
    {PAY_COLUMN_STR, ROW(payment_id), NULL},      {PAY_COLUMN_STR, ROW(merchant_id), NULL},
    {PAY_COLUMN_STR, ROW(key_id), NULL},          {PAY_COLUMN_CSTR, ROW(status), NULL},
    {PAY_COLUMN_CSTR, ROW(reason_code), NULL},    {PAY_COLUMN_BYTES, ROW(answer), NULL},
    {PAY_COLUMN_TIME, ROW(received_at_us), NULL},
};

static const struct pay_pg_stmt find_command = {
    .name = "command_find",
    .sql = "SELECT u.n - 1, c.sha256::bytea, c.answer, c.payment_id FROM unnest($1::text[],"
           " $2::text[]) WITH ORDINALITY AS u(caller, id, n)"
           " JOIN payfact.command AS c ON c.caller = u.caller AND c.command_id = u.id",
    .read_only = true,
};

static const struct pay_column find_columns[] = {
    {PAY_COLUMN_STR, ASK(caller), NULL},
    {PAY_COLUMN_STR, ASK(command_id), NULL},
};

static const struct pay_pg_stmt pause_route = {
    .name = "route_pause",
    .sql = "INSERT INTO payfact.route_pause (psp, psp_account, method, paused_by, reason_code,"
           " paused_at) VALUES ($1, $2, $3, $4, $5, now()) ON CONFLICT DO NOTHING",
};

static const struct pay_pg_stmt resume_route = {
    .name = "route_resume",
    .sql = "DELETE FROM payfact.route_pause WHERE psp = $1 AND psp_account = $2 AND method = $3",
};

enum pay_status pay_store_command_add(struct pay_store *store,
                                      const struct pay_store_command_row *const *rows, size_t count,
                                      struct pay_err *err)
{
    return pay_store_queue_rows(store, &insert_command, COLUMNS(insert_columns),
                                (const void *const *)rows, count, err);
}

enum pay_status pay_store_command_find(struct pay_store *store,
                                       struct pay_store_command_ask *const *asks, size_t count,
                                       size_t *ret_index, struct pay_err *err)
{
    *ret_index = pay_store_queued(store);
    if (count == 0) {
        return PAY_OK;
    }
    pay_store_add_columns(store, COLUMNS(find_columns), (const void *const *)asks, count);
    return pay_store_queue(store, &find_command, PAY_STORE_ANY_COUNT, err);
}

void pay_store_command_found(struct pay_store *store, size_t index, struct pay_arena *arena,
                             struct pay_store_command_ask *const *asks, size_t count)
{
    if (count == 0) {
        return;
    }
    const struct pay_pg_result *result = pay_store_result(store, index);
    for (size_t row = 0; row < pay_pg_rows(result); row++) {
        struct pay_store_command_ask *ask = asks[pay_pg_int(result, row, 0)];
        ask->found = true;
        ask->sha256 = pay_store_read_bytes(arena, result, row, 1);
        ask->answer = pay_store_read_bytes(arena, result, row, 2);
        ask->payment_id = pay_store_read_str(arena, result, row, 3);
    }
}

enum pay_status pay_store_route_pause(struct pay_store *store,
                                      const struct pay_store_pause_row *row, struct pay_err *err)
{
    struct pay_pg_params *params = pay_store_params(store);
    pay_pg_add_text(params, row->psp);
    pay_pg_add_text(params, row->psp_account);
    pay_pg_add_text(params, row->method);
    if (row->pause) {
        pay_pg_add_text(params, row->principal);
        pay_pg_add_text(params, row->reason_code);
    }
    return pay_store_queue(store, row->pause ? &pause_route : &resume_route, PAY_STORE_ANY_COUNT,
                           err);
}
