/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/redis/redis.h"

#include "common/io/redis/redis_internal.h"

#include <string.h>

#include "common/base/banned.h"

static const char *const op = "redis url";

static bool take_number(struct pay_str text, int64_t min, int64_t max, int *ret_number)
{
    int64_t number = 0;

    if (!pay_str_to_i64(text, &number) || number < min || number > max) {
        return false;
    }
    *ret_number = (int)number;
    return true;
}

static bool take_db(struct pay_str *rest, struct pay_redis_url *url)
{
    const char *slash = memchr(rest->ptr, '/', rest->len);

    if (slash == NULL) {
        return true;
    }
    size_t before = (size_t)(slash - rest->ptr);
    struct pay_str db = {slash + 1, rest->len - before - 1};
    rest->len = before;
    return db.len == 0 || take_number(db, 0, PAY_REDIS_DB_MAX, &url->db);
}

static bool take_host(struct pay_str rest, struct pay_redis_url *url)
{
    struct pay_str host = rest;
    struct pay_str port = {0};
    const char *end = memchr(rest.ptr, ':', rest.len);

    if (rest.len > 0 && rest.ptr[0] == '[') { /* An IPv6 address has colons of its own. */
        end = memchr(rest.ptr, ']', rest.len);
        if (end == NULL) {
            return false;
        }
        host = (struct pay_str){rest.ptr + 1, (size_t)(end - rest.ptr) - 1};
        port = (struct pay_str){end + 1, rest.len - host.len - 2};
        if (port.len > 0 && port.ptr[0] != ':') {
            return false;
        }
    } else if (end != NULL) {
        host.len = (size_t)(end - rest.ptr);
        port = (struct pay_str){end, rest.len - host.len};
    }
    url->port = PAY_REDIS_PORT;
    if (port.len > 0 &&
        !take_number((struct pay_str){port.ptr + 1, port.len - 1}, 1, UINT16_MAX, &url->port)) {
        return false;
    }
    return host.len > 0 && pay_str_copy(url->host, sizeof url->host, host);
}

enum pay_status pay_redis_url_parse(const char *text, struct pay_redis_url *ret_url,
                                    struct pay_err *err)
{
    struct pay_redis_url url = {0};
    struct pay_str rest = pay_str_of(text);

    url.tls = text != NULL && pay_str_starts(rest, "rediss://");
    if (text == NULL || (!url.tls && !pay_str_starts(rest, "redis://"))) {
        return pay_err_set(err, PAY_FATAL, 0, op, "does not start with redis:// or rediss://");
    }
    size_t scheme = strlen(url.tls ? "rediss://" : "redis://");
    rest = (struct pay_str){rest.ptr + scheme, rest.len - scheme};
    if (memchr(rest.ptr, '@', rest.len) != NULL) {
        return pay_err_set(err, PAY_FATAL, 0, op,
                           "must not hold a password: use the password file");
    }
    if (!take_db(&rest, &url) || !take_host(rest, &url)) {
        return pay_err_set(err, PAY_FATAL, 0, op, "is not redis://host:port/db");
    }
    *ret_url = url;
    return PAY_OK;
}
