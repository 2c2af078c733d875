/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file money.h
 * @brief Minor units as int64_t, every ISO 4217 code with its exponent, checked arithmetic. No
 * floats.
 */
#ifndef PAY_CORE_MONEY_H
#define PAY_CORE_MONEY_H

#include "common/core/types.h"

struct pay_money {
    int64_t amount_minor;
    char currency[PAY_CURRENCY_SIZE]; /**< ISO 4217, upper case; "" = none. */
};

/** @return exponent 0, 2, 3 or 4 of an active ISO 4217 code with minor units; -1 when there is
 * none. */
int pay_money_exponent(struct pay_str currency);
bool pay_money_same(struct pay_money a, struct pay_money b);
/** @return false on overflow or a negative result of a sum of parts. */
bool pay_money_add(int64_t a, int64_t b, int64_t *ret_sum);
bool pay_money_sub(int64_t a, int64_t b, int64_t *ret_difference);
/** @brief Exact change of scale by powers of ten: refuses overflow and anything with a remainder.
 */
bool pay_money_rescale(int64_t amount, int from_exponent, int to_exponent, int64_t *ret_amount);
/** @brief "12.30" with exactly at most @p exponent decimals to minor units. Digits and one point
 * only. */
bool pay_money_parse_decimal(struct pay_str text, int exponent, int64_t *ret_minor);
/** @brief "12.30" (exponent 2), "12" (0); @p dst has 32 bytes. */
void pay_money_format(int64_t amount_minor, int exponent, char dst[32]);

#endif /* PAY_CORE_MONEY_H */
