/* SPDX-License-Identifier: Apache-2.0 */
/** @file settings.h @brief Ingest's configuration table and metric families, for all three roles.
 */
#ifndef PAY_INGEST_SETTINGS_H
#define PAY_INGEST_SETTINGS_H

#include "common/service/service.h"

struct pay_ingest_settings {
    struct pay_common_config common;
    int64_t produce_timeout_ms;
    char group_instance_id[PAY_CFG_TEXT_MAX];
    int64_t session_timeout_ms;
    char http_bind[PAY_CFG_TEXT_MAX];
    int64_t http_port;
    int64_t http_threads;
    int64_t http_connections_max;
    int64_t http_body_bytes_max;
    int64_t dedupe_ttl_ms;
    int64_t dedupe_epoch;
    int64_t strict_read_ms;
    char ca_file[PAY_CFG_TEXT_MAX];
    int64_t psp_workers;
    int64_t psp_jobs_max;
    int64_t retry_first_ms;
    int64_t retry_max_ms;
    int64_t retry_budget_per_min;
    int64_t breaker_failures;
    int64_t breaker_open_ms;
};

extern struct pay_ingest_settings pay_ingest_settings;
extern const struct pay_cfg_table pay_ingest_config;

enum pay_ingest_metric {
    PAY_IM_CALLBACKS, /**< psp_account, outcome */
    PAY_IM_SIGNATURE, /**< psp_account, reason */
    PAY_IM_CALLBACK_SECONDS,
    PAY_IM_HTTP,          /**< why */
    PAY_IM_DEDUPE,        /**< known */
    PAY_IM_COMMANDS,      /**< outcome, reason */
    PAY_IM_NOTIFICATIONS, /**< outcome, reason */
    PAY_IM_DEAD,          /**< topic, reason */
    PAY_IM_PRODUCED,      /**< kind, outcome */
    PAY_IM_JOBS,          /**< psp_account, kind, outcome */
    PAY_IM_CALL_SECONDS,  /**< psp_account, kind */
    PAY_IM_GATE,          /**< answer */
    PAY_IM_BREAKER,       /**< psp_account: 0 closed, 1 half open, 2 open */
    PAY_IM_IN_FLIGHT,     /**< psp_account */
    PAY_IM_QUEUED,        /**< psp_account */
    PAY_IM_LANES,
    PAY_IM_LANES_FULL, /**< outcome */
    PAY_IM_LAG,
    PAY_IM_ERRORS, /**< part */
    PAY_IM_COUNT
};
extern const struct pay_metric_def pay_ingest_metrics[PAY_IM_COUNT];

#endif /* PAY_INGEST_SETTINGS_H */
