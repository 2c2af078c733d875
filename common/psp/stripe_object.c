/* SPDX-License-Identifier: Apache-2.0 */
/* What an intent, a charge and a checkout session say. */
#include "common/psp/stripe_internal.h"

#include <string.h>

#include "common/base/banned.h"

#define URL_BYTES_MAX 4096

static const struct pay_str absent = {NULL, 0};

/* ---- The customer's next step ---- */

static const struct {
    const char *type;
    enum pay_action_type action;
    const char *path; /**< Of the URL, or of a code's text; below next_action. */
    const char *expiry;
} steps[] = {
    {"redirect_to_url", PAY_ACTION_REDIRECT, "redirect_to_url.url", NULL},
    {"alipay_handle_redirect", PAY_ACTION_REDIRECT, "alipay_handle_redirect.url", NULL},
    {"boleto_display_details", PAY_ACTION_REDIRECT, "boleto_display_details.hosted_voucher_url",
     "boleto_display_details.expires_at"},
    {"cashapp_handle_redirect_or_display_qr_code", PAY_ACTION_REDIRECT,
     "cashapp_handle_redirect_or_display_qr_code.hosted_instructions_url", NULL},
    {"display_bank_transfer_instructions", PAY_ACTION_REDIRECT,
     "display_bank_transfer_instructions.hosted_instructions_url", NULL},
    {"konbini_display_details", PAY_ACTION_REDIRECT, "konbini_display_details.hosted_voucher_url",
     "konbini_display_details.expires_at"},
    {"multibanco_display_details", PAY_ACTION_REDIRECT,
     "multibanco_display_details.hosted_voucher_url", "multibanco_display_details.expires_at"},
    {"oxxo_display_details", PAY_ACTION_REDIRECT, "oxxo_display_details.hosted_voucher_url",
     "oxxo_display_details.expires_after"},
    {"paynow_display_qr_code", PAY_ACTION_QR_CODE, "paynow_display_qr_code.data", NULL},
    {"pix_display_qr_code", PAY_ACTION_QR_CODE, "pix_display_qr_code.data",
     "pix_display_qr_code.expires_at"},
    {"promptpay_display_qr_code", PAY_ACTION_QR_CODE, "promptpay_display_qr_code.data", NULL},
    {"swish_handle_redirect_or_display_qr_code", PAY_ACTION_REDIRECT,
     "swish_handle_redirect_or_display_qr_code.hosted_instructions_url", NULL},
    {"verify_with_microdeposits", PAY_ACTION_REDIRECT,
     "verify_with_microdeposits.hosted_verification_url", NULL},
    {"wechat_pay_display_qr_code", PAY_ACTION_QR_CODE, "wechat_pay_display_qr_code.data", NULL},
};

/* What a browser may be sent to; plain http only where no real money is. */
static bool is_url(struct pay_str text, bool live)
{
    if (text.ptr == NULL || text.len > URL_BYTES_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] <= ' ') {
            return false;
        }
    }
    return pay_str_starts(text, "https://") || (!live && pay_str_starts(text, "http://"));
}

static bool set_step(struct pay_stripe_scene *scene, const struct pay_json_value *next,
                     struct pay_customer_action *action)
{
    const struct pay_str type = pay_json_str(pay_json_member(next, "type"));
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (!pay_str_eq_c(type, steps[i].type)) {
            continue;
        }
        const struct pay_str text = pay_json_str(pay_json_path(next, steps[i].path));
        const bool is_redirect = steps[i].action == PAY_ACTION_REDIRECT;
        if (is_redirect ? !is_url(text, scene->account->live) : text.len == 0) {
            return false;
        }
        const struct pay_str copy = pay_stripe_keep(scene, text);
        *action = (struct pay_customer_action){
            .is_set = true,
            .type = steps[i].action,
            .url = is_redirect ? copy : absent,
            .data = is_redirect ? absent : copy,
            .expires_at_us = steps[i].expiry == NULL
                                 ? 0
                                 : pay_stripe_time_us(pay_json_path(next, steps[i].expiry))};
        return true;
    }
    return false;
}

