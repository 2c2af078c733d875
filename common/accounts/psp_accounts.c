/* SPDX-License-Identifier: Apache-2.0 */
#include "common/accounts/accounts_internal.h"
#include "common/psp/registry.h"

#include <string.h>

#include "common/base/banned.h"

#define DAY_S INT64_C(86400)
#define SECOND_US INT64_C(1000000)
#define ENDPOINT_BYTES_MAX 200
#define SETTING_BYTES_MAX 200

/* ---- Keys ---- */

static const struct pay_secret *load_secret(struct pay_accounts_reader *reader, const char *path,
                                            const char *file)
{
    struct pay_accounts *accounts = reader->accounts;
    struct pay_err err = {0};
    if (file[0] == '\0' || accounts->secret_count == accounts->secret_cap) {
        return NULL; /* Complained about; the cap is a key for each place there is. */
    }
    if (pay_secret_load(file, &accounts->secrets[accounts->secret_count], &err) != PAY_OK) {
        pay_rule_problem(reader, path, "%s", err.text);
        return NULL;
    }
    return accounts->secrets[accounts->secret_count++];
}

static void read_key(struct pay_accounts_reader *reader, const char *path,
                     const struct pay_json_value *object, struct pay_psp_key *key)
{
    const char *id = "";
    const char *file = pay_rule_file(reader, path, object, &id);
    (void)pay_str_copy(key->id, sizeof key->id, pay_str_of(id)); /* Its length was checked. */
    key->secret = load_secret(reader, path, file);
}

static bool stands_before(const struct pay_psp_key *keys, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (strcmp(keys[i].id, keys[index].id) == 0) {
            return true;
        }
    }
    return false;
}

static void read_callback_keys(struct pay_accounts_reader *reader, const char *path,
                               const struct pay_json_value *list, struct pay_psp_account *psp)
{
    psp->callback_key_count = pay_rule_array(reader, path, list, 1, PAY_PSP_KEYS_MAX);
    for (size_t i = 0; i < psp->callback_key_count; i++) {
        const char *item = pay_rule_item(reader, path, i);
        read_key(reader, item, pay_json_item(list, i), &psp->callback_keys[i]);
        if (stands_before(psp->callback_keys, i)) {
            pay_rule_problem(reader, item, "id '%s' stands twice", psp->callback_keys[i].id);
        }
    }
}

static const struct pay_psp_name_rule *find_name(const struct pay_psp_name_rule *rules,
                                                 struct pay_str name)
{
    for (; rules->name != NULL; rules++) {
        if (pay_str_eq_c(name, rules->name)) {
            return rules;
        }
    }
    return NULL;
}

/* Complains about what the adapter does not know, and about what it needs and is not there. */
static bool check_names(struct pay_accounts_reader *reader, const char *path,
                        const struct pay_json_value *object, const struct pay_psp_name_rule *rules)
{
    void *iterator = NULL;
    struct pay_str name;
    const struct pay_json_value *value;
    if (object != NULL && pay_json_kind(object) != PAY_JSON_OBJECT) {
        pay_rule_problem(reader, path, "is no object");
        return false;
    }
    while (object != NULL && pay_json_next(object, &iterator, &name, &value)) {
        if (find_name(rules, name) == NULL) {
            pay_rule_problem(reader, pay_rule_path(reader, path, name.ptr), "unknown field");
        }
    }
    for (; rules->name != NULL; rules++) {
        if (rules->is_required && pay_json_member(object, rules->name) == NULL) {
            pay_rule_problem(reader, pay_rule_path(reader, path, rules->name), "is missing");
        }
    }
    return object != NULL;
}

static void read_credentials(struct pay_accounts_reader *reader, const char *path,
                             const struct pay_json_value *object, struct pay_account *account)
{
    const struct pay_psp_name_rule *rules = account->adapter->credential_rules;
    if (!check_names(reader, path, object, rules)) {
        return;
    }
    for (; rules->name != NULL && account->psp.credential_count < PAY_PSP_KEYS_MAX; rules++) {
        const struct pay_json_value *value = pay_json_member(object, rules->name);
        if (value != NULL) {
            struct pay_psp_key *key = &account->psp.credentials[account->psp.credential_count++];
            key->role = rules->name;
            read_key(reader, pay_rule_path(reader, path, rules->name), value, key);
        }
    }
}

