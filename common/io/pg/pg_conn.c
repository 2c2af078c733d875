/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/pg/pg.h"

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/io/pg/pg_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/base/banned.h"

#define CONNECT_TIMEOUT_MS 5000
#define STATEMENT_TIMEOUT_MS 30000
#define ANSWER_GRACE_MS 5000
#define TCP_USER_TIMEOUT_MS 10000
#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 5000
#define PASSWORD_BYTES_MAX 1024
#define SERVER_OPTIONS_BYTES_MAX 2048
#define KEYWORDS_MAX 16

/* Text of the options is owned by the handle; the fields are const for everybody else. */
static bool own_text(const char **text)
{
    if (*text == NULL || (*text)[0] == 0) {
        *text = NULL;
        return true;
    }
    *text = strdup(*text);
    return *text != NULL;
}

static void free_text(const char *text)
{
    union {
        const char *in;
        void *out;
    } owned = {.in = text};

    pay_mem_free(owned.out);
}

static int or_default(int value, int by_default)
{
    return value == 0 ? by_default : value;
}

static void set_defaults(struct pay_pg_options *options)
{
    options->connect_timeout_ms = or_default(options->connect_timeout_ms, CONNECT_TIMEOUT_MS);
    options->statement_timeout_ms = or_default(options->statement_timeout_ms, STATEMENT_TIMEOUT_MS);
    options->tcp_user_timeout_ms = or_default(options->tcp_user_timeout_ms, TCP_USER_TIMEOUT_MS);
    if (options->answer_timeout_ms == 0) {
        options->answer_timeout_ms = options->statement_timeout_ms < 0
                                         ? -1
                                         : options->statement_timeout_ms + ANSWER_GRACE_MS;
    }
}

/* It is put into the server's command line, where a blank or a backslash would start something
 * else. */
static bool is_search_path(const char *text)
{
    return text == NULL || strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789_,$") == strlen(text);
}

static enum pay_status check_options(const struct pay_pg_options *options, struct pay_err *err)
{
    char *why = NULL;
    PQconninfoOption *parsed =
        PQconninfoParse(options->conninfo != NULL ? options->conninfo : "", &why);

    if (parsed == NULL) {
        /* libpq's text may quote the conninfo, and so a password: left out. */
        PQfreemem(why);
        return pay_err_set(err, PAY_FATAL, 0, "pg conninfo", "conninfo is not valid");
    }
    PQconninfoFree(parsed);
    if (!is_search_path(options->search_path)) {
        return pay_err_set(err, PAY_FATAL, 0, "pg search_path",
                           "search_path may have letters, digits, '_', '$' and ',' only");
    }
    return PAY_OK;
}

enum pay_status pay_pg_new(const struct pay_pg_options *options, struct pay_pg **ret_pg,
                           struct pay_err *err)
{
    enum pay_status status = check_options(options, err);
    struct pay_pg *pg = NULL;

    if (status != PAY_OK) {
        return status;
    }
    pg = pay_mem_new(1, sizeof *pg);
    if (pg == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "pg new", "out of memory");
    }
    pg->options = *options;
    /* All five are replaced or cleared before any check, so that a free never meets borrowed text.
     */
    bool owned = own_text(&pg->options.conninfo);
    owned = own_text(&pg->options.password_file) && owned;
    owned = own_text(&pg->options.application_name) && owned;
    owned = own_text(&pg->options.search_path) && owned;
    if (!owned) {
        pay_pg_free(pg);
        return pay_err_set(err, PAY_RETRY, 0, "pg new", "out of memory");
    }
    set_defaults(&pg->options);
    *ret_pg = pg;
    return PAY_OK;
}

enum pay_status pay_pg_open(const struct pay_pg_options *options, struct pay_pg **ret_pg,
                            struct pay_err *err)
{
    struct pay_pg *pg = NULL;
    enum pay_status status = pay_pg_new(options, &pg, err);

    if (pg == NULL) {
        return status;
    }
    status = pay_pg_reconnect(pg, err);
    if (status != PAY_OK) {
        pay_pg_free(pg);
        return status;
    }
    *ret_pg = pg;
    return PAY_OK;
}

struct pay_pg *pay_pg_free(struct pay_pg *pg)
{
    if (pg != NULL) {
        pay_pg_disconnect(pg);
        free_text(pg->options.conninfo);
        free_text(pg->options.password_file);
        free_text(pg->options.application_name);
        free_text(pg->options.search_path);
    }
    return pay_mem_free(pg);
}

