/* SPDX-License-Identifier: Apache-2.0 */
#include "common/psp/stripe_internal.h"

#include "common/core/id.h"

#include <string.h>

#include "common/base/banned.h"

#define NUMBER_BYTES_MAX \
    64 /**< Ours have 29; a longer one is foreign, its beginning says as much. */
#define CODE_BYTES_MAX (PAY_CODE_SIZE - 1)
#define URL_BYTES_MAX 4096
#define SECOND_US INT64_C(1000000)
#define SECONDS_MAX INT64_C(253402300800) /**< Year 10000: later is no time. */

static const struct pay_str absent = {NULL, 0};

/* ---- Scene ---- */

bool pay_stripe_scene_init(struct pay_stripe_scene *scene, size_t cap)
{
    scene->items = pay_arena_array(scene->arena, cap, sizeof *scene->items);
    scene->cap = cap;
    scene->count = 0;
    scene->reason = scene->items == NULL ? PAY_PSP_NO_MEMORY : PAY_PSP_OK;
    return scene->items != NULL;
}

bool pay_stripe_fail(struct pay_stripe_scene *scene, enum pay_psp_reason reason)
{
    if (scene->reason == PAY_PSP_OK) {
        scene->reason = reason;
    }
    return false;
}

struct pay_str pay_stripe_keep(struct pay_stripe_scene *scene, struct pay_str text)
{
    const struct pay_str copy = pay_arena_str(scene->arena, text);
    if (text.ptr != NULL && copy.ptr == NULL) {
        (void)pay_stripe_fail(scene, PAY_PSP_NO_MEMORY); /* Told by the next push. */
    }
    return copy;
}

struct pay_event pay_stripe_event(const struct pay_stripe_scene *scene, enum pay_event_type type)
{
    return (struct pay_event){
        .type = type,
        .psp = pay_str_of(scene->account->psp),
        .psp_account = pay_str_of(scene->account->id),
        .call = scene->call,
        .psp_event_type = scene->type_name,
    };
}

/* "job:1", "job:1:1" ...: one answer or callback may say several things. */
static struct pay_str item_key(struct pay_stripe_scene *scene)
{
    if (scene->count == 0) {
        return scene->transport_key;
    }
    return pay_arena_printf(scene->arena, "%.*s:%zu", (int)scene->transport_key.len,
                            scene->transport_key.ptr, scene->count);
}

bool pay_stripe_push(struct pay_stripe_scene *scene, const struct pay_event *event)
{
    if (scene->reason != PAY_PSP_OK) {
        return false;
    }
    if (scene->count == scene->cap) {
        return pay_stripe_fail(scene, PAY_PSP_TOO_LARGE);
    }
    struct pay_psp_item *item = &scene->items[scene->count];
    *item = (struct pay_psp_item){.event = *event,
                                  .source = scene->source,
                                  .transport_key = item_key(scene),
                                  .occurred_at_us = scene->occurred_at_us};
    if (item->transport_key.ptr == NULL || !pay_psp_item_finish(item, scene->arena)) {
        return pay_stripe_fail(scene, PAY_PSP_NO_MEMORY);
    }
    scene->count++;
    return true;
}

/* ---- Fields ---- */

struct pay_str pay_stripe_id(const struct pay_json_value *value)
{
    struct pay_str id = pay_json_str(value);
    if (id.ptr == NULL) {
        id = pay_json_str(pay_json_member(value, "id"));
    }
    if (id.len == 0 || id.len > PAY_STRIPE_ID_MAX) {
        return absent;
    }
    for (size_t i = 0; i < id.len; i++) {
        const char c = id.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_')) {
            return absent;
        }
    }
    return id;
}

static struct pay_str keep_id(struct pay_stripe_scene *scene, const struct pay_json_value *object,
                              const char *name)
{
    return pay_stripe_keep(scene, pay_stripe_id(pay_json_member(object, name)));
}

/* metadata.<name>, cut to what a column holds; a cut one is no number of ours. */
static struct pay_str keep_number(struct pay_stripe_scene *scene,
                                  const struct pay_json_value *object, const char *name)
{
    struct pay_str text = pay_json_str(pay_json_member(pay_json_member(object, "metadata"), name));
    if (text.len == 0) {
        return absent;
    }
    if (text.len > NUMBER_BYTES_MAX) {
        text.len = NUMBER_BYTES_MAX;
        while (text.len > 0 && ((unsigned char)text.ptr[text.len] & 0xC0) == 0x80) {
            text.len--; /* Not in the middle of a character. */
        }
    }
    return pay_stripe_keep(scene, text);
}

