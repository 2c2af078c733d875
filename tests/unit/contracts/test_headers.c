/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/contracts/headers.h"

#define TRACE "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static const char *value_of(const struct pay_header *headers, size_t count, const char *name)
{
    const char *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(headers[i].name, name) == 0) {
            assert_null(found); /* Once. */
            found = headers[i].value.ptr;
        }
    }
    return found;
}

static void test_cloud_events(void **state)
{
    struct pay_event_header_scratch scratch;
    struct pay_header headers[PAY_EVENT_HEADERS_MAX];
    struct pay_payment_event event = {
        .event_id = PAY_STR("PaymentSucceeded/P/0123456789abcdef"),
        .type = PAY_FACT_PAYMENT_SUCCEEDED,
        .payment_id = PAY_STR("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        .aggregate_id = PAY_STR("aggregate"),
        .decided_at_us = 1,
        .traceparent = PAY_STR(TRACE),
    };
    size_t count = pay_event_headers(&event, &scratch, headers);

    (void)state;
    assert_int_equal(count, 8);
    assert_string_equal(value_of(headers, count, "ce_id"), "PaymentSucceeded/P/0123456789abcdef");
    assert_string_equal(value_of(headers, count, "ce_source"), "/payfact");
    assert_string_equal(value_of(headers, count, "ce_type"), "payfact.PaymentSucceeded");
    assert_string_equal(value_of(headers, count, "ce_time"), "1970-01-01T00:00:00.000001Z");
    assert_string_equal(value_of(headers, count, "ce_specversion"), "1.0");
    assert_string_equal(value_of(headers, count, "ce_subject"), "01ARZ3NDEKTSV4RRFFQ69G5FAV");
    assert_string_equal(value_of(headers, count, "content-type"), "application/avro");
    assert_string_equal(value_of(headers, count, "traceparent"), TRACE);
    event.payment_id = PAY_STR("");
    event.traceparent = PAY_STR("broken");
    count = pay_event_headers(&event, &scratch, headers);
    assert_int_equal(count, 7);
    assert_string_equal(value_of(headers, count, "ce_subject"), "aggregate");
    assert_null(value_of(headers, count, "traceparent"));
}

static void test_every_type_fits(void **state)
{
    struct pay_event_header_scratch scratch;
    struct pay_header headers[PAY_EVENT_HEADERS_MAX];

    (void)state;
    for (int type = 0; type < PAY_FACT_COUNT; type++) {
        const struct pay_payment_event event = {.type = (enum pay_fact_type)type};
        const char *name = pay_fact_type_name((enum pay_fact_type)type);
        const size_t count = pay_event_headers(&event, &scratch, headers);
        assert_string_equal(value_of(headers, count, "ce_type") + strlen("payfact."), name);
    }
}

static void test_traceparent(void **state)
{
    static const struct {
        const char *text;
        bool good;
    } cases[] = {
        {TRACE, true},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", true},
        {NULL, false},
        {"", false},
        {TRACE "0", false},
        {"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false},
        {"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", false},
        {"00-00000000000000000000000000000000-b7ad6b7169203331-01", false},
        {"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", false},
        {"00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false},
        {"00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01", false},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331_01", false},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(pay_traceparent_valid(pay_str_of(cases[i].text)), cases[i].good);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cloud_events),
        cmocka_unit_test(test_every_type_fits),
        cmocka_unit_test(test_traceparent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
