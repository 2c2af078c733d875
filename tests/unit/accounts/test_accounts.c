/* SPDX-License-Identifier: Apache-2.0 */
#include "common/accounts/accounts.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/crypto/ed25519.h"
#include "common/json/json.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define EXAMPLE PAY_TEST_DATA "/../deploy/examples/accounts.json"
#define FILES_MAX 64

/** A folder with the example's accounts file and every secret that it names. */
struct fixture {
    char root[64];
    char path[128];
    char secrets[128];
    char files[FILES_MAX][256];
    size_t file_count;
    struct pay_buf example;
    struct pay_buf text;
    struct pay_buf problems;
    struct pay_accounts *accounts;
    struct pay_accounts_store *store;
};

static void write_file(struct fixture *fix, const char *path, const void *data, size_t len)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), len);
    assert_int_equal(close(fd), 0);
    for (size_t i = 0; i < fix->file_count; i++) {
        if (strcmp(fix->files[i], path) == 0) {
            return;
        }
    }
    assert_true(fix->file_count < FILES_MAX);
    (void)snprintf(fix->files[fix->file_count++], sizeof fix->files[0], "%s", path);
}

static void write_accounts(struct fixture *fix, struct pay_str text)
{
    write_file(fix, fix->path, text.ptr, text.len);
}

static void write_secret(struct fixture *fix, const char *name)
{
    char path[256];
    char value[128];
    (void)snprintf(path, sizeof path, "%s/%s", fix->secrets, name);
    (void)snprintf(value, sizeof value, "%s_%zu\n",
                   strstr(name, "secret-key") != NULL ? "sk_test" : "whsec", fix->file_count);
    write_file(fix, path, value, strlen(value));
}

static void write_public_key(struct fixture *fix, const char *name)
{
    char path[256];
    struct pay_buf private_pem = pay_buf_make(PAY_ED25519_PEM_MAX);
    struct pay_buf public_pem = pay_buf_make(PAY_ED25519_PEM_MAX);
    (void)snprintf(path, sizeof path, "%s/%s", fix->secrets, name);
    assert_int_equal(pay_ed25519_generate(&private_pem, &public_pem, NULL), PAY_OK);
    write_file(fix, path, public_pem.data, public_pem.len);
    pay_buf_free(&private_pem);
    pay_buf_free(&public_pem);
}

static int setup(void **state)
{
    static const char *const folders[] = {"", "/stripe-a", "/stripe-b", "/principals"};
    static const char *const secrets[] = {"stripe-a/secret-key", "stripe-a/whsec-2026-11",
                                          "stripe-a/whsec-2026-12", "stripe-b/secret-key",
                                          "stripe-b/whsec-2026-11"};
    static const char *const keys[] = {
        "principals/shop-2026-11.pub.pem", "principals/shop-2026-12.pub.pem",
        "principals/operator-1-a.pub.pem", "principals/operator-2-a.pub.pem",
        "principals/operator-3-a.pub.pem"};
    struct fixture *fix = pay_mem_new(1, sizeof *fix);
    if (fix == NULL) {
        return -1;
    }
    *state = fix;
    (void)snprintf(fix->root, sizeof fix->root, "/tmp/payfact-accounts-XXXXXX");
    assert_non_null(mkdtemp(fix->root));
    (void)snprintf(fix->path, sizeof fix->path, "%s/accounts.json", fix->root);
    (void)snprintf(fix->secrets, sizeof fix->secrets, "%s/secrets", fix->root);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char folder[256];
        (void)snprintf(folder, sizeof folder, "%s%s", fix->secrets, folders[i]);
        assert_int_equal(mkdir(folder, 0700), 0);
    }
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        write_secret(fix, secrets[i]);
    }
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        write_public_key(fix, keys[i]);
    }
    fix->example = pay_buf_make(65536);
    fix->text = pay_buf_make(PAY_ACCOUNTS_FILE_BYTES_MAX + 16);
    fix->problems = pay_buf_make(PAY_ACCOUNTS_PROBLEM_BYTES_MAX);
    assert_int_equal(pay_file_read_buf(EXAMPLE, &fix->example, NULL), PAY_OK);
    write_accounts(fix, pay_buf_str(&fix->example));
    return 0;
}

static int teardown(void **state)
{
    static const char *const folders[] = {"/secrets/stripe-a", "/secrets/stripe-b",
                                          "/secrets/principals", "/secrets", ""};
    struct fixture *fix = *state;
    pay_accounts_release(fix->accounts);
    pay_accounts_close(fix->store);
    for (size_t i = 0; i < fix->file_count; i++) {
        (void)unlink(fix->files[i]);
    }
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char folder[256];
        (void)snprintf(folder, sizeof folder, "%s%s", fix->root, folders[i]);
        (void)rmdir(folder);
    }
    pay_buf_free(&fix->example);
    pay_buf_free(&fix->text);
    pay_buf_free(&fix->problems);
    pay_mem_free(fix);
    return 0;
}

static enum pay_status load(struct fixture *fix, struct pay_err *err)
{
    pay_buf_reset(&fix->problems);
    pay_accounts_release(fix->accounts);
    fix->accounts = NULL;
    return pay_accounts_load(fix->path, fix->secrets, &fix->accounts, &fix->problems, err);
}

