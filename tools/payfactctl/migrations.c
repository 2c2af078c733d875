/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/payfactctl/migrations.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/crypto/sha256.h"

#include "common/base/banned.h"

#define DIGITS 4
#define SUFFIX ".sql"

static const char op[] = "read migrations";

/* "0007_name.sql" to 7 and "0007_name". */
static enum pay_status read_name(const char *file, struct pay_store_migration *row,
                                 struct pay_err *err)
{
    const size_t len = strlen(file);
    const size_t suffix = sizeof SUFFIX - 1;
    int64_t version = 0;
    if (len <= DIGITS + 1 + suffix || strcmp(file + len - suffix, SUFFIX) != 0 ||
        file[DIGITS] != '_' || !pay_str_to_i64((struct pay_str){file, DIGITS}, &version) ||
        version < 1 || version > PAY_STORE_MIGRATIONS_MAX ||
        !pay_str_copy(row->name, sizeof row->name, (struct pay_str){file, len - suffix})) {
        return pay_err_set(err, PAY_REJECT, 0, op, "\"%.80s\" is not named NNNN_name.sql", file);
    }
    row->version = (int)version;
    return PAY_OK;
}

static int by_version(const void *a, const void *b)
{
    const struct pay_migration *left = a;
    const struct pay_migration *right = b;
    return (left->row.version > right->row.version) - (left->row.version < right->row.version);
}

static enum pay_status check_numbers(const struct pay_migrations *list, struct pay_err *err)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].row.version != (int)i + 1) {
            return pay_err_set(err, PAY_REJECT, 0, op,
                               "\"%.80s\" is there where number %zu should be",
                               list->items[i].row.name, i + 1);
        }
    }
    return PAY_OK;
}

static enum pay_status read_item(const struct pay_migration_file *file, struct pay_migration *item,
                                 struct pay_err *err)
{
    item->sql = file->sql;
    pay_sha256((struct pay_bytes){(const uint8_t *)file->sql, file->len}, item->row.checksum);
    if (strlen(file->sql) != file->len) {
        return pay_err_set(err, PAY_REJECT, 0, op, "\"%.80s\" has a NUL byte", file->name);
    }
    return read_name(file->name, &item->row, err);
}

enum pay_status pay_migrations_of(const struct pay_migration_file *files, size_t count,
                                  struct pay_migrations *ret_list, struct pay_err *err)
{
    struct pay_migrations list = {.items = pay_mem_new(count + 1, sizeof *list.items),
                                  .count = count};
    enum pay_status status = PAY_OK;
    if (list.items == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, op, "memory is out");
    }
    for (size_t i = 0; status == PAY_OK && i < count; i++) {
        status = read_item(&files[i], &list.items[i], err);
    }
    if (status == PAY_OK) {
        qsort(list.items, count, sizeof *list.items, by_version);
        status = check_numbers(&list, err);
    }
    if (status != PAY_OK) {
        pay_migrations_free(&list);
        return status;
    }
    *ret_list = list;
    return PAY_OK;
}

void pay_migrations_free(struct pay_migrations *list)
{
    for (size_t i = 0; list->texts != NULL && i < list->count; i++) {
        pay_buf_free(&list->texts[i]);
    }
    list->texts = pay_mem_free(list->texts);
    list->items = pay_mem_free(list->items);
    list->count = 0;
}

/* ---- from a folder ---- */

struct folder {
    const char *dir;
    char (*names)[PAY_STORE_MIGRATION_NAME_SIZE + 8];
    struct pay_buf *texts;
    struct pay_migration_file *files;
    size_t count;
};

static int is_sql(const struct dirent *entry)
{
    const size_t len = strlen(entry->d_name);
    return len > sizeof SUFFIX - 1 &&
           strcmp(entry->d_name + len - (sizeof SUFFIX - 1), SUFFIX) == 0;
}

