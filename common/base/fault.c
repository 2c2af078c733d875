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

/* What follows @p word in @p text, NULL when it does not begin with it. */
static const char *after(const char *text, const char *word)
{
    const size_t len = strlen(word);
    return strncmp(text, word, len) == 0 ? text + len : NULL;
}

/* The nth of "name[/of][:nth]" when @p wanted names this point, else 0. */
static int64_t wanted_nth(const char *wanted, const char *name, const char *of)
{
    const char *rest = after(wanted, name);
    if (rest != NULL && *rest == '/') {
        rest = after(rest + 1, of);
    }
    if (rest == NULL) {
        return 0;
    }
    if (*rest == '\0') {
        return 1;
    }
    int64_t nth = 0;
    bool is_nth = *rest == ':' && pay_str_to_i64(pay_str_of(rest + 1), &nth);
    return is_nth ? nth : 0;
}

void pay_fault_point(const char *name, const char *of)
{
    const char *wanted = getenv("PAYFACT_FAULT"); /* NOLINT(concurrency-mt-unsafe) */
    int64_t nth = wanted == NULL ? 0 : wanted_nth(wanted, name, of);
    if (nth > 0 && atomic_fetch_add(&reached, 1) + 1 == nth) {
        (void)raise(SIGKILL); /* cannot fail for oneself */
    }
}

#else
/* A translation unit may not be empty. */
typedef int pay_fault_compiled_out;
#endif
