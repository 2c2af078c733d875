/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: absent differs from empty, integers never wrap, hex and UTF-8 take exactly what is valid.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/str.h"

#include <string.h>

static const struct pay_str absent = {NULL, 0};

static void absent_differs_from_empty(void **state)
{
    (void)state;
    assert_true(pay_str_eq(absent, absent));
    assert_false(pay_str_eq(absent, PAY_STR("")));
    assert_false(pay_str_eq(PAY_STR(""), absent));
    assert_true(pay_str_eq(PAY_STR(""), PAY_STR("")));
    assert_true(pay_str_eq_c(absent, NULL));
    assert_false(pay_str_eq_c(absent, ""));
    assert_false(pay_str_eq_c(PAY_STR(""), NULL));
    assert_null(pay_str_of(NULL).ptr);
    assert_int_equal(pay_str_of("abc").len, 3);
    assert_false(
        pay_bytes_eq((struct pay_bytes){NULL, 0}, (struct pay_bytes){(const uint8_t *)"", 0}));
}

static void equality_looks_at_every_byte(void **state)
{
    (void)state;
    assert_true(pay_str_eq(PAY_STR("abc"), PAY_STR("abc")));
    assert_false(pay_str_eq(PAY_STR("abc"), PAY_STR("abd")));
    assert_false(pay_str_eq(PAY_STR("abc"), PAY_STR("ab")));
    assert_false(pay_str_eq(PAY_STR("a\0b"), PAY_STR("a\0c")));
    assert_true(pay_bytes_eq((struct pay_bytes){(const uint8_t *)"a\0b", 3},
                             (struct pay_bytes){(const uint8_t *)"a\0b", 3}));
}

static void starts(void **state)
{
    (void)state;
    assert_true(pay_str_starts(PAY_STR("evt_1"), "evt_"));
    assert_true(pay_str_starts(PAY_STR("evt_"), "evt_"));
    assert_true(pay_str_starts(PAY_STR(""), ""));
    assert_false(pay_str_starts(PAY_STR("evt"), "evt_"));
    assert_false(pay_str_starts(PAY_STR("Evt_1"), "evt_"));
    assert_false(pay_str_starts(absent, ""));
}

static void copy_fits_or_leaves_nothing(void **state)
{
    (void)state;
    char dst[4] = "old";

    assert_true(pay_str_copy(dst, sizeof dst, PAY_STR("abc")));
    assert_string_equal(dst, "abc");
    assert_false(pay_str_copy(dst, sizeof dst, PAY_STR("abcd")));
    assert_string_equal(dst, "");
    assert_true(pay_str_copy(dst, sizeof dst, PAY_STR("x")));
    assert_false(pay_str_copy(dst, sizeof dst, absent));
    assert_string_equal(dst, "");
    assert_true(pay_str_copy(dst, 1, PAY_STR("")));
    assert_false(pay_str_copy(dst, 0, PAY_STR("")));
}

static const struct {
    const char *text;
    bool is_int;
    int64_t value;
} int_rows[] = {
    {"0", true, 0},
    {"-0", true, 0},
    {"7", true, 7},
    {"-7", true, -7},
    {"007", true, 7},
    {"9223372036854775807", true, INT64_MAX},
    {"9223372036854775808", false, 0},
    {"-9223372036854775808", true, INT64_MIN},
    {"-9223372036854775809", false, 0},
    {"9223372036854775817", false, 0},
    {"18446744073709551616", false, 0}, /* 2^64: wraps to 0. */
    {"99999999999999999999999999", false, 0},
    {"", false, 0},
    {"-", false, 0},
    {"--1", false, 0},
    {"+1", false, 0},
    {" 1", false, 0},
    {"1 ", false, 0},
    {"1.0", false, 0},
    {"1e3", false, 0},
    {"0x10", false, 0},
    {"1,000", false, 0},
};

static void every_integer_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof int_rows / sizeof int_rows[0]; i++) {
        int64_t got = -999;
        const bool is_int = pay_str_to_i64(pay_str_of(int_rows[i].text), &got);
        if (is_int != int_rows[i].is_int || got != (is_int ? int_rows[i].value : -999)) {
            print_error("\"%s\": %d %lld\n", int_rows[i].text, is_int, (long long)got);
            fail();
        }
    }
    int64_t got = 0;
    assert_false(pay_str_to_i64(absent, &got));
    assert_true(pay_str_to_i64((struct pay_str){"123", 2}, &got)); /* The length rules. */
    assert_int_equal(got, 12);
}

