/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/store.h"

#include <string.h>

#include "common/base/assert.h"
#include "common/base/mem.h"
#include "common/core/types.h"
#include "common/store/statement.h"

#include "common/base/banned.h"

struct pay_store {
    struct pay_pg *pg;
    struct pay_pg_params *params;
    int64_t expected[PAY_PG_QUEUE_MAX];
    struct pay_pg_result *results[PAY_PG_QUEUE_MAX];
    size_t queued;
    size_t result_count;
};

enum pay_status pay_store_new(const struct pay_pg_options *options, struct pay_store **ret_store,
                              struct pay_err *err)
{
    struct pay_store *store = pay_mem_new(1, sizeof(*store));
    if (store == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "store.new", "memory is out");
    }
    store->params = pay_pg_params_new(PAY_STORE_PARAMS_BYTES_MAX);
    if (store->params == NULL) {
        (void)pay_store_free(store); /* always NULL */
        return pay_err_set(err, PAY_RETRY, 0, "store.new", "memory is out");
    }
    enum pay_status status = pay_pg_new(options, &store->pg, err);
    if (status != PAY_OK) {
        (void)pay_store_free(store); /* always NULL */
        return status;
    }
    *ret_store = store;
    return PAY_OK;
}

struct pay_store *pay_store_free(struct pay_store *store)
{
    if (store != NULL) {
        pay_store_results_free(store);
        store->pg = pay_pg_free(store->pg);
        store->params = pay_pg_params_free(store->params);
        pay_mem_free(store);
    }
    return NULL;
}

enum pay_status pay_store_connect(struct pay_store *store, struct pay_err *err)
{
    pay_store_results_free(store);
    store->queued = 0;
    return pay_pg_reconnect(store->pg, err);
}

enum pay_status pay_store_prefer_indexes(struct pay_store *store, struct pay_err *err)
{
    return pay_pg_script(
        store->pg,
        "SET enable_seqscan = off; SET enable_mergejoin = off; SET enable_hashjoin = off;"
        " SET jit = off",
        err);
}

bool pay_store_usable(const struct pay_store *store)
{
    return pay_pg_usable(store->pg);
}

struct pay_pg *pay_store_pg(struct pay_store *store)
{
    return store->pg;
}

enum pay_status pay_store_begin(struct pay_store *store, struct pay_err *err)
{
    enum pay_status status = pay_pg_queue_begin(store->pg, err);
    if (status == PAY_OK) {
        store->expected[store->queued++] = PAY_STORE_ANY_COUNT;
    }
    return status;
}

enum pay_status pay_store_commit(struct pay_store *store, struct pay_err *err)
{
    PAY_ASSERT(store->queued == 0);
    return pay_pg_commit(store->pg, err);
}

void pay_store_rollback(struct pay_store *store)
{
    pay_store_results_free(store);
    store->queued = 0;
    pay_pg_rollback(store->pg);
}

enum pay_status pay_store_flush(struct pay_store *store, struct pay_err *err)
{
    enum pay_status status = pay_store_run(store, err);
    pay_store_results_free(store);
    return status;
}

/* ---- statement.h ---- */

struct pay_pg_params *pay_store_params(struct pay_store *store)
{
    pay_pg_params_reset(store->params);
    return store->params;
}

struct pay_pg_params *pay_store_more_params(struct pay_store *store)
{
    return store->params;
}

enum pay_status pay_store_queue(struct pay_store *store, const struct pay_pg_stmt *stmt,
                                int64_t expected, struct pay_err *err)
{
    PAY_ASSERT(store->queued < PAY_PG_QUEUE_MAX);
    enum pay_status status = pay_pg_queue(store->pg, stmt, store->params, err);
    if (status == PAY_OK) {
        store->expected[store->queued++] = expected;
    }
    return status;
}

enum pay_status pay_store_queue_rows(struct pay_store *store, const struct pay_pg_stmt *stmt,
                                     struct pay_columns columns, const void *const *rows,
                                     size_t count, struct pay_err *err)
{
    if (count == 0) {
        return PAY_OK;
    }
    pay_store_add_columns(store, columns, rows, count);
    return pay_store_queue(store, stmt, (int64_t)count, err);
}

size_t pay_store_queued(const struct pay_store *store)
{
    return store->queued;
}

static enum pay_status check_counts(const struct pay_store *store, struct pay_err *err)
{
    for (size_t i = 0; i < store->result_count; i++) {
        int64_t touched = pay_pg_affected(store->results[i]);
        if (store->expected[i] != PAY_STORE_ANY_COUNT && touched != store->expected[i]) {
            return pay_err_set(err, PAY_RETRY, PAY_STORE_COUNT, "store.run",
                               "statement %zu touched %lld rows, not %lld", i, (long long)touched,
                               (long long)store->expected[i]);
        }
    }
    return PAY_OK;
}

enum pay_status pay_store_run(struct pay_store *store, struct pay_err *err)
{
    pay_store_results_free(store);
    size_t count = store->queued;
    store->queued = 0;
    if (count == 0) {
        return PAY_OK;
    }
    enum pay_status status = pay_pg_run(store->pg, store->results, count, err);
    if (status != PAY_OK) {
        return status;
    }
    store->result_count = count;
    return check_counts(store, err);
}

const struct pay_pg_result *pay_store_result(const struct pay_store *store, size_t index)
{
    PAY_ASSERT(index < store->result_count);
    return store->results[index];
}

void pay_store_results_free(struct pay_store *store)
{
    pay_pg_results_free(store->results, store->result_count);
    store->result_count = 0;
}

enum pay_status pay_store_exec(struct pay_store *store, const struct pay_pg_stmt *stmt,
                               struct pay_err *err)
{
    PAY_ASSERT(store->queued == 0);
    enum pay_status status = pay_store_queue(store, stmt, PAY_STORE_ANY_COUNT, err);
    if (status != PAY_OK) {
        pay_pg_drop_queue(store->pg);
        return status;
    }
    return pay_store_run(store, err);
}

void pay_store_read_chars(char *dst, size_t size, const struct pay_pg_result *result, size_t row,
                          size_t column)
{
    struct pay_str text = pay_pg_text(result, row, column);
    if (text.len >= size) {
        text.len = size - 1;
    }
    (void)pay_str_copy(dst, size, text); /* NULL gives "", as documented */
}

struct pay_str pay_store_read_str(struct pay_arena *arena, const struct pay_pg_result *result,
                                  size_t row, size_t column)
{
    return pay_arena_str(arena, pay_pg_text(result, row, column));
}

struct pay_bytes pay_store_read_bytes(struct pay_arena *arena, const struct pay_pg_result *result,
                                      size_t row, size_t column)
{
    return pay_arena_bytes(arena, pay_pg_bytea(result, row, column));
}
