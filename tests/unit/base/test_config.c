/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a wrong, missing or misspelt setting stops the start with a line that names it; a secret is
 * taken from a file alone and never shown. Each test runs on an environment of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings {
    char brokers[PAY_CFG_TEXT_MAX];
    char group[PAY_CFG_TEXT_MAX];
    int64_t port;
    int64_t wait_ms;
    bool is_strict;
    char password[PAY_CFG_TEXT_MAX];
    char token[PAY_CFG_TEXT_MAX];
};

#define AT(field) offsetof(struct settings, field)
static const struct pay_cfg_row rows[] = {
    {"BROKERS", PAY_CFG_TEXT, AT(brokers), NULL, 0, 0, "", PAY_CFG_REQUIRED, "Kafka's brokers."},
    {"GROUP", PAY_CFG_TEXT, AT(group), "payfact", 0, 0, "", 0, "Consumer group."},
    {"PORT", PAY_CFG_INT, AT(port), "8080", 1, 65535, "", 0, "Port to listen on."},
    {"WAIT_MS", PAY_CFG_INT, AT(wait_ms), NULL, -5, 1000, "ms", 0, "Longest wait."},
    {"STRICT", PAY_CFG_BOOL, AT(is_strict), "true", 0, 0, "", 0, "Refuse what is odd."},
    {"PASSWORD", PAY_CFG_TEXT, AT(password), NULL, 0, 0, "", PAY_CFG_REQUIRED | PAY_CFG_SECRET,
     "Of the database."},
    {"TOKEN", PAY_CFG_TEXT, AT(token), NULL, 0, 0, "", PAY_CFG_SECRET, "For the metrics page."},
};
static const struct pay_cfg_table table = {"ingest", rows, sizeof rows / sizeof rows[0]};

extern char **environ;

/* Everything a test needs, so that the teardown can clean up after a failed assertion. */
static struct {
    char secret_path[64];
    char secret_entry[128];
    char *env[16];
    char **env_before;
    struct settings got;
    struct pay_buf problems;
    struct pay_err err;
} fixture;

static int set_secret(const char *content, size_t len)
{
    FILE *file = fopen(fixture.secret_path, "wb");
    if (file == NULL) {
        return -1;
    }
    const size_t wrote = fwrite(content, 1, len, file);
    return fclose(file) == 0 && wrote == len ? 0 : -1;
}

static int make(void **state)
{
    (void)state;
    memset(&fixture, 0, sizeof fixture);
    (void)snprintf(fixture.secret_path, sizeof fixture.secret_path, "/tmp/pay_config_XXXXXX");
    const int fd = mkstemp(fixture.secret_path);
    if (fd < 0 || close(fd) != 0) {
        return -1;
    }
    (void)snprintf(fixture.secret_entry, sizeof fixture.secret_entry, "PAYFACT_PASSWORD_FILE=%s",
                   fixture.secret_path);
    fixture.problems = pay_buf_make(10000);
    fixture.env_before = environ;
    environ = fixture.env;
    return set_secret("hunter2\n", 8);
}

static int drop(void **state)
{
    (void)state;
    environ = fixture.env_before;
    pay_buf_free(&fixture.problems);
    return unlink(fixture.secret_path);
}

/* The good environment plus these; a later test overrides by not using it. */
static enum pay_status load_with(const char *const *extra)
{
    static char brokers[] = "PAYFACT_BROKERS=b:9092";
    static char copies[12][1200];
    size_t count = 0;

    fixture.env[count++] = brokers;
    fixture.env[count++] = fixture.secret_entry;
    for (size_t i = 0; extra != NULL && extra[i] != NULL; i++) {
        (void)snprintf(copies[i], sizeof copies[i], "%s", extra[i]);
        fixture.env[count++] = copies[i];
    }
    fixture.env[count] = NULL;
    pay_buf_reset(&fixture.problems);
    return pay_cfg_load_told(&table, &fixture.got, &fixture.problems, &fixture.err);
}

static enum pay_status load_one(const char *entry)
{
    return load_with((const char *const[]){entry, NULL});
}

