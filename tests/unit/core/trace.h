/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file trace.h
 * @brief A decision as text: the input, the verdict, every effect, every history row, and the whole
 * snapshot after it, field by field. What two versions of the core print alike, they decide alike.
 */
#ifndef PAY_TESTS_CORE_TRACE_H
#define PAY_TESTS_CORE_TRACE_H

#include <stdio.h>

#include "tests/unit/core/world.h"

/** Prints the world's last decision. */
void trace_print(FILE *out, const struct world *w);

#endif /* PAY_TESTS_CORE_TRACE_H */
