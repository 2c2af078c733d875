/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memmem */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/contracts/samples.h"

#define ARENA_BYTES ((size_t)4 * 1024 * 1024)
#define OUT_BYTES ((size_t)2 * 1024 * 1024)

struct fixture {
    struct pay_codec *codec;
    struct pay_arena *arena;
    struct pay_buf out;
    struct pay_buf again;
    struct pay_err err;
    union any_record in, back;
};

static int set_up(void **state)
{
    struct fixture *f = test_calloc(1, sizeof *f);
    f->arena = pay_arena_new(ARENA_BYTES);
    f->out = pay_buf_make(OUT_BYTES);
    f->again = pay_buf_make(OUT_BYTES);
    *state = f;
    return pay_codec_new(&f->codec, &f->err) == PAY_OK && f->arena != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    f->codec = pay_codec_free(f->codec);
    f->arena = pay_arena_free(f->arena);
    pay_buf_free(&f->out);
    pay_buf_free(&f->again);
    test_free(f);
    return 0;
}

static enum pay_status encode(struct fixture *f, enum pay_record record)
{
    pay_buf_reset(&f->out);
    return record_cases[record].encode(f->codec, &f->in, &f->out, &f->err);
}

static enum pay_status decode(struct fixture *f, enum pay_record record, struct pay_bytes value)
{
    pay_arena_reset(f->arena);
    return record_cases[record].decode(f->codec, value, f->arena, &f->back, &f->err);
}

static void assert_refused(struct fixture *f, enum pay_status status, enum pay_codec_code code)
{
    assert_int_equal(status, PAY_REJECT);
    assert_int_equal(f->err.status, PAY_REJECT);
    assert_string_equal(pay_codec_code_name((enum pay_codec_code)f->err.code),
                        pay_codec_code_name(code));
}

/* --- Round trips ---------------------------------------------------------------------------- */

static void go_round(struct fixture *f, enum pay_record record)
{
    assert_int_equal(encode(f, record), PAY_OK);
    assert_int_equal(decode(f, record, pay_buf_bytes(&f->out)), PAY_OK);
    pay_buf_reset(&f->again);
    assert_int_equal(record_cases[record].encode(f->codec, &f->back, &f->again, &f->err), PAY_OK);
    assert_true(pay_bytes_eq(pay_buf_bytes(&f->out), pay_buf_bytes(&f->again)));
}

static void test_every_record_goes_round(void **state)
{
    struct fixture *f = *state;

    for (int record = 0; record < PAY_RECORD_COUNT; record++) {
        for (size_t variant = 0; variant < record_cases[record].variants; variant++) {
            record_cases[record].make(&f->in, variant);
            go_round(f, (enum pay_record)record);
            record_cases[record].make_small(&f->in, variant);
            go_round(f, (enum pay_record)record);
        }
    }
}

static void test_decoded_text_is_terminated_and_in_the_arena(void **state)
{
    struct fixture *f = *state;
    char copy[4096];

    record_cases[PAY_RECORD_PSP_JOB].make(&f->in, 0);
    assert_int_equal(encode(f, PAY_RECORD_PSP_JOB), PAY_OK);
    memcpy(copy, f->out.data, f->out.len);
    assert_int_equal(decode(f, PAY_RECORD_PSP_JOB, (struct pay_bytes){(uint8_t *)copy, f->out.len}),
                     PAY_OK);
    memset(copy, 'x', sizeof copy); /* Nothing is borrowed from the input. */
    const struct pay_psp_job *job = &f->back.psp_job;
    assert_string_equal(job->job_id.ptr, "job_id");
    assert_string_equal(job->references[1].reference.ptr, "reference");
    assert_memory_equal(job->params.ciphertext.ptr, "ciphertext", 10);
    assert_string_equal(job->currency, "EUR");
    assert_int_equal(job->kind, PAY_JOB_CONFIRM);
    assert_int_equal(job->try_no, sample_number("try"));
}

