/* SPDX-License-Identifier: Apache-2.0 */
#include "common/accounts/accounts_internal.h"

#include "common/base/mem.h"

#include <pthread.h>
#include <string.h>

#include "common/base/banned.h"

struct pay_accounts_store {
    char *path;
    char *secrets_dir;
    struct pay_watch watch; /**< Of the last reading, good or bad: each is tried once. */
    atomic_ullong loads;
    atomic_ullong errors;
    pthread_mutex_t mutex; /**< Guards current alone; held for a few instructions. */
    struct pay_accounts *current;
};

static char *copy_of(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = pay_mem_new(1, size);
    if (copy != NULL) {
        memcpy(copy, text, size);
    }
    return copy;
}

struct pay_accounts_store *pay_accounts_close(struct pay_accounts_store *store)
{
    if (store == NULL) {
        return NULL;
    }
    pay_accounts_release(store->current);
    pay_watch_free(&store->watch);
    pay_mem_free(store->path);
    pay_mem_free(store->secrets_dir);
    (void)pthread_mutex_destroy(&store->mutex); /* Nobody holds it any more. */
    return pay_mem_free(store);
}

enum pay_status pay_accounts_open(const char *path, const char *secrets_dir,
                                  struct pay_accounts_store **ret_store, struct pay_buf *problems,
                                  struct pay_err *err)
{
    struct pay_accounts_store *store = pay_mem_new(1, sizeof *store);
    enum pay_status status = PAY_FATAL;
    if (store == NULL || pthread_mutex_init(&store->mutex, NULL) != 0) {
        pay_mem_free(store);
        return pay_err_set(err, PAY_FATAL, 0, "accounts", "out of memory");
    }
    store->path = copy_of(path);
    store->secrets_dir = copy_of(secrets_dir == NULL ? "" : secrets_dir);
    if (store->path == NULL || store->secrets_dir == NULL) {
        status = pay_err_set(err, PAY_FATAL, 0, "accounts", "out of memory");
        goto out;
    }
    status = pay_accounts_read(path, secrets_dir, &store->watch, problems, &store->current, err);
out:
    if (status != PAY_OK) {
        pay_accounts_close(store);
        return status;
    }
    atomic_store(&store->loads, 1);
    *ret_store = store;
    return PAY_OK;
}

enum pay_accounts_change pay_accounts_refresh(struct pay_accounts_store *store,
                                              struct pay_buf *problems)
{
    struct pay_watch watch = {0};
    struct pay_accounts *fresh = NULL;
    if (!pay_watch_changed(&store->watch)) {
        return PAY_ACCOUNTS_SAME;
    }
    const enum pay_status status =
        pay_accounts_read(store->path, store->secrets_dir, &watch, problems, &fresh, NULL);
    pay_watch_free(&store->watch);
    store->watch = watch;
    if (status != PAY_OK) {
        atomic_fetch_add(&store->errors, 1);
        return PAY_ACCOUNTS_BAD;
    }
    (void)pthread_mutex_lock(&store->mutex); /* A plain mutex: cannot fail. */
    struct pay_accounts *old = store->current;
    store->current = fresh;
    (void)pthread_mutex_unlock(&store->mutex);
    pay_accounts_release(old);
    atomic_fetch_add(&store->loads, 1);
    return PAY_ACCOUNTS_CHANGED;
}

struct pay_accounts_stats pay_accounts_stats(const struct pay_accounts_store *store)
{
    return (struct pay_accounts_stats){.loads = atomic_load(&store->loads),
                                       .errors = atomic_load(&store->errors)};
}

const struct pay_accounts *pay_accounts_acquire(struct pay_accounts_store *store)
{
    (void)pthread_mutex_lock(&store->mutex);
    struct pay_accounts *current = store->current;
    atomic_fetch_add_explicit(&current->refs, 1, memory_order_relaxed);
    (void)pthread_mutex_unlock(&store->mutex);
    return current;
}
