/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/work.h"

#include <limits.h>
#include <string.h>

#include "common/core/id.h"

#include "common/base/banned.h"

static enum pay_status full(struct pay_err *err)
{
    return pay_err_set(err, PAY_RETRY, PAY_CODEC_NO_MEMORY, "decide", "the arena is full");
}

/* An account that is gone: nothing may be concluded from silence or a not-found. */
static const struct pay_psp_traits unknown_traits = {
    .not_founds_needed = INT_MAX,
    .send_window_us = INT64_C(60000000),
    .answer_us = INT64_C(60000000),
    .call_budget_us = INT64_C(60000000),
    .longest_processing_us = INT64_C(86400000000),
    .visibility_grace_us = INT64_C(86400000000),
    .query_first_us = INT64_C(60000000),
    .person_after_us = INT64_C(3600000000),
    .action_lifetime_us = INT64_C(3600000000),
    .cancel_retry_us = INT64_C(600000000),
};

void pay_unit_set_traits(const struct pay_worker *worker, struct pay_unit *unit)
{
    struct pay_snapshot *snapshot = &unit->snapshot;
    for (size_t i = 0; i < snapshot->route_count; i++) {
        struct pay_route *route = &snapshot->routes[i];
        const struct pay_account *account =
            pay_accounts_account(worker->accounts, pay_str_of(route->psp_account));
        route->traits = account == NULL ? unknown_traits : account->traits;
    }
}

static enum pay_source source_of(const struct pay_item *item)
{
    if (item->what->kind == PAY_WIRE_PSP_EVENT) {
        return item->what->source;
    }
    if (item->what->kind == PAY_WIRE_DEADLINE) {
        return PAY_SOURCE_LOCAL;
    }
    return item->is_operator ? PAY_SOURCE_OPERATOR : PAY_SOURCE_MERCHANT;
}

static void make_input(const struct pay_try *turn, const struct pay_item *item,
                       struct pay_decide_input *in)
{
    *in = (struct pay_decide_input){
        .source = source_of(item),
        .evidence = PAY_EVIDENCE_LOCAL,
        .now_us = turn->now_us,
        .input_id = item->what->input_id,
        .cause = item->cause,
    };
    switch (item->what->kind) {
    case PAY_WIRE_PSP_EVENT:
        in->kind = PAY_INPUT_EVENT;
        in->evidence = pay_derive_evidence(item->what);
        in->cause = item->what->business_key;
        in->event = &item->what->event;
        in->foreign_reference = item->foreign_reference;
        break;
    case PAY_WIRE_DEADLINE:
        in->kind = PAY_INPUT_DEADLINE;
        in->deadline = (struct pay_deadline_due){
            .kind = item->deadline_kind,
            .aggregate_id = item->what->deadline.aggregate_id,
            .due_at_us = item->what->deadline.due_at_us,
            .row_due_at_us = item->due.row_due_at_us,
        };
        break;
    default:
        in->kind = item->is_not_allowed ? PAY_INPUT_REJECTED_COMMAND : PAY_INPUT_COMMAND;
        in->command = item->command;
        in->refusal = item->refusal;
        in->routes = item->routes;
        in->route_count = item->route_count;
        in->policy = item->policy;
        break;
    }
}

/* ---- effects ---- */

/* What a decision says may be borrowed from a row that the next decision changes. */
static const char *keep(struct pay_arena *arena, const char *text)
{
    return pay_arena_str(arena, pay_str_of(text)).ptr;
}

static bool keep_command(struct pay_try *turn, struct pay_unit *unit, const struct pay_item *item,
                         const struct pay_fact *fact, struct pay_bytes payload)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_store_command_row *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return false;
    }
    bool is_accepted = fact->type == PAY_FACT_COMMAND_ACCEPTED;
    bool waits = is_accepted && strcmp(fact->reason_code, "AWAITING_APPROVAL") == 0;
    const char *status = waits ? "AWAITING_APPROVAL" : is_accepted ? "ACCEPTED" : "REJECTED";
    pay_command_row(item, status, fact->reason_code, payload, row);
    if (!pay_list_add(arena, &unit->commands, row)) {
        return false;
    }
    /* Every refused command, and whatever an operator does. */
    return (is_accepted && !item->is_operator) ||
           pay_command_audit(turn, unit, item, pay_command_type_name(item->command->type),
                             keep(arena, fact->reason_code));
}

