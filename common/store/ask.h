/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file ask.h
 * @brief What recovery has to know of attempts, captures and refunds to ask their PSPs about them,
 * and which payments have a dead event. Reads only.
 */
#ifndef PAY_STORE_ASK_H
#define PAY_STORE_ASK_H

#include "common/core/event.h"
#include "common/store/store.h"

#define PAY_STORE_ASK_REFERENCES_MAX 16 /**< More are left out; the adapter needs one. */

struct pay_store_ask {
    char attempt_id[PAY_ACTION_ID_SIZE];
    char action_id[PAY_ACTION_ID_SIZE]; /**< The capture or refund; "": the attempt itself. */
    int64_t action_amount_minor;
    char payment_id[PAY_PAYMENT_ID_SIZE];
    char merchant_id[PAY_MERCHANT_SIZE];
    char psp[PAY_NAME_SIZE];
    char psp_account[PAY_NAME_SIZE];
    char method[PAY_NAME_SIZE];
    enum pay_attempt_status status;
    enum pay_capture_mode capture_mode;
    struct pay_money amount;
    /* Of the action, if it is one; else of the attempt. */
    int64_t unknown_since_us; /**< 0: not UNKNOWN. */
    int64_t submitted_at_us;  /**< 0: not said. */
    int64_t created_at_us;
    char about_job_id[PAY_JOB_ID_SIZE]; /**< The latest money job that was sent; "": none. */
    struct pay_str provider_reference; /**< The main one (intent or order), in the arena; absent. */
    struct pay_reference references[PAY_STORE_ASK_REFERENCES_MAX];
    size_t reference_count;
};

/**
 * @brief Load attempts, captures and refunds by id.
 * @param ret_rows one per id in the order given; what is not there has attempt_id "".
 */
PAY_MUST_CHECK enum pay_status
pay_store_ask_load(struct pay_store *store, const struct pay_str *ids, size_t count,
                   struct pay_arena *arena, struct pay_store_ask *ret_rows, struct pay_err *err);

/** UNKNOWN attempts of one PSP account. */
struct pay_store_unknown {
    char psp[PAY_NAME_SIZE];
    char psp_account[PAY_NAME_SIZE];
    int64_t count;
    int64_t oldest_us; /**< Age of the oldest. */
};
/** @param ret_rows array of @p max; accounts beyond it are left out. By the MANUAL deadline rows.
 */
PAY_MUST_CHECK enum pay_status pay_store_ask_unknown(struct pay_store *store, size_t max,
                                                     struct pay_store_unknown *ret_rows,
                                                     size_t *ret_count, struct pay_err *err);

/** A payment whose case DEAD_EVENT is not as the outbox is. */
struct pay_store_dead_subject {
    char payment_id[PAY_PAYMENT_ID_SIZE];
    int64_t since_us; /**< When its row died; where none is dead any more, now. */
};
/**
 * @brief Payments of which the outbox holds a dead row and no case tells, and those whose case is
 * open although no row is dead any more.
 * @param ret_rows array of @p max; more are found the next time.
 */
PAY_MUST_CHECK enum pay_status pay_store_ask_dead(struct pay_store *store, size_t max,
                                                  struct pay_store_dead_subject *ret_rows,
                                                  size_t *ret_count, struct pay_err *err);

#endif /* PAY_STORE_ASK_H */
