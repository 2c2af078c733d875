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
NAMES_ARE_TOTAL(money_kind, 0, PAY_MONEY_KIND_COUNT)
NAMES_PARSE(money_status, 0, PAY_MONEY_STATUS_COUNT)
NAMES_ARE_TOTAL(money_event, 0, PAY_ME_COUNT)
NAMES_PARSE(origin, 0, PAY_ORIGIN_COUNT)
NAMES_PARSE(dispute_status, 0, PAY_DISPUTE_STATUS_COUNT)
NAMES_PARSE(dispute_funds, 0, PAY_DISPUTE_FUNDS_COUNT)
NAMES_PARSE(request_status, 0, PAY_REQUEST_STATUS_COUNT)
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
    names_of_money_kind();
    names_of_money_status();
    names_of_money_event();
    names_of_origin();
    names_of_dispute_status();
    names_of_dispute_funds();
    names_of_request_status();
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
    parse_of_money_status();
    parse_of_origin();
    parse_of_dispute_status();
    parse_of_dispute_funds();
    parse_of_request_status();
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
    for (int s = 0; s < PAY_MONEY_STATUS_COUNT; s++) {
        assert_int_equal(pay_money_is_open((enum pay_money_status)s), s <= PAY_MONEY_UNKNOWN);
    }
    for (int s = 0; s < PAY_DISPUTE_STATUS_COUNT; s++) {
        assert_int_equal(pay_dispute_is_final((enum pay_dispute_status)s), s >= PAY_DISPUTE_WON);
    }
}

/* Each list ends, and knows its own words and no other. */
static void reasons_are_the_listed_ones(void **state)
{
    (void)state;
    size_t n = 0;
    for (; pay_control_reason_at(n) != NULL; n++) {
        assert_true(pay_control_reason_is_known(pay_str_of(pay_control_reason_at(n))));
        assert_false(pay_resolution_is_known(pay_str_of(pay_control_reason_at(n))));
    }
    assert_int_equal(n, 10);
    for (n = 0; pay_resolution_at(n) != NULL; n++) {
        assert_true(pay_resolution_is_known(pay_str_of(pay_resolution_at(n))));
        assert_false(pay_control_reason_is_known(pay_str_of(pay_resolution_at(n))));
    }
    assert_int_equal(n, 7);
    assert_false(pay_control_reason_is_known(PAY_STR("")));
    assert_false(pay_control_reason_is_known((struct pay_str){NULL, 0}));
    assert_false(pay_resolution_is_known(PAY_STR("refunded")));
}

static void only_four_commands_are_always_controlled(void **state)
{
    (void)state;
    int controlled = 0;
    for (int t = 0; t < PAY_CMD_COUNT; t++) {
        controlled += pay_command_is_controlled((enum pay_command_type)t) ? 1 : 0;
    }
    assert_int_equal(controlled, 4);
    assert_true(pay_command_is_controlled(PAY_CMD_FORCE_CLOSE_UNKNOWN));
    assert_true(pay_command_is_controlled(PAY_CMD_CORRECT_STATE));
    assert_true(pay_command_is_controlled(PAY_CMD_RELEASE_RESERVATION));
    assert_true(pay_command_is_controlled(PAY_CMD_OVERRIDE_BLOCK));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_has_one_name_of_its_own),
        cmocka_unit_test(every_name_is_parsed_to_its_value_and_nothing_else_is),
        cmocka_unit_test(final_states_are_the_ones_named_final),
        cmocka_unit_test(reasons_are_the_listed_ones),
        cmocka_unit_test(only_four_commands_are_always_controlled),
    };
    return cmocka_run_group_tests_name("types", tests, NULL, NULL);
}
