/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/plan.h"

#include <string.h>

#include "common/base/banned.h"

#define FIXED_MAX 1048576

struct maker {
    struct pay_arena *arena;
    struct pay_err *err;
    size_t nodes;
    unsigned depth;
    bool current; /* Writer and reader are one schema: then every field must have its member. */
    bool writable;
};

static enum pay_status make(struct maker *m, avro_schema_t writer, avro_schema_t reader,
                            const struct pay_bind *bind, struct pay_node *node);

static enum pay_status refuse(const struct maker *m, const struct pay_bind *bind, const char *why)
{
    (void)pay_err_set(m->err, PAY_REJECT, 0, "match schema", "field '%s': %s",
                      bind == NULL ? "?" : bind->name, why);
    return PAY_REJECT;
}

static enum pay_status out_of_memory(const struct maker *m)
{
    (void)pay_err_set(m->err, PAY_REJECT, 0, "match schema", "schema is too large");
    return PAY_REJECT;
}

static avro_schema_t unlink_schema(avro_schema_t schema)
{
    while (schema != NULL && avro_typeof(schema) == AVRO_LINK) {
        schema = avro_schema_link_target(schema);
    }
    return schema;
}

/* The current schema's type behind ["null", X]. */
static avro_schema_t value_type(avro_schema_t schema)
{
    schema = unlink_schema(schema);
    if (schema == NULL || avro_typeof(schema) != AVRO_UNION) {
        return schema;
    }
    for (size_t i = 0; i < avro_schema_union_size(schema); i++) {
        avro_schema_t branch = unlink_schema(avro_schema_union_branch(schema, (int)i));
        if (avro_typeof(branch) != AVRO_NULL) {
            return branch;
        }
    }
    return NULL;
}

static bool type_fits(enum pay_bind_kind kind, avro_type_t type)
{
    static const avro_type_t types[PAY_BIND_KIND_COUNT] = {
        [PAY_BIND_TEXT] = AVRO_STRING,  [PAY_BIND_BYTES] = AVRO_BYTES,
        [PAY_BIND_CHARS] = AVRO_STRING, [PAY_BIND_BOOL] = AVRO_BOOLEAN,
        [PAY_BIND_FLAG] = AVRO_BOOLEAN, [PAY_BIND_INT] = AVRO_INT32,
        [PAY_BIND_LONG] = AVRO_INT64,   [PAY_BIND_ENUM] = AVRO_ENUM,
        [PAY_BIND_SYMBOL] = AVRO_ENUM,  [PAY_BIND_RECORD] = AVRO_RECORD,
        [PAY_BIND_ARRAY] = AVRO_ARRAY,  [PAY_BIND_MAP] = AVRO_MAP,
    };
    return types[kind] == type || (kind == PAY_BIND_LONG && type == AVRO_INT32);
}

/* avro_schema_record_field_get() of 1.11.1 answers with what is on its stack when there is no such
 * field. */
static avro_schema_t find_field(avro_schema_t schema, const char *name)
{
    for (size_t i = 0; i < avro_schema_record_size(schema); i++) {
        if (strcmp(avro_schema_record_field_name(schema, (int)i), name) == 0) {
            return avro_schema_record_field_get_by_index(schema, (int)i);
        }
    }
    return NULL;
}

static const struct pay_bind *find_bind(const struct pay_bind_record *record, const char *name)
{
    for (size_t i = 0; record != NULL && i < record->count; i++) {
        if (strcmp(record->fields[i].name, name) == 0) {
            return &record->fields[i];
        }
    }
    return NULL;
}

/* Reading needs a value for every member: the writer's, null, or a default of ours. */
static enum pay_status find_missing(struct maker *m, avro_schema_t writer,
                                    const struct pay_bind_record *record, struct pay_node *node)
{
    node->missing =
        (const struct pay_bind **)pay_arena_array(m->arena, record->count, sizeof *node->missing);
    if (node->missing == NULL) {
        return out_of_memory(m);
    }
    for (size_t i = 0; i < record->count; i++) {
        const struct pay_bind *bind = &record->fields[i];
        if (find_field(writer, bind->name) != NULL) {
            continue;
        }
        if (m->current || (bind->here == PAY_HERE_ALWAYS && !bind->may_lack)) {
            return refuse(m, bind, "the schema lacks it and it has no default");
        }
        node->missing[node->missing_count++] = bind;
    }
    return PAY_OK;
}