static void read_settings(struct pay_accounts_reader *reader, const char *path,
                          const struct pay_json_value *object, struct pay_account *account)
{
    const struct pay_psp_name_rule *rules = account->adapter->setting_rules;
    if (!check_names(reader, path, object, rules)) {
        return;
    }
    for (; rules->name != NULL && account->psp.setting_count < PAY_PSP_SETTINGS_MAX; rules++) {
        if (pay_json_member(object, rules->name) != NULL) {
            account->psp.settings[account->psp.setting_count++] = (struct pay_psp_setting){
                rules->name, pay_rule_text(reader, path, object, rules->name, SETTING_BYTES_MAX)};
        }
    }
}

/* ---- Endpoint ---- */

static bool is_loopback(const char *host, size_t len)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const size_t name_len = strlen(names[i]);
        if (len >= name_len && strncmp(host, names[i], name_len) == 0 &&
            (len == name_len || host[name_len] == ':')) {
            return true;
        }
    }
    return false;
}

/* What is wrong with it; NULL: nothing. */
static const char *endpoint_fault(const char *endpoint, bool live)
{
    const bool is_tls = strncmp(endpoint, "https://", 8) == 0;
    if (!is_tls && strncmp(endpoint, "http://", 7) != 0) {
        return "does not start with https://";
    }
    const char *host = endpoint + (is_tls ? 8 : 7);
    const size_t len = strcspn(host, "/");
    if (len == 0 || host[0] == ':' || strpbrk(host, "@?#\\ %\"<>") != NULL) {
        return "is not just a host, a port and a path";
    }
    if (host[strlen(host) - 1] == '/') {
        return "ends with a slash";
    }
    if (!is_tls && !is_loopback(host, len)) {
        return "is plain http to another machine";
    }
    return !is_tls && live ? "is plain http in a live account" : NULL;
}

static void read_endpoint(struct pay_accounts_reader *reader, const char *path,
                          const struct pay_json_value *object, struct pay_psp_account *psp)
{
    psp->endpoint = pay_rule_text(reader, path, object, "endpoint", ENDPOINT_BYTES_MAX);
    const char *fault = psp->endpoint[0] == '\0' ? NULL : endpoint_fault(psp->endpoint, psp->live);
    if (fault != NULL) {
        pay_rule_problem(reader, pay_rule_path(reader, path, "endpoint"), "'%s' %s", psp->endpoint,
                         fault);
    }
}

/* ---- Numbers ---- */

static void read_limits(struct pay_accounts_reader *reader, const char *path,
                        const struct pay_json_value *object, struct pay_account *account)
{
    static const char *const names[] = {"callbacks_per_s", "calls_per_s", "in_flight", "queued",
                                        NULL};
    static const struct pay_int_field fields[] = {{"callbacks_per_s", 1, 100000, 200},
                                                  {"calls_per_s", 1, 10000, 50},
                                                  {"in_flight", 1, 1024, 32},
                                                  {"queued", 0, 100000, 256}};
    int *const places[] = {&account->callbacks_per_s, &account->calls_per_s, &account->in_flight,
                           &account->queued};
    if (object != NULL && !pay_rule_object(reader, path, object, names)) {
        return;
    }
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        *places[i] = (int)pay_rule_int(reader, path, object, &fields[i]);
    }
}