static const struct pay_accounts *loaded(struct fixture *fix)
{
    struct pay_err err = {0};
    if (load(fix, &err) != PAY_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(fix->problems.len, 0);
    return fix->accounts;
}

/* The example with the first @p from replaced. */
static struct pay_str changed(struct fixture *fix, const char *from, const char *to)
{
    const char *text = (const char *)fix->example.data;
    const char *at = strstr(text, from);
    if (at == NULL) {
        fail_msg("'%s' is not in the example", from);
        return (struct pay_str){NULL, 0};
    }
    pay_buf_reset(&fix->text);
    pay_buf_add(&fix->text, text, (size_t)(at - text));
    pay_buf_add_c(&fix->text, to);
    pay_buf_add_c(&fix->text, at + strlen(from));
    return pay_buf_str(&fix->text);
}

/* ---- The example ---- */

static void test_example_is_accepted(void **state)
{
    const struct pay_accounts *accounts = loaded(*state);
    assert_int_equal(pay_accounts_account_count(accounts), 2);
    assert_int_equal(pay_accounts_merchant_count(accounts), 1);
    const struct pay_account *a = pay_accounts_account(accounts, PAY_STR("stripe-a"));
    assert_ptr_equal(a, pay_accounts_account_at(accounts, 0));
    assert_string_equal(a->psp.merchant_id, "acme");
    assert_string_equal(a->psp.endpoint, "https://api.stripe.com");
    assert_string_equal(a->adapter->name, "stripe");
    assert_string_equal(pay_psp_setting(&a->psp, "api_version"), "2024-06-20");
    assert_int_equal(a->psp.callback_key_count, 2);
    assert_string_equal(a->psp.callback_keys[1].id, "whsec-2026-12");
    assert_non_null(pay_psp_credential(&a->psp, "secret_key"));
    assert_false(a->psp.live);
    assert_int_equal(a->answers, PAY_ANSWERS_CUSTODY);
    assert_int_equal(a->foreign, PAY_FOREIGN_IGNORE);
    assert_int_equal(a->in_flight, 32);
    assert_null(pay_accounts_account(accounts, PAY_STR("stripe-")));
    assert_null(pay_accounts_account(accounts, PAY_STR("stripe-aa")));
    assert_null(pay_accounts_account(accounts, (struct pay_str){NULL, 0}));
}

/* The newline that an editor adds is no part of a secret. */
static void test_secret_is_trimmed(void **state)
{
    const struct pay_accounts *accounts = loaded(*state);
    const struct pay_account *a = pay_accounts_account(accounts, PAY_STR("stripe-a"));
    const struct pay_bytes secret = pay_secret_bytes(a->psp.callback_keys[0].secret);
    assert_true(secret.len > 0);
    assert_int_not_equal(secret.ptr[secret.len - 1], '\n');
}

static void test_traits_are_overlaid(void **state)
{
    const struct pay_accounts *accounts = loaded(*state);
    const struct pay_account *a = pay_accounts_account(accounts, PAY_STR("stripe-a"));
    const struct pay_account *b = pay_accounts_account(accounts, PAY_STR("stripe-b"));
    assert_int_equal(a->traits.visibility_grace_us, 90000000);
    assert_int_equal(a->traits.call_budget_us, 20000000);
    assert_int_equal(a->query_max_us, 900000000);
    /* What b's file leaves out is the adapter's own. */
    assert_memory_equal(&b->traits, &b->adapter->traits, sizeof b->traits);
    assert_int_equal(b->total_timeout_ms, 20000);
    assert_int_equal(b->answers, PAY_ANSWERS_STRICT);
    assert_int_equal(b->foreign, PAY_FOREIGN_ORPHAN);
    struct fixture *fix = *state;
    write_accounts(fix, changed(fix, "\"query_first_s\": 5",
                                "\"query_first_s\": 7,"
                                "\"send_window_s\": 11,"
                                "\"answer_s\": 12,"
                                "\"action_lifetime_s\": 13,"
                                "\"cancel_retry_s\": 14,"
                                "\"money_action_life_s\": 15,"
                                "\"money_action_retry_s\": 16,"
                                "\"reservation_s\": 17"));
    a = pay_accounts_account(loaded(fix), PAY_STR("stripe-a"));
    assert_int_equal(a->traits.query_first_us, 7000000);
    assert_int_equal(a->traits.send_window_us, 11000000);
    assert_int_equal(a->traits.answer_us, 12000000);
    assert_int_equal(a->traits.action_lifetime_us, 13000000);
    assert_int_equal(a->traits.cancel_retry_us, 14000000);
    assert_int_equal(a->traits.action_life_us, 15000000);
    assert_int_equal(a->traits.action_retry_us, 16000000);
    assert_int_equal(a->traits.reservation_us, 17000000);
}

static void test_principals_and_keys(void **state)
{
    const struct pay_accounts *accounts = loaded(*state);
    const struct pay_ed25519_public *key = NULL;
    const struct pay_principal *shop = pay_accounts_key(accounts, PAY_STR("shop-2026-12"), &key);
    assert_string_equal(shop->id, "shop");
    assert_int_equal(shop->kind, PAY_PRINCIPAL_SERVICE);
    assert_ptr_equal(shop->keys[1].key, key);
    assert_ptr_equal(shop, pay_accounts_principal(accounts, PAY_STR("shop")));
    const struct pay_principal *operator1 =
        pay_accounts_key(accounts, PAY_STR("operator-1-a"), NULL);
    assert_string_equal(operator1->id, "operator-1");
    assert_int_equal(operator1->kind, PAY_PRINCIPAL_OPERATOR);
    assert_null(pay_accounts_key(accounts, PAY_STR("shop-2026-13"), &key));
    assert_null(pay_accounts_principal(accounts, PAY_STR("nobody")));
}

static void test_may(void **state)
{
    const struct pay_accounts *accounts = loaded(*state);
    static const struct {
        const char *principal, *merchant;
        enum pay_command_type command;
        bool may;
    } rows[] = {
        {"shop", "acme", PAY_CMD_CREATE_PAYMENT, true},
        {"shop", "acme", PAY_CMD_REQUEST_REFUND, true},
        {"shop", "acme", PAY_CMD_APPROVE, false},
        {"shop", "other", PAY_CMD_CREATE_PAYMENT, false},
        {"shop", "acm", PAY_CMD_CREATE_PAYMENT, false},
        {"shop", "*", PAY_CMD_CREATE_PAYMENT, false},
        {"operator-1", "acme", PAY_CMD_APPROVE, true},
        {"operator-1", "other", PAY_CMD_APPROVE, true},
        {"operator-1", "acme", PAY_CMD_CREATE_PAYMENT, false},
        {"operator-3", "acme", PAY_CMD_DECLINE, true},
        {"operator-3", "acme", PAY_CMD_PAUSE_ROUTE, false},
        {"operator-3", "other", PAY_CMD_APPROVE, false},
        {"operator-1", "acme", PAY_CMD_UNRECOGNIZED, false},
        {"operator-1", "acme", PAY_CMD_COUNT, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct pay_principal *principal =
            pay_accounts_principal(accounts, pay_str_of(rows[i].principal));
        assert_int_equal(pay_accounts_may(principal, pay_str_of(rows[i].merchant), rows[i].command),
                         rows[i].may);
    }
    assert_false(pay_accounts_may(NULL, PAY_STR("acme"), PAY_CMD_APPROVE));
}

static void test_policy_and_thresholds(void **state)
{
    const struct pay_accounts *accounts = loaded(*state);
    const struct pay_merchant *acme = pay_accounts_merchant(accounts, PAY_STR("acme"));
    struct pay_policy policy = {0};
    assert_true(pay_accounts_policy(accounts, PAY_STR("acme"), PAY_STR("EUR"), &policy));
    assert_int_equal(policy.refund_threshold_minor, 5000);
    assert_int_equal(policy.refund_threshold_day_minor, 100000);
    assert_int_equal(policy.amount_max_minor, 1000000);
    assert_int_equal(policy.order_expires_after_us, INT64_C(86400000000));
    assert_int_equal(policy.failover_window_us, 900000000);
    assert_true(policy.retry_until_expiry);
    assert_false(policy.manual_capture);
    assert_true(pay_accounts_policy(accounts, PAY_STR("acme"), PAY_STR("GBP"), &policy));
    assert_int_equal(policy.amount_max_minor, 0);
    assert_false(pay_accounts_policy(accounts, PAY_STR("other"), PAY_STR("EUR"), &policy));
    assert_int_equal(pay_merchant_refund_threshold(acme, PAY_STR("EUR")).minor, 5000);
    assert_int_equal(pay_merchant_refund_threshold(acme, PAY_STR("EUR")).per_day_minor, 100000);
    assert_int_equal(pay_merchant_refund_threshold(acme, PAY_STR("JPY")).minor, 0);
    assert_int_equal(acme->authorization_end, PAY_AUTHORIZATION_END_VOID);
}

static void test_write_path(void **state)
{
    static const struct {
        const char *text;
        int least, most; /* Of 1000 payments. */
    } rows[] = {{"\"write_path\": \"live\"", 1000, 1000},
                {"\"write_path\": \"shadow\"", 0, 0},
                {"\"write_path\": {\"percent\": 0}", 0, 0},
                {"\"write_path\": {\"percent\": 10}", 60, 140},
                {"\"write_path\": {\"percent\": 100}", 1000, 1000}};
    struct fixture *fix = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int live = 0;
        write_accounts(fix, changed(fix, "\"write_path\": \"live\"", rows[i].text));
        const struct pay_merchant *acme = pay_accounts_merchant(loaded(fix), PAY_STR("acme"));
        for (int n = 0; n < 1000; n++) {
            char id[40];
            (void)snprintf(id, sizeof id, "01JDZ5V6N8QWERTYPASDFG%04d", n);
            live += pay_merchant_writes(acme, pay_str_of(id));
            assert_int_equal(pay_merchant_writes(acme, pay_str_of(id)),
                             pay_merchant_writes(acme, pay_str_of(id)));
        }
        assert_in_range(live, rows[i].least, rows[i].most);
    }
}

/* ---- Routes ---- */

static struct pay_money money(const char *currency, int64_t minor)
{
    struct pay_money amount = {.amount_minor = minor};
    assert_true(pay_str_copy(amount.currency, sizeof amount.currency, pay_str_of(currency)));
    return amount;
}

static const char *routes_of(const struct pay_accounts *accounts, const char *merchant,
                             const struct pay_route_wish *wish, struct pay_route *ret_routes,
                             size_t *ret_count)
{
    return pay_accounts_routes(accounts, pay_str_of(merchant), wish, ret_routes, ret_count);
}

static void test_default_routes_fit_the_money(void **state)
{
    const struct pay_accounts *accounts = loaded(*state);
    struct pay_route routes[PAY_ROUTES_MAX];
    size_t count = 99;
    assert_null(routes_of(accounts, "acme",
                          &(struct pay_route_wish){NULL, 0, money("EUR", 1000000)}, routes,
                          &count));
    assert_int_equal(count, 2);
    assert_string_equal(routes[0].psp, "stripe");
    assert_string_equal(routes[0].psp_account, "stripe-a");
    assert_string_equal(routes[0].method, "card");
    assert_string_equal(routes[1].psp_account, "stripe-b");
    assert_false(routes[0].paused);
    assert_int_equal(routes[0].traits.call_budget_us, 20000000);
    assert_null(routes_of(accounts, "acme", &(struct pay_route_wish){NULL, 0, money("JPY", 1)},
                          routes, &count));
    assert_int_equal(count, 1);
    count = 99;
    assert_string_equal(routes_of(accounts, "acme",
                                  &(struct pay_route_wish){NULL, 0, money("EUR", 1000001)}, routes,
                                  &count),
                        "NO_ROUTE");
    assert_string_equal(routes_of(accounts, "acme",
                                  &(struct pay_route_wish){NULL, 0, money("USD", 1)}, routes,
                                  &count),
                        "NO_ROUTE");
    assert_string_equal(routes_of(accounts, "other",
                                  &(struct pay_route_wish){NULL, 0, money("EUR", 1)}, routes,
                                  &count),
                        "UNKNOWN_MERCHANT");
    assert_int_equal(count, 99);
}

static void test_chosen_routes(void **state)
{
    const struct pay_accounts *accounts = loaded(*state);
    const struct pay_route_choice good = {PAY_STR("stripe"), PAY_STR("stripe-b"),
                                          PAY_STR("sepa_debit"), true};
    struct pay_route_choice choices[PAY_ROUTES_MAX + 1];
    struct pay_route routes[PAY_ROUTES_MAX];
    size_t count = 0;
    static const struct {
        struct pay_route_choice choice;
        const char *refusal;
    } bad[] = {
        {{{"stripe", 6}, {"stripe-c", 8}, {"card", 4}, false}, "UNKNOWN_ROUTE"},
        {{{"adyen", 5}, {"stripe-a", 8}, {"card", 4}, false}, "UNKNOWN_ROUTE"},
        {{{NULL, 0}, {"stripe-a", 8}, {"card", 4}, false}, "UNKNOWN_ROUTE"},
        {{{"stripe", 6}, {NULL, 0}, {"card", 4}, false}, "UNKNOWN_ROUTE"},
        {{{"stripe", 6}, {"stripe-a", 8}, {"", 0}, false}, "BAD_METHOD"},
        {{{"stripe", 6}, {"stripe-a", 8}, {"Card", 4}, false}, "BAD_METHOD"},
        {{{"stripe", 6}, {"stripe-a", 8}, {"abcdefghijklmnopqrstuvwxyz0123456", 33}, false},
         "BAD_METHOD"},
    };
    for (size_t i = 0; i <= PAY_ROUTES_MAX; i++) {
        choices[i] = good;
    }
    assert_null(routes_of(accounts, "acme",
                          &(struct pay_route_wish){choices, PAY_ROUTES_MAX, money("USD", 1)},
                          routes, &count));
    assert_int_equal(count, PAY_ROUTES_MAX);
    assert_string_equal(routes[PAY_ROUTES_MAX - 1].method, "sepa_debit");
    assert_true(routes[0].failover_on_not_found);
    assert_string_equal(
        routes_of(accounts, "acme",
                  &(struct pay_route_wish){choices, PAY_ROUTES_MAX + 1, money("USD", 1)}, routes,
                  &count),
        "LIMIT");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        choices[1] = bad[i].choice;
        assert_string_equal(routes_of(accounts, "acme",
                                      &(struct pay_route_wish){choices, 2, money("USD", 1)}, routes,
                                      &count),
                            bad[i].refusal);
    }
    assert_int_equal(count, PAY_ROUTES_MAX);
}

