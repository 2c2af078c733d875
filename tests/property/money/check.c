/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/property/money/step.h"

#include <stdio.h>
#include <string.h>

/* Written from the requirement and from what the PSPs hold, never from the core's tables. */

uint64_t mx_checks[MX_INVARIANT_COUNT];

const char *mx_invariant_name(enum mx_invariant invariant)
{
    static const char *const names[MX_INVARIANT_COUNT] = {
        [MX_AMOUNTS] = "AMOUNTS",
        [MX_SUMS] = "SUMS",
        [MX_REQUESTABLE] = "REQUESTABLE",
        [MX_ENDS_DEAD] = "ENDS_DEAD",
        [MX_IS_TRUE] = "IS_TRUE",
        [MX_ONCE] = "ONCE",
        [MX_SENT_ONCE] = "SENT_ONCE",
        [MX_OWN_SENDS] = "OWN_SENDS",
        [MX_WAITS] = "WAITS",
        [MX_TWO_PEOPLE] = "TWO_PEOPLE",
        [MX_FACTS] = "FACTS",
        [MX_REPEATS] = "REPEATS",
        [MX_REJECT_STILL] = "REJECT_STILL",
        [MX_NO_CASE] = "NO_CASE",
        [MX_RESTS] = "RESTS",
    };
    return (unsigned)invariant < MX_INVARIANT_COUNT ? names[invariant] : "?";
}

bool mx_check(struct mx_violation *violation, enum mx_invariant invariant, bool holds,
              const char *text)
{
    mx_checks[invariant]++;
    if (!holds && !violation->is_set) {
        violation->is_set = true;
        violation->invariant = mx_invariant_name(invariant);
        (void)snprintf(violation->text, sizeof violation->text, "%s", text);
    }
    return holds;
}

static bool is_open(const struct mx_action *action)
{
    return action->status == PAY_MONEY_CREATED || action->status == PAY_MONEY_PROCESSING ||
           action->status == PAY_MONEY_UNKNOWN;
}

/* Any action: refunds first. */
static const struct mx_action *nth(const struct mx_world *world, int n, bool *ret_is_capture)
{
    *ret_is_capture = n >= MX_REFUNDS;
    return n < MX_REFUNDS ? &world->refunds[n] : &world->captures[n - MX_REFUNDS];
}

static const struct mx_object_state *object_of(const struct mx_world *world, bool is_capture,
                                               const struct mx_action *action)
{
    const struct mx_attempt *a = &world->attempts[action->attempt];
    return is_capture ? &a->captures[action->object] : &a->refunds[action->object];
}

/* ---------------------------------------------------------------------------------------------
 * amounts */

/* Σ over the attempt's actions of the kind; which: 0 open, 1 succeeded. */
static int sum_of(const struct mx_world *world, bool captures, int attempt, int which)
{
    int sum = 0;
    for (int i = 0; i < MX_REFUNDS + MX_CAPTURES; i++) {
        bool is_capture = false;
        const struct mx_action *action = nth(world, i, &is_capture);
        const bool counts = which == 0 ? is_open(action) : action->status == PAY_MONEY_SUCCEEDED;
        if (action->exists != 0 && is_capture == captures && action->attempt == attempt && counts) {
            sum += action->amount;
        }
    }
    return sum;
}

static bool check_amounts(const struct mx_config *config, const struct mx_world *world,
                          struct mx_violation *v)
{
    bool holds = true;
    for (int i = 0; i < config->attempts; i++) {
        const struct mx_attempt *a = &world->attempts[i];
        holds = holds &&
                mx_check(v, MX_AMOUNTS, a->captured + a->capture_reserved <= a->authorized,
                         "more is captured and reserved than authorized") &&
                mx_check(v, MX_AMOUNTS, a->refunded + a->refund_reserved <= a->captured,
                         "more is refunded and reserved than captured") &&
                mx_check(v, MX_AMOUNTS, a->authorized <= config->held,
                         "more is authorized than was asked for") &&
                mx_check(v, MX_AMOUNTS, a->refund_reserved == sum_of(world, false, i, 0),
                         "refund_reserved is not the sum of the open refunds") &&
                mx_check(v, MX_AMOUNTS, a->capture_reserved == sum_of(world, true, i, 0),
                         "capture_reserved is not the sum of the open captures") &&
                mx_check(v, MX_SUMS, a->refunded == sum_of(world, false, i, 1),
                         "refunded is not the sum of the refunds that succeeded");
        if (config->is_manual != 0) {
            holds = holds &&
                    mx_check(v, MX_SUMS, a->captured - a->withdrawn == sum_of(world, true, i, 1),
                             "captured less what was reversed is not what succeeded");
        } else {
            holds = holds && mx_check(v, MX_SUMS, a->withdrawn == world->dispute.withdrawn || i > 0,
                                      "withdrawn is not what the dispute withdrew");
        }
    }
    return holds;
}

