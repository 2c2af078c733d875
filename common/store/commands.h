/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file commands.h
 * @brief Command idempotency: (caller, command_id) with the digest of the content and the answer.
 */
#ifndef PAY_STORE_COMMANDS_H
#define PAY_STORE_COMMANDS_H

#include "common/core/types.h"
#include "common/store/store.h"

struct pay_store_command_row {
    struct pay_str caller;
    struct pay_str command_id;
    struct pay_bytes sha256; /**< 32 bytes, of the signed value. */
    const char *type;
    struct pay_str payment_id; /**< "" for a command about no payment. */
    struct pay_str merchant_id;
    struct pay_str key_id;
    const char *status; /**< ACCEPTED, AWAITING_APPROVAL, REJECTED. */
    const char *reason_code;
    struct pay_bytes answer; /**< The PaymentEvent as published. */
    int64_t received_at_us;
};
/** @brief Queue. A command that is there already (a lost race) is PAY_STORE_COUNT. */
PAY_MUST_CHECK enum pay_status
pay_store_command_add(struct pay_store *store, const struct pay_store_command_row *const *rows,
                      size_t count, struct pay_err *err);

/** A command asked about, and what is stored of it. */
struct pay_store_command_ask {
    struct pay_str caller;
    struct pay_str command_id;
    bool found;
    struct pay_bytes sha256; /**< The rest in the arena given, when found. */
    struct pay_bytes answer;
    struct pay_str payment_id;
};
/** @brief Queue the question; pay_store_command_found() after the run, with the index returned. */
PAY_MUST_CHECK enum pay_status pay_store_command_find(struct pay_store *store,
                                                      struct pay_store_command_ask *const *asks,
                                                      size_t count, size_t *ret_index,
                                                      struct pay_err *err);
void pay_store_command_found(struct pay_store *store, size_t index, struct pay_arena *arena,
                             struct pay_store_command_ask *const *asks, size_t count);

/** PAUSE_ROUTE and RESUME_ROUTE. method "": every method of the account. */
struct pay_store_pause_row {
    struct pay_str psp;
    struct pay_str psp_account;
    struct pay_str method;
    struct pay_str principal;
    struct pay_str reason_code;
    bool pause; /**< false: resume. */
};
/** @brief Queue; what is so already stays so. */
PAY_MUST_CHECK enum pay_status pay_store_route_pause(struct pay_store *store,
                                                     const struct pay_store_pause_row *row,
                                                     struct pay_err *err);

#endif /* PAY_STORE_COMMANDS_H */
