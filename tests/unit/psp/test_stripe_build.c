/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "common/psp/amount.h"
#include "common/psp/form.h"
#include "common/psp/request.h"
#include "common/psp/stripe.h"
#include "common/psp/stripe_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define PAYMENT "01JDZ5V6N8QWERTYPASDFGHJKZ"
#define ATTEMPT PAYMENT "A01"

static const struct pay_reference intent_ref[] = {{PAY_REF_CHARGE, {"ch_1", 4}},
                                                  {PAY_REF_INTENT, {"pi_1", 4}}};

static struct pay_psp_request_job submit_job(void)
{
    return (struct pay_psp_request_job){.kind = PAY_JOB_SUBMIT,
                                        .job_id = PAY_STR(ATTEMPT ".SUBMIT"),
                                        .payment_id = PAY_STR(PAYMENT),
                                        .attempt_id = PAY_STR(ATTEMPT),
                                        .request_no = PAY_STR(ATTEMPT),
                                        .number = 1,
                                        .method = PAY_STR("card"),
                                        .amount_minor = 2599,
                                        .attempt_amount_minor = 2599,
                                        .currency = PAY_STR("EUR"),
                                        .capture_mode = PAY_CAPTURE_AUTOMATIC,
                                        .is_final = true};
}

static struct pay_psp_request_job job_of(enum pay_job_kind kind, struct pay_str action_id)
{
    struct pay_psp_request_job job = submit_job();
    job.kind = kind;
    job.action_id = action_id;
    job.request_no = action_id.ptr == NULL ? job.attempt_id : action_id;
    job.references = intent_ref;
    job.reference_count = 2;
    return job;
}

static const struct pay_str none = {NULL, 0};

static struct pay_psp_request built(struct fixture *fix, const struct pay_psp_request_job *job,
                                    enum pay_query_by query_by)
{
    struct pay_psp_request request = {0};
    struct pay_err err = {0};
    if (pay_psp_stripe.build(&fix->account, job, query_by, fix->arena, &request, &err) != PAY_OK) {
        fail_msg("%s", err.text);
    }
    return request;
}

static void refused(struct fixture *fix, const struct pay_psp_request_job *job,
                    enum pay_query_by query_by, enum pay_psp_reason reason)
{
    struct pay_psp_request request = {0};
    struct pay_err err = {0};
    assert_int_equal(pay_psp_stripe.build(&fix->account, job, query_by, fix->arena, &request, &err),
                     PAY_REJECT);
    assert_int_equal(err.code, reason);
    assert_null(request.method);
}

static const char *header_of(const struct pay_psp_request *request, const char *name)
{
    const struct pay_psp_header *header =
        pay_psp_header_find(request->headers, request->header_count, name);
    return header == NULL ? NULL : header->value.ptr;
}

static void body_is(const struct pay_psp_request *request, const char *wanted)
{
    assert_int_equal(request->body.len, strlen(wanted));
    assert_memory_equal(request->body.ptr, wanted, request->body.len);
}

static void test_submit_confirms_with_an_instrument(void **state)
{
    struct pay_psp_request_job job = submit_job();
    job.instrument = PAY_STR("pm_1");
    job.payer_id = PAY_STR("cus_1");
    job.return_url = PAY_STR("https://shop.example/r?a=1&b=2");
    job.description = PAY_STR("Zw\xc3\xb6lf %");
    const struct pay_psp_request request = built(*state, &job, PAY_QUERY_BY_NONE);
    assert_string_equal(request.method, "POST");
    assert_string_equal(request.url.ptr, "https://api.stripe.test/v1/payment_intents");
    body_is(&request, "amount=2599&currency=eur&metadata[order_id]=" ATTEMPT
                      "&payment_method_types[]=card&capture_method=automatic"
                      "&description=Zw%C3%B6lf%20%25&customer=cus_1&payment_method=pm_1"
                      "&confirm=true&return_url=https%3A%2F%2Fshop.example%2Fr%3Fa%3D1%26b%3D2");
    assert_string_equal(header_of(&request, "idempotency-key"), ATTEMPT);
    assert_string_equal(header_of(&request, "Stripe-Version"), "2024-06-20");
    assert_string_equal(header_of(&request, "Content-Type"), "application/x-www-form-urlencoded");
    assert_string_equal(request.idempotency_key.ptr, ATTEMPT);
    assert_null(header_of(&request, "Stripe-Account"));
    assert_null(header_of(&request, "Authorization")); /* Not in what is stored. */
}

