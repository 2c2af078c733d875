/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The explorer: every reachable state of a small world through the real decide() and orchestrate().
 *
 *   explorer [--bound=small|full] [--world=NAME] [--without=GUARD] [--walks=N --depth=M --seed=S]
 *            [--list-guards] [--list-worlds]
 *
 * Exit 0: no invariant broke. 1: one did, with its trace. 2: bad usage.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/core/guard.h"
#include "tests/property/explorer/search.h"
#include "tests/property/explorer/trace.h"
#include "tests/property/explorer/walk.h"

#define MIB ((size_t)1024 * 1024)

struct options {
    bool is_full;
    const char *world;
    unsigned walks, depth;
    uint64_t seed;
};

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool starts(const char *text, const char *prefix, const char **ret_rest)
{
    const size_t len = strlen(prefix);
    if (strncmp(text, prefix, len) != 0) {
        return false;
    }
    *ret_rest = text + len;
    return true;
}

static bool switch_off(const char *name)
{
    for (int guard = 0; guard < PAY_GUARD_COUNT; guard++) {
        if (strcmp(name, pay_guard_name((enum pay_guard)guard)) == 0) {
            pay_guards_off |= UINT64_C(1) << guard;
            return true;
        }
    }
    return false;
}

static int list(bool guards)
{
    for (int guard = 0; guards && guard < PAY_GUARD_COUNT; guard++) {
        (void)printf("%s\n", pay_guard_name((enum pay_guard)guard));
    }
    for (size_t i = 0; !guards && i < xp_config_count; i++) {
        (void)printf("%s%s\n", xp_configs[i].name, xp_configs[i].only_full ? " (full)" : "");
    }
    return 0;
}

/* @return false on an option that is none. */
static bool read_option(struct options *options, const char *arg)
{
    const char *rest = NULL;

    if (starts(arg, "--bound=", &rest)) {
        options->is_full = strcmp(rest, "full") == 0;
        return options->is_full || strcmp(rest, "small") == 0;
    }
    if (starts(arg, "--without=", &rest)) {
        return switch_off(rest);
    }
    if (starts(arg, "--world=", &rest)) {
        options->world = rest;
        return true;
    }
    if (starts(arg, "--walks=", &rest)) {
        options->walks = (unsigned)strtoul(rest, NULL, 10);
        return true;
    }
    if (starts(arg, "--depth=", &rest)) {
        options->depth = (unsigned)strtoul(rest, NULL, 10);
        return true;
    }
    if (starts(arg, "--seed=", &rest)) {
        options->seed = strtoull(rest, NULL, 10);
        return true;
    }
    return false;
}

static bool is_wanted(const struct options *options, const struct xp_config *config)
{
    if (options->world != NULL) {
        return strcmp(options->world, config->name) == 0;
    }
    return options->is_full || !config->only_full;
}

static bool explore(const struct options *options, const struct xp_config *config,
                    struct xp_totals *sum)
{
    const struct xp_search_limits limits = {
        .memory_max = (options->is_full ? 3500 : 900) * MIB,
        .fair_every = 1,
        .hostile_every = 16,
    };
    struct xp_totals totals = {0};
    const double begin = seconds();
    const bool holds = xp_search(config, &limits, &totals);

    (void)printf("%-28s %10" PRIu64 " states %12" PRIu64 " transitions  depth %3u  beyond %8" PRIu64
                 "  %6.1f s%s\n",
                 config->name, totals.states, totals.transitions, totals.depth, totals.beyond,
                 seconds() - begin, totals.is_incomplete ? "  INCOMPLETE" : "");
    (void)fflush(stdout);
    sum->states += totals.states;
    sum->transitions += totals.transitions;
    sum->depth = totals.depth > sum->depth ? totals.depth : sum->depth;
    return holds && !totals.is_incomplete;
}

static void print_walk(const struct xp_walk *walk, uint64_t seed)
{
    static struct xp_trace trace;

    memcpy(trace.steps, walk->steps, walk->count * sizeof walk->steps[0]);
    trace.count = walk->count;
    xp_trace_print(&walk->config, &trace, &walk->violation);
    (void)printf("again with --world=%s --walks=1 --seed=%" PRIu64 "\n", walk->config.name, seed);
}

static bool walk(const struct options *options, const struct xp_config *config,
                 struct xp_totals *sum)
{
    static struct xp_walk one;

    for (unsigned i = 0; i < options->walks; i++) {
        const bool holds = xp_walk(config, options->seed + i, options->depth, &one);
        sum->transitions += one.count;
        sum->depth = one.count > sum->depth ? (uint32_t)one.count : sum->depth;
        if (!holds) {
            print_walk(&one, options->seed + i);
            return false;
        }
    }
    (void)printf("%-28s %10u walks from seed %" PRIu64 "\n", config->name, options->walks,
                 options->seed);
    return true;
}

static void print_checks(void)
{
    for (int i = 0; i < XP_INVARIANT_COUNT; i++) {
        (void)printf("  %-22s %14" PRIu64 " checks\n", xp_invariant_name((enum xp_invariant)i),
                     xp_checks[i]);
    }
}

int main(int argc, char **argv)
{
    struct options options = {.depth = 200, .seed = 1};
    struct xp_totals sum = {0};
    const double begin = seconds();
    bool holds = true;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list-guards") == 0 || strcmp(argv[i], "--list-worlds") == 0) {
            return list(strcmp(argv[i], "--list-guards") == 0);
        }
        if (!read_option(&options, argv[i])) {
            (void)fprintf(stderr, "unknown option or value '%s'\n", argv[i]);
            return 2;
        }
    }
    for (size_t i = 0; holds && i < xp_config_count; i++) {
        if (is_wanted(&options, &xp_configs[i])) {
            holds = options.walks > 0 ? walk(&options, &xp_configs[i], &sum)
                                      : explore(&options, &xp_configs[i], &sum);
        }
    }
    print_checks();
    (void)printf("%s: %" PRIu64 " states, %" PRIu64 " transitions, depth %u, %.1f s\n",
                 holds ? "no invariant broken" : "FAILED", sum.states, sum.transitions, sum.depth,
                 seconds() - begin);
    return holds ? 0 : 1;
}
