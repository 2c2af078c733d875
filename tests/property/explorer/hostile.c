/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs that nobody may bring, or that are too weak: whatever the world, they change nothing. */
#include <stdio.h>
#include <string.h>

#include "tests/property/explorer/check.h"
#include "tests/property/explorer/input.h"

static const char *const foreign_number = "another-system-4711";
static const char *const other_number = XP_OTHER_PAYMENT "A01";

static void at_local(struct pay_decide_input *in, struct pay_event *event)
{
    (void)event;
    in->source = PAY_SOURCE_LOCAL;
    in->evidence = PAY_EVIDENCE_LOCAL;
}

static void at_sync(struct pay_decide_input *in, struct pay_event *event)
{
    (void)event;
    in->source = PAY_SOURCE_SYNC;
    in->evidence = PAY_EVIDENCE_SYNC_RESPONSE;
}

static void at_webhook(struct pay_decide_input *in, struct pay_event *event)
{
    (void)event;
    in->source = PAY_SOURCE_WEBHOOK;
    in->evidence = PAY_EVIDENCE_WEBHOOK;
}

static void with_another_amount(struct pay_decide_input *in, struct pay_event *event)
{
    (void)in;
    event->amount.amount_minor = XP_AMOUNT + 1;
}

static void with_another_currency(struct pay_decide_input *in, struct pay_event *event)
{
    (void)in;
    memcpy(event->amount.currency, "USD", 4);
}

static void without_amount(struct pay_decide_input *in, struct pay_event *event)
{
    (void)in;
    event->has_amount = false;
}

static void of_another_account(struct pay_decide_input *in, struct pay_event *event)
{
    (void)in;
    event->psp_account = PAY_STR("account9");
}

static void of_another_psp(struct pay_decide_input *in, struct pay_event *event)
{
    (void)in;
    event->psp = PAY_STR("psp9");
}

static void of_another_system(struct pay_decide_input *in, struct pay_event *event)
{
    (void)in;
    event->merchant_request_no = pay_str_of(foreign_number);
}

static void of_another_payment(struct pay_decide_input *in, struct pay_event *event)
{
    (void)in;
    event->merchant_request_no = pay_str_of(other_number);
}

static void with_a_foreign_reference(struct pay_decide_input *in, struct pay_event *event)
{
    (void)event;
    in->foreign_reference = true;
}

/* Below a callback, and of nothing that is known: what a late answer may say. */
static void late_at_sync(struct pay_decide_input *in, struct pay_event *event)
{
    at_sync(in, event);
    event->provider_payment_id = (struct pay_str){NULL, 0};
    event->reference_count = 0;
}

struct probe {
    const char *name;
    enum pay_event_type type;
    void (*make)(struct pay_decide_input *in, struct pay_event *event);
};

static const struct probe hostile[] = {
    {"success said by ourselves", PAY_EV_ATTEMPT_SUCCEEDED, at_local},
    {"failure said by ourselves", PAY_EV_ATTEMPT_FAILED, at_local},
    {"cancellation said by ourselves", PAY_EV_ATTEMPT_CANCELED, at_local},
    {"action said by ourselves", PAY_EV_ATTEMPT_ACTION_REQUIRED, at_local},
    {"not found by callback", PAY_EV_ATTEMPT_NOT_FOUND, at_webhook},
    {"not found by answer", PAY_EV_ATTEMPT_NOT_FOUND, at_sync},
    {"not sent by callback", PAY_EV_ATTEMPT_NOT_SENT, at_webhook},
    {"time-out by callback", PAY_EV_ATTEMPT_UNKNOWN, at_webhook},
    {"submitted by answer", PAY_EV_ATTEMPT_SUBMITTED, at_sync},
    {"reversal by answer", PAY_EV_ATTEMPT_REVERSED, at_sync},
    {"authorization expired by answer", PAY_EV_ATTEMPT_AUTHORIZATION_EXPIRED, at_sync},
    {"success of another amount", PAY_EV_ATTEMPT_SUCCEEDED, with_another_amount},
    {"success of another currency", PAY_EV_ATTEMPT_SUCCEEDED, with_another_currency},
    {"success without amount", PAY_EV_ATTEMPT_SUCCEEDED, without_amount},
    {"success of another account", PAY_EV_ATTEMPT_SUCCEEDED, of_another_account},
    {"failure of another psp", PAY_EV_ATTEMPT_FAILED, of_another_psp},
    {"success of another system", PAY_EV_ATTEMPT_SUCCEEDED, of_another_system},
    {"success of another payment", PAY_EV_ATTEMPT_SUCCEEDED, of_another_payment},
    {"success with another payment's reference", PAY_EV_ATTEMPT_SUCCEEDED,
     with_a_foreign_reference},
};

