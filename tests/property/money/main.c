/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives the real pay_decide() through every reachable state of small worlds of captures, refunds,
 * disputes, corrections and approvals, breadth first, and checks after every step what must be
 * true.
 *
 *   explorer-money [--bound=small|full] [--world=NAME] [--without=GUARD]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/core/guard.h"
#include "tests/property/money/step.h"

#define STATES_MAX ((size_t)24 * 1024 * 1024)
#define NONE UINT32_MAX
#define FAIR_ROUNDS 24
#define FAIR_ALL 1000 /* From each of the first so many worlds a fair continuation, */
#define FAIR_EVERY 16 /* then from one in so many. */

/* clang-format off */
const struct mx_config mx_configs[] = {
    {.name = "not-now",      .attempts = 1, .held = 1, .refunds = 1, .queries = 1, .by_number = 1, .says_not_now = 1},
    {.name = "taken-back",   .attempts = 1, .held = 2, .refunds = 1, .queries = 1, .by_number = 1, .takes_back = 1},
    {.name = "silent",       .attempts = 1, .held = 2, .refunds = 1},
    {.name = "two-refunds",  .attempts = 1, .held = 1, .refunds = 2},
    {.name = "console",      .attempts = 1, .held = 1, .refunds = 1, .console = 1, .queries = 1, .by_number = 1},
    {.name = "console-once", .attempts = 1, .held = 2, .console = 1},
    {.name = "sums",         .attempts = 1, .held = 2, .refunds = 1, .sums = 1},
    {.name = "two-charges",  .attempts = 2, .held = 1, .refunds = 1, .queries = 1, .by_number = 1},
    {.name = "dispute",      .attempts = 1, .held = 1, .refunds = 1, .disputes = 1},
    {.name = "capture",      .is_manual = 1, .attempts = 1, .held = 2, .captures = 1},
    {.name = "capture-psp",  .is_manual = 1, .attempts = 1, .held = 2, .console = 2, .queries = 1, .by_number = 1},
    {.name = "control",      .attempts = 1, .held = 1, .refunds = 1, .controls = MX_FORCE},
    {.name = "approval",     .attempts = 1, .held = 1, .refunds = 1, .queries = 1, .by_number = 1, .needs_approval = 1},
    {.name = "refund",       .attempts = 1, .held = 2, .refunds = 2, .queries = 1, .by_number = 1, .only_full = 1},
    {.name = "console-2",    .attempts = 1, .held = 2, .refunds = 1, .console = 1, .queries = 1, .by_number = 1, .only_full = 1},
    {.name = "sums-2",       .attempts = 1, .held = 2, .refunds = 1, .console = 1, .queries = 1, .by_number = 1, .sums = 1, .only_full = 1},
    {.name = "sums-new",     .attempts = 1, .held = 3, .refunds = 1, .console = 1, .console_amount = 2, .queries = 1, .by_number = 1, .sums = 1},
    {.name = "two-charges-2", .attempts = 2, .held = 1, .refunds = 2, .only_full = 1},
    {.name = "dispute-2",    .attempts = 1, .held = 2, .refunds = 1, .disputes = 1, .queries = 1, .by_number = 1, .only_full = 1},
    {.name = "capture-2",    .is_manual = 1, .attempts = 1, .held = 2, .captures = 2, .only_full = 1},
    {.name = "capture-both", .is_manual = 1, .attempts = 1, .held = 1, .captures = 1, .console = 2, .only_full = 1},
    {.name = "capture-back", .is_manual = 1, .attempts = 1, .held = 1, .captures = 1, .refunds = 1, .takes_back = 1, .only_full = 1},
    {.name = "control-2",    .attempts = 1, .held = 1, .refunds = 1, .queries = 1, .by_number = 1, .takes_back = 1, .controls = MX_FORCE | MX_RELEASE | MX_CORRECT, .only_full = 1},
};
/* clang-format on */
const size_t mx_config_count = sizeof mx_configs / sizeof mx_configs[0];

struct node {
    uint32_t parent;
    struct mx_step step;
};

static struct {
    struct mx_world *worlds;
    struct node *nodes;
    size_t count, cap;
    uint32_t *table;
    size_t table_cap;
} space;

static struct {
    uint64_t states, transitions, beyond, rests;
    bool is_incomplete;
} totals;

static uint64_t hash_of(const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    uint64_t hash = UINT64_C(0x9E3779B97F4A7C15);
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, at + i, len - i < 8 ? len - i : 8);
        hash = (hash ^ word) * UINT64_C(0xD6E8FEB86659FD93);
        hash ^= hash >> 32;
    }
    return hash;
}

