/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file types.h
 * @brief The words of the domain: states, events, evidence, verdicts, kinds. Values only.
 *
 * Names (pay_x_name) are the symbols that stand in Avro records, SQL columns and documentation;
 * pay_x_parse finds a value by its exact name. Every pair is total: an unknown value is named "?".
 */
#ifndef PAY_CORE_TYPES_H
#define PAY_CORE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/str.h"

#define PAY_PAYMENT_ID_SIZE 27 /**< 26 characters and the terminator. */
#define PAY_ACTION_ID_SIZE 30  /**< payment_id + letter + 2 digits, and the terminator. */
#define PAY_JOB_ID_SIZE 64     /**< action id + '.' + kind [+ '.' + n]. */
#define PAY_EVENT_ID_SIZE 112  /**< type / aggregate id / 16 hex digits. */
#define PAY_NAME_SIZE 33       /**< psp, psp_account, method: 32 bytes at most. */
#define PAY_MERCHANT_SIZE 65
#define PAY_ORDER_NO_SIZE 65   /**< merchant_order_no: 64 bytes at most. */
#define PAY_CAUSE_SIZE 256     /**< business key, caller/command_id or kind:aggregate:due_at. */
#define PAY_REFERENCE_SIZE 256 /**< A PSP's reference: 255 bytes at most. */
#define PAY_CODE_SIZE 65       /**< failure code, reason code. */
#define PAY_CURRENCY_SIZE 4

#define PAY_IDEMPOTENCY_KEY_SIZE \
    201 /**< The merchant's number of a capture or refund: 200 bytes. */

#define PAY_ATTEMPTS_MAX 99
#define PAY_CAPTURES_MAX 99
#define PAY_REFUNDS_MAX 99
#define PAY_DISPUTES_MAX 99
#define PAY_REQUESTS_PENDING_MAX 16 /**< Approval requests of a payment that wait at one time. */
#define PAY_APPROVALS_NEEDED 2      /**< By different principals, neither the requester. */
#define PAY_ROUTES_MAX 16
#define PAY_REFERENCES_PER_EVENT_MAX 8

enum pay_order_status {
    PAY_ORDER_CREATED,
    PAY_ORDER_PROCESSING,
    PAY_ORDER_REQUIRES_ACTION,
    PAY_ORDER_AUTHORIZED,
    PAY_ORDER_SUCCEEDED,
    PAY_ORDER_FAILED,
    PAY_ORDER_CANCELED,
    PAY_ORDER_EXPIRED,
    PAY_ORDER_STATUS_COUNT
};

enum pay_attempt_status {
    PAY_ATTEMPT_CREATED,
    PAY_ATTEMPT_SUBMITTED,
    PAY_ATTEMPT_PROCESSING,
    PAY_ATTEMPT_REQUIRES_ACTION,
    PAY_ATTEMPT_AUTHORIZED,
    PAY_ATTEMPT_UNKNOWN,
    PAY_ATTEMPT_SUCCEEDED,
    PAY_ATTEMPT_FAILED,
    PAY_ATTEMPT_CANCELED,
    PAY_ATTEMPT_STATUS_COUNT
};

/** Columns of the attempt table. */
enum pay_attempt_event {
    PAY_AE_SUB,
    PAY_AE_NSN,
    PAY_AE_PRC,
    PAY_AE_ACT,
    PAY_AE_APR,
    PAY_AE_AUT,
    PAY_AE_SUC,
    PAY_AE_DEC,
    PAY_AE_FAI,
    PAY_AE_CAN,
    PAY_AE_UNK,
    PAY_AE_NFD,
    PAY_AE_AEX,
    PAY_AE_XPA,
    PAY_AE_REV,
    PAY_AE_COUNT
};

/** What moves money under an attempt. */
enum pay_money_kind { PAY_MONEY_CAPTURE, PAY_MONEY_REFUND, PAY_MONEY_KIND_COUNT };

