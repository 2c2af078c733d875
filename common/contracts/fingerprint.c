/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/fingerprint.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/banned.h"

#define DEPTH_MAX 32

/* The canonical form is never kept: its pieces go straight into the checksum. */
struct form {
    uint64_t crc;
    unsigned depth;
    bool failed;
};

uint64_t pay_crc64_avro(uint64_t crc, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < len; i++) {
        uint64_t entry = (crc ^ at[i]) & 0xff;
        for (int bit = 0; bit < 8; bit++) {
            entry = (entry >> 1) ^ (PAY_CRC64_AVRO_EMPTY & (0 - (entry & 1)));
        }
        crc = (crc >> 8) ^ entry;
    }
    return crc;
}

static void put(struct form *form, const char *text)
{
    form->crc = pay_crc64_avro(form->crc, text, strlen(text));
}

static void put_quoted(struct form *form, const char *text)
{
    put(form, "\"");
    put(form, text);
    put(form, "\"");
}

static void put_full_name(struct form *form, avro_schema_t schema)
{
    const char *space = avro_schema_namespace(schema);

    put(form, "\"");
    if (space != NULL && space[0] != '\0') {
        put(form, space);
        put(form, ".");
    }
    put(form, avro_schema_name(schema));
    put(form, "\"");
}

static void put_schema(struct form *form, avro_schema_t schema);

static void put_named(struct form *form, avro_schema_t schema, const char *type)
{
    put(form, "{\"name\":");
    put_full_name(form, schema);
    put(form, ",\"type\":");
    put_quoted(form, type);
}

static void put_record(struct form *form, avro_schema_t schema)
{
    put_named(form, schema, "record");
    put(form, ",\"fields\":[");
    for (size_t i = 0; i < avro_schema_record_size(schema); i++) {
        put(form, i == 0 ? "{\"name\":" : ",{\"name\":");
        put_quoted(form, avro_schema_record_field_name(schema, (int)i));
        put(form, ",\"type\":");
        put_schema(form, avro_schema_record_field_get_by_index(schema, (int)i));
        put(form, "}");
    }
    put(form, "]}");
}

static void put_enum(struct form *form, avro_schema_t schema)
{
    put_named(form, schema, "enum");
    put(form, ",\"symbols\":[");
    for (int i = 0; i < avro_schema_enum_number_of_symbols(schema); i++) {
        put(form, i == 0 ? "" : ",");
        put_quoted(form, avro_schema_enum_get(schema, i));
    }
    put(form, "]}");
}

static void put_fixed(struct form *form, avro_schema_t schema)
{
    char size[24];

    put_named(form, schema, "fixed");
    (void)snprintf(size, sizeof size, ",\"size\":%" PRId64 "}", avro_schema_fixed_size(schema));
    put(form, size);
}

static void put_union(struct form *form, avro_schema_t schema)
{
    put(form, "[");
    for (size_t i = 0; i < avro_schema_union_size(schema); i++) {
        put(form, i == 0 ? "" : ",");
        put_schema(form, avro_schema_union_branch(schema, (int)i));
    }
    put(form, "]");
}

static void put_array(struct form *form, avro_schema_t schema)
{
    put(form, "{\"type\":\"array\",\"items\":");
    put_schema(form, avro_schema_array_items(schema));
    put(form, "}");
}

static void put_map(struct form *form, avro_schema_t schema)
{
    put(form, "{\"type\":\"map\",\"values\":");
    put_schema(form, avro_schema_map_values(schema));
    put(form, "}");
}

static void put_link(struct form *form, avro_schema_t schema)
{
    put_full_name(form, avro_schema_link_target(schema));
}

static void put_schema(struct form *form, avro_schema_t schema)
{
    static void (*const writers[])(struct form *, avro_schema_t) = {
        [AVRO_RECORD] = put_record, [AVRO_ENUM] = put_enum,   [AVRO_FIXED] = put_fixed,
        [AVRO_MAP] = put_map,       [AVRO_ARRAY] = put_array, [AVRO_UNION] = put_union,
        [AVRO_LINK] = put_link,
    };
    static const char *const primitives[] = {
        [AVRO_STRING] = "string", [AVRO_BYTES] = "bytes",     [AVRO_INT32] = "int",
        [AVRO_INT64] = "long",    [AVRO_FLOAT] = "float",     [AVRO_DOUBLE] = "double",
        [AVRO_NULL] = "null",     [AVRO_BOOLEAN] = "boolean",
    };
    const size_t type = (size_t)avro_typeof(schema);

    if (form->failed || form->depth >= DEPTH_MAX) {
        form->failed = true;
        return;
    }
    form->depth++;
    if (type < sizeof primitives / sizeof primitives[0] && primitives[type] != NULL) {
        put_quoted(form, primitives[type]);
    } else if (type < sizeof writers / sizeof writers[0] && writers[type] != NULL) {
        writers[type](form, schema);
    } else {
        form->failed = true;
    }
    form->depth--;
}

bool pay_schema_fingerprint(avro_schema_t schema, uint64_t *ret_fingerprint)
{
    struct form form = {.crc = PAY_CRC64_AVRO_EMPTY};

    put_schema(&form, schema);
    if (form.failed) {
        return false;
    }
    *ret_fingerprint = form.crc;
    return true;
}
