/* SPDX-License-Identifier: Apache-2.0 */
/* bench-tape: what a service says to PostgreSQL, kept and said again by a bare libpq loop.
 *
 *   bench-tape record PORT SERVER_PORT DIR    a proxy on loopback until SIGTERM; one file a
 * connection bench-tape replay CONNINFO DIR            the same statements and parameters, in the
 * same pipelines, one connection a file, data from memory
 *
 * The replay is the limit that the processor is measured against: all it does is libpq's calls.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <libpq-fe.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/file.h"
#include "tests/bench/bench.h"

#define TAPES_MAX 64
#define PARAMS_MAX 64
#define TAPE_BYTES_MAX ((size_t)2 << 30)
#define CHUNK_BYTES 65536
#define STARTUP_SSL 80877103
#define STARTUP_GSS 80877104

/* ---- record ---- */

struct link {
    int client, server;
    FILE *tape;
};

static int loopback_socket(struct sockaddr_in *address, int port)
{
    const int on = 1;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)port),
                                    .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
        bench_fail("socket", "cannot be made");
    }
    return fd;
}

static bool put_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t put = write(fd, bytes, len);
        if (put <= 0) {
            return false;
        }
        bytes += put;
        len -= (size_t)put;
    }
    return true;
}

/* @return false at the end of the stream. */
static bool pass(int from, int to, FILE *tape)
{
    char chunk[CHUNK_BYTES];
    const ssize_t got = read(from, chunk, sizeof chunk);
    if (got <= 0) {
        return false;
    }
    if (tape != NULL && fwrite(chunk, 1, (size_t)got, tape) != (size_t)got) {
        bench_fail("tape", "cannot be written");
    }
    return put_all(to, chunk, (size_t)got);
}

static void *serve(void *arg)
{
    struct link *link = arg;
    struct pollfd fds[] = {{.fd = link->client, .events = POLLIN},
                           {.fd = link->server, .events = POLLIN}};
    bool open = true;
    while (open && poll(fds, 2, -1) > 0) {
        if (fds[0].revents != 0) {
            open = pass(link->client, link->server, link->tape);
        }
        if (open && fds[1].revents != 0) {
            open = pass(link->server, link->client, NULL);
        }
    }
    (void)fclose(link->tape);
    (void)close(link->client);
    (void)close(link->server);
    free(link);
    return NULL;
}

static void accept_one(int listener, int server_port, const char *dir, int number)
{
    struct sockaddr_in address;
    char path[512];
    pthread_t thread;
    struct link *link = calloc(1, sizeof *link);
    (void)snprintf(path, sizeof path, "%s/%03d.tape", dir, number);
    link->client = accept(listener, NULL, NULL);
    link->server = loopback_socket(&address, server_port);
    link->tape = fopen(path, "wb");
    if (link->client < 0 || link->tape == NULL ||
        connect(link->server, (struct sockaddr *)&address, sizeof address) != 0) {
        bench_fail(path, "cannot pass a connection on");
    }
    if (pthread_create(&thread, NULL, serve, link) != 0 || pthread_detach(thread) != 0) {
        bench_fail("thread", "cannot be made");
    }
}

static int record(char **argv)
{
    struct sockaddr_in address;
    const int listener = loopback_socket(&address, (int)bench_number(argv[0]));
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, TAPES_MAX) != 0) {
        bench_fail(argv[0], "cannot be listened on");
    }
    for (int number = 0;; number++) {
        accept_one(listener, (int)bench_number(argv[1]), argv[2], number);
    }
}

/* ---- a tape's messages ---- */

struct reader {
    const char *at, *end;
};

static const char *take(struct reader *reader, size_t len)
{
    const char *at = reader->at;
    if ((size_t)(reader->end - at) < len) {
        bench_fail("tape", "a message is cut");
    }
    reader->at += len;
    return at;
}

static int take_int(struct reader *reader, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)take(reader, bytes);
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value = value << 8 | at[i];
    }
    return bytes == 2 ? (int16_t)value : (int32_t)value;
}

static const char *take_text(struct reader *reader)
{
    const char *end = memchr(reader->at, 0, (size_t)(reader->end - reader->at));
    if (end == NULL) {
        bench_fail("tape", "a text has no end");
    }
    return take(reader, (size_t)(end - reader->at) + 1);
}

/* ---- replay ---- */

struct player {
    const char *conninfo;
    char path[512];
    struct pay_buf tape;
    PGconn *conn;
    size_t expected; /* Answers to come before the next one of Sync. */
    int64_t statements;
};

static pthread_barrier_t start_line;

static void play_prepare(struct player *player, struct reader message)
{
    Oid types[PARAMS_MAX];
    const char *name = take_text(&message);
    const char *sql = take_text(&message);
    const int count = take_int(&message, 2);
    for (int i = 0; i < count && i < PARAMS_MAX; i++) {
        types[i] = (Oid)take_int(&message, 4);
    }
    if (PQsendPrepare(player->conn, name, sql, count, types) != 1) {
        bench_fail(name, PQerrorMessage(player->conn));
    }
    player->expected++;
}

/* The parameters' formats: all binary, as the services send them. */
static void skip_formats(struct reader *message)
{
    const int count = take_int(message, 2);
    for (int i = 0; i < count; i++) {
        if (take_int(message, 2) != 1) {
            bench_fail("tape", "a parameter is not binary");
        }
    }
}

