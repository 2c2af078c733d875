/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file sha256.h
 * @brief SHA-256 in one call or piece by piece. Threads: any. Failure: none (a bug aborts).
 */
#ifndef PAY_CRYPTO_SHA256_H
#define PAY_CRYPTO_SHA256_H

#include "common/base/str.h"

#define PAY_SHA256_BYTES 32
#define PAY_SHA256_HEX (2 * PAY_SHA256_BYTES + 1) /**< Array size for the hex text. */

void pay_sha256(struct pay_bytes data, uint8_t ret_digest[PAY_SHA256_BYTES]);
/** @brief Over the parts one behind the other: the caller separates them where that matters. */
void pay_sha256_parts(const struct pay_bytes *parts, size_t count,
                      uint8_t ret_digest[PAY_SHA256_BYTES]);
/** @brief Lower-case hex. */
void pay_sha256_hex(struct pay_bytes data, char ret_hex[PAY_SHA256_HEX]);

#endif /* PAY_CRYPTO_SHA256_H */
