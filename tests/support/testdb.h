/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file testdb.h
 * @brief A database of one's own with the whole schema, on the server that PAYFACT_TEST_PG names.
 *
 * PAYFACT_TEST_PG is a conninfo of a user that may create databases and roles; "dbname=" in it is
 * overridden. pay_testdb_open() exits the process with a clear line when it is not set.
 */
#ifndef PAY_TESTS_SUPPORT_TESTDB_H
#define PAY_TESTS_SUPPORT_TESTDB_H

#include "common/io/pg/pg.h"

struct pay_testdb {
    char name[64];
    char conninfo[512]; /**< As the owner. */
    struct pay_pg *owner;
};

void pay_testdb_open(struct pay_testdb *db);
/** Drops the database, whoever is still connected. */
void pay_testdb_close(struct pay_testdb *db);
/** Runs a script as the owner; ends the test when it fails. */
void pay_testdb_run(struct pay_testdb *db, const char *sql);
/** Shut: nobody comes in any more, and who is in is put out; only the owner's connection stays. */
void pay_testdb_shut(struct pay_testdb *db, bool is_shut);
/** @return the number that a query without parameters answers, e.g. "SELECT count(*) ...". */
int64_t pay_testdb_number(struct pay_testdb *db, const char *sql);
/** @return the text that it answers, in static memory; "" for NULL or no row. */
const char *pay_testdb_text(struct pay_testdb *db, const char *sql);

#endif /* PAY_TESTS_SUPPORT_TESTDB_H */
