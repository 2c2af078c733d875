/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/redis/redis.h"

#include "common/base/clock.h"
#include "common/io/redis/redis_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/banned.h"

#define ANSWERS_MAX 2 /* Of AUTH and SELECT. */

static bool fail(struct pay_redis *redis, const char *what)
{
    (void)pay_err_set(&redis->last, PAY_RETRY, errno, "redis", "%s", what);
    pay_redis_disconnect(redis);
    return false;
}

/* hiredis keeps its own text for what it saw. */
static bool fail_ctx(struct pay_redis *redis)
{
    char text[sizeof redis->ctx->errstr];

    (void)snprintf(text, sizeof text, "%s", redis->ctx->errstr);
    return fail(redis, text);
}

static bool wait_fd(struct pay_redis *redis, short events, int64_t deadline_us)
{
    for (;;) {
        struct pollfd fd = {.fd = redis->ctx->fd, .events = events};
        int64_t left_us = deadline_us - pay_clock_mono_us();
        if (left_us <= 0) {
            errno = ETIMEDOUT;
            return fail(redis, "no answer within the budget");
        }
        int ready = poll(&fd, 1, (int)((left_us + 999) / 1000));
        if (ready > 0) {
            return true;
        }
        if (ready < 0 && errno != EINTR) {
            return fail(redis, "poll");
        }
    }
}

void pay_redis_disconnect(struct pay_redis *redis)
{
    if (redis->ctx != NULL) {
        redisFree(redis->ctx);
        redis->ctx = NULL;
    }
}

void pay_redis_command(struct pay_redis *redis, int argc, const char *argv[], const size_t lens[])
{
    char *command = NULL;
    long long len = redisFormatCommandArgv(&command, argc, argv, lens);

    if (len < 0) {
        redis->out.failed = true;
        return;
    }
    pay_buf_add(&redis->out, command, (size_t)len);
    redisFreeCommand(command);
}

/* Not hiredis's own write: the signal that a closed socket raises would end the process. */
static bool send_plain(struct pay_redis *redis, int64_t deadline_us)
{
    size_t sent = 0;

    while (sent < redis->out.len) {
        ssize_t now = send(redis->ctx->fd, redis->out.data + sent, redis->out.len - sent,
                           MSG_NOSIGNAL | MSG_DONTWAIT);
        if (now >= 0) {
            sent += (size_t)now;
            continue;
        }
        if (errno != EAGAIN && errno != EINTR) { /* EWOULDBLOCK is the same on Linux. */
            return fail(redis, "send");
        }
        if (!wait_fd(redis, POLLOUT, deadline_us)) {
            return false;
        }
    }
    return true;
}

static bool send_tls(struct pay_redis *redis, int64_t deadline_us)
{
    int done = 0;

    if (redisAppendFormattedCommand(redis->ctx, (const char *)redis->out.data, redis->out.len) !=
        REDIS_OK) {
        return fail_ctx(redis);
    }
    for (;;) {
        if (redisBufferWrite(redis->ctx, &done) != REDIS_OK) {
            return fail_ctx(redis);
        }
        if (done != 0) {
            return true;
        }
        if (!wait_fd(redis, POLLOUT, deadline_us)) {
            return false;
        }
    }
}

static bool read_reply(struct pay_redis *redis, redisReply **ret_reply, int64_t deadline_us)
{
    void *reply = NULL;

    for (;;) {
        if (redisGetReplyFromReader(redis->ctx, &reply) != REDIS_OK) {
            return fail_ctx(redis);
        }
        if (reply != NULL) {
            *ret_reply = reply;
            return true;
        }
        if (!wait_fd(redis, POLLIN, deadline_us)) {
            return false;
        }
        if (redisBufferRead(redis->ctx) != REDIS_OK) {
            return fail_ctx(redis);
        }
    }
}

bool pay_redis_exchange(struct pay_redis *redis, redisReply *replies[], size_t count,
                        int64_t deadline_us)
{
    for (size_t i = 0; i < count; i++) {
        replies[i] = NULL;
    }
    if (redis->out.failed) {
        errno = ENOMEM;
        return fail(redis, "commands over their maximum");
    }
    if (redis->tls != NULL ? !send_tls(redis, deadline_us) : !send_plain(redis, deadline_us)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!read_reply(redis, &replies[i], deadline_us)) {
            return false;
        }
    }
    return true;
}

