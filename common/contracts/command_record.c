/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/command_record.h"

#include "common/contracts/binding.h"
#include "common/contracts/codec_internal.h"
#include "common/contracts/limits.h"
#include "common/contracts/payment_input.h"

#include "common/base/banned.h"

/* Several commands share a struct in struct pay_command; each has its own rows, because the fields
 * that Avro gives them differ. */

static const struct pay_bind route[] = {
    PAY_TEXT("psp", struct pay_route_choice, psp, 1, PAY_MAX_NAME),
    PAY_TEXT("psp_account", struct pay_route_choice, psp_account, 1, PAY_MAX_NAME),
    PAY_TEXT("method", struct pay_route_choice, method, 1, PAY_MAX_NAME),
    PAY_BOOL("failover_on_not_found", struct pay_route_choice, failover_on_not_found, false),
};
static const struct pay_bind_record bind_route = {route, PAY_FIELD_COUNT(route)};

static const struct pay_bind item_route = {
    .name = "(route)", .kind = PAY_BIND_RECORD, .record = &bind_route};

static const struct pay_bind create_payment[] = {
    PAY_TEXT("merchant_order_no", struct pay_cmd_create_payment, merchant_order_no, 1, PAY_MAX_ID),
    PAY_LONG("amount_minor", struct pay_cmd_create_payment, amount.amount_minor, INT64_MIN,
             INT64_MAX),
    PAY_CURRENCY(struct pay_cmd_create_payment, amount.currency),
    PAY_ENUM("capture_mode", struct pay_cmd_create_payment, capture_mode, PAY_CAPTURE_UNRECOGNIZED),
    PAY_TIME_OPTIONAL("expires_at", struct pay_cmd_create_payment, expires_at_us),
    PAY_ROW(PAY_BIND_FLAG, "retry_until_expiry", struct pay_cmd_create_payment, retry_until_expiry,
            .max = 1, .null_value = -1, PAY_OPTIONAL),
    PAY_TEXT("description", struct pay_cmd_create_payment, description, 0, PAY_MAX_DESCRIPTION,
             PAY_OPTIONAL),
    PAY_INLINE("routes", struct pay_cmd_create_payment, routes, route_count, &item_route),
    PAY_BOOL("start", struct pay_cmd_create_payment, start, true),
};
static const struct pay_bind_record bind_create_payment = {create_payment,
                                                           PAY_FIELD_COUNT(create_payment)};

static const struct pay_bind one_route[] = {
    PAY_PART("route", struct pay_command, route, &bind_route),
};
static const struct pay_bind_record bind_one_route = {one_route, PAY_FIELD_COUNT(one_route)};

static const struct pay_bind continue_attempt[] = {
    PAY_TEXT("attempt_id", struct pay_command, attempt_id, 1, PAY_MAX_ACTION_ID),
};
static const struct pay_bind_record bind_continue_attempt = {continue_attempt,
                                                             PAY_FIELD_COUNT(continue_attempt)};

static const struct pay_bind capture[] = {
    PAY_TEXT("attempt_id", struct pay_cmd_money, attempt_id, 1, PAY_MAX_ACTION_ID, PAY_OPTIONAL),
    PAY_LONG("amount_minor", struct pay_cmd_money, amount.amount_minor, INT64_MIN, INT64_MAX),
    PAY_CURRENCY(struct pay_cmd_money, amount.currency),
    PAY_BOOL("is_final", struct pay_cmd_money, is_final, true),
    PAY_TEXT("idempotency_key", struct pay_cmd_money, idempotency_key, 1, PAY_MAX_ID, PAY_OPTIONAL),
};
static const struct pay_bind_record bind_capture = {capture, PAY_FIELD_COUNT(capture)};

static const struct pay_bind cancel_payment[] = {
    PAY_TEXT("reason_code", struct pay_command, reason_code, 1, PAY_MAX_CODE),
};
static const struct pay_bind_record bind_cancel_payment = {cancel_payment,
                                                           PAY_FIELD_COUNT(cancel_payment)};

