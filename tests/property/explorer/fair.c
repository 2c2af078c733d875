/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/property/explorer/fair.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/hash.h"

#define TICKS_MAX 40
#define TIRED 16

/* ------------------------------------------------------------------------------ what was followed
 */

static struct {
    uint64_t *keys; /* 0: free. */
    size_t cap, count;
} followed;

static uint64_t key_of(const struct xp_config *config, const struct xp_world *world)
{
    const struct pay_bytes bytes = {(const uint8_t *)world, xp_world_size(config)};
    const uint64_t key = pay_hash_fnv1a(PAY_FNV_START, bytes);
    return key == 0 ? 1 : key;
}

static bool find(uint64_t key, size_t *ret_at)
{
    size_t at = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (followed.cap - 1);
    while (followed.keys[at] != 0 && followed.keys[at] != key) {
        at = (at + 1) & (followed.cap - 1);
    }
    *ret_at = at;
    return followed.keys[at] == key;
}

static void grow(void)
{
    uint64_t *old = followed.keys;
    const size_t old_cap = followed.cap;
    size_t at = 0;

    followed.cap = old_cap == 0 ? (size_t)1 << 16 : old_cap * 2;
    followed.keys = calloc(followed.cap, sizeof *followed.keys);
    PAY_ASSERT(followed.keys != NULL);
    for (size_t i = 0; i < old_cap; i++) {
        if (old[i] != 0) {
            (void)find(old[i], &at);
            followed.keys[at] = old[i];
        }
    }
    free(old);
}

static bool remember(uint64_t key)
{
    size_t at = 0;
    if (followed.count * 3 >= followed.cap * 2) {
        grow();
    }
    if (find(key, &at)) {
        return false;
    }
    followed.keys[at] = key;
    followed.count++;
    return true;
}

void xp_fair_reset(void)
{
    free(followed.keys);
    memset(&followed, 0, sizeof followed);
}

/* ------------------------------------------------------------------------------ what happens next
 */

struct turn {
    const struct xp_config *config;
    struct xp_world *world;
    struct xp_fair_trace *trace;
    struct xp_violation *violation;
    int ticks;
    uint32_t cases; /* Ever open. */
};

/* @return true when it changed the world, or broke an invariant: either way it was the step. */
static bool take(struct turn *turn, enum xp_step_kind kind, int attempt, int arg)
{
    const struct xp_step step = {(uint8_t)kind, (uint8_t)attempt, (uint8_t)arg};
    struct xp_world next = *turn->world;
    struct xp_result result;

    const bool holds = xp_step_apply(turn->config, &next, step, &result, turn->violation);
    turn->cases |= result.cases;
    next.told = turn->world->told > next.told ? turn->world->told : next.told;
    if (holds && (result.is_beyond || memcmp(&next, turn->world, sizeof next) == 0)) {
        return false;
    }
    *turn->world = next;
    if (turn->trace->count < XP_FAIR_STEPS_MAX) {
        turn->trace->steps[turn->trace->count++] = step;
    }
    return true;
}

static bool callback_arrives(struct turn *turn, int i)
{
    const struct xp_attempt *a = &turn->world->attempts[i];
    const bool is_charged = (a->hooks >> (XP_CHARGED - XP_PROCESSING) & 1) != 0;

    return (is_charged && take(turn, XP_STEP_CALLBACK, i, XP_CHARGED)) ||
           (a->second_hook != 0 && take(turn, XP_STEP_SECOND_CALLBACK, i, 0));
}

static bool answer_arrives(struct turn *turn, int i)
{
    const struct xp_attempt *a = &turn->world->attempts[i];
    const bool waits = a->status == PAY_ATTEMPT_CREATED || a->status == PAY_ATTEMPT_SUBMITTED ||
                       a->status == PAY_ATTEMPT_UNKNOWN;
    const bool has_first = (a->answers & XP_ANSWER_FIRST) != 0;
    const bool has_replay = (a->answers & XP_ANSWER_REPLAY) != 0;
    const bool is_unsent = a->submit.sends == 0 && !xp_gate_passable(&a->submit);

    return (a->status == PAY_ATTEMPT_CREATED && a->submit.sends > 0 &&
            take(turn, XP_STEP_SUBMITTED, i, 0)) ||
           (waits && has_first && take(turn, XP_STEP_ANSWER, i, 0)) ||
           (waits && (a->answers & XP_ANSWER_REFUSED) != 0 &&
            take(turn, XP_STEP_REFUSED_ANSWER, i, 0)) ||
           (has_replay && a->references == 0 && take(turn, XP_STEP_REPLAY_ANSWER, i, 0)) ||
           (a->confirm_answer != 0 && !xp_is_final(a->status) &&
            take(turn, XP_STEP_CONFIRM_ANSWER, i, a->confirm_answered)) ||
           (a->cancel_answer != 0 && !xp_is_final(a->status) &&
            take(turn, XP_STEP_CANCEL_ANSWER, i, 0)) ||
           (waits && is_unsent && take(turn, XP_STEP_NOT_SENT, i, 0));
}

/* The PSPs and the senders finish what they have begun; no customer pays. */
static bool psp_goes_on(struct turn *turn, int i)
{
    struct xp_step steps[XP_STEPS_MAX];
    const size_t count = xp_step_list(turn->config, turn->world, steps);

    for (size_t s = 0; s < count; s++) {
        const struct xp_step step = steps[s];
        const uint8_t object = turn->world->attempts[i].object;
        const bool finishes = step.kind == XP_STEP_GATE || step.kind == XP_STEP_CONFIRM_GATE ||
                              step.kind == XP_STEP_CONFIRM_EXECUTE ||
                              step.kind == XP_STEP_CANCEL_ASK || step.kind == XP_STEP_EXPIRE ||
                              (step.kind == XP_STEP_EXECUTE && step.arg != XP_REFUSED) ||
                              (step.kind == XP_STEP_MOVE && object == XP_PROCESSING);
        if (step.attempt == i && finishes && take(turn, step.kind, i, step.arg)) {
            return true;
        }
    }
    return false;
}

