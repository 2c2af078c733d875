/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command on its way in. Three ends:
 *   junk (unsigned)                                    -> a metric
 *   not readable, unknown key, bad signature, key≠body -> the dead letters
 *   by a known key, but not allowed or inconsistent    -> REJECTED_COMMAND: audited and answered
 */
#include "services/ingest/relay.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/ulid.h"
#include "common/contracts/command_record.h"
#include "common/contracts/headers.h"
#include "common/crypto/hmac.h"
#include "common/crypto/sha256.h"

#include "common/base/banned.h"

#define PART_BYTES_MAX ((size_t)128 * 1024)

/** A command as it is being looked at. */
struct order {
    const struct pay_kafka_msg *msg;
    struct pay_command command;
    const struct pay_principal *principal;
    struct pay_str key_id;
    struct pay_bytes signature;
    struct pay_bytes secrets; /* Header payfact-secrets; absent: none. */
    struct pay_sealed *params;
    size_t param_count;
    struct pay_sealed redirect;
};

static void count(struct pay_relay_desk *desk, const char *outcome, const char *reason)
{
    pay_metric_add(desk->desk.ingest->metrics[PAY_IM_COMMANDS],
                   (const char *const[]){outcome, reason}, 1);
}

/* The prefix keeps a signature of anything else from being one of a command. */
static bool signature_holds(const struct order *order, const struct pay_ed25519_public *key)
{
    struct pay_buf message =
        pay_buf_make(PAY_COMMAND_SIGNATURE_PREFIX_BYTES + order->msg->value.len);
    pay_buf_add(&message, PAY_COMMAND_SIGNATURE_PREFIX, PAY_COMMAND_SIGNATURE_PREFIX_BYTES);
    pay_buf_add(&message, order->msg->value.ptr, order->msg->value.len);
    const bool holds =
        !message.failed && pay_ed25519_verify(key, pay_buf_bytes(&message), order->signature);
    pay_buf_free(&message);
    return holds;
}

/* ---- what a known caller got wrong ---- */

static bool secrets_fit(const struct order *order)
{
    const struct pay_bytes said = order->command.secrets_sha256;
    if (said.ptr == NULL || order->secrets.ptr == NULL) {
        return said.ptr == NULL && order->secrets.ptr == NULL;
    }
    uint8_t digest[PAY_SHA256_BYTES];
    pay_sha256(order->secrets, digest);
    return pay_mac_eq(said, (struct pay_bytes){digest, sizeof digest});
}

static const char *refusal_of(const struct order *order)
{
    const struct pay_command *command = &order->command;
    if (!pay_str_eq_c(command->caller, order->principal->id)) {
        return "WRONG_CALLER";
    }
    if (command->type == PAY_CMD_UNRECOGNIZED) {
        return "UNKNOWN_COMMAND";
    }
    if (!pay_accounts_may(order->principal, command->merchant_id, command->type)) {
        return "NOT_ALLOWED";
    }
    return secrets_fit(order) ? NULL : "SECRETS_MISMATCH";
}

/* ---- sealing ---- */

static size_t routes_of(const struct pay_command *command)
{
    switch (command->type) {
    case PAY_CMD_CREATE_PAYMENT:
        return command->create_payment.route_count;
    case PAY_CMD_START_ATTEMPT:
    case PAY_CMD_CHANGE_METHOD:
        return 1;
    default:
        return 0;
    }
}

static enum pay_status seal_route(struct pay_relay_desk *desk, struct order *order,
                                  const struct pay_command_secrets *secrets, size_t route,
                                  struct pay_err *err)
{
    const struct pay_command *command = &order->command;
    const struct pay_str bound_to =
        pay_arena_printf(desk->desk.arena, "params/%s/%s/%s/%zu", command->payment_id.ptr,
                         command->caller.ptr, command->command_id.ptr, route);
    struct pay_buf plain = pay_buf_make(PART_BYTES_MAX);
    enum pay_status status =
        bound_to.ptr == NULL
            ? pay_err_set(err, PAY_RETRY, 0, "seal", "arena full")
            : pay_submit_params_encode(desk->desk.codec, secrets, route, &plain, err);
    if (status == PAY_OK) {
        status = pay_keys_seal(desk->desk.ingest->keys, bound_to, pay_buf_bytes(&plain),
                               desk->desk.arena, &order->params[route], err);
    }
    if (plain.data != NULL) {
        pay_mem_wipe(plain.data, plain.len);
    }
    pay_buf_free(&plain);
    return status;
}

