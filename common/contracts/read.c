/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/read.h"

#include "common/contracts/codec.h"
#include "common/contracts/member.h"

#include <string.h>

#include "common/base/banned.h"

struct reader {
    const struct pay_check *check;
    const uint8_t *at;
    const uint8_t *end;
    struct pay_arena *arena;
    uint32_t parts; /* kind_mask of every PAY_HERE_KIND part that came. */
};

/* base: the struct that holds the node's member; not used where node->bind is NULL. */
static enum pay_status read_node(struct reader *r, const struct pay_node *node, uint8_t *base);

static size_t left(const struct reader *r)
{
    return (size_t)(r->end - r->at);
}

static enum pay_status no_memory(const struct reader *r)
{
    return pay_err_set(r->check->err, PAY_RETRY, PAY_CODEC_NO_MEMORY, r->check->op,
                       "the arena is full");
}

static enum pay_status read_long(struct reader *r, const struct pay_bind *bind, int64_t *ret_value)
{
    uint64_t zigzag = 0;

    for (unsigned shift = 0; shift < 70 && r->at < r->end; shift += 7) {
        const uint8_t byte = *r->at++;
        if (shift == 63 && byte > 1) {
            break; /* More than 64 bits. */
        }
        zigzag |= (uint64_t)(byte & 0x7fU) << shift;
        if ((byte & 0x80U) == 0) {
            *ret_value = (int64_t)(zigzag >> 1) ^ -(int64_t)(zigzag & 1);
            return PAY_OK;
        }
    }
    return pay_check_malformed(r->check, bind, "number is cut off or too long");
}

/* A length and that many bytes. */
static enum pay_status read_chunk(struct reader *r, const struct pay_bind *bind,
                                  struct pay_bytes *ret_chunk)
{
    int64_t len = 0;
    const enum pay_status status = read_long(r, bind, &len);

    if (status != PAY_OK) {
        return status;
    }
    if (len < 0 || (uint64_t)len > left(r)) {
        return pay_check_malformed(r->check, bind, "length runs over the end");
    }
    *ret_chunk = (struct pay_bytes){r->at, (size_t)len};
    r->at += len;
    return PAY_OK;
}

static enum pay_status read_boolean(struct reader *r, const struct pay_node *node, uint8_t *base)
{
    if (left(r) < 1 || *r->at > 1) {
        return pay_check_malformed(r->check, node->bind, "not a boolean");
    }
    if (node->bind != NULL) {
        pay_member_set_number(node->bind, base, *r->at);
    }
    r->at++;
    return PAY_OK;
}

static enum pay_status read_number(struct reader *r, const struct pay_node *node, uint8_t *base)
{
    int64_t value = 0;
    enum pay_status status = read_long(r, node->bind, &value);

    if (status == PAY_OK && node->type == AVRO_INT32 && (value < INT32_MIN || value > INT32_MAX)) {
        status = pay_check_malformed(r->check, node->bind, "not an int");
    }
    if (status == PAY_OK && node->bind != NULL) {
        status = pay_check_number(r->check, node->bind, value);
    }
    if (status == PAY_OK && node->bind != NULL) {
        pay_member_set_number(node->bind, base, value);
    }
    return status;
}

static enum pay_status read_string(struct reader *r, const struct pay_node *node, uint8_t *base)
{
    const struct pay_bind *bind = node->bind;
    struct pay_bytes chunk = {NULL, 0};
    enum pay_status status = read_chunk(r, bind, &chunk);

    if (status != PAY_OK || bind == NULL) {
        return status;
    }
    struct pay_str text = {(const char *)chunk.ptr, chunk.len};
    if (pay_check_drops(bind, text)) {
        return PAY_OK;
    }
    status = pay_check_text(r->check, bind, text);
    if (status == PAY_OK && bind->kind == PAY_BIND_TEXT) {
        text = pay_arena_str(r->arena, text);
        status = text.ptr == NULL ? no_memory(r) : PAY_OK;
    }
    if (status == PAY_OK) {
        pay_member_set_text(bind, base, text);
    }
    return status;
}

