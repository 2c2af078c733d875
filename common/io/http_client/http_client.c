/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/http_client/http_client.h"

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/io/http_client/delivery.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <curl/curl.h>

#include "common/base/banned.h"

#define CONNECT_MS_DEFAULT 3000
#define TOTAL_MS_DEFAULT 10000
#define BODY_BYTES_DEFAULT 1048576
#define HEADER_LINE_MAX 8192 /* Of a request: name, colon, value. */
#define IDLE_REUSE_S 20      /* A connection idle longer is not reused: it is probably dead. */
#define ANSWER_HEAD_BYTES_MAX 65536 /* Received; more ends the transfer. */

static const char op_new[] = "prepare the http client";

struct pay_http_client {
    CURL *easy;
    char *ca_file; /* NULL: the system's. */
    bool allow_plain_loopback, allow_plain;
    size_t body_bytes_max;
    CURLSH *share; /* Borrowed; NULL: none. */
};

struct pay_http_shared {
    CURLSH *share;
    pthread_mutex_t locks[CURL_LOCK_DATA_LAST];
};

/* One transfer, as its callbacks see it. */
struct transfer {
    const struct pay_http_call *call;
    struct pay_http_result *result;
    size_t body_bytes_max;
    size_t head_bytes;
    unsigned sends;
    bool is_head_done, is_delimited;
    const char *refusal; /* Why the callback let nothing go. */
    struct {
        size_t name, name_len, value, value_len; /* Offsets: the buffer moves while it grows. */
    } headers[PAY_HTTP_RESULT_HEADERS_MAX];
    size_t header_count;
};

static void init_library(void)
{
    PAY_ASSERT(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
}

static void init_library_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    PAY_ASSERT(pthread_once(&once, init_library) == 0);
}

static void share_lock(CURL *easy, curl_lock_data data, curl_lock_access access, void *ctx)
{
    struct pay_http_shared *shared = ctx;

    (void)easy;
    (void)access;
    PAY_ASSERT(pthread_mutex_lock(&shared->locks[data]) == 0);
}

static void share_unlock(CURL *easy, curl_lock_data data, void *ctx)
{
    struct pay_http_shared *shared = ctx;

    (void)easy;
    PAY_ASSERT(pthread_mutex_unlock(&shared->locks[data]) == 0);
}

enum pay_status pay_http_shared_new(struct pay_http_shared **ret_shared, struct pay_err *err)
{
    init_library_once();
    struct pay_http_shared *shared = pay_mem_new(1, sizeof *shared);

    if (shared == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, op_new, "out of memory");
    }
    for (size_t i = 0; i < CURL_LOCK_DATA_LAST; i++) {
        PAY_ASSERT(pthread_mutex_init(&shared->locks[i], NULL) == 0);
    }
    shared->share = curl_share_init();
    if (shared->share == NULL ||
        curl_share_setopt(shared->share, CURLSHOPT_LOCKFUNC, share_lock) != CURLSHE_OK ||
        curl_share_setopt(shared->share, CURLSHOPT_UNLOCKFUNC, share_unlock) != CURLSHE_OK ||
        curl_share_setopt(shared->share, CURLSHOPT_USERDATA, shared) != CURLSHE_OK ||
        curl_share_setopt(shared->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION) !=
            CURLSHE_OK) {
        (void)pay_http_shared_free(shared);
        return pay_err_set(err, PAY_FATAL, 0, op_new, "libcurl cannot share TLS sessions");
    }
    *ret_shared = shared;
    return PAY_OK;
}

struct pay_http_shared *pay_http_shared_free(struct pay_http_shared *shared)
{
    if (shared == NULL) {
        return NULL;
    }
    if (shared->share != NULL) {
        PAY_ASSERT(curl_share_cleanup(shared->share) ==
                   CURLSHE_OK); /* Else a client outlives it. */
    }
    for (size_t i = 0; i < CURL_LOCK_DATA_LAST; i++) {
        (void)pthread_mutex_destroy(&shared->locks[i]);
    }
    return pay_mem_free(shared);
}

static char *copy_text(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = pay_mem_new(size, 1);

    if (copy != NULL) {
        memcpy(copy, text, size);
    }
    return copy;
}

