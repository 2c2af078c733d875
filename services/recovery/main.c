/* SPDX-License-Identifier: Apache-2.0 */
#include "services/recovery/recovery.h"
#include "services/recovery/settings.h"

#include "common/base/banned.h"

static const struct pay_service_desc desc = {
    .name = "payfact-recovery",
    .what = "Turns what is due into queries and inputs: nothing that waits is forgotten.",
    .config = &pay_recovery_config,
    .settings = &pay_recovery_settings,
    .common = &pay_recovery_settings.common,
    .metrics = pay_recovery_metrics,
    .metric_count = PAY_RM_COUNT,
    .check = pay_recovery_check,
    .run = pay_recovery_run,
};

int main(int argc, char **argv)
{
    return pay_service_main(argc, argv, &desc);
}