static bool is_code(struct pay_str text)
{
    if (text.len == 0 || text.len > CODE_BYTES_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              strchr("_.-", c) != NULL)) {
            return false;
        }
    }
    return true;
}

static struct pay_str keep_code(struct pay_stripe_scene *scene, struct pay_str text)
{
    return is_code(text) ? pay_stripe_keep(scene, text) : absent;
}

/* Seconds since 1970 to microseconds; anything else is "not said". */
static int64_t time_us(const struct pay_json_value *value)
{
    int64_t seconds = 0;
    return pay_json_int(value, &seconds) && seconds > 0 && seconds < SECONDS_MAX
               ? seconds * SECOND_US
               : 0;
}

static void add_reference(struct pay_event *event, enum pay_reference_kind kind,
                          struct pay_str reference)
{
    if (reference.ptr != NULL && event->reference_count < PAY_REFERENCES_PER_EVENT_MAX) {
        event->references[event->reference_count++] = (struct pay_reference){kind, reference};
    }
}

static bool is_ours(const struct pay_event *event)
{
    return (event->merchant_request_no.ptr != NULL &&
            pay_id_is_action(event->merchant_request_no)) ||
           (event->action_id.ptr != NULL && pay_id_is_action(event->action_id));
}

/* A foreign shop may sell in what payfact has no exponent for: its event is kept, not refused for
 * three days; ours must be exact. */
static bool convert_amount(struct pay_stripe_scene *scene, int64_t amount, struct pay_str currency,
                           struct pay_event *event)
{
    event->has_amount = pay_psp_amount_in(pay_stripe_currencies, amount, currency, &event->amount);
    if (event->has_amount) {
        return true;
    }
    if (is_ours(event)) {
        char upper[PAY_CURRENCY_SIZE];
        return pay_stripe_fail(scene, pay_psp_currency_upper(currency, upper)
                                          ? PAY_PSP_BAD_AMOUNT
                                          : PAY_PSP_BAD_CURRENCY);
    }
    event->type = PAY_EV_OTHER;
    return true;
}

static bool set_amount(struct pay_stripe_scene *scene, const struct pay_json_value *object,
                       const char *field, struct pay_event *event)
{
    int64_t amount = 0;
    const struct pay_json_value *value = pay_json_member(object, field);
    const struct pay_str currency = pay_json_str(pay_json_member(object, "currency"));
    if (pay_json_kind(value) == PAY_JSON_ABSENT || pay_json_is_null(value) ||
        currency.ptr == NULL) {
        return pay_stripe_fail(scene, PAY_PSP_FIELD_MISSING);
    }
    if (!pay_json_int(value, &amount) || amount < 0) {
        return pay_stripe_fail(scene, PAY_PSP_BAD_AMOUNT);
    }
    return convert_amount(scene, amount, currency, event);
}

/* ---- Failures ---- */

/* decline_code first, then code; what stands in neither is an ordinary decline. */
static const struct {
    const char *code;
    enum pay_failure_class class;
} classes[] = {
    {"insufficient_funds", PAY_FAILURE_INSUFFICIENT_FUNDS},
    {"card_velocity_exceeded", PAY_FAILURE_INSUFFICIENT_FUNDS},
    {"withdrawal_count_limit_exceeded", PAY_FAILURE_INSUFFICIENT_FUNDS},
    {"fraudulent", PAY_FAILURE_FRAUD_SUSPECTED},
    {"highest_risk_level", PAY_FAILURE_FRAUD_SUSPECTED},
    {"elevated_risk_level", PAY_FAILURE_FRAUD_SUSPECTED},
    {"lost_card", PAY_FAILURE_FRAUD_SUSPECTED},
    {"merchant_blacklist", PAY_FAILURE_FRAUD_SUSPECTED},
    {"pickup_card", PAY_FAILURE_FRAUD_SUSPECTED},
    {"security_violation", PAY_FAILURE_FRAUD_SUSPECTED},
    {"stolen_card", PAY_FAILURE_FRAUD_SUSPECTED},
    {"authentication_required", PAY_FAILURE_AUTHENTICATION_FAILED},
    {"authentication_not_handled", PAY_FAILURE_AUTHENTICATION_FAILED},
    {"payment_intent_authentication_failure", PAY_FAILURE_AUTHENTICATION_FAILED},
    {"payment_method_customer_decline", PAY_FAILURE_AUTHENTICATION_FAILED},
    {"offline_pin_required", PAY_FAILURE_AUTHENTICATION_FAILED},
    {"online_or_offline_pin_required", PAY_FAILURE_AUTHENTICATION_FAILED},
    {"payment_intent_payment_attempt_expired", PAY_FAILURE_EXPIRED},
    {"payment_intent_payment_attempt_failed", PAY_FAILURE_DECLINED},
    {"expired_card", PAY_FAILURE_DECLINED},
    {"issuer_not_available", PAY_FAILURE_PSP_ERROR},
    {"processing_error", PAY_FAILURE_PSP_ERROR},
    {"reenter_transaction", PAY_FAILURE_PSP_ERROR},
    {"try_again_later", PAY_FAILURE_PSP_ERROR},
    {"payment_method_provider_timeout", PAY_FAILURE_PSP_ERROR},
    {"live_mode_test_card", PAY_FAILURE_CONFIGURATION},
    {"testmode_decline", PAY_FAILURE_CONFIGURATION},
};

