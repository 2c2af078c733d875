/* SPDX-License-Identifier: Apache-2.0 */
/* The adapter against a real broker: PAYFACT_TEST_KAFKA is its bootstrap. What the mock cannot
 * prove. */
#include "common/io/kafka/kafka_admin.h"
#include "common/io/kafka/kafka_consumer.h"
#include "common/io/kafka/kafka_producer.h"
#include "common/io/kafka/kafka_reader.h"

#include "common/base/clock.h"
#include "common/base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define DEADLINE_US INT64_C(60000000)
#define ADMIN_MS 30000
#define PARTITIONS 4
#define RECORDS_MAX 400
#define HELD_MAX 100

static const char *server(void)
{
    /* Nobody sets it while we run. NOLINTNEXTLINE(concurrency-mt-unsafe) */
    return getenv("PAYFACT_TEST_KAFKA");
}

struct member {
    struct pay_kafka_consumer *consumer;
    struct pay_kafka_msg held[HELD_MAX]; /* In flight until the partition is taken away. */
    size_t held_count;
    size_t stored_in_revoke;
    size_t assignments;
};

struct world {
    struct pay_kafka_admin *admin;
    struct pay_kafka_producer *producer;
    struct member members[2];
    struct pay_err err;
    char topic[64];
    char group[64];
    size_t delivered;
    size_t failed;
    int times[RECORDS_MAX]; /* How often each record was polled. */
};

static const struct pay_kafka_topic_config wanted[] = {{"retention.ms", "604800000"},
                                                       {"cleanup.policy", "delete"}};

static struct pay_kafka_topic_spec spec_of(const struct world *world)
{
    return (struct pay_kafka_topic_spec){
        .name = world->topic,
        .partitions = PARTITIONS,
        .replication = 1,
        .configs = wanted,
        .config_count = 2,
    };
}

static struct pay_kafka_conf conf(void)
{
    return (struct pay_kafka_conf){.bootstrap = server(), .client_id = "payfact-test"};
}

static void must(struct world *world, enum pay_status status)
{
    if (status != PAY_OK) {
        fail_msg("%s: %s: %s", pay_status_name(status), world->err.op, world->err.text);
    }
}

static void on_report(void *ctx, const struct pay_kafka_report *report)
{
    struct world *world = ctx;

    world->delivered += report->status == PAY_OK ? 1 : 0;
    world->failed += report->status != PAY_OK ? 1 : 0;
}

static int setup(void **state)
{
    static int number;
    struct world *world = calloc(1, sizeof *world);

    *state = world;
    if (server() == NULL) {
        (void)fprintf(stderr,
                      "PAYFACT_TEST_KAFKA is not set: give the bootstrap of a test broker\n");
        return 1;
    }
    (void)snprintf(world->topic, sizeof world->topic, "pay-io-%d-%d", (int)getpid(), number);
    (void)snprintf(world->group, sizeof world->group, "pay-io-%d-%d", (int)getpid(), number++);
    const struct pay_kafka_conf where = conf();
    const struct pay_kafka_producer_options options = {
        .conf = where, .on_report = on_report, .ctx = world};
    struct pay_kafka_topic_spec spec = spec_of(world);
    if (pay_kafka_admin_new(&where, &world->admin, &world->err) != PAY_OK ||
        pay_kafka_admin_ensure(world->admin, &spec, ADMIN_MS, NULL, &world->err) != PAY_OK ||
        pay_kafka_producer_new(&options, &world->producer, &world->err) != PAY_OK) {
        (void)fprintf(stderr, "%s: %s\n", world->err.op, world->err.text);
        return 1;
    }
    return 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    pay_kafka_producer_free(world->producer);
    pay_kafka_consumer_free(world->members[0].consumer);
    pay_kafka_consumer_free(world->members[1].consumer);
    if (world->admin != NULL &&
        pay_kafka_admin_delete(world->admin, world->topic, ADMIN_MS, &world->err) != PAY_OK) {
        (void)fprintf(stderr, "%s: %s\n", world->err.op, world->err.text);
    }
    pay_kafka_admin_free(world->admin);
    free(world);
    return 0;
}

