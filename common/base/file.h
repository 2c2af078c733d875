/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file file.h
 * @brief Small whole files: keys, secrets, accounts. Reads are bounded, writes are private and
 * atomic.
 *
 * Threads: any. Failure: PAY_FATAL with the path in the text, never the content. May block on the
 * disk.
 */
#ifndef PAY_BASE_FILE_H
#define PAY_BASE_FILE_H

#include "common/base/buf.h"
#include "common/base/err.h"

/**
 * @brief Read a file into memory of the caller; nothing of it stays elsewhere (fit for secrets).
 * @param dst of @p cap bytes. @param ret_len bytes read.
 * @return PAY_FATAL when it cannot be read or is longer than @p cap (dst may then hold a part of
 * it).
 */
PAY_MUST_CHECK enum pay_status pay_file_read(const char *path, void *dst, size_t cap,
                                             size_t *ret_len, struct pay_err *err);
/** @brief Append a whole file to @p out, whose max is the bound. */
PAY_MUST_CHECK enum pay_status pay_file_read_buf(const char *path, struct pay_buf *out,
                                                 struct pay_err *err);
/**
 * @brief Write a file that only its owner may read (0600): beside it first, then renamed over it.
 * @param is_new true: refuse when the file exists (a key must not be overwritten by a slip).
 */
PAY_MUST_CHECK enum pay_status pay_file_write(const char *path, struct pay_bytes content,
                                              bool is_new, struct pay_err *err);
/** @return a hash of the file's device, inode, size and time, which a change changes; 0: no file.
 * Take it before reading, so that a change meanwhile is seen. */
uint64_t pay_file_state(const char *path);

#endif /* PAY_BASE_FILE_H */
