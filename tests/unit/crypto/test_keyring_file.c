/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: a changed file is a new ring once; a bad one, and none for a moment, keep the old one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/file.h"
#include "common/crypto/keyring_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEX_A "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HEX_B "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
#define HEAD "payfact-keyring-1\n"
#define ONE HEAD "current one " HEX_A "\n"
#define TWO HEAD "key one " HEX_A "\ncurrent two " HEX_B "\n"

static struct {
    char dir[64], path[128];
    struct pay_keyring_file file;
    struct pay_keyring *ring, *next;
    struct pay_err err;
} f;

static int make(void **state)
{
    (void)state;
    memset(&f, 0, sizeof f);
    (void)snprintf(f.dir, sizeof f.dir, "/tmp/payfact-keyring-XXXXXX");
    if (mkdtemp(f.dir) == NULL) {
        return 1;
    }
    (void)snprintf(f.path, sizeof f.path, "%s/keyring", f.dir);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    f.ring = pay_keyring_free(f.ring);
    f.next = pay_keyring_free(f.next);
    (void)unlink(f.path);
    return rmdir(f.dir);
}

static void put(const char *text)
{
    const struct pay_bytes content = {(const uint8_t *)text, strlen(text)};
    assert_int_equal(pay_file_write(f.path, content, false, &f.err), PAY_OK);
}

static enum pay_status look(void)
{
    f.next = pay_keyring_free(f.next);
    return pay_keyring_file_next(&f.file, f.ring, &f.next, &f.err);
}

static void open_it(const char *text)
{
    put(text);
    assert_int_equal(pay_keyring_file_open(&f.file, f.path, &f.ring, &f.err), PAY_OK);
}

static void seal_once(struct pay_keyring *ring)
{
    const struct pay_bytes text = {(const uint8_t *)"text", 4};
    struct pay_buf out = pay_buf_make(100);
    struct pay_str id;
    assert_int_equal(pay_keyring_seal(ring, text, text, &id, &out, &f.err), PAY_OK);
    pay_buf_free(&out);
}

static void a_changed_file_is_a_new_ring_once(void **state)
{
    (void)state;
    open_it(ONE);
    assert_string_equal(pay_keyring_current(f.ring).ptr, "one");
    assert_int_equal(look(), PAY_OK);
    assert_null(f.next);
    put(TWO);
    assert_int_equal(look(), PAY_OK);
    assert_string_equal(pay_keyring_current(f.next).ptr, "two");
    assert_int_equal(look(), PAY_OK);
    assert_null(f.next);
}

static void a_bad_file_is_told_once_and_a_missing_one_never(void **state)
{
    (void)state;
    open_it(ONE);
    put(HEAD "current one 00\n");
    assert_int_equal(look(), PAY_FATAL);
    assert_null(f.next);
    assert_int_equal(look(), PAY_OK);
    assert_null(f.next);
    assert_int_equal(unlink(f.path), 0);
    assert_int_equal(look(), PAY_OK);
    assert_null(f.next);
    put(TWO);
    assert_int_equal(look(), PAY_OK);
    assert_non_null(f.next);
}

/* Else a file that is touched now and then would let one key seal for ever. */
static void the_count_of_a_key_goes_on(void **state)
{
    (void)state;
    open_it(ONE);
    pay_keyring_limit(f.ring, 1, 2);
    seal_once(f.ring);
    put("payfact-keyring-1\n# touched\ncurrent one " HEX_A "\n");
    assert_int_equal(look(), PAY_OK);
    assert_int_equal(pay_keyring_seals(f.next), 1);
    assert_true(pay_keyring_wants_rotation(f.next));
    put(TWO);
    assert_int_equal(look(), PAY_OK);
    assert_int_equal(pay_keyring_seals(f.next), 0);
    put(HEAD "current one " HEX_B "\n"); /* The same name is not the same key. */
    assert_int_equal(look(), PAY_OK);
    assert_int_equal(pay_keyring_seals(f.next), 0);
}

static void no_file_is_refused_at_the_start(void **state)
{
    (void)state;
    char longer[PAY_KEYRING_PATH_SIZE + 1];
    assert_int_equal(pay_keyring_file_open(&f.file, f.path, &f.ring, &f.err), PAY_FATAL);
    memset(longer, 'x', sizeof longer);
    longer[PAY_KEYRING_PATH_SIZE] = '\0';
    assert_int_equal(pay_keyring_file_open(&f.file, longer, &f.ring, &f.err), PAY_FATAL);
    assert_string_equal(f.err.text, "path too long");
}

#define TEST(test_) cmocka_unit_test_setup_teardown(test_, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_changed_file_is_a_new_ring_once),
        TEST(a_bad_file_is_told_once_and_a_missing_one_never),
        TEST(the_count_of_a_key_goes_on),
        TEST(no_file_is_refused_at_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
