/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file assert.h
 * @brief Assertions for bugs, on in every build type.
 *
 * A breach prints file, line and the expression, then aborts. Never assert on message content:
 * that is validated to a refusal first, or one bad record becomes a crash loop.
 */
#ifndef PAY_BASE_ASSERT_H
#define PAY_BASE_ASSERT_H

#include "common/base/attr.h"

#define PAY_ASSERT(cond) ((cond) ? (void)0 : pay_assert_failed(#cond, __FILE__, __LINE__))

PAY_NORETURN void pay_assert_failed(const char *expression, const char *file, int line);

#endif /* PAY_BASE_ASSERT_H */
