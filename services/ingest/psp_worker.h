/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file psp_worker.h
 * @brief One thread that calls PSPs, one job at a time, and everything that it needs.
 *
 * Ownership: a worker owns its connection, client, codec and arena; the queue and ingest are
 * shared. Threads: each worker its own. Failure: an outage of Kafka or the database is waited out;
 * a job that could not be finished at shutdown keeps its offset and comes again.
 */
#ifndef PAY_INGEST_PSP_WORKER_H
#define PAY_INGEST_PSP_WORKER_H

#include <pthread.h>

#include "common/io/http_client/http_client.h"
#include "common/store/gate.h"
#include "services/ingest/dead.h"
#include "services/ingest/psp_queue.h"

struct pay_psp_worker {
    struct pay_ingest *ingest;
    struct pay_psp_queue *queue;
    struct pay_http_client *http;
    struct pay_store *store;
    struct pay_codec *codec;
    struct pay_arena *arena;
    struct pay_buf value;   /**< One encoded input. */
    struct pay_buf outcome; /**< The inputs of one job, each with its length before it. */
    struct pay_outlet_wait wait;
    pthread_t thread;
    bool started;
};

/** One job as a worker has it in hand; lives in the arena. */
struct pay_psp_work {
    const struct pay_psp_task *task;
    struct pay_psp_job job;
    struct pay_psp_request_job request_job;
    const struct pay_account *account; /**< NULL: not in the accounts file. */
    enum pay_dead_reason refused_as;   /**< With PAY_REJECT: why it goes to the dead letters. */
};

/** @brief What is known when a call has ended, to be read by the adapter. */
struct pay_psp_call {
    int send_no;
    enum pay_query_by query_by;
    bool only_send;
    bool said_no;         /**< Set by reading: a definite no is among what it means. */
    int64_t not_after_us; /**< By the database's clock; earlier than the job's; 0: the job's. */
    int64_t asked_at_us;  /**< By the database's clock, or a little before. */
    struct pay_http_result result;
};

PAY_MUST_CHECK enum pay_status pay_psp_worker_start(struct pay_psp_worker *worker,
                                                    struct pay_ingest *ingest,
                                                    struct pay_psp_queue *queue,
                                                    struct pay_http_shared *shared,
                                                    struct pay_err *err);
/** @brief After pay_psp_queue_close(): joins. Copes with one that was not started. */
void pay_psp_worker_stop(struct pay_psp_worker *worker);

/* Each returns PAY_OK when the job is finished (its offset may be committed), PAY_REJECT when it
 * belongs to the dead letters (work->refused_as), anything else when it must be tried again. */

/** SUBMIT, CONFIRM, CAPTURE, REFUND: through the gate. */
PAY_MUST_CHECK enum pay_status pay_psp_money(struct pay_psp_worker *worker,
                                             struct pay_psp_work *work, struct pay_err *err);
/** QUERY* and CANCEL. */
PAY_MUST_CHECK enum pay_status pay_psp_ask(struct pay_psp_worker *worker, struct pay_psp_work *work,
                                           struct pay_err *err);

/** @brief Open the sealed parameters into work->request_job. @return PAY_REJECT: not for this job.
 */
PAY_MUST_CHECK enum pay_status pay_psp_open_params(struct pay_psp_worker *worker,
                                                   struct pay_psp_work *work, struct pay_err *err);
/**
 * @brief Add credentials and send. call->result is always filled (free it); a request that could
 * not be made ready is NOT_SENT. Notes the answer for the lane's breaker.
 */
void pay_psp_send(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                  const struct pay_psp_request *request, enum pay_http_kind kind,
                  struct pay_psp_call *call);

/* Inputs: collected first, then stored as the outcome (money), then produced. */

void pay_psp_outcome_reset(struct pay_psp_worker *worker);
/** @brief Add the events that an answer (or its absence) means. @param as the job to read it as. */
PAY_MUST_CHECK enum pay_status pay_psp_outcome_read(struct pay_psp_worker *worker,
                                                    const struct pay_psp_work *work,
                                                    const struct pay_psp_request_job *as,
                                                    struct pay_psp_call *call, struct pay_err *err);
/** @brief Add an event of our own: SUBMITTED, NOT_SENT, UNKNOWN. @param failure why it was not
 * sent. */
PAY_MUST_CHECK enum pay_status pay_psp_outcome_local(struct pay_psp_worker *worker,
                                                     const struct pay_psp_work *work, int send_no,
                                                     enum pay_psp_result result,
                                                     enum pay_failure_class failure,
                                                     struct pay_err *err);
/**
 * @brief Produce what was collected and wait; an outage of Kafka is waited out.
 * @return PAY_RETRY: the process ends, or Kafka refuses the record (dead-lettering is the
 * caller's).
 */
PAY_MUST_CHECK enum pay_status pay_psp_outcome_produce(struct pay_psp_worker *worker,
                                                       const struct pay_psp_work *work,
                                                       struct pay_bytes outcome,
                                                       struct pay_err *err);
/** @return what was collected, borrowed from the worker. */
struct pay_bytes pay_psp_outcome_bytes(const struct pay_psp_worker *worker);

/** @brief The worker's store, connected; waits while the database is away. @return PAY_FATAL: the
 * process ends, whoever repeats on PAY_RETRY must stop. */
PAY_MUST_CHECK enum pay_status pay_psp_store(struct pay_psp_worker *worker, struct pay_err *err);
/** @brief A little time before a failed statement is repeated. @return false: the process ends. */
bool pay_psp_pause(struct pay_psp_worker *worker);
/** @brief Count what became of a job. */
void pay_psp_job_count(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                       const char *outcome);

#endif /* PAY_INGEST_PSP_WORKER_H */
