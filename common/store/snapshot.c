/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/snapshot.h"

#include <stddef.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/store/snapshot_parts.h"

#include "common/base/banned.h"

/* Every statement of a load takes $1 = payment ids and answers payment_id as column 0, sorted. */
static const struct pay_pg_stmt load_orders = {
    .name = "load_orders",
    .sql = "SELECT payment_id::text, merchant_id, merchant_order_no, amount_minor, currency::text,"
           " capture_mode, status::text, reason_code, intent, intent_command_id, intent_route_no,"
           " failover_until, expires_at, retry_until_expiry, expiry_asked, version, event_sequence,"
           " attempt_count, created_by, created_at, capture_count, refund_count, dispute_count,"
           " paid_attempt_no, capture_count + refund_count + dispute_count > 0 OR EXISTS (SELECT"
           " FROM payfact.approval_request AS r WHERE r.payment_id = payment_order.payment_id)"
           " FROM payfact.payment_order WHERE payment_id = ANY ($1::text[]) ORDER BY payment_id",
    .read_only = true,
};

static const struct pay_pg_stmt load_routes = {
    .name = "load_routes",
    .sql = "SELECT r.payment_id::text, r.psp, r.psp_account, r.method, r.failover_on_not_found,"
           " EXISTS (SELECT 1 FROM payfact.route_pause AS p WHERE p.psp = r.psp"
           " AND p.psp_account = r.psp_account AND p.method IN ('', r.method))"
           " FROM payfact.payment_route AS r WHERE r.payment_id = ANY ($1::text[])"
           " ORDER BY r.payment_id, r.route_no",
    .read_only = true,
};

static const struct pay_pg_stmt load_attempts = {
    .name = "load_attempts",
    .sql = "SELECT a.payment_id::text, a.attempt_id::text, a.attempt_no, a.route_no, a.psp,"
           " a.psp_account, a.method, a.amount_minor, a.currency::text, a.status::text, a.live,"
           " a.result_certainty::int2, a.last_accepted_event_id, a.version, a.query_count,"
           " a.not_found_count, a.unknown_since, a.submitted_at, a.action_no, a.confirm_no,"
           " a.cancel_no, a.action_expires_at, a.psp_expires_at, a.authorization_expires_at,"
           " a.cancel_cause, a.failure_class::text, a.failure_code, a.created_at,"
           " m.authorized_minor, m.capture_reserved_minor, m.captured_minor,"
           " m.refund_reserved_minor, m.refunded_minor, m.withdrawn_minor, a.not_found_from,"
           " a.known_at, m.refund_sum_minor"
           " FROM payfact.payment_attempt AS a JOIN payfact.payment_amount AS m USING (attempt_id)"
           " WHERE a.payment_id = ANY ($1::text[]) ORDER BY a.payment_id, a.attempt_no",
    .read_only = true,
};

/* An outage makes gate after gate of one action: those that are closed and not its latest are left
 * out, and the latest tells what they add up to. Of an attempt's CONFIRMs only the unsent ones: to
 * a sent one there is an answer, which is held against its own row. */
static const struct pay_pg_stmt load_gates = {
    .name = "load_gates",
    .sql = "SELECT payment_id::text, job_id, action_id::text, kind, not_after, sending_at, sends,"
           " last_send_at, closed_at, is_finished, replay_until, is_latest, past_made, past_sent,"
           " past_sends, past_last"
           " FROM (SELECT *, lead(job_id) OVER earlier IS NULL AS is_latest,"
           " count(*) FILTER (WHERE is_spent) OVER earlier AS past_made,"
           " count(sending_at) FILTER (WHERE is_spent) OVER earlier AS past_sent,"
           " sum(sends) FILTER (WHERE is_spent AND sending_at IS NOT NULL) OVER earlier"
           " AS past_sends,"
           " max(greatest(not_after, last_send_at)) FILTER (WHERE is_spent) OVER earlier"
           " AS past_last"
           " FROM (SELECT payment_id, job_id, action_id, kind, not_after, sending_at, sends,"
           " last_send_at, closed_at, finished_at IS NOT NULL AS is_finished, replay_until,"
           " closed_at IS NOT NULL AND (sending_at IS NULL OR kind IN ('CAPTURE', 'REFUND'))"
           " AS is_spent FROM payfact.psp_request WHERE payment_id = ANY ($1::text[])) AS r"
           " WINDOW earlier AS (PARTITION BY payment_id, action_id, kind"
           " ORDER BY length(job_id), job_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))"
           " AS g WHERE is_latest OR NOT is_spent ORDER BY payment_id, job_id",
    .read_only = true,
};

static const struct pay_pg_stmt load_references = {
    .name = "load_references",
    .sql = "SELECT a.payment_id::text, r.attempt_id::text, r.kind, r.reference, r.created_at"
           " FROM payfact.attempt_reference AS r"
           " JOIN payfact.payment_attempt AS a USING (attempt_id)"
           " WHERE a.payment_id = ANY ($1::text[])"
           " ORDER BY a.payment_id, r.attempt_id, r.kind, r.reference",
    .read_only = true,
};

static const struct pay_pg_stmt load_cases = {
    .name = "load_cases",
    .sql = "SELECT payment_id, case_id, kind, aggregate_id, status = 'OPEN', case_no,"
           " coalesce(proposed_refund_minor, 0), version, resolved_by, resolution_code"
           " FROM payfact.manual_case WHERE payment_id = ANY ($1::text[])"
           " ORDER BY payment_id, case_id",
    .read_only = true,
};

static const struct pay_pg_stmt load_versions = {
    .name = "load_versions",
    .sql = "SELECT payment_id::text, version FROM payfact.payment_order"
           " WHERE payment_id = ANY ($1::text[]) ORDER BY payment_id",
    .read_only = true,
};

