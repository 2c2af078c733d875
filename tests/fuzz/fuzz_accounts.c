/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that operators write: accounts.json, and the evidence keyring ('k' as the first byte).
 *
 * What is taken must be whole: every account has its adapter and merchant, every default route is
 * of an account of its own merchant, every principal's key is found by its id.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/accounts/accounts.h"
#include "common/base/file.h"
#include "common/crypto/keyring.h"
#include "tests/fuzz/fuzz.h"

/* The environment and the process are touched by the only thread. */
/* NOLINTBEGIN(concurrency-mt-unsafe) */

static char folder[64], file[96];
static struct pay_buf problems;

static const char *in_folder(const char *name)
{
    static char path[160];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text)
{
    const struct pay_bytes bytes = {(const uint8_t *)text, strlen(text)};
    FUZZ_CHECK(pay_file_write(in_folder(name), bytes, true, NULL) == PAY_OK);
}

static void clean_up(void)
{
    static const char *const names[] = {"sk-a", "whsec-a", "shop.pub", "shop.key", "accounts.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)unlink(in_folder(names[i])); /* nothing can be done about a folder that stays */
    }
    (void)rmdir(folder);
}

static void start(void)
{
    if (folder[0] != '\0') {
        pay_buf_reset(&problems);
        return;
    }
    char public_path[160];
    (void)snprintf(folder, sizeof folder, "/tmp/payfact-fuzz-XXXXXX");
    FUZZ_CHECK(mkdtemp(folder) != NULL);
    FUZZ_CHECK(atexit(clean_up) == 0);
    put("sk-a", "sk_test_0000000000000000");
    put("whsec-a", "whsec_0000000000000000");
    (void)snprintf(public_path, sizeof public_path, "%s", in_folder("shop.pub"));
    FUZZ_CHECK(pay_ed25519_generate_files(in_folder("shop.key"), public_path, NULL) == PAY_OK);
    (void)snprintf(file, sizeof file, "%.90s", in_folder("accounts.json"));
    problems = pay_buf_make(PAY_ACCOUNTS_PROBLEM_BYTES_MAX);
}

static void check_merchant(const struct pay_accounts *accounts, const struct pay_merchant *merchant)
{
    FUZZ_CHECK(pay_accounts_merchant(accounts, pay_str_of(merchant->id)) == merchant);
    for (size_t i = 0; i < merchant->route_count; i++) {
        const struct pay_account *account =
            pay_accounts_account(accounts, pay_str_of(merchant->routes[i].psp_account));
        FUZZ_CHECK(account != NULL && strcmp(account->psp.merchant_id, merchant->id) == 0);
    }
}

static void check_accounts(const struct pay_accounts *accounts)
{
    for (size_t i = 0; i < pay_accounts_account_count(accounts); i++) {
        const struct pay_account *account = pay_accounts_account_at(accounts, i);
        FUZZ_CHECK(account->adapter != NULL);
        FUZZ_CHECK(pay_accounts_merchant(accounts, pay_str_of(account->psp.merchant_id)) != NULL);
        FUZZ_CHECK(account->psp.callback_key_count <= PAY_PSP_KEYS_MAX);
    }
    for (size_t i = 0; i < pay_accounts_merchant_count(accounts); i++) {
        check_merchant(accounts, pay_accounts_merchant_at(accounts, i));
    }
}

static void load(const uint8_t *data, size_t size)
{
    struct pay_err err = {.status = PAY_OK};
    struct pay_accounts *accounts = NULL;
    const int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size && close(fd) == 0);
    const enum pay_status status = pay_accounts_load(file, folder, &accounts, &problems, &err);
    FUZZ_CHECK(status == PAY_OK || status == PAY_FATAL);
    FUZZ_CHECK(status == PAY_OK || (problems.len > 0 && err.text[0] != '\0'));
    FUZZ_CHECK(memchr(problems.data == NULL ? (const uint8_t *)"" : problems.data, '\0',
                      problems.len) == NULL);
    if (status == PAY_OK) {
        check_accounts(accounts);
        pay_accounts_release(accounts);
    }
}

static void parse_keyring(const uint8_t *data, size_t size)
{
    struct pay_err err = {.status = PAY_OK};
    struct pay_keyring *ring = NULL;
    const struct pay_str text = {(const char *)data, size};
    const enum pay_status status = pay_keyring_parse(text, &ring, &err);
    FUZZ_CHECK(status == PAY_OK || status == PAY_FATAL);
    FUZZ_CHECK(status != PAY_OK || pay_keyring_current(ring).len > 0);
    (void)pay_keyring_free(ring); /* always NULL */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    start();
    if (size > 0 && data[0] == 'k') {
        parse_keyring(data + 1, size - 1);
    } else {
        load(data, size);
    }
    return 0;
}

/* NOLINTEND(concurrency-mt-unsafe) */
