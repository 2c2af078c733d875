/* SPDX-License-Identifier: Apache-2.0 */
/* What a real registry does only in bad hours; what it does on good days:
 * tests/integration/registry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/registry/client.h"
#include "tests/unit/registry/fake.h"

struct fixture {
    struct fake fake;
    struct pay_registry *registry;
    struct pay_buf schema;
    struct pay_err err;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fake_start(&fixture.fake);
    const struct pay_registry_options options = {.url = fixture.fake.url, .timeout_ms = 2000};
    assert_int_equal(pay_registry_new(&options, &fixture.registry, &fixture.err), PAY_OK);
    fixture.schema = pay_buf_make(PAY_REGISTRY_SCHEMA_BYTES_MAX);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    fixture->registry = pay_registry_free(fixture->registry);
    pay_buf_free(&fixture->schema);
    fake_stop(&fixture->fake);
    return 0;
}

static void say(struct fixture *fixture, int status, const char *body)
{
    const struct fake_answer answer = {status, body};
    fake_say(&fixture->fake, &answer, 1);
}

/* Each row: what is answered to a fetch, and what it comes to. */
static const struct {
    int http;
    const char *body;
    enum pay_status status;
    enum pay_registry_code code;
} rows[] = {
    {200, "{\"schema\":\"{}\"}", PAY_OK, PAY_REGISTRY_NONE},
    {200, "{\"schema\":\"{}\",\"schemaType\":\"AVRO\",\"references\":[]}", PAY_OK,
     PAY_REGISTRY_NONE},
    {200, "{\"schema\":\"x\",\"schemaType\":\"PROTOBUF\"}", PAY_REJECT, PAY_REGISTRY_UNSUPPORTED},
    {200, "{\"schema\":\"{}\",\"references\":[{\"name\":\"a\"}]}", PAY_REJECT,
     PAY_REGISTRY_UNSUPPORTED},
    {200, "{}", PAY_RETRY, PAY_REGISTRY_ODD},
    {200, "{\"schema\":7}", PAY_RETRY, PAY_REGISTRY_ODD},
    {200, "<html>", PAY_RETRY, PAY_REGISTRY_ODD},
    {200, "", PAY_RETRY, PAY_REGISTRY_ODD},
    {0, "", PAY_RETRY, PAY_REGISTRY_AWAY},
    {301, "", PAY_RETRY, PAY_REGISTRY_ODD},
    {401, "{\"error_code\":40101}", PAY_RETRY, PAY_REGISTRY_DENIED},
    {403, "", PAY_RETRY, PAY_REGISTRY_DENIED},
    {404, "{\"error_code\":40403}", PAY_REJECT, PAY_REGISTRY_NOT_FOUND},
    {404, "{\"error_code\":40401}", PAY_REJECT, PAY_REGISTRY_NOT_FOUND},
    /* A path that is wrong must not look like a schema that is absent. */
    {404, "{\"error_code\":404,\"message\":\"HTTP 404 Not Found\"}", PAY_RETRY, PAY_REGISTRY_ODD},
    {404, "not here", PAY_RETRY, PAY_REGISTRY_ODD},
    {409, "{\"error_code\":409}", PAY_REJECT, PAY_REGISTRY_INCOMPATIBLE},
    {422, "{\"error_code\":42201}", PAY_REJECT, PAY_REGISTRY_INVALID},
    {429, "", PAY_RETRY, PAY_REGISTRY_AWAY},
    {500, "{\"error_code\":50001}", PAY_RETRY, PAY_REGISTRY_AWAY},
    {503, "", PAY_RETRY, PAY_REGISTRY_AWAY},
};

static void check_answer(struct fixture *fixture, size_t row)
{
    fixture->err = (struct pay_err){.status = PAY_OK};
    pay_buf_reset(&fixture->schema);
    say(fixture, rows[row].http, rows[row].body);
    const enum pay_status status =
        pay_registry_fetch(fixture->registry, 7, &fixture->schema, &fixture->err);
    if (status != rows[row].status || fixture->err.code != (int)rows[row].code) {
        fail_msg("%d %s: %s %s (%s)", rows[row].http, rows[row].body, pay_status_name(status),
                 pay_registry_code_name((enum pay_registry_code)fixture->err.code),
                 fixture->err.text);
    }
    assert_int_equal(fixture->schema.len, status == PAY_OK ? 2 : 0);
}

static void test_each_answer_has_one_meaning(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_answer(*state, i);
    }
}