static const struct pay_bind request_refund[] = {
    PAY_TEXT("attempt_id", struct pay_cmd_money, attempt_id, 1, PAY_MAX_ACTION_ID, PAY_OPTIONAL),
    PAY_LONG("amount_minor", struct pay_cmd_money, amount.amount_minor, INT64_MIN, INT64_MAX),
    PAY_CURRENCY(struct pay_cmd_money, amount.currency),
    PAY_TEXT("reason_code", struct pay_cmd_money, reason_code, 1, PAY_MAX_CODE),
    PAY_TEXT("idempotency_key", struct pay_cmd_money, idempotency_key, 1, PAY_MAX_ID, PAY_OPTIONAL),
};
static const struct pay_bind_record bind_request_refund = {request_refund,
                                                           PAY_FIELD_COUNT(request_refund)};

static const struct pay_bind attachment[] = {
    PAY_TEXT("reference", struct pay_attachment, reference, 1, 512),
    PAY_BYTES("sha256", struct pay_attachment, sha256, PAY_SHA256, PAY_SHA256),
};
static const struct pay_bind_record bind_attachment = {attachment, PAY_FIELD_COUNT(attachment)};

static const struct pay_bind item_attachment = {
    .name = "(attachment)", .kind = PAY_BIND_RECORD, .record = &bind_attachment};

#define OUTCOME_UNRECOGNIZED 2 /* Index in ForcedOutcome. */

static const struct pay_bind force_close_unknown[] = {
    PAY_TEXT("aggregate_id", struct pay_cmd_controlled, aggregate_id, 1, PAY_MAX_AGGREGATE),
    PAY_LONG("expected_version", struct pay_cmd_controlled, expected_version, 0, INT64_MAX),
    PAY_ROW(PAY_BIND_SYMBOL, "outcome", struct pay_cmd_controlled, to_status,
            .fallback = OUTCOME_UNRECOGNIZED),
    PAY_TEXT("provider_reference", struct pay_cmd_controlled, provider_reference, 1,
             PAY_MAX_REFERENCE, PAY_OPTIONAL),
    PAY_TEXT("reason_code", struct pay_cmd_controlled, reason_code, 1, PAY_MAX_CODE),
    PAY_INLINE("attachments", struct pay_cmd_controlled, attachments, attachment_count,
               &item_attachment, .min = 1),
};
static const struct pay_bind_record bind_force_close_unknown = {
    force_close_unknown, PAY_FIELD_COUNT(force_close_unknown)};

static const struct pay_bind correct_state[] = {
    PAY_TEXT("aggregate_id", struct pay_cmd_controlled, aggregate_id, 1, PAY_MAX_AGGREGATE),
    PAY_LONG("expected_version", struct pay_cmd_controlled, expected_version, 0, INT64_MAX,
             .null_value = -1, PAY_OPTIONAL),
    PAY_TEXT("from_status", struct pay_cmd_controlled, from_status, 1, PAY_MAX_CODE),
    PAY_TEXT("to_status", struct pay_cmd_controlled, to_status, 1, PAY_MAX_CODE),
    PAY_LONG("amount_minor", struct pay_cmd_controlled, amount.amount_minor, INT64_MIN, INT64_MAX,
             PAY_IF_BOOL(struct pay_cmd_controlled, has_amount)),
    PAY_CURRENCY_OPTIONAL(struct pay_cmd_controlled, amount.currency),
    PAY_TEXT("provider_reference", struct pay_cmd_controlled, provider_reference, 1,
             PAY_MAX_REFERENCE, PAY_OPTIONAL),
    PAY_TEXT("reason_code", struct pay_cmd_controlled, reason_code, 1, PAY_MAX_CODE),
    PAY_INLINE("attachments", struct pay_cmd_controlled, attachments, attachment_count,
               &item_attachment, .min = 1),
};
static const struct pay_bind_record bind_correct_state = {correct_state,
                                                          PAY_FIELD_COUNT(correct_state)};

static const struct pay_bind release_reservation[] = {
    PAY_TEXT("aggregate_id", struct pay_cmd_controlled, aggregate_id, 1, PAY_MAX_AGGREGATE),
    PAY_LONG("expected_version", struct pay_cmd_controlled, expected_version, 0, INT64_MAX),
    PAY_TEXT("reason_code", struct pay_cmd_controlled, reason_code, 1, PAY_MAX_CODE),
    PAY_INLINE("attachments", struct pay_cmd_controlled, attachments, attachment_count,
               &item_attachment, .min = 1),
};
static const struct pay_bind_record bind_release_reservation = {
    release_reservation, PAY_FIELD_COUNT(release_reservation)};

