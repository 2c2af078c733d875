/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/work.h"

#include <stdio.h>
#include <string.h>

#include "common/core/id.h"

#include "common/base/banned.h"

#define REUSED_HEX 16 /* Characters of the content's digest in the id of a refusal. */

/* ---- reading ---- */

/* Said of no command: it is read again where there is room. */
static const char no_room[] = "there is no room for it";

/* @return NULL, or why not. */
static const char *check_signature(struct pay_worker *worker,
                                   const struct pay_signed_command *signed_command,
                                   const struct pay_ed25519_public *key)
{
    pay_buf_reset(&worker->bytes);
    pay_buf_add(&worker->bytes, PAY_COMMAND_SIGNATURE_PREFIX, PAY_COMMAND_SIGNATURE_PREFIX_BYTES);
    pay_buf_add(&worker->bytes, signed_command->value.ptr, signed_command->value.len);
    if (worker->bytes.failed) { /* A record fits its maximum. */
        return no_room;
    }
    return pay_ed25519_verify(key, pay_buf_bytes(&worker->bytes), signed_command->signature)
               ? NULL
               : "a command whose signature is wrong";
}

static bool same_payment(const struct pay_item *item)
{
    struct pay_str named = item->input.payment_id;
    struct pay_str own = item->command->payment_id;
    if (own.ptr == NULL || own.len == 0) {
        return named.ptr == NULL || named.len == 0;
    }
    return pay_str_eq(named, own);
}

bool pay_command_is_loose(const struct pay_command *command)
{
    switch (command->type) {
    case PAY_CMD_PAUSE_ROUTE:
    case PAY_CMD_RESUME_ROUTE:
    case PAY_CMD_REPLAY_INPUT:
    case PAY_CMD_REPLAY_EVENT:
    case PAY_CMD_DISCARD_EVENT:
        return true;
    case PAY_CMD_RESOLVE_CASE: /* Of no payment: evidence that nobody could place. */
    case PAY_CMD_UNRECOGNIZED: /* Of a later release: whatever it is about. */
        return command->payment_id.ptr == NULL || command->payment_id.len == 0;
    default:
        return false;
    }
}

/* Routes and limits, by the accounts of this turn. */
static const char *resolve_routes(struct pay_worker *worker, struct pay_item *item)
{
    const struct pay_command *command = item->command;
    const struct pay_route_choice *choices = &command->route;
    size_t count = 1;
    struct pay_money amount = {.amount_minor = 0};
    if (command->type == PAY_CMD_CREATE_PAYMENT) {
        choices = command->create_payment.routes;
        count = command->create_payment.route_count;
        amount = command->create_payment.amount;
    } else if (command->route.psp_account.ptr == NULL || command->route.psp_account.len == 0) {
        choices = NULL; /* another command, or one that leaves the route to the payment's own */
    }
    if (command->type == PAY_CMD_CAPTURE || command->type == PAY_CMD_REQUEST_REFUND) {
        amount = command->money.amount;
    }
    if (!pay_accounts_policy(worker->accounts, command->merchant_id, pay_str_of(amount.currency),
                             &item->policy)) {
        return "UNKNOWN_MERCHANT";
    }
    if (choices == NULL) {
        return NULL;
    }
    item->routes = pay_arena_array(worker->reading, PAY_ROUTES_MAX, sizeof(*item->routes));
    if (item->routes == NULL) {
        return no_room;
    }
    const struct pay_route_wish wish = {.choices = choices, .count = count, .amount = amount};
    return pay_accounts_routes(worker->accounts, command->merchant_id, &wish, item->routes,
                               &item->route_count);
}

/* @return false: no room. */
static bool set_refusal(struct pay_worker *worker, struct pay_item *item,
                        const struct pay_principal *principal)
{
    const char *why = NULL;
    item->is_not_allowed = true;
    if (item->input.kind == PAY_WIRE_REJECTED_COMMAND) {
        item->refusal = item->input.command.refusal;
        why = item->refusal.ptr == NULL ? "REJECTED" : NULL;
    } else if (item->command->type == PAY_CMD_UNRECOGNIZED) {
        why = "UNKNOWN_COMMAND";
    } else if (!pay_accounts_may(principal, item->command->merchant_id, item->command->type)) {
        why = "NOT_ALLOWED";
    } else {
        item->is_not_allowed = false;
        why = resolve_routes(worker, item);
    }
    if (why != NULL) {
        item->refusal = pay_str_of(why);
    }
    return why != no_room;
}

