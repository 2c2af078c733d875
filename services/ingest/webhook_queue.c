/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ingest/webhook.h"

#include <time.h>

#include "common/base/clock.h"

#include "common/base/banned.h"

void pay_call_queue_init(struct pay_call_queue *queue)
{
    pthread_condattr_t attr;
    *queue = (struct pay_call_queue){.count = 0};
    queue->last = &queue->first;
    (void)pthread_mutex_init(&queue->lock, NULL); /* Cannot fail with default attributes. */
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&queue->wake, &attr);
    (void)pthread_condattr_destroy(&attr);
}

void pay_call_queue_free(struct pay_call_queue *queue)
{
    (void)pthread_cond_destroy(&queue->wake);
    (void)pthread_mutex_destroy(&queue->lock);
}

bool pay_call_queue_put(struct pay_call_queue *queue, struct pay_webhook_call *call, size_t max,
                        bool at_once)
{
    (void)pthread_mutex_lock(&queue->lock);
    const bool room = queue->count < max;
    if (room) {
        call->next = NULL;
        *queue->last = call;
        queue->last = &call->next;
        queue->count++;
        queue->at_once = queue->at_once || at_once;
    }
    /* Whoever gathers sleeps on; whoever works comes back by itself. */
    const bool wakes = queue->waits &&
                       (!queue->gathers || queue->at_once || queue->count >= PAY_WEBHOOK_BATCH_MAX);
    if (wakes) {
        queue->waits = false;
        (void)pthread_cond_signal(&queue->wake);
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return room;
}

static void gather(struct pay_call_queue *queue, int64_t gather_us)
{
    const int64_t until_us = pay_clock_mono_us() + gather_us;
    const struct timespec until = {.tv_sec = (time_t)(until_us / 1000000),
                                   .tv_nsec = (long)(until_us % 1000000) * 1000};
    int rc = 0;
    queue->gathers = true;
    while (queue->count < PAY_WEBHOOK_BATCH_MAX && !queue->at_once && !queue->stopping && rc == 0) {
        queue->waits = true;
        rc = pthread_cond_timedwait(&queue->wake, &queue->lock, &until);
    }
    queue->gathers = false;
}

size_t pay_call_queue_take(struct pay_call_queue *queue, int64_t gather_us,
                           struct pay_webhook_call *ret_calls[PAY_WEBHOOK_BATCH_MAX])
{
    size_t count = 0;
    (void)pthread_mutex_lock(&queue->lock);
    while (queue->first == NULL && !queue->stopping) {
        queue->waits = true;
        (void)pthread_cond_wait(&queue->wake, &queue->lock);
    }
    if (gather_us > 0) {
        gather(queue, gather_us);
    }
    queue->waits = queue->at_once = false;
    while (queue->first != NULL && count < PAY_WEBHOOK_BATCH_MAX) {
        ret_calls[count++] = queue->first;
        queue->first = queue->first->next;
    }
    if (queue->first == NULL) {
        queue->last = &queue->first;
    }
    queue->count -= count;
    (void)pthread_mutex_unlock(&queue->lock);
    return count;
}

void pay_call_queue_stop(struct pay_call_queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    queue->stopping = true;
    (void)pthread_cond_signal(&queue->wake);
    (void)pthread_mutex_unlock(&queue->lock);
}
