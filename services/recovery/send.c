/* SPDX-License-Identifier: Apache-2.0 */
#include "services/recovery/internal.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/ulid.h"
#include "common/contracts/keys.h"
#include "common/contracts/psp_job.h"
#include "common/core/id.h"

#include "common/base/banned.h"

void pay_recovery_report(void *ctx, const struct pay_kafka_report *report)
{
    struct pay_recovery *rec = ctx;
    struct pay_task *task = report->tag;
    rec->waiting--;
    task->acknowledged = report->status == PAY_OK;
    task->refused = report->status == PAY_REJECT || pay_kafka_is_refusal(report->code);
    if (task->acknowledged) {
        pay_broker_shown(&rec->broker);
    } else {
        pay_broker_failed(&rec->broker);
        rec->refused_as = report->reason;
        pay_metric_add(rec->metrics[PAY_RM_ERRORS], (const char *const[]){"kafka"}, 1);
    }
}

/* By the letter of the id: A01, C01, R01. */
static enum pay_job_kind kind_of(const struct pay_store_ask *ask)
{
    switch (ask->action_id[PAY_PAYMENT_ID_SIZE - 1]) {
    case 'C':
        return PAY_JOB_QUERY_CAPTURE;
    case 'R':
        return PAY_JOB_QUERY_REFUND;
    default:
        return PAY_JOB_QUERY;
    }
}

/* Numbered by the due time, so that two copies of one query are one job. */
static enum pay_status encode_query(struct pay_recovery *rec, const struct pay_task *task,
                                    struct pay_err *err)
{
    const struct pay_store_ask *ask = &task->ask;
    const bool is_action = ask->action_id[0] != '\0';
    const char *subject = is_action ? ask->action_id : ask->attempt_id;
    char job_id[PAY_JOB_ID_SIZE];
    pay_id_query_by_due(job_id, subject, task->due.due_at_us);
    struct pay_psp_job job = {
        .job_id = pay_str_of(job_id),
        .kind = kind_of(ask),
        .payment_id = pay_str_of(ask->payment_id),
        .merchant_id = pay_str_of(ask->merchant_id),
        .attempt_id = pay_str_of(ask->attempt_id),
        .request_no = pay_str_of(subject),
        .amount_minor = ask->action_amount_minor,
        .psp = pay_str_of(ask->psp),
        .psp_account = pay_str_of(ask->psp_account),
        .method = pay_str_of(ask->method),
        .provider_reference = ask->provider_reference,
        .references = ask->references,
        .reference_count = ask->reference_count,
        .attempt_amount_minor = ask->amount.amount_minor,
        .capture_mode = ask->capture_mode,
        .not_after_us = task->due.lease_until_us,
        .try_no = task->due.tries > 0 ? task->due.tries : 1,
    };
    memcpy(job.currency, ask->amount.currency, sizeof job.currency);
    if (is_action) {
        job.action_id = pay_str_of(ask->action_id);
    }
    if (ask->about_job_id[0] != '\0') {
        job.about_job_id = pay_str_of(ask->about_job_id);
    }
    return pay_psp_job_encode(rec->codec, &job, &rec->value, err);
}

static enum pay_status encode_deadline(struct pay_recovery *rec, const struct pay_task *task,
                                       struct pay_payment_input *input, struct pay_err *err)
{
    const struct pay_str kind = pay_str_of(pay_deadline_kind_name(task->due.kind));
    char key[PAY_TRANSPORT_KEY_SIZE];
    if (!pay_transport_key_deadline(key, kind, pay_str_of(task->due.aggregate_id),
                                    task->due.due_at_us)) {
        return pay_err_set(err, PAY_REJECT, 0, "deadline", "key too long for '%s'",
                           task->due.aggregate_id);
    }
    input->kind = PAY_WIRE_DEADLINE;
    input->transport_key = pay_str_of(key);
    input->payment_id = pay_str_of(task->due.payment_id);
    input->deadline =
        (struct pay_wire_deadline){kind, pay_str_of(task->due.aggregate_id), task->due.due_at_us};
    return pay_payment_input_encode(rec->codec, input, &rec->value, err);
}

