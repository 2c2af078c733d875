/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/report.h"

#include "common/base/log.h"

#include "common/base/banned.h"

static const char *const kind_names[PAY_ITEM_KIND_COUNT] = {
    [PAY_ITEM_EVENT] = "PSP_EVENT",
    [PAY_ITEM_COMMAND] = "COMMAND",
    [PAY_ITEM_DEADLINE] = "DEADLINE",
    [PAY_ITEM_REPLAY] = "REPLAY",
    [PAY_ITEM_REFUSED] = "REFUSED_NOTIFICATION",
    [PAY_ITEM_POISON] = "POISON",
};

static void count_decision(struct pay_metric *const *metrics, const struct pay_item *item)
{
    const char *verdict = pay_verdict_name(item->verdict);
    const char *source = pay_source_name(item->input.source);
    pay_metric_add(metrics[PAY_PM_INPUTS],
                   (const char *const[]){kind_names[item->kind], source, verdict}, 1);
    if (item->verdict == PAY_VERDICT_REJECT || item->verdict == PAY_VERDICT_NEEDS_RECONCILIATION) {
        pay_metric_add(metrics[PAY_PM_ILLEGAL], (const char *const[]){verdict, item->reason}, 1);
    }
    if (item->is_security) {
        pay_metric_add(metrics[PAY_PM_SECURITY], (const char *const[]){item->reason}, 1);
    }
}

static void report_item(const struct pay_try *turn, const struct pay_item *item)
{
    struct pay_metric *const *metrics = turn->worker->metrics;
    const char *kind = kind_names[item->kind];
    bool is_dead = item->kind == PAY_ITEM_POISON && item->dead_letter;
    bool is_repeat =
        item->same != NULL || (item->done && item->verdict == PAY_VERDICT_COUNT && !is_dead);
    if (is_repeat) {
        pay_metric_add(metrics[PAY_PM_DUPLICATES], (const char *const[]){kind}, 1);
    } else if (item->kind == PAY_ITEM_POISON) {
        const char *reason = pay_dead_reason_name(item->dead);
        pay_metric_add(metrics[PAY_PM_DEAD], (const char *const[]){reason}, 1);
        pay_log(PAY_LOG_ERROR, "input_dead", PAY_F_STR("reason", reason),
                PAY_F_STR("text", item->dead_text), PAY_F_STR("topic", item->msg->topic),
                PAY_F_INT("partition", item->msg->partition),
                PAY_F_INT("offset", item->msg->offset));
    } else {
        count_decision(metrics, item);
    }
    if (item->reason != NULL && pay_str_eq_c(PAY_STR("ORPHAN"), item->reason)) {
        pay_metric_add(metrics[PAY_PM_ORPHANS], (const char *const[]){"kept"}, 1);
    } else if (item->kind != PAY_ITEM_POISON && item->dead_letter) {
        pay_metric_add(metrics[PAY_PM_ORPHANS], (const char *const[]){"given_up"}, 1);
    }
    if (item->input.received_at_us > 0) {
        pay_metric_observe(metrics[PAY_PM_DECISION],
                           (const char *const[]){pay_source_name(item->input.source)},
                           turn->now_us - item->input.received_at_us);
    }
}

static void log_history(const struct pay_store_history_row *row)
{
    pay_log(PAY_LOG_INFO, "decided", PAY_F_STR("payment_id", row->payment_id.ptr),
            PAY_F_STR("aggregate_id", row->aggregate_id.ptr),
            PAY_F_STR("event_id", row->event_id.ptr), PAY_F_STR("input", row->event_name),
            PAY_F_STR("from", row->from_status), PAY_F_STR("to", row->to_status),
            PAY_F_STR("verdict", pay_verdict_name(row->verdict)),
            PAY_F_STR("source", pay_source_name(row->source)),
            PAY_F_STR("evidence", pay_evidence_name(row->evidence)),
            PAY_F_STR("reason", row->reason_code),
            PAY_F_STR("provider_reference", row->provider_reference.ptr),
            PAY_F_STR("published", row->published_event_id.ptr));
}

static void count_attempts(const struct pay_try *turn, const struct pay_unit *unit)
{
    for (size_t i = 0; i < unit->snapshot.attempt_count; i++) {
        const struct pay_attempt *attempt = &unit->snapshot.attempts[i];
        if (attempt->change == PAY_ROW_SAME) {
            continue;
        }
        pay_metric_add(turn->worker->metrics[PAY_PM_ATTEMPTS],
                       (const char *const[]){attempt->psp, attempt->method,
                                             unit->snapshot.order.merchant_id,
                                             pay_attempt_status_name(attempt->status),
                                             pay_failure_class_name(attempt->failure_class)},
                       1);
    }
}

static void report_unit(const struct pay_try *turn, const struct pay_unit *unit)
{
    for (size_t i = 0; i < unit->history.count; i++) {
        log_history(unit->history.items[i]);
    }
    count_attempts(turn, unit);
}

void pay_report(const struct pay_try *turn)
{
    pay_log_hold(); /* A line for each decision: one write for some. */
    for (size_t i = 0; i < turn->count; i++) {
        report_item(turn, turn->items[i]);
    }
    report_unit(turn, turn->loose);
    for (size_t i = 0; i < turn->units.count; i++) {
        report_unit(turn, turn->units.items[i]);
    }
    pay_log_let_go();
}
