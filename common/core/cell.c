/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/cell.h"

#include <string.h>

#include "common/base/assert.h"

#include "common/base/banned.h"

static size_t append(char *dst, size_t cap, size_t at, const char *part)
{
    const size_t len = strlen(part);

    PAY_ASSERT(at + len < cap);
    memcpy(dst + at, part, len + 1);
    return at + len;
}

void pay_cell_print(enum pay_cell_kind kind, const char *const *parts, size_t count, char *dst,
                    size_t cap)
{
    static const char *const signs[] = {
        [PAY_CELL_UNSET] = "?",  [PAY_CELL_MOVE] = "→",   [PAY_CELL_STAY] = "apply",
        [PAY_CELL_IGNORE] = "·", [PAY_CELL_REJECT] = "R", [PAY_CELL_RECONCILE] = "N",
        [PAY_CELL_NOTE] = "",
    };
    size_t at = append(dst, cap, 0, signs[kind]);

    for (size_t i = 0; i < count; i++) {
        at = parts[i] == NULL ? at : append(dst, cap, at, parts[i]);
    }
}
