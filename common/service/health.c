/* SPDX-License-Identifier: Apache-2.0 */
#include "common/service/health.h"

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/mem.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/base/banned.h"

struct pay_health_loop {
    const char *name;
    int64_t limit_us;
    _Atomic int64_t last_us; /* Monotonic; 0: ended in order. */
};

struct check {
    const char *name;
    pay_health_check_fn *fn;
    void *ctx;
};

/* Entries are only added: a reader sees the counts last. */
struct pay_health {
    pthread_mutex_t lock;
    struct pay_health_loop loops[PAY_HEALTH_BEATS_MAX];
    struct check checks[PAY_HEALTH_CHECKS_MAX];
    atomic_size_t loop_count, check_count;
};

struct pay_health *pay_health_new(void)
{
    struct pay_health *health = pay_mem_new(1, sizeof *health);

    if (health != NULL) {
        PAY_ASSERT(pthread_mutex_init(&health->lock, NULL) == 0);
    }
    return health;
}

struct pay_health *pay_health_free(struct pay_health *health)
{
    if (health != NULL) {
        (void)pthread_mutex_destroy(&health->lock);
    }
    return pay_mem_free(health);
}

struct pay_health_loop *pay_health_loop_add(struct pay_health *health, const char *name,
                                            unsigned limit_ms)
{
    pthread_mutex_lock(&health->lock);
    const size_t at = atomic_load(&health->loop_count);
    PAY_ASSERT(at < PAY_HEALTH_BEATS_MAX);
    struct pay_health_loop *loop = &health->loops[at];
    loop->name = name;
    loop->limit_us = (int64_t)limit_ms * 1000;
    pay_health_beat(loop);
    atomic_store(&health->loop_count, at + 1);
    pthread_mutex_unlock(&health->lock);
    return loop;
}

void pay_health_beat(struct pay_health_loop *loop)
{
    if (loop != NULL) {
        atomic_store_explicit(&loop->last_us, pay_clock_mono_us(), memory_order_relaxed);
    }
}

void pay_health_loop_end(struct pay_health_loop *loop)
{
    if (loop != NULL) {
        atomic_store_explicit(&loop->last_us, 0, memory_order_relaxed);
    }
}

void pay_health_check_add(struct pay_health *health, const char *name, pay_health_check_fn *fn,
                          void *ctx)
{
    pthread_mutex_lock(&health->lock);
    const size_t at = atomic_load(&health->check_count);
    PAY_ASSERT(at < PAY_HEALTH_CHECKS_MAX);
    health->checks[at] = (struct check){name, fn, ctx};
    atomic_store(&health->check_count, at + 1);
    pthread_mutex_unlock(&health->lock);
}

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

static int64_t age_us(const struct pay_health_loop *loop, int64_t now_us)
{
    const int64_t last_us = atomic_load_explicit(&loop->last_us, memory_order_relaxed);

    return last_us == 0 ? 0 : now_us - last_us;
}

bool pay_health_live(const struct pay_health *health, struct pay_buf *out)
{
    const size_t count = atomic_load(&health->loop_count);
    const int64_t now_us = pay_clock_mono_us();
    bool is_alive = true;

    pay_buf_add_c(out, "{\"loops\":[");
    for (size_t i = 0; i < count; i++) {
        const struct pay_health_loop *loop = &health->loops[i];
        const int64_t age = age_us(loop, now_us);
        const bool is_turning = age <= loop->limit_us;
        is_alive = is_alive && is_turning;
        pay_buf_add_c(out, i == 0 ? "{\"name\":" : ",{\"name\":");
        pay_buf_add_json_str(out, pay_str_of(loop->name));
        pay_buf_printf(out, ",\"age_ms\":%" PRId64 ",\"limit_ms\":%" PRId64 ",\"alive\":%s}",
                       age / 1000, loop->limit_us / 1000, truth(is_turning));
    }
    pay_buf_printf(out, "],\"alive\":%s}\n", truth(is_alive));
    return is_alive;
}

bool pay_health_ready(const struct pay_health *health, bool draining, struct pay_buf *out)
{
    const size_t count = atomic_load(&health->check_count);
    bool is_ready = !draining && count > 0; /* The admin port is up before the checks are. */

    pay_buf_add_c(out, "{\"checks\":[");
    for (size_t i = 0; i < count; i++) {
        const struct check *check = &health->checks[i];
        char why[PAY_HEALTH_WHY_MAX] = "";
        const bool is_met = check->fn(check->ctx, why);
        is_ready = is_ready && is_met;
        pay_buf_add_c(out, i == 0 ? "{\"name\":" : ",{\"name\":");
        pay_buf_add_json_str(out, pay_str_of(check->name));
        pay_buf_printf(out, ",\"ready\":%s", truth(is_met));
        if (!is_met) {
            pay_buf_add_c(out, ",\"why\":");
            pay_buf_add_json_str(out, pay_str_of(why));
        }
        pay_buf_add_char(out, '}');
    }
    pay_buf_printf(out, "],\"draining\":%s,\"ready\":%s}\n", truth(draining), truth(is_ready));
    return is_ready;
}
