/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ingest/psp_worker.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/contracts/command_record.h"
#include "common/contracts/dead_letter.h"
#include "common/contracts/release.h"
#include "common/store/schema.h"

#include "common/base/banned.h"

#define ARENA_BYTES_MAX ((size_t)16 * 1024 * 1024)
#define RETRY_PAUSE_MS 1000
#define STATEMENT_PAUSE_MS 100
#define OUTCOME_BYTES_MAX ((size_t)1536 * 1024)

void pay_psp_job_count(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                       const char *outcome)
{
    pay_metric_add(worker->ingest->metrics[PAY_IM_JOBS],
                   (const char *const[]){work->job.psp_account.ptr,
                                         pay_job_kind_name(work->job.kind), outcome},
                   1);
}

enum pay_status pay_psp_store(struct pay_psp_worker *worker, struct pay_err *err)
{
    struct pay_pg_backoff backoff = {.tries = 0};
    while (!pay_store_usable(worker->store)) {
        if (pay_store_connect(worker->store, err) == PAY_OK &&
            pay_store_schema_check(pay_store_pg(worker->store), PAY_STORE_SCHEMA_TABLES, err) ==
                PAY_OK) {
            break;
        }
        pay_pg_disconnect(pay_store_pg(worker->store)); /* Half of it is no connection. */
        if (backoff.tries == 0) {
            pay_log(PAY_LOG_WARN, "database_away", PAY_F_ERR(err));
        }
        if (pay_service_wait(worker->ingest->svc, (unsigned)pay_pg_backoff_next_ms(&backoff))) {
            return PAY_FATAL; /* Ending: callers that repeat on PAY_RETRY must stop. */
        }
    }
    return PAY_OK;
}

bool pay_psp_pause(struct pay_psp_worker *worker)
{
    return !pay_service_wait(worker->ingest->svc, STATEMENT_PAUSE_MS);
}

/* ---- parameters ---- */

static bool bound_to_job(const struct pay_psp_job *job)
{
    static const char *const kinds[] = {"params/", "redirect/"};
    const struct pay_str bound = job->params.bound_to;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const size_t len = strlen(kinds[i]);
        if (pay_str_starts(bound, kinds[i]) && bound.len > len + job->payment_id.len &&
            memcmp(bound.ptr + len, job->payment_id.ptr, job->payment_id.len) == 0 &&
            bound.ptr[len + job->payment_id.len] == '/') {
            return true;
        }
    }
    return false;
}

static enum pay_status take_params(struct pay_psp_worker *worker, struct pay_psp_work *work,
                                   const struct pay_command_secrets *secrets, struct pay_err *err)
{
    struct pay_psp_request_job *job = &work->request_job;
    job->redirect_data = secrets->redirect_data;
    if (secrets->param_count == 0) {
        return PAY_OK;
    }
    const struct pay_submit_params *params = &secrets->params[0];
    struct pay_psp_param *extra =
        pay_arena_array(worker->arena, params->extra_count + 1, sizeof *extra);
    if (extra == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "params", "arena full");
    }
    for (size_t i = 0; i < params->extra_count; i++) {
        extra[i] = (struct pay_psp_param){params->extra[i].name, params->extra[i].value};
    }
    job->instrument = params->instrument;
    job->payer_id = params->payer_id;
    job->payer_ip = params->payer_ip;
    job->return_url = params->return_url;
    job->extra = extra;
    job->extra_count = params->extra_count;
    return PAY_OK;
}

enum pay_status pay_psp_open_params(struct pay_psp_worker *worker, struct pay_psp_work *work,
                                    struct pay_err *err)
{
    if (work->job.params.ciphertext.ptr == NULL) {
        return PAY_OK;
    }
    if (!bound_to_job(&work->job)) {
        return pay_err_set(err, PAY_REJECT, 0, "params", "sealed for another payment");
    }
    struct pay_bytes plain = {NULL, 0};
    struct pay_command_secrets secrets;
    enum pay_status status =
        pay_keys_open_sealed(worker->ingest->keys, &work->job.params, worker->arena, &plain, err);
    if (status == PAY_OK) {
        status = pay_command_secrets_decode(worker->codec, plain, worker->arena, &secrets, err);
    }
    return status == PAY_OK ? take_params(worker, work, &secrets, err) : status;
}

