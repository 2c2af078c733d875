/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/contracts/samples.h"

#include <string.h>

#define SECOND 1 /* Of an enum's symbols. */
#define TEXT(name) PAY_STR(name)
#define BYTES(literal) ((struct pay_bytes){(const uint8_t *)(literal), sizeof(literal) - 1})
#define SHA(name) BYTES(name)
/* In static objects, where a compound literal may not stand. */
#define ITEXT(name) {(name), sizeof(name) - 1}
#define IBYTES(name) {(const uint8_t *)(name), sizeof(name) - 1}

int64_t sample_number(const char *name)
{
    int64_t number = 0;
    for (size_t i = 0; name[i] != '\0'; i++) {
        number += (int64_t)(i + 1) * name[i];
    }
    return number;
}

static const struct pay_sealed sealed = {ITEXT("key_id"), IBYTES("ciphertext"), ITEXT("bound_to")};
static const struct pay_sealed two_sealed[] = {
    {ITEXT("key_id"), IBYTES("ciphertext"), ITEXT("bound_to")},
    {ITEXT("key_id"), IBYTES("ciphertext"), ITEXT("bound_to")},
};
static const struct pay_reference two_references[] = {
    {(enum pay_reference_kind)SECOND, ITEXT("reference")},
    {(enum pay_reference_kind)SECOND, ITEXT("reference")},
};

static struct pay_money money(void)
{
    return (struct pay_money){sample_number("amount_minor"), "EUR"};
}

static struct pay_customer_action action(void)
{
    return (struct pay_customer_action){true, (enum pay_action_type)SECOND, TEXT("url"),
                                        TEXT("data"), sample_number("expires_at")};
}

static struct pay_dispute_detail dispute(void)
{
    return (struct pay_dispute_detail){
        true, SECOND, SECOND, true, TEXT("reason_code"), sample_number("evidence_due_at")};
}

static struct pay_settlement settlement(void)
{
    return (struct pay_settlement){true,
                                   sample_number("gross_minor"),
                                   sample_number("fee_minor"),
                                   sample_number("net_minor"),
                                   "EUR",
                                   (int)sample_number("settled_on"),
                                   TEXT("batch")};
}

/* --- RawNotification ------------------------------------------------------------------------ */

static void make_raw_notification(union any_record *into, size_t variant)
{
    static const struct pay_http_header_line headers[] = {{ITEXT("name"), IBYTES("value")},
                                                          {ITEXT("name"), IBYTES("value")}};
    (void)variant;
    into->raw_notification = (struct pay_raw_notification){
        .notification_id = TEXT("notification_id"),
        .psp = TEXT("psp"),
        .psp_account = TEXT("psp_account"),
        .method = TEXT("method"),
        .path = TEXT("path"),
        .query = TEXT("query"),
        .headers = headers,
        .header_count = 2,
        .body = BYTES("body"),
        .received_at_us = sample_number("received_at"),
        .traceparent = TEXT(SAMPLE_TRACEPARENT),
    };
}

static void make_small_raw_notification(union any_record *into, size_t variant)
{
    make_raw_notification(into, variant);
    into->raw_notification.header_count = 0;
    into->raw_notification.headers = NULL;
    into->raw_notification.traceparent = (struct pay_str){NULL, 0};
}

/* --- Command -------------------------------------------------------------------------------- */

static struct pay_route_choice route(void)
{
    return (struct pay_route_choice){TEXT("psp"), TEXT("psp_account"), TEXT("method"), true};
}

static void set_create_payment(struct pay_command *command)
{
    command->create_payment = (struct pay_cmd_create_payment){
        .merchant_order_no = TEXT("merchant_order_no"),
        .amount = money(),
        .capture_mode = (enum pay_capture_mode)SECOND,
        .expires_at_us = sample_number("expires_at"),
        .retry_until_expiry = 1,
        .description = TEXT("description"),
        .routes = {route(), route()},
        .route_count = 2,
        .start = false,
    };
}

