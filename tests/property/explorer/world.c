/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/property/explorer/world.h"

#include <assert.h>

static_assert(_Alignof(struct xp_world) == 1, "a world is bytes");

bool xp_is_final(uint8_t attempt_status)
{
    return attempt_status == PAY_ATTEMPT_SUCCEEDED || attempt_status == PAY_ATTEMPT_FAILED ||
           attempt_status == PAY_ATTEMPT_CANCELED;
}

uint32_t xp_cases(const struct xp_world *world)
{
    return (uint32_t)world->cases_low | (uint32_t)world->cases_high << 8;
}

size_t xp_world_size(const struct xp_config *config)
{
    return offsetof(struct xp_world, attempts) + config->attempts_max * sizeof(struct xp_attempt);
}

/* The statement of the data model: UPDATE psp_request ... WHERE sending_at IS NULL AND closed_at IS
 * NULL AND now() < not_after. */
bool xp_gate_passable(const struct xp_gate *gate)
{
    return (gate->flags & XP_GATE_EXISTS) != 0 && (gate->flags & XP_GATE_SENDING) == 0 &&
           (gate->flags & XP_GATE_CLOSED) == 0 && !xp_time_reached(gate->not_after);
}

static const struct xp_kind *kind_of(const struct xp_config *config, const struct xp_attempt *a)
{
    return config->kinds[a->route % XP_ROUTES];
}

/* By the customer, or by the PSP's own work. */
static bool can_be_paid(const struct xp_kind *kind, const struct xp_attempt *a)
{
    const bool is_over = kind->expires && xp_time_reached(a->psp_until);

    if (a->object == XP_PROCESSING) {
        return true;
    }
    if (kind->hides_unpaid && a->actions == 0 && xp_is_final(a->status)) {
        return false; /* Nobody has the code, and nobody will. */
    }
    return (a->object == XP_ACTION || a->object == XP_DECLINED) && !kind->confirm_moves_money &&
           !is_over;
}

bool xp_may_succeed(const struct xp_world *world, const struct xp_config *config, int attempt)
{
    const struct xp_attempt *a = &world->attempts[attempt];
    const struct xp_kind *kind = kind_of(config, a);
    const bool can_confirm = a->confirm_wire != 0 && a->object == XP_APPROVED;
    const bool can_create =
        a->wire_until != 0 && a->object == XP_NONE && !kind->confirm_moves_money;
    return can_create || can_confirm || can_be_paid(kind, a);
}

bool xp_may_be_sent(const struct xp_world *world, const struct xp_config *config, int attempt)
{
    const struct xp_attempt *a = &world->attempts[attempt];
    const struct xp_kind *kind = kind_of(config, a);
    const bool can_replay =
        kind->replays && a->object == XP_NONE && (a->submit.flags & XP_GATE_SENDING) != 0 &&
        (a->submit.flags & XP_GATE_CLOSED) == 0 && !xp_time_reached(world->expires_at);
    const bool pays_at_once = !kind->confirm_moves_money;

    if (pays_at_once && (xp_gate_passable(&a->submit) || can_replay)) {
        return true;
    }
    for (int i = 0; i < XP_CONFIRMS_MAX; i++) {
        if (xp_gate_passable(&a->confirm[i])) {
            return true;
        }
    }
    return xp_may_succeed(world, config, attempt);
}

/* ------------------------------------------------------------------------------------ time passes
 */

static void pass_time(uint8_t *time)
{
    if (*time > 2 && *time != XP_NEVER) {
        *time = (uint8_t)(*time - 2);
    } else if (*time == 2) {
        *time = 1;
    }
}

static void pass_wire(uint8_t *until, uint8_t *what)
{
    pass_time(until);
    if (*until != XP_NEVER && *until < xp_time_in(0)) {
        *until = 0;
        *what = 0;
    }
}

static void pass_attempt(struct xp_attempt *a)
{
    uint8_t *const times[] = {&a->not_found_from,   &a->known_at,        &a->action_until,
                              &a->psp_until,        &a->bound_at,        &a->object_at,
                              &a->submit.not_after, &a->submit.last_send};
    uint8_t none = 0;

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        pass_time(times[i]);
    }
    for (int kind = 0; kind < XP_DUE_KINDS; kind++) {
        pass_time(&a->due[kind]);
    }
    for (int n = 0; n < XP_CONFIRMS_MAX; n++) {
        pass_time(&a->confirm[n].not_after);
        pass_time(&a->confirm[n].last_send);
    }
    pass_wire(&a->wire_until, &none);
    pass_wire(&a->confirm_until, &a->confirm_wire);
}

