/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries and cancels: nothing here can move money twice. A query by idempotent replay repeats the
 * stored first request unchanged, through the same gate row.
 */
#include "services/ingest/psp_worker.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/contracts/dead_letter.h"
#include "common/psp/request.h"

#include "common/base/banned.h"

/* A query's own send: not of the gate. */
#define FIRST_SEND 1

static enum pay_status read_about(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                                  struct pay_store_gate_state *state, struct pay_err *err)
{
    *state = (struct pay_store_gate_state){.found = false};
    if (work->job.about_job_id.ptr == NULL) {
        return PAY_OK;
    }
    enum pay_status status = pay_psp_store(worker, err);
    const struct pay_bytes any = {NULL, 0}; /* Which bytes the job had does not matter here. */
    const int64_t began_us = pay_clock_mono_us();
    if (status == PAY_OK) {
        status = pay_store_gate_read(worker->store, work->job.about_job_id, any, worker->arena,
                                     state, err);
    }
    if (status == PAY_OK && state->found) {
        pay_psp_clock_learn(pay_psp_queue_clock(worker->queue), state->now_us, began_us);
    }
    return status;
}

static enum pay_status conclude(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                                const struct pay_psp_request_job *as, struct pay_psp_call *call,
                                struct pay_err *err)
{
    pay_psp_job_count(worker, work, pay_http_delivery_name(call->result.delivery));
    pay_psp_outcome_reset(worker);
    const enum pay_status status = pay_psp_outcome_read(worker, work, as, call, err);
    return status == PAY_OK
               ? pay_psp_outcome_produce(worker, work, pay_psp_outcome_bytes(worker), err)
               : status;
}

static enum pay_status ask_by(struct pay_psp_worker *worker, struct pay_psp_work *work,
                              enum pay_query_by query_by, struct pay_err *err)
{
    struct pay_psp_request request = {.method = NULL};
    enum pay_status status = work->account->adapter->build(&work->account->psp, &work->request_job,
                                                           query_by, worker->arena, &request, err);
    if (status != PAY_OK) {
        return status;
    }
    const bool cancel = work->job.kind == PAY_JOB_CANCEL;
    struct pay_psp_call call = {.send_no = FIRST_SEND,
                                .query_by = cancel ? PAY_QUERY_BY_NONE : query_by};
    pay_psp_send(worker, work, &request, cancel ? PAY_HTTP_MONEY : PAY_HTTP_QUERY, &call);
    status = conclude(worker, work, &work->request_job, &call, err);
    pay_http_result_free(&call.result);
    return status;
}

/* The stored request as the money job that it was: its answer is the first one's. */
static struct pay_psp_request_job money_view(const struct pay_psp_work *work)
{
    struct pay_psp_request_job view = work->request_job;
    view.job_id = work->job.about_job_id;
    view.kind = PAY_JOB_SUBMIT;
    if (work->job.kind == PAY_JOB_QUERY_CAPTURE) {
        view.kind = PAY_JOB_CAPTURE;
    } else if (work->job.kind == PAY_JOB_QUERY_REFUND) {
        view.kind = PAY_JOB_REFUND;
    } else if (strstr(work->job.about_job_id.ptr, ".CONFIRM") != NULL) {
        view.kind = PAY_JOB_CONFIRM;
    }
    return view;
}

static enum pay_status open_request(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                                    const struct pay_store_gate_state *state,
                                    struct pay_psp_request *ret_request, struct pay_err *err)
{
    struct pay_bytes stored = {NULL, 0};
    const struct pay_sealed sealed = {
        state->request_key_id, state->request,
        pay_arena_printf(worker->arena, "request/%s", work->job.about_job_id.ptr)};
    if (!pay_str_eq_c(state->endpoint, work->account->psp.endpoint)) {
        return pay_err_set(err, PAY_REJECT, 0, "replay", "the account's endpoint has changed");
    }
    const enum pay_status status =
        pay_keys_open_sealed(worker->ingest->keys, &sealed, worker->arena, &stored, err);
    return status == PAY_OK ? pay_psp_request_read(stored, worker->arena, ret_request, err)
                            : status;
}

