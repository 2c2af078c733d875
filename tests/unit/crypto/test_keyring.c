/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: several keys open, one seals; a bad file is refused by its line; rotation loses nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/file.h"
#include "common/crypto/keyring.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEX_A "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HEX_B "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
#define HEAD "payfact-keyring-1\n"

static struct {
    struct pay_keyring *ring;
    struct pay_keyring *next;
    struct pay_buf sealed;
    struct pay_buf opened;
    struct pay_buf text;
    struct pay_err err;
} fixture;

static const struct pay_bytes aad = {(const uint8_t *)"aad", 3};
static const struct pay_bytes plain = {(const uint8_t *)"plain", 5};

static int make(void **state)
{
    (void)state;
    memset(&fixture, 0, sizeof fixture);
    fixture.sealed = pay_buf_make(1000);
    fixture.opened = pay_buf_make(1000);
    fixture.text = pay_buf_make(PAY_KEYRING_FILE_MAX);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    fixture.ring = pay_keyring_free(fixture.ring);
    fixture.next = pay_keyring_free(fixture.next);
    pay_buf_free(&fixture.sealed);
    pay_buf_free(&fixture.opened);
    pay_buf_free(&fixture.text);
    return 0;
}

static enum pay_status parse(const char *text)
{
    fixture.ring = pay_keyring_free(fixture.ring);
    return pay_keyring_parse(pay_str_of(text), &fixture.ring, &fixture.err);
}

static enum pay_status seal(struct pay_keyring *ring, struct pay_str *ret_id)
{
    pay_buf_reset(&fixture.sealed);
    return pay_keyring_seal(ring, aad, plain, ret_id, &fixture.sealed, &fixture.err);
}

static enum pay_status open_with(const struct pay_keyring *ring, struct pay_str id)
{
    pay_buf_reset(&fixture.opened);
    return pay_keyring_open(ring, id, aad, pay_buf_bytes(&fixture.sealed), &fixture.opened,
                            &fixture.err);
}

static void the_current_key_seals_and_any_opens(void **state)
{
    (void)state;
    struct pay_str id = {NULL, 0};

    assert_int_equal(parse(HEAD "# two\n\nkey old " HEX_A "\n\tcurrent  new\t" HEX_B "\r\n"),
                     PAY_OK);
    assert_string_equal(pay_keyring_current(fixture.ring).ptr, "new");
    assert_int_equal(seal(fixture.ring, &id), PAY_OK);
    assert_string_equal(id.ptr, "new");
    assert_int_equal(open_with(fixture.ring, id), PAY_OK);
    assert_true(pay_bytes_eq(pay_buf_bytes(&fixture.opened), plain));

    assert_int_equal(open_with(fixture.ring, PAY_STR("old")), PAY_REJECT); /* A key, but not its. */
    assert_int_equal(open_with(fixture.ring, PAY_STR("gone")), PAY_REJECT);
    assert_string_equal(fixture.err.text, "the keyring has no key \"gone\"");
    assert_int_equal(open_with(fixture.ring, (struct pay_str){NULL, 0}), PAY_REJECT);
}

static const struct {
    const char *text;
    const char *refusal;
} rows[] = {
    {"", "first line is not \"payfact-keyring-1\""},
    {"payfact-keyring-2\ncurrent a " HEX_A "\n", "first line is not \"payfact-keyring-1\""},
    {HEAD, "no key is current"},
    {HEAD "key a " HEX_A "\n", "no key is current"},
    {HEAD "current a " HEX_A "\ncurrent b " HEX_B "\n", "line 3 is a second current key"},
    {HEAD "current a " HEX_A "\nkey a " HEX_B "\n", "line 3 repeats a key id"},
    {HEAD "keys a " HEX_A "\n", "line 2 begins with neither \"current\" nor \"key\""},
    {HEAD "current a " HEX_A "ff\n", "line 2 does not end with 64 hex digits"},
    {HEAD "current a 0011\n", "line 2 does not end with 64 hex digits"},
    {HEAD "current a\n", "line 2 does not end with 64 hex digits"},
    {HEAD "current a " HEX_A " b\n", "line 2 does not end with 64 hex digits"},
    {HEAD "current\n", "line 2 has no valid key id"},
    {HEAD "current a/b " HEX_A "\n", "line 2 has no valid key id"},
    {HEAD "current a2345678901234567890123456789012 " HEX_A "\n", "line 2 has no valid key id"},
};