static void read_timeouts(struct pay_accounts_reader *reader, const char *path,
                          const struct pay_json_value *object, struct pay_account *account)
{
    static const char *const names[] = {"connect", "total", NULL};
    static const struct pay_int_field connect = {"connect", 50, 60000, 2000};
    static const struct pay_int_field total = {"total", 100, 120000, 20000};
    if (object != NULL && !pay_rule_object(reader, path, object, names)) {
        return;
    }
    account->connect_timeout_ms = (unsigned)pay_rule_int(reader, path, object, &connect);
    account->total_timeout_ms = (unsigned)pay_rule_int(reader, path, object, &total);
    account->traits.call_budget_us = (int64_t)account->total_timeout_ms * 1000;
    if (account->connect_timeout_ms > account->total_timeout_ms) {
        pay_rule_problem(reader, path, "connect is longer than total");
    }
}

/** A member of `unknown` in seconds, over the adapter's own figure. */
struct overlay {
    struct pay_int_field field;
    int64_t *place_us;
};

static void check_unknown(struct pay_accounts_reader *reader, const char *path,
                          const struct pay_account *account)
{
    if (account->query_max_us < account->traits.query_first_us) {
        pay_rule_problem(reader, path, "query_max_s is below query_first_s");
    }
    if (account->traits.person_after_us < account->traits.query_first_us) {
        pay_rule_problem(reader, path, "person_after_s is below query_first_s");
    }
}

static void read_unknown(struct pay_accounts_reader *reader, const char *path,
                         const struct pay_json_value *object, struct pay_account *account)
{
    static const char *const names[] = {"longest_processing_s", "visibility_grace_s",
                                        "not_founds_needed",    "query_first_s",
                                        "query_max_s",          "person_after_s",
                                        "send_window_s",        "answer_s",
                                        "action_lifetime_s",    "cancel_retry_s",
                                        "money_action_life_s",  "money_action_retry_s",
                                        "reservation_s",        NULL};
    struct pay_psp_traits *traits = &account->traits;
    const struct overlay overlays[] = {
        {{"longest_processing_s", 1, 7 * DAY_S, 0}, &traits->longest_processing_us},
        {{"visibility_grace_s", 0, DAY_S, 0}, &traits->visibility_grace_us},
        {{"query_first_s", 1, 3600, 0}, &traits->query_first_us},
        {{"query_max_s", 1, DAY_S, 900}, &account->query_max_us},
        {{"person_after_s", 1, 30 * DAY_S, 0}, &traits->person_after_us},
        {{"send_window_s", 1, DAY_S, 0}, &traits->send_window_us},
        {{"answer_s", 1, DAY_S, 0}, &traits->answer_us},
        {{"action_lifetime_s", 1, 7 * DAY_S, 0}, &traits->action_lifetime_us},
        {{"cancel_retry_s", 1, DAY_S, 0}, &traits->cancel_retry_us},
        {{"money_action_life_s", 1, 30 * DAY_S, 0}, &traits->action_life_us},
        {{"money_action_retry_s", 1, DAY_S, 0}, &traits->action_retry_us},
        {{"reservation_s", 1, 90 * DAY_S, 0}, &traits->reservation_us},
    };
    account->query_max_us = 900 * SECOND_US;
    if (object == NULL || !pay_rule_object(reader, path, object, names)) {
        return;
    }
    for (size_t i = 0; i < sizeof overlays / sizeof overlays[0]; i++) {
        if (pay_json_member(object, overlays[i].field.name) != NULL) {
            *overlays[i].place_us =
                pay_rule_int(reader, path, object, &overlays[i].field) * SECOND_US;
        }
    }
    const struct pay_int_field needed = {"not_founds_needed", 1, 100, traits->not_founds_needed};
    traits->not_founds_needed = (int)pay_rule_int(reader, path, object, &needed);
    check_unknown(reader, path, account);
}

/* ---- The account ---- */

static void check_merchant(struct pay_accounts_reader *reader, const char *path,
                           const char *merchant)
{
    for (size_t i = 0; i < reader->accounts->merchant_count; i++) {
        if (strcmp(reader->accounts->merchants[i].id, merchant) == 0) {
            return;
        }
    }
    pay_rule_problem(reader, path, "no merchant '%s'", merchant);
}

