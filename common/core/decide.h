/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file decide.h
 * @brief The heart: what one input does to one payment. Pure: no I/O, no clock, no allocation, no
 * globals.
 *
 * pay_decide() takes the snapshot before, writes into it the snapshot after (rows marked in
 * @c change) and says in the decision what else must happen: facts to publish, jobs for the PSP,
 * deadlines, history. The same snapshot and input always give the same result, ids included, so a
 * lost race or a crash is answered by reading again and deciding again.
 *
 * Text in a decision is either static, or borrowed from the snapshot or the input, or stands in the
 * decision itself; it lives as long as these three.
 */
#ifndef PAY_CORE_DECIDE_H
#define PAY_CORE_DECIDE_H

#include "common/base/attr.h"
#include "common/core/command.h"
#include "common/core/event.h"
#include "common/core/snapshot.h"

#define PAY_EFFECTS_MAX 64
#define PAY_HISTORY_MAX 24

/* Free places that the snapshot's arrays must have before each decision (cap - count); more than
 * the most of a payment is never needed. Too few is a bug of the caller, and asserted. */
#define PAY_DECIDE_ROOM_ROUTES PAY_ROUTES_MAX /**< In all: CREATE_PAYMENT fills it. */
#define PAY_DECIDE_ROOM_ATTEMPTS 1
#define PAY_DECIDE_ROOM_GATES 2
#define PAY_DECIDE_ROOM_REFERENCES (PAY_REFERENCES_PER_EVENT_MAX + 2)
#define PAY_DECIDE_ROOM_CASES 4
/* Only where snapshot.keeps_actions. */
#define PAY_DECIDE_ROOM_CAPTURES 1
#define PAY_DECIDE_ROOM_REFUNDS 1
#define PAY_DECIDE_ROOM_DISPUTES 1
#define PAY_DECIDE_ROOM_REQUESTS 1
#define PAY_DECIDE_ROOM_APPROVALS 1

enum pay_input_kind {
    PAY_INPUT_EVENT,
    PAY_INPUT_COMMAND,
    PAY_INPUT_REJECTED_COMMAND,
    PAY_INPUT_DEADLINE,
    PAY_INPUT_KIND_COUNT
};

struct pay_deadline_due {
    enum pay_deadline_kind kind;
    struct pay_str aggregate_id;
    int64_t due_at_us;
    int64_t row_due_at_us; /**< What the row says now; 0: no such row any more. Differs: the input
                              is old. DEAD_EVENT: since when the outbox holds a dead row of the
                              payment; 0: it holds none. */
};

/** The merchant's settings. Which inputs need which stands at the member. */
struct pay_policy {
    int64_t order_expires_after_us;
    int64_t failover_window_us;
    bool retry_until_expiry;
    int64_t amount_max_minor; /**< For the command's currency; 0: none given, refuse. INT64_MAX: no
                                 limit. */
    bool manual_capture;      /**< false: CREATE_PAYMENT with MANUAL is refused NOT_SUPPORTED. */
    /* REQUEST_REFUND, in the payment's currency. 0: every refund needs two approvals. */
    int64_t refund_threshold_minor;     /**< For the sum of a payment's refunds. */
    int64_t refund_threshold_day_minor; /**< For what the merchant refunds on one day (UTC). */
    int64_t
        approval_life_us; /**< Every command that may need approval: until it expires; 0: a day. */
    bool captures_at_end; /**< DEADLINE AUTHORIZATION: the merchant's policy at an authorization's
                             end is to capture the rest; false: to void it. */
};

struct pay_decide_input {
    enum pay_input_kind kind;
    enum pay_source source;
    enum pay_evidence
        evidence;   /**< Derived by the caller from kind and source, never from a message. */
    int64_t now_us; /**< The database's clock. */
    struct pay_str input_id;
    struct pay_str cause; /**< Business key, caller/command_id, or kind:aggregate:due_at. */
    const struct pay_event *event; /**< EVENT */
    bool foreign_reference; /**< EVENT: a reference of it is bound to another payment's attempt. */
    const struct pay_command *command; /**< COMMAND, REJECTED_COMMAND */
    struct pay_bytes command_sha256;   /**< COMMAND: of its value bytes, 32 bytes. */
    bool key_taken; /**< CAPTURE, REQUEST_REFUND: the merchant's idempotency key belongs to an
                       action of another payment. */
    struct pay_str refusal; /**< Reason found before deciding (relay, accounts); absent: none. */
    const struct pay_route
        *routes; /**< COMMAND with routes: resolved, with traits; in the command's order. */
    size_t route_count;
    struct pay_policy policy; /**< CREATE_PAYMENT. failover_window_us: every merchant command. */
    struct pay_deadline_due deadline; /**< DEADLINE */
};

enum pay_effect_kind {
    PAY_EFFECT_FACT, /**< Publish on events. */
    PAY_EFFECT_JOB,  /**< Produce on psp-jobs; a money job's gate row is in the snapshot, INSERTED.
                      */
    PAY_EFFECT_DEADLINE_SET,   /**< Upsert (aggregate_id, kind). */
    PAY_EFFECT_DEADLINE_CLEAR, /**< Delete (aggregate_id, kind), if there. */
    PAY_EFFECT_KIND_COUNT
};

