/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file amount.h
 * @brief Exact change between our minor units (ISO 4217) and a PSP's own integers, by its table.
 *
 * What does not convert exactly is refused: nothing is ever rounded (A5, A7, A9).
 */
#ifndef PAY_PSP_AMOUNT_H
#define PAY_PSP_AMOUNT_H

#include "common/core/money.h"

/** Where a PSP differs from two decimals. */
struct pay_psp_currency {
    char currency[PAY_CURRENCY_SIZE]; /**< "" ends the table. */
    int exponent;                     /**< Decimals of the PSP's integer. */
    int multiple; /**< What we send must be a multiple of this, in the PSP's units; 1: any. */
};

/**
 * @brief Minor units to the PSP's integer.
 * @return false: unknown currency, one that is neither in @p table nor has two decimals, an amount
 * that is not positive, or one that the PSP cannot express.
 */
bool pay_psp_amount_out(const struct pay_psp_currency *table, struct pay_money money,
                        int64_t *ret_amount);
/** @brief The PSP's integer to minor units; 0 is fine. @p currency in any case of letters. */
bool pay_psp_amount_in(const struct pay_psp_currency *table, int64_t amount,
                       struct pay_str currency, struct pay_money *ret_money);
/** @brief ISO 4217 code in upper case. @return false when it is not three letters of a known one.
 */
bool pay_psp_currency_upper(struct pay_str text, char ret_currency[PAY_CURRENCY_SIZE]);

#endif /* PAY_PSP_AMOUNT_H */
