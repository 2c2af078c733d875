/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: every form of the command line means what --help says, and nothing unknown is let through.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include <string.h>

#include "common/service/cli.h"

#define ARGS_MAX 4
#define REFUSED PAY_CLI_ACTION_COUNT

struct row {
    const char *args[ARGS_MAX];
    enum pay_cli_action with_roles, without;
    const char *role;
};

static const struct row rows[] = {
    {{0}, REFUSED, PAY_CLI_RUN, NULL},
    {{"--role", "psp"}, PAY_CLI_RUN, REFUSED, "psp"},
    {{"--role=webhook"}, PAY_CLI_RUN, REFUSED, "webhook"},
    {{"--role"}, REFUSED, REFUSED, NULL},
    {{"--role="}, REFUSED, REFUSED, NULL},
    {{"--role", "other"}, REFUSED, REFUSED, NULL},
    {{"--roles", "psp"}, REFUSED, REFUSED, NULL},
    {{"--version"}, PAY_CLI_VERSION, PAY_CLI_VERSION, NULL},
    {{"--help"}, PAY_CLI_HELP, PAY_CLI_HELP, NULL},
    {{"--check-config"}, REFUSED, PAY_CLI_CHECK_CONFIG, NULL},
    {{"--check-config", "--role", "psp"}, PAY_CLI_CHECK_CONFIG, REFUSED, "psp"},
    {{"--role", "psp", "--check-config"}, PAY_CLI_CHECK_CONFIG, REFUSED, "psp"},
    {{"--print-config"}, PAY_CLI_PRINT_CONFIG, PAY_CLI_PRINT_CONFIG, NULL},
    {{"--print-config-docs"}, PAY_CLI_PRINT_CONFIG_DOCS, PAY_CLI_PRINT_CONFIG_DOCS, NULL},
    {{"--print-metrics-docs"}, PAY_CLI_PRINT_METRICS_DOCS, PAY_CLI_PRINT_METRICS_DOCS, NULL},
    {{"--frobnicate"}, REFUSED, REFUSED, NULL},
    {{"psp"}, REFUSED, REFUSED, NULL},
    {{""}, REFUSED, REFUSED, NULL},
};

static void check(const struct row *row, const struct pay_service_desc *desc,
                  enum pay_cli_action want)
{
    char copies[ARGS_MAX][32];
    char *argv[ARGS_MAX + 2] = {copies[0]};
    int argc = 1;
    struct pay_cli cli = {.action = REFUSED};
    struct pay_err err;

    for (size_t i = 0; i < ARGS_MAX && row->args[i] != NULL; i++) {
        assert_true(pay_str_copy(copies[i], sizeof copies[i], pay_str_of(row->args[i])));
        argv[argc++] = copies[i];
    }
    const enum pay_status status = pay_cli_parse(argc, argv, desc, &cli, &err);
    if ((status == PAY_OK) != (want != REFUSED) || cli.action != want ||
        (want != REFUSED && row->role != NULL && strcmp(cli.role, row->role) != 0)) {
        fail_msg("\"%s\" ...: status %d action %d", row->args[0] == NULL ? "" : row->args[0],
                 (int)status, (int)cli.action);
    }
}

static void every_form(void **state)
{
    (void)state;
    static const char *const roles[] = {"webhook", "psp", NULL};
    const struct pay_service_desc with_roles = {.name = "x", .what = "y", .roles = roles};
    const struct pay_service_desc without = {.name = "x", .what = "y"};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check(&rows[i], &with_roles, rows[i].with_roles);
        check(&rows[i], &without, rows[i].without);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_form)};
    return cmocka_run_group_tests_name("cli", tests, NULL, NULL);
}