static void set_money(struct pay_command *command)
{
    const bool is_capture = command->type == PAY_CMD_CAPTURE;
    command->money = (struct pay_cmd_money){
        .attempt_id = TEXT("attempt_id"),
        .amount = money(),
        .is_final = false,
        .reason_code = is_capture ? (struct pay_str){NULL, 0} : TEXT("reason_code"),
        .idempotency_key = TEXT("idempotency_key"),
    };
}

static void set_controlled(struct pay_command *command)
{
    static const struct {
        struct pay_str aggregate_id, from_status, to_status, provider_reference, reason_code;
        bool has_amount;
    } names[PAY_CMD_COUNT] = {
        [PAY_CMD_FORCE_CLOSE_UNKNOWN] = {ITEXT("aggregate_id"),
                                         {NULL, 0},
                                         ITEXT("SUCCEEDED"),
                                         ITEXT("provider_reference"),
                                         ITEXT("reason_code"),
                                         false},
        [PAY_CMD_CORRECT_STATE] = {ITEXT("aggregate_id"), ITEXT("from_status"), ITEXT("to_status"),
                                   ITEXT("provider_reference"), ITEXT("reason_code"), true},
        [PAY_CMD_RELEASE_RESERVATION] = {.aggregate_id = ITEXT("aggregate_id"),
                                         .reason_code = ITEXT("reason_code")},
        [PAY_CMD_OVERRIDE_BLOCK] = {.aggregate_id = ITEXT("attempt_id"),
                                    .reason_code = ITEXT("reason_code")},
        [PAY_CMD_RESOLVE_CASE] = {.aggregate_id = ITEXT("case_id"),
                                  .reason_code = ITEXT("resolution_code")},
    };
    const struct pay_attachment attachment = {TEXT("reference"),
                                              SHA("sha256..........................")};
    const size_t at = command->type;
    command->controlled = (struct pay_cmd_controlled){
        .aggregate_id = names[at].aggregate_id,
        .expected_version = sample_number("expected_version"),
        .from_status = names[at].from_status,
        .to_status = names[at].to_status,
        .has_amount = names[at].has_amount,
        .amount = names[at].has_amount ? money() : (struct pay_money){0},
        .provider_reference = names[at].provider_reference,
        .reason_code = names[at].reason_code,
        .attachments = {attachment, attachment},
        .attachment_count = 2,
    };
}

static void set_approval(struct pay_command *command)
{
    command->approval = (struct pay_cmd_approval){
        .request_id = TEXT("request_id"),
        .request_sha256 = SHA("request_sha256.................."),
        .reason_code =
            command->type == PAY_CMD_DECLINE ? TEXT("reason_code") : (struct pay_str){NULL, 0},
    };
}

static void set_subject(struct pay_command *command)
{
    command->subject = (struct pay_cmd_subject){
        .psp = TEXT("psp"),
        .psp_account = TEXT("psp_account"),
        .method = TEXT("method"),
        .transport_key = TEXT("transport_key"),
        .event_id = TEXT("event_id"),
        .reason_code = TEXT("reason_code"),
    };
}

static void set_route(struct pay_command *command)
{
    command->route = route();
}

static void set_attempt_id(struct pay_command *command)
{
    command->attempt_id = TEXT("attempt_id");
}

static void set_reason_code(struct pay_command *command)
{
    command->reason_code = TEXT("reason_code");
}

