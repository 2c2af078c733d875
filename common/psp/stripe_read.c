/* SPDX-License-Identifier: Apache-2.0 */
#include "common/psp/stripe_internal.h"

#include <string.h>

#include "common/base/banned.h"

#define ITEMS_PER_ANSWER_MAX 24 /**< A search answers 10 intents, each with a sum refunded. */
#define RETRY_AFTER_S_MAX 86400
#define REQUEST_ID_BYTES_MAX 64

static const struct pay_str absent = {NULL, 0};

/** What an answer comes to, before it is put into events. */
enum outcome {
    FACTS,          /**< The items are there. */
    UNCLEAR,        /**< Nothing certain: UNKNOWN of a money call, else QUERY_FAILED. */
    REFUSED,        /**< Stripe says no; definite where a definite no may exist. */
    LATER,          /**< A refund that is refused for now. */
    NOT_FOUND,      /**< A query that found nothing. */
    CANCEL_REFUSED, /**< It could not be canceled: ask what it is. */
};

/** One answer being read. */
struct answer {
    const struct pay_psp_response *response;
    const struct pay_psp_request_job *job;
    struct pay_stripe_scene scene;
    const struct pay_json_value *root;
    const struct pay_json_value *error; /**< Stripe's own error object; NULL: none. */
    int should_retry;                   /**< Stripe-Should-Retry: 1, 0, -1 not said. */
    bool only_send;
};

static bool is_money(const struct answer *answer)
{
    const enum pay_job_kind kind = answer->job->kind;
    return kind == PAY_JOB_SUBMIT || kind == PAY_JOB_CONFIRM || kind == PAY_JOB_CAPTURE ||
           kind == PAY_JOB_REFUND;
}

static struct pay_str header(const struct pay_psp_response *response, const char *name)
{
    const struct pay_psp_header *found =
        pay_psp_header_find(response->headers, response->header_count, name);
    return found == NULL ? absent : found->value;
}

/* ---- Stripe's refusals ---- */

enum meaning {
    MEANS_UNKNOWN,
    MEANS_NO,   /**< Nothing was done, and the same call will not be. */
    MEANS_BUSY, /**< Nothing was done; later it may be. */
};

/* The outcome table of Stripe's page. Rows of one status: the first whose type fits. */
static const struct row {
    int status;
    const char *type; /**< error.type; NULL: any. */
    enum meaning meaning;
    enum pay_failure_class class;
} refusals[] = {
    /* The key was used with other parameters: so there was another send, whatever we remember. */
    {400, "idempotency_error", MEANS_UNKNOWN, PAY_FAILURE_CONFIGURATION},
    {400, "card_error", MEANS_NO, PAY_FAILURE_DECLINED},
    {400, "invalid_request_error", MEANS_NO, PAY_FAILURE_INVALID_REQUEST},
    {401, NULL, MEANS_NO, PAY_FAILURE_CONFIGURATION},
    {402, NULL, MEANS_NO, PAY_FAILURE_DECLINED},
    {403, NULL, MEANS_NO, PAY_FAILURE_CONFIGURATION},
    {404, NULL, MEANS_NO, PAY_FAILURE_INVALID_REQUEST},
    {429, NULL, MEANS_BUSY, PAY_FAILURE_PSP_ERROR},
};

static const struct row unknown_row = {0, NULL, MEANS_UNKNOWN, PAY_FAILURE_NONE};

static const struct row *find_row(const struct answer *answer)
{
    const struct pay_str type = pay_json_str(pay_json_member(answer->error, "type"));
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        if (refusals[i].status == answer->response->http_status &&
            (refusals[i].type == NULL || pay_str_eq_c(type, refusals[i].type))) {
            return &refusals[i];
        }
    }
    return &unknown_row;
}

static bool has_code(const struct answer *answer, const char *const *codes)
{
    const struct pay_str code = pay_json_str(pay_json_member(answer->error, "code"));
    for (size_t i = 0; codes[i] != NULL; i++) {
        if (pay_str_eq_c(code, codes[i])) {
            return true;
        }
    }
    return false;
}

/* It was done before, by whom and how far only a query tells. */
static const char *const already_done[] = {"charge_already_captured",
                                           "charge_already_refunded",
                                           "payment_intent_unexpected_state",
                                           "idempotency_key_in_use",
                                           "lock_timeout",
                                           NULL};

