/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file send.h
 * @brief A signed command out of options: what is asked, built and signed, before Kafka gets it.
 *
 * Ownership: what is built is in the order's buffers until pay_send_free(); texts are borrowed from
 * the options. Nothing here prints or logs a secret.
 */
#ifndef PAY_CTL_SEND_H
#define PAY_CTL_SEND_H

#include <stddef.h>

#include "common/base/arena.h"
#include "common/base/ulid.h"
#include "common/contracts/command_record.h"
#include "common/crypto/ed25519.h"
#include "common/io/kafka/kafka_headers.h"
#include "tools/payfactctl/args.h"
#include "tools/payfactctl/ctl.h"

#define PAY_SEND_ARENA_BYTES_MAX ((size_t)1024 * 1024)

/** Options of all kinds of send; each kind's table fills those it has. */
struct pay_send_options {
    const char *caller, *key_id, *key_file, *merchant, *payment_id, *command_id, *traceparent;
    bool as_json;
    int64_t wait_s; /**< --wait-answer; 0: no. */
    const char *order_no;
    int64_t amount_minor;
    const char *currency, *capture, *description;
    int64_t expires_in_s; /**< 0: the merchant's own. */
    bool no_start, retry_until_expiry;
    struct pay_arg_list routes;
    struct pay_arg_list instruments;
    const char *return_url, *payer_id, *payer_ip;
    struct pay_arg_list extra;
    const char *attempt_id, *redirect_data, *reason;

    /* About what was given up; not on the command line of send. */
    const char *key; /**< Of the record of a command without payment. */
    const char *psp, *psp_account, *transport_key, *event_id, *case_id;
    int64_t case_version;

    /* Money and two people: orders.c. */
    const char *idempotency_key;
    bool is_partial; /**< CAPTURE: something is left to capture. */
    const char *aggregate_id, *from_status, *to_status, *provider_reference;
    int64_t expected_version; /**< 0: none, an order. */
    struct pay_arg_list attachments;
    const char *request_id, *request_sha256;
    const char *method;
};

/* clang-format off */
/** Rows of every command that is signed. */
#define PAY_SEND_SIGNER \
    {"--caller", PAY_ARG_TEXT, PAY_SEND_AT(caller), 0, 0, "ID", true, "principal of accounts.json that signs"}, \
    {"--key", PAY_ARG_TEXT, PAY_SEND_AT(key_id), 0, 0, "ID", true, "id of its key"}, \
    {"--key-file", PAY_ARG_TEXT, PAY_SEND_AT(key_file), 0, 0, "FILE", true, "its private key (PEM)"}, \
    {"--merchant", PAY_ARG_TEXT, PAY_SEND_AT(merchant), 0, 0, "ID", true, "merchant of the payment"}, \
    {"--command-id", PAY_ARG_TEXT, PAY_SEND_AT(command_id), 0, 0, "ID", false, \
     "the caller's idempotency key; by default a new one"}, \
    {"--traceparent", PAY_ARG_TEXT, PAY_SEND_AT(traceparent), 0, 0, "TEXT", false, "W3C trace context"}, \
    {"--wait-answer", PAY_ARG_INT, PAY_SEND_AT(wait_s), 0, 600, "S", false, \
     "wait so long for the decision, as PostgreSQL has it"}, \
    {"--json", PAY_ARG_FLAG, PAY_SEND_AT(as_json), 0, 0, NULL, false, "print JSON"}
#define PAY_SEND_AT(member_) offsetof(struct pay_send_options, member_)
/* clang-format on */

/** A command ready to go. */
struct pay_send_order {
    struct pay_arena *arena;
    char payment_id[PAY_ULID_LEN + 1]; /**< "": none. */
    const char *key;                   /**< Of the record. */
    char command_id[PAY_ULID_LEN + 1]; /**< Used when none was asked for. */
    struct pay_command command;
    struct pay_command_secrets secrets;
    struct pay_buf value;         /**< The record's bytes. */
    struct pay_buf secrets_value; /**< Empty: no header. Wiped by pay_send_free(). */
    uint8_t salt[PAY_COMMAND_SALT_BYTES];
    uint8_t digest[32];
    uint8_t signature[PAY_ED25519_SIGNATURE_BYTES];
};

/**
 * @brief Build and sign. @param now_us wall clock.
 * @return PAY_REJECT: the options do not make a command. PAY_FATAL: the key file.
 */
PAY_MUST_CHECK enum pay_status pay_send_build(enum pay_command_type type,
                                              const struct pay_send_options *options,
                                              int64_t now_us, struct pay_send_order *ret_order,
                                              struct pay_err *err);
/**
 * @brief Build, produce, wait for the answer where wait_s says so, and print.
 * @return the exit status; @p err is set unless it is PAY_CTL_OK.
 */
enum pay_ctl_exit pay_send(struct pay_ctl *ctl, enum pay_command_type type,
                           const struct pay_send_options *options, struct pay_err *err);
/** Wipes secrets. Copes with a half-built order. */
void pay_send_free(struct pay_send_order *order);
/** @brief The Kafka headers of a built order; borrowed from it and from @p key_id. */
PAY_MUST_CHECK bool pay_send_headers(const struct pay_send_order *order, const char *key_id,
                                     struct pay_kafka_headers *ret_headers);
/** @brief "psp/psp_account/method[:failover]". @return false for anything else. */
PAY_MUST_CHECK bool pay_send_route(const char *text, struct pay_route_choice *ret_route);

#endif /* PAY_CTL_SEND_H */
