/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was given up, and what an operator may do about it:
 *   REPLAY_INPUT   a stored PSP event is decided again; poison that holds one joins the try as that
 *                  event, as if the PSP's delivery came now
 *   REPLAY_EVENT   an outbox row that Kafka refused for good is published after all
 *   DISCARD_EVENT  a dead event becomes EventWithheld under its number
 *   RESOLVE_CASE   of no payment: what nobody could place is of no use
 */
#include "services/processor/work.h"

#include <string.h>

#include "common/base/banned.h"

static bool is_of_merchant(const struct pay_worker *worker, struct pay_str psp_account,
                           struct pay_str merchant_id)
{
    const struct pay_account *account = pay_accounts_account(worker->accounts, psp_account);
    return account != NULL && pay_str_eq_c(merchant_id, account->psp.merchant_id);
}

bool pay_dead_close_case(struct pay_try *turn, struct pay_unit *unit, const struct pay_item *item,
                         struct pay_str case_id, const char *code)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_store_case_row *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return false;
    }
    *row = (struct pay_store_case_row){
        .case_id = case_id,
        .resolved_by = item->command != NULL ? item->command->caller : PAY_STR("payfact-processor"),
        .resolution_code = pay_str_of(code),
    };
    return pay_list_add(arena, &unit->closed_cases, row);
}

/* ---- REPLAY_INPUT of poison ---- */

static bool names_poison(const struct pay_item *item)
{
    const struct pay_cmd_subject *subject = &item->command->subject;
    return item->kind == PAY_ITEM_COMMAND && item->command->type == PAY_CMD_REPLAY_INPUT &&
           item->refusal.ptr == NULL && subject->psp.len == 0 && subject->psp_account.len == 0;
}

/* The bytes as they came, which only the keyring opens. @return NULL, or why not. */
static const char *open_body(struct pay_worker *worker, const struct pay_item *item,
                             const struct pay_store_stored_event *row, struct pay_bytes *ret_value)
{
    struct pay_err err;
    struct pay_str aad =
        pay_arena_printf(worker->scratch, "//%s", item->command->subject.transport_key.ptr);
    pay_buf_reset(&worker->bytes);
    if (aad.ptr == NULL || pay_keyring_open(worker->keyring, row->key_id,
                                            (struct pay_bytes){(const uint8_t *)aad.ptr, aad.len},
                                            row->body, &worker->bytes, &err) != PAY_OK) {
        return "EVIDENCE_SEALED";
    }
    *ret_value = pay_arena_bytes(worker->batch, pay_buf_bytes(&worker->bytes));
    return ret_value->ptr == NULL ? "LIMIT" : NULL;
}

static const char *make_twin(struct pay_worker *worker, struct pay_item *item,
                             const struct pay_store_stored_event *row)
{
    struct pay_bytes value;
    const char *refusal = open_body(worker, item, row, &value);
    if (refusal != NULL) {
        return refusal;
    }
    struct pay_item *twin = pay_arena_alloc(worker->batch, sizeof(*twin));
    if (twin == NULL) {
        return "LIMIT";
    }
    pay_item_read_kept(worker, item->msg, value, twin);
    if (twin->kind == PAY_ITEM_POISON) {
        return pay_dead_reason_name(twin->dead);
    }
    if (twin->kind != PAY_ITEM_EVENT) {
        return "NOT_REPLAYABLE"; /* a command is its caller's to send again */
    }
    if (!is_of_merchant(worker, twin->input.event.psp_account, item->command->merchant_id)) {
        return "NO_SUCH_INPUT";
    }
    item->twin = twin;
    return NULL;
}

static enum pay_status find_poison(struct pay_try *turn, const struct pay_list *asks,
                                   struct pay_err *err)
{
    size_t index = 0;
    struct pay_store *store = turn->worker->store;
    struct pay_store_stored_event *const *rows =
        (struct pay_store_stored_event *const *)asks->items;
    enum pay_status status = pay_store_begin(store, err);
    turn->is_begun = status == PAY_OK;
    status =
        status != PAY_OK ? status : pay_store_stored_find(store, rows, asks->count, &index, err);
    status = status != PAY_OK ? status : pay_store_run(store, err);
    if (status == PAY_OK) {
        pay_store_stored_found(store, index, turn->worker->scratch, rows, asks->count);
    }
    return status;
}