static void test_nobody_listens(void **state)
{
    struct fixture *fixture = *state;
    struct pay_registry *registry = NULL;
    const struct pay_registry_options options = {.url = "http://127.0.0.1:1", .timeout_ms = 500};
    assert_int_equal(pay_registry_new(&options, &registry, &fixture->err), PAY_OK);
    assert_int_equal(pay_registry_fetch(registry, 7, &fixture->schema, &fixture->err), PAY_RETRY);
    assert_int_equal(fixture->err.code, PAY_REGISTRY_AWAY);
    (void)pay_registry_free(registry);
}

static void test_ids_and_versions_out_of_range(void **state)
{
    struct fixture *fixture = *state;
    static const char *const ids[] = {"{\"id\":-1}", "{\"id\":4294967296}", "{\"id\":\"7\"}",
                                      "{\"id\":1.0}", "{}"};
    static const char *const lists[] = {"{}", "[0]", "[-1]", "[\"1\"]", "[4294967296]", "7"};
    struct pay_registry_versions versions;
    uint32_t id = 99;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        say(fixture, 200, ids[i]);
        assert_int_equal(
            pay_registry_register(fixture->registry, "s", PAY_STR("{}"), &id, &fixture->err),
            PAY_RETRY);
        assert_int_equal(fixture->err.code, PAY_REGISTRY_ODD);
    }
    assert_int_equal(id, 99);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        say(fixture, 200, lists[i]);
        assert_int_equal(pay_registry_versions(fixture->registry, "s", &versions, &fixture->err),
                         PAY_RETRY);
        assert_int_equal(fixture->err.code, PAY_REGISTRY_ODD);
    }
    say(fixture, 200, "{\"id\":4294967295}");
    assert_int_equal(
        pay_registry_register(fixture->registry, "s", PAY_STR("{}"), &id, &fixture->err), PAY_OK);
    assert_int_equal(id, UINT32_MAX);
}

static void test_too_many_versions(void **state)
{
    struct fixture *fixture = *state;
    struct pay_registry_versions versions;
    char list[4096] = "[1";
    size_t at = 2;
    for (int i = 2; i <= PAY_REGISTRY_VERSIONS_MAX + 1; i++) {
        at += (size_t)snprintf(list + at, sizeof list - at, ",%d", i);
    }
    (void)snprintf(list + at, sizeof list - at, "]");
    say(fixture, 200, list);
    assert_int_equal(pay_registry_versions(fixture->registry, "s", &versions, &fixture->err),
                     PAY_REJECT);
    assert_int_equal(fixture->err.code, PAY_REGISTRY_UNSUPPORTED);
}

static void test_what_is_sent(void **state)
{
    struct fixture *fixture = *state;
    uint32_t id = 0;
    bool fits = false;
    say(fixture, 200, "{\"id\":3}");
    assert_int_equal(pay_registry_register(fixture->registry, "payfact.events-value",
                                           PAY_STR("{\"a\":\"b\"}"), &id, &fixture->err),
                     PAY_OK);
    assert_int_equal(id, 3);
    assert_non_null(strstr(fixture->fake.last,
                           "POST /apis/ccompat/v7/subjects/payfact.events-value/versions HTTP"));
    assert_non_null(strstr(fixture->fake.last, "{\"schema\":\"{\\\"a\\\":\\\"b\\\"}\"}"));
    assert_null(strstr(fixture->fake.last, "Authorization"));
    say(fixture, 404, "{\"error_code\":40401}");
    assert_int_equal(
        pay_registry_is_compatible(fixture->registry, "new", PAY_STR("{}"), &fits, &fixture->err),
        PAY_OK);
    assert_true(fits);
    say(fixture, 200, "{\"is_compatible\":false}");
    assert_int_equal(
        pay_registry_is_compatible(fixture->registry, "new", PAY_STR("{}"), &fits, &fixture->err),
        PAY_OK);
    assert_false(fits);
    say(fixture, 503, "");
    assert_int_equal(
        pay_registry_is_compatible(fixture->registry, "new", PAY_STR("{}"), &fits, &fixture->err),
        PAY_RETRY);
}

