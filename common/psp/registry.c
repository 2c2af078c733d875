/* SPDX-License-Identifier: Apache-2.0 */
#include "common/psp/registry.h"

#include "common/base/assert.h"
#include "common/psp/stripe.h"

#include "common/base/banned.h"

/* One row a PSP. There is none without a signature: an adapter for tests would let anybody who
 * finds its path move any merchant's payment (S17). */
static const struct pay_psp_adapter *const adapters[] = {
    &pay_psp_stripe,
};

static const size_t adapter_count = sizeof adapters / sizeof adapters[0];

const struct pay_psp_adapter *pay_psp_find(struct pay_str name)
{
    for (size_t i = 0; i < adapter_count; i++) {
        if (pay_str_eq_c(name, adapters[i]->name)) {
            return adapters[i];
        }
    }
    return NULL;
}

size_t pay_psp_count(void)
{
    return adapter_count;
}

const struct pay_psp_adapter *pay_psp_at(size_t index)
{
    PAY_ASSERT(index < adapter_count);
    return adapters[index];
}
