/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/property/explorer/walk.h"

#include <string.h>

#include "common/base/hash.h"
#include "tests/property/explorer/bench.h"

#define IDS_CAP ((size_t)1 << 14)

/* The facts that one walk has published, by the hash of their ids. */
struct ids {
    uint64_t of[IDS_CAP];
    size_t count;
};

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13; /* xorshift64 */
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* @return false when it was there. */
static bool keep(struct ids *ids, const char *event_id)
{
    const struct pay_bytes bytes = {(const uint8_t *)event_id, strlen(event_id)};
    const uint64_t hash = pay_hash_fnv1a(PAY_FNV_START, bytes) | 1;
    size_t at = (size_t)(hash >> 20) & (IDS_CAP - 1);

    while (ids->of[at] != 0 && ids->count < IDS_CAP / 2) {
        if (ids->of[at] == hash) {
            return false;
        }
        at = (at + 1) & (IDS_CAP - 1);
    }
    ids->of[at] = hash;
    ids->count++;
    return true;
}

static bool keep_all(struct ids *ids, const struct pay_decision *decision,
                     struct xp_violation *violation)
{
    for (size_t i = 0; i < decision->effect_count; i++) {
        const struct pay_effect *effect = &decision->effects[i];
        if (effect->kind == PAY_EFFECT_FACT &&
            !xp_check(violation, XP_IDS, keep(ids, effect->as.fact.event_id),
                      "a fact has the id of an earlier one")) {
            return false;
        }
    }
    return true;
}

/* Beyond the bound of the search: every command, more attempts, more answers in flight. */
static struct xp_config widen(const struct xp_config *config)
{
    struct xp_config wide = *config;
    wide.attempts_max = XP_ATTEMPTS_MAX;
    wide.slots = XP_SLOTS_MAX;
    wide.keeps_cases = true;
    wide.commands = XP_COMMANDS_ALL;
    return wide;
}

bool xp_walk(const struct xp_config *config, uint64_t seed, unsigned depth, struct xp_walk *walk)
{
    static struct ids ids;
    const struct xp_config wide = widen(config);
    struct xp_step steps[XP_STEPS_MAX];
    struct xp_world world = {0};
    struct xp_result result = {0};

    memset(&ids, 0, sizeof ids);
    memset(walk, 0, sizeof *walk);
    xp_bench_open(&wide);
    xp_bench_reset_counters(true);
    seed = seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
    while (walk->count < depth && walk->count < XP_WALK_STEPS_MAX && !result.is_beyond) {
        const size_t count = xp_step_list(&wide, &world, steps);
        const struct xp_step step = steps[next_random(&seed) % count];
        walk->steps[walk->count++] = step;
        const bool holds = xp_step_apply(&wide, &world, step, &result, &walk->violation);
        if (!holds || (result.verdict != NULL &&
                       !keep_all(&ids, xp_bench_last_decision(), &walk->violation))) {
            walk->config = wide;
            return false;
        }
    }
    return true;
}
