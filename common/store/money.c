/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/money.h"

#include <stddef.h>

#include "common/store/statement.h"

#include "common/base/banned.h"

#define ACT(member_) offsetof(struct pay_store_action_row, action.member_)
#define ROW(member_) offsetof(struct pay_store_action_row, member_)
#define DIS(member_) offsetof(struct pay_store_dispute_row, dispute.member_)
#define DIS_ROW(member_) offsetof(struct pay_store_dispute_row, member_)
#define DAY(member_) offsetof(struct pay_store_day_row, member_)

/* ---- captures and refunds: two tables of one shape, but for is_final ---- */

#define INSERT_ACTION(table_, id_, final_column_, final_value_)                                   \
    "INSERT INTO payfact." table_ " (" id_ ", attempt_id, payment_id, merchant_id,"               \
    " idempotency_key, amount_minor, currency, status, result_certainty, provider_reference,"     \
    " origin, reason_code, last_accepted_event_id, query_count, not_found_count, not_found_from," \
    " unknown_since, retry_at, give_up_at, failure_class, failure_code" final_column_             \
    ", created_at, updated_at)"                                                                   \
    " SELECT u.id, u.attempt, left(u.attempt, 26), u.merchant, u.key, u.amount, u.currency,"      \
    " u.status, u.certainty, u.reference, u.origin, u.reason, u.last_event, u.queries,"           \
    " u.not_founds, u.not_found_from, u.unknown_since, u.retry_at, u.give_up_at, u.fclass,"       \
    " u.fcode" final_value_ ", now(), now()"                                                      \
    " FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::int8[], $6::text[],"        \
    " $7::text[], $8::int2[], $9::text[], $10::text[], $11::text[], $12::text[], $13::int4[],"    \
    " $14::int4[], $15::timestamptz[], $16::timestamptz[], $17::timestamptz[],"                   \
    " $18::timestamptz[], $19::text[], $20::text[], $21::bool[])"                                 \
    " AS u(id, attempt, merchant, key, amount, currency, status, certainty, reference, origin,"   \
    " reason, last_event, queries, not_founds, not_found_from, unknown_since, retry_at,"          \
    " give_up_at, fclass, fcode, final)"

static const struct pay_pg_stmt insert_action[PAY_MONEY_KIND_COUNT] = {
    [PAY_MONEY_CAPTURE] = {.name = "capture_insert",
                           .sql = INSERT_ACTION("capture_order", "capture_id", ", is_final",
                                                ", u.final")},
    [PAY_MONEY_REFUND] = {.name = "refund_insert",
                          .sql = INSERT_ACTION("refund_order", "refund_id", "", "")},
};

static const struct pay_column insert_columns[] = {
    {PAY_COLUMN_CHARS, ACT(action_id), NULL},
    {PAY_COLUMN_CSTR, ROW(attempt_id), NULL},
    {PAY_COLUMN_CSTR, ROW(merchant_id), NULL},
    {PAY_COLUMN_CHARS, ACT(idempotency_key), NULL},
    {PAY_COLUMN_INT8, ACT(amount.amount_minor), NULL},
    {PAY_COLUMN_CHARS, ACT(amount.currency), NULL},
    {PAY_COLUMN_NAME, ACT(status), pay_column_money_status},
    {PAY_COLUMN_LEVEL, ACT(result_certainty), NULL},
    {PAY_COLUMN_CHARS_NULL, ACT(provider_reference), NULL},
    {PAY_COLUMN_NAME, ACT(origin), pay_column_origin},
    {PAY_COLUMN_CHARS_NULL, ACT(reason_code), NULL},
    {PAY_COLUMN_CHARS_NULL, ACT(last_accepted_event_id), NULL},
    {PAY_COLUMN_INT4, ACT(query_count), NULL},
    {PAY_COLUMN_INT4, ACT(not_found_count), NULL},
    {PAY_COLUMN_TIME, ACT(not_found_from_us), NULL},
    {PAY_COLUMN_TIME, ACT(unknown_since_us), NULL},
    {PAY_COLUMN_TIME, ACT(retry_at_us), NULL},
    {PAY_COLUMN_TIME, ACT(give_up_at_us), NULL},
    {PAY_COLUMN_NAME, ACT(failure_class), pay_column_failure_class},
    {PAY_COLUMN_CHARS_NULL, ACT(failure_code), NULL},
    {PAY_COLUMN_BOOL, ACT(is_final), NULL},
};