/** The state of a capture or a refund, as in SQL action_status_t. */
enum pay_money_status {
    PAY_MONEY_CREATED, /**< Reserved; its job has not been sent, or waits for approval. */
    PAY_MONEY_PROCESSING,
    PAY_MONEY_UNKNOWN,
    PAY_MONEY_SUCCEEDED,
    PAY_MONEY_FAILED,
    PAY_MONEY_CANCELED, /**< Withdrawn: certainly never sent. */
    PAY_MONEY_REVERSED, /**< Taken back, before or after its success was seen. */
    PAY_MONEY_STATUS_COUNT
};

/** Columns of the money table. */
enum pay_money_event {
    PAY_ME_SUBMITTED,
    PAY_ME_NOT_SENT,
    PAY_ME_PROCESSING,
    PAY_ME_SUCCEEDED,
    PAY_ME_FAILED,
    PAY_ME_UNKNOWN,
    PAY_ME_NOT_FOUND,
    PAY_ME_REVERSED,
    PAY_ME_WITHDRAWN, /**< Its gate row was closed unsent. Never an event: a decision of ours. */
    PAY_ME_COUNT
};

/** Who wanted a capture or a refund. */
enum pay_origin {
    PAY_ORIGIN_MERCHANT,
    PAY_ORIGIN_OPERATOR, /**< Refunds only. */
    PAY_ORIGIN_POLICY,   /**< Captures only: the merchant's policy at an authorization's end. */
    PAY_ORIGIN_PSP,      /**< Made in the PSP's console: first seen in what the PSP says. */
    PAY_ORIGIN_COUNT
};

/** The symbols of Avro DisputeStatus in that order. */
enum pay_dispute_status {
    PAY_DISPUTE_OPENED,
    PAY_DISPUTE_EVIDENCE_DUE,
    PAY_DISPUTE_UNDER_REVIEW,
    PAY_DISPUTE_WON,
    PAY_DISPUTE_LOST,
    PAY_DISPUTE_CLOSED,
    PAY_DISPUTE_STATUS_COUNT
};

/** The symbols of Avro DisputeFunds in that order. */
enum pay_dispute_funds {
    PAY_FUNDS_UNCHANGED,
    PAY_FUNDS_WITHDRAWN,
    PAY_FUNDS_REINSTATED,
    PAY_DISPUTE_FUNDS_COUNT
};

enum pay_request_status {
    PAY_REQUEST_PENDING,
    PAY_REQUEST_APPROVED, /**< Carried out in the same decision. */
    PAY_REQUEST_DECLINED,
    PAY_REQUEST_EXPIRED,
    PAY_REQUEST_STALE, /**< Approved, but its row is not as expected any more. */
    PAY_REQUEST_STATUS_COUNT
};

/** Normalized events, the symbols of Avro EventType in that order. */
enum pay_event_type {
    PAY_EV_ATTEMPT_SUBMITTED,
    PAY_EV_ATTEMPT_NOT_SENT,
    PAY_EV_ATTEMPT_PROCESSING,
    PAY_EV_ATTEMPT_ACTION_REQUIRED,
    PAY_EV_ATTEMPT_APPROVED,
    PAY_EV_ATTEMPT_AUTHORIZED,
    PAY_EV_ATTEMPT_SUCCEEDED,
    PAY_EV_ATTEMPT_DECLINED,
    PAY_EV_ATTEMPT_FAILED,
    PAY_EV_ATTEMPT_CANCELED,
    PAY_EV_ATTEMPT_UNKNOWN,
    PAY_EV_ATTEMPT_NOT_FOUND,
    PAY_EV_ATTEMPT_AUTHORIZATION_EXPIRED,
    PAY_EV_ATTEMPT_REVERSED,
    PAY_EV_CAPTURE_SUBMITTED,
    PAY_EV_CAPTURE_NOT_SENT,
    PAY_EV_CAPTURE_PROCESSING,
    PAY_EV_CAPTURE_SUCCEEDED,
    PAY_EV_CAPTURE_FAILED,
    PAY_EV_CAPTURE_UNKNOWN,
    PAY_EV_CAPTURE_NOT_FOUND,
    PAY_EV_CAPTURE_REVERSED,
    PAY_EV_REFUND_SUBMITTED,
    PAY_EV_REFUND_NOT_SENT,
    PAY_EV_REFUND_PROCESSING,
    PAY_EV_REFUND_SUCCEEDED,
    PAY_EV_REFUND_FAILED,
    PAY_EV_REFUND_UNKNOWN,
    PAY_EV_REFUND_NOT_FOUND,
    PAY_EV_REFUND_REVERSED,
    PAY_EV_REFUND_RETRY_SAME_NUMBER,
    PAY_EV_REFUND_SUM,
    PAY_EV_CANCEL_REFUSED,
    PAY_EV_QUERY_FAILED,
    PAY_EV_DISPUTE_OPENED,
    PAY_EV_DISPUTE_EVIDENCE_DUE,
    PAY_EV_DISPUTE_UNDER_REVIEW,
    PAY_EV_DISPUTE_FUNDS_WITHDRAWN,
    PAY_EV_DISPUTE_FUNDS_REINSTATED,
    PAY_EV_DISPUTE_WON,
    PAY_EV_DISPUTE_LOST,
    PAY_EV_DISPUTE_CLOSED,
    PAY_EV_OTHER,
    PAY_EV_UNRECOGNIZED,
    PAY_EV_COUNT
};

