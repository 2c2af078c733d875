/* SPDX-License-Identifier: Apache-2.0 */
#include "common/service/backoff.h"

#include "common/base/assert.h"

#include "common/base/banned.h"

int64_t pay_backoff_ms(const struct pay_backoff *backoff, unsigned tries, uint64_t random)
{
    PAY_ASSERT(backoff->first_ms > 0 && backoff->max_ms >= backoff->first_ms);

    int64_t wait_ms = backoff->first_ms;
    for (unsigned i = 0; i < tries && wait_ms < backoff->max_ms; i++) {
        wait_ms = wait_ms > backoff->max_ms / 2 ? backoff->max_ms : wait_ms * 2;
    }
    const int64_t half_ms = wait_ms / 2;
    return half_ms + (int64_t)(random % (uint64_t)(wait_ms - half_ms + 1));
}