static void read_parts(struct pay_accounts_reader *reader, const char *path,
                       const struct pay_json_value *object, struct pay_account *account)
{
    static const char *const answers[] = {"custody", "strict", NULL};
    static const char *const foreign[] = {"ignore", "orphan", NULL};
    struct pay_err err = {0};
    const size_t before = reader->problem_count;
    account->traits = account->adapter->traits;
    account->answers = (enum pay_answers)pay_rule_word(reader, path, object, "answers", answers);
    account->foreign =
        (enum pay_foreign)pay_rule_word(reader, path, object, "foreign_callbacks", foreign);
    read_settings(reader, pay_rule_path(reader, path, "settings"),
                  pay_json_member(object, "settings"), account);
    read_credentials(reader, pay_rule_path(reader, path, "credentials"),
                     pay_json_member(object, "credentials"), account);
    read_callback_keys(reader, pay_rule_path(reader, path, "callback_keys"),
                       pay_json_member(object, "callback_keys"), &account->psp);
    read_limits(reader, pay_rule_path(reader, path, "limits"), pay_json_member(object, "limits"),
                account);
    read_timeouts(reader, pay_rule_path(reader, path, "timeouts_ms"),
                  pay_json_member(object, "timeouts_ms"), account);
    read_unknown(reader, pay_rule_path(reader, path, "unknown"), pay_json_member(object, "unknown"),
                 account);
    /* The adapter looks only at what is whole: its secrets are there. */
    if (reader->problem_count == before &&
        account->adapter->check_account(&account->psp, &err) != PAY_OK) {
        pay_rule_problem(reader, path, "%s", err.text);
    }
}

static void read_account(struct pay_accounts_reader *reader, const char *path,
                         const struct pay_json_value *object, struct pay_account *account)
{
    static const char *const names[] = {"id",       "psp",      "merchant",    "live",
                                        "endpoint", "settings", "credentials", "callback_keys",
                                        "answers",  "limits",   "timeouts_ms", "foreign_callbacks",
                                        "unknown",  NULL};
    account->psp.id = "";
    if (!pay_rule_object(reader, path, object, names)) {
        return;
    }
    account->psp.id = pay_rule_id(reader, path, object, "id", false);
    account->psp.psp = pay_rule_id(reader, path, object, "psp", true);
    account->psp.merchant_id = pay_rule_id(reader, path, object, "merchant", false);
    account->psp.live = pay_rule_bool(reader, path, object, "live", -1);
    read_endpoint(reader, path, object, &account->psp);
    if (account->psp.merchant_id[0] != '\0') {
        check_merchant(reader, pay_rule_path(reader, path, "merchant"), account->psp.merchant_id);
    }
    account->adapter = pay_psp_find(pay_str_of(account->psp.psp));
    if (account->adapter != NULL) {
        read_parts(reader, path, object, account);
    } else if (account->psp.psp[0] != '\0') {
        pay_rule_problem(reader, pay_rule_path(reader, path, "psp"), "no adapter '%s'",
                         account->psp.psp);
    }
}

void pay_read_psp_accounts(struct pay_accounts_reader *reader, const struct pay_json_value *list)
{
    struct pay_accounts *accounts = reader->accounts;
    const size_t count = pay_rule_array(reader, "psp_accounts", list, 1, PAY_ACCOUNTS_ACCOUNTS_MAX);
    accounts->accounts = pay_rule_array_new(reader, count, sizeof *accounts->accounts);
    accounts->account_count = accounts->accounts == NULL ? 0 : count;
    accounts->secret_cap = accounts->account_count * 2 * PAY_PSP_KEYS_MAX;
    accounts->secrets = (struct pay_secret **)pay_rule_array_new(reader, accounts->secret_cap,
                                                                 sizeof(struct pay_secret *));
    if (accounts->secrets == NULL) {
        accounts->account_count = 0;
    }
    for (size_t i = 0; i < accounts->account_count; i++) {
        read_account(reader, pay_rule_item(reader, "psp_accounts", i), pay_json_item(list, i),
                     &accounts->accounts[i]);
    }
}
