/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ingest/psp_clock.h"

#include "common/base/clock.h"

#include "common/base/banned.h"

#define TRUST_US INT64_C(1000000)

void pay_psp_clock_init(struct pay_psp_clock *clock)
{
    const int64_t offset_us = pay_clock_wall_us() - pay_clock_mono_us();
    atomic_store(&clock->earliest_us, offset_us);
    atomic_store(&clock->latest_us, offset_us);
    atomic_store(&clock->learned_mono_us, 0);
}

void pay_psp_clock_learn(struct pay_psp_clock *clock, int64_t database_us, int64_t began_mono_us)
{
    atomic_store(&clock->earliest_us, database_us - pay_clock_mono_us());
    atomic_store(&clock->latest_us, database_us - began_mono_us);
    atomic_store(&clock->learned_mono_us, began_mono_us);
}

bool pay_psp_clock_known(struct pay_psp_clock *clock)
{
    const int64_t learned_us = atomic_load(&clock->learned_mono_us);
    return learned_us != 0 && pay_clock_mono_us() - learned_us <= TRUST_US;
}

int64_t pay_psp_clock_earliest_us(struct pay_psp_clock *clock)
{
    return pay_clock_mono_us() + atomic_load(&clock->earliest_us);
}

int64_t pay_psp_clock_latest_us(struct pay_psp_clock *clock)
{
    return pay_clock_mono_us() + atomic_load(&clock->latest_us);
}