enum pay_status pay_http_client_new(const struct pay_http_client_options *opts,
                                    struct pay_http_client **ret_client, struct pay_err *err)
{
    enum pay_status status = PAY_OK;

    init_library_once();
    struct pay_http_client *client = pay_mem_new(1, sizeof *client);
    if (client == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, op_new, "out of memory");
    }
    client->allow_plain_loopback = opts->allow_plain_loopback;
    client->allow_plain = opts->allow_plain;
    client->body_bytes_max = opts->body_bytes_max == 0 ? BODY_BYTES_DEFAULT : opts->body_bytes_max;
    client->share = opts->shared == NULL ? NULL : opts->shared->share;
    client->easy = curl_easy_init();
    if (opts->ca_file != NULL) {
        client->ca_file = copy_text(opts->ca_file);
    }
    if (client->easy == NULL || (opts->ca_file != NULL && client->ca_file == NULL)) {
        status = pay_err_set(err, PAY_FATAL, 0, op_new, "out of memory");
    } else if (opts->ca_file != NULL && access(opts->ca_file, R_OK) != 0) {
        status =
            pay_err_set(err, PAY_FATAL, 0, op_new, "cannot read the CA file \"%s\"", opts->ca_file);
    } else if ((curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_SSL) == 0) {
        status = pay_err_set(err, PAY_FATAL, 0, op_new, "this libcurl is without TLS");
    } else {
        *ret_client = client;
        client = NULL;
    }
    (void)pay_http_client_free(client);
    return status;
}

struct pay_http_client *pay_http_client_free(struct pay_http_client *client)
{
    if (client == NULL) {
        return NULL;
    }
    if (client->easy != NULL) {
        curl_easy_cleanup(client->easy);
    }
    (void)pay_mem_free(client->ca_file);
    return pay_mem_free(client);
}

/* May libcurl repeat it by itself? Only what asks and cannot create anything. */
static bool may_repeat(const struct pay_http_call *call)
{
    return call->kind == PAY_HTTP_QUERY &&
           (strcmp(call->method, "GET") == 0 || strcmp(call->method, "HEAD") == 0);
}

/* Called by libcurl when the connection is ready, just before the first byte of a request. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's. */
static int before_send(void *ctx, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
    struct transfer *transfer = ctx;

    (void)remote_ip;
    (void)local_ip;
    (void)remote_port;
    (void)local_port;
    if (transfer->sends > 0 && !may_repeat(transfer->call)) {
        transfer->refusal = "a second send was refused";
        return CURL_PREREQFUNC_ABORT;
    }
    if (transfer->call->not_after_mono_us != 0 &&
        pay_clock_mono_us() > transfer->call->not_after_mono_us) {
        transfer->refusal = "too late: not_after passed before the first byte";
        return CURL_PREREQFUNC_ABORT;
    }
    transfer->sends++;
    return CURL_PREREQFUNC_OK;
}

static size_t on_body(char *data, size_t size, size_t count, void *ctx)
{
    struct transfer *transfer = ctx;
    struct pay_buf *body = &transfer->result->body_buf;

    pay_buf_add(body, data, size * count);
    return body->failed ? 0 : size * count; /* 0 ends the transfer: WRITE_ERROR, so UNKNOWN. */
}

static size_t trim_end(const char *line, size_t len)
{
    while (len > 0 && strchr(" \t\r\n", line[len - 1]) != NULL) {
        len--;
    }
    return len;
}

static void keep_header(struct transfer *transfer, const char *line, size_t len)
{
    struct pay_buf *buf = &transfer->result->header_buf;
    const char *colon = memchr(line, ':', len);

    if (colon == NULL || transfer->header_count == PAY_HTTP_RESULT_HEADERS_MAX ||
        len + 2 > buf->max - buf->len) {
        return; /* Over the maximum: dropped, as the header says. */
    }
    const size_t name_len = (size_t)(colon - line);
    size_t start = name_len + 1;
    while (start < len && (line[start] == ' ' || line[start] == '\t')) {
        start++;
    }
    const size_t at = transfer->header_count++;
    transfer->headers[at].name = buf->len;
    transfer->headers[at].name_len = name_len;
    pay_buf_add(buf, line, name_len);
    pay_buf_add_char(buf, 0);
    transfer->headers[at].value = buf->len;
    transfer->headers[at].value_len = len - start;
    pay_buf_add(buf, line + start, len - start);
    pay_buf_add_char(buf, 0);
}

