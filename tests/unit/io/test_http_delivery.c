/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: NOT_SENT and ANSWERED are said only where they are certain, for every code libcurl has.
 * Method: the list of codes again, as the requirement names them; all codes times the other
 * evidence.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/io/http_client/delivery.h"

#define CODES 110 /* libcurl 7.88 has 99. */

/* By number, as curl's libcurl-errors page lists them. */
static const int unsent_codes[] = {
    5,  /* could not resolve the proxy */
    6,  /* could not resolve the host */
    7,  /* could not connect */
    28, /* timed out */
    35, /* TLS handshake */
    42, /* aborted by our callback */
    58, /* own certificate */
    59, /* cipher */
    60, /* the peer's certificate */
    77, /* CA file */
    83, /* issuer */
    91, /* certificate status */
};

static bool is_listed(int code)
{
    for (size_t i = 0; i < sizeof unsent_codes / sizeof unsent_codes[0]; i++) {
        if (unsent_codes[i] == code) {
            return true;
        }
    }
    return false;
}

static void not_sent_needs_all_three(void **state)
{
    (void)state;
    for (int code = 0; code < CODES; code++) {
        for (unsigned bits = 0; bits < 8; bits++) {
            const struct pay_http_evidence evidence = {.curl_code = code,
                                                       .sends = bits & 1u,
                                                       .request_size = (bits & 2u) != 0 ? 100 : 0,
                                                       .status = (bits & 4u) != 0 ? 200 : 0};
            const bool is_certain = is_listed(code) && (bits & 3u) == 0;
            assert_int_equal(pay_http_delivery_of(&evidence),
                             is_certain ? PAY_HTTP_NOT_SENT : PAY_HTTP_UNKNOWN);
        }
    }
}

static void answered_needs_a_whole_final_answer(void **state)
{
    (void)state;
    static const struct {
        long status;
        bool is_whole;
        enum pay_http_delivery want;
    } rows[] = {
        {0, true, PAY_HTTP_UNKNOWN},    {100, true, PAY_HTTP_UNKNOWN},
        {199, true, PAY_HTTP_UNKNOWN},  {200, true, PAY_HTTP_ANSWERED},
        {200, false, PAY_HTTP_UNKNOWN}, {302, true, PAY_HTTP_ANSWERED},
        {599, true, PAY_HTTP_ANSWERED}, {600, true, PAY_HTTP_UNKNOWN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pay_http_evidence evidence = {
            .request_size = 10, .sends = 1, .status = rows[i].status, .is_whole = rows[i].is_whole};
        assert_int_equal(pay_http_delivery_of(&evidence), rows[i].want);
        evidence.curl_code = 56; /* An error after the status line. */
        assert_int_equal(pay_http_delivery_of(&evidence), PAY_HTTP_UNKNOWN);
    }
}

static void names_are_total(void **state)
{
    (void)state;
    assert_string_equal(pay_http_delivery_name(PAY_HTTP_NOT_SENT), "NOT_SENT");
    assert_string_equal(pay_http_delivery_name(PAY_HTTP_DELIVERY_COUNT), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_sent_needs_all_three),
        cmocka_unit_test(answered_needs_a_whole_final_answer),
        cmocka_unit_test(names_are_total),
    };
    return cmocka_run_group_tests_name("http_delivery", tests, NULL, NULL);
}
