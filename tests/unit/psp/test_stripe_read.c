/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "common/psp/stripe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define PAYMENT "01JDZ5V6N8QWERTYPASDFGHJKZ"
#define ATTEMPT PAYMENT "A01"
#define NONE PAY_QUERY_BY_NONE
#define REFERENCE PAY_QUERY_BY_PSP_REFERENCE
#define NUMBER PAY_QUERY_BY_REQUEST_NUMBER
#define SEARCH PAY_QUERY_BY_SEARCH
#define REPLAY PAY_QUERY_BY_IDEMPOTENT_REPLAY

static const struct pay_reference intent_ref[] = {{PAY_REF_INTENT, {"pi_1", 4}}};

/** One answer. */
struct call {
    enum pay_job_kind kind;
    enum pay_query_by query_by;
    bool only_send;
    enum pay_psp_delivery delivery;
    int status;
    const char *body;
    const char *header, *value; /**< One header; NULL: none. */
};

static struct pay_psp_request_job job_of(const struct call *call)
{
    const bool is_refund = call->kind == PAY_JOB_REFUND || call->kind == PAY_JOB_QUERY_REFUND;
    const bool is_capture = call->kind == PAY_JOB_CAPTURE || call->kind == PAY_JOB_QUERY_CAPTURE;
    const bool is_bound =
        call->kind != PAY_JOB_SUBMIT && call->query_by != SEARCH && call->query_by != REPLAY;
    struct pay_psp_request_job job = {.kind = call->kind,
                                      .job_id = PAY_STR(ATTEMPT ".JOB"),
                                      .payment_id = PAY_STR(PAYMENT),
                                      .attempt_id = PAY_STR(ATTEMPT),
                                      .request_no = PAY_STR(ATTEMPT),
                                      .number = 1,
                                      .references = intent_ref,
                                      .reference_count = is_bound ? 1 : 0,
                                      .amount_minor = 2599,
                                      .currency = PAY_STR("EUR"),
                                      .is_final = true};
    if (is_refund || is_capture) {
        job.action_id = is_refund ? PAY_STR(PAYMENT "R01") : PAY_STR(PAYMENT "C01");
        job.request_no = job.action_id;
    }
    return job;
}

static struct pay_psp_reading reading_of(struct fixture *fix, const struct call *call)
{
    struct pay_psp_reading reading = {0};
    const struct pay_psp_request_job job = job_of(call);
    const struct pay_psp_header headers[] = {{PAY_STR("request-id"), PAY_STR("req_1")},
                                             {pay_str_of(call->header), pay_str_of(call->value)}};
    const struct pay_psp_response response = {
        .job = &job,
        .send_no = 2,
        .only_send = call->only_send,
        .query_by = call->query_by,
        .asked_at_us = 77,
        .delivery = call->delivery,
        .http_status = call->delivery == PAY_PSP_ANSWERED ? call->status : 0,
        .headers = headers,
        .header_count = call->header == NULL ? 1 : 2,
        .body = {(const uint8_t *)call->body, call->body == NULL ? 0 : strlen(call->body)}};
    pay_arena_reset(fix->arena);
    assert_int_equal(pay_psp_stripe.read(&fix->account, &response, fix->arena, &reading, NULL),
                     PAY_OK);
    assert_true(reading.items.count > 0);
    return reading;
}

/* ---- Each row of the outcome table, for each kind of money call ---- */

#define ERROR(type, code) \
    "{\"error\":{\"type\":\"" type "\",\"code\":\"" code "\",\"message\":\"m\"}}"
#define INTENT_WITH(status, more)                                                               \
    "{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"livemode\":false,\"status\":\"" status    \
    "\",\"amount\":2599,\"amount_received\":2599,\"amount_capturable\":2599,"                   \
    "\"currency\":\"eur\",\"client_secret\":\"pi_1_secret_s\",\"latest_charge\":\"ch_1\"," more \
    "\"metadata\":{\"order_id\":\"" ATTEMPT "\"}}"
#define INTENT(status) INTENT_WITH(status, "")
#define CARD_ERROR                                                                     \
    "{\"error\":{\"type\":\"card_error\",\"code\":\"card_declined\",\"decline_code\":" \
    "\"insufficient_funds\",\"payment_intent\":" INTENT("requires_payment_method") "}}"
#define REFUND(status)                                                                        \
    "{\"id\":\"re_1\",\"object\":\"refund\",\"status\":\"" status                             \
    "\",\"amount\":500,\"currency\":\"eur\",\"payment_intent\":\"pi_1\",\"charge\":\"ch_1\"," \
    "\"metadata\":{\"order_id\":\"" ATTEMPT "\",\"refund_ref\":\"" PAYMENT "R01\"}}"

#define UNK(kind) PAY_EV_##kind##_UNKNOWN
#define NO(kind) PAY_EV_##kind##_FAILED

/** SUBMIT, CONFIRM, CAPTURE, REFUND as the only send; as one of several all are UNKNOWN, unless
 * `always` says otherwise. */
