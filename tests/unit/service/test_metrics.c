/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: the text form is what Prometheus reads, numbers are exact, label sets are bounded, and
 * updates from many threads are not lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/service/metrics.h"

static const int64_t bounds[] = {500, 1000000, 2500000};

static const struct pay_metric_def plain = {
    .name = "payfact_turns_total", .type = PAY_METRIC_COUNTER, .help = "Turns."};
static const struct pay_metric_def labelled = {.name = "payfact_inputs_total",
                                               .type = PAY_METRIC_COUNTER,
                                               .help = "Inputs.",
                                               .labels = {"source", "verdict"},
                                               .series_max = 3};
static const struct pay_metric_def gauge = {.name = "payfact_age_seconds",
                                            .type = PAY_METRIC_GAUGE,
                                            .help = "Age.",
                                            .labels = {"psp"},
                                            .scale = 1000};
static const struct pay_metric_def histogram = {.name = "payfact_decide_seconds",
                                                .type = PAY_METRIC_HISTOGRAM,
                                                .help = "Decisions.",
                                                .buckets = bounds,
                                                .bucket_count = 3,
                                                .scale = 1000000};

static int setup(void **state)
{
    *state = pay_metrics_new();
    return *state == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    *state = pay_metrics_free(*state);
    return 0;
}

static void expect(struct pay_metrics *metrics, const char *text)
{
    struct pay_buf out = pay_buf_make(1 << 20);

    pay_metrics_print(metrics, &out);
    if (out.data == NULL || strcmp((const char *)out.data, text) != 0) {
        print_error("got:\n%s", out.data == NULL ? "" : (const char *)out.data);
        pay_buf_free(&out);
        fail();
    }
    pay_buf_free(&out);
}

static void without_labels_zero_is_shown(void **state)
{
    struct pay_metric *metric = pay_metrics_family(*state, &plain);

    expect(*state, "# HELP payfact_turns_total Turns.\n# TYPE payfact_turns_total counter\n"
                   "payfact_turns_total 0\n");
    pay_metric_add(metric, NULL, 41);
    pay_series_add(pay_metric_with(metric, NULL), 1);
    assert_ptr_equal(pay_metrics_family(*state, &plain), metric);
    expect(*state, "# HELP payfact_turns_total Turns.\n# TYPE payfact_turns_total counter\n"
                   "payfact_turns_total 42\n");
}

static void gauges_are_exact_and_labels_escaped(void **state)
{
    struct pay_metric *metric = pay_metrics_family(*state, &gauge);
    static const char head[] =
        "# HELP payfact_age_seconds Age.\n# TYPE payfact_age_seconds gauge\npayfact_age_seconds";
    static const struct {
        int64_t value;
        const char *text;
    } rows[] = {{0, "0"},
                {1, "0.001"},
                {1000, "1"},
                {1500, "1.5"},
                {-1, "-0.001"},
                {-2050, "-2.05"},
                {INT64_MAX, "9223372036854775.807"},
                {INT64_MIN, "-9223372036854775.808"}};
    char want[256];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pay_metric_set(metric, (const char *const[]){"a\"\\\n\xc3z"}, rows[i].value);
        (void)snprintf(want, sizeof want, "%s{psp=\"a\\\"\\\\__z\"} %s\n", head, rows[i].text);
        expect(*state, want);
    }
}

static void histograms_are_cumulative(void **state)
{
    struct pay_metric *metric = pay_metrics_family(*state, &histogram);

    pay_metric_observe(metric, NULL, 500);
    pay_metric_observe(metric, NULL, 501);
    pay_metric_observe(metric, NULL, 2500001);
    expect(*state, "# HELP payfact_decide_seconds Decisions.\n"
                   "# TYPE payfact_decide_seconds histogram\n"
                   "payfact_decide_seconds_bucket{le=\"0.0005\"} 1\n"
                   "payfact_decide_seconds_bucket{le=\"1\"} 2\n"
                   "payfact_decide_seconds_bucket{le=\"2.5\"} 2\n"
                   "payfact_decide_seconds_bucket{le=\"+Inf\"} 3\n"
                   "payfact_decide_seconds_sum 2.501002\n"
                   "payfact_decide_seconds_count 3\n");
}