/* Of a refund: not done now, and under the same number it may be later. */
static const char *const not_now[] = {"balance_insufficient", "insufficient_funds", "lock_timeout",
                                      NULL};

/* ---- Money calls ---- */

static bool same_text(struct pay_str a, struct pay_str b)
{
    return a.ptr != NULL && b.ptr != NULL && pay_str_eq(a, b);
}

static struct pay_str metadata(const struct pay_json_value *object, const char *name)
{
    return pay_json_str(pay_json_member(pay_json_member(object, "metadata"), name));
}

static bool is_object(const struct answer *answer, const struct pay_json_value *value,
                      const char *kind)
{
    bool live = false;
    return pay_str_eq_c(pay_json_str(pay_json_member(value, "object")), kind) &&
           (!pay_json_bool(pay_json_member(value, "livemode"), &live) ||
            live == answer->scene.account->live);
}

/* The attempt's intent, and no other: by the id that was called, or by the number that we gave. */
static bool is_our_intent(const struct answer *answer, const struct pay_json_value *intent)
{
    const enum pay_job_kind kind = answer->job->kind;
    const bool by_id = kind == PAY_JOB_CONFIRM || kind == PAY_JOB_CAPTURE ||
                       kind == PAY_JOB_CANCEL || kind == PAY_JOB_QUERY_CAPTURE;
    if (!is_object(answer, intent, "payment_intent")) {
        return false;
    }
    return by_id ? same_text(pay_stripe_id(pay_json_member(intent, "id")),
                             pay_stripe_job_intent(answer->job))
                 : same_text(metadata(intent, "order_id"), answer->job->attempt_id);
}

static enum outcome facts_or(bool understood, enum outcome otherwise)
{
    return understood ? FACTS : otherwise;
}

static enum outcome read_attempt(struct answer *answer)
{
    return facts_or(is_our_intent(answer, answer->root) &&
                        pay_stripe_intent_now(&answer->scene, answer->root),
                    UNCLEAR);
}

static bool push_capture(struct answer *answer, enum pay_event_type type,
                         const struct pay_json_value *intent)
{
    struct pay_event event = pay_stripe_event(&answer->scene, type);
    event.provider_payment_id =
        pay_stripe_keep(&answer->scene, pay_stripe_id(pay_json_member(intent, "id")));
    event.merchant_request_no = pay_stripe_keep(&answer->scene, answer->job->attempt_id);
    event.action_id = pay_stripe_keep(&answer->scene, answer->job->action_id);
    if (type == PAY_EV_CAPTURE_FAILED) {
        event.failure_class = PAY_FAILURE_OTHER;
    }
    return pay_stripe_push(&answer->scene, &event);
}

static struct pay_str capture_ref(const struct answer *answer)
{
    return metadata(answer->root, "capture_ref");
}

static bool captured_sum_is_ours(const struct answer *answer)
{
    const struct pay_psp_item *item = &answer->scene.items[answer->scene.count - 1];
    return item->event.has_amount && item->event.amount.amount_minor == answer->job->amount_minor;
}

/* The answer to our own call, or to its replay: where Stripe does not repeat our number, the sum
 * tells. */
static bool push_captured(struct answer *answer)
{
    const struct pay_str number = capture_ref(answer);
    if (number.len > 0 && !pay_str_eq(number, answer->job->request_no)) {
        return false;
    }
    if (!pay_stripe_intent(&answer->scene, answer->root, PAY_STRIPE_CAPTURED)) {
        return false;
    }
    struct pay_psp_item *item = &answer->scene.items[answer->scene.count - 1];
    if (number.len == 0 && captured_sum_is_ours(answer)) {
        item->event.action_id = pay_stripe_keep(&answer->scene, answer->job->action_id);
    }
    return answer->scene.reason == PAY_PSP_OK;
}

static enum outcome read_capture(struct answer *answer)
{
    const struct pay_str status = pay_json_str(pay_json_member(answer->root, "status"));
    if (!is_our_intent(answer, answer->root)) {
        return UNCLEAR;
    }
    if (pay_str_eq_c(status, "succeeded")) {
        return facts_or(push_captured(answer), UNCLEAR);
    }
    return facts_or(pay_str_eq_c(status, "processing") &&
                        push_capture(answer, PAY_EV_CAPTURE_PROCESSING, answer->root),
                    UNCLEAR);
}

