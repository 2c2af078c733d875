/* SPDX-License-Identifier: Apache-2.0 */
#include "services/publisher/publisher.h"
#include "services/publisher/settings.h"

#include "common/base/banned.h"

static const struct pay_service_desc desc = {
    .name = "payfact-publisher",
    .what =
        "Relays the outbox to Kafka: every fact and every PSP job, in the order of its payment.",
    .config = &pay_publisher_config,
    .settings = &pay_publisher_settings,
    .common = &pay_publisher_settings.common,
    .metrics = pay_publisher_metrics,
    .metric_count = PAY_PM_COUNT,
    .run = pay_publisher_run,
};

int main(int argc, char **argv)
{
    return pay_service_main(argc, argv, &desc);
}
