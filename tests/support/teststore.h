/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file teststore.h
 * @brief A store on a test's own database.
 */
#ifndef PAY_TESTS_SUPPORT_TESTSTORE_H
#define PAY_TESTS_SUPPORT_TESTSTORE_H

#include "common/store/store.h"
#include "tests/support/testdb.h"

/** @param role as whom ("processor": payfact_processor); NULL: as the owner of the tables.
 *  @return connected, the caller's to free; the test fails otherwise. */
struct pay_store *pay_teststore_open(const struct pay_testdb *db, const char *role);

#endif /* PAY_TESTS_SUPPORT_TESTSTORE_H */
