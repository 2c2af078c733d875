/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file http_server.h
 * @brief An HTTP/1.x server that hands over complete, unambiguous requests and takes answers later.
 *
 * What arrives is checked before anybody sees it: two Content-Lengths, Content-Length together with
 * Transfer-Encoding, folded headers, bare CR or LF and the like are 400; sizes are bounded (413,
 * 431) before more is read; every request has an absolute deadline from its first byte to its
 * answer (503).
 *
 * Ownership: a request given to the handler belongs to the application until it calls
 * pay_http_request_answer(), exactly once, whatever happened meanwhile; its view dies with that
 * call. Threads: both callbacks run on the server's threads and must not block; the answer may come
 * from any thread, also from inside the handler and also after pay_http_server_stop(). Failure:
 * start-up fails with a class; later failures end one connection and are counted.
 *
 *     pay_http_server_start(&opts, &server, &err);
 *     ... handler(ctx, req, view) -> pay_http_request_answer(req, &answer) ...
 *     server = pay_http_server_stop(server);
 */
#ifndef PAY_IO_HTTP_SERVER_H
#define PAY_IO_HTTP_SERVER_H

#include "common/base/err.h"
#include "common/base/str.h"

#define PAY_HTTP_SERVER_HEADERS_MAX 100       /**< More are 431. */
#define PAY_HTTP_SERVER_HEAD_BYTES_MAX 32768  /**< Request line and headers; more is 431. */
#define PAY_HTTP_SERVER_ANSWER_HEADERS_MAX 16 /**< Extra headers of an answer. */

struct pay_http_server;
struct pay_http_request;

struct pay_http_header {
    struct pay_str name; /**< As sent; compare without case: pay_http_header_find(). */
    struct pay_str value;
};

/** A request as received. All text is NUL-terminated and borrowed until the answer. */
struct pay_http_view {
    struct pay_str method;
    struct pay_str path;  /**< Raw: as sent, percent signs and all, without the query. */
    struct pay_str query; /**< Raw, without the question mark; absent when there is none. */
    const struct pay_http_header *headers; /**< In the order sent, duplicates kept. */
    size_t header_count;
    struct pay_bytes body;    /**< Exact bytes; empty (not absent) in the head callback. */
    int64_t received_at_us;   /**< Wall clock when the request line was there. */
    int64_t deadline_mono_us; /**< pay_clock_mono_us() at which the server answers 503 by itself. */
    struct pay_str peer;      /**< Numeric address of the other end, without port. */
};

/** What to answer. Everything is borrowed for the call and copied. */
struct pay_http_answer {
    unsigned status;                       /**< 200..599. */
    const char *content_type;              /**< NULL: none. */
    struct pay_bytes body;                 /**< Absent or empty: no body. */
    const struct pay_http_header *headers; /**< At most PAY_HTTP_SERVER_ANSWER_HEADERS_MAX. */
    size_t header_count;
    bool close; /**< Close the connection after it. */
};

/**
 * Called once the headers are there and before any byte of the body is read.
 * @return true: read the body, then call the handler. false: answer with @p ret_answer at once;
 * what it points to must live until the server's thread has copied it (static text, or
 * thread-local).
 */
typedef bool pay_http_head_fn(void *ctx, const struct pay_http_view *view,
                              struct pay_http_answer *ret_answer);

/** Called with the complete request. Must lead to exactly one pay_http_request_answer(). */
typedef void pay_http_handler_fn(void *ctx, struct pay_http_request *req,
                                 const struct pay_http_view *view);

struct pay_http_server_options {
    const char *bind;            /**< Numeric IPv4 or IPv6 address; NULL: 127.0.0.1. */
    uint16_t port;               /**< 0: the kernel chooses, see pay_http_server_port(). */
    unsigned threads;            /**< 0: 1. */
    unsigned connections_max;    /**< 0: 4096; more are closed at once. */
    size_t body_bytes_max;       /**< 0: 256 KiB; more is 413. */
    size_t bodies_bytes_max;     /**< 0: 32 MiB over all requests in hand; more is 503. */
    unsigned request_timeout_ms; /**< 0: 10 s, from the request line to the answer. */
    unsigned idle_timeout_ms;    /**< 0: 30 s; a connection without a complete request head. */
    pay_http_head_fn *head;      /**< NULL: every body is read. */
    pay_http_handler_fn *handler;
    void *ctx; /**< For both. Borrowed until stop. */
};

/** Counters since start, for metrics. */
struct pay_http_server_stats {
    uint64_t requests;     /**< Given to the handler. */
    uint64_t malformed;    /**< 400 */
    uint64_t too_large;    /**< 413, 431 */
    uint64_t turned_away;  /**< Answered by the head callback. */
    uint64_t deadlines;    /**< 503 or closed by the sweeper. */
    uint64_t overload;     /**< 503 because bodies_bytes_max was reached. */
    uint64_t late_answers; /**< Answers for a request that had ended. */
    uint64_t connections;  /**< Open now. */
    uint64_t in_hand;      /**< Requests with the application now. */
};

/** @return PAY_FATAL: bad option, address in use, no thread. */
PAY_MUST_CHECK enum pay_status pay_http_server_start(const struct pay_http_server_options *opts,
                                                     struct pay_http_server **ret_server,
                                                     struct pay_err *err);
/** The port that is listened on. */
uint16_t pay_http_server_port(const struct pay_http_server *server);
struct pay_http_server_stats pay_http_server_stats(struct pay_http_server *server);
/** @brief Stop listening; requests in hand go on. For a drain. May be called from any thread. */
void pay_http_server_quiesce(struct pay_http_server *server);
/** @brief Wait until the application holds no request. @return false at the time-out. May block. */
bool pay_http_server_wait_idle(struct pay_http_server *server, unsigned timeout_ms);
/**
 * @brief Stop: what is still in hand is answered 503, connections are closed, threads joined.
 * @return always NULL; copes with NULL. May block. No callback runs after it returned.
 */
struct pay_http_server *pay_http_server_stop(struct pay_http_server *server);

/**
 * @brief Give the one answer; @p req and its view are gone afterwards. Never blocks on the network.
 * @return false when it came too late (deadline, stopped): somebody else answered already.
 * A client that hung up is not noticed here.
 */
bool pay_http_request_answer(struct pay_http_request *req, const struct pay_http_answer *answer);

/** @return the first header of that name (without case), or NULL. */
const struct pay_http_header *pay_http_header_find(const struct pay_http_header *headers,
                                                   size_t count, const char *name);

#endif /* PAY_IO_HTTP_SERVER_H */
