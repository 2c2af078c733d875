/* SPDX-License-Identifier: Apache-2.0 */
/* What each librdkafka code means, by the codes' numbers, which are the protocol's and the
 * library's contract. */
#include "common/io/kafka/kafka_error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct row {
    const char *name;
    int code;
    enum pay_status unsent;   /* Delivery report, not persisted. */
    enum pay_status possibly; /* Delivery report, possibly persisted. */
    enum pay_status client;   /* From poll, commit or an admin call. */
};

#define R PAY_RETRY
#define U PAY_UNKNOWN
#define J PAY_REJECT
#define F PAY_FATAL

static const struct row rows[] = {
    /* The status of the record decides. */
    {"_MSG_TIMED_OUT", -192, R, U, R},
    {"_TIMED_OUT", -185, R, U, R},
    {"_TIMED_OUT_QUEUE", -166, R, U, R},
    {"_TRANSPORT", -195, R, U, R},
    {"_DESTROY", -197, R, U, R},
    {"_ALL_BROKERS_DOWN", -187, R, U, R},
    {"_PURGE_INFLIGHT", -151, R, U, R},
    {"REQUEST_TIMED_OUT", 7, R, U, R},
    {"NETWORK_EXCEPTION", 13, R, U, R},
    {"NOT_ENOUGH_REPLICAS_AFTER_APPEND", 20, R, U, R},
    {"UNKNOWN", -1, R, U, R},
    {"KAFKA_STORAGE_ERROR", 56, R, U, R},
    /* Not taken now. */
    {"_QUEUE_FULL", -184, R, U, R},
    {"_PURGE_QUEUE", -152, R, U, R},
    {"_WAIT_COORD", -180, R, U, R},
    {"_IN_PROGRESS", -178, R, U, R},
    {"_RESOLVE", -193, R, U, R},
    {"_SSL", -181, R, U, R},
    {"_AUTHENTICATION", -169, R, U, R},
    {"LEADER_NOT_AVAILABLE", 5, R, U, R},
    {"NOT_LEADER_FOR_PARTITION", 6, R, U, R},
    {"NOT_ENOUGH_REPLICAS", 19, R, U, R},
    {"BROKER_NOT_AVAILABLE", 8, R, U, R},
    {"REPLICA_NOT_AVAILABLE", 9, R, U, R},
    {"FENCED_LEADER_EPOCH", 74, R, U, R},
    {"UNKNOWN_LEADER_EPOCH", 75, R, U, R},
    {"THROTTLING_QUOTA_EXCEEDED", 89, R, U, R},
    {"SASL_AUTHENTICATION_FAILED", 58, R, U, R},
    {"_UNKNOWN_TOPIC", -188, R, U, R},
    {"_UNKNOWN_PARTITION", -190, R, U, R},
    {"UNKNOWN_TOPIC_OR_PART", 3, R, U, R},
    /* The record itself is refused for good, unless an earlier try may have been taken. */
    {"MSG_SIZE_TOO_LARGE", 10, J, U, J},
    {"RECORD_LIST_TOO_LARGE", 18, J, U, J},
    {"INVALID_MSG_SIZE", 4, J, U, J},
    {"INVALID_RECORD", 87, J, U, J},
    /* Every record would be: it says nothing of this one. */
    {"TOPIC_AUTHORIZATION_FAILED", 29, R, U, R},
    {"CLUSTER_AUTHORIZATION_FAILED", 31, R, U, R},
    {"TOPIC_EXCEPTION", 17, R, U, J},
    {"INVALID_TIMESTAMP", 32, R, U, J},
    {"INVALID_MSG", 2, R, U, J},
    {"INVALID_REQUIRED_ACKS", 21, R, U, J},
    {"UNSUPPORTED_FOR_MESSAGE_FORMAT", 43, R, U, J},
    {"POLICY_VIOLATION", 44, R, U, J},
    {"_INVALID_ARG", -186, R, U, J},
    {"_BAD_MSG", -199, R, U, R},
    /* The producer must be rebuilt. */
    {"_FATAL", -150, F, F, F},
    {"_FENCED", -144, F, F, F},
    {"_GAPLESS_GUARANTEE", -148, F, F, F},
    {"_INCONSISTENT", -149, F, F, F},
    {"OUT_OF_ORDER_SEQUENCE_NUMBER", 45, F, F, F},
    {"UNKNOWN_PRODUCER_ID", 59, F, F, F},
    {"INVALID_PRODUCER_EPOCH", 47, F, F, F},
    {"INVALID_PRODUCER_ID_MAPPING", 49, F, F, F},
    {"PRODUCER_FENCED", 90, F, F, F},
    {"_UNSUPPORTED_FEATURE", -165, F, F, F},
    {"UNSUPPORTED_VERSION", 35, F, F, F},
    /* The group. */
    {"FENCED_INSTANCE_ID", 82, F, F, F},
    {"INCONSISTENT_GROUP_PROTOCOL", 23, F, F, F},
    {"INVALID_GROUP_ID", 24, F, F, F},
    {"INVALID_SESSION_TIMEOUT", 26, F, F, F},
    {"GROUP_MAX_SIZE_REACHED", 81, F, F, F},
    {"GROUP_AUTHORIZATION_FAILED", 30, R, U, R},
    {"ILLEGAL_GENERATION", 22, R, U, R},
    {"UNKNOWN_MEMBER_ID", 25, R, U, R},
    {"REBALANCE_IN_PROGRESS", 27, R, U, R},
    {"_MAX_POLL_EXCEEDED", -147, R, U, R},
    {"_ASSIGNMENT_LOST", -142, R, U, R},
    {"UNSTABLE_OFFSET_COMMIT", 88, R, U, R},
    {"COORDINATOR_LOAD_IN_PROGRESS", 14, R, U, R},
    {"COORDINATOR_NOT_AVAILABLE", 15, R, U, R},
    {"NOT_COORDINATOR", 16, R, U, R},
    /* Topics. */
    {"INVALID_PARTITIONS", 37, R, U, J},
    {"INVALID_REPLICATION_FACTOR", 38, R, U, J},
    {"INVALID_REPLICA_ASSIGNMENT", 39, R, U, J},
    {"INVALID_CONFIG", 40, R, U, J},
    {"INVALID_REQUEST", 42, R, U, J},
    {"NOT_CONTROLLER", 41, R, U, R},
    /* Unlisted. */
    {"_FS", -189, R, U, R},
    {"UNACCEPTABLE_CREDENTIAL", 93, R, U, R},
};

