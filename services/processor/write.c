/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/write.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

#include "common/base/banned.h"

static enum pay_status full(struct pay_err *err)
{
    return pay_err_set(err, PAY_RETRY, PAY_CODEC_NO_MEMORY, "write", "the arena is full");
}

/* ---- step 4 ---- */

static bool add_created(struct pay_arena *arena, struct pay_unit *unit, struct pay_list *rows)
{
    struct pay_store_new_order *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return false;
    }
    row->order = unit->snapshot.order;
    row->description = unit->detail.description;
    row->traceparent = unit->detail.traceparent;
    return pay_list_add(arena, rows, row);
}

static bool add_closed(struct pay_arena *arena, struct pay_unit *unit, struct pay_list *gates)
{
    for (size_t i = 0; i < unit->snapshot.gate_count; i++) {
        struct pay_gate *gate = &unit->snapshot.gates[i];
        if (gate->change == PAY_ROW_UPDATED && !pay_list_add(arena, gates, gate)) {
            return false;
        }
    }
    return true;
}

struct lock {
    struct pay_list created, created_units, updated, updated_units;
};

static bool add_unit(struct pay_arena *arena, struct pay_unit *unit, struct lock *lock)
{
    struct pay_order *order = &unit->snapshot.order;
    if (order->change == PAY_ROW_INSERTED) {
        return add_created(arena, unit, &lock->created) &&
               pay_list_add(arena, &lock->created_units, unit);
    }
    if (!unit->decided || !unit->loaded) {
        unit->won = true; /* nothing of a payment's own rows is touched */
        return true;
    }
    return pay_list_add(arena, &lock->updated, order) &&
           pay_list_add(arena, &lock->updated_units, unit);
}

static bool settle(struct pay_arena *arena, const struct pay_list *units, const bool *won,
                   struct pay_list *lost)
{
    for (size_t i = 0; i < units->count; i++) {
        struct pay_unit *unit = units->items[i];
        unit->won = won[i];
        if (!won[i] && !pay_list_add(arena, lost, unit)) {
            return false;
        }
    }
    return true;
}

/* After the compare-and-set, for those that won it: who lost may decide to close nothing. */
static enum pay_status close_gates(struct pay_try *turn, const struct pay_list *units,
                                   struct pay_err *err)
{
    struct pay_store *store = turn->worker->store;
    struct pay_list gates = {NULL, 0, 0};
    for (size_t i = 0; i < units->count; i++) {
        struct pay_unit *unit = units->items[i];
        if (unit->won && !add_closed(turn->worker->scratch, unit, &gates)) {
            return full(err);
        }
    }
    if (gates.count == 0) {
        return PAY_OK;
    }
    enum pay_status status =
        pay_store_gate_close(store, (const struct pay_gate *const *)gates.items, gates.count, err);
    return status != PAY_OK ? status : pay_store_flush(store, err);
}

enum pay_status pay_write_lock(struct pay_try *turn, struct pay_list *units,
                               struct pay_list *ret_lost, struct pay_err *err)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct lock lock = {.created = {NULL, 0, 0}};
    for (size_t i = 0; i < units->count; i++) {
        if (!add_unit(arena, units->items[i], &lock)) {
            return full(err);
        }
    }
    bool *created = pay_arena_array(arena, lock.created.count + 1, sizeof(bool));
    bool *updated = pay_arena_array(arena, lock.updated.count + 1, sizeof(bool));
    if (created == NULL || updated == NULL) {
        return full(err);
    }
    struct pay_store_cas cas = {
        .created = (const struct pay_store_new_order *const *)lock.created.items,
        .created_count = lock.created.count,
        .updated = (const struct pay_order *const *)lock.updated.items,
        .updated_count = lock.updated.count,
    };
    enum pay_status status = pay_store_order_cas(turn->worker->store, &cas, created, updated, err);
    if (status != PAY_OK) {
        return status;
    }
    bool fits = settle(arena, &lock.created_units, created, ret_lost) &&
                settle(arena, &lock.updated_units, updated, ret_lost);
    return fits ? close_gates(turn, &lock.updated_units, err) : full(err);
}

/* ---- steps 5 and 6 ---- */

/* Rows of one table each, over all payments that won. */
struct rest {
    struct pay_list arrived, new_attempts, attempts, amounts, routes, renewals, references, gates,
        new_cases, cases, loose_cases, history, set_deadlines, clear_deadlines, commands, audits,
        redirects, events, pauses, withheld, revived, closed_cases, postponed, outbox;
    struct pay_money_rows money;
};