static void make_command(union any_record *into, size_t variant)
{
    static void (*const setters[PAY_CMD_COUNT])(struct pay_command *) = {
        [PAY_CMD_CREATE_PAYMENT] = set_create_payment,
        [PAY_CMD_START_ATTEMPT] = set_route,
        [PAY_CMD_CHANGE_METHOD] = set_route,
        [PAY_CMD_CONTINUE_ATTEMPT] = set_attempt_id,
        [PAY_CMD_CAPTURE] = set_money,
        [PAY_CMD_CANCEL_PAYMENT] = set_reason_code,
        [PAY_CMD_REQUEST_REFUND] = set_money,
        [PAY_CMD_FORCE_CLOSE_UNKNOWN] = set_controlled,
        [PAY_CMD_CORRECT_STATE] = set_controlled,
        [PAY_CMD_RELEASE_RESERVATION] = set_controlled,
        [PAY_CMD_OVERRIDE_BLOCK] = set_controlled,
        [PAY_CMD_RESOLVE_CASE] = set_controlled,
        [PAY_CMD_APPROVE] = set_approval,
        [PAY_CMD_DECLINE] = set_approval,
        [PAY_CMD_REPLAY_INPUT] = set_subject,
        [PAY_CMD_DISCARD_EVENT] = set_subject,
        [PAY_CMD_PAUSE_ROUTE] = set_subject,
        [PAY_CMD_RESUME_ROUTE] = set_subject,
        [PAY_CMD_REPLAY_EVENT] = set_subject,
    };
    into->command = (struct pay_command){
        .command_id = TEXT("command_id"),
        .type = (enum pay_command_type)variant,
        .caller = TEXT("caller"),
        .merchant_id = TEXT("merchant_id"),
        .payment_id = TEXT(SAMPLE_PAYMENT_ID),
        .issued_at_us = sample_number("issued_at"),
        .secrets_sha256 = SHA("secrets_sha256.................."),
        .traceparent = TEXT(SAMPLE_TRACEPARENT),
    };
    if (setters[variant] != NULL) {
        setters[variant](&into->command);
    }
}

static void make_small_command(union any_record *into, size_t variant)
{
    const struct pay_str absent = {NULL, 0};
    struct pay_command *command = &into->command;

    make_command(into, variant);
    command->traceparent = absent;
    command->secrets_sha256 = (struct pay_bytes){NULL, 0};
    command->create_payment.expires_at_us = 0;
    command->create_payment.retry_until_expiry = -1;
    command->create_payment.description = absent;
    command->create_payment.route_count = 0;
    command->money.attempt_id = absent;
    command->money.idempotency_key = absent;
    command->controlled.provider_reference = absent;
    command->controlled.has_amount = false;
    command->controlled.amount = (struct pay_money){0};
    command->controlled.attachment_count = variant == PAY_CMD_RESOLVE_CASE ? 0 : 1;
    if (variant == PAY_CMD_CORRECT_STATE) {
        command->controlled.expected_version = -1;
    }
}

/* --- CommandSecrets ------------------------------------------------------------------------- */

static void make_command_secrets(union any_record *into, size_t variant)
{
    static const struct pay_extra_param extra[] = {{ITEXT("name"), ITEXT("value")}};
    static const struct pay_submit_params params[] = {
        {ITEXT("instrument"), ITEXT("payer_id"), ITEXT("payer_ip"), ITEXT("return_url"), extra, 1},
        {ITEXT("instrument"), ITEXT("payer_id"), ITEXT("payer_ip"), ITEXT("return_url"), extra, 1},
    };
    (void)variant;
    into->command_secrets = (struct pay_command_secrets){
        .salt = BYTES("salt............"),
        .params = params,
        .param_count = 2,
        .redirect_data = BYTES("redirect_data"),
    };
}

static void make_small_command_secrets(union any_record *into, size_t variant)
{
    static const struct pay_submit_params params[1];
    make_command_secrets(into, variant);
    into->command_secrets.params = params;
    into->command_secrets.param_count = 1;
    into->command_secrets.redirect_data = (struct pay_bytes){NULL, 0};
}

/* --- PaymentInput --------------------------------------------------------------------------- */

