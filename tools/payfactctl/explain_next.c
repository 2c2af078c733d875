/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/payfactctl/explain_render.h"

#include "common/base/banned.h"

#define US_PER_S INT64_C(1000000)
#define APPROVALS_NEEDED 2

struct plan {
    const struct pay_explain *explain;
    struct pay_explain_next *next;
    size_t count;
};

static void PAY_PRINTF(4, 5)
    add(struct plan *plan, const char *who, int64_t at, const char *fmt, ...)
{
    if (plan->count == PAY_EXPLAIN_NEXT_MAX) {
        return;
    }
    struct pay_explain_next *row = &plan->next[plan->count++];
    va_list args;
    *row = (struct pay_explain_next){.who = who, .at = at};
    va_start(args, fmt);
    (void)vsnprintf(row->what, sizeof row->what, fmt, args); /* cut at the end: still a sentence */
    va_end(args);
}

/* "2026-11-30 12:00:00.123 (in 30 s)"; "a time that is not set". */
struct when {
    char text[80];
};

static struct when when(const struct plan *plan, int64_t at)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    struct when result;
    char time[28];
    const int64_t left_s = (at - plan->explain->now_us) / US_PER_S;
    const int64_t span_s = left_s < 0 ? -left_s : left_s;
    size_t unit = 0;
    while (units[unit].seconds > 1 && span_s < 2 * units[unit].seconds) {
        unit++;
    }
    pay_explain_time(at, time);
    if (at == 0) {
        (void)snprintf(result.text, sizeof result.text, "a time that is not set");
    } else {
        (void)snprintf(result.text, sizeof result.text, "%s (%s%" PRId64 " %s%s)", time,
                       left_s < 0 ? "" : "in ", span_s / units[unit].seconds, units[unit].name,
                       left_s < 0 ? " ago" : "");
    }
    return result;
}

static int64_t due(const struct plan *plan, struct pay_str aggregate_id, const char *kind)
{
    const struct pay_explain *explain = plan->explain;
    for (size_t i = 0; i < explain->lists[PAY_EXPLAIN_DEADLINES].count; i++) {
        const struct pay_explain_deadline *row = pay_explain_row(explain, PAY_EXPLAIN_DEADLINES, i);
        if (pay_str_eq_c(row->kind, kind) && pay_str_eq(row->aggregate_id, aggregate_id)) {
            return row->due_at;
        }
    }
    return 0;
}

/* ---- people first ---- */

static void dead_events(struct plan *plan)
{
    const struct pay_explain *explain = plan->explain;
    for (size_t i = 0; i < explain->lists[PAY_EXPLAIN_OUTBOX].count; i++) {
        const struct pay_explain_outbox *row = pay_explain_row(explain, PAY_EXPLAIN_OUTBOX, i);
        if (row->dead_at != 0) {
            add(plan, "operator", row->dead_at,
                "an operator must look at outbox row %" PRId64 " (%s, refused: %s): it holds what"
                " this payment publishes after it",
                row->id, row->topic.ptr, row->dead_reason.ptr);
            return;
        }
    }
}

static void open_cases(struct plan *plan)
{
    const struct pay_explain *explain = plan->explain;
    const struct pay_explain_order *order = pay_explain_order(explain);
    for (size_t i = 0; i < explain->lists[PAY_EXPLAIN_CASES].count; i++) {
        const struct pay_explain_case *row = pay_explain_row(explain, PAY_EXPLAIN_CASES, i);
        char refund[48] = "none";
        if (!pay_str_eq_c(row->status, "OPEN")) {
            continue;
        }
        if (row->proposed_refund_minor > 0 && order != NULL) {
            pay_explain_money(row->proposed_refund_minor, order->currency, refund);
        }
        add(plan, "operator", row->opened_at,
            "an operator must resolve case %s (%s), open since %s, proposed refund: %s",
            row->case_id.ptr, row->kind.ptr, when(plan, row->opened_at).text, refund);
    }
}

static void approvals(struct plan *plan)
{
    const struct pay_explain *explain = plan->explain;
    for (size_t i = 0; i < explain->lists[PAY_EXPLAIN_APPROVALS].count; i++) {
        const struct pay_explain_approval *row = pay_explain_row(explain, PAY_EXPLAIN_APPROVALS, i);
        if (pay_str_eq_c(row->status, "PENDING")) {
            add(plan, "approver", row->expires_at,
                "approvers must decide on %s (%s, %" PRId64 " of %d approvals) until %s",
                row->request_id.ptr, row->command_type.ptr, row->approvals, APPROVALS_NEEDED,
                when(plan, row->expires_at).text);
        }
    }
}

/* ---- the live attempt ---- */

