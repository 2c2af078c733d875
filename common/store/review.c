/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/review.h"

#include <stddef.h>

#include "common/store/statement.h"

#include "common/base/banned.h"

#define COUNT(array_) (sizeof(array_) / sizeof((array_)[0]))

/* clang-format off */
#define T(row_, field_) {#field_, PAY_EXPLAIN_TEXT, offsetof(struct pay_review_##row_, field_)}
#define I(row_, field_) {#field_, PAY_EXPLAIN_INT, offsetof(struct pay_review_##row_, field_)}
#define D(row_, field_) {#field_, PAY_EXPLAIN_TIME, offsetof(struct pay_review_##row_, field_)}

/* The columns of each statement are the fields of its table, in that order. */
static const struct pay_explain_field case_fields[] = {
    T(case, case_id), T(case, kind), T(case, payment_id), T(case, aggregate_id),
    T(case, merchant_id), T(case, currency), I(case, version), I(case, proposed_refund_minor),
    I(case, evidence_count), D(case, opened_at),
};
static const struct pay_explain_field request_fields[] = {
    T(request, request_id), T(request, sha256), T(request, command_type), T(request, payment_id),
    T(request, merchant_id), T(request, aggregate_id), T(request, reason_code),
    T(request, requested_by), T(request, approved_by), T(request, attachments),
    I(request, expected_version), I(request, approvals), D(request, expires_at),
    D(request, created_at),
};
/* clang-format on */

static const struct pay_pg_stmt list_cases = {
    .name = "review_cases",
    .sql = "SELECT c.case_id, c.kind, c.payment_id, c.aggregate_id, o.merchant_id,"
           " o.currency::text, c.version, coalesce(c.proposed_refund_minor, 0),"
           " jsonb_array_length(c.evidence)::int8, c.opened_at FROM payfact.manual_case AS c"
           " LEFT JOIN payfact.payment_order AS o ON o.payment_id = c.payment_id"
           " WHERE c.status = 'OPEN' ORDER BY c.opened_at, c.case_id LIMIT $1",
    .read_only = true,
};

static const struct pay_pg_stmt list_requests = {
    .name = "review_requests",
    .sql = "SELECT r.request_id, encode(r.sha256, 'hex'), r.command_type, r.payment_id::text,"
           " o.merchant_id, r.aggregate_id, r.reason_code, r.requested_by,"
           " string_agg(a.principal, ' ' ORDER BY a.decided_at) FILTER (WHERE a.approves),"
           " r.attachments::text, coalesce(r.expected_version, 0),"
           " count(*) FILTER (WHERE a.approves), r.expires_at, r.created_at"
           " FROM payfact.approval_request AS r"
           " JOIN payfact.payment_order AS o ON o.payment_id = r.payment_id"
           " LEFT JOIN payfact.approval AS a ON a.request_id = r.request_id"
           " WHERE r.status = 'PENDING' GROUP BY r.request_id, o.merchant_id"
           " ORDER BY r.expires_at, r.request_id LIMIT $1",
    .read_only = true,
};

const struct pay_explain_spec *pay_review_case_spec(void)
{
    static const struct pay_explain_spec spec = {"cases", case_fields, COUNT(case_fields),
                                                 sizeof(struct pay_review_case)};
    return &spec;
}

const struct pay_explain_spec *pay_review_request_spec(void)
{
    static const struct pay_explain_spec spec = {"approvals", request_fields, COUNT(request_fields),
                                                 sizeof(struct pay_review_request)};
    return &spec;
}

static enum pay_status list(struct pay_store *store, const struct pay_pg_stmt *stmt,
                            const struct pay_explain_spec *spec, struct pay_arena *arena,
                            struct pay_explain_rows *ret_rows, struct pay_err *err)
{
    pay_pg_add_int8(pay_store_params(store), PAY_STORE_REVIEW_MAX);
    enum pay_status status = pay_store_exec(store, stmt, err);
    if (status == PAY_OK) {
        status = pay_store_read_rows(spec, pay_store_result(store, 0), arena, ret_rows, err);
        pay_store_results_free(store);
    }
    return status;
}

enum pay_status pay_store_review_cases(struct pay_store *store, struct pay_arena *arena,
                                       struct pay_explain_rows *ret_rows, struct pay_err *err)
{
    return list(store, &list_cases, pay_review_case_spec(), arena, ret_rows, err);
}

enum pay_status pay_store_review_requests(struct pay_store *store, struct pay_arena *arena,
                                          struct pay_explain_rows *ret_rows, struct pay_err *err)
{
    return list(store, &list_requests, pay_review_request_spec(), arena, ret_rows, err);
}
