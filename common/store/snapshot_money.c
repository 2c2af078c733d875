/* SPDX-License-Identifier: Apache-2.0 */
/* Captures, refunds, disputes and approval requests of a snapshot. */
#include "common/store/snapshot_parts.h"

#include <string.h>

#include "common/base/assert.h"

#include "common/base/banned.h"

#define ACTION_COLUMNS(id_)                                                                    \
    "SELECT payment_id::text, " id_ "::text, attempt_id::text, idempotency_key, amount_minor," \
    " currency::text, status::text, result_certainty::int2, provider_reference, origin,"       \
    " reason_code, last_accepted_event_id, version, query_count, not_found_count,"             \
    " not_found_from, unknown_since, retry_at, give_up_at, failure_class::text, failure_code," \
    " created_at, updated_at"
#define ACTIONS_OF(table_, id_) \
    " FROM payfact." table_ " WHERE payment_id = ANY ($1::text[]) ORDER BY payment_id, " id_

const struct pay_pg_stmt pay_load_captures = {
    .name = "load_captures",
    .sql = ACTION_COLUMNS("capture_id") ", is_final" ACTIONS_OF("capture_order", "capture_id"),
    .read_only = true,
};

const struct pay_pg_stmt pay_load_refunds = {
    .name = "load_refunds",
    .sql = ACTION_COLUMNS("refund_id") ", true" ACTIONS_OF("refund_order", "refund_id"),
    .read_only = true,
};

const struct pay_pg_stmt pay_load_disputes = {
    .name = "load_disputes",
    .sql = "SELECT payment_id::text, dispute_id::text, attempt_id::text, provider_reference,"
           " amount_minor, currency::text, status, funds, is_inquiry, withdrawn_minor,"
           " reason_code, evidence_due_at, result_certainty::int2, last_accepted_event_id,"
           " version, created_at FROM payfact.dispute WHERE payment_id = ANY ($1::text[])"
           " ORDER BY payment_id, dispute_id",
    .read_only = true,
};

/* What waits, and what a command names whatever became of it. */
#define REQUESTS_OF                                                                            \
    " WHERE r.payment_id = ANY ($1::text[]) AND (r.status = 'PENDING' OR r.request_id = ANY (" \
    "$2::text[])) ORDER BY r.payment_id, r.request_id"

const struct pay_pg_stmt pay_load_requests = {
    .name = "load_requests",
    .sql = "SELECT r.payment_id::text, r.request_id, r.sha256::bytea, r.requested_by, r.status,"
           " r.expires_at, r.created_at, r.decided_at, r.aggregate_id, r.command,"
           " r.writer_fingerprint FROM payfact.approval_request AS r" REQUESTS_OF,
    .read_only = true,
};

const struct pay_pg_stmt pay_load_approvals = {
    .name = "load_approvals",
    .sql = "SELECT r.payment_id::text, a.request_id, a.principal, a.approves, a.command_id,"
           " a.decided_at FROM payfact.approval_request AS r JOIN payfact.approval AS a"
           " USING (request_id)" REQUESTS_OF ", a.principal",
    .read_only = true,
};

/* The two digits at the end of a C01, R01, D01 (the table's domain says so). */
static int number_of(const char *action_id)
{
    const char *digits = action_id + PAY_ACTION_ID_SIZE - 3;
    return (digits[0] - '0') * 10 + (digits[1] - '0');
}

static void read_action_state(struct pay_money_action *action, const struct pay_pg_result *r,
                              size_t row)
{
    bool known = pay_money_status_parse(pay_pg_text(r, row, 6), &action->status) &&
                 pay_origin_parse(pay_pg_text(r, row, 9), &action->origin);
    known = known && (pay_pg_is_null(r, row, 19) ||
                      pay_failure_class_parse(pay_pg_text(r, row, 19), &action->failure_class));
    PAY_ASSERT(known); /* the table's CHECKs have the same lists */
    action->result_certainty = (enum pay_evidence)pay_pg_int(r, row, 7);
    action->version = pay_pg_int(r, row, 12);
    action->query_count = (int)pay_pg_int(r, row, 13);
    action->not_found_count = (int)pay_pg_int(r, row, 14);
    action->not_found_from_us = pay_pg_timestamptz_or(r, row, 15, 0);
    action->unknown_since_us = pay_pg_timestamptz_or(r, row, 16, 0);
    action->retry_at_us = pay_pg_timestamptz_or(r, row, 17, 0);
    action->give_up_at_us = pay_pg_timestamptz(r, row, 18);
    action->created_at_us = pay_pg_timestamptz(r, row, 21);
    action->changed_at_us = pay_pg_timestamptz(r, row, 22);
    action->is_final = pay_pg_bool(r, row, 23);
}

