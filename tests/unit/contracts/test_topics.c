/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "common/contracts/topics.h"

#define DAY_MS INT64_C(86400000)

static void test_the_table_is_architectures(void **state)
{
    static const struct {
        const char *name;
        int64_t days;
        enum pay_record record;
        bool is_public;
    } rows[PAY_TOPIC_COUNT] = {
        [PAY_TOPIC_NOTIFICATIONS] = {"payfact.notifications", 7, PAY_RECORD_RAW_NOTIFICATION, true},
        [PAY_TOPIC_COMMANDS] = {"payfact.commands", 7, PAY_RECORD_COMMAND, true},
        [PAY_TOPIC_INPUTS] = {"payfact.inputs", 7, PAY_RECORD_PAYMENT_INPUT, false},
        [PAY_TOPIC_PSP_JOBS] = {"payfact.psp-jobs", 7, PAY_RECORD_PSP_JOB, false},
        [PAY_TOPIC_EVENTS] = {"payfact.events", 30, PAY_RECORD_PAYMENT_EVENT, true},
        [PAY_TOPIC_DLQ] = {"payfact.dlq", 30, PAY_RECORD_DEAD_LETTER, false},
    };
    (void)state;
    assert_int_equal(PAY_TOPIC_PARTITIONS_DEFAULT, 12);
    for (int i = 0; i < PAY_TOPIC_COUNT; i++) {
        char name[PAY_TOPIC_NAME_SIZE];
        enum pay_topic found = PAY_TOPIC_COUNT;
        const struct pay_topic_spec *spec = pay_topic_spec((enum pay_topic)i);
        assert_true(pay_topic_name(name, (enum pay_topic)i, NULL));
        assert_string_equal(name, rows[i].name);
        assert_int_equal(spec->record, rows[i].record);
        assert_int_equal(spec->retention_ms, rows[i].days * DAY_MS);
        assert_int_equal(spec->is_public, rows[i].is_public);
        assert_true((size_t)spec->max_message_bytes > pay_record_bytes_max(spec->record));
        assert_true(pay_topic_parse(pay_str_of(name), NULL, &found));
        assert_int_equal(found, i);
        assert_false(pay_topic_parse(pay_str_of(name), "other.", &found));
    }
}

static void test_prefix(void **state)
{
    char name[PAY_TOPIC_NAME_SIZE];
    char longest[PAY_TOPIC_NAME_SIZE];

    (void)state;
    assert_true(pay_topic_name(name, PAY_TOPIC_DLQ, ""));
    assert_string_equal(name, "dlq");
    assert_true(pay_topic_name(name, PAY_TOPIC_DLQ, "test-7.A_"));
    assert_string_equal(name, "test-7.A_dlq");
    assert_false(pay_topic_name(name, PAY_TOPIC_DLQ, "with space"));
    assert_string_equal(name, "");
    memset(longest, 'p', sizeof longest);
    longest[246] = '\0'; /* 246 + 3 = 249, Kafka's maximum. */
    assert_true(pay_topic_name(name, PAY_TOPIC_DLQ, longest));
    longest[246] = 'p';
    longest[247] = '\0';
    assert_false(pay_topic_name(name, PAY_TOPIC_DLQ, longest));
    assert_string_equal(name, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_is_architectures),
        cmocka_unit_test(test_prefix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
