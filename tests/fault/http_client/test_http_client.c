/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: whatever a server does, a MONEY call reaches it at most once, and the class of delivery is
 * never more certain than the truth. Each row is one way to fail.
 * Method: bad_server.py fails in the row's way and keeps a ledger of the complete requests it took;
 * the ledger, not the client, says how often a call arrived.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/io/http_client/http_client.h"

#define TOTAL_MS 1200
#define CONNECT_MS 700
#define BIG_BODY PAY_HTTP_CALL_BODY_BYTES_MAX /* More than the kernel's buffers take. */

static struct {
    char directory[64];
    char ca_file[96];
    pid_t pid;
    FILE *to, *from;
    struct pay_http_shared *shared;
    struct pay_http_client *client;
} fix;

static unsigned ask(const char *verb, const char *a, const char *b, const char *expect)
{
    char line[64];
    const size_t len = strlen(expect);

    assert_true(fprintf(fix.to, "%s %s %s\n", verb, a, b) > 0);
    assert_int_equal(fflush(fix.to), 0);
    assert_non_null(fgets(line, sizeof line, fix.from));
    assert_memory_equal(line, expect, len);
    return (unsigned)strtoul(line + len, NULL, 10);
}

static unsigned server_start(const char *behaviour, const char *certificate)
{
    return ask("START", behaviour, certificate == NULL ? "" : certificate, "PORT ");
}

static unsigned server_stop(void)
{
    return ask("STOP", "", "", "LEDGER ");
}

enum what { MONEY_POST, QUERY_GET, QUERY_POST, WHAT_COUNT };
static const char *const what_names[] = {"MONEY POST", "QUERY GET", "QUERY POST"};

struct outcome {
    enum pay_http_delivery delivery;
    int status;
    unsigned ledger; /* Complete requests taken, the warm-up included. */
};

struct row {
    const char *says;
    const char *behaviour;
    const char *certificate; /* NULL: plain. */
    bool is_warm;            /* A QUERY before, on a connection that can be reused. */
    bool is_big;             /* A body larger than the kernel's buffers. */
    bool may_be_unsent;      /* The fault can come before connect() has returned. */
    int64_t not_after_ms;    /* From now; 0: none. */
    struct outcome money;
    struct outcome get;  /* All zero: as money. */
    struct outcome post; /* All zero: as money. */
};

