/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/err.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "common/base/banned.h"

enum pay_status pay_err_set(struct pay_err *err, enum pay_status status, int code, const char *op,
                            const char *fmt, ...)
{
    if (err == NULL) {
        return status;
    }
    va_list args;
    va_start(args, fmt);
    err->status = status;
    err->code = code;
    err->op = op;
    if (vsnprintf(err->text, sizeof err->text, fmt, args) < 0) {
        err->text[0] = 0;
    }
    va_end(args);
    return status;
}

const char *pay_status_name(enum pay_status status)
{
    static const char *const names[] = {
        [PAY_OK] = "OK",         [PAY_RETRY] = "RETRY", [PAY_UNKNOWN] = "UNKNOWN",
        [PAY_REJECT] = "REJECT", [PAY_FATAL] = "FATAL",
    };
    _Static_assert(sizeof names / sizeof names[0] == PAY_STATUS_COUNT, "name every status");

    return (unsigned)status < PAY_STATUS_COUNT ? names[status] : "?";
}
