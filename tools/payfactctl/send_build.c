/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/payfactctl/send.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/contracts/headers.h"
#include "common/core/id.h"
#include "common/core/money.h"
#include "common/crypto/sha256.h"

#include "common/base/banned.h"

static const char op[] = "build command";

#define US_PER_S INT64_C(1000000)

/* What a kind of command takes from the options. */
struct part {
    int version;      /**< Of the record: the oldest that knows the command; 0: the current one. */
    bool may_be_free; /**< Of a payment: the command is about something else. */
    enum pay_status (*fill)(const struct pay_send_options *options, int64_t now_us,
                            struct pay_send_order *order, struct pay_err *err);
};

/* ---- routes and what the PSP is asked with ---- */

static struct pay_str until(const char **at, char end)
{
    const char *stop = strchr(*at, end);
    const struct pay_str text = {*at, stop == NULL ? strlen(*at) : (size_t)(stop - *at)};
    *at = stop == NULL ? NULL : stop + 1;
    return text;
}

bool pay_send_route(const char *text, struct pay_route_choice *ret_route)
{
    static const char failover[] = "failover";
    struct pay_route_choice route = {.failover_on_not_found = false};
    const char *at = text;
    route.psp = until(&at, '/');
    if (at == NULL) {
        return false;
    }
    route.psp_account = until(&at, '/');
    if (at == NULL) {
        return false;
    }
    route.method = until(&at, ':');
    if (at != NULL && strcmp(at, failover) != 0) {
        return false;
    }
    route.failover_on_not_found = at != NULL;
    if (route.psp.len == 0 || route.psp_account.len == 0 || route.method.len == 0 ||
        memchr(route.method.ptr, '/', route.method.len) != NULL) {
        return false;
    }
    *ret_route = route;
    return true;
}

/* Texts of a record must end with NUL, so those cut out of an argument are copied. */
static enum pay_status read_route(struct pay_send_order *order, const char *text,
                                  struct pay_route_choice *ret_route, struct pay_err *err)
{
    struct pay_route_choice route;
    if (!pay_send_route(text, &route)) {
        return pay_err_set(err, PAY_REJECT, 0, op,
                           "--route \"%.80s\" is not psp/account/method[:failover]", text);
    }
    route.psp = pay_arena_str(order->arena, route.psp);
    route.psp_account = pay_arena_str(order->arena, route.psp_account);
    route.method = pay_arena_str(order->arena, route.method);
    *ret_route = route;
    return PAY_OK;
}

static enum pay_status read_extra(const struct pay_arg_list *list, struct pay_send_order *order,
                                  struct pay_submit_params *params, struct pay_err *err)
{
    struct pay_extra_param *extra = pay_arena_array(order->arena, list->count + 1, sizeof *extra);
    for (size_t i = 0; extra != NULL && i < list->count; i++) {
        const char *at = list->items[i];
        const struct pay_str name = until(&at, '=');
        if (at == NULL || name.len == 0) {
            return pay_err_set(err, PAY_REJECT, 0, op, "--extra is not name=value");
        }
        extra[i] = (struct pay_extra_param){pay_arena_str(order->arena, name), pay_str_of(at)};
    }
    params->extra = extra;
    params->extra_count = extra == NULL ? 0 : list->count;
    return extra == NULL ? pay_err_set(err, PAY_RETRY, 0, op, "memory is out") : PAY_OK;
}

/* One set for each route: the i-th instrument is of the i-th route, a single one is of all. */
static enum pay_status fill_params(const struct pay_send_options *options, size_t routes,
                                   struct pay_send_order *order, struct pay_err *err)
{
    const size_t given = options->instruments.count;
    const bool has_any = given > 0 || options->return_url != NULL || options->payer_id != NULL ||
                         options->payer_ip != NULL || options->extra.count > 0;
    if (!has_any) {
        return PAY_OK;
    }
    if (routes == 0) {
        return pay_err_set(err, PAY_REJECT, 0, op,
                           "what the PSP is asked with belongs to a route: give --route");
    }
    if (given > 1 && given != routes) {
        return pay_err_set(err, PAY_REJECT, 0, op, "%zu --instrument for %zu --route", given,
                           routes);
    }
    struct pay_submit_params *params = pay_arena_array(order->arena, routes, sizeof *params);
    if (params == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, op, "memory is out");
    }
    for (size_t i = 0; i < routes; i++) {
        params[i] = (struct pay_submit_params){
            .instrument =
                pay_str_of(given == 0 ? NULL : options->instruments.items[given == 1 ? 0 : i]),
            .payer_id = pay_str_of(options->payer_id),
            .payer_ip = pay_str_of(options->payer_ip),
            .return_url = pay_str_of(options->return_url),
        };
        const enum pay_status status = read_extra(&options->extra, order, &params[i], err);
        if (status != PAY_OK) {
            return status;
        }
    }
    order->secrets.params = params;
    order->secrets.param_count = routes;
    return PAY_OK;
}