/* A second merchant with an account of its own. */
static void test_another_merchants_account_is_unknown(void **state)
{
    struct fixture *fix = *state;
    struct pay_route routes[PAY_ROUTES_MAX];
    size_t count = 0;
    const struct pay_route_choice choice = {PAY_STR("stripe"), PAY_STR("stripe-a"), PAY_STR("card"),
                                            false};
    write_accounts(fix, changed(fix, "\"merchants\": [",
                                "\"merchants\": [{\"id\":\"other\",\"limits\":"
                                "{\"amount_max_minor\":{\"EUR\":5}}},"));
    assert_string_equal(routes_of(loaded(fix), "other",
                                  &(struct pay_route_wish){&choice, 1, money("EUR", 1)}, routes,
                                  &count),
                        "UNKNOWN_ROUTE");
    assert_string_equal(routes_of(fix->accounts, "other",
                                  &(struct pay_route_wish){NULL, 0, money("EUR", 1)}, routes,
                                  &count),
                        "NO_ROUTE");
}

/* ---- Refusals: one change of the example, and the complaint it must bring ---- */

static const struct {
    const char *from, *to, *problem;
} refusals[] = {
    /* The file */
    {"{\n", "", "file: "},
    {"\"version\": 1,", "", "version: is missing"},
    {"\"version\": 1", "\"version\": 2", "version: is 2, from 1 to 1 is possible"},
    {"\"version\": 1", "\"version\": 1, \"version\": 1", "file: "},
    {"\"version\": 1", "\"version\": 1, \"extra\": {}", "extra: unknown field"},
    {"\"merchants\": [", "\"merchants\": [], \"x\": [", "merchants: has 0 items"},
    {"\"psp_accounts\": [", "\"psp_accounts\": [], \"x\": [", "psp_accounts: has 0 items"},
    {"\"principals\": [", "\"principals\": {}, \"x\": [", "principals: is no array"},
    /* Merchants */
    {"\"id\": \"acme\"", "\"id\": \"Acme\"", "merchants[0].id: is not 1 to 32"},
    {"\"id\": \"acme\"", "\"id\": \"\"", "merchants[0].id: is not 1 to 32"},
    {"\"id\": \"acme\"", "\"id\": \"a23456789012345678901234567890123\"",
     "merchants[0].id: is not 1 to 32"},
    {"\"id\": \"acme\",", "", "merchants[0].id: is missing"},
    {"\"merchants\": [",
     "\"merchants\": [{\"id\":\"acme\",\"limits\":{\"amount_max_minor\":{\"EUR\":5}}},",
     "merchants: id 'acme' stands twice"},
    {"\"failover_window_s\"", "\"failover_windows\"", "merchants[0].failover_windows: unknown"},
    {"\"failover_window_s\": 900", "\"failover_window_s\": 9.5",
     "failover_window_s: is no integer"},
    {"\"failover_window_s\": 900", "\"failover_window_s\": -1", "failover_window_s: is -1"},
    {"\"order_expires_after_s\": 86400", "\"order_expires_after_s\": 0",
     "order_expires_after_s: is 0"},
    {"\"retry_until_expiry\": true", "\"retry_until_expiry\": 1",
     "retry_until_expiry: is neither true nor false"},
    {"\"authorization_end\": \"void\"", "\"authorization_end\": \"wait\"",
     "authorization_end: is not 'void' or 'capture'"},
    {"\"write_path\": \"live\"", "\"write_path\": \"dead\"", "write_path: is not"},
    {"\"write_path\": \"live\"", "\"write_path\": {\"percent\": 101}",
     "write_path.percent: is 101"},
    {"\"write_path\": \"live\"", "\"write_path\": {\"part\": 1}", "write_path.part: unknown field"},
    {"\"amount_max_minor\": {", "\"amount_max_minor\": {\"eur\": 1,",
     "amount_max_minor.eur: is no currency"},
    {"\"amount_max_minor\": {\"EUR\": 1000000", "\"amount_max_minor\": {\"EUR\": 0",
     "amount_max_minor.EUR: is 0"},
    {"\"amount_max_minor\": {\"EUR\": 1000000", "\"amount_max_minor\": {\"EUR\": 1e6",
     "amount_max_minor.EUR: is no integer"},
    {"\"amount_max_minor\": {\"EUR\": 1000000, \"USD\": 1000000, \"JPY\": 1000000}",
     "\"amount_max_minor\": {}", "amount_max_minor: has 0 currencies"},
    {"\"limits\": {\"commands_per_s\": 200, \"amount", "\"limits\": {\"commands\": 1, \"amount",
     "merchants[0].limits.commands: unknown field"},
    {"\"per_payment\": 5000", "\"per_payment\": -1",
     "refund_threshold_minor.EUR.per_payment: is -1"},
    {"\"per_payment\": 5000, ", "", "refund_threshold_minor.EUR.per_payment: is missing"},
    {"\"method\": \"card\"", "\"method\": \"Card\"", "default_routes[0].method: is not"},
    {"\"currency\": \"EUR\"", "\"currency\": \"EUX\"",
     "default_routes[0].currency: is no currency"},
    {"\"min_minor\": 1", "\"min_minor\": 0", "default_routes[0].min_minor: is 0"},
    {"\"min_minor\": 1", "\"min_minor\": 1000001", "default_routes[0]: min_minor is above"},
    {"\"psp_account\": \"stripe-a\"", "\"psp_account\": \"stripe-c\"",
     "acme.default_routes[0]: no psp account 'stripe-c'"},
    {"\"merchants\": [",
     "\"merchants\": [{\"id\":\"other\",\"limits\":{\"amount_max_minor\":{\"EUR\":5}},"
     "\"default_routes\":[{\"method\":\"card\",\"currency\":\"EUR\",\"min_minor\":1,"
     "\"max_minor\":5,\"psp_account\":\"stripe-a\"}]},",
     "other.default_routes[0]: psp account 'stripe-a' is another merchant's"},
    {"\"failover_on_not_found\": false", "\"failover_on_not_found\": \"no\"",
     "failover_on_not_found: is neither"},
    /* Accounts */
    {"\"id\": \"stripe-b\"", "\"id\": \"stripe-a\"", "psp_accounts: id 'stripe-a' stands twice"},
    {"\"id\": \"stripe-a\"", "\"id\": \"stripe_a\"", "psp_accounts[0].id: is not 1 to 32"},
    {"\"psp\": \"stripe\"", "\"psp\": \"mock\"", "psp_accounts[0].psp: no adapter 'mock'"},
    {"\"merchant\": \"acme\"", "\"merchant\": \"nobody\"",
     "psp_accounts[0].merchant: no merchant 'nobody'"},
    {"\"merchant\": \"acme\",", "", "psp_accounts[0].merchant: is missing"},
    {"\"live\": false,", "", "psp_accounts[0].live: is missing"},
    {"\"live\": false", "\"live\": true", "secret_key is of the other mode"},
    {"https://api.stripe.com", "http://api.stripe.com", "plain http to another machine"},
    {"https://api.stripe.com", "http://localhost.evil.example", "plain http to another machine"},
    {"https://api.stripe.com", "https://u@api.stripe.com", "is not just a host"},
    {"https://api.stripe.com", "https://api.stripe.com?x", "is not just a host"},
    {"https://api.stripe.com", "https://", "is not just a host"},
    {"https://api.stripe.com", "https://:443", "is not just a host"},
    {"https://api.stripe.com", "https://api.stripe.com/", "ends with a slash"},
    {"https://api.stripe.com", "ftp://api.stripe.com", "does not start with https://"},
    {"\"live\": false,\n      \"endpoint\": \"https://api.stripe.com\"",
     "\"live\": true,\n      \"endpoint\": \"http://127.0.0.1:1\"", "plain http in a live account"},
    {"\"settings\": {\"api_version\": \"2024-06-20\"}", "\"settings\": {}",
     "settings.api_version: is missing"},
    {"\"settings\": {\"api_version\": \"2024-06-20\"},", "", "settings.api_version: is missing"},
    {"\"api_version\": \"2024-06-20\"", "\"api_version\": \"new\"", "api_version is no date"},
    {"\"api_version\": \"2024-06-20\"", "\"api_version\": \"2024-06-20\", \"x\": \"y\"",
     "settings.x: unknown field"},
    {"\"secret_key\": {", "\"key\": {", "credentials.key: unknown field"},
    {"\"secret_key\": {", "\"key\": {", "credentials.secret_key: is missing"},
    {"\"file\": \"stripe-a/secret-key\"", "\"file\": \"stripe-a/none\"",
     "psp_accounts[0].credentials.secret_key: "},
    {"\"file\": \"stripe-a/secret-key\"", "\"file\": \"../accounts.json\"",
     "does not stay below the secrets folder"},
    {"\"file\": \"stripe-a/secret-key\"", "\"file\": \"/etc/hostname\"",
     "does not stay below the secrets folder"},
    {"\"file\": \"stripe-a/secret-key\"", "\"file\": \"stripe-a/./secret-key\"",
     "does not stay below the secrets folder"},
    {"\"file\": \"stripe-a/secret-key\"", "\"file\": \"stripe-a/\"",
     "does not stay below the secrets folder"},
    {"\"id\": \"sk-a\", ", "", "credentials.secret_key.id: is missing"},
    {"{\"id\": \"whsec-2026-12\"", "{\"id\": \"whsec-2026-11\"",
     "callback_keys[1]: id 'whsec-2026-11' stands twice"},
    {"{\"id\": \"whsec-2026-11\", ", "{\"x\": 1, \"id\": \"whsec-2026-11\", ",
     "callback_keys[0].x: unknown field"},
    {"\"callback_keys\": [\n", "\"callback_keys\": [], \"x\": [\n", "callback_keys: has 0 items"},
    {"\"answers\": \"custody\"", "\"answers\": \"always\"",
     "answers: is not 'custody' or 'strict'"},
    {"\"foreign_callbacks\": \"ignore\"", "\"foreign_callbacks\": \"drop\"",
     "foreign_callbacks: is not"},
    {"\"in_flight\": 32", "\"in_flight\": 0", "psp_accounts[0].limits.in_flight: is 0"},
    {"\"in_flight\": 32", "\"in_flights\": 1", "limits.in_flights: unknown field"},
    {"\"connect\": 2000", "\"connect\": 1", "timeouts_ms.connect: is 1"},
    {"\"connect\": 2000", "\"connect\": 20001", "connect is longer than total"},
    {"\"not_founds_needed\": 3", "\"not_founds_needed\": 0", "unknown.not_founds_needed: is 0"},
    {"\"longest_processing_s\": 60", "\"longest_processing_s\": 0", "longest_processing_s: is 0"},
    {"\"longest_processing_s\": 60", "\"longest\": 60", "unknown.longest: unknown field"},
    {"\"query_max_s\": 900", "\"query_max_s\": 4", "query_max_s is below query_first_s"},
    {"\"person_after_s\": 3600", "\"person_after_s\": 4", "person_after_s is below query_first_s"},
    /* Principals */
    {"\"id\": \"operator-2\"", "\"id\": \"shop\"", "principals: id 'shop' stands twice"},
    {"\"kind\": \"service\",", "", "principals[0].kind: is missing"},
    {"\"kind\": \"service\"", "\"kind\": \"person\"", "principals[0].kind: is not"},
    {"\"id\": \"shop-2026-12\"", "\"id\": \"operator-1-a\"",
     "principals: keys: id 'operator-1-a' stands twice"},
    {"\"file\": \"principals/shop-2026-11.pub.pem\"", "\"file\": \"stripe-a/secret-key\"",
     "principals[0].keys[0]: "},
    {"\"file\": \"principals/shop-2026-11.pub.pem\"", "\"file\": \"principals/none\"",
     "principals[0].keys[0]: "},
    {"\"CREATE_PAYMENT\"", "\"CREATE\"", "may[0].commands[0]: no such command"},
    {"\"CREATE_PAYMENT\"", "\"UNRECOGNIZED\"", "may[0].commands[0]: no such command"},
    {"\"CREATE_PAYMENT\"", "\"APPROVE\"", "APPROVE is not for a principal of this kind"},
    {"\"FORCE_CLOSE_UNKNOWN\"", "\"CREATE_PAYMENT\"",
     "CREATE_PAYMENT is not for a principal of this kind"},
    {"\"START_ATTEMPT\"", "\"CREATE_PAYMENT\"", "commands[1]: stands twice"},
    {"\"commands\": [\"CREATE", "\"commands\": [], \"x\": [\"CREATE", "commands: has 0 items"},
    {"{\"merchant\": \"acme\", \"commands\": [\"APPROVE\", \"DECLINE\", \"PAUSE",
     "{\"merchant\": \"nobody\", \"commands\": [\"APPROVE\", \"DECLINE\", \"PAUSE",
     "principals[2].may[0].merchant: no merchant 'nobody'"},
};

