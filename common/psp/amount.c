/* SPDX-License-Identifier: Apache-2.0 */
#include "common/psp/amount.h"

#include <string.h>

#include "common/base/banned.h"

bool pay_psp_currency_upper(struct pay_str text, char ret_currency[PAY_CURRENCY_SIZE])
{
    char upper[PAY_CURRENCY_SIZE] = "";
    if (text.ptr == NULL || text.len != PAY_CURRENCY_SIZE - 1) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];
        upper[i] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    }
    if (pay_money_exponent((struct pay_str){upper, text.len}) < 0) {
        return false;
    }
    memcpy(ret_currency, upper, sizeof upper);
    return true;
}

/* @return false: this PSP does not take the currency, as far as its page says. */
static bool find(const struct pay_psp_currency *table, const char *currency,
                 struct pay_psp_currency *ret_rule, int *ret_iso)
{
    *ret_iso = pay_money_exponent(pay_str_of(currency));
    for (size_t i = 0; table[i].currency[0] != '\0'; i++) {
        if (strcmp(table[i].currency, currency) == 0) {
            *ret_rule = table[i];
            return *ret_iso >= 0;
        }
    }
    *ret_rule = (struct pay_psp_currency){.exponent = 2, .multiple = 1};
    return *ret_iso == 2;
}

bool pay_psp_amount_out(const struct pay_psp_currency *table, struct pay_money money,
                        int64_t *ret_amount)
{
    struct pay_psp_currency rule;
    int iso = 0;
    int64_t amount = 0;
    if (money.amount_minor <= 0 || !find(table, money.currency, &rule, &iso) ||
        !pay_money_rescale(money.amount_minor, iso, rule.exponent, &amount) ||
        amount % rule.multiple != 0) {
        return false;
    }
    *ret_amount = amount;
    return true;
}

bool pay_psp_amount_in(const struct pay_psp_currency *table, int64_t amount,
                       struct pay_str currency, struct pay_money *ret_money)
{
    struct pay_psp_currency rule;
    struct pay_money money = {0};
    int iso = 0;
    if (amount < 0 || !pay_psp_currency_upper(currency, money.currency) ||
        !find(table, money.currency, &rule, &iso) ||
        !pay_money_rescale(amount, rule.exponent, iso, &money.amount_minor)) {
        return false;
    }
    *ret_money = money;
    return true;
}
