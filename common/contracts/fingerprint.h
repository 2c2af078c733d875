/* SPDX-License-Identifier: Apache-2.0 */
/** @file fingerprint.h @brief Internal: Parsing Canonical Form and CRC-64-AVRO of a schema. Used at
 * build time by schema_embed and at run time for schemas that are learned. */
#ifndef PAY_CONTRACTS_FINGERPRINT_H
#define PAY_CONTRACTS_FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <avro.h>

#define PAY_CRC64_AVRO_EMPTY UINT64_C(0xc15d213aa4d7a795)

/** CRC-64-AVRO (Rabin) of bytes; start with PAY_CRC64_AVRO_EMPTY, chain by the former result. */
uint64_t pay_crc64_avro(uint64_t crc, const void *bytes, size_t len);
/** @return false for a schema nested deeper than 32. */
bool pay_schema_fingerprint(avro_schema_t schema, uint64_t *ret_fingerprint);

#endif /* PAY_CONTRACTS_FINGERPRINT_H */
