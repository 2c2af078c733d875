/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file publisher.h
 * @brief The outbox relay: leases shards, produces their rows in order, deletes what is
 * acknowledged.
 *
 * Ownership: pay_publisher_run() owns everything it makes. Threads: one. Failure: an outage of the
 * database or the broker is waited out with bounded backoff; PAY_FATAL only for configuration.
 */
#ifndef PAY_PUBLISHER_PUBLISHER_H
#define PAY_PUBLISHER_PUBLISHER_H

#include "common/service/service.h"

/** @brief Until the service drains. */
enum pay_status pay_publisher_run(struct pay_service *svc, struct pay_err *err);

#endif /* PAY_PUBLISHER_PUBLISHER_H */
