/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ingest/ingest.h"

#include "common/base/log.h"
#include "common/contracts/headers.h"
#include "common/contracts/release.h"

#include "common/base/banned.h"

enum pay_status pay_desk_make(struct pay_desk *desk, struct pay_ingest *ingest,
                              size_t arena_bytes_max, struct pay_err *err)
{
    *desk = (struct pay_desk){.ingest = ingest,
                              .arena = pay_arena_new(arena_bytes_max),
                              .value = pay_buf_make(PAY_PAYMENT_INPUT_BYTES_MAX)};
    if (desk->arena == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "desk", "out of memory");
    }
    return pay_codec_new_writing(ingest->cfg->common.schema_write, &desk->codec, err);
}

void pay_desk_free(struct pay_desk *desk)
{
    desk->codec = pay_codec_free(desk->codec);
    desk->arena = pay_arena_free(desk->arena);
    pay_buf_free(&desk->value);
}

enum pay_status pay_ingest_check(const char *role, struct pay_err *err)
{
    const struct pay_common_config *common = &pay_ingest_settings.common;
    if (pay_str_eq_c(PAY_STR("psp"), role) && common->pg_conninfo[0] == '\0') {
        return pay_err_set(err, PAY_FATAL, 0, "config",
                           "PAYFACT_PG_CONNINFO is required for --role psp");
    }
    struct pay_accounts *accounts = NULL;
    enum pay_status status =
        pay_accounts_load(common->accounts_file, common->secrets_dir, &accounts, NULL, err);
    if (status == PAY_OK) {
        pay_accounts_release(accounts);
        struct pay_keyring *ring = NULL;
        status = pay_keyring_load(common->keyring_file, &ring, err);
        (void)pay_keyring_free(ring);
    }
    return status == PAY_OK ? pay_release_check(common->schema_write, err) : status;
}

static bool outlet_ready(void *ctx, char why[PAY_HEALTH_WHY_MAX])
{
    const struct pay_ingest *ingest = ctx;
    (void)pay_str_copy(why, PAY_HEALTH_WHY_MAX, PAY_STR("kafka does not acknowledge"));
    return pay_broker_ok(&ingest->broker);
}

const struct pay_kafka_headers *pay_ingest_headers(struct pay_kafka_headers *headers,
                                                   struct pay_str traceparent)
{
    headers->count = 0;
    return traceparent.ptr != NULL &&
                   pay_kafka_headers_add_str(headers, PAY_HEADER_TRACEPARENT, traceparent)
               ? headers
               : NULL;
}

static enum pay_status open_parts(struct pay_ingest *ingest, struct pay_err *err)
{
    const struct pay_common_config *common = &ingest->cfg->common;
    enum pay_status status =
        pay_accounts_open(common->accounts_file, common->secrets_dir, &ingest->accounts, NULL, err);
    if (status == PAY_OK) {
        status = pay_keys_open(common->keyring_file, &ingest->keys, err);
    }
    if (status == PAY_OK) {
        status = pay_outlet_open(common, (int)ingest->cfg->produce_timeout_ms, &ingest->broker,
                                 &ingest->outlet, err);
    }
    return status;
}

static bool role_ready(void *ctx, char why[PAY_HEALTH_WHY_MAX])
{
    const struct pay_ingest *ingest = ctx;
    (void)pay_str_copy(why, PAY_HEALTH_WHY_MAX, PAY_STR("the role has not started yet"));
    return atomic_load(&ingest->role_started);
}

enum pay_status pay_ingest_start(struct pay_ingest *ingest, struct pay_service *svc,
                                 struct pay_err *err)
{
    ingest->svc = svc;
    ingest->cfg = &pay_ingest_settings;
    for (int i = 0; i < PAY_IM_COUNT; i++) {
        ingest->metrics[i] = pay_metrics_family(pay_service_metrics(svc), &pay_ingest_metrics[i]);
    }
    for (int i = 0; i < PAY_TOPIC_COUNT; i++) {
        if (!pay_topic_name(ingest->topics[i], (enum pay_topic)i,
                            ingest->cfg->common.topic_prefix)) {
            return pay_err_set(err, PAY_FATAL, 0, "topics", "prefix '%s' makes no topic name",
                               ingest->cfg->common.topic_prefix);
        }
    }
    const enum pay_status status = open_parts(ingest, err);
    if (status == PAY_OK) {
        pay_health_check_add(pay_service_health(svc), "role", role_ready, ingest);
        pay_health_check_add(pay_service_health(svc), "kafka", outlet_ready, ingest);
        pay_outlet_look(ingest->outlet); /* Not there yet: /readyz says so. */
    }
    return status;
}

void pay_ingest_stop(struct pay_ingest *ingest)
{
    ingest->outlet =
        pay_outlet_close(ingest->outlet, (int)(pay_service_drain_left_ms(ingest->svc) / 2));
    ingest->keys = pay_keys_close(ingest->keys);
    ingest->accounts = pay_accounts_close(ingest->accounts);
}

void pay_ingest_refresh(struct pay_ingest *ingest)
{
    struct pay_err err = {.status = PAY_OK};
    const enum pay_accounts_change change = pay_accounts_refresh(ingest->accounts, NULL);
    if (change == PAY_ACCOUNTS_BAD) {
        pay_log(PAY_LOG_ERROR, "accounts_refused",
                PAY_F_STR("file", ingest->cfg->common.accounts_file));
        pay_metric_add(ingest->metrics[PAY_IM_ERRORS], (const char *const[]){"accounts"}, 1);
    } else if (change == PAY_ACCOUNTS_CHANGED) {
        pay_log(PAY_LOG_INFO, "accounts_loaded",
                PAY_F_STR("file", ingest->cfg->common.accounts_file));
    }
    bool is_renewed = false;
    if (pay_keys_refresh(ingest->keys, &is_renewed, &err) != PAY_OK) {
        pay_log(PAY_LOG_ERROR, "keyring_refused", PAY_F_ERR(&err));
        pay_metric_add(ingest->metrics[PAY_IM_ERRORS], (const char *const[]){"keyring"}, 1);
    } else if (is_renewed) {
        pay_log(PAY_LOG_INFO, "keyring_loaded",
                PAY_F_STR("file", ingest->cfg->common.keyring_file));
    }
    pay_outlet_look(ingest->outlet);
}
