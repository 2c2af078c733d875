/* SPDX-License-Identifier: Apache-2.0 */
/* Which URLs are taken and what they mean; a refusal names its reason and never quotes a password.
 */
#include "common/io/redis/redis.h"
#include "common/io/redis/redis_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct row {
    const char *text;
    const char *host;
    enum pay_status status;
    int port;
    int db;
    bool tls;
};

static const struct row rows[] = {
    {"redis://127.0.0.1:6380/3", "127.0.0.1", PAY_OK, 6380, 3, false},
    {"redis://redis.example:6380", "redis.example", PAY_OK, 6380, 0, false},
    {"redis://redis.example", "redis.example", PAY_OK, 6379, 0, false},
    {"redis://redis.example/", "redis.example", PAY_OK, 6379, 0, false},
    {"redis://[::1]:6380/1", "::1", PAY_OK, 6380, 1, false},
    {"redis://[::1]", "::1", PAY_OK, 6379, 0, false},
    {"rediss://redis.example:6380", "redis.example", PAY_OK, 6380, 0, true},
    {NULL, NULL, PAY_FATAL, 0, 0, false},
    {"", NULL, PAY_FATAL, 0, 0, false},
    {"http://redis.example", NULL, PAY_FATAL, 0, 0, false},
    {"redis://", NULL, PAY_FATAL, 0, 0, false},
    {"redis://:6379", NULL, PAY_FATAL, 0, 0, false},
    {"redis://h:0", NULL, PAY_FATAL, 0, 0, false},
    {"redis://h:65536", NULL, PAY_FATAL, 0, 0, false},
    {"redis://h:x", NULL, PAY_FATAL, 0, 0, false},
    {"redis://h:", NULL, PAY_FATAL, 0, 0, false},
    {"redis://h/x", NULL, PAY_FATAL, 0, 0, false},
    {"redis://h/-1", NULL, PAY_FATAL, 0, 0, false},
    {"redis://[::1", NULL, PAY_FATAL, 0, 0, false},
    {"redis://[::1]x", NULL, PAY_FATAL, 0, 0, false},
    {"redis://:sesame@h:6379", NULL, PAY_FATAL, 0, 0, false},
};

static void each_url_is_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        struct pay_redis_url url = {0};
        struct pay_err err = {0};

        print_message("%s\n", row->text != NULL ? row->text : "(none)");
        assert_int_equal(pay_redis_url_parse(row->text, &url, &err), row->status);
        if (row->status != PAY_OK) {
            assert_null(strstr(err.text, "sesame"));
            continue;
        }
        assert_string_equal(url.host, row->host);
        assert_int_equal(url.port, row->port);
        assert_int_equal(url.db, row->db);
        assert_int_equal(url.tls, row->tls);
    }
}

static void tls_is_refused_where_the_library_has_none(void **state)
{
    const struct pay_redis_options options = {.url = "rediss://127.0.0.1:1"};
    struct pay_redis *redis = NULL;
    struct pay_err err = {0};

    (void)state;
    enum pay_status status = pay_redis_new(&options, &redis, &err);
    if (pay_redis_tls_can()) {
        assert_int_equal(status, PAY_OK);
    } else {
        assert_int_equal(status, PAY_FATAL);
        assert_non_null(strstr(err.text, "hiredis_ssl"));
        assert_null(redis);
    }
    pay_redis_free(redis);
}

static void bad_settings_are_refused(void **state)
{
    struct pay_redis_options options = {.url = "redis://127.0.0.1:1", .budget_ms = 1001};
    struct pay_redis *redis = NULL;

    (void)state;
    assert_int_equal(pay_redis_new(&options, &redis, NULL), PAY_FATAL);
    options.budget_ms = 1;
    options.password_file = "/nonexistent/password";
    assert_int_equal(pay_redis_new(&options, &redis, NULL), PAY_FATAL);
    assert_null(redis);
    assert_null(pay_redis_free(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_url_is_read),
        cmocka_unit_test(tls_is_refused_where_the_library_has_none),
        cmocka_unit_test(bad_settings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
