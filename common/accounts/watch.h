/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file watch.h
 * @brief Files, and what stat(2) said of each before it was read: did one of them change since?
 *
 * Ownership: the list owns its paths. Threads: one at a time. A file that is not there is a state
 * like another, so that its coming is a change.
 */
#ifndef PAY_ACCOUNTS_WATCH_H
#define PAY_ACCOUNTS_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pay_watch_file {
    char *path;
    uint64_t state; /**< Hash of device, inode, size and time; 0: not there. */
};

struct pay_watch {
    struct pay_watch_file *files;
    size_t count, cap;
    bool failed; /**< Out of memory: counts as changed. */
};

/** Note a file's state now; call it before reading the file. */
void pay_watch_add(struct pay_watch *watch, const char *path);
/** @return true when any file's state differs from the noted one. */
bool pay_watch_changed(const struct pay_watch *watch);
/** Empties it; copes with a zeroed one. */
void pay_watch_free(struct pay_watch *watch);

#endif /* PAY_ACCOUNTS_WATCH_H */
