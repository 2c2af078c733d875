/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/config.h"

#include "common/base/assert.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/mem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/banned.h"

#define PREFIX "PAYFACT_"
#define FILE_SUFFIX "_FILE"
#define PROBLEMS_MAX_BYTES ((size_t)64 * 1024)

/* environ, not getenv(3): the whole of it is walked anyway, and read before there are threads. */
extern char **environ;

struct load {
    const struct pay_cfg_table *table;
    char *into;
    struct pay_buf *problems;
    size_t wrong;
    char first[120]; /* The first problem, for struct pay_err. */
};

static bool has(const struct pay_cfg_row *row, enum pay_cfg_flag flag)
{
    return (row->flags & (unsigned)flag) != 0;
}

static const char *suffix_of(const struct pay_cfg_row *row)
{
    return has(row, PAY_CFG_SECRET) ? FILE_SUFFIX : "";
}

static void PAY_PRINTF(3, 4)
    problem(struct load *load, const struct pay_cfg_row *row, const char *fmt, ...)
{
    char line[400];
    va_list args;

    va_start(args, fmt);
    const int name = snprintf(line, sizeof line, PREFIX "%.100s%s", row->name, suffix_of(row));
    PAY_ASSERT(name > 0 && (size_t)name < sizeof line);
    if (vsnprintf(line + name, sizeof line - (size_t)name, fmt, args) < 0) {
        line[name] = 0;
    }
    va_end(args);
    if (load->wrong++ == 0) {
        (void)snprintf(load->first, sizeof load->first, "%.*s", (int)sizeof load->first - 1, line);
    }
    pay_buf_add_c(load->problems, line);
    pay_buf_add_char(load->problems, '\n');
}

/* @return the value of PAYFACT_<name><suffix>, NULL when it is not in the environment. */
static const char *environment(const char *name, const char *suffix)
{
    const size_t name_len = strlen(name);
    const size_t suffix_len = strlen(suffix);

    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        const char *at = *entry;
        if (strncmp(at, PREFIX, sizeof PREFIX - 1) != 0) {
            continue;
        }
        at += sizeof PREFIX - 1;
        if (strncmp(at, name, name_len) == 0 && strncmp(at + name_len, suffix, suffix_len) == 0 &&
            at[name_len + suffix_len] == '=') {
            return at + name_len + suffix_len + 1;
        }
    }
    return NULL;
}

static void take_text(struct load *load, const struct pay_cfg_row *row, struct pay_str text)
{
    char *into = load->into + row->offset;

    if (!pay_str_copy(into, PAY_CFG_TEXT_MAX, text)) {
        problem(load, row, " is longer than %d bytes", PAY_CFG_TEXT_MAX - 1);
    } else if (text.len == 0 && has(row, PAY_CFG_REQUIRED)) {
        problem(load, row, " is empty but required: %s", row->doc);
    }
}

static void take_int(struct load *load, const struct pay_cfg_row *row, struct pay_str text)
{
    int64_t value = 0;

    if (!pay_str_to_i64(text, &value)) {
        problem(load, row, "=\"%.40s\" is not a whole number", text.ptr);
    } else if (value < row->min || value > row->max) {
        problem(load, row, "=%" PRId64 " is not in %" PRId64 "..%" PRId64 "%s%s", value, row->min,
                row->max, row->unit[0] != 0 ? " " : "", row->unit);
    } else {
        memcpy(load->into + row->offset, &value, sizeof value);
    }
}

static void take_bool(struct load *load, const struct pay_cfg_row *row, struct pay_str text)
{
    const bool value = pay_str_eq_c(text, "true");

    if (!value && !pay_str_eq_c(text, "false")) {
        problem(load, row, "=\"%.40s\" is neither \"true\" nor \"false\"", text.ptr);
        return;
    }
    memcpy(load->into + row->offset, &value, sizeof value);
}

static void take(struct load *load, const struct pay_cfg_row *row, const char *text)
{
    static void (*const takers[])(struct load *, const struct pay_cfg_row *, struct pay_str) = {
        [PAY_CFG_TEXT] = take_text,
        [PAY_CFG_INT] = take_int,
        [PAY_CFG_BOOL] = take_bool,
    };
    _Static_assert(sizeof takers / sizeof takers[0] == PAY_CFG_TYPE_COUNT, "one for each type");

    PAY_ASSERT((unsigned)row->type < PAY_CFG_TYPE_COUNT);
    takers[row->type](load, row, pay_str_of(text));
}

