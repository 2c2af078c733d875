/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/pg/pg.h"

#include "common/base/assert.h"
#include "common/io/pg/pg_internal.h"

#include <endian.h>
#include <string.h>

#include "common/base/banned.h"

/* Types whose binary form is their text. */
static const Oid text_oids[] = {25, 1043, 1042, 19, 114};

struct pay_pg_result *pay_pg_result_free(struct pay_pg_result *result)
{
    PQclear(pay_pg_raw(result));
    return NULL;
}

void pay_pg_results_free(struct pay_pg_result *results[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        results[i] = pay_pg_result_free(results[i]);
    }
}

size_t pay_pg_rows(const struct pay_pg_result *result)
{
    return (size_t)PQntuples(pay_pg_raw_const(result));
}

size_t pay_pg_columns(const struct pay_pg_result *result)
{
    return (size_t)PQnfields(pay_pg_raw_const(result));
}

int64_t pay_pg_affected(const struct pay_pg_result *result)
{
    /* PQcmdTuples only reads; its parameter lacks a const. */
    union {
        const struct pay_pg_result *in;
        PGresult *out;
    } raw = {.in = result};
    int64_t count = 0;

    return pay_str_to_i64(pay_str_of(PQcmdTuples(raw.out)), &count) ? count : 0;
}

static void check_cell(const struct pay_pg_result *result, size_t row, size_t column)
{
    PAY_ASSERT(result != NULL);
    PAY_ASSERT(row < pay_pg_rows(result));
    PAY_ASSERT(column < pay_pg_columns(result));
}

bool pay_pg_is_null(const struct pay_pg_result *result, size_t row, size_t column)
{
    check_cell(result, row, column);
    return PQgetisnull(pay_pg_raw_const(result), (int)row, (int)column) == 1;
}

/* NULL gives absent. */
static struct pay_bytes cell(const struct pay_pg_result *result, size_t row, size_t column)
{
    const PGresult *raw = pay_pg_raw_const(result);

    if (pay_pg_is_null(result, row, column)) {
        return (struct pay_bytes){0};
    }
    return (struct pay_bytes){
        .ptr = (const uint8_t *)PQgetvalue(raw, (int)row, (int)column),
        .len = (size_t)PQgetlength(raw, (int)row, (int)column),
    };
}

static bool is_oid(const struct pay_pg_result *result, size_t column, Oid oid)
{
    return PQftype(pay_pg_raw_const(result), (int)column) == oid;
}

static bool is_text(Oid oid)
{
    for (size_t i = 0; i < sizeof text_oids / sizeof text_oids[0]; i++) {
        if (text_oids[i] == oid) {
            return true;
        }
    }
    return false;
}

struct pay_str pay_pg_text(const struct pay_pg_result *result, size_t row, size_t column)
{
    struct pay_bytes bytes = cell(result, row, column);

    PAY_ASSERT(is_text(PQftype(pay_pg_raw_const(result), (int)column)));
    return (struct pay_str){(const char *)bytes.ptr, bytes.len};
}

struct pay_bytes pay_pg_bytea(const struct pay_pg_result *result, size_t row, size_t column)
{
    struct pay_bytes bytes = cell(result, row, column);

    PAY_ASSERT(is_oid(result, column, pay_pg_oids[PAY_PG_BYTEA].element));
    return bytes;
}

static int64_t read_int(struct pay_bytes bytes)
{
    uint64_t value = 0;

    PAY_ASSERT(bytes.len == 1 || bytes.len == 2 || bytes.len == 4 || bytes.len == 8);
    for (size_t i = 0; i < bytes.len; i++) {
        value = value << 8 | bytes.ptr[i];
    }
    switch (bytes.len) {
    case 2:
        return (int16_t)value;
    case 4:
        return (int32_t)value;
    default: /* One byte is a bool. */
        return (int64_t)value;
    }
}

int64_t pay_pg_int(const struct pay_pg_result *result, size_t row, size_t column)
{
    struct pay_bytes bytes = cell(result, row, column);

    PAY_ASSERT(bytes.ptr != NULL);
    PAY_ASSERT(is_oid(result, column, pay_pg_oids[PAY_PG_INT8].element) ||
               is_oid(result, column, pay_pg_oids[PAY_PG_INT4].element) ||
               is_oid(result, column, pay_pg_oids[PAY_PG_INT2].element));
    return read_int(bytes);
}

bool pay_pg_bool(const struct pay_pg_result *result, size_t row, size_t column)
{
    struct pay_bytes bytes = cell(result, row, column);

    PAY_ASSERT(bytes.ptr != NULL && is_oid(result, column, pay_pg_oids[PAY_PG_BOOL].element));
    return read_int(bytes) != 0;
}

/* The infinities stay what they are; a time that would overflow becomes one (year 294276 and
 * later). */
static int64_t from_pg_time(int64_t wire)
{
    if (wire == INT64_MIN || wire > INT64_MAX - PAY_PG_EPOCH_US) {
        return wire == INT64_MIN ? INT64_MIN : INT64_MAX;
    }
    return wire + PAY_PG_EPOCH_US;
}