static enum pay_status read_file(struct folder *folder, const char *name, struct pay_err *err)
{
    char path[1024];
    const size_t at = folder->count;
    if (at == PAY_STORE_MIGRATIONS_MAX ||
        !pay_str_copy(folder->names[at], sizeof folder->names[at], pay_str_of(name)) ||
        snprintf(path, sizeof path, "%s/%s", folder->dir, name) >= (int)sizeof path) {
        return pay_err_set(err, PAY_REJECT, 0, op, "too many files, or too long a name: \"%.80s\"",
                           name);
    }
    folder->texts[at] = pay_buf_make(PAY_MIGRATION_BYTES_MAX);
    folder->count++; /* from here its text is freed with the rest */
    const enum pay_status status = pay_file_read_buf(path, &folder->texts[at], err);
    if (status == PAY_OK && folder->texts[at].len == 0) {
        return pay_err_set(err, PAY_REJECT, 0, op, "\"%.80s\" is empty", name);
    }
    folder->files[at] = (struct pay_migration_file){
        folder->names[at], (const char *)folder->texts[at].data, folder->texts[at].len};
    return status;
}

static enum pay_status read_files(struct folder *folder, struct pay_err *err)
{
    struct dirent **entries = NULL;
    enum pay_status status = PAY_OK;
    const int count = scandir(folder->dir, &entries, is_sql, alphasort);
    if (count < 0) {
        return pay_err_set(err, PAY_FATAL, errno, op, "\"%.100s\" is no folder that can be read",
                           folder->dir);
    }
    for (int i = 0; i < count; i++) {
        if (status == PAY_OK) {
            status = read_file(folder, entries[i]->d_name, err);
        }
        free(entries[i]);
    }
    free((void *)entries);
    if (status == PAY_OK && count == 0) {
        return pay_err_set(err, PAY_REJECT, 0, op, "\"%.100s\" has no *.sql file", folder->dir);
    }
    return status;
}

enum pay_status pay_migrations_read(const char *dir, struct pay_migrations *ret_list,
                                    struct pay_err *err)
{
    struct folder folder = {
        .dir = dir,
        .names = pay_mem_new(PAY_STORE_MIGRATIONS_MAX, sizeof *folder.names),
        .texts = pay_mem_new(PAY_STORE_MIGRATIONS_MAX, sizeof *folder.texts),
        .files = pay_mem_new(PAY_STORE_MIGRATIONS_MAX, sizeof *folder.files),
    };
    enum pay_status status = folder.names == NULL || folder.texts == NULL || folder.files == NULL
                                 ? pay_err_set(err, PAY_RETRY, 0, op, "memory is out")
                                 : read_files(&folder, err);
    if (status == PAY_OK) {
        status = pay_migrations_of(folder.files, folder.count, ret_list, err);
    }
    if (status == PAY_OK) {
        ret_list->texts = folder.texts;
    } else {
        for (size_t i = 0; i < folder.count; i++) {
            pay_buf_free(&folder.texts[i]);
        }
        folder.texts = pay_mem_free(folder.texts);
    }
    folder.names = pay_mem_free(folder.names); /* the list has copies */
    folder.files = pay_mem_free(folder.files);
    return status;
}

/* ---- what is applied ---- */

enum pay_status pay_migrations_compare(const struct pay_migrations *list,
                                       const struct pay_store_migration *applied,
                                       size_t applied_count, size_t *ret_first, struct pay_err *err)
{
    for (size_t i = 0; i < applied_count; i++) {
        const struct pay_store_migration *row = &applied[i];
        if (row->version > (int)list->count) {
            return pay_err_set(
                err, PAY_REJECT, 0, "compare migrations",
                "the database has \"%.60s\", this program knows %zu: use a newer one", row->name,
                list->count);
        }
        if (row->version != (int)i + 1) {
            return pay_err_set(err, PAY_REJECT, 0, "compare migrations",
                               "number %zu was not applied before \"%.60s\": restore the table",
                               i + 1, row->name);
        }
        if (memcmp(row->checksum, list->items[i].row.checksum, PAY_STORE_CHECKSUM_BYTES) != 0) {
            return pay_err_set(err, PAY_REJECT, 0, "compare migrations",
                               "\"%.60s\" is not the file that was applied: undo its change and add"
                               " a new one",
                               list->items[i].row.name);
        }
    }
    *ret_first = applied_count;
    return PAY_OK;
}