/* @return PAY_OK with *ret_done false: not allowed, ask in another way. */
static enum pay_status replay(struct pay_psp_worker *worker, struct pay_psp_work *work,
                              const struct pay_store_gate_state *state, bool *ret_done,
                              struct pay_err *err)
{
    struct pay_psp_request request = {.method = NULL};
    struct pay_psp_call call = {.query_by = PAY_QUERY_BY_IDEMPOTENT_REPLAY};
    struct pay_store_gate_send send = {.send_no = 0};
    *ret_done = false;
    if (open_request(worker, work, state, &request, err) != PAY_OK) {
        pay_log(PAY_LOG_WARN, "replay_impossible", PAY_F_STR("job_id", work->job.job_id.ptr),
                PAY_F_ERR(err));
        return PAY_OK;
    }
    const int64_t began_us = pay_clock_mono_us();
    const int64_t call_us = work->account->traits.call_budget_us;
    enum pay_status status =
        pay_store_gate_replay(worker->store, work->job.about_job_id, call_us, &send, err);
    if (status != PAY_OK || send.send_no == 0) {
        return status == PAY_UNKNOWN ? PAY_RETRY : status; /* Counted as a send; asked again. */
    }
    *ret_done = true;
    pay_psp_clock_learn(pay_psp_queue_clock(worker->queue), send.now_us, began_us);
    /* A frozen replay must not leave after a not-found was believed: that waits for the last pass
     * of the gate and a call's budget. */
    call.not_after_us = send.now_us + call_us;
    call.send_no = send.send_no;
    pay_psp_send(worker, work, &request, PAY_HTTP_MONEY, &call);
    const struct pay_psp_request_job view = money_view(work);
    const bool lost = call.result.delivery != PAY_HTTP_ANSWERED;
    if (lost) { /* A query that failed, not a money call that did: nothing new is unknown. */
        call.send_no = FIRST_SEND;
    }
    status = conclude(worker, work, lost ? &work->request_job : &view, &call, err);
    pay_http_result_free(&call.result);
    return status;
}

/* Whoever does not know the database's time asks too late rather than never. */
static bool is_late(struct pay_psp_worker *worker, const struct pay_psp_work *work)
{
    struct pay_psp_clock *clock = pay_psp_queue_clock(worker->queue);
    return pay_psp_clock_known(clock) && work->job.not_after_us < pay_psp_clock_latest_us(clock);
}

static enum pay_status drop(struct pay_psp_worker *worker, const struct pay_psp_work *work)
{
    pay_psp_job_count(worker, work, "dropped");
    return PAY_OK;
}

static enum pay_status ask(struct pay_psp_worker *worker, struct pay_psp_work *work,
                           struct pay_err *err)
{
    struct pay_store_gate_state state;
    enum pay_status status = read_about(worker, work, &state, err);
    if (status != PAY_OK) {
        return status;
    }
    if (is_late(worker, work)) {
        return drop(worker, work);
    }
    work->request_job.may_replay = state.found && state.may_replay;
    enum pay_query_by how = work->account->adapter->choose_query(&work->request_job);
    bool done = false;
    if (how == PAY_QUERY_BY_IDEMPOTENT_REPLAY) {
        status = replay(worker, work, &state, &done, err);
        work->request_job.may_replay = false;
        how = work->account->adapter->choose_query(&work->request_job);
    }
    if (status != PAY_OK || done) {
        return status;
    }
    if (how == PAY_QUERY_BY_NONE) {
        pay_psp_job_count(worker, work, "nothing_to_ask");
        return PAY_OK;
    }
    return ask_by(worker, work, how, err);
}

/* What could not be asked is asked again by recovery: a query is never worth holding a partition.
 */
enum pay_status pay_psp_ask(struct pay_psp_worker *worker, struct pay_psp_work *work,
                            struct pay_err *err)
{
    if (work->task->shed || is_late(worker, work)) {
        return drop(worker, work);
    }
    enum pay_status status = work->job.kind == PAY_JOB_CANCEL
                                 ? ask_by(worker, work, PAY_QUERY_BY_NONE, err)
                                 : ask(worker, work, err);
    if (status != PAY_OK && pay_service_mode(worker->ingest->svc) == PAY_SERVICE_RUNNING) {
        pay_log(PAY_LOG_WARN, "query_failed", PAY_F_STR("job_id", work->job.job_id.ptr),
                PAY_F_ERR(err));
        pay_psp_job_count(worker, work, "failed");
        status = PAY_OK;
    }
    return status;
}
