/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codec on a pipe, for test_interop.py. One question a line, one answer a line:
 *
 *     sample RECORD VARIANT       the sample of samples.c, in hex
 *     small RECORD VARIANT        the same with everything optional left out
 *     recode RECORD HEX           decoded and encoded again, in hex
 *     fingerprint RECORD          of the schema that is written, 16 hex digits
 *     learn RECORD HEX            a schema's JSON in hex; its fingerprint
 *     version RECORD N            write by that version from now on
 *
 * A refusal is "!CODE text".
 */
#include "tests/unit/contracts/samples.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MAX ((size_t)2 * 1024 * 1024)

struct tool {
    struct pay_codec *codec;
    struct pay_arena *arena;
    struct pay_buf out;
    struct pay_err err;
    uint8_t *bytes;
};

static enum pay_record find_record(const char *name)
{
    int record = 0;
    while (record < PAY_RECORD_COUNT &&
           strcmp(pay_record_name((enum pay_record)record), name) != 0) {
        record++;
    }
    return (enum pay_record)record;
}

static void print_hex(struct pay_bytes bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        (void)printf("%02x", bytes.ptr[i]);
    }
    (void)printf("\n");
}

static void answer(const struct tool *tool, enum pay_status status)
{
    if (status == PAY_OK) {
        print_hex(pay_buf_bytes(&tool->out));
    } else {
        (void)printf("!%s %s\n", pay_codec_code_name((enum pay_codec_code)tool->err.code),
                     tool->err.text);
    }
}

static struct pay_bytes unhex(const struct tool *tool, const char *arg)
{
    const size_t len = strlen(arg) / 2;
    if (len > VALUE_MAX || !pay_hex_decode(pay_str_of(arg), tool->bytes, len)) {
        return (struct pay_bytes){NULL, 0};
    }
    return (struct pay_bytes){tool->bytes, len};
}

static void sample(struct tool *tool, enum pay_record record, const char *arg)
{
    static union any_record any;
    record_cases[record].make(&any, (size_t)strtoul(arg, NULL, 10));
    answer(tool, record_cases[record].encode(tool->codec, &any, &tool->out, &tool->err));
}

static void small(struct tool *tool, enum pay_record record, const char *arg)
{
    static union any_record any;
    record_cases[record].make_small(&any, (size_t)strtoul(arg, NULL, 10));
    answer(tool, record_cases[record].encode(tool->codec, &any, &tool->out, &tool->err));
}

static void recode(struct tool *tool, enum pay_record record, const char *arg)
{
    static union any_record any;
    const struct record_case *with = &record_cases[record];
    enum pay_status status =
        with->decode(tool->codec, unhex(tool, arg), tool->arena, &any, &tool->err);

    if (status == PAY_OK) {
        status = with->encode(tool->codec, &any, &tool->out, &tool->err);
    }
    answer(tool, status);
}

static void fingerprint(struct tool *tool, enum pay_record record, const char *arg)
{
    (void)arg;
    (void)printf("%016" PRIx64 "\n", pay_codec_fingerprint(tool->codec, record));
}

static void learn(struct tool *tool, enum pay_record record, const char *arg)
{
    const struct pay_bytes text = unhex(tool, arg);
    uint64_t learned = 0;

    if (pay_codec_learn(tool->codec, record, (struct pay_str){(const char *)text.ptr, text.len},
                        &learned, &tool->err) == PAY_OK) {
        (void)printf("%016" PRIx64 "\n", learned);
    } else {
        answer(tool, PAY_REJECT);
    }
}

static void version(struct tool *tool, enum pay_record record, const char *arg)
{
    answer(tool, pay_codec_write_version(tool->codec, record, atoi(arg), &tool->err));
}

static bool turn(struct tool *tool, char *line)
{
    static const struct {
        const char *name;
        void (*run)(struct tool *, enum pay_record, const char *);
    } commands[] = {{"sample", sample},           {"small", small}, {"recode", recode},
                    {"fingerprint", fingerprint}, {"learn", learn}, {"version", version}};
    char *rest = NULL;
    const char *name = strtok_r(line, " \n", &rest);
    const char *record_name = strtok_r(NULL, " \n", &rest);
    const char *arg = strtok_r(NULL, " \n", &rest);
    const enum pay_record record = find_record(record_name == NULL ? "" : record_name);

    pay_arena_reset(tool->arena);
    pay_buf_reset(&tool->out);
    tool->err = (struct pay_err){0};
    for (size_t i = 0; name != NULL && i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(commands[i].name, name) == 0 && record != PAY_RECORD_COUNT) {
            commands[i].run(tool, record, arg == NULL ? "" : arg);
            return fflush(stdout) == 0;
        }
    }
    return false;
}

int main(void)
{
    struct tool tool = {.arena = pay_arena_new(4 * VALUE_MAX),
                        .out = pay_buf_make(VALUE_MAX),
                        .bytes = malloc(VALUE_MAX)};
    char *line = NULL;
    size_t cap = 0;
    int rc = EXIT_FAILURE;

    if (tool.arena == NULL || tool.bytes == NULL ||
        pay_codec_new(&tool.codec, &tool.err) != PAY_OK) {
        (void)fprintf(stderr, "interop_tool: %s\n", tool.err.text);
        goto out;
    }
    rc = EXIT_SUCCESS;
    while (rc == EXIT_SUCCESS && getline(&line, &cap, stdin) > 0) {
        rc = turn(&tool, line) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
out:
    free(line);
    free(tool.bytes);
    pay_buf_free(&tool.out);
    tool.codec = pay_codec_free(tool.codec);
    tool.arena = pay_arena_free(tool.arena);
    return rc;
}