static size_t trimmed_len(const char *text, size_t len)
{
    while (len > 0 && strchr(" \t\r\n\v\f", text[len - 1]) != NULL && text[len - 1] != 0) {
        len--;
    }
    return len;
}

/* The value comes from a file alone: an environment shows up in listings and crash reports. */
static void take_secret(struct load *load, const struct pay_cfg_row *row, const char *path)
{
    char text[PAY_CFG_TEXT_MAX + 64]; /* A little more: the white space behind is trimmed. */
    struct pay_err err = {0};
    size_t len = 0;

    PAY_ASSERT(row->type == PAY_CFG_TEXT);
    if (pay_file_read(path, text, sizeof text, &len, &err) != PAY_OK) {
        problem(load, row, ": %s", err.text);
        goto out;
    }
    len = trimmed_len(text, len);
    if (len == 0) {
        problem(load, row, ": \"%.100s\" holds an empty secret", path);
    } else if (memchr(text, 0, len) != NULL) {
        problem(load, row, ": \"%.100s\" holds a NUL byte", path);
    } else {
        take_text(load, row, (struct pay_str){text, len});
    }
out:
    pay_mem_wipe(text, sizeof text);
}

static void set_default(struct load *load, const struct pay_cfg_row *row)
{
    static const size_t sizes[] = {
        [PAY_CFG_TEXT] = PAY_CFG_TEXT_MAX,
        [PAY_CFG_INT] = sizeof(int64_t),
        [PAY_CFG_BOOL] = sizeof(bool),
    };
    const size_t wrong = load->wrong;

    PAY_ASSERT((unsigned)row->type < PAY_CFG_TYPE_COUNT);
    memset(load->into + row->offset, 0, sizes[row->type]);
    if (row->by_default != NULL) {
        take(load, row, row->by_default);
        PAY_ASSERT(load->wrong == wrong); /* A default that its own row refuses is a bug. */
    }
}

static void load_row(struct load *load, const struct pay_cfg_row *row)
{
    const char *value = environment(row->name, suffix_of(row));

    set_default(load, row);
    if (value != NULL && has(row, PAY_CFG_SECRET)) {
        take_secret(load, row, value);
    } else if (value != NULL) {
        take(load, row, value);
    } else if (has(row, PAY_CFG_REQUIRED)) {
        problem(load, row, " is required: %s", row->doc);
    }
}

/* Is name=... the variable of this row? */
static bool is_of_row(const struct pay_cfg_row *row, struct pay_str name)
{
    const size_t len = strlen(row->name);
    return pay_str_starts(name, row->name) &&
           pay_str_eq_c((struct pay_str){name.ptr + len, name.len - len}, suffix_of(row));
}

static void refuse_unknown(struct load *load, const char *entry)
{
    const char *equals = strchr(entry, '=');

    if (strncmp(entry, PREFIX, sizeof PREFIX - 1) != 0 || equals == NULL) {
        return;
    }
    entry += sizeof PREFIX - 1;
#if PAY_FAULTS
    if (strncmp(entry, "FAULT=", sizeof "FAULT=" - 1) == 0) {
        return; /* fault.h reads it: a kill point of the crash tests */
    }
#endif
    const struct pay_str name = {entry, (size_t)(equals - entry)};
    char copy[64];
    (void)snprintf(copy, sizeof copy, "%.*s", (int)(name.len < 63 ? name.len : 63), name.ptr);
    const struct pay_cfg_row unknown = {.name = copy};

    for (size_t i = 0; i < load->table->count; i++) {
        const struct pay_cfg_row *row = &load->table->rows[i];
        if (is_of_row(row, name)) {
            return;
        }
        if (pay_str_eq_c(name, row->name)) {
            problem(load, &unknown, " holds a secret: put it into a file and set " PREFIX "%s_FILE",
                    row->name);
            return;
        }
    }
    problem(load, &unknown, " is not a setting of %s", load->table->service);
}