/* clang-format off */
#define NOT_SENT {PAY_HTTP_NOT_SENT, 0, 0}
#define UNKNOWN(ledger) {PAY_HTTP_UNKNOWN, 0, (ledger)}
#define ANSWERED(status, ledger) {PAY_HTTP_ANSWERED, (status), (ledger)}
#define ROW(says_, how_, ...) {.says = says_, .behaviour = how_, .money = __VA_ARGS__}
static const struct row rows[] = {
    ROW("an answer", "ok", ANSWERED(200, 1)),
    ROW("an answer over TLS", "ok", ANSWERED(200, 1), .certificate = "good"),
    ROW("an answer on a second connection", "ok", ANSWERED(200, 2), .is_warm = true),

    ROW("a reused connection dies after the request was taken", "die_on_second", UNKNOWN(2), .is_warm = true,
        .get = ANSWERED(200, 3), .post = UNKNOWN(2)),
    ROW("the same over TLS", "die_on_second", UNKNOWN(2), .certificate = "good", .is_warm = true,
        .get = ANSWERED(200, 3), .post = UNKNOWN(2)),
    ROW("it dies and the silent second try is refused", "die_and_refuse", UNKNOWN(2), .is_warm = true),

    ROW("nobody listens", "refuse", NOT_SENT),
    ROW("nobody listens, TLS", "refuse", NOT_SENT, .certificate = "good"),
    ROW("a certificate nobody signed", "ok", NOT_SENT, .certificate = "self"),
    ROW("an expired certificate", "ok", NOT_SENT, .certificate = "expired"),
    ROW("a certificate of another name", "ok", NOT_SENT, .certificate = "other"),
    ROW("plain HTTP where TLS is expected", "handshake_garbage", NOT_SENT, .certificate = ""),
    ROW("a reset within the handshake", "handshake_reset", NOT_SENT, .certificate = ""),
    ROW("a handshake that never ends", "no_handshake", NOT_SENT, .certificate = ""),
    ROW("a slow handshake, in time", "slow_handshake", ANSWERED(200, 1), .certificate = "", .not_after_ms = 60000),
    ROW("not_after passes within the handshake", "slow_handshake", NOT_SENT, .certificate = "", .not_after_ms = 150),
    ROW("not_after has passed", "ok", NOT_SENT, .not_after_ms = -1),

    ROW("a reset on accept", "reset_on_accept", UNKNOWN(0), .may_be_unsent = true),
    ROW("a reset after the request", "reset_after_read", UNKNOWN(1)),
    ROW("a close after the request", "close_after_read", UNKNOWN(1)),
    ROW("a close after the request, TLS", "close_after_read", UNKNOWN(1), .certificate = "good"),
    ROW("half a body", "half", UNKNOWN(1)),
    ROW("half a head", "half_head", UNKNOWN(1)),
    ROW("a body that only the close delimits", "whole_but_undelimited", UNKNOWN(1)),
    ROW("an answer in chunks", "chunks", ANSWERED(200, 1)),
    ROW("an answer without a body", "empty_204", ANSWERED(204, 1)),
    ROW("silence after the request", "stall_before_answer", UNKNOWN(1)),
    ROW("silence after the head", "stall_after_head", UNKNOWN(1)),
    ROW("a body that drips", "drip", UNKNOWN(1)),
    ROW("a chunk cut short", "cut_chunk", UNKNOWN(1)),
    ROW("the last chunk missing", "cut_between_chunks", UNKNOWN(1)),
    ROW("a malformed chunk", "bad_chunk", UNKNOWN(1)),
    ROW("garbage", "garbage", UNKNOWN(1)),
    ROW("a status that is no number", "bad_status", UNKNOWN(1)),
    ROW("a length that is no number", "bad_length", UNKNOWN(1)),
    ROW("100 only, then a close", "continue_then_close", UNKNOWN(1)),
    ROW("100, then an answer", "continue_then_ok", ANSWERED(200, 1)),
    ROW("an answer larger than the maximum", "large", UNKNOWN(1)),
    ROW("an answer without end", "endless", UNKNOWN(1)),
    ROW("a head without end", "endless_head", UNKNOWN(1)),
    ROW("an HTTP/2 GOAWAY", "goaway", UNKNOWN(1)),
    ROW("a server that never reads", "upload_stall", UNKNOWN(0), .is_big = true),

    ROW("307 is not followed", "redirect", ANSWERED(307, 1)),
    ROW("401 is not tried again", "unauthorized", ANSWERED(401, 1)),
    ROW("408 is not tried again", "status_408", ANSWERED(408, 1)),
    ROW("417 is not tried again", "status_417", ANSWERED(417, 1)),
    ROW("421 is not tried again", "status_421", ANSWERED(421, 1)),
    ROW("503 is an answer", "status_503", ANSWERED(503, 1)),
};
/* clang-format on */

static bool is_unset(const struct outcome *outcome)
{
    return outcome->delivery == 0 && outcome->status == 0 && outcome->ledger == 0;
}

static const struct outcome *expected(const struct row *row, enum what what)
{
    const struct outcome *own = what == QUERY_GET    ? &row->get
                                : what == QUERY_POST ? &row->post
                                                     : &row->money;
    return is_unset(own) ? &row->money : own;
}

static void call(const struct row *row, enum what what, unsigned port,
                 struct pay_http_result *ret_result)
{
    static uint8_t big[BIG_BODY];
    char url[64];
    const struct pay_http_call_header header = {PAY_STR("Idempotency-Key"), PAY_STR("A01")};

    (void)snprintf(url, sizeof url, "%s:%u/v1",
                   row->certificate == NULL ? "http://127.0.0.1" : "https://localhost", port);
    pay_http_client_call(
        fix.client,
        &(struct pay_http_call){
            .kind = what == MONEY_POST ? PAY_HTTP_MONEY : PAY_HTTP_QUERY,
            .method = what == QUERY_GET ? "GET" : "POST",
            .url = url,
            .headers = &header,
            .header_count = 1,
            .body = what == QUERY_GET ? (struct pay_bytes){NULL, 0}
                    : row->is_big     ? (struct pay_bytes){big, sizeof big}
                                      : (struct pay_bytes){(const uint8_t *)"a=1", 3},
            .connect_timeout_ms = CONNECT_MS,
            .total_timeout_ms = TOTAL_MS,
            .not_after_mono_us =
                row->not_after_ms == 0 ? 0 : pay_clock_mono_us() + row->not_after_ms * 1000,
        },
        ret_result);
}

