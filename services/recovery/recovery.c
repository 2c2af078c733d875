/* SPDX-License-Identifier: Apache-2.0 */
#include "services/recovery/recovery.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/contracts/release.h"
#include "common/store/schema.h"
#include "services/recovery/internal.h"

#include "common/base/banned.h"

#define ARENA_BYTES_MAX ((size_t)8 * 1024 * 1024)
#define HOUSEKEEPING_US INT64_C(3600000000)
#define AGAIN_US INT64_C(60000000) /* After a failure of it. */
#define STATS_US INT64_C(5000000)
#define DEAD_US INT64_C(5000000)
#define ACCOUNTS_US INT64_C(5000000)
#define UNKNOWN_ACCOUNTS_MAX 64

enum pay_status pay_recovery_check(const char *role, struct pay_err *err)
{
    (void)role; /* Recovery has none. */
    struct pay_accounts *accounts = NULL;
    const struct pay_common_config *common = &pay_recovery_settings.common;
    const enum pay_status status =
        pay_accounts_load(common->accounts_file, common->secrets_dir, &accounts, NULL, err);
    if (status == PAY_OK) {
        pay_accounts_release(accounts);
    }
    return status == PAY_OK ? pay_release_check(common->schema_write, err) : status;
}

static enum pay_status make_producer(struct pay_recovery *rec, struct pay_err *err)
{
    const struct pay_common_config *common = &rec->cfg->common;
    const struct pay_kafka_producer_options options = {
        .conf = {.bootstrap = common->kafka_brokers,
                 .client_id = "payfact-recovery",
                 .properties_file = common->kafka_properties_file},
        .message_timeout_ms = (int)rec->cfg->produce_timeout_ms,
        .linger_ms = -1,
        .on_report = pay_recovery_report,
        .ctx = rec,
    };
    return pay_kafka_producer_new(&options, &rec->producer, err);
}

static enum pay_status make_parts(struct pay_recovery *rec, struct pay_err *err)
{
    const struct pay_common_config *common = &rec->cfg->common;
    const struct pay_pg_options pg = {
        .conninfo = common->pg_conninfo,
        .password_file = common->pg_password_file,
        .application_name = "payfact-recovery",
    };
    rec->value = pay_buf_make(PAY_PAYMENT_INPUT_BYTES_MAX);
    rec->arena = pay_arena_new(ARENA_BYTES_MAX);
    rec->tasks = pay_mem_new((size_t)rec->cfg->batch_rows_max, sizeof *rec->tasks);
    if (rec->arena == NULL || rec->tasks == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, "start", "out of memory");
    }
    enum pay_status status =
        pay_accounts_open(common->accounts_file, common->secrets_dir, &rec->accounts, NULL, err);
    if (status == PAY_OK) {
        status = pay_codec_new_writing(common->schema_write, &rec->codec, err);
    }
    if (status == PAY_OK) {
        status = pay_store_new(&pg, &rec->store, err);
    }
    return status == PAY_OK ? make_producer(rec, err) : status;
}

static bool connected(struct pay_recovery *rec)
{
    if (pay_store_usable(rec->store)) {
        return true;
    }
    struct pay_err err = {.status = PAY_OK};
    /* It makes the partitions: it must not wait for them. */
    if (pay_store_connect(rec->store, &err) == PAY_OK &&
        pay_store_schema_check(pay_store_pg(rec->store), PAY_STORE_SCHEMA_TABLES, &err) == PAY_OK) {
        atomic_store(&rec->pg_ok, true);
        pay_log(PAY_LOG_INFO, "database_connected",
                PAY_F_INT("pid", pay_pg_backend_pid(pay_store_pg(rec->store))));
        return true;
    }
    if (atomic_exchange(&rec->pg_ok, false) || rec->pg_backoff.tries == 0) {
        pay_log(PAY_LOG_WARN, "database_away", PAY_F_ERR(&err));
    }
    pay_pg_disconnect(pay_store_pg(rec->store));
    pay_metric_add(rec->metrics[PAY_RM_ERRORS], (const char *const[]){"database"}, 1);
    return false;
}

static enum pay_status batch(struct pay_recovery *rec, struct pay_err *err)
{
    pay_arena_reset(rec->arena);
    enum pay_status status = pay_recovery_lease(rec, err);
    if (status == PAY_OK && rec->task_count > 0) {
        PAY_FAULT("after_lease_before_produce");
        pay_recovery_send(rec);
        PAY_FAULT("after_produce_before_settle");
        status = pay_recovery_settle(rec, err);
    }
    return status;
}

