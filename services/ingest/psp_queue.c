/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ingest/psp_queue.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/mem.h"

#include "common/base/banned.h"

#define SECOND_US INT64_C(1000000)
#define WAIT_US_MAX SECOND_US

struct pay_psp_lane {
    struct pay_psp_lane *next;
    char account[PAY_NAME_SIZE];
    char method[PAY_NAME_SIZE];
    struct pay_psp_task *first;
    struct pay_psp_task **last;
    size_t queued;
    size_t in_flight;
    size_t running; /* As in_flight, and those that make no call. */
    size_t queued_max;
    size_t in_flight_max;
    bool limited; /* false: an unknown account, or tasks that make no call. */
    struct pay_breaker breaker;
    struct pay_bucket calls;
    struct pay_bucket retries;
};

/* Records of one partition that were taken and are not all done, in order. */
struct slot {
    int64_t offset;
    bool done;
};
struct partition {
    bool known;
    struct slot *slots; /* Ring. */
    size_t head, count, cap;
    bool moved;
    int64_t next;
};

struct pay_psp_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct pay_psp_queue_options options;
    struct pay_psp_lane *lanes;
    struct pay_psp_lane *turn; /* Where the last task came from: the search starts behind it. */
    size_t lane_count;
    int64_t lanes_replaced, lanes_refused;
    size_t tasks;
    size_t busy; /* Workers that may be in a call. */
    bool closed;
    struct pay_psp_clock clock;
    struct pay_psp_task *running; /* For the check that one job runs once at a time. */
    struct partition partitions[PAY_PSP_PARTITIONS_MAX];
};

struct pay_psp_queue *pay_psp_queue_new(const struct pay_psp_queue_options *options)
{
    struct pay_psp_queue *queue = pay_mem_new(1, sizeof *queue);
    if (queue == NULL) {
        return NULL;
    }
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&queue->lock, NULL);
    (void)pthread_cond_init(&queue->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    queue->options = *options;
    pay_psp_clock_init(&queue->clock);
    return queue;
}

struct pay_psp_clock *pay_psp_queue_clock(struct pay_psp_queue *queue)
{
    return &queue->clock;
}

void pay_psp_queue_close(struct pay_psp_queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    queue->closed = true;
    (void)pthread_cond_broadcast(&queue->changed);
    (void)pthread_mutex_unlock(&queue->lock);
}

static void free_tasks(struct pay_psp_task *task)
{
    while (task != NULL) {
        struct pay_psp_task *next = task->next;
        pay_mem_free(task);
        task = next;
    }
}

struct pay_psp_queue *pay_psp_queue_free(struct pay_psp_queue *queue)
{
    if (queue == NULL) {
        return NULL;
    }
    PAY_ASSERT(queue->running == NULL);
    for (struct pay_psp_lane *lane = queue->lanes; lane != NULL;) {
        struct pay_psp_lane *next = lane->next;
        free_tasks(lane->first);
        pay_mem_free(lane);
        lane = next;
    }
    for (size_t i = 0; i < PAY_PSP_PARTITIONS_MAX; i++) {
        pay_mem_free(queue->partitions[i].slots);
    }
    (void)pthread_cond_destroy(&queue->changed);
    (void)pthread_mutex_destroy(&queue->lock);
    return pay_mem_free(queue);
}

/* ---- offsets ---- */

