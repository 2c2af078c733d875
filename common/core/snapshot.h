/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file snapshot.h
 * @brief Everything of one payment that a decision rests on, as rows.
 *
 * Ownership: the arrays belong to the caller (the store's arena, or the explorer's stack); the core
 * appends rows up to the capacities given and marks each row it touches in @c change, which is how
 * the store learns what to write. Rows are values: nothing to free. Times are microseconds since
 * 1970 UTC by the database's clock unless a comment says whose; 0 means "not set".
 */
#ifndef PAY_CORE_SNAPSHOT_H
#define PAY_CORE_SNAPSHOT_H

#include "common/core/money.h"

/**
 * What is to be written of a row. An update raises the row's version, on which an operator's
 * request rests; a query that brought nothing is only counted, or no request about an UNKNOWN would
 * live to its second approval.
 */
enum pay_row_change { PAY_ROW_SAME, PAY_ROW_COUNTED, PAY_ROW_UPDATED, PAY_ROW_INSERTED };

/** What is known of a route's PSP: the adapter's constants and the account's `unknown` policy. */
struct pay_psp_traits {
    bool can_cancel;          /**< A cancel call exists that fails on a paid transaction. */
    bool confirm_moves_money; /**< Only our CONFIRM moves money (PayPal orders ...). */
    bool finds_by_request_no; /**< A not-found of a query by our number can count. */
    int not_founds_needed;    /**< In a row, each asked late enough. */
    int64_t send_window_us;   /**< A money job's not_after = decided + this. */
    int64_t answer_us;        /**< SUBMITTED, PROCESSING: silent for this long = ask. */
    int64_t call_budget_us;   /**< Longest that one call of ours lasts. */
    int64_t longest_processing_us;
    int64_t visibility_grace_us;
    int64_t query_first_us;     /**< UNKNOWN: the first query after this. */
    int64_t person_after_us;    /**< UNKNOWN for this long = a case. */
    int64_t action_lifetime_us; /**< REQUIRES_ACTION lasts this long unless the PSP says less. */
    int64_t cancel_retry_us;    /**< A CANCEL without an answer is asked about after this. */
    /* Captures and refunds. All zero: as if the PSP could do none of it. */
    bool captures_part;        /**< An authorization may be captured in part. */
    bool captures_again;       /**< ... and more than once, until a capture says it is final. */
    bool queries_captures;     /**< QUERY_CAPTURE says what became of a capture. */
    bool queries_refunds;      /**< QUERY_REFUND says what became of a refund. */
    bool finds_captures_by_no; /**< A not-found of a QUERY_CAPTURE by our number can count. */
    bool finds_refunds_by_no;  /**< A not-found of a QUERY_REFUND by our number can count. */
    int64_t action_life_us;    /**< A capture or refund is sent (again) until this old; 0: a day. */
    int64_t action_retry_us;   /**< RETRY_SAME_NUMBER without a time said: again after this; 0: the
                                  first query's pause. */
    int64_t reservation_us;    /**< A reservation older than this is a case; 0: three days. */
};

struct pay_route {
    char psp[PAY_NAME_SIZE];
    char psp_account[PAY_NAME_SIZE];
    char method[PAY_NAME_SIZE];
    bool failover_on_not_found;
    bool paused; /**< PAUSE_ROUTE holds for it now. */
    struct pay_psp_traits traits;
};

