/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file stripe.h
 * @brief Stripe: PaymentIntents, signed webhooks, Idempotency-Key.
 *
 * Account: credentials `secret_key`; settings `api_version` (date of the Stripe-Version that we
 * call with; callbacks may come in another: only long-lived fields are read), `connect_account`
 * (acct_..., optional); callback keys are endpoint secrets (whsec_...).
 *
 * Our number goes out as metadata[order_id] (the attempt's) and metadata[refund_ref] (the
 * refund's). One intent is one attempt: its id (pi_...) is the provider_payment_id of every event;
 * charges are bound only from the success on, because an intent may try several.
 */
#ifndef PAY_PSP_STRIPE_H
#define PAY_PSP_STRIPE_H

#include "common/psp/adapter.h"

extern const struct pay_psp_adapter pay_psp_stripe;

/**
 * @brief The signature rule by itself, on raw keys (the test vectors need keys as they are).
 * @param header value of Stripe-Signature. @param ret_index which key verified.
 */
enum pay_psp_reason pay_stripe_check_signature(struct pay_str header, struct pay_bytes body,
                                               const struct pay_bytes *keys, size_t key_count,
                                               int64_t now_us, size_t *ret_index);

#endif /* PAY_PSP_STRIPE_H */
