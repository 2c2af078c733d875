/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/work.h"

#include <string.h>

#include "common/base/assert.h"
#include "common/core/id.h"

#include "common/base/banned.h"

/* ---- what an input needs ---- */

static bool makes_money_action(const struct pay_item *item)
{
    return item->kind == PAY_ITEM_COMMAND && (item->command->type == PAY_CMD_CAPTURE ||
                                              item->command->type == PAY_CMD_REQUEST_REFUND);
}

static bool ask_request(struct pay_arena *arena, struct pay_str request_id,
                        struct pay_money_asks *asks)
{
    if (request_id.ptr == NULL || request_id.len == 0) {
        return true;
    }
    if (asks->request_id_count == asks->request_id_cap) {
        const size_t cap = asks->request_id_cap == 0 ? 8 : asks->request_id_cap * 2;
        struct pay_str *more = pay_arena_array(arena, cap, sizeof(*more));
        if (more == NULL) {
            return false;
        }
        if (asks->request_id_count > 0) {
            memcpy(more, asks->request_ids, asks->request_id_count * sizeof(*more));
        }
        asks->request_ids = more;
        asks->request_id_cap = cap;
    }
    asks->request_ids[asks->request_id_count++] = request_id;
    return true;
}

static bool ask_key(struct pay_arena *arena, struct pay_item *item, struct pay_money_asks *asks)
{
    const struct pay_command *command = item->command;
    const struct pay_str own = command->money.idempotency_key;
    const bool is_named = own.ptr != NULL && own.len > 0;
    pay_id_shorten(item->action_key, sizeof(item->action_key), is_named ? own : item->cause);
    item->key_ask = (struct pay_store_key_ask){
        .kind = command->type == PAY_CMD_CAPTURE ? PAY_MONEY_CAPTURE : PAY_MONEY_REFUND,
        .merchant_id = command->merchant_id,
        .key = pay_str_of(item->action_key),
        .payment_id = command->payment_id,
    };
    return pay_list_add(arena, &asks->keys, &item->key_ask) &&
           pay_list_add(arena, &asks->key_items, item);
}

static bool has_snapshot(const struct pay_list *days, const struct pay_snapshot *snapshot)
{
    return days->count > 0 && days->items[days->count - 1] == snapshot;
}

bool pay_money_ask(struct pay_arena *arena, struct pay_unit *unit, struct pay_item *item,
                   struct pay_money_asks *asks)
{
    if (item->kind == PAY_ITEM_DEADLINE && item->deadline_kind == PAY_DEADLINE_APPROVAL) {
        return ask_request(arena, item->input.deadline.aggregate_id, asks);
    }
    if (item->kind != PAY_ITEM_COMMAND) {
        return true;
    }
    if (item->command->type == PAY_CMD_APPROVE || item->command->type == PAY_CMD_DECLINE) {
        return ask_request(arena, item->command->approval.request_id, asks);
    }
    bool fits = true;
    if (makes_money_action(item)) {
        fits = ask_key(arena, item, asks);
    }
    if (item->command->type == PAY_CMD_REQUEST_REFUND &&
        !has_snapshot(&asks->days, &unit->snapshot)) {
        fits = fits && pay_list_add(arena, &asks->days, &unit->snapshot);
    }
    return fits;
}

enum pay_status pay_money_open_requests(struct pay_try *turn, const struct pay_store_load *loaded,
                                        struct pay_err *err)
{
    struct pay_worker *worker = turn->worker;
    for (size_t i = 0; i < loaded->request_count; i++) {
        const struct pay_store_signed_request *from = &loaded->requests[i];
        struct pay_command *command = pay_arena_alloc(worker->scratch, sizeof(*command));
        if (command == NULL) {
            return pay_err_set(err, PAY_RETRY, PAY_CODEC_NO_MEMORY, "requests",
                               "the arena is full");
        }
        enum pay_status status = pay_command_decode_signed(
            worker->codec, from->command, from->writer_fingerprint, worker->scratch, command, err);
        if (status != PAY_OK) {
            /* It was read when it was accepted: this release cannot, a later one can. */
            return pay_err_set(err, PAY_RETRY, err->code, "requests",
                               "a stored request cannot be read");
        }
        if (!pay_request_fill(&from->snapshot->requests[from->index], command)) {
            return pay_err_set(err, PAY_RETRY, 0, "requests", "a stored request is too long");
        }
    }
    return PAY_OK;
}

/* Another payment of the batch asks for the same number, earlier in the log: it is that one's. */
static bool is_key_of_other(const struct pay_try *turn, const struct pay_item *item)
{
    for (size_t i = 0; i < turn->count; i++) {
        const struct pay_item *other = turn->items[i];
        if (other != item && !other->done && makes_money_action(other) &&
            other->log_no < item->log_no && other->key_ask.kind == item->key_ask.kind &&
            strcmp(other->action_key, item->action_key) == 0 &&
            pay_str_eq(other->command->merchant_id, item->command->merchant_id) &&
            !pay_str_eq(other->command->payment_id, item->command->payment_id)) {
            return true;
        }
    }
    return false;
}

