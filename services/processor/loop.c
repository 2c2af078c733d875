/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/processor.h"

#include <stdatomic.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/contracts/release.h"
#include "common/contracts/topics.h"
#include "common/crypto/keyring_file.h"
#include "common/io/kafka/kafka_producer.h"
#include "common/service/broker.h"
#include "services/processor/worker.h"

#include "common/base/banned.h"

#define REFRESH_US INT64_C(2000000)
#define POLL_MS 100
#define RECORDS_KBYTES_MAX 8192 /**< Prefetched: what bounds memory while the database is away. */

struct loop {
    struct pay_service *svc;
    const struct pay_processor_settings *cfg;
    struct pay_metric *metrics[PAY_PM_COUNT];
    struct pay_health_loop *beat;
    struct pay_accounts_store *accounts;
    struct pay_keyring_file keyring_file;
    struct pay_keyring *keyring;
    struct pay_kafka_consumer *consumer;
    struct pay_kafka_producer *producer;
    struct pay_worker *worker;
    struct pay_kafka_msg *msgs;
    char inputs[PAY_TOPIC_NAME_SIZE];
    char dlq[PAY_TOPIC_NAME_SIZE];
    char group[PAY_CFG_TEXT_MAX + 32];
    bool delivered; /**< Of the dead letter in hand. */
    int64_t refresh_due_us;
    bool is_away_noted; /**< That the database is away was logged. */
    atomic_bool pg_ok, joined;
    struct pay_broker broker;
    int64_t worked_us; /**< Monotonic: a batch was committed. */
};

enum pay_status pay_processor_check(const char *role, struct pay_err *err)
{
    (void)role; /* the processor has none */
    const struct pay_common_config *common = &pay_processor_settings.common;
    struct pay_accounts *accounts = NULL;
    struct pay_keyring *keyring = NULL;
    enum pay_status status =
        pay_accounts_load(common->accounts_file, common->secrets_dir, &accounts, NULL, err);
    if (status != PAY_OK) {
        return status;
    }
    pay_accounts_release(accounts);
    status = pay_keyring_load(common->keyring_file, &keyring, err);
    keyring = pay_keyring_free(keyring);
    return status == PAY_OK ? pay_release_check(common->schema_write, err) : status;
}

/* ---- the worker's requests ---- */

/* Kafka must hear from us while we wait, and must give us nothing more. */
static bool wait_paused(void *ctx, int ms)
{
    struct loop *loop = ctx;
    struct pay_err err;
    int64_t until_us = pay_clock_mono_us() + (int64_t)ms * 1000;
    bool paused = pay_kafka_consumer_pause(loop->consumer, &err) == PAY_OK;
    atomic_store(&loop->pg_ok, pay_worker_connected(loop->worker));
    while (pay_service_mode(loop->svc) == PAY_SERVICE_RUNNING && pay_clock_mono_us() < until_us) {
        struct pay_kafka_msg none[1];
        size_t count = 0;
        pay_health_beat(loop->beat);
        if (!paused) {
            (void)pay_service_wait(loop->svc, POLL_MS); /* true: the loop ends by itself */
            continue;
        }
        int64_t left_ms = (until_us - pay_clock_mono_us()) / 1000;
        int slice_ms = left_ms > POLL_MS ? POLL_MS : (int)(left_ms > 0 ? left_ms : 0);
        if (pay_kafka_consumer_poll(loop->consumer, 1, slice_ms, none, &count, &err) == PAY_FATAL) {
            return false;
        }
        if (count > 0) { /* paused: cannot be, but what is taken must not be lost */
            pay_kafka_msg_release(&none[0]);
            return false;
        }
    }
    if (paused && pay_kafka_consumer_resume(loop->consumer, &err) != PAY_OK) {
        pay_log(PAY_LOG_WARN, "resume_failed", PAY_F_ERR(&err));
    }
    return pay_service_mode(loop->svc) == PAY_SERVICE_RUNNING;
}

static void on_report(void *ctx, const struct pay_kafka_report *report)
{
    struct loop *loop = ctx;
    loop->delivered = report->status == PAY_OK;
}

static enum pay_status make_producer(struct loop *loop, struct pay_err *err)
{
    const struct pay_common_config *common = &loop->cfg->common;
    const struct pay_kafka_producer_options options = {
        .conf = {.bootstrap = common->kafka_brokers,
                 .client_id = "payfact-processor",
                 .properties_file = common->kafka_properties_file},
        .message_timeout_ms = (int)loop->cfg->produce_timeout_ms,
        .message_bytes_max = (int)PAY_DEAD_LETTER_BYTES_MAX + 65536,
        .linger_ms = -1,
        .on_report = on_report,
        .ctx = loop,
    };
    return pay_kafka_producer_new(&options, &loop->producer, err);
}