static enum outcome read_refund(struct answer *answer)
{
    return facts_or(is_object(answer, answer->root, "refund") &&
                        same_text(metadata(answer->root, "refund_ref"), answer->job->request_no) &&
                        pay_stripe_refund(&answer->scene, answer->root),
                    UNCLEAR);
}

/* ---- CANCEL and queries ---- */

static enum outcome read_cancel(struct answer *answer)
{
    if (!is_our_intent(answer, answer->root)) {
        return UNCLEAR;
    }
    if (!pay_str_eq_c(pay_json_str(pay_json_member(answer->root, "status")), "canceled")) {
        return CANCEL_REFUSED;
    }
    return facts_or(pay_stripe_intent(&answer->scene, answer->root, PAY_STRIPE_CAN), UNCLEAR);
}

static enum outcome read_search(struct answer *answer)
{
    const struct pay_json_value *list = pay_json_member(answer->root, "data");
    if (!is_object(answer, answer->root, "search_result") ||
        pay_json_kind(list) != PAY_JSON_ARRAY) {
        return UNCLEAR;
    }
    const size_t count = pay_json_count(list);
    for (size_t i = 0; i < count; i++) {
        const struct pay_json_value *intent = pay_json_item(list, i);
        if (is_our_intent(answer, intent) && !pay_stripe_intent_now(&answer->scene, intent)) {
            return UNCLEAR;
        }
    }
    if (answer->scene.count > 0) {
        return FACTS;
    }
    return count == 0 ? NOT_FOUND : UNCLEAR;
}

static enum outcome read_query(struct answer *answer)
{
    if (answer->response->query_by == PAY_QUERY_BY_SEARCH) {
        return read_search(answer);
    }
    if (answer->response->query_by == PAY_QUERY_BY_IDEMPOTENT_REPLAY) {
        return read_attempt(answer);
    }
    /* By its own reference: whose number it bears is for the core to judge. */
    return facts_or(is_object(answer, answer->root, "payment_intent") &&
                        same_text(pay_stripe_id(pay_json_member(answer->root, "id")),
                                  pay_stripe_job_intent(answer->job)) &&
                        pay_stripe_intent_now(&answer->scene, answer->root),
                    UNCLEAR);
}

/* Whether the intent's one capture is certainly not that of our action: it bears another number, or
 * none (the console) and another sum. With our sum, the open capture of that sum is meant. */
static bool is_others_capture(const struct answer *answer)
{
    const struct pay_str number = capture_ref(answer);
    const struct pay_str currency = pay_json_str(pay_json_member(answer->root, "currency"));
    int64_t received = 0;
    struct pay_money money = {0};
    if (number.len > 0) {
        return !pay_str_eq(number, answer->job->request_no);
    }
    return answer->job->amount_minor > 0 &&
           pay_json_int(pay_json_member(answer->root, "amount_received"), &received) &&
           pay_psp_amount_in(pay_stripe_currencies, received, currency, &money) &&
           money.amount_minor != answer->job->amount_minor;
}

/* Then ours was not made and never will be. That is said first, for its reservation is in the other
 * one's way. */
static bool push_what_was_captured(struct answer *answer)
{
    const struct pay_json_value *charge = pay_json_member(answer->root, "latest_charge");
    return (!is_others_capture(answer) ||
            push_capture(answer, PAY_EV_CAPTURE_FAILED, answer->root)) &&
           pay_stripe_intent(&answer->scene, answer->root, PAY_STRIPE_CAPTURED) &&
           (pay_json_kind(charge) != PAY_JSON_OBJECT ||
            pay_stripe_refund_sum(&answer->scene, charge));
}

static enum outcome read_query_capture(struct answer *answer)
{
    const struct pay_str status = pay_json_str(pay_json_member(answer->root, "status"));
    if (answer->response->query_by == PAY_QUERY_BY_IDEMPOTENT_REPLAY) {
        return read_capture(answer);
    }
    if (!is_our_intent(answer, answer->root)) {
        return UNCLEAR;
    }
    if (pay_str_eq_c(status, "succeeded")) {
        return facts_or(push_what_was_captured(answer), UNCLEAR);
    }
    if (pay_str_eq_c(status, "requires_capture")) {
        return NOT_FOUND;
    }
    if (pay_str_eq_c(status, "processing")) {
        return facts_or(push_capture(answer, PAY_EV_CAPTURE_PROCESSING, answer->root), UNCLEAR);
    }
    return facts_or(pay_str_eq_c(status, "canceled") &&
                        push_capture(answer, PAY_EV_CAPTURE_FAILED, answer->root) &&
                        pay_stripe_intent_now(&answer->scene, answer->root),
                    UNCLEAR);
}

