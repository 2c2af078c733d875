/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file form.h
 * @brief application/x-www-form-urlencoded text, for adapters. A failed append stays in buf.failed.
 */
#ifndef PAY_PSP_FORM_H
#define PAY_PSP_FORM_H

#include "common/base/buf.h"

/** Everything but A-Z a-z 0-9 - . _ ~ as %XX; a space is %20, which form and path readers share. */
void pay_form_encode(struct pay_buf *out, struct pay_str text);
/** "name=value", with '&' before it when @p out is not empty. @p name is static and written as it
 * is. An absent value adds nothing. */
void pay_form_add(struct pay_buf *out, const char *name, struct pay_str value);
void pay_form_add_i64(struct pay_buf *out, const char *name, int64_t value);

#endif /* PAY_PSP_FORM_H */
