/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/core/money.h"
#include "tools/payfactctl/explain_render.h"

#include "common/base/banned.h"

struct page {
    const struct pay_explain *explain;
    struct pay_buf *out;
};

/* Each once in an expression: a text that lives as long as the statement. */
struct small {
    char text[48];
};

void pay_explain_time(int64_t at_us, char dst[28])
{
    if (at_us == 0) {
        (void)pay_str_copy(dst, 28, PAY_STR("-")); /* it fits */
        return;
    }
    pay_clock_format(at_us, dst);
    dst[10] = ' ';
    dst[23] = '\0'; /* milliseconds are enough on the phone */
}

void pay_explain_money(int64_t amount_minor, struct pay_str currency, char dst[48])
{
    char digits[32];
    const int exponent = pay_money_exponent(currency);
    pay_money_format(amount_minor, exponent < 0 ? 0 : exponent, digits);
    (void)snprintf(dst, 48, "%s%s %.*s", digits, exponent < 0 ? " minor units of" : "",
                   (int)(currency.len > 3 ? 3 : currency.len),
                   currency.ptr == NULL ? "" : currency.ptr);
}

struct pay_str pay_explain_short(const struct pay_explain *explain, struct pay_str id)
{
    const size_t prefix = strlen(explain->payment_id);
    if (id.ptr == NULL || prefix == 0 || id.len <= prefix ||
        !pay_str_starts(id, explain->payment_id)) {
        return id;
    }
    const size_t skip = prefix + (id.ptr[prefix] == '.' ? 1 : 0); /* a case: id.KIND.n */
    return (struct pay_str){id.ptr + skip, id.len - skip};
}

const void *pay_explain_row(const struct pay_explain *explain, enum pay_explain_list list,
                            size_t index)
{
    const struct pay_explain_rows *rows = &explain->lists[list];
    PAY_ASSERT(index < rows->count);
    return (const char *)rows->rows + index * pay_explain_spec(list)->row_size;
}

static struct small at(int64_t at_us)
{
    struct small text;
    pay_explain_time(at_us, text.text);
    return text;
}

static struct small money(int64_t amount_minor, struct pay_str currency)
{
    struct small text;
    pay_explain_money(amount_minor, currency, text.text);
    return text;
}

static const char *or_dash(struct pay_str text)
{
    return text.ptr == NULL || text.len == 0 ? "-" : text.ptr;
}

static const char *level(int64_t number)
{
    return pay_evidence_name((enum pay_evidence)number);
}

static const char *short_id(const struct page *page, struct pay_str id)
{
    return or_dash(pay_explain_short(page->explain, id));
}

/* " name value" when there is a value. */
static void if_text(const struct page *page, const char *name, struct pay_str text)
{
    if (text.ptr != NULL && text.len > 0) {
        pay_buf_printf(page->out, "%s%s", name, text.ptr);
    }
}

static void if_time(const struct page *page, const char *name, int64_t at_us)
{
    if (at_us != 0) {
        pay_buf_printf(page->out, "%s%s", name, at(at_us).text);
    }
}

/* ---- order ---- */

static void order(const struct page *page)
{
    const struct pay_explain_order *row = pay_explain_order(page->explain);
    struct pay_buf *out = page->out;
    pay_buf_printf(out, "Payment %s", page->explain->payment_id);
    if (row == NULL) {
        pay_buf_add_c(out, ": there is no such order\n");
        return;
    }
    pay_buf_printf(out, " of %s, order %s\n", row->merchant_id.ptr, row->merchant_order_no.ptr);
    pay_buf_printf(out, "  status   %s", row->status.ptr);
    if_text(page, ", reason ", row->reason_code);
    pay_buf_printf(out, ", changed %s\n", at(row->updated_at).text);
    pay_buf_printf(out, "  amount   %s, capture %s\n", money(row->amount_minor, row->currency).text,
                   row->capture_mode.ptr);
    pay_buf_printf(out, "  intent   %s", row->intent.ptr);
    if_text(page, " by ", row->intent_command_id);
    pay_buf_printf(out, "\n  created  %s by %s\n  expires  %s, fails over by itself until %s\n",
                   at(row->created_at).text, row->created_by.ptr, at(row->expires_at).text,
                   at(row->failover_until).text);
    pay_buf_printf(out, "  version  %" PRId64 ", %" PRId64 " events numbered\n", row->version,
                   row->event_sequence);
}

