/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file arena.h
 * @brief One bounded region per turn: everything of a message is allocated here and reset at once.
 *
 * Ownership: what is returned belongs to the arena and ends at pay_arena_reset() or _free().
 * Threads: one at a time. Failure: NULL once @c max bytes are in use; callers turn that into a
 * refusal.
 */
#ifndef PAY_BASE_ARENA_H
#define PAY_BASE_ARENA_H

#include "common/base/attr.h"
#include "common/base/str.h"

struct pay_arena;

/** @param max_bytes upper bound over all chunks. @return NULL when memory is out. */
struct pay_arena *pay_arena_new(size_t max_bytes);
/** @return always NULL; copes with NULL. */
struct pay_arena *pay_arena_free(struct pay_arena *arena);
/** Forget everything; memory is kept for the next turn. */
void pay_arena_reset(struct pay_arena *arena);
/** Zeroed, aligned for any type. @return NULL at the maximum. */
PAY_MUST_CHECK void *pay_arena_alloc(struct pay_arena *arena, size_t bytes);
/** As calloc: count * size checked for overflow. */
PAY_MUST_CHECK void *pay_arena_array(struct pay_arena *arena, size_t count, size_t size);
/** Copy @p text and terminate it. Absent text gives absent; at the maximum ptr is NULL and len > 0
 * is lost. */
struct pay_str pay_arena_str(struct pay_arena *arena, struct pay_str text);
struct pay_bytes pay_arena_bytes(struct pay_arena *arena, struct pay_bytes bytes);
/** @return formatted text, NUL-terminated; ptr NULL at the maximum. */
struct pay_str pay_arena_printf(struct pay_arena *arena, const char *fmt, ...) PAY_PRINTF(2, 3);
/** @return true when something was refused since the last reset: what is missing is the arena's,
 * not the heap's. */
bool pay_arena_refused(const struct pay_arena *arena);
/** Bytes in use now (for tests and metrics). */
size_t pay_arena_used(const struct pay_arena *arena);

#endif /* PAY_BASE_ARENA_H */
