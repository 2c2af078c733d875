/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/property/explorer/check.h"

#include <stdio.h>
#include <string.h>

#include "tests/property/explorer/input.h"

uint64_t xp_checks[XP_INVARIANT_COUNT];

const char *xp_invariant_name(enum xp_invariant invariant)
{
    static const char *const names[XP_INVARIANT_COUNT] = {
        [XP_ONE_LIVE] = "ONE_LIVE",
        [XP_NO_SECOND_SEND] = "NO_SECOND_SEND",
        [XP_CHARGED_ONCE] = "CHARGED_ONCE",
        [XP_CLOSED_SENDS_NOTHING] = "CLOSED_SENDS_NOTHING",
        [XP_CREATED_WHEN_ALLOWED] = "CREATED_WHEN_ALLOWED",
        [XP_NONE_AFTER_MONEY] = "NONE_AFTER_MONEY",
        [XP_END_IS_DEAD] = "END_IS_DEAD",
        [XP_SUCCESS_IS_TRUE] = "SUCCESS_IS_TRUE",
        [XP_SUCCESS_STAYS] = "SUCCESS_STAYS",
        [XP_FINAL_STAYS] = "FINAL_STAYS",
        [XP_ENDS_ALONE] = "ENDS_ALONE",
        [XP_AMOUNTS] = "AMOUNTS",
        [XP_FACTS] = "FACTS",
        [XP_SEQUENCE] = "SEQUENCE",
        [XP_IDS] = "IDS",
        [XP_REPEATS] = "REPEATS",
        [XP_REJECT_IS_STILL] = "REJECT_IS_STILL",
        [XP_HOSTILE_IS_STILL] = "HOSTILE_IS_STILL",
        [XP_SOMETHING_WAITS] = "SOMETHING_WAITS",
        [XP_CONFIRMS] = "CONFIRMS",
        [XP_ENDS] = "ENDS",
        [XP_FACT_IS_TRUE] = "FACT_IS_TRUE",
    };
    return (size_t)invariant < XP_INVARIANT_COUNT ? names[invariant] : "?";
}

bool xp_check(struct xp_violation *violation, enum xp_invariant invariant, bool holds,
              const char *text)
{
    xp_checks[invariant]++;
    if (!holds && !violation->is_set) {
        violation->is_set = true;
        violation->invariant = invariant;
        (void)snprintf(violation->text, sizeof violation->text, "%s", text);
    }
    return holds;
}

/* ------------------------------------------------------------------------------------- at the PSPs
 */

static bool is_honest(const struct xp_config *config)
{
    return (config->traits & XP_DISHONEST) == 0;
}

bool xp_check_truth(const struct xp_config *config, const struct xp_world *world,
                    struct xp_violation *violation)
{
    int charged = 0;

    for (int i = 0; i < world->attempt_count; i++) {
        charged += world->attempts[i].object == XP_CHARGED ? 1 : 0;
    }
    return xp_check(violation, XP_CHARGED_ONCE, charged <= 1 || !is_honest(config),
                    "two attempts hold money");
}

static bool order_is_final(uint8_t order)
{
    return order == PAY_ORDER_SUCCEEDED || order == PAY_ORDER_FAILED ||
           order == PAY_ORDER_CANCELED || order == PAY_ORDER_EXPIRED;
}

static bool other_may_have_money(const struct xp_config *config, const struct xp_world *world,
                                 int attempt)
{
    for (int i = 0; i < world->attempt_count; i++) {
        const bool has = world->attempts[i].object == XP_CHARGED;
        if (i != attempt && (has || xp_may_succeed(world, config, i))) {
            return true;
        }
    }
    return false;
}

bool xp_check_send(const struct xp_config *config, const struct xp_world *world, int attempt,
                   struct xp_violation *violation)
{
    const struct xp_attempt *a = &world->attempts[attempt];
    const bool is_closed = world->is_canceled != 0 || order_is_final(world->order) ||
                           xp_is_final(a->status) || a->cancel_cause != PAY_CANCEL_CAUSE_NONE;

