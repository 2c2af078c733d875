/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/mem.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/banned.h"

void *pay_mem_new(size_t count, size_t size)
{
    return calloc(count, size);
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
