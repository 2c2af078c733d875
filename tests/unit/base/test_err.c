/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: an error carries its class and a bounded text; an assertion says where, then aborts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/assert.h"
#include "common/base/err.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void an_error_is_filled(void **state)
{
    (void)state;
    struct pay_err err = {0};

    assert_int_equal(pay_err_set(&err, PAY_REJECT, 42, "parse", "no %s", "amount"), PAY_REJECT);
    assert_int_equal(err.status, PAY_REJECT);
    assert_int_equal(err.code, 42);
    assert_string_equal(err.op, "parse");
    assert_string_equal(err.text, "no amount");
    assert_int_equal(pay_err_set(NULL, PAY_UNKNOWN, 1, "x", "y"), PAY_UNKNOWN);
}

static void a_long_text_is_cut(void **state)
{
    (void)state;
    struct pay_err err = {0};
    char text[400];

    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    assert_int_equal(pay_err_set(&err, PAY_FATAL, 0, "x", "%s", text), PAY_FATAL);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void names_are_total(void **state)
{
    (void)state;
    static const char *const names[] = {"OK", "RETRY", "UNKNOWN", "REJECT", "FATAL", "?"};

    for (int i = 0; i <= PAY_STATUS_COUNT; i++) {
        assert_string_equal(pay_status_name((enum pay_status)i), names[i]);
    }
}

/* In a child, because it must die. Its stderr comes back through the pipe. */
static int outcome_of(int value, char *ret_said, size_t size)
{
    int ends[2];
    int status = 0;

    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)signal(SIGABRT, SIG_DFL); /* cmocka catches it for itself. */
        (void)dup2(ends[1], STDERR_FILENO);
        PAY_ASSERT(value == 1);
        _exit(0);
    }
    (void)close(ends[1]);
    const ssize_t got = read(ends[0], ret_said, size - 1);
    ret_said[got > 0 ? got : 0] = 0;
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void an_assertion_says_where_and_aborts(void **state)
{
    (void)state;
    char said[300];

    int status = outcome_of(1, said, sizeof said);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_string_equal(said, "");

    status = outcome_of(2, said, sizeof said);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "test_err.c:"));
    assert_non_null(strstr(said, "assertion failed: value == 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_is_filled),
        cmocka_unit_test(a_long_text_is_cut),
        cmocka_unit_test(names_are_total),
        cmocka_unit_test(an_assertion_says_where_and_aborts),
    };
    return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
