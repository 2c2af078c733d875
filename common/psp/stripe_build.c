/* SPDX-License-Identifier: Apache-2.0 */
#include "common/psp/form.h"
#include "common/psp/stripe_internal.h"

#include <ctype.h>
#include <string.h>

#include "common/base/banned.h"

#define OP "stripe request"

const char *const pay_stripe_extra_names[] = {"mandate", "off_session", "setup_future_usage",
                                              "statement_descriptor_suffix", NULL};

/** A request being written; buffers are copied into the arena at the end. */
struct draft {
    const struct pay_psp_account *account;
    const struct pay_psp_request_job *job;
    struct pay_arena *arena;
    struct pay_err *err;
    struct pay_buf url;
    struct pay_buf body;
    bool is_post;
};

static enum pay_status bad_job(struct draft *draft, const char *what)
{
    return pay_err_set(draft->err, PAY_REJECT, PAY_PSP_BAD_JOB, OP, "%s: %s",
                       pay_job_kind_name(draft->job->kind), what);
}

struct pay_str pay_stripe_job_intent(const struct pay_psp_request_job *job)
{
    const struct pay_str intent = pay_psp_job_reference(job, PAY_REF_INTENT);
    if (intent.ptr != NULL) {
        return intent;
    }
    return pay_str_starts(job->provider_reference, "pi_") ? job->provider_reference
                                                          : (struct pay_str){NULL, 0};
}

/* "<endpoint>/v1/payment_intents/<id><suffix>"; @return false: no intent is bound. */
static bool intent_url(struct draft *draft, const char *suffix)
{
    const struct pay_str intent = pay_stripe_job_intent(draft->job);
    if (intent.ptr == NULL) {
        return false;
    }
    pay_buf_add_c(&draft->url, "/v1/payment_intents/");
    pay_form_encode(&draft->url, intent);
    pay_buf_add_c(&draft->url, suffix);
    return true;
}

static bool currency_of(const struct pay_psp_request_job *job, char upper[PAY_CURRENCY_SIZE],
                        char lower[PAY_CURRENCY_SIZE])
{
    if (!pay_psp_currency_upper(job->currency, upper)) {
        return false;
    }
    for (size_t i = 0; i < PAY_CURRENCY_SIZE; i++) {
        lower[i] = (char)tolower((unsigned char)upper[i]); /* Letters of ASCII only. */
    }
    return true;
}

/* @return false: nothing that Stripe can express exactly. */
static bool add_amount(struct draft *draft, const char *name, bool with_currency)
{
    struct pay_money money = {.amount_minor = draft->job->amount_minor};
    char lower[PAY_CURRENCY_SIZE];
    int64_t amount = 0;
    if (!currency_of(draft->job, money.currency, lower) ||
        !pay_psp_amount_out(pay_stripe_currencies, money, &amount)) {
        return false;
    }
    pay_form_add_i64(&draft->body, name, amount);
    if (with_currency) {
        pay_form_add(&draft->body, "currency", pay_str_of(lower));
    }
    return true;
}

static bool is_token(struct pay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_')) {
            return false;
        }
    }
    return text.len > 0;
}

static size_t add_extra_named(struct draft *draft, const char *name)
{
    size_t taken = 0;
    for (size_t i = 0; i < draft->job->extra_count; i++) {
        if (pay_str_eq_c(draft->job->extra[i].name, name)) {
            pay_form_add(&draft->body, name, draft->job->extra[i].value);
            taken++;
        }
    }
    return taken;
}

/* In the order of the table, whatever the order of the job: a replay must have the same bytes. */
static enum pay_status add_extra(struct draft *draft)
{
    size_t taken = 0;
    for (size_t n = 0; pay_stripe_extra_names[n] != NULL; n++) {
        taken += add_extra_named(draft, pay_stripe_extra_names[n]);
    }
    return taken == draft->job->extra_count
               ? PAY_OK
               : bad_job(draft, "an extra name is not one of Stripe's");
}

/* With an instrument the create confirms at once; without one the customer's device goes on with
 * the client secret. */