static enum outcome read_query_refund(struct answer *answer)
{
    bool has_more = true;
    const struct pay_json_value *list = pay_json_member(answer->root, "data");
    if (answer->response->query_by == PAY_QUERY_BY_IDEMPOTENT_REPLAY) {
        return read_refund(answer);
    }
    if (!is_object(answer, answer->root, "list") || pay_json_kind(list) != PAY_JSON_ARRAY) {
        return UNCLEAR;
    }
    for (size_t i = 0; i < pay_json_count(list); i++) {
        const struct pay_json_value *refund = pay_json_item(list, i);
        if (is_object(answer, refund, "refund") &&
            same_text(metadata(refund, "refund_ref"), answer->job->request_no)) {
            return facts_or(pay_stripe_refund(&answer->scene, refund), UNCLEAR);
        }
    }
    /* Not on this page is not "not there". */
    return pay_json_bool(pay_json_member(answer->root, "has_more"), &has_more) && !has_more
               ? NOT_FOUND
               : UNCLEAR;
}

static enum outcome (*const readers[PAY_JOB_KIND_COUNT])(struct answer *answer) = {
    [PAY_JOB_SUBMIT] = read_attempt,
    [PAY_JOB_CONFIRM] = read_attempt,
    [PAY_JOB_CAPTURE] = read_capture,
    [PAY_JOB_CANCEL] = read_cancel,
    [PAY_JOB_REFUND] = read_refund,
    [PAY_JOB_QUERY] = read_query,
    [PAY_JOB_QUERY_CAPTURE] = read_query_capture,
    [PAY_JOB_QUERY_REFUND] = read_query_refund,
};

/* ---- Errors ---- */

/* Refused, and the answer carries the intent itself: that is what it is now. */
static bool read_embedded_intent(struct answer *answer)
{
    const bool is_attempt = answer->job->kind == PAY_JOB_SUBMIT ||
                            answer->job->kind == PAY_JOB_CONFIRM ||
                            answer->job->kind == PAY_JOB_QUERY;
    const struct pay_json_value *intent = pay_json_member(answer->error, "payment_intent");
    answer->scene.error = answer->error;
    return is_attempt && is_our_intent(answer, intent) &&
           pay_stripe_intent_now(&answer->scene, intent);
}

/* Under the same number, so another send of it does no harm. Not said of a replay: that this one
 * was not done tells nothing of the first. */
static bool is_later(const struct answer *answer)
{
    return answer->job->kind == PAY_JOB_REFUND && answer->error != NULL &&
           answer->response->query_by == PAY_QUERY_BY_NONE &&
           (find_row(answer)->meaning == MEANS_BUSY || has_code(answer, not_now));
}

static enum outcome read_money_refusal(struct answer *answer)
{
    const struct row *row = find_row(answer);
    if (is_later(answer)) {
        return LATER;
    }
    if (answer->error == NULL || row->meaning == MEANS_UNKNOWN) {
        return UNCLEAR;
    }
    if (has_code(answer, already_done) || answer->should_retry == 1) {
        return UNCLEAR;
    }
    if (read_embedded_intent(answer)) {
        return FACTS;
    }
    if (answer->scene.reason != PAY_PSP_OK) {
        return UNCLEAR;
    }
    return answer->only_send ? REFUSED : UNCLEAR;
}

static enum outcome read_cancel_refusal(const struct answer *answer)
{
    const int status = answer->response->http_status;
    const bool says_no = status == 400 || status == 402 || status == 404;
    return answer->error != NULL && says_no && answer->should_retry != 1 &&
                   find_row(answer)->meaning == MEANS_NO
               ? CANCEL_REFUSED
               : UNCLEAR;
}

static enum outcome read_query_refusal(struct answer *answer)
{
    static const char *const missing[] = {"resource_missing", NULL};
    if (answer->response->query_by == PAY_QUERY_BY_IDEMPOTENT_REPLAY) {
        return facts_or(answer->error != NULL && find_row(answer)->meaning == MEANS_NO &&
                            !has_code(answer, already_done) && read_embedded_intent(answer),
                        UNCLEAR);
    }
    return answer->response->query_by == PAY_QUERY_BY_PSP_REFERENCE &&
                   answer->job->kind == PAY_JOB_QUERY && answer->response->http_status == 404 &&
                   has_code(answer, missing)
               ? NOT_FOUND
               : UNCLEAR;
}

