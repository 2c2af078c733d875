/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file attempt.h
 * @brief Attempts and their amounts; only for payments whose CAS was won. All calls are queued.
 */
#ifndef PAY_STORE_ATTEMPT_H
#define PAY_STORE_ATTEMPT_H

#include "common/core/snapshot.h"
#include "common/store/store.h"

/** @brief Queue new attempts with their amounts. */
PAY_MUST_CHECK enum pay_status pay_store_attempt_add(struct pay_store *store,
                                                     const struct pay_attempt *const *rows,
                                                     size_t count, struct pay_err *err);
/** @brief Queue changed attempts; each compares its own version too. */
PAY_MUST_CHECK enum pay_status pay_store_attempt_update(struct pay_store *store,
                                                        const struct pay_attempt *const *rows,
                                                        size_t count, struct pay_err *err);
/** @brief Queue changed amounts. */
PAY_MUST_CHECK enum pay_status pay_store_amounts_update(struct pay_store *store,
                                                        const struct pay_attempt *const *rows,
                                                        size_t count, struct pay_err *err);

/** What the customer's browser brought back, sealed. */
struct pay_store_redirect_row {
    struct pay_str attempt_id;
    int action_no;
    struct pay_bytes data;
    struct pay_str key_id;
    struct pay_str bound_to;
};
/** @brief Queue; the latest of an attempt is the one that a CONFIRM takes. */
PAY_MUST_CHECK enum pay_status
pay_store_redirect_add(struct pay_store *store, const struct pay_store_redirect_row *const *rows,
                       size_t count, struct pay_err *err);

#endif /* PAY_STORE_ATTEMPT_H */