static bool add_all(struct pay_arena *arena, struct pay_list *to, const struct pay_list *from)
{
    bool fits = true;
    for (size_t i = 0; i < from->count && fits; i++) {
        fits = pay_list_add(arena, to, from->items[i]);
    }
    return fits;
}

static bool add_attempts(struct pay_arena *arena, struct pay_unit *unit, struct rest *rest)
{
    bool fits = true;
    for (size_t i = 0; i < unit->snapshot.attempt_count && fits; i++) {
        struct pay_attempt *attempt = &unit->snapshot.attempts[i];
        if (attempt->change == PAY_ROW_INSERTED) {
            fits = pay_list_add(arena, &rest->new_attempts, attempt);
            continue;
        }
        if (attempt->change != PAY_ROW_SAME) {
            fits = pay_list_add(arena, &rest->attempts, attempt);
        }
        if (attempt->amounts_changed) {
            fits = fits && pay_list_add(arena, &rest->amounts, attempt);
        }
    }
    return fits;
}

static bool add_references(struct pay_arena *arena, struct pay_unit *unit, struct rest *rest)
{
    bool fits = true;
    for (size_t i = 0; i < unit->snapshot.reference_count && fits; i++) {
        const struct pay_bound_reference *bound = &unit->snapshot.references[i];
        if (bound->change != PAY_ROW_INSERTED) {
            continue;
        }
        const struct pay_attempt *attempt = &unit->snapshot.attempts[bound->attempt_index];
        struct pay_store_reference_row *row = pay_arena_alloc(arena, sizeof(*row));
        if (row == NULL) {
            return false;
        }
        *row = (struct pay_store_reference_row){
            .psp = pay_str_of(attempt->psp),
            .psp_account = pay_str_of(attempt->psp_account),
            .kind = bound->kind,
            .reference = pay_str_of(bound->reference),
            .attempt_id = pay_str_of(attempt->attempt_id),
        };
        fits = pay_list_add(arena, &rest->references, row);
    }
    return fits;
}

static const uint8_t *digest_of(const struct pay_unit *unit, const char *job_id)
{
    for (size_t i = 0; i < unit->jobs.count; i++) {
        const struct pay_job_plan *plan = unit->jobs.items[i];
        if (strcmp(plan->effect.job_id, job_id) == 0) {
            return plan->digest;
        }
    }
    return NULL;
}

static bool add_gates(struct pay_arena *arena, struct pay_unit *unit, struct rest *rest)
{
    bool fits = true;
    for (size_t i = 0; i < unit->snapshot.gate_count && fits; i++) {
        const struct pay_gate *gate = &unit->snapshot.gates[i];
        if (gate->change != PAY_ROW_INSERTED) {
            continue;
        }
        const uint8_t *digest = digest_of(unit, gate->job_id);
        PAY_ASSERT(digest != NULL); /* a gate is made with its job, never alone */
        struct pay_store_gate_row *row = pay_arena_alloc(arena, sizeof(*row));
        if (row == NULL) {
            return false;
        }
        row->gate = *gate;
        row->digest = (struct pay_bytes){digest, PAY_SHA256_BYTES};
        fits = pay_list_add(arena, &rest->gates, row);
    }
    return fits;
}

static bool add_case(struct pay_arena *arena, struct pay_unit *unit,
                     const struct pay_case_note *note, struct rest *rest)
{
    const struct pay_case *from = &unit->snapshot.cases[note->case_index];
    struct pay_store_case_row *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return false;
    }
    *row = (struct pay_store_case_row){
        .case_id = pay_str_of(from->case_id),
        .payment_id = pay_str_of(unit->snapshot.order.payment_id),
        .kind = from->kind,
        .aggregate_id = pay_str_of(from->aggregate_id),
        .number = from->number,
        .proposed_refund_minor = from->proposed_refund_minor,
        .input_id = note->item->what->input_id,
        .event_name = note->event_name,
        .reason_code = note->reason_code,
        .open = from->open,
    };
    if (!from->open) {
        row->resolved_by = pay_str_of(from->resolved_by);
        row->resolution_code = pay_str_of(from->resolution_code);
    }
    bool is_new = from->change == PAY_ROW_INSERTED;
    return pay_list_add(arena, is_new ? &rest->new_cases : &rest->cases, row);
}

