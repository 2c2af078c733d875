/* SPDX-License-Identifier: Apache-2.0 */
#include "services/publisher/settings.h"

#include "common/base/banned.h"

struct pay_publisher_settings pay_publisher_settings;

#define ROW(name_, member_, default_, min_, max_, unit_, doc_)                \
    {name_,    PAY_CFG_INT, offsetof(struct pay_publisher_settings, member_), \
     default_, min_,        max_,                                             \
     unit_,    0,           doc_}

static const struct pay_cfg_row rows[] = {
    PAY_ROWS_SERVICE(struct pay_publisher_settings, common),
    PAY_ROWS_KAFKA(struct pay_publisher_settings, common),
    PAY_ROWS_PG(struct pay_publisher_settings, common, PAY_CFG_REQUIRED),
    PAY_ROWS_REGISTRY(struct pay_publisher_settings, common),
    ROW("LEASE_MS", lease_ms, "10000", 1000, 300000, "ms",
        "A shard's lease lasts this long; renewed after a third of it."),
    ROW("POLL_MS", poll_ms, "5", 1, 1000, "ms",
        "Pause between two looks at an idle outbox; five times as long after a second without a "
        "row."),
    ROW("SWEEP_MS", sweep_ms, "1000", 10, 60000, "ms",
        "How often the outbox is read from its start, for what the cursor passed."),
    ROW("READ_ROWS_MAX", read_rows_max, "1000", 1, 4096, "rows",
        "Rows of one shard per read; half of the shard's part of what may be in hand, if that is "
        "less."),
    ROW("IN_FLIGHT_MAX", in_flight_max, "4000", 1, 90000, "records",
        "Records produced and not yet acknowledged; each leased shard has its part, at least one."),
    ROW("REFUSE_FIRST_MS", refuse_first_ms, "1000", 1, 600000, "ms",
        "Pause after the first refusal of a record; doubled each time."),
    ROW("REFUSE_MAX_MS", refuse_max_ms, "60000", 1, 3600000, "ms",
        "Longest pause between two tries of a refused record."),
    ROW("REFUSALS_MAX", refusals_max, "10", 1, 1000, "tries",
        "A record refused so often is marked dead and holds its payment."),
    ROW("MESSAGE_BYTES_MAX", message_bytes_max, "1000000", 1000, 100000000, "bytes",
        "A larger record is refused without asking the broker."),
};

const struct pay_cfg_table pay_publisher_config = {"payfact-publisher", rows,
                                                   sizeof rows / sizeof rows[0]};

const struct pay_metric_def pay_publisher_metrics[PAY_PM_COUNT] = {
    [PAY_PM_DELIVERED] = {.name = "payfact_publisher_delivered_total",
                          .type = PAY_METRIC_COUNTER,
                          .help = "Records acknowledged by all in-sync replicas.",
                          .labels = {"topic"}},
    [PAY_PM_REFUSED] = {.name = "payfact_publisher_refused_total",
                        .type = PAY_METRIC_COUNTER,
                        .help = "Records that the broker or the size limit refused.",
                        .labels = {"reason"}},
    [PAY_PM_DEAD] = {.name = "payfact_publisher_dead_total",
                     .type = PAY_METRIC_COUNTER,
                     .help = "Records given up; each holds its payment's later ones."},
    [PAY_PM_RELAY_SECONDS] = {.name = "payfact_publisher_relay_seconds",
                              .type = PAY_METRIC_HISTOGRAM,
                              .help = "From the decision to the acknowledgement.",
                              .buckets = pay_metric_latency_us,
                              .bucket_count = 16,
                              .scale = 1000000},
    [PAY_PM_SHARDS] = {.name = "payfact_publisher_shards",
                       .type = PAY_METRIC_GAUGE,
                       .help = "Shards leased by this process."},
    [PAY_PM_FENCED] = {.name = "payfact_publisher_fenced_total",
                       .type = PAY_METRIC_COUNTER,
                       .help = "Leases lost to another process."},
    [PAY_PM_OUTBOX_ROWS] = {.name = "payfact_outbox_rows",
                            .type = PAY_METRIC_GAUGE,
                            .help = "Rows in the outbox, counted up to 10000."},
    [PAY_PM_OUTBOX_DEAD] = {.name = "payfact_outbox_dead_rows",
                            .type = PAY_METRIC_GAUGE,
                            .help = "Rows given up."},
    [PAY_PM_OUTBOX_AGE] = {.name = "payfact_outbox_oldest_seconds",
                           .type = PAY_METRIC_GAUGE,
                           .help = "Age of the oldest row in the outbox.",
                           .scale = 1000000},
    [PAY_PM_UNFRAMED] = {.name = "payfact_publisher_unframed_total",
                         .type = PAY_METRIC_COUNTER,
                         .help = "Times that an event had to wait for its schema's registry id."},
    [PAY_PM_ERRORS] = {.name = "payfact_publisher_errors_total",
                       .type = PAY_METRIC_COUNTER,
                       .help = "Failures by the part that failed.",
                       .labels = {"part"}},
};