    return xp_check(violation, XP_NO_SECOND_SEND,
                    !is_honest(config) || !other_may_have_money(config, world, attempt),
                    "a charge is started while another attempt may succeed, or has") &&
           xp_check(violation, XP_CLOSED_SENDS_NOTHING, !is_closed,
                    "a send of what was withdrawn, canceled or is final") &&
           xp_check(violation, XP_NONE_AFTER_MONEY,
                    world->told < 2 || (config->traits & XP_SECOND_OBJECT) != 0,
                    "a charge is started although money was reported by callback or query");
}

/* ------------------------------------------------------------------------------------- the rows */

static bool check_live(const struct xp_transition *t, struct xp_violation *violation)
{
    const struct pay_snapshot *snap = &t->decided->rows->snap;
    int open = 0;
    int live = 0;

    for (size_t i = 0; i < snap->attempt_count; i++) {
        const bool is_open = !xp_is_final((uint8_t)snap->attempts[i].status);
        open += is_open ? 1 : 0;
        live += snap->attempts[i].live ? 1 : 0;
        if (!xp_check(violation, XP_ONE_LIVE, !is_open || snap->attempts[i].live,
                      "an open attempt is not live")) {
            return false;
        }
    }
    return xp_check(violation, XP_ONE_LIVE, open <= 1 && live <= 1, "two live attempts");
}

static bool check_amounts(const struct xp_transition *t, struct xp_violation *violation)
{
    for (size_t i = 0; i < t->decided->rows->snap.attempt_count; i++) {
        const struct pay_amounts *m = &t->decided->rows->attempts[i].amounts;
        const bool holds = m->authorized >= 0 && m->capture_reserved >= 0 && m->captured >= 0 &&
                           m->refund_reserved >= 0 && m->refunded >= 0 && m->withdrawn >= 0 &&
                           m->captured + m->capture_reserved <= m->authorized &&
                           m->refunded + m->refund_reserved <= m->captured &&
                           m->authorized <= XP_AMOUNT;
        if (!xp_check(violation, XP_AMOUNTS, holds, "amounts do not add up")) {
            return false;
        }
    }
    return true;
}

/* One attempt's state against what its PSP holds. */
static bool check_attempt(const struct xp_transition *t, int index, struct xp_violation *violation)
{
    const struct xp_attempt *a = &t->after->attempts[index];
    const struct xp_attempt *b = &t->before->attempts[index];
    const bool is_new_end = a->status != b->status &&
                            (a->status == PAY_ATTEMPT_FAILED || a->status == PAY_ATTEMPT_CANCELED);
    const bool is_paid = a->status == PAY_ATTEMPT_SUCCEEDED;
    const bool was_paid = index < t->before->attempt_count && b->status == PAY_ATTEMPT_SUCCEEDED;
    /* A PSP that misreads is believed only where nothing says better. */
    const bool speaks_true = is_honest(t->config) || (t->config->traits == XP_MISREADS &&
                                                      (a->references != 0 || a->actions != 0));
    const bool holds_it = (a->object == XP_CHARGED && a->is_short == 0) || a->second == XP_CHARGED;

    return xp_check(violation, XP_SUCCESS_STAYS, !was_paid || is_paid, "a success was left") &&
           xp_check(violation, XP_SUCCESS_IS_TRUE,
                    !is_paid || (holds_it && a->captured == XP_AMOUNT),
                    "SUCCEEDED without the money at the PSP") &&
           xp_check(violation, XP_SUCCESS_IS_TRUE, is_paid || a->captured == 0,
                    "captured without a success") &&
           xp_check(violation, XP_AMOUNTS, a->withdrawn <= a->reversed * XP_AMOUNT,
                    "more was withdrawn than the PSP took back") &&
           xp_check(violation, XP_END_IS_DEAD,
                    !is_new_end || !speaks_true ||
                        (!xp_may_be_sent(t->after, t->config, index) && a->object != XP_CHARGED),
                    "ended, but it can still succeed or has");
}