static enum pay_status load_all(struct load *load, bool refuses_unknown, struct pay_err *err)
{
    for (size_t i = 0; i < load->table->count; i++) {
        load_row(load, &load->table->rows[i]);
    }
    for (char **entry = environ; refuses_unknown && entry != NULL && *entry != NULL; entry++) {
        refuse_unknown(load, *entry);
    }
    if (load->wrong == 0) {
        return PAY_OK;
    }
    return pay_err_set(err, PAY_FATAL, 0, "load configuration", "%zu wrong: %s", load->wrong,
                       load->first);
}

enum pay_status pay_cfg_load_told(const struct pay_cfg_table *table, void *into,
                                  struct pay_buf *problems, struct pay_err *err)
{
    struct load load = {.table = table, .into = into, .problems = problems};

    return load_all(&load, true, err);
}

enum pay_status pay_cfg_load_own(const struct pay_cfg_table *table, void *into,
                                 struct pay_buf *problems, struct pay_err *err)
{
    struct load load = {.table = table, .into = into, .problems = problems};

    return load_all(&load, false, err);
}

enum pay_status pay_cfg_load(const struct pay_cfg_table *table, void *into, struct pay_err *err)
{
    struct pay_buf problems = pay_buf_make(PROBLEMS_MAX_BYTES);
    const enum pay_status status = pay_cfg_load_told(table, into, &problems, err);
    char *line = (char *)problems.data;

    while (line != NULL && *line != 0) {
        char *end = strchr(line, '\n');
        PAY_ASSERT(end != NULL);
        *end = 0;
        pay_log(PAY_LOG_ERROR, "config_wrong", PAY_F_STR("problem", line));
        line = end + 1;
    }
    pay_buf_free(&problems);
    return status;
}

static void print_value(const struct pay_cfg_row *row, const char *at, struct pay_buf *out)
{
    int64_t number = 0;
    bool truth = false;

    switch (row->type) {
    case PAY_CFG_TEXT:
        pay_buf_add_c(out, has(row, PAY_CFG_SECRET) ? "***" : at);
        return;
    case PAY_CFG_INT:
        memcpy(&number, at, sizeof number);
        pay_buf_printf(out, "%" PRId64, number);
        return;
    case PAY_CFG_BOOL:
        memcpy(&truth, at, sizeof truth);
        pay_buf_add_c(out, truth ? "true" : "false");
        return;
    case PAY_CFG_TYPE_COUNT:
        break;
    }
    PAY_ASSERT(false);
}

void pay_cfg_print(const struct pay_cfg_table *table, const void *from, struct pay_buf *out)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct pay_cfg_row *row = &table->rows[i];
        pay_buf_printf(out, "%s=", row->name);
        print_value(row, (const char *)from + row->offset, out);
        pay_buf_add_char(out, '\n');
    }
}

void pay_cfg_print_docs(const struct pay_cfg_table *table, struct pay_buf *out)
{
    static const char *const types[] = {"text", "integer", "true or false"};

    pay_buf_add_c(out, "| Variable | Type | Default | Range | Meaning |\n"
                       "| --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < table->count; i++) {
        const struct pay_cfg_row *row = &table->rows[i];
        const bool is_int = row->type == PAY_CFG_INT;
        const char *without = has(row, PAY_CFG_REQUIRED) ? "required" : "";

        pay_buf_printf(out, "| `" PREFIX "%s%s` | %s | ", row->name, suffix_of(row),
                       has(row, PAY_CFG_SECRET) ? "path of a file that holds the secret"
                                                : types[row->type]);
        if (row->by_default != NULL && row->by_default[0] != 0) {
            pay_buf_printf(out, "`%s` | ", row->by_default);
        } else {
            pay_buf_printf(out, "%s | ", is_int && without[0] == 0 ? "`0`" : without);
        }
        if (is_int) {
            pay_buf_printf(out, "%" PRId64 "..%" PRId64 "%s%s", row->min, row->max,
                           row->unit[0] != 0 ? " " : "", row->unit);
        }
        pay_buf_printf(out, " | %s |\n", row->doc);
    }
}
