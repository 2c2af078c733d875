/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/payment_input.h"

#include "common/contracts/binding.h"
#include "common/contracts/codec_internal.h"
#include "common/contracts/limits.h"

#include "common/base/banned.h"

const char *pay_wire_kind_name(enum pay_wire_kind kind)
{
    static const char *const names[PAY_WIRE_KIND_COUNT] = {
        [PAY_WIRE_PSP_EVENT] = "PSP_EVENT",
        [PAY_WIRE_COMMAND] = "COMMAND",
        [PAY_WIRE_REJECTED_COMMAND] = "REJECTED_COMMAND",
        [PAY_WIRE_DEADLINE] = "DEADLINE",
        [PAY_WIRE_REPLAY] = "REPLAY",
        [PAY_WIRE_REFUSED_NOTIFICATION] = "REFUSED_NOTIFICATION",
        [PAY_WIRE_UNRECOGNIZED] = "UNRECOGNIZED",
    };
    return (unsigned)kind < PAY_WIRE_KIND_COUNT ? names[kind] : "?";
}

static const struct pay_bind call[] = {
    PAY_TEXT("job_id", struct pay_call, job_id, 1, PAY_MAX_JOB_ID),
    PAY_INT("send_no", struct pay_call, send_no, 0, INT32_MAX),
    PAY_ENUM("query_by", struct pay_call, query_by, PAY_QUERY_BY_UNRECOGNIZED, .may_lack = true,
             .by_default = PAY_QUERY_BY_NONE),
    PAY_TIME_OPTIONAL("asked_at", struct pay_call, asked_at_us),
    PAY_INT("http_status", struct pay_call, http_status, 0, INT32_MAX, PAY_OPTIONAL),
    PAY_TEXT("psp_request_id", struct pay_call, psp_request_id, 0, PAY_MAX_REFERENCE, PAY_OPTIONAL),
    PAY_INT("retry_after_s", struct pay_call, retry_after_s, 0, INT32_MAX, PAY_OPTIONAL),
};
static const struct pay_bind_record bind_call = {call, PAY_FIELD_COUNT(call)};

/* From the start of the whole input: the settlement stands beside struct pay_event. */
static const struct pay_bind event[] = {
    PAY_ENUM("type", struct pay_payment_input, event.type, PAY_EV_UNRECOGNIZED),
    PAY_TEXT("psp", struct pay_payment_input, event.psp, 1, PAY_MAX_NAME),
    PAY_TEXT("psp_account", struct pay_payment_input, event.psp_account, 1, PAY_MAX_NAME),
    PAY_TEXT("merchant_request_no", struct pay_payment_input, event.merchant_request_no, 0,
             PAY_MAX_REFERENCE, PAY_OPTIONAL),
    PAY_TEXT("action_id", struct pay_payment_input, event.action_id, 0, PAY_MAX_REFERENCE,
             PAY_OPTIONAL),
    PAY_TEXT("provider_payment_id", struct pay_payment_input, event.provider_payment_id, 1,
             PAY_MAX_REFERENCE, PAY_OPTIONAL),
    PAY_TEXT("provider_action_id", struct pay_payment_input, event.provider_action_id, 1,
             PAY_MAX_REFERENCE, PAY_OPTIONAL),
    PAY_INLINE("references", struct pay_payment_input, event.references, event.reference_count,
               &pay_item_reference, .may_lack = true),
    PAY_BOOL("same_object", struct pay_payment_input, event.same_object, false),
    PAY_BOOL("success_when_automatic", struct pay_payment_input, event.success_when_automatic,
             false),
    PAY_LONG("amount_minor", struct pay_payment_input, event.amount.amount_minor, INT64_MIN,
             INT64_MAX, PAY_IF_BOOL(struct pay_payment_input, event.has_amount)),
    PAY_CURRENCY_OPTIONAL(struct pay_payment_input, event.amount.currency),
    PAY_TEXT("normalized_result", struct pay_payment_input, event.normalized_result, 0, 64),
    PAY_ENUM("failure_class", struct pay_payment_input, event.failure_class, PAY_FAILURE_OTHER,
             .may_lack = true, .by_default = PAY_FAILURE_NONE),
    PAY_TEXT("failure_code", struct pay_payment_input, event.failure_code, 0, PAY_MAX_CODE,
             PAY_OPTIONAL, .rule = PAY_RULE_CODE),
    PAY_PART("action", struct pay_payment_input, event.action, &pay_bind_action,
             PAY_IF_BOOL(struct pay_payment_input, event.action.is_set)),
    PAY_TIME_OPTIONAL("authorization_expires_at", struct pay_payment_input,
                      event.authorization_expires_at_us),
    PAY_PART("dispute", struct pay_payment_input, event.dispute, &pay_bind_dispute,
             PAY_IF_BOOL(struct pay_payment_input, event.dispute.is_set)),
    PAY_PART("settlement", struct pay_payment_input, settlement, &pay_bind_settlement,
             PAY_IF_BOOL(struct pay_payment_input, settlement.is_set)),
    PAY_PART("call", struct pay_payment_input, event.call, &bind_call,
             PAY_IF_BOOL(struct pay_payment_input, event.call.is_set)),
    PAY_TEXT("psp_event_type", struct pay_payment_input, event.psp_event_type, 0, 128,
             PAY_OPTIONAL),
};
static const struct pay_bind_record bind_event = {event, PAY_FIELD_COUNT(event)};

