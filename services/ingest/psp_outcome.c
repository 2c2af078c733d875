/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs that a job leads to: collected, stored with the gate, produced. */
#include "services/ingest/psp_worker.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/ulid.h"

#include "common/base/banned.h"

#define LENGTH_BYTES 4
#define PRODUCE_PAUSE_MS 500

void pay_psp_outcome_reset(struct pay_psp_worker *worker)
{
    pay_buf_reset(&worker->outcome);
}

struct pay_bytes pay_psp_outcome_bytes(const struct pay_psp_worker *worker)
{
    return pay_buf_bytes(&worker->outcome);
}

static void add_value(struct pay_psp_worker *worker)
{
    const size_t len = worker->value.len;
    const uint8_t prefix[LENGTH_BYTES] = {(uint8_t)(len >> 24), (uint8_t)(len >> 16),
                                          (uint8_t)(len >> 8), (uint8_t)len};
    pay_buf_add(&worker->outcome, prefix, sizeof prefix);
    pay_buf_add(&worker->outcome, worker->value.data, len);
}

static enum pay_evidence evidence_of(enum pay_source source)
{
    switch (source) {
    case PAY_SOURCE_SYNC:
        return PAY_EVIDENCE_SYNC_RESPONSE;
    case PAY_SOURCE_QUERY:
        return PAY_EVIDENCE_QUERY;
    default:
        return PAY_EVIDENCE_LOCAL;
    }
}

/* @param body the raw answer; absent for an event of our own. */
static enum pay_status add_item(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                                const struct pay_psp_item *item, struct pay_bytes body,
                                struct pay_err *err)
{
    char input_id[PAY_ULID_LEN + 1];
    pay_ulid_new(input_id);
    struct pay_payment_input input = {
        .input_id = pay_str_of(input_id),
        .kind = PAY_WIRE_PSP_EVENT,
        .source = item->source,
        .evidence_level = evidence_of(item->source),
        .payment_id = item->payment_id.ptr != NULL ? item->payment_id : work->job.payment_id,
        .event = item->event,
        .transport_key = item->transport_key,
        .business_key = item->business_key,
        .occurred_at_us = item->occurred_at_us,
        .received_at_us = pay_clock_wall_us(),
        .traceparent = work->job.traceparent,
    };
    enum pay_status status = PAY_OK;
    if (body.len > 0) {
        status = pay_keys_seal_evidence(worker->ingest->keys, &input, body, PAY_STR("tls"),
                                        worker->arena, err);
    }
    if (status == PAY_OK) {
        pay_buf_reset(&worker->value);
        status = pay_payment_input_encode(worker->codec, &input, &worker->value, err);
    }
    if (status == PAY_OK) {
        add_value(worker);
        status = worker->outcome.failed ? pay_err_set(err, PAY_REJECT, 0, "outcome",
                                                      "more than %zu bytes", worker->outcome.max)
                                        : PAY_OK;
    }
    return status;
}

static const struct pay_psp_header *adapter_headers(struct pay_psp_worker *worker,
                                                    const struct pay_http_result *result)
{
    struct pay_psp_header *headers =
        pay_arena_array(worker->arena, result->header_count + 1, sizeof *headers);
    for (size_t i = 0; headers != NULL && i < result->header_count; i++) {
        headers[i] = (struct pay_psp_header){result->headers[i].name, result->headers[i].value};
    }
    return headers;
}

static enum pay_psp_delivery delivery_of(enum pay_http_delivery delivery)
{
    static const enum pay_psp_delivery same[PAY_HTTP_DELIVERY_COUNT] = {
        [PAY_HTTP_NOT_SENT] = PAY_PSP_NOT_SENT,
        [PAY_HTTP_UNKNOWN] = PAY_PSP_UNCLEAR,
        [PAY_HTTP_ANSWERED] = PAY_PSP_ANSWERED,
    };
    return same[delivery];
}

static bool is_no(enum pay_event_type type)
{
    return type == PAY_EV_ATTEMPT_FAILED || type == PAY_EV_CAPTURE_FAILED ||
           type == PAY_EV_REFUND_FAILED;
}