enum pay_evidence { /**< The numbers are the levels of the state machine. */
                    PAY_EVIDENCE_LOCAL = 1,
                    PAY_EVIDENCE_SYNC_RESPONSE,
                    PAY_EVIDENCE_WEBHOOK,
                    PAY_EVIDENCE_QUERY,
                    PAY_EVIDENCE_STATEMENT,
                    PAY_EVIDENCE_CONTROLLED,
                    PAY_EVIDENCE_COUNT
};

enum pay_source {
    PAY_SOURCE_SYNC,
    PAY_SOURCE_WEBHOOK,
    PAY_SOURCE_QUERY,
    PAY_SOURCE_STATEMENT,
    PAY_SOURCE_MERCHANT,
    PAY_SOURCE_OPERATOR,
    PAY_SOURCE_LOCAL,
    PAY_SOURCE_UNRECOGNIZED,
    PAY_SOURCE_COUNT
};

enum pay_verdict {
    PAY_VERDICT_APPLY,
    PAY_VERDICT_IGNORE,
    PAY_VERDICT_REJECT,
    PAY_VERDICT_NEEDS_RECONCILIATION,
    PAY_VERDICT_COUNT
};

enum pay_capture_mode {
    PAY_CAPTURE_AUTOMATIC,
    PAY_CAPTURE_MANUAL,
    PAY_CAPTURE_UNRECOGNIZED,
    PAY_CAPTURE_MODE_COUNT
};

enum pay_intent { PAY_INTENT_NONE, PAY_INTENT_CANCEL, PAY_INTENT_CHANGE_METHOD, PAY_INTENT_COUNT };

enum pay_cancel_cause {
    PAY_CANCEL_CAUSE_NONE,
    PAY_CANCEL_CAUSE_MERCHANT,
    PAY_CANCEL_CAUSE_CHANGE_METHOD,
    PAY_CANCEL_CAUSE_DEADLINE,
    PAY_CANCEL_CAUSE_DECLINED,
    PAY_CANCEL_CAUSE_OTHER_SUCCEEDED,
    PAY_CANCEL_CAUSE_COUNT
};

enum pay_failure_class {
    PAY_FAILURE_NONE,
    PAY_FAILURE_DECLINED,
    PAY_FAILURE_INSUFFICIENT_FUNDS,
    PAY_FAILURE_AUTHENTICATION_FAILED,
    PAY_FAILURE_FRAUD_SUSPECTED,
    PAY_FAILURE_INVALID_REQUEST,
    PAY_FAILURE_EXPIRED,
    PAY_FAILURE_NOT_SENT,
    PAY_FAILURE_PSP_NOT_FOUND,
    PAY_FAILURE_PSP_ERROR,
    PAY_FAILURE_CONFIGURATION,
    PAY_FAILURE_OTHER,
    PAY_FAILURE_CLASS_COUNT
};