struct pay_order {
    enum pay_row_change change;
    bool exists; /**< false: no such payment yet. */
    char payment_id[PAY_PAYMENT_ID_SIZE];
    char merchant_id[PAY_MERCHANT_SIZE];
    char merchant_order_no[PAY_ORDER_NO_SIZE];
    struct pay_money amount;
    enum pay_capture_mode capture_mode;
    enum pay_order_status status;
    char reason_code[PAY_CODE_SIZE];
    enum pay_intent intent;
    char intent_command_id[PAY_CAUSE_SIZE]; /**< caller/command_id; "" with intent NONE. */
    int intent_route_no; /**< CHANGE_METHOD: index of the route chosen; else -1. */
    int64_t failover_until_us;
    int64_t expires_at_us;
    bool retry_until_expiry;
    bool expiry_asked; /**< ORDER_EXPIRY was due beside a live attempt: asked again when it ends. */
    int64_t version;   /**< As loaded; the store raises it once per batch turn. */
    int64_t event_sequence; /**< Last sequence given to a fact; gapless. */
    int attempt_count;
    int capture_count; /**< Numbers given so far: the next is C<count + 1>. */
    int refund_count;
    int dispute_count;
    int paid_attempt_no; /**< The attempt that made the order SUCCEEDED; 0: none has. What a refund
                            goes to when it names no attempt. */
    char created_by[PAY_NAME_SIZE];
    int64_t created_at_us;
};

struct pay_amounts { /**< Minor units, each >= 0; the money invariants of the state machine. */
    int64_t authorized, capture_reserved, captured, refund_reserved, refunded, withdrawn;
};

struct pay_attempt {
    enum pay_row_change change;
    bool amounts_changed;
    char attempt_id[PAY_ACTION_ID_SIZE]; /**< Also the request number given to the PSP. */
    int attempt_no;
    int route_no;
    char psp[PAY_NAME_SIZE];
    char psp_account[PAY_NAME_SIZE];
    char method[PAY_NAME_SIZE];
    struct pay_money amount;
    enum pay_attempt_status status;
    bool live; /**< Blocks another attempt; true from creation to FAILED or CANCELED. */
    enum pay_evidence result_certainty;
    char last_accepted_event_id[PAY_CAUSE_SIZE]; /**< Business key of the last applied event. */
    int64_t version; /**< As loaded; raised by the store only when this row changes. */
    int query_count;
    int not_found_count;       /**< In a row. */
    int64_t not_found_from_us; /**< When the first of that row was asked; 0: none counts. A send
                                  after it starts the count again. */
    int64_t known_at_us; /**< When a fact or a reference first proved that the PSP has it; 0: not
                            known to exist. CANCEL only after it; a query's CAN only if asked after
                            it. */
    int64_t unknown_since_us; /**< Set exactly while UNKNOWN. */
    int64_t submitted_at_us;
    int action_no;  /**< Actions handed to the customer so far. */
    int confirm_no; /**< CONFIRM jobs made so far. */
    int cancel_no;  /**< CANCEL jobs made so far. */
    int64_t action_expires_at_us;
    int64_t psp_expires_at_us; /**< The expiry that our create request gave to the PSP. */
    int64_t authorization_expires_at_us;
    enum pay_cancel_cause
        cancel_cause; /**< Not NONE: it is being withdrawn or canceled, and why. */
    enum pay_failure_class failure_class;
    char failure_code[PAY_CODE_SIZE];
    int64_t created_at_us;
    struct pay_amounts amounts;
    int64_t refund_sum_minor; /**< The largest sum of refunds that the PSP has reported; belongs to
                                 the amounts (amounts_changed). */
};

/**
 * A capture (C01) or a refund (R01). It has reserved its amount in the attempt's amounts exactly
 * while its status is CREATED, PROCESSING or UNKNOWN.
 */
