/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "common/base/clock.h"
#include "tools/payfactctl/explain_render.h"

#include "common/base/banned.h"

static void time_value(int64_t at_us, struct pay_buf *out)
{
    char at[28];
    if (at_us == 0) {
        pay_buf_add_c(out, "null");
        return;
    }
    pay_clock_format(at_us, at);
    pay_buf_printf(out, "\"%s\"", at);
}

static void value(const struct pay_explain_field *field, const char *row, struct pay_buf *out)
{
    struct pay_str text;
    int64_t number = 0;
    bool truth = false;
    switch (field->kind) {
    case PAY_EXPLAIN_TEXT:
        memcpy(&text, row + field->offset, sizeof text);
        pay_buf_add_json_str(out, text);
        return;
    case PAY_EXPLAIN_BOOL:
        memcpy(&truth, row + field->offset, sizeof truth);
        pay_buf_add_c(out, truth ? "true" : "false");
        return;
    case PAY_EXPLAIN_TIME:
        memcpy(&number, row + field->offset, sizeof number);
        time_value(number, out);
        return;
    case PAY_EXPLAIN_LEVEL:
        memcpy(&number, row + field->offset, sizeof number);
        pay_buf_printf(out, "\"%s\"", pay_evidence_name((enum pay_evidence)number));
        return;
    case PAY_EXPLAIN_INT:
    case PAY_EXPLAIN_KIND_COUNT:
        memcpy(&number, row + field->offset, sizeof number);
        pay_buf_printf(out, "%" PRId64, number);
        return;
    }
}

void pay_explain_json_row(const struct pay_explain_spec *spec, const void *row, struct pay_buf *out)
{
    pay_buf_add_char(out, '{');
    for (size_t i = 0; i < spec->field_count; i++) {
        pay_buf_printf(out, "%s\"%s\":", i == 0 ? "" : ",", spec->fields[i].name);
        value(&spec->fields[i], row, out);
    }
    pay_buf_add_char(out, '}');
}

static void list(const struct pay_explain *explain, enum pay_explain_list which,
                 struct pay_buf *out)
{
    const struct pay_explain_spec *spec = pay_explain_spec(which);
    const size_t count = explain->lists[which].count;
    pay_buf_printf(out, ",\"%s\":", spec->name);
    if (which == PAY_EXPLAIN_ORDER) {
        count == 0 ? pay_buf_add_c(out, "null")
                   : pay_explain_json_row(spec, pay_explain_row(explain, which, 0), out);
        return;
    }
    pay_buf_add_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        pay_buf_add_c(out, i == 0 ? "" : ",");
        pay_explain_json_row(spec, pay_explain_row(explain, which, i), out);
    }
    pay_buf_add_char(out, ']');
}

static void next(const struct pay_explain *explain, struct pay_buf *out)
{
    struct pay_explain_next rows[PAY_EXPLAIN_NEXT_MAX];
    const size_t count = pay_explain_next(explain, rows);
    pay_buf_add_c(out, ",\"next\":[");
    for (size_t i = 0; i < count; i++) {
        pay_buf_printf(out, "%s{\"who\":\"%s\",\"what\":", i == 0 ? "" : ",", rows[i].who);
        pay_buf_add_json_str(out, pay_str_of(rows[i].what));
        pay_buf_add_c(out, ",\"at\":");
        time_value(rows[i].at, out);
        pay_buf_add_char(out, '}');
    }
    pay_buf_add_char(out, ']');
}

/* Lists whose older rows were left out. */
static void left_out(const struct pay_explain *explain, struct pay_buf *out)
{
    const char *comma = "";
    pay_buf_add_c(out, ",\"older_rows_left_out\":[");
    for (size_t i = 0; i < PAY_EXPLAIN_LIST_COUNT; i++) {
        if (explain->lists[i].has_more) {
            pay_buf_printf(out, "%s\"%s\"", comma,
                           pay_explain_spec((enum pay_explain_list)i)->name);
            comma = ",";
        }
    }
    pay_buf_add_char(out, ']');
}

void pay_explain_json(const struct pay_explain *explain, struct pay_buf *out)
{
    pay_buf_printf(out, "{\"payment_id\":\"%s\",\"now\":", explain->payment_id);
    time_value(explain->now_us, out);
    next(explain, out);
    for (size_t i = 0; i < PAY_EXPLAIN_LIST_COUNT; i++) {
        list(explain, (enum pay_explain_list)i, out);
    }
    left_out(explain, out);
    pay_buf_add_c(out, "}\n");
}