/* ------------------------------------------------------------------------------------- beginning
 */

static bool route_fails_over(const struct xp_transition *t, int index)
{
    return (t->config->failover_on_not_found >> (t->before->attempts[index].route % XP_ROUTES) &
            1) != 0;
}

static bool money_case_open(const struct xp_world *world)
{
    const uint32_t money = (UINT32_C(1) << (PAY_CASE_CAPTURE_REVERSED + 1)) - 1;
    return (xp_cases(world) & money) != 0;
}

static bool check_begun(const struct xp_transition *t, struct xp_violation *violation)
{
    const struct pay_snapshot *snap = &t->decided->rows->snap;
    const struct xp_world *w = t->after;
    const bool by_itself = t->is_not_found && t->before->intent != PAY_INTENT_CHANGE_METHOD;
    const int former = t->before->attempt_count - 1;

    if (snap->attempt_count <= t->before->attempt_count) {
        return true;
    }
    const struct pay_attempt *begun = &snap->attempts[snap->attempt_count - 1];
    return xp_check(violation, XP_CREATED_WHEN_ALLOWED,
                    t->before->exists == 0 || !order_is_final(t->before->order),
                    "an attempt on a final order") &&
           xp_check(violation, XP_CREATED_WHEN_ALLOWED, w->is_canceled == 0,
                    "an attempt after the merchant canceled") &&
           xp_check(violation, XP_CREATED_WHEN_ALLOWED, !xp_time_reached(w->window),
                    "an attempt after the failover window") &&
           xp_check(violation, XP_CREATED_WHEN_ALLOWED, !xp_time_reached(w->expires_at),
                    "an attempt on an expired order") &&
           xp_check(violation, XP_CREATED_WHEN_ALLOWED,
                    (t->config->paused >> begun->route_no & 1) == 0,
                    "an attempt on a paused route") &&
           xp_check(violation, XP_CREATED_WHEN_ALLOWED, !by_itself || route_fails_over(t, former),
                    "an attempt by itself after a not-found, where the route does not want it") &&
           xp_check(violation, XP_CREATED_WHEN_ALLOWED, !money_case_open(t->before),
                    "an attempt while a money case is open") &&
           xp_check(violation, XP_NONE_AFTER_MONEY, w->told == 0,
                    "an attempt begins although money was reported");
}

/* ------------------------------------------------------------------------------------- the order
 */

static bool check_order(const struct xp_transition *t, struct xp_violation *violation)
{
    const bool was_final = t->before->exists != 0 && order_is_final(t->before->order);
    bool has_success = false;
    bool has_open = false;

    for (int i = 0; i < t->after->attempt_count && i < XP_ATTEMPTS_MAX; i++) {
        has_success |= t->after->attempts[i].status == PAY_ATTEMPT_SUCCEEDED;
        has_open |= !xp_is_final(t->after->attempts[i].status);
    }
    return xp_check(violation, XP_FINAL_STAYS, !was_final || t->after->order == t->before->order,
                    "a final order moved") &&
           xp_check(violation, XP_ENDS_ALONE,
                    was_final || !order_is_final(t->after->order) ||
                        t->after->order == PAY_ORDER_SUCCEEDED || !has_open,
                    "an order ended unpaid beside an open attempt") &&
           xp_check(violation, XP_SUCCESS_IS_TRUE,
                    t->after->order != PAY_ORDER_SUCCEEDED || has_success,
                    "order SUCCEEDED without a success");
}