static enum outcome read_refusal(struct answer *answer)
{
    if (is_money(answer)) {
        return read_money_refusal(answer);
    }
    return answer->job->kind == PAY_JOB_CANCEL ? read_cancel_refusal(answer)
                                               : read_query_refusal(answer);
}

static enum outcome read_answer(struct answer *answer)
{
    const int status = answer->response->http_status;
    const struct pay_json_value *error = pay_json_member(answer->root, "error");
    if (pay_json_str(pay_json_member(error, "type")).len > 0) {
        answer->error = error; /* A proxy's page has none, and proves nothing. */
    }
    if (status == 200 && answer->error == NULL && readers[answer->job->kind] != NULL) {
        return readers[answer->job->kind](answer);
    }
    return status >= 400 && status < 500 ? read_refusal(answer) : UNCLEAR;
}

/* ---- Outcomes to events ---- */

static struct pay_event named_event(struct answer *answer, enum pay_event_type type)
{
    struct pay_event event = pay_stripe_event(&answer->scene, type);
    event.merchant_request_no = pay_stripe_keep(&answer->scene, answer->job->attempt_id);
    event.action_id = pay_stripe_keep(&answer->scene, answer->job->action_id);
    event.provider_payment_id = pay_stripe_keep(&answer->scene, pay_stripe_job_intent(answer->job));
    return event;
}

/* A confirm that is refused leaves an intent that can still be paid. */
static bool push_refused(struct answer *answer)
{
    const enum pay_event_type type =
        answer->job->kind == PAY_JOB_CONFIRM
            ? PAY_EV_ATTEMPT_DECLINED
            : pay_psp_result_type(answer->job->kind, PAY_PSP_RESULT_FAILED);
    struct pay_event event = named_event(answer, type);
    const struct row *row = find_row(answer);
    pay_stripe_failure(&answer->scene, pay_json_str(pay_json_member(answer->error, "code")),
                       pay_json_str(pay_json_member(answer->error, "decline_code")), &event);
    if (row->class != PAY_FAILURE_DECLINED) {
        event.failure_class = row->class;
    }
    return pay_stripe_push(&answer->scene, &event);
}

static bool push_plain(struct answer *answer, enum pay_event_type type)
{
    const struct pay_event event = named_event(answer, type);
    return pay_stripe_push(&answer->scene, &event);
}

/* @return false: the arena is full. */
static bool push_local(struct answer *answer, enum pay_psp_result result)
{
    struct pay_psp_item *item = &answer->scene.items[0];
    if (pay_psp_local_item(answer->scene.account, answer->response, result, answer->scene.arena,
                           item, NULL) != PAY_OK) {
        return pay_stripe_fail(&answer->scene, PAY_PSP_NO_MEMORY);
    }
    item->event.provider_payment_id = absent;
    item->event.call.psp_request_id = answer->scene.call.psp_request_id;
    answer->scene.count = 1;
    return true;
}

/* What was understood in part is not said in part. */
static bool push_unclear(struct answer *answer)
{
    answer->scene.count = 0;
    answer->scene.reason = PAY_PSP_OK;
    return is_money(answer) ? push_local(answer, PAY_PSP_RESULT_UNKNOWN)
                            : push_plain(answer, PAY_EV_QUERY_FAILED);
}

static bool push_outcome(struct answer *answer, enum outcome outcome)
{
    switch (outcome) {
    case FACTS:
        return true;
    case REFUSED:
        return push_refused(answer);
    case LATER:
        return push_plain(answer, PAY_EV_REFUND_RETRY_SAME_NUMBER);
    case NOT_FOUND:
        return push_plain(answer, pay_psp_result_type(answer->job->kind, PAY_PSP_RESULT_NOT_FOUND));
    case CANCEL_REFUSED:
        return push_plain(answer, PAY_EV_CANCEL_REFUSED);
    case UNCLEAR:
        break;
    }
    return push_unclear(answer);
}

/* Evidence: a replay's answer is the stored first one, never a query's. */
static enum pay_source source_of(const struct pay_psp_response *response)
{
    return response->query_by == PAY_QUERY_BY_NONE ||
                   response->query_by == PAY_QUERY_BY_IDEMPOTENT_REPLAY
               ? PAY_SOURCE_SYNC
               : PAY_SOURCE_QUERY;
}

