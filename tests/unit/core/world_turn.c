/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/core/world.h"

#include <stdlib.h>

struct world_row *world_find_row(struct world *w, enum pay_deadline_kind kind,
                                 const char *aggregate_id)
{
    for (size_t i = 0; i < w->row_count; i++) {
        if (w->rows[i].kind == kind && strcmp(w->rows[i].aggregate_id, aggregate_id) == 0) {
            return &w->rows[i];
        }
    }
    return NULL;
}

static void keep_deadline(struct world *w, const struct pay_effect *effect)
{
    struct world_row *row =
        world_find_row(w, effect->as.deadline.kind, effect->as.deadline.aggregate_id);

    if (effect->kind == PAY_EFFECT_DEADLINE_CLEAR) {
        const int64_t before_us = effect->as.deadline.set_before_us;
        if (row != NULL && (before_us == 0 || row->set_at_us < before_us)) {
            *row = w->rows[--w->row_count];
        }
        return;
    }
    if (row == NULL) {
        assert_true(w->row_count < sizeof w->rows / sizeof w->rows[0]);
        row = &w->rows[w->row_count++];
        row->kind = effect->as.deadline.kind;
        memcpy(row->aggregate_id, effect->as.deadline.aggregate_id, sizeof row->aggregate_id);
    }
    row->due_at_us = effect->as.deadline.due_at_us;
    row->set_at_us = w->now_us;
}

static void commit(struct world *w)
{
    w->snap.order.version += w->out.history_count > 0 ? 1 : 0;
    w->snap.order.change = PAY_ROW_SAME;
    for (size_t i = 0; i < w->snap.attempt_count; i++) {
        w->attempts[i].version += w->attempts[i].change != PAY_ROW_SAME ? 1 : 0;
        w->attempts[i].change = PAY_ROW_SAME;
        w->attempts[i].amounts_changed = false;
    }
    for (size_t i = 0; i < w->snap.gate_count; i++) {
        w->gates[i].change = PAY_ROW_SAME;
    }
    for (size_t i = 0; i < w->snap.reference_count; i++) {
        w->references[i].change = PAY_ROW_SAME;
    }
    for (size_t i = 0; i < w->snap.case_count; i++) {
        w->cases[i].version += w->cases[i].change != PAY_ROW_SAME ? 1 : 0;
        w->cases[i].change = PAY_ROW_SAME;
    }
    for (size_t i = 0; i < w->snap.capture_count; i++) {
        w->captures[i].version += w->captures[i].change != PAY_ROW_SAME ? 1 : 0;
        w->captures[i].change = PAY_ROW_SAME;
    }
    for (size_t i = 0; i < w->snap.refund_count; i++) {
        w->refunds[i].version += w->refunds[i].change != PAY_ROW_SAME ? 1 : 0;
        w->refunds[i].change = PAY_ROW_SAME;
    }
    for (size_t i = 0; i < w->snap.dispute_count; i++) {
        w->disputes[i].version += w->disputes[i].change != PAY_ROW_SAME ? 1 : 0;
        w->disputes[i].change = PAY_ROW_SAME;
    }
    for (size_t i = 0; i < w->snap.request_count; i++) {
        w->requests[i].change = PAY_ROW_SAME;
    }
    for (size_t i = 0; i < w->snap.approval_count; i++) {
        w->approvals[i].change = PAY_ROW_SAME;
    }
    w->snap.refund_day.amount_minor += w->snap.refund_day.added_minor;
    w->snap.refund_day.added_minor = 0;
    w->snap.refund_day.change = PAY_ROW_SAME;
}

static int by_job_id(const void *left, const void *right)
{
    const struct pay_gate *a = left;
    const struct pay_gate *b = right;
    return strcmp(a->job_id, b->job_id);
}

static int by_reference(const void *left, const void *right)
{
    const struct pay_bound_reference *a = left;
    const struct pay_bound_reference *b = right;
    const int by_kind = strcmp(pay_reference_kind_name(a->kind), pay_reference_kind_name(b->kind));

    if (a->attempt_index != b->attempt_index) {
        return a->attempt_index - b->attempt_index;
    }
    return by_kind != 0 ? by_kind : strcmp(a->reference, b->reference);
}

/* The store loads them by their names, not in the order in which they were made: a CONFIRM before
 * its SUBMIT, .REFUND.10 before .REFUND.2. */
static void load(struct world *w)
{
    qsort(w->gates, w->snap.gate_count, sizeof w->gates[0], by_job_id);
    qsort(w->references, w->snap.reference_count, sizeof w->references[0], by_reference);
}