static void test_submit_without_instrument_leaves_the_confirm_to_the_customer(void **state)
{
    struct fixture *fix = *state;
    struct pay_psp_request_job job = submit_job();
    job.capture_mode = PAY_CAPTURE_MANUAL;
    job.return_url = PAY_STR("https://shop.example/r");
    const struct pay_psp_request request = built(fix, &job, PAY_QUERY_BY_NONE);
    body_is(&request, "amount=2599&currency=eur&metadata[order_id]=" ATTEMPT
                      "&payment_method_types[]=card&capture_method=manual");
}

/* A replay must have the same bytes, whatever order a map gave its entries. */
static void test_extra_in_one_order_and_known_only(void **state)
{
    const struct pay_psp_param one[] = {{PAY_STR("off_session"), PAY_STR("true")},
                                        {PAY_STR("mandate"), PAY_STR("mandate_1")}};
    const struct pay_psp_param two[] = {one[1], one[0]};
    const struct pay_psp_param foreign[] = {one[0], {PAY_STR("amount"), PAY_STR("1")}};
    struct pay_psp_request_job job = submit_job();
    job.extra = one;
    job.extra_count = 2;
    const struct pay_psp_request first = built(*state, &job, PAY_QUERY_BY_NONE);
    job.extra = two;
    const struct pay_psp_request second = built(*state, &job, PAY_QUERY_BY_NONE);
    assert_true(pay_bytes_eq(first.body, second.body));
    assert_non_null(strstr((const char *)first.body.ptr, "&mandate=mandate_1&off_session=true"));
    job.extra = foreign;
    refused(*state, &job, PAY_QUERY_BY_NONE, PAY_PSP_BAD_JOB);
}

/** Each call, and each of its parts. */
static const struct {
    enum pay_job_kind kind;
    enum pay_query_by query_by;
    const char *action_id, *reason;
    int number;
    const char *method, *path, *body, *key;
} calls[] = {
    {PAY_JOB_CONFIRM, PAY_QUERY_BY_NONE, NULL, NULL, 2, "POST", "/v1/payment_intents/pi_1/confirm",
     "", ATTEMPT ".CONFIRM.2"},
    {PAY_JOB_CONFIRM, PAY_QUERY_BY_NONE, NULL, NULL, 1, "POST", "/v1/payment_intents/pi_1/confirm",
     "", ATTEMPT ".CONFIRM.1"},
    {PAY_JOB_CAPTURE, PAY_QUERY_BY_NONE, PAYMENT "C01", NULL, 1, "POST",
     "/v1/payment_intents/pi_1/capture",
     "amount_to_capture=2599&metadata[capture_ref]=" PAYMENT "C01", PAYMENT "C01"},
    {PAY_JOB_CANCEL, PAY_QUERY_BY_NONE, NULL, NULL, 1, "POST", "/v1/payment_intents/pi_1/cancel",
     "", ATTEMPT ".CANCEL"},
    {PAY_JOB_CANCEL, PAY_QUERY_BY_NONE, NULL, "abandoned", 3, "POST",
     "/v1/payment_intents/pi_1/cancel", "cancellation_reason=abandoned", ATTEMPT ".CANCEL.3"},
    {PAY_JOB_CANCEL, PAY_QUERY_BY_NONE, NULL, "DEADLINE", 1, "POST",
     "/v1/payment_intents/pi_1/cancel", "", ATTEMPT ".CANCEL"},
    {PAY_JOB_REFUND, PAY_QUERY_BY_NONE, PAYMENT "R02", "duplicate", 2, "POST", "/v1/refunds",
     "payment_intent=pi_1&amount=2599&metadata[order_id]=" ATTEMPT "&metadata[refund_ref]=" PAYMENT
     "R02&reason=duplicate",
     PAYMENT "R02"},
    {PAY_JOB_QUERY, PAY_QUERY_BY_PSP_REFERENCE, NULL, NULL, 1, "GET",
     "/v1/payment_intents/pi_1?expand[]=latest_charge", NULL, NULL},
    {PAY_JOB_QUERY, PAY_QUERY_BY_SEARCH, NULL, NULL, 1, "GET",
     "/v1/payment_intents/search?query=metadata%5B%27order_id%27%5D%3A%27" ATTEMPT
     "%27&limit=10&expand[]=data.latest_charge",
     NULL, NULL},
    {PAY_JOB_QUERY_CAPTURE, PAY_QUERY_BY_REQUEST_NUMBER, PAYMENT "C01", NULL, 1, "GET",
     "/v1/payment_intents/pi_1?expand[]=latest_charge", NULL, NULL},
    {PAY_JOB_QUERY_REFUND, PAY_QUERY_BY_REQUEST_NUMBER, PAYMENT "R02", NULL, 1, "GET",
     "/v1/refunds?payment_intent=pi_1&limit=100", NULL, NULL},
};