static void produce_range(struct world *world, size_t from, size_t to)
{
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;

    for (size_t i = from; i < to; i++) {
        char text[24];
        (void)snprintf(text, sizeof text, "%zu", i);
        const struct pay_kafka_record record = {.topic = world->topic,
                                                .key = pay_str_of(text),
                                                .value = {(const uint8_t *)text, strlen(text)}};
        must(world, pay_kafka_produce(world->producer, &record, &world->err));
    }
    while (world->delivered + world->failed < to && pay_clock_mono_us() < end_us) {
        (void)pay_kafka_producer_poll(world->producer, 100);
    }
    assert_int_equal(world->delivered, to);
}

static void on_assigned(void *ctx, const struct pay_kafka_partition *parts, size_t count)
{
    struct member *member = ctx;

    (void)parts;
    (void)count;
    member->assignments++;
}

static void on_revoked(void *ctx, const struct pay_kafka_partition *parts, size_t count, bool lost)
{
    struct member *member = ctx;

    (void)parts;
    (void)count;
    assert_false(lost);
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

static struct member *join_topics(struct world *world, int at, const char *instance,
                                  const char *const *topics, size_t topic_count)
{
    struct member *member = &world->members[at];
    const struct pay_kafka_consumer_options options = {
        .conf = conf(),
        .group_id = world->group,
        .instance_id = instance,
        .topics = topics,
        .topic_count = topic_count,
        .session_timeout_ms = 10000,
        .on_assigned = on_assigned,
        .on_revoked = on_revoked,
        .ctx = member,
    };

    *member = (struct member){0};
    must(world, pay_kafka_consumer_new(&options, &member->consumer, &world->err));
    return member;
}

static struct member *join(struct world *world, int at, const char *instance)
{
    const char *topic = world->topic;

    return join_topics(world, at, instance, &topic, 1);
}

static struct member *join_both(struct world *world, const char *other, const char *instance)
{
    const char *const topics[] = {other, world->topic};

    return join_topics(world, 0, instance, topics, 2);
}

static void leave(struct world *world, struct member *member)
{
    must(world, pay_kafka_consumer_close(member->consumer, 30000, &world->err));
    member->consumer = pay_kafka_consumer_free(member->consumer);
}

/* @param hold keep the records in flight, else store them at once. */
static size_t poll_some(struct world *world, struct member *member, bool hold)
{
    struct pay_kafka_msg msgs[64];
    size_t count = 0;
    enum pay_status status =
        pay_kafka_consumer_poll(member->consumer, 64, 100, msgs, &count, &world->err);

    assert_true(status == PAY_OK || status == PAY_RETRY);
    for (size_t i = 0; i < count; i++) {
        char text[24] = "";
        memcpy(text, msgs[i].value.ptr, msgs[i].value.len);
        assert_int_equal(msgs[i].partition, pay_hash_partition(pay_str_of(text), PARTITIONS));
        world->times[strtol(text, NULL, 10)]++;
        if (hold) {
            assert_true(member->held_count < HELD_MAX);
            member->held[member->held_count++] = msgs[i];
            continue;
        }
        assert_true(pay_kafka_consumer_store(member->consumer, msgs[i].topic, msgs[i].partition,
                                             msgs[i].offset + 1));
        pay_kafka_msg_release(&msgs[i]);
    }
    return count;
}

static size_t assigned(const struct member *member)
{
    return pay_kafka_consumer_assigned(member->consumer);
}

static void all_seen_once(const struct world *world, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        assert_int_equal(world->times[i], 1);
    }
}

