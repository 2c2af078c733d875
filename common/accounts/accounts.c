/* SPDX-License-Identifier: Apache-2.0 */
#include "common/accounts/accounts.h"

#include "common/accounts/accounts_internal.h"
#include "common/base/assert.h"
#include "common/base/hash.h"

#include <string.h>

#include "common/base/banned.h"

/* Where @p id stands in rows that begin with their id and are in its order; NULL: nowhere. */
static const void *find(const void *rows, size_t count, size_t size, struct pay_str id)
{
    size_t low = 0, high = count;
    while (id.ptr != NULL && low < high) {
        const size_t middle = low + (high - low) / 2;
        const void *row = (const char *)rows + middle * size;
        const struct pay_row_head *head = row;
        const size_t len = strlen(head->id);
        const int order = memcmp(id.ptr, head->id, id.len < len ? id.len : len);
        if (order == 0 && id.len == len) {
            return row;
        }
        if (order < 0 || (order == 0 && id.len < len)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

const struct pay_account *pay_accounts_account(const struct pay_accounts *accounts,
                                               struct pay_str id)
{
    return find(accounts->accounts, accounts->account_count, sizeof *accounts->accounts, id);
}

size_t pay_accounts_account_count(const struct pay_accounts *accounts)
{
    return accounts->account_count;
}

const struct pay_account *pay_accounts_account_at(const struct pay_accounts *accounts, size_t index)
{
    PAY_ASSERT(index < accounts->account_count);
    return &accounts->accounts[index];
}

const struct pay_merchant *pay_accounts_merchant(const struct pay_accounts *accounts,
                                                 struct pay_str id)
{
    return find(accounts->merchants, accounts->merchant_count, sizeof *accounts->merchants, id);
}

size_t pay_accounts_merchant_count(const struct pay_accounts *accounts)
{
    return accounts->merchant_count;
}

const struct pay_merchant *pay_accounts_merchant_at(const struct pay_accounts *accounts,
                                                    size_t index)
{
    PAY_ASSERT(index < accounts->merchant_count);
    return &accounts->merchants[index];
}

const struct pay_principal *pay_accounts_principal(const struct pay_accounts *accounts,
                                                   struct pay_str id)
{
    return find(accounts->principals, accounts->principal_count, sizeof *accounts->principals, id);
}

const struct pay_principal *pay_accounts_key(const struct pay_accounts *accounts,
                                             struct pay_str key_id,
                                             const struct pay_ed25519_public **ret_key)
{
    const struct pay_key_row *row =
        find(accounts->keys, accounts->key_count, sizeof *accounts->keys, key_id);
    if (row == NULL) {
        return NULL;
    }
    if (ret_key != NULL) {
        *ret_key = row->key;
    }
    return row->principal;
}

bool pay_accounts_may(const struct pay_principal *principal, struct pay_str merchant_id,
                      enum pay_command_type command)
{
    if (principal == NULL || merchant_id.ptr == NULL || (unsigned)command >= 32) {
        return false;
    }
    for (size_t i = 0; i < principal->grant_count; i++) {
        const struct pay_grant *grant = &principal->grants[i];
        if ((grant->commands >> command & 1u) != 0 &&
            (strcmp(grant->merchant, "*") == 0 || pay_str_eq_c(merchant_id, grant->merchant))) {
            return true;
        }
    }
    return false;
}

/* ---- Settings of a decision ---- */

static const struct pay_currency_limit *find_limit(const struct pay_currency_limit *limits,
                                                   size_t count, struct pay_str currency)
{
    for (size_t i = 0; i < count; i++) {
        if (pay_str_eq_c(currency, limits[i].currency)) {
            return &limits[i];
        }
    }
    return NULL;
}

bool pay_accounts_policy(const struct pay_accounts *accounts, struct pay_str merchant_id,
                         struct pay_str currency, struct pay_policy *ret_policy)
{
    const struct pay_merchant *merchant = pay_accounts_merchant(accounts, merchant_id);
    if (merchant == NULL) {
        return false;
    }
    const struct pay_currency_limit *limit =
        find_limit(merchant->amount_max, merchant->amount_max_count, currency);
    const struct pay_currency_limit refunds = pay_merchant_refund_threshold(merchant, currency);
    *ret_policy = (struct pay_policy){.order_expires_after_us = merchant->order_expires_after_us,
                                      .failover_window_us = merchant->failover_window_us,
                                      .retry_until_expiry = merchant->retry_until_expiry,
                                      .amount_max_minor = limit == NULL ? 0 : limit->minor,
                                      .manual_capture = merchant->manual_capture,
                                      .refund_threshold_minor = refunds.minor,
                                      .refund_threshold_day_minor = refunds.per_day_minor,
                                      .captures_at_end = merchant->authorization_end ==
                                                         PAY_AUTHORIZATION_END_CAPTURE};
    return true;
}

struct pay_currency_limit pay_merchant_refund_threshold(const struct pay_merchant *merchant,
                                                        struct pay_str currency)
{
    const struct pay_currency_limit *limit =
        find_limit(merchant->refund_threshold, merchant->refund_threshold_count, currency);
    return limit == NULL ? (struct pay_currency_limit){0} : *limit;
}

bool pay_merchant_writes(const struct pay_merchant *merchant, struct pay_str payment_id)
{
    const struct pay_bytes bytes = {(const uint8_t *)payment_id.ptr, payment_id.len};
    return (int)(pay_hash_fnv1a(PAY_FNV_START, bytes) % 100) < merchant->live_percent;
}

/* ---- Routes ---- */

static bool is_method(struct pay_str method)
{
    for (size_t i = 0; i < method.len; i++) {
        const char c = method.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-')) {
            return false;
        }
    }
    return method.len > 0 && method.len < PAY_NAME_SIZE;
}

static void set_route(struct pay_route *route, const struct pay_account *account,
                      struct pay_str method, bool failover_on_not_found)
{
    *route = (struct pay_route){.failover_on_not_found = failover_on_not_found,
                                .traits = account->traits};
    /* Each was checked to fit when it was loaded, or by is_method(). */
    const bool fits =
        pay_str_copy(route->psp, sizeof route->psp, pay_str_of(account->psp.psp)) &&
        pay_str_copy(route->psp_account, sizeof route->psp_account, pay_str_of(account->psp.id)) &&
        pay_str_copy(route->method, sizeof route->method, method);
    PAY_ASSERT(fits);
}

/* The merchant's account of that name and PSP; of another's nobody learns that it exists. */
static const struct pay_account *own_account(const struct pay_accounts *accounts,
                                             const struct pay_merchant *merchant,
                                             const struct pay_route_choice *choice)
{
    const struct pay_account *account = pay_accounts_account(accounts, choice->psp_account);
    return account != NULL && strcmp(account->psp.merchant_id, merchant->id) == 0 &&
                   pay_str_eq_c(choice->psp, account->psp.psp)
               ? account
               : NULL;
}

static const char *chosen_routes(const struct pay_accounts *accounts,
                                 const struct pay_merchant *merchant,
                                 const struct pay_route_wish *wish, struct pay_route *routes)
{
    if (wish->count > PAY_ROUTES_MAX) {
        return "LIMIT";
    }
    for (size_t i = 0; i < wish->count; i++) {
        const struct pay_route_choice *choice = &wish->choices[i];
        const struct pay_account *account = own_account(accounts, merchant, choice);
        if (account == NULL) {
            return "UNKNOWN_ROUTE";
        }
        if (!is_method(choice->method)) {
            return "BAD_METHOD";
        }
        set_route(&routes[i], account, choice->method, choice->failover_on_not_found);
    }
    return NULL;
}

static bool route_fits(const struct pay_default_route *route, struct pay_money amount)
{
    return strcmp(route->currency, amount.currency) == 0 &&
           amount.amount_minor >= route->min_minor && amount.amount_minor <= route->max_minor;
}

static const char *default_routes(const struct pay_accounts *accounts,
                                  const struct pay_merchant *merchant, struct pay_money amount,
                                  struct pay_route *routes, size_t *ret_count)
{
    size_t count = 0;
    for (size_t i = 0; i < merchant->route_count; i++) {
        const struct pay_default_route *rule = &merchant->routes[i];
        if (!route_fits(rule, amount)) {
            continue;
        }
        if (count == PAY_ROUTES_MAX) {
            return "LIMIT";
        }
        set_route(&routes[count++], pay_accounts_account(accounts, pay_str_of(rule->psp_account)),
                  pay_str_of(rule->method), rule->failover_on_not_found);
    }
    *ret_count = count;
    return count == 0 ? "NO_ROUTE" : NULL;
}

const char *pay_accounts_routes(const struct pay_accounts *accounts, struct pay_str merchant_id,
                                const struct pay_route_wish *wish, struct pay_route *ret_routes,
                                size_t *ret_count)
{
    const struct pay_merchant *merchant = pay_accounts_merchant(accounts, merchant_id);
    if (merchant == NULL) {
        return "UNKNOWN_MERCHANT";
    }
    size_t count = wish->count;
    const char *refusal =
        wish->count > 0 ? chosen_routes(accounts, merchant, wish, ret_routes)
                        : default_routes(accounts, merchant, wish->amount, ret_routes, &count);
    if (refusal == NULL) {
        *ret_count = count;
    }
    return refusal;
}
