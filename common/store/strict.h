/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file strict.h
 * @brief The one thing that ingest/webhook may read: does a callback fit an attempt? For accounts
 * with `strict` answers; it chooses only the answer.
 */
#ifndef PAY_STORE_STRICT_H
#define PAY_STORE_STRICT_H

#include "common/core/money.h"
#include "common/store/store.h"

struct pay_store_strict {
    bool found;
    char psp[PAY_NAME_SIZE];
    char psp_account[PAY_NAME_SIZE];
    struct pay_money amount;
};

/** @brief By the request number's own index. Bounded by the connection's statement time-out. */
PAY_MUST_CHECK enum pay_status pay_store_strict_read(struct pay_store *store,
                                                     struct pay_str request_no,
                                                     struct pay_store_strict *ret_attempt,
                                                     struct pay_err *err);

#endif /* PAY_STORE_STRICT_H */