static struct pay_event event(void)
{
    return (struct pay_event){
        .type = (enum pay_event_type)SECOND,
        .psp = TEXT("psp"),
        .psp_account = TEXT("psp_account"),
        .merchant_request_no = TEXT("merchant_request_no"),
        .action_id = TEXT("action_id"),
        .provider_payment_id = TEXT("provider_payment_id"),
        .provider_action_id = TEXT("provider_action_id"),
        .references = {two_references[0], two_references[1]},
        .reference_count = 2,
        .same_object = true,
        .success_when_automatic = true,
        .has_amount = true,
        .amount = money(),
        .normalized_result = TEXT("normalized_result"),
        .failure_class = (enum pay_failure_class)SECOND,
        .failure_code = TEXT("failure_code"),
        .action = action(),
        .authorization_expires_at_us = sample_number("authorization_expires_at"),
        .dispute = dispute(),
        .call = {true, TEXT("job_id"), (int)sample_number("send_no"), (enum pay_query_by)SECOND,
                 sample_number("asked_at"), (int)sample_number("http_status"),
                 TEXT("psp_request_id"), (int)sample_number("retry_after_s")},
        .psp_event_type = TEXT("psp_event_type"),
    };
}

static void set_part(struct pay_payment_input *input)
{
    if (input->kind == PAY_WIRE_PSP_EVENT) {
        input->event = event();
        input->settlement = settlement();
    } else if (input->kind == PAY_WIRE_COMMAND || input->kind == PAY_WIRE_REJECTED_COMMAND) {
        input->command = (struct pay_signed_command){
            BYTES("value"),
            BYTES("signature......................................................."),
            TEXT("key_id"),
            BYTES("writer_f"),
            two_sealed,
            2,
            sealed,
            TEXT("refusal")};
    } else if (input->kind == PAY_WIRE_DEADLINE) {
        input->deadline =
            (struct pay_wire_deadline){TEXT("kind"), TEXT("aggregate_id"), sample_number("due_at")};
    } else if (input->kind == PAY_WIRE_REPLAY) {
        input->replay =
            (struct pay_wire_replay){TEXT("psp"), TEXT("psp_account"), TEXT("transport_key")};
    } else if (input->kind == PAY_WIRE_REFUSED_NOTIFICATION) {
        input->refused =
            (struct pay_wire_refused){TEXT("psp"), TEXT("psp_account"), TEXT("reason_code")};
    }
}

static void make_payment_input(union any_record *into, size_t variant)
{
    into->payment_input = (struct pay_payment_input){
        .input_id = TEXT("input_id"),
        .kind = (enum pay_wire_kind)variant,
        .source = (enum pay_source)SECOND,
        .evidence_level = PAY_EVIDENCE_SYNC_RESPONSE,
        .payment_id = TEXT(SAMPLE_PAYMENT_ID),
        .transport_key = TEXT("transport_key"),
        .business_key = TEXT("business_key"),
        .occurred_at_us = sample_number("occurred_at"),
        .received_at_us = sample_number("received_at"),
        .evidence = {BYTES("ciphertext"), TEXT("key_id"), SHA("sha256.........................."),
                     TEXT("verified_by")},
        .traceparent = TEXT(SAMPLE_TRACEPARENT),
    };
    set_part(&into->payment_input);
}

static void make_small_payment_input(union any_record *into, size_t variant)
{
    struct pay_payment_input *input = &into->payment_input;

    make_payment_input(into, variant);
    *input = (struct pay_payment_input){
        .input_id = input->input_id,
        .kind = input->kind,
        .source = input->source,
        .evidence_level = PAY_EVIDENCE_LOCAL,
        .received_at_us = input->received_at_us,
        .event = {.psp = input->event.psp,
                  .psp_account = input->event.psp_account,
                  .normalized_result = input->event.normalized_result},
        .command = {.value = input->command.value,
                    .signature = input->command.signature,
                    .key_id = input->command.key_id,
                    .writer_fingerprint = input->command.writer_fingerprint},
        .deadline = input->deadline,
        .replay = input->replay,
        .refused = input->refused,
    };
}

/* --- PspJob --------------------------------------------------------------------------------- */