/* ----------------------------------------------------------------------------------------------
 * truth */

static bool was_done(const struct mx_object_state *object)
{
    return object->state == MX_DONE || (object->hooks >> MX_DONE & 1) != 0;
}

static bool check_end(const struct mx_world *world, const struct mx_action *action, bool is_capture,
                      struct mx_violation *v)
{
    const struct mx_object_state *object = object_of(world, is_capture, action);

    switch ((enum pay_money_status)action->status) {
    case PAY_MONEY_SUCCEEDED:
        return mx_check(v, MX_IS_TRUE, was_done(object),
                        "SUCCEEDED, and the PSP has never done it");
    case PAY_MONEY_REVERSED:
        return mx_check(v, MX_IS_TRUE, object->state == MX_FAILED,
                        "REVERSED, and the PSP has not taken it back");
    case PAY_MONEY_FAILED:
    case PAY_MONEY_CANCELED:
        return mx_check(v, MX_ENDS_DEAD, !mx_may_come(action, object) && object->state != MX_DONE,
                        "FAILED or CANCELED, and the PSP has it or can still do it");
    default:
        return true;
    }
}

/* One row for each object of the PSP, however often it is reported. */
static bool check_once(const struct mx_world *world, struct mx_violation *v)
{
    bool holds = true;
    for (int i = 0; i < MX_REFUNDS; i++) {
        for (int j = i + 1; j < MX_REFUNDS; j++) {
            const struct mx_action *a = &world->refunds[i];
            const struct mx_action *b = &world->refunds[j];
            const bool is_same = a->exists != 0 && b->exists != 0 && a->is_named != 0 &&
                                 b->is_named != 0 && a->object == b->object &&
                                 a->attempt == b->attempt;
            holds = holds && mx_check(v, MX_ONCE, !is_same, "two rows for one refund of the PSP");
        }
    }
    return holds;
}

static bool has_fact(const struct pay_decision *d, enum pay_fact_type type)
{
    for (size_t i = 0; i < d->effect_count; i++) {
        if (d->effects[i].kind == PAY_EFFECT_FACT && d->effects[i].as.fact.type == type) {
            return true;
        }
    }
    return false;
}

static bool check_fact(const struct mx_decided *decided, const struct mx_action *before,
                       const struct mx_action *after, bool is_capture, struct mx_violation *v)
{
    static const enum pay_fact_type facts[2][PAY_MONEY_STATUS_COUNT] = {
        {[PAY_MONEY_SUCCEEDED] = PAY_FACT_REFUND_SUCCEEDED,
         [PAY_MONEY_FAILED] = PAY_FACT_REFUND_FAILED,
         [PAY_MONEY_CANCELED] = PAY_FACT_REFUND_FAILED,
         [PAY_MONEY_REVERSED] = PAY_FACT_REFUND_REVERSED},
        {[PAY_MONEY_SUCCEEDED] = PAY_FACT_CAPTURE_SUCCEEDED,
         [PAY_MONEY_FAILED] = PAY_FACT_CAPTURE_FAILED,
         [PAY_MONEY_CANCELED] = PAY_FACT_CAPTURE_FAILED,
         [PAY_MONEY_REVERSED] = PAY_FACT_CAPTURE_REVERSED},
    };
    const enum pay_fact_type fact = facts[is_capture ? 1 : 0][after->status];
    return before->status == after->status || is_open(after) ||
           mx_check(v, MX_FACTS, has_fact(decided->decision, fact),
                    "an action ended and no fact says so");
}

static bool check_actions(const struct mx_config *config, const struct mx_world *before,
                          const struct mx_world *after, const struct mx_decided *decided,
                          struct mx_step step, struct mx_violation *v)
{
    bool holds = true;

