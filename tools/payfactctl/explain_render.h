/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file explain_render.h
 * @brief A payment's explanation as text for a person or JSON for a tool, and who has to act next.
 *
 * Pure: rows in, text out. Money is printed with its currency's decimals, times in UTC.
 */
#ifndef PAY_CTL_EXPLAIN_RENDER_H
#define PAY_CTL_EXPLAIN_RENDER_H

#include "common/base/buf.h"
#include "common/store/explain.h"

#define PAY_EXPLAIN_NEXT_MAX 8 /**< Later ones are left out; the first is the most pressing. */

struct pay_explain_next {
    const char
        *who; /**< "operator", "approver", "customer", "merchant", "psp", "payfact", "nobody" */
    char what[256]; /**< One sentence. */
    int64_t at;     /**< When, microseconds since 1970; 0: no time is set. */
};

/** @return number of rows filled, 1 at least. */
size_t pay_explain_next(const struct pay_explain *explain,
                        struct pay_explain_next ret_next[PAY_EXPLAIN_NEXT_MAX]);
void pay_explain_text(const struct pay_explain *explain, struct pay_buf *out);
/** One row as an object. */
void pay_explain_json_row(const struct pay_explain_spec *spec, const void *row,
                          struct pay_buf *out);
/** One object and a newline. */
void pay_explain_json(const struct pay_explain *explain, struct pay_buf *out);

/* Shared by the two. */

/** "2026-11-30 12:00:00.123"; "-" for 0. */
void pay_explain_time(int64_t at_us, char dst[28]);
/** "25.99 EUR". */
void pay_explain_money(int64_t amount_minor, struct pay_str currency, char dst[48]);
/** "A01.SUBMIT" for an id that begins with the payment's, else the whole. Borrowed. */
struct pay_str pay_explain_short(const struct pay_explain *explain, struct pay_str id);
/** @return row @p index of a list. */
const void *pay_explain_row(const struct pay_explain *explain, enum pay_explain_list list,
                            size_t index);

#endif /* PAY_CTL_EXPLAIN_RENDER_H */
