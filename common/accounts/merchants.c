/* SPDX-License-Identifier: Apache-2.0 */
#include "common/accounts/accounts_internal.h"

#include <string.h>

#include "common/base/banned.h"

#define DAY_S INT64_C(86400)
#define SECOND_US INT64_C(1000000)

/* Members of an object that are named by currency. */
static size_t count_currencies(struct pay_accounts_reader *reader, const char *path,
                               const struct pay_json_value *object)
{
    const size_t count = pay_json_count(object);
    if (pay_json_kind(object) != PAY_JSON_OBJECT) {
        pay_rule_problem(reader, path, object == NULL ? "is missing" : "is no object");
        return 0;
    }
    if (count == 0 || count > PAY_ACCOUNTS_CURRENCIES_MAX) {
        pay_rule_problem(reader, path, "has %zu currencies, 1 to %d are possible", count,
                         PAY_ACCOUNTS_CURRENCIES_MAX);
        return 0;
    }
    return count;
}

static void read_amount_max(struct pay_accounts_reader *reader, const char *path,
                            const struct pay_json_value *object, struct pay_merchant *merchant)
{
    static const struct pay_int_field template = {NULL, 1, INT64_MAX, -1};
    void *iterator = NULL;
    struct pay_str name;
    const struct pay_json_value *value;
    const size_t count = count_currencies(reader, path, object);
    struct pay_currency_limit *limits = pay_rule_array_new(reader, count, sizeof *limits);
    for (size_t i = 0; limits != NULL && pay_json_next(object, &iterator, &name, &value); i++) {
        struct pay_int_field field = template;
        field.name = name.ptr;
        (void)pay_rule_currency(reader, pay_rule_path(reader, path, name.ptr), name,
                                limits[i].currency); /* Complained about. */
        limits[i].minor = pay_rule_int(reader, path, object, &field);
    }
    merchant->amount_max = limits;
    merchant->amount_max_count = limits == NULL ? 0 : count;
}

static void read_limits(struct pay_accounts_reader *reader, const char *path,
                        const struct pay_json_value *object, struct pay_merchant *merchant)
{
    static const char *const names[] = {"commands_per_s", "amount_max_minor", NULL};
    static const struct pay_int_field rate = {"commands_per_s", 1, 100000, 200};
    if (pay_rule_object(reader, path, object, names)) {
        merchant->commands_per_s = (int)pay_rule_int(reader, path, object, &rate);
        read_amount_max(reader, pay_rule_path(reader, path, "amount_max_minor"),
                        pay_json_member(object, "amount_max_minor"), merchant);
    }
}

static void read_thresholds(struct pay_accounts_reader *reader, const char *path,
                            const struct pay_json_value *object, struct pay_merchant *merchant)
{
    static const char *const names[] = {"per_payment", "per_day", NULL};
    static const struct pay_int_field payment = {"per_payment", 0, INT64_MAX, -1};
    static const struct pay_int_field day = {"per_day", 0, INT64_MAX, -1};
    void *iterator = NULL;
    struct pay_str name;
    const struct pay_json_value *value;
    if (object == NULL) {
        return; /* Every refund needs its approvals. */
    }
    const size_t count = count_currencies(reader, path, object);
    struct pay_currency_limit *limits = pay_rule_array_new(reader, count, sizeof *limits);
    for (size_t i = 0; limits != NULL && pay_json_next(object, &iterator, &name, &value); i++) {
        const char *at = pay_rule_path(reader, path, name.ptr);
        (void)pay_rule_currency(reader, at, name, limits[i].currency); /* Complained about. */
        if (pay_rule_object(reader, at, value, names)) {
            limits[i].minor = pay_rule_int(reader, at, value, &payment);
            limits[i].per_day_minor = pay_rule_int(reader, at, value, &day);
        }
    }
    merchant->refund_threshold = limits;
    merchant->refund_threshold_count = limits == NULL ? 0 : count;
}

static void read_route(struct pay_accounts_reader *reader, const char *path,
                       const struct pay_json_value *object, struct pay_default_route *route)
{
    static const char *const names[] = {"method",    "currency",    "min_minor",
                                        "max_minor", "psp_account", "failover_on_not_found",
                                        NULL};
    static const struct pay_int_field min = {"min_minor", 1, INT64_MAX, -1};
    static const struct pay_int_field max = {"max_minor", 1, INT64_MAX, -1};
    if (!pay_rule_object(reader, path, object, names)) {
        return;
    }
    route->method = pay_rule_id(reader, path, object, "method", true);
    route->psp_account = pay_rule_id(reader, path, object, "psp_account", false);
    route->min_minor = pay_rule_int(reader, path, object, &min);
    route->max_minor = pay_rule_int(reader, path, object, &max);
    route->failover_on_not_found = pay_rule_bool(reader, path, object, "failover_on_not_found", 0);
    (void)pay_rule_currency(reader, pay_rule_path(reader, path, "currency"),
                            pay_json_str(pay_json_member(object, "currency")),
                            route->currency); /* Complained about. */
    if (route->min_minor > route->max_minor) {
        pay_rule_problem(reader, path, "min_minor is above max_minor");
    }
}

