/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/json.h"

#include "common/base/assert.h"
#include "common/base/mem.h"

#include <jansson.h>
#include <string.h>

#include "common/base/banned.h"

#define NAME_MAX_BYTES 64u /* Of one step of a path. */

static const char *const error_names[] = {
    [PAY_JSON_ERROR_NONE] = "none",
    [PAY_JSON_ERROR_TOO_LONG] = "too long",
    [PAY_JSON_ERROR_TOO_DEEP] = "too deep",
    [PAY_JSON_ERROR_DUPLICATE] = "duplicate member",
    [PAY_JSON_ERROR_UTF8] = "invalid UTF-8",
    [PAY_JSON_ERROR_NUL] = "NUL in a string",
    [PAY_JSON_ERROR_RANGE] = "number out of range",
    [PAY_JSON_ERROR_SYNTAX] = "no JSON",
    [PAY_JSON_ERROR_MEMORY] = "out of memory",
};
_Static_assert(sizeof error_names / sizeof error_names[0] == PAY_JSON_ERROR_COUNT, "name each");

/* A document is its root value, a value is jansson's: neither needs memory of its own. */
static const json_t *of(const struct pay_json_value *value)
{
    return (const json_t *)value;
}

static const struct pay_json_value *as_value(const json_t *json)
{
    return (const struct pay_json_value *)json;
}

/* jansson's iterators take a json_t without const, and change nothing. */
static json_t *of_iterated(const struct pay_json_value *value)
{
    return (json_t *)(uintptr_t)value; /* NOLINT(performance-no-int-to-ptr) */
}

static enum pay_json_error error_of(const json_error_t *error)
{
    static const struct {
        enum json_error_code code;
        enum pay_json_error error;
    } rows[] = {
        {json_error_out_of_memory, PAY_JSON_ERROR_MEMORY},
        {json_error_stack_overflow, PAY_JSON_ERROR_TOO_DEEP},
        {json_error_invalid_utf8, PAY_JSON_ERROR_UTF8},
        {json_error_null_character, PAY_JSON_ERROR_NUL},
        {json_error_null_byte_in_key, PAY_JSON_ERROR_NUL},
        {json_error_duplicate_key, PAY_JSON_ERROR_DUPLICATE},
        {json_error_numeric_overflow, PAY_JSON_ERROR_RANGE},
    };
    const enum json_error_code code = json_error_code(error);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].code == code) {
            return rows[i].error;
        }
    }
    return PAY_JSON_ERROR_SYNTAX;
}

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool is_mark(uint8_t c)
{
    return c == '{' || c == '}' || c == '[' || c == ']' || c == ':' || c == ',';
}

/* What the parser gets: the text without the blanks that stand beside a mark, which mean nothing.
 * The parser takes as long for a blank as for any other character, and half of what a PSP sends is
 * indentation. */
struct tight {
    char *text;
    size_t len;
    size_t depth;
    uint8_t last; /* 0: nothing yet. */
    bool in_string, in_escape, after_space;
};

static void tighten_outside(struct tight *tight, uint8_t c)
{
    if (is_space(c)) {
        tight->after_space = true;
        return;
    }
    /* "1 2" is no number, and "a" "b" no string. */
    if (tight->after_space && tight->last != 0 && !is_mark(tight->last) && !is_mark(c)) {
        tight->text[tight->len++] = ' ';
    }
    tight->after_space = false;
    tight->in_string = c == '"';
    if (c == '{' || c == '[') {
        tight->depth++;
    } else if ((c == '}' || c == ']') && tight->depth > 0) {
        tight->depth--;
    }
    tight->text[tight->len++] = (char)c;
    tight->last = c;
}

static void tighten_inside(struct tight *tight, uint8_t c)
{
    tight->text[tight->len++] = (char)c;
    tight->last = c;
    tight->in_string = tight->in_escape || c != '"';
    tight->in_escape = !tight->in_escape && c == '\\';
}

/* @return false: too deep. Asked before parsing, because the parser's own limit of 2048 is compiled
 * in. Brackets inside strings do not count; a text that is no JSON may count wrongly, and is
 * refused by either. */
static bool tighten(struct pay_bytes text, struct tight *tight)
{
    for (size_t i = 0; i < text.len; i++) {
        if (tight->in_string) {
            tighten_inside(tight, text.ptr[i]);
        } else {
            tighten_outside(tight, text.ptr[i]);
        }
        if (tight->depth > PAY_JSON_DEPTH_MAX) {
            return false;
        }
    }
    return true;
}

static enum pay_status refuse(struct pay_err *err, enum pay_json_error error, int line, int column)
{
    const enum pay_status status = error == PAY_JSON_ERROR_MEMORY ? PAY_RETRY : PAY_REJECT;

    /* Never the parser's own text: it quotes the payload. */
    return pay_err_set(err, status, (int)error, "parse JSON", "%s at line %d column %d",
                       pay_json_error_name(error), line, column);
}

static json_t *load(const char *text, size_t len, json_error_t *error)
{
    return json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, error);
}

enum pay_status pay_json_parse(struct pay_bytes text, size_t max_bytes, struct pay_json **ret_doc,
                               struct pay_err *err)
{
    json_error_t error = {.line = 0};

