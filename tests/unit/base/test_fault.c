/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: a kill point ends the process at its name and its nth time only; compiled out it does
 * nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/fault.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const struct {
    const char *wanted; /* NULL: the variable is not set. */
    int dies_at;        /* Of three times "a", with y, x and y; 0: lives. */
} rows[] = {
    {NULL, 0},
    {"PAYFACT_FAULT=a", 1},
    {"PAYFACT_FAULT=a:1", 1},
    {"PAYFACT_FAULT=a:3", 3},
    {"PAYFACT_FAULT=a:4", 0},
    {"PAYFACT_FAULT=b", 0},
    {"PAYFACT_FAULT=ab", 0},
    {"PAYFACT_FAULT=", 0},
    {"PAYFACT_FAULT=a:0", 0},
    {"PAYFACT_FAULT=a:x", 0},
    {"PAYFACT_FAULT=a:-1", 0},
    {"PAYFACT_FAULT=a;2", 0},
    {"PAYFACT_FAULT=a/x", 2},
    {"PAYFACT_FAULT=a/y:1", 1},
    {"PAYFACT_FAULT=a/y:2", 3},
    {"PAYFACT_FAULT=a/x:2", 0},
    {"PAYFACT_FAULT=a/z", 0},
    {"PAYFACT_FAULT=a/xx", 0},
    {"PAYFACT_FAULT=other/x", 0},
};

/* In a child: how many of three points it passed comes back as its exit code, or it is killed. */
static int times_passed(const char *wanted, int *ret_status)
{
    int ends[2];
    char passed[4];

    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char entry[40];
        char *env[] = {entry, NULL};
        (void)snprintf(entry, sizeof entry, "%s", wanted == NULL ? "OTHER=1" : wanted);
        environ = env;
        for (int i = 0; i < 3; i++) {
            PAY_FAULT("other");
            PAY_FAULT_OF("a", i == 1 ? "x" : "y");
            (void)!write(ends[1], "x", 1);
        }
        _exit(0);
    }
    (void)close(ends[1]);
    assert_int_equal(waitpid(child, ret_status, 0), child);
    const ssize_t got = read(ends[0], passed, sizeof passed);
    (void)close(ends[0]);
    return (int)got;
}

static void every_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int status = 0;
        const int passed = times_passed(rows[i].wanted, &status);
        const int dies_at = PAY_FAULTS ? rows[i].dies_at : 0;

        print_message("%s\n", rows[i].wanted == NULL ? "not set" : rows[i].wanted);
        assert_int_equal(passed, dies_at == 0 ? 3 : dies_at - 1);
        if (dies_at == 0) {
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        } else {
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row),
    };
    return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
