/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/dead_letter.h"

#include "common/contracts/binding.h"
#include "common/contracts/codec_internal.h"
#include "common/contracts/limits.h"

#include <inttypes.h>

#include "common/base/banned.h"

const char *pay_dead_reason_name(enum pay_dead_reason reason)
{
    static const char *const names[PAY_DEAD_REASON_COUNT] = {
        [PAY_DEAD_MALFORMED] = "MALFORMED",
        [PAY_DEAD_SCHEMA_UNKNOWN] = "SCHEMA_UNKNOWN",
        [PAY_DEAD_TOO_LARGE] = "TOO_LARGE",
        [PAY_DEAD_SIGNATURE] = "SIGNATURE",
        [PAY_DEAD_KEY_UNKNOWN] = "KEY_UNKNOWN",
        [PAY_DEAD_KEY_MISMATCH] = "KEY_MISMATCH",
        [PAY_DEAD_UNKNOWN_ACCOUNT] = "UNKNOWN_ACCOUNT",
        [PAY_DEAD_DATA_REFUSED] = "DATA_REFUSED",
        [PAY_DEAD_GATE_MISSING] = "GATE_MISSING",
        [PAY_DEAD_ORPHAN_BUDGET] = "ORPHAN_BUDGET",
        [PAY_DEAD_OTHER] = "OTHER",
    };
    return (unsigned)reason < PAY_DEAD_REASON_COUNT ? names[reason] : "?";
}

enum pay_dead_reason pay_dead_reason_of_code(int codec_code)
{
    static const enum pay_dead_reason reasons[PAY_CODEC_CODE_COUNT] = {
        [PAY_CODEC_NONE] = PAY_DEAD_OTHER,
        [PAY_CODEC_MALFORMED] = PAY_DEAD_MALFORMED,
        [PAY_CODEC_SCHEMA_UNKNOWN] = PAY_DEAD_SCHEMA_UNKNOWN,
        [PAY_CODEC_TOO_LARGE] = PAY_DEAD_TOO_LARGE,
        [PAY_CODEC_NO_MEMORY] = PAY_DEAD_OTHER,
    };
    return codec_code >= 0 && codec_code < PAY_CODEC_CODE_COUNT ? reasons[codec_code]
                                                                : PAY_DEAD_OTHER;
}

struct pay_str pay_dead_letter_id(struct pay_arena *arena, struct pay_str topic, int partition,
                                  int64_t offset)
{
    return pay_arena_printf(arena, "%.*s/%d/%" PRId64, (int)topic.len, topic.ptr, partition,
                            offset);
}

static const struct pay_bind header[] = {
    PAY_TEXT("name", struct pay_dead_header, name, 0, PAY_MAX_HEADER_NAME),
    PAY_BYTES("value", struct pay_dead_header, value, 0, PAY_MAX_DEAD_HEADER, PAY_OPTIONAL),
};
static const struct pay_bind_record bind_header = {header, PAY_FIELD_COUNT(header)};

static const struct pay_bind item_header = {
    .name = "(header)", .kind = PAY_BIND_RECORD, .record = &bind_header};

static const struct pay_bind fields[] = {
    PAY_TEXT("dead_letter_id", struct pay_dead_letter, dead_letter_id, 1, 300),
    PAY_TEXT("service", struct pay_dead_letter, service, 1, PAY_MAX_CODE),
    PAY_TEXT("service_version", struct pay_dead_letter, service_version, 0, PAY_MAX_CODE),
    PAY_TEXT("topic", struct pay_dead_letter, topic, 1, 249),
    PAY_INT("partition", struct pay_dead_letter, partition, 0, INT32_MAX),
    PAY_LONG("offset", struct pay_dead_letter, offset, 0, INT64_MAX),
    PAY_BYTES("key", struct pay_dead_letter, key, 0, PAY_MAX_DEAD_HEADER, PAY_OPTIONAL),
    PAY_LIST("headers", struct pay_dead_letter, headers, header_count, struct pay_dead_header,
             &item_header, PAY_DEAD_LETTER_HEADERS_MAX),
    PAY_BYTES("value", struct pay_dead_letter, value, 0, PAY_PAYMENT_INPUT_BYTES_MAX, PAY_OPTIONAL),
    PAY_PART("sealed_value", struct pay_dead_letter, sealed_value, &pay_bind_sealed,
             PAY_IF_PTR(struct pay_dead_letter, sealed_value.ciphertext.ptr)),
    PAY_ENUM("reason_code", struct pay_dead_letter, reason, PAY_DEAD_OTHER),
    PAY_TEXT("text", struct pay_dead_letter, text, 0, PAY_DEAD_LETTER_TEXT_MAX),
    PAY_TIME("first_failed_at", struct pay_dead_letter, first_failed_at_us),
    PAY_TIME("last_failed_at", struct pay_dead_letter, last_failed_at_us),
    PAY_INT("tries", struct pay_dead_letter, tries, 0, INT32_MAX),
    PAY_TRACEPARENT(struct pay_dead_letter),
};
const struct pay_bind_record pay_bind_dead_letter = {fields, PAY_FIELD_COUNT(fields)};

enum pay_status pay_dead_letter_encode(struct pay_codec *codec,
                                       const struct pay_dead_letter *record, struct pay_buf *out,
                                       struct pay_err *err)
{
    return pay_codec_encode(codec, PAY_RECORD_DEAD_LETTER, record, out, err);
}

enum pay_status pay_dead_letter_decode(struct pay_codec *codec, struct pay_bytes value,
                                       struct pay_arena *arena, struct pay_dead_letter *ret_record,
                                       struct pay_err *err)
{
    struct pay_dead_letter record = {0};
    const enum pay_status status =
        pay_codec_decode(codec, PAY_RECORD_DEAD_LETTER, value, arena, &record, err);

    if (status == PAY_OK) {
        *ret_record = record;
    }
    return status;
}
