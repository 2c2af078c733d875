/* SPDX-License-Identifier: Apache-2.0 */
/* What goes back: refunds and disputes. */
#include "common/psp/stripe_internal.h"

#include <string.h>

#include "common/base/banned.h"

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
    const struct pay_str id = pay_stripe_keep_id(scene, refund, "id");
    const struct pay_str intent = pay_stripe_keep_id(scene, refund, "payment_intent");
    const struct pay_str charge = pay_stripe_keep_id(scene, refund, "charge");
    if (id.ptr == NULL || (intent.ptr == NULL && charge.ptr == NULL) ||
        !refund_type(refund, &type)) {
        return pay_stripe_fail(scene, PAY_PSP_FIELD_MISSING);
    }
    struct pay_event event = pay_stripe_event(scene, type);
    event.provider_payment_id = intent.ptr != NULL ? intent : charge;
    event.provider_action_id = id;
    event.merchant_request_no = pay_stripe_keep_number(scene, refund, "order_id");
    event.action_id = pay_stripe_keep_number(scene, refund, "refund_ref");
    pay_stripe_add_reference(&event, PAY_REF_INTENT, intent);
    pay_stripe_add_reference(&event, PAY_REF_CHARGE, charge);
    pay_stripe_add_reference(&event, PAY_REF_REFUND, id);
    if (type == PAY_EV_REFUND_FAILED) {
        event.failure_class = PAY_FAILURE_OTHER;
        event.failure_code =
            pay_stripe_keep_code(scene, pay_json_str(pay_json_member(refund, "failure_reason")));
    }
    if (is_release(refund, &event)) {
        event.type = PAY_EV_OTHER;
        return pay_stripe_push(scene, &event);
    }
    return pay_stripe_set_amount(scene, refund, "amount", &event) && pay_stripe_push(scene, &event);
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
            .reason_code =
                pay_stripe_keep_code(scene, pay_json_str(pay_json_member(dispute, "reason"))),
            .evidence_due_at_us =
                pay_stripe_time_us(pay_json_path(dispute, "evidence_details.due_by"))};
        return true;
    }
    return pay_stripe_fail(scene, PAY_PSP_FIELD_MISSING);
}

bool pay_stripe_dispute(struct pay_stripe_scene *scene, const struct pay_json_value *dispute,
                        enum pay_event_type type)
{
    struct pay_event event = pay_stripe_event(scene, PAY_EV_OTHER);
    const struct pay_str id = pay_stripe_keep_id(scene, dispute, "id");
    const struct pay_str intent = pay_stripe_keep_id(scene, dispute, "payment_intent");
    const struct pay_str charge = pay_stripe_keep_id(scene, dispute, "charge");
    if (id.ptr == NULL || (intent.ptr == NULL && charge.ptr == NULL)) {
        return pay_stripe_fail(scene, PAY_PSP_FIELD_MISSING);
    }
    event.provider_payment_id = intent.ptr != NULL ? intent : charge;
    event.provider_action_id = id;
    event.merchant_request_no = pay_stripe_keep_number(scene, dispute, "order_id");
    pay_stripe_add_reference(&event, PAY_REF_INTENT, intent);
    pay_stripe_add_reference(&event, PAY_REF_CHARGE, charge);
    pay_stripe_add_reference(&event, PAY_REF_DISPUTE, id);
    return dispute_detail(scene, dispute, type, &event) &&
           pay_stripe_set_amount(scene, dispute, "amount", &event) &&
           pay_stripe_push(scene, &event);
}
