/* SPDX-License-Identifier: Apache-2.0 */
/** @file report.h @brief What was committed, as metrics and log lines. No payloads in either. */
#ifndef PAY_PROCESSOR_REPORT_H
#define PAY_PROCESSOR_REPORT_H

#include "services/processor/work.h"

void pay_report(const struct pay_try *turn);

#endif /* PAY_PROCESSOR_REPORT_H */