/* The last word about one row counts; a clear that leaves a younger row alone is not the last. */
static bool add_deadlines(struct pay_arena *arena, struct pay_unit *unit, struct rest *rest)
{
    bool fits = true;
    for (size_t i = 0; i < unit->deadlines.count && fits; i++) {
        struct pay_deadline_change *change = unit->deadlines.items[i];
        bool is_last = true;
        for (size_t later = i + 1; later < unit->deadlines.count && is_last; later++) {
            const struct pay_deadline_change *other = unit->deadlines.items[later];
            is_last = other->row.set_before_us != 0 || other->row.kind != change->row.kind ||
                      !pay_str_eq(other->row.aggregate_id, change->row.aggregate_id);
        }
        if (is_last) {
            fits = pay_list_add(
                arena, change->clear ? &rest->clear_deadlines : &rest->set_deadlines, &change->row);
        }
    }
    return fits;
}

static bool add_rest(struct pay_arena *arena, struct pay_unit *unit, struct rest *rest)
{
    bool fits = add_attempts(arena, unit, rest) && add_references(arena, unit, rest) &&
                add_gates(arena, unit, rest) && add_deadlines(arena, unit, rest) &&
                pay_money_collect(arena, unit, &rest->money);
    for (size_t i = 0; i < unit->case_notes.count && fits; i++) {
        fits = add_case(arena, unit, unit->case_notes.items[i], rest);
    }
    for (size_t i = 0; i < unit->route_rows.count && fits; i++) {
        struct pay_store_route_row *row = unit->route_rows.items[i];
        row->route = &unit->snapshot.routes[row->route_no];
        fits = pay_list_add(arena, &rest->routes, row);
    }
    return fits && add_all(arena, &rest->history, &unit->history) &&
           add_all(arena, &rest->renewals, &unit->renewals) &&
           add_all(arena, &rest->commands, &unit->commands) &&
           add_all(arena, &rest->audits, &unit->audits) &&
           add_all(arena, &rest->redirects, &unit->redirects) &&
           add_all(arena, &rest->events, &unit->events) &&
           add_all(arena, &rest->loose_cases, &unit->cases) &&
           add_all(arena, &rest->pauses, &unit->pauses) &&
           add_all(arena, &rest->withheld, &unit->withheld) &&
           add_all(arena, &rest->revived, &unit->revived) &&
           add_all(arena, &rest->closed_cases, &unit->closed_cases) &&
           add_all(arena, &rest->postponed, &unit->postponed) &&
           add_all(arena, &rest->outbox, &unit->outbox);
}

/* By shard; within a shard as they were decided, which their sequence in the list says. */
struct shard_order {
    struct pay_store_outbox_row *row;
    size_t n;
};

static int by_shard(const void *left, const void *right)
{
    const struct shard_order *a = left;
    const struct shard_order *b = right;
    if (a->row->shard != b->row->shard) {
        return a->row->shard < b->row->shard ? -1 : 1;
    }
    return a->n < b->n ? -1 : a->n > b->n;
}

static bool sort_outbox(struct pay_arena *arena, struct pay_list *outbox)
{
    struct shard_order *order = pay_arena_array(arena, outbox->count + 1, sizeof(*order));
    if (order == NULL) {
        return false;
    }
    for (size_t i = 0; i < outbox->count; i++) {
        order[i] = (struct shard_order){outbox->items[i], i};
    }
    qsort(order, outbox->count, sizeof(*order), by_shard);
    for (size_t i = 0; i < outbox->count; i++) {
        outbox->items[i] = order[i].row;
    }
    return true;
}

#define ROWS(type_, list_) (const struct type_ *const *)(list_).items, (list_).count, err