static const struct {
    int status;
    bool refund_always; /**< REFUND is the same as one of several sends. */
    const char *body, *header, *value;
    enum pay_event_type only[4];
} refusals[] = {
    {400,
     false,
     ERROR("invalid_request_error", "parameter_missing"),
     NULL,
     NULL,
     {NO(ATTEMPT), PAY_EV_ATTEMPT_DECLINED, NO(CAPTURE), NO(REFUND)}},
    {400,
     false,
     ERROR("card_error", "incorrect_number"),
     NULL,
     NULL,
     {NO(ATTEMPT), PAY_EV_ATTEMPT_DECLINED, NO(CAPTURE), NO(REFUND)}},
    {400,
     false,
     ERROR("idempotency_error", "x"),
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {400,
     false,
     ERROR("api_error", "x"),
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {400,
     false,
     ERROR("invalid_request_error", "payment_intent_unexpected_state"),
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {400,
     false,
     ERROR("invalid_request_error", "charge_already_refunded"),
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {400,
     false,
     ERROR("invalid_request_error", "charge_already_captured"),
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {400,
     true,
     ERROR("invalid_request_error", "balance_insufficient"),
     NULL,
     NULL,
     {NO(ATTEMPT), PAY_EV_ATTEMPT_DECLINED, NO(CAPTURE), PAY_EV_REFUND_RETRY_SAME_NUMBER}},
    {400,
     false,
     "<html>bad request</html>",
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {400,
     false,
     "{\"error\":\"bad\"}",
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {400,
     false,
     ERROR("invalid_request_error", "x"),
     "Stripe-Should-Retry",
     "true",
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {400,
     false,
     ERROR("invalid_request_error", "x"),
     "Stripe-Should-Retry",
     "false",
     {NO(ATTEMPT), PAY_EV_ATTEMPT_DECLINED, NO(CAPTURE), NO(REFUND)}},
    {400,
     false,
     ERROR("invalid_request_error", "x"),
     "Idempotent-Replayed",
     "true",
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {401,
     false,
     ERROR("invalid_request_error", "x"),
     NULL,
     NULL,
     {NO(ATTEMPT), PAY_EV_ATTEMPT_DECLINED, NO(CAPTURE), NO(REFUND)}},
    {402,
     false,
     ERROR("card_error", "card_declined"),
     NULL,
     NULL,
     {NO(ATTEMPT), PAY_EV_ATTEMPT_DECLINED, NO(CAPTURE), NO(REFUND)}},
    {403,
     false,
     ERROR("invalid_request_error", "x"),
     NULL,
     NULL,
     {NO(ATTEMPT), PAY_EV_ATTEMPT_DECLINED, NO(CAPTURE), NO(REFUND)}},
    {403,
     false,
     "<html>forbidden</html>",
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {404,
     false,
     ERROR("invalid_request_error", "resource_missing"),
     NULL,
     NULL,
     {NO(ATTEMPT), PAY_EV_ATTEMPT_DECLINED, NO(CAPTURE), NO(REFUND)}},
    {401,
     false,
     "{\"message\":\"Unauthorized\"}",
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {403,
     false,
     "{\"error\":{\"message\":\"blocked\"}}",
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {404, false, "{}", NULL, NULL, {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {429, false, "{}", NULL, NULL, {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {409,
     true,
     ERROR("invalid_request_error", "lock_timeout"),
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), PAY_EV_REFUND_RETRY_SAME_NUMBER}},
    {409,
     false,
     ERROR("idempotency_error", "idempotency_key_in_use"),
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {424,
     false,
     ERROR("api_error", "x"),
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {429,
     true,
     ERROR("invalid_request_error", "rate_limit"),
     NULL,
     NULL,
     {NO(ATTEMPT), PAY_EV_ATTEMPT_DECLINED, NO(CAPTURE), PAY_EV_REFUND_RETRY_SAME_NUMBER}},
    {429,
     true,
     ERROR("invalid_request_error", "lock_timeout"),
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), PAY_EV_REFUND_RETRY_SAME_NUMBER}},
    {422,
     false,
     ERROR("invalid_request_error", "x"),
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {500,
     false,
     ERROR("api_error", "x"),
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {500,
     false,
     ERROR("invalid_request_error", "x"),
     "Stripe-Should-Retry",
     "false",
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {502, false, "", NULL, NULL, {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {503, false, "busy", NULL, NULL, {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {504, false, "{}", NULL, NULL, {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {302, false, "{}", NULL, NULL, {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {204, false, "", NULL, NULL, {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {200, false, "", NULL, NULL, {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {200,
     false,
     "{\"id\":\"pi_1\"",
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {200,
     false,
     "{\"object\":\"customer\"}",
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
    {200,
     false,
     ERROR("invalid_request_error", "x"),
     NULL,
     NULL,
     {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE), UNK(REFUND)}},
};

static const enum pay_job_kind money_kinds[] = {PAY_JOB_SUBMIT, PAY_JOB_CONFIRM, PAY_JOB_CAPTURE,
                                                PAY_JOB_REFUND};
static const enum pay_event_type unknown_of[] = {UNK(ATTEMPT), UNK(ATTEMPT), UNK(CAPTURE),
                                                 UNK(REFUND)};

static void check_refusal(struct fixture *fix, size_t row, size_t kind, bool only_send)
{
    const struct call call = {money_kinds[kind],
                              NONE,
                              only_send,
                              PAY_PSP_ANSWERED,
                              refusals[row].status,
                              refusals[row].body,
                              refusals[row].header,
                              refusals[row].value};
    const bool always = money_kinds[kind] == PAY_JOB_REFUND && refusals[row].refund_always;
    const enum pay_event_type wanted =
        only_send || always ? refusals[row].only[kind] : unknown_of[kind];
    const struct pay_psp_reading reading = reading_of(fix, &call);
    const struct pay_psp_item *item = &reading.items.items[0];
    if (item->event.type != wanted || reading.items.count != 1) {
        fail_msg("row %zu (%d), %s, only %d: %s", row, refusals[row].status,
                 pay_job_kind_name(money_kinds[kind]), only_send,
                 pay_event_type_name(item->event.type));
    }
    const bool is_unknown = wanted == unknown_of[kind];
    assert_int_equal(item->source, is_unknown ? PAY_SOURCE_LOCAL : PAY_SOURCE_SYNC);
    assert_string_equal(item->event.merchant_request_no.ptr, ATTEMPT);
    assert_string_equal(item->payment_id.ptr, PAYMENT);
    assert_true(item->event.call.is_set);
    assert_int_equal(item->event.call.send_no, 2);
    assert_int_equal(item->event.call.asked_at_us, 77);
    assert_int_equal(item->event.call.http_status, refusals[row].status);
    assert_string_equal(item->event.call.psp_request_id.ptr, "req_1");
    assert_int_equal(item->event.failure_class != PAY_FAILURE_NONE,
                     !is_unknown && wanted != PAY_EV_REFUND_RETRY_SAME_NUMBER);
}

/* A definite no needs Stripe's own error object, a status that says so, and no other send. */
static void test_every_refusal_of_every_money_call(void **state)
{
    for (size_t row = 0; row < sizeof refusals / sizeof refusals[0]; row++) {
        for (size_t kind = 0; kind < 4; kind++) {
            check_refusal(*state, row, kind, true);
            check_refusal(*state, row, kind, false);
        }
    }
}

/* What a replay is told is the first answer or nothing: no refusal of it is a no, or a "later". */
static void test_no_refusal_of_a_replay_says_anything(void **state)
{
    for (size_t row = 0; row < sizeof refusals / sizeof refusals[0]; row++) {
        for (size_t kind = 0; kind < 4; kind++) {
            const struct call call = {money_kinds[kind],
                                      REPLAY,
                                      false,
                                      PAY_PSP_ANSWERED,
                                      refusals[row].status,
                                      refusals[row].body,
                                      refusals[row].header,
                                      refusals[row].value};
            const struct pay_psp_reading reading = reading_of(*state, &call);
            assert_int_equal(reading.items.count, 1);
            assert_int_equal(reading.items.items[0].event.type, unknown_of[kind]);
        }
    }
}

static void test_no_answer_of_every_call(void **state)
{
    static const struct {
        enum pay_job_kind kind;
        enum pay_query_by query_by;
        enum pay_event_type unsent_only, unsent_again, unclear;
    } rows[] = {
        {PAY_JOB_SUBMIT, NONE, PAY_EV_ATTEMPT_NOT_SENT, UNK(ATTEMPT), UNK(ATTEMPT)},
        {PAY_JOB_CONFIRM, NONE, PAY_EV_ATTEMPT_NOT_SENT, UNK(ATTEMPT), UNK(ATTEMPT)},
        {PAY_JOB_CAPTURE, NONE, PAY_EV_CAPTURE_NOT_SENT, UNK(CAPTURE), UNK(CAPTURE)},
        {PAY_JOB_REFUND, NONE, PAY_EV_REFUND_NOT_SENT, UNK(REFUND), UNK(REFUND)},
        {PAY_JOB_CANCEL, NONE, PAY_EV_QUERY_FAILED, PAY_EV_QUERY_FAILED, PAY_EV_QUERY_FAILED},
        {PAY_JOB_QUERY, REFERENCE, PAY_EV_QUERY_FAILED, PAY_EV_QUERY_FAILED, PAY_EV_QUERY_FAILED},
        {PAY_JOB_QUERY, REPLAY, PAY_EV_QUERY_FAILED, PAY_EV_QUERY_FAILED, PAY_EV_QUERY_FAILED},
        {PAY_JOB_QUERY_REFUND, NUMBER, PAY_EV_QUERY_FAILED, PAY_EV_QUERY_FAILED,
         PAY_EV_QUERY_FAILED},
        {PAY_JOB_QUERY_CAPTURE, NUMBER, PAY_EV_QUERY_FAILED, PAY_EV_QUERY_FAILED,
         PAY_EV_QUERY_FAILED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct call call = {rows[i].kind, rows[i].query_by, true, PAY_PSP_NOT_SENT, 0, NULL, NULL,
                            NULL};
        assert_int_equal(reading_of(*state, &call).items.items[0].event.type, rows[i].unsent_only);
        call.only_send = false;
        assert_int_equal(reading_of(*state, &call).items.items[0].event.type, rows[i].unsent_again);
        call.delivery = PAY_PSP_UNCLEAR;
        assert_int_equal(reading_of(*state, &call).items.items[0].event.type, rows[i].unclear);
        call.only_send = true;
        assert_int_equal(reading_of(*state, &call).items.items[0].event.type, rows[i].unclear);
    }
}

/* ---- What an answer with the transaction says; the same whether it was the only send ---- */

#define RE PAY_EV_ATTEMPT_ACTION_REQUIRED

static const struct {
    enum pay_job_kind kind;
    enum pay_query_by query_by;
    int status;
    const char *body;
    enum pay_event_type type;
    bool has_action;
} facts[] = {
    {PAY_JOB_SUBMIT, NONE, 200, INTENT("succeeded"), PAY_EV_ATTEMPT_SUCCEEDED, false},
    {PAY_JOB_SUBMIT, NONE, 200, INTENT_WITH("succeeded", "\"capture_method\":\"manual\","),
     PAY_EV_CAPTURE_SUCCEEDED, false},
    {PAY_JOB_SUBMIT, NONE, 200, INTENT("processing"), PAY_EV_ATTEMPT_PROCESSING, false},
    {PAY_JOB_SUBMIT, NONE, 200, INTENT("requires_capture"), PAY_EV_ATTEMPT_AUTHORIZED, false},
    {PAY_JOB_SUBMIT, NONE, 200, INTENT("requires_action"), RE, true},
    {PAY_JOB_SUBMIT, NONE, 200, INTENT("requires_payment_method"), RE, true},
    {PAY_JOB_SUBMIT, NONE, 200, INTENT("requires_confirmation"), RE, true},
    {PAY_JOB_SUBMIT, NONE, 200, INTENT("canceled"), PAY_EV_ATTEMPT_CANCELED, false},
    {PAY_JOB_SUBMIT, NONE, 200, INTENT("invented"), UNK(ATTEMPT), false},
    {PAY_JOB_SUBMIT, NONE, 402, CARD_ERROR, PAY_EV_ATTEMPT_DECLINED, false},
    {PAY_JOB_CONFIRM, NONE, 200, INTENT("succeeded"), PAY_EV_ATTEMPT_SUCCEEDED, false},
    {PAY_JOB_CONFIRM, NONE, 402, CARD_ERROR, PAY_EV_ATTEMPT_DECLINED, false},
    {PAY_JOB_CAPTURE, NONE, 200, INTENT("succeeded"), PAY_EV_CAPTURE_SUCCEEDED, false},
    {PAY_JOB_CAPTURE, NONE, 200, INTENT("processing"), PAY_EV_CAPTURE_PROCESSING, false},
    {PAY_JOB_CAPTURE, NONE, 200, INTENT("requires_capture"), UNK(CAPTURE), false},
    {PAY_JOB_REFUND, NONE, 200, REFUND("succeeded"), PAY_EV_REFUND_SUCCEEDED, false},
    {PAY_JOB_REFUND, NONE, 200, REFUND("pending"), PAY_EV_REFUND_PROCESSING, false},
    {PAY_JOB_REFUND, NONE, 200, REFUND("requires_action"), PAY_EV_REFUND_PROCESSING, false},
    {PAY_JOB_REFUND, NONE, 200, REFUND("failed"), PAY_EV_REFUND_FAILED, false},
    {PAY_JOB_REFUND, NONE, 200, REFUND("canceled"), PAY_EV_REFUND_FAILED, false},
    {PAY_JOB_CANCEL, NONE, 200, INTENT("canceled"), PAY_EV_ATTEMPT_CANCELED, false},
    {PAY_JOB_CANCEL, NONE, 200, INTENT("succeeded"), PAY_EV_CANCEL_REFUSED, false},
    {PAY_JOB_CANCEL, NONE, 400, ERROR("invalid_request_error", "payment_intent_unexpected_state"),
     PAY_EV_CANCEL_REFUSED, false},
    {PAY_JOB_CANCEL, NONE, 404, ERROR("invalid_request_error", "resource_missing"),
     PAY_EV_CANCEL_REFUSED, false},
    {PAY_JOB_CANCEL, NONE, 400, ERROR("idempotency_error", "x"), PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_CANCEL, NONE, 401, ERROR("invalid_request_error", "x"), PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_CANCEL, NONE, 409, ERROR("invalid_request_error", "lock_timeout"), PAY_EV_QUERY_FAILED,
     false},
    {PAY_JOB_CANCEL, NONE, 429, ERROR("invalid_request_error", "rate_limit"), PAY_EV_QUERY_FAILED,
     false},
    {PAY_JOB_CANCEL, NONE, 500, ERROR("api_error", "x"), PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_CANCEL, NONE, 400, "no", PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_QUERY, REFERENCE, 200, INTENT("succeeded"), PAY_EV_ATTEMPT_SUCCEEDED, false},
    {PAY_JOB_QUERY, REFERENCE, 200, INTENT("requires_action"), RE, false},
    {PAY_JOB_QUERY, REFERENCE, 200, INTENT("requires_payment_method"), RE, false},
    {PAY_JOB_QUERY, REFERENCE, 200, INTENT("requires_confirmation"), RE, false},
    {PAY_JOB_QUERY, REFERENCE, 200,
     INTENT_WITH("requires_payment_method", "\"last_payment_error\":{\"code\":\"card_declined\"},"),
     PAY_EV_ATTEMPT_DECLINED, false},
    {PAY_JOB_QUERY, REFERENCE, 200, INTENT("processing"), PAY_EV_ATTEMPT_PROCESSING, false},
    {PAY_JOB_QUERY, REFERENCE, 200, INTENT("requires_capture"), PAY_EV_ATTEMPT_AUTHORIZED, false},
    {PAY_JOB_QUERY, REFERENCE, 200, INTENT("canceled"), PAY_EV_ATTEMPT_CANCELED, false},
    {PAY_JOB_QUERY, REFERENCE, 404, ERROR("invalid_request_error", "resource_missing"),
     PAY_EV_ATTEMPT_NOT_FOUND, false},
    {PAY_JOB_QUERY, REFERENCE, 404, "<html>", PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_QUERY, REFERENCE, 404, ERROR("invalid_request_error", "x"), PAY_EV_QUERY_FAILED,
     false},
    {PAY_JOB_QUERY, REFERENCE, 401, ERROR("invalid_request_error", "x"), PAY_EV_QUERY_FAILED,
     false},
    {PAY_JOB_QUERY, REFERENCE, 403, ERROR("invalid_request_error", "x"), PAY_EV_QUERY_FAILED,
     false},
    {PAY_JOB_QUERY, REFERENCE, 429, ERROR("invalid_request_error", "rate_limit"),
     PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_QUERY, REFERENCE, 500, ERROR("api_error", "x"), PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_QUERY, SEARCH, 200, "{\"object\":\"search_result\",\"data\":[]}",
     PAY_EV_ATTEMPT_NOT_FOUND, false},
    {PAY_JOB_QUERY, SEARCH, 200,
     "{\"object\":\"search_result\",\"data\":[" INTENT("succeeded") "]}", PAY_EV_ATTEMPT_SUCCEEDED,
     false},
    {PAY_JOB_QUERY, SEARCH, 200,
     "{\"object\":\"search_result\",\"data\":[{\"object\":\"payment_intent\",\"id\":\"pi_9\"}]}",
     PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_QUERY, SEARCH, 200, "{\"object\":\"search_result\"}", PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_QUERY, SEARCH, 404, ERROR("invalid_request_error", "resource_missing"),
     PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_QUERY, REPLAY, 200, INTENT("requires_action"), RE, true},
    {PAY_JOB_QUERY, REPLAY, 200, INTENT("succeeded"), PAY_EV_ATTEMPT_SUCCEEDED, false},
    {PAY_JOB_QUERY, REPLAY, 402, CARD_ERROR, PAY_EV_ATTEMPT_DECLINED, false},
    {PAY_JOB_QUERY, REPLAY, 402, ERROR("card_error", "card_declined"), PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_QUERY, REPLAY, 400, ERROR("invalid_request_error", "x"), PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_QUERY, REPLAY, 404, ERROR("invalid_request_error", "resource_missing"),
     PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_QUERY, REPLAY, 409, ERROR("idempotency_error", "idempotency_key_in_use"),
     PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_QUERY_CAPTURE, NUMBER, 200, INTENT("succeeded"), PAY_EV_CAPTURE_SUCCEEDED, false},
    {PAY_JOB_QUERY_CAPTURE, NUMBER, 200, INTENT("processing"), PAY_EV_CAPTURE_PROCESSING, false},
    {PAY_JOB_QUERY_CAPTURE, NUMBER, 200, INTENT("requires_capture"), PAY_EV_CAPTURE_NOT_FOUND,
     false},
    {PAY_JOB_QUERY_CAPTURE, NUMBER, 200, INTENT("canceled"), PAY_EV_CAPTURE_FAILED, false},
    {PAY_JOB_QUERY_CAPTURE, NUMBER, 200, INTENT("requires_action"), PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_QUERY_CAPTURE, NUMBER, 404, ERROR("invalid_request_error", "resource_missing"),
     PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_QUERY_REFUND, NUMBER, 200,
     "{\"object\":\"list\",\"has_more\":false,\"data\":[{\"object\":\"refund\"}," REFUND(
         "succeeded") "]}",
     PAY_EV_REFUND_SUCCEEDED, false},
    {PAY_JOB_QUERY_REFUND, NUMBER, 200, "{\"object\":\"list\",\"has_more\":false,\"data\":[]}",
     PAY_EV_REFUND_NOT_FOUND, false},
    {PAY_JOB_QUERY_REFUND, NUMBER, 200, "{\"object\":\"list\",\"has_more\":true,\"data\":[]}",
     PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_QUERY_REFUND, NUMBER, 200, "{\"object\":\"list\",\"data\":[]}", PAY_EV_QUERY_FAILED,
     false},
    {PAY_JOB_QUERY_REFUND, NUMBER, 404, ERROR("invalid_request_error", "resource_missing"),
     PAY_EV_QUERY_FAILED, false},
    {PAY_JOB_QUERY_REFUND, REPLAY, 200, REFUND("pending"), PAY_EV_REFUND_PROCESSING, false},
    {PAY_JOB_QUERY_REFUND, REPLAY, 400, ERROR("invalid_request_error", "x"), PAY_EV_QUERY_FAILED,
     false},
};

static enum pay_source source_of(enum pay_event_type type, enum pay_query_by query_by)
{
    if (type == UNK(ATTEMPT) || type == UNK(CAPTURE) || type == UNK(REFUND)) {
        return PAY_SOURCE_LOCAL;
    }
    return query_by == NONE || query_by == REPLAY ? PAY_SOURCE_SYNC : PAY_SOURCE_QUERY;
}

static void check_fact(struct fixture *fix, size_t row, bool only_send)
{
    const struct call call = {facts[row].kind,   facts[row].query_by, only_send, PAY_PSP_ANSWERED,
                              facts[row].status, facts[row].body,     NULL,      NULL};
    const struct pay_psp_reading reading = reading_of(fix, &call);
    const struct pay_psp_item *item = &reading.items.items[0];
    if (item->event.type != facts[row].type) {
        fail_msg("row %zu %s %d: %s", row, pay_job_kind_name(facts[row].kind), facts[row].status,
                 pay_event_type_name(item->event.type));
    }
    assert_int_equal(item->event.action.is_set, facts[row].has_action);
    assert_int_equal(item->source, source_of(item->event.type, facts[row].query_by));
    assert_int_equal(item->event.call.query_by, facts[row].query_by);
    assert_true(reading.items.count <= 2);
    if (item->source != PAY_SOURCE_LOCAL) {
        assert_string_equal(item->transport_key.ptr, ATTEMPT ".JOB:2");
    }
    assert_string_equal(item->payment_id.ptr, PAYMENT);
}

static void test_facts_in_answers(void **state)
{
    for (size_t row = 0; row < sizeof facts / sizeof facts[0]; row++) {
        check_fact(*state, row, true);
        check_fact(*state, row, false);
    }
}

/* ---- Single properties ---- */

static void test_success_carries_everything(void **state)
{
    const struct call call = {PAY_JOB_SUBMIT,      NONE, true, PAY_PSP_ANSWERED, 200,
                              INTENT("succeeded"), NULL, NULL};
    const struct pay_psp_reading reading = reading_of(*state, &call);
    const struct pay_psp_item *item = &reading.items.items[0];
    assert_int_equal(reading.items.count, 1);
    assert_int_equal(item->event.amount.amount_minor, 2599);
    assert_string_equal(item->event.amount.currency, "EUR");
    assert_string_equal(item->event.provider_payment_id.ptr, "pi_1");
    assert_int_equal(item->event.reference_count, 2);
    assert_string_equal(item->business_key.ptr, "pi_1||ATTEMPT_SUCCEEDED|SUCCEEDED");
    assert_int_equal(reading.should_retry, -1);
}

/* An answer about another payment (a key that was used twice, a proxy's mix-up) proves nothing. */
static void test_another_payments_answer_is_unknown(void **state)
{
    static const char foreign[] =
        "{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"status\":\"succeeded\",\"amount\":1,"
        "\"amount_received\":2599,\"currency\":\"eur\",\"metadata\":{\"order_id\":\"x\"}}";
    static const char live[] =
        "{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"status\":\"succeeded\",\"amount\":1,"
        "\"livemode\":true,\"amount_received\":2599,\"currency\":\"eur\","
        "\"metadata\":{\"order_id\":\"" ATTEMPT "\"}}";
    static const char other_id[] =
        "{\"id\":\"pi_2\",\"object\":\"payment_intent\",\"status\":\"succeeded\",\"amount\":1,"
        "\"amount_received\":2599,\"currency\":\"eur\",\"metadata\":{\"order_id\":\"" ATTEMPT
        "\"}}";
    static const struct {
        struct call call;
        enum pay_event_type type;
    } rows[] = {
        {{PAY_JOB_SUBMIT, NONE, true, PAY_PSP_ANSWERED, 200, foreign, NULL, NULL}, UNK(ATTEMPT)},
        {{PAY_JOB_SUBMIT, NONE, true, PAY_PSP_ANSWERED, 200, live, NULL, NULL}, UNK(ATTEMPT)},
        {{PAY_JOB_CONFIRM, NONE, true, PAY_PSP_ANSWERED, 200, other_id, NULL, NULL}, UNK(ATTEMPT)},
        {{PAY_JOB_CAPTURE, NONE, true, PAY_PSP_ANSWERED, 200, other_id, NULL, NULL}, UNK(CAPTURE)},
        {{PAY_JOB_CANCEL, NONE, true, PAY_PSP_ANSWERED, 200, other_id, NULL, NULL},
         PAY_EV_QUERY_FAILED},
        {{PAY_JOB_QUERY, REFERENCE, true, PAY_PSP_ANSWERED, 200, other_id, NULL, NULL},
         PAY_EV_QUERY_FAILED},
        {{PAY_JOB_QUERY, REFERENCE, true, PAY_PSP_ANSWERED, 200, live, NULL, NULL},
         PAY_EV_QUERY_FAILED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(reading_of(*state, &rows[i].call).items.items[0].event.type, rows[i].type);
    }
    /* By its own reference, whose number it bears is for the core to judge. */
    const struct call query = {PAY_JOB_QUERY, REFERENCE, true, PAY_PSP_ANSWERED,
                               200,           foreign,   NULL, NULL};
    const struct pay_psp_reading reading = reading_of(*state, &query);
    assert_int_equal(reading.items.items[0].event.type, PAY_EV_ATTEMPT_SUCCEEDED);
    assert_string_equal(reading.items.items[0].event.merchant_request_no.ptr, "x");
}

/* An amount that does not convert is not understood, and so is not a no either. */
static void test_odd_amount_in_an_answer_is_unknown(void **state)
{
    static const char odd[] =
        "{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"status\":\"succeeded\","
        "\"amount_received\":2599.0,\"currency\":\"eur\",\"metadata\":{\"order_id\":\"" ATTEMPT
        "\"}}";
    const struct call call = {PAY_JOB_SUBMIT, NONE, true, PAY_PSP_ANSWERED, 200, odd, NULL, NULL};
    const struct pay_psp_reading reading = reading_of(*state, &call);
    assert_int_equal(reading.items.count, 1);
    assert_int_equal(reading.items.items[0].event.type, UNK(ATTEMPT));
    assert_string_equal(reading.items.items[0].transport_key.ptr, ATTEMPT ".JOB:2:ATTEMPT_UNKNOWN");
}

static void test_decline_classes(void **state)
{
    const struct call call = {PAY_JOB_SUBMIT, NONE, true, PAY_PSP_ANSWERED, 402,
                              CARD_ERROR,     NULL, NULL};
    const struct pay_psp_reading reading = reading_of(*state, &call);
    const struct pay_event *event = &reading.items.items[0].event;
    assert_int_equal(event->failure_class, PAY_FAILURE_INSUFFICIENT_FUNDS);
    assert_string_equal(event->failure_code.ptr, "card_declined.insufficient_funds");
    static const struct {
        int status;
        enum pay_failure_class class;
        const char *body;
    } rows[] = {
        {400, PAY_FAILURE_INVALID_REQUEST, ERROR("invalid_request_error", "parameter_missing")},
        {401, PAY_FAILURE_CONFIGURATION, ERROR("invalid_request_error", "x")},
        {403, PAY_FAILURE_CONFIGURATION, ERROR("invalid_request_error", "x")},
        {402, PAY_FAILURE_AUTHENTICATION_FAILED, ERROR("card_error", "authentication_required")},
        {402, PAY_FAILURE_FRAUD_SUSPECTED, ERROR("card_error", "fraudulent")},
        {402, PAY_FAILURE_DECLINED, ERROR("card_error", "something_new")},
        {429, PAY_FAILURE_PSP_ERROR, ERROR("invalid_request_error", "rate_limit")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct call refused = {PAY_JOB_SUBMIT, NONE,         true, PAY_PSP_ANSWERED,
                                     rows[i].status, rows[i].body, NULL, NULL};
        const struct pay_psp_reading failed = reading_of(*state, &refused);
        assert_int_equal(failed.items.items[0].event.failure_class, rows[i].class);
    }
}

static void test_query_tells_the_sum_refunded(void **state)
{
    static const char body[] =
        "{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"status\":\"succeeded\","
        "\"amount_received\":2599,\"currency\":\"eur\",\"latest_charge\":{\"id\":\"ch_1\","
        "\"object\":\"charge\",\"captured\":true,\"amount_refunded\":500,\"currency\":\"eur\","
        "\"payment_intent\":\"pi_1\",\"metadata\":{\"order_id\":\"" ATTEMPT "\"}},"
        "\"metadata\":{\"order_id\":\"" ATTEMPT "\"}}";
    const struct call call = {PAY_JOB_QUERY, REFERENCE, true, PAY_PSP_ANSWERED,
                              200,           body,      NULL, NULL};
    const struct pay_psp_reading reading = reading_of(*state, &call);
    assert_int_equal(reading.items.count, 2);
    assert_int_equal(reading.items.items[1].event.type, PAY_EV_REFUND_SUM);
    assert_int_equal(reading.items.items[1].event.amount.amount_minor, 500);
    assert_string_equal(reading.items.items[1].transport_key.ptr, ATTEMPT ".JOB:2:1");
}

static void test_capture_is_named(void **state)
{
    const struct call call = {PAY_JOB_CAPTURE,     NONE, true, PAY_PSP_ANSWERED, 200,
                              INTENT("succeeded"), NULL, NULL};
    const struct pay_psp_reading reading = reading_of(*state, &call);
    assert_string_equal(reading.items.items[0].event.action_id.ptr, PAYMENT "C01");
    assert_string_equal(reading.items.items[0].event.provider_action_id.ptr, "ch_1");
}

#define CAPTURED(amount, metadata)                                                           \
    "{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"status\":\"succeeded\","               \
    "\"capture_method\":\"manual\",\"amount\":5000,\"amount_received\":" amount              \
    ",\"currency\":\"eur\",\"latest_charge\":\"ch_1\",\"metadata\":{\"order_id\":\"" ATTEMPT \
    "\"" metadata "}}"
#define REF(number) ",\"capture_ref\":\"" PAYMENT number "\""

/** Which capture an intent that was captured tells of; Stripe captures once. */
static const struct {
    enum pay_job_kind kind;
    enum pay_query_by query_by;
    const char *body;
    enum pay_event_type types[2]; /**< The second: OTHER where there is none. */
    const char *action_id;        /**< Of the success; NULL: it names none. */
    int64_t amount_minor;
} captures[] = {
    {PAY_JOB_CAPTURE,
     NONE,
     CAPTURED("2599", REF("C01")),
     {PAY_EV_CAPTURE_SUCCEEDED, PAY_EV_OTHER},
     PAYMENT "C01",
     2599},
    {PAY_JOB_CAPTURE,
     NONE,
     CAPTURED("2599", ""),
     {PAY_EV_CAPTURE_SUCCEEDED, PAY_EV_OTHER},
     PAYMENT "C01",
     2599},
    {PAY_JOB_CAPTURE,
     NONE,
     CAPTURED("2000", ""),
     {PAY_EV_CAPTURE_SUCCEEDED, PAY_EV_OTHER},
     NULL,
     2000},
    {PAY_JOB_CAPTURE, NONE, CAPTURED("2599", REF("C02")), {UNK(CAPTURE), PAY_EV_OTHER}, NULL, -1},
    {PAY_JOB_QUERY_CAPTURE,
     NUMBER,
     CAPTURED("2599", REF("C01")),
     {PAY_EV_CAPTURE_SUCCEEDED, PAY_EV_OTHER},
     PAYMENT "C01",
     2599},
    /* Named, with another sum than was asked for: for the core to judge. */
    {PAY_JOB_QUERY_CAPTURE,
     NUMBER,
     CAPTURED("2000", REF("C01")),
     {PAY_EV_CAPTURE_SUCCEEDED, PAY_EV_OTHER},
     PAYMENT "C01",
     2000},
    /* Another of our own, with the very sum of this one: not counted twice. */
    {PAY_JOB_QUERY_CAPTURE,
     NUMBER,
     CAPTURED("2599", REF("C02")),
     {PAY_EV_CAPTURE_FAILED, PAY_EV_CAPTURE_SUCCEEDED},
     PAYMENT "C02",
     2599},
    /* In the console: with our sum the open capture is meant, with another one ours was not. */
    {PAY_JOB_QUERY_CAPTURE,
     NUMBER,
     CAPTURED("2599", ""),
     {PAY_EV_CAPTURE_SUCCEEDED, PAY_EV_OTHER},
     NULL,
     2599},
    {PAY_JOB_QUERY_CAPTURE,
     NUMBER,
     CAPTURED("2000", ""),
     {PAY_EV_CAPTURE_FAILED, PAY_EV_CAPTURE_SUCCEEDED},
     NULL,
     2000},
    {PAY_JOB_QUERY,
     REFERENCE,
     CAPTURED("2000", REF("C01")),
     {PAY_EV_CAPTURE_SUCCEEDED, PAY_EV_OTHER},
     PAYMENT "C01",
     2000},
    {PAY_JOB_QUERY_CAPTURE,
     NUMBER,
     CAPTURED("2599.0", REF("C01")),
     {PAY_EV_QUERY_FAILED, PAY_EV_OTHER},
     NULL,
     -1},
};

static void check_capture(struct fixture *fix, size_t row)
{
    const struct call call = {captures[row].kind,
                              captures[row].query_by,
                              true,
                              PAY_PSP_ANSWERED,
                              200,
                              captures[row].body,
                              NULL,
                              NULL};
    const struct pay_psp_reading reading = reading_of(fix, &call);
    const size_t count = captures[row].types[1] == PAY_EV_OTHER ? 1 : 2;
    assert_int_equal(reading.items.count, count);
    for (size_t i = 0; i < count; i++) {
        if (reading.items.items[i].event.type != captures[row].types[i]) {
            fail_msg("row %zu: %s", row, pay_event_type_name(reading.items.items[i].event.type));
        }
    }
    const struct pay_event *event = &reading.items.items[count - 1].event;
    assert_int_equal(event->has_amount ? event->amount.amount_minor : -1,
                     captures[row].amount_minor);
    if (event->type == PAY_EV_CAPTURE_SUCCEEDED) {
        assert_string_equal(event->action_id.ptr == NULL ? "" : event->action_id.ptr,
                            captures[row].action_id == NULL ? "" : captures[row].action_id);
        assert_string_equal(event->provider_action_id.ptr, "ch_1");
    }
    if (count == 2) { /* Ours, which was not. */
        assert_string_equal(reading.items.items[0].event.action_id.ptr, PAYMENT "C01");
        assert_int_equal(reading.items.items[0].source, PAY_SOURCE_QUERY);
    }
}

static void test_d3_which_capture_was_made(void **state)
{
    for (size_t row = 0; row < sizeof captures / sizeof captures[0]; row++) {
        check_capture(*state, row);
    }
}

/* What was released after a capture in part is counted as refunded by Stripe, and is none. */
static void test_a_released_rest_is_no_refund(void **state)
{
    static const struct {
        const char *charge;
        int64_t sum_minor; /**< 0: no sum is told. */
    } rows[] = {
        {"\"captured\":true,\"amount\":2599,\"amount_captured\":2000,\"amount_refunded\":599", 0},
        {"\"captured\":true,\"amount\":2599,\"amount_captured\":2000,\"amount_refunded\":600", 1},
        {"\"captured\":true,\"amount\":2599,\"amount_captured\":2000,\"amount_refunded\":1099",
         500},
        {"\"captured\":true,\"amount\":2599,\"amount_captured\":2000,\"amount_refunded\":0", 0},
        {"\"captured\":false,\"amount\":2599,\"amount_captured\":0,\"amount_refunded\":2599", 0},
        {"\"captured\":true,\"amount\":2599,\"amount_captured\":2599,\"amount_refunded\":500", 500},
        {"\"captured\":true,\"amount\":2599,\"amount_refunded\":500", 500},
    };
    static const enum pay_job_kind kinds[] = {PAY_JOB_QUERY, PAY_JOB_QUERY_CAPTURE};
    struct fixture *fix = *state;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        pay_buf_reset(&fix->text);
        pay_buf_printf(&fix->text,
                       "{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"status\":\"succeeded\","
                       "\"capture_method\":\"manual\",\"amount_received\":2599,"
                       "\"currency\":\"eur\",\"latest_charge\":{\"id\":\"ch_1\",%s,"
                       "\"currency\":\"eur\",\"payment_intent\":\"pi_1\"},"
                       "\"metadata\":{\"order_id\":\"" ATTEMPT "\"}}",
                       rows[i / 2].charge);
        const struct call call = {
            kinds[i % 2], i % 2 == 0 ? REFERENCE : NUMBER, true, PAY_PSP_ANSWERED,
            200,          (const char *)fix->text.data,    NULL, NULL};
        const struct pay_psp_reading reading = reading_of(fix, &call);
        assert_int_equal(reading.items.items[0].event.type, PAY_EV_CAPTURE_SUCCEEDED);
        assert_int_equal(reading.items.count, rows[i / 2].sum_minor == 0 ? 1 : 2);
        if (rows[i / 2].sum_minor != 0) {
            assert_int_equal(reading.items.items[1].event.type, PAY_EV_REFUND_SUM);
            assert_int_equal(reading.items.items[1].event.amount.amount_minor,
                             rows[i / 2].sum_minor);
        }
    }
}

/* The intent that was voided tells no refund either, although its charge says "refunded". */
static void test_a_void_is_no_refund(void **state)
{
    static const char body[] =
        "{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"status\":\"canceled\",\"amount\":2599,"
        "\"currency\":\"eur\",\"latest_charge\":{\"id\":\"ch_1\",\"captured\":false,"
        "\"amount\":2599,\"amount_captured\":0,\"amount_refunded\":2599,\"currency\":\"eur\"},"
        "\"metadata\":{\"order_id\":\"" ATTEMPT "\"}}";
    const struct call call = {PAY_JOB_QUERY, REFERENCE, true, PAY_PSP_ANSWERED,
                              200,           body,      NULL, NULL};
    const struct pay_psp_reading reading = reading_of(*state, &call);
    assert_int_equal(reading.items.count, 1);
    assert_int_equal(reading.items.items[0].event.type, PAY_EV_ATTEMPT_CANCELED);
}

/* Ours is told by its number among the others, and carries its own amount and id. */
static void test_refund_is_found_by_its_number(void **state)
{
    static const char list[] =
        "{\"object\":\"list\",\"has_more\":true,\"data\":["
        "{\"id\":\"re_0\",\"object\":\"refund\",\"status\":\"succeeded\",\"amount\":2599,"
        "\"currency\":\"eur\",\"payment_intent\":\"pi_1\",\"metadata\":{\"refund_ref\":\"" PAYMENT
        "R02\"}}," REFUND("failed") "]}";
    const struct call call = {
        PAY_JOB_QUERY_REFUND, NUMBER, true, PAY_PSP_ANSWERED, 200, list, NULL, NULL};
    const struct pay_psp_reading reading = reading_of(*state, &call);
    const struct pay_event *event = &reading.items.items[0].event;
    assert_int_equal(reading.items.count, 1);
    assert_int_equal(event->type, PAY_EV_REFUND_FAILED);
    assert_int_equal(event->amount.amount_minor, 500);
    assert_string_equal(event->action_id.ptr, PAYMENT "R01");
    assert_string_equal(event->provider_action_id.ptr, "re_1");
    assert_int_equal(event->reference_count, 3);
}

/* A canceled intent ends both the capture and the attempt, in that order. */
static void test_capture_of_a_canceled_intent(void **state)
{
    const struct call call = {PAY_JOB_QUERY_CAPTURE, NUMBER, true, PAY_PSP_ANSWERED, 200,
                              INTENT("canceled"),    NULL,   NULL};
    const struct pay_psp_reading reading = reading_of(*state, &call);
    assert_int_equal(reading.items.count, 2);
    assert_int_equal(reading.items.items[0].event.type, PAY_EV_CAPTURE_FAILED);
    assert_int_equal(reading.items.items[1].event.type, PAY_EV_ATTEMPT_CANCELED);
}

/* Two intents under one number: both are told, the core sees the second. */
static void test_search_tells_every_intent(void **state)
{
    static const char body[] = "{\"object\":\"search_result\",\"data\":[" INTENT(
        "succeeded") ","
                     "{\"id\":\"pi_2\",\"object\":\"payment_intent\",\"status\":\"succeeded\","
                     "\"amount_received\":2599,\"currency\":\"eur\",\"metadata\":{\"order_id\":"
                     "\"" ATTEMPT "\"}}]}";
    const struct call call = {PAY_JOB_QUERY, SEARCH, true, PAY_PSP_ANSWERED, 200, body, NULL, NULL};
    const struct pay_psp_reading reading = reading_of(*state, &call);
    assert_int_equal(reading.items.count, 2);
    assert_string_equal(reading.items.items[1].event.provider_payment_id.ptr, "pi_2");
}

/* One intent is clear and the next is not: nothing is said in part. */
static void test_half_an_answer_is_none(void **state)
{
    static const char body[] =
        "{\"object\":\"search_result\",\"data\":[" INTENT("succeeded") "," INTENT("odd") "]}";
    const struct call call = {PAY_JOB_QUERY, SEARCH, true, PAY_PSP_ANSWERED, 200, body, NULL, NULL};
    const struct pay_psp_reading reading = reading_of(*state, &call);
    assert_int_equal(reading.items.count, 1);
    assert_int_equal(reading.items.items[0].event.type, PAY_EV_QUERY_FAILED);
}

static void test_hints_for_the_caller(void **state)
{
    static const struct {
        int status, should_retry;
        unsigned retry_after_s;
        bool bad_credentials, too_many;
        const char *header, *value;
    } rows[] = {
        {429, -1, 7, false, true, "Retry-After", "7"},
        {429, -1, 86400, false, true, "retry-after", "999999"},
        {429, -1, 0, false, true, "Retry-After", "soon"},
        {500, 0, 0, false, false, "Stripe-Should-Retry", "false"},
        {409, 1, 0, false, false, "stripe-should-retry", "true"},
        {401, -1, 0, true, false, "X", "1"},
        {403, -1, 0, true, false, "X", "1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct call call = {PAY_JOB_QUERY,  REFERENCE, true,           PAY_PSP_ANSWERED,
                                  rows[i].status, "{}",      rows[i].header, rows[i].value};
        const struct pay_psp_reading reading = reading_of(*state, &call);
        assert_int_equal(reading.should_retry, rows[i].should_retry);
        assert_int_equal(reading.retry_after_s, rows[i].retry_after_s);
        assert_int_equal(reading.items.items[0].event.call.retry_after_s, rows[i].retry_after_s);
        assert_int_equal(reading.bad_credentials, rows[i].bad_credentials);
        assert_int_equal(reading.too_many, rows[i].too_many);
    }
}

/* Our own words about a call, by kind and result. */
static void test_local_items(void **state)
{
    struct fixture *fix = *state;
    struct pay_psp_item item;
    const struct call call = {PAY_JOB_SUBMIT, NONE, true, PAY_PSP_NOT_SENT, 0, NULL, NULL, NULL};
    const struct pay_psp_request_job job = job_of(&call);
    const struct pay_psp_response response = {.job = &job, .send_no = 1};
    assert_int_equal(pay_psp_local_item(&fix->account, &response, PAY_PSP_RESULT_SUBMITTED,
                                        fix->arena, &item, NULL),
                     PAY_OK);
    assert_int_equal(item.event.type, PAY_EV_ATTEMPT_SUBMITTED);
    assert_string_equal(item.transport_key.ptr, ATTEMPT ".JOB:1:ATTEMPT_SUBMITTED");
    assert_string_equal(item.business_key.ptr, ATTEMPT "||ATTEMPT_SUBMITTED|SUBMITTED");
    assert_string_equal(item.partition_key.ptr, PAYMENT);
    assert_int_equal(pay_psp_result_type(PAY_JOB_REFUND, PAY_PSP_RESULT_FAILED), NO(REFUND));
    assert_int_equal(pay_psp_result_type(PAY_JOB_CANCEL, PAY_PSP_RESULT_UNKNOWN),
                     PAY_EV_QUERY_FAILED);
    assert_int_equal(pay_psp_result_type(PAY_JOB_QUERY_CAPTURE, PAY_PSP_RESULT_NOT_FOUND),
                     PAY_EV_CAPTURE_NOT_FOUND);
}

static void test_full_arena_is_a_retry(void **state)
{
    struct fixture *fix = *state;
    const struct call call = {PAY_JOB_SUBMIT,      NONE, true, PAY_PSP_ANSWERED, 200,
                              INTENT("succeeded"), NULL, NULL};
    const struct pay_psp_request_job job = job_of(&call);
    const struct pay_psp_response response = {
        .job = &job,
        .send_no = 1,
        .only_send = true,
        .delivery = PAY_PSP_ANSWERED,
        .http_status = 200,
        .body = {(const uint8_t *)call.body, strlen(call.body)}};
    bool taken = false;
    for (size_t max = 0; max < 65536 && !taken; max += 128) {
        struct pay_arena *small = pay_arena_new(max);
        struct pay_psp_reading reading = {0};
        assert_non_null(small);
        const enum pay_status status =
            pay_psp_stripe.read(&fix->account, &response, small, &reading, NULL);
        assert_true(status == PAY_OK || status == PAY_RETRY);
        /* Too little room never turns into a no. */
        assert_true(status != PAY_OK ||
                    reading.items.items[0].event.type == PAY_EV_ATTEMPT_UNKNOWN ||
                    reading.items.items[0].event.type == PAY_EV_ATTEMPT_SUCCEEDED);
        taken = status == PAY_OK && reading.items.items[0].event.type == PAY_EV_ATTEMPT_SUCCEEDED;
        pay_arena_free(small);
    }
    assert_true(taken);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* A broken answer of a success is that success or unknown, never a no. */
static void test_random_answers_never_become_a_no(void **state)
{
    struct fixture *fix = *state;
    uint32_t seed = 4711;
    for (size_t round = 0; round < 20000; round++) {
        pay_buf_reset(&fix->text);
        pay_buf_add_c(&fix->text, INTENT("succeeded"));
        for (uint32_t n = next_random(&seed) % 3 + 1; n > 0; n--) {
            fix->text.data[next_random(&seed) % fix->text.len] =
                (uint8_t)"{}[]\":,0ax"[next_random(&seed) % 10];
        }
        const struct call call = {
            PAY_JOB_SUBMIT, NONE, true, PAY_PSP_ANSWERED, 200, (const char *)fix->text.data,
            NULL,           NULL};
        const enum pay_event_type type = reading_of(fix, &call).items.items[0].event.type;
        assert_true(type == PAY_EV_ATTEMPT_UNKNOWN || type == PAY_EV_ATTEMPT_SUCCEEDED);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_every_refusal_of_every_money_call),
        TEST(test_no_refusal_of_a_replay_says_anything),
        TEST(test_no_answer_of_every_call),
        TEST(test_facts_in_answers),
        TEST(test_success_carries_everything),
        TEST(test_another_payments_answer_is_unknown),
        TEST(test_odd_amount_in_an_answer_is_unknown),
        TEST(test_decline_classes),
        TEST(test_query_tells_the_sum_refunded),
        TEST(test_capture_is_named),
        TEST(test_d3_which_capture_was_made),
        TEST(test_a_released_rest_is_no_refund),
        TEST(test_a_void_is_no_refund),
        TEST(test_refund_is_found_by_its_number),
        TEST(test_capture_of_a_canceled_intent),
        TEST(test_search_tells_every_intent),
        TEST(test_half_an_answer_is_none),
        TEST(test_hints_for_the_caller),
        TEST(test_local_items),
        TEST(test_full_arena_is_a_retry),
        TEST(test_random_answers_never_become_a_no),
    };
    return cmocka_run_group_tests_name("stripe read", tests, NULL, NULL);
}