/* Refused for its name: the answer, the audit and the command's number are the signer's. */
static const char *name_signer(struct pay_worker *worker, struct pay_item *item,
                               const struct pay_principal *principal)
{
    if (item->input.kind != PAY_WIRE_REJECTED_COMMAND) {
        return "a command signed by another than its caller";
    }
    item->command->caller = pay_arena_str(worker->reading, pay_str_of(principal->id));
    return item->command->caller.ptr == NULL ? no_room : NULL;
}

/* @return NULL, or why the record is poison; *reason says of which kind. */
static const char *verify(struct pay_worker *worker, struct pay_item *item,
                          const struct pay_principal **ret_principal,
                          enum pay_dead_reason *ret_reason)
{
    const struct pay_signed_command *signed_command = &item->input.command;
    const struct pay_ed25519_public *key = NULL;
    struct pay_err err = {.code = 0};
    *ret_reason = PAY_DEAD_KEY_UNKNOWN;
    *ret_principal = pay_accounts_key(worker->accounts, signed_command->key_id, &key);
    if (*ret_principal == NULL) {
        return "a command by a key that is not known";
    }
    *ret_reason = PAY_DEAD_SIGNATURE;
    const char *why = check_signature(worker, signed_command, key);
    if (why != NULL) {
        return why;
    }
    item->command = pay_arena_alloc(worker->reading, sizeof(*item->command));
    if (item->command == NULL) {
        return no_room;
    }
    const enum pay_status status = pay_command_decode_signed(worker->codec, signed_command->value,
                                                             signed_command->writer_fingerprint,
                                                             worker->reading, item->command, &err);
    if (status != PAY_OK) {
        *ret_reason = pay_dead_reason_of_code(err.code);
        return status == PAY_RETRY ? no_room : "a command that cannot be decoded";
    }
    if (!pay_str_eq_c(item->command->caller, (*ret_principal)->id)) {
        why = name_signer(worker, item, *ret_principal);
        if (why != NULL) {
            return why;
        }
    }
    *ret_reason = PAY_DEAD_KEY_MISMATCH;
    return same_payment(item) ? NULL : "a command under another payment's key";
}

bool pay_item_read_command(struct pay_worker *worker, struct pay_item *item)
{
    const struct pay_principal *principal = NULL;
    enum pay_dead_reason reason = PAY_DEAD_OTHER;
    const char *why = verify(worker, item, &principal, &reason);
    if (why == NULL && !pay_command_is_loose(item->command) &&
        !pay_id_is_payment(item->command->payment_id)) {
        reason = PAY_DEAD_MALFORMED;
        why = "a command without a payment id";
    }
    if (why == no_room) {
        return false;
    }
    if (why != NULL) {
        pay_item_poison(item, reason, why);
        return true;
    }
    item->is_operator = principal->kind == PAY_PRINCIPAL_OPERATOR;
    item->cause = pay_arena_printf(worker->reading, "%s/%s", item->command->caller.ptr,
                                   item->command->command_id.ptr);
    pay_sha256(item->input.command.value, item->command_sha256);
    return item->cause.ptr != NULL && set_refusal(worker, item, principal);
}

/* ---- answers outside a payment's order ---- */

static enum pay_status full(struct pay_err *err)
{
    return pay_err_set(err, PAY_RETRY, PAY_CODEC_NO_MEMORY, "command", "the arena is full");
}