struct pay_fact {
    enum pay_fact_type type;
    char event_id[PAY_EVENT_ID_SIZE];
    int64_t sequence; /**< 0: outside the payment's order. */
    char aggregate_id[PAY_CAUSE_SIZE];
    int attempt_index;           /**< Into snapshot.attempts; -1: none. */
    const char *previous_status; /**< Static; NULL: none. */
    const char *status;          /**< Static; NULL: none. */
    bool has_order_status;
    enum pay_order_status order_status;
    bool has_amount;
    struct pay_money amount;
    bool has_totals;
    struct pay_amounts totals; /**< Sums over attempts after this fact. */
    const char *reason_code;
    enum pay_failure_class failure_class;
    struct pay_str failure_code;
    enum pay_evidence evidence;
    struct pay_str provider_reference;
    bool has_action;                /**< The action is the input event's. */
    int case_index;                 /**< Into snapshot.cases; -1: none. */
    int dispute_index;              /**< Into snapshot.disputes; -1: none. */
    enum pay_dispute_funds funds;   /**< Dispute facts: what this decision moved. */
    char result_id[PAY_CAUSE_SIZE]; /**< Command answers: what it made; "" none. */
};

struct pay_job_effect {
    char job_id[PAY_JOB_ID_SIZE];
    enum pay_job_kind kind;
    int attempt_index;
    int action_index; /**< CAPTURE, QUERY_CAPTURE: into snapshot.captures; REFUND, QUERY_REFUND:
                         into snapshot.refunds; else -1. PspJob takes action id, request number,
                         amount and is_final from there. */
    int number;       /**< n of the job id, from 1. */
    int try_no; /**< PspJob.try: how many jobs of the action may have been sent, this one counted.
                 */
    int64_t not_after_us;
    int64_t expires_at_us;              /**< SUBMIT: the expiry to give to the PSP; 0: none. */
    const char *reason_code;            /**< CANCEL, REFUND: why; NULL: none. */
    char about_job_id[PAY_JOB_ID_SIZE]; /**< QUERY: the money job that may be replayed; "": none. */
};

struct pay_deadline_effect {
    enum pay_deadline_kind kind;
    char aggregate_id[PAY_CAUSE_SIZE]; /**< Payment, attempt, capture, refund or dispute id;
                                          APPROVAL: the request's. */
    int64_t due_at_us;                 /**< SET only. */
    int64_t set_before_us; /**< CLEAR only: a row that was set later stays; 0: any goes. */
};

struct pay_effect {
    enum pay_effect_kind kind;
    union {
        struct pay_fact fact;
        struct pay_job_effect job;
        struct pay_deadline_effect deadline;
    } as;
};

/** One row of payment_state_history. */
struct pay_history_row {
    enum pay_aggregate aggregate;
    char aggregate_id[PAY_CAUSE_SIZE];
    const char *from_status; /**< Static; NULL: none. */
    const char *to_status;   /**< Static; NULL: none. */
    enum pay_verdict verdict;
    const char *event_name; /**< SUC, AEX, CREATE_PAYMENT ... */
    const char *reason_code;
    struct pay_str provider_reference;
    bool has_amount;
    struct pay_money amount;
    int fact_effect; /**< Index of the FACT effect it published; -1: none. */
    bool outside;    /**< Of no payment's history: the command of a caller who has no part in it. */
    bool is_controlled; /**< By what two people approved, whatever the input's own level. */
};

struct pay_decision {
    enum pay_verdict verdict;
    const char *reason_code; /**< Static, e.g. "STALE", "AMOUNT_MISMATCH"; "APPLIED" for APPLY. */
    bool security;           /**< REJECT that counts in the security metric. */
    bool orphan; /**< EVENT or COMMAND-less input for a payment or attempt that is not there yet. */
    bool foreign; /**< IGNORE (FOREIGN): not of our form. */
    struct pay_effect effects[PAY_EFFECTS_MAX];
    size_t effect_count;
    struct pay_history_row history[PAY_HISTORY_MAX];
    size_t history_count;
};

/**
 * @brief Are each attempt's reserved amounts the sums of its open actions?
 * So they are in rows that decisions wrote, and pay_decide() asserts it of what it is given.
 */
bool pay_snapshot_adds_up(const struct pay_snapshot *snapshot);

/**
 * @brief Decide one input.
 *
 * @param snapshot in: before; out: after. Unchanged (no row marked) unless the verdict says so.
 *                 A payment that does not exist has order.exists false and payment_id set.
 * @param input    borrowed.
 * @param ret_decision overwritten.
 *
 * Total: every input gets a verdict. History has at least one row, except for an orphan. Rows that
 * are all outside: the payment was not touched, and its version is not to be raised.
 */
void pay_decide(struct pay_snapshot *snapshot, const struct pay_decide_input *input,
                struct pay_decision *ret_decision);

/**
 * @brief Fill what an approval request has of its command: for who loads it, from the stored bytes.
 *
 * @param request request_id, sha256, requested_by, status and times are not touched, nor, for
 *                REQUEST_REFUND, aggregate_id: the refund that the stored row names.
 * @return false when a text is longer than its place: such a command was never accepted.
 */
PAY_MUST_CHECK bool pay_request_fill(struct pay_approval_request *request,
                                     const struct pay_command *command);

#endif /* PAY_CORE_DECIDE_H */
