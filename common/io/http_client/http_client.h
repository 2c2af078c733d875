/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file http_client.h
 * @brief Calls a PSP (or a schema registry) and says exactly what is known about the delivery of
 * the request.
 *
 * A MONEY call is sent at most once: on a fresh connection, over HTTP/1.1, without redirects,
 * without Expect, and a callback just before the first byte aborts it when it is too late or a
 * second send. A QUERY may reuse a connection, and libcurl may repeat it by itself.
 *
 * Ownership: a result owns its bytes until pay_http_result_free(). Threads: one client per thread,
 * not shared; the shared TLS cache is. Failure: a call that was refused, failed or is unclear is a
 * value (struct pay_http_result); only misuse of options is a status.
 *
 *     pay_http_client_new(&opts, &client, &err);
 *     pay_http_client_call(client, &call, &result);  -> result.delivery
 *     pay_http_result_free(&result);
 */
#ifndef PAY_IO_HTTP_CLIENT_H
#define PAY_IO_HTTP_CLIENT_H

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/base/str.h"

#define PAY_HTTP_CALL_HEADERS_MAX 32           /**< Of a request. */
#define PAY_HTTP_RESULT_HEADERS_MAX 64         /**< Of an answer; the rest is dropped. */
#define PAY_HTTP_RESULT_HEADER_BYTES_MAX 16384 /**< Of all kept answer headers. */
#define PAY_HTTP_CALL_BODY_BYTES_MAX 1048576   /**< Of a request. */

struct pay_http_client;
struct pay_http_shared;

enum pay_http_kind {
    PAY_HTTP_MONEY, /**< At most one send, ever. */
    PAY_HTTP_QUERY, /**< Safe to repeat. */
    PAY_HTTP_KIND_COUNT
};

enum pay_http_delivery {
    PAY_HTTP_NOT_SENT, /**< Certain: no byte of the request left. */
    PAY_HTTP_UNKNOWN,  /**< May have arrived; no complete answer. */
    PAY_HTTP_ANSWERED, /**< A complete, well-formed HTTP answer of any status. */
    PAY_HTTP_DELIVERY_COUNT
};

struct pay_http_call_header {
    struct pay_str name;
    struct pay_str value;
};

/** One request. Borrowed for the call. */
struct pay_http_call {
    enum pay_http_kind kind;
    const char *method;                         /**< "GET", "POST" ... */
    const char *url;                            /**< https://; http:// only as options allow. */
    const struct pay_http_call_header *headers; /**< CR, LF or NUL inside is NOT_SENT. */
    size_t header_count;
    struct pay_bytes body;       /**< Absent: none. */
    unsigned connect_timeout_ms; /**< DNS, TCP and TLS; 0: 3 s. */
    unsigned total_timeout_ms;   /**< Everything; 0: 10 s. */
    int64_t not_after_mono_us; /**< Monotonic clock; no first byte leaves after it. 0: no limit. */
};

struct pay_http_result {
    enum pay_http_delivery delivery;
    int status;            /**< HTTP status when ANSWERED, else 0. */
    struct pay_bytes body; /**< When ANSWERED. */
    struct pay_http_call_header headers[PAY_HTTP_RESULT_HEADERS_MAX]; /**< When ANSWERED. */
    size_t header_count;
    int curl_code;  /**< libcurl's own result, 0: none. */
    char text[160]; /**< What went wrong; no payload, no secret. "" when ANSWERED. */
    int64_t elapsed_us;
    struct pay_buf body_buf;   /**< Backs body. */
    struct pay_buf header_buf; /**< Backs headers. */
};

struct pay_http_client_options {
    const char *ca_file;       /**< PEM; NULL: the system's. */
    bool allow_plain_loopback; /**< http:// to 127.0.0.1, localhost, [::1]: for simulators. */
    bool allow_plain; /**< http:// to any host: for a service inside one's own network, never a PSP.
                       */
    size_t body_bytes_max;          /**< Of an answer; 0: 1 MiB. Larger: UNKNOWN. */
    struct pay_http_shared *shared; /**< TLS sessions shared between clients; NULL: none. */
};

/** @brief TLS session cache shared by the clients of several threads; outlives them. */
PAY_MUST_CHECK enum pay_status pay_http_shared_new(struct pay_http_shared **ret_shared,
                                                   struct pay_err *err);
struct pay_http_shared *pay_http_shared_free(struct pay_http_shared *shared);

/** @return PAY_FATAL: an option is unusable (CA file unreadable) or libcurl is without TLS. */
PAY_MUST_CHECK enum pay_status pay_http_client_new(const struct pay_http_client_options *opts,
                                                   struct pay_http_client **ret_client,
                                                   struct pay_err *err);
/** @return always NULL; copes with NULL. */
struct pay_http_client *pay_http_client_free(struct pay_http_client *client);

/** @brief Do it. Blocks up to total_timeout_ms. @p ret_result is always filled; free it. */
void pay_http_client_call(struct pay_http_client *client, const struct pay_http_call *call,
                          struct pay_http_result *ret_result);
/** Copes with a zeroed one and with a second call. */
void pay_http_result_free(struct pay_http_result *result);
/** @return the first answer header of that name (without case); absent when there is none. */
struct pay_str pay_http_result_header(const struct pay_http_result *result, const char *name);
/** @return static name such as "NOT_SENT"; never NULL. */
const char *pay_http_delivery_name(enum pay_http_delivery delivery);

#endif /* PAY_IO_HTTP_CLIENT_H */
