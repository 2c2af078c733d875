/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ingest/relay.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/ulid.h"
#include "common/contracts/headers.h"
#include "common/contracts/keys.h"
#include "common/contracts/raw_notification.h"
#include "services/ingest/callback.h"

#include "common/base/banned.h"

enum pay_status pay_relay_put(struct pay_relay_desk *desk, struct pay_str key,
                              struct pay_str traceparent, struct pay_err *err)
{
    struct pay_kafka_headers headers;
    const struct pay_outlet_record record = {
        .topic = desk->desk.ingest->topics[PAY_TOPIC_INPUTS],
        .key = key,
        .value = pay_buf_bytes(&desk->desk.value),
        .headers = pay_ingest_headers(&headers, traceparent),
    };
    return pay_outlet_wait_put(&desk->wait, desk->desk.ingest->outlet, &record, err);
}

enum pay_status pay_relay_dead(struct pay_relay_desk *desk, const struct pay_kafka_msg *msg,
                               enum pay_ingest_metric metric, enum pay_dead_reason reason,
                               const char *text, struct pay_err *err)
{
    pay_metric_add(desk->desk.ingest->metrics[metric],
                   (const char *const[]){"dead", pay_dead_reason_name(reason)}, 1);
    const struct pay_dead_source from = pay_dead_source_of(msg);
    return pay_dead_put(&desk->desk, &from, reason, text, &desk->wait, err);
}

static void count(struct pay_relay_desk *desk, const char *outcome, const char *reason)
{
    pay_metric_add(desk->desk.ingest->metrics[PAY_IM_NOTIFICATIONS],
                   (const char *const[]){outcome, reason}, 1);
}

static bool fill_raw(const struct pay_raw_notification *from, struct pay_arena *arena,
                     struct pay_psp_notification *raw)
{
    struct pay_psp_header *headers =
        pay_arena_array(arena, from->header_count + 1, sizeof *headers);
    if (headers == NULL) {
        return false;
    }
    for (size_t i = 0; i < from->header_count; i++) {
        headers[i] = (struct pay_psp_header){
            from->headers[i].name,
            {(const char *)from->headers[i].value.ptr, from->headers[i].value.len}};
    }
    *raw = (struct pay_psp_notification){from->method, from->path,         from->query,
                                         headers,      from->header_count, from->body};
    return true;
}

/* From a trusted topic: kept for ever as DEAD evidence, but it never reaches the state machine. */
static enum pay_status keep_refused(struct pay_relay_desk *desk, const struct pay_kafka_msg *msg,
                                    const struct pay_raw_notification *from, const char *code,
                                    struct pay_err *err)
{
    char input_id[PAY_ULID_LEN + 1];
    char key[PAY_TRANSPORT_KEY_SIZE];
    pay_ulid_new(input_id);
    if (!pay_transport_key_poison(key, pay_str_of(msg->topic), msg->partition, msg->offset)) {
        return pay_err_set(err, PAY_RETRY, 0, "notification", "topic name too long for a key");
    }
    struct pay_payment_input input = {
        .input_id = pay_str_of(input_id),
        .kind = PAY_WIRE_REFUSED_NOTIFICATION,
        .source = PAY_SOURCE_WEBHOOK,
        .evidence_level = PAY_EVIDENCE_LOCAL,
        .refused = {from->psp, from->psp_account, pay_str_of(code)},
        .transport_key = pay_str_of(key),
        .received_at_us = from->received_at_us,
        .traceparent = from->traceparent,
    };
    enum pay_status status = pay_keys_seal_evidence(desk->desk.ingest->keys, &input, from->body,
                                                    PAY_STR("none"), desk->desk.arena, err);
    if (status == PAY_OK) {
        pay_buf_reset(&desk->desk.value);
        status = pay_payment_input_encode(desk->desk.codec, &input, &desk->desk.value, err);
    }
    if (status == PAY_OK) {
        count(desk, "refused", code);
        pay_log(PAY_LOG_WARN, "notification_refused",
                PAY_F_STR("psp_account", from->psp_account.ptr), PAY_F_STR("reason", code));
        status = pay_relay_put(desk, from->psp_account, from->traceparent, err);
    }
    return status;
}

static enum pay_status put_items(struct pay_relay_desk *desk, const struct pay_callback *callback,
                                 struct pay_err *err)
{
    enum pay_status status = PAY_OK;
    for (size_t i = 0; status == PAY_OK && i < callback->items.count; i++) {
        status = pay_callback_input(&desk->desk, callback, i, err);
        if (status == PAY_OK) {
            status = pay_relay_put(desk, callback->items.items[i].partition_key,
                                   callback->traceparent, err);
        }
    }
    if (status == PAY_OK) {
        count(desk, "relayed", "");
    }
    return status;
}

static enum pay_status relay_for(struct pay_relay_desk *desk, const struct pay_kafka_msg *msg,
                                 const struct pay_raw_notification *from,
                                 const struct pay_account *account, struct pay_err *err)
{
    if (account == NULL || !pay_str_eq_c(from->psp, account->adapter->name)) {
        return keep_refused(desk, msg, from, "UNKNOWN_ACCOUNT", err);
    }
    struct pay_callback callback = {.account = account,
                                    .received_at_us = from->received_at_us,
                                    .traceparent = from->traceparent};
    if (!fill_raw(from, desk->desk.arena, &callback.raw)) {
        return pay_err_set(err, PAY_RETRY, 0, "notification", "arena full");
    }
    const enum pay_status status = pay_callback_read(&callback, desk->desk.arena, err);
    if (status == PAY_REJECT) {
        return keep_refused(desk, msg, from, pay_psp_refusal_code(callback.reason), err);
    }
    return status == PAY_OK ? put_items(desk, &callback, err) : status;
}

enum pay_status pay_relay_notification(struct pay_relay_desk *desk, const struct pay_kafka_msg *msg,
                                       struct pay_err *err)
{
    struct pay_raw_notification from;
    enum pay_status status =
        pay_relay_schemas_know(desk, PAY_RECORD_RAW_NOTIFICATION, msg->value, err);
    if (status == PAY_OK) {
        status =
            pay_raw_notification_decode(desk->desk.codec, msg->value, desk->desk.arena, &from, err);
    }
    if (status == PAY_REJECT) {
        const struct pay_err why = *err;
        return pay_relay_dead(desk, msg, PAY_IM_NOTIFICATIONS, pay_dead_reason_of_code(why.code),
                              why.text, err);
    }
    if (status != PAY_OK) {
        return status;
    }
    const struct pay_accounts *accounts = pay_accounts_acquire(desk->desk.ingest->accounts);
    status = relay_for(desk, msg, &from, pay_accounts_account(accounts, from.psp_account), err);
    pay_accounts_release(accounts);
    return status;
}
