/* SPDX-License-Identifier: Apache-2.0 */
/* In place of common/io/kafka's producer in bench-ingest-stub: whatever is produced is acknowledged
 * BENCH_BROKER_US later (1000 by default) by one thread, in batches. No broker, no copy, no wire.
 */
#include "common/io/kafka/kafka_producer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "tests/bench/bench.h"

#define QUEUE_MAX 65536 /* A power of two. */

struct entry {
    void *tag;
    int64_t due_us;
};

struct pay_kafka_producer {
    pay_kafka_report_fn *on_report;
    void *ctx;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct entry queue[QUEUE_MAX];
    size_t head, tail;
    int64_t delay_us;
    atomic_bool stop;
    pthread_t thread;
};

/* @return false: the end; waits until the first one is due. */
static bool wait_due(struct pay_kafka_producer *producer)
{
    (void)pthread_mutex_lock(&producer->lock);
    while (producer->head == producer->tail && !atomic_load(&producer->stop)) {
        (void)pthread_cond_wait(&producer->wake, &producer->lock);
    }
    const bool is_there = producer->head != producer->tail;
    const int64_t left_us =
        is_there ? producer->queue[producer->head % QUEUE_MAX].due_us - bench_now_us() : 0;
    (void)pthread_mutex_unlock(&producer->lock);
    if (left_us > 0) {
        (void)usleep((useconds_t)left_us);
    }
    return is_there;
}

static bool take(struct pay_kafka_producer *producer, int64_t now_us, struct entry *entry)
{
    (void)pthread_mutex_lock(&producer->lock);
    const bool is_due = producer->head != producer->tail &&
                        producer->queue[producer->head % QUEUE_MAX].due_us <= now_us;
    if (is_due) {
        *entry = producer->queue[producer->head++ % QUEUE_MAX];
    }
    (void)pthread_mutex_unlock(&producer->lock);
    return is_due;
}

static void *serve(void *arg)
{
    struct pay_kafka_producer *producer = arg;
    struct entry entry;
    while (wait_due(producer)) {
        const int64_t now_us = bench_now_us();
        while (take(producer, now_us, &entry)) {
            const struct pay_kafka_report report = {.tag = entry.tag,
                                                    .status = PAY_OK,
                                                    .persisted = PAY_KAFKA_PERSISTED,
                                                    .reason = "",
                                                    .latency_us = producer->delay_us};
            producer->on_report(producer->ctx, &report);
        }
    }
    return NULL;
}

enum pay_status pay_kafka_producer_new(const struct pay_kafka_producer_options *options,
                                       struct pay_kafka_producer **ret_producer,
                                       struct pay_err *err)
{
    const char *delay = getenv("BENCH_BROKER_US"); /* NOLINT(concurrency-mt-unsafe) */
    struct pay_kafka_producer *producer = pay_mem_new(1, sizeof *producer);
    if (producer == NULL || !options->own_thread) {
        return pay_err_set(err, PAY_FATAL, 0, "stub producer", "only with its own thread");
    }
    producer->on_report = options->on_report;
    producer->ctx = options->ctx;
    producer->delay_us = delay != NULL ? bench_number(delay) : 1000;
    (void)pthread_mutex_init(&producer->lock, NULL);
    (void)pthread_cond_init(&producer->wake, NULL);
    if (pthread_create(&producer->thread, NULL, serve, producer) != 0) {
        return pay_err_set(err, PAY_FATAL, 0, "stub producer", "no thread");
    }
    *ret_producer = producer;
    return PAY_OK;
}

enum pay_status pay_kafka_produce(struct pay_kafka_producer *producer,
                                  const struct pay_kafka_record *record, struct pay_err *err)
{
    enum pay_status status = PAY_OK;
    (void)pthread_mutex_lock(&producer->lock);
    if (producer->tail - producer->head == QUEUE_MAX) {
        status = pay_err_set(err, PAY_RETRY, 0, "stub producer", "the queue is full");
    } else {
        producer->queue[producer->tail++ % QUEUE_MAX] =
            (struct entry){record->tag, bench_now_us() + producer->delay_us};
        if (producer->tail - producer->head == 1) { /* Else it is awake, as bench-bare-http's. */
            (void)pthread_cond_signal(&producer->wake);
        }
    }
    (void)pthread_mutex_unlock(&producer->lock);
    return status;
}

size_t pay_kafka_producer_pending(const struct pay_kafka_producer *producer)
{
    return producer->tail - producer->head;
}

bool pay_kafka_producer_fatal(struct pay_kafka_producer *producer, struct pay_err *err)
{
    (void)producer;
    (void)err;
    return false;
}

enum pay_status pay_kafka_producer_ping(struct pay_kafka_producer *producer, int timeout_ms,
                                        struct pay_err *err)
{
    (void)producer;
    (void)timeout_ms;
    (void)err;
    return PAY_OK;
}

bool pay_kafka_producer_take_error(struct pay_kafka_producer *producer, struct pay_err *ret_err)
{
    (void)producer;
    (void)ret_err;
    return false;
}

size_t pay_kafka_producer_close(struct pay_kafka_producer *producer, int flush_ms)
{
    (void)flush_ms;
    if (!atomic_exchange(&producer->stop, true)) {
        (void)pthread_mutex_lock(&producer->lock);
        (void)pthread_cond_signal(&producer->wake);
        (void)pthread_mutex_unlock(&producer->lock);
        (void)pthread_join(producer->thread, NULL);
    }
    return 0;
}

struct pay_kafka_producer *pay_kafka_producer_free(struct pay_kafka_producer *producer)
{
    if (producer != NULL) {
        (void)pay_kafka_producer_close(producer, 0);
        (void)pthread_cond_destroy(&producer->wake);
        (void)pthread_mutex_destroy(&producer->lock);
    }
    return pay_mem_free(producer);
}
