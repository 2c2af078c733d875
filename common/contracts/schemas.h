/* SPDX-License-Identifier: Apache-2.0 */
/** @file schemas.h @brief Internal: the schemas compiled in, current and history, written by
 * schema_embed at build time. */
#ifndef PAY_CONTRACTS_SCHEMAS_H
#define PAY_CONTRACTS_SCHEMAS_H

#include <stddef.h>
#include <stdint.h>

struct pay_schema_text {
    const char *record; /**< "PaymentInput" */
    int version;        /**< Of history; 0: the current one. */
    uint64_t fingerprint;
    const char *json; /**< NUL-terminated. */
    size_t len;
};

/** The current schema of a record stands before its history. */
extern const struct pay_schema_text pay_schema_texts[];
extern const size_t pay_schema_text_count;

#endif /* PAY_CONTRACTS_SCHEMAS_H */