    if (text.ptr == NULL || text.len == 0) {
        return refuse(err, PAY_JSON_ERROR_SYNTAX, 1, 0);
    }
    if (text.len > max_bytes) {
        return pay_err_set(err, PAY_REJECT, PAY_JSON_ERROR_TOO_LONG, "parse JSON",
                           "too long: %zu of at most %zu bytes", text.len, max_bytes);
    }
    struct tight tight = {.text = pay_mem_new(text.len, 1)};
    if (tight.text == NULL) {
        return refuse(err, PAY_JSON_ERROR_MEMORY, 1, 0);
    }
    const bool is_deep = !tighten(text, &tight);
    json_t *root = is_deep ? NULL : load(tight.text, tight.len, &error);
    if (root == NULL && !is_deep) { /* Where it is wrong, in what came. */
        root = load((const char *)text.ptr, text.len, &error);
    }
    pay_mem_free(tight.text);
    if (is_deep) {
        return pay_err_set(err, PAY_REJECT, PAY_JSON_ERROR_TOO_DEEP, "parse JSON",
                           "too deep: more than %d levels", PAY_JSON_DEPTH_MAX);
    }
    if (root == NULL) {
        return refuse(err, error_of(&error), error.line, error.column);
    }
    *ret_doc = (struct pay_json *)root;
    return PAY_OK;
}

struct pay_json *pay_json_free(struct pay_json *doc)
{
    json_decref((json_t *)doc);
    return NULL;
}

const struct pay_json_value *pay_json_root(const struct pay_json *doc)
{
    return (const struct pay_json_value *)doc;
}

const char *pay_json_error_name(enum pay_json_error error)
{
    return (unsigned)error < PAY_JSON_ERROR_COUNT ? error_names[error] : "?";
}

enum pay_json_kind pay_json_kind(const struct pay_json_value *value)
{
    static const enum pay_json_kind kinds[] = {
        [JSON_OBJECT] = PAY_JSON_OBJECT, [JSON_ARRAY] = PAY_JSON_ARRAY,
        [JSON_STRING] = PAY_JSON_STRING, [JSON_INTEGER] = PAY_JSON_INT,
        [JSON_REAL] = PAY_JSON_NUMBER,   [JSON_TRUE] = PAY_JSON_BOOL,
        [JSON_FALSE] = PAY_JSON_BOOL,    [JSON_NULL] = PAY_JSON_NULL,
    };
    return value == NULL ? PAY_JSON_ABSENT : kinds[json_typeof(of(value))];
}

bool pay_json_is_null(const struct pay_json_value *value)
{
    return pay_json_kind(value) == PAY_JSON_NULL;
}

const struct pay_json_value *pay_json_member(const struct pay_json_value *object, const char *name)
{
    return as_value(json_object_get(of(object), name));
}

const struct pay_json_value *pay_json_item(const struct pay_json_value *array, size_t index)
{
    return as_value(json_array_get(of(array), index));
}

const struct pay_json_value *pay_json_path(const struct pay_json_value *value, const char *path)
{
    while (value != NULL && *path != 0) {
        char name[NAME_MAX_BYTES];
        int64_t index = 0;
        const size_t len = strcspn(path, ".");
        const bool fits = pay_str_copy(name, sizeof name, (struct pay_str){path, len});
        PAY_ASSERT(fits); /* Paths are written in the program. */

        if (pay_json_kind(value) == PAY_JSON_ARRAY) {
            const bool is_index = pay_str_to_i64(pay_str_of(name), &index) && index >= 0;
            value = is_index ? pay_json_item(value, (size_t)index) : NULL;
        } else {
            value = pay_json_member(value, name);
        }
        path += path[len] == '.' ? len + 1 : len;
    }
    return value;
}

size_t pay_json_count(const struct pay_json_value *value)
{
    return pay_json_kind(value) == PAY_JSON_ARRAY ? json_array_size(of(value))
                                                  : json_object_size(of(value));
}

struct pay_str pay_json_str(const struct pay_json_value *value)
{
    if (pay_json_kind(value) != PAY_JSON_STRING) {
        return (struct pay_str){NULL, 0};
    }
    return (struct pay_str){json_string_value(of(value)), json_string_length(of(value))};
}

bool pay_json_int(const struct pay_json_value *value, int64_t *ret_number)
{
    _Static_assert(sizeof(json_int_t) == sizeof(int64_t), "exact integers");

    if (pay_json_kind(value) != PAY_JSON_INT) {
        return false;
    }
    *ret_number = json_integer_value(of(value));
    return true;
}

bool pay_json_bool(const struct pay_json_value *value, bool *ret_truth)
{
    if (pay_json_kind(value) != PAY_JSON_BOOL) {
        return false;
    }
    *ret_truth = json_is_true(of(value));
    return true;
}

bool pay_json_next(const struct pay_json_value *object, void **iterator, struct pay_str *ret_name,
                   const struct pay_json_value **ret_value)
{
    json_t *json = of_iterated(object);

    *iterator = *iterator == NULL ? json_object_iter(json) : json_object_iter_next(json, *iterator);
    if (*iterator == NULL) {
        return false;
    }
    *ret_name = pay_str_of(json_object_iter_key(*iterator));
    *ret_value = as_value(json_object_iter_value(*iterator));
    return true;
}
