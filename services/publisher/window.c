/* SPDX-License-Identifier: Apache-2.0 */
#include "services/publisher/window.h"

#include "common/base/assert.h"
#include "common/base/hash.h"
#include "common/base/mem.h"

#include <string.h>

#include "common/base/banned.h"

#define KEY_SLOTS ((size_t)2 * PAY_WINDOW_ROWS_MAX) /* A power of two; at most half full. */

void pay_outbox_row_free(struct pay_outbox_row *row)
{
    pay_mem_free(row);
}

static size_t bytes_of(const struct pay_outbox_row *row)
{
    size_t bytes = row->key.len + 1 + row->payload.len;
    for (size_t i = 0; i < 2 * row->header_count; i++) {
        bytes += row->headers[i].len + 1;
    }
    return bytes;
}

static struct pay_str put(char **at, struct pay_str text)
{
    struct pay_str copy = {*at, text.len};
    if (text.len > 0) {
        memcpy(*at, text.ptr, text.len);
    }
    (*at)[text.len] = '\0';
    *at += text.len + 1;
    return copy;
}

/* One allocation: the row, then its text. */
static struct pay_outbox_row *copy_of(const struct pay_outbox_row *row)
{
    struct pay_outbox_row *copy = pay_mem_new(1, sizeof *copy + bytes_of(row));
    if (copy == NULL) {
        return NULL;
    }
    *copy = *row;
    char *at = (char *)(copy + 1);
    copy->key = put(&at, row->key);
    for (size_t i = 0; i < 2 * row->header_count; i++) {
        copy->headers[i] = put(&at, row->headers[i]);
    }
    copy->payload = (struct pay_bytes){(const uint8_t *)at, row->payload.len};
    if (row->payload.len > 0) {
        memcpy(at, row->payload.ptr, row->payload.len);
    }
    copy->state = PAY_ROW_WAITING;
    copy->key_hash = pay_hash_fnv1a(
        PAY_FNV_START, (struct pay_bytes){(const uint8_t *)row->key.ptr, row->key.len});
    return copy;
}

enum pay_status pay_window_add(struct pay_window *window, const struct pay_outbox_row *row,
                               struct pay_err *err)
{
    PAY_ASSERT(window->count < PAY_WINDOW_ROWS_MAX);
    PAY_ASSERT(row->header_count <= PAY_ROW_HEADERS_MAX);
    struct pay_outbox_row *copy = copy_of(row);
    if (copy == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "window", "out of memory");
    }
    size_t at = window->count;
    while (at > 0 && window->rows[at - 1]->id > copy->id) {
        window->rows[at] = window->rows[at - 1];
        at--;
    }
    window->rows[at] = copy;
    window->count++;
    if (copy->id > window->cursor) {
        window->cursor = copy->id;
    }
    return PAY_OK;
}

/* Two keys with one hash only wait for each other: order is kept, nothing is lost. */
static bool first_of_key(uint64_t *slots, uint64_t hash)
{
    const uint64_t mark = hash | 1U; /* 0 is an empty slot. */
    size_t slot = (size_t)(hash >> 1) & (KEY_SLOTS - 1);
    while (slots[slot] != 0) {
        if (slots[slot] == mark) {
            return false;
        }
        slot = (slot + 1) & (KEY_SLOTS - 1);
    }
    slots[slot] = mark;
    return true;
}

size_t pay_window_ready(struct pay_window *window, struct pay_outbox_row **ret_rows, size_t cap)
{
    uint64_t slots[KEY_SLOTS];
    memset(slots, 0, sizeof slots);
    size_t count = 0;
    for (size_t i = 0; i < window->count && count < cap; i++) {
        struct pay_outbox_row *row = window->rows[i];
        if (row->state == PAY_ROW_DELIVERED) {
            continue;
        }
        if (first_of_key(slots, row->key_hash) && row->state == PAY_ROW_WAITING) {
            ret_rows[count++] = row;
        }
    }
    return count;
}

size_t pay_window_drop(struct pay_window *window, enum pay_row_state state)
{
    PAY_ASSERT(state != PAY_ROW_IN_FLIGHT);
    size_t kept = 0;
    const size_t before = window->count;
    for (size_t i = 0; i < before; i++) {
        if (window->rows[i]->state == state) {
            pay_outbox_row_free(window->rows[i]);
        } else {
            window->rows[kept++] = window->rows[i];
        }
    }
    window->count = kept;
    return before - kept;
}

void pay_window_clear(struct pay_window *window)
{
    for (size_t i = 0; i < window->count; i++) {
        if (window->rows[i]->state == PAY_ROW_IN_FLIGHT) {
            window->rows[i]->orphaned = true;
        } else {
            pay_outbox_row_free(window->rows[i]);
        }
    }
    *window = (struct pay_window){0};
}
