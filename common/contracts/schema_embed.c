/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Build-time program: writes the C file that holds every schema and its fingerprint.
 *
 *     schema_embed out.c Record:version:path ...      (version 0: the current one)
 */
#include "common/contracts/fingerprint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/banned.h"

#define SCHEMA_MAX ((size_t)64 * 1024)

struct source {
    char record[64];
    char version[12];
    const char *path;
    uint64_t fingerprint;
};

static int fail(const char *what, const char *subject)
{
    (void)fprintf(stderr, "schema_embed: %s: %s\n", what, subject);
    return EXIT_FAILURE;
}

/* "Record:version:path" */
static bool parse(const char *arg, struct source *ret_source)
{
    const char *first = strchr(arg, ':');
    const char *second = first == NULL ? NULL : strchr(first + 1, ':');

    if (second == NULL || (size_t)(first - arg) >= sizeof ret_source->record ||
        (size_t)(second - first) > sizeof ret_source->version) {
        return false;
    }
    *ret_source = (struct source){.path = second + 1};
    memcpy(ret_source->record, arg, (size_t)(first - arg));
    memcpy(ret_source->version, first + 1, (size_t)(second - first) - 1);
    return true;
}

static size_t read_file(const char *path, char *dst, size_t cap)
{
    FILE *file = fopen(path, "rb");
    size_t len = 0;

    if (file != NULL) {
        len = fread(dst, 1, cap, file);
        (void)fclose(file); /* Read only: nothing can be lost. */
    }
    return len;
}

static bool find_fingerprint(const char *json, size_t len, struct source *source)
{
    avro_schema_t schema = NULL;
    bool done = false;

    if (avro_schema_from_json_length(json, len, &schema) == 0) {
        done = strcmp(avro_schema_name(schema), source->record) == 0 &&
               pay_schema_fingerprint(schema, &source->fingerprint);
        (void)avro_schema_decref(schema);
    }
    return done;
}

/* As numbers: string literals have a maximum length in C. */
static void write_text(FILE *out, size_t number, const char *json, size_t len)
{
    (void)fprintf(out, "static const char text_%zu[] = {", number);
    for (size_t i = 0; i < len; i++) {
        (void)fprintf(out, "%s%d,", i % 32 == 0 ? "\n" : "", json[i]);
    }
    (void)fprintf(out, "0};\n");
}

static int embed(FILE *out, struct source *source, size_t number)
{
    static char json[SCHEMA_MAX + 1];
    const size_t len = read_file(source->path, json, sizeof json);

    if (len == 0 || len > SCHEMA_MAX) {
        return fail("cannot read, or too long", source->path);
    }
    if (!find_fingerprint(json, len, source)) {
        return fail("not a schema of that record", source->path);
    }
    write_text(out, number, json, len);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    enum { SOURCES_MAX = 256 };
    static struct source sources[SOURCES_MAX];
    const size_t count = argc < 3 ? 0 : (size_t)argc - 2;
    FILE *out = NULL;

    if (count == 0 || count > SOURCES_MAX) {
        return fail("usage", "schema_embed out.c Record:version:path ...");
    }
    out = fopen(argv[1], "w");
    if (out == NULL) {
        return fail("cannot write", argv[1]);
    }
    (void)fprintf(out, "/* Made by schema_embed. */\n#include \"common/contracts/schemas.h\"\n");
    int rc = EXIT_SUCCESS;
    for (size_t i = 0; i < count && rc == EXIT_SUCCESS; i++) {
        rc = parse(argv[i + 2], &sources[i]) ? embed(out, &sources[i], i)
                                             : fail("cannot read argument", argv[i + 2]);
    }
    (void)fprintf(out, "const struct pay_schema_text pay_schema_texts[] = {\n");
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(out,
                      "{\"%s\", %s, UINT64_C(0x%016" PRIx64 "), text_%zu, sizeof text_%zu - 1},\n",
                      sources[i].record, sources[i].version, sources[i].fingerprint, i, i);
    }
    (void)fprintf(out, "};\nconst size_t pay_schema_text_count = %zu;\n", count);
    if (fclose(out) != 0) {
        return fail("cannot write", argv[1]);
    }
    return rc;
}
