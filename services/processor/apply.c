/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/work.h"

#include <string.h>

#include "common/base/fault.h"
#include "services/processor/report.h"
#include "services/processor/write.h"

#include "common/base/banned.h"

static enum pay_status full(struct pay_err *err)
{
    return pay_err_set(err, PAY_RETRY, PAY_CODEC_NO_MEMORY, "apply", "the arena is full");
}

/* ---- step 1: what is new ---- */

static void forget(struct pay_item *item)
{
    item->inbox = (struct pay_store_inbox_row){.copies = 1};
    item->stored = (struct pay_store_stored_event){.key = {item->key, PAY_STORE_INBOX_KEY_BYTES}};
    item->repeat = (struct pay_store_command_ask){.found = false};
    item->due = (struct pay_store_due_ask){.row_due_at_us = 0};
    item->order_no = (struct pay_store_order_no_ask){.taken = false};
    item->dead_event = (struct pay_store_dead_event){.found = false};
    item->case_ask = (struct pay_store_case_ask){.found = false};
    item->same = NULL;
    item->done = false;
    item->what = &item->input;
    item->payment_id[0] = '\0';
    item->foreign_reference = false;
    item->verdict = PAY_VERDICT_COUNT;
    item->reason = NULL;
    item->is_security = false;
    item->dead_letter = item->kind == PAY_ITEM_POISON;
}

static void fill_row(struct pay_item *item)
{
    static const char *const kinds[PAY_ITEM_KIND_COUNT] = {
        [PAY_ITEM_EVENT] = "PSP_EVENT",
        [PAY_ITEM_DEADLINE] = "DEADLINE",
        [PAY_ITEM_REFUSED] = "REFUSED_NOTIFICATION",
    };
    const struct pay_payment_input *input = &item->input;
    const struct pay_sealed_evidence *evidence = &input->evidence;
    bool is_refused = item->kind == PAY_ITEM_REFUSED;
    bool is_event = item->kind == PAY_ITEM_EVENT;
    item->inbox = (struct pay_store_inbox_row){
        .key = {item->key, PAY_STORE_INBOX_KEY_BYTES},
        .psp = is_event     ? input->event.psp
               : is_refused ? input->refused.psp
                            : PAY_STR(""),
        .psp_account = is_event     ? input->event.psp_account
                       : is_refused ? input->refused.psp_account
                                    : PAY_STR(""),
        .transport_key = item->transport_key,
        .input_id = input->input_id,
        .kind = kinds[item->kind],
        .source = input->source,
        .payment_id = input->payment_id.len > 0 ? input->payment_id : (struct pay_str){NULL, 0},
        .business_key = item->cause,
        .body = evidence->ciphertext,
        .key_id = evidence->key_id,
        .sha256 = evidence->sha256,
        .normalized = item->normalized,
        .verification =
            evidence->verified_by.ptr != NULL ? evidence->verified_by : PAY_STR("local"),
        .status = is_refused ? "DEAD" : "DECIDED",
        .occurred_at_us = input->occurred_at_us,
        .received_at_us = input->received_at_us,
        .trace_id = item->trace_id,
        .copies = 1,
    };
    if (is_refused) {
        item->inbox.verification = input->refused.reason_code;
    }
}

/* What a command about something dead names. */
static bool ask_dead(struct pay_try *turn, struct pay_item *item)
{
    struct pay_arena *arena = turn->worker->scratch;
    const struct pay_command *command = item->command;
    if (command->type == PAY_CMD_DISCARD_EVENT || command->type == PAY_CMD_REPLAY_EVENT) {
        item->dead_event.key = command->payment_id;
        item->dead_event.event_id = command->subject.event_id;
        return pay_list_add(arena, &turn->dead_events, &item->dead_event);
    }
    if (command->type == PAY_CMD_RESOLVE_CASE && pay_command_is_loose(command)) {
        item->case_ask.case_id = command->controlled.aggregate_id;
        return pay_list_add(arena, &turn->case_asks, &item->case_ask);
    }
    return true;
}