static void check_refusal(struct fixture *fix, size_t row)
{
    struct pay_err err = {0};
    write_accounts(fix, changed(fix, refusals[row].from, refusals[row].to));
    const enum pay_status status = load(fix, &err);
    const char *problems = status == PAY_OK ? "accepted" : (const char *)fix->problems.data;
    if (strstr(problems, refusals[row].problem) == NULL) {
        fail_msg("'%s' -> '%s': %s", refusals[row].from, refusals[row].to, problems);
    }
    assert_int_equal(status, PAY_FATAL);
    assert_null(fix->accounts);
    assert_true(err.text[0] != '\0');
    assert_null(strstr(problems, "sk_test_"));
    assert_null(strstr(problems, "whsec_"));
}

static void test_every_refusal(void **state)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        check_refusal(*state, i);
    }
}

/* A simulator on this machine is fine for a test account. */
static void test_plain_loopback_is_accepted(void **state)
{
    static const char *const endpoints[] = {"http://127.0.0.1:8080", "http://localhost",
                                            "http://[::1]:1/stripe"};
    struct fixture *fix = *state;
    for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
        write_accounts(fix, changed(fix, "https://api.stripe.com", endpoints[i]));
        const struct pay_account *a = pay_accounts_account(loaded(fix), PAY_STR("stripe-a"));
        assert_string_equal(a->psp.endpoint, endpoints[i]);
    }
}

