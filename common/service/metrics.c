/* SPDX-License-Identifier: Apache-2.0 */
#include "common/service/metrics.h"

#include "common/base/assert.h"
#include "common/base/hash.h"
#include "common/base/mem.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/base/banned.h"

#define LABEL_SIZE (PAY_METRIC_LABEL_BYTES_MAX + 1)

const int64_t pay_metric_latency_us[16] = {500,     1000,     2500,     5000,    10000,   25000,
                                           50000,   100000,   250000,   500000,  1000000, 2500000,
                                           5000000, 10000000, 30000000, 60000000};

struct pay_metric_series {
    const struct pay_metric_def *def;
    atomic_bool is_used; /* Prepared ones are shown once they were used. */
    char labels[PAY_METRIC_LABELS_MAX][LABEL_SIZE];
    _Atomic int64_t value;                                /* Counter, gauge; sum of a histogram. */
    _Atomic uint64_t buckets[PAY_METRIC_BUCKETS_MAX + 1]; /* Each alone; the last one is +Inf. */
};

/* Slots are only filled, under the lock; a search needs none. */
struct pay_metric {
    struct pay_metrics *metrics;
    const struct pay_metric_def *def;
    size_t label_count, series_max, series_count;
    struct pay_metric_series *other; /* Of no labels: the only one. */
    size_t slot_count;               /* A power of two, at least twice series_max. */
    _Atomic(struct pay_metric_series *) slots[];
};

struct collector {
    void (*collect)(void *ctx);
    void *ctx;
};

struct pay_metrics {
    pthread_mutex_t lock;
    struct pay_metric *families[PAY_METRICS_FAMILIES_MAX];
    size_t family_count;
    struct collector collectors[PAY_METRICS_COLLECTORS_MAX];
    size_t collector_count;
};

struct pay_metrics *pay_metrics_new(void)
{
    struct pay_metrics *metrics = pay_mem_new(1, sizeof *metrics);

    if (metrics != NULL) {
        PAY_ASSERT(pthread_mutex_init(&metrics->lock, NULL) == 0);
    }
    return metrics;
}

static void family_free(struct pay_metric *metric)
{
    for (size_t i = 0; i < metric->slot_count; i++) {
        (void)pay_mem_free(atomic_load(&metric->slots[i]));
    }
    (void)pay_mem_free(metric->other);
    (void)pay_mem_free(metric);
}

struct pay_metrics *pay_metrics_free(struct pay_metrics *metrics)
{
    if (metrics == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < metrics->family_count; i++) {
        family_free(metrics->families[i]);
    }
    (void)pthread_mutex_destroy(&metrics->lock);
    return pay_mem_free(metrics);
}

static size_t count_labels(const struct pay_metric_def *def)
{
    size_t count = 0;

    while (count < PAY_METRIC_LABELS_MAX && def->labels[count] != NULL) {
        count++;
    }
    return count;
}

static bool is_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_";

    return name != NULL && name[0] >= 'a' && name[0] <= 'z' &&
           strspn(name, allowed) == strlen(name);
}

/* A wrong table is a bug, found at the first start. */
static void check_def(const struct pay_metric_def *def)
{
    PAY_ASSERT(is_name(def->name) && def->help != NULL);
    PAY_ASSERT((unsigned)def->type < PAY_METRIC_TYPE_COUNT);
    PAY_ASSERT((def->type == PAY_METRIC_HISTOGRAM) == (def->bucket_count > 0));
    PAY_ASSERT(def->bucket_count <= PAY_METRIC_BUCKETS_MAX);
    for (size_t i = 1; i < def->bucket_count; i++) {
        PAY_ASSERT(def->buckets[i - 1] < def->buckets[i]);
    }
    for (size_t i = 0; i < count_labels(def); i++) {
        PAY_ASSERT(is_name(def->labels[i]));
    }
    for (int64_t scale = def->scale; scale > 1; scale /= 10) {
        PAY_ASSERT(scale % 10 == 0);
    }
}

/* Memory is short only at start-up, where an abort is the right end. */
static void *must(void *memory)
{
    PAY_ASSERT(memory != NULL);
    return memory;
}

static struct pay_metric *family_new(struct pay_metrics *metrics, const struct pay_metric_def *def)
{
    const size_t label_count = count_labels(def);
    const size_t series_max = label_count == 0       ? 0
                              : def->series_max == 0 ? PAY_METRIC_SERIES_DEFAULT
                                                     : def->series_max;
    size_t slot_count = 2;