static void test_every_call(void **state)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct pay_psp_request_job job = job_of(calls[i].kind, pay_str_of(calls[i].action_id));
        job.reason_code = pay_str_of(calls[i].reason);
        job.number = calls[i].number;
        const struct pay_psp_request request = built(*state, &job, calls[i].query_by);
        assert_string_equal(request.method, calls[i].method);
        assert_string_equal(request.url.ptr + strlen("https://api.stripe.test"), calls[i].path);
        assert_int_equal(request.body.ptr != NULL, calls[i].body != NULL);
        if (calls[i].body != NULL) {
            body_is(&request, calls[i].body);
            assert_string_equal(request.idempotency_key.ptr, calls[i].key);
            assert_string_equal(header_of(&request, "Idempotency-Key"), calls[i].key);
        }
        assert_int_equal(header_of(&request, "Idempotency-Key") != NULL, calls[i].key != NULL);
    }
}

/** The sum of an action, in Stripe's own unit; NULL: it cannot be said, so it is not asked for. */
static const struct {
    enum pay_job_kind kind;
    const char *currency;
    int64_t amount_minor;
    const char *wanted;
} action_amounts[] = {
    {PAY_JOB_CAPTURE, "EUR", 1, "amount_to_capture=1&"},
    {PAY_JOB_CAPTURE, "JPY", 500, "amount_to_capture=500&"},
    {PAY_JOB_CAPTURE, "KWD", 1230, "amount_to_capture=1230&"},
    {PAY_JOB_CAPTURE, "KWD", 1234, NULL},
    {PAY_JOB_CAPTURE, "ISK", 1200, "amount_to_capture=120000&"},
    {PAY_JOB_CAPTURE, "IQD", 1000, NULL},
    {PAY_JOB_CAPTURE, "EUR", 0, NULL},
    {PAY_JOB_CAPTURE, "EUR", -1, NULL},
    {PAY_JOB_REFUND, "EUR", 1, "&amount=1&"},
    {PAY_JOB_REFUND, "JPY", 500, "&amount=500&"},
    {PAY_JOB_REFUND, "KWD", 1230, "&amount=1230&"},
    {PAY_JOB_REFUND, "KWD", 1234, NULL},
    {PAY_JOB_REFUND, "UGX", 5, "&amount=500&"},
    {PAY_JOB_REFUND, "IQD", 1000, NULL},
    {PAY_JOB_REFUND, "EUR", 0, NULL},
    {PAY_JOB_REFUND, "EUR", -1, NULL},
};

