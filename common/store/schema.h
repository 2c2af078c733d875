/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file schema.h
 * @brief Is the schema one that this code was written for? Asked on each new connection, before
 * anything else.
 *
 * Threads: as the connection. Failure: as pg.h. May block as long as two statements.
 */
#ifndef PAY_STORE_SCHEMA_H
#define PAY_STORE_SCHEMA_H

#include "common/io/pg/pg.h"

#define PAY_STORE_SCHEMA_VERSION 6 /**< Migrations that this code was written for. */
#define PAY_STORE_SCHEMA (-7002)   /**< err.code: not there, older, or without its partitions. */

/** Who writes history or evidence needs next month's partitions too; who makes them must not. */
enum pay_store_schema_part { PAY_STORE_SCHEMA_TABLES, PAY_STORE_SCHEMA_PARTITIONS };

/** @return PAY_RETRY with PAY_STORE_SCHEMA: not yet, the text says what to do. */
PAY_MUST_CHECK enum pay_status
pay_store_schema_check(struct pay_pg *pg, enum pay_store_schema_part wanted, struct pay_err *err);

#endif /* PAY_STORE_SCHEMA_H */
