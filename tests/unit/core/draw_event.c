/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/core/draw.h"

static uint64_t state;

void draw_begin(uint64_t seed)
{
    state = seed;
}

int draw_pick(int count)
{
    state ^= state << 13; /* xorshift64 */
    state ^= state >> 7;
    state ^= state << 17;
    return (int)((state >> 11) % (uint64_t)count);
}

bool draw_one_in(int count)
{
    return draw_pick(count) == 0;
}

static const char *const numbers[] = {"C01", "C02", "R01", "R02", "R03", "R09"};

struct pay_money_action *draw_find_action(struct world *w, const char *tail)
{
    for (size_t i = 0; i < w->snap.capture_count + w->snap.refund_count; i++) {
        struct pay_money_action *action =
            i < w->snap.capture_count ? &w->captures[i] : &w->refunds[i - w->snap.capture_count];
        if (strcmp(action->action_id + 26, tail) == 0) {
            return action;
        }
    }
    return NULL;
}

static void random_references(struct world *w)
{
    static const char *const names[] = {"pi_1", "pi_2", "ch_1", "re_1", "du_1", "cap_1", "x"};

    w->event.provider_payment_id = pay_str_of(draw_one_in(2) ? ONE_OF(names) : NULL);
    w->event.same_object = draw_one_in(4);
    w->event.reference_count = (size_t)draw_pick(3);
    for (size_t i = 0; i < 4; i++) { /* Those behind the count are not said. */
        w->event.references[i] =
            (struct pay_reference){(enum pay_reference_kind)draw_pick(PAY_REFERENCE_KIND_COUNT),
                                   pay_str_of(ONE_OF(names))};
    }
}

/* By what the event names its attempt: mostly our number of it, else a number of a capture or
 * refund, or nothing but what it answers and what the PSP calls things. */
static void random_name(struct world *w)
{
    if (draw_one_in(5)) {
        w->event.merchant_request_no =
            pay_str_of(draw_one_in(3) ? world_id(ONE_OF(numbers)) : NULL);
    }
    if (draw_one_in(30)) {
        w->event.merchant_request_no = pay_str_of(draw_one_in(2) ? "SHOP-77" : world_id("A09"));
    }
    if (draw_one_in(40)) {
        w->event.psp_account = PAY_STR("account-9");
    }
    if (draw_one_in(40)) {
        w->event.psp = PAY_STR("psp9");
    }
}

static void random_detail(struct world *w)
{
    random_name(w);
    w->event.action.is_set = draw_one_in(2);
    w->event.action.expires_at_us = draw_one_in(3) ? w->now_us + draw_pick(2000) * SECOND : 0;
    w->event.success_when_automatic = draw_one_in(3);
    w->event.failure_class = (enum pay_failure_class)draw_pick(PAY_FAILURE_CLASS_COUNT);
    w->event.failure_code = pay_str_of(draw_one_in(2) ? "card_declined" : NULL);
    w->event.authorization_expires_at_us =
        draw_one_in(3) ? w->now_us + draw_pick(4000) * SECOND : 0;
    w->input.foreign_reference = draw_one_in(40);
}

/* As it would come, nine times in ten. */
static enum pay_evidence evidence_of(enum pay_event_type type)
{
    static const enum pay_evidence levels[] = {PAY_EVIDENCE_SYNC_RESPONSE, PAY_EVIDENCE_WEBHOOK,
                                               PAY_EVIDENCE_WEBHOOK,       PAY_EVIDENCE_QUERY,
                                               PAY_EVIDENCE_QUERY,         PAY_EVIDENCE_STATEMENT};

    if (draw_one_in(10)) {
        return (enum pay_evidence)(1 + draw_pick(PAY_EVIDENCE_STATEMENT));
    }
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
        return PAY_EVIDENCE_LOCAL;
    case PAY_EV_ATTEMPT_NOT_FOUND:
    case PAY_EV_CAPTURE_NOT_FOUND:
    case PAY_EV_REFUND_NOT_FOUND:
        return PAY_EVIDENCE_QUERY;
    default:
        return ONE_OF(levels);
    }
}

