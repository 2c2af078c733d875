/* SPDX-License-Identifier: Apache-2.0 */
/* The adapter against a real server: PAYFACT_TEST_REDIS is redis://host:port. */
#include "common/io/redis/redis.h"

#include "common/base/clock.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define DEADLINE_US INT64_C(20000000)

static const char *server(void)
{
    /* Nobody sets it while we run. NOLINTNEXTLINE(concurrency-mt-unsafe) */
    return getenv("PAYFACT_TEST_REDIS");
}

struct world {
    struct pay_redis *redis;
    char prefix[32];
};

static struct pay_redis *make(int db, const char *user, const char *password_file)
{
    char url[256];
    struct pay_redis *redis = NULL;
    struct pay_err err = {0};
    const struct pay_redis_options options = {
        .url = url, .budget_ms = 1000, .user = user, .password_file = password_file};

    (void)snprintf(url, sizeof url, "%s/%d", server(), db);
    if (pay_redis_new(&options, &redis, &err) != PAY_OK) {
        (void)fprintf(stderr, "%s: %s\n", err.op, err.text);
    }
    return redis;
}

static int setup(void **state)
{
    struct world *world = calloc(1, sizeof *world);

    *state = world;
    if (server() == NULL) {
        (void)fprintf(stderr,
                      "PAYFACT_TEST_REDIS is not set: give redis://host:port of a test server\n");
        return 1;
    }
    (void)snprintf(world->prefix, sizeof world->prefix, "pay-io-redis-%d", (int)getpid());
    world->redis = make(0, NULL, NULL);
    return world->redis == NULL ? 1 : 0;
}

static int teardown(void **state)
{
    struct world *world = *state;

    pay_redis_free(world->redis);
    free(world);
    return 0;
}

static struct pay_str key_of(const struct world *world, char dst[64], const char *name)
{
    (void)snprintf(dst, 64, "%s-%s", world->prefix, name);
    return pay_str_of(dst);
}

static void set_is_seen_and_expires(void **state)
{
    struct world *world = *state;
    char name[64];
    char value[PAY_REDIS_VALUE_BYTES_MAX + 1];
    size_t len = 0;
    struct pay_str key = key_of(world, name, "one");
    int64_t end_us = pay_clock_mono_us() + DEADLINE_US;

    assert_int_equal(pay_redis_exists(world->redis, key), PAY_REDIS_ABSENT);
    assert_int_equal(pay_redis_get(world->redis, key, value, sizeof value, &len), PAY_REDIS_ABSENT);
    assert_true(pay_redis_set(world->redis, key, PAY_STR("v\r\n1"), 400));
    assert_int_equal(pay_redis_exists(world->redis, key), PAY_REDIS_PRESENT);
    assert_int_equal(pay_redis_get(world->redis, key, value, sizeof value, &len),
                     PAY_REDIS_PRESENT);
    assert_int_equal(len, 4);
    assert_string_equal(value, "v\r\n1");
    assert_int_equal(pay_redis_get(world->redis, key, value, 4, &len), PAY_REDIS_NOT_KNOWN);
    while (pay_redis_exists(world->redis, key) == PAY_REDIS_PRESENT) {
        assert_true(pay_clock_mono_us() < end_us);
        (void)poll(NULL, 0, 20);
    }
    assert_int_equal(pay_redis_exists(world->redis, key), PAY_REDIS_ABSENT);
    assert_int_equal(pay_redis_stats(world->redis).failures, 0);
    assert_int_equal(pay_redis_stats(world->redis).connects, 1);
}

static void many_keys_in_one_trip(void **state)
{
    struct world *world = *state;
    char names[PAY_REDIS_KEYS_MAX][64];
    struct pay_str keys[PAY_REDIS_KEYS_MAX];
    struct pay_str odd[PAY_REDIS_KEYS_MAX / 2];
    enum pay_redis_known known[PAY_REDIS_KEYS_MAX];

    for (size_t i = 0; i < PAY_REDIS_KEYS_MAX; i++) {
        char number[16];
        (void)snprintf(number, sizeof number, "many-%zu", i);
        keys[i] = key_of(world, names[i], number);
        if (i % 2 == 1) {
            odd[i / 2] = keys[i];
        }
    }
    assert_int_equal(
        pay_redis_set_many(world->redis, odd, PAY_REDIS_KEYS_MAX / 2, PAY_STR(""), 60000),
        PAY_REDIS_KEYS_MAX / 2);
    pay_redis_exists_many(world->redis, keys, PAY_REDIS_KEYS_MAX, known);
    for (size_t i = 0; i < PAY_REDIS_KEYS_MAX; i++) {
        assert_int_equal(known[i], i % 2 == 1 ? PAY_REDIS_PRESENT : PAY_REDIS_ABSENT);
    }
}

static void databases_are_apart(void **state)
{
    struct world *world = *state;
    struct pay_redis *other = make(1, NULL, NULL);
    char name[64];
    struct pay_str key = key_of(world, name, "db");

    assert_true(pay_redis_set(other, key, PAY_STR("1"), 10000));
    assert_int_equal(pay_redis_exists(other, key), PAY_REDIS_PRESENT);
    assert_int_equal(pay_redis_exists(world->redis, key), PAY_REDIS_ABSENT);
    pay_redis_free(other);
}

static void a_refused_login_is_not_known(void **state)
{
    char path[] = "/tmp/pay-io-redis-XXXXXX";
    struct pay_err err = {0};
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "sesame\n", 7), 7);
    close(fd);
    struct pay_redis *redis = make(0, "nobody", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(pay_redis_exists(redis, PAY_STR("k")), PAY_REDIS_NOT_KNOWN);
    assert_int_equal(pay_redis_last_error(redis, &err), PAY_RETRY);
    assert_non_null(strstr(err.text, "login refused"));
    assert_null(strstr(err.text, "sesame"));
    pay_redis_free(redis);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_is_seen_and_expires),
        cmocka_unit_test(many_keys_in_one_trip),
        cmocka_unit_test(databases_are_apart),
        cmocka_unit_test(a_refused_login_is_not_known),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
