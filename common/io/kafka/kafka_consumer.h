/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file kafka_consumer.h
 * @brief A group consumer that commits only what its owner has stored, after its own commit.
 *
 * Turn: poll -> work -> own COMMIT -> pay_kafka_consumer_store(next offset) ->
 * pay_kafka_consumer_commit. A partition is taken away inside poll: on_revoked() finishes or
 * abandons the work in flight (and stores what it finished), then the consumer commits what is
 * stored and lets go. When the group has already given the partition to another (lost), nothing is
 * committed and stored offsets are forgotten.
 *
 * Ownership: a message belongs to the caller from poll until pay_kafka_msg_release().
 * Threads: one thread calls everything; only pay_kafka_msg_release() is free of threads.
 * Failure: a broker outage is PAY_RETRY from poll and mends itself; PAY_FATAL (fenced by another
 * holder of the same instance id) means leave. Poll must be called at least every max_poll_ms, also
 * while paused (it then returns nothing), or the group takes the partitions.
 */
#ifndef PAY_IO_KAFKA_KAFKA_CONSUMER_H
#define PAY_IO_KAFKA_KAFKA_CONSUMER_H

#include "common/io/kafka/kafka_conf.h"
#include "common/io/kafka/kafka_headers.h"

#define PAY_KAFKA_CONSUMER_TOPICS_MAX 16
#define PAY_KAFKA_CONSUMER_PARTITIONS_MAX 1024 /**< Assigned to one member; more are PAY_FATAL. */

struct pay_kafka_consumer;

/** Plain view of one record; all pointers live until pay_kafka_msg_release(). */
struct pay_kafka_msg {
    const char *topic;
    int32_t partition;
    int64_t offset;
    struct pay_bytes key;   /**< Absent: no key. Not NUL-terminated. */
    struct pay_bytes value; /**< Absent: null value. */
    int64_t timestamp_ms;   /**< Since 1970; -1: none. */
    struct pay_kafka_headers headers;
    void *handle; /**< The adapter's; zero the struct to make an empty message. */
};

struct pay_kafka_partition {
    const char *topic;
    int32_t partition;
};

/** State of one assigned partition, for metrics and readiness. */
struct pay_kafka_partition_state {
    const char *topic; /**< Lives as long as the consumer. */
    int32_t partition;
    int64_t position;    /**< Next offset that poll will return; -1 before the first. */
    int64_t stored;      /**< Next offset to resume at; -1: none stored since assignment. */
    int64_t high;        /**< High watermark as last fetched; -1 unknown. */
    int64_t lag_records; /**< high - position; -1 unknown. */
};

struct pay_kafka_consumer_options {
    struct pay_kafka_conf conf;
    const char *group_id;
    const char *instance_id; /**< Static membership; NULL or "": dynamic. A static member joins when
                                  all its topics are there; until then poll says PAY_RETRY now and
                                  then. */
    const char *const *topics;
    size_t topic_count;
    int session_timeout_ms; /**< 0: 45000. */
    int max_poll_ms;        /**< 0: 300000. */
    int commit_interval_ms; /**< 0: 500. Least time between two commits that are not waited for. */
    int fetch_kbytes_max;   /**< 0: 16384. Prefetched bytes over all partitions. */
    /** Both run inside poll or close, on that thread; either may be NULL. */
    void (*on_assigned)(void *ctx, const struct pay_kafka_partition *parts, size_t count);
    /** @param lost true: others may own them already; do not write offsets. */
    void (*on_revoked)(void *ctx, const struct pay_kafka_partition *parts, size_t count, bool lost);
    void *ctx;
};

/** @return PAY_FATAL for a bad setting. Does not wait for the group. */
PAY_MUST_CHECK enum pay_status
pay_kafka_consumer_new(const struct pay_kafka_consumer_options *options,
                       struct pay_kafka_consumer **ret_consumer, struct pay_err *err);

/**
 * @brief Take up to @p max records: wait up to @p timeout_ms for the first, never for the others.
 * @param ret_msgs array of @p max; the first *ret_count are to be released.
 * @return PAY_OK with *ret_count >= 0. PAY_RETRY: a client error, logged once by the caller; poll
 * again. PAY_FATAL: leave. *ret_count is 0 unless PAY_OK.
 */
