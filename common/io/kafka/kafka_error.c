/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/kafka/kafka_error.h"

#include <librdkafka/rdkafka.h>
#include <stddef.h>

#include "common/base/banned.h"

#define CODE(name_) RD_KAFKA_RESP_ERR_##name_

/*
 * produce: what a delivery report or a refused produce call says before the persisted status is
 * looked at. UNKNOWN there means "whatever the status says"; RETRY rows are turned into UNKNOWN
 * when the record may be in the log. REJECT condemns the record, and whoever reads it gives the
 * record up: only what is wrong with its own bytes may say so. What is wrong with the topic, the
 * cluster or our rights is wrong with every record, until somebody mends it: RETRY.
 * client: the same code from poll, commit or an admin call.
 */
struct row {
    int code;
    enum pay_status produce;
    enum pay_status client;
};

static const struct row rows[] = {
    /* It waited here and was never sent, or was sent and not answered: the status knows. */
    {CODE(_MSG_TIMED_OUT), PAY_UNKNOWN, PAY_RETRY},
    {CODE(_TIMED_OUT), PAY_UNKNOWN, PAY_RETRY},
    {CODE(_TIMED_OUT_QUEUE), PAY_UNKNOWN, PAY_RETRY},
    {CODE(_TRANSPORT), PAY_UNKNOWN, PAY_RETRY},
    {CODE(_DESTROY), PAY_UNKNOWN, PAY_RETRY},
    {CODE(_ALL_BROKERS_DOWN), PAY_UNKNOWN, PAY_RETRY},
    {CODE(_PURGE_INFLIGHT), PAY_UNKNOWN, PAY_RETRY},
    {CODE(REQUEST_TIMED_OUT), PAY_UNKNOWN, PAY_RETRY},
    {CODE(NETWORK_EXCEPTION), PAY_UNKNOWN, PAY_RETRY},
    {CODE(NOT_ENOUGH_REPLICAS_AFTER_APPEND), PAY_UNKNOWN, PAY_RETRY},
    {CODE(UNKNOWN), PAY_UNKNOWN, PAY_RETRY},
    {CODE(KAFKA_STORAGE_ERROR), PAY_UNKNOWN, PAY_RETRY},

    /* Not taken now. */
    {CODE(_QUEUE_FULL), PAY_RETRY, PAY_RETRY},
    {CODE(_PURGE_QUEUE), PAY_RETRY, PAY_RETRY},
    {CODE(_WAIT_COORD), PAY_RETRY, PAY_RETRY},
    {CODE(_IN_PROGRESS), PAY_RETRY, PAY_RETRY},
    {CODE(_RESOLVE), PAY_RETRY, PAY_RETRY},
    {CODE(_SSL), PAY_RETRY, PAY_RETRY},
    {CODE(_AUTHENTICATION), PAY_RETRY, PAY_RETRY},
    {CODE(LEADER_NOT_AVAILABLE), PAY_RETRY, PAY_RETRY},
    {CODE(NOT_LEADER_FOR_PARTITION), PAY_RETRY, PAY_RETRY},
    {CODE(NOT_ENOUGH_REPLICAS), PAY_RETRY, PAY_RETRY},
    {CODE(BROKER_NOT_AVAILABLE), PAY_RETRY, PAY_RETRY},
    {CODE(REPLICA_NOT_AVAILABLE), PAY_RETRY, PAY_RETRY},
    {CODE(FENCED_LEADER_EPOCH), PAY_RETRY, PAY_RETRY},
    {CODE(UNKNOWN_LEADER_EPOCH), PAY_RETRY, PAY_RETRY},
    {CODE(THROTTLING_QUOTA_EXCEEDED), PAY_RETRY, PAY_RETRY},
    {CODE(SASL_AUTHENTICATION_FAILED), PAY_RETRY, PAY_RETRY},
    /* A topic that is not there yet may come: somebody runs "payfactctl topics". */
    {CODE(_UNKNOWN_TOPIC), PAY_RETRY, PAY_RETRY},
    {CODE(_UNKNOWN_PARTITION), PAY_RETRY, PAY_RETRY},
    {CODE(UNKNOWN_TOPIC_OR_PART), PAY_RETRY, PAY_RETRY},

    /* The record itself is refused for good. */
    {CODE(MSG_SIZE_TOO_LARGE), PAY_REJECT, PAY_REJECT},
    {CODE(RECORD_LIST_TOO_LARGE), PAY_REJECT, PAY_REJECT},
    {CODE(INVALID_MSG_SIZE), PAY_REJECT, PAY_REJECT},
    {CODE(INVALID_RECORD), PAY_REJECT, PAY_REJECT},

    /* Any record would be: the topic, its settings, a clock, our rights. */
    {CODE(TOPIC_AUTHORIZATION_FAILED), PAY_RETRY, PAY_RETRY},
    {CODE(CLUSTER_AUTHORIZATION_FAILED), PAY_RETRY, PAY_RETRY},
    {CODE(TOPIC_EXCEPTION), PAY_RETRY, PAY_REJECT},
    {CODE(INVALID_TIMESTAMP), PAY_RETRY, PAY_REJECT}, /* Ours, of this try. */
    {CODE(INVALID_MSG), PAY_RETRY, PAY_REJECT},       /* Its checksum, as it arrived. */
    {CODE(INVALID_REQUIRED_ACKS), PAY_RETRY, PAY_REJECT},
    {CODE(UNSUPPORTED_FOR_MESSAGE_FORMAT), PAY_RETRY, PAY_REJECT},
    {CODE(POLICY_VIOLATION), PAY_RETRY, PAY_REJECT},
    {CODE(_INVALID_ARG), PAY_RETRY, PAY_REJECT},
    {CODE(_BAD_MSG), PAY_UNKNOWN, PAY_RETRY}, /* The answer cannot be read. */

    /* The producer's sequence is broken: nothing that it sends can be trusted to be sent once. */
    {CODE(_FATAL), PAY_FATAL, PAY_FATAL},
    {CODE(_FENCED), PAY_FATAL, PAY_FATAL},
    {CODE(_GAPLESS_GUARANTEE), PAY_FATAL, PAY_FATAL},
    {CODE(_INCONSISTENT), PAY_FATAL, PAY_FATAL},
    {CODE(OUT_OF_ORDER_SEQUENCE_NUMBER), PAY_FATAL, PAY_FATAL},
    {CODE(UNKNOWN_PRODUCER_ID), PAY_FATAL, PAY_FATAL},
    {CODE(INVALID_PRODUCER_EPOCH), PAY_FATAL, PAY_FATAL},
    {CODE(INVALID_PRODUCER_ID_MAPPING), PAY_FATAL, PAY_FATAL},
    {CODE(PRODUCER_FENCED), PAY_FATAL, PAY_FATAL},
    {CODE(_UNSUPPORTED_FEATURE), PAY_FATAL, PAY_FATAL},
    {CODE(UNSUPPORTED_VERSION), PAY_FATAL, PAY_FATAL},

    /* The group. */
    {CODE(FENCED_INSTANCE_ID), PAY_FATAL, PAY_FATAL},
    {CODE(INCONSISTENT_GROUP_PROTOCOL), PAY_FATAL, PAY_FATAL},
    {CODE(INVALID_GROUP_ID), PAY_FATAL, PAY_FATAL},
    {CODE(INVALID_SESSION_TIMEOUT), PAY_FATAL, PAY_FATAL},
    {CODE(GROUP_MAX_SIZE_REACHED), PAY_FATAL, PAY_FATAL},
    {CODE(GROUP_AUTHORIZATION_FAILED), PAY_RETRY, PAY_RETRY},
    {CODE(ILLEGAL_GENERATION), PAY_UNKNOWN, PAY_RETRY},
    {CODE(UNKNOWN_MEMBER_ID), PAY_UNKNOWN, PAY_RETRY},
    {CODE(REBALANCE_IN_PROGRESS), PAY_UNKNOWN, PAY_RETRY},
    {CODE(_MAX_POLL_EXCEEDED), PAY_UNKNOWN, PAY_RETRY},
    {CODE(_ASSIGNMENT_LOST), PAY_UNKNOWN, PAY_RETRY},
    {CODE(UNSTABLE_OFFSET_COMMIT), PAY_UNKNOWN, PAY_RETRY},
    {CODE(COORDINATOR_LOAD_IN_PROGRESS), PAY_UNKNOWN, PAY_RETRY},
    {CODE(COORDINATOR_NOT_AVAILABLE), PAY_UNKNOWN, PAY_RETRY},
    {CODE(NOT_COORDINATOR), PAY_UNKNOWN, PAY_RETRY},

    /* Topics. */
    {CODE(INVALID_PARTITIONS), PAY_RETRY, PAY_REJECT},
    {CODE(INVALID_REPLICATION_FACTOR), PAY_RETRY, PAY_REJECT},
    {CODE(INVALID_REPLICA_ASSIGNMENT), PAY_RETRY, PAY_REJECT},
    {CODE(INVALID_CONFIG), PAY_RETRY, PAY_REJECT},
    {CODE(INVALID_REQUEST), PAY_RETRY, PAY_REJECT},
    {CODE(NOT_CONTROLLER), PAY_UNKNOWN, PAY_RETRY},
};