/* ---- the kinds ---- */

static enum pay_status fill_money(const struct pay_send_options *options,
                                  struct pay_cmd_create_payment *create, struct pay_err *err)
{
    const struct pay_str currency = pay_str_of(options->currency);
    if (pay_money_exponent(currency) < 0 ||
        !pay_str_copy(create->amount.currency, sizeof create->amount.currency, currency)) {
        return pay_err_set(err, PAY_REJECT, 0, op, "--currency \"%.10s\" is not of ISO 4217",
                           options->currency);
    }
    create->amount.amount_minor = options->amount_minor;
    const char *mode = options->capture == NULL ? "AUTOMATIC" : options->capture;
    if (!pay_capture_mode_parse(pay_str_of(mode), &create->capture_mode) ||
        create->capture_mode == PAY_CAPTURE_UNRECOGNIZED) {
        return pay_err_set(err, PAY_REJECT, 0, op, "--capture is AUTOMATIC or MANUAL");
    }
    return PAY_OK;
}

static enum pay_status fill_create(const struct pay_send_options *options, int64_t now_us,
                                   struct pay_send_order *order, struct pay_err *err)
{
    struct pay_cmd_create_payment *create = &order->command.create_payment;
    *create = (struct pay_cmd_create_payment){
        .merchant_order_no = pay_str_of(options->order_no),
        .expires_at_us = options->expires_in_s == 0 ? 0 : now_us + options->expires_in_s * US_PER_S,
        .retry_until_expiry = options->retry_until_expiry ? 1 : -1,
        .description = pay_str_of(options->description),
        .start = !options->no_start,
    };
    enum pay_status status = fill_money(options, create, err);
    for (size_t i = 0; status == PAY_OK && i < options->routes.count; i++) {
        status = read_route(order, options->routes.items[i], &create->routes[i], err);
        create->route_count = i + 1;
    }
    return status == PAY_OK ? fill_params(options, create->route_count, order, err) : status;
}

static enum pay_status fill_route(const struct pay_send_options *options, int64_t now_us,
                                  struct pay_send_order *order, struct pay_err *err)
{
    (void)now_us; /* only CREATE_PAYMENT says times */
    if (options->routes.count != 1) {
        return pay_err_set(err, PAY_REJECT, 0, op, "exactly one --route is needed");
    }
    const enum pay_status status =
        read_route(order, options->routes.items[0], &order->command.route, err);
    return status == PAY_OK ? fill_params(options, 1, order, err) : status;
}

static enum pay_status fill_continue(const struct pay_send_options *options, int64_t now_us,
                                     struct pay_send_order *order, struct pay_err *err)
{
    (void)now_us; /* only CREATE_PAYMENT says times */
    order->command.attempt_id = pay_str_of(options->attempt_id);
    if (!pay_id_is_action(order->command.attempt_id)) {
        return pay_err_set(err, PAY_REJECT, 0, op,
                           "--attempt \"%.40s\" is not a payment id with A and two digits",
                           options->attempt_id);
    }
    if (options->redirect_data != NULL) {
        order->secrets.redirect_data = (struct pay_bytes){(const uint8_t *)options->redirect_data,
                                                          strlen(options->redirect_data)};
    }
    return PAY_OK;
}

static enum pay_status fill_cancel(const struct pay_send_options *options, int64_t now_us,
                                   struct pay_send_order *order, struct pay_err *err)
{
    (void)now_us; /* only CREATE_PAYMENT says times */
    (void)err;    /* nothing can be wrong */
    order->command.reason_code =
        pay_str_of(options->reason == NULL ? "REQUESTED_BY_CALLER" : options->reason);
    return PAY_OK;
}

/* ---- about what was given up ---- */

