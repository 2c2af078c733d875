/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/settings.h"

#include "common/base/banned.h"

struct pay_processor_settings pay_processor_settings;

#define ROW(name_, member_, default_, min_, max_, unit_, doc_)                \
    {name_,    PAY_CFG_INT, offsetof(struct pay_processor_settings, member_), \
     default_, min_,        max_,                                             \
     unit_,    0,           doc_}

static const struct pay_cfg_row rows[] = {
    PAY_ROWS_SERVICE(struct pay_processor_settings, common),
    PAY_ROWS_KAFKA(struct pay_processor_settings, common),
    PAY_ROWS_SCHEMA(struct pay_processor_settings, common),
    PAY_ROWS_PG(struct pay_processor_settings, common, PAY_CFG_REQUIRED),
    PAY_ROWS_ACCOUNTS(struct pay_processor_settings, common),
    PAY_ROWS_KEYRING(struct pay_processor_settings, common),
    ROW("BATCH_RECORDS_MAX", batch_records_max, "500", 1, PAY_PROCESSOR_BATCH_RECORDS_MAX,
        "records", "Inputs of one transaction at most; fewer when fewer are there."),
    ROW("PARTITIONS", partitions, "0", 0, 1024, "partitions",
        "Partition count of the inputs topic, which gives the outbox shard; 0 asks the cluster."),
    ROW("ORPHAN_BUDGET_S", orphan_budget_s, "86400", 1, 2592000, "s",
        "An input whose payment does not turn up for so long is given up."),
    ROW("ORPHAN_FIRST_MS", orphan_first_ms, "1000", 10, 3600000, "ms",
        "Pause before an orphan is decided again for the first time."),
    ROW("PRODUCE_TIMEOUT_MS", produce_timeout_ms, "10000", 100, 300000, "ms",
        "A dead letter that Kafka has not acknowledged by then is produced again."),
    ROW("RETRY_MAX_MS", retry_max_ms, "5000", 100, 60000, "ms",
        "Longest pause before a batch is tried again while PostgreSQL is away."),
    ROW("SESSION_TIMEOUT_MS", session_timeout_ms, "45000", 6000, 300000, "ms",
        "A processor that the group has not heard of for so long loses its partitions."),
    {"GROUP_INSTANCE_ID", PAY_CFG_TEXT, offsetof(struct pay_processor_settings, group_instance_id),
     NULL, 0, 0, "", 0,
     "Name for static group membership, the same after a restart and no other's; empty: dynamic."},
};

const struct pay_cfg_table pay_processor_config = {"payfact-processor", rows,
                                                   sizeof rows / sizeof rows[0]};

static const int64_t batch_buckets[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000};

const struct pay_metric_def pay_processor_metrics[PAY_PM_COUNT] = {
    [PAY_PM_INPUTS] = {.name = "payfact_inputs_total",
                       .type = PAY_METRIC_COUNTER,
                       .help = "Inputs decided, by kind, source and verdict.",
                       .labels = {"kind", "source", "verdict"}},
    [PAY_PM_DECISION] = {.name = "payfact_decision_seconds",
                         .type = PAY_METRIC_HISTOGRAM,
                         .help = "From the receipt of an input to the commit of its decision.",
                         .labels = {"source"},
                         .buckets = pay_metric_latency_us,
                         .bucket_count = 16,
                         .scale = 1000000},
    [PAY_PM_BATCH] = {.name = "payfact_batch_records",
                      .type = PAY_METRIC_HISTOGRAM,
                      .help = "Inputs of one transaction.",
                      .buckets = batch_buckets,
                      .bucket_count = sizeof batch_buckets / sizeof batch_buckets[0]},
    [PAY_PM_BATCH_SECONDS] = {.name = "payfact_batch_seconds",
                              .type = PAY_METRIC_HISTOGRAM,
                              .help = "Time of one batch, from poll to commit.",
                              .buckets = pay_metric_latency_us,
                              .bucket_count = 16,
                              .scale = 1000000},
    [PAY_PM_CONFLICTS] = {.name = "payfact_cas_conflicts_total",
                          .type = PAY_METRIC_COUNTER,
                          .help = "Payments whose version moved while they were decided."},
    [PAY_PM_RETRIES] = {.name = "payfact_batch_retries_total",
                        .type = PAY_METRIC_COUNTER,
                        .help = "Batches rolled back and tried again, by class of error.",
                        .labels = {"class"}},
    [PAY_PM_ILLEGAL] = {.name = "payfact_illegal_transitions_total",
                        .type = PAY_METRIC_COUNTER,
                        .help = "Decisions REJECT or NEEDS_RECONCILIATION, by reason.",
                        .labels = {"verdict", "reason"}},
    [PAY_PM_SECURITY] = {.name = "payfact_security_rejects_total",
                         .type = PAY_METRIC_COUNTER,
                         .help = "Inputs refused for tenant, caller, permission or evidence.",
                         .labels = {"reason"}},
    [PAY_PM_DUPLICATES] = {.name = "payfact_duplicates_total",
                           .type = PAY_METRIC_COUNTER,
                           .help = "Deliveries of an input that is stored already.",
                           .labels = {"kind"}},
    [PAY_PM_ORPHANS] = {.name = "payfact_orphans_total",
                        .type = PAY_METRIC_COUNTER,
                        .help = "Inputs kept for a payment that is not there yet, or given up.",
                        .labels = {"outcome"}},
    [PAY_PM_DEAD] = {.name = "payfact_dead_letters_total",
                     .type = PAY_METRIC_COUNTER,
                     .help = "Inputs given up, by reason.",
                     .labels = {"reason"}},
    [PAY_PM_ATTEMPTS] = {.name = "payfact_attempts_total",
                         .type = PAY_METRIC_COUNTER,
                         .help = "Attempts that reached a status, with their failure class.",
                         .labels = {"psp", "method", "merchant", "status", "failure_class"},
                         .series_max = 512},
    [PAY_PM_LAG] = {.name = "payfact_consumer_lag_records",
                    .type = PAY_METRIC_GAUGE,
                    .help = "Inputs not consumed yet, over the assigned partitions."},
    [PAY_PM_ERRORS] = {.name = "payfact_processor_errors_total",
                       .type = PAY_METRIC_COUNTER,
                       .help = "Failures by the part that failed.",
                       .labels = {"part"}},
};