/* What it is, for whom and how much never changes. */
#define UPDATE_ACTION(table_, id_)                                                         \
    "UPDATE payfact." table_ " AS a SET version = a.version +"                             \
    " CASE u.change WHEN 'COUNTED' THEN 0 ELSE 1 END, status = u.status,"                  \
    " result_certainty = u.certainty, provider_reference = u.reference,"                   \
    " last_accepted_event_id = u.last_event, query_count = u.queries,"                     \
    " not_found_count = u.not_founds, not_found_from = u.not_found_from,"                  \
    " unknown_since = u.unknown_since, retry_at = u.retry_at, give_up_at = u.give_up_at,"  \
    " failure_class = u.fclass, failure_code = u.fcode, updated_at = now()"                \
    " FROM unnest($1::text[], $2::int8[], $3::text[], $4::int2[], $5::text[], $6::text[]," \
    " $7::int4[], $8::int4[], $9::timestamptz[], $10::timestamptz[], $11::timestamptz[],"  \
    " $12::timestamptz[], $13::text[], $14::text[], $15::text[])"                          \
    " AS u(id, version, status, certainty, reference, last_event, queries, not_founds,"    \
    " not_found_from, unknown_since, retry_at, give_up_at, fclass, fcode, change)"         \
    " WHERE a." id_ " = u.id AND a.version = u.version"

static const struct pay_pg_stmt update_action[PAY_MONEY_KIND_COUNT] = {
    [PAY_MONEY_CAPTURE] = {.name = "capture_update",
                           .sql = UPDATE_ACTION("capture_order", "capture_id")},
    [PAY_MONEY_REFUND] = {.name = "refund_update",
                          .sql = UPDATE_ACTION("refund_order", "refund_id")},
};

static const struct pay_column update_columns[] = {
    {PAY_COLUMN_CHARS, ACT(action_id), NULL},
    {PAY_COLUMN_INT8, ACT(version), NULL},
    {PAY_COLUMN_NAME, ACT(status), pay_column_money_status},
    {PAY_COLUMN_LEVEL, ACT(result_certainty), NULL},
    {PAY_COLUMN_CHARS_NULL, ACT(provider_reference), NULL},
    {PAY_COLUMN_CHARS_NULL, ACT(last_accepted_event_id), NULL},
    {PAY_COLUMN_INT4, ACT(query_count), NULL},
    {PAY_COLUMN_INT4, ACT(not_found_count), NULL},
    {PAY_COLUMN_TIME, ACT(not_found_from_us), NULL},
    {PAY_COLUMN_TIME, ACT(unknown_since_us), NULL},
    {PAY_COLUMN_TIME, ACT(retry_at_us), NULL},
    {PAY_COLUMN_TIME, ACT(give_up_at_us), NULL},
    {PAY_COLUMN_NAME, ACT(failure_class), pay_column_failure_class},
    {PAY_COLUMN_CHARS_NULL, ACT(failure_code), NULL},
    {PAY_COLUMN_NAME, ACT(change), pay_column_row_change},
};

enum pay_status pay_store_action_add(struct pay_store *store, enum pay_money_kind kind,
                                     const struct pay_store_action_row *const *rows, size_t count,
                                     struct pay_err *err)
{
    return pay_store_queue_rows(store, &insert_action[kind], COLUMNS(insert_columns),
                                (const void *const *)rows, count, err);
}

enum pay_status pay_store_action_update(struct pay_store *store, enum pay_money_kind kind,
                                        const struct pay_store_action_row *const *rows,
                                        size_t count, struct pay_err *err)
{
    return pay_store_queue_rows(store, &update_action[kind], COLUMNS(update_columns),
                                (const void *const *)rows, count, err);
}

/* ---- disputes ---- */

static const struct pay_pg_stmt insert_dispute = {
    .name = "dispute_insert",
    .sql = "INSERT INTO payfact.dispute (psp, psp_account, provider_reference, dispute_id,"
           " attempt_id, payment_id, amount_minor, currency, status, funds, is_inquiry,"
           " withdrawn_minor, reason_code, evidence_due_at, result_certainty,"
           " last_accepted_event_id, created_at, updated_at)"
           " SELECT u.psp, u.account, u.reference, u.id, u.attempt, left(u.attempt, 26), u.amount,"
           " u.currency, u.status, u.funds, u.inquiry, u.withdrawn, u.reason, u.due, u.certainty,"
           " u.last_event, now(), now()"
           " FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::int8[],"
           " $7::text[], $8::text[], $9::text[], $10::bool[], $11::int8[], $12::text[],"
           " $13::timestamptz[], $14::int2[], $15::text[])"
           " AS u(psp, account, reference, id, attempt, amount, currency, status, funds, inquiry,"
           " withdrawn, reason, due, certainty, last_event)",
};

static const struct pay_column dispute_columns[] = {
    {PAY_COLUMN_CSTR, DIS_ROW(psp), NULL},
    {PAY_COLUMN_CSTR, DIS_ROW(psp_account), NULL},
    {PAY_COLUMN_CHARS, DIS(provider_reference), NULL},
    {PAY_COLUMN_CHARS, DIS(dispute_id), NULL},
    {PAY_COLUMN_CSTR, DIS_ROW(attempt_id), NULL},
    {PAY_COLUMN_INT8, DIS(amount.amount_minor), NULL},
    {PAY_COLUMN_CHARS, DIS(amount.currency), NULL},
    {PAY_COLUMN_NAME, DIS(status), pay_column_dispute_status},
    {PAY_COLUMN_NAME, DIS(funds), pay_column_dispute_funds},
    {PAY_COLUMN_BOOL, DIS(is_inquiry), NULL},
    {PAY_COLUMN_INT8, DIS(withdrawn_minor), NULL},
    {PAY_COLUMN_CHARS_NULL, DIS(reason_code), NULL},
    {PAY_COLUMN_TIME, DIS(evidence_due_at_us), NULL},
    {PAY_COLUMN_LEVEL, DIS(result_certainty), NULL},
    {PAY_COLUMN_CHARS_NULL, DIS(last_accepted_event_id), NULL},
};