static enum pay_status submit(struct draft *draft)
{
    const struct pay_psp_request_job *job = draft->job;
    pay_buf_add_c(&draft->url, "/v1/payment_intents");
    if (!add_amount(draft, "amount", true)) {
        return bad_job(draft, "amount or currency cannot be expressed");
    }
    if (job->capture_mode != PAY_CAPTURE_AUTOMATIC && job->capture_mode != PAY_CAPTURE_MANUAL) {
        return bad_job(draft, "capture mode is not known");
    }
    if (!is_token(job->method)) {
        return bad_job(draft, "method is no payment method type");
    }
    pay_form_add(&draft->body, "metadata[order_id]", job->request_no);
    pay_form_add(&draft->body, "payment_method_types[]", job->method);
    pay_form_add(&draft->body, "capture_method",
                 job->capture_mode == PAY_CAPTURE_MANUAL ? PAY_STR("manual")
                                                         : PAY_STR("automatic"));
    pay_form_add(&draft->body, "description", job->description);
    pay_form_add(&draft->body, "customer", job->payer_id);
    if (job->instrument.ptr != NULL) {
        pay_form_add(&draft->body, "payment_method", job->instrument);
        pay_form_add(&draft->body, "confirm", PAY_STR("true"));
        pay_form_add(&draft->body, "return_url", job->return_url);
    }
    return add_extra(draft);
}

static enum pay_status confirm(struct draft *draft)
{
    if (!intent_url(draft, "/confirm")) {
        return bad_job(draft, "no intent is bound");
    }
    pay_form_add(&draft->body, "payment_method", draft->job->instrument);
    pay_form_add(&draft->body, "return_url", draft->job->return_url);
    return PAY_OK;
}

/* Stripe captures an authorization once and releases the rest; several captures need a feature of
 * the account, and the charge's id and sums would then name more than one capture. Our number goes
 * into the intent's metadata: the capture can be told from one that was made in Stripe's console,
 * or by another of our own jobs. */
static enum pay_status capture(struct draft *draft)
{
    if (!draft->job->is_final) {
        return pay_err_set(draft->err, PAY_REJECT, PAY_PSP_NOT_SUPPORTED, OP,
                           "CAPTURE: only a final capture is possible");
    }
    if (!intent_url(draft, "/capture")) {
        return bad_job(draft, "no intent is bound");
    }
    if (!add_amount(draft, "amount_to_capture", false)) {
        return bad_job(draft, "amount or currency cannot be expressed");
    }
    pay_form_add(&draft->body, "metadata[capture_ref]", draft->job->request_no);
    return PAY_OK;
}

/* reason_code of ours, where Stripe has the same word. */
static void add_reason(struct draft *draft, const char *name, const char *const *known)
{
    for (size_t i = 0; known[i] != NULL; i++) {
        if (pay_str_eq_c(draft->job->reason_code, known[i])) {
            pay_form_add(&draft->body, name, draft->job->reason_code);
        }
    }
}

static enum pay_status cancel(struct draft *draft)
{
    static const char *const known[] = {"duplicate", "fraudulent", "requested_by_customer",
                                        "abandoned", NULL};
    if (!intent_url(draft, "/cancel")) {
        return bad_job(draft, "no intent is bound");
    }
    add_reason(draft, "cancellation_reason", known);
    return PAY_OK;
}

static enum pay_status refund(struct draft *draft)
{
    static const char *const known[] = {"duplicate", "fraudulent", "requested_by_customer", NULL};
    const struct pay_str intent = pay_stripe_job_intent(draft->job);
    pay_buf_add_c(&draft->url, "/v1/refunds");
    if (intent.ptr == NULL) {
        return bad_job(draft, "no intent is bound");
    }
    pay_form_add(&draft->body, "payment_intent", intent);
    if (!add_amount(draft, "amount", false)) {
        return bad_job(draft, "amount or currency cannot be expressed");
    }
    pay_form_add(&draft->body, "metadata[order_id]", draft->job->attempt_id);
    pay_form_add(&draft->body, "metadata[refund_ref]", draft->job->request_no);
    add_reason(draft, "reason", known);
    return PAY_OK;
}

