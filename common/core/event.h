/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file event.h
 * @brief One thing that a PSP said, or that payfact knows about its own call, in payfact's words.
 *
 * Made by the PSP adapters and by ingest/psp, carried in PaymentInput, judged by pay_decide().
 * Text is borrowed from the maker's arena and lives as long as that turn. Absent text has ptr NULL.
 */
#ifndef PAY_CORE_EVENT_H
#define PAY_CORE_EVENT_H

#include "common/core/money.h"

struct pay_reference {
    enum pay_reference_kind kind;
    struct pay_str reference; /**< 1 to 255 bytes. */
};

/** What the customer must do next. May hold a secret of the PSP: never logged, never stored in
 * plain. */
struct pay_customer_action {
    bool is_set;
    enum pay_action_type type;
    struct pay_str url;
    struct pay_str data;
    int64_t expires_at_us; /**< 0: not said. */
};

/** The call of ours that an event answers. */
struct pay_call {
    bool is_set;
    struct pay_str job_id;
    int send_no; /**< From 1; 0: nothing left. */
    enum pay_query_by query_by;
    /** By the database's clock as ingest knows it, before the first byte left; 0: absent. */
    int64_t asked_at_us;
    int http_status; /**< 0: absent. */
    struct pay_str psp_request_id;
    int retry_after_s; /**< The PSP asks to wait so long before the next try; 0: not said. */
};

struct pay_dispute_detail {
    bool is_set;
    int status; /**< Symbol index of Avro DisputeStatus: enum pay_dispute_status, or beyond it. */
    int funds;  /**< Symbol index of Avro DisputeFunds: enum pay_dispute_funds, or beyond it. */
    bool is_inquiry;
    struct pay_str reason_code;
    int64_t evidence_due_at_us;
};

struct pay_event {
    enum pay_event_type type;
    struct pay_str psp;
    struct pay_str psp_account;
    struct pay_str
        merchant_request_no;  /**< As the PSP repeats it; may be of a form that is not ours. */
    struct pay_str action_id; /**< Our own number of the capture or refund (C01, R01), as the PSP
                                 repeats it. */
    struct pay_str
        provider_payment_id; /**< The one reference that stays the same over the attempt. */
    struct pay_str provider_action_id; /**< The PSP's own name of the capture, refund, reversal or
                                          dispute. Without it and without action_id: nameless. */
    struct pay_reference references[PAY_REFERENCES_PER_EVENT_MAX];
    size_t reference_count;
    bool same_object;
    bool success_when_automatic;
    bool has_amount;
    struct pay_money amount; /**< CAPTURE_*, REFUND_*: of this one; REFUND_SUM: all refunds of the
                                attempt so far; DISPUTE_*: what is disputed, FUNDS_*: moved. */
    struct pay_str normalized_result; /**< 64 bytes at most. */
    enum pay_failure_class failure_class;
    struct pay_str failure_code;
    struct pay_customer_action action;
    int64_t authorization_expires_at_us; /**< 0: absent. */
    struct pay_dispute_detail dispute;
    struct pay_call call;
    struct pay_str psp_event_type; /**< The PSP's own name, for explain. */
};

#endif /* PAY_CORE_EVENT_H */
