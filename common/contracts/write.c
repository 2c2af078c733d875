/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/write.h"

#include "common/contracts/codec.h"
#include "common/contracts/member.h"

#include <errno.h>
#include <string.h>

#include "common/base/banned.h"

/* --- What a node's value is, the same for measuring and for avro-c ------------------------- */

/* Is there a value? Not for a field of an older schema that the struct no longer has. */
static bool is_here(const struct pay_node *node, const uint8_t *base)
{
    const struct pay_bind *bind = node->bind;

    return bind != NULL && pay_member_is_here(bind, base) &&
           !(bind->rule == PAY_RULE_TRACE && pay_check_drops(bind, pay_member_text(bind, base)));
}

static int branch_of(const struct pay_node *node, const uint8_t *base)
{
    return is_here(node, base) ? node->value_branch : node->null_branch;
}

static size_t count_of(const struct pay_node *node, const uint8_t *base)
{
    return node->bind == NULL ? 0 : pay_member_count(node->bind, base);
}

static const uint8_t *item_of(const struct pay_node *node, const uint8_t *base, size_t index)
{
    return pay_member_items(node->bind, base) + index * node->bind->item_size;
}

/* The current schema's symbol index of a member that holds the symbol's text; -1: none. */
static int64_t find_symbol(const struct pay_node *node, struct pay_str text)
{
    for (int i = 0; text.ptr != NULL && i < node->reader_symbol_count; i++) {
        if (pay_str_eq_c(text, node->reader_symbols[i])) {
            return i;
        }
    }
    return -1;
}

/* The writer's symbol index; -1: there is none. */
static int symbol_of(const struct pay_node *node, const uint8_t *base)
{
    const struct pay_bind *bind = node->bind;
    const int64_t symbol = bind->kind == PAY_BIND_ENUM
                               ? pay_member_number(bind, base) - bind->first
                               : find_symbol(node, pay_member_text(bind, base));

    return symbol < 0 || symbol >= node->reader_symbol_count ? -1 : node->from_reader[symbol];
}

/* --- Measuring ------------------------------------------------------------------------------ */

struct measure {
    const struct pay_check *check;
    size_t bytes;
};

static enum pay_status measure_node(struct measure *m, const struct pay_node *node,
                                    const uint8_t *base);

static void add_long(struct measure *m, int64_t value)
{
    uint64_t zigzag = ((uint64_t)value << 1) ^ (0 - ((uint64_t)value >> 63));

    do {
        m->bytes++;
        zigzag >>= 7;
    } while (zigzag != 0);
}

static void add_chunk(struct measure *m, size_t len)
{
    add_long(m, (int64_t)len);
    m->bytes += len;
}

static enum pay_status measure_number(struct measure *m, const struct pay_node *node,
                                      const uint8_t *base)
{
    const int64_t value = pay_member_number(node->bind, base);
    enum pay_status status = pay_check_number(m->check, node->bind, value);

    if (status == PAY_OK && node->type == AVRO_INT32 && (value < INT32_MIN || value > INT32_MAX)) {
        status = pay_check_malformed(m->check, node->bind, "number out of range");
    }
    add_long(m, value);
    return status;
}

static enum pay_status measure_boolean(struct measure *m, const struct pay_node *node,
                                       const uint8_t *base)
{
    m->bytes++;
    return pay_check_number(m->check, node->bind, pay_member_number(node->bind, base));
}

static enum pay_status measure_string(struct measure *m, const struct pay_node *node,
                                      const uint8_t *base)
{
    const struct pay_str text = pay_member_text(node->bind, base);

    if (text.ptr == NULL) {
        return pay_check_malformed(m->check, node->bind, "is missing");
    }
    add_chunk(m, text.len);
    return pay_check_text(m->check, node->bind, text);
}

static enum pay_status measure_bytes(struct measure *m, const struct pay_node *node,
                                     const uint8_t *base)
{
    const struct pay_bytes bytes = pay_member_bytes(node->bind, base);

    if (bytes.ptr == NULL) {
        return pay_check_malformed(m->check, node->bind, "is missing");
    }
    add_chunk(m, bytes.len);
    return pay_check_bytes(m->check, node->bind, bytes.len);
}

static enum pay_status measure_enum(struct measure *m, const struct pay_node *node,
                                    const uint8_t *base)
{
    const int symbol = symbol_of(node, base);

    if (symbol < 0) {
        return pay_check_malformed(m->check, node->bind, "has no such symbol");
    }
    add_long(m, symbol);
    return PAY_OK;
}