static enum pay_status prepare(struct pay_try *turn, struct pay_item *item, struct pay_list *keyed,
                               struct pay_list *commands, struct pay_err *err)
{
    struct pay_arena *arena = turn->worker->scratch;
    bool fits = true;
    forget(item);
    if (item->kind == PAY_ITEM_POISON) {
        enum pay_status status = pay_poison_keep(turn, item, err);
        if (status != PAY_OK) {
            return status;
        }
    } else if (item->has_key) {
        fill_row(item);
    }
    if (item->has_key) {
        fits = pay_list_add(arena, keyed, item);
    }
    if (item->kind == PAY_ITEM_COMMAND) {
        fits = fits && pay_list_add(arena, commands, item) && ask_dead(turn, item);
    }
    if (item->kind == PAY_ITEM_EVENT) {
        fits = fits && pay_resolve_ask(turn, item);
    }
    return fits ? PAY_OK : full(err);
}

static int by_log(const struct pay_item *a, const struct pay_item *b)
{
    return a->log_no < b->log_no ? -1 : a->log_no > b->log_no;
}

static int by_key(const void *left, const void *right)
{
    const struct pay_item *a = *(struct pay_item *const *)left;
    const struct pay_item *b = *(struct pay_item *const *)right;
    int order = memcmp(a->key, b->key, PAY_STORE_INBOX_KEY_BYTES);
    return order != 0 ? order : by_log(a, b);
}

static int by_cause(const void *left, const void *right)
{
    const struct pay_item *a = *(struct pay_item *const *)left;
    const struct pay_item *b = *(struct pay_item *const *)right;
    int order = strcmp(a->cause.ptr, b->cause.ptr);
    return order != 0 ? order : by_log(a, b);
}

static void fold_into(struct pay_item *item, struct pay_item *first)
{
    item->same = first;
    item->done = true;
    first->inbox.copies++;
}

static bool fold_keys(struct pay_try *turn, struct pay_list *keyed)
{
    struct pay_item *first = NULL;
    pay_list_sort(keyed, by_key);
    for (size_t i = 0; i < keyed->count; i++) {
        struct pay_item *item = keyed->items[i];
        if (first != NULL && memcmp(first->key, item->key, PAY_STORE_INBOX_KEY_BYTES) == 0) {
            fold_into(item, first);
            continue;
        }
        first = item;
        if (!pay_list_add(turn->worker->scratch, &turn->inbox, &item->inbox)) {
            return false;
        }
    }
    return true;
}

static bool fold_commands(struct pay_try *turn, struct pay_list *commands)
{
    struct pay_item *first = NULL;
    bool fits = true;
    pay_list_sort(commands, by_cause);
    for (size_t i = 0; i < commands->count; i++) {
        struct pay_item *item = commands->items[i];
        item->repeat.caller = item->command->caller;
        item->repeat.command_id = item->command->command_id;
        if (first == NULL || !pay_str_eq(first->cause, item->cause)) {
            first = item;
            fits = fits && pay_list_add(turn->worker->scratch, &turn->commands, &item->repeat);
        } else if (memcmp(first->command_sha256, item->command_sha256, PAY_SHA256_BYTES) == 0) {
            item->same = first;
            item->done = true;
        } else { /* other content under one number, in one batch */
            item->repeat.found = true;
            item->repeat.sha256 = (struct pay_bytes){first->command_sha256, PAY_SHA256_BYTES};
        }
    }
    return fits;
}

static bool same_key(const uint8_t *a, const uint8_t *b)
{
    return a != NULL && b != NULL && memcmp(a, b, PAY_STORE_INBOX_KEY_BYTES) == 0;
}

static bool is_in_hand(const struct pay_try *turn, const struct pay_list *keyed, const uint8_t *key)
{
    bool is_there = false;
    for (size_t i = 0; i < keyed->count && !is_there; i++) {
        const struct pay_item *other = keyed->items[i];
        is_there = other != NULL && same_key(other->key, key);
    }
    for (size_t i = 0; i < turn->stored.count && !is_there; i++) {
        const struct pay_store_stored_event *other = turn->stored.items[i];
        is_there = other != NULL && same_key(other->key.ptr, key);
    }
    return is_there;
}