static void a_flood_of_labels_ends_in_other(void **state)
{
    struct pay_metric *metric = pay_metrics_family(*state, &labelled);
    char name[80];
    struct pay_buf out = pay_buf_make(1 << 20);
    size_t lines = 0;

    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "s%u", i);
        pay_metric_add(metric, (const char *const[]){name, "APPLIED"}, 1);
    }
    memset(name, 'x', PAY_METRIC_LABEL_BYTES_MAX + 1);
    name[PAY_METRIC_LABEL_BYTES_MAX + 1] = 0;
    pay_metric_add(metric, (const char *const[]){name, "APPLIED"}, 1);
    pay_metric_add(metric, (const char *const[]){"s1", "APPLIED"}, 1);
    pay_metrics_print(*state, &out);
    for (const char *at = (const char *)out.data; (at = strchr(at, '\n')) != NULL; at++) {
        lines++;
    }
    const bool has_other =
        strstr((const char *)out.data,
               "payfact_inputs_total{source=\"other\",verdict=\"other\"} 998\n") != NULL;
    const bool has_known =
        strstr((const char *)out.data, "{source=\"s1\",verdict=\"APPLIED\"} 2\n") != NULL;
    pay_buf_free(&out);
    assert_int_equal(lines, 2 + 3 + 1);
    assert_true(has_other);
    assert_true(has_known);
}

static void labels_are_not_mixed_up(void **state)
{
    struct pay_metric *metric = pay_metrics_family(*state, &labelled);

    assert_ptr_not_equal(pay_metric_with(metric, (const char *const[]){"a", "bc"}),
                         pay_metric_with(metric, (const char *const[]){"ab", "c"}));
    assert_ptr_equal(pay_metric_with(metric, (const char *const[]){"a", NULL}),
                     pay_metric_with(metric, (const char *const[]){"a", ""}));
}

static void *count(void *metric)
{
    static const char *const names[] = {"a", "b", "c", "d"};

    for (unsigned i = 0; i < 4000; i++) {
        pay_metric_add(metric, (const char *const[]){names[i % 4], "x"}, 1);
    }
    return NULL;
}

static void no_update_is_lost(void **state)
{
    struct pay_metric *metric = pay_metrics_family(*state, &labelled);
    pthread_t threads[4];
    struct pay_buf out = pay_buf_make(1 << 20);
    int64_t total = 0;

    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, count, metric), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    pay_metrics_print(*state, &out);
    for (const char *at = (const char *)out.data; (at = strstr(at, "\"} ")) != NULL; at += 3) {
        const char *end = strchr(at, '\n');
        int64_t value = 0;
        assert_true(pay_str_to_i64((struct pay_str){at + 3, (size_t)(end - at - 3)}, &value));
        assert_int_equal(value, 4000);
        total += value;
    }
    pay_buf_free(&out);
    assert_int_equal(total, 16000);
}

static void set_one(void *ctx)
{
    pay_metric_set(ctx, NULL, 7);
}

static void collectors_run_before(void **state)
{
    struct pay_metric *metric = pay_metrics_family(*state, &plain);

    pay_metrics_collector_add(*state, set_one, metric);
    expect(*state, "# HELP payfact_turns_total Turns.\n# TYPE payfact_turns_total counter\n"
                   "payfact_turns_total 7\n");
}

static void nothing_needs_a_registry(void **state)
{
    (void)state;
    pay_metric_add(NULL, NULL, 1);
    pay_metric_observe(NULL, NULL, 1);
    pay_series_set(NULL, 1);
    assert_null(pay_metric_with(NULL, NULL));
}

static void the_list_is_generated(void **state)
{
    (void)state;
    struct pay_buf out = pay_buf_make(4096);

    pay_metrics_print_docs(&labelled, 1, &out);
    assert_string_equal((const char *)out.data,
                        "| Metric | Type | Labels | Meaning |\n| --- | --- | --- | --- |\n"
                        "| `payfact_inputs_total` | counter | `source`, `verdict` | Inputs. |\n");
    pay_buf_free(&out);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(without_labels_zero_is_shown), T(gauges_are_exact_and_labels_escaped),
        T(histograms_are_cumulative),    T(a_flood_of_labels_ends_in_other),
        T(labels_are_not_mixed_up),      T(no_update_is_lost),
        T(collectors_run_before),        T(nothing_needs_a_registry),
        T(the_list_is_generated),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
