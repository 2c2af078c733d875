/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/payment_event.h"

#include "common/contracts/binding.h"
#include "common/contracts/codec_internal.h"
#include "common/contracts/limits.h"

#include "common/base/banned.h"

static const struct pay_bind totals[] = {
    PAY_LONG("authorized_minor", struct pay_event_totals, authorized_minor, INT64_MIN, INT64_MAX),
    PAY_LONG("capture_reserved_minor", struct pay_event_totals, capture_reserved_minor, INT64_MIN,
             INT64_MAX),
    PAY_LONG("captured_minor", struct pay_event_totals, captured_minor, INT64_MIN, INT64_MAX),
    PAY_LONG("refund_reserved_minor", struct pay_event_totals, refund_reserved_minor, INT64_MIN,
             INT64_MAX),
    PAY_LONG("refunded_minor", struct pay_event_totals, refunded_minor, INT64_MIN, INT64_MAX),
    PAY_LONG("withdrawn_minor", struct pay_event_totals, withdrawn_minor, INT64_MIN, INT64_MAX),
};
static const struct pay_bind_record bind_totals = {totals, PAY_FIELD_COUNT(totals)};

static const struct pay_bind review[] = {
    PAY_TEXT("case_id", struct pay_event_review, case_id, 1, 512),
    PAY_TEXT("kind", struct pay_event_review, kind, 1, PAY_MAX_CODE),
    PAY_LONG("proposed_refund_minor", struct pay_event_review, proposed_refund_minor, INT64_MIN,
             INT64_MAX, PAY_IF_BOOL(struct pay_event_review, has_proposed_refund)),
    PAY_TEXT("resolution_code", struct pay_event_review, resolution_code, 0, PAY_MAX_CODE,
             PAY_OPTIONAL),
};
static const struct pay_bind_record bind_review = {review, PAY_FIELD_COUNT(review)};

static const struct pay_bind command[] = {
    PAY_TEXT("caller", struct pay_event_command, caller, 1, PAY_MAX_ID),
    PAY_TEXT("command_id", struct pay_event_command, command_id, 1, PAY_MAX_ID),
    PAY_TEXT("command_type", struct pay_event_command, command_type, 1, PAY_MAX_CODE),
    PAY_TEXT("result_id", struct pay_event_command, result_id, 0, PAY_MAX_AGGREGATE, PAY_OPTIONAL),
};
static const struct pay_bind_record bind_command = {command, PAY_FIELD_COUNT(command)};

static const struct pay_bind withheld[] = {
    PAY_TEXT("event_id", struct pay_event_withheld, event_id, 1, 255),
    PAY_TEXT("type", struct pay_event_withheld, type, 1, PAY_MAX_CODE),
};
static const struct pay_bind_record bind_withheld = {withheld, PAY_FIELD_COUNT(withheld)};