enum pay_reference_kind {
    PAY_REF_ORDER,
    PAY_REF_INTENT,
    PAY_REF_AUTHORIZATION,
    PAY_REF_CAPTURE,
    PAY_REF_CHARGE,
    PAY_REF_REFUND,
    PAY_REF_MODIFICATION,
    PAY_REF_DISPUTE,
    PAY_REF_OTHER,
    PAY_REFERENCE_KIND_COUNT
};

enum pay_job_kind {
    PAY_JOB_SUBMIT,
    PAY_JOB_CONFIRM,
    PAY_JOB_CAPTURE,
    PAY_JOB_CANCEL,
    PAY_JOB_REFUND,
    PAY_JOB_QUERY,
    PAY_JOB_QUERY_CAPTURE,
    PAY_JOB_QUERY_REFUND,
    PAY_JOB_UNRECOGNIZED,
    PAY_JOB_KIND_COUNT
};

enum pay_query_by {
    PAY_QUERY_BY_NONE, /**< A money call. */
    PAY_QUERY_BY_REQUEST_NUMBER,
    PAY_QUERY_BY_PSP_REFERENCE,
    PAY_QUERY_BY_SEARCH,
    PAY_QUERY_BY_IDEMPOTENT_REPLAY,
    PAY_QUERY_BY_UNRECOGNIZED,
    PAY_QUERY_BY_COUNT
};

enum pay_case_kind {
    PAY_CASE_LATE_SUCCESS,
    PAY_CASE_DUPLICATE_CHARGE,
    PAY_CASE_AMOUNT_MISMATCH,
    PAY_CASE_UNEXPECTED_REFERENCE,
    PAY_CASE_OVER_REFUND,
    PAY_CASE_CONTRADICTION,
    PAY_CASE_CAPTURE_REVERSED, /**< The last money case: kinds up to here block new attempts. */
    PAY_CASE_LATE_AUTHORIZATION,
    PAY_CASE_CANNOT_CLOSE,
    PAY_CASE_UNKNOWN_TOO_LONG,
    PAY_CASE_RESERVATION_OVERDUE,
    PAY_CASE_ORPHAN,
    PAY_CASE_DEAD_INPUT,
    PAY_CASE_DEAD_EVENT,
    PAY_CASE_RECONCILIATION,
    PAY_CASE_KIND_COUNT
};

enum pay_deadline_kind {
    PAY_DEADLINE_SEND,
    PAY_DEADLINE_ANSWER,
    PAY_DEADLINE_QUERY,
    PAY_DEADLINE_MANUAL,
    PAY_DEADLINE_ACTION,
    PAY_DEADLINE_AUTHORIZATION,
    PAY_DEADLINE_ORDER_EXPIRY,
    PAY_DEADLINE_RESERVATION,
    PAY_DEADLINE_ORPHAN,
    PAY_DEADLINE_APPROVAL,
    PAY_DEADLINE_DISPUTE,
    PAY_DEADLINE_DEAD_EVENT, /**< No row of its own: the payment's dead rows of the outbox. */
    PAY_DEADLINE_KIND_COUNT
};

enum pay_command_type { /**< The symbols of Avro CommandType in that order. */
                        PAY_CMD_CREATE_PAYMENT,
                        PAY_CMD_START_ATTEMPT,
                        PAY_CMD_CHANGE_METHOD,
                        PAY_CMD_CONTINUE_ATTEMPT,
                        PAY_CMD_CAPTURE,
                        PAY_CMD_CANCEL_PAYMENT,
                        PAY_CMD_REQUEST_REFUND,
                        PAY_CMD_FORCE_CLOSE_UNKNOWN,
                        PAY_CMD_CORRECT_STATE,
                        PAY_CMD_RELEASE_RESERVATION,
                        PAY_CMD_OVERRIDE_BLOCK,
                        PAY_CMD_RESOLVE_CASE,
                        PAY_CMD_APPROVE,
                        PAY_CMD_DECLINE,
                        PAY_CMD_REPLAY_INPUT,
                        PAY_CMD_DISCARD_EVENT,
                        PAY_CMD_PAUSE_ROUTE,
                        PAY_CMD_RESUME_ROUTE,
                        PAY_CMD_REPLAY_EVENT,
                        PAY_CMD_UNRECOGNIZED,
                        PAY_CMD_COUNT
};