static void test_a5_a7_amounts_of_captures_and_refunds(void **state)
{
    for (size_t i = 0; i < sizeof action_amounts / sizeof action_amounts[0]; i++) {
        const bool is_capture = action_amounts[i].kind == PAY_JOB_CAPTURE;
        struct pay_psp_request_job job = job_of(
            action_amounts[i].kind, is_capture ? PAY_STR(PAYMENT "C01") : PAY_STR(PAYMENT "R01"));
        job.currency = pay_str_of(action_amounts[i].currency);
        job.amount_minor = action_amounts[i].amount_minor;
        if (action_amounts[i].wanted == NULL) {
            refused(*state, &job, PAY_QUERY_BY_NONE, PAY_PSP_BAD_JOB);
            continue;
        }
        const struct pay_psp_request request = built(*state, &job, PAY_QUERY_BY_NONE);
        assert_non_null(strstr((const char *)request.body.ptr, action_amounts[i].wanted));
    }
}

/* Repeated under its own number, it is the same request to the byte: Stripe's key decides. */
static void test_d13_a_repeated_refund_is_the_same_request(void **state)
{
    struct pay_psp_request_job job = job_of(PAY_JOB_REFUND, PAY_STR(PAYMENT "R01"));
    job.job_id = PAY_STR(PAYMENT "R01.REFUND");
    const struct pay_psp_request first = built(*state, &job, PAY_QUERY_BY_NONE);
    job.job_id = PAY_STR(PAYMENT "R01.REFUND.2");
    job.number = 2;
    const struct pay_psp_request second = built(*state, &job, PAY_QUERY_BY_NONE);
    assert_true(pay_bytes_eq(first.body, second.body));
    assert_true(pay_str_eq(first.url, second.url));
    assert_string_equal(second.idempotency_key.ptr, PAYMENT "R01");
}

static void test_what_cannot_be_built_is_refused(void **state)
{
    static const struct {
        enum pay_job_kind kind;
        enum pay_query_by query_by;
        enum pay_psp_reason reason;
    } rows[] = {
        {PAY_JOB_SUBMIT, PAY_QUERY_BY_IDEMPOTENT_REPLAY, PAY_PSP_NOT_SUPPORTED},
        {PAY_JOB_QUERY, PAY_QUERY_BY_IDEMPOTENT_REPLAY, PAY_PSP_NOT_SUPPORTED},
        {PAY_JOB_QUERY, PAY_QUERY_BY_REQUEST_NUMBER, PAY_PSP_NOT_SUPPORTED},
        {PAY_JOB_QUERY, PAY_QUERY_BY_NONE, PAY_PSP_NOT_SUPPORTED},
        {PAY_JOB_UNRECOGNIZED, PAY_QUERY_BY_NONE, PAY_PSP_NOT_SUPPORTED},
        {PAY_JOB_CONFIRM, PAY_QUERY_BY_NONE, PAY_PSP_BAD_JOB},
        {PAY_JOB_CAPTURE, PAY_QUERY_BY_NONE, PAY_PSP_BAD_JOB},
        {PAY_JOB_CANCEL, PAY_QUERY_BY_NONE, PAY_PSP_BAD_JOB},
        {PAY_JOB_REFUND, PAY_QUERY_BY_NONE, PAY_PSP_BAD_JOB},
        {PAY_JOB_QUERY, PAY_QUERY_BY_PSP_REFERENCE, PAY_PSP_BAD_JOB},
        {PAY_JOB_QUERY_REFUND, PAY_QUERY_BY_REQUEST_NUMBER, PAY_PSP_BAD_JOB},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pay_psp_request_job job = job_of(rows[i].kind, none);
        job.reference_count = 0; /* Nothing is bound. */
        refused(*state, &job, rows[i].query_by, rows[i].reason);
    }
    struct pay_psp_request_job part = job_of(PAY_JOB_CAPTURE, PAY_STR(PAYMENT "C01"));
    part.is_final = false;
    refused(*state, &part, PAY_QUERY_BY_NONE, PAY_PSP_NOT_SUPPORTED);
    assert_false(pay_psp_stripe.traits.captures_again); /* So the core does not ask for it. */
    struct pay_psp_request_job job = submit_job();
    job.capture_mode = PAY_CAPTURE_UNRECOGNIZED;
    refused(*state, &job, PAY_QUERY_BY_NONE, PAY_PSP_BAD_JOB);
    job = submit_job();
    job.method = PAY_STR("card&confirm=true");
    refused(*state, &job, PAY_QUERY_BY_NONE, PAY_PSP_BAD_JOB);
    job = submit_job();
    job.request_no = none;
    refused(*state, &job, PAY_QUERY_BY_NONE, PAY_PSP_BAD_JOB);
    job = job_of(PAY_JOB_QUERY, none);
    job.request_no = PAY_STR("x' OR 'y");
    refused(*state, &job, PAY_QUERY_BY_SEARCH, PAY_PSP_BAD_JOB);
    struct fixture *fix = *state;
    job = submit_job();
    while (fix->text.len < PAY_PSP_REQUEST_BYTES_MAX) {
        pay_buf_add_char(&fix->text, 'x');
    }
    job.description = pay_buf_str(&fix->text);
    refused(fix, &job, PAY_QUERY_BY_NONE, PAY_PSP_TOO_LARGE);
}

