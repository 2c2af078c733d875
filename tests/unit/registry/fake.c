/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/registry/fake.h"

#include "common/base/assert.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Head, then as much body as it announces. */
static void take_request(struct fake *fake, int peer)
{
    char text[FAKE_REQUEST_MAX] = "";
    size_t len = 0;
    size_t wanted = sizeof text - 1;
    while (len < wanted) {
        const ssize_t got = recv(peer, text + len, wanted - len, 0);
        if (got <= 0) {
            break;
        }
        len += (size_t)got;
        text[len] = '\0';
        const char *end = strstr(text, "\r\n\r\n");
        const char *announced = strstr(text, "Content-Length: ");
        if (end != NULL) {
            wanted = (size_t)(end + 4 - text);
            wanted += announced == NULL || announced > end ? 0 : strtoul(announced + 16, NULL, 10);
            PAY_ASSERT(wanted < sizeof text);
        }
    }
    PAY_ASSERT(pthread_mutex_lock(&fake->lock) == 0);
    memcpy(fake->last, text, sizeof text);
    PAY_ASSERT(pthread_mutex_unlock(&fake->lock) == 0);
}

static void give_answer(struct fake *fake, int peer)
{
    char head[256];
    PAY_ASSERT(pthread_mutex_lock(&fake->lock) == 0); /* The body stays as long as it is sent. */
    const struct fake_answer answer = fake->answers[fake->next];
    fake->next += fake->next + 1 < fake->answer_count ? 1 : 0;
    if (answer.status != 0) {
        const int len = snprintf(
            head, sizeof head, "HTTP/1.1 %d x\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
            answer.status, strlen(answer.body));
        (void)send(peer, head, (size_t)len, MSG_NOSIGNAL); /* Who is gone notices by itself. */
        (void)send(peer, answer.body, strlen(answer.body), MSG_NOSIGNAL);
    }
    PAY_ASSERT(pthread_mutex_unlock(&fake->lock) == 0);
}

static void *serve(void *arg)
{
    struct fake *fake = arg;
    for (;;) {
        const int peer = accept(fake->listener, NULL, NULL);
        if (peer < 0 || atomic_load(&fake->ending)) {
            (void)close(peer); /* Of none: it says so, and that is all. */
            return NULL;
        }
        take_request(fake, peer);
        atomic_fetch_add(&fake->requests, 1);
        give_answer(fake, peer);
        (void)close(peer);
    }
}

void fake_start(struct fake *fake)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    memset(fake, 0, sizeof *fake);
    fake->listener = socket(AF_INET, SOCK_STREAM, 0);
    PAY_ASSERT(fake->listener >= 0 &&
               bind(fake->listener, (struct sockaddr *)&at, sizeof at) == 0 &&
               listen(fake->listener, 16) == 0 &&
               getsockname(fake->listener, (struct sockaddr *)&at, &len) == 0);
    (void)snprintf(fake->url, sizeof fake->url, "http://127.0.0.1:%d/apis/ccompat/v7/",
                   ntohs(at.sin_port));
    PAY_ASSERT(pthread_mutex_init(&fake->lock, NULL) == 0 &&
               pthread_create(&fake->thread, NULL, serve, fake) == 0);
}

static void forget(struct fake *fake)
{
    for (size_t i = 0; i < fake->answer_count; i++) {
        free((char *)(uintptr_t)fake->answers[i].body);
    }
    fake->answer_count = 0;
}

void fake_stop(struct fake *fake)
{
    atomic_store(&fake->ending, true);
    (void)shutdown(fake->listener, SHUT_RDWR); /* Ends accept(). */
    PAY_ASSERT(pthread_join(fake->thread, NULL) == 0);
    (void)close(fake->listener);
    (void)pthread_mutex_destroy(&fake->lock);
    forget(fake);
}

void fake_say(struct fake *fake, const struct fake_answer *answers, size_t count)
{
    PAY_ASSERT(count > 0 && count <= FAKE_ANSWERS_MAX);
    PAY_ASSERT(pthread_mutex_lock(&fake->lock) == 0);
    forget(fake);
    for (size_t i = 0; i < count; i++) {
        fake->answers[i] = answers[i];
        fake->answers[i].body = answers[i].body == NULL ? NULL : strdup(answers[i].body);
    }
    fake->answer_count = count;
    fake->next = 0;
    PAY_ASSERT(pthread_mutex_unlock(&fake->lock) == 0);
}