static void check(const struct row *row, enum what what)
{
    static const struct outcome not_sent = NOT_SENT;
    const struct outcome *want = expected(row, what);
    struct pay_http_result result;

    const unsigned port = server_start(row->behaviour, row->certificate);
    if (row->is_warm) {
        call(row, QUERY_GET, port, &result);
        assert_int_equal(result.delivery, PAY_HTTP_ANSWERED);
        pay_http_result_free(&result);
    }
    call(row, what, port, &result);
    const unsigned ledger = server_stop();
    const unsigned charged = ledger - (row->is_warm ? 1 : 0);
    if (row->may_be_unsent && result.delivery == PAY_HTTP_NOT_SENT && ledger == 0) {
        want = &not_sent;
    }
    if (result.delivery != want->delivery || result.status != want->status ||
        ledger != want->ledger || (what == MONEY_POST && charged > 1) ||
        result.elapsed_us > INT64_C(2) * TOTAL_MS * 1000) {
        fail_msg("\"%s\", %s: %s status=%d ledger=%u curl=%d \"%s\" after %lld us", row->says,
                 what_names[what], pay_http_delivery_name(result.delivery), result.status, ledger,
                 result.curl_code, result.text, (long long)result.elapsed_us);
    }
    assert_true((result.delivery == PAY_HTTP_ANSWERED) == (result.text[0] == 0));
    pay_http_result_free(&result);
}

static void every_way_to_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (enum what what = 0; what < WHAT_COUNT; what++) {
            if (!(rows[i].is_big && what == QUERY_GET)) {
                check(&rows[i], what);
            }
        }
    }
}

static struct pay_http_result get(const char *url)
{
    struct pay_http_result result;

    pay_http_client_call(fix.client,
                         &(struct pay_http_call){.kind = PAY_HTTP_MONEY,
                                                 .method = "POST",
                                                 .url = url,
                                                 .connect_timeout_ms = CONNECT_MS,
                                                 .total_timeout_ms = TOTAL_MS},
                         &result);
    return result;
}

static void a_name_that_does_not_resolve_is_not_sent(void **state)
{
    (void)state;
    struct pay_http_result result = get("https://no-such-host.invalid/");
    assert_int_equal(result.delivery, PAY_HTTP_NOT_SENT);
    assert_int_not_equal(result.curl_code, 0);
    pay_http_result_free(&result);
}

static void unsafe_urls_are_refused(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "http://psp.example/",
        "http://127.0.0.1.psp.example/",
        "http://127.0.0.1@psp.example/",
        "ftp://localhost/",
        "http://127.0.0.1:80@psp.example/",
        "file:///etc/passwd",
        "https://a:b@localhost/",
        "https://localhost/a b",
        "https://localhost/\r\nX: y",
        "psp.example",
        "",
        "http://127.0.0.2/",
    };
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct pay_http_result result = get(urls[i]);
        if (result.delivery != PAY_HTTP_NOT_SENT || result.curl_code != 0) {
            fail_msg("\"%s\": %s curl=%d", urls[i], pay_http_delivery_name(result.delivery),
                     result.curl_code);
        }
        pay_http_result_free(&result);
    }
}

static void unsafe_headers_are_refused(void **state)
{
    (void)state;
    static const char *const headers[][2] = {
        {"X", "a\r\nY: b"},
        {"X\n", "a"},
        {"X: y", "a"},
        {"", "a"},
        {"Expect", "100-continue"},
        {"content-length", "3"},
        {"Transfer-Encoding", "chunked"},
        {"Connection", "close"},
    };
    const unsigned port = server_start("ok", NULL);
    char url[64];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/", port);
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        struct pay_http_result result;
        const struct pay_http_call_header header = {pay_str_of(headers[i][0]),
                                                    pay_str_of(headers[i][1])};
        pay_http_client_call(
            fix.client,
            &(struct pay_http_call){
                .method = "POST", .url = url, .headers = &header, .header_count = 1},
            &result);
        assert_int_equal(result.delivery, PAY_HTTP_NOT_SENT);
        pay_http_result_free(&result);
    }
    assert_int_equal(server_stop(), 0);
}

static void answers_come_whole(void **state)
{
    (void)state;
    static const struct row row = {.is_warm = false};
    struct pay_http_result result;

    call(&row, MONEY_POST, server_start("continue_then_ok", NULL), &result);
    assert_int_equal(result.body.len, 2);
    assert_memory_equal(result.body.ptr, "ok", 2);
    assert_true(pay_str_eq_c(pay_http_result_header(&result, "request-id"), "req_1"));
    assert_true(pay_str_eq_c(pay_http_result_header(&result, "X-Empty"), ""));
    assert_null(pay_http_result_header(&result, "X-Early").ptr); /* Of the 100. */
    assert_null(pay_http_result_header(&result, "X-None").ptr);
    pay_http_result_free(&result);
    pay_http_result_free(&result);
    assert_int_equal(server_stop(), 1);
}

