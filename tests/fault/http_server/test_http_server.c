/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: what reaches the handler is one complete, unambiguous request; everything else is refused
 * with the right status and the connection closed; every request ends, whoever is slow or gone.
 * Method: raw sockets against a server of this process. Rows of bytes and what must come back; the
 * handler counts what it was given, so a smuggled second request would be seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/io/http_server/http_server.h"

#define WAIT_MS 10000
#define BODY_MAX 4096
#define KEPT_MAX 16
#define DEADLINE_MS 400
#define IDLE_MS 600

enum mode { ANSWER_NOW, ANSWER_LATER, KEEP };

struct fixture {
    struct pay_http_server *server;
    uint16_t port; /* The clients of a storm outlive the server. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum mode mode;
    unsigned handled, heads;
    struct pay_http_request *kept[KEPT_MAX];
    unsigned kept_count;
    char seen[2048]; /* The last request, as text. */
};

static struct fixture fix;

static void describe(const struct pay_http_view *view)
{
    struct pay_buf text = pay_buf_make(sizeof fix.seen - 1);

    pay_buf_printf(&text, "%s|%s|%s|", view->method.ptr, view->path.ptr,
                   view->query.ptr == NULL ? "-" : view->query.ptr);
    for (size_t i = 0; i < view->header_count && view->header_count < 8; i++) {
        pay_buf_printf(&text, "%s=%s;", view->headers[i].name.ptr, view->headers[i].value.ptr);
    }
    pay_buf_printf(&text, "|%zu|", view->body.len);
    if (view->body.len < 100) {
        pay_buf_add(&text, view->body.ptr, view->body.len);
    }
    (void)pay_str_copy(fix.seen, sizeof fix.seen, pay_buf_str(&text));
    pay_buf_free(&text);
}

static bool answer_ok(struct pay_http_request *req)
{
    return pay_http_request_answer(
        req, &(struct pay_http_answer){
                 .status = 200, .content_type = "text/plain", .body = {(const uint8_t *)"ok", 2}});
}

static void *answer_from_elsewhere(void *req)
{
    (void)answer_ok(req);
    return NULL;
}

static void handler(void *ctx, struct pay_http_request *req, const struct pay_http_view *view)
{
    (void)ctx;
    pthread_mutex_lock(&fix.lock);
    fix.handled++;
    describe(view);
    const enum mode mode = fix.mode;
    if (mode == KEEP) {
        fix.kept[fix.kept_count++ % KEPT_MAX] = req;
    }
    pthread_cond_broadcast(&fix.changed);
    pthread_mutex_unlock(&fix.lock);
    if (mode == ANSWER_NOW) {
        (void)answer_ok(req);
    } else if (mode == ANSWER_LATER) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, answer_from_elsewhere, req), 0);
        assert_int_equal(pthread_detach(thread), 0);
    }
}

/* /busy is 429 with Retry-After, /gone 404: both before the body. */
static bool head(void *ctx, const struct pay_http_view *view, struct pay_http_answer *ret_answer)
{
    static const struct pay_http_header retry = {{"Retry-After", 11}, {"7", 1}};

    (void)ctx;
    pthread_mutex_lock(&fix.lock);
    fix.heads++;
    pthread_mutex_unlock(&fix.lock);
    if (pay_str_eq_c(view->path, "/busy")) {
        *ret_answer = (struct pay_http_answer){.status = 429, .headers = &retry, .header_count = 1};
        return false;
    }
    if (pay_str_eq_c(view->path, "/gone")) {
        *ret_answer = (struct pay_http_answer){.status = 404};
        return false;
    }
    return true;
}

static int start(unsigned threads, unsigned timeout_ms)
{
    struct pay_err err;
    fix = (struct fixture){.mode = ANSWER_NOW};
    pthread_mutex_init(&fix.lock, NULL);
    pthread_cond_init(&fix.changed, NULL);
    const struct pay_http_server_options opts = {
        .threads = threads,
        .body_bytes_max = BODY_MAX,
        .bodies_bytes_max = (size_t)4 * BODY_MAX,
        .request_timeout_ms = timeout_ms,
        .idle_timeout_ms = IDLE_MS,
        .head = head,
        .handler = handler,
    };
    if (pay_http_server_start(&opts, &fix.server, &err) != PAY_OK) {
        print_error("%s: %s\n", err.op, err.text);
        return -1;
    }
    fix.port = pay_http_server_port(fix.server);
    return 0;
}

static int setup(void **state)
{
    (void)state;
    return start(1, DEADLINE_MS);
}

