/* SPDX-License-Identifier: Apache-2.0 */
/* The classes of SQLSTATE, one row per sentence of the data model's "Errors". */
#include "common/io/pg/pg_error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct row {
    const char *sqlstate;
    const char *constraint;
    enum pay_status status;
    enum pay_pg_kind kind;
    bool alert;
};

static const struct row rows[] = {
    /* No answer at all. */
    {NULL, NULL, PAY_RETRY, PAY_PG_KIND_CONNECTION, false},
    {"", NULL, PAY_RETRY, PAY_PG_KIND_CONNECTION, false},
    /* Connection and serialization retry the batch. */
    {"08000", NULL, PAY_RETRY, PAY_PG_KIND_CONNECTION, false},
    {"08006", NULL, PAY_RETRY, PAY_PG_KIND_CONNECTION, false},
    {"40001", NULL, PAY_RETRY, PAY_PG_KIND_SERIALIZATION, false},
    {"40P01", NULL, PAY_RETRY, PAY_PG_KIND_SERIALIZATION, false},
    {"53300", NULL, PAY_RETRY, PAY_PG_KIND_RESOURCES, false},
    {"53100", NULL, PAY_RETRY, PAY_PG_KIND_RESOURCES, false},
    {"55P03", NULL, PAY_RETRY, PAY_PG_KIND_SERIALIZATION, false},
    {"57014", NULL, PAY_RETRY, PAY_PG_KIND_CONNECTION, false},
    {"57P01", NULL, PAY_RETRY, PAY_PG_KIND_CONNECTION, false},
    {"57P03", NULL, PAY_RETRY, PAY_PG_KIND_CONNECTION, false},
    /* Only 55P03 of its class. */
    {"55000", NULL, PAY_RETRY, PAY_PG_KIND_UNLISTED, false},
    {"55006", NULL, PAY_RETRY, PAY_PG_KIND_UNLISTED, false},
    /* A unique violation is a lost race. */
    {"23505", "payment_order_pkey", PAY_RETRY, PAY_PG_KIND_UNIQUE, false},
    {"23505", NULL, PAY_RETRY, PAY_PG_KIND_UNIQUE, false},
    /* Data errors bisect. */
    {"22001", NULL, PAY_REJECT, PAY_PG_KIND_DATA, false},
    {"22003", NULL, PAY_REJECT, PAY_PG_KIND_DATA, false},
    {"22021", NULL, PAY_REJECT, PAY_PG_KIND_DATA, false},
    {"22P03", NULL, PAY_REJECT, PAY_PG_KIND_DATA, false},
    {"23502", NULL, PAY_REJECT, PAY_PG_KIND_DATA, false},
    {"23503", "fk", PAY_REJECT, PAY_PG_KIND_DATA, false},
    {"23514", "amount_positive", PAY_REJECT, PAY_PG_KIND_DATA, false},
    /* A missing partition: roll back, alert, retry. */
    {"23514", NULL, PAY_RETRY, PAY_PG_KIND_PARTITION, true},
    {"23514", "", PAY_RETRY, PAY_PG_KIND_PARTITION, true},
    /* Unlisted: never dead-lettered. */
    {"42P01", NULL, PAY_RETRY, PAY_PG_KIND_UNLISTED, false},
    {"42501", NULL, PAY_RETRY, PAY_PG_KIND_UNLISTED, false},
    {"P0001", NULL, PAY_RETRY, PAY_PG_KIND_UNLISTED, false},
    {"25P02", NULL, PAY_RETRY, PAY_PG_KIND_UNLISTED, false},
    {"XX000", NULL, PAY_RETRY, PAY_PG_KIND_UNLISTED, false},
    {"0A000", NULL, PAY_RETRY, PAY_PG_KIND_UNLISTED, false},
};

static void each_sqlstate_has_its_class(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        struct pay_pg_class got = pay_pg_classify(row->sqlstate, row->constraint);

        print_message("%s\n", row->sqlstate != NULL ? row->sqlstate : "(none)");
        assert_int_equal(got.status, row->status);
        assert_int_equal(got.kind, row->kind);
        assert_int_equal(got.alert, row->alert);
    }
}

static void codes_differ_and_survive(void **state)
{
    (void)state;
    assert_int_equal(pay_pg_sqlstate_code(NULL), 0);
    assert_int_equal(pay_pg_sqlstate_code("00000"), 0);
    assert_int_not_equal(pay_pg_sqlstate_code("23505"), pay_pg_sqlstate_code("23514"));
    /* MAKE_SQLSTATE of the server's own headers. */
    assert_int_equal(pay_pg_sqlstate_code("23505"), 2 | 3 << 6 | 5 << 12 | 0 << 18 | 5 << 24);
}

static void every_kind_has_a_name(void **state)
{
    (void)state;
    for (int kind = 0; kind < PAY_PG_KIND_COUNT; kind++) {
        assert_string_not_equal(pay_pg_kind_name((enum pay_pg_kind)kind), "?");
    }
    assert_string_equal(pay_pg_kind_name(PAY_PG_KIND_COUNT), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sqlstate_has_its_class),
        cmocka_unit_test(codes_differ_and_survive),
        cmocka_unit_test(every_kind_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
