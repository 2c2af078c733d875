/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/guard.h"

#include <assert.h>
#include <stddef.h>

#include "common/base/banned.h"

static_assert(PAY_GUARD_COUNT <= 64, "a bit for every guard");

#if PAY_GUARDS_SWITCHABLE
uint64_t pay_guards_off = 0;
#endif

struct guard_words {
    const char *name;
    const char *text;
};

#define WORDS(name, text) {#name, text},
static const struct guard_words words[PAY_GUARD_COUNT] = {PAY_GUARD_LIST(WORDS)};

const char *pay_guard_name(enum pay_guard guard)
{
    return (size_t)guard < PAY_GUARD_COUNT ? words[guard].name : "?";
}

const char *pay_guard_text(enum pay_guard guard)
{
    return (size_t)guard < PAY_GUARD_COUNT ? words[guard].text : "?";
}
