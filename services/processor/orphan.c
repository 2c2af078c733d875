/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/work.h"

#include "common/base/banned.h"

static int64_t first_seen(const struct pay_try *turn, const struct pay_item *item)
{
    if (item->stored.found) {
        return item->stored.first_seen_at_us;
    }
    return item->inbox.is_new ? turn->now_us : item->inbox.first_seen_at_us;
}

/* The event's row is not as it was inserted. */
static bool change(struct pay_try *turn, struct pay_unit *unit, const struct pay_item *item,
                   const char *status)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_store_event_change *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return false;
    }
    bool is_stored = item->stored.found;
    row->id = is_stored ? item->stored.id : item->inbox.id;
    row->month_days = is_stored ? item->stored.month_days : item->inbox.month_days;
    row->status = status;
    row->payment_id =
        item->payment_id[0] == '\0' ? (struct pay_str){NULL, 0} : pay_str_of(item->payment_id);
    return pay_list_add(arena, &unit->events, row);
}

struct pay_str pay_orphan_name(struct pay_try *turn, const struct pay_item *item)
{
    const struct pay_event *event = &item->what->event;
    return pay_arena_printf(turn->worker->scratch, "%s/%s/%s", event->psp.ptr,
                            event->psp_account.ptr, item->what->transport_key.ptr);
}

static bool deadline(struct pay_try *turn, struct pay_unit *unit, const struct pay_item *item,
                     bool clear)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_deadline_change *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return false;
    }
    row->clear = clear;
    row->row.kind = PAY_DEADLINE_ORPHAN;
    row->row.aggregate_id = pay_orphan_name(turn, item);
    row->row.payment_id =
        item->payment_id[0] == '\0' ? (struct pay_str){NULL, 0} : pay_str_of(item->payment_id);
    row->row.due_at_us = turn->now_us + turn->worker->cfg->orphan_first_ms * 1000;
    return row->row.aggregate_id.ptr != NULL && pay_list_add(arena, &unit->deadlines, row);
}

static bool open_case(struct pay_try *turn, struct pay_unit *unit, const struct pay_item *item)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_store_case_row *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return false;
    }
    *row = (struct pay_store_case_row){
        .case_id = pay_orphan_name(turn, item),
        .kind = PAY_CASE_ORPHAN,
        .aggregate_id = item->payment_id[0] == '\0' ? PAY_STR("") : pay_str_of(item->payment_id),
        .number = 1,
        .input_id = item->what->input_id,
        .event_name = pay_event_type_name(item->what->event.type),
        .reason_code = "ORPHAN_BUDGET",
        .open = true,
    };
    return row->case_id.ptr != NULL && pay_list_add(arena, &unit->cases, row);
}

static bool ignores_foreign(const struct pay_try *turn, const struct pay_item *item)
{
    const struct pay_account *account =
        pay_accounts_account(turn->worker->accounts, item->what->event.psp_account);
    return account == NULL || account->foreign == PAY_FOREIGN_IGNORE;
}

/* Without our number it may be somebody else's, who shares the PSP account. */
static bool give_up(struct pay_try *turn, struct pay_unit *unit, struct pay_item *item)
{
    if (item->payment_id[0] == '\0' && ignores_foreign(turn, item)) {
        return pay_orphan_foreign(turn, unit, item) && deadline(turn, unit, item, true);
    }
    item->verdict = PAY_VERDICT_REJECT;
    item->reason = "ORPHAN_BUDGET";
    item->dead = PAY_DEAD_ORPHAN_BUDGET;
    item->dead_letter = true;
    return change(turn, unit, item, "DEAD") && deadline(turn, unit, item, true) &&
           open_case(turn, unit, item);
}

bool pay_orphan_keep(struct pay_try *turn, struct pay_unit *unit, struct pay_item *item)
{
    int64_t age_us = turn->now_us - first_seen(turn, item);
    if (age_us > turn->worker->cfg->orphan_budget_s * 1000000) {
        return give_up(turn, unit, item);
    }
    item->verdict = PAY_VERDICT_IGNORE;
    item->reason = "ORPHAN";
    if (item->stored.found && item->stored.status == PAY_STORE_EVENT_ORPHAN) {
        return true; /* it waits already; recovery moves its deadline */
    }
    return change(turn, unit, item, "ORPHAN") && deadline(turn, unit, item, false);
}

bool pay_orphan_foreign(struct pay_try *turn, struct pay_unit *unit, struct pay_item *item)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_store_history_row *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return false;
    }
    const struct pay_event *event = &item->what->event;
    *row = (struct pay_store_history_row){
        .payment_id = PAY_STR(""),
        .aggregate = PAY_AGGREGATE_ATTEMPT,
        .aggregate_id =
            event->merchant_request_no.ptr == NULL ? PAY_STR("") : event->merchant_request_no,
        .verdict = PAY_VERDICT_IGNORE,
        .event_name = pay_event_type_name(event->type),
        .event_id = item->what->input_id,
        .source = item->what->source,
        .evidence = pay_derive_evidence(item->what),
        .reason_code = "FOREIGN",
        .provider_reference = event->provider_payment_id,
        .trace_id = item->trace_id,
    };
    item->verdict = PAY_VERDICT_IGNORE;
    item->reason = "FOREIGN";
    return pay_list_add(arena, &unit->history, row) && pay_orphan_settled(turn, unit, item);
}

bool pay_orphan_settled(struct pay_try *turn, struct pay_unit *unit, struct pay_item *item)
{
    bool was_waiting = item->stored.found || (item->has_key && !item->inbox.is_new);
    bool was_dead = item->stored.found ? item->stored.status == PAY_STORE_EVENT_DEAD
                                       : was_waiting && item->inbox.stored == PAY_STORE_EVENT_DEAD;
    if (was_waiting) {
        struct pay_str name = pay_orphan_name(turn, item);
        return name.ptr != NULL && change(turn, unit, item, "DECIDED") &&
               deadline(turn, unit, item, true) &&
               (!was_dead || pay_dead_close_case(turn, unit, item, name, "DECIDED"));
    }
    bool was_named = item->inbox.payment_id.ptr != NULL;
    return was_named || item->payment_id[0] == '\0' || change(turn, unit, item, "DECIDED");
}

bool pay_orphan_deadline_settled(struct pay_try *turn, struct pay_unit *unit,
                                 const struct pay_item *item)
{
    if (item->inbox.is_new || item->inbox.stored != PAY_STORE_EVENT_DEAD) {
        return true;
    }
    struct pay_str case_id =
        pay_arena_printf(turn->worker->scratch, "//%s", item->transport_key.ptr);
    return case_id.ptr != NULL && change(turn, unit, item, "DECIDED") &&
           pay_dead_close_case(turn, unit, item, case_id, "DECIDED");
}

bool pay_orphan_stored_done(struct pay_try *turn, const struct pay_item *item)
{
    return change(turn, turn->loose, item, "DECIDED");
}
