/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file dead_letter.h
 * @brief A message that could not be processed, complete (topic dlq). Ownership, threads, failure:
 * codec.h.
 */
#ifndef PAY_CONTRACTS_DEAD_LETTER_H
#define PAY_CONTRACTS_DEAD_LETTER_H

#include "common/contracts/codec.h"
#include "common/contracts/sealed.h"

#define PAY_DEAD_LETTER_HEADERS_MAX 64
#define PAY_DEAD_LETTER_TEXT_MAX 512

/** The symbols of Avro DeadLetterReason in that order. */
enum pay_dead_reason {
    PAY_DEAD_MALFORMED,
    PAY_DEAD_SCHEMA_UNKNOWN,
    PAY_DEAD_TOO_LARGE,
    PAY_DEAD_SIGNATURE,
    PAY_DEAD_KEY_UNKNOWN,
    PAY_DEAD_KEY_MISMATCH,
    PAY_DEAD_UNKNOWN_ACCOUNT,
    PAY_DEAD_DATA_REFUSED,
    PAY_DEAD_GATE_MISSING,
    PAY_DEAD_ORPHAN_BUDGET,
    PAY_DEAD_OTHER,
    PAY_DEAD_REASON_COUNT
};

/** @return static symbol, never NULL. */
const char *pay_dead_reason_name(enum pay_dead_reason reason);
/** @return reason for a pay_err.code of this folder; OTHER for anything else. */
enum pay_dead_reason pay_dead_reason_of_code(int codec_code);

struct pay_dead_header {
    struct pay_str name;
    struct pay_bytes value; /**< Absent: null. Header payfact-secrets is left out by the maker. */
};

struct pay_dead_letter {
    struct pay_str dead_letter_id; /**< pay_dead_letter_id() */
    struct pay_str service;
    struct pay_str service_version;
    struct pay_str topic;
    int partition;
    int64_t offset;
    struct pay_bytes key; /**< Absent: null. */
    const struct pay_dead_header *headers;
    size_t header_count;
    struct pay_bytes value;         /**< Absent where it is sealed, or null. */
    struct pay_sealed sealed_value; /**< Where it may hold raw PSP data. */
    enum pay_dead_reason reason;
    struct pay_str text; /**< For people, no payload. */
    int64_t first_failed_at_us;
    int64_t last_failed_at_us;
    int tries;
    struct pay_str traceparent;
};

/** @brief "<topic>/<partition>/<offset>". @return absent at the arena's maximum. */
struct pay_str pay_dead_letter_id(struct pay_arena *arena, struct pay_str topic, int partition,
                                  int64_t offset);

PAY_MUST_CHECK enum pay_status pay_dead_letter_encode(struct pay_codec *codec,
                                                      const struct pay_dead_letter *record,
                                                      struct pay_buf *out, struct pay_err *err);
PAY_MUST_CHECK enum pay_status
pay_dead_letter_decode(struct pay_codec *codec, struct pay_bytes value, struct pay_arena *arena,
                       struct pay_dead_letter *ret_record, struct pay_err *err);

#endif /* PAY_CONTRACTS_DEAD_LETTER_H */
