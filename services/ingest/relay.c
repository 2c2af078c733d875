/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Role relay: what others put on the notifications and commands topics becomes inputs, or is
 * refused. A batch is taken, each record becomes one input or more or a dead letter, everything is
 * awaited, then the offsets are committed: nothing is lost, and what comes twice has the same keys.
 */
#include "services/ingest/relay.h"

#include <stdatomic.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/io/kafka/kafka_consumer.h"

#include "common/base/banned.h"

#define BATCH_MAX 128
#define ARENA_BYTES_MAX ((size_t)16 * 1024 * 1024)
#define REFRESH_US INT64_C(2000000)
#define RETRY_PAUSE_MS 500

struct role {
    struct pay_relay_desk desk;
    struct pay_kafka_consumer *consumer;
    char group[PAY_TOPIC_NAME_SIZE];
    int64_t refresh_due_us;
    atomic_bool joined;
};

static enum pay_status make_consumer(struct role *role, struct pay_err *err)
{
    const struct pay_ingest *ingest = role->desk.desk.ingest;
    const struct pay_ingest_settings *cfg = ingest->cfg;
    const struct pay_common_config *common = &cfg->common;
    const char *const topics[] = {ingest->topics[PAY_TOPIC_NOTIFICATIONS],
                                  ingest->topics[PAY_TOPIC_COMMANDS]};
    struct pay_buf group = pay_buf_make(sizeof role->group - 1);
    pay_buf_printf(&group, "%singest-relay", common->topic_prefix);
    const bool fits = pay_str_copy(role->group, sizeof role->group, pay_buf_str(&group));
    pay_buf_free(&group);
    if (!fits) {
        return pay_err_set(err, PAY_FATAL, 0, "consumer", "group name too long");
    }
    const struct pay_kafka_consumer_options options = {
        .conf = {.bootstrap = common->kafka_brokers,
                 .client_id = "payfact-ingest-relay",
                 .properties_file = common->kafka_properties_file},
        .group_id = role->group,
        .instance_id = cfg->group_instance_id,
        .session_timeout_ms = (int)cfg->session_timeout_ms,
        .topics = topics,
        .topic_count = sizeof topics / sizeof topics[0],
    };
    return pay_kafka_consumer_new(&options, &role->consumer, err);
}

static bool ready(void *ctx, char why[PAY_HEALTH_WHY_MAX])
{
    struct role *role = ctx;
    (void)pay_str_copy(why, PAY_HEALTH_WHY_MAX,
                       PAY_STR("the consumer group has no assignment yet"));
    return atomic_load(&role->joined);
}

static bool registry_ready(void *ctx, char why[PAY_HEALTH_WHY_MAX])
{
    struct role *role = ctx;
    (void)pay_str_copy(why, PAY_HEALTH_WHY_MAX, PAY_STR("the schema registry does not answer"));
    return atomic_load(&role->desk.registry_ok);
}

static enum pay_status start(struct role *role, struct pay_err *err)
{
    struct pay_relay_desk *desk = &role->desk;
    pay_outlet_wait_init(&desk->wait);
    pay_health_check_add(pay_service_health(desk->desk.ingest->svc), "group", ready, role);
    enum pay_status status = pay_desk_make(&desk->desk, desk->desk.ingest, ARENA_BYTES_MAX, err);
    if (status == PAY_OK) {
        status = pay_relay_schemas_open(desk, err);
    }
    if (desk->registry != NULL) {
        pay_health_check_add(pay_service_health(desk->desk.ingest->svc), "registry", registry_ready,
                             role);
    }
    if (status == PAY_OK) {
        status = make_consumer(role, err);
    }
    atomic_store(&desk->desk.ingest->role_started, status == PAY_OK);
    return status;
}

static enum pay_status relay_one(struct pay_relay_desk *desk, const struct pay_kafka_msg *msg,
                                 struct pay_err *err)
{
    pay_arena_reset(desk->desk.arena);
    return strcmp(msg->topic, desk->desk.ingest->topics[PAY_TOPIC_COMMANDS]) == 0
               ? pay_relay_command(desk, msg, err)
               : pay_relay_notification(desk, msg, err);
}

static enum pay_status relay_all(struct pay_relay_desk *desk, const struct pay_kafka_msg *msgs,
                                 size_t count, struct pay_err *err)
{
    enum pay_status status = PAY_OK;
    for (size_t i = 0; status == PAY_OK && i < count; i++) {
        status = relay_one(desk, &msgs[i], err);
    }
    struct pay_err why = {.status = PAY_OK};
    const enum pay_status reported = pay_outlet_wait_done(&desk->wait, &why);
    if (status == PAY_OK && reported != PAY_OK) {
        *err = why;
        status = reported;
    }
    return status;
}

/* One by one: what can never be produced is found and put aside, and what waits for something to
 * be mended (a broker, a right) does not make those before it go out again and again, dead letters
 * among them. @param done so many are durable. */
