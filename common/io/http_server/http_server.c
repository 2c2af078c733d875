/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/http_server/http_server.h"

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/io/http_server/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/banned.h"

#define POOL_BYTES \
    65536 /* Per connection; touched lazily. Holds the largest head and an answer's. */
#define BACKLOG 1024
#define BODY_BYTES_DEFAULT UINT64_C(262144)
#define BODIES_BYTES_DEFAULT UINT64_C(33554432)
#define FLUSH_MS_MAX 1000 /* At stop: how long answers already given may take to leave. */

static const char op_start[] = "start http server";

static uint64_t or_default(uint64_t value, uint64_t by_default)
{
    return value != 0 ? value : by_default;
}

static void set_clock(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    PAY_ASSERT(pthread_condattr_init(&attr) == 0);
    PAY_ASSERT(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    PAY_ASSERT(pthread_cond_init(cond, &attr) == 0);
    (void)pthread_condattr_destroy(&attr);
}

static struct pay_http_server *server_new(const struct pay_http_server_options *opts)
{
    struct pay_http_server *server = pay_mem_new(1, sizeof *server);

    if (server == NULL) {
        return NULL;
    }
    *server = (struct pay_http_server){
        .head = opts->head,
        .handler = opts->handler,
        .ctx = opts->ctx,
        .body_bytes_max = or_default(opts->body_bytes_max, BODY_BYTES_DEFAULT),
        .bodies_bytes_max = or_default(opts->bodies_bytes_max, BODIES_BYTES_DEFAULT),
        .request_timeout_us = (int64_t)or_default(opts->request_timeout_ms, 10000) * 1000,
        .idle_timeout_us = (int64_t)or_default(opts->idle_timeout_ms, 30000) * 1000,
        .quiesced_fd = -1,
        .refs = 1,
    };
    PAY_ASSERT(pthread_mutex_init(&server->lock, NULL) == 0);
    set_clock(&server->changed);
    set_clock(&server->wake);
    return server;
}

void pay_http_server_destroy(struct pay_http_server *server)
{
    while (server->free_requests != NULL) {
        struct pay_http_request *req = server->free_requests;
        server->free_requests = req->next_free;
        pay_http_request_destroy(req);
    }
    (void)pthread_cond_destroy(&server->changed);
    (void)pthread_cond_destroy(&server->wake);
    (void)pthread_mutex_destroy(&server->lock);
    (void)pay_mem_free(server);
}

/* Our own socket, so that every failure has a text and the port can be read before the first
 * accept. */
static enum pay_status open_listener(const struct pay_http_server_options *opts, int *ret_fd,
                                     struct pay_err *err)
{
    const char *bind_to = opts->bind == NULL ? "127.0.0.1" : opts->bind;
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *at = NULL;
    char port[8];
    const int on = 1;

    (void)snprintf(port, sizeof port, "%u", (unsigned)opts->port);
    const int rc = getaddrinfo(bind_to, port, &hints, &at);
    if (rc != 0) {
        return pay_err_set(err, PAY_FATAL, rc, op_start, "\"%s\" is not a numeric address",
                           bind_to);
    }
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool ok = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0 &&
                    bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
    const int code = errno;
    freeaddrinfo(at);
    if (!ok) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return pay_err_set(err, PAY_FATAL, code, op_start,
                           "cannot listen on \"%s\" port %u: errno %d", bind_to,
                           (unsigned)opts->port, code);
    }
    *ret_fd = fd;
    return PAY_OK;
}

