/* SPDX-License-Identifier: Apache-2.0 */
#include "common/accounts/accounts_internal.h"

#include <string.h>

#include "common/base/banned.h"

#define BIT(command) (UINT32_C(1) << PAY_CMD_##command)

/* The column "who" of the state machine's commands: nobody may be granted more. */
static const uint32_t allowed[PAY_PRINCIPAL_KIND_COUNT] = {
    [PAY_PRINCIPAL_SERVICE] = BIT(CREATE_PAYMENT) | BIT(START_ATTEMPT) | BIT(CHANGE_METHOD) |
                              BIT(CONTINUE_ATTEMPT) | BIT(CAPTURE) | BIT(CANCEL_PAYMENT) |
                              BIT(REQUEST_REFUND),
    [PAY_PRINCIPAL_OPERATOR] = BIT(REQUEST_REFUND) | BIT(FORCE_CLOSE_UNKNOWN) | BIT(CORRECT_STATE) |
                               BIT(RELEASE_RESERVATION) | BIT(OVERRIDE_BLOCK) | BIT(RESOLVE_CASE) |
                               BIT(APPROVE) | BIT(DECLINE) | BIT(REPLAY_INPUT) |
                               BIT(DISCARD_EVENT) | BIT(PAUSE_ROUTE) | BIT(RESUME_ROUTE) |
                               BIT(REPLAY_EVENT),
};

static void read_key(struct pay_accounts_reader *reader, const char *path,
                     const struct pay_json_value *object, const struct pay_principal *principal)
{
    struct pay_accounts *accounts = reader->accounts;
    struct pay_key_row *row = &accounts->keys[accounts->key_count];
    struct pay_err err = {0};
    const char *file = pay_rule_file(reader, path, object, &row->id);
    row->principal_id = principal->id;
    if (file[0] == '\0') {
        return;
    }
    if (pay_ed25519_public_load(file, &row->key, &err) != PAY_OK) {
        pay_rule_problem(reader, path, "%s", err.text);
        return;
    }
    accounts->key_count++;
}

static void read_keys(struct pay_accounts_reader *reader, const char *path,
                      const struct pay_json_value *list, struct pay_principal *principal)
{
    struct pay_accounts *accounts = reader->accounts;
    const size_t count = pay_rule_array(reader, path, list, 1, PAY_ACCOUNTS_KEYS_PER_PRINCIPAL_MAX);
    const size_t first = accounts->key_count;
    for (size_t i = 0; i < count; i++) {
        read_key(reader, pay_rule_item(reader, path, i), pay_json_item(list, i), principal);
    }
    principal->key_count = accounts->key_count - first;
    struct pay_principal_key *keys = pay_rule_array_new(reader, principal->key_count, sizeof *keys);
    for (size_t i = 0; keys != NULL && i < principal->key_count; i++) {
        keys[i] =
            (struct pay_principal_key){accounts->keys[first + i].id, accounts->keys[first + i].key};
    }
    principal->keys = keys;
}

static uint32_t read_command(struct pay_accounts_reader *reader, const char *path,
                             const struct pay_json_value *value, enum pay_principal_kind kind)
{
    enum pay_command_type type = PAY_CMD_UNRECOGNIZED;
    const struct pay_str name = pay_json_str(value);
    if (name.ptr == NULL || !pay_command_type_parse(name, &type) || type == PAY_CMD_UNRECOGNIZED) {
        pay_rule_problem(reader, path, "no such command");
        return 0;
    }
    const uint32_t bit = UINT32_C(1) << type;
    if ((allowed[kind] & bit) == 0) {
        pay_rule_problem(reader, path, "%s is not for a principal of this kind", name.ptr);
        return 0;
    }
    return bit;
}

