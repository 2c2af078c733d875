/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/explain.h"

#include <stddef.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/store/statement.h"

#include "common/base/banned.h"

#define COUNT(array_) (sizeof(array_) / sizeof((array_)[0]))

/* The columns of each statement are the fields of its table, in that order. Each statement takes
 * $1 = payment id and $2 = rows at most, and answers its newest rows, oldest first. */

/* clang-format off */
#define T(row_, field_) {#field_, PAY_EXPLAIN_TEXT, offsetof(struct pay_explain_##row_, field_)}
#define I(row_, field_) {#field_, PAY_EXPLAIN_INT, offsetof(struct pay_explain_##row_, field_)}
#define B(row_, field_) {#field_, PAY_EXPLAIN_BOOL, offsetof(struct pay_explain_##row_, field_)}
#define D(row_, field_) {#field_, PAY_EXPLAIN_TIME, offsetof(struct pay_explain_##row_, field_)}
#define L(row_, field_) {#field_, PAY_EXPLAIN_LEVEL, offsetof(struct pay_explain_##row_, field_)}

static const struct pay_explain_field order_fields[] = {
    T(order, payment_id), T(order, merchant_id), T(order, merchant_order_no),
    I(order, amount_minor), T(order, currency), T(order, capture_mode), T(order, status),
    T(order, reason_code), T(order, intent), T(order, intent_command_id),
    I(order, intent_route_no), D(order, failover_until), D(order, expires_at),
    B(order, retry_until_expiry), B(order, expiry_asked), I(order, version),
    I(order, event_sequence), I(order, attempt_count), T(order, created_by),
    T(order, traceparent), D(order, created_at), D(order, updated_at),
};
static const char order_sql[] =
    "SELECT payment_id::text, merchant_id, merchant_order_no, amount_minor, currency::text,"
    " capture_mode, status::text, reason_code, intent, intent_command_id, intent_route_no,"
    " failover_until, expires_at, retry_until_expiry, expiry_asked, version, event_sequence,"
    " attempt_count, created_by, traceparent, created_at, updated_at"
    " FROM payfact.payment_order WHERE payment_id = $1 LIMIT $2";

static const struct pay_explain_field route_fields[] = {
    I(route, route_no), T(route, psp), T(route, psp_account), T(route, method),
    B(route, failover_on_not_found), B(route, is_paused),
};
static const char route_sql[] =
    "SELECT r.route_no, r.psp, r.psp_account, r.method, r.failover_on_not_found,"
    " EXISTS (SELECT 1 FROM payfact.route_pause AS p WHERE p.psp = r.psp"
    " AND p.psp_account = r.psp_account AND p.method IN ('', r.method))"
    " FROM payfact.payment_route AS r WHERE r.payment_id = $1 ORDER BY r.route_no LIMIT $2";

static const struct pay_explain_field attempt_fields[] = {
    T(attempt, attempt_id), I(attempt, route_no), T(attempt, psp), T(attempt, psp_account),
    T(attempt, method), T(attempt, status), B(attempt, live), L(attempt, result_certainty),
    I(attempt, amount_minor), T(attempt, currency), I(attempt, version), I(attempt, query_count),
    I(attempt, not_found_count), D(attempt, unknown_since), D(attempt, submitted_at),
    D(attempt, known_at), I(attempt, action_no), D(attempt, action_expires_at),
    D(attempt, psp_expires_at), D(attempt, authorization_expires_at), T(attempt, cancel_cause),
    T(attempt, failure_class), T(attempt, failure_code), T(attempt, last_accepted_event_id),
    D(attempt, settled_at), D(attempt, created_at), D(attempt, updated_at),
    I(attempt, authorized_minor), I(attempt, capture_reserved_minor), I(attempt, captured_minor),
    I(attempt, refund_reserved_minor), I(attempt, refunded_minor), I(attempt, withdrawn_minor),
};
static const char attempt_sql[] =
    "SELECT a.attempt_id::text, a.route_no, a.psp, a.psp_account, a.method, a.status::text, a.live,"
    " a.result_certainty::int2, a.amount_minor, a.currency::text, a.version, a.query_count,"
    " a.not_found_count, a.unknown_since, a.submitted_at, a.known_at, a.action_no,"
    " a.action_expires_at, a.psp_expires_at, a.authorization_expires_at, a.cancel_cause,"
    " a.failure_class::text, a.failure_code, a.last_accepted_event_id, a.settled_at,"
    " a.created_at, a.updated_at, m.authorized_minor, m.capture_reserved_minor, m.captured_minor,"
    " m.refund_reserved_minor, m.refunded_minor, m.withdrawn_minor"
    " FROM payfact.payment_attempt AS a LEFT JOIN payfact.payment_amount AS m USING (attempt_id)"
    " WHERE a.payment_id = $1 ORDER BY a.attempt_no LIMIT $2";

