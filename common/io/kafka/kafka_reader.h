/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file kafka_reader.h
 * @brief Read a whole topic once, as it is now, without a consumer group: for tools.
 *
 * Nothing is committed and nobody is disturbed. Threads: one at a time. Failure: PAY_RETRY when a
 * broker is away or the end is not reached in time; what was given until then stays given.
 */
#ifndef PAY_IO_KAFKA_KAFKA_READER_H
#define PAY_IO_KAFKA_KAFKA_READER_H

#include "common/io/kafka/kafka_consumer.h"

#define PAY_KAFKA_READER_PARTITIONS_MAX 1024

struct pay_kafka_reader_options {
    struct pay_kafka_conf conf;
    const char *topic;
    int64_t since_ms; /**< Records of that time (since 1970) and later; 0: all that is kept. */
    int timeout_ms;   /**< Of the whole reading. */
    /** @return false: enough. The record is taken back after the call. */
    bool (*on_record)(void *ctx, const struct pay_kafka_msg *msg);
    void *ctx;
};

/**
 * @brief Give each record to on_record, in the order of its partition, up to where the partitions
 * end when they are reached. Blocks.
 * @return PAY_REJECT: there is no such topic.
 */
PAY_MUST_CHECK enum pay_status pay_kafka_read_topic(const struct pay_kafka_reader_options *options,
                                                    struct pay_err *err);

#endif /* PAY_IO_KAFKA_KAFKA_READER_H */