/* Rotated by writing the file anew: no call uses an old one. */
static void test_credentials_are_read_for_each_call(void **state)
{
    struct fixture *fixture = *state;
    char path[] = "/tmp/payfact-registry-XXXXXX";
    struct pay_registry *registry = NULL;
    const int file = mkstemp(path);
    assert_true(file >= 0);
    const struct pay_registry_options basic = {
        .url = fixture->fake.url, .user = "payfact", .password_file = path};
    const struct pay_registry_options bearer = {.url = fixture->fake.url, .token_file = path};
    say(fixture, 200, "{\"schema\":\"{}\"}");
    assert_int_equal(pay_registry_new(&basic, &registry, &fixture->err), PAY_OK);
    assert_int_equal(pay_registry_fetch(registry, 1, &fixture->schema, &fixture->err), PAY_RETRY);
    assert_int_equal(fixture->err.code, PAY_REGISTRY_DENIED); /* An empty file. */
    assert_int_equal(atomic_load(&fixture->fake.requests), 0);
    assert_int_equal(write(file, "open\n", 5), 5);
    assert_int_equal(pay_registry_fetch(registry, 1, &fixture->schema, &fixture->err), PAY_OK);
    assert_non_null(strstr(fixture->fake.last, "Authorization: Basic cGF5ZmFjdDpvcGVu\r\n"));
    assert_int_equal(pwrite(file, "shut\n", 5, 0), 5);
    assert_int_equal(pay_registry_fetch(registry, 1, &fixture->schema, &fixture->err), PAY_OK);
    assert_non_null(strstr(fixture->fake.last, "Authorization: Basic cGF5ZmFjdDpzaHV0\r\n"));
    registry = pay_registry_free(registry);
    assert_int_equal(pay_registry_new(&bearer, &registry, &fixture->err), PAY_OK);
    assert_int_equal(pay_registry_fetch(registry, 1, &fixture->schema, &fixture->err), PAY_OK);
    assert_non_null(strstr(fixture->fake.last, "Authorization: Bearer shut\r\n"));
    (void)pay_registry_free(registry);
    (void)close(file);
    (void)unlink(path);
}

static void check_options(const struct pay_registry_options *options, enum pay_status wanted,
                          size_t row)
{
    struct pay_registry *registry = NULL;
    struct pay_err err = {.status = PAY_OK};
    const enum pay_status status = pay_registry_new(options, &registry, &err);
    (void)pay_registry_free(registry);
    if (status != wanted) {
        fail_msg("row %zu: %s %s", row, pay_status_name(status), err.text);
    }
}

static void test_options_that_do_not_fit(void **state)
{
    static const struct {
        struct pay_registry_options options;
        enum pay_status status;
    } options[] = {
        {{.url = ""}, PAY_FATAL},
        {{.url = "registry:8081"}, PAY_FATAL},
        {{.url = "ftp://registry"}, PAY_FATAL},
        {{.url = "http://registry:8081"}, PAY_OK},
        {{.url = "https://registry", .user = "u"}, PAY_FATAL},
        {{.url = "https://registry", .password_file = "f"}, PAY_FATAL},
        {{.url = "https://registry", .user = "u", .password_file = "f"}, PAY_OK},
        {{.url = "https://registry", .user = "u", .password_file = "f", .token_file = "t"},
         PAY_FATAL},
        {{.url = "http://registry", .token_file = "t"}, PAY_FATAL},
        {{.url = "http://127.0.0.1.evil.example", .token_file = "t"}, PAY_FATAL},
        {{.url = "http://127.0.0.1:8081", .token_file = "t"}, PAY_OK},
        {{.url = "https://registry", .token_file = "", .user = ""}, PAY_OK},
        {{.url = "https://registry", .ca_file = "/nonexistent"}, PAY_FATAL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        check_options(&options[i].options, options[i].status, i);
    }
}

static void test_subject(void **state)
{
    char subject[PAY_REGISTRY_SUBJECT_MAX];
    char longest[PAY_REGISTRY_SUBJECT_MAX];
    (void)state;
    assert_true(pay_registry_subject(subject, "payfact.events"));
    assert_string_equal(subject, "payfact.events-value");
    assert_false(pay_registry_subject(subject, ""));
    assert_false(pay_registry_subject(subject, "a/b"));
    assert_false(pay_registry_subject(subject, "a?b"));
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 7] = '\0';
    assert_true(pay_registry_subject(subject, longest));
    longest[sizeof longest - 7] = 'a';
    longest[sizeof longest - 6] = '\0';
    assert_false(pay_registry_subject(subject, longest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_answer_has_one_meaning, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nobody_listens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ids_and_versions_out_of_range, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_too_many_versions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_is_sent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_credentials_are_read_for_each_call, set_up, tear_down),
        cmocka_unit_test(test_options_that_do_not_fit),
        cmocka_unit_test(test_subject),
    };
    return cmocka_run_group_tests_name("registry.client", tests, NULL, NULL);
}
