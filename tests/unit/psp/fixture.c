/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "common/base/file.h"
#include "common/base/mem.h"

#include <dirent.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void free_secrets(struct fixture *fix)
{
    for (size_t i = 0; i < sizeof fix->secrets / sizeof fix->secrets[0]; i++) {
        fix->secrets[i] = pay_secret_free(fix->secrets[i]);
    }
}

static void set_credentials(struct fixture *fix)
{
    static const char key[] = "sk_test_0123456789";
    struct pay_secret **secret = &fix->secrets[PAY_TEST_KEYS_MAX];
    assert_int_equal(pay_secret_of("sk-a", (struct pay_bytes){(const uint8_t *)key, sizeof key - 1},
                                   secret, NULL),
                     PAY_OK);
    fix->account.credentials[0] =
        (struct pay_psp_key){.id = "sk-a", .role = "secret_key", .secret = *secret};
    fix->account.credential_count = 1;
}

void fixture_keys(struct fixture *fix, const struct pay_bytes *keys, size_t count)
{
    assert_true(count <= PAY_TEST_KEYS_MAX);
    free_secrets(fix);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pay_secret_of("key", keys[i], &fix->secrets[i], NULL), PAY_OK);
        struct pay_psp_key *key = &fix->account.callback_keys[i];
        *key = (struct pay_psp_key){.secret = fix->secrets[i]};
        (void)snprintf(key->id, sizeof key->id, "whsec-%c", (char)('a' + (int)i));
    }
    fix->account.callback_key_count = count;
    set_credentials(fix);
}

int fixture_setup(void **state)
{
    static const char key[] = "whsec_test_secret";
    struct fixture *fix = pay_mem_new(1, sizeof *fix);
    if (fix == NULL) {
        return -1;
    }
    *state = fix;
    fix->arena = pay_arena_new(1048576u);
    fix->file = pay_buf_make(1048576u);
    fix->text = pay_buf_make(1048576u);
    fix->account = (struct pay_psp_account){.id = "stripe-a",
                                            .psp = "stripe",
                                            .merchant_id = "acme",
                                            .endpoint = "https://api.stripe.test",
                                            .settings = {{"api_version", "2024-06-20"}},
                                            .setting_count = 1};
    fixture_keys(fix, &(struct pay_bytes){(const uint8_t *)key, sizeof key - 1}, 1);
    return fix->arena == NULL ? -1 : 0;
}

int fixture_teardown(void **state)
{
    struct fixture *fix = *state;
    free_secrets(fix);
    pay_json_free(fix->doc);
    pay_buf_free(&fix->file);
    pay_buf_free(&fix->text);
    pay_arena_free(fix->arena);
    pay_mem_free(fix);
    return 0;
}

const struct pay_json_value *fixture_json(struct fixture *fix, const char *path)
{
    char full[512];
    struct pay_err err = {0};
    (void)snprintf(full, sizeof full, "%s/%s", PAY_TEST_DATA, path);
    fix->doc = pay_json_free(fix->doc);
    pay_buf_reset(&fix->file);
    assert_int_equal(pay_file_read_buf(full, &fix->file, &err), PAY_OK);
    if (pay_json_parse(pay_buf_bytes(&fix->file), fix->file.max, &fix->doc, &err) != PAY_OK) {
        fail_msg("%s: %s", path, err.text);
    }
    return pay_json_root(fix->doc);
}

static void write_members(struct pay_buf *out, const struct pay_json_value *value)
{
    void *iterator = NULL;
    struct pay_str name;
    const struct pay_json_value *member;
    for (bool first = true; pay_json_next(value, &iterator, &name, &member); first = false) {
        pay_buf_add_c(out, first ? "" : ",");
        pay_buf_add_json_str(out, name);
        pay_buf_add_char(out, ':');
        fixture_write(out, member);
    }
}

static void write_scalar(struct pay_buf *out, const struct pay_json_value *value)
{
    bool truth = false;
    int64_t number = 0;
    if (pay_json_bool(value, &truth)) {
        pay_buf_add_c(out, truth ? "true" : "false");
    } else if (pay_json_int(value, &number)) {
        pay_buf_printf(out, "%" PRId64, number);
    } else if (pay_json_kind(value) == PAY_JSON_STRING) {
        pay_buf_add_json_str(out, pay_json_str(value));
    } else {
        assert_int_equal(pay_json_kind(value), PAY_JSON_NULL);
        pay_buf_add_c(out, "null");
    }
}

void fixture_write(struct pay_buf *out, const struct pay_json_value *value)
{
    const enum pay_json_kind kind = pay_json_kind(value);
    if (kind == PAY_JSON_OBJECT) {
        pay_buf_add_char(out, '{');
        write_members(out, value);
        pay_buf_add_char(out, '}');
    } else if (kind == PAY_JSON_ARRAY) {
        pay_buf_add_char(out, '[');
        for (size_t i = 0; i < pay_json_count(value); i++) {
            pay_buf_add_c(out, i == 0 ? "" : ",");
            fixture_write(out, pay_json_item(value, i));
        }
        pay_buf_add_char(out, ']');
    } else {
        write_scalar(out, value);
    }
}

static int is_json_file(const struct dirent *entry)
{
    const size_t len = strlen(entry->d_name);
    return len > 5 && strcmp(entry->d_name + len - 5, ".json") == 0;
}

size_t fixture_each_file(struct fixture *fix, const char *folder,
                         void (*check)(struct fixture *fix, const char *name))
{
    char path[512];
    struct dirent **entries = NULL;
    (void)snprintf(path, sizeof path, "%s/%s", PAY_TEST_DATA, folder);
    const int count = scandir(path, &entries, is_json_file, alphasort);
    assert_true(count > 0);
    for (int i = 0; i < count; i++) {
        check(fix, entries[i]->d_name);
        free(entries[i]);
    }
    free((void *)entries);
    return (size_t)count;
}