static void test_absent_is_not_empty(void **state)
{
    struct fixture *f = *state;

    record_cases[PAY_RECORD_PAYMENT_EVENT].make_small(&f->in, 0);
    f->in.payment_event.status = PAY_STR("");
    assert_int_equal(encode(f, PAY_RECORD_PAYMENT_EVENT), PAY_OK);
    assert_int_equal(decode(f, PAY_RECORD_PAYMENT_EVENT, pay_buf_bytes(&f->out)), PAY_OK);
    assert_non_null(f->back.payment_event.status.ptr);
    assert_int_equal(f->back.payment_event.status.len, 0);
    assert_null(f->back.payment_event.previous_status.ptr);
    assert_false(f->back.payment_event.has_amount);
    assert_false(f->back.payment_event.totals.is_set);
    assert_string_equal(f->back.payment_event.currency, "");
    assert_int_equal(f->back.payment_event.occurred_at_us, 0);
}

static void test_a_failed_decode_leaves_the_struct(void **state)
{
    struct fixture *f = *state;

    record_cases[PAY_RECORD_PSP_JOB].make(&f->in, 0);
    assert_int_equal(encode(f, PAY_RECORD_PSP_JOB), PAY_OK);
    memset(&f->back, 0x5a, sizeof f->back);
    const union any_record before = f->back;
    const struct pay_bytes cut = {f->out.data, f->out.len - 1};
    assert_refused(f, decode(f, PAY_RECORD_PSP_JOB, cut), PAY_CODEC_MALFORMED);
    assert_memory_equal(&before, &f->back, sizeof before);
}

/* --- Words ---------------------------------------------------------------------------------- */

#define WORDS(name_)                                          \
    static const char *word_##name_(int value)                \
    {                                                         \
        return pay_##name_##_name((enum pay_##name_)(value)); \
    }
WORDS(event_type)
WORDS(fact_type)
WORDS(command_type)
WORDS(job_kind)
WORDS(source)
WORDS(evidence)
WORDS(failure_class)
WORDS(reference_kind)
WORDS(capture_mode)
WORDS(query_by)
WORDS(action_type)
WORDS(wire_kind)
WORDS(dead_reason)

/* The first enum of that name in the schema's text has these symbols; white space apart. */
static void assert_symbols(const char *record, const char *enumeration, const char *symbols)
{
    static char text[65536];
    char path[512];
    char wanted[4352];
    size_t len = 0;

    (void)snprintf(path, sizeof path, "%s/../schemas/avro/%s.avsc", PAY_TEST_DATA, record);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fail_msg("cannot read %s", path);
        return;
    }
    for (int c = fgetc(file); c != EOF && len < sizeof text - 1; c = fgetc(file)) {
        if (c != ' ' && c != '\n') {
            text[len++] = (char)c;
        }
    }
    (void)fclose(file);
    text[len] = '\0';
    (void)snprintf(wanted, sizeof wanted, "\"name\":\"%s\",", enumeration);
    const char *at = strstr(text, wanted);
    assert_non_null(at);
    at = strstr(at, "\"symbols\":[");
    assert_non_null(at);
    (void)snprintf(wanted, sizeof wanted, "\"symbols\":[%s]", symbols);
    assert_memory_equal(at, wanted, strlen(wanted));
}

