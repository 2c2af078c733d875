/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file kafka_admin.h
 * @brief Make topics, and say where an existing one differs from what is wanted.
 *
 * Changing a partition count moves keys to other partitions, so pay_kafka_admin_ensure() refuses it
 * in every case; pay_kafka_admin_grow() is for who has made sure that nothing is on its way.
 * Threads: one at a time. All calls block up to their timeout.
 */
#ifndef PAY_IO_KAFKA_KAFKA_ADMIN_H
#define PAY_IO_KAFKA_KAFKA_ADMIN_H

#include "common/base/buf.h"
#include "common/io/kafka/kafka_conf.h"

#define PAY_KAFKA_TOPIC_CONFIGS_MAX 16

struct pay_kafka_admin;

struct pay_kafka_topic_config {
    const char *name; /**< Such as "retention.ms". */
    const char *value;
};

struct pay_kafka_topic_spec {
    const char *name;
    int32_t partitions;
    int16_t replication; /**< -1: the broker's default (and not compared). */
    const struct pay_kafka_topic_config *configs;
    size_t config_count;
};

struct pay_kafka_topic_info {
    bool exists;
    int32_t partitions;
    int32_t replication; /**< Of partition 0. */
    int32_t leaderless;  /**< Partitions without a leader now. */
};

PAY_MUST_CHECK enum pay_status pay_kafka_admin_new(const struct pay_kafka_conf *conf,
                                                   struct pay_kafka_admin **ret_admin,
                                                   struct pay_err *err);
/** @return always NULL; copes with NULL. */
struct pay_kafka_admin *pay_kafka_admin_free(struct pay_kafka_admin *admin);

/** @brief What the cluster knows of @p topic; absent is PAY_OK with exists = false. */
PAY_MUST_CHECK enum pay_status pay_kafka_admin_describe(struct pay_kafka_admin *admin,
                                                        const char *topic, int timeout_ms,
                                                        struct pay_kafka_topic_info *ret_info,
                                                        struct pay_err *err);
/**
 * @brief Create the topic if absent and wait until every partition has a leader.
 * @param report gets one line per difference of an existing topic (partitions, replication,
 * configs) and a line when it was created; may be NULL.
 * @return PAY_REJECT: it exists with another partition count, or the broker refuses the settings.
 *         PAY_RETRY: away or not ready in time. Other differences are reported with PAY_OK.
 */
PAY_MUST_CHECK enum pay_status pay_kafka_admin_ensure(struct pay_kafka_admin *admin,
                                                      const struct pay_kafka_topic_spec *spec,
                                                      int timeout_ms, struct pay_buf *report,
                                                      struct pay_err *err);
/**
 * @brief Give an existing topic more partitions and wait until all have a leader.
 * @return PAY_REJECT: it has more than that already, or the broker refuses. PAY_RETRY: away or not
 * ready in time.
 */
PAY_MUST_CHECK enum pay_status pay_kafka_admin_grow(struct pay_kafka_admin *admin,
                                                    const char *topic, int32_t partitions,
                                                    int timeout_ms, struct pay_err *err);
/** @brief Delete topics: for tests and demos. Absent ones are fine. */
PAY_MUST_CHECK enum pay_status pay_kafka_admin_delete(struct pay_kafka_admin *admin,
                                                      const char *topic, int timeout_ms,
                                                      struct pay_err *err);

#endif /* PAY_IO_KAFKA_KAFKA_ADMIN_H */