static const struct pay_bind override_block[] = {
    PAY_TEXT("attempt_id", struct pay_cmd_controlled, aggregate_id, 1, PAY_MAX_AGGREGATE),
    PAY_LONG("expected_version", struct pay_cmd_controlled, expected_version, 0, INT64_MAX),
    PAY_TEXT("reason_code", struct pay_cmd_controlled, reason_code, 1, PAY_MAX_CODE),
    PAY_INLINE("attachments", struct pay_cmd_controlled, attachments, attachment_count,
               &item_attachment, .min = 1),
};
static const struct pay_bind_record bind_override_block = {override_block,
                                                           PAY_FIELD_COUNT(override_block)};

static const struct pay_bind resolve_case[] = {
    PAY_TEXT("case_id", struct pay_cmd_controlled, aggregate_id, 1, PAY_MAX_AGGREGATE),
    PAY_LONG("expected_version", struct pay_cmd_controlled, expected_version, 0, INT64_MAX),
    PAY_TEXT("resolution_code", struct pay_cmd_controlled, reason_code, 1, PAY_MAX_CODE),
    PAY_INLINE("attachments", struct pay_cmd_controlled, attachments, attachment_count,
               &item_attachment, .min = 0, .may_lack = true),
};
static const struct pay_bind_record bind_resolve_case = {resolve_case,
                                                         PAY_FIELD_COUNT(resolve_case)};

static const struct pay_bind approve[] = {
    PAY_TEXT("request_id", struct pay_cmd_approval, request_id, 1, PAY_MAX_AGGREGATE),
    PAY_BYTES("request_sha256", struct pay_cmd_approval, request_sha256, PAY_SHA256, PAY_SHA256),
};
static const struct pay_bind_record bind_approve = {approve, PAY_FIELD_COUNT(approve)};

static const struct pay_bind decline[] = {
    PAY_TEXT("request_id", struct pay_cmd_approval, request_id, 1, PAY_MAX_AGGREGATE),
    PAY_BYTES("request_sha256", struct pay_cmd_approval, request_sha256, PAY_SHA256, PAY_SHA256),
    PAY_TEXT("reason_code", struct pay_cmd_approval, reason_code, 1, PAY_MAX_CODE),
};
static const struct pay_bind_record bind_decline = {decline, PAY_FIELD_COUNT(decline)};

static const struct pay_bind replay_input[] = {
    PAY_TEXT("psp", struct pay_cmd_subject, psp, 0, PAY_MAX_NAME),
    PAY_TEXT("psp_account", struct pay_cmd_subject, psp_account, 0, PAY_MAX_NAME),
    PAY_TEXT("transport_key", struct pay_cmd_subject, transport_key, 1, PAY_TRANSPORT_KEY_MAX),
    PAY_TEXT("reason_code", struct pay_cmd_subject, reason_code, 1, PAY_MAX_CODE),
};
static const struct pay_bind_record bind_replay_input = {replay_input,
                                                         PAY_FIELD_COUNT(replay_input)};

/* DISCARD_EVENT and REPLAY_EVENT. */
static const struct pay_bind dead_event[] = {
    PAY_TEXT("event_id", struct pay_cmd_subject, event_id, 1, 255),
    PAY_TEXT("reason_code", struct pay_cmd_subject, reason_code, 1, PAY_MAX_CODE),
};
static const struct pay_bind_record bind_dead_event = {dead_event, PAY_FIELD_COUNT(dead_event)};

static const struct pay_bind pause[] = {
    PAY_TEXT("psp", struct pay_cmd_subject, psp, 0, PAY_MAX_NAME),
    PAY_TEXT("psp_account", struct pay_cmd_subject, psp_account, 0, PAY_MAX_NAME),
    PAY_TEXT("method", struct pay_cmd_subject, method, 0, PAY_MAX_NAME),
    PAY_TEXT("reason_code", struct pay_cmd_subject, reason_code, 1, PAY_MAX_CODE),
};
static const struct pay_bind_record bind_pause = {pause, PAY_FIELD_COUNT(pause)};

