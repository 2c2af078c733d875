/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file broker.h
 * @brief Is there a broker? What /readyz says of Kafka: shown by what was acknowledged or consumed,
 * and asked for where nothing showed it for a while, so that an idle process knows it too.
 *
 * Ownership: the watch is the caller's, zeroed at first; it borrows nothing. Threads: shown, failed
 * and ok from any; look from one. Failure: none, it is an answer.
 */
#ifndef PAY_SERVICE_BROKER_H
#define PAY_SERVICE_BROKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

#define PAY_BROKER_QUIET_MS 2000 /**< Nothing shown for so long: asked. */
#define PAY_BROKER_ASK_MS 500    /**< An answer that takes longer is none. */

struct pay_broker {
    atomic_bool ok;
    _Atomic int64_t shown_us; /**< Monotonic; of the last proof, or failure. */
    bool is_told;             /**< That it is away was logged. */
};

/** @brief A record was acknowledged, or one came. */
void pay_broker_shown(struct pay_broker *broker);
/** @brief A record was not acknowledged in time: asked at the next look. */
void pay_broker_failed(struct pay_broker *broker);
/** As pay_kafka_producer_ping() with its producer bound. */
typedef enum pay_status pay_broker_ask_fn(void *ctx, int timeout_ms, struct pay_err *err);
/**
 * @brief Ask where it is time. Logs kafka_away and kafka_answers once each. May block for
 * PAY_BROKER_ASK_MS.
 */
void pay_broker_look(struct pay_broker *broker, pay_broker_ask_fn *ask, void *ctx);
bool pay_broker_ok(const struct pay_broker *broker);

#endif /* PAY_SERVICE_BROKER_H */