static enum pay_status fill_subject(const struct pay_send_options *options, int64_t now_us,
                                    struct pay_send_order *order, struct pay_err *err)
{
    (void)now_us; /* only CREATE_PAYMENT says times */
    (void)err;    /* nothing can be wrong that the encoder does not see */
    order->command.subject = (struct pay_cmd_subject){
        .psp = pay_str_of(options->psp),
        .psp_account = pay_str_of(options->psp_account),
        .transport_key = pay_str_of(options->transport_key),
        .event_id = pay_str_of(options->event_id),
        .reason_code = pay_str_of(options->reason),
    };
    return PAY_OK;
}

static enum pay_status fill_case(const struct pay_send_options *options, int64_t now_us,
                                 struct pay_send_order *order, struct pay_err *err)
{
    (void)now_us; /* only CREATE_PAYMENT says times */
    (void)err;    /* nothing can be wrong that the encoder does not see */
    order->command.controlled = (struct pay_cmd_controlled){
        .aggregate_id = pay_str_of(options->case_id),
        .expected_version = options->case_version,
        .reason_code = pay_str_of(options->reason),
    };
    return PAY_OK;
}

/* ---- money, and two people ---- */

static enum pay_status fill_amount(const struct pay_send_options *options, struct pay_money *amount,
                                   struct pay_err *err)
{
    const struct pay_str currency = pay_str_of(options->currency);
    if (pay_money_exponent(currency) < 0 ||
        !pay_str_copy(amount->currency, sizeof amount->currency, currency)) {
        return pay_err_set(err, PAY_REJECT, 0, op, "--currency \"%.10s\" is not of ISO 4217",
                           options->currency == NULL ? "" : options->currency);
    }
    amount->amount_minor = options->amount_minor;
    return PAY_OK;
}

static enum pay_status fill_action(const struct pay_send_options *options, int64_t now_us,
                                   struct pay_send_order *order, struct pay_err *err)
{
    (void)now_us; /* only CREATE_PAYMENT says times */
    order->command.money = (struct pay_cmd_money){
        .attempt_id = pay_str_of(options->attempt_id),
        .is_final = !options->is_partial,
        .reason_code =
            pay_str_of(options->reason == NULL ? "REQUESTED_BY_CALLER" : options->reason),
        .idempotency_key = pay_str_of(options->idempotency_key),
    };
    return fill_amount(options, &order->command.money.amount, err);
}

/* "REFERENCE=SHA256": the digest is what stands behind the last sign. */
static enum pay_status read_attachment(const char *text, struct pay_send_order *order,
                                       struct pay_attachment *ret_attachment, struct pay_err *err)
{
    const char *sign = strrchr(text, '=');
    uint8_t *digest = pay_arena_alloc(order->arena, PAY_SHA256_BYTES);
    if (digest == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, op, "memory is out");
    }
    if (sign == NULL || sign == text ||
        !pay_hex_decode(pay_str_of(sign + 1), digest, PAY_SHA256_BYTES)) {
        return pay_err_set(err, PAY_REJECT, 0, op,
                           "--attachment \"%.80s\" is not REFERENCE=SHA256, 64 hex digits", text);
    }
    ret_attachment->reference =
        pay_arena_str(order->arena, (struct pay_str){text, (size_t)(sign - text)});
    ret_attachment->sha256 = (struct pay_bytes){digest, PAY_SHA256_BYTES};
    return ret_attachment->reference.ptr != NULL
               ? PAY_OK
               : pay_err_set(err, PAY_RETRY, 0, op, "memory is out");
}

static enum pay_status fill_controlled(const struct pay_send_options *options, int64_t now_us,
                                       struct pay_send_order *order, struct pay_err *err)
{
    (void)now_us; /* only CREATE_PAYMENT says times */
    struct pay_cmd_controlled *wish = &order->command.controlled;
    *wish = (struct pay_cmd_controlled){
        .aggregate_id = pay_str_of(options->aggregate_id),
        .expected_version = options->expected_version > 0 ? options->expected_version : -1,
        .from_status = pay_str_of(options->from_status),
        .to_status = pay_str_of(options->to_status),
        .has_amount = options->amount_minor > 0,
        .provider_reference = pay_str_of(options->provider_reference),
        .reason_code = pay_str_of(options->reason),
    };
    enum pay_status status = wish->has_amount ? fill_amount(options, &wish->amount, err) : PAY_OK;
    for (size_t i = 0; status == PAY_OK && i < options->attachments.count; i++) {
        status = read_attachment(options->attachments.items[i], order, &wish->attachments[i], err);
        wish->attachment_count = i + 1;
    }
    return status;
}