/* The C enums follow the schema's symbols in order. The text of the schema is the witness. */
static void test_enums_are_the_symbols_in_order(void **state)
{
    static const struct {
        const char *record, *enumeration;
        int first, count;
        const char *(*word)(int);
    } cases[] = {
        {"PaymentInput", "EventType", 0, PAY_EV_COUNT, word_event_type},
        {"PaymentInput", "InputKind", 0, PAY_WIRE_KIND_COUNT, word_wire_kind},
        {"PaymentInput", "Source", 0, PAY_SOURCE_COUNT, word_source},
        {"PaymentInput", "EvidenceLevel", PAY_EVIDENCE_LOCAL, PAY_EVIDENCE_COUNT, word_evidence},
        {"PaymentInput", "FailureClass", 0, PAY_FAILURE_CLASS_COUNT, word_failure_class},
        {"PaymentInput", "ReferenceKind", 0, PAY_REFERENCE_KIND_COUNT, word_reference_kind},
        {"PaymentInput", "QueryBy", 0, PAY_QUERY_BY_COUNT, word_query_by},
        {"PaymentInput", "CustomerActionType", 0, PAY_ACTION_TYPE_COUNT, word_action_type},
        {"PaymentEvent", "PaymentEventType", 0, PAY_FACT_COUNT, word_fact_type},
        {"PaymentEvent", "EvidenceLevel", PAY_EVIDENCE_LOCAL, PAY_EVIDENCE_COUNT, word_evidence},
        {"PaymentEvent", "FailureClass", 0, PAY_FAILURE_CLASS_COUNT, word_failure_class},
        {"Command", "CommandType", 0, PAY_CMD_COUNT, word_command_type},
        {"Command", "CaptureMode", 0, PAY_CAPTURE_MODE_COUNT, word_capture_mode},
        {"PspJob", "JobKind", 0, PAY_JOB_KIND_COUNT, word_job_kind},
        {"PspJob", "CaptureMode", 0, PAY_CAPTURE_MODE_COUNT, word_capture_mode},
        {"DeadLetter", "DeadLetterReason", 0, PAY_DEAD_REASON_COUNT, word_dead_reason},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char symbols[4096] = "";
        size_t at = 0;
        for (int value = cases[i].first; value < cases[i].count; value++) {
            at += (size_t)snprintf(symbols + at, sizeof symbols - at, "%s\"%s\"",
                                   value == cases[i].first ? "" : ",", cases[i].word(value));
        }
        if (strcmp(cases[i].enumeration, "EvidenceLevel") == 0) {
            (void)snprintf(symbols + at, sizeof symbols - at, ",\"UNRECOGNIZED\"");
        }
        assert_symbols(cases[i].record, cases[i].enumeration, symbols);
    }
}

/* --- Bounds --------------------------------------------------------------------------------- */

static void test_bounds_hold_when_writing(void **state)
{
    struct fixture *f = *state;
    static char text[2100];
    memset(text, 'x', sizeof text);
    const struct {
        size_t offset, fits;
    } cases[] = {
        {offsetof(struct pay_psp_job, job_id), 63},
        {offsetof(struct pay_psp_job, psp), 32},
        {offsetof(struct pay_psp_job, psp_account), 32},
        {offsetof(struct pay_psp_job, merchant_id), 64},
        {offsetof(struct pay_psp_job, provider_reference), 255},
        {offsetof(struct pay_psp_job, description), 127},
        {offsetof(struct pay_psp_job, notify_url), 2048},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        record_cases[PAY_RECORD_PSP_JOB].make(&f->in, 0);
        struct pay_str value = {text, cases[i].fits};
        memcpy((char *)&f->in + cases[i].offset, &value, sizeof value);
        go_round(f, PAY_RECORD_PSP_JOB);
        value.len++;
        memcpy((char *)&f->in + cases[i].offset, &value, sizeof value);
        assert_refused(f, encode(f, PAY_RECORD_PSP_JOB), PAY_CODEC_TOO_LARGE);
        assert_int_equal(f->out.len, 0);
    }
}

static void test_transport_key_has_200_bytes(void **state)
{
    struct fixture *f = *state;
    char text[201];

    memset(text, 'k', sizeof text);
    record_cases[PAY_RECORD_PAYMENT_INPUT].make(&f->in, PAY_WIRE_PSP_EVENT);
    f->in.payment_input.transport_key = (struct pay_str){text, 200};
    go_round(f, PAY_RECORD_PAYMENT_INPUT);
    f->in.payment_input.transport_key.len = 201;
    assert_refused(f, encode(f, PAY_RECORD_PAYMENT_INPUT), PAY_CODEC_TOO_LARGE);
}