PAY_MUST_CHECK enum pay_status pay_kafka_consumer_poll(struct pay_kafka_consumer *consumer,
                                                       size_t max, int timeout_ms,
                                                       struct pay_kafka_msg ret_msgs[],
                                                       size_t *ret_count, struct pay_err *err);
/** Give a record back; any thread, before pay_kafka_consumer_free(). Copes with an empty one. */
void pay_kafka_msg_release(struct pay_kafka_msg *msg);

/** Stop fetching everything (the database is away). Newly assigned partitions start paused. */
PAY_MUST_CHECK enum pay_status pay_kafka_consumer_pause(struct pay_kafka_consumer *consumer,
                                                        struct pay_err *err);
PAY_MUST_CHECK enum pay_status pay_kafka_consumer_resume(struct pay_kafka_consumer *consumer,
                                                         struct pay_err *err);
bool pay_kafka_consumer_paused(const struct pay_kafka_consumer *consumer);

/**
 * @brief Remember where to resume: @p next_offset is the last finished one + 1. Sends nothing.
 * @return false when the partition is not assigned any more (then another member redoes the work)
 * or
 *         @p next_offset lies before what is stored.
 */
bool pay_kafka_consumer_store(struct pay_kafka_consumer *consumer, const char *topic,
                              int32_t partition, int64_t next_offset);
/**
 * @brief Commit what is stored. @param wait false: sends at most every commit_interval_ms and
 * returns at once (poll sends what is left); true: blocks until the group answered.
 * @return PAY_RETRY when refused or away; what is stored stays stored and goes with the next
 * commit.
 */
PAY_MUST_CHECK enum pay_status pay_kafka_consumer_commit(struct pay_kafka_consumer *consumer,
                                                         bool wait, struct pay_err *err);
/**
 * @brief Poll again from what is stored, or from the first record polled since the assignment.
 * @param topic NULL: every partition. Records already handed out stay valid and must still be
 * released. May block up to @p timeout_ms.
 */
PAY_MUST_CHECK enum pay_status pay_kafka_consumer_rewind(struct pay_kafka_consumer *consumer,
                                                         const char *topic, int32_t partition,
                                                         int timeout_ms, struct pay_err *err);

/** @return true once the group has given an assignment, which may be empty; false while
 * rebalancing. */
bool pay_kafka_consumer_joined(const struct pay_kafka_consumer *consumer);
/** @return number of assigned partitions. */
size_t pay_kafka_consumer_assigned(const struct pay_kafka_consumer *consumer);
/** @brief State of up to @p max assigned partitions; no network. @return number filled. */
size_t pay_kafka_consumer_state(const struct pay_kafka_consumer *consumer,
                                struct pay_kafka_partition_state ret_states[], size_t max);
/** @return sum of the known lags. */
int64_t pay_kafka_consumer_lag_records(const struct pay_kafka_consumer *consumer);

/**
 * @brief on_revoked, commit what is stored, leave the group (a static member keeps its place).
 * @return PAY_RETRY when that did not end within @p timeout_ms; the consumer is closed all the
 * same.
 */
PAY_MUST_CHECK enum pay_status pay_kafka_consumer_close(struct pay_kafka_consumer *consumer,
                                                        int timeout_ms, struct pay_err *err);
/**
 * @return its close did not end: its threads run on, TLS in their hands, until the process is gone.
 * Exit handlers would take the libraries from under them: end by _exit (pay_service_outlived()).
 */
bool pay_kafka_consumer_abandoned(const struct pay_kafka_consumer *consumer);
/**
 * Does not leave the group unless closed before. One whose close did not end in time is left as it
 * is, with its threads, for the process to end with. @return always NULL; copes with NULL.
 */
struct pay_kafka_consumer *pay_kafka_consumer_free(struct pay_kafka_consumer *consumer);

#endif /* PAY_IO_KAFKA_KAFKA_CONSUMER_H */