static bool grow(struct partition *partition)
{
    if (partition->count < partition->cap) {
        return true;
    }
    const size_t cap = partition->cap == 0 ? 64 : 2 * partition->cap;
    struct slot *slots = pay_mem_new(cap, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    PAY_ASSERT(partition->count == partition->cap);
    for (size_t i = 0; i < partition->count; i++) {
        slots[i] = partition->slots[(partition->head + i) % partition->count];
    }
    pay_mem_free(partition->slots);
    partition->slots = slots;
    partition->head = 0;
    partition->cap = cap;
    return true;
}

static bool track(struct pay_psp_queue *queue, struct pay_psp_place place, bool done)
{
    PAY_ASSERT(place.partition >= 0 && place.partition < PAY_PSP_PARTITIONS_MAX);
    struct partition *partition = &queue->partitions[place.partition];
    if (!grow(partition)) {
        return false;
    }
    partition->known = true;
    partition->slots[(partition->head + partition->count) % partition->cap] =
        (struct slot){place.offset, done};
    partition->count++;
    return true;
}

static void advance(struct partition *partition)
{
    while (partition->count > 0 && partition->slots[partition->head].done) {
        partition->next = partition->slots[partition->head].offset + 1;
        partition->head = (partition->head + 1) % partition->cap;
        partition->count--;
        partition->moved = true;
    }
}

static void mark_done(struct pay_psp_queue *queue, const struct pay_psp_task *task)
{
    struct partition *partition = &queue->partitions[task->place.partition];
    for (size_t i = 0; partition->known && i < partition->count; i++) {
        struct slot *slot = &partition->slots[(partition->head + i) % partition->cap];
        if (slot->offset == task->place.offset) {
            slot->done = true;
            break;
        }
    }
    advance(partition);
}

size_t pay_psp_queue_offsets(struct pay_psp_queue *queue, struct pay_psp_offset *ret_offsets,
                             size_t max)
{
    size_t count = 0;
    (void)pthread_mutex_lock(&queue->lock);
    for (int32_t i = 0; i < PAY_PSP_PARTITIONS_MAX && count < max; i++) {
        struct partition *partition = &queue->partitions[i];
        if (partition->known && partition->moved) {
            partition->moved = false;
            ret_offsets[count++] = (struct pay_psp_offset){i, partition->next};
        }
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return count;
}

void pay_psp_queue_forget(struct pay_psp_queue *queue, int32_t partition)
{
    (void)pthread_mutex_lock(&queue->lock);
    struct partition *gone = &queue->partitions[partition];
    gone->known = gone->moved = false;
    gone->count = gone->head = 0;
    (void)pthread_mutex_unlock(&queue->lock);
}

enum pay_status pay_psp_queue_skip(struct pay_psp_queue *queue, struct pay_psp_place place,
                                   struct pay_err *err)
{
    (void)pthread_mutex_lock(&queue->lock);
    const bool tracked = track(queue, place, true);
    advance(&queue->partitions[place.partition]);
    (void)pthread_mutex_unlock(&queue->lock);
    return tracked ? PAY_OK
                   : pay_err_set(err, PAY_RETRY, PAY_PSP_QUEUE_MEMORY, "queue", "out of memory");
}

/* ---- lanes ---- */

/* At each push: the accounts file may have changed. */
static void set_limits(struct pay_psp_lane *lane, const struct pay_account *account)
{
    const int64_t calls_per_s = account == NULL ? 1000000 : account->calls_per_s;
    lane->limited = account != NULL;
    lane->queued_max = account == NULL ? SIZE_MAX : (size_t)account->queued;
    lane->in_flight_max = account == NULL ? SIZE_MAX : (size_t)account->in_flight;
    if (lane->calls.per_period != calls_per_s) {
        lane->calls = pay_bucket_make(calls_per_s, SECOND_US, pay_clock_mono_us());
    }
}

/* One with nothing to do, and nothing to remember: an open breaker would be forgotten. */
static struct pay_psp_lane *unlink_idle(struct pay_psp_queue *queue)
{
    const int64_t now_us = pay_clock_mono_us();
    for (struct pay_psp_lane **at = &queue->lanes; *at != NULL; at = &(*at)->next) {
        struct pay_psp_lane *lane = *at;
        if (lane->queued > 0 || lane->running > 0 ||
            pay_breaker_state(&lane->breaker, now_us) != PAY_BREAKER_CLOSED) {
            continue;
        }
        *at = lane->next;
        queue->lane_count--;
        queue->turn = queue->turn == lane ? NULL : queue->turn;
        return lane;
    }
    return NULL;
}

/* @return NULL: out of memory, or every lane there may be has something to do. */
static struct pay_psp_lane *new_lane(struct pay_psp_queue *queue)
{
    if (queue->lane_count < PAY_PSP_LANES_MAX) {
        return pay_mem_new(1, sizeof(struct pay_psp_lane));
    }
    struct pay_psp_lane *lane = unlink_idle(queue);
    if (lane == NULL) {
        queue->lanes_refused++;
        return NULL;
    }
    queue->lanes_replaced++;
    *lane = (struct pay_psp_lane){.next = NULL};
    return lane;
}

static struct pay_psp_lane *find_lane(struct pay_psp_queue *queue,
                                      const struct pay_account *account, struct pay_str method)
{
    const char *name = account == NULL ? "" : account->psp.id;
    struct pay_psp_lane *lane = queue->lanes;
    while (lane != NULL &&
           (strcmp(lane->account, name) != 0 || !pay_str_eq_c(method, lane->method))) {
        lane = lane->next;
    }
    if (lane != NULL) {
        set_limits(lane, account);
        return lane;
    }
    lane = new_lane(queue);
    if (lane == NULL) {
        return NULL;
    }
    if (!pay_str_copy(lane->account, sizeof lane->account, pay_str_of(name)) ||
        !pay_str_copy(lane->method, sizeof lane->method, method)) {
        return pay_mem_free(lane);
    }
    lane->last = &lane->first;
    lane->breaker.failures_max = queue->options.breaker_failures;
    lane->breaker.open_us = queue->options.breaker_open_us;
    lane->retries =
        pay_bucket_make(queue->options.retries_per_min, 60 * SECOND_US, pay_clock_mono_us());
    set_limits(lane, account);
    lane->next = queue->lanes;
    queue->lanes = lane;
    queue->lane_count++;
    return lane;
}

static bool is_money(enum pay_job_kind kind)
{
    return kind == PAY_JOB_SUBMIT || kind == PAY_JOB_CONFIRM || kind == PAY_JOB_CAPTURE ||
           kind == PAY_JOB_REFUND;
}

static size_t bytes_of(const struct pay_psp_record *record)
{
    size_t bytes = record->key.len + record->value.len;
    for (size_t i = 0; i < record->header_count; i++) {
        bytes += strlen(record->headers[i].name) + 1 + record->headers[i].value.len;
    }
    return bytes + record->header_count * sizeof record->headers[0];
}

static struct pay_bytes put(uint8_t **at, struct pay_bytes bytes)
{
    struct pay_bytes copy = {bytes.ptr == NULL ? NULL : *at, bytes.len};
    if (copy.ptr != NULL) {
        memcpy(*at, bytes.ptr, bytes.len);
        *at += bytes.len;
    }
    return copy;
}

/* One allocation: the task, its headers, then all bytes. */
static void copy_record(struct pay_psp_task *task, const struct pay_psp_record *record)
{
    task->headers = (struct pay_kafka_header *)(task + 1);
    task->header_count = record->header_count;
    uint8_t *at = (uint8_t *)(task->headers + record->header_count);
    for (size_t i = 0; i < record->header_count; i++) {
        const struct pay_kafka_header *header = &record->headers[i];
        const struct pay_bytes name = {(const uint8_t *)header->name, strlen(header->name) + 1};
        task->headers[i].name = (const char *)put(&at, name).ptr;
        task->headers[i].value = put(&at, header->value);
    }
    task->key = put(&at, record->key);
    task->value = put(&at, record->value);
    task->place = record->place;
}

static struct pay_psp_task *make_task(const struct pay_psp_job *job,
                                      const struct pay_psp_record *record)
{
    struct pay_psp_task *task = pay_mem_new(1, sizeof *task + bytes_of(record));
    if (task != NULL && !pay_str_copy(task->job_id, sizeof task->job_id, job->job_id)) {
        task = pay_mem_free(task);
    }
    if (task != NULL) {
        task->is_money = is_money(job->kind);
        task->not_after_us = job->not_after_us;
        copy_record(task, record);
    }
    return task;
}

static void append(struct pay_psp_lane *lane, struct pay_psp_task *task)
{
    *lane->last = task;
    lane->last = &task->next;
    lane->queued++;
}

static enum pay_status refuse(struct pay_err *err, enum pay_psp_queue_code code)
{
    static const char *const texts[] = {
        [PAY_PSP_QUEUE_MEMORY] = "out of memory",
        [PAY_PSP_QUEUE_FULL] = "the maximum of jobs is in hand",
        [PAY_PSP_QUEUE_LANES] = "the maximum of lanes has something to do",
    };
    return pay_err_set(err, PAY_RETRY, (int)code, "queue", "%s", texts[code]);
}

/* @return TAKEN, or why it is not in. */
static enum pay_psp_queue_code put_in(struct pay_psp_queue *queue,
                                      const struct pay_account *account, struct pay_str method,
                                      struct pay_psp_place place, struct pay_psp_task *task)
{
    if (queue->tasks >= queue->options.tasks_max) { /* Before a lane is made for it. */
        return PAY_PSP_QUEUE_FULL;
    }
    const int64_t refused = queue->lanes_refused;
    task->lane = find_lane(queue, account, method);
    if (task->lane == NULL) {
        return queue->lanes_refused > refused ? PAY_PSP_QUEUE_LANES : PAY_PSP_QUEUE_MEMORY;
    }
    if (!track(queue, place, false)) {
        return PAY_PSP_QUEUE_MEMORY;
    }
    task->shed = task->lane->queued >= task->lane->queued_max;
    append(task->lane, task);
    queue->tasks++;
    (void)pthread_cond_signal(&queue->changed);
    return PAY_PSP_QUEUE_TAKEN;
}

enum pay_status pay_psp_queue_push(struct pay_psp_queue *queue, const struct pay_account *account,
                                   const struct pay_psp_job *job,
                                   const struct pay_psp_record *record, struct pay_err *err)
{
    struct pay_psp_task *task = make_task(job, record);
    if (task == NULL) {
        return refuse(err, PAY_PSP_QUEUE_MEMORY);
    }
    (void)pthread_mutex_lock(&queue->lock);
    const enum pay_psp_queue_code why = put_in(queue, account, job->method, record->place, task);
    (void)pthread_mutex_unlock(&queue->lock);
    if (why != PAY_PSP_QUEUE_TAKEN) {
        pay_mem_free(task);
        return refuse(err, why);
    }
    return PAY_OK;
}

bool pay_psp_queue_full(struct pay_psp_queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    const bool full = queue->tasks >= queue->options.tasks_max;
    (void)pthread_mutex_unlock(&queue->lock);
    return full;
}

/* ---- taking ---- */

static struct pay_psp_task *unlink_task(struct pay_psp_lane *lane, struct pay_psp_task **at)
{
    struct pay_psp_task *task = *at;
    *at = task->next;
    if (*at == NULL) {
        lane->last = at;
    }
    task->next = NULL;
    lane->queued--;
    return task;
}

/* Shed tasks, and money tasks under an open breaker, need no place: they end without a call. */
static struct pay_psp_task *take_without_call(struct pay_psp_queue *queue,
                                              struct pay_psp_lane *lane, int64_t mono_us)
{
    const bool open = pay_breaker_state(&lane->breaker, mono_us) == PAY_BREAKER_OPEN;
    /* While it is not known a query goes on to where it is learned. */
    const int64_t now_us =
        pay_psp_clock_known(&queue->clock) ? pay_psp_clock_latest_us(&queue->clock) : 0;
    for (struct pay_psp_task **at = &lane->first; *at != NULL; at = &(*at)->next) {
        struct pay_psp_task *task = *at;
        const bool late_query = !task->is_money && task->not_after_us < now_us;
        if (task->shed || late_query || (open && task->is_money)) {
            task->shed = true;
            return unlink_task(lane, at);
        }
    }
    return NULL;
}

/* Beyond its equal part a lane leaves a quarter of the workers to others. */
static bool has_place(const struct pay_psp_queue *queue, const struct pay_psp_lane *lane)
{
    const size_t workers = queue->options.workers;
    const size_t part = workers / queue->lane_count > 1 ? workers / queue->lane_count : 1;
    if (lane->in_flight >= lane->in_flight_max) {
        return false;
    }
    return workers == 0 || queue->lane_count == 1 || lane->in_flight < part ||
           queue->busy + workers / 4 < workers;
}

static struct pay_psp_task *take_from(struct pay_psp_queue *queue, struct pay_psp_lane *lane,
                                      int64_t mono_us, int64_t *wake_us)
{
    struct pay_psp_task *task = take_without_call(queue, lane, mono_us);
    if (task != NULL || lane->first == NULL || !has_place(queue, lane)) {
        return task;
    }
    const int64_t token_us = pay_bucket_next_us(&lane->calls, mono_us);
    if (token_us > mono_us) {
        *wake_us = token_us < *wake_us ? token_us : *wake_us;
        return NULL;
    }
    if (!pay_breaker_allow(&lane->breaker, mono_us)) {
        return NULL; /* Looked at again within WAIT_US_MAX. */
    }
    (void)pay_bucket_take(&lane->calls, mono_us);
    return unlink_task(lane, &lane->first);
}

static struct pay_psp_task *running(const struct pay_psp_queue *queue, const char *job_id)
{
    struct pay_psp_task *task = queue->running;
    while (task != NULL && strcmp(task->job_id, job_id) != 0) {
        task = task->next;
    }
    return task;
}

static struct pay_psp_task *take_any(struct pay_psp_queue *queue, int64_t *wake_us)
{
    const int64_t mono_us = pay_clock_mono_us();
    struct pay_psp_lane *lane = queue->turn != NULL ? queue->turn->next : NULL;
    for (size_t i = 0; i < queue->lane_count; i++) {
        lane = lane == NULL ? queue->lanes : lane;
        struct pay_psp_task *task = take_from(queue, lane, mono_us, wake_us);
        if (task != NULL) {
            queue->turn = lane;
            return task;
        }
        lane = lane->next;
    }
    return NULL;
}

static void wait_until(struct pay_psp_queue *queue, int64_t wake_us)
{
    const struct timespec until = {(time_t)(wake_us / SECOND_US),
                                   (long)(wake_us % SECOND_US) * 1000};
    (void)pthread_cond_timedwait(&queue->changed, &queue->lock, &until);
}

/* With its copies: until the first is done, nothing of the others may be committed. */
static void finish(struct pay_psp_queue *queue, struct pay_psp_task *task, bool done)
{
    while (task != NULL) {
        struct pay_psp_task *copy = task->copies;
        if (done) {
            mark_done(queue, task);
        }
        queue->tasks--;
        pay_mem_free(task);
        task = copy;
    }
}

static void start(struct pay_psp_queue *queue, struct pay_psp_task *task)
{
    const size_t place = task->shed ? 0 : 1; /* One that makes no call takes nobody's place. */
    task->lane->in_flight += place;
    task->lane->running++;
    queue->busy += place;
    task->next = queue->running;
    queue->running = task;
}

struct pay_psp_task *pay_psp_queue_take(struct pay_psp_queue *queue)
{
    struct pay_psp_task *task = NULL;
    (void)pthread_mutex_lock(&queue->lock);
    while (!queue->closed && task == NULL) {
        int64_t wake_us = pay_clock_mono_us() + WAIT_US_MAX;
        task = take_any(queue, &wake_us);
        struct pay_psp_task *first = task == NULL ? NULL : running(queue, task->job_id);
        if (task == NULL) {
            wait_until(queue, wake_us);
        } else if (first != NULL) { /* Its outcome is this one's too. */
            task->copies = first->copies;
            first->copies = task;
            task = NULL;
        }
    }
    if (task != NULL) {
        start(queue, task);
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return task;
}

bool pay_psp_queue_may_retry(struct pay_psp_queue *queue, const struct pay_psp_task *task)
{
    (void)pthread_mutex_lock(&queue->lock);
    const int64_t now_us = pay_clock_mono_us();
    const bool allowed = !queue->closed && pay_bucket_take(&task->lane->retries, now_us) &&
                         pay_breaker_state(&task->lane->breaker, now_us) != PAY_BREAKER_OPEN;
    (void)pthread_mutex_unlock(&queue->lock);
    return allowed;
}

void pay_psp_queue_note(struct pay_psp_queue *queue, const struct pay_psp_task *task, bool answered)
{
    (void)pthread_mutex_lock(&queue->lock);
    if (task->lane->limited) {
        pay_breaker_note(&task->lane->breaker, answered, pay_clock_mono_us());
    }
    (void)pthread_mutex_unlock(&queue->lock);
}

void pay_psp_queue_done(struct pay_psp_queue *queue, struct pay_psp_task *task, bool again)
{
    (void)pthread_mutex_lock(&queue->lock);
    struct pay_psp_task **at = &queue->running;
    while (*at != task) {
        at = &(*at)->next;
    }
    *at = task->next;
    const size_t place = task->shed ? 0 : 1;
    task->lane->in_flight -= place;
    task->lane->running--;
    queue->busy -= place;
    if (task->lane->breaker.probing && task->lane->in_flight == 0) {
        task->lane->breaker.probing = false; /* The probe ended without a call. */
    }
    finish(queue, task, !again);
    (void)pthread_cond_broadcast(&queue->changed);
    (void)pthread_mutex_unlock(&queue->lock);
}

size_t pay_psp_queue_lanes(struct pay_psp_queue *queue, struct pay_psp_lane_state *ret_lanes,
                           size_t max)
{
    size_t count = 0;
    (void)pthread_mutex_lock(&queue->lock);
    const int64_t now_us = pay_clock_mono_us();
    for (struct pay_psp_lane *lane = queue->lanes; lane != NULL && count < max; lane = lane->next) {
        ret_lanes[count++] =
            (struct pay_psp_lane_state){lane->account, lane->method, lane->queued, lane->in_flight,
                                        pay_breaker_state(&lane->breaker, now_us)};
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return count;
}

struct pay_psp_lane_figures pay_psp_queue_lane_figures(struct pay_psp_queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    const struct pay_psp_lane_figures figures = {queue->lane_count, queue->lanes_replaced,
                                                 queue->lanes_refused};
    (void)pthread_mutex_unlock(&queue->lock);
    return figures;
}
