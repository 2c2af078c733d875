/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/arena.h"

#include "common/base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/banned.h"

/* One region, taken once: the kernel gives pages only as they are touched, and nothing fragments.
 */
struct pay_arena {
    size_t max;
    size_t used;
    bool refused;
    max_align_t region[];
};

static const size_t align = _Alignof(max_align_t);

struct pay_arena *pay_arena_new(size_t max_bytes)
{
    if (max_bytes > SIZE_MAX - sizeof(struct pay_arena)) {
        return NULL;
    }
    /* malloc, not calloc: what is handed out is zeroed then, so a reset costs nothing. */
    struct pay_arena *arena = malloc(sizeof *arena + max_bytes);
    if (arena != NULL) {
        arena->max = max_bytes;
        arena->used = 0;
        arena->refused = false;
    }
    return arena;
}

struct pay_arena *pay_arena_free(struct pay_arena *arena)
{
    return pay_mem_free(arena);
}

void pay_arena_reset(struct pay_arena *arena)
{
    arena->used = 0;
    arena->refused = false;
}

void *pay_arena_alloc(struct pay_arena *arena, size_t bytes)
{
    /* used may lie behind max after rounding, never by more than one alignment. */
    const size_t room = arena->used < arena->max ? arena->max - arena->used : 0;
    if (bytes > room || (bytes == 0 && room == 0)) {
        arena->refused = true;
        return NULL;
    }
    void *memory = (char *)arena->region + arena->used;
    const size_t taken = bytes == 0 ? 1 : bytes; /* Two objects never share an address. */
    arena->used += (taken + align - 1) / align * align;
    memset(memory, 0, bytes);
    return memory;
}

void *pay_arena_array(struct pay_arena *arena, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        arena->refused = true;
        return NULL;
    }
    return pay_arena_alloc(arena, count * size);
}

/* A terminated copy; bytes need no terminator, but one byte more keeps this one function. */
static char *copy(struct pay_arena *arena, const void *from, size_t len)
{
    if (len == SIZE_MAX) {
        arena->refused = true;
        return NULL;
    }
    char *text = pay_arena_alloc(arena, len + 1);
    if (text != NULL) {
        memcpy(text, from, len);
    }
    return text;
}

struct pay_str pay_arena_str(struct pay_arena *arena, struct pay_str text)
{
    char *ptr = text.ptr == NULL ? NULL : copy(arena, text.ptr, text.len);
    return (struct pay_str){ptr, ptr == NULL ? 0 : text.len};
}

struct pay_bytes pay_arena_bytes(struct pay_arena *arena, struct pay_bytes bytes)
{
    void *ptr = bytes.ptr == NULL ? NULL : copy(arena, bytes.ptr, bytes.len);
    return (struct pay_bytes){ptr, ptr == NULL ? 0 : bytes.len};
}

struct pay_str pay_arena_printf(struct pay_arena *arena, const char *fmt, ...)
{
    struct pay_str text = {NULL, 0};
    va_list args;
    va_list again;

    va_start(args, fmt);
    va_copy(again, args);
    const int len = vsnprintf(NULL, 0, fmt, args);
    char *ptr = len < 0 ? NULL : pay_arena_alloc(arena, (size_t)len + 1);
    if (ptr != NULL) {
        (void)vsnprintf(ptr, (size_t)len + 1, fmt, again); /* Measured above: it fits. */
        text = (struct pay_str){ptr, (size_t)len};
    }
    va_end(again);
    va_end(args);
    return text;
}

bool pay_arena_refused(const struct pay_arena *arena)
{
    return arena->refused;
}

size_t pay_arena_used(const struct pay_arena *arena)
{
    return arena->used;
}