static bool has_row(const struct world *w, const char *id)
{
    for (size_t r = 0; r < w->row_count; r++) {
        if (strcmp(w->rows[r].aggregate_id, id) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_more_than_a_question(const struct world *w, const char *id)
{
    for (size_t r = 0; r < w->row_count; r++) {
        const struct world_row *row = &w->rows[r];
        if (row->kind != PAY_DEADLINE_QUERY && row->kind != PAY_DEADLINE_MANUAL &&
            strcmp(row->aggregate_id, id) == 0) {
            return true;
        }
    }
    return false;
}

/* What is over waits at most for the answer to a question. */
static void check_row(const struct world *w, const char *id, bool is_open)
{
    if (is_open) {
        assert_true(has_row(w, id));
    } else {
        assert_false(has_more_than_a_question(w, id));
    }
}

static void check_action_row(const struct world *w, const struct pay_money_action *action)
{
    check_row(w, action->action_id, pay_money_is_open(action->status));
}

static bool asks(enum pay_deadline_kind kind)
{
    return kind == PAY_DEADLINE_SEND || kind == PAY_DEADLINE_ANSWER || kind == PAY_DEADLINE_QUERY ||
           kind == PAY_DEADLINE_ACTION;
}

/* A job is lost where the PSP's role is away for longer than it lives: behind every question stands
 * a row by which it is asked again soon. */
static void check_questions(const struct world *w)
{
    for (size_t i = 0; i < w->out.effect_count; i++) {
        const struct pay_effect *effect = &w->out.effects[i];
        const struct pay_job_effect *job = &effect->as.job;
        bool waits = effect->kind != PAY_EFFECT_JOB ||
                     (job->kind != PAY_JOB_QUERY && job->kind != PAY_JOB_QUERY_CAPTURE &&
                      job->kind != PAY_JOB_QUERY_REFUND);
        for (size_t r = 0; r < w->row_count; r++) {
            const struct world_row *row = &w->rows[r];
            waits |= asks(row->kind) &&
                     strncmp(job->job_id, row->aggregate_id, PAY_ACTION_ID_SIZE - 1) == 0;
        }
        assert_true(waits);
    }
}

/* So has every open capture, refund and request. */
static void check_action_rows(const struct world *w)
{
    for (size_t i = 0; i < w->snap.capture_count; i++) {
        check_action_row(w, &w->captures[i]);
    }
    for (size_t i = 0; i < w->snap.refund_count; i++) {
        check_action_row(w, &w->refunds[i]);
    }
    for (size_t i = 0; i < w->snap.request_count; i++) {
        assert_int_equal(has_row(w, w->requests[i].request_id),
                         w->requests[i].status == PAY_REQUEST_PENDING);
    }
}

/* Every open attempt has a row that will wake it, and an open order has its expiry. */
static void check_rows(struct world *w)
{
    if (!w->snap.order.exists) {
        return;
    }
    const bool expires = world_find_row(w, PAY_DEADLINE_ORDER_EXPIRY, WORLD_PAYMENT) != NULL;
    assert_true(expires || w->snap.order.expiry_asked || pay_order_is_final(w->snap.order.status));
    for (size_t i = 0; i < w->snap.attempt_count; i++) {
        check_row(w, w->attempts[i].attempt_id, !pay_attempt_is_final(w->attempts[i].status));
    }
}

/* Every fact stands in exactly one history row: the outbox row is deleted when it is delivered. */
static void check_facts(const struct world *w)
{
    for (size_t i = 0; i < w->out.effect_count; i++) {
        int rows = 0;
        for (size_t h = 0; h < w->out.history_count; h++) {
            rows += w->out.history[h].fact_effect == (int)i ? 1 : 0;
        }
        assert_int_equal(rows, w->out.effects[i].kind == PAY_EFFECT_FACT ? 1 : 0);
    }
}

/* What stands behind the rows is nobody's: in turn nothing, junk, and what looks like the first
 * row. */
static void spoil(void *rows, size_t size, size_t count, size_t cap, int how)
{
    char *free_rows = (char *)rows + size * count;
    const size_t room = cap - count < 2 ? cap - count : 2;

    if (how == 1) {
        memset(free_rows, 0xA5, size * room);
    } else if (how == 2 && count > 0 && room > 0) {
        memcpy(free_rows, rows, size);
    } else {
        memset(free_rows, 0, size * room);
    }
}

#define SPOIL(rows_, count_, cap_) spoil(rows_, sizeof((rows_)[0]), count_, cap_, how)

static void spoil_free_rows(struct world *w)
{
    struct pay_snapshot *snap = &w->snap;
    const int how = w->causes % 3;

    SPOIL(snap->attempts, snap->attempt_count, snap->attempt_cap);
    SPOIL(snap->gates, snap->gate_count, snap->gate_cap);
    SPOIL(snap->references, snap->reference_count, snap->reference_cap);
    SPOIL(snap->cases, snap->case_count, snap->case_cap);
    SPOIL(snap->captures, snap->capture_count, snap->capture_cap);
    SPOIL(snap->refunds, snap->refund_count, snap->refund_cap);
    SPOIL(snap->disputes, snap->dispute_count, snap->dispute_cap);
    SPOIL(snap->requests, snap->request_count, snap->request_cap);
    SPOIL(snap->approvals, snap->approval_count, snap->approval_cap);
}

void world_turn(struct world *w)
{
    commit(w); /* Of the turn before: a test can look at what a decision has marked. */
    load(w);
    spoil_free_rows(w);
    pay_decide(&w->snap, &w->input, &w->out);
    for (size_t i = 0; i < w->out.effect_count; i++) {
        const struct pay_effect *effect = &w->out.effects[i];
        if (effect->kind == PAY_EFFECT_DEADLINE_SET || effect->kind == PAY_EFFECT_DEADLINE_CLEAR) {
            keep_deadline(w, effect);
        }
    }
    check_facts(w);
    check_rows(w);
    check_action_rows(w);
    check_questions(w);
}
