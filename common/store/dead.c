/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/dead.h"

#include <stddef.h>
#include <string.h>

#include "common/store/statement.h"

#include "common/base/banned.h"

/* clang-format off */
#define T(field_) {#field_, PAY_EXPLAIN_TEXT, offsetof(struct pay_dead_thing, field_)}
#define I(field_) {#field_, PAY_EXPLAIN_INT, offsetof(struct pay_dead_thing, field_)}
#define D(field_) {#field_, PAY_EXPLAIN_TIME, offsetof(struct pay_dead_thing, field_)}

static const struct pay_explain_field fields[] = {
    T(id), T(what), T(kind), T(status), T(reason), T(payment_id), T(psp), T(psp_account),
    T(transport_key), T(source), T(verification), T(input_id), T(trace_id), T(case_status),
    I(case_version), I(tries), I(held), D(first_at), D(last_at),
};
/* clang-format on */

static const struct pay_explain_spec spec = {"dead", fields, sizeof fields / sizeof fields[0],
                                             sizeof(struct pay_dead_thing)};

const struct pay_explain_spec *pay_dead_spec(void)
{
    return &spec;
}

/* The columns of an input are the fields above. */
#define INPUT                                                                                \
    "SELECT e.psp || '/' || e.psp_account || '/' || e.transport_key, 'INPUT', e.kind::text," \
    " e.status::text, coalesce(c.evidence->0->>'reason', e.verification), e.payment_id,"     \
    " e.psp, e.psp_account, e.transport_key, e.source::text, e.verification, e.input_id,"    \
    " e.trace_id, c.status::text, c.version, e.delivery_count, 0, e.first_seen_at,"          \
    " e.last_seen_at"
#define ITS_EVENT                                                                        \
    " JOIN payfact.channel_event AS e ON e.received_month = k.received_month AND e.id =" \
    " k.channel_event_id"
#define KEY_OF(id_) "substr(sha256(convert_to(" id_ ", 'UTF8')), 1, 16)"

static const struct pay_pg_stmt list_inputs = {
    .name = "dead_inputs",
    .sql = INPUT
    " FROM payfact.manual_case AS c JOIN payfact.inbox_key AS k ON k.key = " KEY_OF("c.case_id")
        ITS_EVENT " WHERE c.status = 'OPEN' AND c.payment_id IS NULL ORDER BY c.opened_at LIMIT $1",
    .read_only = true,
};
static const struct pay_pg_stmt get_input = {
    .name = "dead_input",
    .sql = INPUT
    " FROM payfact.inbox_key AS k" ITS_EVENT
    " LEFT JOIN payfact.manual_case AS c ON c.case_id = $1 WHERE k.key = " KEY_OF("$1::text"),
    .read_only = true,
};

#define ROW_ID                                                                          \
    "CASE o.topic WHEN 'events' THEN o.headers[array_position(o.headers, 'ce_id') + 1]" \
    " ELSE concat_ws('/', o.topic, o.shard, o.id) END"
#define ROW                                                                                \
    "SELECT " ROW_ID ", CASE o.topic WHEN 'events' THEN 'EVENT' ELSE 'JOB' END,"           \
    " CASE o.topic WHEN 'events' THEN replace(o.headers[array_position(o.headers,"         \
    " 'ce_type') + 1], 'payfact.', '') END, 'DEAD', o.dead_reason, o.key, NULL::text,"     \
    " NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::text," \
    " 0, o.attempts, (SELECT count(*) FROM payfact.payment_outbox AS l WHERE l.shard ="    \
    " o.shard AND l.key = o.key AND l.id > o.id), o.created_at, o.dead_at"                 \
    " FROM payfact.payment_outbox AS o WHERE o.dead_at IS NOT NULL"

