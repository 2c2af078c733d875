/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/redis/redis.h"

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/io/redis/redis_internal.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/banned.h"

#define BUDGET_MS 4
#define BREAKER_FAILURES 5
#define BREAKER_OPEN_MS 1000
#define COMMAND_OVERHEAD_BYTES 128
#define OUT_BYTES_MAX             \
    ((size_t)PAY_REDIS_KEYS_MAX * \
     (PAY_REDIS_KEY_BYTES_MAX + PAY_REDIS_VALUE_BYTES_MAX + COMMAND_OVERHEAD_BYTES))

/* ---- make ---- */

static int or_default(int value, int by_default)
{
    return value > 0 ? value : by_default;
}

static bool is_address(const char *host)
{
    uint8_t bytes[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

static enum pay_status read_password(struct pay_redis *redis, const char *path, struct pay_err *err)
{
    size_t len = 0;

    if (path == NULL || path[0] == 0) {
        return PAY_OK;
    }
    enum pay_status status =
        pay_file_read(path, redis->password, sizeof redis->password - 1, &len, err);
    while (status == PAY_OK && len > 0 &&
           (redis->password[len - 1] == '\n' || redis->password[len - 1] == '\r')) {
        redis->password[--len] = 0;
    }
    return status;
}

static enum pay_status fill(struct pay_redis *redis, const struct pay_redis_options *options,
                            struct pay_err *err)
{
    int budget_ms = or_default(options->budget_ms, BUDGET_MS);
    enum pay_status status = pay_redis_url_parse(options->url, &redis->url, err);

    if (status == PAY_OK && budget_ms > PAY_REDIS_BUDGET_MS_MAX) {
        status = pay_err_set(err, PAY_FATAL, 0, "redis", "budget is over %d ms",
                             PAY_REDIS_BUDGET_MS_MAX);
    }
    if (status == PAY_OK && options->user != NULL &&
        !pay_str_copy(redis->user, sizeof redis->user, pay_str_of(options->user))) {
        status = pay_err_set(err, PAY_FATAL, 0, "redis", "user is too long");
    }
    if (status == PAY_OK) {
        status = read_password(redis, options->password_file, err);
    }
    if (status == PAY_OK && redis->url.tls) {
        status = pay_redis_tls_new(options, redis->url.host, &redis->tls, err);
    }
    redis->budget_us = (int64_t)budget_ms * 1000;
    redis->breaker_failures = or_default(options->breaker_failures, BREAKER_FAILURES);
    redis->breaker_open_us = (int64_t)or_default(options->breaker_open_ms, BREAKER_OPEN_MS) * 1000;
    redis->out = pay_buf_make(OUT_BYTES_MAX);
    return status;
}

enum pay_status pay_redis_new(const struct pay_redis_options *options, struct pay_redis **ret_redis,
                              struct pay_err *err)
{
    struct pay_redis *redis = pay_mem_new(1, sizeof *redis);

    if (redis == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, "redis", "out of memory");
    }
    enum pay_status status = fill(redis, options, err);
    if (status == PAY_OK && !is_address(redis->url.host)) {
        redis->lookup = pay_redis_lookup_new(redis->url.host);
        if (redis->lookup == NULL) {
            status = pay_err_set(err, PAY_FATAL, 0, "redis", "out of memory");
        }
    }
    if (status != PAY_OK) {
        pay_redis_free(redis);
        return status;
    }
    *ret_redis = redis;
    return PAY_OK;
}

struct pay_redis *pay_redis_free(struct pay_redis *redis)
{
    if (redis != NULL) {
        pay_redis_disconnect(redis);
        pay_redis_tls_free(redis->tls);
        redis->lookup = pay_redis_lookup_free(redis->lookup);
        pay_buf_free(&redis->out);
        pay_mem_wipe(redis->password, sizeof redis->password);
    }
    return pay_mem_free(redis);
}

/* ---- breaker ---- */

static void note_failure(struct pay_redis *redis)
{
    redis->stats.failures++;
    redis->failures++;
    if (redis->failures >= redis->breaker_failures) {
        redis->open_until_us = pay_clock_mono_us() + redis->breaker_open_us;
    }
}

static void note_success(struct pay_redis *redis)
{
    redis->failures = 0;
    redis->open_until_us = 0;
}

/* @return false: answer "not known" now. After the pause one call passes, and its outcome decides.
 */
static bool begin(struct pay_redis *redis, int64_t *ret_deadline_us)
{
    int64_t now_us = pay_clock_mono_us();

    redis->stats.calls++;
    if (now_us < redis->open_until_us) {
        redis->stats.failures++;
        redis->stats.skipped++;
        return false;
    }
    *ret_deadline_us = now_us + redis->budget_us;
    if (redis->ctx == NULL && !pay_redis_connect(redis, *ret_deadline_us)) {
        note_failure(redis);
        return false;
    }
    pay_buf_reset(&redis->out);
    return true;
}

/* Runs what begin() and pay_redis_command() prepared. @return false: nothing is known. */
static bool finish(struct pay_redis *redis, redisReply *replies[], size_t count,
                   int64_t deadline_us)
{
    bool ok = pay_redis_exchange(redis, replies, count, deadline_us);

    for (size_t i = 0; ok && i < count; i++) {
        if (replies[i]->type == REDIS_REPLY_ERROR) { /* LOADING, READONLY, OOM ... */
            (void)pay_err_set(&redis->last, PAY_RETRY, 0, "redis", "server answered: %.32s",
                              replies[i]->str);
            ok = false;
        }
    }
    if (ok) {
        note_success(redis);
    } else {
        note_failure(redis);
    }
    return ok;
}

static void free_replies(redisReply *replies[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (replies[i] != NULL) {
            freeReplyObject(replies[i]);
            replies[i] = NULL;
        }
    }
}

/* ---- calls ---- */

static bool is_key(struct pay_str key)
{
    return key.ptr != NULL && key.len > 0 && key.len <= PAY_REDIS_KEY_BYTES_MAX;
}

static bool are_keys(const struct pay_str keys[], size_t count)
{
    PAY_ASSERT(count <= PAY_REDIS_KEYS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!is_key(keys[i])) {
            return false;
        }
    }
    return count > 0;
}

