/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file topics.h
 * @brief The six topics: what each carries, for how long, under which name. Constants only.
 */
#ifndef PAY_CONTRACTS_TOPICS_H
#define PAY_CONTRACTS_TOPICS_H

#include "common/base/attr.h"
#include "common/contracts/codec.h"

#define PAY_TOPIC_PREFIX_DEFAULT "payfact."
#define PAY_TOPIC_PARTITIONS_DEFAULT 12
#define PAY_TOPIC_NAME_SIZE 250 /**< Kafka's 249 bytes and the terminator. */

enum pay_topic {
    PAY_TOPIC_NOTIFICATIONS,
    PAY_TOPIC_COMMANDS,
    PAY_TOPIC_INPUTS,
    PAY_TOPIC_PSP_JOBS,
    PAY_TOPIC_EVENTS,
    PAY_TOPIC_DLQ,
    PAY_TOPIC_COUNT
};

struct pay_topic_spec {
    const char *name;       /**< Without prefix. */
    enum pay_record record; /**< Of the value. */
    int64_t retention_ms;   /**< retention.ms */
    int max_message_bytes;  /**< max.message.bytes: the record's maximum, key and headers. */
    bool is_public;  /**< The contract with others: Confluent framing when a registry is configured.
                      */
    const char *key; /**< What the Kafka key is, for people. */
    const char *flow; /**< "producer -> consumer", for people. */
};

/** @return the static row of @p topic. */
const struct pay_topic_spec *pay_topic_spec(enum pay_topic topic);

/**
 * @brief "<prefix><name>".
 * @param prefix borrowed; NULL: the default; may be "".
 * @return false (dst is then "") when it is longer than Kafka allows or has a character outside
 * [A-Za-z0-9._-].
 */
PAY_MUST_CHECK bool pay_topic_name(char dst[PAY_TOPIC_NAME_SIZE], enum pay_topic topic,
                                   const char *prefix);

/** @return false when no topic has that name under that prefix (NULL: the default). */
bool pay_topic_parse(struct pay_str name, const char *prefix, enum pay_topic *ret_topic);

#endif /* PAY_CONTRACTS_TOPICS_H */
