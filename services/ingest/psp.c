/* SPDX-License-Identifier: Apache-2.0 */
/* Role psp: takes jobs from payfact.psp-jobs, hands them to workers, commits what is finished. */
#include "services/ingest/psp_worker.h"

#include <stdatomic.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/io/kafka/kafka_consumer.h"
#include "services/ingest/dead.h"
#include "services/ingest/psp_watch.h"

#include "common/base/banned.h"

#define BATCH_MAX 256
#define ARENA_BYTES_MAX ((size_t)8 * 1024 * 1024)
#define REFRESH_US INT64_C(2000000)
#define LANES_SHOWN 256
#define HAND_MAX ((size_t)2 * BATCH_MAX)
#define POLL_MS 50

struct role {
    struct pay_ingest *ingest;
    struct pay_kafka_consumer *consumer;
    struct pay_psp_queue *queue;
    struct pay_http_shared *shared;
    struct pay_psp_worker *workers;
    size_t worker_count;
    struct pay_desk desk;
    struct pay_outlet_wait wait;
    char group[PAY_TOPIC_NAME_SIZE];
    struct pay_psp_watch watch;
    struct pay_kafka_msg hand[HAND_MAX]; /**< Polled and not in the queue yet, in order. */
    size_t hand_count;
    struct pay_psp_lane_figures lanes; /**< As they were shown last. */
    struct pay_health_loop *loop;
    int64_t refresh_due_us;
    atomic_bool joined;
};

/* What is in hand of a partition is somebody else's from now on, and comes again if it is ours. */
static void let_go(struct role *role, int32_t partition)
{
    for (size_t i = 0; i < role->hand_count; i++) {
        if (role->hand[i].partition == partition) {
            pay_kafka_msg_release(&role->hand[i]);
        }
    }
}

static void on_revoked(void *ctx, const struct pay_kafka_partition *parts, size_t count, bool lost)
{
    struct role *role = ctx;
    (void)lost; /* What was finished is stored after each poll already. */
    for (size_t i = 0; i < count; i++) {
        pay_psp_queue_forget(role->queue, parts[i].partition);
        let_go(role, parts[i].partition);
    }
}

static enum pay_status make_consumer(struct role *role, struct pay_err *err)
{
    const struct pay_ingest_settings *cfg = role->ingest->cfg;
    const struct pay_common_config *common = &cfg->common;
    const char *const topics[] = {role->ingest->topics[PAY_TOPIC_PSP_JOBS]};
    struct pay_buf group = pay_buf_make(sizeof role->group - 1);
    pay_buf_printf(&group, "%singest-psp", common->topic_prefix);
    const bool fits = pay_str_copy(role->group, sizeof role->group, pay_buf_str(&group));
    pay_buf_free(&group);
    if (!fits) {
        return pay_err_set(err, PAY_FATAL, 0, "consumer", "group name too long");
    }
    const struct pay_kafka_consumer_options options = {
        .conf = {.bootstrap = common->kafka_brokers,
                 .client_id = "payfact-ingest-psp",
                 .properties_file = common->kafka_properties_file},
        .group_id = role->group,
        .instance_id = cfg->group_instance_id,
        .session_timeout_ms = (int)cfg->session_timeout_ms,
        .topics = topics,
        .topic_count = 1,
        .on_revoked = on_revoked,
        .ctx = role,
    };
    return pay_kafka_consumer_new(&options, &role->consumer, err);
}

static enum pay_status start_workers(struct role *role, struct pay_err *err)
{
    const size_t count = (size_t)role->ingest->cfg->psp_workers;
    role->workers = pay_mem_new(count, sizeof *role->workers);
    if (role->workers == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, "workers", "out of memory");
    }
    role->worker_count = count;
    enum pay_status status = PAY_OK;
    for (size_t i = 0; status == PAY_OK && i < count; i++) {
        status =
            pay_psp_worker_start(&role->workers[i], role->ingest, role->queue, role->shared, err);
    }
    return status;
}

static bool ready(void *ctx, char why[PAY_HEALTH_WHY_MAX])
{
    struct role *role = ctx;
    (void)pay_str_copy(why, PAY_HEALTH_WHY_MAX,
                       PAY_STR("the consumer group has no assignment yet"));
    return atomic_load(&role->joined);
}

static enum pay_status start(struct role *role, struct pay_err *err)
{
    const struct pay_ingest_settings *cfg = role->ingest->cfg;
    const struct pay_psp_queue_options queue = {
        .tasks_max = (size_t)cfg->psp_jobs_max,
        .workers = (size_t)cfg->psp_workers,
        .breaker_failures = (int)cfg->breaker_failures,
        .breaker_open_us = cfg->breaker_open_ms * 1000,
        .retries_per_min = cfg->retry_budget_per_min,
    };
    pay_outlet_wait_init(&role->wait);
    role->queue = pay_psp_queue_new(&queue);
    if (role->queue == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, "start", "out of memory");
    }
    enum pay_status status = pay_desk_make(&role->desk, role->ingest, ARENA_BYTES_MAX, err);
    if (status == PAY_OK) {
        status = pay_http_shared_new(&role->shared, err);
    }
    if (status == PAY_OK) {
        status = start_workers(role, err);
    }
    if (status == PAY_OK) {
        status = pay_psp_watch_start(&role->watch, role->ingest, err);
    }
    if (status == PAY_OK) {
        status = make_consumer(role, err);
    }
    pay_health_check_add(pay_service_health(role->ingest->svc), "group", ready, role);
    atomic_store(&role->ingest->role_started, status == PAY_OK);
    return status;
}

