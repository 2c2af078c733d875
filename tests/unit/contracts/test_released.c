/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/contracts/released.h"

static void test_oldest_first_current_last_none_twice(void **state)
{
    struct pay_codec *codec = NULL;
    struct pay_err err;
    (void)state;
    assert_int_equal(pay_codec_new(&codec, &err), PAY_OK);
    for (int record = 0; record < PAY_RECORD_COUNT; record++) {
        struct pay_released released[PAY_RELEASED_MAX];
        const size_t count = pay_released((enum pay_record)record, released);
        assert_true(count >= 1);
        assert_int_equal(released[count - 1].version, 0);
        assert_int_equal(released[count - 1].fingerprint,
                         pay_codec_fingerprint(codec, (enum pay_record)record));
        for (size_t i = 0; i < count; i++) {
            uint64_t fingerprint = 0;
            assert_int_equal(pay_schema_text_fingerprint((enum pay_record)record, released[i].json,
                                                         &fingerprint, &err),
                             PAY_OK);
            assert_int_equal(fingerprint, released[i].fingerprint);
            assert_true(pay_released_has((enum pay_record)record, fingerprint));
            for (size_t j = 0; j < i; j++) {
                assert_int_not_equal(released[j].fingerprint, fingerprint);
            }
        }
        assert_false(pay_released_has((enum pay_record)record, 1));
    }
    (void)pay_codec_free(codec);
}

static void test_a_text_that_is_no_schema_of_the_record(void **state)
{
    static const struct {
        const char *text;
        enum pay_codec_code code;
    } rows[] = {
        {NULL, PAY_CODEC_TOO_LARGE},
        {"", PAY_CODEC_MALFORMED},
        {"{", PAY_CODEC_MALFORMED},
        {"\"string\"", PAY_CODEC_MALFORMED},
        {"{\"type\":\"record\",\"name\":\"Other\",\"fields\":[]}", PAY_CODEC_MALFORMED},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pay_err err = {.status = PAY_OK};
        uint64_t fingerprint = 7;
        assert_int_equal(pay_schema_text_fingerprint(PAY_RECORD_COMMAND, pay_str_of(rows[i].text),
                                                     &fingerprint, &err),
                         PAY_REJECT);
        assert_int_equal(err.code, rows[i].code);
        assert_int_equal(fingerprint, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oldest_first_current_last_none_twice),
        cmocka_unit_test(test_a_text_that_is_no_schema_of_the_record),
    };
    return cmocka_run_group_tests_name("contracts.released", tests, NULL, NULL);
}
