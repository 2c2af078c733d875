/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/not_found.h"

#include "common/core/turn.h"

#include "common/base/banned.h"

int64_t pay_not_found_from(const struct pay_psp_traits *traits, int64_t last_send_us)
{
    const int64_t executed_us = pay_time_after(last_send_us, traits->call_budget_us);

    return pay_time_after(pay_time_after(executed_us, traits->longest_processing_us),
                          traits->visibility_grace_us);
}

struct pay_not_found_ruling pay_not_found_rule(const struct pay_psp_traits *traits,
                                               struct pay_not_found_row row, int64_t from_us,
                                               bool is_late_enough)
{
    const bool goes_on = row.count > 0 && row.first_asked_us > from_us;
    const int count = goes_on ? row.count + 1 : 1;

    return (struct pay_not_found_ruling){
        .counts = is_late_enough,
        .restarts = is_late_enough && !goes_on,
        .is_enough = is_late_enough && count >= traits->not_founds_needed,
    };
}

struct pay_not_found_row pay_not_found_next(struct pay_not_found_row row, bool restarts,
                                            int64_t asked_at_us)
{
    return restarts ? (struct pay_not_found_row){1, asked_at_us}
                    : (struct pay_not_found_row){row.count + 1, row.first_asked_us};
}
