/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file aead.h
 * @brief AES-256-GCM in the one form that is stored: nonce (12) || ciphertext || tag (16).
 *
 * Callers want keyring.h, which counts messages per key. Threads: any.
 */
#ifndef PAY_CRYPTO_AEAD_H
#define PAY_CRYPTO_AEAD_H

#include "common/base/buf.h"
#include "common/base/err.h"

#define PAY_AEAD_KEY_BYTES 32
#define PAY_AEAD_NONCE_BYTES 12
#define PAY_AEAD_TAG_BYTES 16
#define PAY_AEAD_OVERHEAD (PAY_AEAD_NONCE_BYTES + PAY_AEAD_TAG_BYTES)
#define PAY_AEAD_PLAIN_MAX \
    ((size_t)64 * 1024 * 1024) /**< Bytes; far below what one GCM call may take. */

/**
 * @brief Seal with a fresh random nonce and append to @p out.
 * @param aad additional data: not stored, must be the same when opened. May be empty.
 * @return PAY_REJECT when too long or @p out is at its max. Output is appended on PAY_OK only.
 */
PAY_MUST_CHECK enum pay_status pay_aead_seal(const uint8_t key[PAY_AEAD_KEY_BYTES],
                                             struct pay_bytes aad, struct pay_bytes plain,
                                             struct pay_buf *out, struct pay_err *err);
/**
 * @brief Open what pay_aead_seal() made and append the plain text to @p out.
 * @return PAY_REJECT when anything of key, additional data, nonce, text or tag differs, or @p out
 * is at its max. Nothing unauthenticated is ever left in @p out.
 */
PAY_MUST_CHECK enum pay_status pay_aead_open(const uint8_t key[PAY_AEAD_KEY_BYTES],
                                             struct pay_bytes aad, struct pay_bytes sealed,
                                             struct pay_buf *out, struct pay_err *err);

#endif /* PAY_CRYPTO_AEAD_H */
