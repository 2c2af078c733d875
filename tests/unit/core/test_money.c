/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: exact money. Every active ISO 4217 code with its exponent; no rounding, no overflow, no
 * float anywhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>
#include <string.h>

#include "common/core/money.h"

/* ISO 4217 list one by exponent, written from the list and not from the table. */
static const char *const exponent_0 =
    "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF";
static const char *const exponent_3 = "BHD IQD JOD KWD LYD OMR TND";
static const char *const exponent_4 = "CLF UYW";
static const char *const no_minor_units = "XAG XAU XBA XBB XBC XBD XDR XPD XPT XSU XTS XUA XXX";
static const char *const withdrawn = "ANG CUC DEM FRF HRK SLL ZWL MRO STD VEF BYR";

static int count_as(const char *codes, int exponent)
{
    int count = 0;
    for (const char *code = codes;; code += 4, count++) {
        assert_int_equal(pay_money_exponent((struct pay_str){code, 3}), exponent);
        if (code[3] == 0) {
            return count + 1;
        }
    }
}

static void every_code_of_the_list_has_its_exponent(void **state)
{
    (void)state;
    int by_exponent[5] = {0};
    int all = 0;

    assert_int_equal(count_as(exponent_0, 0), 17);
    assert_int_equal(count_as(exponent_3, 3), 7);
    assert_int_equal(count_as(exponent_4, 4), 2);
    assert_int_equal(count_as(no_minor_units, -1), 13);
    assert_int_equal(count_as(withdrawn, -1), 11);
    for (int n = 0; n < 26 * 26 * 26; n++) {
        const char code[] = {(char)('A' + n / 676), (char)('A' + n / 26 % 26), (char)('A' + n % 26),
                             0};
        const int exponent = pay_money_exponent(pay_str_of(code));
        if (exponent >= 0) {
            by_exponent[exponent]++;
            all++;
        }
    }
    assert_int_equal(by_exponent[0], 17);
    assert_int_equal(by_exponent[1], 0);
    assert_int_equal(by_exponent[3], 7);
    assert_int_equal(by_exponent[4], 2);
    assert_int_equal(by_exponent[2], all - 26);
    assert_int_equal(all, 166);
}

static void what_is_no_code_has_no_exponent(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "EU", "EURO", "eur", "E R", "978"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(pay_money_exponent(pay_str_of(bad[i])), -1);
    }
    assert_int_equal(pay_money_exponent((struct pay_str){NULL, 0}), -1);
}

static void sums_are_checked(void **state)
{
    (void)state;
    int64_t out = 7;

    assert_true(pay_money_add(INT64_MAX - 1, 1, &out));
    assert_int_equal(out, INT64_MAX);
    assert_false(pay_money_add(INT64_MAX, 1, &out));
    assert_false(pay_money_add(INT64_MIN, -1, &out));
    assert_false(pay_money_add(1, -2, &out)); /* No sum of parts is negative. */
    assert_true(pay_money_add(5, -2, &out));
    assert_int_equal(out, 3);
    assert_true(pay_money_sub(5, -2, &out));
    assert_int_equal(out, 7);
    assert_true(pay_money_sub(INT64_MAX - 1, -1, &out));
    assert_int_equal(out, INT64_MAX);
    assert_true(pay_money_sub(5, 5, &out));
    assert_int_equal(out, 0);
    assert_false(pay_money_sub(5, 6, &out));
    assert_false(pay_money_sub(INT64_MAX, -1, &out));
    assert_false(pay_money_sub(INT64_MIN, 1, &out));
    assert_int_equal(out, 0); /* Untouched by every refusal. */
}

