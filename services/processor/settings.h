/* SPDX-License-Identifier: Apache-2.0 */
/** @file settings.h @brief The processor's settings and metrics, as tables. */
#ifndef PAY_PROCESSOR_SETTINGS_H
#define PAY_PROCESSOR_SETTINGS_H

#include "common/service/common_config.h"
#include "common/service/metrics.h"

#define PAY_PROCESSOR_BATCH_RECORDS_MAX 2000

struct pay_processor_settings {
    struct pay_common_config common;
    int64_t batch_records_max;
    int64_t partitions;
    int64_t orphan_budget_s;
    int64_t orphan_first_ms;
    int64_t produce_timeout_ms;
    int64_t retry_max_ms;
    int64_t session_timeout_ms;
    char group_instance_id[PAY_CFG_TEXT_MAX];
};

extern struct pay_processor_settings pay_processor_settings;
extern const struct pay_cfg_table pay_processor_config;

enum pay_processor_metric {
    PAY_PM_INPUTS,
    PAY_PM_DECISION,
    PAY_PM_BATCH,
    PAY_PM_BATCH_SECONDS,
    PAY_PM_CONFLICTS,
    PAY_PM_RETRIES,
    PAY_PM_ILLEGAL,
    PAY_PM_SECURITY,
    PAY_PM_DUPLICATES,
    PAY_PM_ORPHANS,
    PAY_PM_DEAD,
    PAY_PM_ATTEMPTS,
    PAY_PM_LAG,
    PAY_PM_ERRORS,
    PAY_PM_COUNT
};
extern const struct pay_metric_def pay_processor_metrics[PAY_PM_COUNT];

#endif /* PAY_PROCESSOR_SETTINGS_H */
