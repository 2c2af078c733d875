/* SPDX-License-Identifier: Apache-2.0 */
#include "common/accounts/watch.h"

#include "common/base/hash.h"
#include "common/base/mem.h"

#include <string.h>
#include <sys/stat.h>

#include "common/base/banned.h"

#define FIRST_CAP 16u

static uint64_t state_of(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return 0;
    }
    const uint64_t parts[] = {(uint64_t)info.st_dev, (uint64_t)info.st_ino, (uint64_t)info.st_size,
                              (uint64_t)info.st_mtim.tv_sec, (uint64_t)info.st_mtim.tv_nsec};
    const uint64_t state =
        pay_hash_fnv1a(PAY_FNV_START, (struct pay_bytes){(const uint8_t *)parts, sizeof parts});
    return state == 0 ? 1 : state;
}

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
    watch->files[watch->count++] = (struct pay_watch_file){copy, state_of(path)};
}

bool pay_watch_changed(const struct pay_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        if (state_of(watch->files[i].path) != watch->files[i].state) {
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