/* The stored event that a replay names: its key, unless this batch brings the event itself. */
static bool ask_stored(struct pay_try *turn, struct pay_item *item, const struct pay_list *keyed)
{
    bool is_command = item->kind == PAY_ITEM_COMMAND && !item->done &&
                      item->command->type == PAY_CMD_REPLAY_INPUT && item->refusal.ptr == NULL;
    if (item->kind != PAY_ITEM_REPLAY && !is_command) {
        return true;
    }
    if (is_command) {
        const struct pay_cmd_subject *subject = &item->command->subject;
        if (!pay_inbox_digest(subject->psp, subject->psp_account, subject->transport_key,
                              item->key)) {
            return true; /* found nothing: refused */
        }
    }
    if (is_in_hand(turn, keyed, item->key)) {
        /* It is decided in this batch: for a command that is as if it were already. */
        item->done = item->kind == PAY_ITEM_REPLAY;
        item->stored.found = true;
        item->stored.kind = "PSP_EVENT";
        item->stored.status = PAY_STORE_EVENT_DECIDED;
        return true;
    }
    return pay_list_add(turn->worker->scratch, &turn->stored, &item->stored);
}

static enum pay_status collect(struct pay_try *turn, struct pay_err *err)
{
    struct pay_list keyed = {NULL, 0, 0};
    struct pay_list commands = {NULL, 0, 0};
    enum pay_status status = PAY_OK;
    for (size_t i = 0; i < turn->count && status == PAY_OK; i++) {
        status = prepare(turn, turn->items[i], &keyed, &commands, err);
    }
    if (status != PAY_OK) {
        return status;
    }
    bool fits = fold_keys(turn, &keyed) && fold_commands(turn, &commands);
    for (size_t i = 0; i < turn->count && fits; i++) {
        fits = ask_stored(turn, turn->items[i], &keyed);
    }
    return fits ? PAY_OK : full(err);
}

/* A key that is not new was inserted by another transaction, long ago or just now. */
static enum pay_status ask_seen(struct pay_try *turn, struct pay_err *err)
{
    struct pay_list missing = {NULL, 0, 0};
    for (size_t i = 0; i < turn->inbox.count; i++) {
        struct pay_store_inbox_row *row = turn->inbox.items[i];
        if (!row->is_known && !pay_list_add(turn->worker->scratch, &missing, row)) {
            return full(err);
        }
    }
    enum pay_status status = pay_store_inbox_seen(
        turn->worker->store, (struct pay_store_inbox_row *const *)missing.items, missing.count,
        err);
    for (size_t i = 0; i < missing.count && status == PAY_OK; i++) {
        const struct pay_store_inbox_row *row = missing.items[i];
        if (!row->is_known) {
            status = pay_err_set(err, PAY_RETRY, 0, "inbox", "a key is neither new nor seen");
        }
    }
    return status;
}

