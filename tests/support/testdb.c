/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/testdb.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/buf.h"
#include "common/base/file.h"

/* The environment and the process are touched by the test's own thread only. */
/* NOLINTBEGIN(concurrency-mt-unsafe) */

#define MIGRATIONS_MAX 64

static void fail(const char *what, const struct pay_err *err)
{
    (void)fprintf(stderr, "testdb: %s: %s: %s\n", what, err->op == NULL ? "" : err->op, err->text);
    exit(1);
}

static void script(struct pay_pg *pg, const char *sql)
{
    struct pay_err err = {.status = PAY_OK};
    if (pay_pg_script(pg, sql, &err) != PAY_OK) {
        (void)fprintf(stderr, "%s\n", pay_pg_failure(pg)->message);
        fail(sql, &err);
    }
}

static struct pay_pg *connect_to(const char *conninfo)
{
    struct pay_err err = {.status = PAY_OK};
    struct pay_pg *pg = NULL;
    /* A script that fills a table may take long on a busy machine; CTest ends a test that hangs. */
    const struct pay_pg_options options = {
        .conninfo = conninfo, .application_name = "payfact-test", .statement_timeout_ms = -1};
    if (pay_pg_open(&options, &pg, &err) != PAY_OK) {
        fail("connect", &err);
    }
    return pg;
}

static const char *server(void)
{
    const char *conninfo = getenv("PAYFACT_TEST_PG");
    if (conninfo == NULL) {
        (void)fprintf(stderr, "PAYFACT_TEST_PG is not set: give the conninfo of a test server\n");
        exit(1);
    }
    return conninfo;
}

static int is_migration(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return len > 4 && strcmp(entry->d_name + len - 4, ".sql") == 0;
}

static void migrate(struct pay_pg *pg)
{
    const char *dir = PAY_TEST_DATA "/../schemas/sql";
    struct dirent **entries = NULL;
    int count = scandir(dir, &entries, is_migration, alphasort);
    struct pay_err err = {.status = PAY_OK};
    for (int i = 0; i < count; i++) {
        char path[1024];
        char note[512];
        struct pay_buf sql = pay_buf_make((size_t)1 << 20);
        (void)snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
        if (pay_file_read_buf(path, &sql, &err) != PAY_OK) {
            fail(path, &err);
        }
        script(pg, pay_buf_str(&sql).ptr);
        (void)snprintf(note, sizeof(note),
                       "INSERT INTO payfact.schema_migration (version, name, checksum) VALUES"
                       " (%d, '%s', decode(repeat('00', 32), 'hex'))",
                       i + 1, entries[i]->d_name);
        script(pg, note);
        pay_buf_free(&sql);
        free(entries[i]);
    }
    free((void *)entries);
    if (count < 1) {
        (void)fprintf(stderr, "testdb: no migrations in %s\n", dir);
        exit(1);
    }
}

void pay_testdb_open(struct pay_testdb *db)
{
    static int number;
    char sql[256];
    (void)snprintf(db->name, sizeof(db->name), "payfact_test_%d_%d", (int)getpid(), number++);
    (void)snprintf(db->conninfo, sizeof(db->conninfo), "%s dbname=%s", server(), db->name);
    struct pay_pg *admin = connect_to(server());
    (void)snprintf(sql, sizeof(sql), "CREATE DATABASE %s", db->name);
    script(admin, sql);
    (void)pay_pg_free(admin);
    db->owner = connect_to(db->conninfo);
    migrate(db->owner);
}

void pay_testdb_close(struct pay_testdb *db)
{
    char sql[256];
    db->owner = pay_pg_free(db->owner);
    struct pay_pg *admin = connect_to(server());
    (void)snprintf(sql, sizeof(sql), "DROP DATABASE IF EXISTS %s WITH (FORCE)", db->name);
    script(admin, sql);
    (void)pay_pg_free(admin);
}

void pay_testdb_run(struct pay_testdb *db, const char *sql)
{
    script(db->owner, sql);
}

/* Statements are prepared by name: each text of a test gets one of its own. */
static struct pay_pg_result *query(struct pay_testdb *db, const char *sql)
{
    static struct pay_pg_stmt stmts[256];
    static char texts[256][2048];
    static char names[256][32];
    static int used;
    struct pay_err err = {.status = PAY_OK};
    struct pay_pg_result *result = NULL;
    int at = 0;
    while (at < used && strcmp(texts[at], sql) != 0) {
        at++;
    }
    if (at == used) {
        used++;
        (void)snprintf(texts[at], sizeof(texts[at]), "%s", sql);
        (void)snprintf(names[at], sizeof(names[at]), "test_%d", at);
        stmts[at] = (struct pay_pg_stmt){.name = names[at], .sql = texts[at]};
    }
    if (pay_pg_exec(db->owner, &stmts[at], NULL, &result, &err) != PAY_OK) {
        (void)fprintf(stderr, "%s\n", pay_pg_failure(db->owner)->message);
        fail(sql, &err);
    }
    return result;
}

void pay_testdb_shut(struct pay_testdb *db, bool is_shut)
{
    char sql[256];
    struct pay_pg *admin = connect_to(server()); /* No database can refuse connections to itself. */
    (void)snprintf(sql, sizeof(sql), "ALTER DATABASE %s WITH ALLOW_CONNECTIONS %s", db->name,
                   is_shut ? "false" : "true");
    script(admin, sql);
    (void)pay_pg_free(admin);
    if (is_shut) {
        script(db->owner, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ="
                          " current_database() AND pid <> pg_backend_pid()");
    }
}

int64_t pay_testdb_number(struct pay_testdb *db, const char *sql)
{
    struct pay_pg_result *result = query(db, sql);
    int64_t value = pay_pg_rows(result) == 0 ? 0 : pay_pg_int_or(result, 0, 0, 0);
    (void)pay_pg_result_free(result);
    return value;
}

const char *pay_testdb_text(struct pay_testdb *db, const char *sql)
{
    static char text[4096];
    struct pay_pg_result *result = query(db, sql);
    struct pay_str value = {NULL, 0};
    if (pay_pg_rows(result) > 0) {
        value = pay_pg_text(result, 0, 0);
    }
    (void)pay_str_copy(text, sizeof(text), value);
    (void)pay_pg_result_free(result);
    return text;
}

/* NOLINTEND(concurrency-mt-unsafe) */
