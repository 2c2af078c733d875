/* SPDX-License-Identifier: Apache-2.0 */
#include "services/recovery/settings.h"

#include "common/base/banned.h"

struct pay_recovery_settings pay_recovery_settings;

#define ROW(name_, member_, default_, min_, max_, unit_, doc_)               \
    {name_,    PAY_CFG_INT, offsetof(struct pay_recovery_settings, member_), \
     default_, min_,        max_,                                            \
     unit_,    0,           doc_}

static const struct pay_cfg_row rows[] = {
    PAY_ROWS_SERVICE(struct pay_recovery_settings, common),
    PAY_ROWS_KAFKA(struct pay_recovery_settings, common),
    PAY_ROWS_SCHEMA(struct pay_recovery_settings, common),
    PAY_ROWS_PG(struct pay_recovery_settings, common, PAY_CFG_REQUIRED),
    PAY_ROWS_ACCOUNTS(struct pay_recovery_settings, common),
    ROW("BATCH_ROWS_MAX", batch_rows_max, "200", 1, 1000, "rows",
        "Due deadlines leased at a time."),
    ROW("POLL_MS", poll_ms, "200", 10, 60000, "ms",
        "Pause between two looks when nothing was due."),
    ROW("LEASE_MS", lease_ms, "30000", 1000, 600000, "ms",
        "A leased deadline is this process's for so long; also the end of its query jobs. Of what"
        " waits for a decision the lease doubles with each try, up to 15 minutes."),
    ROW("PRODUCE_TIMEOUT_MS", produce_timeout_ms, "10000", 100, 300000, "ms",
        "A job or input that Kafka has not acknowledged by then is made again."),
    ROW("ORPHAN_FIRST_MS", orphan_first_ms, "1000", 10, 3600000, "ms",
        "Pause before an orphan is decided again; doubled each time."),
    ROW("ORPHAN_MAX_MS", orphan_max_ms, "600000", 10, 86400000, "ms",
        "Longest pause between two tries of an orphan."),
};

const struct pay_cfg_table pay_recovery_config = {"payfact-recovery", rows,
                                                  sizeof rows / sizeof rows[0]};

const struct pay_metric_def pay_recovery_metrics[PAY_RM_COUNT] = {
    [PAY_RM_SENT] = {.name = "payfact_recovery_sent_total",
                     .type = PAY_METRIC_COUNTER,
                     .help = "Query jobs, deadline inputs and replays acknowledged by Kafka.",
                     .labels = {"what", "kind"}},
    [PAY_RM_OVERDUE] = {.name = "payfact_deadlines_overdue",
                        .type = PAY_METRIC_GAUGE,
                        .help = "Deadlines that are due, counted up to 10000 a kind.",
                        .labels = {"kind"}},
    [PAY_RM_OVERDUE_AGE] = {.name = "payfact_deadlines_oldest_seconds",
                            .type = PAY_METRIC_GAUGE,
                            .help = "How long the oldest due deadline waits.",
                            .labels = {"kind"},
                            .scale = 1000000},
    [PAY_RM_UNKNOWN] = {.name = "payfact_unknown_attempts",
                        .type = PAY_METRIC_GAUGE,
                        .help = "Attempts whose result is unknown.",
                        .labels = {"psp", "psp_account"}},
    [PAY_RM_UNKNOWN_AGE] = {.name = "payfact_unknown_oldest_seconds",
                            .type = PAY_METRIC_GAUGE,
                            .help = "Age of the oldest attempt whose result is unknown.",
                            .labels = {"psp", "psp_account"},
                            .scale = 1000000},
    [PAY_RM_ERRORS] = {.name = "payfact_recovery_errors_total",
                       .type = PAY_METRIC_COUNTER,
                       .help = "Failures by the part that failed.",
                       .labels = {"part"}},
    [PAY_RM_PARTITIONS] = {.name = "payfact_partitions_made_total",
                           .type = PAY_METRIC_COUNTER,
                           .help = "Monthly partitions made."},
};