    while (slot_count < 2 * series_max) {
        slot_count *= 2;
    }
    struct pay_metric *metric =
        must(pay_mem_new(1, sizeof *metric + slot_count * sizeof metric->slots[0]));
    metric->metrics = metrics;
    metric->def = def;
    metric->label_count = label_count;
    metric->series_max = series_max;
    metric->slot_count = slot_count;
    metric->other = must(pay_mem_new(1, sizeof *metric->other));
    metric->other->def = def;
    atomic_store(&metric->other->is_used, label_count == 0); /* Without labels 0 is shown, too. */
    for (size_t i = 0; i < label_count; i++) {
        memcpy(metric->other->labels[i], "other", sizeof "other");
    }
    return metric;
}

struct pay_metric *pay_metrics_family(struct pay_metrics *metrics, const struct pay_metric_def *def)
{
    struct pay_metric *metric = NULL;

    pthread_mutex_lock(&metrics->lock);
    for (size_t i = 0; metric == NULL && i < metrics->family_count; i++) {
        if (metrics->families[i]->def == def) {
            metric = metrics->families[i];
        } else {
            PAY_ASSERT(strcmp(metrics->families[i]->def->name, def->name) != 0);
        }
    }
    if (metric == NULL) {
        check_def(def);
        PAY_ASSERT(metrics->family_count < PAY_METRICS_FAMILIES_MAX);
        metric = family_new(metrics, def);
        metrics->families[metrics->family_count++] = metric;
    }
    pthread_mutex_unlock(&metrics->lock);
    return metric;
}

/* Printable ASCII only: a label may stem from outside. */
static bool read_label(const char *value, char dst[LABEL_SIZE])
{
    const char *text = value == NULL ? "" : value;
    const size_t len = strnlen(text, LABEL_SIZE);

    if (len == LABEL_SIZE) {
        return false;
    }
    for (size_t i = 0; i <= len; i++) {
        dst[i] = text[i];
        if (text[i] != 0 && (text[i] < 0x20 || text[i] >= 0x7f)) {
            dst[i] = '_';
        }
    }
    return true;
}

struct wanted {
    char labels[PAY_METRIC_LABELS_MAX][LABEL_SIZE];
    uint64_t hash;
};

static bool read_labels(const struct pay_metric *metric, const char *const *values,
                        struct wanted *wanted)
{
    wanted->hash = PAY_FNV_START;
    for (size_t i = 0; i < metric->label_count; i++) {
        if (!read_label(values[i], wanted->labels[i])) {
            return false;
        }
        const struct pay_bytes bytes = {(const uint8_t *)wanted->labels[i],
                                        strlen(wanted->labels[i]) + 1};
        wanted->hash = pay_hash_fnv1a(wanted->hash, bytes);
    }
    return true;
}

static bool is_series(const struct pay_metric *metric, const struct pay_metric_series *series,
                      const struct wanted *wanted)
{
    for (size_t i = 0; i < metric->label_count; i++) {
        if (strcmp(series->labels[i], wanted->labels[i]) != 0) {
            return false;
        }
    }
    return true;
}

/* @return the series, or NULL with the free slot where it belongs. There is always a free one. */
static struct pay_metric_series *find(struct pay_metric *metric, const struct wanted *wanted,
                                      size_t *ret_slot)
{
    size_t slot = (size_t)wanted->hash & (metric->slot_count - 1);

    for (;;) {
        struct pay_metric_series *series =
            atomic_load_explicit(&metric->slots[slot], memory_order_acquire);
        if (series == NULL || is_series(metric, series, wanted)) {
            *ret_slot = slot;
            return series;
        }
        slot = (slot + 1) & (metric->slot_count - 1);
    }
}

/* @return NULL when memory is out: the caller falls back to "other". */
static struct pay_metric_series *series_new(const struct pay_metric *metric,
                                            const struct wanted *wanted)
{
    struct pay_metric_series *series = pay_mem_new(1, sizeof *series);

    if (series != NULL) {
        series->def = metric->def;
        atomic_store(&series->is_used, true);
        for (size_t i = 0; i < metric->label_count; i++) {
            memcpy(series->labels[i], wanted->labels[i], LABEL_SIZE);
        }
    }
    return series;
}