static void hex_goes_both_ways(void **state)
{
    (void)state;
    uint8_t bytes[256];
    uint8_t back[256];
    char text[513];

    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)i;
    }
    pay_hex_encode((struct pay_bytes){bytes, sizeof bytes}, text);
    assert_int_equal(strlen(text), 512);
    assert_memory_equal(text, "000102", 6);
    assert_string_equal(text + 508, "feff");
    assert_true(pay_hex_decode(pay_str_of(text), back, sizeof back));
    assert_memory_equal(back, bytes, sizeof bytes);
    assert_true(pay_hex_decode(PAY_STR("aBcDeF"), back, 3));
    assert_memory_equal(back, "\xab\xcd\xef", 3);
}

static void hex_refuses_the_rest(void **state)
{
    (void)state;
    static const char *const wrong[] = {"abc", "abcg", "ab:d", "ab d", "/0",
                                        ":0",  "@0",   "`0",   "0G"};
    uint8_t dst[2];

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(pay_hex_decode(pay_str_of(wrong[i]), dst, strlen(wrong[i]) / 2));
    }
    assert_false(pay_hex_decode(PAY_STR("abcd"), dst, 1));
    assert_false(pay_hex_decode(PAY_STR("ab"), dst, 2));
    assert_false(pay_hex_decode(absent, dst, 0));
    assert_true(pay_hex_decode(PAY_STR(""), dst, 0));
}

static const struct {
    const char *bytes;
    size_t char_len; /* Of the first character, 0: malformed. */
} utf8_rows[] = {
    {"a", 1},
    {"\x7f", 1},
    {"\xc2\x80", 2},
    {"\xdf\xbf", 2},
    {"\xe0\xa0\x80", 3},
    {"\xed\x9f\xbf", 3},
    {"\xee\x80\x80", 3},
    {"\xef\xbf\xbf", 3},
    {"\xf0\x90\x80\x80", 4},
    {"\xf4\x8f\xbf\xbf", 4},
    {"\x80", 0},     /* A continuation alone. */
    {"\xc0\x80", 0}, /* Overlong NUL. */
    {"\xc1\xbf", 0}, /* Overlong. */
    {"\xc2", 0},     /* Cut short. */
    {"\xc2\x7f", 0}, /* No continuation. */
    {"\xc2\xc0", 0},
    {"\xe0\x9f\xbf", 0}, /* Overlong. */
    {"\xe2\x82", 0},     /* Cut short. */
    {"\xe2\x82\x7f", 0},
    {"\xed\xa0\x80", 0},     /* First surrogate. */
    {"\xed\xbf\xbf", 0},     /* Last surrogate. */
    {"\xf0\x8f\xbf\xbf", 0}, /* Overlong. */
    {"\xf0\x9f\x98", 0},     /* Cut short. */
    {"\xf4\x90\x80\x80", 0}, /* Above U+10FFFF. */
    {"\xf5\x80\x80\x80", 0},
    {"\xfe", 0},
    {"\xff", 0},
};

static void every_utf8_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof utf8_rows / sizeof utf8_rows[0]; i++) {
        const struct pay_str text = pay_str_of(utf8_rows[i].bytes);
        const struct pay_bytes bytes = {(const uint8_t *)text.ptr, text.len};
        assert_int_equal(pay_utf8_len(bytes), utf8_rows[i].char_len);
        assert_int_equal(pay_utf8_valid(bytes), utf8_rows[i].char_len != 0);
    }
}

static void utf8_is_judged_to_the_end(void **state)
{
    (void)state;
    assert_true(pay_utf8_valid((struct pay_bytes){NULL, 0}));
    assert_int_equal(pay_utf8_len((struct pay_bytes){NULL, 0}), 0);
    assert_true(pay_utf8_valid((struct pay_bytes){(const uint8_t *)"a\0b", 3}));
    assert_true(
        pay_utf8_valid((struct pay_bytes){(const uint8_t *)"caf\xc3\xa9 \xf0\x9f\x98\x80", 10}));
    assert_false(
        pay_utf8_valid((struct pay_bytes){(const uint8_t *)"caf\xc3\xa9\xf0\x9f\x98\x80", 8}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_differs_from_empty),
        cmocka_unit_test(equality_looks_at_every_byte),
        cmocka_unit_test(starts),
        cmocka_unit_test(copy_fits_or_leaves_nothing),
        cmocka_unit_test(every_integer_row),
        cmocka_unit_test(hex_goes_both_ways),
        cmocka_unit_test(hex_refuses_the_rest),
        cmocka_unit_test(every_utf8_row),
        cmocka_unit_test(utf8_is_judged_to_the_end),
    };
    return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
