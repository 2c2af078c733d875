/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/str.h"

#include <string.h>

#include "common/base/banned.h"

struct pay_str pay_str_of(const char *cstr)
{
    return (struct pay_str){cstr, cstr == NULL ? 0 : strlen(cstr)};
}

static bool same(const void *a, size_t a_len, const void *b, size_t b_len)
{
    if (a == NULL || b == NULL) {
        return a == b; /* Absent equals absent only. */
    }
    return a_len == b_len && memcmp(a, b, a_len) == 0;
}

bool pay_str_eq(struct pay_str a, struct pay_str b)
{
    return same(a.ptr, a.len, b.ptr, b.len);
}

bool pay_str_eq_c(struct pay_str a, const char *b)
{
    return pay_str_eq(a, pay_str_of(b));
}

bool pay_bytes_eq(struct pay_bytes a, struct pay_bytes b)
{
    return same(a.ptr, a.len, b.ptr, b.len);
}

bool pay_str_starts(struct pay_str text, const char *prefix)
{
    const size_t len = strlen(prefix);
    return text.ptr != NULL && text.len >= len && memcmp(text.ptr, prefix, len) == 0;
}

bool pay_str_copy(char *dst, size_t dst_size, struct pay_str text)
{
    if (dst_size == 0) {
        return false;
    }
    dst[0] = 0;
    if (text.ptr == NULL || text.len >= dst_size) {
        return false;
    }
    memcpy(dst, text.ptr, text.len);
    dst[text.len] = 0;
    return true;
}

bool pay_str_to_i64(struct pay_str text, int64_t *ret_value)
{
    const bool is_negative = text.len > 0 && text.ptr[0] == '-';
    const size_t first = is_negative ? 1 : 0;
    int64_t value = 0; /* Kept negative: INT64_MIN has no positive twin. */

    if (text.len == first) {
        return false;
    }
    for (size_t i = first; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
        const int digit = text.ptr[i] - '0';
        if (value < (INT64_MIN + digit) / 10) {
            return false;
        }
        value = value * 10 - digit;
    }
    if (!is_negative && value == INT64_MIN) {
        return false;
    }
    *ret_value = is_negative ? value : -value;
    return true;
}

void pay_hex_encode(struct pay_bytes bytes, char *dst)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < bytes.len; i++) {
        *dst++ = digits[bytes.ptr[i] >> 4];
        *dst++ = digits[bytes.ptr[i] & 15];
    }
    *dst = 0;
}

static int nibble(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool pay_hex_decode(struct pay_str text, uint8_t *dst, size_t dst_size)
{
    if (text.ptr == NULL || text.len % 2 != 0 || text.len / 2 != dst_size) {
        return false;
    }
    for (size_t i = 0; i < dst_size; i++) {
        const int high = nibble(text.ptr[2 * i]);
        const int low = nibble(text.ptr[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        dst[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* Unicode 15, table 3-7: the well-formed byte sequences. */
static const struct {
    uint8_t first_min, first_max;
    uint8_t second_min, second_max;
    size_t len;
} forms[] = {
    {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
    {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
    {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

static bool follows(const uint8_t *at, size_t form)
{
    if (forms[form].len >= 2 &&
        (at[1] < forms[form].second_min || at[1] > forms[form].second_max)) {
        return false;
    }
    for (size_t i = 2; i < forms[form].len; i++) {
        if (at[i] < 0x80 || at[i] > 0xbf) {
            return false;
        }
    }
    return true;
}

size_t pay_utf8_len(struct pay_bytes bytes)
{
    for (size_t form = 0; bytes.len > 0 && form < sizeof forms / sizeof forms[0]; form++) {
        if (bytes.ptr[0] < forms[form].first_min || bytes.ptr[0] > forms[form].first_max) {
            continue;
        }
        return bytes.len >= forms[form].len && follows(bytes.ptr, form) ? forms[form].len : 0;
    }
    return 0;
}

bool pay_utf8_valid(struct pay_bytes bytes)
{
    for (size_t i = 0; i < bytes.len;) {
        if (bytes.ptr[i] < 0x80) {
            i++;
            continue;
        }
        const size_t len = pay_utf8_len((struct pay_bytes){bytes.ptr + i, bytes.len - i});
        if (len == 0) {
            return false;
        }
        i += len;
    }
    return true;
}