static const struct pay_pg_stmt load_now = {
    .name = "load_now",
    .sql = "SELECT now()",
    .read_only = true,
};

static const struct pay_pg_stmt load_dues = {
    .name = "load_dues",
    .sql = "SELECT u.n - 1, d.due_at FROM unnest($1::text[], $2::text[]) WITH ORDINALITY"
           " AS u(id, kind, n) JOIN payfact.payment_deadline AS d"
           " ON d.aggregate_id = u.id AND d.kind = u.kind"
           " UNION ALL SELECT u.n - 1, max(o.dead_at)"
           " FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u(id, kind, n)"
           " JOIN payfact.payment_outbox AS o ON o.key = u.id AND o.dead_at IS NOT NULL"
           " WHERE u.kind = 'DEAD_EVENT' GROUP BY u.n",
    .read_only = true,
};

static const struct pay_column due_columns[] = {
    {PAY_COLUMN_STR, offsetof(struct pay_store_due_ask, aggregate_id), NULL},
    {PAY_COLUMN_NAME, offsetof(struct pay_store_due_ask, kind), pay_column_deadline_kind},
};

static const struct pay_pg_stmt load_order_nos = {
    .name = "load_order_nos",
    .sql = "SELECT u.n - 1 FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY"
           " AS u(merchant, no, payment, n) JOIN payfact.payment_order AS o"
           " ON o.merchant_id = u.merchant AND o.merchant_order_no = u.no"
           " WHERE o.payment_id <> u.payment",
    .read_only = true,
};

static const struct pay_column order_no_columns[] = {
    {PAY_COLUMN_STR, offsetof(struct pay_store_order_no_ask, merchant_id), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_order_no_ask, merchant_order_no), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_order_no_ask, payment_id), NULL},
};

static const struct pay_pg_stmt load_pauses = {
    .name = "load_pauses",
    .sql = "SELECT DISTINCT u.n - 1 FROM unnest($1::text[], $2::text[], $3::text[])"
           " WITH ORDINALITY AS u(psp, account, method, n) JOIN payfact.route_pause AS p"
           " ON p.psp = u.psp AND p.psp_account = u.account AND p.method IN ('', u.method)",
    .read_only = true,
};

static const struct pay_column pause_columns[] = {
    {PAY_COLUMN_STR, offsetof(struct pay_store_pause_ask, psp), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_pause_ask, psp_account), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_pause_ask, method), NULL},
};

static const struct pay_pg_stmt load_keys[PAY_MONEY_KIND_COUNT] = {
    [PAY_MONEY_CAPTURE] = {.name = "load_capture_keys",
                           .sql = "SELECT u.n - 1 FROM unnest($1::text[], $2::text[], $3::text[],"
                                  " $4::int2[]) WITH ORDINALITY AS u(merchant, key, payment, kind,"
                                  " n) JOIN payfact.capture_order AS a ON u.kind = 0 AND"
                                  " a.merchant_id = u.merchant AND a.idempotency_key = u.key"
                                  " WHERE a.payment_id <> u.payment",
                           .read_only = true},
    [PAY_MONEY_REFUND] = {.name = "load_refund_keys",
                          .sql = "SELECT u.n - 1 FROM unnest($1::text[], $2::text[], $3::text[],"
                                 " $4::int2[]) WITH ORDINALITY AS u(merchant, key, payment, kind,"
                                 " n) JOIN payfact.refund_order AS a ON u.kind = 1 AND"
                                 " a.merchant_id = u.merchant AND a.idempotency_key = u.key"
                                 " WHERE a.payment_id <> u.payment",
                          .read_only = true},
};

static const struct pay_column key_columns[] = {
    {PAY_COLUMN_STR, offsetof(struct pay_store_key_ask, merchant_id), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_key_ask, key), NULL},
    {PAY_COLUMN_STR, offsetof(struct pay_store_key_ask, payment_id), NULL},
    {PAY_COLUMN_INT2, offsetof(struct pay_store_key_ask, kind), NULL},
};

static const struct pay_pg_stmt load_days = {
    .name = "load_days",
    .sql = "SELECT o.payment_id::text, d.amount_minor FROM payfact.payment_order AS o"
           " JOIN payfact.refund_day AS d ON d.merchant_id = o.merchant_id"
           " AND d.day = (now() AT TIME ZONE 'UTC')::date AND d.currency = o.currency"
           " WHERE o.payment_id = ANY ($1::text[])",
    .read_only = true,
};

static void read_order(struct pay_snapshot *snapshot, const struct pay_pg_result *r, size_t row)
{
    struct pay_order *order = &snapshot->order;
    order->exists = true;
    pay_store_read_chars(order->merchant_id, sizeof(order->merchant_id), r, row, 1);
    pay_store_read_chars(order->merchant_order_no, sizeof(order->merchant_order_no), r, row, 2);
    order->amount.amount_minor = pay_pg_int(r, row, 3);
    pay_store_read_chars(order->amount.currency, sizeof(order->amount.currency), r, row, 4);
    bool known = pay_capture_mode_parse(pay_pg_text(r, row, 5), &order->capture_mode) &&
                 pay_order_status_parse(pay_pg_text(r, row, 6), &order->status) &&
                 pay_intent_parse(pay_pg_text(r, row, 8), &order->intent);
    PAY_ASSERT(known); /* the table's CHECKs have the same lists */
    pay_store_read_chars(order->reason_code, sizeof(order->reason_code), r, row, 7);
    pay_store_read_chars(order->intent_command_id, sizeof(order->intent_command_id), r, row, 9);
    order->intent_route_no = (int)pay_pg_int(r, row, 10);
    order->failover_until_us = pay_pg_timestamptz(r, row, 11);
    order->expires_at_us = pay_pg_timestamptz(r, row, 12);
    order->retry_until_expiry = pay_pg_bool(r, row, 13);
    order->expiry_asked = pay_pg_bool(r, row, 14);
    order->version = pay_pg_int(r, row, 15);
    order->event_sequence = pay_pg_int(r, row, 16);
    order->attempt_count = (int)pay_pg_int(r, row, 17);
    pay_store_read_chars(order->created_by, sizeof(order->created_by), r, row, 18);
    order->created_at_us = pay_pg_timestamptz(r, row, 19);
    order->capture_count = (int)pay_pg_int(r, row, 20);
    order->refund_count = (int)pay_pg_int(r, row, 21);
    order->dispute_count = (int)pay_pg_int(r, row, 22);
    order->paid_attempt_no = (int)pay_pg_int(r, row, 23);
}