/* The day is one row for all payments of a merchant: those of this batch see each other. */
static void share_day(const struct pay_try *turn, struct pay_unit *unit)
{
    struct pay_refund_day *day = &unit->snapshot.refund_day;
    day->amount_minor = unit->day_loaded_minor;
    for (size_t i = 0; i < turn->units.count; i++) {
        const struct pay_unit *other = turn->units.items[i];
        const struct pay_order *order = &other->snapshot.order;
        if (other != unit && other->snapshot.refund_day.added_minor > 0 &&
            strcmp(order->merchant_id, unit->snapshot.order.merchant_id) == 0 &&
            strcmp(order->amount.currency, unit->snapshot.order.amount.currency) == 0) {
            day->amount_minor += other->snapshot.refund_day.added_minor;
        }
    }
}

void pay_money_prepare(const struct pay_try *turn, struct pay_unit *unit,
                       const struct pay_item *item, struct pay_decide_input *in)
{
    const struct pay_order *order = &unit->snapshot.order;
    if (in->kind == PAY_INPUT_DEADLINE) { /* A merchant that left the file: its policy is none. */
        (void)pay_accounts_policy(turn->worker->accounts, pay_str_of(order->merchant_id),
                                  pay_str_of(order->amount.currency), &in->policy);
        return;
    }
    if (in->command == NULL || item->kind != PAY_ITEM_COMMAND) {
        return;
    }
    in->command_sha256 = (struct pay_bytes){item->command_sha256, PAY_SHA256_BYTES};
    if (makes_money_action(item)) {
        in->key_taken = item->key_ask.taken || is_key_of_other(turn, item);
    }
    if (in->command->type == PAY_CMD_REQUEST_REFUND) {
        share_day(turn, unit);
    }
}

/* ---- what was decided, as rows ---- */

static bool collect_action(struct pay_arena *arena, const struct pay_unit *unit,
                           const struct pay_money_action *action, enum pay_money_kind kind,
                           struct pay_money_rows *rows)
{
    if (action->change == PAY_ROW_SAME) {
        return true;
    }
    struct pay_store_action_row *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return false;
    }
    row->action = *action;
    row->attempt_id = unit->snapshot.attempts[action->attempt_index].attempt_id;
    row->merchant_id = unit->snapshot.order.merchant_id;
    return pay_list_add(
        arena, action->change == PAY_ROW_INSERTED ? &rows->new_actions[kind] : &rows->actions[kind],
        row);
}

static bool collect_disputes(struct pay_arena *arena, const struct pay_unit *unit,
                             struct pay_money_rows *rows)
{
    bool fits = true;
    for (size_t i = 0; i < unit->snapshot.dispute_count && fits; i++) {
        const struct pay_dispute *dispute = &unit->snapshot.disputes[i];
        const struct pay_attempt *attempt = &unit->snapshot.attempts[dispute->attempt_index];
        if (dispute->change == PAY_ROW_SAME) {
            continue;
        }
        struct pay_store_dispute_row *row = pay_arena_alloc(arena, sizeof(*row));
        if (row == NULL) {
            return false;
        }
        *row = (struct pay_store_dispute_row){*dispute, attempt->attempt_id, attempt->psp,
                                              attempt->psp_account};
        fits = pay_list_add(
            arena, dispute->change == PAY_ROW_INSERTED ? &rows->new_disputes : &rows->disputes,
            row);
    }
    return fits;
}

static int by_day(const void *left, const void *right)
{
    const struct pay_store_day_row *a = *(struct pay_store_day_row *const *)left;
    const struct pay_store_day_row *b = *(struct pay_store_day_row *const *)right;
    const int order = strcmp(a->merchant_id, b->merchant_id);
    return order != 0 ? order : strcmp(a->currency, b->currency);
}

/* One row for a merchant's day, whatever number of payments add to it. */
static bool collect_day(struct pay_arena *arena, const struct pay_unit *unit,
                        struct pay_money_rows *rows)
{
    const struct pay_refund_day *day = &unit->snapshot.refund_day;
    if (day->added_minor == 0) {
        return true;
    }
    const struct pay_store_day_row wanted = {unit->snapshot.order.merchant_id,
                                             unit->snapshot.order.amount.currency, day->added_minor,
                                             day->limit_minor};
    const struct pay_store_day_row *key = &wanted;
    for (size_t i = 0; i < rows->days.count; i++) {
        struct pay_store_day_row *row = rows->days.items[i];
        const struct pay_store_day_row *there = row;
        if (by_day((const void *)&key, (const void *)&there) == 0) {
            row->added_minor += day->added_minor;
            return true;
        }
    }
    struct pay_store_day_row *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return false;
    }
    *row = wanted;
    return pay_list_add(arena, &rows->days, row);
}

/* Which of the unit's commands made a row: its bytes, or its key. */
static const struct pay_item *find_command(const struct pay_unit *unit, struct pay_str cause)
{
    for (size_t i = 0; i < unit->work.count; i++) {
        const struct pay_item *item = unit->work.items[i];
        char id[PAY_CAUSE_SIZE];
        if (item->kind != PAY_ITEM_COMMAND) {
            continue;
        }
        pay_id_cause(id, item->cause);
        if (pay_str_eq_c(cause, id)) {
            return item;
        }
    }
    return NULL;
}

