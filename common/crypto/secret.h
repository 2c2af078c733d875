/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file secret.h
 * @brief A secret of up to PAY_SECRET_MAX bytes in a type that no log call and no printf takes.
 *
 * White space behind it is trimmed (editors add a newline); an empty secret is refused, because a
 * MAC with an empty key accepts every forger (S7). Ownership: the caller's until pay_secret_free(),
 * which zeroes it. Threads: only read after loading.
 */
#ifndef PAY_CRYPTO_SECRET_H
#define PAY_CRYPTO_SECRET_H

#include "common/base/err.h"
#include "common/base/str.h"

#define PAY_SECRET_MAX 4096 /**< Bytes, trimmed. */

struct pay_secret;

/** @return PAY_FATAL: unreadable, empty, too long; the text names the path only. */
PAY_MUST_CHECK enum pay_status pay_secret_load(const char *path, struct pay_secret **ret_secret,
                                               struct pay_err *err);
/** @brief From memory, by the same rules. @p name stands for the path in messages. */
PAY_MUST_CHECK enum pay_status pay_secret_of(const char *name, struct pay_bytes bytes,
                                             struct pay_secret **ret_secret, struct pay_err *err);
/** Borrowed, for HMAC calls and request headers. */
struct pay_bytes pay_secret_bytes(const struct pay_secret *secret);
/** @return always NULL; copes with NULL. */
struct pay_secret *pay_secret_free(struct pay_secret *secret);

#endif /* PAY_CRYPTO_SECRET_H */
