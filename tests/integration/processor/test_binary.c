/* SPDX-License-Identifier: Apache-2.0 */
/* payfact-processor itself, on a real broker and database: argv[1] is the binary. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/contracts/topics.h"
#include "common/io/kafka/kafka_admin.h"
#include "common/io/kafka/kafka_producer.h"
#include "tests/integration/processor/world.h"

/* The environment and the process are touched by the test's own thread only. */
/* NOLINTBEGIN(concurrency-mt-unsafe) */

#define DEADLINE_US INT64_C(30000000)
#define ADMIN_MS 30000
#define P payment_id(0)

static const char *binary;
static const char *unpaused; /* With a client that hands records out while it is paused. */

struct bench {
    struct world *world;
    struct pay_kafka_admin *admin;
    struct pay_kafka_producer *producer;
    char prefix[80];
    char inputs[PAY_TOPIC_NAME_SIZE], dlq[PAY_TOPIC_NAME_SIZE];
    size_t delivered;
    pid_t child;
};

static const char *broker(void)
{
    const char *text = getenv("PAYFACT_TEST_KAFKA");
    if (text == NULL) {
        (void)fprintf(stderr, "PAYFACT_TEST_KAFKA is not set: give a test broker's bootstrap\n");
        exit(1);
    }
    return text;
}

static void on_report(void *ctx, const struct pay_kafka_report *report)
{
    struct bench *bench = ctx;
    bench->delivered += report->status == PAY_OK ? 1 : 0;
}

static void make_topic(struct bench *bench, enum pay_topic topic, char name[PAY_TOPIC_NAME_SIZE])
{
    assert_true(pay_topic_name(name, topic, bench->prefix));
    const struct pay_kafka_topic_spec spec = {.name = name, .partitions = 4, .replication = 1};
    world_must(bench->world,
               pay_kafka_admin_ensure(bench->admin, &spec, ADMIN_MS, NULL, &bench->world->err));
}

static int setup(void **state)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    const struct pay_kafka_conf conf = {.bootstrap = broker(), .client_id = "payfact-test"};
    void *world = NULL;
    int failed = world_open(&world);
    *state = bench;
    bench->world = world;
    if (failed != 0) {
        return failed;
    }
    (void)snprintf(bench->prefix, sizeof(bench->prefix), "%s.", bench->world->db.name);
    world_must(bench->world, pay_kafka_admin_new(&conf, &bench->admin, &bench->world->err));
    make_topic(bench, PAY_TOPIC_INPUTS, bench->inputs);
    make_topic(bench, PAY_TOPIC_DLQ, bench->dlq);
    const struct pay_kafka_producer_options options = {
        .conf = conf, .linger_ms = -1, .on_report = on_report, .ctx = bench};
    world_must(bench->world,
               pay_kafka_producer_new(&options, &bench->producer, &bench->world->err));
    return 0;
}

static void stop(struct bench *bench, int signal_no)
{
    if (bench->child > 0) {
        int status = 0;
        (void)kill(bench->child, signal_no);
        (void)waitpid(bench->child, &status, 0);
        bench->child = 0;
        if (signal_no == SIGTERM) {
            assert_true(WIFEXITED(status));
            assert_int_equal(WEXITSTATUS(status), 0);
        }
    }
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    if (bench->child > 0) {
        stop(bench, SIGKILL);
    }
    bench->producer = pay_kafka_producer_free(bench->producer);
    struct pay_err err;
    if (pay_kafka_admin_delete(bench->admin, bench->inputs, ADMIN_MS, &err) != PAY_OK ||
        pay_kafka_admin_delete(bench->admin, bench->dlq, ADMIN_MS, &err) != PAY_OK) {
        (void)fprintf(stderr, "topics stay: %s\n", err.text);
    }
    bench->admin = pay_kafka_admin_free(bench->admin);
    void *world = bench->world;
    (void)world_close(&world);
    free(bench);
    return 0;
}