/* The try's items, with the twins behind them. */
static bool add_twins(struct pay_try *turn, const struct pay_list *twins)
{
    size_t count = turn->count + twins->count;
    struct pay_item **items = (struct pay_item **)pay_arena_array(turn->worker->scratch, count,
                                                                  sizeof(struct pay_item *));
    if (items == NULL) {
        return false;
    }
    memcpy((void *)items, (const void *)turn->items, turn->count * sizeof(items[0]));
    for (size_t i = 0; i < twins->count; i++) {
        items[turn->count + i] = twins->items[i];
    }
    turn->items = items;
    turn->count = count;
    return true;
}

static bool ask_poison(struct pay_try *turn, struct pay_item *item, struct pay_list *named,
                       struct pay_list *asks)
{
    struct pay_arena *arena = turn->worker->scratch;
    if (!names_poison(item) || !pay_inbox_digest(PAY_STR(""), PAY_STR(""),
                                                 item->command->subject.transport_key, item->key)) {
        return true;
    }
    item->stored = (struct pay_store_stored_event){.key = {item->key, PAY_STORE_INBOX_KEY_BYTES}};
    return pay_list_add(arena, named, item) && pay_list_add(arena, asks, &item->stored);
}

enum pay_status pay_dead_open(struct pay_try *turn, struct pay_err *err)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_list named = {NULL, 0, 0};
    struct pay_list asks = {NULL, 0, 0};
    struct pay_list twins = {NULL, 0, 0};
    bool fits = true;
    for (size_t i = 0; i < turn->count && fits; i++) {
        fits = ask_poison(turn, turn->items[i], &named, &asks);
    }
    if (fits && named.count == 0) {
        return PAY_OK;
    }
    enum pay_status status = fits ? find_poison(turn, &asks, err) : PAY_OK;
    for (size_t i = 0; i < named.count && status == PAY_OK && fits; i++) {
        struct pay_item *item = named.items[i];
        const struct pay_store_stored_event *row = &item->stored;
        bool is_dead =
            row->found && row->status == PAY_STORE_EVENT_DEAD && strcmp(row->kind, "POISON") == 0;
        if (is_dead && item->twin == NULL && item->twin_refusal == NULL) {
            item->twin_refusal = make_twin(turn->worker, item, row);
        }
        fits = !is_dead || item->twin == NULL || pay_list_add(arena, &twins, item->twin);
    }
    fits = fits && (status != PAY_OK || add_twins(turn, &twins));
    return fits ? status
                : pay_err_set(err, PAY_RETRY, PAY_CODEC_NO_MEMORY, "dead", "the arena is full");
}

/* ---- REPLAY_INPUT ---- */

const char *pay_dead_open_stored(struct pay_try *turn, struct pay_item *item, bool *ret_fits)
{
    struct pay_err err;
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_payment_input *input = pay_arena_alloc(arena, sizeof(*input));
    *ret_fits = input != NULL;
    if (input == NULL) {
        return NULL;
    }
    if (pay_payment_input_decode(turn->worker->codec, item->stored.normalized, arena, input,
                                 &err) != PAY_OK) {
        return "SCHEMA_UNKNOWN"; /* kept by a version that this one cannot read */
    }
    item->what = input;
    *ret_fits = pay_resolve_ask(turn, item);
    return NULL;
}

/* Its event is decided in this try, under its own key: this row has served. */
static const char *replay_poison(struct pay_try *turn, struct pay_item *item, bool *ret_fits)
{
    if (item->twin == NULL) {
        return item->twin_refusal == NULL ? "NO_SUCH_INPUT" : item->twin_refusal;
    }
    struct pay_str case_id =
        pay_arena_printf(turn->worker->scratch, "//%s", item->command->subject.transport_key.ptr);
    *ret_fits = case_id.ptr != NULL && pay_orphan_stored_done(turn, item) &&
                pay_dead_close_case(turn, turn->loose, item, case_id, "REPLAYED");
    return NULL;
}

