/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file common_config.h
 * @brief The settings that several services share, as rows to put into each service's own table.
 *
 * A service's config struct has a member of type struct pay_common_config, and its table lists the
 * rows that the service uses (pay_service_main() needs PAY_ROWS_SERVICE):
 *
 *     struct cfg { struct pay_common_config common; int64_t workers; };
 *     static const struct pay_cfg_row rows[] = {
 *         PAY_ROWS_SERVICE(struct cfg, common),
 *         PAY_ROWS_KAFKA(struct cfg, common),
 *         {"WORKERS", PAY_CFG_INT, offsetof(struct cfg, workers), "2", 1, 64, "", 0, "Worker
 * threads."},
 *     };
 */
#ifndef PAY_SERVICE_COMMON_CONFIG_H
#define PAY_SERVICE_COMMON_CONFIG_H

#include <stddef.h>

#include "common/base/config.h"

struct pay_common_config {
    char log_level[PAY_CFG_TEXT_MAX];
    char instance_id[PAY_CFG_TEXT_MAX]; /**< Filled by pay_service_main() when not set. */
    char admin_bind[PAY_CFG_TEXT_MAX];
    int64_t admin_port;
    int64_t drain_ms_max;
    int64_t turn_ms_max;
    char kafka_brokers[PAY_CFG_TEXT_MAX];
    char kafka_properties_file[PAY_CFG_TEXT_MAX];
    char topic_prefix[PAY_CFG_TEXT_MAX];
    char pg_conninfo[PAY_CFG_TEXT_MAX];
    char pg_password_file[PAY_CFG_TEXT_MAX];
    char redis_url[PAY_CFG_TEXT_MAX];
    char redis_password_file[PAY_CFG_TEXT_MAX];
    char accounts_file[PAY_CFG_TEXT_MAX];
    char secrets_dir[PAY_CFG_TEXT_MAX];
    char keyring_file[PAY_CFG_TEXT_MAX];
};

/** Used by pay_service_main(): every service has these. */
#define PAY_ROWS_SERVICE(type_, member_)                                                            \
    {"LOG_LEVEL",                                                                                   \
     PAY_CFG_TEXT,                                                                                  \
     offsetof(type_, member_.log_level),                                                            \
     "info",                                                                                        \
     0,                                                                                             \
     0,                                                                                             \
     "",                                                                                            \
     0,                                                                                             \
     "Least level that is logged: debug, info, warn or error."},                                    \
        {"INSTANCE_ID",                                                                             \
         PAY_CFG_TEXT,                                                                              \
         offsetof(type_, member_.instance_id),                                                      \
         NULL,                                                                                      \
         0,                                                                                         \
         0,                                                                                         \
         "",                                                                                        \
         0,                                                                                         \
         "Name of this process in leases and gates; by default host name and process id."},         \
        {"ADMIN_BIND",                                                                              \
         PAY_CFG_TEXT,                                                                              \
         offsetof(type_, member_.admin_bind),                                                       \
         "127.0.0.1",                                                                               \
         0,                                                                                         \
         0,                                                                                         \
         "",                                                                                        \
         0,                                                                                         \
         "Address of the admin port (/metrics, /healthz, /readyz)."},                               \
        {"ADMIN_PORT", PAY_CFG_INT, offsetof(type_, member_.admin_port),          "9464", 0, 65535, \
         "",           0,           "Admin port; 0 takes a free one and logs it."},                 \
        {"DRAIN_MS_MAX",                                                                            \
         PAY_CFG_INT,                                                                               \
         offsetof(type_, member_.drain_ms_max),                                                     \
         "20000",                                                                                   \
         100,                                                                                       \
         600000,                                                                                    \
         "ms",                                                                                      \
         0,                                                                                         \
         "Longest drain after SIGTERM; beyond it the process exits non-zero."},                     \
        {"TURN_MS_MAX", PAY_CFG_INT, offsetof(type_, member_.turn_ms_max),                          \
         "60000",       1000,        3600000,                                                       \
         "ms",          0,           "Age of a loop's last turn at which /healthz fails."}

#define PAY_ROWS_KAFKA(type_, member_)                                                   \
    {"KAFKA_BROKERS",                                                                    \
     PAY_CFG_TEXT,                                                                       \
     offsetof(type_, member_.kafka_brokers),                                             \
     NULL,                                                                               \
     0,                                                                                  \
     0,                                                                                  \
     "",                                                                                 \
     PAY_CFG_REQUIRED,                                                                   \
     "Bootstrap brokers, host:port separated by commas."},                               \
        {"KAFKA_PROPERTIES_FILE",                                                        \
         PAY_CFG_TEXT,                                                                   \
         offsetof(type_, member_.kafka_properties_file),                                 \
         NULL,                                                                           \
         0,                                                                              \
         0,                                                                              \
         "",                                                                             \
         0,                                                                              \
         "File of librdkafka properties (name=value lines), for TLS, SASL and tuning."}, \
        {"TOPIC_PREFIX",                                                                 \
         PAY_CFG_TEXT,                                                                   \
         offsetof(type_, member_.topic_prefix),                                          \
         "payfact.",                                                                     \
         0,                                                                              \
         0,                                                                              \
         "",                                                                             \
         0,                                                                              \
         "Text put before every topic name and consumer group."}

#define PAY_ROWS_PG(type_, member_, flags_)                    \
    {"PG_CONNINFO",                                            \
     PAY_CFG_TEXT,                                             \
     offsetof(type_, member_.pg_conninfo),                     \
     NULL,                                                     \
     0,                                                        \
     0,                                                        \
     "",                                                       \
     (flags_),                                                 \
     "libpq connection string or URI, without the password."}, \
        {"PG_PASSWORD_FILE",                                   \
         PAY_CFG_TEXT,                                         \
         offsetof(type_, member_.pg_password_file),            \
         NULL,                                                 \
         0,                                                    \
         0,                                                    \
         "",                                                   \
         0,                                                    \
         "File that holds the password of the database role."}

#define PAY_ROWS_REDIS(type_, member_)                                                         \
    {"REDIS_URL",                                                                              \
     PAY_CFG_TEXT,                                                                             \
     offsetof(type_, member_.redis_url),                                                       \
     NULL,                                                                                     \
     0,                                                                                        \
     0,                                                                                        \
     "",                                                                                       \
     0,                                                                                        \
     "redis://host:port[/db]; empty: no Redis (duplicates cost more, nothing else changes)."}, \
        {"REDIS_PASSWORD_FILE",                                                                \
         PAY_CFG_TEXT,                                                                         \
         offsetof(type_, member_.redis_password_file),                                         \
         NULL,                                                                                 \
         0,                                                                                    \
         0,                                                                                    \
         "",                                                                                   \
         0,                                                                                    \
         "File that holds the password for Redis."}

#define PAY_ROWS_ACCOUNTS(type_, member_)                                          \
    {"ACCOUNTS_FILE",                                                              \
     PAY_CFG_TEXT,                                                                 \
     offsetof(type_, member_.accounts_file),                                       \
     NULL,                                                                         \
     0,                                                                            \
     0,                                                                            \
     "",                                                                           \
     PAY_CFG_REQUIRED,                                                             \
     "accounts.json: merchants, PSP accounts and principals; re-read on change."}, \
        {"SECRETS_DIR",                                                            \
         PAY_CFG_TEXT,                                                             \
         offsetof(type_, member_.secrets_dir),                                     \
         NULL,                                                                     \
         0,                                                                        \
         0,                                                                        \
         "",                                                                       \
         0,                                                                        \
         "Directory that relative secret paths of accounts.json start from; by default its own."}

#define PAY_ROWS_KEYRING(type_, member_)    \
    {"KEYRING_FILE",                        \
     PAY_CFG_TEXT,                          \
     offsetof(type_, member_.keyring_file), \
     NULL,                                  \
     0,                                     \
     0,                                     \
     "",                                    \
     PAY_CFG_REQUIRED,                      \
     "Evidence keyring; re-read on change."}

#endif /* PAY_SERVICE_COMMON_CONFIG_H */
