/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file json.h
 * @brief Read JSON that others wrote, with bounds on everything. Writing is done with struct
 * pay_buf.
 *
 * Refused: not exactly one value of RFC 8259, more than max_bytes, deeper than PAY_JSON_DEPTH_MAX,
 * a member twice in one object, invalid UTF-8, NUL in a string, integers beyond int64.
 * A number with a fraction or an exponent ("1.0", "1e3") is read as kind NUMBER and no accessor
 * gives its value: where an integer or money stands, that is a refusal and never rounded.
 *
 * Ownership: values and strings are borrowed from the document and end with pay_json_free().
 * Threads: a document is used by one thread at a time. Failure: PAY_REJECT with what and where.
 *
 *     struct pay_json *doc = NULL;
 *     status = pay_json_parse(body, PAY_BODY_MAX, &doc, err);
 *     const struct pay_json_value *object = pay_json_path(pay_json_root(doc), "data.object");
 *     if (!pay_json_int(pay_json_member(object, "amount"), &amount_minor)) { refuse }
 */
#ifndef PAY_JSON_JSON_H
#define PAY_JSON_JSON_H

#include "common/base/err.h"
#include "common/base/str.h"

#define PAY_JSON_DEPTH_MAX 32 /**< Arrays and objects inside each other. */

enum pay_json_kind {
    PAY_JSON_ABSENT, /**< No such member or item: what a NULL value is. */
    PAY_JSON_NULL,
    PAY_JSON_BOOL,
    PAY_JSON_INT,
    PAY_JSON_NUMBER, /**< Has a fraction or an exponent; its value is not readable. */
    PAY_JSON_STRING,
    PAY_JSON_ARRAY,
    PAY_JSON_OBJECT,
    PAY_JSON_KIND_COUNT
};

/** Why a text was refused: pay_err.code of pay_json_parse(). */
enum pay_json_error {
    PAY_JSON_ERROR_NONE,
    PAY_JSON_ERROR_TOO_LONG,
    PAY_JSON_ERROR_TOO_DEEP,
    PAY_JSON_ERROR_DUPLICATE,
    PAY_JSON_ERROR_UTF8,
    PAY_JSON_ERROR_NUL,
    PAY_JSON_ERROR_RANGE,  /**< A number beyond what can be held. */
    PAY_JSON_ERROR_SYNTAX, /**< Also: empty, cut short, or something behind the value. */
    PAY_JSON_ERROR_MEMORY, /**< The one class that is PAY_RETRY. */
    PAY_JSON_ERROR_COUNT
};

struct pay_json;       /**< One parsed text. */
struct pay_json_value; /**< Borrowed; NULL means absent, and every accessor takes NULL. */

PAY_MUST_CHECK enum pay_status pay_json_parse(struct pay_bytes text, size_t max_bytes,
                                              struct pay_json **ret_doc, struct pay_err *err);
/** @return always NULL; copes with NULL. */
struct pay_json *pay_json_free(struct pay_json *doc);
const struct pay_json_value *pay_json_root(const struct pay_json *doc);
/** @return static text such as "duplicate member"; never NULL. */
const char *pay_json_error_name(enum pay_json_error error);

enum pay_json_kind pay_json_kind(const struct pay_json_value *value);
/** True for JSON null alone, false for absent. */
bool pay_json_is_null(const struct pay_json_value *value);
/** @return NULL when @p object is no object or has no such member. */
const struct pay_json_value *pay_json_member(const struct pay_json_value *object, const char *name);
/** @return NULL when @p array is no array or shorter. */
const struct pay_json_value *pay_json_item(const struct pay_json_value *array, size_t index);
/** Members one after the other: "data.object.id". A name that is all digits is an array's index. */
const struct pay_json_value *pay_json_path(const struct pay_json_value *value, const char *path);
/** Items of an array, members of an object, else 0. */
size_t pay_json_count(const struct pay_json_value *value);

/** @return absent when @p value is no string. NUL-terminated, no NUL inside, valid UTF-8. */
struct pay_str pay_json_str(const struct pay_json_value *value);
/** @return false when @p value is no integer; then *ret_number is untouched. */
PAY_MUST_CHECK bool pay_json_int(const struct pay_json_value *value, int64_t *ret_number);
PAY_MUST_CHECK bool pay_json_bool(const struct pay_json_value *value, bool *ret_truth);

/**
 * Members of an object in the order of the text; start with *iterator = NULL.
 * @return false at the end. @p ret_name as pay_json_str().
 */
bool pay_json_next(const struct pay_json_value *object, void **iterator, struct pay_str *ret_name,
                   const struct pay_json_value **ret_value);

#endif /* PAY_JSON_JSON_H */
