/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file config.h
 * @brief One table per service drives parsing, --check-config, --print-config and
 * docs/CONFIGURATION.md.
 *
 * A setting NAME is read from the environment as PAYFACT_NAME; one with PAY_CFG_SECRET only from
 * the file that PAYFACT_NAME_FILE names (trailing white space is trimmed). Any other PAYFACT_
 * variable in the environment that no table row knows is refused: a misspelt setting must not be
 * silently ignored.
 */
#ifndef PAY_BASE_CONFIG_H
#define PAY_BASE_CONFIG_H

#include "common/base/buf.h"
#include "common/base/err.h"

#define PAY_CFG_TEXT_MAX 1024 /**< Bytes of one text value, terminator included. */

enum pay_cfg_type { PAY_CFG_TEXT, PAY_CFG_INT, PAY_CFG_BOOL, PAY_CFG_TYPE_COUNT };
enum pay_cfg_flag { PAY_CFG_REQUIRED = 1, PAY_CFG_SECRET = 2 };

struct pay_cfg_row {
    const char *name; /**< Without PAYFACT_. */
    enum pay_cfg_type type;
    size_t offset; /**< Of char[PAY_CFG_TEXT_MAX], int64_t or bool in the service's struct. */
    const char *by_default; /**< As text; NULL: empty text, 0, false. */
    int64_t min, max;       /**< For INT. */
    const char *unit;       /**< "ms", "bytes", "records", "" ... */
    unsigned flags;
    const char *doc; /**< One sentence. */
};

struct pay_cfg_table {
    const char *service;
    const struct pay_cfg_row *rows;
    size_t count;
};

/** @brief Read every table's settings into the struct that its offsets mean (all tables share @p
 * into). */
PAY_MUST_CHECK enum pay_status pay_cfg_load(const struct pay_cfg_table *table, void *into,
                                            struct pay_err *err);
/**
 * @brief The same, telling every wrong setting: one line each is appended to @p problems (never a
 * secret's value). pay_cfg_load() logs those lines as event "config_wrong".
 * @return PAY_FATAL with the number of problems and the first one in @p err.
 */
PAY_MUST_CHECK enum pay_status pay_cfg_load_told(const struct pay_cfg_table *table, void *into,
                                                 struct pay_buf *problems, struct pay_err *err);
/**
 * @brief The same for a tool that is run in the environment of a service: a PAYFACT_ variable that
 * the table does not know is a setting of that service and is not looked at.
 */
PAY_MUST_CHECK enum pay_status pay_cfg_load_own(const struct pay_cfg_table *table, void *into,
                                                struct pay_buf *problems, struct pay_err *err);
/** @brief "NAME=value" lines, secrets as "***". */
void pay_cfg_print(const struct pay_cfg_table *table, const void *from, struct pay_buf *out);
/** @brief A Markdown table of all rows, for docs/CONFIGURATION.md. */
void pay_cfg_print_docs(const struct pay_cfg_table *table, struct pay_buf *out);

#endif /* PAY_BASE_CONFIG_H */
