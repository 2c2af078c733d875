/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: only a database that went through exactly our files, in order, is migrated further. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/crypto/sha256.h"
#include "common/store/schema.h"
#include "tools/payfactctl/migrations.h"

#define FILE_OF(name_, sql_) {(name_), (sql_), sizeof(sql_) - 1}

struct fixture {
    struct pay_migrations list;
    struct pay_err err;
    char dir[64];
};
static struct fixture fixture;

static int make(void **state)
{
    (void)state;
    memset(&fixture, 0, sizeof fixture);
    (void)snprintf(fixture.dir, sizeof fixture.dir, "/tmp/pay_migrations_XXXXXX");
    return mkdtemp(fixture.dir) == NULL ? -1 : 0;
}

static void path_of(const char *name, char path[128])
{
    (void)snprintf(path, 128, "%s/%s", fixture.dir, name);
}

static int drop(void **state)
{
    static const char *const names[] = {"0001_a.sql", "0002_b.sql", "notes.txt"};
    (void)state;
    pay_migrations_free(&fixture.list);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        path_of(names[i], path);
        (void)unlink(path); /* most tests have none */
    }
    return rmdir(fixture.dir);
}

static enum pay_status list_of(const struct pay_migration_file *files, size_t count)
{
    pay_migrations_free(&fixture.list);
    return pay_migrations_of(files, count, &fixture.list, &fixture.err);
}

static void the_built_in_files_are_what_the_code_needs(void **state)
{
    (void)state;
    assert_int_equal(list_of(pay_migration_files, pay_migration_file_count), PAY_OK);
    /* A new file in schemas/sql: raise PAY_STORE_SCHEMA_VERSION with it. */
    assert_int_equal(fixture.list.count, PAY_STORE_SCHEMA_VERSION);
    struct pay_migrations on_disk = {0};
    assert_int_equal(pay_migrations_read(PAY_TEST_DATA "/../schemas/sql", &on_disk, &fixture.err),
                     PAY_OK);
    assert_int_equal(on_disk.count, fixture.list.count);
    for (size_t i = 0; i < on_disk.count; i++) {
        assert_string_equal(on_disk.items[i].row.name, fixture.list.items[i].row.name);
        assert_memory_equal(on_disk.items[i].row.checksum, fixture.list.items[i].row.checksum,
                            PAY_STORE_CHECKSUM_BYTES);
        assert_string_equal(on_disk.items[i].sql, fixture.list.items[i].sql);
    }
    pay_migrations_free(&on_disk);
}

static void files_are_ordered_and_hashed(void **state)
{
    (void)state;
    const struct pay_migration_file files[] = {FILE_OF("0002_b.sql", "SELECT 2"),
                                               FILE_OF("0001_a.sql", "SELECT 1")};
    uint8_t digest[PAY_SHA256_BYTES];
    assert_int_equal(list_of(files, 2), PAY_OK);
    assert_string_equal(fixture.list.items[0].row.name, "0001_a");
    assert_int_equal(fixture.list.items[1].row.version, 2);
    pay_sha256((struct pay_bytes){(const uint8_t *)"SELECT 1", 8}, digest);
    assert_memory_equal(fixture.list.items[0].row.checksum, digest, sizeof digest);
}

static void must_hold(const char *text, const char *says)
{
    if (strstr(text, says) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", text, says);
    }
}