int64_t pay_pg_timestamptz(const struct pay_pg_result *result, size_t row, size_t column)
{
    struct pay_bytes bytes = cell(result, row, column);

    PAY_ASSERT(bytes.ptr != NULL &&
               is_oid(result, column, pay_pg_oids[PAY_PG_TIMESTAMPTZ].element));
    return from_pg_time(read_int(bytes));
}

uint64_t pay_pg_tid(const struct pay_pg_result *result, size_t row, size_t column)
{
    const struct pay_bytes bytes = cell(result, row, column);
    uint64_t tid = 0;

    PAY_ASSERT(bytes.len == PAY_PG_TID_BYTES &&
               is_oid(result, column, pay_pg_oids[PAY_PG_TID].element));
    for (size_t i = 0; i < PAY_PG_TID_BYTES; i++) {
        tid = tid << 8 | bytes.ptr[i];
    }
    return tid;
}

static int32_t from_pg_date(int64_t wire)
{
    if (wire > INT32_MAX - PAY_PG_EPOCH_DAYS) {
        return INT32_MAX;
    }
    return wire == INT32_MIN ? INT32_MIN : (int32_t)(wire + PAY_PG_EPOCH_DAYS);
}

int32_t pay_pg_date(const struct pay_pg_result *result, size_t row, size_t column)
{
    struct pay_bytes bytes = cell(result, row, column);

    PAY_ASSERT(bytes.ptr != NULL && is_oid(result, column, pay_pg_oids[PAY_PG_DATE].element));
    return from_pg_date(read_int(bytes));
}

int64_t pay_pg_int_or(const struct pay_pg_result *result, size_t row, size_t column,
                      int64_t if_null)
{
    return pay_pg_is_null(result, row, column) ? if_null : pay_pg_int(result, row, column);
}

int64_t pay_pg_timestamptz_or(const struct pay_pg_result *result, size_t row, size_t column,
                              int64_t if_null)
{
    return pay_pg_is_null(result, row, column) ? if_null : pay_pg_timestamptz(result, row, column);
}

static uint32_t be32_at(const uint8_t *at)
{
    uint32_t wire;

    memcpy(&wire, at, sizeof wire);
    return be32toh(wire);
}

static enum pay_pg_type element_of(Oid array)
{
    for (int type = 0; type < PAY_PG_TYPE_COUNT; type++) {
        if (pay_pg_oids[type].array == array) {
            return (enum pay_pg_type)type;
        }
    }
    return PAY_PG_TYPE_COUNT;
}

struct pay_pg_array pay_pg_array_of(const struct pay_pg_result *result, size_t row, size_t column)
{
    struct pay_bytes bytes = cell(result, row, column);
    struct pay_pg_array array = {
        .element = element_of(PQftype(pay_pg_raw_const(result), (int)column)),
        .is_null = bytes.ptr == NULL,
    };

    PAY_ASSERT(array.element < PAY_PG_TYPE_COUNT);
    if (bytes.ptr == NULL) {
        return array;
    }
    PAY_ASSERT(bytes.len >= PAY_PG_ARRAY_EMPTY_BYTES && be32_at(bytes.ptr) <= 1);
    if (be32_at(bytes.ptr) == 1) {
        PAY_ASSERT(bytes.len >= PAY_PG_ARRAY_HEADER_BYTES);
        array.count = be32_at(bytes.ptr + PAY_PG_ARRAY_EMPTY_BYTES);
        array.at = bytes.ptr + PAY_PG_ARRAY_HEADER_BYTES;
        array.end = bytes.ptr + bytes.len;
    }
    return array;
}

static struct pay_bytes next_element(struct pay_pg_array *array)
{
    struct pay_bytes bytes = {0};

    PAY_ASSERT(array->count > 0 && array->end - array->at >= 4);
    array->count--;
    uint32_t len = be32_at(array->at);
    array->at += 4;
    if (len == UINT32_MAX) {
        return bytes;
    }
    PAY_ASSERT((size_t)(array->end - array->at) >= len);
    bytes = (struct pay_bytes){array->at, len};
    array->at += len;
    return bytes;
}

struct pay_str pay_pg_array_text(struct pay_pg_array *array)
{
    PAY_ASSERT(array->element == PAY_PG_TEXT);
    struct pay_bytes bytes = next_element(array);

    return (struct pay_str){(const char *)bytes.ptr, bytes.len};
}

struct pay_bytes pay_pg_array_bytea(struct pay_pg_array *array)
{
    PAY_ASSERT(array->element == PAY_PG_BYTEA);
    return next_element(array);
}

bool pay_pg_array_int(struct pay_pg_array *array, int64_t *ret_value)
{
    PAY_ASSERT(array->element != PAY_PG_TEXT && array->element != PAY_PG_BYTEA);
    struct pay_bytes bytes = next_element(array);

    if (bytes.ptr == NULL) {
        return false;
    }
    int64_t value = read_int(bytes);
    if (array->element == PAY_PG_TIMESTAMPTZ) {
        value = from_pg_time(value);
    } else if (array->element == PAY_PG_DATE) {
        value = from_pg_date(value);
    }
    *ret_value = value;
    return true;
}