/* An orphan's aggregate id is psp/psp_account/transport_key; the first two have no slash. */
static enum pay_status encode_replay(struct pay_recovery *rec, const struct pay_task *task,
                                     struct pay_payment_input *input, struct pay_err *err)
{
    const char *psp = task->due.aggregate_id;
    const char *account = strchr(psp, '/');
    const char *key = account == NULL ? NULL : strchr(account + 1, '/');
    if (key == NULL) {
        return pay_err_set(err, PAY_REJECT, 0, "replay", "'%s' names no event", psp);
    }
    input->kind = PAY_WIRE_REPLAY;
    if (task->due.payment_id[0] != '\0') {
        input->payment_id = pay_str_of(task->due.payment_id);
    }
    input->replay = (struct pay_wire_replay){
        {psp, (size_t)(account - psp)},
        {account + 1, (size_t)(key - account - 1)},
        pay_str_of(key + 1),
    };
    return pay_payment_input_encode(rec->codec, input, &rec->value, err);
}

static enum pay_status encode(struct pay_recovery *rec, const struct pay_task *task,
                              struct pay_err *err)
{
    char input_id[PAY_ULID_LEN + 1];
    pay_ulid_new(input_id);
    struct pay_payment_input input = {
        .input_id = pay_str_of(input_id),
        .source = PAY_SOURCE_LOCAL,
        .evidence_level = PAY_EVIDENCE_LOCAL,
        .received_at_us = pay_clock_wall_us(),
    };
    switch (task->plan) {
    case PAY_PLAN_QUERY:
        return encode_query(rec, task, err);
    case PAY_PLAN_REPLAY:
        return encode_replay(rec, task, &input, err);
    default:
        return encode_deadline(rec, task, &input, err);
    }
}

static enum pay_status produce(struct pay_recovery *rec, struct pay_task *task, struct pay_err *err)
{
    pay_buf_reset(&rec->value);
    const enum pay_status status = encode(rec, task, err);
    if (status != PAY_OK) {
        return status;
    }
    const char *key =
        task->due.payment_id[0] != '\0' ? task->due.payment_id : task->due.aggregate_id;
    const struct pay_kafka_record record = {
        .topic = rec->topics[task->plan == PAY_PLAN_QUERY ? PAY_TOPIC_PSP_JOBS : PAY_TOPIC_INPUTS],
        .key = pay_str_of(key),
        .value = pay_buf_bytes(&rec->value),
        .tag = task,
    };
    return pay_kafka_produce(rec->producer, &record, err);
}

static bool has_subject(const struct pay_task *task)
{
    return task->plan != PAY_PLAN_QUERY || task->ask.attempt_id[0] != '\0';
}

static void send_one(struct pay_recovery *rec, struct pay_task *task)
{
    struct pay_err err = {.status = PAY_OK};
    const enum pay_status status = has_subject(task)
                                       ? produce(rec, task, &err)
                                       : pay_err_set(&err, PAY_REJECT, 0, "deadline",
                                                     "there is no such attempt, capture or refund");
    if (status == PAY_OK) {
        rec->waiting++;
        return;
    }
    task->unusable = status == PAY_REJECT;
    if (task->unusable || err.code == 0) {
        pay_log(task->unusable ? PAY_LOG_ERROR : PAY_LOG_WARN, "deadline_not_sent",
                PAY_F_STR("aggregate_id", task->due.aggregate_id),
                PAY_F_STR("kind", pay_deadline_kind_name(task->due.kind)), PAY_F_ERR(&err));
    } else {
        rec->refused_as = pay_kafka_error_name(err.code);
        task->refused = pay_kafka_is_refusal(err.code);
    }
    pay_metric_add(rec->metrics[PAY_RM_ERRORS],
                   (const char *const[]){task->unusable ? "deadline" : "kafka"}, 1);
}

void pay_recovery_send(struct pay_recovery *rec)
{
    rec->refused_as = NULL;
    for (size_t i = 0; i < rec->task_count; i++) {
        send_one(rec, &rec->tasks[i]);
    }
    /* Every record has its report within the producer's own time-out, so this ends. */
    while (rec->waiting > 0) {
        (void)pay_kafka_producer_poll(rec->producer, 100);
    }
    if (rec->refused_as != NULL) {
        pay_log(PAY_LOG_WARN, "deadlines_not_taken", PAY_F_STR("reason", rec->refused_as));
    }
}
