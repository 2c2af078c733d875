/* SPDX-License-Identifier: Apache-2.0 */
/* A Redis that is away, silent, broken or back again: no call may fail, or wait longer than its
 * budget. */
#include "common/io/redis/redis.h"

#include "common/base/clock.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define BUDGET_MS 20
#define BUDGET_US INT64_C(20000)
/* A call's budget plus what a busy machine may add before the process runs again. */
#define PATIENCE_US INT64_C(2000000)

enum mode { MODE_SILENT, MODE_ANSWER, MODE_GARBAGE, MODE_HANG_UP, MODE_ERROR };

/* A server of one connection at a time that does what its mode says to whatever it reads. */
struct fake {
    int fd;
    int port;
    atomic_int mode;
    atomic_bool stop;
    pthread_t thread;
};

static const char *const answers[] = {
    [MODE_SILENT] = "",
    [MODE_ANSWER] = ":1\r\n",
    [MODE_GARBAGE] = "?!\r\n",
    [MODE_HANG_UP] = "",
    [MODE_ERROR] = "-LOADING Redis is loading the dataset in memory\r\n",
};

static bool readable(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    return poll(&poll_fd, 1, 20) > 0;
}

static void serve_one(struct fake *fake, int fd)
{
    char buf[4096];

    while (!atomic_load(&fake->stop)) {
        if (!readable(fd)) {
            continue;
        }
        int mode = atomic_load(&fake->mode);
        if (recv(fd, buf, sizeof buf, 0) <= 0 || mode == MODE_HANG_UP) {
            break;
        }
        if (send(fd, answers[mode], strlen(answers[mode]), MSG_NOSIGNAL) < 0) {
            break;
        }
    }
    close(fd);
}

static void *serve(void *arg)
{
    struct fake *fake = arg;

    while (!atomic_load(&fake->stop)) {
        int fd = readable(fake->fd) ? accept(fake->fd, NULL, NULL) : -1;
        if (fd >= 0) {
            serve_one(fake, fd);
        }
    }
    return NULL;
}

static int setup(void **state)
{
    struct fake *fake = calloc(1, sizeof *fake);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof at;

    *state = fake;
    fake->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fake->fd < 0 || bind(fake->fd, (struct sockaddr *)&at, sizeof at) != 0 ||
        listen(fake->fd, 8) != 0 || getsockname(fake->fd, (struct sockaddr *)&at, &len) != 0) {
        return 1;
    }
    fake->port = ntohs(at.sin_port);
    return pthread_create(&fake->thread, NULL, serve, fake);
}

static int teardown(void **state)
{
    struct fake *fake = *state;

    atomic_store(&fake->stop, true);
    (void)pthread_join(fake->thread, NULL);
    close(fake->fd);
    free(fake);
    return 0;
}

static struct pay_redis *make(const char *host, int port)
{
    char url[128];
    struct pay_redis *redis = NULL;
    struct pay_err err = {0};
    const struct pay_redis_options options = {
        .url = url, .budget_ms = BUDGET_MS, .breaker_failures = 3, .breaker_open_ms = 100};

    (void)snprintf(url, sizeof url, "redis://%s:%d", host, port);
    if (pay_redis_new(&options, &redis, &err) != PAY_OK) {
        fail_msg("%s", err.text);
    }
    return redis;
}

static enum pay_redis_known timed_exists(struct pay_redis *redis)
{
    int64_t start_us = pay_clock_mono_us();
    enum pay_redis_known known = pay_redis_exists(redis, PAY_STR("k"));

    assert_true(pay_clock_mono_us() - start_us < PATIENCE_US);
    return known;
}

static void silence_ends_with_the_budget(void **state)
{
    struct fake *fake = *state;
    struct pay_redis *redis = make("127.0.0.1", fake->port);
    struct pay_err err = {0};

    atomic_store(&fake->mode, MODE_SILENT);
    int64_t start_us = pay_clock_mono_us();
    assert_int_equal(timed_exists(redis), PAY_REDIS_NOT_KNOWN);
    assert_true(pay_clock_mono_us() - start_us >= BUDGET_US);
    assert_false(pay_redis_set(redis, PAY_STR("k"), PAY_STR("v"), 1000));
    assert_int_equal(pay_redis_last_error(redis, &err), PAY_RETRY);
    assert_non_null(strstr(err.text, "budget"));
    pay_redis_free(redis);
}

static void nothing_listens(void **state)
{
    struct pay_redis *redis = make("127.0.0.1", 1);

    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(timed_exists(redis), PAY_REDIS_NOT_KNOWN);
    }
    struct pay_redis_stats stats = pay_redis_stats(redis);
    assert_int_equal(stats.calls, 10);
    assert_int_equal(stats.failures, 10);
    assert_true(stats.skipped > 0);
    assert_true(stats.connects < 10);
    pay_redis_free(redis);
}