void pay_pg_disconnect(struct pay_pg *pg)
{
    PQfinish(pg->conn);
    pg->conn = NULL;
    memset(pg->slots, 0, sizeof pg->slots);
    pg->entry_count = 0;
    pg->queued = 0;
    pg->sent = false;
    pg->in_transaction = false;
}

bool pay_pg_usable(const struct pay_pg *pg)
{
    return pg->conn != NULL && PQstatus(pg->conn) == CONNECTION_OK;
}

int pay_pg_backend_pid(const struct pay_pg *pg)
{
    return pg->conn != NULL ? PQbackendPID(pg->conn) : 0;
}

int64_t pay_pg_deadline(int timeout_ms)
{
    return timeout_ms < 0 ? INT64_MAX : pay_clock_mono_us() + (int64_t)timeout_ms * 1000;
}

bool pay_pg_wait(PGconn *conn, short events, int64_t deadline_us)
{
    for (;;) {
        struct pollfd fd = {.fd = PQsocket(conn), .events = events};
        int64_t left_us = deadline_us == INT64_MAX ? -1 : deadline_us - pay_clock_mono_us();
        if (deadline_us != INT64_MAX && left_us <= 0) {
            return false;
        }
        int64_t left_ms = left_us < 0 ? -1 : left_us / 1000 + 1;
        int ready = poll(&fd, 1, left_ms > INT32_MAX ? INT32_MAX : (int)left_ms);
        if (ready > 0 || (ready < 0 && errno != EINTR)) {
            return true; /* A broken socket is libpq's to report. */
        }
    }
}

const char *pay_pg_conn_text(const PGconn *conn, char *dst, size_t dst_size)
{
    const char *text = conn != NULL ? PQerrorMessage(conn) : "";

    if (text[0] == 0) {
        text = "connection lost";
    }
    int len = (int)strcspn(text, "\n");
    (void)snprintf(dst, dst_size, "%.*s", len, text); /* Cut is fine. */
    return dst;
}

/* The user's own server options first: what is ours comes later and wins. */
static bool server_options(const struct pay_pg *pg, char *dst, size_t dst_size)
{
    const struct pay_pg_options *options = &pg->options;
    char *why = NULL;
    PQconninfoOption *parsed =
        PQconninfoParse(options->conninfo != NULL ? options->conninfo : "", &why);
    const char *theirs = "";

    for (PQconninfoOption *o = parsed; o != NULL && o->keyword != NULL; o++) {
        if (strcmp(o->keyword, "options") == 0 && o->val != NULL) {
            theirs = o->val;
        }
    }
    int len = snprintf(dst, dst_size,
                       "%s -c search_path=%s -c statement_timeout=%d -c TimeZone=UTC"
                       " -c default_transaction_isolation=read\\ committed"
                       " -c default_transaction_read_only=%s"
                       " -c idle_in_transaction_session_timeout=60000",
                       theirs, options->search_path != NULL ? options->search_path : "payfact",
                       options->statement_timeout_ms < 0 ? 0 : options->statement_timeout_ms,
                       options->read_only ? "on" : "off");
    PQconninfoFree(parsed);
    PQfreemem(why);
    return len > 0 && (size_t)len < dst_size;
}

static enum pay_status read_password(const char *path, char *dst, size_t dst_size,
                                     struct pay_err *err)
{
    size_t len = 0;

    if (path == NULL) {
        dst[0] = 0;
        return PAY_OK;
    }
    enum pay_status status = pay_file_read(path, dst, dst_size - 1, &len, err);
    if (status != PAY_OK) {
        return status;
    }
    while (len > 0 && (dst[len - 1] == '\n' || dst[len - 1] == '\r')) {
        len--;
    }
    dst[len] = 0;
    return PAY_OK;
}

struct keywords {
    const char *names[KEYWORDS_MAX + 1];
    const char *values[KEYWORDS_MAX + 1];
    size_t count;
};

static void add_keyword(struct keywords *keywords, const char *name, const char *value)
{
    if (value == NULL || value[0] == 0) {
        return;
    }
    PAY_ASSERT(keywords->count < KEYWORDS_MAX);
    keywords->names[keywords->count] = name;
    keywords->values[keywords->count] = value;
    keywords->count++;
}

