/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file released.h
 * @brief The schemas that this release knows by itself, as text: what is told to a schema registry.
 *
 * Ownership: texts are static. Threads: any. Failure: PAY_REJECT for a text that is no schema.
 */
#ifndef PAY_CONTRACTS_RELEASED_H
#define PAY_CONTRACTS_RELEASED_H

#include "common/contracts/codec.h"

#define PAY_RELEASED_MAX 64 /**< Versions of one record. */

struct pay_released {
    int version; /**< Of schemas/avro/history; 0: the current file. */
    uint64_t fingerprint;
    struct pay_str json;
};

/**
 * @brief The distinct schemas of @p record, oldest first, the current one last.
 * @param ret_released room for PAY_RELEASED_MAX.
 * @return how many, at least 1.
 */
size_t pay_released(enum pay_record record, struct pay_released *ret_released);
/** @return false: this release does not know a schema of @p record with that fingerprint. */
PAY_MUST_CHECK bool pay_released_has(enum pay_record record, uint64_t fingerprint);
/**
 * @brief The fingerprint of any text that is a schema of @p record. Does not say that it can be
 * read: see pay_codec_learn().
 * @return PAY_REJECT with a code of enum pay_codec_code.
 */
PAY_MUST_CHECK enum pay_status pay_schema_text_fingerprint(enum pay_record record,
                                                           struct pay_str schema_json,
                                                           uint64_t *ret_fingerprint,
                                                           struct pay_err *err);

#endif /* PAY_CONTRACTS_RELEASED_H */