static void read_route(struct pay_snapshot *snapshot, const struct pay_pg_result *r, size_t row)
{
    struct pay_route *route = &snapshot->routes[snapshot->route_count++];
    pay_store_read_chars(route->psp, sizeof(route->psp), r, row, 1);
    pay_store_read_chars(route->psp_account, sizeof(route->psp_account), r, row, 2);
    pay_store_read_chars(route->method, sizeof(route->method), r, row, 3);
    route->failover_on_not_found = pay_pg_bool(r, row, 4);
    route->paused = pay_pg_bool(r, row, 5);
}

static void read_attempt_state(struct pay_attempt *attempt, const struct pay_pg_result *r,
                               size_t row)
{
    bool known = pay_attempt_status_parse(pay_pg_text(r, row, 9), &attempt->status);
    known = known && (pay_pg_is_null(r, row, 24) ||
                      pay_cancel_cause_parse(pay_pg_text(r, row, 24), &attempt->cancel_cause));
    known = known && (pay_pg_is_null(r, row, 25) ||
                      pay_failure_class_parse(pay_pg_text(r, row, 25), &attempt->failure_class));
    PAY_ASSERT(known); /* the table's CHECKs have the same lists */
    attempt->live = pay_pg_bool(r, row, 10);
    attempt->result_certainty = (enum pay_evidence)pay_pg_int(r, row, 11);
    attempt->version = pay_pg_int(r, row, 13);
    attempt->query_count = (int)pay_pg_int(r, row, 14);
    attempt->not_found_count = (int)pay_pg_int(r, row, 15);
    attempt->unknown_since_us = pay_pg_timestamptz_or(r, row, 16, 0);
    attempt->submitted_at_us = pay_pg_timestamptz_or(r, row, 17, 0);
    attempt->action_no = (int)pay_pg_int(r, row, 18);
    attempt->confirm_no = (int)pay_pg_int(r, row, 19);
    attempt->cancel_no = (int)pay_pg_int(r, row, 20);
    attempt->action_expires_at_us = pay_pg_timestamptz_or(r, row, 21, 0);
    attempt->psp_expires_at_us = pay_pg_timestamptz_or(r, row, 22, 0);
    attempt->authorization_expires_at_us = pay_pg_timestamptz_or(r, row, 23, 0);
    attempt->created_at_us = pay_pg_timestamptz(r, row, 27);
    attempt->not_found_from_us = pay_pg_timestamptz_or(r, row, 34, 0);
    attempt->known_at_us = pay_pg_timestamptz_or(r, row, 35, 0);
}

static void read_attempt(struct pay_snapshot *snapshot, const struct pay_pg_result *r, size_t row)
{
    struct pay_attempt *attempt = &snapshot->attempts[snapshot->attempt_count++];
    pay_store_read_chars(attempt->attempt_id, sizeof(attempt->attempt_id), r, row, 1);
    attempt->attempt_no = (int)pay_pg_int(r, row, 2);
    attempt->route_no = (int)pay_pg_int(r, row, 3);
    pay_store_read_chars(attempt->psp, sizeof(attempt->psp), r, row, 4);
    pay_store_read_chars(attempt->psp_account, sizeof(attempt->psp_account), r, row, 5);
    pay_store_read_chars(attempt->method, sizeof(attempt->method), r, row, 6);
    attempt->amount.amount_minor = pay_pg_int(r, row, 7);
    pay_store_read_chars(attempt->amount.currency, sizeof(attempt->amount.currency), r, row, 8);
    pay_store_read_chars(attempt->last_accepted_event_id, sizeof(attempt->last_accepted_event_id),
                         r, row, 12);
    pay_store_read_chars(attempt->failure_code, sizeof(attempt->failure_code), r, row, 26);
    read_attempt_state(attempt, r, row);
    attempt->amounts = (struct pay_amounts){
        .authorized = pay_pg_int(r, row, 28),
        .capture_reserved = pay_pg_int(r, row, 29),
        .captured = pay_pg_int(r, row, 30),
        .refund_reserved = pay_pg_int(r, row, 31),
        .refunded = pay_pg_int(r, row, 32),
        .withdrawn = pay_pg_int(r, row, 33),
    };
    attempt->refund_sum_minor = pay_pg_int(r, row, 36);
}

static void read_gate(struct pay_snapshot *snapshot, const struct pay_pg_result *r, size_t row)
{
    struct pay_gate *gate = &snapshot->gates[snapshot->gate_count++];
    pay_store_read_chars(gate->job_id, sizeof(gate->job_id), r, row, 1);
    pay_store_read_chars(gate->action_id, sizeof(gate->action_id), r, row, 2);
    bool known = pay_job_kind_parse(pay_pg_text(r, row, 3), &gate->kind);
    PAY_ASSERT(known);
    gate->not_after_us = pay_pg_timestamptz(r, row, 4);
    gate->sending_at_us = pay_pg_timestamptz_or(r, row, 5, 0);
    gate->sends = (int)pay_pg_int(r, row, 6);
    gate->last_send_at_us = pay_pg_timestamptz_or(r, row, 7, 0);
    gate->closed_at_us = pay_pg_timestamptz_or(r, row, 8, 0);
    gate->finished = pay_pg_bool(r, row, 9);
    gate->replay_until_us = pay_pg_timestamptz_or(r, row, 10, 0);
    if (pay_pg_bool(r, row, 11)) { /* It stands for all that are left out. */
        gate->past = (struct pay_gate_past){
            .made = (int)pay_pg_int(r, row, 12),
            .sent = (int)pay_pg_int(r, row, 13),
            .sends = (int)pay_pg_int_or(r, row, 14, 0),
            .last_us = pay_pg_timestamptz_or(r, row, 15, 0),
        };
    }
}