/* A record that is no job: kept in the dead letters, then its offset counts as done. */
static enum pay_status refuse(struct role *role, const struct pay_kafka_msg *msg,
                              const struct pay_err *why, struct pay_err *err)
{
    const struct pay_err reason = *why; /* @p why may be @p err. */
    const struct pay_dead_source from = pay_dead_source_of(msg);
    if (pay_dead_keep(&role->desk, &from, pay_dead_reason_of_code(reason.code), reason.text,
                      &role->wait, role->loop) != PAY_OK) {
        return PAY_RETRY;
    }
    return pay_psp_queue_skip(role->queue, (struct pay_psp_place){msg->partition, msg->offset},
                              err);
}

static enum pay_status take_one(struct role *role, const struct pay_kafka_msg *msg,
                                struct pay_err *err)
{
    struct pay_psp_job job;
    pay_arena_reset(role->desk.arena);
    enum pay_status status =
        pay_psp_job_decode(role->desk.codec, msg->value, role->desk.arena, &job, err);
    if (status == PAY_REJECT) {
        return refuse(role, msg, err, err);
    }
    if (status != PAY_OK) {
        return status;
    }
    const struct pay_psp_record record = {{msg->partition, msg->offset},
                                          msg->key,
                                          msg->value,
                                          msg->headers.items,
                                          msg->headers.count};
    const struct pay_accounts *accounts = pay_accounts_acquire(role->ingest->accounts);
    status = pay_psp_queue_push(role->queue, pay_accounts_account(accounts, job.psp_account), &job,
                                &record, err);
    pay_accounts_release(accounts);
    return status;
}

/* In order, up to the first that finds no room: one that is left out would be committed with those
 * behind it. It stays in hand, and the consumer is polled meanwhile: no record comes, for it is
 * paused, but the group hears of us. Full is not for ever: the workers make room. */
static enum pay_status take(struct role *role, struct pay_err *err)
{
    enum pay_status status = PAY_OK;
    size_t taken = 0;
    while (taken < role->hand_count && status == PAY_OK) {
        struct pay_kafka_msg *msg = &role->hand[taken];
        if (msg->handle != NULL) { /* else it was let go of */
            status = take_one(role, msg, err);
        }
        if (status == PAY_OK) {
            pay_kafka_msg_release(msg);
            taken++;
        }
    }
    role->hand_count -= taken;
    for (size_t i = 0; i < role->hand_count && taken > 0; i++) {
        role->hand[i] = role->hand[i + taken];
    }
    return status == PAY_FATAL ? status : PAY_OK;
}

static enum pay_status poll(struct role *role, struct pay_err *err)
{
    static struct pay_kafka_msg msgs[BATCH_MAX]; /* One role, one loop. */
    size_t count = 0;
    if (HAND_MAX - role->hand_count < BATCH_MAX) { /* It was paused: cannot be. */
        return pay_err_set(err, PAY_FATAL, 0, "poll", "a paused consumer hands out records");
    }
    const enum pay_status status =
        pay_kafka_consumer_poll(role->consumer, BATCH_MAX, POLL_MS, msgs, &count, err);
    for (size_t i = 0; i < count; i++) {
        role->hand[role->hand_count++] = msgs[i];
    }
    return status;
}

static void store_offsets(struct role *role)
{
    struct pay_psp_offset offsets[PAY_PSP_PARTITIONS_MAX];
    struct pay_err err = {.status = PAY_OK};
    const size_t count = pay_psp_queue_offsets(role->queue, offsets, PAY_PSP_PARTITIONS_MAX);
    if (count > 0) {
        PAY_FAULT("after_produce_before_offset");
    }
    for (size_t i = 0; i < count; i++) {
        (void)pay_kafka_consumer_store(role->consumer, role->ingest->topics[PAY_TOPIC_PSP_JOBS],
                                       offsets[i].partition,
                                       offsets[i].next); /* false: another member's by now. */
    }
    if (count > 0 && pay_kafka_consumer_commit(role->consumer, false, &err) != PAY_OK) {
        pay_log(PAY_LOG_WARN, "commit_failed", PAY_F_ERR(&err)); /* Goes with the next one. */
    }
}

static enum pay_status hold_back(struct role *role, struct pay_err *err)
{
    const bool full = role->hand_count > 0 || pay_psp_queue_full(role->queue);
    if (full == pay_kafka_consumer_paused(role->consumer)) {
        return PAY_OK;
    }
    return full ? pay_kafka_consumer_pause(role->consumer, err)
                : pay_kafka_consumer_resume(role->consumer, err);
}