static bool collect_request(struct pay_arena *arena, const struct pay_unit *unit,
                            const struct pay_approval_request *request, struct pay_money_rows *rows)
{
    struct pay_store_request_row *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return false;
    }
    row->request = *request;
    row->payment_id = unit->snapshot.order.payment_id;
    row->sha256 = (struct pay_bytes){request->sha256, sizeof(request->sha256)};
    row->has_version = request->expected_version >= 0;
    row->expected_version = row->has_version ? request->expected_version : 0;
    if (request->change == PAY_ROW_UPDATED) {
        return pay_list_add(arena, &rows->requests, row);
    }
    const struct pay_item *item = find_command(unit, pay_str_of(request->request_id));
    PAY_ASSERT(item != NULL); /* a request is made by its command, in the same batch */
    row->command = item->input.command.value;
    row->writer_fingerprint = item->input.command.writer_fingerprint;
    row->attachments = item->command->controlled.attachments;
    row->attachment_count = item->command->controlled.attachment_count;
    return pay_list_add(arena, &rows->new_requests, row);
}

static bool collect_approval(struct pay_arena *arena, const struct pay_unit *unit,
                             const struct pay_approval *approval, struct pay_money_rows *rows)
{
    const struct pay_approval_request *request = &unit->snapshot.requests[approval->request_index];
    struct pay_store_approval_row *row = pay_arena_alloc(arena, sizeof(*row));
    const struct pay_str cause =
        pay_arena_printf(arena, "%s/%s", approval->principal, approval->command_id);
    if (row == NULL || cause.ptr == NULL) {
        return false;
    }
    const struct pay_item *item = find_command(unit, cause);
    PAY_ASSERT(item != NULL); /* a word is a command of this batch */
    row->approval = *approval;
    row->request_id = request->request_id;
    row->requested_by = request->requested_by;
    row->sha256 = (struct pay_bytes){request->sha256, sizeof(request->sha256)};
    row->key_id = item->input.command.key_id;
    return pay_list_add(arena, &rows->approvals, row);
}

bool pay_money_collect(struct pay_arena *arena, struct pay_unit *unit, struct pay_money_rows *rows)
{
    const struct pay_snapshot *snapshot = &unit->snapshot;
    bool fits = collect_disputes(arena, unit, rows) && collect_day(arena, unit, rows);
    for (size_t i = 0; i < snapshot->capture_count && fits; i++) {
        fits = collect_action(arena, unit, &snapshot->captures[i], PAY_MONEY_CAPTURE, rows);
    }
    for (size_t i = 0; i < snapshot->refund_count && fits; i++) {
        fits = collect_action(arena, unit, &snapshot->refunds[i], PAY_MONEY_REFUND, rows);
    }
    for (size_t i = 0; i < snapshot->request_count && fits; i++) {
        fits = snapshot->requests[i].change == PAY_ROW_SAME ||
               collect_request(arena, unit, &snapshot->requests[i], rows);
    }
    for (size_t i = 0; i < snapshot->approval_count && fits; i++) {
        fits = snapshot->approvals[i].change != PAY_ROW_INSERTED ||
               collect_approval(arena, unit, &snapshot->approvals[i], rows);
    }
    return fits;
}

#define ROWS(type_, list_) (const struct type_ *const *)(list_).items, (list_).count, err

enum pay_status pay_money_queue(struct pay_store *store, const struct pay_money_rows *rows,
                                struct pay_err *err)
{
    enum pay_status s = PAY_OK;
    struct pay_list days = rows->days;
    for (int kind = 0; kind < PAY_MONEY_KIND_COUNT && s == PAY_OK; kind++) {
        s = pay_store_action_update(store, (enum pay_money_kind)kind,
                                    ROWS(pay_store_action_row, rows->actions[kind]));
        s = s != PAY_OK ? s
                        : pay_store_action_add(store, (enum pay_money_kind)kind,
                                               ROWS(pay_store_action_row, rows->new_actions[kind]));
    }
    s = s != PAY_OK ? s
                    : pay_store_dispute_update(store, ROWS(pay_store_dispute_row, rows->disputes));
    s = s != PAY_OK ? s
                    : pay_store_dispute_add(store, ROWS(pay_store_dispute_row, rows->new_disputes));
    /* A word before the end of what it is about; the database refuses it the other way round. */
    s = s != PAY_OK ? s
                    : pay_store_request_add(store, ROWS(pay_store_request_row, rows->new_requests));
    s = s != PAY_OK ? s
                    : pay_store_approval_add(store, ROWS(pay_store_approval_row, rows->approvals));
    s = s != PAY_OK ? s
                    : pay_store_request_update(store, ROWS(pay_store_request_row, rows->requests));
    pay_list_sort(&days, by_day);
    return s != PAY_OK ? s : pay_store_day_add(store, ROWS(pay_store_day_row, days));
}
