/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file ed25519.h
 * @brief Ed25519 (RFC 8032): sign and verify commands; keys as PEM (PKCS#8 private, SPKI public).
 *
 * Ownership: keys are the caller's until their _free(); private bytes are zeroed then.
 * Threads: a key is only read after loading and may be used by any number of threads.
 * Failure: loading answers PAY_FATAL, never with key material in the text.
 */
#ifndef PAY_CRYPTO_ED25519_H
#define PAY_CRYPTO_ED25519_H

#include "common/base/buf.h"
#include "common/base/err.h"

#define PAY_ED25519_SIGNATURE_BYTES 64
#define PAY_ED25519_PUBLIC_BYTES 32
#define PAY_ED25519_PEM_MAX 4096 /**< Bytes of a PEM file. */

struct pay_ed25519_private;
struct pay_ed25519_public;

/** @param pem text of "BEGIN PRIVATE KEY"; any other kind of key is refused. */
PAY_MUST_CHECK enum pay_status pay_ed25519_private_parse(struct pay_str pem,
                                                         struct pay_ed25519_private **ret_key,
                                                         struct pay_err *err);
PAY_MUST_CHECK enum pay_status pay_ed25519_private_load(const char *path,
                                                        struct pay_ed25519_private **ret_key,
                                                        struct pay_err *err);
/** @param pem text of "BEGIN PUBLIC KEY"; any other kind of key is refused. */
PAY_MUST_CHECK enum pay_status pay_ed25519_public_parse(struct pay_str pem,
                                                        struct pay_ed25519_public **ret_key,
                                                        struct pay_err *err);
PAY_MUST_CHECK enum pay_status
pay_ed25519_public_load(const char *path, struct pay_ed25519_public **ret_key, struct pay_err *err);
/** @return always NULL; copes with NULL. */
struct pay_ed25519_private *pay_ed25519_private_free(struct pay_ed25519_private *key);
struct pay_ed25519_public *pay_ed25519_public_free(struct pay_ed25519_public *key);

/** @brief A new pair: both PEM texts are appended. Wipe @p private_pem after use (pay_mem_wipe). */
PAY_MUST_CHECK enum pay_status
pay_ed25519_generate(struct pay_buf *private_pem, struct pay_buf *public_pem, struct pay_err *err);
/** @brief A new pair in two files; existing files are refused. The private one has mode 0600. */
PAY_MUST_CHECK enum pay_status
pay_ed25519_generate_files(const char *private_path, const char *public_path, struct pay_err *err);

void pay_ed25519_sign(const struct pay_ed25519_private *key, struct pay_bytes message,
                      uint8_t ret_signature[PAY_ED25519_SIGNATURE_BYTES]);
/** @return true only for a good signature of exactly 64 bytes; false for anything else. */
PAY_MUST_CHECK bool pay_ed25519_verify(const struct pay_ed25519_public *key,
                                       struct pay_bytes message, struct pay_bytes signature);

#endif /* PAY_CRYPTO_ED25519_H */