static void every_bad_file_is_refused_by_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(parse(rows[i].text), PAY_FATAL);
        assert_string_equal(fixture.err.text, rows[i].refusal);
        assert_null(fixture.ring);
    }
    assert_int_equal(parse(HEAD "current a234567890123456789012345678901 " HEX_A), PAY_OK);
}

static void the_number_of_keys_is_bounded(void **state)
{
    (void)state;
    pay_buf_add_c(&fixture.text, HEAD "current k0 " HEX_A "\n");
    for (int i = 1; i < PAY_KEYRING_KEYS_MAX; i++) {
        pay_buf_printf(&fixture.text, "key k%d " HEX_B "\n", i);
    }
    assert_int_equal(parse(pay_buf_str(&fixture.text).ptr), PAY_OK);
    struct pay_buf *out = &fixture.opened; /* A full ring takes no new key. */
    assert_int_equal(pay_keyring_generate(fixture.ring, "new", out, &fixture.err), PAY_FATAL);
    pay_buf_add_c(&fixture.text, "key more " HEX_B "\n");
    assert_int_equal(parse(pay_buf_str(&fixture.text).ptr), PAY_FATAL);
    assert_string_equal(fixture.err.text, "line 66 is one key too many");
}

static void rotation_keeps_what_was_sealed_readable(void **state)
{
    (void)state;
    struct pay_str old_id = {NULL, 0};
    struct pay_str new_id = {NULL, 0};

    assert_int_equal(pay_keyring_generate(NULL, "k1", &fixture.text, &fixture.err), PAY_OK);
    assert_int_equal(parse(pay_buf_str(&fixture.text).ptr), PAY_OK);
    assert_int_equal(seal(fixture.ring, &old_id), PAY_OK);

    pay_buf_reset(&fixture.text);
    assert_int_equal(pay_keyring_generate(fixture.ring, "k2", &fixture.text, &fixture.err), PAY_OK);
    assert_int_equal(pay_keyring_parse(pay_buf_str(&fixture.text), &fixture.next, &fixture.err),
                     PAY_OK);
    assert_string_equal(pay_keyring_current(fixture.next).ptr, "k2");
    assert_int_equal(open_with(fixture.next, old_id), PAY_OK);

    assert_int_equal(seal(fixture.next, &new_id), PAY_OK);
    assert_string_equal(new_id.ptr, "k2");
    assert_int_equal(open_with(fixture.next, new_id), PAY_OK);
    assert_int_equal(open_with(fixture.ring, new_id), PAY_REJECT); /* Has not got it yet. */
}

static void generated_keys_differ_and_ids_are_checked(void **state)
{
    (void)state;
    struct pay_buf *first = &fixture.sealed;
    struct pay_buf *second = &fixture.opened;

    assert_int_equal(pay_keyring_generate(NULL, "k1", first, &fixture.err), PAY_OK);
    assert_int_equal(pay_keyring_generate(NULL, "k1", second, &fixture.err), PAY_OK);
    assert_int_equal(first->len, second->len);
    assert_memory_not_equal(first->data, second->data, first->len);

    assert_int_equal(pay_keyring_parse(pay_buf_str(first), &fixture.ring, &fixture.err), PAY_OK);
    assert_int_equal(pay_keyring_generate(fixture.ring, "k1", second, &fixture.err), PAY_FATAL);
    assert_int_equal(pay_keyring_generate(NULL, "a b", second, &fixture.err), PAY_FATAL);
    assert_int_equal(pay_keyring_generate(NULL, "", second, &fixture.err), PAY_FATAL);
    second->max = second->len + 10;
    assert_int_equal(pay_keyring_generate(NULL, "k3", second, &fixture.err), PAY_FATAL);
}

