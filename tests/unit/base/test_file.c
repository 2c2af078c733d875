/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: reads are bounded to the byte, writes are private, whole, and never replace by a slip. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/pay_file_XXXXXX";
static char path[64];

static int make(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/pay_file_XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    return snprintf(path, sizeof path, "%s/x", folder) > 0 ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(folder); /* Fails when a temporary file was left behind. */
}

static struct pay_bytes bytes_of(const char *text)
{
    return (struct pay_bytes){(const uint8_t *)text, strlen(text)};
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct pay_err err = {0};
    char got[16] = {0};
    size_t len = 0;
    struct stat st;

    assert_int_equal(pay_file_write(path, bytes_of("hello"), true, &err), PAY_OK);
    assert_int_equal(pay_file_read(path, got, sizeof got, &len, &err), PAY_OK);
    assert_int_equal(len, 5);
    assert_string_equal(got, "hello");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
}

static void a_new_file_never_replaces_one(void **state)
{
    (void)state;
    struct pay_err err = {0};
    char got[16] = {0};
    size_t len = 0;

    assert_int_equal(pay_file_write(path, bytes_of("one"), true, &err), PAY_OK);
    assert_int_equal(pay_file_write(path, bytes_of("two"), true, &err), PAY_FATAL);
    assert_int_equal(err.code, EEXIST);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(pay_file_read(path, got, sizeof got, &len, &err), PAY_OK);
    assert_string_equal(got, "one");

    assert_int_equal(pay_file_write(path, bytes_of("two"), false, &err), PAY_OK);
    assert_int_equal(pay_file_read(path, got, sizeof got, &len, &err), PAY_OK);
    assert_string_equal(got, "two");
}

static void the_bound_of_a_read_is_exact(void **state)
{
    (void)state;
    struct pay_err err = {0};
    char got[8];
    size_t len = 99;

    assert_int_equal(pay_file_write(path, bytes_of("12345678"), true, &err), PAY_OK);
    assert_int_equal(pay_file_read(path, got, 8, &len, &err), PAY_OK);
    assert_int_equal(len, 8);
    len = 99;
    assert_int_equal(pay_file_read(path, got, 7, &len, &err), PAY_FATAL);
    assert_int_equal(len, 99); /* Outputs are set on success only. */
    assert_non_null(strstr(err.text, "longer than 7 bytes"));
    assert_null(strstr(err.text, "1234"));
}

static void the_bound_of_a_buffer_is_exact(void **state)
{
    (void)state;
    struct pay_err err = {0};
    static char big[10000];
    struct pay_buf fits = pay_buf_make(sizeof big);
    struct pay_buf small = pay_buf_make(sizeof big - 1);

    memset(big, 'x', sizeof big);
    const enum pay_status wrote =
        pay_file_write(path, (struct pay_bytes){(const uint8_t *)big, sizeof big}, true, &err);
    const enum pay_status first = pay_file_read_buf(path, &fits, &err);
    const enum pay_status second = pay_file_read_buf(path, &small, &err);
    const size_t len = fits.len;
    pay_buf_free(&fits);
    pay_buf_free(&small);

    assert_int_equal(wrote, PAY_OK);
    assert_int_equal(first, PAY_OK);
    assert_int_equal(len, sizeof big);
    assert_int_equal(second, PAY_FATAL);
}

static void what_cannot_be_read_is_named(void **state)
{
    (void)state;
    struct pay_err err = {0};
    char got[8];
    size_t len = 0;

    assert_int_equal(pay_file_read(path, got, sizeof got, &len, &err), PAY_FATAL);
    assert_int_equal(err.code, ENOENT);
    assert_non_null(strstr(err.text, path));
    assert_non_null(strstr(err.text, "No such file"));
    assert_int_equal(pay_file_read(folder, got, sizeof got, &len, &err), PAY_FATAL);
    assert_int_equal(err.code, EISDIR);
    struct pay_buf buf = pay_buf_make(8);
    assert_int_equal(pay_file_read_buf(path, &buf, &err), PAY_FATAL);
    assert_int_equal(pay_file_read_buf(folder, &buf, &err), PAY_FATAL);
    assert_null(buf.data);
}

static void what_cannot_be_written_leaves_nothing(void **state)
{
    (void)state;
    struct pay_err err = {0};
    char inside[80];

    (void)snprintf(inside, sizeof inside, "%s/none/x", folder);
    assert_int_equal(pay_file_write(inside, bytes_of("a"), true, &err), PAY_FATAL);
    assert_int_equal(err.code, ENOENT);
    assert_int_equal(pay_file_write(folder, bytes_of("a"), false, &err), PAY_FATAL);

    static char endless[5000];
    memset(endless, 'a', sizeof endless - 1);
    assert_int_equal(pay_file_write(endless, bytes_of("a"), true, &err), PAY_FATAL);
    assert_int_equal(err.code, ENAMETOOLONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_is_read, make, drop),
        cmocka_unit_test_setup_teardown(a_new_file_never_replaces_one, make, drop),
        cmocka_unit_test_setup_teardown(the_bound_of_a_read_is_exact, make, drop),
        cmocka_unit_test_setup_teardown(the_bound_of_a_buffer_is_exact, make, drop),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_named, make, drop),
        cmocka_unit_test_setup_teardown(what_cannot_be_written_leaves_nothing, make, drop),
    };
    return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
