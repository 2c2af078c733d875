/* SPDX-License-Identifier: Apache-2.0 */
/** @file kafka_internal.h @brief What the files of this folder share; nobody else includes it. */
#ifndef PAY_IO_KAFKA_KAFKA_INTERNAL_H
#define PAY_IO_KAFKA_KAFKA_INTERNAL_H

#include "common/io/kafka/kafka_conf.h"
#include "common/io/kafka/kafka_consumer.h"
#include "common/io/kafka/kafka_error.h"
#include "common/io/kafka/kafka_headers.h"

#include <librdkafka/rdkafka.h>
#include <pthread.h>

#define PAY_KAFKA_ERRSTR_BYTES 256
/* From here on the library's cooperative rebalance is used. */
#define PAY_KAFKA_COOPERATIVE_FROM 0x020a0000

/* One property of ours; number wins when text is NULL. */
struct pay_kafka_setting {
    const char *name;
    const char *text;
    int64_t number;
};

/* The latest error that a client's own threads reported; callbacks write it, a caller takes it. */
struct pay_kafka_note {
    pthread_mutex_t lock;
    bool is_set;
    struct pay_err err;
};

/**
 * @brief Properties of the user, then ours. @return PAY_FATAL with the name of the bad one.
 * @param ret_conf the caller's until rd_kafka_new() took it.
 */
PAY_MUST_CHECK enum pay_status pay_kafka_conf_build(const struct pay_kafka_conf *conf,
                                                    const struct pay_kafka_setting *settings,
                                                    size_t count, rd_kafka_conf_t **ret_conf,
                                                    struct pay_err *err);
/* Keep client errors in note; logs go to the debug log. note is the client's opaque. */
void pay_kafka_note_error(struct pay_kafka_note *note, int code, const char *text);
bool pay_kafka_note_take(struct pay_kafka_note *note, struct pay_err *ret_err);
void pay_kafka_log(const rd_kafka_t *rk, int level, const char *facility, const char *text);
/* Ask for all brokers' metadata or one topic's. */
PAY_MUST_CHECK enum pay_status pay_kafka_metadata(rd_kafka_t *rk, rd_kafka_topic_t *topic,
                                                  int timeout_ms,
                                                  const struct rd_kafka_metadata **ret_metadata,
                                                  struct pay_err *err);
/* A plain view of a record, which it holds until pay_kafka_msg_release(). */
void pay_kafka_view(rd_kafka_message_t *rkm, const char *topic, struct pay_kafka_msg *msg);
/* Fill an error of a consumer, commit or admin call. */
enum pay_status pay_kafka_fail(struct pay_err *err, const char *what, int code, const char *text);

#endif /* PAY_IO_KAFKA_KAFKA_INTERNAL_H */
