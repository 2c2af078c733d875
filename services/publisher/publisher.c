/* SPDX-License-Identifier: Apache-2.0 */
#include "services/publisher/publisher.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/store/schema.h"
#include "services/publisher/internal.h"

#include "common/base/banned.h"

#define STATS_US INT64_C(5000000)
#define QUIET_US INT64_C(1000000)
#define QUIET_FACTOR 5
#define METADATA_MS 5000

static enum pay_status make_producer(struct pay_publisher *pub, struct pay_err *err)
{
    const struct pay_common_config *common = &pub->cfg->common;
    const struct pay_kafka_producer_options options = {
        .conf = {.bootstrap = common->kafka_brokers,
                 .client_id = "payfact-publisher",
                 .properties_file = common->kafka_properties_file},
        .message_timeout_ms = 0, /* A record waits for its broker as long as it takes. */
        .message_bytes_max = (int)pub->cfg->message_bytes_max,
        .linger_ms = -1,
        .on_report = pay_publisher_report,
        .ctx = pub,
    };
    return pay_kafka_producer_new(&options, &pub->producer, err);
}

/* After a fatal (idempotence) error: every record gets its report, then all is produced anew. */
static enum pay_status rebuild_producer(struct pay_publisher *pub, struct pay_err *err)
{
    pay_log(PAY_LOG_WARN, "producer_rebuilt", PAY_F_ERR(err));
    (void)pay_kafka_producer_close(pub->producer, 0); /* Reports have told what was delivered. */
    pub->producer = pay_kafka_producer_free(pub->producer);
    return make_producer(pub, err);
}

static enum pay_status find_shards(struct pay_publisher *pub, struct pay_health_loop *loop,
                                   struct pay_err *err)
{
    int32_t partitions = 0;
    enum pay_status status = PAY_RETRY;
    while (pay_service_mode(pub->svc) == PAY_SERVICE_RUNNING) {
        status = pay_kafka_producer_partitions(pub->producer, pub->topics[PAY_TOPIC_INPUTS],
                                               METADATA_MS, &partitions, err);
        if (status == PAY_OK || status == PAY_FATAL) {
            break;
        }
        pay_log(PAY_LOG_WARN, "waiting_for_kafka", PAY_F_ERR(err));
        pay_health_beat(loop); /* An outage of the broker is no reason to be restarted. */
        (void)pay_service_wait(pub->svc, 500);
    }
    if (status != PAY_OK) {
        return status;
    }
    if (partitions > PAY_RELAY_SHARDS_MAX) {
        return pay_err_set(err, PAY_FATAL, 0, "shards", "topic '%s' has more than %d partitions",
                           pub->topics[PAY_TOPIC_INPUTS], PAY_RELAY_SHARDS_MAX);
    }
    pub->shards = pay_mem_new((size_t)partitions, sizeof *pub->shards);
    if (pub->shards == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "shards", "out of memory");
    }
    pub->shard_count = (int)partitions;
    pay_broker_shown(&pub->broker);
    return PAY_OK;
}

static enum pay_status make_pg(struct pay_publisher *pub, struct pay_err *err)
{
    const struct pay_common_config *common = &pub->cfg->common;
    const struct pay_pg_options options = {
        .conninfo = common->pg_conninfo,
        .password_file = common->pg_password_file,
        .application_name = "payfact-publisher",
    };
    enum pay_status status = pay_pg_new(&options, &pub->pg, err);
    if (status == PAY_OK) {
        status =
            pay_relay_init(&pub->relay, pub->pg, common->instance_id, (int)pub->cfg->lease_ms, err);
    }
    return status;
}

/* The next look at the database; Kafka's reports are served meanwhile. */
static void pause_database(struct pay_publisher *pub)
{
    pub->database_due_us =
        pay_clock_mono_us() + (int64_t)pay_pg_backoff_next_ms(&pub->pg_backoff) * 1000;
}

/* One line when it goes, one when it is back; what is in hand stays in hand. */
static bool connected(struct pay_publisher *pub)
{
    if (pay_pg_usable(pub->pg)) {
        return true;
    }
    struct pay_err err = {.status = PAY_OK};
    if (pay_pg_reconnect(pub->pg, &err) == PAY_OK &&
        pay_store_schema_check(pub->pg, PAY_STORE_SCHEMA_TABLES, &err) == PAY_OK &&
        pay_relay_connected(&pub->relay, &err) == PAY_OK) {
        pub->lease_due_us = 0;
        atomic_store(&pub->pg_ok, true);
        pay_log(PAY_LOG_INFO, "database_connected", PAY_F_INT("pid", pay_pg_backend_pid(pub->pg)));
        return true;
    }
    pay_pg_disconnect(pub->pg); /* Half of it is no connection. */
    if (atomic_exchange(&pub->pg_ok, false) || pub->pg_backoff.tries == 0) {
        pay_log(PAY_LOG_WARN, "database_away", PAY_F_ERR(&err));
    }
    pay_metric_add(pub->metrics[PAY_PM_ERRORS], (const char *const[]){"database"}, 1);
    return false;
}

