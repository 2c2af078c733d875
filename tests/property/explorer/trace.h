/* SPDX-License-Identifier: Apache-2.0 */
/** @file trace.h @brief How a world came about, in words. */
#ifndef PAY_TESTS_EXPLORER_TRACE_H
#define PAY_TESTS_EXPLORER_TRACE_H

#include "tests/property/explorer/step.h"

#define XP_TRACE_MAX 4096

struct xp_trace {
    struct xp_step steps[XP_TRACE_MAX];
    size_t count;
};

/** Prints the violation and, by going through them again, every step to it. Deadlines are printed
 * in ticks from the moment of the step. */
void xp_trace_print(const struct xp_config *config, const struct xp_trace *trace,
                    const struct xp_violation *violation);

#endif /* PAY_TESTS_EXPLORER_TRACE_H */