static void defaults_and_values(void **state)
{
    (void)state;
    memset(&fixture.got, 0x5a, sizeof fixture.got);
    assert_int_equal(load_with(NULL), PAY_OK);
    assert_string_equal(fixture.got.brokers, "b:9092");
    assert_string_equal(fixture.got.group, "payfact");
    assert_int_equal(fixture.got.port, 8080);
    assert_int_equal(fixture.got.wait_ms, 0);
    assert_true(fixture.got.is_strict);
    assert_string_equal(fixture.got.password, "hunter2");
    assert_string_equal(fixture.got.token, "");

    assert_int_equal(load_with((const char *const[]){
                         "PAYFACT_PORT=1", "PAYFACT_WAIT_MS=-5", "PAYFACT_STRICT=false",
                         "PAYFACT_GROUP=", "OTHER=1", "PAYFAC=2", NULL}),
                     PAY_OK);
    assert_int_equal(fixture.got.port, 1);
    assert_int_equal(fixture.got.wait_ms, -5);
    assert_false(fixture.got.is_strict);
    assert_string_equal(fixture.got.group, "");
}

static const struct {
    const char *entry;
    const char *problem;
} refusals[] = {
    {"PAYFACT_PORT=0", "PAYFACT_PORT=0 is not in 1..65535\n"},
    {"PAYFACT_PORT=65536", "PAYFACT_PORT=65536 is not in 1..65535\n"},
    {"PAYFACT_PORT=80a", "PAYFACT_PORT=\"80a\" is not a whole number\n"},
    {"PAYFACT_PORT=", "PAYFACT_PORT=\"\" is not a whole number\n"},
    {"PAYFACT_PORT=99999999999999999999",
     "PAYFACT_PORT=\"99999999999999999999\" is not a whole number\n"},
    {"PAYFACT_WAIT_MS=1001", "PAYFACT_WAIT_MS=1001 is not in -5..1000 ms\n"},
    {"PAYFACT_WAIT_MS=-6", "PAYFACT_WAIT_MS=-6 is not in -5..1000 ms\n"},
    {"PAYFACT_WAIT_MS=1.5", "PAYFACT_WAIT_MS=\"1.5\" is not a whole number\n"},
    {"PAYFACT_STRICT=yes", "PAYFACT_STRICT=\"yes\" is neither \"true\" nor \"false\"\n"},
    {"PAYFACT_STRICT=TRUE", "PAYFACT_STRICT=\"TRUE\" is neither \"true\" nor \"false\"\n"},
    {"PAYFACT_BROKER=x", "PAYFACT_BROKER is not a setting of ingest\n"},
    {"PAYFACT_BROKERS_FILE=x", "PAYFACT_BROKERS_FILE is not a setting of ingest\n"},
    {"PAYFACT_port=1", "PAYFACT_port is not a setting of ingest\n"},
    {"PAYFACT_=1", "PAYFACT_ is not a setting of ingest\n"},
    {"PAYFACT_TOKEN=abc",
     "PAYFACT_TOKEN holds a secret: put it into a file and set PAYFACT_TOKEN_FILE\n"},
    {"PAYFACT_PASSWORD=abc",
     "PAYFACT_PASSWORD holds a secret: put it into a file and set PAYFACT_PASSWORD_FILE\n"},
    {"PAYFACT_TOKEN_FILE=/nowhere/x",
     "PAYFACT_TOKEN_FILE: \"/nowhere/x\": No such file or directory\n"},
};

static void every_refusal_has_its_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        assert_int_equal(load_one(refusals[i].entry), PAY_FATAL);
        assert_string_equal(pay_buf_str(&fixture.problems).ptr, refusals[i].problem);
        char wanted[200];
        (void)snprintf(wanted, sizeof wanted, "1 wrong: %.*s", (int)strlen(refusals[i].problem) - 1,
                       refusals[i].problem);
        assert_string_equal(fixture.err.text, wanted);
        assert_int_equal(fixture.err.status, PAY_FATAL);
    }
}

