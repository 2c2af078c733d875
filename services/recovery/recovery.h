/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file recovery.h
 * @brief Leases what is due and turns it into queries and inputs; any number of replicas share.
 *
 * Ownership: pay_recovery_run() owns everything it makes. Threads: one. Failure: an outage of the
 * database or the broker is waited out; PAY_FATAL only for configuration.
 */
#ifndef PAY_RECOVERY_RECOVERY_H
#define PAY_RECOVERY_RECOVERY_H

#include "common/service/service.h"

/** @brief For --check-config: the accounts file. */
enum pay_status pay_recovery_check(const char *role, struct pay_err *err);
/** @brief Until the service drains. */
enum pay_status pay_recovery_run(struct pay_service *svc, struct pay_err *err);

#endif /* PAY_RECOVERY_RECOVERY_H */
