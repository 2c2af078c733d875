/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/orchestrate.h"

#include "common/base/assert.h"
#include "common/core/guard.h"

#include "common/base/banned.h"

/* What the rules look at. ended: an attempt to be taken as ended already ("would the route go
 * on?"); -1: none. */
struct question {
    const struct pay_snapshot *snapshot;
    int64_t now_us;
    int ended;
};

static struct pay_next answer(enum pay_next_kind kind, const char *reason_code)
{
    return (struct pay_next){.kind = kind, .route_no = -1, .reason_code = reason_code};
}

/* A live attempt that is UNKNOWN blocks like every other; its reason says why nothing can be done
 * about it by a command. */
static const char *live_attempt(const struct question *q)
{
    for (size_t i = 0; i < q->snapshot->attempt_count; i++) {
        const struct pay_attempt *attempt = &q->snapshot->attempts[i];
        if ((int)i == q->ended || !attempt->live || attempt->status == PAY_ATTEMPT_SUCCEEDED) {
            continue;
        }
        return attempt->status == PAY_ATTEMPT_UNKNOWN ? "ATTEMPT_UNKNOWN" : "ATTEMPT_LIVE";
    }
    return NULL;
}

static bool has_success(const struct question *q)
{
    for (size_t i = 0; i < q->snapshot->attempt_count; i++) {
        if (q->snapshot->attempts[i].status == PAY_ATTEMPT_SUCCEEDED) {
            return true;
        }
    }
    return false;
}

static bool has_money_case(const struct pay_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->case_count; i++) {
        if (snapshot->cases[i].open && pay_case_is_money(snapshot->cases[i].kind)) {
            return true;
        }
    }
    return false;
}

/* The rules that no other route can lift. NULL: none holds. */
static const char *blocked_by_payment(const struct question *q)
{
    const struct pay_order *order = &q->snapshot->order;
    const char *live = live_attempt(q);

    if (PAY_GUARD(FINAL_ORDER, pay_order_is_final(order->status))) {
        return "ORDER_FINAL";
    }
    if (PAY_GUARD(LIVE_RULE, live != NULL)) {
        return live;
    }
    if (PAY_GUARD(SUCCESS_BLOCKS, has_success(q))) {
        return "ATTEMPT_SUCCEEDED";
    }
    if (PAY_GUARD(INTENT_CANCEL, order->intent == PAY_INTENT_CANCEL)) {
        return "INTENT_CANCEL";
    }
    if (PAY_GUARD(ORDER_EXPIRED, q->now_us >= order->expires_at_us)) {
        return "ORDER_EXPIRED";
    }
    return NULL;
}

/* The rules that time, a person or a merchant's command can lift. NULL: none holds. */
static const char *blocked_for_now(const struct question *q)
{
    const struct pay_order *order = &q->snapshot->order;

    if (PAY_GUARD(LATE_MONEY_BLOCKS, has_money_case(q->snapshot))) {
        return "MONEY_CASE_OPEN";
    }
    if (PAY_GUARD(FAILOVER_UNTIL, q->now_us >= order->failover_until_us)) {
        return "FAILOVER_WINDOW_OVER";
    }
    if (order->attempt_count >= PAY_ATTEMPTS_MAX) {
        return "LIMIT";
    }
    return NULL;
}

static struct pay_next may_start(const struct question *q, int route_no)
{
    PAY_ASSERT(route_no >= 0 && (size_t)route_no < q->snapshot->route_count);
    const char *reason = blocked_by_payment(q);

    if (reason == NULL) {
        reason = blocked_for_now(q);
    }
    if (reason == NULL && PAY_GUARD(ROUTE_PAUSED, q->snapshot->routes[route_no].paused)) {
        reason = "ROUTE_PAUSED";
    }
    if (reason != NULL) {
        return answer(PAY_NEXT_BLOCKED, reason);
    }
    return (struct pay_next){
        .kind = PAY_NEXT_START, .route_no = route_no, .reason_code = "NEXT_ROUTE"};
}

struct pay_next pay_orchestrate_may_start(const struct pay_snapshot *snapshot, int route_no,
                                          int64_t now_us)
{
    const struct question q = {snapshot, now_us, -1};
    return may_start(&q, route_no);
}

struct pay_next pay_orchestrate_may_start_after(const struct pay_snapshot *snapshot, int route_no,
                                                int attempt_index, int64_t now_us)
{
    const struct question q = {snapshot, now_us, attempt_index};
    return may_start(&q, route_no);
}

static bool was_tried(const struct pay_snapshot *snapshot, int route_no)
{
    for (size_t i = 0; i < snapshot->attempt_count; i++) {
        if (snapshot->attempts[i].route_no == route_no) {
            return true;
        }
    }
    return false;
}

/* A not-found is the weakest of the failures: the PSP may yet execute what it has not found, so
 * going on by itself is the route's choice (note 2). */
static bool stopped_by_not_found(const struct question *q)
{
    if (q->snapshot->attempt_count == 0) {
        return false;
    }
    const struct pay_attempt *last = &q->snapshot->attempts[q->snapshot->attempt_count - 1];
    return last->status == PAY_ATTEMPT_FAILED && last->failure_class == PAY_FAILURE_PSP_NOT_FOUND &&
           !q->snapshot->routes[last->route_no].failover_on_not_found;
}

static struct pay_next next_route(const struct question *q)
{
    const struct pay_snapshot *snapshot = q->snapshot;
    const char *reason = "NO_ROUTE_LEFT";

    for (int i = 0; (size_t)i < snapshot->route_count; i++) {
        if (was_tried(snapshot, i)) {
            continue;
        }
        if (PAY_GUARD(ROUTE_PAUSED, snapshot->routes[i].paused)) {
            reason = "ROUTE_PAUSED";
            continue;
        }
        return (struct pay_next){
            .kind = PAY_NEXT_START, .route_no = i, .reason_code = "NEXT_ROUTE"};
    }
    return answer(PAY_NEXT_EXHAUSTED, reason);
}

static struct pay_next next(const struct question *q)
{
    const char *reason = blocked_by_payment(q);
    if (reason != NULL) {
        return answer(PAY_NEXT_BLOCKED, reason);
    }
    reason = blocked_for_now(q);
    if (reason == NULL && PAY_GUARD(FAILOVER_ON_NOT_FOUND, stopped_by_not_found(q))) {
        reason = "FAILOVER_NOT_ALLOWED";
    }
    struct pay_next result = reason == NULL ? next_route(q) : answer(PAY_NEXT_EXHAUSTED, reason);
    if (result.kind == PAY_NEXT_EXHAUSTED && q->snapshot->order.retry_until_expiry) {
        result.kind = PAY_NEXT_AWAITING_METHOD;
    }
    return result;
}

struct pay_next pay_orchestrate_next(const struct pay_snapshot *snapshot, int64_t now_us)
{
    const struct question q = {snapshot, now_us, -1};
    return next(&q);
}

bool pay_orchestrate_would_go_on(const struct pay_snapshot *snapshot, int attempt_index,
                                 int64_t now_us)
{
    const struct question q = {snapshot, now_us, attempt_index};
    return next(&q).kind == PAY_NEXT_START;
}