static void all_wrong_settings_are_named_at_once(void **state)
{
    (void)state;
    static char port[] = "PAYFACT_PORT=x";
    static char typo[] = "PAYFACT_PROT=1";

    fixture.env[0] = port;
    fixture.env[1] = typo;
    assert_int_equal(pay_cfg_load_told(&table, &fixture.got, &fixture.problems, &fixture.err),
                     PAY_FATAL);
    assert_string_equal(pay_buf_str(&fixture.problems).ptr,
                        "PAYFACT_BROKERS is required: Kafka's brokers.\n"
                        "PAYFACT_PORT=\"x\" is not a whole number\n"
                        "PAYFACT_PASSWORD_FILE is required: Of the database.\n"
                        "PAYFACT_PROT is not a setting of ingest\n");
    assert_string_equal(fixture.err.text, "4 wrong: PAYFACT_BROKERS is required: Kafka's brokers.");
}

static void a_required_text_may_not_be_empty(void **state)
{
    (void)state;
    static char empty[] = "PAYFACT_BROKERS=";

    fixture.env[0] = empty;
    fixture.env[1] = fixture.secret_entry;
    assert_int_equal(pay_cfg_load_told(&table, &fixture.got, &fixture.problems, &fixture.err),
                     PAY_FATAL);
    assert_string_equal(pay_buf_str(&fixture.problems).ptr,
                        "PAYFACT_BROKERS is empty but required: Kafka's brokers.\n");
}

static void the_length_of_a_text_is_exact(void **state)
{
    (void)state;
    char entry[1200];
    const int head = snprintf(entry, sizeof entry, "PAYFACT_GROUP=");

    memset(entry + head, 'g', PAY_CFG_TEXT_MAX);
    entry[head + PAY_CFG_TEXT_MAX - 1] = 0;
    assert_int_equal(load_one(entry), PAY_OK);
    assert_int_equal(strlen(fixture.got.group), PAY_CFG_TEXT_MAX - 1);

    entry[head + PAY_CFG_TEXT_MAX - 1] = 'g';
    entry[head + PAY_CFG_TEXT_MAX] = 0;
    assert_int_equal(load_one(entry), PAY_FATAL);
    assert_string_equal(pay_buf_str(&fixture.problems).ptr,
                        "PAYFACT_GROUP is longer than 1023 bytes\n");
}

static void secrets_are_trimmed_behind_only(void **state)
{
    (void)state;
    assert_int_equal(set_secret(" a b \t\r\n\n", 9), 0);
    assert_int_equal(load_with(NULL), PAY_OK);
    assert_string_equal(fixture.got.password, " a b");
}

/* S7: an empty secret would accept everybody. */
static void an_empty_secret_is_refused_S7(void **state)
{
    (void)state;
    char wanted[200];
    (void)snprintf(wanted, sizeof wanted, "PAYFACT_PASSWORD_FILE: \"%s\" holds an empty secret\n",
                   fixture.secret_path);

    assert_int_equal(set_secret("", 0), 0);
    assert_int_equal(load_with(NULL), PAY_FATAL);
    assert_string_equal(pay_buf_str(&fixture.problems).ptr, wanted);
    assert_int_equal(set_secret(" \n\t", 3), 0);
    assert_int_equal(load_with(NULL), PAY_FATAL);
    assert_string_equal(pay_buf_str(&fixture.problems).ptr, wanted);
}

static void an_odd_secret_is_refused_without_being_shown(void **state)
{
    (void)state;
    static char big[PAY_CFG_TEXT_MAX + 100];

    assert_int_equal(set_secret("hun\0ter", 7), 0);
    assert_int_equal(load_with(NULL), PAY_FATAL);
    assert_non_null(strstr(pay_buf_str(&fixture.problems).ptr, "holds a NUL byte\n"));
    assert_null(strstr(pay_buf_str(&fixture.problems).ptr, "hun"));

    memset(big, 's', sizeof big);
    assert_int_equal(set_secret(big, PAY_CFG_TEXT_MAX - 1), 0);
    assert_int_equal(load_with(NULL), PAY_OK);
    assert_int_equal(set_secret(big, PAY_CFG_TEXT_MAX), 0);
    assert_int_equal(load_with(NULL), PAY_FATAL);
    assert_null(strstr(pay_buf_str(&fixture.problems).ptr, "sss"));
    assert_int_equal(set_secret(big, sizeof big), 0);
    assert_int_equal(load_with(NULL), PAY_FATAL);
    assert_null(strstr(pay_buf_str(&fixture.problems).ptr, "sss"));
}

