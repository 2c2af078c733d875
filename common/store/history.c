/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/history.h"

#include <stddef.h>

#include "common/store/statement.h"

#include "common/base/banned.h"

#define ROW(member_) offsetof(struct pay_store_history_row, member_)
#define AUDIT(member_) offsetof(struct pay_store_audit_row, member_)

static const struct pay_pg_stmt insert_history = {
    .name = "history_insert",
    .sql = "INSERT INTO payfact.payment_state_history (decided_at, payment_id, aggregate,"
           " aggregate_id, from_status, to_status, verdict, event_type, event_id,"
           " published_event_id, published_sequence, source, evidence_level, reason_code, operator,"
           " provider_reference, amount_minor, currency, http_status, psp_request_id, trace_id,"
           " version_before)"
           " SELECT now(), u.* FROM unnest($1::text[], $2::text[], $3::text[], $4::text[],"
           " $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::int8[], $11::text[],"
           " $12::int2[], $13::text[], $14::text[], $15::text[], $16::int8[], $17::text[],"
           " $18::int8[], $19::text[], $20::text[], $21::int8[]) AS u",
};

static const struct pay_column history_columns[] = {
    {PAY_COLUMN_STR, ROW(payment_id), NULL},
    {PAY_COLUMN_NAME, ROW(aggregate), pay_column_aggregate},
    {PAY_COLUMN_STR, ROW(aggregate_id), NULL},
    {PAY_COLUMN_CSTR, ROW(from_status), NULL},
    {PAY_COLUMN_CSTR, ROW(to_status), NULL},
    {PAY_COLUMN_NAME, ROW(verdict), pay_column_verdict},
    {PAY_COLUMN_CSTR, ROW(event_name), NULL},
    {PAY_COLUMN_STR, ROW(event_id), NULL},
    {PAY_COLUMN_STR, ROW(published_event_id), NULL},
    {PAY_COLUMN_INT8_NULL, ROW(published_sequence), NULL},
    {PAY_COLUMN_NAME, ROW(source), pay_column_source},
    {PAY_COLUMN_LEVEL, ROW(evidence), NULL},
    {PAY_COLUMN_CSTR, ROW(reason_code), NULL},
    {PAY_COLUMN_STR, ROW(principal), NULL},
    {PAY_COLUMN_STR, ROW(provider_reference), NULL},
    {PAY_COLUMN_INT8_NULL, ROW(amount_minor), NULL},
    {PAY_COLUMN_STR, ROW(currency), NULL},
    {PAY_COLUMN_INT8_NULL, ROW(http_status), NULL},
    {PAY_COLUMN_STR, ROW(psp_request_id), NULL},
    {PAY_COLUMN_STR, ROW(trace_id), NULL},
    {PAY_COLUMN_INT8, ROW(version_before), NULL},
};

static const struct pay_pg_stmt insert_audit = {
    .name = "audit_insert",
    .sql = "INSERT INTO payfact.audit_log (who, what, subject, reason, from_where)"
           " SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])",
};

static const struct pay_column audit_columns[] = {
    {PAY_COLUMN_STR, AUDIT(who), NULL},         {PAY_COLUMN_CSTR, AUDIT(what), NULL},
    {PAY_COLUMN_STR, AUDIT(subject), NULL},     {PAY_COLUMN_STR, AUDIT(reason), NULL},
    {PAY_COLUMN_CSTR, AUDIT(from_where), NULL},
};

enum pay_status pay_store_history_add(struct pay_store *store,
                                      const struct pay_store_history_row *const *rows, size_t count,
                                      struct pay_err *err)
{
    return pay_store_queue_rows(store, &insert_history, COLUMNS(history_columns),
                                (const void *const *)rows, count, err);
}

enum pay_status pay_store_audit_add(struct pay_store *store,
                                    const struct pay_store_audit_row *const *rows, size_t count,
                                    struct pay_err *err)
{
    return pay_store_queue_rows(store, &insert_audit, COLUMNS(audit_columns),
                                (const void *const *)rows, count, err);
}