/* ---- sending ---- */

static size_t copy_headers(const struct pay_psp_request *request,
                           const struct pay_psp_header *credentials,
                           struct pay_http_call_header *headers)
{
    size_t count = 0;
    for (size_t i = 0; i < request->header_count; i++) {
        headers[count++] =
            (struct pay_http_call_header){request->headers[i].name, request->headers[i].value};
    }
    headers[count++] = (struct pay_http_call_header){credentials->name, credentials->value};
    return count;
}

static void not_sent(struct pay_psp_call *call, const struct pay_err *err)
{
    call->result = (struct pay_http_result){.delivery = PAY_HTTP_NOT_SENT};
    (void)pay_str_copy(call->result.text, sizeof call->result.text, pay_str_of(err->text));
}

/* On the monotonic clock, by which a process that was frozen sees how long. 0: no limit. Whoever
 * comes by a gate, a replay too, has just been told the database's time. Queries and cancels need
 * not have been, and do no harm late: by an old word of that time they are rather sent. */
static int64_t not_after_mono(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                              const struct pay_psp_call *call)
{
    const bool by_gate = work->task->is_money || call->not_after_us != 0;
    if (!by_gate && !pay_psp_clock_known(pay_psp_queue_clock(worker->queue))) {
        return 0;
    }
    const bool earlier = call->not_after_us != 0 && call->not_after_us < work->job.not_after_us;
    const int64_t not_after_us = earlier ? call->not_after_us : work->job.not_after_us;
    const int64_t left_us =
        not_after_us - pay_psp_clock_latest_us(pay_psp_queue_clock(worker->queue));
    const int64_t mono_us = pay_clock_mono_us() + left_us;
    return mono_us > 0 ? mono_us : 1;
}

static void note(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                 const struct pay_psp_call *call, int64_t not_after_mono)
{
    const bool answered = call->result.delivery == PAY_HTTP_ANSWERED && call->result.status < 500;
    const bool too_late = call->result.delivery == PAY_HTTP_NOT_SENT && not_after_mono != 0 &&
                          pay_clock_mono_us() >= not_after_mono; /* Nobody's illness. */
    if (!too_late) {
        pay_psp_queue_note(worker->queue, work->task, answered);
    }
    pay_metric_observe(
        worker->ingest->metrics[PAY_IM_CALL_SECONDS],
        (const char *const[]){work->job.psp_account.ptr, pay_job_kind_name(work->job.kind)},
        call->result.elapsed_us);
    const bool is_answer = call->result.delivery == PAY_HTTP_ANSWERED;
    pay_log(PAY_LOG_INFO, "psp_called", PAY_F_STR("payment_id", work->job.payment_id.ptr),
            PAY_F_STR("job_id", work->job.job_id.ptr), PAY_F_INT("send_no", call->send_no),
            PAY_F_STR("query_by", pay_query_by_name(call->query_by)),
            PAY_F_STR("delivery", pay_http_delivery_name(call->result.delivery)),
            PAY_F_INT("http_status", call->result.status),
            PAY_F_INT("elapsed_ms", call->result.elapsed_us / 1000),
            PAY_F_STR("why", is_answer ? NULL : call->result.text));
}

void pay_psp_send(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                  const struct pay_psp_request *request, enum pay_http_kind kind,
                  struct pay_psp_call *call)
{
    struct pay_err err = {.status = PAY_OK};
    struct pay_psp_header credentials = {.name = {NULL, 0}};
    struct pay_http_call_header headers[PAY_PSP_REQUEST_HEADERS_MAX + 1];
    if (work->account->adapter->authorize(&work->account->psp, request, worker->arena, &credentials,
                                          &err) != PAY_OK) {
        not_sent(call, &err);
        return;
    }
    const struct pay_http_call http = {
        .kind = kind,
        .method = request->method,
        .url = request->url.ptr,
        .headers = headers,
        .header_count = copy_headers(request, &credentials, headers),
        .body = request->body,
        .connect_timeout_ms = work->account->connect_timeout_ms,
        .total_timeout_ms = work->account->total_timeout_ms,
        .not_after_mono_us = not_after_mono(worker, work, call),
    };
    call->asked_at_us = pay_psp_clock_earliest_us(pay_psp_queue_clock(worker->queue));
    pay_http_client_call(worker->http, &http, &call->result);
    if (call->result.delivery == PAY_HTTP_NOT_SENT) {
        call->asked_at_us = 0;
    }
    note(worker, work, call, http.not_after_mono_us);
}