static enum pay_status measure_fields(struct measure *m, const struct pay_node *node,
                                      const uint8_t *base)
{
    enum pay_status status = PAY_OK;

    for (size_t i = 0; i < node->child_count && status == PAY_OK; i++) {
        status = measure_node(m, &node->children[i], base + node->bind->offset);
    }
    return status;
}

static enum pay_status measure_union(struct measure *m, const struct pay_node *node,
                                     const uint8_t *base)
{
    const int branch = branch_of(node, base);

    if (branch < 0) {
        return pay_check_malformed(m->check, node->bind, "cannot be null");
    }
    add_long(m, branch);
    return branch == node->null_branch ? PAY_OK : measure_node(m, &node->children[branch], base);
}

static enum pay_status measure_key(struct measure *m, const struct pay_node *node,
                                   const uint8_t *base, size_t index)
{
    const struct pay_bind *bind = node->bind;
    const struct pay_str key = pay_member_text(bind->key, item_of(node, base, index));

    if (key.ptr == NULL) {
        return pay_check_malformed(m->check, bind, "a key is missing");
    }
    for (size_t i = 0; i < index; i++) {
        if (pay_str_eq(pay_member_text(bind->key, item_of(node, base, i)), key)) {
            return pay_check_malformed(m->check, bind, "the same key twice");
        }
    }
    add_chunk(m, key.len);
    return pay_check_text(m->check, bind->key, key);
}

static enum pay_status measure_items(struct measure *m, const struct pay_node *node,
                                     const uint8_t *base)
{
    const size_t count = count_of(node, base);
    enum pay_status status = PAY_OK;

    if (node->bind != NULL && count > (size_t)node->bind->max) {
        return pay_check_too_large(m->check, node->bind);
    }
    if (node->bind != NULL && count < (size_t)node->bind->min) {
        return pay_check_malformed(m->check, node->bind, "fewer items than allowed");
    }
    for (size_t i = 0; i < count && status == PAY_OK; i++) {
        if (node->type == AVRO_MAP) {
            status = measure_key(m, node, base, i);
        }
        if (status == PAY_OK) {
            status = measure_node(m, &node->children[0], item_of(node, base, i));
        }
    }
    if (count > 0) {
        add_long(m, (int64_t)count);
    }
    m->bytes++; /* The empty block at the end. */
    return status;
}

static enum pay_status measure_node(struct measure *m, const struct pay_node *node,
                                    const uint8_t *base)
{
    static enum pay_status (*const measures[AVRO_LINK])(struct measure *, const struct pay_node *,
                                                        const uint8_t *) = {
        [AVRO_STRING] = measure_string, [AVRO_BYTES] = measure_bytes,
        [AVRO_INT32] = measure_number,  [AVRO_INT64] = measure_number,
        [AVRO_RECORD] = measure_fields, [AVRO_BOOLEAN] = measure_boolean,
        [AVRO_ENUM] = measure_enum,     [AVRO_MAP] = measure_items,
        [AVRO_ARRAY] = measure_items,   [AVRO_UNION] = measure_union,
    };
    /* A field without member is written only where it can be left out (pay_plan.writable). */
    if (node->type == AVRO_NULL) {
        return PAY_OK;
    }
    return measures[node->type](m, node, base);
}

enum pay_status pay_write_measure(const struct pay_check *check, const struct pay_node *root,
                                  const void *from, size_t *ret_bytes)
{
    struct measure m = {.check = check};
    const enum pay_status status = measure_node(&m, root, from);

    if (status == PAY_OK) {
        *ret_bytes = m.bytes;
    }
    return status;
}

/* --- The struct as an Avro value ------------------------------------------------------------ */

#define KEY_SIZE 256

/* One place on the way from the root to the value being written. avro_value_write() is done with a
 * child before it asks for the next, so one view per depth is enough. */
struct view {
    const struct pay_node *node;
    const uint8_t *base;
    size_t depth;
    struct view *all;
    char key[KEY_SIZE]; /* MAP: the current item's key; avro-c wants a terminator. */
};

static int set_child(const struct view *view, const struct pay_node *node, const uint8_t *base,
                     avro_value_t *ret_child);

static avro_type_t view_type(const avro_value_iface_t *iface, const void *self)
{
    (void)iface;
    return ((const struct view *)self)->node->type;
}

static int view_boolean(const avro_value_iface_t *iface, const void *self, int *ret_value)
{
    const struct view *view = self;
    (void)iface;
    *ret_value = pay_member_number(view->node->bind, view->base) != 0;
    return 0;
}

static int view_int(const avro_value_iface_t *iface, const void *self, int32_t *ret_value)
{
    const struct view *view = self;
    (void)iface;
    *ret_value = (int32_t)pay_member_number(view->node->bind, view->base);
    return 0;
}