static const struct pay_bind fields[] = {
    PAY_TEXT("command_id", struct pay_command, command_id, 1, PAY_MAX_ID),
    PAY_ENUM("type", struct pay_command, type, PAY_CMD_UNRECOGNIZED),
    PAY_TEXT("caller", struct pay_command, caller, 1, PAY_MAX_ID),
    PAY_TEXT("merchant_id", struct pay_command, merchant_id, 1, PAY_MAX_MERCHANT),
    PAY_TEXT("payment_id", struct pay_command, payment_id, 0, PAY_MAX_PAYMENT_ID),
    PAY_TIME("issued_at", struct pay_command, issued_at_us),
    PAY_BYTES("secrets_sha256", struct pay_command, secrets_sha256, PAY_SHA256, PAY_SHA256,
              PAY_OPTIONAL),
    PAY_PART("create_payment", struct pay_command, create_payment, &bind_create_payment,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_CREATE_PAYMENT)),
    PAY_PART("capture", struct pay_command, money, &bind_capture,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_CAPTURE)),
    PAY_PART("request_refund", struct pay_command, money, &bind_request_refund,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_REQUEST_REFUND)),
    PAY_PART("force_close_unknown", struct pay_command, controlled, &bind_force_close_unknown,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_FORCE_CLOSE_UNKNOWN)),
    PAY_PART("correct_state", struct pay_command, controlled, &bind_correct_state,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_CORRECT_STATE)),
    PAY_PART("release_reservation", struct pay_command, controlled, &bind_release_reservation,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_RELEASE_RESERVATION)),
    PAY_PART("override_block", struct pay_command, controlled, &bind_override_block,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_OVERRIDE_BLOCK)),
    PAY_PART("resolve_case", struct pay_command, controlled, &bind_resolve_case,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_RESOLVE_CASE)),
    PAY_PART("approve", struct pay_command, approval, &bind_approve,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_APPROVE)),
    PAY_PART("decline", struct pay_command, approval, &bind_decline,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_DECLINE)),
    PAY_PART("replay_input", struct pay_command, subject, &bind_replay_input,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_REPLAY_INPUT)),
    PAY_PART("discard_event", struct pay_command, subject, &bind_dead_event,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_DISCARD_EVENT)),
    PAY_PART("replay_event", struct pay_command, subject, &bind_dead_event,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_REPLAY_EVENT)),
    PAY_PART("pause_route", struct pay_command, subject, &bind_pause,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_PAUSE_ROUTE)),
    PAY_PART("resume_route", struct pay_command, subject, &bind_pause,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_RESUME_ROUTE)),
    PAY_FLAT("start_attempt", &bind_one_route,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_START_ATTEMPT)),
    PAY_FLAT("change_method", &bind_one_route,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_CHANGE_METHOD)),
    PAY_FLAT("continue_attempt", &bind_continue_attempt,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_CONTINUE_ATTEMPT)),
    PAY_FLAT("cancel_payment", &bind_cancel_payment,
             PAY_IF_KIND(struct pay_command, type, 1 << PAY_CMD_CANCEL_PAYMENT)),
    PAY_TRACEPARENT(struct pay_command),
};
const struct pay_bind_record pay_bind_command = {fields, PAY_FIELD_COUNT(fields)};

static const struct pay_bind extra_key =
    PAY_TEXT("(extra's name)", struct pay_extra_param, name, 1, PAY_MAX_CODE);
static const struct pay_bind extra_value =
    PAY_TEXT("(extra)", struct pay_extra_param, value, 0, PAY_MAX_URL);

static const struct pay_bind params[] = {
    PAY_TEXT("instrument", struct pay_submit_params, instrument, 1, 512, PAY_OPTIONAL),
    PAY_TEXT("payer_id", struct pay_submit_params, payer_id, 1, PAY_MAX_REFERENCE, PAY_OPTIONAL),
    PAY_TEXT("payer_ip", struct pay_submit_params, payer_ip, 1, 45, PAY_OPTIONAL),
    PAY_TEXT("return_url", struct pay_submit_params, return_url, 1, PAY_MAX_URL, PAY_OPTIONAL),
    PAY_ROW(PAY_BIND_MAP, "extra", struct pay_submit_params, extra,
            .count_offset = offsetof(struct pay_submit_params, extra_count),
            .item_size = sizeof(struct pay_extra_param), .item = &extra_value, .key = &extra_key,
            .max = PAY_COMMAND_EXTRA_MAX, .may_lack = true),
};
static const struct pay_bind_record bind_params = {params, PAY_FIELD_COUNT(params)};