static void test_a_notification_of_the_maximum(void **state)
{
    struct fixture *f = *state;
    static uint8_t body[PAY_NOTIFICATION_BODY_MAX + 1];
    static char name[255];
    struct pay_http_header_line lines[PAY_NOTIFICATION_HEADERS_MAX + 1];
    struct pay_raw_notification *raw = &f->in.raw_notification;

    memset(name, 'n', sizeof name);
    for (size_t i = 0; i <= PAY_NOTIFICATION_HEADERS_MAX; i++) { /* 327 bytes each */
        lines[i] = (struct pay_http_header_line){{name, sizeof name}, {body, 72}};
    }
    record_cases[PAY_RECORD_RAW_NOTIFICATION].make(&f->in, 0);
    raw->headers = lines;
    raw->header_count = PAY_NOTIFICATION_HEADERS_MAX;
    raw->body = (struct pay_bytes){body, PAY_NOTIFICATION_BODY_MAX};
    go_round(f, PAY_RECORD_RAW_NOTIFICATION);
    raw->body.len++;
    assert_refused(f, encode(f, PAY_RECORD_RAW_NOTIFICATION), PAY_CODEC_TOO_LARGE);
    raw->body.len--;
    raw->header_count++;
    assert_refused(f, encode(f, PAY_RECORD_RAW_NOTIFICATION), PAY_CODEC_TOO_LARGE);
    raw->header_count--;
    lines[0].value.len += 70; /* 32,770 bytes together. */
    assert_refused(f, encode(f, PAY_RECORD_RAW_NOTIFICATION), PAY_CODEC_TOO_LARGE);
    assert_int_equal(f->out.len, 0);
}