static int view_long(const avro_value_iface_t *iface, const void *self, int64_t *ret_value)
{
    const struct view *view = self;
    (void)iface;
    *ret_value = pay_member_number(view->node->bind, view->base);
    return 0;
}

static int view_null(const avro_value_iface_t *iface, const void *self)
{
    (void)iface;
    (void)self;
    return 0;
}

static int view_bytes(const avro_value_iface_t *iface, const void *self, const void **ret_bytes,
                      size_t *ret_size)
{
    const struct view *view = self;
    const struct pay_bytes bytes = pay_member_bytes(view->node->bind, view->base);
    (void)iface;
    *ret_bytes = bytes.ptr;
    *ret_size = bytes.len;
    return 0;
}

static int view_string(const avro_value_iface_t *iface, const void *self, const char **ret_text,
                       size_t *ret_size)
{
    const struct view *view = self;
    const struct pay_str text = pay_member_text(view->node->bind, view->base);
    (void)iface;
    *ret_text = text.ptr;
    *ret_size = text.len + 1; /* With the terminator, which avro-c does not read. */
    return 0;
}

static int view_enum(const avro_value_iface_t *iface, const void *self, int *ret_symbol)
{
    const struct view *view = self;
    (void)iface;
    *ret_symbol = symbol_of(view->node, view->base);
    return 0;
}

static int view_size(const avro_value_iface_t *iface, const void *self, size_t *ret_size)
{
    const struct view *view = self;
    (void)iface;
    *ret_size = view->node->type == AVRO_RECORD ? view->node->child_count
                                                : count_of(view->node, view->base);
    return 0;
}

static int view_by_index(const avro_value_iface_t *iface, const void *self, size_t index,
                         avro_value_t *ret_child, const char **ret_name)
{
    const struct view *view = self;
    const struct pay_node *node = view->node;
    (void)iface;

    if (node->type == AVRO_RECORD) {
        return set_child(view, &node->children[index], view->base + node->bind->offset, ret_child);
    }
    const uint8_t *item = item_of(node, view->base, index);
    if (node->type == AVRO_MAP && ret_name != NULL) {
        char *key = view->all[view->depth].key;
        if (!pay_str_copy(key, KEY_SIZE, pay_member_text(node->bind->key, item))) {
            return EINVAL;
        }
        *ret_name = key;
    }
    return set_child(view, &node->children[0], item, ret_child);
}

static int view_discriminant(const avro_value_iface_t *iface, const void *self, int *ret_branch)
{
    const struct view *view = self;
    (void)iface;
    *ret_branch = branch_of(view->node, view->base);
    return 0;
}

static int view_branch(const avro_value_iface_t *iface, const void *self, avro_value_t *ret_branch)
{
    const struct view *view = self;
    (void)iface;
    return set_child(view, &view->node->children[branch_of(view->node, view->base)], view->base,
                     ret_branch);
}

/* avro-c never writes to it, but takes it without const. */
static avro_value_iface_t view_iface = {
    .get_type = view_type,
    .get_boolean = view_boolean,
    .get_bytes = view_bytes,
    .get_int = view_int,
    .get_long = view_long,
    .get_null = view_null,
    .get_string = view_string,
    .get_enum = view_enum,
    .get_size = view_size,
    .get_by_index = view_by_index,
    .get_discriminant = view_discriminant,
    .get_current_branch = view_branch,
};

static int set_child(const struct view *view, const struct pay_node *node, const uint8_t *base,
                     avro_value_t *ret_child)
{
    const size_t depth = view->depth + 1;
    struct view *child = &view->all[depth];

    if (depth >= PAY_PLAN_DEPTH_MAX) {
        return EINVAL;
    }
    child->node = node;
    child->base = base;
    child->depth = depth;
    child->all = view->all;
    *ret_child = (avro_value_t){.iface = &view_iface, .self = child};
    return 0;
}

enum pay_status pay_write_record(const struct pay_check *check, const struct pay_node *root,
                                 const void *from, avro_writer_t writer, uint8_t *dst, size_t bytes)
{
    struct view views[PAY_PLAN_DEPTH_MAX];

    views[0] = (struct view){.node = root, .base = from, .all = views};
    avro_value_t value = {.iface = &view_iface, .self = &views[0]};
    avro_writer_memory_set_dest(writer, (const char *)dst, (int64_t)bytes);
    const int rc = avro_value_write(writer, &value);
    if (rc != 0 || avro_writer_tell(writer) != (int64_t)bytes) {
        return pay_err_set(check->err, PAY_FATAL, rc, check->op, "avro-c wrote other bytes");
    }
    return PAY_OK;
}