static const struct pay_bind fields[] = {
    PAY_TEXT("event_id", struct pay_payment_event, event_id, 1, 400),
    PAY_ENUM("type", struct pay_payment_event, type, PAY_FACT_UNRECOGNIZED),
    PAY_TEXT("payment_id", struct pay_payment_event, payment_id, 0, PAY_MAX_PAYMENT_ID),
    PAY_TEXT("merchant_id", struct pay_payment_event, merchant_id, 0, PAY_MAX_MERCHANT),
    PAY_TEXT("merchant_order_no", struct pay_payment_event, merchant_order_no, 0, PAY_MAX_ID,
             PAY_OPTIONAL),
    PAY_LONG("sequence", struct pay_payment_event, sequence, 0, INT64_MAX),
    PAY_TEXT("aggregate_id", struct pay_payment_event, aggregate_id, 1, PAY_MAX_AGGREGATE),
    PAY_TEXT("attempt_id", struct pay_payment_event, attempt_id, 0, PAY_MAX_ACTION_ID,
             PAY_OPTIONAL),
    PAY_TEXT("previous_status", struct pay_payment_event, previous_status, 0, PAY_MAX_CODE,
             PAY_OPTIONAL),
    PAY_TEXT("status", struct pay_payment_event, status, 0, PAY_MAX_CODE, PAY_OPTIONAL),
    PAY_TEXT("order_status", struct pay_payment_event, order_status, 0, PAY_MAX_CODE, PAY_OPTIONAL),
    PAY_LONG("amount_minor", struct pay_payment_event, amount_minor, INT64_MIN, INT64_MAX,
             PAY_IF_BOOL(struct pay_payment_event, has_amount)),
    PAY_CURRENCY_OPTIONAL(struct pay_payment_event, currency),
    PAY_PART("totals", struct pay_payment_event, totals, &bind_totals,
             PAY_IF_BOOL(struct pay_payment_event, totals.is_set)),
    PAY_TEXT("reason_code", struct pay_payment_event, reason_code, 0, PAY_MAX_CODE),
    PAY_ENUM("failure_class", struct pay_payment_event, failure_class, PAY_FAILURE_OTHER,
             .may_lack = true, .by_default = PAY_FAILURE_NONE),
    PAY_TEXT("failure_code", struct pay_payment_event, failure_code, 0, PAY_MAX_CODE, PAY_OPTIONAL),
    PAY_ENUM("evidence_level", struct pay_payment_event, evidence_level,
             PAY_EVIDENCE_COUNT - PAY_EVIDENCE_LOCAL, .first = PAY_EVIDENCE_LOCAL),
    PAY_TEXT("psp", struct pay_payment_event, psp, 0, PAY_MAX_NAME, PAY_OPTIONAL),
    PAY_TEXT("psp_account", struct pay_payment_event, psp_account, 0, PAY_MAX_NAME, PAY_OPTIONAL),
    PAY_TEXT("method", struct pay_payment_event, method, 0, PAY_MAX_NAME, PAY_OPTIONAL),
    PAY_TEXT("provider_reference", struct pay_payment_event, provider_reference, 0,
             PAY_MAX_REFERENCE, PAY_OPTIONAL),
    PAY_PART("action", struct pay_payment_event, action, &pay_bind_action,
             PAY_IF_BOOL(struct pay_payment_event, action.is_set)),
    PAY_PART("dispute", struct pay_payment_event, dispute, &pay_bind_dispute,
             PAY_IF_BOOL(struct pay_payment_event, dispute.is_set)),
    PAY_PART("settlement", struct pay_payment_event, settlement, &pay_bind_settlement,
             PAY_IF_BOOL(struct pay_payment_event, settlement.is_set)),
    PAY_PART("review", struct pay_payment_event, review, &bind_review,
             PAY_IF_PTR(struct pay_payment_event, review.case_id.ptr)),
    PAY_PART("command", struct pay_payment_event, command, &bind_command,
             PAY_IF_PTR(struct pay_payment_event, command.caller.ptr)),
    PAY_PART("withheld", struct pay_payment_event, withheld, &bind_withheld,
             PAY_IF_PTR(struct pay_payment_event, withheld.event_id.ptr)),
    PAY_TIME_OPTIONAL("occurred_at", struct pay_payment_event, occurred_at_us),
    PAY_TIME("decided_at", struct pay_payment_event, decided_at_us),
    PAY_TRACEPARENT(struct pay_payment_event),
};
const struct pay_bind_record pay_bind_payment_event = {fields, PAY_FIELD_COUNT(fields)};

enum pay_status pay_payment_event_encode(struct pay_codec *codec,
                                         const struct pay_payment_event *record,
                                         struct pay_buf *out, struct pay_err *err)
{
    return pay_codec_encode(codec, PAY_RECORD_PAYMENT_EVENT, record, out, err);
}

enum pay_status pay_payment_event_decode(struct pay_codec *codec, struct pay_bytes value,
                                         struct pay_arena *arena,
                                         struct pay_payment_event *ret_record, struct pay_err *err)
{
    struct pay_payment_event record = {0};
    const enum pay_status status =
        pay_codec_decode(codec, PAY_RECORD_PAYMENT_EVENT, value, arena, &record, err);

    if (status == PAY_OK) {
        *ret_record = record;
    }
    return status;
}
