/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/fault.h"

#if PAY_FAULTS

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"

#include "common/base/banned.h"

static atomic_long reached;

/* The nth of "name:nth" when @p wanted names this point, else 0. */
static int64_t wanted_nth(const char *wanted, const char *name)
{
    size_t len = strlen(name);
    if (strncmp(wanted, name, len) != 0) {
        return 0;
    }
    if (wanted[len] == '\0') {
        return 1;
    }
    int64_t nth = 0;
    bool is_nth = wanted[len] == ':' && pay_str_to_i64(pay_str_of(wanted + len + 1), &nth);
    return is_nth ? nth : 0;
}

void pay_fault_point(const char *name)
{
    const char *wanted = getenv("PAYFACT_FAULT"); /* NOLINT(concurrency-mt-unsafe) */
    int64_t nth = wanted == NULL ? 0 : wanted_nth(wanted, name);
    if (nth > 0 && atomic_fetch_add(&reached, 1) + 1 == nth) {
        (void)raise(SIGKILL); /* cannot fail for oneself */
    }
}

#else
/* A translation unit may not be empty. */
typedef int pay_fault_compiled_out;
#endif
