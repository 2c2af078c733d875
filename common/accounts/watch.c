/* SPDX-License-Identifier: Apache-2.0 */
#include "common/accounts/watch.h"

#include "common/base/file.h"
#include "common/base/mem.h"

#include <string.h>

#include "common/base/banned.h"

#define FIRST_CAP 16u

static bool grow(struct pay_watch *watch)
{
    const size_t cap = watch->cap == 0 ? FIRST_CAP : watch->cap * 2;
    struct pay_watch_file *files = pay_mem_new(cap, sizeof *files);
    if (files == NULL) {
        return false;
    }
    if (watch->count > 0) {
        memcpy(files, watch->files, watch->count * sizeof *files);
    }
    pay_mem_free(watch->files);
    watch->files = files;
    watch->cap = cap;
    return true;
}

void pay_watch_add(struct pay_watch *watch, const char *path)
{
    const size_t size = strlen(path) + 1;
    char *copy = pay_mem_new(1, size);
    if (copy == NULL || (watch->count == watch->cap && !grow(watch))) {
        pay_mem_free(copy);
        watch->failed = true;
        return;
    }
    memcpy(copy, path, size);
    watch->files[watch->count++] = (struct pay_watch_file){copy, pay_file_state(path)};
}

bool pay_watch_changed(const struct pay_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        if (pay_file_state(watch->files[i].path) != watch->files[i].state) {
            return true;
        }
    }
    return watch->failed;
}

void pay_watch_free(struct pay_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        pay_mem_free(watch->files[i].path);
    }
    pay_mem_free(watch->files);
    *watch = (struct pay_watch){0};
}
