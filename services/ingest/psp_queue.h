/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file psp_queue.h
 * @brief Jobs on their way to PSPs: one bounded lane per account and method, so that a sick PSP
 *        holds only its own jobs, and the offsets that may be committed.
 *
 * Workers are shared: a lane may have all of them but a reserve, and when that is reached only its
 * equal part, so that calls of a PSP that hangs never hold every worker.
 *
 * Lanes are made as jobs name them, PAY_PSP_LANES_MAX at most: beyond that one with nothing to do
 * makes room, and where all have, the job waits.
 *
 * Ownership: the queue owns its tasks from push to done. Threads: push, offsets and close from the
 * role's loop; take, retry budget, note and done from any worker. Failure: PAY_RETRY from push when
 * memory is out or a maximum is reached (then pause the consumer, and push the same again).
 */
#ifndef PAY_INGEST_PSP_QUEUE_H
#define PAY_INGEST_PSP_QUEUE_H

#include "common/accounts/accounts.h"
#include "common/contracts/psp_job.h"
#include "common/io/kafka/kafka_headers.h"
#include "services/ingest/psp_clock.h"
#include "services/ingest/psp_limits.h"

#define PAY_PSP_LANES_MAX 4096
#define PAY_PSP_PARTITIONS_MAX 1024

/** err.code of a push that is to be repeated. */
enum pay_psp_queue_code {
    PAY_PSP_QUEUE_TAKEN, /**< None: it is in. */
    PAY_PSP_QUEUE_MEMORY,
    PAY_PSP_QUEUE_FULL,  /**< PSP_JOBS_MAX jobs are in hand. */
    PAY_PSP_QUEUE_LANES, /**< So many lanes have something to do. */
};

struct pay_psp_queue;
struct pay_psp_lane;

/** Where a record stands in psp-jobs. */
struct pay_psp_place {
    int32_t partition;
    int64_t offset;
};

/** One record of psp-jobs. */
struct pay_psp_task {
    struct pay_psp_task *next;
    struct pay_psp_lane *lane;
    struct pay_psp_place place;
    bool is_money;        /**< SUBMIT, CONFIRM, CAPTURE, REFUND: passes the gate. */
    bool shed;            /**< Its lane was full or its breaker is open: no call is made. */
    int64_t not_after_us; /**< By the database's clock. */
    char job_id[PAY_JOB_ID_SIZE];
    struct pay_bytes key; /**< The record as it came, behind the struct, for the dead letters. */
    struct pay_bytes value;
    struct pay_kafka_header *headers;
    size_t header_count;
    struct pay_psp_task *copies; /**< The same job again, from elsewhere: done when this one is. */
};

/** A record of psp-jobs as it came. */
struct pay_psp_record {
    struct pay_psp_place place;
    struct pay_bytes key;
    struct pay_bytes value;
    const struct pay_kafka_header *headers;
    size_t header_count;
};

struct pay_psp_queue_options {
    size_t tasks_max;
    size_t workers; /**< 0: not known, no lane is held below its account's limit. */
    int breaker_failures;
    int64_t breaker_open_us;
    int64_t retries_per_min;
};

struct pay_psp_queue *pay_psp_queue_new(const struct pay_psp_queue_options *options);
/** @return the database's clock as this role knows it, for all its workers; lives as long. */
struct pay_psp_clock *pay_psp_queue_clock(struct pay_psp_queue *queue);
/** @brief No more tasks are given out; workers that wait return. */
void pay_psp_queue_close(struct pay_psp_queue *queue);
/** Tasks that were not done are dropped: their offsets are not committed. Copes with NULL. */
struct pay_psp_queue *pay_psp_queue_free(struct pay_psp_queue *queue);

/** @brief Copy a record in. @param account NULL: unknown, the task goes on without limits. */
PAY_MUST_CHECK enum pay_status pay_psp_queue_push(struct pay_psp_queue *queue,
                                                  const struct pay_account *account,
                                                  const struct pay_psp_job *job,
                                                  const struct pay_psp_record *record,
                                                  struct pay_err *err);
/** @brief A record that needs no work (dead-lettered): its offset counts as done. */
PAY_MUST_CHECK enum pay_status pay_psp_queue_skip(struct pay_psp_queue *queue,
                                                  struct pay_psp_place place, struct pay_err *err);
/** @return true: push would be refused; pause. */
bool pay_psp_queue_full(struct pay_psp_queue *queue);

/** @brief Next task that may run; blocks. @return NULL: closed. */
struct pay_psp_task *pay_psp_queue_take(struct pay_psp_queue *queue);
/** @return true: one more try of a money call that certainly did not leave. */
bool pay_psp_queue_may_retry(struct pay_psp_queue *queue, const struct pay_psp_task *task);
/** @brief A call of this task ended. @param answered false: no answer, or the PSP is broken. */
void pay_psp_queue_note(struct pay_psp_queue *queue, const struct pay_psp_task *task,
                        bool answered);
/** @brief Finished; the task is gone. @param again true: it could not be finished, its offset
 * stays. */
void pay_psp_queue_done(struct pay_psp_queue *queue, struct pay_psp_task *task, bool again);

/** Next offset to commit of one partition. */
struct pay_psp_offset {
    int32_t partition;
    int64_t next;
};
/** @brief Partitions whose low-water mark moved since the last call. @return count, at most @p max.
 */
size_t pay_psp_queue_offsets(struct pay_psp_queue *queue, struct pay_psp_offset *ret_offsets,
                             size_t max);
/** @brief Forget a partition that was taken away: tasks go on, their offsets are nobody's here. */
void pay_psp_queue_forget(struct pay_psp_queue *queue, int32_t partition);

/** Figures of one lane. */
struct pay_psp_lane_state {
    const char *account; /**< Until the next push. */
    const char *method;
    size_t queued;
    size_t in_flight;
    enum pay_breaker_state breaker;
};
/** What became of the maximum of lanes, since the queue was made. */
struct pay_psp_lane_figures {
    size_t lanes;
    int64_t replaced; /**< Idle ones that made room. */
    int64_t refused;  /**< Pushes that found none. */
};
struct pay_psp_lane_figures pay_psp_queue_lane_figures(struct pay_psp_queue *queue);
size_t pay_psp_queue_lanes(struct pay_psp_queue *queue, struct pay_psp_lane_state *ret_lanes,
                           size_t max);

#endif /* PAY_INGEST_PSP_QUEUE_H */
