/* SPDX-License-Identifier: Apache-2.0 */
#include "services/recovery/internal.h"

#include <string.h>

#include "common/base/mem.h"

#include "common/base/banned.h"

static void set_schedule(struct pay_recovery *rec, const struct pay_accounts *accounts,
                         struct pay_task *task)
{
    const struct pay_account *account =
        pay_accounts_account(accounts, pay_str_of(task->ask.psp_account));
    if (account == NULL) { /* Removed from the file: asked slowly, and ingest says why it cannot. */
        task->schedule = (struct pay_plan_schedule){rec->cfg->orphan_max_ms * 1000,
                                                    rec->cfg->orphan_max_ms * 1000, INT64_MAX / 2};
        return;
    }
    task->schedule = (struct pay_plan_schedule){
        account->traits.query_first_us, account->query_max_us, account->traits.person_after_us};
}

/* What the rows with a query are about, in one round trip. */
static enum pay_status load_subjects(struct pay_recovery *rec, struct pay_err *err)
{
    const size_t count = rec->task_count;
    struct pay_str *ids = pay_arena_array(rec->arena, count, sizeof *ids);
    struct pay_store_ask *asks = pay_arena_array(rec->arena, count, sizeof *asks);
    size_t *owners = pay_arena_array(rec->arena, count, sizeof *owners);
    if (ids == NULL || asks == NULL || owners == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "lease", "arena full");
    }
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++) {
        if (rec->tasks[i].plan == PAY_PLAN_QUERY) {
            ids[wanted] = pay_str_of(rec->tasks[i].due.aggregate_id);
            owners[wanted++] = i;
        }
    }
    if (wanted == 0) {
        return PAY_OK;
    }
    const enum pay_status status =
        pay_store_ask_load(rec->store, ids, wanted, rec->arena, asks, err);
    const struct pay_accounts *accounts = pay_accounts_acquire(rec->accounts);
    for (size_t i = 0; status == PAY_OK && i < wanted; i++) {
        struct pay_task *task = &rec->tasks[owners[i]];
        task->ask = asks[i];
        set_schedule(rec, accounts, task);
        if (task->due.kind == PAY_DEADLINE_ANSWER && task->ask.attempt_id[0] != '\0') {
            task->plan = pay_plan_answer(&task->ask, &task->schedule, rec->now_us);
        }
    }
    pay_accounts_release(accounts);
    return status;
}

/* Longest lease of a row that waits for a decision: while none is made, its input is in the topic,
 * and more of the same only come before what PSPs say. */
#define LEASE_MAX_US INT64_C(900000000)

static struct pay_store_lease_wish lease_wish(const struct pay_recovery *rec)
{
    const int64_t lease_us = rec->cfg->lease_ms * 1000;
    struct pay_store_lease_wish wish = {
        .max = (size_t)rec->cfg->batch_rows_max,
        .lease_us = lease_us,
        .lease_max_us = lease_us > LEASE_MAX_US ? lease_us : LEASE_MAX_US,
    };
    for (int kind = 0; kind < PAY_DEADLINE_KIND_COUNT; kind++) {
        wish.grows[kind] = pay_plan_of((enum pay_deadline_kind)kind) == PAY_PLAN_DEADLINE;
    }
    return wish;
}

enum pay_status pay_recovery_lease(struct pay_recovery *rec, struct pay_err *err)
{
    const struct pay_store_lease_wish wish = lease_wish(rec);
    struct pay_store_due *rows = pay_arena_array(rec->arena, wish.max, sizeof *rows);
    if (rows == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "lease", "arena full");
    }
    size_t count = 0;
    rec->task_count = 0;
    enum pay_status status =
        pay_store_deadline_lease(rec->store, &wish, rows, &count, &rec->now_us, err);
    if (status != PAY_OK) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        rec->tasks[i] = (struct pay_task){.due = rows[i], .plan = pay_plan_of(rows[i].kind)};
    }
    rec->task_count = count;
    return load_subjects(rec, err);
}