static const struct pay_pg_stmt update_dispute = {
    .name = "dispute_update",
    .sql = "UPDATE payfact.dispute AS d SET version = d.version + 1, amount_minor = u.amount,"
           " status = u.status, funds = u.funds, is_inquiry = u.inquiry,"
           " withdrawn_minor = u.withdrawn, evidence_due_at = u.due,"
           " result_certainty = u.certainty, last_accepted_event_id = u.last_event,"
           " updated_at = now()"
           " FROM unnest($1::text[], $2::int8[], $3::int8[], $4::text[], $5::text[], $6::bool[],"
           " $7::int8[], $8::timestamptz[], $9::int2[], $10::text[])"
           " AS u(id, version, amount, status, funds, inquiry, withdrawn, due, certainty,"
           " last_event) WHERE d.dispute_id = u.id AND d.version = u.version",
};

static const struct pay_column dispute_update_columns[] = {
    {PAY_COLUMN_CHARS, DIS(dispute_id), NULL},
    {PAY_COLUMN_INT8, DIS(version), NULL},
    {PAY_COLUMN_INT8, DIS(amount.amount_minor), NULL},
    {PAY_COLUMN_NAME, DIS(status), pay_column_dispute_status},
    {PAY_COLUMN_NAME, DIS(funds), pay_column_dispute_funds},
    {PAY_COLUMN_BOOL, DIS(is_inquiry), NULL},
    {PAY_COLUMN_INT8, DIS(withdrawn_minor), NULL},
    {PAY_COLUMN_TIME, DIS(evidence_due_at_us), NULL},
    {PAY_COLUMN_LEVEL, DIS(result_certainty), NULL},
    {PAY_COLUMN_CHARS_NULL, DIS(last_accepted_event_id), NULL},
};

enum pay_status pay_store_dispute_add(struct pay_store *store,
                                      const struct pay_store_dispute_row *const *rows, size_t count,
                                      struct pay_err *err)
{
    return pay_store_queue_rows(store, &insert_dispute, COLUMNS(dispute_columns),
                                (const void *const *)rows, count, err);
}

enum pay_status pay_store_dispute_update(struct pay_store *store,
                                         const struct pay_store_dispute_row *const *rows,
                                         size_t count, struct pay_err *err)
{
    return pay_store_queue_rows(store, &update_dispute, COLUMNS(dispute_update_columns),
                                (const void *const *)rows, count, err);
}

/* ---- the merchant's day ---- */

static const struct pay_pg_stmt open_day = {
    .name = "refund_day_open",
    .sql = "INSERT INTO payfact.refund_day (merchant_id, day, currency, amount_minor)"
           " SELECT u.merchant, (now() AT TIME ZONE 'UTC')::date, u.currency, 0"
           " FROM unnest($1::text[], $2::text[]) AS u(merchant, currency) ON CONFLICT DO NOTHING",
};

static const struct pay_column open_columns[] = {
    {PAY_COLUMN_CSTR, DAY(merchant_id), NULL},
    {PAY_COLUMN_CSTR, DAY(currency), NULL},
};

/* No payment's version protects the sum: who would pass the limit touches no row. */
static const struct pay_pg_stmt raise_day = {
    .name = "refund_day_raise",
    .sql = "UPDATE payfact.refund_day AS d SET amount_minor = d.amount_minor + u.added"
           " FROM unnest($1::text[], $2::text[], $3::int8[], $4::int8[])"
           " AS u(merchant, currency, added, most) WHERE d.merchant_id = u.merchant"
           " AND d.day = (now() AT TIME ZONE 'UTC')::date AND d.currency = u.currency"
           " AND d.amount_minor <= u.most - u.added",
};

static const struct pay_column raise_columns[] = {
    {PAY_COLUMN_CSTR, DAY(merchant_id), NULL},
    {PAY_COLUMN_CSTR, DAY(currency), NULL},
    {PAY_COLUMN_INT8, DAY(added_minor), NULL},
    {PAY_COLUMN_INT8, DAY(limit_minor), NULL},
};

enum pay_status pay_store_day_add(struct pay_store *store,
                                  const struct pay_store_day_row *const *rows, size_t count,
                                  struct pay_err *err)
{
    if (count == 0) {
        return PAY_OK;
    }
    pay_store_add_columns(store, COLUMNS(open_columns), (const void *const *)rows, count);
    enum pay_status status = pay_store_queue(store, &open_day, PAY_STORE_ANY_COUNT, err);
    return status != PAY_OK ? status
                            : pay_store_queue_rows(store, &raise_day, COLUMNS(raise_columns),
                                                   (const void *const *)rows, count, err);
}
