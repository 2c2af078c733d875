/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file review.h
 * @brief What waits for people: open cases, and requests that wait for approval. Read only, with
 * the rights of payfact_operator. Ownership: rows belong to the arena given. Threads: store.h.
 */
#ifndef PAY_STORE_REVIEW_H
#define PAY_STORE_REVIEW_H

#include "common/store/explain.h"

#define PAY_STORE_REVIEW_MAX PAY_EXPLAIN_ROWS_MAX /**< The oldest ones. */

struct pay_review_case {
    struct pay_str case_id, kind, payment_id, aggregate_id, merchant_id, currency;
    int64_t version, proposed_refund_minor, evidence_count, opened_at;
};

struct pay_review_request {
    struct pay_str request_id, sha256, command_type, payment_id, merchant_id, aggregate_id,
        reason_code, requested_by, approved_by, attachments;
    int64_t expected_version, approvals, expires_at, created_at;
};

const struct pay_explain_spec *pay_review_case_spec(void);
const struct pay_explain_spec *pay_review_request_spec(void);

/** @brief Open cases, oldest first. */
PAY_MUST_CHECK enum pay_status pay_store_review_cases(struct pay_store *store,
                                                      struct pay_arena *arena,
                                                      struct pay_explain_rows *ret_rows,
                                                      struct pay_err *err);
/** @brief Requests that are pending, the next to expire first. */
PAY_MUST_CHECK enum pay_status pay_store_review_requests(struct pay_store *store,
                                                         struct pay_arena *arena,
                                                         struct pay_explain_rows *ret_rows,
                                                         struct pay_err *err);

#endif /* PAY_STORE_REVIEW_H */