static void test_provider_reference_serves_as_the_intent(void **state)
{
    struct pay_psp_request_job job = job_of(PAY_JOB_CANCEL, none);
    job.reference_count = 0;
    job.provider_reference = PAY_STR("pi_2");
    const struct pay_psp_request request = built(*state, &job, PAY_QUERY_BY_NONE);
    assert_non_null(strstr(request.url.ptr, "/pi_2/cancel"));
    job.provider_reference = PAY_STR("ch_2");
    refused(*state, &job, PAY_QUERY_BY_NONE, PAY_PSP_BAD_JOB);
}

/* An id that is no id stays one part of the path. */
static void test_reference_cannot_leave_its_place(void **state)
{
    struct pay_psp_request_job job = job_of(PAY_JOB_QUERY, none);
    const struct pay_reference odd = {PAY_REF_INTENT, PAY_STR("../x?y#z")};
    job.references = &odd;
    job.reference_count = 1;
    const struct pay_psp_request request = built(*state, &job, PAY_QUERY_BY_PSP_REFERENCE);
    assert_non_null(strstr(request.url.ptr, "/v1/payment_intents/..%2Fx%3Fy%23z?expand"));
}

static void test_connect_account_goes_along(void **state)
{
    struct fixture *fix = *state;
    fix->account.settings[1] = (struct pay_psp_setting){"connect_account", "acct_1"};
    fix->account.setting_count = 2;
    const struct pay_psp_request_job job = submit_job();
    const struct pay_psp_request request = built(fix, &job, PAY_QUERY_BY_NONE);
    assert_string_equal(header_of(&request, "Stripe-Account"), "acct_1");
}

static void test_authorize_adds_the_key(void **state)
{
    struct fixture *fix = *state;
    struct pay_psp_header header;
    const struct pay_psp_request_job job = submit_job();
    const struct pay_psp_request request = built(fix, &job, PAY_QUERY_BY_NONE);
    assert_int_equal(pay_psp_stripe.authorize(&fix->account, &request, fix->arena, &header, NULL),
                     PAY_OK);
    assert_string_equal(header.name.ptr, "Authorization");
    assert_string_equal(header.value.ptr, "Bearer sk_test_0123456789");
    fix->account.credential_count = 0;
    assert_int_equal(pay_psp_stripe.authorize(&fix->account, &request, fix->arena, &header, NULL),
                     PAY_REJECT);
}