static void two_members_hand_over_without_doubles(void **state)
{
    struct world *world = *state;
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;
    size_t got[2] = {0, 0};

    produce_range(world, 0, 80);
    struct member *first = join(world, 0, NULL);
    while (first->held_count < 80 && pay_clock_mono_us() < end_us) {
        (void)poll_some(world, first, true);
    }
    assert_int_equal(first->held_count, 80);
    struct member *second = join(world, 1, NULL);
    while ((assigned(first) != PARTITIONS / 2 || assigned(second) != PARTITIONS / 2) &&
           pay_clock_mono_us() < end_us) {
        assert_int_equal(poll_some(world, first, false), 0); /* It was committed in on_revoked. */
        assert_int_equal(poll_some(world, second, false), 0);
    }
    assert_int_equal(first->stored_in_revoke, 80);
    produce_range(world, 80, 240);
    while (got[0] + got[1] < 160 && pay_clock_mono_us() < end_us) {
        got[0] += poll_some(world, first, false);
        got[1] += poll_some(world, second, false);
    }
    assert_true(got[0] > 0 && got[1] > 0);
    leave(world, second);
    while (assigned(first) != PARTITIONS && pay_clock_mono_us() < end_us) {
        assert_int_equal(poll_some(world, first, false), 0);
    }
    produce_range(world, 240, 300);
    for (size_t more = 0; more < 60 && pay_clock_mono_us() < end_us;) {
        more += poll_some(world, first, false);
    }
    all_seen_once(world, 0, 300);
    leave(world, first);
}

/* A pod that restarts under its name gets its partitions back without a rebalance of the others. */
static void a_static_member_comes_back_to_its_partitions(void **state)
{
    struct world *world = *state;
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;

    struct member *first = join(world, 0, "pod-0");
    struct member *second = join(world, 1, "pod-1");
    while ((assigned(first) != PARTITIONS / 2 || assigned(second) != PARTITIONS / 2) &&
           pay_clock_mono_us() < end_us) {
        (void)poll_some(world, first, false);
        (void)poll_some(world, second, false);
    }
    assert_int_equal(assigned(second), PARTITIONS / 2);
    size_t before = first->assignments;
    leave(world, second);
    second = join(world, 1, "pod-1");
    while (assigned(second) != PARTITIONS / 2 && pay_clock_mono_us() < end_us) {
        (void)poll_some(world, first, false);
        (void)poll_some(world, second, false);
    }
    assert_int_equal(assigned(second), PARTITIONS / 2);
    assert_int_equal(first->assignments, before);
    leave(world, second);
    leave(world, first);
}

/* Records that were fetched and never polled lie in the member's queue: they are the next one's. */
static void a_member_leaves_with_fetched_records(void **state)
{
    struct world *world = *state;
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;
    size_t got = 0;

    produce_range(world, 0, 80);
    struct member *first = join(world, 0, NULL);
    while (got < 80 && pay_clock_mono_us() < end_us) {
        got += poll_some(world, first, false);
    }
    produce_range(world, 80, 160);
    while (pay_kafka_consumer_lag_records(first->consumer) < 80 && pay_clock_mono_us() < end_us) {
        (void)usleep(10000); /* The high watermark comes with the fetched records. */
    }
    assert_int_equal(pay_kafka_consumer_lag_records(first->consumer), 80);
    leave(world, first);
    struct member *second = join(world, 1, NULL);
    while (got < 160 && pay_clock_mono_us() < end_us) {
        got += poll_some(world, second, false);
    }
    all_seen_once(world, 0, 160);
    leave(world, second);
}

static void a_second_holder_of_a_name_fences_the_first(void **state)
{
    struct world *world = *state;
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;
    enum pay_status status = PAY_OK;

    struct member *first = join(world, 0, "pod-0");
    while (assigned(first) != PARTITIONS && pay_clock_mono_us() < end_us) {
        (void)poll_some(world, first, false);
    }
    struct member *second = join(world, 1, "pod-0");
    while (status != PAY_FATAL && pay_clock_mono_us() < end_us) {
        struct pay_kafka_msg msg;
        size_t count = 0;
        status = pay_kafka_consumer_poll(first->consumer, 1, 100, &msg, &count, &world->err);
        (void)poll_some(world, second, false);
    }
    assert_int_equal(status, PAY_FATAL);
    leave(world, second);
}

