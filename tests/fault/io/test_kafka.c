/* SPDX-License-Identifier: Apache-2.0 */
/* Producer and consumer against librdkafka's mock cluster, which can be told to fail. */
#include "common/io/kafka/kafka_admin.h"
#include "common/io/kafka/kafka_consumer.h"
#include "common/io/kafka/kafka_producer.h"

#include "common/base/clock.h"
#include "common/base/hash.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DEADLINE_US INT64_C(40000000)
#define PARTITIONS 4
#define RECORDS_MAX 512
#define API_PRODUCE 0 /* Kafka protocol's key. */
#define API_OFFSET_COMMIT 8

struct seen {
    atomic_int calls[RECORDS_MAX]; /* Reports per tag. */
    struct pay_kafka_report last[RECORDS_MAX];
    atomic_int ok;
    atomic_int bad;
    atomic_int ends;
};

struct world {
    rd_kafka_t *host; /* The cluster hangs on it; it connects nowhere. */
    rd_kafka_mock_cluster_t *cluster;
    const char *bootstrap;
    struct pay_kafka_producer *producer;
    struct pay_kafka_consumer *consumers[2];
    struct seen seen;
    struct pay_err err;
    char topic[32];
    char group[32];
};

static atomic_int test_number;

static int setup(void **state)
{
    char why[256];
    struct world *world = calloc(1, sizeof *world);
    int number = atomic_fetch_add(&test_number, 1);

    *state = world;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    (void)rd_kafka_conf_set(conf, "log_level", "3", NULL, 0);
    world->host = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    world->cluster = rd_kafka_mock_cluster_new(world->host, 1);
    world->bootstrap = rd_kafka_mock_cluster_bootstraps(world->cluster);
    (void)snprintf(world->topic, sizeof world->topic, "t%d", number);
    (void)snprintf(world->group, sizeof world->group, "g%d", number);
    return rd_kafka_mock_topic_create(world->cluster, world->topic, PARTITIONS, 1) == 0 ? 0 : 1;
}

static int teardown(void **state)
{
    struct world *world = *state;

    pay_kafka_producer_free(world->producer);
    pay_kafka_consumer_free(world->consumers[0]);
    pay_kafka_consumer_free(world->consumers[1]);
    rd_kafka_mock_cluster_destroy(world->cluster);
    rd_kafka_destroy(world->host);
    free(world);
    return 0;
}

static void must(struct world *world, enum pay_status status)
{
    if (status != PAY_OK) {
        fail_msg("%s: %s: %s", pay_status_name(status), world->err.op, world->err.text);
    }
}

/* ---- producer ---- */

static void on_report(void *ctx, const struct pay_kafka_report *report)
{
    struct world *world = ctx;
    size_t tag = (size_t)(uintptr_t)report->tag;

    atomic_fetch_add(&world->seen.calls[tag], 1);
    world->seen.last[tag] = *report;
    atomic_fetch_add(report->status == PAY_OK ? &world->seen.ok : &world->seen.bad, 1);
}

static void on_reports_end(void *ctx)
{
    struct world *world = ctx;

    atomic_fetch_add(&world->seen.ends, 1);
}

static struct pay_kafka_producer_options producer_options(struct world *world)
{
    return (struct pay_kafka_producer_options){
        .conf = {.bootstrap = world->bootstrap, .client_id = "test"},
        .on_report = on_report,
        .on_reports_end = on_reports_end,
        .ctx = world,
    };
}

static void open_producer(struct world *world, const struct pay_kafka_producer_options *options)
{
    must(world, pay_kafka_producer_new(options, &world->producer, &world->err));
}

static void key_of(size_t tag, char dst[16])
{
    (void)snprintf(dst, 16, "key-%zu", tag);
}

static enum pay_status produce(struct world *world, size_t tag)
{
    char key[16];

    key_of(tag, key);
    const struct pay_kafka_record record = {
        .topic = world->topic,
        .key = pay_str_of(key),
        .value = {(const uint8_t *)key, strlen(key)},
        .tag = (void *)(uintptr_t)tag, // NOLINT(performance-no-int-to-ptr)
    };
    return pay_kafka_produce(world->producer, &record, &world->err);
}

static void poll_until_reported(struct world *world, int count)
{
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;

    while (atomic_load(&world->seen.ok) + atomic_load(&world->seen.bad) < count &&
           pay_clock_mono_us() < end_us) {
        (void)pay_kafka_producer_poll(world->producer, 100);
    }
    assert_int_equal(atomic_load(&world->seen.ok) + atomic_load(&world->seen.bad), count);
}

