/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: ids are derived, of one form, and never meet where they must not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>
#include <string.h>

#include "common/core/id.h"

#define PAYMENT "01J9ZQ4V7M3N8P5R2T6W0X1YAB"

static void a_payment_id_is_an_upper_case_ulid(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "01J9ZQ4V7M3N8P5R2T6W0X1YA",
                                      "01J9ZQ4V7M3N8P5R2T6W0X1YABC",
                                      "81J9ZQ4V7M3N8P5R2T6W0X1YAB",
                                      "01J9ZQ4V7M3N8P5R2T6W0X1YAI",
                                      "01J9ZQ4V7M3N8P5R2T6W0X1YAL",
                                      "01J9ZQ4V7M3N8P5R2T6W0X1YAO",
                                      "01J9ZQ4V7M3N8P5R2T6W0X1YAU",
                                      "0IJ9ZQ4V7M3N8P5R2T6W0X1YAB",
                                      "/1J9ZQ4V7M3N8P5R2T6W0X1YAB",
                                      "01j9zq4v7m3n8p5r2t6w0x1yab"};
    assert_true(pay_id_is_payment(PAY_STR(PAYMENT)));
    assert_true(pay_id_is_payment(PAY_STR("7ZZZZZZZZZZZZZZZZZZZZZZZZZ")));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(pay_id_is_payment(pay_str_of(bad[i])));
    }
    assert_false(pay_id_is_payment((struct pay_str){NULL, 0}));
    char nul[] = PAYMENT;
    nul[5] = 0;
    assert_false(pay_id_is_payment((struct pay_str){nul, 26}));
}

static void an_action_id_is_the_payments_with_letter_and_number(void **state)
{
    (void)state;
    char id[PAY_ACTION_ID_SIZE];
    char payment[PAY_PAYMENT_ID_SIZE];
    static const char letters[] = "ACRD";

    for (int n = 1; n <= 99; n++) {
        pay_id_action(id, PAYMENT, letters[n % 4], n);
        assert_true(pay_id_is_action(pay_str_of(id)));
        pay_id_payment_of(payment, id);
        assert_string_equal(payment, PAYMENT);
    }
    memset(id, 'x', sizeof id);
    memset(payment, 'x', sizeof payment);
    pay_id_action(id, PAYMENT, 'A', 7);
    assert_string_equal(id, PAYMENT "A07");
    pay_id_payment_of(payment, id);
    assert_string_equal(payment, PAYMENT);
    assert_false(pay_id_is_action(PAY_STR(PAYMENT "A00")));
    assert_false(pay_id_is_action(PAY_STR(PAYMENT "B01")));
    assert_false(pay_id_is_action(PAY_STR(PAYMENT "A1")));
    assert_false(pay_id_is_action(PAY_STR(PAYMENT "A011")));
    assert_false(pay_id_is_action(PAY_STR(PAYMENT "A1x")));
    assert_false(pay_id_is_action(PAY_STR(PAYMENT "Ax1")));
    assert_false(pay_id_is_action((struct pay_str){NULL, 29}));
    assert_false(pay_id_is_action(PAY_STR(PAYMENT)));
}

static void a_job_id_carries_its_number_from_the_second_on(void **state)
{
    (void)state;
    char id[PAY_JOB_ID_SIZE];

    pay_id_job(id, PAYMENT "A01", PAY_JOB_SUBMIT, 1);
    assert_string_equal(id, PAYMENT "A01.SUBMIT");
    pay_id_job(id, PAYMENT "A01", PAY_JOB_CANCEL, 2);
    assert_string_equal(id, PAYMENT "A01.CANCEL.2");
    pay_id_job(id, PAYMENT "A01", PAY_JOB_CONFIRM, 1);
    assert_string_equal(id, PAYMENT "A01.CONFIRM.1");
    pay_id_query_by_version(id, PAYMENT "A01", 17);
    assert_string_equal(id, PAYMENT "A01.QUERY.v17");
    pay_id_query_by_due(id, PAYMENT "A01", 1760000000123456);
    assert_string_equal(id, PAYMENT "A01.QUERY.1760000000123");
    pay_id_query_by_version(id, PAYMENT "A01", INT64_MAX); /* The longest fits. */
    pay_id_query_by_due(id, PAYMENT "A01", INT64_MIN);
    assert_string_equal(id, PAYMENT "A01.QUERY.-9223372036854775");
    pay_id_query_by_due(id, PAYMENT "A01", 0);
    assert_string_equal(id, PAYMENT "A01.QUERY.0");
}