static void test_content_rules(void **state)
{
    struct fixture *f = *state;
    static const struct {
        struct pay_str code;
        bool good;
    } cases[] = {
        {{"card_declined", 13}, true}, {{"ACQ.PAY-1", 9}, true}, {{"with space", 10}, false},
        {{"nul\0", 4}, false},         {{"\xc3\xa9", 2}, false}, {{"", 0}, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        record_cases[PAY_RECORD_PAYMENT_INPUT].make(&f->in, PAY_WIRE_PSP_EVENT);
        f->in.payment_input.event.failure_code = cases[i].code;
        const enum pay_status status = encode(f, PAY_RECORD_PAYMENT_INPUT);
        assert_int_equal(status == PAY_OK, cases[i].good);
    }
    record_cases[PAY_RECORD_PAYMENT_INPUT].make(&f->in, PAY_WIRE_PSP_EVENT);
    f->in.payment_input.event.psp_event_type = (struct pay_str){"\xff", 1};
    assert_refused(f, encode(f, PAY_RECORD_PAYMENT_INPUT), PAY_CODEC_MALFORMED);
    record_cases[PAY_RECORD_PAYMENT_INPUT].make(&f->in, PAY_WIRE_PSP_EVENT);
    memcpy(f->in.payment_input.event.amount.currency, "eur", 4);
    assert_refused(f, encode(f, PAY_RECORD_PAYMENT_INPUT), PAY_CODEC_MALFORMED);
}

static void test_what_is_missing_or_no_symbol_is_refused(void **state)
{
    struct fixture *f = *state;

    record_cases[PAY_RECORD_PSP_JOB].make(&f->in, 0);
    f->in.psp_job.job_id = (struct pay_str){NULL, 0};
    assert_refused(f, encode(f, PAY_RECORD_PSP_JOB), PAY_CODEC_MALFORMED);
    record_cases[PAY_RECORD_PSP_JOB].make(&f->in, 0);
    f->in.psp_job.kind = PAY_JOB_KIND_COUNT;
    assert_refused(f, encode(f, PAY_RECORD_PSP_JOB), PAY_CODEC_MALFORMED);
    record_cases[PAY_RECORD_PSP_JOB].make(&f->in, 0);
    f->in.psp_job.amount_minor = -1;
    assert_refused(f, encode(f, PAY_RECORD_PSP_JOB), PAY_CODEC_MALFORMED);
    record_cases[PAY_RECORD_COMMAND].make(&f->in, PAY_CMD_FORCE_CLOSE_UNKNOWN);
    f->in.command.controlled.to_status = PAY_STR("CANCELED");
    assert_refused(f, encode(f, PAY_RECORD_COMMAND), PAY_CODEC_MALFORMED);
    record_cases[PAY_RECORD_COMMAND].make(&f->in, PAY_CMD_OVERRIDE_BLOCK);
    f->in.command.controlled.attachment_count = 0;
    assert_refused(f, encode(f, PAY_RECORD_COMMAND), PAY_CODEC_MALFORMED);
}

static void test_only_the_part_that_the_kind_names_is_written(void **state)
{
    struct fixture *f = *state;
    size_t lens[2] = {0, 0};

    for (int i = 0; i < 2; i++) {
        record_cases[PAY_RECORD_COMMAND].make(&f->in, PAY_CMD_CAPTURE);
        if (i == 1) { /* Left over from another command: not written. */
            f->in.command.approval.request_id = PAY_STR("left over");
        }
        assert_int_equal(encode(f, PAY_RECORD_COMMAND), PAY_OK);
        lens[i] = f->out.len;
    }
    assert_int_equal(lens[0], lens[1]);
}

static void test_absent_numbers_of_a_command(void **state)
{
    struct fixture *f = *state;

    record_cases[PAY_RECORD_COMMAND].make_small(&f->in, PAY_CMD_CREATE_PAYMENT);
    go_round(f, PAY_RECORD_COMMAND);
    assert_int_equal(f->back.command.create_payment.retry_until_expiry, -1);
    assert_int_equal(f->back.command.create_payment.expires_at_us, 0);
    assert_int_equal(f->back.command.controlled.expected_version, -1);
    record_cases[PAY_RECORD_COMMAND].make_small(&f->in, PAY_CMD_CORRECT_STATE);
    go_round(f, PAY_RECORD_COMMAND);
    assert_int_equal(f->back.command.controlled.expected_version, -1);
    assert_int_equal(f->back.command.create_payment.retry_until_expiry, -1);
    record_cases[PAY_RECORD_COMMAND].make(&f->in, PAY_CMD_FORCE_CLOSE_UNKNOWN);
    go_round(f, PAY_RECORD_COMMAND);
    assert_true(pay_str_eq_c(f->back.command.controlled.to_status, "SUCCEEDED"));
}

/* --- Stored form, secrets, signed commands -------------------------------------------------- */

static void test_the_stored_form_has_no_action_and_no_evidence(void **state)
{
    struct fixture *f = *state;

    record_cases[PAY_RECORD_PAYMENT_INPUT].make(&f->in, PAY_WIRE_PSP_EVENT);
    f->in.payment_input.event.action.data = PAY_STR("secret-of-the-psp");
    pay_buf_reset(&f->out);
    assert_int_equal(
        pay_payment_input_encode_stored(f->codec, &f->in.payment_input, &f->out, &f->err), PAY_OK);
    assert_int_equal(decode(f, PAY_RECORD_PAYMENT_INPUT, pay_buf_bytes(&f->out)), PAY_OK);
    assert_false(f->back.payment_input.event.action.is_set);
    assert_null(f->back.payment_input.evidence.ciphertext.ptr);
    assert_true(f->back.payment_input.event.dispute.is_set);
    assert_true(f->in.payment_input.event.action.is_set);
    assert_null(memmem(f->out.data, f->out.len, "secret-of-the-psp", 17));
}

static void test_params_of_one_route(void **state)
{
    struct fixture *f = *state;

    record_cases[PAY_RECORD_COMMAND_SECRETS].make(&f->in, 0);
    pay_buf_reset(&f->out);
    assert_int_equal(
        pay_submit_params_encode(f->codec, &f->in.command_secrets, 1, &f->out, &f->err), PAY_OK);
    assert_int_equal(decode(f, PAY_RECORD_COMMAND_SECRETS, pay_buf_bytes(&f->out)), PAY_OK);
    assert_int_equal(f->back.command_secrets.param_count, 1);
    assert_null(f->back.command_secrets.redirect_data.ptr);
    assert_true(pay_str_eq_c(f->back.command_secrets.params[0].extra[0].value, "value"));
    assert_refused(f,
                   pay_submit_params_encode(f->codec, &f->in.command_secrets, 2, &f->out, &f->err),
                   PAY_CODEC_MALFORMED);
}

static void test_extra_names_are_unique(void **state)
{
    struct fixture *f = *state;
    const struct pay_extra_param twice[] = {{PAY_STR("a"), PAY_STR("1")},
                                            {PAY_STR("a"), PAY_STR("2")}};
    const struct pay_submit_params params = {.extra = twice, .extra_count = 2};

    record_cases[PAY_RECORD_COMMAND_SECRETS].make(&f->in, 0);
    f->in.command_secrets.params = &params;
    f->in.command_secrets.param_count = 1;
    assert_refused(f, encode(f, PAY_RECORD_COMMAND_SECRETS), PAY_CODEC_MALFORMED);
}

static void test_signed_command_in_either_framing(void **state)
{
    struct fixture *f = *state;
    uint8_t print[8];
    uint8_t framed[1024] = {0, 0, 0, 1, 2};
    const struct pay_bytes fingerprint = {print, 8};
    struct pay_command *command = &f->back.command;

    record_cases[PAY_RECORD_COMMAND].make(&f->in, PAY_CMD_CAPTURE);
    assert_int_equal(encode(f, PAY_RECORD_COMMAND), PAY_OK);
    const struct pay_bytes value = pay_buf_bytes(&f->out);
    const struct pay_bytes registry = {framed, value.len - 5};
    memcpy(framed + 5, value.ptr + 10, value.len - 10);
    pay_fingerprint_put(print, pay_codec_fingerprint(f->codec, PAY_RECORD_COMMAND));
    assert_int_equal(
        pay_command_decode_signed(f->codec, value, fingerprint, f->arena, command, &f->err),
        PAY_OK);
    assert_int_equal(
        pay_command_decode_signed(f->codec, registry, fingerprint, f->arena, command, &f->err),
        PAY_OK);
    assert_true(pay_str_eq_c(command->money.attempt_id, "attempt_id"));
    print[0] ^= 1;
    assert_refused(
        f, pay_command_decode_signed(f->codec, value, fingerprint, f->arena, command, &f->err),
        PAY_CODEC_MALFORMED);
    assert_refused(
        f, pay_command_decode_signed(f->codec, registry, fingerprint, f->arena, command, &f->err),
        PAY_CODEC_SCHEMA_UNKNOWN);
    assert_refused(f,
                   pay_command_decode_signed(f->codec, value, (struct pay_bytes){print, 7},
                                             f->arena, command, &f->err),
                   PAY_CODEC_MALFORMED);
}

static void test_signature_prefix_is_16_bytes(void **state)
{
    (void)state;
    assert_int_equal(PAY_COMMAND_SIGNATURE_PREFIX_BYTES, 16);
    assert_memory_equal(PAY_COMMAND_SIGNATURE_PREFIX, "payfact-command\0", 16);
}

/* --- Schemas and framing -------------------------------------------------------------------- */

/* From fastavro: a change of any of these is a new version and needs its copy in history. */
static void test_fingerprints(void **state)
{
    struct fixture *f = *state;
    static const uint64_t expected[PAY_RECORD_COUNT] = {
        [PAY_RECORD_RAW_NOTIFICATION] = 0xc0ff5ff70059bbfe,
        [PAY_RECORD_COMMAND] = 0xb062e50ecfce917f,
        [PAY_RECORD_COMMAND_SECRETS] = 0x45bd3e3dc0ed0854,
        [PAY_RECORD_PAYMENT_INPUT] = 0x44fa3ed9f712a37d,
        [PAY_RECORD_PSP_JOB] = 0xb5d5781a59d40250,
        [PAY_RECORD_PAYMENT_EVENT] = 0x4ba1f2a4ba847ff8,
        [PAY_RECORD_DEAD_LETTER] = 0xf17391c834b2f3da,
    };
    for (int record = 0; record < PAY_RECORD_COUNT; record++) {
        assert_true(pay_codec_fingerprint(f->codec, (enum pay_record)record) == expected[record]);
        assert_string_not_equal(pay_record_name((enum pay_record)record), "?");
        assert_true(pay_record_bytes_max((enum pay_record)record) >= 64 * (size_t)1024);
    }
}

static void test_framing(void **state)
{
    struct fixture *f = *state;
    uint64_t found = 0;
    static const uint8_t empty[1];

    record_cases[PAY_RECORD_PSP_JOB].make(&f->in, 0);
    assert_int_equal(encode(f, PAY_RECORD_PSP_JOB), PAY_OK);
    assert_int_equal(pay_codec_fingerprint_of(f->codec, PAY_RECORD_PSP_JOB, pay_buf_bytes(&f->out),
                                              &found, &f->err),
                     PAY_OK);
    assert_true(found == pay_codec_fingerprint(f->codec, PAY_RECORD_PSP_JOB));
    f->out.data[2] ^= 0xff;
    assert_refused(f, decode(f, PAY_RECORD_PSP_JOB, pay_buf_bytes(&f->out)),
                   PAY_CODEC_SCHEMA_UNKNOWN);
    f->out.data[0] = 0x42;
    assert_refused(f, decode(f, PAY_RECORD_PSP_JOB, pay_buf_bytes(&f->out)), PAY_CODEC_MALFORMED);
    assert_refused(f, decode(f, PAY_RECORD_PSP_JOB, (struct pay_bytes){NULL, 0}),
                   PAY_CODEC_MALFORMED);
    assert_refused(f, decode(f, PAY_RECORD_PSP_JOB, (struct pay_bytes){empty, 0}),
                   PAY_CODEC_MALFORMED);
}

static bool find_schema(void *arg, enum pay_record record, uint32_t schema_id,
                        uint64_t *ret_fingerprint)
{
    *ret_fingerprint = pay_codec_fingerprint(arg, record);
    return schema_id == 0x01020304;
}

static void test_registry_framing_asks_the_finder(void **state)
{
    struct fixture *f = *state;
    uint8_t framed[4096] = {0, 1, 2, 3, 4};

    record_cases[PAY_RECORD_PAYMENT_EVENT].make(&f->in, 0);
    assert_int_equal(encode(f, PAY_RECORD_PAYMENT_EVENT), PAY_OK);
    memcpy(framed + 5, f->out.data + 10, f->out.len - 10);
    const struct pay_bytes value = {framed, f->out.len - 5};
    assert_refused(f, decode(f, PAY_RECORD_PAYMENT_EVENT, value), PAY_CODEC_SCHEMA_UNKNOWN);
    pay_codec_on_schema_id(f->codec, find_schema, f->codec);
    assert_int_equal(decode(f, PAY_RECORD_PAYMENT_EVENT, value), PAY_OK);
    framed[4] = 5;
    assert_refused(f, decode(f, PAY_RECORD_PAYMENT_EVENT, value), PAY_CODEC_SCHEMA_UNKNOWN);
}

static void test_write_version(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(pay_codec_write_version(f->codec, PAY_RECORD_PSP_JOB, 1, &f->err), PAY_OK);
    assert_int_equal(pay_codec_write_version(f->codec, PAY_RECORD_PSP_JOB, 0, &f->err), PAY_OK);
    assert_int_equal(pay_codec_write_version(f->codec, PAY_RECORD_PSP_JOB, 99, &f->err),
                     PAY_REJECT);
}

static void test_learning_ends(void **state)
{
    struct fixture *f = *state;
    char schema[512];
    uint64_t learned = 0;
    enum pay_status status = PAY_OK;
    int count = 0;

    /* Different by a field's name each time. */
    for (; count < 2 * PAY_CODEC_WRITERS_MAX && status == PAY_OK; count++) {
        (void)snprintf(
            schema, sizeof schema,
            "{\"type\":\"record\",\"name\":\"CommandSecrets\",\"fields\":[{\"name\":\"salt\","
            "\"type\":\"bytes\"},{\"name\":\"f%d\",\"type\":\"int\"}]}",
            count);
        status = pay_codec_learn(f->codec, PAY_RECORD_COMMAND_SECRETS, pay_str_of(schema), &learned,
                                 &f->err);
    }
    assert_int_equal(status, PAY_REJECT);
    assert_int_equal(count, PAY_CODEC_WRITERS_MAX);
    assert_int_equal(pay_codec_learn(f->codec, PAY_RECORD_COMMAND_SECRETS,
                                     (struct pay_str){NULL, 0}, &learned, &f->err),
                     PAY_REJECT);
}

static void test_a_full_arena_is_not_the_inputs_fault(void **state)
{
    struct fixture *f = *state;
    struct pay_arena *tiny = pay_arena_new(64);

    record_cases[PAY_RECORD_PSP_JOB].make(&f->in, 0);
    assert_int_equal(encode(f, PAY_RECORD_PSP_JOB), PAY_OK);
    const enum pay_status status = record_cases[PAY_RECORD_PSP_JOB].decode(
        f->codec, pay_buf_bytes(&f->out), tiny, &f->back, &f->err);
    (void)pay_arena_free(tiny); /* Always NULL. */
    assert_int_equal(status, PAY_RETRY);
    assert_int_equal(f->err.code, PAY_CODEC_NO_MEMORY);
}

static void test_dead_letter_reasons_follow_codes(void **state)
{
    (void)state;
    assert_int_equal(pay_dead_reason_of_code(PAY_CODEC_MALFORMED), PAY_DEAD_MALFORMED);
    assert_int_equal(pay_dead_reason_of_code(PAY_CODEC_SCHEMA_UNKNOWN), PAY_DEAD_SCHEMA_UNKNOWN);
    assert_int_equal(pay_dead_reason_of_code(PAY_CODEC_TOO_LARGE), PAY_DEAD_TOO_LARGE);
    assert_int_equal(pay_dead_reason_of_code(PAY_CODEC_NO_MEMORY), PAY_DEAD_OTHER);
    assert_int_equal(pay_dead_reason_of_code(-1), PAY_DEAD_OTHER);
    assert_int_equal(pay_dead_reason_of_code(12345), PAY_DEAD_OTHER);
}

/* --- Threads -------------------------------------------------------------------------------- */

#define THREADS 4
#define TURNS 200

static bool go_round_alone(struct pay_codec *codec, struct pay_arena *arena, struct pay_buf *out)
{
    union any_record in;
    union any_record back;
    bool done = true;

    for (int turn = 0; turn < TURNS && done; turn++) {
        const struct record_case *with = &record_cases[turn % PAY_RECORD_COUNT];
        with->make(&in, 0);
        pay_arena_reset(arena);
        pay_buf_reset(out);
        done = with->encode(codec, &in, out, NULL) == PAY_OK &&
               with->decode(codec, pay_buf_bytes(out), arena, &back, NULL) == PAY_OK &&
               with->decode(codec, (struct pay_bytes){out->data, out->len - 1}, arena, &back,
                            NULL) == PAY_REJECT;
    }
    return done;
}

static void *run_thread(void *arg)
{
    bool *done = arg;
    struct pay_codec *codec = NULL;
    struct pay_arena *arena = pay_arena_new(1024 * (size_t)1024);
    struct pay_buf out = pay_buf_make(1024 * (size_t)1024);

    *done = arena != NULL && pay_codec_new(&codec, NULL) == PAY_OK &&
            go_round_alone(codec, arena, &out);
    pay_buf_free(&out);
    (void)pay_arena_free(arena); /* Always NULL, both. */
    (void)pay_codec_free(codec);
    return NULL;
}

static void test_one_codec_per_thread(void **state)
{
    pthread_t threads[THREADS];
    bool done[THREADS] = {false};

    (void)state;
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_thread, &done[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(done[i]);
    }
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_record_goes_round),
        TEST(test_decoded_text_is_terminated_and_in_the_arena),
        TEST(test_absent_is_not_empty),
        TEST(test_a_failed_decode_leaves_the_struct),
        TEST(test_enums_are_the_symbols_in_order),
        TEST(test_bounds_hold_when_writing),
        TEST(test_transport_key_has_200_bytes),
        TEST(test_a_notification_of_the_maximum),
        TEST(test_content_rules),
        TEST(test_what_is_missing_or_no_symbol_is_refused),
        TEST(test_only_the_part_that_the_kind_names_is_written),
        TEST(test_absent_numbers_of_a_command),
        TEST(test_the_stored_form_has_no_action_and_no_evidence),
        TEST(test_params_of_one_route),
        TEST(test_extra_names_are_unique),
        TEST(test_signed_command_in_either_framing),
        TEST(test_signature_prefix_is_16_bytes),
        TEST(test_fingerprints),
        TEST(test_framing),
        TEST(test_registry_framing_asks_the_finder),
        TEST(test_write_version),
        TEST(test_learning_ends),
        TEST(test_a_full_arena_is_not_the_inputs_fault),
        TEST(test_dead_letter_reasons_follow_codes),
        TEST(test_one_codec_per_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