static void start_binary(struct bench *bench, const char *path, const char *fault)
{
    const struct world *world = bench->world;
    bench->child = fork();
    assert_true(bench->child >= 0);
    if (bench->child > 0) {
        return;
    }
    char log_path[512];
    (void)setenv("PAYFACT_KAFKA_BROKERS", broker(), 1);
    (void)setenv("PAYFACT_TOPIC_PREFIX", bench->prefix, 1);
    (void)setenv("PAYFACT_PG_CONNINFO", world->cfg.common.pg_conninfo, 1);
    (void)setenv("PAYFACT_ACCOUNTS_FILE", world->accounts_path, 1);
    (void)setenv("PAYFACT_KEYRING_FILE", world->keyring_path, 1);
    (void)setenv("PAYFACT_ADMIN_PORT", "0", 1);
    (void)setenv("PAYFACT_SESSION_TIMEOUT_MS", "6000", 1); /* what kill -9 leaves behind */
    (void)unsetenv("PAYFACT_TEST_PG");
    (void)unsetenv("PAYFACT_TEST_KAFKA");
    (void)unsetenv("PAYFACT_TEST_REDIS");
    if (fault != NULL) {
        (void)setenv("PAYFACT_FAULT", fault, 1);
    }
    (void)snprintf(log_path, sizeof(log_path), "%s/log", world->dir);
    int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (log < 0 || dup2(log, 2) < 0) {
        _exit(126);
    }
    (void)execl(path, path, (char *)NULL);
    _exit(127);
}

static void start(struct bench *bench, const char *fault)
{
    start_binary(bench, binary, fault);
}

/* The batch in hand goes to the topic instead of a worker. */
static void produce(struct bench *bench)
{
    struct world *world = bench->world;
    for (size_t i = 0; i < world->count; i++) {
        const struct pay_kafka_record record = {
            .topic = bench->inputs,
            .key = {(const char *)world->msgs[i].key.ptr, world->msgs[i].key.len},
            .value = world->msgs[i].value,
        };
        world_must(world, pay_kafka_produce(bench->producer, &record, &world->err));
    }
    int64_t until_us = pay_clock_mono_us() + DEADLINE_US;
    while (pay_kafka_producer_pending(bench->producer) > 0) {
        assert_true(pay_clock_mono_us() < until_us);
        (void)pay_kafka_producer_poll(bench->producer, 100);
    }
    world->count = 0;
}

static void show_log(struct bench *bench)
{
    char command[512];
    (void)snprintf(command, sizeof(command), "tail -20 '%s/log' >&2", bench->world->dir);
    const int shown = system(command); /* for people */
    (void)shown;
}

static void wait_number(struct bench *bench, const char *sql, int64_t expected)
{
    int64_t until_us = pay_clock_mono_us() + DEADLINE_US;
    int64_t now = number(bench->world, sql);
    while (now != expected && pay_clock_mono_us() < until_us) {
        (void)poll(NULL, 0, 20);
        now = number(bench->world, sql);
    }
    if (now != expected) {
        show_log(bench);
        fail_msg("%lld instead of %lld: %s", (long long)now, (long long)expected, sql);
    }
}

static void wait_log(struct bench *bench, const char *text)
{
    char command[512];
    int64_t until_us = pay_clock_mono_us() + DEADLINE_US;
    (void)snprintf(command, sizeof command, "grep -q '%s' '%s/log'", text, bench->world->dir);
    while (system(command) != 0) {
        assert_true(pay_clock_mono_us() < until_us);
        (void)poll(NULL, 0, 50);
    }
}

/* @return its wait status. */
static int wait_ended(struct bench *bench)
{
    int64_t until_us = pay_clock_mono_us() + DEADLINE_US;
    int status = 0;
    while (waitpid(bench->child, &status, WNOHANG) == 0) {
        assert_true(pay_clock_mono_us() < until_us);
        (void)poll(NULL, 0, 20);
    }
    bench->child = 0;
    return status;
}

#if PAY_FAULTS
static void wait_killed(struct bench *bench)
{
    const int status = wait_ended(bench);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}
#endif

#define SUCCEEDED "SELECT count(*) FROM payfact.payment_order WHERE status = 'SUCCEEDED'"