static void printing_masks_secrets(void **state)
{
    (void)state;
    assert_int_equal(load_one("PAYFACT_WAIT_MS=-5"), PAY_OK);
    pay_buf_reset(&fixture.problems);
    pay_cfg_print(&table, &fixture.got, &fixture.problems);
    assert_string_equal(pay_buf_str(&fixture.problems).ptr,
                        "BROKERS=b:9092\nGROUP=payfact\nPORT=8080\nWAIT_MS=-5\nSTRICT=true\n"
                        "PASSWORD=***\nTOKEN=***\n");
}

static void docs_show_every_row(void **state)
{
    (void)state;
    pay_cfg_print_docs(&table, &fixture.problems);
    assert_string_equal(
        pay_buf_str(&fixture.problems).ptr,
        "| Variable | Type | Default | Range | Meaning |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| `PAYFACT_BROKERS` | text | required |  | Kafka's brokers. |\n"
        "| `PAYFACT_GROUP` | text | `payfact` |  | Consumer group. |\n"
        "| `PAYFACT_PORT` | integer | `8080` | 1..65535 | Port to listen on. |\n"
        "| `PAYFACT_WAIT_MS` | integer | `0` | -5..1000 ms | Longest wait. |\n"
        "| `PAYFACT_STRICT` | true or false | `true` |  | Refuse what is odd. |\n"
        "| `PAYFACT_PASSWORD_FILE` | path of a file that holds the secret | required |  | Of the "
        "database. |\n"
        "| `PAYFACT_TOKEN_FILE` | path of a file that holds the secret |  |  | For the metrics "
        "page. |\n");
}

static void load_logs_and_answers_the_same(void **state)
{
    (void)state;
    assert_int_equal(load_with(NULL), PAY_OK);
    assert_int_equal(pay_cfg_load(&table, &fixture.got, &fixture.err), PAY_OK);
    assert_int_equal(load_one("PAYFACT_PORT=x"), PAY_FATAL);
    assert_int_equal(pay_cfg_load(&table, &fixture.got, &fixture.err), PAY_FATAL);
    assert_string_equal(fixture.err.text, "1 wrong: PAYFACT_PORT=\"x\" is not a whole number");
}

static void a_tool_takes_its_own_and_leaves_the_rest(void **state)
{
    (void)state;
    assert_int_equal(load_one("PAYFACT_HTTP_PORT=8443"), PAY_FATAL);
    assert_int_equal(pay_cfg_load_own(&table, &fixture.got, &fixture.problems, &fixture.err),
                     PAY_OK);
    assert_string_equal(fixture.got.brokers, "b:9092");
    assert_int_equal(load_one("PAYFACT_PORT=x"), PAY_FATAL);
    pay_buf_reset(&fixture.problems);
    assert_int_equal(pay_cfg_load_own(&table, &fixture.got, &fixture.problems, &fixture.err),
                     PAY_FATAL);
    assert_non_null(strstr((const char *)fixture.problems.data, "PAYFACT_PORT"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_tool_takes_its_own_and_leaves_the_rest, make, drop),
        cmocka_unit_test_setup_teardown(defaults_and_values, make, drop),
        cmocka_unit_test_setup_teardown(every_refusal_has_its_line, make, drop),
        cmocka_unit_test_setup_teardown(all_wrong_settings_are_named_at_once, make, drop),
        cmocka_unit_test_setup_teardown(a_required_text_may_not_be_empty, make, drop),
        cmocka_unit_test_setup_teardown(the_length_of_a_text_is_exact, make, drop),
        cmocka_unit_test_setup_teardown(secrets_are_trimmed_behind_only, make, drop),
        cmocka_unit_test_setup_teardown(an_empty_secret_is_refused_S7, make, drop),
        cmocka_unit_test_setup_teardown(an_odd_secret_is_refused_without_being_shown, make, drop),
        cmocka_unit_test_setup_teardown(printing_masks_secrets, make, drop),
        cmocka_unit_test_setup_teardown(docs_show_every_row, make, drop),
        cmocka_unit_test_setup_teardown(load_logs_and_answers_the_same, make, drop),
    };
    return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