static enum pay_status fill_word(const struct pay_send_options *options, int64_t now_us,
                                 struct pay_send_order *order, struct pay_err *err)
{
    (void)now_us; /* only CREATE_PAYMENT says times */
    uint8_t *digest = pay_arena_alloc(order->arena, PAY_SHA256_BYTES);
    if (digest == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, op, "memory is out");
    }
    if (!pay_hex_decode(pay_str_of(options->request_sha256), digest, PAY_SHA256_BYTES)) {
        return pay_err_set(err, PAY_REJECT, 0, op, "--sha256 is not 64 hex digits");
    }
    order->command.approval = (struct pay_cmd_approval){
        .request_id = pay_str_of(options->request_id),
        .request_sha256 = {digest, PAY_SHA256_BYTES},
        .reason_code = pay_str_of(options->reason),
    };
    return PAY_OK;
}

static enum pay_status fill_pause(const struct pay_send_options *options, int64_t now_us,
                                  struct pay_send_order *order, struct pay_err *err)
{
    const enum pay_status status = fill_subject(options, now_us, order, err);
    order->command.subject.method = pay_str_of(options->method == NULL ? "" : options->method);
    return status;
}

/* A case of money with attachments, or one that a single operator closes. */
static enum pay_status fill_resolution(const struct pay_send_options *options, int64_t now_us,
                                       struct pay_send_order *order, struct pay_err *err)
{
    return options->aggregate_id == NULL ? fill_case(options, now_us, order, err)
                                         : fill_controlled(options, now_us, order, err);
}

static const struct part parts[PAY_CMD_COUNT] = {
    [PAY_CMD_CAPTURE] = {1, false, fill_action},
    [PAY_CMD_REQUEST_REFUND] = {1, false, fill_action},
    [PAY_CMD_FORCE_CLOSE_UNKNOWN] = {1, false, fill_controlled},
    [PAY_CMD_CORRECT_STATE] = {1, false, fill_controlled},
    [PAY_CMD_RELEASE_RESERVATION] = {1, false, fill_controlled},
    [PAY_CMD_OVERRIDE_BLOCK] = {1, false, fill_controlled},
    [PAY_CMD_APPROVE] = {1, false, fill_word},
    [PAY_CMD_DECLINE] = {1, false, fill_word},
    [PAY_CMD_PAUSE_ROUTE] = {1, true, fill_pause},
    [PAY_CMD_RESUME_ROUTE] = {1, true, fill_pause},
    [PAY_CMD_CREATE_PAYMENT] = {1, false, fill_create},
    [PAY_CMD_START_ATTEMPT] = {1, false, fill_route},
    [PAY_CMD_CHANGE_METHOD] = {1, false, fill_route},
    [PAY_CMD_CONTINUE_ATTEMPT] = {1, false, fill_continue},
    [PAY_CMD_CANCEL_PAYMENT] = {1, false, fill_cancel},
    [PAY_CMD_REPLAY_INPUT] = {1, true, fill_subject},
    [PAY_CMD_DISCARD_EVENT] = {1, true, fill_subject},
    [PAY_CMD_REPLAY_EVENT] = {0, true, fill_subject},
    [PAY_CMD_RESOLVE_CASE] = {1, true, fill_resolution},
};

/* ---- encode and sign ---- */

static enum pay_status fill_ids(const struct pay_send_options *options,
                                struct pay_send_order *order, struct pay_err *err)
{
    const bool may_be_new = order->command.type == PAY_CMD_CREATE_PAYMENT;
    const bool is_free = parts[order->command.type].may_be_free && options->key != NULL &&
                         options->payment_id[0] == '\0';
    order->key = is_free ? options->key : order->payment_id;
    if (is_free) {
        order->payment_id[0] = '\0';
    } else if (may_be_new && strcmp(options->payment_id, "new") == 0) {
        pay_ulid_new(order->payment_id);
    } else if (!pay_id_is_payment(pay_str_of(options->payment_id)) ||
               !pay_str_copy(order->payment_id, sizeof order->payment_id,
                             pay_str_of(options->payment_id))) {
        return pay_err_set(err, PAY_REJECT, 0, op, "--payment \"%.40s\" is not a payment id%s",
                           options->payment_id, may_be_new ? " and not \"new\"" : "");
    }
    pay_ulid_new(order->command_id);
    order->command.command_id =
        pay_str_of(options->command_id == NULL ? order->command_id : options->command_id);
    order->command.payment_id = pay_str_of(order->payment_id);
    order->command.caller = pay_str_of(options->caller);
    order->command.merchant_id = pay_str_of(options->merchant);
    order->command.traceparent = pay_str_of(options->traceparent);
    if (options->traceparent != NULL && !pay_traceparent_valid(order->command.traceparent)) {
        return pay_err_set(err, PAY_REJECT, 0, op, "--traceparent is not a W3C trace context");
    }
    return PAY_OK;
}