static void it_consumes_decides_and_stops_in_order(void **state)
{
    struct bench *bench = *state;
    start(bench, NULL);
    for (int i = 0; i < 20; i++) {
        add_create(bench->world, payment_id(i));
    }
    produce(bench);
    wait_number(bench, "SELECT count(*) FROM payfact.payment_order", 20);
    for (int i = 0; i < 20; i++) {
        add_callback(bench->world, payment_id(i), PAY_EV_ATTEMPT_SUCCEEDED, payment_id(i));
    }
    produce(bench);
    wait_number(bench, SUCCEEDED, 20);
    /* Each payment's place in the outbox is the partition that its key has in inputs. */
    assert_true(number(bench->world, "SELECT count(DISTINCT shard) FROM payfact.payment_outbox") <=
                4);
    stop(bench, SIGTERM);
    /* What was stored is not consumed again. */
    int64_t deliveries =
        number(bench->world, "SELECT sum(delivery_count)::int8 FROM payfact.channel_event");
    assert_int_equal(deliveries, 20);
    start(bench, NULL);
    add_create(bench->world, payment_id(20));
    produce(bench);
    wait_number(bench, "SELECT count(*) FROM payfact.payment_order", 21);
    assert_int_equal(
        number(bench->world, "SELECT sum(delivery_count)::int8 FROM payfact.channel_event"), 20);
    stop(bench, SIGTERM);
}

