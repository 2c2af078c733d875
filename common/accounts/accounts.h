/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file accounts.h
 * @brief accounts.json: the merchants, their PSP accounts, and who may command what.
 *
 * A file is taken whole or not at all: every rule is checked, every secret is read, and all
 * problems are listed at once. What was loaded never changes; a changed file (or secret) becomes
 * another object that replaces it, and a bad one keeps the old.
 *
 * Ownership: struct pay_accounts is counted: acquire and release in pairs; everything a lookup
 * returns lives until that release. Threads: any, on both kinds of handle; nothing blocks except
 * loading (disk). Failure: PAY_FATAL with the first problem in the text.
 *
 *     pay_accounts_open(path, secrets_dir, &store, &problems, &err);
 *     each turn:  accounts = pay_accounts_acquire(store); ... pay_accounts_release(accounts);
 *     each few s: pay_accounts_refresh(store, &problems);
 */
#ifndef PAY_ACCOUNTS_ACCOUNTS_H
#define PAY_ACCOUNTS_ACCOUNTS_H

#include "common/base/buf.h"
#include "common/core/decide.h"
#include "common/crypto/ed25519.h"
#include "common/psp/adapter.h"

#define PAY_ACCOUNTS_FILE_BYTES_MAX 4194304
#define PAY_ACCOUNTS_MERCHANTS_MAX 4096
#define PAY_ACCOUNTS_ACCOUNTS_MAX 4096
#define PAY_ACCOUNTS_PRINCIPALS_MAX 1024
#define PAY_ACCOUNTS_KEYS_PER_PRINCIPAL_MAX 8
#define PAY_ACCOUNTS_GRANTS_MAX 256     /**< `may` entries of a principal. */
#define PAY_ACCOUNTS_CURRENCIES_MAX 200 /**< Entries of a limit or threshold. */
#define PAY_ACCOUNTS_ROUTES_MAX 64      /**< Default routes of a merchant. */
#define PAY_ACCOUNTS_PROBLEMS_MAX 100   /**< More are only counted. */
#define PAY_ACCOUNTS_PROBLEM_BYTES_MAX 65536

enum pay_answers { PAY_ANSWERS_CUSTODY, PAY_ANSWERS_STRICT, PAY_ANSWERS_COUNT };
enum pay_foreign { PAY_FOREIGN_IGNORE, PAY_FOREIGN_ORPHAN, PAY_FOREIGN_COUNT };
enum pay_authorization_end {
    PAY_AUTHORIZATION_END_VOID,
    PAY_AUTHORIZATION_END_CAPTURE,
    PAY_AUTHORIZATION_END_COUNT
};
enum pay_principal_kind { PAY_PRINCIPAL_SERVICE, PAY_PRINCIPAL_OPERATOR, PAY_PRINCIPAL_KIND_COUNT };

struct pay_accounts;
struct pay_accounts_store;

struct pay_account {
    struct pay_psp_account psp; /**< What the adapter gets: id, keys, credentials, settings. */
    const struct pay_psp_adapter *adapter;
    enum pay_answers answers;
    enum pay_foreign foreign;
    int callbacks_per_s;
    int calls_per_s;
    int in_flight;
    int queued;
    unsigned connect_timeout_ms;
    unsigned total_timeout_ms;
    struct pay_psp_traits traits; /**< The adapter's constants overlaid by `unknown`, timeouts. */
    int64_t query_max_us;         /**< Longest pause between two queries. */
};

/** A limit in one currency. */
struct pay_currency_limit {
    char currency[PAY_CURRENCY_SIZE];
    int64_t minor;         /**< amount_max_minor; threshold per payment. */
    int64_t per_day_minor; /**< Threshold per merchant and day. */
};

struct pay_default_route {
    const char *method;
    char currency[PAY_CURRENCY_SIZE];
    int64_t min_minor;
    int64_t max_minor;
    const char *psp_account;
    bool failover_on_not_found;
};

struct pay_merchant {
    const char *id;
    int commands_per_s;
    const struct pay_currency_limit *amount_max;
    size_t amount_max_count;
    const struct pay_currency_limit *refund_threshold;
    size_t refund_threshold_count;
    int64_t order_expires_after_us;
    int64_t failover_window_us;
    bool retry_until_expiry;
    bool manual_capture; /**< Default false. */
    enum pay_authorization_end authorization_end;
    int live_percent; /**< write_path: live = 100, shadow = 0. */
    const struct pay_default_route *routes;
    size_t route_count;
};

struct pay_grant {
    const char *merchant; /**< "*": every merchant. */
    uint32_t commands;    /**< Bit n: enum pay_command_type n. */
};

struct pay_principal_key {
    const char *id; /**< Unique over all principals. */
    const struct pay_ed25519_public *key;
};

struct pay_principal {
    const char *id;
    enum pay_principal_kind kind; /**< SERVICE: source MERCHANT, OPERATOR: source OPERATOR. */
    const struct pay_principal_key *keys;
    size_t key_count;
    const struct pay_grant *grants;
    size_t grant_count;
};

/* ---- Loading ---- */

