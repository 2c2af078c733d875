/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/released.h"

#include "common/base/assert.h"
#include "common/contracts/schemas.h"

#include <string.h>

#include "common/base/banned.h"

static bool has(const struct pay_released *released, size_t count, uint64_t fingerprint)
{
    for (size_t i = 0; i < count; i++) {
        if (released[i].fingerprint == fingerprint) {
            return true;
        }
    }
    return false;
}

/* The table has the current text before its history; what history repeats of it is left out. */
size_t pay_released(enum pay_record record, struct pay_released *ret_released)
{
    struct pay_released current = {.version = 0};
    size_t count = 0;
    for (size_t i = 0; i < pay_schema_text_count; i++) {
        const struct pay_schema_text *text = &pay_schema_texts[i];
        const struct pay_released one = {text->version, text->fingerprint, {text->json, text->len}};
        if (strcmp(text->record, pay_record_name(record)) != 0) {
            continue;
        }
        if (current.json.ptr == NULL) {
            current = one;
        } else if (one.fingerprint != current.fingerprint &&
                   !has(ret_released, count, one.fingerprint)) {
            PAY_ASSERT(count + 1 < PAY_RELEASED_MAX);
            ret_released[count++] = one;
        }
    }
    ret_released[count++] = current;
    return count;
}

bool pay_released_has(enum pay_record record, uint64_t fingerprint)
{
    struct pay_released released[PAY_RELEASED_MAX];
    const size_t count = pay_released(record, released);
    return has(released, count, fingerprint);
}
