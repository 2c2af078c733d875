/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* ppoll */ /* NOLINT(bugprone-reserved-identifier) */
/*
 * Bytes on a connection of the callback port's server, to its end. The real server, on loopback.
 *
 * Whatever the bytes are, a request that reaches the handler is unambiguous: one length at most,
 * never beside a coding, exactly that many bytes of body, no control characters, and no more
 * requests than the bytes have versions. The connection always ends.
 */
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/io/http_server/http_server.h"
#include "tests/fuzz/fuzz.h"

#define BODY_MAX 4096
#define REQUEST_MS 60000 /* Never reached: the client says that no more will come. */
#define END_US INT64_C(30000000)
#define QUIET_NS 1000000
#define PROBE "/probe"

static struct pay_http_server *server;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t handled;

static size_t count_of(const struct pay_http_view *view, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < view->header_count; i++) {
        count += strcasecmp(view->headers[i].name.ptr, name) == 0 ? 1 : 0;
    }
    return count;
}

static void check_text(struct pay_str text)
{
    FUZZ_CHECK(text.ptr != NULL && strlen(text.ptr) == text.len);
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        FUZZ_CHECK(c >= ' ' || c == '\t');
        FUZZ_CHECK(c != 0x7f);
    }
}

static void check_view(const struct pay_http_view *view)
{
    const size_t lengths = count_of(view, "content-length");
    const size_t codings = count_of(view, "transfer-encoding");
    FUZZ_CHECK(lengths <= 1 && codings <= 1 && lengths + codings <= 1);
    FUZZ_CHECK(view->path.len > 0 && view->path.ptr[0] == '/');
    FUZZ_CHECK(view->header_count <= PAY_HTTP_SERVER_HEADERS_MAX);
    check_text(view->method);
    check_text(view->path);
    for (size_t i = 0; i < view->header_count; i++) {
        check_text(view->headers[i].name);
        check_text(view->headers[i].value);
    }
    if (lengths == 1) {
        int64_t length = -1;
        const struct pay_http_header *said =
            pay_http_header_find(view->headers, view->header_count, "content-length");
        FUZZ_CHECK(pay_str_to_i64(said->value, &length));
        FUZZ_CHECK(length == (int64_t)view->body.len);
    }
    FUZZ_CHECK(view->body.len <= BODY_MAX && (codings == 1 || lengths == 1 || view->body.len == 0));
}

static void handle(void *ctx, struct pay_http_request *req, const struct pay_http_view *view)
{
    (void)ctx;
    check_view(view);
    (void)pthread_mutex_lock(&lock);
    handled += pay_str_eq_c(view->path, PROBE) ? 0 : 1;
    (void)pthread_mutex_unlock(&lock);
    /* false: it came too late, which no input of ours can be. */
    FUZZ_CHECK(pay_http_request_answer(
        req, &(struct pay_http_answer){.status = 200, .body = {(const uint8_t *)"ok", 2}}));
}

static void start(void)
{
    const struct pay_http_server_options options = {
        .threads = 1,
        .body_bytes_max = BODY_MAX,
        .request_timeout_ms = REQUEST_MS,
        .idle_timeout_ms = REQUEST_MS,
        .handler = handle,
    };
    if (server == NULL) {
        FUZZ_CHECK(pay_http_server_start(&options, &server, NULL) == PAY_OK);
    }
    (void)pthread_mutex_lock(&lock);
    handled = 0;
    (void)pthread_mutex_unlock(&lock);
}

static int dial(void)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(pay_http_server_port(server)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    FUZZ_CHECK(fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

static void put(int fd, const void *data, size_t size)
{
    for (size_t sent = 0; sent < size;) {
        const ssize_t now = send(fd, (const char *)data + sent, size - sent, MSG_NOSIGNAL);
        if (now <= 0) {
            return; /* The server may close early. */
        }
        sent += (size_t)now;
    }
}

/* Until the server closes, or says nothing for a while. Then gone, as a client that crashed. */
static void converse(const uint8_t *data, size_t size)
{
    char answer[65536];
    const int fd = dial();
    struct pollfd at = {.fd = fd, .events = POLLIN};
    const struct timespec pause = {.tv_nsec = QUIET_NS};
    const struct linger reset = {.l_onoff = 1};
    put(fd, data, size);
    while (ppoll(&at, 1, &pause, NULL) > 0 && recv(fd, answer, sizeof answer, 0) > 0) {
    }
    FUZZ_CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset) == 0);
    FUZZ_CHECK(close(fd) == 0);
}

/* The server has one thread: when this is answered, what came before was accepted and read. */
static void probe(void)
{
    static const char request[] = "GET " PROBE " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    char answer[1024];
    size_t got = 0;
    ssize_t now = 1;
    const int fd = dial();
    put(fd, request, sizeof request - 1);
    for (; now > 0 && got < sizeof answer; got += (size_t)(now > 0 ? now : 0)) {
        now = recv(fd, answer + got, sizeof answer - got, 0);
    }
    FUZZ_CHECK(got > 12 && memcmp(answer, "HTTP/1.1 200", 12) == 0);
    FUZZ_CHECK(close(fd) == 0);
}

static void wait_for_the_end(void)
{
    const int64_t end_us = pay_clock_mono_us() + END_US;
    for (;;) {
        const struct pay_http_server_stats stats = pay_http_server_stats(server);
        if (stats.connections == 0) {
            FUZZ_CHECK(stats.in_hand == 0);
            return;
        }
        FUZZ_CHECK(pay_clock_mono_us() < end_us); /* It always ends. */
        (void)sched_yield();
    }
}

static size_t versions_in(const uint8_t *data, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i + 5 <= size; i++) {
        count += memcmp(data + i, "HTTP/", 5) == 0 ? 1 : 0;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    start();
    converse(data, size);
    probe();
    wait_for_the_end();
    (void)pthread_mutex_lock(&lock);
    FUZZ_CHECK(handled <= versions_in(data, size));
    (void)pthread_mutex_unlock(&lock);
    return 0;
}