static enum pay_status queue_payment(struct pay_store *store, struct rest *rest,
                                     struct pay_err *err)
{
    enum pay_status s = pay_store_route_add(
        store, (struct pay_store_route_row *const *)rest->routes.items, rest->routes.count, err);
    s = s != PAY_OK ? s : pay_store_params_add(store, ROWS(pay_store_route_row, rest->renewals));
    /* One attempt of a payment is live: the one that ends lets go before the next one takes it. */
    s = s != PAY_OK ? s : pay_store_attempt_update(store, ROWS(pay_attempt, rest->attempts));
    s = s != PAY_OK ? s : pay_store_attempt_add(store, ROWS(pay_attempt, rest->new_attempts));
    s = s != PAY_OK ? s : pay_store_amounts_update(store, ROWS(pay_attempt, rest->amounts));
    s = s != PAY_OK ? s
                    : pay_store_redirect_add(store, ROWS(pay_store_redirect_row, rest->redirects));
    s = s != PAY_OK
            ? s
            : pay_store_reference_add(store, ROWS(pay_store_reference_row, rest->references));
    s = s != PAY_OK ? s : pay_money_queue(store, &rest->money, err);
    s = s != PAY_OK ? s : pay_store_gate_add(store, ROWS(pay_store_gate_row, rest->gates));
    return s;
}

static enum pay_status queue_about(struct pay_store *store, struct rest *rest, struct pay_err *err)
{
    enum pay_status s = pay_store_event_add(store, ROWS(pay_store_inbox_row, rest->arrived));
    s = s != PAY_OK ? s : pay_store_history_add(store, ROWS(pay_store_history_row, rest->history));
    s = s != PAY_OK ? s : pay_store_case_add(store, ROWS(pay_store_case_row, rest->new_cases));
    s = s != PAY_OK ? s : pay_store_case_update(store, ROWS(pay_store_case_row, rest->cases));
    s = s != PAY_OK ? s
                    : pay_store_case_add_loose(store, ROWS(pay_store_case_row, rest->loose_cases));
    s = s != PAY_OK
            ? s
            : pay_store_case_close_loose(store, ROWS(pay_store_case_row, rest->closed_cases));
    s = s != PAY_OK ? s
                    : pay_store_deadline_set(store, ROWS(pay_store_deadline, rest->set_deadlines));
    s = s != PAY_OK
            ? s
            : pay_store_deadline_clear(store, ROWS(pay_store_deadline, rest->clear_deadlines));
    s = s != PAY_OK ? s
                    : pay_store_deadline_postpone(store, ROWS(pay_store_deadline, rest->postponed));
    s = s != PAY_OK ? s : pay_store_command_add(store, ROWS(pay_store_command_row, rest->commands));
    s = s != PAY_OK ? s : pay_store_audit_add(store, ROWS(pay_store_audit_row, rest->audits));
    s = s != PAY_OK ? s : pay_store_event_update(store, ROWS(pay_store_event_change, rest->events));
    for (size_t i = 0; i < rest->pauses.count && s == PAY_OK; i++) {
        s = pay_store_route_pause(store, rest->pauses.items[i], err);
    }
    for (size_t i = 0; i < rest->withheld.count && s == PAY_OK; i++) {
        const struct pay_withheld *withheld = rest->withheld.items[i];
        s = pay_store_dead_replace(store, withheld->dead, &withheld->row, err);
    }
    for (size_t i = 0; i < rest->revived.count && s == PAY_OK; i++) {
        s = pay_store_dead_revive(store, rest->revived.items[i], err);
    }
    return s != PAY_OK ? s : pay_store_outbox_add(store, ROWS(pay_store_outbox_row, rest->outbox));
}

/* The evidence of every new key, whatever was decided about it. */
static bool add_arrived(const struct pay_try *turn, struct rest *rest)
{
    bool fits = true;
    for (size_t i = 0; i < turn->inbox.count && fits; i++) {
        struct pay_store_inbox_row *row = turn->inbox.items[i];
        fits = !row->is_new || pay_list_add(turn->worker->scratch, &rest->arrived, row);
    }
    return fits;
}

enum pay_status pay_write_rest(struct pay_try *turn, struct pay_err *err)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct rest rest = {.history = {NULL, 0, 0}};
    bool fits = add_arrived(turn, &rest) && add_rest(arena, turn->loose, &rest);
    for (size_t i = 0; i < turn->units.count && fits; i++) {
        struct pay_unit *unit = turn->units.items[i];
        PAY_ASSERT(unit->won);
        fits = add_rest(arena, unit, &rest);
    }
    if (!fits || !sort_outbox(arena, &rest.outbox)) {
        return full(err);
    }
    enum pay_status status = queue_payment(turn->worker->store, &rest, err);
    status = status != PAY_OK ? status : queue_about(turn->worker->store, &rest, err);
    return status != PAY_OK ? status : pay_store_flush(turn->worker->store, err);
}