/* Stored, read again, and the same to the byte: what a replay sends. */
static void test_stored_request_is_the_same(void **state)
{
    struct fixture *fix = *state;
    struct pay_psp_request again = {0};
    struct pay_psp_request_job job = submit_job();
    job.description = PAY_STR("a \"b\" \\ \xc3\xa9\n");
    const struct pay_psp_request request = built(fix, &job, PAY_QUERY_BY_NONE);
    pay_psp_request_write(&request, &fix->text);
    assert_false(fix->text.failed);
    assert_null(strstr((const char *)fix->text.data, "sk_test"));
    assert_int_equal(pay_psp_request_read(pay_buf_bytes(&fix->text), fix->arena, &again, NULL),
                     PAY_OK);
    assert_string_equal(again.method, request.method);
    assert_true(pay_str_eq(again.url, request.url));
    assert_true(pay_bytes_eq(again.body, request.body));
    assert_true(pay_str_eq(again.idempotency_key, request.idempotency_key));
    assert_int_equal(again.header_count, request.header_count);
    for (size_t i = 0; i < request.header_count; i++) {
        assert_true(pay_str_eq(again.headers[i].name, request.headers[i].name));
        assert_true(pay_str_eq(again.headers[i].value, request.headers[i].value));
    }
    /* Cut anywhere, it is refused. */
    for (size_t len = 0; len < fix->text.len; len++) {
        const struct pay_bytes cut = {fix->text.data, len};
        assert_int_equal(pay_psp_request_read(cut, fix->arena, &again, NULL), PAY_REJECT);
    }
    const struct pay_str wrong = PAY_STR("{\"method\":\"FETCH\",\"url\":\"x\",\"headers\":[]}");
    assert_int_equal(pay_psp_request_read((struct pay_bytes){(const uint8_t *)wrong.ptr, wrong.len},
                                          fix->arena, &again, NULL),
                     PAY_REJECT);
}

/* ---- Amounts ---- */

/** Minor units of ISO 4217 and Stripe's integer; -1: cannot be said in the other's words. */
static const struct {
    const char *currency;
    int64_t minor, stripe;
} exact[] = {
    {"EUR", 820, 820},     {"USD", 1, 1},   {"HUF", 12345, 12345}, {"TWD", 100, 100},
    {"JPY", 1200, 1200},   {"KRW", 1, 1},   {"CLP", 990, 990},     {"VND", 10000, 10000},
    {"ISK", 1200, 120000}, {"UGX", 5, 500}, {"KWD", 5120, 5120},   {"BHD", 10, 10},
    {"JOD", 1000, 1000},   {"OMR", 10, 10}, {"TND", 990, 990},     {"MGA", 500, 5},
    {"XAF", 7, 7},         {"BIF", 7, 7},   {"DJF", 7, 7},         {"GNF", 7, 7},
    {"KMF", 7, 7},         {"PYG", 7, 7},   {"RWF", 7, 7},         {"VUV", 7, 7},
    {"XOF", 7, 7},         {"XPF", 7, 7},
};

static struct pay_money money_of(const char *currency, int64_t minor)
{
    struct pay_money money = {.amount_minor = minor};
    assert_true(pay_str_copy(money.currency, sizeof money.currency, pay_str_of(currency)));
    return money;
}

/* KWD has three decimals (A5), JPY none (A7); nothing is multiplied by a hundred (A9). */
static void test_a5_a7_a9_amounts_convert_exactly(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++) {
        int64_t amount = 0;
        struct pay_money money;
        assert_true(pay_psp_amount_out(pay_stripe_currencies,
                                       money_of(exact[i].currency, exact[i].minor), &amount));
        assert_int_equal(amount, exact[i].stripe);
        assert_true(pay_psp_amount_in(pay_stripe_currencies, exact[i].stripe,
                                      pay_str_of(exact[i].currency), &money));
        assert_int_equal(money.amount_minor, exact[i].minor);
        assert_string_equal(money.currency, exact[i].currency);
    }
}