struct pay_money_action {
    enum pay_row_change change;
    char action_id[PAY_ACTION_ID_SIZE]; /**< Also the request number given to the PSP. */
    int number;                         /**< 1..99, of the id. */
    int attempt_index;                  /**< Into snapshot.attempts: who holds the money. */
    char idempotency_key[PAY_IDEMPOTENCY_KEY_SIZE]; /**< The merchant's number, else
                                       caller/command_id; origin PSP: psp/account/reference, of a
                                       sum attempt_id/sum; longer ones end in their hash. UNIQUE
                                       with the merchant. */
    struct pay_money amount;
    bool is_final; /**< Capture: what is left of the authorization is released. */
    enum pay_money_status status;
    enum pay_evidence result_certainty;
    char provider_reference[PAY_REFERENCE_SIZE]; /**< The PSP's name of it; "": not known. */
    enum pay_origin origin;
    char reason_code[PAY_CODE_SIZE];             /**< Refund: the requester's. */
    char last_accepted_event_id[PAY_CAUSE_SIZE]; /**< Business key of the last applied event. */
    int64_t version; /**< As loaded; raised by the store only when this row changes. */
    int query_count;
    int not_found_count;       /**< In a row. */
    int64_t not_found_from_us; /**< As an attempt's. */
    int64_t unknown_since_us;  /**< Set exactly while UNKNOWN. */
    int64_t retry_at_us;       /**< RETRY_SAME_NUMBER: repeated under its own number then; 0: no. */
    int64_t give_up_at_us; /**< The action's end: not sent by then = withdrawn, repeated no more. */
    enum pay_failure_class failure_class;
    char failure_code[PAY_CODE_SIZE];
    int64_t created_at_us;
    int64_t changed_at_us; /**< What was asked before then does not know of it. */
};

struct pay_dispute {
    enum pay_row_change change;
    char dispute_id[PAY_ACTION_ID_SIZE]; /**< D01 ... */
    int number;
    int attempt_index;
    char provider_reference[PAY_REFERENCE_SIZE]; /**< UNIQUE with psp and account, which are the
                                                    attempt's. */
    struct pay_money amount;
    enum pay_dispute_status status;
    enum pay_dispute_funds funds;
    bool is_inquiry;         /**< Moves no money. */
    int64_t withdrawn_minor; /**< This dispute's part of the attempt's `withdrawn`. */
    char reason_code[PAY_CODE_SIZE];
    int64_t evidence_due_at_us; /**< 0: not said. */
    enum pay_evidence result_certainty;
    char last_accepted_event_id[PAY_CAUSE_SIZE];
    int64_t version;
    int64_t created_at_us;
};

/**
 * A command that waits for, or had, two approvals. The command's own members are filled from its
 * stored bytes by pay_request_fill(), so that what is carried out is what was signed and digested.
 */
struct pay_approval_request {
    enum pay_row_change change;
    char request_id[PAY_CAUSE_SIZE];  /**< caller/command_id of the command that needs it. */
    uint8_t sha256[32];               /**< Of the Command's value bytes: what an approval names. */
    char requested_by[PAY_NAME_SIZE]; /**< Principal. */
    enum pay_request_status status;
    int64_t expires_at_us;
    int64_t created_at_us;
    int64_t decided_at_us; /**< 0 exactly while PENDING. */
    /* Of the command. */
    enum pay_command_type type;
    char aggregate_id[PAY_CAUSE_SIZE]; /**< Payment, attempt, capture, refund, dispute or case id;
                                          REQUEST_REFUND: the refund it made. */
    int64_t expected_version; /**< Of the aggregate's own row; -1: none (refund; an order, which is
                                 compared by from_status). */
    char from_status[PAY_CODE_SIZE];
    char to_status[PAY_CODE_SIZE]; /**< FORCE_CLOSE_UNKNOWN: the outcome. */
    bool has_amount;
    struct pay_money amount;
    char provider_reference[PAY_REFERENCE_SIZE];
    char reason_code[PAY_CODE_SIZE]; /**< RESOLVE_CASE: the resolution code. */
};

/** One principal's word about a request: counts once, whatever key signed it. */
struct pay_approval {
    enum pay_row_change change; /**< INSERTED or SAME. */
    int request_index;          /**< Into snapshot.requests. */
    char principal[PAY_NAME_SIZE];
    bool approves;
    char command_id[PAY_CODE_SIZE]; /**< Of the APPROVE or DECLINE. */
    int64_t decided_at_us;
};

