/* SPDX-License-Identifier: Apache-2.0 */
/** @file check.h @brief Internal: the bounds of one member, the same when reading and writing. */
#ifndef PAY_CONTRACTS_CHECK_H
#define PAY_CONTRACTS_CHECK_H

#include "common/base/err.h"
#include "common/base/str.h"
#include "common/contracts/binding.h"

/** What errors say beside the field's name. */
struct pay_check {
    const char *op; /**< Static: "decode PaymentInput" ... */
    struct pay_err *err;
};

/** @return PAY_REJECT with MALFORMED; @p bind NULL: a field that the struct does not have. */
enum pay_status pay_check_malformed(const struct pay_check *check, const struct pay_bind *bind,
                                    const char *why);
enum pay_status pay_check_too_large(const struct pay_check *check, const struct pay_bind *bind);
/** Length, UTF-8, no NUL, the field's rule (PAY_RULE_TRACE apart: pay_check_drops()). */
PAY_MUST_CHECK enum pay_status pay_check_text(const struct pay_check *check,
                                              const struct pay_bind *bind, struct pay_str text);
PAY_MUST_CHECK enum pay_status pay_check_bytes(const struct pay_check *check,
                                               const struct pay_bind *bind, size_t len);
PAY_MUST_CHECK enum pay_status pay_check_number(const struct pay_check *check,
                                                const struct pay_bind *bind, int64_t value);
/** @return true for text that is left out rather than refused: a wrong traceparent. */
bool pay_check_drops(const struct pay_bind *bind, struct pay_str text);

#endif /* PAY_CONTRACTS_CHECK_H */
