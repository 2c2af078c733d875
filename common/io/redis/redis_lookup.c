/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/redis/redis.h"

#include "common/base/mem.h"
#include "common/io/redis/redis_internal.h"

#include <netdb.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/banned.h"

struct pay_redis_lookup {
    pthread_mutex_t lock;
    int holders; /* The handle, and a thread that looks up. */
    bool running;
    bool known;
    char host[PAY_REDIS_HOST_BYTES_MAX];
    char address[INET6_ADDRSTRLEN]; /* The last one found stays when a look-up fails. */
};

static void let_go(struct pay_redis_lookup *lookup)
{
    (void)pthread_mutex_lock(&lookup->lock);
    bool last = --lookup->holders == 0;
    (void)pthread_mutex_unlock(&lookup->lock);
    if (last) {
        (void)pthread_mutex_destroy(&lookup->lock);
        pay_mem_free(lookup);
    }
}

static void *look_up(void *arg)
{
    struct pay_redis_lookup *lookup = arg;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char address[INET6_ADDRSTRLEN];

    bool ok = getaddrinfo(lookup->host, NULL, &hints, &found) == 0 &&
              getnameinfo(found->ai_addr, found->ai_addrlen, address, sizeof address, NULL, 0,
                          NI_NUMERICHOST) == 0;
    if (found != NULL) {
        freeaddrinfo(found);
    }
    (void)pthread_mutex_lock(&lookup->lock);
    if (ok) {
        memcpy(lookup->address, address, sizeof address);
        lookup->known = true;
    }
    lookup->running = false;
    (void)pthread_mutex_unlock(&lookup->lock);
    let_go(lookup);
    return NULL;
}

static bool claim(struct pay_redis_lookup *lookup)
{
    (void)pthread_mutex_lock(&lookup->lock);
    bool is_free = !lookup->running;
    if (is_free) {
        lookup->running = true;
        lookup->holders++;
    }
    (void)pthread_mutex_unlock(&lookup->lock);
    return is_free;
}

void pay_redis_lookup_refresh(struct pay_redis_lookup *lookup)
{
    pthread_t thread;

    if (lookup == NULL || !claim(lookup)) {
        return;
    }
    if (pthread_create(&thread, NULL, look_up, lookup) == 0) {
        (void)pthread_detach(
            thread); /* It may hang in the resolver longer than the handle lives. */
        return;
    }
    (void)pthread_mutex_lock(&lookup->lock);
    lookup->running = false; /* No thread: the next failed connect asks again. */
    lookup->holders--;
    (void)pthread_mutex_unlock(&lookup->lock);
}

struct pay_redis_lookup *pay_redis_lookup_new(const char *host)
{
    struct pay_redis_lookup *lookup = pay_mem_new(1, sizeof *lookup);

    if (lookup == NULL || !pay_str_copy(lookup->host, sizeof lookup->host, pay_str_of(host))) {
        return pay_mem_free(lookup);
    }
    (void)pthread_mutex_init(&lookup->lock, NULL); /* Cannot fail with default attributes. */
    lookup->holders = 1;
    pay_redis_lookup_refresh(lookup);
    return lookup;
}

struct pay_redis_lookup *pay_redis_lookup_free(struct pay_redis_lookup *lookup)
{
    if (lookup != NULL) {
        let_go(lookup);
    }
    return NULL;
}

bool pay_redis_lookup_get(struct pay_redis_lookup *lookup, char dst[INET6_ADDRSTRLEN])
{
    (void)pthread_mutex_lock(&lookup->lock);
    bool known = lookup->known;
    memcpy(dst, lookup->address, sizeof lookup->address);
    (void)pthread_mutex_unlock(&lookup->lock);
    return known;
}