static void next(const struct page *page)
{
    struct pay_explain_next rows[PAY_EXPLAIN_NEXT_MAX];
    const size_t count = pay_explain_next(page->explain, rows);
    for (size_t i = 0; i < count; i++) {
        pay_buf_printf(page->out, "%s%s\n", i == 0 ? "\nNext: " : "      ", rows[i].what);
    }
}

/* ---- one line of each list ---- */

static void route(const struct page *page, const void *data)
{
    const struct pay_explain_route *row = data;
    pay_buf_printf(page->out, "  %" PRId64 " %s/%s/%s%s%s\n", row->route_no, row->psp.ptr,
                   row->psp_account.ptr, row->method.ptr,
                   row->failover_on_not_found ? ", the next one after a not-found" : "",
                   row->is_paused ? ", paused by an operator" : "");
}

/* How it came to its state: the last change in history. */
static void last_change(const struct page *page, struct pay_str aggregate_id)
{
    for (size_t i = page->explain->lists[PAY_EXPLAIN_HISTORY].count; i > 0; i--) {
        const struct pay_explain_history *row =
            pay_explain_row(page->explain, PAY_EXPLAIN_HISTORY, i - 1);
        if (pay_str_eq(row->aggregate_id, aggregate_id) && pay_str_eq_c(row->verdict, "APPLY") &&
            row->to_status.ptr != NULL && !pay_str_eq(row->from_status, row->to_status)) {
            pay_buf_printf(page->out, "      became %s at %s by %s from %s (%s)\n",
                           row->to_status.ptr, at(row->decided_at).text, row->event_type.ptr,
                           row->source.ptr, row->reason_code.ptr);
            return;
        }
    }
}

static void references(const struct page *page, struct pay_str attempt_id)
{
    const char *before = "      references ";
    for (size_t i = 0; i < page->explain->lists[PAY_EXPLAIN_REFERENCES].count; i++) {
        const struct pay_explain_reference *row =
            pay_explain_row(page->explain, PAY_EXPLAIN_REFERENCES, i);
        if (pay_str_eq(row->attempt_id, attempt_id)) {
            pay_buf_printf(page->out, "%s%s %s", before, row->kind.ptr, row->reference.ptr);
            before = ", ";
        }
    }
    if (before[0] == ',') {
        pay_buf_add_char(page->out, '\n');
    }
}

static void amounts(const struct page *page, const struct pay_explain_attempt *row)
{
    const struct {
        const char *name;
        int64_t minor;
    } parts[] = {
        {"authorized", row->authorized_minor}, {"capture reserved", row->capture_reserved_minor},
        {"captured", row->captured_minor},     {"refund reserved", row->refund_reserved_minor},
        {"refunded", row->refunded_minor},     {"withdrawn", row->withdrawn_minor},
    };
    const char *before = "      ";
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].minor != 0) {
            pay_buf_printf(page->out, "%s%s %s", before, parts[i].name,
                           money(parts[i].minor, row->currency).text);
            before = ", ";
        }
    }
    pay_buf_add_c(page->out, before[0] == ',' ? "\n" : "      no money moved that we know of\n");
}

static void attempt_times(const struct page *page, const struct pay_explain_attempt *row)
{
    pay_buf_printf(page->out, "      created %s", at(row->created_at).text);
    if_time(page, ", submitted ", row->submitted_at);
    if_time(page, ", known to the PSP since ", row->known_at);
    if_time(page, ", unknown since ", row->unknown_since);
    if_time(page, ", customer has until ", row->action_expires_at);
    if_time(page, ", authorized until ", row->authorization_expires_at);
    if_time(page, ", settled ", row->settled_at);
    if (row->query_count > 0) {
        pay_buf_printf(page->out, ", asked %" PRId64 " times (%" PRId64 " not-founds in a row)",
                       row->query_count, row->not_found_count);
    }
    pay_buf_add_char(page->out, '\n');
}