static const struct pay_explain_field reference_fields[] = {
    T(reference, attempt_id), T(reference, kind), T(reference, reference), D(reference, created_at),
};
static const char reference_sql[] =
    "SELECT r.attempt_id::text, r.kind, r.reference, r.created_at"
    " FROM payfact.payment_attempt AS a JOIN payfact.attempt_reference AS r USING (attempt_id)"
    " WHERE a.payment_id = $1 ORDER BY r.created_at, r.attempt_id, r.kind, r.reference LIMIT $2";

static const struct pay_explain_field action_fields[] = {
    T(action, action_id), T(action, attempt_id), T(action, status), I(action, version),
    I(action, query_count), L(action, result_certainty),
    I(action, amount_minor), T(action, currency), T(action, origin), T(action, provider_reference),
    T(action, failure_class), T(action, failure_code), D(action, unknown_since),
    D(action, give_up_at), D(action, settled_at), D(action, created_at), D(action, updated_at),
};
#define ACTION_SQL(id_, table_) \
    "SELECT " id_ "::text, attempt_id::text, status::text, version, query_count::int8," \
    " result_certainty::int2, amount_minor," \
    " currency::text, origin, provider_reference, failure_class::text, failure_code," \
    " unknown_since, give_up_at, settled_at, created_at, updated_at" \
    " FROM payfact." table_ " WHERE payment_id = $1 ORDER BY " id_ " LIMIT $2"
static const char capture_sql[] = ACTION_SQL("capture_id", "capture_order");
static const char refund_sql[] = ACTION_SQL("refund_id", "refund_order");

static const struct pay_explain_field dispute_fields[] = {
    T(dispute, dispute_id), T(dispute, attempt_id), T(dispute, status), I(dispute, version),
    L(dispute, result_certainty), I(dispute, amount_minor), T(dispute, currency),
    I(dispute, withdrawn_minor), B(dispute, is_inquiry), T(dispute, provider_reference),
    T(dispute, reason_code), D(dispute, evidence_due_at), D(dispute, created_at),
    D(dispute, updated_at),
};
static const char dispute_sql[] =
    "SELECT dispute_id::text, attempt_id::text, status, version, result_certainty::int2, amount_minor,"
    " currency::text, withdrawn_minor, is_inquiry, provider_reference, reason_code,"
    " evidence_due_at, created_at, updated_at FROM payfact.dispute WHERE payment_id = $1"
    " ORDER BY dispute_id LIMIT $2";

static const struct pay_explain_field send_fields[] = {
    T(send, job_id), T(send, action_id), T(send, kind), D(send, not_after), D(send, sending_at),
    T(send, sent_by), I(send, sends), D(send, last_send_at), D(send, closed_at),
    D(send, replay_until), D(send, finished_at),
};
static const char send_sql[] =
    "SELECT job_id, action_id::text, kind, not_after, sending_at, sent_by, sends, last_send_at,"
    " closed_at, replay_until, finished_at FROM payfact.psp_request WHERE payment_id = $1"
    " ORDER BY not_after, job_id LIMIT $2";

static const struct pay_explain_field history_fields[] = {
    D(history, decided_at), T(history, aggregate), T(history, aggregate_id),
    T(history, from_status), T(history, to_status), T(history, verdict), T(history, event_type),
    T(history, event_id), T(history, published_event_id), I(history, published_sequence),
    T(history, source), L(history, evidence_level), T(history, reason_code),
    T(history, principal), T(history, provider_reference), I(history, amount_minor),
    T(history, currency), I(history, http_status), T(history, psp_request_id),
    T(history, trace_id), I(history, version_before),
};
static const char history_sql[] =
    "SELECT decided_at, aggregate, aggregate_id, from_status, to_status, verdict::text, event_type,"
    " event_id, published_event_id, published_sequence, source::text, evidence_level::int2,"
    " reason_code, operator, provider_reference, amount_minor, currency, http_status,"
    " psp_request_id, trace_id, version_before FROM (SELECT * FROM payfact.payment_state_history"
    " WHERE payment_id = $1 ORDER BY decided_at DESC, id DESC LIMIT $2) AS newest"
    " ORDER BY decided_at, id";