/* A Content-Length that is no number is libcurl's error. */
static bool delimits(const char *line, size_t len)
{
    static const char length[] = "content-length:";
    static const char coding[] = "transfer-encoding:";
    static const char chunked[] = "chunked";

    if (len > sizeof length - 1 && strncasecmp(line, length, sizeof length - 1) == 0) {
        return true;
    }
    return len >= sizeof coding - 1 + sizeof chunked - 1 &&
           strncasecmp(line, coding, sizeof coding - 1) == 0 &&
           strncasecmp(line + len - (sizeof chunked - 1), chunked, sizeof chunked - 1) == 0;
}

static bool is_whole(const struct transfer *transfer, long status)
{
    const bool has_no_body =
        status == 204 || status == 304 || strcmp(transfer->call->method, "HEAD") == 0;

    return transfer->is_head_done && (transfer->is_delimited || has_no_body);
}

static size_t on_header(char *line, size_t size, size_t count, void *ctx)
{
    struct transfer *transfer = ctx;
    const size_t bytes = size * count;

    if (bytes > ANSWER_HEAD_BYTES_MAX - transfer->head_bytes) {
        return 0;
    }
    transfer->head_bytes += bytes;
    if (bytes >= 5 && memcmp(line, "HTTP/", 5) == 0) { /* 1xx came before: only the last counts. */
        transfer->header_count = 0;
        transfer->is_head_done = false;
        transfer->is_delimited = false;
        pay_buf_reset(&transfer->result->header_buf);
        return bytes;
    }
    const size_t len = trim_end(line, bytes);
    transfer->is_head_done = transfer->is_head_done || len == 0;
    transfer->is_delimited = transfer->is_delimited || delimits(line, len);
    keep_header(transfer, line, len);
    return bytes;
}

static bool has_control(struct pay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return true;
        }
    }
    return false;
}

/* Framing is libcurl's and ours alone: a header that changes it could make one call two. */
static bool is_reserved(struct pay_str name)
{
    static const char *const reserved[] = {
        "content-length", "transfer-encoding", "expect", "connection", "host", "upgrade"};

    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        if (strlen(reserved[i]) == name.len && strncasecmp(name.ptr, reserved[i], name.len) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_loopback(const char *host)
{
    return strcmp(host, "127.0.0.1") == 0 || strcasecmp(host, "localhost") == 0 ||
           strcmp(host, "[::1]") == 0;
}

/* libcurl's own parser reads it, so that what is checked is what is used. */
static const char *check_url(const struct pay_http_client *client, const char *text)
{
    const char *why_not = "the URL is malformed";
    char *scheme = NULL;
    char *host = NULL;
    CURLU *url = curl_url();

    if (url == NULL || curl_url_set(url, CURLUPART_URL, text, CURLU_DISALLOW_USER) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK) {
        goto out;
    }
    if (strcmp(scheme, "https") == 0) {
        why_not = NULL;
    } else if (strcmp(scheme, "http") != 0) {
        why_not = "the URL is not https";
    } else {
        const bool is_allowed =
            client->allow_plain || (client->allow_plain_loopback && is_loopback(host));
        why_not = is_allowed ? NULL : "plain http is refused";
    }
out:
    curl_free(scheme);
    curl_free(host);
    curl_url_cleanup(url);
    return why_not;
}

/* @return why the call cannot be made, NULL when it can. Nothing was sent then. */
static const char *check_call(const struct pay_http_client *client,
                              const struct pay_http_call *call)
{
    if (call->header_count > PAY_HTTP_CALL_HEADERS_MAX) {
        return "too many headers";
    }
    if (call->body.len > PAY_HTTP_CALL_BODY_BYTES_MAX) {
        return "the body is too large";
    }
    for (size_t i = 0; i < call->header_count; i++) {
        const struct pay_http_call_header *header = &call->headers[i];
        if (header->name.len == 0 || has_control(header->name) || has_control(header->value) ||
            memchr(header->name.ptr, ':', header->name.len) != NULL ||
            header->name.len + header->value.len > HEADER_LINE_MAX) {
            return "a header is malformed or too long";
        }
        if (is_reserved(header->name)) {
            return "a header is reserved";
        }
    }
    if (has_control(pay_str_of(call->url)) || has_control(pay_str_of(call->method)) ||
        strchr(call->url, ' ') != NULL) {
        return "the URL or the method is malformed";
    }
    if (call->not_after_mono_us != 0 && pay_clock_mono_us() > call->not_after_mono_us) {
        return "too late: not_after has passed";
    }
    return check_url(client, call->url);
}

static bool add_line(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);

    if (longer == NULL) {
        return false;
    }
    *list = longer;
    return true;
}

static bool add_headers(struct curl_slist **list, const struct pay_http_call *call)
{
    bool has_type = false;
    bool ok =
        add_line(list, "Expect:"); /* Never wait for 100: the answer would be one more state. */

    for (size_t i = 0; ok && i < call->header_count; i++) {
        char line[HEADER_LINE_MAX + 4];
        const struct pay_http_call_header *header = &call->headers[i];
        /* "Name;" is libcurl's way to say a header with an empty value. */
        (void)snprintf(line, sizeof line, "%.*s%s%.*s", (int)header->name.len, header->name.ptr,
                       header->value.len == 0 ? ";" : ": ", (int)header->value.len,
                       header->value.len == 0 ? "" : header->value.ptr);
        has_type = has_type || (header->name.len == 12 &&
                                strncasecmp(header->name.ptr, "content-type", 12) == 0);
        ok = add_line(list, line);
    }
    return ok && (has_type || add_line(list, "Content-Type:")); /* No guess of libcurl's. */
}

#define SET(option, value) (curl_easy_setopt(client->easy, (option), (value)) == CURLE_OK)

static bool set_method(struct pay_http_client *client, const struct pay_http_call *call)
{
    bool ok = true;

    if (strcmp(call->method, "GET") == 0 && call->body.len == 0) {
        return SET(CURLOPT_HTTPGET, 1L);
    }
    if (strcmp(call->method, "HEAD") == 0) {
        return SET(CURLOPT_NOBODY, 1L);
    }
    if (strcmp(call->method, "POST") == 0 || call->body.ptr != NULL) {
        ok = SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len) &&
             SET(CURLOPT_POSTFIELDS, call->body.len == 0 ? "" : (const char *)call->body.ptr);
    }
    return ok && (strcmp(call->method, "POST") == 0 || SET(CURLOPT_CUSTOMREQUEST, call->method));
}

