/* SPDX-License-Identifier: Apache-2.0 */
/** @file settings.h @brief The publisher's configuration table and metric families. */
#ifndef PAY_PUBLISHER_SETTINGS_H
#define PAY_PUBLISHER_SETTINGS_H

#include "common/service/service.h"

struct pay_publisher_settings {
    struct pay_common_config common;
    int64_t lease_ms;
    int64_t poll_ms;
    int64_t sweep_ms;
    int64_t read_rows_max;
    int64_t in_flight_max;
    int64_t refuse_first_ms;
    int64_t refuse_max_ms;
    int64_t refusals_max;
    int64_t message_bytes_max;
};

extern struct pay_publisher_settings pay_publisher_settings;
extern const struct pay_cfg_table pay_publisher_config;

enum pay_publisher_metric {
    PAY_PM_DELIVERED,
    PAY_PM_REFUSED,
    PAY_PM_DEAD,
    PAY_PM_RELAY_SECONDS,
    PAY_PM_SHARDS,
    PAY_PM_FENCED,
    PAY_PM_OUTBOX_ROWS,
    PAY_PM_OUTBOX_DEAD,
    PAY_PM_OUTBOX_AGE,
    PAY_PM_UNFRAMED,
    PAY_PM_ERRORS,
    PAY_PM_COUNT
};
extern const struct pay_metric_def pay_publisher_metrics[PAY_PM_COUNT];

#endif /* PAY_PUBLISHER_SETTINGS_H */