static enum pay_status first_round(struct pay_try *turn, struct pay_err *err)
{
    struct pay_worker *worker = turn->worker;
    struct pay_store_inbox_row *const *rows =
        (struct pay_store_inbox_row *const *)turn->inbox.items;
    struct pay_store_reference_ask *const *references =
        (struct pay_store_reference_ask *const *)turn->references.items;
    struct pay_store_stored_event *const *stored =
        (struct pay_store_stored_event *const *)turn->stored.items;
    struct pay_store_command_ask *const *commands =
        (struct pay_store_command_ask *const *)turn->commands.items;
    struct pay_store_dead_event *const *dead =
        (struct pay_store_dead_event *const *)turn->dead_events.items;
    struct pay_store_case_ask *const *cases =
        (struct pay_store_case_ask *const *)turn->case_asks.items;
    size_t at_inbox, at_reference, at_stored, at_command, at_now, at_dead, at_case;
    enum pay_status status = turn->is_begun ? PAY_OK : pay_store_begin(worker->store, err);
    status = status != PAY_OK ? status : pay_store_now_find(worker->store, &at_now, err);
    status = status != PAY_OK
                 ? status
                 : pay_store_inbox_add(worker->store, rows, turn->inbox.count, &at_inbox, err);
    status = status != PAY_OK
                 ? status
                 : pay_store_reference_find(worker->store, references, turn->references.count,
                                            &at_reference, err);
    status = status != PAY_OK ? status
                              : pay_store_stored_find(worker->store, stored, turn->stored.count,
                                                      &at_stored, err);
    status = status != PAY_OK ? status
                              : pay_store_command_find(worker->store, commands,
                                                       turn->commands.count, &at_command, err);
    status = status != PAY_OK
                 ? status
                 : pay_store_dead_find(worker->store, dead, turn->dead_events.count, &at_dead, err);
    status = status != PAY_OK ? status
                              : pay_store_case_find_loose(worker->store, cases,
                                                          turn->case_asks.count, &at_case, err);
    status = status != PAY_OK ? status : pay_store_run(worker->store, err);
    if (status != PAY_OK) {
        return status;
    }
    pay_store_dead_found(worker->store, at_dead, worker->scratch, dead, turn->dead_events.count);
    pay_store_case_found_loose(worker->store, at_case, cases, turn->case_asks.count);
    turn->now_us = pay_store_now_read(worker->store, at_now);
    size_t missing = pay_store_inbox_read(worker->store, at_inbox, rows, turn->inbox.count);
    pay_store_reference_found(worker->store, at_reference, references, turn->references.count);
    pay_store_stored_found(worker->store, at_stored, worker->scratch, stored, turn->stored.count);
    pay_store_command_found(worker->store, at_command, worker->scratch, commands,
                            turn->commands.count);
    return missing == 0 ? PAY_OK : ask_seen(turn, err);
}

/* ---- what is left to decide ---- */

static enum pay_status screen_replay(struct pay_try *turn, struct pay_item *item,
                                     struct pay_err *err)
{
    const struct pay_store_stored_event *stored = &item->stored;
    if (!stored->found || strcmp(stored->kind, "PSP_EVENT") != 0 ||
        stored->status == PAY_STORE_EVENT_DECIDED) {
        item->done = true;
        item->reason = "DUPLICATE";
        return PAY_OK;
    }
    const enum pay_status status = pay_dead_open_stored(turn, item, &item->reason, err);
    item->done = item->reason != NULL;
    return status;
}

static enum pay_status screen_command(struct pay_try *turn, struct pay_item *item,
                                      struct pay_err *err)
{
    if (item->repeat.found) {
        return pay_command_repeat(turn, item, err);
    }
    return pay_command_is_loose(item->command) ? pay_command_loose(turn, item, err) : PAY_OK;
}

static enum pay_status screen(struct pay_try *turn, struct pay_item *item, struct pay_err *err)
{
    if (item->done) {
        return PAY_OK;
    }
    switch (item->kind) {
    case PAY_ITEM_REPLAY:
        return screen_replay(turn, item, err);
    case PAY_ITEM_COMMAND:
        return screen_command(turn, item, err);
    case PAY_ITEM_REFUSED:
        item->done = true;
        item->reason = "REFUSED_NOTIFICATION";
        return PAY_OK;
    case PAY_ITEM_POISON:
        item->done = true;
        item->reason = "POISON";
        return pay_poison_settle(turn, item) ? PAY_OK : full(err);
    default:
        if (!item->inbox.is_new && item->inbox.stored == PAY_STORE_EVENT_DECIDED) {
            item->done = true;
            item->reason = "DUPLICATE";
        }
        return PAY_OK;
    }
}