static void make_psp_job(union any_record *into, size_t variant)
{
    (void)variant;
    into->psp_job = (struct pay_psp_job){
        .job_id = TEXT("job_id"),
        .kind = (enum pay_job_kind)SECOND,
        .payment_id = TEXT(SAMPLE_PAYMENT_ID),
        .merchant_id = TEXT("merchant_id"),
        .attempt_id = TEXT("attempt_id"),
        .action_id = TEXT("action_id"),
        .request_no = TEXT("request_no"),
        .psp = TEXT("psp"),
        .psp_account = TEXT("psp_account"),
        .method = TEXT("method"),
        .provider_reference = TEXT("provider_reference"),
        .references = two_references,
        .reference_count = 2,
        .amount_minor = sample_number("amount_minor"),
        .attempt_amount_minor = sample_number("attempt_amount_minor"),
        .currency = "EUR",
        .capture_mode = (enum pay_capture_mode)SECOND,
        .is_final = false,
        .params = sealed,
        .notify_url = TEXT("notify_url"),
        .description = TEXT("description"),
        .reason_code = TEXT("reason_code"),
        .expires_at_us = sample_number("expires_at"),
        .not_after_us = sample_number("not_after"),
        .about_job_id = TEXT("about_job_id"),
        .try_no = (int)sample_number("try"),
        .traceparent = TEXT(SAMPLE_TRACEPARENT),
    };
}

static void make_small_psp_job(union any_record *into, size_t variant)
{
    struct pay_psp_job *job = &into->psp_job;

    make_psp_job(into, variant);
    *job = (struct pay_psp_job){
        .job_id = job->job_id,
        .kind = job->kind,
        .payment_id = job->payment_id,
        .merchant_id = job->merchant_id,
        .attempt_id = job->attempt_id,
        .request_no = job->request_no,
        .psp = job->psp,
        .psp_account = job->psp_account,
        .method = job->method,
        .currency = "EUR",
        .is_final = true,
        .not_after_us = job->not_after_us,
        .try_no = 1,
    };
}

/* --- PaymentEvent --------------------------------------------------------------------------- */

static struct pay_event_totals totals(void)
{
    return (struct pay_event_totals){
        true,
        sample_number("authorized_minor"),
        sample_number("capture_reserved_minor"),
        sample_number("captured_minor"),
        sample_number("refund_reserved_minor"),
        sample_number("refunded_minor"),
        sample_number("withdrawn_minor"),
    };
}

static void make_payment_event(union any_record *into, size_t variant)
{
    (void)variant;
    into->payment_event = (struct pay_payment_event){
        .event_id = TEXT("event_id"),
        .type = (enum pay_fact_type)SECOND,
        .payment_id = TEXT(SAMPLE_PAYMENT_ID),
        .merchant_id = TEXT("merchant_id"),
        .merchant_order_no = TEXT("merchant_order_no"),
        .sequence = sample_number("sequence"),
        .aggregate_id = TEXT("aggregate_id"),
        .attempt_id = TEXT("attempt_id"),
        .previous_status = TEXT("previous_status"),
        .status = TEXT("status"),
        .order_status = TEXT("order_status"),
        .has_amount = true,
        .amount_minor = sample_number("amount_minor"),
        .currency = "EUR",
        .totals = totals(),
        .reason_code = TEXT("reason_code"),
        .failure_class = (enum pay_failure_class)SECOND,
        .failure_code = TEXT("failure_code"),
        .evidence_level = PAY_EVIDENCE_SYNC_RESPONSE,
        .psp = TEXT("psp"),
        .psp_account = TEXT("psp_account"),
        .method = TEXT("method"),
        .provider_reference = TEXT("provider_reference"),
        .action = action(),
        .dispute = dispute(),
        .settlement = settlement(),
        .review = {TEXT("case_id"), TEXT("kind"), true, sample_number("proposed_refund_minor"),
                   TEXT("resolution_code")},
        .command = {TEXT("caller"), TEXT("command_id"), TEXT("command_type"), TEXT("result_id")},
        .withheld = {TEXT("event_id"), TEXT("type")},
        .occurred_at_us = sample_number("occurred_at"),
        .decided_at_us = sample_number("decided_at"),
        .traceparent = TEXT(SAMPLE_TRACEPARENT),
    };
}