static enum pay_status read_bytes(struct reader *r, const struct pay_node *node, uint8_t *base)
{
    const struct pay_bind *bind = node->bind;
    struct pay_bytes chunk = {NULL, 0};
    enum pay_status status = read_chunk(r, bind, &chunk);

    if (status != PAY_OK || bind == NULL) {
        return status;
    }
    status = pay_check_bytes(r->check, bind, chunk.len);
    if (status == PAY_OK) {
        chunk = pay_arena_bytes(r->arena, chunk);
        status = chunk.ptr == NULL ? no_memory(r) : PAY_OK;
    }
    if (status == PAY_OK) {
        pay_member_set_bytes(bind, base, chunk);
    }
    return status;
}

static enum pay_status read_enum(struct reader *r, const struct pay_node *node, uint8_t *base)
{
    const struct pay_bind *bind = node->bind;
    int64_t index = 0;
    const enum pay_status status = read_long(r, bind, &index);

    if (status != PAY_OK) {
        return status;
    }
    if (index < 0 || index >= node->symbol_count) {
        return pay_check_malformed(r->check, bind, "symbol index out of range");
    }
    if (bind == NULL) {
        return PAY_OK;
    }
    const int symbol = node->to_reader[index];
    if (bind->kind == PAY_BIND_ENUM) {
        pay_member_set_number(bind, base, bind->first + symbol);
        return PAY_OK;
    }
    const struct pay_str text = pay_arena_str(r->arena, pay_str_of(node->reader_symbols[symbol]));
    pay_member_set_text(bind, base, text);
    return text.ptr == NULL ? no_memory(r) : PAY_OK;
}

static void mark_here(struct reader *r, const struct pay_bind *bind, uint8_t *base)
{
    const bool here = true;

    if (bind->here == PAY_HERE_BOOL) {
        memcpy(base + bind->here_offset, &here, sizeof here);
    } else if (bind->here == PAY_HERE_KIND) {
        r->parts |= bind->kind_mask;
    }
}

static enum pay_status read_union(struct reader *r, const struct pay_node *node, uint8_t *base)
{
    const struct pay_bind *bind = node->bind;
    int64_t index = 0;
    const enum pay_status status = read_long(r, bind, &index);

    if (status != PAY_OK) {
        return status;
    }
    if (index < 0 || (uint64_t)index >= node->child_count) {
        return pay_check_malformed(r->check, bind, "union branch out of range");
    }
    if (index != node->null_branch) {
        return read_node(r, &node->children[index], base);
    }
    if (bind == NULL) {
        return PAY_OK;
    }
    if (bind->here == PAY_HERE_ALWAYS && !bind->may_lack) {
        return pay_check_malformed(r->check, bind, "null where a value is needed");
    }
    pay_member_set_default(bind, base);
    return PAY_OK;
}

static enum pay_status read_fields(struct reader *r, const struct pay_node *node, uint8_t *base)
{
    enum pay_status status = PAY_OK;
    uint8_t *inner = node->bind == NULL ? NULL : base + node->bind->offset;

    for (size_t i = 0; i < node->missing_count; i++) {
        pay_member_set_default(node->missing[i], inner);
    }
    for (size_t i = 0; i < node->child_count && status == PAY_OK; i++) {
        status = read_node(r, &node->children[i], inner);
    }
    return status;
}

/* One signature for all readers. NOLINTNEXTLINE(readability-non-const-parameter) */
static enum pay_status read_fixed(struct reader *r, const struct pay_node *node, uint8_t *base)
{
    static const size_t sizes[] = {[AVRO_FLOAT] = 4, [AVRO_DOUBLE] = 8, [AVRO_NULL] = 0};
    const size_t size = node->type == AVRO_FIXED ? node->fixed_size : sizes[node->type];