static void attempt(const struct page *page, const void *data)
{
    const struct pay_explain_attempt *row = data;
    pay_buf_printf(page->out, "  %s %s, %s, %s/%s/%s, %s, certainty %s",
                   short_id(page, row->attempt_id), row->status.ptr,
                   row->live ? "blocks others" : "blocks nothing", row->psp.ptr,
                   row->psp_account.ptr, row->method.ptr,
                   money(row->amount_minor, row->currency).text, level(row->result_certainty));
    if_text(page, ", being cancelled: ", row->cancel_cause);
    if_text(page, ", failure ", row->failure_class);
    if_text(page, "/", row->failure_code);
    pay_buf_add_char(page->out, '\n');
    last_change(page, row->attempt_id);
    attempt_times(page, row);
    amounts(page, row);
    references(page, row->attempt_id);
}

static void action(const struct page *page, const void *data)
{
    const struct pay_explain_action *row = data;
    pay_buf_printf(page->out, "  %s of %s %s, version %" PRId64 ", %s, by %s, certainty %s",
                   short_id(page, row->action_id), short_id(page, row->attempt_id), row->status.ptr,
                   row->version, money(row->amount_minor, row->currency).text, row->origin.ptr,
                   level(row->result_certainty));
    if_text(page, ", reference ", row->provider_reference);
    if_text(page, ", failure ", row->failure_class);
    if_text(page, "/", row->failure_code);
    if_time(page, ", unknown since ", row->unknown_since);
    if_time(page, ", settled ", row->settled_at);
    pay_buf_printf(page->out, ", created %s\n", at(row->created_at).text);
}

static void dispute(const struct page *page, const void *data)
{
    const struct pay_explain_dispute *row = data;
    pay_buf_printf(page->out, "  %s of %s %s%s, version %" PRId64 ", %s, withdrawn %s",
                   short_id(page, row->dispute_id), short_id(page, row->attempt_id),
                   row->status.ptr, row->is_inquiry ? " (inquiry)" : "", row->version,
                   money(row->amount_minor, row->currency).text,
                   money(row->withdrawn_minor, row->currency).text);
    if_text(page, ", reference ", row->provider_reference);
    if_time(page, ", evidence due ", row->evidence_due_at);
    pay_buf_add_char(page->out, '\n');
}

/* Was it sent? The answer to the first question on the phone. */
static void sending(const struct page *page, const void *data)
{
    const struct pay_explain_send *row = data;
    struct pay_buf *out = page->out;
    pay_buf_printf(out, "  %s ", short_id(page, row->job_id));
    if (row->sends == 0) {
        pay_buf_printf(out, "not sent, may be until %s", at(row->not_after).text);
    } else {
        pay_buf_printf(out, "sent %" PRId64 " time(s), first %s, last %s by %s", row->sends,
                       row->sending_at == 0 ? "taken back: it did not leave"
                                            : at(row->sending_at).text,
                       at(row->last_send_at).text, or_dash(row->sent_by));
    }
    if_time(page, ", answered ", row->finished_at);
    if (row->closed_at != 0) {
        pay_buf_printf(out, ", closed %s%s", at(row->closed_at).text,
                       row->sending_at == 0 ? ": certainly never sent" : "");
    }
    pay_buf_add_char(out, '\n');
}

/* How often this input came: repeats change nothing but are counted. */
static int64_t deliveries(const struct page *page, struct pay_str event_id)
{
    for (size_t i = 0; i < page->explain->lists[PAY_EXPLAIN_INPUTS].count; i++) {
        const struct pay_explain_input *row = pay_explain_row(page->explain, PAY_EXPLAIN_INPUTS, i);
        if (pay_str_eq(row->input_id, event_id)) {
            return row->delivery_count;
        }
    }
    return 1;
}

static void history_end(const struct page *page, const struct pay_explain_history *row)
{
    struct pay_buf *out = page->out;
    const int64_t times = deliveries(page, row->event_id);
    if (row->amount_minor != 0) {
        pay_buf_printf(out, ", %s", money(row->amount_minor, row->currency).text);
    }
    if_text(page, ", ", row->provider_reference);
    if (row->http_status != 0) {
        pay_buf_printf(out, ", HTTP %" PRId64, row->http_status);
    }
    if_text(page, ", PSP's request ", row->psp_request_id);
    if_text(page, ", by ", row->principal);
    if (times > 1) {
        pay_buf_printf(out, ", delivered %" PRId64 " times", times);
    }
    if (row->published_sequence != 0) {
        const char *slash = strchr(row->published_event_id.ptr, '/');
        pay_buf_printf(out, ", published #%" PRId64 " %.*s", row->published_sequence,
                       (int)(slash == NULL ? (ptrdiff_t)row->published_event_id.len
                                           : slash - row->published_event_id.ptr),
                       row->published_event_id.ptr);
    }
    pay_buf_add_char(out, '\n');
}