/* One line each time that the maximum was felt since the last look, however often that was. */
static void show_lane_count(struct role *role)
{
    const struct pay_psp_lane_figures now = pay_psp_queue_lane_figures(role->queue);
    const int64_t replaced = now.replaced - role->lanes.replaced;
    const int64_t refused = now.refused - role->lanes.refused;
    struct pay_metric *full = role->ingest->metrics[PAY_IM_LANES_FULL];
    pay_metric_set(role->ingest->metrics[PAY_IM_LANES], NULL, (int64_t)now.lanes);
    pay_metric_add(full, (const char *const[]){"replaced"}, replaced);
    pay_metric_add(full, (const char *const[]){"waited"}, refused);
    if (replaced > 0 || refused > 0) {
        pay_log(refused > 0 ? PAY_LOG_ERROR : PAY_LOG_WARN, "lanes_full",
                PAY_F_INT("lanes", now.lanes), PAY_F_INT("replaced", replaced),
                PAY_F_INT("waited", refused));
    }
    role->lanes = now;
}

static void show_lanes(struct role *role)
{
    static const int64_t shown[] = {
        [PAY_BREAKER_CLOSED] = 0, [PAY_BREAKER_HALF_OPEN] = 1, [PAY_BREAKER_OPEN] = 2};
    struct pay_psp_lane_state lanes[LANES_SHOWN];
    const size_t count = pay_psp_queue_lanes(role->queue, lanes, LANES_SHOWN);
    for (size_t i = 0; i < count; i++) {
        const char *const labels[] = {lanes[i].account};
        pay_metric_set(role->ingest->metrics[PAY_IM_QUEUED], labels, (int64_t)lanes[i].queued);
        pay_metric_set(role->ingest->metrics[PAY_IM_IN_FLIGHT], labels,
                       (int64_t)lanes[i].in_flight);
        pay_metric_set(role->ingest->metrics[PAY_IM_BREAKER], labels, shown[lanes[i].breaker]);
    }
    pay_metric_set(role->ingest->metrics[PAY_IM_LAG], NULL,
                   pay_kafka_consumer_lag_records(role->consumer));
    show_lane_count(role);
}

static enum pay_status turn(struct role *role, struct pay_err *err)
{
    enum pay_status status = hold_back(role, err);
    if (status == PAY_OK) {
        status = poll(role, err);
    }
    if (status == PAY_OK) {
        status = take(role, err);
    }
    store_offsets(role);
    atomic_store(&role->joined, pay_kafka_consumer_joined(role->consumer));
    if (pay_clock_mono_us() >= role->refresh_due_us) {
        role->refresh_due_us = pay_clock_mono_us() + REFRESH_US;
        pay_ingest_refresh(role->ingest);
        show_lanes(role);
    }
    if (status == PAY_RETRY || status == PAY_UNKNOWN) {
        pay_log(PAY_LOG_WARN, "turn_failed", PAY_F_ERR(err));
        pay_metric_add(role->ingest->metrics[PAY_IM_ERRORS], (const char *const[]){"kafka"}, 1);
        return PAY_OK;
    }
    return status;
}

static void finish(struct role *role)
{
    struct pay_err err = {.status = PAY_OK};
    if (role->queue != NULL) {
        pay_psp_queue_close(role->queue);
    }
    for (size_t i = 0; i < role->worker_count; i++) {
        pay_psp_worker_stop(&role->workers[i]);
    }
    if (role->consumer != NULL) {
        store_offsets(role);
        if (pay_kafka_consumer_close(role->consumer,
                                     (int)(pay_service_drain_left_ms(role->ingest->svc) / 2),
                                     &err) != PAY_OK) {
            pay_log(PAY_LOG_WARN, "group_not_left", PAY_F_ERR(&err));
        }
        if (pay_kafka_consumer_abandoned(role->consumer)) {
            pay_service_outlived(role->ingest->svc);
        }
    }
    for (size_t i = 0; i < role->hand_count; i++) {
        pay_kafka_msg_release(&role->hand[i]);
    }
    role->hand_count = 0;
    pay_psp_watch_stop(&role->watch);
    role->consumer = pay_kafka_consumer_free(role->consumer);
    role->workers = pay_mem_free(role->workers);
    role->queue = pay_psp_queue_free(role->queue);
    role->shared = pay_http_shared_free(role->shared);
    pay_desk_free(&role->desk);
    pay_outlet_wait_free(&role->wait);
}

enum pay_status pay_ingest_psp(struct pay_ingest *ingest, struct pay_err *err)
{
    static struct role role; /* Outlives the checks that /readyz calls. */
    role = (struct role){.ingest = ingest};
    role.loop = pay_service_loop(ingest->svc, "jobs");
    enum pay_status status = start(&role, err);
    while (status == PAY_OK && pay_service_mode(ingest->svc) == PAY_SERVICE_RUNNING) {
        status = turn(&role, err);
        pay_health_beat(role.loop);
    }
    finish(&role);
    return status;
}
