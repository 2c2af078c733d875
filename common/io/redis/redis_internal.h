/* SPDX-License-Identifier: Apache-2.0 */
/** @file redis_internal.h @brief What the files of this folder share; nobody else includes it. */
#ifndef PAY_IO_REDIS_REDIS_INTERNAL_H
#define PAY_IO_REDIS_REDIS_INTERNAL_H

#include "common/base/buf.h"
#include "common/io/redis/redis.h"

#include <hiredis/hiredis.h>
#include <netinet/in.h>

#define PAY_REDIS_HOST_BYTES_MAX 256
#define PAY_REDIS_SECRET_BYTES_MAX 512
#define PAY_REDIS_DB_MAX 65535
#define PAY_REDIS_PORT 6379

#if !defined(PAY_REDIS_TLS)
#define PAY_REDIS_TLS 0 /* Set by the build where the library can. */
#endif

struct pay_redis_url {
    char host[PAY_REDIS_HOST_BYTES_MAX];
    int port;
    int db;
    bool tls;
};

/* Host name to numeric address on a thread of its own; shared with that thread. */
struct pay_redis_lookup;

struct pay_redis {
    redisContext *ctx;
    struct pay_redis_url url;
    struct pay_redis_lookup *lookup; /* NULL: the host is an address. */
    char user[PAY_REDIS_HOST_BYTES_MAX];
    char password[PAY_REDIS_SECRET_BYTES_MAX];
    void *tls; /* The library's TLS settings; NULL: plain. */
    int64_t budget_us;
    int64_t breaker_open_us;
    int breaker_failures;
    int failures;          /* In a row. */
    int64_t open_until_us; /* 0: closed. */
    struct pay_buf out;    /* Commands of this call. */
    struct pay_redis_stats stats;
    struct pay_err last;
};

PAY_MUST_CHECK enum pay_status pay_redis_url_parse(const char *text, struct pay_redis_url *ret_url,
                                                   struct pay_err *err);

/* @return NULL: out of memory. Starts looking up at once. */
struct pay_redis_lookup *pay_redis_lookup_new(const char *host);
/* A look-up under way ends by itself. @return always NULL; copes with NULL. */
struct pay_redis_lookup *pay_redis_lookup_free(struct pay_redis_lookup *lookup);
/* Ask again, unless that is under way. */
void pay_redis_lookup_refresh(struct pay_redis_lookup *lookup);
/* @return false: not known yet. */
bool pay_redis_lookup_get(struct pay_redis_lookup *lookup, char dst[INET6_ADDRSTRLEN]);

/* ---- one connection; every wait ends at the deadline ---- */

/* Connect, log in, select. @return false with redis->last set and nothing left open. */
bool pay_redis_connect(struct pay_redis *redis, int64_t deadline_us);
void pay_redis_disconnect(struct pay_redis *redis);
/* Append one command to redis->out. */
void pay_redis_command(struct pay_redis *redis, int argc, const char *argv[], const size_t lens[]);
/*
 * Send redis->out and read @p count replies, which the caller frees; what did not come is NULL.
 * @return false with redis->last set; the connection is then closed, for its replies are out of
 * step.
 */
bool pay_redis_exchange(struct pay_redis *redis, redisReply *replies[], size_t count,
                        int64_t deadline_us);

/* ---- TLS, where hiredis has it ---- */

bool pay_redis_tls_can(void);
PAY_MUST_CHECK enum pay_status pay_redis_tls_new(const struct pay_redis_options *options,
                                                 const char *host, void **ret_tls,
                                                 struct pay_err *err);
void pay_redis_tls_free(void *tls);
/* Begin TLS on a connected socket; the handshake goes on with the first bytes. */
bool pay_redis_tls_start(struct pay_redis *redis);

#endif /* PAY_IO_REDIS_REDIS_INTERNAL_H */