static size_t slot_of(const struct mx_world *world)
{
    size_t at = (size_t)hash_of(world, sizeof *world) & (space.table_cap - 1);
    while (space.table[at] != NONE &&
           memcmp(&space.worlds[space.table[at]], world, sizeof *world) != 0) {
        at = (at + 1) & (space.table_cap - 1);
    }
    return at;
}

static void *get(void *old, size_t count, size_t size)
{
    void *block = realloc(old, count * size);
    if (block == NULL) {
        (void)fputs("no memory\n", stderr);
        exit(2);
    }
    return block;
}

static void grow(void)
{
    if (space.count < space.cap) {
        return;
    }
    space.cap = space.cap == 0 ? (size_t)1 << 16 : space.cap * 2;
    space.worlds = get(space.worlds, space.cap, sizeof *space.worlds);
    space.nodes = get(space.nodes, space.cap, sizeof *space.nodes);
    space.table_cap = space.cap * 2;
    space.table = get(space.table, space.table_cap, sizeof *space.table);
    memset(space.table, 0xFF, space.table_cap * sizeof *space.table);
    for (size_t i = 0; i < space.count; i++) {
        space.table[slot_of(&space.worlds[i])] = (uint32_t)i;
    }
}

static void keep(const struct mx_world *world, uint32_t parent, struct mx_step step)
{
    grow();
    const size_t at = slot_of(world);
    if (space.table[at] != NONE) {
        return;
    }
    space.table[at] = (uint32_t)space.count;
    space.worlds[space.count] = *world;
    space.nodes[space.count++] = (struct node){parent, step};
}

static void print_trace(uint32_t number, struct mx_step last)
{
    struct mx_step steps[256];
    size_t count = 0;

    for (; number != 0 && count < 256; number = space.nodes[number].parent) {
        steps[count++] = space.nodes[number].step;
    }
    while (count > 0) {
        mx_step_print(steps[--count]);
    }
    mx_step_print(last);
}

static bool broken(const struct mx_config *config, const struct mx_violation *v, uint32_t number,
                   struct mx_step last)
{
    (void)printf("VIOLATED %s: %s (world %s)\n", v->invariant, v->text, config->name);
    print_trace(number, last);
    return false;
}

/* ------------------------------------------------------------------------------- fair
 * continuations */

/* What a patient world does in one round: everything that is on its way arrives, what was sent is
 * executed, what is open is asked about, what is due happens. */
static bool is_fair(const struct mx_config *config, struct mx_step step,
                    const struct mx_world *world, int pass)
{
    switch (step.kind) {
    case MX_PASS:
        return pass == 0;
    case MX_EXECUTE: /* The first that is listed is the best the PSP can do. */
    case MX_VOID:
    case MX_MOVE: /* Pending ends; what is done stays. */
        return pass == 1 && (step.kind != MX_MOVE || step.arg % 16 == MX_DONE);
    case MX_HOOK:
    case MX_SUM_HOOK:
    case MX_VOID_ANSWER:
    case MX_DISPUTE_HOOK:
    case MX_ANSWER:
    case MX_TOLD:
        return pass == 2;
    case MX_OLD:
        return pass == 3;
    case MX_ASK:
        return pass == 4 && world->slot.is_set == 0;
    case MX_DUE: /* Where nothing can be asked a person looks. */
        return pass == 5 &&
               (step.arg % 16 == PAY_DEADLINE_SEND ||
                (step.arg == MX_DUES - 1 && (config->queries == 0 || config->by_number == 0)));
    case MX_CANCEL_DUE:
    case MX_REQUEST_DUE:
        return pass == 5;
    default:
        return false;
    }
}

static bool take(const struct mx_config *config, struct mx_world *world, struct mx_step step,
                 struct mx_violation *v)
{
    bool is_beyond = false;
    const struct mx_world before = *world;
    const bool holds = mx_step_apply(config, world, step, &is_beyond, v);

    if (is_beyond) {
        *world = before;
    }
    return holds;
}

static bool still_possible(const struct mx_config *config, const struct mx_world *world,
                           struct mx_step wanted)
{
    struct mx_step steps[MX_STEPS_MAX];
    const size_t count = mx_step_list(config, world, steps);
    for (size_t i = 0; i < count; i++) {
        if (memcmp(&steps[i], &wanted, sizeof wanted) == 0) {
            return true;
        }
    }
    return false;
}

static bool round_of(const struct mx_config *config, struct mx_world *world, struct mx_violation *v)
{
    struct mx_step steps[MX_STEPS_MAX];

    for (int pass = 0; pass < 6; pass++) {
        const size_t count = mx_step_list(config, world, steps);
        for (size_t i = 0; i < count; i++) {
            if (!is_fair(config, steps[i], world, pass) ||
                !still_possible(config, world, steps[i])) {
                continue;
            }
            if (!take(config, world, steps[i], v)) {
                return false;
            }
            const struct mx_step told = {MX_TOLD, world->slot.kind, world->slot.index, 0};
            if (steps[i].kind == MX_ASK && !take(config, world, told, v)) {
                return false;
            }
        }
    }
    return true;
}

