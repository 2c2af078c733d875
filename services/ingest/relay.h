/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file relay.h
 * @brief Inside role relay: one record of the notifications or commands topic becomes inputs.
 *
 * Each call produces under desk->wait and returns; PAY_OK does not mean durable yet. Failure:
 * PAY_RETRY, the record comes again; PAY_REJECT, what it leads to cannot be produced (too large):
 * the dead letters. What is wrong with the record itself is never a failure.
 */
#ifndef PAY_INGEST_RELAY_H
#define PAY_INGEST_RELAY_H

#include <stdatomic.h>

#include "common/io/kafka/kafka_consumer.h"
#include "common/registry/incoming.h"
#include "services/ingest/dead.h"

struct pay_relay_desk {
    struct pay_desk desk;
    struct pay_outlet_wait wait;
    struct pay_health_loop *loop;
    struct pay_registry *registry; /**< NULL: none is configured. */
    struct pay_incoming *incoming;
    atomic_bool registry_ok; /**< For /readyz: it answered last time. */
    bool registry_noted;
    int64_t registry_due_us;
};

/** @brief Open the schema registry, if one is configured; nothing is asked of it yet. */
PAY_MUST_CHECK enum pay_status pay_relay_schemas_open(struct pay_relay_desk *desk,
                                                      struct pay_err *err);
/** Copes with a half-open one. */
void pay_relay_schemas_close(struct pay_relay_desk *desk);
/**
 * @brief Know the schema that @p value names. Waits, however long, while the registry cannot say:
 * what was produced of the batch is not produced again because of it.
 * @return PAY_RETRY: the service ends.
 */
PAY_MUST_CHECK enum pay_status pay_relay_schemas_know(struct pay_relay_desk *desk,
                                                      enum pay_record record,
                                                      struct pay_bytes value, struct pay_err *err);
/** @brief While it has not answered: ask it for anything, now and then. */
void pay_relay_schemas_probe(struct pay_relay_desk *desk);

/** @brief A notification: verified as of its received_at; refused ones are kept as evidence. */
PAY_MUST_CHECK enum pay_status pay_relay_notification(struct pay_relay_desk *desk,
                                                      const struct pay_kafka_msg *msg,
                                                      struct pay_err *err);
/** @brief A command: signature, key = body, caller, merchant, permission, secrets. */
PAY_MUST_CHECK enum pay_status pay_relay_command(struct pay_relay_desk *desk,
                                                 const struct pay_kafka_msg *msg,
                                                 struct pay_err *err);
/** @brief Produce desk->desk.value to inputs. */
PAY_MUST_CHECK enum pay_status pay_relay_put(struct pay_relay_desk *desk, struct pay_str key,
                                             struct pay_str traceparent, struct pay_err *err);
/** @brief To the dead letters, counted under @p metric. */
PAY_MUST_CHECK enum pay_status pay_relay_dead(struct pay_relay_desk *desk,
                                              const struct pay_kafka_msg *msg,
                                              enum pay_ingest_metric metric,
                                              enum pay_dead_reason reason, const char *text,
                                              struct pay_err *err);

#endif /* PAY_INGEST_RELAY_H */
