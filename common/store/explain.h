/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file explain.h
 * @brief Everything that is known of one payment, for a person: read only, in one round trip and
 * one snapshot of the database, with the rights of payfact_operator. No sealed column is read.
 *
 * Each list is a table of fields that drives reading and JSON alike. Ownership: rows belong to the
 * arena given. Threads: store.h. A list keeps its newest PAY_EXPLAIN_ROWS_MAX rows and says if
 * there were more.
 */
#ifndef PAY_STORE_EXPLAIN_H
#define PAY_STORE_EXPLAIN_H

#include "common/core/types.h"
#include "common/store/store.h"

#define PAY_EXPLAIN_ROWS_MAX 500
#define PAY_EXPLAIN_FOUND_MAX 10 /**< Payments that one reference may find; more are refused. */

enum pay_explain_list {
    PAY_EXPLAIN_ORDER, /**< 0 or 1 row. */
    PAY_EXPLAIN_ROUTES,
    PAY_EXPLAIN_ATTEMPTS,
    PAY_EXPLAIN_REFERENCES,
    PAY_EXPLAIN_CAPTURES,
    PAY_EXPLAIN_REFUNDS,
    PAY_EXPLAIN_DISPUTES,
    PAY_EXPLAIN_SENDS,
    PAY_EXPLAIN_HISTORY,
    PAY_EXPLAIN_INPUTS,
    PAY_EXPLAIN_COMMANDS,
    PAY_EXPLAIN_APPROVALS,
    PAY_EXPLAIN_CASES,
    PAY_EXPLAIN_OUTBOX,
    PAY_EXPLAIN_DEADLINES,
    PAY_EXPLAIN_LIST_COUNT
};

enum pay_explain_kind {
    PAY_EXPLAIN_TEXT,  /**< struct pay_str; absent: NULL. */
    PAY_EXPLAIN_INT,   /**< int64_t; 0 for NULL. */
    PAY_EXPLAIN_BOOL,  /**< bool */
    PAY_EXPLAIN_TIME,  /**< int64_t microseconds since 1970; 0: NULL. */
    PAY_EXPLAIN_LEVEL, /**< int64_t: a number of enum pay_evidence. */
    PAY_EXPLAIN_KIND_COUNT
};

struct pay_explain_field {
    const char *name; /**< As in JSON. */
    enum pay_explain_kind kind;
    size_t offset;
};

struct pay_explain_spec {
    const char *name; /**< As in JSON. */
    const struct pay_explain_field *fields;
    size_t field_count;
    size_t row_size;
};

/* Times end in _at or _until, amounts in _minor. */
struct pay_explain_order {
    struct pay_str payment_id, merchant_id, merchant_order_no, currency, capture_mode, status,
        reason_code, intent, intent_command_id, created_by, traceparent;
    int64_t amount_minor, intent_route_no, failover_until, expires_at, version, event_sequence,
        attempt_count, created_at, updated_at;
    bool retry_until_expiry, expiry_asked;
};

struct pay_explain_route {
    int64_t route_no;
    struct pay_str psp, psp_account, method;
    bool failover_on_not_found, is_paused;
};

struct pay_explain_attempt {
    struct pay_str attempt_id, psp, psp_account, method, status, currency, last_accepted_event_id,
        cancel_cause, failure_class, failure_code;
    int64_t route_no, result_certainty, amount_minor, version, query_count, not_found_count,
        unknown_since, submitted_at, known_at, action_no, action_expires_at, psp_expires_at,
        authorization_expires_at, settled_at, created_at, updated_at;
    int64_t authorized_minor, capture_reserved_minor, captured_minor, refund_reserved_minor,
        refunded_minor, withdrawn_minor;
    bool live;
};

struct pay_explain_reference {
    struct pay_str attempt_id, kind, reference;
    int64_t created_at;
};

/** A capture or a refund. */
struct pay_explain_action {
    struct pay_str action_id, attempt_id, status, currency, origin, provider_reference,
        failure_class, failure_code;
    int64_t amount_minor, result_certainty, version, query_count, unknown_since, give_up_at,
        settled_at, created_at, updated_at;
};

struct pay_explain_dispute {
    struct pay_str dispute_id, attempt_id, status, currency, provider_reference, reason_code;
    int64_t amount_minor, withdrawn_minor, version, evidence_due_at, result_certainty, created_at,
        updated_at;
    bool is_inquiry;
};

