/* SPDX-License-Identifier: Apache-2.0 */
/** @file attr.h @brief The only place where compiler attributes are named. */
#ifndef PAY_BASE_ATTR_H
#define PAY_BASE_ATTR_H

/** The caller must look at the result; a deliberate ignore is a (void) and a reason. */
#define PAY_MUST_CHECK __attribute__((warn_unused_result))
/** printf-like checking: fmt and first are argument positions counted from 1. */
#define PAY_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define PAY_NORETURN __attribute__((noreturn))

/* NOLINTNEXTLINE(misc-redundant-expression): equal only under this compiler. */
_Static_assert(__STDC_VERSION__ >= 201710L, "C17 is what the sources are written in");

#endif /* PAY_BASE_ATTR_H */
