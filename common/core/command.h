/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file command.h
 * @brief One order to payfact, as decoded from the commands topic. Text is borrowed.
 */
#ifndef PAY_CORE_COMMAND_H
#define PAY_CORE_COMMAND_H

#include "common/core/event.h"

#define PAY_ATTACHMENTS_MAX 16

struct pay_route_choice {
    struct pay_str psp;
    struct pay_str psp_account;
    struct pay_str method;
    bool failover_on_not_found;
};

struct pay_cmd_create_payment {
    struct pay_str merchant_order_no;
    struct pay_money amount;
    enum pay_capture_mode capture_mode;
    int64_t expires_at_us;  /**< 0: the merchant's order_expires_after_s. */
    int retry_until_expiry; /**< -1: the merchant's setting; else 0 or 1. */
    struct pay_str description;
    struct pay_route_choice routes[PAY_ROUTES_MAX];
    size_t route_count; /**< 0: the merchant's default routes. */
    bool start;
};

struct pay_cmd_money {         /**< CAPTURE, REQUEST_REFUND */
    struct pay_str attempt_id; /**< Absent: the authorized one; the one that paid the order. */
    struct pay_money amount;
    bool is_final;                  /**< CAPTURE: release what is left. */
    struct pay_str reason_code;     /**< REQUEST_REFUND; 64 bytes at most. */
    struct pay_str idempotency_key; /**< The merchant's own number, 200 bytes at most; absent:
                                       caller/command_id. */
};

struct pay_attachment {
    struct pay_str reference;
    struct pay_bytes sha256;
};

/** FORCE_CLOSE_UNKNOWN, CORRECT_STATE, RELEASE_RESERVATION, OVERRIDE_BLOCK, RESOLVE_CASE */
struct pay_cmd_controlled {
    struct pay_str aggregate_id; /**< Or case id, attempt id. */
    int64_t expected_version;    /**< Of the aggregate's own row; -1: absent (an order, which is
                                    compared by from_status). */
    struct pay_str from_status;  /**< CORRECT_STATE: the status seen. */
    struct pay_str to_status;    /**< FORCE_CLOSE_UNKNOWN: the outcome, FAILED or SUCCEEDED. */
    bool has_amount;
    struct pay_money amount;
    struct pay_str provider_reference;
    struct pay_str reason_code; /**< RESOLVE_CASE: resolution_code. */
    struct pay_attachment attachments[PAY_ATTACHMENTS_MAX];
    size_t attachment_count;
};

struct pay_cmd_approval { /**< APPROVE, DECLINE */
    struct pay_str request_id;
    struct pay_bytes request_sha256; /**< 32 bytes, of the request's Command value bytes. */
    struct pay_str reason_code;
};

struct pay_cmd_subject { /**< REPLAY_INPUT, REPLAY_EVENT, DISCARD_EVENT, PAUSE_ROUTE, RESUME_ROUTE
                          */
    struct pay_str psp;
    struct pay_str psp_account;
    struct pay_str method;
    struct pay_str transport_key;
    struct pay_str event_id;
    struct pay_str reason_code;
};

struct pay_command {
    struct pay_str command_id; /**< 1 to 64 bytes, unique per caller for ever. */
    enum pay_command_type type;
    struct pay_str caller;
    struct pay_str merchant_id;
    struct pay_str payment_id;
    int64_t issued_at_us;
    struct pay_bytes secrets_sha256;
    struct pay_cmd_create_payment create_payment;
    struct pay_route_choice route; /**< START_ATTEMPT, CHANGE_METHOD */
    struct pay_str attempt_id;     /**< CONTINUE_ATTEMPT */
    struct pay_str reason_code;    /**< CANCEL_PAYMENT */
    struct pay_cmd_money money;
    struct pay_cmd_controlled controlled;
    struct pay_cmd_approval approval;
    struct pay_cmd_subject subject;
    struct pay_str traceparent;
};

#endif /* PAY_CORE_COMMAND_H */