/* Asks and is answered at once. Nothing new: as if it had not been asked. */
static bool query_teaches(struct turn *turn, int i)
{
    const struct xp_attempt *a = &turn->world->attempts[i];
    const bool is_due = a->due[PAY_DEADLINE_QUERY] != 0 || a->due[PAY_DEADLINE_ANSWER] != 0 ||
                        a->cancel_cause != PAY_CANCEL_CAUSE_NONE;
    struct xp_step steps[XP_STEPS_MAX];
    struct xp_world asked = *turn->world;
    struct turn inner = *turn;
    const size_t trace_before = turn->trace->count;

    if (!is_due || xp_is_final(a->status)) {
        return false;
    }
    inner.world = &asked;
    const size_t count = xp_step_list(turn->config, turn->world, steps);
    for (size_t s = 0; s < count; s++) {
        if (steps[s].attempt == i && steps[s].kind == XP_STEP_REPLAY &&
            take(turn, XP_STEP_REPLAY, i, 0)) {
            return true;
        }
        if (steps[s].attempt == i && steps[s].kind == XP_STEP_ASK && steps[s].arg == 0 &&
            take(&inner, XP_STEP_ASK, i, 0) && take(&inner, XP_STEP_QUERY_ANSWER, i, 0) &&
            memcmp(&asked, turn->world, sizeof asked) != 0) {
            *turn->world = asked;
            turn->cases |= inner.cases;
            return true;
        }
    }
    turn->trace->count = trace_before;
    return false;
}

static bool deadline_passes(struct turn *turn, int i)
{
    const struct xp_attempt *a = &turn->world->attempts[i];
    for (int kind = 0; kind < XP_DUE_KINDS; kind++) {
        const bool tires = kind == PAY_DEADLINE_ACTION && a->cancels == 1;
        if (kind != PAY_DEADLINE_QUERY && xp_time_reached(a->due[kind]) &&
            take(turn, XP_STEP_DEADLINE, i, tires ? kind + TIRED : kind)) {
            return true;
        }
    }
    return false;
}

static bool slot_is_answered(struct turn *turn)
{
    for (int i = 0; i < turn->config->slots; i++) {
        const struct xp_slot *slot = &turn->world->slots[i];
        if (slot->attempt != 0) {
            return take(turn, XP_STEP_QUERY_ANSWER, slot->attempt - 1, i);
        }
    }
    return false;
}

typedef bool happen_fn(struct turn *turn, int attempt);

static bool any(struct turn *turn, happen_fn *happen)
{
    for (int i = 0; i < turn->world->attempt_count; i++) {
        if (happen(turn, i)) {
            return true;
        }
    }
    return false;
}

static bool happens(struct turn *turn)
{
    return slot_is_answered(turn) || any(turn, callback_arrives) || any(turn, answer_arrives) ||
           any(turn, psp_goes_on) || any(turn, query_teaches) || any(turn, deadline_passes) ||
           (xp_time_reached(turn->world->order_due) && take(turn, XP_STEP_ORDER_EXPIRY, 0, 0));
}

static bool is_over(const struct xp_config *config, const struct xp_world *world)
{
    const bool order_over = world->order == PAY_ORDER_SUCCEEDED ||
                            world->order == PAY_ORDER_FAILED ||
                            world->order == PAY_ORDER_CANCELED || world->order == PAY_ORDER_EXPIRED;
    for (int i = 0; i < world->attempt_count; i++) {
        if (!xp_is_final(world->attempts[i].status) || xp_may_succeed(world, config, i)) {
            return false;
        }
    }
    return order_over;
}

/* An UNKNOWN without a MANUAL row has had its case. */
static bool is_explained(const struct turn *turn)
{
    for (int i = 0; i < turn->world->attempt_count; i++) {
        const struct xp_attempt *a = &turn->world->attempts[i];
        if (a->status == PAY_ATTEMPT_UNKNOWN && a->due[PAY_DEADLINE_MANUAL] == 0) {
            return true;
        }
    }
    return turn->cases != 0;
}

/* @return true while it goes on. */
static bool go_on(struct turn *turn)
{
    if (happens(turn)) {
        return !turn->violation->is_set;
    }
    if (is_over(turn->config, turn->world)) {
        (void)xp_check(turn->violation, XP_ENDS, true, "");
        (void)xp_check_end(turn->world, turn->cases, turn->violation);
        return false;
    }
    if (turn->ticks >= TICKS_MAX) {
        if (xp_check(turn->violation, XP_ENDS, is_explained(turn),
                     "it waits for ever, and no case says why")) {
            (void)xp_check_end(turn->world, turn->cases, turn->violation);
        }
        return false;
    }
    turn->ticks++;
    return take(turn, XP_STEP_TICK, 0, 0) && !turn->violation->is_set;
}

bool xp_fair_check(const struct xp_config *config, const struct xp_world *world,
                   struct xp_fair_trace *trace, struct xp_violation *violation)
{
    struct xp_world at = *world;
    struct turn turn = {config, &at, trace, violation, 0, xp_cases(world)};

    trace->count = 0;
    while (remember(key_of(config, &at)) && go_on(&turn)) {
        if (!xp_check(violation, XP_ENDS, trace->count < XP_FAIR_STEPS_MAX, "it never rests")) {
            break;
        }
    }
    return !violation->is_set;
}