/* Stripe's own script goes on with the client secret: the one place where it may stand. */
static void set_sdk(struct pay_stripe_scene *scene, const struct pay_json_value *intent,
                    struct pay_customer_action *action)
{
    const struct pay_str secret = pay_json_str(pay_json_member(intent, "client_secret"));
    if (secret.len == 0 || secret.len > 255) {
        return;
    }
    for (size_t i = 0; i < secret.len; i++) {
        if (secret.ptr[i] < '!' || secret.ptr[i] > '~' || strchr("\"\\", secret.ptr[i]) != NULL) {
            return; /* It goes into JSON text as it is. */
        }
    }
    const struct pay_str data =
        pay_arena_printf(scene->arena, "{\"client_secret\":\"%.*s\"}", (int)secret.len, secret.ptr);
    if (data.ptr == NULL) {
        (void)pay_stripe_fail(scene, PAY_PSP_NO_MEMORY); /* Told by the next push. */
        return;
    }
    *action = (struct pay_customer_action){.is_set = true, .type = PAY_ACTION_SDK, .data = data};
}

static void set_action(struct pay_stripe_scene *scene, const struct pay_json_value *intent,
                       struct pay_event *event)
{
    if (!scene->with_action || event->type != PAY_EV_ATTEMPT_ACTION_REQUIRED) {
        return;
    }
    if (!set_step(scene, pay_json_member(intent, "next_action"), &event->action)) {
        set_sdk(scene, intent, &event->action);
    }
}

/* ---- Intent ---- */

static const struct {
    const char *intent_amount; /**< Its field. */
    enum pay_event_type type;
    bool is_money; /**< The charge is the one that holds the money: bind it. */
} facts[PAY_STRIPE_FACT_COUNT] = {
    [PAY_STRIPE_ACT] = {"amount", PAY_EV_ATTEMPT_ACTION_REQUIRED, false},
    [PAY_STRIPE_PRC] = {"amount", PAY_EV_ATTEMPT_PROCESSING, false},
    [PAY_STRIPE_AUT] = {"amount_capturable", PAY_EV_ATTEMPT_AUTHORIZED, true},
    [PAY_STRIPE_SUC] = {"amount_received", PAY_EV_ATTEMPT_SUCCEEDED, true},
    [PAY_STRIPE_DEC] = {"amount", PAY_EV_ATTEMPT_DECLINED, false},
    [PAY_STRIPE_CAN] = {"amount", PAY_EV_ATTEMPT_CANCELED, false},
    [PAY_STRIPE_CAPTURED] = {"amount_received", PAY_EV_CAPTURE_SUCCEEDED, true},
    [PAY_STRIPE_EXPIRED] = {"amount", PAY_EV_ATTEMPT_AUTHORIZATION_EXPIRED, true},
};

static int64_t capture_before_us(const struct pay_json_value *charge)
{
    return pay_stripe_time_us(pay_json_path(charge, "payment_method_details.card.capture_before"));
}

bool pay_stripe_intent(struct pay_stripe_scene *scene, const struct pay_json_value *intent,
                       enum pay_stripe_fact fact)
{
    if (fact == PAY_STRIPE_SUC &&
        pay_str_eq_c(pay_json_str(pay_json_member(intent, "capture_method")), "manual")) {
        fact = PAY_STRIPE_CAPTURED;
    }
    struct pay_event event = pay_stripe_event(scene, facts[fact].type);
    event.provider_payment_id = pay_stripe_keep_id(scene, intent, "id");
    if (event.provider_payment_id.ptr == NULL) {
        return pay_stripe_fail(scene, PAY_PSP_FIELD_MISSING);
    }
    event.merchant_request_no = pay_stripe_keep_number(scene, intent, "order_id");
    pay_stripe_add_reference(&event, PAY_REF_INTENT, event.provider_payment_id);
    if (facts[fact].is_money) {
        const struct pay_str charge = pay_stripe_keep_id(scene, intent, "latest_charge");
        pay_stripe_add_reference(&event, PAY_REF_CHARGE, charge);
        /* A charge is captured once: its id tells one capture from another. */
        event.provider_action_id = fact == PAY_STRIPE_CAPTURED ? charge : absent;
    }
    if (fact == PAY_STRIPE_CAPTURED) {
        event.action_id = pay_stripe_keep_number(scene, intent, "capture_ref");
    }
    if (fact == PAY_STRIPE_AUT) {
        event.authorization_expires_at_us =
            capture_before_us(pay_json_member(intent, "latest_charge"));
    }
    if (fact == PAY_STRIPE_DEC) {
        const struct pay_json_value *last = pay_json_member(intent, "last_payment_error");
        pay_stripe_set_failure(scene, pay_json_kind(last) == PAY_JSON_OBJECT ? last : scene->error,
                               &event);
    }
    if (fact == PAY_STRIPE_CAN) {
        event.failure_code = pay_stripe_keep_code(
            scene, pay_json_str(pay_json_member(intent, "cancellation_reason")));
    }
    set_action(scene, intent, &event);
    return pay_stripe_set_amount(scene, intent, facts[fact].intent_amount, &event) &&
           pay_stripe_push(scene, &event);
}

