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
    char schema_write[PAY_CFG_TEXT_MAX];
    char pg_conninfo[PAY_CFG_TEXT_MAX];
    char pg_password_file[PAY_CFG_TEXT_MAX];
    char redis_url[PAY_CFG_TEXT_MAX];
    char redis_password_file[PAY_CFG_TEXT_MAX];
    char accounts_file[PAY_CFG_TEXT_MAX];
    char secrets_dir[PAY_CFG_TEXT_MAX];
    char keyring_file[PAY_CFG_TEXT_MAX];
    char registry_url[PAY_CFG_TEXT_MAX];
    char registry_user[PAY_CFG_TEXT_MAX];
    char registry_password_file[PAY_CFG_TEXT_MAX];
    char registry_token_file[PAY_CFG_TEXT_MAX];
    char registry_ca_file[PAY_CFG_TEXT_MAX];
};

/* clang-format off */
/* NOLINTBEGIN(bugprone-macro-parentheses): member_ is a member's path, which no parentheses may enclose. */
/** One text row: member of the settings struct, name, default or NULL, flags, one sentence. */
#define PAY_ROW_TEXT(type_, member_, name_, default_, flags_, doc_) \
    {(name_), PAY_CFG_TEXT, offsetof(type_, member_), (default_), 0, 0, "", (flags_), (doc_)}
/** One integer row. */
#define PAY_ROW_INT(type_, member_, name_, default_, min_, max_, unit_, doc_) \
    {(name_), PAY_CFG_INT, offsetof(type_, member_), (default_), (min_), (max_), (unit_), 0, (doc_)}

/** Used by pay_service_main(): every service has these. */
#define PAY_ROWS_SERVICE(type_, member_) \
    PAY_ROW_TEXT(type_, member_.log_level, "LOG_LEVEL", "info", 0, \
                 "Least level that is logged: debug, info, warn or error."), \
    PAY_ROW_TEXT(type_, member_.instance_id, "INSTANCE_ID", NULL, 0, \
                 "Name of this process in leases and gates; by default host name and process id."), \
    PAY_ROW_TEXT(type_, member_.admin_bind, "ADMIN_BIND", "127.0.0.1", 0, \
                 "Address of the admin port (/metrics, /healthz, /readyz)."), \
    PAY_ROW_INT(type_, member_.admin_port, "ADMIN_PORT", "9464", 0, 65535, "", \
                "Admin port; 0 takes a free one and logs it."), \
    PAY_ROW_INT(type_, member_.drain_ms_max, "DRAIN_MS_MAX", "20000", 100, 600000, "ms", \
                "Longest drain after SIGTERM; beyond it the process exits non-zero."), \
    PAY_ROW_INT(type_, member_.turn_ms_max, "TURN_MS_MAX", "60000", 1000, 3600000, "ms", \
                "Age of a loop's last turn at which /healthz fails.")

#define PAY_ROWS_KAFKA(type_, member_) \
    PAY_ROW_TEXT(type_, member_.kafka_brokers, "KAFKA_BROKERS", NULL, PAY_CFG_REQUIRED, \
                 "Bootstrap brokers, host:port separated by commas."), \
    PAY_ROW_TEXT(type_, member_.kafka_properties_file, "KAFKA_PROPERTIES_FILE", NULL, 0, \
                 "File of librdkafka properties (name=value lines), for TLS, SASL and tuning."), \
    PAY_ROW_TEXT(type_, member_.topic_prefix, "TOPIC_PREFIX", "payfact.", 0, \
                 "Text put before every topic name and consumer group.")

/** For who writes records: see pay_codec_write_release(). */
#define PAY_ROWS_SCHEMA(type_, member_) \
    PAY_ROW_TEXT(type_, member_.schema_write, "SCHEMA_WRITE", "previous", 0, \
                 "Whose Avro schemas are written: previous (the former release's, for a rolling update), current (once" \
                 " every pod is new) or a release of schemas/avro/releases.txt.")

#define PAY_ROWS_PG(type_, member_, flags_) \
    PAY_ROW_TEXT(type_, member_.pg_conninfo, "PG_CONNINFO", NULL, (flags_), \
                 "libpq connection string or URI, without the password."), \
    PAY_ROW_TEXT(type_, member_.pg_password_file, "PG_PASSWORD_FILE", NULL, 0, \
                 "File that holds the password of the database role.")

#define PAY_ROWS_REDIS(type_, member_) \
    PAY_ROW_TEXT(type_, member_.redis_url, "REDIS_URL", NULL, 0, \
                 "redis://host:port[/db]; empty: no Redis (duplicates cost more, nothing else changes)."), \
    PAY_ROW_TEXT(type_, member_.redis_password_file, "REDIS_PASSWORD_FILE", NULL, 0, \
                 "File that holds the password for Redis.")

#define PAY_ROWS_ACCOUNTS(type_, member_) \
    PAY_ROW_TEXT(type_, member_.accounts_file, "ACCOUNTS_FILE", NULL, PAY_CFG_REQUIRED, \
                 "accounts.json: merchants, PSP accounts and principals; re-read on change."), \
    PAY_ROW_TEXT(type_, member_.secrets_dir, "SECRETS_DIR", NULL, 0, \
                 "Directory that relative secret paths of accounts.json start from; by default its own.")

#define PAY_ROWS_KEYRING(type_, member_) \
    PAY_ROW_TEXT(type_, member_.keyring_file, "KEYRING_FILE", NULL, PAY_CFG_REQUIRED, \
                 "Evidence keyring; re-read on change.")

#define PAY_ROWS_REGISTRY(type_, member_) \
    PAY_ROW_TEXT(type_, member_.registry_url, "REGISTRY_URL", NULL, 0, \
                 "Schema registry, root of its Confluent API; empty: none, the public topics are in single-object" \
                 " encoding."), \
    PAY_ROW_TEXT(type_, member_.registry_user, "REGISTRY_USER", NULL, 0, \
                 "User for the schema registry; with it a password file."), \
    PAY_ROW_TEXT(type_, member_.registry_password_file, "REGISTRY_PASSWORD_FILE", NULL, 0, \
                 "File that holds that user's password; read for each call."), \
    PAY_ROW_TEXT(type_, member_.registry_token_file, "REGISTRY_TOKEN_FILE", NULL, 0, \
                 "File that holds a bearer token for the schema registry, in place of a user; read for each call."), \
    PAY_ROW_TEXT(type_, member_.registry_ca_file, "REGISTRY_CA_FILE", NULL, 0, \
                 "Certificates to trust for the schema registry, PEM; empty: the system's.")
/* NOLINTEND(bugprone-macro-parentheses) */
/* clang-format on */

#endif /* PAY_SERVICE_COMMON_CONFIG_H */