/* dbname comes first: it is expanded in place, and later keywords win over what it holds. */
static PGconn *start(const struct pay_pg *pg, const char *password, const char *options)
{
    char tcp_user_timeout[16];
    struct keywords keywords = {0};

    (void)snprintf(tcp_user_timeout, sizeof tcp_user_timeout, "%d",
                   pg->options.tcp_user_timeout_ms);
    add_keyword(&keywords, "dbname", pg->options.conninfo);
    add_keyword(&keywords, "password", password);
    add_keyword(&keywords, "application_name", pg->options.application_name);
    add_keyword(&keywords, "options", options);
    add_keyword(&keywords, "client_encoding", "UTF8");
    add_keyword(&keywords, "keepalives", "1");
    add_keyword(&keywords, "keepalives_idle", "30");
    add_keyword(&keywords, "keepalives_interval", "10");
    add_keyword(&keywords, "keepalives_count", "3");
    add_keyword(&keywords, "tcp_user_timeout", tcp_user_timeout);
    return PQconnectStartParams(keywords.names, keywords.values, 1);
}

/* @return false at the deadline; a refusal is seen in PQstatus. */
static bool finish_connect(PGconn *conn, int64_t deadline_us)
{
    PostgresPollingStatusType want = PGRES_POLLING_WRITING;

    while (want == PGRES_POLLING_WRITING || want == PGRES_POLLING_READING) {
        if (!pay_pg_wait(conn, want == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline_us)) {
            return false;
        }
        want = PQconnectPoll(conn);
    }
    return true;
}

/* A COMMIT that answers with a warning may not be on a standby; one without BEGIN did nothing. */
static void on_notice(void *ctx, const PGresult *result)
{
    struct pay_pg *pg = ctx;
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);

    if (sqlstate == NULL || severity == NULL || strcmp(severity, "WARNING") != 0) {
        return;
    }
    pg->warned = pg->warned || strcmp(sqlstate, "01000") == 0;
    pg->no_transaction = pg->no_transaction || strcmp(sqlstate, "25P01") == 0;
}

static enum pay_status connect_failed(struct pay_pg *pg, bool in_time, struct pay_err *err)
{
    char text[sizeof err->text];

    enum pay_status status =
        in_time ? pay_err_set(err, PAY_RETRY, 0, "pg connect", "%s",
                              pay_pg_conn_text(pg->conn, text, sizeof text))
                : pay_err_set(err, PAY_RETRY, 0, "pg connect", "no answer within %d ms",
                              pg->options.connect_timeout_ms);
    pay_pg_disconnect(pg);
    return status;
}

enum pay_status pay_pg_reconnect(struct pay_pg *pg, struct pay_err *err)
{
    char password[PASSWORD_BYTES_MAX];
    char options[SERVER_OPTIONS_BYTES_MAX];

    pay_pg_disconnect(pg);
    if (!server_options(pg, options, sizeof options)) {
        return pay_err_set(err, PAY_FATAL, 0, "pg conninfo", "server options are too long");
    }
    enum pay_status status =
        read_password(pg->options.password_file, password, sizeof password, err);
    if (status != PAY_OK) {
        pay_mem_wipe(password, sizeof password);
        return status;
    }
    pg->conn = start(pg, password, options);
    pay_mem_wipe(password, sizeof password);
    if (pg->conn == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "pg connect", "out of memory");
    }
    PQsetNoticeReceiver(pg->conn, on_notice, pg);
    bool in_time = PQstatus(pg->conn) == CONNECTION_BAD ||
                   finish_connect(pg->conn, pay_pg_deadline(pg->options.connect_timeout_ms));
    if (!in_time || PQstatus(pg->conn) != CONNECTION_OK || PQsetnonblocking(pg->conn, 1) != 0 ||
        PQenterPipelineMode(pg->conn) != 1) {
        return connect_failed(pg, in_time, err);
    }
    return PAY_OK;
}

static int random_below(int bound)
{
    uint32_t word = 0;

    if (getrandom(&word, sizeof word, 0) != sizeof word) {
        word = (uint32_t)pay_clock_mono_us(); /* Only jitter: any spread will do. */
    }
    return (int)(word % (uint32_t)bound);
}

int pay_pg_backoff_next_ms(struct pay_pg_backoff *backoff)
{
    int64_t pause = or_default(backoff->min_ms, BACKOFF_MIN_MS);
    int64_t max = or_default(backoff->max_ms, BACKOFF_MAX_MS);

    for (int i = 0; i < backoff->tries && pause < max; i++) {
        pause *= 2;
    }
    if (backoff->tries < INT32_MAX) {
        backoff->tries++;
    }
    pause = pause < max ? pause : max;
    return (int)(pause / 2) + random_below((int)(pause - pause / 2) + 1);
}