static bool dead_letter(void *ctx, const struct pay_kafka_msg *msg, struct pay_bytes letter)
{
    struct loop *loop = ctx;
    struct pay_err err;
    if (pay_kafka_producer_fatal(loop->producer, &err)) {
        pay_log(PAY_LOG_WARN, "producer_rebuilt", PAY_F_ERR(&err));
        loop->producer = pay_kafka_producer_free(loop->producer);
        if (make_producer(loop, &err) != PAY_OK) {
            return false;
        }
    }
    const struct pay_kafka_record record = {
        .topic = loop->dlq,
        .key = {(const char *)msg->key.ptr, msg->key.len},
        .value = letter,
    };
    loop->delivered = false;
    if (pay_kafka_produce(loop->producer, &record, &err) != PAY_OK) {
        pay_log(PAY_LOG_WARN, "dead_letter_refused", PAY_F_ERR(&err));
        return false;
    }
    while (pay_kafka_producer_pending(loop->producer) > 0) { /* ends by message_timeout_ms */
        (void)pay_kafka_producer_poll(loop->producer, POLL_MS);
        pay_health_beat(loop->beat);
    }
    return loop->delivered;
}

/* ---- turns ---- */

static void store_offsets(struct loop *loop, size_t count)
{
    struct pay_err err;
    for (size_t i = 0; i < count; i++) {
        const struct pay_kafka_msg *msg = &loop->msgs[i];
        bool is_last = i + 1 == count || loop->msgs[i + 1].partition != msg->partition;
        if (is_last) {
            /* false: given to another member, who finds everything in the inbox */
            (void)pay_kafka_consumer_store(loop->consumer, msg->topic, msg->partition,
                                           msg->offset + 1);
        }
    }
    if (pay_kafka_consumer_commit(loop->consumer, false, &err) != PAY_OK) {
        pay_log(PAY_LOG_WARN, "commit_failed", PAY_F_ERR(&err));
    }
}

static enum pay_status work(struct loop *loop, size_t count, struct pay_err *err)
{
    const struct pay_accounts *accounts = pay_accounts_acquire(loop->accounts);
    enum pay_status status = pay_worker_turn(loop->worker, accounts, loop->msgs, count, err);
    pay_accounts_release(accounts);
    PAY_FAULT("after_commit_before_offset");
    if (status == PAY_OK) {
        store_offsets(loop, count);
        atomic_store(&loop->pg_ok, true);
        loop->worked_us = pay_clock_mono_us();
    }
    for (size_t i = 0; i < count; i++) {
        pay_kafka_msg_release(&loop->msgs[i]);
    }
    return status;
}

static void refresh_accounts(struct loop *loop)
{
    const char *file = loop->cfg->common.accounts_file;
    const enum pay_accounts_change change = pay_accounts_refresh(loop->accounts, NULL);
    if (change == PAY_ACCOUNTS_BAD) {
        pay_log(PAY_LOG_ERROR, "accounts_refused", PAY_F_STR("file", file));
        pay_metric_add(loop->metrics[PAY_PM_ERRORS], (const char *const[]){"accounts"}, 1);
    } else if (change == PAY_ACCOUNTS_CHANGED) {
        pay_log(PAY_LOG_INFO, "accounts_loaded", PAY_F_STR("file", file));
    }
}

/* Between two turns nothing of the ring is in hand. */
static void refresh_keyring(struct loop *loop)
{
    struct pay_err err;
    struct pay_keyring *next = NULL;
    if (pay_keyring_file_next(&loop->keyring_file, loop->keyring, &next, &err) != PAY_OK) {
        pay_log(PAY_LOG_ERROR, "keyring_refused", PAY_F_ERR(&err));
        pay_metric_add(loop->metrics[PAY_PM_ERRORS], (const char *const[]){"keyring"}, 1);
    } else if (next != NULL) {
        pay_worker_use_keyring(loop->worker, next);
        (void)pay_keyring_free(loop->keyring); /* always NULL */
        loop->keyring = next;
        pay_log(PAY_LOG_INFO, "keyring_loaded", PAY_F_STR("file", loop->keyring_file.path));
    }
}