/** The gate row of a money call. */
struct pay_explain_send {
    struct pay_str job_id, action_id, kind, sent_by;
    int64_t not_after, sending_at, sends, last_send_at, closed_at, replay_until, finished_at;
};

struct pay_explain_history {
    struct pay_str aggregate, aggregate_id, from_status, to_status, verdict, event_type, event_id,
        published_event_id, source, reason_code, principal, provider_reference, currency,
        psp_request_id, trace_id;
    int64_t decided_at, published_sequence, evidence_level, amount_minor, http_status,
        version_before;
};

struct pay_explain_input {
    struct pay_str input_id, kind, source, psp, psp_account, transport_key, business_key,
        verification, status;
    int64_t delivery_count, occurred_at, received_at, first_seen_at, last_seen_at;
};

struct pay_explain_command {
    struct pay_str caller, command_id, type, status, reason_code;
    int64_t received_at, decided_at;
};

struct pay_explain_approval {
    struct pay_str request_id, sha256, command_type, aggregate_id, reason_code, requested_by,
        status, approved_by;
    int64_t approvals, expires_at, created_at;
};

struct pay_explain_case {
    struct pay_str case_id, kind, aggregate_id, status, resolved_by, resolution_code;
    int64_t proposed_refund_minor, version, opened_at, resolved_at;
};

struct pay_explain_outbox {
    int64_t shard, id, created_at, attempts, available_at, dead_at;
    struct pay_str topic, dead_reason;
};

struct pay_explain_deadline {
    struct pay_str kind, aggregate_id;
    int64_t due_at, lease_until, tries;
};

struct pay_explain_rows {
    const void *rows; /**< Array of the list's struct, oldest first. */
    size_t count;
    bool has_more; /**< Older rows were left out. */
};

struct pay_explain {
    char payment_id[PAY_PAYMENT_ID_SIZE];
    int64_t now_us; /**< The database's clock, at the snapshot. */
    struct pay_explain_rows lists[PAY_EXPLAIN_LIST_COUNT];
};

/** @brief Read a result whose columns are the fields of @p spec, in that order. */
PAY_MUST_CHECK enum pay_status pay_store_read_rows(const struct pay_explain_spec *spec,
                                                   const struct pay_pg_result *result,
                                                   struct pay_arena *arena,
                                                   struct pay_explain_rows *ret_rows,
                                                   struct pay_err *err);
/** @return the static table of a list. */
const struct pay_explain_spec *pay_explain_spec(enum pay_explain_list list);
/** @return true when anything at all is known: an order, or a refused command, or an orphan. */
bool pay_explain_is_known(const struct pay_explain *explain);
/** @return the order's row; NULL: there is none. */
const struct pay_explain_order *pay_explain_order(const struct pay_explain *explain);

/** @brief Read everything. @param payment_id 26 characters. */
PAY_MUST_CHECK enum pay_status pay_store_explain(struct pay_store *store, const char *payment_id,
                                                 struct pay_arena *arena,
                                                 struct pay_explain *ret_explain,
                                                 struct pay_err *err);

/** Payments found. */
struct pay_explain_found {
    char payment_ids[PAY_EXPLAIN_FOUND_MAX][PAY_PAYMENT_ID_SIZE];
    size_t count;
    bool has_more;
};
PAY_MUST_CHECK enum pay_status pay_store_explain_by_order_no(struct pay_store *store,
                                                             const char *merchant_id,
                                                             const char *merchant_order_no,
                                                             struct pay_explain_found *ret_found,
                                                             struct pay_err *err);
PAY_MUST_CHECK enum pay_status pay_store_explain_by_reference(struct pay_store *store,
                                                              const char *reference,
                                                              struct pay_explain_found *ret_found,
                                                              struct pay_err *err);

/** What a command was answered with. */
struct pay_explain_answer {
    bool is_there;
    char status[24]; /**< ACCEPTED, AWAITING_APPROVAL, REJECTED */
    char reason_code[PAY_CODE_SIZE];
};
PAY_MUST_CHECK enum pay_status pay_store_explain_answer(struct pay_store *store, const char *caller,
                                                        const char *command_id,
                                                        struct pay_explain_answer *ret_answer,
                                                        struct pay_err *err);

#endif /* PAY_STORE_EXPLAIN_H */