static void make_small_payment_event(union any_record *into, size_t variant)
{
    struct pay_payment_event *fact = &into->payment_event;

    make_payment_event(into, variant);
    *fact = (struct pay_payment_event){
        .event_id = fact->event_id,
        .payment_id = PAY_STR(""),
        .merchant_id = fact->merchant_id,
        .aggregate_id = fact->aggregate_id,
        .reason_code = fact->reason_code,
        .evidence_level = PAY_EVIDENCE_LOCAL,
        .decided_at_us = fact->decided_at_us,
    };
}

/* --- DeadLetter ----------------------------------------------------------------------------- */

static void make_dead_letter(union any_record *into, size_t variant)
{
    static const struct pay_dead_header headers[] = {{ITEXT("name"), IBYTES("value")},
                                                     {ITEXT("name"), IBYTES("value")}};
    (void)variant;
    into->dead_letter = (struct pay_dead_letter){
        .dead_letter_id = TEXT("dead_letter_id"),
        .service = TEXT("service"),
        .service_version = TEXT("service_version"),
        .topic = TEXT("topic"),
        .partition = (int)sample_number("partition"),
        .offset = sample_number("offset"),
        .key = BYTES("key"),
        .headers = headers,
        .header_count = 2,
        .value = BYTES("value"),
        .sealed_value = sealed,
        .reason = (enum pay_dead_reason)SECOND,
        .text = TEXT("text"),
        .first_failed_at_us = sample_number("first_failed_at"),
        .last_failed_at_us = sample_number("last_failed_at"),
        .tries = (int)sample_number("tries"),
        .traceparent = TEXT(SAMPLE_TRACEPARENT),
    };
}

static void make_small_dead_letter(union any_record *into, size_t variant)
{
    static const struct pay_dead_header headers[] = {{ITEXT("name"), {NULL, 0}}};
    struct pay_dead_letter *letter = &into->dead_letter;

    make_dead_letter(into, variant);
    letter->key = (struct pay_bytes){NULL, 0};
    letter->value = (struct pay_bytes){NULL, 0};
    letter->headers = headers;
    letter->header_count = 1;
    letter->sealed_value = (struct pay_sealed){0};
    letter->traceparent = (struct pay_str){NULL, 0};
}

/* --- One shape for all ---------------------------------------------------------------------- */

#define ADAPT(name_)                                                                               \
    static enum pay_status encode_##name_(struct pay_codec *codec, const union any_record *record, \
                                          struct pay_buf *out, struct pay_err *err)                \
    {                                                                                              \
        return pay_##name_##_encode(codec, &record->name_, out, err);                              \
    }                                                                                              \
    static enum pay_status decode_##name_(struct pay_codec *codec, struct pay_bytes value,         \
                                          struct pay_arena *arena, union any_record *ret_record,   \
                                          struct pay_err *err)                                     \
    {                                                                                              \
        return pay_##name_##_decode(codec, value, arena, &ret_record->name_, err);                 \
    }

ADAPT(raw_notification)
ADAPT(command)
ADAPT(command_secrets)
ADAPT(payment_input)
ADAPT(psp_job)
ADAPT(payment_event)
ADAPT(dead_letter)

#define CASE(name_, variants_) \
    {variants_, make_##name_, make_small_##name_, encode_##name_, decode_##name_}

const struct record_case record_cases[PAY_RECORD_COUNT] = {
    [PAY_RECORD_RAW_NOTIFICATION] = CASE(raw_notification, 1),
    [PAY_RECORD_COMMAND] = CASE(command, PAY_CMD_COUNT),
    [PAY_RECORD_COMMAND_SECRETS] = CASE(command_secrets, 1),
    [PAY_RECORD_PAYMENT_INPUT] = CASE(payment_input, PAY_WIRE_KIND_COUNT),
    [PAY_RECORD_PSP_JOB] = CASE(psp_job, 1),
    [PAY_RECORD_PAYMENT_EVENT] = CASE(payment_event, 1),
    [PAY_RECORD_DEAD_LETTER] = CASE(dead_letter, 1),
};
