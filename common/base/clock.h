/* SPDX-License-Identifier: Apache-2.0 */
/** @file clock.h @brief The clocks. Only services and io read them; the core gets time as an
 * argument. */
#ifndef PAY_BASE_CLOCK_H
#define PAY_BASE_CLOCK_H

#include <stdint.h>

/** Microseconds since 1970 UTC. May jump. */
int64_t pay_clock_wall_us(void);
/** Microseconds of a clock that only goes forward. */
int64_t pay_clock_mono_us(void);
/** "2026-11-30T12:00:00.123456Z"; @p dst has 28 bytes. */
void pay_clock_format(int64_t wall_us, char dst[28]);

#endif /* PAY_BASE_CLOCK_H */