static const struct pay_explain_field input_fields[] = {
    T(input, input_id), T(input, kind), T(input, source), T(input, psp), T(input, psp_account),
    T(input, transport_key), T(input, business_key), T(input, verification), T(input, status),
    I(input, delivery_count), D(input, occurred_at), D(input, received_at),
    D(input, first_seen_at), D(input, last_seen_at),
};
static const char input_sql[] =
    "SELECT input_id, kind, source::text, psp, psp_account, transport_key, business_key,"
    " verification, status, delivery_count, occurred_at, received_at, first_seen_at, last_seen_at"
    " FROM (SELECT id, input_id, kind, source, psp, psp_account, transport_key, business_key,"
    " verification, status, delivery_count, occurred_at, received_at, first_seen_at, last_seen_at"
    " FROM payfact.channel_event WHERE payment_id = $1 ORDER BY first_seen_at DESC, id DESC"
    " LIMIT $2) AS newest ORDER BY first_seen_at, id";

static const struct pay_explain_field command_fields[] = {
    T(command, caller), T(command, command_id), T(command, type), T(command, status),
    T(command, reason_code), D(command, received_at), D(command, decided_at),
};
static const char command_sql[] =
    "SELECT caller, command_id, type, status, reason_code, received_at, decided_at FROM (SELECT *"
    " FROM payfact.command WHERE payment_id = $1 ORDER BY decided_at DESC, command_id LIMIT $2)"
    " AS newest ORDER BY decided_at, command_id";

static const struct pay_explain_field approval_fields[] = {
    T(approval, request_id), T(approval, sha256), T(approval, command_type),
    T(approval, aggregate_id), T(approval, reason_code), T(approval, requested_by),
    T(approval, status), T(approval, approved_by), I(approval, approvals), D(approval, expires_at), D(approval, created_at),
};
static const char approval_sql[] =
    "SELECT r.request_id, encode(r.sha256, 'hex'), r.command_type, r.aggregate_id, r.reason_code,"
    " r.requested_by, r.status, (SELECT string_agg(a.principal, ' ' ORDER BY a.decided_at)"
    " FROM payfact.approval AS a WHERE a.request_id = r.request_id AND a.approves),"
    " (SELECT count(*) FROM payfact.approval AS a WHERE a.request_id = r.request_id AND a.approves),"
    " r.expires_at, r.created_at FROM payfact.approval_request AS r WHERE r.payment_id = $1"
    " ORDER BY r.created_at, r.request_id LIMIT $2";

static const struct pay_explain_field case_fields[] = {
    T(case, case_id), T(case, kind), T(case, aggregate_id), T(case, status),
    I(case, proposed_refund_minor), I(case, version), D(case, opened_at), T(case, resolved_by),
    D(case, resolved_at), T(case, resolution_code),
};
static const char case_sql[] =
    "SELECT case_id, kind, aggregate_id, status, proposed_refund_minor, version, opened_at,"
    " resolved_by, resolved_at, resolution_code FROM payfact.manual_case WHERE payment_id = $1"
    " ORDER BY opened_at, case_id LIMIT $2";

static const struct pay_explain_field outbox_fields[] = {
    I(outbox, shard), I(outbox, id), T(outbox, topic), D(outbox, created_at), I(outbox, attempts),
    D(outbox, available_at), D(outbox, dead_at), T(outbox, dead_reason),
};
static const char outbox_sql[] =
    "SELECT shard, id, topic, created_at, attempts, available_at, dead_at, dead_reason"
    " FROM payfact.payment_outbox WHERE key = $1 ORDER BY id LIMIT $2";