static enum pay_status emit_fact(struct pay_try *turn, struct pay_unit *unit, struct pay_item *item,
                                 const struct pay_fact *fact, struct pay_err *err)
{
    struct pay_bytes payload = {NULL, 0};
    enum pay_status status = pay_fact_emit(turn, unit, item, fact, &payload, err);
    if (status != PAY_OK) {
        return status;
    }
    bool answers =
        fact->type == PAY_FACT_COMMAND_ACCEPTED || fact->type == PAY_FACT_COMMAND_REJECTED;
    if (answers && item->command != NULL && !keep_command(turn, unit, item, fact, payload)) {
        return full(err);
    }
    return PAY_OK;
}

static void take_route_params(const struct pay_list *rows, int route_no, struct pay_job_plan *plan)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct pay_store_route_row *row = rows->items[i];
        if (row->route_no == route_no && row->params.ptr != NULL) {
            plan->params.found = true;
            plan->params.params = row->params;
            plan->params.key_id = row->params_key_id;
            plan->params.bound_to = row->params_bound_to;
        }
    }
}

/* Parameters that this batch brought are not stored yet: the job takes them from the command. */
static void take_params(const struct pay_unit *unit, struct pay_job_plan *plan)
{
    const struct pay_attempt *attempt = &unit->snapshot.attempts[plan->effect.attempt_index];
    take_route_params(&unit->route_rows, attempt->route_no, plan);
    take_route_params(&unit->renewals, attempt->route_no, plan);
    for (size_t i = 0; i < unit->redirects.count; i++) {
        const struct pay_store_redirect_row *row = unit->redirects.items[i];
        if (pay_str_eq_c(row->attempt_id, attempt->attempt_id)) {
            plan->redirect.found = true;
            plan->redirect.data = row->data;
            plan->redirect.key_id = row->key_id;
            plan->redirect.bound_to = row->bound_to;
        }
    }
}

static bool writes_jobs(const struct pay_try *turn, const struct pay_unit *unit)
{
    const struct pay_order *order = &unit->snapshot.order;
    const struct pay_merchant *merchant =
        pay_accounts_merchant(turn->worker->accounts, pay_str_of(order->merchant_id));
    /* A merchant that left the file still has payments, and their queries and cancels. */
    return merchant == NULL || pay_merchant_writes(merchant, pay_str_of(order->payment_id));
}

static bool plan_job(struct pay_try *turn, struct pay_unit *unit, struct pay_item *item,
                     const struct pay_job_effect *effect)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_job_plan *plan = pay_arena_alloc(arena, sizeof(*plan));
    if (plan == NULL) {
        return false;
    }
    plan->effect = *effect;
    plan->effect.reason_code = keep(arena, effect->reason_code);
    plan->item = item;
    if (writes_jobs(turn, unit)) {
        plan->row = pay_outbox_row(turn, unit, PAY_STR("psp-jobs"),
                                   pay_str_of(unit->snapshot.order.payment_id));
        if (plan->row == NULL) {
            return false;
        }
    }
    take_params(unit, plan);
    return pay_list_add(arena, &unit->jobs, plan);
}

static bool set_deadline(struct pay_try *turn, struct pay_unit *unit,
                         const struct pay_deadline_effect *effect, bool clear)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_deadline_change *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return false;
    }
    row->clear = clear;
    row->row.kind = effect->kind;
    row->row.aggregate_id = pay_arena_str(arena, pay_str_of(effect->aggregate_id));
    row->row.payment_id = pay_str_of(unit->snapshot.order.payment_id);
    row->row.due_at_us = effect->due_at_us;
    row->row.set_before_us = effect->set_before_us;
    return row->row.aggregate_id.ptr != NULL && pay_list_add(arena, &unit->deadlines, row);
}

