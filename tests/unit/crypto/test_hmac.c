/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: HMACs are those of RFC 4231 and of Stripe's own tests; comparing takes every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/file.h"
#include "common/crypto/hmac.h"
#include "common/json/json.h"

#include <stdio.h>
#include <string.h>

#define FILE_MAX_BYTES 65536

static const struct {
    const char *key_hex; /* Repeated key_times. */
    size_t key_times;
    const char *data_hex; /* NULL: data is text. */
    size_t data_times;
    const char *text;
    const char *mac;
} rfc4231[] = {
    {"0b", 20, NULL, 0, "Hi There",
     "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
    {"4a656665", 1, NULL, 0, "what do ya want for nothing?",
     "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
    {"aa", 20, "dd", 50, NULL, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
    {"0102030405060708090a0b0c0d0e0f10111213141516171819", 1, "cd", 50, NULL,
     "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
    {"aa", 131, NULL, 0, "Test Using Larger Than Block-Size Key - Hash Key First",
     "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
    {"aa", 131, NULL, 0,
     "This is a test using a larger than block-size key and a larger than block-size data. The key "
     "needs to be hashed before being used by the HMAC algorithm.",
     "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
};

static struct pay_bytes bytes_of(const char *text)
{
    return (struct pay_bytes){(const uint8_t *)text, strlen(text)};
}

static struct pay_bytes repeat(const char *hex, size_t times, uint8_t *dst)
{
    const size_t len = strlen(hex) / 2;
    for (size_t i = 0; i < times; i++) {
        assert_true(pay_hex_decode(pay_str_of(hex), dst + i * len, len));
    }
    return (struct pay_bytes){dst, len * times};
}

static void assert_mac(const uint8_t mac[PAY_HMAC_BYTES], const char *wanted)
{
    char hex[2 * PAY_HMAC_BYTES + 1];
    pay_hex_encode((struct pay_bytes){mac, PAY_HMAC_BYTES}, hex);
    assert_string_equal(hex, wanted);
}

static void every_vector_of_rfc_4231(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rfc4231 / sizeof rfc4231[0]; i++) {
        uint8_t key_memory[200];
        uint8_t data_memory[200];
        uint8_t mac[PAY_HMAC_BYTES];
        const struct pay_bytes key = repeat(rfc4231[i].key_hex, rfc4231[i].key_times, key_memory);
        const struct pay_bytes data =
            rfc4231[i].data_hex == NULL
                ? bytes_of(rfc4231[i].text)
                : repeat(rfc4231[i].data_hex, rfc4231[i].data_times, data_memory);

        pay_hmac_sha256(key, data, mac);
        assert_mac(mac, rfc4231[i].mac);
    }
}

static struct pay_bytes member(const struct pay_json *doc, const char *name)
{
    const struct pay_str text = pay_json_str(pay_json_member(pay_json_root(doc), name));
    assert_non_null(text.ptr);
    return (struct pay_bytes){(const uint8_t *)text.ptr, text.len};
}

static void check_file(const char *name)
{
    char path[400];
    uint8_t text[FILE_MAX_BYTES];
    uint8_t mac[PAY_HMAC_BYTES];
    struct pay_err err = {0};
    struct pay_json *doc = NULL;
    size_t len = 0;

    (void)snprintf(path, sizeof path, "%s/vectors/stripe/%s", PAY_TEST_DATA, name);
    assert_int_equal(pay_file_read(path, text, sizeof text, &len, &err), PAY_OK);
    assert_int_equal(pay_json_parse((struct pay_bytes){text, len}, sizeof text, &doc, &err),
                     PAY_OK);
    pay_hmac_sha256(member(doc, "secret"), member(doc, "payload"), mac);
    assert_mac(mac, (const char *)member(doc, "expected").ptr);
    assert_null(pay_json_free(doc));
}

static void every_bare_vector_of_stripe(void **state)
{
    (void)state;
    check_file("node_hmac_json.json");
    check_file("node_hmac_empty.json");
    check_file("node_hmac_emoji.json");
}

static void parts_are_joined(void **state)
{
    (void)state;
    uint8_t mac[PAY_HMAC_BYTES];
    const struct pay_bytes parts[] = {bytes_of("what do ya "),
                                      {NULL, 0},
                                      bytes_of("want for "),
                                      bytes_of(""),
                                      bytes_of("nothing?")};

    pay_hmac_sha256_parts(bytes_of("Jefe"), parts, 5, mac);
    assert_mac(mac, rfc4231[1].mac);
}

static void comparing_takes_every_byte(void **state)
{
    (void)state;
    uint8_t a[PAY_HMAC_BYTES];
    uint8_t b[PAY_HMAC_BYTES];

    pay_hmac_sha256(bytes_of("k"), bytes_of("d"), a);
    for (size_t i = 0; i < sizeof a; i++) {
        for (int bit = 0; bit < 8; bit++) {
            memcpy(b, a, sizeof b);
            b[i] = (uint8_t)(b[i] ^ 1 << bit);
            assert_false(
                pay_mac_eq((struct pay_bytes){a, sizeof a}, (struct pay_bytes){b, sizeof b}));
        }
    }
    memcpy(b, a, sizeof b);
    assert_true(pay_mac_eq((struct pay_bytes){a, sizeof a}, (struct pay_bytes){b, sizeof b}));
}

static void what_is_no_mac_equals_nothing(void **state)
{
    (void)state;
    const uint8_t a[2] = {1, 2};

    assert_false(pay_mac_eq((struct pay_bytes){a, 2}, (struct pay_bytes){a, 1}));
    assert_false(pay_mac_eq((struct pay_bytes){a, 0}, (struct pay_bytes){a, 0}));
    assert_false(pay_mac_eq((struct pay_bytes){NULL, 0}, (struct pay_bytes){NULL, 0}));
    assert_false(pay_mac_eq((struct pay_bytes){a, 2}, (struct pay_bytes){NULL, 2}));
    assert_false(pay_mac_eq((struct pay_bytes){NULL, 2}, (struct pay_bytes){a, 2}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_vector_of_rfc_4231),
        cmocka_unit_test(every_bare_vector_of_stripe),
        cmocka_unit_test(parts_are_joined),
        cmocka_unit_test(comparing_takes_every_byte),
        cmocka_unit_test(what_is_no_mac_equals_nothing),
    };
    return cmocka_run_group_tests_name("hmac", tests, NULL, NULL);
}
