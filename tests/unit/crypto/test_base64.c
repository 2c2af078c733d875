/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: one text for the same bytes, both ways; everything else is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/crypto/base64.h"

#include <string.h>

static struct pay_buf out;

static int make(void **state)
{
    (void)state;
    out = pay_buf_make(1000);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    pay_buf_free(&out);
    return 0;
}

/* RFC 4648 section 10, and the two characters that URL forms replace. */
static const struct {
    const char *bytes;
    const char *text;
} rows[] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xfb\xff\xbf", "+/+/"},
};

static void every_row_both_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const size_t len = strlen(rows[i].bytes);
        pay_buf_reset(&out);
        pay_base64_encode((struct pay_bytes){(const uint8_t *)rows[i].bytes, len}, &out);
        assert_string_equal(pay_buf_str(&out).ptr, rows[i].text);
        pay_buf_reset(&out);
        assert_true(pay_base64_decode(pay_str_of(rows[i].text), &out));
        assert_int_equal(out.len, len);
        assert_string_equal(pay_buf_str(&out).ptr, rows[i].bytes);
    }
}

static void every_byte_survives_at_every_length(void **state)
{
    (void)state;
    uint8_t bytes[256];

    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 7);
    }
    for (size_t len = 0; len <= sizeof bytes; len++) {
        pay_buf_reset(&out);
        pay_base64_encode((struct pay_bytes){bytes, len}, &out);
        const size_t text_len = out.len;
        assert_int_equal(text_len, (len + 2) / 3 * 4);
        char text[400];
        memcpy(text, out.data == NULL ? (const uint8_t *)"" : out.data, text_len);
        pay_buf_reset(&out);
        assert_true(pay_base64_decode((struct pay_str){text, text_len}, &out));
        assert_int_equal(out.len, len);
        assert_memory_equal(pay_buf_bytes(&out).ptr, bytes, len);
    }
}

static void everything_else_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "Z",        "Zg",   "Zg=",    "Zg===", "=",    "====",    "Z===",
        "Zh==",     "Zm9=", "Zm9v\n", " Zm9",  "Zm-v", "Zm_v",    "Zm9vZg==Zm9v",
        "Zg==Zg==", "Z=9v", "Zm=v",   "=m9v",  "Zm9*", "Zm9\x80", "Zm9vYg=a",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pay_buf_reset(&out);
        pay_buf_add_c(&out, "x");
        print_message("\"%s\"\n", wrong[i]);
        assert_false(pay_base64_decode(pay_str_of(wrong[i]), &out));
        assert_string_equal(pay_buf_str(&out).ptr, "x"); /* Nothing appended. */
        assert_false(out.failed);
    }
    assert_false(pay_base64_decode((struct pay_str){NULL, 0}, &out));
    assert_false(pay_base64_decode((struct pay_str){"Zm9\0", 4}, &out));
    assert_false(pay_base64_decode((struct pay_str){"Zm9v", 3}, &out)); /* The length rules. */
}

static void a_full_buffer_is_refused(void **state)
{
    (void)state;
    out.max = 5;
    assert_false(pay_base64_decode(PAY_STR("Zm9vYmFy"), &out));
    assert_int_equal(out.len, 0);
    pay_buf_reset(&out);
    out.max = 6;
    assert_true(pay_base64_decode(PAY_STR("Zm9vYmFy"), &out));
    pay_buf_reset(&out);
    pay_base64_encode((struct pay_bytes){(const uint8_t *)"foobar", 6}, &out);
    assert_true(out.failed);
    assert_int_equal(out.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_row_both_ways, make, drop),
        cmocka_unit_test_setup_teardown(every_byte_survives_at_every_length, make, drop),
        cmocka_unit_test_setup_teardown(everything_else_is_refused, make, drop),
        cmocka_unit_test_setup_teardown(a_full_buffer_is_refused, make, drop),
    };
    return cmocka_run_group_tests_name("base64", tests, NULL, NULL);
}