static struct pay_metric_series *add(struct pay_metric *metric, const struct wanted *wanted)
{
    size_t slot = 0;

    pthread_mutex_lock(&metric->metrics->lock);
    struct pay_metric_series *series = find(metric, wanted, &slot); /* Perhaps it came meanwhile. */
    if (series == NULL && metric->series_count < metric->series_max) {
        series = series_new(metric, wanted);
        metric->series_count += series != NULL ? 1 : 0;
        atomic_store_explicit(&metric->slots[slot], series, memory_order_release);
    }
    pthread_mutex_unlock(&metric->metrics->lock);
    return series;
}

struct pay_metric_series *pay_metric_with(struct pay_metric *metric, const char *const *values)
{
    struct wanted wanted = {.hash = 0};
    struct pay_metric_series *series = NULL;
    size_t slot = 0;

    if (metric == NULL) {
        return NULL;
    }
    if (metric->label_count > 0 && read_labels(metric, values, &wanted)) {
        series = find(metric, &wanted, &slot);
        series = series != NULL ? series : add(metric, &wanted);
    }
    if (series == NULL) {
        series = metric->other;
        atomic_store_explicit(&series->is_used, true, memory_order_relaxed);
    }
    return series;
}

void pay_series_add(struct pay_metric_series *series, int64_t n)
{
    if (series != NULL) {
        atomic_fetch_add_explicit(&series->value, n, memory_order_relaxed);
    }
}

void pay_series_set(struct pay_metric_series *series, int64_t value)
{
    if (series != NULL) {
        atomic_store_explicit(&series->value, value, memory_order_relaxed);
    }
}

void pay_series_observe(struct pay_metric_series *series, int64_t value)
{
    size_t at = 0;

    if (series == NULL) {
        return;
    }
    PAY_ASSERT(series->def->type == PAY_METRIC_HISTOGRAM);
    while (at < series->def->bucket_count && value > series->def->buckets[at]) {
        at++;
    }
    atomic_fetch_add_explicit(&series->buckets[at], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&series->value, value, memory_order_relaxed);
}

void pay_metric_add(struct pay_metric *metric, const char *const *values, int64_t n)
{
    pay_series_add(pay_metric_with(metric, values), n);
}

void pay_metric_set(struct pay_metric *metric, const char *const *values, int64_t value)
{
    pay_series_set(pay_metric_with(metric, values), value);
}

void pay_metric_observe(struct pay_metric *metric, const char *const *values, int64_t value)
{
    pay_series_observe(pay_metric_with(metric, values), value);
}

void pay_metrics_collector_add(struct pay_metrics *metrics, void (*collect)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&metrics->lock);
    PAY_ASSERT(metrics->collector_count < PAY_METRICS_COLLECTORS_MAX);
    metrics->collectors[metrics->collector_count++] = (struct collector){collect, ctx};
    pthread_mutex_unlock(&metrics->lock);
}

/* value / scale in decimal, exactly: scale is a power of ten. */
static void print_scaled(struct pay_buf *out, int64_t value, int64_t scale)
{
    if (scale <= 1) {
        pay_buf_printf(out, "%" PRId64, value);
        return;
    }
    const uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint64_t rest = magnitude % (uint64_t)scale;
    pay_buf_printf(out, "%s%" PRIu64, value < 0 ? "-" : "", magnitude / (uint64_t)scale);
    if (rest > 0) {
        pay_buf_add_char(out, '.');
    }
    for (uint64_t unit = (uint64_t)scale / 10; rest > 0; unit /= 10) {
        pay_buf_add_char(out, (char)('0' + rest / unit));
        rest %= unit;
    }
}

static void print_label(struct pay_buf *out, const char *name, const char *value, bool is_first)
{
    pay_buf_printf(out, "%s%s=\"", is_first ? "" : ",", name);
    for (const char *at = value; *at != 0; at++) {
        if (*at == '"' || *at == '\\') {
            pay_buf_add_char(out, '\\');
        }
        pay_buf_add_char(out, *at);
    }
    pay_buf_add_char(out, '"');
}