/* The same form as a route's parameters, with nothing but the redirect data in it. */
static enum pay_status seal_redirect(struct pay_relay_desk *desk, struct order *order,
                                     const struct pay_command_secrets *secrets, struct pay_err *err)
{
    const struct pay_command *command = &order->command;
    const struct pay_command_secrets only = {.salt = secrets->salt,
                                             .redirect_data = secrets->redirect_data};
    const struct pay_str bound_to =
        pay_arena_printf(desk->desk.arena, "redirect/%s/%s/%s", command->payment_id.ptr,
                         command->caller.ptr, command->command_id.ptr);
    struct pay_buf plain = pay_buf_make(PART_BYTES_MAX);
    enum pay_status status = bound_to.ptr == NULL
                                 ? pay_err_set(err, PAY_RETRY, 0, "seal", "arena full")
                                 : pay_command_secrets_encode(desk->desk.codec, &only, &plain, err);
    if (status == PAY_OK) {
        status = pay_keys_seal(desk->desk.ingest->keys, bound_to, pay_buf_bytes(&plain),
                               desk->desk.arena, &order->redirect, err);
    }
    if (plain.data != NULL) {
        pay_mem_wipe(plain.data, plain.len);
    }
    pay_buf_free(&plain);
    return status;
}

/* @param ret_refusal set when the secrets do not fit the command. */
static enum pay_status seal(struct pay_relay_desk *desk, struct order *order,
                            const char **ret_refusal, struct pay_err *err)
{
    struct pay_command_secrets secrets;
    if (order->secrets.ptr == NULL) {
        return PAY_OK;
    }
    enum pay_status status = pay_command_secrets_decode(desk->desk.codec, order->secrets,
                                                        desk->desk.arena, &secrets, err);
    if (status == PAY_REJECT) {
        *ret_refusal = "SECRETS_MALFORMED";
        return PAY_OK;
    }
    if (status == PAY_OK && secrets.param_count > 0 &&
        secrets.param_count != routes_of(&order->command)) {
        *ret_refusal = "SECRETS_MISMATCH"; /* Whose are they? One set per route, or none. */
        return PAY_OK;
    }
    if (status == PAY_OK) {
        order->params =
            pay_arena_array(desk->desk.arena, secrets.param_count + 1, sizeof *order->params);
        order->param_count = secrets.param_count;
        status =
            order->params == NULL ? pay_err_set(err, PAY_RETRY, 0, "seal", "arena full") : PAY_OK;
    }
    for (size_t i = 0; status == PAY_OK && i < secrets.param_count; i++) {
        status = seal_route(desk, order, &secrets, i, err);
    }
    if (status == PAY_OK && secrets.redirect_data.ptr != NULL) {
        status = seal_redirect(desk, order, &secrets, err);
    }
    return status;
}

/* ---- on to the processor, which verifies again ---- */

static enum pay_status put(struct pay_relay_desk *desk, const struct order *order,
                           const char *refusal, struct pay_err *err)
{
    char input_id[PAY_ULID_LEN + 1];
    uint8_t fingerprint[8];
    uint64_t writer = 0;
    enum pay_status status = pay_codec_fingerprint_of(desk->desk.codec, PAY_RECORD_COMMAND,
                                                      order->msg->value, &writer, err);
    if (status != PAY_OK) {
        return PAY_RETRY; /* It was decoded a moment ago. */
    }
    pay_ulid_new(input_id);
    pay_fingerprint_put(fingerprint, writer);
    const struct pay_payment_input input = {
        .input_id = pay_str_of(input_id),
        .kind = refusal == NULL ? PAY_WIRE_COMMAND : PAY_WIRE_REJECTED_COMMAND,
        .source = order->principal->kind == PAY_PRINCIPAL_OPERATOR ? PAY_SOURCE_OPERATOR
                                                                   : PAY_SOURCE_MERCHANT,
        .evidence_level = PAY_EVIDENCE_LOCAL,
        .payment_id = order->command.payment_id.len > 0 ? order->command.payment_id
                                                        : (struct pay_str){NULL, 0},
        .command = {.value = order->msg->value,
                    .signature = order->signature,
                    .key_id = order->key_id,
                    .writer_fingerprint = {fingerprint, sizeof fingerprint},
                    .params = order->params,
                    .param_count = order->param_count,
                    .redirect_data = order->redirect,
                    .refusal = pay_str_of(refusal)},
        .received_at_us = pay_clock_wall_us(),
        .traceparent = order->command.traceparent,
    };
    pay_buf_reset(&desk->desk.value);
    status = pay_payment_input_encode(desk->desk.codec, &input, &desk->desk.value, err);
    if (status != PAY_OK) {
        return status;
    }
    count(desk, refusal == NULL ? "relayed" : "rejected", refusal == NULL ? "" : refusal);
    return pay_relay_put(desk,
                         (struct pay_str){(const char *)order->msg->key.ptr, order->msg->key.len},
                         order->command.traceparent, err);
}

