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

enum pay_status pay_recovery_lease(struct pay_recovery *rec, struct pay_err *err)
{
    const size_t max = (size_t)rec->cfg->batch_rows_max;
    struct pay_store_due *rows = pay_arena_array(rec->arena, max, sizeof *rows);
    if (rows == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "lease", "arena full");
    }
    size_t count = 0;
    rec->task_count = 0;
    const struct pay_store_lease_wish wish = {.max = max, .lease_us = rec->cfg->lease_ms * 1000};
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

/*
 * A query's or a replay's row moves on by itself. A deadline input's row does not: its due time is
 * part of the input's key, and only the decision moves it; while it does not, the lease brings it
 * back.
 */
enum pay_status pay_recovery_settle(struct pay_recovery *rec, struct pay_err *err)
{
    struct pay_store_due *moved = pay_arena_array(rec->arena, rec->task_count, sizeof *moved);
    struct pay_store_due *freed = pay_arena_array(rec->arena, rec->task_count, sizeof *freed);
    int64_t *next_us = pay_arena_array(rec->arena, rec->task_count, sizeof *next_us);
    if (moved == NULL || freed == NULL || next_us == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "settle", "arena full");
    }
    size_t moved_count = 0;
    size_t freed_count = 0;
    for (size_t i = 0; i < rec->task_count; i++) {
        const struct pay_task *task = &rec->tasks[i];
        if (!task->acknowledged && !task->unusable) {
            freed[freed_count++] = task->due;
        } else if (task->acknowledged && task->plan != PAY_PLAN_DEADLINE) {
            next_us[moved_count] = next_due(rec, task);
            moved[moved_count++] = task->due;
        }
    }
    pay_recovery_count_sent(rec);
    size_t done = 0;
    enum pay_status status = PAY_OK;
    if (moved_count > 0) {
        status = pay_store_deadline_reschedule(rec->store, moved, next_us, moved_count, &done, err);
    }
    if (status == PAY_OK && freed_count > 0) {
        status = pay_store_deadline_release(rec->store, freed, freed_count, err);
    }
    return status;
}