/* An empty secret would let every forger in (S7). */
static void test_s7_empty_secret_is_refused(void **state)
{
    struct fixture *fix = *state;
    char path[256];
    (void)snprintf(path, sizeof path, "%s/stripe-a/whsec-2026-11", fix->secrets);
    write_file(fix, path, " \n", 2);
    assert_int_equal(load(fix, NULL), PAY_FATAL);
    assert_non_null(strstr((const char *)fix->problems.data, "psp_accounts[0].callback_keys[0]: "));
}

static void test_all_problems_are_listed(void **state)
{
    struct fixture *fix = *state;
    struct pay_err err = {0};
    (void)changed(fix, "\"failover_window_s\": 900", "\"failover_window_s\": -1");
    struct pay_buf first = pay_buf_make(65536);
    pay_buf_add_str(&first, pay_buf_str(&fix->text));
    struct pay_buf kept = fix->example;
    fix->example = first;
    write_accounts(fix, changed(fix, "\"in_flight\": 32", "\"in_flight\": 0"));
    fix->example = kept;
    pay_buf_free(&first);
    assert_int_equal(load(fix, &err), PAY_FATAL);
    assert_non_null(strstr((const char *)fix->problems.data, "failover_window_s: is -1"));
    assert_non_null(strstr((const char *)fix->problems.data, "in_flight: is 0"));
    assert_int_equal(err.code, 2);
    assert_non_null(strstr(err.text, "(and more)"));
}