/* To an attempt that ended without money. */
static const struct probe late[] = {
    {"late success by answer", PAY_EV_ATTEMPT_SUCCEEDED, late_at_sync},
    {"late processing", PAY_EV_ATTEMPT_PROCESSING, at_webhook},
    {"late action", PAY_EV_ATTEMPT_ACTION_REQUIRED, at_webhook},
    {"late approval", PAY_EV_ATTEMPT_APPROVED, at_webhook},
    {"late decline", PAY_EV_ATTEMPT_DECLINED, at_webhook},
    {"late failure", PAY_EV_ATTEMPT_FAILED, at_webhook},
    {"late cancellation", PAY_EV_ATTEMPT_CANCELED, at_webhook},
};

static bool changes(const struct xp_world *world, const struct xp_world *after)
{
    struct xp_world same = *world;
    same.cases_low = after->cases_low;
    same.cases_high = after->cases_high;
    for (int i = 0; i < world->attempt_count; i++) {
        /* That an ended attempt exists, and its names, may be learned, and asked for. */
        same.attempts[i].known_at = after->attempts[i].known_at;
        same.attempts[i].references = after->attempts[i].references;
        same.attempts[i].bound_at = after->attempts[i].bound_at;
        same.attempts[i].certainty = after->attempts[i].certainty;
        if (xp_is_final(same.attempts[i].status)) {
            same.attempts[i].due[PAY_DEADLINE_QUERY] = after->attempts[i].due[PAY_DEADLINE_QUERY];
            same.attempts[i].due[PAY_DEADLINE_MANUAL] = after->attempts[i].due[PAY_DEADLINE_MANUAL];
        }
    }
    return memcmp(&same, after, sizeof same) != 0;
}

static bool probe(const struct xp_world *world, const struct pay_decide_input *input,
                  const char *name, struct xp_violation *violation)
{
    struct xp_world after = *world;
    const struct xp_decided decided = xp_bench_decide(&after, input, false);
    const bool is_still = !decided.is_beyond && !changes(world, &after) &&
                          decided.decision->verdict != PAY_VERDICT_APPLY;
    return xp_check(violation, XP_HOSTILE_IS_STILL, is_still, name);
}

static bool probe_all(const struct xp_world *world, int attempt, const struct probe *probes,
                      size_t count, struct xp_violation *violation)
{
    for (size_t i = 0; i < count; i++) {
        const struct xp_saying saying = {
            .channel = XP_BY_CALLBACK, .type = probes[i].type, .attempt = attempt};
        (void)xp_input_say(world, &saying);
        probes[i].make(xp_input_last(), xp_input_last_event());
        if (!probe(world, xp_input_last(), probes[i].name, violation)) {
            return false;
        }
    }
    return true;
}

static bool probe_events(const struct xp_world *world, int attempt, struct xp_violation *violation)
{
    const uint8_t status = world->attempts[attempt].status;
    const bool ended_unpaid = status == PAY_ATTEMPT_FAILED || status == PAY_ATTEMPT_CANCELED;

    return probe_all(world, attempt, hostile, sizeof hostile / sizeof hostile[0], violation) &&
           (!ended_unpaid ||
            probe_all(world, attempt, late, sizeof late / sizeof late[0], violation));
}

/* A deadline whose row has moved, or is gone. */
static bool probe_old_deadlines(const struct xp_world *world, int attempt,
                                struct xp_violation *violation)
{
    for (int kind = 0; kind < XP_DUE_KINDS; kind++) {
        const uint8_t row = world->attempts[attempt].due[kind];
        const uint8_t old = (uint8_t)(row == 3 ? 5 : 3);
        const struct pay_decide_input *input =
            xp_input_deadline((enum pay_deadline_kind)kind, attempt, old, row);
        if (!probe(world, input, "a deadline whose row has moved", violation)) {
            return false;
        }
    }
    return true;
}

bool xp_check_hostile(const struct xp_config *config, const struct xp_world *world,
                      struct xp_violation *violation)
{
    (void)config;
    for (int i = 0; i < world->attempt_count; i++) {
        if (!probe_events(world, i, violation) || !probe_old_deadlines(world, i, violation)) {
            return false;
        }
    }
    return true;
}
