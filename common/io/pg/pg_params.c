/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/pg/pg.h"

#include "common/base/assert.h"
#include "common/base/mem.h"
#include "common/io/pg/pg_internal.h"

#include <endian.h>
#include <string.h>

#include "common/base/banned.h"

const struct pay_pg_oids pay_pg_oids[PAY_PG_TYPE_COUNT] = {
    [PAY_PG_TEXT] = {25, 1009},   [PAY_PG_INT2] = {21, 1005},          [PAY_PG_INT4] = {23, 1007},
    [PAY_PG_INT8] = {20, 1016},   [PAY_PG_BOOL] = {16, 1000},          [PAY_PG_BYTEA] = {17, 1001},
    [PAY_PG_DATE] = {1082, 1182}, [PAY_PG_TIMESTAMPTZ] = {1184, 1185}, [PAY_PG_TID] = {27, 1010},
};

struct pay_pg_params *pay_pg_params_new(size_t bytes_max)
{
    struct pay_pg_params *params = pay_mem_new(1, sizeof *params);

    if (params != NULL) {
        params->values = pay_buf_make(bytes_max);
    }
    return params;
}

struct pay_pg_params *pay_pg_params_free(struct pay_pg_params *params)
{
    if (params != NULL) {
        pay_buf_free(&params->values);
    }
    return pay_mem_free(params);
}

void pay_pg_params_reset(struct pay_pg_params *params)
{
    pay_buf_reset(&params->values);
    params->count = 0;
    params->in_array = false;
}

static void add_be32(struct pay_buf *buf, uint32_t value)
{
    uint32_t wire = htobe32(value);

    pay_buf_add(buf, &wire, sizeof wire);
}

static void add_element(struct pay_pg_params *params, enum pay_pg_type type, const void *data,
                        size_t len)
{
    PAY_ASSERT(type == params->element);
    PAY_ASSERT(len <= INT32_MAX);
    params->elements++;
    if (data == NULL) {
        params->has_null = true;
        add_be32(&params->values, UINT32_MAX);
        return;
    }
    add_be32(&params->values, (uint32_t)len);
    pay_buf_add(&params->values, data, len);
}

/* data NULL: SQL NULL; with a length: text that its arena had no room for, which must not become
 * NULL. */
static void add(struct pay_pg_params *params, enum pay_pg_type type, const void *data, size_t len)
{
    PAY_ASSERT((unsigned)type < PAY_PG_TYPE_COUNT);
    if (data == NULL && len > 0) {
        params->values.failed = true;
    }
    if (params->in_array) {
        add_element(params, type, data, len);
        return;
    }
    PAY_ASSERT(params->count < PAY_PG_PARAMS_MAX);
    params->items[params->count++] = (struct pay_pg_param){
        .oid = pay_pg_oids[type].element,
        .is_null = data == NULL,
        .offset = params->values.len,
        .len = len,
    };
    if (data != NULL) {
        pay_buf_add(&params->values, data, len);
    }
}

void pay_pg_add_text(struct pay_pg_params *params, struct pay_str value)
{
    add(params, PAY_PG_TEXT, value.ptr, value.len);
}

void pay_pg_add_text_c(struct pay_pg_params *params, const char *value)
{
    pay_pg_add_text(params, pay_str_of(value));
}

void pay_pg_add_int2(struct pay_pg_params *params, int16_t value)
{
    uint16_t wire = htobe16((uint16_t)value);

    add(params, PAY_PG_INT2, &wire, sizeof wire);
}

static void add_32(struct pay_pg_params *params, enum pay_pg_type type, int32_t value)
{
    uint32_t wire = htobe32((uint32_t)value);

    add(params, type, &wire, sizeof wire);
}

static void add_64(struct pay_pg_params *params, enum pay_pg_type type, int64_t value)
{
    uint64_t wire = htobe64((uint64_t)value);

    add(params, type, &wire, sizeof wire);
}

void pay_pg_add_int4(struct pay_pg_params *params, int32_t value)
{
    add_32(params, PAY_PG_INT4, value);
}

void pay_pg_add_int8(struct pay_pg_params *params, int64_t value)
{
    add_64(params, PAY_PG_INT8, value);
}

