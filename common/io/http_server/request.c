/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/http_server/internal.h"

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/mem.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/banned.h"

#define FREE_REQUESTS_MAX 64
#define BODY_KEEP_BYTES 16384 /* A recycled request keeps a body buffer up to this. */

struct pay_http_request *pay_http_request_new(struct pay_http_server *server,
                                              struct pay_http_connection *connection)
{
    pthread_mutex_lock(&server->lock);
    struct pay_http_request *req = server->free_requests;
    if (req != NULL) {
        server->free_requests = req->next_free;
        server->free_count--;
    }
    pthread_mutex_unlock(&server->lock);

    if (req == NULL) {
        req = pay_mem_new(1, sizeof *req);
        struct pay_arena *arena = pay_arena_new(PAY_HTTP_ARENA_BYTES);
        if (req == NULL || arena == NULL) {
            (void)pay_mem_free(req);
            (void)pay_arena_free(arena);
            return NULL;
        }
        req->arena = arena;
        req->body = pay_buf_make(server->body_bytes_max);
    }
    const int64_t now_us = pay_clock_mono_us();
    *req = (struct pay_http_request){
        .server = server,
        .connection = connection,
        .holders = 1,
        .deadline_us = now_us + server->request_timeout_us,
        .arena = req->arena,
        .body = req->body,
        .view = {.received_at_us = pay_clock_wall_us(),
                 .deadline_mono_us = now_us + server->request_timeout_us},
    };
    pthread_mutex_lock(&server->lock);
    server->refs++;
    connection->req = req;
    pthread_mutex_unlock(&server->lock);
    return req;
}

void pay_http_request_destroy(struct pay_http_request *req)
{
    pay_buf_free(&req->body);
    (void)pay_arena_free(req->arena);
    (void)pay_mem_free(req);
}

bool pay_http_request_release(struct pay_http_request *req)
{
    struct pay_http_server *server = req->server;

    PAY_ASSERT(req->holders > 0);
    if (--req->holders > 0) {
        return false;
    }
    PAY_ASSERT(server->bodies_bytes >= req->body.len);
    server->bodies_bytes -= req->body.len;
    if (req->response != NULL) {
        MHD_destroy_response(req->response);
        req->response = NULL;
    }
    if (req->body.cap > BODY_KEEP_BYTES) {
        pay_buf_free(&req->body);
    }
    pay_buf_reset(&req->body);
    pay_arena_reset(req->arena);
    if (server->free_count < FREE_REQUESTS_MAX && !server->stopping) {
        req->next_free = server->free_requests;
        server->free_requests = req;
        server->free_count++;
    } else {
        pay_http_request_destroy(req);
    }
    return --server->refs == 0;
}

bool pay_http_request_finish(struct pay_http_request *req, unsigned status,
                             struct MHD_Response *response, bool by_application)
{
    struct pay_http_server *server = req->server;
    struct MHD_Connection *mhd = req->mhd;
    bool is_last = false;

    pthread_mutex_lock(&server->lock);
    const bool is_suspended = req->phase == PAY_HTTP_PHASE_SUSPENDED;
    const bool is_first = is_suspended || req->phase == PAY_HTTP_PHASE_HANDLER;
    if (is_first) {
        req->phase = PAY_HTTP_PHASE_ANSWERED;
        req->status = status;
        req->response = response;
        server->stats.deadlines += by_application ? 0 : 1;
    }
    if (by_application) {
        PAY_ASSERT(server->stats.in_hand > 0);
        server->stats.in_hand--;
        server->stats.late_answers += is_first ? 0 : 1;
        is_last =
            pay_http_request_release(req); /* Not the last one while libmicrohttpd holds it. */
    }
    server->resuming += is_suspended ? 1 : 0;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);

    if (!is_first && response != NULL) {
        MHD_destroy_response(response);
    }
    if (is_suspended) {
        MHD_resume_connection(mhd); /* It stays valid until exactly this call. */
        pthread_mutex_lock(&server->lock);
        server->resuming--;
        pthread_cond_broadcast(&server->changed);
        pthread_mutex_unlock(&server->lock);
    }
    if (is_last) {
        pay_http_server_destroy(server);
    }
    return is_first;
}