static const struct pay_pg_stmt list_rows = {
    .name = "dead_rows",
    .sql = ROW " ORDER BY o.dead_at LIMIT $1",
    .read_only = true,
};
static const struct pay_pg_stmt get_row = {
    .name = "dead_row",
    .sql = ROW " AND " ROW_ID " = $1 LIMIT 1",
    .read_only = true,
};
static const struct pay_pg_stmt read_evidence = {
    .name = "evidence_read",
    .sql = "SELECT body, key_id, sha256 FROM payfact.read_evidence($1, $2, $3, $4, $5, $6)",
};

/* With the store's parameters as they are. */
static enum pay_status ask(struct pay_store *store, const struct pay_pg_stmt *stmt,
                           struct pay_arena *arena, struct pay_explain_rows *ret_rows,
                           struct pay_err *err)
{
    enum pay_status status = pay_store_exec(store, stmt, err);
    if (status == PAY_OK) {
        status = pay_store_read_rows(&spec, pay_store_result(store, 0), arena, ret_rows, err);
    }
    pay_store_results_free(store);
    return status;
}

enum pay_status pay_store_dead_list(struct pay_store *store, struct pay_arena *arena,
                                    struct pay_explain_rows ret_rows[2], struct pay_err *err)
{
    pay_pg_add_int8(pay_store_params(store), PAY_STORE_DEAD_MAX);
    const enum pay_status status = ask(store, &list_inputs, arena, &ret_rows[0], err);
    if (status != PAY_OK) {
        return status;
    }
    pay_pg_add_int8(pay_store_params(store), PAY_STORE_DEAD_MAX);
    return ask(store, &list_rows, arena, &ret_rows[1], err);
}

/* An input's name begins with a PSP's, which is in small letters, or with the slash after none. */
static bool is_input(const char *id)
{
    static const char jobs[] = "psp-jobs/";
    const bool is_small = id[0] == '/' || (id[0] >= 'a' && id[0] <= 'z');
    return is_small && strncmp(id, jobs, sizeof jobs - 1) != 0;
}

enum pay_status pay_store_dead_get(struct pay_store *store, const char *id, struct pay_arena *arena,
                                   struct pay_explain_rows *ret_rows, struct pay_err *err)
{
    pay_pg_add_text_c(pay_store_params(store), id);
    return ask(store, is_input(id) ? &get_input : &get_row, arena, ret_rows, err);
}

/* "psp/psp_account/transport_key"; the first two have no slash. */
static bool add_names(struct pay_pg_params *params, const char *id)
{
    const char *account = strchr(id, '/');
    const char *key = account == NULL ? NULL : strchr(account + 1, '/');
    if (key == NULL) {
        return false;
    }
    pay_pg_add_text(params, (struct pay_str){id, (size_t)(account - id)});
    pay_pg_add_text(params, (struct pay_str){account + 1, (size_t)(key - account - 1)});
    pay_pg_add_text_c(params, key + 1);
    return true;
}

enum pay_status pay_store_evidence_read(struct pay_store *store, const char *id,
                                        const struct pay_store_reader *reader,
                                        struct pay_arena *arena,
                                        struct pay_store_evidence *ret_evidence,
                                        struct pay_err *err)
{
    struct pay_pg_params *params = pay_store_params(store);
    if (!add_names(params, id)) {
        return pay_err_set(err, PAY_REJECT, 0, "evidence",
                           "\"%.80s\" is not psp/psp_account/transport_key", id);
    }
    pay_pg_add_text_c(params, reader->who);
    pay_pg_add_text_c(params, reader->reason);
    pay_pg_add_text_c(params, reader->from_where);
    const enum pay_status status = pay_store_exec(store, &read_evidence, err);
    if (status != PAY_OK) {
        return status;
    }
    const struct pay_pg_result *result = pay_store_result(store, 0);
    struct pay_store_evidence evidence = {.found = pay_pg_rows(result) == 1};
    if (evidence.found) {
        evidence.body = pay_store_read_bytes(arena, result, 0, 0);
        evidence.key_id = pay_store_read_str(arena, result, 0, 1);
        evidence.sha256 = pay_store_read_bytes(arena, result, 0, 2);
    }
    pay_store_results_free(store);
    *ret_evidence = evidence;
    return PAY_OK;
}
