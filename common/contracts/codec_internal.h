/* SPDX-License-Identifier: Apache-2.0 */
/** @file codec_internal.h @brief Internal: the untyped pair beneath every record's functions. */
#ifndef PAY_CONTRACTS_CODEC_INTERNAL_H
#define PAY_CONTRACTS_CODEC_INTERNAL_H

#include "common/contracts/codec.h"

/** @param from the record's struct. Appended to @p out; nothing is on failure. */
PAY_MUST_CHECK enum pay_status pay_codec_encode(struct pay_codec *codec, enum pay_record record,
                                                const void *from, struct pay_buf *out,
                                                struct pay_err *err);
/** @param into the record's struct, zeroed by the caller; undefined unless PAY_OK. */
PAY_MUST_CHECK enum pay_status pay_codec_decode(struct pay_codec *codec, enum pay_record record,
                                                struct pay_bytes value, struct pay_arena *arena,
                                                void *into, struct pay_err *err);
/** For a Command where the fingerprint is known by another way than the value's framing, which may
 * be either. */
PAY_MUST_CHECK enum pay_status
pay_codec_decode_command_as(struct pay_codec *codec, uint64_t fingerprint, struct pay_bytes value,
                            struct pay_arena *arena, void *into, struct pay_err *err);
/** PAY_REJECT with @p code about the decoding of @p record. */
enum pay_status pay_codec_refuse(enum pay_record record, enum pay_codec_code code, const char *why,
                                 struct pay_err *err);

#endif /* PAY_CONTRACTS_CODEC_INTERNAL_H */