    for (int i = 0; i < MX_REFUNDS + MX_CAPTURES && holds; i++) {
        bool is_capture = false;
        const struct mx_action *now = nth(after, i, &is_capture);
        const struct mx_action *then = nth(before, i, &is_capture);
        const bool moved = then->exists == 0 || then->status != now->status;
        if (now->exists == 0) {
            continue;
        }
        holds = check_fact(decided, then, now, is_capture, v);
        if (moved && step.kind != MX_WORD) {
            holds = holds && check_end(after, now, is_capture, v);
        }
        const bool waits_for_people = after->request.exists != 0 &&
                                      after->request.status == PAY_REQUEST_PENDING &&
                                      after->request.target == i && !is_capture;
        holds = holds && mx_check(v, MX_WAITS, !is_open(now) || now->due != 0 || waits_for_people,
                                  "an open action waits for nothing");
        const unsigned asks = 1U << PAY_DEADLINE_QUERY | 1U << PAY_DEADLINE_MANUAL;
        const bool only_asks = (now->due & ~asks) == 0;
        holds = holds && mx_check(v, MX_WAITS, is_open(now) || only_asks,
                                  "what is over waits for more than an answer");
    }
    (void)config;
    return holds;
}

/* ----------------------------------------------------------------------------------------- two
 * people */

static bool check_people(const struct mx_config *config, const struct mx_world *before,
                         const struct mx_world *after, const struct mx_decided *decided,
                         struct mx_step step, struct mx_violation *v)
{
    const bool both = after->request.words == 3;
    const bool is_controlled = has_fact(decided->decision, PAY_FACT_CORRECTION_APPLIED);
    bool holds = mx_check(v, MX_TWO_PEOPLE, !is_controlled || both,
                          "a correction without two people who approved these bytes");

    if (config->needs_approval != 0) {
        for (int i = 0; i < MX_REFUNDS; i++) {
            const struct mx_action *refund = &after->refunds[i];
            const bool is_ours = refund->exists != 0 && refund->origin != PAY_ORIGIN_PSP;
            holds = holds && mx_check(v, MX_TWO_PEOPLE,
                                      !is_ours || (refund->jobs[0] & MX_GATE_EXISTS) == 0 || both,
                                      "a refund beyond the threshold has a job before two words");
        }
    }
    if (step.kind == MX_WORD && before->request.is_stale != 0 &&
        before->request.type != PAY_CMD_REQUEST_REFUND) {
        holds = holds && mx_check(v, MX_TWO_PEOPLE, !is_controlled,
                                  "carried out on a row that has changed since it was asked for");
    }
    return holds;
}

/* -------------------------------------------------------------------------------------------
 * decisions */

static bool check_request(const struct mx_config *config, const struct mx_world *before,
                          const struct mx_world *after, struct mx_step step, struct mx_violation *v)
{
    const int amount = step.arg % 16;
    const struct mx_attempt *a = &before->attempts[step.kind == MX_REFUND ? step.index : 0];
    const bool refund_made =
        after->refunds[0].exists + after->refunds[1].exists + after->refunds[2].exists >
        before->refunds[0].exists + before->refunds[1].exists + before->refunds[2].exists;

    (void)config;
    const int blocks = step.index == 0 ? MX_CASE_OVER_REFUND : MX_CASE_OVER_REFUND_2;

    if (step.kind == MX_REFUND && refund_made) {
        return mx_check(v, MX_REQUESTABLE,
                        amount <= a->captured - a->refunded - a->refund_reserved - a->withdrawn,
                        "a refund of more than is refundable was accepted") &&
               mx_check(v, MX_REQUESTABLE, (before->cases & blocks) == 0,
                        "a refund was accepted under an OVER_REFUND case of its attempt");
    }
    if (step.kind == MX_CAPTURE && after->attempts[0].capture_reserved > a->capture_reserved) {
        return mx_check(v, MX_REQUESTABLE,
                        amount <= a->authorized - a->captured - a->capture_reserved,
                        "a capture of more than is authorized was accepted") &&
               mx_check(v, MX_REQUESTABLE, a->cancels == 0,
                        "a capture of a withdrawn authorization was accepted");
    }
    return true;
}

static bool check_still(const struct mx_world *before, const struct mx_world *after,
                        const struct mx_decided *decided, struct mx_violation *v)
{
    if (decided->decision->verdict != PAY_VERDICT_REJECT) {
        return true;
    }
    return mx_check(v, MX_REJECT_STILL,
                    memcmp(before->attempts, after->attempts, sizeof before->attempts) == 0 &&
                        memcmp(before->captures, after->captures, sizeof before->captures) == 0 &&
                        memcmp(before->refunds, after->refunds, sizeof before->refunds) == 0 &&
                        before->order == after->order,
                    "REJECT moved something");
}

static bool is_honest(const struct mx_config *config)
{
    return config->console == 0 && config->takes_back == 0 && config->controls == 0 &&
           config->sums == 0 && config->disputes == 0;
}