static bool merchant_exists(const struct pay_accounts *accounts, const char *id)
{
    for (size_t i = 0; i < accounts->merchant_count; i++) {
        if (strcmp(accounts->merchants[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}

static void read_grant(struct pay_accounts_reader *reader, const char *path,
                       const struct pay_json_value *object, enum pay_principal_kind kind,
                       struct pay_grant *grant)
{
    static const char *const names[] = {"merchant", "commands", NULL};
    grant->merchant = "";
    if (!pay_rule_object(reader, path, object, names)) {
        return;
    }
    grant->merchant = pay_str_eq_c(pay_json_str(pay_json_member(object, "merchant")), "*")
                          ? "*"
                          : pay_rule_id(reader, path, object, "merchant", false);
    if (grant->merchant[0] != '\0' && grant->merchant[0] != '*' &&
        !merchant_exists(reader->accounts, grant->merchant)) {
        pay_rule_problem(reader, pay_rule_path(reader, path, "merchant"), "no merchant '%s'",
                         grant->merchant);
    }
    const char *at = pay_rule_path(reader, path, "commands");
    const struct pay_json_value *list = pay_json_member(object, "commands");
    const size_t count = pay_rule_array(reader, at, list, 1, PAY_CMD_COUNT);
    for (size_t i = 0; i < count; i++) {
        const char *item = pay_rule_item(reader, at, i);
        const uint32_t bit = read_command(reader, item, pay_json_item(list, i), kind);
        if ((grant->commands & bit) != 0) {
            pay_rule_problem(reader, item, "stands twice");
        }
        grant->commands |= bit;
    }
}

static void read_grants(struct pay_accounts_reader *reader, const char *path,
                        const struct pay_json_value *list, struct pay_principal *principal)
{
    const size_t count = pay_rule_array(reader, path, list, 1, PAY_ACCOUNTS_GRANTS_MAX);
    struct pay_grant *grants = pay_rule_array_new(reader, count, sizeof *grants);
    for (size_t i = 0; grants != NULL && i < count; i++) {
        read_grant(reader, pay_rule_item(reader, path, i), pay_json_item(list, i), principal->kind,
                   &grants[i]);
    }
    principal->grants = grants;
    principal->grant_count = grants == NULL ? 0 : count;
}

static void read_principal(struct pay_accounts_reader *reader, const char *path,
                           const struct pay_json_value *object, struct pay_principal *principal)
{
    static const char *const names[] = {"id", "kind", "keys", "may", NULL};
    static const char *const kinds[] = {"service", "operator", NULL};
    principal->id = "";
    if (!pay_rule_object(reader, path, object, names)) {
        return;
    }
    principal->id = pay_rule_id(reader, path, object, "id", false);
    if (pay_json_member(object, "kind") == NULL) {
        pay_rule_problem(reader, pay_rule_path(reader, path, "kind"), "is missing");
    }
    principal->kind = (enum pay_principal_kind)pay_rule_word(reader, path, object, "kind", kinds);
    read_keys(reader, pay_rule_path(reader, path, "keys"), pay_json_member(object, "keys"),
              principal);
    read_grants(reader, pay_rule_path(reader, path, "may"), pay_json_member(object, "may"),
                principal);
}

void pay_read_principals(struct pay_accounts_reader *reader, const struct pay_json_value *list)
{
    struct pay_accounts *accounts = reader->accounts;
    const size_t count = pay_rule_array(reader, "principals", list, 1, PAY_ACCOUNTS_PRINCIPALS_MAX);
    accounts->principals = pay_rule_array_new(reader, count, sizeof *accounts->principals);
    accounts->keys = pay_rule_array_new(reader, count * PAY_ACCOUNTS_KEYS_PER_PRINCIPAL_MAX,
                                        sizeof *accounts->keys);
    if (accounts->principals == NULL || accounts->keys == NULL) {
        return;
    }
    accounts->principal_count = count;
    for (size_t i = 0; i < count; i++) {
        read_principal(reader, pay_rule_item(reader, "principals", i), pay_json_item(list, i),
                       &accounts->principals[i]);
    }
}