/** What the merchant refunded today (UTC) in the payment's currency without approval. */
struct pay_refund_day {
    enum pay_row_change change; /**< UPDATED: add added_minor, if the row's amount then is not above
                                   limit_minor; a miss is a lost race, decided again. */
    int64_t amount_minor;       /**< As loaded; 0: no row yet. */
    int64_t added_minor;        /**< By the decisions since. */
    int64_t limit_minor;        /**< The merchant's threshold, as the decision saw it. */
};

/**
 * Earlier gates of the same action and kind that the store left out. They are closed: nothing is
 * sent through them any more, and only what they add up to is asked for (gate.h). An outage makes
 * one after another, and a payment must stay small enough to be read.
 */
struct pay_gate_past {
    int made;
    int sent;        /**< Of them: passed. */
    int sends;       /**< Of those. */
    int64_t last_us; /**< The latest not_after and send of all of them. */
};

/** The gate row of one money job. */
struct pay_gate {
    enum pay_row_change change; /**< UPDATED: closed by this decision, nothing else. */
    char job_id[PAY_JOB_ID_SIZE];
    char action_id[PAY_ACTION_ID_SIZE];
    enum pay_job_kind kind;
    int64_t not_after_us;
    int64_t sending_at_us; /**< Set: the gate was passed, it may have been sent. */
    int sends; /**< Only grows. The close is conditional on sending_at and sends as seen here. */
    int64_t last_send_at_us;
    int64_t closed_at_us;
    bool finished;
    int64_t replay_until_us;
    struct pay_gate_past past; /**< All zero: none was left out. */
};

struct pay_bound_reference {
    enum pay_row_change change;
    int attempt_index;
    enum pay_reference_kind kind;
    char reference[PAY_REFERENCE_SIZE];
    int64_t bound_at_us;
};

struct pay_case {
    enum pay_row_change change;   /**< UPDATED: evidence added, or resolved (open false). */
    char case_id[PAY_CAUSE_SIZE]; /**< payment_id.KIND.n */
    enum pay_case_kind kind;
    char aggregate_id[PAY_ACTION_ID_SIZE];
    bool open;
    int number;                    /**< n of this kind. */
    int64_t proposed_refund_minor; /**< 0: none. */
    int64_t version; /**< As loaded: raised by the store when the row changes. A resolution that was
                        asked for on another one is stale. */
    char resolved_by[PAY_NAME_SIZE];     /**< Principal; "" while open. */
    char resolution_code[PAY_CODE_SIZE]; /**< "" while open. */
};

struct pay_snapshot {
    struct pay_order order;
    bool order_no_taken; /**< CREATE_PAYMENT: the merchant's number belongs to another payment. */

    struct pay_route *routes;
    size_t route_count, route_cap;
    struct pay_attempt *attempts; /**< In order of attempt_no. */
    size_t attempt_count, attempt_cap;
    struct pay_gate *gates;
    size_t gate_count, gate_cap;
    struct pay_bound_reference *references;
    size_t reference_count, reference_cap;
    struct pay_case *cases; /**< Every case of the payment, resolved ones too. */
    size_t case_count, case_cap;

    /**
     * The store loads and keeps what stands below. While it is false these arrays are not looked
     * at, events about captures, refunds and disputes are kept without effect (a capture of the
     * whole in manual mode is the attempt's success), and the commands that need them are refused
     * NOT_SUPPORTED.
     */
    bool keeps_actions;
    struct pay_money_action *captures; /**< In order of number, as refunds and disputes. */
    size_t capture_count, capture_cap;
    struct pay_money_action *refunds;
    size_t refund_count, refund_cap;
    struct pay_dispute *disputes;
    size_t dispute_count, dispute_cap;
    struct pay_approval_request *requests; /**< PENDING ones, and the one that the input's command
                                              names, whatever its status. */
    size_t request_count, request_cap;
    struct pay_approval *approvals; /**< Of these requests. */
    size_t approval_count, approval_cap;
    struct pay_refund_day refund_day; /**< Of the merchant, the database's day, the currency. */
};

#endif /* PAY_CORE_SNAPSHOT_H */
