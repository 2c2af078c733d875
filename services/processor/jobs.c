/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/work.h"

#include <string.h>

#include "common/contracts/headers.h"

#include "common/base/banned.h"

/* The one reference that stays the same over the attempt, best first. */
static const enum pay_reference_kind main_kinds[] = {
    PAY_REF_INTENT, PAY_REF_ORDER,   PAY_REF_AUTHORIZATION,
    PAY_REF_CHARGE, PAY_REF_CAPTURE, PAY_REF_OTHER,
};

static struct pay_str main_reference(const struct pay_reference *references, size_t count)
{
    struct pay_str best = {NULL, 0};
    size_t best_rank = sizeof(main_kinds) / sizeof(main_kinds[0]);
    for (size_t i = 0; i < count; i++) {
        size_t rank = 0;
        while (rank < best_rank && references[i].kind != main_kinds[rank]) {
            rank++;
        }
        if (rank < best_rank) {
            best_rank = rank;
            best = references[i].reference;
        }
    }
    return best;
}

static size_t bound_references(const struct pay_snapshot *snapshot, int attempt_index,
                               struct pay_reference dst[PAY_JOB_REFERENCES_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < snapshot->reference_count && count < PAY_JOB_REFERENCES_MAX; i++) {
        const struct pay_bound_reference *bound = &snapshot->references[i];
        if (bound->attempt_index == attempt_index) {
            dst[count].kind = bound->kind;
            dst[count].reference = pay_str_of(bound->reference);
            count++;
        }
    }
    return count;
}

static bool moves_money(enum pay_job_kind kind)
{
    return kind == PAY_JOB_SUBMIT || kind == PAY_JOB_CONFIRM || kind == PAY_JOB_CAPTURE ||
           kind == PAY_JOB_REFUND;
}

static struct pay_sealed sealed_of(const struct pay_job_plan *plan)
{
    if (plan->effect.kind == PAY_JOB_SUBMIT && plan->params.found) {
        return (struct pay_sealed){plan->params.key_id, plan->params.params, plan->params.bound_to};
    }
    if (plan->effect.kind == PAY_JOB_CONFIRM && plan->redirect.found) {
        return (struct pay_sealed){plan->redirect.key_id, plan->redirect.data,
                                   plan->redirect.bound_to};
    }
    return (struct pay_sealed){.ciphertext = {NULL, 0}};
}

/* The capture or refund that a job is about; NULL: the attempt itself. */
static const struct pay_money_action *action_of(const struct pay_snapshot *snapshot,
                                                const struct pay_job_effect *effect)
{
    switch (effect->kind) {
    case PAY_JOB_CAPTURE:
    case PAY_JOB_QUERY_CAPTURE:
        return &snapshot->captures[effect->action_index];
    case PAY_JOB_REFUND:
    case PAY_JOB_QUERY_REFUND:
        return &snapshot->refunds[effect->action_index];
    default:
        return NULL;
    }
}

/* It bears its own number, amount and name at the PSP. */
static void set_action(struct pay_psp_job *job, const struct pay_money_action *action)
{
    job->action_id = pay_str_of(action->action_id);
    job->request_no = pay_str_of(action->action_id);
    job->amount_minor = action->amount.amount_minor;
    job->is_final = job->kind == PAY_JOB_CAPTURE && action->is_final;
}

static void make_job(const struct pay_unit *unit, const struct pay_job_plan *plan,
                     struct pay_reference references[PAY_JOB_REFERENCES_MAX],
                     struct pay_psp_job *job)
{
    const struct pay_snapshot *snapshot = &unit->snapshot;
    const struct pay_job_effect *effect = &plan->effect;
    const struct pay_attempt *attempt = &snapshot->attempts[effect->attempt_index];
    size_t count = bound_references(snapshot, effect->attempt_index, references);
    struct pay_str own_trace = plan->item->input.traceparent;
    *job = (struct pay_psp_job){
        .job_id = pay_str_of(effect->job_id),
        .kind = effect->kind,
        .payment_id = pay_str_of(snapshot->order.payment_id),
        .merchant_id = pay_str_of(snapshot->order.merchant_id),
        .attempt_id = pay_str_of(attempt->attempt_id),
        .request_no = pay_str_of(attempt->attempt_id),
        .psp = pay_str_of(attempt->psp),
        .psp_account = pay_str_of(attempt->psp_account),
        .method = pay_str_of(attempt->method),
        .provider_reference = main_reference(references, count),
        .references = references,
        .reference_count = count,
        .amount_minor = moves_money(effect->kind) ? attempt->amount.amount_minor : 0,
        .attempt_amount_minor = attempt->amount.amount_minor,
        .capture_mode = snapshot->order.capture_mode,
        .params = sealed_of(plan),
        .description = unit->detail.description,
        .reason_code = pay_str_of(effect->reason_code),
        .expires_at_us = effect->expires_at_us,
        .not_after_us = effect->not_after_us,
        .try_no = effect->try_no,
        .traceparent = own_trace.ptr != NULL ? own_trace : unit->detail.traceparent,
    };
    const struct pay_money_action *action = action_of(snapshot, effect);
    if (action != NULL) {
        set_action(job, action);
    }
    if (effect->about_job_id[0] != '\0') {
        job->about_job_id = pay_str_of(effect->about_job_id);
    }
    (void)pay_str_copy(job->currency, sizeof(job->currency), pay_str_of(attempt->amount.currency));
}