int pay_store_attempt_index(const struct pay_snapshot *snapshot, struct pay_str attempt_id)
{
    for (size_t i = 0; i < snapshot->attempt_count; i++) {
        if (pay_str_eq_c(attempt_id, snapshot->attempts[i].attempt_id)) {
            return (int)i;
        }
    }
    return -1;
}

static void read_reference(struct pay_snapshot *snapshot, const struct pay_pg_result *r, size_t row)
{
    const int attempt = pay_store_attempt_index(snapshot, pay_pg_text(r, row, 1));
    if (attempt < 0) {
        return;
    }
    struct pay_bound_reference *ref = &snapshot->references[snapshot->reference_count++];
    ref->attempt_index = attempt;
    bool known = pay_reference_kind_parse(pay_pg_text(r, row, 2), &ref->kind);
    PAY_ASSERT(known);
    pay_store_read_chars(ref->reference, sizeof(ref->reference), r, row, 3);
    ref->bound_at_us = pay_pg_timestamptz(r, row, 4);
}

static void read_case(struct pay_snapshot *snapshot, const struct pay_pg_result *r, size_t row)
{
    struct pay_case *item = &snapshot->cases[snapshot->case_count++];
    pay_store_read_chars(item->case_id, sizeof(item->case_id), r, row, 1);
    bool known = pay_case_kind_parse(pay_pg_text(r, row, 2), &item->kind);
    PAY_ASSERT(known);
    pay_store_read_chars(item->aggregate_id, sizeof(item->aggregate_id), r, row, 3);
    item->open = pay_pg_bool(r, row, 4);
    item->number = (int)pay_pg_int(r, row, 5);
    item->proposed_refund_minor = pay_pg_int(r, row, 6);
    item->version = pay_pg_int(r, row, 7);
    pay_store_read_chars(item->resolved_by, sizeof(item->resolved_by), r, row, 8);
    pay_store_read_chars(item->resolution_code, sizeof(item->resolution_code), r, row, 9);
}

/* ---- room ---- */

/* What one decision may append at most (decide.h: effects and history are bounded as well). */
enum { SPARE_ATTEMPTS = 2, SPARE_GATES = 6, SPARE_REFERENCES = 10, SPARE_CASES = 6, SPARE_ONE = 1 };

static bool grow(struct pay_arena *arena, void **items, size_t count, size_t *cap, size_t want,
                 size_t size)
{
    if (*cap >= want) {
        return true;
    }
    void *more = pay_arena_array(arena, want, size);
    if (more == NULL) {
        return false;
    }
    if (count > 0) {
        memcpy(more, *items, count * size);
    }
    *items = more;
    *cap = want;
    return true;
}