/* Also for a capture: the intent bears the number of the one that was made. */
static enum pay_status query_intent(struct draft *draft)
{
    return intent_url(draft, "?expand[]=latest_charge") ? PAY_OK
                                                        : bad_job(draft, "no intent is bound");
}

/* The number is ours, and still it is checked: it stands between quotes of a query language. */
static enum pay_status search(struct draft *draft)
{
    for (size_t i = 0; i < draft->job->request_no.len; i++) {
        if (strchr("'\\", draft->job->request_no.ptr[i]) != NULL) {
            return bad_job(draft, "request number cannot be searched for");
        }
    }
    pay_buf_add_c(&draft->url, "/v1/payment_intents/search?query=");
    pay_form_encode(&draft->url, PAY_STR("metadata['order_id']:'"));
    pay_form_encode(&draft->url, draft->job->request_no);
    pay_form_encode(&draft->url, PAY_STR("'"));
    pay_buf_add_c(&draft->url, "&limit=10&expand[]=data.latest_charge");
    return PAY_OK;
}

/* All refunds of the intent; ours is found by its number in them (99 a payment at most). */
static enum pay_status list_refunds(struct draft *draft)
{
    const struct pay_str intent = pay_stripe_job_intent(draft->job);
    if (intent.ptr == NULL) {
        return bad_job(draft, "no intent is bound");
    }
    pay_buf_add_c(&draft->url, "/v1/refunds?payment_intent=");
    pay_form_encode(&draft->url, intent);
    pay_buf_add_c(&draft->url, "&limit=100");
    return PAY_OK;
}

static const struct {
    enum pay_job_kind kind;
    enum pay_query_by query_by;
    enum pay_status (*write)(struct draft *draft);
} calls[] = {
    {PAY_JOB_SUBMIT, PAY_QUERY_BY_NONE, submit},
    {PAY_JOB_CONFIRM, PAY_QUERY_BY_NONE, confirm},
    {PAY_JOB_CAPTURE, PAY_QUERY_BY_NONE, capture},
    {PAY_JOB_CANCEL, PAY_QUERY_BY_NONE, cancel},
    {PAY_JOB_REFUND, PAY_QUERY_BY_NONE, refund},
    {PAY_JOB_QUERY, PAY_QUERY_BY_PSP_REFERENCE, query_intent},
    {PAY_JOB_QUERY, PAY_QUERY_BY_SEARCH, search},
    {PAY_JOB_QUERY_CAPTURE, PAY_QUERY_BY_REQUEST_NUMBER, query_intent},
    {PAY_JOB_QUERY_REFUND, PAY_QUERY_BY_REQUEST_NUMBER, list_refunds},
};

static enum pay_status write_call(struct draft *draft, enum pay_query_by query_by)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (calls[i].kind == draft->job->kind && calls[i].query_by == query_by) {
            draft->is_post = query_by == PAY_QUERY_BY_NONE;
            return calls[i].write(draft);
        }
    }
    return pay_err_set(draft->err, PAY_REJECT, PAY_PSP_NOT_SUPPORTED, OP, "%s by %s is no call",
                       pay_job_kind_name(draft->job->kind), pay_query_by_name(query_by));
}

/* The same in every try of SUBMIT, CAPTURE and REFUND; CONFIRM and CANCEL have one per number: a
 * stored refusal of an earlier cancel would be played back for a day. */
static struct pay_str idempotency_key(const struct draft *draft)
{
    const struct pay_psp_request_job *job = draft->job;
    const bool is_plain = job->kind != PAY_JOB_CONFIRM && job->kind != PAY_JOB_CANCEL;
    const int len = (int)job->request_no.len;
    if (is_plain) {
        return pay_arena_str(draft->arena, job->request_no);
    }
    if (job->kind == PAY_JOB_CANCEL && job->number <= 1) {
        return pay_arena_printf(draft->arena, "%.*s.CANCEL", len, job->request_no.ptr);
    }
    return pay_arena_printf(draft->arena, "%.*s.%s.%d", len, job->request_no.ptr,
                            pay_job_kind_name(job->kind), job->number);
}