/* By the primary key: a payment's aggregates begin with its id. What does not is found by name. */
static const struct pay_explain_field deadline_fields[] = {
    T(deadline, kind), T(deadline, aggregate_id), D(deadline, due_at), D(deadline, lease_until),
    I(deadline, tries),
};
static const char deadline_sql[] =
    "SELECT kind, aggregate_id, due_at, lease_until, tries FROM payfact.payment_deadline"
    " WHERE aggregate_id >= $1 AND aggregate_id < $1 || '~'"
    " UNION ALL SELECT d.kind, d.aggregate_id, d.due_at, d.lease_until, d.tries"
    " FROM payfact.approval_request AS r JOIN payfact.payment_deadline AS d"
    " ON d.aggregate_id = r.request_id AND d.kind = 'APPROVAL'"
    " WHERE r.payment_id = $1 AND r.status = 'PENDING'"
    " UNION ALL SELECT d.kind, d.aggregate_id, d.due_at, d.lease_until, d.tries"
    " FROM payfact.channel_event AS e JOIN payfact.payment_deadline AS d"
    " ON d.aggregate_id = e.psp || '/' || e.psp_account || '/' || e.transport_key"
    " AND d.kind = 'ORPHAN' WHERE e.payment_id = $1 AND e.status = 'ORPHAN'"
    " ORDER BY due_at, kind LIMIT $2";

