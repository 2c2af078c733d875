/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/processor.h"
#include "services/processor/settings.h"

#include "common/base/banned.h"

static const struct pay_service_desc desc = {
    .name = "payfact-processor",
    .what = "Decides every input in one transaction: the only writer of payment facts.",
    .config = &pay_processor_config,
    .settings = &pay_processor_settings,
    .common = &pay_processor_settings.common,
    .metrics = pay_processor_metrics,
    .metric_count = PAY_PM_COUNT,
    .check = pay_processor_check,
    .run = pay_processor_run,
};

int main(int argc, char **argv)
{
    return pay_service_main(argc, argv, &desc);
}