/* A fresh connection for each MONEY call, but not a full handshake; other clients share the cache.
 */
static void tls_sessions_are_resumed(void **state)
{
    (void)state;
    static const struct row row = {.certificate = "good"};
    struct pay_http_result result;
    struct pay_http_client *first = fix.client;
    struct pay_http_client *second = NULL;
    struct pay_err err;

    const unsigned port = server_start("tell_resumed", "good");
    call(&row, MONEY_POST, port, &result);
    assert_int_equal(result.status, 200);
    pay_http_result_free(&result);
    call(&row, MONEY_POST, port, &result);
    assert_int_equal(result.status, 201);
    pay_http_result_free(&result);

    const struct pay_http_client_options opts = {.ca_file = fix.ca_file, .shared = fix.shared};
    assert_int_equal(pay_http_client_new(&opts, &second, &err), PAY_OK);
    fix.client = second;
    call(&row, MONEY_POST, port, &result);
    fix.client = first;
    second = pay_http_client_free(second);
    assert_int_equal(result.status, 201);
    pay_http_result_free(&result);
    assert_int_equal(server_stop(), 3);
}

static void an_unreadable_ca_file_is_fatal(void **state)
{
    (void)state;
    struct pay_http_client *client = NULL;
    struct pay_err err;

    assert_int_equal(pay_http_client_new(&(struct pay_http_client_options){.ca_file = "/none.pem"},
                                         &client, &err),
                     PAY_FATAL);
    assert_null(client);
}

static int start_server_process(void)
{
    int to[2];
    int from[2];

    if (pipe(to) != 0 || pipe(from) != 0) {
        return -1;
    }
    fix.pid = fork();
    if (fix.pid == 0) {
        (void)dup2(to[0], STDIN_FILENO);
        (void)dup2(from[1], STDOUT_FILENO);
        (void)close(to[0]);
        (void)close(to[1]);
        (void)close(from[0]);
        (void)close(from[1]);
        (void)execlp("python3", "python3", PAY_TEST_DATA "/fault/http_client/bad_server.py",
                     fix.directory, (char *)NULL);
        _exit(127);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    fix.to = fdopen(to[1], "w");
    fix.from = fdopen(from[0], "r");
    return fix.pid > 0 && fix.to != NULL && fix.from != NULL ? 0 : -1;
}

static int setup(void **state)
{
    (void)state;
    struct pay_err err = {0};

    (void)signal(SIGPIPE, SIG_IGN); /* A dead server fails a test, not the program. */
    (void)snprintf(fix.directory, sizeof fix.directory, "/tmp/payfact-http-XXXXXX");
    if (mkdtemp(fix.directory) == NULL || start_server_process() != 0) {
        return -1;
    }
    (void)server_start("refuse", NULL); /* The certificates are there once it answers. */
    (void)server_stop();
    (void)snprintf(fix.ca_file, sizeof fix.ca_file, "%s/ca.pem", fix.directory);
    if (pay_http_shared_new(&fix.shared, &err) != PAY_OK ||
        pay_http_client_new(&(struct pay_http_client_options){.ca_file = fix.ca_file,
                                                              .allow_plain_loopback = true,
                                                              .shared = fix.shared},
                            &fix.client, &err) != PAY_OK) {
        print_error("%s\n", err.text);
        return -1;
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fix.client = pay_http_client_free(fix.client);
    fix.shared = pay_http_shared_free(fix.shared);
    (void)fclose(fix.to); /* End of input ends it. */
    (void)fclose(fix.from);
    (void)waitpid(fix.pid, NULL, 0);
    return access(fix.directory, F_OK) == 0 ? -1 : 0; /* It removed its certificates. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_to_fail),
        cmocka_unit_test(a_name_that_does_not_resolve_is_not_sent),
        cmocka_unit_test(unsafe_urls_are_refused),
        cmocka_unit_test(unsafe_headers_are_refused),
        cmocka_unit_test(answers_come_whole),
        cmocka_unit_test(tls_sessions_are_resumed),
        cmocka_unit_test(an_unreadable_ca_file_is_fatal),
    };
    /* A proxy of the environment must not get in between. */
    if (setenv("http_proxy", "http://127.0.0.1:1", 1) != 0 ||
        setenv("https_proxy", "http://127.0.0.1:1", 1) != 0) {
        return 1;
    }
    return cmocka_run_group_tests_name("http_client", tests, setup, teardown);
}
