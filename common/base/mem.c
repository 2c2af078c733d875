/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/mem.h"

#include "common/base/assert.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/base/banned.h"

void *pay_mem_new(size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) {
        return NULL; /* calloc checks as well, but aborts under the address sanitizer. */
    }
    const size_t bytes = count * size;
    return calloc(1, bytes == 0 ? 1 : bytes); /* NULL means "out of memory" only. */
}

void *pay_mem_free(void *memory)
{
    free(memory);
    return NULL;
}

void pay_mem_wipe(void *memory, size_t bytes)
{
    if (memory != NULL) {
        explicit_bzero(memory, bytes);
    }
}

void pay_mem_random(void *memory, size_t bytes)
{
    char *at = memory;

    while (bytes > 0) {
        const ssize_t got = getrandom(at, bytes, 0);
        PAY_ASSERT(got > 0 || errno == EINTR);
        if (got > 0) {
            at += got;
            bytes -= (size_t)got;
        }
    }
}