static enum pay_status stats(struct pay_recovery *rec, struct pay_err *err)
{
    struct pay_store_deadline_stat kinds[PAY_DEADLINE_KIND_COUNT];
    struct pay_store_unknown unknown[UNKNOWN_ACCOUNTS_MAX];
    size_t count = 0;
    enum pay_status status = pay_store_deadline_stats(rec->store, kinds, &count, err);
    for (size_t i = 0; status == PAY_OK && i < count; i++) {
        const char *const labels[] = {pay_deadline_kind_name(kinds[i].kind)};
        pay_metric_set(rec->metrics[PAY_RM_OVERDUE], labels, kinds[i].overdue);
        pay_metric_set(rec->metrics[PAY_RM_OVERDUE_AGE], labels,
                       kinds[i].overdue > 0 ? pay_clock_wall_us() - kinds[i].oldest_due_at_us : 0);
    }
    if (status == PAY_OK) {
        status = pay_store_ask_unknown(rec->store, UNKNOWN_ACCOUNTS_MAX, unknown, &count, err);
    }
    for (size_t i = 0; status == PAY_OK && i < count; i++) {
        const char *const labels[] = {unknown[i].psp, unknown[i].psp_account};
        pay_metric_set(rec->metrics[PAY_RM_UNKNOWN], labels, unknown[i].count);
        pay_metric_set(rec->metrics[PAY_RM_UNKNOWN_AGE], labels, unknown[i].oldest_us);
    }
    return status;
}

static void note_failure(struct pay_recovery *rec, const char *event, const char *part,
                         const struct pay_err *err)
{
    pay_log(PAY_LOG_WARN, event, PAY_F_ERR(err));
    pay_metric_add(rec->metrics[PAY_RM_ERRORS], (const char *const[]){part}, 1);
}

/* What fails here is tried again later; it holds up no deadline. */
static void housekeeping(struct pay_recovery *rec)
{
    struct pay_err err = {.status = PAY_OK};
    const int64_t now_us = pay_clock_mono_us();
    if (now_us >= rec->housekeeping_due_us) {
        int made = 0;
        const enum pay_status status = pay_store_make_partitions(rec->store, &made, &err);
        pay_metric_add(rec->metrics[PAY_RM_PARTITIONS], NULL, made);
        rec->housekeeping_due_us = now_us + (status == PAY_OK ? HOUSEKEEPING_US : AGAIN_US);
        if (status != PAY_OK) {
            note_failure(rec, "partitions_not_made", "partitions", &err);
        }
    }
    if (now_us >= rec->dead_due_us) {
        rec->dead_due_us = now_us + DEAD_US;
        if (pay_store_usable(rec->store) && pay_recovery_tell_dead(rec, &err) != PAY_OK) {
            note_failure(rec, "dead_not_told", "database", &err);
        }
    }
    if (now_us >= rec->stats_due_us) {
        rec->stats_due_us = now_us + STATS_US;
        if (pay_store_usable(rec->store) && stats(rec, &err) != PAY_OK) {
            note_failure(rec, "stats_failed", "database", &err);
        }
    }
}

static void refresh_accounts(struct pay_recovery *rec)
{
    if (pay_clock_mono_us() < rec->accounts_due_us) {
        return;
    }
    rec->accounts_due_us = pay_clock_mono_us() + ACCOUNTS_US;
    if (pay_accounts_refresh(rec->accounts, NULL) == PAY_ACCOUNTS_BAD) {
        pay_log(PAY_LOG_ERROR, "accounts_refused",
                PAY_F_STR("file", rec->cfg->common.accounts_file));
        pay_metric_add(rec->metrics[PAY_RM_ERRORS], (const char *const[]){"accounts"}, 1);
    }
}

static enum pay_status mend_producer(struct pay_recovery *rec, struct pay_err *err)
{
    if (!pay_kafka_producer_fatal(rec->producer, err)) {
        return PAY_OK;
    }
    pay_log(PAY_LOG_WARN, "producer_rebuilt", PAY_F_ERR(err));
    rec->producer = pay_kafka_producer_free(rec->producer);
    return make_producer(rec, err);
}

static enum pay_status ask_kafka(void *ctx, int timeout_ms, struct pay_err *err)
{
    return pay_kafka_producer_ping(((struct pay_recovery *)ctx)->producer, timeout_ms, err);
}

