/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/teststore.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

struct pay_store *pay_teststore_open(const struct pay_testdb *db, const char *role)
{
    char conninfo[1024];
    struct pay_store *store = NULL;
    struct pay_err err = {.code = 0};
    const bool has_role = role != NULL;

    (void)snprintf(conninfo, sizeof(conninfo), "%s%s%s%s", db->conninfo,
                   has_role ? " options='-c role=payfact_" : "", has_role ? role : "",
                   has_role ? "'" : "");
    const struct pay_pg_options options = {.conninfo = conninfo,
                                           .application_name = "payfact-test"};
    enum pay_status status = pay_store_new(&options, &store, &err);
    if (status == PAY_OK) {
        status = pay_store_connect(store, &err);
    }
    if (status != PAY_OK) {
        fail_msg("%s: %s: %s", pay_status_name(status), err.op, err.text);
    }
    return store;
}
