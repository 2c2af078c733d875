/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ingest/psp_clock.h"

#include "common/base/clock.h"

#include "common/base/banned.h"

void pay_psp_clock_init(struct pay_psp_clock *clock)
{
    const int64_t offset_us = pay_clock_wall_us() - pay_clock_mono_us();
    atomic_store(&clock->earliest_us, offset_us);
    atomic_store(&clock->latest_us, offset_us);
    atomic_store(&clock->is_known, false);
}

void pay_psp_clock_learn(struct pay_psp_clock *clock, int64_t database_us, int64_t began_mono_us)
{
    atomic_store(&clock->earliest_us, database_us - pay_clock_mono_us());
    atomic_store(&clock->latest_us, database_us - began_mono_us);
    atomic_store(&clock->is_known, true);
}

bool pay_psp_clock_known(struct pay_psp_clock *clock)
{
    return atomic_load(&clock->is_known);
}

int64_t pay_psp_clock_earliest_us(struct pay_psp_clock *clock)
{
    return pay_clock_mono_us() + atomic_load(&clock->earliest_us);
}

int64_t pay_psp_clock_latest_us(struct pay_psp_clock *clock)
{
    return pay_clock_mono_us() + atomic_load(&clock->latest_us);
}