/** Domain events, the symbols of Avro PaymentEventType in that order. */
enum pay_fact_type {
    PAY_FACT_PAYMENT_CREATED,
    PAY_FACT_PAYMENT_PROCESSING,
    PAY_FACT_PAYMENT_ACTION_REQUIRED,
    PAY_FACT_PAYMENT_AUTHORIZED,
    PAY_FACT_PAYMENT_SUCCEEDED,
    PAY_FACT_PAYMENT_FAILED,
    PAY_FACT_PAYMENT_CANCELED,
    PAY_FACT_PAYMENT_EXPIRED,
    PAY_FACT_ATTEMPT_STARTED,
    PAY_FACT_ATTEMPT_FAILED,
    PAY_FACT_CAPTURE_SUCCEEDED,
    PAY_FACT_CAPTURE_FAILED,
    PAY_FACT_CAPTURE_REVERSED,
    PAY_FACT_REFUND_SUCCEEDED,
    PAY_FACT_REFUND_FAILED,
    PAY_FACT_REFUND_REVERSED,
    PAY_FACT_DISPUTE_OPENED,
    PAY_FACT_DISPUTE_UPDATED,
    PAY_FACT_DISPUTE_CLOSED,
    PAY_FACT_PAYMENT_SETTLED,
    PAY_FACT_MANUAL_REVIEW_REQUIRED,
    PAY_FACT_MANUAL_REVIEW_RESOLVED,
    PAY_FACT_CORRECTION_APPLIED,
    PAY_FACT_COMMAND_ACCEPTED,
    PAY_FACT_COMMAND_REJECTED,
    PAY_FACT_EVENT_WITHHELD,
    PAY_FACT_UNRECOGNIZED,
    PAY_FACT_COUNT
};

enum pay_aggregate {
    PAY_AGGREGATE_ORDER,
    PAY_AGGREGATE_ATTEMPT,
    PAY_AGGREGATE_CAPTURE,
    PAY_AGGREGATE_REFUND,
    PAY_AGGREGATE_DISPUTE,
    PAY_AGGREGATE_APPROVAL,
    PAY_AGGREGATE_CASE,
    PAY_AGGREGATE_COMMAND,
    PAY_AGGREGATE_COUNT
};

enum pay_action_type {
    PAY_ACTION_REDIRECT,
    PAY_ACTION_QR_CODE,
    PAY_ACTION_SDK,
    PAY_ACTION_OTHER,
    PAY_ACTION_TYPE_COUNT
};

/* Each returns a static name as in Avro and SQL ("SUCCEEDED", "ATTEMPT_SUCCEEDED",
 * "PaymentSucceeded", "SUC" ...), never NULL. */
const char *pay_order_status_name(enum pay_order_status value);
const char *pay_attempt_status_name(enum pay_attempt_status value);
const char *pay_attempt_event_name(enum pay_attempt_event value);
const char *pay_money_kind_name(enum pay_money_kind value);
const char *pay_money_status_name(enum pay_money_status value);
const char *pay_money_event_name(enum pay_money_event value);
const char *pay_origin_name(enum pay_origin value);
const char *pay_dispute_status_name(enum pay_dispute_status value);
const char *pay_dispute_funds_name(enum pay_dispute_funds value);
const char *pay_request_status_name(enum pay_request_status value);
const char *pay_event_type_name(enum pay_event_type value);
const char *pay_evidence_name(enum pay_evidence value);
const char *pay_source_name(enum pay_source value);
const char *pay_verdict_name(enum pay_verdict value);
const char *pay_capture_mode_name(enum pay_capture_mode value);
const char *pay_intent_name(enum pay_intent value);
const char *pay_cancel_cause_name(enum pay_cancel_cause value);
const char *pay_failure_class_name(enum pay_failure_class value);
const char *pay_reference_kind_name(enum pay_reference_kind value);
const char *pay_job_kind_name(enum pay_job_kind value);
const char *pay_query_by_name(enum pay_query_by value);
const char *pay_case_kind_name(enum pay_case_kind value);
const char *pay_deadline_kind_name(enum pay_deadline_kind value);
const char *pay_command_type_name(enum pay_command_type value);
const char *pay_fact_type_name(enum pay_fact_type value);
const char *pay_aggregate_name(enum pay_aggregate value);
const char *pay_action_type_name(enum pay_action_type value);

