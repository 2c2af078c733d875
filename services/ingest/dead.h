/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file dead.h
 * @brief A Kafka message that cannot be processed goes to payfact.dlq, complete, its value sealed.
 *
 * Threads: one codec and arena per thread. Failure: PAY_RETRY: not durable yet, do not commit.
 */
#ifndef PAY_INGEST_DEAD_H
#define PAY_INGEST_DEAD_H

#include "common/contracts/dead_letter.h"
#include "common/io/kafka/kafka_consumer.h"
#include "services/ingest/ingest.h"

/** A message of any topic, as it came. */
struct pay_dead_source {
    const char *topic;
    int32_t partition;
    int64_t offset;
    struct pay_bytes key;
    struct pay_bytes value;
    const struct pay_kafka_header *headers;
    size_t header_count;
};
struct pay_dead_source pay_dead_source_of(const struct pay_kafka_msg *msg);

/**
 * @brief Produce the dead letter under @p wait. One that cannot be encoded whole goes out without
 *        its headers, then without key and value: its place in the topic says where they are.
 * @param text for people, no payload.
 */
PAY_MUST_CHECK enum pay_status pay_dead_put(struct pay_desk *desk,
                                            const struct pay_dead_source *from,
                                            enum pay_dead_reason reason, const char *text,
                                            struct pay_outlet_wait *wait, struct pay_err *err);
/**
 * @brief The same, until it is durable. Beats @p loop (NULL: none) while it waits. Where Kafka
 * takes no letter of this size it goes out bare; where it takes none at all, somebody must mend the
 * topic or the right to it: it is said loudly, and tried again.
 * @return PAY_OK: it is in Kafka. PAY_RETRY: the process ends.
 */
PAY_MUST_CHECK enum pay_status pay_dead_keep(struct pay_desk *desk,
                                             const struct pay_dead_source *from,
                                             enum pay_dead_reason reason, const char *text,
                                             struct pay_outlet_wait *wait,
                                             struct pay_health_loop *loop);

#endif /* PAY_INGEST_DEAD_H */