static bool is_as_wanted(const struct row *row)
{
    return pay_kafka_produce_class(row->code, PAY_KAFKA_NOT_PERSISTED) == row->unsent &&
           pay_kafka_produce_class(row->code, PAY_KAFKA_POSSIBLY_PERSISTED) == row->possibly &&
           pay_kafka_client_class(row->code) == row->client;
}

static void each_code_has_its_class(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_string_equal(pay_kafka_error_name(rows[i].code), rows[i].name);
        if (!is_as_wanted(&rows[i])) {
            print_error("%s is not in the class wanted\n", rows[i].name);
            fail();
        }
    }
}

/* The status by its number in librdkafka's contract: 0 not, 1 possibly, 2 persisted. */
static void K11_persisted_is_what_has_an_offset(void **state)
{
    (void)state;
    assert_int_equal(pay_kafka_persisted_of(2, 0), PAY_KAFKA_PERSISTED);
    assert_int_equal(pay_kafka_persisted_of(2, 7), PAY_KAFKA_PERSISTED);
    assert_int_equal(pay_kafka_persisted_of(2, -1), PAY_KAFKA_POSSIBLY_PERSISTED);
    assert_int_equal(pay_kafka_persisted_of(2, -1001), PAY_KAFKA_POSSIBLY_PERSISTED);
    assert_int_equal(pay_kafka_persisted_of(1, 7), PAY_KAFKA_POSSIBLY_PERSISTED);
    assert_int_equal(pay_kafka_persisted_of(0, -1001), PAY_KAFKA_NOT_PERSISTED);
    assert_int_equal(pay_kafka_persisted_of(3, 7), PAY_KAFKA_POSSIBLY_PERSISTED);
}

static void no_error_is_ok(void **state)
{
    (void)state;
    assert_int_equal(pay_kafka_produce_class(0, PAY_KAFKA_PERSISTED), PAY_OK);
    assert_int_equal(pay_kafka_produce_class(0, PAY_KAFKA_NOT_PERSISTED), PAY_OK);
    /* Taken for delivered because a later one was: a guess. */
    assert_int_equal(pay_kafka_produce_class(0, PAY_KAFKA_POSSIBLY_PERSISTED), PAY_UNKNOWN);
    assert_int_equal(pay_kafka_client_class(0), PAY_OK);
    /* The log has it, whatever else went wrong. */
    assert_int_equal(pay_kafka_produce_class(-150, PAY_KAFKA_PERSISTED), PAY_OK);
    assert_string_equal(pay_kafka_error_name(0), "NO_ERROR");
}

/* Whoever gives a record up labels it by this. */
static void only_sizes_are_too_large(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int code = rows[i].code;
        assert_int_equal(pay_kafka_is_too_large(code), code == 10 || code == 18 || code == 4);
    }
}

/* Of a refusal nothing is to be expected soon; of an outage it is. */
static void refusals_are_told_from_outages(void **state)
{
    (void)state;
    static const int refusals[] = {29, 31, 17, 3, -188, -190};
    static const int others[] = {0, 10, 19, -192, -195, -184, -150};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        assert_true(pay_kafka_is_refusal(refusals[i]));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(pay_kafka_is_refusal(others[i]));
        assert_int_equal(pay_kafka_is_full(others[i]), others[i] == -184);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_code_has_its_class),
        cmocka_unit_test(K11_persisted_is_what_has_an_offset),
        cmocka_unit_test(no_error_is_ok),
        cmocka_unit_test(only_sizes_are_too_large),
        cmocka_unit_test(refusals_are_told_from_outages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
