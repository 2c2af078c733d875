/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/pause.h"

#include "common/base/banned.h"

#define SECOND_US INT64_C(1000000)

int64_t pay_pause_us(int64_t first_us, int tries)
{
    const int64_t least_us = pay_time_later(first_us, SECOND_US);
    const int64_t most_us = pay_time_later(least_us, PAY_PAUSE_MOST_US);
    int64_t pause_us = least_us;

    if (tries <= 0) {
        return 0;
    }
    for (int i = 1; i < tries && pause_us < most_us; i++) {
        pause_us *= 2;
    }
    return pay_time_earlier(pause_us, most_us);
}

int64_t pay_pause_unsent_until(const struct pay_psp_traits *traits, const struct pay_gate *latest,
                               const struct pay_gate_sum *gates)
{
    const int unsent = gates->made - gates->sent;
    return pay_time_after(latest->not_after_us, pay_pause_us(traits->query_first_us, unsent - 1));
}

/* The PSP's own time is a least one: followed alone, "in a second" would be repeated each second
 * for as long as the action lives. */
int64_t pay_pause_refused_us(const struct pay_psp_traits *traits, int said_s,
                             const struct pay_gate_sum *gates)
{
    const bool is_said = said_s > 0 || traits->action_retry_us <= 0;
    const int64_t first_us = is_said ? traits->query_first_us : traits->action_retry_us;
    const int64_t said_us = pay_time_earlier(said_s * SECOND_US, PAY_PAUSE_SAID_MOST_US);
    const int tries = gates->sent > 0 ? gates->sent : 1;

    return pay_time_later(said_us, pay_pause_us(first_us, tries));
}