static void attempt_created(struct plan *plan, const struct pay_explain_attempt *attempt)
{
    const int64_t until = due(plan, attempt->attempt_id, "SEND");
    add(plan, "payfact", until, "payfact sends %s to %s; unsent by %s it is withdrawn",
        pay_explain_short(plan->explain, attempt->attempt_id).ptr, attempt->psp_account.ptr,
        when(plan, until).text);
}

static void attempt_silent(struct plan *plan, const struct pay_explain_attempt *attempt)
{
    const int64_t at = due(plan, attempt->attempt_id, "ANSWER");
    add(plan, "psp", at, "%s must say how %s ends; without a word recovery asks it at %s",
        attempt->psp_account.ptr, pay_explain_short(plan->explain, attempt->attempt_id).ptr,
        when(plan, at).text);
}

static void attempt_action(struct plan *plan, const struct pay_explain_attempt *attempt)
{
    const int64_t at = due(plan, attempt->attempt_id, "ACTION");
    const char *id = pay_explain_short(plan->explain, attempt->attempt_id).ptr;
    if (attempt->cancel_cause.ptr != NULL) {
        add(plan, "psp", at, "%s must confirm that %s is cancelled (%s); recovery asks it at %s",
            attempt->psp_account.ptr, id, attempt->cancel_cause.ptr, when(plan, at).text);
        return;
    }
    add(plan, "customer", at, "the customer must act on %s until %s, then it is cancelled", id,
        when(plan, at).text);
}

static void attempt_authorized(struct plan *plan, const struct pay_explain_attempt *attempt)
{
    add(plan, "merchant", attempt->authorization_expires_at,
        "the merchant must capture or cancel %s until %s",
        pay_explain_short(plan->explain, attempt->attempt_id).ptr,
        when(plan, attempt->authorization_expires_at).text);
}

static void attempt_unknown(struct plan *plan, const struct pay_explain_attempt *attempt)
{
    const int64_t query = due(plan, attempt->attempt_id, "QUERY");
    const int64_t manual = due(plan, attempt->attempt_id, "MANUAL");
    add(plan, "payfact", query,
        "recovery asks %s about %s at %s (asked %" PRId64 " times); a person gets it at %s",
        attempt->psp_account.ptr, pay_explain_short(plan->explain, attempt->attempt_id).ptr,
        when(plan, query).text, attempt->query_count, when(plan, manual).text);
}

typedef void attempt_fn(struct plan *plan, const struct pay_explain_attempt *attempt);

static attempt_fn *const by_status[PAY_ATTEMPT_STATUS_COUNT] = {
    [PAY_ATTEMPT_CREATED] = attempt_created,       [PAY_ATTEMPT_SUBMITTED] = attempt_silent,
    [PAY_ATTEMPT_PROCESSING] = attempt_silent,     [PAY_ATTEMPT_REQUIRES_ACTION] = attempt_action,
    [PAY_ATTEMPT_AUTHORIZED] = attempt_authorized, [PAY_ATTEMPT_UNKNOWN] = attempt_unknown,
};

/* @return true when an attempt blocks others. */
static bool live_attempts(struct plan *plan)
{
    const struct pay_explain *explain = plan->explain;
    bool has_live = false;
    for (size_t i = 0; i < explain->lists[PAY_EXPLAIN_ATTEMPTS].count; i++) {
        const struct pay_explain_attempt *row = pay_explain_row(explain, PAY_EXPLAIN_ATTEMPTS, i);
        enum pay_attempt_status status = PAY_ATTEMPT_STATUS_COUNT;
        if (pay_attempt_status_parse(row->status, &status) && by_status[status] != NULL) {
            by_status[status](plan, row);
            has_live = true;
        }
    }
    return has_live;
}

/* ---- captures, refunds, disputes ---- */

/* Nobody sends it before two people have said yes. */
static bool waits_for_approval(const struct plan *plan, struct pay_str action_id)
{
    const struct pay_explain *explain = plan->explain;
    for (size_t i = 0; i < explain->lists[PAY_EXPLAIN_APPROVALS].count; i++) {
        const struct pay_explain_approval *row = pay_explain_row(explain, PAY_EXPLAIN_APPROVALS, i);
        if (pay_str_eq_c(row->status, "PENDING") && pay_str_eq(row->aggregate_id, action_id)) {
            return true;
        }
    }
    return false;
}

