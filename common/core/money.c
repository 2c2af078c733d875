/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/money.h"

#include <string.h>

#include "common/base/banned.h"

#define EXPONENT_MAX 18 /* 10^18 is the largest power of ten in an int64_t. */

struct currency {
    char code[PAY_CURRENCY_SIZE];
    signed char exponent;
};

/* ISO 4217 list one, active codes that have minor units, in order of the code. Without minor units
 * (XAU XAG XPD XPT XBA XBB XBC XBD XDR XSU XTS XUA XXX) there is no amount, so they are not here.
 * BGN ended with 2025 and stays: refunds and disputes outlive a currency. */
static const struct currency currencies[] = {
    {"AED", 2}, {"AFN", 2}, {"ALL", 2}, {"AMD", 2}, {"AOA", 2}, {"ARS", 2}, {"AUD", 2}, {"AWG", 2},
    {"AZN", 2}, {"BAM", 2}, {"BBD", 2}, {"BDT", 2}, {"BGN", 2}, {"BHD", 3}, {"BIF", 0}, {"BMD", 2},
    {"BND", 2}, {"BOB", 2}, {"BOV", 2}, {"BRL", 2}, {"BSD", 2}, {"BTN", 2}, {"BWP", 2}, {"BYN", 2},
    {"BZD", 2}, {"CAD", 2}, {"CDF", 2}, {"CHE", 2}, {"CHF", 2}, {"CHW", 2}, {"CLF", 4}, {"CLP", 0},
    {"CNY", 2}, {"COP", 2}, {"COU", 2}, {"CRC", 2}, {"CUP", 2}, {"CVE", 2}, {"CZK", 2}, {"DJF", 0},
    {"DKK", 2}, {"DOP", 2}, {"DZD", 2}, {"EGP", 2}, {"ERN", 2}, {"ETB", 2}, {"EUR", 2}, {"FJD", 2},
    {"FKP", 2}, {"GBP", 2}, {"GEL", 2}, {"GHS", 2}, {"GIP", 2}, {"GMD", 2}, {"GNF", 0}, {"GTQ", 2},
    {"GYD", 2}, {"HKD", 2}, {"HNL", 2}, {"HTG", 2}, {"HUF", 2}, {"IDR", 2}, {"ILS", 2}, {"INR", 2},
    {"IQD", 3}, {"IRR", 2}, {"ISK", 0}, {"JMD", 2}, {"JOD", 3}, {"JPY", 0}, {"KES", 2}, {"KGS", 2},
    {"KHR", 2}, {"KMF", 0}, {"KPW", 2}, {"KRW", 0}, {"KWD", 3}, {"KYD", 2}, {"KZT", 2}, {"LAK", 2},
    {"LBP", 2}, {"LKR", 2}, {"LRD", 2}, {"LSL", 2}, {"LYD", 3}, {"MAD", 2}, {"MDL", 2}, {"MGA", 2},
    {"MKD", 2}, {"MMK", 2}, {"MNT", 2}, {"MOP", 2}, {"MRU", 2}, {"MUR", 2}, {"MVR", 2}, {"MWK", 2},
    {"MXN", 2}, {"MXV", 2}, {"MYR", 2}, {"MZN", 2}, {"NAD", 2}, {"NGN", 2}, {"NIO", 2}, {"NOK", 2},
    {"NPR", 2}, {"NZD", 2}, {"OMR", 3}, {"PAB", 2}, {"PEN", 2}, {"PGK", 2}, {"PHP", 2}, {"PKR", 2},
    {"PLN", 2}, {"PYG", 0}, {"QAR", 2}, {"RON", 2}, {"RSD", 2}, {"RUB", 2}, {"RWF", 0}, {"SAR", 2},
    {"SBD", 2}, {"SCR", 2}, {"SDG", 2}, {"SEK", 2}, {"SGD", 2}, {"SHP", 2}, {"SLE", 2}, {"SOS", 2},
    {"SRD", 2}, {"SSP", 2}, {"STN", 2}, {"SVC", 2}, {"SYP", 2}, {"SZL", 2}, {"THB", 2}, {"TJS", 2},
    {"TMT", 2}, {"TND", 3}, {"TOP", 2}, {"TRY", 2}, {"TTD", 2}, {"TWD", 2}, {"TZS", 2}, {"UAH", 2},
    {"UGX", 0}, {"USD", 2}, {"USN", 2}, {"UYI", 0}, {"UYU", 2}, {"UYW", 4}, {"UZS", 2}, {"VED", 2},
    {"VES", 2}, {"VND", 0}, {"VUV", 0}, {"WST", 2}, {"XAD", 2}, {"XAF", 0}, {"XCD", 2}, {"XCG", 2},
    {"XOF", 0}, {"XPF", 0}, {"YER", 2}, {"ZAR", 2}, {"ZMW", 2}, {"ZWG", 2},
};