static const struct pay_bind command[] = {
    PAY_BYTES("value", struct pay_signed_command, value, 1, PAY_COMMAND_BYTES_MAX),
    PAY_BYTES("signature", struct pay_signed_command, signature, 0, 512),
    PAY_TEXT("key_id", struct pay_signed_command, key_id, 0, PAY_MAX_ID),
    PAY_BYTES("writer_fingerprint", struct pay_signed_command, writer_fingerprint, 8, 8),
    PAY_LIST("params", struct pay_signed_command, params, param_count, struct pay_sealed,
             &pay_item_sealed, PAY_ROUTES_MAX, .may_lack = true),
    PAY_PART("redirect_data", struct pay_signed_command, redirect_data, &pay_bind_sealed,
             PAY_IF_PTR(struct pay_signed_command, redirect_data.ciphertext.ptr)),
    PAY_TEXT("refusal", struct pay_signed_command, refusal, 0, PAY_MAX_CODE, PAY_OPTIONAL),
};
static const struct pay_bind_record bind_command = {command, PAY_FIELD_COUNT(command)};

static const struct pay_bind deadline[] = {
    PAY_TEXT("kind", struct pay_wire_deadline, kind, 1, PAY_MAX_CODE),
    PAY_TEXT("aggregate_id", struct pay_wire_deadline, aggregate_id, 1, PAY_MAX_AGGREGATE),
    PAY_TIME("due_at", struct pay_wire_deadline, due_at_us),
};
static const struct pay_bind_record bind_deadline = {deadline, PAY_FIELD_COUNT(deadline)};

static const struct pay_bind replay[] = {
    PAY_TEXT("psp", struct pay_wire_replay, psp, 0, PAY_MAX_NAME),
    PAY_TEXT("psp_account", struct pay_wire_replay, psp_account, 0, PAY_MAX_NAME),
    PAY_TEXT("transport_key", struct pay_wire_replay, transport_key, 1, PAY_TRANSPORT_KEY_MAX),
};
static const struct pay_bind_record bind_replay = {replay, PAY_FIELD_COUNT(replay)};

static const struct pay_bind refused[] = {
    PAY_TEXT("psp", struct pay_wire_refused, psp, 0, PAY_MAX_NAME),
    PAY_TEXT("psp_account", struct pay_wire_refused, psp_account, 0, PAY_MAX_NAME),
    PAY_TEXT("reason_code", struct pay_wire_refused, reason_code, 1, PAY_MAX_CODE),
};
static const struct pay_bind_record bind_refused = {refused, PAY_FIELD_COUNT(refused)};

static const struct pay_bind evidence[] = {
    PAY_BYTES("ciphertext", struct pay_sealed_evidence, ciphertext, 1, PAY_MAX_EVIDENCE),
    PAY_TEXT("key_id", struct pay_sealed_evidence, key_id, 1, PAY_MAX_ID),
    PAY_BYTES("sha256", struct pay_sealed_evidence, sha256, PAY_SHA256, PAY_SHA256),
    PAY_TEXT("verified_by", struct pay_sealed_evidence, verified_by, 1, PAY_MAX_REFERENCE),
};
static const struct pay_bind_record bind_evidence = {evidence, PAY_FIELD_COUNT(evidence)};