/* What is the same for every call. curl_easy_reset() keeps connections and TLS sessions. */
static bool set_fixed(struct pay_http_client *client, struct transfer *transfer)
{
    const bool allows_plain = client->allow_plain_loopback || client->allow_plain;
    return SET(CURLOPT_NOSIGNAL, 1L) && SET(CURLOPT_PROXY, "") && SET(CURLOPT_FOLLOWLOCATION, 0L) &&
           SET(CURLOPT_HTTP09_ALLOWED, 0L) && SET(CURLOPT_SSL_VERIFYPEER, 1L) &&
           SET(CURLOPT_SSL_VERIFYHOST, 2L) &&
           SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) &&
           SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) &&
           SET(CURLOPT_PROTOCOLS_STR, allows_plain ? "https,http" : "https") &&
           SET(CURLOPT_USERAGENT, "payfact/" PAY_VERSION) && SET(CURLOPT_TCP_NODELAY, 1L) &&
           SET(CURLOPT_WRITEFUNCTION, on_body) && SET(CURLOPT_WRITEDATA, transfer) &&
           SET(CURLOPT_HEADERFUNCTION, on_header) && SET(CURLOPT_HEADERDATA, transfer) &&
           SET(CURLOPT_PREREQFUNCTION, before_send) && SET(CURLOPT_PREREQDATA, transfer) &&
           SET(CURLOPT_MAXAGE_CONN, (long)IDLE_REUSE_S) &&
           (client->share == NULL || SET(CURLOPT_SHARE, client->share)) &&
           (client->ca_file == NULL || SET(CURLOPT_CAINFO, client->ca_file));
}

static long or_default(unsigned value, long by_default)
{
    return value == 0 ? by_default : (long)value;
}

static bool set_call(struct pay_http_client *client, const struct pay_http_call *call,
                     struct curl_slist *headers)
{
    const long is_money = call->kind == PAY_HTTP_MONEY ? 1L : 0L;