const char *pay_dead_replay_input(struct pay_try *turn, struct pay_item *item, bool *ret_fits)
{
    const struct pay_command *command = item->command;
    bool is_poison = names_poison(item);
    if (!item->stored.found ||
        (!is_poison &&
         !is_of_merchant(turn->worker, command->subject.psp_account, command->merchant_id))) {
        return "NO_SUCH_INPUT";
    }
    if (item->stored.status == PAY_STORE_EVENT_DECIDED) {
        return "ALREADY_DECIDED";
    }
    if (strcmp(item->stored.kind, is_poison ? "POISON" : "PSP_EVENT") != 0) {
        return "NOT_REPLAYABLE";
    }
    return is_poison ? replay_poison(turn, item, ret_fits)
                     : pay_dead_open_stored(turn, item, ret_fits);
}

/* ---- dead rows of the outbox ---- */

/* @return NULL, or why it is not the caller's merchant's. */
static const char *read_event(struct pay_worker *worker, const struct pay_item *item,
                              struct pay_payment_event *ret_event)
{
    struct pay_err err;
    bool is_own = item->dead_event.found && !item->dead_event.is_job &&
                  pay_payment_event_decode(worker->codec, item->dead_event.payload, worker->scratch,
                                           ret_event, &err) == PAY_OK &&
                  pay_str_eq(ret_event->merchant_id, item->command->merchant_id);
    return is_own ? NULL : "NO_SUCH_EVENT";
}

static const char *read_job(struct pay_worker *worker, const struct pay_item *item)
{
    struct pay_err err;
    struct pay_psp_job job;
    bool is_own = item->dead_event.found && item->dead_event.is_job &&
                  pay_psp_job_decode(worker->codec, item->dead_event.payload, worker->scratch, &job,
                                     &err) == PAY_OK &&
                  pay_str_eq(job.merchant_id, item->command->merchant_id);
    return is_own ? NULL : "NO_SUCH_EVENT";
}

/* The dead event of the caller's merchant becomes EventWithheld under its own number. A job has no
 * number that anybody waits for: it is sent, or its time passes. */
const char *pay_dead_discard_event(struct pay_try *turn, struct pay_item *item, bool *ret_fits)
{
    struct pay_payment_event event;
    const char *refusal = item->dead_event.is_job ? read_job(turn->worker, item)
                                                  : read_event(turn->worker, item, &event);
    if (refusal == NULL && item->dead_event.is_job) {
        refusal = "NOT_AN_EVENT";
    }
    *ret_fits = refusal != NULL || pay_fact_withhold(turn, item, &event) != NULL;
    return refusal;
}

const char *pay_dead_replay_event(struct pay_try *turn, struct pay_item *item, bool *ret_fits)
{
    struct pay_payment_event event;
    const char *refusal = item->dead_event.is_job ? read_job(turn->worker, item)
                                                  : read_event(turn->worker, item, &event);
    *ret_fits = refusal != NULL ||
                pay_list_add(turn->worker->scratch, &turn->loose->revived, &item->dead_event);
    return refusal;
}

/* ---- RESOLVE_CASE of no payment ---- */

/* The case's id is psp/psp_account/transport_key; "//..." has no account, and no merchant. */
static bool may_close(const struct pay_worker *worker, const struct pay_command *command)
{
    struct pay_str id = command->controlled.aggregate_id;
    const char *account = memchr(id.ptr, '/', id.len);
    if (account == NULL) {
        return false;
    }
    account++;
    const char *key = memchr(account, '/', id.len - (size_t)(account - id.ptr));
    return key != NULL &&
           (key == account ||
            is_of_merchant(worker, (struct pay_str){account, (size_t)(key - account)},
                           command->merchant_id));
}

const char *pay_dead_resolve_case(struct pay_try *turn, struct pay_item *item, bool *ret_fits)
{
    const struct pay_cmd_controlled *controlled = &item->command->controlled;
    if (!item->case_ask.found || !may_close(turn->worker, item->command)) {
        return "NO_SUCH_CASE";
    }
    if (!item->case_ask.is_open) {
        return "ALREADY_RESOLVED";
    }
    if (item->case_ask.version != controlled->expected_version) {
        return "STALE_REQUEST";
    }
    *ret_fits = pay_dead_close_case(turn, turn->loose, item, controlled->aggregate_id,
                                    controlled->reason_code.ptr);
    return NULL;
}