/* Names that stored events brought are looked up in a round of their own: they are rare. */
static enum pay_status screen_all(struct pay_try *turn, struct pay_err *err)
{
    size_t asked = turn->references.count;
    for (size_t i = 0; i < turn->count; i++) {
        const enum pay_status status = screen(turn, turn->items[i], err);
        if (status != PAY_OK) {
            return status;
        }
    }
    if (turn->references.count == asked) {
        return PAY_OK;
    }
    size_t index;
    struct pay_store *store = turn->worker->store;
    struct pay_store_reference_ask *const *more =
        (struct pay_store_reference_ask *const *)turn->references.items + asked;
    size_t count = turn->references.count - asked;
    enum pay_status status = pay_store_reference_find(store, more, count, &index, err);
    status = status != PAY_OK ? status : pay_store_run(store, err);
    if (status == PAY_OK) {
        pay_store_reference_found(store, index, more, count);
    }
    return status;
}

static void set_payment(struct pay_item *item)
{
    struct pay_str id = {NULL, 0};
    if (item->kind == PAY_ITEM_DEADLINE) {
        id = item->input.payment_id;
        if ((id.ptr == NULL || id.len == 0) &&
            item->input.deadline.aggregate_id.len >= PAY_PAYMENT_ID_SIZE - 1) {
            id = (struct pay_str){item->input.deadline.aggregate_id.ptr, PAY_PAYMENT_ID_SIZE - 1};
        }
    } else if (item->what == &item->input && item->kind == PAY_ITEM_COMMAND) {
        id = item->command->payment_id;
    } else {
        return; /* pay_resolve() did it */
    }
    (void)pay_str_copy(item->payment_id, sizeof(item->payment_id), id);
}

static int by_payment(const void *left, const void *right)
{
    const struct pay_item *a = *(struct pay_item *const *)left;
    const struct pay_item *b = *(struct pay_item *const *)right;
    int order = strcmp(a->payment_id, b->payment_id);
    return order != 0 ? order : by_log(a, b);
}

static struct pay_unit *new_unit(struct pay_arena *arena, const char *payment_id)
{
    struct pay_unit *unit = pay_arena_alloc(arena, sizeof(*unit));
    if (unit != NULL) {
        (void)pay_str_copy(unit->snapshot.order.payment_id, sizeof(unit->snapshot.order.payment_id),
                           pay_str_of(payment_id));
    }
    return unit;
}

static struct pay_unit *next_unit(struct pay_try *turn, const char *payment_id)
{
    struct pay_unit *unit = new_unit(turn->worker->scratch, payment_id);
    bool fits = unit != NULL && pay_list_add(turn->worker->scratch, &turn->units, unit);
    return fits ? unit : NULL;
}

static enum pay_status group(struct pay_try *turn, struct pay_err *err)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_list work = {NULL, 0, 0};
    pay_resolve(turn);
    for (size_t i = 0; i < turn->count; i++) {
        struct pay_item *item = turn->items[i];
        set_payment(item);
        if (!item->done && !pay_list_add(arena, &work, item)) {
            return full(err);
        }
    }
    pay_list_sort(&work, by_payment);
    struct pay_unit *unit = turn->loose;
    for (size_t i = 0; i < work.count && unit != NULL; i++) {
        struct pay_item *item = work.items[i];
        if (strcmp(item->payment_id, unit->snapshot.order.payment_id) != 0) {
            unit = next_unit(turn, item->payment_id);
        }
        if (unit != NULL && !pay_list_add(arena, &unit->work, item)) {
            unit = NULL;
        }
    }
    return unit != NULL ? PAY_OK : full(err);
}

/* ---- steps 2 to 4: read, decide, compare and set ---- */

struct asks {
    struct pay_list snapshots, dues, order_nos, pauses, paused_routes;
    struct pay_money_asks money;
};