static void produce_all(struct world *world, size_t count)
{
    struct pay_kafka_producer_options options = producer_options(world);

    open_producer(world, &options);
    for (size_t i = 0; i < count; i++) {
        must(world, produce(world, i));
    }
    poll_until_reported(world, (int)count);
    assert_int_equal(atomic_load(&world->seen.ok), count);
}

static void each_reported_once(struct world *world, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(atomic_load(&world->seen.calls[i]), 1);
    }
}

static void delivered_to_the_partition_of_its_key(void **state)
{
    struct world *world = *state;
    int32_t partitions = 0;

    produce_all(world, 50);
    each_reported_once(world, 50);
    assert_true(atomic_load(&world->seen.ends) >= 1 && atomic_load(&world->seen.ends) <= 50);
    for (size_t i = 0; i < 50; i++) {
        char key[16];
        key_of(i, key);
        assert_int_equal(world->seen.last[i].partition,
                         pay_hash_partition(pay_str_of(key), PARTITIONS));
        assert_true(world->seen.last[i].offset >= 0);
        assert_true(world->seen.last[i].latency_us > 0);
        assert_string_equal(world->seen.last[i].reason, "");
    }
    must(world, pay_kafka_producer_ping(world->producer, 10000, &world->err));
    must(world, pay_kafka_producer_partitions(world->producer, world->topic, 10000, &partitions,
                                              &world->err));
    assert_int_equal(partitions, PARTITIONS);
    assert_false(pay_kafka_producer_fatal(world->producer, &world->err));
}

/* ---- consumer ---- */

static struct pay_kafka_consumer_options consumer_options(struct world *world,
                                                          const char *const *topic)
{
    return (struct pay_kafka_consumer_options){
        .conf = {.bootstrap = world->bootstrap, .client_id = "test"},
        .group_id = world->group,
        .topics = topic,
        .topic_count = 1,
        .session_timeout_ms = 6000,
        .ctx = world,
    };
}

static struct pay_kafka_consumer *open_consumer(struct world *world, int at)
{
    const char *topic = world->topic;
    struct pay_kafka_consumer_options options = consumer_options(world, &topic);

    must(world, pay_kafka_consumer_new(&options, &world->consumers[at], &world->err));
    return world->consumers[at];
}

static void close_consumer(struct world *world, int at)
{
    must(world, pay_kafka_consumer_close(world->consumers[at], 20000, &world->err));
    world->consumers[at] = pay_kafka_consumer_free(world->consumers[at]);
}

/* Poll up to @p max; how often each record was seen is counted by its value. @return number polled.
 */
static size_t poll_some(struct world *world, struct pay_kafka_consumer *consumer, size_t max,
                        int times[RECORDS_MAX], bool store)
{
    struct pay_kafka_msg msgs[64];
    size_t count = 0;
    enum pay_status status =
        pay_kafka_consumer_poll(consumer, max < 64 ? max : 64, 100, msgs, &count, &world->err);

    assert_true(status == PAY_OK || status == PAY_RETRY);
    for (size_t i = 0; i < count; i++) {
        int tag = 0;
        char text[32] = "";
        memcpy(text, msgs[i].value.ptr, msgs[i].value.len);
        assert_int_equal(sscanf(text, "key-%d", &tag), 1);
        assert_true(tag >= 0 && tag < RECORDS_MAX);
        times[tag]++;
        if (store) {
            assert_true(pay_kafka_consumer_store(consumer, msgs[i].topic, msgs[i].partition,
                                                 msgs[i].offset + 1));
        }
        pay_kafka_msg_release(&msgs[i]);
    }
    return count;
}

static void poll_until(struct world *world, struct pay_kafka_consumer *consumer, size_t want,
                       int times[RECORDS_MAX], bool store)
{
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;
    size_t got = 0;

    while (got < want && pay_clock_mono_us() < end_us) {
        got += poll_some(world, consumer, want - got, times, store);
    }
    assert_int_equal(got, want);
}

static void all_seen(const int *times, size_t count, int want)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(times[i], want);
    }
}

static size_t count_seen(const int *times, size_t count)
{
    size_t seen = 0;

    for (size_t i = 0; i < count; i++) {
        seen += times[i] > 0 ? 1 : 0;
    }
    return seen;
}

