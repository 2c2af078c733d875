/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/payfactctl/args.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/assert.h"

#include "common/base/banned.h"

static const char op[] = "read command line";

struct reading {
    const struct pay_arg_table *table;
    char *into;
    bool given[PAY_ARGS_MAX];
    struct pay_err *err;
};

/* A word of the command line: "--name", "--name=value" or an operand. */
struct word {
    struct pay_str name;
    const char *value; /* NULL: not in this word. */
};

static struct word word_of(const char *text)
{
    const char *equals = text[0] == '-' ? strchr(text, '=') : NULL;
    struct word word = {.name = pay_str_of(text), .value = NULL};
    if (equals != NULL) {
        word.name.len = (size_t)(equals - text);
        word.value = equals + 1;
    }
    return word;
}

static bool fits(const struct reading *reading, size_t row, struct pay_str name)
{
    const struct pay_arg *arg = &reading->table->rows[row];
    if (arg->kind == PAY_ARG_OPERAND) {
        return name.ptr[0] != '-' && !reading->given[row];
    }
    return pay_str_eq_c(name, arg->name);
}

static const struct pay_arg *find(const struct reading *reading, struct pay_str name)
{
    for (size_t i = 0; i < reading->table->count; i++) {
        if (fits(reading, i, name)) {
            return &reading->table->rows[i];
        }
    }
    return NULL;
}

static enum pay_status take_list(struct reading *reading, const struct pay_arg *arg,
                                 const char *value)
{
    struct pay_arg_list *list = (void *)(reading->into + arg->offset);
    if (list->count == PAY_ARG_LIST_MAX) {
        return pay_err_set(reading->err, PAY_REJECT, 0, op, "%s is given more than %d times",
                           arg->name, PAY_ARG_LIST_MAX);
    }
    list->items[list->count++] = value;
    return PAY_OK;
}

static enum pay_status take_int(struct reading *reading, const struct pay_arg *arg,
                                const char *value)
{
    int64_t number = 0;
    if (!pay_str_to_i64(pay_str_of(value), &number) || number < arg->min || number > arg->max) {
        return pay_err_set(reading->err, PAY_REJECT, 0, op,
                           "%s \"%.40s\" is not a whole number in %" PRId64 "..%" PRId64, arg->name,
                           value, arg->min, arg->max);
    }
    memcpy(reading->into + arg->offset, &number, sizeof number);
    return PAY_OK;
}

static enum pay_status take(struct reading *reading, const struct pay_arg *arg, const char *value)
{
    const bool on = true;
    switch (arg->kind) {
    case PAY_ARG_LIST:
        return take_list(reading, arg, value);
    case PAY_ARG_INT:
        return take_int(reading, arg, value);
    case PAY_ARG_FLAG:
        memcpy(reading->into + arg->offset, &on, sizeof on);
        return PAY_OK;
    case PAY_ARG_TEXT:
    case PAY_ARG_OPERAND:
        memcpy(reading->into + arg->offset, (const void *)&value, sizeof value);
        return PAY_OK;
    case PAY_ARG_KIND_COUNT:
        break;
    }
    PAY_ASSERT(false);
}

/* @return how many words were read; 0 with err set. */
static int read_one(struct reading *reading, int left, char *const *words)
{
    struct word word = word_of(words[0]);
    const struct pay_arg *arg = find(reading, word.name);
    int used = 1;
    if (arg == NULL) {
        (void)pay_err_set(reading->err, PAY_REJECT, 0, op,
                          "\"%.60s\" is not known here, see --help", words[0]);
        return 0;
    }
    bool *given = &reading->given[arg - reading->table->rows];
    if (*given && arg->kind != PAY_ARG_LIST) {
        (void)pay_err_set(reading->err, PAY_REJECT, 0, op, "%s is given twice", arg->name);
        return 0;
    }
    if (arg->kind == PAY_ARG_OPERAND) {
        word.value = words[0];
    } else if (arg->kind == PAY_ARG_FLAG ? word.value != NULL : word.value == NULL && left < 2) {
        (void)pay_err_set(reading->err, PAY_REJECT, 0, op, "%s takes %s value", arg->name,
                          arg->kind == PAY_ARG_FLAG ? "no" : "a");
        return 0;
    } else if (arg->kind != PAY_ARG_FLAG && word.value == NULL) {
        word.value = words[1];
        used = 2;
    }
    *given = true;
    return take(reading, arg, word.value) == PAY_OK ? used : 0;
}

static enum pay_status check_missing(const struct reading *reading)
{
    for (size_t i = 0; i < reading->table->count; i++) {
        const struct pay_arg *arg = &reading->table->rows[i];
        if (arg->is_required && !reading->given[i]) {
            return pay_err_set(reading->err, PAY_REJECT, 0, op, "%s is missing, see --help",
                               arg->name);
        }
        if (arg->kind == PAY_ARG_INT && !reading->given[i]) {
            memcpy(reading->into + arg->offset, &arg->min, sizeof arg->min);
        }
    }
    return PAY_OK;
}

enum pay_status pay_args_read(const struct pay_arg_table *table, int argc, char *const *argv,
                              void *into, struct pay_err *err)
{
    struct pay_err own = {0};
    struct reading reading = {.table = table, .into = into, .err = err == NULL ? &own : err};
    PAY_ASSERT(table->count <= PAY_ARGS_MAX);
    for (int at = 0; at < argc;) {
        const int used = read_one(&reading, argc - at, argv + at);
        if (used == 0) {
            return PAY_REJECT;
        }
        at += used;
    }
    return check_missing(&reading);
}

void pay_args_print(const struct pay_arg_table *table, struct pay_buf *out)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct pay_arg *arg = &table->rows[i];
        char head[64];
        struct pay_buf text = pay_buf_make(sizeof head);
        pay_buf_printf(&text, "%s%s%s", arg->name, arg->value == NULL ? "" : " ",
                       arg->value == NULL ? "" : arg->value);
        (void)pay_str_copy(head, sizeof head, pay_buf_str(&text)); /* a longer one is cut to "" */
        pay_buf_free(&text);
        pay_buf_printf(out, "  %-26s %s%s%s\n", head, arg->doc,
                       arg->is_required ? " (required)" : "",
                       arg->kind == PAY_ARG_LIST ? " (may be repeated)" : "");
    }
}
