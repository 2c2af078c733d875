/* SPDX-License-Identifier: Apache-2.0 */
/** @file accounts_internal.h @brief Shared by the files of this folder alone. */
#ifndef PAY_ACCOUNTS_ACCOUNTS_INTERNAL_H
#define PAY_ACCOUNTS_ACCOUNTS_INTERNAL_H

#include "common/accounts/accounts.h"
#include "common/accounts/watch.h"
#include "common/json/json.h"

#include <stdatomic.h>

/** What every row of a sorted array begins with. */
struct pay_row_head {
    const char *id;
};

/** A key id, and whose it is. */
struct pay_key_row {
    const char *id;
    const char *principal_id;
    const struct pay_principal *principal; /**< Set once the principals have their order. */
    struct pay_ed25519_public *key;
};

/** Arrays are in order of id. Text, arrays and numbers live in the arena; secrets and keys are
 * freed one by one. */
struct pay_accounts {
    atomic_uint refs;
    struct pay_arena *arena;
    struct pay_merchant *merchants;
    size_t merchant_count;
    struct pay_account *accounts;
    size_t account_count;
    struct pay_principal *principals;
    size_t principal_count;
    struct pay_key_row *keys;
    size_t key_count;
    struct pay_secret **secrets;
    size_t secret_count, secret_cap;
};

/** One reading of a file: what is being made, and everything that is wrong with it. */
struct pay_accounts_reader {
    struct pay_accounts *accounts;
    struct pay_arena *scratch; /**< Paths for messages. */
    const char *secrets_dir;
    struct pay_watch *watch;
    struct pay_buf *problems; /**< May be NULL. */
    size_t problem_count;
    char first[160];
};

/** An integer's place in a file. */
struct pay_int_field {
    const char *name;
    int64_t min, max;
    int64_t value; /**< When it is not there; -1: it must be there. */
};

/* ---- rules.c: fields, each with its path in every complaint ---- */

void pay_rule_problem(struct pay_accounts_reader *reader, const char *path, const char *fmt, ...)
    PAY_PRINTF(3, 4);
/** "<path>.<name>", or "<name>" below the root. Lives as long as the reader. */
const char *pay_rule_path(struct pay_accounts_reader *reader, const char *path, const char *name);
/** "<path>[<index>]" */
const char *pay_rule_item(struct pay_accounts_reader *reader, const char *path, size_t index);
/** Copy into the accounts' arena, as a C string; "" when absent or out of memory. */
const char *pay_rule_keep(struct pay_accounts_reader *reader, struct pay_str text);
/** Complains unless it is an object that has only these members (NULL ends the list). */
bool pay_rule_object(struct pay_accounts_reader *reader, const char *path,
                     const struct pay_json_value *value, const char *const *names);
/** Items of an array of min..max; complains and says 0 otherwise. Absent is 0 when min is 0. */
size_t pay_rule_array(struct pay_accounts_reader *reader, const char *path,
                      const struct pay_json_value *value, size_t min, size_t max);
int64_t pay_rule_int(struct pay_accounts_reader *reader, const char *path,
                     const struct pay_json_value *object, const struct pay_int_field *field);
/** @param value when it is not there; -1: it must be there. */
bool pay_rule_bool(struct pay_accounts_reader *reader, const char *path,
                   const struct pay_json_value *object, const char *name, int value);
/** One of @p words (NULL ends the list); the first one when it is not there. */
int pay_rule_word(struct pay_accounts_reader *reader, const char *path,
                  const struct pay_json_value *object, const char *name, const char *const *words);
/** [a-z0-9-]{1,32} ('_' too where @p underscore), kept. */
const char *pay_rule_id(struct pay_accounts_reader *reader, const char *path,
                        const struct pay_json_value *object, const char *name, bool underscore);
/** Any text of 1..max bytes without control characters, kept. */
const char *pay_rule_text(struct pay_accounts_reader *reader, const char *path,
                          const struct pay_json_value *object, const char *name, size_t max);
/** ISO 4217. */
bool pay_rule_currency(struct pay_accounts_reader *reader, const char *path, struct pay_str text,
                       char ret_currency[PAY_CURRENCY_SIZE]);
/**
 * "<secrets_dir>/<file>" of a {"id", "file"} object, watched; "" (and a complaint) when the name
 * leaves the folder. The id goes to @p ret_id.
 */
const char *pay_rule_file(struct pay_accounts_reader *reader, const char *path,
                          const struct pay_json_value *key, const char **ret_id);
/** Zeroed, in the accounts' arena; complains when it is full. NULL when count is 0, too. */
void *pay_rule_array_new(struct pay_accounts_reader *reader, size_t count, size_t size);

/* ---- One section each ---- */

void pay_read_merchants(struct pay_accounts_reader *reader, const struct pay_json_value *list);
void pay_read_psp_accounts(struct pay_accounts_reader *reader, const struct pay_json_value *list);
void pay_read_principals(struct pay_accounts_reader *reader, const struct pay_json_value *list);

/** @param ret_accounts set on PAY_OK. @param watch filled in any case. */
PAY_MUST_CHECK enum pay_status pay_accounts_read(const char *path, const char *secrets_dir,
                                                 struct pay_watch *watch, struct pay_buf *problems,
                                                 struct pay_accounts **ret_accounts,
                                                 struct pay_err *err);

#endif /* PAY_ACCOUNTS_ACCOUNTS_INTERNAL_H */
