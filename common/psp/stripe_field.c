/* SPDX-License-Identifier: Apache-2.0 */
/* The scene in which objects become items, and the fields that they have in common. */
#include "common/psp/stripe_internal.h"

#include "common/core/id.h"

#include <string.h>

#include "common/base/banned.h"

#define NUMBER_BYTES_MAX \
    64 /**< Ours have 29; a longer one is foreign, its beginning says as much. */
#define CODE_BYTES_MAX (PAY_CODE_SIZE - 1)
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

struct pay_str pay_stripe_keep_id(struct pay_stripe_scene *scene,
                                  const struct pay_json_value *object, const char *name)
{
    return pay_stripe_keep(scene, pay_stripe_id(pay_json_member(object, name)));
}

#define CARD_DIGITS_MIN 13

/* Luhn's check over a whole run of digits, as the numbers of cards have it. */
static bool is_card(const char *digits, size_t count)
{
    unsigned sum = 0;
    for (size_t i = 0; i < count; i++) {
        const unsigned digit = (unsigned)(digits[count - 1 - i] - '0') * (i % 2 == 0 ? 1U : 2U);
        sum += digit > 9 ? digit - 9 : digit;
    }
    return count >= CARD_DIGITS_MIN && count <= 19 && sum % 10 == 0;
}

/* A number as shops have them, and not somebody's name, address or card. */
static bool is_order_number(struct pay_str text)
{
    size_t digits = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];
        const bool is_digit = c >= '0' && c <= '9';
        if (!is_digit && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') &&
            (c == '\0' || strchr("_.:/#-", c) == NULL)) {
            return false;
        }
        digits = is_digit ? digits + 1 : 0;
        const bool is_end = i + 1 == text.len || text.ptr[i + 1] < '0' || text.ptr[i + 1] > '9';
        if (is_digit && is_end && is_card(text.ptr + i + 1 - digits, digits)) {
            return false;
        }
    }
    return true;
}

/* metadata.<name>, cut to what a column holds; a cut one is no number of ours. Who shares the PSP
 * account may write anything there: what is no number is not carried on, the sealed body has it. */
struct pay_str pay_stripe_keep_number(struct pay_stripe_scene *scene,
                                      const struct pay_json_value *object, const char *name)
{
    struct pay_str text = pay_json_str(pay_json_member(pay_json_member(object, "metadata"), name));
    if (text.len == 0) {
        return absent;
    }
    if (!is_order_number(text)) {
        return PAY_STR("withheld");
    }
    if (text.len > NUMBER_BYTES_MAX) {
        text.len = NUMBER_BYTES_MAX;
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

struct pay_str pay_stripe_keep_code(struct pay_stripe_scene *scene, struct pay_str text)
{
    return is_code(text) ? pay_stripe_keep(scene, text) : absent;
}

/* Seconds since 1970 to microseconds; anything else is "not said". */
int64_t pay_stripe_time_us(const struct pay_json_value *value)
{
    int64_t seconds = 0;
    return pay_json_int(value, &seconds) && seconds > 0 && seconds < SECONDS_MAX
               ? seconds * SECOND_US
               : 0;
}

void pay_stripe_add_reference(struct pay_event *event, enum pay_reference_kind kind,
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
bool pay_stripe_convert_amount(struct pay_stripe_scene *scene, int64_t amount,
                               struct pay_str currency, struct pay_event *event)
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

bool pay_stripe_set_amount(struct pay_stripe_scene *scene, const struct pay_json_value *object,
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
    return pay_stripe_convert_amount(scene, amount, currency, event);
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
        event->failure_code =
            pay_stripe_keep_code(scene, is_code(decline_code) ? decline_code : code);
        return;
    }
    event->failure_code = pay_arena_printf(scene->arena, "%.*s.%.*s", (int)code.len, code.ptr,
                                           (int)decline_code.len, decline_code.ptr);
    if (event->failure_code.ptr == NULL) {
        (void)pay_stripe_fail(scene, PAY_PSP_NO_MEMORY); /* Told by the next push. */
    }
}

void pay_stripe_set_failure(struct pay_stripe_scene *scene, const struct pay_json_value *error,
                            struct pay_event *event)
{
    pay_stripe_failure(scene, pay_json_str(pay_json_member(error, "code")),
                       pay_json_str(pay_json_member(error, "decline_code")), event);
}
