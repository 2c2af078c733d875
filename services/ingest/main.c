/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ingest/ingest.h"

#include <string.h>

#include "common/base/banned.h"

static const char *const role_names[] = {"webhook", "relay", "psp", NULL};

static const struct {
    const char *name;
    enum pay_status (*run)(struct pay_ingest *ingest, struct pay_err *err);
} roles[] = {
    {"webhook", pay_ingest_webhook},
    {"relay", pay_ingest_relay},
    {"psp", pay_ingest_psp},
};

static enum pay_status run(struct pay_service *svc, struct pay_err *err)
{
    static struct pay_ingest ingest;
    enum pay_status status = pay_ingest_start(&ingest, svc, err);
    for (size_t i = 0; status == PAY_OK && i < sizeof roles / sizeof roles[0]; i++) {
        if (strcmp(roles[i].name, pay_service_role(svc)) == 0) {
            status = roles[i].run(&ingest, err);
            break;
        }
    }
    pay_ingest_stop(&ingest);
    return status;
}

static const struct pay_service_desc desc = {
    .name = "payfact-ingest",
    .what =
        "Takes evidence in: callbacks, relayed notifications and commands, and answers of PSPs.",
    .roles = role_names,
    .config = &pay_ingest_config,
    .settings = &pay_ingest_settings,
    .common = &pay_ingest_settings.common,
    .metrics = pay_ingest_metrics,
    .metric_count = PAY_IM_COUNT,
    .check = pay_ingest_check,
    .run = run,
};

int main(int argc, char **argv)
{
    return pay_service_main(argc, argv, &desc);
}
