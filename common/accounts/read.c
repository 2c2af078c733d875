/* SPDX-License-Identifier: Apache-2.0 */
#include "common/accounts/accounts_internal.h"

#include "common/base/file.h"
#include "common/base/mem.h"

#include <assert.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/banned.h"

#define SCRATCH_BYTES_MAX 33554432u
#define ARENA_BYTES_MIN 1048576u
#define ARENA_BYTES_PER_BYTE 64u /**< An account's struct against its shortest text. */

void pay_accounts_release(const struct pay_accounts *accounts)
{
    if (accounts == NULL) {
        return;
    }
    /* Handed out as const so that nobody changes it; it ends here. */
    struct pay_accounts *own = (struct pay_accounts *)(uintptr_t)accounts;
    if (atomic_fetch_sub_explicit(&own->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < own->secret_count; i++) {
        pay_secret_free(own->secrets[i]);
    }
    for (size_t i = 0; i < own->key_count; i++) {
        pay_ed25519_public_free(own->keys[i].key);
    }
    pay_arena_free(own->arena);
    pay_mem_free(own);
}

/* ---- Order ---- */

/* Every row begins with its id, or with a struct that does. */
static int by_id(const void *a, const void *b)
{
    const struct pay_row_head *left = a;
    const struct pay_row_head *right = b;
    return strcmp(left->id, right->id);
}

static_assert(offsetof(struct pay_merchant, id) == 0, "by_id");
static_assert(offsetof(struct pay_principal, id) == 0, "by_id");
static_assert(offsetof(struct pay_key_row, id) == 0, "by_id");
static_assert(offsetof(struct pay_account, psp) == 0, "by_id");
static_assert(offsetof(struct pay_psp_account, id) == 0, "by_id");

static void sort(struct pay_accounts_reader *reader, const char *what, void *rows, size_t count,
                 size_t size)
{
    const char *row = rows;
    if (count == 0) {
        return;
    }
    qsort(rows, count, size, by_id);
    for (size_t i = 1; i < count; i++) {
        const struct pay_row_head *head = (const void *)(row + i * size);
        if (by_id(row + (i - 1) * size, head) == 0 && head->id[0] != '\0') {
            pay_rule_problem(reader, what, "id '%s' stands twice", head->id);
        }
    }
}

static void sort_all(struct pay_accounts_reader *reader)
{
    struct pay_accounts *a = reader->accounts;
    sort(reader, "merchants", a->merchants, a->merchant_count, sizeof *a->merchants);
    sort(reader, "psp_accounts", a->accounts, a->account_count, sizeof *a->accounts);
    sort(reader, "principals", a->principals, a->principal_count, sizeof *a->principals);
    sort(reader, "principals: keys", a->keys, a->key_count, sizeof *a->keys);
    for (size_t i = 0; i < a->key_count; i++) {
        a->keys[i].principal = pay_accounts_principal(a, pay_str_of(a->keys[i].principal_id));
    }
}

/* ---- What refers to what ---- */

static void check_route(struct pay_accounts_reader *reader, const struct pay_merchant *merchant,
                        size_t index)
{
    const struct pay_default_route *route = &merchant->routes[index];
    const struct pay_account *account =
        pay_accounts_account(reader->accounts, pay_str_of(route->psp_account));
    const char *path =
        pay_rule_item(reader, pay_rule_path(reader, merchant->id, "default_routes"), index);
    if (route->psp_account == NULL || route->psp_account[0] == '\0') {
        return; /* Complained about. */
    }
    if (account == NULL) {
        pay_rule_problem(reader, path, "no psp account '%s'", route->psp_account);
    } else if (strcmp(account->psp.merchant_id, merchant->id) != 0) {
        pay_rule_problem(reader, path, "psp account '%s' is another merchant's",
                         route->psp_account);
    }
}

static void check_routes(struct pay_accounts_reader *reader)
{
    for (size_t i = 0; i < reader->accounts->merchant_count; i++) {
        const struct pay_merchant *merchant = &reader->accounts->merchants[i];
        for (size_t n = 0; n < merchant->route_count; n++) {
            check_route(reader, merchant, n);
        }
    }
}

static void read_root(struct pay_accounts_reader *reader, const struct pay_json_value *root)
{
    static const char *const names[] = {"version", "merchants", "psp_accounts", "principals", NULL};
    static const struct pay_int_field version = {"version", 1, 1, -1};
    if (!pay_rule_object(reader, "file", root, names)) {
        return;
    }
    (void)pay_rule_int(reader, "", root, &version); /* Complained about. */
    pay_read_merchants(reader, pay_json_member(root, "merchants"));
    pay_read_psp_accounts(reader, pay_json_member(root, "psp_accounts"));
    pay_read_principals(reader, pay_json_member(root, "principals"));
    sort_all(reader);
    check_routes(reader);
}

static bool make_accounts(struct pay_accounts_reader *reader, size_t file_bytes)
{
    struct pay_accounts *accounts = pay_mem_new(1, sizeof *accounts);
    if (accounts == NULL) {
        return false;
    }
    atomic_init(&accounts->refs, 1);
    accounts->arena = pay_arena_new(ARENA_BYTES_MIN + ARENA_BYTES_PER_BYTE * file_bytes);
    reader->accounts = accounts;
    reader->scratch = pay_arena_new(SCRATCH_BYTES_MAX);
    return accounts->arena != NULL && reader->scratch != NULL;
}

/* A failure that is not in the file's content is a problem like the others in the list. */
static enum pay_status fail(struct pay_accounts_reader *reader, const char *path,
                            struct pay_err *err)
{
    if (reader->problem_count > PAY_ACCOUNTS_PROBLEMS_MAX && reader->problems != NULL) {
        pay_buf_printf(reader->problems, "and %zu more\n",
                       reader->problem_count - PAY_ACCOUNTS_PROBLEMS_MAX);
    }
    return pay_err_set(err, PAY_FATAL, (int)reader->problem_count, "accounts", "%s%s%s",
                       reader->problem_count == 0 ? path : reader->first,
                       reader->problem_count == 0 ? ": out of memory" : "",
                       reader->problem_count > 1 ? " (and more)" : "");
}

/* Where secret files are looked for when nothing is said: beside the accounts file. */
static const char *folder_of(const char *path, char dst[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    const size_t len = slash == NULL ? 0 : (size_t)(slash - path);
    return slash != NULL && pay_str_copy(dst, PATH_MAX, (struct pay_str){path, len}) ? dst : ".";
}

enum pay_status pay_accounts_read(const char *path, const char *secrets_dir,
                                  struct pay_watch *watch, struct pay_buf *problems,
                                  struct pay_accounts **ret_accounts, struct pay_err *err)
{
    char folder[PATH_MAX];
    struct pay_accounts_reader reader = {
        .secrets_dir =
            secrets_dir == NULL || secrets_dir[0] == '\0' ? folder_of(path, folder) : secrets_dir,
        .watch = watch,
        .problems = problems};
    struct pay_buf text = pay_buf_make(PAY_ACCOUNTS_FILE_BYTES_MAX);
    struct pay_json *doc = NULL;
    struct pay_err inner = {0};
    enum pay_status status = PAY_FATAL;
    pay_watch_add(watch, path); /* Before it is read: a change meanwhile is seen. */
    if (pay_file_read_buf(path, &text, &inner) != PAY_OK ||
        pay_json_parse(pay_buf_bytes(&text), PAY_ACCOUNTS_FILE_BYTES_MAX, &doc, &inner) != PAY_OK) {
        pay_rule_problem(&reader, "file", "%s", inner.text);
    } else if (make_accounts(&reader, text.len)) {
        read_root(&reader, pay_json_root(doc));
        status = reader.problem_count == 0 ? PAY_OK : PAY_FATAL;
    }
    if (status == PAY_OK) {
        *ret_accounts = reader.accounts;
    } else {
        status = fail(&reader, path, err);
        pay_accounts_release(reader.accounts);
    }
    pay_json_free(doc);
    pay_buf_free(&text);
    pay_arena_free(reader.scratch);
    return status;
}

enum pay_status pay_accounts_load(const char *path, const char *secrets_dir,
                                  struct pay_accounts **ret_accounts, struct pay_buf *problems,
                                  struct pay_err *err)
{
    struct pay_watch watch = {0};
    const enum pay_status status =
        pay_accounts_read(path, secrets_dir, &watch, problems, ret_accounts, err);
    pay_watch_free(&watch);
    return status;
}
