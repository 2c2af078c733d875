/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/work.h"

#include "common/base/banned.h"

/* What this system alone knows about its own calls; everything else comes from a PSP. */
static bool is_local(enum pay_event_type type)
{
    switch (type) {
    case PAY_EV_ATTEMPT_SUBMITTED:
    case PAY_EV_ATTEMPT_NOT_SENT:
    case PAY_EV_ATTEMPT_UNKNOWN:
    case PAY_EV_CAPTURE_SUBMITTED:
    case PAY_EV_CAPTURE_NOT_SENT:
    case PAY_EV_CAPTURE_UNKNOWN:
    case PAY_EV_REFUND_SUBMITTED:
    case PAY_EV_REFUND_NOT_SENT:
    case PAY_EV_REFUND_UNKNOWN:
        return true;
    default:
        return false;
    }
}

static const struct {
    bool may_be_event; /**< Sources that a PSP event may have. */
    bool needs_call;
    enum pay_evidence evidence;
} sources[PAY_SOURCE_COUNT] = {
    [PAY_SOURCE_SYNC] = {true, true, PAY_EVIDENCE_SYNC_RESPONSE},
    [PAY_SOURCE_WEBHOOK] = {true, false, PAY_EVIDENCE_WEBHOOK},
    [PAY_SOURCE_QUERY] = {true, true, PAY_EVIDENCE_QUERY},
    [PAY_SOURCE_STATEMENT] = {true, false, PAY_EVIDENCE_STATEMENT},
    [PAY_SOURCE_MERCHANT] = {false, false, PAY_EVIDENCE_LOCAL},
    [PAY_SOURCE_OPERATOR] = {false, false, PAY_EVIDENCE_LOCAL},
    [PAY_SOURCE_LOCAL] = {true, true, PAY_EVIDENCE_LOCAL},
    [PAY_SOURCE_UNRECOGNIZED] = {false, false, PAY_EVIDENCE_LOCAL},
};

const char *pay_derive_refuse(const struct pay_payment_input *input)
{
    const struct pay_event *event = &input->event;
    if (!sources[input->source].may_be_event) {
        return "an event from a source that brings none";
    }
    if (sources[input->source].needs_call && !event->call.is_set) {
        return "an answer that names no call";
    }
    if (event->type == PAY_EV_UNRECOGNIZED || event->type >= PAY_EV_COUNT) {
        return "an event of a type that this version does not know";
    }
    if (is_local(event->type) && input->source != PAY_SOURCE_LOCAL) {
        return "an event that only this system may report";
    }
    return NULL;
}

enum pay_evidence pay_derive_evidence(const struct pay_payment_input *input)
{
    /* A replay's answer is the stored first one: it can never say "not found". */
    if (input->source == PAY_SOURCE_QUERY &&
        input->event.call.query_by == PAY_QUERY_BY_IDEMPOTENT_REPLAY) {
        return PAY_EVIDENCE_SYNC_RESPONSE;
    }
    return sources[input->source].evidence;
}
