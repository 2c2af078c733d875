/* SPDX-License-Identifier: Apache-2.0 */
#include "common/psp/stripe_internal.h"

#include <string.h>

#include "common/base/banned.h"

#define ITEMS_PER_EVENT_MAX 4
#define TYPE_BYTES_MAX 100

/** How a type's object becomes items. */
struct rule {
    const char *type;
    bool (*take)(struct pay_stripe_scene *scene, const struct pay_json_value *object,
                 const struct rule *rule);
    const char *status; /**< The object must have it, or the event decides nothing; NULL: any. */
    enum pay_stripe_fact fact;
    enum pay_event_type dispute;
};

static bool take_intent(struct pay_stripe_scene *scene, const struct pay_json_value *object,
                        const struct rule *rule)
{
    return pay_stripe_intent(scene, object, rule->fact);
}

static bool take_charge(struct pay_stripe_scene *scene, const struct pay_json_value *object,
                        const struct rule *rule)
{
    return pay_stripe_charge(scene, object, rule->fact);
}

/* A cumulative sum is never a refund; but money went back, so it was there: SUC before it. Where
 * the authorization was only released, neither is true. */
static bool take_refunded_charge(struct pay_stripe_scene *scene,
                                 const struct pay_json_value *object, const struct rule *rule)
{
    (void)rule;
    return pay_stripe_paid_charge(scene, object) && pay_stripe_refund_sum(scene, object) &&
           (scene->count > 0 || pay_stripe_other(scene, object));
}

static bool take_refund(struct pay_stripe_scene *scene, const struct pay_json_value *object,
                        const struct rule *rule)
{
    (void)rule;
    /* The payment's own amount does not stand in a refund; where the charge came along, it proves
     * the payment. */
    const struct pay_json_value *charge = pay_json_member(object, "charge");
    return (pay_json_kind(charge) != PAY_JSON_OBJECT || pay_stripe_paid_charge(scene, charge)) &&
           pay_stripe_refund(scene, object);
}

static bool take_dispute(struct pay_stripe_scene *scene, const struct pay_json_value *object,
                         const struct rule *rule)
{
    return pay_stripe_dispute(scene, object, rule->dispute);
}

static bool take_session(struct pay_stripe_scene *scene, const struct pay_json_value *object,
                         const struct rule *rule)
{
    return pay_stripe_session(scene, object, rule->fact);
}

#define OTHER PAY_EV_OTHER
/* What stands in no row decides nothing: created (our own answer says more), review, radar, ... */
static const struct rule rules[] = {
    {"payment_intent.requires_action", take_intent, "requires_action", PAY_STRIPE_ACT, OTHER},
    {"payment_intent.partially_funded", take_intent, "requires_action", PAY_STRIPE_ACT, OTHER},
    {"payment_intent.processing", take_intent, "processing", PAY_STRIPE_PRC, OTHER},
    {"payment_intent.amount_capturable_updated", take_intent, "requires_capture", PAY_STRIPE_AUT,
     OTHER},
    {"payment_intent.succeeded", take_intent, "succeeded", PAY_STRIPE_SUC, OTHER},
    {"payment_intent.payment_failed", take_intent, NULL, PAY_STRIPE_DEC, OTHER},
    {"payment_intent.canceled", take_intent, "canceled", PAY_STRIPE_CAN, OTHER},
    {"charge.succeeded", take_charge, "succeeded", PAY_STRIPE_SUC, OTHER},
    {"charge.pending", take_charge, "pending", PAY_STRIPE_PRC, OTHER},
    {"charge.failed", take_charge, "failed", PAY_STRIPE_DEC, OTHER},
    {"charge.captured", take_charge, "succeeded", PAY_STRIPE_CAPTURED, OTHER},
    {"charge.expired", take_charge, NULL, PAY_STRIPE_EXPIRED, OTHER},
    {"charge.refunded", take_refunded_charge, NULL, PAY_STRIPE_SUC, OTHER},
    {"refund.created", take_refund, NULL, PAY_STRIPE_SUC, OTHER},
    {"refund.updated", take_refund, NULL, PAY_STRIPE_SUC, OTHER},
    {"refund.failed", take_refund, NULL, PAY_STRIPE_SUC, OTHER},
    {"charge.refund.updated", take_refund, NULL, PAY_STRIPE_SUC, OTHER},
    {"charge.dispute.created", take_dispute, NULL, PAY_STRIPE_SUC, PAY_EV_DISPUTE_OPENED},
    {"charge.dispute.updated", take_dispute, NULL, PAY_STRIPE_SUC, OTHER},
    {"charge.dispute.funds_withdrawn", take_dispute, NULL, PAY_STRIPE_SUC,
     PAY_EV_DISPUTE_FUNDS_WITHDRAWN},
    {"charge.dispute.funds_reinstated", take_dispute, NULL, PAY_STRIPE_SUC,
     PAY_EV_DISPUTE_FUNDS_REINSTATED},
    {"charge.dispute.closed", take_dispute, NULL, PAY_STRIPE_SUC, OTHER},
    {"checkout.session.completed", take_session, "complete", PAY_STRIPE_SUC, OTHER},
    {"checkout.session.async_payment_succeeded", take_session, NULL, PAY_STRIPE_SUC, OTHER},
    {"checkout.session.async_payment_failed", take_session, NULL, PAY_STRIPE_DEC, OTHER},
};