/* ---- one task ---- */

/* n of "<action id>.<KIND>.<n>"; 1 where there is none. */
static int number_of(const struct pay_psp_job *job)
{
    const char *dot = strrchr(job->job_id.ptr, '.');
    int64_t n = 1;
    if (dot == NULL || !pay_str_to_i64(pay_str_of(dot + 1), &n) || n < 1 || n > 1000000) {
        return 1;
    }
    return (int)n;
}

static void set_request_job(struct pay_psp_work *work)
{
    const struct pay_psp_job *job = &work->job;
    work->request_job = (struct pay_psp_request_job){
        .kind = job->kind,
        .job_id = job->job_id,
        .payment_id = job->payment_id,
        .attempt_id = job->attempt_id,
        .action_id = job->action_id,
        .request_no = job->request_no,
        .number = number_of(job),
        .method = job->method,
        .provider_reference = job->provider_reference,
        .references = job->references,
        .reference_count = job->reference_count,
        .amount_minor = job->amount_minor,
        .attempt_amount_minor = job->attempt_amount_minor,
        .currency = pay_str_of(job->currency),
        .capture_mode = job->capture_mode,
        .is_final = job->is_final,
        .notify_url = job->notify_url,
        .description = job->description,
        .reason_code = job->reason_code,
        .expires_at_us = job->expires_at_us,
    };
}

static enum pay_status run_work(struct pay_psp_worker *worker, struct pay_psp_work *work,
                                struct pay_err *err)
{
    set_request_job(work);
    if (work->account == NULL || strcmp(work->account->adapter->name, work->job.psp.ptr) != 0) {
        /* Money: its gate stays unsent and its deadline closes it. The operator sees the count. */
        pay_psp_job_count(worker, work, "unknown_account");
        work->refused_as = PAY_DEAD_UNKNOWN_ACCOUNT;
        return pay_err_set(err, PAY_REJECT, 0, "account", "'%s' is not in the accounts file",
                           work->job.psp_account.ptr);
    }
    return work->task->is_money ? pay_psp_money(worker, work, err) : pay_psp_ask(worker, work, err);
}

static enum pay_status decode_and_run(struct pay_psp_worker *worker, struct pay_psp_work *work,
                                      struct pay_err *err)
{
    const struct pay_accounts *accounts = pay_accounts_acquire(worker->ingest->accounts);
    enum pay_status status =
        pay_psp_job_decode(worker->codec, work->task->value, worker->arena, &work->job, err);
    if (status == PAY_OK) {
        work->account = pay_accounts_account(accounts, work->job.psp_account);
        status = run_work(worker, work, err);
    }
    pay_accounts_release(accounts);
    return status;
}

/* The job as it came, to the dead letters. @return PAY_RETRY: the process ends. */
static enum pay_status refuse(struct pay_psp_worker *worker, const struct pay_psp_task *task,
                              enum pay_dead_reason reason, const struct pay_err *why)
{
    struct pay_desk desk = {
        .ingest = worker->ingest, .codec = worker->codec, .arena = worker->arena};
    const struct pay_dead_source from = {
        .topic = worker->ingest->topics[PAY_TOPIC_PSP_JOBS],
        .partition = task->place.partition,
        .offset = task->place.offset,
        .key = task->key,
        .value = task->value,
        .headers = task->headers,
        .header_count = task->header_count,
    };
    pay_log(PAY_LOG_ERROR, "job_refused", PAY_F_STR("job_id", task->job_id), PAY_F_ERR(why));
    (void)pay_outlet_wait_done(&worker->wait, NULL); /* What the job has produced before. */
    return pay_dead_keep(&desk, &from, reason, why->text, &worker->wait, NULL);
}