static void add_key_command(struct pay_redis *redis, const char *name, struct pay_str key)
{
    const char *argv[] = {name, key.ptr};
    const size_t lens[] = {strlen(name), key.len};

    pay_redis_command(redis, 2, argv, lens);
}

static enum pay_redis_known read_exists(const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_INTEGER) {
        return PAY_REDIS_NOT_KNOWN;
    }
    return reply->integer > 0 ? PAY_REDIS_PRESENT : PAY_REDIS_ABSENT;
}

void pay_redis_exists_many(struct pay_redis *redis, const struct pay_str keys[], size_t count,
                           enum pay_redis_known ret_known[])
{
    redisReply *replies[PAY_REDIS_KEYS_MAX] = {NULL};
    int64_t deadline_us = 0;

    for (size_t i = 0; i < count; i++) {
        ret_known[i] = PAY_REDIS_NOT_KNOWN;
    }
    if (!are_keys(keys, count) || !begin(redis, &deadline_us)) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        add_key_command(redis, "EXISTS", keys[i]);
    }
    bool ok = finish(redis, replies, count, deadline_us);
    for (size_t i = 0; ok && i < count; i++) {
        ret_known[i] = read_exists(replies[i]);
    }
    free_replies(replies, count);
}

enum pay_redis_known pay_redis_exists(struct pay_redis *redis, struct pay_str key)
{
    enum pay_redis_known known = PAY_REDIS_NOT_KNOWN;

    pay_redis_exists_many(redis, &key, 1, &known);
    return known;
}

static enum pay_redis_known read_value(const redisReply *reply, char *dst, size_t dst_size,
                                       size_t *ret_len)
{
    if (reply->type == REDIS_REPLY_NIL) {
        return PAY_REDIS_ABSENT;
    }
    if (reply->type != REDIS_REPLY_STRING || reply->len >= dst_size) {
        return PAY_REDIS_NOT_KNOWN;
    }
    memcpy(dst, reply->str, reply->len);
    dst[reply->len] = 0;
    *ret_len = reply->len;
    return PAY_REDIS_PRESENT;
}

enum pay_redis_known pay_redis_get(struct pay_redis *redis, struct pay_str key, char *dst,
                                   size_t dst_size, size_t *ret_len)
{
    enum pay_redis_known known = PAY_REDIS_NOT_KNOWN;
    redisReply *reply = NULL;
    int64_t deadline_us = 0;

    if (!is_key(key) || !begin(redis, &deadline_us)) {
        return known;
    }
    add_key_command(redis, "GET", key);
    if (finish(redis, &reply, 1, deadline_us)) {
        known = read_value(reply, dst, dst_size, ret_len);
    }
    free_replies(&reply, 1);
    return known;
}

size_t pay_redis_set_many(struct pay_redis *redis, const struct pay_str keys[], size_t count,
                          struct pay_str value, int64_t ttl_ms)
{
    redisReply *replies[PAY_REDIS_KEYS_MAX] = {NULL};
    char ttl[24];
    size_t set = 0;
    int64_t deadline_us = 0;

    PAY_ASSERT(ttl_ms > 0);
    if (!are_keys(keys, count) || value.ptr == NULL || value.len > PAY_REDIS_VALUE_BYTES_MAX ||
        !begin(redis, &deadline_us)) {
        return 0;
    }
    int ttl_len = snprintf(ttl, sizeof ttl, "%" PRId64, ttl_ms);
    for (size_t i = 0; i < count; i++) {
        const char *argv[] = {"SET", keys[i].ptr, value.ptr, "PX", ttl};
        const size_t lens[] = {3, keys[i].len, value.len, 2, (size_t)ttl_len};
        pay_redis_command(redis, 5, argv, lens);
    }
    bool ok = finish(redis, replies, count, deadline_us);
    for (size_t i = 0; ok && i < count; i++) {
        set += replies[i]->type == REDIS_REPLY_STATUS ? 1 : 0;
    }
    free_replies(replies, count);
    return set;
}

bool pay_redis_set(struct pay_redis *redis, struct pay_str key, struct pay_str value,
                   int64_t ttl_ms)
{
    return pay_redis_set_many(redis, &key, 1, value, ttl_ms) == 1;
}

enum pay_status pay_redis_last_error(const struct pay_redis *redis, struct pay_err *ret_err)
{
    if (redis->last.status != PAY_OK) {
        *ret_err = redis->last;
    }
    return redis->last.status;
}

struct pay_redis_stats pay_redis_stats(const struct pay_redis *redis)
{
    struct pay_redis_stats stats = redis->stats;

    stats.breaker_open = pay_clock_mono_us() < redis->open_until_us;
    return stats;
}
