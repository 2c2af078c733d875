/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file command_record.h
 * @brief An order to payfact (topic commands) and the secrets that travel beside it.
 *
 * The signature covers PAY_COMMAND_SIGNATURE_PREFIX (its terminator included) and then exactly the
 * bytes of the Kafka value, framing included. Ownership, threads, failure: codec.h.
 *
 * Of the type's bodies in struct pay_command the encoder writes the one that @c type names and
 * ignores the rest. The decoder refuses (MALFORMED) a command whose set bodies are not exactly that
 * one; a type that this version does not know is PAY_CMD_UNRECOGNIZED with no body.
 */
#ifndef PAY_CONTRACTS_COMMAND_RECORD_H
#define PAY_CONTRACTS_COMMAND_RECORD_H

#include "common/contracts/codec.h"
#include "common/core/command.h"

/** 16 bytes: 15 characters and the NUL that ends them. */
#define PAY_COMMAND_SIGNATURE_PREFIX "payfact-command"
#define PAY_COMMAND_SIGNATURE_PREFIX_BYTES sizeof(PAY_COMMAND_SIGNATURE_PREFIX)
#define PAY_COMMAND_SIGNATURE_BYTES 64 /**< Ed25519 */
#define PAY_COMMAND_EXTRA_MAX 32       /**< Entries of extra. */
#define PAY_COMMAND_SALT_BYTES 16

struct pay_extra_param {
    struct pay_str name;
    struct pay_str value;
};

/** What the PSP needs to be asked on one route. Secret: never logged, sealed by the relay. */
struct pay_submit_params {
    struct pay_str instrument;
    struct pay_str payer_id;
    struct pay_str payer_ip;
    struct pay_str return_url;
    const struct pay_extra_param *extra; /**< Names are unique. */
    size_t extra_count;
};

/** Header payfact-secrets. */
struct pay_command_secrets {
    struct pay_bytes salt;                  /**< 16 bytes. */
    const struct pay_submit_params *params; /**< One per route of the command, in its order. */
    size_t param_count;                     /**< PAY_ROUTES_MAX at most. */
    struct pay_bytes redirect_data;         /**< CONTINUE_ATTEMPT; absent: none. */
};

PAY_MUST_CHECK enum pay_status pay_command_encode(struct pay_codec *codec,
                                                  const struct pay_command *record,
                                                  struct pay_buf *out, struct pay_err *err);
PAY_MUST_CHECK enum pay_status pay_command_decode(struct pay_codec *codec, struct pay_bytes value,
                                                  struct pay_arena *arena,
                                                  struct pay_command *ret_record,
                                                  struct pay_err *err);
/**
 * @brief For the processor, which has no registry: decode the value of a SignedCommand, in either
 * framing, by the writer's fingerprint that the relay found.
 * @param fingerprint 8 bytes: pay_signed_command.writer_fingerprint.
 * @return also PAY_REJECT MALFORMED when single-object framing names another schema.
 */
PAY_MUST_CHECK enum pay_status
pay_command_decode_signed(struct pay_codec *codec, struct pay_bytes value,
                          struct pay_bytes fingerprint, struct pay_arena *arena,
                          struct pay_command *ret_record, struct pay_err *err);

PAY_MUST_CHECK enum pay_status pay_command_secrets_encode(struct pay_codec *codec,
                                                          const struct pay_command_secrets *record,
                                                          struct pay_buf *out, struct pay_err *err);
PAY_MUST_CHECK enum pay_status
pay_command_secrets_decode(struct pay_codec *codec, struct pay_bytes value, struct pay_arena *arena,
                           struct pay_command_secrets *ret_record, struct pay_err *err);
/**
 * @brief What the relay seals for one route: a CommandSecrets with only that route's params and the
 * same salt; ingest/psp opens it with pay_command_secrets_decode().
 */
PAY_MUST_CHECK enum pay_status pay_submit_params_encode(struct pay_codec *codec,
                                                        const struct pay_command_secrets *secrets,
                                                        size_t route_index, struct pay_buf *out,
                                                        struct pay_err *err);

#endif /* PAY_CONTRACTS_COMMAND_RECORD_H */