/* "req_..."; it is kept and shown, so nothing else may come in this way. */
static bool is_request_id(struct pay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~') {
            return false;
        }
    }
    return text.len > 0 && text.len <= REQUEST_ID_BYTES_MAX;
}

static void read_headers(struct answer *answer, struct pay_psp_reading *reading)
{
    const struct pay_psp_response *response = answer->response;
    const struct pay_str retry = header(response, "Stripe-Should-Retry");
    const struct pay_str replayed = header(response, "Idempotent-Replayed");
    const struct pay_str request_id = header(response, "Request-Id");
    int64_t seconds = 0;
    answer->should_retry =
        pay_str_eq_c(retry, "true") ? 1 : (pay_str_eq_c(retry, "false") ? 0 : -1);
    /* A stored answer is the proof of another send. */
    answer->only_send = response->only_send && !pay_str_eq_c(replayed, "true");
    if (is_request_id(request_id)) {
        answer->scene.call.psp_request_id = pay_stripe_keep(&answer->scene, request_id);
    }
    if (pay_str_to_i64(header(response, "Retry-After"), &seconds) && seconds > 0) {
        reading->retry_after_s =
            (unsigned)(seconds > RETRY_AFTER_S_MAX ? RETRY_AFTER_S_MAX : seconds);
        answer->scene.call.retry_after_s = (int)reading->retry_after_s;
    }
    reading->should_retry = answer->should_retry;
    reading->bad_credentials = response->http_status == 401 || response->http_status == 403;
    reading->too_many = response->http_status == 429;
}

static bool read_delivered(struct answer *answer, struct pay_psp_reading *reading,
                           struct pay_json **ret_doc)
{
    read_headers(answer, reading);
    if (pay_json_parse(answer->response->body, PAY_PSP_BODY_BYTES_MAX, ret_doc, NULL) != PAY_OK) {
        return push_unclear(answer);
    }
    answer->root = pay_json_root(*ret_doc);
    return push_outcome(answer, read_answer(answer));
}

/* Nothing left: certain for this send alone, so it counts only where there was no other. */
static bool push_not_sent(struct answer *answer)
{
    return is_money(answer) && answer->response->only_send
               ? push_local(answer, PAY_PSP_RESULT_NOT_SENT)
               : push_unclear(answer);
}

static bool init_answer(struct answer *answer)
{
    const struct pay_psp_response *response = answer->response;
    struct pay_stripe_scene *scene = &answer->scene;
    scene->source = source_of(response);
    scene->with_action = scene->source == PAY_SOURCE_SYNC;
    scene->transport_key = pay_arena_printf(scene->arena, "%.*s:%d", (int)response->job->job_id.len,
                                            response->job->job_id.ptr, response->send_no);
    scene->call = (struct pay_call){.is_set = true,
                                    .job_id = pay_arena_str(scene->arena, response->job->job_id),
                                    .send_no = response->send_no,
                                    .query_by = response->query_by,
                                    .asked_at_us = response->asked_at_us,
                                    .http_status = response->http_status};
    return pay_stripe_scene_init(scene, ITEMS_PER_ANSWER_MAX) && scene->transport_key.ptr != NULL;
}

enum pay_status pay_stripe_read(const struct pay_psp_account *account,
                                const struct pay_psp_response *response, struct pay_arena *arena,
                                struct pay_psp_reading *ret_reading, struct pay_err *err)
{
    struct pay_json *doc = NULL;
    struct pay_psp_reading reading = {.should_retry = -1};
    struct answer answer = {.response = response,
                            .job = response->job,
                            .scene = {.account = account, .arena = arena},
                            .should_retry = -1};
    bool done = init_answer(&answer);
    if (done && response->delivery == PAY_PSP_ANSWERED) {
        done = read_delivered(&answer, &reading, &doc);
    } else if (done && response->delivery == PAY_PSP_NOT_SENT) {
        done = push_not_sent(&answer);
    } else if (done) {
        done = push_unclear(&answer);
    }
    pay_json_free(doc);
    if (!done) {
        return pay_err_set(err, PAY_RETRY, PAY_PSP_NO_MEMORY, "stripe answer", "arena is full");
    }
    reading.items = (struct pay_psp_items){answer.scene.items, answer.scene.count};
    *ret_reading = reading;
    return PAY_OK;
}
