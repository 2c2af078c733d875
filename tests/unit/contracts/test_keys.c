/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/contracts/keys.h"

#define JOB "01ARZ3NDEKTSV4RRFFQ69G5FAVA01.SUBMIT"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

static void test_transport_keys(void **state)
{
    static const uint8_t sha256[PAY_SHA256_BYTES];
    char key[PAY_TRANSPORT_KEY_SIZE];

    (void)state;
    assert_true(pay_transport_key_event(key, PAY_STR("evt_1")));
    assert_string_equal(key, "evt_1");
    assert_true(pay_transport_key_digest(key, sha256, 3));
    assert_string_equal(key, ZEROS ":3");
    assert_true(pay_transport_key_answer(key, PAY_STR(JOB), 2, 0));
    assert_string_equal(key, JOB ":2");
    assert_true(pay_transport_key_answer(key, PAY_STR(JOB), 2, 1));
    assert_string_equal(key, JOB ":2:1");
    assert_true(pay_transport_key_local(key, PAY_STR(JOB), 1, PAY_EV_ATTEMPT_UNKNOWN));
    assert_string_equal(key, JOB ":1:ATTEMPT_UNKNOWN");
    assert_true(pay_transport_key_deadline(key, PAY_STR("QUERY"), PAY_STR("A01"), 1234567));
    assert_string_equal(key, "QUERY:A01:1234567");
    assert_true(pay_transport_key_statement(key, sha256, 17));
    assert_string_equal(key, ZEROS ":17");
    assert_true(pay_transport_key_poison(key, PAY_STR("payfact.inputs"), 3, 99));
    assert_string_equal(key, "payfact.inputs:3:99");
}

/* Never cut: the key that does not fit is none. */
static void test_a_key_that_does_not_fit_is_refused(void **state)
{
    char id[PAY_TRANSPORT_KEY_MAX + 1];
    char key[PAY_TRANSPORT_KEY_SIZE] = "before";

    (void)state;
    memset(id, 'e', sizeof id);
    assert_true(pay_transport_key_event(key, (struct pay_str){id, PAY_TRANSPORT_KEY_MAX}));
    assert_int_equal(strlen(key), PAY_TRANSPORT_KEY_MAX);
    assert_false(pay_transport_key_event(key, (struct pay_str){id, PAY_TRANSPORT_KEY_MAX + 1}));
    assert_string_equal(key, "");
    assert_false(pay_transport_key_answer(key, (struct pay_str){id, 199}, 1, 0));
    assert_string_equal(key, "");
}

static void test_a_missing_part_is_refused(void **state)
{
    const struct pay_str absent = {NULL, 0};
    char key[PAY_TRANSPORT_KEY_SIZE] = "before";

    (void)state;
    assert_false(pay_transport_key_event(key, absent));
    assert_string_equal(key, "");
    assert_false(pay_transport_key_event(key, PAY_STR("")));
    assert_false(pay_transport_key_event(key, PAY_STR("a\0b")));
    assert_false(pay_transport_key_answer(key, absent, 1, 0));
    assert_false(pay_transport_key_local(key, PAY_STR(""), 1, PAY_EV_ATTEMPT_UNKNOWN));
    assert_false(pay_transport_key_deadline(key, PAY_STR("QUERY"), absent, 1));
    assert_false(pay_transport_key_deadline(key, absent, PAY_STR("A01"), 1));
    assert_false(pay_transport_key_poison(key, absent, 1, 1));
}

#define REQUEST "01ARZ3NDEKTSV4RRFFQ69G5FAVA01"
#define S(text) {(text), sizeof(text) - 1}
#define NONE {NULL, 0}

static void test_business_keys(void **state)
{
    static const struct {
        struct pay_event event;
        const char *key;
    } cases[] = {
        {{.type = PAY_EV_ATTEMPT_SUCCEEDED,
          .provider_payment_id = S("pi_1"),
          .merchant_request_no = S(REQUEST),
          .normalized_result = S("SUCCEEDED")},
         "pi_1||ATTEMPT_SUCCEEDED|SUCCEEDED"},
        {{.type = PAY_EV_ATTEMPT_SUCCEEDED,
          .merchant_request_no = S(REQUEST),
          .normalized_result = S("SUCCEEDED")},
         REQUEST "||ATTEMPT_SUCCEEDED|SUCCEEDED"},
        {{.type = PAY_EV_REFUND_SUCCEEDED,
          .provider_payment_id = S("pi_1"),
          .provider_action_id = S("re_1"),
          .action_id = S("R01"),
          .normalized_result = S("SUCCEEDED")},
         "pi_1|re_1|REFUND_SUCCEEDED|SUCCEEDED"},
        {{.type = PAY_EV_REFUND_SUCCEEDED,
          .provider_payment_id = S("pi_1"),
          .action_id = S("R01"),
          .normalized_result = S("SUCCEEDED")},
         "pi_1|R01|REFUND_SUCCEEDED|SUCCEEDED"},
        {{.type = PAY_EV_OTHER, .normalized_result = S("OTHER")}, "||OTHER|OTHER"},
        {{.type = PAY_EV_OTHER, .merchant_request_no = S("a|b%"), .normalized_result = S("x")},
         "a%7Cb%25||OTHER|x"},
    };
    char key[PAY_BUSINESS_KEY_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_true(pay_business_key(key, &cases[i].event));
        assert_string_equal(key, cases[i].key);
    }
}

/* What one part holds can never be taken for two parts. */
static void test_business_keys_of_two_facts_differ(void **state)
{
    const struct pay_event a = {.provider_payment_id = PAY_STR("p|q"), .provider_action_id = NONE};
    const struct pay_event b = {.provider_payment_id = PAY_STR("p"),
                                .provider_action_id = PAY_STR("q")};
    const struct pay_event c = {.provider_payment_id = PAY_STR("p%7Cq")};
    char keys[3][PAY_BUSINESS_KEY_SIZE];

    (void)state;
    assert_true(pay_business_key(keys[0], &a));
    assert_true(pay_business_key(keys[1], &b));
    assert_true(pay_business_key(keys[2], &c));
    assert_string_not_equal(keys[0], keys[1]);
    assert_string_not_equal(keys[0], keys[2]);
}

static void test_a_business_key_of_the_longest_parts_fits(void **state)
{
    char text[255];
    char key[PAY_BUSINESS_KEY_SIZE];

    (void)state;
    memset(text, 'r', sizeof text);
    struct pay_event event = {
        .type = PAY_EV_ATTEMPT_AUTHORIZATION_EXPIRED,
        .provider_payment_id = {text, sizeof text},
        .provider_action_id = {text, sizeof text},
        .normalized_result = {text, 64},
    };
    assert_true(pay_business_key(key, &event));
    event.provider_payment_id = (struct pay_str)S("a\0b");
    assert_false(pay_business_key(key, &event));
    assert_string_equal(key, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transport_keys),
        cmocka_unit_test(test_a_key_that_does_not_fit_is_refused),
        cmocka_unit_test(test_a_missing_part_is_refused),
        cmocka_unit_test(test_business_keys),
        cmocka_unit_test(test_business_keys_of_two_facts_differ),
        cmocka_unit_test(test_a_business_key_of_the_longest_parts_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