static void test_a5_a7_a9_amounts_that_do_not_convert(void **state)
{
    static const struct {
        const char *currency;
        int64_t minor;
    } out[] = {{"KWD", 5121}, {"TND", 1}, {"MGA", 550}, {"IQD", 1000},      {"CLF", 10000},
               {"UYI", 1},    {"EUR", 0}, {"EUR", -5},  {"ISK", INT64_MAX}, {"XXQ", 5}};
    static const struct {
        const char *currency;
        int64_t stripe;
    } in[] = {{"isk", 1250}, {"ugx", 1}, {"mga", INT64_MAX}, {"iqd", 10},
              {"eur", -1},   {"xxq", 1}, {"eu", 1},          {"", 1}};
    struct pay_money money;
    int64_t amount = 0;
    (void)state;
    for (size_t i = 0; i < sizeof out / sizeof out[0]; i++) {
        assert_false(pay_psp_amount_out(pay_stripe_currencies,
                                        money_of(out[i].currency, out[i].minor), &amount));
    }
    for (size_t i = 0; i < sizeof in / sizeof in[0]; i++) {
        assert_false(pay_psp_amount_in(pay_stripe_currencies, in[i].stripe,
                                       pay_str_of(in[i].currency), &money));
    }
    assert_false(pay_psp_amount_in(pay_stripe_currencies, 1, none, &money));
}

static void test_amounts_stand_in_the_request(void **state)
{
    static const struct {
        const char *currency, *body;
        int64_t minor;
    } rows[] = {{"JPY", "amount=1200&currency=jpy", 1200},
                {"ISK", "amount=120000&currency=isk", 1200},
                {"KWD", "amount=5120&currency=kwd", 5120}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pay_psp_request_job job = submit_job();
        job.amount_minor = rows[i].minor;
        job.currency = pay_str_of(rows[i].currency);
        const struct pay_psp_request request = built(*state, &job, PAY_QUERY_BY_NONE);
        assert_memory_equal(request.body.ptr, rows[i].body, strlen(rows[i].body));
    }
    struct pay_psp_request_job job = submit_job();
    job.currency = PAY_STR("KWD");
    job.amount_minor = 5121;
    refused(*state, &job, PAY_QUERY_BY_NONE, PAY_PSP_BAD_JOB);
}

static void test_percent_encoding(void **state)
{
    struct fixture *fix = *state;
    pay_form_add(&fix->text, "a", PAY_STR("AZaz09-._~"));
    pay_form_add(&fix->text, "absent", none);
    pay_form_add(&fix->text, "b", PAY_STR(" +&=%/\x7f\n"));
    pay_form_add(&fix->text, "c", PAY_STR(""));
    pay_form_add_i64(&fix->text, "d", -5);
    assert_string_equal((const char *)fix->text.data,
                        "a=AZaz09-._~&b=%20%2B%26%3D%25%2F%7F%0A&c=&d=-5");
}

/* ---- How to ask ---- */

