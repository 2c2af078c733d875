/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/buf.h"

#include "common/base/assert.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/banned.h"

#define FIRST_CAP 256u

struct pay_buf pay_buf_make(size_t max)
{
    return (struct pay_buf){.max = max};
}

void pay_buf_free(struct pay_buf *buf)
{
    free(buf->data);
    *buf = (struct pay_buf){.max = buf->max};
}

void pay_buf_reset(struct pay_buf *buf)
{
    buf->len = 0;
    buf->failed = buf->starved = false;
    if (buf->data != NULL) {
        buf->data[0] = 0;
    }
}

/* Room for extra more bytes and the terminator, or failed. */
static bool reserve(struct pay_buf *buf, size_t extra)
{
    if (buf->failed || buf->len > buf->max || extra > buf->max - buf->len ||
        buf->len + extra == SIZE_MAX) {
        buf->failed = true;
        return false;
    }
    const size_t need = buf->len + extra + 1;
    if (need <= buf->cap) {
        return true;
    }
    size_t cap = buf->cap < FIRST_CAP ? FIRST_CAP : buf->cap;
    while (cap < need) {
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    }
    if (cap - 1 > buf->max) {
        cap = buf->max + 1;
    }
    uint8_t *data = realloc(buf->data, cap);
    if (data == NULL) {
        buf->failed = buf->starved = true;
        return false;
    }
    buf->data = data;
    buf->cap = cap;
    return true;
}

uint8_t *pay_buf_extend(struct pay_buf *buf, size_t len)
{
    if (!reserve(buf, len)) {
        return NULL;
    }
    uint8_t *added = buf->data + buf->len;
    buf->len += len;
    buf->data[buf->len] = 0;
    return added;
}

void pay_buf_cut(struct pay_buf *buf, size_t len)
{
    PAY_ASSERT(len <= buf->len);
    buf->len = len;
    if (buf->data != NULL) {
        buf->data[len] = 0;
    }
}

void pay_buf_add(struct pay_buf *buf, const void *data, size_t len)
{
    uint8_t *added = pay_buf_extend(buf, len);
    if (added != NULL && len > 0) {
        memcpy(added, data, len);
    }
}

void pay_buf_add_c(struct pay_buf *buf, const char *text)
{
    pay_buf_add(buf, text, strlen(text));
}

void pay_buf_add_str(struct pay_buf *buf, struct pay_str text)
{
    pay_buf_add(buf, text.ptr, text.len);
}

void pay_buf_add_char(struct pay_buf *buf, char c)
{
    pay_buf_add(buf, &c, 1);
}

void pay_buf_printf(struct pay_buf *buf, const char *fmt, ...)
{
    va_list args;
    va_list again;

    va_start(args, fmt);
    va_copy(again, args);
    const int len = vsnprintf(NULL, 0, fmt, args);
    if (len < 0) {
        buf->failed = true;
    } else if (reserve(buf, (size_t)len)) {
        (void)vsnprintf((char *)buf->data + buf->len, (size_t)len + 1, fmt, again);
        buf->len += (size_t)len;
    }
    va_end(again);
    va_end(args);
}

static void add_json_ascii(struct pay_buf *buf, char c)
{
    static const char *const short_forms[] = {
        ['"'] = "\\\"", ['\\'] = "\\\\", ['\b'] = "\\b", ['\f'] = "\\f",
        ['\n'] = "\\n", ['\r'] = "\\r",  ['\t'] = "\\t",
    };
    const unsigned char at = (unsigned char)c;
    if (at < sizeof short_forms / sizeof short_forms[0] && short_forms[at] != NULL) {
        pay_buf_add_c(buf, short_forms[at]);
    } else if (at < 0x20 || at == 0x7f) {
        pay_buf_printf(buf, "\\u%04x", at);
    } else {
        pay_buf_add_char(buf, c);
    }
}

/* How much of it stands in a JSON string as it is: nearly always all. */
static size_t plain_len(struct pay_str text)
{
    size_t len = 0;

    while (len < text.len && text.ptr[len] >= 0x20 && text.ptr[len] < 0x7f &&
           text.ptr[len] != '"' && text.ptr[len] != '\\') {
        len++;
    }
    return len;
}

void pay_buf_add_json_str(struct pay_buf *buf, struct pay_str text)
{
    const size_t before = buf->len;

    if (text.ptr == NULL) {
        pay_buf_add_c(buf, "null");
        return;
    }
    pay_buf_add_char(buf, '"');
    for (size_t i = 0; i < text.len;) {
        const size_t plain = plain_len((struct pay_str){text.ptr + i, text.len - i});
        if (plain > 0) {
            pay_buf_add(buf, text.ptr + i, plain);
            i += plain;
            continue;
        }
        const size_t len =
            pay_utf8_len((struct pay_bytes){(const uint8_t *)text.ptr + i, text.len - i});
        if (len == 0) {
            pay_buf_add_c(buf, "\\ufffd"); /* Not UTF-8: the sign for "was unreadable". */
            i++;
        } else if (len == 1) {
            add_json_ascii(buf, text.ptr[i++]);
        } else {
            pay_buf_add(buf, text.ptr + i, len);
            i += len;
        }
    }
    pay_buf_add_char(buf, '"');
    if (buf->failed) { /* Half a string would be no JSON. */
        pay_buf_cut(buf, before);
    }
}

struct pay_str pay_buf_str(const struct pay_buf *buf)
{
    return buf->data == NULL ? PAY_STR("") : (struct pay_str){(const char *)buf->data, buf->len};
}

struct pay_bytes pay_buf_bytes(const struct pay_buf *buf)
{
    static const uint8_t none[1] = {0};
    return buf->data == NULL ? (struct pay_bytes){none, 0}
                             : (struct pay_bytes){buf->data, buf->len};
}
