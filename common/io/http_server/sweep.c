/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/http_server/internal.h"

#include "common/base/assert.h"
#include "common/base/clock.h"

#include <time.h>

#include "common/base/banned.h"

#define TICK_MS_MIN 5
#define TICK_MS_MAX 100

void pay_http_deadline_at(int64_t mono_us, struct timespec *ret_at)
{
    *ret_at = (struct timespec){.tv_sec = (time_t)(mono_us / 1000000),
                                .tv_nsec = (long)(mono_us % 1000000) * 1000};
}

static int64_t tick_us(const struct pay_http_server *server)
{
    const int64_t least = server->request_timeout_us < server->idle_timeout_us
                              ? server->request_timeout_us
                              : server->idle_timeout_us;
    const int64_t tick_ms = least / 8000;

    return 1000 * (tick_ms < TICK_MS_MIN   ? TICK_MS_MIN
                   : tick_ms > TICK_MS_MAX ? TICK_MS_MAX
                                           : tick_ms);
}

/*
 * Needs the lock. Cuts whoever is too slow by itself.
 * @return a request whose application is too slow: the caller answers it without the lock.
 */
static struct pay_http_request *sweep_one(struct pay_http_server *server,
                                          struct pay_http_connection *connection, int64_t now_us)
{
    struct pay_http_request *req = connection->req;

    if (req == NULL) {
        if (now_us - connection->since_us > server->idle_timeout_us && !connection->is_cut) {
            pay_http_connection_cut(connection, 0);
        }
        return NULL;
    }
    if (now_us <= req->deadline_us) {
        return NULL;
    }
    switch (req->phase) {
    case PAY_HTTP_PHASE_HEAD:
    case PAY_HTTP_PHASE_BODY:
        /* A slow dripper. libmicrohttpd takes no answer in this state, so it goes out beside it. */
        server->stats.deadlines++;
        req->phase = PAY_HTTP_PHASE_CUT;
        pay_http_connection_cut(connection, 503);
        return NULL;
    case PAY_HTTP_PHASE_SUSPENDED:
        return req;
    case PAY_HTTP_PHASE_ANSWERED:
        if (now_us > req->deadline_us + server->request_timeout_us) {
            pay_http_connection_cut(connection, 0); /* Does not read its answer. */
        }
        return NULL;
    case PAY_HTTP_PHASE_HANDLER: /* The handler must not block: its bug shows in /healthz. */
    case PAY_HTTP_PHASE_CUT:
    default:
        return NULL;
    }
}

/* Needs the lock. @return a request to answer with 503, held by nobody else's resume; or NULL. */
static struct pay_http_request *sweep_all(struct pay_http_server *server, int64_t now_us)
{
    for (struct pay_http_connection *at = server->connections; at != NULL; at = at->next) {
        struct pay_http_request *late = sweep_one(server, at, now_us);
        if (late != NULL) {
            late->holders++; /* It must outlive the unlocking. */
            return late;
        }
    }
    return NULL;
}

void *pay_http_sweep(void *arg)
{
    struct pay_http_server *server = arg;
    const int64_t tick = tick_us(server);

    pthread_mutex_lock(&server->lock);
    while (!server->stopping) {
        const int64_t now_us = pay_clock_mono_us();
        struct timespec at;
        struct pay_http_request *late = sweep_all(server, now_us);
        while (late != NULL) {
            pthread_mutex_unlock(&server->lock);
            (void)pay_http_request_finish(late, 503, pay_http_response_plain(503), false);
            pthread_mutex_lock(&server->lock);
            const bool is_last = pay_http_request_release(late);
            PAY_ASSERT(!is_last); /* The owner holds the server until this thread is joined. */
            late = sweep_all(server, now_us);
        }
        pay_http_deadline_at(now_us + tick, &at);
        (void)pthread_cond_timedwait(&server->wake, &server->lock, &at); /* Or a spurious tick. */
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}
