/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/http_server/internal.h"

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/mem.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/banned.h"

static struct pay_http_connection *connection_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info == NULL ? NULL : info->socket_context;
}

static struct pay_http_connection *connection_new(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *fd =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *address =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    struct pay_http_connection *connection = pay_mem_new(1, sizeof *connection);

    if (connection == NULL || fd == NULL) {
        return pay_mem_free(connection);
    }
    connection->fd = fd->connect_fd;
    connection->since_us = pay_clock_mono_us();
    if (address == NULL || address->client_addr == NULL ||
        getnameinfo(address->client_addr, sizeof(struct sockaddr_storage), connection->peer,
                    sizeof connection->peer, NULL, 0, NI_NUMERICHOST) != 0) {
        connection->peer[0] = 0;
    }
    return connection;
}

static void connection_link(struct pay_http_server *server, struct pay_http_connection *connection)
{
    pthread_mutex_lock(&server->lock);
    connection->next = server->connections;
    if (connection->next != NULL) {
        connection->next->prev = connection;
    }
    server->connections = connection;
    server->stats.connections++;
    pthread_mutex_unlock(&server->lock);
}

static void connection_unlink(struct pay_http_server *server,
                              struct pay_http_connection *connection)
{
    pthread_mutex_lock(&server->lock);
    if (connection->prev != NULL) {
        connection->prev->next = connection->next;
    } else {
        server->connections = connection->next;
    }
    if (connection->next != NULL) {
        connection->next->prev = connection->prev;
    }
    server->stats.connections--;
    pthread_mutex_unlock(&server->lock);
}

void pay_http_on_connection(void *cls, struct MHD_Connection *mhd, void **socket_context,
                            enum MHD_ConnectionNotificationCode code)
{
    struct pay_http_server *server = cls;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct pay_http_connection *connection = connection_new(mhd);
        *socket_context = connection; /* NULL: every request on it is refused. */
        if (connection != NULL) {
            connection_link(server, connection);
        }
    } else if (*socket_context != NULL) {
        connection_unlink(server, *socket_context);
        *socket_context = pay_mem_free(*socket_context);
    }
}

void *pay_http_on_request_line(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    struct pay_http_connection *connection = connection_of(mhd);
    struct pay_http_request *req =
        connection == NULL ? NULL : pay_http_request_new(cls, connection);

    if (req != NULL) {
        req->mhd = mhd;
        /* It is cut at "?" and unescaped in place after this call: keep the raw bytes now. */
        req->uri_raw = pay_str_of(uri);
        req->uri = pay_arena_str(req->arena, req->uri_raw);
        req->view.peer = pay_str_of(connection->peer);
    }
    return req;
}

void pay_http_on_completed(void *cls, struct MHD_Connection *mhd, void **con_cls,
                           enum MHD_RequestTerminationCode code)
{
    struct pay_http_server *server = cls;
    struct pay_http_request *req = *con_cls;

