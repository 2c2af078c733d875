/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Money calls: at most one send per pass of the gate, ever (data model, "The gate of money
 * actions").
 *
 *   seal the request -> pass, which keeps it -> send -> certainly not sent: free the gate, try
 * again within the budget
 *                                                    -> anything else: read, store the outcome,
 * produce it
 *   not passed -> by what is stored: finished, sending, closed or late, missing
 */
#include "services/ingest/psp_worker.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/ulid.h"
#include "common/contracts/dead_letter.h"
#include "common/crypto/sha256.h"
#include "common/psp/request.h"
#include "common/service/backoff.h"

#include "common/base/banned.h"

#define REQUEST_BYTES_MAX ((size_t)128 * 1024)
#define TOKEN_SIZE 320

/* How a try of the gate ended. */
enum gate_answer { GATE_PASSED, GATE_REFUSED, GATE_NOT_OURS, GATE_AWAY };

/* Unique per try, so that a row that names it was passed by this try and no other. */
struct gate_try {
    char token[TOKEN_SIZE];
    uint8_t digest[PAY_SHA256_BYTES];
    struct pay_store_gate_request request; /* What the pass keeps; bytes in the worker's arena. */
    int send_no;
    int tries; /* Tries of this job that certainly did not leave. */
};

static struct pay_bytes digest_of(const struct gate_try *gate)
{
    return (struct pay_bytes){gate->digest, sizeof gate->digest};
}

static void count_gate(struct pay_psp_worker *worker, const char *answer)
{
    pay_metric_add(worker->ingest->metrics[PAY_IM_GATE], (const char *const[]){answer}, 1);
}

static enum pay_status new_token(const struct pay_psp_worker *worker, struct gate_try *gate,
                                 struct pay_err *err)
{
    char nonce[PAY_ULID_LEN + 1];
    pay_ulid_new(nonce);
    struct pay_buf text = pay_buf_make(TOKEN_SIZE - 1);
    pay_buf_printf(&text, "%.200s/%s", worker->ingest->cfg->common.instance_id, nonce);
    const bool fits = pay_str_copy(gate->token, sizeof gate->token, pay_buf_str(&text));
    pay_buf_free(&text);
    return fits ? PAY_OK : pay_err_set(err, PAY_RETRY, 0, "gate", "out of memory");
}

static enum pay_status read_gate(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                                 const struct gate_try *gate, struct pay_store_gate_state *state,
                                 struct pay_err *err)
{
    enum pay_status status = PAY_RETRY;
    while (status == PAY_RETRY || status == PAY_UNKNOWN) {
        status = pay_psp_store(worker, err);
        if (status != PAY_OK) {
            return status;
        }
        const int64_t began_us = pay_clock_mono_us();
        status = pay_store_gate_read(worker->store, work->job.job_id, digest_of(gate),
                                     worker->arena, state, err);
        if (status == PAY_OK && state->found) {
            pay_psp_clock_learn(pay_psp_queue_clock(worker->queue), state->now_us, began_us);
        }
        if (status != PAY_OK && !pay_psp_pause(worker)) {
            return PAY_FATAL; /* The process ends. */
        }
    }
    return status;
}

/* An answer that was lost is read back: the token says whether the pass was ours. */
static enum gate_answer read_back(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                                  struct gate_try *gate, struct pay_err *err)
{
    struct pay_store_gate_state state = {.found = false};
    if (read_gate(worker, work, gate, &state, err) != PAY_OK) {
        return GATE_AWAY;
    }
    if (state.found && state.sending && pay_str_eq_c(state.sent_by, gate->token)) {
        gate->send_no = state.sends;
        return GATE_PASSED;
    }
    return GATE_NOT_OURS;
}

static enum gate_answer pass(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                             struct gate_try *gate, struct pay_err *err)
{
    enum gate_answer answer = GATE_NOT_OURS;
    while (answer == GATE_NOT_OURS) {
        if (new_token(worker, gate, err) != PAY_OK || pay_psp_store(worker, err) != PAY_OK) {
            return GATE_AWAY;
        }
        gate->send_no = 0;
        gate->request.me = pay_str_of(gate->token);
        struct pay_store_gate_send send = {.send_no = 0};
        const int64_t began_us = pay_clock_mono_us();
        const enum pay_status status = pay_store_gate_pass(
            worker->store, work->job.job_id, digest_of(gate), &gate->request, &send, err);
        if (status == PAY_OK && send.send_no > 0) {
            pay_psp_clock_learn(pay_psp_queue_clock(worker->queue), send.now_us, began_us);
            gate->send_no = send.send_no;
            return GATE_PASSED;
        }
        if (status == PAY_OK) {
            return GATE_REFUSED;
        }
        pay_log(PAY_LOG_WARN, "gate_answer_lost", PAY_F_STR("job_id", work->job.job_id.ptr),
                PAY_F_ERR(err));
        answer = pay_psp_pause(worker) ? read_back(worker, work, gate, err) : GATE_AWAY;
    }
    return answer;
}

/* For an idempotent replay; without credentials. A request that cannot be kept is still sent: only
 * the replay is lost, and a query by reference or search remains. */
static void seal_request(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                         const struct pay_psp_request *request, struct gate_try *gate)
{
    struct pay_err err = {.status = PAY_OK};
    struct pay_buf text = pay_buf_make(REQUEST_BYTES_MAX);
    struct pay_sealed sealed = {.ciphertext = {NULL, 0}};
    pay_psp_request_write(request, &text);
    const struct pay_str bound_to =
        pay_arena_printf(worker->arena, "request/%s", work->job.job_id.ptr);
    enum pay_status status = text.failed || bound_to.ptr == NULL ? PAY_RETRY : PAY_OK;
    if (status == PAY_OK) {
        status = pay_keys_seal(worker->ingest->keys, bound_to, pay_buf_bytes(&text), worker->arena,
                               &sealed, &err);
    }
    if (status != PAY_OK) {
        sealed.ciphertext = (struct pay_bytes){NULL, 0};
        pay_log(PAY_LOG_WARN, "request_not_kept", PAY_F_STR("job_id", work->job.job_id.ptr),
                PAY_F_STR("class", pay_status_name(status)));
    }
    gate->request = (struct pay_store_gate_request){
        .endpoint = pay_str_of(work->account->psp.endpoint),
        .sealed = sealed.ciphertext,
        .key_id = sealed.key_id,
        .replay_lifetime_us = work->account->adapter->replay_lifetime_us,
        .expires_at_us = work->job.expires_at_us,
    };
    pay_buf_free(&text);
}

/* ---- after the call ---- */

static void finish_gate(struct pay_psp_worker *worker, const struct pay_psp_work *work)
{
    struct pay_err err = {.status = PAY_OK};
    struct pay_sealed sealed;
    bool saved = false;
    const struct pay_str bound_to =
        pay_arena_printf(worker->arena, "outcome/%s", work->job.job_id.ptr);
    enum pay_status status = bound_to.ptr == NULL ? PAY_RETRY : PAY_OK;
    if (status == PAY_OK) {
        status = pay_keys_seal(worker->ingest->keys, bound_to, pay_psp_outcome_bytes(worker),
                               worker->arena, &sealed, &err);
    }
    /* Once more where the connection was lost meanwhile; the call has lasted long enough already.
     */
    for (int tries = 0; status == PAY_OK && !saved && tries < 2; tries++) {
        status = pay_store_usable(worker->store) ? PAY_OK : pay_store_connect(worker->store, &err);
        if (status == PAY_OK &&
            pay_store_gate_finish(worker->store, work->job.job_id, sealed.ciphertext, sealed.key_id,
                                  &saved, &err) == PAY_OK) {
            break;
        }
    }
    if (!saved) { /* It is produced all the same; a second delivery of the job will query. */
        pay_log(PAY_LOG_WARN, "outcome_not_kept", PAY_F_STR("job_id", work->job.job_id.ptr),
                PAY_F_STR("class", pay_status_name(status)));
    }
}

/* A definite no needs that nothing else of this job is on its way when the answer is read, and that
 * nothing follows: a replay of a request that was refused would be its first execution. */
static bool is_only_send(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                         const struct gate_try *gate)
{
    struct pay_err err = {.status = PAY_OK};
    bool only = false;
    const bool asked =
        (pay_store_usable(worker->store) || pay_store_connect(worker->store, &err) == PAY_OK) &&
        pay_store_gate_end_replay(worker->store, work->job.job_id, pay_str_of(gate->token),
                                  gate->send_no, &only, &err) == PAY_OK;
    if (!asked || !only) { /* What cannot be asked is no proof. */
        pay_log(PAY_LOG_WARN, "refusal_not_definite", PAY_F_STR("job_id", work->job.job_id.ptr),
                PAY_F_ERR(&err));
    }
    return asked && only;
}

static enum pay_status read_answer(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                                   const struct gate_try *gate, struct pay_psp_call *call,
                                   struct pay_err *err)
{
    pay_psp_outcome_reset(worker);
    enum pay_status status = pay_psp_outcome_read(worker, work, &work->request_job, call, err);
    if (status == PAY_OK && call->said_no && call->only_send && !is_only_send(worker, work, gate)) {
        call->only_send = false;
        pay_psp_outcome_reset(worker);
        status = pay_psp_outcome_read(worker, work, &work->request_job, call, err);
    }
    return status;
}

static enum pay_status conclude(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                                const struct gate_try *gate, struct pay_psp_call *call,
                                struct pay_err *err)
{
    enum pay_status status = read_answer(worker, work, gate, call, err);
    if (status != PAY_OK) { /* Too large to keep, or no memory: what is sure is that it was sent. */
        pay_log(PAY_LOG_ERROR, "answer_not_read", PAY_F_STR("job_id", work->job.job_id.ptr),
                PAY_F_ERR(err));
        pay_psp_outcome_reset(worker);
        status = pay_psp_outcome_local(worker, work, call->send_no, PAY_PSP_RESULT_UNKNOWN,
                                       PAY_FAILURE_NONE, err);
    }
    if (status != PAY_OK) {
        return status;
    }
    PAY_FAULT_OF("after_answer_before_finish", pay_job_kind_name(work->job.kind));
    finish_gate(worker, work);
    PAY_FAULT_OF("after_finish_before_produce", pay_job_kind_name(work->job.kind));
    return pay_psp_outcome_produce(worker, work, pay_psp_outcome_bytes(worker), err);
}

static enum pay_status give_up(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                               int send_no, enum pay_failure_class failure, struct pay_err *err)
{
    pay_psp_job_count(worker, work, "not_sent");
    pay_psp_outcome_reset(worker);
    const enum pay_status status =
        pay_psp_outcome_local(worker, work, send_no, PAY_PSP_RESULT_NOT_SENT, failure, err);
    return status == PAY_OK
               ? pay_psp_outcome_produce(worker, work, pay_psp_outcome_bytes(worker), err)
               : status;
}

/* The send certainly did not leave: the gate is given back so that it may be tried again. */
static enum pay_status free_gate(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                                 const struct gate_try *gate, struct pay_err *err)
{
    bool freed = false;
    enum pay_status status = PAY_RETRY;
    while (status == PAY_RETRY || status == PAY_UNKNOWN) { /* Freeing twice changes nothing. */
        status = pay_psp_store(worker, err);
        if (status == PAY_OK) {
            status = pay_store_gate_release(worker->store, work->job.job_id,
                                            pay_str_of(gate->token), gate->send_no, &freed, err);
        } else {
            return status;
        }
        if (status != PAY_OK && !pay_psp_pause(worker)) {
            return PAY_FATAL; /* The process ends. */
        }
    }
    return status;
}

static bool is_ending(const struct pay_psp_worker *worker)
{
    return pay_service_mode(worker->ingest->svc) != PAY_SERVICE_RUNNING;
}

static bool pause_before_retry(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                               struct gate_try *gate)
{
    const struct pay_ingest_settings *cfg = worker->ingest->cfg;
    const struct pay_backoff backoff = {cfg->retry_first_ms, cfg->retry_max_ms > cfg->retry_first_ms
                                                                 ? cfg->retry_max_ms
                                                                 : cfg->retry_first_ms};
    uint64_t random = 0;
    pay_mem_random(&random, sizeof random);
    const int64_t pause_ms = pay_backoff_ms(&backoff, (unsigned)gate->tries++, random);
    struct pay_psp_clock *clock = pay_psp_queue_clock(worker->queue);
    if (pay_psp_clock_latest_us(clock) + pause_ms * 1000 >= work->job.not_after_us ||
        !pay_psp_queue_may_retry(worker->queue, work->task)) {
        return false;
    }
    return !pay_service_wait(worker->ingest->svc, (unsigned)pause_ms);
}

/* SUBMITTED is on its way before the call; nobody waits for it: the answer is behind it. */
static enum pay_status announce(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                                const struct gate_try *gate, struct pay_err *err)
{
    struct pay_kafka_headers headers;
    pay_psp_outcome_reset(worker);
    enum pay_status status = pay_psp_outcome_local(worker, work, gate->send_no,
                                                   PAY_PSP_RESULT_SUBMITTED, PAY_FAILURE_NONE, err);
    const struct pay_bytes all = pay_psp_outcome_bytes(worker);
    if (status == PAY_OK && all.len > 4) {
        const struct pay_outlet_record record = {
            .topic = worker->ingest->topics[PAY_TOPIC_INPUTS],
            .key = work->job.payment_id,
            .value = {all.ptr + 4, all.len - 4},
            .headers = pay_ingest_headers(&headers, work->job.traceparent),
        };
        status = pay_outlet_wait_put(&worker->wait, worker->ingest->outlet, &record, err);
    }
    return status;
}

static void send_passed(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                        const struct pay_psp_request *request, const struct gate_try *gate,
                        struct pay_psp_call *call)
{
    struct pay_err err = {.status = PAY_OK};
    PAY_FAULT_OF("after_gate_before_send", pay_job_kind_name(work->job.kind));
    if (announce(worker, work, gate, &err) != PAY_OK) { /* The answer says it too. */
        pay_log(PAY_LOG_WARN, "submitted_not_produced", PAY_F_STR("job_id", work->job.job_id.ptr),
                PAY_F_ERR(&err));
    }
    call->send_no = gate->send_no;
    call->query_by = PAY_QUERY_BY_NONE;
    call->only_send = work->job.try_no <= 1 && gate->send_no == gate->tries + 1;
    pay_psp_send(worker, work, request, PAY_HTTP_MONEY, call);
    PAY_FAULT_OF("after_send_before_answer", pay_job_kind_name(work->job.kind));
}

/* @return PAY_OK with *ret_again: free and try again. */
static enum pay_status try_once(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                                const struct pay_psp_request *request, struct gate_try *gate,
                                bool *ret_again, struct pay_err *err)
{
    struct pay_psp_call call = {.send_no = 0};
    enum pay_status status = PAY_OK;
    *ret_again = false;
    send_passed(worker, work, request, gate, &call);
    if (call.result.delivery == PAY_HTTP_NOT_SENT) {
        pay_log(PAY_LOG_WARN, "call_not_sent", PAY_F_STR("job_id", work->job.job_id.ptr),
                PAY_F_STR("why", call.result.text));
        status = free_gate(worker, work, gate, err);
        *ret_again = status == PAY_OK && pause_before_retry(worker, work, gate);
        if (status == PAY_OK && !*ret_again) {
            status = is_ending(worker) /* The next process goes on with it. */
                         ? PAY_RETRY
                         : give_up(worker, work, gate->send_no, PAY_FAILURE_NOT_SENT, err);
        }
    } else {
        pay_psp_job_count(worker, work, pay_http_delivery_name(call.result.delivery));
        status = conclude(worker, work, gate, &call, err);
    }
    pay_http_result_free(&call.result);
    return status;
}

/* ---- the gate was not passed ---- */

static enum pay_status produce_stored(struct pay_psp_worker *worker,
                                      const struct pay_psp_work *work,
                                      const struct pay_store_gate_state *state, struct pay_err *err)
{
    struct pay_bytes outcome = {NULL, 0};
    const struct pay_sealed sealed = {
        state->outcome_key_id, state->outcome,
        pay_arena_printf(worker->arena, "outcome/%s", work->job.job_id.ptr)};
    const enum pay_status status =
        pay_keys_open_sealed(worker->ingest->keys, &sealed, worker->arena, &outcome, err);
    pay_psp_job_count(worker, work, "stored");
    return status == PAY_OK ? pay_psp_outcome_produce(worker, work, outcome, err) : status;
}

/* Somebody passed it and has not finished, or died: it may have been sent. */
static enum pay_status say_unknown(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                                   const struct pay_store_gate_state *state, struct pay_err *err)
{
    pay_psp_job_count(worker, work, "sending_elsewhere");
    pay_psp_outcome_reset(worker);
    enum pay_status status = pay_psp_outcome_local(worker, work, state->sends,
                                                   PAY_PSP_RESULT_SUBMITTED, PAY_FAILURE_NONE, err);
    if (status == PAY_OK) {
        status = pay_psp_outcome_local(worker, work, state->sends, PAY_PSP_RESULT_UNKNOWN,
                                       PAY_FAILURE_NONE, err);
    }
    return status == PAY_OK
               ? pay_psp_outcome_produce(worker, work, pay_psp_outcome_bytes(worker), err)
               : status;
}

/* Never send; then by what is stored, in this order. @param failure why it was not sent. */
static enum pay_status not_passed(struct pay_psp_worker *worker, struct pay_psp_work *work,
                                  const struct gate_try *gate, enum pay_failure_class failure,
                                  struct pay_err *err)
{
    struct pay_store_gate_state state = {.found = false};
    const enum pay_status status = read_gate(worker, work, gate, &state, err);
    if (status != PAY_OK) {
        return status;
    }
    if (!state.found || !state.same_digest) {
        count_gate(worker, "missing");
        work->refused_as = PAY_DEAD_GATE_MISSING;
        return pay_err_set(err, PAY_REJECT, 0, "gate",
                           state.found ? "another job has this id" : "no gate for this job");
    }
    count_gate(worker, state.finished  ? "finished"
                       : state.sending ? "sending"
                       : state.closed  ? "closed"
                       : state.late    ? "late"
                                       : "shed");
    if (state.finished) {
        return produce_stored(worker, work, &state, err);
    }
    if (state.sending) {
        return say_unknown(worker, work, &state, err);
    }
    return give_up(worker, work, state.sends, failure, err);
}

static enum pay_status build(struct pay_psp_worker *worker, struct pay_psp_work *work,
                             struct pay_psp_request *request, struct pay_err *err)
{
    const enum pay_status status = pay_psp_open_params(worker, work, err);
    return status == PAY_OK
               ? work->account->adapter->build(&work->account->psp, &work->request_job,
                                               PAY_QUERY_BY_NONE, worker->arena, request, err)
               : status;
}

enum pay_status pay_psp_money(struct pay_psp_worker *worker, struct pay_psp_work *work,
                              struct pay_err *err)
{
    struct gate_try gate = {.send_no = 0};
    struct pay_psp_request request = {.method = NULL};
    pay_sha256(work->task->value, gate.digest);
    if (work->task
            ->shed) { /* The gate stays as it is; where it is unsent the decision closes it. */
        return not_passed(worker, work, &gate, PAY_FAILURE_NOT_SENT, err);
    }
    enum pay_status status = build(worker, work, &request, err);
    if (status == PAY_REJECT) { /* Nothing can be sent for this job, now or later. */
        pay_log(PAY_LOG_ERROR, "job_not_buildable", PAY_F_STR("job_id", work->job.job_id.ptr),
                PAY_F_ERR(err));
        return not_passed(worker, work, &gate, PAY_FAILURE_INVALID_REQUEST, err);
    }
    bool again = status == PAY_OK;
    if (again) {
        seal_request(worker, work, &request, &gate);
    }
    while (again) {
        const enum gate_answer answer = pass(worker, work, &gate, err);
        again = false;
        if (answer == GATE_AWAY) {
            return PAY_RETRY;
        }
        if (answer == GATE_REFUSED) {
            return not_passed(worker, work, &gate, PAY_FAILURE_NOT_SENT, err);
        }
        count_gate(worker, "passed");
        status = try_once(worker, work, &request, &gate, &again, err);
    }
    return status;
}