static bool class_of(struct pay_str code, enum pay_failure_class *ret_class)
{
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (pay_str_eq_c(code, classes[i].code)) {
            *ret_class = classes[i].class;
            return true;
        }
    }
    return false;
}

void pay_stripe_failure(struct pay_stripe_scene *scene, struct pay_str code,
                        struct pay_str decline_code, struct pay_event *event)
{
    event->failure_class = PAY_FAILURE_DECLINED;
    if (!class_of(decline_code, &event->failure_class)) {
        (void)class_of(code, &event->failure_class); /* Neither is known: an ordinary decline. */
    }
    const bool both = is_code(code) && is_code(decline_code) && !pay_str_eq(code, decline_code) &&
                      code.len + decline_code.len < CODE_BYTES_MAX;
    if (!both) {
        event->failure_code = keep_code(scene, is_code(decline_code) ? decline_code : code);
        return;
    }
    event->failure_code = pay_arena_printf(scene->arena, "%.*s.%.*s", (int)code.len, code.ptr,
                                           (int)decline_code.len, decline_code.ptr);
    if (event->failure_code.ptr == NULL) {
        (void)pay_stripe_fail(scene, PAY_PSP_NO_MEMORY); /* Told by the next push. */
    }
}

static void set_failure(struct pay_stripe_scene *scene, const struct pay_json_value *error,
                        struct pay_event *event)
{
    pay_stripe_failure(scene, pay_json_str(pay_json_member(error, "code")),
                       pay_json_str(pay_json_member(error, "decline_code")), event);
}

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
            .expires_at_us =
                steps[i].expiry == NULL ? 0 : time_us(pay_json_path(next, steps[i].expiry))};
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
    return time_us(pay_json_path(charge, "payment_method_details.card.capture_before"));
}

