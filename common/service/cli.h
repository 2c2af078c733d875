/* SPDX-License-Identifier: Apache-2.0 */
/** @file cli.h @brief The command line of a service. Pure; internal. */
#ifndef PAY_SERVICE_CLI_H
#define PAY_SERVICE_CLI_H

#include "common/base/err.h"
#include "common/service/service.h"

enum pay_cli_action {
    PAY_CLI_RUN,
    PAY_CLI_VERSION,
    PAY_CLI_HELP,
    PAY_CLI_CHECK_CONFIG,
    PAY_CLI_PRINT_CONFIG,
    PAY_CLI_PRINT_CONFIG_DOCS,
    PAY_CLI_PRINT_METRICS_DOCS,
    PAY_CLI_ACTION_COUNT
};

struct pay_cli {
    enum pay_cli_action action;
    const char *role; /**< One of the description's own texts; NULL: none given. */
};

/** @return PAY_FATAL: unknown option or role, or a role that is needed is missing. */
PAY_MUST_CHECK enum pay_status pay_cli_parse(int argc, char *const *argv,
                                             const struct pay_service_desc *desc,
                                             struct pay_cli *ret_cli, struct pay_err *err);
void pay_cli_print_help(const struct pay_service_desc *desc, struct pay_buf *out);

#endif /* PAY_SERVICE_CLI_H */
