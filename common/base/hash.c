/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/hash.h"

#include "common/base/assert.h"

#include "common/base/banned.h"

#define FNV_PRIME UINT64_C(1099511628211)
#define MURMUR_SEED UINT32_C(0x9747b28c)
#define MURMUR_M UINT32_C(0x5bd1e995)

uint64_t pay_hash_fnv1a(uint64_t seed, struct pay_bytes bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        seed = (seed ^ bytes.ptr[i]) * FNV_PRIME;
    }
    return seed;
}

static uint32_t word_at(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* org.apache.kafka.common.utils.Utils.murmur2; an int there is a uint32_t here. */
static uint32_t murmur2(struct pay_bytes key)
{
    uint32_t h = MURMUR_SEED ^ (uint32_t)key.len;
    const size_t whole = key.len / 4 * 4;

    for (size_t i = 0; i < whole; i += 4) {
        uint32_t k = word_at(key.ptr + i) * MURMUR_M;
        k = (k ^ k >> 24) * MURMUR_M;
        h = h * MURMUR_M ^ k;
    }
    if (key.len > whole) {
        for (size_t i = key.len; i > whole; i--) {
            h ^= (uint32_t)key.ptr[i - 1] << 8 * (i - 1 - whole);
        }
        h *= MURMUR_M;
    }
    h = (h ^ h >> 13) * MURMUR_M;
    return h ^ h >> 15;
}

uint32_t pay_hash_murmur2_positive(struct pay_bytes key)
{
    return murmur2(key) & UINT32_C(0x7fffffff);
}

uint32_t pay_hash_partition(struct pay_str key, uint32_t partitions)
{
    PAY_ASSERT(partitions > 0);
    return pay_hash_murmur2_positive((struct pay_bytes){(const uint8_t *)key.ptr, key.len}) %
           partitions;
}
