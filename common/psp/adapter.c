/* SPDX-License-Identifier: Apache-2.0 */
#include "common/psp/adapter.h"

#include "common/base/assert.h"
#include "common/core/id.h"
#include "common/crypto/sha256.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/base/banned.h"

static const char *const reason_names[PAY_PSP_REASON_COUNT] = {
    [PAY_PSP_OK] = "ok",
    [PAY_PSP_HEADER_MISSING] = "header_missing",
    [PAY_PSP_HEADER_REPEATED] = "header_repeated",
    [PAY_PSP_MALFORMED_HEADER] = "malformed_header",
    [PAY_PSP_NO_V1_SIGNATURE] = "no_v1_signature",
    [PAY_PSP_SIGNATURE_MISSING] = "signature_missing",
    [PAY_PSP_SIGNATURE_MISMATCH] = "signature_mismatch",
    [PAY_PSP_BAD_BASE64] = "bad_base64",
    [PAY_PSP_TIMESTAMP_TOO_OLD] = "timestamp_too_old",
    [PAY_PSP_TIMESTAMP_IN_FUTURE] = "timestamp_in_future",
    [PAY_PSP_UNSUPPORTED_ALGORITHM] = "unsupported_algorithm",
    [PAY_PSP_UNKNOWN_SERIAL] = "unknown_serial",
    [PAY_PSP_DECRYPT_FAILED] = "decrypt_failed",
    [PAY_PSP_NO_KEYS] = "no_keys",
    [PAY_PSP_NOT_JSON] = "not_json",
    [PAY_PSP_MALFORMED_EVENT] = "malformed_event",
    [PAY_PSP_FIELD_MISSING] = "field_missing",
    [PAY_PSP_BAD_AMOUNT] = "bad_amount",
    [PAY_PSP_BAD_CURRENCY] = "bad_currency",
    [PAY_PSP_WRONG_MODE] = "wrong_mode",
    [PAY_PSP_WRONG_ACCOUNT] = "wrong_account",
    [PAY_PSP_TOO_LARGE] = "too_large",
    [PAY_PSP_NO_MEMORY] = "no_memory",
    [PAY_PSP_NOT_SUPPORTED] = "not_supported",
    [PAY_PSP_BAD_JOB] = "bad_job",
};

const char *pay_psp_reason_name(enum pay_psp_reason reason)
{
    return (unsigned)reason < PAY_PSP_REASON_COUNT ? reason_names[reason] : "?";
}

const char *pay_psp_refusal_code(enum pay_psp_reason reason)
{
    if (reason == PAY_PSP_TIMESTAMP_TOO_OLD || reason == PAY_PSP_TIMESTAMP_IN_FUTURE) {
        return "TIME_WINDOW";
    }
    return reason >= PAY_PSP_NOT_JSON ? "FORMAT" : "SIGNATURE";
}

const struct pay_psp_header *pay_psp_header_find(const struct pay_psp_header *headers, size_t count,
                                                 const char *name)
{
    const size_t len = strlen(name);
    for (size_t i = 0; i < count; i++) {
        if (headers[i].name.len == len && strncasecmp(headers[i].name.ptr, name, len) == 0) {
            return &headers[i];
        }
    }
    return NULL;
}

const char *pay_psp_setting(const struct pay_psp_account *account, const char *name)
{
    for (size_t i = 0; i < account->setting_count; i++) {
        if (strcmp(account->settings[i].name, name) == 0) {
            return account->settings[i].value;
        }
    }
    return NULL;
}

const struct pay_psp_key *pay_psp_credential(const struct pay_psp_account *account,
                                             const char *role)
{
    for (size_t i = 0; i < account->credential_count; i++) {
        if (account->credentials[i].role != NULL &&
            strcmp(account->credentials[i].role, role) == 0) {
            return &account->credentials[i];
        }
    }
    return NULL;
}

struct pay_str pay_psp_job_reference(const struct pay_psp_request_job *job,
                                     enum pay_reference_kind kind)
{
    for (size_t i = 0; i < job->reference_count; i++) {
        if (job->references[i].kind == kind) {
            return job->references[i].reference;
        }
    }
    return (struct pay_str){NULL, 0};
}