    (void)base; /* Nothing of ours is of these types: only skipped. */
    if (size > left(r)) {
        return pay_check_malformed(r->check, node->bind, "value runs over the end");
    }
    r->at += size;
    return PAY_OK;
}

/* Where the items of one array or map go. */
struct items {
    uint8_t *memory;
    size_t count;
    size_t room;
};

/* Items come in blocks, so the final number is not known: each block moves what is there already.
 * Their number is small, and the bytes that a count promises were seen to be there. */
static enum pay_status make_room(struct reader *r, const struct pay_bind *bind, size_t more,
                                 struct items *items)
{
    if (bind == NULL || items->count + more <= items->room) {
        return PAY_OK;
    }
    const size_t max = (size_t)bind->max;
    size_t room = items->room * 2 > items->count + more ? items->room * 2 : items->count + more;
    room = room > max ? max : room;
    uint8_t *memory = pay_arena_array(r->arena, room, bind->item_size);
    if (memory == NULL) {
        return no_memory(r);
    }
    if (items->count > 0) {
        memcpy(memory, items->memory, items->count * bind->item_size);
    }
    items->memory = memory;
    items->room = room;
    return PAY_OK;
}

static bool has_key(const struct pay_bind *bind, const struct items *items, struct pay_str key)
{
    for (size_t i = 0; i < items->count; i++) {
        if (pay_str_eq(pay_member_text(bind->key, items->memory + i * bind->item_size), key)) {
            return true;
        }
    }
    return false;
}

static enum pay_status read_key(struct reader *r, const struct pay_node *map,
                                const struct items *items, uint8_t *item)
{
    const struct pay_node node = {.type = AVRO_STRING,
                                  .bind = map->bind == NULL ? NULL : map->bind->key};
    const enum pay_status status = read_string(r, &node, item);

    if (status == PAY_OK && map->bind != NULL &&
        has_key(map->bind, items, pay_member_text(map->bind->key, item))) {
        return pay_check_malformed(r->check, map->bind, "the same key twice");
    }
    return status;
}

static enum pay_status read_item(struct reader *r, const struct pay_node *node, struct items *items)
{
    enum pay_status status = PAY_OK;
    uint8_t *item =
        node->bind == NULL ? NULL : items->memory + items->count * node->bind->item_size;

    if (node->type == AVRO_MAP) {
        status = read_key(r, node, items, item);
    }
    if (status == PAY_OK) {
        status = read_node(r, &node->children[0], item);
    }
    items->count++;
    return status;
}

/* A block's count; a negative one is followed by the block's bytes. 0: the end. */
static enum pay_status read_count(struct reader *r, const struct pay_node *node, size_t *ret_count,
                                  const uint8_t **ret_end)
{
    int64_t count = 0;
    int64_t bytes = 0;
    enum pay_status status = read_long(r, node->bind, &count);

    *ret_end = NULL;
    if (status == PAY_OK && count < 0) {
        status = read_long(r, node->bind, &bytes);
        if (status == PAY_OK && (count == INT64_MIN || bytes < 0 || (uint64_t)bytes > left(r))) {
            status = pay_check_malformed(r->check, node->bind, "block runs over the end");
        }
        if (status == PAY_OK) {
            *ret_end = r->at + bytes;
            count = -count;
        }
    }
    if (status == PAY_OK) {
        *ret_count = (size_t)count;
    }
    return status;
}

static enum pay_status check_count(const struct reader *r, const struct pay_node *node,
                                   const struct items *items, size_t count)
{
    const size_t max = node->bind == NULL ? PAY_SKIP_ITEMS_MAX : (size_t)node->bind->max;
    const size_t item_bytes = node->children[0].min_bytes + (node->type == AVRO_MAP ? 1 : 0);

    if (item_bytes > 0 && count > left(r) / item_bytes) {
        return pay_check_malformed(r->check, node->bind, "more items than bytes");
    }
    return count > max - items->count ? pay_check_too_large(r->check, node->bind) : PAY_OK;
}