/* @return true: the offset may be committed. */
static bool run_task(struct pay_psp_worker *worker, const struct pay_psp_task *task)
{
    struct pay_err err = {.status = PAY_OK};
    pay_arena_reset(worker->arena);
    struct pay_psp_work *work = pay_arena_alloc(worker->arena, sizeof *work);
    if (work == NULL) {
        return false;
    }
    work->task = task;
    work->refused_as = PAY_DEAD_OTHER;
    enum pay_status status = decode_and_run(worker, work, &err);
    if (status == PAY_REJECT) {
        status = refuse(worker, task, work->refused_as, &err);
    }
    (void)pay_outlet_wait_done(&worker->wait, NULL);
    if (status != PAY_OK && pay_service_mode(worker->ingest->svc) == PAY_SERVICE_RUNNING) {
        pay_log(PAY_LOG_ERROR, "job_failed", PAY_F_STR("job_id", task->job_id), PAY_F_ERR(&err));
        pay_metric_add(worker->ingest->metrics[PAY_IM_ERRORS], (const char *const[]){"job"}, 1);
    }
    return status == PAY_OK;
}

/* A job that failed here is tried again here: nobody else gets it while this process has its
 * partition. The gate sees to it that nothing is sent twice. */
static void *run(void *arg)
{
    struct pay_psp_worker *worker = arg;
    struct pay_psp_task *task = NULL;
    while ((task = pay_psp_queue_take(worker->queue)) != NULL) {
        bool finished = run_task(worker, task);
        while (!finished && !pay_service_wait(worker->ingest->svc, RETRY_PAUSE_MS)) {
            finished = run_task(worker, task);
        }
        pay_psp_queue_done(worker->queue, task, !finished);
    }
    return NULL;
}

static enum pay_status make_parts(struct pay_psp_worker *worker, struct pay_http_shared *shared,
                                  struct pay_err *err)
{
    const struct pay_common_config *common = &worker->ingest->cfg->common;
    const struct pay_pg_options pg = {
        .conninfo = common->pg_conninfo,
        .password_file = common->pg_password_file,
        .application_name = "payfact-ingest-psp",
    };
    const char *ca_file = worker->ingest->cfg->ca_file;
    const struct pay_http_client_options http = {
        .ca_file = ca_file[0] == '\0' ? NULL : ca_file,
        .allow_plain_loopback = true, /* accounts.h allows http:// only for test accounts. */
        .shared = shared,
    };
    enum pay_status status = pay_store_new(&pg, &worker->store, err);
    if (status == PAY_OK) {
        status = pay_http_client_new(&http, &worker->http, err);
    }
    if (status == PAY_OK) {
        status =
            pay_codec_new_writing(worker->ingest->cfg->common.schema_write, &worker->codec, err);
    }
    worker->arena = pay_arena_new(ARENA_BYTES_MAX);
    if (status == PAY_OK && worker->arena == NULL) {
        status = pay_err_set(err, PAY_FATAL, 0, "worker", "out of memory");
    }
    return status;
}

enum pay_status pay_psp_worker_start(struct pay_psp_worker *worker, struct pay_ingest *ingest,
                                     struct pay_psp_queue *queue, struct pay_http_shared *shared,
                                     struct pay_err *err)
{
    *worker = (struct pay_psp_worker){.ingest = ingest, .queue = queue};
    worker->value = pay_buf_make(PAY_PAYMENT_INPUT_BYTES_MAX);
    worker->outcome = pay_buf_make(OUTCOME_BYTES_MAX);
    pay_outlet_wait_init(&worker->wait);
    const enum pay_status status = make_parts(worker, shared, err);
    if (status != PAY_OK) {
        return status;
    }
    if (pthread_create(&worker->thread, NULL, run, worker) != 0) {
        return pay_err_set(err, PAY_FATAL, 0, "worker", "no thread");
    }
    worker->started = true;
    return PAY_OK;
}

void pay_psp_worker_stop(struct pay_psp_worker *worker)
{
    if (worker->ingest == NULL) {
        return;
    }
    if (worker->started) {
        (void)pthread_join(worker->thread, NULL);
    }
    worker->http = pay_http_client_free(worker->http);
    worker->store = pay_store_free(worker->store);
    worker->codec = pay_codec_free(worker->codec);
    worker->arena = pay_arena_free(worker->arena);
    pay_buf_free(&worker->value);
    pay_buf_free(&worker->outcome);
    pay_outlet_wait_free(&worker->wait);
}
