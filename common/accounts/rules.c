/* SPDX-License-Identifier: Apache-2.0 */
#include "common/accounts/accounts_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/banned.h"

#define ID_BYTES_MAX 32
#define FILE_BYTES_MAX 255
#define KEY_ID_BYTES_MAX (PAY_PSP_KEY_ID_SIZE - 1)

void pay_rule_problem(struct pay_accounts_reader *reader, const char *path, const char *fmt, ...)
{
    char what[320];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(what, sizeof what, fmt, args); /* A long text is cut. */
    va_end(args);
    if (reader->problem_count == 0) {
        (void)snprintf(reader->first, sizeof reader->first, "%.60s: %.90s", path, what);
    }
    if (reader->problems != NULL && reader->problem_count < PAY_ACCOUNTS_PROBLEMS_MAX) {
        pay_buf_printf(reader->problems, "%s: %s\n", path, what);
    }
    reader->problem_count++;
}

const char *pay_rule_path(struct pay_accounts_reader *reader, const char *path, const char *name)
{
    const struct pay_str text = path[0] == '\0'
                                    ? pay_arena_printf(reader->scratch, "%s", name)
                                    : pay_arena_printf(reader->scratch, "%s.%s", path, name);
    return text.ptr == NULL ? name : text.ptr;
}

const char *pay_rule_item(struct pay_accounts_reader *reader, const char *path, size_t index)
{
    const struct pay_str text = pay_arena_printf(reader->scratch, "%s[%zu]", path, index);
    return text.ptr == NULL ? path : text.ptr;
}

const char *pay_rule_keep(struct pay_accounts_reader *reader, struct pay_str text)
{
    const struct pay_str copy = pay_arena_str(reader->accounts->arena, text);
    if (text.ptr != NULL && copy.ptr == NULL) {
        pay_rule_problem(reader, "file", "too large to be held");
    }
    return copy.ptr == NULL ? "" : copy.ptr;
}

void *pay_rule_array_new(struct pay_accounts_reader *reader, size_t count, size_t size)
{
    void *array = count == 0 ? NULL : pay_arena_array(reader->accounts->arena, count, size);
    if (array == NULL && count > 0) {
        pay_rule_problem(reader, "file", "too large to be held");
    }
    return array;
}

static bool is_listed(struct pay_str name, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        if (pay_str_eq_c(name, names[i])) {
            return true;
        }
    }
    return false;
}

bool pay_rule_object(struct pay_accounts_reader *reader, const char *path,
                     const struct pay_json_value *value, const char *const *names)
{
    void *iterator = NULL;
    struct pay_str name;
    const struct pay_json_value *member;
    if (pay_json_kind(value) != PAY_JSON_OBJECT) {
        pay_rule_problem(reader, path, value == NULL ? "is missing" : "is no object");
        return false;
    }
    while (pay_json_next(value, &iterator, &name, &member)) {
        if (!is_listed(name, names)) {
            pay_rule_problem(reader, pay_rule_path(reader, path, name.ptr), "unknown field");
        }
    }
    return true;
}

size_t pay_rule_array(struct pay_accounts_reader *reader, const char *path,
                      const struct pay_json_value *value, size_t min, size_t max)
{
    const size_t count = pay_json_count(value);
    if (value == NULL && min == 0) {
        return 0;
    }
    if (pay_json_kind(value) != PAY_JSON_ARRAY) {
        pay_rule_problem(reader, path, value == NULL ? "is missing" : "is no array");
        return 0;
    }
    if (count < min || count > max) {
        pay_rule_problem(reader, path, "has %zu items, %zu to %zu are possible", count, min, max);
        return 0;
    }
    return count;
}

int64_t pay_rule_int(struct pay_accounts_reader *reader, const char *path,
                     const struct pay_json_value *object, const struct pay_int_field *field)
{
    const struct pay_json_value *value = pay_json_member(object, field->name);
    int64_t number = field->value;
    if (value == NULL && field->value >= 0) {
        return field->value;
    }
    if (value == NULL) {
        pay_rule_problem(reader, pay_rule_path(reader, path, field->name), "is missing");
    } else if (!pay_json_int(value, &number)) {
        pay_rule_problem(reader, pay_rule_path(reader, path, field->name), "is no integer");
    } else if (number < field->min || number > field->max) {
        pay_rule_problem(reader, pay_rule_path(reader, path, field->name),
                         "is %" PRId64 ", from %" PRId64 " to %" PRId64 " is possible", number,
                         field->min, field->max);
    } else {
        return number;
    }
    return field->min;
}

