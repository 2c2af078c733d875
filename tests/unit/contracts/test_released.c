/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/contracts/released.h"

static void check_one(enum pay_record record, const struct pay_released *released, size_t at)
{
    struct pay_err err;
    uint64_t fingerprint = 0;
    assert_int_equal(pay_schema_text_fingerprint(record, released[at].json, &fingerprint, &err),
                     PAY_OK);
    assert_int_equal(fingerprint, released[at].fingerprint);
    assert_true(pay_released_has(record, fingerprint));
    for (size_t i = 0; i < at; i++) {
        assert_int_not_equal(released[i].fingerprint, fingerprint);
    }
}

static void check_record(const struct pay_codec *codec, enum pay_record record)
{
    struct pay_released released[PAY_RELEASED_MAX];
    const size_t count = pay_released(record, released);
    assert_true(count >= 1);
    assert_int_equal(released[count - 1].version, 0);
    assert_int_equal(released[count - 1].fingerprint, pay_codec_fingerprint(codec, record));
    for (size_t i = 0; i < count; i++) {
        check_one(record, released, i);
    }
    assert_false(pay_released_has(record, 1));
}

static void test_oldest_first_current_last_none_twice(void **state)
{
    struct pay_codec *codec = NULL;
    struct pay_err err;
    (void)state;
    assert_int_equal(pay_codec_new(&codec, &err), PAY_OK);
    for (int record = 0; record < PAY_RECORD_COUNT; record++) {
        check_record(codec, (enum pay_record)record);
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