void draw_attempt_event(struct world *w)
{
    static const enum pay_event_type likely[] = {
        PAY_EV_ATTEMPT_SUBMITTED,  PAY_EV_ATTEMPT_PROCESSING, PAY_EV_ATTEMPT_ACTION_REQUIRED,
        PAY_EV_ATTEMPT_AUTHORIZED, PAY_EV_ATTEMPT_SUCCEEDED,  PAY_EV_ATTEMPT_UNKNOWN,
        PAY_EV_ATTEMPT_DECLINED,   PAY_EV_ATTEMPT_NOT_FOUND,  PAY_EV_ATTEMPT_FAILED,
        PAY_EV_ATTEMPT_CANCELED,   PAY_EV_ATTEMPT_APPROVED,
    };
    static const char *const jobs[] = {".SUBMIT",   ".CONFIRM.1", ".CANCEL", ".CANCEL.2",
                                       ".QUERY.v3", ".QUERY.12",  ".odd",    ""};
    const bool is_likely = !draw_one_in(4);

    world_event(w, is_likely ? ONE_OF(likely) : (enum pay_event_type)draw_pick(PAY_EV_COUNT),
                1 + draw_pick((int)w->snap.attempt_count));
    if (draw_one_in(2)) {
        random_references(w);
    }
    if (draw_one_in(2)) {
        world_answers(w, ONE_OF(jobs), (enum pay_query_by)draw_pick(PAY_QUERY_BY_COUNT),
                      w->now_us - 200 * SECOND + draw_pick(400) * SECOND);
        w->event.call.send_no = draw_pick(3);
        w->event.call.http_status = draw_one_in(2) ? 200 : 0;
        w->event.call.is_set = !draw_one_in(12);
    }
    random_detail(w);
    if (draw_one_in(12)) {
        w->event.amount.amount_minor = draw_one_in(3) ? INT64_MAX : draw_pick(20000) - 5000;
    }
    if (draw_one_in(30)) {
        (void)snprintf(w->event.amount.currency, sizeof w->event.amount.currency, "USD");
    }
    world_decide(w, evidence_of(w->event.type));
}

static void action_answer(struct world *w, const char *tail)
{
    static const char *const jobs[] = {".REFUND", ".REFUND.2", ".CAPTURE", ".QUERY.v5", ".QUERY.9"};
    char job[40];

    (void)snprintf(job, sizeof job, "%s%s", tail, ONE_OF(jobs));
    world_action_answers(w, job, (enum pay_query_by)draw_pick(PAY_QUERY_BY_COUNT),
                         w->now_us - 100 * SECOND + draw_pick(300) * SECOND);
    w->event.call.send_no = draw_pick(3);
    w->event.call.retry_after_s = draw_one_in(3) ? draw_pick(100) : 0;
}

void draw_action_event(struct world *w)
{
    static const char *const names[] = {"re_1", "re_2", "cap_1", "ch_1"};
    const char *tail = ONE_OF(numbers);
    const struct pay_money_action *action = draw_find_action(w, tail);
    const int first = tail[0] == 'C' ? PAY_EV_CAPTURE_SUBMITTED : PAY_EV_REFUND_SUBMITTED;
    const int last = tail[0] == 'C' ? PAY_EV_CAPTURE_REVERSED : PAY_EV_REFUND_SUM;
    const int attempt_no =
        action == NULL ? 1 + draw_pick((int)w->snap.attempt_count) : action->attempt_index + 1;

    world_event(w, (enum pay_event_type)(first + draw_pick(last - first + 1)), attempt_no);
    w->event.action_id = pay_str_of(draw_one_in(4) ? NULL : world_id(tail));
    w->event.provider_action_id = pay_str_of(draw_one_in(2) ? ONE_OF(names) : NULL);
    w->event.has_amount = !draw_one_in(10);
    w->event.amount = (struct pay_money){1 + draw_pick(6000), "EUR"};
    if (action != NULL && !draw_one_in(6)) {
        w->event.amount = action->amount;
    }
    if (draw_one_in(2)) {
        action_answer(w, tail);
    }
    if (draw_one_in(4)) {
        random_references(w);
    }
    w->event.failure_class = (enum pay_failure_class)draw_pick(PAY_FAILURE_CLASS_COUNT);
    w->event.failure_code = pay_str_of(draw_one_in(2) ? "insufficient_funds" : NULL);
    random_name(w);
    world_decide(w, evidence_of(w->event.type));
}

void draw_dispute_event(struct world *w)
{
    static const char *const names[] = {"du_1", "du_2"};
    const int kinds = PAY_EV_DISPUTE_CLOSED - PAY_EV_DISPUTE_OPENED + 1;

    world_event(w, (enum pay_event_type)(PAY_EV_DISPUTE_OPENED + draw_pick(kinds)),
                1 + draw_pick((int)w->snap.attempt_count));
    w->event.provider_action_id = pay_str_of(draw_one_in(12) ? NULL : ONE_OF(names));
    w->event.has_amount = !draw_one_in(10);
    w->event.amount = (struct pay_money){draw_one_in(3) ? 1 + draw_pick(9000) : 4000, "EUR"};
    w->event.dispute = (struct pay_dispute_detail){
        .is_set = !draw_one_in(6),
        .status = draw_pick(PAY_DISPUTE_STATUS_COUNT + 1),
        .funds = draw_pick(4),
        .is_inquiry = draw_one_in(4),
        .reason_code = pay_str_of(draw_one_in(2) ? "fraudulent" : NULL),
        .evidence_due_at_us = draw_one_in(2) ? w->now_us + draw_pick(3000) * SECOND : 0};
    random_name(w);
    random_references(w);
    world_decide(w, evidence_of(w->event.type));
}
