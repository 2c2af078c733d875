/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cases.h
 * @brief Cases for people: one open case per payment and kind. All calls are queued.
 */
#ifndef PAY_STORE_CASES_H
#define PAY_STORE_CASES_H

#include "common/core/types.h"
#include "common/store/store.h"

#define PAY_STORE_CASE_EVIDENCE_MAX 100 /**< Entries kept of one case; later ones only count. */

struct pay_store_case_row {
    struct pay_str case_id;
    struct pay_str payment_id; /**< Absent: evidence of no payment of ours. */
    enum pay_case_kind kind;
    struct pay_str aggregate_id;
    int number;
    int64_t proposed_refund_minor; /**< 0: none. */
    struct pay_str input_id;       /**< What opened it, or added evidence. */
    const char *event_name;
    const char *reason_code;
    bool open;                      /**< UPDATE: false resolves it. */
    struct pay_str resolved_by;     /**< Principal; with open false. */
    struct pay_str resolution_code; /**< With open false. */
};
/** @brief Queue new open cases. */
PAY_MUST_CHECK enum pay_status pay_store_case_add(struct pay_store *store,
                                                  const struct pay_store_case_row *const *rows,
                                                  size_t count, struct pay_err *err);
/** @brief Queue cases of no payment (poison, orphans); one that is there already stays. */
PAY_MUST_CHECK enum pay_status
pay_store_case_add_loose(struct pay_store *store, const struct pay_store_case_row *const *rows,
                         size_t count, struct pay_err *err);
/** A case of no payment that somebody wants to close. */
struct pay_store_case_ask {
    struct pay_str case_id;
    bool found; /**< Answers. */
    bool is_open;
    int64_t version;
};
/** @brief Queue; locks the rows found. pay_store_case_found_loose() after the run. */
PAY_MUST_CHECK enum pay_status pay_store_case_find_loose(struct pay_store *store,
                                                         struct pay_store_case_ask *const *asks,
                                                         size_t count, size_t *ret_index,
                                                         struct pay_err *err);
void pay_store_case_found_loose(struct pay_store *store, size_t index,
                                struct pay_store_case_ask *const *asks, size_t count);
/** @brief Queue the end of cases of no payment: id, resolved_by and code. Who is not open stays. */
PAY_MUST_CHECK enum pay_status
pay_store_case_close_loose(struct pay_store *store, const struct pay_store_case_row *const *rows,
                           size_t count, struct pay_err *err);
/** @brief Queue evidence for open cases, or their resolution; raises their version. */
PAY_MUST_CHECK enum pay_status pay_store_case_update(struct pay_store *store,
                                                     const struct pay_store_case_row *const *rows,
                                                     size_t count, struct pay_err *err);

#endif /* PAY_STORE_CASES_H */
