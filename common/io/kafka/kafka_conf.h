/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file kafka_conf.h
 * @brief How to reach a Kafka cluster: shared by producer, consumer and admin.
 *
 * Everything about transport (SASL, TLS, client.rack, compression ...) is librdkafka's own
 * properties, passed through as "name=value" lines. Those that our guarantees rest on are ours and
 * refused there with PAY_FATAL: acks, enable.idempotence, max.in.flight, partitioner,
 * message.timeout.ms, group.id, group.instance.id, enable.auto.commit, enable.auto.offset.store,
 * auto.offset.reset and transactional.id (kafka_conf.c has the table).
 * partition.assignment.strategy may be given, to hold a group on one protocol while images of two
 * library versions roll.
 */
#ifndef PAY_IO_KAFKA_KAFKA_CONF_H
#define PAY_IO_KAFKA_KAFKA_CONF_H

#include "common/base/err.h"

#define PAY_KAFKA_PROPERTIES_BYTES_MAX 65536
#define PAY_KAFKA_TOPIC_LEN_MAX 249 /**< Kafka's own limit. */

/** All text is borrowed for the call that gets it; NULL or "" means not given. */
struct pay_kafka_conf {
    const char *bootstrap;  /**< "host:port,host:port"; required unless the properties have it. */
    const char *client_id;  /**< Such as "payfact-ingest". */
    const char *properties; /**< "name=value" lines; '#' starts a comment line. */
    const char *properties_file; /**< Path of the same, read after @c properties: it wins. */
};

/** @brief Check properties without connecting. @return PAY_FATAL with the property's name. */
PAY_MUST_CHECK enum pay_status pay_kafka_conf_check(const struct pay_kafka_conf *conf,
                                                    struct pay_err *err);
/** @return such as "2.0.2"; the library that runs, not the one compiled against. */
const char *pay_kafka_library_version(void);

#endif /* PAY_IO_KAFKA_KAFKA_CONF_H */