static const struct {
    const char *status;
    enum pay_stripe_fact fact;
} statuses[] = {
    {"requires_payment_method", PAY_STRIPE_ACT},
    {"requires_confirmation", PAY_STRIPE_ACT},
    {"requires_action", PAY_STRIPE_ACT},
    {"processing", PAY_STRIPE_PRC},
    {"requires_capture", PAY_STRIPE_AUT},
    {"succeeded", PAY_STRIPE_SUC},
    {"canceled", PAY_STRIPE_CAN},
};

/* Declined, and still to be paid: its last try failed, or the call that carries it was refused. */
static bool is_declined(const struct pay_stripe_scene *scene, const struct pay_json_value *intent)
{
    return scene->error != NULL ||
           (pay_str_eq_c(pay_json_str(pay_json_member(intent, "status")),
                         "requires_payment_method") &&
            pay_json_kind(pay_json_member(intent, "last_payment_error")) == PAY_JSON_OBJECT);
}

bool pay_stripe_intent_now(struct pay_stripe_scene *scene, const struct pay_json_value *intent)
{
    const struct pay_str status = pay_json_str(pay_json_member(intent, "status"));
    const struct pay_json_value *charge = pay_json_member(intent, "latest_charge");
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (!pay_str_eq_c(status, statuses[i].status)) {
            continue;
        }
        enum pay_stripe_fact fact = statuses[i].fact;
        if (fact == PAY_STRIPE_ACT && is_declined(scene, intent)) {
            fact = PAY_STRIPE_DEC;
        }
        return pay_stripe_intent(scene, intent, fact) &&
               (pay_json_kind(charge) != PAY_JSON_OBJECT || pay_stripe_refund_sum(scene, charge));
    }
    return pay_stripe_fail(scene, PAY_PSP_MALFORMED_EVENT);
}

/* ---- Charge ---- */

/* The intent names the payment; an old charge without one stands for itself. */
static bool charge_event(struct pay_stripe_scene *scene, const struct pay_json_value *charge,
                         enum pay_event_type type, bool is_money, struct pay_event *ret_event)
{
    struct pay_event event = pay_stripe_event(scene, type);
    const struct pay_str id = pay_stripe_keep_id(scene, charge, "id");
    const struct pay_str intent = pay_stripe_keep_id(scene, charge, "payment_intent");
    if (id.ptr == NULL) {
        return pay_stripe_fail(scene, PAY_PSP_FIELD_MISSING);
    }
    event.provider_payment_id = intent.ptr != NULL ? intent : id;
    event.merchant_request_no = pay_stripe_keep_number(scene, charge, "order_id");
    pay_stripe_add_reference(&event, PAY_REF_INTENT, intent);
    if (is_money) {
        pay_stripe_add_reference(&event, PAY_REF_CHARGE, id);
    }
    if (type == PAY_EV_CAPTURE_SUCCEEDED) {
        event.provider_action_id = id;
    }
    *ret_event = event;
    return true;
}

static const char *captured_field(const struct pay_json_value *charge)
{
    return pay_json_kind(pay_json_member(charge, "amount_captured")) == PAY_JSON_INT
               ? "amount_captured"
               : "amount";
}

bool pay_stripe_charge(struct pay_stripe_scene *scene, const struct pay_json_value *charge,
                       enum pay_stripe_fact fact)
{
    bool captured = false;
    if (fact == PAY_STRIPE_SUC &&
        !(pay_json_bool(pay_json_member(charge, "captured"), &captured) && captured)) {
        fact = PAY_STRIPE_AUT; /* charge.succeeded of a held amount. */
    }
    struct pay_event event;
    if (!charge_event(scene, charge, facts[fact].type, facts[fact].is_money, &event)) {
        return false;
    }
    if (fact == PAY_STRIPE_AUT) {
        event.authorization_expires_at_us = capture_before_us(charge);
    }
    if (fact == PAY_STRIPE_DEC) {
        pay_stripe_failure(scene, pay_json_str(pay_json_member(charge, "failure_code")),
                           pay_json_str(pay_json_path(charge, "outcome.reason")), &event);
    }
    const bool is_money = fact == PAY_STRIPE_SUC || fact == PAY_STRIPE_CAPTURED;
    return pay_stripe_set_amount(scene, charge, is_money ? captured_field(charge) : "amount",
                                 &event) &&
           pay_stripe_push(scene, &event);
}