static void history(const struct page *page, const void *data)
{
    const struct pay_explain_history *row = data;
    pay_buf_printf(page->out, "  %s %s %s %s from %s (%s): ", at(row->decided_at).text,
                   pay_str_eq_c(row->aggregate_id, page->explain->payment_id)
                       ? "order"
                       : short_id(page, row->aggregate_id),
                   row->verdict.ptr, row->event_type.ptr, row->source.ptr,
                   level(row->evidence_level));
    if (row->to_status.ptr != NULL && !pay_str_eq(row->from_status, row->to_status)) {
        pay_buf_printf(page->out, "%s -> %s, ", or_dash(row->from_status), row->to_status.ptr);
    }
    pay_buf_printf(page->out, "%s", row->reason_code.ptr);
    history_end(page, row);
}

static void input(const struct page *page, const void *data)
{
    const struct pay_explain_input *row = data;
    pay_buf_printf(page->out, "  %s %s from %s", at(row->first_seen_at).text, row->kind.ptr,
                   row->source.ptr);
    if_text(page, " ", row->psp);
    if_text(page, "/", row->psp_account);
    pay_buf_printf(page->out, " %s, verified by %s, %s", row->transport_key.ptr,
                   row->verification.ptr, row->status.ptr);
    if (row->delivery_count > 1) {
        pay_buf_printf(page->out, ", came %" PRId64 " times, last %s", row->delivery_count,
                       at(row->last_seen_at).text);
    }
    pay_buf_add_char(page->out, '\n');
}

static void command(const struct page *page, const void *data)
{
    const struct pay_explain_command *row = data;
    pay_buf_printf(page->out, "  %s %s %s/%s: %s", at(row->decided_at).text, row->type.ptr,
                   row->caller.ptr, row->command_id.ptr, row->status.ptr);
    if_text(page, ", ", row->reason_code);
    pay_buf_add_char(page->out, '\n');
}

static void approval(const struct page *page, const void *data)
{
    const struct pay_explain_approval *row = data;
    pay_buf_printf(page->out, "  %s %s of %s by %s (%s): %s with %" PRId64 " approval(s)",
                   row->request_id.ptr, row->command_type.ptr, short_id(page, row->aggregate_id),
                   row->requested_by.ptr, row->reason_code.ptr, row->status.ptr, row->approvals);
    if_text(page, " by ", row->approved_by);
    pay_buf_printf(page->out, ", ends %s\n    sha256 %s\n", at(row->expires_at).text,
                   row->sha256.ptr);
}

static void a_case(const struct page *page, const void *data)
{
    const struct pay_explain_case *row = data;
    const struct pay_explain_order *of = pay_explain_order(page->explain);
    pay_buf_printf(page->out, "  %s %s about %s, opened %s", short_id(page, row->case_id),
                   row->status.ptr, short_id(page, row->aggregate_id), at(row->opened_at).text);
    if (row->proposed_refund_minor > 0 && of != NULL) {
        pay_buf_printf(page->out, ", proposed refund %s",
                       money(row->proposed_refund_minor, of->currency).text);
    }
    if_time(page, ", resolved ", row->resolved_at);
    if_text(page, " by ", row->resolved_by);
    if_text(page, ": ", row->resolution_code);
    pay_buf_add_char(page->out, '\n');
}

static void outbox(const struct page *page, const void *data)
{
    const struct pay_explain_outbox *row = data;
    pay_buf_printf(page->out, "  %s %s row %" PRId64 " of shard %" PRId64, at(row->created_at).text,
                   row->topic.ptr, row->id, row->shard);
    if (row->attempts > 0) {
        pay_buf_printf(page->out, ", refused %" PRId64 " time(s)", row->attempts);
    }
    if_time(page, ", not before ", row->available_at);
    if_time(page, ", given up ", row->dead_at);
    if_text(page, ": ", row->dead_reason);
    pay_buf_add_char(page->out, '\n');
}