static const struct pay_bind item_params = {
    .name = "(params)", .kind = PAY_BIND_RECORD, .record = &bind_params};

static const struct pay_bind secrets[] = {
    PAY_BYTES("salt", struct pay_command_secrets, salt, PAY_COMMAND_SALT_BYTES,
              PAY_COMMAND_SALT_BYTES),
    PAY_LIST("params", struct pay_command_secrets, params, param_count, struct pay_submit_params,
             &item_params, PAY_ROUTES_MAX, .may_lack = true),
    PAY_BYTES("redirect_data", struct pay_command_secrets, redirect_data, 0, PAY_MAX_ACTION_DATA,
              PAY_OPTIONAL),
};
const struct pay_bind_record pay_bind_command_secrets = {secrets, PAY_FIELD_COUNT(secrets)};

enum pay_status pay_command_encode(struct pay_codec *codec, const struct pay_command *record,
                                   struct pay_buf *out, struct pay_err *err)
{
    return pay_codec_encode(codec, PAY_RECORD_COMMAND, record, out, err);
}

/* What the members of a part are that did not come. */
static const struct pay_command empty = {
    .type = PAY_CMD_UNRECOGNIZED,
    .create_payment = {.retry_until_expiry = -1},
    .controlled = {.expected_version = -1},
};

enum pay_status pay_command_decode(struct pay_codec *codec, struct pay_bytes value,
                                   struct pay_arena *arena, struct pay_command *ret_record,
                                   struct pay_err *err)
{
    struct pay_command record = empty;
    const enum pay_status status =
        pay_codec_decode(codec, PAY_RECORD_COMMAND, value, arena, &record, err);

    if (status == PAY_OK) {
        *ret_record = record;
    }
    return status;
}

enum pay_status pay_command_decode_signed(struct pay_codec *codec, struct pay_bytes value,
                                          struct pay_bytes fingerprint, struct pay_arena *arena,
                                          struct pay_command *ret_record, struct pay_err *err)
{
    struct pay_command record = empty;
    uint64_t writer = 0;

    if (!pay_fingerprint_get(fingerprint, &writer)) {
        return pay_codec_refuse(PAY_RECORD_COMMAND, PAY_CODEC_MALFORMED,
                                "the fingerprint is not of 8 bytes", err);
    }
    const enum pay_status status =
        pay_codec_decode_command_as(codec, writer, value, arena, &record, err);
    if (status == PAY_OK) {
        *ret_record = record;
    }
    return status;
}

enum pay_status pay_command_secrets_encode(struct pay_codec *codec,
                                           const struct pay_command_secrets *record,
                                           struct pay_buf *out, struct pay_err *err)
{
    return pay_codec_encode(codec, PAY_RECORD_COMMAND_SECRETS, record, out, err);
}

enum pay_status pay_command_secrets_decode(struct pay_codec *codec, struct pay_bytes value,
                                           struct pay_arena *arena,
                                           struct pay_command_secrets *ret_record,
                                           struct pay_err *err)
{
    struct pay_command_secrets record = {0};
    const enum pay_status status =
        pay_codec_decode(codec, PAY_RECORD_COMMAND_SECRETS, value, arena, &record, err);

    if (status == PAY_OK) {
        *ret_record = record;
    }
    return status;
}

enum pay_status pay_submit_params_encode(struct pay_codec *codec,
                                         const struct pay_command_secrets *secrets_of_all,
                                         size_t route_index, struct pay_buf *out,
                                         struct pay_err *err)
{
    if (route_index >= secrets_of_all->param_count) {
        return pay_err_set(err, PAY_REJECT, PAY_CODEC_MALFORMED, "encode CommandSecrets",
                           "route %zu has no params", route_index);
    }
    const struct pay_command_secrets one = {.salt = secrets_of_all->salt,
                                            .params = &secrets_of_all->params[route_index],
                                            .param_count = 1};
    return pay_codec_encode(codec, PAY_RECORD_COMMAND_SECRETS, &one, out, err);
}