void pay_pg_add_bool(struct pay_pg_params *params, bool value)
{
    uint8_t wire = value ? 1 : 0;

    add(params, PAY_PG_BOOL, &wire, sizeof wire);
}

void pay_pg_add_bytea(struct pay_pg_params *params, struct pay_bytes value)
{
    add(params, PAY_PG_BYTEA, value.ptr, value.len);
}

/* The ends of int64_t are PostgreSQL's infinities on both sides; what is out of its range becomes
 * one. */
void pay_pg_add_timestamptz(struct pay_pg_params *params, int64_t us_since_1970)
{
    int64_t wire = us_since_1970;

    if (us_since_1970 != INT64_MAX && us_since_1970 < INT64_MIN + PAY_PG_EPOCH_US) {
        wire = INT64_MIN;
    } else if (us_since_1970 != INT64_MAX) {
        wire = us_since_1970 - PAY_PG_EPOCH_US;
    }
    add_64(params, PAY_PG_TIMESTAMPTZ, wire);
}

void pay_pg_add_date(struct pay_pg_params *params, int32_t days_since_1970)
{
    PAY_ASSERT(days_since_1970 > INT32_MIN + PAY_PG_EPOCH_DAYS);
    add_32(params, PAY_PG_DATE, days_since_1970 - PAY_PG_EPOCH_DAYS);
}

void pay_pg_add_tid(struct pay_pg_params *params, uint64_t tid)
{
    const uint64_t wire = htobe64(tid << 16); /* Its first six bytes. */

    add(params, PAY_PG_TID, &wire, PAY_PG_TID_BYTES);
}

void pay_pg_add_null(struct pay_pg_params *params, enum pay_pg_type type)
{
    add(params, type, NULL, 0);
}

void pay_pg_array_begin(struct pay_pg_params *params, enum pay_pg_type element)
{
    static const uint8_t header[PAY_PG_ARRAY_HEADER_BYTES];

    PAY_ASSERT(!params->in_array && params->count < PAY_PG_PARAMS_MAX);
    PAY_ASSERT((unsigned)element < PAY_PG_TYPE_COUNT);
    params->items[params->count++] = (struct pay_pg_param){
        .oid = pay_pg_oids[element].array,
        .offset = params->values.len,
    };
    pay_buf_add(&params->values, header, sizeof header);
    params->in_array = true;
    params->element = element;
    params->elements = 0;
    params->has_null = false;
}

/* Dimensions, NULL flag, element type, length, lower bound. */
void pay_pg_array_end(struct pay_pg_params *params)
{
    struct pay_pg_param *item = &params->items[params->count - 1];

    PAY_ASSERT(params->in_array && params->elements <= INT32_MAX);
    params->in_array = false;
    if (params->values.failed) {
        return;
    }
    uint32_t header[] = {
        htobe32(params->elements > 0 ? 1 : 0),
        htobe32(params->has_null ? 1 : 0),
        htobe32(pay_pg_oids[params->element].element),
        htobe32((uint32_t)params->elements),
        htobe32(1),
    };
    _Static_assert(sizeof header == PAY_PG_ARRAY_HEADER_BYTES, "header of one dimension");
    memcpy(params->values.data + item->offset, header, sizeof header);
    if (params->elements == 0) {
        params->values.len = item->offset + PAY_PG_ARRAY_EMPTY_BYTES;
    }
    item->len = params->values.len - item->offset;
}

void pay_pg_add_text_array(struct pay_pg_params *params, const struct pay_str *items, size_t count)
{
    pay_pg_array_begin(params, PAY_PG_TEXT);
    for (size_t i = 0; i < count; i++) {
        pay_pg_add_text(params, items[i]);
    }
    pay_pg_array_end(params);
}

void pay_pg_add_int8_array(struct pay_pg_params *params, const int64_t *items, const bool *nulls,
                           size_t count)
{
    pay_pg_array_begin(params, PAY_PG_INT8);
    for (size_t i = 0; i < count; i++) {
        if (nulls != NULL && nulls[i]) {
            pay_pg_add_null(params, PAY_PG_INT8);
        } else {
            pay_pg_add_int8(params, items[i]);
        }
    }
    pay_pg_array_end(params);
}
