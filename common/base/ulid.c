/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/ulid.h"

#include "common/base/clock.h"
#include "common/base/mem.h"

#include <string.h>

#include "common/base/banned.h"

static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

void pay_ulid_new(char dst[PAY_ULID_LEN + 1])
{
    uint8_t bits[16]; /* 48 bits of milliseconds, 80 of chance, most significant first. */
    const uint64_t ms = (uint64_t)(pay_clock_wall_us() / 1000);

    for (int i = 0; i < 6; i++) {
        bits[i] = (uint8_t)(ms >> 8 * (5 - i));
    }
    pay_mem_random(bits + 6, sizeof bits - 6);

    /* 26 characters hold 130 bits: the first one has only three of its own. */
    for (int i = 0; i < PAY_ULID_LEN; i++) {
        unsigned value = 0;
        for (int bit = i * 5 - 2; bit < i * 5 + 3; bit++) {
            value = value << 1 | (bit < 0 ? 0u : (unsigned)bits[bit / 8] >> (7 - bit % 8) & 1u);
        }
        dst[i] = alphabet[value];
    }
    dst[PAY_ULID_LEN] = 0;
}

bool pay_ulid_valid(struct pay_str text)
{
    if (text.len != PAY_ULID_LEN || text.ptr[0] > '7') {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == 0 || strchr(alphabet, text.ptr[i]) == NULL) {
            return false;
        }
    }
    return true;
}