/**
 * @brief Read and check a file once (for --check-config and tools).
 * @param secrets_dir what `file` names are relative to; NULL or "": the folder of @p path.
 * @param problems one line each, "path: what"; appended; may be NULL. Never a secret in it.
 * @return PAY_FATAL: something is wrong, the first problem is in @p err. May block on the disk.
 */
PAY_MUST_CHECK enum pay_status pay_accounts_load(const char *path, const char *secrets_dir,
                                                 struct pay_accounts **ret_accounts,
                                                 struct pay_buf *problems, struct pay_err *err);
/** @brief The same, and keep it current. @p path and @p secrets_dir are copied. */
PAY_MUST_CHECK enum pay_status pay_accounts_open(const char *path, const char *secrets_dir,
                                                 struct pay_accounts_store **ret_store,
                                                 struct pay_buf *problems, struct pay_err *err);
/** @return always NULL; copes with NULL. What is still acquired lives on. */
struct pay_accounts_store *pay_accounts_close(struct pay_accounts_store *store);

enum pay_accounts_change {
    PAY_ACCOUNTS_SAME,    /**< Neither the file nor a secret changed since the last look. */
    PAY_ACCOUNTS_CHANGED, /**< Loaded; acquire gives the new one. */
    PAY_ACCOUNTS_BAD,     /**< Changed, and refused: the old one stays; counted. */
    PAY_ACCOUNTS_CHANGE_COUNT
};

/**
 * @brief Look at device, inode, size and time of the file and of every secret; load on a change.
 * One thread at a time. @param problems as pay_accounts_load(). May block on the disk.
 */
enum pay_accounts_change pay_accounts_refresh(struct pay_accounts_store *store,
                                              struct pay_buf *problems);
struct pay_accounts_stats {
    uint64_t loads;  /**< Good ones, the first included. */
    uint64_t errors; /**< Changed files that were refused. */
};
struct pay_accounts_stats pay_accounts_stats(const struct pay_accounts_store *store);

/** @return the current version; release it. Never NULL. */
const struct pay_accounts *pay_accounts_acquire(struct pay_accounts_store *store);
/** Copes with NULL. The last release frees it and wipes its secrets. */
void pay_accounts_release(const struct pay_accounts *accounts);

/* ---- Looking up. Text that is absent or unknown gives NULL. ---- */

const struct pay_account *pay_accounts_account(const struct pay_accounts *accounts,
                                               struct pay_str id);
size_t pay_accounts_account_count(const struct pay_accounts *accounts);
/** In order of id. */
const struct pay_account *pay_accounts_account_at(const struct pay_accounts *accounts,
                                                  size_t index);
const struct pay_merchant *pay_accounts_merchant(const struct pay_accounts *accounts,
                                                 struct pay_str id);
size_t pay_accounts_merchant_count(const struct pay_accounts *accounts);
const struct pay_merchant *pay_accounts_merchant_at(const struct pay_accounts *accounts,
                                                    size_t index);
const struct pay_principal *pay_accounts_principal(const struct pay_accounts *accounts,
                                                   struct pay_str id);
/** @param ret_key the key itself; may be NULL. @return whose key it is. */
const struct pay_principal *pay_accounts_key(const struct pay_accounts *accounts,
                                             struct pay_str key_id,
                                             const struct pay_ed25519_public **ret_key);

/** @brief Is this command allowed to this principal for this merchant? */
bool pay_accounts_may(const struct pay_principal *principal, struct pay_str merchant_id,
                      enum pay_command_type command);

/* ---- Settings of a decision ---- */

/** @return false: no such merchant. amount_max_minor is 0 where the currency has no limit given. */
bool pay_accounts_policy(const struct pay_accounts *accounts, struct pay_str merchant_id,
                         struct pay_str currency, struct pay_policy *ret_policy);
/** Minor units a refund may reach without approval; both 0 where nothing is said. */
struct pay_currency_limit pay_merchant_refund_threshold(const struct pay_merchant *merchant,
                                                        struct pay_str currency);
/** @brief write_path: does this payment get jobs, or is it only decided and recorded? */
bool pay_merchant_writes(const struct pay_merchant *merchant, struct pay_str payment_id);

/** What a command asks for. */
struct pay_route_wish {
    const struct pay_route_choice *choices; /**< Its routes, in its order. */
    size_t count;                           /**< 0: the merchant's defaults for the amount. */
    struct pay_money amount;
};

/**
 * @brief The command's routes, or the merchant's default routes for that money, with traits.
 *
 * @param ret_routes  array of PAY_ROUTES_MAX; `paused` is left false: the store knows it.
 * @return NULL when fine, else a static reason and *ret_count is untouched: UNKNOWN_MERCHANT,
 *         UNKNOWN_ROUTE (no such account, of another merchant or PSP: they look the same),
 *         NO_ROUTE (no default fits), LIMIT (more than PAY_ROUTES_MAX), BAD_METHOD.
 */
const char *pay_accounts_routes(const struct pay_accounts *accounts, struct pay_str merchant_id,
                                const struct pay_route_wish *wish, struct pay_route *ret_routes,
                                size_t *ret_count);

#endif /* PAY_ACCOUNTS_ACCOUNTS_H */