static enum pay_status emit_effect(struct pay_try *turn, struct pay_unit *unit,
                                   struct pay_item *item, const struct pay_effect *effect,
                                   struct pay_err *err)
{
    bool fits = true;
    switch (effect->kind) {
    case PAY_EFFECT_FACT:
        return emit_fact(turn, unit, item, &effect->as.fact, err);
    case PAY_EFFECT_JOB:
        fits = plan_job(turn, unit, item, &effect->as.job);
        break;
    case PAY_EFFECT_DEADLINE_SET:
        fits = set_deadline(turn, unit, &effect->as.deadline, false);
        break;
    case PAY_EFFECT_DEADLINE_CLEAR:
        fits = set_deadline(turn, unit, &effect->as.deadline, true);
        break;
    case PAY_EFFECT_KIND_COUNT:
        break;
    }
    return fits ? PAY_OK : full(err);
}

static bool emit_history(struct pay_try *turn, struct pay_unit *unit, const struct pay_item *item,
                         const struct pay_decide_input *in, const struct pay_history_row *from)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_store_history_row *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return false;
    }
    *row = (struct pay_store_history_row){
        .payment_id = from->outside ? PAY_STR("") : pay_str_of(unit->snapshot.order.payment_id),
        .aggregate = from->aggregate,
        .aggregate_id = pay_arena_str(arena, pay_str_of(from->aggregate_id)),
        .from_status = from->from_status,
        .to_status = from->to_status,
        .verdict = from->verdict,
        .event_name = keep(arena, from->event_name),
        .event_id = in->command != NULL ? item->cause : item->what->input_id,
        .source = in->source,
        .evidence = from->is_controlled ? PAY_EVIDENCE_CONTROLLED : in->evidence,
        .reason_code = keep(arena, from->reason_code),
        .provider_reference = pay_arena_str(arena, from->provider_reference),
        .trace_id = item->trace_id,
        .version_before = from->outside ? 0 : unit->snapshot.order.version,
    };
    if (from->has_amount) {
        row->amount_minor = from->amount.amount_minor;
        row->currency = pay_arena_str(arena, pay_str_of(from->amount.currency));
    }
    if (in->command != NULL && item->is_operator) {
        row->principal = in->command->caller;
    }
    if (in->event != NULL && in->event->call.is_set) {
        row->http_status = in->event->call.http_status;
        row->psp_request_id = in->event->call.psp_request_id;
    }
    if (from->fact_effect >= 0) {
        const struct pay_fact *fact = &turn->worker->decision->effects[from->fact_effect].as.fact;
        row->published_sequence = fact->sequence;
        if (fact->sequence > 0) {
            row->published_event_id = pay_arena_str(arena, pay_str_of(fact->event_id));
        }
    }
    return row->aggregate_id.ptr != NULL && row->reason_code != NULL &&
           pay_list_add(arena, &unit->history, row);
}

/* ---- what the decision appended to the snapshot ---- */

static bool name_routes(struct pay_try *turn, struct pay_unit *unit, const struct pay_item *item)
{
    struct pay_arena *arena = turn->worker->scratch;
    const struct pay_signed_command *signed_command = &item->what->command;
    size_t first = unit->named_routes;
    for (size_t i = first; i < unit->snapshot.route_count; i++) {
        struct pay_store_route_row *row = pay_arena_alloc(arena, sizeof(*row));
        if (row == NULL || !pay_list_add(arena, &unit->route_rows, row)) {
            return false;
        }
        (void)pay_str_copy(row->payment_id, sizeof(row->payment_id),
                           pay_str_of(unit->snapshot.order.payment_id));
        row->route_no = (int)i;
        if (item->command != NULL && i - first < signed_command->param_count) {
            const struct pay_sealed *sealed = &signed_command->params[i - first];
            row->params = sealed->ciphertext;
            row->params_key_id = sealed->key_id;
            row->params_bound_to = sealed->bound_to;
        }
    }
    unit->named_routes = unit->snapshot.route_count;
    return true;
}

