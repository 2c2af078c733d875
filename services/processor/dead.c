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

#include <stdint.h>
#include <string.h>

#include "common/base/banned.h"

static enum pay_status full(struct pay_err *err)
{
    return pay_err_set(err, PAY_RETRY, PAY_CODEC_NO_MEMORY, "dead", "the arena is full");
}

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
    if (item->kind != PAY_ITEM_COMMAND || item->command == NULL ||
        item->command->type != PAY_CMD_REPLAY_INPUT || item->refusal.ptr != NULL) {
        return false;
    }
    const struct pay_cmd_subject *subject = &item->command->subject;
    return subject->psp.len == 0 && subject->psp_account.len == 0;
}

/* The bytes as they came, which only the keyring opens. @return PAY_REJECT: it does not. */
static enum pay_status open_body(struct pay_worker *worker, const struct pay_item *item,
                                 const struct pay_store_stored_event *row,
                                 struct pay_bytes *ret_value, struct pay_err *err)
{
    struct pay_str aad =
        pay_arena_printf(worker->scratch, "//%s", item->command->subject.transport_key.ptr);
    if (aad.ptr == NULL) {
        return full(err);
    }
    pay_buf_reset(&worker->bytes);
    const enum pay_status status = pay_keyring_open(
        worker->keyring, row->key_id, (struct pay_bytes){(const uint8_t *)aad.ptr, aad.len},
        row->body, &worker->bytes, err);
    if (status != PAY_OK) {
        return status;
    }
    *ret_value = pay_arena_bytes(worker->scratch, pay_buf_bytes(&worker->bytes));
    return ret_value->ptr == NULL ? full(err) : PAY_OK;
}

/* @return NULL, or why no twin is made of what was read. */
static const char *refuse_twin(const struct pay_worker *worker, const struct pay_item *item,
                               const struct pay_item *twin)
{
    if (twin->kind == PAY_ITEM_POISON) {
        return pay_dead_reason_name(twin->dead);
    }
    if (twin->kind != PAY_ITEM_EVENT) {
        return "NOT_REPLAYABLE"; /* a command is its caller's to send again */
    }
    const bool is_own =
        is_of_merchant(worker, twin->input.event.psp_account, item->command->merchant_id);
    return is_own ? NULL : "NO_SUCH_INPUT";
}

static enum pay_status make_twin(struct pay_worker *worker, struct pay_item *item,
                                 const struct pay_store_stored_event *row, struct pay_err *err)
{
    struct pay_bytes value = {NULL, 0};
    enum pay_status status = open_body(worker, item, row, &value, err);
    if (status == PAY_REJECT) {
        item->twin_refusal = "EVIDENCE_SEALED";
        return PAY_OK;
    }
    if (status != PAY_OK) {
        return status;
    }
    struct pay_item *twin = pay_arena_alloc(worker->scratch, sizeof(*twin));
    if (twin == NULL) {
        return full(err);
    }
    status = pay_item_read_kept(worker, item->msg, value, twin, err);
    if (status == PAY_OK) {
        item->twin_refusal = refuse_twin(worker, item, twin);
        item->twin = item->twin_refusal == NULL ? twin : NULL;
    }
    return status;
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
        struct pay_item *twin = twins->items[i];
        twin->log_no = SIZE_MAX / 2 + i; /* as if it came now */
        items[turn->count + i] = twin;
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
    item->twin = NULL; /* of a former try, whose memory is gone */
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
        if (is_dead && item->twin_refusal == NULL) {
            status = make_twin(turn->worker, item, row, err);
        }
        fits = item->twin == NULL || pay_list_add(arena, &twins, item->twin);
    }
    if (status != PAY_OK) {
        return status;
    }
    return fits && add_twins(turn, &twins) ? PAY_OK : full(err);
}

/* ---- REPLAY_INPUT ---- */

enum pay_status pay_dead_open_stored(struct pay_try *turn, struct pay_item *item,
                                     const char **ret_refusal, struct pay_err *err)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_payment_input *input = pay_arena_alloc(arena, sizeof(*input));
    if (input == NULL) {
        return full(err);
    }
    const enum pay_status status =
        pay_payment_input_decode(turn->worker->codec, item->stored.normalized, arena, input, err);
    if (status == PAY_REJECT) {
        *ret_refusal = "SCHEMA_UNKNOWN"; /* kept by a version that this one cannot read */
        return PAY_OK;
    }
    if (status != PAY_OK) {
        return status;
    }
    item->what = input;
    return pay_resolve_ask(turn, item) ? PAY_OK : full(err);
}

