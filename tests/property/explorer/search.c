/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/property/explorer/search.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/hash.h"
#include "tests/property/explorer/fair.h"
#include "tests/property/explorer/trace.h"

#define NONE UINT32_MAX
#define CHUNK_STATES ((size_t)1 << 14)
#define CHUNKS_MAX ((size_t)1 << 13)

/* Worlds in the order in which they were found, in chunks, each with how it was found; and an open
 * addressing table of their numbers. */
struct node {
    uint32_t parent;
    struct xp_step step;
};

struct space {
    const struct xp_config *config;
    size_t size; /* Of one world. */
    uint8_t *chunks[CHUNKS_MAX];
    struct node *nodes;
    size_t chunk_count, node_cap;
    uint32_t count;
    uint32_t *table;
    size_t table_cap;
};

static uint8_t *bytes_of(const struct space *space, uint32_t number)
{
    return space->chunks[number / CHUNK_STATES] + (number % CHUNK_STATES) * space->size;
}

static void get(const struct space *space, uint32_t number, struct xp_world *world)
{
    memset(world, 0, sizeof *world);
    memcpy(world, bytes_of(space, number), space->size);
}

static uint64_t hash_of(const uint8_t *bytes, size_t len)
{
    uint64_t hash = UINT64_C(0x9E3779B97F4A7C15);
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, len - i < 8 ? len - i : 8);
        hash = (hash ^ word) * UINT64_C(0xD6E8FEB86659FD93);
        hash ^= hash >> 32;
    }
    return hash;
}

static size_t find(const struct space *space, const uint8_t *world)
{
    size_t at = (size_t)hash_of(world, space->size) & (space->table_cap - 1);
    while (space->table[at] != NONE &&
           memcmp(bytes_of(space, space->table[at]), world, space->size) != 0) {
        at = (at + 1) & (space->table_cap - 1);
    }
    return at;
}

static void *must(void *memory)
{
    PAY_ASSERT(memory != NULL);
    return memory;
}

static void grow_table(struct space *space)
{
    free(space->table);
    space->table_cap = space->table_cap == 0 ? (size_t)1 << 16 : space->table_cap * 2;
    space->table = must(malloc(space->table_cap * sizeof *space->table));
    memset(space->table, 0xFF, space->table_cap * sizeof *space->table);
    for (uint32_t i = 0; i < space->count; i++) {
        space->table[find(space, bytes_of(space, i))] = i;
    }
}

static void make_room(struct space *space)
{
    if (space->count == space->node_cap) {
        space->node_cap = space->node_cap == 0 ? CHUNK_STATES : space->node_cap * 2;
        space->nodes = must(realloc(space->nodes, space->node_cap * sizeof *space->nodes));
    }
    if (space->count < space->chunk_count * CHUNK_STATES) {
        return;
    }
    PAY_ASSERT(space->chunk_count < CHUNKS_MAX);
    space->chunks[space->chunk_count++] = must(malloc(CHUNK_STATES * space->size));
}

/* @return true when it was not known. */
static bool put(struct space *space, const struct xp_world *world, uint32_t parent,
                struct xp_step step)
{
    if ((size_t)space->count * 3 >= space->table_cap * 2) {
        grow_table(space);
    }
    const size_t at = find(space, (const uint8_t *)world);
    if (space->table[at] != NONE) {
        return false;
    }
    make_room(space);
    memcpy(bytes_of(space, space->count), world, space->size);
    space->nodes[space->count] = (struct node){parent, step};
    space->table[at] = space->count++;
    return true;
}

static size_t memory_of(const struct space *space)
{
    return space->chunk_count * CHUNK_STATES * space->size + space->node_cap * sizeof(struct node) +
           space->table_cap * sizeof(uint32_t);
}

static void drop(struct space *space)
{
    for (size_t i = 0; i < space->chunk_count; i++) {
        free(space->chunks[i]);
    }
    free(space->nodes);
    free(space->table);
}

/* ------------------------------------------------------------------------------------- the trace
 */

