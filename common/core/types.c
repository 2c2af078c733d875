/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/types.h"

#include <assert.h>

#include "common/base/banned.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const char *name_at(const char *const *names, size_t count, size_t value)
{
    return value < count && names[value] != NULL ? names[value] : "?";
}

static bool find_name(const char *const *names, size_t count, struct pay_str name, size_t *ret_at)
{
    for (size_t i = 0; i < count; i++) {
        if (names[i] != NULL && pay_str_eq_c(name, names[i])) {
            *ret_at = i;
            return true;
        }
    }
    return false;
}

/* One list of names gives the name function and, for what is read back, the parse function. The
 * assertion makes a forgotten name a compile error. */
#define NAME_FUNCTION(word, COUNT)                                                \
    static_assert(LENGTH(word##_names) == (COUNT), "name every value of " #word); \
    const char *pay_##word##_name(enum pay_##word value)                          \
    {                                                                             \
        return name_at(word##_names, LENGTH(word##_names), (size_t)value);        \
    }

#define PARSE_FUNCTION(word)                                                 \
    bool pay_##word##_parse(struct pay_str name, enum pay_##word *ret_value) \
    {                                                                        \
        size_t at = 0;                                                       \
        if (!find_name(word##_names, LENGTH(word##_names), name, &at)) {     \
            return false;                                                    \
        }                                                                    \
        *ret_value = (enum pay_##word)at;                                    \
        return true;                                                         \
    }

static const char *const order_status_names[] = {
    [PAY_ORDER_CREATED] = "CREATED",
    [PAY_ORDER_PROCESSING] = "PROCESSING",
    [PAY_ORDER_REQUIRES_ACTION] = "REQUIRES_ACTION",
    [PAY_ORDER_AUTHORIZED] = "AUTHORIZED",
    [PAY_ORDER_SUCCEEDED] = "SUCCEEDED",
    [PAY_ORDER_FAILED] = "FAILED",
    [PAY_ORDER_CANCELED] = "CANCELED",
    [PAY_ORDER_EXPIRED] = "EXPIRED",
};
NAME_FUNCTION(order_status, PAY_ORDER_STATUS_COUNT)
PARSE_FUNCTION(order_status)

static const char *const attempt_status_names[] = {
    [PAY_ATTEMPT_CREATED] = "CREATED",       [PAY_ATTEMPT_SUBMITTED] = "SUBMITTED",
    [PAY_ATTEMPT_PROCESSING] = "PROCESSING", [PAY_ATTEMPT_REQUIRES_ACTION] = "REQUIRES_ACTION",
    [PAY_ATTEMPT_AUTHORIZED] = "AUTHORIZED", [PAY_ATTEMPT_UNKNOWN] = "UNKNOWN",
    [PAY_ATTEMPT_SUCCEEDED] = "SUCCEEDED",   [PAY_ATTEMPT_FAILED] = "FAILED",
    [PAY_ATTEMPT_CANCELED] = "CANCELED",
};
NAME_FUNCTION(attempt_status, PAY_ATTEMPT_STATUS_COUNT)
PARSE_FUNCTION(attempt_status)

static const char *const attempt_event_names[] = {
    [PAY_AE_SUB] = "SUB", [PAY_AE_NSN] = "NSN", [PAY_AE_PRC] = "PRC", [PAY_AE_ACT] = "ACT",
    [PAY_AE_APR] = "APR", [PAY_AE_AUT] = "AUT", [PAY_AE_SUC] = "SUC", [PAY_AE_DEC] = "DEC",
    [PAY_AE_FAI] = "FAI", [PAY_AE_CAN] = "CAN", [PAY_AE_UNK] = "UNK", [PAY_AE_NFD] = "NFD",
    [PAY_AE_AEX] = "AEX", [PAY_AE_XPA] = "XPA", [PAY_AE_REV] = "REV",
};
NAME_FUNCTION(attempt_event, PAY_AE_COUNT)

static const char *const money_kind_names[] = {
    [PAY_MONEY_CAPTURE] = "CAPTURE",
    [PAY_MONEY_REFUND] = "REFUND",
};
NAME_FUNCTION(money_kind, PAY_MONEY_KIND_COUNT)

static const char *const money_status_names[] = {
    [PAY_MONEY_CREATED] = "CREATED",   [PAY_MONEY_PROCESSING] = "PROCESSING",
    [PAY_MONEY_UNKNOWN] = "UNKNOWN",   [PAY_MONEY_SUCCEEDED] = "SUCCEEDED",
    [PAY_MONEY_FAILED] = "FAILED",     [PAY_MONEY_CANCELED] = "CANCELED",
    [PAY_MONEY_REVERSED] = "REVERSED",
};
NAME_FUNCTION(money_status, PAY_MONEY_STATUS_COUNT)
PARSE_FUNCTION(money_status)

static const char *const money_event_names[] = {
    [PAY_ME_SUBMITTED] = "submitted",   [PAY_ME_NOT_SENT] = "not sent",
    [PAY_ME_PROCESSING] = "processing", [PAY_ME_SUCCEEDED] = "succeeded",
    [PAY_ME_FAILED] = "failed",         [PAY_ME_UNKNOWN] = "unknown",
    [PAY_ME_NOT_FOUND] = "not found",   [PAY_ME_REVERSED] = "reversed",
    [PAY_ME_WITHDRAWN] = "withdrawn",
};
NAME_FUNCTION(money_event, PAY_ME_COUNT)

static const char *const origin_names[] = {
    [PAY_ORIGIN_MERCHANT] = "MERCHANT",
    [PAY_ORIGIN_OPERATOR] = "OPERATOR",
    [PAY_ORIGIN_POLICY] = "POLICY",
    [PAY_ORIGIN_PSP] = "PSP",
};
NAME_FUNCTION(origin, PAY_ORIGIN_COUNT)
PARSE_FUNCTION(origin)

static const char *const dispute_status_names[] = {
    [PAY_DISPUTE_OPENED] = "OPENED",
    [PAY_DISPUTE_EVIDENCE_DUE] = "EVIDENCE_DUE",
    [PAY_DISPUTE_UNDER_REVIEW] = "UNDER_REVIEW",
    [PAY_DISPUTE_WON] = "WON",
    [PAY_DISPUTE_LOST] = "LOST",
    [PAY_DISPUTE_CLOSED] = "CLOSED",
};
NAME_FUNCTION(dispute_status, PAY_DISPUTE_STATUS_COUNT)
PARSE_FUNCTION(dispute_status)

static const char *const dispute_funds_names[] = {
    [PAY_FUNDS_UNCHANGED] = "UNCHANGED",
    [PAY_FUNDS_WITHDRAWN] = "WITHDRAWN",
    [PAY_FUNDS_REINSTATED] = "REINSTATED",
};
NAME_FUNCTION(dispute_funds, PAY_DISPUTE_FUNDS_COUNT)
PARSE_FUNCTION(dispute_funds)

static const char *const request_status_names[] = {
    [PAY_REQUEST_PENDING] = "PENDING",   [PAY_REQUEST_APPROVED] = "APPROVED",
    [PAY_REQUEST_DECLINED] = "DECLINED", [PAY_REQUEST_EXPIRED] = "EXPIRED",
    [PAY_REQUEST_STALE] = "STALE",
};
NAME_FUNCTION(request_status, PAY_REQUEST_STATUS_COUNT)
PARSE_FUNCTION(request_status)

static const char *const event_type_names[] = {
    [PAY_EV_ATTEMPT_SUBMITTED] = "ATTEMPT_SUBMITTED",
    [PAY_EV_ATTEMPT_NOT_SENT] = "ATTEMPT_NOT_SENT",
    [PAY_EV_ATTEMPT_PROCESSING] = "ATTEMPT_PROCESSING",
    [PAY_EV_ATTEMPT_ACTION_REQUIRED] = "ATTEMPT_ACTION_REQUIRED",
    [PAY_EV_ATTEMPT_APPROVED] = "ATTEMPT_APPROVED",
    [PAY_EV_ATTEMPT_AUTHORIZED] = "ATTEMPT_AUTHORIZED",
    [PAY_EV_ATTEMPT_SUCCEEDED] = "ATTEMPT_SUCCEEDED",
    [PAY_EV_ATTEMPT_DECLINED] = "ATTEMPT_DECLINED",
    [PAY_EV_ATTEMPT_FAILED] = "ATTEMPT_FAILED",
    [PAY_EV_ATTEMPT_CANCELED] = "ATTEMPT_CANCELED",
    [PAY_EV_ATTEMPT_UNKNOWN] = "ATTEMPT_UNKNOWN",
    [PAY_EV_ATTEMPT_NOT_FOUND] = "ATTEMPT_NOT_FOUND",
    [PAY_EV_ATTEMPT_AUTHORIZATION_EXPIRED] = "ATTEMPT_AUTHORIZATION_EXPIRED",
    [PAY_EV_ATTEMPT_REVERSED] = "ATTEMPT_REVERSED",
    [PAY_EV_CAPTURE_SUBMITTED] = "CAPTURE_SUBMITTED",
    [PAY_EV_CAPTURE_NOT_SENT] = "CAPTURE_NOT_SENT",
    [PAY_EV_CAPTURE_PROCESSING] = "CAPTURE_PROCESSING",
    [PAY_EV_CAPTURE_SUCCEEDED] = "CAPTURE_SUCCEEDED",
    [PAY_EV_CAPTURE_FAILED] = "CAPTURE_FAILED",
    [PAY_EV_CAPTURE_UNKNOWN] = "CAPTURE_UNKNOWN",
    [PAY_EV_CAPTURE_NOT_FOUND] = "CAPTURE_NOT_FOUND",
    [PAY_EV_CAPTURE_REVERSED] = "CAPTURE_REVERSED",
    [PAY_EV_REFUND_SUBMITTED] = "REFUND_SUBMITTED",
    [PAY_EV_REFUND_NOT_SENT] = "REFUND_NOT_SENT",
    [PAY_EV_REFUND_PROCESSING] = "REFUND_PROCESSING",
    [PAY_EV_REFUND_SUCCEEDED] = "REFUND_SUCCEEDED",
    [PAY_EV_REFUND_FAILED] = "REFUND_FAILED",
    [PAY_EV_REFUND_UNKNOWN] = "REFUND_UNKNOWN",
    [PAY_EV_REFUND_NOT_FOUND] = "REFUND_NOT_FOUND",
    [PAY_EV_REFUND_REVERSED] = "REFUND_REVERSED",
    [PAY_EV_REFUND_RETRY_SAME_NUMBER] = "REFUND_RETRY_SAME_NUMBER",
    [PAY_EV_REFUND_SUM] = "REFUND_SUM",
    [PAY_EV_CANCEL_REFUSED] = "CANCEL_REFUSED",
    [PAY_EV_QUERY_FAILED] = "QUERY_FAILED",
    [PAY_EV_DISPUTE_OPENED] = "DISPUTE_OPENED",
    [PAY_EV_DISPUTE_EVIDENCE_DUE] = "DISPUTE_EVIDENCE_DUE",
    [PAY_EV_DISPUTE_UNDER_REVIEW] = "DISPUTE_UNDER_REVIEW",
    [PAY_EV_DISPUTE_FUNDS_WITHDRAWN] = "DISPUTE_FUNDS_WITHDRAWN",
    [PAY_EV_DISPUTE_FUNDS_REINSTATED] = "DISPUTE_FUNDS_REINSTATED",
    [PAY_EV_DISPUTE_WON] = "DISPUTE_WON",
    [PAY_EV_DISPUTE_LOST] = "DISPUTE_LOST",
    [PAY_EV_DISPUTE_CLOSED] = "DISPUTE_CLOSED",
    [PAY_EV_OTHER] = "OTHER",
    [PAY_EV_UNRECOGNIZED] = "UNRECOGNIZED",
};
NAME_FUNCTION(event_type, PAY_EV_COUNT)
PARSE_FUNCTION(event_type)

static const char *const evidence_names[] = {
    [PAY_EVIDENCE_LOCAL] = "LOCAL",         [PAY_EVIDENCE_SYNC_RESPONSE] = "SYNC_RESPONSE",
    [PAY_EVIDENCE_WEBHOOK] = "WEBHOOK",     [PAY_EVIDENCE_QUERY] = "QUERY",
    [PAY_EVIDENCE_STATEMENT] = "STATEMENT", [PAY_EVIDENCE_CONTROLLED] = "CONTROLLED",
};
NAME_FUNCTION(evidence, PAY_EVIDENCE_COUNT)
PARSE_FUNCTION(evidence)

static const char *const source_names[] = {
    [PAY_SOURCE_SYNC] = "SYNC",         [PAY_SOURCE_WEBHOOK] = "WEBHOOK",
    [PAY_SOURCE_QUERY] = "QUERY",       [PAY_SOURCE_STATEMENT] = "STATEMENT",
    [PAY_SOURCE_MERCHANT] = "MERCHANT", [PAY_SOURCE_OPERATOR] = "OPERATOR",
    [PAY_SOURCE_LOCAL] = "LOCAL",       [PAY_SOURCE_UNRECOGNIZED] = "UNRECOGNIZED",
};
NAME_FUNCTION(source, PAY_SOURCE_COUNT)
PARSE_FUNCTION(source)

static const char *const verdict_names[] = {
    [PAY_VERDICT_APPLY] = "APPLY",
    [PAY_VERDICT_IGNORE] = "IGNORE",
    [PAY_VERDICT_REJECT] = "REJECT",
    [PAY_VERDICT_NEEDS_RECONCILIATION] = "NEEDS_RECONCILIATION",
};
NAME_FUNCTION(verdict, PAY_VERDICT_COUNT)

static const char *const capture_mode_names[] = {
    [PAY_CAPTURE_AUTOMATIC] = "AUTOMATIC",
    [PAY_CAPTURE_MANUAL] = "MANUAL",
    [PAY_CAPTURE_UNRECOGNIZED] = "UNRECOGNIZED",
};
NAME_FUNCTION(capture_mode, PAY_CAPTURE_MODE_COUNT)
PARSE_FUNCTION(capture_mode)

static const char *const intent_names[] = {
    [PAY_INTENT_NONE] = "NONE",
    [PAY_INTENT_CANCEL] = "CANCEL",
    [PAY_INTENT_CHANGE_METHOD] = "CHANGE_METHOD",
};
NAME_FUNCTION(intent, PAY_INTENT_COUNT)
PARSE_FUNCTION(intent)

static const char *const cancel_cause_names[] = {
    [PAY_CANCEL_CAUSE_NONE] = "NONE",
    [PAY_CANCEL_CAUSE_MERCHANT] = "MERCHANT",
    [PAY_CANCEL_CAUSE_CHANGE_METHOD] = "CHANGE_METHOD",
    [PAY_CANCEL_CAUSE_DEADLINE] = "DEADLINE",
    [PAY_CANCEL_CAUSE_DECLINED] = "DECLINED",
    [PAY_CANCEL_CAUSE_OTHER_SUCCEEDED] = "OTHER_SUCCEEDED",
};
NAME_FUNCTION(cancel_cause, PAY_CANCEL_CAUSE_COUNT)
PARSE_FUNCTION(cancel_cause)

static const char *const failure_class_names[] = {
    [PAY_FAILURE_NONE] = "NONE",
    [PAY_FAILURE_DECLINED] = "DECLINED",
    [PAY_FAILURE_INSUFFICIENT_FUNDS] = "INSUFFICIENT_FUNDS",
    [PAY_FAILURE_AUTHENTICATION_FAILED] = "AUTHENTICATION_FAILED",
    [PAY_FAILURE_FRAUD_SUSPECTED] = "FRAUD_SUSPECTED",
    [PAY_FAILURE_INVALID_REQUEST] = "INVALID_REQUEST",
    [PAY_FAILURE_EXPIRED] = "EXPIRED",
    [PAY_FAILURE_NOT_SENT] = "NOT_SENT",
    [PAY_FAILURE_PSP_NOT_FOUND] = "PSP_NOT_FOUND",
    [PAY_FAILURE_PSP_ERROR] = "PSP_ERROR",
    [PAY_FAILURE_CONFIGURATION] = "CONFIGURATION",
    [PAY_FAILURE_OTHER] = "OTHER",
};
NAME_FUNCTION(failure_class, PAY_FAILURE_CLASS_COUNT)
PARSE_FUNCTION(failure_class)

static const char *const reference_kind_names[] = {
    [PAY_REF_ORDER] = "ORDER",
    [PAY_REF_INTENT] = "INTENT",
    [PAY_REF_AUTHORIZATION] = "AUTHORIZATION",
    [PAY_REF_CAPTURE] = "CAPTURE",
    [PAY_REF_CHARGE] = "CHARGE",
    [PAY_REF_REFUND] = "REFUND",
    [PAY_REF_MODIFICATION] = "MODIFICATION",
    [PAY_REF_DISPUTE] = "DISPUTE",
    [PAY_REF_OTHER] = "OTHER",
};
NAME_FUNCTION(reference_kind, PAY_REFERENCE_KIND_COUNT)
PARSE_FUNCTION(reference_kind)

static const char *const job_kind_names[] = {
    [PAY_JOB_SUBMIT] = "SUBMIT",
    [PAY_JOB_CONFIRM] = "CONFIRM",
    [PAY_JOB_CAPTURE] = "CAPTURE",
    [PAY_JOB_CANCEL] = "CANCEL",
    [PAY_JOB_REFUND] = "REFUND",
    [PAY_JOB_QUERY] = "QUERY",
    [PAY_JOB_QUERY_CAPTURE] = "QUERY_CAPTURE",
    [PAY_JOB_QUERY_REFUND] = "QUERY_REFUND",
    [PAY_JOB_UNRECOGNIZED] = "UNRECOGNIZED",
};
NAME_FUNCTION(job_kind, PAY_JOB_KIND_COUNT)
PARSE_FUNCTION(job_kind)

static const char *const query_by_names[] = {
    [PAY_QUERY_BY_NONE] = "NONE",
    [PAY_QUERY_BY_REQUEST_NUMBER] = "REQUEST_NUMBER",
    [PAY_QUERY_BY_PSP_REFERENCE] = "PSP_REFERENCE",
    [PAY_QUERY_BY_SEARCH] = "SEARCH",
    [PAY_QUERY_BY_IDEMPOTENT_REPLAY] = "IDEMPOTENT_REPLAY",
    [PAY_QUERY_BY_UNRECOGNIZED] = "UNRECOGNIZED",
};
NAME_FUNCTION(query_by, PAY_QUERY_BY_COUNT)
PARSE_FUNCTION(query_by)

static const char *const case_kind_names[] = {
    [PAY_CASE_LATE_SUCCESS] = "LATE_SUCCESS",
    [PAY_CASE_DUPLICATE_CHARGE] = "DUPLICATE_CHARGE",
    [PAY_CASE_AMOUNT_MISMATCH] = "AMOUNT_MISMATCH",
    [PAY_CASE_UNEXPECTED_REFERENCE] = "UNEXPECTED_REFERENCE",
    [PAY_CASE_OVER_REFUND] = "OVER_REFUND",
    [PAY_CASE_CONTRADICTION] = "CONTRADICTION",
    [PAY_CASE_CAPTURE_REVERSED] = "CAPTURE_REVERSED",
    [PAY_CASE_LATE_AUTHORIZATION] = "LATE_AUTHORIZATION",
    [PAY_CASE_CANNOT_CLOSE] = "CANNOT_CLOSE",
    [PAY_CASE_UNKNOWN_TOO_LONG] = "UNKNOWN_TOO_LONG",
    [PAY_CASE_RESERVATION_OVERDUE] = "RESERVATION_OVERDUE",
    [PAY_CASE_ORPHAN] = "ORPHAN",
    [PAY_CASE_DEAD_INPUT] = "DEAD_INPUT",
    [PAY_CASE_DEAD_EVENT] = "DEAD_EVENT",
    [PAY_CASE_RECONCILIATION] = "RECONCILIATION",
};
NAME_FUNCTION(case_kind, PAY_CASE_KIND_COUNT)
PARSE_FUNCTION(case_kind)

static const char *const deadline_kind_names[] = {
    [PAY_DEADLINE_SEND] = "SEND",
    [PAY_DEADLINE_ANSWER] = "ANSWER",
    [PAY_DEADLINE_QUERY] = "QUERY",
    [PAY_DEADLINE_MANUAL] = "MANUAL",
    [PAY_DEADLINE_ACTION] = "ACTION",
    [PAY_DEADLINE_AUTHORIZATION] = "AUTHORIZATION",
    [PAY_DEADLINE_ORDER_EXPIRY] = "ORDER_EXPIRY",
    [PAY_DEADLINE_RESERVATION] = "RESERVATION",
    [PAY_DEADLINE_ORPHAN] = "ORPHAN",
    [PAY_DEADLINE_APPROVAL] = "APPROVAL",
    [PAY_DEADLINE_DISPUTE] = "DISPUTE",
    [PAY_DEADLINE_DEAD_EVENT] = "DEAD_EVENT",
};
NAME_FUNCTION(deadline_kind, PAY_DEADLINE_KIND_COUNT)
PARSE_FUNCTION(deadline_kind)

static const char *const command_type_names[] = {
    [PAY_CMD_CREATE_PAYMENT] = "CREATE_PAYMENT",
    [PAY_CMD_START_ATTEMPT] = "START_ATTEMPT",
    [PAY_CMD_CHANGE_METHOD] = "CHANGE_METHOD",
    [PAY_CMD_CONTINUE_ATTEMPT] = "CONTINUE_ATTEMPT",
    [PAY_CMD_CAPTURE] = "CAPTURE",
    [PAY_CMD_CANCEL_PAYMENT] = "CANCEL_PAYMENT",
    [PAY_CMD_REQUEST_REFUND] = "REQUEST_REFUND",
    [PAY_CMD_FORCE_CLOSE_UNKNOWN] = "FORCE_CLOSE_UNKNOWN",
    [PAY_CMD_CORRECT_STATE] = "CORRECT_STATE",
    [PAY_CMD_RELEASE_RESERVATION] = "RELEASE_RESERVATION",
    [PAY_CMD_OVERRIDE_BLOCK] = "OVERRIDE_BLOCK",
    [PAY_CMD_RESOLVE_CASE] = "RESOLVE_CASE",
    [PAY_CMD_APPROVE] = "APPROVE",
    [PAY_CMD_DECLINE] = "DECLINE",
    [PAY_CMD_REPLAY_INPUT] = "REPLAY_INPUT",
    [PAY_CMD_DISCARD_EVENT] = "DISCARD_EVENT",
    [PAY_CMD_PAUSE_ROUTE] = "PAUSE_ROUTE",
    [PAY_CMD_RESUME_ROUTE] = "RESUME_ROUTE",
    [PAY_CMD_REPLAY_EVENT] = "REPLAY_EVENT",
    [PAY_CMD_UNRECOGNIZED] = "UNRECOGNIZED",
};
NAME_FUNCTION(command_type, PAY_CMD_COUNT)
PARSE_FUNCTION(command_type)

static const char *const fact_type_names[] = {
    [PAY_FACT_PAYMENT_CREATED] = "PaymentCreated",
    [PAY_FACT_PAYMENT_PROCESSING] = "PaymentProcessing",
    [PAY_FACT_PAYMENT_ACTION_REQUIRED] = "PaymentActionRequired",
    [PAY_FACT_PAYMENT_AUTHORIZED] = "PaymentAuthorized",
    [PAY_FACT_PAYMENT_SUCCEEDED] = "PaymentSucceeded",
    [PAY_FACT_PAYMENT_FAILED] = "PaymentFailed",
    [PAY_FACT_PAYMENT_CANCELED] = "PaymentCanceled",
    [PAY_FACT_PAYMENT_EXPIRED] = "PaymentExpired",
    [PAY_FACT_ATTEMPT_STARTED] = "AttemptStarted",
    [PAY_FACT_ATTEMPT_FAILED] = "AttemptFailed",
    [PAY_FACT_CAPTURE_SUCCEEDED] = "CaptureSucceeded",
    [PAY_FACT_CAPTURE_FAILED] = "CaptureFailed",
    [PAY_FACT_CAPTURE_REVERSED] = "CaptureReversed",
    [PAY_FACT_REFUND_SUCCEEDED] = "RefundSucceeded",
    [PAY_FACT_REFUND_FAILED] = "RefundFailed",
    [PAY_FACT_REFUND_REVERSED] = "RefundReversed",
    [PAY_FACT_DISPUTE_OPENED] = "DisputeOpened",
    [PAY_FACT_DISPUTE_UPDATED] = "DisputeUpdated",
    [PAY_FACT_DISPUTE_CLOSED] = "DisputeClosed",
    [PAY_FACT_PAYMENT_SETTLED] = "PaymentSettled",
    [PAY_FACT_MANUAL_REVIEW_REQUIRED] = "ManualReviewRequired",
    [PAY_FACT_MANUAL_REVIEW_RESOLVED] = "ManualReviewResolved",
    [PAY_FACT_CORRECTION_APPLIED] = "CorrectionApplied",
    [PAY_FACT_COMMAND_ACCEPTED] = "CommandAccepted",
    [PAY_FACT_COMMAND_REJECTED] = "CommandRejected",
    [PAY_FACT_EVENT_WITHHELD] = "EventWithheld",
    [PAY_FACT_UNRECOGNIZED] = "Unrecognized",
};
NAME_FUNCTION(fact_type, PAY_FACT_COUNT)
PARSE_FUNCTION(fact_type)

static const char *const aggregate_names[] = {
    [PAY_AGGREGATE_ORDER] = "ORDER",     [PAY_AGGREGATE_ATTEMPT] = "ATTEMPT",
    [PAY_AGGREGATE_CAPTURE] = "CAPTURE", [PAY_AGGREGATE_REFUND] = "REFUND",
    [PAY_AGGREGATE_DISPUTE] = "DISPUTE", [PAY_AGGREGATE_APPROVAL] = "APPROVAL",
    [PAY_AGGREGATE_CASE] = "CASE",       [PAY_AGGREGATE_COMMAND] = "COMMAND",
};
NAME_FUNCTION(aggregate, PAY_AGGREGATE_COUNT)

static const char *const action_type_names[] = {
    [PAY_ACTION_REDIRECT] = "REDIRECT",
    [PAY_ACTION_QR_CODE] = "QR_CODE",
    [PAY_ACTION_SDK] = "SDK",
    [PAY_ACTION_OTHER] = "OTHER",
};
NAME_FUNCTION(action_type, PAY_ACTION_TYPE_COUNT)
PARSE_FUNCTION(action_type)

bool pay_case_is_money(enum pay_case_kind kind)
{
    return kind <= PAY_CASE_CAPTURE_REVERSED;
}

bool pay_order_is_final(enum pay_order_status status)
{
    return status == PAY_ORDER_SUCCEEDED || status == PAY_ORDER_FAILED ||
           status == PAY_ORDER_CANCELED || status == PAY_ORDER_EXPIRED;
}

bool pay_attempt_is_final(enum pay_attempt_status status)
{
    return status == PAY_ATTEMPT_SUCCEEDED || status == PAY_ATTEMPT_FAILED ||
           status == PAY_ATTEMPT_CANCELED;
}

bool pay_money_is_open(enum pay_money_status status)
{
    return status == PAY_MONEY_CREATED || status == PAY_MONEY_PROCESSING ||
           status == PAY_MONEY_UNKNOWN;
}

bool pay_dispute_is_final(enum pay_dispute_status status)
{
    return status == PAY_DISPUTE_WON || status == PAY_DISPUTE_LOST || status == PAY_DISPUTE_CLOSED;
}

bool pay_command_is_controlled(enum pay_command_type type)
{
    return type == PAY_CMD_FORCE_CLOSE_UNKNOWN || type == PAY_CMD_CORRECT_STATE ||
           type == PAY_CMD_RELEASE_RESERVATION || type == PAY_CMD_OVERRIDE_BLOCK;
}

/* Why a person may decide against, or before, what the PSP says. */
static const char *const control_reasons[] = {
    "PSP_CONFIRMED",      "STATEMENT_CONFIRMED", "BANK_CONFIRMED", "CUSTOMER_CONFIRMED",
    "NEVER_EXECUTED",     "AMOUNT_RECEIVED",     "DUPLICATE",      "FRAUD",
    "PSP_ACCOUNT_CLOSED", "SYSTEM_ERROR",
};

/* How a case ended. */
static const char *const resolutions[] = {
    "REFUNDED",      "CORRECTED",     "CONFIRMED_BY_PSP", "NOT_OURS",
    "ACCEPTED_LOSS", "NOTHING_TO_DO", "DUPLICATE_CASE",
};

const char *pay_control_reason_at(size_t n)
{
    return n < LENGTH(control_reasons) ? control_reasons[n] : NULL;
}

const char *pay_resolution_at(size_t n)
{
    return n < LENGTH(resolutions) ? resolutions[n] : NULL;
}

bool pay_control_reason_is_known(struct pay_str reason_code)
{
    size_t at = 0;
    return find_name(control_reasons, LENGTH(control_reasons), reason_code, &at);
}

bool pay_resolution_is_known(struct pay_str resolution_code)
{
    size_t at = 0;
    return find_name(resolutions, LENGTH(resolutions), resolution_code, &at);
}