static void names_and_numbers_must_fit(void **state)
{
    (void)state;
    static const struct {
        struct pay_migration_file file;
        const char *says;
    } cases[] = {
        {FILE_OF("0002_b.sql", "x"), "where number 1 should be"},
        {FILE_OF("1_a.sql", "x"), "is not named NNNN_name.sql"},
        {FILE_OF("0001.sql", "x"), "is not named NNNN_name.sql"},
        {FILE_OF("0001_.sql", "x"), "is not named NNNN_name.sql"},
        {FILE_OF("0000_a.sql", "x"), "is not named NNNN_name.sql"},
        {FILE_OF("000x_a.sql", "x"), "is not named NNNN_name.sql"},
        {FILE_OF("0001_a.txt", "x"), "is not named NNNN_name.sql"},
        {FILE_OF("0001_a.sql", "x\0y"), "has a NUL byte"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(list_of(&cases[i].file, 1), PAY_REJECT);
        must_hold(fixture.err.text, cases[i].says);
    }
    const struct pay_migration_file twice[] = {FILE_OF("0001_a.sql", "x"),
                                               FILE_OF("0001_b.sql", "x")};
    assert_int_equal(list_of(twice, 2), PAY_REJECT);
}

static void write_file(const char *name, const char *text)
{
    char path[128];
    path_of(name, path);
    assert_int_equal(pay_file_write(path, (struct pay_bytes){(const uint8_t *)text, strlen(text)},
                                    false, &fixture.err),
                     PAY_OK);
}

static void a_folder_is_read_without_other_files(void **state)
{
    (void)state;
    assert_int_equal(pay_migrations_read(fixture.dir, &fixture.list, &fixture.err), PAY_REJECT);
    write_file("0002_b.sql", "SELECT 2");
    write_file("0001_a.sql", "SELECT 1");
    write_file("notes.txt", "nothing");
    assert_int_equal(pay_migrations_read(fixture.dir, &fixture.list, &fixture.err), PAY_OK);
    assert_int_equal(fixture.list.count, 2);
    assert_string_equal(fixture.list.items[1].sql, "SELECT 2");
    assert_int_equal(pay_migrations_read("/nonexistent", &fixture.list, &fixture.err), PAY_FATAL);
}

/* ---- against what is applied ---- */

static void only_our_own_past_is_accepted(void **state)
{
    (void)state;
    const struct pay_migration_file files[] = {FILE_OF("0001_a.sql", "a"),
                                               FILE_OF("0002_b.sql", "b")};
    assert_int_equal(list_of(files, 2), PAY_OK);
    const struct pay_store_migration first = fixture.list.items[0].row;
    const struct pay_store_migration second = fixture.list.items[1].row;
    struct pay_store_migration changed = first;
    struct pay_store_migration newer = {.version = 3, .name = "0003_c"};
    changed.checksum[31] ^= 1;
    const struct {
        struct pay_store_migration applied[3];
        size_t count;
        enum pay_status status;
        size_t first;
        const char *says;
    } cases[] = {
        {{{0}}, 0, PAY_OK, 0, ""},
        {{first}, 1, PAY_OK, 1, ""},
        {{first, second}, 2, PAY_OK, 2, ""},
        {{first, second, newer}, 3, PAY_REJECT, 0, "use a newer one"},
        {{changed, second}, 2, PAY_REJECT, 0, "\"0001_a\" is not the file that was applied"},
        {{second}, 1, PAY_REJECT, 0, "number 1 was not applied before \"0002_b\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t at = 99;
        fixture.err.text[0] = '\0';
        assert_int_equal(pay_migrations_compare(&fixture.list, cases[i].applied, cases[i].count,
                                                &at, &fixture.err),
                         cases[i].status);
        assert_int_equal(at, cases[i].status == PAY_OK ? cases[i].first : 99);
        assert_non_null(strstr(fixture.err.text, cases[i].says));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_built_in_files_are_what_the_code_needs, make, drop),
        cmocka_unit_test_setup_teardown(files_are_ordered_and_hashed, make, drop),
        cmocka_unit_test_setup_teardown(names_and_numbers_must_fit, make, drop),
        cmocka_unit_test_setup_teardown(a_folder_is_read_without_other_files, make, drop),
        cmocka_unit_test_setup_teardown(only_our_own_past_is_accepted, make, drop),
    };
    return cmocka_run_group_tests_name("migrations", tests, NULL, NULL);
}
