/* SPDX-License-Identifier: Apache-2.0 */
/** @file hash.h @brief Hashes without a key: placement and short ids, never security. */
#ifndef PAY_BASE_HASH_H
#define PAY_BASE_HASH_H

#include "common/base/str.h"

/** FNV-1a, 64 bits. Chain by passing the former result as @p seed; start with PAY_FNV_START. */
#define PAY_FNV_START UINT64_C(14695981039346656037)
uint64_t pay_hash_fnv1a(uint64_t seed, struct pay_bytes bytes);

/** Kafka's Java client's murmur2 of a key, made positive; partition = result % partitions. */
uint32_t pay_hash_murmur2_positive(struct pay_bytes key);
/** The partition that murmur2_random (and a Java client) gives to @p key. */
uint32_t pay_hash_partition(struct pay_str key, uint32_t partitions);

#endif /* PAY_BASE_HASH_H */