static void deadline(const struct page *page, const void *data)
{
    const struct pay_explain_deadline *row = data;
    pay_buf_printf(page->out, "  %s %s of %s%s", at(row->due_at).text, row->kind.ptr,
                   pay_str_eq_c(row->aggregate_id, page->explain->payment_id)
                       ? "the order"
                       : short_id(page, row->aggregate_id),
                   row->due_at < page->explain->now_us ? ", overdue" : "");
    if (row->tries > 0) {
        pay_buf_printf(page->out, ", tried %" PRId64 " time(s)", row->tries);
    }
    pay_buf_add_char(page->out, '\n');
}

/* ---- the page ---- */

static const struct section {
    enum pay_explain_list list;
    const char *title;
    void (*line)(const struct page *page, const void *row);
} sections[] = {
    {PAY_EXPLAIN_ATTEMPTS, "Attempts", attempt},
    {PAY_EXPLAIN_CAPTURES, "Captures", action},
    {PAY_EXPLAIN_REFUNDS, "Refunds", action},
    {PAY_EXPLAIN_DISPUTES, "Disputes", dispute},
    {PAY_EXPLAIN_CASES, "Cases", a_case},
    {PAY_EXPLAIN_SENDS, "Money calls to PSPs", sending},
    {PAY_EXPLAIN_DEADLINES, "Scheduled", deadline},
    {PAY_EXPLAIN_OUTBOX, "Waiting for the publisher", outbox},
    {PAY_EXPLAIN_APPROVALS, "Approvals", approval},
    {PAY_EXPLAIN_COMMANDS, "Commands", command},
    {PAY_EXPLAIN_HISTORY, "History", history},
    {PAY_EXPLAIN_INPUTS, "Inputs", input},
    {PAY_EXPLAIN_ROUTES, "Routes", route},
};

static void verdicts(const struct page *page)
{
    size_t counts[PAY_VERDICT_COUNT] = {0};
    for (size_t i = 0; i < page->explain->lists[PAY_EXPLAIN_HISTORY].count; i++) {
        const struct pay_explain_history *row =
            pay_explain_row(page->explain, PAY_EXPLAIN_HISTORY, i);
        for (int v = 0; v < PAY_VERDICT_COUNT; v++) {
            counts[v] += pay_str_eq_c(row->verdict, pay_verdict_name((enum pay_verdict)v)) ? 1 : 0;
        }
    }
    for (int v = 0; v < PAY_VERDICT_COUNT; v++) {
        pay_buf_printf(page->out, "%s%zu %s", v == 0 ? ": " : ", ", counts[v],
                       pay_verdict_name((enum pay_verdict)v));
    }
}

static void repeats(const struct page *page)
{
    int64_t count = 0;
    for (size_t i = 0; i < page->explain->lists[PAY_EXPLAIN_INPUTS].count; i++) {
        const struct pay_explain_input *row = pay_explain_row(page->explain, PAY_EXPLAIN_INPUTS, i);
        count += row->delivery_count - 1;
    }
    pay_buf_printf(page->out, ": %zu, repeated %" PRId64 " time(s)",
                   page->explain->lists[PAY_EXPLAIN_INPUTS].count, count);
}

static void section(const struct page *page, const struct section *what)
{
    const struct pay_explain_rows *rows = &page->explain->lists[what->list];
    if (rows->count == 0) {
        return;
    }
    pay_buf_printf(page->out, "\n%s", what->title);
    if (what->list == PAY_EXPLAIN_HISTORY) {
        verdicts(page);
    } else if (what->list == PAY_EXPLAIN_INPUTS) {
        repeats(page);
    }
    pay_buf_printf(page->out, "%s\n", rows->has_more ? " (older ones left out)" : "");
    for (size_t i = 0; i < rows->count; i++) {
        what->line(page, pay_explain_row(page->explain, what->list, i));
    }
}

void pay_explain_text(const struct pay_explain *explain, struct pay_buf *out)
{
    const struct page page = {explain, out};
    order(&page);
    next(&page);
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        section(&page, &sections[i]);
    }
    pay_buf_printf(out, "\nAll times are UTC, as of %s.\n", at(explain->now_us).text);
}