static void test_more_problems_than_are_listed_are_counted(void **state)
{
    struct fixture *fix = *state;
    pay_buf_reset(&fix->text);
    pay_buf_add_char(&fix->text, '{');
    for (int i = 0; i < PAY_ACCOUNTS_PROBLEMS_MAX + 50; i++) {
        pay_buf_printf(&fix->text, "\"x%d\":1,", i);
    }
    pay_buf_add_c(&fix->text, "\"version\":1}");
    write_accounts(fix, pay_buf_str(&fix->text));
    assert_int_equal(load(fix, NULL), PAY_FATAL);
    assert_non_null(strstr((const char *)fix->problems.data, "\nand 53 more\n"));
}

static void test_file_beyond_its_bound(void **state)
{
    struct fixture *fix = *state;
    pay_buf_reset(&fix->text);
    while (fix->text.len <= PAY_ACCOUNTS_FILE_BYTES_MAX) {
        pay_buf_add_c(&fix->text, "                ");
    }
    write_accounts(fix, pay_buf_str(&fix->text));
    assert_int_equal(load(fix, NULL), PAY_FATAL);
    assert_int_equal(unlink(fix->path), 0);
    assert_int_equal(load(fix, NULL), PAY_FATAL);
}

/* ---- Changes while running ---- */

