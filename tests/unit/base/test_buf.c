/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: a buffer never passes its maximum, remembers a failure, and what it writes is JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/buf.h"

static int drop(void **state)
{
    pay_buf_free(*state);
    return 0;
}

/* The buffer under test lives in the fixture: a failed assertion jumps past any free. */
static struct pay_buf under_test;

static int make(void **state)
{
    under_test = pay_buf_make(10);
    *state = &under_test;
    return 0;
}

static void the_maximum_is_exact(void **state)
{
    struct pay_buf *buf = *state;

    pay_buf_add_c(buf, "0123456789");
    assert_false(buf->failed);
    assert_int_equal(buf->len, 10);
    pay_buf_add_char(buf, 'x');
    assert_true(buf->failed);
    assert_string_equal(pay_buf_str(buf).ptr, "0123456789");
}

static void a_failure_sticks_until_reset(void **state)
{
    struct pay_buf *buf = *state;

    pay_buf_add_c(buf, "abc");
    pay_buf_add_c(buf, "too long by far");
    assert_true(buf->failed);
    pay_buf_add_c(buf, "d"); /* Would fit, but the text has a hole by now. */
    assert_string_equal(pay_buf_str(buf).ptr, "abc");

    pay_buf_reset(buf);
    assert_false(buf->failed);
    assert_string_equal(pay_buf_str(buf).ptr, "");
    pay_buf_add_c(buf, "d");
    assert_string_equal(pay_buf_str(buf).ptr, "d");
}

static void an_empty_one_is_empty_text_not_absent(void **state)
{
    assert_string_equal(pay_buf_str(*state).ptr, "");
    assert_non_null(pay_buf_bytes(*state).ptr);
    assert_int_equal(pay_buf_bytes(*state).len, 0);
}

static void sizes_that_overflow_fail(void **state)
{
    struct pay_buf *buf = *state;

    buf->max = SIZE_MAX;
    pay_buf_add_c(buf, "abc");
    assert_null(pay_buf_extend(buf, SIZE_MAX - 3)); /* len + extra + terminator wraps to 0. */
    assert_true(buf->failed);
    pay_buf_reset(buf);
    assert_null(pay_buf_extend(buf, SIZE_MAX));
    assert_true(buf->failed);
}

static void printf_fits_or_fails_whole(void **state)
{
    struct pay_buf *buf = *state;

    pay_buf_printf(buf, "%s", "12345");
    pay_buf_printf(buf, "%s", "123456");
    assert_true(buf->failed);
    assert_string_equal(pay_buf_str(buf).ptr, "12345");
    pay_buf_reset(buf);
    pay_buf_printf(buf, "%d-%08d", 1, 2);
    assert_false(buf->failed);
    assert_string_equal(pay_buf_str(buf).ptr, "1-00000002");
}

static void it_grows_over_many_sizes(void **state)
{
    struct pay_buf *buf = *state;

    buf->max = 100000;
    for (size_t i = 0; i < 100000; i++) {
        pay_buf_add_char(buf, (char)('a' + i % 26));
    }
    assert_false(buf->failed);
    assert_int_equal(buf->len, 100000);
    assert_true(buf->cap <= 100001); /* Not a byte more than the maximum and the terminator. */
    for (size_t i = 0; i < 100000; i++) {
        assert_int_equal(buf->data[i], 'a' + i % 26);
    }
}

static void extend_and_cut_are_exact(void **state)
{
    struct pay_buf *buf = *state;

    uint8_t *at = pay_buf_extend(buf, 4);
    assert_non_null(at);
    for (size_t i = 0; i < 4; i++) {
        at[i] = (uint8_t)('w' + i);
    }
    pay_buf_cut(buf, 2);
    assert_string_equal(pay_buf_str(buf).ptr, "wx");
    assert_null(pay_buf_extend(buf, 9));
    assert_int_equal(buf->len, 2);
}

struct json_row {
    const char *in;
    size_t len;
    const char *out;
};

#define ROW(in_, out_) {(in_), sizeof(in_) - 1, (out_)}
static const struct json_row json_rows[] = {
    ROW("", "\"\""),
    ROW("plain", "\"plain\""),
    ROW("a\"b\\c/", "\"a\\\"b\\\\c/\""),
    ROW("\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\""),
    ROW("\0\x01\x1f\x7f", "\"\\u0000\\u0001\\u001f\\u007f\""),
    ROW("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""),
    ROW("a\xff"
        "b\xc3",
        "\"a\\ufffdb\\ufffd\""),
    ROW("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""), /* A surrogate. */
    ROW("\xc0\xaf", "\"\\ufffd\\ufffd\""),            /* An overlong slash. */
};

static void json_strings_are_escaped(void **state)
{
    struct pay_buf *buf = *state;

    buf->max = 1000;
    for (size_t i = 0; i < sizeof json_rows / sizeof json_rows[0]; i++) {
        pay_buf_reset(buf);
        pay_buf_add_json_str(buf, (struct pay_str){json_rows[i].in, json_rows[i].len});
        assert_string_equal(pay_buf_str(buf).ptr, json_rows[i].out);
    }
    pay_buf_reset(buf);
    pay_buf_add_json_str(buf, (struct pay_str){NULL, 0});
    assert_string_equal(pay_buf_str(buf).ptr, "null");
}

static void half_a_json_string_is_never_left(void **state)
{
    struct pay_buf *buf = *state;

    pay_buf_add_c(buf, "1,");
    pay_buf_add_json_str(buf, PAY_STR("1234567")); /* One too long with its quotes. */
    assert_true(buf->failed);
    assert_string_equal(pay_buf_str(buf).ptr, "1,");
    pay_buf_reset(buf);
    pay_buf_add_c(buf, "1,");
    pay_buf_add_json_str(buf, PAY_STR("123456"));
    assert_false(buf->failed);
    assert_string_equal(pay_buf_str(buf).ptr, "1,\"123456\"");
}

static void free_twice_is_harmless(void **state)
{
    struct pay_buf *buf = *state;

    pay_buf_add_c(buf, "abc");
    pay_buf_free(buf);
    assert_null(buf->data);
    pay_buf_free(buf);
    pay_buf_add_c(buf, "abc"); /* Usable again, with its maximum. */
    assert_string_equal(pay_buf_str(buf).ptr, "abc");
    assert_int_equal(buf->max, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_maximum_is_exact, make, drop),
        cmocka_unit_test_setup_teardown(a_failure_sticks_until_reset, make, drop),
        cmocka_unit_test_setup_teardown(an_empty_one_is_empty_text_not_absent, make, drop),
        cmocka_unit_test_setup_teardown(sizes_that_overflow_fail, make, drop),
        cmocka_unit_test_setup_teardown(printf_fits_or_fails_whole, make, drop),
        cmocka_unit_test_setup_teardown(it_grows_over_many_sizes, make, drop),
        cmocka_unit_test_setup_teardown(extend_and_cut_are_exact, make, drop),
        cmocka_unit_test_setup_teardown(json_strings_are_escaped, make, drop),
        cmocka_unit_test_setup_teardown(half_a_json_string_is_never_left, make, drop),
        cmocka_unit_test_setup_teardown(free_twice_is_harmless, make, drop),
    };
    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
