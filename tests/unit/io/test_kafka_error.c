/* SPDX-License-Identifier: Apache-2.0 */
/* What each librdkafka code means, by the codes' numbers, which are the protocol's and the
 * library's contract. */
#include "common/io/kafka/kafka_error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct row {
    int code;
    const char *name;
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
    {-192, "_MSG_TIMED_OUT", R, U, R},
    {-185, "_TIMED_OUT", R, U, R},
    {-166, "_TIMED_OUT_QUEUE", R, U, R},
    {-195, "_TRANSPORT", R, U, R},
    {-197, "_DESTROY", R, U, R},
    {-187, "_ALL_BROKERS_DOWN", R, U, R},
    {-151, "_PURGE_INFLIGHT", R, U, R},
    {7, "REQUEST_TIMED_OUT", R, U, R},
    {13, "NETWORK_EXCEPTION", R, U, R},
    {20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", R, U, R},
    {-1, "UNKNOWN", R, U, R},
    {56, "KAFKA_STORAGE_ERROR", R, U, R},
    /* Not taken now. */
    {-184, "_QUEUE_FULL", R, U, R},
    {-152, "_PURGE_QUEUE", R, U, R},
    {-180, "_WAIT_COORD", R, U, R},
    {-178, "_IN_PROGRESS", R, U, R},
    {-193, "_RESOLVE", R, U, R},
    {-181, "_SSL", R, U, R},
    {-169, "_AUTHENTICATION", R, U, R},
    {5, "LEADER_NOT_AVAILABLE", R, U, R},
    {6, "NOT_LEADER_FOR_PARTITION", R, U, R},
    {19, "NOT_ENOUGH_REPLICAS", R, U, R},
    {8, "BROKER_NOT_AVAILABLE", R, U, R},
    {9, "REPLICA_NOT_AVAILABLE", R, U, R},
    {74, "FENCED_LEADER_EPOCH", R, U, R},
    {75, "UNKNOWN_LEADER_EPOCH", R, U, R},
    {89, "THROTTLING_QUOTA_EXCEEDED", R, U, R},
    {58, "SASL_AUTHENTICATION_FAILED", R, U, R},
    {-188, "_UNKNOWN_TOPIC", R, U, R},
    {-190, "_UNKNOWN_PARTITION", R, U, R},
    {3, "UNKNOWN_TOPIC_OR_PART", R, U, R},
    /* Refused for good, unless an earlier try may have been taken. */
    {10, "MSG_SIZE_TOO_LARGE", J, U, J},
    {18, "RECORD_LIST_TOO_LARGE", J, U, J},
    {4, "INVALID_MSG_SIZE", J, U, J},
    {2, "INVALID_MSG", J, U, J},
    {87, "INVALID_RECORD", J, U, J},
    {32, "INVALID_TIMESTAMP", J, U, J},
    {17, "TOPIC_EXCEPTION", J, U, J},
    {29, "TOPIC_AUTHORIZATION_FAILED", J, U, R},
    {31, "CLUSTER_AUTHORIZATION_FAILED", J, U, R},
    {21, "INVALID_REQUIRED_ACKS", J, U, J},
    {43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", J, U, J},
    {44, "POLICY_VIOLATION", J, U, J},
    {-186, "_INVALID_ARG", J, U, J},
    {-199, "_BAD_MSG", J, U, R},
    /* The producer must be rebuilt. */
    {-150, "_FATAL", F, F, F},
    {-144, "_FENCED", F, F, F},
    {-148, "_GAPLESS_GUARANTEE", F, F, F},
    {-149, "_INCONSISTENT", F, F, F},
    {45, "OUT_OF_ORDER_SEQUENCE_NUMBER", F, F, F},
    {59, "UNKNOWN_PRODUCER_ID", F, F, F},
    {47, "INVALID_PRODUCER_EPOCH", F, F, F},
    {49, "INVALID_PRODUCER_ID_MAPPING", F, F, F},
    {90, "PRODUCER_FENCED", F, F, F},
    {-165, "_UNSUPPORTED_FEATURE", F, F, F},
    {35, "UNSUPPORTED_VERSION", F, F, F},
    /* The group. */
    {82, "FENCED_INSTANCE_ID", F, F, F},
    {23, "INCONSISTENT_GROUP_PROTOCOL", F, F, F},
    {24, "INVALID_GROUP_ID", F, F, F},
    {26, "INVALID_SESSION_TIMEOUT", F, F, F},
    {81, "GROUP_MAX_SIZE_REACHED", F, F, F},
    {30, "GROUP_AUTHORIZATION_FAILED", J, U, R},
    {22, "ILLEGAL_GENERATION", R, U, R},
    {25, "UNKNOWN_MEMBER_ID", R, U, R},
    {27, "REBALANCE_IN_PROGRESS", R, U, R},
    {-147, "_MAX_POLL_EXCEEDED", R, U, R},
    {-142, "_ASSIGNMENT_LOST", R, U, R},
    {88, "UNSTABLE_OFFSET_COMMIT", R, U, R},
    {14, "COORDINATOR_LOAD_IN_PROGRESS", R, U, R},
    {15, "COORDINATOR_NOT_AVAILABLE", R, U, R},
    {16, "NOT_COORDINATOR", R, U, R},
    /* Topics. */
    {37, "INVALID_PARTITIONS", J, U, J},
    {38, "INVALID_REPLICATION_FACTOR", J, U, J},
    {39, "INVALID_REPLICA_ASSIGNMENT", J, U, J},
    {40, "INVALID_CONFIG", J, U, J},
    {42, "INVALID_REQUEST", J, U, J},
    {41, "NOT_CONTROLLER", R, U, R},
    /* Unlisted. */
    {-189, "_FS", R, U, R},
    {93, "UNACCEPTABLE_CREDENTIAL", R, U, R},
};

static void each_code_has_its_class(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];

        assert_string_equal(pay_kafka_error_name(row->code), row->name);
        if (pay_kafka_produce_class(row->code, PAY_KAFKA_NOT_PERSISTED) != row->unsent ||
            pay_kafka_produce_class(row->code, PAY_KAFKA_POSSIBLY_PERSISTED) != row->possibly ||
            pay_kafka_client_class(row->code) != row->client) {
            fail_msg(
                "%s: %s, %s, %s", row->name,
                pay_status_name(pay_kafka_produce_class(row->code, PAY_KAFKA_NOT_PERSISTED)),
                pay_status_name(pay_kafka_produce_class(row->code, PAY_KAFKA_POSSIBLY_PERSISTED)),
                pay_status_name(pay_kafka_client_class(row->code)));
        }
    }
}

static void no_error_is_ok(void **state)
{
    (void)state;
    assert_int_equal(pay_kafka_produce_class(0, PAY_KAFKA_PERSISTED), PAY_OK);
    assert_int_equal(pay_kafka_produce_class(0, PAY_KAFKA_NOT_PERSISTED), PAY_OK);
    assert_int_equal(pay_kafka_client_class(0), PAY_OK);
    /* The log has it, whatever else went wrong. */
    assert_int_equal(pay_kafka_produce_class(-150, PAY_KAFKA_PERSISTED), PAY_OK);
    assert_string_equal(pay_kafka_error_name(0), "NO_ERROR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_code_has_its_class),
        cmocka_unit_test(no_error_is_ok),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
