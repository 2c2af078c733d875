/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: every word has one name, every name its word, and nothing else is either. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>
#include <string.h>

#include "common/core/types.h"

#define NAMES_ARE_TOTAL(word, FIRST, COUNT)                                           \
    static void names_of_##word(void)                                                 \
    {                                                                                 \
        for (int v = (FIRST); v < (COUNT); v++) {                                     \
            const char *name = pay_##word##_name((enum pay_##word)v);                 \
            assert_string_not_equal(name, "?");                                       \
            for (int w = (FIRST); w < v; w++) {                                       \
                assert_string_not_equal(name, pay_##word##_name((enum pay_##word)w)); \
            }                                                                         \
        }                                                                             \
        assert_string_equal(pay_##word##_name((enum pay_##word)(COUNT)), "?");        \
    }

#define NAMES_PARSE(word, FIRST, COUNT)                                                         \
    NAMES_ARE_TOTAL(word, FIRST, COUNT)                                                         \
    static void parse_of_##word(void)                                                           \
    {                                                                                           \
        enum pay_##word value = (enum pay_##word)(FIRST);                                       \
        for (int v = (FIRST); v < (COUNT); v++) {                                               \
            assert_true(                                                                        \
                pay_##word##_parse(pay_str_of(pay_##word##_name((enum pay_##word)v)), &value)); \
            assert_int_equal(value, v);                                                         \
        }                                                                                       \
        assert_false(pay_##word##_parse(PAY_STR("?"), &value));                                 \
        assert_false(pay_##word##_parse(PAY_STR(""), &value));                                  \
        assert_false(pay_##word##_parse((struct pay_str){NULL, 0}, &value));                    \
        assert_int_equal(value, (COUNT) - 1);                                                   \
    }

/* clang-format off */
NAMES_PARSE(order_status, 0, PAY_ORDER_STATUS_COUNT)
NAMES_PARSE(attempt_status, 0, PAY_ATTEMPT_STATUS_COUNT)
NAMES_ARE_TOTAL(attempt_event, 0, PAY_AE_COUNT)
NAMES_PARSE(event_type, 0, PAY_EV_COUNT)
NAMES_PARSE(evidence, PAY_EVIDENCE_LOCAL, PAY_EVIDENCE_COUNT)
NAMES_PARSE(source, 0, PAY_SOURCE_COUNT)
NAMES_ARE_TOTAL(verdict, 0, PAY_VERDICT_COUNT)
NAMES_PARSE(capture_mode, 0, PAY_CAPTURE_MODE_COUNT)
NAMES_PARSE(intent, 0, PAY_INTENT_COUNT)
NAMES_PARSE(cancel_cause, 0, PAY_CANCEL_CAUSE_COUNT)
NAMES_PARSE(failure_class, 0, PAY_FAILURE_CLASS_COUNT)
NAMES_PARSE(reference_kind, 0, PAY_REFERENCE_KIND_COUNT)
NAMES_PARSE(job_kind, 0, PAY_JOB_KIND_COUNT)
NAMES_PARSE(query_by, 0, PAY_QUERY_BY_COUNT)
NAMES_PARSE(case_kind, 0, PAY_CASE_KIND_COUNT)
NAMES_PARSE(deadline_kind, 0, PAY_DEADLINE_KIND_COUNT)
NAMES_PARSE(command_type, 0, PAY_CMD_COUNT)
NAMES_PARSE(fact_type, 0, PAY_FACT_COUNT)
NAMES_ARE_TOTAL(aggregate, 0, PAY_AGGREGATE_COUNT)
NAMES_PARSE(action_type, 0, PAY_ACTION_TYPE_COUNT)
/* clang-format on */

static void every_value_has_one_name_of_its_own(void **state)
{
    (void)state;
    names_of_order_status();
    names_of_attempt_status();
    names_of_attempt_event();
    names_of_event_type();
    names_of_evidence();
    names_of_source();
    names_of_verdict();
    names_of_capture_mode();
    names_of_intent();
    names_of_cancel_cause();
    names_of_failure_class();
    names_of_reference_kind();
    names_of_job_kind();
    names_of_query_by();
    names_of_case_kind();
    names_of_deadline_kind();
    names_of_command_type();
    names_of_fact_type();
    names_of_aggregate();
    names_of_action_type();
}

static void every_name_is_parsed_to_its_value_and_nothing_else_is(void **state)
{
    (void)state;
    parse_of_order_status();
    parse_of_attempt_status();
    parse_of_event_type();
    parse_of_evidence();
    parse_of_source();
    parse_of_capture_mode();
    parse_of_intent();
    parse_of_cancel_cause();
    parse_of_failure_class();
    parse_of_reference_kind();
    parse_of_job_kind();
    parse_of_query_by();
    parse_of_case_kind();
    parse_of_deadline_kind();
    parse_of_command_type();
    parse_of_fact_type();
    parse_of_action_type();
}

static void final_states_are_the_ones_named_final(void **state)
{
    (void)state;
    static const bool order[PAY_ORDER_STATUS_COUNT] = {[PAY_ORDER_SUCCEEDED] = true,
                                                       [PAY_ORDER_FAILED] = true,
                                                       [PAY_ORDER_CANCELED] = true,
                                                       [PAY_ORDER_EXPIRED] = true};
    static const bool attempt[PAY_ATTEMPT_STATUS_COUNT] = {
        [PAY_ATTEMPT_SUCCEEDED] = true, [PAY_ATTEMPT_FAILED] = true, [PAY_ATTEMPT_CANCELED] = true};
    for (int s = 0; s < PAY_ORDER_STATUS_COUNT; s++) {
        assert_int_equal(pay_order_is_final((enum pay_order_status)s), order[s]);
    }
    for (int s = 0; s < PAY_ATTEMPT_STATUS_COUNT; s++) {
        assert_int_equal(pay_attempt_is_final((enum pay_attempt_status)s), attempt[s]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_has_one_name_of_its_own),
        cmocka_unit_test(every_name_is_parsed_to_its_value_and_nothing_else_is),
        cmocka_unit_test(final_states_are_the_ones_named_final),
    };
    return cmocka_run_group_tests_name("types", tests, NULL, NULL);
}
