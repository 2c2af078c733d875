/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file buf.h
 * @brief A growing byte buffer with a maximum. A failed append is remembered: check once at the
 * end.
 *
 * Ownership: the buffer owns its bytes until pay_buf_free(). Always NUL-terminated behind len.
 */
#ifndef PAY_BASE_BUF_H
#define PAY_BASE_BUF_H

#include "common/base/attr.h"
#include "common/base/str.h"

struct pay_buf {
    uint8_t *data;
    size_t len;
    size_t cap;
    size_t max;   /**< Bytes; an append beyond it sets failed and changes nothing. */
    bool failed;  /**< Sticky: out of memory or over max. */
    bool starved; /**< Failed for want of memory: the same may fit at another time. */
};

struct pay_buf pay_buf_make(size_t max);
void pay_buf_free(struct pay_buf *buf);
/** Empty it and clear failed and starved; memory is kept. */
void pay_buf_reset(struct pay_buf *buf);
void pay_buf_add(struct pay_buf *buf, const void *data, size_t len);
void pay_buf_add_c(struct pay_buf *buf, const char *text);
void pay_buf_add_str(struct pay_buf *buf, struct pay_str text);
void pay_buf_add_char(struct pay_buf *buf, char c);
void pay_buf_printf(struct pay_buf *buf, const char *fmt, ...) PAY_PRINTF(2, 3);
/** JSON string with quotes; control characters escaped, a byte that is no UTF-8 as \\ufffd; absent:
 * null. */
void pay_buf_add_json_str(struct pay_buf *buf, struct pay_str text);
/** Append @p len bytes to be filled by the caller. @return the first, borrowed until the next call;
 * NULL when failed. */
PAY_MUST_CHECK uint8_t *pay_buf_extend(struct pay_buf *buf, size_t len);
/** Back to a former, shorter length; failed stays. */
void pay_buf_cut(struct pay_buf *buf, size_t len);
struct pay_str pay_buf_str(const struct pay_buf *buf);
struct pay_bytes pay_buf_bytes(const struct pay_buf *buf);

#endif /* PAY_BASE_BUF_H */