static enum pay_status encode(struct pay_try *turn, struct pay_unit *unit,
                              struct pay_job_plan *plan, struct pay_err *err)
{
    struct pay_psp_job job;
    struct pay_reference references[PAY_JOB_REFERENCES_MAX];
    struct pay_worker *worker = turn->worker;
    make_job(unit, plan, references, &job);
    pay_buf_reset(&worker->bytes);
    enum pay_status status = pay_psp_job_encode(worker->codec, &job, &worker->bytes, err);
    if (status != PAY_OK) {
        return status;
    }
    /* What ingest passes the gate with: another job under this number never gets through. */
    pay_sha256(pay_buf_bytes(&worker->bytes), plan->digest);
    if (plan->row == NULL) {
        return PAY_OK;
    }
    plan->row->payload = pay_arena_bytes(worker->scratch, pay_buf_bytes(&worker->bytes));
    bool fits = plan->row->payload.ptr != NULL;
    if (fits && job.traceparent.ptr != NULL) {
        fits =
            pay_outbox_header(worker->scratch, plan->row, PAY_HEADER_TRACEPARENT, job.traceparent);
    }
    return fits ? PAY_OK
                : pay_err_set(err, PAY_RETRY, PAY_CODEC_NO_MEMORY, "jobs", "the arena is full");
}

struct asks {
    struct pay_list params, details, redirects;
};

static bool ask_plan(struct pay_arena *arena, struct pay_unit *unit, struct pay_job_plan *plan,
                     struct asks *asks)
{
    const struct pay_attempt *attempt = &unit->snapshot.attempts[plan->effect.attempt_index];
    if (plan->effect.kind == PAY_JOB_SUBMIT && !plan->params.found &&
        (size_t)attempt->route_no < unit->loaded_routes) {
        plan->params.payment_id = pay_str_of(unit->snapshot.order.payment_id);
        plan->params.route_no = attempt->route_no;
        return pay_list_add(arena, &asks->params, &plan->params);
    }
    if (plan->effect.kind == PAY_JOB_CONFIRM && !plan->redirect.found) {
        plan->redirect.attempt_id = pay_str_of(attempt->attempt_id);
        return pay_list_add(arena, &asks->redirects, &plan->redirect);
    }
    return true;
}

static bool ask_unit(struct pay_arena *arena, struct pay_unit *unit, struct asks *asks)
{
    bool fits = true;
    if (unit->jobs.count > 0 && unit->loaded) {
        unit->detail.payment_id = pay_str_of(unit->snapshot.order.payment_id);
        fits = pay_list_add(arena, &asks->details, &unit->detail);
    }
    for (size_t i = 0; i < unit->jobs.count && fits; i++) {
        fits = ask_plan(arena, unit, unit->jobs.items[i], asks);
    }
    return fits;
}

static enum pay_status load(struct pay_try *turn, struct pay_list *units, struct pay_err *err)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct asks asks = {.params = {NULL, 0, 0}};
    bool fits = true;
    for (size_t i = 0; i < units->count && fits; i++) {
        fits = ask_unit(arena, units->items[i], &asks);
    }
    if (!fits) {
        return pay_err_set(err, PAY_RETRY, PAY_CODEC_NO_MEMORY, "jobs", "the arena is full");
    }
    if (asks.params.count + asks.details.count + asks.redirects.count == 0) {
        return PAY_OK;
    }
    struct pay_store_job_load wanted = {
        .params = (struct pay_store_params_ask *const *)asks.params.items,
        .params_count = asks.params.count,
        .details = (struct pay_store_order_detail *const *)asks.details.items,
        .detail_count = asks.details.count,
        .redirects = (struct pay_store_redirect_ask *const *)asks.redirects.items,
        .redirect_count = asks.redirects.count,
    };
    return pay_store_job_load(turn->worker->store, arena, &wanted, err);
}

enum pay_status pay_jobs_make(struct pay_try *turn, struct pay_list *units, struct pay_err *err)
{
    enum pay_status status = load(turn, units, err);
    for (size_t u = 0; u < units->count && status == PAY_OK; u++) {
        struct pay_unit *unit = units->items[u];
        for (size_t i = 0; i < unit->jobs.count && status == PAY_OK; i++) {
            status = encode(turn, unit, unit->jobs.items[i], err);
        }
    }
    return status;
}