static int64_t int_of(const struct pay_json_value *object, const char *name)
{
    int64_t value = 0;
    return pay_json_int(pay_json_member(object, name), &value) && value > 0 ? value : 0;
}

static bool is_captured(const struct pay_json_value *charge)
{
    bool captured = false;
    return pay_json_bool(pay_json_member(charge, "captured"), &captured) && captured;
}

/* What was held and not captured. Only a held charge is captured in part. */
static int64_t released(const struct pay_json_value *charge)
{
    const int64_t amount = int_of(charge, "amount");
    const int64_t captured = int_of(charge, "amount_captured");
    const bool says = pay_json_kind(pay_json_member(charge, "amount_captured")) == PAY_JSON_INT;
    return says && captured < amount ? amount - captured : 0;
}

bool pay_stripe_paid_charge(struct pay_stripe_scene *scene, const struct pay_json_value *charge)
{
    return !is_captured(charge) ||
           pay_stripe_charge(scene, charge,
                             released(charge) > 0 ? PAY_STRIPE_CAPTURED : PAY_STRIPE_SUC);
}

/* Stripe counts what it releases (the rest after a capture in part, the whole after a void) as
 * refunded, although nothing was paid back. Where it should not, a sum that is too small says
 * nothing new, and the refunds' own events carry each. */
bool pay_stripe_refund_sum(struct pay_stripe_scene *scene, const struct pay_json_value *charge)
{
    struct pay_event event;
    const int64_t sum = int_of(charge, "amount_refunded") - released(charge);
    const struct pay_str currency = pay_json_str(pay_json_member(charge, "currency"));
    if (!is_captured(charge) || sum <= 0) {
        return true;
    }
    if (currency.ptr == NULL) {
        return pay_stripe_fail(scene, PAY_PSP_FIELD_MISSING);
    }
    return charge_event(scene, charge, PAY_EV_REFUND_SUM, true, &event) &&
           pay_stripe_convert_amount(scene, sum, currency, &event) &&
           pay_stripe_push(scene, &event);
}

/* ---- Checkout session, and what decides nothing ---- */

bool pay_stripe_session(struct pay_stripe_scene *scene, const struct pay_json_value *session,
                        enum pay_stripe_fact fact)
{
    const struct pay_str intent = pay_stripe_keep_id(scene, session, "payment_intent");
    const bool paid =
        pay_str_eq_c(pay_json_str(pay_json_member(session, "payment_status")), "paid");
    if (intent.ptr == NULL) {
        return pay_stripe_other(scene, session); /* Set-up or subscription. */
    }
    if (fact == PAY_STRIPE_SUC && !paid) {
        fact = PAY_STRIPE_PRC;
    }
    struct pay_event event = pay_stripe_event(scene, facts[fact].type);
    event.provider_payment_id = intent;
    event.merchant_request_no = pay_stripe_keep_number(scene, session, "order_id");
    pay_stripe_add_reference(&event, PAY_REF_INTENT, intent);
    if (fact == PAY_STRIPE_DEC) {
        event.failure_class = PAY_FAILURE_DECLINED;
    }
    return pay_stripe_set_amount(scene, session, "amount_total", &event) &&
           pay_stripe_push(scene, &event);
}

bool pay_stripe_other(struct pay_stripe_scene *scene, const struct pay_json_value *object)
{
    struct pay_event event = pay_stripe_event(scene, PAY_EV_OTHER);
    const struct pay_str id = pay_stripe_keep_id(scene, object, "id");
    event.merchant_request_no = pay_stripe_keep_number(scene, object, "order_id");
    if (id.ptr != NULL && pay_str_starts(id, "pi_")) {
        event.provider_payment_id = id;
        pay_stripe_add_reference(&event, PAY_REF_INTENT, id);
    } else {
        event.provider_payment_id = pay_stripe_keep_id(scene, object, "payment_intent");
        event.provider_action_id = id;
    }
    return pay_stripe_push(scene, &event);
}