static void read_action(const struct pay_snapshot *snapshot, struct pay_money_action *actions,
                        size_t *count, const struct pay_pg_result *r, size_t row)
{
    int attempt = pay_store_attempt_index(snapshot, pay_pg_text(r, row, 2));
    if (attempt < 0) {
        return;
    }
    struct pay_money_action *action = &actions[*count];
    *count += 1;
    action->attempt_index = attempt;
    pay_store_read_chars(action->action_id, sizeof(action->action_id), r, row, 1);
    action->number = number_of(action->action_id);
    pay_store_read_chars(action->idempotency_key, sizeof(action->idempotency_key), r, row, 3);
    action->amount.amount_minor = pay_pg_int(r, row, 4);
    pay_store_read_chars(action->amount.currency, sizeof(action->amount.currency), r, row, 5);
    pay_store_read_chars(action->provider_reference, sizeof(action->provider_reference), r, row, 8);
    pay_store_read_chars(action->reason_code, sizeof(action->reason_code), r, row, 10);
    pay_store_read_chars(action->last_accepted_event_id, sizeof(action->last_accepted_event_id), r,
                         row, 11);
    pay_store_read_chars(action->failure_code, sizeof(action->failure_code), r, row, 20);
    read_action_state(action, r, row);
}

void pay_read_capture(struct pay_snapshot *snapshot, const struct pay_pg_result *r, size_t row)
{
    read_action(snapshot, snapshot->captures, &snapshot->capture_count, r, row);
}

void pay_read_refund(struct pay_snapshot *snapshot, const struct pay_pg_result *r, size_t row)
{
    read_action(snapshot, snapshot->refunds, &snapshot->refund_count, r, row);
}

void pay_read_dispute(struct pay_snapshot *snapshot, const struct pay_pg_result *r, size_t row)
{
    int attempt = pay_store_attempt_index(snapshot, pay_pg_text(r, row, 2));
    if (attempt < 0) {
        return;
    }
    struct pay_dispute *dispute = &snapshot->disputes[snapshot->dispute_count++];
    dispute->attempt_index = attempt;
    pay_store_read_chars(dispute->dispute_id, sizeof(dispute->dispute_id), r, row, 1);
    dispute->number = number_of(dispute->dispute_id);
    pay_store_read_chars(dispute->provider_reference, sizeof(dispute->provider_reference), r, row,
                         3);
    dispute->amount.amount_minor = pay_pg_int(r, row, 4);
    pay_store_read_chars(dispute->amount.currency, sizeof(dispute->amount.currency), r, row, 5);
    bool known = pay_dispute_status_parse(pay_pg_text(r, row, 6), &dispute->status) &&
                 pay_dispute_funds_parse(pay_pg_text(r, row, 7), &dispute->funds);
    PAY_ASSERT(known); /* the table's CHECKs have the same lists */
    dispute->is_inquiry = pay_pg_bool(r, row, 8);
    dispute->withdrawn_minor = pay_pg_int(r, row, 9);
    pay_store_read_chars(dispute->reason_code, sizeof(dispute->reason_code), r, row, 10);
    dispute->evidence_due_at_us = pay_pg_timestamptz_or(r, row, 11, 0);
    dispute->result_certainty = (enum pay_evidence)pay_pg_int(r, row, 12);
    pay_store_read_chars(dispute->last_accepted_event_id, sizeof(dispute->last_accepted_event_id),
                         r, row, 13);
    dispute->version = pay_pg_int(r, row, 14);
    dispute->created_at_us = pay_pg_timestamptz(r, row, 15);
}

void pay_read_request(struct pay_snapshot *snapshot, const struct pay_pg_result *r, size_t row)
{
    struct pay_approval_request *request = &snapshot->requests[snapshot->request_count++];
    pay_store_read_chars(request->request_id, sizeof(request->request_id), r, row, 1);
    struct pay_bytes sha256 = pay_pg_bytea(r, row, 2);
    PAY_ASSERT(sha256.len == sizeof(request->sha256)); /* the column's domain */
    memcpy(request->sha256, sha256.ptr, sizeof(request->sha256));
    pay_store_read_chars(request->requested_by, sizeof(request->requested_by), r, row, 3);
    bool known = pay_request_status_parse(pay_pg_text(r, row, 4), &request->status);
    PAY_ASSERT(known);
    request->expires_at_us = pay_pg_timestamptz(r, row, 5);
    request->created_at_us = pay_pg_timestamptz(r, row, 6);
    request->decided_at_us = pay_pg_timestamptz_or(r, row, 7, 0);
    pay_store_read_chars(request->aggregate_id, sizeof(request->aggregate_id), r, row, 8);
}

void pay_read_approval(struct pay_snapshot *snapshot, const struct pay_pg_result *r, size_t row)
{
    struct pay_str request_id = pay_pg_text(r, row, 1);
    for (size_t i = 0; i < snapshot->request_count; i++) {
        if (!pay_str_eq_c(request_id, snapshot->requests[i].request_id)) {
            continue;
        }
        struct pay_approval *approval = &snapshot->approvals[snapshot->approval_count++];
        approval->request_index = (int)i;
        pay_store_read_chars(approval->principal, sizeof(approval->principal), r, row, 2);
        approval->approves = pay_pg_bool(r, row, 3);
        pay_store_read_chars(approval->command_id, sizeof(approval->command_id), r, row, 4);
        approval->decided_at_us = pay_pg_timestamptz(r, row, 5);
    }
}
