/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file kafka_producer.h
 * @brief An idempotent producer: a record is delivered when its delivery report says so, not
 * before.
 *
 * Every produce call that answered PAY_OK gets exactly one report, also when the producer is closed
 * before the broker answered (then PAY_RETRY or PAY_UNKNOWN). A call that answered anything else
 * gets none. Delivered is what the broker acknowledged itself, with an offset. Partition:
 * murmur2_random of the key, as Java clients.
 *
 * Ownership: topic, key, value and headers are copied, but for a value that says it stays; tag is
 * passed through untouched.
 * Threads: produce, pending, fatal and ping from any thread. Reports come either on the thread that
 * calls pay_kafka_producer_poll() (one thread), or, with own_thread, on a thread of the producer:
 * then poll is not called. Callbacks may call produce, but neither poll nor close. Failure: a full
 * queue is PAY_RETRY at once; after a fatal error produce answers PAY_FATAL: close this producer,
 * make a new one, send again from durable state.
 *
 *     pay_kafka_producer_new -> produce ... poll ... -> pay_kafka_producer_close -> _free
 */
#ifndef PAY_IO_KAFKA_KAFKA_PRODUCER_H
#define PAY_IO_KAFKA_KAFKA_PRODUCER_H

#include "common/io/kafka/kafka_conf.h"
#include "common/io/kafka/kafka_error.h"
#include "common/io/kafka/kafka_headers.h"

#define PAY_KAFKA_PRODUCER_TOPICS_MAX                          \
    32 /**< Different topics per producer; more are PAY_FATAL. \
        */

struct pay_kafka_producer;

/** One delivery report; borrowed for the length of the callback. */
struct pay_kafka_report {
    void *tag;
    enum pay_status status; /**< PAY_OK: acknowledged by all in-sync replicas. */
    enum pay_kafka_persisted persisted;
    int code;           /**< rd_kafka_resp_err_t; 0 when delivered, or taken for it by a guess. */
    const char *reason; /**< Static name such as "_MSG_TIMED_OUT"; "" when delivered. */
    int32_t partition;  /**< -1: none was chosen. */
    int64_t offset;     /**< -1 unless delivered. */
    int64_t latency_us; /**< Since produce; -1 when unknown. */
};

typedef void pay_kafka_report_fn(void *ctx, const struct pay_kafka_report *report);

struct pay_kafka_producer_options {
    struct pay_kafka_conf conf;
    int message_timeout_ms; /**< 0: for ever (the publisher). Else a report comes within it. */
    int queue_records_max;  /**< 0: 100000. At the maximum produce answers PAY_RETRY. */
    int queue_kbytes_max;   /**< 0: 65536. */
    int message_bytes_max;  /**< 0: 1000000. A larger record is PAY_REJECT. */
    int linger_ms;          /**< -1: 0 ms; else wait so long to fill a batch. */
    bool own_thread;        /**< Reports on the producer's own thread. */
    pay_kafka_report_fn *on_report;    /**< Required. */
    void (*on_reports_end)(void *ctx); /**< After a turn with one report or more; may be NULL. */
    void *ctx;
};

struct pay_kafka_record {
    const char *topic;
    struct pay_str key;                      /**< Absent: no key, random partition. */
    struct pay_bytes value;                  /**< Absent: null value (tombstone). */
    const struct pay_kafka_headers *headers; /**< NULL: none. */
    void *tag;
    bool value_stays; /**< The value is there, unchanged, until the report: it is not copied. */
};

/**
 * @brief Make a producer; does not wait for a connection.
 * @return PAY_FATAL for a bad setting (err.text names it), PAY_RETRY when memory or threads are
 * out.
 */
PAY_MUST_CHECK enum pay_status
pay_kafka_producer_new(const struct pay_kafka_producer_options *options,
                       struct pay_kafka_producer **ret_producer, struct pay_err *err);
/**
 * @brief Queue one record. Never blocks.
 * @return PAY_OK: one report will come. PAY_RETRY: queue full or closing (code 0), or the topic is
 *         not there or not allowed to us now. PAY_REJECT: too large or invalid. PAY_FATAL: rebuild
 *         the producer.
 */
PAY_MUST_CHECK enum pay_status pay_kafka_produce(struct pay_kafka_producer *producer,
                                                 const struct pay_kafka_record *record,
                                                 struct pay_err *err);
/** @brief Serve reports, waiting up to @p timeout_ms for the first. @return number of reports
 * served. */
size_t pay_kafka_producer_poll(struct pay_kafka_producer *producer, int timeout_ms);
/** @return records that have no report yet. */
size_t pay_kafka_producer_pending(const struct pay_kafka_producer *producer);
/** @return true after a fatal (idempotence, fencing) error; @p err may be NULL. */
bool pay_kafka_producer_fatal(struct pay_kafka_producer *producer, struct pay_err *err);
/** @brief Ask a broker for metadata: for readiness. Blocks up to @p timeout_ms. */
PAY_MUST_CHECK enum pay_status pay_kafka_producer_ping(struct pay_kafka_producer *producer,
                                                       int timeout_ms, struct pay_err *err);
/** @brief The client's latest error since the last call, for one log line. @return false: none. */
bool pay_kafka_producer_take_error(struct pay_kafka_producer *producer, struct pay_err *ret_err);
/** @brief Partition count of @p topic as the cluster knows it. May block up to @p timeout_ms. */
PAY_MUST_CHECK enum pay_status pay_kafka_producer_partitions(struct pay_kafka_producer *producer,
                                                             const char *topic, int timeout_ms,
                                                             int32_t *ret_partitions,
                                                             struct pay_err *err);
/**
 * @brief Refuse further records, wait up to @p flush_ms for reports, then purge: when it returns,
 *        every report has been given. Reports come on the calling thread or the own thread.
 * @return records that were not delivered, by purge or error, during the close.
 */
size_t pay_kafka_producer_close(struct pay_kafka_producer *producer, int flush_ms);
/** Closes with flush_ms 0 if that was not done. @return always NULL; copes with NULL. */
struct pay_kafka_producer *pay_kafka_producer_free(struct pay_kafka_producer *producer);

#endif /* PAY_IO_KAFKA_KAFKA_PRODUCER_H */