static void a_name_that_cannot_be_resolved(void **state)
{
    struct pay_redis *redis = make("no-such-host.invalid", 6379);

    (void)state;
    assert_int_equal(timed_exists(redis), PAY_REDIS_NOT_KNOWN);
    pay_redis_free(redis); /* The look-up may still run. */
}

static void a_name_is_resolved_beside_the_calls(void **state)
{
    struct fake *fake = *state;
    struct pay_redis *redis = make("localhost", fake->port);
    int64_t end_us = pay_clock_mono_us() + 10 * PATIENCE_US;
    enum pay_redis_known known = PAY_REDIS_NOT_KNOWN;

    atomic_store(&fake->mode, MODE_ANSWER);
    while (known == PAY_REDIS_NOT_KNOWN && pay_clock_mono_us() < end_us) {
        known = timed_exists(redis);
        (void)poll(NULL, 0, 5);
    }
    assert_int_equal(known, PAY_REDIS_PRESENT);
    pay_redis_free(redis);
}

static void wait_until_known(struct pay_redis *redis)
{
    int64_t end_us = pay_clock_mono_us() + 10 * PATIENCE_US;

    while (timed_exists(redis) != PAY_REDIS_PRESENT) {
        assert_true(pay_clock_mono_us() < end_us);
        (void)poll(NULL, 0, 5);
    }
}

static void each_fault_is_not_known_and_ends(void **state)
{
    static const enum mode faults[] = {MODE_GARBAGE, MODE_HANG_UP, MODE_SILENT, MODE_ERROR};
    struct fake *fake = *state;
    struct pay_redis *redis = make("127.0.0.1", fake->port);

    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        atomic_store(&fake->mode, MODE_ANSWER);
        wait_until_known(redis);
        assert_false(pay_redis_stats(redis).breaker_open);
        atomic_store(&fake->mode, (int)faults[i]);
        for (int n = 0; n < 3; n++) { /* Also the second write to a socket that the other closed. */
            assert_int_equal(timed_exists(redis), PAY_REDIS_NOT_KNOWN);
        }
        assert_true(pay_redis_stats(redis).breaker_open);
        uint64_t connects = pay_redis_stats(redis).connects;
        assert_int_equal(timed_exists(redis), PAY_REDIS_NOT_KNOWN);
        assert_int_equal(pay_redis_stats(redis).connects, connects);
    }
    pay_redis_free(redis);
}

/* Only failures in a row open the breaker: one lost answer now and then must not. */
static void a_success_starts_the_count_again(void **state)
{
    struct fake *fake = *state;
    struct pay_redis *redis = make("127.0.0.1", fake->port);

    atomic_store(&fake->mode, MODE_ANSWER);
    wait_until_known(redis);
    for (int i = 0; i < 6; i++) {
        atomic_store(&fake->mode, MODE_ERROR); /* The connection stays: only this answer is lost. */
        assert_int_equal(timed_exists(redis), PAY_REDIS_NOT_KNOWN);
        assert_false(pay_redis_stats(redis).breaker_open);
        atomic_store(&fake->mode, MODE_ANSWER);
        wait_until_known(redis);
    }
    pay_redis_free(redis);
}

static void keys_that_cannot_be_are_not_known(void **state)
{
    static char long_key[PAY_REDIS_KEY_BYTES_MAX + 1];
    struct fake *fake = *state;
    struct pay_redis *redis = make("127.0.0.1", fake->port);

    atomic_store(&fake->mode, MODE_ANSWER);
    memset(long_key, 'k', sizeof long_key);
    assert_int_equal(pay_redis_exists(redis, (struct pay_str){long_key, sizeof long_key}),
                     PAY_REDIS_NOT_KNOWN);
    assert_int_equal(pay_redis_exists(redis, (struct pay_str){0}), PAY_REDIS_NOT_KNOWN);
    assert_int_equal(pay_redis_stats(redis).calls, 0);
    assert_int_equal(pay_redis_exists(redis, (struct pay_str){long_key, sizeof long_key - 1}),
                     PAY_REDIS_PRESENT);
    pay_redis_free(redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_ends_with_the_budget),
        cmocka_unit_test(nothing_listens),
        cmocka_unit_test(a_name_that_cannot_be_resolved),
        cmocka_unit_test(a_name_is_resolved_beside_the_calls),
        cmocka_unit_test(each_fault_is_not_known_and_ends),
        cmocka_unit_test(a_success_starts_the_count_again),
        cmocka_unit_test(keys_that_cannot_be_are_not_known),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
