/* SPDX-License-Identifier: Apache-2.0 */
/** @file settings.h @brief Recovery's configuration table and metric families. */
#ifndef PAY_RECOVERY_SETTINGS_H
#define PAY_RECOVERY_SETTINGS_H

#include "common/service/service.h"

struct pay_recovery_settings {
    struct pay_common_config common;
    int64_t batch_rows_max;
    int64_t poll_ms;
    int64_t lease_ms;
    int64_t produce_timeout_ms;
    int64_t orphan_first_ms;
    int64_t orphan_max_ms;
};

extern struct pay_recovery_settings pay_recovery_settings;
extern const struct pay_cfg_table pay_recovery_config;

enum pay_recovery_metric {
    PAY_RM_SENT,
    PAY_RM_OVERDUE,
    PAY_RM_OVERDUE_AGE,
    PAY_RM_UNKNOWN,
    PAY_RM_UNKNOWN_AGE,
    PAY_RM_ERRORS,
    PAY_RM_PARTITIONS,
    PAY_RM_COUNT
};
extern const struct pay_metric_def pay_recovery_metrics[PAY_RM_COUNT];

#endif /* PAY_RECOVERY_SETTINGS_H */
