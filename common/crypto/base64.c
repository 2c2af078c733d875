/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto/base64.h"

#include "common/base/banned.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void pay_base64_encode(struct pay_bytes bytes, struct pay_buf *out)
{
    const size_t groups = bytes.len / 3 + (bytes.len % 3 != 0 ? 1 : 0);
    /* Too many for the multiplication is too many for any buffer's max. */
    uint8_t *at = pay_buf_extend(out, groups > SIZE_MAX / 4 ? SIZE_MAX : groups * 4);
    if (at == NULL) {
        return;
    }
    for (size_t i = 0; i < bytes.len; i += 3, at += 4) {
        const size_t have = bytes.len - i < 3 ? bytes.len - i : 3;
        const unsigned bits = (unsigned)bytes.ptr[i] << 16 |
                              (have > 1 ? (unsigned)bytes.ptr[i + 1] << 8 : 0) |
                              (have > 2 ? (unsigned)bytes.ptr[i + 2] : 0);
        at[0] = (uint8_t)alphabet[bits >> 18];
        at[1] = (uint8_t)alphabet[bits >> 12 & 63];
        at[2] = (uint8_t)(have > 1 ? alphabet[bits >> 6 & 63] : '=');
        at[3] = (uint8_t)(have > 2 ? alphabet[bits & 63] : '=');
    }
}

static int value_of(char c)
{
    static const struct {
        char first, last;
        int value;
    } ranges[] = {{'A', 'Z', 0}, {'a', 'z', 26}, {'0', '9', 52}, {'+', '+', 62}, {'/', '/', 63}};

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (c >= ranges[i].first && c <= ranges[i].last) {
            return c - ranges[i].first + ranges[i].value;
        }
    }
    return -1;
}

/* Four characters to at most three bytes. @return how many, 0 when they are no group. */
static size_t decode_group(const char *text, bool is_last, uint8_t bytes[3])
{
    const size_t padding = !is_last || text[3] != '=' ? 0 : text[2] != '=' ? 1 : 2;
    unsigned bits = 0;

    for (size_t i = 0; i < 4; i++) {
        const int value = i < 4 - padding ? value_of(text[i]) : 0;
        if (value < 0) {
            return 0;
        }
        bits = bits << 6 | (unsigned)value;
    }
    if ((bits & ((1u << 8 * padding) - 1)) != 0) {
        return 0; /* Bits left over: a second text for the same bytes. */
    }
    bytes[0] = (uint8_t)(bits >> 16);
    bytes[1] = (uint8_t)(bits >> 8);
    bytes[2] = (uint8_t)bits;
    return 3 - padding;
}

bool pay_base64_decode(struct pay_str text, struct pay_buf *out)
{
    const size_t before = out->len;

    if (text.ptr == NULL || text.len % 4 != 0 || out->failed) {
        return false;
    }
    for (size_t i = 0; i < text.len; i += 4) {
        uint8_t bytes[3];
        const size_t count = decode_group(text.ptr + i, i + 4 == text.len, bytes);
        pay_buf_add(out, bytes, count);
        if (count == 0 || out->failed) {
            pay_buf_cut(out, before);
            return false;
        }
    }
    return true;
}
