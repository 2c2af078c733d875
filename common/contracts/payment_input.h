/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file payment_input.h
 * @brief The only thing that the processor consumes (topic inputs).
 *
 * Exactly one of the parts is set, the one that @c kind names (COMMAND and REJECTED_COMMAND:
 * command); encoder and decoder refuse anything else. A kind that this version does not know is
 * PAY_INPUT_UNRECOGNIZED. Ownership, threads, failure: codec.h.
 */
#ifndef PAY_CONTRACTS_PAYMENT_INPUT_H
#define PAY_CONTRACTS_PAYMENT_INPUT_H

#include "common/contracts/codec.h"
#include "common/contracts/sealed.h"
#include "common/core/event.h"

#define PAY_TRANSPORT_KEY_MAX 200
#define PAY_BUSINESS_KEY_MAX 700

/** The symbols of Avro InputKind in that order. */
enum pay_wire_kind {
    PAY_WIRE_PSP_EVENT,
    PAY_WIRE_COMMAND,
    PAY_WIRE_REJECTED_COMMAND,
    PAY_WIRE_DEADLINE,
    PAY_WIRE_REPLAY,
    PAY_WIRE_REFUSED_NOTIFICATION,
    PAY_WIRE_UNRECOGNIZED,
    PAY_WIRE_KIND_COUNT
};

/** @return static symbol such as "PSP_EVENT", never NULL. */
const char *pay_wire_kind_name(enum pay_wire_kind kind);

/** A statement line that settles a capture, refund or automatic capture. */
struct pay_settlement {
    bool is_set;
    int64_t gross_minor; /**< Signed: refunds and withdrawals are negative. */
    int64_t fee_minor;   /**< What the PSP kept. */
    int64_t net_minor;
    char currency[PAY_CURRENCY_SIZE];
    int settled_on_days;  /**< Days since 1970-01-01. */
    struct pay_str batch; /**< Absent: not said. */
};

/** A command as it was signed. */
struct pay_signed_command {
    struct pay_bytes value;     /**< The Kafka value of topic commands, exactly. */
    struct pay_bytes signature; /**< 64 bytes in a COMMAND; as received otherwise. */
    struct pay_str key_id;
    struct pay_bytes writer_fingerprint; /**< 8 bytes: see pay_command_decode_signed(). */
    const struct pay_sealed *params;     /**< One per route, in the command's order. */
    size_t param_count;
    struct pay_sealed redirect_data; /**< Absent: none. */
    struct pay_str refusal;          /**< REJECTED_COMMAND: why; absent otherwise. */
};

struct pay_wire_deadline {
    struct pay_str kind; /**< pay_deadline_kind_name(); text, so that a newer kind survives. */
    struct pay_str aggregate_id;
    int64_t due_at_us; /**< Database clock: when it was due. */
};

struct pay_wire_replay {
    struct pay_str psp;
    struct pay_str psp_account;
    struct pay_str transport_key;
};

struct pay_wire_refused {
    struct pay_str psp;
    struct pay_str psp_account;
    struct pay_str reason_code; /**< SIGNATURE, TIME_WINDOW, FORMAT, UNKNOWN_ACCOUNT. */
};

/** The raw bytes, sealed by ingest. Absent: ciphertext.ptr is NULL. */
struct pay_sealed_evidence {
    struct pay_bytes ciphertext; /**< Additional data "<psp>/<psp_account>/<transport_key>". */
    struct pay_str key_id;
    struct pay_bytes sha256;    /**< 32 bytes: digest of the raw body. */
    struct pay_str verified_by; /**< Id of secret or certificate, "tls", "none". */
};

struct pay_payment_input {
    struct pay_str input_id; /**< ULID, for tracing; never a dedupe key. */
    enum pay_wire_kind kind;
    enum pay_source source;
    enum pay_evidence evidence_level; /**< Informative: the processor derives its own.
                                         PAY_EVIDENCE_COUNT: unrecognized. */
    struct pay_str payment_id;        /**< Absent: to be found through attempt_reference. */
    struct pay_event event;           /**< PSP_EVENT */
    struct pay_settlement settlement; /**< PSP_EVENT, a statement line that settles. */
    struct pay_signed_command command;
    struct pay_wire_deadline deadline;
    struct pay_wire_replay replay;
    struct pay_wire_refused refused;
    struct pay_str transport_key; /**< Absent for commands and replays. */
    struct pay_str business_key;  /**< PSP_EVENT */
    int64_t occurred_at_us;       /**< The PSP's word; 0: absent. */
    int64_t received_at_us;
    struct pay_sealed_evidence evidence;
    struct pay_str traceparent;
};

PAY_MUST_CHECK enum pay_status pay_payment_input_encode(struct pay_codec *codec,
                                                        const struct pay_payment_input *record,
                                                        struct pay_buf *out, struct pay_err *err);
PAY_MUST_CHECK enum pay_status
pay_payment_input_decode(struct pay_codec *codec, struct pay_bytes value, struct pay_arena *arena,
                         struct pay_payment_input *ret_record, struct pay_err *err);
/**
 * @brief As channel_event keeps it in column normalized: without the customer's action (it may hold
 * a secret) and without the sealed evidence, which has columns of its own.
 */
PAY_MUST_CHECK enum pay_status
pay_payment_input_encode_stored(struct pay_codec *codec, const struct pay_payment_input *record,
                                struct pay_buf *out, struct pay_err *err);

#endif /* PAY_CONTRACTS_PAYMENT_INPUT_H */