static bool rest(const struct mx_config *config, const struct mx_world *from,
                 struct mx_violation *v)
{
    struct mx_world world = *from;

    for (int round = 0; round < FAIR_ROUNDS; round++) {
        const struct mx_world before = world;
        if (!round_of(config, &world, v)) {
            return false;
        }
        if (memcmp(&before, &world, sizeof world) == 0) {
            break;
        }
    }
    totals.rests++;
    return mx_check_rest(config, &world, v);
}

/* --------------------------------------------------------------------------------------------
 * searching */

static bool expand(const struct mx_config *config, uint32_t number)
{
    struct mx_step steps[MX_STEPS_MAX];
    const struct mx_world world = space.worlds[number];
    const size_t count = mx_step_list(config, &world, steps);

    for (size_t i = 0; i < count; i++) {
        struct mx_world next = world;
        struct mx_violation v = {.is_set = false};
        bool is_beyond = false;
        totals.transitions++;
        if (!mx_step_apply(config, &next, steps[i], &is_beyond, &v)) {
            return broken(config, &v, number, steps[i]);
        }
        if (is_beyond) {
            totals.beyond++;
        } else {
            keep(&next, number, steps[i]);
        }
    }
    return true;
}

static bool search(const struct mx_config *config)
{
    static const struct mx_step none = {0, 0, 0, 0};
    struct mx_world world;
    const uint64_t before = totals.transitions;

    space.count = 0;
    if (space.table_cap > 0) {
        memset(space.table, 0xFF, space.table_cap * sizeof *space.table);
    }
    mx_bench_open(config);
    mx_world_begin(config, &world);
    keep(&world, 0, none);
    for (uint32_t number = 0; number < space.count; number++) {
        struct mx_violation v = {.is_set = false};
        if (!expand(config, number)) {
            return false;
        }
        const struct mx_world from = space.worlds[number];
        if ((number < FAIR_ALL || number % FAIR_EVERY == 0) && !rest(config, &from, &v)) {
            (void)broken(config, &v, space.nodes[number].parent, space.nodes[number].step);
            return false;
        }
        if (space.count > STATES_MAX) {
            totals.is_incomplete = true;
            break;
        }
    }
    totals.states += space.count;
    (void)printf("world %-13s %9zu states %10llu transitions\n", config->name, space.count,
                 (unsigned long long)(totals.transitions - before));
    return true;
}

static bool switch_off(const char *name)
{
    for (int g = 0; g < PAY_GUARD_COUNT; g++) {
        if (strcmp(pay_guard_name((enum pay_guard)g), name) == 0) {
            pay_guards_off = UINT64_C(1) << g;
            return true;
        }
    }
    (void)fprintf(stderr, "no guard '%s'\n", name);
    return false;
}

static int run(const char *world, bool is_full)
{
    struct timespec from;
    struct timespec to;
    bool found = false;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    for (size_t i = 0; i < mx_config_count; i++) {
        const bool wanted = world != NULL ? strcmp(world, mx_configs[i].name) == 0
                                          : is_full || !mx_configs[i].only_full;
        found |= wanted;
        if (wanted && !search(&mx_configs[i])) {
            return 1;
        }
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &to);
    for (int i = 0; i < MX_INVARIANT_COUNT; i++) {
        (void)printf("  %-14s %12llu checks\n", mx_invariant_name((enum mx_invariant)i),
                     (unsigned long long)mx_checks[i]);
    }
    if (!found || totals.is_incomplete) {
        (void)puts(found ? "INCOMPLETE" : "no such world");
        return 2;
    }
    (void)printf("no invariant broken: %llu states, %llu transitions, %llu beyond the bound, %llu "
                 "fair continuations, %.1f s\n",
                 (unsigned long long)totals.states, (unsigned long long)totals.transitions,
                 (unsigned long long)totals.beyond, (unsigned long long)totals.rests,
                 (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9);
    return 0;
}

int main(int argc, char **argv)
{
    const char *world = NULL;
    bool is_full = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--bound=full") == 0) {
            is_full = true;
        } else if (strncmp(argv[i], "--world=", 8) == 0) {
            world = argv[i] + 8;
        } else if (strncmp(argv[i], "--without=", 10) == 0) {
            if (!switch_off(argv[i] + 10)) {
                return 2;
            }
        } else if (strcmp(argv[i], "--bound=small") != 0) {
            (void)fputs("usage: explorer-money [--bound=small|full] [--world=NAME] "
                        "[--without=GUARD]\n",
                        stderr);
            return 2;
        }
    }
    return run(world, is_full);
}