static void open_action(struct plan *plan, const struct pay_explain_action *row)
{
    const char *id = pay_explain_short(plan->explain, row->action_id).ptr;
    const int64_t send = due(plan, row->action_id, "SEND");
    const int64_t answer = due(plan, row->action_id, "ANSWER");
    const int64_t query = due(plan, row->action_id, "QUERY");
    if (pay_str_eq_c(row->status, "CREATED") && !waits_for_approval(plan, row->action_id)) {
        add(plan, "payfact", send, "payfact sends %s; unsent by %s it is sent again or withdrawn",
            id, when(plan, send).text);
    } else if (pay_str_eq_c(row->status, "PROCESSING")) {
        add(plan, "psp", answer, "the PSP must say how %s ends; without a word it is asked at %s",
            id, when(plan, answer).text);
    } else if (pay_str_eq_c(row->status, "UNKNOWN")) {
        add(plan, "payfact", query,
            "recovery asks about %s at %s (asked %" PRId64 " times); its amount stays reserved", id,
            when(plan, query).text, row->query_count);
    }
}

static void open_actions(struct plan *plan, enum pay_explain_list list)
{
    for (size_t i = 0; i < plan->explain->lists[list].count; i++) {
        open_action(plan, pay_explain_row(plan->explain, list, i));
    }
}

static void open_disputes(struct plan *plan)
{
    const struct pay_explain *explain = plan->explain;
    for (size_t i = 0; i < explain->lists[PAY_EXPLAIN_DISPUTES].count; i++) {
        const struct pay_explain_dispute *row = pay_explain_row(explain, PAY_EXPLAIN_DISPUTES, i);
        const char *id = pay_explain_short(explain, row->dispute_id).ptr;
        if (pay_str_eq_c(row->status, "OPENED") || pay_str_eq_c(row->status, "EVIDENCE_DUE")) {
            add(plan, "merchant", row->evidence_due_at,
                "the merchant must answer dispute %s at the PSP until %s", id,
                when(plan, row->evidence_due_at).text);
        } else if (pay_str_eq_c(row->status, "UNDER_REVIEW")) {
            add(plan, "psp", 0, "the PSP must decide dispute %s", id);
        }
    }
}

/* ---- the rest ---- */

static void waiting_messages(struct plan *plan)
{
    const struct pay_explain *explain = plan->explain;
    size_t waiting = 0;
    int64_t oldest = 0;
    for (size_t i = 0; i < explain->lists[PAY_EXPLAIN_OUTBOX].count; i++) {
        const struct pay_explain_outbox *row = pay_explain_row(explain, PAY_EXPLAIN_OUTBOX, i);
        waiting += row->dead_at == 0 ? 1 : 0;
        oldest = oldest == 0 || row->created_at < oldest ? row->created_at : oldest;
    }
    if (waiting > 0) {
        add(plan, "payfact", oldest, "the publisher has %zu message(s) of it to send, since %s",
            waiting, when(plan, oldest).text);
    }
}

static void without_order(struct plan *plan)
{
    const struct pay_explain *explain = plan->explain;
    const size_t commands = explain->lists[PAY_EXPLAIN_COMMANDS].count;
    const size_t inputs = explain->lists[PAY_EXPLAIN_INPUTS].count;
    if (commands > 0) {
        const struct pay_explain_command *row =
            pay_explain_row(explain, PAY_EXPLAIN_COMMANDS, commands - 1);
        add(plan, "merchant", row->decided_at,
            "the merchant must ask again: there is no such payment, its latest command %s was"
            " answered %s (%s)",
            row->type.ptr, row->status.ptr,
            row->reason_code.ptr == NULL ? "no reason" : row->reason_code.ptr);
    }
    if (inputs > 0) {
        add(plan, "payfact", 0,
            "recovery tries the %zu input(s) again that name this payment, until it exists or the"
            " budget ends",
            inputs);
    }
}

static void of_order(struct plan *plan, const struct pay_explain_order *order)
{
    enum pay_order_status status = PAY_ORDER_STATUS_COUNT;
    const bool is_known = pay_order_status_parse(order->status, &status);
    if (is_known && !pay_order_is_final(status)) {
        add(plan, "merchant", order->expires_at,
            "the merchant must start an attempt (START_ATTEMPT) before %s, then the order expires",
            when(plan, order->expires_at).text);
    }
}

size_t pay_explain_next(const struct pay_explain *explain,
                        struct pay_explain_next ret_next[PAY_EXPLAIN_NEXT_MAX])
{
    struct plan plan = {.explain = explain, .next = ret_next};
    const struct pay_explain_order *order = pay_explain_order(explain);
    dead_events(&plan);
    open_cases(&plan);
    approvals(&plan);
    if (order == NULL) {
        without_order(&plan);
    } else if (!live_attempts(&plan)) {
        of_order(&plan, order);
    }
    open_disputes(&plan);
    open_actions(&plan, PAY_EXPLAIN_CAPTURES);
    open_actions(&plan, PAY_EXPLAIN_REFUNDS);
    waiting_messages(&plan);
    if (plan.count == 0) {
        add(&plan, "nobody", 0, "nobody has to act: the payment is %s",
            order == NULL ? "not known" : order->status.ptr);
    }
    return plan.count;
}
