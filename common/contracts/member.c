/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/member.h"

#include "common/base/assert.h"

#include <string.h>

#include "common/base/banned.h"

/* Members are copied, never dereferenced as another type: an enum's width is the compiler's. */
static int get_int(const uint8_t *at)
{
    int value = 0;
    memcpy(&value, at, sizeof value);
    return value;
}

_Static_assert(sizeof(enum pay_bind_kind) == sizeof(int), "an enum is as wide as an int here");

int64_t pay_member_number(const struct pay_bind *bind, const uint8_t *base)
{
    const uint8_t *at = base + bind->offset;
    int64_t value = 0;

    if (bind->kind == PAY_BIND_LONG) {
        memcpy(&value, at, sizeof value);
        return value;
    }
    return bind->kind == PAY_BIND_BOOL ? *at != 0 : get_int(at);
}

void pay_member_set_number(const struct pay_bind *bind, uint8_t *base, int64_t value)
{
    uint8_t *at = base + bind->offset;
    const int narrow = (int)value;
    const uint8_t truth = value != 0;

    if (bind->kind == PAY_BIND_LONG) {
        memcpy(at, &value, sizeof value);
    } else if (bind->kind == PAY_BIND_BOOL) {
        *at = truth;
    } else {
        memcpy(at, &narrow, sizeof narrow);
    }
}

struct pay_str pay_member_text(const struct pay_bind *bind, const uint8_t *base)
{
    struct pay_str text = {NULL, 0};

    if (bind->kind == PAY_BIND_CHARS) {
        const char *chars = (const char *)base + bind->offset;
        return (struct pay_str){chars, strnlen(chars, (size_t)bind->max + 1)};
    }
    memcpy(&text, base + bind->offset, sizeof text);
    return text;
}

void pay_member_set_text(const struct pay_bind *bind, uint8_t *base, struct pay_str text)
{
    if (bind->kind == PAY_BIND_CHARS) {
        PAY_ASSERT(text.len <= (size_t)bind->max);
        memset(base + bind->offset, 0, (size_t)bind->max + 1);
        memcpy(base + bind->offset, text.len == 0 ? "" : text.ptr, text.len);
        return;
    }
    memcpy(base + bind->offset, &text, sizeof text);
}

struct pay_bytes pay_member_bytes(const struct pay_bind *bind, const uint8_t *base)
{
    struct pay_bytes bytes = {NULL, 0};
    memcpy(&bytes, base + bind->offset, sizeof bytes);
    return bytes;
}

void pay_member_set_bytes(const struct pay_bind *bind, uint8_t *base, struct pay_bytes bytes)
{
    memcpy(base + bind->offset, &bytes, sizeof bytes);
}

size_t pay_member_count(const struct pay_bind *bind, const uint8_t *base)
{
    size_t count = 0;
    memcpy(&count, base + bind->count_offset, sizeof count);
    return count;
}

const uint8_t *pay_member_items(const struct pay_bind *bind, const uint8_t *base)
{
    const uint8_t *items = base + bind->offset;
    if (!bind->is_inline) {
        memcpy((void *)&items, base + bind->offset, sizeof items);
    }
    return items;
}

void pay_member_set_items(const struct pay_bind *bind, uint8_t *base, void *items, size_t count)
{
    if (!bind->is_inline) {
        memcpy(base + bind->offset, (void *)&items, sizeof items);
    }
    memcpy(base + bind->count_offset, &count, sizeof count);
}

static bool value_is_here(const struct pay_bind *bind, const uint8_t *base)
{
    if (bind->kind == PAY_BIND_TEXT || bind->kind == PAY_BIND_SYMBOL) {
        return pay_member_text(bind, base).ptr != NULL;
    }
    if (bind->kind == PAY_BIND_BYTES) {
        return pay_member_bytes(bind, base).ptr != NULL;
    }
    if (bind->kind == PAY_BIND_CHARS) {
        return pay_member_text(bind, base).len > 0;
    }
    return pay_member_number(bind, base) != bind->null_value;
}

bool pay_member_is_here(const struct pay_bind *bind, const uint8_t *base)
{
    const uint8_t *at = base + bind->here_offset;
    const void *ptr = NULL;

    switch (bind->here) {
    case PAY_HERE_VALUE:
        return value_is_here(bind, base);
    case PAY_HERE_BOOL:
        return *at != 0;
    case PAY_HERE_PTR:
        memcpy((void *)&ptr, at, sizeof ptr);
        return ptr != NULL;
    case PAY_HERE_KIND: {
        const int kind = get_int(at);
        return kind >= 0 && kind < 32 && (bind->kind_mask >> kind & 1U) != 0;
    }
    case PAY_HERE_ALWAYS:
    case PAY_HERE_COUNT:
        break;
    }
    return true;
}

static bool is_number(enum pay_bind_kind kind)
{
    return kind == PAY_BIND_BOOL || kind == PAY_BIND_FLAG || kind == PAY_BIND_INT ||
           kind == PAY_BIND_LONG || kind == PAY_BIND_ENUM;
}

void pay_member_set_null(const struct pay_bind *bind, uint8_t *base)
{
    /* Everything else is null by the zeros that every struct starts with, and a part that is not
     * there may share its members with one that is. */
    if (bind->here == PAY_HERE_VALUE && is_number(bind->kind)) {
        pay_member_set_number(bind, base, bind->null_value);
    }
}

void pay_member_set_default(const struct pay_bind *bind, uint8_t *base)
{
    if (bind->here != PAY_HERE_ALWAYS) {
        pay_member_set_null(bind, base);
    } else if (is_number(bind->kind)) {
        pay_member_set_number(bind, base, bind->by_default);
    } else if (bind->kind == PAY_BIND_TEXT) {
        pay_member_set_text(bind, base, PAY_STR(""));
    }
}
