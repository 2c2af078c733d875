/* SPDX-License-Identifier: Apache-2.0 */
/** @file processor.h @brief What main.c needs: the check of the settings, and the loop. */
#ifndef PAY_PROCESSOR_PROCESSOR_H
#define PAY_PROCESSOR_PROCESSOR_H

#include "common/service/service.h"

/** @brief Accounts and keyring can be read. No network. */
PAY_MUST_CHECK enum pay_status pay_processor_check(const char *role, struct pay_err *err);
/** @brief Consume until the service drains. */
PAY_MUST_CHECK enum pay_status pay_processor_run(struct pay_service *svc, struct pay_err *err);

#endif /* PAY_PROCESSOR_PROCESSOR_H */