static void admin_creates_compares_and_refuses(void **state)
{
    struct world *world = *state;
    static const struct pay_kafka_topic_config others[] = {{"retention.ms", "1000"}};
    static const struct pay_kafka_topic_config bad[] = {{"no.such.config", "1"}};
    struct pay_kafka_topic_spec spec = spec_of(world);
    struct pay_kafka_topic_info info = {0};
    struct pay_buf report = pay_buf_make(4096);

    must(world, pay_kafka_admin_describe(world->admin, world->topic, ADMIN_MS, &info, &world->err));
    assert_true(info.exists && info.partitions == PARTITIONS && info.replication == 1);
    must(world, pay_kafka_admin_ensure(world->admin, &spec, ADMIN_MS, &report, &world->err));
    assert_int_equal(report.len, 0);
    spec.configs = others;
    spec.config_count = 1;
    must(world, pay_kafka_admin_ensure(world->admin, &spec, ADMIN_MS, &report, &world->err));
    assert_non_null(strstr((const char *)report.data, "retention.ms is 604800000, wanted 1000\n"));
    spec.partitions = PARTITIONS * 2;
    assert_int_equal(pay_kafka_admin_ensure(world->admin, &spec, ADMIN_MS, &report, &world->err),
                     PAY_REJECT);
    must(world, pay_kafka_admin_describe(world->admin, world->topic, ADMIN_MS, &info, &world->err));
    assert_int_equal(info.partitions, PARTITIONS);

    spec = spec_of(world);
    spec.name = "pay-io-refused";
    spec.configs = bad;
    spec.config_count = 1;
    assert_int_equal(pay_kafka_admin_ensure(world->admin, &spec, ADMIN_MS, &report, &world->err),
                     PAY_REJECT);
    spec.config_count = 0;
    spec.replication = 9;
    assert_int_equal(pay_kafka_admin_ensure(world->admin, &spec, ADMIN_MS, &report, &world->err),
                     PAY_REJECT);
    must(world, pay_kafka_admin_describe(world->admin, spec.name, ADMIN_MS, &info, &world->err));
    assert_false(info.exists);
    must(world,
         pay_kafka_admin_delete(world->admin, spec.name, ADMIN_MS, &world->err)); /* Absent. */
    pay_buf_free(&report);
}

static void a_record_over_the_topics_limit_is_reject(void **state)
{
    struct world *world = *state;
    static uint8_t big[600000];
    static const struct pay_kafka_topic_config small[] = {{"max.message.bytes", "1000"}};
    char name[80];
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;

    (void)snprintf(name, sizeof name, "%s-small", world->topic);
    const struct pay_kafka_topic_spec spec = {
        .name = name, .partitions = 1, .replication = 1, .configs = small, .config_count = 1};
    must(world, pay_kafka_admin_ensure(world->admin, &spec, ADMIN_MS, NULL, &world->err));
    const struct pay_kafka_record record = {.topic = name, .value = {big, sizeof big}};
    must(world, pay_kafka_produce(world->producer, &record, &world->err));
    while (world->delivered + world->failed < 1 && pay_clock_mono_us() < end_us) {
        (void)pay_kafka_producer_poll(world->producer, 100);
    }
    assert_int_equal(world->failed, 1);
    must(world, pay_kafka_admin_delete(world->admin, name, ADMIN_MS, &world->err));
}

struct counting {
    size_t seen, enough;
    int64_t last[PARTITIONS];
};

static bool count_record(void *ctx, const struct pay_kafka_msg *msg)
{
    struct counting *counting = ctx;

    assert_true(msg->offset > counting->last[msg->partition]); /* Each once, in order. */
    counting->last[msg->partition] = msg->offset;
    assert_true(pay_bytes_eq(msg->key, msg->value));
    counting->seen++;
    return counting->seen != counting->enough;
}

