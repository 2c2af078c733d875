/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: what is sealed opens only whole, under its key and its additional data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/crypto/aead.h"

#include <string.h>

static struct {
    struct pay_buf sealed;
    struct pay_buf opened;
    struct pay_err err;
    uint8_t key[PAY_AEAD_KEY_BYTES];
} fixture;

static const struct pay_bytes aad = {(const uint8_t *)"stripe/acct_1/evt_1", 19};
static const struct pay_bytes plain = {(const uint8_t *)"{\"id\":\"evt_1\"}", 14};

static int make(void **state)
{
    (void)state;
    memset(&fixture, 0, sizeof fixture);
    fixture.sealed = pay_buf_make(1000);
    fixture.opened = pay_buf_make(1000);
    memset(fixture.key, 7, sizeof fixture.key);
    return pay_aead_seal(fixture.key, aad, plain, &fixture.sealed, &fixture.err) == PAY_OK ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    pay_buf_free(&fixture.sealed);
    pay_buf_free(&fixture.opened);
    return 0;
}

static enum pay_status open_it(struct pay_bytes with_aad)
{
    pay_buf_reset(&fixture.opened);
    return pay_aead_open(fixture.key, with_aad, pay_buf_bytes(&fixture.sealed), &fixture.opened,
                         &fixture.err);
}

static void assert_refused(struct pay_bytes with_aad)
{
    assert_int_equal(open_it(with_aad), PAY_REJECT);
    assert_int_equal(fixture.err.status, PAY_REJECT);
    assert_int_equal(fixture.opened.len, 0);
}

static void it_opens(void **state)
{
    (void)state;
    assert_int_equal(fixture.sealed.len, plain.len + PAY_AEAD_OVERHEAD);
    assert_int_equal(open_it(aad), PAY_OK);
    assert_true(pay_bytes_eq(pay_buf_bytes(&fixture.opened), plain));
}

/* McGrew and Viega, "The Galois/Counter Mode of Operation", test case 16. */
static void the_known_vector_opens(void **state)
{
    (void)state;
    static const char sealed_hex[] =
        "cafebabefacedbaddecaf888"
        "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
        "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
        "76fc6ece0f4e1768cddf8853bb2d551b";
    static const char plain_hex[] =
        "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
        "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
    uint8_t key[PAY_AEAD_KEY_BYTES];
    uint8_t known_aad[20];
    uint8_t sealed[60 + PAY_AEAD_OVERHEAD];
    char hex[121];

    assert_true(pay_hex_decode(
        PAY_STR("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"), key, 32));
    assert_true(pay_hex_decode(PAY_STR("feedfacedeadbeeffeedfacedeadbeefabaddad2"), known_aad, 20));
    assert_true(pay_hex_decode(pay_str_of(sealed_hex), sealed, sizeof sealed));
    assert_int_equal(pay_aead_open(key, (struct pay_bytes){known_aad, 20},
                                   (struct pay_bytes){sealed, sizeof sealed}, &fixture.opened,
                                   &fixture.err),
                     PAY_OK);
    pay_hex_encode(pay_buf_bytes(&fixture.opened), hex);
    assert_string_equal(hex, plain_hex);
}

static void a_bit_of_nonce_text_or_tag_changed_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < fixture.sealed.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            fixture.sealed.data[i] = (uint8_t)(fixture.sealed.data[i] ^ 1 << bit);
            assert_refused(aad);
            fixture.sealed.data[i] = (uint8_t)(fixture.sealed.data[i] ^ 1 << bit);
        }
    }
    assert_int_equal(open_it(aad), PAY_OK); /* The changes were all undone. */
}

static void other_additional_data_is_refused(void **state)
{
    (void)state;
    assert_refused((struct pay_bytes){(const uint8_t *)"stripe/acct_1/evt_2", 19});
    assert_refused((struct pay_bytes){aad.ptr, aad.len - 1});
    assert_refused((struct pay_bytes){NULL, 0});
}

static void another_key_is_refused(void **state)
{
    (void)state;
    fixture.key[31] ^= 1;
    assert_refused(aad);
}

static void every_cut_is_refused(void **state)
{
    (void)state;
    for (size_t len = 0; len < fixture.sealed.len; len++) {
        pay_buf_reset(&fixture.opened);
        assert_int_equal(pay_aead_open(fixture.key, aad,
                                       (struct pay_bytes){fixture.sealed.data, len},
                                       &fixture.opened, &fixture.err),
                         PAY_REJECT);
        assert_int_equal(fixture.opened.len, 0);
        assert_false(fixture.opened.failed); /* Refused for what it is, not for its size. */
    }
    pay_buf_add_char(&fixture.sealed, 0);
    assert_refused(aad);
}