static void a_job_ids_kind_can_be_read_back(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        bool ok;
        enum pay_job_kind kind;
    } rows[] = {
        {PAYMENT "A01.SUBMIT", true, PAY_JOB_SUBMIT},
        {PAYMENT "A01.CANCEL.12", true, PAY_JOB_CANCEL},
        {PAYMENT "A01.CONFIRM.1", true, PAY_JOB_CONFIRM},
        {PAYMENT "A01.QUERY.v17", true, PAY_JOB_QUERY},
        {PAYMENT "R01.QUERY_REFUND.5", true, PAY_JOB_QUERY_REFUND},
        {PAYMENT "A01.", false, PAY_JOB_SUBMIT},
        {PAYMENT "A01", false, PAY_JOB_SUBMIT},
        {PAYMENT "A01.SUBMITTED", false, PAY_JOB_SUBMIT},
        {PAYMENT "A01xCANCEL", false, PAY_JOB_SUBMIT},
        {PAYMENT "A0.SUBMIT.1", false, PAY_JOB_SUBMIT},
        {"", false, PAY_JOB_SUBMIT},
        {NULL, false, PAY_JOB_SUBMIT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum pay_job_kind kind = PAY_JOB_SUBMIT;
        assert_int_equal(pay_id_job_kind(pay_str_of(rows[i].id), &kind), rows[i].ok);
        assert_int_equal(kind, rows[i].kind);
    }
    enum pay_job_kind kind = PAY_JOB_SUBMIT;
    for (size_t len = 0; len <= strlen(PAYMENT "A01."); len++) { /* What is cut has none. */
        assert_false(pay_id_job_kind((struct pay_str){PAYMENT "A01.CANCEL", len}, &kind));
    }
    assert_false(pay_id_job_kind((struct pay_str){NULL, 40}, &kind));
}

static void the_same_fact_has_the_same_id_and_another_has_another(void **state)
{
    (void)state;
    char a[PAY_EVENT_ID_SIZE];
    char b[PAY_EVENT_ID_SIZE];

    pay_id_fact(a, PAY_FACT_PAYMENT_SUCCEEDED, PAYMENT, "pi_1:SUCCEEDED");
    pay_id_fact(b, PAY_FACT_PAYMENT_SUCCEEDED, PAYMENT, "pi_1:SUCCEEDED");
    assert_string_equal(a, b);
    assert_int_equal(strncmp(a, "PaymentSucceeded/" PAYMENT "/", strlen("PaymentSucceeded/") + 27),
                     0);
    assert_int_equal(strlen(a), strlen("PaymentSucceeded/") + 27 + 16);
    pay_id_fact(b, PAY_FACT_PAYMENT_SUCCEEDED, PAYMENT, "pi_2:SUCCEEDED");
    assert_string_not_equal(a, b);
    pay_id_fact(b, PAY_FACT_PAYMENT_FAILED, PAYMENT, "pi_1:SUCCEEDED");
    assert_string_not_equal(a, b);
}

static void a_long_aggregate_is_cut_but_not_confused(void **state)
{
    (void)state;
    char a[PAY_EVENT_ID_SIZE];
    char b[PAY_EVENT_ID_SIZE];
    char caller[PAY_CAUSE_SIZE];

    memset(caller, 'c', sizeof caller - 1);
    caller[sizeof caller - 1] = 0;
    pay_id_fact(a, PAY_FACT_COMMAND_ACCEPTED, caller, "cause");
    assert_int_equal(strlen(a), PAY_EVENT_ID_SIZE - 1);
    caller[sizeof caller - 2] = 'd';
    pay_id_fact(b, PAY_FACT_COMMAND_ACCEPTED, caller, "cause");
    assert_string_not_equal(a, b);
}

static void a_cause_of_any_length_fits_and_is_told_apart(void **state)
{
    (void)state;
    static char text[600];
    char a[PAY_CAUSE_SIZE];
    char b[PAY_CAUSE_SIZE];
    char at[PAY_CAUSE_SIZE + 24];

    memset(text, 'x', sizeof text - 1);
    for (size_t len = PAY_CAUSE_SIZE - 1; len <= PAY_CAUSE_SIZE + 1; len++) {
        memset(a, 'y', sizeof a);
        pay_id_cause(a, (struct pay_str){text, len});
        assert_int_equal(strlen(a), PAY_CAUSE_SIZE - 1);
    }
    pay_id_cause(a, pay_str_of(text));
    assert_int_equal(strlen(a), PAY_CAUSE_SIZE - 1);
    text[598] = 'y';
    pay_id_cause(b, pay_str_of(text));
    assert_string_not_equal(a, b);
    pay_id_cause(b, (struct pay_str){"shorter", strlen("short")});
    assert_string_equal(b, "short");
    pay_id_cause(b, (struct pay_str){NULL, 0});
    assert_string_equal(b, "");
    pay_id_cause_at(at, a, INT64_MAX); /* The longest fits. */
    pay_id_cause_at(at, "k", INT64_MIN);
    assert_string_equal(at, "k#v-9223372036854775808");
    pay_id_cause_at(at, "k", 3);
    assert_string_equal(at, "k#v3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_payment_id_is_an_upper_case_ulid),
        cmocka_unit_test(an_action_id_is_the_payments_with_letter_and_number),
        cmocka_unit_test(a_job_id_carries_its_number_from_the_second_on),
        cmocka_unit_test(a_job_ids_kind_can_be_read_back),
        cmocka_unit_test(the_same_fact_has_the_same_id_and_another_has_another),
        cmocka_unit_test(a_long_aggregate_is_cut_but_not_confused),
        cmocka_unit_test(a_cause_of_any_length_fits_and_is_told_apart),
    };
    return cmocka_run_group_tests_name("id", tests, NULL, NULL);
}