/* A command may bring other parameters for a route that the payment has already. */
static bool renew_params(struct pay_try *turn, struct pay_unit *unit, const struct pay_item *item)
{
    struct pay_arena *arena = turn->worker->scratch;
    const struct pay_signed_command *signed_command = &item->what->command;
    bool is_start = item->command != NULL && (item->command->type == PAY_CMD_START_ATTEMPT ||
                                              item->command->type == PAY_CMD_CHANGE_METHOD);
    if (!is_start || item->verdict != PAY_VERDICT_APPLY || signed_command->param_count == 0 ||
        signed_command->params[0].ciphertext.ptr == NULL || item->route_count == 0) {
        return true;
    }
    for (size_t i = 0; i < unit->named_routes; i++) {
        const struct pay_route *route = &unit->snapshot.routes[i];
        if (strcmp(route->psp_account, item->routes[0].psp_account) != 0 ||
            strcmp(route->method, item->routes[0].method) != 0) {
            continue;
        }
        struct pay_store_route_row *row = pay_arena_alloc(arena, sizeof(*row));
        if (row == NULL) {
            return false;
        }
        (void)pay_str_copy(row->payment_id, sizeof(row->payment_id),
                           pay_str_of(unit->snapshot.order.payment_id));
        row->route_no = (int)i;
        row->params = signed_command->params[0].ciphertext;
        row->params_key_id = signed_command->params[0].key_id;
        row->params_bound_to = signed_command->params[0].bound_to;
        unit->renewals.count = 0; /* the latest of a batch is the one that counts */
        return pay_list_add(arena, &unit->renewals, row);
    }
    return true;
}

/* Only what an accepted command brought: the next CONFIRM sends it, whoever wrote it. */
static bool keep_redirect(struct pay_try *turn, struct pay_unit *unit, const struct pay_item *item)
{
    struct pay_arena *arena = turn->worker->scratch;
    const struct pay_sealed *sealed = &item->what->command.redirect_data;
    if (item->command == NULL || item->command->type != PAY_CMD_CONTINUE_ATTEMPT ||
        sealed->ciphertext.ptr == NULL || item->verdict != PAY_VERDICT_APPLY) {
        return true;
    }
    for (size_t i = 0; i < unit->snapshot.attempt_count; i++) {
        const struct pay_attempt *attempt = &unit->snapshot.attempts[i];
        if (!pay_str_eq_c(item->command->attempt_id, attempt->attempt_id)) {
            continue;
        }
        struct pay_store_redirect_row *row = pay_arena_alloc(arena, sizeof(*row));
        if (row == NULL) {
            return false;
        }
        *row =
            (struct pay_store_redirect_row){item->command->attempt_id, attempt->action_no,
                                            sealed->ciphertext, sealed->key_id, sealed->bound_to};
        unit->redirects.count = 0; /* the latest of a batch is the one that counts */
        return pay_list_add(arena, &unit->redirects, row);
    }
    return true;
}

/* Who opened or fed each case: the first decision that touched it in this batch. */
static bool note_cases(struct pay_try *turn, struct pay_unit *unit, const struct pay_item *item)
{
    struct pay_arena *arena = turn->worker->scratch;
    const struct pay_decision *decision = turn->worker->decision;
    for (size_t i = 0; i < unit->snapshot.case_count; i++) {
        const struct pay_case *from = &unit->snapshot.cases[i];
        bool is_noted = false;
        for (size_t n = 0; n < unit->case_notes.count; n++) {
            const struct pay_case_note *note = unit->case_notes.items[n];
            is_noted = is_noted || note->case_index == i;
        }
        if (from->change == PAY_ROW_SAME || is_noted) {
            continue;
        }
        struct pay_case_note *note = pay_arena_alloc(arena, sizeof(*note));
        if (note == NULL) {
            return false;
        }
        note->case_index = i;
        note->item = item;
        note->reason_code = decision->reason_code;
        note->event_name = decision->history_count > 0 ? decision->history[0].event_name : "";
        if (!pay_list_add(arena, &unit->case_notes, note)) {
            return false;
        }
    }
    return true;
}

