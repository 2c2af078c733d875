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

/** @brief Produce the dead letter under @p wait. @param text for people, no payload. */
PAY_MUST_CHECK enum pay_status pay_dead_put(struct pay_desk *desk, const struct pay_kafka_msg *msg,
                                            enum pay_dead_reason reason, const char *text,
                                            struct pay_outlet_wait *wait, struct pay_err *err);

#endif /* PAY_INGEST_DEAD_H */
