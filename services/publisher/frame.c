/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events leave in the registry's framing where one is configured. The outbox holds single-object
 * encoding whatever is configured: the processor makes no call but to Kafka and PostgreSQL.
 */
#include "services/publisher/internal.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/contracts/released.h"

#include "common/base/banned.h"

#define ASK_US INT64_C(3000000)

static bool registry_ready(void *ctx, char why[PAY_HEALTH_WHY_MAX])
{
    struct pay_publisher *pub = ctx;
    (void)pay_str_copy(why, PAY_HEALTH_WHY_MAX,
                       PAY_STR("the schema registry has no id for an event's schema yet"));
    return atomic_load(&pub->framing.ok);
}

enum pay_status pay_publisher_framing_open(struct pay_publisher *pub, struct pay_err *err)
{
    struct pay_framing *framing = &pub->framing;
    const struct pay_common_config *common = &pub->cfg->common;
    framing->value = pay_buf_make(PAY_PAYMENT_EVENT_BYTES_MAX);
    if (common->registry_url[0] == '\0') {
        return PAY_OK;
    }
    const struct pay_registry_options options = {
        .url = common->registry_url,
        .user = common->registry_user,
        .password_file = common->registry_password_file,
        .token_file = common->registry_token_file,
        .ca_file = common->registry_ca_file,
    };
    framing->is_wanted = true;
    pay_health_check_add(pay_service_health(pub->svc), "registry", registry_ready, pub);
    const enum pay_status status = pay_registry_new(&options, &framing->registry, err);
    return status == PAY_OK ? pay_outgoing_new(framing->registry, PAY_RECORD_PAYMENT_EVENT,
                                               pub->topics[PAY_TOPIC_EVENTS], &framing->ids, err)
                            : status;
}

void pay_publisher_framing_close(struct pay_publisher *pub)
{
    struct pay_framing *framing = &pub->framing;
    framing->ids = pay_outgoing_free(framing->ids);
    framing->registry = pay_registry_free(framing->registry);
    pay_buf_free(&framing->value);
}

/* At start one of this release's: a processor of another release may write the next or the former
 * one, and the event says so when it comes. */
static bool knows_wanted(const struct pay_framing *framing)
{
    const struct pay_outgoing *ids = framing->ids;
    if (framing->waits_for != 0) {
        return pay_outgoing_knows(ids, framing->waits_for);
    }
    struct pay_released released[PAY_RELEASED_MAX];
    const size_t count = pay_released(PAY_RECORD_PAYMENT_EVENT, released);
    for (size_t i = 0; i < count; i++) {
        if (pay_outgoing_knows(ids, released[i].fingerprint)) {
            return true;
        }
    }
    return false;
}

static void note_away(struct pay_publisher *pub, const struct pay_err *err)
{
    if (!pub->framing.is_noted) {
        pay_log(PAY_LOG_WARN, "registry_away", PAY_F_ERR(err));
    }
    pub->framing.is_noted = true;
    pay_metric_add(pub->metrics[PAY_PM_ERRORS], (const char *const[]){"registry"}, 1);
}

void pay_publisher_framing_turn(struct pay_publisher *pub)
{
    struct pay_framing *framing = &pub->framing;
    struct pay_err err = {.status = PAY_OK};
    if (!framing->is_wanted || pay_clock_mono_us() < framing->due_us) {
        return;
    }
    enum pay_status status = pay_outgoing_refresh(framing->ids, &err);
    if (status == PAY_OK && !knows_wanted(framing)) {
        status = pay_err_set(&err, PAY_RETRY, PAY_REGISTRY_NOT_FOUND, "schema ids",
                             "the events' schema is not there: run payfactctl schemas register");
    }
    framing->due_us = pay_clock_mono_us() + ASK_US; /* From its end: a slow one takes less of us. */
    if (status != PAY_OK) {
        note_away(pub, &err);
        return;
    }
    framing->is_wanted = false;
    framing->waits_for = 0;
    if (!atomic_exchange(&framing->ok, true)) {
        pay_log(PAY_LOG_INFO, "registry_answers", PAY_F_STR("url", pub->cfg->common.registry_url));
    }
    framing->is_noted = false;
}

enum pay_status pay_publisher_frame(struct pay_publisher *pub, const struct pay_outbox_row *row,
                                    struct pay_bytes *ret_value, struct pay_err *err)
{
    struct pay_framing *framing = &pub->framing;
    *ret_value = row->payload;
    if (framing->ids == NULL || row->is_job) {
        return PAY_OK;
    }
    const enum pay_status status =
        pay_outgoing_frame(framing->ids, row->payload, &framing->value, err);
    if (status == PAY_RETRY && framing->waits_for == 0) {
        (void)pay_fingerprint_get((struct pay_bytes){row->payload.ptr + 2, 8}, &framing->waits_for);
        framing->is_wanted = true;
        atomic_store(&framing->ok, false);
        pay_metric_add(pub->metrics[PAY_PM_UNFRAMED], NULL, 1);
        pay_log(PAY_LOG_WARN, "event_waits_for_schema", PAY_F_STR("payment_id", row->key.ptr),
                PAY_F_ERR(err));
    }
    *ret_value = pay_buf_bytes(&framing->value);
    return status;
}
