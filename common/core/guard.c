/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/guard.h"

#include <assert.h>
#include <stddef.h>

#include "common/base/banned.h"

#if PAY_GUARDS_SWITCHABLE
uint64_t pay_guards_off = 0;
#endif

#define NAMED(name) [PAY_GUARD_##name] = #name

static const char *const guard_names[] = {
    NAMED(LIVE_RULE),
    NAMED(SUCCESS_BLOCKS),
    NAMED(FINAL_ORDER),
    NAMED(INTENT_CANCEL),
    NAMED(ORDER_EXPIRED),
    NAMED(FAILOVER_UNTIL),
    NAMED(LATE_MONEY_BLOCKS),
    NAMED(ROUTE_PAUSED),
    NAMED(FAILOVER_ON_NOT_FOUND),
    NAMED(EVIDENCE),
    NAMED(AMOUNT),
    NAMED(ACCOUNT),
    NAMED(UNEXPECTED_REFERENCE),
    NAMED(STALE_SUCCESS),
    NAMED(NOT_SENT_GATE),
    NAMED(NOT_FOUND_REFERENCE),
    NAMED(NOT_FOUND_ACTION),
    NAMED(NOT_FOUND_BY_NUMBER),
    NAMED(NOT_FOUND_ASKED_LATE),
    NAMED(CANCELED_ASKED_LATE),
    NAMED(UNKNOWN_WEAK_NEWS),
    NAMED(UNKNOWN_OVER_WEBHOOK),
    NAMED(LATE_SUCCESS_EVIDENCE),
    NAMED(AUTHORIZED_CANCEL),
    NAMED(WITHDRAWAL_CLOSES_GATES),
    NAMED(CANCEL_KNOWN),
    NAMED(OTHERS_WITHDRAWN),
    NAMED(CONFIRM_BLOCKED),
    NAMED(CONFIRM_ONCE),
    NAMED(ACTION_NOT_WHILE_CANCELED),
    NAMED(OLD_DEADLINE),
    NAMED(EXPIRY_WAITS),
    NAMED(REVERSAL_REPLAY),
};
static_assert(sizeof guard_names / sizeof guard_names[0] == PAY_GUARD_COUNT, "name every guard");

const char *pay_guard_name(enum pay_guard guard)
{
    return (size_t)guard < PAY_GUARD_COUNT ? guard_names[guard] : "?";
}