static void stored_offsets_are_honoured_after_a_restart(void **state)
{
    struct world *world = *state;
    int times[RECORDS_MAX] = {0};
    struct pay_kafka_partition_state states[PARTITIONS + 1];

    produce_all(world, 100);
    struct pay_kafka_consumer *consumer = open_consumer(world, 0);
    assert_false(pay_kafka_consumer_joined(consumer));
    poll_until(world, consumer, 100, times, true);
    all_seen(times, 100, 1);
    assert_true(pay_kafka_consumer_joined(consumer));
    assert_int_equal(pay_kafka_consumer_assigned(consumer), PARTITIONS);
    assert_int_equal(pay_kafka_consumer_state(consumer, states, PARTITIONS + 1), PARTITIONS);
    for (size_t i = 0; i < PARTITIONS; i++) {
        assert_int_equal(states[i].lag_records, 0);
        assert_int_equal(states[i].stored, states[i].position);
        assert_int_equal(states[i].high, states[i].position);
    }
    assert_int_equal(pay_kafka_consumer_lag_records(consumer), 0);
    must(world, pay_kafka_consumer_commit(consumer, true, &world->err));
    close_consumer(world, 0);

    /* Ten more, of which the next member sees only those; it does not store, so they come again. */
    for (size_t i = 100; i < 110; i++) {
        must(world, produce(world, i));
    }
    poll_until_reported(world, 110);
    consumer = open_consumer(world, 0);
    poll_until(world, consumer, 10, times, false);
    close_consumer(world, 0);
    consumer = open_consumer(world, 0);
    poll_until(world, consumer, 10, times, true);
    close_consumer(world, 0); /* Commits what is stored. */
    all_seen(times, 100, 1);
    all_seen(times + 100, 10, 2);
    consumer = open_consumer(world, 0);
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;
    while (!pay_kafka_consumer_joined(consumer) && pay_clock_mono_us() < end_us) {
        assert_int_equal(poll_some(world, consumer, 1, times, false), 0);
    }
    assert_int_equal(poll_some(world, consumer, 1, times, false), 0);
}

