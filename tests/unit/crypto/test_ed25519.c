/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: signatures are those of RFC 8032; only Ed25519 keys in PEM are taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/file.h"
#include "common/crypto/base64.h"
#include "common/crypto/ed25519.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    struct pay_ed25519_private *key;
    struct pay_ed25519_public *public_key;
    struct pay_buf private_pem;
    struct pay_buf public_pem;
    struct pay_err err;
} fixture;

static int make(void **state)
{
    (void)state;
    memset(&fixture, 0, sizeof fixture);
    fixture.private_pem = pay_buf_make(PAY_ED25519_PEM_MAX);
    fixture.public_pem = pay_buf_make(PAY_ED25519_PEM_MAX);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    fixture.key = pay_ed25519_private_free(fixture.key);
    fixture.public_key = pay_ed25519_public_free(fixture.public_key);
    pay_buf_free(&fixture.private_pem);
    pay_buf_free(&fixture.public_pem);
    return 0;
}

static const struct {
    const char *seed, *public_key, *message, *signature;
} rfc8032[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b"
     "4"
     "6bd25bf5f0595bbe24655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11"
     "d"
     "8c387b2eaeb4302aeeb00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc"
     "6"
     "594a7c15e9716ed28dc027beceea1ec40a"},
};

static struct pay_bytes bytes_of(const char *text)
{
    return (struct pay_bytes){(const uint8_t *)text, strlen(text)};
}

/* PEM around a fixed DER head and 32 raw bytes. */
static void write_pem(const char *label, const char *der_head_hex, const char *raw_hex,
                      struct pay_buf *out)
{
    uint8_t der[64];
    const size_t head = strlen(der_head_hex) / 2;

    assert_true(pay_hex_decode(pay_str_of(der_head_hex), der, head));
    assert_true(pay_hex_decode(pay_str_of(raw_hex), der + head, 32));
    pay_buf_reset(out);
    pay_buf_printf(out, "-----BEGIN %s-----\n", label);
    pay_base64_encode((struct pay_bytes){der, head + 32}, out);
    pay_buf_printf(out, "\n-----END %s-----\n", label);
}

static void load_pair(const char *seed_hex, const char *public_hex)
{
    (void)drop(NULL);
    write_pem("PRIVATE KEY", "302e020100300506032b657004220420", seed_hex, &fixture.private_pem);
    write_pem("PUBLIC KEY", "302a300506032b6570032100", public_hex, &fixture.public_pem);
    assert_int_equal(
        pay_ed25519_private_parse(pay_buf_str(&fixture.private_pem), &fixture.key, &fixture.err),
        PAY_OK);
    assert_int_equal(pay_ed25519_public_parse(pay_buf_str(&fixture.public_pem), &fixture.public_key,
                                              &fixture.err),
                     PAY_OK);
}

static void every_vector_of_rfc_8032(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rfc8032 / sizeof rfc8032[0]; i++) {
        uint8_t memory[2];
        uint8_t signature[PAY_ED25519_SIGNATURE_BYTES];
        char hex[2 * PAY_ED25519_SIGNATURE_BYTES + 1];
        const struct pay_bytes message = {memory, strlen(rfc8032[i].message) / 2};

        assert_true(pay_hex_decode(pay_str_of(rfc8032[i].message), memory, message.len));
        load_pair(rfc8032[i].seed, rfc8032[i].public_key);
        pay_ed25519_sign(fixture.key, message, signature);
        pay_hex_encode((struct pay_bytes){signature, sizeof signature}, hex);
        assert_string_equal(hex, rfc8032[i].signature);
        assert_true(pay_ed25519_verify(fixture.public_key, message,
                                       (struct pay_bytes){signature, sizeof signature}));
    }
}

static void anything_else_does_not_verify(void **state)
{
    (void)state;
    uint8_t signature[PAY_ED25519_SIGNATURE_BYTES + 1] = {0};
    const struct pay_bytes message = bytes_of("command");

    load_pair(rfc8032[0].seed, rfc8032[0].public_key);
    pay_ed25519_sign(fixture.key, message, signature);
    for (size_t i = 0; i < PAY_ED25519_SIGNATURE_BYTES; i++) {
        signature[i] ^= 0x10;
        assert_false(
            pay_ed25519_verify(fixture.public_key, message, (struct pay_bytes){signature, 64}));
        signature[i] ^= 0x10;
    }
    const struct pay_bytes good = {signature, 64};
    assert_true(pay_ed25519_verify(fixture.public_key, message, good));
    assert_false(pay_ed25519_verify(fixture.public_key, bytes_of("Command"), good));
    assert_false(pay_ed25519_verify(fixture.public_key, bytes_of(""), good));
    assert_false(pay_ed25519_verify(fixture.public_key, (struct pay_bytes){NULL, 0}, good));
    assert_false(
        pay_ed25519_verify(fixture.public_key, message, (struct pay_bytes){signature, 63}));
    assert_false(
        pay_ed25519_verify(fixture.public_key, message, (struct pay_bytes){signature, 65}));
    assert_false(pay_ed25519_verify(fixture.public_key, message, (struct pay_bytes){NULL, 0}));
    assert_false(pay_ed25519_verify(fixture.public_key, message, (struct pay_bytes){NULL, 64}));
    load_pair(rfc8032[1].seed, rfc8032[1].public_key);
    assert_false(pay_ed25519_verify(fixture.public_key, message, good));
}