static void trace_to(const struct space *space, uint32_t number, struct xp_trace *trace)
{
    uint32_t chain[XP_TRACE_MAX];
    size_t length = 0;

    while (number != NONE && space->nodes[number].parent != NONE && length < XP_TRACE_MAX) {
        chain[length++] = number;
        number = space->nodes[number].parent;
    }
    trace->count = 0;
    while (length > 0) {
        trace->steps[trace->count++] = space->nodes[chain[--length]].step;
    }
}

static void trace_add(struct xp_trace *trace, const struct xp_step *steps, size_t count)
{
    for (size_t i = 0; i < count && trace->count < XP_TRACE_MAX; i++) {
        trace->steps[trace->count++] = steps[i];
    }
}

/* ------------------------------------------------------------------------------------ the search
 */

struct search {
    struct space space;
    const struct xp_config *config;
    const struct xp_search_limits *limits;
    struct xp_totals *totals;
    struct xp_violation violation;
};

static void report(const struct search *search, uint32_t number, const struct xp_step *steps,
                   size_t count)
{
    struct xp_trace *trace = must(calloc(1, sizeof *trace));
    trace_to(&search->space, number, trace);
    trace_add(trace, steps, count);
    xp_trace_print(search->config, trace, &search->violation);
    free(trace);
}

static bool expand(struct search *search, uint32_t number)
{
    struct xp_step steps[XP_STEPS_MAX];
    struct xp_world world;
    struct xp_result result;

    get(&search->space, number, &world);
    const size_t count = xp_step_list(search->config, &world, steps);
    for (size_t i = 0; i < count; i++) {
        struct xp_world next = world;
        search->totals->transitions++;
        if (!xp_step_apply(search->config, &next, steps[i], &result, &search->violation)) {
            report(search, number, &steps[i], 1);
            return false;
        }
        if (result.is_beyond) {
            search->totals->beyond++;
        } else {
            (void)put(&search->space, &next, number, steps[i]);
        }
    }
    return true;
}

static bool is_due(const struct xp_world *world, size_t size, unsigned every)
{
    return every != 0 && hash_of((const uint8_t *)world, size) % every == 0;
}

static bool look_around(struct search *search, uint32_t number)
{
    struct xp_fair_trace *fair = NULL;
    struct xp_world world;

    get(&search->space, number, &world);
    if (world.exists == 0) {
        return true;
    }
    if (is_due(&world, search->space.size, search->limits->hostile_every) &&
        !xp_check_hostile(search->config, &world, &search->violation)) {
        report(search, number, NULL, 0);
        return false;
    }
    if (!is_due(&world, search->space.size, search->limits->fair_every)) {
        return true;
    }
    fair = must(malloc(sizeof *fair));
    const bool holds = xp_fair_check(search->config, &world, fair, &search->violation);
    if (!holds) {
        report(search, number, fair->steps, fair->count);
    }
    free(fair);
    return holds;
}

static bool run(struct search *search)
{
    uint32_t level_end = 1;

    for (uint32_t number = 0; number < search->space.count; number++) {
        if (number == level_end) {
            level_end = search->space.count;
            search->totals->depth++;
        }
        if (!expand(search, number) || !look_around(search, number)) {
            return false;
        }
        if (memory_of(&search->space) > search->limits->memory_max) {
            search->totals->is_incomplete = true;
            return true;
        }
    }
    return true;
}

bool xp_search(const struct xp_config *config, const struct xp_search_limits *limits,
               struct xp_totals *totals)
{
    struct search search = {.config = config, .limits = limits, .totals = totals};
    const struct xp_world start = {0};

    search.space.config = config;
    search.space.size = xp_world_size(config);
    xp_bench_open(config);
    *totals = (struct xp_totals){0};
    (void)put(&search.space, &start, NONE, (struct xp_step){0});
    const bool holds = run(&search);
    totals->states = search.space.count;
    drop(&search.space);
    xp_fair_reset();
    return holds;
}
