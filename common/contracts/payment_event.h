/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file payment_event.h
 * @brief One published fact (topic events): downstream's contract. Ownership, threads, failure:
 * codec.h.
 */
#ifndef PAY_CONTRACTS_PAYMENT_EVENT_H
#define PAY_CONTRACTS_PAYMENT_EVENT_H

#include "common/contracts/payment_input.h"
#include "common/core/event.h"

/** Money of the whole payment after this fact. */
struct pay_event_totals {
    bool is_set;
    int64_t authorized_minor;
    int64_t capture_reserved_minor;
    int64_t captured_minor;
    int64_t refund_reserved_minor;
    int64_t refunded_minor;
    int64_t withdrawn_minor;
};

/** ManualReview*. Absent: case_id.ptr is NULL. */
struct pay_event_review {
    struct pay_str case_id;
    struct pay_str kind;
    bool has_proposed_refund;
    int64_t proposed_refund_minor;
    struct pay_str resolution_code;
};

/** CommandAccepted, CommandRejected. Absent: caller.ptr is NULL. */
struct pay_event_command {
    struct pay_str caller;
    struct pay_str command_id;
    struct pay_str command_type;
    struct pay_str result_id;
};

/** EventWithheld. Absent: event_id.ptr is NULL. */
struct pay_event_withheld {
    struct pay_str event_id;
    struct pay_str type;
};

struct pay_payment_event {
    struct pay_str event_id;
    enum pay_fact_type type;
    struct pay_str payment_id; /**< "" in the answer to a command about no payment. */
    struct pay_str merchant_id;
    struct pay_str merchant_order_no; /**< Absent: unknown, or another merchant's. */
    int64_t sequence;
    struct pay_str aggregate_id;
    struct pay_str attempt_id;
    struct pay_str previous_status;
    struct pay_str status;
    struct pay_str order_status;
    bool has_amount;
    int64_t amount_minor;
    char currency[PAY_CURRENCY_SIZE]; /**< Of all amounts here; "": none. */
    struct pay_event_totals totals;
    struct pay_str reason_code;
    enum pay_failure_class failure_class;
    struct pay_str failure_code;
    enum pay_evidence evidence_level; /**< PAY_EVIDENCE_COUNT: unrecognized. */
    struct pay_str psp;
    struct pay_str psp_account;
    struct pay_str method;
    struct pay_str provider_reference;
    struct pay_customer_action action;
    struct pay_dispute_detail dispute;
    struct pay_settlement settlement;
    struct pay_event_review review;
    struct pay_event_command command;
    struct pay_event_withheld withheld;
    int64_t occurred_at_us; /**< 0: absent. */
    int64_t decided_at_us;
    struct pay_str traceparent;
};

PAY_MUST_CHECK enum pay_status pay_payment_event_encode(struct pay_codec *codec,
                                                        const struct pay_payment_event *record,
                                                        struct pay_buf *out, struct pay_err *err);
PAY_MUST_CHECK enum pay_status
pay_payment_event_decode(struct pay_codec *codec, struct pay_bytes value, struct pay_arena *arena,
                         struct pay_payment_event *ret_record, struct pay_err *err);

#endif /* PAY_CONTRACTS_PAYMENT_EVENT_H */