struct list {
    struct pay_explain_spec spec;
    struct pay_pg_stmt stmt;
};
#define LIST(name_, row_, fields_, sql_) \
    {{(name_), (fields_), COUNT(fields_), sizeof(struct pay_explain_##row_)}, \
     {.name = "explain_" name_, .sql = (sql_), .read_only = true}}

static const struct list lists[PAY_EXPLAIN_LIST_COUNT] = {
    [PAY_EXPLAIN_ORDER] = LIST("order", order, order_fields, order_sql),
    [PAY_EXPLAIN_ROUTES] = LIST("routes", route, route_fields, route_sql),
    [PAY_EXPLAIN_ATTEMPTS] = LIST("attempts", attempt, attempt_fields, attempt_sql),
    [PAY_EXPLAIN_REFERENCES] = LIST("references", reference, reference_fields, reference_sql),
    [PAY_EXPLAIN_CAPTURES] = LIST("captures", action, action_fields, capture_sql),
    [PAY_EXPLAIN_REFUNDS] = LIST("refunds", action, action_fields, refund_sql),
    [PAY_EXPLAIN_DISPUTES] = LIST("disputes", dispute, dispute_fields, dispute_sql),
    [PAY_EXPLAIN_SENDS] = LIST("sends", send, send_fields, send_sql),
    [PAY_EXPLAIN_HISTORY] = LIST("history", history, history_fields, history_sql),
    [PAY_EXPLAIN_INPUTS] = LIST("inputs", input, input_fields, input_sql),
    [PAY_EXPLAIN_COMMANDS] = LIST("commands", command, command_fields, command_sql),
    [PAY_EXPLAIN_APPROVALS] = LIST("approvals", approval, approval_fields, approval_sql),
    [PAY_EXPLAIN_CASES] = LIST("cases", case, case_fields, case_sql),
    [PAY_EXPLAIN_OUTBOX] = LIST("outbox", outbox, outbox_fields, outbox_sql),
    [PAY_EXPLAIN_DEADLINES] = LIST("deadlines", deadline, deadline_fields, deadline_sql),
};
/* clang-format on */

/* One moment for all lists, whatever is decided meanwhile. */
static const struct pay_pg_stmt one_snapshot = {
    .name = "explain_snapshot",
    .sql = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    .read_only = true,
};
static const struct pay_pg_stmt ask_now = {
    .name = "explain_now", .sql = "SELECT now()", .read_only = true};

const struct pay_explain_spec *pay_explain_spec(enum pay_explain_list list)
{
    PAY_ASSERT((unsigned)list < PAY_EXPLAIN_LIST_COUNT);
    return &lists[list].spec;
}

const struct pay_explain_order *pay_explain_order(const struct pay_explain *explain)
{
    const struct pay_explain_rows *rows = &explain->lists[PAY_EXPLAIN_ORDER];
    return rows->count == 0 ? NULL : rows->rows;
}

bool pay_explain_is_known(const struct pay_explain *explain)
{
    size_t rows = 0;
    for (size_t i = 0; i < PAY_EXPLAIN_LIST_COUNT; i++) {
        rows += explain->lists[i].count;
    }
    return rows > 0;
}

/* ---- reading ---- */

static bool read_field(const struct pay_explain_field *field, const struct pay_pg_result *result,
                       size_t row, size_t column, struct pay_arena *arena, char *into)
{
    const struct pay_str text = field->kind == PAY_EXPLAIN_TEXT
                                    ? pay_store_read_str(arena, result, row, column)
                                    : (struct pay_str){NULL, 0};
    const bool is_null = pay_pg_is_null(result, row, column);
    int64_t number = 0;
    bool truth = false;
    switch (field->kind) {
    case PAY_EXPLAIN_TEXT:
        memcpy(into + field->offset, &text, sizeof text);
        return is_null || text.ptr != NULL;
    case PAY_EXPLAIN_BOOL:
        truth = !is_null && pay_pg_bool(result, row, column);
        memcpy(into + field->offset, &truth, sizeof truth);
        return true;
    case PAY_EXPLAIN_TIME:
        number = pay_pg_timestamptz_or(result, row, column, 0);
        break;
    case PAY_EXPLAIN_INT:
    case PAY_EXPLAIN_LEVEL:
    case PAY_EXPLAIN_KIND_COUNT:
        number = pay_pg_int_or(result, row, column, 0);
        break;
    }
    memcpy(into + field->offset, &number, sizeof number);
    return true;
}

enum pay_status pay_store_read_rows(const struct pay_explain_spec *spec,
                                    const struct pay_pg_result *result, struct pay_arena *arena,
                                    struct pay_explain_rows *ret_rows, struct pay_err *err)
{
    const size_t there = pay_pg_rows(result);
    const size_t skipped = there > PAY_EXPLAIN_ROWS_MAX ? there - PAY_EXPLAIN_ROWS_MAX : 0;
    char *rows = pay_arena_array(arena, there + 1, spec->row_size);
    bool fits = rows != NULL;
    PAY_ASSERT(pay_pg_columns(result) == spec->field_count);
    for (size_t row = skipped; fits && row < there; row++) {
        for (size_t i = 0; fits && i < spec->field_count; i++) {
            fits = read_field(&spec->fields[i], result, row, i, arena,
                              rows + (row - skipped) * spec->row_size);
        }
    }
    if (!fits) {
        return pay_err_set(err, PAY_RETRY, 0, "explain", "memory is out");
    }
    *ret_rows = (struct pay_explain_rows){rows, there - skipped, skipped > 0};
    return PAY_OK;
}

static enum pay_status queue_all(struct pay_store *store, const char *payment_id, size_t *ret_first,
                                 struct pay_err *err)
{
    enum pay_status status = pay_store_begin(store, err);
    (void)pay_store_params(store); /* no parameters */
    if (status == PAY_OK) {
        status = pay_store_queue(store, &one_snapshot, PAY_STORE_ANY_COUNT, err);
    }
    if (status == PAY_OK) {
        status = pay_store_queue(store, &ask_now, PAY_STORE_ANY_COUNT, err);
    }
    *ret_first = pay_store_queued(store);
    for (size_t i = 0; status == PAY_OK && i < PAY_EXPLAIN_LIST_COUNT; i++) {
        struct pay_pg_params *params = pay_store_params(store);
        pay_pg_add_text_c(params, payment_id);
        pay_pg_add_int8(params, PAY_EXPLAIN_ROWS_MAX + 1);
        status = pay_store_queue(store, &lists[i].stmt, PAY_STORE_ANY_COUNT, err);
    }
    return status;
}

enum pay_status pay_store_explain(struct pay_store *store, const char *payment_id,
                                  struct pay_arena *arena, struct pay_explain *ret_explain,
                                  struct pay_err *err)
{
    struct pay_explain explain = {.now_us = 0};
    size_t first = 0;
    enum pay_status status = queue_all(store, payment_id, &first, err);
    if (status == PAY_OK) {
        status = pay_store_run(store, err);
    }
    if (status == PAY_OK) {
        explain.now_us = pay_pg_timestamptz(pay_store_result(store, first - 1), 0, 0);
    }
    for (size_t i = 0; status == PAY_OK && i < PAY_EXPLAIN_LIST_COUNT; i++) {
        status = pay_store_read_rows(&lists[i].spec, pay_store_result(store, first + i), arena,
                                     &explain.lists[i], err);
    }
    pay_store_rollback(store); /* only read: ends the snapshot, or whatever failed */
    if (status == PAY_OK) {
        (void)pay_str_copy(explain.payment_id, sizeof explain.payment_id,
                           pay_str_of(payment_id)); /* too long a one found nothing */
        *ret_explain = explain;
    }
    return status;
}

/* ---- finding ---- */

static const struct pay_pg_stmt by_order_no = {
    .name = "explain_by_order_no",
    .sql = "SELECT payment_id::text FROM payfact.payment_order WHERE merchant_id = $1"
           " AND merchant_order_no = $2 LIMIT $3",
    .read_only = true,
};
static const struct pay_pg_stmt by_reference = {
    .name = "explain_by_reference",
    .sql = "SELECT DISTINCT a.payment_id::text FROM payfact.attempt_reference AS r"
           " JOIN payfact.payment_attempt AS a USING (attempt_id) WHERE r.reference = $1"
           " ORDER BY 1 LIMIT $2",
    .read_only = true,
};
static const struct pay_pg_stmt answer_of = {
    .name = "explain_answer",
    .sql = "SELECT status, reason_code FROM payfact.command WHERE caller = $1 AND command_id = $2",
    .read_only = true,
};

/* With the store's parameters as they are; adds the limit. */
static enum pay_status find(struct pay_store *store, const struct pay_pg_stmt *stmt,
                            struct pay_explain_found *ret_found, struct pay_err *err)
{
    pay_pg_add_int8(pay_store_more_params(store), PAY_EXPLAIN_FOUND_MAX + 1);
    const enum pay_status status = pay_store_exec(store, stmt, err);
    if (status != PAY_OK) {
        return status;
    }
    const struct pay_pg_result *result = pay_store_result(store, 0);
    struct pay_explain_found found = {.count = pay_pg_rows(result)};
    found.has_more = found.count > PAY_EXPLAIN_FOUND_MAX;
    found.count = found.has_more ? PAY_EXPLAIN_FOUND_MAX : found.count;
    for (size_t i = 0; i < found.count; i++) {
        pay_store_read_chars(found.payment_ids[i], sizeof found.payment_ids[i], result, i, 0);
    }
    pay_store_results_free(store);
    *ret_found = found;
    return PAY_OK;
}

enum pay_status pay_store_explain_by_order_no(struct pay_store *store, const char *merchant_id,
                                              const char *merchant_order_no,
                                              struct pay_explain_found *ret_found,
                                              struct pay_err *err)
{
    struct pay_pg_params *params = pay_store_params(store);
    pay_pg_add_text_c(params, merchant_id);
    pay_pg_add_text_c(params, merchant_order_no);
    return find(store, &by_order_no, ret_found, err);
}

enum pay_status pay_store_explain_by_reference(struct pay_store *store, const char *reference,
                                               struct pay_explain_found *ret_found,
                                               struct pay_err *err)
{
    pay_pg_add_text_c(pay_store_params(store), reference);
    return find(store, &by_reference, ret_found, err);
}

enum pay_status pay_store_explain_answer(struct pay_store *store, const char *caller,
                                         const char *command_id,
                                         struct pay_explain_answer *ret_answer, struct pay_err *err)
{
    struct pay_explain_answer answer = {.is_there = false};
    struct pay_pg_params *params = pay_store_params(store);
    pay_pg_add_text_c(params, caller);
    pay_pg_add_text_c(params, command_id);
    const enum pay_status status = pay_store_exec(store, &answer_of, err);
    if (status != PAY_OK) {
        return status;
    }
    const struct pay_pg_result *result = pay_store_result(store, 0);
    answer.is_there = pay_pg_rows(result) > 0;
    if (answer.is_there) {
        pay_store_read_chars(answer.status, sizeof answer.status, result, 0, 0);
        pay_store_read_chars(answer.reason_code, sizeof answer.reason_code, result, 0, 1);
    }
    pay_store_results_free(store);
    *ret_answer = answer;
    return PAY_OK;
}
