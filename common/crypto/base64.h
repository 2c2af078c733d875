/* SPDX-License-Identifier: Apache-2.0 */
/** @file base64.h @brief Base64 of RFC 4648 section 4, strict: padding required, no white space. */
#ifndef PAY_CRYPTO_BASE64_H
#define PAY_CRYPTO_BASE64_H

#include "common/base/attr.h"
#include "common/base/buf.h"

/** @brief Append the text of @p bytes. */
void pay_base64_encode(struct pay_bytes bytes, struct pay_buf *out);
/**
 * @brief Append the bytes of @p text.
 * @return false, and nothing appended: wrong length or character, bits left over, or @p out at its
 * max.
 */
PAY_MUST_CHECK bool pay_base64_decode(struct pay_str text, struct pay_buf *out);

#endif /* PAY_CRYPTO_BASE64_H */
