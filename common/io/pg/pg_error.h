/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file pg_error.h
 * @brief What an SQLSTATE means for the caller: one table, pg_error.c, as docs say (data model,
 * "Errors").
 *
 * 08, 40, 53, 55P03, 57: PAY_RETRY. 23505: PAY_RETRY of kind UNIQUE (a lost race: decide again).
 * 23514 without a constraint name: a missing partition, PAY_RETRY with alert. 22 and 23 otherwise:
 * PAY_REJECT. Anything else: PAY_RETRY of kind UNLISTED, never dead-lettered. This is the class of
 * an answered statement; a lost answer is pg.h's matter (PAY_UNKNOWN).
 */
#ifndef PAY_IO_PG_PG_ERROR_H
#define PAY_IO_PG_PG_ERROR_H

#include "common/base/err.h"

#include <stdbool.h>

enum pay_pg_kind {
    PAY_PG_KIND_NONE,
    PAY_PG_KIND_CONNECTION,    /**< 08, 57, or no answer at all. */
    PAY_PG_KIND_SERIALIZATION, /**< 40, 55P03. */
    PAY_PG_KIND_RESOURCES,     /**< 53. */
    PAY_PG_KIND_UNIQUE,        /**< 23505. */
    PAY_PG_KIND_DATA,          /**< 22, 23 otherwise. */
    PAY_PG_KIND_PARTITION,     /**< 23514 without a constraint name. */
    PAY_PG_KIND_UNLISTED,
    PAY_PG_KIND_COUNT
};

struct pay_pg_class {
    enum pay_status status;
    enum pay_pg_kind kind;
    bool alert; /**< A person should know now. */
};

/** @param sqlstate five characters; NULL: no answer. @param constraint NULL or "": none named. */
struct pay_pg_class pay_pg_classify(const char *sqlstate, const char *constraint);
/** @return the five characters packed six bits each, for struct pay_err.code; 0 for NULL. */
int pay_pg_sqlstate_code(const char *sqlstate);
/** @return static name such as "UNIQUE"; never NULL. */
const char *pay_pg_kind_name(enum pay_pg_kind kind);

#endif /* PAY_IO_PG_PG_ERROR_H */
