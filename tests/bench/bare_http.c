/* SPDX-License-Identifier: Apache-2.0 */
/* bench-bare-http: libmicrohttpd and nothing else, answering the callbacks that ingest answers.
 *
 *   bench-bare-http PORT THREADS answer          reads the body, answers 200
 *   bench-bare-http PORT THREADS suspend MS      ... suspended first, resumed MS later, in batches
 *
 * What ingest is measured against: its server options are the same, its work is not there.
 */
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/bench.h"

#define POOL_BYTES 65536
#define BATCH_MAX 1024

/* One request: between its head and its answer. */
struct request {
    struct request *next;
    struct MHD_Connection *connection;
    int64_t due_us;
    size_t body_bytes;
    bool is_due;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct request *first, **last;
    int64_t delay_us;
    struct MHD_Response *answer;
} server = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static void suspend(struct request *request)
{
    (void)pthread_mutex_lock(&server.lock);
    MHD_suspend_connection(request->connection);
    request->due_us = bench_now_us() + server.delay_us;
    request->is_due = true;
    request->next = NULL;
    if (server.first == NULL) {
        (void)pthread_cond_signal(&server.wake);
    }
    *server.last = request;
    server.last = &request->next;
    (void)pthread_mutex_unlock(&server.lock);
}

static enum MHD_Result on_access(void *cls, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *data_len, void **state)
{
    struct request *request = *state;
    (void)cls;
    (void)url;
    (void)method;
    (void)version;
    (void)data;
    if (request == NULL) {
        request = calloc(1, sizeof *request);
        *state = request;
        return request != NULL ? MHD_YES : MHD_NO;
    }
    if (*data_len > 0) {
        request->body_bytes += *data_len;
        *data_len = 0;
        return MHD_YES;
    }
    if (server.delay_us > 0 && !request->is_due) {
        request->connection = connection;
        suspend(request);
        return MHD_YES;
    }
    return MHD_queue_response(connection, MHD_HTTP_OK, server.answer);
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
    (void)cls;
    (void)connection;
    (void)code;
    free(*state);
    *state = NULL;
}

/* @return those that are due by now, at least one; waits for it. */
static size_t take_due(struct MHD_Connection **due)
{
    size_t count = 0;
    (void)pthread_mutex_lock(&server.lock);
    while (server.first == NULL) {
        (void)pthread_cond_wait(&server.wake, &server.lock);
    }
    const int64_t left_us = server.first->due_us - bench_now_us();
    if (left_us > 0) {
        (void)pthread_mutex_unlock(&server.lock);
        (void)usleep((useconds_t)left_us);
        (void)pthread_mutex_lock(&server.lock);
    }
    const int64_t now_us = bench_now_us();
    while (server.first != NULL && server.first->due_us <= now_us && count < BATCH_MAX) {
        due[count++] = server.first->connection;
        server.first = server.first->next;
    }
    if (server.first == NULL) {
        server.last = &server.first;
    }
    (void)pthread_mutex_unlock(&server.lock);
    return count;
}

static void *resume(void *unused)
{
    struct MHD_Connection *due[BATCH_MAX];
    (void)unused;
    for (;;) {
        const size_t count = take_due(due);
        for (size_t i = 0; i < count; i++) {
            MHD_resume_connection(due[i]);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static char body[] = "ok";
    sigset_t stop;
    int caught = 0;
    pthread_t thread;
    if (argc < 4 || (strcmp(argv[3], "answer") != 0 && argc != 5)) {
        bench_fail("usage", "bench-bare-http PORT THREADS answer|suspend MS");
    }
    server.last = &server.first;
    server.delay_us = argc == 5 ? bench_number(argv[4]) * 1000 : 0;
    server.answer = MHD_create_response_from_buffer(strlen(body), body, MHD_RESPMEM_PERSISTENT);
    (void)sigemptyset(&stop);
    (void)sigaddset(&stop, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &stop, NULL);
    const long long threads = bench_number(argv[2]);
    const struct MHD_OptionItem options[] = {
        {MHD_OPTION_CONNECTION_LIMIT, 4096, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, POOL_BYTES, NULL},
        {MHD_OPTION_THREAD_POOL_SIZE, threads > 1 ? (intptr_t)threads : 0, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, (uint16_t)bench_number(argv[1]),
        NULL, NULL, on_access, NULL, MHD_OPTION_ARRAY, options, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, NULL, MHD_OPTION_END);
    if (daemon == NULL || pthread_create(&thread, NULL, resume, NULL) != 0) {
        bench_fail(argv[1], "cannot be listened on");
    }
    (void)printf("listening\n");
    (void)fflush(stdout);
    return sigwait(&stop, &caught) == 0 ? 0 : 1; /* What is open goes with the process. */
}