static const struct row *find(int code)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].code == code) {
            return &rows[i];
        }
    }
    return NULL;
}

enum pay_kafka_persisted pay_kafka_persisted_of(int message_status, int64_t offset)
{
    switch (message_status) {
    case RD_KAFKA_MSG_STATUS_NOT_PERSISTED:
        return PAY_KAFKA_NOT_PERSISTED;
    case RD_KAFKA_MSG_STATUS_PERSISTED:
        return offset >= 0 ? PAY_KAFKA_PERSISTED : PAY_KAFKA_POSSIBLY_PERSISTED;
    default:
        return PAY_KAFKA_POSSIBLY_PERSISTED;
    }
}

enum pay_status pay_kafka_produce_class(int code, enum pay_kafka_persisted persisted)
{
    const struct row *row = find(code);
    enum pay_status class = row != NULL ? row->produce : PAY_UNKNOWN;

    if (persisted == PAY_KAFKA_PERSISTED) {
        return PAY_OK;
    }
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        return persisted == PAY_KAFKA_NOT_PERSISTED ? PAY_OK : PAY_UNKNOWN;
    }
    if (class == PAY_FATAL) {
        return class;
    }
    /* A refusal that follows an unanswered try does not say that the first try was refused too. */
    if (persisted == PAY_KAFKA_POSSIBLY_PERSISTED) {
        return PAY_UNKNOWN;
    }
    return class == PAY_UNKNOWN ? PAY_RETRY : class;
}

enum pay_status pay_kafka_client_class(int code)
{
    const struct row *row = find(code);

    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        return PAY_OK;
    }
    return row != NULL ? row->client : PAY_RETRY;
}

bool pay_kafka_is_too_large(int code)
{
    return code == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE ||
           code == RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE ||
           code == RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE;
}

bool pay_kafka_is_refusal(int code)
{
    switch (code) {
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        return true;
    default:
        return false;
    }
}

bool pay_kafka_is_full(int code)
{
    return code == RD_KAFKA_RESP_ERR__QUEUE_FULL;
}

const char *pay_kafka_error_name(int code)
{
    const char *name = rd_kafka_err2name((rd_kafka_resp_err_t)code);

    return name != NULL ? name : "?";
}