static enum pay_status stats(struct pay_publisher *pub, struct pay_err *err)
{
    struct pay_relay_backlog backlog = {0};
    const enum pay_status status = pay_relay_backlog(&pub->relay, pub->shard_count, &backlog, err);
    if (status == PAY_OK) {
        pay_metric_set(pub->metrics[PAY_PM_OUTBOX_ROWS], NULL, backlog.rows);
        pay_metric_set(pub->metrics[PAY_PM_OUTBOX_DEAD], NULL, backlog.dead);
        pay_metric_set(pub->metrics[PAY_PM_OUTBOX_AGE], NULL, backlog.oldest_age_us);
    }
    return status;
}

/* Everything that speaks SQL, in the order that frees room first. */
static enum pay_status database_turn(struct pay_publisher *pub, struct pay_err *err)
{
    const int64_t now_us = pay_clock_mono_us();
    enum pay_status status = PAY_OK;
    if (now_us >= pub->lease_due_us) {
        status = pay_publisher_lease(pub, err);
        pub->lease_due_us = now_us + pub->cfg->lease_ms * 1000 / 3;
    }
    /* Between knowing what is to be given back and giving it: whoever takes a shard over shall not
     * find what was delivered. */
    if (status == PAY_OK) {
        status = pay_publisher_settle(pub, pay_publisher_is_yielding(pub), err);
    }
    if (status == PAY_OK) {
        status = pay_publisher_yield(pub, err);
    }
    if (status == PAY_OK) {
        status = pay_publisher_read(pub, err);
    }
    if (status == PAY_OK && now_us >= pub->stats_due_us) {
        status = stats(pub, err);
        pub->stats_due_us = now_us + STATS_US;
    }
    return status;
}

/* Whatever fails is tried again after a pause, a schema that is not there yet as well. */
static void try_database(struct pay_publisher *pub)
{
    struct pay_err err = {.status = PAY_OK};
    if (pay_clock_mono_us() < pub->database_due_us) {
        return;
    }
    if (!connected(pub)) {
        pause_database(pub);
    } else if (database_turn(pub, &err) == PAY_OK) {
        pub->pg_backoff.tries = 0;
    } else {
        pay_log(PAY_LOG_WARN, "turn_failed", PAY_F_ERR(&err));
        pay_metric_add(pub->metrics[PAY_PM_ERRORS], (const char *const[]){"database"}, 1);
        pay_pg_rollback(pub->pg);
        pause_database(pub);
    }
}

/* Nothing came for a while: four looks in five are saved, and the next row waits that long once. */
static unsigned idle_ms(const struct pay_publisher *pub)
{
    const bool is_quiet = pay_clock_mono_us() - pub->rows_at_us > QUIET_US;
    return (unsigned)(pub->cfg->poll_ms * (is_quiet ? QUIET_FACTOR : 1));
}

static enum pay_status ask_kafka(void *ctx, int timeout_ms, struct pay_err *err)
{
    return pay_kafka_producer_ping(((struct pay_publisher *)ctx)->producer, timeout_ms, err);
}

static enum pay_status turn(struct pay_publisher *pub, struct pay_err *err)
{
    enum pay_status status = PAY_OK;
    try_database(pub);
    pay_broker_look(&pub->broker, ask_kafka, pub);
    pay_publisher_framing_turn(pub);
    (void)pay_publisher_produce(pub);
    const int wait_ms = pub->in_flight > 0 ? (int)pub->cfg->poll_ms : 0;
    if (pay_kafka_producer_poll(pub->producer, wait_ms) == 0 && pub->in_flight == 0) {
        (void)pay_service_wait(pub->svc, idle_ms(pub));
    }
    if (pay_kafka_producer_fatal(pub->producer, err)) {
        status = rebuild_producer(pub, err);
    }
    return status;
}

static void note_kafka(struct pay_publisher *pub)
{
    struct pay_err err = {.status = PAY_OK};
    if (pay_kafka_producer_take_error(pub->producer, &err)) {
        pay_log(PAY_LOG_WARN, "kafka_error", PAY_F_ERR(&err));
        pay_metric_add(pub->metrics[PAY_PM_ERRORS], (const char *const[]){"kafka"}, 1);
    }
}