static size_t read_with(struct world *world, struct pay_kafka_reader_options options, size_t enough)
{
    struct counting counting = {.enough = enough, .last = {-1, -1, -1, -1}};

    options.conf = conf();
    options.topic = options.topic == NULL ? world->topic : options.topic;
    options.timeout_ms = 30000;
    options.on_record = count_record;
    options.ctx = &counting;
    must(world, pay_kafka_read_topic(&options, &world->err));
    return counting.seen;
}

static void a_topic_is_read_once_as_it_is_and_nobody_is_disturbed(void **state)
{
    struct world *world = *state;
    struct pay_kafka_reader_options options = {.topic = NULL};

    assert_int_equal(read_with(world, options, 0), 0); /* Empty. */
    produce_range(world, 0, RECORDS_MAX);
    assert_int_equal(read_with(world, options, 0), RECORDS_MAX);
    assert_int_equal(read_with(world, options, 0), RECORDS_MAX); /* Nothing was committed. */
    assert_int_equal(read_with(world, options, 7), 7);
    options.since_ms = pay_clock_wall_us() / 1000 + 3600000;
    assert_int_equal(read_with(world, options, 0), 0);
    options.since_ms = pay_clock_wall_us() / 1000 - 3600000;
    assert_int_equal(read_with(world, options, 0), RECORDS_MAX);
}

static void a_topic_that_is_not_there_or_a_broker_that_is_away(void **state)
{
    struct world *world = *state;
    struct counting counting = {.enough = 0};
    struct pay_kafka_reader_options options = {.conf = conf(),
                                               .topic = "pay-io-nobody-made-this",
                                               .timeout_ms = 30000,
                                               .on_record = count_record,
                                               .ctx = &counting};

    assert_int_equal(pay_kafka_read_topic(&options, &world->err), PAY_REJECT);
    options.conf.bootstrap = "127.0.0.1:1";
    options.timeout_ms = 1000;
    assert_int_equal(pay_kafka_read_topic(&options, &world->err), PAY_RETRY);
}

/* A broker gives a static member that comes back what it had, and nobody divides anew: what joined
 * while one of its topics was not there would have nothing of that one for ever. */
static void a_static_member_joins_when_all_its_topics_are_there(void **state)
{
    struct world *world = *state;
    char first[sizeof world->topic];

    (void)snprintf(first, sizeof first, "%s", world->topic);
    (void)snprintf(world->topic, sizeof world->topic, "%.40s-late", first);
    struct member *member = join_both(world, first, "one");
    int64_t end_us = pay_clock_mono_us() + INT64_C(5000000);
    while (member->assignments == 0 && pay_clock_mono_us() < end_us) { /* It must not happen. */
        assert_int_equal(poll_some(world, member, false), 0);
    }
    assert_false(pay_kafka_consumer_joined(member->consumer));
    struct pay_kafka_topic_spec spec = spec_of(world);
    must(world, pay_kafka_admin_ensure(world->admin, &spec, ADMIN_MS, NULL, &world->err));
    leave(world, member);
    member = join_both(world, first, "one");
    produce_range(world, 0, 10);
    size_t got = 0;
    end_us = pay_clock_mono_us() + DEADLINE_US;
    while (got < 10 && pay_clock_mono_us() < end_us) {
        got += poll_some(world, member, false);
    }
    assert_int_equal(got, 10);
    must(world, pay_kafka_admin_delete(world->admin, first, ADMIN_MS, &world->err));
}

#define BROKER_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BROKER_TEST(two_members_hand_over_without_doubles),
        BROKER_TEST(a_static_member_comes_back_to_its_partitions),
        BROKER_TEST(a_member_leaves_with_fetched_records),
        BROKER_TEST(a_second_holder_of_a_name_fences_the_first),
        BROKER_TEST(admin_creates_compares_and_refuses),
        BROKER_TEST(a_record_over_the_topics_limit_is_reject),
        BROKER_TEST(a_topic_is_read_once_as_it_is_and_nobody_is_disturbed),
        BROKER_TEST(a_topic_that_is_not_there_or_a_broker_that_is_away),
        BROKER_TEST(a_static_member_joins_when_all_its_topics_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
