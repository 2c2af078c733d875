/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: digests are SHA-256, in one call or in parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/crypto/sha256.h"

#include <string.h>

static const struct {
    const char *text;
    const char *hex;
} rows[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
};

static struct pay_bytes bytes_of(const char *text)
{
    return (struct pay_bytes){(const uint8_t *)text, strlen(text)};
}

static void every_vector(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char hex[PAY_SHA256_HEX];
        pay_sha256_hex(bytes_of(rows[i].text), hex);
        assert_string_equal(hex, rows[i].hex);
    }
}

static void parts_are_joined(void **state)
{
    (void)state;
    uint8_t whole[PAY_SHA256_BYTES];
    uint8_t parted[PAY_SHA256_BYTES];
    const struct pay_bytes parts[] = {bytes_of("a"), bytes_of(""), {NULL, 0}, bytes_of("bc")};

    pay_sha256(bytes_of("abc"), whole);
    pay_sha256_parts(parts, 4, parted);
    assert_memory_equal(whole, parted, sizeof whole);
    pay_sha256_parts(parts, 3, parted);
    assert_memory_not_equal(whole, parted, sizeof whole);
    pay_sha256_parts(NULL, 0, parted);
    assert_memory_equal(parted, "\xe3\xb0\xc4\x42", 4); /* Of nothing at all. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_vector),
        cmocka_unit_test(parts_are_joined),
    };
    return cmocka_run_group_tests_name("sha256", tests, NULL, NULL);
}