bool mx_check_decision(const struct mx_config *config, const struct mx_world *before,
                       const struct mx_world *after, const struct mx_decided *decided,
                       struct mx_step step, struct mx_violation *v)
{
    const uint8_t money = (uint8_t)(after->cases & ~(MX_CASE_OTHER | MX_CASE_DUPLICATE));

    return mx_check(v, MX_REPEATS, decided->is_repeatable, "deciding again gave other bytes") &&
           check_amounts(config, after, v) && check_once(after, v) &&
           check_actions(config, before, after, decided, step, v) &&
           check_people(config, before, after, decided, step, v) &&
           check_request(config, before, after, step, v) &&
           check_still(before, after, decided, v) &&
           mx_check(v, MX_NO_CASE, !is_honest(config) || money == 0,
                    "a money case, and nobody did anything wrong");
}

/* -----------------------------------------------------------------------------------------------
 * sends */

bool mx_check_send(const struct mx_config *config, const struct mx_world *world,
                   struct mx_step step, struct mx_violation *v)
{
    const bool is_capture = step.money == PAY_MONEY_CAPTURE;
    const struct mx_action *action =
        is_capture ? &world->captures[step.index] : &world->refunds[step.index];
    int own = action->amount;

    for (int i = 0; i < MX_REFUNDS; i++) {
        const struct mx_action *other = &world->refunds[i];
        const bool is_own = other->exists != 0 && other->origin != PAY_ORIGIN_PSP &&
                            other->attempt == action->attempt && i != step.index;
        const struct mx_object_state *object = object_of(world, false, other);
        const bool counts =
            object->state == MX_DONE || object->state == MX_PENDING || other->wire != 0;
        own += !is_capture && is_own && counts ? other->amount : 0;
    }
    return mx_check(v, MX_SENT_ONCE, is_open(action), "a send of what is over") &&
           mx_check(v, MX_SENT_ONCE, action->wire == 0, "a send beside another of the same") &&
           mx_check(v, MX_OWN_SENDS, is_capture || own <= config->held,
                    "our own refunds ask for more than was captured");
}

/* ------------------------------------------------------------------------------------------------
 * rest */

static int gone_at_psp(const struct mx_attempt *a)
{
    int gone = 0;
    for (int o = 0; o < MX_OBJECTS; o++) {
        const bool was_taken =
            a->captures[o].state == MX_FAILED && (a->captures[o].hooks >> MX_DONE & 1) != 0;
        gone += was_taken ? a->captures[o].amount : 0;
    }
    return gone;
}

bool mx_check_rest(const struct mx_config *config, const struct mx_world *world,
                   struct mx_violation *v)
{
    const bool was_overruled = world->request.exists != 0 &&
                               world->request.status == PAY_REQUEST_APPROVED &&
                               world->request.type != PAY_CMD_REQUEST_REFUND;
    const uint8_t excuses = config->queries != 0 && config->by_number != 0
                                ? (uint8_t)~(MX_CASE_OTHER | MX_CASE_DUPLICATE | MX_CASE_REVERSED)
                                : (uint8_t)~(MX_CASE_DUPLICATE | MX_CASE_REVERSED);
    bool holds = true;

    if (was_overruled || (world->cases & excuses) != 0) {
        return true; /* A person looks. */
    }
    for (int i = 0; i < config->attempts && holds; i++) {
        const struct mx_attempt *a = &world->attempts[i];
        const int captured = mx_held(world, PAY_MONEY_CAPTURE, i, false) + gone_at_psp(a);
        const int taken = i == 0 ? world->dispute.taken - world->dispute.given_back : 0;
        holds = mx_check(v, MX_RESTS, a->refund_reserved == 0 && a->capture_reserved == 0,
                         "at rest something is reserved") &&
                mx_check(v, MX_RESTS, a->refunded == mx_held(world, PAY_MONEY_REFUND, i, false),
                         "at rest refunded is not what the PSP has refunded") &&
                mx_check(v, MX_RESTS, config->is_manual == 0 || a->captured == captured,
                         "at rest captured is not what the PSP has captured") &&
                mx_check(v, MX_RESTS, a->withdrawn == taken + gone_at_psp(a),
                         "at rest withdrawn is not what was taken") &&
                mx_check(v, MX_RESTS,
                         config->is_manual == 0 ||
                             (a->status == PAY_ATTEMPT_SUCCEEDED) == (a->captured > 0),
                         "at rest SUCCEEDED is not said of captured money, or of none");
    }
    return holds;
}