static void test_how_to_ask(void **state)
{
    static const struct {
        enum pay_job_kind kind;
        bool is_bound, may_replay;
        enum pay_query_by query_by;
    } rows[] = {
        {PAY_JOB_QUERY, true, true, PAY_QUERY_BY_PSP_REFERENCE},
        {PAY_JOB_QUERY, true, false, PAY_QUERY_BY_PSP_REFERENCE},
        {PAY_JOB_QUERY, false, true, PAY_QUERY_BY_IDEMPOTENT_REPLAY},
        {PAY_JOB_QUERY, false, false, PAY_QUERY_BY_SEARCH},
        {PAY_JOB_QUERY_CAPTURE, true, true, PAY_QUERY_BY_REQUEST_NUMBER},
        {PAY_JOB_QUERY_CAPTURE, false, true, PAY_QUERY_BY_IDEMPOTENT_REPLAY},
        {PAY_JOB_QUERY_CAPTURE, false, false, PAY_QUERY_BY_NONE},
        {PAY_JOB_QUERY_REFUND, true, true, PAY_QUERY_BY_REQUEST_NUMBER},
        {PAY_JOB_QUERY_REFUND, false, true, PAY_QUERY_BY_IDEMPOTENT_REPLAY},
        {PAY_JOB_QUERY_REFUND, false, false, PAY_QUERY_BY_NONE},
        {PAY_JOB_SUBMIT, true, true, PAY_QUERY_BY_NONE},
        {PAY_JOB_CANCEL, true, true, PAY_QUERY_BY_NONE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pay_psp_request_job job = job_of(rows[i].kind, none);
        job.reference_count = rows[i].is_bound ? 2 : 0;
        job.may_replay = rows[i].may_replay;
        assert_int_equal(pay_psp_stripe.choose_query(&job), rows[i].query_by);
    }
    /* Only a not-found of a question by our number counts (state-machine.md, note 2). */
    assert_false(pay_psp_stripe.traits.finds_by_request_no);
    assert_true(pay_psp_stripe.traits.queries_captures && pay_psp_stripe.traits.queries_refunds);
    assert_true(pay_psp_stripe.traits.finds_captures_by_no);
    assert_true(pay_psp_stripe.traits.finds_refunds_by_no);
    /* A day less a tenth. */
    assert_int_equal(pay_psp_stripe.replay_lifetime_us, INT64_C(77760000000));
    assert_false(pay_psp_stripe.traits.finds_by_request_no);
}

static void test_account_rules(void **state)
{
    static const struct {
        const char *name, *value;
        bool is_fine;
    } rows[] = {
        {"api_version", "2024-06-20", true},
        {"api_version", "2025-03-31.basil", true},
        {"api_version", "2024-6-20", false},
        {"api_version", "", false},
        {"api_version", "2024-06-20x", false},
        {"api_version", "2024-06-20.", false},
        {"api_version", "2024-06-20.a\r\nX: y", false},
        {"connect_account", "acct_1", true},
        {"connect_account", "1", false},
    };
    struct fixture *fix = *state;
    struct pay_err err = {0};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fix->account.settings[0] = (struct pay_psp_setting){rows[i].name, rows[i].value};
        assert_int_equal(pay_psp_stripe.check_account(&fix->account, &err) == PAY_OK,
                         rows[i].is_fine);
    }
    fix->account.setting_count = 0;
    fix->account.live = true; /* With a test key. */
    assert_int_equal(pay_psp_stripe.check_account(&fix->account, &err), PAY_FATAL);
    assert_null(strstr(err.text, "0123456789"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_submit_confirms_with_an_instrument),
        TEST(test_submit_without_instrument_leaves_the_confirm_to_the_customer),
        TEST(test_extra_in_one_order_and_known_only),
        TEST(test_every_call),
        TEST(test_a5_a7_amounts_of_captures_and_refunds),
        TEST(test_d13_a_repeated_refund_is_the_same_request),
        TEST(test_what_cannot_be_built_is_refused),
        TEST(test_provider_reference_serves_as_the_intent),
        TEST(test_reference_cannot_leave_its_place),
        TEST(test_connect_account_goes_along),
        TEST(test_authorize_adds_the_key),
        TEST(test_stored_request_is_the_same),
        TEST(test_a5_a7_a9_amounts_convert_exactly),
        TEST(test_a5_a7_a9_amounts_that_do_not_convert),
        TEST(test_amounts_stand_in_the_request),
        TEST(test_percent_encoding),
        TEST(test_how_to_ask),
        TEST(test_account_rules),
    };
    return cmocka_run_group_tests_name("stripe build", tests, NULL, NULL);
}