void xp_world_tick(struct xp_world *world)
{
    pass_time(&world->failover_until);
    pass_time(&world->expires_at);
    pass_time(&world->order_due);
    pass_time(&world->window);
    for (int i = 0; i < XP_SLOTS_MAX; i++) {
        pass_time(&world->slots[i].asked_at);
        if (world->slots[i].asked_at < xp_time_in(-XP_ANSWER_AGE_MAX)) {
            world->slots[i] = (struct xp_slot){0};
        }
    }
    for (int i = 0; i < world->attempt_count; i++) {
        pass_attempt(&world->attempts[i]);
    }
}

/* --------------------------------------------------------------------- what makes no difference */

static void forget_if_reached(uint8_t *time)
{
    if (xp_time_reached(*time)) {
        *time = 1;
    }
}

/* A moment matters to the answers of queries that were asked before it, and to none asked later. */
static void forget_if_before(uint8_t *time, uint8_t asked_first, int ticks)
{
    if (*time != 0 && *time != XP_NEVER && xp_time_after(*time, ticks) < asked_first) {
        *time = 1;
    }
}

static uint8_t asked_first(const struct xp_world *world, int attempt)
{
    uint8_t first = xp_time_in(0);
    for (int i = 0; i < XP_SLOTS_MAX; i++) {
        if (world->slots[i].attempt == attempt + 1 && world->slots[i].asked_at < first) {
            first = world->slots[i].asked_at;
        }
    }
    return first;
}

/* Moments of one attempt that are compared with each other only. span: what the core adds first. */
struct moment {
    uint8_t *time;
    int span;
    bool is_asking;
};

struct moments {
    struct moment of[5 + XP_SLOTS_MAX];
    size_t count;
};

static void add_moment(struct moments *moments, struct moment moment)
{
    const uint8_t time = *moment.time;
    if (time > 1 && time != XP_NEVER && xp_time_after(time, moment.span) < xp_time_in(0)) {
        moments->of[moments->count++] = moment;
    }
}

static uint8_t end_of(const struct moment *moment)
{
    return xp_time_after(*moment->time, moment->span);
}

/* What was asked after every other moment might as well have been asked just now. */
static bool asked_last(const struct moments *moments)
{
    for (size_t i = 0; i < moments->count; i++) {
        if (end_of(&moments->of[i]) == end_of(&moments->of[0]) && !moments->of[i].is_asking) {
            return false;
        }
    }
    return true;
}

/* Of what is over only the order counts: the latest becomes one tick ago, the one before it two. */
static void keep_order(struct moments *moments)
{
    for (size_t i = 1; i < moments->count; i++) {
        for (size_t j = i; j > 0 && end_of(&moments->of[j - 1]) < end_of(&moments->of[j]); j--) {
            const struct moment swapped = moments->of[j];
            moments->of[j] = moments->of[j - 1];
            moments->of[j - 1] = swapped;
        }
    }
    uint8_t last = 0;
    int rank = asked_last(moments) ? -1 : 0;
    for (size_t i = 0; i < moments->count; i++) {
        const struct moment *moment = &moments->of[i];
        const uint8_t end = end_of(moment);
        rank += end != last ? 1 : 0;
        last = end;
        *moment->time = xp_time_in(-rank - moment->span);
    }
}

static void settle_order(const struct xp_config *config, struct xp_world *world, int index,
                         struct xp_attempt *a)
{
    const struct xp_times *t = &config->times;
    const int until_seen = t->call_budget + t->longest + t->grace;
    struct moments moments = {.count = 0};

    add_moment(&moments, (struct moment){&a->known_at, 0, false});
    add_moment(&moments, (struct moment){&a->bound_at, t->grace, false});
    add_moment(&moments, (struct moment){&a->psp_until, t->grace, false});
    add_moment(&moments, (struct moment){&a->submit.not_after, until_seen, false});
    add_moment(&moments, (struct moment){&a->submit.last_send, until_seen, false});
    for (int i = 0; i < XP_SLOTS_MAX; i++) {
        if (world->slots[i].attempt == index + 1) {
            add_moment(&moments, (struct moment){&world->slots[i].asked_at, 0, true});
        }
    }
    keep_order(&moments);
}

static void settle_times(const struct xp_config *config, struct xp_world *world, int index,
                         struct xp_attempt *a)
{
    const struct xp_times *t = &config->times;
    const uint8_t asked = asked_first(world, index);
    const int until_seen = t->call_budget + t->longest + t->grace;

    forget_if_before(&a->known_at, asked, 0);
    forget_if_before(&a->bound_at, asked, t->grace);
    forget_if_before(&a->not_found_from, asked, until_seen);
    forget_if_before(&a->submit.not_after, asked, until_seen);
    forget_if_before(&a->submit.last_send, asked, until_seen);
    forget_if_before(&a->object_at, xp_time_in(0), t->grace);
    forget_if_reached(&a->action_until);
    forget_if_before(&a->psp_until, asked, t->grace);
    settle_order(config, world, index, a);
    forget_if_reached(&a->due[PAY_DEADLINE_SEND]);
    for (int n = 0; n < XP_CONFIRMS_MAX; n++) {
        forget_if_before(&a->confirm[n].not_after, asked, until_seen);
    }
}