static void rescaling_is_exact_or_refused(void **state)
{
    (void)state;
    static const struct {
        int64_t amount;
        int from, to;
        bool ok;
        int64_t result;
    } rows[] = {
        {123, 2, 2, true, 123},
        {123, 0, 2, true, 12300},
        {12300, 2, 0, true, 123},
        {12301, 2, 0, false, 0},
        {-12300, 2, 0, true, -123},
        {0, 0, 18, true, 0},
        {10, 3, 2, true, 1},
        {1, 3, 2, false, 0},
        {INT64_MAX, 0, 1, false, 0},
        {INT64_MIN, 0, 1, false, 0},
        {INT64_MIN, 2, 2, true, INT64_MIN},
        {9, 0, 18, true, 9000000000000000000},
        {10, 0, 18, false, 0},
        {1, -1, 2, false, 0},
        {1, 2, 19, false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t out = 0;
        assert_int_equal(pay_money_rescale(rows[i].amount, rows[i].from, rows[i].to, &out),
                         rows[i].ok);
        assert_int_equal(out, rows[i].result);
    }
}

struct decimal_row {
    const char *text;
    int exponent;
    bool ok;
    int64_t minor;
};

static void check_decimal(const struct decimal_row *row)
{
    int64_t out = 0;
    const bool ok = pay_money_parse_decimal(pay_str_of(row->text), row->exponent, &out);
    if (ok != row->ok || out != row->minor) {
        fail_msg("\"%s\" with %d: %d %lld", row->text, row->exponent, (int)ok, (long long)out);
    }
}

static void A9_decimal_text_becomes_minor_units_exactly(void **state)
{
    (void)state;
    static const struct decimal_row rows[] = {
        {"8.20", 2, true, 820}, /* As a float 819. */
        {"8.2", 2, true, 820},
        {"8", 2, true, 800},
        {"0.01", 2, true, 1},
        {"1.000", 3, true, 1000}, /* A5: KWD has three decimals. */
        {"100", 0, true, 100},    /* A7: JPY has none. */
        {"000012.30", 2, true, 1230},
        {"92233720368547758.07", 2, true, INT64_MAX},
        {"92233720368547758.08", 2, false, 0},
        {"9223372036854775807", 0, true, INT64_MAX},
        {"9223372036854775807", 1, false, 0},
        {"10.00", 0, false, 0},
        {"1.234", 2, false, 0},
        {"1.230", 2, false, 0}, /* More decimals than the currency has. */
        {"", 2, false, 0},
        {".5", 2, false, 0},
        {"5.", 2, false, 0},
        {"-1", 2, false, 0},
        {"+1", 2, false, 0},
        {" 1", 2, false, 0},
        {"1,5", 2, false, 0},
        {"1.2.3", 4, false, 0},
        {"1e3", 2, false, 0},
        {"0x10", 2, false, 0},
        {"1", -1, false, 0},
        {"0", 19, false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_decimal(&rows[i]);
    }
    int64_t out = 0;
    assert_false(pay_money_parse_decimal((struct pay_str){NULL, 0}, 2, &out));
}

static void A5_minor_units_are_printed_with_the_currencys_decimals(void **state)
{
    (void)state;
    static const struct {
        int64_t minor;
        int exponent;
        const char *text;
    } rows[] = {
        {1230, 2, "12.30"},
        {12, 0, "12"},
        {1000, 3, "1.000"},
        {0, 2, "0.00"},
        {0, 0, "0"},
        {5, 4, "0.0005"},
        {-7, 2, "-0.07"},
        {-1230, 2, "-12.30"},
        {INT64_MAX, 2, "92233720368547758.07"},
        {INT64_MIN, 0, "-9223372036854775808"},
        {5, -1, "5"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[32];
        memset(text, 'x', sizeof text);
        pay_money_format(rows[i].minor, rows[i].exponent, text);
        assert_string_equal(text, rows[i].text);
    }
}

static void format_and_parse_are_each_others_way_back(void **state)
{
    (void)state;
    static const int64_t minors[] = {0, 1, 9, 10, 99, 100, 101, 12345, 999999999, INT64_MAX};
    for (size_t i = 0; i < sizeof minors / sizeof minors[0]; i++) {
        for (int exponent = 0; exponent <= 4; exponent++) {
            char text[32];
            int64_t back = -1;
            pay_money_format(minors[i], exponent, text);
            assert_true(pay_money_parse_decimal(pay_str_of(text), exponent, &back));
            assert_int_equal(back, minors[i]);
        }
    }
}

static void the_same_is_the_same_amount_and_currency(void **state)
{
    (void)state;
    assert_true(pay_money_same((struct pay_money){1, "EUR"}, (struct pay_money){1, "EUR"}));
    assert_false(pay_money_same((struct pay_money){1, "EUR"}, (struct pay_money){2, "EUR"}));
    assert_false(pay_money_same((struct pay_money){1, "EUR"}, (struct pay_money){1, "USD"}));
    assert_false(pay_money_same((struct pay_money){1, "EUR"}, (struct pay_money){1, ""}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_of_the_list_has_its_exponent),
        cmocka_unit_test(what_is_no_code_has_no_exponent),
        cmocka_unit_test(sums_are_checked),
        cmocka_unit_test(rescaling_is_exact_or_refused),
        cmocka_unit_test(A9_decimal_text_becomes_minor_units_exactly),
        cmocka_unit_test(A5_minor_units_are_printed_with_the_currencys_decimals),
        cmocka_unit_test(format_and_parse_are_each_others_way_back),
        cmocka_unit_test(the_same_is_the_same_amount_and_currency),
    };
    return cmocka_run_group_tests_name("money", tests, NULL, NULL);
}
