/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file redis.h
 * @brief Redis as a hint that saves a trip: every failure is "not known", never an error.
 *
 * No call waits longer than the budget, connecting and name look-up included (look-ups run on a
 * thread of their own and until one has ended nothing is known). After some failures in a row a
 * breaker opens: calls then answer "not known" at once; after a while one call may try again.
 *
 * Ownership: text is copied at new; keys are borrowed for the call.
 * Threads: one handle per thread; it has no lock, because waiting for one would break the budget.
 * Failure: pay_redis_new() refuses bad settings with PAY_FATAL; nothing else can fail.
 */
#ifndef PAY_IO_REDIS_REDIS_H
#define PAY_IO_REDIS_REDIS_H

#include "common/base/err.h"
#include "common/base/str.h"

#define PAY_REDIS_KEY_BYTES_MAX 512
#define PAY_REDIS_VALUE_BYTES_MAX 1024
#define PAY_REDIS_KEYS_MAX 128 /**< In one pipelined check. */
#define PAY_REDIS_BUDGET_MS_MAX 1000

struct pay_redis;

enum pay_redis_known {
    PAY_REDIS_NOT_KNOWN, /**< Redis did not say: go on as if it did not exist. */
    PAY_REDIS_ABSENT,
    PAY_REDIS_PRESENT,
    PAY_REDIS_KNOWN_COUNT
};

/** Text is borrowed for the call of pay_redis_new(). */
struct pay_redis_options {
    const char *url; /**< redis://host:port/db or rediss://...; an IPv6 host in brackets. */
    const char *password_file; /**< NULL or "": none. */
    const char *user;          /**< ACL user for the password; NULL: the default user. */
    const char
        *ca_file;  /**< rediss only; NULL: the system's. hiredis checks who signed, not the name. */
    int budget_ms; /**< 0: 4. For a whole call. */
    int breaker_failures; /**< 0: 5. So many in a row open the breaker. */
    int breaker_open_ms;  /**< 0: 1000. */
};

struct pay_redis_stats {
    uint64_t calls;
    uint64_t failures; /**< Calls that ended not known, those below included. */
    uint64_t skipped;  /**< Answered not known at once because the breaker was open. */
    uint64_t connects;
    bool breaker_open;
};

/**
 * @brief Make a handle; connects at first use.
 * @return PAY_FATAL: bad URL, unreadable password file, or rediss:// with a hiredis that has no
 * TLS.
 */
PAY_MUST_CHECK enum pay_status pay_redis_new(const struct pay_redis_options *options,
                                             struct pay_redis **ret_redis, struct pay_err *err);
/** @return always NULL; copes with NULL. */
struct pay_redis *pay_redis_free(struct pay_redis *redis);

/** @brief Does @p key exist? */
enum pay_redis_known pay_redis_exists(struct pay_redis *redis, struct pay_str key);
/** @brief The same for @p count keys (at most PAY_REDIS_KEYS_MAX) in one round trip. */
void pay_redis_exists_many(struct pay_redis *redis, const struct pay_str keys[], size_t count,
                           enum pay_redis_known ret_known[]);
/**
 * @brief Value of @p key, NUL-terminated into @p dst (PAY_REDIS_VALUE_BYTES_MAX + 1 is always
 * enough).
 * @return PRESENT with *ret_len set; NOT_KNOWN also when it does not fit.
 */
enum pay_redis_known pay_redis_get(struct pay_redis *redis, struct pay_str key, char *dst,
                                   size_t dst_size, size_t *ret_len);
/** @brief SET key value PX ttl_ms. @return false: not known to have been set. */
bool pay_redis_set(struct pay_redis *redis, struct pay_str key, struct pay_str value,
                   int64_t ttl_ms);
/** @brief The same for @p count keys with one value in one round trip. @return number known to be
 * set. */
size_t pay_redis_set_many(struct pay_redis *redis, const struct pay_str keys[], size_t count,
                          struct pay_str value, int64_t ttl_ms);
/** @brief Why the latest failure was one, for a log line; PAY_OK when there was none. */
enum pay_status pay_redis_last_error(const struct pay_redis *redis, struct pay_err *ret_err);
struct pay_redis_stats pay_redis_stats(const struct pay_redis *redis);

#endif /* PAY_IO_REDIS_REDIS_H */