bool pay_http_request_answer(struct pay_http_request *req, const struct pay_http_answer *answer)
{
    PAY_ASSERT(answer->status >= 200 && answer->status <= 599);
    PAY_ASSERT(answer->header_count <= PAY_HTTP_SERVER_ANSWER_HEADERS_MAX);
    return pay_http_request_finish(req, answer->status, pay_http_response_make(answer), true);
}

static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

static bool add_headers(struct MHD_Response *response, const struct pay_http_answer *answer)
{
    bool ok = !answer->close || add_header(response, MHD_HTTP_HEADER_CONNECTION, "close");

    if (answer->content_type != NULL) {
        ok = ok && add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->content_type);
    }
    for (size_t i = 0; ok && i < answer->header_count; i++) {
        char name[128];
        char value[1024];
        ok = pay_str_copy(name, sizeof name, answer->headers[i].name) &&
             pay_str_copy(value, sizeof value, answer->headers[i].value) &&
             add_header(response, name, value);
    }
    return ok;
}

struct MHD_Response *pay_http_response_make(const struct pay_http_answer *answer)
{
    /* The library's parameter is not const, but with MUST_COPY it only reads. */
    union {
        const uint8_t *in;
        void *out;
    } body = {.in = answer->body.ptr};
    struct MHD_Response *response =
        MHD_create_response_from_buffer(answer->body.len, body.out, MHD_RESPMEM_MUST_COPY);

    if (response != NULL && !add_headers(response, answer)) {
        MHD_destroy_response(response);
        response = NULL; /* The connection is closed without an answer. */
    }
    return response;
}

struct plain {
    unsigned status;
    const char *line;
};

static const struct plain plains[] = {
    {400, "400 Bad Request"},
    {413, "413 Content Too Large"},
    {431, "431 Request Header Fields Too Large"},
    {503, "503 Service Unavailable"},
    {505, "505 HTTP Version Not Supported"},
};

static const char *plain_line(unsigned status)
{
    for (size_t i = 0; i < sizeof plains / sizeof plains[0]; i++) {
        if (plains[i].status == status) {
            return plains[i].line;
        }
    }
    return "500 Internal Server Error";
}

struct MHD_Response *pay_http_response_plain(unsigned status)
{
    const char *line = plain_line(status);
    static const struct pay_http_header retry = {{"Retry-After", sizeof "Retry-After" - 1},
                                                 {"1", 1}};

    return pay_http_response_make(&(struct pay_http_answer){
        .status = status,
        .content_type = "text/plain",
        .body = {(const uint8_t *)line, strlen(line)},
        .headers = &retry,
        .header_count = status == 503 ? 1 : 0,
        .close = true,
    });
}

void pay_http_connection_cut(struct pay_http_connection *connection, unsigned status)
{
    char text[256];

    if (connection->is_cut) {
        return;
    }
    connection->is_cut = true;
    if (status != 0) {
        const char *line = plain_line(status);
        const int len =
            snprintf(text, sizeof text,
                     "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                     "%sConnection: close\r\n\r\n%s",
                     line, strlen(line), status == 503 ? "Retry-After: 1\r\n" : "", line);
        PAY_ASSERT(len > 0 && (size_t)len < sizeof text);
        /* Best effort: the peer is cut off in any case. */
        (void)send(connection->fd, text, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    (void)shutdown(connection->fd, SHUT_RDWR);
}

const struct pay_http_header *pay_http_header_find(const struct pay_http_header *headers,
                                                   size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (pay_http_name_eq(headers[i].name, name)) {
            return &headers[i];
        }
    }
    return NULL;
}