static enum pay_accounts_change refresh(struct fixture *fix)
{
    pay_buf_reset(&fix->problems);
    return pay_accounts_refresh(fix->store, &fix->problems);
}

static void open_store(struct fixture *fix)
{
    assert_int_equal(pay_accounts_open(fix->path, fix->secrets, &fix->store, &fix->problems, NULL),
                     PAY_OK);
}

static int64_t window_us(const struct pay_accounts *accounts)
{
    return pay_accounts_merchant(accounts, PAY_STR("acme"))->failover_window_us;
}

static void test_a_changed_file_replaces_and_a_bad_one_does_not(void **state)
{
    struct fixture *fix = *state;
    open_store(fix);
    assert_int_equal(refresh(fix), PAY_ACCOUNTS_SAME);
    const struct pay_accounts *old = pay_accounts_acquire(fix->store);
    write_accounts(fix, changed(fix, "\"failover_window_s\": 900", "\"failover_window_s\": 9"));
    assert_int_equal(refresh(fix), PAY_ACCOUNTS_CHANGED);
    const struct pay_accounts *fresh = pay_accounts_acquire(fix->store);
    assert_ptr_not_equal(old, fresh);
    assert_int_equal(window_us(old), 900000000); /* Who holds the old one sees the old one. */
    assert_int_equal(window_us(fresh), 9000000);
    pay_accounts_release(old);
    pay_accounts_release(fresh);
    write_accounts(fix, changed(fix, "\"failover_window_s\": 900", "\"failover_window_s\": -9"));
    assert_int_equal(refresh(fix), PAY_ACCOUNTS_BAD);
    assert_non_null(strstr((const char *)fix->problems.data, "failover_window_s"));
    assert_int_equal(refresh(fix), PAY_ACCOUNTS_SAME); /* Counted once. */
    fresh = pay_accounts_acquire(fix->store);
    assert_int_equal(window_us(fresh), 9000000);
    pay_accounts_release(fresh);
    assert_int_equal(unlink(fix->path), 0);
    assert_int_equal(refresh(fix), PAY_ACCOUNTS_BAD);
    write_accounts(fix, pay_buf_str(&fix->example));
    assert_int_equal(refresh(fix), PAY_ACCOUNTS_CHANGED);
    const struct pay_accounts_stats stats = pay_accounts_stats(fix->store);
    assert_int_equal(stats.loads, 3);
    assert_int_equal(stats.errors, 2);
}