static bool ask_item(struct pay_arena *arena, struct pay_item *item, struct asks *asks)
{
    bool fits = true;
    if (item->kind == PAY_ITEM_DEADLINE) {
        item->due.aggregate_id = item->input.deadline.aggregate_id;
        item->due.kind = item->deadline_kind;
        item->due.row_due_at_us = 0;
        fits = pay_list_add(arena, &asks->dues, &item->due);
    }
    if (item->kind == PAY_ITEM_COMMAND && item->command->type == PAY_CMD_CREATE_PAYMENT) {
        item->order_no.merchant_id = item->command->merchant_id;
        item->order_no.merchant_order_no = item->command->create_payment.merchant_order_no;
        item->order_no.payment_id = item->command->payment_id;
        item->order_no.taken = false;
        fits = fits && pay_list_add(arena, &asks->order_nos, &item->order_no);
    }
    for (size_t i = 0; i < item->route_count && fits; i++) {
        struct pay_store_pause_ask *ask = pay_arena_alloc(arena, sizeof(*ask));
        if (ask == NULL) {
            return false;
        }
        ask->psp = pay_str_of(item->routes[i].psp);
        ask->psp_account = pay_str_of(item->routes[i].psp_account);
        ask->method = pay_str_of(item->routes[i].method);
        fits = pay_list_add(arena, &asks->pauses, ask) &&
               pay_list_add(arena, &asks->paused_routes, &item->routes[i]);
    }
    return fits;
}

static void clear_emissions(struct pay_unit *unit)
{
    const struct pay_list none = {NULL, 0, 0};
    unit->won = unit->decided = unit->loaded = false;
    unit->history = unit->outbox = unit->jobs = unit->deadlines = unit->commands = none;
    unit->audits = unit->redirects = unit->events = unit->cases = unit->route_rows = none;
    unit->pauses = unit->case_notes = unit->renewals = unit->closed_cases = none;
    unit->detail = (struct pay_store_order_detail){.payment_id = {NULL, 0}};
}

/* Rows that no decision of ours wrote are not for the core, which would end the process: their
 * inputs are given up, and a case tells. */
static enum pay_status check_load(const struct pay_list *units, struct pay_err *err)
{
    for (size_t u = 0; u < units->count; u++) {
        const struct pay_unit *unit = units->items[u];
        if (!pay_snapshot_adds_up(&unit->snapshot)) {
            return pay_err_set(err, PAY_REJECT, 0, "apply",
                               "payment %s: its reservations are not its open actions'",
                               unit->snapshot.order.payment_id);
        }
    }
    return PAY_OK;
}

static enum pay_status load(struct pay_try *turn, struct pay_list *units, struct pay_err *err)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct asks asks = {.snapshots = {NULL, 0, 0}};
    bool fits = true;
    for (size_t u = 0; u < units->count && fits; u++) {
        struct pay_unit *unit = units->items[u];
        clear_emissions(unit);
        fits = pay_list_add(arena, &asks.snapshots, &unit->snapshot);
        for (size_t i = 0; i < unit->work.count && fits; i++) {
            fits = ask_item(arena, unit->work.items[i], &asks) &&
                   pay_money_ask(arena, unit, unit->work.items[i], &asks.money);
        }
    }
    if (!fits) {
        return full(err);
    }
    struct pay_store_load wanted = {
        .snapshots = (struct pay_snapshot *const *)asks.snapshots.items,
        .count = asks.snapshots.count,
        .dues = (struct pay_store_due_ask *const *)asks.dues.items,
        .due_count = asks.dues.count,
        .order_nos = (struct pay_store_order_no_ask *const *)asks.order_nos.items,
        .order_no_count = asks.order_nos.count,
        .pauses = (struct pay_store_pause_ask *const *)asks.pauses.items,
        .pause_count = asks.pauses.count,
        .keys = (struct pay_store_key_ask *const *)asks.money.keys.items,
        .key_count = asks.money.keys.count,
        .request_ids = asks.money.request_ids,
        .request_id_count = asks.money.request_id_count,
        .days = (struct pay_snapshot *const *)asks.money.days.items,
        .day_count = asks.money.days.count,
    };
    enum pay_status status = pay_store_snapshot_load(turn->worker->store, arena, &wanted, err);
    status = status != PAY_OK ? status : pay_money_open_requests(turn, &wanted, err);
    if (status != PAY_OK) {
        return status;
    }
    turn->now_us = wanted.now_us;
    status = check_load(units, err);
    if (status != PAY_OK) {
        return status;
    }
    for (size_t i = 0; i < asks.pauses.count; i++) {
        struct pay_route *route = asks.paused_routes.items[i];
        const struct pay_store_pause_ask *ask = asks.pauses.items[i];
        route->paused = ask->paused;
    }
    for (size_t u = 0; u < units->count; u++) {
        struct pay_unit *unit = units->items[u];
        unit->loaded = unit->snapshot.order.exists;
        unit->day_loaded_minor = unit->snapshot.refund_day.amount_minor;
        unit->loaded_routes = unit->named_routes = unit->snapshot.route_count;
        pay_unit_set_traits(turn->worker, unit);
    }
    return PAY_OK;
}