static void broker_errors_are_ridden_out_without_doubles(void **state)
{
    struct world *world = *state;
    int times[RECORDS_MAX] = {0};

    rd_kafka_mock_push_request_errors(world->cluster, API_PRODUCE, 3,
                                      RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
                                      RD_KAFKA_RESP_ERR__TRANSPORT, /* Drops the connection. */
                                      RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
    produce_all(world, 20);
    each_reported_once(world, 20);
    poll_until(world, open_consumer(world, 0), 20, times, false);
    all_seen(times, 20, 1);
    assert_int_equal(poll_some(world, world->consumers[0], 1, times, false), 0);
}

/* Another tag above 0 whose key is of this one's partition. */
static size_t neighbour_of(size_t tag)
{
    char key[16];

    key_of(tag, key);
    const uint32_t wanted = pay_hash_partition(pay_str_of(key), PARTITIONS);
    for (size_t other = 1; other < tag; other++) {
        key_of(other, key);
        if (pay_hash_partition(pay_str_of(key), PARTITIONS) == wanted) {
            return other;
        }
    }
    fail_msg("no key is of that partition");
    return 0;
}

/* A topic that was just created, or a leader that moves, refuses a producer's first request, and
 * would take the next one if it were under way already, though its sequence does not begin at 0. */
static void K11_what_was_refused_is_not_delivered_by_what_follows(void **state)
{
    struct world *world = *state;
    int times[RECORDS_MAX] = {0};
    const size_t first = RECORDS_MAX - 1;
    const size_t second = neighbour_of(first);

    produce_all(world,
                1); /* Connected, and the producer has its id: the next one leaves at once. */
    rd_kafka_mock_broker_push_request_error_rtts(world->cluster, 1, API_PRODUCE, 2,
                                                 RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, 3000,
                                                 RD_KAFKA_RESP_ERR_NO_ERROR, 3000);
    must(world, produce(world, first));
    int64_t end_us = pay_clock_mono_us() + INT64_C(500000);
    while (pay_clock_mono_us() < end_us) { /* It leaves alone; its answer takes longer. */
        (void)pay_kafka_producer_poll(world->producer, 100);
    }
    must(world, produce(world, second));
    poll_until_reported(world, 3);
    assert_int_equal(atomic_load(&world->seen.ok), 3);
    poll_until(world, open_consumer(world, 0), 3, times, false);
    assert_true(times[0] == 1 && times[first] == 1 && times[second] == 1);
}

static void only_the_record_itself_is_rejected(void **state)
{
    struct world *world = *state;
    struct pay_kafka_producer_options options = producer_options(world);
    static uint8_t big[4096];
    const struct pay_kafka_record too_large = {
        .topic = world->topic, .value = {big, sizeof big}, .tag = NULL};

    options.message_bytes_max = 2000;
    open_producer(world, &options);
    assert_int_equal(pay_kafka_produce(world->producer, &too_large, &world->err), PAY_REJECT);
    assert_string_equal(world->err.text, "MSG_SIZE_TOO_LARGE");
    rd_kafka_mock_push_request_errors(world->cluster, API_PRODUCE, 1,
                                      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    must(world, produce(world, 1));
    poll_until_reported(world, 1);
    assert_int_equal(world->seen.last[1].status, PAY_RETRY); /* It says nothing of the record. */
    assert_string_equal(world->seen.last[1].reason, "TOPIC_AUTHORIZATION_FAILED");
    assert_int_equal(world->seen.last[1].persisted, PAY_KAFKA_NOT_PERSISTED);
    assert_int_equal(atomic_load(&world->seen.calls[0]), 0); /* A refused call has no report. */
}

static void full_queue_is_retry_and_close_reports_the_rest(void **state)
{
    struct world *world = *state;
    struct pay_kafka_producer_options options = producer_options(world);
    size_t taken = 0;

    rd_kafka_mock_broker_set_down(world->cluster, 1);
    options.queue_records_max = 10;
    open_producer(world, &options);
    while (taken < 100 && produce(world, taken) == PAY_OK) {
        taken++;
    }
    assert_int_equal(taken, 10);
    assert_string_equal(world->err.text, "_QUEUE_FULL");
    assert_int_equal(pay_kafka_producer_pending(world->producer), 10);
    assert_int_equal(pay_kafka_producer_close(world->producer, 50), 10);
    each_reported_once(world, 10);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(world->seen.last[i].status, PAY_RETRY);
        assert_int_equal(world->seen.last[i].offset, -1);
    }
    assert_int_equal(produce(world, 11), PAY_RETRY); /* Closed: refused, no report. */
    world->producer = pay_kafka_producer_free(world->producer);
    assert_int_equal(atomic_load(&world->seen.calls[11]), 0);
    each_reported_once(world, 10);
}

static void a_report_comes_within_the_message_timeout(void **state)
{
    struct world *world = *state;
    struct pay_kafka_producer_options options = producer_options(world);
    struct pay_err err = {0};

    rd_kafka_mock_broker_set_down(world->cluster, 1);
    options.message_timeout_ms = 300;
    open_producer(world, &options);
    must(world, produce(world, 0));
    poll_until_reported(world, 1);
    assert_int_equal(world->seen.last[0].status, PAY_RETRY);
    assert_string_equal(world->seen.last[0].reason, "_MSG_TIMED_OUT");
    assert_int_equal(pay_kafka_producer_ping(world->producer, 200, &world->err), PAY_RETRY);
    assert_true(pay_kafka_producer_take_error(world->producer, &err));
    assert_int_equal(err.status, PAY_RETRY);
    assert_false(pay_kafka_producer_take_error(world->producer, &err));
}

static void sent_but_unanswered_is_unknown(void **state)
{
    struct world *world = *state;

    produce_all(world, 1); /* Connected, and the producer has its id. */
    rd_kafka_mock_broker_set_rtt(world->cluster, 1, 30000);
    must(world, produce(world, 1));
    int64_t end_us = pay_clock_mono_us() + INT64_C(500000);
    while (pay_clock_mono_us() < end_us) { /* Nothing says that it left; half a second is plenty. */
        (void)pay_kafka_producer_poll(world->producer, 100);
    }
    assert_int_equal(pay_kafka_producer_close(world->producer, 50), 1);
    each_reported_once(world, 2);
    assert_int_equal(world->seen.last[1].status, PAY_UNKNOWN);
    assert_int_equal(world->seen.last[1].persisted, PAY_KAFKA_POSSIBLY_PERSISTED);
    rd_kafka_mock_broker_set_rtt(world->cluster, 1, 0);
}

static void a_broken_sequence_is_fatal_and_a_new_producer_goes_on(void **state)
{
    struct world *world = *state;
    struct pay_kafka_producer_options options = producer_options(world);

    produce_all(world, 1);
    rd_kafka_mock_push_request_errors(world->cluster, API_PRODUCE, 1,
                                      RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    must(world, produce(world, 1));
    poll_until_reported(world, 2);
    assert_int_equal(world->seen.last[1].status, PAY_FATAL);
    assert_true(pay_kafka_producer_fatal(world->producer, &world->err));
    assert_int_equal(world->err.status, PAY_FATAL);
    assert_int_equal(produce(world, 2), PAY_FATAL);
    world->producer = pay_kafka_producer_free(world->producer);
    each_reported_once(world, 2);
    assert_int_equal(atomic_load(&world->seen.calls[2]), 0);

    open_producer(world, &options);
    must(world, produce(world, 3));
    poll_until_reported(world, 3);
    assert_int_equal(world->seen.last[3].status, PAY_OK);
}

static void *produce_half(void *arg)
{
    struct world *world = arg;
    struct pay_err err;

    for (size_t i = 100; i < 200; i++) {
        char key[16];
        key_of(i, key);
        const struct pay_kafka_record record = {
            .topic = world->topic,
            .key = pay_str_of(key),
            .value = {(const uint8_t *)key, strlen(key)},
            .tag = (void *)(uintptr_t)i, // NOLINT(performance-no-int-to-ptr)
        };
        if (pay_kafka_produce(world->producer, &record, &err) != PAY_OK) {
            return world; /* Not NULL: failed. */
        }
    }
    return NULL;
}

static void own_thread_serves_several_threads(void **state)
{
    struct world *world = *state;
    struct pay_kafka_producer_options options = producer_options(world);
    pthread_t thread;
    void *failed = NULL;

    options.own_thread = true;
    open_producer(world, &options);
    assert_int_equal(pthread_create(&thread, NULL, produce_half, world), 0);
    for (size_t i = 0; i < 100; i++) {
        must(world, produce(world, i));
    }
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    assert_int_equal(pay_kafka_producer_close(world->producer, 20000), 0);
    assert_int_equal(atomic_load(&world->seen.ok), 200);
    each_reported_once(world, 200);
}

static void headers_and_null_values_pass(void **state)
{
    struct world *world = *state;
    struct pay_kafka_producer_options options = producer_options(world);
    struct pay_kafka_headers headers = {0};
    struct pay_kafka_msg msg = {0};
    size_t count = 0;
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;

    assert_true(pay_kafka_headers_add_str(&headers, "a", PAY_STR("1")));
    assert_true(pay_kafka_headers_add_str(&headers, "empty", PAY_STR("")));
    assert_true(pay_kafka_headers_add(&headers, "null", (struct pay_bytes){0}));
    const struct pay_kafka_record record = {
        .topic = world->topic, .key = PAY_STR("k"), .headers = &headers};
    open_producer(world, &options);
    must(world, pay_kafka_produce(world->producer, &record, &world->err));
    poll_until_reported(world, 1);
    struct pay_kafka_consumer *consumer = open_consumer(world, 0);
    while (count == 0 && pay_clock_mono_us() < end_us) {
        must(world, pay_kafka_consumer_poll(consumer, 1, 100, &msg, &count, &world->err));
    }
    assert_int_equal(count, 1);
    assert_string_equal(msg.topic, world->topic);
    assert_true(pay_bytes_eq(msg.key, (struct pay_bytes){(const uint8_t *)"k", 1}));
    assert_null(msg.value.ptr);
    assert_int_equal(msg.headers.count, 3);
    assert_false(msg.headers.over);
    assert_true(pay_str_eq_c(pay_kafka_headers_get_str(&msg.headers, "a"), "1"));
    assert_int_equal(pay_kafka_headers_get(&msg.headers, "empty").len, 0);
    assert_non_null(pay_kafka_headers_get(&msg.headers, "empty").ptr);
    assert_null(pay_kafka_headers_get(&msg.headers, "null").ptr);
    pay_kafka_msg_release(&msg);
    pay_kafka_msg_release(&msg); /* Copes with an empty one. */
}

static void pause_holds_and_resume_loses_nothing(void **state)
{
    struct world *world = *state;
    int times[RECORDS_MAX] = {0};

    produce_all(world, 60);
    struct pay_kafka_consumer *consumer = open_consumer(world, 0);
    poll_until(world, consumer, 20, times, true);
    must(world, pay_kafka_consumer_pause(consumer, &world->err));
    assert_true(pay_kafka_consumer_paused(consumer));
    for (int i = 0; i < 5; i++) {
        assert_int_equal(poll_some(world, consumer, 64, times, true), 0);
    }
    must(world, pay_kafka_consumer_resume(consumer, &world->err));
    poll_until(world, consumer, 40, times, true);
    all_seen(times, 60, 1);
}

/* The assignment comes while paused: nothing may be fetched until the resume. */
static void paused_before_the_assignment(void **state)
{
    struct world *world = *state;
    int times[RECORDS_MAX] = {0};
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;

    produce_all(world, 10);
    struct pay_kafka_consumer *consumer = open_consumer(world, 0);
    must(world, pay_kafka_consumer_pause(consumer, &world->err));
    while (!pay_kafka_consumer_joined(consumer) && pay_clock_mono_us() < end_us) {
        assert_int_equal(poll_some(world, consumer, 64, times, true), 0);
    }
    for (int i = 0; i < 5; i++) {
        assert_int_equal(poll_some(world, consumer, 64, times, true), 0);
    }
    must(world, pay_kafka_consumer_resume(consumer, &world->err));
    poll_until(world, consumer, 10, times, true);
    all_seen(times, 10, 1);
}

static void rewind_polls_again_from_what_is_stored(void **state)
{
    struct world *world = *state;
    int times[RECORDS_MAX] = {0};

    produce_all(world, 60);
    struct pay_kafka_consumer *consumer = open_consumer(world, 0);
    poll_until(world, consumer, 60, times, false);
    must(world, pay_kafka_consumer_rewind(consumer, NULL, 0, 10000, &world->err));
    poll_until(world, consumer, 60, times, true); /* From the first: nothing was stored. */
    all_seen(times, 60, 2);
    for (size_t i = 60; i < 70; i++) {
        must(world, produce(world, i));
    }
    poll_until_reported(world, 70);
    poll_until(world, consumer, 10, times, false);
    must(world, pay_kafka_consumer_rewind(consumer, NULL, 0, 10000, &world->err));
    poll_until(world, consumer, 10, times, true);
    all_seen(times, 60, 2);
    all_seen(times + 60, 10, 2);
    /* One partition alone; records in hand stay valid. */
    assert_false(pay_kafka_consumer_store(consumer, world->topic, 0, 0));
    assert_false(pay_kafka_consumer_store(consumer, world->topic, PARTITIONS, 1));
    must(world, pay_kafka_consumer_rewind(consumer, world->topic, 0, 10000, &world->err));
    assert_int_equal(poll_some(world, consumer, 1, times, false), 0);
}

static void store_positions(struct world *world, struct pay_kafka_consumer *consumer)
{
    struct pay_kafka_partition_state states[PARTITIONS];
    size_t count = pay_kafka_consumer_state(consumer, states, PARTITIONS);

    for (size_t i = 0; i < count; i++) {
        if (states[i].position >= 0) {
            assert_true(pay_kafka_consumer_store(consumer, world->topic, states[i].partition,
                                                 states[i].position));
        }
    }
}

static void a_refused_commit_goes_again(void **state)
{
    struct world *world = *state;
    int times[RECORDS_MAX] = {0};

    produce_all(world, 10);
    struct pay_kafka_consumer *consumer = open_consumer(world, 0);
    poll_until(world, consumer, 10, times, false);
    rd_kafka_mock_push_request_errors(world->cluster, API_OFFSET_COMMIT, 1,
                                      RD_KAFKA_RESP_ERR_INVALID_COMMIT_OFFSET_SIZE);
    store_positions(world,
                    consumer); /* Not while polling: poll commits what is stored by itself. */
    assert_int_equal(pay_kafka_consumer_commit(consumer, true, &world->err), PAY_RETRY);
    must(world, pay_kafka_consumer_commit(consumer, true, &world->err));
    must(world, pay_kafka_consumer_commit(consumer, true, &world->err)); /* Nothing to do. */
    consumer = NULL;
    world->consumers[0] = pay_kafka_consumer_free(world->consumers[0]); /* As a crash: no leave. */
    consumer = open_consumer(world, 0);
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;
    while (!pay_kafka_consumer_joined(consumer) && pay_clock_mono_us() < end_us) {
        assert_int_equal(poll_some(world, consumer, 10, times, false), 0);
    }
    assert_true(pay_kafka_consumer_joined(consumer));
    assert_int_equal(poll_some(world, consumer, 10, times, false), 0);
}

/* ---- rebalance ---- */

struct member {
    struct world *world;
    struct pay_kafka_consumer *consumer;
    struct pay_kafka_msg held[64]; /* In flight: finished only when the partition is taken away. */
    size_t held_count;
    size_t assigned;
    size_t revoked;
    size_t stored_in_revoke;
};

static void member_assigned(void *ctx, const struct pay_kafka_partition *parts, size_t count)
{
    struct member *member = ctx;

    (void)parts;
    member->assigned += count;
}

static void member_revoked(void *ctx, const struct pay_kafka_partition *parts, size_t count,
                           bool lost)
{
    struct member *member = ctx;

    (void)parts;
    assert_false(lost);
    member->revoked += count;
    for (size_t i = 0; i < member->held_count; i++) {
        struct pay_kafka_msg *msg = &member->held[i];
        member->stored_in_revoke +=
            pay_kafka_consumer_store(member->consumer, msg->topic, msg->partition, msg->offset + 1)
                ? 1
                : 0;
        pay_kafka_msg_release(msg);
    }
    member->held_count = 0;
}

static void open_member(struct world *world, struct member *member, int at)
{
    const char *topic = world->topic;
    struct pay_kafka_consumer_options options = consumer_options(world, &topic);

    *member = (struct member){.world = world};
    options.on_assigned = member_assigned;
    options.on_revoked = member_revoked;
    options.ctx = member;
    must(world, pay_kafka_consumer_new(&options, &world->consumers[at], &world->err));
    member->consumer = world->consumers[at];
}

static void two_members_share_and_finish_before_they_give_back(void **state)
{
    struct world *world = *state;
    struct member first;
    struct member second;
    int times[RECORDS_MAX] = {0};
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;

    produce_all(world, 40);
    open_member(world, &first, 0);
    while (first.held_count < 40 && pay_clock_mono_us() < end_us) {
        size_t count = 0;
        must(world, pay_kafka_consumer_poll(first.consumer, 40 - first.held_count, 100,
                                            first.held + first.held_count, &count, &world->err));
        first.held_count += count;
    }
    assert_int_equal(first.held_count, 40);
    assert_int_equal(first.assigned, PARTITIONS);

    /* The mock refuses commits during a rebalance, so the 40 may come again; a real broker takes
     * them. */
    open_member(world, &second, 1);
    while ((pay_kafka_consumer_assigned(first.consumer) != PARTITIONS / 2 ||
            pay_kafka_consumer_assigned(second.consumer) != PARTITIONS / 2) &&
           pay_clock_mono_us() < end_us) {
        (void)poll_some(world, first.consumer, 1, times, true);
        (void)poll_some(world, second.consumer, 1, times, true);
    }
    assert_int_equal(pay_kafka_consumer_assigned(first.consumer), PARTITIONS / 2);
    assert_int_equal(pay_kafka_consumer_assigned(second.consumer), PARTITIONS / 2);
    assert_int_equal(first.stored_in_revoke, 40);
    assert_true(first.revoked >= PARTITIONS / 2);
    for (size_t i = 40; i < 120; i++) {
        must(world, produce(world, i));
    }
    poll_until_reported(world, 120);
    size_t got[2] = {0, 0};
    while (count_seen(times + 40, 80) < 80 && pay_clock_mono_us() < end_us) {
        got[0] += poll_some(world, first.consumer, 64, times, true);
        got[1] += poll_some(world, second.consumer, 64, times, true);
    }
    assert_true(got[0] > 0 && got[1] > 0);
    all_seen(times + 40, 80, 1);

    /* The second leaves: the first has everything again, and what both committed does not come
     * again. */
    must(world, pay_kafka_consumer_commit(first.consumer, true, &world->err));
    close_consumer(world, 1);
    while (pay_kafka_consumer_assigned(first.consumer) != PARTITIONS &&
           pay_clock_mono_us() < end_us) {
        assert_int_equal(poll_some(world, first.consumer, 1, times, true), 0);
    }
    assert_int_equal(pay_kafka_consumer_assigned(first.consumer), PARTITIONS);
    assert_int_equal(poll_some(world, first.consumer, 1, times, true), 0);
    all_seen(times + 40, 80, 1);
}

/* Revoked while paused, resumed with nothing assigned, assigned again: librdkafka would keep the
 * pause of a partition over its revocation, and nobody would ever end it. */
static void a_pause_does_not_outlive_its_assignment(void **state)
{
    struct world *world = *state;
    struct member first;
    struct member second;
    struct pay_kafka_msg none[1];
    size_t count = 0;
    int times[RECORDS_MAX] = {0};
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;

    produce_all(world, 40);
    open_member(world, &first, 0);
    poll_until(world, first.consumer, 40, times, true);
    must(world, pay_kafka_consumer_pause(first.consumer, &world->err));
    open_member(world, &second, 1);
    while (first.revoked == 0 && pay_clock_mono_us() < end_us) {
        const enum pay_status status =
            pay_kafka_consumer_poll(first.consumer, 1, 1, none, &count, &world->err);
        assert_true(status == PAY_OK || status == PAY_RETRY); /* The mock refuses the commit. */
        assert_int_equal(count, 0);
    }
    assert_int_equal(pay_kafka_consumer_assigned(first.consumer), 0);
    must(world, pay_kafka_consumer_resume(first.consumer, &world->err));
    while ((pay_kafka_consumer_assigned(first.consumer) != PARTITIONS / 2 ||
            pay_kafka_consumer_assigned(second.consumer) != PARTITIONS / 2) &&
           pay_clock_mono_us() < end_us) {
        (void)poll_some(world, first.consumer, 1, times, true);
        (void)poll_some(world, second.consumer, 1, times, true);
    }
    for (size_t i = 40; i < 120; i++) {
        must(world, produce(world, i));
    }
    poll_until_reported(world, 120);
    while (count_seen(times + 40, 80) < 80 && pay_clock_mono_us() < end_us) {
        (void)poll_some(world, first.consumer, 64, times, true);
        (void)poll_some(world, second.consumer, 64, times, true);
    }
    all_seen(times + 40, 80, 1);
}

static void an_outage_is_retry_and_mends(void **state)
{
    struct world *world = *state;
    int times[RECORDS_MAX] = {0};
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;
    enum pay_status status = PAY_OK;

    produce_all(world, 10);
    struct pay_kafka_consumer *consumer = open_consumer(world, 0);
    poll_until(world, consumer, 10, times, true);
    rd_kafka_mock_broker_set_down(world->cluster, 1);
    while (status == PAY_OK && pay_clock_mono_us() < end_us) {
        struct pay_kafka_msg msg;
        size_t count = 0;
        status = pay_kafka_consumer_poll(consumer, 1, 100, &msg, &count, &world->err);
        assert_int_equal(count, 0);
    }
    assert_int_equal(status, PAY_RETRY);
    rd_kafka_mock_broker_set_up(world->cluster, 1);
    must(world, produce(world, 10));
    poll_until_reported(world, 11);
    poll_until(world, consumer, 1, times + 0, true);
    assert_int_equal(times[10], 1);
}

static void admin_describes_and_refuses_another_count(void **state)
{
    struct world *world = *state;
    const struct pay_kafka_conf conf = {.bootstrap = world->bootstrap};
    struct pay_kafka_topic_spec spec = {
        .name = world->topic, .partitions = PARTITIONS, .replication = -1};
    struct pay_kafka_topic_info info = {0};
    struct pay_kafka_admin *admin = NULL;
    struct pay_buf report = pay_buf_make(4096);

    must(world, pay_kafka_admin_new(&conf, &admin, &world->err));
    must(world, pay_kafka_admin_describe(admin, world->topic, 10000, &info, &world->err));
    assert_true(info.exists);
    assert_int_equal(info.partitions, PARTITIONS);
    assert_int_equal(info.leaderless, 0);
    must(world, pay_kafka_admin_describe(admin, "absent", 10000, &info, &world->err));
    assert_false(info.exists);
    must(world, pay_kafka_admin_ensure(admin, &spec, 10000, &report, &world->err));
    assert_int_equal(report.len, 0);
    spec.partitions = PARTITIONS + 1;
    spec.replication = 3;
    assert_int_equal(pay_kafka_admin_ensure(admin, &spec, 10000, &report, &world->err), PAY_REJECT);
    assert_non_null(strstr((const char *)report.data, "partitions is 4, wanted 5\n"));
    assert_non_null(strstr((const char *)report.data, "replication is 1, wanted 3\n"));
    pay_buf_free(&report);
    assert_null(pay_kafka_admin_free(admin));
}

static void bad_settings_are_fatal(void **state)
{
    struct world *world = *state;
    const char *topics[] = {"^pattern"};
    struct pay_kafka_consumer_options options = consumer_options(world, topics);
    struct pay_kafka_producer_options producing = producer_options(world);

    assert_int_equal(pay_kafka_consumer_new(&options, &world->consumers[0], &world->err),
                     PAY_FATAL);
    topics[0] = world->topic;
    options.group_id = "";
    assert_int_equal(pay_kafka_consumer_new(&options, &world->consumers[0], &world->err),
                     PAY_FATAL);
    options.group_id = "g";
    options.session_timeout_ms = 600000; /* Over max.poll.interval.ms: the library refuses. */
    assert_int_equal(pay_kafka_consumer_new(&options, &world->consumers[0], &world->err),
                     PAY_FATAL);
    producing.conf.properties = "acks=1";
    assert_int_equal(pay_kafka_producer_new(&producing, &world->producer, &world->err), PAY_FATAL);
    assert_null(world->consumers[0]);
    assert_null(world->producer);
}

#define FAULT_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FAULT_TEST(delivered_to_the_partition_of_its_key),
        FAULT_TEST(broker_errors_are_ridden_out_without_doubles),
        FAULT_TEST(K11_what_was_refused_is_not_delivered_by_what_follows),
        FAULT_TEST(only_the_record_itself_is_rejected),
        FAULT_TEST(full_queue_is_retry_and_close_reports_the_rest),
        FAULT_TEST(a_report_comes_within_the_message_timeout),
        FAULT_TEST(sent_but_unanswered_is_unknown),
        FAULT_TEST(a_broken_sequence_is_fatal_and_a_new_producer_goes_on),
        FAULT_TEST(own_thread_serves_several_threads),
        FAULT_TEST(headers_and_null_values_pass),
        FAULT_TEST(stored_offsets_are_honoured_after_a_restart),
        FAULT_TEST(pause_holds_and_resume_loses_nothing),
        FAULT_TEST(paused_before_the_assignment),
        FAULT_TEST(rewind_polls_again_from_what_is_stored),
        FAULT_TEST(a_refused_commit_goes_again),
        FAULT_TEST(two_members_share_and_finish_before_they_give_back),
        FAULT_TEST(a_pause_does_not_outlive_its_assignment),
        FAULT_TEST(an_outage_is_retry_and_mends),
        FAULT_TEST(admin_describes_and_refuses_another_count),
        FAULT_TEST(bad_settings_are_fatal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