/* Rotation: a secret's file alone changes. */
static void test_a_changed_secret_is_read_again(void **state)
{
    struct fixture *fix = *state;
    char path[256];
    open_store(fix);
    (void)snprintf(path, sizeof path, "%s/stripe-b/whsec-2026-11", fix->secrets);
    write_file(fix, path, "whsec_rotated", 13);
    assert_int_equal(refresh(fix), PAY_ACCOUNTS_CHANGED);
    const struct pay_accounts *accounts = pay_accounts_acquire(fix->store);
    const struct pay_account *b = pay_accounts_account(accounts, PAY_STR("stripe-b"));
    const struct pay_bytes secret = pay_secret_bytes(b->psp.callback_keys[0].secret);
    assert_int_equal(secret.len, 13);
    assert_memory_equal(secret.ptr, "whsec_rotated", 13);
    pay_accounts_release(accounts);
    write_file(fix, path, "", 0);
    assert_int_equal(refresh(fix), PAY_ACCOUNTS_BAD);
    write_file(fix, path, "whsec_again!", 12);
    assert_int_equal(refresh(fix), PAY_ACCOUNTS_CHANGED);
}

/* The same size within the same second: the parts of a second tell. */
static void test_a_change_within_one_second_is_seen(void **state)
{
    struct fixture *fix = *state;
    const struct timespec first[2] = {{1700000000, 1}, {1700000000, 1}};
    const struct timespec second[2] = {{1700000000, 2}, {1700000000, 2}};
    assert_int_equal(utimensat(AT_FDCWD, fix->path, first, 0), 0);
    open_store(fix);
    assert_int_equal(refresh(fix), PAY_ACCOUNTS_SAME);
    assert_int_equal(utimensat(AT_FDCWD, fix->path, second, 0), 0);
    assert_int_equal(refresh(fix), PAY_ACCOUNTS_CHANGED);
}

static void test_open_refuses_a_bad_file(void **state)
{
    struct fixture *fix = *state;
    struct pay_err err = {0};
    write_accounts(fix, changed(fix, "\"version\": 1", "\"version\": 7"));
    assert_int_equal(pay_accounts_open(fix->path, fix->secrets, &fix->store, NULL, &err),
                     PAY_FATAL);
    assert_null(fix->store);
    assert_non_null(strstr(err.text, "version"));
    fix->store = pay_accounts_close(NULL);
    pay_accounts_release(NULL);
}

/** A reader's life: take, look, give back. */
struct reader {
    struct pay_accounts_store *store;
    atomic_bool *stop;
    uint64_t looks;
    bool consistent;
};

static void *read_on(void *arg)
{
    struct reader *reader = arg;
    reader->consistent = true;
    while (!atomic_load(reader->stop) || reader->looks == 0) {
        const struct pay_accounts *accounts = pay_accounts_acquire(reader->store);
        const int64_t first = window_us(accounts);
        const struct pay_account *a = pay_accounts_account(accounts, PAY_STR("stripe-a"));
        reader->consistent &= a != NULL && first == window_us(accounts) &&
                              pay_secret_bytes(a->psp.callback_keys[0].secret).len > 0;
        reader->looks++;
        pay_accounts_release(accounts);
    }
    return NULL;
}

/* Two threads read while the file changes; under ASan and TSan this is the proof of the counts. */
static void test_readers_see_one_version(void **state)
{
    struct fixture *fix = *state;
    atomic_bool stop = false;
    struct reader readers[2];
    pthread_t threads[2];
    open_store(fix);
    for (size_t i = 0; i < 2; i++) {
        readers[i] = (struct reader){.store = fix->store, .stop = &stop};
        assert_int_equal(pthread_create(&threads[i], NULL, read_on, &readers[i]), 0);
    }
    for (int round = 0; round < 20; round++) {
        char text[64];
        (void)snprintf(text, sizeof text, "\"failover_window_s\": %d", 1000 + round);
        write_accounts(fix, changed(fix, "\"failover_window_s\": 900", text));
        (void)refresh(fix); /* The clock of the disk may be coarse: the size is the same. */
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(readers[i].consistent);
        assert_true(readers[i].looks > 0);
    }
    assert_true(pay_accounts_stats(fix->store).loads > 1);
}

/* Whatever stands in the file: refused or loaded, never a crash. */
static void test_random_files_never_crash(void **state)
{
    struct fixture *fix = *state;
    uint32_t seed = 99;
    int refused = 0;
    for (int round = 0; round < 300; round++) {
        pay_buf_reset(&fix->text);
        pay_buf_add_str(&fix->text, pay_buf_str(&fix->example));
        for (int n = 0; n < 2; n++) {
            seed = seed * 1664525u + 1013904223u;
            const size_t at = seed % fix->text.len;
            seed = seed * 1664525u + 1013904223u;
            fix->text.data[at] = (uint8_t)"{}[]\":,0ax-.e"[(seed >> 16) % 13];
        }
        write_accounts(fix, pay_buf_str(&fix->text));
        refused += load(fix, NULL) != PAY_OK;
    }
    assert_true(refused > 50);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_example_is_accepted),
        TEST(test_secret_is_trimmed),
        TEST(test_traits_are_overlaid),
        TEST(test_principals_and_keys),
        TEST(test_may),
        TEST(test_policy_and_thresholds),
        TEST(test_write_path),
        TEST(test_default_routes_fit_the_money),
        TEST(test_chosen_routes),
        TEST(test_another_merchants_account_is_unknown),
        TEST(test_every_refusal),
        TEST(test_plain_loopback_is_accepted),
        TEST(test_s7_empty_secret_is_refused),
        TEST(test_all_problems_are_listed),
        TEST(test_more_problems_than_are_listed_are_counted),
        TEST(test_file_beyond_its_bound),
        TEST(test_a_changed_file_replaces_and_a_bad_one_does_not),
        TEST(test_a_changed_secret_is_read_again),
        TEST(test_a_change_within_one_second_is_seen),
        TEST(test_open_refuses_a_bad_file),
        TEST(test_readers_see_one_version),
        TEST(test_random_files_never_crash),
    };
    return cmocka_run_group_tests_name("accounts", tests, NULL, NULL);
}