    /* On a fresh connection libcurl has no reason to send twice; the callback makes sure. */
    return SET(CURLOPT_URL, call->url) && SET(CURLOPT_HTTPHEADER, headers) &&
           SET(CURLOPT_FRESH_CONNECT, is_money) && SET(CURLOPT_FORBID_REUSE, is_money) &&
           SET(CURLOPT_CONNECTTIMEOUT_MS,
               or_default(call->connect_timeout_ms, CONNECT_MS_DEFAULT)) &&
           SET(CURLOPT_TIMEOUT_MS, or_default(call->total_timeout_ms, TOTAL_MS_DEFAULT)) &&
           set_method(client, call);
}

static void set_text(struct pay_http_result *result, const char *text)
{
    (void)snprintf(result->text, sizeof result->text, "%s", text); /* Cut when too long. */
}

static void take_answer(const struct transfer *transfer, long status)
{
    struct pay_http_result *result = transfer->result;
    const char *base = (const char *)result->header_buf.data;

    result->status = (int)status;
    result->body = pay_buf_bytes(&result->body_buf);
    if (result->body.ptr == NULL) {
        result->body = (struct pay_bytes){(const uint8_t *)"", 0};
    }
    for (size_t i = 0; i < transfer->header_count; i++) {
        result->headers[i] = (struct pay_http_call_header){
            {base + transfer->headers[i].name, transfer->headers[i].name_len},
            {base + transfer->headers[i].value, transfer->headers[i].value_len}};
    }
    result->header_count = transfer->header_count;
}

static void conclude(struct pay_http_client *client, const struct transfer *transfer, CURLcode code)
{
    struct pay_http_result *result = transfer->result;
    struct pay_http_evidence evidence = {.curl_code = (int)code, .sends = transfer->sends};
    const bool is_known =
        curl_easy_getinfo(client->easy, CURLINFO_REQUEST_SIZE, &evidence.request_size) ==
            CURLE_OK &&
        curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &evidence.status) == CURLE_OK;

    evidence.is_whole = is_whole(transfer, evidence.status);
    result->curl_code = (int)code;
    result->delivery = is_known ? pay_http_delivery_of(&evidence) : PAY_HTTP_UNKNOWN;
    if (result->delivery == PAY_HTTP_ANSWERED) {
        take_answer(transfer, evidence.status);
    } else if (transfer->refusal != NULL) {
        set_text(result, transfer->refusal);
    } else {
        set_text(result, code == CURLE_OK ? "no whole answer" : curl_easy_strerror(code));
    }
}

void pay_http_client_call(struct pay_http_client *client, const struct pay_http_call *call,
                          struct pay_http_result *ret_result)
{
    const int64_t start_us = pay_clock_mono_us();
    struct curl_slist *headers = NULL;
    struct transfer transfer = {.call = call, .result = ret_result};

    *ret_result = (struct pay_http_result){
        .delivery = PAY_HTTP_NOT_SENT,
        .body_buf = pay_buf_make(client->body_bytes_max),
        .header_buf = pay_buf_make(PAY_HTTP_RESULT_HEADER_BYTES_MAX),
    };
    const char *why_not = check_call(client, call);
    if (why_not != NULL) {
        set_text(ret_result, why_not);
    } else {
        curl_easy_reset(client->easy);
        if (!add_headers(&headers, call) || !set_fixed(client, &transfer) ||
            !set_call(client, call, headers)) {
            set_text(ret_result, "the call could not be prepared");
        } else {
            conclude(client, &transfer, curl_easy_perform(client->easy));
        }
    }
    curl_slist_free_all(headers);
    ret_result->elapsed_us = pay_clock_mono_us() - start_us;
}

void pay_http_result_free(struct pay_http_result *result)
{
    pay_buf_free(&result->body_buf);
    pay_buf_free(&result->header_buf);
    *result = (struct pay_http_result){.delivery = PAY_HTTP_UNKNOWN};
}

struct pay_str pay_http_result_header(const struct pay_http_result *result, const char *name)
{
    for (size_t i = 0; i < result->header_count; i++) {
        const struct pay_str at = result->headers[i].name;
        if (strlen(name) == at.len && strncasecmp(at.ptr, name, at.len) == 0) {
            return result->headers[i].value;
        }
    }
    return (struct pay_str){NULL, 0};
}