bool pay_rule_bool(struct pay_accounts_reader *reader, const char *path,
                   const struct pay_json_value *object, const char *name, int value)
{
    const struct pay_json_value *member = pay_json_member(object, name);
    bool truth = value == 1;
    if (member == NULL && value >= 0) {
        return truth;
    }
    if (!pay_json_bool(member, &truth)) {
        pay_rule_problem(reader, pay_rule_path(reader, path, name),
                         member == NULL ? "is missing" : "is neither true nor false");
    }
    return truth;
}

int pay_rule_word(struct pay_accounts_reader *reader, const char *path,
                  const struct pay_json_value *object, const char *name, const char *const *words)
{
    const struct pay_json_value *value = pay_json_member(object, name);
    const struct pay_str text = pay_json_str(value);
    for (int i = 0; value != NULL && words[i] != NULL; i++) {
        if (pay_str_eq_c(text, words[i])) {
            return i;
        }
    }
    if (value != NULL) {
        pay_rule_problem(reader, pay_rule_path(reader, path, name), "is not '%s' or '%s'", words[0],
                         words[1]);
    }
    return 0;
}

static bool is_id(struct pay_str text, bool underscore)
{
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
              (underscore && c == '_'))) {
            return false;
        }
    }
    return text.len > 0 && text.len <= ID_BYTES_MAX;
}

const char *pay_rule_id(struct pay_accounts_reader *reader, const char *path,
                        const struct pay_json_value *object, const char *name, bool underscore)
{
    const struct pay_json_value *value = pay_json_member(object, name);
    const struct pay_str text = pay_json_str(value);
    if (!is_id(text, underscore)) {
        pay_rule_problem(reader, pay_rule_path(reader, path, name),
                         value == NULL ? "is missing" : "is not 1 to 32 of a-z, 0-9 and '-'%s",
                         underscore ? ", '_'" : "");
        return "";
    }
    return pay_rule_keep(reader, text);
}

const char *pay_rule_text(struct pay_accounts_reader *reader, const char *path,
                          const struct pay_json_value *object, const char *name, size_t max)
{
    const struct pay_json_value *value = pay_json_member(object, name);
    const struct pay_str text = pay_json_str(value);
    bool fits = text.len > 0 && text.len <= max;
    for (size_t i = 0; fits && i < text.len; i++) {
        fits = (unsigned char)text.ptr[i] >= ' ' && text.ptr[i] != 0x7f;
    }
    if (!fits) {
        pay_rule_problem(reader, pay_rule_path(reader, path, name),
                         value == NULL ? "is missing" : "is no text of 1 to %zu bytes", max);
        return "";
    }
    return pay_rule_keep(reader, text);
}

bool pay_rule_currency(struct pay_accounts_reader *reader, const char *path, struct pay_str text,
                       char ret_currency[PAY_CURRENCY_SIZE])
{
    if (text.ptr == NULL || pay_money_exponent(text) < 0 ||
        !pay_str_copy(ret_currency, PAY_CURRENCY_SIZE, text)) {
        pay_rule_problem(reader, path, "is no currency of ISO 4217 in upper case");
        return false;
    }
    return true;
}

/* Secrets live in one folder: a name that leads out of it is a mistake or an attack. */
static bool is_inside(const char *file)
{
    for (const char *part = file; part != NULL;) {
        const size_t len = strcspn(part, "/");
        if (len == 0 || (len == 1 && part[0] == '.') ||
            (len == 2 && part[0] == '.' && part[1] == '.')) {
            return false;
        }
        part = part[len] == '/' ? part + len + 1 : NULL;
    }
    return true;
}

const char *pay_rule_file(struct pay_accounts_reader *reader, const char *path,
                          const struct pay_json_value *key, const char **ret_id)
{
    static const char *const names[] = {"id", "file", NULL};
    *ret_id = "";
    if (!pay_rule_object(reader, path, key, names)) {
        return "";
    }
    *ret_id = pay_rule_text(reader, path, key, "id", KEY_ID_BYTES_MAX);
    const char *file = pay_rule_text(reader, path, key, "file", FILE_BYTES_MAX);
    if (file[0] == '\0') {
        return "";
    }
    if (!is_inside(file)) {
        pay_rule_problem(reader, pay_rule_path(reader, path, "file"),
                         "'%s' does not stay below the secrets folder", file);
        return "";
    }
    const struct pay_str full =
        pay_arena_printf(reader->scratch, "%s/%s", reader->secrets_dir, file);
    if (full.ptr == NULL) {
        pay_rule_problem(reader, path, "too large to be held");
        return "";
    }
    pay_watch_add(reader->watch, full.ptr);
    return full.ptr;
}
