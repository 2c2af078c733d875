/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file migrations.h
 * @brief The numbered SQL files: built into the program, or read from a folder.
 *
 * A file is NNNN_name.sql; numbers begin with 1 and have no gap. Ownership: a list owns what it
 * read from a folder until pay_migrations_free().
 */
#ifndef PAY_CTL_MIGRATIONS_H
#define PAY_CTL_MIGRATIONS_H

#include "common/base/err.h"
#include "common/store/migration.h"

#define PAY_MIGRATION_BYTES_MAX ((size_t)1024 * 1024)

/** One file as the build embeds it. */
struct pay_migration_file {
    const char *name; /**< "0001_schema.sql" */
    const char *sql;  /**< NUL-terminated. */
    size_t len;
};

/** Made by the build from schemas/sql, ordered by name. */
extern const struct pay_migration_file pay_migration_files[];
extern const size_t pay_migration_file_count;

struct pay_migration {
    struct pay_store_migration row; /**< Name without ".sql". */
    const char *sql;
};

struct pay_migrations {
    struct pay_migration *items;
    size_t count;
    struct pay_buf *texts; /**< Of a folder: one for each item; NULL: embedded. */
};

/** @brief Files given, in any order. @return PAY_REJECT for a name or number that does not fit. */
PAY_MUST_CHECK enum pay_status pay_migrations_of(const struct pay_migration_file *files,
                                                 size_t count, struct pay_migrations *ret_list,
                                                 struct pay_err *err);
/** @brief Every *.sql of a folder. */
PAY_MUST_CHECK enum pay_status pay_migrations_read(const char *dir, struct pay_migrations *ret_list,
                                                   struct pay_err *err);
void pay_migrations_free(struct pay_migrations *list);

/**
 * @brief Does what is applied fit the list? @param ret_first index of the first one to apply.
 * @return PAY_REJECT: the database is newer, an applied file was changed since, or one is missing
 * between applied ones.
 */
PAY_MUST_CHECK enum pay_status pay_migrations_compare(const struct pay_migrations *list,
                                                      const struct pay_store_migration *applied,
                                                      size_t applied_count, size_t *ret_first,
                                                      struct pay_err *err);

#endif /* PAY_CTL_MIGRATIONS_H */
