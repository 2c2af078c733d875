/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file mem.h
 * @brief The heap, for handles that live as long as the process or a connection; per message:
 * arena.h.
 *
 * Ownership: the caller's until pay_mem_free(). Threads: any. Failure: NULL.
 */
#ifndef PAY_BASE_MEM_H
#define PAY_BASE_MEM_H

#include "common/base/attr.h"

#include <stddef.h>

/** Zeroed; count * size is checked for overflow. @return NULL when memory is out. */
PAY_MUST_CHECK void *pay_mem_new(size_t count, size_t size);
/** @return always NULL; copes with NULL. */
void *pay_mem_free(void *memory);
/** Zero secrets in a way that the compiler may not leave out. Copes with NULL. */
void pay_mem_wipe(void *memory, size_t bytes);

/** From the kernel, fit for keys and nonces. Aborts when it has none. */
void pay_mem_random(void *memory, size_t bytes);

#endif /* PAY_BASE_MEM_H */