    (void)mhd;
    (void)code;
    if (req == NULL) {
        return;
    }
    *con_cls = NULL;
    pthread_mutex_lock(&server->lock);
    PAY_ASSERT(req->phase != PAY_HTTP_PHASE_SUSPENDED && req->phase != PAY_HTTP_PHASE_HANDLER);
    if (req->phase == PAY_HTTP_PHASE_ANSWERED) {
        PAY_ASSERT(server->active > 0);
        server->active--;
    }
    req->connection->req = NULL;
    req->connection->since_us = pay_clock_mono_us();
    req->connection = NULL;
    const bool is_last = pay_http_request_release(req);
    PAY_ASSERT(!is_last); /* The daemon is stopped before the owner lets go. */
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

/* The stored answer goes to libmicrohttpd, which takes its own reference. */
static enum MHD_Result queue(struct MHD_Connection *mhd, struct pay_http_request *req)
{
    if (req->response == NULL) {
        return MHD_NO; /* Memory was out: close. */
    }
    pthread_mutex_lock(&req->server->lock);
    const bool is_leaving = req->server->quiesced;
    pthread_mutex_unlock(&req->server->lock);
    if (is_leaving) {
        /* The client is to go on elsewhere. On failure it merely stays until the stop. */
        (void)MHD_add_response_header(req->response, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    return MHD_queue_response(mhd, req->status, req->response);
}

/* Answer before the body is read. @return of the access callback. */
static enum MHD_Result turn_away(struct pay_http_request *req, unsigned status,
                                 struct MHD_Response *response, bool at_once)
{
    struct pay_http_server *server = req->server;

    pthread_mutex_lock(&server->lock);
    const bool is_cut = req->phase == PAY_HTTP_PHASE_CUT;
    if (!is_cut) {
        req->phase = PAY_HTTP_PHASE_ANSWERED;
        server->active++;
    }
    req->status = status;
    req->response = response;
    pthread_mutex_unlock(&server->lock);
    if (is_cut) {
        return MHD_NO;
    }
    /* Queued before the body, an answer closes the connection; without a body it can wait one call.
     */
    return at_once ? queue(req->mhd, req) : MHD_YES;
}

static enum MHD_Result refuse(struct pay_http_request *req, unsigned status, uint64_t *counter)
{
    pthread_mutex_lock(&req->server->lock);
    (*counter)++;
    pthread_mutex_unlock(&req->server->lock);
    return turn_away(req, status, pay_http_response_plain(status), true);
}

struct gather {
    struct pay_http_raw_header headers[PAY_HTTP_SERVER_HEADERS_MAX + 1]; /* One more: too many. */
    size_t count;
};

static enum MHD_Result gather_one(void *cls, enum MHD_ValueKind kind, const char *name,
                                  size_t name_len, const char *value, size_t value_len)
{
    struct gather *gather = cls;

    (void)kind;
    gather->headers[gather->count++] =
        (struct pay_http_raw_header){{name, name_len}, {value == NULL ? "" : value, value_len}};
    return gather->count <= PAY_HTTP_SERVER_HEADERS_MAX ? MHD_YES : MHD_NO;
}

/* @return 0 or the status to refuse with. */
static unsigned check_head(const struct pay_http_request *req, const char *method,
                           const char *version, struct gather *gather,
                           struct pay_http_framing *framing)
{
    const union MHD_ConnectionInfo *size =
        MHD_get_connection_info(req->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    gather->count = 0;
    (void)MHD_get_connection_values_n(req->mhd, MHD_HEADER_KIND, gather_one, gather);
    if (size == NULL || req->uri_raw.ptr == NULL) {
        return 400;
    }
    if (req->uri.ptr == NULL) {
        return 431;
    }
    /* The check reads the raw address but the kept bytes: the raw ones are unescaped by now. */
    const struct pay_http_raw_head head = {
        .method = pay_str_of(method),
        .uri = req->uri_raw,
        .version = pay_str_of(version),
        .headers = gather->headers,
        .count = gather->count,
        .bytes = size->header_size,
    };
    return pay_http_head_check(&head, req->uri, framing);
}

static struct pay_str trimmed(struct pay_arena *arena, struct pay_str value)
{
    while (value.len > 0 && (value.ptr[value.len - 1] == ' ' || value.ptr[value.len - 1] == '\t')) {
        value.len--;
    }
    return pay_arena_str(arena, value);
}

/* The application may read the view after libmicrohttpd let go of its memory: everything is copied.
 */
static bool copy_head(struct pay_http_request *req, const char *method, const struct gather *gather)
{
    struct pay_http_view *view = &req->view;
    struct pay_http_header *headers = pay_arena_array(req->arena, gather->count, sizeof *headers);
    const char *mark = memchr(req->uri.ptr, '?', req->uri.len);
    bool ok = headers != NULL || gather->count == 0;

    view->path = req->uri;
    view->query = (struct pay_str){NULL, 0};
    if (mark != NULL) {
        const size_t path_len = (size_t)(mark - req->uri.ptr);
        view->path = pay_arena_str(req->arena, (struct pay_str){req->uri.ptr, path_len});
        view->query = (struct pay_str){mark + 1, req->uri.len - path_len - 1};
    }
    view->method = pay_arena_str(req->arena, pay_str_of(method));
    ok = ok && view->path.ptr != NULL && view->method.ptr != NULL;
    for (size_t i = 0; ok && i < gather->count; i++) {
        headers[i].name = pay_arena_str(req->arena, gather->headers[i].name);
        headers[i].value = trimmed(req->arena, gather->headers[i].value);
        ok = headers[i].name.ptr != NULL && headers[i].value.ptr != NULL;
    }
    view->headers = headers;
    view->header_count = gather->count;
    view->body = (struct pay_bytes){(const uint8_t *)"", 0};
    return ok;
}

static bool is_overloaded(struct pay_http_server *server, uint64_t length)
{
    pthread_mutex_lock(&server->lock);
    const bool is_over = length > server->bodies_bytes_max - server->bodies_bytes;
    pthread_mutex_unlock(&server->lock);
    return is_over;
}

static enum MHD_Result on_head(struct pay_http_request *req, const char *method,
                               const char *version)
{
    struct pay_http_server *server = req->server;
    struct gather gather;
    struct pay_http_framing framing;
    const unsigned status = check_head(req, method, version, &gather, &framing);

    if (status != 0) {
        return refuse(req, status,
                      status == 431 ? &server->stats.too_large : &server->stats.malformed);
    }
    if (!copy_head(req, method, &gather)) {
        return refuse(req, 431, &server->stats.too_large);
    }
    if (framing.length > server->body_bytes_max) {
        return refuse(req, 413, &server->stats.too_large);
    }
    if (is_overloaded(server, framing.length)) {
        return refuse(req, 503, &server->stats.overload);
    }
    struct pay_http_answer answer = {0};
    if (server->head != NULL && !server->head(server->ctx, &req->view, &answer)) {
        pthread_mutex_lock(&server->lock);
        server->stats.turned_away++;
        pthread_mutex_unlock(&server->lock);
        return turn_away(req, answer.status, pay_http_response_make(&answer), framing.has_body);
    }
    pthread_mutex_lock(&server->lock);
    const bool is_cut = req->phase == PAY_HTTP_PHASE_CUT;
    req->phase = is_cut ? req->phase : PAY_HTTP_PHASE_BODY;
    pthread_mutex_unlock(&server->lock);
    return is_cut ? MHD_NO : MHD_YES;
}

static enum MHD_Result cut(struct pay_http_request *req, unsigned status, uint64_t *counter)
{
    pthread_mutex_lock(&req->server->lock);
    if (req->phase != PAY_HTTP_PHASE_CUT) {
        (*counter)++;
        req->phase = PAY_HTTP_PHASE_CUT;
        pay_http_connection_cut(req->connection, status);
    }
    pthread_mutex_unlock(&req->server->lock);
    return MHD_NO;
}

static enum MHD_Result on_body(struct pay_http_request *req, const char *data, size_t *data_len)
{
    struct pay_http_server *server = req->server;
    const size_t len = *data_len;

    /* Only chunked bodies can come this far: a Content-Length was checked with the head. */
    if (len > server->body_bytes_max - req->body.len) {
        return cut(req, 413, &server->stats.too_large);
    }
    pthread_mutex_lock(&server->lock);
    const bool is_over = len > server->bodies_bytes_max - server->bodies_bytes;
    server->bodies_bytes += is_over ? 0 : len;
    pthread_mutex_unlock(&server->lock);
    if (is_over) {
        return cut(req, 503, &server->stats.overload);
    }
    pay_buf_add(&req->body, data, len);
    if (req->body.failed) { /* Memory is out. Give back what was not taken. */
        pthread_mutex_lock(&server->lock);
        server->bodies_bytes -= len;
        pthread_mutex_unlock(&server->lock);
        return cut(req, 503, &server->stats.overload);
    }
    *data_len = 0;
    return MHD_YES;
}

/* Hand over, then suspend unless the answer is there already. */
static enum MHD_Result hand_over(struct MHD_Connection *mhd, struct pay_http_request *req)
{
    struct pay_http_server *server = req->server;

    server->handler(server->ctx, req, &req->view);

    pthread_mutex_lock(&server->lock);
    if (server->stopping && req->phase == PAY_HTTP_PHASE_HANDLER) {
        req->phase = PAY_HTTP_PHASE_ANSWERED; /* Who stops has looked for suspended ones already. */
        req->status = 503;
        req->response = pay_http_response_plain(503);
        server->stats.deadlines++;
    }
    const bool is_answered = req->phase == PAY_HTTP_PHASE_ANSWERED;
    if (!is_answered) {
        req->phase = PAY_HTTP_PHASE_SUSPENDED;
        MHD_suspend_connection(mhd); /* Under the lock: nobody may resume it before. */
    }
    pthread_mutex_unlock(&server->lock);
    return is_answered ? queue(mhd, req) : MHD_YES;
}

static enum MHD_Result on_complete(struct MHD_Connection *mhd, struct pay_http_request *req)
{
    struct pay_http_server *server = req->server;

    pthread_mutex_lock(&server->lock);
    const enum pay_http_phase phase = req->phase;
    const bool is_new = phase == PAY_HTTP_PHASE_BODY && !server->stopping;
    if (is_new) {
        req->phase = PAY_HTTP_PHASE_HANDLER;
        req->holders++;
        server->active++;
        server->stats.in_hand++;
        server->stats.requests++;
    }
    pthread_mutex_unlock(&server->lock);

    if (phase == PAY_HTTP_PHASE_ANSWERED) {
        return queue(mhd, req);
    }
    if (phase == PAY_HTTP_PHASE_BODY && !is_new) {
        return turn_away(req, 503, pay_http_response_plain(503), true);
    }
    if (!is_new) {
        return MHD_NO; /* Cut. */
    }
    if (req->body.len > 0) {
        req->view.body = pay_buf_bytes(&req->body);
    }
    return hand_over(mhd, req);
}

/* NOLINTNEXTLINE(readability-function-size): the eight parameters are libmicrohttpd's. */
enum MHD_Result pay_http_on_access(void *cls, struct MHD_Connection *mhd, const char *url,
                                   const char *method, const char *version, const char *data,
                                   size_t *data_len, void **con_cls)
{
    struct pay_http_server *server = cls;
    struct pay_http_request *req = *con_cls;

    (void)url;
    if (req == NULL) {
        return MHD_NO; /* Memory was out at the request line. */
    }
    pthread_mutex_lock(&server->lock);
    const bool is_head = req->phase == PAY_HTTP_PHASE_HEAD;
    const bool is_cut = req->phase == PAY_HTTP_PHASE_CUT;
    pthread_mutex_unlock(&server->lock);
    if (is_cut) {
        return MHD_NO;
    }
    if (is_head) {
        return on_head(req, method, version);
    }
    return *data_len > 0 ? on_body(req, data, data_len) : on_complete(mhd, req);
}
