/* SPDX-License-Identifier: Apache-2.0 */
#include "common/service/broker.h"

#include "common/base/clock.h"
#include "common/base/log.h"

#include "common/base/banned.h"

void pay_broker_shown(struct pay_broker *broker)
{
    atomic_store(&broker->shown_us, pay_clock_mono_us());
    atomic_store(&broker->ok, true);
}

void pay_broker_failed(struct pay_broker *broker)
{
    atomic_store(&broker->shown_us, 0);
    atomic_store(&broker->ok, false);
}

static void tell(struct pay_broker *broker, enum pay_status status, const struct pay_err *err)
{
    if (status != PAY_OK && !broker->is_told) {
        pay_log(PAY_LOG_WARN, "kafka_away", PAY_F_ERR(err));
    } else if (status == PAY_OK && broker->is_told) {
        pay_log(PAY_LOG_INFO, "kafka_answers", PAY_F_INT("asked_ms", PAY_BROKER_ASK_MS));
    }
    broker->is_told = status != PAY_OK;
}

void pay_broker_look(struct pay_broker *broker, pay_broker_ask_fn *ask, void *ctx)
{
    struct pay_err err = {.status = PAY_OK};
    const int64_t shown_us = atomic_load(&broker->shown_us);
    if (shown_us != 0 && pay_clock_mono_us() - shown_us < PAY_BROKER_QUIET_MS * INT64_C(1000)) {
        if (atomic_load(&broker->ok)) {
            tell(broker, PAY_OK, NULL);
        }
        return;
    }
    const enum pay_status status = ask(ctx, PAY_BROKER_ASK_MS, &err);
    /* What was shown while we asked is newer than what we heard. */
    if (status == PAY_OK || atomic_load(&broker->shown_us) == shown_us) {
        atomic_store(&broker->shown_us, pay_clock_mono_us());
        atomic_store(&broker->ok, status == PAY_OK);
        tell(broker, status, &err);
    }
}

bool pay_broker_ok(const struct pay_broker *broker)
{
    return atomic_load(&broker->ok);
}