static void read_routes(struct pay_accounts_reader *reader, const char *path,
                        const struct pay_json_value *list, struct pay_merchant *merchant)
{
    const size_t count = pay_rule_array(reader, path, list, 0, PAY_ACCOUNTS_ROUTES_MAX);
    struct pay_default_route *routes = pay_rule_array_new(reader, count, sizeof *routes);
    for (size_t i = 0; routes != NULL && i < count; i++) {
        read_route(reader, pay_rule_item(reader, path, i), pay_json_item(list, i), &routes[i]);
    }
    merchant->routes = routes;
    merchant->route_count = routes == NULL ? 0 : count;
}

/* "live", "shadow" or {"percent": n} */
static int read_write_path(struct pay_accounts_reader *reader, const char *path,
                           const struct pay_json_value *object)
{
    static const char *const words[] = {"live", "shadow", NULL};
    static const char *const names[] = {"percent", NULL};
    static const struct pay_int_field percent = {"percent", 0, 100, -1};
    const struct pay_json_value *value = pay_json_member(object, "write_path");
    if (pay_json_kind(value) != PAY_JSON_OBJECT) {
        return pay_rule_word(reader, path, object, "write_path", words) == 0 ? 100 : 0;
    }
    const char *at = pay_rule_path(reader, path, "write_path");
    return pay_rule_object(reader, at, value, names)
               ? (int)pay_rule_int(reader, at, value, &percent)
               : 0;
}

static void read_merchant(struct pay_accounts_reader *reader, const char *path,
                          const struct pay_json_value *object, struct pay_merchant *merchant)
{
    static const char *const names[] = {"id",
                                        "limits",
                                        "order_expires_after_s",
                                        "failover_window_s",
                                        "retry_until_expiry",
                                        "manual_capture",
                                        "authorization_end",
                                        "refund_threshold_minor",
                                        "default_routes",
                                        "write_path",
                                        NULL};
    static const char *const ends[] = {"void", "capture", NULL};
    static const struct pay_int_field expiry = {"order_expires_after_s", 1, 366 * DAY_S, DAY_S};
    static const struct pay_int_field window = {"failover_window_s", 0, 30 * DAY_S, 900};
    merchant->id = "";
    if (!pay_rule_object(reader, path, object, names)) {
        return;
    }
    merchant->id = pay_rule_id(reader, path, object, "id", false);
    merchant->order_expires_after_us = pay_rule_int(reader, path, object, &expiry) * SECOND_US;
    merchant->failover_window_us = pay_rule_int(reader, path, object, &window) * SECOND_US;
    merchant->retry_until_expiry = pay_rule_bool(reader, path, object, "retry_until_expiry", 1);
    merchant->manual_capture = pay_rule_bool(reader, path, object, "manual_capture", 0);
    merchant->authorization_end =
        (enum pay_authorization_end)pay_rule_word(reader, path, object, "authorization_end", ends);
    merchant->live_percent = read_write_path(reader, path, object);
    read_limits(reader, pay_rule_path(reader, path, "limits"), pay_json_member(object, "limits"),
                merchant);
    read_thresholds(reader, pay_rule_path(reader, path, "refund_threshold_minor"),
                    pay_json_member(object, "refund_threshold_minor"), merchant);
    read_routes(reader, pay_rule_path(reader, path, "default_routes"),
                pay_json_member(object, "default_routes"), merchant);
}

void pay_read_merchants(struct pay_accounts_reader *reader, const struct pay_json_value *list)
{
    struct pay_accounts *accounts = reader->accounts;
    const size_t count = pay_rule_array(reader, "merchants", list, 1, PAY_ACCOUNTS_MERCHANTS_MAX);
    accounts->merchants = pay_rule_array_new(reader, count, sizeof *accounts->merchants);
    accounts->merchant_count = accounts->merchants == NULL ? 0 : count;
    for (size_t i = 0; i < accounts->merchant_count; i++) {
        read_merchant(reader, pay_rule_item(reader, "merchants", i), pay_json_item(list, i),
                      &accounts->merchants[i]);
    }
}
