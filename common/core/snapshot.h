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

enum pay_row_change { PAY_ROW_SAME, PAY_ROW_UPDATED, PAY_ROW_INSERTED };

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
};

struct pay_bound_reference {
    enum pay_row_change change;
    int attempt_index;
    enum pay_reference_kind kind;
    char reference[PAY_REFERENCE_SIZE];
    int64_t bound_at_us;
};

struct pay_case {
    enum pay_row_change change;   /**< UPDATED: evidence added, version raised by the store. */
    char case_id[PAY_CAUSE_SIZE]; /**< payment_id.KIND.n */
    enum pay_case_kind kind;
    char aggregate_id[PAY_ACTION_ID_SIZE];
    bool open;
    int number;                    /**< n of this kind. */
    int64_t proposed_refund_minor; /**< 0: none. */
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
};

#endif /* PAY_CORE_SNAPSHOT_H */