static int setup_pool(void **state)
{
    (void)state;
    return start(2, WAIT_MS);
}

static int teardown(void **state)
{
    (void)state;
    fix.server = pay_http_server_stop(fix.server);
    pthread_cond_destroy(&fix.changed);
    pthread_mutex_destroy(&fix.lock);
    return 0;
}

static int dial(void)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(fix.port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static void push(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len > 0) {
        const ssize_t sent = send(fd, at, len, MSG_NOSIGNAL);
        if (sent < 0) {
            return; /* The server may close early: what came back decides. */
        }
        at += sent;
        len -= (size_t)sent;
    }
}

struct reply {
    char text[16384];
    size_t len;
    bool is_eof;
};

static unsigned statuses(const struct reply *reply)
{
    unsigned count = 0;

    for (const char *at = reply->text; (at = strstr(at, "HTTP/1.1 ")) != NULL; at += 9) {
        count++;
    }
    return count;
}

/* Read until @p want answers are there with the last body's "ok" or an end, or the end of the
 * stream. */
static void pull(int fd, struct reply *reply, unsigned want, bool want_eof)
{
    const int64_t until = pay_clock_mono_us() + (int64_t)WAIT_MS * 1000;

    while (!reply->is_eof &&
           (want_eof || statuses(reply) < want || strstr(reply->text, "\r\n\r\n") == NULL)) {
        struct pollfd at = {.fd = fd, .events = POLLIN};
        if (pay_clock_mono_us() > until) {
            fail_msg("no end within %d ms; got \"%s\"", WAIT_MS, reply->text);
        }
        if (poll(&at, 1, 50) <= 0) {
            continue;
        }
        const ssize_t got =
            recv(fd, reply->text + reply->len, sizeof reply->text - 1 - reply->len, 0);
        if (got <= 0) {
            reply->is_eof = true;
        } else {
            reply->len += (size_t)got;
            reply->text[reply->len] = 0;
        }
    }
}

static struct reply talk(const void *bytes, size_t len, unsigned want, bool want_eof)
{
    struct reply reply = {.len = 0};
    const int fd = dial();

    push(fd, bytes, len);
    pull(fd, &reply, want, want_eof);
    close(fd);
    return reply;
}

static void set_mode(enum mode mode)
{
    pthread_mutex_lock(&fix.lock);
    fix.mode = mode;
    pthread_mutex_unlock(&fix.lock);
}

static struct pay_http_request *kept(size_t number)
{
    pthread_mutex_lock(&fix.lock);
    struct pay_http_request *req = fix.kept[number];
    pthread_mutex_unlock(&fix.lock);
    return req;
}

static bool was_seen(const char *text)
{
    pthread_mutex_lock(&fix.lock);
    const bool is_same = strcmp(fix.seen, text) == 0;
    pthread_mutex_unlock(&fix.lock);
    return is_same;
}

static unsigned handled(void)
{
    pthread_mutex_lock(&fix.lock);
    const unsigned count = fix.handled;
    pthread_mutex_unlock(&fix.lock);
    return count;
}

struct row {
    const char *says;
    const char *bytes;
    size_t len;
    const char *status; /* NULL: closed without an answer is fine too. */
};