enum pay_status pay_psp_outcome_read(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                                     const struct pay_psp_request_job *as,
                                     struct pay_psp_call *call, struct pay_err *err)
{
    const struct pay_psp_header *headers = adapter_headers(worker, &call->result);
    if (headers == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "read", "arena full");
    }
    const struct pay_psp_response response = {
        .job = as,
        .send_no = call->send_no,
        .only_send = call->only_send,
        .query_by = call->query_by,
        .asked_at_us = call->asked_at_us,
        .delivery = delivery_of(call->result.delivery),
        .http_status = call->result.status,
        .headers = headers,
        .header_count = call->result.header_count,
        .body = call->result.body,
    };
    struct pay_psp_reading reading = {.should_retry = -1};
    enum pay_status status =
        work->account->adapter->read(&work->account->psp, &response, worker->arena, &reading, err);
    if (status == PAY_OK && reading.bad_credentials) {
        pay_log(PAY_LOG_ERROR, "psp_credentials_refused",
                PAY_F_STR("psp_account", work->account->psp.id));
        pay_metric_add(worker->ingest->metrics[PAY_IM_ERRORS],
                       (const char *const[]){"psp_credentials"}, 1);
    }
    call->said_no = false;
    for (size_t i = 0; status == PAY_OK && i < reading.items.count; i++) {
        const struct pay_psp_item *item = &reading.items.items[i];
        call->said_no = call->said_no || is_no(item->event.type);
        const bool local = item->source == PAY_SOURCE_LOCAL;
        status = add_item(worker, work, item,
                          local ? (struct pay_bytes){NULL, 0} : call->result.body, err);
    }
    return status;
}

enum pay_status pay_psp_outcome_local(struct pay_psp_worker *worker,
                                      const struct pay_psp_work *work, int send_no,
                                      enum pay_psp_result result, enum pay_failure_class failure,
                                      struct pay_err *err)
{
    const struct pay_psp_response response = {
        .job = &work->request_job, .send_no = send_no, .delivery = PAY_PSP_NOT_SENT};
    struct pay_psp_item item;
    enum pay_status status =
        pay_psp_local_item(&work->account->psp, &response, result, worker->arena, &item, err);
    if (status == PAY_OK) {
        item.event.failure_class = failure;
        status = add_item(worker, work, &item, (struct pay_bytes){NULL, 0}, err);
    }
    return status;
}

static size_t length_at(struct pay_bytes outcome, size_t at)
{
    const uint8_t *p = outcome.ptr + at;
    return (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
}

static enum pay_status produce_once(struct pay_psp_worker *worker, const struct pay_psp_work *work,
                                    struct pay_bytes outcome, struct pay_err *err)
{
    struct pay_kafka_headers headers;
    enum pay_status status = PAY_OK;
    for (size_t at = 0; status == PAY_OK && at + LENGTH_BYTES <= outcome.len;) {
        const size_t len = length_at(outcome, at);
        at += LENGTH_BYTES;
        if (len > outcome.len - at) {
            status = pay_err_set(err, PAY_REJECT, 0, "outcome", "cut short");
            break;
        }
        const struct pay_outlet_record record = {
            .topic = worker->ingest->topics[PAY_TOPIC_INPUTS],
            .key = work->job.payment_id,
            .value = {outcome.ptr + at, len},
            .headers = pay_ingest_headers(&headers, work->job.traceparent),
        };
        status = pay_outlet_wait_put(&worker->wait, worker->ingest->outlet, &record, err);
        at += len;
    }
    struct pay_err why = {.status = PAY_OK};
    const enum pay_status reported = pay_outlet_wait_done(&worker->wait, &why);
    pay_metric_add(worker->ingest->metrics[PAY_IM_PRODUCED],
                   (const char *const[]){pay_status_name(status != PAY_OK ? status : reported)}, 1);
    if (status == PAY_OK && reported != PAY_OK) {
        *err = why;
        status = reported;
    }
    return status;
}

/* The PSP has been called: what it said must not be lost to an outage, so this waits. */
enum pay_status pay_psp_outcome_produce(struct pay_psp_worker *worker,
                                        const struct pay_psp_work *work, struct pay_bytes outcome,
                                        struct pay_err *err)
{
    for (;;) {
        const enum pay_status status = produce_once(worker, work, outcome, err);
        if (status == PAY_OK || status == PAY_REJECT) {
            return status;
        }
        pay_log(PAY_LOG_WARN, "outcome_not_acknowledged", PAY_F_STR("job_id", work->job.job_id.ptr),
                PAY_F_ERR(err));
        pay_metric_add(worker->ingest->metrics[PAY_IM_ERRORS], (const char *const[]){"kafka"}, 1);
        if (pay_service_wait(worker->ingest->svc, PRODUCE_PAUSE_MS)) {
            return PAY_RETRY;
        }
    }
}
