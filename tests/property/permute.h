/* SPDX-License-Identifier: Apache-2.0 */
/** @file permute.h @brief Every order of a few things, one after the other. */
#ifndef PAY_TESTS_PROPERTY_PERMUTE_H
#define PAY_TESTS_PROPERTY_PERMUTE_H

#include <stdbool.h>
#include <stddef.h>

#define PERMUTE_MAX 8

/** The next permutation in lexicographic order. @return false after the last. */
bool permute(size_t order[PERMUTE_MAX], size_t count);

#endif /* PAY_TESTS_PROPERTY_PERMUTE_H */