static enum pay_status emit(struct pay_try *turn, struct pay_unit *unit, struct pay_item *item,
                            const struct pay_decide_input *in, struct pay_err *err)
{
    const struct pay_decision *decision = turn->worker->decision;
    if (!keep_redirect(turn, unit, item) || !renew_params(turn, unit, item) ||
        !name_routes(turn, unit, item) || !note_cases(turn, unit, item)) {
        return full(err);
    }
    enum pay_status status = PAY_OK;
    for (size_t i = 0; i < decision->effect_count && status == PAY_OK; i++) {
        status = emit_effect(turn, unit, item, &decision->effects[i], err);
    }
    for (size_t i = 0; i < decision->history_count && status == PAY_OK; i++) {
        status = emit_history(turn, unit, item, in, &decision->history[i]) ? PAY_OK : full(err);
        unit->decided = unit->decided || !decision->history[i].outside;
    }
    return status;
}

static enum pay_status decide_item(struct pay_try *turn, struct pay_unit *unit,
                                   struct pay_item *item, struct pay_err *err)
{
    struct pay_decide_input in;
    struct pay_decision *decision = turn->worker->decision;
    make_input(turn, item, &in);
    pay_money_prepare(turn, unit, item, &in);
    unit->snapshot.order_no_taken = item->order_no.taken;
    if (!pay_store_snapshot_reserve(turn->worker->scratch, &unit->snapshot)) {
        return full(err);
    }
    pay_decide(&unit->snapshot, &in, decision);
    item->verdict = decision->verdict;
    item->reason = decision->reason_code;
    item->is_security = decision->security;
    if (unit->snapshot.order.change == PAY_ROW_INSERTED && unit->detail.payment_id.ptr == NULL) {
        unit->detail = (struct pay_store_order_detail){
            .payment_id = pay_str_of(unit->snapshot.order.payment_id),
            .description = item->command == NULL ? (struct pay_str){NULL, 0}
                                                 : item->command->create_payment.description,
            .traceparent = item->input.traceparent,
        };
    }
    if (in.kind == PAY_INPUT_EVENT && decision->orphan) {
        return pay_orphan_keep(turn, unit, item) ? PAY_OK : full(err);
    }
    enum pay_status status = emit(turn, unit, item, &in, err);
    if (status == PAY_OK && in.kind == PAY_INPUT_EVENT && !pay_orphan_settled(turn, unit, item)) {
        status = full(err);
    }
    if (status == PAY_OK && in.kind == PAY_INPUT_DEADLINE &&
        !pay_orphan_deadline_settled(turn, unit, item)) {
        status = full(err);
    }
    return status;
}

/* An event whose payment cannot be named: somebody else's, or too early. */
static bool decide_loose(struct pay_try *turn, struct pay_unit *unit, struct pay_item *item)
{
    struct pay_str number = item->what->event.merchant_request_no;
    if (item->what->kind != PAY_WIRE_PSP_EVENT) {
        item->verdict = PAY_VERDICT_IGNORE;
        item->reason = "NO_PAYMENT";
        return true;
    }
    bool is_foreign = number.ptr != NULL && number.len > 0 && !pay_id_is_action(number);
    return is_foreign ? pay_orphan_foreign(turn, unit, item) : pay_orphan_keep(turn, unit, item);
}

enum pay_status pay_unit_decide(struct pay_try *turn, struct pay_unit *unit, struct pay_err *err)
{
    enum pay_status status = PAY_OK;
    for (size_t i = 0; i < unit->work.count && status == PAY_OK; i++) {
        struct pay_item *item = unit->work.items[i];
        if (unit->snapshot.order.payment_id[0] == '\0') {
            status = decide_loose(turn, unit, item) ? PAY_OK : full(err);
        } else {
            status = decide_item(turn, unit, item, err);
        }
    }
    return status;
}