/* @return false: the database is away or failed. */
static bool work(struct pay_recovery *rec, struct pay_err *err)
{
    if (!connected(rec)) {
        return false;
    }
    housekeeping(rec);
    if (batch(rec, err) != PAY_OK) {
        note_failure(rec, "turn_failed", "database", err);
        pay_store_rollback(rec->store);
        return false;
    }
    rec->pg_backoff.tries = 0;
    return true;
}

/* @return how long to wait before the next turn: no time after a full batch that went through. */
static unsigned pause_ms(struct pay_recovery *rec, bool is_done)
{
    const unsigned poll_ms = (unsigned)rec->cfg->poll_ms;
    if (!is_done) {
        return (unsigned)pay_pg_backoff_next_ms(&rec->pg_backoff);
    }
    if (!pay_recovery_is_heard(rec)) { /* Were it not to wait, rows would be leased for nothing. */
        const unsigned backoff_ms = (unsigned)pay_pg_backoff_next_ms(&rec->send_backoff);
        return backoff_ms > poll_ms ? backoff_ms : poll_ms;
    }
    if (rec->task_count > 0) {
        rec->send_backoff.tries = 0;
    }
    return rec->task_count < (size_t)rec->cfg->batch_rows_max ? poll_ms : 0;
}

static enum pay_status turn(struct pay_recovery *rec, struct pay_err *err)
{
    rec->task_count = 0;
    const bool is_done = work(rec, err);
    const unsigned wait_ms = pause_ms(rec, is_done);
    refresh_accounts(rec);
    pay_broker_look(&rec->broker, ask_kafka, rec);
    if (wait_ms > 0) {
        (void)pay_service_wait(rec->svc, wait_ms);
    }
    return mend_producer(rec, err);
}

static bool pg_ready(void *ctx, char why[PAY_HEALTH_WHY_MAX])
{
    struct pay_recovery *rec = ctx;
    (void)pay_str_copy(why, PAY_HEALTH_WHY_MAX, PAY_STR("the database is away or its schema old"));
    return atomic_load(&rec->pg_ok);
}

static bool kafka_ready(void *ctx, char why[PAY_HEALTH_WHY_MAX])
{
    struct pay_recovery *rec = ctx;
    (void)pay_str_copy(why, PAY_HEALTH_WHY_MAX, PAY_STR("no broker answers"));
    return pay_broker_ok(&rec->broker);
}

static enum pay_status start(struct pay_recovery *rec, struct pay_err *err)
{
    for (int i = 0; i < PAY_RM_COUNT; i++) {
        rec->metrics[i] =
            pay_metrics_family(pay_service_metrics(rec->svc), &pay_recovery_metrics[i]);
    }
    for (int i = 0; i < PAY_TOPIC_COUNT; i++) {
        if (!pay_topic_name(rec->topics[i], (enum pay_topic)i, rec->cfg->common.topic_prefix)) {
            return pay_err_set(err, PAY_FATAL, 0, "topics", "prefix '%s' makes no topic name",
                               rec->cfg->common.topic_prefix);
        }
    }
    pay_health_check_add(pay_service_health(rec->svc), "database", pg_ready, rec);
    pay_health_check_add(pay_service_health(rec->svc), "kafka", kafka_ready, rec);
    return make_parts(rec, err);
}

static void finish(struct pay_recovery *rec)
{
    rec->producer = pay_kafka_producer_free(rec->producer);
    rec->store = pay_store_free(rec->store);
    rec->codec = pay_codec_free(rec->codec);
    rec->accounts = pay_accounts_close(rec->accounts);
    rec->arena = pay_arena_free(rec->arena);
    rec->tasks = pay_mem_free(rec->tasks);
    pay_buf_free(&rec->value);
}

enum pay_status pay_recovery_run(struct pay_service *svc, struct pay_err *err)
{
    static struct pay_recovery rec; /* Outlives the checks that /readyz calls. */
    rec.svc = svc;
    rec.cfg = &pay_recovery_settings;
    struct pay_health_loop *loop = pay_service_loop(svc, "deadlines");
    enum pay_status status = start(&rec, err);
    while (status == PAY_OK && pay_service_mode(svc) == PAY_SERVICE_RUNNING) {
        status = turn(&rec, err);
        pay_health_beat(loop);
    }
    finish(&rec);
    return status;
}