static bool check_facts(const struct xp_transition *t, struct xp_violation *violation)
{
    static const enum pay_fact_type of_status[PAY_ORDER_STATUS_COUNT] = {
        [PAY_ORDER_SUCCEEDED] = PAY_FACT_PAYMENT_SUCCEEDED,
        [PAY_ORDER_FAILED] = PAY_FACT_PAYMENT_FAILED,
        [PAY_ORDER_CANCELED] = PAY_FACT_PAYMENT_CANCELED,
        [PAY_ORDER_EXPIRED] = PAY_FACT_PAYMENT_EXPIRED,
    };
    const struct pay_decision *decision = t->decided->decision;
    const bool was_final = t->before->exists != 0 && order_is_final(t->before->order);
    const bool ends = order_is_final(t->after->order) && !was_final;
    int ending = 0;
    int wrong = 0;
    int started = 0;

    for (size_t i = 0; i < decision->effect_count; i++) {
        if (decision->effects[i].kind != PAY_EFFECT_FACT) {
            continue;
        }
        const enum pay_fact_type type = decision->effects[i].as.fact.type;
        const bool is_end = type == PAY_FACT_PAYMENT_SUCCEEDED || type == PAY_FACT_PAYMENT_FAILED ||
                            type == PAY_FACT_PAYMENT_CANCELED || type == PAY_FACT_PAYMENT_EXPIRED;
        ending += is_end ? 1 : 0;
        wrong += is_end && type != of_status[t->after->order] ? 1 : 0;
        started += type == PAY_FACT_ATTEMPT_STARTED ? 1 : 0;
    }
    const int begun = (int)t->decided->rows->snap.attempt_count - t->before->attempt_count;
    return xp_check(violation, XP_FACTS, ending == (ends ? 1 : 0) && wrong == 0,
                    "the end of the order is not published exactly once") &&
           xp_check(violation, XP_FACTS, started == begun, "AttemptStarted does not match");
}

static bool check_sequence(const struct xp_transition *t, struct xp_violation *violation)
{
    const struct pay_decision *decision = t->decided->decision;
    int64_t sequence = t->before->exists == 0 ? 0 : t->decided->sequence_before;
    bool is_gapless = true;

    for (size_t i = 0; i < decision->effect_count; i++) {
        const struct pay_effect *effect = &decision->effects[i];
        if (effect->kind == PAY_EFFECT_FACT && effect->as.fact.sequence != 0) {
            is_gapless &= effect->as.fact.sequence == ++sequence;
        }
    }
    is_gapless &= t->decided->rows->snap.order.event_sequence == sequence;
    return xp_check(violation, XP_SEQUENCE, is_gapless, "the sequence has a gap");
}

static const char *id_of(const struct pay_effect *effect)
{
    if (effect->kind == PAY_EFFECT_FACT) {
        return effect->as.fact.event_id;
    }
    return effect->kind == PAY_EFFECT_JOB ? effect->as.job.job_id : NULL;
}

static bool check_ids(const struct xp_transition *t, struct xp_violation *violation)
{
    const struct pay_decision *decision = t->decided->decision;
    bool is_unique = true;

    for (size_t i = 0; i < decision->effect_count; i++) {
        const char *id = id_of(&decision->effects[i]);
        for (size_t j = 0; id != NULL && j < i; j++) {
            const char *other = id_of(&decision->effects[j]);
            is_unique &= other == NULL || strcmp(id, other) != 0;
        }
    }
    return xp_check(violation, XP_IDS, is_unique, "two facts or jobs have one id");
}

/* ------------------------------------------------------------------------------------ what waits
 */

static bool has_row(const struct xp_attempt *a)
{
    switch (a->status) {
    case PAY_ATTEMPT_CREATED:
        return a->due[PAY_DEADLINE_SEND] != 0;
    case PAY_ATTEMPT_SUBMITTED:
    case PAY_ATTEMPT_PROCESSING:
        return a->due[PAY_DEADLINE_ANSWER] != 0;
    case PAY_ATTEMPT_REQUIRES_ACTION:
        return a->due[PAY_DEADLINE_ACTION] != 0;
    case PAY_ATTEMPT_UNKNOWN:
        return a->due[PAY_DEADLINE_QUERY] != 0;
    default:
        return false;
    }
}