/* ---- connect ---- */

static bool find_address(struct pay_redis *redis, char dst[PAY_REDIS_HOST_BYTES_MAX])
{
    char address[INET6_ADDRSTRLEN];

    if (redis->lookup == NULL) {
        memcpy(dst, redis->url.host, PAY_REDIS_HOST_BYTES_MAX);
        return true;
    }
    if (!pay_redis_lookup_get(redis->lookup, address)) {
        pay_redis_lookup_refresh(redis->lookup);
        errno = EAGAIN;
        return fail(redis, "host name is not resolved yet");
    }
    return pay_str_copy(dst, PAY_REDIS_HOST_BYTES_MAX, pay_str_of(address));
}

static bool open_socket(struct pay_redis *redis, int64_t deadline_us)
{
    char address[PAY_REDIS_HOST_BYTES_MAX];
    int error = 0;
    socklen_t len = sizeof error;

    if (!find_address(redis, address)) {
        return false;
    }
    redis->ctx = redisConnectNonBlock(address, redis->url.port);
    if (redis->ctx == NULL) {
        errno = ENOMEM;
        return fail(redis, "out of memory");
    }
    if (redis->ctx->err != 0) {
        return fail_ctx(redis);
    }
    if (!wait_fd(redis, POLLOUT, deadline_us)) {
        return false;
    }
    if (getsockopt(redis->ctx->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0) {
        errno = error;
        return fail(redis, "connect");
    }
    return redis->tls == NULL || pay_redis_tls_start(redis) || fail_ctx(redis);
}

static size_t add_login(struct pay_redis *redis)
{
    const char *user = redis->user[0] != 0 ? redis->user : "default";
    const char *argv[] = {"AUTH", user, redis->password};
    const size_t lens[] = {4, strlen(user), strlen(redis->password)};
    const char *no_user[] = {"AUTH", redis->password};
    const size_t no_user_lens[] = {4, strlen(redis->password)};

    if (redis->password[0] == 0) {
        return 0;
    }
    if (redis->user[0] == 0) { /* The only form that servers below 6 know. */
        pay_redis_command(redis, 2, no_user, no_user_lens);
    } else {
        pay_redis_command(redis, 3, argv, lens);
    }
    return 1;
}

static size_t add_select(struct pay_redis *redis)
{
    char db[16];
    const char *argv[] = {"SELECT", db};

    if (redis->url.db == 0) {
        return 0;
    }
    int len = snprintf(db, sizeof db, "%d", redis->url.db);
    const size_t lens[] = {6, (size_t)len};
    pay_redis_command(redis, 2, argv, lens);
    return 1;
}

static bool is_ok(const redisReply *reply)
{
    return reply != NULL && reply->type == REDIS_REPLY_STATUS;
}

/* A server's error text names the user at most, never the password. */
static bool log_in(struct pay_redis *redis, int64_t deadline_us)
{
    redisReply *answers[ANSWERS_MAX] = {NULL};
    char why[sizeof redis->last.text] = "";

    pay_buf_reset(&redis->out);
    size_t count = add_login(redis);
    count += add_select(redis);
    bool ok = count == 0 || pay_redis_exchange(redis, answers, count, deadline_us);
    pay_buf_reset(&redis->out);
    bool answered = ok;
    for (size_t i = 0; i < count; i++) {
        if (answered && ok && !is_ok(answers[i])) {
            ok = false;
            (void)snprintf(why, sizeof why, "login refused: %s",
                           answers[i]->str != NULL ? answers[i]->str : "?");
        }
        if (answers[i] != NULL) {
            freeReplyObject(answers[i]);
        }
    }
    errno = EACCES;
    return ok || (answered ? fail(redis, why) : false);
}

bool pay_redis_connect(struct pay_redis *redis, int64_t deadline_us)
{
    redis->stats.connects++;
    if (open_socket(redis, deadline_us) && log_in(redis, deadline_us)) {
        return true;
    }
    pay_redis_lookup_refresh(redis->lookup); /* The name may stand for another address now. */
    return false;
}