bool pay_stripe_intent(struct pay_stripe_scene *scene, const struct pay_json_value *intent,
                       enum pay_stripe_fact fact)
{
    if (fact == PAY_STRIPE_SUC &&
        pay_str_eq_c(pay_json_str(pay_json_member(intent, "capture_method")), "manual")) {
        fact = PAY_STRIPE_CAPTURED;
    }
    struct pay_event event = pay_stripe_event(scene, facts[fact].type);
    event.provider_payment_id = keep_id(scene, intent, "id");
    if (event.provider_payment_id.ptr == NULL) {
        return pay_stripe_fail(scene, PAY_PSP_FIELD_MISSING);
    }
    event.merchant_request_no = keep_number(scene, intent, "order_id");
    add_reference(&event, PAY_REF_INTENT, event.provider_payment_id);
    if (facts[fact].is_money) {
        const struct pay_str charge = keep_id(scene, intent, "latest_charge");
        add_reference(&event, PAY_REF_CHARGE, charge);
        /* A charge is captured once: its id tells one capture from another. */
        event.provider_action_id = fact == PAY_STRIPE_CAPTURED ? charge : absent;
    }
    if (fact == PAY_STRIPE_CAPTURED) {
        event.action_id = keep_number(scene, intent, "capture_ref");
    }
    if (fact == PAY_STRIPE_AUT) {
        event.authorization_expires_at_us =
            capture_before_us(pay_json_member(intent, "latest_charge"));
    }
    if (fact == PAY_STRIPE_DEC) {
        const struct pay_json_value *last = pay_json_member(intent, "last_payment_error");
        set_failure(scene, pay_json_kind(last) == PAY_JSON_OBJECT ? last : scene->error, &event);
    }
    if (fact == PAY_STRIPE_CAN) {
        event.failure_code =
            keep_code(scene, pay_json_str(pay_json_member(intent, "cancellation_reason")));
    }
    set_action(scene, intent, &event);
    return set_amount(scene, intent, facts[fact].intent_amount, &event) &&
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
    const struct pay_str id = keep_id(scene, charge, "id");
    const struct pay_str intent = keep_id(scene, charge, "payment_intent");
    if (id.ptr == NULL) {
        return pay_stripe_fail(scene, PAY_PSP_FIELD_MISSING);
    }
    event.provider_payment_id = intent.ptr != NULL ? intent : id;
    event.merchant_request_no = keep_number(scene, charge, "order_id");
    add_reference(&event, PAY_REF_INTENT, intent);
    if (is_money) {
        add_reference(&event, PAY_REF_CHARGE, id);
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
    return set_amount(scene, charge, is_money ? captured_field(charge) : "amount", &event) &&
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
           convert_amount(scene, sum, currency, &event) && pay_stripe_push(scene, &event);
}

/* ---- Refund ---- */

static const struct {
    const char *status;
    enum pay_event_type type;
} refund_types[] = {
    {"pending", PAY_EV_REFUND_PROCESSING},  {"requires_action", PAY_EV_REFUND_PROCESSING},
    {"succeeded", PAY_EV_REFUND_SUCCEEDED}, {"failed", PAY_EV_REFUND_FAILED},
    {"canceled", PAY_EV_REFUND_FAILED},
};

static bool refund_type(const struct pay_json_value *refund, enum pay_event_type *ret_type)
{
    const struct pay_str status = pay_json_str(pay_json_member(refund, "status"));
    for (size_t i = 0; i < sizeof refund_types / sizeof refund_types[0]; i++) {
        if (pay_str_eq_c(status, refund_types[i].status)) {
            *ret_type = refund_types[i].type;
            return true;
        }
    }
    return false;
}

/* Stripe writes a refund for what it releases as well: done, and yet without a movement of the
 * balance, for the money had never come in. One that bears our number was asked for. */
static bool is_release(const struct pay_json_value *refund, const struct pay_event *event)
{
    return event->type == PAY_EV_REFUND_SUCCEEDED && event->action_id.ptr == NULL &&
           pay_json_is_null(pay_json_member(refund, "balance_transaction"));
}

bool pay_stripe_refund(struct pay_stripe_scene *scene, const struct pay_json_value *refund)
{
    enum pay_event_type type = PAY_EV_OTHER;
    const struct pay_str id = keep_id(scene, refund, "id");
    const struct pay_str intent = keep_id(scene, refund, "payment_intent");
    const struct pay_str charge = keep_id(scene, refund, "charge");
    if (id.ptr == NULL || (intent.ptr == NULL && charge.ptr == NULL) ||
        !refund_type(refund, &type)) {
        return pay_stripe_fail(scene, PAY_PSP_FIELD_MISSING);
    }
    struct pay_event event = pay_stripe_event(scene, type);
    event.provider_payment_id = intent.ptr != NULL ? intent : charge;
    event.provider_action_id = id;
    event.merchant_request_no = keep_number(scene, refund, "order_id");
    event.action_id = keep_number(scene, refund, "refund_ref");
    add_reference(&event, PAY_REF_INTENT, intent);
    add_reference(&event, PAY_REF_CHARGE, charge);
    add_reference(&event, PAY_REF_REFUND, id);
    if (type == PAY_EV_REFUND_FAILED) {
        event.failure_class = PAY_FAILURE_OTHER;
        event.failure_code =
            keep_code(scene, pay_json_str(pay_json_member(refund, "failure_reason")));
    }
    if (is_release(refund, &event)) {
        event.type = PAY_EV_OTHER;
        return pay_stripe_push(scene, &event);
    }
    return set_amount(scene, refund, "amount", &event) && pay_stripe_push(scene, &event);
}

/* ---- Dispute ---- */

/* Indexes of Avro DisputeStatus and DisputeFunds. */
enum { OPENED, EVIDENCE_DUE, UNDER_REVIEW, WON, LOST, CLOSED };
enum { FUNDS_UNCHANGED, FUNDS_WITHDRAWN, FUNDS_REINSTATED };

static const struct {
    const char *status;
    enum pay_event_type type;
    int index;
} dispute_statuses[] = {
    {"warning_needs_response", PAY_EV_DISPUTE_EVIDENCE_DUE, EVIDENCE_DUE},
    {"needs_response", PAY_EV_DISPUTE_EVIDENCE_DUE, EVIDENCE_DUE},
    {"warning_under_review", PAY_EV_DISPUTE_UNDER_REVIEW, UNDER_REVIEW},
    {"under_review", PAY_EV_DISPUTE_UNDER_REVIEW, UNDER_REVIEW},
    {"won", PAY_EV_DISPUTE_WON, WON},
    {"lost", PAY_EV_DISPUTE_LOST, LOST},
    {"warning_closed", PAY_EV_DISPUTE_CLOSED, CLOSED},
    {"prevented", PAY_EV_DISPUTE_CLOSED, CLOSED},
};

static int funds_of(enum pay_event_type type)
{
    if (type == PAY_EV_DISPUTE_FUNDS_WITHDRAWN) {
        return FUNDS_WITHDRAWN;
    }
    return type == PAY_EV_DISPUTE_FUNDS_REINSTATED ? FUNDS_REINSTATED : FUNDS_UNCHANGED;
}

/* @param type what the event's name says; OTHER: the dispute's status decides. */
static bool dispute_detail(struct pay_stripe_scene *scene, const struct pay_json_value *dispute,
                           enum pay_event_type type, struct pay_event *event)
{
    const struct pay_str status = pay_json_str(pay_json_member(dispute, "status"));
    for (size_t i = 0; i < sizeof dispute_statuses / sizeof dispute_statuses[0]; i++) {
        if (!pay_str_eq_c(status, dispute_statuses[i].status)) {
            continue;
        }
        event->type = type == PAY_EV_OTHER ? dispute_statuses[i].type : type;
        event->dispute = (struct pay_dispute_detail){
            .is_set = true,
            .status = type == PAY_EV_DISPUTE_OPENED ? OPENED : dispute_statuses[i].index,
            .funds = funds_of(type),
            .is_inquiry = pay_str_starts(status, "warning_"),
            .reason_code = keep_code(scene, pay_json_str(pay_json_member(dispute, "reason"))),
            .evidence_due_at_us = time_us(pay_json_path(dispute, "evidence_details.due_by"))};
        return true;
    }
    return pay_stripe_fail(scene, PAY_PSP_FIELD_MISSING);
}

bool pay_stripe_dispute(struct pay_stripe_scene *scene, const struct pay_json_value *dispute,
                        enum pay_event_type type)
{
    struct pay_event event = pay_stripe_event(scene, PAY_EV_OTHER);
    const struct pay_str id = keep_id(scene, dispute, "id");
    const struct pay_str intent = keep_id(scene, dispute, "payment_intent");
    const struct pay_str charge = keep_id(scene, dispute, "charge");
    if (id.ptr == NULL || (intent.ptr == NULL && charge.ptr == NULL)) {
        return pay_stripe_fail(scene, PAY_PSP_FIELD_MISSING);
    }
    event.provider_payment_id = intent.ptr != NULL ? intent : charge;
    event.provider_action_id = id;
    event.merchant_request_no = keep_number(scene, dispute, "order_id");
    add_reference(&event, PAY_REF_INTENT, intent);
    add_reference(&event, PAY_REF_CHARGE, charge);
    add_reference(&event, PAY_REF_DISPUTE, id);
    return dispute_detail(scene, dispute, type, &event) &&
           set_amount(scene, dispute, "amount", &event) && pay_stripe_push(scene, &event);
}

/* ---- Checkout session, and what decides nothing ---- */

bool pay_stripe_session(struct pay_stripe_scene *scene, const struct pay_json_value *session,
                        enum pay_stripe_fact fact)
{
    const struct pay_str intent = keep_id(scene, session, "payment_intent");
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
    event.merchant_request_no = keep_number(scene, session, "order_id");
    add_reference(&event, PAY_REF_INTENT, intent);
    if (fact == PAY_STRIPE_DEC) {
        event.failure_class = PAY_FAILURE_DECLINED;
    }
    return set_amount(scene, session, "amount_total", &event) && pay_stripe_push(scene, &event);
}

bool pay_stripe_other(struct pay_stripe_scene *scene, const struct pay_json_value *object)
{
    struct pay_event event = pay_stripe_event(scene, PAY_EV_OTHER);
    const struct pay_str id = keep_id(scene, object, "id");
    event.merchant_request_no = keep_number(scene, object, "order_id");
    if (id.ptr != NULL && pay_str_starts(id, "pi_")) {
        event.provider_payment_id = id;
        add_reference(&event, PAY_REF_INTENT, id);
    } else {
        event.provider_payment_id = keep_id(scene, object, "payment_intent");
        event.provider_action_id = id;
    }
    return pay_stripe_push(scene, &event);
}