static enum pay_status make_field(struct maker *m, avro_schema_t writer, avro_schema_t reader,
                                  const struct pay_bind *bind, struct pay_node *node)
{
    avro_schema_t reader_type = bind == NULL ? NULL : value_type(reader);

    if (bind == NULL && m->current) {
        return refuse(m, NULL, "a field of the current schema has no member");
    }
    if (bind != NULL && reader_type == NULL) {
        return refuse(m, bind, "the current schema lacks it");
    }
    enum pay_status status = make(m, writer, reader_type, bind, node);
    if (bind == NULL && node->type != AVRO_NULL && node->null_branch < 0 &&
        node->type != AVRO_ARRAY && node->type != AVRO_MAP) {
        m->writable = false;
    }
    return status;
}

static enum pay_status make_children(struct maker *m, struct pay_node *node, size_t count)
{
    m->nodes += count;
    node->child_count = count;
    node->children = m->nodes > PAY_PLAN_NODES_MAX
                         ? NULL
                         : pay_arena_array(m->arena, count, sizeof *node->children);
    return node->children == NULL ? out_of_memory(m) : PAY_OK;
}

static enum pay_status make_record(struct maker *m, avro_schema_t writer, avro_schema_t reader,
                                   struct pay_node *node)
{
    const struct pay_bind_record *record = node->bind == NULL ? NULL : node->bind->record;
    enum pay_status status = make_children(m, node, avro_schema_record_size(writer));

    for (size_t i = 0; i < node->child_count && status == PAY_OK; i++) {
        const char *name = avro_schema_record_field_name(writer, (int)i);
        const struct pay_bind *bind = find_bind(record, name);
        status =
            make_field(m, avro_schema_record_field_get_by_index(writer, (int)i),
                       bind == NULL ? NULL : find_field(reader, name), bind, &node->children[i]);
        if (status == PAY_OK) {
            node->min_bytes += node->children[i].min_bytes;
        }
    }
    if (status == PAY_OK && record != NULL) {
        status = find_missing(m, writer, record, node);
    }
    return status;
}

static enum pay_status make_union(struct maker *m, avro_schema_t writer, avro_schema_t reader,
                                  struct pay_node *node)
{
    size_t least = SIZE_MAX;
    enum pay_status status = make_children(m, node, avro_schema_union_size(writer));

    for (size_t i = 0; i < node->child_count && status == PAY_OK; i++) {
        avro_schema_t branch = unlink_schema(avro_schema_union_branch(writer, (int)i));
        const bool is_null = avro_typeof(branch) == AVRO_NULL;
        status = make(m, branch, is_null ? NULL : reader, is_null ? NULL : node->bind,
                      &node->children[i]);
        least = node->children[i].min_bytes < least ? node->children[i].min_bytes : least;
        if (is_null) {
            node->null_branch = (int)i;
        } else if (node->value_branch < 0) {
            node->value_branch = (int)i;
        }
    }
    node->min_bytes = 1 + (least == SIZE_MAX ? 0 : least);
    return status;
}

static enum pay_status make_items(struct maker *m, avro_schema_t writer, avro_schema_t reader,
                                  struct pay_node *node)
{
    const bool is_map = node->type == AVRO_MAP;
    avro_schema_t item = is_map ? avro_schema_map_values(writer) : avro_schema_array_items(writer);
    avro_schema_t reader_item = NULL;
    enum pay_status status = make_children(m, node, 1);

    if (node->bind != NULL) {
        reader_item =
            value_type(is_map ? avro_schema_map_values(reader) : avro_schema_array_items(reader));
    }
    if (status == PAY_OK) {
        status = make(m, item, reader_item, node->bind == NULL ? NULL : node->bind->item,
                      &node->children[0]);
    }
    return status;
}

static int find_symbol(avro_schema_t schema, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(avro_schema_enum_get(schema, i), name) == 0) {
            return i;
        }
    }
    return -1;
}

static enum pay_status make_enum(struct maker *m, avro_schema_t writer, avro_schema_t reader,
                                 struct pay_node *node)
{
    const int count = avro_schema_enum_number_of_symbols(writer);