static void play_bind(struct player *player, struct reader message)
{
    const char *values[PARAMS_MAX];
    int lengths[PARAMS_MAX];
    int formats[PARAMS_MAX];
    (void)take_text(&message); /* The portal: none. */
    const char *name = take_text(&message);
    skip_formats(&message);
    const int count = take_int(&message, 2);
    for (int i = 0; i < count && i < PARAMS_MAX; i++) {
        const int len = take_int(&message, 4);
        lengths[i] = len < 0 ? 0 : len;
        values[i] = len < 0 ? NULL : take(&message, (size_t)len);
        formats[i] = 1;
    }
    if (PQsendQueryPrepared(player->conn, name, count, values, lengths, formats, 1) != 1) {
        bench_fail(name, PQerrorMessage(player->conn));
    }
    player->expected++;
    player->statements++;
}

static void check(struct player *player, PGresult *result, ExecStatusType wanted)
{
    const ExecStatusType status = PQresultStatus(result);
    if (status != wanted && status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        bench_fail(player->path, PQerrorMessage(player->conn));
    }
    PQclear(result);
}

static void play_sync(struct player *player)
{
    if (PQpipelineSync(player->conn) != 1) {
        bench_fail("sync", PQerrorMessage(player->conn));
    }
    while (player->expected > 0) {
        PGresult *result = PQgetResult(player->conn);
        if (result == NULL) {
            player->expected--;
        } else {
            check(player, result, PGRES_COMMAND_OK);
        }
    }
    check(player, PQgetResult(player->conn), PGRES_PIPELINE_SYNC);
}

static void play_query(struct player *player, struct reader message)
{
    if (PQexitPipelineMode(player->conn) != 1) {
        bench_fail("pipeline", PQerrorMessage(player->conn));
    }
    check(player, PQexec(player->conn, take_text(&message)), PGRES_COMMAND_OK);
    if (PQenterPipelineMode(player->conn) != 1) {
        bench_fail("pipeline", PQerrorMessage(player->conn));
    }
}

static void play_message(struct player *player, char type, struct reader message)
{
    switch (type) {
    case 'P':
        play_prepare(player, message);
        break;
    case 'B':
        play_bind(player, message);
        break;
    case 'S':
        play_sync(player);
        break;
    case 'Q':
        play_query(player, message);
        break;
    default: /* Describe and Execute go with Bind; Terminate is the end. */
        break;
    }
}

static struct reader without_startup(const struct player *player)
{
    const struct pay_str bytes = pay_buf_str(&player->tape);
    struct reader reader = {bytes.ptr, bytes.ptr + bytes.len};
    int code = STARTUP_SSL;
    while (reader.at < reader.end && (code == STARTUP_SSL || code == STARTUP_GSS)) {
        const int len = take_int(&reader, 4);
        code = take_int(&reader, 4);
        (void)take(&reader, (size_t)len - 8);
    }
    return reader;
}

static void *play(void *arg)
{
    struct player *player = arg;
    struct reader reader = without_startup(player);
    player->conn = PQconnectdb(player->conninfo);
    if (PQstatus(player->conn) != CONNECTION_OK || PQenterPipelineMode(player->conn) != 1) {
        bench_fail("connect", PQerrorMessage(player->conn));
    }
    (void)pthread_barrier_wait(&start_line);
    while (reader.at < reader.end) {
        const char type = *take(&reader, 1);
        const size_t len = (size_t)take_int(&reader, 4) - 4;
        const char *body = take(&reader, len);
        play_message(player, type, (struct reader){body, body + len});
    }
    PQfinish(player->conn);
    return NULL;
}

static void load(struct player *player)
{
    struct pay_err err = {.status = PAY_OK};
    player->tape = pay_buf_make(TAPE_BYTES_MAX);
    if (pay_file_read_buf(player->path, &player->tape, &err) != PAY_OK) {
        bench_fail(player->path, err.text);
    }
}

static size_t find_tapes(struct player *players, const char *conninfo, const char *dir)
{
    size_t count = 0;
    DIR *entries = opendir(dir);
    if (entries == NULL) {
        bench_fail(dir, "cannot be opened");
    }
    /* One thread reads it. */
    for (const struct dirent *entry = readdir(entries); entry != NULL && count < TAPES_MAX;
         entry = readdir(entries)) { /* NOLINT(concurrency-mt-unsafe) */
        if (strstr(entry->d_name, ".tape") != NULL) {
            players[count].conninfo = conninfo;
            (void)snprintf(players[count].path, sizeof players[count].path, "%s/%.200s", dir,
                           entry->d_name);
            load(&players[count++]);
        }
    }
    (void)closedir(entries);
    return count;
}

static int replay(char **argv)
{
    static struct player players[TAPES_MAX];
    pthread_t threads[TAPES_MAX];
    int64_t statements = 0;
    const size_t count = find_tapes(players, argv[0], argv[1]);
    if (count == 0 || pthread_barrier_init(&start_line, NULL, (unsigned)count + 1) != 0) {
        bench_fail(argv[1], "holds no tape");
    }
    for (size_t i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, play, &players[i]) != 0) {
            bench_fail("thread", "cannot be made");
        }
    }
    (void)pthread_barrier_wait(&start_line);
    const int64_t began_us = bench_now_us();
    for (size_t i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
        statements += players[i].statements;
        pay_buf_free(&players[i].tape);
    }
    (void)printf("connections=%zu statements=%lld seconds=%.6f\n", count, (long long)statements,
                 (double)(bench_now_us() - began_us) / 1e6);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "record") == 0) {
        return record(argv + 2);
    }
    if (argc == 4 && strcmp(argv[1], "replay") == 0) {
        return replay(argv + 2);
    }
    bench_fail("usage", "bench-tape record PORT SERVER_PORT DIR | replay CONNINFO DIR");
}