static const struct rule *find_rule(struct pay_str type)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (pay_str_eq_c(type, rules[i].type)) {
            return &rules[i];
        }
    }
    return NULL;
}

static int64_t days_from_civil(int64_t year, int64_t month, int64_t day)
{
    const int64_t y = year - (month <= 2);
    const int64_t era = y / 400, of_era = y % 400;
    const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* "2024-05-02T08:15:30.345Z", to the second; 0: not such a text. Thin events write time so. */
static int64_t iso_us(struct pay_str text)
{
    static const char form[] = "0000-00-00T00:00:00";
    static const size_t at[] = {0, 5, 8, 11, 14, 17}, width[] = {4, 2, 2, 2, 2, 2};
    int64_t part[6] = {0};
    if (text.len < sizeof form) {
        return 0;
    }
    for (size_t i = 0; i < sizeof form - 1; i++) {
        if (form[i] != '0' && text.ptr[i] != form[i]) {
            return 0;
        }
    }
    for (size_t i = 0; i < 6; i++) {
        if (!pay_str_to_i64((struct pay_str){text.ptr + at[i], width[i]}, &part[i]) ||
            part[i] < 0) {
            return 0;
        }
    }
    const int64_t seconds = days_from_civil(part[0], part[1], part[2]) * 86400 + part[3] * 3600 +
                            part[4] * 60 + part[5];
    return part[0] < 1970 || part[1] < 1 || part[1] > 12 ? 0 : seconds * 1000000;
}

static int64_t created_us(const struct pay_json_value *event)
{
    int64_t seconds = 0;
    const struct pay_json_value *created = pay_json_member(event, "created");
    if (!pay_json_int(created, &seconds)) {
        return iso_us(pay_json_str(created));
    }
    return seconds > 0 && seconds < INT64_C(253402300800) ? seconds * 1000000 : 0;
}

/* A test event on a live account (or of another account of the same platform) must move nothing. */
static enum pay_psp_reason check_origin(const struct pay_psp_account *account,
                                        const struct pay_json_value *event, bool is_thin)
{
    bool live = false;
    const struct pay_json_value *mode = pay_json_member(event, "livemode");
    if (!pay_json_bool(mode, &live)) {
        return is_thin && mode == NULL ? PAY_PSP_OK : PAY_PSP_FIELD_MISSING;
    }
    if (live != account->live) {
        return PAY_PSP_WRONG_MODE;
    }
    const char *wanted = pay_psp_setting(account, "connect_account");
    const struct pay_str given = pay_json_str(pay_json_member(event, "account"));
    const bool fits = wanted == NULL ? given.ptr == NULL : pay_str_eq_c(given, wanted);
    return fits ? PAY_PSP_OK : PAY_PSP_WRONG_ACCOUNT;
}

static enum pay_psp_reason read_envelope(struct pay_stripe_scene *scene,
                                         const struct pay_json_value *event, bool *ret_thin)
{
    const struct pay_str object = pay_json_str(pay_json_member(event, "object"));
    const struct pay_str id = pay_stripe_id(pay_json_member(event, "id"));
    const struct pay_str type = pay_json_str(pay_json_member(event, "type"));
    *ret_thin = pay_str_starts(object, "v2.");
    if (!*ret_thin && !pay_str_eq_c(object, "event")) {
        return PAY_PSP_MALFORMED_EVENT;
    }
    if (id.ptr == NULL || type.len == 0 || type.len > TYPE_BYTES_MAX) {
        return PAY_PSP_FIELD_MISSING;
    }
    scene->transport_key = pay_stripe_keep(scene, id);
    scene->type_name = pay_stripe_keep(scene, type);
    scene->occurred_at_us = created_us(event);
    return scene->reason != PAY_PSP_OK ? scene->reason
                                       : check_origin(scene->account, event, *ret_thin);
}

static bool take_event(struct pay_stripe_scene *scene, const struct pay_json_value *event)
{
    bool is_thin = false;
    const enum pay_psp_reason reason = read_envelope(scene, event, &is_thin);
    if (reason != PAY_PSP_OK) {
        return pay_stripe_fail(scene, reason);
    }
    if (is_thin) {
        return pay_stripe_other(scene, pay_json_member(event, "related_object"));
    }
    const struct pay_json_value *object = pay_json_path(event, "data.object");
    if (pay_json_kind(object) != PAY_JSON_OBJECT) {
        return pay_stripe_fail(scene, PAY_PSP_FIELD_MISSING);
    }
    const struct rule *rule = find_rule(scene->type_name);
    const bool fits = rule != NULL &&
                      (rule->status == NULL ||
                       pay_str_eq_c(pay_json_str(pay_json_member(object, "status")), rule->status));
    /* An event whose object says otherwise than its name is not believed, only kept. */
    return fits ? rule->take(scene, object, rule) : pay_stripe_other(scene, object);
}

enum pay_status pay_stripe_parse(const struct pay_psp_account *account,
                                 const struct pay_psp_notification *raw, struct pay_arena *arena,
                                 struct pay_psp_items *ret_items, struct pay_err *err)
{
    struct pay_json *doc = NULL;
    struct pay_stripe_scene scene = {
        .account = account, .arena = arena, .source = PAY_SOURCE_WEBHOOK, .with_action = true};
    enum pay_status status =
        pay_json_parse(raw->body, pay_psp_stripe.callback_bytes_max, &doc, err);
    if (status != PAY_OK) {
        const enum pay_psp_reason why =
            status == PAY_RETRY
                ? PAY_PSP_NO_MEMORY
                : (raw->body.len > pay_psp_stripe.callback_bytes_max ? PAY_PSP_TOO_LARGE
                                                                     : PAY_PSP_NOT_JSON);
        return pay_err_set(err, status, (int)why, "stripe event", "%s", pay_psp_reason_name(why));
    }
    if (pay_stripe_scene_init(&scene, ITEMS_PER_EVENT_MAX) &&
        take_event(&scene, pay_json_root(doc))) {
        *ret_items = (struct pay_psp_items){scene.items, scene.count};
    } else {
        status =
            pay_err_set(err, scene.reason == PAY_PSP_NO_MEMORY ? PAY_RETRY : PAY_REJECT,
                        (int)scene.reason, "stripe event", "%s", pay_psp_reason_name(scene.reason));
    }
    pay_json_free(doc);
    return status;
}
