/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file keyring_file.h
 * @brief The keyring of a running service: read again when its file changes, kept when that is bad.
 *
 * Ownership: rings are the caller's (pay_keyring_free), who puts the new one in the old one's
 * place. Threads: one at a time. Failure: PAY_FATAL as pay_keyring_load(); each state of the file
 * is tried once. May block on the disk.
 *
 *     pay_keyring_file_open -> { pay_keyring_file_next; what it returns replaces the ring }
 */
#ifndef PAY_CRYPTO_KEYRING_FILE_H
#define PAY_CRYPTO_KEYRING_FILE_H

#include "common/crypto/keyring.h"

#define PAY_KEYRING_PATH_SIZE 1024

struct pay_keyring_file {
    char path[PAY_KEYRING_PATH_SIZE];
    uint64_t state; /**< Of the file when it was read last, well or not. */
};

PAY_MUST_CHECK enum pay_status pay_keyring_file_open(struct pay_keyring_file *file,
                                                     const char *path,
                                                     struct pay_keyring **ret_ring,
                                                     struct pay_err *err);
/**
 * @brief Has the file changed since?
 * @param ring in use; the count of its seals goes on where the current key is the same.
 * @param ret_ring the new ring, the caller's; NULL: nothing new, or no file for a moment (between
 * two renames).
 * @return PAY_FATAL: it has, and is bad; @p ring stays.
 */
PAY_MUST_CHECK enum pay_status pay_keyring_file_next(struct pay_keyring_file *file,
                                                     const struct pay_keyring *ring,
                                                     struct pay_keyring **ret_ring,
                                                     struct pay_err *err);

#endif /* PAY_CRYPTO_KEYRING_FILE_H */
