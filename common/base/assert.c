/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/assert.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/banned.h"

void pay_assert_failed(const char *expression, const char *file, int line)
{
    (void)fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, expression);
    abort();
}
