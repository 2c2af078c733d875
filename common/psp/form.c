/* SPDX-License-Identifier: Apache-2.0 */
#include "common/psp/form.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/banned.h"

static bool is_plain(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("-._~", c) != NULL);
}

void pay_form_encode(struct pay_buf *out, struct pay_str text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        if (is_plain(c)) {
            pay_buf_add_char(out, (char)c);
            continue;
        }
        const char escaped[3] = {'%', digits[c >> 4], digits[c & 15]};
        pay_buf_add(out, escaped, sizeof escaped);
    }
}

static void add_name(struct pay_buf *out, const char *name)
{
    if (out->len > 0) {
        pay_buf_add_char(out, '&');
    }
    pay_buf_add_c(out, name);
    pay_buf_add_char(out, '=');
}

void pay_form_add(struct pay_buf *out, const char *name, struct pay_str value)
{
    if (value.ptr == NULL) {
        return;
    }
    add_name(out, name);
    pay_form_encode(out, value);
}

void pay_form_add_i64(struct pay_buf *out, const char *name, int64_t value)
{
    add_name(out, name);
    pay_buf_printf(out, "%" PRId64, value);
}
