/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ingest/psp_watch.h"

#include "common/base/log.h"
#include "common/store/schema.h"

#include "common/base/banned.h"

#define LOOK_MS 2000
#define SLICE_MS 100
#define ANSWER_MS 5000

static bool look(struct pay_psp_watch *watch, struct pay_err *err)
{
    if (!pay_pg_usable(watch->pg) && pay_pg_reconnect(watch->pg, err) != PAY_OK) {
        return false;
    }
    if (pay_store_schema_check(watch->pg, PAY_STORE_SCHEMA_TABLES, err) == PAY_OK) {
        return true;
    }
    pay_pg_disconnect(watch->pg);
    return false;
}

/* @return false: the role ends. */
static bool pause(const struct pay_psp_watch *watch)
{
    bool goes_on = true;
    for (int ms = 0; ms < LOOK_MS && goes_on; ms += SLICE_MS) {
        goes_on =
            !atomic_load(&watch->is_ending) && !pay_service_wait(watch->ingest->svc, SLICE_MS);
    }
    return goes_on;
}

static void *run(void *arg)
{
    struct pay_psp_watch *watch = arg;
    bool is_first = true;
    do {
        struct pay_err err = {.status = PAY_OK};
        const bool ok = look(watch, &err);
        const bool was_ok = atomic_exchange(&watch->ok, ok);
        if (!ok && (was_ok || is_first)) {
            pay_log(PAY_LOG_WARN, "database_away", PAY_F_ERR(&err));
        } else if (ok && !was_ok) {
            pay_log(PAY_LOG_INFO, "database_connected",
                    PAY_F_INT("pid", pay_pg_backend_pid(watch->pg)));
        }
        is_first = false;
    } while (pause(watch));
    return NULL;
}

static bool ready(void *ctx, char why[PAY_HEALTH_WHY_MAX])
{
    struct pay_psp_watch *watch = ctx;
    (void)pay_str_copy(why, PAY_HEALTH_WHY_MAX,
                       PAY_STR("the database is away, or its schema is not ready"));
    return atomic_load(&watch->ok);
}

enum pay_status pay_psp_watch_start(struct pay_psp_watch *watch, struct pay_ingest *ingest,
                                    struct pay_err *err)
{
    const struct pay_common_config *common = &ingest->cfg->common;
    const struct pay_pg_options options = {
        .conninfo = common->pg_conninfo,
        .password_file = common->pg_password_file,
        .application_name = "payfact-ingest-psp",
        .statement_timeout_ms = ANSWER_MS,
        .answer_timeout_ms = ANSWER_MS,
        .read_only = true,
    };
    watch->ingest = ingest;
    pay_health_check_add(pay_service_health(ingest->svc), "database", ready, watch);
    const enum pay_status status = pay_pg_new(&options, &watch->pg, err);
    if (status != PAY_OK) {
        return status;
    }
    if (pthread_create(&watch->thread, NULL, run, watch) != 0) {
        return pay_err_set(err, PAY_FATAL, 0, "watch", "no thread");
    }
    watch->is_started = true;
    return PAY_OK;
}

void pay_psp_watch_stop(struct pay_psp_watch *watch)
{
    if (watch->is_started) {
        atomic_store(&watch->is_ending, true);
        (void)pthread_join(watch->thread, NULL);
        watch->is_started = false;
    }
    watch->pg = pay_pg_free(watch->pg);
}
