/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file outlet.h
 * @brief The one producer of an ingest process: records go out from any thread, each with a ticket.
 *
 * A ticket gets exactly one report per record that pay_outlet_put() took, on the producer's thread.
 * A producer that failed for good is rebuilt behind the scenes; what it had not delivered is
 * reported as failed, and the sender (a PSP, Kafka, a gate row) still has it.
 *
 * Ownership: tickets belong to the caller until their report. Threads: any; reports come on the
 * producer's thread and must not block. Failure: as kafka_producer.h.
 */
#ifndef PAY_INGEST_OUTLET_H
#define PAY_INGEST_OUTLET_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/err.h"
#include "common/base/str.h"
#include "common/io/kafka/kafka_producer.h"
#include "common/service/broker.h"
#include "common/service/common_config.h"

struct pay_outlet;

struct pay_ticket {
    void (*on_report)(struct pay_ticket *ticket, const struct pay_kafka_report *report);
};

struct pay_outlet_record {
    const char *topic;
    struct pay_str key;
    struct pay_bytes value;
    const struct pay_kafka_headers *headers; /**< NULL: none. */
    bool value_stays;                        /**< Until its report: it is not copied. */
};

/** @param broker is told what was acknowledged and what not; outlives the outlet, because /readyz
 * may look at it to the end of the process. */
PAY_MUST_CHECK enum pay_status pay_outlet_open(const struct pay_common_config *common,
                                               int timeout_ms, struct pay_broker *broker,
                                               struct pay_outlet **ret_outlet, struct pay_err *err);
/** @brief Waits up to @p flush_ms for what is on its way; the rest is reported as failed. */
struct pay_outlet *pay_outlet_close(struct pay_outlet *outlet, int flush_ms);
/**
 * @return PAY_OK: one report will come. PAY_RETRY: full, away, no right to the topic. PAY_REJECT:
 * too large or invalid itself; the code is the codec's, for pay_dead_reason_of_code().
 */
PAY_MUST_CHECK enum pay_status pay_outlet_put(struct pay_outlet *outlet,
                                              const struct pay_outlet_record *record,
                                              struct pay_ticket *ticket, struct pay_err *err);
/** As pay_broker_look(). */
void pay_outlet_look(struct pay_outlet *outlet);

/** Waits for several records on the thread that sent them. */
struct pay_outlet_wait {
    struct pay_ticket ticket; /**< First: the report finds the rest behind it. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t pending;
    enum pay_status worst; /**< PAY_OK while everything was acknowledged. */
    int code;              /**< Kafka's, of the worst. */
    const char *reason;    /**< Static: why it is the worst; set with the code. */
};
void pay_outlet_wait_init(struct pay_outlet_wait *wait);
void pay_outlet_wait_free(struct pay_outlet_wait *wait);
/** @brief Put one more record under this wait. */
PAY_MUST_CHECK enum pay_status pay_outlet_wait_put(struct pay_outlet_wait *wait,
                                                   struct pay_outlet *outlet,
                                                   const struct pay_outlet_record *record,
                                                   struct pay_err *err);
/**
 * @brief Until every report is there: the producer's own time-out bounds it.
 * @param err unless PAY_OK: Kafka's name for it, and its code as of pay_outlet_put(); may be NULL.
 * @return the worst; PAY_REJECT: one record at least will never be taken.
 */
enum pay_status pay_outlet_wait_done(struct pay_outlet_wait *wait, struct pay_err *err);

#endif /* PAY_INGEST_OUTLET_H */
