/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: a secret is trimmed behind, never empty, never in an error text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/file.h"
#include "common/crypto/secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    char path[64];
    struct pay_secret *secret;
    struct pay_err err;
} fixture;

static int make(void **state)
{
    (void)state;
    memset(&fixture, 0, sizeof fixture);
    (void)snprintf(fixture.path, sizeof fixture.path, "/tmp/pay_secret_XXXXXX");
    const int fd = mkstemp(fixture.path);
    return fd < 0 ? -1 : close(fd);
}

static int drop(void **state)
{
    (void)state;
    fixture.secret = pay_secret_free(fixture.secret);
    return unlink(fixture.path);
}

static enum pay_status load(const char *content, size_t len)
{
    fixture.secret = pay_secret_free(fixture.secret);
    assert_int_equal(pay_file_write(fixture.path, (struct pay_bytes){(const uint8_t *)content, len},
                                    false, NULL),
                     PAY_OK);
    return pay_secret_load(fixture.path, &fixture.secret, &fixture.err);
}

static void white_space_behind_is_trimmed(void **state)
{
    (void)state;
    static const char *const forms[] = {" whsec_x y", " whsec_x y\n", " whsec_x y\r\n",
                                        " whsec_x y \t\v\f\n\n"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        assert_int_equal(load(forms[i], strlen(forms[i])), PAY_OK);
        const struct pay_bytes bytes = pay_secret_bytes(fixture.secret);
        assert_int_equal(bytes.len, 10);
        assert_memory_equal(bytes.ptr, " whsec_x y", 10);
    }
}

static void an_empty_secret_is_refused_S7(void **state)
{
    (void)state;
    static const char *const forms[] = {"", "\n", " \t\r\n"};
    char wanted[128];

    (void)snprintf(wanted, sizeof wanted, "\"%s\" is empty", fixture.path);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        assert_int_equal(load(forms[i], strlen(forms[i])), PAY_FATAL);
        assert_string_equal(fixture.err.text, wanted);
        assert_null(fixture.secret);
    }
    assert_int_equal(pay_secret_of("name", (struct pay_bytes){NULL, 0}, &fixture.secret, NULL),
                     PAY_FATAL);
}

static void the_maximum_is_exact_and_the_text_silent(void **state)
{
    (void)state;
    static char big[PAY_SECRET_MAX + 1000];

    memset(big, 's', sizeof big);
    assert_int_equal(load(big, PAY_SECRET_MAX), PAY_OK);
    assert_int_equal(pay_secret_bytes(fixture.secret).len, PAY_SECRET_MAX);
    assert_int_equal(load(big, PAY_SECRET_MAX + 1), PAY_FATAL);
    assert_null(strstr(fixture.err.text, "ss"));
    assert_int_equal(load(big, sizeof big), PAY_FATAL);
    assert_null(strstr(fixture.err.text, "ss"));
    big[PAY_SECRET_MAX] = '\n';
    assert_int_equal(load(big, PAY_SECRET_MAX + 1), PAY_OK);
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    assert_int_equal(pay_secret_load("/nowhere/secret", &fixture.secret, &fixture.err), PAY_FATAL);
    assert_non_null(strstr(fixture.err.text, "/nowhere/secret"));
    assert_null(pay_secret_free(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(white_space_behind_is_trimmed, make, drop),
        cmocka_unit_test_setup_teardown(an_empty_secret_is_refused_S7, make, drop),
        cmocka_unit_test_setup_teardown(the_maximum_is_exact_and_the_text_silent, make, drop),
        cmocka_unit_test_setup_teardown(a_missing_file_is_named, make, drop),
    };
    return cmocka_run_group_tests_name("secret", tests, NULL, NULL);
}