static void a_generated_pair_fits_together(void **state)
{
    (void)state;
    uint8_t signature[PAY_ED25519_SIGNATURE_BYTES];

    assert_int_equal(pay_ed25519_generate(&fixture.private_pem, &fixture.public_pem, &fixture.err),
                     PAY_OK);
    assert_int_equal(
        pay_ed25519_private_parse(pay_buf_str(&fixture.private_pem), &fixture.key, &fixture.err),
        PAY_OK);
    assert_int_equal(pay_ed25519_public_parse(pay_buf_str(&fixture.public_pem), &fixture.public_key,
                                              &fixture.err),
                     PAY_OK);
    pay_ed25519_sign(fixture.key, bytes_of("m"), signature);
    assert_true(
        pay_ed25519_verify(fixture.public_key, bytes_of("m"), (struct pay_bytes){signature, 64}));
    assert_false(pay_str_eq(pay_buf_str(&fixture.private_pem), pay_buf_str(&fixture.public_pem)));
}

static const char *const wrong_keys[] = {
    "",
    "no key",
    "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    /* X25519: the same curve, but a key for agreement, not for signing. */
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VuBCIEIHcHbQpzGKV9PBbBclGyZkXfTC+H68CZKrF3+6UduSwq\n"
    "-----END PRIVATE KEY-----\n",
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VuAyEAhSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\n"
    "-----END PUBLIC KEY-----\n",
    /* P-256. */
    "-----BEGIN PUBLIC KEY-----\n"
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt\n"
    "6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==\n"
    "-----END PUBLIC KEY-----\n",
};

static void any_other_key_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong_keys / sizeof wrong_keys[0]; i++) {
        assert_int_equal(
            pay_ed25519_private_parse(pay_str_of(wrong_keys[i]), &fixture.key, &fixture.err),
            PAY_FATAL);
        assert_string_equal(fixture.err.text, "not the PEM of an Ed25519 private key");
        assert_int_equal(
            pay_ed25519_public_parse(pay_str_of(wrong_keys[i]), &fixture.public_key, &fixture.err),
            PAY_FATAL);
        assert_string_equal(fixture.err.text, "not the PEM of an Ed25519 public key");
    }
    assert_null(fixture.key);
    assert_null(fixture.public_key);
}

static void a_private_and_a_public_key_are_not_mixed_up(void **state)
{
    (void)state;
    assert_int_equal(pay_ed25519_generate(&fixture.private_pem, &fixture.public_pem, &fixture.err),
                     PAY_OK);
    assert_int_equal(
        pay_ed25519_private_parse(pay_buf_str(&fixture.public_pem), &fixture.key, &fixture.err),
        PAY_FATAL);
    assert_int_equal(pay_ed25519_public_parse(pay_buf_str(&fixture.private_pem),
                                              &fixture.public_key, &fixture.err),
                     PAY_FATAL);
}

static void files_are_private_and_never_replaced(void **state)
{
    (void)state;
    char folder[] = "/tmp/pay_ed25519_XXXXXX";
    char private_path[64];
    char public_path[64];
    struct stat st = {0};

    assert_non_null(mkdtemp(folder));
    (void)snprintf(private_path, sizeof private_path, "%s/a.key", folder);
    (void)snprintf(public_path, sizeof public_path, "%s/a.pub", folder);
    const enum pay_status made =
        pay_ed25519_generate_files(private_path, public_path, &fixture.err);
    (void)stat(private_path, &st);
    const enum pay_status got_private =
        pay_ed25519_private_load(private_path, &fixture.key, &fixture.err);
    const enum pay_status got_public =
        pay_ed25519_public_load(public_path, &fixture.public_key, &fixture.err);
    struct pay_ed25519_public *none = NULL;
    const enum pay_status mixed = pay_ed25519_public_load(private_path, &none, &fixture.err);
    const bool names_path = strstr(fixture.err.text, private_path) != NULL;
    const enum pay_status again =
        pay_ed25519_generate_files(private_path, public_path, &fixture.err);
    (void)unlink(private_path);
    (void)unlink(public_path);
    (void)rmdir(folder);

    assert_int_equal(made, PAY_OK);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(got_private, PAY_OK);
    assert_int_equal(got_public, PAY_OK);
    assert_int_equal(mixed, PAY_FATAL);
    assert_true(names_path);
    assert_int_equal(again, PAY_FATAL);
    assert_int_equal(pay_ed25519_private_load(private_path, &fixture.key, &fixture.err), PAY_FATAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_vector_of_rfc_8032, make, drop),
        cmocka_unit_test_setup_teardown(anything_else_does_not_verify, make, drop),
        cmocka_unit_test_setup_teardown(a_generated_pair_fits_together, make, drop),
        cmocka_unit_test_setup_teardown(any_other_key_is_refused, make, drop),
        cmocka_unit_test_setup_teardown(a_private_and_a_public_key_are_not_mixed_up, make, drop),
        cmocka_unit_test_setup_teardown(files_are_private_and_never_replaced, make, drop),
    };
    return cmocka_run_group_tests_name("ed25519", tests, NULL, NULL);
}