static enum pay_status go_on(struct pay_relay_desk *desk, struct order *order, struct pay_err *err)
{
    const char *refusal = refusal_of(order);
    enum pay_status status = refusal == NULL ? seal(desk, order, &refusal, err) : PAY_OK;
    if (status == PAY_OK && refusal != NULL) {
        pay_log(PAY_LOG_WARN, "command_rejected", PAY_F_STR("caller", order->principal->id),
                PAY_F_STR("payment_id", order->command.payment_id.ptr),
                PAY_F_STR("reason", refusal));
        order->param_count = 0;
        order->redirect = (struct pay_sealed){.ciphertext = {NULL, 0}};
    }
    return status == PAY_OK ? put(desk, order, refusal, err) : status;
}

/* ---- what a stranger got wrong ---- */

static bool key_fits(const struct order *order)
{
    const struct pay_str key = {(const char *)order->msg->key.ptr, order->msg->key.len};
    const struct pay_command *command = &order->command;
    if (command->payment_id.len == 0) { /* PAUSE_ROUTE and the like: "<psp>/<psp_account>". */
        return key.ptr != NULL && key.len > 0;
    }
    return key.ptr != NULL && pay_str_eq(key, command->payment_id);
}

static enum pay_status dead(struct pay_relay_desk *desk, const struct order *order,
                            enum pay_dead_reason reason, const char *text, struct pay_err *err)
{
    return pay_relay_dead(desk, order->msg, PAY_IM_COMMANDS, reason, text, err);
}

static enum pay_status relay_signed(struct pay_relay_desk *desk, struct order *order,
                                    const struct pay_accounts *accounts, struct pay_err *err)
{
    const struct pay_ed25519_public *key = NULL;
    order->principal = pay_accounts_key(accounts, order->key_id, &key);
    if (order->principal == NULL) {
        return dead(desk, order, PAY_DEAD_KEY_UNKNOWN, "no principal has this key", err);
    }
    if (!signature_holds(order, key)) {
        return dead(desk, order, PAY_DEAD_SIGNATURE, "the signature is not of these bytes", err);
    }
    /* Only for signed ones: a stranger cannot make us ask for any number of ids. */
    enum pay_status status =
        pay_relay_schemas_know(desk, PAY_RECORD_COMMAND, order->msg->value, err);
    if (status == PAY_OK) {
        status = pay_command_decode(desk->desk.codec, order->msg->value, desk->desk.arena,
                                    &order->command, err);
    }
    if (status == PAY_REJECT) {
        const struct pay_err why = *err;
        return dead(desk, order, pay_dead_reason_of_code(why.code), why.text, err);
    }
    if (status != PAY_OK) {
        return status;
    }
    if (!key_fits(order)) {
        return dead(desk, order, PAY_DEAD_KEY_MISMATCH, "the record's key is not the payment_id",
                    err);
    }
    return go_on(desk, order, err);
}

enum pay_status pay_relay_command(struct pay_relay_desk *desk, const struct pay_kafka_msg *msg,
                                  struct pay_err *err)
{
    struct order *order = pay_arena_alloc(desk->desk.arena, sizeof *order);
    if (order == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "command", "arena full");
    }
    order->msg = msg;
    order->key_id = pay_arena_str(desk->desk.arena,
                                  pay_kafka_headers_get_str(&msg->headers, PAY_HEADER_KEY_ID));
    order->signature = pay_kafka_headers_get(&msg->headers, PAY_HEADER_SIGNATURE);
    order->secrets = pay_kafka_headers_get(&msg->headers, PAY_HEADER_SECRETS);
    if (order->key_id.ptr == NULL || order->signature.ptr == NULL || msg->value.ptr == NULL) {
        count(desk, "junk", "UNSIGNED");
        return PAY_OK;
    }
    const struct pay_accounts *accounts = pay_accounts_acquire(desk->desk.ingest->accounts);
    const enum pay_status status = relay_signed(desk, order, accounts, err);
    pay_accounts_release(accounts);
    return status;
}