static void a_crash_between_commit_and_offset_decides_nothing_twice(void **state)
{
#if PAY_FAULTS
    struct bench *bench = *state;
    start(bench, "after_commit_before_offset");
    add_create(bench->world, P);
    add_callback(bench->world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    produce(bench);
    wait_killed(bench);
    int64_t history = number(bench->world, "SELECT count(*) FROM payfact.payment_state_history");
    assert_true(history > 0);
    start(bench, NULL);
    wait_number(bench, SUCCEEDED, 1);
    wait_number(bench,
                "SELECT delivery_count FROM payfact.channel_event WHERE transport_key ="
                " 'evt_1' AND delivery_count > 0 LIMIT 1",
                2);
    assert_int_equal(number(bench->world, "SELECT count(*) FROM payfact.payment_state_history"
                                          " WHERE published_event_id LIKE 'PaymentSucceeded/%'"),
                     1);
    stop(bench, SIGTERM);
#else
    (void)state;
    skip();
#endif
}

static void poison_is_dead_lettered_and_the_rest_goes_on(void **state)
{
    struct bench *bench = *state;
    start(bench, NULL);
    add_bytes(bench->world, "k", "junk", 4);
    add_create(bench->world, P);
    produce(bench);
    wait_number(bench, "SELECT count(*) FROM payfact.payment_order", 1);
    wait_number(bench, "SELECT count(*) FROM payfact.manual_case WHERE kind = 'DEAD_INPUT'", 1);
    stop(bench, SIGTERM);

    struct pay_kafka_consumer *consumer = NULL;
    const char *const topics[] = {bench->dlq};
    const struct pay_kafka_consumer_options options = {
        .conf = {.bootstrap = broker(), .client_id = "payfact-test"},
        .group_id = bench->prefix,
        .topics = topics,
        .topic_count = 1,
    };
    struct pay_kafka_msg msgs[4];
    size_t count = 0;
    int64_t until_us = pay_clock_mono_us() + DEADLINE_US;
    struct pay_err *err = &bench->world->err;
    world_must(bench->world, pay_kafka_consumer_new(&options, &consumer, err));
    while (count == 0) {
        assert_true(pay_clock_mono_us() < until_us);
        world_must(bench->world, pay_kafka_consumer_poll(consumer, 4, 200, msgs, &count, err));
    }
    struct pay_dead_letter letter;
    world_must(bench->world, pay_dead_letter_decode(bench->world->codec, msgs[0].value,
                                                    bench->world->arena, &letter, err));
    assert_int_equal(letter.reason, PAY_DEAD_MALFORMED);
    assert_int_equal(count, 1);
    pay_kafka_msg_release(&msgs[0]);
    (void)pay_kafka_consumer_free(consumer); /* always NULL */
}

static void it_waits_for_the_database_and_goes_on(void **state)
{
    struct bench *bench = *state;
    start(bench, NULL);
    add_create(bench->world, P);
    produce(bench);
    wait_number(bench, "SELECT count(*) FROM payfact.payment_order", 1);
    pay_testdb_shut(&bench->world->db, true);
    for (int i = 1; i < 50; i++) {
        add_create(bench->world, payment_id(i));
    }
    produce(bench);
    wait_log(bench, "batch_retry");
    pay_testdb_shut(&bench->world->db, false);
    wait_number(bench, "SELECT count(*) FROM payfact.payment_order", 50);
    stop(bench, SIGTERM);
}

/* A batch that was given up while running must not be skipped: the next one's offsets would be
 * committed past it. The process ends, and the next one finds everything where it was. */
static void a_batch_given_up_while_running_ends_the_process(void **state)
{
    struct bench *bench = *state;
    int payments = 0;
    start_binary(bench, unpaused, NULL);
    for (; payments < 8; payments++) {
        add_create(bench->world, payment_id(payments));
    }
    produce(bench);
    wait_number(bench, "SELECT count(*) FROM payfact.payment_order", payments);
    pay_testdb_shut(&bench->world->db, true);
    add_create(bench->world, payment_id(payments++));
    produce(bench);
    wait_log(bench, "batch_retry"); /* In hand, and waiting. */
    for (; payments < 20; payments++) {
        add_create(bench->world, payment_id(payments));
    }
    produce(bench); /* One of them is handed out, and let go of. */
    const int status = wait_ended(bench);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    wait_log(bench, "a batch was given up while running");
    pay_testdb_shut(&bench->world->db, false);
    start(bench, NULL);
    wait_number(bench, "SELECT count(*) FROM payfact.payment_order", payments);
    stop(bench, SIGTERM);
}

static void put_keyring(struct bench *bench, const char *text)
{
    const struct pay_bytes content = {(const uint8_t *)text, strlen(text)};
    world_must(bench->world,
               pay_file_write(bench->world->keyring_path, content, false, &bench->world->err));
}

#define SEALED_BY(key_) \
    "SELECT count(*) FROM payfact.channel_event WHERE kind = 'POISON' AND key_id = '" key_ "'"

static void a_changed_keyring_seals_from_then_on_and_a_bad_one_does_not(void **state)
{
    struct bench *bench = *state;
    struct pay_buf text = pay_buf_make(PAY_KEYRING_FILE_MAX);
    start(bench, NULL);
    add_bytes(bench->world, "k", "junk", 4);
    produce(bench);
    wait_number(bench, SEALED_BY("test"), 1);
    world_must(bench->world,
               pay_keyring_generate(bench->world->keyring, "rotated", &text, &bench->world->err));
    put_keyring(bench, pay_buf_str(&text).ptr);
    pay_buf_free(&text);
    wait_log(bench, "keyring_loaded");
    add_bytes(bench->world, "k", "junk", 4);
    produce(bench);
    wait_number(bench, SEALED_BY("rotated"), 1);
    put_keyring(bench, "no keyring");
    wait_log(bench, "keyring_refused");
    add_bytes(bench->world, "k", "junk", 4);
    produce(bench);
    wait_number(bench, SEALED_BY("rotated"), 2);
    stop(bench, SIGTERM);
}

#define TEST(test_) cmocka_unit_test_setup_teardown(test_, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(it_consumes_decides_and_stops_in_order),
        TEST(a_crash_between_commit_and_offset_decides_nothing_twice),
        TEST(poison_is_dead_lettered_and_the_rest_goes_on),
        TEST(it_waits_for_the_database_and_goes_on),
        TEST(a_batch_given_up_while_running_ends_the_process),
        TEST(a_changed_keyring_seals_from_then_on_and_a_bad_one_does_not),
    };
    binary = argc > 1 ? argv[1] : "bin/payfact-processor";
    unpaused = argc > 2 ? argv[2] : "tests/payfact-processor-unpaused";
    return cmocka_run_group_tests_name("integration.processor.binary", tests, NULL, NULL);
}

/* NOLINTEND(concurrency-mt-unsafe) */
