/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file hmac.h
 * @brief HMAC-SHA256, and the only comparison that a MAC may be compared with.
 *
 * Threads: any. Failure: none; an empty key is a bug (secret.h refuses empty secrets at start-up).
 */
#ifndef PAY_CRYPTO_HMAC_H
#define PAY_CRYPTO_HMAC_H

#include "common/base/attr.h"
#include "common/base/str.h"

#define PAY_HMAC_BYTES 32

void pay_hmac_sha256(struct pay_bytes key, struct pay_bytes data, uint8_t ret_mac[PAY_HMAC_BYTES]);
/** @brief Over the parts one behind the other, e.g. "<timestamp>", ".", "<body>" without a copy. */
void pay_hmac_sha256_parts(struct pay_bytes key, const struct pay_bytes *parts, size_t count,
                           uint8_t ret_mac[PAY_HMAC_BYTES]);
/**
 * @brief Constant time in the content; lengths may differ (then false at once: a length is no
 * secret). Absent equals nothing.
 */
PAY_MUST_CHECK bool pay_mac_eq(struct pay_bytes a, struct pay_bytes b);

#endif /* PAY_CRYPTO_HMAC_H */