static bool check_waiting(const struct xp_transition *t, struct xp_violation *violation)
{
    const struct xp_world *w = t->after;
    bool any_open = false;

    for (int i = 0; i < w->attempt_count && i < XP_ATTEMPTS_MAX; i++) {
        const struct xp_attempt *a = &w->attempts[i];
        any_open |= !xp_is_final(a->status);
        if (!xp_check(violation, XP_SOMETHING_WAITS, xp_is_final(a->status) || has_row(a),
                      "an open attempt has no deadline")) {
            return false;
        }
    }
    const bool waits = w->order_due != 0 || (w->expiry_asked != 0 && any_open);
    return xp_check(violation, XP_SOMETHING_WAITS,
                    w->exists == 0 || order_is_final(w->order) || waits,
                    "an open order has no deadline");
}

static bool check_confirms(const struct xp_transition *t, struct xp_violation *violation)
{
    for (int i = 0; i < t->after->attempt_count && i < XP_ATTEMPTS_MAX; i++) {
        const struct xp_attempt *a = &t->after->attempts[i];
        int open = 0;
        for (int n = 0; n < XP_CONFIRMS_MAX; n++) {
            const bool is_unsent = (a->confirm[n].flags & XP_GATE_SENDING) == 0;
            const bool is_closed = (a->confirm[n].flags & XP_GATE_CLOSED) != 0;
            open += (a->confirm[n].flags & XP_GATE_EXISTS) != 0 && !(is_closed && is_unsent);
        }
        const int approved = a->approvals > a->actions ? a->approvals : a->actions;
        if (!xp_check(violation, XP_CONFIRMS, open <= (approved > 0 ? approved : 1),
                      "more CONFIRMs than actions handed out or approved")) {
            return false;
        }
    }
    return true;
}

static bool differs_beside_cases(struct xp_world a, struct xp_world b)
{
    a.cases_low = b.cases_low;
    a.cases_high = b.cases_high;
    a.told = b.told;
    return memcmp(&a, &b, sizeof a) != 0;
}

static bool check_verdict(const struct xp_transition *t, struct xp_violation *violation)
{
    const bool is_reject = t->decided->decision->verdict == PAY_VERDICT_REJECT;
    struct xp_world before = *t->before;

    memcpy(before.slots, t->after->slots, sizeof before.slots);
    return xp_check(violation, XP_REPEATS, t->decided->is_repeatable,
                    "deciding again gives another result") &&
           xp_check(violation, XP_REJECT_IS_STILL,
                    !is_reject || !differs_beside_cases(before, *t->after),
                    "REJECT changed something");
}

bool xp_check_decision(const struct xp_transition *t, struct xp_violation *violation)
{
    if (!check_verdict(t, violation) || !check_live(t, violation) || !check_amounts(t, violation) ||
        !check_begun(t, violation) || !check_order(t, violation) || !check_facts(t, violation) ||
        !check_sequence(t, violation) || !check_ids(t, violation)) {
        return false;
    }
    for (int i = 0; i < t->after->attempt_count && i < XP_ATTEMPTS_MAX; i++) {
        if (!check_attempt(t, i, violation)) {
            return false;
        }
    }
    return check_waiting(t, violation) && check_confirms(t, violation);
}

bool xp_check_end(const struct xp_world *world, uint32_t cases, struct xp_violation *violation)
{
    for (int i = 0; i < world->attempt_count; i++) {
        const struct xp_attempt *a = &world->attempts[i];
        if (a->reversed != 0) {
            continue; /* Always a case. */
        }
        const int64_t held = (a->object == XP_CHARGED ? XP_AMOUNT - (a->is_short != 0) : 0) +
                             (a->second == XP_CHARGED ? XP_AMOUNT : 0);
        if (!xp_check(violation, XP_FACT_IS_TRUE, held == a->captured || cases != 0,
                      "the fact is not what the PSP holds, and no case says so")) {
            return false;
        }
    }
    return true;
}
