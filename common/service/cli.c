/* SPDX-License-Identifier: Apache-2.0 */
#include "common/service/cli.h"

#include <string.h>

#include "common/base/banned.h"

static const char op[] = "read command line";

struct option {
    const char *name;
    enum pay_cli_action action;
    bool needs_role; /* Of a service that has roles. */
    const char *doc;
};

static const struct option options[] = {
    {"--version", PAY_CLI_VERSION, false, "print name and version"},
    {"--help", PAY_CLI_HELP, false, "print this"},
    {"--check-config", PAY_CLI_CHECK_CONFIG, true,
     "read and check all settings and files, then exit"},
    {"--print-config", PAY_CLI_PRINT_CONFIG, false, "print the settings in force, secrets masked"},
    {"--print-config-docs", PAY_CLI_PRINT_CONFIG_DOCS, false, "print all settings as Markdown"},
    {"--print-metrics-docs", PAY_CLI_PRINT_METRICS_DOCS, false, "print all metrics as Markdown"},
};

static const struct option *option_of(const char *text)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (strcmp(options[i].name, text) == 0) {
            return &options[i];
        }
    }
    return NULL;
}

static const char *role_of(const struct pay_service_desc *desc, const char *text)
{
    for (size_t i = 0; desc->roles != NULL && text != NULL && desc->roles[i] != NULL; i++) {
        if (strcmp(desc->roles[i], text) == 0) {
            return desc->roles[i];
        }
    }
    return NULL;
}

/* "--role X" or "--role=X". @return how many arguments it is, 0: something else. */
static int read_role(char *const *args, const char **ret_value)
{
    static const char name[] = "--role";
    const size_t len = sizeof name - 1;

    if (strncmp(args[0], name, len) != 0) {
        return 0;
    }
    if (args[0][len] == '=') {
        *ret_value = args[0] + len + 1;
        return 1;
    }
    *ret_value = args[1]; /* NULL at the end. */
    return args[0][len] != 0 ? 0 : args[1] == NULL ? 1 : 2;
}

/* @return how many arguments were read, 0 when the first one means nothing. */
static int read_argument(char *const *args, const struct pay_service_desc *desc,
                         struct pay_cli *cli, bool *needs_role)
{
    const struct option *option = option_of(args[0]);
    const char *value = NULL;

    if (option != NULL) {
        cli->action = option->action;
        *needs_role = option->needs_role;
        return 1;
    }
    const int taken = read_role(args, &value);
    cli->role = role_of(desc, value);
    return cli->role == NULL ? 0 : taken;
}

enum pay_status pay_cli_parse(int argc, char *const *argv, const struct pay_service_desc *desc,
                              struct pay_cli *ret_cli, struct pay_err *err)
{
    struct pay_cli cli = {.action = PAY_CLI_RUN};
    bool needs_role = true;

    for (int i = 1; i < argc;) {
        const int taken = read_argument(&argv[i], desc, &cli, &needs_role);
        if (taken == 0) {
            return pay_err_set(err, PAY_FATAL, 0, op, "unknown argument or role \"%s\", see --help",
                               argv[i]);
        }
        i += taken;
    }
    if (desc->roles != NULL && cli.role == NULL && needs_role) {
        return pay_err_set(err, PAY_FATAL, 0, op, "--role is required, see --help");
    }
    *ret_cli = cli;
    return PAY_OK;
}

void pay_cli_print_help(const struct pay_service_desc *desc, struct pay_buf *out)
{
    pay_buf_printf(out, "%s: %s\n\nUsage: %s%s [OPTION]\n\n", desc->name, desc->what, desc->name,
                   desc->roles == NULL ? "" : " --role ROLE");
    for (size_t i = 0; desc->roles != NULL && desc->roles[i] != NULL; i++) {
        pay_buf_printf(out, "  --role %s\n", desc->roles[i]);
    }
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        pay_buf_printf(out, "  %-22s %s\n", options[i].name, options[i].doc);
    }
    pay_buf_add_c(out,
                  "\nSettings come from the environment (--print-config-docs). SIGTERM drains, a "
                  "second one\nends at once. Exit: 0 in order, 1 failed, 2 usage or "
                  "configuration, 3 drain too long,\n4 second signal.\n");
}