int pay_money_exponent(struct pay_str currency)
{
    size_t low = 0;
    size_t high = sizeof currencies / sizeof currencies[0];

    if (currency.ptr == NULL || currency.len != PAY_CURRENCY_SIZE - 1) {
        return -1;
    }
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = memcmp(currency.ptr, currencies[middle].code, PAY_CURRENCY_SIZE - 1);
        if (order == 0) {
            return currencies[middle].exponent;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return -1;
}

bool pay_money_same(struct pay_money a, struct pay_money b)
{
    return a.amount_minor == b.amount_minor && strcmp(a.currency, b.currency) == 0;
}

bool pay_money_add(int64_t a, int64_t b, int64_t *ret_sum)
{
    const bool overflows = b >= 0 ? a > INT64_MAX - b : a < INT64_MIN - b;
    if (overflows || a + b < 0) {
        return false;
    }
    *ret_sum = a + b;
    return true;
}

bool pay_money_sub(int64_t a, int64_t b, int64_t *ret_difference)
{
    const bool overflows = b >= 0 ? a < INT64_MIN + b : a > INT64_MAX + b;
    if (overflows || a - b < 0) {
        return false;
    }
    *ret_difference = a - b;
    return true;
}

static int64_t power_of_ten(int exponent)
{
    int64_t power = 1;
    for (int i = 0; i < exponent; i++) {
        power *= 10;
    }
    return power;
}

static bool is_exponent(int exponent)
{
    return exponent >= 0 && exponent <= EXPONENT_MAX;
}

bool pay_money_rescale(int64_t amount, int from_exponent, int to_exponent, int64_t *ret_amount)
{
    if (!is_exponent(from_exponent) || !is_exponent(to_exponent)) {
        return false;
    }
    if (to_exponent >= from_exponent) {
        const int64_t factor = power_of_ten(to_exponent - from_exponent);
        if (amount > INT64_MAX / factor || amount < INT64_MIN / factor) {
            return false;
        }
        *ret_amount = amount * factor;
        return true;
    }
    const int64_t divisor = power_of_ten(from_exponent - to_exponent);
    if (amount % divisor != 0) {
        return false;
    }
    *ret_amount = amount / divisor;
    return true;
}

static bool shift_in(int64_t *value, char c)
{
    if (c < '0' || c > '9') {
        return false;
    }
    const int digit = c - '0';
    if (*value > (INT64_MAX - digit) / 10) {
        return false;
    }
    *value = *value * 10 + digit;
    return true;
}

bool pay_money_parse_decimal(struct pay_str text, int exponent, int64_t *ret_minor)
{
    const char *point = text.ptr == NULL ? NULL : memchr(text.ptr, '.', text.len);
    const size_t whole = point == NULL ? text.len : (size_t)(point - text.ptr);
    const size_t decimals = point == NULL ? 0 : text.len - whole - 1;
    int64_t value = 0;

    /* A point needs digits on both of its sides: ".5" and "5." are not amounts. */
    if (text.ptr == NULL || !is_exponent(exponent) || whole == 0 ||
        (point != NULL && decimals == 0) || decimals > (size_t)exponent) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (i != whole && !shift_in(&value, text.ptr[i])) {
            return false;
        }
    }
    for (size_t i = decimals; i < (size_t)exponent; i++) {
        if (!shift_in(&value, '0')) {
            return false;
        }
    }
    *ret_minor = value;
    return true;
}

void pay_money_format(int64_t amount_minor, int exponent, char dst[32])
{
    char reversed[32];
    size_t len = 0;
    size_t at = 0;
    uint64_t rest =
        amount_minor < 0 ? UINT64_C(0) - (uint64_t)amount_minor : (uint64_t)amount_minor;

    for (int digits = 0; rest > 0 || digits <= exponent || digits == 0; digits++) {
        if (digits == exponent && digits > 0) {
            reversed[len++] = '.';
        }
        reversed[len++] = (char)('0' + rest % 10);
        rest /= 10;
    }
    if (amount_minor < 0) {
        dst[at++] = '-';
    }
    while (len > 0) {
        dst[at++] = reversed[--len];
    }
    dst[at] = 0;
}
