/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/pg/pg_error.h"

#include <stddef.h>
#include <string.h>

#include "common/base/banned.h"

struct row {
    const char
        *prefix; /* Two characters: a class; five: one code. The first row that fits counts. */
    bool unnamed_only; /* Only without a constraint name. */
    struct pay_pg_class what;
};

static const struct row rows[] = {
    {"23505", false, {PAY_RETRY, PAY_PG_KIND_UNIQUE, false}},
    {"23514", true, {PAY_RETRY, PAY_PG_KIND_PARTITION, true}},
    {"55P03", false, {PAY_RETRY, PAY_PG_KIND_SERIALIZATION, false}},
    {"08", false, {PAY_RETRY, PAY_PG_KIND_CONNECTION, false}},
    {"40", false, {PAY_RETRY, PAY_PG_KIND_SERIALIZATION, false}},
    {"53", false, {PAY_RETRY, PAY_PG_KIND_RESOURCES, false}},
    {"57", false, {PAY_RETRY, PAY_PG_KIND_CONNECTION, false}},
    {"22", false, {PAY_REJECT, PAY_PG_KIND_DATA, false}},
    {"23", false, {PAY_REJECT, PAY_PG_KIND_DATA, false}},
};

struct pay_pg_class pay_pg_classify(const char *sqlstate, const char *constraint)
{
    bool named = constraint != NULL && constraint[0] != 0;

    if (sqlstate == NULL || sqlstate[0] == 0) {
        return (struct pay_pg_class){PAY_RETRY, PAY_PG_KIND_CONNECTION, false};
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strncmp(sqlstate, rows[i].prefix, strlen(rows[i].prefix)) == 0 &&
            !(rows[i].unnamed_only && named)) {
            return rows[i].what;
        }
    }
    return (struct pay_pg_class){PAY_RETRY, PAY_PG_KIND_UNLISTED, false};
}

int pay_pg_sqlstate_code(const char *sqlstate)
{
    int code = 0;

    for (int i = 0; sqlstate != NULL && i < 5 && sqlstate[i] != 0; i++) {
        code |= ((sqlstate[i] - '0') & 0x3F) << (6 * i);
    }
    return code;
}

const char *pay_pg_kind_name(enum pay_pg_kind kind)
{
    static const char *const names[] = {
        [PAY_PG_KIND_NONE] = "NONE",
        [PAY_PG_KIND_CONNECTION] = "CONNECTION",
        [PAY_PG_KIND_SERIALIZATION] = "SERIALIZATION",
        [PAY_PG_KIND_RESOURCES] = "RESOURCES",
        [PAY_PG_KIND_UNIQUE] = "UNIQUE",
        [PAY_PG_KIND_DATA] = "DATA",
        [PAY_PG_KIND_PARTITION] = "PARTITION",
        [PAY_PG_KIND_UNLISTED] = "UNLISTED",
    };
    _Static_assert(sizeof names / sizeof names[0] == PAY_PG_KIND_COUNT, "name every kind");

    return (unsigned)kind < PAY_PG_KIND_COUNT ? names[kind] : "?";
}