static uint16_t port_of(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {0};
    socklen_t len = sizeof address;

    PAY_ASSERT(fd >= 0 && getsockname(fd, &address.any, &len) == 0);
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

static struct MHD_Daemon *start_daemon(struct pay_http_server *server,
                                       const struct pay_http_server_options *opts, int fd)
{
    const struct MHD_OptionItem items[] = {
        {MHD_OPTION_CONNECTION_LIMIT, (intptr_t)or_default(opts->connections_max, 4096), NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, POOL_BYTES, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, 0,
         NULL}, /* It only sees inactivity: ours is the sweeper. */
        {MHD_OPTION_LISTEN_SOCKET, fd, NULL},
        {MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
#if MHD_VERSION >= 0x00097701
        {MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1, NULL}, /* Newer ones refuse folding by themselves. */
#endif
        {MHD_OPTION_THREAD_POOL_SIZE, opts->threads > 1 ? (intptr_t)opts->threads : 0, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    return MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
                            pay_http_on_access, server,                                    /* */
                            MHD_OPTION_ARRAY, items,                                       /* */
                            MHD_OPTION_URI_LOG_CALLBACK, pay_http_on_request_line, server, /* */
                            MHD_OPTION_NOTIFY_CONNECTION, pay_http_on_connection, server,  /* */
                            MHD_OPTION_NOTIFY_COMPLETED, pay_http_on_completed, server,    /* */
                            MHD_OPTION_END);
}

enum pay_status pay_http_server_start(const struct pay_http_server_options *opts,
                                      struct pay_http_server **ret_server, struct pay_err *err)
{
    int fd = -1;
    enum pay_status status = PAY_FATAL;
    struct pay_http_server *server = server_new(opts);

    PAY_ASSERT(opts->handler != NULL);
    if (server == NULL) {
        return pay_err_set(err, PAY_FATAL, ENOMEM, op_start, "out of memory");
    }
    status = open_listener(opts, &fd, err);
    if (status != PAY_OK) {
        goto out;
    }
    server->port = port_of(fd);
    server->daemon = start_daemon(server, opts, fd);
    if (server->daemon == NULL) {
        status = pay_err_set(err, PAY_FATAL, 0, op_start, "libmicrohttpd does not start");
        goto out;
    }
    fd = -1; /* The daemon's now. */
    const int rc = pthread_create(&server->sweeper, NULL, pay_http_sweep, server);
    server->has_sweeper = rc == 0;
    if (rc != 0) {
        status = pay_err_set(err, PAY_FATAL, rc, op_start, "no thread for the sweeper");
        goto out;
    }
    *ret_server = server;
    server = NULL;
out:
    (void)pay_http_server_stop(server);
    if (fd >= 0) {
        (void)close(fd);
    }
    return status;
}

uint16_t pay_http_server_port(const struct pay_http_server *server)
{
    return server->port;
}

struct pay_http_server_stats pay_http_server_stats(struct pay_http_server *server)
{
    pthread_mutex_lock(&server->lock);
    const struct pay_http_server_stats stats = server->stats;
    pthread_mutex_unlock(&server->lock);
    return stats;
}

void pay_http_server_quiesce(struct pay_http_server *server)
{
    pthread_mutex_lock(&server->lock);
    const bool is_first = !server->quiesced;
    server->quiesced = true;
    pthread_mutex_unlock(&server->lock);
    if (is_first) {
        server->quiesced_fd = MHD_quiesce_daemon(server->daemon);
        if (server->quiesced_fd >= 0) {
            /* Who waits in the backlog is refused now, not left hanging until the process ends. */
            (void)shutdown(server->quiesced_fd, SHUT_RDWR);
        }
    }
}

/* Needs the lock. @return false at the deadline. */
static bool wait_until(struct pay_http_server *server, const size_t *counter, unsigned timeout_ms)
{
    struct timespec at;
    int rc = 0;

    pay_http_deadline_at(pay_clock_mono_us() + (int64_t)timeout_ms * 1000, &at);
    while (*counter > 0 && rc == 0) {
        rc = pthread_cond_timedwait(&server->changed, &server->lock, &at);
    }
    return *counter == 0;
}

bool pay_http_server_wait_idle(struct pay_http_server *server, unsigned timeout_ms)
{
    pthread_mutex_lock(&server->lock);
    const bool is_idle = wait_until(server, &server->active, timeout_ms);
    pthread_mutex_unlock(&server->lock);
    return is_idle;
}

/* Needs the lock. @return a request that the application still has, held once more; or NULL. */
static struct pay_http_request *next_suspended(struct pay_http_server *server)
{
    for (struct pay_http_connection *at = server->connections; at != NULL; at = at->next) {
        if (at->req != NULL && at->req->phase == PAY_HTTP_PHASE_SUSPENDED) {
            at->req->holders++;
            return at->req;
        }
    }
    return NULL;
}

/* Needs the lock. From here on no request is suspended: on_complete() sees stopping. */
static void answer_all(struct pay_http_server *server)
{
    for (struct pay_http_request *req = next_suspended(server); req != NULL;
         req = next_suspended(server)) {
        pthread_mutex_unlock(&server->lock);
        (void)pay_http_request_finish(req, 503, pay_http_response_plain(503), false);
        pthread_mutex_lock(&server->lock);
        const bool is_last = pay_http_request_release(req);
        PAY_ASSERT(!is_last); /* The owner is here. */
    }
}

struct pay_http_server *pay_http_server_stop(struct pay_http_server *server)
{
    if (server == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&server->lock);
    server->stopping = true;
    pthread_cond_broadcast(&server->wake);
    pthread_mutex_unlock(&server->lock);
    if (server->has_sweeper) {
        (void)pthread_join(server->sweeper, NULL);
    }
    if (server->daemon != NULL) {
        pay_http_server_quiesce(server);
        pthread_mutex_lock(&server->lock);
        answer_all(server);
        (void)wait_until(server, &server->active, FLUSH_MS_MAX);
        while (server->resuming > 0) { /* Two instructions of another thread. */
            pthread_cond_wait(&server->changed, &server->lock);
        }
        pthread_mutex_unlock(&server->lock);
        MHD_stop_daemon(server->daemon);
        if (server->quiesced_fd >= 0) {
            (void)close(server->quiesced_fd);
        }
    }
    pthread_mutex_lock(&server->lock);
    const bool is_last = --server->refs == 0;
    pthread_mutex_unlock(&server->lock);
    if (is_last) { /* Else the last late answer destroys it. */
        pay_http_server_destroy(server);
    }
    return NULL;
}
