/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file history.h
 * @brief Append-only rows: what was decided and why, and what operators did. All calls are queued.
 */
#ifndef PAY_STORE_HISTORY_H
#define PAY_STORE_HISTORY_H

#include "common/core/types.h"
#include "common/store/store.h"

/** One row of payment_state_history; absent text is NULL. Texts are borrowed until the flush. */
struct pay_store_history_row {
    struct pay_str payment_id; /**< "" for an event that is no payment of ours. */
    enum pay_aggregate aggregate;
    struct pay_str aggregate_id;
    const char *from_status;
    const char *to_status;
    enum pay_verdict verdict;
    const char *event_name;
    struct pay_str event_id;           /**< input_id, or caller/command_id. */
    struct pay_str published_event_id; /**< With a sequence only. */
    int64_t published_sequence;        /**< 0: none. */
    enum pay_source source;
    enum pay_evidence evidence;
    const char *reason_code;
    struct pay_str principal; /**< Who commanded; absent: nobody. */
    struct pay_str provider_reference;
    int64_t amount_minor; /**< 0: none. */
    struct pay_str currency;
    int64_t http_status; /**< Of a money call; 0: none. */
    struct pay_str psp_request_id;
    struct pay_str trace_id;
    int64_t version_before;
};
PAY_MUST_CHECK enum pay_status
pay_store_history_add(struct pay_store *store, const struct pay_store_history_row *const *rows,
                      size_t count, struct pay_err *err);

struct pay_store_audit_row {
    struct pay_str who;
    const char *what;
    struct pay_str subject;
    struct pay_str reason;
    const char *from_where;
};
PAY_MUST_CHECK enum pay_status pay_store_audit_add(struct pay_store *store,
                                                   const struct pay_store_audit_row *const *rows,
                                                   size_t count, struct pay_err *err);

#endif /* PAY_STORE_HISTORY_H */
