/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/statement.h"

#include <string.h>

#include "common/base/assert.h"
#include "common/core/snapshot.h"
#include "common/core/types.h"

#include "common/base/banned.h"

static const enum pay_pg_type column_types[PAY_COLUMN_KIND_COUNT] = {
    [PAY_COLUMN_CHARS] = PAY_PG_TEXT,       [PAY_COLUMN_CHARS_NULL] = PAY_PG_TEXT,
    [PAY_COLUMN_STR] = PAY_PG_TEXT,         [PAY_COLUMN_CSTR] = PAY_PG_TEXT,
    [PAY_COLUMN_BYTES] = PAY_PG_BYTEA,      [PAY_COLUMN_INT2] = PAY_PG_INT2,
    [PAY_COLUMN_INT4] = PAY_PG_INT4,        [PAY_COLUMN_INT8] = PAY_PG_INT8,
    [PAY_COLUMN_INT8_NULL] = PAY_PG_INT8,   [PAY_COLUMN_BOOL] = PAY_PG_BOOL,
    [PAY_COLUMN_TIME] = PAY_PG_TIMESTAMPTZ, [PAY_COLUMN_NAME] = PAY_PG_TEXT,
    [PAY_COLUMN_LEVEL] = PAY_PG_INT2,       [PAY_COLUMN_DATE] = PAY_PG_DATE,
};

static int read_int(const void *at)
{
    int value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static int64_t read_int8(const void *at)
{
    int64_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static void add_int8(struct pay_pg_params *params, int64_t value, enum pay_column_kind kind)
{
    if (value == 0 && kind != PAY_COLUMN_INT8) {
        pay_pg_add_null(params, column_types[kind]);
    } else if (kind == PAY_COLUMN_TIME) {
        pay_pg_add_timestamptz(params, value);
    } else {
        pay_pg_add_int8(params, value);
    }
}

static void add_chars(struct pay_pg_params *params, const char *text, bool null_if_empty)
{
    pay_pg_add_text_c(params, null_if_empty && text[0] == '\0' ? NULL : text);
}

static void add_element(struct pay_pg_params *params, const struct pay_column *column,
                        const void *row)
{
    const char *at = (const char *)row + column->offset;
    union {
        struct pay_str str;
        struct pay_bytes bytes;
        const char *cstr;
        bool flag;
    } value;
    switch (column->kind) {
    case PAY_COLUMN_CHARS:
    case PAY_COLUMN_CHARS_NULL:
        add_chars(params, at, column->kind == PAY_COLUMN_CHARS_NULL);
        break;
    case PAY_COLUMN_STR:
        memcpy(&value.str, at, sizeof(value.str));
        pay_pg_add_text(params, value.str);
        break;
    case PAY_COLUMN_CSTR:
        memcpy((void *)&value.cstr, at, sizeof(value.cstr));
        pay_pg_add_text_c(params, value.cstr);
        break;
    case PAY_COLUMN_BYTES:
        memcpy(&value.bytes, at, sizeof(value.bytes));
        pay_pg_add_bytea(params, value.bytes);
        break;
    case PAY_COLUMN_INT2:
    case PAY_COLUMN_LEVEL:
        pay_pg_add_int2(params, (int16_t)read_int(at));
        break;
    case PAY_COLUMN_INT4:
        pay_pg_add_int4(params, read_int(at));
        break;
    case PAY_COLUMN_INT8:
    case PAY_COLUMN_INT8_NULL:
    case PAY_COLUMN_TIME:
        add_int8(params, read_int8(at), column->kind);
        break;
    case PAY_COLUMN_BOOL:
        memcpy(&value.flag, at, sizeof(value.flag));
        pay_pg_add_bool(params, value.flag);
        break;
    case PAY_COLUMN_DATE:
        pay_pg_add_date(params, read_int(at));
        break;
    case PAY_COLUMN_NAME:
        pay_pg_add_text_c(params, column->name(read_int(at)));
        break;
    case PAY_COLUMN_KIND_COUNT:
        PAY_ASSERT(column->kind != PAY_COLUMN_KIND_COUNT);
        break;
    }
}

void pay_store_add_columns(struct pay_store *store, struct pay_columns columns,
                           const void *const *rows, size_t count)
{
    struct pay_pg_params *params = pay_store_params(store);
    for (size_t c = 0; c < columns.count; c++) {
        pay_pg_array_begin(params, column_types[columns.items[c].kind]);
        for (size_t r = 0; r < count; r++) {
            add_element(params, &columns.items[c], rows[r]);
        }
        pay_pg_array_end(params);
    }
}

const char *pay_column_order_status(int value)
{
    return pay_order_status_name((enum pay_order_status)value);
}

const char *pay_column_attempt_status(int value)
{
    return pay_attempt_status_name((enum pay_attempt_status)value);
}

const char *pay_column_capture_mode(int value)
{
    return pay_capture_mode_name((enum pay_capture_mode)value);
}

const char *pay_column_intent(int value)
{
    return pay_intent_name((enum pay_intent)value);
}

const char *pay_column_cancel_cause(int value)
{
    return value == PAY_CANCEL_CAUSE_NONE ? NULL
                                          : pay_cancel_cause_name((enum pay_cancel_cause)value);
}

const char *pay_column_failure_class(int value)
{
    return value == PAY_FAILURE_NONE ? NULL : pay_failure_class_name((enum pay_failure_class)value);
}

const char *pay_column_reference_kind(int value)
{
    return pay_reference_kind_name((enum pay_reference_kind)value);
}

const char *pay_column_job_kind(int value)
{
    return pay_job_kind_name((enum pay_job_kind)value);
}

const char *pay_column_case_kind(int value)
{
    return pay_case_kind_name((enum pay_case_kind)value);
}

const char *pay_column_deadline_kind(int value)
{
    return pay_deadline_kind_name((enum pay_deadline_kind)value);
}

const char *pay_column_aggregate(int value)
{
    return pay_aggregate_name((enum pay_aggregate)value);
}

const char *pay_column_verdict(int value)
{
    return pay_verdict_name((enum pay_verdict)value);
}

const char *pay_column_source(int value)
{
    return pay_source_name((enum pay_source)value);
}

const char *pay_column_row_change(int value)
{
    return value == PAY_ROW_COUNTED ? "COUNTED" : "UPDATED";
}

const char *pay_column_money_status(int value)
{
    return pay_money_status_name((enum pay_money_status)value);
}

const char *pay_column_origin(int value)
{
    return pay_origin_name((enum pay_origin)value);
}

const char *pay_column_dispute_status(int value)
{
    return pay_dispute_status_name((enum pay_dispute_status)value);
}

const char *pay_column_dispute_funds(int value)
{
    return pay_dispute_funds_name((enum pay_dispute_funds)value);
}

const char *pay_column_request_status(int value)
{
    return pay_request_status_name((enum pay_request_status)value);
}

const char *pay_column_command_type(int value)
{
    return pay_command_type_name((enum pay_command_type)value);
}
