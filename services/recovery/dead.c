/* SPDX-License-Identifier: Apache-2.0 */
#include "services/recovery/internal.h"

#include <string.h>

#include "common/base/banned.h"

enum pay_status pay_recovery_tell_dead(struct pay_recovery *rec, struct pay_err *err)
{
    const size_t max = (size_t)rec->cfg->batch_rows_max;
    pay_arena_reset(rec->arena);
    struct pay_store_dead_subject *found = pay_arena_array(rec->arena, max, sizeof *found);
    if (found == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "dead", "arena full");
    }
    size_t count = 0;
    const enum pay_status status = pay_store_ask_dead(rec->store, max, found, &count, err);
    for (size_t i = 0; status == PAY_OK && i < count; i++) {
        struct pay_task *task = &rec->tasks[i];
        *task = (struct pay_task){
            .due = {.kind = PAY_DEADLINE_DEAD_EVENT, .due_at_us = found[i].since_us},
            .plan = pay_plan_of(PAY_DEADLINE_DEAD_EVENT)};
        memcpy(task->due.payment_id, found[i].payment_id, sizeof found[i].payment_id);
        memcpy(task->due.aggregate_id, found[i].payment_id, sizeof found[i].payment_id);
    }
    rec->task_count = status == PAY_OK ? count : 0;
    pay_recovery_send(rec);
    pay_recovery_count_sent(rec);
    rec->task_count = 0;
    return status;
}