/* name_suffix{labels,le="..."} up to the space before the value. */
static void print_head(struct pay_buf *out, const struct pay_metric_series *series,
                       const char *suffix, const char *le)
{
    const struct pay_metric_def *def = series->def;
    const size_t count = count_labels(def);

    pay_buf_printf(out, "%s%s", def->name, suffix);
    if (count > 0 || le != NULL) {
        pay_buf_add_char(out, '{');
        for (size_t i = 0; i < count; i++) {
            print_label(out, def->labels[i], series->labels[i], i == 0);
        }
        if (le != NULL) {
            print_label(out, "le", le, count == 0);
        }
        pay_buf_add_char(out, '}');
    }
    pay_buf_add_char(out, ' ');
}

static void print_histogram(struct pay_buf *out, const struct pay_metric_series *series)
{
    const struct pay_metric_def *def = series->def;
    const int64_t sum = atomic_load_explicit(&series->value, memory_order_relaxed);
    uint64_t total = 0;

    for (size_t i = 0; i <= def->bucket_count; i++) {
        struct pay_buf le = pay_buf_make(64);
        if (i < def->bucket_count) {
            print_scaled(&le, def->buckets[i], def->scale);
        } else {
            pay_buf_add_c(&le, "+Inf");
        }
        total += atomic_load_explicit(&series->buckets[i], memory_order_relaxed);
        print_head(out, series, "_bucket", le.data == NULL ? "" : (const char *)le.data);
        pay_buf_printf(out, "%" PRIu64 "\n", total);
        pay_buf_free(&le);
    }
    print_head(out, series, "_sum", NULL);
    print_scaled(out, sum, def->scale);
    pay_buf_add_char(out, '\n');
    print_head(out, series, "_count", NULL);
    pay_buf_printf(out, "%" PRIu64 "\n", total); /* Of one reading: equal to the +Inf bucket. */
}

static void print_series(struct pay_buf *out, const struct pay_metric_series *series)
{
    if (series == NULL || !atomic_load_explicit(&series->is_used, memory_order_relaxed)) {
        return;
    }
    if (series->def->type == PAY_METRIC_HISTOGRAM) {
        print_histogram(out, series);
        return;
    }
    print_head(out, series, "", NULL);
    print_scaled(out, atomic_load_explicit(&series->value, memory_order_relaxed),
                 series->def->scale);
    pay_buf_add_char(out, '\n');
}

static const char *type_name(enum pay_metric_type type)
{
    static const char *const names[] = {
        [PAY_METRIC_COUNTER] = "counter",
        [PAY_METRIC_GAUGE] = "gauge",
        [PAY_METRIC_HISTOGRAM] = "histogram",
    };
    PAY_ASSERT((unsigned)type < PAY_METRIC_TYPE_COUNT);
    return names[type];
}

static void print_family(struct pay_buf *out, const struct pay_metric *metric)
{
    const struct pay_metric_def *def = metric->def;

    pay_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", def->name, def->help, def->name,
                   type_name(def->type));
    for (size_t i = 0; i < metric->slot_count; i++) {
        print_series(out, atomic_load_explicit(&metric->slots[i], memory_order_acquire));
    }
    print_series(out, metric->other);
}

void pay_metrics_print(struct pay_metrics *metrics, struct pay_buf *out)
{
    pthread_mutex_lock(&metrics->lock);
    const size_t collector_count = metrics->collector_count;
    pthread_mutex_unlock(&metrics->lock);
    for (size_t i = 0; i < collector_count; i++) { /* Without the lock: they make series. */
        metrics->collectors[i].collect(metrics->collectors[i].ctx);
    }
    pthread_mutex_lock(&metrics->lock);
    const size_t family_count = metrics->family_count;
    pthread_mutex_unlock(&metrics->lock);
    for (size_t i = 0; i < family_count; i++) { /* Families are only added. */
        print_family(out, metrics->families[i]);
    }
}

void pay_metrics_print_docs(const struct pay_metric_def *defs, size_t count, struct pay_buf *out)
{
    pay_buf_add_c(out, "| Metric | Type | Labels | Meaning |\n| --- | --- | --- | --- |\n");
    for (size_t i = 0; i < count; i++) {
        pay_buf_printf(out, "| `%s` | %s | ", defs[i].name, type_name(defs[i].type));
        for (size_t at = 0; at < count_labels(&defs[i]); at++) {
            pay_buf_printf(out, "%s`%s`", at == 0 ? "" : ", ", defs[i].labels[at]);
        }
        pay_buf_printf(out, " | %s |\n", defs[i].help);
    }
}
