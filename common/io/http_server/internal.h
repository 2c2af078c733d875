/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file internal.h
 * @brief What the sources of this folder share: the server, its connections and requests.
 *
 * Every field below the lock is changed under it. A request has up to two holders, libmicrohttpd
 * (until the exchange is complete) and the application (until it answered); the last one recycles
 * it. A suspended connection is resumed by whoever moved its request from SUSPENDED to ANSWERED,
 * and by nobody else; so it is resumed exactly once.
 */
#ifndef PAY_IO_HTTP_SERVER_INTERNAL_H
#define PAY_IO_HTTP_SERVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include <microhttpd.h>

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/io/http_server/head.h"
#include "common/io/http_server/http_server.h"

#define PAY_HTTP_ARENA_BYTES (PAY_HTTP_SERVER_HEAD_BYTES_MAX + 8192)
#define PAY_HTTP_PEER_MAX 64

enum pay_http_phase {
    PAY_HTTP_PHASE_HEAD, /* The request line is there. */
    PAY_HTTP_PHASE_BODY,
    PAY_HTTP_PHASE_HANDLER,   /* Inside the application's handler, not suspended. */
    PAY_HTTP_PHASE_SUSPENDED, /* With the application. */
    PAY_HTTP_PHASE_ANSWERED,  /* The answer is stored or being sent. */
    PAY_HTTP_PHASE_CUT        /* The socket was shut down. */
};

struct pay_http_connection {
    struct pay_http_connection *prev, *next;
    struct pay_http_request *req; /* The one in progress; NULL between requests. */
    int fd;                       /* libmicrohttpd's; open as long as this is in the list. */
    int64_t since_us;             /* Start, or end of the former request. Monotonic. */
    bool is_cut;
    char peer[PAY_HTTP_PEER_MAX];
};

struct pay_http_request {
    struct pay_http_server *server;
    struct pay_http_request *next_free;
    struct pay_http_connection *connection;
    struct MHD_Connection *mhd; /* Valid while libmicrohttpd holds the request. */
    enum pay_http_phase phase;
    unsigned holders;
    unsigned status;
    struct MHD_Response *response;
    int64_t deadline_us; /* Monotonic. */
    struct pay_str
        uri_raw; /* Where libmicrohttpd had it, for the head check; only pointer and length. */
    struct pay_str uri;
    struct pay_arena *arena;
    struct pay_buf body;
    struct pay_http_view view;
};

struct pay_http_server {
    struct MHD_Daemon *daemon;
    pay_http_head_fn *head;
    pay_http_handler_fn *handler;
    void *ctx;
    size_t body_bytes_max, bodies_bytes_max;
    int64_t request_timeout_us, idle_timeout_us;
    uint16_t port;
    int quiesced_fd; /* -1 until then. */
    pthread_t sweeper;
    bool has_sweeper;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* in_hand, active, resuming or stopping changed. Monotonic clock. */
    pthread_cond_t wake;    /* For the sweeper, at stop. */
    bool stopping, quiesced;
    size_t refs;     /* The owner and every request that exists outside the free list. */
    size_t active;   /* Requests from the handler's start until the exchange is complete. */
    size_t resuming; /* Calls of MHD_resume_connection() under way. */
    size_t bodies_bytes;
    struct pay_http_connection *connections;
    struct pay_http_request *free_requests;
    size_t free_count;
    struct pay_http_server_stats stats;
};

/* request.c */
struct pay_http_request *pay_http_request_new(struct pay_http_server *server,
                                              struct pay_http_connection *connection);
/* Needs the lock. @return true when this was the server's last reference. */
PAY_MUST_CHECK bool pay_http_request_release(struct pay_http_request *req);
void pay_http_request_destroy(struct pay_http_request *req);
/* Store the answer, once. Takes @p response. @return false: too late. */
bool pay_http_request_finish(struct pay_http_request *req, unsigned status,
                             struct MHD_Response *response, bool by_application);
/* @return NULL when memory is out. */
struct MHD_Response *pay_http_response_make(const struct pay_http_answer *answer);
struct MHD_Response *pay_http_response_plain(unsigned status);
/* Needs the lock. Answer on the raw socket (nothing of an answer was sent yet) and shut it down. */
void pay_http_connection_cut(struct pay_http_connection *connection, unsigned status);

/* http_server.c */
void pay_http_server_destroy(struct pay_http_server *server);

/* sweep.c */
void *pay_http_sweep(void *arg);
void pay_http_deadline_at(int64_t mono_us, struct timespec *ret_at);

/* exchange.c: libmicrohttpd's callbacks */
enum MHD_Result pay_http_on_access(void *cls, struct MHD_Connection *mhd, const char *url,
                                   const char *method, const char *version, const char *data,
                                   size_t *data_len, void **con_cls);
void *pay_http_on_request_line(void *cls, const char *uri, struct MHD_Connection *mhd);
void pay_http_on_connection(void *cls, struct MHD_Connection *mhd, void **socket_context,
                            enum MHD_ConnectionNotificationCode code);
void pay_http_on_completed(void *cls, struct MHD_Connection *mhd, void **con_cls,
                           enum MHD_RequestTerminationCode code);

#endif /* PAY_IO_HTTP_SERVER_INTERNAL_H */
