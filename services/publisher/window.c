/* SPDX-License-Identifier: Apache-2.0 */
#include "services/publisher/window.h"

#include "common/base/assert.h"
#include "common/base/hash.h"
#include "common/base/mem.h"

#include <string.h>

#include "common/base/banned.h"

#define KEY_SLOTS_MAX ((size_t)2 * PAY_WINDOW_ROWS_MAX) /* A power of two. */

/* Rows that came together. One allocation for each row, and its end in another order, cost more
 * than all that is done with it. */
struct pay_row_block {
    size_t left; /* Rows not freed. */
    struct pay_outbox_row rows[];
};

void pay_outbox_row_free(struct pay_outbox_row *row)
{
    struct pay_row_block *block = row->block;
    PAY_ASSERT(block->left > 0);
    if (--block->left == 0) {
        pay_mem_free(block);
    }
}

static size_t bytes_of(const struct pay_outbox_row *row)
{
    size_t bytes = sizeof *row + 2 * row->header_count * sizeof *row->headers + row->key.len + 1 +
                   row->payload.len;
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

static void copy_row(struct pay_outbox_row *copy, const struct pay_outbox_row *row,
                     struct pay_str **headers, char **at)
{
    *copy = *row;
    copy->bytes = bytes_of(row);
    copy->key = put(at, row->key);
    copy->headers = *headers;
    for (size_t i = 0; i < 2 * row->header_count; i++) {
        (*headers)[i] = put(at, row->headers[i]);
    }
    *headers += 2 * row->header_count;
    copy->payload = (struct pay_bytes){(const uint8_t *)*at, row->payload.len};
    if (row->payload.len > 0) {
        memcpy(*at, row->payload.ptr, row->payload.len);
    }
    *at += row->payload.len;
    copy->state = PAY_ROW_WAITING;
    copy->key_hash = pay_hash_fnv1a(
        PAY_FNV_START, (struct pay_bytes){(const uint8_t *)row->key.ptr, row->key.len});
}

/* The rows, their headers, then the text of both. */
static struct pay_row_block *copy_of(const struct pay_outbox_row *rows, size_t count)
{
    size_t bytes = sizeof(struct pay_row_block);
    size_t headers = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += bytes_of(&rows[i]);
        headers += 2 * rows[i].header_count;
    }
    struct pay_row_block *block = pay_mem_new(1, bytes);
    if (block == NULL) {
        return NULL;
    }
    struct pay_str *next_header = (struct pay_str *)(block->rows + count);
    char *at = (char *)(next_header + headers);
    block->left = count;
    for (size_t i = 0; i < count; i++) {
        copy_row(&block->rows[i], &rows[i], &next_header, &at);
        block->rows[i].block = block;
    }
    return block;
}

static void insert(struct pay_window *window, struct pay_outbox_row *row)
{
    size_t at = window->count;
    while (at > 0 && window->rows[at - 1]->id > row->id) {
        window->rows[at] = window->rows[at - 1];
        at--;
    }
    window->rows[at] = row;
    window->count++;
    window->waiting++;
    window->bytes += row->bytes;
    if (row->id > window->cursor) {
        window->cursor = row->id;
    }
}

enum pay_status pay_window_add(struct pay_window *window, const struct pay_outbox_row *rows,
                               size_t count, struct pay_err *err)
{
    PAY_ASSERT(count <= PAY_WINDOW_ADD_MAX && window->count + count <= PAY_WINDOW_ROWS_MAX);
    if (count == 0) {
        return PAY_OK;
    }
    struct pay_row_block *block = copy_of(rows, count);
    if (block == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "window", "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        insert(window, &block->rows[i]);
    }
    return PAY_OK;
}

/* Two keys with one hash only wait for each other: order is kept, nothing is lost. */
static bool first_of_key(uint64_t *slots, size_t slot_count, uint64_t hash)
{
    const uint64_t mark = hash | 1U; /* 0 is an empty slot. */
    size_t slot = (size_t)(hash >> 1) & (slot_count - 1);
    while (slots[slot] != 0) {
        if (slots[slot] == mark) {
            return false;
        }
        slot = (slot + 1) & (slot_count - 1);
    }
    slots[slot] = mark;
    return true;
}

size_t pay_window_ready(struct pay_window *window, struct pay_outbox_row **ret_rows, size_t cap)
{
    uint64_t slots[KEY_SLOTS_MAX];
    size_t slot_count = 16;
    size_t count = 0;
    while (slot_count < 2 * window->count) { /* At most half full. */
        slot_count *= 2;
    }
    memset(slots, 0, slot_count * sizeof slots[0]);
    for (size_t i = 0; i < window->count && count < cap; i++) {
        struct pay_outbox_row *row = window->rows[i];
        if (row->state == PAY_ROW_DELIVERED) {
            continue;
        }
        if (first_of_key(slots, slot_count, row->key_hash) && row->state == PAY_ROW_WAITING) {
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
            window->bytes -= window->rows[i]->bytes;
            window->waiting -= state == PAY_ROW_WAITING ? 1 : 0;
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
