/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file keyring.h
 * @brief The evidence keyring: data keys by id, several valid at once, one of them current for
 * sealing.
 *
 * File, format "payfact-keyring-1" (plain data keys; protect the file as a secret):
 *
 *     payfact-keyring-1
 *     # a comment
 *     current 2026-11a 64-hex-digits
 *     key     2026-10a 64-hex-digits
 *
 * The first line names the format, so that an envelope (data keys wrapped by a key-encryption key)
 * can become "payfact-keyring-2" without a guess; an unknown format is refused. Rotation: add a key
 * line everywhere, then move "current", and keep the old key as long as anything sealed with it is
 * kept.
 *
 * GCM with random nonces must stop well before 2^31 messages per key: from PAY_KEYRING_SEALS_WARN
 * on pay_keyring_wants_rotation() is true, at PAY_KEYRING_SEALS_MAX sealing is refused. The count
 * is of this ring in this process: N processes that share a key divide both by N with
 * pay_keyring_limit().
 *
 * Ownership: the ring is the caller's until pay_keyring_free(), which zeroes it. Threads: seal and
 * open from any thread at once. Failure: see each call; no text ever holds key material.
 */
#ifndef PAY_CRYPTO_KEYRING_H
#define PAY_CRYPTO_KEYRING_H

#include "common/base/buf.h"
#include "common/base/err.h"

#define PAY_KEYRING_KEYS_MAX 64
#define PAY_KEYRING_ID_MAX 32      /**< Bytes of an id ([A-Za-z0-9._-]), terminator included. */
#define PAY_KEYRING_FILE_MAX 16384 /**< Bytes. */
#define PAY_KEYRING_SEALS_WARN (UINT64_C(1) << 28)
#define PAY_KEYRING_SEALS_MAX (UINT64_C(1) << 30)

struct pay_keyring;

/** @return PAY_FATAL: unreadable, unknown format, bad line (by number), no or two current, twice an
 * id. */
PAY_MUST_CHECK enum pay_status pay_keyring_load(const char *path, struct pay_keyring **ret_ring,
                                                struct pay_err *err);
PAY_MUST_CHECK enum pay_status pay_keyring_parse(struct pay_str text, struct pay_keyring **ret_ring,
                                                 struct pay_err *err);
/** Zeroes the keys. @return always NULL; copes with NULL. */
struct pay_keyring *pay_keyring_free(struct pay_keyring *ring);

/**
 * @brief Seal with the current key, append nonce || ciphertext || tag to @p out.
 * @param ret_key_id text owned by the ring, to be stored beside the ciphertext.
 * @return PAY_FATAL at PAY_KEYRING_SEALS_MAX, else as pay_aead_seal().
 */
PAY_MUST_CHECK enum pay_status pay_keyring_seal(struct pay_keyring *ring, struct pay_bytes aad,
                                                struct pay_bytes plain, struct pay_str *ret_key_id,
                                                struct pay_buf *out, struct pay_err *err);
/** @return PAY_REJECT: the ring has no such key, or as pay_aead_open(). */
PAY_MUST_CHECK enum pay_status pay_keyring_open(const struct pay_keyring *ring,
                                                struct pay_str key_id, struct pay_bytes aad,
                                                struct pay_bytes sealed, struct pay_buf *out,
                                                struct pay_err *err);
/** @return id of the current key, owned by the ring. */
struct pay_str pay_keyring_current(const struct pay_keyring *ring);
/** @brief Lower both limits (never raise them): 0 < @p warn <= @p max <= PAY_KEYRING_SEALS_MAX. */
void pay_keyring_limit(struct pay_keyring *ring, uint64_t warn, uint64_t max);
/** @brief @p next takes @p old's place: where both seal with one key, its count of seals goes on.
 */
void pay_keyring_continue(struct pay_keyring *next, const struct pay_keyring *old);
/** Messages sealed by this process. */
uint64_t pay_keyring_seals(const struct pay_keyring *ring);
/** True from PAY_KEYRING_SEALS_WARN on: alarm, and rotate. */
bool pay_keyring_wants_rotation(const struct pay_keyring *ring);

/**
 * @brief Text of a ring with a new random key as current; keys of @p old (may be NULL) stay valid.
 * @param id of the new key; refused when it is no id or @p old has it. Wipe @p out after use.
 */
PAY_MUST_CHECK enum pay_status pay_keyring_generate(const struct pay_keyring *old, const char *id,
                                                    struct pay_buf *out, struct pay_err *err);

#endif /* PAY_CRYPTO_KEYRING_H */