/* One line when it goes, or is not there at the start; one when it is there. */
static void note_database(struct loop *loop, enum pay_status status, const struct pay_err *err)
{
    const bool was_ok = atomic_exchange(&loop->pg_ok, status == PAY_OK);
    if (status != PAY_OK && (was_ok || !loop->is_away_noted)) {
        pay_log(PAY_LOG_WARN, "database_away", PAY_F_ERR(err));
    } else if (status == PAY_OK && !was_ok) {
        pay_log(PAY_LOG_INFO, "database_connected", PAY_F_STR("schema", "ready"));
    }
    loop->is_away_noted = status != PAY_OK;
}

static enum pay_status ask_kafka(void *ctx, int timeout_ms, struct pay_err *err)
{
    return pay_kafka_producer_ping(((struct loop *)ctx)->producer, timeout_ms, err);
}

static void refresh(struct loop *loop)
{
    struct pay_err err;
    if (pay_clock_mono_us() < loop->refresh_due_us) {
        return;
    }
    loop->refresh_due_us = pay_clock_mono_us() + REFRESH_US;
    refresh_accounts(loop);
    refresh_keyring(loop);
    pay_metric_set(loop->metrics[PAY_PM_LAG], NULL, pay_kafka_consumer_lag_records(loop->consumer));
    /* Idle, the connection is made ahead of the first input, and readiness knows of it. */
    if (pay_clock_mono_us() - loop->worked_us > REFRESH_US) {
        note_database(loop, pay_worker_probe(loop->worker, &err), &err);
    }
    pay_broker_look(&loop->broker, ask_kafka, loop);
}

static enum pay_status turn(struct loop *loop, struct pay_err *err)
{
    size_t count = 0;
    enum pay_status status = pay_kafka_consumer_poll(
        loop->consumer, (size_t)loop->cfg->batch_records_max, POLL_MS, loop->msgs, &count, err);
    atomic_store(&loop->joined, pay_kafka_consumer_joined(loop->consumer));
    if (status == PAY_RETRY) {
        pay_log(PAY_LOG_WARN, "poll_failed", PAY_F_ERR(err));
        return PAY_OK;
    }
    if (status != PAY_OK) {
        return status;
    }
    if (count > 0) {
        pay_broker_shown(&loop->broker);
        status = work(loop, count, err);
        status =
            pay_worker_outcome(status, pay_service_mode(loop->svc) != PAY_SERVICE_RUNNING, err);
    }
    refresh(loop);
    return status;
}

/* ---- life ---- */

static bool pg_ready(void *ctx, char why[PAY_HEALTH_WHY_MAX])
{
    struct loop *loop = ctx;
    (void)pay_str_copy(why, PAY_HEALTH_WHY_MAX,
                       PAY_STR("the database is away, or its schema is not ready"));
    return atomic_load(&loop->pg_ok);
}

static bool kafka_ready(void *ctx, char why[PAY_HEALTH_WHY_MAX])
{
    struct loop *loop = ctx;
    (void)pay_str_copy(why, PAY_HEALTH_WHY_MAX, PAY_STR("no broker answers"));
    return pay_broker_ok(&loop->broker);
}

static bool group_ready(void *ctx, char why[PAY_HEALTH_WHY_MAX])
{
    struct loop *loop = ctx;
    (void)pay_str_copy(why, PAY_HEALTH_WHY_MAX, PAY_STR("the group has given no assignment yet"));
    return atomic_load(&loop->joined);
}

static enum pay_status make_consumer(struct loop *loop, struct pay_err *err)
{
    const struct pay_common_config *common = &loop->cfg->common;
    const char *const topics[] = {loop->inputs};
    struct pay_buf group = pay_buf_make(sizeof(loop->group) - 1);
    pay_buf_printf(&group, "%sprocessor", common->topic_prefix);
    bool fits = pay_str_copy(loop->group, sizeof(loop->group), pay_buf_str(&group));
    pay_buf_free(&group);
    if (!fits) {
        return pay_err_set(err, PAY_FATAL, 0, "start", "the topic prefix is too long");
    }
    const struct pay_kafka_consumer_options options = {
        .conf = {.bootstrap = common->kafka_brokers,
                 .client_id = "payfact-processor",
                 .properties_file = common->kafka_properties_file},
        .group_id = loop->group,
        .instance_id = loop->cfg->group_instance_id,
        .session_timeout_ms = (int)loop->cfg->session_timeout_ms,
        .topics = topics,
        .topic_count = 1,
        .fetch_kbytes_max = RECORDS_KBYTES_MAX,
    };
    return pay_kafka_consumer_new(&options, &loop->consumer, err);
}