/* Recovery moves QUERY and ANSWER rows by itself, and a person or a cancel may come early: of all
 * rows but SEND only that there is one is part of a world, and it may be due at any time. What is
 * over may be asked about in any world, with a row or without. */
static void settle_rows(struct xp_attempt *a)
{
    for (int kind = PAY_DEADLINE_SEND + 1; kind < XP_DUE_KINDS; kind++) {
        a->due[kind] = a->due[kind] != 0;
    }
    if (xp_is_final(a->status)) {
        a->due[PAY_DEADLINE_QUERY] = a->due[PAY_DEADLINE_MANUAL] = 0;
    }
}

/* When and how it was asked is read of "not found", "canceled" and "unpaid" only. */
static void settle_slot(struct xp_slot *slot)
{
    if (slot->object != XP_NONE && slot->object != XP_CANCELED) {
        slot->query_by = PAY_QUERY_BY_PSP_REFERENCE;
    }
    if (slot->object != XP_NONE && slot->object != XP_CANCELED && slot->object != XP_ACTION) {
        slot->asked_at = xp_time_in(0);
    }
}

/* Only PROCESSING is left differently by how certain it is. */
static void settle_words(struct xp_attempt *a)
{
    const bool is_certain =
        a->status == PAY_ATTEMPT_PROCESSING && a->certainty >= PAY_EVIDENCE_WEBHOOK;
    a->certainty = is_certain ? PAY_EVIDENCE_WEBHOOK : PAY_EVIDENCE_SYNC_RESPONSE;
}

/* What is counted or named for people, and what this kind of PSP cannot be asked about. */
static void settle_details(const struct xp_config *config, struct xp_attempt *a)
{
    const struct xp_kind *kind = kind_of(config, a);
    const bool is_not_found = a->failure_class == PAY_FAILURE_PSP_NOT_FOUND;
    const bool is_started = (a->submit.flags & (XP_GATE_SENDING | XP_GATE_CLOSED)) != 0;

    a->failure_class = is_not_found && xp_is_final(a->status) ? PAY_FAILURE_PSP_NOT_FOUND : 0;
    a->cancel_cause = a->cancel_cause != PAY_CANCEL_CAUSE_NONE;
    if (!kind->confirm_moves_money) {
        a->actions = a->actions != 0;
    }
    if (!kind->by_number) { /* Its "not found" proves nothing, whenever asked. */
        a->submit.last_send = 0;
        if (is_started) {
            forget_if_reached(&a->submit.not_after);
        }
    }
}

/* Of an attempt that ended without money only money is news. */
static void settle_ended(struct xp_world *world, int index, struct xp_attempt *a)
{
    const uint8_t charged = 1U << (XP_CHARGED - XP_PROCESSING);

    a->known_at = a->known_at != 0;
    a->action_until = a->action_until != 0;
    a->last_event = 0;
    a->cancel_jobs = 0;
    a->cancel_answer = 0;
    a->cancels = 0;
    a->hooks &= charged;
    if (a->object != XP_CHARGED) {
        a->confirm_answer = 0;
        a->confirm_answered = 0;
        a->answers = 0;
        a->first_answer = 0;
    }
    for (int i = 0; i < XP_SLOTS_MAX; i++) {
        if (world->slots[i].attempt == index + 1 && world->slots[i].object != XP_CHARGED) {
            world->slots[i] = (struct xp_slot){0};
        }
    }
}

static bool ended_unpaid(const struct xp_attempt *a)
{
    return a->status == PAY_ATTEMPT_FAILED || a->status == PAY_ATTEMPT_CANCELED;
}

static const uint8_t money_cases = (1U << (PAY_CASE_CAPTURE_REVERSED + 1)) - 1;

void xp_world_settle(const struct xp_config *config, struct xp_world *world)
{
    forget_if_reached(&world->failover_until);
    forget_if_reached(&world->window);
    forget_if_reached(&world->expires_at);
    forget_if_reached(&world->order_due);
    if (!config->keeps_cases) {
        world->cases_low &= money_cases;
        world->cases_high = 0;
    }
    for (int i = 0; i < XP_SLOTS_MAX; i++) {
        if (world->slots[i].attempt != 0) {
            settle_slot(&world->slots[i]);
        }
    }
    for (int i = 0; i < world->attempt_count && i < XP_ATTEMPTS_MAX; i++) {
        struct xp_attempt *a = &world->attempts[i];
        settle_words(a);
        settle_rows(a);
        settle_details(config, a);
        if (ended_unpaid(a)) {
            settle_ended(world, i, a);
        }
        settle_times(config, world, i, a);
    }
}
