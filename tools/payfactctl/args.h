/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file args.h
 * @brief Options and operands of one command, read by its table into its struct.
 *
 * "--name value" and "--name=value"; a word without dashes is the next operand. What is given twice
 * (lists excepted), unknown, out of range or missing is refused with a text that names it.
 * Ownership: texts are borrowed from argv. Pure.
 */
#ifndef PAY_CTL_ARGS_H
#define PAY_CTL_ARGS_H

#include "common/base/buf.h"
#include "common/base/err.h"

#define PAY_ARG_LIST_MAX 16 /**< Items of one list; more are refused. */
#define PAY_ARGS_MAX 32     /**< Rows of one table. */

enum pay_arg_kind {
    PAY_ARG_FLAG,    /**< bool */
    PAY_ARG_TEXT,    /**< const char *; NULL: not given. */
    PAY_ARG_INT,     /**< int64_t; min when not given. */
    PAY_ARG_LIST,    /**< struct pay_arg_list; may be given several times. */
    PAY_ARG_OPERAND, /**< const char *; in the order of the table. */
    PAY_ARG_KIND_COUNT
};

struct pay_arg_list {
    const char *items[PAY_ARG_LIST_MAX];
    size_t count;
};

struct pay_arg {
    const char *name; /**< "--dir", or "PAYMENT_ID" for an operand. */
    enum pay_arg_kind kind;
    size_t offset;
    int64_t min, max;  /**< Of an INT. min is also what it is when not given. */
    const char *value; /**< What stands for the value in the help; NULL: none. */
    bool is_required;
    const char *doc;
};

struct pay_arg_table {
    const struct pay_arg *rows;
    size_t count;
};

/**
 * @brief Read @p argc words into @p into, which is zeroed memory of the command's struct.
 * @return PAY_REJECT with a text for the person who typed it.
 */
PAY_MUST_CHECK enum pay_status pay_args_read(const struct pay_arg_table *table, int argc,
                                             char *const *argv, void *into, struct pay_err *err);
/** @brief One line per row. */
void pay_args_print(const struct pay_arg_table *table, struct pay_buf *out);

#endif /* PAY_CTL_ARGS_H */