static void a_refusal_leaves_what_was_there_and_nothing_more(void **state)
{
    (void)state;
    pay_buf_add_c(&fixture.opened, "before");
    fixture.sealed.data[PAY_AEAD_NONCE_BYTES] ^= 1;
    assert_int_equal(pay_aead_open(fixture.key, aad, pay_buf_bytes(&fixture.sealed),
                                   &fixture.opened, &fixture.err),
                     PAY_REJECT);
    assert_string_equal(pay_buf_str(&fixture.opened).ptr, "before");
    for (size_t i = 0; i < plain.len; i++) { /* Unauthenticated bytes are wiped, not just cut. */
        assert_int_equal(fixture.opened.data[6 + i], 0);
    }
}

static void nonces_differ(void **state)
{
    (void)state;
    struct pay_buf *again = &fixture.opened;
    assert_int_equal(pay_aead_seal(fixture.key, aad, plain, again, &fixture.err), PAY_OK);
    assert_memory_not_equal(again->data, fixture.sealed.data, PAY_AEAD_NONCE_BYTES);
    assert_memory_not_equal(again->data + PAY_AEAD_NONCE_BYTES,
                            fixture.sealed.data + PAY_AEAD_NONCE_BYTES, plain.len);
}

static void empty_text_and_no_additional_data_are_fine(void **state)
{
    (void)state;
    const struct pay_bytes none = {NULL, 0};

    pay_buf_reset(&fixture.sealed);
    assert_int_equal(pay_aead_seal(fixture.key, none, none, &fixture.sealed, &fixture.err), PAY_OK);
    assert_int_equal(fixture.sealed.len, PAY_AEAD_OVERHEAD);
    assert_int_equal(open_it(none), PAY_OK);
    assert_int_equal(fixture.opened.len, 0);
    assert_refused(aad);
}

static void a_full_buffer_is_refused(void **state)
{
    (void)state;
    struct pay_buf *small = &fixture.opened;

    small->max = plain.len + PAY_AEAD_OVERHEAD - 1;
    assert_int_equal(pay_aead_seal(fixture.key, aad, plain, small, &fixture.err), PAY_REJECT);
    assert_int_equal(small->len, 0);
    pay_buf_reset(small);
    small->max = plain.len + PAY_AEAD_OVERHEAD;
    assert_int_equal(pay_aead_seal(fixture.key, aad, plain, small, &fixture.err), PAY_OK);

    small->max = plain.len - 1;
    assert_int_equal(open_it(aad), PAY_REJECT);
    small->max = plain.len;
    assert_int_equal(open_it(aad), PAY_OK);
}

static void a_length_beyond_the_maximum_is_refused_unread(void **state)
{
    (void)state;
    const struct pay_bytes huge = {plain.ptr, PAY_AEAD_PLAIN_MAX + 1};
    assert_int_equal(pay_aead_seal(fixture.key, aad, huge, &fixture.opened, &fixture.err),
                     PAY_REJECT);
    assert_false(fixture.opened.failed); /* Refused by its length, before any buffer. */
    assert_int_equal(pay_aead_seal(fixture.key, huge, plain, &fixture.opened, &fixture.err),
                     PAY_REJECT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_opens, make, drop),
        cmocka_unit_test_setup_teardown(the_known_vector_opens, make, drop),
        cmocka_unit_test_setup_teardown(a_bit_of_nonce_text_or_tag_changed_is_refused, make, drop),
        cmocka_unit_test_setup_teardown(other_additional_data_is_refused, make, drop),
        cmocka_unit_test_setup_teardown(another_key_is_refused, make, drop),
        cmocka_unit_test_setup_teardown(every_cut_is_refused, make, drop),
        cmocka_unit_test_setup_teardown(a_refusal_leaves_what_was_there_and_nothing_more, make,
                                        drop),
        cmocka_unit_test_setup_teardown(nonces_differ, make, drop),
        cmocka_unit_test_setup_teardown(empty_text_and_no_additional_data_are_fine, make, drop),
        cmocka_unit_test_setup_teardown(a_full_buffer_is_refused, make, drop),
        cmocka_unit_test_setup_teardown(a_length_beyond_the_maximum_is_refused_unread, make, drop),
    };
    return cmocka_run_group_tests_name("aead", tests, NULL, NULL);
}
