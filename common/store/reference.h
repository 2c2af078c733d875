/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file reference.h
 * @brief Every name that a PSP has for something of an attempt: bound once, never moved.
 */
#ifndef PAY_STORE_REFERENCE_H
#define PAY_STORE_REFERENCE_H

#include "common/core/types.h"
#include "common/store/store.h"

struct pay_store_reference_row {
    struct pay_str psp;
    struct pay_str psp_account;
    enum pay_reference_kind kind;
    struct pay_str reference;
    struct pay_str attempt_id;
};
/** @brief Queue. A name that is bound meanwhile (a lost race) is PAY_STORE_COUNT. */
PAY_MUST_CHECK enum pay_status
pay_store_reference_add(struct pay_store *store, const struct pay_store_reference_row *const *rows,
                        size_t count, struct pay_err *err);

/** A name asked about, of any kind, and the attempt it is bound to. */
struct pay_store_reference_ask {
    struct pay_str psp;
    struct pay_str psp_account;
    struct pay_str reference;
    char attempt_id[PAY_ACTION_ID_SIZE]; /**< "": bound to none. */
    bool ambiguous;                      /**< Bound to several (by kind): resolves nothing. */
};
/** @brief Queue the question; pay_store_reference_found() after the run. */
PAY_MUST_CHECK enum pay_status pay_store_reference_find(struct pay_store *store,
                                                        struct pay_store_reference_ask *const *asks,
                                                        size_t count, size_t *ret_index,
                                                        struct pay_err *err);
void pay_store_reference_found(struct pay_store *store, size_t index,
                               struct pay_store_reference_ask *const *asks, size_t count);

#endif /* PAY_STORE_REFERENCE_H */