static enum pay_status answer(struct pay_try *turn, struct pay_item *item, const char *refusal,
                              struct pay_str cause, struct pay_bytes *ret_payload,
                              struct pay_err *err)
{
    struct pay_fact fact = {
        .type = refusal == NULL ? PAY_FACT_COMMAND_ACCEPTED : PAY_FACT_COMMAND_REJECTED,
        .attempt_index = -1,
        .case_index = -1,
        .reason_code = refusal == NULL ? "ACCEPTED" : refusal,
        .evidence = PAY_EVIDENCE_LOCAL,
    };
    (void)pay_str_copy(fact.aggregate_id, sizeof(fact.aggregate_id), item->cause);
    pay_id_fact(fact.event_id, fact.type, fact.aggregate_id, cause.ptr);
    item->verdict = refusal == NULL ? PAY_VERDICT_APPLY : PAY_VERDICT_REJECT;
    item->reason = fact.reason_code;
    return pay_fact_emit(turn, turn->loose, item, &fact, ret_payload, err);
}

/* @param about absent: the command itself. */
static bool audit(struct pay_try *turn, struct pay_unit *unit, const struct pay_item *item,
                  const char *what, struct pay_str about, struct pay_str reason)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_store_audit_row *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return false;
    }
    *row = (struct pay_store_audit_row){
        .who = item->command->caller,
        .what = what,
        .subject = about.ptr == NULL ? item->cause : about,
        .reason = reason,
        .from_where = "payfact.inputs",
    };
    return pay_list_add(arena, &unit->audits, row);
}

bool pay_command_audit(struct pay_try *turn, struct pay_unit *unit, const struct pay_item *item,
                       const char *what, const char *reason)
{
    return audit(turn, unit, item, what, (struct pay_str){NULL, 0}, pay_str_of(reason));
}

static bool remember(struct pay_try *turn, const struct pay_item *item, const char *refusal,
                     struct pay_bytes payload)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_store_command_row *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return false;
    }
    pay_command_row(item, refusal == NULL ? "ACCEPTED" : "REJECTED", refusal, payload, row);
    return pay_list_add(arena, &turn->loose->commands, row);
}

void pay_command_row(const struct pay_item *item, const char *status, const char *reason,
                     struct pay_bytes answer_bytes, struct pay_store_command_row *ret_row)
{
    const struct pay_command *command = item->command;
    *ret_row = (struct pay_store_command_row){
        .caller = command->caller,
        .command_id = command->command_id,
        .sha256 = {item->command_sha256, PAY_SHA256_BYTES},
        .type = pay_command_type_name(command->type),
        .payment_id = command->payment_id.ptr == NULL ? PAY_STR("") : command->payment_id,
        .merchant_id = command->merchant_id,
        .key_id = item->input.command.key_id,
        .status = status,
        .reason_code = reason,
        .answer = answer_bytes,
        .received_at_us = item->input.received_at_us,
    };
}

/* Other content under a command's number: refused each time, and written down each time. */
static enum pay_status refuse_reused(struct pay_try *turn, struct pay_item *item,
                                     struct pay_err *err)
{
    char hex[PAY_SHA256_HEX];
    struct pay_bytes payload;
    pay_hex_encode((struct pay_bytes){item->command_sha256, PAY_SHA256_BYTES}, hex);
    struct pay_str cause =
        pay_arena_printf(turn->worker->scratch, "%s#%.*s", item->cause.ptr, REUSED_HEX, hex);
    if (cause.ptr == NULL ||
        !pay_command_audit(turn, turn->loose, item, "command.refused", "COMMAND_ID_REUSED")) {
        return full(err);
    }
    return answer(turn, item, "COMMAND_ID_REUSED", cause, &payload, err);
}

enum pay_status pay_command_repeat(struct pay_try *turn, struct pay_item *item, struct pay_err *err)
{
    struct pay_bytes own = {item->command_sha256, PAY_SHA256_BYTES};
    item->done = true;
    if (!pay_bytes_eq(item->repeat.sha256, own)) {
        return refuse_reused(turn, item, err);
    }
    item->reason = "REPEATED";
    item->verdict = PAY_VERDICT_IGNORE;
    return pay_fact_again(turn, turn->loose, item, item->repeat.answer, err);
}

/* Of another merchant's account nobody learns that it exists. */
static bool owns_account(const struct pay_worker *worker, const struct pay_command *command)
{
    const struct pay_account *account =
        pay_accounts_account(worker->accounts, command->subject.psp_account);
    return account != NULL && pay_str_eq_c(command->merchant_id, account->psp.merchant_id) &&
           pay_str_eq_c(command->subject.psp, account->adapter->name);
}