/* What stands where in a snapshot, and how many one decision may append. */
struct room {
    size_t items, count, cap; /* Offsets. */
    size_t spare;
    size_t size;
};
#define ROOM(items_, name_, spare_)                                                       \
    {offsetof(struct pay_snapshot, items_), offsetof(struct pay_snapshot, name_##_count), \
     offsetof(struct pay_snapshot, name_##_cap), (spare_),                                \
     sizeof(*((struct pay_snapshot *)NULL)->items_)}

static const struct room rooms[] = {
    ROOM(attempts, attempt, SPARE_ATTEMPTS),
    ROOM(gates, gate, SPARE_GATES),
    ROOM(references, reference, SPARE_REFERENCES),
    ROOM(cases, case, SPARE_CASES),
    ROOM(captures, capture, SPARE_ONE),
    ROOM(refunds, refund, SPARE_ONE),
    ROOM(disputes, dispute, SPARE_ONE),
    ROOM(requests, request, SPARE_ONE),
    ROOM(approvals, approval, SPARE_ONE),
};
#define ROOM_COUNT (sizeof(rooms) / sizeof(rooms[0]))
#define ROOM_MONEY 4 /* From here on: money actions and requests. */

static size_t *size_at(void *base, size_t offset)
{
    void *at = (char *)base + offset;
    return at;
}

static bool reserve(struct pay_arena *arena, struct pay_snapshot *snapshot, const struct room *room,
                    size_t want)
{
    void *items;
    size_t *cap = size_at(snapshot, room->cap);
    const size_t *count = size_at(snapshot, room->count);
    memcpy((void *)&items, (const char *)snapshot + room->items, sizeof(items));
    bool fits = grow(arena, &items, *count, cap, want, room->size);
    memcpy((char *)snapshot + room->items, (const void *)&items, sizeof(items));
    return fits;
}

bool pay_store_snapshot_reserve(struct pay_arena *arena, struct pay_snapshot *snapshot)
{
    void *routes = snapshot->routes;
    bool fits = grow(arena, &routes, snapshot->route_count, &snapshot->route_cap, PAY_ROUTES_MAX,
                     sizeof(struct pay_route));
    snapshot->routes = routes;
    for (size_t i = 0; i < ROOM_COUNT && fits; i++) {
        const size_t *count = size_at(snapshot, rooms[i].count);
        fits = reserve(arena, snapshot, &rooms[i], *count + rooms[i].spare);
    }
    return fits;
}

/* ---- one load ---- */

/* In two runs: most payments have no money action and no request, which their orders tell. */
enum load_part {
    PART_ORDERS,
    PART_ROUTES,
    PART_ATTEMPTS,
    PART_GATES,
    PART_REFERENCES,
    PART_CASES,
    PART_MONEY,
    PART_CAPTURES = PART_MONEY,
    PART_REFUNDS,
    PART_DISPUTES,
    PART_REQUESTS,
    PART_APPROVALS,
    PART_COUNT
};
#define ORDERS_HAS_MONEY 24 /* The column that tells. */
#define LOADS_MAX 5         /* Of one batch: payments that move while they are read are rare. */

/* One run: these parts are its first results. */
struct run {
    enum load_part from, to;
};
static const struct run first_run = {PART_ORDERS, PART_MONEY};
static const struct run money_run = {PART_MONEY, PART_COUNT};

static const struct pay_pg_result *result_of(const struct pay_store *store, struct run run,
                                             enum load_part part)
{
    return pay_store_result(store, (size_t)part - run.from);
}

typedef void read_fn(struct pay_snapshot *, const struct pay_pg_result *, size_t);

static size_t *part_cap(struct pay_snapshot *snapshot, enum load_part part)
{
    switch (part) {
    case PART_ROUTES:
        return &snapshot->route_cap;
    case PART_ATTEMPTS:
        return &snapshot->attempt_cap;
    case PART_GATES:
        return &snapshot->gate_cap;
    case PART_REFERENCES:
        return &snapshot->reference_cap;
    case PART_CASES:
        return &snapshot->case_cap;
    case PART_CAPTURES:
        return &snapshot->capture_cap;
    case PART_REFUNDS:
        return &snapshot->refund_cap;
    case PART_DISPUTES:
        return &snapshot->dispute_cap;
    case PART_REQUESTS:
        return &snapshot->request_cap;
    case PART_APPROVALS:
        return &snapshot->approval_cap;
    default:
        return NULL;
    }
}

/* Both the rows and the snapshots are sorted by payment id (COLLATE "C" is memcmp's order). */
static struct pay_snapshot *find(const struct pay_store_load *load, size_t *at, struct pay_str id)
{
    while (*at < load->count && !pay_str_eq_c(id, load->snapshots[*at]->order.payment_id)) {
        *at += 1;
    }
    PAY_ASSERT(*at < load->count);
    return load->snapshots[*at];
}

static bool count_part(const struct pay_store_load *load, const struct pay_pg_result *result,
                       enum load_part part)
{
    size_t at = 0;
    for (size_t row = 0; row < pay_pg_rows(result); row++) {
        size_t *cap = part_cap(find(load, &at, pay_pg_text(result, row, 0)), part);
        *cap += 1;
        if (*cap > PAY_STORE_ROWS_PER_PAYMENT_MAX) {
            return false;
        }
    }
    return true;
}

static enum pay_status count_rows(const struct pay_store_load *load, const struct pay_store *store,
                                  struct run run, struct pay_err *err)
{
    for (enum load_part part = run.from; part < run.to; part++) {
        if (part != PART_ORDERS && !count_part(load, result_of(store, run, part), part)) {
            return pay_err_set(err, PAY_REJECT, 0, "store.load",
                               "a payment has too many rows of one kind");
        }
    }
    return PAY_OK;
}

/* The caps hold how many rows were read: room for them, and for what one decision appends. */
static bool make_rooms(struct pay_arena *arena, struct pay_snapshot *snapshot, size_t from,
                       size_t to)
{
    bool fits = true;
    for (size_t i = from; i < to && fits; i++) {
        size_t *cap = size_at(snapshot, rooms[i].cap);
        size_t rows = *cap;
        *cap = 0;
        fits = reserve(arena, snapshot, &rooms[i], rows + rooms[i].spare);
    }
    return fits;
}

static enum pay_status make_room(struct pay_arena *arena, const struct pay_store_load *load,
                                 struct run run, struct pay_err *err)
{
    bool fits = true;
    for (size_t i = 0; i < load->count && fits; i++) {
        struct pay_snapshot *snapshot = load->snapshots[i];
        if (run.from == PART_MONEY) {
            fits = make_rooms(arena, snapshot, ROOM_MONEY, ROOM_COUNT);
            continue;
        }
        snapshot->routes = pay_arena_array(arena, PAY_ROUTES_MAX, sizeof(struct pay_route));
        snapshot->route_cap = PAY_ROUTES_MAX;
        fits = snapshot->routes != NULL && make_rooms(arena, snapshot, 0, ROOM_MONEY);
    }
    return fits ? PAY_OK : pay_err_set(err, PAY_RETRY, 0, "store.load", "the arena is full");
}

/* What was signed of each request, for whoever knows its form. */
static bool read_signed(struct pay_store *store, struct pay_arena *arena,
                        struct pay_store_load *load)
{
    const struct pay_pg_result *result = result_of(store, money_run, PART_REQUESTS);
    size_t at = 0;
    load->request_count = pay_pg_rows(result);
    if (load->request_count == 0) {
        return true;
    }
    load->requests = pay_arena_array(arena, load->request_count, sizeof(*load->requests));
    struct pay_snapshot *last = NULL;
    size_t index = 0;
    for (size_t row = 0; row < load->request_count && load->requests != NULL; row++) {
        struct pay_snapshot *snapshot = find(load, &at, pay_pg_text(result, row, 0));
        index = snapshot == last ? index + 1 : 0;
        last = snapshot;
        load->requests[row] = (struct pay_store_signed_request){
            .snapshot = snapshot,
            .index = index,
            .command = pay_store_read_bytes(arena, result, row, 9),
            .writer_fingerprint = pay_store_read_bytes(arena, result, row, 10),
        };
        if (load->requests[row].command.ptr == NULL ||
            load->requests[row].writer_fingerprint.ptr == NULL) {
            return false;
        }
    }
    return load->requests != NULL;
}

static void read_rows(const struct pay_store *store, const struct pay_store_load *load,
                      struct run run)
{
    static read_fn *const readers[PART_COUNT] = {
        [PART_ORDERS] = read_order,           [PART_ROUTES] = read_route,
        [PART_ATTEMPTS] = read_attempt,       [PART_GATES] = read_gate,
        [PART_REFERENCES] = read_reference,   [PART_CASES] = read_case,
        [PART_CAPTURES] = pay_read_capture,   [PART_REFUNDS] = pay_read_refund,
        [PART_DISPUTES] = pay_read_dispute,   [PART_REQUESTS] = pay_read_request,
        [PART_APPROVALS] = pay_read_approval,
    };
    for (enum load_part part = run.from; part < run.to; part++) {
        const struct pay_pg_result *result = result_of(store, run, part);
        size_t at = 0;
        for (size_t row = 0; row < pay_pg_rows(result); row++) {
            readers[part](find(load, &at, pay_pg_text(result, row, 0)), result, row);
        }
    }
}

static void read_asks(struct pay_store *store, const struct pay_store_load *load, size_t at)
{
    if (load->due_count > 0) {
        const struct pay_pg_result *result = pay_store_result(store, at++);
        for (size_t row = 0; row < pay_pg_rows(result); row++) {
            load->dues[pay_pg_int(result, row, 0)]->row_due_at_us =
                pay_pg_timestamptz(result, row, 1);
        }
    }
    if (load->order_no_count > 0) {
        const struct pay_pg_result *result = pay_store_result(store, at++);
        for (size_t row = 0; row < pay_pg_rows(result); row++) {
            load->order_nos[pay_pg_int(result, row, 0)]->taken = true;
        }
    }
    if (load->pause_count > 0) {
        const struct pay_pg_result *result = pay_store_result(store, at++);
        for (size_t row = 0; row < pay_pg_rows(result); row++) {
            load->pauses[pay_pg_int(result, row, 0)]->paused = true;
        }
    }
    for (int kind = 0; load->key_count > 0 && kind < PAY_MONEY_KIND_COUNT; kind++) {
        const struct pay_pg_result *result = pay_store_result(store, at++);
        for (size_t row = 0; row < pay_pg_rows(result); row++) {
            load->keys[pay_pg_int(result, row, 0)]->taken = true;
        }
    }
    if (load->day_count > 0) {
        const struct pay_pg_result *result = pay_store_result(store, at++);
        for (size_t row = 0; row < pay_pg_rows(result); row++) {
            size_t from = 0;
            find(load, &from, pay_pg_text(result, row, 0))->refund_day.amount_minor =
                pay_pg_int(result, row, 1);
        }
    }
}

static void add_payments(struct pay_pg_params *params, struct pay_snapshot *const *snapshots,
                         size_t count)
{
    pay_pg_array_begin(params, PAY_PG_TEXT);
    for (size_t i = 0; i < count; i++) {
        pay_pg_add_text_c(params, snapshots[i]->order.payment_id);
    }
    pay_pg_array_end(params);
}

static enum pay_status queue_run(struct pay_store *store, struct run run,
                                 struct pay_snapshot *const *snapshots, size_t count,
                                 const struct pay_store_load *load, struct pay_err *err)
{
    static const struct pay_pg_stmt *const stmts[PART_COUNT] = {
        [PART_ORDERS] = &load_orders,           [PART_ROUTES] = &load_routes,
        [PART_ATTEMPTS] = &load_attempts,       [PART_GATES] = &load_gates,
        [PART_REFERENCES] = &load_references,   [PART_CASES] = &load_cases,
        [PART_CAPTURES] = &pay_load_captures,   [PART_REFUNDS] = &pay_load_refunds,
        [PART_DISPUTES] = &pay_load_disputes,   [PART_REQUESTS] = &pay_load_requests,
        [PART_APPROVALS] = &pay_load_approvals,
    };
    add_payments(pay_store_params(store), snapshots, count);
    enum pay_status status = PAY_OK;
    for (enum load_part part = run.from; part < run.to && status == PAY_OK; part++) {
        if (part == PART_REQUESTS) {
            pay_pg_add_text_array(pay_store_more_params(store), load->request_ids,
                                  load->request_id_count);
        }
        status = pay_store_queue(store, stmts[part], PAY_STORE_ANY_COUNT, err);
    }
    return status;
}

/* Each statement sees what is committed when it runs. Whoever wrote between two of them has raised
 * the order's version, which is read first, and here once more behind the others: half of one state
 * and half of the next must not be decided on. */
static bool is_torn(struct pay_snapshot *const *snapshots, size_t count,
                    const struct pay_pg_result *versions)
{
    size_t row = 0;
    for (size_t i = 0; i < count; i++) {
        const struct pay_order *order = &snapshots[i]->order;
        const bool exists = row < pay_pg_rows(versions) &&
                            pay_str_eq_c(pay_pg_text(versions, row, 0), order->payment_id);
        if ((exists ? pay_pg_int(versions, row, 1) : 0) != order->version) {
            return true;
        }
        row += exists ? 1 : 0;
    }
    return false;
}

static enum pay_status queue_versions(struct pay_store *store,
                                      struct pay_snapshot *const *snapshots, size_t count,
                                      struct pay_err *err)
{
    add_payments(pay_store_params(store), snapshots, count);
    return pay_store_queue(store, &load_versions, PAY_STORE_ANY_COUNT, err);
}

static enum pay_status queue_ask(struct pay_store *store, const struct pay_pg_stmt *stmt,
                                 struct pay_columns columns, const void *const *rows, size_t count,
                                 struct pay_err *err)
{
    if (count == 0) {
        return PAY_OK;
    }
    pay_store_add_columns(store, columns, rows, count);
    return pay_store_queue(store, stmt, PAY_STORE_ANY_COUNT, err);
}

static enum pay_status queue_load(struct pay_store *store, const struct pay_store_load *load,
                                  struct pay_err *err)
{
    enum pay_status status = queue_run(store, first_run, load->snapshots, load->count, load, err);
    if (status == PAY_OK) {
        status = queue_versions(store, load->snapshots, load->count, err);
    }
    if (status == PAY_OK) {
        (void)pay_store_params(store); /* now() takes none */
        status = pay_store_queue(store, &load_now, PAY_STORE_ANY_COUNT, err);
    }
    if (status == PAY_OK) {
        status = queue_ask(store, &load_dues, COLUMNS(due_columns), (const void *const *)load->dues,
                           load->due_count, err);
    }
    if (status == PAY_OK) {
        status = queue_ask(store, &load_order_nos, COLUMNS(order_no_columns),
                           (const void *const *)load->order_nos, load->order_no_count, err);
    }
    if (status == PAY_OK) {
        status = queue_ask(store, &load_pauses, COLUMNS(pause_columns),
                           (const void *const *)load->pauses, load->pause_count, err);
    }
    for (int kind = 0; kind < PAY_MONEY_KIND_COUNT && status == PAY_OK; kind++) {
        status = queue_ask(store, &load_keys[kind], COLUMNS(key_columns),
                           (const void *const *)load->keys, load->key_count, err);
    }
    if (status == PAY_OK && load->day_count > 0) {
        add_payments(pay_store_params(store), load->days, load->day_count);
        status = pay_store_queue(store, &load_days, PAY_STORE_ANY_COUNT, err);
    }
    return status;
}

/* Empty, but for its id: what was decided on the former reading is forgotten. */
static void forget(struct pay_snapshot *snapshot)
{
    char payment_id[PAY_PAYMENT_ID_SIZE];
    memcpy(payment_id, snapshot->order.payment_id, sizeof(payment_id));
    *snapshot = (struct pay_snapshot){.order = {.intent_route_no = -1}, .keeps_actions = true};
    memcpy(snapshot->order.payment_id, payment_id, sizeof(payment_id));
}

static enum pay_status read_run(struct pay_store *store, struct pay_arena *arena,
                                struct pay_store_load *load, struct run run, struct pay_err *err)
{
    enum pay_status status = count_rows(load, store, run, err);
    if (status == PAY_OK) {
        status = make_room(arena, load, run, err);
    }
    if (status == PAY_OK) {
        read_rows(store, load, run);
    }
    return status;
}

/* Those of the snapshots whose orders tell of money actions or requests. NULL: the arena is full.
 */
static struct pay_snapshot **with_money(struct pay_store *store, struct pay_arena *arena,
                                        const struct pay_store_load *load, size_t *ret_count)
{
    const struct pay_pg_result *orders = result_of(store, first_run, PART_ORDERS);
    struct pay_snapshot **found =
        (struct pay_snapshot **)pay_arena_array(arena, load->count + 1, sizeof(*found));
    size_t at = 0;
    *ret_count = 0;
    for (size_t row = 0; found != NULL && row < pay_pg_rows(orders); row++) {
        if (pay_pg_bool(orders, row, ORDERS_HAS_MONEY)) {
            found[(*ret_count)++] = find(load, &at, pay_pg_text(orders, row, 0));
        }
    }
    return found;
}

static enum pay_status load_money(struct pay_store *store, struct pay_arena *arena,
                                  struct pay_store_load *load, bool *ret_torn, struct pay_err *err)
{
    size_t count = 0;
    struct pay_snapshot **snapshots = with_money(store, arena, load, &count);
    if (snapshots == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "store.load", "the arena is full");
    }
    if (count == 0) {
        return make_room(arena, load, money_run, err);
    }
    enum pay_status status = queue_run(store, money_run, snapshots, count, load, err);
    if (status == PAY_OK) {
        status = queue_versions(store, snapshots, count, err);
    }
    if (status == PAY_OK) {
        status = pay_store_run(store, err);
    }
    if (status == PAY_OK) {
        *ret_torn = is_torn(snapshots, count, pay_store_result(store, PART_COUNT - PART_MONEY));
    }
    if (status == PAY_OK) {
        status = read_run(store, arena, load, money_run, err);
    }
    if (status == PAY_OK && !read_signed(store, arena, load)) {
        status = pay_err_set(err, PAY_RETRY, 0, "store.load", "the arena is full");
    }
    return status;
}

static enum pay_status load_once(struct pay_store *store, struct pay_arena *arena,
                                 struct pay_store_load *load, bool *ret_torn, struct pay_err *err)
{
    for (size_t i = 0; i < load->count; i++) {
        forget(load->snapshots[i]);
    }
    load->request_count = 0;
    enum pay_status status = queue_load(store, load, err);
    if (status == PAY_OK) {
        status = pay_store_run(store, err);
    }
    if (status == PAY_OK) {
        status = read_run(store, arena, load, first_run, err);
    }
    if (status == PAY_OK) { /* Behind the parts: the versions, the time, then the asks. */
        *ret_torn = is_torn(load->snapshots, load->count, pay_store_result(store, PART_MONEY));
        load->now_us = pay_pg_timestamptz(pay_store_result(store, PART_MONEY + 1), 0, 0);
        read_asks(store, load, PART_MONEY + 2);
    }
    if (status == PAY_OK && !*ret_torn) {
        status = load_money(store, arena, load, ret_torn, err);
    }
    pay_store_results_free(store);
    return status;
}

enum pay_status pay_store_snapshot_load(struct pay_store *store, struct pay_arena *arena,
                                        struct pay_store_load *load, struct pay_err *err)
{
    enum pay_status status = PAY_OK;
    bool torn = true;
    for (int n = 0; n < LOADS_MAX && torn && status == PAY_OK; n++) {
        status = load_once(store, arena, load, &torn, err);
    }
    return status == PAY_OK && torn ? pay_err_set(err, PAY_RETRY, 0, "store.load",
                                                  "a payment moved whenever it was read")
                                    : status;
}

enum pay_status pay_store_now_find(struct pay_store *store, size_t *ret_index, struct pay_err *err)
{
    *ret_index = pay_store_queued(store);
    (void)pay_store_params(store); /* now() takes none */
    return pay_store_queue(store, &load_now, PAY_STORE_ANY_COUNT, err);
}

int64_t pay_store_now_read(struct pay_store *store, size_t index)
{
    return pay_pg_timestamptz(pay_store_result(store, index), 0, 0);
}

/* ---- what jobs need ---- */

static const struct pay_pg_stmt load_params = {
    .name = "load_params",
    .sql = "SELECT DISTINCT ON (u.n) u.n - 1, p.params, p.params_key_id, p.params_bound_to"
           " FROM unnest($1::text[], $2::int2[]) WITH ORDINALITY AS u(payment, no, n)"
           " CROSS JOIN LATERAL (SELECT r.params, r.params_key_id, r.params_bound_to,"
           " NULL::timestamptz AS created_at FROM payfact.payment_route AS r"
           " WHERE r.payment_id = u.payment AND r.route_no = u.no AND r.params IS NOT NULL"
           " UNION ALL SELECT q.params, q.params_key_id, q.params_bound_to, q.created_at"
           " FROM payfact.payment_route_params AS q"
           " WHERE q.payment_id = u.payment AND q.route_no = u.no) AS p"
           " ORDER BY u.n, p.created_at DESC NULLS LAST",
    .read_only = true,
};

static const struct pay_column params_columns[] = {
    {PAY_COLUMN_STR, offsetof(struct pay_store_params_ask, payment_id), NULL},
    {PAY_COLUMN_INT2, offsetof(struct pay_store_params_ask, route_no), NULL},
};

static const struct pay_pg_stmt load_details = {
    .name = "load_details",
    .sql = "SELECT u.n - 1, o.description, o.traceparent"
           " FROM unnest($1::text[]) WITH ORDINALITY AS u(payment, n)"
           " JOIN payfact.payment_order AS o ON o.payment_id = u.payment",
    .read_only = true,
};

static const struct pay_column detail_columns[] = {
    {PAY_COLUMN_STR, offsetof(struct pay_store_order_detail, payment_id), NULL},
};

static const struct pay_pg_stmt load_redirects = {
    .name = "load_redirects",
    .sql = "SELECT DISTINCT ON (u.n) u.n - 1, r.data, r.key_id, r.bound_to"
           " FROM unnest($1::text[]) WITH ORDINALITY AS u(attempt, n)"
           " JOIN payfact.attempt_redirect AS r ON r.attempt_id = u.attempt"
           " ORDER BY u.n, r.action_no DESC, r.created_at DESC",
    .read_only = true,
};

static const struct pay_column redirect_columns[] = {
    {PAY_COLUMN_STR, offsetof(struct pay_store_redirect_ask, attempt_id), NULL},
};

static void read_params(struct pay_store *store, struct pay_arena *arena,
                        const struct pay_store_job_load *load, size_t *at)
{
    const struct pay_pg_result *result = pay_store_result(store, (*at)++);
    for (size_t row = 0; row < pay_pg_rows(result); row++) {
        struct pay_store_params_ask *ask = load->params[pay_pg_int(result, row, 0)];
        ask->found = true;
        ask->params = pay_store_read_bytes(arena, result, row, 1);
        ask->key_id = pay_store_read_str(arena, result, row, 2);
        ask->bound_to = pay_store_read_str(arena, result, row, 3);
    }
}

static void read_details(struct pay_store *store, struct pay_arena *arena,
                         const struct pay_store_job_load *load, size_t *at)
{
    const struct pay_pg_result *result = pay_store_result(store, (*at)++);
    for (size_t row = 0; row < pay_pg_rows(result); row++) {
        struct pay_store_order_detail *detail = load->details[pay_pg_int(result, row, 0)];
        detail->description = pay_store_read_str(arena, result, row, 1);
        detail->traceparent = pay_store_read_str(arena, result, row, 2);
    }
}

static void read_redirects(struct pay_store *store, struct pay_arena *arena,
                           const struct pay_store_job_load *load, size_t *at)
{
    const struct pay_pg_result *result = pay_store_result(store, (*at)++);
    for (size_t row = 0; row < pay_pg_rows(result); row++) {
        struct pay_store_redirect_ask *ask = load->redirects[pay_pg_int(result, row, 0)];
        ask->found = true;
        ask->data = pay_store_read_bytes(arena, result, row, 1);
        ask->key_id = pay_store_read_str(arena, result, row, 2);
        ask->bound_to = pay_store_read_str(arena, result, row, 3);
    }
}

enum pay_status pay_store_job_load(struct pay_store *store, struct pay_arena *arena,
                                   const struct pay_store_job_load *load, struct pay_err *err)
{
    enum pay_status status = queue_ask(store, &load_params, COLUMNS(params_columns),
                                       (const void *const *)load->params, load->params_count, err);
    if (status == PAY_OK) {
        status = queue_ask(store, &load_details, COLUMNS(detail_columns),
                           (const void *const *)load->details, load->detail_count, err);
    }
    if (status == PAY_OK) {
        status = queue_ask(store, &load_redirects, COLUMNS(redirect_columns),
                           (const void *const *)load->redirects, load->redirect_count, err);
    }
    if (status == PAY_OK) {
        status = pay_store_run(store, err);
    }
    if (status == PAY_OK) {
        size_t at = 0;
        if (load->params_count > 0) {
            read_params(store, arena, load, &at);
        }
        if (load->detail_count > 0) {
            read_details(store, arena, load, &at);
        }
        if (load->redirect_count > 0) {
            read_redirects(store, arena, load, &at);
        }
    }
    pay_store_results_free(store);
    return status;
}
