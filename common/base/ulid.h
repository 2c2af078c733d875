/* SPDX-License-Identifier: Apache-2.0 */
/** @file ulid.h @brief ULIDs: 26 characters of upper-case Crockford base32, time-ordered. */
#ifndef PAY_BASE_ULID_H
#define PAY_BASE_ULID_H

#include "common/base/str.h"

#define PAY_ULID_LEN 26

/** @brief New one from the wall clock and getrandom(2). Aborts when the kernel has no randomness.
 */
void pay_ulid_new(char dst[PAY_ULID_LEN + 1]);
/** @return true for ^[0-7][0-9A-HJKMNP-TV-Z]{25}$ */
bool pay_ulid_valid(struct pay_str text);

#endif /* PAY_BASE_ULID_H */
