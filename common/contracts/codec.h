/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file codec.h
 * @brief Bytes of a Kafka value to a C struct and back, for every record of schemas/avro.
 *
 * Each record has its own header with a struct and a typed pair pay_<record>_encode/_decode; this
 * one holds what they share. Encoding gives Avro single-object encoding: C3 01, the schema's
 * CRC-64-AVRO little endian, the body. Decoding finds the *writer's* schema by that fingerprint
 * among the versions compiled in (current and schemas/avro/history) and copies by field and symbol
 * name: a missing field gets our default, an unknown symbol our default symbol.
 *
 * Ownership: a codec owns its schemas and scratch memory; decoded text and arrays belong to the
 * arena given. Threads: a codec belongs to one thread at a time; make one per thread (one costs a
 * few milliseconds and about 1 MB).
 * Failure: PAY_REJECT with a code of enum pay_codec_code (the input or value can never work),
 * PAY_RETRY with PAY_CODEC_NO_MEMORY (the arena or the heap is full; not the input's fault).
 * Bounds: every record, string, array and nesting has a maximum, checked before memory is taken.
 * The struct given to a decoder is overwritten only on PAY_OK; a refused input may leave unused
 * bytes in the arena until its reset, never more than a small multiple of the input.
 */
#ifndef PAY_CONTRACTS_CODEC_H
#define PAY_CONTRACTS_CODEC_H

#include "common/base/arena.h"
#include "common/base/buf.h"
#include "common/base/err.h"

enum pay_record {
    PAY_RECORD_RAW_NOTIFICATION,
    PAY_RECORD_COMMAND,
    PAY_RECORD_COMMAND_SECRETS,
    PAY_RECORD_PAYMENT_INPUT,
    PAY_RECORD_PSP_JOB,
    PAY_RECORD_PAYMENT_EVENT,
    PAY_RECORD_DEAD_LETTER,
    PAY_RECORD_COUNT
};

/** Maximum bytes of a value, framing included. Encoders refuse to make more, decoders to read more.
 */
#define PAY_RAW_NOTIFICATION_BYTES_MAX ((size_t)320 * 1024)
#define PAY_COMMAND_BYTES_MAX ((size_t)64 * 1024)
#define PAY_COMMAND_SECRETS_BYTES_MAX ((size_t)64 * 1024)
#define PAY_PAYMENT_INPUT_BYTES_MAX ((size_t)1024 * 1024)
#define PAY_PSP_JOB_BYTES_MAX ((size_t)64 * 1024)
#define PAY_PAYMENT_EVENT_BYTES_MAX ((size_t)64 * 1024)
#define PAY_DEAD_LETTER_BYTES_MAX ((size_t)1280 * 1024)

#define PAY_CODEC_FRAME_BYTES 10 /**< C3 01 + fingerprint. */

/** pay_err.code of a PAY_REJECT or PAY_RETRY from this folder; the reason of a dead letter follows
 * from it (pay_dead_reason_of_code() in dead_letter.h). */
enum pay_codec_code {
    PAY_CODEC_NONE,
    PAY_CODEC_MALFORMED, /**< Not what the writer's schema says, or content out of its rules. */
    PAY_CODEC_SCHEMA_UNKNOWN, /**< No known writer schema: replayable once it is known. */
    PAY_CODEC_TOO_LARGE,      /**< A string, array or the whole value is above its maximum. */
    PAY_CODEC_NO_MEMORY,      /**< With PAY_RETRY: the arena's or heap's end. */
    PAY_CODEC_CODE_COUNT
};

/** @return static "MALFORMED", "SCHEMA_UNKNOWN" ..., never NULL. */
const char *pay_codec_code_name(enum pay_codec_code code);
/** @return static name such as "PaymentInput"; never NULL. */
const char *pay_record_name(enum pay_record record);
/** @return the maximum bytes of its value. */
size_t pay_record_bytes_max(enum pay_record record);

struct pay_codec;

/** @return PAY_FATAL when memory is out or a compiled-in schema does not fit its struct. */
PAY_MUST_CHECK enum pay_status pay_codec_new(struct pay_codec **ret_codec, struct pay_err *err);
/** @return always NULL; copes with NULL. */
struct pay_codec *pay_codec_free(struct pay_codec *codec);

/**
 * @brief Write @p record by an older version from now on: a release writes the previous release's
 * schema until every reader is new (setting schema_write).
 * @param version as in schemas/avro/history/<Record>/<version>.avsc; 0: the current one.
 * @return PAY_REJECT when there is no such version.
 */
PAY_MUST_CHECK enum pay_status pay_codec_write_version(struct pay_codec *codec,
                                                       enum pay_record record, int version,
                                                       struct pay_err *err);

/**
 * @brief Know one more writer schema of @p record, e.g. one that a schema registry returned.
 * @param schema_json borrowed; at most PAY_CODEC_SCHEMA_BYTES_MAX.
 * @param ret_fingerprint its CRC-64-AVRO.
 * @return PAY_REJECT when it is no schema, is of another record, or data of it cannot be read into
 * our struct; also at the maximum number of schemas. Learning a known one again is PAY_OK.
 */
PAY_MUST_CHECK enum pay_status pay_codec_learn(struct pay_codec *codec, enum pay_record record,
                                               struct pay_str schema_json,
                                               uint64_t *ret_fingerprint, struct pay_err *err);
#define PAY_CODEC_SCHEMA_BYTES_MAX ((size_t)64 * 1024)
#define PAY_CODEC_WRITERS_MAX 64 /**< Per record. */

/**
 * Confluent framing (00 + 4-byte schema id, big endian) names its schema by a registry's id. The
 * finder turns an id into a fingerprint the codec knows; it may call pay_codec_learn(). Without a
 * finder, or where it answers false, such a value is SCHEMA_UNKNOWN.
 */
typedef bool (*pay_codec_find_schema)(void *arg, enum pay_record record, uint32_t schema_id,
                                      uint64_t *ret_fingerprint);
/** @param arg borrowed until the codec is freed. @param find NULL: none. */
void pay_codec_on_schema_id(struct pay_codec *codec, pay_codec_find_schema find, void *arg);

/** @return fingerprint of the schema that @p record is written with. */
uint64_t pay_codec_fingerprint(const struct pay_codec *codec, enum pay_record record);
/**
 * @brief The writer's fingerprint of a framed value.
 * @return PAY_REJECT: MALFORMED when there is no framing, SCHEMA_UNKNOWN for an unknown registry
 * id. A fingerprint that is returned may still be unknown to the decoder.
 */
PAY_MUST_CHECK enum pay_status
pay_codec_fingerprint_of(const struct pay_codec *codec, enum pay_record record,
                         struct pay_bytes value, uint64_t *ret_fingerprint, struct pay_err *err);
/** 8 bytes little endian, as in single-object encoding and in SignedCommand.writer_fingerprint. */
void pay_fingerprint_put(uint8_t dst[8], uint64_t fingerprint);
/** @return false unless @p bytes has exactly 8 bytes. */
bool pay_fingerprint_get(struct pay_bytes bytes, uint64_t *ret_fingerprint);

#endif /* PAY_CONTRACTS_CODEC_H */