static int64_t next_due(const struct pay_recovery *rec, const struct pay_task *task)
{
    uint64_t random = 0;
    pay_mem_random(&random, sizeof random);
    const int64_t first_us =
        task->plan == PAY_PLAN_REPLAY ? rec->cfg->orphan_first_ms * 1000 : task->schedule.first_us;
    const int64_t max_us =
        task->plan == PAY_PLAN_REPLAY ? rec->cfg->orphan_max_ms * 1000 : task->schedule.max_us;
    return pay_plan_next_due(rec->now_us, task->due.tries, first_us, max_us, random);
}

void pay_recovery_count_sent(struct pay_recovery *rec)
{
    for (size_t i = 0; i < rec->task_count; i++) {
        const struct pay_task *task = &rec->tasks[i];
        if (task->acknowledged) {
            const char *const labels[] = {pay_plan_name(task->plan),
                                          pay_deadline_kind_name(task->due.kind)};
            pay_metric_add(rec->metrics[PAY_RM_SENT], labels, 1);
        }
    }
}

/* What becomes of the rows of a batch. */
struct settling {
    struct pay_store_due *moved, *freed, *held;
    int64_t *next_us; /* One per moved row. */
    size_t moved_count, freed_count, held_count;
};

static bool make_room(const struct pay_recovery *rec, struct settling *rows)
{
    const size_t count = rec->task_count;
    *rows = (struct settling){
        .moved = pay_arena_array(rec->arena, count, sizeof *rows->moved),
        .freed = pay_arena_array(rec->arena, count, sizeof *rows->freed),
        .held = pay_arena_array(rec->arena, count, sizeof *rows->held),
        .next_us = pay_arena_array(rec->arena, count, sizeof *rows->next_us),
    };
    return rows->moved != NULL && rows->freed != NULL && rows->held != NULL &&
           rows->next_us != NULL;
}

static void sort_task(const struct pay_recovery *rec, const struct pay_task *task,
                      struct settling *rows)
{
    if (!task->acknowledged && !task->unusable) {
        rows->freed[rows->freed_count] = task->due;
        rows->freed[rows->freed_count++].keeps_lease = task->refused;
    } else if (task->acknowledged && task->plan != PAY_PLAN_DEADLINE) {
        rows->next_us[rows->moved_count] = next_due(rec, task);
        rows->moved[rows->moved_count++] = task->due;
    } else if (task->acknowledged && pay_plan_of(task->due.kind) != PAY_PLAN_DEADLINE) {
        rows->held[rows->held_count++] = task->due; /* leased as a query: ANSWER */
    }
}

/*
 * A query's or a replay's row moves on by itself. A deadline input's row does not: its due time is
 * part of the input's key, and only the decision moves it; while it does not, the lease brings it
 * back, later each time. What Kafka refuses keeps its lease: were it free, it would be the oldest
 * again, and nobody else's turn would come.
 */
enum pay_status pay_recovery_settle(struct pay_recovery *rec, struct pay_err *err)
{
    struct settling rows;
    if (!make_room(rec, &rows)) {
        return pay_err_set(err, PAY_RETRY, 0, "settle", "arena full");
    }
    for (size_t i = 0; i < rec->task_count; i++) {
        sort_task(rec, &rec->tasks[i], &rows);
    }
    pay_recovery_count_sent(rec);
    size_t done = 0;
    enum pay_status status = PAY_OK;
    if (rows.moved_count > 0) {
        status = pay_store_deadline_reschedule(rec->store, rows.moved, rows.next_us,
                                               rows.moved_count, &done, err);
    }
    if (status == PAY_OK && rows.held_count > 0) {
        const struct pay_store_lease_wish wish = lease_wish(rec);
        status = pay_store_deadline_hold(rec->store, &wish, rows.held, rows.held_count, err);
    }
    if (status == PAY_OK && rows.freed_count > 0) {
        status = pay_store_deadline_release(rec->store, rows.freed, rows.freed_count, err);
    }
    return status;
}

bool pay_recovery_is_heard(const struct pay_recovery *rec)
{
    size_t lost = 0;
    for (size_t i = 0; i < rec->task_count; i++) {
        if (rec->tasks[i].acknowledged) {
            return true;
        }
        lost += rec->tasks[i].unusable ? 0 : 1;
    }
    return lost == 0;
}