#define ROW(aggregate)                                                                            \
    {PAY_EV_##aggregate##_SUBMITTED, PAY_EV_##aggregate##_NOT_SENT, PAY_EV_##aggregate##_UNKNOWN, \
     PAY_EV_##aggregate##_FAILED, PAY_EV_##aggregate##_NOT_FOUND}
/* What is only asked about has no outcome of its own: a failed query touches no state. */
#define ASKED(not_found) \
    {PAY_EV_QUERY_FAILED, PAY_EV_QUERY_FAILED, PAY_EV_QUERY_FAILED, PAY_EV_QUERY_FAILED, not_found}

static const enum pay_event_type result_types[PAY_JOB_KIND_COUNT][PAY_PSP_RESULT_COUNT] = {
    [PAY_JOB_SUBMIT] = ROW(ATTEMPT),
    [PAY_JOB_CONFIRM] = ROW(ATTEMPT),
    [PAY_JOB_CAPTURE] = ROW(CAPTURE),
    [PAY_JOB_REFUND] = ROW(REFUND),
    [PAY_JOB_CANCEL] = ASKED(PAY_EV_QUERY_FAILED),
    [PAY_JOB_QUERY] = ASKED(PAY_EV_ATTEMPT_NOT_FOUND),
    [PAY_JOB_QUERY_CAPTURE] = ASKED(PAY_EV_CAPTURE_NOT_FOUND),
    [PAY_JOB_QUERY_REFUND] = ASKED(PAY_EV_REFUND_NOT_FOUND),
    [PAY_JOB_UNRECOGNIZED] = ASKED(PAY_EV_QUERY_FAILED),
};

enum pay_event_type pay_psp_result_type(enum pay_job_kind kind, enum pay_psp_result result)
{
    PAY_ASSERT((unsigned)kind < PAY_JOB_KIND_COUNT && (unsigned)result < PAY_PSP_RESULT_COUNT);
    return result_types[kind][result];
}

enum pay_status pay_psp_local_item(const struct pay_psp_account *account,
                                   const struct pay_psp_response *response,
                                   enum pay_psp_result result, struct pay_arena *arena,
                                   struct pay_psp_item *ret_item, struct pay_err *err)
{
    const struct pay_psp_request_job *job = response->job;
    const enum pay_event_type type = pay_psp_result_type(job->kind, result);
    struct pay_psp_item item = {
        .source = PAY_SOURCE_LOCAL,
        .event = {.type = type,
                  .psp = pay_str_of(account->psp),
                  .psp_account = pay_str_of(account->id),
                  .merchant_request_no = pay_arena_str(arena, job->attempt_id),
                  .action_id = pay_arena_str(arena, job->action_id),
                  .call = {.is_set = true,
                           .job_id = pay_arena_str(arena, job->job_id),
                           .send_no = response->send_no,
                           .query_by = response->query_by,
                           .asked_at_us = response->asked_at_us,
                           .http_status = response->http_status}},
    };
    /* The send number is part of it: what a later send did is another fact. */
    item.transport_key =
        pay_arena_printf(arena, "%.*s:%d:%s", (int)job->job_id.len, job->job_id.ptr,
                         response->send_no, pay_event_type_name(type));
    if (item.transport_key.ptr == NULL || !pay_psp_item_finish(&item, arena)) {
        return pay_err_set(err, PAY_RETRY, PAY_PSP_NO_MEMORY, "local event", "arena is full");
    }
    *ret_item = item;
    return PAY_OK;
}

/* The failure class of a failure, the amount of a sum, else the last word of the type. */
static struct pay_str default_result(const struct pay_event *event, struct pay_arena *arena)
{
    if (event->type == PAY_EV_REFUND_SUM) {
        return pay_arena_printf(arena, "%lld", (long long)event->amount.amount_minor);
    }
    if (event->failure_class != PAY_FAILURE_NONE) {
        return pay_str_of(pay_failure_class_name(event->failure_class));
    }
    const char *name = pay_event_type_name(event->type);
    const char *last = strrchr(name, '_');
    return pay_str_of(last == NULL ? name : last + 1);
}

static struct pay_str first_set(struct pay_str a, struct pay_str b)
{
    return a.ptr != NULL ? a : b;
}

static struct pay_str business_key(const struct pay_event *event, struct pay_arena *arena)
{
    const struct pay_str payment =
        first_set(event->provider_payment_id, event->merchant_request_no);
    const struct pay_str action = first_set(event->provider_action_id, event->action_id);
    const struct pay_str key = pay_arena_printf(
        arena, "%.*s|%.*s|%s|%.*s", (int)payment.len, payment.ptr == NULL ? "" : payment.ptr,
        (int)action.len, action.ptr == NULL ? "" : action.ptr, pay_event_type_name(event->type),
        (int)event->normalized_result.len, event->normalized_result.ptr);
    if (key.ptr == NULL || key.len < PAY_CAUSE_SIZE) {
        return key;
    }
    /* Two long references: the digest is as good a name, and fits everywhere. */
    char hex[PAY_SHA256_HEX];
    pay_sha256_hex((struct pay_bytes){(const uint8_t *)key.ptr, key.len}, hex);
    return pay_arena_printf(arena, "sha256:%s", hex);
}

static struct pay_str payment_of(const struct pay_event *event, struct pay_arena *arena)
{
    const struct pay_str numbers[] = {event->merchant_request_no, event->action_id};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i].ptr != NULL && pay_id_is_action(numbers[i])) {
            return pay_arena_str(arena, (struct pay_str){numbers[i].ptr, PAY_PAYMENT_ID_SIZE - 1});
        }
    }
    return (struct pay_str){NULL, 0};
}

static struct pay_str partition_key(const struct pay_psp_item *item, struct pay_arena *arena)
{
    if (item->payment_id.ptr != NULL) {
        return item->payment_id;
    }
    const struct pay_event *event = &item->event;
    const struct pay_str reference = first_set(
        first_set(event->provider_payment_id, event->provider_action_id), item->transport_key);
    return pay_arena_printf(arena, "%.*s/%.*s/%.*s", (int)event->psp.len, event->psp.ptr,
                            (int)event->psp_account.len, event->psp_account.ptr, (int)reference.len,
                            reference.ptr == NULL ? "" : reference.ptr);
}

bool pay_psp_item_finish(struct pay_psp_item *item, struct pay_arena *arena)
{
    if (item->event.normalized_result.ptr == NULL) {
        item->event.normalized_result = default_result(&item->event, arena);
    }
    if (item->event.normalized_result.ptr == NULL) {
        return false;
    }
    /* The account may be replaced while the event is on its way. */
    item->event.psp = pay_arena_str(arena, item->event.psp);
    item->event.psp_account = pay_arena_str(arena, item->event.psp_account);
    if (item->event.psp.ptr == NULL || item->event.psp_account.ptr == NULL) {
        return false;
    }
    item->business_key = business_key(&item->event, arena);
    item->payment_id = payment_of(&item->event, arena);
    item->partition_key = partition_key(item, arena);
    return item->business_key.ptr != NULL && item->partition_key.ptr != NULL;
}