/* SIGTERM: no new rows; what is on its way gets its report, what was acknowledged is deleted. What
 * is still on its way then is called back before a shard is let go of: it may not leave behind the
 * later rows that the next owner sends. */
static void drain(struct pay_publisher *pub)
{
    struct pay_err err = {.status = PAY_OK};
    while (pub->in_flight > 0 && pay_service_drain_left_ms(pub->svc) > 2000) {
        (void)pay_kafka_producer_poll(pub->producer, 100);
    }
    (void)pay_kafka_producer_close(pub->producer, 0); /* Reports have told what was delivered. */
    if (!pay_pg_usable(pub->pg) || pub->shards == NULL) {
        return;
    }
    if (pay_publisher_settle(pub, true, &err) != PAY_OK ||
        pay_publisher_leave(pub, &err) != PAY_OK) {
        pay_log(PAY_LOG_WARN, "drain_incomplete", PAY_F_ERR(&err));
    }
}

static bool pg_ready(void *ctx, char why[PAY_HEALTH_WHY_MAX])
{
    struct pay_publisher *pub = ctx;
    (void)pay_str_copy(why, PAY_HEALTH_WHY_MAX, PAY_STR("the database is away"));
    return atomic_load(&pub->pg_ok);
}

static bool kafka_ready(void *ctx, char why[PAY_HEALTH_WHY_MAX])
{
    struct pay_publisher *pub = ctx;
    const bool is_held = pay_publisher_is_held(pub);
    (void)pay_str_copy(why, PAY_HEALTH_WHY_MAX,
                       is_held ? PAY_STR("a topic takes no records from us")
                               : PAY_STR("no broker answers"));
    return pay_broker_ok(&pub->broker) && !is_held;
}

static enum pay_status start(struct pay_publisher *pub, struct pay_health_loop *loop,
                             struct pay_err *err)
{
    for (int i = 0; i < PAY_PM_COUNT; i++) {
        pub->metrics[i] =
            pay_metrics_family(pay_service_metrics(pub->svc), &pay_publisher_metrics[i]);
    }
    for (int i = 0; i < PAY_TOPIC_COUNT; i++) {
        if (!pay_topic_name(pub->topics[i], (enum pay_topic)i, pub->cfg->common.topic_prefix)) {
            return pay_err_set(err, PAY_FATAL, 0, "topics", "prefix '%s' makes no topic name",
                               pub->cfg->common.topic_prefix);
        }
    }
    pay_health_check_add(pay_service_health(pub->svc), "database", pg_ready, pub);
    pay_health_check_add(pay_service_health(pub->svc), "kafka", kafka_ready, pub);
    enum pay_status status = pay_publisher_framing_open(pub, err);
    if (status == PAY_OK) {
        status = make_pg(pub, err);
    }
    if (status == PAY_OK) {
        status = make_producer(pub, err);
    }
    if (status == PAY_OK) {
        status = find_shards(pub, loop, err);
    }
    return status;
}

static void finish(struct pay_publisher *pub)
{
    if (pub->producer != NULL) {
        (void)pay_kafka_producer_close(pub->producer, 0); /* drain(), if any, has waited already. */
        pub->producer = pay_kafka_producer_free(pub->producer);
    }
    for (int i = 0; i < pub->shard_count; i++) {
        pay_window_clear(&pub->shards[i].window);
    }
    pub->shards = pay_mem_free(pub->shards);
    pay_publisher_framing_close(pub);
    pay_relay_free(&pub->relay);
    pub->pg = pay_pg_free(pub->pg);
}

enum pay_status pay_publisher_run(struct pay_service *svc, struct pay_err *err)
{
    static struct pay_publisher pub; /* Outlives the checks that /readyz calls. */
    pub.svc = svc;
    pub.cfg = &pay_publisher_settings;
    pub.settled_id = -1;
    struct pay_health_loop *loop = pay_service_loop(svc, "relay");
    enum pay_status status = start(&pub, loop, err);
    while (status == PAY_OK && pay_service_mode(svc) == PAY_SERVICE_RUNNING) {
        status = turn(&pub, err);
        note_kafka(&pub);
        pay_health_beat(loop);
    }
    if (pay_service_mode(svc) == PAY_SERVICE_DRAINING && pub.producer != NULL) {
        drain(&pub);
        status = status == PAY_RETRY ? PAY_OK : status;
    }
    finish(&pub);
    return status;
}
