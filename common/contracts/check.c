/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/check.h"

#include "common/contracts/codec.h"
#include "common/contracts/headers.h"

#include <string.h>

#include "common/base/banned.h"

enum pay_status pay_check_malformed(const struct pay_check *check, const struct pay_bind *bind,
                                    const char *why)
{
    return pay_err_set(check->err, PAY_REJECT, PAY_CODEC_MALFORMED, check->op, "field '%s': %s",
                       bind == NULL ? "?" : bind->name, why);
}

enum pay_status pay_check_too_large(const struct pay_check *check, const struct pay_bind *bind)
{
    return pay_err_set(check->err, PAY_REJECT, PAY_CODEC_TOO_LARGE, check->op,
                       "field '%s' is above its maximum", bind == NULL ? "?" : bind->name);
}

static bool is_code_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool all_chars(struct pay_str text, bool (*is_good)(char c))
{
    for (size_t i = 0; i < text.len; i++) {
        if (!is_good(text.ptr[i])) {
            return false;
        }
    }
    return true;
}

static bool follows_rule(enum pay_text_rule rule, struct pay_str text)
{
    static bool (*const chars[PAY_RULE_COUNT])(char) = {
        [PAY_RULE_CODE] = is_code_char,
        [PAY_RULE_CURRENCY] = is_upper,
    };
    return chars[rule] == NULL || all_chars(text, chars[rule]);
}

enum pay_status pay_check_text(const struct pay_check *check, const struct pay_bind *bind,
                               struct pay_str text)
{
    const struct pay_bytes bytes = {(const uint8_t *)text.ptr, text.len};

    if (text.len > (size_t)bind->max) {
        return pay_check_too_large(check, bind);
    }
    if (text.len < (size_t)bind->min) {
        return pay_check_malformed(check, bind, "shorter than allowed");
    }
    if (!pay_utf8_valid(bytes) || memchr(text.ptr, '\0', text.len) != NULL) {
        return pay_check_malformed(check, bind, "not UTF-8, or holds a NUL");
    }
    if (!follows_rule(bind->rule, text)) {
        return pay_check_malformed(check, bind, "has a character that is not allowed");
    }
    return PAY_OK;
}

enum pay_status pay_check_bytes(const struct pay_check *check, const struct pay_bind *bind,
                                size_t len)
{
    if (len > (size_t)bind->max) {
        return pay_check_too_large(check, bind);
    }
    return len < (size_t)bind->min ? pay_check_malformed(check, bind, "shorter than allowed")
                                   : PAY_OK;
}

enum pay_status pay_check_number(const struct pay_check *check, const struct pay_bind *bind,
                                 int64_t value)
{
    return value < bind->min || value > bind->max
               ? pay_check_malformed(check, bind, "number out of range")
               : PAY_OK;
}

bool pay_check_drops(const struct pay_bind *bind, struct pay_str text)
{
    return bind->rule == PAY_RULE_TRACE && !pay_traceparent_valid(text);
}