/* clang-format off */
#define BYTES(text) (text), sizeof(text) - 1
#define H "Host: h\r\n"
#define HEAD(headers) BYTES("POST /p HTTP/1.1\r\n" H headers "\r\n" "hello")
static const struct row refused[] = {
    {"Content-Length with Transfer-Encoding", HEAD("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), "400"},
    {"Transfer-Encoding with Content-Length", HEAD("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), "400"},
    {"two Content-Lengths that agree", HEAD("Content-Length: 5\r\nContent-Length: 5\r\n"), "400"},
    {"two Content-Lengths that differ", HEAD("Content-Length: 5\r\nContent-Length: 50\r\n"), "400"},
    {"two in other letters", HEAD("content-length: 5\r\nCONTENT-LENGTH: 5\r\n"), "400"},
    {"a list of lengths", HEAD("Content-Length: 5, 5\r\n"), "400"},
    {"a signed length", HEAD("Content-Length: +5\r\n"), "400"},
    {"a negative length", HEAD("Content-Length: -5\r\n"), "400"},
    {"a hexadecimal length", HEAD("Content-Length: 0x5\r\n"), "400"},
    {"a length with a letter", HEAD("Content-Length: 5a\r\n"), "400"},
    {"a length with a space inside", HEAD("Content-Length: 5 5\r\n"), "400"},
    {"an empty length", HEAD("Content-Length:\r\n"), "400"},
    {"a length of 19 digits", HEAD("Content-Length: 1000000000000000005\r\n"), "400"},
    {"a length beyond 64 bits", HEAD("Content-Length: 99999999999999999999\r\n"), "413"},
    {"an unknown coding", HEAD("Transfer-Encoding: xchunked\r\n"), "400"},
    {"a list of codings", HEAD("Transfer-Encoding: gzip, chunked\r\n"), "400"},
    {"two codings", HEAD("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), "400"},
    {"identity hides chunked", HEAD("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"), "400"},
    {"a coding with a control", HEAD("Transfer-Encoding: \vchunked\r\n"), "400"},
    {"chunked in HTTP/1.0", BYTES("POST /p HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "400"},
    {"space before the colon", HEAD("Transfer-Encoding : chunked\r\n"), "400"},
    {"tab before the colon", HEAD("Content-Length\t: 5\r\n"), "400"},
    {"folded by a space", HEAD("X-A: a\r\n b\r\nContent-Length: 5\r\n"), "400"},
    {"folded by a tab", HEAD("X-A: a\r\n\tb\r\nContent-Length: 5\r\n"), "400"},
    {"the last one folded", HEAD("Content-Length: 5\r\nX-A: a\r\n b\r\n"), "400"},
    {"folded to nothing", HEAD("X-A: a\r\n  \r\nContent-Length: 5\r\n"), "400"},
    {"the last one folded to nothing", HEAD("Content-Length: 5\r\nX-A: a\r\n \r\n"), "400"},
    {"a folded length", HEAD("Content-Length: \r\n 5\r\n"), "400"},
    {"a folded first line", BYTES("POST /p HTTP/1.1\r\n Content-Length: 5\r\n" H "\r\nhello"), "400"},
    {"bare LF behind a header", HEAD("Content-Length: 5\nX-A: a\r\n"), "400"},
    {"bare LF behind the last header", BYTES("POST /p HTTP/1.1\r\n" H "Content-Length: 5\n\r\nhello"), "400"},
    {"bare LF as the empty line", BYTES("POST /p HTTP/1.1\r\n" H "Content-Length: 5\r\n\nhello"), "400"},
    {"bare LF behind the first line", BYTES("POST /p HTTP/1.1\n" H "Content-Length: 5\r\n\r\nhello"), "400"},
    {"bare LF everywhere", BYTES("POST /p HTTP/1.1\nHost: h\nContent-Length: 5\n\nhello"), "400"},
    {"three bare LF made up by a fold of nothing", BYTES("POST /p HTTP/1.1\nHost: h\nX: a\n \r\n\r\n"), "400"},
    {"bare LF made up by two spaces", BYTES("POST  /p HTTP/1.1\nHost: h\r\n\r\n"), "400"},
    {"bare CR in a value", HEAD("X-A: a\rTransfer-Encoding: chunked\r\nContent-Length: 5\r\n"), "400"},
    {"bare CR in a name", HEAD("X-A\r: a\r\nContent-Length: 5\r\n"), "400"},
    {"CR CR LF", HEAD("X-A: a\r\r\nContent-Length: 5\r\n"), "400"},
    {"NUL in a value", HEAD("X-A: a\0b\r\nContent-Length: 5\r\n"), "400"},
    {"NUL in a name", HEAD("X\0A: a\r\nContent-Length: 5\r\n"), "400"},
    {"DEL in a value", HEAD("X-A: a\x7f\r\nContent-Length: 5\r\n"), "400"},
    {"no colon", HEAD("X-A\r\nContent-Length: 5\r\n"), "400"},
    {"no name", HEAD(": a\r\nContent-Length: 5\r\n"), "400"},
    {"a name that is no token", HEAD("X(A: a\r\nContent-Length: 5\r\n"), "400"},
    {"no Host", BYTES("GET /p HTTP/1.1\r\nX-A: a\r\n\r\n"), "400"},
    {"two Hosts", BYTES("GET /p HTTP/1.1\r\n" H H "\r\n"), "400"},
    {"two spaces before the target", BYTES("GET  /p HTTP/1.1\r\n" H "\r\n"), "400"},
    {"two spaces behind the target", BYTES("GET /p  HTTP/1.1\r\n" H "\r\n"), NULL},
    {"a space behind the version", BYTES("GET /p HTTP/1.1 \r\n" H "\r\n"), NULL},
    {"a tab in the target", BYTES("GET /p\tq HTTP/1.1\r\n" H "\r\n"), "400"},
    {"a raw byte in the target", BYTES("GET /p\xc3\xa4 HTTP/1.1\r\n" H "\r\n"), "400"},
    {"another form of target", BYTES("GET http://h/p HTTP/1.1\r\n" H "\r\n"), "400"},
    {"a method that is no token", BYTES("G(T /p HTTP/1.1\r\n" H "\r\n"), "400"},
    {"no version", BYTES("GET /p\r\n" H "\r\n"), NULL},
    {"another version", BYTES("GET /p HTTP/2.0\r\n" H "\r\n"), NULL},
    {"a version of tomorrow", BYTES("GET /p HTTP/1.2\r\n" H "\r\n"), NULL},
    {"no HTTP at all", BYTES("\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n"), NULL},
};

struct accepted {
    const char *says;
    const char *bytes;
    size_t len;
    unsigned answers;
    const char *seen; /* Of the last request. */
};

static const struct accepted accepted[] = {
    {"a GET", BYTES("GET /p HTTP/1.1\r\n" H "\r\n"), 1, "GET|/p|-|Host=h;|0|"},
    {"a POST", BYTES("POST /p HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello"), 1,
     "POST|/p|-|Host=h;Content-Length=5;|5|hello"},
    {"raw path and query", BYTES("GET /a%2Fb/%zz?x=%41&&y+z? HTTP/1.1\r\n" H "\r\n"), 1,
     "GET|/a%2Fb/%zz|x=%41&&y+z?|Host=h;|0|"},
    {"an empty query", BYTES("GET /p? HTTP/1.1\r\n" H "\r\n"), 1, "GET|/p||Host=h;|0|"},
    {"duplicates in order", BYTES("GET /p HTTP/1.1\r\nX: 2\r\n" H "x: 1\r\nX: 3\r\n\r\n"), 1,
     "GET|/p|-|X=2;Host=h;x=1;X=3;|0|"},
    {"white space around a value", BYTES("GET /p HTTP/1.1\r\n" H "X:\t a b \t\r\nY:\r\nZ:z\r\n\r\n"), 1,
     "GET|/p|-|Host=h;X=a b;Y=;Z=z;|0|"},
    {"bytes above ASCII in a value", BYTES("GET /p HTTP/1.1\r\n" H "X: \xc3\xa4\r\n\r\n"), 1,
     "GET|/p|-|Host=h;X=\xc3\xa4;|0|"},
    {"chunks", BYTES("POST /p HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n"), 1,
     "POST|/p|-|Host=h;Transfer-Encoding=chunked;|5|hello"},
    {"a trailer is no header", BYTES("POST /p HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\nX-T: 1\r\n\r\n"), 1,
     "POST|/p|-|Host=h;Transfer-Encoding=Chunked;|1|x"},
    {"an empty line before", BYTES("\r\nGET /p HTTP/1.1\r\n" H "\r\n"), 1, "GET|/p|-|Host=h;|0|"},
    {"three pipelined", BYTES("POST /1 HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\na"
                              "POST /2 HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\nbb"
                              "GET /3 HTTP/1.1\r\n" H "\r\n"), 3, "GET|/3|-|Host=h;|0|"},
    {"a cookie", BYTES("GET /p HTTP/1.1\r\n" H "Cookie: a=b; c=d\r\nX: y\r\n\r\n"), 1,
     "GET|/p|-|Host=h;Cookie=a=b; c=d;X=y;|0|"},
    {"HTTP/1.0", BYTES("POST /p HTTP/1.0\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nhi"), 1,
     "POST|/p|-|Content-Length=2;Connection=keep-alive;|2|hi"},
};
/* clang-format on */

/*
 * Only refusals came back, of the status wanted. libmicrohttpd 0.9.75 writes the head of its own
 * refusal of a Content-Length twice, then closes: one answer to any client, two in this count.
 */
static bool is_refused(const struct row *row, const struct reply *reply)
{
    unsigned count = 0;

    for (const char *at = reply->text; (at = strstr(at, "HTTP/1.1 ")) != NULL; count++) {
        at += 9;
        if (row->status != NULL ? strncmp(at, row->status, 3) != 0 : *at != '4' && *at != '5') {
            return false;
        }
    }
    return handled() == 0 && count <= 2 && (count > 0 || row->status == NULL);
}

static void ambiguous_requests_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const struct reply reply = talk(refused[i].bytes, refused[i].len, 1, true);
        if (!is_refused(&refused[i], &reply)) {
            fail_msg("\"%s\": handled %u, answered \"%s\"", refused[i].says, handled(), reply.text);
        }
    }
}

static void check_accepted(const struct accepted *row)
{
    const unsigned before = handled();
    const struct reply reply = talk(row->bytes, row->len, row->answers, false);

    if (handled() - before != row->answers || strncmp(reply.text + 9, "200", 3) != 0 ||
        !was_seen(row->seen)) {
        fail_msg("\"%s\": handled %u, seen \"%s\", answered \"%s\"", row->says, handled() - before,
                 fix.seen, reply.text);
    }
}

static void sound_requests_arrive_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        set_mode(ANSWER_NOW);
        check_accepted(&accepted[i]);
        set_mode(ANSWER_LATER);
        check_accepted(&accepted[i]);
    }
}

/* The same rows byte by byte: no check may depend on how the bytes were cut into packets. */
static void packets_do_not_matter(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i += 3) {
        const int fd = dial();
        struct reply reply = {.len = 0};
        for (size_t at = 0; at < refused[i].len; at++) {
            push(fd, refused[i].bytes + at, 1);
        }
        pull(fd, &reply, 1, true);
        close(fd);
        if (!is_refused(&refused[i], &reply)) {
            fail_msg("\"%s\": handled %u, answered \"%s\"", refused[i].says, handled(), reply.text);
        }
    }
}

static void continue_is_sent_before_the_body(void **state)
{
    (void)state;
    struct reply reply = {.len = 0};
    const int fd = dial();
    static const char first[] =
        "POST /p HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n";

    push(fd, first, sizeof first - 1);
    pull(fd, &reply, 1, false);
    assert_memory_equal(reply.text, "HTTP/1.1 100", 12);
    push(fd, "hello", 5);
    pull(fd, &reply, 2, false);
    assert_non_null(strstr(reply.text, "HTTP/1.1 200"));
    assert_int_equal(handled(), 1);
    close(fd);
}

static void a_turned_away_body_is_not_asked_for(void **state)
{
    (void)state;
    static const char busy[] =
        "POST /busy HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    static const char gone[] = "POST /gone HTTP/1.1\r\n" H "Content-Length: 4000\r\n\r\n";
    static const char twice[] = "GET /gone HTTP/1.1\r\n" H "\r\nGET /p HTTP/1.1\r\n" H "\r\n";

    struct reply reply = talk(busy, sizeof busy - 1, 1, true);
    assert_memory_equal(reply.text, "HTTP/1.1 429", 12);
    assert_non_null(strstr(reply.text, "Retry-After: 7"));
    reply = talk(gone, sizeof gone - 1, 1, true);
    assert_memory_equal(reply.text, "HTTP/1.1 404", 12);
    assert_int_equal(handled(), 0);
    assert_int_equal(pay_http_server_stats(fix.server).turned_away, 2);

    reply = talk(twice, sizeof twice - 1, 2, false); /* Without a body the connection goes on. */
    assert_memory_equal(reply.text, "HTTP/1.1 404", 12);
    assert_non_null(strstr(reply.text, "HTTP/1.1 200"));
}

static struct reply talk_sized(const char *first, char fill, size_t count, unsigned want, bool eof)
{
    struct pay_buf all = pay_buf_make(1 << 20);

    pay_buf_add_c(&all, first);
    for (size_t i = 0; i < count; i++) {
        pay_buf_add_char(&all, fill);
    }
    const struct reply reply = talk(all.data, all.len, want, eof);
    pay_buf_free(&all);
    return reply;
}

static void bodies_are_bounded(void **state)
{
    (void)state;
    char text[256];

    (void)snprintf(text, sizeof text, "POST /p HTTP/1.1\r\n" H "Content-Length: %d\r\n\r\n",
                   BODY_MAX);
    struct reply reply = talk_sized(text, 'x', BODY_MAX, 1, false);
    assert_memory_equal(reply.text, "HTTP/1.1 200", 12);

    (void)snprintf(text, sizeof text, "POST /p HTTP/1.1\r\n" H "Content-Length: %d\r\n\r\n",
                   BODY_MAX + 1);
    reply = talk(text, strlen(text), 1, true); /* At once: not a byte of the body was sent. */
    assert_memory_equal(reply.text, "HTTP/1.1 413", 12);

    (void)snprintf(text, sizeof text,
                   "POST /p HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n%x\r\n",
                   BODY_MAX + 1);
    reply = talk_sized(text, 'x', BODY_MAX + 1, 1, true);
    assert_memory_equal(reply.text, "HTTP/1.1 413", 12);

    (void)snprintf(text, sizeof text,
                   "POST /p HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n%x\r\n", BODY_MAX);
    reply = talk_sized(text, 'x', BODY_MAX, 1, true); /* Exactly the maximum, never ended. */
    assert_memory_equal(reply.text, "HTTP/1.1 503", 12);
    assert_int_equal(handled(), 1);
    assert_int_equal(pay_http_server_stats(fix.server).too_large, 2);
}

static void heads_are_bounded(void **state)
{
    (void)state;
    struct pay_buf all = pay_buf_make(1 << 20);

    for (unsigned count = PAY_HTTP_SERVER_HEADERS_MAX; count <= PAY_HTTP_SERVER_HEADERS_MAX + 1;
         count++) {
        pay_buf_reset(&all);
        pay_buf_add_c(&all, "GET /p HTTP/1.1\r\n" H);
        for (unsigned i = 1; i < count; i++) {
            pay_buf_printf(&all, "X-%u: %u\r\n", i, i);
        }
        pay_buf_add_c(&all, "\r\n");
        const bool is_over = count > PAY_HTTP_SERVER_HEADERS_MAX;
        const struct reply reply = talk(all.data, all.len, 1, is_over);
        assert_memory_equal(reply.text, is_over ? "HTTP/1.1 431" : "HTTP/1.1 200", 12);
    }
    /* Exactly the largest head, then one byte more, then far more. */
    static const size_t sizes[] = {PAY_HTTP_SERVER_HEAD_BYTES_MAX,
                                   PAY_HTTP_SERVER_HEAD_BYTES_MAX + 1, 200000};
    for (size_t i = 0; i < 3; i++) {
        static const char start[] = "GET /p HTTP/1.1\r\n" H "X: ";
        pay_buf_reset(&all);
        pay_buf_add_c(&all, start);
        while (all.len < sizes[i] - 4) {
            pay_buf_add_char(&all, 'x');
        }
        pay_buf_add_c(&all, "\r\n\r\n");
        const struct reply reply = talk(all.data, all.len, 1, i > 0);
        assert_memory_equal(reply.text, i > 0 ? "HTTP/1.1 431" : "HTTP/1.1 200", 12);
    }
    pay_buf_free(&all);
    assert_int_equal(handled(), 2);
}

static void many_bodies_together_are_bounded(void **state)
{
    (void)state;
    char text[256];
    int fds[5];

    set_mode(KEEP);
    (void)snprintf(text, sizeof text, "POST /p HTTP/1.1\r\n" H "Content-Length: %d\r\n\r\n",
                   BODY_MAX);
    struct pay_buf all = pay_buf_make(1 << 20);
    pay_buf_add_c(&all, text);
    for (size_t i = 0; i < BODY_MAX; i++) {
        pay_buf_add_char(&all, 'x');
    }
    for (size_t i = 0; i < 4; i++) { /* Exactly the budget. */
        fds[i] = dial();
        push(fds[i], all.data, all.len);
    }
    pthread_mutex_lock(&fix.lock);
    while (fix.kept_count < 4) {
        pthread_cond_wait(&fix.changed, &fix.lock);
    }
    pthread_mutex_unlock(&fix.lock);
    const struct reply reply = talk(all.data, all.len, 1, true);
    assert_memory_equal(reply.text, "HTTP/1.1 503", 12);
    for (size_t i = 0; i < 4; i++) {
        struct reply answer = {.len = 0};
        assert_true(answer_ok(kept(i)));
        pull(fds[i], &answer, 1, false);
        assert_memory_equal(answer.text, "HTTP/1.1 200", 12);
        close(fds[i]);
    }
    assert_true(pay_http_server_wait_idle(fix.server, WAIT_MS));
    set_mode(ANSWER_NOW);
    const struct reply again = talk(all.data, all.len, 1, false); /* The budget came back. */
    assert_memory_equal(again.text, "HTTP/1.1 200", 12);
    pay_buf_free(&all);
}

/* One byte each 20 ms for ever: @return milliseconds until the server ended it. */
static int64_t drip(const char *start, struct reply *reply)
{
    const int64_t begin = pay_clock_mono_us();
    const int fd = dial();

    push(fd, start, strlen(start));
    while (!reply->is_eof) {
        struct pollfd at = {.fd = fd, .events = POLLIN};
        if (poll(&at, 1, 20) > 0) {
            pull(fd, reply, 1, true);
        } else {
            push(fd, "x", 1);
        }
        assert_true(pay_clock_mono_us() - begin < (int64_t)WAIT_MS * 1000);
    }
    close(fd);
    return (pay_clock_mono_us() - begin) / 1000;
}

static void slow_drippers_are_cut(void **state)
{
    (void)state;
    struct reply line = {.len = 0};
    struct reply headers = {.len = 0};
    struct reply body = {.len = 0};

    assert_true(drip("GET /", &line) >= IDLE_MS);
    assert_int_equal(line.len, 0);
    assert_true(drip("GET / HTTP/1.1\r\nX: ", &headers) >= DEADLINE_MS);
    assert_memory_equal(headers.text, "HTTP/1.1 503", 12);
    assert_true(drip("POST / HTTP/1.1\r\n" H "Content-Length: 4000\r\n\r\n", &body) >= DEADLINE_MS);
    assert_memory_equal(body.text, "HTTP/1.1 503", 12);
    assert_int_equal(handled(), 0);
    assert_int_equal(pay_http_server_stats(fix.server).deadlines, 2);
}

static void an_application_that_never_answers_is_answered_for(void **state)
{
    (void)state;
    static const char get[] = "GET /p HTTP/1.1\r\n" H "\r\n";

    set_mode(KEEP);
    const struct reply reply = talk(get, sizeof get - 1, 1, true);
    assert_memory_equal(reply.text, "HTTP/1.1 503", 12);
    assert_non_null(strstr(reply.text, "Retry-After"));
    assert_false(answer_ok(kept(0))); /* Too late, and safe. */
    assert_int_equal(pay_http_server_stats(fix.server).late_answers, 1);
    assert_int_equal(pay_http_server_stats(fix.server).in_hand, 0);
}

static void a_client_that_hung_up_harms_nobody(void **state)
{
    (void)state;
    static const char get[] = "GET /p HTTP/1.1\r\n" H "\r\n";

    set_mode(KEEP);
    const int fd = dial();
    push(fd, get, sizeof get - 1);
    pthread_mutex_lock(&fix.lock);
    while (fix.kept_count < 1) {
        pthread_cond_wait(&fix.changed, &fix.lock);
    }
    pthread_mutex_unlock(&fix.lock);
    const struct linger hard = {.l_onoff = 1, .l_linger = 0};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard), 0);
    close(fd); /* With a reset. */
    (void)answer_ok(kept(0));
    assert_true(pay_http_server_wait_idle(fix.server, WAIT_MS));
    set_mode(ANSWER_NOW);
    check_accepted(&accepted[0]);
}

static void stopping_answers_what_is_in_hand(void **state)
{
    (void)state;
    static const char get[] = "GET /p HTTP/1.1\r\n" H "\r\n";
    struct reply reply = {.len = 0};

    set_mode(KEEP);
    const int fd = dial();
    push(fd, get, sizeof get - 1);
    pthread_mutex_lock(&fix.lock);
    while (fix.kept_count < 1) {
        pthread_cond_wait(&fix.changed, &fix.lock);
    }
    pthread_mutex_unlock(&fix.lock);
    fix.server = pay_http_server_stop(fix.server);
    pull(fd, &reply, 1, true);
    assert_memory_equal(reply.text, "HTTP/1.1 503", 12);
    close(fd);
    assert_false(answer_ok(kept(0))); /* After the stop: still safe, frees the last of it. */
}

static void a_drain_refuses_new_and_finishes_old(void **state)
{
    (void)state;
    static const char get[] = "GET /p HTTP/1.1\r\n" H "\r\n";
    struct reply reply = {.len = 0};

    set_mode(KEEP);
    const int fd = dial();
    push(fd, get, sizeof get - 1);
    pthread_mutex_lock(&fix.lock);
    while (fix.kept_count < 1) {
        pthread_cond_wait(&fix.changed, &fix.lock);
    }
    pthread_mutex_unlock(&fix.lock);
    pay_http_server_quiesce(fix.server);
    const int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(fix.port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(other, (const struct sockaddr *)&to, sizeof to), -1);
    close(other);
    assert_false(pay_http_server_wait_idle(fix.server, 1));
    assert_true(answer_ok(kept(0)));
    pull(fd, &reply, 1, true);
    assert_memory_equal(reply.text, "HTTP/1.1 200", 12);
    assert_non_null(strstr(reply.text, "Connection: close"));
    assert_true(pay_http_server_wait_idle(fix.server, WAIT_MS));
    close(fd);
}

static void a_used_port_is_fatal(void **state)
{
    (void)state;
    struct pay_err err = {0};
    struct pay_http_server *second = NULL;
    struct pay_http_server_options opts = {.port = fix.port, .handler = handler};

    assert_int_equal(pay_http_server_start(&opts, &second, &err), PAY_FATAL);
    assert_int_equal(err.code, EADDRINUSE);
    opts.bind = "localhost";
    assert_int_equal(pay_http_server_start(&opts, &second, &err), PAY_FATAL);
    assert_null(second);
}

#define STORM_CLIENTS 8
#define STORM_REQUESTS 60

struct storm {
    pthread_t thread;
    unsigned answered;
    bool is_ended; /* The server closed it, or said 503. */
};

/* One connection, request after request, until it has enough or the server ends it. */
static void *storm_client(void *arg)
{
    static const char post[] = "POST /p HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello";
    struct storm *storm = arg;
    const int fd = dial();

    while (storm->answered < STORM_REQUESTS && !storm->is_ended) {
        struct reply reply = {.len = 0};
        push(fd, post, sizeof post - 1);
        while (!reply.is_eof && strstr(reply.text, "\r\n\r\nok") == NULL) {
            const ssize_t got =
                recv(fd, reply.text + reply.len, sizeof reply.text - 1 - reply.len, 0);
            reply.is_eof = got <= 0;
            reply.len += got > 0 ? (size_t)got : 0;
        }
        storm->is_ended = reply.is_eof;
        storm->answered += reply.is_eof ? 0 : 1;
    }
    close(fd);
    return NULL;
}

static void storm_start(struct storm storms[STORM_CLIENTS])
{
    for (size_t i = 0; i < STORM_CLIENTS; i++) {
        storms[i] = (struct storm){.answered = 0};
        assert_int_equal(pthread_create(&storms[i].thread, NULL, storm_client, &storms[i]), 0);
    }
}

static unsigned storm_end(struct storm storms[STORM_CLIENTS])
{
    unsigned answered = 0;

    for (size_t i = 0; i < STORM_CLIENTS; i++) {
        assert_int_equal(pthread_join(storms[i].thread, NULL), 0);
        answered += storms[i].answered;
    }
    return answered;
}

static void a_storm_is_answered_in_full(void **state)
{
    (void)state;
    struct storm storms[STORM_CLIENTS];

    set_mode(ANSWER_LATER);
    storm_start(storms);
    assert_int_equal(storm_end(storms), STORM_CLIENTS * STORM_REQUESTS);
    assert_int_equal(handled(), STORM_CLIENTS * STORM_REQUESTS);
    assert_true(pay_http_server_wait_idle(fix.server, WAIT_MS));
    assert_int_equal(pay_http_server_stats(fix.server).in_hand, 0);
    assert_int_equal(pay_http_server_stats(fix.server).late_answers, 0);
}

/* Wherever the stop falls: nothing hangs, nothing crashes, every client is told or closed. */
static void a_stop_in_the_storm_ends_every_connection(void **state)
{
    (void)state;
    struct storm storms[STORM_CLIENTS];

    set_mode(ANSWER_LATER);
    storm_start(storms);
    pthread_mutex_lock(&fix.lock);
    while (fix.handled < STORM_CLIENTS * STORM_REQUESTS / 4) {
        pthread_cond_wait(&fix.changed, &fix.lock);
    }
    pthread_mutex_unlock(&fix.lock);
    fix.server = pay_http_server_stop(fix.server);
    assert_true(storm_end(storms) <= handled());
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(ambiguous_requests_are_refused),
        T(sound_requests_arrive_whole),
        T(packets_do_not_matter),
        T(continue_is_sent_before_the_body),
        T(a_turned_away_body_is_not_asked_for),
        T(bodies_are_bounded),
        T(heads_are_bounded),
        T(many_bodies_together_are_bounded),
        T(slow_drippers_are_cut),
        T(an_application_that_never_answers_is_answered_for),
        T(a_client_that_hung_up_harms_nobody),
        T(stopping_answers_what_is_in_hand),
        T(a_drain_refuses_new_and_finishes_old),
        T(a_used_port_is_fatal),
        cmocka_unit_test_setup_teardown(a_storm_is_answered_in_full, setup_pool, teardown),
        cmocka_unit_test_setup_teardown(a_stop_in_the_storm_ends_every_connection, setup_pool,
                                        teardown),
    };
    return cmocka_run_group_tests_name("http_server", tests, NULL, NULL);
}