/* Each returns false (ret_value untouched) when no value has that name. */
bool pay_order_status_parse(struct pay_str name, enum pay_order_status *ret_value);
bool pay_attempt_status_parse(struct pay_str name, enum pay_attempt_status *ret_value);
bool pay_money_status_parse(struct pay_str name, enum pay_money_status *ret_value);
bool pay_origin_parse(struct pay_str name, enum pay_origin *ret_value);
bool pay_dispute_status_parse(struct pay_str name, enum pay_dispute_status *ret_value);
bool pay_dispute_funds_parse(struct pay_str name, enum pay_dispute_funds *ret_value);
bool pay_request_status_parse(struct pay_str name, enum pay_request_status *ret_value);
bool pay_event_type_parse(struct pay_str name, enum pay_event_type *ret_value);
bool pay_evidence_parse(struct pay_str name, enum pay_evidence *ret_value);
bool pay_source_parse(struct pay_str name, enum pay_source *ret_value);
bool pay_capture_mode_parse(struct pay_str name, enum pay_capture_mode *ret_value);
bool pay_intent_parse(struct pay_str name, enum pay_intent *ret_value);
bool pay_cancel_cause_parse(struct pay_str name, enum pay_cancel_cause *ret_value);
bool pay_failure_class_parse(struct pay_str name, enum pay_failure_class *ret_value);
bool pay_reference_kind_parse(struct pay_str name, enum pay_reference_kind *ret_value);
bool pay_job_kind_parse(struct pay_str name, enum pay_job_kind *ret_value);
bool pay_query_by_parse(struct pay_str name, enum pay_query_by *ret_value);
bool pay_case_kind_parse(struct pay_str name, enum pay_case_kind *ret_value);
bool pay_deadline_kind_parse(struct pay_str name, enum pay_deadline_kind *ret_value);
bool pay_command_type_parse(struct pay_str name, enum pay_command_type *ret_value);
bool pay_fact_type_parse(struct pay_str name, enum pay_fact_type *ret_value);
bool pay_action_type_parse(struct pay_str name, enum pay_action_type *ret_value);

bool pay_case_is_money(enum pay_case_kind kind);
bool pay_order_is_final(enum pay_order_status status);     /**< SUCCEEDED FAILED CANCELED EXPIRED */
bool pay_attempt_is_final(enum pay_attempt_status status); /**< SUCCEEDED FAILED CANCELED */
/** @return true while the action holds a reservation: CREATED PROCESSING UNKNOWN. */
bool pay_money_is_open(enum pay_money_status status);
bool pay_dispute_is_final(enum pay_dispute_status status); /**< WON LOST CLOSED */
/** @return true for a command that is carried out only after two approvals (state-machine,
 *  "Commands"); REQUEST_REFUND and RESOLVE_CASE may need them, the decision says. */
bool pay_command_is_controlled(enum pay_command_type type);
/** @return true for a reason that FORCE_CLOSE_UNKNOWN, CORRECT_STATE, RELEASE_RESERVATION and
 *  OVERRIDE_BLOCK may give. */
bool pay_control_reason_is_known(struct pay_str reason_code);
/** @return true for a resolution code of RESOLVE_CASE. */
bool pay_resolution_is_known(struct pay_str resolution_code);
/** @return the n-th of the list, NULL at its end: for documents and help texts. */
const char *pay_control_reason_at(size_t n);
const char *pay_resolution_at(size_t n);

#endif /* PAY_CORE_TYPES_H */
