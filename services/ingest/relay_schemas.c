/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ingest/relay.h"

#include "common/base/clock.h"
#include "common/base/log.h"

#include "common/base/banned.h"

#define PROBE_US INT64_C(5000000)
#define PAUSE_MS 300

enum pay_status pay_relay_schemas_open(struct pay_relay_desk *desk, struct pay_err *err)
{
    const struct pay_common_config *common = &desk->desk.ingest->cfg->common;
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
    const enum pay_status status = pay_registry_new(&options, &desk->registry, err);
    return status == PAY_OK
               ? pay_incoming_new(desk->registry, desk->desk.codec, &desk->incoming, err)
               : status;
}

void pay_relay_schemas_close(struct pay_relay_desk *desk)
{
    desk->incoming = pay_incoming_free(desk->incoming);
    desk->registry = pay_registry_free(desk->registry);
}

/* One line when it goes, one when it is back. @param err only read when it is not. */
static void note(struct pay_relay_desk *desk, bool is_ok, const struct pay_err *err)
{
    const bool is_same = atomic_exchange(&desk->registry_ok, is_ok) == is_ok;
    if (is_same && desk->registry_noted) {
        return;
    }
    desk->registry_noted = true;
    if (is_ok) {
        pay_log(PAY_LOG_INFO, "registry_answers",
                PAY_F_STR("url", desk->desk.ingest->cfg->common.registry_url));
        return;
    }
    pay_log(PAY_LOG_WARN, "registry_away", PAY_F_ERR(err));
    pay_metric_add(desk->desk.ingest->metrics[PAY_IM_ERRORS], (const char *const[]){"registry"}, 1);
}

enum pay_status pay_relay_schemas_know(struct pay_relay_desk *desk, enum pay_record record,
                                       struct pay_bytes value, struct pay_err *err)
{
    if (desk->incoming == NULL) {
        return PAY_OK;
    }
    for (;;) {
        const enum pay_status status = pay_incoming_resolve(desk->incoming, record, value, err);
        if (status == PAY_OK) {
            return PAY_OK;
        }
        note(desk, err->code == PAY_REGISTRY_NOT_FOUND, err);
        pay_health_beat(desk->loop);
        if (pay_service_wait(desk->desk.ingest->svc, PAUSE_MS)) {
            return PAY_RETRY;
        }
    }
}

/* Most values name a schema that is known already: without them too it must be seen to be there. */
void pay_relay_schemas_probe(struct pay_relay_desk *desk)
{
    struct pay_registry_versions versions;
    struct pay_err err = {.status = PAY_OK};
    char subject[PAY_REGISTRY_SUBJECT_MAX];
    if (desk->registry == NULL || atomic_load(&desk->registry_ok) ||
        pay_clock_mono_us() < desk->registry_due_us ||
        !pay_registry_subject(subject, desk->desk.ingest->topics[PAY_TOPIC_COMMANDS])) {
        return;
    }
    const enum pay_status status = pay_registry_versions(desk->registry, subject, &versions, &err);
    note(desk, status == PAY_OK || status == PAY_REJECT, &err);
    desk->registry_due_us = pay_clock_mono_us() + PROBE_US;
}
