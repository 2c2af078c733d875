/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file money.h
 * @brief Captures, refunds, disputes and what a merchant refunded in a day; only for payments whose
 * CAS was won. All calls are queued.
 *
 * Each changed row compares its own version too. Ownership and threads: store.h.
 */
#ifndef PAY_STORE_MONEY_H
#define PAY_STORE_MONEY_H

#include "common/core/snapshot.h"
#include "common/store/store.h"

/** A capture or refund, and what its row takes from its payment. */
struct pay_store_action_row {
    struct pay_money_action action;
    const char *attempt_id;
    const char *merchant_id;
};
/** @brief Queue new captures or refunds. */
PAY_MUST_CHECK enum pay_status pay_store_action_add(struct pay_store *store,
                                                    enum pay_money_kind kind,
                                                    const struct pay_store_action_row *const *rows,
                                                    size_t count, struct pay_err *err);
/** @brief Queue changed captures or refunds. */
PAY_MUST_CHECK enum pay_status
pay_store_action_update(struct pay_store *store, enum pay_money_kind kind,
                        const struct pay_store_action_row *const *rows, size_t count,
                        struct pay_err *err);

struct pay_store_dispute_row {
    struct pay_dispute dispute;
    const char *attempt_id;
    const char *psp;
    const char *psp_account;
};
/** @brief Queue new disputes. */
PAY_MUST_CHECK enum pay_status
pay_store_dispute_add(struct pay_store *store, const struct pay_store_dispute_row *const *rows,
                      size_t count, struct pay_err *err);
/** @brief Queue changed disputes. */
PAY_MUST_CHECK enum pay_status
pay_store_dispute_update(struct pay_store *store, const struct pay_store_dispute_row *const *rows,
                         size_t count, struct pay_err *err);

/** What all payments of a batch add to one merchant's day in one currency. */
struct pay_store_day_row {
    const char *merchant_id;
    const char *currency;
    int64_t added_minor;
    int64_t limit_minor; /**< Of the day: beyond it the run fails with PAY_STORE_COUNT. */
};
/** @param rows sorted by merchant and currency, none twice: no deadlocks. */
PAY_MUST_CHECK enum pay_status pay_store_day_add(struct pay_store *store,
                                                 const struct pay_store_day_row *const *rows,
                                                 size_t count, struct pay_err *err);

#endif /* PAY_STORE_MONEY_H */