static enum pay_status encode(struct pay_send_order *order, struct pay_err *err)
{
    struct pay_codec *codec = NULL;
    enum pay_status status = pay_codec_new(&codec, err);
    const bool has_secrets =
        order->secrets.param_count > 0 || order->secrets.redirect_data.ptr != NULL;
    if (status == PAY_OK && has_secrets) {
        pay_mem_random(order->salt, sizeof order->salt);
        order->secrets.salt = (struct pay_bytes){order->salt, sizeof order->salt};
        status = pay_command_secrets_encode(codec, &order->secrets, &order->secrets_value, err);
    }
    if (status == PAY_OK && has_secrets) {
        pay_sha256(pay_buf_bytes(&order->secrets_value), order->digest);
        order->command.secrets_sha256 = (struct pay_bytes){order->digest, sizeof order->digest};
    }
    if (status == PAY_OK) { /* so that a relay of the former release reads it, too */
        status = pay_codec_write_version(codec, PAY_RECORD_COMMAND,
                                         parts[order->command.type].version, err);
    }
    if (status == PAY_OK) {
        status = pay_command_encode(codec, &order->command, &order->value, err);
    }
    codec = pay_codec_free(codec);
    return status;
}

static enum pay_status sign(const char *key_file, struct pay_send_order *order, struct pay_err *err)
{
    struct pay_ed25519_private *key = NULL;
    struct pay_buf message = pay_buf_make(PAY_COMMAND_SIGNATURE_PREFIX_BYTES + order->value.len);
    enum pay_status status = pay_ed25519_private_load(key_file, &key, err);
    pay_buf_add(&message, PAY_COMMAND_SIGNATURE_PREFIX, PAY_COMMAND_SIGNATURE_PREFIX_BYTES);
    pay_buf_add(&message, order->value.data, order->value.len);
    if (status == PAY_OK && message.failed) {
        status = pay_err_set(err, PAY_RETRY, 0, op, "memory is out");
    }
    if (status == PAY_OK) {
        pay_ed25519_sign(key, pay_buf_bytes(&message), order->signature);
    }
    pay_buf_free(&message);
    key = pay_ed25519_private_free(key);
    return status;
}

enum pay_status pay_send_build(enum pay_command_type type, const struct pay_send_options *options,
                               int64_t now_us, struct pay_send_order *ret_order,
                               struct pay_err *err)
{
    struct pay_send_order *order = ret_order;
    *order = (struct pay_send_order){
        .arena = pay_arena_new(PAY_SEND_ARENA_BYTES_MAX),
        .value = pay_buf_make(PAY_COMMAND_BYTES_MAX),
        .secrets_value = pay_buf_make(PAY_COMMAND_SECRETS_BYTES_MAX),
        .command = {.type = type, .issued_at_us = now_us},
    };
    if (order->arena == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, op, "memory is out");
    }
    enum pay_status status = fill_ids(options, order, err);
    if (status == PAY_OK) {
        status = parts[type].fill(options, now_us, order, err);
    }
    if (status == PAY_OK) {
        status = encode(order, err);
    }
    return status == PAY_OK ? sign(options->key_file, order, err) : status;
}

void pay_send_free(struct pay_send_order *order)
{
    if (order->secrets_value.data != NULL) {
        pay_mem_wipe(order->secrets_value.data, order->secrets_value.len);
    }
    pay_buf_free(&order->secrets_value);
    pay_buf_free(&order->value);
    order->arena = pay_arena_free(order->arena);
}

bool pay_send_headers(const struct pay_send_order *order, const char *key_id,
                      struct pay_kafka_headers *ret_headers)
{
    const struct pay_bytes signature = {order->signature, sizeof order->signature};
    *ret_headers = (struct pay_kafka_headers){.count = 0};
    return pay_kafka_headers_add_str(ret_headers, PAY_HEADER_KEY_ID, pay_str_of(key_id)) &&
           pay_kafka_headers_add(ret_headers, PAY_HEADER_SIGNATURE, signature) &&
           (order->secrets_value.len == 0 ||
            pay_kafka_headers_add(ret_headers, PAY_HEADER_SECRETS,
                                  pay_buf_bytes(&order->secrets_value)));
}