static enum pay_status relay_each(struct pay_relay_desk *desk, const struct pay_kafka_msg *msgs,
                                  size_t count, size_t *done, struct pay_err *err)
{
    enum pay_status status = PAY_OK;
    while (status == PAY_OK && *done < count) {
        const struct pay_kafka_msg *msg = &msgs[*done];
        status = relay_all(desk, msg, 1, err);
        if (status == PAY_REJECT) {
            const struct pay_dead_source from = pay_dead_source_of(msg);
            const struct pay_err why = *err;
            status = pay_dead_keep(&desk->desk, &from, pay_dead_reason_of_code(why.code), why.text,
                                   &desk->wait, desk->loop);
        }
        *done += status == PAY_OK ? 1 : 0;
        pay_health_beat(desk->loop);
    }
    return status;
}

/* Again until all of it is durable: the inputs made twice have the same keys. */
static enum pay_status relay_until_durable(struct role *role, const struct pay_kafka_msg *msgs,
                                           size_t count, struct pay_err *err)
{
    size_t done = 0;
    enum pay_status status = relay_all(&role->desk, msgs, count, err);
    if (status == PAY_REJECT) {
        status = relay_each(&role->desk, msgs, count, &done, err);
    }
    while (status != PAY_OK) {
        pay_log(PAY_LOG_WARN, "batch_not_durable", PAY_F_ERR(err));
        pay_metric_add(role->desk.desk.ingest->metrics[PAY_IM_ERRORS],
                       (const char *const[]){"kafka"}, 1);
        pay_health_beat(role->desk.loop);
        if (pay_service_wait(role->desk.desk.ingest->svc, RETRY_PAUSE_MS)) {
            return PAY_RETRY; /* Not committed: it comes again. */
        }
        status = relay_each(&role->desk, msgs, count, &done, err);
    }
    return PAY_OK;
}

static void commit(struct role *role, const struct pay_kafka_msg *msgs, size_t count)
{
    struct pay_err err = {.status = PAY_OK};
    for (size_t i = 0; i < count; i++) {
        (void)pay_kafka_consumer_store(role->consumer, msgs[i].topic, msgs[i].partition,
                                       msgs[i].offset + 1); /* false: another member's by now. */
    }
    if (count > 0 && pay_kafka_consumer_commit(role->consumer, false, &err) != PAY_OK) {
        pay_log(PAY_LOG_WARN, "commit_failed", PAY_F_ERR(&err)); /* Goes with the next one. */
    }
}

static enum pay_status turn(struct role *role, struct pay_err *err)
{
    struct pay_kafka_msg msgs[BATCH_MAX];
    size_t count = 0;
    enum pay_status status =
        pay_kafka_consumer_poll(role->consumer, BATCH_MAX, 200, msgs, &count, err);
    atomic_store(&role->joined, pay_kafka_consumer_joined(role->consumer));
    if (status == PAY_RETRY) {
        pay_log(PAY_LOG_WARN, "poll_failed", PAY_F_ERR(err));
        pay_metric_add(role->desk.desk.ingest->metrics[PAY_IM_ERRORS],
                       (const char *const[]){"kafka"}, 1);
        return PAY_OK;
    }
    if (status == PAY_OK && count > 0) {
        status = relay_until_durable(role, msgs, count, err);
        PAY_FAULT("after_produce_before_commit");
        if (status == PAY_OK) {
            commit(role, msgs, count);
        }
    }
    for (size_t i = 0; i < count; i++) {
        pay_kafka_msg_release(&msgs[i]);
    }
    return status == PAY_RETRY ? PAY_OK : status;
}

static void refresh(struct role *role)
{
    pay_relay_schemas_probe(&role->desk);
    if (pay_clock_mono_us() >= role->refresh_due_us) {
        role->refresh_due_us = pay_clock_mono_us() + REFRESH_US;
        pay_ingest_refresh(role->desk.desk.ingest);
        pay_metric_set(role->desk.desk.ingest->metrics[PAY_IM_LAG], NULL,
                       pay_kafka_consumer_lag_records(role->consumer));
    }
}

static void finish(struct role *role)
{
    struct pay_err err = {.status = PAY_OK};
    struct pay_relay_desk *desk = &role->desk;
    if (role->consumer != NULL &&
        pay_kafka_consumer_close(role->consumer,
                                 (int)(pay_service_drain_left_ms(desk->desk.ingest->svc) / 2),
                                 &err) != PAY_OK) {
        pay_log(PAY_LOG_WARN, "group_not_left", PAY_F_ERR(&err));
    }
    if (role->consumer != NULL && pay_kafka_consumer_abandoned(role->consumer)) {
        pay_service_outlived(desk->desk.ingest->svc);
    }
    role->consumer = pay_kafka_consumer_free(role->consumer);
    pay_relay_schemas_close(desk);
    pay_desk_free(&desk->desk);
    pay_outlet_wait_free(&desk->wait);
}

enum pay_status pay_ingest_relay(struct pay_ingest *ingest, struct pay_err *err)
{
    static struct role role; /* Outlives the check that /readyz calls. */
    role = (struct role){.desk = {.desk = {.ingest = ingest}}};
    role.desk.loop = pay_service_loop(ingest->svc, "relay");
    enum pay_status status = start(&role, err);
    while (status == PAY_OK && pay_service_mode(ingest->svc) == PAY_SERVICE_RUNNING) {
        status = turn(&role, err);
        refresh(&role);
        pay_health_beat(role.desk.loop);
    }
    finish(&role);
    return status;
}