static enum pay_status pause(struct pay_try *turn, struct pay_item *item, const char **ret_refusal,
                             struct pay_err *err)
{
    struct pay_arena *arena = turn->worker->scratch;
    const struct pay_cmd_subject *subject = &item->command->subject;
    if (!owns_account(turn->worker, item->command)) {
        *ret_refusal = "UNKNOWN_ROUTE";
        return PAY_OK;
    }
    struct pay_store_pause_row *row = pay_arena_alloc(arena, sizeof(*row));
    const bool fits = row != NULL && pay_list_add(arena, &turn->loose->pauses, row);
    if (fits) {
        *row = (struct pay_store_pause_row){
            .psp = subject->psp,
            .psp_account = subject->psp_account,
            .method = subject->method.ptr == NULL ? PAY_STR("") : subject->method,
            .principal = item->command->caller,
            .reason_code = subject->reason_code,
            .pause = item->command->type == PAY_CMD_PAUSE_ROUTE,
        };
    }
    return fits ? PAY_OK : full(err);
}

/* Whether a command is one of these is pay_command_is_loose()'s word. */
typedef enum pay_status loose_fn(struct pay_try *turn, struct pay_item *item,
                                 const char **ret_refusal, struct pay_err *err);
static loose_fn *const loose[PAY_CMD_COUNT] = {
    [PAY_CMD_PAUSE_ROUTE] = pause,
    [PAY_CMD_RESUME_ROUTE] = pause,
    [PAY_CMD_REPLAY_INPUT] = pay_dead_replay_input,
    [PAY_CMD_REPLAY_EVENT] = pay_dead_replay_event,
    [PAY_CMD_DISCARD_EVENT] = pay_dead_discard_event,
    [PAY_CMD_RESOLVE_CASE] = pay_dead_resolve_case,
};

/* What it is about and why, as its caller says; what became of it. */
static bool audit_loose(struct pay_try *turn, const struct pay_item *item, const char *outcome)
{
    struct pay_arena *arena = turn->worker->scratch;
    const struct pay_command *command = item->command;
    const struct pay_cmd_subject *subject = &command->subject;
    const bool is_case = command->type == PAY_CMD_RESOLVE_CASE;
    const struct pay_str code = is_case ? command->controlled.reason_code : subject->reason_code;
    struct pay_str about = is_case ? command->controlled.aggregate_id : subject->event_id;
    if (about.ptr == NULL && subject->psp_account.ptr != NULL) {
        const struct pay_str last =
            command->type == PAY_CMD_REPLAY_INPUT ? subject->transport_key : subject->method;
        about = pay_arena_printf(arena, "%s/%s/%s", subject->psp.ptr, subject->psp_account.ptr,
                                 last.ptr == NULL ? "" : last.ptr);
    }
    const struct pay_str reason = code.ptr == NULL
                                      ? pay_str_of(outcome)
                                      : pay_arena_printf(arena, "%s %s", outcome, code.ptr);
    return reason.ptr != NULL &&
           audit(turn, turn->loose, item, pay_command_type_name(command->type), about, reason);
}

enum pay_status pay_command_loose(struct pay_try *turn, struct pay_item *item, struct pay_err *err)
{
    struct pay_bytes payload = {NULL, 0};
    const char *refusal = item->refusal.ptr;
    enum pay_status status = PAY_OK;
    if (refusal == NULL) {
        status = loose[item->command->type](turn, item, &refusal, err);
    }
    item->is_security = item->is_not_allowed;
    item->done = refusal != NULL || item->what == &item->input; /* else an event is to be decided */
    status = status != PAY_OK ? status : answer(turn, item, refusal, item->cause, &payload, err);
    if (status != PAY_OK) {
        return status;
    }
    const bool fits = remember(turn, item, refusal, payload) &&
                      audit_loose(turn, item, refusal == NULL ? "ACCEPTED" : refusal);
    return fits ? PAY_OK : full(err);
}
