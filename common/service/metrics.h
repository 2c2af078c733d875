/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file metrics.h
 * @brief Counters, gauges and histograms with bounded labels, in Prometheus text form.
 *
 * Metrics are declared as static tables (also the source of the generated list). A family holds at
 * most series_max label sets; one more goes to the series whose labels are all "other", so that a
 * flood of label values costs no memory. Values are integers: a histogram of seconds is observed in
 * microseconds and declared with scale 1000000.
 *
 * Ownership: families and series live as long as the registry. Threads: everything from any thread;
 * updates of a known series are one atomic operation. Failure: none; the maximum is handled as
 * above.
 *
 *     static const struct pay_metric_def turns = {.name = "payfact_turns_total", ...};
 *     struct pay_metric *turns_m = pay_metrics_family(metrics, &turns);
 *     pay_metric_add(turns_m, (const char *const[]){"webhook"}, 1);
 */
#ifndef PAY_SERVICE_METRICS_H
#define PAY_SERVICE_METRICS_H

#include "common/base/buf.h"

#define PAY_METRICS_FAMILIES_MAX 256
#define PAY_METRIC_LABELS_MAX 6
#define PAY_METRIC_LABEL_BYTES_MAX 64 /**< A longer value is "other". */
#define PAY_METRIC_BUCKETS_MAX 24
#define PAY_METRIC_SERIES_DEFAULT 64
#define PAY_METRICS_COLLECTORS_MAX 16

enum pay_metric_type {
    PAY_METRIC_COUNTER,
    PAY_METRIC_GAUGE,
    PAY_METRIC_HISTOGRAM,
    PAY_METRIC_TYPE_COUNT
};

/** One family. Static: borrowed for ever. */
struct pay_metric_def {
    const char *name; /**< With unit: payfact_..._seconds, ..._total, ..._bytes. */
    enum pay_metric_type type;
    const char *help;
    const char *labels[PAY_METRIC_LABELS_MAX]; /**< Names; the rest NULL. */
    unsigned series_max;                       /**< 0: PAY_METRIC_SERIES_DEFAULT. */
    const int64_t *buckets; /**< HISTOGRAM: ascending upper bounds, before scaling. */
    size_t bucket_count;
    int64_t scale; /**< 0 or 1: as is; else values are printed divided by it (a power of ten). */
};

/** Ready-made bounds in microseconds, 0.5 ms to 60 s; use with scale 1000000. */
extern const int64_t pay_metric_latency_us[16];
#define PAY_METRIC_LATENCY_BUCKETS pay_metric_latency_us, 16, 1000000

struct pay_metrics;
struct pay_metric;
struct pay_metric_series;

/** @return NULL when memory is out. */
struct pay_metrics *pay_metrics_new(void);
struct pay_metrics *pay_metrics_free(struct pay_metrics *metrics);

/** @brief Find or register; the same def gives the same family. Two defs of one name are a bug. */
struct pay_metric *pay_metrics_family(struct pay_metrics *metrics,
                                      const struct pay_metric_def *def);

/**
 * @brief Find or make one label set; keep the result to save the search.
 * @param values one per declared label; NULL when there are none. A NULL value reads "".
 * @return never NULL; the "other" series at the maximum. Copes with a NULL metric (does nothing
 * then).
 */
struct pay_metric_series *pay_metric_with(struct pay_metric *metric, const char *const *values);

/** @brief Counter or gauge += @p n. Copes with NULL. */
void pay_series_add(struct pay_metric_series *series, int64_t n);
/** @brief Gauge (or a counter mirrored from elsewhere) = @p value. Copes with NULL. */
void pay_series_set(struct pay_metric_series *series, int64_t value);
/** @brief Histogram: count one value. Copes with NULL. */
void pay_series_observe(struct pay_metric_series *series, int64_t value);

/** @brief Search and update in one. Copes with NULL, so that tests need no registry. */
void pay_metric_add(struct pay_metric *metric, const char *const *values, int64_t n);
void pay_metric_set(struct pay_metric *metric, const char *const *values, int64_t value);
void pay_metric_observe(struct pay_metric *metric, const char *const *values, int64_t value);

/** @brief Called before each exposition, to set gauges from what is known then. Must not block. */
void pay_metrics_collector_add(struct pay_metrics *metrics, void (*collect)(void *ctx), void *ctx);
/** @brief Prometheus text, version 0.0.4. */
void pay_metrics_print(struct pay_metrics *metrics, struct pay_buf *out);
/** @brief A Markdown table of name, type, labels and help, for the docs. */
void pay_metrics_print_docs(const struct pay_metric_def *defs, size_t count, struct pay_buf *out);

#endif /* PAY_SERVICE_METRICS_H */