static enum pay_status decide(struct pay_try *turn, struct pay_list *units, struct pay_err *err)
{
    enum pay_status status = PAY_OK;
    for (size_t u = 0; u < units->count && status == PAY_OK; u++) {
        status = pay_unit_decide(turn, units->items[u], err);
    }
    return status != PAY_OK ? status : pay_jobs_make(turn, units, err);
}

/* Reads, decides, and compares and sets; a payment that lost is read and decided again. */
static enum pay_status decide_and_lock(struct pay_try *turn, struct pay_err *err)
{
    struct pay_list pending = turn->units;
    for (int tries = 0; tries < PAY_PROCESSOR_CAS_TRIES; tries++) {
        struct pay_list lost = {NULL, 0, 0};
        enum pay_status status = load(turn, &pending, err);
        if (status == PAY_OK && tries == 0) {
            status = pay_unit_decide(turn, turn->loose, err);
        }
        status = status != PAY_OK ? status : decide(turn, &pending, err);
        status = status != PAY_OK ? status : pay_write_lock(turn, &pending, &lost, err);
        if (status != PAY_OK || lost.count == 0) {
            return status;
        }
        turn->conflicts += lost.count;
        pending = lost;
    }
    return pay_err_set(err, PAY_RETRY, PAY_STORE_COUNT, "apply", "payments kept moving");
}

static enum pay_status transact(struct pay_try *turn, struct pay_err *err)
{
    enum pay_status status = pay_dead_open(turn, err);
    status = status != PAY_OK ? status : collect(turn, err);
    status = status != PAY_OK ? status : first_round(turn, err);
    status = status != PAY_OK ? status : screen_all(turn, err);
    status = status != PAY_OK ? status : group(turn, err);
    status = status != PAY_OK ? status : decide_and_lock(turn, err);
    status = status != PAY_OK ? status : pay_write_rest(turn, err);
    /* Whoever did not look: a text that found no room must not be committed as none. */
    if (status == PAY_OK && pay_arena_refused(turn->worker->scratch)) {
        status = full(err);
    }
    if (status != PAY_OK) {
        pay_store_rollback(turn->worker->store);
        return status;
    }
    PAY_FAULT("before_commit");
    status = pay_store_commit(turn->worker->store, err);
    PAY_FAULT("after_commit");
    if (status != PAY_OK && pay_store_usable(turn->worker->store)) {
        pay_store_rollback(turn->worker->store);
    }
    return status;
}

enum pay_status pay_apply(struct pay_worker *worker, struct pay_item **items, size_t count,
                          struct pay_err *err)
{
    pay_arena_reset(worker->scratch);
    struct pay_try turn = {.worker = worker, .items = items, .count = count};
    turn.loose = new_unit(worker->scratch, "");
    if (turn.loose == NULL) {
        return full(err);
    }
    turn.loose->won = true;
    enum pay_status status = transact(&turn, err);
    worker->now_us = turn.now_us;
    pay_metric_add(worker->metrics[PAY_PM_CONFLICTS], NULL, (int64_t)turn.conflicts);
    if (status == PAY_OK) {
        pay_report(&turn);
    }
    return status;
}