static const struct pay_bind fields[] = {
    PAY_TEXT("input_id", struct pay_payment_input, input_id, 1, PAY_MAX_ID),
    PAY_ENUM("kind", struct pay_payment_input, kind, PAY_WIRE_UNRECOGNIZED),
    PAY_ENUM("source", struct pay_payment_input, source, PAY_SOURCE_UNRECOGNIZED),
    PAY_ENUM("evidence_level", struct pay_payment_input, evidence_level,
             PAY_EVIDENCE_COUNT - PAY_EVIDENCE_LOCAL, .first = PAY_EVIDENCE_LOCAL),
    PAY_TEXT("payment_id", struct pay_payment_input, payment_id, PAY_MAX_PAYMENT_ID,
             PAY_MAX_PAYMENT_ID, PAY_OPTIONAL),
    PAY_FLAT("event", &bind_event,
             PAY_IF_KIND(struct pay_payment_input, kind, 1 << PAY_WIRE_PSP_EVENT)),
    PAY_PART("command", struct pay_payment_input, command, &bind_command,
             PAY_IF_KIND(struct pay_payment_input, kind,
                         1 << PAY_WIRE_COMMAND | 1 << PAY_WIRE_REJECTED_COMMAND)),
    PAY_PART("deadline", struct pay_payment_input, deadline, &bind_deadline,
             PAY_IF_KIND(struct pay_payment_input, kind, 1 << PAY_WIRE_DEADLINE)),
    PAY_PART("replay", struct pay_payment_input, replay, &bind_replay,
             PAY_IF_KIND(struct pay_payment_input, kind, 1 << PAY_WIRE_REPLAY)),
    PAY_PART("refused", struct pay_payment_input, refused, &bind_refused,
             PAY_IF_KIND(struct pay_payment_input, kind, 1 << PAY_WIRE_REFUSED_NOTIFICATION)),
    PAY_TEXT("transport_key", struct pay_payment_input, transport_key, 1, PAY_TRANSPORT_KEY_MAX,
             PAY_OPTIONAL),
    PAY_TEXT("business_key", struct pay_payment_input, business_key, 1, PAY_BUSINESS_KEY_MAX,
             PAY_OPTIONAL),
    PAY_TIME_OPTIONAL("occurred_at", struct pay_payment_input, occurred_at_us),
    PAY_TIME("received_at", struct pay_payment_input, received_at_us),
    PAY_PART("evidence", struct pay_payment_input, evidence, &bind_evidence,
             PAY_IF_PTR(struct pay_payment_input, evidence.ciphertext.ptr)),
    PAY_TRACEPARENT(struct pay_payment_input),
};
const struct pay_bind_record pay_bind_payment_input = {fields, PAY_FIELD_COUNT(fields)};

enum pay_status pay_payment_input_encode(struct pay_codec *codec,
                                         const struct pay_payment_input *record,
                                         struct pay_buf *out, struct pay_err *err)
{
    return pay_codec_encode(codec, PAY_RECORD_PAYMENT_INPUT, record, out, err);
}

enum pay_status pay_payment_input_decode(struct pay_codec *codec, struct pay_bytes value,
                                         struct pay_arena *arena,
                                         struct pay_payment_input *ret_record, struct pay_err *err)
{
    struct pay_payment_input record = {0};
    const enum pay_status status =
        pay_codec_decode(codec, PAY_RECORD_PAYMENT_INPUT, value, arena, &record, err);

    if (status == PAY_OK) {
        *ret_record = record;
    }
    return status;
}

enum pay_status pay_payment_input_encode_stored(struct pay_codec *codec,
                                                const struct pay_payment_input *record,
                                                struct pay_buf *out, struct pay_err *err)
{
    struct pay_payment_input stored = *record;

    stored.event.action = (struct pay_customer_action){0};
    stored.evidence = (struct pay_sealed_evidence){0};
    return pay_codec_encode(codec, PAY_RECORD_PAYMENT_INPUT, &stored, out, err);
}