static enum pay_status read_block(struct reader *r, const struct pay_node *node,
                                  struct items *items, bool *ret_more)
{
    const uint8_t *end = NULL;
    size_t count = 0;
    enum pay_status status = read_count(r, node, &count, &end);

    if (status == PAY_OK) {
        status = check_count(r, node, items, count);
    }
    if (status == PAY_OK) {
        status = make_room(r, node->bind, count, items);
    }
    for (size_t i = 0; i < count && status == PAY_OK; i++) {
        status = read_item(r, node, items);
    }
    if (status == PAY_OK && end != NULL && r->at != end) {
        status = pay_check_malformed(r->check, node->bind, "block is not of its size");
    }
    *ret_more = count > 0;
    return status;
}

static enum pay_status read_items(struct reader *r, const struct pay_node *node, uint8_t *base)
{
    struct items items = {NULL, 0, 0};
    enum pay_status status = PAY_OK;
    bool more = true;

    if (node->bind != NULL && node->bind->is_inline) {
        items.memory = base + node->bind->offset;
        items.room = (size_t)node->bind->max;
    }
    while (more && status == PAY_OK) {
        status = read_block(r, node, &items, &more);
    }
    if (status == PAY_OK && node->bind != NULL) {
        if (items.count < (size_t)node->bind->min) {
            return pay_check_malformed(r->check, node->bind, "fewer items than allowed");
        }
        pay_member_set_items(node->bind, base, items.memory, items.count);
    }
    return status;
}

static enum pay_status read_node(struct reader *r, const struct pay_node *node, uint8_t *base)
{
    static enum pay_status (*const readers[AVRO_LINK])(struct reader *, const struct pay_node *,
                                                       uint8_t *) = {
        [AVRO_STRING] = read_string, [AVRO_BYTES] = read_bytes,     [AVRO_INT32] = read_number,
        [AVRO_INT64] = read_number,  [AVRO_FLOAT] = read_fixed,     [AVRO_DOUBLE] = read_fixed,
        [AVRO_NULL] = read_fixed,    [AVRO_BOOLEAN] = read_boolean, [AVRO_RECORD] = read_fields,
        [AVRO_ENUM] = read_enum,     [AVRO_FIXED] = read_fixed,     [AVRO_MAP] = read_items,
        [AVRO_ARRAY] = read_items,   [AVRO_UNION] = read_union,
    };
    const enum pay_status status = readers[node->type](r, node, base);

    if (status == PAY_OK && node->bind != NULL && base != NULL && node->type != AVRO_UNION) {
        mark_here(r, node->bind, base);
    }
    return status;
}

/* Exactly the part that the kind names must have come. */
static enum pay_status check_parts(const struct reader *r, const struct pay_bind_record *record,
                                   const uint8_t *into)
{
    for (size_t i = 0; i < record->count; i++) {
        const struct pay_bind *bind = &record->fields[i];
        if (bind->here != PAY_HERE_KIND) {
            continue;
        }
        if (pay_member_is_here(bind, into) != ((r->parts & bind->kind_mask) != 0)) {
            return pay_check_malformed(r->check, bind, "not what the kind of the record says");
        }
    }
    return PAY_OK;
}

enum pay_status pay_read_record(const struct pay_check *check, const struct pay_node *root,
                                struct pay_bytes body, struct pay_arena *arena, void *into)
{
    struct reader r = {.check = check, .at = body.ptr, .end = body.ptr + body.len, .arena = arena};
    enum pay_status status = read_node(&r, root, into);

    if (status == PAY_OK && r.at != r.end) {
        status = pay_err_set(check->err, PAY_REJECT, PAY_CODEC_MALFORMED, check->op,
                             "%zu bytes behind the record", left(&r));
    }
    return status == PAY_OK ? check_parts(&r, root->bind->record, into) : status;
}