/* Its event is decided in this try, under its own key: this row has served. */
static enum pay_status replay_poison(struct pay_try *turn, struct pay_item *item,
                                     const char **ret_refusal, struct pay_err *err)
{
    if (item->twin == NULL) {
        *ret_refusal = item->twin_refusal == NULL ? "NO_SUCH_INPUT" : item->twin_refusal;
        return PAY_OK;
    }
    struct pay_str case_id =
        pay_arena_printf(turn->worker->scratch, "//%s", item->command->subject.transport_key.ptr);
    const bool fits = case_id.ptr != NULL && pay_orphan_stored_done(turn, item) &&
                      pay_dead_close_case(turn, turn->loose, item, case_id, "REPLAYED");
    return fits ? PAY_OK : full(err);
}

static const char *refuse_replay(const struct pay_try *turn, const struct pay_item *item)
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
    return NULL;
}

enum pay_status pay_dead_replay_input(struct pay_try *turn, struct pay_item *item,
                                      const char **ret_refusal, struct pay_err *err)
{
    *ret_refusal = refuse_replay(turn, item);
    if (*ret_refusal != NULL) {
        return PAY_OK;
    }
    return names_poison(item) ? replay_poison(turn, item, ret_refusal, err)
                              : pay_dead_open_stored(turn, item, ret_refusal, err);
}

/* ---- dead rows of the outbox ---- */

/* The row that the command names, read as what it is: an event, or a job, of which nothing but its
 * merchant is wanted. Refused when it is not the caller's merchant's. */
static enum pay_status read_dead(struct pay_worker *worker, const struct pay_item *item,
                                 struct pay_payment_event *ret_event, const char **ret_refusal,
                                 struct pay_err *err)
{
    struct pay_psp_job job;
    const struct pay_store_dead_event *dead = &item->dead_event;
    enum pay_status status = PAY_REJECT;
    if (dead->found && dead->is_job) {
        status = pay_psp_job_decode(worker->codec, dead->payload, worker->scratch, &job, err);
    } else if (dead->found) {
        status =
            pay_payment_event_decode(worker->codec, dead->payload, worker->scratch, ret_event, err);
    }
    if (status != PAY_OK && status != PAY_REJECT) {
        return status;
    }
    const bool is_own =
        status == PAY_OK && pay_str_eq(dead->is_job ? job.merchant_id : ret_event->merchant_id,
                                       item->command->merchant_id);
    *ret_refusal = is_own ? NULL : "NO_SUCH_EVENT";
    return PAY_OK;
}

/* The dead event of the caller's merchant becomes EventWithheld under its own number. A job has no
 * number that anybody waits for: it is sent, or its time passes. */
enum pay_status pay_dead_discard_event(struct pay_try *turn, struct pay_item *item,
                                       const char **ret_refusal, struct pay_err *err)
{
    struct pay_payment_event event;
    const enum pay_status status = read_dead(turn->worker, item, &event, ret_refusal, err);
    if (status == PAY_OK && *ret_refusal == NULL && item->dead_event.is_job) {
        *ret_refusal = "NOT_AN_EVENT";
    }
    return status != PAY_OK || *ret_refusal != NULL ? status
                                                    : pay_fact_withhold(turn, item, &event, err);
}

enum pay_status pay_dead_replay_event(struct pay_try *turn, struct pay_item *item,
                                      const char **ret_refusal, struct pay_err *err)
{
    struct pay_payment_event event;
    const enum pay_status status = read_dead(turn->worker, item, &event, ret_refusal, err);
    if (status != PAY_OK || *ret_refusal != NULL) {
        return status;
    }
    return pay_list_add(turn->worker->scratch, &turn->loose->revived, &item->dead_event)
               ? PAY_OK
               : full(err);
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

static const char *refuse_closing(const struct pay_worker *worker, const struct pay_item *item)
{
    const struct pay_cmd_controlled *controlled = &item->command->controlled;
    if (!item->case_ask.found || !may_close(worker, item->command)) {
        return "NO_SUCH_CASE";
    }
    if (!item->case_ask.is_open) {
        return "ALREADY_RESOLVED";
    }
    if (item->case_ask.version != controlled->expected_version) {
        return "STALE_REQUEST";
    }
    return NULL;
}

enum pay_status pay_dead_resolve_case(struct pay_try *turn, struct pay_item *item,
                                      const char **ret_refusal, struct pay_err *err)
{
    const struct pay_cmd_controlled *controlled = &item->command->controlled;
    *ret_refusal = refuse_closing(turn->worker, item);
    const bool fits = *ret_refusal != NULL ||
                      pay_dead_close_case(turn, turn->loose, item, controlled->aggregate_id,
                                          controlled->reason_code.ptr);
    return fits ? PAY_OK : full(err);
}
