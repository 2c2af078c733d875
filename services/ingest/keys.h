/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file keys.h
 * @brief The evidence keyring as a running service uses it: re-read when its file changes.
 *
 * Threads: any. Failure: a bad new file keeps the old ring; sealing fails only when memory is out
 * or the key is used up.
 */
#ifndef PAY_INGEST_KEYS_H
#define PAY_INGEST_KEYS_H

#include "common/base/arena.h"
#include "common/contracts/payment_input.h"
#include "common/crypto/keyring.h"

struct pay_keys;

PAY_MUST_CHECK enum pay_status pay_keys_open(const char *path, struct pay_keys **ret_keys,
                                             struct pay_err *err);
struct pay_keys *pay_keys_close(struct pay_keys *keys);
/** @param ret_renewed the file had changed, and its ring is in use now.
 * @return PAY_FATAL: the new file is bad, the old ring stays. */
PAY_MUST_CHECK enum pay_status pay_keys_refresh(struct pay_keys *keys, bool *ret_renewed,
                                                struct pay_err *err);

/** @brief Seal for a record: everything returned lives in @p arena. @param bound_to additional
 * data. */
PAY_MUST_CHECK enum pay_status pay_keys_seal(struct pay_keys *keys, struct pay_str bound_to,
                                             struct pay_bytes plain, struct pay_arena *arena,
                                             struct pay_sealed *ret_sealed, struct pay_err *err);
/** @brief Open into @p arena. @return PAY_REJECT: not sealed so. */
PAY_MUST_CHECK enum pay_status
pay_keys_open_sealed(struct pay_keys *keys, const struct pay_sealed *sealed,
                     struct pay_arena *arena, struct pay_bytes *ret_plain, struct pay_err *err);
/**
 * @brief Raw bytes as the input's evidence: additional data "<psp>/<psp_account>/<transport_key>".
 * @param input kind, transport key and the event's or refusal's PSP and account are set.
 */
PAY_MUST_CHECK enum pay_status pay_keys_seal_evidence(struct pay_keys *keys,
                                                      struct pay_payment_input *input,
                                                      struct pay_bytes body,
                                                      struct pay_str verified_by,
                                                      struct pay_arena *arena, struct pay_err *err);

#endif /* PAY_INGEST_KEYS_H */