    node->symbol_count = count;
    if (node->bind == NULL) {
        return PAY_OK;
    }
    const int readers = avro_schema_enum_number_of_symbols(reader);
    const int fallback = (int)node->bind->fallback;
    if (fallback < 0 || fallback >= readers) {
        return refuse(m, node->bind, "its default symbol is not in the current schema");
    }
    const int writer_fallback = find_symbol(writer, count, avro_schema_enum_get(reader, fallback));
    node->reader_symbol_count = readers;
    node->to_reader = pay_arena_array(m->arena, (size_t)count, sizeof *node->to_reader);
    node->from_reader = pay_arena_array(m->arena, (size_t)readers, sizeof *node->from_reader);
    node->reader_symbols =
        (const char **)pay_arena_array(m->arena, (size_t)readers, sizeof *node->reader_symbols);
    if (node->to_reader == NULL || node->from_reader == NULL || node->reader_symbols == NULL) {
        return out_of_memory(m);
    }
    for (int i = 0; i < count; i++) {
        const int found = find_symbol(reader, readers, avro_schema_enum_get(writer, i));
        node->to_reader[i] = found < 0 ? fallback : found;
    }
    for (int i = 0; i < readers; i++) {
        node->reader_symbols[i] = avro_schema_enum_get(reader, i);
        const int found = find_symbol(writer, count, node->reader_symbols[i]);
        node->from_reader[i] = found < 0 ? writer_fallback : found;
    }
    return PAY_OK;
}

static enum pay_status make_leaf(struct maker *m, avro_schema_t writer, avro_schema_t reader,
                                 struct pay_node *node)
{
    (void)reader;
    if (node->type == AVRO_FIXED) {
        const int64_t size = avro_schema_fixed_size(writer);
        if (size < 0 || size > FIXED_MAX) {
            return refuse(m, node->bind, "its fixed size is too large");
        }
        node->fixed_size = (size_t)size;
        node->min_bytes = node->fixed_size;
    }
    return PAY_OK;
}

static enum pay_status make(struct maker *m, avro_schema_t writer, avro_schema_t reader,
                            const struct pay_bind *bind, struct pay_node *node)
{
    static enum pay_status (*const makers[])(struct maker *, avro_schema_t, avro_schema_t,
                                             struct pay_node *) = {
        [AVRO_RECORD] = make_record, [AVRO_ENUM] = make_enum,   [AVRO_MAP] = make_items,
        [AVRO_ARRAY] = make_items,   [AVRO_UNION] = make_union, [AVRO_LINK] = make_leaf,
    };
    static const size_t least[AVRO_LINK + 1] = {
        [AVRO_STRING] = 1, [AVRO_BYTES] = 1,   [AVRO_INT32] = 1, [AVRO_INT64] = 1, [AVRO_FLOAT] = 4,
        [AVRO_DOUBLE] = 8, [AVRO_BOOLEAN] = 1, [AVRO_ENUM] = 1,  [AVRO_MAP] = 1,   [AVRO_ARRAY] = 1,
    };
    writer = unlink_schema(writer);
    const avro_type_t type = avro_typeof(writer);
    if (m->depth >= PAY_PLAN_DEPTH_MAX || (size_t)type > AVRO_LINK) {
        return refuse(m, bind, "nested too deep or of an unknown type");
    }
    if (bind != NULL && type != AVRO_UNION &&
        (reader == NULL || !type_fits(bind->kind, type) ||
         !type_fits(bind->kind, avro_typeof(reader)))) {
        return refuse(m, bind, "its type does not fit");
    }
    *node = (struct pay_node){.type = type,
                              .bind = bind,
                              .null_branch = -1,
                              .value_branch = -1,
                              .min_bytes = least[type]};
    m->depth++;
    enum pay_status status =
        (makers[type] == NULL ? make_leaf : makers[type])(m, writer, reader, node);
    m->depth--;
    return status;
}

enum pay_status pay_plan_make(struct pay_arena *arena, const struct pay_bind_record *record,
                              avro_schema_t writer, avro_schema_t reader, struct pay_plan *ret_plan,
                              struct pay_err *err)
{
    struct maker m = {.arena = arena, .err = err, .current = writer == reader, .writable = true};
    struct pay_node *root = pay_arena_alloc(arena, sizeof *root);
    struct pay_bind *bind = pay_arena_alloc(arena, sizeof *bind);

    if (root == NULL || bind == NULL) {
        return out_of_memory(&m);
    }
    *bind = (struct pay_bind){.name = "(record)", .kind = PAY_BIND_RECORD, .record = record};
    enum pay_status status = make(&m, writer, reader, bind, root);
    if (status == PAY_OK) {
        *ret_plan = (struct pay_plan){.root = root, .writable = m.writable};
    }
    return status;
}
