/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file order.h
 * @brief The payment's row: its version is the lock of the whole payment.
 *
 * Ownership and threads: store.h. Failure: see each call.
 */
#ifndef PAY_STORE_ORDER_H
#define PAY_STORE_ORDER_H

#include "common/core/snapshot.h"
#include "common/store/store.h"

/** A payment that is created. */
struct pay_store_new_order {
    struct pay_order order;
    struct pay_str description; /**< Absent: none. */
    struct pay_str traceparent; /**< Absent: none. */
};

/**
 * Step 4 of the processor's transaction. Every array is sorted by payment id. Gates are closed
 * after it, and only those of payments that won: pay_store_gate_close().
 */
struct pay_store_cas {
    const struct pay_store_new_order *const *created;
    size_t created_count;
    const struct pay_order *const *updated;
    size_t updated_count;
};

/**
 * @brief Insert what is new, compare and set what exists; runs at once.
 * @param ret_created, ret_updated one per row: false = lost, nothing of that payment was written.
 */
PAY_MUST_CHECK enum pay_status pay_store_order_cas(struct pay_store *store,
                                                   const struct pay_store_cas *cas,
                                                   bool ret_created[], bool ret_updated[],
                                                   struct pay_err *err);

/** One route of a payment, to be inserted. */
struct pay_store_route_row {
    char payment_id[PAY_PAYMENT_ID_SIZE];
    int route_no;
    const struct pay_route *route; /**< Borrowed. */
    struct pay_bytes params;       /**< Sealed; absent: none. */
    struct pay_str params_key_id;
    struct pay_str params_bound_to;
    /* Filled by the call from route. */
    struct pay_str psp, psp_account, method;
    bool failover_on_not_found;
};
/** @brief Queue the insert of routes. */
PAY_MUST_CHECK enum pay_status pay_store_route_add(struct pay_store *store,
                                                   struct pay_store_route_row *const *rows,
                                                   size_t count, struct pay_err *err);

/** @brief Queue newer parameters of routes that are there already (route is not used). */
PAY_MUST_CHECK enum pay_status pay_store_params_add(struct pay_store *store,
                                                    const struct pay_store_route_row *const *rows,
                                                    size_t count, struct pay_err *err);

#endif /* PAY_STORE_ORDER_H */