static void seals_are_counted_and_end(void **state)
{
    (void)state;
    struct pay_str id = {NULL, 0};

    assert_true(PAY_KEYRING_SEALS_WARN < PAY_KEYRING_SEALS_MAX);
    assert_true(PAY_KEYRING_SEALS_MAX <= (UINT64_C(1) << 31) / 2);
    assert_int_equal(parse(HEAD "current a " HEX_A), PAY_OK);
    pay_keyring_limit(fixture.ring, 2, 3);
    assert_int_equal(seal(fixture.ring, &id), PAY_OK);
    assert_false(pay_keyring_wants_rotation(fixture.ring));
    assert_int_equal(seal(fixture.ring, &id), PAY_OK);
    assert_true(pay_keyring_wants_rotation(fixture.ring));
    assert_int_equal(seal(fixture.ring, &id), PAY_OK);
    assert_int_equal(open_with(fixture.ring, id), PAY_OK);

    assert_int_equal(seal(fixture.ring, &id), PAY_FATAL);
    assert_string_equal(fixture.err.text, "key \"a\" has sealed 3 messages: rotate it");
    assert_int_equal(fixture.sealed.len, 0);
    assert_int_equal(pay_keyring_seals(fixture.ring), 3);
    assert_true(pay_keyring_wants_rotation(fixture.ring));
}

static atomic_int sealed_by_all;

static void *seal_until_refused(void *ring)
{
    struct pay_buf out = pay_buf_make(1000);
    struct pay_str id = {NULL, 0};

    while (pay_keyring_seal(ring, aad, plain, &id, &out, NULL) == PAY_OK) {
        pay_buf_reset(&out);
        atomic_fetch_add(&sealed_by_all, 1);
    }
    pay_buf_free(&out);
    return NULL;
}

static void threads_share_the_count_exactly(void **state)
{
    (void)state;
    pthread_t threads[4];

    assert_int_equal(parse(HEAD "current a " HEX_A), PAY_OK);
    pay_keyring_limit(fixture.ring, 1, 2001);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, seal_until_refused, fixture.ring), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(atomic_load(&sealed_by_all), 2001);
}

static void a_file_is_loaded_and_named_when_bad(void **state)
{
    (void)state;
    char path[] = "/tmp/pay_keyring_XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);

    assert_int_equal(pay_keyring_generate(NULL, "k1", &fixture.text, &fixture.err), PAY_OK);
    enum pay_status wrote = pay_file_write(path, pay_buf_bytes(&fixture.text), false, NULL);
    const enum pay_status good = pay_keyring_load(path, &fixture.ring, &fixture.err);
    pay_buf_add_c(&fixture.text, "current x " HEX_A "\n");
    const enum pay_status again = pay_file_write(path, pay_buf_bytes(&fixture.text), false, NULL);
    const enum pay_status bad = pay_keyring_load(path, &fixture.next, &fixture.err);
    (void)unlink(path);

    assert_int_equal(wrote, PAY_OK);
    assert_int_equal(good, PAY_OK);
    assert_int_equal(again, PAY_OK);
    assert_int_equal(bad, PAY_FATAL);
    assert_non_null(strstr(fixture.err.text, path));
    assert_non_null(strstr(fixture.err.text, "line 3 is a second current key"));
    assert_null(strstr(fixture.err.text, "0011"));
    assert_int_equal(pay_keyring_load(path, &fixture.next, &fixture.err), PAY_FATAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_current_key_seals_and_any_opens, make, drop),
        cmocka_unit_test_setup_teardown(every_bad_file_is_refused_by_its_line, make, drop),
        cmocka_unit_test_setup_teardown(the_number_of_keys_is_bounded, make, drop),
        cmocka_unit_test_setup_teardown(rotation_keeps_what_was_sealed_readable, make, drop),
        cmocka_unit_test_setup_teardown(generated_keys_differ_and_ids_are_checked, make, drop),
        cmocka_unit_test_setup_teardown(seals_are_counted_and_end, make, drop),
        cmocka_unit_test_setup_teardown(threads_share_the_count_exactly, make, drop),
        cmocka_unit_test_setup_teardown(a_file_is_loaded_and_named_when_bad, make, drop),
    };
    return cmocka_run_group_tests_name("keyring", tests, NULL, NULL);
}
