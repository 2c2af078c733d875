/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file callback.h
 * @brief A callback of a PSP, however it came (HTTP or the notifications topic): checked, parsed,
 *        and made into inputs. One message per item; their keys differ.
 *
 * Ownership: results live in the arena. Threads: one arena and codec each. Failure: see each call.
 */
#ifndef PAY_INGEST_CALLBACK_H
#define PAY_INGEST_CALLBACK_H

#include "services/ingest/ingest.h"

struct pay_callback {
    const struct pay_account *account;
    struct pay_psp_notification raw;
    int64_t received_at_us;     /**< The time window is checked against this. */
    struct pay_str traceparent; /**< Absent: none. */
    enum pay_psp_reason reason; /**< Set by pay_callback_read(). */
    struct pay_str verified_by; /**< Id of the key. */
    struct pay_psp_items items;
};

/**
 * @brief Verify on the raw bytes, then parse.
 * @return PAY_OK; PAY_REJECT: callback->reason says why, nothing may be enqueued; PAY_RETRY:
 * memory.
 */
PAY_MUST_CHECK enum pay_status pay_callback_read(struct pay_callback *callback,
                                                 struct pay_arena *arena, struct pay_err *err);
/** @brief The PaymentInput of one item, evidence sealed, encoded into desk->value. */
PAY_MUST_CHECK enum pay_status pay_callback_input(struct pay_desk *desk,
                                                  const struct pay_callback *callback, size_t item,
                                                  struct pay_err *err);

#endif /* PAY_INGEST_CALLBACK_H */
