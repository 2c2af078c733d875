/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/redis/redis.h"

#include "common/base/mem.h"
#include "common/io/redis/redis_internal.h"

#if PAY_REDIS_TLS

#include <hiredis/hiredis_ssl.h>

#include "common/base/banned.h"

bool pay_redis_tls_can(void)
{
    return true;
}

enum pay_status pay_redis_tls_new(const struct pay_redis_options *options, const char *host,
                                  void **ret_tls, struct pay_err *err)
{
    redisSSLContextError why = REDIS_SSL_CTX_NONE;
    bool has_ca = options->ca_file != NULL && options->ca_file[0] != 0;

    (void)redisInitOpenSSL(); /* Needed by old OpenSSL only; repeating it does no harm. */
    redisSSLContext *tls = redisCreateSSLContext(
        has_ca ? options->ca_file : NULL, has_ca ? NULL : "/etc/ssl/certs", NULL, NULL, host, &why);
    if (tls == NULL) {
        return pay_err_set(err, PAY_FATAL, (int)why, "redis tls", "%s",
                           redisSSLContextGetError(why));
    }
    *ret_tls = tls;
    return PAY_OK;
}

void pay_redis_tls_free(void *tls)
{
    if (tls != NULL) {
        redisFreeSSLContext(tls);
    }
}

bool pay_redis_tls_start(struct pay_redis *redis)
{
    return redisInitiateSSLWithContext(redis->ctx, redis->tls) == REDIS_OK;
}

#else

#include "common/base/banned.h"

bool pay_redis_tls_can(void)
{
    return false;
}

enum pay_status pay_redis_tls_new(const struct pay_redis_options *options, const char *host,
                                  void **ret_tls, struct pay_err *err)
{
    (void)options;
    (void)host;
    (void)ret_tls;
    return pay_err_set(
        err, PAY_FATAL, 0, "redis tls",
        "rediss:// needs hiredis 1.0 with hiredis_ssl, this program has %d.%d without",
        HIREDIS_MAJOR, HIREDIS_MINOR);
}

void pay_redis_tls_free(void *tls)
{
    (void)tls;
}

bool pay_redis_tls_start(struct pay_redis *redis)
{
    (void)redis;
    return false;
}

#endif
