/* SPDX-License-Identifier: Apache-2.0 */
/** @file internal.h @brief Recovery's state, shared by its own files only. */
#ifndef PAY_RECOVERY_INTERNAL_H
#define PAY_RECOVERY_INTERNAL_H

#include <stdatomic.h>

#include "common/accounts/accounts.h"
#include "common/contracts/topics.h"
#include "common/io/kafka/kafka_producer.h"
#include "common/service/broker.h"
#include "services/recovery/plan.h"
#include "services/recovery/recovery.h"
#include "services/recovery/settings.h"

/** One leased row on its way. */
struct pay_task {
    struct pay_store_due due;
    struct pay_store_ask ask; /**< For a QUERY; attempt_id "" otherwise. */
    enum pay_plan plan;
    struct pay_plan_schedule schedule;
    bool acknowledged;
    bool refused;  /**< By Kafka (no right, no topic, too large): it keeps its lease. */
    bool unusable; /**< Nothing can be made of it: it keeps its lease, and is looked at again then.
                    */
};

struct pay_recovery {
    struct pay_service *svc;
    const struct pay_recovery_settings *cfg;
    struct pay_metric *metrics[PAY_RM_COUNT];
    struct pay_store *store;
    struct pay_pg_backoff pg_backoff, send_backoff;
    struct pay_kafka_producer *producer;
    struct pay_accounts_store *accounts;
    struct pay_codec *codec;
    struct pay_arena *arena;
    struct pay_buf value;
    char topics[PAY_TOPIC_COUNT][PAY_TOPIC_NAME_SIZE];
    struct pay_task *tasks; /**< batch_rows_max entries. */
    size_t task_count;
    size_t waiting;         /**< Produced and without a report. */
    const char *refused_as; /**< Why Kafka did not take one of the batch; NULL: it took all. */
    int64_t now_us;         /**< The database's clock at the lease. */
    int64_t housekeeping_due_us, stats_due_us, dead_due_us, accounts_due_us; /**< Monotonic. */
    atomic_bool pg_ok;
    struct pay_broker broker;
};

/** @brief Lease a batch and find out what its rows are about. */
PAY_MUST_CHECK enum pay_status pay_recovery_lease(struct pay_recovery *rec, struct pay_err *err);
/** @brief Produce the batch and wait for the reports, bounded. */
void pay_recovery_send(struct pay_recovery *rec);
/** @brief Into the metric of what was sent. */
void pay_recovery_count_sent(struct pay_recovery *rec);
/** @brief Move what was acknowledged, let go of what was not. */
PAY_MUST_CHECK enum pay_status pay_recovery_settle(struct pay_recovery *rec, struct pay_err *err);
/** @return false: of all that the batch sent, Kafka acknowledged nothing. */
bool pay_recovery_is_heard(const struct pay_recovery *rec);
/** @brief Tell the processor of payments whose case DEAD_EVENT is not as the outbox is. Nothing is
 * kept of it: what is not acknowledged, or not decided, is found again. */
PAY_MUST_CHECK enum pay_status pay_recovery_tell_dead(struct pay_recovery *rec,
                                                      struct pay_err *err);
/** The delivery report; pay_kafka_report_fn. */
void pay_recovery_report(void *ctx, const struct pay_kafka_report *report);

#endif /* PAY_RECOVERY_INTERNAL_H */