static void add_header(struct pay_psp_request *request, struct pay_str name, struct pay_str value)
{
    request->headers[request->header_count++] = (struct pay_psp_header){name, value};
}

static enum pay_status finish(struct draft *draft, struct pay_psp_request *request)
{
    const struct pay_str version =
        pay_arena_str(draft->arena, pay_str_of(pay_psp_setting(draft->account, "api_version")));
    const struct pay_str connect =
        pay_arena_str(draft->arena, pay_str_of(pay_psp_setting(draft->account, "connect_account")));
    request->method = draft->is_post ? "POST" : "GET";
    request->url = pay_arena_str(draft->arena, pay_buf_str(&draft->url));
    add_header(request, PAY_STR("Accept"), PAY_STR("application/json"));
    if (version.ptr != NULL) {
        add_header(request, PAY_STR("Stripe-Version"), version);
    }
    if (connect.ptr != NULL) {
        add_header(request, PAY_STR("Stripe-Account"), connect);
    }
    if (draft->is_post) {
        request->body = pay_arena_bytes(draft->arena, pay_buf_bytes(&draft->body));
        request->idempotency_key = idempotency_key(draft);
        add_header(request, PAY_STR("Content-Type"), PAY_STR("application/x-www-form-urlencoded"));
        add_header(request, PAY_STR("Idempotency-Key"), request->idempotency_key);
    }
    if (draft->url.failed || draft->body.failed) {
        return pay_err_set(draft->err, PAY_REJECT, PAY_PSP_TOO_LARGE, OP, "%s: too large",
                           pay_job_kind_name(draft->job->kind));
    }
    const bool complete =
        request->url.ptr != NULL &&
        (!draft->is_post || (request->idempotency_key.ptr != NULL && request->body.ptr != NULL));
    return complete ? PAY_OK
                    : pay_err_set(draft->err, PAY_RETRY, PAY_PSP_NO_MEMORY, OP, "out of memory");
}

enum pay_status pay_stripe_build(const struct pay_psp_account *account,
                                 const struct pay_psp_request_job *job, enum pay_query_by query_by,
                                 struct pay_arena *arena, struct pay_psp_request *ret_request,
                                 struct pay_err *err)
{
    struct draft draft = {.account = account,
                          .job = job,
                          .arena = arena,
                          .err = err,
                          .url = pay_buf_make(PAY_PSP_REQUEST_BYTES_MAX),
                          .body = pay_buf_make(PAY_PSP_REQUEST_BYTES_MAX)};
    struct pay_psp_request request = {0};
    enum pay_status status = PAY_REJECT;
    if (job->request_no.len == 0 || job->request_no.len > 200) {
        status = bad_job(&draft, "request number is missing or too long");
        goto out;
    }
    pay_buf_add_c(&draft.url, account->endpoint);
    status = write_call(&draft, query_by);
    if (status == PAY_OK) {
        status = finish(&draft, &request);
    }
    if (status == PAY_OK) {
        *ret_request = request;
    }
out:
    pay_buf_free(&draft.url);
    pay_buf_free(&draft.body);
    return status;
}

static bool is_known(const struct pay_psp_request_job *job)
{
    return pay_stripe_job_intent(job).ptr != NULL;
}

enum pay_query_by pay_stripe_choose_query(const struct pay_psp_request_job *job)
{
    const enum pay_query_by replay =
        job->may_replay ? PAY_QUERY_BY_IDEMPOTENT_REPLAY : PAY_QUERY_BY_NONE;
    switch (job->kind) {
    case PAY_JOB_QUERY:
        if (is_known(job)) {
            return PAY_QUERY_BY_PSP_REFERENCE;
        }
        return job->may_replay ? replay : PAY_QUERY_BY_SEARCH;
    case PAY_JOB_QUERY_CAPTURE:
    case PAY_JOB_QUERY_REFUND:
        return is_known(job) ? PAY_QUERY_BY_REQUEST_NUMBER : replay;
    default:
        return PAY_QUERY_BY_NONE; /* Not a query. */
    }
}