/* The outbox shard must be the partition that the key has in inputs. */
static enum pay_status ask_partitions(struct loop *loop, int32_t *ret_partitions,
                                      struct pay_err *err)
{
    *ret_partitions = (int32_t)loop->cfg->partitions;
    while (*ret_partitions == 0) {
        pay_health_beat(loop->beat);
        enum pay_status status =
            pay_kafka_producer_partitions(loop->producer, loop->inputs, 2000, ret_partitions, err);
        if (status == PAY_OK && *ret_partitions > 0) {
            break;
        }
        *ret_partitions = 0;
        pay_log(PAY_LOG_WARN, "partitions_unknown", PAY_F_ERR(err));
        if (status == PAY_FATAL || pay_service_wait(loop->svc, 1000)) {
            return pay_err_set(err, PAY_FATAL, 0, "start", "the inputs topic cannot be asked for");
        }
    }
    return PAY_OK;
}

static enum pay_status make_worker(struct loop *loop, struct pay_err *err)
{
    int32_t partitions = 0;
    enum pay_status status = ask_partitions(loop, &partitions, err);
    if (status != PAY_OK) {
        return status;
    }
    const struct pay_worker_options options = {
        .cfg = loop->cfg,
        .metrics = loop->metrics,
        .keyring = loop->keyring,
        .partitions = (uint32_t)partitions,
        .wait = wait_paused,
        .dead_letter = dead_letter,
        .ctx = loop,
    };
    return pay_worker_open(&options, &loop->worker, err);
}

static enum pay_status start(struct loop *loop, struct pay_err *err)
{
    const struct pay_common_config *common = &loop->cfg->common;
    for (int i = 0; i < PAY_PM_COUNT; i++) {
        loop->metrics[i] =
            pay_metrics_family(pay_service_metrics(loop->svc), &pay_processor_metrics[i]);
    }
    loop->beat = pay_service_loop(loop->svc, "turn");
    pay_health_check_add(pay_service_health(loop->svc), "database", pg_ready, loop);
    pay_health_check_add(pay_service_health(loop->svc), "group", group_ready, loop);
    pay_health_check_add(pay_service_health(loop->svc), "kafka", kafka_ready, loop);
    loop->msgs = pay_mem_new((size_t)loop->cfg->batch_records_max, sizeof(*loop->msgs));
    if (loop->msgs == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, "start", "memory is out");
    }
    if (!pay_topic_name(loop->inputs, PAY_TOPIC_INPUTS, common->topic_prefix) ||
        !pay_topic_name(loop->dlq, PAY_TOPIC_DLQ, common->topic_prefix)) {
        return pay_err_set(err, PAY_FATAL, 0, "start", "the topic prefix is not valid");
    }
    enum pay_status status =
        pay_accounts_open(common->accounts_file, common->secrets_dir, &loop->accounts, NULL, err);
    status = status != PAY_OK ? status
                              : pay_keyring_file_open(&loop->keyring_file, common->keyring_file,
                                                      &loop->keyring, err);
    status = status != PAY_OK ? status : make_producer(loop, err);
    status = status != PAY_OK ? status : make_worker(loop, err);
    return status != PAY_OK ? status : make_consumer(loop, err);
}

static void stop(struct loop *loop)
{
    struct pay_err err;
    int left_ms = (int)pay_service_drain_left_ms(loop->svc) / 2;
    if (loop->consumer != NULL &&
        pay_kafka_consumer_close(loop->consumer, left_ms, &err) != PAY_OK) {
        pay_log(PAY_LOG_WARN, "close_failed", PAY_F_ERR(&err));
    }
    if (loop->consumer != NULL && pay_kafka_consumer_abandoned(loop->consumer)) {
        pay_service_outlived(loop->svc);
    }
    loop->consumer = pay_kafka_consumer_free(loop->consumer);
    loop->producer = pay_kafka_producer_free(loop->producer);
    loop->worker = pay_worker_close(loop->worker);
    loop->keyring = pay_keyring_free(loop->keyring);
    loop->accounts = pay_accounts_close(loop->accounts);
    loop->msgs = pay_mem_free(loop->msgs);
}

enum pay_status pay_processor_run(struct pay_service *svc, struct pay_err *err)
{
    static struct loop loop;
    loop = (struct loop){.svc = svc, .cfg = &pay_processor_settings};
    enum pay_status status = start(&loop, err);
    while (status == PAY_OK && pay_service_mode(svc) == PAY_SERVICE_RUNNING) {
        pay_health_beat(loop.beat);
        status = turn(&loop, err);
    }
    stop(&loop);
    return status;
}
